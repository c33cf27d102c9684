//! Calls: sent at once where everything is known, else kept until it is.

use super::errands::{Errand, Task};
use super::jobs::{Goal, Held, Job};
use super::{Connecting, Purpose, Waiting};
use crate::address::{TAG_OBJREF, class_of};
use crate::exporter::Proxy;
use crate::frame::{MAYBE, PduKind};
use crate::objref::ObjRef;
use crate::orpc::OrpcThis;
use crate::session::channel::Heading;
use crate::session::{tells_hresult, values, verification};
use crate::{IUNKNOWN, VERSION, hresult, iid_of, is_orpc, opnum_base};
use everywire_model::{
    Call, CallId, Encode, Expects, Failure, Initiator, Interface, InterfaceKind, Kind, Operation, Outcome,
    Profile, Visit,
};
use std::sync::Arc;
use uuid::Uuid;

/// What is known of the interface that was called last.
pub(super) struct Known {
    /// Where its description is, and its identity there: both have to fit.
    address: usize,
    id: String,
    pub(super) iid: Uuid,
    base: u16,
    orpc: bool,
    /// Number of the presentation context, once it was accepted.
    pub(super) context: Option<u16>,
}

/// Where a request goes, and as what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) iid: Uuid,
    pub(super) context: u16,
    pub(super) opnum: u16,
    pub(super) object: Option<Uuid>,
    pub(super) orpc: bool,
    /// Minor version of ORPC.
    pub(super) minor: u16,
}

impl Connecting {
    /// Begins a call.
    #[inline]
    pub(super) fn begin(&mut self, call: &Call<'_>) -> Result<CallId, Failure> {
        self.check_open()?;
        let profile = call.profile;
        let Some(proxy) = profile.lease.get::<Proxy>() else { return self.begin_elsewhere(call) };
        let Some(resolution) = proxy.oxid().resolution() else { return self.resolve(profile) };
        let (iid, opnum, context, orpc) = self.method(call)?;
        let minor = resolution.version.1.min(VERSION.1.into());
        if self.may_send()
            && let Some(context) = context
            && let Some(ipid) = proxy.ipid(iid)
        {
            if proxy.oxid().has_releases() {
                self.send_releases(proxy.oxid(), resolution.rem_unknown, minor);
            }
            let target = Target { iid, context, opnum, object: Some(ipid), orpc, minor };
            return self.send_call(&target, call.arguments, call.expects);
        }
        let Some(proxy) = profile.lease.share::<Proxy>() else { return Err(no_interface()) };
        self.hold(Goal::Object(proxy), call, iid, opnum, orpc, minor)
    }

    /// Begins a call of something that is no object at its exporter.
    #[cold]
    fn begin_elsewhere(&mut self, call: &Call<'_>) -> Result<CallId, Failure> {
        let profile = call.profile;
        if let Some(moved) = self.unmarshalled(profile)? {
            return Ok(moved);
        }
        if let Some(clsid) = class_of(profile) {
            let iid =
                call.interface.filter(|known| known.kind != InterfaceKind::Class).map_or(IUNKNOWN, iid_of);
            return Ok(self.activate(clsid, iid, profile));
        }
        let (iid, opnum, _, orpc) = self.method(call)?;
        let object = profile.key.first_chunk().filter(|_| profile.key.len() == 16);
        let object = object.map(|raw| Uuid::from_bytes_le(*raw));
        // Interfaces of the node are called with ORPCTHIS as all others of COM are.
        self.hold(Goal::Node(object), call, iid, opnum, orpc, self.orpc_minor)
    }

    /// An OBJREF that nobody unmarshalled yet becomes a reference.
    fn unmarshalled(&mut self, profile: &Profile) -> Result<Option<CallId>, Failure> {
        let Some(raw) = profile.component(TAG_OBJREF) else { return Ok(None) };
        let (objref, _) = ObjRef::parse(raw).map_err(|violation| violation.at(0))?;
        let exporter = self.exporter.as_ref().ok_or_else(no_node)?;
        let reference = exporter.adopt(&objref, &self.security)?;
        let serial = self.take_serial();
        self.reply(serial, Outcome::Moved(reference));
        Ok(Some(CallId(serial)))
    }

