//! A group whose items are read and written without waiting: by IOPCAsyncIO3 (3.0), else by IOPCAsyncIO2
//! (2.05a), else, where the server has neither or cannot call back, by IOPCSyncIO, which waits.
//!
//! States of a transfer: *under way* while its number is in `OpenTransfers::open`, *done* with what was told of each
//! item, or *failed*. It leaves `open` exactly once: by the callback, by `OpenTransfers::end`, or because it was
//! dropped; the first that is told is what counts.
//!
//! Invariants.
//! * A transfer has a number, its transaction. It is known before the server is asked, since the answer may
//!   come before the server has said that it will.
//! * An item's number in callbacks is its place among the items of the group.
//! * Nothing waits for ever: when the callbacks end, or the group is dropped, each transfer under way ends
//!   with a failure.
//! * The group is never active, so nothing comes that nobody asked for.

use super::Link;
use super::items::SLICE;
use super::session::Session;
use super::single::{self, Answers, outcome};
use super::trouble::advised;
use super::wire::{code_of, def, each, given, missing, violation, vqt_of, vqt_of_state};
use crate::contract::{
    DataAccessGroup, DataAccessGroupOnCancelComplete, DataAccessGroupOnReadComplete,
    DataAccessGroupOnWriteComplete, IOPCAsyncIO2, IOPCAsyncIO3, IOPCGroupStateMgt, IOPCItemMgt, IOPCSyncIO,
    OPCDATASOURCE,
};
use crate::sync::lock;
use crate::{Code, Data, Vqt};
use everywire::{Failure, Initiator, Kind, Ref, Remote, SignalEvent, Subscription as Advised};
use everywire_model::{Hold, Incoming, TypedSignal};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

/// How reads and writes of a group are done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferMode {
    /// By IOPCAsyncIO3: values may be so old, or are of the device.
    Version3,
    /// By IOPCAsyncIO2: values are of the device, whatever age is asked for.
    Version2,
    /// By IOPCSyncIO: who reads or writes waits until it is done.
    Waiting {
        /// Why it is not done later.
        why: String,
    },
}

/// Items of a server that are read and written without waiting. The group is removed when it is dropped.
pub struct ItemGroup {
    handle: u32,
    known: Ref<dyn IOPCGroupStateMgt>,
    /// The server's handle of each item, or why it has none.
    items: Vec<Result<u32, Code>>,
    io: Io,
    why: String,
    desk: Arc<OpenTransfers>,
    advised: Option<Advised>,
    /// Both last: they hold the node, which can give nothing back any more once it has ended.
    session: Arc<Session>,
    link: Arc<Link>,
}

/// By which interface transfers go.
enum Io {
    Newer(Ref<dyn IOPCAsyncIO3>),
    Older(Ref<dyn IOPCAsyncIO2>),
    Waiting(Ref<dyn IOPCSyncIO>),
}

/// A read or a write that is under way, or done.
pub struct Transfer<T> {
    slot: Arc<Slot>,
    desk: Weak<OpenTransfers>,
    transaction: u32,
    /// The server's number for it, and who takes it.
    cancel: Option<(u32, Ref<dyn IOPCAsyncIO2>)>,
    /// What is asked for, in order: the place of each item, or why it was not asked for.
    asked: Vec<Result<u32, Code>>,
    read: fn(&CallbackItem) -> Option<Result<T, Code>>,
}

/// What a callback told of an item.
#[derive(Clone)]
enum CallbackItem {
    Value(Result<Vqt, Code>),
    Written(Result<Code, Code>),
}

/// What was told of items, by their places. One that is named twice is told of twice, in the same order.
type CallbackItems = HashMap<u32, Vec<CallbackItem>>;

fn by_place(told: impl Iterator<Item = (u32, CallbackItem)>) -> CallbackItems {
    let mut all = CallbackItems::new();
    told.for_each(|(place, told)| all.entry(place).or_default().push(told));
    all
}

#[derive(Clone)]
enum Done {
    Items(CallbackItems),
    Failed(Failure),
}

#[derive(Default)]
struct Slot {
    done: Mutex<Option<Done>>,
    bell: Condvar,
}

