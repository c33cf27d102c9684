//! Agreeing on contexts, sizes and who calls (C706 12.6.3, MS-RPCE 3.3.1.5.2 to 3.3.1.5.4).

use super::{Accepting, Admission, Presentation};
use crate::frame::{FIRST, HEADER_SIGNING, Header, LAST, MIN_FRAGMENT, MULTIPLEX, PduKind, Trailer};
use crate::pdu::{
    Bind, BindAck, BindNak, Breach, ContextElement, ContextResult, FEATURE_KEEP_ON_ORPHAN,
    FEATURE_SECURITY_MULTIPLEX, NDR, Pdu, nak,
};
use crate::security::Level;
use crate::session::channel::{FRAGMENT, LARGE_FRAGMENT, State, Token};
use crate::session::shield::{self, Shield, Talk};
use crate::{ENDPOINT_MAPPER, MANAGEMENT, REMOTE_ACTIVATION, hresult, is_orpc, limits};
use bytes::Bytes;
use everywire_auth::security::{Established, acceptor};
use everywire_model::{Endpoint, Event, Failure, Kind, Peer, Profile};
use std::sync::Arc;
use uuid::Uuid;

/// The largest fragment that a client is taken to mean if it says less.
const LEAST_ASKED: u16 = 2048;

const FEATURES: u16 = FEATURE_SECURITY_MULTIPLEX | FEATURE_KEEP_ON_ORPHAN;

/// The token to be sent back, with the trailer it answers.
type Reply = Option<(Trailer, Vec<u8>)>;

/// Why a client is not let in.
enum Refusal {
    /// The mechanism, or its level, is not available.
    Mechanism,
    /// The token, or the user.
    Token,
}

impl Accepting {
    /// The client's first word.
    pub(super) fn bind_in(&mut self, header: &Header, message: &[u8]) -> Result<(), Breach> {
        if self.channel.state != State::Unbound {
            return Err(Breach::Unexpected { kind: PduKind::Bind.word() });
        }
        let (bind, trailer) = contents(header, message)?;
        self.channel.minor = header.minor;
        let Some(group) = self.join(bind.group) else {
            self.send_nak(header.call, nak::NOT_SPECIFIED);
            return Ok(());
        };
        self.group = Some(group);
        self.channel.header_signing = header.has(HEADER_SIGNING);
        self.channel.multiplex = header.has(MULTIPLEX);
        let size = agree_size(&bind);
        self.channel.xmit = if bind.max_recv < MIN_FRAGMENT { size } else { size.min(bind.max_recv) };
        let results = self.negotiate_contexts(&bind.contexts)?;
        let reply = match self.authenticate(trailer, message) {
            Ok(reply) => reply,
            Err(refusal) => {
                // Another bind may follow.
                self.forget_binding();
                let reason = match refusal? {
                    Refusal::Mechanism => nak::AUTHENTICATION_TYPE,
                    Refusal::Token => nak::INVALID_CHECKSUM,
                };
                self.send_nak(header.call, reason);
                return Ok(());
            }
        };
        self.channel.state = State::Open;
        let ack = BindAck { max_xmit: size, max_recv: size, group, address: self.port.clone(), results };
        self.send_ack(Pdu::BindAck(ack), header, reply.as_ref());
        // Known callers are told of when their context stands.
        if self.channel.shields.is_empty() {
            let authentication = if self.peer.credentials.is_some() { "unix credentials" } else { "none" };
            self.channel.events.push_front(Event::Ready(Peer::admitted(self.peer.clone(), authentication)));
        }
        Ok(())
    }

    /// The client needs more.
    pub(super) fn alter_in(&mut self, header: &Header, message: &[u8]) -> Result<(), Breach> {
        if self.channel.state != State::Open {
            return Err(Breach::Unexpected { kind: PduKind::AlterContext.word() });
        }
        let (bind, trailer) = contents(header, message)?;
        let results = self.negotiate_contexts(&bind.contexts)?;
        let reply = match self.authenticate(trailer, message) {
            Ok(reply) => reply,
            Err(refusal) => {
                refusal?;
                self.send_fault(header.call, 0, hresult::NCA_ACCESS_DENIED, true);
                return Ok(());
            }
        };
        // Sizes and group are those of the bind, whatever is asked now.
        let size = self.channel.xmit;
        let group = self.group.unwrap_or_default();
        let ack = BindAck { max_xmit: size, max_recv: size, group, address: Vec::new(), results };
        self.send_ack(Pdu::AlterContextResponse(ack), header, reply.as_ref());
        Ok(())
    }

