//! Shapes: what a value looks like, apart from any wire.
//!
//! One description serves everybody: a contract reader builds it, the generator prints it as a `static`, a
//! codec is handed it with every composite it opens. Generated code holds shapes in statics (`Hold::Static`),
//! contracts read at run time hold them in reference counts (`Hold::Shared`); users of a shape need not know
//! which.
//!
//! Types that contain themselves are held in one of two ways: those of a contract in a cell that is filled
//! when the definition ends and lives as long as the process (`Hold::Later`); those that came with a value
//! are made level by level as they are looked at, and end with it (`Hold::Again`).
//!
//! Invariants.
//! * No cycle of reference counts arises, and a shape that is in use is complete: to look into an open cell
//!   is a fault of the contract's reader, and panics.
//! * Whoever walks a shape and not a value notes `Hold::identity` to know where it has been: only the value
//!   has an end for certain.
//! * A shape says what is meant, and for each wire that distinguishes how it is written (`Order`, `TextKind`,
//!   `PointerKind`, bits of an enumeration); wires that do not distinguish do not look.
//! * Aliases mean what is behind them (`Shape::resolved`); their names are for people and for those wires
//!   that write them.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// Text that is a literal in generated code and owned in a contract read at run time.
pub type Name = Cow<'static, str>;

/// A pointer to part of a description: static, shared, or a recursive definition completed later.
#[derive(Debug)]
pub enum Hold<T: 'static> {
    /// A `static` of generated code.
    Static(&'static T),
    /// Part of a contract read at run time.
    Shared(Arc<T>),
    /// A type that contains itself; its cell is filled when the definition ends. Such cells live as long as the
    /// process (a cycle of reference counts would do the same, less visibly).
    Later(&'static OnceLock<T>),
    /// Part of a type that contains itself and came with a value: each level is made when it is looked at, and all of
    /// them end with the value.
    Again(Arc<dyn Unfold<T>>),
}

/// One more level of a type that contains itself. It knows how to make its description and holds nothing that holds it,
/// so that no cycle of reference counts arises.
pub trait Unfold<T>: Send + Sync {
    /// The description of this level, made when it is first asked for.
    fn unfolded(&self) -> &T;
    /// The same number for every level of one type, and another for every other type that is alive.
    fn identity(&self) -> usize;
    /// How many bytes the description of this level takes, the first time that this is asked; 0 from then on.
    fn due(&self) -> u64;
}

impl<T: 'static> fmt::Debug for dyn Unfold<T> {
    /// Without its content, which has no end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Again({:#x})", self.identity())
    }
}

impl<T> Clone for Hold<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Static(held) => Self::Static(held),
            Self::Shared(held) => Self::Shared(Arc::clone(held)),
            Self::Later(held) => Self::Later(held),
            Self::Again(held) => Self::Again(Arc::clone(held)),
        }
    }
}

impl<T> Hold<T> {
    /// Holds a value made at run time.
    pub fn new(value: T) -> Self {
        Self::Shared(Arc::new(value))
    }

    /// The value, or nothing while a recursive definition is still open.
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Static(held) => Some(held),
            Self::Shared(held) => Some(held),
            Self::Later(cell) => cell.get(),
            Self::Again(held) => Some(held.unfolded()),
        }
    }

    /// A number that tells this description from others: whoever walks through types that contain themselves notes it
    /// to know where it has been.
    ///
    /// # Panics
    /// As dereferencing does.
    pub fn identity(&self) -> usize {
        match self {
            Self::Again(held) => held.identity(),
            held => std::ptr::from_ref::<T>(held).addr(),
        }
    }

    /// One that was made at run time.
    fn made(&self) -> &T {
        match self.get() {
            Some(held) => held,
            None => unreachable!("a contract reader left a recursive type open"),
        }
    }

    /// What reading a value of this shape has to charge for the description itself, which is not there yet; mostly 0.
    #[inline]
    pub fn due(&self) -> u64 {
        match self {
            Self::Again(held) => held.due(),
            _ => 0,
        }
    }
}

impl<T> Deref for Hold<T> {
    type Target = T;

    /// # Panics
    /// On a recursive definition that its contract reader never completed, which is a fault of that reader.
    #[inline]
    fn deref(&self) -> &T {
        // Generated code holds its shapes so, and asks for them in every call.
        match self {
            Self::Static(held) => held,
            held => held.made(),
        }
    }
}

