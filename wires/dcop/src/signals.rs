//! Signals: told by sending to the server's object `emit`, heard by having it connect them to slots.
//!
//! Each signal of a subscription is connected to an object id of its own, a private one with a number; what the server
//! sends there is the signal. Connections are not volatile: they last when the emitter leaves, and go on when it comes
//! back under its id.

use crate::address;
use crate::ice::minor;
use crate::limits::{NO_TREE, SUBSCRIPTIONS};
use crate::passing::signature_of;
use crate::request_templates::CallHead;
use crate::session::{CallPurpose, DcopSession};
use crate::slots::{Slot, Sub, connection};
use crate::strings::StringReader;
use crate::types;
use bytes::Bytes;
use everywire_model::{
    CallId, Context, Emission, Event, Failure, Incoming, Initiator, Kind, Outcome, Profile, Signal,
    SignalFilter, Topic,
};

impl DcopSession {
    /// Tells a signal: a send to the server, which nobody answers.
    ///
    /// # Errors
    /// The connection is not open, a name is none, or the values do not encode.
    pub(crate) fn tell(&mut self, emission: &Emission<'_>) -> Result<(), Failure> {
        self.check_open()?;
        let way = match emission.topic {
            Topic::Typed { signal, .. } => self.emitted.signal(&self.name, emission.key, signal)?,
            Topic::Named { signal, .. } => {
                let signature = signature_of(signal, emission.arguments.carries().body);
                self.emitted.named_signal(&self.name, emission.key, signature)?
            }
        };
        self.put(minor::SEND, NO_TREE, &way, emission.arguments)
    }

    /// Has signals connected, each to a slot of its own; an `Event::Reply` with the subscription's number
    /// comes when the server has confirmed all of them, or refused one.
    ///
    /// # Errors
    /// The connection is not open, no signal is named and there is no contract, or there are too many.
    pub(crate) fn listen(&mut self, profile: &Profile, filter: SignalFilter<'_>) -> Result<CallId, Failure> {
        self.check_open()?;
        let signals: Vec<&Signal> = match (filter.signal, filter.interface) {
            (Some(signal), _) => vec![signal],
            (None, Some(interface)) => interface.signals.iter().collect(),
            (None, None) => {
                let what =
                    "DCOP objects do not tell which signals they emit, so each must be asked for by name";
                return Err(Failure::new(Kind::Unsupported, Initiator::User, what)
                    .with_hint("give the object's contract (its .kidl), or name the signal"));
            }
        };
        if signals.is_empty() {
            return Err(Failure::new(Kind::Unsupported, Initiator::User, "the interface has no signals"));
        }
        if self.slots.len() + signals.len() > SUBSCRIPTIONS {
            let (what, asked) = ("signals subscribed to on one connection", self.slots.len() + signals.len());
            return Err(Failure::over_limit(Initiator::Here, what, asked, SUBSCRIPTIONS));
        }
        let signature = |signal: &&Signal| Ok(self.spelled(&types::signal(signal)?).into_owned());
        let signatures = signals.iter().map(signature).collect::<Result<Vec<String>, Failure>>()?;
        let app = Bytes::copy_from_slice(address::application(profile));
        let id = u64::from(self.take_key());
        let mut numbers = Vec::with_capacity(signals.len());
        for (signal, signature) in signals.iter().zip(&signatures) {
            let number = self.next_slot;
            self.next_slot += 1;
            let slot = Slot {
                subscription: id,
                app: app.clone(),
                object: profile.key.clone(),
                name: Bytes::copy_from_slice(signal.name.as_bytes()),
                signature: Bytes::copy_from_slice(signature.as_bytes()),
            };
            let mut arguments = connection(number, &slot);
            // Not volatile.
            arguments.push(0);
            self.slots.insert(number, slot);
            numbers.push(number);
            let function = "connectSignal(QCString,QCString,QCString,QCString,QCString,bool)";
            self.ask(function, &arguments, CallPurpose::Connect(number));
        }
        self.subs.insert(id, Sub { app, unconfirmed: numbers.len(), slots: numbers });
        self.follow();
        Ok(CallId(id))
    }

