//! Interfaces that objects of some wire may have whatever a contract says, such as COM's connection points, and those that listeners have
//! since objects of the contract have signals.

use everywire_model::{Contract, Hold, Interface};

/// The first that fits of the interfaces of the contract, of those that objects have whatever their contract says, and of those that
/// follow from the contract's signals.
pub(crate) fn known(contract: &Contract, fits: &dyn Fn(&Interface) -> bool) -> Option<Hold<Interface>> {
    let own = contract.interfaces().find(|interface| fits(interface)).cloned();
    own.or_else(|| common(fits).map(Hold::Static)).or_else(|| listening(contract, fits))
}

/// The first that fits of the interfaces that objects have whatever their contract says.
pub(crate) fn common(fits: &dyn Fn(&Interface) -> bool) -> Option<&'static Interface> {
    let all = everywire::wires::ALL.iter().flat_map(|wire| wire.common_interfaces());
    all.copied().find(|interface| fits(interface))
}

/// The first that fits of the interfaces that listeners to signals of the contract have.
fn listening(contract: &Contract, fits: &dyn Fn(&Interface) -> bool) -> Option<Hold<Interface>> {
    let signalling = contract.interfaces().filter(|interface| !interface.signals.is_empty());
    let mut all =
        signalling.flat_map(|of| everywire::wires::ALL.iter().flat_map(|wire| wire.listener_interfaces(of)));
    all.find(|interface| fits(interface))
}
