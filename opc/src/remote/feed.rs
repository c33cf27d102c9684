//! A subscription at work, on a thread of its own: makes the group, listens or asks, notices that the server is gone, and begins anew.
//!
//! * An attempt: the server's object, AddGroup, GetState, AddItems, Advise, SetKeepAlive, Refresh2, in the order of Utgard and Windows.
//! * It ends by a note (stop, the connection broke, the server asks to leave), by a failure, or by silence: of the server when it is asked,
//!   of its callbacks when it promised signs of life.
//! * After it: Unadvise and RemoveGroup where somebody is left to be told, then a pause, which doubles from one failed attempt to the next.
//! * The thread holds the way to the server, never the subscription: that is dropped by whoever made it, which sends a note.

use super::Link;
use super::items::SLICE;
use super::session::Session;
use super::state::State;
use super::subscription::{Event, Live, Manner, Wanted};
use super::trouble::{advised, is_gone};
use super::wire::{def, each, iid, missing};
use crate::Code;
use crate::contract::{
    DataAccessGroup, DataAccessGroupOnDataChange, IOPCAsyncIO2, IOPCGroupStateMgt, IOPCGroupStateMgt2,
    IOPCItemMgt, IOPCSyncIO, OPCDATASOURCE,
};
use everywire::{Failure, Initiator, Kind, Ref, Subscription as Advised, Tidings};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

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
    wanted: Wanted,
    tell: Sender<Note>,
    notes: Receiver<Note>,
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
}

impl Feed {
    pub(super) fn new(
        link: Arc<Link>,
        state: Arc<State>,
        wanted: Wanted,
        tell: Sender<Note>,
        notes: Receiver<Note>,
    ) -> Self {
        Self { link, state, wanted, tell, notes }
    }

    /// Attempt after attempt, until it is stopped.
    pub(super) fn run(self) {
        let pauses = self.wanted.pauses;
        let mut pause = pauses.first;
        loop {
            let mut was_live = false;
            let end = self.attempt(&mut was_live).unwrap_or_else(End::Lost);
            if was_live {
                pause = pauses.first;
            }
            let waits = match end {
                End::Stopped => return,
                End::Lost(failure) => {
                    self.state.lost(Event::Lost { why: advised(failure), pause });
                    pause
                }
                End::Shutdown(reason) => {
                    self.state.lost(Event::Shutdown { reason, pause: pauses.after_shutdown });
                    pauses.after_shutdown
                }
            };
            if self.stopped_within(waits) {
                return;
            }
            pause = pauses.after(pause);
        }
    }

