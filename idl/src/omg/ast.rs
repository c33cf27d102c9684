//! What a file says, before names mean anything.
//!
//! The tree is made by the parser and only read afterwards, first by `ids` and then by `build`. It keeps the
//! order of the file, since pragmas count for what follows them, and the spans for messages. Its depth is at
//! most `NESTING`.

pub(super) use super::descent::Ident;
use crate::report::Span;

/// `A::B` or `::A::B`; never empty. Where it is absolute, the search starts in the file's scope and nowhere
/// else.
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
    /// A module, which may be opened again later in the same file or in another one.
    Module(Ident, Vec<Item>),
    Interface(Interface),
    /// `interface A;`: a promise. References to it may be used, but nothing may inherit from it yet.
    ForwardInterface(Forward),
    /// `struct A;`: it may be the element of a sequence before it is defined, and must be defined in the end.
    ForwardStruct(Ident),
    ForwardUnion(Ident),
    /// `valuetype A;`: it may be used anywhere, since a value of it may be null.
    ForwardValue(Ident),
    Value(ValueType),
    /// `valuetype A string;`: a type whose values may be null and shared.
    ValueBox(Ident, TypeSpec),
    /// In a value type: whether it is public, and what is declared.
    StateMember(bool, TypeSpec, Vec<Declarator>),
    /// In a value type: how values of it are made, which is a matter of each side.
    Factory,
    /// A struct, union or enum that stands alone.
    Type(TypeSpec),
    /// One type, and one or more names for it, each with dimensions of its own.
    Typedef(TypeSpec, Vec<Declarator>),
    Exception(Struct),
    /// Its type, name and value.
    Constant(TypeSpec, Ident, Expr),
    Operation(Operation),
    Attribute(Attribute),
    /// `#pragma signal`, or an operation behind `@signal`.
    Signal(Signal),
    /// `#pragma idempotent`.
    Idempotent(Ident),
    /// The name of something that is not supported, and what that is: whatever needs it is left out.
    Unsupported(Ident, &'static str),
    /// `typeid` or `#pragma ID`: the name, and the repository id as a whole.
    Id(ScopedName, String),
    /// `typeprefix`.
    TypePrefix(ScopedName, String),
    /// `#pragma prefix`.
    Prefix(String),
    /// `#pragma version`.
    Version(ScopedName, String),
    /// An included file starts. `#pragma prefix` of the files around does not count in it.
    EnterFile,
    /// An included file ends.
    LeaveFile,
}

#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) ident: Ident,
    /// Whether a value of it may be an object reference or a value type, which travels with a mark of which it is.
    pub(crate) is_abstract: bool,
    pub(crate) bases: Vec<ScopedName>,
    /// Operations, attributes, and the types that are defined in the interface.
    pub(crate) items: Vec<Item>,
}

/// An interface that is announced.
#[derive(Debug)]
pub(crate) struct Forward {
    pub(crate) ident: Ident,
    /// As in `Interface`.
    pub(crate) is_abstract: bool,
}

/// A value type with members.
#[derive(Debug)]
pub(crate) struct ValueType {
    pub(crate) ident: Ident,
    /// Whether a value of it may be cut down to the first base.
    pub(crate) truncatable: bool,
    pub(crate) bases: Vec<ScopedName>,
    /// Members, operations, attributes, and the types that are defined in it.
    pub(crate) items: Vec<Item>,
}

/// A struct or an exception.
#[derive(Debug)]
pub(crate) struct Struct {
    pub(crate) ident: Ident,
    /// The struct whose members come before its own (IDL 4.2, 7.4.13.4.3).
    pub(crate) base: Option<ScopedName>,
    pub(crate) members: Vec<(TypeSpec, Vec<Declarator>)>,
}

#[derive(Debug)]
pub(crate) struct Union {
    pub(crate) ident: Ident,
    pub(crate) discriminator: TypeSpec,
    pub(crate) arms: Vec<Arm>,
}

/// One member of a union with all labels before it; never without a label.
#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) labels: Vec<Label>,
    pub(crate) spec: TypeSpec,
    pub(crate) declarator: Declarator,
}

#[derive(Debug)]
pub(crate) enum Label {
    Case(Expr),
    /// `default:`; the span is for the message about a second one.
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
    /// Sizes of the dimensions of an array, the outermost first; empty for a plain name.
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
    LongDouble,
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
    /// `string` or `wstring`.
    Text {
        wide: bool,
        /// The most characters; None for no bound.
        bound: Option<Expr>,
    },
    /// A fixed-point number: its digits, and those behind the point.
    Fixed(Expr, Expr),
    /// `fixed` alone: a constant has as many digits as its value.
    FixedConstant,
    /// The element, and the most elements.
    Sequence(Box<TypeSpec>, Option<Expr>),
    /// A type that is defined elsewhere, or is an interface.
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
    /// The place of the word, which messages about results and `out` parameters point at.
    pub(crate) oneway: Option<Span>,
    pub(crate) returns: TypeSpec,
    pub(crate) parameters: Vec<Parameter>,
    /// Names of exceptions, not yet looked up.
    pub(crate) raises: Vec<ScopedName>,
    /// Names of properties of the caller.
    pub(crate) context: Vec<String>,
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

/// An attribute, or several of one type. It travels as the operations `_get_x` and, unless it is read-only,
/// `_set_x`.
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
    /// It is never negative: the sign is an operator.
    Integer(u64),
    Float(f64),
    /// The digits of a fixed-point number, with a point or not. It is never negative.
    Fixed(String),
    /// One character of ISO 8859-1, or any where it is wide.
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
    /// `-`, `+` or `~`.
    Unary(char, Box<Expr>),
    /// `|`, `^`, `&`, `<` for `<<`, `>` for `>>`, `+`, `-`, `*`, `/`, `%`.
    Binary(char, Box<Expr>, Box<Expr>),
}
