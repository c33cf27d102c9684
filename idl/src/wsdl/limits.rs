//! How large a description may be. Each bound keeps hostile text from costing more than its size.
//!
//! Descriptions come from services that a client asks for their metadata, so a stranger writes them. The
//! bounds of the XML itself (depth, elements, bytes of one document) are those of `xml`.

/// Documents of one description.
pub(super) const DOCUMENTS: usize = 256;
/// Imports of one document. The same import counts once.
pub(super) const IMPORTS: usize = 1024;
/// Bytes of all of them.
pub(super) const BYTES: usize = 8 << 20;
/// Bytes of a namespace and of a name. Each definition and each reference holds copies of them.
pub(super) const NAME: usize = 1024;
/// Namespace declarations in scope at one element. Every look-up of a prefix walks them.
pub(super) const NAMESPACES: usize = 128;
/// How deep one type may contain others, and how many types may extend one another.
pub(super) const NESTING: usize = 64;
/// Members of all types, inherited ones counted in each; parameters too. Groups and base types are walked
/// again wherever they are named, so a small text can make many.
pub(super) const MEMBERS: usize = 100_000;
/// An element that is looked through at each place that names it counts as one member for so many children. Walking children costs time
/// even where nothing is kept.
pub(super) const FREE: usize = 16;
/// Elements that may stand in the place of one. With more of them, each place that names it would become as large.
pub(super) const SUBSTITUTES: usize = 64;
/// How often all types are read, each time with those that cannot be read known from the start.
pub(super) const ROUNDS: usize = 16;
/// Headers of one message.
pub(super) const HEADERS: usize = 256;
/// Ports whose binding gives an operation an action of its own.
pub(super) const PORTS: usize = 64;
/// Nodes of schemas that are built once more, for a namespace that includes them.
pub(super) const ADOPTED: usize = 1 << 18;
/// What was left out is named up to this often. Each remark is copied to every interface, up to `BYTES` for all of them.
pub(super) const REMARKS: usize = 64;
/// Files of a folder among which a namespace is looked for. Other files of the folder are not looked at.
pub(super) const BESIDE: usize = 256;
/// Bytes of an imported file's path.
pub(super) const PATH: usize = 1024;
/// Folders around a document in which a copy of what is published elsewhere is looked for.
pub(super) const OUTER: usize = 4;
/// Folders around a document in which a path is looked for that starts at a project's root.
pub(super) const PROJECT: usize = 16;
