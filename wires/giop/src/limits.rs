//! Numbers that bound what a peer can make this side do. Those a user can raise are in [`everywire_model::Limits`].

use everywire_model::Limits;

/// Most nodes of one type code that is read. Each node takes 4 octets at least, so a code of 16 KiB can reach
/// it.
pub const TYPECODE_NODES: usize = 4096;

/// Most nodes of one type code that is written: one of a few nodes that was read may stand for a huge one,
/// since its indirections share what is written anew each time.
pub const TYPECODE_WRITTEN: usize = 1 << 16;

/// Deepest nesting of one type code, indirections followed. Reading and writing recurse once for each level.
pub const TYPECODE_DEPTH: usize = 32;

/// Most profiles in a reference, components in a profile, and addresses in a component. References of real
/// servers have fewer than ten.
pub const REFERENCE_PARTS: usize = 256;

/// Most endpoints of a profile; those beyond are passed over. A profile has copies of those that its reference tells for all
/// profiles, so a small reference could name millions.
pub const PROFILE_ENDPOINTS: usize = 32;

/// Longest name of a host, and longest path, that an endpoint is made of, in bytes. DNS allows names of 253, Unix sockets
/// paths of 108.
pub const PLACE_TEXT: usize = 255;

/// Longest stringified reference, in characters: 128 KiB, which is 64 KiB of IOR.
pub const REFERENCE_TEXT: usize = 128 << 10;

/// Most bytes of a sentence, and of a hint, that travel beside a system exception.
pub const EXPLANATION: usize = 1024;

/// A request over the limit is refused and its bytes are thrown away as they come, so that the peer reads the refusal;
/// one more than this many times over the limit ends the connection at once.
pub const COURTESY: u64 = 16;

/// Most bytes of a message of GIOP 1.2, and of a part of one, that is sent to a peer with a mark of Sun's ORBs: GlassFish's
/// reads 256,000 at most.
pub(crate) const SUN_PART: usize = 64 << 10;

/// How much `receive` asks for at a time while it throws bytes away or joins fragments: 256 KiB.
pub(crate) const CHUNK: usize = 256 << 10;

/// The largest message that is sent or taken, in bytes: the limit, or what the header's 32 bits can say.
pub(crate) fn largest(limits: &Limits) -> u64 {
    limits.message.min(u64::from(u32::MAX))
}
