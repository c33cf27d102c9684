//! Values: the codec that the rest of the house sees.

use crate::sink::{StreamSink, TypeOutput};
use crate::source::StreamSource;
use crate::types;
use bytes::Bytes;
use everywire_model::{Body, Budget, Codec, Context, Encode, SendBuffer, Shape, Sink, Source, Visit};

/// `QDataStream` of Qt 3.3, always big-endian. A body's context holds the types of its values, joined by
/// commas, or the whole signature of the call that carried them; its dialect is the number of the server it came by.
#[derive(Debug, Clone, Copy)]
pub struct DataStream;

/// The codec.
pub static DATA_STREAM: DataStream = DataStream;

/// The codec's name.
pub(crate) const NAME: &str = "dcop";

impl Codec for DataStream {
    fn name(&self) -> &'static str {
        NAME
    }

    fn read<'a>(&self, body: &'a Body, visit: &mut dyn FnMut(&mut dyn Source<'a>) -> Visit<()>) -> Visit<()> {
        visit(&mut StreamSource::new(body))
    }

    fn write(&self, visit: &mut dyn FnMut(&mut dyn Sink) -> Visit<()>) -> Visit<Body> {
        let mut buffer = SendBuffer::new();
        let mut types = String::new();
        visit(&mut StreamSink::new(&mut buffer, 0, u64::MAX, TypeOutput::Note(&mut types)))?;
        Ok(Self::body(buffer.to_vec().into(), types.as_bytes().into(), 0, Budget::default()))
    }

    fn shape(&self, body: &Body) -> Option<Shape> {
        types::shape_of(std::str::from_utf8(&body.context).ok()?)
    }
}

/// Whether results are one boolean, and true. For searches: any other answer is a no.
pub(crate) fn says_yes(results: &dyn Encode) -> bool {
    if let Some(body) = results.carries().body {
        return body.codec.name() == NAME && *body.context == *b"bool" && *body.bytes == [1];
    }
    let written = DATA_STREAM.write(&mut |sink| results.encode(sink));
    written.is_ok_and(|body| *body.context == *b"bool" && *body.bytes == [1])
}

impl DataStream {
    /// Bytes as a body. `types` are those of the values, joined by commas or in a signature; `server` is the number of the server they
    /// came by, 0 if that does not matter.
    #[inline]
    pub fn body(bytes: Bytes, types: Context, server: u32, budget: Budget) -> Body {
        Body {
            bytes,
            base: 0,
            little: false,
            dialect: server,
            context: types,
            budget,
            codec: &DATA_STREAM,
            beside: None,
        }
    }
}
