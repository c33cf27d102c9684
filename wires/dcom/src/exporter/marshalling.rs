//! References out and in: OBJREFs of this node's objects and of objects elsewhere (MS-DCOM 3.1.1.5.1 to
//! 3.1.1.5.3, 3.2.4.1.2, 3.2.4.3).
//!
//! Out (`marshal`): an object of this node gets `PUBLIC_REFS` references counted in its exports; a proxy gives one
//! of its own away, or none if it has but one, and is then kept for a while until the receiver has asked for
//! its own; an OBJREF in text is passed on without references, since they belong to somebody else. In
//! (`adopt`): an OBJREF of this node's own OXID comes home as a local reference and its counted references
//! are taken back; any other one becomes the lease of a proxy, with the references that it brings.
//!
//! Invariants: each OBJREF that is written was counted before, and each that is read is counted once:
//! `Correspondence::read` remembers what was read at which offset of a body. A `ExportGuard` keeps an object in the
//! exports while references are moved, so that it cannot vanish between two steps.

use super::imports::{Origin, Proxy};
use super::{Correspondence, Exporter};
use crate::activation::Activated;
use crate::hresult::{self, RPC_E_INVALID_OBJREF, is_failure};
use crate::lock::lock;
use crate::ndr::{References, WINE};
use crate::objref::{ObjRef, StdObjRef};
use crate::remunknown::PUBLIC_REFS;
use crate::resolver::OxidResolution;
use crate::security::{Security, is_tcp};
use crate::tags::{TAG_OBJREF, TAG_OXID};
use crate::violations::Violation;
use crate::{IUNKNOWN, iid_of, is_foreign};
use bytes::Bytes;
use everywire_model::{Endpoint, Failure, Initiator, Interface, Kind, Lease, Profile, Reference, Visit};
use std::net::IpAddr;
use std::sync::Arc;
use uuid::Uuid;

/// Keeps an object of this node that is known elsewhere, or came home from there.
pub struct ExportGuard {
    exporter: Arc<Exporter>,
    /// The object in the exports, in whose count of holds this one is.
    oid: u64,
}

impl ExportGuard {
    /// Keeps an object of this node that is served until nobody refers to it.
    pub(super) fn lend(exporter: Arc<Exporter>, key: &[u8]) -> Self {
        Self { oid: exporter.exports.hold(key, true), exporter }
    }

    /// Keeps an object that was lent before, unless it has ended.
    pub(super) fn lend_again(exporter: Arc<Exporter>, key: &[u8]) -> Option<Self> {
        Some(Self { oid: exporter.exports.hold_again(key)?, exporter })
    }

    /// Takes over a hold that was counted.
    pub(super) fn held(exporter: Arc<Exporter>, oid: u64) -> Self {
        Self { exporter, oid }
    }
}

impl Drop for ExportGuard {
    fn drop(&mut self) {
        let dropped = self.exporter.exports.let_go(self.oid);
        self.exporter.drop_object(dropped);
    }
}

impl Exporter {
    /// Marshals `refs` more references to an object of this node.
    /// The ping period runs from now on, if it did not.
    pub fn export(&self, key: &[u8], iid: Uuid, refs: u32) -> StdObjRef {
        let servants = self.objects().servants(key);
        let held = servants.iter().find_map(|servant| find(servant.interface(), &|held| iid_of(held) == iid));
        let marshalled = self.exports.export(key, iid, held.is_some_and(is_foreign), refs);
        self.clock.tick(self.objects());
        StdObjRef {
            flags: if marshalled.pinged { 0 } else { StdObjRef::NO_PING },
            public_refs: refs,
            oxid: self.oxid,
            oid: marshalled.oid,
            ipid: marshalled.ipid,
        }
    }

    /// The same as an OBJREF with this node's bindings.
    pub fn objref(&self, key: &[u8], iid: Uuid, refs: u32) -> ObjRef {
        ObjRef::Standard { iid, std: self.export(key, iid, refs), resolver: self.bindings() }
    }

    /// Keeps an object of this node alive, whoever refers to it elsewhere.
    pub fn hold(&self, key: &[u8]) -> Option<ExportGuard> {
        let exporter = self.arc()?;
        Some(ExportGuard { oid: self.exports.hold(key, false), exporter })
    }

