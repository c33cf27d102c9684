//! Making objects for whoever asks (MS-DCOM 3.1.2.5.2.3).
//!
//! What a client gets has `PUBLIC_REFS` public references for each interface, and belongs to the client's account:
//! an object that was made is withdrawn when its last reference is given back or its holder is silent for
//! three ping periods. `limits::PRINCIPAL_OBJECTS` bounds how many one account may have.

use super::Exporter;
use crate::activation::{Activated, Activation};
use crate::hresult::{self, E_INVALIDARG, E_NOINTERFACE, REGDB_E_CLASSNOTREG, S_OK};
use crate::iid_of;
use crate::limits::INTERFACES_ASKED;
use crate::lock::lock;
use crate::remunknown::PUBLIC_REFS;
use crate::standard::activation::class_factory;
use bytes::Bytes;
use everywire_idl::midl::clsid_of_key;
use everywire_model::{Interface, InterfaceKind, Reference};
use uuid::Uuid;

/// What a CLSID leads to.
pub(super) enum ActivationTarget {
    /// A class, of which objects are made.
    Class(Bytes),
    /// An object that runs already: whoever asks gets the same.
    Object(Bytes),
}

impl Exporter {
    /// The keys of the objects that may serve an interface of plain DCE/RPC.
    pub(crate) fn serving(&self, iid: Uuid) -> Vec<Bytes> {
        self.running.all(iid)
    }

    /// What a CLSID leads to here.
    /// Keys and classes that the program registered come first; then whatever runs under a key, or of a
    /// class, with that CLSID.
    pub(super) fn class(&self, clsid: Uuid) -> Option<ActivationTarget> {
        let classes = self.objects().classes();
        let by_key = classes.iter().find(|(key, _)| clsid_of_key(key) == clsid);
        let of_class =
            |interface: &Interface| interface.kind == InterfaceKind::Class && iid_of(interface) == clsid;
        let class = by_key.or_else(|| classes.iter().find(|(_, interface)| of_class(interface)));
        match class {
            Some((key, _)) => Some(ActivationTarget::Class(key.clone())),
            // Objects that were made for somebody are found by their references only.
            None => self
                .running
                .find(clsid)
                .filter(|key| !self.exports.is_made(key))
                .map(ActivationTarget::Object),
        }
    }

    /// Yields an object of a class, or its class object; never fails, but tells why there is none.
    pub fn activate(&self, asked: &Activation, principal: &str) -> Activated {
        self.try_activate(asked, principal).unwrap_or_else(|hresult| asked.refused(hresult))
    }

    /// The HRESULT of an activation that yields nothing is the error; `Activated::interfaces` has one of its
    /// own for each interface.
    fn try_activate(&self, asked: &Activation, principal: &str) -> Result<Activated, u32> {
        hresult::check_version(asked.version)?;
        if asked.iids.is_empty() || asked.iids.len() > INTERFACES_ASKED {
            return Err(E_INVALIDARG);
        }
        let class = self.class(asked.clsid).ok_or(REGDB_E_CLASSNOTREG)?;
        // An object that runs already is what COM calls a single instance: whoever asks gets it.
        let key = match (asked.class_object, class) {
            (true, _) => self.factory(asked.clsid)?,
            (false, ActivationTarget::Class(class)) => self.create(&class, principal)?,
            (false, ActivationTarget::Object(key)) => key,
        };
        // Until its references are on their way, nobody else can let it go.
        let hold = self.hold(&key);
        let interfaces: Vec<_> = asked.iids.iter().map(|iid| self.first_reference(&key, *iid)).collect();
        // If it was made just now and has none of them, the hold was its last.
        drop(hold);
        self.activated(interfaces)
    }

    /// What is told of an object that has at least one of these interfaces.
    pub(super) fn activated(&self, interfaces: Vec<(Uuid, u32, Option<Bytes>)>) -> Result<Activated, u32> {
        if interfaces.iter().all(|(_, _, objref)| objref.is_none()) {
            return Err(E_NOINTERFACE);
        }
        Ok(Activated { oxid: self.oxid, resolved: self.resolution(), hresult: S_OK, interfaces })
    }

    /// One element of the answer: an OBJREF that counts `PUBLIC_REFS` references, or the reason why there is none.
    fn first_reference(&self, key: &[u8], iid: Uuid) -> (Uuid, u32, Option<Bytes>) {
        if self.offers(key, iid) {
            (iid, S_OK, Some(self.objref(key, iid, PUBLIC_REFS).write()))
        } else {
            (iid, E_NOINTERFACE, None)
        }
    }

    /// Makes an object of a class, which is served until nobody refers to it.
    fn create(&self, class: &[u8], principal: &str) -> Result<Bytes, u32> {
        // Room is reserved before the program's own code runs, and given back if it makes nothing.
        let owner = self.reserve(principal).map_err(|_| hresult::RPC_S_SERVER_TOO_BUSY)?;
        let made = self.objects().create(class, principal);
        let made =
            made.ok_or(REGDB_E_CLASSNOTREG).and_then(|made| made.map_err(|failure| hresult::of(&failure)));
        match &made {
            Ok(key) => self.enter_made(key, &owner, true),
            Err(_) => self.exports.unreserve(&owner),
        }
        made
    }

    /// The class object of a class: one for all who ask, and as long as the class is there, so it needs no
    /// pings. It is made for the process itself (the empty account), whoever asks first: there is one for
    /// each class.
    fn factory(&self, clsid: Uuid) -> Result<Bytes, u32> {
        let known = lock(&self.factories).get(&clsid).cloned();
        if let Some(key) = known.as_ref().filter(|key| !self.objects().servants(key).is_empty()) {
            return Ok(key.clone());
        }
        let key = self
            .serve_as(vec![class_factory(self, clsid)], "", false)
            .map_err(|_| hresult::RPC_S_SERVER_TOO_BUSY)?;
        let mut factories = lock(&self.factories);
        match factories.get(&clsid).filter(|other| known.as_ref() != Some(other)).cloned() {
            Some(first) => {
                // Somebody else who asked at the same time was first.
                drop(factories);
                self.objects().withdraw(&key);
                Ok(first)
            }
            None => {
                factories.insert(clsid, key.clone());
                Ok(key)
            }
        }
    }

    /// IClassFactory::RemoteCreateInstance: a new object, or the one that runs.
    pub(crate) fn create_instance(&self, clsid: Uuid, iid: Uuid, principal: &str) -> Result<Reference, u32> {
        let key = match self.class(clsid).ok_or(REGDB_E_CLASSNOTREG)? {
            ActivationTarget::Class(class) => self.create(&class, principal)?,
            ActivationTarget::Object(key) => key,
        };
        if self.offers(&key, iid) {
            return Ok(self.local(&iid.to_string(), &key));
        }
        // If it was made just now, this was its last holder.
        drop(self.hold(&key));
        Err(E_NOINTERFACE)
    }

    /// RemQueryInterface: the key of the object that has this IPID.
    pub(crate) fn object_of(&self, ipid: Uuid) -> Option<Bytes> {
        self.exports.key_of(ipid)
    }
}
