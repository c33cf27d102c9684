//! Calls: sent at once where everything is known, else kept until it is.
//!
//! A call of an object needs the place of its exporter (else: resolve it), an IPID for the interface (else:
//! RemQueryInterface), an accepted presentation context (else: alter_context), and a turn (where the peer
//! takes one call at a time). `usual` finds all of it for a call like the last one; that is the hot path,
//! which keeps nothing of the call but its number. Every other call is encoded and kept as a job (`hold`),
//! and `jobs` asks for what it misses.
//!
//! States: `known` describes the interface that was called last, and by `recent` the object; both are
//! replaced when another is called. `proven` is set by the first answer of ORPC: until then calls are kept,
//! to be sent again by an older version.
//!
//! Invariants: each call that returns a `CallId` and expects a reply gets one `Event::Reply`, whatever
//! happens to the connection, unless it is withdrawn. `Outcome::Moved` tells the runtime to make the call
//! again at another reference, so nothing of the call was executed. Call numbers ascend, and so do the
//! entries of `waiting`.

use super::state::{
    CachedInterface, Connecting, Context, Goal, IDENTIFY, Job, OpaqueCall, PROTSEQS, PendingRequest, Purpose,
    QueuedCall, Recent, Results, Stage, SystemRequest, Target,
};
use crate::activation::Activation;
use crate::classes::declared;
use crate::exporter::Proxy;
use crate::frame::{MAYBE, PduKind};
use crate::ndr::THIS;
use crate::orpc::put_this;
use crate::passing::{MessagePrefix, is_count};
use crate::pdu::{Heading, Syntax};
use crate::session::channel::State;
use crate::session::security_context::ValueContext;
use crate::session::values;
use crate::session::verification::{self, TrailerContents};
use crate::standard::dispatch::call::Invocation;
use crate::standard::{is_dispatch, is_ordinary, tells_hresult};
use crate::tags::{TAG_OBJREF, TAG_PASSED, TAG_RESOLVER};
use crate::ways::class_of;
use crate::{IDISPATCH, IUNKNOWN, VERSION, hresult, iid_of, is_foreign, is_orpc, opnum_base, version_of};
use everywire_model::{
    Call, CallId, Expects, Failure, Headers, Initiator, Interface, InterfaceKind, Kind, Method, Operation,
    Outcome, Profile, Visit,
};
use std::sync::Arc;
use uuid::Uuid;

impl Connecting {
    /// Begins a call.
    #[inline]
    pub(super) fn begin(&mut self, call: &Call<'_>) -> Result<CallId, Failure> {
        self.check_open()?;
        if let Method::Named { interface, operation } = call.method {
            return self.begin_named(call, interface, operation);
        }
        if let Some(class) = call.method.interface().filter(|known| known.kind == InterfaceKind::Class) {
            return self.begin_of_class(class, call);
        }
        let Some(proxy) = call.profile.lease.get::<Proxy>() else { return self.begin_elsewhere(call) };
        let beside = call.arguments.carries().headers.is_some();
        match self.usual(call, proxy) {
            Some(target) if !beside => return self.send_call(&target, call),
            Some(target) if target.results.orpc => {
                let lead = MessagePrefix::of(call.arguments.carries(), THIS)?;
                let fill = |out: &mut _, stub, talk: Option<&_>| values::put(out, stub, call.arguments, talk);
                return self.send_now(&target, call.expects, Some(&lead), fill);
            }
            _ => {}
        }
        self.begin_at(proxy, call, beside)
    }

    /// Where a call goes that is like the last one, if it is and may be sent now.
    #[inline]
    fn usual(&self, call: &Call<'_>, proxy: &Proxy) -> Option<Target> {
        let (known, interface) = (self.known.as_ref()?, call.method.interface()?);
        let recent = known.recent.as_ref()?;
        // Releases go out with the next call, so a call with some to carry takes the longer way.
        let same = std::ptr::eq(recent.proxy.as_ptr(), proxy)
            && is_at_exporter(call.profile)
            && known.describes(interface)
            && self.may_send()
            && !proxy.oxid().has_releases();
        let context = known.context.filter(|_| same)?;
        let opnum =
            known.base.checked_add(u16::try_from(index_of(interface, call.method.typed().ok()?.1)?).ok()?)?;
        let hresult = known.takes_hresult(opnum);
        let results = Results { orpc: known.orpc, hresult, foreign: known.foreign, passed: false };
        let (syntax, object, minor) = (known.syntax, Some(recent.ipid), recent.minor);
        Some(Target { syntax, context, opnum, object, minor, results })
    }

