//! Values that are walked over without being built: looked at before they are passed on, counted, or stepped over (specification,
//! "Marshaling").
//!
//! A signature is the plan of the walk: its codes are taken one by one. A struct only aligns what follows, and an array has the codes of its
//! element taken again until its bytes are used up; arrays and variants alone are calls of their own. Who looks (`LOOKS`) checks all that a
//! receiver may check: padding, text, names, booleans, handles, the elements of arrays. Who steps over values checks padding and lengths.
//!
//! Invariants:
//! * Nothing is read past the bytes, nor past those of an array by its elements without an error.
//! * Each array, struct and variant is a level, and so is a value in it; there are at most `limits::DEPTH` (`depth`: how many may still follow).
//! * Each round over the codes of an element takes at least one byte, or is the last: a walk takes no longer than its bytes.

use crate::basics::{DecodeError, Get, PADDING};
use crate::signature::{alignment, check, check_one};
use crate::{limits, names};
use everywire_idl::signature as spelling;

/// Looks at values of these types, one behind the other. The signature was checked; `handles` is how many came with the message.
pub(crate) fn look(get: &mut Get<'_>, types: &[u8], handles: usize) -> Result<(), DecodeError> {
    Walk::<true> { handles, ..Walk::at(get) }.run(get, types, ONCE).map(drop)
}

/// Steps over values of these types, one behind the other. The signature was checked.
///
/// # Errors
/// A value is cut off, nests too deeply, or has a variant with an invalid signature.
pub(crate) fn skip(get: &mut Get<'_>, types: &[u8]) -> Result<(), DecodeError> {
    Walk::<false>::at(get).run(get, types, ONCE).map(drop)
}

/// Steps over the elements of an array, all of whose bytes are there: how many there are.
///
/// # Errors
/// As [`skip`], and the array ends inside an element.
pub(crate) fn count(get: &mut Get<'_>, element: &[u8], len: usize) -> Result<usize, DecodeError> {
    let until = get.left().saturating_sub(len);
    let count = if len == 0 { 0 } else { Walk::<false>::at(get).run(get, element, until)? };
    if get.left() == until { Ok(count) } else { Err(get.bad(CUT)) }
}

/// Until this many bytes are left: values of each type once.
const ONCE: usize = usize::MAX;

const CUT: &str = "an array ends inside an element";
const DEEP: &str = "values are nested too deeply";

/// The first bytes of a word, so many of them: padding.
const FIRST: [u64; 8] = {
    let (mut first, mut len) = ([0; 8], 0);
    while len < first.len() {
        first[len] = (1 << (8 * len)) - 1;
        len += 1;
    }
    first
};

/// A place in a walk. It is copied into each call, so that it can stay in registers. Looking at values and stepping over them are code of their own:
/// nothing is asked for each value.
#[derive(Clone, Copy)]
struct Walk<'a, const LOOKS: bool> {
    rest: &'a [u8],
    /// Offset of the end in what alignment is counted from.
    end: usize,
    little: bool,
    handles: usize,
}

/// What is wrong where so many bytes are left, which `run` turns into an offset.
#[cold]
#[inline(never)]
fn bad(left: usize, what: &'static str) -> DecodeError {
    DecodeError { what, at: left }
}

impl<'a, const LOOKS: bool> Walk<'a, LOOKS> {
    fn at(get: &Get<'a>) -> Self {
        let rest = get.bytes.get(get.pos..).unwrap_or_default();
        let end = get.base.wrapping_add(get.bytes.len());
        Self { rest, end, little: get.little, handles: 0 }
    }

    /// Walks over values, and has `get` stand behind them.
    fn run(self, get: &mut Get<'_>, types: &[u8], until: usize) -> Result<usize, DecodeError> {
        let whole = get.bytes.len();
        match self.values(types, until, limits::DEPTH) {
            Ok((rest, count)) => {
                get.pos = whole - rest.len();
                Ok(count)
            }
            Err(bad) => Err(DecodeError { at: whole - bad.at, ..bad }),
        }
    }

