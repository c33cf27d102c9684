//! Agreeing on contexts, and saying who calls (C706 12.6.3, MS-RPCE 3.3.2.4.1).
//!
//! States: `Unbound`, with a bind sent, until a bind_ack comes; then `Open`. `authentication` is there until
//! the mechanism says that it has ended; each answer with a token moves it on, by an alter_context or by a
//! last auth3. `ready` is set once, by `become_ready`; only then calls are sent. A presentation context goes
//! from `Asked` to `Accepted` or `Refused`; one that the peer did not answer is forgotten and asked for
//! again.
//!
//! Invariants: answers to alter_contexts come in the order in which these were sent, so the first context
//! that is `Asked` is the one meant. This side has one security context. Above level connect, a peer that
//! takes no part in the authentication is given up; at level connect it may be silent, for nothing is
//! protected either way.

use super::state::{Connecting, Context, Stage};
use crate::exporter::Proxy;
use crate::frame::{FIRST, HEADER_SIGNING, Header, LAST, MIN_FRAGMENT, MULTIPLEX};
use crate::pdu::{
    Bind, BindAck, ContextElement, FEATURE_KEEP_ON_ORPHAN, FEATURE_SECURITY_MULTIPLEX, FEATURE_SIGNED_FAULTS,
    NDR, Pdu, ProtocolError, Syntax, nak,
};
use crate::security::Level;
use crate::session::channel::{LARGE_FRAGMENT, State, Token};
use crate::session::security_context::{self, SecurityContext};
use crate::ways::class_of;
use crate::{ENDPOINT_MAPPER, MANAGEMENT, OBJECT_EXPORTER, REM_UNKNOWN2, SCM_ACTIVATOR};
use everywire_auth::security::{Credentials, Mechanism, Secret, initiator};
use everywire_model::{Endpoint, Event, Failure, Initiator, Kind, Peer, Profile};
use std::sync::Arc;
use uuid::Uuid;

/// The number of this side's only security context.
const CONTEXT: u32 = 1;

impl Connecting {
    /// Says everything at once: the interfaces that will be called, as far as is known, and who calls.
    /// One message instead of several, because each costs a round trip before the first call.
    pub(super) fn send_bind(&mut self, profile: &Profile) {
        let token = match self.first_token(profile) {
            Ok(token) => token,
            Err(failure) => {
                // No ticket, no such mechanism, a missing file of keys: nothing was sent, and each call is
                // told.
                self.unusable = Some(failure);
                return;
            }
        };
        if let Some(only) = self.only {
            let contexts = vec![self.new_context(syntax(only))];
            let bind = Bind { max_xmit: LARGE_FRAGMENT, max_recv: LARGE_FRAGMENT, group: 0, contexts };
            self.send_negotiation(Pdu::Bind(bind), None);
            return;
        }
        let mut contexts: Vec<_> =
            likely(profile).into_iter().map(|iid| self.new_context(syntax(iid))).collect();
        let features = FEATURE_SECURITY_MULTIPLEX | FEATURE_KEEP_ON_ORPHAN | FEATURE_SIGNED_FAULTS;
        let transfers = vec![Syntax::features(features)];
        let interface = contexts.first().map_or_else(|| syntax(OBJECT_EXPORTER), |first| first.interface);
        contexts.push(ContextElement { id: self.next_context, interface, transfers });
        self.next_context += 1;
        let bind = Bind { max_xmit: LARGE_FRAGMENT, max_recv: LARGE_FRAGMENT, group: 0, contexts };
        self.send_negotiation(Pdu::Bind(bind), token);
    }

    /// A presentation context for an interface; the peer has to be told.
    fn new_context(&mut self, syntax: Syntax) -> ContextElement {
        let id = self.next_context;
        self.next_context = self.next_context.wrapping_add(1);
        self.contexts.push(Context { id, syntax, stage: Stage::Asked, call: self.next_call });
        ContextElement { id, interface: syntax, transfers: vec![self.transfer()] }
    }

    /// How values are encoded; Wine calls the same by another name.
    fn transfer(&self) -> Syntax {
        if self.only.is_some() { Syntax::default() } else { NDR }
    }

    /// Asks for one more interface.
    pub(super) fn send_alter(&mut self, syntax: Syntax) {
        let element = self.new_context(syntax);
        self.alter(vec![element], None);
    }

    /// The sizes were agreed on by the bind, so those that stand here change nothing.
    fn alter(&mut self, contexts: Vec<ContextElement>, token: Option<Vec<u8>>) {
        let (max_xmit, max_recv) = (self.channel.xmit, LARGE_FRAGMENT);
        let bind = Bind { max_xmit, max_recv, group: 0, contexts };
        self.send_negotiation(Pdu::AlterContext(bind), token);
    }

