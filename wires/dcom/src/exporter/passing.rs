//! Objects elsewhere for which this node stands: those of a hop without a contract.
//!
//! Who asks for a class that is not here, where somebody answers for all keys that begin so, gets an object of this node's own: with its
//! OXID, an OID and IPIDs. Each stands for one object elsewhere, whose references are held as long as somebody refers to it here. Its key
//! is the class's, [`SEPARATOR`], and a number: so whoever answers for the class is the one who has its calls.
//!
//! Or, if whoever answers wants it ([`handed_over`]), they get the references of the object elsewhere, and call it there: then this node
//! holds nothing of it.

use super::imports::{InterfaceResult, Proxy};
use super::{ExportGuard, Exporter, SEPARATOR};
use crate::activation::{Activated, Activation};
use crate::hresult::{
    E_NOINTERFACE, E_OUTOFMEMORY, RPC_E_DISCONNECTED, RPC_S_SERVER_TOO_BUSY, RPC_S_SERVER_UNAVAILABLE, S_OK,
};
use crate::ndr::HANDED;
use crate::objref::{ObjRef, StdObjRef};
use crate::remunknown::PUBLIC_REFS;
use crate::remunknown::Query;
use crate::resolver::OxidResolution;
use crate::security::Security;
use crate::tags::{TAG_OBJREF, TAG_PASSED};
use crate::ways::system;
use crate::{IUNKNOWN, hresult};
use bytes::Bytes;
use everywire_model::{Body, Lease, Profile, Reference, WireState};
use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;
use uuid::Uuid;

/// What an activation elsewhere yielded, or an object elsewhere that was asked for interfaces: between the two sessions of a hop, in place
/// of values.
pub(crate) struct Adopted {
    /// The object, if there is one.
    pub(crate) proxy: Arc<Proxy>,
    /// Each interface asked for.
    pub(crate) found: Vec<InterfaceResult>,
}

impl WireState for Adopted {}

impl Adopted {
    /// The HRESULT of an interface, as far as it is known: one that the object has is [`S_OK`].
    /// The proxy may have refused to keep an interface that was found (`PROXY_INTERFACES`): `E_OUTOFMEMORY`
    /// then.
    fn hresult(&self, iid: Uuid) -> u32 {
        let told = self.found.iter().find(|held| held.iid == iid).map(|held| held.hresult);
        match told {
            Some(hresult) if hresult::is_failure(hresult) => hresult,
            _ if iid == IUNKNOWN || self.proxy.ipid(iid).is_some() => S_OK,
            Some(_) => E_OUTOFMEMORY,
            None => E_NOINTERFACE,
        }
    }

    /// What somebody gets who is to call the object there and not here: the exporter's own OXID, bindings and IPIDs, with the
    /// references that came for this question. They are the caller's from now on; this side neither pings the object nor gives them
    /// back. If the answer is lost on its way, the exporter runs the object down as it does after any client that dies.
    /// `at` is where the caller's connection ends here.
    ///
    /// # Errors
    /// The HRESULT: nothing is known of where the caller could call it, or it has none of the interfaces.
    pub(crate) fn hand_over(&self, asked: &Activation, at: Option<IpAddr>) -> Result<Activated, u32> {
        let (resolved, resolver) = self.proxy.oxid().told().ok_or(RPC_S_SERVER_UNAVAILABLE)?;
        let (oxid, resolver) = (self.proxy.oxid().id(), resolver.elsewhere(at));
        let bindings = resolved.bindings.clone().elsewhere(at);
        // Without an address a caller would come back here, where nobody knows the object's IPID.
        if bindings.strings.is_empty() || resolver.strings.is_empty() {
            return Err(RPC_S_SERVER_UNAVAILABLE);
        }
        let interface = |iid: &Uuid| {
            let came = self.found.iter().find(|held| held.iid == *iid).map_or(0, |held| held.refs);
            let std = match self.hresult(*iid) {
                S_OK => self.proxy.hand_over(*iid, came).ok_or(E_NOINTERFACE),
                hresult => Err(hresult),
            };
            match std {
                Ok(std) => {
                    let objref = ObjRef::Standard { iid: *iid, std, resolver: resolver.clone() };
                    (*iid, S_OK, Some(objref.write()))
                }
                Err(hresult) => (*iid, hresult, None),
            }
        };
        let interfaces: Vec<_> = asked.iids.iter().map(interface).collect();
        if interfaces.iter().all(|(_, _, objref)| objref.is_none()) {
            return Err(E_NOINTERFACE);
        }
        let resolved = OxidResolution { bindings, ..resolved };
        Ok(Activated { oxid, resolved, hresult: S_OK, interfaces })
    }
}

