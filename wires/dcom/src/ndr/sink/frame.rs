//! What an open composite of the sink knows.
//!
//! A frame is pushed by `open` and popped by `close`; only `left`, `packed` of a union, and what `content`
//! decides change in between.

use super::super::watch::{Counting, Forms};

/// What is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Parameters,
    Struct,
    Items,
    Union,
    Maybe,
    /// Where it begins in its segment.
    Variant {
        start: usize,
    },
    /// This dimension of a SAFEARRAY that has several.
    Row {
        dimension: usize,
    },
}

/// A composite that was opened and is not closed yet.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    /// Values still to come, where that is known.
    pub(super) left: usize,
    /// Where in the segment the maximum count stands, which the struct's last field will know.
    pub(super) hoist: Option<usize>,
    /// Whether values are held as in a VARIANT.
    pub(super) automation: bool,
    /// How values are held that say less by themselves.
    pub(super) forms: Forms,
    pub(super) counting: Counting,
    /// Whether its members follow each other without padding; of a union, whether its discriminator is still to come.
    pub(super) packed: bool,
    /// Of a map: what each key is aligned to, as a struct with its value is; else 1.
    pub(super) pairs: usize,
    /// Whether a deferred referent ends with this composite.
    pub(super) referent: bool,
    /// The byte order to go back to when this composite ends, if it has one of its own.
    pub(super) order: Option<bool>,
}

impl Frame {
    /// Whether a value of it is simply what comes next.
    #[inline]
    pub(super) fn takes_flat(&self) -> bool {
        matches!(self.kind, Kind::Struct | Kind::Items)
            && self.hoist.is_none()
            && self.counting == Counting::No
            && self.pairs == 1
            && !self.packed
    }

    /// Whether an element of it may be a row.
    #[inline]
    pub(super) fn takes_row(&self) -> bool {
        self.takes_flat() && !self.automation && matches!(self.forms, Forms::Plain)
    }
}
