//! D-Bus signatures to shapes and back (D-Bus Specification, "Type System" and "Valid Signatures").
//!
//! A signature has no names: its structs are nameless ([`Struct::name`] is empty) with fields `field_1`,
//! `field_2`, ... Shapes that D-Bus lacks are written as what they travel as: signed octets as `y`,
//! `binary32` as `d`, characters, enumerations and references as `s` and `i`, a union as its discriminator
//! and a variant, an optional value as an array of none or one, a pointer as what it points to, a map whose
//! key is no basic type as an array of pairs. So the way from a shape to a signature loses information, and
//! the way back does not find it again.
//!
//! Bounds are those of the specification: 255 bytes, 32 arrays and 32 structs inside one another. A shape
//! that contains itself has no signature; the bounds end the search, and it is reported as too deep.
//!
//! `walk` checks and compares signatures without building shapes: it is for the wire, where each message has
//! one. `parse` is for contracts and for values of types that are known at run time only.

mod walk;

pub use walk::{check, check_one, element, fits, fits_one};

use everywire_model::shape::{Field, Map, Name, Struct, Text, TextKind};
use everywire_model::{Hold, Shape};
use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

/// The most bytes of a signature.
pub const LENGTH: usize = 255;
/// The most arrays inside one another.
pub const ARRAYS: usize = 32;
/// The most structs inside one another.
pub const STRUCTS: usize = 32;
/// The most shapes inside one another while a signature is written. Aliases and pointers write nothing, so
/// they count here only; without this bound, a pointer to itself would never end.
const SHAPES: usize = 256;

/// What is wrong with a signature, or with a shape that has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureError {
    /// More than [`LENGTH`] bytes.
    TooLong,
    /// More than [`ARRAYS`] arrays, or more than [`STRUCTS`] structs, inside one another; so is every type that
    /// contains itself.
    TooDeep,
    /// No type has this code; `at` is its byte.
    UnknownCode {
        /// The code.
        code: char,
        /// Its place, in bytes.
        at: usize,
    },
    /// The text ends inside a type.
    Incomplete,
    /// A struct without fields, at this byte; or a shape that is one.
    EmptyStruct,
    /// A dict entry outside of an array, at this byte.
    LoneEntry {
        /// Its place, in bytes.
        at: usize,
    },
    /// The key of a dict entry is a container, at this byte.
    ContainerKey {
        /// Its place, in bytes.
        at: usize,
    },
    /// A dict entry with more or less than a key and a value, or a struct closed as a dict entry; at this byte.
    EntryFields {
        /// Its place, in bytes.
        at: usize,
    },
    /// Not exactly one complete type where one is needed.
    NotOne,
    /// A shape without values (the result of an operation that returns nothing).
    NoValue,
    /// A description of a type, which D-Bus does not carry.
    TypeCode,
}

impl Display for SignatureError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "a signature has at most {LENGTH} bytes"),
            Self::TooDeep => {
                write!(f, "at most {ARRAYS} arrays and {STRUCTS} structs may be inside one another")
            }
            Self::UnknownCode { code, at } => write!(f, "no type has the code {code:?} (byte {at})"),
            Self::Incomplete => write!(f, "the signature ends inside a type"),
            Self::EmptyStruct => write!(f, "a struct has at least one field"),
            Self::LoneEntry { at } => {
                write!(f, "a dict entry is only the element of an array (byte {at})")
            }
            Self::ContainerKey { at } => write!(f, "the key of a dict entry is a basic type (byte {at})"),
            Self::EntryFields { at } => write!(f, "a dict entry is one key and one value (byte {at})"),
            Self::NotOne => write!(f, "exactly one complete type is needed here"),
            Self::NoValue => write!(f, "nothing has no signature"),
            Self::TypeCode => write!(f, "D-Bus carries no type codes"),
        }
    }
}

impl std::error::Error for SignatureError {}

/// The complete types of a signature; none for the empty one.
///
/// # Errors
/// The first rule that the text breaks.
pub fn parse(text: &str) -> Result<Vec<Shape>, SignatureError> {
    if text.len() > LENGTH {
        return Err(SignatureError::TooLong);
    }
    let mut reader = Reader { text, at: 0, arrays: 0, structs: 0 };
    let mut shapes = Vec::new();
    while reader.at < text.len() {
        shapes.push(reader.complete()?);
    }
    Ok(shapes)
}

/// The type of a signature that is one complete type, as a variant's is.
///
/// # Errors
/// The first rule that the text breaks.
pub fn parse_one(text: &str) -> Result<Shape, SignatureError> {
    let mut shapes = parse(text)?;
    match (shapes.pop(), shapes.is_empty()) {
        (Some(shape), true) => Ok(shape),
        _ => Err(SignatureError::NotOne),
    }
}

