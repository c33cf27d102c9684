//! Messages that come: requests, answers, callbacks.
//!
//! `receive` takes one payload. It learns the table of new words, looks whether the head came before
//! (`Seen`), and then knows at once what the message is; otherwise `read` reads the head, has reliable
//! messaging judge it (`sequenced`), and `take` decides between an answer and a request. Answers become
//! Reply events, requests become Call events, callbacks to listeners become Signal events; what reaches
//! nobody is answered with a fault, which waits in `own`.
//!
//! State that is changed: the peer's words, `seen`, `plans`, `waiting` and `serving`, the listeners, and
//! the reliable session.
//!
//! Invariants:
//!
//! * An error ends the channel: only what breaks the protocol is one (no envelope, a word that nobody sent,
//!   an impossible acknowledgement). What is wrong with a single message is a fault to its sender.
//! * A request is served only after everything was checked that a head can tell: addressing headers, the
//!   user, the address, headers that must be understood, the number of calls that wait.
//! * An answer counts only for a call that waits, which it names by RelatesTo; where it names none, the
//!   order or there being only one tells.
//! * What is remembered of a peer is bounded: actions by `MAX_NAME`, operations by `plans`, heads by
//!   `seen`, calls by `Limits::outstanding`.
//! * Bodies are not read here. Short documents are read to their end once, so that a broken one is refused
//!   rather than served.

use super::passing::as_it_came;
use super::state::{InboundCall, Refusal, Side, SoapChannel, beside, know};
use super::wrapping::wrong_wrapper;
use crate::dictionary::split;
use crate::limits::MAX_NAME;
use crate::plan::Plan;
use crate::soap::cursor::Document;
use crate::soap::faults::{Fault, FaultContents, failure, said};
use crate::soap::head::{First, Head, Message};
use crate::soap::head_cache::{self, BodyStart, ForwardInfo, HeadMeaning};
use crate::soap::ids::MessageId;
use crate::soap::names::{ADDRESSING, ANONYMOUS, NO_ADDRESSING, NO_REASON, SECURITY};
use crate::soap::parameters;
use crate::soap::rm::{InboundMessage, ReceivedMessage, Verdict};
use crate::soap::security;
use crate::values::Naming;
use bytes::{Buf, Bytes};
use everywire_model::visit::Visit;
use everywire_model::{
    Body, CallId, Completed, Event, Expects, Failure, Incoming, Initiator, Kind, Outcome, Raised,
};
use std::sync::Arc;
use std::time::Instant;

/// Documents up to this many bytes are read to their end the first time.
/// Longer ones would be read twice, here and by the codec, for no more than an earlier error.
const SHORT: usize = 4 << 10;

/// Bytes of answers that a reliable session keeps at least before it takes no more of its client; else eight of the longest
/// messages that are taken.
const LEAST_KEPT: u64 = 1 << 20;

impl SoapChannel {
    /// Takes one message's payload. `action`: from outside the envelope (SOAPAction); `key`: the path it came to. A reply
    /// without addressing belongs to the oldest outstanding call. Then see [`SoapChannel::flush`] and [`SoapChannel::poll`].
    ///
    /// # Errors
    /// The message breaks the protocol: the channel must end.
    #[inline]
    pub fn receive(
        &mut self,
        now: Instant,
        mut document: Bytes,
        action: Option<&str>,
        key: &Bytes,
    ) -> Result<(), Failure> {
        if self.dialect.session {
            match document.first() {
                Some(0) => document.advance(1),
                _ => document = self.learn(&document)?,
            }
        }
        if let Some(node) = &self.node
            && node.changes() != self.changes
        {
            self.changes = node.changes();
            self.seen.clear();
        }
        if self.reliable.is_some() {
            self.leave_session();
        }
        let form = self.dialect.form;
        if let Some(known) = self.seen.find(form, &document, action, key) {
            let (guid, known) = known;
            let place = known.place;
            // Who passes nothing on and has no use for headers pays for neither.
            let kept = (self.passes || !known.kept.others.is_empty()).then(|| known.kept.clone());
            match &known.meaning {
                HeadMeaning::Reply => {
                    let id = guid.and_then(|guid| self.ids.call(&guid));
                    self.returned(id, document, place, kept.as_ref());
                    return Ok(());
                }
                HeadMeaning::Request { asked, plan, answered } => {
                    let (asked, index, answered) = (asked.clone(), *plan as usize, *answered);
                    // One too many is refused where there is time for words.
                    let room = self.serving.len() < self.limits.outstanding;
                    if let Some(met) = self.plans.get(index).filter(|_| room) {
                        let (plan, key) = self.spare.serving(&met.plan, key);
                        let message_id = guid.map(MessageId::Unique);
                        let (reply_to, echoed) = (None, None);
                        let call = InboundCall { plan, index, message_id, answered, key, reply_to, echoed };
                        self.serve(call, asked, document, place, kept.as_ref());
                        return Ok(());
                    }
                }
            }
        }
        self.read(now, document, action, key)
    }

