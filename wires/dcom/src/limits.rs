//! Bounds that hold whatever the budget of a message allows.
//!
//! Each bound is checked before anything is stored: by the decoder of the value, or by the table that would
//! grow. Bounds of values (depths, dimensions) fail the message with a named `Violation`. Bounds of a
//! connection refuse the context that is asked for, or end the connection with a `ProtocolError`. Bounds of a node
//! (objects, ping sets, groups) refuse the one request that would exceed them, and the peer may go on. The
//! numbers are choices of this implementation, far above what known peers were seen to need, unless a comment
//! says where they come from.

/// The most pointers that may be followed one behind another: cycles of full pointers end here. Each level is
/// a frame here and a level of recursion in the program that reads the values.
pub const POINTER_DEPTH: u32 = 32;

/// The most VARIANTs that may be nested in one another.
/// A VARIANT holds another by VT_BYREF, or an array of them; honest values nest two or three deep.
pub const VARIANT_DEPTH: u32 = 16;

/// The most dimensions that a SAFEARRAY may claim before its bounds are read; automation allows no more.
pub const SAFEARRAY_DIMENSIONS: u32 = 60;

/// The most composites that a value to be written may nest.
/// A value that this side made itself and that is deeper is a mistake of the caller.
pub const WRITE_DEPTH: usize = 64;

/// The most characters of a reference as text.
pub const REFERENCE_TEXT: usize = 16 << 10;

/// The most presentation contexts that a connection may have: one for each interface that is called by it.
/// Context numbers have 16 bits, so a peer could ask for 65536.
pub const CONTEXTS: usize = 1024;

/// The most presentation contexts that may be asked for at once.
/// The count on the wire has 8 bits; Windows asks for three.
pub const CONTEXTS_AT_ONCE: usize = 64;

/// The most security contexts that a connection may have. Some clients make a new one with each
/// alter_context, so with each change of the interface that they call.
pub const SECURITY_CONTEXTS: usize = 512;

/// The most of them for which nobody has proved yet who it is.
/// Each holds the state of an authentication that has begun, which anybody who reaches the port can begin.
pub const UNPROVED_CONTEXTS: usize = 16;

/// The most objects that may be made for one principal: by activation, as connection points, as enumerators.
pub const PRINCIPAL_OBJECTS: usize = 65_536;

/// The most principals that may hold private references to one interface of an object.
/// Each holder is one entry in the table of the interface (`cPrivateRefs` of a REMINTERFACEREF).
pub const PRIVATE_HOLDERS: usize = 256;

/// The most ping sets that a node keeps.
pub const PING_SETS: usize = 8192;

/// The most ping sets that a node keeps for one principal. A client needs one set for each node, so one
/// principal with many processes stays far below.
pub const PRINCIPAL_PING_SETS: usize = 256;

/// The most objects in one ping set.
pub const PING_SET_OBJECTS: usize = 262_144;

/// The most association groups that a node keeps.
pub const ASSOCIATION_GROUPS: usize = 65_536;

/// The most interfaces that one RemQueryInterface or one activation may ask for (MAX_REQUESTED_INTERFACES, MS-DCOM 2.2.28.1).
pub const INTERFACES_ASKED: usize = 0x8000;

/// The most IPIDs of one object elsewhere that are kept; references to more are given back at once.
pub const PROXY_INTERFACES: usize = 1024;

/// The most references that one RemRelease gives back.
pub const REFS_AT_ONCE: usize = 1024;

/// The most objects elsewhere that are kept for a while after their references were passed on.
pub const LINGERING: usize = 4096;
