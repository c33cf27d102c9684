//! One channel's messages in both directions.

mod attending;
mod compose;
mod ending;
mod messages;
mod passing;
mod plans;
mod receiving;
mod resuming;
mod sending;
mod signals;

use super::ids::{Ids, MessageId};
use super::rm::{Owner, Reliable};
use super::seen::Seen;
use super::waiting::Open;
use super::{Dialect, Form};
use crate::dictionary::{Outgoing, Words};
use crate::plan::Plan;
use crate::settings::Settings;
use crate::values::Reading;
use crate::wire_state::Node;
use bytes::Bytes;
use everywire_model::body::Beside;
use everywire_model::{Budget, CallId, Config, Event, Limits, Profile};
use messages::Own;
use passing::Passages;
use plans::Plans;
use signals::Listeners;
pub(crate) use signals::signal_of;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

/// Which side of the channel this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that opened it.
    Client,
    /// The one that accepted it.
    Server,
}

/// A call that was written.
#[derive(Debug, Clone)]
pub struct Started {
    /// Its number.
    pub id: CallId,
    /// The action, for HTTP, which carries it outside the envelope.
    pub action: Option<Arc<str>>,
}

/// An answer that was written.
#[derive(Debug, Clone, Default)]
pub struct Answered {
    /// Whether there is a message: there is none for one-way calls, nor now for answers that a reliable session keeps until its
    /// window lets them go.
    pub sends: bool,
    /// Whether it is a fault.
    pub fault: bool,
    /// The action, for framings that carry it outside the envelope.
    pub action: Option<Arc<str>>,
}

/// A message that the exchange sends on its own account, or of a reliable session.
#[derive(Debug, Clone, Default)]
pub struct Flushed {
    /// Whether it is a fault.
    pub fault: bool,
    /// The action, for framings that carry it outside the envelope.
    pub action: Option<Arc<str>>,
    /// Whether it is the response to the message that was received last, where the framing has responses.
    pub answers: bool,
    /// Of a reliable session: the call that it begins.
    pub call: Option<CallId>,
}

/// A call that this side began.
struct Waiting {
    plan: Arc<Plan>,
}

/// A call that the peer began.
struct Serving {
    plan: Arc<Plan>,
    index: usize,
    message_id: Option<MessageId>,
    /// Whether it is to be answered.
    answered: bool,
    key: Bytes,
    reply_to: Option<Box<str>>,
}

/// What the last calls that ended have left: the next ones mostly need the same, and so count no references.
#[derive(Default)]
struct Spare {
    /// Of a call that this side began.
    waiting: Option<Waiting>,
    /// Of a call that the peer began.
    serving: Option<(Arc<Plan>, Bytes)>,
}

impl Spare {
    #[inline]
    fn waiting(&mut self, plan: &Arc<Plan>) -> Waiting {
        match self.waiting.take() {
            Some(spare) if Arc::ptr_eq(&spare.plan, plan) => spare,
            _ => Waiting { plan: Arc::clone(plan) },
        }
    }

    #[inline]
    fn serving(&mut self, plan: &Arc<Plan>, key: &Bytes) -> (Arc<Plan>, Bytes) {
        match self.serving.take() {
            Some(spare) if Arc::ptr_eq(&spare.0, plan) && spare.1 == *key => spare,
            _ => (Arc::clone(plan), key.clone()),
        }
    }
}

/// One channel's messages in both directions: envelopes, addressing, correlation, faults, callbacks, subscriptions;
/// without framing.
pub struct SoapChannel {
    dialect: Dialect,
    side: Side,
    settings: Arc<Settings>,
    limits: Limits,
    /// Woken when another connection brings what a request here waits for.
    waker: Option<Waker>,
    node: Option<Arc<Node>>,
    /// Words that this side has told the peer.
    words: Outgoing,
    /// Words of the peer, and quotas of reading.
    reading: Reading,
    beside: Arc<Beside>,
    ids: Ids,
    plans: Plans,
    seen: Seen,
    /// Whether anything here was passed on: calls of the peer, or answers to it.
    passes: bool,
    passages: Passages,
    /// The greatest number of a call that was passed on and that its answer named.
    overtaken: u64,
    /// The action that was last told beside an envelope that was passed on.
    told: Option<Arc<str>>,
    waiting: Open<Waiting>,
    serving: Open<Serving>,
    spare: Spare,
    /// Calls of this side in a reliable session over HTTP that expect nothing, until they are known to have arrived.
    telling: Vec<CallId>,
    /// Calls of this side, and subscriptions.
    begun: u64,
    /// Calls of the peer.
    taken: u64,
    listeners: Listeners,
    events: VecDeque<Event>,
    /// Messages on the exchange's own account.
    own: VecDeque<Own>,
    /// The session of the message that was received last, or of all.
    reliable: Option<Box<Reliable>>,
    /// Over HTTP, the session of the one before that.
    before: Option<Box<Reliable>>,
    /// Calls of the peer that came in a session over HTTP: their answers go there, whatever has come since.
    apart: Vec<(CallId, Box<Reliable>)>,
    /// The call that was answered last, if its session keeps the answer until there is room for it.
    kept: Option<(CallId, Box<Reliable>)>,
    /// Whose sessions those are that begin here.
    owner: Owner,
    /// Where a reliable session of this side's leads.
    lane: Bytes,
    /// The way there, where it may go on over another connection.
    way: Option<Profile>,
    /// Messages that left over other connections, and the calls here that wait for their answers.
    resumed: Vec<([u8; 16], CallId)>,
    /// How often what the node serves had changed when heads were remembered.
    changes: u64,
    /// The time, as far as anybody has told.
    clock: Instant,
}

impl SoapChannel {
    /// A fresh channel.
    pub fn new(dialect: Dialect, config: &Config, settings: &Arc<Settings>, side: Side) -> Self {
        let quotas = settings.quotas.reader;
        let words = Words::with_quota(settings.quotas.max_session_size);
        let reading = Reading { words: Arc::new(words), quotas, types: None };
        let asks = side == Side::Client && settings.reliable && dialect.addressing;
        let mut outgoing = match dialect.form {
            Form::Text => Outgoing::inline(),
            // Messages that may get lost must be understood without those before them.
            Form::Binary if dialect.session && !asks => Outgoing::session(),
            Form::Binary => Outgoing::statics(),
        };
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
            seen: Seen::default(),
            passes: false,
            passages: Passages::default(),
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
            lane: if asks { settings.lane(&config.profile.key) } else { Bytes::new() },
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

    /// Forgets a call that was begun: a late answer is dropped.
    pub fn cancel(&mut self, id: CallId) {
        self.waiting.remove(id);
        self.has_arrived(id);
        if let Some(reliable) = &mut self.reliable {
            reliable.cancel(id);
        }
    }

    /// When `expire` wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        self.reliable.as_ref().and_then(|reliable| reliable.deadline())
    }

    fn begin(&mut self) -> CallId {
        self.begun += 1;
        CallId(self.begun)
    }
}

/// Bodies of this channel may have values of any type from now on.
fn know(reading: &mut Reading, told: &mut Arc<Beside>, plan: &Plan) {
    let Some(types) = &plan.types else { return };
    let types = match &reading.types {
        Some(known) if known.covers(types) => return,
        Some(known) => Arc::new(known.with(types)),
        None => Arc::clone(types),
    };
    reading.types = Some(types);
    *told = beside(reading);
}

fn beside(reading: &Reading) -> Arc<Beside> {
    Arc::new(Beside { wire_state: Some(Arc::new(reading.clone())), ..Beside::default() })
}
