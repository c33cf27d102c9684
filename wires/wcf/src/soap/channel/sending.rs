//! Calls, answers and faults that this side sends.
//!
//! `start` begins a call, `answer` ends one of the peer's. Both write by a template where they can: the
//! head of the operation is copied, the identifier and the headers that somebody brings put in their places, and only
//! the values are encoded. The slow way (`request_slowly`, `send`) makes the head anew: for a security header with the
//! time in it, for values that are headers, and for messages of a reliable session, which number them later.
//!
//! State that is changed: `begun` and `waiting` by a call that was written, `serving` by an answer, `plans`
//! by operations met for the first time, and the session's words (`words`). A call that could not be
//! written has changed nothing but templates and plans.
//!
//! Invariants:
//!
//! * `out` is as before when an error is returned; the exception is `answer`, which then has appended a
//!   fault in place of the results.
//! * A call gets its number only when its message is complete, so numbers in `waiting` ascend without gaps
//!   by failures.
//! * Each call that came is removed from `serving` before it is answered: a second answer finds nothing.
//! * In a reliable session nothing is appended here but what its window lets go; the message is the
//!   session's from then on, and its repetitions, too.
//! * The body's encoding decides what is sent: values go by the contract, a body that is passed on goes by
//!   `passing`.

use super::compose::message;
use super::plans::OperationSourceRef;
use super::resuming;
use super::state::{Addressee, InboundCall, Side, SoapChannel, WrittenCall, WrittenReply, know};
use crate::plan::{DeclaredFault, Plan};
use crate::soap::faults::{FaultContents, said};
use crate::soap::ids::MessageId;
use crate::soap::names::NO_REASON;
use crate::soap::put::ElementWriter;
use crate::soap::rm::{Origin, Outbound};
use crate::soap::template::{HeadContents, Template};
use crate::soap::{blocks, security};
use crate::values::{write_body, write_detail, write_rest};
use bytes::Bytes;
use everywire_model::shape::Struct;
use everywire_model::visit::{Encode, Visit};
use everywire_model::{
    Answer, Call, CallId, Completed, Expects, Failure, Headers, Initiator, Kind, SendBuffer,
};
use std::sync::Arc;
use std::time::Instant;

/// A message to send, apart from its body.
#[derive(Default, Clone, Copy)]
pub(super) struct OutboundMessage<'a> {
    pub(super) saying: HeadContents<'a>,
    /// Whether values of its body are headers: then the body is written first.
    pub(super) has_headers: bool,
    /// The call that it begins.
    pub(super) call: Option<CallId>,
    /// What that call is known by, and what its answer is read by.
    pub(super) origin: Option<(&'a [u8; 16], &'a Arc<Plan>)>,
    pub(super) fault: bool,
}

impl SoapChannel {
    /// Appends the payload of one message that begins a call; a callback on the accepting side. In a reliable session it may
    /// come later: see [`SoapChannel::flush`].
    ///
    /// # Errors
    /// The arguments do not encode, or too many calls are outstanding; `out` is as before.
    #[inline]
    pub fn start(
        &mut self,
        now: Instant,
        call: &Call<'_>,
        out: &mut SendBuffer,
    ) -> Result<WrittenCall, Failure> {
        self.clock = now;
        let limit = self.limits.outstanding;
        if self.waiting.len() >= limit {
            return Err(too_many(limit));
        }
        // Nothing is given to a session that will not send it.
        if let Some(failure) = self.closed_to_calls() {
            // What goes on there had left before.
            let goes_on = resuming::question(call.profile).is_some();
            return Err(failure.with_completed(if goes_on { Completed::Maybe } else { Completed::No }));
        }
        if self.reliable.is_some()
            && let Some(question) = resuming::question(call.profile)
        {
            return self.go_on(question, call);
        }
        let carries = call.arguments.carries();
        if let Some(body) = carries.body {
            return self.pass(call, body, carries.headers, out);
        }
        let (interface, operation) = call.method.typed()?;
        // Known by addresses: see `plans`.
        let address = interface.map_or(0, |interface| std::ptr::from_ref(interface).addr());
        let (of, contract) =
            (std::ptr::from_ref(operation).addr(), interface.map(|interface| &interface.name));
        let by = OperationSourceRef::new(address, of, &operation.arguments, &operation.name, contract);
        let side = self.side;
        let index = self.plans.called(&mut self.seen, &by, || {
            let plan = side.plan(interface, operation);
            know(&mut self.reading, &mut self.beside, &plan);
            (plan, false)
        });
        let id = CallId(self.begun + 1);
        let wanted = call.expects == Expects::Reply;
        let brought = match carries.headers.filter(|headers| !headers.edits().is_empty()) {
            Some(headers) => self.brought(headers)?,
            None => Vec::new(),
        };
        self.request(index, id, wanted, &call.profile.key, call.arguments, &brought, out)?;
        self.begun = id.0;
        let Some(met) = self.plans.get(index) else { return Err(lost()) };
        let action = self.is_http().then(|| Arc::clone(self.asked_outside(&met.plan, &call.profile.key)));
        if wanted {
            let call = self.spare.waiting(&met.plan);
            self.waiting.insert(id, call);
        // Over HTTP in a reliable session somebody waits to hear that it has arrived.
        } else if self.way.is_some() {
            self.telling.push(id);
        }
        Ok(WrittenCall { id, action })
    }