    /// Sends a bind, an alter_context or an auth3, with a call number of its own. The flags that offer header
    /// signing and several security contexts have a meaning in a bind only; Wine (`only` is set) gets
    /// neither.
    fn send_negotiation(&mut self, pdu: Pdu, token: Option<Vec<u8>>) {
        let call = self.take_call();
        let token = token.map(|value| Token {
            mechanism: security_context::number(self.security.mechanism),
            level: self.level() as u8,
            context: CONTEXT,
            value,
        });
        let flags =
            if matches!(pdu, Pdu::Bind(_)) && self.only.is_none() { HEADER_SIGNING | MULTIPLEX } else { 0 };
        self.channel.negotiate(&pdu, flags, call, token.as_ref());
    }

    /// The level as it stands in trailers: nobody sends `call` (MS-RPCE 2.2.1.1.8).
    fn level(&self) -> Level {
        if self.security.level == Level::Call { Level::Packet } else { self.security.level }
    }

    /// `None` at level none. The target's name for Kerberos is made of `host`.
    fn first_token(&mut self, profile: &Profile) -> Result<Option<Vec<u8>>, Failure> {
        if self.security.level == Level::None {
            return Ok(None);
        }
        let host = match profile.endpoints.first() {
            Some(Endpoint::Tcp { host, .. }) => host.as_str(),
            _ => "localhost",
        };
        // There may be a ticket without them.
        let nobody =
            || Credentials { domain: String::new(), user: String::new(), password: Secret::password("") };
        let credentials = self.security.credentials.clone().unwrap_or_else(|| Arc::new(nobody()));
        let options = self.security.options(host);
        let mut authentication = initiator(self.security.mechanism, &credentials, &options)?;
        let step = authentication.step(&[])?;
        self.authentication = Some(authentication);
        Ok(Some(step.token))
    }

    /// The peer lets this side in, as far as a bind goes.
    pub(super) fn bind_ack_in(&mut self, header: &Header, message: &[u8]) -> Result<(), ProtocolError> {
        self.channel.expect(State::Unbound, header)?;
        let ack = self.contents(header, message)?;
        let asked: Vec<_> = self.contexts.iter().map(|context| context.id).collect();
        self.settle_contexts(&asked, &ack, 1)?;
        self.channel.state = State::Open;
        self.channel.header_signing = header.flags & HEADER_SIGNING != 0;
        // Wine numbers no answers: there calls go one at a time, whatever is said here.
        self.channel.multiplex = header.flags & MULTIPLEX != 0 && self.only.is_none();
        self.channel.xmit = ack.max_recv.clamp(MIN_FRAGMENT, LARGE_FRAGMENT);
        self.go_on_authenticating(header, message)
    }

    /// The answer to an alter_context: they are answered in order.
    pub(super) fn alter_response_in(&mut self, header: &Header, message: &[u8]) -> Result<(), ProtocolError> {
        self.channel.expect(State::Open, header)?;
        let ack = self.contents(header, message)?;
        let asked = self.contexts.iter().find(|context| context.stage == Stage::Asked).map(|asked| asked.id);
        match asked {
            Some(asked) if self.ready => self.settle_contexts(&[asked], &ack, 0)?,
            None if self.ready => return Err(ProtocolError::Unexpected { kind: header.kind.word() }),
            // It carries a token; the contexts were settled before.
            _ => {}
        }
        if !self.ready {
            return self.go_on_authenticating(header, message);
        }
        self.pump();
        Ok(())
    }

    /// The peer does not let this side in.
    pub(super) fn bind_nak_in(&mut self, header: &Header, message: &[u8]) -> Result<(), ProtocolError> {
        let Pdu::BindNak(told) = Pdu::contents(header, message, message.len())? else {
            return Err(ProtocolError::Unexpected { kind: header.kind.word() });
        };
        self.channel.expect(State::Unbound, header)?;
        let (kind, why, hint) = match told.reason {
            nak::AUTHENTICATION_TYPE => {
                (Kind::Refused, "the mechanism of authentication is not known there", "try another mech=")
            }
            nak::INVALID_CHECKSUM if self.security.mechanism == Mechanism::Kerberos => (
                Kind::Refused,
                "the ticket is wrong",
                "the server may have other keys for its service, or none for that name: see its keytab, and target=",
            ),
            nak::INVALID_CHECKSUM => {
                (Kind::Refused, "the user, the password or the token is wrong", "check the credentials")
            }
            nak::VERSION => (Kind::Unsupported, "the peer speaks another version of the protocol", ""),
            nak::CONGESTION | nak::LOCAL_LIMIT => (Kind::Busy, "the peer has too much to do", ""),
            _ => (Kind::Refused, "no reason is given", ""),
        };
        let what = format!("the peer refuses the association: {why}");
        let failure =
            Failure::new(kind, Initiator::Peer, what).with_code(format!("bind_nak {}", told.reason));
        let failure = if hint.is_empty() { failure } else { failure.with_hint(hint) };
        self.give_up(failure);
        Ok(())
    }

