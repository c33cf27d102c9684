//! Contracts: interfaces, operations, constants and named types, as every contract language yields them.
//!
//! Who makes one and who uses it. A reader of a contract language makes a `Contract` at run time; generated
//! code has the same structures as statics, so lists are `Cow` and parts are held by `Hold`. Sessions,
//! servants, bridges and the command line only look at them.
//!
//! Invariants.
//! * A contract is finished when its reader returns it, and never changes afterwards; it is shared freely.
//! * The number of an operation is its place in `Interface::operations`: first those of the bases, each once,
//!   then its own. Numbers of accessors in `Attribute`, and of sinks in `Signal`, are such places too.
//! * `Operation::arguments` and `Operation::results` follow from the parameters: the former has what goes in,
//!   the latter the return value, unless that is void, and then what comes out. Whoever makes an operation at
//!   run time uses `Operation::new`, which sees to that.
//! * What one wire alone has to know stands in notes, in that wire's words; nobody else minds them.
//!
//! Names and identities are as the contract's language spells them: nothing here compares across languages
//! but `Interface::identities`.

use crate::shape::{Field, Hold, Name, Referent, Shape, Struct, is_usual_id};
use std::borrow::Cow;
use std::collections::HashSet;

/// Everything one contract file defines, in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct Contract {
    /// The definitions; nested modules are part of each name.
    pub definitions: Vec<Definition>,
}

impl Contract {
    /// The interfaces.
    pub fn interfaces(&self) -> impl Iterator<Item = &Hold<Interface>> {
        self.definitions.iter().filter_map(|definition| match definition {
            Definition::Interface(interface) => Some(interface),
            _ => None,
        })
    }

    /// The contract with its named types in each interface that has values of any type ([`Interface::types`]): there a value may be of a type
    /// that no operation names. For contracts that are read at run time, once when they are read.
    #[must_use]
    pub fn with_known_types(mut self) -> Self {
        let types = self.definitions.iter().filter_map(|definition| match definition {
            Definition::Type(shape) => Some(shape.clone()),
            _ => None,
        });
        let types: Vec<Shape> = types.collect();
        if types.is_empty() {
            return self;
        }
        let types: Hold<Cow<'static, [Shape]>> = Hold::new(Cow::Owned(types));
        for definition in &mut self.definitions {
            if let Definition::Interface(interface) = definition
                && interface.types.is_none()
                && interface.has_any()
            {
                let types = Some(types.clone());
                *interface = Hold::new(Interface { types, ..(**interface).clone() });
            }
        }
        self
    }

    /// The constants.
    pub fn constants(&self) -> impl Iterator<Item = &Constant> {
        self.definitions.iter().filter_map(|definition| match definition {
            Definition::Constant(constant) => Some(constant),
            _ => None,
        })
    }

    /// The listeners that objects of this interface call back: interfaces of the contract that only listen
    /// ([`Interface::only_listens`]), and that one of its operations takes. Each once, in the order of the operations.
    pub fn listeners(&self, of: &Interface) -> Vec<Hold<Interface>> {
        let mut found: Vec<Hold<Interface>> = Vec::new();
        for taken in of.operations.iter().flat_map(Operation::takes) {
            let known = self.interface(&taken.id).or_else(|| self.interface(&taken.name));
            if let Some(known) = known.filter(|known| known.only_listens())
                && !found.iter().any(|held| held.id == known.id)
            {
                found.push(known.clone());
            }
        }
        found
    }

    /// The interface with this scoped name or identity.
    pub fn interface(&self, name: &str) -> Option<&Hold<Interface>> {
        self.interfaces().find(|interface| interface.name == name || interface.id == name)
    }
}

/// One definition of a contract.
#[derive(Debug, Clone)]
pub enum Definition {
    /// A named type: struct, union, enum or alias.
    Type(Shape),
    /// An exception.
    Exception(Hold<Struct>),
    /// A constant.
    Constant(Constant),
    /// An interface.
    Interface(Hold<Interface>),
}

