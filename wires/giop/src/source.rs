//! Reading values (CORBA 3.3 part 2, section 9.3).
//!
//! A `CdrSource` reads the values of one body, which may have come from anywhere. It keeps the place (`get`),
//! the dialect of the message and what is left of its budget; the shapes come from the reader's contract.
//!
//! Invariants against hostile bytes, in this order for everything with a count:
//! * A count over the bound of its type is refused, and one of more elements of the least size (`least_size`) than the message can hold.
//! * The memory that the elements will take is charged to the budget, and elements that are no numbers are counted too, as they may have
//!   no size. Only then does the caller reserve memory.
//!
//! Nesting is charged by `open` and given back by `close`. Text is checked to be valid in its character set and without NUL,
//! enumerations to be a member that the contract has. Runs of octets and narrow text of UTF-8 are borrowed from the body; what is kept
//! longer shares its bytes (`shared`), or is copied if short.

use crate::cdr::{DecodeError, Get, ReadCdr};
use crate::codesets::{self, Dialect, Narrow};
use crate::sink::unsupported;
use crate::typecodes::{self, Boxed};
use crate::value_types::{self, FIRST_TAG, Open, Values};
use crate::{bidirectional, components, ior};
use bytes::Bytes;
use everywire_model::shape::{Enum, Hold, Text, TextKind};
use everywire_model::value_type::ValueType;
use everywire_model::visit::NumbersMut;
use everywire_model::{Body, Budget, Failure, Reference, Shape, Source, TypeCode, Visit, long_double};
use std::borrow::Cow;

/// Reads the values of a body.
pub(crate) struct CdrSource<'a> {
    body: &'a Body,
    /// The place; alignment counts from where the message began (`Body::base`).
    get: Get<'a>,
    /// Version and character sets of the message.
    dialect: Dialect,
    /// What reading may still cost.
    budget: Budget,
    /// The value that comes next is none: that of a box which is null.
    null: bool,
    /// What came of value types, once one came.
    values: Option<Box<Values<'a>>>,
}

impl<'a> CdrSource<'a> {
    /// At the first value of the body.
    pub(crate) fn new(body: &'a Body) -> Self {
        Self {
            get: Get { bytes: &body.bytes, pos: 0, base: body.base, little: body.little },
            dialect: Dialect::from_number(body.dialect),
            budget: body.budget,
            body,
            null: false,
            values: None,
        }
    }

    /// Reads the count of a sequence and charges for its elements, or those of an array. The number of
    /// elements is returned.
    ///
    /// # Errors
    /// The count is over the bound, over the rest of the message, or over the budget.
    fn elements(&mut self, shape: &Shape) -> Visit<usize> {
        let (element, len) = match shape.resolved() {
            Shape::Sequence(sequence) => {
                let len = self.chunked(|source| Ok(source.get.count()?))?;
                sequence.check(len).map_err(|what| self.wrong(what))?;
                (&sequence.element, len)
            }
            Shape::Array(array) => (&array.element, array.len as usize),
            other => return Err(self.wrong(format_args!("{} has no elements", other.noun()))),
        };
        if len == 0 {
            return Ok(0);
        }
        let due = match shape.resolved() {
            Shape::Sequence(held) => held.due(),
            Shape::Array(held) => held.due(),
            _ => 0,
        };
        self.budget.charge_bytes(due)?;
        let least = least_size(element, 4);
        if len.checked_mul(least).is_none_or(|bytes| bytes > self.get.left())
            && len.checked_mul(least).is_none_or(|bytes| bytes > self.left_in_all())
        {
            return Err(self.wrong(format_args!("{len} elements exceed the rest of the message")));
        }
        let each = match element.width() {
            // Numbers occupy what they occupied in the message.
            Some(width) => width,
            None => {
                self.budget.charge_elements(len as u64)?;
                32
            }
        };
        self.budget.charge_bytes((len as u64).saturating_mul(each as u64))?;
        Ok(len)
    }

