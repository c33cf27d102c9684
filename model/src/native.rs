//! The codec of calls that do not leave the process: where the caller's type is not the servant's, or nobody
//! knows a type, values go through memory in the order and size that this machine has.
//!
//! How values lie. Numbers stand as they are, without alignment; a text, bytes, and the begin and end of
//! composites carry a mark, so that a reader with another contract is told, as on a wire. What has no bytes
//! of its own (references with the options that hide in them, shapes, type codes, handles) lies beside the
//! bytes, in order; so does a large run of octets that somebody shares, since it is then copied nowhere. Nobody else ever sees these bytes.
//!
//! Invariants.
//! * What was written by one contract and is read by the same comes out as it went in.
//! * A reader with another contract gets a failure or other values of its own types, never more elements than
//!   there are octets and parts, and no panic: counts are checked against what is left, and octets against
//!   their end.
//! * A union opens as one of no elements; its discriminator says the rest.
//!
//! Bounds. Only depth (`MOST_LEVELS`): values are this process's own, and as large as the caller made them.

use crate::body::{Attachments, Body, Codec, Context, Handle, Part};
use crate::budget::{Budget, MOST_LEVELS};
use crate::failure::Failure;
use crate::reference::Reference;
use crate::shape::{Enum, Shape, Text};
use crate::typecode::TypeCode;
use crate::visit::{Numbers, NumbersMut, Sink, Source, Visit};
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::Arc;

pub use crate::body::Parts;

/// The codec.
pub static NATIVE: Native = Native;

/// Its type.
#[derive(Debug, Clone, Copy)]
pub struct Native;

const LITTLE: bool = cfg!(target_endian = "little");

const TEXT: u8 = 0xa1;
const BYTES: u8 = 0xa2;
const OPEN: u8 = 0xa3;
const CLOSE: u8 = 0xa4;
/// Bytes that lie beside.
const SHARED: u8 = 0xa5;

/// The shortest run of octets that is shared and not copied.
const LARGE: usize = 4 << 10;

impl Codec for Native {
    fn read<'a>(&self, body: &'a Body, visit: &mut dyn FnMut(&mut dyn Source<'a>) -> Visit<()>) -> Visit<()> {
        visit(&mut Reader { body, at: 0, part: 0, handle: 0, budget: body.budget })
    }

    fn write(&self, visit: &mut dyn FnMut(&mut dyn Sink) -> Visit<()>) -> Visit<Body> {
        let mut writer = Writer::default();
        visit(&mut writer)?;
        let Writer { bytes, parts, handles, status } = writer;
        let beside = (!parts.0.is_empty() || !handles.is_empty() || status != 0)
            .then(|| Arc::new(Attachments { handles, status, parts, ..Attachments::default() }));
        Ok(Body {
            bytes: bytes.into(),
            base: 0,
            little: LITTLE,
            dialect: 0,
            context: Context::default(),
            // They are this process's own.
            budget: Budget { bytes: u64::MAX, elements: u64::MAX, depth: MOST_LEVELS, handles: u32::MAX },
            codec: &NATIVE,
            beside,
        })
    }
}

impl Body {
    /// No values.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            bytes: Bytes::new(),
            base: 0,
            little: LITTLE,
            dialect: 0,
            context: Context::default(),
            budget: Budget::default(),
            codec: &NATIVE,
            beside: None,
        }
    }
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    parts: Parts,
    handles: Vec<Handle>,
    status: i32,
}

impl Writer {
    fn marked(&mut self, mark: u8, bytes: &[u8]) {
        self.bytes.push(mark);
        self.bytes.extend_from_slice(&(bytes.len() as u64).to_ne_bytes());
        self.bytes.extend_from_slice(bytes);
    }
}

macro_rules! write {
    ($($name:ident)*) => {
        $(fn $name(&mut self, value: $name) -> Visit<()> {
            self.bytes.extend_from_slice(&value.to_ne_bytes());
            Ok(())
        })*
    };
}

impl Sink for Writer {
    write!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

    fn bool(&mut self, value: bool) -> Visit<()> {
        self.u8(value.into())
    }

    fn char(&mut self, value: char, _: bool) -> Visit<()> {
        self.u32(value.into())
    }

    fn text(&mut self, _: &Text, value: &str) -> Visit<()> {
        self.marked(TEXT, value.as_bytes());
        Ok(())
    }

    fn bytes(&mut self, _: &Shape, value: &[u8]) -> Visit<()> {
        self.marked(BYTES, value);
        Ok(())
    }

    fn shared(&mut self, shape: &Shape, value: &Bytes) -> Visit<()> {
        if value.len() < LARGE {
            return self.bytes(shape, value);
        }
        self.parts.0.push(Part::Octets(value.clone()));
        self.u8(SHARED)
    }

