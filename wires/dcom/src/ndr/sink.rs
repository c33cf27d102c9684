//! Writing NDR.

use super::layout::{Place, alignment, enum_width, tail_of};
use super::segment::Segment;
use super::variant::{self, USER};
use super::{NDR, objref};
use crate::limits::{VARIANT_DEPTH, WRITE_DEPTH};
use crate::violations::{Violation, unsupported};
use bytes::Bytes;
use everywire_model::shape::{Enum, Order, PointerKind, Shape, Text, TextKind};
use everywire_model::visit::{Numbers, Sink, Visit};
use everywire_model::{Body, Budget, Failure, Handle, Initiator, Kind as Why, Reference};

/// Referent ids count up from here in fours, as Windows does.
const FIRST_REFERENT: u32 = 0x0002_0000;

/// Writes one stub.
#[derive(Debug)]
pub struct NdrSink {
    base: usize,
    /// Byte order of what is being written; the contents of automation types are little-endian in any stub.
    little: bool,
    stub_little: bool,
    /// The stub, and the referents whose pointers are open, the innermost last.
    segments: Vec<Segment>,
    frames: Vec<Frame>,
    next_referent: u32,
    variants: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Parameters,
    Struct,
    Items,
    Union,
    Maybe,
    Variant,
}

#[derive(Debug)]
struct Frame {
    kind: Kind,
    /// Values still to come, where that is known.
    left: usize,
    /// Where in the segment the maximum count stands, which the struct's last field will know.
    hoist: Option<usize>,
    /// Whether values are held as in a VARIANT.
    automation: bool,
    /// Whether the segment ends with this composite.
    owns_segment: bool,
}

macro_rules! number {
    ($($name:ident $type:ty),*) => {$(
        fn $name(&mut self, value: $type) -> Visit<()> {
            self.begin()?;
            self.$name(value);
            self.end();
            Ok(())
        }
    )*};
}

macro_rules! put {
    ($($name:ident $type:ty),*) => {$(
        fn $name(&mut self, value: $type) {
            let bytes = if self.little { value.to_le_bytes() } else { value.to_be_bytes() };
            self.segment().put(size_of::<$type>(), &bytes);
        }
    )*};
}

/// Numbers in the current byte order, aligned.
trait Put {
    fn segment(&mut self) -> &mut Segment;
}

impl Put for NdrSink {
    fn segment(&mut self) -> &mut Segment {
        if self.segments.is_empty() {
            self.segments.push(Segment::at(self.base));
        }
        let last = self.segments.len() - 1;
        &mut self.segments[last]
    }
}

impl NdrSink {
    put!(u8 u8, i8 i8, u16 u16, i16 i16, u32 u32, i32 i32, u64 u64, i64 i64, f32 f32, f64 f64);

    /// A sink for a stub in this byte order.
    pub fn new(little: bool) -> Self {
        Self::at(0, little)
    }

    /// A sink for values that begin `base` bytes into their stub.
    pub fn at(base: usize, little: bool) -> Self {
        Self {
            base,
            little,
            stub_little: little,
            segments: vec![Segment::at(base)],
            frames: Vec::new(),
            next_referent: FIRST_REFERENT,
            variants: 0,
        }
    }

    /// The stub's bytes.
    ///
    /// # Errors
    /// A composite was left open.
    pub fn into_bytes(mut self) -> Visit<Vec<u8>> {
        match self.segments.pop() {
            Some(segment) if self.frames.is_empty() && self.segments.is_empty() => Ok(segment.into_bytes()),
            _ => Err(Violation::Misuse.at(0)),
        }
    }

    /// The stub as a body that [`NDR`] reads.
    ///
    /// # Errors
    /// A composite was left open.
    pub fn into_body(self, budget: Budget) -> Visit<Body> {
        let (base, little) = (self.base, self.stub_little);
        let bytes = self.into_bytes()?.into();
        Ok(Body {
            bytes,
            base,
            little,
            dialect: 0,
            budget,
            codec: &NDR,
            context: Bytes::new(),
            beside: None,
        })
    }

    /// A value begins: where does it stand?
    fn begin(&mut self) -> Visit<Place> {
        let Some(frame) = self.frames.last_mut() else { return Ok(Place::Top) };
        match frame.left.checked_sub(1) {
            Some(left) => frame.left = left,
            None => return Err(miscounted()),
        }
        Ok(match frame.kind {
            Kind::Parameters => Place::Top,
            Kind::Maybe => Place::Behind,
            Kind::Variant => Place::Arm,
            Kind::Struct if frame.left == 0 && frame.hoist.is_some() => Place::Tail,
            _ => Place::Within,
        })
    }

