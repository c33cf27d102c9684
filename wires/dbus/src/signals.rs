//! Signals: sent, subscribed to, taken.
//!
//! On a bus a subscription is a match rule there, shared by all subscriptions that need the same, and the
//! name of whom it listens to is watched: signals count only from the connection that owns the name now, as
//! the bus says, and the subscriber is told when that leaves. Without a bus all signals of the peer come
//! anyway.
//!
//! States of a subscription: it waits for the bus to take its rules and to tell the owner of the name
//! (`awaits` answers), then it is confirmed by an `Event::Reply`; `listen_no_more` ends it in either. If the
//! bus refuses anything that it needs, it ends with a failure. A rule, and a watch, has users and is asked
//! for once, with its first user; its number tells its answer from that of an earlier one with the same text.
//!
//! Invariants: a rule is at the bus as long as it has users; `generation` goes up with each change of who
//! hears what, so that what `seen` remembers for a header is not used after it. Names are checked before they
//! stand in a rule, since a quote in one would change the rule's meaning.

use crate::address::TAG_NAME;
use crate::dialect::{self, RESULTS};
use crate::frame;
use crate::heads::RouteHead;
use crate::incoming::ReceivedMessage;
use crate::limits;
use crate::names;
use crate::pending_calls::Pending;
use crate::session::DbusSession;
use crate::standard::driver;
use crate::subscriptions::{Subscription, key_of};
use crate::values::Values;
use bytes::Bytes;
use everywire_model::shape::Text;
use everywire_model::{
    Body, CallId, Completed, Context, Emission, Event, Failure, Headers, Incoming, Initiator, Kind, Outcome,
    Profile, SignalFilter, Sink, Topic, Visit,
};

/// What the bus answers if nobody owns a name. That is no failure: the owner may come later.
const NOBODY: &str = "org.freedesktop.DBus.Error.NameHasNoOwner";

impl DbusSession {
    /// Sends a signal: to everybody on the bus who listens, or to the peer. Nothing answers a signal.
    ///
    /// # Errors
    /// The connection is not open, or the values do not encode.
    pub(crate) fn send_signal(&mut self, emission: &Emission<'_>) -> Result<(), Failure> {
        self.check_open()?;
        let carries = emission.arguments.carries();
        let (serial, setup) = (self.take_serial(), self.setup());
        let route = match emission.topic {
            Topic::Typed { interface, signal } => self.routes.signal(emission.key, interface, signal)?,
            Topic::Named { interface, signal } => {
                self.routes.named_signal(emission.key, interface, signal)?
            }
        };
        let flags = frame::NO_REPLY_EXPECTED | carries.body.map_or(0, dialect::flags);
        let mut head = RouteHead::new(route, serial, flags);
        if carries.body.is_some() || carries.headers.is_some() {
            let (out, scratch) = (&mut self.out, &mut self.scratch);
            return Self::send_with(out, scratch, setup, &mut head, emission.arguments, carries);
        }
        Self::send(&mut self.out, &mut self.scratch, setup, &mut head, emission.arguments)
    }

    /// Begins a subscription; an `Event::Reply` with its number will confirm or refuse it.
    ///
    /// # Errors
    /// The connection is not open, there are too many subscriptions, or a name is not valid.
    pub(crate) fn listen(&mut self, profile: &Profile, filter: SignalFilter<'_>) -> Result<CallId, Failure> {
        self.check_open()?;
        if self.subscriptions.all.len() >= limits::SUBSCRIPTIONS {
            let (what, limit) = ("subscriptions on one connection", limits::SUBSCRIPTIONS);
            return Err(Failure::over_limit(Initiator::Here, what, limit + 1, limit));
        }
        let interface = filter.interface.map(|interface| match filter.signal {
            Some(signal) => names::of_interface(names::declaring_signal(interface, signal)).into_owned(),
            None => names::of_interface(interface).into_owned(),
        });
        let interface = interface.unwrap_or_default();
        let member = filter.signal.map_or("", names::of_signal);
        check_names(&interface, member)?;
        let on_bus = self.bus.is_some();
        let sender = profile.component(TAG_NAME).filter(|_| on_bus).cloned().unwrap_or_default();
        let key = if profile.key.is_empty() { Bytes::new() } else { exported(&profile.key) };
        let rules = if on_bus { rules(&sender, &profile.key, &interface, member) } else { Vec::new() };

        self.subscriptions.count += 1;
        self.subscriptions.generation += 1;
        // Numbers of calls have 32 bits: these are told apart from them.
        let id = CallId((1 << 32) + self.subscriptions.count);
        let name = key_of(interface.as_bytes(), member.as_bytes());
        self.subscriptions.by_name.entry(name.clone()).or_default().push(id);
        let watched = on_bus && !sender.is_empty() && sender != names::BUS;
        let held = Subscription { key, name, sender: sender.clone(), rules: Vec::new(), awaits: 0 };
        self.subscriptions.all.insert(id, held);

        let asked = self.ask_for(rules, Some(&sender).filter(|_| watched), id);
        match asked {
            Ok(0) => self.confirm(id),
            Ok(awaits) => {
                if let Some(held) = self.subscriptions.all.get_mut(&id) {
                    held.awaits = awaits;
                }
            }
            Err(failure) => {
                self.listen_no_more(id);
                return Err(failure);
            }
        }
        Ok(id)
    }