/// Appends the signature of a shape; `out` as a whole stays within [`LENGTH`] bytes.
///
/// # Errors
/// The shape has no signature: it contains itself, is too deep or long, is a struct without fields or void. What was
/// appended to `out` until then is of no use.
#[inline]
pub fn of(shape: &Shape, out: &mut String) -> Result<(), SignatureError> {
    Writer { out, arrays: 0, structs: 0, shapes: 0 }.shape(shape)
}

/// Appends the signatures of the fields of a struct, in a row and without parentheses: what the body of a message has,
/// from an operation's `arguments` or `results`, or a signal's `fields`.
///
/// # Errors
/// As [`of`].
#[inline]
pub fn of_list(list: &Shape, out: &mut String) -> Result<(), SignatureError> {
    list.fields().iter().try_for_each(|field| of(&field.shape, out))
}

/// The code of a shape that is written as one.
#[inline]
fn code(shape: &Shape) -> Option<u8> {
    Some(match shape {
        Shape::Bool => b'b',
        Shape::U8 | Shape::I8 => b'y',
        Shape::U16 => b'q',
        Shape::I16 => b'n',
        Shape::U32 => b'u',
        Shape::I32 | Shape::Enum(_) => b'i',
        Shape::U64 => b't',
        Shape::I64 => b'x',
        Shape::F32 | Shape::F64 => b'd',
        Shape::Text(text) => match text.kind {
            TextKind::Path => b'o',
            TextKind::Signature => b'g',
            TextKind::Narrow | TextKind::Wide | TextKind::Counted => b's',
        },
        Shape::Char | Shape::WideChar | Shape::Reference(_) => b's',
        Shape::Handle => b'h',
        Shape::Variant => b'v',
        _ => return None,
    })
}

/// Whether a map's key travels as the key of a dict entry; else the map is an array of structs.
#[inline]
pub fn is_basic(shape: &Shape) -> bool {
    match shape.resolved() {
        Shape::Void
        | Shape::Struct(_)
        | Shape::Union(_)
        | Shape::Sequence(_)
        | Shape::Array(_)
        | Shape::Map(_)
        | Shape::Optional(_)
        | Shape::Pointer(_)
        | Shape::Variant => false,
        Shape::Bool
        | Shape::U8
        | Shape::I8
        | Shape::U16
        | Shape::I16
        | Shape::U32
        | Shape::I32
        | Shape::U64
        | Shape::I64
        | Shape::F32
        | Shape::F64
        | Shape::Char
        | Shape::WideChar
        | Shape::Text(_)
        | Shape::Enum(_)
        | Shape::Reference(_)
        | Shape::Handle
        | Shape::TypeCode
        | Shape::Alias(_) => true,
    }
}

/// The nameless struct with these fields, as `(...)` yields it.
pub fn nameless(shapes: Vec<Shape>) -> Shape {
    let named = |(number, shape)| Field { name: Name::from(format!("field_{number}")), shape };
    let fields = Cow::Owned((1..).zip(shapes).map(named).collect());
    Shape::Struct(Hold::new(Struct { name: Cow::Borrowed(""), id: Cow::Borrowed(""), fields }))
}

/// Text to shapes. Recursion is bounded by the depths: a dict entry needs an array of its own.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    arrays: usize,
    structs: usize,
}

