//! The standard interfaces over objects in memory, asked through the wire's own codec.

pub(super) mod calling;
mod changes;
mod describing;
mod lamp;
mod managing;
mod properties;
mod store;
