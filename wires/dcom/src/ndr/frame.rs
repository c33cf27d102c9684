//! What an open composite knows, on either side of a stub: the sink and the source visit values in the same order, and ask the same
//! questions of the composite around each.
//!
//! A frame is pushed when a composite opens and popped when it closes; only `left`, `packed` of a union, and what `content` decides
//! change in between.
//!
//! Invariant: each value is counted against its frame once, by `begin`; what the sides do not do by themselves, `begin` says.

use super::layout::{Embedding, Form, form};
use super::stack::Stack;
use super::watch::{CountRole, Counts, Forms};
use everywire_model::shape::Shape;

/// What is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Parameters,
    Struct,
    Items,
    Union,
    Maybe,
    Variant,
    /// This dimension of a SAFEARRAY that has several.
    Row {
        dimension: usize,
    },
}

/// A composite that was opened and is not closed yet.
/// `H` is what tells of the maximum count that was moved to the front of a struct, `S` what one side alone knows.
#[derive(Debug)]
pub(super) struct Frame<H, S> {
    pub(super) kind: Kind,
    /// Values still to come, where that is known.
    pub(super) left: usize,
    /// The maximum count that was moved to the front, for the struct's last field.
    pub(super) hoist: Option<H>,
    /// Whether values are held as in a VARIANT: booleans have 16 bits, texts are BSTRs, sequences SAFEARRAYs.
    pub(super) automation: bool,
    /// How values are held that say less by themselves.
    pub(super) forms: Forms,
    pub(super) counting: CountRole,
    /// Whether its members follow each other without padding; of a union that is written, whether its discriminator is still to come
    /// and something behind it is aligned.
    pub(super) packed: bool,
    /// Of a map: what each key is aligned to, as a struct with its value is. Of a union that is written: what comes behind its
    /// discriminator is aligned to this before its own alignment counts. Else 1.
    pub(super) aligned: usize,
    /// The byte order to go back to when this composite ends, if it has one of its own.
    pub(super) order: Option<bool>,
    pub(super) side: S,
}

/// What a side has to do before a value that begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum ValuePrefix {
    Nothing,
    /// It is a key: align to this.
    Align(usize),
    /// It is in a row, where elements stand elsewhere than they come.
    Element,
}

impl<H, S: Default> Frame<H, S> {
    pub(super) fn new(kind: Kind, left: usize) -> Self {
        Self {
            kind,
            left,
            hoist: None,
            automation: false,
            forms: Forms::Plain,
            counting: CountRole::No,
            packed: false,
            aligned: 1,
            order: None,
            side: S::default(),
        }
    }
}

impl<H, S> Frame<H, S> {
    /// Whether nothing more is to be known of a value than that it is a member or an element, as of most.
    #[inline]
    fn is_simple(&self) -> bool {
        matches!(self.kind, Kind::Struct | Kind::Items)
            && self.counting == CountRole::No
            && self.hoist.is_none()
            && self.aligned == 1
    }

    /// Whether a value of it is simply what comes next.
    #[inline]
    pub(super) fn takes_flat(&self) -> bool {
        self.is_simple() && !self.packed
    }

    /// Whether an element of it may be a row.
    #[inline]
    pub(super) fn takes_row(&self) -> bool {
        self.kind == Kind::Items
            && self.takes_flat()
            && !self.automation
            && matches!(self.forms, Forms::Plain)
    }

    /// Whether a VARIANT in it is behind the usual pointer.
    #[inline]
    pub(super) fn takes_plain_variant(&self) -> bool {
        let last = self.left == 1 && self.hoist.is_some();
        matches!(self.kind, Kind::Struct | Kind::Items) && self.aligned == 1 && !last
    }
}

impl<H: Copy, S> Stack<Frame<H, S>> {
    /// A value begins: where it stands, and what is to be done before it. `None`: the composite has no such value.
    #[inline]
    pub(super) fn begin(&mut self, counts: &mut [Counts]) -> Option<(Embedding, ValuePrefix)> {
        let Some(frame) = self.last_mut() else { return Some((Embedding::Top, ValuePrefix::Nothing)) };
        frame.left = frame.left.checked_sub(1)?;
        if frame.is_simple() {
            return Some((Embedding::Within, ValuePrefix::Nothing));
        }
        if frame.counting == CountRole::Field
            && let Some(counts) = counts.last_mut()
        {
            counts.begin(frame.left);
        }
        Some(match frame.kind {
            Kind::Parameters => (Embedding::Top, ValuePrefix::Nothing),
            Kind::Maybe => (Embedding::Behind, ValuePrefix::Nothing),
            Kind::Variant => (Embedding::Arm, ValuePrefix::Nothing),
            Kind::Struct if frame.left == 0 && frame.hoist.is_some() => {
                (Embedding::Tail, ValuePrefix::Nothing)
            }
            Kind::Items if frame.aligned > 1 && !frame.left.is_multiple_of(2) => {
                (Embedding::Within, ValuePrefix::Align(frame.aligned))
            }
            Kind::Row { .. } => (Embedding::Within, ValuePrefix::Element),
            _ => (Embedding::Within, ValuePrefix::Nothing),
        })
    }

    /// Whether the next value is held as in a VARIANT.
    pub(super) fn automation(&self) -> bool {
        self.last().is_some_and(|frame| frame.automation)
    }

    /// What tells of the maximum count that was moved to the front of the struct around.
    pub(super) fn hoist(&self) -> Option<H> {
        self.last().and_then(|frame| frame.hoist)
    }

    /// Whether a value that begins takes part in the counts of the struct around, as one that ends has.
    pub(super) fn counting(&self) -> bool {
        self.last().is_some_and(|frame| frame.counting != CountRole::No)
    }

    /// Whether the value that was visited is the discriminator of a union, of so many bits. What comes behind it is its arm, which takes
    /// no part in counts.
    pub(super) fn take_discriminator(&mut self) -> Option<u32> {
        let frame = self.last_mut()?;
        let CountRole::Discriminator(bits) = frame.counting else { return None };
        frame.counting = CountRole::No;
        Some(bits)
    }

    /// How the next value is held; `shape` is what the visit says of it.
    pub(super) fn form(&self, shape: &Shape) -> Form {
        match self.last() {
            Some(frame) if !matches!(frame.forms, Forms::Plain) => frame.forms.next(frame.left),
            _ if matches!(shape, Shape::Alias(_)) => form(shape).0,
            _ => Form::Plain,
        }
    }

    /// Whether the next value is an element of a SAFEARRAY; pointers stand in place there where it is Wine's.
    pub(super) fn in_safearray(&self) -> bool {
        self.last().is_some_and(|frame| frame.automation && frame.kind == Kind::Items)
    }

    /// The dimension of the row that is open, if the next value is part of one.
    pub(super) fn row(&self) -> Option<usize> {
        match self.last()?.kind {
            Kind::Row { dimension } => Some(dimension),
            _ => None,
        }
    }
}
