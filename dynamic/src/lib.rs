//! Calls of objects whose types are known no earlier than at run time: JSON in, JSON out, on every wire.
//!
//! This is what the program `everywire call` stands on, and what a binding of another language or a face of HTTP needs. An object is
//! found by its address; its contract comes from the object itself, from a file in any contract language, or from the types of one
//! operation.
//!
//! ```
//! use everywire::Node;
//! use everywire_dynamic::{DynamicObject, ObjectContract};
//! use serde_json::json;
//! # use everywire::model::{Answer, Hold, Interface, Request, Servant, Sink, Source};
//! # use everywire::Value;
//! # use std::sync::Arc;
//! # struct Account(Hold<Interface>);
//! # impl Servant for Account {
//! #     fn interface(&self) -> &Interface { &self.0 }
//! #     fn dispatch(&self, mut request: Request) {
//! #         let operation = &self.0.operations[request.index()];
//! #         let given = request.body().read(|s: &mut dyn Source<'_>| Value::decode(&operation.arguments, s));
//! #         let Ok(Value::Struct(given)) = given else { return };
//! #         let answer = Value::Struct(vec![("return".into(), given[0].1.clone())]);
//! #         request.answer(Answer::Done(&|sink: &mut dyn Sink| answer.encode(&operation.results, sink)));
//! #     }
//! # }
//! # let contract = everywire_idl::omg::parse("interface Account { long deposit(in long amount); };", "account.idl").unwrap();
//! # let server = Node::new();
//! # server.listen(&format!("iiop+unix:///tmp/everywire-dynamic-{}.sock", std::process::id()))?;
//! # let served = server.export_servant("account", Arc::new(Account(contract.interface("Account").unwrap().clone())));
//! # let address = server.print_friendly(&served);
//! let node = Node::new();
//! // `address` is such as iiop://127.0.0.1:2809/account; the object is asked for its contract.
//! let account = DynamicObject::connect(&node, &address)?;
//! for member in account.operations() {
//!     println!("{}", everywire_dynamic::wording::signature(member.operation));
//! }
//! let results = account.call("deposit", json!({"amount": 5}))?;
//! assert_eq!(results, json!({"return": 5}));
//!
//! // What does not fit is said before anybody is called, with where and what.
//! let mistake = account.call("deposit", json!(["much"])).unwrap_err();
//! assert!(mistake.to_string().contains("arguments.amount: a number (i32) is expected, not text"));
//! # Ok::<(), everywire::Failure>(())
//! ```
//!
//! * [`DynamicObject`]: list operations, call (waiting or not), read and write attributes, watch signals.
//! * [`ObjectContract`]: what is known of an object, and which interface of it is meant.
//! * [`operation`]: which operation is meant, also of several that share a name; its arguments from JSON or from words.
//! * [`json`]: the form of each type. JSON opens files only where that is allowed ([`json::Notation::opens_files`]).
//! * [`listening`]: objects that call back whoever gives them a listener, as CORBA has it.
//! * [`Mistake`] and [`CallError`] say what went wrong in parts; with `?` both become a [`everywire::Failure`] with its hint.

#![forbid(unsafe_code)]

pub mod attributes;
pub mod call;
mod contract;
mod counts;
pub mod explicit;
pub mod headers;
pub mod json;
pub mod listening;
mod mistake;
mod object;
pub mod operation;
mod signal;
pub mod watching;
pub mod wording;

pub use call::{CallError, Options, RaisedException, Results};
pub use contract::{ObjectContract, check_object, wire_of};
pub use mistake::{Mistake, Remedy};
pub use object::{DynamicObject, HeardSignal, Member, Watch};