/// A constant and its value.
#[derive(Debug, Clone)]
pub struct Constant {
    /// Scoped name.
    pub name: Name,
    /// Shape of the value.
    pub shape: Shape,
    /// The value.
    pub value: crate::value::Value,
    /// Documentation, from comments before the definition.
    pub doc: Name,
}

/// What a contract says for one wire only: (what, value), in that wire's words; nobody else minds.
pub type Notes = Cow<'static, [(Name, Name)]>;

/// The note of an interface that names a function or signal which its contract has and the interface lacks, and says why.
/// There is one for each.
pub const LEFT_OUT: &str = "left out";

/// The note of an operation that may succeed in more than one way ([`crate::Success`]), with the names of the codes, if the
/// contract has them.
pub const SUCCESS: &str = "success";

/// The note of an operation that shares its name with another one of its interface on wires that choose among operations of one name by
/// the types of the arguments: that name. On all other wires it has the name of its own that the contract gives it.
pub const MEMBER: &str = "shared name";

/// What an interface lacks of what its contract has, and why: its notes [`LEFT_OUT`].
pub fn left_out(notes: &[(Name, Name)]) -> impl Iterator<Item = &str> {
    notes.iter().filter(|(name, _)| name == LEFT_OUT).map(|(_, what)| what.as_ref())
}

/// The note with this name.
pub fn note<'n>(notes: &'n [(Name, Name)], what: &str) -> Option<&'n str> {
    notes.iter().find(|(name, _)| name == what).map(|(_, value)| value.as_ref())
}

/// An interface: what an object can be asked.
#[derive(Debug, Clone, Default)]
pub struct Interface {
    /// Scoped name, parts joined by `::`.
    pub name: Name,
    /// Identity as the contract's language spells it (an OMG repository id, a UUID, ...).
    pub id: Name,
    /// Other identities, as (contract language, identity), where one interface is served in several worlds.
    pub identities: Cow<'static, [(Name, Name)]>,
    /// How it may be called, where a wire distinguishes.
    pub kind: InterfaceKind,
    /// Direct bases.
    pub bases: Cow<'static, [Hold<Interface>]>,
    /// All operations that an object of this interface answers: first those of the bases, each once, then its own.
    /// An attribute stands as its accessor operations. The index in this list is the operation's number.
    pub operations: Cow<'static, [Operation]>,
    /// How many of `operations` are inherited.
    pub inherited: usize,
    /// The attributes, own and inherited; each points to its accessors in `operations`.
    pub attributes: Cow<'static, [Attribute]>,
    /// Signals that an object of this interface emits, own and inherited.
    pub signals: Cow<'static, [Signal]>,
    /// The named types of its contract, for values that tell only the name of their type. `None` where no operation has such values, or
    /// where nobody asked for them ([`Contract::with_known_types`]). Generated code has them.
    pub types: Option<Hold<Cow<'static, [Shape]>>>,
    /// What else its contract says for one wire only: (what, value), in that wire's words.
    pub notes: Notes,
    /// Documentation, from comments before the definition.
    pub doc: Name,
}

impl Interface {
    /// Whether objects of this interface are told something and asked nothing: it has operations, and none of them gives anything back.
    /// The interfaces of listeners are so, which others call back.
    pub fn only_listens(&self) -> bool {
        let gives_nothing = |operation: &Operation| operation.results.fields().is_empty();
        !self.operations.is_empty() && self.operations.iter().all(gives_nothing)
    }

    /// Whether an operation or a signal has a value of any type, or one with such a value in it.
    pub fn has_any(&self) -> bool {
        let mut seen = HashSet::new();
        let lists = self.operations.iter().flat_map(|operation| [&operation.arguments, &operation.results]);
        let raised = self.operations.iter().flat_map(|operation| operation.raises.iter());
        let fields = lists.flat_map(Shape::fields).chain(raised.flat_map(|raised| raised.fields.iter()));
        let mut fields = fields.chain(self.signals.iter().flat_map(|signal| signal.fields.fields()));
        fields.any(|field| holds_any(&field.shape, &mut seen))
    }