impl Reader<'_> {
    fn complete(&mut self) -> Result<Shape, SignatureError> {
        let at = self.at;
        let code = self.peek().ok_or(SignatureError::Incomplete)?;
        self.at += 1;
        Ok(match code {
            b'y' => Shape::U8,
            b'b' => Shape::Bool,
            b'n' => Shape::I16,
            b'q' => Shape::U16,
            b'i' => Shape::I32,
            b'u' => Shape::U32,
            b'x' => Shape::I64,
            b't' => Shape::U64,
            b'd' => Shape::F64,
            b's' => Shape::Text(Text::NARROW),
            b'o' => Shape::Text(Text { kind: TextKind::Path, bound: None }),
            b'g' => Shape::Text(Text { kind: TextKind::Signature, bound: None }),
            b'h' => Shape::Handle,
            b'v' => Shape::Variant,
            b'a' => return self.array(),
            b'(' => return self.structure(at),
            b'{' => return Err(SignatureError::LoneEntry { at }),
            _ => {
                let code = self.text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or_default();
                return Err(SignatureError::UnknownCode { code, at });
            }
        })
    }

    fn array(&mut self) -> Result<Shape, SignatureError> {
        if self.arrays == ARRAYS {
            return Err(SignatureError::TooDeep);
        }
        self.arrays += 1;
        let shape = if self.peek() == Some(b'{') {
            self.at += 1;
            self.entry()?
        } else {
            Shape::sequence(self.complete()?)
        };
        self.arrays -= 1;
        Ok(shape)
    }

    fn structure(&mut self, at: usize) -> Result<Shape, SignatureError> {
        if self.structs == STRUCTS {
            return Err(SignatureError::TooDeep);
        }
        self.structs += 1;
        let mut shapes = Vec::new();
        loop {
            match self.peek().ok_or(SignatureError::Incomplete)? {
                b')' if shapes.is_empty() => return Err(SignatureError::EmptyStruct),
                b')' => break,
                b'}' => return Err(SignatureError::EntryFields { at }),
                _ => shapes.push(self.complete()?),
            }
        }
        self.at += 1;
        self.structs -= 1;
        Ok(nameless(shapes))
    }

    /// The dict entry of an array, after its brace.
    fn entry(&mut self) -> Result<Shape, SignatureError> {
        let at = self.at;
        match self.peek().ok_or(SignatureError::Incomplete)? {
            b'a' | b'(' | b'{' | b'v' => return Err(SignatureError::ContainerKey { at }),
            b'}' => return Err(SignatureError::EntryFields { at }),
            _ => {}
        }
        let key = self.complete()?;
        if self.peek() == Some(b'}') {
            return Err(SignatureError::EntryFields { at });
        }
        let value = self.complete()?;
        if self.peek().ok_or(SignatureError::Incomplete)? != b'}' {
            return Err(SignatureError::EntryFields { at: self.at });
        }
        self.at += 1;
        Ok(Shape::Map(Hold::new(Map { key, value })))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// Shapes to text. Every struct and array writes at least one byte, so that the length bounds the work as well.
struct Writer<'a> {
    out: &'a mut String,
    arrays: usize,
    structs: usize,
    shapes: usize,
}

impl Writer<'_> {
    #[inline]
    fn shape(&mut self, shape: &Shape) -> Result<(), SignatureError> {
        if self.shapes == SHAPES {
            return Err(SignatureError::TooDeep);
        }
        self.shapes += 1;
        if let Some(code) = code(shape) {
            self.shapes -= 1;
            return self.put(code.into());
        }
        match shape {
            Shape::Struct(shape) => {
                if shape.fields.is_empty() {
                    return Err(SignatureError::EmptyStruct);
                }
                self.structure(|w| shape.fields.iter().try_for_each(|field| w.shape(&field.shape)))?;
            }
            Shape::Union(shape) => self.structure(|w| {
                w.shape(&shape.discriminator)?;
                w.put('v')
            })?,
            Shape::Sequence(shape) => self.array(|w| w.shape(&shape.element))?,
            Shape::Array(shape) => self.array(|w| w.shape(&shape.element))?,
            Shape::Optional(shape) => self.array(|w| w.shape(shape))?,
            Shape::Map(map) if is_basic(&map.key) => self.array(|w| {
                w.put('{')?;
                w.shape(&map.key)?;
                w.shape(&map.value)?;
                w.put('}')
            })?,
            Shape::Map(map) => self.array(|w| {
                w.structure(|w| {
                    w.shape(&map.key)?;
                    w.shape(&map.value)
                })
            })?,
            Shape::Pointer(pointer) => self.shape(&pointer.target)?,
            Shape::Alias(alias) => self.shape(&alias.target)?,
            Shape::TypeCode => return Err(SignatureError::TypeCode),
            // What has a code was written.
            _ => return Err(SignatureError::NoValue),
        }
        self.shapes -= 1;
        Ok(())
    }

    fn array(
        &mut self,
        element: impl FnOnce(&mut Self) -> Result<(), SignatureError>,
    ) -> Result<(), SignatureError> {
        if self.arrays == ARRAYS {
            return Err(SignatureError::TooDeep);
        }
        self.arrays += 1;
        self.put('a')?;
        element(self)?;
        self.arrays -= 1;
        Ok(())
    }

    fn structure(
        &mut self,
        fields: impl FnOnce(&mut Self) -> Result<(), SignatureError>,
    ) -> Result<(), SignatureError> {
        if self.structs == STRUCTS {
            return Err(SignatureError::TooDeep);
        }
        self.structs += 1;
        self.put('(')?;
        fields(self)?;
        self.structs -= 1;
        self.put(')')
    }

    fn put(&mut self, code: char) -> Result<(), SignatureError> {
        if self.out.len() >= LENGTH {
            return Err(SignatureError::TooLong);
        }
        self.out.push(code);
        Ok(())
    }
}
