//! A subscription at work: makes the group, listens or asks, notices that the server is gone, and begins anew.
//!
//! * An attempt: the server's object, AddGroup, GetState, AddItems, Advise, SetKeepAlive, Refresh2, in the order of Utgard and Windows.
//! * It ends by a note (stop, the connection broke, the server asks to leave), by a failure, or by silence: of the server when it is asked,
//!   of its callbacks when it promised signs of life.
//! * After it: Unadvise and RemoveGroup where somebody is left to be told, then a pause, which doubles from one failed attempt to the next.
//! * It has no thread: its server's keeper gives it a turn when it is due, and what it is told. It holds the way to the server, never the
//!   subscription: that is dropped by whoever made it, which sends a note.

use super::Link;
use super::items::SLICE;
use super::keeper::FeedNotifier;
use super::session::Session;
use super::single;
use super::state::State;
use super::subscription::{ActiveSubscription, Event, SubscriptionRequest, UpdateMode};
use super::trouble::{advised, is_gone, leaves_nobody};
use super::wire::{def, each, missing};
use crate::Code;
use crate::contract::{
    DataAccessGroup, DataAccessGroupOnDataChange, IOPCAsyncIO2, IOPCGroupStateMgt, IOPCGroupStateMgt2,
    IOPCItemMgt, IOPCSyncIO, OPCDATASOURCE,
};
use everywire::{Failure, Initiator, Kind, Ref, SignalEvent, Subscription as Advised};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// The longest wait: whoever wants to wait longer hardly means a time.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// The moment after a wait, be it without end.
fn after(wait: Duration) -> Instant {
    Instant::now() + wait.min(LONGEST)
}

/// What a feed is told.
pub(super) enum Note {
    /// It is wanted no longer.
    Stop,
    /// The callbacks of an attempt come no more.
    Ended(u64, Failure),
    /// The server asks its clients to leave.
    Shutdown(u64, String),
}

/// How an attempt ended.
enum End {
    Stopped,
    Lost(Failure),
    Shutdown(String),
}

/// The transaction of the refresh that each attempt asks for.
const REFRESH: u32 = 1;
/// Signs of life that may be missing before callbacks count as lost.
const MISSED: u32 = 3;

pub(super) struct Feed {
    link: Arc<Link>,
    state: Arc<State>,
    wanted: SubscriptionRequest,
    tell: FeedNotifier,
    /// How long the next pause is.
    pause: Duration,
    stage: Stage,
    /// Dropped with the feed, so that whoever waits for its end hears of it.
    _done: Sender<()>,
}

enum Stage {
    /// Nothing is held; at this moment the next attempt begins.
    Apart(Instant),
    /// Values come.
    Joined(Box<Attempt>),
}

/// An attempt that works.
struct Attempt {
    number: u64,
    group: Group,
    live: ActiveSubscription,
    doing: FeedState,
    /// When it is to be looked after again.
    next: Instant,
    /// As long as it is held, the server's wish to be left is heard.
    _held: Arc<()>,
    /// Last: it holds the node, which can give nothing back any more once it has ended.
    session: Arc<Session>,
}

enum FeedState {
    Hearing(Listening),
    Asking(Ref<dyn IOPCSyncIO>),
}

/// A group of one attempt.
struct Group {
    handle: u32,
    known: Ref<dyn IOPCGroupStateMgt>,
    /// The same as a class, for its callbacks.
    class: Ref<dyn DataAccessGroup>,
    /// Items that the server took: its handle, and the item's place.
    items: Vec<(u32, u32)>,
}

/// What goes on as long as it is held.
struct Listening {
    _advised: Advised,
    keep_alive: Option<Duration>,
    since: Instant,
    /// How long the first callback may take.
    silence: Duration,
    /// How often something is looked for.
    tick: Duration,
    /// Callbacks that were there the last time.
    beats: u64,
    missed: u32,
}

impl Feed {
    pub(super) fn new(
        link: Arc<Link>,
        state: Arc<State>,
        wanted: SubscriptionRequest,
        tell: FeedNotifier,
        done: Sender<()>,
    ) -> Self {
        let (pause, stage) = (wanted.pauses.first, Stage::Apart(Instant::now()));
        Self { link, state, wanted, tell, pause, stage, _done: done }
    }