/// An answer of somebody elsewhere who was asked for an object, so that whoever asked here gets that object's own references; nothing if
/// it names no object.
pub(crate) fn handed_over(body: &Body) -> Option<Body> {
    let told = body.wire_state().map(|wire_state| &**wire_state as &dyn Any)?;
    told.is::<Adopted>().then(|| Body { dialect: body.dialect | HANDED, ..body.clone() })
}

impl Exporter {
    /// The key of a class that is not here, if somebody answers for all keys that begin so.
    pub(crate) fn passing_class(&self, clsid: Uuid) -> Option<Bytes> {
        let key = clsid.to_string();
        self.objects().by_prefix(key.as_bytes())?;
        self.class(clsid).is_none().then(|| key.into())
    }

    /// The key of the object that has this IPID, and what it stands for, if it stands for one elsewhere.
    pub(crate) fn passed_by(&self, ipid: Uuid) -> Option<(Bytes, Arc<Proxy>)> {
        if !self.exports.passes() {
            return None;
        }
        let key = self.exports.key_of(ipid)?;
        let proxy = self.exports.stands_for(&key)?;
        Some((key, proxy))
    }

    /// What the object under a key stands for.
    pub(crate) fn passed(&self, key: &[u8]) -> Option<Arc<Proxy>> {
        self.exports.stands_for(key)
    }

    /// See [`WireState::onward`].
    pub(super) fn leads_on(&self, key: &[u8], to: &Reference) -> Option<Reference> {
        let target = to.profiles.iter().find(|profile| profile.wire == "dcom")?;
        let profile = if key.contains(&SEPARATOR) {
            let proxy = self.passed(key);
            let known = proxy.as_ref().map(|proxy| proxy.profile(Some(target)));
            let security = proxy.map_or_else(|| Security::of(target), |proxy| proxy.security());
            // What is held is let go when nobody here refers to the object, and not when nobody calls it any more.
            let mut components = known.as_ref().map(|known| known.components.clone()).unwrap_or_default();
            components.push((TAG_PASSED, Bytes::new()));
            Profile {
                key: Bytes::copy_from_slice(key),
                components,
                options: security.into(),
                lease: Lease::default(),
                ..known.unwrap_or_else(|| target.clone())
            }
        } else if target.component(TAG_OBJREF).is_some() {
            return None;
        } else {
            // Objects are asked of the node: of the class that its address names, or else of the one that the caller names.
            Profile {
                key: target.key.clone(),
                ..system(target.endpoints.clone(), &Security::of(target), None)
            }
        };
        Some(Reference { type_id: String::new(), profiles: vec![profile], foreign: Vec::new() })
    }

    /// What somebody gets who asked for an object that is elsewhere: references of this node's own.
    pub(crate) fn activate_passed(
        &self,
        class: &[u8],
        asked: &Activation,
        adopted: &Adopted,
        principal: &str,
    ) -> Result<Activated, u32> {
        let owner = self.reserve(principal).map_err(|_| RPC_S_SERVER_TOO_BUSY)?;
        let (key, oid) = self.exports.stand_for(class, &adopted.proxy, &owner);
        self.clock.tick(self.objects());
        // It is kept until its first reference is counted.
        let _hold = self.arc().map(|exporter| ExportGuard::held(exporter, oid));
        let interface = |iid: &Uuid| match adopted.hresult(*iid) {
            S_OK => (*iid, S_OK, Some(self.objref(&key, *iid, PUBLIC_REFS).write())),
            hresult => (*iid, hresult, None),
        };
        self.activated(asked.iids.iter().map(interface).collect())
    }

    /// References to interfaces of an object that stands for one elsewhere, after that was asked for them.
    pub(crate) fn query_passed(
        &self,
        key: &[u8],
        query: &Query,
        adopted: &Adopted,
    ) -> Vec<Result<StdObjRef, u32>> {
        let hold = self.hold(key);
        // It may have been let go meanwhile.
        let here = self.passed(key).is_some();
        let export = |iid: &Uuid| match adopted.hresult(*iid) {
            _ if !here => Err(RPC_E_DISCONNECTED),
            S_OK => Ok(self.export(key, *iid, query.refs)),
            hresult => Err(hresult),
        };
        let found = query.iids.iter().map(export).collect();
        drop(hold);
        found
    }
}
