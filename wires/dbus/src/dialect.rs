//! What is noted about a body beside its bytes: the codec that reads it and the bits of [`Body::dialect`].

use crate::frame;
use everywire_model::Body;

/// Bit of [`Body::dialect`]: arguments, where a wrong type is the caller's mistake. In results it is the
/// peer's.
pub(crate) const ARGUMENTS: u32 = 1;
/// [`Body::dialect`] of everything else.
pub(crate) const RESULTS: u32 = 0;

/// The codec's name.
pub(crate) const NAME: &str = "dbus";

/// Bit of [`Body::dialect`]: it came by a bus, which has looked at it. A bus ends the connection of whoever
/// sends it a malformed message, so what comes from there is whole.
pub(crate) const LOOKED_AT: u32 = 2;

/// Where in [`Body::dialect`] the flags are that a message came with.
const FLAGS: u32 = 8;

/// The flags that concern the next hop, too.
const KEPT: u8 = frame::NO_AUTO_START | frame::ALLOW_INTERACTIVE_AUTHORIZATION;

/// The dialect of a body: `dialect` is ARGUMENTS or RESULTS, `flags` are those of its message.
#[inline]
pub(crate) fn dialect(dialect: u32, flags: u8, on_bus: bool) -> u32 {
    dialect | u32::from(flags & KEPT) << FLAGS | if on_bus { LOOKED_AT } else { 0 }
}

/// The flags that a body came with and that are kept.
pub(crate) fn flags(body: &Body) -> u8 {
    u8::try_from(body.dialect >> FLAGS & 0xff).unwrap_or_default() & KEPT
}
