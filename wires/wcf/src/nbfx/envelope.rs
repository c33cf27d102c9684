//! The SOAP envelope around values: where its body is.
//!
//! For tests, listings and captures. Sessions find the body with `soap::head`, which reads the headers,
//! too.

use super::{Reader, Record, Word};
use crate::dictionary::Words;
use crate::violations::Violation;
use everywire_model::visit::Visit;
use std::ops::Range;

/// The range of a document that holds what is inside the envelope's body.
///
/// # Errors
/// [`Violation::MissingElement`] without a body; whatever is wrong before its end.
pub fn body(document: &[u8], words: &Words) -> Visit<Range<usize>> {
    let mut reader = Reader::new(document);
    let mut start = None;
    loop {
        let at = reader.position();
        let Some(record) = reader.read()? else { return Err(Violation::MissingElement.at(at)) };
        match (record, start) {
            (Record::Element(_, name), None) if reader.depth() == 2 => {
                let name = match name {
                    Word::Inline(name) => name,
                    Word::Id(id) => words.word(id).ok_or_else(|| Violation::UnknownWord.at(at))?,
                };
                if name == "Body" {
                    start = Some(reader.position());
                }
            }
            // Attributes of the body element itself do not belong to what is inside.
            (Record::Attribute(..) | Record::Xmlns(..), Some(begun)) if begun == at => {
                start = Some(reader.position());
            }
            // The record at `at` closed the body.
            (_, Some(start)) if reader.depth() == 1 => return Ok(start..at),
            _ => {}
        }
    }
}
