//! Writing values (CORBA 3.3 part 2, section 9.3).
//!
//! A `CdrSink` appends the values of one message to the send buffer, behind the message's header. It only
//! keeps where the message began (for alignment), the byte order, the dialect and the limit; the shapes come
//! with the values. Whoever made the mark before takes everything back if a value does not fit.
//!
//! Invariants:
//! * Every primitive is aligned to its size, counted from the beginning of the message; `shift` keeps that
//!   right when a large part is put in by reference and so is not in the flat buffer.
//! * Values that could make the message large (`text`, `bytes`, `numbers`, type codes) are checked against
//!   the limit before they are copied (`fits`); the rest is checked when the message is complete.
//! * What CDR has no form for (maps, optional values, handles, null pointers) is refused as unsupported, and
//!   what does not fit its shape (bounds, lengths) as the user's mistake; neither is ever cut to fit.

use crate::cdr::{CdrWriter, NATIVE_LITTLE, WriteCdr};
use crate::codesets::{Dialect, Narrow, foreign, to_latin1};
use crate::typecodes::{self, OpenTypes};
use crate::{ior, limits, value_types};
use bytes::Bytes;
use everywire_model::long_double;
use everywire_model::send_buffer::SPLICE;
use everywire_model::shape::{Enum, Text, TextKind};
use everywire_model::value_type::ValueType;
use everywire_model::visit::Numbers;
use everywire_model::{Failure, Initiator, Reference, SendBuffer, Shape, Sink, TypeCode, Visit};
use std::net::IpAddr;

/// Writes values behind what a message's beginning has put into a send buffer.
pub(crate) struct CdrSink<'r> {
    buffer: &'r mut SendBuffer,
    /// Length of the send buffer's flat buffer plus this (wrapping) is the offset in the message.
    shift: usize,
    swap: bool,
    /// Version and character sets: they decide how text is written.
    dialect: Dialect,
    /// Most bytes the message may come to.
    limit: usize,
    /// The address of this side's end of the connection.
    local: Option<IpAddr>,
    /// The value that comes next is none: that of a box which is null.
    null: bool,
    /// Optional values that are open, outermost first: whether each is written in chunks, or not, or is null.
    values: Vec<OptionalForm>,
    /// How many of them are in chunks, and where the size of the present chunk is in the flat buffer.
    level: u32,
    chunk: Option<usize>,
}

/// How an optional value is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OptionalForm {
    Null,
    Whole,
    /// `inner_end`: the length of the flat buffer behind the end tag of the last value within it, if there is one.
    Chunked {
        inner_end: Option<usize>,
    },
}

impl<'r> CdrSink<'r> {
    /// Goes on with the message that begins at `start` (a position of the send buffer).
    pub(crate) fn new(
        buffer: &'r mut SendBuffer,
        start: usize,
        little: bool,
        dialect: Dialect,
        limit: u64,
    ) -> Self {
        let shift = buffer.position().wrapping_sub(start).wrapping_sub(buffer.flat().len());
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let (swap, values) = (little != NATIVE_LITTLE, Vec::new());
        Self { buffer, shift, swap, dialect, limit, local: None, null: false, values, level: 0, chunk: None }
    }

    /// The same, for a connection whose end here has this address.
    #[inline]
    pub(crate) fn over(&mut self, local: Option<IpAddr>) -> &mut Self {
        self.local = local;
        self
    }

