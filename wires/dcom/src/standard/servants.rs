//! The servants that stand by for every node and every object.

use super::{
    activation, contracts, dispatch, is_standard, mapper, object_exporter, points, rem_unknown, typeinfo,
};
use crate::exporter::Exporter;
use crate::{IDISPATCH, iid_of};
use everywire_model::Servant;
use std::sync::Arc;
use uuid::Uuid;

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
/// An object of the wire's own (a connection point, an enumerator, type information) has only what it serves
/// itself.
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
