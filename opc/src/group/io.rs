//! Reads and writes of a group's items, from the cache and from the source (IOPCSyncIO, IOPCSyncIO2).
//!
//! Three ways a value comes (`ReadFrom`):
//! * from the cache: under the group's lock, which nobody holds for long; the frequent types of number
//!   without the lock of their cells. What is not active is `OUT_OF_SERVICE`; what is older than the group's rate, since nobody listens
//!   and the source does not tell changes, is read anew before;
//! * from the device: the source is asked without any lock, for all items of the call at once, active or not;
//! * by age: each item from its cell if what that has is young enough, and all others from the source
//!   together. An age of 0 is the device.
//!
//! Invariants.
//! * There is an answer for each item that was named, in their order, whatever was wrong with others.
//! * A value that was read of an item whose source does not tell changes becomes the cell's, so that all
//!   groups see it.
//! * What is written is converted to the item's own type first, and what does not fit is not passed to the
//!   source. The source has its writes in the order of the call.
//! * If a whole call fails, the room that the caller lent is empty.
//!
//! Bounds. What is shared here and copied into an answer, texts and arrays, is no more than an answer may
//! hold (`Quotas::answer`); items beyond that are refused one by one with `Code::OUT_OF_MEMORY`. OPC DA
//! 2.05a, 4.5.

use super::Group;
use super::items::{ItemResults, at, paired, some};
use super::member::{Member, coerced};
use crate::cell::Cell;
use crate::data::{VarType, Vqt};
use crate::item::{Access, Item};
use crate::packed_vqt::{PackedVqt, kind_of};
use crate::source::Write;
use crate::time::{FileTime, Moment};
use crate::{Code, Data, Quality};
use std::sync::Arc;

/// Where values are taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom<'a> {
    /// The cache: the last value, and that an item is not active.
    Cache,
    /// The source, active or not.
    Device,
    /// The cache where it is no older than so many milliseconds, item by item; else the source.
    Ages(&'a [u32]),
}

/// A value as a client gets it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The server's number for the item.
    pub server: u32,
    /// The client's number for the item.
    pub client: u32,
    /// Value, quality and time.
    pub value: Vqt,
    /// How it went: [`Code::OK`], or what is to be known of it.
    pub error: Code,
}

/// A value as a client gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteVqt {
    /// The value, of any type; [`Data::Empty`] where only quality or time are to be written.
    pub data: Data,
    /// The quality that is to go with it.
    pub quality: Option<Quality>,
    /// The time that is to go with it.
    pub time: Option<FileTime>,
}

impl From<Data> for WriteVqt {
    fn from(data: Data) -> Self {
        Self { data, quality: None, time: None }
    }
}

/// What is asked of the source: where the answer belongs, and in which type.
struct DeviceRead {
    /// Place of the item in the call.
    index: usize,
    /// Its cell, and by that its item.
    cell: Arc<Cell>,
    /// The server's number for it, for the sample.
    server: u32,
    /// The client's number for it.
    client: u32,
    /// The type that the client wants, which may have been set anew until the source answers.
    requested: VarType,
}

impl Group {
    /// Reads items, each by itself.
    ///
    /// # Errors
    /// The group was removed, or not as many ages as items; of each item [`Code::INVALID_HANDLE`], [`Code::BAD_RIGHTS`],
    /// [`Code::BAD_TYPE`], what the source says, and [`Code::OUT_OF_MEMORY`]: the texts and arrays before it are as large as an answer may be
    /// ([`crate::Quotas::answer`]).
    pub fn read(
        &self,
        items: &[u32],
        from: ReadFrom<'_>,
        now: Moment,
    ) -> Result<Vec<Result<Sample, Code>>, Code> {
        let mut samples = Vec::new();
        self.read_into(items, from, now, &mut samples)?;
        Ok(samples)
    }

    /// The same into room that is used again and again: for whoever reads often.
    ///
    /// # Errors
    /// As [`Group::read`].
    pub fn read_into(
        &self,
        items: &[u32],
        from: ReadFrom<'_>,
        now: Moment,
        samples: &mut Vec<Result<Sample, Code>>,
    ) -> Result<(), Code> {
        let read = some(items).and_then(|()| {
            if from == ReadFrom::Cache {
                return self.read_cached(items, now, samples);
            }
            *samples = self.read_recent(items, from, now)?;
            bound(samples, self.engine.settings.quotas.answer, |sample| &sample.value.data);
            Ok(())
        });
        if read.is_err() {
            samples.clear();
        }
        read
    }

    /// Has the cache no older than the group's rate where nobody listens, so that no update reads the source (OPC DA 2.05a, 4.5.4.1); and
    /// of a group that sends, where the first update has not been.
    fn renew(&self, items: &[u32], now: Moment) -> Result<(), Code> {
        let (age, cells): (u64, Vec<_>) = {
            let inner = self.inner()?;
            // Whoever reads at the rate gets something new each time.
            let age = if inner.sends() { u64::MAX } else { u64::from(inner.state.rate).saturating_sub(1) };
            let members = items.iter().filter_map(|item| inner.members.get(*item).ok());
            let active = members.filter(|member| member.active && member.is_readable);
            (age, active.map(|member| Arc::clone(&member.cell)).collect())
        };
        let is_stale = |cell: &Arc<Cell>| cell.is_polled() && cell.value_of_age(age, now.ticks).is_none();
        self.read_stale(cells.into_iter().filter(is_stale), now);
        Ok(())
    }

