//! What a MIDL file says, before names are looked up.
//!
//! The tree is made by the parser and only read by the builder. A type is apart from its declarator, as in C:
//! `long *a, b[2]` is one type and two declarators, each in a member of its own with the type.
//!
//! It has no state: nothing is changed once it is made. Places in the text (`Span`) are kept for messages only.
//!
//! Invariants: depth is at most `NESTING`, and all names together at most `NODES`. A type that several
//! declarators share is there once. Attributes are kept whether or not anybody knows them, in the order of the text.

pub(super) use crate::omg::descent::Ident;
use crate::report::Span;
use everywire_model::Shape;
use std::rc::Rc;

/// One attribute of a `[...]` list. It is kept whether or not it is known; the builder asks for those that it
/// knows.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) span: Span,
    /// What stands in its parentheses; a place may be empty, as in `size_is(, n)`.
    pub(super) values: Vec<Option<Expr>>,
    /// The type in its parentheses, for `switch_type`, `wire_marshal` and `transmit_as`.
    pub(super) spec: Option<TypeSpec>,
    /// Whether a value calls a function. Names that are declared together ask each time, so it is looked up once.
    pub(super) calls: bool,
    /// The text of a version or of a default, as it is written.
    pub(super) text: String,
}

/// An expression.
#[derive(Debug, Clone)]
pub(super) struct Expr {
    pub(super) kind: ExprKind,
    pub(super) span: Span,
}

/// What an expression is.
#[derive(Debug, Clone)]
pub(super) enum ExprKind {
    Integer(u64),
    Float(f64),
    Char(char),
    /// A text in quotes, without them; neighbours are joined already.
    Text(String),
    Uuid(String),
    Bool(bool),
    /// A name, or the way to a field as one text: `header->count`.
    Name(String),
    /// `sizeof` of a type that is no number of the language: its name, or the keyword and the tag.
    SizeOf(String),
    Unary(&'static str, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// `condition ? one : other`.
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
}

/// A type, without pointers and dimensions.
#[derive(Debug)]
pub(super) struct TypeSpec {
    pub(super) kind: TypeKind,
    pub(super) span: Span,
}

/// What a type is.
#[derive(Debug)]
pub(super) enum TypeKind {
    /// A number or character of the language itself.
    Base(Shape),
    Void,
    /// `pipe type`: what the elements are is not kept.
    Pipe,
    Name(Ident),
    Struct(Box<Record>),
    Enum(Box<Members>),
    /// `bitmap { A = 1 }` of pidl.
    Bitmap(Box<Members>),
    Union(Box<Choice>),
    /// `SAFEARRAY(type)`.
    SafeArray(Box<TypeSpec>, Declarator),
}

/// A struct, or the mention of one.
#[derive(Debug)]
pub(super) struct Record {
    /// The name behind the keyword.
    pub(super) tag: Option<Ident>,
    /// None for a mere mention.
    pub(super) members: Option<Box<[Member]>>,
}

/// An enumeration, or the mention of one.
#[derive(Debug)]
pub(super) struct Members {
    pub(super) tag: Option<Ident>,
    /// Names and values; None for a mere mention.
    pub(super) members: Option<Vec<(Ident, Option<Expr>)>>,
}

/// A union, or the mention of one.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) tag: Option<Ident>,
    /// `switch (type name)` of one that holds its discriminator.
    pub(super) switch: Option<TypeSpec>,
    /// None for a mere mention.
    pub(super) arms: Option<Box<[Arm]>>,
}

/// One arm of a union.
#[derive(Debug)]
pub(super) struct Arm {
    /// The values that select it; empty only for the default.
    pub(super) labels: Vec<Expr>,
    pub(super) default: bool,
    pub(super) span: Span,
    /// None for an arm without a value.
    pub(super) member: Option<Member>,
}

/// A field, or one of several that share a type.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) attributes: Rc<[Attribute]>,
    /// Names that are declared together share it: a body may be long.
    pub(super) spec: Rc<TypeSpec>,
    pub(super) declarator: Declarator,
}

/// The name that is declared, with its pointers and dimensions.
#[derive(Debug, Clone, Default)]
pub(super) struct Declarator {
    pub(super) ident: Ident,
    /// How many stars stand before the name.
    pub(super) pointers: usize,
    /// Sizes from left to right; None for an open one.
    pub(super) dimensions: Vec<Option<Expr>>,
    /// Why nothing of this can travel, where the way it is declared says so.
    pub(super) stays: Option<&'static str>,
}

/// One definition.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) kind: ItemKind,
    pub(super) attributes: Vec<Attribute>,
    pub(super) doc: String,
    /// Where it begins.
    pub(super) span: Span,
}