    /// When its turn is.
    pub(super) fn due(&self) -> Instant {
        match &self.stage {
            Stage::Apart(until) => *until,
            Stage::Joined(attempt) => attempt.next,
        }
    }

    /// It was told something. Whether it goes on.
    pub(super) fn take(&mut self, note: Note) -> bool {
        let number = match &self.stage {
            Stage::Joined(attempt) => Some(attempt.number),
            Stage::Apart(_) => None,
        };
        match note {
            Note::Stop => {
                self.leave(&End::Stopped);
                return false;
            }
            Note::Ended(of, failure) if Some(of) == number => self.over(End::Lost(failure)),
            Note::Shutdown(of, reason) if Some(of) == number => self.over(End::Shutdown(reason)),
            // Of an attempt that is over.
            Note::Ended(..) | Note::Shutdown(..) => {}
        }
        true
    }

    /// Its turn has come. Whether it goes on.
    pub(super) fn turn(&mut self) -> bool {
        if self.state.is_stopped() {
            self.leave(&End::Stopped);
            return false;
        }
        let done = match &mut self.stage {
            Stage::Apart(_) => self.attempt(),
            Stage::Joined(attempt) => attempt.look(&self.state),
        };
        if let Err(failure) = done {
            self.over(End::Lost(failure));
        }
        true
    }

    /// The attempt is over; after a pause there is another one.
    fn over(&mut self, end: End) {
        self.leave(&end);
        let pauses = self.wanted.pauses;
        let waits = match end {
            End::Stopped => return,
            End::Lost(failure) => {
                self.state.lost(Event::Lost { why: advised(failure), pause: self.pause });
                self.pause
            }
            End::Shutdown(reason) => {
                self.state.lost(Event::Shutdown { reason, pause: pauses.after_shutdown });
                pauses.after_shutdown
            }
        };
        self.pause = pauses.after(self.pause);
        self.stage = Stage::Apart(after(waits));
    }

    /// Lets go of what the attempt has.
    fn leave(&mut self, end: &End) {
        let stage = std::mem::replace(&mut self.stage, Stage::Apart(Instant::now()));
        let Stage::Joined(attempt) = stage else { return };
        let Attempt { session, group, doing, .. } = *attempt;
        // Unadvise comes first.
        drop(doing);
        let nobody = matches!(end, End::Lost(failure) if leaves_nobody(failure));
        if !nobody {
            session.remove_group(group.handle);
        }
        if nobody || matches!(end, End::Shutdown(_)) {
            self.link.forget(&session);
        }
    }

    fn attempt(&mut self) -> Result<(), Failure> {
        let number = self.state.begin();
        let session = self.link.session()?;
        let made = self.with_group(&session, number);
        let attempt = made.inspect_err(|failure| {
            if leaves_nobody(failure) {
                self.link.forget(&session);
            }
        })?;
        self.stage = Stage::Joined(Box::new(attempt));
        Ok(())
    }

    fn with_group(&mut self, session: &Arc<Session>, number: u64) -> Result<Attempt, Failure> {
        let rate = u32::try_from(self.wanted.rate.as_millis()).unwrap_or(u32::MAX);
        // The number of the attempt stands for the group in callbacks; only its low half is sent.
        let client = u32::try_from(number & 0xffff_ffff).unwrap_or_default();
        session.with_group(true, rate, client, self.wanted.deadband, |handle, revised, known| {
            let class = session.node.narrow::<dyn DataAccessGroup>(known.reference().clone())?;
            self.with_items(session, Group { handle, known, class, items: Vec::new() }, number, revised)
        })
    }