    /// Bytes that do not hold what they should, at the present place.
    #[cold]
    fn wrong(&self, what: impl std::fmt::Display) -> Failure {
        Failure::malformed(what, self.get.pos)
    }

    /// A run of octets, borrowed unless it comes in several chunks: with a count if the shape is a sequence, else as long as the array.
    fn run(&mut self, shape: &Shape) -> Visit<Cow<'a, [u8]>> {
        let len = match shape.resolved() {
            Shape::Array(array) if long_double::is_array(array) => return self.long_double(),
            Shape::Array(array) => array.len as usize,
            Shape::Sequence(sequence) => {
                let len = self.chunked(|source| Ok(source.get.count()?))?;
                sequence.check(len).map_err(|what| self.wrong(what))?;
                len
            }
            other => return Err(self.wrong(format_args!("{} is no run of octets", other.noun()))),
        };
        let taken = match self.get.take(len) {
            Ok(taken) => Cow::Borrowed(taken),
            Err(bad) => Cow::Owned(self.gathered(len, 1, bad)?),
        };
        self.budget.charge_bytes(len as u64)?;
        Ok(taken)
    }

    /// The octets of a `long double`, the sign first; in the message they are in its order, aligned to 8.
    #[cold]
    fn long_double(&mut self) -> Visit<Cow<'a, [u8]>> {
        self.budget.charge_bytes(long_double::OCTETS as u64)?;
        let before = self.get.pos;
        self.get.align(8);
        let taken = match self.get.take(long_double::OCTETS) {
            Ok(taken) => Cow::Borrowed(taken),
            Err(bad) => {
                self.get.pos = before;
                Cow::Owned(self.gathered(long_double::OCTETS, 8, bad)?)
            }
        };
        Ok(if self.get.little { taken.iter().rev().copied().collect() } else { taken })
    }

    /// Opens a value box (CORBA 3.3 part 2, section 9.3.4). The shape of what is in it remarks how that was
    /// told. Only a box that stands alone can be read: one that shares its value with others, or is cut in
    /// chunks, is refused as unsupported. A null box gives an optional shape, whose value is none.
    fn open_box(&mut self, boxed: Boxed<'_>, content: &Shape) -> Visit<Shape> {
        let (value, content) = match self.get.u32()? {
            0 => {
                self.null = true;
                (Cow::Borrowed(typecodes::NULL), Shape::Optional(Hold::new(content.clone())))
            }
            typecodes::UNTYPED => (Cow::Borrowed(typecodes::NONE), content.clone()),
            typecodes::TYPED => {
                let id = self.get.text()?;
                let value = if id == boxed.id { Cow::Borrowed(typecodes::OWN) } else { Cow::Owned(id) };
                (value, content.clone())
            }
            u32::MAX | 0x7fff_ff01..=0x7fff_ffff => {
                return Err(unsupported("a value box in chunks, with several types, or sent before"));
            }
            tag => return Err(self.wrong(format_args!("{tag:#010x} is no tag of a value"))),
        };
        let shape = Boxed { value: &value, ..boxed }.shape(content);
        shape.ok_or_else(|| unsupported("a value box of a type whose identity has spaces"))
    }

    /// A character.
    fn character(&mut self, wide: bool) -> Visit<char> {
        let at = self.get.pos;
        self.dialect.knows(wide)?;
        if !wide {
            let octet = self.get.u8()?;
            // MICO sends both octets that UTF-8 has for a character of ISO 8859-1: what follows would be misread. `Â` and `Ã` look alike where
            // such an octet stands behind them, and are refused there.
            let continues = matches!(self.get.bytes.get(self.get.pos), Some(0x80..=0xbf));
            if self.dialect.narrow == Narrow::Utf8 && matches!(octet, 0xc2 | 0xc3) && continues {
                let what =
                    format_args!("a narrow character is more than one octet ({octet:#04x} is the first)");
                return Err(Failure::malformed(what, at));
            }
            // Otherwise an octet is a character in every known set; see how it is written.
            return Ok(octet.into());
        }
        let text = match self.dialect.minor {
            0 => return Err(self.wrong("a wide character came by GIOP 1.0, which has none")),
            1 => char::from_u32(self.get.u16()?.into()).map(String::from),
            _ => {
                let len = self.get.u8()?;
                let raw = self.get.take(len.into())?;
                // One unit is the character itself, also where it looks like a mark: behind a mark nothing would be left.
                if raw.len() == 2 { codesets::units(raw, false) } else { codesets::from_utf16(raw) }
            }
        };
        let mut chars = text.iter().flat_map(|text| text.chars());
        match (chars.next(), chars.next()) {
            (Some(c), None) => Ok(c),
            _ => Err(Failure::malformed("a wide character is not one character of UTF-16", at)),
        }
    }

    /// A string.
    fn string(&mut self, shape: &Text) -> Visit<Cow<'a, str>> {
        let at = self.get.pos;
        let text = if matches!(shape.kind, TextKind::Wide | TextKind::Counted) {
            Cow::Owned(self.wide_text()?)
        } else {
            let raw = self.get.string()?;
            self.budget.charge_bytes(raw.len() as u64)?;
            match self.dialect.narrow {
                Narrow::Utf8 => match str::from_utf8(raw) {
                    Ok(text) => Cow::Borrowed(text),
                    Err(_) => return Err(Failure::malformed("text is no UTF-8", at)),
                },
                Narrow::Latin1 => codesets::from_latin1(raw),
                Narrow::Foreign => return Err(codesets::foreign(false)),
            }
        };
        if text.as_bytes().contains(&0) {
            return Err(Failure::malformed("text has a NUL inside", at));
        }
        shape.check(&text).map_err(|what| Failure::malformed(what, at))?;
        Ok(text)
    }

    /// Wide text: in GIOP 1.1 counted in units, with a NUL unit at its end, in the byte order of the message; in 1.2 counted in octets,
    /// without NUL, big-endian unless a byte-order mark says otherwise (section 9.3.2.7).
    fn wide_text(&mut self) -> Visit<String> {
        self.dialect.knows(true)?;
        let at = self.get.pos;
        let text = match self.dialect.minor {
            0 => return Err(self.wrong("wide text came by GIOP 1.0, which has none")),
            1 => {
                let count = self.get.count()?;
                let raw = self.get.take(count.saturating_mul(2))?;
                let Some((raw, [0, 0])) = raw.split_last_chunk() else {
                    return Err(Failure::malformed("wide text does not end with NUL", at));
                };
                self.budget.charge_bytes(raw.len() as u64 * 2)?;
                codesets::units(raw, self.get.little)
            }
            _ => {
                let raw = self.get.octets()?;
                self.budget.charge_bytes(raw.len() as u64 * 2)?;
                codesets::from_utf16(raw)
            }
        };
        text.ok_or_else(|| Failure::malformed("wide text is no UTF-16", at))
    }
}

