//! Asynchronous calls: what a client asked for and is told later (IOPCAsyncIO2, IOPCAsyncIO3).
//!
//! States of a call:
//! * *begun* by the client: it has a number, by which it is cancelled and performed, and waits. What is wrong
//!   with single items is told at once, and these are left out of what comes later; if none are left the
//!   number is 0 and nothing comes later;
//! * *performed* by whoever drives the engine, once: it is taken from the list first, so it can no longer be
//!   cancelled. It may wait for the source, which no lock is held for. A refresh of more than `PART` items is
//!   performed in parts, and its rest stays on the list under the same number until its turn: so it can still
//!   be cancelled between two parts;
//! * *cancelled* in between: then it is never performed, and the client is told so instead.
//!
//! Invariants.
//! * Each call that was begun ends in exactly one of these ways, or with its group.
//! * What a refresh tells is what the next change is compared with (`Group::told`), as if an update had told
//!   it. It is told under the group's order, so no change that is older comes after it.
//! * Items that were removed meanwhile are left out: the client has no number for them any more.
//!
//! Bounds. `Quotas::pending` calls for each group; what they hold is charged to the client (`Receipt`) until
//! they are performed. OPC DA 2.05a, 4.5.

use super::io::{ReadFrom, WriteVqt};
use super::update::{Batch, PART, Report};
use super::{Group, Sample};
use crate::data::Vqt;
use crate::share::Receipt;
use crate::sync::lock;
use crate::time::Moment;
use crate::{Code, Quality};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The calls of a group that were begun and not performed.
#[derive(Default)]
pub(super) struct Pending {
    /// By their numbers.
    calls: BTreeMap<u32, Call>,
    /// The number of the last one that was begun.
    last: u32,
}

impl Pending {
    /// A number that no call has which waits; 0 is none.
    fn fresh(&mut self) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            if self.last != 0 && !self.calls.contains_key(&self.last) {
                return self.last;
            }
        }
    }
}

/// A call that waits.
struct Call {
    /// The client's number for it, which what is told later has.
    transaction: u32,
    /// What is to be done.
    deed: PendingAction,
    /// What it costs of the client's quota until it is performed.
    _cost: Receipt,
}

/// What is to be done, and with which items: those alone with which nothing was wrong.
enum PendingAction {
    /// Read, and tell that it was read.
    Read(Vec<u32>, ReadSource),
    /// Read all active items, and tell them as changes.
    Refresh(Vec<u32>, ReadSource),
    /// Write.
    Write(Vec<u32>, Vec<WriteVqt>),
}

impl PendingAction {
    /// What of a refresh does not go in one call; it is taken away.
    fn rest(&mut self) -> Option<Self> {
        let Self::Refresh(items, place) = self else { return None };
        if items.len() <= PART {
            return None;
        }
        let place = match place {
            ReadSource::Cache => ReadSource::Cache,
            ReadSource::Device => ReadSource::Device,
            ReadSource::Ages(ages) => ReadSource::Ages(ages.split_off(PART)),
        };
        Some(Self::Refresh(items.split_off(PART), place))
    }

    /// What it holds; nothing if there is nothing to do.
    fn bytes(&self) -> Option<usize> {
        match self {
            Self::Read(items, _) | Self::Refresh(items, _) => {
                // An age beside each handle.
                (!items.is_empty()).then_some(items.len() * 2 * size_of::<u32>())
            }
            Self::Write(items, values) => {
                let heap: usize = values.iter().map(|given| given.data.heap()).sum();
                let each = size_of::<u32>() + size_of::<WriteVqt>();
                (!items.is_empty()).then_some(items.len() * each + heap)
            }
        }
    }
}

/// [`ReadFrom`] with ages of its own.
enum ReadSource {
    /// The last values.
    Cache,
    /// The source.
    Device,
    /// By age, one for each item.
    Ages(Vec<u32>),
}

impl ReadSource {
    fn of(from: ReadFrom<'_>) -> Self {
        match from {
            ReadFrom::Cache => Self::Cache,
            ReadFrom::Device => Self::Device,
            ReadFrom::Ages(ages) => Self::Ages(ages.to_vec()),
        }
    }

    fn borrowed(&self) -> ReadFrom<'_> {
        match self {
            Self::Cache => ReadFrom::Cache,
            Self::Device => ReadFrom::Device,
            Self::Ages(ages) => ReadFrom::Ages(ages),
        }
    }
}

/// A call that was begun: its number, by which it is cancelled and performed (0: nothing is left to do), and a code for each item.
pub type StartedTransaction = (u32, Vec<Code>);

