//! Objects of the wire's own, and who asks.

use crate::exporter::{Correspondence, Exporter};
use crate::hresult;
use everywire_model::{Failure, Initiator, Kind, Reference, Request, Servant};
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use uuid::Uuid;

/// The object under a key as an interface pointer of this type.
pub(super) fn pointer(exporter: &Exporter, iid: Uuid, key: &[u8]) -> Reference {
    exporter.objects().publish(&iid.to_string(), key)
}

/// Serves an object until nobody refers to it, as an interface pointer of its servant's interface.
///
/// # Errors
/// The principal has too many.
pub(super) fn serve(
    exporter: &Exporter,
    servant: Arc<dyn Servant>,
    principal: &str,
) -> Result<Reference, Failure> {
    let iid = crate::iid_of(servant.interface());
    let key = exporter.serve(vec![servant], principal)?;
    Ok(pointer(exporter, iid, &key))
}

/// Who asks: empty for this process, and for peers that did not say.
pub(super) fn principal(request: &Request) -> String {
    let ambient: Option<&dyn Any> = request.body().ambient().map(|held| &**held as &dyn Any);
    let correspondence = ambient.and_then(|any| any.downcast_ref::<Correspondence>());
    correspondence.map(|held| held.principal().to_owned()).unwrap_or_default()
}

/// The failure that a method reports by this HRESULT.
#[cold]
pub(super) fn refused(code: u32) -> Failure {
    hresult::failure(code, None)
}

/// The exporter, if its node still runs.
///
/// # Errors
/// It does not.
pub(super) fn alive(exporter: &Weak<Exporter>) -> Result<Arc<Exporter>, Failure> {
    exporter.upgrade().ok_or_else(|| Failure::new(Kind::Unreachable, Initiator::Here, "the node was stopped"))
}

/// A lock's content, whatever happened to others who held it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