/// Value types, and the chunks in which values of them may come.
impl<'a> CdrSource<'a> {
    /// Reads something that stands in one chunk, if it stands in chunks.
    #[inline]
    fn chunked<T>(&mut self, read: impl Fn(&mut Self) -> Visit<T>) -> Visit<T> {
        let before = self.get.pos;
        match read(self) {
            Err(failure) if self.values.is_some() => {
                self.get.pos = before;
                self.next_chunk(failure)?;
                read(self)
            }
            result => result,
        }
    }

    /// Goes on in the next chunk, where a part could not be read since the present chunk is at its end.
    ///
    /// # Errors
    /// `failure`, if something else was wrong; or the value ends.
    #[cold]
    fn next_chunk(&mut self, failure: Failure) -> Visit<()> {
        let Some(values) = self.values.as_mut().filter(|values| values.level > 0) else {
            return Err(failure);
        };
        let mut ahead = self.get;
        ahead.align(4);
        if ahead.pos < self.get.bytes.len() {
            return Err(failure);
        }
        let mut get = Get { bytes: values.whole, ..self.get };
        let size = match values.ended {
            None => get.u32()?,
            Some(_) => 0,
        };
        if !(1..FIRST_TAG).contains(&size) {
            return Err(Failure::malformed("a value in chunks ends before its members do", get.pos));
        }
        let start = get.pos;
        get.take(usize::try_from(size).unwrap_or(usize::MAX))?;
        self.get = Get { bytes: values.whole.get(..get.pos).unwrap_or_default(), pos: start, ..get };
        Ok(())
    }

