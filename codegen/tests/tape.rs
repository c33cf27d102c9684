//! A codec without a wire: it records each step of the visit, and plays it back to a reader that must ask for the very
//! same steps. It carries what the wires of other tests do not: maps, optional values, handles.

use everywire_model::shape::{Enum, Text};
use everywire_model::visit::{Numbers, NumbersMut};
use everywire_model::{
    Body, Budget, Bytes, Codec, Context, Failure, Reference, Shape, Sink, Source, Visit, body::Handle,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The codec.
pub(crate) static TAPE: Tape = Tape { tapes: OnceLock::new(), next: AtomicU64::new(0) };

/// Recordings by number; a body holds the number.
pub(crate) struct Tape {
    tapes: OnceLock<Mutex<HashMap<u64, Arc<Vec<Step>>>>>,
    next: AtomicU64,
}

/// One step of a visit.
#[derive(Debug, Clone)]
pub(crate) enum Step {
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
    Text(String),
    Bytes(Bytes),
    Enumerant(i32),
    Reference(Option<Reference>),
    Handle(Handle),
    Open(usize, std::mem::Discriminant<Shape>),
    Content(Shape),
    Close,
}

impl Tape {
    fn tapes(&self) -> &Mutex<HashMap<u64, Arc<Vec<Step>>>> {
        self.tapes.get_or_init(Mutex::default)
    }

    /// What a body holds.
    pub(crate) fn steps(&self, body: &Body) -> Arc<Vec<Step>> {
        let number = u64::from_le_bytes(body.bytes.as_ref().try_into().unwrap());
        Arc::clone(&self.tapes().lock().unwrap()[&number])
    }
}

impl Codec for Tape {
    fn read<'a>(&self, body: &'a Body, visit: &mut dyn FnMut(&mut dyn Source<'a>) -> Visit<()>) -> Visit<()> {
        let mut player = Player { steps: self.steps(body), at: 0, budget: body.budget };
        visit(&mut player)?;
        assert_eq!(player.at, player.steps.len(), "the reader left something");
        Ok(())
    }

    fn write(&self, visit: &mut dyn FnMut(&mut dyn Sink) -> Visit<()>) -> Visit<Body> {
        let mut recorder = Recorder(Vec::new());
        visit(&mut recorder)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.tapes().lock().unwrap().insert(number, Arc::new(recorder.0));
        Ok(Body {
            bytes: Bytes::copy_from_slice(&number.to_le_bytes()),
            base: 0,
            little: true,
            dialect: 0,
            context: Context::default(),
            budget: Budget::default(),
            codec: &TAPE,
            beside: None,
        })
    }
}

struct Recorder(Vec<Step>);

impl Recorder {
    fn put(&mut self, step: Step) -> Visit<()> {
        self.0.push(step);
        Ok(())
    }
}

macro_rules! primitives {
    (sink $($name:ident $step:ident),*) => {
        $(fn $name(&mut self, value: $name) -> Visit<()> { self.put(Step::$step(value)) })*
    };
    (source $($name:ident $step:ident),*) => {
        $(fn $name(&mut self) -> Visit<$name> {
            match self.next()? {
                Step::$step(value) => Ok(value),
                other => Err(unexpected(stringify!($name), &other)),
            }
        })*
    };
}

fn unexpected(wanted: &str, found: &Step) -> Failure {
    Failure::malformed(format_args!("{wanted} was asked for where {found:?} was written"), 0)
}

impl Sink for Recorder {
    primitives!(sink bool Bool, u8 U8, i8 I8, u16 U16, i16 I16, u32 U32, i32 I32, u64 U64, i64 I64, f32 F32, f64 F64);

    fn char(&mut self, value: char, wide: bool) -> Visit<()> {
        self.put(Step::Char(value, wide))
    }

    fn text(&mut self, _: &Text, value: &str) -> Visit<()> {
        self.put(Step::Text(value.into()))
    }

    fn bytes(&mut self, shape: &Shape, value: &[u8]) -> Visit<()> {
        assert!(matches!(shape.element().map(Shape::resolved), Some(Shape::U8)), "octets at {shape:?}");
        self.put(Step::Bytes(Bytes::copy_from_slice(value)))
    }

    fn numbers(&mut self, values: Numbers<'_>) -> Visit<()> {
        macro_rules! each {
            ($($kind:ident)*) => {
                match values { $(Numbers::$kind(items) => self.0.extend(items.iter().map(|item| Step::$kind(*item))),)* }
            };
        }
        each!(U16 I16 U32 I32 U64 I64 F32 F64);
        Ok(())
    }

    fn enumerant(&mut self, shape: &Enum, value: i32) -> Visit<()> {
        assert!(shape.name_of(value).is_some());
        self.put(Step::Enumerant(value))
    }

    fn reference(&mut self, value: Option<&Reference>) -> Visit<()> {
        self.put(Step::Reference(value.cloned()))
    }

    fn handle(&mut self, value: &Handle) -> Visit<()> {
        self.put(Step::Handle(value.clone()))
    }

    fn open(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        self.put(Step::Open(len, std::mem::discriminant(shape.resolved())))
    }

    fn content(&mut self, shape: &Shape) -> Visit<()> {
        self.put(Step::Content(shape.clone()))
    }

    fn close(&mut self, _: &Shape) -> Visit<()> {
        self.put(Step::Close)
    }
}

struct Player {
    steps: Arc<Vec<Step>>,
    at: usize,
    budget: Budget,
}

impl Player {
    fn next(&mut self) -> Visit<Step> {
        self.at += 1;
        self.steps.get(self.at - 1).cloned().ok_or_else(|| Failure::malformed("nothing is left", self.at))
    }
}

impl<'a> Source<'a> for Player {
    primitives!(source bool Bool, u8 U8, i8 I8, u16 U16, i16 I16, u32 U32, i32 I32, u64 U64, i64 I64, f32 F32, f64 F64);

    fn char(&mut self, wide: bool) -> Visit<char> {
        match self.next()? {
            Step::Char(value, written) if written == wide => Ok(value),
            other => Err(unexpected("a character", &other)),
        }
    }

    fn text(&mut self, _: &Text) -> Visit<Cow<'a, str>> {
        match self.next()? {
            Step::Text(value) => Ok(value.into()),
            other => Err(unexpected("text", &other)),
        }
    }

    fn bytes(&mut self, _: &Shape) -> Visit<Cow<'a, [u8]>> {
        match self.next()? {
            Step::Bytes(value) => Ok(value.to_vec().into()),
            other => Err(unexpected("octets", &other)),
        }
    }

    fn numbers(&mut self, into: NumbersMut<'_>) -> Visit<()> {
        macro_rules! each {
            ($($kind:ident $name:ident)*) => {
                match into { $(NumbersMut::$kind(items) => for item in items { *item = self.$name()?; },)* }
            };
        }
        each!(U16 u16 I16 i16 U32 u32 I32 i32 U64 u64 I64 i64 F32 f32 F64 f64);
        Ok(())
    }

    fn enumerant(&mut self, _: &Enum) -> Visit<i32> {
        match self.next()? {
            Step::Enumerant(value) => Ok(value),
            other => Err(unexpected("a member", &other)),
        }
    }

    fn reference(&mut self) -> Visit<Option<Reference>> {
        match self.next()? {
            Step::Reference(value) => Ok(value),
            other => Err(unexpected("a reference", &other)),
        }
    }

    fn handle(&mut self) -> Visit<Handle> {
        match self.next()? {
            Step::Handle(value) => Ok(value),
            other => Err(unexpected("a handle", &other)),
        }
    }

    fn open(&mut self, shape: &Shape) -> Visit<usize> {
        match self.next()? {
            Step::Open(len, kind) if kind == std::mem::discriminant(shape.resolved()) => {
                Ok(if matches!(shape.resolved(), Shape::Union(_)) { 0 } else { len })
            }
            other => Err(unexpected(&shape.noun(), &other)),
        }
    }

    fn content(&mut self) -> Visit<Shape> {
        match self.next()? {
            Step::Content(shape) => Ok(shape),
            other => Err(unexpected("a shape", &other)),
        }
    }

    fn close(&mut self, shape: &Shape) -> Visit<()> {
        match self.next()? {
            Step::Close => Ok(()),
            other => Err(unexpected(&format!("the end of a {}", shape.noun()), &other)),
        }
    }

    fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }
}