    /// Neither answer may come in fragments (C706 12.6.4).
    fn contents(&self, header: &Header, message: &[u8]) -> Result<BindAck, ProtocolError> {
        let kind = header.kind.word();
        if header.flags & (FIRST | LAST) != FIRST | LAST {
            return Err(ProtocolError::NotFragmentable { kind });
        }
        let end = header.trailer(message)?.map_or(message.len(), |trailer| trailer.contents_end());
        match Pdu::contents(header, message, end)? {
            Pdu::BindAck(ack) | Pdu::AlterContextResponse(ack) => Ok(ack),
            _ => Err(ProtocolError::Unexpected { kind }),
        }
    }

    /// Notes what the peer says of the contexts with these numbers; `more` answers may follow that concern none. Some peers say
    /// something of the first alone: the others are asked for again when they are needed.
    fn settle_contexts(&mut self, asked: &[u16], ack: &BindAck, more: usize) -> Result<(), ProtocolError> {
        let (results, expected) = (ack.results.len(), asked.len());
        // Some leave out what they do not understand.
        if results < expected.min(1) || results > expected + more {
            return Err(ProtocolError::Results { results, asked: expected });
        }
        let transfer = self.transfer();
        for (id, result) in asked.iter().zip(&ack.results) {
            if let Some(context) = self.contexts.iter_mut().find(|context| context.id == *id) {
                let accepted = result.result == 0 && result.transfer == transfer;
                context.stage = if accepted { Stage::Accepted } else { Stage::Refused };
            }
        }
        // Forgotten here, so that `way` reports them as missing and asks for each by an alter_context.
        let unanswered = asked.get(results..).unwrap_or_default();
        self.contexts.retain(|context| !unanswered.contains(&context.id));
        Ok(())
    }

    /// Takes the peer's token, and sends the next.
    fn go_on_authenticating(&mut self, header: &Header, message: &[u8]) -> Result<(), ProtocolError> {
        let Some(mut authentication) = self.authentication.take() else {
            self.become_ready("none");
            return Ok(());
        };
        // At level connect nothing is protected, and the peer is not known either way: some do not ask who calls, or say
        // something of their own.
        let asks = self.security.level > Level::Connect;
        let step = match header.trailer(message)? {
            Some(trailer) => authentication.step(message.get(trailer.value()..).unwrap_or_default()),
            None => {
                let what = "the peer does not say who it is, nor asks who calls";
                Err(Failure::new(Kind::Refused, Initiator::Peer, what)
                    .with_hint("if the peer is trusted anyway, end the address with ?level=none"))
            }
        };
        let step = match step {
            Ok(step) => step,
            Err(failure) if asks => {
                self.give_up(failure);
                return Ok(());
            }
            Err(_) => {
                self.become_ready("none");
                return Ok(());
            }
        };
        let Some(established) = step.done else {
            // One more round: the same contexts again, since some peers insist on one.
            self.authentication = Some(authentication);
            let again = self.contexts.iter().take(1).map(|context| ContextElement {
                id: context.id,
                interface: context.syntax,
                transfers: vec![NDR],
            });
            self.alter(again.collect(), Some(step.token));
            return Ok(());
        };
        if !step.token.is_empty() {
            self.send_negotiation(Pdu::Auth3, Some(step.token));
            self.unconfirmed = true;
        }
        let level = self.level();
        let words = security_context::authentication(established.principal.mechanism, level);
        let (number, headers) =
            (security_context::number(self.security.mechanism), self.channel.header_signing);
        self.channel.shields.push(SecurityContext::new(CONTEXT, number, level, headers, established));
        self.become_ready(words);
        Ok(())
    }

    /// From here on calls are sent at once. Those that waited for the bind or the tokens go first.
    fn become_ready(&mut self, authentication: &'static str) {
        self.ready = true;
        self.channel.events.push_back(Event::Ready(Peer::admitted(self.peer.clone(), authentication)));
        self.pump();
    }
}

/// The interfaces that will be called on a connection made for this way.
/// Asking for an interface that is not called costs 44 octets; not asking costs a round trip.
fn likely(profile: &Profile) -> Vec<Uuid> {
    match profile.lease.get::<Proxy>() {
        Some(proxy) if proxy.oxid().resolution().is_some() => {
            let iid = proxy.objref().iid();
            let mut all = vec![REM_UNKNOWN2];
            all.extend((iid != crate::IUNKNOWN && iid != REM_UNKNOWN2).then_some(iid));
            all
        }
        None if class_of(profile).is_some() => vec![SCM_ACTIVATOR, OBJECT_EXPORTER],
        _ => vec![OBJECT_EXPORTER],
    }
}

/// An interface with its version: COM's have none.
pub(super) fn syntax(iid: Uuid) -> Syntax {
    let major = match iid {
        ENDPOINT_MAPPER => 3,
        MANAGEMENT => 1,
        _ => 0,
    };
    Syntax::new(iid, major)
}
