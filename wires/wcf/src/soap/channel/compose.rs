//! A message of a head and a body, with the table of words that both need.
//!
//! With a session's dictionary the table of new words stands in front of a document that is only then known
//! to use them. Messages without new words, which nearly all are, are written once, with an empty table
//! (one octet, 0) before them.

use crate::dictionary::Outgoing;
use crate::soap::Dialect;
use crate::soap::template::{finish, put_table};
use crate::violations::Violation;
use everywire_model::SendBuffer;
use everywire_model::visit::Visit;

/// Writes a head; the bytes are headers that belong to the body.
pub(super) type Head<'a> = dyn FnMut(&mut Outgoing, &mut SendBuffer, &[u8]) + 'a;

/// Writes what is inside a body; returns headers that belong to it.
pub(super) type Content<'a> = dyn Fn(&mut Outgoing, &mut SendBuffer) -> Visit<Option<Vec<u8>>> + 'a;

/// Appends a whole payload.
///
/// # Errors
/// Those of the content; `out` and the words are as before.
#[inline]
pub(super) fn message(
    dialect: Dialect,
    words: &mut Outgoing,
    out: &mut SendBuffer,
    has_headers: bool,
    head: &mut Head<'_>,
    content: &Content<'_>,
) -> Visit<()> {
    let mark = out.mark();
    let known = words.mark();
    let mut document = |words: &mut Outgoing, out: &mut SendBuffer| -> Visit<()> {
        if has_headers {
            // What stands among the headers is known once the body is written.
            // The body is written first and moved behind the headers.
            let mut body = SendBuffer::new();
            let headers = content(words, &mut body)?.unwrap_or_default();
            head(words, out, &headers);
            out.append(&mut body);
        } else {
            head(words, out, &[]);
            content(words, out)?;
        }
        finish(dialect.form, out);
        Ok(())
    };
    // The empty table; it is replaced below if there are new words.
    if dialect.session {
        out.flat().push(0);
    }
    let mut written = document(words, out);
    if written.is_ok() && dialect.session && !words.fresh().is_empty() {
        // Words that the peer has not met: their table stands in front, so the message is written once more behind it.
        out.truncate(mark);
        put_table(words.fresh(), out);
        let told = words.fresh().len();
        written = document(words, out)
            .and_then(|()| if words.fresh().len() == told { Ok(()) } else { Err(Violation::Misuse.at(0)) })
            .inspect(|()| words.told());
    }
    if written.is_err() {
        out.truncate(mark);
        words.forget(known);
    }
    written
}
