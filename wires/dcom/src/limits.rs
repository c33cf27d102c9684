//! Bounds that hold whatever the budget of a message allows.

/// The most pointers that may be followed one behind another: cycles of full pointers end here.
pub const POINTER_DEPTH: u32 = 32;

/// The most VARIANTs that may be nested in one another.
pub const VARIANT_DEPTH: u32 = 16;

/// The most dimensions that a SAFEARRAY may claim before its bounds are read; automation allows no more.
pub const SAFEARRAY_DIMENSIONS: u32 = 60;

/// The most composites that a value to be written may nest.
pub const WRITE_DEPTH: usize = 64;

/// The most characters of a reference as text.
pub const REFERENCE_TEXT: usize = 16 << 10;

/// The most presentation contexts that a connection may have: one for each interface that is called by it.
pub const CONTEXTS: usize = 1024;

/// The most presentation contexts that may be asked for at once.
pub const CONTEXTS_AT_ONCE: usize = 64;

/// The most security contexts that a connection may have. Some clients make a new one with each
/// alter_context, so with each change of the interface that they call.
pub const SECURITY_CONTEXTS: usize = 512;

/// The most of them for which nobody has proved yet who it is.
pub const UNPROVED_CONTEXTS: usize = 16;

/// The most objects that may be made for one principal: by activation, as connection points, as enumerators.
pub const PRINCIPAL_OBJECTS: usize = 65_536;

/// The most principals that may hold private references to one interface of an object.
pub const PRIVATE_HOLDERS: usize = 256;

/// The most ping sets that a node keeps.
pub const PING_SETS: usize = 8192;

/// The most ping sets that a node keeps for one principal.
pub const PRINCIPAL_PING_SETS: usize = 256;

/// The most objects in one ping set.
pub const PING_SET_OBJECTS: usize = 262_144;

/// The most association groups that a node keeps.
pub const ASSOCIATION_GROUPS: usize = 65_536;

/// The most interfaces that one RemQueryInterface or one activation may ask for (MS-DCOM 2.2.28.1).
pub const INTERFACES_ASKED: usize = 0x8000;

/// The most IPIDs of one object elsewhere that are kept; references to more are given back at once.
pub const PROXY_INTERFACES: usize = 1024;

/// The most references that one RemRelease gives back.
pub const REFS_AT_ONCE: usize = 1024;

/// The most objects elsewhere that are kept for a while after their references were passed on.
pub const LINGERING: usize = 4096;
