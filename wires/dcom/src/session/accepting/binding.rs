//! Agreeing on contexts, sizes and who calls (C706 12.6.3, MS-RPCE 3.3.1.5.2 to 3.3.1.5.4).
//!
//! States: a security context begins as an `Admission`, when the first token of its number comes (bind or
//! alter_context), and goes on with each token. If the mechanism says that the caller has proved who it is,
//! the admission is removed and becomes a `SecurityContext`. If it is refused, the admission stays without its
//! acceptor, so that the number cannot be tried again, and calls by it are denied. Presentation contexts only
//! grow, and keep their meaning.
//!
//! Invariants: a connection has `UNPROVED_CONTEXTS` admissions and `SECURITY_CONTEXTS` contexts at the most,
//! checked before a mechanism is started. A number stands for one interface, and one security context, as
//! long as the connection lasts: nobody becomes somebody else. `Event::Ready` comes at the end of a bind for
//! a caller whom nobody knows yet, and again for each one who has proved who it is. An association group is
//! used by one account only (`owns_group`).

use super::state::{Accepting, Admission, Presentation, Target};
use crate::frame::{HEADER, HEADER_SIGNING, Header, MIN_FRAGMENT, MULTIPLEX, Trailer};
use crate::limits;
use crate::pdu::{
    Bind, BindAck, BindNak, ContextElement, ContextResult, FEATURE_KEEP_ON_ORPHAN,
    FEATURE_SECURITY_MULTIPLEX, FEATURE_SIGNED_FAULTS, NDR, Pdu, ProtocolError, Syntax, nak,
};
use crate::security::{Level, Security, address_of_peer, is_tcp};
use crate::session::channel::{FRAGMENT, LARGE_FRAGMENT, State, Token};
use crate::session::security_context::{self, SecurityContext, ValueContext};
use crate::standard::is_ordinary;
use crate::{
    ENDPOINT_MAPPER, MANAGEMENT, OBJECT_EXPORTER, REM_UNKNOWN, REM_UNKNOWN2, REMOTE_ACTIVATION,
    SCM_ACTIVATOR, iid_of, version_of,
};
use bytes::Bytes;
use everywire_auth::security::{Credentials, Established, Mechanism, Principal, UserTable, Users, acceptor};
use everywire_model::{Endpoint, Event, Failure, InterfaceKind, Kind, Peer, PeerAddress, Profile};
use std::sync::Arc;
use uuid::Uuid;

/// The largest fragment that a client is taken to mean if it says less.
const LEAST_ASKED: u16 = 2048;

const FEATURES: u16 = FEATURE_SECURITY_MULTIPLEX | FEATURE_KEEP_ON_ORPHAN | FEATURE_SIGNED_FAULTS;

/// With what a token came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AuthenticationLeg {
    /// A bind.
    First,
    /// An alter_context.
    Next,
    /// An auth3, which is not answered.
    Last,
}

impl Accepting {
    /// A bind: the first PDU of a connection, and the only one of its kind. Fragment sizes, the association
    /// group, the presentation contexts and the first security context are agreed on here.
    pub(super) fn bind_in(&mut self, header: &Header, message: &[u8]) -> Result<(), ProtocolError> {
        self.channel.expect(State::Unbound, header)?;
        let (bind, trailer) = contents(header, message)?;
        self.channel.minor = header.minor;
        let group = self.join(bind.group, trailer.is_some())?;
        let talk = |exporter| ValueContext::new(exporter, &self.back, "", self.end, group);
        self.talk = self.exporter.as_ref().map(talk);
        self.channel.header_signing = header.has(HEADER_SIGNING);
        self.channel.multiplex = header.has(MULTIPLEX);
        let size = agree_size(&bind);
        self.size = size;
        // Fragments of the usual size are taken although less was agreed on: refusing them would gain
        // nothing.
        self.channel.recv = size.max(FRAGMENT);
        self.channel.xmit = if bind.max_recv < MIN_FRAGMENT { size } else { size.min(bind.max_recv) };
        let results = self.negotiate_contexts(&bind.contexts)?;
        let reply = self.authenticate(trailer, message, AuthenticationLeg::First)?;
        self.channel.state = State::Open;
        let ack = BindAck { max_xmit: size, max_recv: size, group, address: self.port.clone(), results };
        let flags = header.flags & (HEADER_SIGNING | MULTIPLEX);
        self.channel.negotiate(&Pdu::BindAck(ack), flags, header.call, reply.as_ref());
        // Known callers are told of when their context stands.
        if self.channel.shields.is_empty() {
            let authentication = if self.peer.credentials.is_some() { "unix credentials" } else { "none" };
            let peer = Peer::admitted(self.peer.clone(), authentication).with_account_by_call();
            self.channel.events.push_front(Event::Ready(peer));
        }
        Ok(())
    }