    /// Learns the new words before a document.
    #[cold]
    fn learn(&mut self, payload: &Bytes) -> Visit<Bytes> {
        let (table, document) = split(payload)?;
        if !table.is_empty() {
            Arc::make_mut(&mut self.reading.words).learn(table)?;
            self.beside = beside(&self.reading);
        }
        Ok(payload.slice_ref(document))
    }

    /// Reads a message whose head did not come before.
    #[cold]
    fn read(&mut self, now: Instant, document: Bytes, action: Option<&str>, key: &Bytes) -> Visit<()> {
        let (words, quotas) = (Arc::clone(&self.reading.words), self.reading.quotas);
        let form = self.dialect.form;
        let readable = Document { form, bytes: &document, words: &words, quotas: &quotas };
        let head = Head::read(self.dialect, readable)?;
        // What follows a long body is looked at by its end only; quotas of bodies are for their reader to name.
        if document.len() <= SHORT || head_cache::tail(form, &document).is_none() {
            let whole = readable.check();
            whole.or_else(
                |failure| if failure.kind() == Kind::LimitExceeded { Ok(()) } else { Err(failure) },
            )?;
        }
        self.clock = now;
        let message = Message { head: &head, document: &document, action, key };
        let Some(verdict) = self.sequenced(now, message)? else {
            self.take(message);
            return Ok(());
        };
        let before = self.taken;
        for (document, action, key) in &verdict {
            let head = &Head::read(self.dialect, Document { bytes: document, ..readable })?;
            self.take(Message { head, document, action: action.as_deref(), key });
        }
        self.note_calls(before);
        Ok(())
    }

    /// What reliable messaging makes of a message: the messages that are to be taken now, or nothing if it is none of its own.
    fn sequenced(&mut self, now: Instant, message: Message<'_>) -> Visit<Option<Vec<ReceivedMessage>>> {
        let Message { head, document: bytes, action, key } = message;
        if !self.dialect.addressing {
            return Ok(None);
        }
        if let Some(said) = self.attend(now, head, bytes)? {
            self.fault(said, head.message_id.clone());
            return Ok(Some(Vec::new()));
        }
        let Some(reliable) = &mut self.reliable else { return Ok(None) };
        let here = self.settings.via(key);
        let (words, quotas) = (&*self.reading.words, &self.reading.quotas);
        let document = Document { form: self.dialect.form, bytes, words, quotas };
        let most = self.settings.quotas.max_received_message_size.saturating_mul(8).max(LEAST_KEPT);
        let most = match &self.node {
            Some(node) if self.settings.binding.is_http() => node.sequences.share(most),
            _ => most,
        };
        let verdict = reliable
            .receive(now, &InboundMessage { head, bytes, document, action, key, here: &here, most })?;
        self.keep_session(head);
        self.settle();
        // The peer ended the session: nobody answers any more.
        if let Some(failure) = self.ended() {
            self.fail_all(&failure);
        }
        match verdict {
            Verdict::Foreign => Ok(None),
            Verdict::Deliver(messages) => Ok(Some(messages)),
            Verdict::Fault(said) => {
                self.fault(said, head.message_id.clone());
                Ok(Some(Vec::new()))
            }
        }
    }

