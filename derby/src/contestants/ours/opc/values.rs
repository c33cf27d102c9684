//! The items of the race, and how a reader knows that a value, its time and its quality belong together.
//!
//! Invariant: the value of an item is made of its number and of the time of the value, so that each of the three tells the other two.

use crate::broken;
use everywire::Failure;
use everywire_opc::contract::{FILETIME, OPCITEMSTATE};
use everywire_opc::{Data, FileTime, Quality, Vqt};

/// Items that are read.
pub(in crate::contestants) const ITEMS: u32 = 100;
/// Groups of exception mode.
pub(super) const GROUPS: u32 = 10;
/// Items of each.
pub(super) const OF_A_GROUP: u32 = 10_000;

/// The name of an item that is read.
pub(in crate::contestants) fn id(number: u32) -> String {
    format!("Line.Item{number:03}")
}

/// The name of an item of exception mode.
pub(super) fn line(number: u32) -> String {
    format!("Plant.P{number:05}")
}

/// How many hundredths of those change each second: written by the client.
pub(super) const CHANGING: &str = "Control.Changing";

/// Ticks of a FILETIME in a millisecond.
const MILLISECOND: u64 = 10_000;

/// Now, in whole milliseconds: what other protocols have as time is not finer.
pub(super) fn now() -> FileTime {
    let now = FileTime::now();
    FileTime(now.0 - now.0 % MILLISECOND)
}

/// The value that an item has of this time: a whole number that a float holds exactly.
#[allow(clippy::cast_precision_loss)]
pub(super) fn value(number: u32, time: FileTime) -> f32 {
    let ms = time.0 / MILLISECOND % 100_000;
    (number % ITEMS + 1) as f32 * 100_000.0 + ms as f32
}

/// The same with its time, of good quality.
pub(super) fn vqt(number: u32, time: FileTime) -> Vqt {
    Vqt { data: Data::R4(value(number, time)), quality: Quality::GOOD, time }
}

/// What a reader has seen.
#[derive(Default)]
pub(super) struct ReaderState {
    times: Vec<FileTime>,
    /// Values that were another one than the time before.
    pub(super) changes: u64,
}

impl ReaderState {
    /// Of so many items.
    pub(super) fn new(items: u32) -> Self {
        Self { times: vec![FileTime::default(); usize::try_from(items).unwrap_or(0)], changes: 0 }
    }

    /// Takes a look at what was read.
    ///
    /// # Errors
    /// Something of it is wrong.
    pub(super) fn read(&mut self, states: &[OPCITEMSTATE], errors: &[i32]) -> Result<(), Failure> {
        if states.len() != self.times.len() || errors.len() != self.times.len() {
            return Err(short(states.len(), errors.len(), self.times.len()));
        }
        for ((state, error), (number, last)) in states.iter().zip(errors).zip((0..).zip(&mut self.times)) {
            let time = time_of(&state.timestamp);
            let found = match Data::from_variant(&state.value) {
                Ok(Data::R4(value)) if *error == 0 && state.client == number => value,
                _ => return Err(wrong(number, &format!("{state:?} with code {error:#x}"))),
            };
            self.changes += look(number, found, Quality(state.quality), time, last)?;
        }
        Ok(())
    }

    /// The same of what the engine says without a wire.
    ///
    /// # Errors
    /// Something of it is wrong.
    pub(super) fn one(&mut self, number: u32, value: &Vqt) -> Result<(), Failure> {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let (Data::R4(found), Some(last)) = (&value.data, self.times.get_mut(index)) else {
            return Err(wrong(number, &format!("{value:?}")));
        };
        self.changes += look(number, *found, value.quality, value.time, last)?;
        Ok(())
    }
}

/// Checks one value: 1 if it is another one than the last.
///
/// # Errors
/// Quality is not good, time goes back, or the value is not that of its item and time.
#[inline]
fn look(
    number: u32,
    found: f32,
    quality: Quality,
    time: FileTime,
    last: &mut FileTime,
) -> Result<u64, Failure> {
    let is_new = time != *last;
    #[allow(clippy::float_cmp)]
    let fits = quality == Quality::GOOD && time >= *last && (!is_new || found == value(number, time));
    if !fits {
        return Err(wrong(number, &format!("{found} {quality:?} at {time:?} after {last:?}")));
    }
    *last = time;
    Ok(u64::from(is_new))
}