impl Slot {
    fn finish(&self, done: Done) {
        // The first that is told is what counts.
        lock(&self.done).get_or_insert(done);
        self.bell.notify_all();
    }
}

/// The transfers that are under way.
struct OpenTransfers {
    next: AtomicU32,
    /// By their numbers; or why no more callbacks come.
    open: Mutex<Result<HashMap<u32, Arc<Slot>>, Failure>>,
}

impl Default for OpenTransfers {
    fn default() -> Self {
        Self { next: AtomicU32::new(0), open: Mutex::new(Ok(HashMap::new())) }
    }
}

impl OpenTransfers {
    fn open(&self) -> Result<(u32, Arc<Slot>), Failure> {
        let mut held = lock(&self.open);
        let open = held.as_mut().map_err(|failure| failure.clone())?;
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            // Nought stands for changes that nobody asked for.
            if number != 0 && !open.contains_key(&number) {
                let slot = Arc::<Slot>::default();
                open.insert(number, Arc::clone(&slot));
                return Ok((number, slot));
            }
        }
    }

    /// A transfer is under way no longer.
    fn take(&self, transaction: u32) -> Option<Arc<Slot>> {
        lock(&self.open).as_mut().ok()?.remove(&transaction)
    }

    fn close(&self, transaction: u32, done: Done) {
        let slot = self.take(transaction);
        // One that is not known was given up.
        if let Some(slot) = slot {
            slot.finish(done);
        }
    }

    fn end(&self, failure: &Failure) {
        let open = std::mem::replace(&mut *lock(&self.open), Err(failure.clone()));
        open.iter().flat_map(HashMap::values).for_each(|slot| slot.finish(Done::Failed(failure.clone())));
    }

    /// A callback came.
    fn heard(&self, heard: &Incoming) -> Result<(), Failure> {
        let name = heard.operation.as_ref();
        if is::<DataAccessGroupOnReadComplete>(name) {
            let done = DataAccessGroupOnReadComplete::read(&heard.body)?;
            self.close(done.transaction, read(&done).map_or_else(Done::Failed, Done::Items));
        } else if is::<DataAccessGroupOnWriteComplete>(name) {
            let done = DataAccessGroupOnWriteComplete::read(&heard.body)?;
            self.close(done.transaction, written(&done).map_or_else(Done::Failed, Done::Items));
        } else if is::<DataAccessGroupOnCancelComplete>(name) {
            let done = DataAccessGroupOnCancelComplete::read(&heard.body)?;
            let failure = Failure::new(Kind::Cancelled, Initiator::User, "the transfer was cancelled");
            self.close(done.transaction, Done::Failed(failure));
        }
        // The group is not active: what changes is not told, and would be nothing that was asked for.
        Ok(())
    }
}

fn is<S: TypedSignal>(name: &[u8]) -> bool {
    S::signal().name.as_bytes() == name
}

fn read(done: &DataAccessGroupOnReadComplete) -> Result<CallbackItems, Failure> {
    let count = done.items.len();
    if done.qualities.len() != count || done.timestamps.len() != count {
        return Err(violation("a callback tells not all of each item"));
    }
    let values = done.values.iter().zip(&done.qualities).zip(&done.timestamps);
    let values = values.map(|((value, quality), time)| vqt_of(value, *quality, time)).collect();
    let results = each(count, values, &done.errors)?;
    Ok(by_place(done.items.iter().copied().zip(results.into_iter().map(CallbackItem::Value))))
}

fn written(done: &DataAccessGroupOnWriteComplete) -> Result<CallbackItems, Failure> {
    if done.errors.len() != done.items.len() {
        return Err(violation("a callback tells not all of each item"));
    }
    let results = done.errors.iter().map(|error| CallbackItem::Written(outcome(*error)));
    Ok(by_place(done.items.iter().copied().zip(results)))
}