    /// A message that may be judged now: it is of no sequence, or its turn has come. It answers, or it
    /// asks.
    fn take(&mut self, message: Message<'_>) {
        let head = message.head;
        // A fault without RelatesTo can only be an answer, on the side that asks.
        let is_fault = head.is_fault(self.dialect.soap);
        let has_responses = self.side == Side::Client && self.is_http();
        // Answers to a server's own calls come by a session, and never in a request of HTTP alone.
        let relates = head.relates_to.is_some()
            && !(self.side == Side::Server && self.is_http() && self.reliable.is_none());
        if relates || has_responses || (is_fault && self.side == Side::Client) {
            self.answered(message, is_fault);
        } else {
            self.requested(message);
        }
    }

    /// An answer came.
    fn answered(&mut self, message: Message<'_>, is_fault: bool) {
        let Message { head, document, .. } = message;
        let related = self.related(head);
        // The identifier says which call it is, if that waits.
        let named = related.filter(|id| self.waiting.get(*id).is_some());
        let Some(id) = named.or_else(|| {
            // Where responses follow their requests, the order tells as much; a fault of Mono's tells nothing else. Not where
            // messages are repeated: it may be the answer to one that nobody waits for.
            let http = self.is_http() && (self.reliable.is_none() || head.relates_to.is_none());
            let alone = http || (head.relates_to.is_none() && self.waiting.len() == 1);
            // A one-way message that was passed on is not known as such: what answers a later one has overtaken it.
            let apart = || self.waiting.only_after(self.overtaken).filter(|_| head.relates_to.is_none());
            self.waiting.oldest().filter(|_| alone).or_else(apart)
        }) else {
            return;
        };
        let Some(plan) = self.waiting.get(id).map(Arc::clone) else { return };
        // Headers that must be understood: those of the contract are, security is the transport's matter
        // here.
        let unknown = head.demanding.iter().find(|(namespace, local)| {
            namespace != NO_ADDRESSING && namespace != SECURITY && !plan.understands(namespace, local)
        });
        let passes = plan.passes;
        if passes && related == Some(id) {
            self.overtaken = self.overtaken.max(id.0);
        }
        let failed = |kind, what: String| {
            Outcome::Failed(Failure::new(kind, Initiator::Peer, what).with_completed(Completed::Yes))
        };
        let (place, kept) = (BodyStart::outside(head.body), ForwardInfo::of(head));
        let outcome = if let Some((namespace, local)) = unknown.filter(|_| !passes) {
            let what = format!(
                "the answer has a header that must be understood, and is not: {{{namespace}}}{local}"
            );
            failed(Kind::Unsupported, what)
        } else if let Some(name) = head.invalid {
            failed(Kind::Violation, format!("the answer has two headers `{name}`"))
        } else if let Some(wrong) = wrong_wrapper(&plan, true, head.first.as_ref()).filter(|_| !is_fault) {
            failed(Kind::Violation, wrong)
        } else if is_fault {
            match self.fault_of(&plan, document) {
                Outcome::Failed(failure) if passes => {
                    let body = self.body_with(document.clone(), place, Some(&kept), &plan, true);
                    Outcome::Failed(as_it_came(failure, body))
                }
                outcome => outcome,
            }
        } else {
            // Bodies whose values are told in another way are found by the whole head.
            let is_named = plan.naming(true) == Naming::Names;
            if is_named && self.reliable.is_none() && (related == Some(id) || !self.dialect.addressing) {
                self.seen.remember(self.dialect, message, (&plan.results, passes), HeadMeaning::Reply);
            }
            Outcome::Done(self.body_with(document.clone(), place, Some(&kept), &plan, true))
        };
        self.waiting.remove(id);
        self.events.push_back(Event::Reply { id, outcome });
    }

    /// The call that a message relates to, if that is one of this channel's.
    fn related(&self, head: &Head<'_>) -> Option<CallId> {
        let guid = head.relates_to.as_ref()?.guid()?;
        self.ids.call(&guid).or_else(|| self.resumed(&guid))
    }

