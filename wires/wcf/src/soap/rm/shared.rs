//! Sessions that outlive a connection. Over HTTP each message may come by another one: what was agreed on is the node's, and
//! what is owed to a request is its connection's.

use super::session::{Came, Desk, Session};
use super::{Next, Outbound, Verdict, Version, control};
use crate::dictionary::Words;
use crate::soap::Dialect;
use crate::soap::head::Head;
use crate::soap::ids::MessageId;
use crate::values::ReaderQuotas;
use bytes::Bytes;
use everywire_model::visit::Visit;
use everywire_model::{CallId, Failure};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Sessions over HTTP at one node.
const MAX_SESSIONS: usize = 1024;

/// A session, as one connection has it.
#[derive(Debug)]
pub(in crate::soap) struct Reliable {
    session: Arc<Mutex<Session>>,
    desk: Desk,
}

impl Reliable {
    /// The side that opened the channel.
    pub(in crate::soap) fn asking(dialect: Dialect, in_turns: bool) -> Self {
        Self::of(Arc::new(Mutex::new(Session::asking(dialect, in_turns))))
    }

    /// The side that accepted it, when the other begins a session.
    pub(in crate::soap) fn asked(dialect: Dialect, in_turns: bool) -> Self {
        Self::of(Arc::new(Mutex::new(Session::asked(dialect, in_turns))))
    }

    fn of(session: Arc<Mutex<Session>>) -> Self {
        Self { session, desk: Desk::default() }
    }

    /// Whether a message begins a session.
    pub(in crate::soap) fn begins(head: &Head<'_>) -> bool {
        Session::begins(head)
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        lock(&self.session)
    }

    /// Whether the messages of this sequence are its own.
    pub(in crate::soap) fn is_of(&self, id: &str) -> bool {
        self.session().id() == Some(id)
    }

    /// Whether the messages of this sequence are its answers.
    pub(in crate::soap) fn answers_as(&self, id: &str) -> bool {
        self.session().answers_as() == Some(id)
    }

    /// The same session, for what is owed to another message.
    pub(in crate::soap) fn apart(&self) -> Self {
        Self::of(Arc::clone(&self.session))
    }

    pub(in crate::soap) fn queue(&mut self, message: Outbound) {
        lock(&self.session).queue(message, &mut self.desk);
    }

    pub(in crate::soap) fn close(&mut self) {
        self.session().close();
    }

    /// Something went wrong that another connection does not mend.
    pub(in crate::soap) fn give_up(&mut self) {
        self.session().give_up();
    }

    /// Whether neither side says anything more.
    pub(in crate::soap) fn is_over(&self) -> bool {
        self.session().is_over()
    }

    /// Why it is over, if it was the peer that ended it.
    pub(in crate::soap) fn ended(&self) -> Option<Failure> {
        self.session().ended().cloned()
    }

    /// Whether the message of a call still waits to go.
    pub(in crate::soap) fn holds(&self, call: CallId) -> bool {
        self.session().holds(call)
    }

    /// When something is due.
    pub(in crate::soap) fn deadline(&self) -> Option<Instant> {
        self.session().deadline()
    }

    /// Time has passed.
    ///
    /// # Errors
    /// The peer is gone, or a message stays away.
    pub(in crate::soap) fn expire(&mut self, now: Instant) -> Result<(), Failure> {
        self.session().expire(now)
    }

    /// The next message to send.
    pub(in crate::soap) fn next(&mut self, now: Instant) -> Option<Next> {
        lock(&self.session).next(now, &mut self.desk)
    }

    /// Takes a message.
    ///
    /// # Errors
    /// It breaks the protocol, or the session was refused.
    pub(in crate::soap) fn receive(&mut self, now: Instant, came: &Came<'_>) -> Visit<Verdict> {
        lock(&self.session).receive(now, came, &mut self.desk)
    }

    /// Nobody waits for a call any more; once it has its number it is repeated all the same.
    pub(in crate::soap) fn cancel(&mut self, call: CallId) {
        self.session().cancel(call);
    }
}

/// Sessions of this node's clients whose connections have ended, by where they lead: the next connection goes on with them.
#[derive(Debug, Default)]
pub(crate) struct Orphans(Mutex<HashMap<Bytes, Vec<Arc<Mutex<Session>>>>>);

