//! How large a description may be. Each bound keeps hostile text from costing more than its size.

/// Documents of one description.
pub(super) const DOCUMENTS: usize = 256;
/// Imports of one document that are told apart.
pub(super) const IMPORTS: usize = 1024;
/// Bytes of all of them.
pub(super) const BYTES: usize = 8 << 20;
/// Namespace declarations in scope at one element.
pub(super) const NAMESPACES: usize = 128;
/// How deep one type may contain others, and how many types may extend one another.
pub(super) const NESTING: usize = 64;
/// Members of all types, inherited ones counted in each; parameters too.
pub(super) const MEMBERS: usize = 100_000;
/// As many children of what is named again and again count as one more member.
pub(super) const FREE: usize = 16;
/// Headers of one message.
pub(super) const HEADERS: usize = 256;
/// What was left out is named up to this often.
pub(super) const REMARKS: usize = 64;
/// Files of a folder among which a namespace is looked for.
pub(super) const BESIDE: usize = 256;
/// Bytes of an imported file's path.
pub(super) const PATH: usize = 1024;
/// Folders around a document in which a copy of what is published elsewhere is looked for.
pub(super) const OUTER: usize = 4;
