//! Where the cells of a row stand.

/// A struct has no more cells than this if it is to be a row of them.
pub const MOST: usize = 16;
/// The bytes of a row, at the most.
pub const MOST_BYTES: usize = 8 * MOST;

/// What a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind {
    /// A number of 8 bits.
    One,
    /// A number of 16 bits.
    Two,
    /// A number of 32 bits.
    Four,
    /// A number of 64 bits.
    Eight,
    /// A variant: 32 bits stand for the pointer to it.
    Variant,
}

impl CellKind {
    /// The bytes that it takes.
    pub const fn width(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four | Self::Variant => 4,
            Self::Eight => 8,
        }
    }
}

/// Where the cells of a row stand, those of structs inside it among them.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes from the first cell to the end of the last; at most [`MOST_BYTES`].
    pub size: usize,
    /// What the first cell is aligned to.
    pub alignment: usize,
    /// Each cell, and where it begins; at most [`MOST`].
    pub cells: &'static [(usize, CellKind)],
}

impl Layout {
    /// Where the variants of a row stand.
    #[inline]
    pub fn variants(&self) -> impl Iterator<Item = usize> {
        self.cells.iter().filter(|(_, kind)| *kind == CellKind::Variant).map(|(at, _)| *at)
    }

    /// How many of them there are.
    #[inline]
    pub fn variant_count(&self) -> usize {
        self.variants().count()
    }
}

/// How a wire wants its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether numbers are little-endian.
    pub little: bool,
    /// What stands for the pointer to a variant.
    pub pointer: u32,
}
