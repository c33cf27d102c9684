//! Calls: taken, withdrawn, forgotten (C706 12.6.4.9; MS-DCOM 2.2.13, 3.1.1.5.4).
//!
//! The way of a request: its order among other fragments (`is_in_order`), its security context
//! (`check_admissions`, `Channel::open`), its fragments (`Assemblies::take`), then the whole call
//! (`call_in`): presentation context, level, verification trailer, quota, object, ORPCTHIS. The first check
//! that fails decides the status of the fault.
//!
//! States: `blame` says which call and context a fault about the PDU in hand names; it is set before anything
//! can fail. `last` remembers what the last IPID stood for, as long as that object is connected.
//!
//! Invariants: nothing of a fragment is used before its signature was checked, but call number, flags and
//! context number. A call is executed with the headings of its first fragment. A breach ends the connection,
//! a refusal (`refuse`) only the call; its fault has `DID_NOT_EXECUTE`, so the client may repeat it. Whoever is refused for the
//! level hears `access denied` alone; the node's log gets the reason, once for a connection.

use super::state::{Accepting, FaultTarget, InboundCall, Target};
use crate::exporter::IpidEntry;
use crate::frame::{self, FIRST, Header, LAST};
use crate::ndr::THIS;
use crate::orpc::OrpcThis;
use crate::pdu::cursor::Cursor;
use crate::pdu::{Heading, ProtocolError, Request};
use crate::security::Level;
use crate::session::assembly::Fragment;
use crate::session::channel::State;
use crate::session::{values, verification};
use crate::standard::tells_hresult;
use crate::{ENDPOINT_MAPPER, IDISPATCH, MANAGEMENT, OBJECT_EXPORTER, dispatches, hresult, iid_of};
use bytes::{Bytes, BytesMut};
use everywire_model::{CallId, Event, Expects, Incoming, Interface};
use std::time::Instant;
use uuid::Uuid;

impl Accepting {
    /// A fragment of a call.
    #[inline]
    pub(super) fn request_in(
        &mut self,
        now: Instant,
        header: &Header,
        mut message: BytesMut,
    ) -> Result<(), ProtocolError> {
        self.channel.expect(State::Open, header)?;
        let context = context_of(header, &message)?;
        self.blame = FaultTarget { call: header.call, context, crowded: false };
        let whole = header.flags & (FIRST | LAST) == FIRST | LAST;
        // Nearly every call is one fragment and finds no other one open.
        let usual = whole && self.channel.assemblies.is_empty();
        let known = usual && self.contexts.iter().any(|known| known.id == context);
        if !known && !self.is_in_order(header, context)? {
            return Ok(());
        }
        if !self.admissions.is_empty() {
            self.check_admissions(header, &message)?;
        }
        // All fragments of a call are checked by the context of the first.
        let begun = self.channel.assemblies.begun(header.call).and_then(|first| first.shield);
        let (end, shield) = self.channel.open(header, &mut message, begun)?;
        let shield = shield.or_else(|| self.implied());
        message.truncate(end);
        let message = message.freeze();
        let Request { context, opnum, object, stub, .. } =
            Request::read(header, &mut Cursor::new(&message, frame::HEADER, header.little))?;
        let Header { kind, flags, call, .. } = *header;
        let heading = Heading { kind, flags, call, context, opnum, object };
        let fragment = Fragment { heading, little: header.little, shield };
        // A client may use a number again once the call was answered; before that, answers could not be told
        // apart.
        if header.has(FIRST) {
            let reused =
                |serving: &InboundCall| serving.call == header.call && serving.replies && !serving.cancelled;
            if self.serving.iter().any(reused) {
                return Err(ProtocolError::CallReused { call: header.call });
            }
        }
        // Nothing unprotected slips in between the fragments of a protected call.
        if self.blame.crowded && shield.is_none() && self.channel.assemblies.has_protected() {
            return Err(ProtocolError::StrayFragment { call: header.call });
        }
        let stub = message.slice(stub);
        if usual {
            return self.call_in(&fragment, stub);
        }
        let due = self.channel.assembly_due(now);
        let limits = &self.channel.limits;
        let whole = self.channel.assemblies.take(&fragment, header.flags, &stub, limits, due)?;
        whole.map_or(Ok(()), |(first, stub)| self.call_in(&first, stub))
    }