    /// Begins a call of an object.
    /// The place is known; what is missing may still be the interface or the context.
    fn begin_at(&mut self, proxy: &Proxy, call: &Call<'_>, beside: bool) -> Result<CallId, Failure> {
        let resolution = proxy.oxid().resolution();
        let Some(resolution) = resolution.filter(|_| is_at_exporter(call.profile)) else {
            return self.resolve(call.profile);
        };
        if let Some(only) = self.only
            && let Some(sent_on) = self.elsewhere(only, call)?
        {
            return Ok(sent_on);
        }
        let opnum = self.opnum(call)?;
        // The lower of what this connection has found out and what the resolver said.
        let minor = self.orpc_minor.min(resolution.version.1);
        let Some(shared) = call.profile.lease.share::<Proxy>() else { return Err(no_interface()) };
        let Some(known) = &mut self.known else { return Err(no_interface()) };
        // Until the peer has shown that it speaks this version, a call is kept to be sent again.
        if let (Some(ipid), true, false) = (proxy.ipid(known.syntax.id), self.proven, known.dispatch) {
            known.recent = Some(Recent { proxy: Arc::downgrade(&shared), ipid, minor });
        }
        if proxy.oxid().has_releases() && self.may_send() {
            self.send_releases(proxy.oxid(), resolution.rem_unknown, minor);
        }
        if let Some(target) = self.usual(call, proxy).filter(|_| !beside) {
            return self.send_call(&target, call);
        }
        self.hold(Goal::Object(shared), call, opnum, minor)
    }

    /// Begins a call of an object that is known by its class: by the interface that the operation is from.
    #[cold]
    fn begin_of_class(&mut self, class: &Interface, call: &Call<'_>) -> Result<CallId, Failure> {
        let index = index_of(class, call.method.typed()?.1).ok_or_else(no_interface)?;
        let (interface, operation) = declared(class, index).ok_or_else(no_interface)?;
        self.begin(&Call { method: Method::Typed { interface: Some(interface), operation }, ..*call })
    }

    /// Begins a call of something that is no object at its exporter.
    /// A class is activated first, and the call is then made at the object: `Outcome::Moved`.
    #[cold]
    fn begin_elsewhere(&mut self, call: &Call<'_>) -> Result<CallId, Failure> {
        let profile = call.profile;
        if let Some(moved) = self.unmarshalled(profile)? {
            return Ok(moved);
        }
        // Procedures are no object's, so there is nothing to activate.
        let interface = call.method.interface();
        let procedures = interface.is_some_and(|known| known.kind == InterfaceKind::Procedures);
        if let Some(clsid) = class_of(profile).filter(|_| !procedures) {
            let iid = interface.filter(|known| known.kind != InterfaceKind::Class).map_or(IUNKNOWN, iid_of);
            return Ok(self.activate(clsid, iid, profile));
        }
        let opnum = self.opnum(call)?;
        let object = profile.key.first_chunk().filter(|_| profile.key.len() == 16 && !procedures);
        let object = object.map(|raw| Uuid::from_bytes_le(*raw));
        // Interfaces of the node are called with ORPCTHIS as all others of COM are.
        let way = procedures.then(|| Arc::new(profile.clone()));
        self.hold(Goal::Node { object, way }, call, opnum, self.orpc_minor)
    }

    /// An OBJREF that nobody unmarshalled yet becomes a reference.
    pub(super) fn unmarshalled(&mut self, profile: &Profile) -> Result<Option<CallId>, Failure> {
        let Some(raw) = profile.component(TAG_OBJREF) else { return Ok(None) };
        let reference = self.exporter.as_ref().ok_or_else(no_node)?.adopt_text(raw, profile)?;
        Ok(Some(self.answer_at_once(Outcome::Moved(reference))))
    }

    /// Asks for an object of a class; calls for the same one share the answer.
    pub(super) fn activate(&mut self, clsid: Uuid, iid: Uuid, profile: &Profile) -> CallId {
        let version = (VERSION.0.into(), self.orpc_minor);
        let (iids, protseqs, impersonation) = (vec![iid], PROTSEQS.to_vec(), IDENTIFY);
        let asked = Activation { clsid, iids, class_object: false, version, protseqs, impersonation };
        self.ask(SystemRequest::Activate {
            asked,
            profile: profile.clone(),
            old: false,
            passed: false,
            lead: None,
        })
    }

