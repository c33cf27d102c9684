//! The tags of the components that ways of this wire have ([`everywire_model::Profile::components`]).
//!
//! Tags are numbers for this process alone, apart from the word `MEOW`; each is four letters, so that a dump
//! can be read. None of them travels: they are made anew for each reference that comes in.

/// The component that keeps an OBJREF which nobody has unmarshalled yet: the word `MEOW`.
pub const TAG_OBJREF: u32 = crate::objref::SIGNATURE;

/// The component of a way to an interface of the node itself, such as the resolver's: calls carry no object, or the key if it
/// has 16 bytes.
pub const TAG_SYSTEM: u32 = 0x5359_5354;

/// The component that says which exporter of this process a local reference belongs to: 8 octets, the OXID.
pub const TAG_OXID: u32 = 0x4449_584f;

/// The component of a way to an object that leads to the resolver of its exporter, although by now it may be known where the
/// exporter is.
pub const TAG_RESOLVER: u32 = 0x564c_5352;

/// The component of a way to what an object of this node stands for; the key is that object's.
pub(crate) const TAG_PASSED: u32 = 0x5041_5353;

/// The component of a way that says which interface is called by it, where a connection carries one: 16 octets.
pub(crate) const TAG_INTERFACE: u32 = 0x4649_574e;