    /// The client needs more.
    pub(super) fn alter_in(&mut self, header: &Header, message: &[u8]) -> Result<(), ProtocolError> {
        self.channel.expect(State::Open, header)?;
        let (bind, trailer) = contents(header, message)?;
        let results = self.negotiate_contexts(&bind.contexts)?;
        // Headers may come to be signed later, and then by every context (MS-RPCE 3.3.1.5.2.2).
        if header.has(HEADER_SIGNING) {
            self.channel.header_signing = true;
            self.channel.shields.iter_mut().for_each(|shield| shield.whole = true);
        }
        let reply = self.authenticate(trailer, message, AuthenticationLeg::Next)?;
        // Sizes and group are those of the bind, whatever is asked now.
        let (size, group) = (self.size, self.group.unwrap_or_default());
        let ack = BindAck { max_xmit: size, max_recv: size, group, address: Vec::new(), results };
        let flags = header.flags & HEADER_SIGNING;
        self.channel.negotiate(&Pdu::AlterContextResponse(ack), flags, header.call, reply.as_ref());
        Ok(())
    }

    /// The last of three tokens: nothing is answered, and who is not let in learns it from the first call.
    pub(super) fn auth3_in(&mut self, header: &Header, message: &[u8]) -> Result<(), ProtocolError> {
        const KIND: &str = "auth3";
        let trailer = header.trailer(message)?.ok_or(ProtocolError::Unprotected { kind: KIND })?;
        check_pad(header, &trailer)?;
        let waits = |held: &Admission| held.id == trailer.context && held.acceptor.is_some();
        if self.channel.state != State::Open || !self.admissions.iter().any(waits) {
            return Err(ProtocolError::Unexpected { kind: KIND });
        }
        match self.authenticate(Some(trailer), message, AuthenticationLeg::Last) {
            Ok(_) | Err(ProtocolError::Denied) => Ok(()),
            Err(breach) => Err(breach),
        }
    }

    /// Refuses a bind. The versions are there whatever the reason is: a reader that expects them finds them.
    pub(super) fn send_nak(&mut self, call: u32, reason: u16) {
        let nak = BindNak { reason, versions: vec![(5, 0)] };
        self.channel.negotiate(&Pdu::BindNak(nak), 0, call, None);
    }

    /// Joins an association group: one that belongs to nobody where nobody says who calls, else any that there is; whether
    /// it is the caller's shows when it has proved who it is.
    fn join(&mut self, asked: u32, proves: bool) -> Result<u32, ProtocolError> {
        self.leave();
        let joined = match &self.exporter {
            Some(exporter) if proves => exporter.associations().enter(asked),
            Some(exporter) => exporter.associations().join(asked, ""),
            // Without a node there are no other connections.
            None => (asked == 0).then_some(1),
        };
        self.group = joined;
        joined.ok_or(ProtocolError::Group { group: asked })
    }

    /// One result for each element, in the order of the elements: the client tells them apart by their place
    /// alone. The negotiation of features (MS-RPCE 2.2.2.14) is an element of its own and may be there only
    /// once.
    fn negotiate_contexts(&mut self, asked: &[ContextElement]) -> Result<Vec<ContextResult>, ProtocolError> {
        let features = |element: &&ContextElement| features_of(element).is_some();
        if asked.iter().filter(features).count() > 1 {
            return Err(ProtocolError::FeaturesTwice);
        }
        let mut results = Vec::with_capacity(asked.len());
        for (index, element) in asked.iter().enumerate() {
            // An interface is agreed on once in a message, as other servers have it.
            let before = asked.get(..index).unwrap_or_default().iter().zip(&results);
            let agreed = |(other, result): (&ContextElement, &ContextResult)| {
                other.interface == element.interface && result.result == 0
            };
            let again = features_of(element).is_none() && before.into_iter().any(agreed);
            results.push(match self.negotiate_context(element)? {
                accepted if accepted.result == 0 && again => ContextResult::UNKNOWN_TRANSFER,
                result => result,
            });
        }
        Ok(results)
    }

