//! A sink that was advised: calls to it, in order, and how its death is noticed.
//!
//! States, all in `Line` under one lock: `waiting` has the signals to be sent; `under_way` counts calls
//! without an answer (`WINDOW` at the most); `sending` says that a thread is in the middle of sending;
//! `settled` is false until the first call was sent, which may take long and so runs `aside`; `by_name` turns on when the sink has IDispatch only; `refused` is set for `REFUSED` after the
//! sink did not let this node in; `gone` is set once and ends everything.
//!
//! Invariants: signals reach a sink in the order of their emission, each once or never; what is lost is
//! counted in `lost` and told. An emitter never waits for a sink: it sends at once if the line is free, else
//! it leaves a copy of the arguments. No lock is held while a call is sent or an observer told. A failure is
//! told to the node's observer only where the sink has not run the call.

use super::listening::FAREWELL;
use super::missed_replies::{MissedReplies, has_code, is_gone};
use super::store::{Account, WAITING, WAITING_BYTES};
use super::tables::{CallStyle, Line, Point, SinkConnection};
use super::task_queue::aside;
use crate::exporter::Proxy;
use crate::hresult::E_NOINTERFACE;
use crate::lock::lock;
use crate::security::{Level, Security};
use crate::standard::dispatch::call::notify;
use crate::standard::values::kept;
use everywire_model::contract::InterfaceKind;
use everywire_model::signal::{Audience, Backlog};
use everywire_model::{
    Body, Completed, Encode, Failure, Initiator, Kind, Method, Object, Outcome, Reference, Sink,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Calls to one sink that may be under way. With more than one, a peer that serves calls at the same time could get them
/// in another order.
const WINDOW: usize = 1;

/// How long a sink that refused a call is not called again: each try costs a connection.
pub const REFUSED: Duration = Duration::from_secs(30);

/// How long one call of a sink may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long the first call of a sink may take, for which the way to it has to be found: whoever never answers is let go then.
const FINDING: Duration = Duration::from_secs(8);

impl SinkConnection {
    /// A sink that was accepted and to which nothing was sent yet. There are two objects for it: `sought` for
    /// the first call, which may have to find the way, and `object` for the others, which have more time.
    pub(super) fn new(
        (cookie, principal, account): (u32, String, Arc<Account>),
        reference: Reference,
        object: &Object,
        point: &Arc<Point>,
        manner: Option<CallStyle>,
    ) -> Arc<Self> {
        let by_name = manner == Some(CallStyle::ByName) || point.interface.kind == InterfaceKind::Dispatch;
        Arc::new(Self {
            cookie,
            principal,
            reference,
            object: object.with_deadline(Some(PATIENCE)),
            sought: object.with_deadline(Some(FINDING)),
            point: Arc::downgrade(point),
            line: Mutex::new(Line::new(account, by_name)),
        })
    }

    /// Sends a call, or leaves it to be sent. `arguments` are those of the operation number `index`.
    ///
    /// # Errors
    /// The arguments do not encode.
    pub(super) fn tell(self: &Arc<Self>, index: usize, arguments: &dyn Encode) -> Result<(), Failure> {
        let mut line = lock(&self.line);
        if line.gone {
            return Ok(());
        }
        if line.is_refused() {
            line.lost += 1;
            return Ok(());
        }
        // Nothing waits and nobody sends: then the arguments go out as they are, without a copy.
        let free = line.settled && !line.by_name && !line.sending && line.waiting.is_empty();
        if free && line.under_way < WINDOW {
            line.sending = true;
            line.under_way += 1;
            drop(line);
            // The emitter's own arguments are encoded before this returns.
            if let Some(point) = self.point.upgrade() {
                self.submit(&point, index, arguments, None);
            }
            lock(&self.line).sending = false;
        } else {
            let lost = line.waiting.push(index, kept(arguments)?);
            line.lost += lost.len() as u64;
            let settles = !line.settled && !line.sending;
            line.sending |= settles;
            drop(line);
            // Without the lock: they may hold the last references to something here.
            drop(lost);
            if settles {
                // Finding the way to the sink may take long, and an emitter does not wait for that.
                self.aside(Self::begin);
                return Ok(());
            }
        }
        self.pump();
        Ok(())
    }

    /// Has something done for it on another thread, unless it is no more by then: its point holds it as long as it is advised.
    fn aside(self: &Arc<Self>, job: fn(&Arc<Self>)) {
        let this = Arc::downgrade(self);
        aside(move || drop(this.upgrade().inspect(job)));
    }

    /// Sends the first call, and then what has come meanwhile.
    fn begin(self: &Arc<Self>) {
        let first = {
            let mut line = lock(&self.line);
            let first = if line.gone { None } else { line.waiting.pop() };
            line.under_way += usize::from(first.is_some());
            first
        };
        if let Some((index, arguments)) = first {
            self.send_kept(index, arguments);
        }
        {
            let mut line = lock(&self.line);
            line.settled = true;
            line.sending = false;
        }
        self.pump();
    }

    /// Sends what waits, as far as calls may be under way.
    fn pump(self: &Arc<Self>) {
        loop {
            let (index, arguments) = {
                let mut line = lock(&self.line);
                if line.sending || line.gone || !line.settled || line.under_way >= WINDOW {
                    return;
                }
                let Some(next) = line.waiting.pop() else { return };
                line.sending = true;
                line.under_way += 1;
                next
            };
            self.send_kept(index, arguments);
            lock(&self.line).sending = false;
        }
    }

    /// Sends a call whose arguments were kept. They are kept once more until it ends, for a sink that turns
    /// out to have IDispatch only.
    fn send_kept(self: &Arc<Self>, index: usize, kept: Body) {
        // The lock is given back at once: what follows may call a servant of this process.
        let by_name = lock(&self.line).by_name;
        let Some(point) = self.point.upgrade() else { return };
        let Some(operation) = point.interface.operations.get(index) else { return };
        if by_name {
            let this = Arc::clone(self);
            let done = Box::new(move |result: Result<(), Failure>| this.ended(result.err(), None));
            return notify(self.target(), &point.interface, operation, &kept, done);
        }
        let arguments = |sink: &mut dyn Sink| kept.pipe(&operation.arguments, sink);
        self.submit(&point, index, &arguments, Some(kept.clone()));
    }

    /// Hands the call to the runtime; `ended` is called with its outcome, maybe before this returns.
    fn submit(self: &Arc<Self>, point: &Point, index: usize, arguments: &dyn Encode, again: Option<Body>) {
        let Some(operation) = point.interface.operations.get(index) else { return };
        let this = Arc::clone(self);
        let done = Box::new(move |outcome: Outcome<Body>| {
            let failure = match outcome {
                Outcome::Failed(failure) => Some(failure),
                _ => None,
            };
            this.ended(failure, again.map(|kept| (index, kept)));
        });
        let method = Method::Typed { interface: Some(&point.interface), operation };
        self.target().target().submit(method, arguments, done);
    }

    /// The object to call now.
    fn target(&self) -> &Object {
        if lock(&self.line).settled { &self.object } else { &self.sought }
    }

    /// A call ended. What a sink answers is of no interest, but that it is no more.
    fn ended(self: &Arc<Self>, failure: Option<Failure>, call: Option<(usize, Body)>) {
        let (mut gone, mut by_another_name) = (false, false);
        let mut told = None;
        let (mut given_up, mut unkept) = (VecDeque::new(), None);
        let slow;
        {
            let mut line = lock(&self.line);
            line.under_way = line.under_way.saturating_sub(1);
            // One that lets a call time out was not heard of.
            if failure.as_ref().is_none_or(|failure| failure.kind() != Kind::TimedOut) {
                line.last = Instant::now();
                line.unanswered = MissedReplies::default();
            }
            if let Some(failure) = &failure {
                if has_code(failure, E_NOINTERFACE) && !line.by_name {
                    line.by_name = true;
                    by_another_name = true;
                    // One that went out as it was emitted is lost, since no copy was kept.
                    let was_sent = call.is_none();
                    unkept = call.and_then(|(index, kept)| line.waiting.put_back(index, kept));
                    line.lost += u64::from(was_sent || unkept.is_some());
                } else {
                    // Whoever is not even found in time has let its connection be made, and says nothing.
                    let silent = !line.settled && failure.kind() == Kind::TimedOut;
                    gone = silent || is_gone(failure) || has_code(failure, E_NOINTERFACE);
                    // One that ran the call has heard it, whatever it answers.
                    if gone || failure.completed() != Completed::Yes {
                        if failure.kind() == Kind::Refused {
                            line.refused = Some(Instant::now() + REFUSED);
                            given_up = line.waiting.clear();
                        }
                        let lost = std::mem::take(&mut line.lost) + given_up.len() as u64;
                        told = Some((failure, lost));
                    }
                }
            }
            // It takes what comes again, or is as far behind as it was when it was last told.
            let is_slow = line.lost > 0 && (line.waiting.is_empty() || line.lost >= WAITING as u64);
            slow = (is_slow && !gone && !line.is_refused()).then(|| std::mem::take(&mut line.lost));
        }
        drop((given_up, unkept));
        if let Some((failure, lost)) = told {
            self.tell_failure(failure, lost, gone);
        }
        // Whoever serves the object is told of one that was heard and answered with a failure, too.
        let lost = told.map_or(0, |(_, lost)| lost);
        if let Some(failure) = failure.filter(|_| !by_another_name) {
            self.tell_audience(failure, lost);
        }
        if gone {
            return self.forget();
        }
        if let Some(lost) = slow {
            self.tell_slow(lost);
        }
        self.pump();
    }

    /// Tells the node's observer, and whoever serves the object, that signals were lost since others waited.
    #[cold]
    fn tell_slow(&self, lost: u64) {
        let who = self.who();
        let what = format!(
            "the listener of {who} takes signals more slowly than they come: {lost} were lost, since {WAITING} of them, or {} MiB, may wait",
            WAITING_BYTES >> 20
        );
        let failure = Failure::new(Kind::LimitExceeded, Initiator::Peer, what).with_completed(Completed::No);
        self.tell_observer(failure.clone());
        self.tell_audience(failure, lost);
    }

    /// Tells whoever serves the object of a failure, and how many signals were lost with it.
    fn tell_audience(&self, failure: Failure, lost: u64) {
        if let Some(point) = self.point.upgrade() {
            let interface = point.iid.to_string();
            point.tell(&Audience::Failed { interface, listener: self.cookie, failure, lost });
        }
    }

    /// Tells the node's observer of a failure.
    fn tell_observer(&self, failure: Failure) {
        let Some(point) = self.point.upgrade() else { return };
        if let Some(objects) = point.objects.upgrade() {
            let key = everywire_model::reference::escape(&point.key);
            objects.undelivered(&failure.at(format!("{} of `{key}`", point.interface.name)));
        }
    }

    /// Whose sink it is, for messages.
    fn who(&self) -> &str {
        if self.principal.is_empty() { "this process" } else { &self.principal }
    }

    /// What waits for it. One that refused a call takes nothing for a while.
    pub(super) fn backlog(&self) -> Backlog {
        let mut line = lock(&self.line);
        let signals = if line.is_refused() { WAITING } else { line.waiting.len() };
        Backlog { signals, bytes: line.waiting.bytes(), listener: self.who().to_owned() }
    }

    /// Tells the node's observer that a call did not reach it, and how many others were given up with it.
    #[cold]
    fn tell_failure(&self, failure: &Failure, lost: u64, is_gone: bool) {
        let who = self.who();
        let then = match failure.kind() {
            _ if is_gone => "it is advised no more",
            Kind::Refused => "nothing is sent to it for 30 s",
            _ => "the next signal is sent again",
        };
        let more = if lost > 0 { format!(", {lost} more were lost") } else { String::new() };
        let levels = if failure.kind() == Kind::Refused { self.levels() } else { String::new() };
        let why = failure.message();
        let message = format!("a signal did not reach the listener of {who} ({then}{more}): {why}{levels}");
        let mut told =
            Failure::new(failure.kind(), failure.initiator(), message).with_completed(failure.completed());
        if let Some(code) = failure.code() {
            told = told.with_code(code);
        }
        if failure.kind() == Kind::Refused {
            told = told.with_hint(
                "the listener lets in the account that this node calls back with: give both addresses the same account (credentials=) and level=",
            );
        }
        self.tell_observer(told);
    }

    /// At which level it is called, and which one it asks for.
    fn levels(&self) -> String {
        let Some(way) = self.reference.profiles.first() else { return String::new() };
        let proxy = way.lease.share::<Proxy>();
        let security = proxy.as_ref().map_or_else(|| Security::of(way), |proxy| proxy.security());
        let least = proxy.and_then(|proxy| Level::of_hint(proxy.oxid().resolution()?.authn_hint));
        let asks = least.map(|least| format!(", and asks for `{}` at least", least.word()));
        format!(" (it is called at level `{}`{})", security.level.word(), asks.unwrap_or_default())
    }

    /// It is advised no more.
    fn forget(self: &Arc<Self>) {
        self.end();
        if let Some(point) = self.point.upgrade() {
            point.remove(self.cookie);
        }
    }

    /// Nothing is sent to it any more.
    pub(super) fn end(&self) {
        let mut line = lock(&self.line);
        line.gone = true;
        let waiting = line.waiting.clear();
        drop(line);
        drop(waiting);
    }

    /// When it was last heard of.
    pub(super) fn last(&self) -> Instant {
        lock(&self.line).last
    }

    /// Has it asked on another thread whether it is still there.
    pub(super) fn check(self: &Arc<Self>) {
        lock(&self.line).last = Instant::now();
        self.aside(Self::ask);
    }

    /// Asks whether it is still there, and waits for the answer.
    fn ask(self: &Arc<Self>) {
        let answer = self.object.with_deadline(Some(FAREWELL)).target().probe();
        let is_gone = lock(&self.line).unanswered.is_gone_by(&answer);
        if is_gone {
            self.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::Resolver;
    use everywire_model::object::{Completion, Target, Ticket};
    use std::sync::Weak;

    /// A sink that is not to be called.
    struct NullSink(Reference);

    impl Target for NullSink {
        fn reference(&self) -> &Reference {
            &self.0
        }
        fn invoke(&self, _: Method<'_>, _: &dyn Encode) -> Outcome<Body> {
            unimplemented!("nobody calls it")
        }
        fn notify(&self, _: Method<'_>, _: &dyn Encode) -> Result<(), Failure> {
            unimplemented!("nobody calls it")
        }
        fn submit(&self, _: Method<'_>, _: &dyn Encode, _: Completion) -> Ticket {
            unimplemented!("nobody calls it")
        }
        fn withdraw(&self, _: Ticket) {}
        fn probe(&self) -> Result<(), Failure> {
            Ok(())
        }
        fn with_deadline(&self, _: Option<Duration>) -> Arc<dyn Target> {
            Arc::new(Self(self.0.clone()))
        }
        fn resolver(&self) -> Arc<dyn Resolver> {
            unimplemented!("nothing is resolved")
        }
    }

    #[test]
    fn a_signal_that_was_not_kept_and_meets_no_interface_is_lost() {
        let object = Object::new(Arc::new(NullSink(Reference::default())));
        let sink = Arc::new(SinkConnection {
            cookie: 1,
            principal: String::new(),
            reference: Reference::default(),
            sought: object.clone(),
            object,
            point: Weak::new(),
            line: Mutex::new(Line { settled: true, under_way: 1, ..Line::new(Arc::default(), false) }),
        });
        // One more waits, and another thread sends.
        lock(&sink.line).sending = true;
        let arguments = kept(&|_: &mut dyn Sink| Ok(())).unwrap();
        drop(lock(&sink.line).waiting.push(0, arguments));
        sink.ended(Some(crate::hresult::failure(E_NOINTERFACE, None)), None);
        let line = lock(&sink.line);
        assert_eq!((line.lost, line.by_name), (1, true));
    }
}
