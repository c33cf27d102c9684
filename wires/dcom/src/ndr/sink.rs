//! Writing NDR: a `Sink` whose visit is depth first, into a stub where referents stand behind everything
//! around them.
//!
//! States: a stack of frames, one for each open composite, with the number of values still to come; `depth`,
//! the number of open deferred referents, which selects the segment being written; the counts of open structs
//! with `size_is`; the open SAFEARRAYs of several dimensions.
//!
//! Invariants: every value passes `begin`, which counts it against its frame, and `end`, which settles what
//! was deferred once a parameter is complete. A failure in the middle leaves half a value in the buffer, so
//! callers drop all of it (`into_buffer`). Nesting is bounded by `WRITE_DEPTH`. Lengths that 32 bits cannot
//! say are failures, never cut.

mod automation;
mod composites;
mod wrong;

use super::cells::{LastType, LayoutCheck};
use super::frame::{self, Kind, ValuePrefix};
use super::layout::{Embedding, Form, enum_width};
use super::references::{self, References};
use super::segment::Segment;
use super::stack::Stack;
use super::watch::{CountRole, Counts, StructCache};
use super::{POINTED, WINE, body};
use crate::limits::WRITE_DEPTH;
use crate::stub::FIRST_REFERENT;
use crate::violations::{Violation, unsupported};
use automation::Grid;
use bytes::Bytes;
use everywire_model::cells::{Layout, Style};
use everywire_model::shape::{Enum, Order, PointerKind, Shape, Text, TextKind};
use everywire_model::visit::{Numbers, Sink, Visit, put_variant};
use everywire_model::{Body, Budget, Failure, Initiator, Reference, Scalar};
use std::fmt;
use std::sync::Arc;
use wrong::{contradicts, count_of, miscounted, too_long};

/// A composite that is being written; `hoist` is where in the segment the maximum count stands.
type Frame = frame::Frame<usize, SinkState>;

/// What the frames of a sink know beside what those of a source do.
#[derive(Debug, Default)]
struct SinkState {
    /// Whether a deferred referent ends with this composite.
    referent: bool,
    /// Of a VARIANT: where it begins in its segment.
    start: usize,
}

/// Writes one stub.
pub struct NdrSink {
    /// Where the first value stands in its stub.
    base: usize,
    /// Bytes that were in the buffer before.
    start: usize,
    /// Byte order of what is being written; the contents of automation types are little-endian in any stub.
    little: bool,
    stub_little: bool,
    stub: Segment,
    /// What open referents hold, and what is deferred behind them, deeper and deeper.
    deferred: Vec<Segment>,
    /// The segment that is being written: the number of referents open that were deferred.
    depth: usize,
    frames: Stack<Frame>,
    next_referent: u32,
    /// Open VARIANTs, against `VARIANT_DEPTH`.
    variants: u32,
    /// The counts of the open structs that hold sequences whose size is said beside them.
    counts: Vec<Counts>,
    /// The open SAFEARRAYs of several dimensions.
    grids: Vec<Grid>,
    known: StructCache,
    agreed: LayoutCheck,
    last_type: LastType,
    references: Option<Arc<dyn References>>,
    /// Whether the values are for Wine.
    wine: bool,
    /// Whether texts that are parameters stand behind pointers.
    pointed: bool,
    /// The HRESULT of success that the values were written with.
    status: i32,
    /// The maximum count of the next sequence, where it may have fewer elements.
    room: u32,
    /// Of the VARIANT just opened, if it is a SAFEARRAY whose indices do not begin with 0: with what each begins, the leftmost first.
    lower_bounds: Vec<i32>,
}

macro_rules! number {
    ($($name:ident $type:ty),*) => {$(
        #[inline]
        fn $name(&mut self, value: $type) -> Visit<()> {
            self.value(value.to_le_bytes())
        }
    )*};
}

/// Numbers that may say how long a sequence beside them is.
macro_rules! integer {
    ($($name:ident $type:ty),*) => {$(
        #[inline]
        fn $name(&mut self, value: $type) -> Visit<()> {
            self.begin()?;
            self.scalar(value.to_le_bytes());
            if !self.counts.is_empty() {
                self.note(i64::try_from(value).unwrap_or(i64::MAX))?;
            }
            self.end();
            Ok(())
        }
    )*};
}