    /// Walks over values of these types, again and again as long as more than `until` bytes are left. What is left, and how often.
    fn values(self, types: &[u8], until: usize, mut depth: u32) -> Result<(&'a [u8], usize), DecodeError> {
        let (mut at, mut count) = (self, 0);
        loop {
            let (mut codes, before) = (types.iter(), at.rest.len());
            while let Some(code) = codes.next() {
                match code {
                    b'y' => at.take(1).map(drop)?,
                    b'n' | b'q' => at.number::<2>().map(drop)?,
                    b'i' | b'u' => at.number::<4>().map(drop)?,
                    b'x' | b't' | b'd' => at.number::<8>().map(drop)?,
                    b's' => {
                        let text = at.string()?;
                        if LOOKS && !is_text(text) {
                            return Err(bad(at.rest.len(), "text that is no UTF-8, or has a NUL inside"));
                        }
                    }
                    b'(' | b'{' => {
                        at.align(8)?;
                        depth -= 1;
                        if depth == 0 {
                            return Err(bad(at.rest.len(), DEEP));
                        }
                    }
                    b')' | b'}' => depth += 1,
                    b'a' => {
                        let (rest, behind) = at.array(codes.as_slice(), depth)?;
                        (at.rest, codes) = (rest, behind.iter());
                    }
                    b'v' => at.rest = at.variant(depth)?,
                    b'b' => {
                        if at.u32()? > 1 && LOOKS {
                            return Err(bad(at.rest.len(), "a boolean is neither 0 nor 1"));
                        }
                    }
                    b'h' => {
                        if at.u32()? as usize >= at.handles && LOOKS {
                            return Err(bad(at.rest.len(), "a handle that did not come"));
                        }
                    }
                    b'o' => {
                        let path = at.string()?;
                        if LOOKS && !names::is_long_path(path) {
                            return Err(bad(at.rest.len(), "text that is no object path"));
                        }
                    }
                    b'g' => {
                        let signature = at.signature()?;
                        if LOOKS {
                            check(signature).map_err(|what| bad(at.rest.len(), what))?;
                        }
                    }
                    _ => return Err(bad(at.rest.len(), "a signature has a code that no type has")),
                }
            }
            count += 1;
            if at.rest.len() <= until {
                return Ok((at.rest, count));
            }
            if at.rest.len() == before {
                return Err(bad(before, "a type has no values"));
            }
        }
    }

    /// An array, whose element begins these types: what is left behind it, and the types that follow.
    fn array<'s>(mut self, types: &'s [u8], depth: u32) -> Result<(&'a [u8], &'s [u8]), DecodeError> {
        let behind = spelling::element(types).map_err(|what| bad(self.rest.len(), what))?;
        let element = types.get(..types.len() - behind.len()).unwrap_or_default();
        let len = self.u32()? as usize;
        if len > limits::ARRAY {
            return Err(bad(self.rest.len(), "an array is longer than 64 MiB"));
        }
        let first = element.first().copied().unwrap_or(b'y');
        self.align(alignment(first))?;
        let mut ends = self;
        ends.take(len)?;
        // Numbers are as wide as they are aligned, and any bits will do.
        let numbers = matches!(first, b'y' | b'n' | b'q' | b'i' | b'u' | b'x' | b't' | b'd');
        if LOOKS && numbers && !len.is_multiple_of(alignment(first)) {
            return Err(bad(self.rest.len(), CUT));
        }
        if LOOKS && !numbers && len > 0 {
            let Some(depth) = depth.checked_sub(1).filter(|depth| *depth > 0) else {
                return Err(bad(self.rest.len(), DEEP));
            };
            let (rest, _) = self.values(element, ends.rest.len(), depth)?;
            if rest.len() != ends.rest.len() {
                return Err(bad(rest.len(), CUT));
            }
        }
        Ok((ends.rest, behind))
    }

    /// A variant: what is left behind it.
    fn variant(mut self, depth: u32) -> Result<&'a [u8], DecodeError> {
        let types = self.signature()?;
        check_one(types).map_err(|what| bad(self.rest.len(), what))?;
        match depth {
            0 | 1 => Err(bad(self.rest.len(), DEEP)),
            depth => Ok(self.values(types, ONCE, depth - 1)?.0),
        }
    }

    /// Steps over padding. Mostly a word can be read here, whose first bytes it is.
    #[inline(always)]
    fn align(&mut self, to: usize) -> Result<(), DecodeError> {
        // What is left grows by as much as the offset shrinks.
        let pad = self.rest.len().wrapping_sub(self.end) & (to - 1);
        self.rest = match self.rest.first_chunk() {
            Some(word) if u64::from_le_bytes(*word) & FIRST[pad & 7] == 0 => {
                self.rest.get(pad..).unwrap_or_default()
            }
            _ => last_padding(self.rest, pad)?,
        };
        Ok(())
    }

    #[inline(always)]
    fn number<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.align(N)?;
        let Some((number, rest)) = self.rest.split_first_chunk() else {
            return Err(bad(self.rest.len(), "the message ends inside a number"));
        };
        self.rest = rest;
        Ok(*number)
    }

    #[inline(always)]
    fn u32(&mut self) -> Result<u32, DecodeError> {
        let number = self.number()?;
        Ok(if self.little { u32::from_le_bytes(number) } else { u32::from_be_bytes(number) })
    }

    #[inline(always)]
    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            return Err(bad(self.rest.len(), "a length exceeds the rest of the message"));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// A string, without its NUL.
    #[inline(always)]
    fn string(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = self.u32()? as usize;
        self.terminated(len)
    }

    /// A signature, without its NUL.
    #[inline(always)]
    fn signature(&mut self) -> Result<&'a [u8], DecodeError> {
        let [len] = self.number()?;
        self.terminated(len.into())
    }

    #[inline(always)]
    fn terminated(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        match self.take(len.saturating_add(1))?.split_last() {
            Some((0, text)) => Ok(text),
            _ => Err(bad(self.rest.len(), "a string does not end with NUL")),
        }
    }
}

