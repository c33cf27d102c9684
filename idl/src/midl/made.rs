//! Names of structs that the printer makes of what MIDL has not; the reader knows what they are by these names.

/// Begins the name of the struct that a sequence is: `unsigned long count; [size_is(count)] E *items;`.
pub(super) const SEQUENCE: &str = "sequence_";
/// Begins the name of the struct that a map is; the name of the struct of its pairs follows.
pub(super) const MAP: &str = "map_";
/// Begins the name of the struct of a key and a value.
pub(super) const PAIR: &str = "pair_";
