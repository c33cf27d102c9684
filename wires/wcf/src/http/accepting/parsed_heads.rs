//! What the heads of requests say that came before on a connection, for those that come again.
//!
//! Its places are those of the heads in `head_cache`, one for one: whoever clears the one clears the other.

use super::Accepting;
use super::responses::empty;
use crate::http::breach::Breach;
use crate::http::content::Format;
use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use std::sync::Arc;
use std::time::Instant;

/// What a head says.
#[derive(Debug)]
pub(super) struct ParsedHead {
    /// The object that the path means.
    key: Bytes,
    format: Arc<Format>,
    action: Option<Box<str>>,
    /// Whether the answer goes in a package, or compressed: that follows from the head, too.
    packs: bool,
    compresses: bool,
}

impl Accepting {
    /// Keeps what a head says, if it can be known again.
    pub(super) fn keep_parsed(
        &mut self,
        parts: &Parts,
        key: &Bytes,
        format: &Arc<Format>,
        action: Option<&str>,
    ) {
        // Where each request says who calls, each is asked.
        if self.settings.basic_login && self.settings.users.is_some() {
            return;
        }
        let Some(place) = self.server.keep(parts) else { return };
        let (packs, compresses) = (self.packs, self.compresses);
        let (key, format, action) = (key.clone(), Arc::clone(format), action.map(Into::into));
        let parsed = ParsedHead { key, format, action, packs, compresses };
        match self.parsed_heads.get_mut(place) {
            Some(held) => *held = parsed,
            None => self.parsed_heads.push(parsed),
        }
    }

    /// A request whose head is a known one.
    pub(super) fn take_again(&mut self, now: Instant, place: usize, body: Bytes) -> Result<(), Breach> {
        if self.refuses() {
            return Ok(());
        }
        // Taken out meanwhile: nothing that happens to one request changes what the heads say.
        let heads = std::mem::take(&mut self.parsed_heads);
        let result = match heads.get(place) {
            Some(ParsedHead { key, format, action, packs, compresses }) => {
                (self.packs, self.compresses) = (*packs, *compresses);
                self.open(now, body, format, action.as_deref(), key)
            }
            // There is one for each; were there none, later requests would be the library's again.
            None => {
                self.server.forget();
                self.respond(empty(StatusCode::INTERNAL_SERVER_ERROR));
                return Ok(());
            }
        };
        self.parsed_heads = heads;
        self.came(now, result)
    }
}
