//! Binary XML as text, for people.
//!
//! Listings of `trace`, messages about headers and the tests show a document as the XML that it stands for;
//! the metadata exchange reads documents that came in binary form through here, too. `lexical` is the
//! notation of one text, which readers of values need as well: a number may come as a record where the
//! contract has a string.
//!
//! State: a `Printer` holds the text so far, the names of the open elements, and whether a start tag still
//! lacks its `>`. `record` takes one record after the other; an array record is read to its end at once,
//! since its element is repeated for each item.
//!
//! What holds:
//!
//! * An array repeats its start tag for every item, and a number stands for a word of any length, so the
//!   text may be much longer than the document: whoever asks says how long it may become. No array is
//!   written that would exceed it; the reader bounds everything else (depth, attributes, lengths).
//! * A word that no dictionary knows is shown as its number in braces; nothing fails because of it in a
//!   listing.
//! * Markup in texts is escaped; names are written as they came, so the result need not be well-formed XML.
//!   Whoever parses it (`metadata`, `soap::blocks`) must be ready for that.
//! * Numbers are written as XML Schema has them, and as .NET prints them: `INF`, `NaN`, `1E+15`.

use super::notation::{DAYS_TO_1970, MAX_TICKS, TICKS_A_DAY, TICKS_A_SECOND, TICKS_MASK};
use super::record::{Decimal, Prefix, Record, Text, Word};
use super::{Reader, item};
use crate::text::{base64, utf16};
use everywire_model::visit::Visit;
use everywire_model::{Failure, Initiator, guid};
use std::fmt::Write;

/// Bytes of the text of a document, at the most. It is the size of a message that describes a service, the largest that is read as text.
pub const LONGEST: usize = 16 << 20;

/// The XML text of a document. Words of dictionaries come from `word`; one it does not know is shown as `{number}`.
///
/// # Errors
/// The document's first violation, or a text longer than [`LONGEST`].
pub fn to_xml<'w>(document: &[u8], word: impl Fn(u32) -> Option<&'w str>) -> Visit<String> {
    match to_xml_partly(document, word, LONGEST) {
        (out, None) => Ok(out),
        (_, Some(failure)) => Err(failure),
    }
}

