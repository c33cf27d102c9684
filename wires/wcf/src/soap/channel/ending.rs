//! The end of a channel, and of a reliable session on it.

use super::resuming;
use super::state::{Side, SoapChannel};
use crate::settings::Settings;
use crate::soap::Dialect;
use crate::soap::rm::{Reliable, Session};
use crate::wire_state::Node;
use everywire_model::{
    Answer, CallId, Completed, Config, Event, Failure, Initiator, Kind, Outcome, SendBuffer,
};
use std::time::Instant;

/// The reliable session of a client: one that has lost its connection, or a new one.
pub(super) fn session(dialect: Dialect, config: &Config, settings: &Settings) -> Reliable {
    let http = settings.binding.is_http();
    let node = config.wire_state.as_ref().filter(|_| http).and_then(Node::of);
    let question = resuming::question(&config.profile);
    let orphan = node.and_then(|node| node.orphans.adopt(&config.profile, Instant::now(), question));
    orphan.unwrap_or_else(|| Reliable::new(Session::asking(dialect, http)))
}

impl SoapChannel {
    /// The channel ended: outstanding calls come out of `poll` as failures. Those of the peer that came in a reliable session over
    /// HTTP may still be answered: the session keeps their answers until they are asked for again.
    pub fn disconnected(&mut self, failure: &Failure) {
        // Calls whose messages have left can go on over the next connection; they are taken out before all
        // others fail.
        let under_way = if self.side == Side::Client { self.under_way() } else { Vec::new() };
        self.fail_all(failure);
        let apart = &self.apart;
        // The others can be answered by nobody any more.
        self.serving.retain(|id| apart.iter().any(|(call, _)| *call == id));
        self.own.clear();
        self.before = None;
        if self.side == Side::Client {
            self.leave_for_next(under_way, failure);
        } else {
            self.reliable = None;
        }
    }

    /// A call of the peer was never begun, and never will be: who asks for its answer again is told so.
    #[cold]
    pub fn drop_call(&mut self, id: CallId) {
        let what = "the connection that brought the call ended before its turn came: nothing of it was done";
        let failure = Failure::new(Kind::Busy, Initiator::Peer, what).with_completed(Completed::No);
        // What cannot be said is lost with the connection.
        let _ = self.answer(id, Answer::Failed(&failure), &mut SendBuffer::new());
    }

    /// One outstanding call failed for reasons outside the envelope.
    pub fn fail(&mut self, id: CallId, failure: Failure) {
        if self.waiting.remove(id).is_some() || self.has_arrived(id) {
            self.events.push_back(Event::Reply { id, outcome: Outcome::Failed(failure) });
        }
    }

    /// Why the reliable session is over, if the peer ended it: its calls have failed, and no other can begin on this channel.
    /// `None` while it goes on, and where there is none.
    #[inline]
    pub fn ended(&self) -> Option<Failure> {
        self.session()?.ended().cloned()
    }

    /// Whether there is a reliable session.
    #[inline]
    pub fn is_reliable(&self) -> bool {
        self.reliable.is_some()
    }

    /// Whether a reliable session that was closed has still to be asked for, or has messages under way.
    pub fn is_parting(&self) -> bool {
        self.session().is_some_and(|session| session.is_parting())
    }

    /// Why no call may begin in the reliable session.
    #[inline]
    pub(super) fn closed_to_calls(&self) -> Option<Failure> {
        let session = self.session()?;
        session.ended().cloned().or_else(|| session.refuses(self.clock))
    }

    /// The reliable session is not to be gone on with, over whichever connection.
    pub fn give_up(&mut self) {
        if let Some(mut session) = self.session() {
            session.give_up();
        }
    }

    /// Whether the message that begins a call still waits for the reliable session to let it go.
    pub fn is_held(&self, id: CallId) -> bool {
        self.session().is_some_and(|session| session.holds(id))
    }

    /// Fails all calls: what never left can be tried again.
    pub(super) fn fail_all(&mut self, failure: &Failure) {
        let calls: Vec<CallId> =
            self.waiting.drain().map(|(id, _)| id).chain(self.telling.drain(..)).collect();
        for id in calls {
            let completed = if self.is_held(id) { Completed::No } else { Completed::Maybe };
            let failure = failure.clone().with_completed(completed);
            self.events.push_back(Event::Reply { id, outcome: Outcome::Failed(failure) });
        }
    }
}