    /// Asks for an object of a class; calls for the same one share the answer.
    fn activate(&mut self, clsid: Uuid, iid: Uuid, profile: &Profile) -> CallId {
        let serial = self.take_serial();
        let same = |errand: &Errand| matches!(errand, Errand::Activate { clsid: c, iid: i, .. } if (*c, *i) == (clsid, iid));
        if !self.join_task(same, serial) {
            self.ask_for(Errand::Activate { clsid, iid, profile: profile.clone(), old: false }, serial);
        }
        CallId(serial)
    }

    /// Asks where an object is.
    #[cold]
    fn resolve(&mut self, profile: &Profile) -> Result<CallId, Failure> {
        let Some(proxy) = profile.lease.share::<Proxy>() else { return Err(no_interface()) };
        let serial = self.take_serial();
        let same = |errand: &Errand| matches!(errand, Errand::Resolve { proxy: other, .. } if Arc::ptr_eq(other, &proxy));
        if !self.join_task(same, serial) {
            self.ask_for(Errand::Resolve { proxy, profile: profile.clone() }, serial);
        }
        Ok(CallId(serial))
    }

    fn ask_for(&mut self, errand: Errand, serial: u64) {
        self.jobs.push_back(Job::Errand(Task { errand, waiters: vec![serial] }));
        self.pump();
    }

    /// Asks whether an object is there.
    pub(super) fn begin_probe(&mut self, profile: &Profile) -> Result<CallId, Failure> {
        self.check_open()?;
        if let Some(moved) = self.unmarshalled(profile)? {
            return Ok(moved);
        }
        if let Some(proxy) = profile.lease.share::<Proxy>() {
            if proxy.oxid().resolution().is_none() {
                return self.resolve(profile);
            }
            let serial = self.take_serial();
            self.ask_for(Errand::Query { proxy, iid: IUNKNOWN }, serial);
            return Ok(CallId(serial));
        }
        if let Some(clsid) = class_of(profile) {
            return Ok(self.activate(clsid, IUNKNOWN, profile));
        }
        let serial = self.take_serial();
        self.ask_for(Errand::Alive, serial);
        Ok(CallId(serial))
    }

    /// Whether a request may be sent now.
    #[inline]
    pub(super) fn may_send(&self) -> bool {
        self.ready && self.jobs.is_empty() && (self.channel.multiplex || self.waiting.is_empty())
    }

    /// Sends a call.
    #[inline]
    fn send_call(
        &mut self,
        target: &Target,
        arguments: &dyn Encode,
        expects: Expects,
    ) -> Result<CallId, Failure> {
        let talk = self.talk.take();
        let sent =
            self.send_request(target, expects, |out, stub| values::put(out, stub, arguments, talk.as_ref()));
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
        let hresult = target.orpc && !tells_hresult(target.iid, target.opnum);
        let purpose = Purpose::Call { serial, orpc: target.orpc, hresult };
        self.waiting.push_back(Waiting { call, purpose });
    }

