//! One object, every wire: the crate to depend on
