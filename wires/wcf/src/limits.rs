//! Bounds that hold whatever the budget of a message allows; the figures are those of Microsoft's defaults.

/// Bytes of the session dictionary of one direction, length prefixes included, summed over the session.
pub const MAX_SESSION_SIZE: usize = 2048;

/// Words in the session dictionary of one direction.
pub const MAX_SESSION_WORDS: usize = 2048;

/// Elements in elements.
pub const MAX_DEPTH: usize = 32;

/// Attributes and namespace declarations of one element.
pub const MAX_ATTRIBUTES: usize = 64;

/// Bytes of one name, prefix or namespace.
pub const MAX_NAME: usize = 4096;