/// A value of exception mode; how long ago it was set, in picoseconds.
///
/// # Errors
/// It is wrong.
pub(super) fn heard(
    number: u32,
    found: &Data,
    quality: u16,
    time: FileTime,
    now: FileTime,
) -> Result<u64, Failure> {
    #[allow(clippy::float_cmp)]
    let fits = matches!(found, Data::R4(found) if *found == value(number, time))
        && Quality(quality) == Quality::GOOD;
    if !fits {
        return Err(wrong(number, &format!("{found:?} {quality:#x} at {time:?}")));
    }
    Ok(u64::try_from(now.since(time).as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000))
}

/// A time as it travels.
pub(super) fn time_of(time: &FILETIME) -> FileTime {
    FileTime(u64::from(time.dw_high_date_time) << 32 | u64::from(time.dw_low_date_time))
}

/// A value that does not belong to its item.
#[cold]
fn wrong(number: u32, what: &str) -> Failure {
    broken(format!("the value of item {number} is wrong: {what}"))
}

/// Not as many values as were asked for.
#[cold]
fn short(states: usize, errors: usize, items: usize) -> Failure {
    broken(format!("{states} values and {errors} codes came for {items} items"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::Variant;

    fn state(client: u32, time: u64, value: f32, quality: u16) -> OPCITEMSTATE {
        let timestamp = FILETIME { dw_low_date_time: time as u32, dw_high_date_time: (time >> 32) as u32 };
        OPCITEMSTATE { client, timestamp, quality, reserved: 0, value: Variant::from(value) }
    }

    #[test]
    fn a_value_tells_its_item_and_its_time() {
        let time = now();
        for number in [0, 1, 99] {
            let found = value(number, time);
            assert!(found < 16_777_216.0 && found.fract() == 0.0, "{found}");
            assert_ne!(found, value(number + 1, time));
            assert_ne!(found, value(number, FileTime(time.0 + MILLISECOND)));
        }
    }

    #[test]
    fn what_does_not_belong_together_is_seen() {
        let time = now();
        let later = FileTime(time.0 + MILLISECOND);
        let mut seen = ReaderState::new(1);
        let good = Quality::GOOD.0;
        seen.read(&[state(0, time.0, value(0, time), good)], &[0]).unwrap();
        seen.read(&[state(0, time.0, value(0, time), good)], &[0]).unwrap();
        assert_eq!(seen.changes, 1);
        for (what, states, errors) in [
            ("the value of another time", vec![state(0, later.0, value(0, time), good)], vec![0]),
            ("the value of another item", vec![state(0, later.0, value(1, later), good)], vec![0]),
            ("another item", vec![state(1, later.0, value(0, later), good)], vec![0]),
            (
                "a time that goes back",
                vec![state(0, time.0 - MILLISECOND, value(0, FileTime(time.0 - MILLISECOND)), good)],
                vec![0],
            ),
            ("bad quality", vec![state(0, later.0, value(0, later), 24)], vec![0]),
            ("a code", vec![state(0, later.0, value(0, later), good)], vec![-1]),
            ("too few", vec![], vec![]),
            ("no codes", vec![state(0, later.0, value(0, later), good)], vec![]),
        ] {
            assert!(seen.read(&states, &errors).is_err(), "{what}");
        }
        seen.one(0, &vqt(0, later)).unwrap();
        assert!(seen.one(0, &vqt(1, FileTime(later.0 + MILLISECOND))).is_err());
        assert!(seen.one(1, &vqt(1, later)).is_err());
        assert_eq!(seen.changes, 2);
    }

    #[test]
    fn what_is_heard_is_looked_at_too() {
        let time = now();
        let value = Data::R4(value(7, time));
        let now = FileTime(time.0 + 5 * MILLISECOND);
        assert_eq!(heard(7, &value, Quality::GOOD.0, time, now).unwrap(), 5_000_000_000);
        assert!(heard(8, &value, Quality::GOOD.0, time, now).is_err());
        assert!(heard(7, &value, 0, time, now).is_err());
    }
}