    /// A writer at the present end of the buffer.
    #[inline]
    fn put(&mut self) -> CdrWriter<'_> {
        CdrWriter { shift: self.shift, swap: self.swap, out: self.buffer.flat() }
    }

    /// Refuses a part before it is copied, where the message would grow over the limit.
    #[inline]
    fn fits(&mut self, part: usize) -> Visit<()> {
        let size = self.put().at().saturating_add(part);
        if size > self.limit { Err(over(size, self.limit)) } else { Ok(()) }
    }

    /// What stands before the elements: the count of a sequence, and nothing of an array, whose length the
    /// contract says.
    ///
    /// # Errors
    /// The number of elements is not that of the array, or is over the bound of the sequence.
    fn begin(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        match shape.resolved() {
            Shape::Array(array) => array.check(len).map_err(Failure::bad_argument),
            Shape::Sequence(sequence) => {
                sequence.check(len).map_err(Failure::bad_argument)?;
                self.put().count(len);
                Ok(())
            }
            other => Err(Failure::bad_argument(format!("octets do not fit {}", other.noun()))),
        }
    }

    /// Opens an optional value. Each names its type, as readers want it that know more types than the one that is expected. One that
    /// may be cut down is in chunks, so that a reader can pass over what it does not know, and so are those within it.
    #[cold]
    fn open_value(&mut self, content: &Shape, len: usize) -> Visit<()> {
        if std::mem::take(&mut self.null) && len == 0 {
            self.values.push(OptionalForm::Null);
            return Ok(());
        }
        let Some(value) = ValueType::of(content) else { return Err(unsupported("an optional value")) };
        if len == 0 {
            self.put().u32(0);
            self.values.push(OptionalForm::Null);
            return Ok(());
        }
        let ids = value.told().count();
        let chunked = ids > 1 || self.level > 0;
        self.end_chunk();
        let mut put = self.put();
        put.u32(value_types::tag(chunked, ids > 1));
        if ids > 1 {
            put.count(ids);
        }
        value.told().for_each(|id| put.string(id.as_bytes()));
        self.values.push(match chunked {
            true => OptionalForm::Chunked { inner_end: None },
            false => OptionalForm::Whole,
        });
        if chunked {
            self.level += 1;
            self.begin_chunk();
        }
        Ok(())
    }

    /// Ends an optional value. Its end tag ends the values within it, too, so where nothing stands behind the last of those it takes the
    /// place of that one's (CORBA 3.3 part 2, section 9.3.4.6). omniORB reads no second end tag there.
    #[cold]
    fn close_value(&mut self) {
        let Some(OptionalForm::Chunked { inner_end }) = self.values.pop() else { return };
        self.end_chunk();
        let written = self.buffer.flat().len();
        if inner_end == Some(written) {
            self.buffer.flat().truncate(written.saturating_sub(4));
        }
        let end = self.level.wrapping_neg();
        self.put().u32(end);
        self.level = self.level.saturating_sub(1);
        if let Some(OptionalForm::Chunked { inner_end }) = self.values.last_mut() {
            *inner_end = Some(self.buffer.flat().len());
            self.begin_chunk();
        }
    }

    /// Leaves room for the size of a chunk.
    fn begin_chunk(&mut self) {
        self.put().u32(0);
        self.chunk = Some(self.buffer.flat().len() - 4);
    }

    /// Writes the size of the present chunk, or takes it back where nothing is in it.
    fn end_chunk(&mut self) {
        let Some(index) = self.chunk.take() else { return };
        let len = self.buffer.flat().len().saturating_sub(index + 4);
        match u32::try_from(len) {
            Ok(0) => self.buffer.flat().truncate(index),
            // The check of the whole message's size refuses what is larger.
            len => self.put().patch(index, len.unwrap_or(u32::MAX)),
        }
    }

    /// A `long double` of 16 octets, the sign first: in the order of the message, aligned to 8 (sections 9.3.1.1 and 9.3.1.4).
    #[cold]
    fn long_double(&mut self, value: &[u8]) -> Visit<()> {
        let Ok(octets) = <[u8; long_double::OCTETS]>::try_from(value) else {
            return Err(Failure::bad_argument(format!("a `long double` has 16 octets, not {}", value.len())));
        };
        let mut put = self.put();
        put.align(8);
        let number = u128::from_be_bytes(octets);
        put.out.extend_from_slice(&if put.little() { number.to_le_bytes() } else { number.to_be_bytes() });
        Ok(())
    }

    /// GIOP 1.0 has no wide text (section 9.3.2.7).
    fn wide_text(&mut self, value: &str) -> Visit<()> {
        self.fits(2 * value.len() + 8)?;
        self.dialect.knows(true)?;
        let minor = self.dialect.minor;
        let mut put = self.put();
        match minor {
            0 => return Err(no_wide()),
            // Counted in units, with a NUL unit at the end, in the message's byte order.
            1 => {
                put.count(value.encode_utf16().count() + 1);
                for unit in value.encode_utf16().chain([0]) {
                    put.u16(unit);
                }
            }
            // Counted in octets; without a byte-order mark the units are big-endian.
            _ => {
                let mark = mark(value.chars().next());
                put.count(mark.len() + 2 * value.encode_utf16().count());
                put.out.extend_from_slice(mark);
                for unit in value.encode_utf16() {
                    put.out.extend_from_slice(&unit.to_be_bytes());
                }
            }
        }
        Ok(())
    }
}

