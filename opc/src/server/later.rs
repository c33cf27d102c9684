//! What a group answers later, and what it tells by itself: IOPCAsyncIO3, IOPCDataCallback, and the settings
//! of single items for that (IOPCItemDeadbandMgt, IOPCItemSamplingMgt).
//!
//! States of a call: *begun* here and answered with a number; *performed* on a thread that may wait for the
//! source (`House::spawn`); then *told* (`House::tell`). A refresh from the cache waits for nobody, so it is
//! performed by the caller at once. What becomes of a call otherwise is in `crate::group`.
//!
//! Invariants.
//! * A call is not begun while as many reports as calls may wait have not been sent, or not been taken by the
//!   slowest listener: its answers would be kept for it.
//! * A call that cannot be given to a thread is cancelled at once, so none is left that nobody performs.
//! * The group counts those who listen by their numbers (`Hearing`), so it rests exactly when the last has
//!   left, in whatever order that is told.
//! * What did not arrive is lost and not sent again; the group is told (`Group::lost`) and sends the newest
//!   value of each item.
//! * That one report cannot be sent is no reason not to send the next.
//!
//! Bounds. `Quotas::pending`, once for calls that wait to be performed and once for reports that wait to be
//! sent or taken.

use super::group::{GroupObject, read_from};
use super::wire::{answer, apart, codes, data_of, filetime, given_of, signed};
use crate::Code;
use crate::contract::{
    DataAccessGroup, DataAccessGroupOnCancelComplete, DataAccessGroupOnDataChange,
    DataAccessGroupOnReadComplete, DataAccessGroupOnWriteComplete, IOPCAsyncIO2, IOPCAsyncIO3,
    IOPCDataCallback, IOPCItemDeadbandMgt, IOPCItemSamplingMgt, OPCDATASOURCE, OPCITEMVQT,
};
use crate::group::{Batch, Group, ReadFrom, Refresh, Report, StartedTransaction, WriteVqt};
use crate::sync::lock;
use everywire::{Audience, Failure, Remote, Signaller, Success};
use everywire_model::{Completed, Variant};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

/// Those who listen to a group. What happens among them is told by several threads, and not always in the order in which it happened, so
/// they are known by their numbers and not by how many there were.
#[derive(Default)]
pub(super) struct Hearing {
    /// Those who listen now.
    present: HashSet<u32>,
    /// Those of whose end was told before their beginning.
    gone: HashSet<u32>,
}

/// Something happened among those who listen to a group.
pub(super) fn heard(group: &Group, hearing: &Mutex<Hearing>, told: &Audience) {
    let is_ours = |interface: &String| *interface == <dyn IOPCDataCallback>::interface().id;
    match told {
        Audience::Joined { interface, listener, .. } if is_ours(interface) => {
            let mut hearing = lock(hearing);
            if !hearing.gone.remove(listener) {
                hearing.present.insert(*listener);
            }
            group.set_listeners(hearing.present.len());
        }
        Audience::Left { interface, listener, .. } if is_ours(interface) => {
            let mut hearing = lock(hearing);
            if !hearing.present.remove(listener) {
                hearing.gone.insert(*listener);
            }
            group.set_listeners(hearing.present.len());
        }
        // What was given up, or may not have arrived, is lost; a call that the listener answered with a failure it has heard.
        Audience::Failed { failure, lost, .. } if *lost > 0 || failure.completed() != Completed::Yes => {
            group.lost();
        }
        _ => {}
    }
}

/// Tells a report to all who listen to a group. Whom it does not reach, the node's observer is told.
pub(super) fn tell(signaller: &Signaller<dyn DataAccessGroup>, report: Report) {
    // That it cannot be encoded would be a mistake of ours alone; the next report is not to suffer from it.
    let _ = match report {
        Report::Change(batch) => signaller.emit(&change(batch)),
        Report::Read(batch) => {
            let change = change(batch);
            signaller.emit(&DataAccessGroupOnReadComplete {
                transaction: change.transaction,
                group: change.group,
                master_quality: change.master_quality,
                master_error: change.master_error,
                items: change.items,
                values: change.values,
                qualities: change.qualities,
                timestamps: change.timestamps,
                errors: change.errors,
            })
        }
        Report::Written { transaction, group, items } => {
            let (items, codes): (Vec<u32>, Vec<Code>) = items.into_iter().unzip();
            signaller.emit(&DataAccessGroupOnWriteComplete {
                transaction,
                group,
                master_error: Code::of_items(codes.iter().copied()).signed(),
                items,
                errors: signed(&codes),
            })
        }
        Report::Cancelled { transaction, group } => {
            signaller.emit(&DataAccessGroupOnCancelComplete { transaction, group })
        }
    };
}

