//! Pages that a hop asks for in the place of its caller.
//!
//! A description has the service's own addresses in it. A caller behind a hop could not use them, so they
//! are replaced by the address at which it asked.

use super::{Asking, Connecting, Flight, uri};
use crate::metadata::{asked, readdress};
use bytes::Bytes;
use everywire_model::{Call, CallId, Failure, Method};

impl Connecting {
    /// Asks for a page of the service, if that is what a caller of the hop wants.
    pub(super) fn pass_page(&mut self, call: &Call<'_>) -> Option<Result<CallId, Failure>> {
        let Method::Named { operation, .. } = call.method else { return None };
        let (url, query) = asked(operation)?;
        // A message has an envelope, whatever action it names.
        call.arguments.carries().body.filter(|body| body.bytes.is_empty())?;
        let begun = self.own_request(&call.profile.key, Some(query), Asking::Page);
        if let Ok(id) = begun {
            self.page = Some((id, url.into()));
        }
        Some(begun)
    }

    /// A page that came; its addresses lead to where a hop's caller asks for it.
    pub(super) fn readdressed(&mut self, flight: &Flight, page: Bytes) -> Bytes {
        let Some((_, url)) = self.page.take().filter(|(id, _)| *id == flight.id) else { return page };
        match (std::str::from_utf8(&page), uri(&flight.key, None)) {
            (Ok(text), Ok(own)) => Bytes::from(readdress(text, own.path(), &url)),
            // In another encoding nothing is known of it.
            _ => page,
        }
    }
}