    /// A context that is refused does not fail the bind: the client sees the result of each.
    fn negotiate_context(&mut self, element: &ContextElement) -> Result<ContextResult, ProtocolError> {
        if let Some(bits) = features_of(element) {
            let bits = bits & FEATURES;
            self.keeps_on_orphan |= bits & FEATURE_KEEP_ON_ORPHAN != 0;
            self.signs_faults |= bits & FEATURE_SIGNED_FAULTS != 0;
            return Ok(ContextResult::features(bits));
        }
        let known = self.contexts.iter().find(|known| known.id == element.id);
        // A number stands for one interface as long as the connection lasts.
        if known.is_some_and(|known| known.syntax != element.interface) {
            return Err(ProtocolError::UnknownContext { context: element.id });
        }
        let Some(target) = self.target(&element.interface) else {
            return Ok(ContextResult::UNKNOWN_INTERFACE);
        };
        if !element.transfers.contains(&NDR) {
            return Ok(ContextResult::UNKNOWN_TRANSFER);
        }
        if known.is_some() {
            return Ok(ContextResult::accepted(NDR));
        }
        if self.contexts.len() >= limits::CONTEXTS {
            return Ok(ContextResult::LIMIT);
        }
        let (id, syntax) = (element.id, element.interface);
        let interface = Bytes::copy_from_slice(&syntax.id.to_bytes_le());
        let (node, ordinary) = (matches!(syntax.id, REM_UNKNOWN | REM_UNKNOWN2), is_ordinary(syntax.id));
        self.contexts.push(Presentation { id, syntax, interface, target, node, ordinary, dispatches: None });
        Ok(ContextResult::accepted(NDR))
    }

    /// What an interface's calls go to. COM's interfaces have no versions, and each call names its object; which interfaces
    /// that has is decided then. `None`: there is no such interface.
    fn target(&self, syntax: &Syntax) -> Option<Target> {
        let objects = (syntax.major, syntax.minor) == (0, 0);
        match syntax.id {
            ENDPOINT_MAPPER => (syntax.major == 3).then_some(Target::Node),
            MANAGEMENT => (syntax.major == 1).then_some(Target::Node),
            OBJECT_EXPORTER => objects.then_some(Target::Node),
            REMOTE_ACTIVATION | SCM_ACTIVATOR => (syntax.major == 0).then_some(Target::Activation),
            id if id == Uuid::nil() => None,
            _ => match self.procedures(syntax) {
                Some(key) => Some(Target::Procedures(key)),
                None => objects.then_some(Target::Objects),
            },
        }
    }

    /// The object that serves an interface of plain DCE/RPC: of this major version, and of no lower minor one (C706 6.2.4.2).
    fn procedures(&self, syntax: &Syntax) -> Option<Bytes> {
        let exporter = self.exporter.as_ref()?;
        exporter.serving(syntax.id).into_iter().find(|key| {
            exporter.objects().servants(key).iter().any(|servant| {
                let interface = servant.interface();
                let (major, minor) = version_of(interface);
                interface.kind == InterfaceKind::Procedures
                    && iid_of(interface) == syntax.id
                    && major == syntax.major
                    && minor >= syntax.minor
            })
        })
    }

    /// Takes a token, if one came; what is to be sent back. That names the mechanism, level and security context that the client's
    /// trailer named: a token that answers another one would be refused there.
    fn authenticate(
        &mut self,
        trailer: Option<Trailer>,
        message: &[u8],
        leg: AuthenticationLeg,
    ) -> Result<Option<Token>, ProtocolError> {
        let Some(trailer) = trailer else { return Ok(None) };
        let token = message.get(trailer.value()..).unwrap_or_default();
        let (context, mechanism, level) = (trailer.context, trailer.mechanism, trailer.level);
        if let Some(stands) = self.channel.shields.iter().find(|shield| shield.id == context) {
            // Old clients say something with each interface they ask for, though it is known who they are.
            let old =
                stands.level == Level::Connect && mechanism == security_context::number(Mechanism::Ntlm);
            if old && leg == AuthenticationLeg::Next && stands.fits(&trailer) {
                return Ok(None);
            }
            // Nobody becomes somebody else.
            return Err(ProtocolError::SecurityContextReused { context });
        }
        let index = self.admission(&trailer, leg == AuthenticationLeg::First)?;
        let Some(admission) = self.admissions.get_mut(index) else { return Err(ProtocolError::Denied) };
        if admission.mechanism != mechanism && mechanism != 0 {
            return Err(ProtocolError::Authentication { mechanism, level });
        }
        if (admission.mechanism, admission.level as u8) != (mechanism, level) {
            return Err(ProtocolError::SecurityContextReused { context });
        }
        let Some(acceptor) = &mut admission.acceptor else { return Err(ProtocolError::Denied) };
        let step = match acceptor.step(token) {
            Ok(step) => step,
            Err(failure) => {
                admission.acceptor = None;
                let hint = failure.hint().map(|hint| format!(": {hint}")).unwrap_or_default();
                self.tell_refusal(&format!("{}{hint}", failure.message()));
                return Err(refusal(&failure, &trailer));
            }
        };
        // An auth3 has no answer, so a mechanism that still has a token to send cannot end with it.
        // After the last one nothing could be said any more, nor asked.
        let fits = leg != AuthenticationLeg::Last || (step.token.is_empty() && step.done.is_some());
        if !fits || step.done.as_ref().is_some_and(|established| !self.owns_group(established)) {
            if let Some(admission) = self.admissions.get_mut(index) {
                admission.acceptor = None;
            }
            return Err(ProtocolError::Denied);
        }
        if let Some(established) = step.done {
            self.admissions.remove(index);
            self.admit(&trailer, established);
        }
        // A trailer is answered by one even if no token is left to say.
        Ok(Some(Token { mechanism, level, context, value: step.token }))
    }

