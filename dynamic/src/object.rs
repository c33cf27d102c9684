//! An object and what is known of it, as a program uses both: JSON in, JSON out.
//!
//! `DynamicObject` holds the object, its contract and the notation of values; all three are shared by clones
//! and never change, so it can be used from many threads. Each call finds its operation by name, reads the
//! arguments by its types, and calls through the interface that declares the operation. A mistake in name or
//! arguments is told before anybody is called.
//!
//! Signals come as `HeardSignal`, on threads of the runtime, for as long as the `Watch` lives. A signal whose
//! fields do not decode is still told, without fields.

use crate::attributes::{self, Attribute};
use crate::call::{CallError, Options, Results, invoke, invoke_async};
use crate::contract::{ObjectContract, check_object, wire_of};
use crate::explicit::{self, MemberKind as OfSignature};
use crate::json::{self, NodeNotation, Types};
use crate::mistake::Mistake;
use crate::operation::{self, of_class};
use crate::watching::{self, SignalFilter};
use everywire::{Node, Object};
use everywire_model::{Failure, Hold, Incoming, Interface, Operation, SignalEvent, Subscription, Value};
use serde_json::Value as Json;
use std::sync::Arc;
use std::time::Duration;

/// An object whose types are known no earlier than now. Cloning shares its connection.
///
/// A name of an operation or of an attribute is one of the contract's; `INTERFACE.NAME` where several interfaces have it. Arguments are
/// an object by their names, a list by their places, or `null` for none ([`crate::json`] has the form of each type).
#[derive(Clone)]
pub struct DynamicObject {
    /// With its connection and its time limit.
    object: Object,
    /// From the object, a file, or a signature.
    contract: Arc<ObjectContract>,
    /// References by the node, types by the contract.
    notation: NodeNotation,
}

/// An operation, and the interface that it is called by.
#[derive(Debug, Clone, Copy)]
pub struct Member<'c> {
    /// The interface.
    pub interface: &'c Hold<Interface>,
    /// The operation.
    pub operation: &'c Operation,
}

/// A signal as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct HeardSignal {
    /// Who sent it, in the wire's words, where a router stands between; mostly empty.
    pub sender: String,
    /// The key of the object that has emitted it.
    pub key: String,
    /// Its interface, in the wire's words; empty where the wire names none.
    pub interface: String,
    /// Its name, in the wire's words.
    pub signal: String,
    /// Its fields; nothing where nobody tells their types.
    pub fields: Option<Json>,
}

/// Subscriptions to signals of an object; they end when this is dropped.
#[derive(Debug)]
#[must_use = "the subscriptions end when this is dropped"]
pub struct Watch {
    _subscriptions: Vec<Subscription>,
}

impl DynamicObject {
    /// An object by its address or reference, which is asked for its contract.
    ///
    /// # Errors
    /// The text is no reference, the object does not answer, or it does not tell its contract ([`everywire::Kind::Unsupported`]): then
    /// [`DynamicObject::with_contract`] takes it from elsewhere.
    pub fn connect(node: &Node, address: &str) -> Result<Self, Failure> {
        let object = node.object(address)?;
        let contract = ObjectContract::from_object(&object)?;
        Ok(Self::new(node, object, contract))
    }

    /// An object by its address or reference, whose contract is known. Whether it can be reached shows at the first call.
    ///
    /// # Errors
    /// The text is no reference of an object.
    pub fn with_contract(node: &Node, address: &str, contract: ObjectContract) -> Result<Self, Failure> {
        let object = node.object(address)?;
        check_object(object.reference())?;
        Ok(Self::new(node, object, contract))
    }

    /// An object that is here already.
    pub fn new(node: &Node, object: Object, contract: ObjectContract) -> Self {
        // An object of this process has no wire.
        let contract = match wire_of(object.reference()) {
            Ok(wire) => contract.on(wire),
            Err(_) => contract,
        };
        let notation = NodeNotation::new(node.clone(), Types::of(&contract.contract));
        Self { object, contract: Arc::new(contract), notation }
    }

    /// The same, where JSON may name files of this machine to open: for whoever writes that JSON here.
    #[must_use]
    pub fn opening_files(self) -> Self {
        Self { notation: self.notation.opening_files(), ..self }
    }

