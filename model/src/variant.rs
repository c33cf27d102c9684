//! Variants: values that carry their own shape through typed code.

use crate::marshal::{Marshal, Unmarshal};
use crate::shape::Shape;
use crate::value::{TypedShape, Value};
use crate::visit::{Sink, Source, Visit};

/// A value and its shape: what generated code makes of a contract's `any`.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// What it looks like.
    pub shape: TypedShape,
    /// The value; it fits the shape.
    pub value: Value,
}

impl Variant {
    /// A value at this shape.
    pub fn new(shape: Shape, value: Value) -> Self {
        Self { shape: TypedShape(shape), value }
    }
}

impl Marshal for Variant {
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        sink.open(shape, 1)?;
        sink.content(&self.shape.0)?;
        self.value.encode(&self.shape.0, sink)?;
        sink.close(shape)
    }
}

impl<'a> Unmarshal<'a> for Variant {
    fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
        source.open(shape)?;
        let content = source.content()?;
        let value = Value::decode(&content, source)?;
        source.close(shape)?;
        Ok(Self::new(content, value))
    }
}