    /// Waits. Whether it was stopped meanwhile.
    fn stopped_within(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        loop {
            match self.notes.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Note::Stop) | Err(RecvTimeoutError::Disconnected) => return true,
                // Of the attempt that is over.
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return self.state.is_stopped(),
            }
        }
    }

    fn attempt(&self, was_live: &mut bool) -> Result<End, Failure> {
        let attempt = self.state.begin();
        let session = self.link.session()?;
        let end = self.with_group(&session, attempt, was_live);
        let leaves = match &end {
            Ok(End::Lost(failure)) | Err(failure) => is_gone(failure) || failure.kind() == Kind::TimedOut,
            Ok(End::Shutdown(_)) => true,
            Ok(End::Stopped) => false,
        };
        if leaves {
            self.link.forget(&session);
        }
        end
    }

    fn with_group(&self, session: &Arc<Session>, attempt: u64, was_live: &mut bool) -> Result<End, Failure> {
        let rate = u32::try_from(self.wanted.rate.as_millis()).unwrap_or(u32::MAX);
        let (riid, server) = (iid::<dyn IOPCGroupStateMgt>(), &session.server);
        // The number of the attempt stands for the group in callbacks; only its low half is sent.
        let client = u32::try_from(attempt & 0xffff_ffff).unwrap_or_default();
        let added = server.add_group("", 1, rate, client, &None, &self.wanted.deadband, 0, &riid)?.value;
        let (handle, revised, reference) = added;
        let reference = reference.ok_or_else(|| missing("group"))?;
        let known = session.node.narrow::<dyn IOPCGroupStateMgt>(reference.clone())?;
        let class = session.node.narrow::<dyn DataAccessGroup>(reference)?;
        let mut group = Group { handle, known, class, items: Vec::new() };
        let end = self.with_items(session, &mut group, attempt, revised, was_live);
        let nobody_is_left = match &end {
            Ok(End::Lost(failure)) | Err(failure) => is_gone(failure) || failure.kind() == Kind::TimedOut,
            _ => false,
        };
        if !nobody_is_left {
            // By force, since references to it are still held here: else it would end only when they are given back, some time later. A server
            // that does not remove it does so when the object is released.
            let _ = server.remove_group(group.handle, 1);
        }
        end
    }

    fn with_items(
        &self,
        session: &Arc<Session>,
        group: &mut Group,
        attempt: u64,
        revised: u32,
        was_live: &mut bool,
    ) -> Result<End, Failure> {
        let (_, _, _, _, deadband, ..) = group.known.get_state()?;
        let refused = self.add_items(group)?;
        let mut notes = Vec::new();
        let tell = self.tell.clone();
        let leaving = move |reason: &str| drop(tell.send(Note::Shutdown(attempt, reason.to_owned())));
        let polls = self.wanted.poll || self.link.address.poll();
        // As long as this attempt lasts.
        let held = Arc::new(());
        if !polls && let Err(failure) = session.on_shutdown(&held, leaving) {
            notes.push(format!("the server cannot ask to be left (IOPCShutdown): {failure}"));
        }
        let mut listening = None;
        let manner = if polls {
            Manner::Polling { why: "that was asked for".to_owned() }
        } else {
            match self.listen(session, group, attempt, &mut notes) {
                Ok(made) => {
                    listening = Some(made);
                    Manner::Callbacks
                }
                Err(failure) if is_gone(&failure) && session.status().is_err() => return Err(failure),
                Err(failure) => {
                    let failure = advised(failure);
                    let hint = failure.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
                    Manner::Polling { why: format!("the server does not take callbacks: {failure}{hint}") }
                }
            }
        };
        let mut live = Live {
            manner,
            version: if session.browse.is_some() || session.items.is_some() { "3.0" } else { "2.05a" },
            rate: Duration::from_millis(revised.into()),
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
        *was_live = true;
        self.state.live(live.clone());
        if let Some(made) = listening {
            // A group is slower to call than its rate says, not faster.
            let silence = self.wanted.silence.max(live.rate.saturating_mul(2));
            match self.hear(session, attempt, made, silence, group.items.is_empty())? {
                Some(end) => return Ok(end),
                None => {
                    let why = format!(
                        "the server took the sink, and nothing came within {:?}: no callbacks through the firewall, or the server does not know the account",
                        silence
                    );
                    live.manner = Manner::Polling { why };
                    live.keep_alive = None;
                    self.state.live(live.clone());
                }
            }
        }
        self.ask(session, group, attempt, live.rate)
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
        attempt: u64,
        notes: &mut Vec<String>,
    ) -> Result<Listening, Failure> {
        let (state, tell) = (Arc::clone(&self.state), self.tell.clone());
        let advised = group.class.signals().watch(move |tidings| match tidings {
            Tidings::Signal(change) => {
                let change: DataAccessGroupOnDataChange = change;
                state.heard(attempt, change);
            }
            Tidings::Garbled(failure) => state.garbled(attempt, failure),
            // The feed may have ended.
            Tidings::Lost(failure) | Tidings::Ended(failure) => {
                drop(tell.send(Note::Ended(attempt, failure)))
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
        match group.known.query::<dyn IOPCAsyncIO2>()? {
            Some(io) if !group.items.is_empty() => {
                if let Err(failure) = io.refresh2(OPCDATASOURCE::OpcDsCache, REFRESH) {
                    notes.push(format!("no refresh of the last values (Refresh2): {failure}"));
                }
            }
            Some(_) => {}
            None => notes
                .push("without IOPCAsyncIO2, the last values come with the group's first update".to_owned()),
        }
        Ok(Listening { _advised: advised, keep_alive, since: Instant::now() })
    }

    /// Waits for the end, while callbacks come; nothing if none came at all. Asks now and then whether the server is there.
    fn hear(
        &self,
        session: &Session,
        attempt: u64,
        made: Listening,
        silence: Duration,
        is_empty: bool,
    ) -> Result<Option<End>, Failure> {
        let tick = made.keep_alive.unwrap_or(self.wanted.keep_alive).max(Duration::from_millis(10));
        let (mut beats, mut missed) = (0, 0);
        loop {
            let is_silent = self.state.beats() == 0 && !is_empty;
            let wait = if is_silent { tick.min(silence.saturating_sub(made.since.elapsed())) } else { tick };
            if let Some(end) = self.note(attempt, wait) {
                return Ok(Some(end));
            }
            let now = self.state.beats();
            if now == 0 && !is_empty && made.since.elapsed() >= silence {
                // Whether nobody is there, or nobody may call, is another matter.
                session.status()?;
                return Ok(None);
            }
            missed = if now == beats { missed + 1 } else { 0 };
            if missed > 0 || made.keep_alive.is_none() {
                session.status()?;
            }
            if made.keep_alive.is_some() && missed > MISSED && now > 0 {
                let what = format!("{missed} signs of life are missing: callbacks come no more");
                return Ok(Some(End::Lost(Failure::new(Kind::TimedOut, Initiator::Peer, what))));
            }
            beats = now;
        }
    }

    /// Asks for values at the rate, until the end.
    fn ask(&self, session: &Session, group: &Group, attempt: u64, rate: Duration) -> Result<End, Failure> {
        let io = group.known.query::<dyn IOPCSyncIO>()?.ok_or_else(|| missing("IOPCSyncIO"))?;
        let rate = rate.max(Duration::from_millis(1));
        loop {
            for slice in group.items.chunks(SLICE) {
                let (handles, places): (Vec<u32>, Vec<u32>) = slice.iter().copied().unzip();
                let (states, errors) = io.read(OPCDATASOURCE::OpcDsCache, &handles)?.value;
                let states = each(handles.len(), states, &errors)?;
                self.state.polled(attempt, places.into_iter().zip(states));
            }
            if group.items.is_empty() {
                session.status()?;
            }
            if let Some(end) = self.note(attempt, rate) {
                return Ok(end);
            }
        }
    }

    /// Waits for a note about this attempt, so long.
    fn note(&self, attempt: u64, wait: Duration) -> Option<End> {
        let until = Instant::now() + wait;
        loop {
            if self.state.is_stopped() {
                return Some(End::Stopped);
            }
            match self.notes.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Note::Stop) | Err(RecvTimeoutError::Disconnected) => return Some(End::Stopped),
                Ok(Note::Ended(of, failure)) if of == attempt => return Some(End::Lost(failure)),
                Ok(Note::Shutdown(of, reason)) if of == attempt => return Some(End::Shutdown(reason)),
                // Of an attempt that is over.
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return None,
            }
        }
    }
}
