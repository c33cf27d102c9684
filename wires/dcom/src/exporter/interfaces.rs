//! Which interfaces an object can be asked for, and who answers.

use super::marshalling::find;
use super::{Exporter, Proxy};
use crate::standard;
use crate::{IUNKNOWN, iid_of, opnum_base};
use everywire_model::{Interface, InterfaceKind, Request, Servant, Shape};
use std::sync::Arc;
use uuid::Uuid;

impl Exporter {
    /// The results of an operation, so that a failing HRESULT can be answered with blank out parameters.
    pub fn results(&self, key: &[u8], iid: Uuid, opnum: u16) -> Option<Shape> {
        let own = if key.is_empty() { Vec::new() } else { self.objects.servants(key) };
        own.iter().chain(self.standing_by()).find_map(|servant| {
            let interface = find(servant.interface(), &|held| iid_of(held) == iid)?;
            let index = opnum.checked_sub(opnum_base(interface))?;
            Some(interface.operations.get(usize::from(index))?.results.clone())
        })
    }

    /// Whether the object under a key can be asked for an interface.
    /// What stands for an object elsewhere offers what was found there so far, and IUnknown.
    pub fn offers(&self, key: &[u8], iid: Uuid) -> bool {
        let servants = self.objects.servants(key);
        if servants.is_empty() {
            let known = |proxy: Arc<Proxy>| iid == IUNKNOWN || proxy.ipid(iid).is_some();
            return self.exports.stands_for(key).is_some_and(known);
        }
        iid == IUNKNOWN || serves(&servants, iid) || standard::offers(self, key, iid)
    }

    /// The same, where what is served under the key may stand for an object elsewhere that has more interfaces: it is asked for those that
    /// it does not serve here, before the servants that stand by answer in its place. May wait for it. `asked` is the caller's question.
    pub fn finds(&self, asked: &Request, key: &[u8], iid: Uuid) -> bool {
        let fits = |held: &Interface| is_callable_as(held, iid);
        let servants = self.objects.servants(key);
        let known = iid == IUNKNOWN || serves(&servants, iid);
        if !known && servants.iter().any(|servant| servant.find_interface(asked, key, &fits)) {
            // It may have gone meanwhile.
            return self.offers(key, iid);
        }
        known || self.offers(key, iid)
    }

    /// The servants that stand by for every object, and for the node.
    pub(super) fn standing_by(&self) -> &[Arc<dyn Servant>] {
        let made = || self.arc().map(|this| standard::servants(&this)).unwrap_or_default();
        self.servants.get_or_init(made)
    }
}

/// Whether one of the servants of an object has this interface.
fn serves(servants: &[Arc<dyn Servant>], iid: Uuid) -> bool {
    servants.iter().any(|servant| find(servant.interface(), &|held| is_callable_as(held, iid)).is_some())
}

/// Whether objects are called by this interface, and it has this IID.
fn is_callable_as(interface: &Interface, iid: Uuid) -> bool {
    !matches!(interface.kind, InterfaceKind::Class | InterfaceKind::Procedures) && iid_of(interface) == iid
}