    /// The third token of three: nothing is answered, and who is not let in learns it from the first call.
    pub(super) fn auth3_in(&mut self, header: &Header, message: &[u8]) -> Result<(), Breach> {
        const KIND: &str = "auth3";
        let trailer = header.trailer(message)?.ok_or(Breach::Unprotected { kind: KIND })?;
        let waits = |held: &Admission| held.id == trailer.context && held.acceptor.is_some();
        if self.channel.state != State::Open || !self.admissions.iter().any(waits) {
            return Err(Breach::Unexpected { kind: KIND });
        }
        match self.authenticate(Some(trailer), message) {
            Ok(_) => Ok(()),
            Err(refusal) => refusal.map(|_| ()),
        }
    }

    pub(super) fn send_nak(&mut self, call: u32, reason: u16) {
        let nak = BindNak { reason, versions: vec![(5, 0), (5, 1)] };
        self.channel.negotiate(&Pdu::BindNak(nak), 0, call, None);
    }

    fn send_ack(&mut self, ack: Pdu, header: &Header, reply: Option<&(Trailer, Vec<u8>)>) {
        let mut flags = 0;
        if self.channel.header_signing {
            flags |= HEADER_SIGNING;
        }
        if self.channel.multiplex {
            flags |= MULTIPLEX;
        }
        let token = reply.map(|(trailer, value)| Token {
            mechanism: trailer.mechanism,
            level: trailer.level,
            context: trailer.context,
            value,
        });
        self.channel.negotiate(&ack, flags, header.call, token.as_ref());
    }

    fn join(&mut self, asked: u32) -> Option<u32> {
        self.leave();
        match &self.exporter {
            Some(exporter) => exporter.join_association(asked, ""),
            // Without a node there are no other connections.
            None => (asked == 0).then_some(1),
        }
    }

    fn forget_binding(&mut self) {
        self.contexts.clear();
        self.admissions.clear();
        self.channel.shields.clear();
        self.leave();
    }

    fn negotiate_contexts(&mut self, asked: &[ContextElement]) -> Result<Vec<ContextResult>, Breach> {
        asked.iter().map(|element| self.negotiate_context(element)).collect()
    }

    fn negotiate_context(&mut self, element: &ContextElement) -> Result<ContextResult, Breach> {
        if let [only] = element.transfers.as_slice()
            && let Some(bits) = only.asks_features()
        {
            return Ok(ContextResult::features(bits & FEATURES));
        }
        if let Some(known) = self.contexts.iter().find(|known| known.id == element.id) {
            // A number stands for one interface as long as the connection lasts.
            return if known.syntax == element.interface {
                Ok(ContextResult::accepted(NDR))
            } else {
                Err(Breach::UnknownContext { context: element.id })
            };
        }
        if !is_interface(&element.interface) {
            return Ok(ContextResult::UNKNOWN_INTERFACE);
        }
        if !element.transfers.contains(&NDR) {
            return Ok(ContextResult::UNKNOWN_TRANSFER);
        }
        if self.contexts.len() >= limits::CONTEXTS {
            return Ok(ContextResult::LIMIT);
        }
        self.contexts.push(Presentation {
            id: element.id,
            syntax: element.interface,
            interface: Bytes::copy_from_slice(&element.interface.id.to_bytes_le()),
            orpc: is_orpc(element.interface.id),
            dispatches: None,
        });
        Ok(ContextResult::accepted(NDR))
    }

    /// Takes a token, if one came. The outer error of the two is a refusal, the inner one a breach.
    fn authenticate(
        &mut self,
        trailer: Option<Trailer>,
        message: &[u8],
    ) -> Result<Reply, Result<Refusal, Breach>> {
        let Some(trailer) = trailer else { return Ok(None) };
        let token = message.get(trailer.value()..).unwrap_or_default();
        let context = trailer.context;
        if let Some(stands) = self.channel.shields.iter().find(|shield| shield.id == context) {
            return if stands.fits(&trailer) {
                Ok(None)
            } else {
                Err(Err(Breach::SecurityContextReused { context }))
            };
        }
        let index = self.admission(&trailer)?;
        let Some(admission) = self.admissions.get_mut(index) else { return Err(Ok(Refusal::Mechanism)) };
        if (admission.mechanism, admission.level as u8) != (trailer.mechanism, trailer.level) {
            return Err(Err(Breach::SecurityContextReused { context }));
        }
        let Some(acceptor) = &mut admission.acceptor else { return Err(Ok(Refusal::Token)) };
        let step = match acceptor.step(token) {
            Ok(step) => step,
            Err(failure) => {
                admission.acceptor = None;
                return Err(Ok(refusal(&failure)));
            }
        };
        if let Some(established) = step.done {
            self.admissions.remove(index);
            self.admit(&trailer, established);
        }
        Ok((!step.token.is_empty()).then_some((trailer, step.token)))
    }

