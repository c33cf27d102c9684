//! Groups: how they are set, and what of them goes on at once.
//!
//! States of a group:
//! * *at rest*: it is inactive, disabled, or nobody listens. It is in no schedule, and costs nothing but its
//!   memory;
//! * *sending*: it is active, enabled, and somebody listens (`Inner::sends`). Exactly then it is in the
//!   engine's schedule;
//! * *over*, after `Group::end`: each method fails with `Code::FAIL`, its members have let go of their cells,
//!   its calls are forgotten, and what it cost is refunded. There is no way back.
//!
//! Invariants.
//! * It sends what has changed (`update`): its members' cells put them on its list, so members that are quiet
//!   cost nothing.
//! * Whenever it begins to send (it is activated, a listener comes, it is enabled again) all its active
//!   members are new.
//! * What is told is told in the order in which it was seen: whoever collects holds `Group::order` until it
//!   has handed over. It is taken before `Group::inner`, and `inner` is never held while the source or a
//!   listener is called.
//! * What was lost on its way is known: the next report has `Code::DATA_QUEUE_OVERFLOW`, and the newest value
//!   of each item.
//!
//! Who owns it. Its client lists it (`crate::client`), its object at the server holds it, the schedule holds
//! it weakly; it ends when it is removed, with its client, or with the last who holds it. OPC DA 2.05a, 4.5.

mod io;
mod items;
mod member;
mod pending;
mod update;

pub use io::{ReadFrom, Sample, WriteVqt};
pub(crate) use io::{bound, write_to};
pub use items::{Attributes, ItemDef, ItemResult};
pub use pending::{Refresh, StartedTransaction};
pub use update::{Batch, Report};

use crate::Code;
use crate::cell::Dirty;
use crate::engine::Engine;
use crate::share::Share;
use crate::sync::lock;
use member::Members;
use pending::Pending;
use std::sync::{Arc, Mutex, Weak};

/// How a group is set (IOPCGroupStateMgt).
#[derive(Debug, Clone, PartialEq)]
pub struct GroupState {
    /// Its name, unique among the groups of its client.
    pub name: String,
    /// Whether it sends changes.
    pub active: bool,
    /// Milliseconds between two updates: what was asked for before the group is made, what is used afterwards.
    pub rate: u32,
    /// Minutes by which the clock of the data is away from UTC; kept for the client.
    pub time_bias: i32,
    /// How much of its range an analog item has to move to be sent, in percent.
    pub deadband: f32,
    /// The language of its texts.
    pub locale: u32,
    /// The client's number for it.
    pub client: u32,
    /// The server's number for it; not taken from who asks.
    pub server: u32,
    /// Milliseconds after which it sends something although nothing has changed; 0 is never.
    pub keep_alive: u32,
}

impl Default for GroupState {
    fn default() -> Self {
        Self {
            name: String::new(),
            active: true,
            rate: 1000,
            time_bias: 0,
            deadband: 0.0,
            locale: 0x409,
            client: 0,
            server: 0,
            keep_alive: 0,
        }
    }
}

impl GroupState {
    /// Whether it can be so: a deadband is a percentage.
    pub(crate) fn check(&self) -> Result<(), Code> {
        if (0.0..=100.0).contains(&self.deadband) { Ok(()) } else { Err(Code::INVALID_ARGUMENT) }
    }
}

/// What of a group's state is to be changed (SetState): what is nothing stays.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Change {
    /// [`GroupState::rate`].
    pub rate: Option<u32>,
    /// [`GroupState::active`].
    pub active: Option<bool>,
    /// [`GroupState::time_bias`].
    pub time_bias: Option<i32>,
    /// [`GroupState::deadband`].
    pub deadband: Option<f32>,
    /// [`GroupState::locale`].
    pub locale: Option<u32>,
    /// [`GroupState::client`].
    pub client: Option<u32>,
}