    fn with_items(
        &mut self,
        session: &Arc<Session>,
        mut group: Group,
        number: u64,
        revised: u32,
    ) -> Result<Attempt, Failure> {
        let (_, _, _, _, deadband, ..) = group.known.get_state()?;
        let refused = self.add_items(&mut group)?;
        let mut notes = single::ask_for(&group.known, &group.items, &self.wanted.single)?;
        let tell = self.tell.clone();
        let leaving = move |reason: &str| tell.tell(Note::Shutdown(number, reason.to_owned()));
        let polls = self.wanted.poll || self.link.address.poll();
        let held = Arc::new(());
        if !polls && let Err(failure) = session.on_shutdown(&held, leaving) {
            notes.push(format!("the server cannot ask to be left (IOPCShutdown): {failure}"));
        }
        let rate = Duration::from_millis(revised.into());
        let mut listening = None;
        let manner = if polls {
            UpdateMode::Polling { why: "that was asked for".to_owned() }
        } else {
            match self.listen(session, &group, number, rate, &mut notes) {
                Ok(made) => {
                    listening = Some(made);
                    UpdateMode::Callbacks
                }
                Err(failure) if is_gone(&failure) && session.status().is_err() => return Err(failure),
                Err(failure) => {
                    let failure = advised(failure);
                    let hint = failure.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
                    UpdateMode::Polling {
                        why: format!("the server does not take callbacks: {failure}{hint}"),
                    }
                }
            }
        };
        let mut live = ActiveSubscription {
            manner,
            version: if session.browse.is_some() || session.items.is_some() { "3.0" } else { "2.05a" },
            rate,
            deadband,
            keep_alive: listening.as_ref().and_then(|listening: &Listening| listening.keep_alive),
            refused,
            notes,
        };
        if session.is_plain {
            live.notes.push("3.0 is left alone, as the address says".to_owned());
        } else if live.version == "2.05a" {
            live.notes
                .push("the server has neither IOPCBrowse nor IOPCItemIO, so 2.05a is spoken".to_owned());
        }
        let doing = match listening {
            Some(listening) => FeedState::Hearing(listening),
            None => FeedState::Asking(asking(&group)?),
        };
        self.pause = self.wanted.pauses.first;
        if self.state.live(live.clone())
            && let Some(why) = refresh(&group)?
        {
            let what = format!("callbacks that came too early are lost, and {why}");
            self.state.garbled(number, Failure::new(Kind::LimitExceeded, Initiator::Here, what));
        }
        let session = Arc::clone(session);
        let next = match &doing {
            FeedState::Hearing(listening) => after(listening.wait(&self.state, group.items.is_empty())),
            FeedState::Asking(_) => Instant::now(),
        };
        Ok(Attempt { number, session, group, live, doing, next, _held: held })
    }

    /// Adds the items; those that are refused, and why.
    fn add_items(&self, group: &mut Group) -> Result<Vec<(Arc<str>, Code)>, Failure> {
        let items = group.known.query::<dyn IOPCItemMgt>()?.ok_or_else(|| missing("IOPCItemMgt"))?;
        let mut refused = Vec::new();
        let mut place = 0_u32;
        for slice in self.state.items.chunks(SLICE) {
            let defs: Vec<_> = slice.iter().zip(place..).map(|(id, place)| def(id, place)).collect();
            let (results, errors) = items.add_items(&defs)?.value;
            for (id, result) in slice.iter().zip(each(slice.len(), results, &errors)?) {
                match result {
                    Ok(added) => group.items.push((added.server, place)),
                    Err(code) => refused.push((Arc::clone(id), code)),
                }
                place += 1;
            }
        }
        Ok(refused)
    }

    /// Has the server call, and tell the last values.
    fn listen(
        &self,
        session: &Session,
        group: &Group,
        number: u64,
        rate: Duration,
        notes: &mut Vec<String>,
    ) -> Result<Listening, Failure> {
        let (state, tell) = (Arc::clone(&self.state), self.tell.clone());
        let advised = group.class.signals().watch(move |event| match event {
            SignalEvent::Signal(change) => {
                let change: DataAccessGroupOnDataChange = change;
                state.heard(number, change);
            }
            SignalEvent::Undecodable(failure) => state.garbled(number, failure),
            SignalEvent::OwnerLost(failure) | SignalEvent::Disconnected(failure) => {
                tell.tell(Note::Ended(number, failure))
            }
        })?;
        let mut keep_alive = None;
        if !session.is_plain {
            let asked = u32::try_from(self.wanted.keep_alive.as_millis()).unwrap_or(u32::MAX);
            match group.known.query::<dyn IOPCGroupStateMgt2>()? {
                Some(newer) => match newer.set_keep_alive(asked) {
                    Ok(revised) if revised.value > 0 => {
                        keep_alive = Some(Duration::from_millis(revised.value.into()));
                    }
                    Ok(_) => {
                        notes.push("the server sends no signs of life: GetStatus asks for them".to_owned())
                    }
                    Err(failure) => notes.push(format!("no signs of life (SetKeepAlive): {failure}")),
                },
                None => notes.push("without IOPCGroupStateMgt2, GetStatus asks for signs of life".to_owned()),
            }
        }
        // The group's first update has all values, and not with every server: the refresh has them with all.
        notes.extend(refresh(group)?);
        Ok(Listening {
            _advised: advised,
            keep_alive,
            since: Instant::now(),
            // A group is slower to call than its rate says, not faster.
            silence: self.wanted.silence.max(rate.saturating_mul(2)),
            tick: keep_alive.unwrap_or(self.wanted.keep_alive).max(Duration::from_millis(10)),
            beats: 0,
            missed: 0,
        })
    }
}