impl Group {
    /// Begins a read.
    ///
    /// # Errors
    /// [`Code::NO_CONNECTION`]: nobody listens. [`Code::OUT_OF_MEMORY`]: too many calls wait. [`Code::INVALID_ARGUMENT`]: no items, or
    /// not as many ages.
    pub fn begin_read(
        &self,
        items: &[u32],
        from: ReadFrom<'_>,
        transaction: u32,
    ) -> Result<StartedTransaction, Code> {
        if let ReadFrom::Ages(ages) = from {
            super::items::paired(items, ages)?;
        }
        let codes =
            self.looked_at(items, |member| if member.is_readable { Ok(()) } else { Err(Code::BAD_RIGHTS) })?;
        let kept = |index: &usize| codes.get(*index) == Some(&Code::OK);
        let indices: Vec<usize> = (0..items.len()).filter(kept).collect();
        let pick =
            |list: &[u32]| indices.iter().filter_map(|index| list.get(*index).copied()).collect::<Vec<_>>();
        let place = match from {
            ReadFrom::Ages(ages) => ReadSource::Ages(pick(ages)),
            other => ReadSource::of(other),
        };
        let cancel = self.begin(transaction, PendingAction::Read(pick(items), place))?;
        Ok((cancel, codes))
    }

    /// Begins a write.
    ///
    /// # Errors
    /// As [`Group::begin_read`].
    pub fn begin_write(
        &self,
        items: &[u32],
        values: &[WriteVqt],
        transaction: u32,
    ) -> Result<StartedTransaction, Code> {
        super::items::paired(items, values)?;
        super::items::some(items)?;
        let code = |item: Result<Arc<crate::Item>, Code>| match item {
            Ok(item) if item.access.allows(crate::Access::WRITE) => Code::OK,
            Ok(_) => Code::BAD_RIGHTS,
            Err(code) => code,
        };
        let codes: Vec<_> = self.items_now(items)?.into_iter().map(code).collect();
        let kept = items.iter().zip(values).zip(&codes).filter(|(_, code)| **code == Code::OK);
        let (items, values): (Vec<u32>, Vec<WriteVqt>) =
            kept.map(|((item, value), _)| (*item, value.clone())).unzip();
        let cancel = self.begin(transaction, PendingAction::Write(items, values))?;
        Ok((cancel, codes))
    }

    /// Begins to send all active items, changed or not: Refresh2, RefreshMaxAge (an age for all).
    ///
    /// # Errors
    /// [`Code::FAIL`]: the group or all of its items are not active. Else as [`Group::begin_read`].
    pub fn begin_refresh(&self, from: Refresh, transaction: u32) -> Result<u32, Code> {
        let items = self.active_items()?;
        let place = match from {
            Refresh::Cache => ReadSource::Cache,
            Refresh::Device => ReadSource::Device,
            Refresh::MaxAge(age) => ReadSource::Ages(vec![age; items.len()]),
        };
        self.begin(transaction, PendingAction::Refresh(items, place))
    }

    /// Puts a call on the list. Its number, or 0 if there is nothing to do.
    fn begin(&self, transaction: u32, deed: PendingAction) -> Result<u32, Code> {
        let mut inner = self.inner()?;
        if inner.listeners == 0 {
            return Err(Code::NO_CONNECTION);
        }
        let Some(bytes) = deed.bytes() else { return Ok(0) };
        if inner.pending.calls.len() >= self.engine.settings.quotas.pending {
            return Err(Code::OUT_OF_MEMORY);
        }
        let cost = self.share.room(&self.engine, bytes)?;
        let cancel = inner.pending.fresh();
        inner.pending.calls.insert(cancel, Call { transaction, deed, _cost: cost });
        Ok(cancel)
    }

    /// A code for each item: whether it is of this group, and what `look` has against it.
    fn looked_at(
        &self,
        items: &[u32],
        look: impl Fn(&super::member::Member) -> Result<(), Code>,
    ) -> Result<Vec<Code>, Code> {
        if items.is_empty() {
            return Err(Code::INVALID_ARGUMENT);
        }
        let inner = self.inner()?;
        let code = |item: &u32| inner.members.get(*item).and_then(&look).err().unwrap_or(Code::OK);
        Ok(items.iter().map(code).collect())
    }

    /// Performs a call that was begun: it may wait for the source. Nothing if it was cancelled, or the group was removed. A refresh of more
    /// items than go in one call is performed in parts: until there is nothing.
    pub fn perform(&self, cancel: u32, now: Moment) -> Option<Report> {
        self.perform_and(cancel, now, |report| report)
    }

