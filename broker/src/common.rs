//! Interfaces that objects of some wire may have whatever a contract says, such as COM's connection points.

use everywire_model::{Contract, Hold, Interface};

/// The first interface of the contract that fits, or of those that objects have whatever their contract says.
pub(crate) fn known(contract: &Contract, fits: &dyn Fn(&Interface) -> bool) -> Option<Hold<Interface>> {
    let own = contract.interfaces().find(|interface| fits(interface)).cloned();
    own.or_else(|| common(fits).map(Hold::Static))
}

/// The first that fits of the interfaces that objects have whatever their contract says.
pub(crate) fn common(fits: &dyn Fn(&Interface) -> bool) -> Option<&'static Interface> {
    let all = everywire::wires::ALL.iter().flat_map(|wire| wire.common_interfaces());
    all.copied().find(|interface| fits(interface))
}