/// What is defined.
#[derive(Debug)]
pub(super) enum ItemKind {
    Typedef(TypeSpec, Vec<Declarator>),
    Type(TypeSpec),
    Constant(TypeSpec, Declarator, Expr),
    /// `interface X;` and the like. Its name and that it exists are all that is known.
    Forward(Ident),
    Interface(Interface),
    /// A coclass and its interfaces.
    Class(Ident, Vec<CoclassInterface>),
    /// A `library` or `module`: what is inside counts like what stands beside it.
    Library(Vec<Item>),
    /// `#pragma exception`.
    Exception(Exception),
}

/// What a method may raise: a struct that a pragma of ours makes an exception.
#[derive(Debug)]
pub(super) struct Exception {
    pub(super) ident: Ident,
    /// It carries nothing, and there is no struct of it: C has no empty one.
    pub(super) is_empty: bool,
    /// Its identity, where that is another one than its name.
    pub(super) id: Option<String>,
}

/// `#pragma signals`: whose methods are the signals of an interface; all of them, if none is named.
#[derive(Debug)]
pub(super) struct Signals {
    pub(super) interface: Ident,
    pub(super) methods: Option<Vec<Ident>>,
}

/// `#pragma raises`: what a method may raise.
#[derive(Debug)]
pub(super) struct Raises {
    pub(super) method: Ident,
    pub(super) exceptions: Vec<Ident>,
}

/// An interface or dispinterface.
#[derive(Debug)]
pub(super) struct Interface {
    pub(super) ident: Ident,
    /// MIDL has one base at most.
    pub(super) base: Option<Ident>,
    /// It is a `dispinterface`.
    pub(super) dispatch: bool,
    /// `dispinterface X { interface Y; }`.
    pub(super) wraps: Option<Ident>,
    /// Types and constants inside.
    pub(super) items: Vec<Item>,
    pub(super) methods: Vec<Method>,
    pub(super) raises: Vec<Raises>,
    pub(super) signals: Vec<Signals>,
}

/// A method, or a property of a dispinterface.
#[derive(Debug)]
pub(super) struct Method {
    /// Those before the keyword, and those behind `typedef`.
    pub(super) attributes: Vec<Attribute>,
    pub(super) returns: TypeSpec,
    pub(super) declarator: Declarator,
    /// Nothing for a property.
    pub(super) parameters: Option<Vec<Member>>,
    pub(super) doc: String,
}

/// An interface of a coclass.
#[derive(Debug)]
pub(super) struct CoclassInterface {
    pub(super) attributes: Vec<Attribute>,
    pub(super) ident: Ident,
}

/// The attribute with this name.
pub(super) fn find<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a Attribute> {
    attributes.iter().find(|attribute| attribute.name == name)
}

/// Whether there is one.
pub(super) fn has(attributes: &[Attribute], name: &str) -> bool {
    find(attributes, name).is_some()
}

impl Attribute {
    /// The first value.
    pub(super) fn value(&self) -> Option<&Expr> {
        self.values.first().and_then(Option::as_ref)
    }
}

impl Expr {
    /// As MIDL would write it, in the only way that the printer uses.
    pub(super) fn text(&self) -> String {
        match &self.kind {
            ExprKind::Integer(value) => value.to_string(),
            ExprKind::Float(value) => format!("{value:?}"),
            ExprKind::Char(value) => format!("{}", u32::from(*value)),
            ExprKind::Text(value) => format!("{value:?}"),
            ExprKind::Uuid(uuid) => uuid.clone(),
            ExprKind::Bool(value) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
            ExprKind::Name(name) => name.clone(),
            ExprKind::SizeOf(name) => format!("sizeof({name})"),
            ExprKind::Unary(operator, operand) => match operand.kind {
                ExprKind::Binary(..) | ExprKind::Choice(..) => format!("{operator}({})", operand.text()),
                _ => format!("{operator}{}", operand.text()),
            },
            ExprKind::Binary(operator, left, right) => {
                format!("{} {operator} {}", left.part(), right.part())
            }
            ExprKind::Choice(condition, one, other) => {
                format!("{} ? {} : {}", condition.part(), one.part(), other.part())
            }
        }
    }

    /// As it is written beside an operator.
    fn part(&self) -> String {
        match self.kind {
            ExprKind::Binary(..) | ExprKind::Choice(..) => format!("({})", self.text()),
            _ => self.text(),
        }
    }

    /// Whether a function of a program is called. The parser bounds how deep an expression is.
    pub(super) fn calls(&self) -> bool {
        match &self.kind {
            ExprKind::Name(name) => name.contains('('),
            ExprKind::Unary(_, operand) => operand.calls(),
            ExprKind::Binary(_, left, right) => left.calls() || right.calls(),
            ExprKind::Choice(condition, one, other) => condition.calls() || one.calls() || other.calls(),
            _ => false,
        }
    }

    /// The name that stands here, or behind one `*`.
    pub(super) fn name(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Name(name) => Some(name),
            ExprKind::Unary("*", operand) => match &operand.kind {
                ExprKind::Name(name) => Some(name),
                _ => None,
            },
            _ => None,
        }
    }
}
