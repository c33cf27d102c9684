//! Numbers that bound what a peer can make this side do. Those a user can raise are in [`everywire_model::Limits`].

use everywire_model::{Config, Endpoint, Limits};
use std::time::Duration;

/// Most bytes of a message (section "Message Format" of the specification). A larger one is a violation of
/// the protocol, whatever the user's limits are.
pub const MESSAGE: u64 = 128 << 20;

/// Most bytes of a message unless the user says otherwise, where both sides are on one host: 32 MiB of values and what is
/// around them. A message costs its receiver up to eight times as much in memory while its values are built.
pub const USUAL: u64 = (32 << 20) + (64 << 10);

/// Instead of [`USUAL`], where the peer comes over a network. Any other limit that a user sets holds for all.
pub const USUAL_REMOTE: u64 = 4 << 20;

/// Most bytes of the elements of an array. (Section "Marshaling" of the specification: 2 to the 26th.)
pub const ARRAY: usize = 64 << 20;

/// Most bytes of a signature, an interface, a member, a bus name or an error name. (Section "Valid Names" of
/// the specification.)
pub const NAME: usize = 255;

/// Deepest nesting of a value, variants included. (The specification: 32 arrays and 32 structs.)
pub const DEPTH: u32 = 64;

/// Most bytes of header fields: a path, names, a signature. The specification would allow an array's 64 MiB.
pub const FIELDS: usize = 32 << 10;

/// Longest object path, in bytes. The specification has no limit: a message that came through a bus is refused for it, and
/// the connection to the bus stays.
pub const PATH: usize = 4096;

/// Most handles with a message. The specification leaves the number to implementations; 16 is what
/// dbus-daemon passes unless it is configured otherwise.
pub const HANDLES: usize = 16;

/// Most handles that a bus passes at once; a message with more than [`HANDLES`] is refused. (The kernel
/// passes no more at once.)
pub const HANDLES_PASSED: usize = 253;

/// Most bytes that wait for a peer that this side called, if it calls back and reads no answers. So many that a large call of this
/// side, which waits just so, is no reason.
pub const UNREAD: usize = 32 << 20;

/// Time for the greeting of a peer that connected: authentication up to `OK`, and as much again up to `BEGIN`. It is short,
/// because nobody has shown yet who he is, and the place is held meanwhile.
pub const GREETING: Duration = Duration::from_secs(5);

/// Time for the answers of a server or a bus until this side may call. A bus may be busy, or just starting.
pub const WELCOME: Duration = Duration::from_secs(30);

/// Time for the rest of a message whose handles have come. Instead of the time by the message's size, where
/// that is longer.
pub const PENDING_HANDLES: Duration = Duration::from_secs(10);

/// How many different header fields are remembered, for each direction of a connection.
pub const REMEMBERED: usize = 8;

/// Header fields over this many bytes are remembered once only, so that a peer cannot have eight large ones
/// kept.
pub const REMEMBERED_BYTES: usize = 1024;

/// Longest reference as text, in characters.
pub const REFERENCE_TEXT: usize = 16 << 10;

/// Most keys of one address. Each is compared with all before it; addresses of the specification have five at most.
pub const ADDRESS_KEYS: usize = 32;

/// Most subscriptions on one connection. Each costs up to two match rules at the bus, which bounds those as
/// well.
pub const SUBSCRIPTIONS: usize = 4096;

/// Names of a bus that stay watched after the last subscription to them. Each is a match rule at the bus.
pub const IDLE_WATCHES: usize = 16;

/// A call over the limit is refused and its bytes are thrown away as they come; one more than this many times over the
/// limit ends the connection at once.
pub const COURTESY: u64 = 16;

/// How much `receive` asks for at a time while it throws bytes away.
pub(crate) const CHUNK: usize = 256 << 10;

/// The limits of a connection: those of its configuration, but with a smaller message where the peer comes
/// over a network and the user has left the limit at its default.
pub(crate) fn on(config: &Config) -> Limits {
    let mut limits = config.limits.clone();
    let remote = config.peer.credentials.is_none()
        && matches!(config.profile.endpoints.first().map(Endpoint::stream), Some(Endpoint::Tcp { .. }));
    if remote && limits.message == USUAL {
        let usual = Limits::default().with_message(USUAL_REMOTE).budget;
        limits.message = USUAL_REMOTE;
        limits.budget.bytes = limits.budget.bytes.min(usual.bytes);
        limits.budget.elements = limits.budget.elements.min(usual.elements);
    }
    limits
}

/// The largest message that is sent or taken, in bytes. The specification's limit holds above the user's.
pub(crate) fn largest(limits: &Limits) -> u64 {
    limits.message.min(MESSAGE)
}