    /// Which of the contexts that are being made a trailer belongs to; a new one if to none.
    /// A place without users and without a keytab takes no authentication: there is nobody to compare with.
    fn admission(&mut self, trailer: &Trailer, first: bool) -> Result<usize, ProtocolError> {
        if let Some(index) = self.admissions.iter().position(|held| held.id == trailer.context) {
            return Ok(index);
        }
        let (limit, unproved) = (limits::SECURITY_CONTEXTS, limits::UNPROVED_CONTEXTS);
        if self.admissions.len() >= unproved {
            return Err(ProtocolError::SecurityContexts { limit: unproved });
        }
        if self.admissions.len() + self.channel.shields.len() >= limit {
            return Err(ProtocolError::SecurityContexts { limit });
        }
        let refused = ProtocolError::Authentication { mechanism: trailer.mechanism, level: trailer.level };
        let level = Level::of_number(trailer.level).filter(|level| *level > Level::None);
        let (Some(mechanism), Some(level)) = (security_context::mechanism(trailer.mechanism), level) else {
            return Err(refused);
        };
        let users = self.place.users.clone().or_else(|| self.place.keytab.is_some().then(nobody));
        let users = users.ok_or(refused)?;
        let mut options = self.place.options("");
        options.integrity = level.is_signed();
        options.confidentiality = level == Level::Privacy;
        let acceptor = acceptor(mechanism, users, &options).map_err(|failure| refusal(&failure, trailer))?;
        self.admissions.push(Admission {
            id: trailer.context,
            mechanism: trailer.mechanism,
            level,
            first,
            acceptor: Some(acceptor),
        });
        Ok(self.admissions.len() - 1)
    }

    /// Whether the association group is of whoever proved who it is: of the first one who did, for all its connections
    /// (MS-RPCE 3.3.1.5.6).
    fn owns_group(&self, established: &Established) -> bool {
        // Others of this connection come after its first one.
        let (Some(exporter), Some(group), true) =
            (&self.exporter, self.group, self.channel.shields.is_empty())
        else {
            return true;
        };
        exporter.associations().own(group, &self.account(&established.principal))
    }

    /// Who somebody is that proved it, whichever of the account's names was used.
    fn account(&self, principal: &Principal) -> String {
        let by_password = principal.mechanism.starts_with("NTLM");
        let users = self.place.users.as_ref().filter(|_| by_password);
        match users {
            Some(users) => users.account(&principal.domain, &principal.user),
            // Nobody else has that ticket.
            None => security_context::name(principal),
        }
    }

    /// The peer proved who it is.
    fn admit(&mut self, trailer: &Trailer, established: Established) {
        let Some(level) = Level::of_number(trailer.level) else { return };
        let authentication = security_context::authentication(established.principal.mechanism, level);
        let headers = self.channel.header_signing;
        let back = self.callback_security(&established.principal, trailer, level);
        let account = self.account(&established.principal);
        let mut shield =
            SecurityContext::new(trailer.context, trailer.mechanism, level, headers, established);
        let peer =
            Peer::admitted(self.peer.clone(), authentication).with_account(&account).with_account_by_call();
        shield.principal = account.into();
        let group = self.group.unwrap_or_default();
        shield.correspondence = self.exporter.as_ref().map(|exporter| {
            let principal = String::from_utf8_lossy(&shield.principal);
            ValueContext::new(exporter, &back, &principal, self.end, group)
        });
        self.channel.shields.push(shield);
        self.channel.events.push_back(Event::Ready(peer));
    }