    /// The OBJREF of a reference: counts one more holder.
    ///
    /// # Errors
    /// It does not lead to an object of this wire, or nobody has asked for the object yet.
    pub fn marshal(&self, reference: &Reference) -> Visit<ObjRef> {
        let Some(profile) = reference.profiles.iter().find(|profile| profile.wire == "dcom") else {
            let what = "the reference leads to an object of another wire only";
            return Err(Failure::new(Kind::Unsupported, Initiator::User, what)
                .with_hint("serve the object at an address of this wire, too"));
        };
        // An object elsewhere that this node holds: it is passed on with its own exporter's OXID, so calls do
        // not come through here.
        if let Some(proxy) = profile.lease.share::<Proxy>() {
            return Ok(self.pass_on(proxy, &reference.type_id));
        }
        // An OBJREF that was given as text and never unmarshalled.
        if let Some(objref) = profile.component(TAG_OBJREF) {
            let (objref, _) = ObjRef::parse(objref)?;
            return Ok(uncounted(objref));
        }
        if self.is_own(profile) {
            if self.objects().servants(&profile.key).is_empty() {
                let key = everywire_model::reference::escape(&profile.key);
                let what = format!("no object has the key `{key}` any more");
                return Err(Failure::new(Kind::NoObject, Initiator::User, what));
            }
            let iid = self.iid_named(&profile.key, &reference.type_id)?;
            return Ok(self.objref(&profile.key, iid, PUBLIC_REFS));
        }
        let what = "the reference names a class, not an object: nobody has asked for the object yet";
        Err(Failure::new(Kind::Unsupported, Initiator::User, what)
            .with_hint("call the object once before it is passed on"))
    }

    /// Passes on an object elsewhere: with one of our references if there are several, else without one, and then ours are kept
    /// until the receiver has had time to ask for its own.
    fn pass_on(&self, proxy: Arc<Proxy>, type_id: &str) -> ObjRef {
        let iid = type_id.parse().unwrap_or_else(|_| proxy.first_iid());
        let (iid, std) = proxy.split(iid);
        let resolver = proxy.oxid().bindings().clone();
        if std.public_refs == 0 {
            if self.pinger.want(&proxy) {
                self.clock.ask_soon(self.objects());
            }
            self.pinger.linger(proxy);
        }
        ObjRef::Standard { iid, std, resolver }
    }

    /// Whether a way leads to an object of this node.
    fn is_own(&self, profile: &Profile) -> bool {
        if let Some(oxid) = profile.component(TAG_OXID) {
            return **oxid == self.oxid.to_le_bytes();
        }
        self.objects().places().iter().any(|place| {
            let bound = &place.profile().endpoints;
            let at = |place: &Endpoint| profile.endpoints.iter().any(|endpoint| is_at(place, endpoint));
            bound.iter().any(at) || self.objects().reach(place).endpoints.iter().any(at)
        })
    }

    /// The identity on this wire of the interface that an object of this node is said to have. A type that is no IID belongs to
    /// another contract language; then the object is passed on as what it mainly is.
    ///
    /// # Errors
    /// The type is an IID that the object does not offer: whoever asked for it (`iid_is`) would call another interface.
    fn iid_named(&self, key: &[u8], type_id: &str) -> Visit<Uuid> {
        let servants = self.objects().servants(key);
        let named = servants.iter().find_map(|servant| find(servant.interface(), &|held| held.id == type_id));
        if let Some(interface) = named {
            return Ok(iid_of(exposed(interface)));
        }
        match type_id.parse() {
            Ok(iid) if self.offers(key, iid) => Ok(iid),
            Ok(iid) => Err(lacks(key, iid)),
            // What is exported first is what an object mainly is.
            Err(_) => Ok(servants.first().map_or(IUNKNOWN, |servant| iid_of(exposed(servant.interface())))),
        }
    }

    /// An OBJREF that came in becomes a reference: objects of this node come back as local ones.
    ///
    /// # Errors
    /// It is marshalled by itself, or names an object of this node that is gone.
    pub fn adopt(&self, objref: &ObjRef, security: &Arc<Security>) -> Visit<Reference> {
        self.adopt_from(objref, security, false, None)
    }

