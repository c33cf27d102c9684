//! Where a source of values is in its document: open frames, elements that were entered, and what was found out of its place.

use crate::nbfx::Item;
use crate::values::cursor::{AttributeValue, OpenElement};
use crate::values::names::Notation;
use crate::values::scalar::Content;
use crate::values::{BodyContext, ReaderQuotas};
use bytes::Bytes;
use everywire_model::Budget;
use everywire_model::shape::{Hold, Struct, Union};
use std::collections::{HashMap, HashSet, VecDeque};

/// Reads the content of a body, or one value from an element.
///
/// Elements are found by their local names, the expected one first. Unknown elements are skipped, as WCF does; what is
/// missing reads as zero, empty or nothing. A second element for a member that holds one value is refused: WCF's serializers take
/// the first and skip the others, and what was meant is lost without a word.
pub(in crate::values) struct ElementSource<'a, C> {
    pub(super) cursor: C,
    /// Where the body was left, and how many frames were open, for a header or an element that another stands for.
    pub(super) aside: Vec<(usize, C)>,
    /// Whether there is an envelope around the values.
    pub(super) enveloped: bool,
    pub(super) budget: Budget,
    pub(super) quotas: ReaderQuotas,
    pub(super) base: Frame<'a>,
    pub(super) frames: Vec<Frame<'a>>,
    /// What large octets may be shared from.
    pub(super) whole: &'a Bytes,
    /// Names that the contract does not know.
    pub(super) unknown: Option<Box<Unknown<'a>>>,
    /// Types that values of any type may be of, and parameters that came as headers.
    pub(super) reading: &'a BodyContext,
    /// Whether the first element is the first value, whatever it is called.
    pub(super) takes_first: bool,
    /// Elements that others stand for, once one was met that does.
    pub(super) referred: Option<Box<IdentifiedElements>>,
}

/// Names, and their characters.
#[derive(Debug, Default)]
pub(super) struct Unknown<'a> {
    pub(super) names: HashSet<&'a str>,
    pub(super) chars: usize,
}

/// What a frame is of.
#[derive(Debug, Default)]
pub(super) enum Kind {
    /// Nothing is open, or one value without a name.
    #[default]
    Root,
    /// A struct; whether it is the nameless one, of the operation's parameters.
    Struct(Hold<Struct>, bool),
    /// A discriminator and the arm that it selects, as soon as that is known.
    Choice(Hold<Union>, Option<usize>),
    /// A value of one of several types, told by its element.
    Derived(Hold<Union>),
    Items,
    /// Items that stand among the members of a struct; whether each tells by its name what it is.
    Flat(bool),
    /// The words of one text.
    Words,
    /// A value of one of several elements, told by the name of its own.
    Named,
    /// Pairs; whether the element of one is open, and what keys and values are called where that is not `Key` and `Value`.
    Pairs(bool, Option<Box<[String; 2]>>),
    Maybe,
    Variant,
}

/// Something that is open.
#[derive(Debug, Default)]
pub(super) struct Frame<'a> {
    pub(super) kind: Kind,
    /// Values begun so far.
    pub(super) index: usize,
    /// How many there are.
    pub(super) len: usize,
    /// Whether an element is open for this frame.
    pub(super) open: bool,
    /// How deep it is.
    pub(super) depth: usize,
    /// An element that was entered to look at it: of the value of a [`Kind::Maybe`], [`Kind::Variant`] or
    /// [`Kind::Derived`], or the next one of a struct.
    pub(super) entered: Option<OpenElement<'a>>,
    /// Items of an array record that are still to be read.
    pub(super) run: Option<(Item, &'a [u8])>,
    /// Where the members are, once they turned out to be in another order.
    pub(super) jumble: Option<Box<Jumble<'a>>>,
    /// Where the element of a struct starts, or where the first parameter may be.
    pub(super) at: usize,
    /// How the texts in it are written, where the contract says that; in a map those of keys, then of values.
    pub(super) notations: [Option<Notation>; 2],
    /// What is not in elements.
    pub(super) apart: Option<Box<ValuesOutsideElements<'a>>>,
}

impl<'a> Frame<'a> {
    // Field by field: of a default frame the rest would be dropped, on each body.
    #[inline]
    pub(super) fn new(kind: Kind, len: usize) -> Self {
        Self { kind, len, ..Self::default() }
    }
}

/// Where the next value is.
pub(super) enum NextValue<'a> {
    /// In an element.
    Element,
    /// Nowhere.
    Missing,
    /// Here.
    Content(Content<'a>),
}

/// What was read apart from elements.
#[derive(Debug, Default)]
pub(super) struct ValuesOutsideElements<'a> {
    /// The attributes of a struct's element.
    pub(super) found: Vec<AttributeValue<'a>>,
    /// Values that are still to be read.
    pub(super) values: VecDeque<Content<'a>>,
    /// Where the items are that stand among the members of a struct.
    pub(super) places: Vec<usize>,
}

impl<'a> ValuesOutsideElements<'a> {
    pub(super) fn of(content: Content<'a>) -> Self {
        Self { values: [content].into(), ..Self::default() }
    }
}

/// Where the members of a struct are, whose order is not the contract's.
#[derive(Debug)]
pub(super) struct Jumble<'a> {
    /// Name and offset.
    pub(super) members: Vec<(&'a str, usize)>,
    /// Where the last one ends.
    pub(super) end: usize,
}

/// Elements with an `Id`, all of a document, and what was read of them so far.
#[derive(Debug, Default)]
pub(super) struct IdentifiedElements {
    /// Once they were looked for.
    pub(super) places: Option<HashMap<String, ElementPosition>>,
    /// The prefix that is known to be that of references, where an element inherits it.
    pub(super) prefix: Option<String>,
    /// The prefix that was found to be of something else, where an element inherits it.
    pub(super) other: Option<String>,
    /// The prefix whose `offset` and `position` were found to be of something else, where an element inherits it.
    pub(super) unplaced: Option<String>,
    /// Elements that referred to others, against `MAX_REFERENCES`.
    pub(super) count: usize,
    /// Octets that were read because of them, against `MAX_REFERRED_OCTETS`.
    pub(super) octets: usize,
}

/// Where an element is.
#[derive(Debug, Clone, Copy)]
pub(super) struct ElementPosition {
    pub(super) at: usize,
    pub(super) end: usize,
    /// Elements that are open around it.
    pub(super) depth: usize,
}
