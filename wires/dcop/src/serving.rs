//! Calls that come, and their answers.
//!
//! A program of KDE's waits in one call at a time; what it calls meanwhile belongs to the same call tree and
//! has the same key, and it takes the first answer that comes for that of the call it made first. So before
//! an answer overtakes an earlier call of the same sender and key, that call is told to wait
//! (`DCOPReplyWait`), and gets its answer as a `DCOPReplyDelayed`. Callers that give each call a key of its
//! own, as this side does, need nothing of that.
//!
//! States of a call: it is in `serving`, by its serial, from `enter` to `leave`; between the two it may be
//! announced. Calls with the same key form a chain, the latest first (`chains`). Invariants: a chain has as
//! many calls as `Chain::open` says and is removed with the last one; at most `Limits::outstanding` calls are
//! open, and at most `CALL_DEPTH` senders stand behind each other in one tree.
//!
//! What comes is another program's: a message that does not decode fails alone (`put_unread`). A connection
//! that is only for calling serves nobody, and refuses calls.

use crate::ice::minor;
use crate::inbound_calls::{Chain, InboundCall, RequestKind};
use crate::limits::{CALL_DEPTH, FIRST_KEY};
use crate::names::Head;
use crate::passing;
use crate::request_templates::CallHead;
use crate::session::DcopSession;
use crate::sink::{StreamSink, TypeOutput};
use crate::standard::{self, DEFAULT, SEARCH};
use crate::strings::{StringReader, put_data, put_name, put_nullable};
use crate::values::{NAME, says_yes};
use bytes::{Buf, Bytes};
use everywire_model::{
    Answer, CallId, Completed, Context, Encode, Event, Expects, Failure, Incoming, Purpose, Visit,
};
use std::sync::Arc;

/// Whether a search is for one object of several that the id can mean: somebody who knows the objects has to answer.
/// The application as such, and what its default object says, are no question of which.
fn is_search(came: &CallHead) -> bool {
    came.object.ends_with(b"*") || (came.object == DEFAULT && came.function.is_empty())
}

/// The kind of an answer, and what it begins with: the names, and the number under which it was announced.
fn front(came: &CallHead, announced: Option<i32>) -> (u8, Vec<u8>) {
    let mut front = came.back.clone();
    match announced {
        None => (minor::REPLY, front),
        Some(number) => {
            front.extend_from_slice(&number.to_be_bytes());
            (minor::REPLY_DELAYED, front)
        }
    }
}

