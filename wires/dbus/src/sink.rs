//! Writing values (specification, "Marshaling").
//!
//! The header stands in front and names the signature, so nothing can be written before the first value
//! comes: then the sink spells the signature and has the header written (`Head`). Mostly the first thing is
//! the list of an operation's arguments, whose signature holds for all that follows.
//!
//! `depth` counts open composites. Only maps and unions need a look at each item (`special`, `frames`):
//! entries of a map are aligned, and the value of a union stands in a variant. Arrays are counted in bytes,
//! so their length is patched when they end (`arrays`). Shapes that the wire does not have travel as others:
//! optional values as arrays, unions as a struct of a number and a variant, characters and references as
//! text.

use crate::basics::{BasicWriter, NATIVE_LITTLE, WriteText};
use crate::signature::{alignment_of, check, unspelled};
use crate::{address, limits, names};
use bytes::Bytes;
use everywire_idl::signature as spelling;
use everywire_model::send_buffer::SPLICE;
use everywire_model::shape::{Struct, Text, TextKind};
use everywire_model::visit::Numbers;
use everywire_model::{Failure, Handle, Hold, Initiator, Reference, SendBuffer, Shape, Sink, Visit};
use std::sync::Arc;

/// What stands before the values: it names their signature, which is known when the first of them comes.
pub(crate) trait Head {
    /// Writes it at the end of the buffer. The list is the one that has this signature, if the values are in one.
    fn begin(&mut self, signature: &str, list: Option<&Hold<Struct>>, flat: &mut Vec<u8>) -> Visit<()>;

    /// Writes it as it was the last time, if it was for the same list; whether it did.
    fn repeat(&mut self, _list: &Hold<Struct>, _flat: &mut Vec<u8>) -> bool {
        false
    }
}

/// A list of values whose signature is known, and whether that has handles.
///
/// What is held cannot change, nor can its address be that of something else: that the address is the same is
/// enough. Whatever is compared by address is kept, so the address is not used again.
#[derive(Debug)]
pub(crate) struct CheckedList {
    list: Hold<Struct>,
    pub(crate) handles: bool,
}

impl CheckedList {
    pub(crate) fn new(list: &Hold<Struct>, signature: &str) -> Self {
        Self { list: list.clone(), handles: signature.contains('h') }
    }

    #[inline]
    pub(crate) fn is(&self, list: &Hold<Struct>) -> bool {
        match (&self.list, list) {
            (Hold::Static(held), Hold::Static(list)) => std::ptr::eq(*held, *list),
            (Hold::Shared(held), Hold::Shared(list)) => Arc::ptr_eq(held, list),
            _ => false,
        }
    }
}

/// Nothing stands before the values.
pub(crate) struct EmptyHead;

impl Head for EmptyHead {
    fn begin(&mut self, _: &str, _: Option<&Hold<Struct>>, _: &mut Vec<u8>) -> Visit<()> {
        Ok(())
    }
}

/// Memory that one sink leaves to the next, so that most messages allocate nothing.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The signature.
    pub(crate) spelled: String,
    /// Open arrays: where in the flat buffer the length stands, and the offset of the first element.
    arrays: Vec<(usize, usize)>,
    /// Open maps and unions.
    frames: Vec<Frame>,
    /// Handles that were written.
    pub(crate) handles: Vec<Handle>,
    /// The signature of the body that was passed on last: it was checked.
    pub(crate) passed: String,
}

impl Scratch {
    #[inline]
    fn clear(&mut self) {
        self.spelled.clear();
        self.arrays.clear();
        if !self.frames.is_empty() {
            self.frames.clear();
        }
        if !self.handles.is_empty() {
            self.handles.clear();
        }
    }
}

/// Something open whose items are not simply written one after the other.
#[derive(Debug)]
struct Frame {
    /// Items at this depth are its items.
    depth: u32,
    kind: FrameKind,
}