    /// A value ended: what the pointers of a parameter point to follows it.
    fn end(&mut self) {
        if self.frames.last().is_none_or(|frame| frame.kind == Kind::Parameters) {
            self.segment().settle();
        }
    }

    fn push(&mut self, kind: Kind, left: usize) -> Visit<&mut Frame> {
        if self.frames.len() >= WRITE_DEPTH {
            let limit = WRITE_DEPTH as u64;
            return Err(Failure::over_limit(Initiator::User, "nesting of values", limit + 1, limit));
        }
        self.frames.push(Frame { kind, left, hoist: None, automation: false, owns_segment: false });
        self.frames.last_mut().ok_or_else(|| Violation::Misuse.at(0))
    }

    fn automation(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.automation)
    }

    fn referent_id(&mut self) {
        let id = self.next_referent;
        self.next_referent = id.wrapping_add(4).max(FIRST_REFERENT);
        self.u32(id);
    }

    /// Writes what a pointer points to: after everything around it if the pointer is inside something, else here.
    fn referent(&mut self, place: Place, write: impl FnOnce(&mut Self)) {
        if place == Place::Within {
            self.segments.push(Segment::floating());
            write(self);
            self.defer();
        } else {
            write(self);
        }
    }

    /// Ends the innermost segment.
    fn defer(&mut self) {
        if let Some(referent) = self.segments.pop() {
            self.segment().defer(referent);
        }
    }

    /// FLAGGED_WORD_BLOB (MS-OAUT 2.2.23.1). Empty text is a null BSTR: the two mean the same.
    fn blob(&mut self, units: &[u16]) {
        let outer = std::mem::replace(&mut self.little, true);
        let len = units.len() as u32;
        self.u32(len);
        self.u32(if units.is_empty() { variant::NULL_BSTR } else { 2 * len });
        self.u32(len);
        for unit in units {
            self.u16(*unit);
        }
        self.little = outer;
    }

    /// Opens a sequence or map of `len` elements.
    fn open_items(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        let (order, bound, values) = match shape {
            Shape::Sequence(sequence) => (sequence.order, sequence.bound, 1),
            _ => (Order::Conformant, None, 2),
        };
        let count = count_of(len)?;
        if bound.is_some_and(|bound| count > bound) {
            return Err(too_long(len, bound));
        }
        let hoist = self.frames.last().and_then(|frame| frame.hoist);
        let place = self.begin()?;
        let mut owns_segment = false;
        match (place, hoist) {
            (Place::Arm, _) => self.open_safearray(shape, count)?,
            (Place::Tail, Some(at)) => {
                let raw = if self.little { count.to_le_bytes() } else { count.to_be_bytes() };
                self.segment().patch(at, &raw);
            }
            (Place::Within | Place::Tail, _) if order != Order::Varying => {
                self.referent_id();
                self.segments.push(Segment::floating());
                owns_segment = true;
                self.u32(count);
            }
            _ if order != Order::Varying => self.u32(count),
            _ => {}
        }
        if order != Order::Conformant && place != Place::Arm {
            self.u32(0);
            self.u32(count);
        }
        let frame = self.push(Kind::Items, len.saturating_mul(values))?;
        frame.automation = place == Place::Arm;
        frame.owns_segment = owns_segment;
        Ok(())
    }

    /// SAFEARRAY of one dimension (MS-OAUT 2.2.30.10), behind the two pointers that a VARIANT reaches it by.
    fn open_safearray(&mut self, shape: &Shape, count: u32) -> Visit<()> {
        let element = variant::type_of(shape)? & !variant::ARRAY;
        let (sf_type, features, width) = variant::safearray_of(element)?;
        self.referent_id();
        self.referent_id();
        self.u32(1);
        self.u16(1);
        self.u16(features);
        self.u32(width);
        self.u32(u32::from(element) << 16);
        self.u32(sf_type);
        self.u32(count);
        self.referent_id();
        self.u32(count);
        self.u32(0);
        self.u32(count);
        Ok(())
    }

    fn open_pointer(&mut self, kind: PointerKind, len: usize) -> Visit<()> {
        let place = self.begin()?;
        let present = len > 0;
        let mut owns_segment = false;
        match (kind, present) {
            (PointerKind::Ref, false) => return Err(Violation::NullReference.at(0)),
            // A reference pointer that is a parameter, or stands behind a pointer, leaves no trace.
            (PointerKind::Ref, true) if matches!(place, Place::Top | Place::Behind) => {}
            (_, false) => self.u32(0),
            (_, true) => {
                self.referent_id();
                if place == Place::Within {
                    self.segments.push(Segment::floating());
                    owns_segment = true;
                }
            }
        }
        let frame = self.push(Kind::Maybe, usize::from(present))?;
        frame.owns_segment = owns_segment;
        frame.automation = place == Place::Arm;
        Ok(())
    }

    fn open_variant(&mut self) -> Visit<()> {
        if self.variants >= VARIANT_DEPTH {
            return Err(Violation::VariantDepth.at(0));
        }
        if self.begin()? == Place::Arm {
            // VT_BYREF | VT_VARIANT: a pointer to the pointer that a VARIANT is.
            self.referent_id();
        }
        self.u32(USER);
        self.variants += 1;
        self.little = true;
        let mut segment = Segment::floating();
        segment.align(8);
        self.segments.push(segment);
        let frame = self.push(Kind::Variant, 1)?;
        frame.owns_segment = true;
        frame.automation = true;
        Ok(())
    }

    /// `clSize` counts everything that belongs to the VARIANT in units of 8 bytes; the last one need not be full.
    fn close_variant(&mut self) {
        let segment = self.segment();
        segment.settle();
        let size = segment.len().div_ceil(8) as u32;
        segment.patch(0, &size.to_le_bytes());
        self.variants -= 1;
        self.little = self.variants > 0 || self.stub_little;
    }
}

