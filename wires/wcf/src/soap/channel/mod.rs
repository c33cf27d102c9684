//! One channel's messages in both directions.
//!
//! `state` is what a channel knows, with `plans`, `head_templates` and `listeners` as its parts; the other files are what it does.
//!
//! A message that comes goes through `receiving` (to `attending`, where it is of a reliable session), and
//! becomes an event or an answer that is owed. A message that goes is made by `sending`, `signals` or
//! `passing`, put together by `compose`, and appended to the buffer that the framing gave. What the channel
//! has to say on its own account waits in `messages`.

mod attending;
mod compose;
mod ending;
mod head_templates;
mod listeners;
mod messages;
mod passing;
mod plans;
mod receiving;
mod resuming;
mod sending;
mod signals;
mod state;
mod wrapping;

pub use state::{Flushed, Side, SoapChannel, WrittenCall, WrittenReply};

use super::cursor::Document;
use super::head_cache::HeadCache;
use super::ids::Ids;
use super::put::alone;
use super::rm::{Owner, Session};
use super::waiting::Open;
use super::{Dialect, Form};
use crate::dictionary::{Outgoing, StringTable};
use crate::settings::Settings;
use crate::values::BodyContext;
use crate::wire_state::Node;
use everywire_model::{Budget, CallId, Config, Event};
use head_templates::HeadTemplates;
use listeners::Listeners;
use plans::Plans;
pub(crate) use signals::signal_of;
use state::{Spare, beside};
use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

impl SoapChannel {
    /// A fresh channel.
    pub fn new(dialect: Dialect, config: &Config, settings: &Arc<Settings>, side: Side) -> Self {
        let quotas = settings.quotas.reader;
        let words = StringTable::with_quota(settings.quotas.max_session_size);
        let reading = BodyContext {
            words: Arc::new(words),
            quotas,
            headers: Some([].into()),
            ..BodyContext::default()
        };
        // The service side learns from a client's CreateSequence that there is a session.
        let asks = side == Side::Client && settings.reliable && dialect.addressing;
        let mut outgoing = match dialect.form {
            // Messages that may get lost must be understood without those before them.
            Form::Binary if dialect.session && !asks => Outgoing::session(),
            form => alone(form),
        };
        // An endpoint that takes large messages also sends them.
        let most = config.limits.message.max(settings.quotas.max_received_message_size);
        outgoing.most = usize::try_from(most).unwrap_or(usize::MAX);
        Self {
            dialect,
            side,
            settings: Arc::clone(settings),
            limits: config.limits.clone(),
            waker: config.waker.clone(),
            node: config.wire_state.as_ref().and_then(Node::of),
            words: outgoing,
            beside: beside(&reading),
            reading,
            ids: Ids::new(),
            plans: Plans::default(),
            seen: HeadCache::default(),
            passes: false,
            passages: HeadTemplates::default(),
            overtaken: 0,
            told: None,
            waiting: Open::new(),
            serving: Open::new(),
            spare: Spare::default(),
            telling: Vec::new(),
            begun: 0,
            taken: 0,
            listeners: Listeners::default(),
            events: VecDeque::new(),
            own: VecDeque::new(),
            changes: 0,
            clock: Instant::now(),
            before: None,
            apart: Vec::new(),
            kept: None,
            owner: Owner::at(&config.peer),
            reliable: asks.then(|| Box::new(ending::session(dialect, config, settings))),
            way: (asks && settings.binding.is_http()).then(|| config.profile.clone()),
            resumed: Vec::new(),
        }
    }

    /// Whether anything has happened.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// What happened, in order.
    #[inline]
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What bodies may cost who reads them.
    pub fn budget(&self) -> Budget {
        self.limits.budget
    }

    /// Calls begun by either side and not yet answered.
    pub fn outstanding(&self) -> usize {
        self.waiting.len() + self.serving.len()
    }

    /// Bytes of messages that a reliable session keeps until its peer acknowledges them.
    pub fn kept(&self) -> usize {
        self.session().map_or(0, |session| session.out.kept())
    }

    /// Forgets a call that was begun: a late answer is dropped.
    pub fn cancel(&mut self, id: CallId) {
        self.waiting.remove(id);
        self.has_arrived(id);
        if let Some(mut session) = self.session() {
            session.out.cancel(id);
        }
    }

    /// When `expire` wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        self.session()?.deadline()
    }

    /// The reliable session, locked: nothing else is asked of it meanwhile.
    fn session(&self) -> Option<MutexGuard<'_, Session>> {
        Some(self.reliable.as_ref()?.session())
    }

    /// A document of the peer, to be read.
    fn readable<'a>(&'a self, bytes: &'a [u8]) -> Document<'a> {
        Document { form: self.dialect.form, bytes, words: &self.reading.words, quotas: &self.reading.quotas }
    }

    /// The number of the next call or subscription of this side; the first is 1.
    fn begin(&mut self) -> CallId {
        self.begun += 1;
        CallId(self.begun)
    }
}
