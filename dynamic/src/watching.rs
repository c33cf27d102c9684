//! Signals of objects whose contract is known no earlier than now: to subscribe to them, and to read them.

use crate::call::CallError;
use crate::mistake::{Mistake, Remedy};
use crate::wording::last_part;
use everywire::Object;
use everywire_model::object::unexpected;
use everywire_model::signal::Listener;
use everywire_model::words::nearest;
use everywire_model::{
    Failure, Hold, Incoming, Interface, Kind, Operation, Outcome, Shape, Signal, Sink, Source, Subscription,
    Value,
};
use std::sync::Arc;

/// Which signals are meant: all of them, unless something is named.
#[derive(Debug, Clone, Copy, Default)]
pub struct SignalFilter<'a> {
    /// Of this interface alone: its name, its last part, or its identity.
    pub interface: Option<&'a str>,
    /// This signal alone: its name or label, which may stand behind that of its interface and a dot.
    pub signal: Option<&'a str>,
}

impl SignalFilter<'_> {
    /// Whether signals of this interface are wanted.
    pub(crate) fn means_interface(&self, interface: &Interface) -> bool {
        self.interface.is_none_or(|name| is_called(interface, name))
    }

    /// Whether this signal of an interface is wanted.
    fn means(&self, interface: &Interface, signal: &Signal) -> bool {
        let is = |name: &str| signal.label == name || signal.name == name;
        self.signal.is_none_or(|name| {
            let scoped = name.rsplit_once('.');
            is(name) || scoped.is_some_and(|(scope, name)| is(name) && is_called(interface, scope))
        })
    }
}

/// Whether an interface goes by this name.
fn is_called(interface: &Interface, name: &str) -> bool {
    interface.id == name || interface.name == name || last_part(&interface.name) == name
}

/// Subscribes to the signals of an object; `interfaces` are what is known of it, and may be none; `common` are those that every object
/// of its wire may have beside them ([`everywire_model::Wire::common`]): they are looked at where none of its own is meant. Each wire
/// is asked as it wants: for all signals at once, for those of an interface, or for each.
///
/// # Errors
/// The object has no such signal, or cannot be subscribed to.
pub fn subscribe(
    object: &Object,
    interfaces: &[Hold<Interface>],
    common: &[Hold<Interface>],
    wanted: SignalFilter<'_>,
    listener: &Listener,
) -> Result<Vec<Subscription>, CallError> {
    let signals = || interfaces.iter().flat_map(|interface| interface.signals.iter());
    // Where listeners have an interface of their own, the subscription needs it to understand their calls.
    let with_listeners = signals().any(|signal| signal.sink.is_some());
    if wanted.interface.is_none() && wanted.signal.is_none() && !with_listeners {
        match object.subscribe(None, Arc::clone(listener)) {
            Ok(subscription) => return Ok(vec![subscription]),
            Err(failure) if failure.kind() != Kind::Unsupported || interfaces.is_empty() => {
                return Err(failure.into());
            }
            // This wire wants to know more.
            Err(_) => {}
        }
    }
    let means = |interface: &&Hold<Interface>| {
        wanted.means_interface(interface)
            && interface.signals.iter().any(|signal| wanted.means(interface, signal))
    };
    let mut meant: Vec<_> = interfaces.iter().filter(means).collect();
    if meant.is_empty() {
        meant = common.iter().filter(means).collect();
    }
    let mut made = Vec::new();
    for interface in meant {
        let object = object.clone().typed(interface.clone());
        if wanted.signal.is_none() {
            // With the interface known, all its signals at once.
            match object.subscribe(None, Arc::clone(listener)) {
                Ok(subscription) => {
                    made.push(subscription);
                    continue;
                }
                Err(failure) if failure.kind() != Kind::Unsupported => return Err(failure.into()),
                // This wire wants each signal named.
                Err(_) => {}
            }
        }
        for signal in interface.signals.iter().filter(|signal| wanted.means(interface, signal)) {
            made.push(object.subscribe(Some(signal), Arc::clone(listener))?);
        }
    }
    let all: Vec<&str> = signals().map(|signal| signal.label.as_ref()).collect();
    if let (true, None, Some(name)) = (all.is_empty() && made.is_empty(), wanted.interface, wanted.signal) {
        // Nobody says which signals there are: then the word is believed. What comes may tell its own shape.
        let signal = Signal::new(name.to_owned(), Vec::new());
        made.push(object.subscribe(Some(&signal), Arc::clone(listener))?);
    }
    if made.is_empty() {
        return Err(if all.is_empty() { none(interfaces) } else { unknown(wanted, &all) }.into());
    }
    Ok(made)
}