    /// Appends a request with the headers that somebody here brings: by its operation's template, if it has room for them.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn request(
        &mut self,
        index: usize,
        id: CallId,
        wanted: bool,
        key: &Bytes,
        arguments: &dyn Encode,
        brought: &[u8],
        out: &mut SendBuffer,
    ) -> Visit<()> {
        let guid = self.ids.of(id);
        let dialect = self.dialect;
        let Some(met) = self.plans.get_mut(index) else { return Err(lost()) };
        let identified = wanted && dialect.addressing;
        let to = if self.side == Side::Client { Some(key) } else { None };
        let names_user = self.settings.username && self.side == Side::Client;
        let has_room = brought.is_empty() || dialect.addressing;
        if self.reliable.is_some() || names_user || !has_room || !met.plan.headers.is_empty() {
            let plan = Arc::clone(&met.plan);
            return self.request_slowly(&plan, id, identified, to, arguments, brought, out);
        }
        // A head with an identifier and one without are two templates.
        let slot = if identified { &mut met.request } else { &mut met.oneway };
        if slot.as_ref().is_none_or(|(held, _)| held != key) {
            let to = to.map(|key| self.settings.via(key));
            let message_id = identified.then_some(&guid);
            let saying = HeadContents {
                action: &met.plan.action,
                message_id,
                to: to.as_deref(),
                ..HeadContents::default()
            };
            let template = saying.template(dialect, &mut self.words);
            let template = template.and_start(dialect.form, &met.plan.arguments, &mut self.words);
            *slot = Some((key.clone(), template));
        }
        let Some((_, template)) = slot else { return Err(lost()) };
        write_plain(dialect, &mut self.words, out, (template, &guid, brought), &met.plan.arguments, arguments)
    }

    /// Headers that somebody here brings, as they are written behind the session's own.
    fn brought(&self, headers: &Headers) -> Visit<Vec<u8>> {
        let mut out = Vec::new();
        for header in headers.brought() {
            blocks::put(self.dialect.form, self.dialect.soap, true, header, &mut out)?;
        }
        Ok(out)
    }

    /// A request whose head is made for it alone.
    #[allow(clippy::too_many_arguments)]
    fn request_slowly(
        &mut self,
        plan: &Arc<Plan>,
        id: CallId,
        identified: bool,
        to: Option<&Bytes>,
        arguments: &dyn Encode,
        brought: &[u8],
        out: &mut SendBuffer,
    ) -> Visit<()> {
        let guid = self.ids.of(id);
        let form = self.dialect.form;
        let to = to.map(|key| self.settings.via(key));
        let mut headers = self.asks_as()?;
        headers.extend_from_slice(brought);
        let saying = HeadContents {
            action: &plan.action,
            message_id: identified.then_some(&guid),
            to: to.as_deref(),
            headers: &headers,
            ..HeadContents::default()
        };
        let has_headers = !plan.headers.is_empty();
        let sent = OutboundMessage {
            saying,
            has_headers,
            call: Some(id),
            origin: Some((&guid, plan)),
            fault: false,
        };
        self.send(&sent, &|words, out| write_body(form, &plan.arguments, words, arguments, out), out)
    }

    /// The security header of a request, if requests of this side have one.
    pub(super) fn asks_as(&self) -> Visit<Vec<u8>> {
        let names_user = self.settings.username && self.side == Side::Client;
        if names_user { security::request(self.dialect.form, &self.settings) } else { Ok(Vec::new()) }
    }

    /// Whether answers of this side carry a Timestamp.
    #[inline]
    pub(super) fn is_timed(&self) -> bool {
        self.settings.username && self.side == Side::Server
    }

    /// The security header of an answer, if answers of this side have one.
    pub(super) fn timestamp(&self) -> Vec<u8> {
        if self.is_timed() { security::reply(self.dialect.form) } else { Vec::new() }
    }

    /// Appends a message, or hands it to the reliable session.
    pub(super) fn send(
        &mut self,
        sent: &OutboundMessage<'_>,
        content: &super::compose::Content<'_>,
        out: &mut SendBuffer,
    ) -> Visit<()> {
        let dialect = self.dialect;
        if let Some(reliable) = &mut self.reliable {
            // The session keeps head and body apart: the head changes with each repetition
            // (acknowledgements).
            let mut body = SendBuffer::new();
            let more = content(&mut self.words, &mut body)?.unwrap_or_default();
            let saying = &sent.saying;
            reliable.queue(Outbound {
                action: saying.action.into(),
                message_id: saying.message_id.copied(),
                relates_to: saying.relates_to.cloned(),
                to: saying.to.map(Into::into),
                reply_to: saying.reply_to.map(Into::into),
                headers: [saying.headers, &more].concat(),
                body: Bytes::from(body.to_vec()),
                call: sent.call,
                origin: sent.origin.map(|(guid, plan)| Origin { guid: *guid, plan: Arc::clone(plan) }),
                fault: sent.fault,
                last: false,
            });
            // Calls of whoever opened the channel go when the session has begun; all others as soon as the window lets them.
            if sent.call.is_none() || self.side == Side::Server {
                self.put_next(out);
            }
            self.settle();
            return Ok(());
        }
        let saying = sent.saying;
        message(
            dialect,
            &mut self.words,
            out,
            sent.has_headers,
            &mut |words, out, more| {
                let headers = &[saying.headers, more].concat();
                let head = HeadContents { headers, ..saying }.head(dialect, words).0;
                out.flat().extend_from_slice(&head);
            },
            content,
        )
    }

    /// Appends the answer to a call that came. In a reliable session it may come later: see [`SoapChannel::flush`].
    ///
    /// # Errors
    /// The results do not encode; the fault that says so was appended in their place.
    #[inline]
    pub fn answer(&mut self, id: CallId, answer: Answer<'_>, out: &mut SendBuffer) -> Visit<WrittenReply> {
        if self.apart.is_empty() {
            self.answer_here(id, answer, out)
        } else {
            self.answer_apart(id, answer, out)
        }
    }

    #[inline]
    pub(super) fn answer_here(
        &mut self,
        id: CallId,
        answer: Answer<'_>,
        out: &mut SendBuffer,
    ) -> Visit<WrittenReply> {
        let Some(call) = self.serving.remove(id) else { return Ok(WrittenReply::default()) };
        let answered = self.answer_to(&call, answer, out);
        self.spare.serving = Some((call.plan, call.key));
        answered
    }

    #[inline]
    fn answer_to(
        &mut self,
        call: &InboundCall,
        answer: Answer<'_>,
        out: &mut SendBuffer,
    ) -> Visit<WrittenReply> {
        if let (Answer::Done(_), Some(listens)) = (&answer, call.plan.listening) {
            self.listeners.choose(&call.key, listens);
        }
        let from = out.position();
        let written = match answer {
            Answer::Done(results) => self.reply(call, results, out).map(|()| false),
            _ if call.drops(true) => return Ok(self.say_nothing(call)),
            Answer::Raised { shape, fields } => self.raise(call, shape, fields, out).map(|()| true),
            Answer::Failed(failure) => return Ok(self.refuse(call, failure, out)),
            Answer::Passed { encoded, failure } => match self.pass_back(call, &encoded.body, None, true, out)
            {
                Ok(()) => Ok(true),
                Err(_) => return Ok(self.refuse(call, failure, out)),
            },
            Answer::Moved(reference) => {
                let ways = reference.profiles.iter().flat_map(|way| &way.endpoints);
                let place: Vec<String> = ways.map(ToString::to_string).collect();
                let what = format!("the object has moved, which SOAP cannot say: {}", place.join(", "));
                // The code that says of a message that nobody began with it.
                return Ok(self.refuse_by(
                    call,
                    &FaultContents::addressing("DestinationUnreachable", what),
                    out,
                ));
            }
        };
        match written {
            // What is passed back may be nothing.
            Ok(fault) => {
                Ok(WrittenReply { sends: self.has_left(out) && (fault || out.position() > from), fault })
            }
            Err(failure) => {
                // The servant ran, only its results do not travel.
                let failure = failure.with_completed(Completed::Yes);
                self.refuse(call, &failure, out);
                Err(failure)
            }
        }
    }

    /// The identifier that a template of an answer takes: as it came, since text that is no GUID does not fit. Without addressing
    /// the template has none, and any will do.
    #[inline]
    pub(super) fn answered_by(&self, call: &InboundCall) -> Option<[u8; 16]> {
        match &call.message_id {
            Some(MessageId::Unique(guid)) => Some(*guid),
            None if !self.dialect.addressing => Some([0; 16]),
            _ => None,
        }
    }

    /// Whether an answer was appended, not kept back by a reliable session's window.
    #[inline]
    fn has_left(&self, out: &SendBuffer) -> bool {
        self.reliable.is_none() || !out.is_empty()
    }

    #[inline]
    fn reply(&mut self, call: &InboundCall, results: &dyn Encode, out: &mut SendBuffer) -> Visit<()> {
        let dialect = self.dialect;
        let carries = results.carries();
        if let Some(body) = carries.body {
            return self.pass_back(call, body, carries.headers, false, out);
        }
        let brought = match carries.headers {
            Some(headers) => self.brought(headers)?,
            None => Vec::new(),
        };
        let special = self.reliable.is_some()
            || call.echoed.is_some()
            || call.reply_to.is_some()
            || self.is_timed()
            || !(brought.is_empty() || dialect.addressing);
        // What has no header of its own can be written by the template.
        let plain = !special && call.plan.headers.is_empty();
        if let Some(guid) = self.answered_by(call).filter(|_| plain)
            && let Some(met) = self.plans.get_mut(call.index)
            && Arc::ptr_eq(&met.plan, &call.plan)
        {
            let reply = &mut met.reply;
            if reply.is_none() {
                let id = MessageId::Unique(guid);
                let saying = HeadContents {
                    action: &call.plan.reply_action,
                    relates_to: Some(&id),
                    ..HeadContents::default()
                };
                let template = saying.template(dialect, &mut self.words);
                *reply = Some(template.and_start(dialect.form, &call.plan.results, &mut self.words));
            }
            if let Some(template) = reply {
                let layout = &call.plan.results;
                let head = (&*template, &guid, &*brought);
                return write_plain(dialect, &mut self.words, out, head, layout, results);
            }
        }
        if call.drops(false) {
            self.say_nothing(call);
            return Ok(());
        }
        let mut headers = self.timestamp();
        headers.extend_from_slice(&brought);
        headers.extend(call.echoed.iter().flat_map(|echoed| &echoed.reply));
        let saying = HeadContents {
            action: &call.plan.reply_action,
            relates_to: call.message_id.as_ref(),
            to: call.reply_to.as_deref(),
            headers: &headers,
            ..HeadContents::default()
        };
        let sent = OutboundMessage {
            saying,
            has_headers: !call.plan.headers.is_empty(),
            ..OutboundMessage::default()
        };
        let plan = Arc::clone(&call.plan);
        self.send(&sent, &|words, out| write_body(dialect.form, &plan.results, words, results, out), out)
    }

    /// Appends the fault of an exception.
    fn raise(
        &mut self,
        call: &InboundCall,
        shape: &Struct,
        fields: &dyn Encode,
        out: &mut SendBuffer,
    ) -> Visit<()> {
        let declared = call.plan.fault(shape);
        let action = match declared {
            Some(declared) => declared.action.to_string(),
            None => {
                let name = everywire_idl::wsdl::names::type_name(&shape.id, &shape.name).local;
                let action = call.plan.reply_action.strip_suffix("Response").unwrap_or(&call.plan.action);
                format!("{action}{name}Fault")
            }
        };
        let reason = NO_REASON.to_owned();
        let said = FaultContents {
            code: "Sender",
            subcode: None,
            reason,
            action: action.into(),
            exception: None,
            sequence: None,
        };
        let detail = Some((shape, declared, fields));
        self.put_fault(&said, call.addressee(), &[], detail, out)
    }

    /// Nobody wants the answer to a call (WS-Addressing 1.0 Core, 3.4).
    #[cold]
    fn say_nothing(&mut self, call: &InboundCall) -> WrittenReply {
        if let (Some(mut session), Some(id)) = (self.session(), &call.message_id) {
            session.answers_not(id);
        }
        WrittenReply::default()
    }

    /// Appends the fault of a failure. That cannot be encoded only where nothing can.
    fn refuse(&mut self, call: &InboundCall, failure: &Failure, out: &mut SendBuffer) -> WrittenReply {
        let to = self.settings.via(&call.key);
        let said = said(failure, &call.plan.action, &to, self.settings.exception_detail);
        self.refuse_by(call, &said, out)
    }

    /// Answers a call with a fault in these words.
    fn refuse_by(&mut self, call: &InboundCall, said: &FaultContents, out: &mut SendBuffer) -> WrittenReply {
        if call.drops(true) {
            return self.say_nothing(call);
        }
        match self.put_fault(said, call.addressee(), &[], None, out) {
            Ok(()) => WrittenReply { sends: self.has_left(out), fault: true },
            Err(_) => WrittenReply::default(),
        }
    }

    /// Appends a fault.
    pub(super) fn put_fault(
        &mut self,
        said: &FaultContents,
        Addressee { relates_to, to, echoed }: Addressee<'_>,
        not_understood: &[(String, String)],
        detail: Option<(&Struct, Option<&DeclaredFault>, &dyn Encode)>,
        out: &mut SendBuffer,
    ) -> Visit<()> {
        let dialect = self.dialect;
        let (action, headers) =
            (&said.action, &[&self.timestamp(), &said.sequence_fault(dialect), echoed].concat());
        let saying =
            HeadContents { action, relates_to, to, not_understood, headers, ..HeadContents::default() };
        let sent = OutboundMessage { saying, fault: true, ..OutboundMessage::default() };
        let content = |words: &mut crate::dictionary::Outgoing, out: &mut SendBuffer| {
            let mut put = ElementWriter::new(dialect.form, words);
            // The fault is written around the place of the detail, which the codec writes.
            let at = said.put(&mut put, dialect, detail.is_some());
            let bytes = put.into_bytes();
            let (before, after) = bytes.split_at_checked(at).unwrap_or((&bytes, &[]));
            out.flat().extend_from_slice(before);
            if let Some((shape, declared, fields)) = detail {
                let element = declared.map(|declared| &declared.detail);
                let told = declared.is_some_and(|declared| declared.told);
                write_detail(dialect.form, shape, element, told, words, fields, out)?;
            }
            out.flat().extend_from_slice(after);
            Ok(None)
        };
        self.send(&sent, &content, out)
    }
}

/// Appends a message without headers of its own: a template, the body, the end.
#[inline]
fn write_plain(
    dialect: crate::soap::Dialect,
    words: &mut crate::dictionary::Outgoing,
    out: &mut SendBuffer,
    (template, guid, brought): (&Template, &[u8; 16], &[u8]),
    layout: &crate::values::Layout,
    values: &dyn Encode,
) -> Visit<()> {
    message(
        dialect,
        words,
        out,
        false,
        &mut |_, out, _| template.write_with(dialect.form, guid, brought, out),
        &|words, out| write_rest(dialect.form, layout, layout.has_start(dialect.form), words, values, out),
    )
}

#[cold]
fn too_many(limit: usize) -> Failure {
    Failure::over_limit(Initiator::Here, "calls outstanding on one channel", limit + 1, limit)
}

/// An index of a plan that is not there: a mistake of this library.
#[cold]
fn lost() -> Failure {
    Failure::new(Kind::Internal, Initiator::Here, "an operation is not known any more")
}
