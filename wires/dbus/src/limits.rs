//! Numbers that bound what a peer can make this side do. Those a user can raise are in [`everywire_model::Limits`].

use everywire_model::Limits;
use std::time::Duration;

/// Most bytes of a message (section "Message Format" of the specification).
pub const MESSAGE: u64 = 128 << 20;

/// Most bytes of the elements of an array.
pub const ARRAY: usize = 64 << 20;

/// Most bytes of a signature, an interface, a member, a bus name or an error name.
pub const NAME: usize = 255;

/// Deepest nesting of arrays in a signature, and of structs.
pub const NESTING: u8 = 32;

/// Deepest nesting of a value, variants included.
pub const DEPTH: u32 = 64;

/// Most bytes of header fields: a path, names, a signature. The specification would allow an array's 64 MiB.
pub const FIELDS: usize = 32 << 10;

/// Longest object path, in bytes.
pub const PATH: usize = 4096;

/// Most handles with a message.
pub const HANDLES: usize = 16;

/// Time for the greeting of a peer that connected: authentication up to `BEGIN`.
pub const GREETING: Duration = Duration::from_secs(5);

/// Time for the answers of a server or a bus until this side may call.
pub const WELCOME: Duration = Duration::from_secs(30);

/// Time for the rest of a message whose handles have come.
pub const PENDING_HANDLES: Duration = Duration::from_secs(10);

/// Header fields that are remembered, of each direction, and the longest that is.
pub const REMEMBERED: usize = 8;

/// See [`REMEMBERED`].
pub const REMEMBERED_BYTES: usize = 1024;

/// Longest reference as text, in characters.
pub const REFERENCE_TEXT: usize = 16 << 10;

/// Most subscriptions on one connection.
pub const SUBSCRIPTIONS: usize = 4096;

/// A call over the limit is refused and its bytes are thrown away as they come; one more than this many times over the
/// limit ends the connection at once.
pub const COURTESY: u64 = 16;

/// How much `receive` asks for at a time while it throws bytes away.
pub(crate) const CHUNK: usize = 256 << 10;

/// Time for a message of that many bytes to arrive.
pub(crate) fn message_time(limits: &Limits, bytes: u64) -> Duration {
    let mebibytes = u32::try_from((bytes >> 20) + 1).unwrap_or(u32::MAX);
    limits.message_time.saturating_mul(mebibytes)
}

/// The largest message that is sent or taken, in bytes.
pub(crate) fn largest(limits: &Limits) -> u64 {
    limits.message.min(MESSAGE)
}
