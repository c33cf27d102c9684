//! Messages that pass without a contract: the envelope as it came, with this connection's own headers in place of the other's.
//!
//! The start tags of envelope, headers and body go out as they came, so that every prefix means what it meant, and what follows
//! the body's start tag is not looked at. Of the headers those go that speak of one connection (addressing, security, reliable
//! messaging); the action stays as it came where it is the one to ask for.
//!
//! In binary XML a message refers to words of the session that it came by. A session that has told its peer no words of its own
//! takes over those, numbers and all, and tells them in front as they came; one that has writes the words out.
//!
//! A head that came before in the same bytes ([`crate::soap::head_cache`]) leaves as it left before, with the same changes of headers: [`HeadTemplates`]
//! holds what stands around the identifier. The copy of the body's context that it holds keeps another one from having its address.

use super::head_templates::HeadFields;
use super::state::{Addressee, InboundCall, Side, SoapChannel, WrittenCall};
use crate::dictionary::{Outgoing, StringTable};
use crate::plan::Plan;
use crate::soap::Form;
use crate::soap::cursor::Document;
use crate::soap::outline::Outline;
use crate::soap::passage::{ConnectionHeaders, make, spell_out};
use crate::soap::template::{HeadContents, Template, put_table};
use crate::values::{BodyContext, NAME, TEXT};
use bytes::Bytes;
use everywire_model::headers::Edits;
use everywire_model::message::needs_contract;
use everywire_model::send_buffer::SPLICE;
use everywire_model::visit::Visit;
use everywire_model::{Body, Call, CallId, Encoded, Expects, Failure, Headers, Method, SendBuffer};
use std::sync::Arc;

impl SoapChannel {
    /// Begins a call whose body is passed on.
    pub(super) fn pass(
        &mut self,
        call: &Call<'_>,
        body: &Body,
        headers: Option<&Headers>,
        out: &mut SendBuffer,
    ) -> Result<WrittenCall, Failure> {
        self.check_passes(body)?;
        let plan = match call.method {
            Method::Named { .. } => Plan::passed(),
            Method::Typed { interface, operation } => self.side.plan(interface, operation),
        };
        // A hop names the operation by what came; a typed call has the contract's action.
        let action = match call.method {
            Method::Named { operation, .. } => {
                std::str::from_utf8(operation).map_err(|_| needs_contract("an action that is no text"))?
            }
            Method::Typed { .. } => &**self.asked_outside(&plan, &call.profile.key),
        };
        let id = CallId(self.begun + 1);
        let wanted = call.expects == Expects::Reply;
        let identified = wanted && self.dialect.addressing;
        let guid = self.ids.of(id);
        let key = &call.profile.key;
        let head = HeadFields { key, operation: Some(action.as_bytes()), identified };
        // A security header has the time in it, and so is new in each message.
        let plain = !self.settings.username && is_unchanged(body);
        if !plain || !self.put_again(body, headers, head, &guid, out) {
            let to = (self.side == Side::Client).then(|| self.settings.via(key));
            let (message_id, security) = (identified.then_some(&guid), self.asks_as()?);
            let saying =
                HeadContents { message_id, to: to.as_deref(), headers: &security, ..HeadContents::default() };
            // In Clark notation it names the first element of a body without an action.
            let action = Some(if action.starts_with('{') { "" } else { action });
            let own = ConnectionHeaders { action, saying, changes: [body.headers(), headers] };
            self.put_passed(body, &own, plain.then_some(head), out)?;
        }
        self.begun = id.0;
        let action = self.is_http().then(|| self.told_action(action));
        if wanted {
            let call = self.spare.waiting(&plan);
            self.passes |= plan.passes;
            self.waiting.insert(id, call);
        }
        Ok(WrittenCall { id, action })
    }

    /// Answers with a body that is passed on.
    pub(super) fn pass_back(
        &mut self,
        call: &InboundCall,
        body: &Body,
        headers: Option<&Headers>,
        fault: bool,
        out: &mut SendBuffer,
    ) -> Visit<()> {
        if body.bytes.is_empty() && body.codec.name() == NAME {
            // The other side took the message, and had nothing to say.
            return Ok(());
        }
        self.check_passes(body)?;
        let unique = self.answered_by(call);
        let is_usual = call.reply_to.is_none() && call.echoed.is_none();
        let plain = !self.is_timed() && is_usual && unique.is_some() && is_unchanged(body);
        let head = HeadFields { key: &call.key, operation: None, identified: true };
        if plain && self.put_again(body, headers, head, &unique.unwrap_or_default(), out) {
            return Ok(());
        }
        if call.drops(fault) {
            return Ok(());
        }
        let reply = || {
            let echoed = call.echoed.as_ref().map_or(&[][..], |echoed| &echoed.reply);
            Addressee { relates_to: call.message_id.as_ref(), to: call.reply_to.as_deref(), echoed }
        };
        let Addressee { relates_to, to, echoed } = if fault { call.addressee() } else { reply() };
        let security = [&self.timestamp(), echoed].concat();
        let saying = HeadContents { relates_to, to, headers: &security, ..HeadContents::default() };
        let own = ConnectionHeaders { action: None, saying, changes: [body.headers(), headers] };
        self.put_passed(body, &own, plain.then_some(head), out)
    }

