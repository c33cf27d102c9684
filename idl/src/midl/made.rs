//! Names of structs that the printer makes of what MIDL has not; the reader knows what they are by these names.

use everywire_model::Interface;

/// Begins the name of the struct that a sequence is: `unsigned long count; [size_is(count)] E *items;`.
pub(super) const SEQUENCE: &str = "sequence_";
/// Begins the name of the struct that a map is; the name of the struct of its pairs follows.
pub(super) const MAP: &str = "map_";
/// Begins the name of the struct of a key and a value.
pub(super) const PAIR: &str = "pair_";

/// The documentation of the interface that listeners to an interface's signals implement.
pub(super) fn told_by(name: &str) -> String {
    format!("What {name} tells")
}

/// The interface whose signals are delivered by calls of this one, by its name in MIDL, if the printer made
/// this one for it. None for an interface that a person wrote. Both its documentation and its name must fit.
#[must_use]
pub fn listener_of(interface: &Interface) -> Option<String> {
    let of = interface.doc.strip_prefix("What ")?.strip_suffix(" tells")?;
    let name = super::print::ident(of);
    interface.name.strip_prefix(name.as_str())?.starts_with("Events").then_some(name)
}
