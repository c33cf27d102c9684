//! How large a contract may be. Each bound keeps hostile text from costing more than its size.
//!
//! The numbers are far above what people write. A bound that is met is reported with its place.

/// Bytes of all files together.
pub(crate) const BYTES: usize = 8 << 20;
/// Files included, all together.
pub(crate) const FILES: usize = 512;
/// Files including one another.
pub(crate) const INCLUDES: usize = 32;
/// Nesting of modules, types, parentheses; also how deep one named type may contain others. The parser, the
/// builder, codecs and destructors recurse as deep as this.
pub(crate) const NESTING: usize = 64;
/// Operators in one expression. The tree of an expression leans to the left, so each operator may be a level.
pub(crate) const OPERATORS: usize = 128;
/// Characters of an identifier; also of a prefix of repository ids, and the number of all ancestors of an
/// interface.
pub(crate) const IDENTIFIER: usize = 255;
/// Characters of a scoped name.
pub(crate) const SCOPED_NAME: usize = 1024;
/// Named things in a contract: definitions, members, parameters, enumerators, labels, parts of expressions.
pub(crate) const NODES: usize = 400_000;
/// Definitions that have an identity.
pub(crate) const DEFINITIONS: usize = 32_768;
/// Operations and parameters of all interfaces, the inherited ones counted in each. An interface holds copies
/// of what it inherits, so a long chain of bases costs the square of its length.
pub(crate) const INHERITED: usize = 250_000;
/// Ways from an interface up to its bases, the same base counted once for each way. Diamonds double them at
/// each level, so 64 levels of diamonds would be walked for ever.
pub(crate) const ANCESTRY: usize = 10_000;
/// Bytes of the documentation of all operations, the inherited ones counted in each interface. What is more is left out.
pub(crate) const DOCS: usize = 32 << 20;
/// Bytes of the texts of all constants: one that is another one holds the text once more. In MIDL, of all attributes that are kept as
/// text: each name of a list holds those of the list.
pub(crate) const TEXTS: usize = BYTES;
/// Tokens made by expanding macros. A macro that names another one twice doubles the text at each level.
pub(crate) const EXPANSION: usize = 1_000_000;
/// Bytes of one word or text that a macro makes of others.
pub(crate) const MACRO_TEXT: usize = 16 << 10;
/// Levels of macros inside macros. Their expansion recurses as deep as this.
pub(crate) const MACRO_DEPTH: usize = 256;
/// Tokens of one macro.
pub(crate) const MACRO_BODY: usize = 8000;
