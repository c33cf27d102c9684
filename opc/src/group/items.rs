//! The items of a group: added, removed, and how each is set (IOPCItemMgt, IOPCItemDeadbandMgt,
//! IOPCItemSamplingMgt).
//!
//! An item in a group is a `Member`. It comes by `add_items` or `copy_items`, goes by `remove_items` or with
//! its group, and is in between:
//! * active or not: only active ones are sent. One that becomes active is new, so its value is sent whatever
//!   was sent before;
//! * with the group's deadband and rate, or with its own (`set_deadbands`, `set_sampling`) until that is
//!   cleared;
//! * buffered or not: then the samples between two updates are kept at its cell, and room for a full buffer
//!   is charged at once.
//!
//! Invariants.
//! * Each method answers for each item by itself, in the order in which they were given. No items at all, or
//!   lists of different lengths, are an error of the call (`Code::INVALID_ARGUMENT`).
//! * An item is charged to its client before it is made, and given back when it is removed or its group ends:
//!   never both.
//! * The source is asked without the group's lock: it may tell values meanwhile. So a group may end while
//!   items are added; those that come too late are refunded and refused.
//! * Handles come from the engine and are those of no other group, until 2^32 were given out: so a handle of
//!   another group is `Code::INVALID_HANDLE` here.
//!
//! Bounds. `Quotas::items` and `Quotas::bytes` of the client, `Quotas::buffer` samples for each item. OPC DA
//! 2.05a, 4.5.

use super::member::Member;
use super::{Group, Inner};
use crate::data::{VarType, Vqt};
use crate::item::{Access, Item};
use crate::properties;
use crate::time::Moment;
use crate::{Code, Data};
use std::sync::Arc;

/// An item that a client wants to have in a group (OPCITEMDEF).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ItemDef {
    /// Its name in full.
    pub id: String,
    /// By which way it is to be reached; empty if the source may choose.
    pub access_path: String,
    /// Whether its changes are sent.
    pub active: bool,
    /// The client's number for it.
    pub client: u32,
    /// The type in which its values are wanted; [`VarType::EMPTY`] for its own.
    pub requested: VarType,
}

/// What a client is told of an item (OPCITEMRESULT).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemResult {
    /// The server's number for it; 0 if it was only looked at.
    pub server: u32,
    /// Its own type.
    pub canonical: VarType,
    /// What may be done with it.
    pub access: Access,
}

/// How an item of a group is set (OPCITEMATTRIBUTES).
#[derive(Debug, Clone, PartialEq)]
pub struct Attributes {
    /// What it was added as.
    pub def: ItemDef,
    /// The server's number for it.
    pub server: u32,
    /// Its own type.
    pub canonical: VarType,
    /// What may be done with it.
    pub access: Access,
    /// OPCEUTYPE.
    pub eu_type: u16,
    /// What goes with that.
    pub eu_info: Data,
}

/// One answer for each item.
pub(super) type ItemResults<T> = Result<Vec<Result<T, Code>>, Code>;

impl Group {
    /// Whether items could be added.
    ///
    /// # Errors
    /// The group was removed, or no item is asked for ([`Code::INVALID_ARGUMENT`], so for all methods here); of each item: [`Code::UNKNOWN_ITEM`], [`Code::INVALID_ITEM`], [`Code::UNKNOWN_PATH`],
    /// [`Code::BAD_TYPE`].
    pub fn validate_items(&self, defs: &[ItemDef]) -> ItemResults<ItemResult> {
        some(defs)?;
        drop(self.inner()?);
        Ok(defs.iter().map(|def| self.validate(def).map(|item| added(&item, 0))).collect())
    }

    /// The item of a definition, if it is there and its values can be had as they are wanted.
    fn validate(&self, def: &ItemDef) -> Result<Arc<Item>, Code> {
        if def.id.is_empty() {
            return Err(Code::INVALID_ITEM);
        }
        let source = &self.engine.source;
        let item = source.find(&def.id).ok_or(Code::UNKNOWN_ITEM)?;
        if !def.access_path.is_empty() && !source.access_paths(&item.id).contains(&def.access_path) {
            return Err(Code::UNKNOWN_PATH);
        }
        check_type(&item, def.requested)?;
        Ok(item)
    }

