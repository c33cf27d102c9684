//! What a client holds of its quota: charged before it is made, given back when it is no more.
//!
//! One caller may be many clients, so what all of them hold has a bound, too: [`ALL`] quotas of one. A client may hold no more than the
//! others leave of it, so three clients can have all of theirs, and each one after them gets less. Whoever comes last still has his own
//! part of the bound, which is that divided by as many clients as there may be.
//!
//! Whoever drives the engine may have a budget of memory that others use, too: it is told the bytes of all clients in steps of [`STEP`],
//! and says how many there may be.

use crate::Code;
use crate::engine::Engine;
use crate::sync::lock;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// How many quotas of one client all of them may hold together.
const ALL: usize = 4;

/// The step in which a budget is told of bytes.
const STEP: usize = 64 << 10;

/// Gets the bytes that were told before, and those that are held now; returns how many there may be.
pub(crate) type Budget = dyn Fn(usize, usize) -> usize + Send + Sync;

/// What all clients of an engine hold.
#[derive(Default)]
pub(crate) struct Usage {
    items: AtomicUsize,
    bytes: AtomicUsize,
    budget: OnceLock<Box<Budget>>,
    /// The bytes that it was told of.
    told: Mutex<usize>,
}

impl fmt::Debug for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("items", &self.items).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Usage {
    /// What is held counts there from now on. Only the first one counts.
    pub(crate) fn count_in(&self, budget: Box<Budget>) {
        let _ = self.budget.set(budget);
    }

    /// So many bytes more or less are held. Returns whether the budget has room for them.
    fn changed(&self, before: usize, now: usize) -> bool {
        before / STEP == now / STEP || self.tell()
    }

    #[cold]
    fn tell(&self) -> bool {
        let Some(budget) = self.budget.get() else { return true };
        let mut told = lock(&self.told);
        // Under the lock: whoever comes last tells what is true last.
        let bytes = self.bytes.load(Ordering::Acquire) / STEP * STEP;
        let before = std::mem::replace(&mut *told, bytes);
        bytes <= budget(before, bytes)
    }
}

impl Drop for Usage {
    fn drop(&mut self) {
        if let Some(budget) = self.budget.get() {
            budget(*lock(&self.told), 0);
        }
    }
}

/// A client's, shared with all that it has.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// What all clients hold.
    all: Arc<Usage>,
    /// Items of all groups of the client.
    items: AtomicUsize,
    /// Bytes of names and values that are kept for it.
    bytes: AtomicUsize,
    /// Enumerators that it has not released.
    enumerators: AtomicUsize,
}

/// Adds to a counter, unless that is more than is allowed. Returns what it was.
fn add(counter: &AtomicUsize, more: usize, most: usize) -> Result<usize, Code> {
    let grown = |held: usize| held.checked_add(more).filter(|sum| *sum <= most);
    counter.fetch_update(Ordering::AcqRel, Ordering::Acquire, grown).map_err(|_| Code::OUT_OF_MEMORY)
}

/// Adds to what a client holds and to what all hold, unless it is more than the quota, or than the others leave.
fn add_shared(
    engine: &Engine,
    own: &AtomicUsize,
    all: &AtomicUsize,
    more: usize,
    quota: usize,
) -> Result<usize, Code> {
    add(own, more, quota)?;
    let held = own.load(Ordering::Acquire);
    let bound = quota.saturating_mul(ALL);
    let most = match held <= bound / engine.settings.quotas.clients.max(1) {
        true => usize::MAX,
        false => bound.saturating_sub(held),
    };
    add(all, more, most).inspect_err(|_| {
        own.fetch_sub(more, Ordering::AcqRel);
    })
}

impl Share {
    /// That of a client, which holds nothing yet.
    pub(crate) fn of(all: &Arc<Usage>) -> Self {
        Self { all: Arc::clone(all), ..Self::default() }
    }

    /// Charges for an item of this many bytes.
    pub(crate) fn charge(&self, engine: &Engine, bytes: usize) -> Result<(), Code> {
        let quotas = engine.settings.quotas;
        add_shared(engine, &self.items, &self.all.items, 1, quotas.items)?;
        self.hold(engine, bytes).inspect_err(|_| self.refund(1, 0))
    }

    /// Charges for bytes that are given back by themselves.
    fn hold(&self, engine: &Engine, bytes: usize) -> Result<(), Code> {
        let quota = engine.settings.quotas.bytes;
        let before = add_shared(engine, &self.bytes, &self.all.bytes, bytes, quota)?;
        if self.all.changed(before, before + bytes) {
            return Ok(());
        }
        self.refund(0, bytes);
        Err(Code::OUT_OF_MEMORY)
    }

    /// Gives back what was charged for items.
    pub(crate) fn refund(&self, items: usize, bytes: usize) {
        for held in [&self.items, &self.all.items] {
            held.fetch_sub(items, Ordering::AcqRel);
        }
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        let before = self.all.bytes.fetch_sub(bytes, Ordering::AcqRel);
        // Less than before always fits.
        self.all.changed(before, before - bytes);
    }

    /// Charges for bytes.
    pub(crate) fn room(self: &Arc<Self>, engine: &Engine, bytes: usize) -> Result<Receipt, Code> {
        self.hold(engine, bytes)?;
        Ok(Receipt { share: Arc::clone(self), bytes })
    }

    /// Charges for an enumerator, of which there may be so many.
    pub(crate) fn enumerator(self: &Arc<Self>, most: usize) -> Result<EnumeratorCharge, Code> {
        add(&self.enumerators, 1, most)?;
        Ok(EnumeratorCharge { share: Arc::clone(self), most })
    }

    /// What is charged: items, bytes, enumerators.
    pub(crate) fn held(&self) -> (usize, usize, usize) {
        let of = |counter: &AtomicUsize| counter.load(Ordering::Acquire);
        (of(&self.items), of(&self.bytes), of(&self.enumerators))
    }
}

/// Bytes that were charged; they are given back with this.
#[derive(Debug)]
pub(crate) struct Receipt {
    share: Arc<Share>,
    bytes: usize,
}

impl Drop for Receipt {
    fn drop(&mut self) {
        self.share.refund(0, self.bytes);
    }
}

/// An enumerator that was charged; it is given back with this.
#[derive(Debug)]
pub(crate) struct EnumeratorCharge {
    share: Arc<Share>,
    most: usize,
}

impl EnumeratorCharge {
    /// One more, for a copy.
    pub(crate) fn another(&self) -> Result<Self, Code> {
        self.share.enumerator(self.most)
    }
}

impl Drop for EnumeratorCharge {
    fn drop(&mut self) {
        self.share.enumerators.fetch_sub(1, Ordering::AcqRel);
    }
}
