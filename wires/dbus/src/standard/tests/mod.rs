//! The standard interfaces over objects in memory, asked through the wire's own codec.

mod calling;
mod changes;
mod describing;
mod lamp;
mod managing;
mod properties;
mod store;
