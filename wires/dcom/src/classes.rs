//! Classes: what their objects answer, each operation by the interface that it is from. Nobody calls an object by its class.
//!
//! Invariants: the order of a class's operations is that of `lineage`: for each interface, bases first, the
//! operations that it declares itself. `number` and `declared` go by this same order, so they are inverse to
//! each other.

use crate::{iid_of, opnum_base};
use everywire_model::{Interface, InterfaceKind, Operation};
use uuid::Uuid;

/// The number in a class of the operation that is number `opnum` on the wire of the interface `iid`. Several interfaces may
/// have an operation of one name each.
pub(crate) fn number(class: &Interface, iid: Uuid, opnum: u16) -> Option<usize> {
    let lineage = lineage(class);
    let called = lineage.iter().find(|held| iid_of(held) == iid)?;
    let index = usize::from(opnum.checked_sub(opnum_base(called))?);
    let name = &called.operations.get(index)?.name;
    // What it inherits stands in the class among the operations of the interface that it is inherited from.
    let (declaring, own) = match index.checked_sub(called.inherited) {
        Some(own) => (iid, own),
        None => called.bases.iter().flat_map(|base| self::lineage(base)).find_map(|base| {
            let own = base.operations.iter().skip(base.inherited).position(|held| held.name == *name)?;
            Some((iid_of(base), own))
        })?,
    };
    let before = lineage.iter().take_while(|held| iid_of(held) != declaring);
    Some(before.map(|held| held.operations.len().saturating_sub(held.inherited)).sum::<usize>() + own)
}

/// The interface that an operation of a class is from, and the operation there.
pub(crate) fn declared(class: &Interface, index: usize) -> Option<(&Interface, &Operation)> {
    let mut index = index;
    for held in lineage(class) {
        let own = held.operations.get(held.inherited..).unwrap_or_default();
        match own.get(index) {
            Some(operation) => return Some((held, operation)),
            None => index -= own.len(),
        }
    }
    None
}

/// An interface's bases with all above them, each once, and the interface itself unless it is a class: the order in which a
/// class lists what they declare.
fn lineage(interface: &Interface) -> Vec<&Interface> {
    fn gather<'i>(interface: &'i Interface, seen: &mut Vec<&'i Interface>) {
        if seen.iter().any(|known| known.name == interface.name) {
            return;
        }
        for base in interface.bases.iter() {
            gather(base, seen);
        }
        if interface.kind != InterfaceKind::Class {
            seen.push(interface);
        }
    }
    let mut seen = Vec::new();
    gather(interface, &mut seen);
    seen
}
