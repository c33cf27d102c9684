//! The visit: how typed values become bytes and bytes typed values.
//!
//! There is no tree in the middle. Generated code drives a wire's [`Sink`] while it walks its own types, and a wire's
//! [`Source`] while it builds them; a codec sees each primitive once. The shape travels with [`Sink::open`] because
//! some encodings must know ahead: one writes an array's count in front of the struct around it and defers what
//! pointers point to, another writes the names of elements, a third signatures.
//!
//! ```text
//! value       := primitive | text | bytes | enumerant | reference | handle | composite
//! composite   := open(shape, n) item* close(shape)
//! item        := value                 n of them in a struct (all its fields), an array or a sequence
//!              | value value           n times in a map: key, then value
//!              | value                 n = 0 or 1 in an optional value or behind a pointer
//!              | discriminator value   in a union: n is the number of the arm taken plus one, 0 for none
//!              | content value         in a variant: its shape by `content`, then the value
//! ```
//!
//! A sequence or array of octets is one leaf ([`Sink::bytes`], no open); one of wider numbers is opened, and may then
//! be written in one go ([`Sink::numbers`]) or one by one, with the same bytes on the wire.

use crate::body::{Body, Handle};
use crate::budget::Budget;
use crate::cells::{Layout, Style};
use crate::failure::Failure;
use crate::headers::Headers;
use crate::reference::Reference;
use crate::scalar::Scalar;
use crate::shape::{Enum, Shape, Text};
use crate::typecode::TypeCode;
use bytes::Bytes;
use std::borrow::Cow;

/// What the visit yields.
pub type Visit<T> = Result<T, Failure>;

macro_rules! numbers {
    ($($variant:ident $type:ty),*) => {
        /// A slice of numbers to write: the bulk lane.
        #[derive(Debug, Clone, Copy)]
        #[allow(missing_docs)]
        pub enum Numbers<'a> { $($variant(&'a [$type])),* }

        impl Numbers<'_> {
            /// How many.
            pub fn len(&self) -> usize {
                match self { $(Self::$variant(items) => items.len()),* }
            }

            /// Whether there are none.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Bytes in each.
            pub fn width(&self) -> usize {
                match self { $(Self::$variant(_) => size_of::<$type>()),* }
            }

            /// Appends all of them in the given byte order.
            pub fn put(&self, little: bool, out: &mut Vec<u8>) {
                let start = out.len();
                out.resize(start + self.len() * self.width(), 0);
                let room = out.get_mut(start..).unwrap_or_default();
                // In whole chunks, so that the compiler makes a plain copy of the native order.
                match self { $(Self::$variant(items) => {
                    let places = room.as_chunks_mut().0.iter_mut().zip(*items);
                    if little {
                        places.for_each(|(place, item)| *place = item.to_le_bytes());
                    } else {
                        places.for_each(|(place, item)| *place = item.to_be_bytes());
                    }
                }),* }
            }
        }

        /// A slice of numbers to fill: the bulk lane.
        #[derive(Debug)]
        #[allow(missing_docs)]
        pub enum NumbersMut<'a> { $($variant(&'a mut [$type])),* }

        impl NumbersMut<'_> {
            /// How many.
            pub fn len(&self) -> usize {
                match self { $(Self::$variant(items) => items.len()),* }
            }

            /// Whether there are none.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Bytes in each.
            pub fn width(&self) -> usize {
                match self { $(Self::$variant(_) => size_of::<$type>()),* }
            }

            /// Fills all of them from `len() * width()` bytes in the given byte order; a shorter input fills fewer.
            pub fn fill(&mut self, little: bool, input: &[u8]) {
                match self { $(Self::$variant(items) => {
                    let chunks = input.chunks_exact(size_of::<$type>());
                    for (item, chunk) in items.iter_mut().zip(chunks) {
                        let Ok(raw) = chunk.try_into() else { return };
                        *item = if little { <$type>::from_le_bytes(raw) } else { <$type>::from_be_bytes(raw) };
                    }
                }),* }
            }
        }
    };
}

numbers!(U16 u16, I16 i16, U32 u32, I32 i32, U64 u64, I64 i64, F32 f32, F64 f64);