    /// Asks the bus for rules and the owner of a name; how many answers of it are missing.
    fn ask_for(&mut self, rules: Vec<String>, watched: Option<&Bytes>, id: CallId) -> Visit<usize> {
        let mut awaits = 0;
        for rule in rules {
            if let Some(held) = self.subscriptions.all.get_mut(&id) {
                held.rules.push(rule.clone());
            }
            awaits += usize::from(self.want_rule(rule, id)?);
        }
        if let Some(name) = watched {
            awaits += usize::from(self.watch(name, id)?);
        }
        Ok(awaits)
    }

    /// Ends a subscription, confirmed or not; gives back its rules. An unknown number is passed over.
    pub(crate) fn listen_no_more(&mut self, id: CallId) {
        let subscriptions = &mut self.subscriptions;
        let Some(held) = subscriptions.all.remove(&id) else { return };
        subscriptions.generation += 1;
        if let Some(ids) = subscriptions.by_name.get_mut(&held.name) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                subscriptions.by_name.remove(&held.name);
            }
        }
        if let Some(watch) = subscriptions.watches.get_mut(&held.sender) {
            watch.users.retain(|other| *other != id);
            watch.waiting.retain(|other| *other != id);
        }
        for rule in subscriptions.leave(&held.sender, held.rules, &watch_rule(&held.sender)) {
            self.drop_rule(&rule, id);
        }
    }

    /// Counts one more user of a rule, and asks the bus for it if it is the first. Whether its answer is
    /// still to come.
    fn want_rule(&mut self, rule: String, id: CallId) -> Visit<bool> {
        let number = self.subscriptions.count;
        let held = self.subscriptions.rules.entry(rule.clone()).or_default();
        held.users += 1;
        if held.confirmed {
            return Ok(false);
        }
        held.waiting.push(id);
        if held.users == 1 {
            held.number = number;
            let text = |sink: &mut dyn Sink| sink.text(&Text::NARROW, &rule);
            self.try_bus(&driver::BUS, driver::ADD_MATCH, &text, Some(Pending::Match(rule.clone(), number)))?;
        }
        Ok(true)
    }

    /// One user of a rule less; after the last one the bus is asked to forget it, without waiting for an
    /// answer.
    fn drop_rule(&mut self, rule: &str, id: CallId) {
        let Some(held) = self.subscriptions.rules.get_mut(rule) else { return };
        held.users = held.users.saturating_sub(1);
        held.waiting.retain(|other| *other != id);
        if held.users > 0 {
            return;
        }
        self.subscriptions.rules.remove(rule);
        let text = |sink: &mut dyn Sink| sink.text(&Text::NARROW, rule);
        let _ = self.try_bus(&driver::BUS, driver::REMOVE_MATCH, &text, None);
    }

    /// Watches a name; whether its owner is still to be told. An idle watch is used again, and the bus is
    /// asked for nothing.
    fn watch(&mut self, name: &Bytes, id: CallId) -> Visit<bool> {
        let number = self.subscriptions.count;
        let watch = self.subscriptions.watches.entry(name.clone()).or_default();
        if watch.users.is_empty() {
            self.subscriptions.idle.retain(|idle| idle != name);
        }
        watch.users.push(id);
        if watch.known {
            return Ok(false);
        }
        watch.waiting.push(id);
        if watch.users.len() == 1 {
            watch.number = number;
            let text = String::from_utf8_lossy(name).into_owned();
            let text = |sink: &mut dyn Sink| sink.text(&Text::NARROW, &text);
            let pending = Pending::Owner(name.clone(), number);
            self.try_bus(&driver::BUS, driver::GET_NAME_OWNER, &text, Some(pending))?;
        }
        Ok(true)
    }

    /// The bus took or refused a rule: its users have one answer less to wait for, or their subscriptions
    /// fail.
    pub(crate) fn matched(&mut self, rule: &str, number: u64, result: &Result<(), Failure>) {
        // Whoever wanted it may have gone, and somebody else have come.
        let held = self.subscriptions.rules.get_mut(rule).filter(|held| held.number == number);
        let Some(held) = held else { return };
        let waiting = std::mem::take(&mut held.waiting);
        match result {
            Ok(()) => {
                held.confirmed = true;
                waiting.into_iter().for_each(|id| self.one_answer_less(id));
            }
            Err(failure) => {
                self.subscriptions.rules.remove(rule);
                self.not_subscribed(waiting, failure);
            }
        }
    }

    /// Ends subscriptions that the bus refused, and tells whoever wanted them.
    fn not_subscribed(&mut self, ids: Vec<CallId>, failure: &Failure) {
        for id in ids {
            self.listen_no_more(id);
            self.reply(id, Outcome::Failed(failure.clone()));
        }
    }

    /// The bus told who owns a name that is listened to, or that nobody does.
    pub(crate) fn owner_told(&mut self, name: &Bytes, number: u64, result: &Result<Body, Failure>) {
        let owner = match result {
            Ok(body) => body.decode::<(String,)>(&driver::GET_NAME_OWNER.results).map(|(owner,)| owner),
            Err(failure) if failure.code() == Some(NOBODY) => Ok(String::new()),
            Err(failure) => Err(failure.clone()),
        };
        let since = self.next_serial;
        let watch = self.subscriptions.watches.get_mut(name).filter(|watch| watch.number == number);
        let Some(watch) = watch else { return };
        let waiting = std::mem::take(&mut watch.waiting);
        match owner {
            Ok(owner) => {
                (watch.owner, watch.known, watch.since) = (Bytes::from(owner), true, since);
                self.subscriptions.generation += 1;
                waiting.into_iter().for_each(|id| self.one_answer_less(id));
            }
            // Without the owner no signal could be told from that of anybody else.
            Err(failure) => self.not_subscribed(waiting, &failure),
        }
    }

    /// Confirms the subscription when it was the last answer.
    fn one_answer_less(&mut self, id: CallId) {
        let Some(held) = self.subscriptions.all.get_mut(&id) else { return };
        held.awaits = held.awaits.saturating_sub(1);
        if held.awaits == 0 {
            self.confirm(id);
        }
    }

    /// From now on signals may be expected.
    fn confirm(&mut self, id: CallId) {
        let body =
            Values::body(Bytes::new(), 0, crate::basics::NATIVE_LITTLE, Context::default(), Vec::new());
        self.reply(id, Outcome::Done(body));
    }

    /// A signal came. Who hears it is remembered with its header fields, for the next one. A peer that
    /// connected here gets no subscriptions of ours, but its signals go on to the node all the same.
    pub(crate) fn signalled(&mut self, message: ReceivedMessage) {
        let on_bus = self.bus.is_some();
        let Some(known) = self.seen.get(message.known) else { return };
        let fields = &known.fields;
        if on_bus && fields.sender == names::BUS && fields.interface == names::BUS {
            let (member, signature) = (fields.member.clone(), known.signature.clone());
            let body = self.body(message.clone(), signature, RESULTS);
            self.bus_says(&member, &body);
        }
        let Some(known) = self.seen.get(message.known) else { return };
        let (fields, generation) = (&known.fields, self.subscriptions.generation);
        let subscriptions = match &known.hearers {
            Some((held, hearers)) if *held == generation => hearers.clone(),
            _ => {
                let found =
                    self.subscriptions.hearers(&fields.sender, &known.key, &fields.interface, &fields.member);
                known.hearers = Some((generation, found.clone()));
                found
            }
        };
        if subscriptions.is_empty() && !self.accepted {
            return;
        }
        let fields = &known.fields;
        let signature = known.signature.clone();
        // Only a bus tells who sent something.
        let sender = if on_bus { fields.sender.clone() } else { Bytes::new() };
        let key = known.key.clone();
        let (interface, signal) = (fields.interface.clone(), fields.member.clone());
        let headers = fields.others.then(|| known.raw.clone());
        let body = self.body(message, signature, RESULTS).with_headers(headers.map(Headers::received));
        let heard = Incoming::signal(sender, key, interface, signal, body);
        self.events.push_back(Event::Signal { subscriptions, heard: Box::new(heard) });
    }

    /// The bus tells of its names: of owners that are watched, and of the name that this side serves under.
    fn bus_says(&mut self, member: &Bytes, body: &Body) {
        match &**member {
            b"NameOwnerChanged" => {
                let changed = body.decode::<(String, String, String)>(&driver::NAME_OWNER_CHANGED.fields);
                if let Ok((name, old, new)) = changed {
                    self.owner_changed(&Bytes::from(name), &old, new);
                }
            }
            b"NameLost" => {
                if let Ok((name,)) = body.decode::<(String,)>(&driver::NAME_LOST.fields) {
                    self.name_lost(&name);
                }
            }
            _ => {}
        }
    }

    /// A watched name has another owner, or none: then its subscribers are told. Their subscriptions stand,
    /// and go on with the next owner.
    fn owner_changed(&mut self, name: &Bytes, old: &str, new: String) {
        let Some(watch) = self.subscriptions.watches.get_mut(name) else { return };
        let left = new.is_empty() && !old.is_empty();
        (watch.owner, watch.since) = (Bytes::from(new), self.next_serial);
        let users = if left { watch.users.clone() } else { Vec::new() };
        self.subscriptions.generation += 1;
        for subscription in users {
            let what = format!("{} has left the bus", String::from_utf8_lossy(name));
            let failure =
                Failure::new(Kind::Unreachable, Initiator::Peer, what).with_completed(Completed::Maybe);
            self.events.push_back(Event::Lost { subscription, failure });
        }
    }
}