macro_rules! put {
    ($($name:ident $type:ty),*) => {$(
        #[inline]
        fn $name(&mut self, value: $type) {
            let bytes = if self.little { value.to_le_bytes() } else { value.to_be_bytes() };
            self.segment().put(size_of::<$type>(), &bytes);
        }
    )*};
}

impl NdrSink {
    put!(u16 u16, u32 u32);

    /// A sink for a stub in this byte order.
    pub fn new(little: bool) -> Self {
        Self::at(0, little)
    }

    /// A sink for values that begin `base` bytes into their stub.
    pub fn at(base: usize, little: bool) -> Self {
        let origin = isize::try_from(base % 8).unwrap_or_default();
        Self { base, ..Self::with(Segment::behind(Vec::new(), -origin), 0, little) }
    }

    /// A sink that appends to a buffer whose stub begins at `stub`, which is no further than its end: for a message
    /// whose headers, and perhaps first values, are there already. [`Self::into_bytes`] gives the whole buffer back.
    pub fn into(buffer: Vec<u8>, stub: usize, little: bool) -> Self {
        let start = buffer.len();
        let origin = isize::try_from(stub % 8).unwrap_or_default();
        let base = start.saturating_sub(stub);
        Self { base, ..Self::with(Segment::behind(buffer, origin), start, little) }
    }

    /// The same sink, which asks here for the OBJREFs of references.
    #[must_use]
    pub fn with_references(mut self, references: Arc<dyn References>) -> Self {
        self.wine = references.dialect() == WINE;
        self.references = Some(references);
        self
    }

    /// The same for the results of an interface of another contract language than MIDL, which has no texts in place there.
    #[must_use]
    pub fn with_texts_behind_pointers(self, pointed: bool) -> Self {
        Self { pointed, ..self }
    }

    fn with(segment: Segment, start: usize, little: bool) -> Self {
        Self {
            base: 0,
            start,
            little,
            stub_little: little,
            stub: segment,
            deferred: Vec::new(),
            depth: 0,
            frames: Stack::new(),
            next_referent: FIRST_REFERENT,
            variants: 0,
            counts: Vec::new(),
            grids: Vec::new(),
            known: StructCache::default(),
            agreed: LayoutCheck::default(),
            last_type: LastType::default(),
            references: None,
            wine: false,
            pointed: false,
            status: 0,
            room: 0,
            lower_bounds: Vec::new(),
        }
    }

    /// The HRESULT of success that was said with the values; S_OK if none was.
    /// Codes of success other than S_OK (S_FALSE, say) travel with results; failures never do.
    pub(crate) fn said_status(&self) -> u32 {
        self.status.cast_unsigned()
    }

    /// The stub's bytes, behind what was in the buffer before.
    ///
    /// # Errors
    /// A composite was left open.
    pub fn into_bytes(self) -> Visit<Vec<u8>> {
        if self.frames.is_empty() { Ok(self.stub.into_bytes()) } else { Err(Violation::Misuse.at(0)) }
    }

    /// The buffer as it was before, to be used again after a failure.
    pub fn into_buffer(self) -> Vec<u8> {
        let mut buffer = self.stub.into_bytes();
        buffer.truncate(self.start);
        buffer
    }

    /// The values as a body that [`NDR`](super::NDR) reads.
    ///
    /// # Errors
    /// A composite was left open.
    pub fn into_body(self, budget: Budget) -> Visit<Body> {
        let (base, start, little, status) = (self.base, self.start, self.stub_little, self.status);
        let dialect = if self.wine { WINE } else { 0 } | if self.pointed { POINTED } else { 0 };
        let bytes = Bytes::from(self.into_bytes()?).slice(start..);
        Ok(Body { dialect, ..body(bytes, base, little, budget) }.with_status(status))
    }

    #[inline]
    fn segment(&mut self) -> &mut Segment {
        match self.depth.checked_sub(1).and_then(|index| self.deferred.get_mut(index)) {
            Some(segment) => segment,
            None => &mut self.stub,
        }
    }

