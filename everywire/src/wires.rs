//! The list of wires: the one place outside a wire's own crate that names it.

use everywire_model::Wire;

/// Every wire this program speaks: those whose features are on.
pub static ALL: &[&dyn Wire] = &[
    #[cfg(feature = "giop")]
    &everywire_giop::GIOP,
    #[cfg(feature = "dbus")]
    &everywire_dbus::DBUS,
    #[cfg(feature = "dcop")]
    &everywire_dcop::DCOP,
    #[cfg(feature = "dcom")]
    &everywire_dcom::DCOM,
    #[cfg(feature = "wcf")]
    &everywire_wcf::WCF,
];

/// The wire with this name.
pub fn named(name: &str) -> Option<&'static dyn Wire> {
    ALL.iter().find(|wire| wire.name() == name).copied()
}
