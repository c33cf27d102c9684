//! Ends: goodbye, errors, lost connections (CORBA 3.3 part 2, sections 9.4.7, 9.4.8 and 9.5.1).
//!
//! What a caller may conclude differs. After CloseConnection no request without an answer has run, so each
//! may be tried again (`Completed::No`). After MessageError, or when the connection ends without a word,
//! nobody knows (`Completed::Maybe`).
//!
//! Both messages have the version of the connection's requests (`GiopSession::minor`): a peer that reads no other
//! would answer another by MessageError.

use crate::frame::{self, Header, MessageKind};
use crate::session::{GiopSession, Role, State};
use crate::violations::ProtocolError;
use everywire_model::{Completed, Event, Failure, Initiator, Kind};

impl GiopSession {
    /// Tells the peer that this side closes: to the peer that means that nothing of what was not answered has
    /// begun, and it may ask again elsewhere (sections 9.4.7 and 9.5.1.1). So it is not said while a call is
    /// served: then the connection ends without a word, and nobody knows whether that call ran. Calls that
    /// this side has sent stay in `waiting`; they fail when the link reports that the connection has ended.
    pub(crate) fn say_goodbye(&mut self) {
        if self.state == State::Open {
            // Before 1.2 only servers say goodbye (section 9.4.1).
            if self.serving.is_empty() && (self.minor >= 2 || self.role == Role::Accepting) {
                frame::put(self.out.flat(), self.minor, MessageKind::CloseConnection);
            }
            self.state = State::Closed;
            self.due.stop();
            self.missing = 0;
        }
    }

    /// Tells the peer that its message was not understood. After it the connection ends, by a violation of
    /// the caller.
    pub(crate) fn send_error(&mut self) {
        if self.state == State::Open {
            frame::put(self.out.flat(), self.minor, MessageKind::MessageError);
        }
    }

    /// Goodbye of the peer: what it did not answer it did not execute either. Answers to calls that this side
    /// still serves are dropped: the peer reads no more.
    pub(crate) fn goodbye_in(&mut self, header: &Header) -> Result<(), ProtocolError> {
        no_body(header)?;
        self.state = State::Closed;
        let what = "the peer closed the connection before it executed the call";
        let failure = Failure::new(Kind::Unreachable, Initiator::Peer, what)
            .with_hint("try again: the call was not executed");
        self.fail_all(&failure);
        self.events.push_back(Event::Closed);
        Ok(())
    }

    /// The peer did not understand a message of this side.
    pub(crate) fn error_in(&mut self, header: &Header) -> Result<(), ProtocolError> {
        no_body(header)?;
        self.state = State::Closed;
        let what = "the peer says it got a message it does not understand";
        let failure =
            Failure::new(Kind::Violation, Initiator::Peer, what).with_completed(Completed::Maybe).with_hint(
                "check that the peer speaks the GIOP version of the reference, and its limit of message size",
            );
        self.fail_all(&failure);
        self.events.push_back(Event::Closed);
        Ok(())
    }

    /// The connection ended without goodbye: nobody knows which calls ran. Calls that are being served lose
    /// their entries, so late answers to them are dropped.
    pub(crate) fn lost(&mut self, failure: &Failure) {
        let failure = failure.clone().with_completed(Completed::Maybe);
        self.fail_all(&failure);
        self.serving.clear();
        self.withdrawn = 0;
        self.broken();
    }
}

/// CloseConnection and MessageError are a header alone.
fn no_body(header: &Header) -> Result<(), ProtocolError> {
    match header.size {
        0 => Ok(()),
        bytes => Err(ProtocolError::Trailing { kind: header.kind.word(), bytes: bytes as usize }),
    }
}
