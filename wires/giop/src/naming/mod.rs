//! Names (OMG Naming Service, formal/04-10-03): what this node serves, as a context of names that can only be read, and walking the
//! contexts of others.
//!
//! The context of a node has the key `NameService`, where clients of every ORB look for one. Its names are the keys of the objects
//! that are served; who wants others runs a naming service of its own.

mod context;
mod names;
mod walk;

pub(crate) use context::{Iterators, answers, locate, servants};
pub(crate) use walk::{list, look_up};

/// The key of a node's context.
pub(crate) const KEY: &[u8] = b"NameService";
