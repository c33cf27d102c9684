//! The items that a group has: by slot, which their cells know, and by handle, which clients know.

use crate::cell::Cell;
use crate::data::{Data, VarType, Vqt};
use crate::item::Item;
use crate::share::Receipt;
use crate::{Code, Quality};
use slab::Slab;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// Handles are numbers that the engine counts: spread well enough as they are.
#[derive(Default)]
pub(super) struct HandleHasher(u64);

impl Hasher for HandleHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }

    fn write_u32(&mut self, number: u32) {
        // The table looks at the highest bits as well.
        self.0 = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Slots by handles.
type Handles = HashMap<u32, u32, BuildHasherDefault<HandleHasher>>;

/// The members of a group.
#[derive(Default)]
pub(super) struct Members {
    /// By slot. A slot is given out anew once its member has gone.
    slots: Slab<Member>,
    /// The same members by handle: a handle is here exactly while its slot is taken.
    handles: Handles,
    /// What all of them cost together, for the refund when the group ends.
    bytes: usize,
    /// How many have a source that does not tell changes.
    polled: usize,
}

/// An item of a group.
pub(super) struct Member {
    /// The server's number for it.
    pub(super) handle: u32,
    /// The client's number for it, which callbacks name.
    pub(super) client: u32,
    /// The item's cell, shared with all groups that have the item.
    pub(super) cell: Arc<Cell>,
    /// Its number at the cell.
    pub(super) watch: usize,
    /// By which way the client wanted it; only remembered.
    pub(super) access_path: String,
    /// The type in which its values are wanted; empty for its own.
    pub(super) requested: VarType,
    /// Whether its item may be read: asked at each read, so it is here.
    pub(super) is_readable: bool,
    /// Whether its changes are sent.
    pub(super) active: bool,
    /// A deadband of its own.
    pub(super) deadband: Option<f32>,
    /// A sampling rate of its own, in milliseconds.
    pub(super) sampling: Option<u32>,
    /// Samples between two updates are kept: what that costs of the client's quota.
    pub(super) buffer: Option<Receipt>,
    /// When it was last looked at, in ticks.
    pub(super) sampled: Option<u64>,
    /// What was last sent.
    pub(super) sent: Option<(Data, Quality)>,
    /// What it costs of the client's quota.
    pub(super) bytes: usize,
}

impl Member {
    pub(super) fn item(&self) -> &Arc<Item> {
        &self.cell.item
    }

    /// A value in the type that the client asked for.
    #[inline]
    pub(super) fn coerced(&self, value: Vqt) -> Result<Vqt, Code> {
        coerced(value, self.requested)
    }

    /// Whether a value is another one than was sent, by more than the deadband (OPC DA 2.05a, 4.5.1.6).
    pub(super) fn is_news(&self, value: &Vqt, percent: f32) -> bool {
        let Some((data, quality)) = &self.sent else { return true };
        if *quality != value.quality {
            return true;
        }
        let percent = self.deadband.unwrap_or(percent);
        if percent > 0.0
            && let Some(span) = self.cell.span()
            && let (Some(before), Some(now)) = (data.number(), value.data.number())
        {
            return (now - before).abs() > f64::from(percent) / 100.0 * span;
        }
        *data != value.data
    }
}

/// A value in the type that was asked for. What cannot be read in it is an error of the item.
#[inline]
pub(super) fn coerced(value: Vqt, requested: VarType) -> Result<Vqt, Code> {
    if requested == VarType::EMPTY { Ok(value) } else { converted(value, requested) }
}

/// The same where a type was asked for. What has no value yet stays without one, whatever the type.
fn converted(value: Vqt, requested: VarType) -> Result<Vqt, Code> {
    if value.data == Data::Empty {
        return Ok(value);
    }
    match value.data.coerce(requested) {
        Ok(data) => Ok(Vqt { data, ..value }),
        Err(Code::TYPE_MISMATCH | Code::BAD_VARTYPE) => Err(Code::BAD_TYPE),
        Err(code) => Err(code),
    }
}

impl Members {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a member, which `make` makes for the slot that it gets.
    pub(super) fn add(&mut self, make: impl FnOnce(u32) -> Option<Member>) -> Option<()> {
        let entry = self.slots.vacant_entry();
        let slot = u32::try_from(entry.key()).ok()?;
        let member = make(slot)?;
        self.handles.insert(member.handle, slot);
        self.bytes += member.bytes;
        self.polled += usize::from(member.cell.is_polled());
        entry.insert(member);
        Some(())
    }

    /// Takes a member out. Its cell is not told here, since that must not be done under the group's lock.
    pub(super) fn remove(&mut self, handle: u32) -> Result<Member, Code> {
        let slot = self.handles.remove(&handle).ok_or(Code::INVALID_HANDLE)?;
        let member = self.slots.try_remove(slot as usize).ok_or(Code::INVALID_HANDLE)?;
        self.bytes -= member.bytes;
        self.polled -= usize::from(member.cell.is_polled());
        Ok(member)
    }

    pub(super) fn get(&self, handle: u32) -> Result<&Member, Code> {
        let slot = self.handles.get(&handle).ok_or(Code::INVALID_HANDLE)?;
        self.slots.get(*slot as usize).ok_or(Code::INVALID_HANDLE)
    }

    /// The same; handles that come in the order in which their items were added are not looked for: `place` is where the last one was.
    #[inline]
    pub(super) fn seek(&self, handle: u32, place: &mut usize) -> Result<&Member, Code> {
        let next = *place + 1;
        if let Some(member) = self.slots.get(next).filter(|member| member.handle == handle) {
            *place = next;
            return Ok(member);
        }
        let slot = *self.handles.get(&handle).ok_or(Code::INVALID_HANDLE)? as usize;
        *place = slot;
        self.slots.get(slot).ok_or(Code::INVALID_HANDLE)
    }

    pub(super) fn get_mut(&mut self, handle: u32) -> Result<&mut Member, Code> {
        let slot = self.handles.get(&handle).ok_or(Code::INVALID_HANDLE)?;
        self.slots.get_mut(*slot as usize).ok_or(Code::INVALID_HANDLE)
    }

    pub(super) fn at_mut(&mut self, slot: u32) -> Option<&mut Member> {
        self.slots.get_mut(slot as usize)
    }

    /// All members, by slot.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.slots.iter().map(|(_, member)| member)
    }

    /// Those from a slot on, with their slots.
    pub(super) fn behind(&self, first: usize) -> impl Iterator<Item = (usize, &Member)> {
        // Slots are used anew, so none is far beyond the number of members that there once were.
        (first..self.slots.capacity()).filter_map(|slot| Some((slot, self.slots.get(slot)?)))
    }

    /// Whether any of them has to be read to be current.
    pub(super) fn is_polled(&self) -> bool {
        self.polled > 0
    }

    /// The cells that have to be read to be current.
    pub(super) fn polled(&self) -> Vec<Arc<Cell>> {
        if self.polled == 0 {
            return Vec::new();
        }
        let polled = |member: &&Member| member.active && member.cell.is_polled();
        self.iter().filter(polled).map(|member| Arc::clone(&member.cell)).collect()
    }

    /// The rate at which items are to be read, if that is faster than the group's.
    pub(super) fn fastest_poll(&self, rate: u32) -> u32 {
        if self.polled == 0 {
            return rate;
        }
        let polled =
            self.iter().filter(|member| member.active && member.buffer.is_some() && member.cell.is_polled());
        polled.filter_map(|member| member.sampling).fold(rate, u32::min)
    }

    /// All active members are new.
    pub(super) fn renew(&mut self) {
        for (_, member) in &mut self.slots {
            member.sent = None;
            member.sampled = None;
            if member.active {
                member.cell.mark(member.watch);
            }
        }
    }

    /// Lets go of all cells. Not under the group's lock: the source hears when nobody has an item any more.
    pub(super) fn let_go(self) {
        for (_, member) in self.slots {
            member.cell.unwatch(member.watch);
        }
    }
}
