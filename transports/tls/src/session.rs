//! A session of TLS that carries the session of a wire.
//!
//! States: *handshake*: the session above is not made, nothing of the wire comes or goes; *open*: it is made, and its events come
//! out; *parting*: this side said that nothing follows, and TLS says so once the session above has sent its last byte.
//!
//! Invariants: bytes of the session above stay in its own buffer until their encrypted form has left this side, so that it knows
//! which of its messages the peer cannot have whole; what is encrypted is sent before more of it is; what TLS says on its own
//! account (`behind`) stands at the end of the buffer and belongs to no message.

use crate::Channel;
use crate::violations::ProtocolError;
use bytes::BytesMut;
use everywire_model::layered::{MakeSession, PeerIdentity};
use everywire_model::{
    Answer, Call, CallId, Completed, Emission, Event, Failure, Handle, Initiator, Kind, Peer, Profile,
    SendBuffer, Session, SignalFilter, Violation,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Buffers above this size are given back when nothing is in them.
const KEEP: usize = 64 << 10;

/// What a connection with TLS has to know of the wire above before that has a session.
#[derive(Debug, Clone, Copy, Default)]
pub struct HandshakeTerms {
    /// How long the handshake may take; without it whoever drives the session says when it took too long.
    pub within: Option<Duration>,
    /// Whether the session above carries one call at a time.
    pub one_at_a_time: bool,
}

/// See the module.
pub struct TlsSession {
    /// Or why there is none: then nothing comes or goes.
    channel: Result<Channel, Failure>,
    /// Makes the session above once the peer is known; it is taken then.
    make: Option<MakeSession>,
    /// The session above, once it is made: what the bytes are for.
    above: Option<Box<dyn Session>>,
    /// What was proved to it.
    proof: Option<PeerIdentity>,
    /// What the wire wants of the handshake.
    terms: HandshakeTerms,
    /// When the handshake began.
    begun: Instant,
    /// Decrypted, and not taken by the session above.
    plain: BytesMut,
    /// Encrypted, and not yet sent.
    out: SendBuffer,
    /// Bytes at the front of the buffer of the session above whose encrypted form is in `out`.
    sealed: usize,
    /// Bytes in the buffer of the session above, as it was last looked at.
    above_len: usize,
    /// Bytes at the end of `out` that are of no message.
    behind: usize,
    /// This side has said that nothing follows.
    parting: bool,
    /// TLS has said so.
    said: bool,
    /// The end was told, or nobody asks for it.
    closed: bool,
    /// Why the handshake failed: it knows what to try.
    refusal: Option<Failure>,
    /// There is no place for this peer, for this reason.
    turned_away: Option<Failure>,
    /// Octets that came, for places in violations.
    received: u64,
}

impl TlsSession {
    /// Over a channel that has said nothing yet. One that cannot begin ends the session at once.
    pub fn new(channel: Result<Channel, Failure>, terms: HandshakeTerms, make: MakeSession) -> Self {
        let mut session = Self {
            channel,
            make: Some(make),
            above: None,
            proof: None,
            terms,
            begun: Instant::now(),
            plain: BytesMut::new(),
            out: SendBuffer::new(),
            sealed: 0,
            above_len: 0,
            behind: 0,
            parting: false,
            said: false,
            closed: false,
            refusal: None,
            turned_away: None,
            received: 0,
        };
        session.pump();
        session
    }

    /// The session above, for what can be asked of it only when the peer is known.
    fn open(&mut self) -> Result<&mut Box<dyn Session>, Failure> {
        match (&mut self.above, &self.channel) {
            (Some(session), _) => Ok(session),
            (None, Err(failure)) => Err(failure.clone()),
            (None, Ok(_)) => {
                let what = "the handshake of TLS is not over";
                Err(Failure::new(Kind::Unreachable, Initiator::Here, what).with_completed(Completed::No))
            }
        }
    }

    /// Makes the session above, once the peer is known.
    fn admit(&mut self) {
        if let Ok(channel) = &self.channel
            && channel.is_established()
            && let Some(make) = self.make.take()
        {
            let proof = PeerIdentity {
                account: channel.peer_identity().map(Arc::from),
                authentication: channel.authentication(),
            };
            let mut session = make(&proof);
            if let Some(why) = self.turned_away.take() {
                self.parting = !session.turn_away(&why);
            }
            (self.above, self.proof) = (Some(session), Some(proof));
        }
    }

    /// Forgets what has left.
    fn settle(&mut self) {
        if self.sealed > 0 && self.out.len() <= self.behind {
            let sealed = std::mem::take(&mut self.sealed);
            self.above_len = self.above_len.saturating_sub(sealed);
            if let Some(session) = &mut self.above {
                let buffer = session.transmit();
                // A session that has ended may have thrown them away.
                buffer.consume(sealed.min(buffer.len()));
            }
        }
    }

    /// Puts into the buffer what has to go.
    fn pump(&mut self) {
        self.settle();
        let Ok(channel) = &mut self.channel else { return };
        let mut ends = self.parting;
        if let Some(session) = &mut self.above {
            let plain = session.transmit();
            if self.sealed == 0 && !plain.is_empty() && channel.is_established() {
                match channel.seal(plain, &mut self.out) {
                    Ok(sealed) => (self.sealed, self.behind) = (sealed, 0),
                    // The keys are used up: nothing goes any more, and the peer will notice.
                    Err(failure) => self.refusal = Some(failure),
                }
            }
            self.above_len = plain.len();
            ends &= plain.len() == self.sealed && !session.is_closing();
        }
        if ends && !self.said {
            self.said = true;
            channel.close();
        }
        let before = self.out.len();
        if let Err(failure) = channel.flush(&mut self.out) {
            self.refusal = Some(failure);
        }
        self.behind += self.out.len() - before;
    }

    /// Bytes of the session above whose encrypted form has not left this side.
    fn not_left(&self) -> usize {
        let has_left = self.out.len() <= self.behind;
        self.above_len.saturating_sub(if has_left { self.sealed } else { 0 })
    }

    #[cold]
    fn fail(&mut self, failure: Failure) -> Violation {
        let violation = ProtocolError::of(&failure).violation(self.received);
        self.refusal = Some(failure);
        violation
    }

    /// What the layer proved, where the wire asks for no proof.
    fn introduce(&self, peer: Peer) -> Peer {
        let Some(proof) = &self.proof else { return peer };
        match (&peer.account, &proof.account) {
            (None, Some(account)) => Peer::admitted(peer.address, proof.authentication).with_account(account),
            (None, None) if peer.authentication == "none" => {
                Peer::admitted(peer.address, proof.authentication)
            }
            _ => peer,
        }
    }
}

impl Session for TlsSession {
    fn receive(
        &mut self,
        now: Instant,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<(), Violation> {
        // No operating-system handle travels in a record.
        handles.clear();
        self.received += input.len() as u64;
        let heard = match &mut self.channel {
            Ok(channel) => channel.receive(input, &mut self.plain),
            Err(failure) => Err(failure.clone()),
        };
        self.admit();
        let mut taken = Ok(());
        if let Some(session) = &mut self.above
            && !self.plain.is_empty()
        {
            taken = session.receive(now, &mut self.plain, handles);
            if self.plain.is_empty() && self.plain.capacity() > KEEP {
                self.plain = BytesMut::new();
            }
        }
        self.pump();
        taken.and_then(|()| heard.map_err(|failure| self.fail(failure)))
    }

    fn wanted(&self) -> usize {
        self.above.as_deref().map_or(0, Session::wanted)
    }

    fn poll(&mut self) -> Option<Event> {
        self.settle();
        match self.above.as_mut()?.poll() {
            Some(Event::Ready(peer)) => Some(Event::Ready(self.introduce(peer))),
            None if self.parting && self.turned_away.is_none() && !self.closed => {
                // A peer for whom there is no place was told so, in the wire's words.
                self.closed = self.said && self.out.is_empty();
                self.closed.then_some(Event::Closed)
            }
            other => other,
        }
    }

    fn transmit(&mut self) -> &mut SendBuffer {
        self.pump();
        &mut self.out
    }

    fn unsent(&mut self) -> usize {
        self.pump();
        // What is sealed counts as it goes.
        self.out.len() + self.above_len.saturating_sub(self.sealed)
    }

    fn start(&mut self, now: Instant, call: &Call<'_>) -> Result<CallId, Failure> {
        self.open()?.start(now, call)
    }

    fn probe(&mut self, now: Instant, profile: &Profile) -> Result<CallId, Failure> {
        self.open()?.probe(now, profile)
    }

    fn emit(&mut self, now: Instant, emission: &Emission<'_>) -> Result<(), Failure> {
        self.open()?.emit(now, emission)
    }

    fn subscribe(
        &mut self,
        now: Instant,
        profile: &Profile,
        filter: SignalFilter<'_>,
    ) -> Result<CallId, Failure> {
        self.open()?.subscribe(now, profile, filter)
    }

    fn unsubscribe(&mut self, id: CallId) {
        if let Some(session) = &mut self.above {
            session.unsubscribe(id);
        }
    }

    fn answer(&mut self, id: CallId, answer: Answer<'_>) -> Result<(), Failure> {
        self.settle();
        self.open()?.answer(id, answer)
    }

    fn cancel(&mut self, id: CallId) {
        if let Some(session) = &mut self.above {
            session.cancel(id);
        }
    }

    fn close(&mut self) {
        if let Some(session) = &mut self.above {
            session.close();
        }
        self.parting = true;
        // Whoever closes looks for no event that says so.
        self.closed = true;
        self.pump();
    }

    fn turn_away(&mut self, why: &Failure) -> bool {
        match &mut self.above {
            Some(session) => session.turn_away(why),
            None => {
                self.turned_away = Some(why.clone());
                true
            }
        }
    }

    fn held(&self) -> usize {
        self.above.as_deref().map_or(0, Session::held)
            + self.plain.len()
            + self.not_left()
            + self.channel.as_ref().map_or(0, Channel::held)
    }

    fn is_closing(&self) -> bool {
        self.above.as_deref().is_some_and(Session::is_closing)
    }

    fn disconnected(&mut self, failure: &Failure) {
        self.settle();
        if let Some(session) = &mut self.above {
            session.disconnected(failure);
        }
    }

    fn again(&self) -> Option<Profile> {
        self.above.as_ref()?.again()
    }

    fn granted(&self, asked: &Profile) -> Option<Profile> {
        self.above.as_ref()?.granted(asked)
    }

    fn refusal(&mut self) -> Option<Failure> {
        let own = self.refusal.take();
        own.or_else(|| self.above.as_mut()?.refusal())
    }

    fn is_routed(&self) -> bool {
        self.above.as_deref().is_some_and(Session::is_routed)
    }

    fn one_at_a_time(&self) -> bool {
        self.above.as_deref().map_or(self.terms.one_at_a_time, Session::one_at_a_time)
    }

    fn peer_serves(&self) -> bool {
        self.above.as_deref().is_some_and(Session::peer_serves)
    }

    fn read_paused(&self) -> bool {
        self.above.as_deref().is_some_and(Session::read_paused)
    }

    fn deadline(&self) -> Option<Instant> {
        match &self.above {
            Some(session) => session.deadline(),
            None if self.channel.is_err() => Some(self.begun),
            None => self.terms.within.map(|within| self.begun + within),
        }
    }

    fn postpone(&mut self, by: Duration) {
        if let Some(session) = &mut self.above {
            session.postpone(by);
        }
    }

    fn expire(&mut self, now: Instant) -> Result<(), Violation> {
        if let Some(session) = &mut self.above {
            return session.expire(now);
        }
        if let Err(failure) = &self.channel {
            let failure = failure.clone();
            return Err(self.fail(failure));
        }
        match self.terms.within {
            Some(within) if now >= self.begun + within => {
                Err(ProtocolError::Slow { seconds: within.as_secs() }.violation(self.received))
            }
            _ => Ok(()),
        }
    }

    fn outstanding(&self) -> usize {
        self.above.as_deref().map_or(0, Session::outstanding)
    }
}
