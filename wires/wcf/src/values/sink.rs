//! Writing values as elements.
//!
//! An `ElementSink` takes the visit of a value (`everywire_model::visit::Sink`) and writes elements by the
//! graph of its layout: the next value is the next member of the innermost open composite, so its name and
//! namespace follow from where it comes.
//!
//! State: a stack of frames, one for each open composite, above the frame of the nameless struct (`base`);
//! the namespaces that open elements have declared (`scope`); and the output, which knows what its form
//! needs. `open` pushes a frame, `close` pops it, every value counts its frame's `index` up.
//!
//! Invariants:
//!
//! * A frame holds exactly `len` values when it is closed; more or fewer are `miscounted`. A visit against
//!   the grammar is `Misuse`, and neither panics nor writes a document that does not balance.
//! * An element is declared with the namespaces that it and its members need before its first member is
//!   written, and they go out of `scope` with its end.
//! * Text has only characters that XML has, checked before it is written; octets and numbers always do.
//! * Depth is at most what a reader with .NET's default quota takes, the envelope included
//!   (`frames::push`).
//! * In binary form, lists of the five types that have array records become one record, and items that come
//!   one by one are only counted.
//! * A field that is a header of the message is written like any other and then taken out of the body
//!   (`end_header`).

mod apart;
mod checks;
mod frames;
mod spaces;

use super::graph::{Graph, NamespaceId, Node, NodeId};
use super::layout::Layout;
use super::names::{Notation, XSI, clark, is_untyped, told_type};
use super::output::Output;
use super::{Form, QName};
use crate::dictionary::{Outgoing, Term};
use crate::limits::MAX_DEPTH;
use crate::markup;
use crate::nbfx::notation::{parse_date_time, parse_decimal};
use crate::nbfx::{Item, Text as Value};
use crate::text::check_chars;
use crate::violations::{Violation, unsupported};
use bytes::Bytes;
use everywire_idl::wsdl::lexical::Lexical;
use everywire_idl::wsdl::names::is_name;
use everywire_model::send_buffer::Mark;
use everywire_model::shape::{Enum, Shape, Struct, Text};
use everywire_model::visit::{Encode, Numbers, Sink, Visit};
use everywire_model::{Failure, Reference, SendBuffer};
use frames::{Frame, Graphs, Kind, Scope, ValueStart};
use std::sync::LazyLock;

/// Writes the content of a body, or one value as an element.
pub(super) struct ElementSink<'s> {
    graphs: Graphs<'s>,
    output: Output<'s>,
    /// Frame of the nameless struct, or of the one value that is written.
    base: Frame,
    frames: Vec<Frame>,
    scope: Vec<Scope>,
    /// The default namespace, which the wrapper declares.
    default: Option<NamespaceId>,
    /// Namespaces that were declared before this one are not around the element that is written.
    floor: usize,
    /// The one value, where no layout names it: its graph and node.
    loose: (usize, NodeId),
    /// Elements of fields that are headers.
    /// `None` if there were none.
    headers: Option<Vec<u8>>,
    /// Whether the wrapper's start is written already.
    /// A template holds it then.
    is_started: bool,
    /// Where the attributes of open structs begin, and how many frames there are to each.
    tags: Vec<(usize, Mark)>,
    /// Alternatives that were written of open structs: how many frames there are to each struct, the choice, and the member.
    chosen: Vec<(usize, u32, usize)>,
}

// Whole numbers that no array record of this writer holds.
macro_rules! integers {
    ($($name:ident $type:ty),*) => {$(
        fn $name(&mut self, value: $type) -> Visit<()> {
            self.begin_scalar()?;
            self.output.whole(value.into());
            Ok(())
        }
    )*};
}

// Numbers that may be items of an array record: then only their bytes are written.
macro_rules! collected {
    ($($name:ident $type:ty, $item:ident, $write:ident);*) => {$(
        fn $name(&mut self, value: $type) -> Visit<()> {
            if self.collect(Item::$item, 1)? {
                self.output.items().extend_from_slice(&value.to_le_bytes());
                return Ok(());
            }
            self.begin_scalar()?;
            self.output.$write(value.into());
            Ok(())
        }
    )*};
}

impl<'s> ElementSink<'s> {
    /// A sink for the fields of a layout; without one, for whatever comes. `is_started`: it begins behind the start
    /// of the wrapper.
    #[inline]
    pub(super) fn new(layout: Option<&'s Layout>, is_started: bool, output: Output<'s>) -> Self {
        Self {
            graphs: Graphs::new(layout),
            output,
            base: Frame::new(Kind::Root, 1),
            frames: Vec::new(),
            scope: Vec::new(),
            default: None,
            floor: 0,
            loose: (0, 0),
            headers: None,
            is_started,
            tags: Vec::new(),
            chosen: Vec::new(),
        }
    }