    /// Asks where an object is.
    #[cold]
    fn resolve(&mut self, profile: &Profile) -> Result<CallId, Failure> {
        let Some(proxy) = profile.lease.share::<Proxy>() else { return Err(no_interface()) };
        self.resolve_for(proxy, profile)
    }

    /// Asks where an object is; `profile` is the way by which that is known.
    /// All calls for one object share one question.
    #[cold]
    pub(super) fn resolve_for(&mut self, proxy: Arc<Proxy>, profile: &Profile) -> Result<CallId, Failure> {
        if proxy.oxid().resolution().is_some() {
            // Somebody asked meanwhile; this connection leads to the resolver all the same.
            let reference = self.exporter.as_ref().ok_or_else(no_node)?.located(&proxy, None);
            return Ok(self.answer_at_once(Outcome::Moved(reference)));
        }
        Ok(self.ask(SystemRequest::Resolve { proxy, profile: profile.clone() }))
    }

    /// Asks whether an object is there.
    pub(super) fn begin_probe(&mut self, profile: &Profile) -> Result<CallId, Failure> {
        self.check_open()?;
        if let Some(moved) = self.unmarshalled(profile)? {
            return Ok(moved);
        }
        if profile.component(TAG_PASSED).is_some() {
            return self.probe_passed(profile);
        }
        if let Some(proxy) = profile.lease.share::<Proxy>() {
            if proxy.oxid().resolution().is_none() || !is_at_exporter(profile) {
                return self.resolve(profile);
            }
            if let Some(only) = self.only {
                return self.query_first(only, proxy, IUNKNOWN);
            }
            return Ok(self.ask(SystemRequest::Query { proxy, iid: IUNKNOWN }));
        }
        if let Some(clsid) = class_of(profile) {
            return Ok(self.activate(clsid, IUNKNOWN, profile));
        }
        Ok(self.ask(SystemRequest::Alive))
    }

    /// Whether a request may be sent now.
    #[inline]
    pub(super) fn may_send(&self) -> bool {
        self.ready && self.jobs.is_empty() && (self.channel.multiplex || self.waiting.is_empty())
    }

    /// Sends a call.
    #[inline]
    fn send_call(&mut self, target: &Target, call: &Call<'_>) -> Result<CallId, Failure> {
        let fill = |out: &mut _, stub, talk: Option<&_>| values::put(out, stub, call.arguments, talk);
        self.send_now(target, call.expects, None, fill)
    }

    /// Sends a request for a call that begins; `fill` and `lead` are those of `send_request`.
    #[inline]
    pub(super) fn send_now(
        &mut self,
        target: &Target,
        expects: Expects,
        lead: Option<&MessagePrefix<'_>>,
        fill: impl FnOnce(&mut Vec<u8>, usize, Option<&ValueContext>) -> Visit<()>,
    ) -> Result<CallId, Failure> {
        // Taken out for the time of the call, since `self` is borrowed for sending.
        let talk = self.talk.take();
        let sent = self.send_request(target, expects, lead, |out, stub| fill(out, stub, talk.as_ref()));
        self.talk = talk;
        let call = sent?;
        let serial = self.take_serial();
        if expects == Expects::Reply {
            self.wait(call, serial, target);
        }
        Ok(CallId(serial))
    }

    /// Notes that a call was sent and is to be answered.
    #[inline]
    pub(super) fn wait(&mut self, call: u32, serial: u64, target: &Target) {
        self.waiting
            .push_back(PendingRequest { call, purpose: Purpose::Call { serial, results: target.results } });
    }

    /// Sends a request; `fill` writes what follows ORPCTHIS to a buffer whose stub begins at the place it is given. ORPCTHIS is an
    /// ordinary one, unless `lead` says otherwise.
    /// Call number and causality are used up only if the message was complete. All calls of a connection
    /// count up one causality id: each call begins a chain of its own (MS-DCOM 2.2.13.3).
    #[inline]
    pub(super) fn send_request(
        &mut self,
        target: &Target,
        expects: Expects,
        lead: Option<&MessagePrefix<'_>>,
        fill: impl FnOnce(&mut Vec<u8>, usize) -> Visit<()>,
    ) -> Visit<u32> {
        let call = self.next_call;
        let flags = if expects == Expects::Reply { 0 } else { MAYBE };
        let Target { context, opnum, object, .. } = *target;
        let heading = Heading { kind: PduKind::Request, flags, call, context, opnum, object };
        let causality = self.causality;
        let little = lead.is_none_or(|lead| lead.little);
        let shield = self.channel.shields.first();
        let said = shield.filter(|shield| shield.signs() && !shield.whole).map(|_| TrailerContents {
            interface: target.syntax,
            heading: &heading,
            little,
        });
        let shield = (!self.channel.shields.is_empty()).then_some(0);
        self.channel.message(&heading, shield, little, |out| {
            let stub = out.len();
            match lead {
                Some(lead) => lead.put_this(out, target.minor, causality)?,
                None if target.results.orpc => put_this(out, target.minor, causality),
                None => {}
            }
            fill(out, stub)?;
            if let Some(said) = &said {
                verification::put(out, stub, said);
            }
            Ok(())
        })?;
        self.causality = causality.wrapping_add(1);
        Ok(self.take_call())
    }

