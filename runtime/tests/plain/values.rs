//! The values of the plain wire.

use super::PLAIN;
use bytes::Bytes;
use everywire_model::shape::{Enum, Text};
use everywire_model::visit::{Numbers, NumbersMut};
use everywire_model::*;
use std::borrow::Cow;

pub(super) struct PlainCodec;

impl Codec for PlainCodec {
    fn read<'a>(&self, body: &'a Body, visit: &mut dyn FnMut(&mut dyn Source<'a>) -> Visit<()>) -> Visit<()> {
        visit(&mut PlainSource { whole: &body.bytes, rest: &body.bytes, budget: body.budget })
    }
    fn write(&self, visit: &mut dyn FnMut(&mut dyn Sink) -> Visit<()>) -> Visit<Body> {
        let mut out = SendBuffer::new();
        visit(&mut PlainSink(&mut out))?;
        Ok(Body {
            bytes: out.to_vec().into(),
            base: 0,
            little: true,
            dialect: 0,
            context: Context::default(),
            budget: Budget::default(),
            codec: &PlainCodec,
            beside: None,
        })
    }
}

fn unsupported<T>() -> Visit<T> {
    Err(Failure::new(Kind::Unsupported, Initiator::Here, "not plain"))
}

pub(super) struct PlainSink<'r>(pub(super) &'r mut SendBuffer);

macro_rules! put {
    ($($name:ident $type:ty),*) => {
        $(fn $name(&mut self, value: $type) -> Visit<()> {
            self.0.flat().extend_from_slice(&value.to_le_bytes());
            Ok(())
        })*
    };
}

impl Sink for PlainSink<'_> {
    put!(u8 u8, i8 i8, u16 u16, i16 i16, u32 u32, i32 i32, u64 u64, i64 i64, f32 f32, f64 f64);
    fn bool(&mut self, value: bool) -> Visit<()> {
        self.u8(value.into())
    }
    fn char(&mut self, value: char, _: bool) -> Visit<()> {
        self.u32(value.into())
    }
    fn text(&mut self, _: &Text, value: &str) -> Visit<()> {
        self.bytes(&Shape::Void, value.as_bytes())
    }
    fn bytes(&mut self, _: &Shape, value: &[u8]) -> Visit<()> {
        self.u32(u32::try_from(value.len()).unwrap())?;
        self.0.flat().extend_from_slice(value);
        Ok(())
    }
    fn shared(&mut self, _: &Shape, value: &Bytes) -> Visit<()> {
        self.u32(u32::try_from(value.len()).unwrap())?;
        self.0.splice(value.clone());
        Ok(())
    }
    fn numbers(&mut self, values: Numbers<'_>) -> Visit<()> {
        values.put(true, self.0.flat());
        Ok(())
    }
    fn reference(&mut self, value: Option<&Reference>) -> Visit<()> {
        let text = value.map(|reference| PLAIN.print(reference)).unwrap_or_default();
        self.text(&Text::NARROW, &text)
    }
    fn handle(&mut self, _: &Handle) -> Visit<()> {
        unsupported()
    }
    fn open(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        if let Shape::Sequence(_) = shape { self.u32(u32::try_from(len).unwrap()) } else { Ok(()) }
    }
    fn content(&mut self, _: &Shape) -> Visit<()> {
        unsupported()
    }
}

struct PlainSource<'a> {
    whole: &'a Bytes,
    rest: &'a [u8],
    budget: Budget,
}

impl<'a> PlainSource<'a> {
    fn take(&mut self, n: usize) -> Visit<&'a [u8]> {
        let (now, rest) = self.rest.split_at_checked(n).ok_or_else(|| Failure::malformed("too short", 0))?;
        self.rest = rest;
        Ok(now)
    }
}

macro_rules! get {
    ($($name:ident $type:ty),*) => {
        $(fn $name(&mut self) -> Visit<$type> {
            Ok(<$type>::from_le_bytes(self.take(size_of::<$type>())?.try_into().unwrap()))
        })*
    };
}

impl<'a> Source<'a> for PlainSource<'a> {
    get!(u8 u8, i8 i8, u16 u16, i16 i16, u32 u32, i32 i32, u64 u64, i64 i64, f32 f32, f64 f64);
    fn bool(&mut self) -> Visit<bool> {
        Ok(self.u8()? != 0)
    }
    fn char(&mut self, _: bool) -> Visit<char> {
        char::from_u32(self.u32()?).ok_or_else(|| Failure::malformed("no character", 0))
    }
    fn text(&mut self, _: &Text) -> Visit<Cow<'a, str>> {
        let len = self.u32()? as usize;
        std::str::from_utf8(self.take(len)?).map(Cow::Borrowed).map_err(|_| Failure::malformed("no text", 0))
    }
    fn bytes(&mut self, _: &Shape) -> Visit<Cow<'a, [u8]>> {
        let len = self.u32()? as usize;
        self.take(len).map(Cow::Borrowed)
    }
    fn shared(&mut self, _: &Shape) -> Visit<Bytes> {
        let len = self.u32()? as usize;
        self.take(len).map(|part| self.whole.slice_ref(part))
    }
    fn numbers(&mut self, mut into: NumbersMut<'_>) -> Visit<()> {
        let part = self.take(into.len() * into.width())?;
        into.fill(true, part);
        Ok(())
    }
    fn enumerant(&mut self, _: &Enum) -> Visit<i32> {
        self.i32()
    }
    fn reference(&mut self) -> Visit<Option<Reference>> {
        let text = self.text(&Text::NARROW)?;
        if text.is_empty() { Ok(None) } else { PLAIN.parse(&text).map(Some) }
    }
    fn handle(&mut self) -> Visit<Handle> {
        unsupported()
    }
    fn open(&mut self, shape: &Shape) -> Visit<usize> {
        if let Shape::Sequence(_) = shape { Ok(self.u32()? as usize) } else { Ok(0) }
    }
    fn content(&mut self) -> Visit<Shape> {
        unsupported()
    }
    fn close(&mut self, _: &Shape) -> Visit<()> {
        Ok(())
    }
    fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }
}