    /// Whether a fragment may come now, as far as its header says. `false`: it was answered by a fault.
    /// Which mistake is a fault and which one ends the connection is what Samba's tests of raw PDUs expect of
    /// a server.
    #[cold]
    fn is_in_order(&mut self, header: &Header, context: u16) -> Result<bool, ProtocolError> {
        let call = header.call;
        let first = header.has(FIRST);
        let known = self.contexts.iter().any(|known| known.id == context);
        let open = &self.channel.assemblies;
        if let Some(begun) = open.begun(call) {
            self.blame.context = begun.heading.context;
            return Ok(true);
        }
        if !self.channel.multiplex {
            // The fragments of a call come one after another.
            if let Some(begun) = open.oldest() {
                self.blame =
                    FaultTarget { call: begun.heading.call, context: begun.heading.context, crowded: false };
                return Err(ProtocolError::StrayFragment { call });
            }
            if !first {
                self.blame.context = 0;
                return Err(ProtocolError::StrayFragment { call });
            }
        } else if !open.is_empty() {
            self.blame = FaultTarget { call, context: 0, crowded: true };
            if !first {
                return Err(ProtocolError::StrayFragment { call });
            }
            if !known {
                return Err(ProtocolError::UnknownContext { context });
            }
        }
        if !known && !first {
            self.send_fault(call, 0, hresult::NCA_UNK_IF, true);
            return Ok(false);
        }
        Ok(true)
    }

    /// Whether a request comes by a security context that stands, as far as it needs one.
    /// Called only while an authentication has begun and not ended, or was refused.
    #[cold]
    fn check_admissions(&self, header: &Header, message: &[u8]) -> Result<(), ProtocolError> {
        let implied = self.implied().is_some();
        let held = match header.trailer(message)? {
            Some(trailer) => self.admissions.iter().find(|held| held.id == trailer.context),
            // Only the absence of another context says by which a call comes that names none.
            None => self.admissions.iter().find(|held| {
                held.first || (!implied && held.acceptor.is_none() && held.level == Level::Connect)
            }),
        };
        match held {
            Some(held) if held.acceptor.is_none() => Err(ProtocolError::Denied),
            Some(held) => Err(ProtocolError::Unfinished { context: held.id }),
            None => Ok(()),
        }
    }

    /// The security context of a call that names none: at level connect none does.
    #[inline]
    fn implied(&self) -> Option<usize> {
        self.channel.shields.iter().position(|shield| shield.level == Level::Connect)
    }

