//! Scalars: numbers of which the shape lives for ever, as most variants hold one.

use crate::shape::Shape;

/// A number, a boolean or nothing, with a shape that lives for ever.
#[derive(Debug, Clone, Copy)]
pub struct Scalar {
    pub(crate) shape: &'static Shape,
    pub(crate) bits: u64,
}

/// Nothing.
impl Default for Scalar {
    #[inline]
    fn default() -> Self {
        const NOTHING: &Shape = &Shape::Void;
        Self { shape: NOTHING, bits: 0 }
    }
}

impl Scalar {
    /// What these bits are at this shape: those of the number, or 0 and 1, and zeros above. Nothing, if the shape is of something else.
    #[inline]
    pub fn new(shape: &'static Shape, bits: u64) -> Option<Self> {
        let width = match shape.resolved() {
            Shape::Void => 0,
            plain => plain.width()?,
        };
        let above = match width {
            8 => 0,
            width => bits >> (8 * width),
        };
        (above == 0).then_some(Self { shape, bits })
    }

    /// What it looks like.
    #[inline]
    pub fn shape(&self) -> &'static Shape {
        self.shape
    }

    /// Its bits.
    #[inline]
    pub fn bits(&self) -> u64 {
        self.bits
    }
}