    /// Fields that are headers, as elements.
    ///
    /// # Errors
    /// A composite was left open.
    pub(super) fn finish(&mut self) -> Visit<Option<Vec<u8>>> {
        if !self.frames.is_empty() || self.base.is_open() {
            return Err(misuse());
        }
        // Who has no values to write opens nothing, and so nobody has begun the wrapper, or ended it. Services want it all the
        // same (WS-I Basic Profile 1.1, R2712).
        if !self.base.ends && self.base.index == 0 {
            let layout = self.graphs.layout().filter(|_| !self.is_started);
            let wrapper = layout.and_then(|layout| layout.wrapper.as_ref());
            if let Some((namespace, name)) = wrapper {
                self.output.start(0, name);
                self.output.xmlns(0, namespace);
            }
            if self.is_started || wrapper.is_some() {
                self.output.end();
            }
        }
        Ok(self.headers.take())
    }

    /// Counts items of the array record that is open, if one is.
    fn collect(&mut self, item: Item, count: usize) -> Visit<bool> {
        match self.frames.last_mut() {
            Some(Frame { kind: Kind::Array(kind), index, len, .. }) if *kind == item => {
                if *len - *index < count {
                    return Err(miscounted());
                }
                *index += count;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn begin_octets(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        check_len(shape, len)?;
        if len == 0 {
            self.check_word("")?;
        }
        self.begin_scalar()
    }

    /// How a text is written whose type the neutral model does not have.
    fn notation(&self, begun: ValueStart) -> Option<Notation> {
        let graph = self.graphs.get(begun.graph).ok()?;
        match graph.nodes.get(behind(graph, begun.node)) {
            Some(Node::Leaf(notation)) => *notation,
            _ => None,
        }
    }

    /// A text of such a type.
    ///
    /// # Errors
    /// It is no value of the type, which the receiver would refuse.
    fn typed_text(&mut self, notation: Notation, begun: ValueStart, value: &str) -> Visit<()> {
        let record = match notation {
            Notation::Typed(kind) => {
                let record = match kind {
                    Lexical::Decimal => parse_decimal(value).map(Value::Decimal),
                    // Only the values of operations are records of dates; those inside of types are text.
                    Lexical::DateTime if self.frames.is_empty() => {
                        parse_date_time(value).map(Value::DateTime)
                    }
                    _ => None,
                };
                if record.is_none() && !kind.fits(value) {
                    return Err(self.no_value(value, kind.name()));
                }
                record
            }
            Notation::QName => {
                // The empty name is one that .NET has.
                let local = clark(value).map_or(value, |(_, local)| local);
                if !value.is_empty() && !is_name(local) {
                    return Err(self.no_value(value, "xs:QName"));
                }
                return self.qualified(begun, value);
            }
            // Elements that are open count against the depth that readers take.
            Notation::Markup => {
                let depth = MAX_DEPTH.saturating_sub(self.frames.len() + 3);
                return self.output.markup(&markup::whole(value, depth)?);
            }
        };
        match record {
            Some(record) => self.output.typed(&record, value),
            None => self.output.chars(value),
        }
        Ok(())
    }
}

impl Sink for ElementSink<'_> {
    integers!(u8 u8, i8 i8, u16 u16, i16 i16, u32 u32);
    collected!(i32 i32, I32, whole; i64 i64, I64, whole; f32 f32, F32, float; f64 f64, F64, double);

    fn bool(&mut self, value: bool) -> Visit<()> {
        if self.collect(Item::Bool, 1)? {
            self.output.items().push(value.into());
            return Ok(());
        }
        self.begin_scalar()?;
        self.output.boolean(value);
        self.output.end();
        Ok(())
    }

    fn u64(&mut self, value: u64) -> Visit<()> {
        self.begin_scalar()?;
        self.output.unsigned(value);
        Ok(())
    }

    fn char(&mut self, value: char, _: bool) -> Visit<()> {
        // .NET's char is a unit of UTF-16, and a number on the wire.
        let code = u16::try_from(u32::from(value)).map_err(|_| unsupported("characters above U+FFFF"))?;
        self.u16(code)
    }

    fn text(&mut self, shape: &Text, value: &str) -> Visit<()> {
        if shape.bound.is_some_and(|bound| value.chars().count() > bound as usize) {
            return Err(too_long(value.len(), shape.bound));
        }
        check_chars(value)?;
        self.check_word(value)?;
        let begun = self.begin()?;
        match self.notation(begun) {
            None => self.output.chars(value),
            Some(Notation::QName) if self.output.is_apart() && value.starts_with('{') => {
                return Err(unsupported(
                    "qualified names of a namespace in attributes, or in the text of an element that has them",
                ));
            }
            Some(notation) => self.typed_text(notation, begun, value)?,
        }
        self.output.end();
        // Not before: a qualified name may need a prefix of its own, or the one that was declared.
        self.leave(begun);
        Ok(())
    }

    fn bytes(&mut self, shape: &Shape, value: &[u8]) -> Visit<()> {
        self.begin_octets(shape, value.len())?;
        self.output.octets(value);
        self.output.end();
        Ok(())
    }

    /// Large octets go out from where they lie.
    fn shared(&mut self, shape: &Shape, value: &Bytes) -> Visit<()> {
        self.begin_octets(shape, value.len())?;
        self.output.shared(value);
        self.output.end();
        Ok(())
    }

    fn numbers(&mut self, values: Numbers<'_>) -> Visit<()> {
        let item = match values {
            Numbers::I32(_) => Some(Item::I32),
            Numbers::I64(_) => Some(Item::I64),
            Numbers::F32(_) => Some(Item::F32),
            Numbers::F64(_) => Some(Item::F64),
            _ => None,
        };
        if let Some(item) = item
            && self.collect(item, values.len())?
        {
            values.put(true, self.output.items());
            return Ok(());
        }
        macro_rules! one_by_one {
            ($($variant:ident $name:ident),*) => {
                match values {
                    $(Numbers::$variant(items) => items.iter().try_for_each(|item| self.$name(*item)),)*
                }
            };
        }
        one_by_one!(U16 u16, I16 i16, U32 u32, I32 i32, U64 u64, I64 i64, F32 f32, F64 f64)
    }

    fn enumerant(&mut self, shape: &Enum, value: i32) -> Visit<()> {
        // The type of a derived value is told by its struct.
        if let Some(Frame { kind: Kind::Derived | Kind::Named, index: index @ 0, .. }) =
            self.frames.last_mut()
        {
            *index = 1;
            return Ok(());
        }
        let Some(name) = shape.name_of(value) else {
            let message = format!("{value} is no member of {}", shape.name);
            return Err(Failure::bad_argument(message));
        };
        self.check_word(name)?;
        self.begin_scalar()?;
        self.output.chars(name);
        self.output.end();
        Ok(())
    }

    fn reference(&mut self, value: Option<&Reference>) -> Visit<()> {
        if value.is_some() {
            return Err(unsupported("references to objects"));
        }
        self.nil()
    }

    fn open(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        self.output.within()?;
        // The first value: the nameless struct of an operation, or one value by itself.
        if self.frames.is_empty() && !self.base.is_open() {
            let resolved = shape.resolved();
            if matches!(resolved, Shape::Struct(fields) if fields.name.is_empty() || self.graphs.layout().is_some())
            {
                return self.open_root(resolved);
            }
            if self.base.index == 0 {
                let (graph, node) = Graph::of(shape);
                self.graphs.more.push(graph);
                self.loose = (self.graphs.more.len(), node);
            }
        }
        match shape.resolved() {
            Shape::Optional(_) | Shape::Pointer(_) if len == 0 => {
                if !self.leaves_out()? {
                    self.nil()?;
                }
                self.push(Frame::new(Kind::Maybe, 0))
            }
            Shape::Optional(_) | Shape::Pointer(_) => self.push(Frame::new(Kind::Maybe, 1)),
            Shape::Variant => self.push(Frame::new(Kind::Variant, 1)),
            resolved @ (Shape::Sequence(_) | Shape::Array(_)) => {
                check_len(resolved, len)?;
                self.open_items(len)
            }
            Shape::Map(_) => self.open_items(len.saturating_mul(2)),
            Shape::Struct(fields) => self.open_fields(fields.fields.len()),
            Shape::Union(_) => self.open_union(len),
            _ => Err(misuse()),
        }
    }

    fn content(&mut self, shape: &Shape) -> Visit<()> {
        if !matches!(self.frames.last(), Some(Frame { kind: Kind::Variant, .. })) {
            return Err(misuse());
        }
        if matches!(shape.resolved(), Shape::Void) {
            self.frames.pop();
            self.nil()?;
            return self.push(Frame::new(Kind::Maybe, 0));
        }
        // XML of no type: who reads it finds elements, and asks for nothing else.
        if is_untyped(shape) {
            let (graph, node) = Graph::of(shape);
            self.graphs.more.push(graph);
            let graph = self.graphs.more.len();
            self.frames.pop();
            let scope = self.begin()?.scope;
            return self.push(Frame { graph, node, scope, ..Frame::new(Kind::Told, 1) });
        }
        // The type is told before the value: the reader has no other way to know it.
        let name = told_type(shape)
            .ok_or_else(|| unsupported(format_args!("{} in a value with its own type", shape.noun())))?;
        let (mut graph, node) = Graph::of(shape);
        let namespace = graph.add_namespace(&name.namespace);
        self.graphs.more.push(graph);
        let graph = self.graphs.more.len();
        self.frames.pop();
        let ValueStart { scope, declares, .. } = self.begin()?;
        self.tell_type(graph, namespace, &Term::new(&name.local), declares)?;
        self.push(Frame { graph, node, scope, ..Frame::new(Kind::Told, 1) })
    }

    fn close(&mut self, _: &Shape) -> Visit<()> {
        let is_base = self.frames.is_empty();
        if is_base {
            if !self.base.is_open() {
                return Err(misuse());
            }
            self.end_header();
        }
        let frame = self.frames.last().unwrap_or(&self.base);
        if frame.index != frame.len {
            return Err(miscounted());
        }
        // The element of the last pair; those before ended when the next began.
        if matches!(frame.kind, Kind::Pairs) && frame.len > 0 {
            self.output.end();
        }
        if frame.kind == Kind::Words {
            self.output.end_words();
        }
        if frame.ends {
            self.output.end();
        }
        self.scope.truncate(frame.scope);
        self.leave_choices();
        if is_base {
            (self.base.kind, self.base.len, self.base.index) = (Kind::Root, 0, 0);
        } else {
            self.frames.pop();
        }
        Ok(())
    }
}

/// Appends a body's content: the wrapper element with everything in it. Fields that are headers are returned apart, as
/// elements ready to stand among the envelope's. Large octets become splices of `out`.
///
/// # Errors
/// Whatever the values' own encoding reports; `out` is as before then, but words may have been learned
/// ([`Outgoing::forget`]).
pub fn write_body(
    form: Form,
    layout: &Layout,
    words: &mut Outgoing,
    encode: &dyn Encode,
    out: &mut SendBuffer,
) -> Visit<Option<Vec<u8>>> {
    write_rest(form, layout, false, words, encode, out)
}

/// The same; `started`: the start of the wrapper stands there already, and only what follows it is appended.
///
/// # Errors
/// As [`write_body`].
#[inline]
pub(crate) fn write_rest(
    form: Form,
    layout: &Layout,
    started: bool,
    words: &mut Outgoing,
    encode: &dyn Encode,
    out: &mut SendBuffer,
) -> Visit<Option<Vec<u8>>> {
    let mark = out.mark();
    let mut sink = ElementSink::new(Some(layout), started, Output::new(form, words, out));
    let written = encode.encode(&mut sink).and_then(|()| sink.finish());
    if written.is_err() {
        out.truncate(mark);
    }
    written
}

/// Appends one struct as an element: the detail of a fault, called as the contract says (`element`), or else as its type; `told`:
/// the element tells its type (`xsi:type`).
///
/// # Errors
/// As [`write_body`].
pub fn write_detail(
    form: Form,
    shape: &Struct,
    element: Option<&QName>,
    told: bool,
    words: &mut Outgoing,
    fields: &dyn Encode,
    out: &mut SendBuffer,
) -> Visit<()> {
    write_body(form, &Layout::detail(shape, element, told), words, fields, out).map(drop)
}

/// The bound of a sequence, or the length of an array.
fn check_len(shape: &Shape, len: usize) -> Visit<()> {
    match shape.resolved() {
        Shape::Sequence(shape) if shape.bound.is_some_and(|bound| len > bound as usize) => {
            Err(too_long(len, shape.bound))
        }
        Shape::Array(shape) if shape.len as usize != len => Err(miscounted()),
        _ => Ok(()),
    }
}

#[cold]
fn too_long(len: usize, bound: Option<u32>) -> Failure {
    let bound = bound.unwrap_or(u32::MAX);
    Failure::bad_argument(format!("a length of {len} exceeds the bound of {bound}"))
}

#[cold]
fn miscounted() -> Failure {
    let message = "a composite holds another number of values than it began with";
    Failure::bad_argument(message)
}

#[cold]
fn misuse() -> Failure {
    Violation::Misuse.at(0)
}

/// Words that no layout has.
#[derive(Debug)]
struct InstanceTerms {
    /// They tell that there is no value, and the type of one.
    nil: Term,
    kind: Term,
    /// Their namespace.
    instance: Term,
    /// The name of a value that has none.
    values: Term,
}

static TERMS: LazyLock<InstanceTerms> = LazyLock::new(|| InstanceTerms {
    nil: Term::new("nil"),
    kind: Term::new("type"),
    instance: Term::new(XSI),
    values: Term::new("Values"),
});

/// A node that only points to another.
fn behind(graph: &Graph, mut node: NodeId) -> NodeId {
    while let Some(Node::Same(next) | Node::Maybe(next)) = graph.nodes.get(node) {
        node = *next;
    }
    node
}