    /// A whole call.
    /// Everything that the runtime needs goes into one `Incoming`; what the answer needs stays here in
    /// `InboundCall`.
    #[inline]
    fn call_in(&mut self, call: &Fragment, stub: Bytes) -> Result<(), ProtocolError> {
        let heading = &call.heading;
        let refuse = |session: &mut Self, status| {
            session.send_fault_by(call.shield, heading.call, heading.context, status, true);
            Ok(())
        };
        let Some(context) = self.contexts.iter().find(|known| known.id == heading.context) else {
            self.send_fault_by(call.shield, heading.call, 0, hresult::NCA_UNK_IF, true);
            return Ok(());
        };
        let syntax = context.syntax;
        let (node, ordinary) = (context.node, context.ordinary);
        let target = context.target.clone();
        let interface = context.interface.clone();
        if !self.admits(call.shield, syntax.id, heading.opnum) {
            self.tell_level(call.shield);
            return refuse(self, hresult::NCA_ACCESS_DENIED);
        }
        // A verification trailer is no part of the values. A reader of values stops before it by itself; only
        // what passes on as octets has to be cut.
        let mut end = stub.len();
        if self.channel.shield(call.shield).is_some_and(|shield| shield.signs()) {
            let said = verification::TrailerContents { interface: syntax, heading, little: call.little };
            end = verification::check(&stub, &said)?;
        }
        // Withdrawn calls count as well, until their servants have answered. Those without a reply count apart: who sends them
        // cannot know how many there are, and may lose some.
        let replies = heading.flags & frame::MAYBE == 0;
        let most = self.channel.limits.outstanding;
        if !replies && self.unheard >= most {
            return Ok(());
        }
        if replies && self.serving.len() - self.unheard >= most {
            return refuse(self, hresult::NCA_SERVER_TOO_BUSY);
        }
        let object = heading.object.filter(|object| !object.is_nil());
        let (mut foreign, mut passes) = (false, false);
        // The key of the object that is called, and whether ORPCTHIS stands before the arguments.
        let (key, orpc) = match (&target, object) {
            (Target::Objects, Some(ipid)) => match self.served(ipid) {
                // IRemUnknown has two names, and the object without a key.
                Some(served) if served.key.is_empty() == node => {
                    (foreign, passes) = (served.foreign, served.passes);
                    (served.key.clone(), true)
                }
                // IRemUnknown called on an object's IPID, or an object's interface on that of IRemUnknown.
                Some(_) => return refuse(self, hresult::RPC_E_INVALID_IPID),
                None => return refuse(self, hresult::RPC_E_DISCONNECTED),
            },
            (Target::Objects, None) if node => return refuse(self, hresult::RPC_E_INVALID_OBJECT),
            (Target::Objects, None) => (Bytes::new(), false),
            (Target::Activation, _) => (Bytes::new(), true),
            (Target::Procedures(key), _) => (key.clone(), false),
            (Target::Node, Some(object)) => (Bytes::copy_from_slice(&object.to_bytes_le()), false),
            (Target::Node, None) => (Bytes::new(), false),
        };
        // The values begin behind ORPCTHIS, but their alignment counts from the stub's beginning.
        let base = if orpc {
            match implicit_arguments(&stub, call.little) {
                Ok(taken) => taken,
                Err(status) => return refuse(self, status),
            }
        } else {
            0
        };
        let asked =
            if ordinary { None } else { self.asked_elsewhere(syntax.id, heading, &stub, base, call.little) };
        passes |= asked.is_some();
        let (key, hop) = asked.map_or((key, None), |(key, hop)| (key, Some(hop)));
        let keeps_hresult =
            orpc && (hop.is_some() || (!passes && self.keeps_hresult(&key, syntax.id, heading, ordinary)));
        let (talk, sender) = match self.channel.shield(call.shield) {
            Some(shield) => (shield.correspondence.as_ref(), shield.principal.clone()),
            None => (self.talk.as_ref(), Bytes::new()),
        };
        let budget = self.channel.limits.budget;
        let body = if passes {
            values::passing(&stub.slice(..end), base, call.little, budget, talk, THIS)
        } else {
            let body = values::body(stub.slice(base..), base, call.little, budget, talk);
            if base > OrpcThis::LEN { values::with_extensions(body, &stub, THIS) } else { body }
        };
        self.count(1, 0);
        // It may be the management interface that is called, and its counters are to be right.
        if matches!(target, Target::Node) {
            self.tell_counts();
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        self.unheard += usize::from(!replies);
        self.serving.push(InboundCall {
            serial,
            call: heading.call,
            context: heading.context,
            shield: call.shield,
            key: key.clone(),
            iid: syntax.id,
            opnum: heading.opnum,
            orpc,
            keeps_hresult,
            foreign,
            replies,
            cancelled: false,
            hop,
        });
        let (id, operation) = (CallId(serial), operation(heading.opnum));
        // The servant's answer says that the call is over, also where the client gets none.
        let expects = Expects::Reply;
        let incoming = Incoming { id, sender, key, interface, operation, body, expects };
        self.channel.events.push_back(Event::Call(Box::new(incoming)));
        Ok(())
    }

    /// Whether a call that came protected by `shield` may be executed.
    #[inline]
    fn admits(&self, shield: Option<usize>, iid: Uuid, opnum: u16) -> bool {
        let level = match self.channel.shield(shield) {
            // These two differ from integrity in name only.
            Some(shield) if matches!(shield.level, Level::Call | Level::Packet) => Level::Integrity,
            Some(shield) => shield.level,
            None => Level::None,
        };
        level >= self.place.level || self.is_open(iid, opnum)
    }

    /// Tells the node, once for a connection, that calls come at too low a level: the peer hears no more than that access is denied.
    #[cold]
    fn tell_level(&mut self, shield: Option<usize>) {
        if std::mem::replace(&mut self.told_level, true) {
            return;
        }
        let used = self.channel.shield(shield).map_or(Level::None, |held| held.level);
        let (used, least) = (used.word(), self.place.level.word());
        self.tell_refusal(&format!(
            "it calls at level `{used}`, and this address takes `{least}` at least (level=)"
        ));
    }

    /// Tells the node why a peer was not let in, which the peer is not told.
    #[cold]
    pub(super) fn tell_refusal(&self, why: &str) {
        if let Some(exporter) = &self.exporter {
            exporter.objects().refused(&self.peer.text, why);
        }
    }

    /// What may be asked by those whom nobody knows.
    #[cold]
    fn is_open(&self, iid: Uuid, opnum: u16) -> bool {
        let lookups = self.place.open_lookups || self.local;
        match iid {
            // A client asks before it authenticates whether anybody is there, and which version of ORPC is
            // spoken.
            // ServerAlive and ServerAlive2 (MS-DCOM 3.1.2.5.1.4).
            OBJECT_EXPORTER => matches!(opnum, 3 | 5),
            // All but stopping it.
            MANAGEMENT => lookups && opnum != 3,
            // ept_lookup, ept_map, ept_lookup_handle_free.
            ENDPOINT_MAPPER => lookups && matches!(opnum, 2..=4),
            _ => false,
        }
    }

    /// Whether the results of an operation hold their HRESULT themselves: so do some of IDispatch, under whichever name it
    /// is called.
    #[inline]
    fn keeps_hresult(&mut self, key: &[u8], iid: Uuid, heading: &Heading, ordinary: bool) -> bool {
        (!ordinary && tells_hresult(iid, heading.opnum))
            || (tells_hresult(IDISPATCH, heading.opnum) && self.dispatches(key, iid, heading.context))
    }

    /// Looked up once for a presentation context and kept there: servants of one interface do not differ in
    /// what it is derived from. An object that has none any more says nothing of it.
    #[cold]
    fn dispatches(&mut self, key: &[u8], iid: Uuid, context: u16) -> bool {
        let Some(context) = self.contexts.iter_mut().find(|known| known.id == context) else { return false };
        if let Some(known) = context.dispatches {
            return known;
        }
        let servants =
            self.exporter.as_ref().map(|exporter| exporter.objects().servants(key)).unwrap_or_default();
        let named = |interface: &Interface| iid_of(interface) == iid && dispatches(interface);
        let found = servants.iter().any(|servant| derives(servant.interface(), &named));
        context.dispatches = (!servants.is_empty()).then_some(found);
        found
    }

    /// What an IPID stands for.
    /// A served object that was disconnected in the meantime is looked up again.
    #[inline]
    fn served(&mut self, ipid: Uuid) -> Option<&IpidEntry> {
        if self.last.as_ref().is_none_or(|(last, served)| *last != ipid || !served.is_connected()) {
            self.last = None;
            self.last = Some((ipid, self.exporter.as_ref()?.served(ipid)?));
        }
        self.last.as_ref().map(|(_, served)| served)
    }

    /// The peer withdraws a call; who still waits for it gets a fault.
    pub(super) fn cancel_in(&mut self, header: &Header) {
        if let Some(serving) = self.withdraw(header.call).filter(|serving| serving.replies) {
            let (context, shield) = (serving.context, serving.shield);
            self.send_fault_by(shield, header.call, context, hresult::NCA_FAULT_CANCEL, false);
        }
    }

    /// Nobody waits for a call any more, if it is being served; the servant is told.
    fn withdraw(&mut self, call: u32) -> Option<&InboundCall> {
        let mut all = self.serving.iter_mut();
        let serving = all.find(|serving| serving.call == call && !serving.cancelled)?;
        serving.cancelled = true;
        self.withdrawn += 1;
        self.channel.events.push_back(Event::Cancelled(CallId(serving.serial)));
        Some(serving)
    }

    /// The peer has forgotten a call, or will not send the rest of it.
    /// No answer is sent for it, not even a fault (C706 12.6.4.8).
    pub(super) fn orphaned_in(&mut self, header: &Header) {
        // Without that feature, others wait for the rest of a call (MS-RPCE 2.2.2.14).
        if self.keeps_on_orphan {
            self.channel.assemblies.forget(header.call);
        }
        self.withdraw(header.call);
    }
}

/// The presentation context of a request, which is not verified yet.
#[inline]
fn context_of(header: &Header, message: &[u8]) -> Result<u16, ProtocolError> {
    let raw = message.get(frame::HEADER + 4..).and_then(<[u8]>::first_chunk);
    let raw = *raw.ok_or(ProtocolError::Truncated { what: "request header" })?;
    Ok(if header.little { u16::from_le_bytes(raw) } else { u16::from_be_bytes(raw) })
}

/// Whether an interface, or one it is derived from, is such a one.
fn derives(interface: &Interface, wanted: &dyn Fn(&Interface) -> bool) -> bool {
    wanted(interface) || interface.bases.iter().any(|base| derives(base, wanted))
}

/// Reads ORPCTHIS; how long it is, or the status of the fault.
#[inline]
fn implicit_arguments(stub: &Bytes, little: bool) -> Result<usize, u32> {
    // The usual one has no extensions, and nothing of it but the version matters.
    if little
        && let Some(&[major, 0, minor, 0, ..]) = stub.first_chunk::<{ OrpcThis::LEN }>()
        && stub.get(OrpcThis::LEN - 4..OrpcThis::LEN) == Some(&[0; 4])
    {
        return hresult::check_version((major.into(), minor.into())).map(|()| OrpcThis::LEN);
    }
    let (this, taken) = OrpcThis::parse(stub, little).map_err(|_| hresult::RPC_E_INVALID_HEADER)?;
    hresult::check_version(this.version).map(|()| taken)
}

/// The number of an operation, as [`Incoming`] holds it.
#[inline]
fn operation(opnum: u16) -> Bytes {
    /// The first numbers, so that nothing is allocated for most calls.
    static NUMBERS: [[u8; 2]; 64] = {
        let mut all = [[0; 2]; 64];
        let mut number = 0_u8;
        while number < 64 {
            all[number as usize] = [number, 0];
            number += 1;
        }
        all
    };
    match NUMBERS.get(usize::from(opnum)) {
        Some(number) => Bytes::from_static(number),
        None => Bytes::copy_from_slice(&opnum.to_le_bytes()),
    }
}