    /// A value begins: where does it stand?
    #[inline]
    fn begin(&mut self) -> Visit<Embedding> {
        let (place, before) = self.frames.begin(&mut self.counts).ok_or_else(miscounted)?;
        match before {
            ValuePrefix::Nothing => {}
            ValuePrefix::Align(alignment) => self.segment().align(alignment),
            ValuePrefix::Element => self.mark(),
        }
        Ok(place)
    }

    /// The same for what stands behind a pointer, but in place as an element of a SAFEARRAY of Wine's; whether it is one.
    fn begin_pointed(&mut self) -> Visit<(Embedding, bool)> {
        let in_place = self.wine && self.frames.in_safearray();
        let place = self.begin()?;
        Ok((if in_place { Embedding::Behind } else { place }, in_place))
    }

    /// A whole value without pointers.
    #[inline]
    fn value<const WIDTH: usize>(&mut self, bytes: [u8; WIDTH]) -> Visit<()> {
        self.begin()?;
        self.scalar(bytes);
        self.end();
        Ok(())
    }

    /// A value ended: what the pointers of a parameter point to follows it.
    /// Inside of a composite nothing is settled: C706 14.3.12.3 puts referents behind the outermost
    /// construct.
    #[inline]
    fn end(&mut self) {
        if !self.deferred.is_empty() && self.frames.last().is_none_or(|frame| frame.kind == Kind::Parameters)
        {
            self.settle();
        }
    }

    fn push(&mut self, kind: Kind, left: usize) -> Visit<&mut Frame> {
        if self.frames.len() >= WRITE_DEPTH {
            let limit = WRITE_DEPTH as u64;
            return Err(Failure::over_limit(Initiator::User, "nesting of values", limit + 1, limit));
        }
        Ok(self.frames.push(Frame::new(kind, left)))
    }

    /// A number was written.
    fn note(&mut self, value: i64) -> Visit<()> {
        let chosen = self.frames.take_discriminator();
        let Some(counts) = self.counts.last_mut() else { return Ok(()) };
        if let Some(bits) = chosen {
            return counts.choose(value, bits).map_err(|contradiction| contradicts(&contradiction));
        }
        if !self.frames.counting() {
            return Ok(());
        }
        counts.value(value).map_err(|contradiction| contradicts(&contradiction))?;
        while let Some(((depth, at), max)) = self.counts.last_mut().and_then(Counts::late) {
            let raw = if self.little { max.to_le_bytes() } else { max.to_be_bytes() };
            // What holds the array is still open, so its segment has not been put behind another one yet.
            match depth.checked_sub(1).and_then(|index| self.deferred.get_mut(index)) {
                Some(segment) => segment.patch(at, &raw),
                None => self.stub.patch(at, &raw),
            }
        }
        Ok(())
    }

    /// The value means nothing but "not null"; it has to differ for each pointer, since equal ones of full
    /// pointers mean the same referent.
    fn referent_id(&mut self) {
        let id = self.next_referent;
        self.next_referent = id.wrapping_add(4).max(FIRST_REFERENT);
        self.u32(id);
    }

    /// What stands behind everything that is being written.
    /// A segment for each depth is kept and used again, since settling empties it.
    #[inline]
    fn behind(&mut self) -> &mut Segment {
        if self.deferred.len() <= self.depth {
            self.deferred.push(Segment::floating());
        }
        match self.deferred.get_mut(self.depth) {
            Some(segment) => segment,
            // There are never more open than there are.
            None => &mut self.stub,
        }
    }

    /// Goes where the next deferred referent is written.
    fn descend(&mut self) {
        self.behind();
        self.depth += 1;
    }

    /// Comes back from a deferred referent, which takes what it points to along.
    fn ascend(&mut self) {
        self.settle();
        self.depth = self.depth.saturating_sub(1);
    }

    /// Puts what is deferred behind what is being written.
    fn settle(&mut self) {
        let depth = self.depth.min(self.deferred.len());
        let (open, deferred) = self.deferred.split_at_mut(depth);
        if let Some(deferred) = deferred.first_mut() {
            open.last_mut().unwrap_or(&mut self.stub).settle(deferred);
        }
    }

    /// Writes what a pointer points to: after everything around it if the pointer is inside something, else here.
    #[inline]
    fn referent(&mut self, place: Embedding, write: impl FnOnce(&mut Self)) {
        if place == Embedding::Within {
            self.descend();
            write(self);
            self.ascend();
        } else {
            write(self);
        }
    }
}

