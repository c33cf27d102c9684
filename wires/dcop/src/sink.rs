//! Writing values as `QDataStream` does: big-endian, without alignment (Qt 3.3, stream version 6).
//!
//! A `StreamSink` appends the values of one message to the send buffer. It keeps little: where the message
//! may end at the most, and what is to be done with the types of the values (`TypeOutput`), which the first
//! composite tells: nothing in a call, whose function names them; a reply has them in front.
//!
//! Invariants: a part that could make the message large is checked against the limit before it is copied
//! (`fits`), the rest when the message is complete. Optional texts travel as Qt's null strings, other
//! optional values as lists of at most one. A `QVariant` has no small numbers, so such a number grows on its
//! way (`widen`). What Qt has no form for (unions, handles, null pointers) is refused, and neither that nor a
//! value that does not fit its shape is ever changed to fit.

use crate::names::{Head, TypeNames};
use crate::{address, strings, types, variants};
use bytes::Bytes;
use everywire_model::send_buffer::SPLICE;
use everywire_model::shape::{Text, TextKind};
use everywire_model::visit::Numbers;
use everywire_model::{Failure, Initiator, Reference, SendBuffer, Shape, Sink, Visit};

/// Writes values into a send buffer.
pub(crate) struct StreamSink<'r> {
    buffer: &'r mut SendBuffer,
    /// The position that the message may not grow beyond.
    end: usize,
    /// What to do with the types of the values, which the first composite tells.
    lead: TypeOutput<'r>,
    /// A small number follows that a variant holds as a large one.
    widen: bool,
}

/// What to do with the types of the values.
pub(crate) enum TypeOutput<'r> {
    /// Nothing.
    Skip,
    /// Write them, and room for the length, as the head of a reply.
    Reply(&'r mut TypeNames, &'r mut Head),
    /// Note them.
    Note(&'r mut String),
}

impl<'r> StreamSink<'r> {
    /// Goes on with the message that begins at `start` (a position of the send buffer) and may take `limit` bytes.
    pub(crate) fn new(buffer: &'r mut SendBuffer, start: usize, limit: u64, lead: TypeOutput<'r>) -> Self {
        let end = start.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX));
        Self { buffer, end, lead, widen: false }
    }

    /// Octets, as they are.
    #[inline]
    fn put<const N: usize>(&mut self, raw: [u8; N]) {
        self.buffer.flat().extend_from_slice(&raw);
    }

    /// Refuses a part before it is copied, where the message would grow over the limit.
    #[inline]
    fn fits(&mut self, part: usize) -> Visit<()> {
        let size = self.buffer.position().saturating_add(part);
        if size > self.end { Err(over(size, self.end)) } else { Ok(()) }
    }

    /// 2 to the 32nd less 1 is no count: it stands for null.
    fn count(&mut self, len: usize) -> Visit<()> {
        match u32::try_from(len) {
            Ok(len) if len < u32::MAX => {
                self.put(len.to_be_bytes());
                Ok(())
            }
            _ => Err(over(len, u32::MAX as usize)),
        }
    }

    /// The count in front of a list; arrays travel as lists.
    fn begin(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        match shape.resolved() {
            Shape::Array(array) => array.check(len),
            Shape::Sequence(sequence) => sequence.check(len),
            other => Err(format!("octets do not fit {}", other.noun())),
        }
        .map_err(Failure::bad_argument)?;
        self.count(len)
    }

    /// The first composite has come, and its types are to be noted. A reply needs a list of results, which
    /// this is not.
    #[cold]
    #[inline(never)]
    fn learn(&mut self, shape: &Shape) -> Visit<()> {
        match std::mem::replace(&mut self.lead, TypeOutput::Skip) {
            TypeOutput::Skip => Ok(()),
            TypeOutput::Reply(..) => {
                Err(Failure::bad_argument(format!("{} is no list of results", shape.noun())))
            }
            TypeOutput::Note(types) => {
                *types = types::list(shape.fields()).unwrap_or_default();
                Ok(())
            }
        }
    }
}

/// A value that Qt has no form for.
#[cold]
pub(crate) fn unsupported(what: &str) -> Failure {
    Failure::unsupported(format!("{what} cannot travel by DCOP"))
        .with_hint("pass it as a struct, a list or a QVariant, or use a wire that has it")
}

/// The failure of a message that would exceed the limit.
#[cold]
pub(crate) fn over(size: usize, limit: usize) -> Failure {
    Failure::over_limit(Initiator::Here, "bytes in a DCOP message", size, limit)
        .with_hint("raise the message limit on both sides, or send less at a time")
}

// The word after `wide` is what a variant has in place of the small type.
macro_rules! primitives {
    ($($name:ident $(wide $to:ident)?;)*) => {$(
        #[inline]
        fn $name(&mut self, value: $name) -> Visit<()> {
            $(if self.widen {
                self.widen = false;
                self.put($to::from(value).to_be_bytes());
                return Ok(());
            })?
            self.put(value.to_be_bytes());
            Ok(())
        }
    )*};
}

