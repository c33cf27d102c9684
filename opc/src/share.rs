//! What a client holds of its quota: charged before it is made, given back when it is no more.

use crate::Code;
use crate::engine::Engine;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A client's, shared with all that it has.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// Items of all groups of the client.
    items: AtomicUsize,
    /// Bytes of names and values that are kept for it.
    bytes: AtomicUsize,
    /// Enumerators that it has not released.
    enumerators: AtomicUsize,
}

/// Adds to a counter, unless that is more than is allowed.
fn add(counter: &AtomicUsize, more: usize, most: usize) -> Result<(), Code> {
    let grown = |held: usize| held.checked_add(more).filter(|sum| *sum <= most);
    let added = counter.fetch_update(Ordering::AcqRel, Ordering::Acquire, grown);
    added.map(drop).map_err(|_| Code::OUT_OF_MEMORY)
}

impl Share {
    /// Charges for an item of this many bytes.
    pub(crate) fn charge(&self, engine: &Engine, bytes: usize) -> Result<(), Code> {
        let quotas = engine.settings.quotas;
        add(&self.items, 1, quotas.items)?;
        add(&self.bytes, bytes, quotas.bytes).inspect_err(|_| {
            self.items.fetch_sub(1, Ordering::AcqRel);
        })
    }

    /// Gives back what was charged for items.
    pub(crate) fn refund(&self, items: usize, bytes: usize) {
        self.items.fetch_sub(items, Ordering::AcqRel);
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Charges for bytes.
    pub(crate) fn room(self: &Arc<Self>, engine: &Engine, bytes: usize) -> Result<Receipt, Code> {
        add(&self.bytes, bytes, engine.settings.quotas.bytes)?;
        Ok(Receipt { share: Arc::clone(self), bytes })
    }

    /// Charges for an enumerator, of which there may be so many.
    pub(crate) fn enumerator(self: &Arc<Self>, most: usize) -> Result<Seat, Code> {
        add(&self.enumerators, 1, most)?;
        Ok(Seat { share: Arc::clone(self), most })
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
        self.share.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// An enumerator that was charged; it is given back with this.
#[derive(Debug)]
pub(crate) struct Seat {
    share: Arc<Share>,
    most: usize,
}

impl Seat {
    /// One more, for a copy.
    pub(crate) fn another(&self) -> Result<Self, Code> {
        self.share.enumerator(self.most)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.share.enumerators.fetch_sub(1, Ordering::AcqRel);
    }
}
