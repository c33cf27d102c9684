//! A kidl file, part by part.
//!
//! It holds what the tool wrote, without any judgement: types may be unknown, names are those of C++. Equal
//! documents print as equal text.

/// The qualifier of a function that does not change its object, the only one that a member function of DCOP has.
pub(super) const CONST: &str = "const";

/// The note of an operation that keeps its qualifier, for whoever prints the contract again: no message has it.
pub(super) const QUALIFIER: &str = "kidl:qual";

/// A file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// The header it was made from.
    pub source: Option<String>,
    /// What that header includes.
    pub includes: Vec<String>,
    /// What functions may raise. An addition of ours, over which `dcopidl2cpp` steps.
    pub exceptions: Vec<Exception>,
    /// Its classes.
    pub classes: Vec<Class>,
    /// What cannot be said of the exceptions of a contract, for people: comments at the end of the file, which no reader keeps.
    pub left_out: Vec<String>,
}

/// What a function may raise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exception {
    /// Its name, namespaces included.
    pub name: String,
    /// What it carries.
    pub fields: Vec<Argument>,
}

/// A class with DCOP functions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Class {
    /// Its name, namespaces included.
    pub name: String,
    /// The macro that exports it. It stands before the class name in C++ (`LINK_SCOPE`), such as
    /// `KDE_EXPORT`.
    pub link_scope: Option<String>,
    /// Its base classes. Templates may be among them.
    pub bases: Vec<String>,
    /// Its functions and signals.
    pub members: Vec<Member>,
    /// What cannot be said of a contract's interface, for people: comments behind the members, which no reader keeps.
    pub left_out: Vec<String>,
}

/// A function or a signal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Member {
    /// Whether it is a signal.
    pub signal: bool,
    /// Whether it is `const` (`qual`).
    pub qualifier: Option<String>,
    /// Whether it is left out of lists of functions. They can be called all the same (`hidden="yes"`, from
    /// `k_dcop_hidden`).
    pub hidden: bool,
    /// The names of what it may raise. As `idempotent`, an addition of ours that `dcopidl2cpp` does not look at.
    pub raises: Vec<String>,
    /// Whether it may run twice.
    pub idempotent: bool,
    /// What it returns; the name `ASYNC` where nobody waits for it.
    pub returns: Type,
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<Argument>,
}

/// An argument.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Argument {
    /// Its type.
    pub kind: Type,
    /// Its name, which a declaration need not give.
    pub name: Option<String>,
}

/// A type as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Type {
    /// What stands before it (`qleft`).
    pub left: Option<String>,
    /// What stands behind it (`qright`).
    pub right: Option<String>,
    /// Its name.
    pub name: String,
}

impl Type {
    /// A type without qualifiers.
    pub fn new(name: impl Into<String>) -> Self {
        Self { left: None, right: None, name: name.into() }
    }
}