impl Sink for NdrSink {
    number!(u8 u8, i8 i8, u16 u16, i16 i16, u32 u32, i32 i32, u64 u64, i64 i64, f32 f32, f64 f64);

    fn bool(&mut self, value: bool) -> Visit<()> {
        let automation = self.automation();
        self.begin()?;
        if automation {
            self.u16(if value { 0xffff } else { 0 });
        } else {
            self.u8(value.into());
        }
        self.end();
        Ok(())
    }

    fn char(&mut self, value: char, wide: bool) -> Visit<()> {
        let misfit = || {
            Failure::new(Why::BadArgument, Initiator::User, format!("{value:?} is not one character here"))
        };
        self.begin()?;
        if wide {
            self.u16(u16::try_from(u32::from(value)).map_err(|_| misfit())?);
        } else {
            self.u8(u8::try_from(value).map_err(|_| misfit())?);
        }
        self.end();
        Ok(())
    }

    fn text(&mut self, shape: &Text, value: &str) -> Visit<()> {
        let counted = shape.kind == TextKind::Counted || self.automation();
        if !counted && value.contains('\0') {
            return Err(Failure::new(Why::BadArgument, Initiator::User, "a string with a NUL inside it"));
        }
        if shape.bound.is_some_and(|bound| value.encode_utf16().count() > bound as usize) {
            return Err(too_long(value.len(), shape.bound));
        }
        let place = self.begin()?;
        if counted {
            let units: Vec<u16> = value.encode_utf16().collect();
            count_of(units.len().saturating_mul(2))?;
            match place {
                Place::Arm => self.referent_id(),
                _ => self.u32(USER),
            }
            self.referent(place, |sink| sink.blob(&units));
        } else {
            let units: Vec<u16> = match shape.kind {
                TextKind::Narrow => value.bytes().map(u16::from).chain([0]).collect(),
                _ => value.encode_utf16().chain([0]).collect(),
            };
            let count = count_of(units.len())?;
            if place == Place::Within {
                self.referent_id();
            }
            let narrow = shape.kind == TextKind::Narrow;
            self.referent(place, |sink| {
                sink.u32(count);
                sink.u32(0);
                sink.u32(count);
                for unit in units {
                    if narrow { sink.u8(unit as u8) } else { sink.u16(unit) }
                }
            });
        }
        self.end();
        Ok(())
    }

    fn bytes(&mut self, shape: &Shape, value: &[u8]) -> Visit<()> {
        self.open(shape, value.len())?;
        self.segment().bytes().extend_from_slice(value);
        if let Some(frame) = self.frames.last_mut() {
            frame.left = 0;
        }
        self.close(shape)
    }