/// A batch as OnDataChange has it: one list for each part of the values.
fn change(batch: Batch) -> DataAccessGroupOnDataChange {
    let samples = &batch.samples;
    DataAccessGroupOnDataChange {
        transaction: batch.transaction,
        group: batch.group,
        master_quality: batch.master_quality().signed(),
        master_error: batch.master_error().signed(),
        items: samples.iter().map(|sample| sample.client).collect(),
        values: samples.iter().map(|sample| sample.value.data.to_variant()).collect(),
        qualities: samples.iter().map(|sample| sample.value.quality.0).collect(),
        timestamps: samples.iter().map(|sample| filetime(sample.value.time)).collect(),
        errors: samples.iter().map(|sample| sample.error.signed()).collect(),
    }
}

impl GroupObject {
    /// Has a call that was begun performed, and its end told.
    fn perform(&self, cancel: u32) -> Result<(), Code> {
        if cancel == 0 {
            return Ok(());
        }
        let desk = self.desk()?;
        let (house, group) = (desk.house()?, Arc::clone(&self.group));
        let weak = Arc::downgrade(&house);
        let job = move || {
            let Some(house) = weak.upgrade() else { return };
            // A large refresh is told in parts.
            let tell = |report| house.tell(group.server_handle(), report);
            while group.perform_and(cancel, house.now(), tell).is_some() {}
        };
        house.spawn(job).inspect_err(|_| {
            // Nobody would perform it.
            let _ = self.group.cancel(cancel);
        })
    }

    /// Nothing is begun for a listener that has not taken what was begun before: its answers would be kept for it.
    fn admit(&self) -> Result<(), Code> {
        let house = self.desk()?.house()?;
        let most = house.engine.settings.quotas.pending;
        let waiting = house.outbox(self.group.server_handle()).map_or(0, |outbox| outbox.waiting());
        if waiting >= most { Err(Code::OUT_OF_MEMORY) } else { Ok(()) }
    }

    /// Answers for a call that was begun, once somebody will perform it.
    fn begun(&self, (cancel, codes): StartedTransaction) -> Result<Success<(u32, Vec<i32>)>, Failure> {
        self.perform(cancel)?;
        answer(&codes, |errors| (cancel, errors))
    }
}

impl IOPCAsyncIO2 for GroupObject {
    fn read(&self, items: &[u32], transaction: u32) -> Result<Success<(u32, Vec<i32>)>, Failure> {
        self.admit()?;
        self.begun(self.group.begin_read(items, ReadFrom::Device, transaction)?)
    }

    fn write(
        &self,
        items: &[u32],
        values: &[Variant],
        transaction: u32,
    ) -> Result<Success<(u32, Vec<i32>)>, Failure> {
        self.admit()?;
        let values: Vec<_> = values.iter().map(|value| WriteVqt::from(data_of(value))).collect();
        self.begun(self.group.begin_write(items, &values, transaction)?)
    }

    fn refresh2(&self, source: OPCDATASOURCE, transaction: u32) -> Result<u32, Failure> {
        let from = match read_from(source)? {
            ReadFrom::Cache => Refresh::Cache,
            _ => Refresh::Device,
        };
        self.admit()?;
        let cancel = self.group.begin_refresh(from, transaction)?;
        if from == Refresh::Cache {
            // The cache waits for nobody, so a refresh has the values of the moment at which it was asked for.
            let house = self.desk()?.house()?;
            let tell = |report| house.tell(self.group.server_handle(), report);
            self.group.perform_and(cancel, house.now(), tell);
            if !self.group.waits(cancel) {
                return Ok(cancel);
            }
        }
        self.perform(cancel)?;
        Ok(cancel)
    }

    fn cancel2(&self, cancel_id: u32) -> Result<(), Failure> {
        let report = self.group.cancel(cancel_id)?;
        self.desk()?.house()?.tell(self.group.server_handle(), report);
        Ok(())
    }

    fn set_enable(&self, enable: i32) -> Result<(), Failure> {
        Ok(self.group.set_enabled(enable != 0)?)
    }

    fn get_enable(&self) -> Result<i32, Failure> {
        Ok(i32::from(self.group.is_enabled()?))
    }
}