    /// What the response to a message without a reply has against it, if that is a fault. In a reliable session it may be the
    /// answer to a call, which it names; such a message has no identifier that it could name.
    ///
    /// # Errors
    /// It is no envelope.
    pub fn objection_of(&self, document: &Bytes) -> Result<Option<Failure>, Failure> {
        let document = self.readable(document);
        let head = Head::read(self.dialect, document)?;
        let is_of_call = self.reliable.is_some() && self.related(&head).is_some();
        if is_of_call || !head.is_fault(self.dialect.soap) {
            return Ok(None);
        }
        Ok(Some(failure(&Fault::read(document)?)))
    }

    /// What a fault means for a call of this plan.
    fn fault_of(&self, plan: &Plan, document: &Bytes) -> Outcome<Body> {
        let fault = match Fault::read(self.readable(document)) {
            Ok(fault) => fault,
            Err(failure) => return Outcome::Failed(failure.with_completed(Completed::Maybe)),
        };
        let declared = fault.first.as_ref().and_then(|first| plan.told(first, fault.kind.as_ref()));
        match declared {
            Some(declared) => {
                let body = self.body(document.clone(), BodyStart::outside(fault.detail));
                let reason = fault.reason.trim();
                let text = if reason == NO_REASON { String::new() } else { reason.to_owned() };
                let id = declared.id.to_string();
                Outcome::Raised(Box::new(Raised { id, body, text, encoded: None }))
            }
            None => Outcome::Failed(failure(&fault)),
        }
    }

    /// Results came, in a message whose head came before.
    #[inline]
    fn returned(
        &mut self,
        id: Option<CallId>,
        document: Bytes,
        place: BodyStart,
        kept: Option<&ForwardInfo>,
    ) {
        // Where responses follow their requests, the order tells.
        let in_order = || !self.dialect.addressing || (self.is_http() && self.reliable.is_none());
        let Some(id) = id.or_else(|| self.waiting.oldest().filter(|_| in_order())) else { return };
        if let Some(plan) = self.waiting.remove(id) {
            if plan.passes {
                self.overtaken = self.overtaken.max(id.0);
            }
            let outcome = Outcome::Done(self.body_with(document, place, kept, &plan, true));
            self.spare.waiting = Some(plan);
            self.events.push_back(Event::Reply { id, outcome });
        }
    }

