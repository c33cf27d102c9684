//! The codec: reading and writing whole bodies.

use super::extensions::headers;
use super::{NAME, Ndr, NdrSink, NdrSource};
use everywire_model::visit::{Sink, Source, Visit};
use everywire_model::{Body, Budget, Codec, Header};

impl Codec for Ndr {
    fn name(&self) -> &'static str {
        NAME
    }

    fn headers(&self, body: &Body) -> Visit<Vec<Header>> {
        headers(body)
    }

    fn read<'a>(&self, body: &'a Body, visit: &mut dyn FnMut(&mut dyn Source<'a>) -> Visit<()>) -> Visit<()> {
        visit(&mut NdrSource::new(body))
    }

    fn write(&self, visit: &mut dyn FnMut(&mut dyn Sink) -> Visit<()>) -> Visit<Body> {
        let mut sink = NdrSink::new(true);
        visit(&mut sink)?;
        sink.into_body(Budget::default())
    }
}