    /// The next number for a PDU; it wraps.
    pub(super) fn take_call(&mut self) -> u32 {
        let call = self.next_call;
        self.next_call = call.wrapping_add(1);
        call
    }

    /// Keeps a call until everything it needs is known.
    #[cold]
    fn hold(&mut self, goal: Goal, call: &Call<'_>, opnum: u16, minor: u16) -> Result<CallId, Failure> {
        let Some((interface, known)) = call.method.interface().zip(self.known.as_ref()) else {
            return Err(no_interface());
        };
        let (syntax, orpc, foreign, takes_hresult) =
            (known.syntax, known.orpc, known.foreign, known.takes_hresult(opnum));
        // The values as they will stand in the stub; their alignment is that of a multiple of 8.
        let mut values = Vec::new();
        let mut operation = None;
        if known.dispatch {
            let invocation = Invocation::new(interface, call.method.typed()?.1, call.arguments)?;
            values::put(&mut values, 0, &invocation, self.talk.as_ref())?;
            operation = Some(Box::new(call.method.typed()?.1.clone()));
        } else {
            values::put(&mut values, 0, call.arguments, self.talk.as_ref())?;
        }
        // Plain RPC has no place for the count of hops: there a circle ends in another way.
        let goes = |headers: &&Headers| !headers.is_empty() && (orpc || !is_count(headers));
        let headers = call.arguments.carries().headers.filter(goes);
        let passed = headers.map(|headers| OpaqueCall::beside(headers.clone(), orpc)).transpose()?;
        // The results of Invoke are read whole.
        let hresult = operation.is_none() && takes_hresult;
        let results = Results { orpc, hresult, foreign, passed: false };
        let target = Target { syntax, opnum, minor, results, ..Target::default() };
        let (serial, expects) = (self.take_serial(), call.expects);
        Ok(self.keep(QueuedCall { serial, goal, target, values, passed, expects, operation }))
    }

    /// Keeps a call among the jobs, which may send it at once.
    pub(super) fn keep(&mut self, held: QueuedCall) -> CallId {
        let id = CallId(held.serial);
        self.jobs.push_back(Job::Call(Box::new(held)));
        self.pump();
        id
    }

    /// The number of what is called on the wire; the interface is known afterwards.
    #[inline]
    fn opnum(&mut self, call: &Call<'_>) -> Result<u16, Failure> {
        let Some(interface) = call.method.interface() else { return Err(no_interface()) };
        let known = match &mut self.known {
            Some(known) if known.describes(interface) => known,
            known => known.insert(CachedInterface::new(interface)),
        };
        if known.context.is_none() {
            let accepted =
                |context: &&Context| context.syntax == known.syntax && context.stage == Stage::Accepted;
            known.context = self.contexts.iter().find(accepted).map(|context| context.id);
        }
        if known.dispatch {
            return Ok(INVOKE_NUMBER);
        }
        let index = index_of(interface, call.method.typed()?.1).ok_or_else(no_interface)?;
        let opnum = u16::try_from(index).ok().and_then(|index| known.base.checked_add(index));
        opnum.ok_or_else(no_interface)
    }

    /// Withdraws a call: tells the peer, and forgets it.
    /// The peer may answer before it sees the cancel; such an answer finds nobody waiting and is dropped. A
    /// call that waits for a system request leaves it running, since others may wait for it too.
    pub(super) fn withdraw(&mut self, serial: u64) {
        let sent = |waiting: &PendingRequest| waiting.purpose.serial() == Some(serial);
        if let Some(index) = self.waiting.iter().position(sent) {
            if let Some(gone) = self.waiting.remove(index)
                && self.channel.state == State::Open
            {
                if self.only.is_some() {
                    self.lose_count();
                    return;
                }
                self.channel.assemblies.forget(gone.call);
                self.channel.negotiate(&crate::pdu::Pdu::CoCancel, 0, gone.call, None);
            }
            self.pump();
            return;
        }
        self.jobs.retain(|job| !matches!(job, Job::Call(held) if held.serial == serial));
        for task in self.tasks() {
            task.waiters.retain(|waiter| *waiter != serial);
        }
    }
}

