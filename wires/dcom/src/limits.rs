//! Bounds that hold whatever the budget of a message allows.

/// The most pointers that may be followed one behind another: cycles of full pointers end here.
pub const POINTER_DEPTH: u32 = 32;

/// The most VARIANTs that may be nested in one another.
pub const VARIANT_DEPTH: u32 = 16;

/// The most dimensions that a SAFEARRAY may claim before its bounds are read; automation allows no more.
pub const SAFEARRAY_DIMENSIONS: u32 = 60;

/// The most composites that a value to be written may nest.
pub const WRITE_DEPTH: usize = 64;
