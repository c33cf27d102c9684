//! Values of value types as they travel (CORBA 3.3 part 2, section 9.3.4): null, a header with what follows it, or an offset
//! back to a value that came before.
//!
//! What a reader keeps of a message is made when its first value comes. A value in chunks is read through a window: the readers of
//! single parts see the octets of one chunk (`Get::bytes`), and where these end, `CdrSource::next_chunk` shows them those of the next.
//! So types without values are read as if there were no chunks.
//!
//! Invariants against hostile bytes:
//! * An offset leads back to where a header, a repository id or a list of these began that was read; elsewhere it is refused. It may
//!   not lead to a value that is still being read, so no value contains itself.
//! * A value that is shared is read once more where it stands again, as the type that is expected there: its header names that type, or the
//!   value tells no type and was read as one that may be cut down to it. Each time is charged as if it had come, so that few octets
//!   cannot stand for many values; the levels of values count as all others do.
//! * A chunk lies within the message, and is not empty. A value without chunks does not stand in one with chunks, and no header stands
//!   in a chunk. An end tag names the present level, or one around it.

use crate::cdr::{DecodeError, Get, ReadCdr};
use everywire_model::value_type::ValueType;
use everywire_model::{Budget, Failure, Visit};

/// The first of the tags of values; those below are sizes of chunks (9.3.4.1).
pub(crate) const FIRST_TAG: u32 = 0x7fff_ff00;
/// A bit of a tag: a codebase URL follows it.
const CODEBASE: u32 = 1;
/// The bits of a tag that say which repository ids follow it.
const IDS: u32 = 6;
const ONE_ID: u32 = 2;
const LIST: u32 = 6;
/// A bit of a tag: the value comes in chunks.
const CHUNKED: u32 = 8;
/// In place of a value, a repository id or a list of these: an offset to one that came before follows.
const INDIRECTION: u32 = u32::MAX;

/// The tag of a value that names one type, or all to which it may be cut down.
pub(crate) fn tag(chunked: bool, list: bool) -> u32 {
    FIRST_TAG | if list { LIST } else { ONE_ID } | if chunked { CHUNKED } else { 0 }
}

/// What is known of the values of a message that is being read.
#[derive(Debug, Default)]
pub(crate) struct Values<'a> {
    /// All octets of the body.
    pub(crate) whole: &'a [u8],
    /// Optional values that are open, outermost first.
    pub(crate) open: Vec<Open<'a>>,
    /// Values that came, ascending by place.
    seen: Vec<ReceivedValue>,
    /// Where repository ids and lists of these began, ascending.
    ids: Vec<usize>,
    /// How many values in chunks are open.
    pub(crate) level: u32,
    /// An end tag ended this level and all within it, and not all of them are closed.
    pub(crate) ended: Option<u32>,
}

/// An optional value that is open.
#[derive(Debug)]
pub(crate) struct Open<'a> {
    /// Where its header is; none for null.
    pub(crate) at: Option<usize>,
    pub(crate) chunked: bool,
    /// Where to go on behind it, if it was read from where it stood before.
    pub(crate) back: Option<(Get<'a>, u32, Option<u32>)>,
}

/// A value that came.
#[derive(Debug)]
struct ReceivedValue {
    at: usize,
    /// The type that it was read as first, and those to which that may be cut down.
    read_as: Box<[u64]>,
    /// How many values in chunks were around it.
    level: u32,
}

/// What a header tells.
pub(crate) struct Head<'a> {
    pub(crate) chunked: bool,
    /// Its types, the most derived first; none, if it is of the type that is expected.
    pub(crate) ids: Vec<&'a [u8]>,
}

