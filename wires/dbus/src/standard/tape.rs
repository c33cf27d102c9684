//! A tape: values as they were written, to be written again to another sink.
//!
//! An accessor's answer exists only while it is given, and is to be passed on inside a variant, perhaps later and
//! together with others. A [`everywire_model::Value`] would not do: it carries no handles.

use everywire_model::shape::{Enum, Text};
use everywire_model::visit::Numbers;
use everywire_model::{Bytes, Encode, Handle, Marshal, Reference, Shape, Sink, Visit};

/// A recording: what a sink was told, step by step. Large octets are shared and not copied.
#[derive(Debug, Default, Clone)]
pub(super) struct Tape(Vec<Step>);

/// One call of a sink.
#[derive(Debug, Clone)]
enum Step {
    Bool(bool),
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Char(char, bool),
    Text(Text, String),
    Bytes(Shape, Bytes),
    Numbers(Row),
    Enumerant(Enum, i32),
    Reference(Option<Reference>),
    Handle(Handle),
    Open(Shape, usize),
    Content(Shape),
    Close(Shape),
}

macro_rules! rows {
    ($($variant:ident $type:ty),*) => {
        /// Numbers that were written in one go.
        #[derive(Debug, Clone)]
        enum Row { $($variant(Vec<$type>)),* }

        impl Row {
            fn of(numbers: Numbers<'_>) -> Self {
                match numbers { $(Numbers::$variant(items) => Self::$variant(items.to_vec())),* }
            }

            fn numbers(&self) -> Numbers<'_> {
                match self { $(Self::$variant(items) => Numbers::$variant(items)),* }
            }
        }
    };
}

rows!(U16 u16, I16 i16, U32 u32, I32 i32, U64 u64, I64 i64, F32 f32, F64 f64);

impl Tape {
    /// Records what is written.
    ///
    /// # Errors
    /// Those of the values.
    pub(super) fn record(values: &dyn Encode) -> Visit<Self> {
        let mut tape = Self::default();
        values.encode(&mut tape)?;
        Ok(tape)
    }

    /// The same without the struct around it, where the whole is a struct of one field: the value of an accessor's
    /// results.
    pub(super) fn only_field(mut self) -> Option<Self> {
        let fits = matches!(self.0.first(), Some(Step::Open(shape, 1)) if shape.fields().len() == 1)
            && matches!(self.0.last(), Some(Step::Close(_)));
        if !fits {
            return None;
        }
        self.0.pop();
        self.0.remove(0);
        Some(self)
    }

    /// Writes everything again.
    ///
    /// # Errors
    /// Those of the sink.
    pub(super) fn play<S: Sink + ?Sized>(&self, sink: &mut S) -> Visit<()> {
        self.0.iter().try_for_each(|step| match step {
            Step::Bool(value) => sink.bool(*value),
            Step::U8(value) => sink.u8(*value),
            Step::I8(value) => sink.i8(*value),
            Step::U16(value) => sink.u16(*value),
            Step::I16(value) => sink.i16(*value),
            Step::U32(value) => sink.u32(*value),
            Step::I32(value) => sink.i32(*value),
            Step::U64(value) => sink.u64(*value),
            Step::I64(value) => sink.i64(*value),
            Step::F32(value) => sink.f32(*value),
            Step::F64(value) => sink.f64(*value),
            Step::Char(value, wide) => sink.char(*value, *wide),
            Step::Text(shape, value) => sink.text(shape, value),
            Step::Bytes(shape, value) => sink.shared(shape, value),
            Step::Numbers(row) => sink.numbers(row.numbers()),
            Step::Enumerant(shape, value) => sink.enumerant(shape, *value),
            Step::Reference(value) => sink.reference(value.as_ref()),
            Step::Handle(value) => sink.handle(value),
            Step::Open(shape, len) => sink.open(shape, *len),
            Step::Content(shape) => sink.content(shape),
            Step::Close(shape) => sink.close(shape),
        })
    }

    fn put(&mut self, step: Step) -> Visit<()> {
        self.0.push(step);
        Ok(())
    }
}

impl Encode for Tape {
    fn encode(&self, sink: &mut dyn Sink) -> Visit<()> {
        self.play(sink)
    }
}

impl Sink for Tape {
    fn bool(&mut self, value: bool) -> Visit<()> {
        self.put(Step::Bool(value))
    }

    fn u8(&mut self, value: u8) -> Visit<()> {
        self.put(Step::U8(value))
    }

    fn i8(&mut self, value: i8) -> Visit<()> {
        self.put(Step::I8(value))
    }

    fn u16(&mut self, value: u16) -> Visit<()> {
        self.put(Step::U16(value))
    }

    fn i16(&mut self, value: i16) -> Visit<()> {
        self.put(Step::I16(value))
    }

    fn u32(&mut self, value: u32) -> Visit<()> {
        self.put(Step::U32(value))
    }

    fn i32(&mut self, value: i32) -> Visit<()> {
        self.put(Step::I32(value))
    }

    fn u64(&mut self, value: u64) -> Visit<()> {
        self.put(Step::U64(value))
    }

    fn i64(&mut self, value: i64) -> Visit<()> {
        self.put(Step::I64(value))
    }

    fn f32(&mut self, value: f32) -> Visit<()> {
        self.put(Step::F32(value))
    }

    fn f64(&mut self, value: f64) -> Visit<()> {
        self.put(Step::F64(value))
    }

    fn char(&mut self, value: char, wide: bool) -> Visit<()> {
        self.put(Step::Char(value, wide))
    }

    fn text(&mut self, shape: &Text, value: &str) -> Visit<()> {
        self.put(Step::Text(*shape, value.to_owned()))
    }

    fn bytes(&mut self, shape: &Shape, value: &[u8]) -> Visit<()> {
        self.put(Step::Bytes(shape.clone(), Bytes::copy_from_slice(value)))
    }

    fn shared(&mut self, shape: &Shape, value: &Bytes) -> Visit<()> {
        self.put(Step::Bytes(shape.clone(), value.clone()))
    }

    fn numbers(&mut self, values: Numbers<'_>) -> Visit<()> {
        self.put(Step::Numbers(Row::of(values)))
    }

    fn enumerant(&mut self, shape: &Enum, value: i32) -> Visit<()> {
        self.put(Step::Enumerant(shape.clone(), value))
    }

    fn reference(&mut self, value: Option<&Reference>) -> Visit<()> {
        self.put(Step::Reference(value.cloned()))
    }

    fn handle(&mut self, value: &Handle) -> Visit<()> {
        self.put(Step::Handle(value.clone()))
    }

    fn open(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        self.put(Step::Open(shape.clone(), len))
    }

    fn content(&mut self, shape: &Shape) -> Visit<()> {
        self.put(Step::Content(shape.clone()))
    }

    fn close(&mut self, shape: &Shape) -> Visit<()> {
        self.put(Step::Close(shape.clone()))
    }
}

/// A property's value, as the variant it travels in.
#[derive(Debug, Clone)]
pub(super) struct Held {
    /// What it looks like.
    pub(super) shape: Shape,
    /// The value.
    pub(super) value: Tape,
}

impl Marshal for Held {
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        sink.open(shape, 1)?;
        sink.content(&self.shape)?;
        self.value.play(sink)?;
        sink.close(shape)
    }
}
