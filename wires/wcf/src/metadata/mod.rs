//! What a service says of itself: WSDL pages over HTTP, `IMetadataExchange` on every binding, and the asking side.
//!
//! * [`page`]: what a GET gets: `?wsdl`, `?singleWsdl`, `?wsdl=wsdlN`, `?xsd=xsdN`, and a page for people.
//! * `servant`: the answer to WS-Transfer's Get, under `mex` below every object and for the node as a whole.
//! * [`discover`] and [`list`]: asking a service, by its pages over HTTP and by WS-Transfer elsewhere.

mod asking;
mod contract;
mod exchange;
mod pages;
mod passed;
mod service;

pub use asking::{discover, list};
pub(crate) use exchange::described;
pub use pages::{Page, page};
pub(crate) use passed::{asked, describes, operation, readdress};

use everywire_model::{Objects, Servant};
use std::sync::Arc;

/// The servant of `IMetadataExchange`.
pub(crate) fn servant(objects: &Arc<dyn Objects>) -> Arc<dyn Servant> {
    Arc::new(exchange::MetadataServant { objects: Arc::clone(objects) })
}