/// What a value looks like.
#[derive(Debug, Clone)]
pub enum Shape {
    /// No value: the result of an operation that returns nothing.
    Void,
    /// True or false.
    Bool,
    /// Unsigned, 8 bits; a sequence of these is a byte string and travels by the byte lane.
    U8,
    /// Signed, 8 bits.
    I8,
    /// Unsigned, 16 bits.
    U16,
    /// Signed, 16 bits.
    I16,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 32 bits.
    I32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 64 bits.
    I64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// One character of the wire's narrow character set.
    Char,
    /// One character of the wire's wide character set.
    WideChar,
    /// A string.
    Text(Text),
    /// Named fields in order.
    Struct(Hold<Struct>),
    /// A discriminator and the arm it selects.
    Union(Hold<Union>),
    /// Named values.
    Enum(Hold<Enum>),
    /// Any number of one shape.
    Sequence(Hold<Sequence>),
    /// A fixed number of one shape.
    Array(Hold<Array>),
    /// Keys and values.
    Map(Hold<Map>),
    /// A value or nothing.
    Optional(Hold<Shape>),
    /// A value reached through a pointer; wires without pointers write the value alone.
    Pointer(Hold<Pointer>),
    /// A value that carries its own shape.
    Variant,
    /// A description of a type, as a value.
    TypeCode,
    /// An object reference; the name is the interface's identity, empty for any interface.
    Reference(Hold<Referent>),
    /// An operating-system handle (a file descriptor).
    Handle,
    /// Another name for a shape; without a name, a remark on it that only the wire of its identity reads.
    Alias(Hold<Alias>),
}

impl Shape {
    /// The shape behind all aliases.
    #[inline]
    pub fn resolved(&self) -> &Self {
        let mut shape = self;
        while let Self::Alias(alias) = shape {
            shape = &alias.target;
        }
        shape
    }

    /// Of a reference: the argument that says which interface it is to have (`iid_is` of MIDL). Only a plain name is one that can be found.
    pub fn interface_argument(&self) -> Option<&str> {
        let mut at = self;
        let mut name = None;
        while let Self::Alias(alias) = at {
            if let Some(written) = alias.name.strip_prefix("iid_is(") {
                name = written.strip_suffix(')');
            }
            at = &alias.target;
        }
        name.filter(|_| matches!(at, Self::Reference(_)))
    }

    /// The fields, where this is a struct.
    #[inline]
    pub fn fields(&self) -> &[Field] {
        match self.resolved() {
            Self::Struct(shape) => &shape.fields,
            _ => &[],
        }
    }

    /// The element of a sequence or array.
    pub fn element(&self) -> Option<&Self> {
        match self.resolved() {
            Self::Sequence(shape) => Some(&shape.element),
            Self::Array(shape) => Some(&shape.element),
            _ => None,
        }
    }

    /// Whether a value of this shape is one fixed-width number, and how many bytes wide.
    pub fn width(&self) -> Option<usize> {
        match self.resolved() {
            Self::Bool | Self::U8 | Self::I8 => Some(1),
            Self::U16 | Self::I16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            _ => None,
        }
    }

    /// A word for messages to people: `long`-free, wire-free.
    pub fn noun(&self) -> Name {
        Cow::Borrowed(match self {
            Self::Void => "nothing",
            Self::Bool => "boolean",
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Char => "character",
            Self::WideChar => "wide character",
            Self::Text(_) => "text",
            Self::Struct(shape) => return shape.name.clone(),
            Self::Union(shape) => return shape.name.clone(),
            Self::Enum(shape) => return shape.name.clone(),
            Self::Sequence(_) => "sequence",
            Self::Array(_) => "array",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional value",
            Self::Pointer(_) => "pointer",
            Self::Variant => "any value",
            Self::TypeCode => "type code",
            Self::Reference(_) => "object reference",
            Self::Handle => "handle",
            Self::Alias(shape) if shape.name.is_empty() => return shape.target.noun(),
            Self::Alias(shape) => return shape.name.clone(),
        })
    }

    /// A sequence of `element` without a bound, made at run time.
    pub fn sequence(element: Self) -> Self {
        Self::Sequence(Hold::new(Sequence { element, bound: None, order: Order::Free, size: None }))
    }
}

/// How text is held by the peer, where a wire distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// Narrow: the wire's 8-bit set, by default UTF-8.
    Narrow,
    /// Wide: UTF-16 on the wires that have it.
    Wide,
    /// A counted wide string of the automation types.
    Counted,
    /// The path of an object.
    Path,
    /// A type signature.
    Signature,
}

/// A string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// How the peer holds it.
    pub kind: TextKind,
    /// The most characters allowed, if bounded.
    pub bound: Option<u32>,
}