    /// Appends a message by the head that left before for this body, if there is one; whether that is so.
    #[inline]
    fn put_again(
        &mut self,
        body: &Body,
        headers: Option<&Headers>,
        head: HeadFields<'_>,
        guid: &[u8; 16],
        out: &mut SendBuffer,
    ) -> bool {
        let none = Edits::default();
        let edits = headers.map_or(&none, Headers::shared_edits);
        let words = &BodyContext::of(body).words;
        let Some(template) = self.passages.find(&body.context, head, edits) else { return false };
        let goes = self.dialect.form == Form::Text || self.words.can_adopt(words);
        if goes {
            begin(self.dialect.session, &mut self.words, Some(words), out);
            template.write(self.dialect.form, guid, out);
            rest(&body.bytes, body.base, out);
        }
        goes
    }

    /// Whether this is a call of this side that nobody here knows.
    pub fn is_passed(&self, id: CallId) -> bool {
        self.waiting.get(id).is_some_and(|plan| plan.passes)
    }

    /// Whether a body can be passed on here.
    /// What it refuses is sent by a contract, if somebody has one (`needs_contract`).
    fn check_passes(&self, body: &Body) -> Visit<()> {
        if body.codec.name() != NAME || body.base == 0 {
            return Err(needs_contract("a body of another wire"));
        }
        let form = if body.dialect == TEXT { Form::Text } else { Form::Binary };
        if form != self.dialect.form {
            return Err(needs_contract("a body in another form of XML"));
        }
        if self.reliable.is_some() {
            return Err(needs_contract("a body in a reliable session"));
        }
        Ok(())
    }

    /// Appends a message with a head that is made now, and keeps that under what is known of it, if anything is.
    fn put_passed(
        &mut self,
        body: &Body,
        own: &ConnectionHeaders<'_>,
        kept: Option<HeadFields<'_>>,
        out: &mut SendBuffer,
    ) -> Visit<()> {
        let (dialect, quotas) = (self.dialect, self.reading.quotas);
        let words = &BodyContext::of(body).words;
        // Numbers of words may mean others here.
        // Then the whole document is copied: that is the price of a session that has told its peer other words.
        let adopts = dialect.form == Form::Text || self.words.can_adopt(words);
        let spelled = if adopts { None } else { Some(Bytes::from(spell_out(&body.bytes, words)?)) };
        let bytes = spelled.as_ref().unwrap_or(&body.bytes);
        let outline = Outline::read(Document { form: dialect.form, bytes, words, quotas: &quotas })?;
        let made = make(dialect, &outline, bytes, own)?;
        begin(dialect.session, &mut self.words, adopts.then_some(words), out);
        out.flat().extend_from_slice(&made.head);
        rest(bytes, made.inside, out);
        if let Some(head) = kept.filter(|_| adopts)
            && !body.context.is_empty()
        {
            let template = Template::cut(dialect.form, &made.head, made.hole);
            // What is kept has no changes of its own (`is_unchanged`).
            let [_, beside] = own.changes;
            let edits = beside.map(Headers::shared_edits).cloned().unwrap_or_default();
            self.passages.keep(&body.context, head, edits, template);
        }
        Ok(())
    }

    /// What goes beside the envelope over HTTP.
    fn told_action(&mut self, action: &str) -> Arc<str> {
        let action = if action.starts_with('{') { "" } else { action };
        match &self.told {
            Some(told) if **told == *action => Arc::clone(told),
            _ => Arc::clone(self.told.insert(action.into())),
        }
    }
}

/// Appends what stands before a document: the words that the peer has not met.
/// With `None` nothing of another session follows: the table has only what this side has learned and not
/// told.
#[inline]
fn begin(session: bool, outgoing: &mut Outgoing, words: Option<&Arc<StringTable>>, out: &mut SendBuffer) {
    words.inspect(|words| outgoing.adopt(words));
    if session {
        put_table(outgoing.fresh(), out);
        outgoing.told();
    }
}

/// Appends a document from some byte on.
#[inline]
fn rest(document: &Bytes, from: usize, out: &mut SendBuffer) {
    let rest = document.get(from..).unwrap_or_default();
    if rest.len() < SPLICE {
        out.flat().extend_from_slice(rest);
    } else {
        out.splice(document.slice(from..));
    }
}

/// Whether nobody wants other headers than those that came.
#[inline]
fn is_unchanged(body: &Body) -> bool {
    body.headers().is_none_or(|own| own.edits().is_empty())
}

/// The same failure, with the fault as it came.
pub(super) fn as_it_came(failure: Failure, body: Body) -> Failure {
    failure.with_encoded(Encoded { id: String::new(), raised: false, body })
}