impl DcopSession {
    /// A call, a send or a search of somebody behind the server. Sends may also be signals that this side
    /// subscribed to, or news of the server.
    pub(crate) fn called(&mut self, kind: u8, key: u32, mut payload: Bytes) {
        let Ok((came, front)) = self.came.read(&self.name, &payload) else {
            return self.put_unread(kind, key, &payload);
        };
        let mut walk = StringReader { bytes: &payload, pos: front };
        let Ok(data) = walk.data() else { return self.put_unread(kind, key, &payload) };
        payload.truncate(data.end);
        payload.advance(data.start);
        if kind == minor::SEND {
            if let Some(slot) = came.slot {
                self.heard(slot, &came, payload);
                return;
            }
            if came.object.is_empty() && came.sender == *crate::address::SERVER {
                self.notified_of(&came.function, &payload);
                return;
            }
        }
        if self.purpose != Purpose::Serving {
            // This connection is for calling: nobody is there to answer.
            if kind != minor::SEND {
                self.put_failed(key, &came);
            }
            return;
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        let incoming = |operation, body, expects| {
            let (sender, key, interface) = (came.sender.clone(), came.object.clone(), Bytes::new());
            Incoming { id: CallId(serial), sender, key, interface, operation, body, expects }
        };
        if kind != minor::SEND {
            let asks = match kind {
                minor::FIND if is_search(&came) => RequestKind::Which,
                minor::FIND if came.function.is_empty() => RequestKind::Object,
                minor::FIND => RequestKind::Yes,
                _ => RequestKind::Results,
            };
            if asks == RequestKind::Object && came.object.is_empty() {
                // The application as such is here.
                self.put_found(key, &came, None, &came.object);
                return;
            }
            if !self.enter(serial, key, &came, asks) {
                self.put_failed(key, &came);
                return;
            }
            if asks == RequestKind::Object {
                let key = came.object.clone();
                let body = self.body(payload, Context::default());
                let asked = Some(Box::new(incoming(Bytes::new(), body, Expects::Reply)));
                self.events.push_back(Event::Probe { id: CallId(serial), key, type_id: None, asked });
                return;
            }
        }
        let (operation, context) = match kind {
            minor::FIND if is_search(&came) => {
                let operation = [SEARCH, &came.function[..]].concat();
                let context = (&*operation).into();
                (operation.into(), context)
            }
            _ => (came.function.clone(), came.context.clone()),
        };
        let body = self.body(payload, context);
        let expects = if kind == minor::SEND { Expects::Nothing } else { Expects::Reply };
        self.events.push_back(Event::Call(Box::new(incoming(operation, body, expects))));
    }

    /// Notes a call; `false` if too many are open, in all or in its call tree. `serial` is how the runtime
    /// will know it.
    fn enter(&mut self, serial: u64, key: u32, came: &Arc<CallHead>, asks: RequestKind) -> bool {
        if self.serving.len() >= self.limits.outstanding {
            return false;
        }
        let chain = self.chains.entry(key).or_insert(Chain { last: 0, open: 0, full: false });
        let earlier = chain.last;
        // Several calls of one sender under one key stand side by side. Another sender knows the key from being called in
        // the same tree: its call stands behind.
        let depth = match self.serving.get(&earlier) {
            Some(open) => open.depth + u32::from(open.came.sender != came.sender),
            None => 1,
        };
        chain.full |= depth > CALL_DEPTH && key >= FIRST_KEY;
        if chain.full {
            return false;
        }
        chain.last = serial;
        chain.open += 1;
        let (came, turn) = (Arc::clone(came), self.tree.map(|tree| tree.enter(key)));
        self.serving
            .insert(serial, InboundCall { key, came, asks, earlier, depth, announced: None, _turn: turn });
        true
    }

    /// Takes a call that is about to be answered out of its chain; nothing, if it was answered before.
    fn leave(&mut self, serial: u64) -> Option<InboundCall> {
        let served = self.serving.remove(&serial)?;
        let Some(chain) = self.chains.get_mut(&served.key) else { return Some(served) };
        chain.open -= 1;
        chain.full = false;
        if chain.open == 0 {
            self.chains.remove(&served.key);
            return Some(served);
        }
        if chain.last == serial {
            chain.last = served.earlier;
            return Some(served);
        }
        let mut at = chain.last;
        while let Some(later) = self.serving.get_mut(&at) {
            if later.earlier == serial {
                later.earlier = served.earlier;
                break;
            }
            at = later.earlier;
        }
        Some(served)
    }

    /// Tells earlier calls of the same sender and key to wait.
    fn announce(&mut self, served: &InboundCall) {
        let mut at = served.earlier;
        while let Some(open) = self.serving.get_mut(&at) {
            let (key, came, next) = (open.key, Arc::clone(&open.came), open.earlier);
            if open.announced.is_none() && came.sender == served.came.sender {
                let number = self.next_wait;
                open.announced = Some(number);
                // Numbers are greater than 0.
                self.next_wait = self.next_wait.checked_add(1).unwrap_or(1);
                let mut rest = came.back.clone();
                rest.extend_from_slice(&number.to_be_bytes());
                self.put_plain(minor::REPLY_WAIT, key, &rest);
            }
            at = next;
        }
    }

    /// Answers a call; one whose results do not encode fails instead. Failures have no reason on this wire,
    /// so all of them look the same.
    ///
    /// # Errors
    /// The results do not encode; the caller got a failure.
    pub(crate) fn answer_call(&mut self, serial: u64, answer: Answer<'_>) -> Result<(), Failure> {
        let Some(served) = self.leave(serial) else { return Ok(()) };
        if self.check_open().is_err() {
            return Ok(());
        }
        if served.earlier != 0 {
            self.announce(&served);
        }
        let object = match (answer, served.asks) {
            (Answer::Done(results), RequestKind::Results) => {
                // The servant ran, only its results do not travel.
                return self.put_results(&served, results).map_err(|failure| {
                    self.put_refusal(&served);
                    failure.with_completed(Completed::Yes)
                });
            }
            (Answer::Done(_), RequestKind::Object) => Some(served.came.object.clone()),
            (Answer::Done(results), RequestKind::Yes) => {
                says_yes(results).then(|| served.came.object.clone())
            }
            (Answer::Done(results), RequestKind::Which) => match results.carries().body {
                Some(body) if body.codec.name() == NAME => passing::found(body),
                _ => standard::found(results),
            },
            // The protocol has no words for why.
            (Answer::Failed(_) | Answer::Passed { .. } | Answer::Raised { .. } | Answer::Moved(_), _) => None,
        };
        match object {
            Some(object) => self.put_found(served.key, &served.came, served.announced, &object),
            None => self.put_refusal(&served),
        }
        Ok(())
    }

    /// A reply that was announced has the announcement's number between names and type.
    fn put_results(&mut self, served: &InboundCall, results: &dyn Encode) -> Visit<()> {
        let passed = passing::passed(results)?;
        let kind = if served.announced.is_some() { minor::REPLY_DELAYED } else { minor::REPLY };
        self.message_of(kind, served.key, |session, start, limit| {
            let out = session.out.flat();
            out.extend_from_slice(&served.came.back);
            if let Some(number) = served.announced {
                out.extend_from_slice(&number.to_be_bytes());
            }
            if let Some(body) = passed {
                // Behind an announcement no type at all says that it failed.
                let nameless = body.context.is_empty() && served.announced.is_some();
                put_name(session.out.flat(), if nameless { b"void" } else { &body.context });
                return session.put_passed(body);
            }
            session.names.trinity = session.trinity || served.came.trinity;
            let mut head = Head::default();
            let lead = TypeOutput::Reply(&mut session.names, &mut head);
            results.encode(&mut StreamSink::new(&mut session.out, start, limit, lead))?;
            if head.length.is_none() {
                // Nothing was written at all.
                head.put(&mut session.out, b"void");
            }
            head.finish(&mut session.out);
            Ok(())
        })
    }

    /// A search succeeded: a `DCOPRef` to the object. An object of another application is never found here,
    /// so the reference has this side's name. `announced` is the number of an announcement.
    fn put_found(&mut self, key: u32, came: &CallHead, announced: Option<i32>, object: &[u8]) {
        let mut reference = Vec::new();
        for part in [&self.name[..], object, b""] {
            put_nullable(&mut reference, part);
        }
        let (kind, mut rest) = front(came, announced);
        put_name(&mut rest, b"DCOPRef");
        put_data(&mut rest, &reference);
        self.put_plain(kind, key, &rest);
    }

    /// A call failed. After an announcement that is an answer without a type: a failure would answer another call.
    fn put_refusal(&mut self, served: &InboundCall) {
        if served.announced.is_none() {
            return self.put_failed(served.key, &served.came);
        }
        let (kind, mut rest) = front(&served.came, served.announced);
        put_name(&mut rest, b"");
        put_data(&mut rest, b"");
        self.put_plain(kind, served.key, &rest);
    }

    /// The names are all that a failure has.
    fn put_failed(&mut self, key: u32, came: &CallHead) {
        self.put_plain(minor::REPLY_FAILED, key, &came.back);
    }

    /// A message whose names or data do not decode: it fails, where it can be told who sent it.
    #[cold]
    pub(crate) fn put_unread(&mut self, kind: u8, key: u32, payload: &Bytes) {
        if kind != minor::SEND
            && let Some(sender) = StringReader::new(payload).name().ok().and_then(|name| payload.get(name))
        {
            let mut back = Vec::new();
            put_name(&mut back, &self.name);
            put_name(&mut back, sender);
            self.put_plain(minor::REPLY_FAILED, key, &back);
        }
    }
}