    /// Adds items; the same one may be added again, under another handle.
    ///
    /// # Errors
    /// As [`Group::validate_items`]; of each item [`Code::OUT_OF_MEMORY`]: the client has as many as it may have.
    pub fn add_items(&self, defs: &[ItemDef], now: Moment) -> ItemResults<ItemResult> {
        some(defs)?;
        drop(self.inner()?);
        // The source is asked without the lock.
        defs.iter().map(|def| Ok(self.validate(def).and_then(|item| self.add(&item, def, now)))).collect()
    }

    /// Adds one item, which the source knows. The lock of the group is taken at the very end only.
    fn add(&self, item: &Arc<Item>, def: &ItemDef, now: Moment) -> Result<ItemResult, Code> {
        let bytes = size_of::<Member>() + def.id.len() + def.access_path.len();
        self.share.charge(&self.engine, bytes)?;
        let cell = self.engine.cell(item, now.time);
        let mut inner = match self.inner() {
            Ok(inner) => inner,
            Err(code) => {
                self.share.refund(1, bytes);
                return Err(code);
            }
        };
        let handle = self.engine.fresh_handle(|handle| inner.members.get(handle).is_ok());
        let make = |slot| {
            let watch = cell.watch(&self.dirty, slot);
            if def.active {
                cell.mark(watch);
            }
            Some(Member {
                handle,
                client: def.client,
                cell,
                watch,
                access_path: def.access_path.clone(),
                requested: def.requested,
                is_readable: item.access.allows(Access::READ),
                active: def.active,
                deadband: None,
                sampling: None,
                buffer: None,
                sampled: None,
                sent: None,
                bytes,
            })
        };
        if inner.members.add(make).is_none() {
            drop(inner);
            self.share.refund(1, bytes);
            return Err(Code::OUT_OF_MEMORY);
        }
        Ok(added(item, handle))
    }

    /// Copies all items into another group, with handles of their own.
    pub(crate) fn copy_items(&self, to: &Self) -> Result<(), Code> {
        let copies: Vec<_> = {
            let inner = self.inner()?;
            let copy = |member: &Member| (Arc::clone(member.item()), def_of(member), member.deadband);
            inner.members.iter().map(copy).collect()
        };
        for (item, def, deadband) in copies {
            let added = to.add(&item, &def, Moment::default())?;
            to.inner()?.members.get_mut(added.server)?.deadband = deadband;
        }
        Ok(())
    }

    /// Removes items.
    ///
    /// # Errors
    /// Of each item [`Code::INVALID_HANDLE`]. So for all methods that take handles.
    pub fn remove_items(&self, items: &[u32]) -> ItemResults<()> {
        some(items)?;
        let removed: Vec<_> = {
            let mut inner = self.inner()?;
            items.iter().map(|item| inner.members.remove(*item)).collect()
        };
        // Not under the lock: the source hears when nobody has an item any more.
        let let_go = |member: Member| {
            member.cell.unwatch(member.watch);
            self.share.refund(1, member.bytes);
        };
        Ok(removed.into_iter().map(|member| member.map(let_go)).collect())
    }

    /// Does something to each member.
    fn each<T>(
        &self,
        items: &[u32],
        mut deed: impl FnMut(&mut Member, usize) -> Result<T, Code>,
    ) -> ItemResults<T> {
        some(items)?;
        let mut inner = self.inner()?;
        let Inner { members, .. } = &mut *inner;
        let each = items.iter().enumerate();
        Ok(each.map(|(index, item)| members.get_mut(*item).and_then(|member| deed(member, index))).collect())
    }

    /// Whether changes of items are sent. One that begins to be is new.
    ///
    /// # Errors
    /// As [`Group::remove_items`].
    pub fn set_active(&self, items: &[u32], active: bool) -> ItemResults<()> {
        self.each(items, |member, _| {
            if active && !member.active {
                member.sent = None;
                member.cell.mark(member.watch);
            }
            member.active = active;
            Ok(())
        })
    }

    /// Gives items other numbers of the client's.
    ///
    /// # Errors
    /// As [`Group::remove_items`]; [`Code::INVALID_ARGUMENT`]: not as many numbers as items.
    pub fn set_client_handles(&self, items: &[u32], client: &[u32]) -> ItemResults<()> {
        paired(items, client)?;
        self.each(items, |member, index| {
            member.client = at(client, index)?;
            Ok(())
        })
    }

