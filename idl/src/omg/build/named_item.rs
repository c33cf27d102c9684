//! What a name of a file can stand for; scopes, types and interfaces are all made of these.

use everywire_model::shape::{Enum, Struct};
use everywire_model::{Hold, Interface, Shape, Value};
use std::collections::HashMap;
use std::rc::Rc;

/// What a name stands for.
#[derive(Clone)]
pub(super) enum NamedItem {
    Module,
    /// An interface; None while it is announced only, or while its body is being read.
    Interface(Option<Rc<BuiltInterface>>),
    Type(Typed),
    /// A struct or union that is announced, or whose body is being read. Its shape exists once somebody
    /// asked: then it is a cell that `close` fills.
    Open {
        keyword: &'static str,
        shape: Option<Shape>,
    },
    Exception(Hold<Struct>),
    Constant(Shape, Value),
    /// Its enum, and its number, which is also what travels.
    Enumerator(Hold<Enum>, i32),
    Operation,
    Attribute,
    Member,
    Parameter,
    /// Something whose definition is wrong or left out, which was reported or noted already.
    Broken,
}

impl NamedItem {
    /// Whether it is called by its name alone, and no scoped name leads to it. No look-up for a type finds
    /// it.
    pub(super) fn is_value(&self) -> bool {
        matches!(self, Self::Parameter | Self::Member | Self::Attribute | Self::Operation)
    }

    pub(super) fn noun(&self) -> &'static str {
        match self {
            Self::Module => "a module",
            Self::Interface(_) => "an interface",
            Self::Type(_) => "a type",
            Self::Open { keyword, .. } => keyword,
            Self::Exception(_) => "an exception",
            Self::Constant(..) => "a constant",
            Self::Enumerator(..) => "an enumerator",
            Self::Operation => "an operation",
            Self::Attribute => "an attribute",
            Self::Member => "a member",
            Self::Parameter => "a parameter",
            Self::Broken => "a wrong definition",
        }
    }
}

/// An interface that is defined.
pub(super) struct BuiltInterface {
    pub(super) hold: Hold<Interface>,
    /// Scoped names of all it inherits from, the nearer first.
    pub(super) ancestors: Rc<[String]>,
    /// Scoped name of the interface that defines each operation; as long as the operations.
    pub(super) origins: Vec<String>,
    /// The same of each signal, by its name in lower case.
    pub(super) signal_origins: HashMap<String, String>,
    /// Ways up to its bases. At most `ANCESTRY`.
    pub(super) ways: usize,
}

/// A type as far as it is known.
#[derive(Clone)]
pub(super) struct Typed {
    /// Names of types are kept as aliases.
    pub(super) shape: Shape,
    /// How many levels it contains; bounded, because codecs and destructors walk them.
    pub(super) depth: usize,
    /// Whether all that lies inside it without a sequence between is defined. A reference to a struct that is
    /// only announced is not.
    pub(super) complete: bool,
}

impl Typed {
    /// A type without anything inside.
    pub(super) fn leaf(shape: Shape) -> Self {
        Self { shape, depth: 1, complete: true }
    }
}