impl IOPCAsyncIO3 for GroupObject {
    fn read_max_age(
        &self,
        items: &[u32],
        ages: &[u32],
        transaction: u32,
    ) -> Result<Success<(u32, Vec<i32>)>, Failure> {
        self.admit()?;
        self.begun(self.group.begin_read(items, ReadFrom::Ages(ages), transaction)?)
    }

    fn write_vqt(
        &self,
        items: &[u32],
        values: &[OPCITEMVQT],
        transaction: u32,
    ) -> Result<Success<(u32, Vec<i32>)>, Failure> {
        self.admit()?;
        let values: Vec<_> = values.iter().map(given_of).collect();
        self.begun(self.group.begin_write(items, &values, transaction)?)
    }

    fn refresh_max_age(&self, age: u32, transaction: u32) -> Result<u32, Failure> {
        self.admit()?;
        let cancel = self.group.begin_refresh(Refresh::MaxAge(age), transaction)?;
        self.perform(cancel)?;
        Ok(cancel)
    }
}

impl IOPCItemDeadbandMgt for GroupObject {
    fn set_item_deadband(
        &self,
        items: &[u32],
        percent_deadbands: &[f32],
    ) -> Result<Success<Vec<i32>>, Failure> {
        answer(&codes(self.group.set_deadbands(items, percent_deadbands)?), |errors| errors)
    }

    fn get_item_deadband(&self, items: &[u32]) -> Result<Success<(Vec<f32>, Vec<i32>)>, Failure> {
        let (deadbands, codes) = apart(self.group.deadbands(items)?, |deadband| deadband, || 0.0);
        answer(&codes, |errors| (deadbands, errors))
    }

    fn clear_item_deadband(&self, items: &[u32]) -> Result<Success<Vec<i32>>, Failure> {
        answer(&codes(self.group.clear_deadbands(items)?), |errors| errors)
    }
}

impl IOPCItemSamplingMgt for GroupObject {
    fn set_item_sampling_rate(
        &self,
        items: &[u32],
        requested_rates: &[u32],
    ) -> Result<Success<(Vec<u32>, Vec<i32>)>, Failure> {
        let set = self.group.set_sampling(items, requested_rates)?;
        let (rates, codes): (Vec<u32>, Vec<Code>) =
            set.into_iter().map(|set| set.unwrap_or_else(|code| (0, code))).unzip();
        answer(&codes, |errors| (rates, errors))
    }

    fn get_item_sampling_rate(&self, items: &[u32]) -> Result<Success<(Vec<u32>, Vec<i32>)>, Failure> {
        let (rates, codes) = apart(self.group.sampling(items)?, |rate| rate, || 0);
        answer(&codes, |errors| (rates, errors))
    }

    fn clear_item_sampling_rate(&self, items: &[u32]) -> Result<Success<Vec<i32>>, Failure> {
        answer(&codes(self.group.clear_sampling(items)?), |errors| errors)
    }

    fn set_item_buffer_enable(&self, items: &[u32], enable: &[i32]) -> Result<Success<Vec<i32>>, Failure> {
        let enable: Vec<_> = enable.iter().map(|enable| *enable != 0).collect();
        answer(&codes(self.group.set_buffered(items, &enable)?), |errors| errors)
    }

    fn get_item_buffer_enable(&self, items: &[u32]) -> Result<Success<(Vec<i32>, Vec<i32>)>, Failure> {
        let (enabled, codes) = apart(self.group.buffered(items)?, i32::from, || 0);
        answer(&codes, |errors| (enabled, errors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, GroupState, Settings, Table};

    #[test]
    fn who_listens_is_known_in_whatever_order_it_is_told() {
        let engine = Engine::new(Arc::new(Table::new()), Settings::default());
        let client = engine.client().expect("a client");
        let group = client.add_group(GroupState::default()).expect("a group");
        let (hearing, interface) = (Mutex::default(), <dyn IOPCDataCallback>::interface().id.to_string());
        let joined = |listener, listeners| {
            heard(&group, &hearing, &Audience::Joined { interface: interface.clone(), listener, listeners });
        };
        let left = |listener, listeners| {
            heard(&group, &hearing, &Audience::Left { interface: interface.clone(), listener, listeners });
        };
        joined(1, 1);
        joined(2, 2);
        assert_eq!(group.listeners(), 2);
        // The second to leave tells first.
        left(2, 0);
        left(1, 1);
        assert_eq!(group.listeners(), 0);
        left(3, 0);
        joined(3, 1);
        assert_eq!(group.listeners(), 0);
        joined(4, 1);
        assert_eq!(group.listeners(), 1);
    }
}
