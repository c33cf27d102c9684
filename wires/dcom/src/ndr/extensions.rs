//! The extensions of an ORPCTHIS or ORPCTHAT that came with a body (MS-DCOM 2.2.21).

use super::{THAT, THIS};
use crate::orpc::{Extent, OrpcThat, OrpcThis};
use everywire_model::{Body, Header, Visit};

/// The extensions that came with a body, as headers.
pub(super) fn headers(body: &Body) -> Visit<Vec<Header>> {
    let all = extents(body)?;
    Ok(all.into_iter().map(|extent| Header::bytes(extent.id.to_string(), extent.data)).collect())
}

/// The same as they are.
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