/// Nothing fits what is wanted.
fn unknown(wanted: SignalFilter<'_>, all: &[&str]) -> Mistake {
    let near = wanted.signal.and_then(|name| nearest(name, all.iter().copied()));
    let mistake = Mistake::operation("there is no such signal", format!("known are {}", all.join(", ")));
    match near {
        Some(near) => mistake.hint(format!("did you mean `{near}`?")),
        None => mistake.hint("choose one of these, or give the contract").remedy(Remedy::Contract),
    }
}

/// What is known of an object has no signals; or nothing is known.
pub fn none(interfaces: &[Hold<Interface>]) -> Mistake {
    let names: Vec<&str> = interfaces.iter().map(|interface| interface.name.as_ref()).collect();
    if names.is_empty() {
        return Mistake::operation("there is no such signal", "none is known")
            .hint("name the signal, or give the contract")
            .remedy(Remedy::Contract);
    }
    Mistake::operation("there is nothing to watch", format!("{} has no signals", names.join(", ")))
        .hint("ask the object instead; if it sends signals all the same, give the contract that has them")
        .remedy(Remedy::Contract)
}

/// Asks an object to call back, where its contract has an operation for that (`Subscribe()`): on wires whose listeners are called over
/// the connection that they made.
///
/// # Errors
/// The call failed.
pub fn ask_for_callbacks(
    object: &Object,
    interfaces: &[Hold<Interface>],
    wanted: SignalFilter<'_>,
) -> Result<(), Failure> {
    let heard = |interface: &&Hold<Interface>| {
        interface.signals.iter().any(|signal| signal.sink.is_some() && wanted.means(interface, signal))
    };
    for interface in interfaces.iter().filter(heard) {
        let asks = |operation: &&Operation| {
            operation.label.eq_ignore_ascii_case("subscribe") && operation.arguments.fields().is_empty()
        };
        let Some(operation) = interface.operations.iter().find(asks) else { continue };
        let object = object.clone().typed(interface.clone());
        match object.invoke(operation, &|_: &mut dyn Sink| Ok(())) {
            Outcome::Failed(failure) => return Err(failure),
            Outcome::Raised(raised) => return Err(unexpected(&raised.id)),
            Outcome::Done(_) | Outcome::Moved(_) => {}
        }
    }
    Ok(())
}

/// The fields of a signal that came, if one of these interfaces has it, or calls it by way of an interface of listeners.
pub fn fields_of(interfaces: &[Hold<Interface>], heard: &Incoming) -> Option<Shape> {
    let is =
        |held: &Interface| held.id.as_bytes() == heard.interface || held.name.as_bytes() == heard.interface;
    let by_itself = interfaces
        .iter()
        .filter(|held| heard.interface.is_empty() || is(held))
        .find_map(|held| held.signal(&heard.operation));
    let found = by_itself.or_else(|| {
        let signals = interfaces.iter().flat_map(|held| held.signals.iter());
        let by_listener = |signal: &&Signal| signal.sink.as_ref().is_some_and(|(listener, _)| is(listener));
        signals.filter(by_listener).find(|signal| signal.name.as_bytes() == heard.operation)
    });
    let found = found.map(|signal| signal.fields.clone());
    // A call to a listener that an operation has taken.
    found.or_else(|| {
        let called = interfaces.iter().filter(|held| is(held)).flat_map(|held| held.operations.iter());
        let mut called = called.filter(|operation| operation.name.as_bytes() == heard.operation);
        called.next().map(|operation| operation.arguments.clone())
    })
}

/// The fields of a signal that came and their types: as the contract has them, else as the signal says itself.
pub fn decode(heard: &Incoming, known: Option<Shape>) -> Option<(Shape, Value)> {
    let decode = |shape: Shape| {
        let value = heard.body.read(|source: &mut dyn Source<'_>| Value::decode(&shape, source)).ok()?;
        Some((shape, value))
    };
    known.and_then(decode).or_else(|| decode(heard.body.codec.shape(&heard.body)?))
}
