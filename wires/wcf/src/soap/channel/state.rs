//! What a channel knows: of its peer, of the calls under way, and of what it has to send.

use super::head_templates::HeadTemplates;
use super::listeners::Listeners;
use super::plans::Plans;
use crate::dictionary::Outgoing;
use crate::plan::Plan;
use crate::settings::Settings;
use crate::soap::Dialect;
use crate::soap::faults::FaultContents;
use crate::soap::head_cache::HeadCache;
use crate::soap::ids::{Ids, MessageId};
use crate::soap::parameters::EchoedHeaders;
use crate::soap::rm::{Owner, Reliable};
use crate::soap::waiting::Open;
use crate::values::BodyContext;
use crate::wire_state::Node;
use bytes::Bytes;
use everywire_model::body::Attachments;
use everywire_model::{CallId, Event, Interface, Limits, Operation, Profile};
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

impl Side {
    /// What a call of this side is, by its contract.
    pub(super) fn plan(self, interface: Option<&Interface>, operation: &Operation) -> Arc<Plan> {
        match self {
            Self::Client => Plan::of(interface, operation),
            Self::Server => Plan::of_backward(interface, operation),
        }
    }
}

/// A call that was written.
#[derive(Debug, Clone)]
pub struct WrittenCall {
    /// Its number.
    pub id: CallId,
    /// The action, for HTTP, which carries it outside the envelope.
    pub action: Option<Arc<str>>,
}

/// An answer that was written.
#[derive(Debug, Clone, Default)]
pub struct WrittenReply {
    /// Whether there is a message: there is none for one-way calls, nor now for answers that a reliable session keeps until its
    /// window lets them go.
    pub sends: bool,
    /// Whether it is a fault.
    pub fault: bool,
}

/// A message that the exchange sends on its own account, or of a reliable session.
/// Its payload was appended to the buffer that `flush` was given.
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

/// A fault for a message that reached nobody, to be sent as soon as the framing asks.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) said: FaultContents,
    pub(super) relates_to: Option<MessageId>,
    pub(super) not_understood: Vec<(String, String)>,
    /// Where it goes, if not back along the channel.
    pub(super) to: Option<Box<str>>,
    /// Headers that it repeats.
    pub(super) echoed: Vec<u8>,
}

/// Whom a fault is for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Addressee<'a> {
    pub(super) relates_to: Option<&'a MessageId>,
    /// Where to, if not back along the channel.
    pub(super) to: Option<&'a str>,
    /// Headers that the fault repeats.
    pub(super) echoed: &'a [u8],
}

/// A call that the peer began.
pub(super) struct InboundCall {
    pub(super) plan: Arc<Plan>,
    /// Of the plan among the channel's, for the template of its reply; the plan there may be another one
    /// meanwhile.
    pub(super) index: usize,
    pub(super) message_id: Option<MessageId>,
    /// Whether it is to be answered.
    pub(super) answered: bool,
    /// The object that is called.
    pub(super) key: Bytes,
    /// Where the caller wants the answer, if not back along the channel; it stands in the answer's `To`.
    pub(super) reply_to: Option<Box<str>>,
    /// What the answer repeats of that, and where faults go.
    pub(super) echoed: Option<Box<EchoedHeaders>>,
}

impl InboundCall {
    /// Whom a fault about it is for.
    pub(super) fn addressee(&self) -> Addressee<'_> {
        let relates_to = self.message_id.as_ref();
        match &self.echoed {
            Some(echoed) => Addressee { relates_to, to: echoed.fault_to.as_deref(), echoed: &echoed.fault },
            None => Addressee { relates_to, to: self.reply_to.as_deref(), echoed: &[] },
        }
    }

    /// Whether nobody wants its answer: a fault, or what is none.
    pub(super) fn drops(&self, fault: bool) -> bool {
        self.echoed.as_ref().is_some_and(|echoed| if fault { echoed.drops_fault } else { echoed.drops_reply })
    }
}

/// Parts of the last calls that ended. The next call mostly needs the same, and so neither clones an `Arc`
/// nor drops one.
#[derive(Default)]
pub(super) struct Spare {
    /// Of a call that this side began.
    pub(super) waiting: Option<Arc<Plan>>,
    /// Of a call that the peer began.
    pub(super) serving: Option<(Arc<Plan>, Bytes)>,
}

