//! Source interfaces: which calls of a listener the signals of an object are.

use crate::iid_of;
use everywire_idl::midl::sink_iid;
use everywire_model::contract::{Direction, Interface, Operation, Parameter, Signal};
use everywire_model::shape::Field;
use everywire_model::{Hold, Shape};
use uuid::Uuid;

/// An interface that listeners implement, and the signals that are calls of it.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its identity.
    pub iid: Uuid,
    /// The interface as listeners implement it: its operations are the signals.
    pub interface: Hold<Interface>,
    /// The interface whose signals these are, as the contract calls it: it itself, if the contract has it.
    pub name: String,
    /// Signals by name, and the number of the operation that each is.
    pub signals: Vec<(String, usize)>,
}

/// The source interfaces of an interface, in the order of its signals. A signal whose contract names no interface of a
/// listener belongs to one that is derived from the interface that declares it: its identity is the [`sink_iid`], its operations are
/// the other such signals that it declares itself, in their order, each with the fields as `in` parameters.
pub fn sources(interface: &Interface) -> Vec<Source> {
    let mut found: Vec<Source> = Vec::new();
    for signal in interface.signals.iter() {
        let name = signal.name.to_string();
        let (iid, index) = place(interface, signal);
        match found.iter_mut().find(|source| source.iid == iid) {
            Some(source) => source.signals.push((name, index)),
            None => {
                let (of, named) = match &signal.sink {
                    Some((sink, _)) => (sink.clone(), sink.name.to_string()),
                    None => {
                        let declaring = declaring(interface, signal);
                        (Hold::new(events(declaring)), declaring.name.to_string())
                    }
                };
                found.push(Source { iid, interface: of, name: named, signals: vec![(name, index)] });
            }
        }
    }
    found
}

/// The source interface of a signal, and the number of the operation that it is there.
pub(super) fn place(interface: &Interface, signal: &Signal) -> (Uuid, usize) {
    match &signal.sink {
        Some((sink, index)) => (iid_of(sink), *index),
        None => {
            let declaring = declaring(interface, signal);
            let index = own(declaring).position(|held| held.name == signal.name);
            (sink_iid(declaring), index.unwrap_or_default())
        }
    }
}

/// The interface, this one or a base, that a signal is declared by.
fn declaring<'a>(interface: &'a Interface, signal: &Signal) -> &'a Interface {
    let base = interface.bases.iter().find(|base| base.signal(signal.name.as_bytes()).is_some());
    base.map_or(interface, |base| declaring(base, signal))
}

/// The signals that no base declares and that have no listener's interface of their own.
fn own(interface: &Interface) -> impl Iterator<Item = &Signal> {
    let inherited =
        |signal: &&Signal| interface.bases.iter().all(|base| base.signal(signal.name.as_bytes()).is_none());
    interface.signals.iter().filter(|signal| signal.sink.is_none()).filter(inherited)
}

/// The interface of the listeners of one that names none: its operations are the signals that it declares
/// itself.
fn events(interface: &Interface) -> Interface {
    let operations = own(interface).map(|signal| {
        let parameter = |field: &Field| Parameter { direction: Direction::In, field: field.clone() };
        let parameters = signal.fields.fields().iter().map(parameter).collect();
        let mut operation = Operation::new(signal.name.clone(), parameters, Shape::Void);
        operation.label = signal.label.clone();
        operation
    });
    Interface {
        name: format!("{}Events", interface.name).into(),
        id: sink_iid(interface).to_string().into(),
        operations: operations.collect::<Vec<_>>().into(),
        ..Interface::default()
    }
}