/// Whether a way leads to an object's exporter, and not to the resolver that knows where that is.
#[inline]
pub(super) fn is_at_exporter(way: &Profile) -> bool {
    way.component(TAG_RESOLVER).is_none()
}

/// Invoke, in each interface that is derived from IDispatch.
const INVOKE_NUMBER: u16 = 6;

impl CachedInterface {
    /// Looks everything up that does not change between calls of one interface.
    fn new(interface: &Interface) -> Self {
        let iid = iid_of(interface);
        let (major, minor) = version_of(interface);
        let results_of = if is_dispatch(interface) { IDISPATCH } else { iid };
        Self {
            address: std::ptr::from_ref(interface).addr(),
            id: interface.id.clone().into_owned(),
            syntax: Syntax { id: iid, major, minor },
            base: opnum_base(interface),
            orpc: is_orpc(iid) && interface.kind != InterfaceKind::Procedures,
            dispatch: interface.kind == InterfaceKind::Dispatch,
            results_of,
            ordinary: is_ordinary(results_of),
            foreign: is_foreign(interface),
            context: None,
            recent: None,
        }
    }

    /// Whether the session takes the HRESULT from the end of an operation's results.
    #[inline]
    fn takes_hresult(&self, opnum: u16) -> bool {
        self.orpc && (self.ordinary || !tells_hresult(self.results_of, opnum))
    }

    /// The address alone could be another interface's by now, the identity alone would be slow to compare for
    /// interfaces of one name.
    #[inline]
    fn describes(&self, interface: &Interface) -> bool {
        self.address == std::ptr::from_ref(interface).addr() && self.id == interface.id
    }
}

/// The index of an operation that mostly is one of the interface's own list.
/// Found by where it stands in memory; an operation that was copied is found by its name.
#[inline]
fn index_of(interface: &Interface, operation: &Operation) -> Option<usize> {
    let first = interface.operations.first()?;
    let offset = std::ptr::from_ref(operation).addr().wrapping_sub(std::ptr::from_ref(first).addr());
    let index = offset / size_of::<Operation>();
    if interface.operations.get(index).is_some_and(|found| std::ptr::eq(found, operation)) {
        return Some(index);
    }
    interface.index_of(operation.name.as_bytes())
}

/// How ORPC minor versions go down, where a peer refuses one. The steps are those at which peers were seen: 7
/// (Windows), 6, 4, 3 (Wine), 2 (j-Interop), 1 (Samba). `None`: there is no older one.
pub(super) fn lower(minor: u16) -> Option<u16> {
    match minor {
        7.. => Some(6),
        5 | 6 => Some(4),
        2..=4 => minor.checked_sub(1),
        _ => None,
    }
}

#[cold]
pub(super) fn no_interface() -> Failure {
    Failure::new(Kind::Unsupported, Initiator::User, "calls on this wire need the interface of the operation")
        .with_hint("give the contract's file")
}

#[cold]
pub(super) fn no_node() -> Failure {
    Failure::new(Kind::Internal, Initiator::Here, "this connection belongs to no node")
}

/// The failure for an interface that the peer does not have.
#[cold]
pub(super) fn no_such_interface(iid: Uuid) -> Failure {
    Failure::new(Kind::Unsupported, Initiator::Peer, format!("the peer has no interface {iid}"))
        .with_code(format!("{:#010x}", hresult::E_NOINTERFACE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standard::contracts::DISPATCH;
    use crate::standard::dispatch::call::dispatch_of;

    #[test]
    fn invoke_tells_its_hresult_under_the_name_of_a_dispinterface() {
        let takes = |interface: &Interface| {
            let known = CachedInterface::new(interface);
            [3, 4, 5, 6].map(|opnum| known.takes_hresult(opnum))
        };
        let id = "6f0e8c5a-0b1d-4b0e-9a3c-7d1f0d9a2c02".into();
        let events = Interface { id, kind: InterfaceKind::Dispatch, ..Interface::default() };
        let dispatch = dispatch_of(&events);
        assert_eq!(dispatch.id, events.id);
        assert_eq!(takes(&DISPATCH), [true, true, false, false]);
        assert_eq!(takes(&dispatch), [true, true, false, false]);
        // Operations of its own at the same numbers are as others.
        assert_eq!(takes(&Interface { kind: InterfaceKind::Plain, ..events }), [true; 4]);
    }
}