/// A group of items.
pub struct Group {
    /// Itself, for the schedule.
    weak: Weak<Self>,
    /// Where its items and its schedule are.
    engine: Arc<Engine>,
    /// What its client holds of its quota.
    share: Arc<Share>,
    /// The server's number for it; never changes.
    handle: u32,
    /// The list on which cells put its members that are new.
    dirty: Arc<Dirty>,
    /// Held while changes are collected and handed over, so that they are told in the order in which they were seen. It is taken before `inner`.
    order: Mutex<()>,
    inner: Mutex<Inner>,
}

/// What of a group changes, under its lock.
struct Inner {
    /// How it is set.
    state: GroupState,
    /// Its items.
    members: Members,
    /// Calls that were begun and not performed.
    pending: Pending,
    /// How many listen.
    listeners: usize,
    /// Whether SetEnable has it send changes.
    is_enabled: bool,
    /// Whether it was removed.
    is_over: bool,
    /// When it is to be looked at, in ticks; nothing if it begins at the next chance.
    due: Option<u64>,
    /// When changes are to be sent: not each time, if items are sampled more often than that.
    send_at: Option<u64>,
    /// When something was last sent.
    sent: Option<u64>,
    /// Reports were lost on their way: the next one says so.
    has_lost: bool,
    /// Room for the list of members that are new.
    list: Vec<u32>,
}

impl Group {
    /// A group without items that nobody listens to: it rests, even if it is active.
    pub(crate) fn new(engine: &Arc<Engine>, share: &Arc<Share>, mut state: GroupState) -> Arc<Self> {
        let handle = engine.group_handle();
        state.server = handle;
        state.rate = engine.revised(state.rate);
        Arc::new_cyclic(|weak| Self {
            weak: weak.clone(),
            engine: Arc::clone(engine),
            share: Arc::clone(share),
            handle,
            dirty: Arc::default(),
            order: Mutex::default(),
            inner: Mutex::new(Inner {
                state,
                members: Members::default(),
                pending: Pending::default(),
                listeners: 0,
                is_enabled: true,
                is_over: false,
                due: None,
                send_at: None,
                sent: None,
                has_lost: false,
                list: Vec::new(),
            }),
        })
    }

    /// The server's number for it.
    #[must_use]
    pub fn server_handle(&self) -> u32 {
        self.handle
    }