impl fmt::Debug for NdrSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NdrSink({} octets written, {} referents open)", self.stub.len(), self.depth)
    }
}

impl Sink for NdrSink {
    number!(f32 f32, f64 f64);
    integer!(u8 u8, i8 i8, u16 u16, i16 i16, u32 u32, i32 i32, u64 u64, i64 i64);

    fn bool(&mut self, value: bool) -> Visit<()> {
        if self.frames.automation() || self.frames.form(&Shape::Bool) == Form::VariantBool {
            self.value(if value { [0xff; 2] } else { [0; 2] })?;
        } else {
            self.value([value.into()])?;
        }
        if self.counts.is_empty() { Ok(()) } else { self.note(value.into()) }
    }

    fn char(&mut self, value: char, wide: bool) -> Visit<()> {
        let misfit = || Failure::bad_argument(format!("{value:?} is not one character here"));
        if wide {
            self.value(u16::try_from(u32::from(value)).map_err(|_| misfit())?.to_le_bytes())?;
        } else {
            self.value([u8::try_from(value).map_err(|_| misfit())?])?;
        }
        if self.counts.is_empty() { Ok(()) } else { self.note(u32::from(value).into()) }
    }

    fn text(&mut self, shape: &Text, value: &str) -> Visit<()> {
        let counted = shape.kind == TextKind::Counted || self.frames.automation();
        let narrow = shape.kind == TextKind::Narrow && !counted;
        // A string ends at its first NUL for every reader in C; a BSTR is counted and may hold some.
        if !counted && value.contains('\0') {
            return Err(Failure::bad_argument("a string with a NUL inside it"));
        }
        let units = if value.is_ascii() { value.len() } else { value.encode_utf16().count() };
        // What a reader in C has room for.
        let size = if narrow { value.len() } else { units };
        if shape.bound.is_some_and(|bound| size > bound as usize) {
            return Err(too_long(size, shape.bound));
        }
        if counted {
            return self.bstr(units, value);
        }
        let counting = !self.counts.is_empty() && self.frames.counting();
        let fixed = self.frames.form(&Shape::Void) == Form::FixedString;
        let place = self.begin()?;
        let count = count_of(1 + if narrow { value.len() } else { units })?;
        let max = if counting { self.counted(Order::ConformantVarying, count)? } else { count };
        if fixed {
            self.u32(0);
            self.u32(count);
            self.characters(narrow, value);
            self.end();
            return Ok(());
        }
        if place == Embedding::Within || (self.pointed && place == Embedding::Top) {
            self.referent_id();
        }
        self.referent(place, |sink| {
            sink.segment().align(4);
            let at = sink.segment().len();
            sink.string(narrow, max, count, value);
            if counting {
                sink.may_grow(Order::ConformantVarying, at);
            }
        });
        self.end();
        Ok(())
    }

    fn bytes(&mut self, shape: &Shape, value: &[u8]) -> Visit<()> {
        // The frame that `open` pushed has counted nothing yet; all octets are written at once, and it is set
        // to complete.
        self.open(shape, value.len())?;
        self.segment().bytes().extend_from_slice(value);
        if let Some(frame) = self.frames.last_mut() {
            frame.left = 0;
        }
        self.close(shape)
    }

    fn numbers(&mut self, values: Numbers<'_>) -> Visit<()> {
        match self.frames.last_mut() {
            Some(frame)
                if matches!(frame.kind, Kind::Items | Kind::Row { .. }) && frame.left == values.len() =>
            {
                frame.left = 0;
            }
            _ => return Err(miscounted()),
        }
        let little = self.little;
        if !values.is_empty() {
            self.segment().align(values.width());
            values.put(little, self.segment().bytes());
        }
        Ok(())
    }

    fn enumerant(&mut self, shape: &Enum, value: i32) -> Visit<()> {
        shape.check(value).map_err(Failure::bad_argument)?;
        if enum_width(shape) == 2 && !self.frames.automation() {
            let short = u16::try_from(value).map_err(|_| unsupported("a member above 65535 in 16 bits"))?;
            self.value(short.to_le_bytes())?;
        } else {
            self.value(value.to_le_bytes())?;
        }
        if self.counts.is_empty() { Ok(()) } else { self.note(value.into()) }
    }

