//! The servants that stand by for every node and every object.

use super::contracts::{CONNECTION_POINT_CONTAINER, PROVIDE_CLASS_INFO, PROVIDE_CLASS_INFO2};
use super::serving::{SystemServant, own_servants};
use super::{activation, contracts, dispatch, mapper, points, typeinfo};
use super::{object_exporter, rem_unknown};
use crate::exporter::Exporter;
use crate::exporter::raw::Raw;
use crate::{IDISPATCH, iid_of};
use everywire_model::Answer::Done;
use everywire_model::{Failure, Interface, Request, Servant};
use std::sync::Arc;
use uuid::Uuid;

/// How a call of the node, or of whatever object it is for, is answered.
#[derive(Clone, Copy)]
enum Implementation {
    /// By a whole stub. A status that is a failure is part of it; only a stub that cannot be read is an `Err`.
    Stub(fn(&Exporter, &Request) -> Result<Vec<u8>, Failure>),
    /// By values.
    Values(fn(&Arc<Exporter>, &mut Request) -> Result<(), Failure>),
}

/// Answers a call as it is said.
fn answer(how: &Implementation, exporter: &Arc<Exporter>, request: &mut Request) -> Result<(), Failure> {
    match how {
        Implementation::Stub(answer) => request.answer(Done(&Raw(&answer(exporter, request)?))),
        Implementation::Values(answer) => return answer(exporter, request),
    }
    Ok(())
}

/// The servants of the system interfaces.
pub fn servants(exporter: &Arc<Exporter>) -> Vec<Arc<dyn Servant>> {
    use Implementation::{Stub, Values};
    let standing: [(&'static Interface, Implementation); 11] = [
        (&object_exporter::OBJECT_EXPORTER, Stub(object_exporter::answer)),
        (&rem_unknown::REM_UNKNOWN, Stub(rem_unknown::answer)),
        (&rem_unknown::REM_UNKNOWN2, Stub(rem_unknown::answer)),
        (&activation::REMOTE_ACTIVATION, Stub(activation::answer_remote)),
        (&activation::REMOTE_SCM_ACTIVATOR, Stub(activation::answer_scm)),
        (&CONNECTION_POINT_CONTAINER, Values(points::answer_container)),
        (&PROVIDE_CLASS_INFO, Values(typeinfo::answer_class_info)),
        (&PROVIDE_CLASS_INFO2, Values(typeinfo::answer_class_info)),
        (&contracts::CONTRACT, Values(typeinfo::answer_contract)),
        (&mapper::MAPPER, Values(mapper::answer_mapper)),
        (&mapper::MANAGEMENT, Values(mapper::answer_management)),
    ];
    let standing = standing.map(|(interface, how)| SystemServant::serving(exporter, interface, how, answer));
    let dispatch: Arc<dyn Servant> = Arc::new(dispatch::Dispatch(exporter.weak()));
    standing.into_iter().chain([dispatch]).collect()
}

/// Whether the object under `key` has an interface that [`servants`] answer for it.
/// An object of the wire's own (a connection point, an enumerator, type information) has only what it serves
/// itself.
pub fn offers(exporter: &Exporter, key: &[u8], iid: Uuid) -> bool {
    let given = [
        IDISPATCH,
        contracts::CONNECTION_POINT_CONTAINER_ID,
        contracts::PROVIDE_CLASS_INFO_ID,
        contracts::PROVIDE_CLASS_INFO2_ID,
        iid_of(&contracts::CONTRACT),
    ];
    given.contains(&iid) && !own_servants(exporter, key).is_empty()
}
