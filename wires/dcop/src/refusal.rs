//! Sessions for what this wire does not have: they end at once, and say why.

use crate::violations::Wrong;
use bytes::BytesMut;
use everywire_model::{
    Answer, Call, CallId, Event, Failure, Handle, Profile, SendBuffer, Session, Violation,
};
use std::time::Instant;

/// A session that is over as soon as anything happens: its first deadline has passed already. It sends
/// nothing.
pub(crate) struct Refusal {
    /// What every caller is told.
    wrong: Wrong,
    /// When it was made.
    due: Instant,
    nothing: SendBuffer,
}

impl Refusal {
    pub(crate) fn new(wrong: Wrong) -> Self {
        Self { wrong, due: Instant::now(), nothing: SendBuffer::new() }
    }

    fn violation(&self) -> Violation {
        self.wrong.violation(0)
    }
}

impl Session for Refusal {
    fn receive(
        &mut self,
        _: Instant,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<(), Violation> {
        input.clear();
        handles.clear();
        Err(self.violation())
    }

    fn wanted(&self) -> usize {
        0
    }

    fn poll(&mut self) -> Option<Event> {
        None
    }

    fn transmit(&mut self) -> &mut SendBuffer {
        &mut self.nothing
    }

    fn start(&mut self, _: Instant, _: &Call<'_>) -> Result<CallId, Failure> {
        Err(self.violation().into())
    }

    fn probe(&mut self, _: Instant, _: &Profile) -> Result<CallId, Failure> {
        Err(self.violation().into())
    }

    fn answer(&mut self, _: CallId, _: Answer<'_>) -> Result<(), Failure> {
        Ok(())
    }

    fn cancel(&mut self, _: CallId) {}

    fn close(&mut self) {}

    fn disconnected(&mut self, _: &Failure) {}

    fn deadline(&self) -> Option<Instant> {
        Some(self.due)
    }

    fn expire(&mut self, _: Instant) -> Result<(), Violation> {
        Err(self.violation())
    }

    fn outstanding(&self) -> usize {
        0
    }
}