/// The same of a document that may be cut off or broken: as far as it can be read, and why no further.
/// It stops where the text has `most` bytes, or has become longer by one record.
pub fn to_xml_partly<'w>(
    document: &[u8],
    word: impl Fn(u32) -> Option<&'w str>,
    most: usize,
) -> (String, Option<Failure>) {
    let mut printer =
        Printer { out: String::new(), open: Vec::new(), in_tag: false, listed: None, word, most };
    let mut reader = Reader::new(document);
    let failure = loop {
        let printed = match reader.read() {
            Ok(Some(record)) => printer.record(&record, &mut reader),
            Ok(None) => break None,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = printed {
            break Some(failure);
        }
    };
    printer.close_tag();
    (printer.out, failure)
}

struct Printer<F> {
    out: String,
    /// Names of the open elements with their prefixes, as their ends repeat them.
    open: Vec<String>,
    /// Whether the last start tag is not closed yet: attributes may follow, and an empty element ends with
    /// `/>`.
    in_tag: bool,
    /// In a list: whether something stands in it already.
    listed: Option<bool>,
    word: F,
    /// Bytes that `out` may have.
    most: usize,
}

impl<'w, F: Fn(u32) -> Option<&'w str>> Printer<F> {
    fn record(&mut self, record: &Record<'_>, reader: &mut Reader<'_>) -> Visit<()> {
        match *record {
            Record::Element(prefix, name) => {
                self.close_tag();
                let name = self.name(prefix, name);
                self.out.push('<');
                self.out.push_str(&name);
                self.open.push(name);
                self.in_tag = true;
            }
            Record::Attribute(prefix, name, text) => {
                let (name, value) = (self.name(prefix, name), self.text(&text));
                let _ = write!(self.out, " {name}=\"{}\"", escape(&value));
            }
            Record::Xmlns(prefix, namespace) => {
                let prefix = prefix.map(|prefix| format!(":{prefix}")).unwrap_or_default();
                let namespace = self.word(namespace);
                let _ = write!(self.out, " xmlns{prefix}=\"{}\"", escape(&namespace));
            }
            Record::Text(text, ends) => {
                self.close_tag();
                match text {
                    Text::ListStart => self.listed = Some(false),
                    Text::ListEnd => self.listed = None,
                    _ => {
                        if let Some(any) = &mut self.listed
                            && std::mem::replace(any, true)
                        {
                            self.out.push(' ');
                        }
                        let value = self.text(&text);
                        self.out.push_str(&escape(&value));
                    }
                }
                if ends {
                    self.end();
                }
            }
            Record::End => self.end(),
            Record::Comment(text) => {
                self.close_tag();
                let _ = write!(self.out, "<!--{text}-->");
            }
            Record::Array => self.array(reader)?,
            // They come behind `Record::Array` only, and `array` has taken those.
            Record::Items(..) => {}
        }
        self.check(0)
    }

    /// Whether so many bytes more may be written.
    fn check(&self, more: usize) -> Visit<()> {
        let len = self.out.len().saturating_add(more);
        if len <= self.most {
            return Ok(());
        }
        Err(Failure::over_limit(Initiator::Peer, "bytes of XML to show", len, self.most))
    }

    /// An array stands for its element once for each item.
    fn array(&mut self, reader: &mut Reader<'_>) -> Visit<()> {
        self.close_tag();
        // The start tag is taken off again, to be repeated.
        let from = self.out.len();
        let mut name = String::new();
        while let Some(record) = reader.read()? {
            match record {
                Record::End => name = self.open.pop().unwrap_or_default(),
                Record::Items(kind, _, data) => {
                    let start = self.out.split_off(from);
                    self.in_tag = false;
                    let items = data.chunks_exact(kind.width());
                    self.check(items.len().saturating_mul(start.len()))?;
                    for raw in items {
                        let value = item(kind, raw).map(|text| self.text(&text)).unwrap_or_default();
                        let _ = write!(self.out, "{start}>{}</{name}>", escape(&value));
                    }
                    return Ok(());
                }
                other => self.record(&other, reader)?,
            }
        }
        Ok(())
    }

    fn close_tag(&mut self) {
        if std::mem::take(&mut self.in_tag) {
            self.out.push('>');
        }
    }

    /// An end without a start cannot come: the reader counts them.
    fn end(&mut self) {
        let name = self.open.pop().unwrap_or_default();
        if std::mem::take(&mut self.in_tag) {
            self.out.push_str("/>");
        } else {
            let _ = write!(self.out, "</{name}>");
        }
    }

    fn name(&self, prefix: Prefix<'_>, name: Word<'_>) -> String {
        let name = self.word(name);
        match &*prefix.spelled() {
            "" => name,
            prefix => format!("{prefix}:{name}"),
        }
    }

    fn word(&self, word: Word<'_>) -> String {
        word.spelled(&self.word)
    }

    fn text(&self, text: &Text<'_>) -> String {
        match *text {
            Text::Word(id) => self.word(Word::Id(id)),
            Text::QName(letter, id) => self.name(Prefix::Letter(letter), Word::Id(id)),
            _ => lexical(text),
        }
    }
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    // Text form has them as references alone.
    let is_control = |c: char| c < ' ' && !matches!(c, '\t' | '\n' | '\r');
    if !text.contains(is_control) {
        return text;
    }
    text.chars().fold(String::new(), |mut out, c| {
        if is_control(c) {
            let _ = write!(out, "&#x{:X};", u32::from(c));
        } else {
            out.push(c);
        }
        out
    })
}

/// The XML Schema notation of a text that needs no dictionary.
pub fn lexical(text: &Text<'_>) -> String {
    match *text {
        Text::Zero => "0".into(),
        Text::One => "1".into(),
        Text::False | Text::Bool(false) => "false".into(),
        Text::True | Text::Bool(true) => "true".into(),
        Text::I8(value) => value.to_string(),
        Text::I16(value) => value.to_string(),
        Text::I32(value) => value.to_string(),
        Text::I64(value) => value.to_string(),
        Text::U64(value) => value.to_string(),
        Text::F32(value) => floating(value.into(), &value.to_string(), &format!("{value:e}")),
        Text::F64(value) => floating(value, &value.to_string(), &format!("{value:e}")),
        Text::Decimal(value) => decimal(&value),
        Text::DateTime(value) => date_time(value),
        Text::TimeSpan(value) => duration(value),
        Text::Chars(value) => value.to_owned(),
        Text::Bytes(value) => base64::text(value),
        Text::UniqueId(value) => format!("urn:uuid:{}", uuid(&value)),
        Text::Uuid(value) => uuid(&value),
        Text::Wide(value) => {
            let chars = utf16(value, u16::from_le_bytes);
            chars.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        }
        Text::ListStart | Text::ListEnd | Text::Empty => String::new(),
        Text::Word(id) => format!("{{{id}}}"),
        Text::QName(letter, id) => format!("{}:{{{id}}}", char::from(b'a' + letter)),
    }
}

/// The shorter notation for ordinary numbers, the scientific one for others. The bounds are those of .NET's
/// notation of a double.
fn floating(value: f64, plain: &str, scientific: &str) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "INF".into() } else { "-INF".into() };
    }
    if value == 0.0 || (1e-5..1e15).contains(&value.abs()) {
        return plain.to_owned();
    }
    match scientific.split_once('e') {
        Some((mantissa, power)) if power.starts_with('-') => format!("{mantissa}E{power}"),
        Some((mantissa, power)) => format!("{mantissa}E+{power}"),
        None => scientific.to_owned(),
    }
}