impl Sink for StreamSink<'_> {
    primitives! {
        u8 wide u32;
        i8 wide i32;
        u16 wide u32;
        i16 wide i32;
        u32;
        i32;
        u64;
        i64;
        f32 wide f64;
        f64;
    }

    #[inline]
    fn bool(&mut self, value: bool) -> Visit<()> {
        self.put([value.into()]);
        Ok(())
    }

    fn char(&mut self, value: char, wide: bool) -> Visit<()> {
        if wide {
            let mut room = [0; 2];
            return match value.encode_utf16(&mut room) {
                [unit] => {
                    let raw = unit.to_be_bytes();
                    self.put(raw);
                    Ok(())
                }
                _ => Err(Failure::bad_argument(format!(
                    "`{value}` needs two units of UTF-16, a QChar holds one"
                ))),
            };
        }
        match u8::try_from(u32::from(value)) {
            Ok(octet) => {
                self.put([octet]);
                Ok(())
            }
            Err(_) => Err(Failure::bad_argument(format!(
                "`{value}` does not exist in ISO-8859-1, of which a char is one octet"
            ))),
        }
    }

    fn text(&mut self, shape: &Text, value: &str) -> Visit<()> {
        shape.check(value).map_err(Failure::bad_argument)?;
        if matches!(shape.kind, TextKind::Wide | TextKind::Counted) {
            self.fits(2 * value.len() + 4)?;
            put_utf16(self.buffer.flat(), value);
            return Ok(());
        }
        if value.as_bytes().contains(&0) {
            return Err(Failure::bad_argument("text with a NUL inside cannot travel as a QCString"));
        }
        self.fits(value.len() + 5)?;
        strings::put_name(self.buffer.flat(), value.as_bytes());
        Ok(())
    }

    fn bytes(&mut self, shape: &Shape, value: &[u8]) -> Visit<()> {
        self.fits(value.len())?;
        self.begin(shape, value.len())?;
        self.buffer.flat().extend_from_slice(value);
        Ok(())
    }

    fn shared(&mut self, shape: &Shape, value: &Bytes) -> Visit<()> {
        if value.len() < SPLICE {
            return self.bytes(shape, value);
        }
        self.fits(value.len())?;
        self.begin(shape, value.len())?;
        self.buffer.splice(value.clone());
        Ok(())
    }

    fn numbers(&mut self, values: Numbers<'_>) -> Visit<()> {
        self.fits(values.len().saturating_mul(values.width()))?;
        values.put(false, self.buffer.flat());
        Ok(())
    }

    fn reference(&mut self, value: Option<&Reference>) -> Visit<()> {
        let (app, object, kind) = address::parts(value)?;
        let out = self.buffer.flat();
        for part in [&app[..], &object[..], kind.as_bytes()] {
            if part.contains(&0) {
                return Err(Failure::bad_argument("a name in a reference has a NUL inside"));
            }
            strings::put_nullable(out, part);
        }
        Ok(())
    }

    #[inline]
    fn open(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        match &mut self.lead {
            TypeOutput::Skip => {}
            TypeOutput::Reply(names, head) => {
                names.put_head(shape, self.buffer, head)?;
                self.lead = TypeOutput::Skip;
            }
            TypeOutput::Note(_) => self.learn(shape)?,
        }
        if let Some(null) = strings::null(shape.resolved()) {
            if len == 0 {
                self.put(null);
            }
            return Ok(());
        }
        match shape.resolved() {
            Shape::Struct(_) | Shape::Variant => Ok(()),
            Shape::Sequence(_) | Shape::Array(_) => {
                self.fits(len)?;
                self.begin(shape, len)
            }
            Shape::Map(_) | Shape::Optional(_) => self.count(len),
            Shape::Pointer(_) if len == 0 => Err(unsupported("a null pointer")),
            Shape::Pointer(_) => Ok(()),
            Shape::Union(_) => Err(unsupported("a union")),
            other => Err(Failure::bad_argument(format!("{} is no composite", other.noun()))),
        }
    }

    fn content(&mut self, shape: &Shape) -> Visit<()> {
        let (tag, widen) = variants::tag(shape)?;
        self.fits(8)?;
        self.put(tag.to_be_bytes());
        self.widen = widen;
        if tag == variants::INVALID {
            // Nothing is a null string.
            self.put(u32::MAX.to_be_bytes());
        }
        Ok(())
    }
}

/// A `QString`: counted in bytes, units big-endian.
fn put_utf16(out: &mut Vec<u8>, value: &str) {
    let start = out.len();
    if value.is_ascii() {
        let len = 2 * value.len();
        out.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
        out.resize(start + 4 + len, 0);
        let room = out.get_mut(start + 4..).unwrap_or_default();
        for (place, octet) in room.as_chunks_mut::<2>().0.iter_mut().zip(value.bytes()) {
            *place = [0, octet];
        }
        return;
    }
    out.extend_from_slice(&[0; 4]);
    for unit in value.encode_utf16() {
        out.extend_from_slice(&unit.to_be_bytes());
    }
    let len = out.len() - start - 4;
    strings::patch_len(out, start, len);
}