    fn numbers(&mut self, values: Numbers<'_>) -> Visit<()> {
        values.put(LITTLE, &mut self.bytes);
        Ok(())
    }

    fn reference(&mut self, value: Option<&Reference>) -> Visit<()> {
        self.parts.0.push(Part::Reference(value.cloned()));
        Ok(())
    }

    fn type_code(&mut self, value: &TypeCode) -> Visit<()> {
        self.parts.0.push(Part::TypeCode(value.clone()));
        Ok(())
    }

    fn handle(&mut self, value: &Handle) -> Visit<()> {
        self.handles.push(Arc::clone(value));
        Ok(())
    }

    fn open(&mut self, _: &Shape, len: usize) -> Visit<()> {
        self.bytes.push(OPEN);
        self.u64(len as u64)
    }

    fn content(&mut self, shape: &Shape) -> Visit<()> {
        self.parts.0.push(Part::Shape(shape.clone()));
        Ok(())
    }

    fn close(&mut self, _: &Shape) -> Visit<()> {
        self.u8(CLOSE)
    }

    fn status(&mut self, status: i32) -> Visit<()> {
        self.status = status;
        Ok(())
    }
}

struct Reader<'a> {
    body: &'a Body,
    at: usize,
    part: usize,
    handle: usize,
    budget: Budget,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Visit<&'a [u8]> {
        let end = self.at.checked_add(len);
        match end.and_then(|end| self.body.bytes.get(self.at..end)) {
            Some(taken) => {
                self.at += len;
                Ok(taken)
            }
            None => Err(Failure::malformed("the values end too soon: the contracts differ", self.at)),
        }
    }

    fn fixed<const N: usize>(&mut self) -> Visit<[u8; N]> {
        let mut fixed = [0; N];
        fixed.copy_from_slice(self.take(N)?);
        Ok(fixed)
    }

    fn mark(&mut self, wanted: u8, noun: &str) -> Visit<()> {
        let at = self.at;
        let [found] = self.fixed()?;
        if found == wanted {
            return Ok(());
        }
        Err(Failure::malformed(format_args!("{noun} was expected: the contracts differ"), at))
    }

    fn marked(&mut self, mark: u8, noun: &str) -> Visit<&'a [u8]> {
        self.mark(mark, noun)?;
        let len = usize::try_from(self.u64()?).unwrap_or(usize::MAX);
        self.take(len)
    }

    /// Octets, which were written at once or one by one.
    fn octets(&mut self) -> Visit<&'a [u8]> {
        if self.body.bytes.get(self.at) != Some(&OPEN) {
            return self.marked(BYTES, "bytes");
        }
        let bytes = self.marked(OPEN, "bytes")?;
        self.mark(CLOSE, "the end of a composite")?;
        Ok(bytes)
    }

    /// The octets that lie beside, if they do.
    fn beside(&mut self) -> Visit<Option<&'a Bytes>> {
        if self.body.bytes.get(self.at) != Some(&SHARED) {
            return Ok(None);
        }
        self.at += 1;
        match self.part() {
            Some(Part::Octets(octets)) => Ok(Some(octets)),
            _ => Err(self.lacks("bytes")),
        }
    }

    fn part(&mut self) -> Option<&'a Part> {
        let part = self.body.beside.as_ref()?.parts.0.get(self.part)?;
        self.part += 1;
        Some(part)
    }

    /// What is left: octets, and what stands beside them.
    fn rest(&self) -> usize {
        let beside =
            self.body.beside.as_ref().map_or(0, |beside| beside.parts.0.len() + beside.handles.len());
        self.body.bytes.len().saturating_sub(self.at) + beside
    }

    fn lacks(&self, noun: &str) -> Failure {
        Failure::malformed(format_args!("{noun} was expected: the contracts differ"), self.at)
    }
}

macro_rules! read {
    ($($name:ident)*) => {
        $(fn $name(&mut self) -> Visit<$name> {
            self.fixed().map($name::from_ne_bytes)
        })*
    };
}