    /// The same with another time limit for each call; `None` waits for ever.
    #[must_use]
    pub fn with_deadline(self, deadline: Option<Duration>) -> Self {
        Self { object: self.object.with_deadline(deadline), ..self }
    }

    /// The object without its contract.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// Its contract.
    pub fn contract(&self) -> &ObjectContract {
        &self.contract
    }

    /// How values are spelled.
    pub fn notation(&self) -> &NodeNotation {
        &self.notation
    }

    /// Its own interfaces, without what every object of its wire has.
    pub fn interfaces(&self) -> impl Iterator<Item = &Hold<Interface>> {
        self.contract.contract.interfaces().take(self.contract.own)
    }

    /// The operations of its own interfaces, without those that read and write attributes.
    pub fn operations(&self) -> Vec<Member<'_>> {
        let of = |interface| {
            let interface: &Hold<Interface> = interface;
            let all = interface.operations.iter().enumerate();
            let plain = all.filter(|(index, _)| !attributes::is_accessor(interface, *index));
            plain.map(move |(_, operation)| Member { interface, operation })
        };
        self.interfaces().flat_map(of).collect()
    }

    /// The attributes of its own interfaces.
    pub fn attributes(&self) -> Vec<Attribute<'_>> {
        self.interfaces().flat_map(|interface| attributes::attributes(interface)).collect()
    }

    /// The operation of this name that takes these arguments.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn member(&self, name: &str, arguments: &Json) -> Result<Member<'_>, Mistake> {
        let interface = self.contract.interface_of(None, &self.object.reference().type_id, Some(name))?;
        let found = match arguments {
            Json::Null => operation::choose(interface, name, 0, false),
            Json::Array(items) => operation::choose(interface, name, items.len(), false),
            // What may be missing need not stand in an object.
            Json::Object(given) => operation::choose(interface, name, given.len(), false)
                .or_else(|_| operation::choose(interface, name, given.len(), true)),
            _ => operation::choose(interface, name, 1, false),
        };
        // A class is called by its interfaces.
        let (interface, operation) = of_class(interface, found?);
        Ok(Member { interface, operation })
    }

    /// The arguments of an operation, with nothing in them, to be filled in.
    ///
    /// # Errors
    /// There is no such operation, or more than one.
    pub fn template(&self, operation: &str) -> Result<Json, Mistake> {
        let interface =
            self.contract.interface_of(None, &self.object.reference().type_id, Some(operation))?;
        Ok(json::template(&operation::choose(interface, operation, 0, true)?.arguments))
    }

    /// Calls an operation, and waits for its results: an object with `return` and each parameter that comes back.
    ///
    /// # Errors
    /// The arguments do not fit, the operation raised an exception, or the call failed.
    pub fn call(&self, operation: &str, arguments: Json) -> Result<Json, CallError> {
        Ok(self.invoke(operation, arguments, Options::default())?.json(&self.notation))
    }

    /// As [`DynamicObject::call`], with headers beside the arguments and the results.
    ///
    /// # Errors
    /// As [`DynamicObject::call`].
    pub fn invoke(
        &self,
        operation: &str,
        arguments: Json,
        options: Options<'_>,
    ) -> Result<Results, CallError> {
        let (object, operation, values) = self.prepared(operation, arguments)?;
        invoke(&object, operation, &values, options)
    }

    /// As [`DynamicObject::call`], for a caller that has no thread to wait with. Dropping the future withdraws the call.
    ///
    /// # Errors
    /// As [`DynamicObject::call`].
    pub async fn call_async(&self, operation: &str, arguments: Json) -> Result<Json, CallError> {
        let (object, operation, values) = self.prepared(operation, arguments)?;
        Ok(invoke_async(&object, operation, &values).await?.json(&self.notation))
    }

    /// A single value stands for a list of one.
    fn prepared(&self, name: &str, arguments: Json) -> Result<(Object, &Operation, Value), Mistake> {
        let Member { interface, operation } = self.member(name, &arguments)?;
        let document = match arguments {
            Json::Null => None,
            given @ (Json::Array(_) | Json::Object(_)) => Some(given),
            one => Some(Json::Array(vec![one])),
        };
        let values = operation::arguments(operation, &[], document, &self.notation)?;
        Ok((self.object.clone().typed(interface.clone()), operation, values))
    }

    /// Calls an operation by its types in the wire's own notation, where nobody has a contract: `su->i` on D-Bus,
    /// `long deposit(in long amount)` on GIOP, `int seek(int)` on DCOP. On D-Bus the name has its interface before it.
    ///
    /// # Errors
    /// The signature cannot be read, the wire takes more than types to call, or as [`DynamicObject::call`].
    pub fn call_by_signature(
        node: &Node,
        address: &str,
        operation: &str,
        signature: &str,
        arguments: Json,
    ) -> Result<Json, CallError> {
        let object = node.object(address)?;
        check_object(object.reference())?;
        let wire = wire_of(object.reference())?;
        let contract = explicit::contract(wire, operation, None, signature, OfSignature::Operation)?;
        // What a signature leaves open, the answer tells.
        let options = Options { open: explicit::leaves_results(wire, signature), ..Options::default() };
        let object = Self::new(node, object, contract);
        Ok(object.invoke(operation, arguments, options)?.json(&object.notation))
    }

    /// What an attribute holds.
    ///
    /// # Errors
    /// There is no such attribute, or the call that reads it failed.
    pub fn get(&self, attribute: &str) -> Result<Json, CallError> {
        let results = self.invoke(attribute, Json::Null, Options::default())?;
        match results.only() {
            Some((shape, value)) => Ok(json::write(shape, value, &self.notation)),
            None => Ok(results.json(&self.notation)),
        }
    }

    /// Writes an attribute.
    ///
    /// # Errors
    /// There is no such attribute, it is read-only, the value does not fit, or the call failed.
    pub fn set(&self, attribute: &str, value: Json) -> Result<(), CallError> {
        self.invoke(attribute, Json::Array(vec![value]), Options::default()).map(drop)
    }

    /// Calls `listener` for each signal that is wanted, on the runtime's threads, until what comes back is dropped. It is also told
    /// when whoever emits them is lost, and when the connection broke: then the object must be watched anew.
    ///
    /// # Errors
    /// There is no such signal, or the object cannot be subscribed to.
    pub fn watch(
        &self,
        wanted: SignalFilter<'_>,
        listener: impl Fn(SignalEvent<HeardSignal>) + Send + Sync + 'static,
    ) -> Result<Watch, CallError> {
        let interfaces: Arc<[Hold<Interface>]> = self.contract.contract.interfaces().cloned().collect();
        let common = &self.contract.common;
        let known: Vec<Hold<Interface>> = interfaces.iter().chain(common).cloned().collect();
        let notation = self.notation.clone();
        let told = move |event: SignalEvent<Incoming>| {
            listener(match event {
                SignalEvent::Signal(heard) => SignalEvent::Signal(HeardSignal::of(&heard, &known, &notation)),
                SignalEvent::OwnerLost(failure) => SignalEvent::OwnerLost(failure),
                SignalEvent::Undecodable(failure) => SignalEvent::Undecodable(failure),
                SignalEvent::Disconnected(failure) => SignalEvent::Disconnected(failure),
            });
        };
        let listener: everywire_model::signal::Listener = Arc::new(told);
        let subscriptions = watching::subscribe(&self.object, &interfaces, common, wanted, &listener)?;
        // There the listener is reached by the connection itself, and the object must be asked to use it.
        let over_connection =
            wire_of(self.object.reference()).is_ok_and(|wire| wire.capabilities().callbacks_on_connection);
        if over_connection {
            watching::ask_for_callbacks(&self.object, &interfaces, wanted)?;
        }
        Ok(Watch { _subscriptions: subscriptions })
    }
}

impl HeardSignal {
    /// A signal that came, read by what is known of it.
    fn of(heard: &Incoming, interfaces: &[Hold<Interface>], notation: &NodeNotation) -> Self {
        let read = watching::decode(heard, watching::fields_of(interfaces, heard));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            sender: text(&heard.sender),
            key: text(&heard.key),
            interface: text(&heard.interface),
            signal: text(&heard.operation),
            fields: read.map(|(shape, value)| json::write(&shape, &value, notation)),
        }
    }
}