    /// Reads the cache: one item after the other, without anything between.
    fn read_cached(
        &self,
        items: &[u32],
        now: Moment,
        samples: &mut Vec<Result<Sample, Code>>,
    ) -> Result<(), Code> {
        let mut inner = self.inner()?;
        if inner.state.active && inner.members.is_polled() {
            drop(inner);
            self.renew(items, now)?;
            inner = self.inner()?;
        }
        let (active, most) = (inner.state.active, self.engine.settings.quotas.answer);
        let (mut place, mut heap) = (usize::MAX - 1, 0_usize);
        samples.truncate(items.len());
        samples.resize_with(items.len(), || Err(Code::FAIL));
        for (item, to) in items.iter().zip(samples.iter_mut()) {
            let member = match inner.members.seek(*item, &mut place) {
                Ok(member) => member,
                Err(code) => {
                    *to = Err(code);
                    continue;
                }
            };
            // The most frequent types go from the cell to their places part by part: a value that is put together elsewhere and copied as a
            // whole has the processor wait until all of its parts are in memory, which takes longer than all the rest.
            macro_rules! put {
                ($packed:expr, $data:expr) => {{
                    let (client, PackedVqt { quality, time, .. }) = (member.client, $packed);
                    if let Ok(sample) = to {
                        (sample.server, sample.client, sample.error) = (*item, client, Code::OK);
                        sample.value.data = $data;
                        (sample.value.quality, sample.value.time) = (quality, time);
                    } else {
                        let value = Vqt { data: $data, quality, time };
                        *to = Ok(Sample { server: *item, client, value, error: Code::OK });
                    }
                    continue;
                }};
            }
            let is_plain =
                member.is_readable && active && member.active && member.requested == VarType::EMPTY;
            if let Some(packed) = member.cell.packed().filter(|_| is_plain) {
                // The bits are those of the kind.
                #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
                match packed.kind {
                    R4 => put!(packed, Data::R4(f32::from_bits(packed.bits as u32))),
                    R8 => put!(packed, Data::R8(f64::from_bits(packed.bits))),
                    I4 => put!(packed, Data::I4(packed.bits as i32)),
                    I2 => put!(packed, Data::I2(packed.bits as i16)),
                    BOOL => put!(packed, Data::Bool(packed.bits != 0)),
                    _ => {}
                }
            }
            *to = held(member, *item, active).and_then(|sample| {
                let more = sample.value.data.heap();
                heap = heap.saturating_add(more);
                if heap > most && more > 0 { Err(Code::OUT_OF_MEMORY) } else { Ok(sample) }
            });
        }
        Ok(())
    }

    /// Reads what is not simply the cache: those young enough from their cells, the rest from the source.
    fn read_recent(
        &self,
        items: &[u32],
        from: ReadFrom<'_>,
        now: Moment,
    ) -> Result<Vec<Result<Sample, Code>>, Code> {
        if let ReadFrom::Ages(ages) = from {
            paired(items, ages)?;
        }
        let mut asked = Vec::new();
        let mut samples = {
            let inner = self.inner()?;
            let active = inner.state.active;
            let mut read = |index: usize, item: u32| {
                let member = inner.members.get(item)?;
                if !member.is_readable {
                    return Err(Code::BAD_RIGHTS);
                }
                let held = match from {
                    ReadFrom::Cache => Some(cached(member, active)),
                    ReadFrom::Device => None,
                    ReadFrom::Ages(ages) => match at(ages, index)? {
                        0 => None,
                        age => member.cell.value_of_age(age.into(), now.ticks),
                    },
                };
                let Some(value) = held else {
                    let Member { client, requested, cell, .. } = member;
                    asked.push(DeviceRead {
                        index,
                        cell: Arc::clone(cell),
                        server: item,
                        client: *client,
                        requested: *requested,
                    });
                    return Err(Code::FAIL);
                };
                let value = member.coerced(value)?;
                Ok(Sample { server: item, client: member.client, value, error: Code::OK })
            };
            items.iter().enumerate().map(|(index, item)| read(index, *item)).collect::<Vec<_>>()
        };
        if !asked.is_empty() {
            self.ask(asked, &mut samples, now);
        }
        Ok(samples)
    }