impl ItemGroup {
    pub(super) fn make(link: &Arc<Link>, session: &Arc<Session>, ids: &[&str]) -> Result<Self, Failure> {
        // Nothing is sent of its own accord: it is not active.
        let mut made = session.with_group(false, 1000, 0, None, |handle, _, known| {
            let (desk, items) = (Arc::<OpenTransfers>::default(), Vec::new());
            let (io, why, advised) = way(session, &known, &desk)?;
            let (link, session) = (Arc::clone(link), Arc::clone(session));
            Ok(Self { handle, known, items, io, why, desk, advised, session, link })
        })?;
        // From here on it removes the group itself.
        made.add(ids)?;
        Ok(made)
    }

    fn add(&mut self, ids: &[&str]) -> Result<(), Failure> {
        let items = self.known.query::<dyn IOPCItemMgt>()?.ok_or_else(|| missing("IOPCItemMgt"))?;
        let mut place = 0_u32;
        for slice in ids.chunks(SLICE) {
            let defs: Vec<_> = slice.iter().zip(place..).map(|(id, place)| def(id, place)).collect();
            let (results, errors) = items.add_items(&defs)?.value;
            let results = each(slice.len(), results, &errors)?;
            self.items.extend(results.into_iter().map(|result| result.map(|added| added.server)));
            place = place.saturating_add(u32::try_from(slice.len()).unwrap_or(u32::MAX));
        }
        Ok(())
    }

    /// How it reads and writes.
    #[must_use]
    pub fn way(&self) -> TransferMode {
        match &self.io {
            Io::Newer(_) => TransferMode::Version3,
            Io::Older(_) => TransferMode::Version2,
            Io::Waiting(_) => TransferMode::Waiting { why: self.why.clone() },
        }
    }

    /// Items that the server did not take, by their places, and why.
    #[must_use]
    pub fn refused(&self) -> Vec<(usize, Code)> {
        self.items.iter().enumerate().filter_map(|(at, item)| Some((at, item.err()?))).collect()
    }

    /// The handles of items by their places, and for each place what is asked for: its number, or why nothing.
    fn asked(&self, places: &[usize]) -> (Vec<u32>, Vec<Result<u32, Code>>) {
        let mut handles = Vec::new();
        let asked = places.iter().map(|place| {
            let handle = self.items.get(*place).copied().unwrap_or(Err(Code::INVALID_HANDLE))?;
            handles.push(handle);
            u32::try_from(*place).map_err(|_| Code::INVALID_HANDLE)
        });
        let asked = asked.collect();
        (handles, asked)
    }

    /// Begins to read items, by their places: values that are no older than this, where the server can tell ([`TransferMode::Version3`]); else those
    /// of the device.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses all.
    pub fn read(&self, places: &[usize], age: Duration) -> Result<Transfer<Vqt>, Failure> {
        let (handles, asked) = self.asked(places);
        let age = u32::try_from(age.as_millis()).unwrap_or(u32::MAX);
        let begin = |transaction| match &self.io {
            Io::Newer(io) => io.read_max_age(&handles, &vec![age; handles.len()], transaction),
            Io::Older(io) => io.read(&handles, transaction),
            Io::Waiting(_) => Err(Code::NOT_SUPPORTED.into()),
        };
        let now = |io: &Ref<dyn IOPCSyncIO>| {
            let (states, errors) = io.read(OPCDATASOURCE::OpcDsDevice, &handles)?.value;
            let states = each(handles.len(), states, &errors)?;
            Ok(states
                .into_iter()
                .map(|one| CallbackItem::Value(one.map(|state| vqt_of_state(&state))))
                .collect())
        };
        self.transfer(&handles, asked, begin, now, |told| match told {
            CallbackItem::Value(value) => Some(value.clone()),
            CallbackItem::Written(_) => None,
        })
    }

