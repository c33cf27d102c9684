//! Layers of transport: what stands between the bytes of a stream and the protocol of a wire, such as TLS.
//!
//! A layer is a state machine without I/O, as a session is: it wraps the session of a wire and is one itself. So every
//! wire that is a stream of bytes can stand on it, and neither knows of the other. An [`Endpoint`](crate::Endpoint) says which layers lie
//! over which transport ([`Layered`]); the runtime asks the layer of that name ([`TransportLayer`]) for the session.

mod layer;
mod options;

pub use layer::{LayerSide, MakeSession, PeerIdentity, TransportLayer};
pub use options::{LayerOptions, Layered, NAMES, TLS};
