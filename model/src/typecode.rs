//! Type codes: descriptions of types that are passed as values.
//!
//! One that was read is kept as it came, too, since a shape says less: compilers choose what they repeat and what they
//! refer back to, and some kinds of types have no values that this side could hold.

use crate::shape::{Name, Shape, TypedShape};
use bytes::Bytes;

/// A description of a type, as a value: what CORBA calls a `TypeCode`.
#[derive(Debug, Clone)]
pub struct TypeCode {
    kind: Name,
    id: Name,
    name: Name,
    shape: Option<Shape>,
    encoded: Bytes,
}

/// The kind of the type code that describes nothing, not even `void`.
const NULL: &str = "null";

impl TypeCode {
    /// The description of values of this shape.
    pub fn new(shape: Shape) -> Self {
        let (id, name) = identity(&shape);
        Self { kind: kind(&shape), id, name, shape: Some(shape), encoded: Bytes::new() }
    }

    /// The description of no type at all (`tk_null`).
    pub const fn null() -> Self {
        Self {
            kind: Name::Borrowed(NULL),
            id: Name::Borrowed(""),
            name: Name::Borrowed(""),
            shape: Some(Shape::Void),
            encoded: Bytes::new(),
        }
    }

    /// One whose values this side cannot hold: what it says of itself, and the octets that the wire which read it writes
    /// again.
    pub const fn read(kind: Name, id: Name, name: Name, encoded: Bytes) -> Self {
        Self { kind, id, name, shape: None, encoded }
    }

    /// The same, with the octets that it was read from.
    #[must_use]
    pub fn with_encoded(self, encoded: Bytes) -> Self {
        Self { encoded, ..self }
    }

    /// What kind of type it describes, by the word of its contract language: `struct`, `sequence`, `valuetype`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The identity of the type (a repository id); empty where such types have none.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its name; empty where such types have none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What values of it look like; nothing for types whose values this side cannot hold.
    pub fn shape(&self) -> Option<&Shape> {
        self.shape.as_ref()
    }

    /// Whether it describes nothing, not even `void`.
    pub fn is_null(&self) -> bool {
        self.kind == NULL
    }

    /// What a wire read, to be written again by that wire; empty where this side made the description.
    pub fn encoded(&self) -> &Bytes {
        &self.encoded
    }
}

impl PartialEq for TypeCode {
    /// Whether both were read from the same octets, or say the same of themselves.
    fn eq(&self, other: &Self) -> bool {
        if !self.encoded.is_empty() && !other.encoded.is_empty() {
            return self.encoded == other.encoded;
        }
        let shape = |of: &Self| of.shape.clone().map(TypedShape);
        self.kind == other.kind
            && self.id == other.id
            && self.name == other.name
            && shape(self) == shape(other)
    }
}

/// Identity and name of the type of a shape.
fn identity(shape: &Shape) -> (Name, Name) {
    match shape {
        Shape::Struct(held) => (held.id.clone(), held.name.clone()),
        Shape::Union(held) => (held.id.clone(), held.name.clone()),
        Shape::Enum(held) => (held.id.clone(), held.name.clone()),
        Shape::Reference(held) => (held.id.clone(), held.name.clone()),
        Shape::Alias(held) if held.name.is_empty() => identity(&held.target),
        Shape::Alias(held) => (held.id.clone(), held.name.clone()),
        _ => (Name::default(), Name::default()),
    }
}

/// The word for the kind of a shape.
fn kind(shape: &Shape) -> Name {
    Name::Borrowed(match shape {
        Shape::Void => "void",
        Shape::Struct(_) => "struct",
        Shape::Union(_) => "union",
        Shape::Enum(_) => "enum",
        Shape::Alias(held) if held.name.is_empty() && held.id == "#exception" => "exception",
        Shape::Alias(held) if held.name.is_empty() => return kind(&held.target),
        Shape::Alias(_) => "alias",
        other => return other.noun(),
    })
}