    /// Sends a request; `fill` writes what follows ORPCTHIS to a buffer whose stub begins at the place it is given.
    #[inline]
    pub(super) fn send_request(
        &mut self,
        target: &Target,
        expects: Expects,
        fill: impl FnOnce(&mut Vec<u8>, usize) -> Visit<()>,
    ) -> Visit<u32> {
        let call = self.next_call;
        let heading = Heading {
            kind: PduKind::Request,
            flags: if expects == Expects::Reply { 0 } else { MAYBE },
            call,
            context: target.context,
            opnum: target.opnum,
            object: target.object,
        };
        let causality = self.causality;
        let shield = self.channel.shields.first();
        let said = shield.filter(|shield| shield.signs() && !shield.covers_headers()).map(|_| {
            let interface = super::binding::syntax(target.iid);
            verification::Said::new(interface, call, target.context, target.opnum, true)
        });
        let shield = (!self.channel.shields.is_empty()).then_some(0);
        self.channel.message(&heading, shield, |out| {
            let stub = out.len();
            if target.orpc {
                put_this(out, target.minor, causality);
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

    pub(super) fn take_call(&mut self) -> u32 {
        let call = self.next_call;
        self.next_call = call.wrapping_add(1);
        call
    }

    /// Keeps a call until everything it needs is known.
    #[cold]
    fn hold(
        &mut self,
        goal: Goal,
        call: &Call<'_>,
        iid: Uuid,
        opnum: u16,
        orpc: bool,
        minor: u16,
    ) -> Result<CallId, Failure> {
        // The values as they will stand in the stub; their alignment is that of a multiple of 8.
        let mut values = Vec::new();
        values::put(&mut values, 0, call.arguments, self.talk.as_ref())?;
        let serial = self.take_serial();
        let expects = call.expects;
        self.jobs.push_back(Job::Call(Held { serial, goal, iid, opnum, orpc, minor, values, expects }));
        self.pump();
        Ok(CallId(serial))
    }

    /// What is called: interface, number on the wire, presentation context if there is one, whether it is ORPC.
    #[inline]
    fn method(&mut self, call: &Call<'_>) -> Result<(Uuid, u16, Option<u16>, bool), Failure> {
        let Some(interface) = call.interface else { return Err(no_interface()) };
        let address = std::ptr::from_ref(interface).addr();
        if self.known.as_ref().is_none_or(|known| known.address != address || known.id != interface.id) {
            self.known = Some(Known::new(interface, address));
        }
        let Some(known) = &mut self.known else { return Err(no_interface()) };
        if known.context.is_none() {
            let accepted = |context: &&super::Context| {
                context.iid == known.iid && context.stage == super::Stage::Accepted
            };
            known.context = self.contexts.iter().find(accepted).map(|context| context.id);
        }
        let index = index_of(interface, call.operation).ok_or_else(no_interface)?;
        let opnum = u16::try_from(index).ok().and_then(|index| known.base.checked_add(index));
        Ok((known.iid, opnum.ok_or_else(no_interface)?, known.context, known.orpc))
    }

    /// Withdraws a call: tells the peer, and forgets it.
    pub(super) fn withdraw(&mut self, serial: u64) {
        let sent = |waiting: &Waiting| matches!(waiting.purpose, Purpose::Call { serial: held, .. } if held == serial);
        if let Some(index) = self.waiting.iter().position(sent) {
            if let Some(gone) = self.waiting.remove(index)
                && self.channel.state == crate::session::channel::State::Open
            {
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

impl Known {
    fn new(interface: &Interface, address: usize) -> Self {
        let iid = iid_of(interface);
        let orpc = is_orpc(iid) && interface.kind != InterfaceKind::Procedures;
        let id = interface.id.clone().into_owned();
        Self { address, id, iid, base: opnum_base(interface), orpc, context: None }
    }
}

/// The index of an operation that mostly is one of the interface's own list.
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

/// Writes ORPCTHIS without extensions.
#[inline]
fn put_this(out: &mut Vec<u8>, minor: u16, causality: u128) {
    let mut this = [0; OrpcThis::LEN];
    let [minor, _] = minor.to_le_bytes();
    let (head, rest) = this.split_at_mut(12);
    head.copy_from_slice(&[VERSION.0, 0, minor, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    if let Some(cid) = rest.first_chunk_mut() {
        *cid = causality.to_le_bytes();
    }
    out.extend_from_slice(&this);
}

/// How ORPC minor versions go down, where a peer refuses one.
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