    /// Begins to write items, by their places.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses all.
    pub fn write(&self, values: &[(usize, Data)]) -> Result<Transfer<Code>, Failure> {
        let places: Vec<usize> = values.iter().map(|(place, _)| *place).collect();
        let (handles, asked) = self.asked(&places);
        let taken =
            || values.iter().zip(&asked).filter(|(_, asked)| asked.is_ok()).map(|((_, data), _)| data);
        let variants: Vec<_> = taken().map(Data::to_variant).collect();
        let vqts: Vec<_> = taken().map(given).collect();
        let begin = |transaction| match &self.io {
            Io::Newer(io) => io.write_vqt(&handles, &vqts, transaction),
            Io::Older(io) => io.write(&handles, &variants, transaction),
            Io::Waiting(_) => Err(Code::NOT_SUPPORTED.into()),
        };
        let now = |io: &Ref<dyn IOPCSyncIO>| {
            let errors = io.write(&handles, &variants)?.value;
            each(handles.len(), vec![(); handles.len()], &errors)?;
            Ok(errors.iter().map(|error| CallbackItem::Written(outcome(*error))).collect())
        };
        self.transfer(&handles, asked.clone(), begin, now, |told| match told {
            CallbackItem::Written(code) => Some(*code),
            CallbackItem::Value(_) => None,
        })
    }

    fn transfer<T>(
        &self,
        handles: &[u32],
        mut asked: Vec<Result<u32, Code>>,
        begin: impl FnOnce(u32) -> Result<everywire::Success<(u32, Vec<i32>)>, Failure>,
        now: impl FnOnce(&Ref<dyn IOPCSyncIO>) -> Result<Vec<CallbackItem>, Failure>,
        read: fn(&CallbackItem) -> Option<Result<T, Code>>,
    ) -> Result<Transfer<T>, Failure> {
        if handles.is_empty() {
            return Ok(Transfer::done(asked, HashMap::new(), read));
        }
        let cancels: Ref<dyn IOPCAsyncIO2> = match &self.io {
            Io::Waiting(io) => {
                let told = now(io).map_err(|failure| self.failed(failure))?;
                let places = asked.iter().filter_map(|asked| asked.ok());
                let told = by_place(places.zip(told));
                return Ok(Transfer::done(asked, told, read));
            }
            Io::Older(io) => io.clone(),
            Io::Newer(io) => io.query()?.ok_or_else(|| missing("IOPCAsyncIO2"))?,
        };
        let (transaction, slot) = self.desk.open()?;
        let give_up = |failure: Failure| {
            self.desk.take(transaction);
            self.failed(failure)
        };
        let (cancel, errors) = begin(transaction).map_err(give_up)?.value;
        if errors.len() != handles.len() {
            return Err(give_up(violation("the server answers about other items than it was asked for")));
        }
        let mut errors = errors.iter().map(|error| code_of(*error));
        for one in asked.iter_mut().filter(|one| one.is_ok()) {
            if let Some(code) = errors.next().filter(|code| code.is_failure()) {
                *one = Err(code);
            }
        }
        if asked.iter().all(Result::is_err) {
            // There is nothing to call back about.
            self.desk.close(transaction, Done::Items(HashMap::new()));
        }
        let desk = Arc::downgrade(&self.desk);
        Ok(Transfer { slot, desk, transaction, cancel: Some((cancel, cancels)), asked, read })
    }

    /// What is said to whoever asked; an object that is no more is forgotten.
    fn failed(&self, failure: Failure) -> Failure {
        if super::trouble::is_gone(&failure) {
            self.link.forget(&self.session);
        }
        advised(failure)
    }

    /// Does something with handles of items that have some; the rest is answered with what stood in their way.
    fn of_items<T, V: Copy>(
        &self,
        items: &[(usize, V)],
        interface: &str,
        job: impl FnOnce(&Ref<dyn IOPCGroupStateMgt>, &[(u32, V)]) -> Answers<T>,
    ) -> Result<Vec<Result<T, Code>>, Failure> {
        let handle = |(place, value): &(usize, V)| {
            let handle = self.items.get(*place).copied().unwrap_or(Err(Code::INVALID_HANDLE))?;
            Ok((handle, *value))
        };
        let wanted: Vec<Result<(u32, V), Code>> = items.iter().map(handle).collect();
        let there: Vec<(u32, V)> = wanted.iter().filter_map(|one| one.ok()).collect();
        let mut answers = if there.is_empty() {
            Vec::new().into_iter()
        } else {
            let answers = job(&self.known, &there).map_err(|failure| self.failed(failure))?;
            answers
                .ok_or_else(|| {
                    let what =
                        format!("the server has no {interface}: single items have nothing of their own");
                    Failure::new(Kind::Unsupported, Initiator::Peer, what)
                })?
                .into_iter()
        };
        let each = |one: Result<(u32, V), Code>| one.and_then(|_| answers.next().unwrap_or(Err(Code::FAIL)));
        Ok(wanted.into_iter().map(each).collect())
    }

