//! Numbers that bound what a peer can make this side do. Those a user can raise are in [`everywire_model::Limits`].

use everywire_model::Limits;
use std::time::Duration;

/// Longest name of an application, object or function in a message that comes in, in bytes. KDE's programs
/// have none over a few hundred.
pub const NAME: usize = 4096;

/// Calls of one call tree (they share a key) that may be open here at a time: `a` asks `b`, which asks `a`,
/// and so on. It stops two programs that call each other without end.
pub const CALL_DEPTH: u32 = 16;

/// Keys below this are no call trees: none yet, sends, priority. The real server gives out keys from 42 on.
pub const FIRST_KEY: u32 = 42;

/// The key of messages that belong to no call tree.
pub const NO_TREE: u32 = 1;

/// The longest message that a program of Qt's can write, in bytes. A header that says more lies. (Qt's arrays
/// count with a signed number of 32 bits.)
pub(crate) const LONGEST: u64 = i32::MAX.unsigned_abs() as u64;

/// Repeated calls, ways to ask and result types that a connection remembers, each.
pub(crate) const REMEMBERED: usize = 32;

/// Calls that were withdrawn and not answered yet which a connection remembers.
pub(crate) const WITHDRAWN: usize = 1024;

/// Subscriptions that a connection may have. Each signal of a subscription counts.
pub const SUBSCRIPTIONS: usize = 4096;

/// Time the server has to admit this side: handshake and registration.
pub const ADMISSION: Duration = Duration::from_secs(30);

/// Objects and functions of one object that are looked at when it tells its contract.
pub const DISCOVERED: usize = 4096;

/// The largest message that is sent or taken, in bytes: the limit, or what the header's 32 bits can say.
pub(crate) fn largest(limits: &Limits) -> u64 {
    limits.message.min(u64::from(u32::MAX))
}
