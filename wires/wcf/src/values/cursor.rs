//! What the reader of values asks of a document, in whichever form it is.
//!
//! A cursor is a place between two elements or inside of one. `enter` goes into the next element, `content`
//! or `finish` leaves it again; whoever entered must leave. `seek` returns to an offset that was seen
//! before, at the depth that it had. Both forms behave alike, so `ElementSource` is written once for both;
//! only array records exist in binary form alone.

mod binary;
mod text;

pub(super) use binary::BinaryCursor;
pub(super) use text::TextCursor;

use super::scalar::Content;
use crate::nbfx::Item;
use everywire_model::Budget;
use everywire_model::visit::Visit;
use std::borrow::Cow;

/// An element whose start and attributes were read.
#[derive(Debug, Clone)]
pub(super) struct OpenElement<'a> {
    /// Its name without a prefix.
    pub(super) name: &'a str,
    /// Where it starts.
    /// The offset of its start, for `seek` and for `told` and `attributes`, which read the start again.
    pub(super) at: usize,
    /// Whether it says that it holds nothing.
    /// It says `i:nil="true"`.
    pub(super) nil: bool,
    /// Whether it may stand for another element (`z:Ref`).
    /// Only a name is known yet: whether the prefix is that of the serialization is found out by `follow`.
    pub(super) refers: bool,
    /// Whether it may be a part of an array of SOAP's encoding, or an item of one that says its place (SOAP 1.1, 5.4.2.1 and 5.4.2.2).
    /// As with `refers`, only a name is known yet.
    pub(super) partial: bool,
    /// Whether others may stand for it (`z:Id`).
    pub(super) referred: bool,
    /// What its `i:type` says.
    pub(super) kind: Option<TypeName<'a>>,
}

/// The name of a type as a message has it. What its prefix stands for is asked of the cursor ([`Cursor::resolve`]).
#[derive(Debug, Clone)]
pub(super) struct TypeName<'a> {
    /// The whole name, or what stands behind the prefix if that is a letter.
    text: Cow<'a, str>,
    /// The prefix where a record has it as a letter: 0 for `a`.
    letter: Option<u8>,
}

impl<'a> TypeName<'a> {
    /// A name that may have a prefix.
    pub(super) fn new(text: Cow<'a, str>) -> Self {
        Self { text, letter: None }
    }

    /// A name whose prefix is a letter.
    pub(super) fn lettered(letter: u8, local: &'a str) -> Self {
        Self { text: Cow::Borrowed(local), letter: Some(letter) }
    }

    /// What stands before the colon; empty if there is none.
    pub(super) fn prefix(&self) -> &str {
        /// All prefixes of one letter.
        const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";
        match self.letter.map(usize::from) {
            Some(letter) => LETTERS.get(letter..=letter).unwrap_or_default(),
            None => self.text.split_once(':').map_or("", |(prefix, _)| prefix.trim()),
        }
    }

    /// What stands behind it.
    pub(super) fn local(&self) -> &str {
        self.text.rsplit(':').next().unwrap_or(&self.text).trim()
    }
}

impl<'a> OpenElement<'a> {
    pub(super) fn new(name: &'a str, at: usize) -> Self {
        Self { name, at, nil: false, refers: false, partial: false, referred: false, kind: None }
    }
}

/// An array record: one element for each of its items.
/// The caller splits the items by the width of their kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'a> {
    /// The name of the elements without a prefix.
    pub(super) name: &'a str,
    pub(super) kind: Item,
    /// All items, one behind the other.
    pub(super) data: &'a [u8],
}

/// An attribute of an element, and the prefixes that the element declares.
/// It is read only where a prefix matters, since it copies.
#[derive(Debug, Default)]
pub(super) struct AttributeText {
    /// The element's prefix.
    pub(super) element: String,
    pub(super) prefix: String,
    pub(super) value: String,
    pub(super) declared: Vec<(String, String)>,
}

/// An attribute of an element, as a value.
#[derive(Debug)]
pub(super) struct AttributeValue<'a> {
    /// The prefix of its name, or nothing.
    pub(super) prefix: Cow<'a, str>,
    pub(super) name: &'a str,
    pub(super) content: Content<'a>,
    /// What the prefix stands for, once that was looked for.
    /// `None` for attributes without a prefix, and for those that no member is called like.
    pub(super) namespace: Option<String>,
}

