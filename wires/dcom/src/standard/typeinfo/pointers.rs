//! The library and its descriptions as objects: each is served as long as somebody refers to it.

use super::info::TypeInfo;
use super::lib::TypeLib;
use super::library::Library;
use crate::exporter::Exporter;
use crate::iid_of;
use crate::lock::lock;
use crate::standard::contracts::{TYPE_INFO, TYPE_LIB};
use crate::standard::serving::{SystemServant, pointer, serve};
use everywire_model::{Failure, Reference};
use std::sync::Arc;

impl Library {
    /// A description as an interface pointer, or the library as one.
    ///
    /// # Errors
    /// The principal has too many objects.
    pub(super) fn pointer(
        self: &Arc<Self>,
        exporter: &Exporter,
        index: Option<usize>,
        principal: &str,
    ) -> Result<Reference, Failure> {
        let iid = iid_of(if index.is_some() { &TYPE_INFO } else { &TYPE_LIB });
        // The lock is kept while the object is made, so that two callers get the same one.
        let mut served = lock(&self.served);
        if let Some(key) = served.get(&index).filter(|key| !exporter.objects().servants(key).is_empty()) {
            return Ok(pointer(exporter, iid, key));
        }
        let library = Arc::clone(self);
        let servant = match index {
            Some(index) => {
                SystemServant::serving(exporter, &TYPE_INFO, TypeInfo { library, index }, TypeInfo::answer)
            }
            None => SystemServant::serving(exporter, &TYPE_LIB, TypeLib(library), TypeLib::answer),
        };
        let made = serve(exporter, servant, principal)?;
        if let Some(way) = made.profiles.first() {
            served.insert(index, way.key.clone());
        }
        Ok(made)
    }
}