    /// The number of the operation with this wire name.
    pub fn index_of(&self, operation: &[u8]) -> Option<usize> {
        self.operations.iter().position(|candidate| candidate.name.as_bytes() == operation)
    }

    /// The signal with this wire name.
    pub fn signal(&self, name: &[u8]) -> Option<&Signal> {
        self.signals.iter().find(|candidate| candidate.name.as_bytes() == name)
    }

    /// The attribute that the operation with this number reads, or writes (`true`).
    pub fn attribute_of(&self, index: usize) -> Option<(&Attribute, bool)> {
        self.attributes.iter().find_map(|attribute| {
            if attribute.getter == index {
                Some((attribute, false))
            } else {
                (attribute.setter == Some(index)).then_some((attribute, true))
            }
        })
    }

    /// Whether the operation with this number may run twice, because its contract says so or because it reads an attribute.
    pub fn is_idempotent(&self, index: usize) -> bool {
        self.operations.get(index).is_some_and(|operation| operation.idempotent)
            || self.attributes.iter().any(|attribute| attribute.getter == index)
    }

    /// The interface, this one or a base, whose own operation has this wire name.
    pub fn declaring(&self, operation: &str) -> &Self {
        let inherits = |base: &&Hold<Self>| base.operations.iter().any(|held| held.name == operation);
        self.bases.iter().find(inherits).map_or(self, |base| base.declaring(operation))
    }

    /// Whether an object of this interface is also one of the interface with that identity, which may be the repository id that OMG IDL
    /// gives to its name, if its own language has none with a format.
    pub fn is_a(&self, id: &str) -> bool {
        self.id == id || is_usual_id(id, &self.id, &self.name) || self.bases.iter().any(|base| base.is_a(id))
    }
}

/// How an interface may be called, where a wire distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InterfaceKind {
    /// By the numbers of its operations.
    #[default]
    Plain,
    /// By numbers, or by names that are looked up at run time.
    Dual,
    /// By names that are looked up at run time only.
    Dispatch,
    /// It is a class: the bases are the interfaces of its objects, the signals those of the interfaces that they call.
    Class,
    /// Procedures of a server, not methods of an object.
    Procedures,
}

/// An attribute: a pair of accessors.
#[derive(Debug, Clone)]
pub struct Attribute {
    /// Name.
    pub name: Name,
    /// Shape of its value.
    pub shape: Shape,
    /// Number of the reading operation.
    pub getter: usize,
    /// Number of the writing operation, unless the attribute is read-only.
    pub setter: Option<usize>,
    /// What subscribers are told of a change.
    pub notify: Notify,
}

/// What subscribers are told when an attribute changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notify {
    /// The new value.
    #[default]
    Value,
    /// That it changed.
    Change,
    /// Nothing, because it never changes.
    Constant,
    /// Nothing.
    Nothing,
}

/// A signal: what an object tells whoever listens.
#[derive(Debug, Clone)]
pub struct Signal {
    /// The name on wires that send names.
    pub name: Name,
    /// The name people see and generated code uses.
    pub label: Name,
    /// What it carries, as one nameless struct.
    pub fields: Shape,
    /// Where signals are calls of an interface that the listener implements: the interface, and the operation's number.
    pub sink: Option<(Hold<Interface>, usize)>,
    /// Documentation, from comments before the definition.
    pub doc: Name,
}

impl Signal {
    /// Makes a signal at run time.
    pub fn new(name: impl Into<Name>, fields: Vec<Field>) -> Self {
        let name = name.into();
        Self { label: name.clone(), name, fields: nameless(fields), sink: None, doc: Cow::Borrowed("") }
    }
}