/// The octets in front of wide text of GIOP 1.2 that begins with this character: none, unless it looks like a byte-order mark
/// itself. A reader would drop such a one, and turn what follows.
fn mark(first: Option<char>) -> &'static [u8] {
    match first {
        Some('\u{feff}' | '\u{fffe}') => &[0xFE, 0xFF],
        _ => &[],
    }
}

/// A value that CDR has no form for.
#[cold]
pub(crate) fn unsupported(what: &str) -> Failure {
    Failure::unsupported(format!("{what} cannot travel by CDR"))
        .with_hint("pass it as a struct, a sequence or a union, or use a wire that has it")
}

/// Wide text or a wide character on a connection of GIOP 1.0.
#[cold]
fn no_wide() -> Failure {
    Failure::unsupported("GIOP 1.0 carries no wide characters")
        .with_hint("say that the peer speaks 1.2, as in corbaloc::1.2@host:port/key")
}

/// A character that the agreed narrow set does not have. The code is the exception that the specification
/// wants.
#[cold]
fn no_latin1(c: char) -> Failure {
    Failure::bad_argument(format!(
        "`{c}` does not exist in ISO-8859-1, the only narrow character set of the peer"
    ))
    .with_code("CORBA::DATA_CONVERSION")
}

/// The failure of a message that would exceed the limit.
#[cold]
pub(crate) fn over(size: usize, limit: usize) -> Failure {
    Failure::over_limit(Initiator::Here, "bytes in a GIOP message", size, limit)
        .with_hint("raise the message limit on both sides, or send less at a time")
}

// Each takes the unsigned number of its size, which `CdrWriter` aligns and puts in order.
macro_rules! primitives {
    ($($name:ident $via:ident $convert:expr;)*) => {$(
        #[inline]
        fn $name(&mut self, value: $name) -> Visit<()> {
            self.put().$via(($convert)(value));
            Ok(())
        }
    )*};
}