    fn numbers(&mut self, values: Numbers<'_>) -> Visit<()> {
        match self.frames.last_mut() {
            Some(frame) if frame.kind == Kind::Items && frame.left == values.len() => frame.left = 0,
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
        if shape.name_of(value).is_none() {
            let message = format!("{value} is no member of {}", shape.name);
            return Err(Failure::new(Why::BadArgument, Initiator::User, message));
        }
        self.begin()?;
        if enum_width(shape) == 2 && !self.automation() {
            let short = u16::try_from(value).map_err(|_| unsupported("a member above 65535 in 16 bits"))?;
            self.u16(short);
        } else {
            self.i32(value);
        }
        self.end();
        Ok(())
    }

    fn reference(&mut self, value: Option<&Reference>) -> Visit<()> {
        let objref = value.map(objref::print).transpose()?;
        let place = self.begin()?;
        match objref {
            None => self.u32(0),
            Some(objref) => {
                let len = count_of(objref.len())?;
                self.referent_id();
                self.referent(place, |sink| {
                    let outer = std::mem::replace(&mut sink.little, sink.stub_little);
                    sink.u32(len);
                    sink.u32(len);
                    sink.segment().bytes().extend_from_slice(objref);
                    sink.little = outer;
                });
            }
        }
        self.end();
        Ok(())
    }

    fn handle(&mut self, _: &Handle) -> Visit<()> {
        Err(unsupported("handles of the operating system"))
    }

    fn open(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        match shape.resolved() {
            Shape::Struct(parameters) if parameters.name.is_empty() && self.frames.is_empty() => {
                self.push(Kind::Parameters, parameters.fields.len())?;
            }
            resolved @ Shape::Struct(fields) => {
                let inherited = self.frames.last().and_then(|frame| frame.hoist);
                let hoist = match self.begin()? {
                    Place::Arm => return Err(unsupported("a struct in a VARIANT")),
                    Place::Tail => inherited,
                    Place::Within => None,
                    Place::Top | Place::Behind => tail_of(fields).map(|_| {
                        self.u32(0);
                        self.segment().len() - 4
                    }),
                };
                self.segment().align(alignment(resolved, hoist.is_some()));
                self.push(Kind::Struct, fields.fields.len())?.hoist = hoist;
            }
            Shape::Array(array) => {
                if self.begin()? == Place::Arm {
                    return Err(unsupported("a fixed array in a VARIANT"));
                }
                if array.len as usize != len {
                    return Err(miscounted());
                }
                self.push(Kind::Items, len)?;
            }
            resolved @ (Shape::Sequence(_) | Shape::Map(_)) => self.open_items(resolved, len)?,
            Shape::Union(_) => {
                if self.begin()? == Place::Arm {
                    return Err(unsupported("a union in a VARIANT"));
                }
                self.push(Kind::Union, 1 + usize::from(len > 0))?;
            }
            Shape::Optional(_) => self.open_pointer(PointerKind::Unique, len)?,
            Shape::Pointer(pointer) => self.open_pointer(pointer.kind, len)?,
            Shape::Variant => self.open_variant()?,
            _ => return Err(Violation::Misuse.at(0)),
        }
        Ok(())
    }

    fn content(&mut self, shape: &Shape) -> Visit<()> {
        let vt = variant::type_of(shape)?;
        let Some(frame) = self.frames.last_mut().filter(|frame| frame.kind == Kind::Variant) else {
            return Err(Violation::Misuse.at(0));
        };
        frame.left = usize::from(!matches!(shape.resolved(), Shape::Void));
        self.u32(0);
        self.u32(0);
        self.u16(vt);
        self.u16(0);
        self.u16(0);
        self.u16(0);
        self.u32(variant::discriminant(vt));
        Ok(())
    }

    fn close(&mut self, _: &Shape) -> Visit<()> {
        let Some(frame) = self.frames.pop() else { return Err(Violation::Misuse.at(0)) };
        if frame.left > 0 {
            return Err(miscounted());
        }
        if frame.kind == Kind::Variant {
            self.close_variant();
        }
        if frame.owns_segment {
            self.defer();
        }
        self.end();
        Ok(())
    }

    fn shared(&mut self, shape: &Shape, value: &Bytes) -> Visit<()> {
        self.bytes(shape, value)
    }
}

fn count_of(len: usize) -> Visit<u32> {
    u32::try_from(len)
        .map_err(|_| Failure::over_limit(Initiator::User, "elements", len as u64, u32::MAX.into()))
}

fn too_long(len: usize, bound: Option<u32>) -> Failure {
    let bound = bound.unwrap_or(u32::MAX);
    Failure::new(Why::BadArgument, Initiator::User, format!("a length of {len} exceeds the bound of {bound}"))
}

fn miscounted() -> Failure {
    Failure::new(
        Why::BadArgument,
        Initiator::User,
        "a composite holds another number of values than it began with",
    )
}
