//! The list of wires: the one place outside a wire's own crate that names it.

use everywire_model::Wire;

/// Every wire this program speaks.
pub static ALL: &[&dyn Wire] = &[
    &everywire_giop::GIOP,
    &everywire_dbus::DBUS,
    &everywire_dcop::DCOP,
    &everywire_dcom::DCOM,
    &everywire_wcf::WCF,
];

/// The wire with this name.
pub fn named(name: &str) -> Option<&'static dyn Wire> {
    ALL.iter().find(|wire| wire.name() == name).copied()
}
