//! What a file says, before names mean anything.

use crate::report::Span;

/// An identifier as meant: without the underscore that escapes it.
#[derive(Debug, Clone)]
pub(crate) struct Ident {
    pub(crate) name: String,
    pub(crate) span: Span,
}

/// `A::B` or `::A::B`; never empty.
#[derive(Debug, Clone)]
pub(crate) struct ScopedName {
    pub(crate) absolute: bool,
    pub(crate) parts: Vec<Ident>,
    pub(crate) span: Span,
}

impl ScopedName {
    pub(crate) fn text(&self) -> String {
        let parts: Vec<&str> = self.parts.iter().map(|part| part.name.as_str()).collect();
        format!("{}{}", if self.absolute { "::" } else { "" }, parts.join("::"))
    }
}

/// One thing in a file, a module or an interface.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) kind: ItemKind,
    /// The documentation before it.
    pub(crate) doc: String,
}

#[derive(Debug)]
pub(crate) enum ItemKind {
    Module(Ident, Vec<Item>),
    Interface(Interface),
    ForwardInterface(Ident),
    ForwardStruct(Ident),
    ForwardUnion(Ident),
    /// A struct, union or enum that stands alone.
    Type(TypeSpec),
    Typedef(TypeSpec, Vec<Declarator>),
    Exception(Struct),
    Constant(TypeSpec, Ident, Expr),
    Operation(Operation),
    Attribute(Attribute),
    /// `#pragma signal`, or an operation behind `@signal`.
    Signal(Signal),
    /// `#pragma idempotent`.
    Idempotent(Ident),
    /// The name of something that is not supported, and what that is: whatever needs it is left out.
    Unsupported(Ident, &'static str),
    /// `typeid` or `#pragma ID`.
    Id(ScopedName, String),
    /// `typeprefix`.
    TypePrefix(ScopedName, String),
    /// `#pragma prefix`.
    Prefix(String),
    /// `#pragma version`.
    Version(ScopedName, String),
    /// An included file starts.
    EnterFile,
    /// An included file ends.
    LeaveFile,
}

#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) ident: Ident,
    pub(crate) bases: Vec<ScopedName>,
    pub(crate) items: Vec<Item>,
}

/// A struct or an exception.
#[derive(Debug)]
pub(crate) struct Struct {
    pub(crate) ident: Ident,
    pub(crate) members: Vec<(TypeSpec, Vec<Declarator>)>,
}

#[derive(Debug)]
pub(crate) struct Union {
    pub(crate) ident: Ident,
    pub(crate) discriminator: TypeSpec,
    pub(crate) arms: Vec<Arm>,
}

#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) labels: Vec<Label>,
    pub(crate) spec: TypeSpec,
    pub(crate) declarator: Declarator,
}

#[derive(Debug)]
pub(crate) enum Label {
    Case(Expr),
    Default(Span),
}

#[derive(Debug)]
pub(crate) struct Enum {
    pub(crate) ident: Ident,
    pub(crate) members: Vec<Ident>,
}

/// A name and the dimensions after it.
#[derive(Debug)]
pub(crate) struct Declarator {
    pub(crate) ident: Ident,
    pub(crate) dimensions: Vec<Expr>,
}

#[derive(Debug)]
pub(crate) struct TypeSpec {
    pub(crate) kind: TypeKind,
    pub(crate) span: Span,
}

/// The types that have a word of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basic {
    Void,
    Short,
    Long,
    LongLong,
    UShort,
    ULong,
    ULongLong,
    Float,
    Double,
    Char,
    WChar,
    Boolean,
    Octet,
    Any,
    Object,
}

#[derive(Debug)]
pub(crate) enum TypeKind {
    Basic(Basic),
    Text {
        wide: bool,
        bound: Option<Expr>,
    },
    Sequence(Box<TypeSpec>, Option<Expr>),
    Name(ScopedName),
    Struct(Struct),
    Union(Box<Union>),
    Enum(Enum),
    /// Something that is not supported, by what it is called: whatever needs it is left out.
    Unsupported(&'static str),
}

#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) ident: Ident,
    pub(crate) oneway: Option<Span>,
    pub(crate) returns: TypeSpec,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) raises: Vec<ScopedName>,
    /// Whether `@idempotent` stands before it.
    pub(crate) idempotent: bool,
}

#[derive(Debug)]
pub(crate) struct Signal {
    pub(crate) ident: Ident,
    pub(crate) fields: Vec<(TypeSpec, Declarator)>,
    /// Whether other compilers see an operation of this name.
    pub(crate) is_operation: bool,
}

#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) direction: everywire_model::Direction,
    pub(crate) spec: TypeSpec,
    pub(crate) ident: Ident,
}

#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) readonly: bool,
    pub(crate) spec: TypeSpec,
    pub(crate) idents: Vec<Ident>,
    pub(crate) get_raises: Vec<ScopedName>,
    pub(crate) set_raises: Vec<ScopedName>,
}

/// A constant expression; its depth is bounded by the parser.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    Integer(u64),
    Float(f64),
    Char {
        wide: bool,
        value: char,
    },
    Text {
        wide: bool,
        value: String,
    },
    Bool(bool),
    Name(ScopedName),
    Unary(char, Box<Expr>),
    /// `|`, `^`, `&`, `<` for `<<`, `>` for `>>`, `+`, `-`, `*`, `/`, `%`.
    Binary(char, Box<Expr>, Box<Expr>),
}