/// Writes a variant that holds one number as any other: opened, given its content, and closed.
///
/// # Errors
/// Those of the sink.
pub fn put_variant<S: Sink + ?Sized>(sink: &mut S, shape: &Shape, value: Scalar) -> Visit<()> {
    sink.open(shape, 1)?;
    sink.content(value.shape())?;
    value.encode(sink)?;
    sink.close(shape)
}

/// Where values are written: one for each wire, and [`crate::Value`]'s builder.
pub trait Sink {
    /// A boolean.
    fn bool(&mut self, value: bool) -> Visit<()>;
    /// An unsigned 8-bit number.
    fn u8(&mut self, value: u8) -> Visit<()>;
    /// A signed 8-bit number.
    fn i8(&mut self, value: i8) -> Visit<()>;
    /// An unsigned 16-bit number.
    fn u16(&mut self, value: u16) -> Visit<()>;
    /// A signed 16-bit number.
    fn i16(&mut self, value: i16) -> Visit<()>;
    /// An unsigned 32-bit number.
    fn u32(&mut self, value: u32) -> Visit<()>;
    /// A signed 32-bit number.
    fn i32(&mut self, value: i32) -> Visit<()>;
    /// An unsigned 64-bit number.
    fn u64(&mut self, value: u64) -> Visit<()>;
    /// A signed 64-bit number.
    fn i64(&mut self, value: i64) -> Visit<()>;
    /// An IEEE 754 binary32 number.
    fn f32(&mut self, value: f32) -> Visit<()>;
    /// An IEEE 754 binary64 number.
    fn f64(&mut self, value: f64) -> Visit<()>;
    /// A character of the narrow set, or the wide one.
    fn char(&mut self, value: char, wide: bool) -> Visit<()>;
    /// A string.
    fn text(&mut self, shape: &Text, value: &str) -> Visit<()>;
    /// A whole sequence or array of octets, with its count where the shape is a sequence.
    fn bytes(&mut self, shape: &Shape, value: &[u8]) -> Visit<()>;
    /// The same from shared memory: a large part is sent from where it lies.
    fn shared(&mut self, shape: &Shape, value: &Bytes) -> Visit<()> {
        self.bytes(shape, value)
    }
    /// All the numbers of a sequence or array that was just opened.
    fn numbers(&mut self, values: Numbers<'_>) -> Visit<()>;
    /// A member of an enumeration: its number, unless the wire writes names, or in another size.
    #[inline]
    fn enumerant(&mut self, _shape: &Enum, value: i32) -> Visit<()> {
        self.i32(value)
    }
    /// An object reference, or nil.
    fn reference(&mut self, value: Option<&Reference>) -> Visit<()>;
    /// A whole variant that holds one number: the same bytes as when it is opened, given its content and closed.
    fn whole_variant(&mut self, shape: &Shape, value: Scalar) -> Visit<()> {
        put_variant(self, shape, value)
    }
    /// A struct of these unsigned numbers of 32 bits and nothing else: the same bytes as when it is opened, given them and closed.
    #[inline]
    fn words(&mut self, shape: &Shape, values: &[u32]) -> Visit<()> {
        self.open(shape, values.len())?;
        values.iter().try_for_each(|value| self.u32(*value))?;
        self.close(shape)
    }
    /// Whether elements of the sequence or array that was just opened, which look so and are as many, may be written a row at a time, and
    /// how the rows are to be made; nothing if they are to be opened, each by itself.
    fn rows(&mut self, _element: &Shape, _layout: &'static Layout, _count: usize) -> Option<Style> {
        None
    }
    /// An element as a row, in the style that [`Sink::rows`] gave, and what its variants hold: the same bytes as when it is opened, given
    /// its fields and closed. Whether it was written; if not, nothing was, and it is to be opened.
    ///
    /// # Errors
    /// There are more elements than were announced.
    fn row(&mut self, _layout: &'static Layout, _raw: &[u8], _variants: &[Scalar]) -> Visit<bool> {
        Ok(false)
    }
    /// A description of a type, on wires that have such values.
    ///
    /// # Errors
    /// [`crate::Kind::Unsupported`] on the others.
    fn type_code(&mut self, _value: &TypeCode) -> Visit<()> {
        Err(no_type_codes())
    }
    /// An operating-system handle, on wires that carry such.
    ///
    /// # Errors
    /// [`crate::Kind::Unsupported`] on the others.
    fn handle(&mut self, _value: &Handle) -> Visit<()> {
        Err(no_handles())
    }
    /// Begins a composite; see the grammar above for `len`.
    fn open(&mut self, shape: &Shape, len: usize) -> Visit<()>;
    /// In an open variant: the shape of the value that follows.
    fn content(&mut self, shape: &Shape) -> Visit<()>;
    /// Ends the composite that was opened last, where the wire writes something there. Nothing is done by default, so a sink
    /// that hands on to another one has to hand this on, too.
    #[inline]
    fn close(&mut self, _shape: &Shape) -> Visit<()> {
        Ok(())
    }
    /// How many elements there is room for in the sequence that is opened next, where its shape says that somebody else said so;
    /// for wires that write that beside the count.
    fn room(&mut self, _most: usize) {}
    /// How the operation succeeded whose results these are: a number that stands beside them on wires which have such, 0 for
    /// plain success. It may be said before, among or behind the results; other wires leave it out.
    ///
    /// # Errors
    /// On such wires: the number tells of a failure.
    fn status(&mut self, _status: i32) -> Visit<()> {
        Ok(())
    }
}

/// Where values are read from. Text and bytes may borrow from the message (`'a`).
///
/// Every length passes the [`Budget`] before anything is allocated for it: [`Source::open`] returns only counts that
/// were charged and that the rest of the message can hold.
pub trait Source<'a> {
    /// A boolean.
    fn bool(&mut self) -> Visit<bool>;
    /// An unsigned 8-bit number.
    fn u8(&mut self) -> Visit<u8>;
    /// A signed 8-bit number.
    fn i8(&mut self) -> Visit<i8>;
    /// An unsigned 16-bit number.
    fn u16(&mut self) -> Visit<u16>;
    /// A signed 16-bit number.
    fn i16(&mut self) -> Visit<i16>;
    /// An unsigned 32-bit number.
    fn u32(&mut self) -> Visit<u32>;
    /// A signed 32-bit number.
    fn i32(&mut self) -> Visit<i32>;
    /// An unsigned 64-bit number.
    fn u64(&mut self) -> Visit<u64>;
    /// A signed 64-bit number.
    fn i64(&mut self) -> Visit<i64>;
    /// An IEEE 754 binary32 number.
    fn f32(&mut self) -> Visit<f32>;
    /// An IEEE 754 binary64 number.
    fn f64(&mut self) -> Visit<f64>;
    /// A character of the narrow set, or the wide one.
    fn char(&mut self, wide: bool) -> Visit<char>;
    /// A string.
    fn text(&mut self, shape: &Text) -> Visit<Cow<'a, str>>;
    /// A whole sequence or array of octets.
    fn bytes(&mut self, shape: &Shape) -> Visit<Cow<'a, [u8]>>;
    /// The same as shared memory: a large part stays where it was received.
    fn shared(&mut self, shape: &Shape) -> Visit<Bytes> {
        self.bytes(shape).map(|bytes| Bytes::from(bytes.into_owned()))
    }
    /// All the numbers of a sequence or array that was just opened; the slice is as long as `open` said.
    fn numbers(&mut self, into: NumbersMut<'_>) -> Visit<()>;
    /// A member of an enumeration; a value that the shape does not name is [`crate::Kind::Malformed`].
    fn enumerant(&mut self, shape: &Enum) -> Visit<i32>;
    /// An object reference, or nil.
    fn reference(&mut self) -> Visit<Option<Reference>>;
    /// The variant that comes next, if it holds one number and the wire reads such variants in one go; else nothing was read, and it is
    /// to be opened.
    fn whole_variant(&mut self, _shape: &Shape) -> Visit<Option<Scalar>> {
        Ok(None)
    }
    /// A struct of as many unsigned numbers of 32 bits and nothing else: read as when it is opened, asked for them and closed.
    #[inline]
    fn words(&mut self, shape: &Shape, into: &mut [u32]) -> Visit<()> {
        self.open(shape)?;
        for value in into {
            *value = self.u32()?;
        }
        self.close(shape)
    }
    /// Whether elements of the sequence or array that was just opened, which look so, may be read a row at a time, and whether their
    /// numbers are little-endian; nothing if they are to be opened, each by itself.
    fn rows(&mut self, _element: &Shape, _layout: &'static Layout) -> Option<bool> {
        None
    }
    /// The next element as a row, and what its variants hold, if it comes as the wire expects it. Nothing if not: then nothing was read,
    /// and it is to be opened.
    ///
    /// # Errors
    /// The message holds more than its budget allows.
    fn row(&mut self, _layout: &'static Layout, _variants: &mut [Scalar]) -> Visit<Option<&'a [u8]>> {
        Ok(None)
    }
    /// A description of a type, on wires that have such values.
    ///
    /// # Errors
    /// [`crate::Kind::Unsupported`] on the others.
    fn type_code(&mut self) -> Visit<TypeCode> {
        Err(no_type_codes())
    }
    /// An operating-system handle, on wires that carry such.
    ///
    /// # Errors
    /// [`crate::Kind::Unsupported`] on the others.
    fn handle(&mut self) -> Visit<Handle> {
        Err(no_handles())
    }
    /// Begins a composite and returns its length as in the grammar above; for a union always 0, the reader selects the
    /// arm by the discriminator it reads next.
    fn open(&mut self, shape: &Shape) -> Visit<usize>;
    /// In an open union: tells which arm was selected by the discriminator just read (`None`: no arm).
    fn arm(&mut self, _shape: &Shape, _arm: Option<usize>) -> Visit<()> {
        Ok(())
    }
    /// In an open variant: the shape of the value that follows.
    fn content(&mut self) -> Visit<Shape>;
    /// Ends the composite that was opened last. By default that is told to the budget alone, which `open` must have entered; a
    /// source that hands on to another one has to hand this on, too.
    #[inline]
    fn close(&mut self, _shape: &Shape) -> Visit<()> {
        self.budget().leave();
        Ok(())
    }
    /// What is left to spend on this message.
    fn budget(&mut self) -> &mut Budget;
    /// How the operation succeeded whose results these are; 0 on wires that do not tell.
    fn status(&self) -> i32 {
        0
    }
}

#[cold]
fn no_handles() -> Failure {
    Failure::unsupported("this wire carries no handles of the operating system")
}

#[cold]
fn no_type_codes() -> Failure {
    Failure::unsupported("this wire carries no type codes")
        .with_hint("pass the name of the type as text, or use a wire that has type codes")
}

/// Something that can write itself to any sink: a typed value, a tuple of arguments, a [`crate::Value`], a body that
/// is passed on.
pub trait Encode {
    /// Writes everything.
    fn encode(&self, sink: &mut dyn Sink) -> Visit<()>;

    /// What travels beside the values or in place of them; mostly nothing.
    #[inline]
    fn carries(&self) -> MessageContents<'_> {
        MessageContents::default()
    }
}

/// What a message carries beside the values that [`Encode::encode`] writes, or in place of them.
#[derive(Clone, Copy, Default)]
pub struct MessageContents<'a> {
    /// A body that is passed on as it came, in place of values. A session whose codec is not that body's refuses it
    /// ([`crate::message::needs_contract`]).
    pub body: Option<&'a Body>,
    /// Changes of headers. They come on top of those that the body has.
    pub headers: Option<&'a Headers>,
}

/// Values, or a body that is passed on, with headers beside.
pub struct WithHeaders<'a> {
    /// What they are beside of.
    pub values: &'a dyn Encode,
    /// The headers.
    pub headers: &'a Headers,
}

impl Encode for WithHeaders<'_> {
    fn encode(&self, sink: &mut dyn Sink) -> Visit<()> {
        self.values.encode(sink)
    }

    fn carries(&self) -> MessageContents<'_> {
        MessageContents { headers: Some(self.headers), ..self.values.carries() }
    }
}

impl<F: Fn(&mut dyn Sink) -> Visit<()>> Encode for F {
    fn encode(&self, sink: &mut dyn Sink) -> Visit<()> {
        self(sink)
    }
}

/// Nothing to write.
#[derive(Debug, Clone, Copy)]
pub struct Nothing;

impl Encode for Nothing {
    fn encode(&self, _: &mut dyn Sink) -> Visit<()> {
        Ok(())
    }
}
