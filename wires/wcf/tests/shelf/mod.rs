//! What a node serves, without a node.
#![allow(dead_code, unreachable_pub, missing_docs)]

use bytes::Bytes;
use everywire_model::object::{Local, Resolver};
use everywire_model::shape::Hold;
use everywire_model::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Keys, and who is served under each; who answers for all keys that begin in some way; and what the wire may keep beside
/// connections.
#[derive(Default)]
pub struct Shelf(
    Vec<(Bytes, Vec<Arc<dyn Servant>>)>,
    Option<(&'static str, Arc<dyn Servant>)>,
    Option<(usize, Arc<AtomicUsize>)>,
);

impl Shelf {
    /// These keys, and nothing behind them.
    pub fn of_keys(keys: &[&'static str]) -> Self {
        Self(keys.iter().map(|key| (Bytes::from_static(key.as_bytes()), Vec::new())).collect(), None, None)
    }

    /// One object.
    pub fn with(key: &'static str, servant: Arc<dyn Servant>) -> Self {
        Self(vec![(Bytes::from_static(key.as_bytes()), vec![servant])], None, None)
    }

    /// Whatever begins so.
    pub fn of_prefix(prefix: &'static str, servant: Arc<dyn Servant>) -> Self {
        Self(Vec::new(), Some((prefix, servant)), None)
    }

    /// The wire may keep so many bytes; what it said last that it keeps is put there.
    pub fn keeping(self, most: usize, kept: &Arc<AtomicUsize>) -> Self {
        Self(self.0, self.1, Some((most, Arc::clone(kept))))
    }
}

impl Objects for Shelf {
    fn keys(&self) -> Vec<Bytes> {
        self.0.iter().map(|(key, _)| key.clone()).collect()
    }
    fn servants(&self, key: &[u8]) -> Vec<Arc<dyn Servant>> {
        self.0
            .iter()
            .find(|(known, _)| **known == *key)
            .map(|(_, servants)| servants.clone())
            .unwrap_or_default()
    }
    fn by_prefix(&self, key: &[u8]) -> Option<Arc<dyn Servant>> {
        let (prefix, servant) = self.1.as_ref()?;
        key.starts_with(prefix.as_bytes()).then(|| Arc::clone(servant))
    }
    fn emit(&self, _: &Emission<'_>) -> Result<(), Failure> {
        Ok(())
    }
    fn aside(&self, _: Box<dyn Fn(Answer<'_>) + Send + Sync>) -> Arc<dyn Link> {
        unimplemented!("no test asks aside")
    }
    fn export(&self, _: Vec<Arc<dyn Servant>>) -> Bytes {
        Bytes::new()
    }
    fn withdraw(&self, _: &[u8]) {}
    fn classes(&self) -> Vec<(Bytes, Hold<Interface>)> {
        Vec::new()
    }
    fn create(&self, _: &[u8], _: &str) -> Option<Result<Bytes, Failure>> {
        None
    }
    fn publish(&self, type_id: &str, key: &[u8]) -> Reference {
        everywire_wcf::address::publish(type_id, &self.places(), key)
    }
    fn places(&self) -> Vec<BindAddress> {
        Vec::new()
    }
    fn listen(&self, _: &str) -> Result<BindAddress, Failure> {
        Err(Failure::new(Kind::Unsupported, Initiator::Here, "no network"))
    }
    fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::new(Nowhere)
    }
    fn attend(&self) {}
    fn keeps(&self, before: usize, now: usize) -> usize {
        let Some((most, kept)) = &self.2 else { return usize::MAX };
        assert_eq!(kept.swap(now, Ordering::Relaxed), before);
        *most
    }
}

struct Nowhere;

impl Resolver for Nowhere {
    fn resolve(&self, _: &Reference) -> Result<Object, Failure> {
        Err(Failure::new(Kind::Unreachable, Initiator::Here, "no network"))
    }
    fn local(&self, _: &Reference, _: &str) -> Option<Local> {
        None
    }
}