    /// A request came.
    fn requested(&mut self, message: Message<'_>) {
        let Message { head, document, action, key } = message;
        if let Some(said) = self.objection(head) {
            return self.refuse_request(head, said, Vec::new());
        }
        // Without addressing the transport says what is asked: SOAPAction, or the header that WCF's routers
        // leave; or the body does. An empty action says nothing anywhere: several operations may have it.
        let within = head.action.as_deref().filter(|a| !a.is_empty());
        let said = if self.dialect.addressing {
            within
        } else {
            let shared = |said: &str| self.node.as_ref().is_some_and(|node| node.is_shared(key, said));
            action.filter(|a| !a.is_empty()).or(within).filter(|said| !shared(said))
        };
        let asked = match said {
            Some(action) => action.to_owned(),
            None => head.first.as_ref().map(First::clark).unwrap_or_default(),
        };
        let passes = self.side == Side::Server && self.node.as_ref().is_some_and(|node| node.passes(key));
        let wanted = !head.refuses_answers()
            && match self.side {
                // Where nobody here knows whether there is an answer, whoever wants one says which message it is to.
                Side::Server if passes && self.dialect.addressing && !self.is_http() => {
                    head.message_id.is_some()
                }
                // Whoever gets a callback without an identifier cannot answer it.
                Side::Client => head.message_id.is_some(),
                Side::Server => true,
            };
        let Some((key, plan)) = self.whom(message, &asked, wanted, passes) else { return };
        // What must be understood is understood by the contract, by the check of the user, or by whoever
        // the message is passed to.
        let unknown: Vec<(String, String)> = head
            .demanding
            .iter()
            .filter(|(namespace, local)| {
                let checked = self.settings.username && namespace == SECURITY;
                let passed = plan.passes && namespace != SECURITY;
                !checked && !passed && !plan.understands(namespace, local)
            })
            .map(|(namespace, local)| (namespace.to_string(), local.to_string()))
            .collect();
        if !unknown.is_empty() {
            let (namespace, local) = unknown.first().cloned().unwrap_or_default();
            let reason = format!(
                "The header '{local}' from the namespace '{namespace}' was not understood by the recipient of this \
                 message, causing the message to not be processed.  This error typically indicates that the sender of this \
                 message has enabled a communication protocol that the receiver cannot process.  Please ensure that the \
                 configuration of the client's binding is consistent with the service's binding."
            );
            let said = FaultContents {
                code: "MustUnderstand",
                subcode: None,
                ..FaultContents::addressing("", reason)
            };
            return self.refuse_request(head, said, unknown);
        }
        if self.refuses_wrapper(head, &plan, &asked) {
            return;
        }
        // Calls that nobody has answered yet take memory until somebody does.
        if self.serving.len() >= self.limits.outstanding {
            let reason = "The endpoint is unable to process the message at this time.";
            let said = FaultContents::addressing("EndpointUnavailable", reason);
            return self.refuse_request(head, said, Vec::new());
        }
        let answered = wanted && !plan.oneway;
        if !answered {
            self.owe_nothing(head);
        }
        let asked = Bytes::from(asked);
        know(&mut self.reading, &mut self.beside, &plan);
        if plan.passes {
            self.passes = true;
            self.words.make_way();
        }
        let index = self.plans.asked(&mut self.seen, Arc::clone(&plan));
        let reply_to = head.reply_to();
        // What came in a session must not be taken for anything but what its number says.
        let Ok(echoed) = head.echoed(self.dialect.form) else {
            return self.refuse_for(head, Kind::BadArgument, &String::from_utf8_lossy(&asked), "");
        };
        if reply_to.is_none()
            && echoed.is_none()
            && plan.naming(false) == Naming::Names
            && self.reliable.is_none()
            && self.side == Side::Server
            && let Ok(number) = u32::try_from(index)
        {
            let meaning = HeadMeaning::Request { asked: asked.clone(), plan: number, answered };
            self.seen.remember(self.dialect, message, (&plan.arguments, plan.passes), meaning);
        }
        let reply_to = reply_to.map(Into::into);
        let message_id = head.message_id.clone();
        let call = InboundCall { plan, index, message_id, answered, key, reply_to, echoed };
        let kept = ForwardInfo::of(head);
        self.serve(call, asked, document.clone(), BodyStart::outside(head.body), Some(&kept));
    }

    /// What is wrong with a request, whatever it asks for.
    fn objection(&self, head: &Head<'_>) -> Option<FaultContents> {
        if let Some(name) = head.invalid {
            let reason = format!(
                "A header representing a Message Addressing Property is not valid and the message cannot be \
                         processed: there are two headers '{name}'."
            );
            return Some(FaultContents::addressing("InvalidAddressingHeader", reason));
        }
        if head.is_long {
            let reason = format!(
                "A header representing a Message Addressing Property is not valid and the message cannot be \
                         processed: the reference parameters of an address have more than {} bytes.",
                parameters::LONGEST
            );
            return Some(FaultContents::addressing("InvalidAddressingHeader", reason));
        }
        if self.dialect.addressing && head.action.is_none() {
            let reason = format!(
                "A required header representing a Message Addressing Property is not present: no header 'Action' from the \
                 namespace '{ADDRESSING}' was found."
            );
            return Some(FaultContents::addressing("MessageAddressingHeaderRequired", reason));
        }
        if self.side == Side::Client || !self.settings.username {
            return None;
        }
        let failure = security::check(head, &self.settings).err()?;
        let failure = match failure.kind() {
            Kind::Refused => failure,
            _ => Failure::new(Kind::Refused, Initiator::Peer, failure.message()),
        };
        Some(said(&failure, "", "", self.settings.exception_detail))
    }

