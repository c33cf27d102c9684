//! XML text as binary XML.
//!
//! Descriptions and some headers are given as text, and binary form needs records. Names go in place: such
//! text is sent once, and its words are in no dictionary.

use crate::limits::MAX_DEPTH;
use crate::nbfx::{Prefix, Record, Text as Value, Word, Writer};
use crate::text::{Event, Reader};
use crate::values::ReaderQuotas;
use everywire_model::visit::Visit;

/// Elements with their own namespace declarations, as records; space between elements is left out.
pub(crate) fn binary(xml: &str) -> Visit<Vec<u8>> {
    let quotas = ReaderQuotas {
        max_depth: u32::try_from(MAX_DEPTH).unwrap_or(u32::MAX),
        // This side wrote it: only depth is bounded, as a reader on the other side bounds it.
        max_bytes_per_read: u32::MAX,
        ..ReaderQuotas::default()
    };
    let mut writer = Writer::new();
    put(xml, &quotas, false, &mut writer)?;
    Ok(writer.into_bytes())
}

/// Appends elements; `spaces`: with the space between them.
pub(crate) fn put(xml: &str, quotas: &ReaderQuotas, spaces: bool, writer: &mut Writer) -> Visit<()> {
    // The reader wants one root; the markup may be several elements.
    let document = format!("<x>{xml}</x>");
    let mut reader = Reader::new(document.as_bytes(), quotas);
    reader.next()?;
    while let Some(event) = reader.next()? {
        match event {
            Event::Start(tag) => {
                writer.put(&Record::Element(Prefix::of(tag.prefix), Word::Inline(tag.local)));
                for attribute in tag.attributes() {
                    let attribute = attribute?;
                    let value = &*attribute.value;
                    writer.put(&match (attribute.prefix, attribute.local) {
                        ("", "xmlns") => Record::Xmlns(None, Word::Inline(value)),
                        ("xmlns", declared) => Record::Xmlns(Some(declared), Word::Inline(value)),
                        (of, local) => {
                            let value = if value.is_empty() { Value::Empty } else { Value::Chars(value) };
                            Record::Attribute(Prefix::of(of), Word::Inline(local), value)
                        }
                    });
                }
            }
            // That of the root.
            Event::End if reader.depth() == 0 => {}
            Event::End => writer.end(),
            Event::Text(text) if spaces || !text.trim().is_empty() => writer.chars(&text),
            Event::Text(_) => {}
        }
    }
    Ok(())
}
