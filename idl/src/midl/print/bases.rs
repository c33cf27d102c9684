//! Interfaces that a contract stands on and does not hold.
//!
//! A `local` interface is no part of a contract: nobody calls it from another process. Interfaces that are derived from it need its
//! methods all the same, since they count in the numbers of theirs; and a class that answers it would lose it if nothing
//! described it. So it is printed before the first definition that needs it.

use super::super::known;
use super::name_of;
use everywire_model::{Contract, Definition, Hold, Interface, InterfaceKind};
use std::borrow::Cow;
use std::collections::HashSet;

/// The contract with the bases of its interfaces, and with what its classes answer and call.
pub(super) fn described(contract: &Contract) -> Cow<'_, Contract> {
    let mut names: HashSet<String> = contract.definitions.iter().filter_map(name_of).collect();
    let mut definitions = Vec::with_capacity(contract.definitions.len());
    for definition in &contract.definitions {
        if let Definition::Interface(interface) = definition {
            needed(interface).for_each(|base| add(base, &mut names, &mut definitions));
        }
        definitions.push(definition.clone());
    }
    if definitions.len() == contract.definitions.len() {
        return Cow::Borrowed(contract);
    }
    Cow::Owned(Contract { definitions })
}

/// What must be described for an interface: its first base, whose methods come before its own; those of other bases are listed in
/// it. A class names all that it answers and calls.
fn needed(interface: &Interface) -> impl Iterator<Item = &Hold<Interface>> {
    let is_class = interface.kind == InterfaceKind::Class;
    let bases = interface.bases.iter().take(if is_class { usize::MAX } else { 1 });
    let sources =
        interface.signals.iter().filter(move |_| is_class).filter_map(|signal| signal.sink.as_ref());
    bases.chain(sources.map(|(source, _)| source))
}

/// Adds an interface, behind its own bases, unless it is there or every compiler knows it.
fn add(interface: &Hold<Interface>, names: &mut HashSet<String>, definitions: &mut Vec<Definition>) {
    if known::interface(&interface.name).is_some() || !names.insert(interface.name.to_string()) {
        return;
    }
    needed(interface).for_each(|base| add(base, names, definitions));
    definitions.push(Definition::Interface(interface.clone()));
}
