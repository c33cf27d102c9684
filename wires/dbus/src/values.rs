//! Values: the codec that the rest of the house sees.

use crate::basics::NATIVE_LITTLE;
use crate::dialect::{NAME, RESULTS};
use crate::sink::{DbusSink, EmptyHead, Scratch, Setup};
use crate::source::DbusSource;
use bytes::Bytes;
use everywire_idl::signature as spelling;
use everywire_model::body::Handle;
use everywire_model::{
    Attachments, Body, Budget, Codec, Context, Header, SendBuffer, Shape, Sink, Source, Visit,
};

/// The values of D-Bus messages, in either byte order. It keeps nothing: what reading a body needs is in the
/// body.
#[derive(Debug, Clone, Copy)]
pub struct Values;

/// The codec.
pub static VALUES: Values = Values;

impl Codec for Values {
    fn name(&self) -> &'static str {
        NAME
    }

    fn headers(&self, body: &Body) -> Visit<Vec<Header>> {
        crate::header_fields::headers(body)
    }

    fn hops(&self, body: &Body) -> Visit<u32> {
        crate::header_fields::hops(body)
    }

    fn check_header(&self, header: &Header) -> Visit<()> {
        crate::header_fields::write(header, NATIVE_LITTLE, &mut Vec::new())
    }

    fn read<'a>(&self, body: &'a Body, visit: &mut dyn FnMut(&mut dyn Source<'a>) -> Visit<()>) -> Visit<()> {
        let mut source = DbusSource::new(body);
        visit(&mut source)?;
        source.finish()
    }

    fn write(&self, visit: &mut dyn FnMut(&mut dyn Sink) -> Visit<()>) -> Visit<Body> {
        self.write_as(NATIVE_LITTLE, visit)
    }

    fn shape(&self, body: &Body) -> Option<Shape> {
        let text = str::from_utf8(&body.context).ok()?;
        spelling::parse(text).ok().map(spelling::nameless)
    }
}

impl Values {
    /// Encodes values in a chosen byte order. They have the list that is opened first as their signature, or are one
    /// after the other without a list around them.
    ///
    /// # Errors
    /// Values that D-Bus cannot carry, or that do not fit their shapes.
    pub fn write_as(&self, little: bool, visit: &mut dyn FnMut(&mut dyn Sink) -> Visit<()>) -> Visit<Body> {
        let (mut buffer, mut scratch) = (SendBuffer::new(), Scratch::default());
        let setup = Setup { swap: little != NATIVE_LITTLE, limit: u64::MAX, handles: true, several: true };
        let mut head = EmptyHead;
        let mut sink = DbusSink::new(&mut buffer, 0, &mut head, &mut scratch, setup);
        visit(&mut sink)?;
        sink.finish()?;
        let bytes = Bytes::from(buffer.to_vec());
        let context = scratch.spelled.as_bytes().into();
        Ok(Self::body(bytes, 0, little, context, std::mem::take(&mut scratch.handles)))
    }

    /// Bytes as a body: `base` is the offset of the first in its message, `signature` the type of its values.
    pub fn body(bytes: Bytes, base: usize, little: bool, signature: Context, handles: Vec<Handle>) -> Body {
        Body {
            bytes,
            base,
            little,
            dialect: RESULTS,
            context: signature,
            budget: Budget::default(),
            codec: &VALUES,
            beside: if handles.is_empty() {
                None
            } else {
                Some(std::sync::Arc::new(Attachments { handles, ..Attachments::default() }))
            },
        }
    }
}