    /// The same; `local` says that it came from this machine, `via` how.
    fn adopt_from(
        &self,
        objref: &ObjRef,
        security: &Arc<Security>,
        local: bool,
        via: Option<&Profile>,
    ) -> Visit<Reference> {
        let plain = security.dialect.plain(objref);
        let objref = plain.as_ref().unwrap_or(objref);
        let Some((std, resolver)) = objref.standard() else {
            let what = "the object marshals itself, and the class that could unmarshal it is not here";
            return Err(Failure::new(Kind::Unsupported, Initiator::Peer, what));
        };
        if std.oxid == self.oxid {
            return self.come_home(objref.iid(), std);
        }
        let origin = Origin { resolver, security, local, via };
        let proxy = self.import(objref.iid(), std, &origin);
        // Of Wine nobody can ask where its exporter is; it follows from the address.
        if let (None, Some(known)) = (proxy.oxid().resolution(), security.dialect.resolution(std.oxid)) {
            proxy.oxid().resolve(known, via);
        }
        let profiles = vec![proxy.profile(via)];
        Ok(Reference { type_id: objref.iid().to_string(), profiles, foreign: Vec::new() })
    }

    /// The proxy of an object elsewhere. If it came without references, the keeper will ask for some.
    fn import(&self, iid: Uuid, std: &StdObjRef, origin: &Origin<'_>) -> Arc<Proxy> {
        let proxy = self.imports.adopt(iid, std, origin);
        if std.public_refs == 0 && !proxy.unheld().is_empty() && self.pinger.want(&proxy) {
            self.clock.ask_soon(self.objects());
        }
        self.clock.tick(self.objects());
        proxy
    }

    /// An object of this node comes home: the references that it brings are no longer elsewhere.
    /// The IPID must be one of that object, or a liar could have another's references taken back.
    fn come_home(&self, iid: Uuid, std: &StdObjRef) -> Visit<Reference> {
        let key = self
            .exports
            .key_of_oid(std.oid)
            .filter(|key| self.exports.key_of(std.ipid).as_ref() == Some(key));
        // OXIDs are this node's, but the object is gone, or the numbers do not belong together.
        let Some(key) = key else {
            return Err(hresult::failure(hresult::E_NOINTERFACE, None).at("an object that came home"));
        };
        // First the hold: the references may be the last.
        let hold = self.hold(&key);
        let dropped = self.exports.release(std.ipid, std.public_refs, 0, "");
        self.drop_object(dropped);
        let servants = self.objects().servants(&key);
        let named =
            servants.iter().find_map(|servant| find(servant.interface(), &|held| iid_of(held) == iid));
        let type_id = named.or_else(|| servants.first().map(|servant| servant.interface()));
        let mut reference = self.local(type_id.map(|held| &*held.id).unwrap_or_default(), &key);
        let lease = hold.map(|hold| Lease::new(Arc::new(hold))).unwrap_or_default();
        let own = reference.profiles.iter_mut().filter(|profile| profile.wire == "dcom");
        own.for_each(|profile| profile.lease = lease.clone());
        Ok(reference)
    }

    /// A reference to an object of this node, known to be one: to be marshalled. `type_id` is the identity of the interface
    /// in its contract, or an IID.
    pub fn local(&self, type_id: &str, key: &[u8]) -> Reference {
        let mut reference = self.objects().publish(type_id, key);
        for profile in reference.profiles.iter_mut().filter(|profile| profile.wire == "dcom") {
            profile.components.push((TAG_OXID, Bytes::copy_from_slice(&self.oxid.to_le_bytes())));
        }
        reference
    }

    /// The object that an activation yielded, at its exporter. Its type is the first interface that it has.
    /// All interfaces that came are kept, the first is the type of the reference. The activator also said
    /// where the exporter is, so nobody needs to be asked.
    ///
    /// # Errors
    /// The activation failed, or the object has none of the interfaces.
    pub fn adopt_activated(&self, activated: &Activated, via: &Profile) -> Result<Reference, Failure> {
        if is_failure(activated.hresult) {
            return Err(hresult::failure(activated.hresult, None));
        }
        let (mut first, mut why) = (None, hresult::E_NOINTERFACE);
        for (_, status, raw) in &activated.interfaces {
            if is_failure(*status) {
                why = *status;
            } else if let Some(raw) = raw {
                first.get_or_insert(self.adopt_by(&ObjRef::parse(raw)?.0, via)?);
            }
        }
        let Some(mut reference) = first else { return Err(hresult::failure(why, None)) };
        let proxy = reference.profiles.first().and_then(|profile| profile.lease.share::<Proxy>());
        if let Some(proxy) = proxy.filter(|proxy| proxy.oxid().id() == activated.oxid) {
            proxy.oxid().resolve(activated.resolved.clone(), Some(via));
            reference.profiles = vec![proxy.profile(Some(via))];
        }
        Ok(reference)
    }

