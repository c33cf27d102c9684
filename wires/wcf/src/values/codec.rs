//! The codec of message bodies in both forms.
//!
//! Bodies stay encoded until somebody knows their types: `read` makes a source over the document at the
//! place that the session noted. `write` serves those who make a body without a session, so it uses static
//! words only.

use super::body_context::{BINARY, BINARY_INSIDE, BodyContext, TEXT};
use super::cursor::{BinaryCursor, TextCursor};
use super::output::Output;
use super::sink::ElementSink;
use super::source::ElementSource;
use super::{Form, bare};
use crate::dictionary::Outgoing;
use crate::soap::{Soap, check_block};
use everywire_model::visit::{Sink, Source, Visit};
use everywire_model::{Body, Budget, Codec, Header, SendBuffer};

/// How many elements are around the content of a body that is part of an envelope.
/// They count against the reader's quota of depth, as they do in WCF.
pub(super) const ENVELOPE_DEPTH: usize = 2;

/// The codec of both forms: a body's bytes are the whole document, its base is the offset of the first byte inside the
/// element that holds the values.
#[derive(Debug, Clone, Copy, Default)]
pub struct XmlCodec;

/// The codec, for [`Body::codec`].
pub static XML: XmlCodec = XmlCodec;

/// The codec's name.
pub const NAME: &str = "wcf-xml";

impl Codec for XmlCodec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn headers(&self, body: &Body) -> Visit<Vec<Header>> {
        let BodyContext { words, quotas, .. } = BodyContext::of(body);
        crate::soap::headers(body, words, quotas)
    }

    fn hops(&self, body: &Body) -> Visit<u32> {
        let BodyContext { words, quotas, .. } = BodyContext::of(body);
        crate::soap::hops(body, words, quotas)
    }

    fn check_header(&self, header: &Header) -> Visit<()> {
        // The version of SOAP is the connection's, and addressing is the session's own in 1.2 only.
        check_block(header, Soap::V11).or_else(|_| check_block(header, Soap::V12))
    }

    fn read<'a>(&self, body: &'a Body, visit: &mut dyn FnMut(&mut dyn Source<'a>) -> Visit<()>) -> Visit<()> {
        let reading = BodyContext::of(body);
        // A body that begins at 0 was written by `write`: there is no envelope around it.
        let outer = if body.base > 0 { ENVELOPE_DEPTH } else { 0 };
        if body.dialect == TEXT {
            let cursor = TextCursor::new(body, outer, reading.quotas);
            let mut source = ElementSource::new(cursor, body, reading);
            visit(&mut source)?;
            return source.leave_envelope(outer);
        }
        let cursor = BinaryCursor::new(body, outer, reading);
        let mut source = ElementSource::new(cursor, body, reading);
        if body.dialect == BINARY_INSIDE {
            source.go_inside(body.base);
        }
        visit(&mut source)?;
        source.leave_envelope(outer)
    }

    fn write(&self, visit: &mut dyn FnMut(&mut dyn Sink) -> Visit<()>) -> Visit<Body> {
        let (mut words, mut out) = (Outgoing::statics(), SendBuffer::new());
        let mut sink = ElementSink::new(None, false, Output::new(Form::Binary, &mut words, &mut out));
        visit(&mut sink)?;
        sink.finish()?;
        Ok(Body { dialect: BINARY, ..bare(out.to_vec().into(), Budget::default()) })
    }
}