impl Text {
    /// Narrow, without a bound.
    pub const NARROW: Self = Self { kind: TextKind::Narrow, bound: None };
    /// Wide, without a bound.
    pub const WIDE: Self = Self { kind: TextKind::Wide, bound: None };

    /// Whether the bound allows so many characters.
    ///
    /// # Errors
    /// It does not; what is wrong, for people.
    #[inline]
    pub fn check(&self, value: &str) -> Result<(), String> {
        match self.bound {
            Some(bound) if value.chars().count() > bound as usize => {
                let count = value.chars().count();
                Err(format!("text of {count} characters exceeds its bound of {bound}"))
            }
            _ => Ok(()),
        }
    }
}

/// Named fields in order: a struct, an exception, the arguments or the results of an operation.
#[derive(Debug, Clone)]
pub struct Struct {
    /// Scoped name, parts joined by `::`; empty for the arguments and results of an operation.
    pub name: Name,
    /// Identity as the contract's language spells it (an OMG repository id, a UUID, ...); may be empty.
    pub id: Name,
    /// The fields, in order.
    pub fields: Cow<'static, [Field]>,
}

impl Struct {
    /// Whether an exception is called so: by its identity, by its scoped name, or, where its language gives it no identity with a
    /// format (`IDL:`), by the repository id that OMG IDL gives to that name.
    pub fn is_called(&self, id: &str) -> bool {
        self.id == id || self.name == id || is_usual_id(id, &self.id, &self.name)
    }
}

/// Whether this is the repository id that OMG IDL gives to a scoped name (CORBA 3.0, 10.7.1), and nothing else has a better claim: `own` is
/// the identity that the name has.
pub(crate) fn is_usual_id(id: &str, own: &str, name: &str) -> bool {
    let path = id.strip_prefix("IDL:").and_then(|rest| rest.strip_suffix(":1.0"));
    path.is_some_and(|path| !own.contains(':') && path.split('/').eq(name.split("::")))
}

/// One field of a [`Struct`].
#[derive(Debug, Clone)]
pub struct Field {
    /// Name.
    pub name: Name,
    /// Shape of its value.
    pub shape: Shape,
}

/// A discriminator and arms.
#[derive(Debug, Clone)]
pub struct Union {
    /// Scoped name.
    pub name: Name,
    /// Identity as the contract's language spells it.
    pub id: Name,
    /// Shape of the discriminator: an integer, boolean, character or enum.
    pub discriminator: Shape,
    /// The arms.
    pub arms: Cow<'static, [Arm]>,
}

impl Union {
    /// The arm that a discriminator selects: the one labelled so, else the default arm.
    pub fn select(&self, discriminator: i64) -> Option<usize> {
        self.arms
            .iter()
            .position(|arm| arm.labels.contains(&discriminator))
            .or_else(|| self.arms.iter().position(|arm| arm.default))
    }
}

/// One arm of a [`Union`].
#[derive(Debug, Clone)]
pub struct Arm {
    /// Discriminator values that select it.
    pub labels: Cow<'static, [i64]>,
    /// Whether it is also taken when no label fits.
    pub default: bool,
    /// Its name and shape.
    pub field: Field,
}

/// Named values.
#[derive(Debug, Clone)]
pub struct Enum {
    /// Scoped name.
    pub name: Name,
    /// Identity as the contract's language spells it.
    pub id: Name,
    /// Members: name and value.
    pub members: Cow<'static, [(Name, i32)]>,
    /// Bits on wires that distinguish: 16 or 32.
    pub bits: u8,
    /// Whether values without a name may occur, as in C, where members are names of numbers: combinations of flags, and members of a
    /// later version. Wires that pass names or places carry none of those.
    pub open: bool,
}

impl Enum {
    /// The member with this value.
    pub fn name_of(&self, value: i32) -> Option<&str> {
        self.members.iter().find(|(_, v)| *v == value).map(|(name, _)| name.as_ref())
    }

    /// A value, if a member has it or none need have it.
    ///
    /// # Errors
    /// One must and none has; what is wrong, for people.
    pub fn check(&self, value: i32) -> Result<i32, String> {
        if self.open || self.name_of(value).is_some() {
            return Ok(value);
        }
        Err(format!("{value} is no member of {}", self.name))
    }

    /// A number as a value of an open enumeration. Those of 32 bits without a sign are taken too: 0x80000000 is a usual flag.
    pub fn number(&self, value: i128) -> Option<i32> {
        let bits = i32::try_from(value).ok().or_else(|| u32::try_from(value).ok().map(u32::cast_signed));
        bits.filter(|bits| self.check(*bits).is_ok())
    }

