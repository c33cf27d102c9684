//! Sessions that outlive a connection. Over HTTP each message may come by another one: what was agreed on
//! is the node's, and what is owed to a request is its connection's.
//!
//! `Reliable` is a session as one connection has it: the session itself, which may be shared, and a `ReplyQueue`
//! with what this connection owes to the request at hand. The session is locked for one question at a time, and never
//! calls back into a channel.
//!
//! `Orphans` are the other half, of clients: a session whose connection has ended is left there under its
//! destination, and the next connection that leads there takes it up, with all messages that were not
//! acknowledged.
//!
//! State: a client's session belongs to one connection, or stands among the orphans, or is over. A
//! service's session is found by its sequence as long as it has a place (`session_table`).
//!
//! Invariants:
//!
//! * Only an open session that nobody has begun to end is left, and only if each of its messages may still
//!   be repeated (`Session::orphan`).
//! * Destinations are equal if their options and their scope are: so no session goes on with another
//!   account or another service.
//! * For `KEPT` a session with calls under way is adopted only by one of those calls; afterwards by anybody
//!   who leads there.
//! * At most `MAX_SESSIONS` orphans are kept in a node; the table is locked before any session in it.

use super::session::{InboundMessage, ReplyQueue, Session};
use super::{MAX_SESSIONS, NextMessage, Outbound, Verdict, Version, control};
use crate::soap::cursor::Document;
use crate::soap::faults::FaultContents;
use crate::soap::head::Head;
use crate::soap::ids::MessageId;
use bytes::Bytes;
use everywire_model::visit::Visit;
use everywire_model::{Profile, ProfileOptions};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

/// A session, as one connection has it.
#[derive(Debug)]
pub(in crate::soap) struct Reliable {
    session: Arc<Mutex<Session>>,
    desk: ReplyQueue,
}

impl Reliable {
    pub(in crate::soap) fn new(session: Session) -> Self {
        Self::of(Arc::new(Mutex::new(session)))
    }

    pub(super) fn of(session: Arc<Mutex<Session>>) -> Self {
        Self { session, desk: ReplyQueue::default() }
    }

    /// The session, locked for as long as the answer lives.
    pub(in crate::soap) fn session(&self) -> MutexGuard<'_, Session> {
        lock(&self.session)
    }

    /// The same session, for what is owed to another message.
    pub(in crate::soap) fn apart(&self) -> Self {
        Self::of(self.share())
    }

    pub(super) fn share(&self) -> Arc<Mutex<Session>> {
        Arc::clone(&self.session)
    }

    pub(in crate::soap) fn queue(&mut self, message: Outbound) {
        let mut session = lock(&self.session);
        session.queue(message, &mut self.desk);
        session.count();
    }

    /// The next message to send.
    pub(in crate::soap) fn next(&mut self, now: Instant, waker: Option<&Waker>) -> Option<NextMessage> {
        lock(&self.session).next(now, &mut self.desk, waker)
    }

    /// Whether the request that came last gets its response when its waker is woken.
    pub(in crate::soap) fn is_awaiting(&self) -> bool {
        self.desk.owed.is_some()
    }

    /// The request that gets no answer because the session is over, and why.
    pub(in crate::soap) fn refused(&mut self) -> Option<(FaultContents, Option<MessageId>)> {
        self.desk.refused.take()
    }

    /// Takes a message.
    ///
    /// # Errors
    /// It breaks the protocol, or the session was refused.
    pub(in crate::soap) fn receive(&mut self, now: Instant, came: &InboundMessage<'_>) -> Visit<Verdict> {
        let mut session = lock(&self.session);
        let verdict = session.receive(now, came, &mut self.desk);
        session.count();
        verdict
    }
}

/// Sessions of this node's clients whose connections have ended, by where they lead: the next connection goes on with them.
#[derive(Debug, Default)]
pub(crate) struct Orphans(Mutex<HashMap<Destination, Vec<Orphan>>>);

/// Where a session leads: the options of its address, and the key of its service.
type Destination = (ProfileOptions, Bytes);

fn destination(way: &Profile) -> Destination {
    (way.options.clone(), way.options.scope(way))
}

#[derive(Debug)]
struct Orphan {
    session: Arc<Mutex<Session>>,
    /// Until when it is kept for the calls that were under way in it.
    /// `None` if there were none.
    kept: Option<Instant>,
}

/// How long a session is kept for the calls that were under way in it, from the end of its connection.
const KEPT: Duration = Duration::from_secs(60);

impl Orphans {
    /// Keeps a session, if it can go on; `awaited`: above all for those who wait for its answers. Returns whether it is kept.
    pub(in crate::soap) fn leave(
        &self,
        way: &Profile,
        reliable: &Reliable,
        now: Instant,
        awaited: bool,
    ) -> bool {
        if !reliable.session().orphan() {
            return false;
        }
        let mut destinations = lock(&self.0);
        // Those to which nobody has come back for too long, and destinations without any.
        destinations.retain(|_, orphans| {
            orphans.retain(|orphan| !lock(&orphan.session).is_forsaken(now, false));
            !orphans.is_empty()
        });
        if destinations.values().map(Vec::len).sum::<usize>() >= MAX_SESSIONS {
            return false;
        }
        let orphan = Orphan { session: reliable.share(), kept: awaited.then(|| now + KEPT) };
        destinations.entry(destination(way)).or_default().push(orphan);
        true
    }

    /// Takes up a session that leads there: the one in which this question was asked, else one for which nobody waits.
    pub(in crate::soap) fn adopt(
        &self,
        way: &Profile,
        now: Instant,
        question: Option<[u8; 16]>,
    ) -> Option<Reliable> {
        let mut destinations = lock(&self.0);
        let orphans = destinations.get_mut(&destination(way))?;
        orphans.retain(|orphan| !lock(&orphan.session).is_forsaken(now, false));
        // The one that was left last: its messages are the latest.
        let at = orphans.iter().rposition(|orphan| match &question {
            Some(question) => lock(&orphan.session).asks(question),
            None => orphan.kept.is_none_or(|kept| kept <= now),
        })?;
        Some(Reliable::of(orphans.swap_remove(at).session))
    }
}

/// Whether a message has anything of the protocol in it.
pub(in crate::soap) fn speaks(head: &Head<'_>) -> bool {
    let action = head.action.as_deref().and_then(|action| action.rsplit_once('/'));
    !head.reliable.is_empty() || action.is_some_and(|(namespace, _)| Version::of_word(namespace).is_some())
}

/// The sequence that a message is of, or about.
pub(in crate::soap) fn sequence_of(head: &Head<'_>, document: Document<'_>) -> Visit<Option<String>> {
    let headers = &head.reliable;
    let said = headers.sequence.as_ref().map(|sequence| &sequence.id).or(headers.requested.as_ref());
    if let Some(id) = said {
        return Ok(Some(id.clone()));
    }
    let action = head.action.as_deref().unwrap_or_default();
    if ["/TerminateSequence", "/CloseSequence"].iter().any(|name| action.ends_with(name)) {
        return Ok(control::identifiers(document)?.0);
    }
    Ok(None)
}

/// A panic while a session was locked leaves it as it was; other connections go on with it.
pub(super) fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