/// As many digits behind the point as the scale says, zeros too.
fn decimal(value: &Decimal) -> String {
    let sign = if value.negative { "-" } else { "" };
    let scale = usize::from(value.scale);
    // At least one digit stands before the point.
    let digits = format!("{:0>width$}", value.magnitude, width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// A local time comes as the instant it is in UTC, without its offset (.NET's `DateTime.ToBinary`), and is printed so. At either end of
/// the calendar that instant may be up to a day outside of it: below zero, counted back from the top of the 62 bits, or after the year
/// 9999. The nearest instant that has a notation stands for it.
fn date_time(raw: u64) -> String {
    let (ticks, local) = (raw & TICKS_MASK, raw >> 63 == 1);
    let ticks = match ticks {
        _ if !local => ticks,
        before if before > TICKS_MASK - TICKS_A_DAY => 0,
        ticks => ticks.min(MAX_TICKS),
    };
    let (seconds, fraction) = (ticks / TICKS_A_SECOND, ticks % TICKS_A_SECOND);
    let (days, seconds) = (seconds / 86_400, seconds % 86_400);
    // They are counted from 0001-01-01.
    let (year, month, day) =
        everywire_model::date::civil(i64::try_from(days).unwrap_or_default() - DAYS_TO_1970);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let zone = if raw >> 62 == 0 { "" } else { "Z" };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{}{zone}", fractional(fraction))
}

/// `xs:duration` as .NET writes a TimeSpan: days, hours, minutes and seconds that are not zero; `PT0S` for
/// nothing.
fn duration(ticks: i64) -> String {
    let sign = if ticks < 0 { "-" } else { "" };
    let ticks = ticks.unsigned_abs();
    let (seconds, fraction) = (ticks / TICKS_A_SECOND, ticks % TICKS_A_SECOND);
    let mut out = format!("{sign}P");
    let (days, hours, minutes, rest) =
        (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    if days > 0 {
        let _ = write!(out, "{days}D");
    }
    if days > 0 && hours + minutes + rest + fraction == 0 {
        return out;
    }
    out.push('T');
    for (value, unit) in [(hours, 'H'), (minutes, 'M')] {
        if value > 0 {
            let _ = write!(out, "{value}{unit}");
        }
    }
    if rest + fraction > 0 || out.ends_with('T') {
        let _ = write!(out, "{rest}{}S", fractional(fraction));
    }
    out
}

/// A fraction of a second, in ticks, with its point and without zeros at its end.
fn fractional(ticks: u64) -> String {
    if ticks == 0 {
        return String::new();
    }
    format!(".{ticks:07}").trim_end_matches('0').to_owned()
}

/// A GUID, whose first three numbers are little-endian.
fn uuid(raw: &[u8; 16]) -> String {
    let (a, b, c, rest) = guid::split(u128::from_be_bytes(*raw));
    guid::text((a.swap_bytes(), b.swap_bytes(), c.swap_bytes(), rest))
}
