//! XML text as binary XML.
//!
//! Descriptions are made as text, and bodies in binary form need records. Names go in place: a description
//! is sent once, and its words are in no dictionary.

use crate::limits::MAX_DEPTH;
use crate::nbfx::{Prefix, Record, Text as Value, Word, Writer};
use crate::text::{Event, Reader};
use crate::values::ReaderQuotas;
use everywire_model::visit::Visit;

/// Elements with their own namespace declarations, as records; space between elements is left out.
pub(crate) fn binary(xml: &str) -> Visit<Vec<u8>> {
    // The reader wants one root; the markup may be several elements.
    let document = format!("<x>{xml}</x>");
    let quotas = ReaderQuotas {
        max_depth: u32::try_from(MAX_DEPTH).unwrap_or(u32::MAX),
        // This side wrote it: only depth is bounded, as a reader on the other side bounds it.
        max_string_content_length: u32::MAX,
        max_array_length: u32::MAX,
        max_bytes_per_read: u32::MAX,
        max_name_table_char_count: u32::MAX,
    };
    let mut reader = Reader::new(document.as_bytes(), &quotas);
    let mut writer = Writer::new();
    let mut depth = 0_usize;
    while let Some(event) = reader.next()? {
        match event {
            Event::Start(tag) => {
                depth += 1;
                if depth == 1 {
                    continue;
                }
                writer.put(&Record::Element(prefix(tag.prefix), Word::Inline(tag.local)));
                for attribute in tag.attributes() {
                    let attribute = attribute?;
                    let value = attribute.value.as_ref();
                    let declared = match (attribute.prefix, attribute.local) {
                        ("", "xmlns") => Some(None),
                        ("xmlns", prefix) => Some(Some(prefix)),
                        _ => None,
                    };
                    match declared {
                        Some(prefix) => writer.put(&Record::Xmlns(prefix, Word::Inline(value))),
                        None => {
                            let value = if value.is_empty() { Value::Empty } else { Value::Chars(value) };
                            let name = Word::Inline(attribute.local);
                            writer.put(&Record::Attribute(prefix(attribute.prefix), name, value));
                        }
                    }
                }
            }
            Event::End => {
                depth = depth.saturating_sub(1);
                if depth > 0 {
                    writer.end();
                }
            }
            Event::Text(text) => {
                if !text.trim().is_empty() {
                    writer.chars(&text);
                }
            }
        }
    }
    Ok(writer.into_bytes())
}

fn prefix(text: &str) -> Prefix<'_> {
    match text.as_bytes() {
        [] => Prefix::None,
        [letter @ b'a'..=b'z'] => Prefix::Letter(letter - b'a'),
        _ => Prefix::Inline(text),
    }
}