    /// Reads from the source, without any lock.
    fn ask(&self, asked: Vec<DeviceRead>, samples: &mut [Result<Sample, Code>], now: Moment) {
        let items: Vec<_> = asked.iter().map(|asked| Arc::clone(&asked.cell.item)).collect();
        let mut values = self.engine.source.read(&items).into_iter();
        for DeviceRead { index, cell, server, client, requested } in asked {
            let value = values.next().unwrap_or(Err(Code::FAIL));
            if let (Ok(value), true) = (&value, cell.is_polled()) {
                cell.tell_read(value.clone(), now);
            }
            let sample = value.and_then(|value| {
                Ok(Sample { server, client, value: coerced(value, requested)?, error: Code::OK })
            });
            if let Some(place) = samples.get_mut(index) {
                *place = sample;
            }
        }
    }

    /// Writes items, in their order. The codes are those of [`crate::Source::write`], or why an item is not asked at all.
    ///
    /// # Errors
    /// The group was removed, or there are not as many values as items.
    pub fn write(&self, items: &[u32], values: &[WriteVqt]) -> Result<Vec<Code>, Code> {
        some(items)?;
        paired(items, values)?;
        let mut codes = Vec::with_capacity(items.len());
        let mut writes = Vec::new();
        // The source is asked without the lock.
        for (item, given) in self.items_now(items)?.into_iter().zip(values) {
            match item.and_then(|item| write_to(&item, given)) {
                Ok(write) => {
                    codes.push(None);
                    writes.push(write);
                }
                Err(code) => codes.push(Some(code)),
            }
        }
        let mut written =
            if writes.is_empty() { Vec::new() } else { self.engine.source.write(&writes) }.into_iter();
        Ok(codes.into_iter().map(|code| code.or_else(|| written.next()).unwrap_or(Code::FAIL)).collect())
    }

    /// Items of the group as their source describes them now.
    pub(super) fn items_now(&self, items: &[u32]) -> ItemResults<Arc<Item>> {
        let held: Vec<_> = {
            let inner = self.inner()?;
            items
                .iter()
                .map(|item| inner.members.get(*item).map(|member| Arc::clone(member.item())))
                .collect()
        };
        let source = &self.engine.source;
        Ok(held.into_iter().map(|held| held.map(|item| source.current(&item))).collect())
    }

    /// Active items and the group's activity, for Refresh2: the handles of those that are to be sent.
    pub(super) fn active_items(&self) -> Result<Vec<u32>, Code> {
        let inner = self.inner()?;
        if !inner.state.active {
            return Err(Code::FAIL);
        }
        let active: Vec<_> =
            inner.members.iter().filter(|member| member.active).map(|member| member.handle).collect();
        if active.is_empty() { Err(Code::FAIL) } else { Ok(active) }
    }
}

// Kinds of `PackedVqt` as constants, so that they can stand in patterns.
const R4: u16 = kind_of(VarType::R4);
const R8: u16 = kind_of(VarType::R8);
const I4: u16 = kind_of(VarType::I4);
const I2: u16 = kind_of(VarType::I2);
const BOOL: u16 = kind_of(VarType::BOOL);

/// What the cache has of an item.
fn held(member: &Member, server: u32, group_is_active: bool) -> Result<Sample, Code> {
    if !member.is_readable {
        return Err(Code::BAD_RIGHTS);
    }
    let value = member.coerced(cached(member, group_is_active))?;
    Ok(Sample { server, client: member.client, value, error: Code::OK })
}

/// Answers stay within what may be held for one: texts and arrays are shared here, and are copied for each item that an answer names.
pub(crate) fn bound<T>(values: &mut [Result<T, Code>], most: usize, data: impl Fn(&T) -> &Data) {
    let mut held = 0_usize;
    for place in values {
        let more = place.as_ref().map_or(0, |value| data(value).heap());
        held = held.saturating_add(more);
        if more > 0 && held > most {
            *place = Err(Code::OUT_OF_MEMORY);
        }
    }
}

/// The last value; of an item that is not active, the quality says so (OPC DA 2.05a, 4.5.4.1).
#[inline]
fn cached(member: &Member, group_is_active: bool) -> Vqt {
    let mut value = member.cell.value();
    if !(member.active && group_is_active) {
        value.quality = Quality::OUT_OF_SERVICE;
    }
    value
}

/// What the source is given for what a client gives. No value (VT_EMPTY) is none that could be converted, and does not become 0: with it
/// a client writes quality or time alone (OPC DA 3.0, IOPCSyncIO2::WriteVQT: a client may write any combination of the three).
pub(crate) fn write_to(item: &Arc<Item>, given: &WriteVqt) -> Result<Write, Code> {
    if !item.access.allows(Access::WRITE) {
        return Err(Code::BAD_RIGHTS);
    }
    let has_more = given.quality.is_some() || given.time.is_some();
    let data = match given.data.coerce(item.canonical) {
        _ if given.data == Data::Empty && has_more => Data::Empty,
        _ if given.data == Data::Empty => return Err(Code::BAD_TYPE),
        Ok(data) => data,
        Err(Code::OVERFLOW) => return Err(Code::RANGE),
        Err(_) => return Err(Code::BAD_TYPE),
    };
    Ok(Write { item: Arc::clone(item), data, quality: given.quality, time: given.time })
}
