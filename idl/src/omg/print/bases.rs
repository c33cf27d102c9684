//! Which bases an interface has in OMG IDL, and which of its operations it inherits from them.

use crate::unique::legal;
use everywire_model::shape::Name;
use everywire_model::{Hold, Interface, InterfaceKind};
use std::collections::{HashMap, HashSet};

/// The bases that an interface has in OMG IDL. A class of COM may have two interfaces with operations of one name, or one interface
/// twice, which OMG IDL forbids (CORBA 3.0, 3.8.5): of such bases the first stays, and what the others add is listed in the interface itself.
pub(super) fn bases(interface: &Interface) -> Vec<&Hold<Interface>> {
    if interface.kind != InterfaceKind::Class {
        return interface.bases.iter().collect();
    }
    let (mut kept, mut kept_names): (Vec<&Hold<Interface>>, HashSet<&Name>) = (Vec::new(), HashSet::new());
    // Who has each name that is inherited so far.
    let mut owners: HashMap<String, &Name> = HashMap::new();
    for base in interface.bases.iter() {
        let (mut seen, mut pending): (HashSet<&Name>, Vec<&Interface>) = (HashSet::new(), vec![base]);
        let mut names: Vec<(String, &Name)> = Vec::new();
        while let Some(next) = pending.pop() {
            if seen.insert(&next.name) {
                names.extend(said_in(next).map(|said| (said, &next.name)));
                pending.extend(next.bases.iter().map(|base| &**base));
            }
        }
        let is_new = !kept_names.contains(&base.name);
        if is_new && names.iter().all(|(said, of)| owners.get(said).is_none_or(|owner| owner == of)) {
            owners.extend(names);
            kept_names.insert(&base.name);
            kept.push(base);
        }
    }
    kept
}

/// The names of the operations and attributes that an interface itself adds, as OMG IDL compares them.
fn said_in(interface: &Interface) -> impl Iterator<Item = String> {
    let own = interface.operations.iter().enumerate().skip(interface.inherited);
    own.map(|(number, operation)| {
        let name = interface.attribute_of(number).map_or(&operation.label, |(attribute, _)| &attribute.name);
        legal(name.trim_start_matches('_')).to_ascii_lowercase()
    })
}

/// Whether the operation with a number is printed in the interface itself, and not inherited.
pub(super) fn is_own(interface: &Interface) -> impl Fn(usize) -> bool + use<> {
    let mut listed = HashSet::new();
    let kept = bases(interface);
    if kept.len() < interface.bases.len() {
        let known: HashSet<&str> = kept
            .iter()
            .flat_map(|base| base.operations.iter())
            .map(|operation| operation.name.as_ref())
            .collect();
        let inherited = interface.operations.iter().take(interface.inherited).enumerate();
        listed.extend(
            inherited.filter(|(_, held)| !known.contains(held.name.as_ref())).map(|(number, _)| number),
        );
    }
    let inherited = interface.inherited;
    move |number| number >= inherited || listed.contains(&number)
}