/// A match rule is no place for what is no name: what follows would be read as more of the rule.
fn check_names(interface: &str, member: &str) -> Result<(), Failure> {
    let wrong = match (interface, member) {
        (interface, _) if !interface.is_empty() && !names::is_interface(interface.as_bytes()) => interface,
        (_, member) if !member.is_empty() && !names::is_member(member.as_bytes()) => member,
        _ => return Ok(()),
    };
    let what = format!("`{wrong}` is no name of a D-Bus interface or signal");
    Err(Failure::bad_argument(what))
}

/// The key as it comes back from its path: with escapes, where it needs some. So it can be compared with keys
/// of signals.
fn exported(key: &Bytes) -> Bytes {
    names::key_of_path(&Bytes::from(names::path_of_key(key)))
}

/// The match rules of a subscription (specification, "Match Rules"): one for the signals, and one for the
/// loss of their sender, unless that is the bus itself. Empty arguments match all.
fn rules(sender: &Bytes, key: &[u8], interface: &str, member: &str) -> Vec<String> {
    let mut rule = "type='signal'".to_owned();
    let mut add = |key: &str, value: &str| {
        if !value.is_empty() {
            rule.push_str(&format!(",{key}='{value}'"));
        }
    };
    add("sender", &String::from_utf8_lossy(sender));
    if !key.is_empty() {
        add("path", &names::path_of_key(key));
    }
    add("interface", interface);
    add("member", member);
    let mut rules = vec![rule];
    if !sender.is_empty() && *sender != names::BUS {
        rules.push(watch_rule(sender));
    }
    rules
}

/// The match rule that tells when a name gets another owner, or none.
fn watch_rule(name: &Bytes) -> String {
    format!(
        "type='signal',sender='{bus}',path='{path}',interface='{bus}',member='NameOwnerChanged',arg0='{name}'",
        bus = names::BUS,
        path = names::BUS_PATH,
        name = String::from_utf8_lossy(name),
    )
}
