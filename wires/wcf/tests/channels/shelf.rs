//! What a node serves, without a node.

use bytes::Bytes;
use everywire_model::object::{Local, Resolver};
use everywire_model::shape::Hold;
use everywire_model::*;
use std::sync::Arc;

/// These keys, and nothing behind them.
pub(crate) struct Shelf(pub(crate) &'static [&'static str]);

impl Objects for Shelf {
    fn keys(&self) -> Vec<Bytes> {
        self.0.iter().map(|key| Bytes::from_static(key.as_bytes())).collect()
    }
    fn servants(&self, _: &[u8]) -> Vec<Arc<dyn Servant>> {
        Vec::new()
    }
    fn emit(&self, _: &[u8], _: &Interface, _: &Signal, _: &dyn Encode) -> Result<(), Failure> {
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
    fn create(&self, _: &[u8]) -> Option<Result<Bytes, Failure>> {
        None
    }
    fn publish(&self, _: &str, _: &[u8]) -> Reference {
        Reference::default()
    }
    fn places(&self) -> Vec<Place> {
        Vec::new()
    }
    fn listen(&self, _: &str) -> Result<Place, Failure> {
        Err(Failure::new(Kind::Unsupported, Initiator::Here, "no network"))
    }
    fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::new(Nowhere)
    }
    fn attend(&self) {}
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