    /// Has the server tell who comes and goes as long as somebody's loss would matter. The server counts such
    /// wishes, so each change is told once.
    fn follow(&mut self) {
        let wanted = self.subs.values().any(|sub| !sub.app.is_empty());
        if wanted != self.notified {
            self.notified = wanted;
            self.ask("setNotifications(bool)", &[wanted.into()], CallPurpose::Quiet);
        }
    }

    /// The server confirms a connection, or refuses it. A slot that is gone meanwhile is passed over.
    pub(crate) fn connected(&mut self, slot: u64, connected: bool) {
        let Some(id) = self.slots.get(&slot).map(|slot| slot.subscription) else { return };
        if !connected {
            let failure =
                Failure::new(Kind::Refused, Initiator::Peer, "the DCOP server does not connect the signal");
            self.refused_slot(slot, &failure);
            return;
        }
        let Some(sub) = self.subs.get_mut(&id) else { return };
        sub.unconfirmed = sub.unconfirmed.saturating_sub(1);
        if sub.unconfirmed == 0 {
            let nothing = self.body(Bytes::new(), Context::default());
            self.events.push_back(Event::Reply { id: CallId(id), outcome: Outcome::Done(nothing) });
        }
    }

    /// A subscription fails before it stands: all of its slots end, and the user is told.
    pub(crate) fn refused_slot(&mut self, slot: u64, failure: &Failure) {
        let Some(id) = self.slots.get(&slot).map(|slot| slot.subscription) else { return };
        self.unlisten(id);
        self.events.push_back(Event::Reply { id: CallId(id), outcome: Outcome::Failed(failure.clone()) });
    }

    /// Ends a subscription and has its signals disconnected, without waiting for an answer.
    pub(crate) fn unlisten(&mut self, id: u64) {
        let Some(sub) = self.subs.remove(&id) else { return };
        let open = self.check_open().is_ok();
        for number in sub.slots {
            let Some(slot) = self.slots.remove(&number) else { continue };
            if open {
                let arguments = connection(number, &slot);
                let function = "disconnectSignal(QCString,QCString,QCString,QCString,QCString)";
                self.ask(function, &arguments, CallPurpose::Quiet);
            }
        }
        if open {
            self.follow();
        }
    }

    /// A signal came, for the slot of this number.
    #[inline]
    pub(crate) fn heard(&mut self, number: u64, came: &CallHead, data: Bytes) {
        // One that was on its way when it was disconnected.
        let Some(slot) = self.slots.get(&number) else { return };
        // The server keeps to what was connected; others can send here directly.
        if !slot.app.is_empty() && slot.app != came.sender {
            return;
        }
        let body = self.body(data, came.context.clone());
        let (sender, key) = (came.sender.clone(), slot.object.clone());
        let heard = Incoming::signal(sender, key, Bytes::new(), slot.name.clone(), body);
        let subscriptions = vec![CallId(slot.subscription)];
        self.events.push_back(Event::Signal { subscriptions, heard: Box::new(heard) });
    }

    /// The server tells who came or went. Whoever listens to an application that went is told; the
    /// subscription stands.
    pub(crate) fn notified_of(&mut self, function: &[u8], data: &[u8]) {
        if !matches!(function, b"applicationRemoved(QCString)" | b"applicationRemoved(TQCString)") {
            return;
        }
        let Some(app) = StringReader::new(data).name().ok().and_then(|name| data.get(name)) else { return };
        let mut lost: Vec<u64> =
            self.subs.iter().filter(|(_, sub)| sub.app == app).map(|(id, _)| *id).collect();
        lost.sort_unstable();
        for id in lost {
            let what = format!("application `{}` has left", String::from_utf8_lossy(app).escape_debug());
            let failure = Failure::new(Kind::Unreachable, Initiator::Peer, what);
            self.events.push_back(Event::Lost { subscription: CallId(id), failure });
        }
    }
}
