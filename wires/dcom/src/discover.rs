//! Asking an object for its contract: the whole one from objects of this implementation, else what its type information
//! tells (MS-OAUT 3.8), which are the members that can be called by name.
//!
//! An object of this implementation answers an interface of its own with the whole contract as MIDL. Any
//! other is asked for ITypeInfo by IDispatch, which needs several calls for each member. Signals of a class
//! are its source interfaces, found by IProvideClassInfo.

use crate::iid_of;
use crate::standard::contracts::{
    CONTRACT, DISPATCH, GET_CLASS_INFO, GET_CONTRACT, GET_TYPE_INFO, PROVIDE_CLASS_INFO,
};
use crate::standard::guid::Guid;
use crate::standard::typeinfo::library::SOURCE;
use crate::standard::typeinfo::reading::RemoteTypeInfo;
use everywire_idl::midl;
use everywire_model::contract::{Contract, Definition, Interface, InterfaceKind, Signal};
use everywire_model::wire::Discovery;
use everywire_model::{Failure, Hold, Initiator, Kind, Object, Reference};
use std::borrow::Cow;
use std::sync::Arc;

/// English of the United States. Names and documents may differ by language; this one most servers know.
const LCID: u32 = 0x409;

/// Asks an object what it is.
///
/// # Errors
/// It does not tell; what it tells is not understood; those of the calls.
pub fn discover(object: &Object) -> Result<Discovery, Failure> {
    match whole(object) {
        Ok(discovery) => return Ok(discovery),
        Err(failure) if is_refusal(&failure) => return Err(failure),
        Err(_) => {}
    }
    by_type_information(object).map_err(|failure| {
        if is_refusal(&failure) {
            return failure;
        }
        let message = format!("the object does not tell its contract: {failure}");
        Failure::new(Kind::Unsupported, Initiator::Peer, message).with_hint("give the contract's file")
    })
}

/// What the type information of an object tells: an interface that is called by name, with the signals of its class.
///
/// # Errors
/// It has none; those of the calls.
pub fn by_type_information(object: &Object) -> Result<Discovery, Failure> {
    let interface = described(object)?;
    // Many objects tell no class.
    Ok(assembled(interface, class_of(object).unwrap_or_default()))
}

/// Failures that say nothing of what the object can do.
fn is_refusal(failure: &Failure) -> bool {
    matches!(
        failure.kind(),
        Kind::Unreachable | Kind::Refused | Kind::TimedOut | Kind::NoObject | Kind::Violation
    )
}

/// The object as an interface of the wire, at the same target, so that it is not activated again.
fn typed(object: &Object, interface: &'static Interface) -> Object {
    Object::new(Arc::clone(object.target())).typed(Hold::Static(interface))
}

/// The contract as an object of this implementation tells it.
fn whole(object: &Object) -> Result<Discovery, Failure> {
    let (text, own) = typed(object, &CONTRACT).call::<_, (String, Vec<Guid>), Failure>(GET_CONTRACT, ())?;
    let contract = midl::parse(&text, "contract of the object").map_err(|problems| {
        let what = format!("the contract it tells cannot be read: {problems}");
        Failure::new(Kind::Malformed, Initiator::Peer, what)
    })?;
    let interfaces: Vec<Hold<Interface>> = contract.interfaces().cloned().collect();
    // Types first, then what the object is, then the interfaces that these are made of.
    let (mut types, mut first, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for definition in contract.definitions {
        match &definition {
            Definition::Interface(interface) if own.contains(&Guid(iid_of(interface))) => {
                first.push(Definition::Interface(with_signals(interface, &interfaces)));
            }
            Definition::Interface(_) => rest.push(definition),
            _ => types.push(definition),
        }
    }
    if first.is_empty() {
        let what = "the contract it tells has none of its interfaces";
        return Err(Failure::new(Kind::Malformed, Initiator::Peer, what));
    }
    let own = first.len();
    types.extend(first);
    types.extend(rest);
    Ok(Discovery { contract: Contract { definitions: types }, own, ..Discovery::default() })
}

/// An interface with the signals that another contract language gave it: MIDL has an interface of their own for them, and says of
/// which it is ([`midl::listener_of`]).
fn with_signals(interface: &Hold<Interface>, all: &[Hold<Interface>]) -> Hold<Interface> {
    if !interface.signals.is_empty() {
        return interface.clone();
    }
    let mut signals = Vec::new();
    let mut declaring: Vec<&Interface> = vec![interface];
    while let Some(next) = declaring.pop() {
        declaring.extend(next.bases.iter().map(|base| &**base));
        let listens = |held: &&Hold<Interface>| midl::listener_of(held).is_some_and(|name| name == next.name);
        signals.extend(all.iter().filter(listens).flat_map(signals_of));
    }
    if signals.is_empty() {
        return interface.clone();
    }
    Hold::new(Interface { signals: Cow::Owned(signals), ..(**interface).clone() })
}

/// The signals that calls of a listener's interface are.
fn signals_of(listener: &Hold<Interface>) -> impl Iterator<Item = Signal> {
    listener.operations.iter().enumerate().map(|(index, operation)| {
        let mut signal = Signal::new(operation.name.clone(), operation.arguments.fields().to_vec());
        signal.doc = operation.doc.clone();
        signal.sink = Some((listener.clone(), index));
        signal
    })
}

/// What the object is by IDispatch.
fn described(object: &Object) -> Result<Interface, Failure> {
    let (info,) =
        typed(object, &DISPATCH).call::<_, (Option<Reference>,), Failure>(GET_TYPE_INFO, (0_u32, LCID))?;
    RemoteTypeInfo::of(object, info)?.interface()
}

/// The source interfaces of the object's class.
fn class_of(object: &Object) -> Result<Vec<Interface>, Failure> {
    let (class,) =
        typed(object, &PROVIDE_CLASS_INFO).call::<_, (Option<Reference>,), Failure>(GET_CLASS_INFO, ())?;
    let class = RemoteTypeInfo::of(object, class)?;
    let sources = class.implemented()?.into_iter().filter(|(_, flags)| flags & SOURCE != 0);
    sources.map(|(part, _)| part.interface()).collect()
}

/// An interface with the signals that calls of these are.
/// Two sources may have a signal of one name: the later one is called `SOURCE_SIGNAL`.
fn assembled(mut interface: Interface, sources: Vec<Interface>) -> Discovery {
    let mut definitions = Vec::new();
    let mut signals: Vec<Signal> = Vec::new();
    for source in sources {
        let source = Hold::new(source);
        for mut signal in signals_of(&source) {
            if signals.iter().any(|held| held.name == signal.name) {
                signal.name = format!("{}_{}", source.name, signal.name).into();
                signal.label = signal.name.clone();
            }
            signals.push(signal);
        }
        definitions.push(Definition::Interface(source));
    }
    interface.kind = InterfaceKind::Dispatch;
    interface.signals = Cow::Owned(signals);
    definitions.insert(0, Definition::Interface(Hold::new(interface)));
    Discovery { contract: Contract { definitions }, own: 1, ..Discovery::default() }
}