impl Listening {
    /// How long until something is to be looked for.
    fn wait(&self, state: &State, is_empty: bool) -> Duration {
        let is_silent = state.beats() == 0 && !is_empty;
        let left = self.silence.saturating_sub(self.since.elapsed());
        if is_silent { self.tick.min(left) } else { self.tick }
    }
}

/// Has the server tell the last values of all items (Refresh2). Or why it does not.
fn refresh(group: &Group) -> Result<Option<String>, Failure> {
    let Some(io) = group.known.query::<dyn IOPCAsyncIO2>()? else {
        return Ok(Some(
            "without IOPCAsyncIO2, the last values come with the group's first update".to_owned(),
        ));
    };
    if group.items.is_empty() {
        return Ok(None);
    }
    let refused = io.refresh2(OPCDATASOURCE::OpcDsCache, REFRESH).err();
    Ok(refused.map(|failure| format!("no refresh of the last values (Refresh2): {failure}")))
}

fn asking(group: &Group) -> Result<Ref<dyn IOPCSyncIO>, Failure> {
    group.known.query::<dyn IOPCSyncIO>()?.ok_or_else(|| missing("IOPCSyncIO"))
}

impl Attempt {
    /// Looks whether callbacks come, or asks for values.
    fn look(&mut self, state: &State) -> Result<(), Failure> {
        let wait = match &mut self.doing {
            FeedState::Hearing(listening) => {
                let is_empty = self.group.items.is_empty();
                let beats = state.beats();
                if beats == 0 && !is_empty && listening.since.elapsed() >= listening.silence {
                    return self.turn_to_asking(state);
                }
                listening.missed = if beats == listening.beats { listening.missed + 1 } else { 0 };
                if listening.missed > 0 || listening.keep_alive.is_none() {
                    self.session.status()?;
                }
                if listening.keep_alive.is_some() && listening.missed > MISSED && beats > 0 {
                    let what =
                        format!("{} signs of life are missing: callbacks come no more", listening.missed);
                    return Err(Failure::new(Kind::TimedOut, Initiator::Peer, what));
                }
                listening.beats = beats;
                listening.wait(state, is_empty)
            }
            FeedState::Asking(io) => {
                for slice in self.group.items.chunks(SLICE) {
                    let (handles, places): (Vec<u32>, Vec<u32>) = slice.iter().copied().unzip();
                    let (states, errors) = io.read(OPCDATASOURCE::OpcDsCache, &handles)?.value;
                    let states = each(handles.len(), states, &errors)?;
                    state.polled(self.number, places.into_iter().zip(states));
                }
                if self.group.items.is_empty() {
                    self.session.status()?;
                }
                self.live.rate.max(Duration::from_millis(1))
            }
        };
        self.next = after(wait);
        Ok(())
    }

    /// Nothing was called back: values are asked for.
    fn turn_to_asking(&mut self, state: &State) -> Result<(), Failure> {
        let FeedState::Hearing(listening) = &self.doing else { return Ok(()) };
        // Whether nobody is there, or nobody may call, is another matter.
        self.session.status()?;
        let why = format!(
            "the server took the sink, and nothing came within {:?}: no callbacks through the firewall, or the server does not know the account",
            listening.silence
        );
        self.doing = FeedState::Asking(asking(&self.group)?);
        self.live.manner = UpdateMode::Polling { why };
        self.live.keep_alive = None;
        state.live(self.live.clone());
        self.next = Instant::now();
        Ok(())
    }
}