impl Spare {
    /// A call that this side begins.
    #[inline]
    pub(super) fn waiting(&mut self, plan: &Arc<Plan>) -> Arc<Plan> {
        match self.waiting.take() {
            Some(spare) if Arc::ptr_eq(&spare, plan) => spare,
            _ => Arc::clone(plan),
        }
    }

    /// What is held of a call that the peer begins.
    #[inline]
    pub(super) fn serving(&mut self, plan: &Arc<Plan>, key: &Bytes) -> (Arc<Plan>, Bytes) {
        match self.serving.take() {
            Some(spare) if Arc::ptr_eq(&spare.0, plan) && spare.1 == *key => spare,
            _ => (Arc::clone(plan), key.clone()),
        }
    }
}

/// One channel's messages in both directions: envelopes, addressing, correlation, faults, callbacks, subscriptions;
/// without framing.
pub struct SoapChannel {
    pub(super) dialect: Dialect,
    pub(super) side: Side,
    pub(super) settings: Arc<Settings>,
    pub(super) limits: Limits,
    /// Woken when another connection brings what a request here waits for.
    pub(super) waker: Option<Waker>,
    pub(super) node: Option<Arc<Node>>,
    /// Words that this side has told the peer.
    pub(super) words: Outgoing,
    /// Words of the peer, and quotas of reading.
    pub(super) reading: BodyContext,
    /// Shared with each body that came; made anew when words or types are learnt, so bodies keep what they
    /// came with.
    pub(super) beside: Arc<Attachments>,
    pub(super) ids: Ids,
    pub(super) plans: Plans,
    /// What it remembers refers to `plans` by number, and to words by their bytes.
    pub(super) seen: HeadCache,
    /// Whether anything here was passed on: calls of the peer, or answers to it.
    pub(super) passes: bool,
    pub(super) passages: HeadTemplates,
    /// The greatest number of a call that was passed on and has been answered by name: calls before it that
    /// still wait were probably one-way.
    pub(super) overtaken: u64,
    /// The action that was last told beside an envelope that was passed on.
    pub(super) told: Option<Arc<str>>,
    /// Calls of this side that wait for their answer, and how that is read; one-way calls are not among them.
    pub(super) waiting: Open<Arc<Plan>>,
    /// Calls of the peer that wait for theirs.
    pub(super) serving: Open<InboundCall>,
    pub(super) spare: Spare,
    /// One-way calls of this side in a reliable session over HTTP, until the response to their message says
    /// that it has arrived.
    pub(super) telling: Vec<CallId>,
    /// Calls of this side, and subscriptions.
    pub(super) begun: u64,
    /// Calls of the peer.
    pub(super) taken: u64,
    pub(super) listeners: Listeners,
    /// In the order in which they happened.
    pub(super) events: VecDeque<Event>,
    /// Messages on the exchange's own account.
    pub(super) own: VecDeque<Refusal>,
    /// The session of the message that was received last, or of all.
    pub(super) reliable: Option<Box<Reliable>>,
    /// Over HTTP, the session of the one before that.
    pub(super) before: Option<Box<Reliable>>,
    /// Calls of the peer that came in a session over HTTP: their answers go there, whatever has come since.
    pub(super) apart: Vec<(CallId, Box<Reliable>)>,
    /// The call that was answered last, if its session keeps the answer until there is room for it.
    pub(super) kept: Option<(CallId, Box<Reliable>)>,
    /// Whose sessions those are that begin here.
    pub(super) owner: Owner,
    /// The profile that leads to the service, where calls may go on over another connection: in a reliable
    /// session over HTTP.
    pub(super) way: Option<Profile>,
    /// Messages that left over other connections, and the calls here that wait for their answers.
    pub(super) resumed: Vec<([u8; 16], CallId)>,
    /// How often what the node serves had changed when heads were remembered.
    pub(super) changes: u64,
    /// The time, as far as anybody has told.
    pub(super) clock: Instant,
}

/// Bodies of this channel may have values of any type from now on.
pub(super) fn know(reading: &mut BodyContext, told: &mut Arc<Attachments>, plan: &Plan) {
    let Some(types) = &plan.types else { return };
    let types = match &reading.types {
        Some(known) if known.covers(types) => return,
        Some(known) => Arc::new(known.with(types)),
        None => Arc::clone(types),
    };
    reading.types = Some(types);
    *told = beside(reading);
}

/// What stands beside the bodies of this channel.
pub(super) fn beside(reading: &BodyContext) -> Arc<Attachments> {
    Arc::new(Attachments { wire_state: Some(Arc::new(reading.clone())), ..Attachments::default() })
}