    fn reference(&mut self, value: Option<&Reference>) -> Visit<()> {
        let objref = value.map(|value| references::write(self.references.as_ref(), value)).transpose()?;
        let bare = self.wine && !self.frames.automation();
        let (place, _) = self.begin_pointed()?;
        match objref {
            // Wine has neither a referent id nor a second length, and no padding; an empty one means null.
            objref if bare => {
                let objref = objref.unwrap_or_default();
                let len = count_of(objref.len())?.to_le_bytes();
                self.segment().put(1, &len);
                self.segment().bytes().extend_from_slice(&objref);
            }
            None => self.u32(0),
            Some(objref) => {
                let len = count_of(objref.len())?;
                self.referent_id();
                self.referent(place, |sink| {
                    // Interface pointers keep the stub's byte order where automation has its own.
                    let outer = std::mem::replace(&mut sink.little, sink.stub_little);
                    sink.u32(len);
                    sink.u32(len);
                    sink.segment().bytes().extend_from_slice(&objref);
                    sink.little = outer;
                });
            }
        }
        self.end();
        Ok(())
    }

    fn open(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        match shape.resolved() {
            Shape::Struct(parameters) if parameters.name.is_empty() && self.frames.is_empty() => {
                self.open_fields(Kind::Parameters, parameters, None, false)
            }
            resolved @ Shape::Struct(fields) => self.open_struct(resolved, fields),
            resolved @ Shape::Array(array) => self.open_array(resolved, array, len),
            resolved @ Shape::Sequence(sequence) => {
                if self.frames.row().is_some() {
                    self.open_row(len)
                } else if self.frames.automation() || self.frames.form(shape) == Form::Safearray {
                    self.open_safearray(sequence, len)
                } else {
                    self.open_items(resolved, len)
                }
            }
            resolved @ Shape::Map(_) => self.open_items(resolved, len),
            Shape::Union(union) => self.open_union(union, len),
            resolved @ Shape::Optional(_) => self.open_pointer(resolved, PointerKind::Unique, len),
            resolved @ Shape::Pointer(pointer) => self.open_pointer(resolved, pointer.kind, len),
            Shape::Variant => self.open_variant(),
            _ => Err(Violation::Misuse.at(0)),
        }
    }

    fn content(&mut self, shape: &Shape) -> Visit<()> {
        self.variant_header(shape)
    }

    fn close(&mut self, _: &Shape) -> Visit<()> {
        let Some(frame) = self.frames.pop() else { return Err(Violation::Misuse.at(0)) };
        if frame.left > 0 {
            return Err(miscounted());
        }
        if frame.counting == CountRole::Field {
            self.counts.pop();
        }
        match frame.kind {
            Kind::Row { dimension: 0 } => self.close_grid()?,
            Kind::Variant => self.close_variant(frame.side.start),
            _ => {}
        }
        if let Some(order) = frame.order {
            self.little = order;
        }
        if frame.side.referent {
            self.ascend();
        }
        self.end();
        Ok(())
    }

    #[inline]
    fn words(&mut self, shape: &Shape, values: &[u32]) -> Visit<()> {
        self.flat_words(shape, values)
    }

    #[inline]
    fn whole_variant(&mut self, shape: &Shape, value: Scalar) -> Visit<()> {
        if self.plain_variant(value)? { Ok(()) } else { put_variant(self, shape, value) }
    }

    fn rows(&mut self, element: &Shape, layout: &'static Layout, count: usize) -> Option<Style> {
        self.rows_of(element, layout, count)
    }

    fn row(&mut self, layout: &'static Layout, raw: &[u8], variants: &[Scalar]) -> Visit<bool> {
        self.put_row(layout, raw, variants)
    }

    fn room(&mut self, most: usize) {
        self.room = u32::try_from(most).unwrap_or(u32::MAX);
    }

    fn status(&mut self, status: i32) -> Visit<()> {
        if status < 0 {
            return Err(Failure::bad_argument(format!(
                "{status:#010x} tells of a failure, and came with results"
            ))
            .with_hint("answer with a failure of that code"));
        }
        self.status = status;
        Ok(())
    }
}
