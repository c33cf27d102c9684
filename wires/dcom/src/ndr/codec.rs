//! The codec: reading and writing whole bodies.

use super::{NAME, Ndr, NdrSink, NdrSource, THAT, THIS};
use crate::orpc::{Extent, HOPS, OrpcThat, OrpcThis};
use everywire_model::headers::number;
use everywire_model::visit::{Sink, Source, Visit};
use everywire_model::{Body, Budget, Codec, Header};

impl Codec for Ndr {
    fn name(&self) -> &'static str {
        NAME
    }

    fn headers(&self, body: &Body) -> Visit<Vec<Header>> {
        let all = extents(body)?;
        Ok(all.into_iter().map(|extent| Header::bytes(extent.id.to_string(), extent.data)).collect())
    }

    fn hops(&self, body: &Body) -> Visit<u32> {
        // Most calls have no extensions: then there is nothing to take apart.
        if body.headers().is_none_or(|headers| headers.raw().len() <= OrpcThis::LEN) {
            return Ok(0);
        }
        let all = extents(body)?;
        let told = all.iter().filter(|extent| extent.id == HOPS).map(|extent| number(&extent.data));
        Ok(told.max().unwrap_or_default())
    }

    fn check_header(&self, header: &Header) -> Visit<()> {
        crate::passing::extent(header).map(drop)
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

/// The extensions of the ORPCTHIS or ORPCTHAT that came with a body (MS-DCOM 2.2.21).
/// Empty where the body has no headers, or its dialect does not say which of both they are.
pub(crate) fn extents(body: &Body) -> Visit<Vec<Extent>> {
    let Some(headers) = body.headers() else { return Ok(Vec::new()) };
    let found = match body.dialect & (THIS | THAT) {
        THIS => OrpcThis::parse(headers.raw(), body.little).map(|(this, _)| this.extensions),
        THAT => OrpcThat::parse(headers.raw(), body.little).map(|(that, _)| that.extensions),
        _ => return Ok(Vec::new()),
    };
    found.map_err(|violation| violation.at(0))
}