/// A place in a document, inside an element.
pub(super) trait Cursor<'a>: Sized {
    /// The start of the document, around the envelope.
    /// For headers, and for elements that others refer to.
    fn rewound(&self) -> Self;

    /// The same place, to read on from there and to stay here.
    fn ahead(&self) -> Self;

    /// Enters the next element inside the open one; nothing before its end, or before an array record.
    fn enter(&mut self) -> Visit<Option<OpenElement<'a>>>;

    /// The local name of the next element inside the open one and what stands behind its start, where that is quickly found and
    /// nothing is said of it but its name; [`Cursor::pass`] enters it.
    fn plain(&self) -> Option<(&'a str, usize)> {
        None
    }

    /// Enters the element that [`Cursor::plain`] found.
    fn pass(&mut self, _: usize) {}

    /// Passes the array record that comes next, if one does, and gives its items.
    fn array(&mut self) -> Visit<Option<Run<'a>>>;

    /// Whether the end of the open element, or that of the document, comes at once.
    fn ends(&self) -> bool;

    /// Reads to the end of the open element, whatever is in it.
    fn finish(&mut self) -> Visit<()>;

    /// Reads to the end of the document, which is that of an envelope around the values. What else its body has is passed over: elements
    /// that others refer to, and the rest of a fault.
    ///
    /// # Errors
    /// Anything stands behind the body: its receiver and whoever looks at it on its way would see different bodies (SOAP 1.2 part 1,
    /// section 5; SOAP 1.1, section 4).
    fn leave_envelope(&mut self) -> Visit<()>;

    /// Reads the text of the open element, and its end.
    fn content(&mut self, budget: &mut Budget) -> Visit<Content<'a>>;

    /// Reads the whole number in the open element, and its end, where that is quickly done.
    fn integer(&mut self) -> Option<i64> {
        None
    }

    /// Reads the octets of the open element, and its end; nothing if its text is none of octets.
    fn octets(&mut self, budget: &mut Budget) -> Visit<Option<Cow<'a, [u8]>>> {
        self.content(budget).map(Content::octets)
    }

    /// Reads what is inside the open element, which starts at this offset, and its end: as XML that needs nothing around it.
    fn markup(&mut self, at: usize, budget: &mut Budget) -> Visit<String>;

    /// Whether something is inside the open element that only XML can say: an attribute that is none of the schema instance
    /// or of references, or text beside elements.
    fn is_marked(&self) -> Visit<bool>;

    /// The prefixed attribute of this name, the last one if there are more, of the open element, which starts at this offset.
    fn told(&mut self, at: usize, wanted: &str) -> Visit<AttributeText>;

    /// The attributes of the element that starts at this offset, but for declarations of namespaces.
    fn attributes(&self, at: usize, budget: &mut Budget) -> Visit<Vec<AttributeValue<'a>>>;

    /// How many elements are in the open one, those of arrays included, and the name of the first that is called otherwise than
    /// the first of all.
    /// Nothing moves. Sequences must know their length before their items are read; the price is a second
    /// pass over them.
    fn count(&self) -> Visit<(u64, Option<&'a str>)>;

    /// Offset of what comes next.
    fn position(&self) -> usize;

    /// How many elements are open, of those that this cursor entered.
    fn depth(&self) -> usize;

    /// Goes to another place in the open element.
    /// `depth` is that of the open element there, as `depth` gave it.
    fn seek(&mut self, at: usize, depth: usize);

    /// The namespace that a prefix stands for at that offset, in an element that is still open here and has no prefix of this name
    /// declared inside it; nothing if it is not declared. Whoever asks from the front to the back reads the document once.
    fn resolve(&mut self, prefix: &str, at: usize, budget: &mut Budget) -> Visit<Option<&str>>;

    /// The same, as a copy.
    fn namespace(&mut self, prefix: &str, at: usize, budget: &mut Budget) -> Visit<Option<String>> {
        Ok(self.resolve(prefix, at, budget)?.map(str::to_owned))
    }
}

/// What a prefix of a piece of XML stands for in the element around it; no default namespace needs no declaration.
fn inherited<'a>(
    cursor: &mut impl Cursor<'a>,
    prefix: &str,
    at: usize,
    budget: &mut Budget,
) -> Visit<Option<String>> {
    Ok(cursor.namespace(prefix, at, budget)?.filter(|namespace| !namespace.is_empty()))
}

/// Whether an attribute says something of a value itself, and not of how it is written.
fn is_data(prefix: &str, local: &str) -> bool {
    match (prefix, local) {
        ("xmlns", _) | ("", "xmlns" | "id" | "href") => false,
        ("", _) => true,
        (_, "nil" | "type" | "Id" | "id" | "Ref" | "ref" | "Type" | "Assembly" | "Size") => false,
        (_, "arrayType" | "itemType" | "arraySize" | "encodingStyle" | "root" | "position" | "offset") => {
            false
        }
        (_, "schemaLocation" | "noNamespaceSchemaLocation") => false,
        _ => true,
    }
}

/// What stands in an open element, to find text beside elements.
#[derive(Default)]
struct ElementContents {
    text: bool,
    element: bool,
}

impl ElementContents {
    /// Whether both do.
    fn is_mixed(&self) -> bool {
        self.text && self.element
    }
}
