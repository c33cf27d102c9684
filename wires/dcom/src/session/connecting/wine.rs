//! Calls where a connection carries one interface, as Wine's do: what is another's goes on to a connection of its own, by a
//! way that says so.
//!
//! Wine's servers accept one presentation context for a connection and do not number their answers; so calls
//! go one at a time, a call given up ends the connection, and RemQueryInterface has a connection to
//! IRemUnknown of its own.

use super::calls::{no_interface, no_node};
use super::state::{Connecting, Errand};
use crate::exporter::Proxy;
use crate::frame::Header;
use crate::{IUNKNOWN, REM_UNKNOWN, iid_of};
use everywire_model::{Call, CallId, Completed, Failure, Initiator, Kind, Outcome, Reference};
use std::sync::Arc;
use uuid::Uuid;

impl Connecting {
    /// Sends a call of an object on if it is not this connection's to make; asks the object for the interface before that,
    /// if this is the connection where objects are asked.
    #[cold]
    pub(super) fn elsewhere(&mut self, only: Uuid, call: &Call<'_>) -> Result<Option<CallId>, Failure> {
        let Some(proxy) = call.profile.lease.share::<Proxy>() else { return Ok(None) };
        let iid = iid_of(call.method.interface().ok_or_else(no_interface)?);
        match proxy.ipid(iid) {
            Some(_) if iid == only => Ok(None),
            Some(_) => self.send_on(&proxy, iid).map(Some),
            None => self.query_first(only, proxy, iid).map(Some),
        }
    }

    /// Asks an object for an interface, on the connection where objects are asked.
    pub(super) fn query_first(
        &mut self,
        only: Uuid,
        proxy: Arc<Proxy>,
        iid: Uuid,
    ) -> Result<CallId, Failure> {
        if only != REM_UNKNOWN {
            return self.send_on(&proxy, REM_UNKNOWN);
        }
        Ok(self.ask(Errand::Query { proxy, iid }))
    }

    /// Whoever asked an object for an interface in order to call it goes on to that one's connection.
    pub(super) fn found_on(&self, proxy: &Proxy, iid: Uuid) -> Result<Option<Reference>, Failure> {
        if self.only.is_none() || iid == IUNKNOWN {
            return Ok(None);
        }
        self.way_on(proxy, iid).map(Some)
    }

    /// The header of an answer with the number of the call that it answers: Wine numbers none, but calls are sent one at a time.
    #[inline]
    pub(super) fn answering(&self, header: &Header) -> Header {
        match (self.only, self.waiting.front()) {
            (Some(_), Some(waiting)) => Header { call: waiting.call, ..*header },
            _ => *header,
        }
    }

    /// A call was given up: its answer could not be told from that of the next one, which is made by another connection.
    #[cold]
    pub(super) fn lose_count(&mut self) {
        let what = "a call on this connection was given up, and Wine numbers no answers";
        let failure = Failure::new(Kind::Unreachable, Initiator::Here, what).with_completed(Completed::No);
        self.end(&failure);
    }

    /// The call ends with `Outcome::Moved`, and the runtime makes it again by the other connection.
    fn send_on(&mut self, proxy: &Proxy, iid: Uuid) -> Result<CallId, Failure> {
        let way = self.way_on(proxy, iid)?;
        Ok(self.answer_at_once(Outcome::Moved(way)))
    }

    /// The reference by which the interface `iid` of an object is called: its profiles name the interface,
    /// which keeps connections apart.
    fn way_on(&self, proxy: &Proxy, iid: Uuid) -> Result<Reference, Failure> {
        let mut way = self.exporter.as_ref().ok_or_else(no_node)?.located(proxy, None);
        for profile in &mut way.profiles {
            profile.components = self.security.dialect.components(iid);
        }
        Ok(way)
    }
}