    /// Its state; nothing may be done with it while this is held.
    fn inner(&self) -> Result<std::sync::MutexGuard<'_, Inner>, Code> {
        let inner = lock(&self.inner);
        if inner.is_over { Err(Code::FAIL) } else { Ok(inner) }
    }

    /// How it is set.
    ///
    /// # Errors
    /// [`Code::FAIL`]: it was removed. So for all methods.
    pub fn state(&self) -> Result<GroupState, Code> {
        Ok(self.inner()?.state.clone())
    }

    pub(crate) fn set_name(&self, name: &str) {
        name.clone_into(&mut lock(&self.inner).state.name);
    }

    /// Changes how it is set. The rate that is used from now on; [`Code::UNSUPPORTED_RATE`] if it is another one than was asked for.
    ///
    /// # Errors
    /// [`Code::INVALID_ARGUMENT`]: a deadband that is no percentage.
    pub fn change(&self, change: &Change) -> Result<(u32, Code), Code> {
        let mut inner = self.inner()?;
        let mut next = inner.state.clone();
        next.rate = change.rate.map_or(next.rate, |rate| self.engine.revised(rate));
        next.active = change.active.unwrap_or(next.active);
        next.time_bias = change.time_bias.unwrap_or(next.time_bias);
        next.deadband = change.deadband.unwrap_or(next.deadband);
        next.locale = change.locale.unwrap_or(next.locale);
        next.client = change.client.unwrap_or(next.client);
        next.check()?;
        let was = inner.sends();
        let rate = next.rate;
        if inner.state.rate != rate {
            (inner.due, inner.send_at) = (None, None);
        }
        inner.state = next;
        self.begin_or_rest(&mut inner, was);
        let is_other = change.rate.is_some_and(|asked| asked != rate);
        Ok((rate, if is_other { Code::UNSUPPORTED_RATE } else { Code::OK }))
    }

    /// Sets the time after which it sends something although nothing has changed; 0 is never. What is used.
    ///
    /// # Errors
    /// As [`Group::state`].
    pub fn set_keep_alive(&self, milliseconds: u32) -> Result<(u32, Code), Code> {
        let mut inner = self.inner()?;
        let revised = if milliseconds == 0 { 0 } else { self.engine.revised(milliseconds) };
        inner.state.keep_alive = revised;
        Ok((revised, if revised == milliseconds { Code::OK } else { Code::UNSUPPORTED_RATE }))
    }

    /// So many listen now. When one more comes, all that the group has is new.
    pub fn set_listeners(&self, count: usize) {
        let Ok(mut inner) = self.inner() else { return };
        let (was, more) = (inner.sends(), count > inner.listeners);
        inner.listeners = count;
        self.begin_or_rest(&mut inner, was && !more);
    }

    /// Something that was sent did not arrive: all that the group has is new, and what is sent next has
    /// [`Code::DATA_QUEUE_OVERFLOW`]. So the last value of each item arrives, and that others were lost is known.
    pub fn lost(&self) {
        let Ok(mut inner) = self.inner() else { return };
        if inner.sends() {
            inner.has_lost = true;
            inner.members.renew();
        }
    }

    /// How many listen.
    #[must_use]
    pub fn listeners(&self) -> usize {
        lock(&self.inner).listeners
    }

    /// Whether changes are sent at all; what is asked for (Refresh2, asynchronous reads) is sent always (SetEnable).
    ///
    /// # Errors
    /// [`Code::NO_CONNECTION`]: nobody listens.
    pub fn set_enabled(&self, is_enabled: bool) -> Result<(), Code> {
        let mut inner = self.inner()?;
        if inner.listeners == 0 {
            return Err(Code::NO_CONNECTION);
        }
        let was = inner.sends();
        inner.is_enabled = is_enabled;
        self.begin_or_rest(&mut inner, was);
        Ok(())
    }

    /// Whether changes are sent.
    ///
    /// # Errors
    /// As [`Group::set_enabled`].
    pub fn is_enabled(&self) -> Result<bool, Code> {
        let inner = self.inner()?;
        if inner.listeners == 0 { Err(Code::NO_CONNECTION) } else { Ok(inner.is_enabled) }
    }

    /// Puts the group into the schedule or takes it out. `was`: it sent before, so that nothing of it is new.
    fn begin_or_rest(&self, inner: &mut Inner, was: bool) {
        let Some(own) = self.weak.upgrade() else { return };
        if !inner.sends() {
            inner.due = None;
            return self.engine.schedule(&own, None);
        }
        if !was {
            (inner.due, inner.send_at, inner.sent) = (None, None, None);
            inner.members.renew();
        }
        self.engine.schedule(&own, Some(inner.due.unwrap_or_default()));
    }

    /// The group is no more.
    pub(crate) fn end(&self) {
        let members = {
            let mut inner = lock(&self.inner);
            inner.is_over = true;
            inner.pending = Pending::default();
            std::mem::take(&mut inner.members)
        };
        if let Some(own) = self.weak.upgrade() {
            self.engine.schedule(&own, None);
        }
        self.share.refund(members.len(), members.bytes());
        members.let_go();
    }

    /// Whether it was removed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        lock(&self.inner).is_over
    }
}

impl Inner {
    /// Whether changes are sent.
    fn sends(&self) -> bool {
        self.state.active && self.is_enabled && self.listeners > 0 && !self.is_over
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !lock(&self.inner).is_over {
            self.end();
        }
        self.engine.group_left(self.handle);
    }
}
