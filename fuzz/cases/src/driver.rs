//! A session under hostile octets: they come in pieces, calls that they make are answered or not, time passes, and what is sent leaves.
//! A case adds what its wire alone has, between the steps.

use bytes::BytesMut;
use everywire_model::visit::Nothing;
use everywire_model::{
    Answer, Call, Event, Expects, Failure, Handle, Initiator, Kind, Method, Profile, Session,
};
use std::time::{Duration, Instant};

/// Octets as steps: one says how long the piece behind it is, in units of `unit` octets, and what is done with it.
pub(crate) fn steps(mut data: &[u8], unit: usize) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (step, rest) = data.split_first()?;
        let (piece, rest) = rest.split_at((usize::from(*step) * unit).min(rest.len()));
        data = rest;
        Some((*step, piece))
    })
}

/// Drives a session.
pub(crate) struct Driver<'s> {
    pub(crate) session: &'s mut dyn Session,
    /// What came and was not taken.
    pub(crate) input: BytesMut,
    /// What came beside it.
    pub(crate) handles: Vec<Handle>,
    pub(crate) now: Instant,
    /// A peer cannot make the session wait for more octets.
    most: usize,
}

impl<'s> Driver<'s> {
    /// Before the first octet but those of `opening`, behind which hostile ones come.
    pub(crate) fn new(session: &'s mut dyn Session, opening: &[u8], most: usize) -> Self {
        let (input, now) = (BytesMut::from(opening), Instant::now());
        Self { session, input, handles: Vec::new(), now, most }
    }

    /// A piece comes; whether the session goes on.
    pub(crate) fn receive(&mut self, piece: &[u8]) -> bool {
        self.input.extend_from_slice(piece);
        let goes_on = self.session.receive(self.now, &mut self.input, &mut self.handles).is_ok();
        let wanted = self.session.wanted();
        assert!(!goes_on || wanted <= self.most, "{wanted} bytes wanted");
        goes_on
    }

    /// Looks at what happened; a call is answered with a failure, with nothing, or not at all, as the step says.
    pub(crate) fn poll(&mut self, step: u8, mut look: impl FnMut(&Event)) {
        let failure = Failure::new(Kind::Internal, Initiator::Here, "fuzz");
        while let Some(event) = self.session.poll() {
            look(&event);
            // An answer that cannot be sent is the caller's loss only.
            drop(match event {
                Event::Call(call) if step.is_multiple_of(3) => {
                    self.session.answer(call.id, Answer::Failed(&failure))
                }
                Event::Call(call) if step % 3 == 1 => self.session.answer(call.id, Answer::Done(&Nothing)),
                Event::Probe { id, .. } => self.session.answer(id, Answer::Done(&Nothing)),
                _ => Ok(()),
            });
        }
    }

    /// Calls without arguments, and withdraws the call at once if it is `withdrawn`.
    pub(crate) fn call_or_cancel(
        &mut self,
        profile: &Profile,
        method: Method<'_>,
        expects: Expects,
        withdrawn: bool,
    ) {
        let call = Call { profile, method, arguments: &Nothing, expects };
        if let Some(id) = self.session.start(self.now, &call).ok().filter(|_| withdrawn) {
            self.session.cancel(id);
        }
    }

    /// Time passes, and what was written leaves; whether the session goes on.
    pub(crate) fn wait(&mut self, time: Duration) -> bool {
        self.now += time;
        let is_due = self.session.deadline().is_some_and(|deadline| deadline <= self.now);
        if is_due && self.session.expire(self.now).is_err() {
            return false;
        }
        let sent = self.session.transmit().len();
        self.session.transmit().consume(sent);
        true
    }

    /// The connection ends.
    pub(crate) fn end(self) {
        self.session.disconnected(&Failure::new(Kind::Unreachable, Initiator::Peer, "over"));
        while self.session.poll().is_some() {}
    }
}