    /// Which of the contexts that are being made a trailer belongs to; a new one if to none.
    fn admission(&mut self, trailer: &Trailer) -> Result<usize, Result<Refusal, Breach>> {
        if let Some(index) = self.admissions.iter().position(|held| held.id == trailer.context) {
            return Ok(index);
        }
        let limit = limits::SECURITY_CONTEXTS;
        if self.admissions.len() + self.channel.shields.len() >= limit {
            return Err(Err(Breach::SecurityContexts { limit }));
        }
        let (Some(mechanism), Some(level)) =
            (shield::mechanism(trailer.mechanism), Level::from_number(trailer.level))
        else {
            return Err(Ok(Refusal::Mechanism));
        };
        let Some(users) = self.place.users.clone().or_else(|| self.place.keytab.is_some().then(nobody))
        else {
            return Err(Ok(Refusal::Mechanism));
        };
        if level == Level::None {
            return Err(Ok(Refusal::Mechanism));
        }
        let mut options = self.place.options("");
        options.integrity = level.is_signed();
        options.confidentiality = level == Level::Privacy;
        let acceptor = acceptor(mechanism, users, &options).map_err(|failure| Ok(refusal(&failure)))?;
        self.admissions.push(Admission {
            id: trailer.context,
            mechanism: trailer.mechanism,
            level,
            acceptor: Some(acceptor),
        });
        Ok(self.admissions.len() - 1)
    }

    /// The peer proved who it is.
    fn admit(&mut self, trailer: &Trailer, established: Established) {
        let Some(level) = Level::from_number(trailer.level) else { return };
        let authentication = shield::authentication(established.principal.mechanism, level);
        let headers = self.channel.header_signing;
        let mut shield = Shield::new(trailer.context, trailer.mechanism, level, headers, established);
        shield.correspondence = self.exporter.as_ref().map(|exporter| {
            let principal = String::from_utf8_lossy(&shield.principal);
            Talk::new(exporter, &self.place, &principal, self.sockets)
        });
        self.channel.shields.push(shield);
        self.channel.events.push_back(Event::Ready(Peer::admitted(self.peer.clone(), authentication)));
    }
}

/// What a bind or alter_context says; neither comes in fragments.
fn contents(header: &Header, message: &[u8]) -> Result<(Bind, Option<Trailer>), Breach> {
    let kind = header.kind.word();
    if header.flags & (FIRST | LAST) != FIRST | LAST {
        return Err(Breach::NotFragmentable { kind });
    }
    let trailer = header.trailer(message)?;
    let end = trailer.map_or(message.len(), |trailer| trailer.contents_end());
    match Pdu::contents(header, message, end)? {
        Pdu::Bind(bind) | Pdu::AlterContext(bind) => Ok((bind, trailer)),
        _ => Err(Breach::Unexpected { kind }),
    }
}

/// The fragment size of both directions: Windows answers with one number, a multiple of 8 up to 5840.
fn agree_size(bind: &Bind) -> u16 {
    let asked = bind.max_xmit.min(bind.max_recv);
    if asked == LARGE_FRAGMENT {
        return LARGE_FRAGMENT;
    }
    asked.clamp(LEAST_ASKED, FRAGMENT) & 0xfff8
}

/// Whether a context may be made for an interface. COM's have no versions, and each call names its object; which
/// interfaces that has is decided then.
fn is_interface(syntax: &crate::pdu::Syntax) -> bool {
    match syntax.id {
        ENDPOINT_MAPPER => syntax.major == 3,
        MANAGEMENT => syntax.major == 1,
        REMOTE_ACTIVATION => syntax.major == 0,
        id => id != Uuid::nil() && (syntax.major, syntax.minor) == (0, 0),
    }
}

/// Why a client whose bind breaks the rules is refused.
pub(super) fn nak_reason(breach: &Breach) -> u16 {
    match breach {
        Breach::Version { .. } => nak::VERSION,
        Breach::Contexts { .. } | Breach::SecurityContexts { .. } => nak::LOCAL_LIMIT,
        _ => nak::NOT_SPECIFIED,
    }
}

/// The port that a bind_ack tells.
pub(super) fn secondary_address(place: &Profile) -> Vec<u8> {
    match place.endpoints.first() {
        Some(Endpoint::Tcp { port, .. }) => port.to_string().into_bytes(),
        _ => Vec::new(),
    }
}

/// Whether a place is reached by TCP.
pub(super) fn is_tcp(place: &Profile) -> bool {
    matches!(place.endpoints.first(), Some(Endpoint::Tcp { .. }) | None)
}

fn refusal(failure: &Failure) -> Refusal {
    if failure.kind() == Kind::Unsupported { Refusal::Mechanism } else { Refusal::Token }
}

/// No users at all, where Kerberos alone decides.
fn nobody() -> Arc<dyn everywire_auth::security::Users> {
    Arc::new(everywire_auth::security::UserTable::default())
}