/// A number for a type: FNV-1a of its repository id. Types that have the same are read from the same octets, which harms nobody.
fn number(id: &str) -> u64 {
    id.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl<'a> Values<'a> {
    /// Of these octets, none of which were looked at for values.
    pub(crate) fn new(whole: &'a [u8]) -> Self {
        Self { whole, ..Self::default() }
    }

    /// Notes a value, so that another place may name it.
    pub(crate) fn note(&mut self, at: usize, value: ValueType<'_>, budget: &mut Budget) -> Visit<()> {
        // Values are few beside their octets, but may have none of their own.
        budget.charge_elements(1)?;
        budget.charge_bytes(size_of::<ReceivedValue>() as u64)?;
        if let Err(place) = self.seen.binary_search_by_key(&at, |seen| seen.at) {
            let read_as: Box<[u64]> = value.told().map(number).collect();
            budget.charge_bytes(size_of_val(&*read_as) as u64)?;
            self.seen.insert(place, ReceivedValue { at, read_as, level: self.level });
        }
        Ok(())
    }

    /// The value that came at a place.
    fn seen(&self, at: usize) -> Option<&ReceivedValue> {
        self.seen.binary_search_by_key(&at, |seen| seen.at).ok().and_then(|index| self.seen.get(index))
    }

    /// Whether the value at a place, which tells no type, may be read as the type with this id: it is of the type that was expected where it
    /// stands, or may be cut down from that.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn may_be(&self, at: usize, id: &str) -> Visit<()> {
        if self.seen(at).is_some_and(|seen| seen.read_as.contains(&number(id))) {
            return Ok(());
        }
        Err(Failure::malformed(format_args!("an indirection to {id} names another value"), at))
    }

    /// The level of the value that an offset leads to.
    ///
    /// # Errors
    /// It leads to no value, or to one that is being read.
    pub(crate) fn earlier(&self, at: usize, id: &str, from: usize) -> Visit<u32> {
        let Some(seen) = self.seen(at) else {
            return Err(Failure::malformed("an indirection names no value that came before it", from));
        };
        if self.open.iter().any(|open| open.at == Some(at)) {
            let what = format_args!("a value of {id} contains itself, which cannot be read here");
            return Err(Failure::malformed(what, from));
        }
        Ok(seen.level)
    }

    /// Reads what follows the tag of a value, up to its members.
    pub(crate) fn head(&mut self, get: &mut Get<'a>, tag: u32, budget: &mut Budget) -> Visit<Head<'a>> {
        let at = get.pos;
        if tag & !(FIRST_TAG | CODEBASE | IDS | CHUNKED) != 0 || tag & IDS == IDS - ONE_ID {
            return Err(Failure::malformed(format_args!("{tag:#010x} is no tag of a value"), at));
        }
        if tag & CODEBASE != 0 {
            self.id(get, budget)?;
        }
        let ids = match tag & IDS {
            0 => Vec::new(),
            ONE_ID => vec![self.id(get, budget)?],
            _ => self.list(get, budget)?,
        };
        Ok(Head { chunked: tag & CHUNKED != 0, ids })
    }

    /// Repository ids, with their count or where they stood before.
    fn list(&mut self, get: &mut Get<'a>, budget: &mut Budget) -> Visit<Vec<&'a [u8]>> {
        let mut here = *get;
        let is_again = here.u32()? == INDIRECTION;
        let mut from = self.place(get, budget)?;
        let count = from.count()?;
        if count == 0 || count > from.left() / 4 {
            return Err(from.bad("a value has no types, or more than there are octets").into());
        }
        budget.charge_elements(count as u64)?;
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(self.id(&mut from, budget)?);
        }
        if !is_again {
            *get = from;
        }
        Ok(ids)
    }

    /// One repository id, or a codebase, or where it stood before.
    fn id(&mut self, get: &mut Get<'a>, budget: &mut Budget) -> Visit<&'a [u8]> {
        let mut here = *get;
        let is_again = here.u32()? == INDIRECTION;
        let mut from = self.place(get, budget)?;
        let id = from.string()?;
        if !is_again {
            *get = from;
        }
        Ok(id)
    }

    /// The reader at the next thing that may stand elsewhere: there if it does (`get` is then behind the offset), else here.
    fn place(&mut self, get: &mut Get<'a>, budget: &mut Budget) -> Visit<Get<'a>> {
        get.align(4);
        let at = get.pos;
        let mut ahead = *get;
        if ahead.u32()? == INDIRECTION {
            let target = offset(&mut ahead)?;
            *get = ahead;
            if self.ids.binary_search(&target).is_err() {
                return Err(Failure::malformed(
                    "an indirection names no repository id that came before it",
                    at,
                ));
            }
            return Ok(Get { pos: target, ..ahead });
        }
        if let Err(place) = self.ids.binary_search(&at) {
            budget.charge_bytes(size_of::<usize>() as u64)?;
            self.ids.insert(place, at);
        }
        Ok(*get)
    }

    /// Goes behind a value in chunks whose `level` this is, which is open and of which `get` has read some. What was not read is
    /// passed over, values in it too. The level that ended.
    pub(crate) fn skip(&mut self, get: &mut Get<'a>, level: u32, budget: &mut Budget) -> Visit<u32> {
        // To the end of the chunk.
        *get = Get { bytes: self.whole, pos: get.pos.max(get.bytes.len()), ..*get };
        let mut inner = level;
        loop {
            let at = get.pos;
            match get.u32()? {
                size @ 1..FIRST_TAG => {
                    get.take(usize::try_from(size).unwrap_or(usize::MAX))?;
                }
                tag @ FIRST_TAG..=0x7fff_ffff => {
                    budget.charge_elements(1)?;
                    whole_in_chunks(tag, level, at)?;
                    self.head(get, tag, budget)?;
                    inner = inner.saturating_add(1);
                }
                0 => {}
                end => {
                    let end = end.wrapping_neg();
                    if end > inner {
                        return Err(Failure::malformed("an end tag is of a value that is not open", at));
                    }
                    if end <= level {
                        return Ok(end);
                    }
                    inner = end - 1;
                }
            }
        }
    }
}

/// A value stands in one that comes in chunks.
///
/// # Errors
/// It does not come in chunks itself.
pub(crate) fn whole_in_chunks(tag: u32, level: u32, at: usize) -> Visit<()> {
    match level > 0 && tag & CHUNKED == 0 {
        true => Err(Failure::malformed("a value without chunks stands in one with chunks", at)),
        false => Ok(()),
    }
}

/// Where an offset leads that is read next: it counts from where it stands, and leads back.
pub(crate) fn offset(get: &mut Get<'_>) -> Result<usize, DecodeError> {
    let value = get.u32()?.cast_signed();
    let from = get.pos - 4;
    let target = isize::try_from(value)
        .ok()
        .filter(|value| *value < -4)
        .and_then(|value| from.checked_add_signed(value));
    target.ok_or(DecodeError { what: "an indirection does not lead back into the message", at: from })
}
