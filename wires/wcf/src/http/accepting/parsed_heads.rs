//! What the heads of requests say that came before on a connection, for those that come again.

use super::Accepting;
use crate::http::content::Format;
use bytes::Bytes;
use everywire_model::Violation;
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
        let (packs, compresses) = (self.packs, self.compresses);
        self.server.keep(parts, || {
            let (key, format, action) = (key.clone(), Arc::clone(format), action.map(Into::into));
            ParsedHead { key, format, action, packs, compresses }
        });
    }

    /// A request whose head is a known one.
    pub(super) fn take_again(
        &mut self,
        now: Instant,
        head: &ParsedHead,
        body: Bytes,
    ) -> Result<(), Violation> {
        if self.refuses() {
            return Ok(());
        }
        (self.packs, self.compresses) = (head.packs, head.compresses);
        let result = self.open(now, body, &head.format, head.action.as_deref(), &head.key);
        self.came(now, result)
    }
}