#[derive(Debug)]
enum FrameKind {
    /// Whether a value comes next, after its key.
    Map { value: bool },
    /// Items so far, and the signature of the arm.
    Union { items: u8, arm: String },
}

/// What was opened first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstOpened {
    No,
    /// A nameless struct is open at the bottom.
    List,
    /// A value stands alone at the bottom.
    Bare,
}

/// A value, as far as its signature goes.
enum Item<'a> {
    Code(char),
    Shape(&'a Shape),
}

/// How a sink is set up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    /// Whether the byte order is not this machine's.
    pub(crate) swap: bool,
    /// Most bytes the message may come to.
    pub(crate) limit: u64,
    /// Whether handles may travel.
    pub(crate) handles: bool,
    /// Whether several values may stand at the bottom without a list around them.
    pub(crate) several: bool,
}

/// Writes values behind what a message's beginning has put into a send buffer.
pub(crate) struct DbusSink<'r, 'h> {
    buffer: &'r mut SendBuffer,
    head: &'h mut dyn Head,
    scratch: &'h mut Scratch,
    /// Length of the send buffer's flat buffer plus this (wrapping) is the offset in the message.
    shift: usize,
    setup: Setup,
    begun: FirstOpened,
    /// Whether an item is to be looked at before it is written.
    special: bool,
    depth: u32,
}

impl<'r, 'h> DbusSink<'r, 'h> {
    /// Writes a message at the end of a send buffer; offsets in it are counted from `base` there.
    #[inline]
    pub(crate) fn new(
        buffer: &'r mut SendBuffer,
        base: usize,
        head: &'h mut dyn Head,
        scratch: &'h mut Scratch,
        setup: Setup,
    ) -> Self {
        scratch.clear();
        let shift = base.wrapping_sub(buffer.flat().len());
        Self { buffer, head, scratch, shift, setup, begun: FirstOpened::No, special: true, depth: 0 }
    }

    /// To be called after the values: a message without any begins here.
    #[inline]
    pub(crate) fn finish(&mut self) -> Visit<()> {
        if self.begun == FirstOpened::No { self.head.begin("", None, self.buffer.flat()) } else { Ok(()) }
    }

    /// Offset in the message.
    pub(crate) fn at(&mut self) -> usize {
        self.put().at()
    }