impl Sink for CdrSink<'_> {
    primitives! {
        bool u8 u8::from;
        u8 u8 |value| value;
        i8 u8 i8::cast_unsigned;
        u16 u16 |value| value;
        i16 u16 i16::cast_unsigned;
        u32 u32 |value| value;
        i32 u32 i32::cast_unsigned;
        u64 u64 |value| value;
        i64 u64 i64::cast_unsigned;
        f32 u32 f32::to_bits;
        f64 u64 f64::to_bits;
    }

    fn char(&mut self, value: char, wide: bool) -> Visit<()> {
        let (minor, narrow) = (self.dialect.minor, self.dialect.narrow);
        self.dialect.knows(wide)?;
        let mut put = self.put();
        if !wide {
            // A narrow character is one octet, whatever the set. UTF-8 has only ASCII in one, so JacORB and
            // ORBit2 send the others as ISO 8859-1 has them, and read them so.
            let octet = match (narrow, u8::try_from(u32::from(value))) {
                (_, Ok(octet)) => octet,
                (Narrow::Utf8, Err(_)) => {
                    return Err(Failure::bad_argument(format!("`{value}` is more than one octet")));
                }
                (Narrow::Latin1, Err(_)) => return Err(no_latin1(value)),
                (Narrow::Foreign, Err(_)) => return Err(foreign(false)),
            };
            put.u8(octet);
            return Ok(());
        }
        let mut room = [0; 2];
        let units = value.encode_utf16(&mut room);
        match (minor, &*units) {
            (0, _) => return Err(no_wide()),
            (1, [unit]) => put.u16(*unit),
            (1, _) => {
                return Err(Failure::bad_argument(format!(
                    "`{value}` needs two UTF-16 units, GIOP 1.1 carries one"
                )));
            }
            _ => {
                let mark = mark(Some(value));
                put.u8(if units.len() == 1 && mark.is_empty() { 2 } else { 4 });
                put.out.extend_from_slice(mark);
                for unit in units {
                    put.out.extend_from_slice(&unit.to_be_bytes());
                }
            }
        }
        Ok(())
    }

    fn text(&mut self, shape: &Text, value: &str) -> Visit<()> {
        shape.check(value).map_err(Failure::bad_argument)?;
        if value.as_bytes().contains(&0) {
            return Err(Failure::bad_argument("text with a NUL inside cannot travel by CDR"));
        }
        if matches!(shape.kind, TextKind::Wide | TextKind::Counted) {
            return self.wide_text(value);
        }
        self.fits(value.len())?;
        match self.dialect.narrow {
            Narrow::Utf8 => self.put().string(value.as_bytes()),
            Narrow::Latin1 => {
                let raw = to_latin1(value).map_err(no_latin1)?;
                self.put().string(&raw);
            }
            Narrow::Foreign => return Err(foreign(false)),
        }
        Ok(())
    }

    fn bytes(&mut self, shape: &Shape, value: &[u8]) -> Visit<()> {
        if long_double::is(shape) {
            return self.long_double(value);
        }
        self.fits(value.len())?;
        self.begin(shape, value.len())?;
        self.buffer.flat().extend_from_slice(value);
        Ok(())
    }

    fn shared(&mut self, shape: &Shape, value: &Bytes) -> Visit<()> {
        // A chunk is counted in the flat buffer.
        if value.len() < SPLICE || self.chunk.is_some() {
            return self.bytes(shape, value);
        }
        self.fits(value.len())?;
        self.begin(shape, value.len())?;
        self.buffer.splice(value.clone());
        self.shift = self.shift.wrapping_add(value.len());
        Ok(())
    }

    fn numbers(&mut self, values: Numbers<'_>) -> Visit<()> {
        if values.is_empty() {
            return Ok(());
        }
        self.fits(values.len().saturating_mul(values.width()))?;
        let mut put = self.put();
        put.align(values.width());
        values.put(put.little(), put.out);
        Ok(())
    }

    #[inline]
    fn enumerant(&mut self, shape: &Enum, value: i32) -> Visit<()> {
        let none = || Failure::bad_argument(format!("{value} is no member of {}", shape.name));
        let ordinal = shape.ordinal_of(value).ok_or_else(none)?;
        self.put().u32(ordinal);
        Ok(())
    }

    fn reference(&mut self, value: Option<&Reference>) -> Visit<()> {
        if let Some(reference) = value
            && !reference.profiles.is_empty()
            && !ior::is_said(reference)
        {
            let what = "the reference leads to an object of another wire only";
            return Err(Failure::bad_argument(what).with_hint("CORBA passes references to CORBA objects"));
        }
        let local = self.local;
        ior::put(value, local, &mut self.put());
        Ok(())
    }

    fn type_code(&mut self, value: &TypeCode) -> Visit<()> {
        self.fits(value.encoded().len())?;
        typecodes::put_value(value, &mut self.put())
    }

    fn open(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        match shape.resolved() {
            Shape::Struct(_) | Shape::Union(_) | Shape::Variant => Ok(()),
            Shape::Array(array) if long_double::is_array(array) => {
                Err(Failure::bad_argument("the octets of a `long double` are written together"))
            }
            Shape::Sequence(_) | Shape::Array(_) => self.begin(shape, len),
            Shape::Map(_) => Err(unsupported("a map")),
            Shape::Optional(content) => self.open_value(content, len),
            Shape::Pointer(_) if len == 0 => Err(unsupported("a null pointer")),
            Shape::Pointer(_) => Ok(()),
            other => Err(Failure::bad_argument(format!("{} is no composite", other.noun()))),
        }
    }

    #[inline]
    fn close(&mut self, shape: &Shape) -> Visit<()> {
        if !self.values.is_empty() && matches!(shape.resolved(), Shape::Optional(_)) {
            self.close_value();
        }
        Ok(())
    }

    fn content(&mut self, shape: &Shape) -> Visit<()> {
        let mut put = self.put();
        // An `any` without a value has tk_null, as ORBs make it; tk_void is that of results.
        if matches!(shape, Shape::Void) {
            put.u32(0);
            return Ok(());
        }
        let mut types = OpenTypes::default();
        typecodes::put(shape, &mut put, &mut types, limits::TYPECODE_DEPTH)?;
        if types.has_signed_octet {
            // Its type code would be that of an octet, and -1 would arrive as 255.
            return Err(Failure::unsupported("a signed octet in an any cannot travel by CDR")
                .with_hint("pass it as a short (i16)"));
        }
        if let Some(exception) = typecodes::exception(shape) {
            put.string(exception.id.as_bytes());
        }
        if let Some((boxed, _)) = typecodes::boxed(shape) {
            match boxed.value {
                typecodes::NULL => put.u32(0),
                typecodes::NONE => put.u32(typecodes::UNTYPED),
                value => {
                    put.u32(typecodes::TYPED);
                    put.string(if value == typecodes::OWN { boxed.id } else { value }.as_bytes());
                }
            }
            self.null = boxed.value == typecodes::NULL;
        }
        Ok(())
    }
}