    /// Gives items deadbands of their own, in percent of their ranges (3.0, IOPCItemDeadbandMgt).
    ///
    /// # Errors
    /// The server does not offer it, or cannot be reached.
    pub fn set_deadbands(&self, items: &[(usize, f32)]) -> Result<Vec<Result<(), Code>>, Failure> {
        self.of_items(items, "IOPCItemDeadbandMgt", single::set_deadbands)
    }

    /// The deadbands of items, in percent; [`Code::DEADBAND_NOT_SET`] of those that have the group's.
    ///
    /// # Errors
    /// The server does not offer it, or cannot be reached.
    pub fn deadbands(&self, places: &[usize]) -> Result<Vec<Result<f32, Code>>, Failure> {
        self.of_items(&with_nothing(places), "IOPCItemDeadbandMgt", |group, items| {
            single::deadbands(group, &handles(items))
        })
    }

    /// Leaves items to the group's deadband.
    ///
    /// # Errors
    /// The server does not offer it, or cannot be reached.
    pub fn clear_deadbands(&self, places: &[usize]) -> Result<Vec<Result<(), Code>>, Failure> {
        self.of_items(&with_nothing(places), "IOPCItemDeadbandMgt", |group, items| {
            single::clear_deadbands(group, &handles(items))
        })
    }

    /// Has items looked at at rates of their own (3.0, IOPCItemSamplingMgt); the rates that the server chose.
    ///
    /// # Errors
    /// The server does not offer it, or cannot be reached.
    pub fn set_sampling(&self, items: &[(usize, Duration)]) -> Result<Vec<Result<Duration, Code>>, Failure> {
        self.of_items(items, "IOPCItemSamplingMgt", single::set_sampling)
    }

    /// Leaves items to the group's rate.
    ///
    /// # Errors
    /// The server does not offer it, or cannot be reached.
    pub fn clear_sampling(&self, places: &[usize]) -> Result<Vec<Result<(), Code>>, Failure> {
        self.of_items(&with_nothing(places), "IOPCItemSamplingMgt", |group, items| {
            single::clear_sampling(group, &handles(items))
        })
    }

    /// Has all samples of items kept that are taken between two updates, or no longer.
    ///
    /// # Errors
    /// The server does not offer it, or cannot be reached.
    pub fn set_buffers(&self, items: &[(usize, bool)]) -> Result<Vec<Result<(), Code>>, Failure> {
        self.of_items(items, "IOPCItemSamplingMgt", single::set_buffers)
    }
}

fn with_nothing(places: &[usize]) -> Vec<(usize, ())> {
    places.iter().map(|place| (*place, ())).collect()
}

fn handles(items: &[(u32, ())]) -> Vec<u32> {
    items.iter().map(|(handle, ())| *handle).collect()
}

impl Drop for ItemGroup {
    fn drop(&mut self) {
        // Unadvise comes first.
        drop(self.advised.take());
        self.desk.end(&Failure::new(Kind::Cancelled, Initiator::User, "the group was dropped"));
        self.session.remove_group(self.handle);
    }
}