    /// Octets left in the whole message.
    #[cold]
    fn left_in_all(&self) -> usize {
        self.values.as_ref().map_or(0, |values| values.whole.len().saturating_sub(self.get.pos))
    }

    /// So many octets from several chunks, in parts of `width`, of which each lies in one chunk.
    #[cold]
    fn gathered(&mut self, len: usize, width: usize, bad: DecodeError) -> Visit<Vec<u8>> {
        if len > self.left_in_all() {
            return Err(bad.into());
        }
        let mut all = Vec::with_capacity(len);
        loop {
            self.get.align(width);
            let here = (self.get.left() / width * width).min(len - all.len());
            all.extend_from_slice(self.get.take(here)?);
            if all.len() == len {
                return Ok(all);
            }
            self.next_chunk(bad.into())?;
        }
    }

    /// Opens an optional value: of a value type, or the content of a box that is null.
    #[cold]
    fn open_value(&mut self, content: &Shape) -> Visit<usize> {
        let whole = &self.body.bytes[..];
        let values = self.values.get_or_insert_with(|| Box::new(Values::new(whole)));
        let null = Open { at: None, chunked: false, back: None };
        if std::mem::take(&mut self.null) {
            values.open.push(null);
            return Ok(0);
        }
        let Some(value) = ValueType::of(content) else { return Err(unsupported("an optional value")) };
        let mut ahead = self.get;
        ahead.align(4);
        // Between two chunks, or at the beginning of the first: a header stands outside of them.
        let is_outside = values.level == 0 || ahead.pos >= self.get.bytes.len();
        let mut get = Get { bytes: if is_outside { values.whole } else { self.get.bytes }, ..ahead };
        let at = get.pos;
        if values.ended.is_some() {
            return Err(Failure::malformed("a value in chunks ends before its members do", at));
        }
        let mut tag = get.u32()?;
        let mut is_header = is_outside;
        if values.level > 0 && is_outside && (1..FIRST_TAG).contains(&tag) {
            // A chunk that begins with null or an offset.
            let start = get.pos;
            get.take(usize::try_from(tag).unwrap_or(usize::MAX))?;
            get = Get { bytes: values.whole.get(..get.pos).unwrap_or_default(), pos: start, ..get };
            tag = get.u32()?;
            is_header = false;
        }
        // At the end of a chunk this is the end tag of the first level.
        let is_again = tag == u32::MAX && (values.level == 0 || !is_header);
        match tag {
            0 => {
                self.get = if is_header && values.level > 0 { between(get) } else { get };
                values.open.push(null);
                Ok(0)
            }
            _ if is_again => {
                let place = get.pos;
                let target = value_types::offset(&mut get)?;
                let level = values.earlier(target, value.id(), place)?;
                let back = Some((get, values.level, values.ended.take()));
                values.level = level;
                let mut get = Get { bytes: values.whole, pos: target, ..get };
                let tag = get.u32()?;
                self.begin_value(value, target, tag, get, back)
            }
            FIRST_TAG..=0x7fff_ffff if is_header => self.begin_value(value, at, tag, get, None),
            FIRST_TAG..=0x7fff_ffff => Err(Failure::malformed("the header of a value stands in a chunk", at)),
            tag => Err(Failure::malformed(format_args!("{tag:#010x} is no tag of a value"), at)),
        }
    }