    /// After OXID resolution: the same object at its exporter.
    pub fn resolved(&self, proxy: &Proxy, resolved: OxidResolution, via: &Profile) -> Reference {
        proxy.oxid().resolve(resolved, Some(via));
        self.located(proxy, Some(via))
    }

    /// A reference to an object elsewhere by the best way that is known by now.
    pub fn located(&self, proxy: &Proxy, via: Option<&Profile>) -> Reference {
        let profiles = vec![proxy.profile(via)];
        Reference { type_id: proxy.first_iid().to_string(), profiles, foreign: Vec::new() }
    }

    /// The reference of an OBJREF in text: what it counts is counted there, so no reference comes with it.
    ///
    /// # Errors
    /// As for [`Exporter::adopt`].
    pub fn adopt_text(&self, raw: &Bytes, via: &Profile) -> Result<Reference, Failure> {
        let (objref, _) = ObjRef::parse(raw)?;
        self.adopt_by(&uncounted(objref), via)
    }

    /// The reference of an OBJREF that came by this way.
    fn adopt_by(&self, objref: &ObjRef, via: &Profile) -> Visit<Reference> {
        self.adopt_from(objref, &Security::of(via), !is_tcp(via.endpoints.first()), Some(via))
    }
}

impl References for Correspondence {
    fn unmarshal(&self, objref: Bytes, offset: usize) -> Visit<Reference> {
        // Two readers at once must not both count it.
        let mut read = self.read.as_ref().map(lock);
        if let Some(known) = read.as_ref().and_then(|read| read.get(&offset)) {
            return Ok(known.clone());
        }
        let objref = parse(&objref, offset)?;
        let reference = self.exporter.adopt_from(&objref, &self.security, self.local, None)?;
        if let Some(read) = &mut read {
            read.insert(offset, reference.clone());
        }
        Ok(reference)
    }

    fn marshal(&self, reference: &Reference) -> Visit<Bytes> {
        self.security.dialect.admit(reference)?;
        let objref = self.exporter.marshal(reference)?.seen_at(self.address);
        Ok(self.security.dialect.sent(&objref))
    }

    fn dialect(&self) -> u32 {
        if self.security.dialect.is_wine() { WINE } else { 0 }
    }
}

/// An OBJREF whose references belong to somebody else.
fn uncounted(objref: ObjRef) -> ObjRef {
    match objref {
        ObjRef::Standard { iid, std, resolver } => {
            ObjRef::Standard { iid, std: StdObjRef { public_refs: 0, ..std }, resolver }
        }
        other => other,
    }
}

/// The interface that an object shows: a class shows its first.
pub(crate) fn exposed(interface: &Interface) -> &Interface {
    if interface.kind == everywire_model::InterfaceKind::Class {
        interface.bases.first().map_or(interface, |base| exposed(base))
    } else {
        interface
    }
}

/// This interface or a base of it.
pub(super) fn find<'i>(interface: &'i Interface, fits: &dyn Fn(&Interface) -> bool) -> Option<&'i Interface> {
    if fits(interface) {
        return Some(interface);
    }
    interface.bases.iter().find_map(|base| find(base, fits))
}

/// An object of this node does not have an interface (MS-ERREF 2.1.1).
fn lacks(key: &[u8], iid: Uuid) -> Failure {
    let key = everywire_model::reference::escape(key);
    let what = format!("the object `{key}` does not offer the interface {iid}");
    Failure::new(Kind::NoOperation, Initiator::User, what)
        .with_code(format!("{:#010x}", hresult::E_NOINTERFACE))
}

/// Whether an endpoint is that of a place, which may stand for all addresses of the machine.
fn is_at(place: &Endpoint, endpoint: &Endpoint) -> bool {
    match (place, endpoint) {
        (Endpoint::Tcp { host, port }, Endpoint::Tcp { host: other, port: at }) => {
            let any = host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
            port == at && (host == other || (any && other.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())))
        }
        (place, endpoint) => place == endpoint,
    }
}

/// The failure of something that is no OBJREF.
fn parse(raw: &Bytes, offset: usize) -> Visit<ObjRef> {
    match ObjRef::parse(raw) {
        Ok((objref, _)) => Ok(objref),
        Err(_) => Err(Violation::BadObjref.at(offset).with_code(format!("{RPC_E_INVALID_OBJREF:#010x}"))),
    }
}
