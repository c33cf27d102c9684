//! Objects of the wire's own, and who asks.

use crate::exporter::Exporter;
use crate::hresult;
use everywire_model::{Failure, Initiator, Interface, Kind, Reference, Request, Servant};
use std::sync::{Arc, Weak};
use uuid::Uuid;

/// A servant of the wire's own: an interface, what it is served of, and how. It holds its exporter weakly, for that holds its servants.
pub(super) struct SystemServant<T> {
    exporter: Weak<Exporter>,
    interface: &'static Interface,
    held: T,
    answer: Answering<T>,
}

/// Answers a call of what is held.
type Answering<T> = fn(&T, &Arc<Exporter>, &mut Request) -> Result<(), Failure>;

impl<T: Send + Sync + 'static> SystemServant<T> {
    /// Serves this interface of what is held.
    pub(super) fn serving(
        exporter: &Exporter,
        interface: &'static Interface,
        held: T,
        answer: Answering<T>,
    ) -> Arc<dyn Servant> {
        Arc::new(Self { exporter: exporter.weak(), interface, held, answer })
    }
}

impl<T: Send + Sync> Servant for SystemServant<T> {
    fn interface(&self) -> &Interface {
        self.interface
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| (self.answer)(&self.held, &alive(&self.exporter)?, request));
    }
}

/// The servants of an object that are its own and not the wire's: those that are told of, and called by name.
pub(super) fn own_servants(exporter: &Exporter, key: &[u8]) -> Vec<Arc<dyn Servant>> {
    let mut all = exporter.objects().servants(key);
    all.retain(|servant| !super::is_standard(servant.interface()));
    all
}

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

/// Answers with an interface pointer.
pub(super) fn hand_out(request: &mut Request, pointer: Reference) -> Result<(), Failure> {
    request.reply::<_, Failure>(Ok((Some(pointer),)))
}

/// Who asks, for quotas and private references: the principal if it is known, else where it is; empty for this process.
pub(super) fn principal(request: &Request) -> String {
    if !request.sender().is_empty() {
        return String::from_utf8_lossy(request.sender()).into_owned();
    }
    let Some(peer) = request.peer() else { return String::new() };
    host_of(&peer.address.text).to_owned()
}

/// Where a peer is, without its port: each connection of a client has another.
pub(crate) fn host_of(text: &str) -> &str {
    match text.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => text,
    }
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