    /// Reads the header behind its tag, and what begins the members.
    fn begin_value(
        &mut self,
        value: ValueType<'_>,
        at: usize,
        tag: u32,
        mut get: Get<'a>,
        back: Option<(Get<'a>, u32, Option<u32>)>,
    ) -> Visit<usize> {
        let Some(values) = self.values.as_mut() else { return Ok(0) };
        value_types::whole_in_chunks(tag, values.level, at)?;
        values.note(at, value, &mut self.budget)?;
        let head = values.head(&mut get, tag, &mut self.budget)?;
        let own = head.ids.iter().position(|id| *id == value.id().as_bytes());
        match (head.ids.first(), own) {
            (_, Some(0)) => {}
            (None, _) => values.may_be(at, value.id())?,
            (Some(_), Some(_)) if head.chunked => {}
            (Some(id), _) => {
                let id = String::from_utf8_lossy(id);
                let what = format_args!(
                    "a value of type {id} came for {}, and cannot be cut down to that",
                    value.id()
                );
                return Err(Failure::malformed(what, at));
            }
        }
        self.get = get;
        if head.chunked {
            values.level += 1;
            self.get = between(get);
        }
        values.open.push(Open { at: Some(at), chunked: head.chunked, back });
        Ok(1)
    }

    /// Ends an optional value; what a value in chunks has more than its members is passed over.
    #[cold]
    fn close_value(&mut self) -> Visit<()> {
        let Some(values) = self.values.as_mut() else { return Ok(()) };
        let Some(open) = values.open.pop() else { return Ok(()) };
        if open.chunked {
            let level = values.level;
            let ended = match values.ended {
                Some(ended) => ended,
                None => {
                    let mut get = self.get;
                    let ended = values.skip(&mut get, level, &mut self.budget)?;
                    self.get = get;
                    ended
                }
            };
            values.ended = (ended < level).then_some(ended);
            values.level = level.saturating_sub(1);
            let all = Get { bytes: values.whole, ..self.get };
            self.get = if values.level > 0 { between(all) } else { all };
        }
        if let Some((get, level, ended)) = open.back {
            (self.get, values.level, values.ended) = (get, level, ended);
        }
        Ok(())
    }
}

/// A reader between two chunks: there is nothing in it.
fn between(get: Get<'_>) -> Get<'_> {
    Get { bytes: get.bytes.get(..get.pos).unwrap_or_default(), ..get }
}

/// The fewest bytes that a value of this shape takes; looks `depth` levels deep. Padding is not counted, and
/// beyond that depth 0 is assumed, so the result is never too large: a value that could be there is never
/// refused.
fn least_size(shape: &Shape, depth: u32) -> usize {
    let Some(deeper) = depth.checked_sub(1) else { return 0 };
    match shape.resolved() {
        Shape::Void => 0,
        Shape::Char | Shape::WideChar => 1,
        Shape::Text(text) if text.kind == TextKind::Narrow => 5,
        Shape::Text(_) | Shape::Enum(_) | Shape::Sequence(_) | Shape::Variant | Shape::TypeCode => 4,
        Shape::Reference(_) => 8,
        Shape::Struct(shape) => {
            shape.fields.iter().map(|field| least_size(&field.shape, deeper)).fold(0, usize::saturating_add)
        }
        Shape::Union(shape) => least_size(&shape.discriminator, deeper),
        Shape::Array(array) => least_size(&array.element, deeper).saturating_mul(array.len as usize),
        Shape::Pointer(pointer) => least_size(&pointer.target, deeper),
        // A null value.
        Shape::Optional(_) => 4,
        Shape::Map(_) | Shape::Handle => 0,
        other => other.width().unwrap_or(0),
    }
}

// Each reads the unsigned number of its size.
macro_rules! primitives {
    ($($name:ident $via:ident $convert:expr;)*) => {$(
        #[inline]
        fn $name(&mut self) -> Visit<$name> {
            match self.get.$via() {
                Ok(value) => Ok(($convert)(value)),
                Err(bad) => {
                    self.next_chunk(bad.into())?;
                    Ok(self.get.$via().map($convert)?)
                }
            }
        }
    )*};
}

impl<'a> Source<'a> for CdrSource<'a> {
    primitives! {
        u8 u8 |value| value;
        i8 u8 u8::cast_signed;
        u16 u16 |value| value;
        i16 u16 u16::cast_signed;
        u32 u32 |value| value;
        i32 u32 u32::cast_signed;
        u64 u64 |value| value;
        i64 u64 u64::cast_signed;
        f32 u32 f32::from_bits;
        f64 u64 f64::from_bits;
    }

    fn bool(&mut self) -> Visit<bool> {
        self.chunked(|source| Ok(source.get.boolean()?))
    }

    fn char(&mut self, wide: bool) -> Visit<char> {
        self.chunked(|source| source.character(wide))
    }

    fn text(&mut self, shape: &Text) -> Visit<Cow<'a, str>> {
        self.chunked(|source| source.string(shape))
    }