/// How a group can be read and written, why so, and what keeps callbacks coming.
fn way(
    session: &Session,
    known: &Ref<dyn IOPCGroupStateMgt>,
    desk: &Arc<OpenTransfers>,
) -> Result<(Io, String, Option<Advised>), Failure> {
    let waiting = |why: String| {
        let io = known.query::<dyn IOPCSyncIO>()?.ok_or_else(|| missing("IOPCSyncIO"))?;
        Ok((Io::Waiting(io), why, None))
    };
    let newer = if session.is_plain { None } else { known.query::<dyn IOPCAsyncIO3>()? };
    let io = match newer {
        Some(io) => Io::Newer(io),
        None => match known.query::<dyn IOPCAsyncIO2>()? {
            Some(io) => Io::Older(io),
            None => return waiting("the server has neither IOPCAsyncIO3 nor IOPCAsyncIO2".to_owned()),
        },
    };
    let object = session.node.resolve(known.reference())?;
    let object = object.typed(Hold::Static(<dyn DataAccessGroup as Remote>::interface()));
    let desk = Arc::clone(desk);
    // One sink for all of its methods: many servers take no second one.
    let listener = move |event: SignalEvent<Incoming>| match event {
        SignalEvent::Signal(heard) => {
            if let Err(failure) = desk.heard(&heard) {
                desk.end(&failure);
            }
        }
        SignalEvent::OwnerLost(failure)
        | SignalEvent::Undecodable(failure)
        | SignalEvent::Disconnected(failure) => desk.end(&failure),
    };
    match object.subscribe(None, Arc::new(listener)) {
        Ok(advised) => Ok((io, String::new(), Some(advised))),
        Err(failure) if super::trouble::is_gone(&failure) => Err(failure),
        Err(failure) => waiting(format!("the server does not take callbacks: {}", advised_text(failure))),
    }
}

fn advised_text(failure: Failure) -> String {
    let failure = advised(failure);
    let hint = failure.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{failure}{hint}")
}

impl<T> Transfer<T> {
    fn done(
        asked: Vec<Result<u32, Code>>,
        told: CallbackItems,
        read: fn(&CallbackItem) -> Option<Result<T, Code>>,
    ) -> Self {
        let slot = Arc::<Slot>::default();
        slot.finish(Done::Items(told));
        Self { slot, desk: Weak::new(), transaction: 0, cancel: None, asked, read }
    }

    /// Whether it is done, or over.
    #[must_use]
    pub fn is_done(&self) -> bool {
        lock(&self.slot.done).is_some()
    }

    /// Waits until it is done, at most so long: what became of each item, in the order in which they were named.
    ///
    /// # Errors
    /// [`Kind::TimedOut`]: it is still under way. [`Kind::Cancelled`]: it was cancelled. The server is gone.
    pub fn wait(&self, patience: Duration) -> Result<Vec<Result<T, Code>>, Failure> {
        // Nothing: there is no such time.
        let until = Instant::now().checked_add(patience);
        let mut done = lock(&self.slot.done);
        loop {
            match &*done {
                Some(Done::Items(told)) => return Ok(self.each(told)),
                Some(Done::Failed(failure)) => return Err(failure.clone()),
                None => {}
            }
            let left = until.map_or(patience, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                let what = format!("the server did not tell within {patience:?} that it is done");
                return Err(Failure::new(Kind::TimedOut, Initiator::Peer, what));
            }
            done = match self.slot.bell.wait_timeout(done, left) {
                Ok((done, _)) => done,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    fn each(&self, told: &CallbackItems) -> Vec<Result<T, Code>> {
        let mut named: HashMap<u32, usize> = HashMap::new();
        let one = |asked: &Result<u32, Code>| {
            let before = named.entry((*asked)?).or_default();
            // A server may tell only once of what was asked for twice.
            let told = told.get(&(*asked)?).and_then(|all| all.get(*before).or_else(|| all.last()));
            *before += 1;
            let told = told.and_then(self.read);
            // It was taken, and nothing was told of it.
            told.unwrap_or(Err(Code::FAIL))
        };
        self.asked.iter().map(one).collect()
    }

    /// Asks the server to leave it (Cancel2). Whether the server took that; [`Transfer::wait`] tells what came of it, since it may have
    /// been done before.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn cancel(&self) -> Result<bool, Failure> {
        let Some((number, io)) = &self.cancel else { return Ok(false) };
        if self.is_done() {
            return Ok(false);
        }
        match io.cancel2(*number) {
            Ok(()) => Ok(true),
            // It is done, or cannot be left any more.
            Err(failure) if Code::of(&failure) == Code::FAIL && failure.code().is_some() => Ok(false),
            Err(failure) => Err(advised(failure)),
        }
    }
}

impl<T> Drop for Transfer<T> {
    fn drop(&mut self) {
        if let Some(desk) = self.desk.upgrade() {
            desk.take(self.transaction);
        }
    }
}