    #[inline]
    fn put(&mut self) -> BasicWriter<'_> {
        BasicWriter { shift: self.shift, swap: self.setup.swap, out: self.buffer.flat() }
    }

    /// Refuses a part before it is copied, where the message would grow over the limit.
    #[inline]
    fn fits(&mut self, part: usize) -> Visit<()> {
        let size = self.at().saturating_add(part);
        if size as u64 > self.setup.limit { Err(over(size as u64, self.setup.limit)) } else { Ok(()) }
    }

    /// A value is about to be written.
    #[inline]
    fn item(&mut self, code: char) -> Visit<()> {
        if self.special { self.special_item(&Item::Code(code)) } else { Ok(()) }
    }

    /// A value is about to be written at the bottom, in a map, or in a union: writes what has to stand before
    /// it.
    fn special_item(&mut self, item: &Item<'_>) -> Visit<()> {
        if self.depth == 0 {
            self.bare(item)?;
        }
        let at_depth = self.depth;
        let Some(frame) = self.scratch.frames.last_mut().filter(|frame| frame.depth == at_depth) else {
            return Ok(());
        };
        let mut put = BasicWriter { shift: self.shift, swap: self.setup.swap, out: self.buffer.flat() };
        match &mut frame.kind {
            FrameKind::Map { value } => {
                if !*value {
                    put.align(8);
                }
                *value = !*value;
            }
            FrameKind::Union { items, arm } => {
                if *items == 1 {
                    put.signature(arm.as_bytes());
                }
                *items = items.saturating_add(1);
                if *items > 2 || (*items == 2 && arm.is_empty()) {
                    return Err(Failure::bad_argument(
                        "a union has more values than its discriminator selects",
                    ));
                }
            }
        }
        Ok(())
    }

    /// A value at the bottom, without a list around it.
    fn bare(&mut self, item: &Item<'_>) -> Visit<()> {
        if self.begun != FirstOpened::No && !(self.begun == FirstOpened::Bare && self.setup.several) {
            return Err(Failure::bad_argument("a value stands behind the last one"));
        }
        match item {
            Item::Code(code) => self.scratch.spelled.push(*code),
            Item::Shape(shape) => {
                spelling::of(shape, &mut self.scratch.spelled).map_err(|error| unspelled(&error))?;
            }
        }
        if self.begun == FirstOpened::No {
            self.begun = FirstOpened::Bare;
            self.head.begin(&self.scratch.spelled, None, self.buffer.flat())?;
        }
        Ok(())
    }

    /// The arguments or results of an operation, at the bottom.
    #[inline]
    fn list(&mut self, shape: &Shape, list: &Hold<Struct>) -> Visit<()> {
        self.begun = FirstOpened::List;
        self.special = false;
        self.depth = 1;
        if self.head.repeat(list, self.buffer.flat()) {
            return Ok(());
        }
        spelling::of_list(shape, &mut self.scratch.spelled).map_err(|error| unspelled(&error))?;
        self.head.begin(&self.scratch.spelled, Some(list), self.buffer.flat())
    }

    fn enter(&mut self) -> Visit<()> {
        self.depth += 1;
        if self.depth > limits::DEPTH + 1 {
            let (asked, limit) = (u64::from(self.depth), u64::from(limits::DEPTH));
            return Err(Failure::over_limit(Initiator::Here, "nesting of values", asked, limit));
        }
        Ok(())
    }

    fn begin_array(&mut self, alignment: usize) {
        let mut put = self.put();
        put.align(4);
        let index = put.out.len();
        put.u32(0);
        put.align(alignment);
        let start = put.at();
        self.scratch.arrays.push((index, start));
    }

    fn end_array(&mut self) -> Visit<()> {
        let Some((index, start)) = self.scratch.arrays.pop() else {
            return Err(Failure::bad_argument("no array is open"));
        };
        let len = self.at().wrapping_sub(start);
        array_fits(len)?;
        self.put().patch(index, u32::try_from(len).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Items at the present depth are to be looked at.
    fn frame(&mut self, kind: FrameKind) {
        self.scratch.frames.push(Frame { depth: self.depth, kind });
        self.special = true;
    }

    fn end_frame(&mut self) -> Option<Frame> {
        let frame = self.scratch.frames.pop();
        self.special = self.begun == FirstOpened::Bare || !self.scratch.frames.is_empty();
        frame
    }

    /// Bytes of an array of octets are about to be written.
    fn octets(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        count(shape, len)?;
        array_fits(len)?;
        self.fits(len)?;
        if self.special {
            self.special_item(&Item::Shape(shape))?;
        }
        self.put().count(len);
        Ok(())
    }
}

/// Checks the bytes of an array.
fn array_fits(len: usize) -> Visit<()> {
    if len > limits::ARRAY {
        return Err(Failure::over_limit(Initiator::Here, "bytes in a D-Bus array", len, limits::ARRAY));
    }
    Ok(())
}

/// Checks the count of a sequence or array.
fn count(shape: &Shape, len: usize) -> Visit<()> {
    match shape.resolved() {
        Shape::Array(array) => array.check(len).map_err(Failure::bad_argument),
        Shape::Sequence(sequence) => sequence.check(len).map_err(Failure::bad_argument),
        _ => Ok(()),
    }
}

#[cold]
pub(crate) fn unsupported(what: &str) -> Failure {
    Failure::unsupported(format!("{what} cannot travel by D-Bus"))
}

/// Whether a shape that has a signature, and so contains no type that contains itself, has signed octets.
fn has_signed_octet(shape: &Shape) -> bool {
    match shape.resolved() {
        Shape::I8 => true,
        Shape::Struct(fields) => fields.fields.iter().any(|field| has_signed_octet(&field.shape)),
        Shape::Sequence(sequence) => has_signed_octet(&sequence.element),
        Shape::Array(array) => has_signed_octet(&array.element),
        Shape::Map(map) => has_signed_octet(&map.key) || has_signed_octet(&map.value),
        Shape::Optional(content) => has_signed_octet(content),
        Shape::Pointer(pointer) => has_signed_octet(&pointer.target),
        _ => false,
    }
}

/// The failure of a message that would exceed the limit.
#[cold]
pub(crate) fn over(size: u64, limit: u64) -> Failure {
    Failure::over_limit(Initiator::Here, "bytes in a D-Bus message", size, limit)
        .with_hint("raise the message limit on both sides, or send less at a time")
}

macro_rules! primitives {
    ($($name:ident $code:literal $via:ident $convert:expr;)*) => {$(
        #[inline]
        fn $name(&mut self, value: $name) -> Visit<()> {
            self.item($code)?;
            self.put().$via(($convert)(value));
            Ok(())
        }
    )*};
}

impl Sink for DbusSink<'_, '_> {
    primitives! {
        bool 'b' u32 u32::from;
        u8 'y' u8 |value| value;
        i8 'y' u8 i8::cast_unsigned;
        u16 'q' u16 |value| value;
        i16 'n' u16 i16::cast_unsigned;
        u32 'u' u32 |value| value;
        i32 'i' u32 i32::cast_unsigned;
        u64 't' u64 |value| value;
        i64 'x' u64 i64::cast_unsigned;
        f32 'd' u64 |value| f64::from(value).to_bits();
        f64 'd' u64 f64::to_bits;
    }

    fn char(&mut self, value: char, _: bool) -> Visit<()> {
        self.text(&Text::NARROW, value.encode_utf8(&mut [0; 4]))
    }

    fn text(&mut self, shape: &Text, value: &str) -> Visit<()> {
        shape.check(value).map_err(Failure::bad_argument)?;
        match shape.kind {
            TextKind::Path => {
                if !names::is_path(value.as_bytes()) {
                    return Err(Failure::bad_argument(format!("`{value}` is no object path")));
                }
                self.item('o')?;
            }
            TextKind::Signature => {
                if let Err(what) = check(value.as_bytes()) {
                    return Err(Failure::bad_argument(format!("`{value}` is no signature: {what}")));
                }
                self.item('g')?;
                self.put().signature(value.as_bytes());
                return Ok(());
            }
            _ => {
                if value.as_bytes().contains(&0) {
                    return Err(Failure::bad_argument("text with a NUL inside cannot travel by D-Bus"));
                }
                self.fits(value.len())?;
                self.item('s')?;
            }
        }
        self.put().string(value.as_bytes());
        Ok(())
    }

    fn bytes(&mut self, shape: &Shape, value: &[u8]) -> Visit<()> {
        self.octets(shape, value.len())?;
        self.buffer.flat().extend_from_slice(value);
        Ok(())
    }

    fn shared(&mut self, shape: &Shape, value: &Bytes) -> Visit<()> {
        if value.len() < SPLICE {
            return self.bytes(shape, value);
        }
        self.octets(shape, value.len())?;
        self.buffer.splice(value.clone());
        self.shift = self.shift.wrapping_add(value.len());
        Ok(())
    }

    fn numbers(&mut self, values: Numbers<'_>) -> Visit<()> {
        if let Numbers::F32(items) = values {
            self.fits(items.len().saturating_mul(8))?;
            let mut put = self.put();
            for item in items {
                put.u64(f64::from(*item).to_bits());
            }
            return Ok(());
        }
        self.fits(values.len().saturating_mul(values.width()))?;
        values.put(self.setup.swap != NATIVE_LITTLE, self.buffer.flat());
        Ok(())
    }

    fn reference(&mut self, value: Option<&Reference>) -> Visit<()> {
        let text = value.map(address::print).unwrap_or_default();
        if value.is_some() && text.is_empty() {
            return Err(unsupported("a reference to an object that has no D-Bus address"));
        }
        self.text(&Text::NARROW, &text)
    }

    fn handle(&mut self, value: &Handle) -> Visit<()> {
        if !self.setup.handles {
            return Err(unsupported("a handle, over this connection,")
                .with_hint("handles pass over Unix sockets only, where both sides agreed to it"));
        }
        let index = self.scratch.handles.len();
        if index == limits::HANDLES {
            let limit = limits::HANDLES as u64;
            return Err(Failure::over_limit(Initiator::Here, "handles in a message", limit + 1, limit));
        }
        self.item('h')?;
        self.scratch.handles.push(Handle::clone(value));
        self.put().count(index);
        Ok(())
    }

    fn open(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        let resolved = shape.resolved();
        if self.begun == FirstOpened::No
            && let Shape::Struct(list) = resolved
        {
            return self.list(resolved, list);
        }
        if self.special {
            self.special_item(&Item::Shape(resolved))?;
        }
        self.enter()?;
        match resolved {
            Shape::Struct(_) => self.put().align(8),
            Shape::Variant => {}
            Shape::Pointer(_) if len == 0 => return Err(unsupported("a null pointer")),
            // The target is an item of what is around: whatever that needs was done for the pointer.
            Shape::Pointer(_) => {}
            Shape::Sequence(sequence) => {
                count(resolved, len)?;
                self.begin_array(alignment_of(&sequence.element));
            }
            Shape::Array(array) => {
                count(resolved, len)?;
                self.begin_array(alignment_of(&array.element));
            }
            Shape::Optional(target) => self.begin_array(alignment_of(target)),
            Shape::Map(_) => {
                self.begin_array(8);
                self.frame(FrameKind::Map { value: false });
            }
            Shape::Union(union) => {
                self.put().align(8);
                let mut arm = String::new();
                if let Some(selected) = len.checked_sub(1).and_then(|index| union.arms.get(index))
                    && !matches!(selected.field.shape.resolved(), Shape::Void)
                {
                    spelling::of(&selected.field.shape, &mut arm).map_err(|error| unspelled(&error))?;
                }
                self.frame(FrameKind::Union { items: 0, arm });
            }
            other => return Err(Failure::bad_argument(format!("{} is no composite", other.noun()))),
        }
        Ok(())
    }

    fn content(&mut self, shape: &Shape) -> Visit<()> {
        let mut spelled = String::new();
        spelling::of(shape, &mut spelled).map_err(|error| unspelled(&error))?;
        if spelled.contains('y') && has_signed_octet(shape) {
            // Its signature would be that of a byte, and -1 would arrive as 255.
            return Err(
                unsupported("a signed octet in a variant").with_hint("pass it as a 16-bit number (i16)")
            );
        }
        self.put().signature(spelled.as_bytes());
        Ok(())
    }

    fn close(&mut self, shape: &Shape) -> Visit<()> {
        self.depth = self.depth.saturating_sub(1);
        if self.depth == 0 && self.begun == FirstOpened::List {
            // Whatever would follow has no place in the signature.
            self.special = true;
            return Ok(());
        }
        match shape.resolved() {
            Shape::Sequence(_) | Shape::Array(_) | Shape::Optional(_) => self.end_array(),
            Shape::Map(_) => {
                self.end_frame();
                self.end_array()
            }
            Shape::Union(_) => {
                // Without an arm, or with one that holds nothing, the variant holds an octet.
                if let Some(Frame { kind: FrameKind::Union { items: 1, .. }, .. }) = self.end_frame() {
                    let mut put = self.put();
                    put.signature(b"y");
                    put.u8(0);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
