//! A node without sockets: what it serves stands in a table, and nobody else is to be reached. The targets of `fuzz/` have it, too.

use bytes::Bytes;
use everywire_dcom::DCOM;
use everywire_model::object::{BoxFuture, Local, Resolver};
use everywire_model::shape::Hold;
use everywire_model::{
    Answer, BindAddress, CallId, Emission, Endpoint, Failure, Initiator, Interface, Kind, Link, Object,
    Objects, Peer, Reference, Servant, Wire,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What a node serves, without a node; one that listens nowhere, unless it says so.
#[derive(Default)]
pub struct Directory {
    pub keys: Mutex<BTreeMap<Bytes, Vec<Arc<dyn Servant>>>>,
    /// Who answers for all other keys.
    pub others: Mutex<Option<Arc<dyn Servant>>>,
    places: Vec<BindAddress>,
}

impl Directory {
    /// One that says that it listens.
    pub fn listening() -> Self {
        Self { places: vec![BindAddress::socket("dcom", endpoint())], ..Self::default() }
    }
}

impl Objects for Directory {
    fn keys(&self) -> Vec<Bytes> {
        self.keys.lock().unwrap().keys().cloned().collect()
    }
    fn servants(&self, key: &[u8]) -> Vec<Arc<dyn Servant>> {
        self.keys.lock().unwrap().get(key).cloned().unwrap_or_default()
    }
    fn by_prefix(&self, _: &[u8]) -> Option<Arc<dyn Servant>> {
        self.others.lock().unwrap().clone()
    }
    fn emit(&self, _: &Emission<'_>) -> Result<(), Failure> {
        Ok(())
    }
    fn aside(&self, then: Box<dyn Fn(Answer<'_>) + Send + Sync>) -> Arc<dyn Link> {
        Arc::new(Aside(then))
    }
    fn export(&self, servants: Vec<Arc<dyn Servant>>) -> Bytes {
        let mut keys = self.keys.lock().unwrap();
        let key = Bytes::from(format!("made-{}", keys.len()));
        keys.insert(key.clone(), servants);
        key
    }
    fn withdraw(&self, key: &[u8]) {
        self.keys.lock().unwrap().remove(key);
    }
    fn classes(&self) -> Vec<(Bytes, Hold<Interface>)> {
        Vec::new()
    }
    fn create(&self, _: &[u8], _: &str) -> Option<Result<Bytes, Failure>> {
        None
    }
    fn publish(&self, type_id: &str, key: &[u8]) -> Reference {
        DCOM.publish(type_id, &self.places(), key)
    }
    fn places(&self) -> Vec<BindAddress> {
        self.places.clone()
    }
    fn listen(&self, _: &str) -> Result<BindAddress, Failure> {
        Err(Failure::new(Kind::Unsupported, Initiator::Here, "no network"))
    }
    fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::new(Nowhere)
    }
    fn attend(&self) {}
}

/// Finds nothing.
pub struct Nowhere;

impl Resolver for Nowhere {
    fn resolve(&self, _: &Reference) -> Result<Object, Failure> {
        Err(Failure::new(Kind::Unreachable, Initiator::Here, "no network"))
    }
    fn local(&self, _: &Reference, _: &str) -> Option<Local> {
        None
    }
}

/// Where it says that it listens.
pub fn endpoint() -> Endpoint {
    Endpoint::Tcp { host: "127.0.0.1".into(), port: 135 }
}

/// Answers a call that the wire itself makes of a servant.
struct Aside(Box<dyn Fn(Answer<'_>) + Send + Sync>);

impl Link for Aside {
    fn answer(&self, _: CallId, answer: Answer<'_>) {
        (self.0)(answer);
    }
    fn spawn(&self, _: BoxFuture<'static, ()>) {}
    fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::new(Nowhere)
    }
    fn peer(&self) -> Option<Peer> {
        None
    }
    fn endpoint(&self) -> Endpoint {
        endpoint()
    }
}