    /// Asks for other types.
    ///
    /// # Errors
    /// As [`Group::set_client_handles`]; of each item [`Code::BAD_TYPE`]: its values cannot be of that type.
    pub fn set_types(&self, items: &[u32], types: &[VarType]) -> ItemResults<()> {
        paired(items, types)?;
        let now = self.items_now(items)?;
        self.each(items, |member, index| {
            let requested = at(types, index)?;
            check_type(
                now.get(index).and_then(|item| item.as_ref().ok()).unwrap_or_else(|| member.item()),
                requested,
            )?;
            member.requested = requested;
            Ok(())
        })
    }

    /// How items are set, from the `skip`th on, at most `most`.
    ///
    /// # Errors
    /// As [`Group::state`].
    pub fn attributes(&self, skip: usize, most: usize) -> Result<Vec<Attributes>, Code> {
        let found = {
            let inner = self.inner()?;
            inner.members.iter().skip(skip).take(most).map(attributes).collect()
        };
        Ok(self.as_described(found))
    }

    /// The same for at most `most` of those behind a place, and the place of the last; 0 is before the first. Whoever walks all of them
    /// so holds none, however many there are.
    ///
    /// # Errors
    /// As [`Group::state`].
    pub fn attributes_behind(&self, place: usize, most: usize) -> Result<(Vec<Attributes>, usize), Code> {
        let (mut found, mut last) = (Vec::new(), place);
        let inner = self.inner()?;
        for (slot, member) in inner.members.behind(place).take(most) {
            found.push(attributes(member));
            last = slot + 1;
        }
        drop(inner);
        Ok((self.as_described(found), last))
    }

    /// What of attributes is the source's to say, as it says it now. It is asked without the lock.
    fn as_described(&self, found: Vec<(Attributes, Arc<Item>)>) -> Vec<Attributes> {
        let as_described = |(attributes, item): (Attributes, Arc<Item>)| {
            let item = self.engine.source.current(&item);
            Attributes {
                canonical: item.canonical,
                access: item.access,
                eu_type: properties::eu_type(&item),
                eu_info: properties::eu_info(&item),
                ..attributes
            }
        };
        found.into_iter().map(as_described).collect()
    }

    /// How many items it has.
    ///
    /// # Errors
    /// As [`Group::state`].
    pub fn count(&self) -> Result<usize, Code> {
        Ok(self.inner()?.members.len())
    }

    /// Gives items deadbands of their own, in percent.
    ///
    /// # Errors
    /// As [`Group::set_client_handles`]; of each item [`Code::DEADBAND_NOT_SUPPORTED`]: it has no range;
    /// [`Code::INVALID_ARGUMENT`]: no percentage.
    pub fn set_deadbands(&self, items: &[u32], percent: &[f32]) -> ItemResults<()> {
        paired(items, percent)?;
        self.each(items, |member, index| {
            let percent = at(percent, index)?;
            if member.cell.span().is_none() {
                return Err(Code::DEADBAND_NOT_SUPPORTED);
            }
            if !(0.0..=100.0).contains(&percent) {
                return Err(Code::INVALID_ARGUMENT);
            }
            member.deadband = Some(percent);
            Ok(())
        })
    }

    /// The deadbands that items have of their own.
    ///
    /// # Errors
    /// Of each item [`Code::DEADBAND_NOT_SET`], [`Code::DEADBAND_NOT_SUPPORTED`].
    pub fn deadbands(&self, items: &[u32]) -> ItemResults<f32> {
        self.each(items, |member, _| match member.cell.span() {
            Some(_) => member.deadband.ok_or(Code::DEADBAND_NOT_SET),
            None => Err(Code::DEADBAND_NOT_SUPPORTED),
        })
    }

    /// Items have the group's deadband again.
    ///
    /// # Errors
    /// As [`Group::deadbands`].
    pub fn clear_deadbands(&self, items: &[u32]) -> ItemResults<()> {
        self.each(items, |member, _| match member.cell.span() {
            Some(_) => member.deadband.take().map(drop).ok_or(Code::DEADBAND_NOT_SET),
            None => Err(Code::DEADBAND_NOT_SUPPORTED),
        })
    }

    /// Gives items sampling rates of their own. Those that are used, and [`Code::UNSUPPORTED_RATE`] where it is another one.
    ///
    /// # Errors
    /// As [`Group::set_client_handles`].
    pub fn set_sampling(&self, items: &[u32], rates: &[u32]) -> ItemResults<(u32, Code)> {
        paired(items, rates)?;
        let room = self.engine.settings.quotas.buffer;
        self.each(items, |member, index| {
            let asked = at(rates, index)?;
            let rate = self.engine.revised(asked);
            member.sampling = Some(rate);
            if member.buffer.is_some() {
                member.cell.buffer(member.watch, Some(rate), room);
            }
            Ok((rate, if rate == asked { Code::OK } else { Code::UNSUPPORTED_RATE }))
        })
    }