    /// The value of a name, or of names of flags with a `|` between two of them where the enumeration is open.
    pub fn value_of_names(&self, names: &str) -> Option<i32> {
        if let Some(value) = self.value_of(names) {
            return Some(value);
        }
        let mut flags = names.split('|').map(|name| self.value_of(name.trim()));
        if self.open { flags.try_fold(0, |bits, flag| Some(bits | flag?)) } else { None }
    }

    /// The place of the member with this value among all, from 0 on: what travels where enumerations have no values (CDR).
    pub fn ordinal_of(&self, value: i32) -> Option<u32> {
        let counts = |at: &usize| self.members.get(*at).is_some_and(|(_, held)| *held == value);
        let at = usize::try_from(value).ok().filter(counts);
        let at = at.or_else(|| self.members.iter().position(|(_, held)| *held == value))?;
        u32::try_from(at).ok()
    }

    /// The value of the member at this place.
    pub fn value_at(&self, ordinal: u32) -> Option<i32> {
        self.members.get(usize::try_from(ordinal).ok()?).map(|(_, value)| *value)
    }

    /// The value of the member with this name.
    pub fn value_of(&self, name: &str) -> Option<i32> {
        self.members.iter().find(|(n, _)| n == name).map(|(_, value)| *value)
    }
}

/// How many elements an array of the peer says it has, and how, where a wire distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Nothing beside it has to say how many there are, as in all contract languages but MIDL. NDR, where something has to, holds
    /// a struct of the count and a pointer to as many elements.
    Free,
    /// The count stands before the elements (before the whole struct, where the array ends one).
    Conformant,
    /// As `Conformant`, and an offset and an actual count as well.
    ConformantVarying,
    /// The greatest count is known beforehand; an offset and an actual count are written.
    Varying,
}

/// Any number of one shape.
#[derive(Debug, Clone)]
pub struct Sequence {
    /// Shape of each element.
    pub element: Shape,
    /// The most elements allowed, if bounded.
    pub bound: Option<u32>,
    /// How the count is written, where a wire distinguishes.
    pub order: Order,
    /// The field or parameter beside it that says how many there are (`size_is`), if one does: both must agree.
    pub size: Option<Name>,
}

impl Sequence {
    /// Whether the bound allows so many elements.
    ///
    /// # Errors
    /// It does not; what is wrong, for people.
    #[inline]
    pub fn check(&self, len: usize) -> Result<(), String> {
        match self.bound {
            Some(bound) if len > bound as usize => {
                Err(format!("a sequence of {len} exceeds its bound of {bound}"))
            }
            _ => Ok(()),
        }
    }
}

/// A fixed number of one shape; several dimensions are arrays of arrays.
#[derive(Debug, Clone)]
pub struct Array {
    /// Shape of each element.
    pub element: Shape,
    /// How many.
    pub len: u32,
}

impl Array {
    /// Whether it has so many elements.
    ///
    /// # Errors
    /// It does not; what is wrong, for people.
    #[inline]
    pub fn check(&self, len: usize) -> Result<(), String> {
        match self.len as usize == len {
            true => Ok(()),
            false => Err(format!("an array of {} elements is expected, not {len}", self.len)),
        }
    }
}

/// Keys and values.
#[derive(Debug, Clone)]
pub struct Map {
    /// Shape of a key.
    pub key: Shape,
    /// Shape of a value.
    pub value: Shape,
}

/// What a pointer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointerKind {
    /// Never null, never aliased, written in place.
    Ref,
    /// May be null, never aliased.
    Unique,
    /// May be null and aliased.
    Full,
}

/// A value reached through a pointer.
#[derive(Debug, Clone)]
pub struct Pointer {
    /// What it may be.
    pub kind: PointerKind,
    /// Shape of what it points to.
    pub target: Shape,
}

/// The interface that an object reference promises.
#[derive(Debug, Clone)]
pub struct Referent {
    /// Scoped name of the interface; empty for any object.
    pub name: Name,
    /// Identity as the contract's language spells it; empty for any object.
    pub id: Name,
}

/// Another name for a shape.
#[derive(Debug, Clone)]
pub struct Alias {
    /// Scoped name; empty where the identity is a remark on the shape, and the shape has no other name.
    pub name: Name,
    /// Identity as the contract's language spells it.
    pub id: Name,
    /// The shape it stands for.
    pub target: Shape,
}

/// A shape inside a value; two are equal if they read the same to people.
#[derive(Debug, Clone)]
pub struct TypedShape(pub Shape);

impl PartialEq for TypedShape {
    fn eq(&self, other: &Self) -> bool {
        self.0.noun() == other.0.noun()
    }
}
