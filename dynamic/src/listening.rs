//! Objects that call their listeners back: an operation takes an object of the caller's, which is called from then on.
//!
//! So it is on CORBA, which has no signals. No contract says which operation that is, so its form tells: an operation that takes an object of an
//! interface that only listens ([`Interface::only_listens`]), nothing else, and gives back nothing or a number by which it is taken back.
//! `unsigned long watch(in Watcher who)` and `void add(in Listener who)` are such. Where there are several, the caller has to choose.
//!
//! Order: [`registration`] finds the operation and what takes it back; [`Registration::begin`] serves a listener on a node that the object can
//! call, and calls the operation; the [`ListenerRegistration`] takes it back when it is ended or dropped.
//!
//! Invariants: nobody is called before it is clear what to call. A listener is withdrawn after it was taken back, whatever came of that.

use crate::call::{CallError, Options, invoke};
use crate::mistake::{Mistake, Remedy};
use crate::watching::SignalFilter;
use crate::wording::signature;
use everywire::{Node, Object};
use everywire_model::shape::Name;
use everywire_model::signal::Listener;
use everywire_model::{
    Answer, Bytes, Contract, Hold, Incoming, Interface, Operation, Request, Servant, Shape, SignalEvent,
    Sink, Value,
};
use std::sync::Arc;
use std::time::Duration;

/// How long a listener's end waits for the object.
const FAREWELL: Duration = Duration::from_secs(3);

/// How names of operations begin that take back what another one began.
const BACK: [&str; 10] =
    ["un", "remove", "detach", "disconnect", "deregister", "delete", "cancel", "stop", "leave", "drop"];

/// How an object is given a listener.
#[derive(Debug, Clone)]
pub struct Registration {
    /// The interface that declares the operation.
    pub interface: Hold<Interface>,
    /// The operation that takes the listener.
    pub operation: Operation,
    /// What the listener is called by.
    pub listener: Hold<Interface>,
    /// The operation that takes it back, by the listener or by the number that the other one gave.
    back: Option<Operation>,
    /// The only call of the listener that is wanted.
    only: Option<Name>,
}

/// A listener that an object has. It is taken back when this is ended or dropped.
#[must_use = "the listener is taken back when this is dropped"]
pub struct ListenerRegistration {
    node: Node,
    key: Bytes,
    object: Object,
    back: Option<(Operation, Value)>,
}

/// The way in which an object of these interfaces, of this contract, takes listeners. `wanted.signal` may be the operation that takes one, or
/// one of the listener's.
///
/// # Errors
/// It takes none, or there are several ways.
pub fn registration(
    contract: &Contract,
    interfaces: &[Hold<Interface>],
    wanted: SignalFilter<'_>,
) -> Result<Registration, Mistake> {
    let mut ways = Vec::new();
    for interface in interfaces.iter().filter(|interface| wanted.means_interface(interface)) {
        let listeners = contract.listeners(interface);
        for operation in interface.operations.iter() {
            let taken = listener_of(operation, &listeners).filter(|_| gives_back_one_at_most(operation));
            if let Some(listener) = taken {
                ways.push((interface, operation, listener.clone()));
            }
        }
    }
    // What takes a listener back has the same form; its name tells, where it is not alone.
    let begins: Vec<_> = ways.iter().filter(|(_, operation, _)| !takes_back(&operation.label)).collect();
    let mut chosen = if begins.is_empty() { ways.iter().collect() } else { begins };
    let mut only = None;
    if let Some(name) = wanted.signal {
        let called = |operation: &Operation| operation.label == name || operation.name == name;
        let exact: Vec<_> = chosen.iter().copied().filter(|(_, operation, _)| called(operation)).collect();
        if exact.is_empty() {
            chosen.retain(|(_, _, listener)| listener.operations.iter().any(called));
            only = Some(Name::from(name.to_owned()));
        } else {
            chosen = exact;
        }
    }
    match chosen.as_slice() {
        [(interface, operation, listener)] => Ok(Registration {
            interface: (*interface).clone(),
            operation: (*operation).clone(),
            listener: (*listener).clone(),
            back: back(interface, operation),
            only,
        }),
        [] if ways.is_empty() => Err(takes_none(interfaces)),
        [] => {
            let known = ways.iter().flat_map(|(_, operation, listener)| {
                let calls = listener.operations.iter().map(|operation| operation.label.to_string());
                std::iter::once(operation.label.to_string()).chain(calls)
            });
            let known: Vec<String> = known.collect();
            Err(Mistake::operation("there is no such signal", format!("known are {}", known.join(", ")))
                .hint("choose one of these"))
        }
        several => {
            let names: Vec<String> = several.iter().map(|(_, held, _)| signature(held)).collect();
            Err(Mistake::operation(
                "it is not clear how the object takes a callback object",
                format!("it has {}", names.join(", ")),
            )
            .hint("name one of these operations behind the address"))
        }
    }
}

