//! Values: the codec that the rest of the house sees.

use crate::cdr::NATIVE_LITTLE;
use crate::codesets::Dialect;
use crate::sink::CdrSink;
use crate::source::CdrSource;
use bytes::Bytes;
use everywire_model::{Body, Budget, Codec, Context, Failure, Header, SendBuffer, Sink, Source, Visit};

/// CDR, in either byte order. It keeps nothing: what reading a body needs is in the body.
#[derive(Debug, Clone, Copy)]
pub struct Cdr;

/// The codec.
pub static CDR: Cdr = Cdr;

/// The codec's name.
pub(crate) const CDR_NAME: &str = "cdr";

impl Codec for Cdr {
    fn name(&self) -> &'static str {
        CDR_NAME
    }

    fn headers(&self, body: &Body) -> Visit<Vec<Header>> {
        crate::contexts::headers(body)
    }

    fn hops(&self, body: &Body) -> Visit<u32> {
        crate::contexts::hops(body)
    }

    fn check_header(&self, header: &Header) -> Visit<()> {
        let (id, _) = crate::passing::context(header)?;
        let name = crate::contexts::header_name(id);
        if header.name == name {
            return Ok(());
        }
        // Those that come are compared by their names.
        let what = format!("the service context `{}` has another name", header.name);
        Err(Failure::bad_argument(what).with_hint(format!("write `{name}`")))
    }

    /// What follows the last value is passed over, as most ORBs do: the arguments and results of a message have no count
    /// (CORBA 3.3 part 2, sections 9.4.2.2 and 9.4.3.2), and some senders pad them.
    fn read<'a>(&self, body: &'a Body, visit: &mut dyn FnMut(&mut dyn Source<'a>) -> Visit<()>) -> Visit<()> {
        visit(&mut CdrSource::new(body))
    }

    fn write(&self, visit: &mut dyn FnMut(&mut dyn Sink) -> Visit<()>) -> Visit<Body> {
        self.write_as(NATIVE_LITTLE, Dialect::OURS, 0, visit)
    }
}

impl Cdr {
    /// Encodes values in a chosen byte order and dialect, as if they began at offset `base` of a message. The
    /// result begins at that offset as far as alignment goes, so it can be put there.
    ///
    /// # Errors
    /// Values that CDR cannot carry, or that do not fit their shapes.
    pub fn write_as(
        &self,
        little: bool,
        dialect: Dialect,
        base: usize,
        visit: &mut dyn FnMut(&mut dyn Sink) -> Visit<()>,
    ) -> Visit<Body> {
        let mut buffer = SendBuffer::new();
        visit(&mut CdrSink::new(&mut buffer, 0usize.wrapping_sub(base), little, dialect, u64::MAX))?;
        let bytes = Bytes::from(buffer.to_vec());
        Ok(Self::body(bytes, base, little, dialect, Budget::default()))
    }

    /// Bytes that came as a body. `base` is the offset of their first octet in their message, and `budget`
    /// what reading them may cost.
    #[inline]
    pub fn body(bytes: Bytes, base: usize, little: bool, dialect: Dialect, budget: Budget) -> Body {
        Body {
            bytes,
            base,
            little,
            dialect: dialect.to_number(),
            budget,
            codec: &CDR,
            context: Context::default(),
            beside: None,
        }
    }
}