    /// The object and the operation that a request asks for; nothing if it was heard by listeners, or refused.
    fn whom(
        &mut self,
        message: Message<'_>,
        asked: &str,
        wanted: bool,
        passes: bool,
    ) -> Option<(Bytes, Arc<Plan>)> {
        let Message { head, document, key, .. } = message;
        if asked.len() > MAX_NAME {
            // What is met is remembered: it must not be large.
            self.refuse_for(head, Kind::NoOperation, "", "");
            return None;
        }
        let guess = || {
            let first = head.first.as_ref();
            let (namespace, local) =
                first.map(|first| (&*first.namespace, &*first.local)).unwrap_or_default();
            Plan::guess(asked, namespace, local)
        };
        if self.side == Side::Server {
            if !self.is_for(head, key) {
                let to = head.to.as_deref().unwrap_or_default();
                self.refuse_for(head, Kind::NoObject, asked, to);
                return None;
            }
            if !self.is_http() {
                self.opened(key.clone());
            }
            let plan = self.node.as_ref().and_then(|node| node.plan(key, asked.as_bytes()));
            let plan = plan.unwrap_or_else(|| if passes { guess().passing() } else { guess() });
            return Some((key.clone(), plan));
        }
        // A hop has no objects of its own: whoever called by it is meant, and not who only listens.
        let hop = self.node.as_ref().is_some_and(|node| node.passes(b""));
        if self.hear(asked, document, head.body, !hop) {
            return None;
        }
        let callee = || self.node.as_ref().and_then(|node| node.callee(asked.as_bytes()));
        let Some(key) = self.settings.callback.clone().or_else(callee) else {
            if hop {
                return Some((Bytes::new(), guess().passing()));
            }
            if wanted {
                self.refuse_for(head, Kind::NoOperation, asked, "");
            }
            return None;
        };
        let plan = self.node.as_ref().and_then(|node| node.plan(&key, asked.as_bytes()));
        Some((key, plan.unwrap_or_else(guess)))
    }

    /// Whether the `To` of a request leads to the object at this path.
    fn is_for(&self, head: &Head<'_>, key: &[u8]) -> bool {
        let Some(to) = head.to.as_deref().filter(|to| *to != ANONYMOUS) else { return true };
        let Some(path) = self.settings.key_of(to) else { return false };
        if path.is_empty() && !self.settings.socket.is_empty() {
            // Its Via says as much, and was enough.
            return true;
        }
        let trimmed = |path: &[u8]| path.strip_suffix(b"/").unwrap_or(path).to_ascii_lowercase();
        trimmed(&path) == trimmed(key)
    }

    /// The request gets no answer in the reliable session.
    fn owe_nothing(&mut self, head: &Head<'_>) {
        if let (Some(mut session), Some(id)) = (self.session(), &head.message_id) {
            session.answers_not(id);
        }
    }

    /// Refuses a request whose object or operation is not there.
    fn refuse_for(&mut self, head: &Head<'_>, kind: Kind, asked: &str, to: &str) {
        let said = said(&Failure::new(kind, Initiator::Peer, ""), asked, to, false);
        self.refuse_request(head, said, Vec::new());
    }

    pub(super) fn refuse_request(
        &mut self,
        head: &Head<'_>,
        said: FaultContents,
        not_understood: Vec<(String, String)>,
    ) {
        self.owe_nothing(head);
        let is_wanted = head.message_id.is_some() || !self.dialect.addressing || self.is_http();
        if is_wanted && !head.refuses_faults() {
            let relates_to = head.message_id.clone();
            let echoed = head.echoed(self.dialect.form).ok().flatten();
            let echoed = echoed.map(|echoed| echoed.fault).unwrap_or_default();
            let to = head.fault_to().map(Into::into);
            self.own.push_back(Refusal { said, relates_to, not_understood, to, echoed });
        }
    }

    #[inline]
    fn serve(
        &mut self,
        call: InboundCall,
        asked: Bytes,
        document: Bytes,
        place: BodyStart,
        kept: Option<&ForwardInfo>,
    ) {
        self.taken += 1;
        let id = CallId(self.taken);
        let expects = if call.answered { Expects::Reply } else { Expects::Nothing };
        let key = call.key.clone();
        let body = self.body_with(document, place, kept, &call.plan, false);
        if call.answered {
            self.serving.insert(id, call);
        } else if let Some(listens) = call.plan.listening {
            // Nobody tells how a one-way call went.
            self.listeners.choose(&call.key, listens);
        }
        let (sender, interface, operation) = (Bytes::new(), Bytes::new(), asked);
        let incoming = Incoming { id, sender, key, interface, operation, body, expects };
        self.events.push_back(Event::Call(Box::new(incoming)));
    }
}
