//! Items without a group: reads and writes by name (IOPCItemIO), and properties (IOPCItemProperties, IOPCBrowse).

use crate::data::Vqt;
use crate::engine::Engine;
use crate::group::{WriteVqt, bound, write_to};
use crate::item::{Access, Item};
use crate::properties;
use crate::time::Moment;
use crate::{Code, Data, Quality};
use std::sync::Arc;

impl Engine {
    fn item(&self, id: &str) -> Result<Arc<Item>, Code> {
        if id.is_empty() {
            return Err(Code::INVALID_ITEM);
        }
        self.source.find(id).ok_or(Code::UNKNOWN_ITEM)
    }

    /// Reads items by name: from the cache where some group has them and the value is no older than so many milliseconds.
    ///
    /// # Errors
    /// [`Code::INVALID_ARGUMENT`]: not as many ages as items.
    pub fn read_items(
        &self,
        ids: &[String],
        ages: &[u32],
        now: Moment,
    ) -> Result<Vec<Result<Vqt, Code>>, Code> {
        if ids.len() != ages.len() {
            return Err(Code::INVALID_ARGUMENT);
        }
        let mut asked = Vec::new();
        let mut values = Vec::with_capacity(ids.len());
        for (index, (id, age)) in ids.iter().zip(ages).enumerate() {
            values.push(self.item(id).and_then(|item| {
                if !item.access.allows(Access::READ) {
                    return Err(Code::BAD_RIGHTS);
                }
                let held = if *age == 0 { None } else { self.held(id) };
                if let Some(value) = held.and_then(|cell| cell.value_of_age((*age).into(), now.ticks)) {
                    return Ok(value);
                }
                asked.push((index, item));
                Err(Code::FAIL)
            }));
        }
        let items: Vec<_> = asked.iter().map(|(_, item)| Arc::clone(item)).collect();
        let read = if items.is_empty() { Vec::new() } else { self.source.read(&items) };
        for ((index, _), value) in asked.iter().zip(read) {
            if let Some(place) = values.get_mut(*index) {
                *place = value;
            }
        }
        bound(&mut values, self.settings.quotas.answer, |value| &value.data);
        Ok(values)
    }

    /// Writes items by name.
    ///
    /// # Errors
    /// [`Code::INVALID_ARGUMENT`]: not as many values as items.
    pub fn write_items(&self, ids: &[String], values: &[WriteVqt]) -> Result<Vec<Code>, Code> {
        if ids.len() != values.len() {
            return Err(Code::INVALID_ARGUMENT);
        }
        let (mut codes, mut writes) = (Vec::with_capacity(ids.len()), Vec::new());
        for (id, given) in ids.iter().zip(values) {
            match self.item(id).and_then(|item| write_to(&item, given)) {
                Ok(write) => {
                    writes.push(write);
                    codes.push(None);
                }
                Err(code) => codes.push(Some(code)),
            }
        }
        let mut written = if writes.is_empty() { Vec::new() } else { self.source.write(&writes) }.into_iter();
        Ok(codes.into_iter().map(|code| code.or_else(|| written.next()).unwrap_or(Code::FAIL)).collect())
    }

    /// The properties that an item has.
    ///
    /// # Errors
    /// [`Code::UNKNOWN_ITEM`], [`Code::INVALID_ITEM`].
    pub fn available_properties(&self, id: &str) -> Result<Vec<properties::PropertyDescription>, Code> {
        Ok(properties::available(&*self.item(id)?))
    }

    /// Properties of an item by their numbers; the item's value is read if one of them needs it.
    ///
    /// # Errors
    /// As [`Engine::available_properties`]; of each property [`Code::INVALID_PROPERTY`], and [`Code::OUT_OF_MEMORY`]: the texts and arrays
    /// before it are as large as an answer may be ([`crate::Quotas::answer`]).
    pub fn properties(
        &self,
        id: &str,
        numbers: &[u32],
        now: Moment,
    ) -> Result<Vec<Result<Data, Code>>, Code> {
        let item = self.item(id)?;
        let mut room = self.settings.quotas.answer;
        Ok(self.properties_of(&item, numbers, now, &mut room).collect())
    }

    /// The same for an item that is at hand, one after the other as they are taken. `room`: bytes of texts and arrays that may still be in
    /// the answer; what goes beyond is [`Code::OUT_OF_MEMORY`], and is not kept.
    pub(crate) fn properties_of(
        &self,
        item: &Arc<Item>,
        numbers: &[u32],
        now: Moment,
        room: &mut usize,
    ) -> impl Iterator<Item = Result<Data, Code>> {
        let needs_value = numbers.iter().any(|number| properties::is_of_value(*number));
        let value = if needs_value { self.current(item, now) } else { Vqt::bad(Quality::WAITING, now.time) };
        numbers.iter().map(move |number| {
            let data = properties::value(item, *number, &value)?;
            *room = room.checked_sub(data.heap()).ok_or(Code::OUT_OF_MEMORY)?;
            Ok(data)
        })
    }

    fn current(&self, item: &Arc<Item>, now: Moment) -> Vqt {
        let held = self.held(&item.id).and_then(|cell| cell.value_of_age(0, now.ticks));
        let read = || self.source.read(std::slice::from_ref(item)).into_iter().next().and_then(Result::ok);
        held.or_else(read).unwrap_or_else(|| Vqt::bad(Quality::COMM_FAILURE, now.time))
    }

    /// The items that have the same values as properties.
    ///
    /// # Errors
    /// As [`Engine::properties`].
    pub fn property_items(&self, id: &str, numbers: &[u32]) -> Result<Vec<Result<String, Code>>, Code> {
        let item = self.item(id)?;
        Ok(numbers.iter().map(|number| properties::item_id(&item, *number)).collect())
    }
}
