//! The interfaces that every node serves: those of DCOM itself, and what peers expect of every object.
//!
//! For the exporter:
//! * it keeps one [`State`] for its node and gives it by `Exporter::standard(&self) -> &State`;
//! * its `emit`, `subscribe`, `withdrawn`, `due` and `tend` call those of [`points`];
//! * when an object is asked for an interface that none of its servants has, [`offers`] says whether one of [`servants`]
//!   answers instead.
//!
//! For sessions: the operations for which [`keeps_hresult`] holds tell their HRESULT themselves.

pub mod activation;
mod asking;
pub mod categories;
pub mod contracts;
pub mod dispatch;
pub mod enumerators;
pub mod guid;
pub mod mapper;
pub mod object_exporter;
pub mod points;
pub mod rem_unknown;
mod serving;
pub(crate) mod typeinfo;
mod values;

pub(crate) use serving::host_of;

use crate::exporter::Exporter;
use crate::{IDISPATCH, iid_of, opnum_base};
use everywire_model::{Interface, Servant};
use std::sync::Arc;
use uuid::Uuid;

/// What the standard interfaces keep for a node.
#[derive(Default)]
pub struct State {
    points: points::Points,
    /// What the management interface tells of.
    pub traffic: mapper::Traffic,
}

/// The servants of the system interfaces.
pub fn servants(exporter: &Arc<Exporter>) -> Vec<Arc<dyn Servant>> {
    let mut all = vec![object_exporter::servant(exporter)];
    all.extend(rem_unknown::servants(exporter));
    all.extend(activation::servants(exporter));
    all.push(Arc::new(points::Container(exporter.weak())));
    for second in [false, true] {
        all.push(Arc::new(typeinfo::ProvideClassInfo { exporter: exporter.weak(), second }));
    }
    all.push(Arc::new(typeinfo::WholeContract(exporter.weak())));
    all.push(Arc::new(dispatch::Dispatch(exporter.weak())));
    all.push(Arc::new(mapper::Mapper(exporter.weak())));
    all.push(Arc::new(mapper::Management(exporter.weak())));
    all
}

/// Whether the object under `key` has an interface that [`servants`] answer for it.
pub fn offers(exporter: &Exporter, key: &[u8], iid: Uuid) -> bool {
    let given = [
        IDISPATCH,
        contracts::CONNECTION_POINT_CONTAINER_ID,
        contracts::PROVIDE_CLASS_INFO_ID,
        contracts::PROVIDE_CLASS_INFO2_ID,
        iid_of(&typeinfo::contracts::CONTRACT),
    ];
    given.contains(&iid) && exporter.objects().servants(key).iter().any(|held| !is_standard(held.interface()))
}

/// Whether an interface is one of the standard ones, which type information and dispatch leave out.
pub(crate) fn is_standard(interface: &Interface) -> bool {
    let iid = iid_of(interface);
    [
        &contracts::CONNECTION_POINT,
        &contracts::ENUM_CONNECTION_POINTS,
        &contracts::ENUM_CONNECTIONS,
        &typeinfo::contracts::TYPE_INFO,
        &typeinfo::contracts::TYPE_LIB,
    ]
    .iter()
    .any(|standard| iid_of(standard) == iid)
}

/// Whether the method number `opnum` of an interface tells its HRESULT itself, as the last of its results: a session neither
/// adds one nor takes it for a failure. So do methods whose success has several degrees, or whose failure has results.
pub fn keeps_hresult(iid: Uuid, opnum: u16) -> bool {
    match iid {
        contracts::ENUM_CONNECTION_POINTS_ID | contracts::ENUM_CONNECTIONS_ID => matches!(opnum, 3 | 4),
        IDISPATCH => matches!(opnum, 5 | 6),
        _ => false,
    }
}

/// Whether a call is one of IDispatch's that was asked under the identity of another interface: dual interfaces and
/// dispinterfaces travel so. The number of the operation in [`contracts::DISPATCH`].
pub fn dispatch_index(interface: &Interface, asked: Uuid, opnum: u16) -> Option<usize> {
    if iid_of(interface) != IDISPATCH || is_system(asked) {
        return None;
    }
    let index = usize::from(opnum.checked_sub(opnum_base(interface))?);
    (index < interface.operations.len()).then_some(index)
}

/// Whether an identity is that of an interface of the node or of every object, none of which is derived from IDispatch.
fn is_system(iid: Uuid) -> bool {
    let others = [
        crate::REMOTE_ACTIVATION,
        crate::session::SCM_ACTIVATOR,
        crate::session::REM_UNKNOWN,
        crate::session::REM_UNKNOWN2,
        contracts::CONNECTION_POINT_CONTAINER_ID,
        contracts::CONNECTION_POINT_ID,
        contracts::ENUM_CONNECTION_POINTS_ID,
        contracts::ENUM_CONNECTIONS_ID,
        contracts::PROVIDE_CLASS_INFO_ID,
        contracts::PROVIDE_CLASS_INFO2_ID,
        contracts::TYPE_INFO_ID,
        contracts::TYPE_LIB_ID,
        iid_of(&typeinfo::contracts::CONTRACT),
    ];
    !crate::is_orpc(iid) || others.contains(&iid)
}
