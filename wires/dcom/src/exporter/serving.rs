//! Objects that are made for others, and how long they are served: references to them, and pings.

use super::Exporter;
use super::exports::ReleasedObject;
use crate::limits::PRINCIPAL_OBJECTS;
use crate::resolver::ComplexPing;
use bytes::Bytes;
use everywire_model::{Failure, Initiator, Servant};
use std::sync::Arc;
use uuid::Uuid;

impl Exporter {
    /// Serves an object of the wire's own (a connection point, an enumerator, a sink) until nobody refers to it any more.
    ///
    /// # Errors
    /// `principal` (who asked for it; empty for this process) has too many of them.
    pub fn serve(&self, servants: Vec<Arc<dyn Servant>>, principal: &str) -> Result<Bytes, Failure> {
        self.serve_as(servants, principal, true)
    }

    /// `pinged` is false for what lives without pings, such as class objects.
    pub(super) fn serve_as(
        &self,
        servants: Vec<Arc<dyn Servant>>,
        principal: &str,
        pinged: bool,
    ) -> Result<Bytes, Failure> {
        let owner = self.reserve(principal)?;
        let key = self.objects.export(servants);
        self.enter_made(&key, &owner, pinged);
        Ok(key)
    }

    /// An object was made for somebody: only its references lead to it.
    pub(super) fn enter_made(&self, key: &[u8], owner: &Arc<str>, pinged: bool) {
        self.exports.made(key, owner, pinged);
        let servants = self.objects.servants(key);
        servants.iter().for_each(|servant| self.running.leave(key, servant.interface()));
        self.clock.tick(&self.objects);
    }

    /// Room for one more object of this account, to be given back by `unreserve` or by the end of the object.
    pub(super) fn reserve(&self, principal: &str) -> Result<Arc<str>, Failure> {
        let owner: Arc<str> = principal.into();
        if self.exports.reserve(&owner) {
            return Ok(owner);
        }
        let most = PRINCIPAL_OBJECTS as u64;
        Err(Failure::over_limit(Initiator::Peer, "objects made for one principal", most + 1, most))
    }

    /// What nobody refers to any more: if it was made for the wire, it is served no longer.
    pub(super) fn drop_object(&self, dropped: Option<ReleasedObject>) {
        if let Some(ReleasedObject { key, made: true, .. }) = &dropped {
            self.objects.withdraw(key);
        }
    }

    /// Adds references to an IPID, and returns the HRESULT.
    pub(crate) fn add_refs_to(&self, ipid: Uuid, public: u32, private: u32, holder: &str) -> u32 {
        self.exports.add(ipid, public, private, &holder.into())
    }

    /// Takes references to an IPID back.
    pub(crate) fn release_refs_to(&self, ipid: Uuid, public: u32, private: u32, holder: &str) {
        let dropped = self.exports.release(ipid, public, private, holder);
        self.drop_object(dropped);
    }

    /// A ping of a set: the status.
    pub(crate) fn simple_ping(&self, set: u64) -> u32 {
        self.sets.ping(set)
    }

    /// A change of a set: its number and the status.
    pub(crate) fn complex_ping(&self, ping: &ComplexPing, principal: &str) -> (u64, u32) {
        let answer = self.sets.change(&self.exports, ping, &principal.into());
        self.clock.tick(&self.objects);
        answer
    }
}