impl Orphans {
    /// Keeps a session, if it can go on.
    pub(in crate::soap) fn leave(&self, lane: Bytes, reliable: &Reliable, now: Instant) {
        if !reliable.session().orphan() {
            return;
        }
        let mut lanes = lock(&self.0);
        lanes.retain(|_, sessions| {
            sessions.retain(|session| !lock(session).is_forsaken(now, false));
            !sessions.is_empty()
        });
        if lanes.values().map(Vec::len).sum::<usize>() < MAX_SESSIONS {
            lanes.entry(lane).or_default().push(Arc::clone(&reliable.session));
        }
    }

    /// Takes up a session that leads there.
    pub(in crate::soap) fn adopt(&self, lane: &Bytes, now: Instant) -> Option<Reliable> {
        let mut lanes = lock(&self.0);
        let sessions = lanes.get_mut(lane)?;
        sessions.retain(|session| !lock(session).is_forsaken(now, false));
        sessions.pop().map(Reliable::of)
    }
}

/// The sessions over HTTP at one node, by the identifiers of their clients' sequences, which nobody can guess.
#[derive(Debug, Default)]
pub(crate) struct Sequences(Mutex<HashMap<String, Arc<Mutex<Session>>>>);

impl Sequences {
    /// The session of this sequence.
    pub(in crate::soap) fn find(&self, id: &str) -> Option<Reliable> {
        lock(&self.0).get(id).cloned().map(Reliable::of)
    }

    /// The session that this message asked for before.
    pub(in crate::soap) fn asked_by(&self, id: &MessageId) -> Option<Reliable> {
        let sessions = lock(&self.0);
        let known = sessions.values().find(|session| lock(session).was_asked_by(id));
        known.cloned().map(Reliable::of)
    }

    /// The session whose answers are of this sequence.
    pub(in crate::soap) fn answering_as(&self, id: &str) -> Option<Reliable> {
        let sessions = lock(&self.0);
        let known = sessions.values().find(|session| lock(session).answers_as() == Some(id));
        known.cloned().map(Reliable::of)
    }

    /// Whether there is room for another one; forgets those to which nobody will come back, and if need be the one that has
    /// waited longest for its first message.
    pub(in crate::soap) fn has_room(&self, now: Instant) -> bool {
        let mut sessions = lock(&self.0);
        let crowded = sessions.len() >= MAX_SESSIONS / 2;
        sessions.retain(|_, session| !lock(session).is_forsaken(now, crowded));
        if sessions.len() < MAX_SESSIONS {
            return true;
        }
        let unused = sessions.iter().filter_map(|(id, session)| Some((lock(session).unused_since()?, id)));
        match unused.min().map(|(_, id)| id.clone()) {
            Some(id) => sessions.remove(&id).is_some(),
            None => false,
        }
    }

    /// Keeps a session that was granted.
    pub(in crate::soap) fn keep(&self, reliable: &Reliable) {
        let id = reliable.session().id().map(str::to_owned);
        if let Some(id) = id {
            lock(&self.0).insert(id, Arc::clone(&reliable.session));
        }
    }
}

/// Whether a message has anything of the protocol in it.
pub(in crate::soap) fn speaks(head: &Head<'_>) -> bool {
    let action = head.action.as_deref().and_then(|action| action.rsplit_once('/'));
    !head.reliable.is_empty() || action.is_some_and(|(namespace, _)| Version::of(namespace).is_some())
}

/// The sequence that a message is of, or about.
pub(in crate::soap) fn sequence_of(
    head: &Head<'_>,
    dialect: Dialect,
    document: &[u8],
    words: &Words,
    quotas: &ReaderQuotas,
) -> Visit<Option<String>> {
    let headers = &head.reliable;
    let said = headers.sequence.as_ref().map(|sequence| &sequence.id).or(headers.requested.as_ref());
    if let Some(id) = said {
        return Ok(Some(id.clone()));
    }
    let action = head.action.as_deref().unwrap_or_default();
    if ["/TerminateSequence", "/CloseSequence"].iter().any(|name| action.ends_with(name)) {
        return Ok(control::identifiers(dialect, document, words, quotas)?.0);
    }
    Ok(None)
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