    /// How references that this caller sends are called: as the place says if it has an account of its own, else as the
    /// caller's own account, which the caller's listener lets in, protected as the caller is here.
    /// A sink that a caller sends is called with the caller's own password where the table of users has it
    /// (the hash is enough for NTLM), since OPC clients let their own account in and no other.
    fn callback_security(&self, principal: &Principal, trailer: &Trailer, level: Level) -> Arc<Security> {
        if self.place.credentials.is_some() {
            return Arc::clone(&self.back);
        }
        let mut security = Security::new(level);
        let secret = |users: &Arc<dyn Users>| users.secret(&principal.domain, &principal.user);
        security.mechanism = security_context::mechanism(trailer.mechanism).unwrap_or(self.place.mechanism);
        security.credentials = self.place.users.as_ref().and_then(secret).map(|password| {
            let (domain, user) = (principal.domain.clone(), principal.user.clone());
            Arc::new(Credentials { domain, user, password })
        });
        security.hosts.clone_from(&self.place.hosts);
        Arc::new(security.for_references_of(&self.peer, &self.way))
    }
}

/// What a bind or alter_context says. Neither comes in fragments, whatever its flags are.
fn contents(header: &Header, message: &[u8]) -> Result<(Bind, Option<Trailer>), ProtocolError> {
    let kind = header.kind.word();
    let trailer = header.trailer(message)?;
    if let Some(trailer) = &trailer {
        check_pad(header, trailer)?;
    }
    let end = trailer.map_or(message.len(), |trailer| trailer.at);
    let (Pdu::Bind(bind) | Pdu::AlterContext(bind)) = Pdu::contents(header, message, end)? else {
        return Err(ProtocolError::Unexpected { kind });
    };
    if bind.contexts.is_empty() || bind.contexts.iter().any(|element| element.transfers.is_empty()) {
        return Err(ProtocolError::Empty { kind });
    }
    Ok((bind, trailer))
}

/// The padding may be what stands before it, but no more than that.
fn check_pad(header: &Header, trailer: &Trailer) -> Result<(), ProtocolError> {
    if usize::from(trailer.pad) > trailer.at.saturating_sub(HEADER + 8) {
        return Err(ProtocolError::AuthLength { length: header.auth_length });
    }
    Ok(())
}

/// The features that an element asks for in place of an interface; what else it lists means nothing.
fn features_of(element: &ContextElement) -> Option<u16> {
    element.transfers.first().and_then(Syntax::asks_features)
}

/// The fragment size of both directions: Windows answers with one number, a multiple of 8 up to 5840.
/// A client that asks for exactly `LARGE_FRAGMENT` is one of this implementation, which takes that much.
fn agree_size(bind: &Bind) -> u16 {
    let asked = bind.max_xmit.min(bind.max_recv);
    if asked == LARGE_FRAGMENT {
        return LARGE_FRAGMENT;
    }
    asked.clamp(LEAST_ASKED, FRAGMENT) & 0xfff8
}

/// Why a client whose bind breaks the rules is refused.
pub(super) fn nak_reason(breach: &ProtocolError) -> u16 {
    match breach {
        // A trailer that does not fit is read as that of another version.
        ProtocolError::Version { .. } | ProtocolError::AuthLength { .. } => nak::VERSION,
        ProtocolError::Full | ProtocolError::Contexts { .. } | ProtocolError::SecurityContexts { .. } => {
            nak::LOCAL_LIMIT
        }
        ProtocolError::Authentication { level: 2..=6, .. } => nak::AUTHENTICATION_TYPE,
        ProtocolError::Denied => nak::INVALID_CHECKSUM,
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

/// A mechanism that is not there, or a level that it cannot do, is told as such; everything else is a denial
/// without a reason.
fn refusal(failure: &Failure, trailer: &Trailer) -> ProtocolError {
    if failure.kind() == Kind::Unsupported {
        ProtocolError::Authentication { mechanism: trailer.mechanism, level: trailer.level }
    } else {
        ProtocolError::Denied
    }
}

/// No users at all, where Kerberos alone decides.
fn nobody() -> Arc<dyn Users> {
    Arc::new(UserTable::default())
}

/// Whether a peer is on this machine.
pub(super) fn is_local(peer: &PeerAddress, place: &Profile) -> bool {
    !is_tcp(place.endpoints.first()) || address_of_peer(peer).is_some_and(|address| address.is_loopback())
}
