//! Signals: what an object tells whoever listens.

mod emitter;
mod events;
mod typed;

pub use emitter::Emitter;
pub use events::{Audience, Backlog, Listener, SignalEvent, Subscription};
pub use typed::{Emits, Signaller, Signals, TypedSignal};