    fn bytes(&mut self, shape: &Shape) -> Visit<Cow<'a, [u8]>> {
        self.run(shape)
    }

    fn shared(&mut self, shape: &Shape) -> Visit<Bytes> {
        Ok(match self.run(shape)? {
            Cow::Borrowed(run) => self.body.share(run),
            Cow::Owned(run) => run.into(),
        })
    }

    fn numbers(&mut self, mut into: NumbersMut<'_>) -> Visit<()> {
        if into.is_empty() {
            return Ok(());
        }
        let before = self.get.pos;
        self.get.align(into.width());
        let len = into.len().saturating_mul(into.width());
        match self.get.take(len) {
            Ok(raw) => into.fill(self.get.little, raw),
            Err(bad) => {
                self.get.pos = before;
                let raw = self.gathered(len, into.width(), bad)?;
                into.fill(self.get.little, &raw);
            }
        }
        Ok(())
    }

    fn enumerant(&mut self, shape: &Enum) -> Visit<i32> {
        let ordinal = self.u32()?;
        let none = || self.wrong(format_args!("{} has no member {ordinal}", shape.name));
        shape.value_at(ordinal).ok_or_else(none)
    }

    fn reference(&mut self) -> Visit<Option<Reference>> {
        let before = self.get.pos;
        let reference = self.chunked(|source| Ok(ior::get(&mut source.get)?))?;
        // Profiles have copies of what their reference says once. How much that is at most is bounded, so it may be
        // charged afterwards.
        let copied = reference.as_ref().map_or(0, components::cost);
        self.budget.charge_bytes(self.get.pos.saturating_sub(before) as u64 + copied)?;
        Ok(reference.map(|reference| bidirectional::marked(self.body, reference)))
    }

    fn type_code(&mut self) -> Visit<TypeCode> {
        self.chunked(|source| typecodes::get_value(&mut source.get, &mut source.budget))
    }

    #[inline]
    fn open(&mut self, shape: &Shape) -> Visit<usize> {
        self.budget.enter()?;
        match shape.resolved() {
            Shape::Struct(shape) => {
                self.budget.charge_elements(1)?;
                self.budget.charge_bytes(shape.due())?;
                Ok(shape.fields.len())
            }
            Shape::Union(shape) => {
                self.budget.charge_bytes(shape.due())?;
                Ok(0)
            }
            Shape::Variant | Shape::Pointer(_) => Ok(1),
            Shape::Optional(content) => self.open_value(content),
            Shape::Array(held) if long_double::is_array(held) => {
                Err(unsupported("an octet of a `long double`"))
            }
            Shape::Sequence(_) | Shape::Array(_) => self.elements(shape),
            other => Err(unsupported(&other.noun())),
        }
    }

    fn content(&mut self) -> Visit<Shape> {
        let shape = self.chunked(|source| typecodes::get(&mut source.get, &mut source.budget))?;
        if typecodes::exception(&shape).is_some() {
            self.get.string()?;
        }
        match typecodes::boxed(&shape) {
            Some((boxed, content)) => self.open_box(boxed, content),
            None => Ok(shape),
        }
    }

    #[inline]
    fn close(&mut self, shape: &Shape) -> Visit<()> {
        self.budget.leave();
        if self.values.is_some() && matches!(shape.resolved(), Shape::Optional(_)) {
            return self.close_value();
        }
        Ok(())
    }

    fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }
}