    /// The sampling rates that items have of their own.
    ///
    /// # Errors
    /// Of each item [`Code::RATE_NOT_SET`].
    pub fn sampling(&self, items: &[u32]) -> ItemResults<u32> {
        self.each(items, |member, _| member.sampling.ok_or(Code::RATE_NOT_SET))
    }

    /// Items are sampled at the group's rate again, and are not buffered.
    ///
    /// # Errors
    /// As [`Group::sampling`].
    pub fn clear_sampling(&self, items: &[u32]) -> ItemResults<()> {
        self.each(items, |member, _| {
            member.sampling.take().ok_or(Code::RATE_NOT_SET)?;
            member.buffer = None;
            member.cell.buffer(member.watch, None, 0);
            Ok(())
        })
    }

    /// Whether samples between two updates are kept and sent together.
    ///
    /// # Errors
    /// As [`Group::set_client_handles`]; of each item [`Code::OUT_OF_MEMORY`]: the client has no room for its samples.
    pub fn set_buffered(&self, items: &[u32], enable: &[bool]) -> ItemResults<()> {
        some(items)?;
        paired(items, enable)?;
        let room = self.engine.settings.quotas.buffer;
        let mut inner = self.inner()?;
        let rate = inner.state.rate;
        let mut set = |index: usize, item: u32| {
            let member = inner.members.get_mut(item)?;
            if !at(enable, index)? {
                member.buffer = None;
            } else if member.buffer.is_none() {
                member.buffer = Some(self.share.room(&self.engine, room.saturating_mul(size_of::<Vqt>()))?);
            }
            let interval = member.buffer.is_some().then(|| member.sampling.unwrap_or(rate));
            member.cell.buffer(member.watch, interval, room);
            Ok(())
        };
        Ok(items.iter().enumerate().map(|(index, item)| set(index, *item)).collect())
    }

    /// Whether they are.
    ///
    /// # Errors
    /// As [`Group::remove_items`].
    pub fn buffered(&self, items: &[u32]) -> ItemResults<bool> {
        self.each(items, |member, _| Ok(member.buffer.is_some()))
    }
}

/// How an item is set, as a client is told of it, and the item, which says the rest.
fn attributes(member: &Member) -> (Attributes, Arc<Item>) {
    let (canonical, access) = (member.item().canonical, member.item().access);
    let (eu_type, eu_info) = (0, Data::Empty);
    let attributes =
        Attributes { def: def_of(member), server: member.handle, canonical, access, eu_type, eu_info };
    (attributes, Arc::clone(member.item()))
}

/// What a client is told of an item that it has added, or might add.
fn added(item: &Item, server: u32) -> ItemResult {
    ItemResult { server, canonical: item.canonical, access: item.access }
}

/// What an item was added as, as it is set by now.
fn def_of(member: &Member) -> ItemDef {
    ItemDef {
        id: member.item().id.clone(),
        access_path: member.access_path.clone(),
        active: member.active,
        client: member.client,
        requested: member.requested,
    }
}

/// Whether values of an item can be had as another type.
fn check_type(item: &Item, requested: VarType) -> Result<(), Code> {
    if requested == VarType::EMPTY || requested == item.canonical {
        return Ok(());
    }
    let fits = requested.element().is_some() == item.canonical.element().is_some()
        && requested.is_known()
        && !matches!(requested, VarType::NULL | VarType::ERROR);
    if fits { Ok(()) } else { Err(Code::BAD_TYPE) }
}

/// Whoever asks for nothing has made a mistake (E_INVALIDARG where `dwCount` is 0).
pub(super) fn some<T>(list: &[T]) -> Result<(), Code> {
    if list.is_empty() { Err(Code::INVALID_ARGUMENT) } else { Ok(()) }
}

/// Two lists of one length, as the contract has it.
pub(super) fn paired<A, B>(one: &[A], other: &[B]) -> Result<(), Code> {
    if one.len() == other.len() { Ok(()) } else { Err(Code::INVALID_ARGUMENT) }
}

/// What is at a place of a list that is as long as that of the items.
pub(super) fn at<T: Copy>(list: &[T], index: usize) -> Result<T, Code> {
    list.get(index).copied().ok_or(Code::INVALID_ARGUMENT)
}