/// What follows padding near the end of the bytes, or padding that is wrong.
#[cold]
#[inline(never)]
fn last_padding(rest: &[u8], pad: usize) -> Result<&[u8], DecodeError> {
    match rest.split_at_checked(pad) {
        Some((padding, behind)) if padding.iter().all(|octet| *octet == 0) => Ok(behind),
        Some(_) => Err(bad(rest.len(), PADDING)),
        None => Err(bad(rest.len(), "the message ends inside padding")),
    }
}

/// Whether it is UTF-8 without NUL. Most text is plain: then sixteen bytes are looked at in one go.
#[inline(always)]
fn is_text(text: &[u8]) -> bool {
    is_plain(text) || !text.contains(&0) && str::from_utf8(text).is_ok()
}

/// Whether it is ASCII without NUL: those are the octets that are positive as signed numbers. Blocks may overlap at the end.
#[inline(always)]
fn is_plain(text: &[u8]) -> bool {
    fn is_block<const N: usize>(block: &[u8; N]) -> bool {
        block.iter().fold(true, |plain, octet| plain & (octet.cast_signed() > 0))
    }
    match (text.last_chunk::<16>(), text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(last), ..) => text.as_chunks::<16>().0.iter().all(is_block) && is_block(last),
        (None, Some(first), Some(last)) => is_block(first) && is_block(last),
        _ => text.iter().all(|octet| octet.cast_signed() > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basics::{BasicWriter, ReadText, WriteText};

    #[test]
    fn text_is_what_is_utf_8_without_nul_wherever_that_shows() {
        let is_one = |text: &[u8]| !text.contains(&0) && str::from_utf8(text).is_ok();
        for len in 0..35 {
            let plain = vec![b'x'; len];
            assert!(is_text(&plain));
            for at in 0..len {
                for octet in [0, 1, 0x7f, 0x80, 0xc3, 0xff] {
                    let mut text = plain.clone();
                    text[at] = octet;
                    assert_eq!(is_text(&text), is_one(&text), "{text:?}");
                    // A letter of two octets, and one behind a NUL.
                    if let Some(next) = text.get_mut(at + 1) {
                        *next = 0xbf;
                        assert_eq!(is_text(&text), is_one(&text), "{text:?}");
                    }
                }
            }
        }
    }

    /// What the specification says of one value, by the plain reader and value by value; what follows its type. `depth` is how many levels may
    /// still follow.
    fn plainly<'s>(
        get: &mut Get<'_>,
        types: &'s [u8],
        depth: u32,
        handles: usize,
    ) -> Result<&'s [u8], DecodeError> {
        let (code, rest) = types.split_first().ok_or_else(|| get.bad("a type"))?;
        let depth = depth.checked_sub(1).ok_or_else(|| get.bad("a level less"))?;
        let is_good = match code {
            b'y' => get.u8().map(|_| true)?,
            b'n' | b'q' => get.u16().map(|_| true)?,
            b'i' | b'u' => get.u32().map(|_| true)?,
            b'x' | b't' | b'd' => get.u64().map(|_| true)?,
            b'b' => get.u32()? <= 1,
            b'h' => (get.u32()? as usize) < handles,
            b's' => get.string().map(|text| !text.contains(&0) && str::from_utf8(text).is_ok())?,
            b'o' => names::is_long_path(get.string()?),
            b'g' => check(get.signature()?).is_ok(),
            b'v' => {
                let inner = get.signature()?;
                check_one(inner).is_ok() && plainly(get, inner, depth, handles)?.is_empty()
            }
            b'a' => {
                let len = get.array()?;
                let behind = spelling::element(rest).map_err(|what| get.bad(what))?;
                get.align(alignment(rest[0]))?;
                let end = get.pos + len;
                // As of old: numbers are no level of their own in an array.
                let depth = if b"ynqiuxtd".contains(&rest[0]) { depth + 1 } else { depth };
                while get.pos < end {
                    plainly(get, rest, depth, handles)?;
                }
                return if get.pos == end { Ok(behind) } else { Err(get.bad("the end of an array")) };
            }
            _ => {
                get.align(8)?;
                let mut rest = rest;
                while !matches!(rest[0], b')' | b'}') {
                    rest = plainly(get, rest, depth, handles)?;
                }
                return Ok(&rest[1..]);
            }
        };
        if is_good { Ok(rest) } else { Err(get.bad("another value")) }
    }

    /// Numbers that look like chance (Marsaglia's xorshift).
    struct Xorshift(u64);

    impl Xorshift {
        fn below(&mut self, most: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % most as u64) as usize
        }

        fn of<T: Copy>(&mut self, all: &[T]) -> T {
            all[self.below(all.len())]
        }

        /// A complete type.
        fn spell(&mut self, levels: usize, types: &mut String) {
            match self.below(if levels == 0 { 14 } else { 20 }) {
                simple @ 0..14 => types.push(char::from(b"ybnqiuxtdssogh"[simple])),
                14 => types.push('v'),
                15 | 16 => {
                    types.push('a');
                    self.spell(levels - 1, types);
                }
                17 => {
                    types.push_str(self.of(&["a{s", "a{y", "a{t"]));
                    self.spell(levels - 1, types);
                    types.push('}');
                }
                _ => {
                    types.push('(');
                    (0..=self.below(4)).for_each(|_| self.spell(levels - 1, types));
                    types.push(')');
                }
            }
        }

        /// A good value of the first of these types; what follows that.
        fn put<'s>(&mut self, put: &mut BasicWriter<'_>, types: &'s [u8]) -> &'s [u8] {
            const TEXTS: [&str; 6] = [
                "",
                "x",
                "seven..",
                "eight...",
                "naïve text of more than sixteen",
                "plain text of thirty-six letters ....",
            ];
            let rest = &types[1..];
            match types[0] {
                b'y' => put.u8(7),
                b'n' | b'q' => put.u16(7),
                b'i' | b'u' => put.u32(7),
                b'x' | b't' | b'd' => put.u64(u64::MAX),
                b'b' | b'h' => put.u32(self.below(2) as u32),
                b's' => put.string(self.of(&TEXTS).as_bytes()),
                b'o' => put.string(self.of(&["/", "/a/b_1"]).as_bytes()),
                b'g' => put.signature(self.of(&["", "a{sv}"]).as_bytes()),
                b'v' => {
                    let mut inner = String::new();
                    self.spell(2, &mut inner);
                    put.signature(inner.as_bytes());
                    self.put(put, inner.as_bytes());
                }
                b'a' => {
                    put.u32(0);
                    let at = put.out.len() - 4;
                    put.align(alignment(rest[0]));
                    let first = put.out.len();
                    for _ in 0..self.below(4) {
                        self.put(put, rest);
                    }
                    put.patch(at, u32::try_from(put.out.len() - first).unwrap());
                    return spelling::element(rest).unwrap();
                }
                _ => {
                    put.align(8);
                    let mut rest = rest;
                    while !matches!(rest[0], b')' | b'}') {
                        rest = self.put(put, rest);
                    }
                    return &rest[1..];
                }
            }
            rest
        }
    }

    /// Walks in three ways over values, which begin at an offset; whether they are good.
    fn compare(types: &str, bytes: &[u8], base: usize, little: bool) -> bool {
        let begin = Get { bytes, pos: 0, base, little };
        let (mut plain, mut looked, mut skipped) = (begin, begin, begin);
        let (mut rest, mut found) = (types.as_bytes(), Ok(()));
        while !rest.is_empty() && found.is_ok() {
            found = plainly(&mut plain, rest, limits::DEPTH, 2).map(|behind| rest = behind);
        }
        let looks = look(&mut looked, types.as_bytes(), 2);
        assert_eq!(
            looks.is_ok(),
            found.is_ok(),
            "{types} {bytes:?} at {base}: {looks:?} instead of {found:?}"
        );
        let skips = skip(&mut skipped, types.as_bytes());
        match looks {
            Ok(()) => assert_eq!((looked.pos, skipped.pos, skips), (plain.pos, plain.pos, Ok(()))),
            // Who steps over them takes more.
            Err(bad) => assert!(bad.at <= bytes.len() && skipped.pos <= bytes.len()),
        }
        found.is_ok()
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri takes many minutes for thousands of bodies")]
    fn a_walk_finds_what_a_reader_finds_value_by_value() {
        let mut chance = Xorshift(0x9e37_79b9_7f4a_7c15);
        let (mut good, mut broken) = (0, 0);
        for round in 0..4000 {
            let mut types = String::new();
            (0..=chance.below(3)).for_each(|_| chance.spell(3, &mut types));
            if check(types.as_bytes()).is_err() {
                continue;
            }
            let (little, base) = (round % 2 == 0, if round % 3 == 0 { 1 + chance.below(15) } else { 16 });
            let mut bytes = vec![0; base];
            let mut put =
                BasicWriter { out: &mut bytes, shift: 0, swap: little != crate::basics::NATIVE_LITTLE };
            let mut rest = types.as_bytes();
            while !rest.is_empty() {
                rest = chance.put(&mut put, rest);
            }
            let bytes = bytes.split_off(base);
            assert!(compare(&types, &bytes, base, little), "{types} {bytes:?}");
            good += 1;
            for _ in 0..20 {
                let mut other = bytes.clone();
                match chance.below(4) {
                    0 => other.truncate(chance.below(bytes.len() + 1)),
                    1 => other.push(0),
                    _ => {}
                }
                for _ in 0..=chance.below(2) {
                    let at = chance.below(other.len().max(1));
                    if let Some(octet) = other.get_mut(at) {
                        *octet = chance.of(&[0, 1, 2, 4, 8, b'a', b'/', 0x7f, 0x80, 0xff]);
                    }
                }
                broken += usize::from(!compare(&types, &other, base, little));
            }
        }
        assert!(good > 3000 && broken > 20_000, "{good} {broken}");
    }

    #[test]
    fn levels_are_counted_wherever_they_are() {
        let deep = |levels: usize| format!("{}i{}", "(".repeat(levels), ")".repeat(levels));
        let most = (limits::DEPTH - 1) as usize;
        assert!(compare(&deep(most), &[0; 4], 0, true) && !compare(&deep(most + 1), &[0; 4], 0, true));
        // Variants in variants: the last holds an octet.
        let variants = |count: usize| [[1, b'v', 0].repeat(count - 1), vec![1, b'y', 0, 9]].concat();
        assert!(compare("v", &variants(most), 0, true) && !compare("v", &variants(most + 1), 0, true));
        // An array may be the last level, as long as nothing but numbers is in it.
        for (element, len, is_good) in [(b'y', 1, true), (b's', 0, true), (b's', 8, false)] {
            let mut bytes = variants(most);
            let from = bytes.len() - 4;
            bytes.truncate(from);
            bytes.extend_from_slice(&[2, b'a', element, 0]);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes.extend_from_slice(&[len, 0, 0, 0]);
            bytes.resize(bytes.len() + usize::from(len), 0);
            assert_eq!(compare("v", &bytes, 0, true), is_good, "{element}");
        }
    }

    #[test]
    fn elements_are_counted_within_their_array() {
        let bytes = [1, 0, 0, 0, b'a', 0, 0, 0, 1, 0, 0, 0, b'b', 0];
        let counted = |len| count(&mut Get { bytes: &bytes, pos: 0, base: 0, little: true }, b"s", len);
        assert_eq!((counted(0), counted(6), counted(14)), (Ok(0), Ok(1), Ok(2)));
        assert!(counted(5).is_err() && counted(7).is_err() && counted(13).is_err());
        // A contract may have an element without values.
        assert!(count(&mut Get { bytes: &bytes, pos: 0, base: 0, little: true }, b"", 4).is_err());
    }
}