    /// The same, and hands what is to be told to `tell`; of a refresh, before any other change of the group is told.
    pub fn perform_and<T>(&self, cancel: u32, now: Moment, tell: impl FnOnce(Report) -> T) -> Option<T> {
        let (Call { transaction, deed, _cost }, group) = {
            let mut inner = self.inner().ok()?;
            let mut call = inner.pending.calls.remove(&cancel)?;
            if let Some(rest) = call.deed.rest() {
                let cost = self.share.room(&self.engine, 0).ok()?;
                let rest = Call {
                    transaction: call.transaction,
                    deed: rest,
                    _cost: std::mem::replace(&mut call._cost, cost),
                };
                inner.pending.calls.insert(cancel, rest);
            }
            (call, inner.state.client)
        };
        let batch = |samples| Batch { transaction, group, samples };
        Some(match deed {
            PendingAction::Read(items, place) => {
                tell(Report::Read(batch(self.samples(&items, &place, now)?)))
            }
            PendingAction::Refresh(items, ReadSource::Cache) => {
                let _order = lock(&self.order);
                let samples = self.samples(&items, &ReadSource::Cache, now)?;
                self.told(&samples);
                tell(Report::Change(batch(samples)))
            }
            PendingAction::Refresh(items, place) => {
                // Nobody else is to wait for the source.
                let samples = self.samples(&items, &place, now)?;
                let _order = lock(&self.order);
                self.told(&samples);
                tell(Report::Change(batch(samples)))
            }
            PendingAction::Write(items, values) => {
                let clients = self.client_handles(&items);
                let codes = self.write(&items, &values).ok()?;
                let items = clients.into_iter().zip(codes).filter_map(|(client, code)| Some((client?, code)));
                tell(Report::Written { transaction, group, items: items.collect() })
            }
        })
    }

    /// Whether something of a call that was begun is still to be performed.
    #[must_use]
    pub fn waits(&self, cancel: u32) -> bool {
        self.inner().is_ok_and(|inner| inner.pending.calls.contains_key(&cancel))
    }

    /// Reads for a call: of items that cannot be read, that.
    fn samples(&self, items: &[u32], place: &ReadSource, now: Moment) -> Option<Vec<Sample>> {
        let samples = self.read(items, place.borrowed(), now).ok()?;
        let clients = self.client_handles(items);
        let sample = |(server, (sample, client)): (&u32, (Result<Sample, Code>, Option<u32>))| match sample {
            Ok(sample) => Some(sample),
            // Of an item that was removed meanwhile the client has no number.
            Err(error) => {
                let value = Vqt::bad(Quality::BAD, now.time);
                Some(Sample { server: *server, client: client?, value, error })
            }
        };
        Some(items.iter().zip(samples.into_iter().zip(clients)).filter_map(sample).collect())
    }

    /// A refresh tells these: the next change is one from them, not from what an update told before. Else a value that comes back to what
    /// it was before the refresh would be no change, and the client would keep the value between.
    fn told(&self, samples: &[Sample]) {
        let Ok(mut inner) = self.inner() else { return };
        for Sample { server, value, error, .. } in samples {
            let Ok(member) = inner.members.get_mut(*server) else { continue };
            if error.is_failure() {
                continue;
            }
            member.sent = Some((value.data.clone(), value.quality));
            if member.cell.value().time > value.time {
                // It has changed while the source was asked, and that may have been told already.
                member.cell.mark(member.watch);
            }
        }
    }

    /// The client's numbers of items as they are now; none of those that were removed.
    fn client_handles(&self, items: &[u32]) -> Vec<Option<u32>> {
        let inner = self.inner();
        let client = |item: &u32| Some(inner.as_ref().ok()?.members.get(*item).ok()?.client);
        items.iter().map(client).collect()
    }

    /// Cancels a call that was begun: what is to be told instead of its end.
    ///
    /// # Errors
    /// [`Code::FAIL`]: it is not known, or is being performed.
    pub fn cancel(&self, cancel: u32) -> Result<Report, Code> {
        let mut inner = self.inner()?;
        let call = inner.pending.calls.remove(&cancel).ok_or(Code::FAIL)?;
        Ok(Report::Cancelled { transaction: call.transaction, group: inner.state.client })
    }
}

/// Where a refresh takes its values from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// The cache.
    Cache,
    /// The source.
    Device,
    /// The cache where it is no older than so many milliseconds, else the source.
    MaxAge(u32),
}