impl<'a> Source<'a> for Reader<'a> {
    read!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

    fn bool(&mut self) -> Visit<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.lacks("a boolean")),
        }
    }

    fn char(&mut self, _: bool) -> Visit<char> {
        let value = self.u32()?;
        char::from_u32(value).ok_or_else(|| self.lacks("a character"))
    }

    fn text(&mut self, _: &Text) -> Visit<Cow<'a, str>> {
        let bytes = self.marked(TEXT, "a text")?;
        std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| self.lacks("a text"))
    }

    fn bytes(&mut self, _: &Shape) -> Visit<Cow<'a, [u8]>> {
        match self.beside()? {
            Some(octets) => Ok(Cow::Borrowed(octets)),
            None => self.octets().map(Cow::Borrowed),
        }
    }

    fn shared(&mut self, _: &Shape) -> Visit<Bytes> {
        if let Some(octets) = self.beside()? {
            return Ok(octets.clone());
        }
        self.octets().map(|bytes| self.body.bytes.slice_ref(bytes))
    }

    fn numbers(&mut self, mut into: NumbersMut<'_>) -> Visit<()> {
        let len = into.len().checked_mul(into.width()).ok_or_else(|| self.lacks("a number"))?;
        let bytes = self.take(len)?;
        into.fill(LITTLE, bytes);
        Ok(())
    }

    fn enumerant(&mut self, shape: &Enum) -> Visit<i32> {
        shape.check(self.i32()?).map_err(|what| Failure::malformed(what, self.at))
    }

    fn reference(&mut self) -> Visit<Option<Reference>> {
        match self.part() {
            Some(Part::Reference(reference)) => Ok(reference.clone()),
            _ => Err(self.lacks("a reference")),
        }
    }

    fn type_code(&mut self) -> Visit<TypeCode> {
        match self.part() {
            Some(Part::TypeCode(code)) => Ok(code.clone()),
            _ => Err(self.lacks("a type code")),
        }
    }

    fn handle(&mut self) -> Visit<Handle> {
        let handle = self.body.handles().get(self.handle).ok_or_else(|| self.lacks("a handle"))?;
        self.handle += 1;
        Ok(Arc::clone(handle))
    }

    fn open(&mut self, shape: &Shape) -> Visit<usize> {
        self.mark(OPEN, "a composite")?;
        self.budget.enter()?;
        let len = usize::try_from(self.u64()?).unwrap_or(usize::MAX);
        // Each element has an octet, or stands beside them: with another contract anything may be taken for a count.
        if len > self.rest() {
            return Err(self.lacks("a composite"));
        }
        Ok(if matches!(shape.resolved(), Shape::Union(_)) { 0 } else { len })
    }

    fn content(&mut self) -> Visit<Shape> {
        match self.part() {
            Some(Part::Shape(shape)) => Ok(shape.clone()),
            _ => Err(self.lacks("the type of a value")),
        }
    }

    fn close(&mut self, _: &Shape) -> Visit<()> {
        self.budget.leave();
        self.mark(CLOSE, "the end of a composite")
    }

    fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    fn status(&self) -> i32 {
        self.body.status()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::failure::Kind;

    fn written(shape: &Shape, len: usize) -> Body {
        NATIVE.write(&mut |sink| sink.open(shape, len).and_then(|()| sink.close(shape))).unwrap()
    }

    #[test]
    fn a_count_is_no_larger_than_what_is_there() {
        let shape = Shape::sequence(Shape::U32);
        let read = |len| written(&shape, len).read(|source| source.open(&shape));
        assert!(read(0).is_ok());
        for len in [2, 1 << 40, usize::MAX] {
            assert_eq!(read(len).unwrap_err().kind(), Kind::Malformed, "{len}");
        }
    }

    #[test]
    fn a_large_run_of_octets_is_copied_nowhere() {
        let shape = Shape::sequence(Shape::U8);
        for len in [0, 1, LARGE - 1, LARGE, 1 << 20] {
            let octets = Bytes::from(vec![7; len]);
            let body =
                NATIVE.write(&mut |sink| sink.i32(1).and_then(|()| sink.shared(&shape, &octets))).unwrap();
            let read = body.read(|source| source.i32().and_then(|_| source.shared(&shape))).unwrap();
            let same =
                body.read(|source| source.i32().map(drop).and_then(|()| Ok(source.bytes(&shape)?.len())));
            assert_eq!((&read, same.unwrap()), (&octets, len));
            if len >= LARGE {
                assert_eq!(read.as_ptr(), octets.as_ptr(), "{len}");
                assert!(body.bytes.len() < LARGE);
            }
        }
    }

    #[test]
    fn a_mark_of_octets_that_lie_nowhere_is_refused() {
        let shape = Shape::sequence(Shape::U8);
        let body = NATIVE.write(&mut |sink| sink.u8(SHARED)).unwrap();
        assert_eq!(body.read(|source| source.shared(&shape)).unwrap_err().kind(), Kind::Malformed);
        assert_eq!(body.read(|source| source.bytes(&shape).map(drop)).unwrap_err().kind(), Kind::Malformed);
    }

    #[test]
    fn references_and_handles_need_no_octets() {
        let shape = Shape::sequence(Shape::Reference(crate::Hold::new(crate::shape::Referent {
            name: Default::default(),
            id: Default::default(),
        })));
        let body = NATIVE
            .write(&mut |sink| {
                sink.open(&shape, 40)?;
                (0..40).try_for_each(|_| sink.reference(None))?;
                sink.close(&shape)
            })
            .unwrap();
        let read = body.read(|source| {
            let len = source.open(&shape)?;
            (0..len).try_for_each(|_| source.reference().map(drop))?;
            source.close(&shape)
        });
        assert!(read.is_ok());
    }
}