/// One operation.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The name on wires that send names (`_get_title` for an attribute's accessor).
    pub name: Name,
    /// The name people see and generated code uses.
    pub label: Name,
    /// Parameters in the order of the contract, with their directions.
    pub parameters: Cow<'static, [Parameter]>,
    /// Shape of the return value.
    pub returns: Shape,
    /// The in and inout parameters as one nameless struct, in order: what a request carries.
    pub arguments: Shape,
    /// The return value (named `return`, unless void), then the out and inout parameters, as one nameless struct: what
    /// a reply carries.
    pub results: Shape,
    /// Exceptions it may raise.
    pub raises: Cow<'static, [Hold<Struct>]>,
    /// Whether the caller gets no reply.
    pub oneway: bool,
    /// Whether the contract says that it may run twice: a second time changes nothing. What reads an attribute may, without
    /// this; see [`Interface::is_idempotent`].
    pub idempotent: bool,
    /// The number that the contract gives it for callers who look it up by name, if it gives one.
    pub id: Option<i32>,
    /// What else its contract says for one wire only: (what, value), in that wire's words.
    pub notes: Notes,
    /// Documentation, from comments before the definition.
    pub doc: Name,
}

impl Operation {
    /// The interfaces whose objects it takes: those of parameters that go in and do not come out.
    pub fn takes(&self) -> impl Iterator<Item = &Referent> {
        let goes_in = self.parameters.iter().filter(|parameter| parameter.direction == Direction::In);
        goes_in.filter_map(|parameter| match parameter.field.shape.resolved() {
            Shape::Reference(taken) => Some(&**taken),
            _ => None,
        })
    }

    /// Makes an operation at run time; arguments and results follow from the parameters.
    pub fn new(name: impl Into<Name>, parameters: Vec<Parameter>, returns: Shape) -> Self {
        let name = name.into();
        let pick = |wanted: fn(Direction) -> bool| {
            parameters.iter().filter(move |p| wanted(p.direction)).map(|p| p.field.clone())
        };
        let arguments: Vec<Field> = pick(Direction::goes_in).collect();
        let mut results: Vec<Field> = Vec::new();
        if !matches!(returns, Shape::Void) {
            results.push(Field { name: Cow::Borrowed("return"), shape: returns.clone() });
        }
        results.extend(pick(Direction::comes_out));
        Self {
            label: name.clone(),
            name,
            returns,
            arguments: nameless(arguments),
            results: nameless(results),
            parameters: Cow::Owned(parameters),
            raises: Cow::Borrowed(&[]),
            oneway: false,
            idempotent: false,
            id: None,
            notes: Cow::Borrowed(&[]),
            doc: Cow::Borrowed(""),
        }
    }
}

fn nameless(fields: Vec<Field>) -> Shape {
    let (name, id) = (Cow::Borrowed(""), Cow::Borrowed(""));
    Shape::Struct(Hold::new(Struct { name, id, fields: Cow::Owned(fields) }))
}

/// One parameter.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Which way it goes.
    pub direction: Direction,
    /// Name and shape.
    pub field: Field,
}

/// Which way a parameter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From caller to servant.
    In,
    /// From servant to caller.
    Out,
    /// Both ways.
    InOut,
}

impl Direction {
    /// Whether a request carries it.
    pub fn goes_in(self) -> bool {
        self != Self::Out
    }

    /// Whether a reply carries it.
    pub fn comes_out(self) -> bool {
        self != Self::In
    }
}

/// Whether a shape is a value of any type, or has one in it. `seen` has the types that were looked into: one that contains itself would be
/// looked into for ever.
fn holds_any(shape: &Shape, seen: &mut HashSet<usize>) -> bool {
    match shape {
        Shape::Variant => true,
        Shape::Struct(held) => {
            seen.insert(held.identity()) && held.fields.iter().any(|field| holds_any(&field.shape, seen))
        }
        Shape::Union(held) => {
            seen.insert(held.identity()) && held.arms.iter().any(|arm| holds_any(&arm.field.shape, seen))
        }
        Shape::Sequence(held) => seen.insert(held.identity()) && holds_any(&held.element, seen),
        Shape::Array(held) => holds_any(&held.element, seen),
        Shape::Map(held) => holds_any(&held.key, seen) || holds_any(&held.value, seen),
        Shape::Optional(held) => seen.insert(held.identity()) && holds_any(held, seen),
        Shape::Pointer(held) => seen.insert(held.identity()) && holds_any(&held.target, seen),
        Shape::Alias(held) => seen.insert(held.identity()) && holds_any(&held.target, seen),
        _ => false,
    }
}