/// The failure where nothing takes a listener.
fn takes_none(interfaces: &[Hold<Interface>]) -> Mistake {
    let names: Vec<&str> = interfaces.iter().map(|interface| interface.name.as_ref()).collect();
    let why = match names.as_slice() {
        [] => "no interface of it is known".to_owned(),
        names => format!("no operation of {} takes a callback object and nothing else", names.join(", ")),
    };
    Mistake::operation("the object calls nobody back", why)
        .hint("a callback object has operations that give nothing back; ask the object instead, or give the contract")
        .remedy(Remedy::Contract)
}

/// The listener that an operation takes, if that is all that it takes.
fn listener_of<'l>(operation: &Operation, listeners: &'l [Hold<Interface>]) -> Option<&'l Hold<Interface>> {
    let taken = operation.takes().next().filter(|_| operation.parameters.len() == 1)?;
    listeners.iter().find(|listener| listener.id == taken.id || listener.name == taken.name)
}

/// Whether an operation gives back nothing, or one value that is a number.
fn gives_back_one_at_most(operation: &Operation) -> bool {
    match operation.results.fields() {
        [] => true,
        [only] => is_number(&only.shape),
        _ => false,
    }
}

fn is_number(shape: &Shape) -> bool {
    matches!(
        shape.resolved(),
        Shape::U8 | Shape::I8 | Shape::U16 | Shape::I16 | Shape::U32 | Shape::I32 | Shape::U64 | Shape::I64
    )
}

fn takes_back(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    BACK.iter().any(|begin| name.starts_with(begin))
}

/// What takes back what an operation began: by the number that it gives, or by the same listener. Nothing, where several may.
fn back(interface: &Interface, begin: &Operation) -> Option<Operation> {
    let given = begin.results.fields().first().map(|field| field.shape.resolved().noun().into_owned());
    let fits = |operation: &&Operation| {
        let [only] = operation.arguments.fields() else { return false };
        let same = match &given {
            Some(number) => is_number(&only.shape) && only.shape.resolved().noun() == number.as_str(),
            None => match (operation.takes().next(), begin.takes().next()) {
                (Some(one), Some(other)) => one.id == other.id && one.name == other.name,
                _ => false,
            },
        };
        same && operation.results.fields().is_empty() && takes_back(&operation.label)
    };
    let mut found = interface.operations.iter().filter(fits);
    found.next().filter(|_| found.next().is_none()).cloned()
}

impl Registration {
    /// Serves a listener on a node that listens where the object can call it, and gives it to the object. Calls come to `listener` as signals
    /// whose interface is that of the listener.
    ///
    /// # Errors
    /// The call failed, or raised an exception.
    pub fn begin(
        &self,
        object: &Object,
        node: &Node,
        listener: Listener,
    ) -> Result<ListenerRegistration, CallError> {
        let key = Bytes::from(format!("listener-{:016x}", random()));
        let (interface, only) = (self.listener.clone(), self.only.clone());
        let servant = ListenerServant { interface, key: object_key(object), only, listener };
        let reference = node.export_servant(&key, Arc::new(servant));
        let object = object.clone().typed(self.interface.clone());
        let mut registered =
            ListenerRegistration { node: node.clone(), key, object: object.clone(), back: None };
        let given = argument(&self.operation, Value::Reference(Some(reference.clone())));
        let results = invoke(&object, &self.operation, &given, Options::default())?;
        registered.back = self.back.clone().map(|back| {
            let number = results.only().map(|(_, value)| value.clone());
            let given = argument(&back, number.unwrap_or(Value::Reference(Some(reference))));
            (back, given)
        });
        Ok(registered)
    }
}

/// The key of an object, which signals of it are said to come from.
fn object_key(object: &Object) -> Bytes {
    object.reference().profiles.first().map(|profile| profile.key.clone()).unwrap_or_default()
}

/// The only argument of an operation.
fn argument(operation: &Operation, value: Value) -> Value {
    let fields = operation.arguments.fields().iter().map(|field| field.name.to_string());
    Value::Struct(fields.zip(std::iter::once(value)).collect())
}

/// A number that nobody guesses: a listener may be called by whoever knows its key.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

impl Drop for ListenerRegistration {
    fn drop(&mut self) {
        if let Some((back, given)) = self.back.take() {
            // Of an object that is gone, nobody is called any more.
            let object = self.object.clone().with_deadline(Some(FAREWELL));
            let _ = invoke(&object, &back, &given, Options::default());
        }
        self.node.withdraw(&self.key);
    }
}

/// A listener: each of its operations is a signal.
struct ListenerServant {
    interface: Hold<Interface>,
    /// The object that calls.
    key: Bytes,
    only: Option<Name>,
    listener: Listener,
}

impl Servant for ListenerServant {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn dispatch(&self, mut request: Request) {
        let called = self.interface.operations.get(request.index());
        let is_called =
            |name: &Name| called.is_some_and(|called| called.label == *name || called.name == *name);
        if self.only.as_ref().is_none_or(is_called) {
            let (_, operation, body) = request.passing();
            let of = Bytes::from(self.interface.name.as_bytes().to_vec());
            let heard = Incoming::signal(Bytes::new(), self.key.clone(), of, operation, body);
            (self.listener)(SignalEvent::Signal(heard));
        }
        request.answer(Answer::Done(&|_: &mut dyn Sink| Ok(())));
    }

    fn keeps_order(&self) -> bool {
        true
    }
}
