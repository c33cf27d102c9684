//! The address space and its items without a group: IOPCBrowseServerAddressSpace, IOPCItemProperties,
//! IOPCBrowse, IOPCItemIO.
//!
//! What is kept between two calls is the position of a client alone. Enumerators walk the source anew, from
//! the position that there was when they were made, and a continuation point says by itself where to go on;
//! so a client that browses and stays away costs a seat and no list.
//!
//! Invariants.
//! * Everything is asked of the engine's source as it is now (`crate::browse`, `crate::direct`); no lock is
//!   held meanwhile.
//! * Each item, property and element is answered by itself: what is wrong with one is its code, and the call
//!   is `S_FALSE`.
//! * A value that is not wanted is `VT_EMPTY`, never left out: all lists of an answer have one length.
//! * What an interface would have as a choice of the server's is said as it is: there are no filters of the
//!   vendor's, and `more elements` is never set, since there are continuation points.
//!
//! Bounds. A page has `crate::browse::PAGE` elements; enumerators count against the client's quota; values
//! that IOPCItemIO reads, and those of properties, are no more than an answer may hold. How large a request
//! is, the transport bounds. OPC DA 2.05a, 4.4.5; 3.0, 4.4.3.

use super::enumerators::{EnumeratorState, lend};
use super::object::ServerObject;
use super::wire::{answer, apart, filetime, given_of};
use crate::browse::{Direction, Element, Elements, Filter, Kind, page};
use crate::contract::{
    FILETIME, IEnumString, IOPCBrowse, IOPCBrowseServerAddressSpace, IOPCItemIO, IOPCItemProperties,
    OPCBROWSEDIRECTION, OPCBROWSEELEMENT, OPCBROWSEFILTER, OPCBROWSETYPE, OPCITEMPROPERTIES, OPCITEMPROPERTY,
    OPCITEMVQT, OPCNAMESPACETYPE,
};
use crate::item::Item;
use crate::wire::{HAS_CHILDREN, IS_ITEM};
use crate::{Code, Data, FileTime, Quality, VarType, Vqt, properties};
use everywire::{Failure, Ref, Success};
use everywire_model::Variant;
use std::sync::Arc;

impl IOPCBrowseServerAddressSpace for ServerObject {
    fn query_organization(&self) -> Result<OPCNAMESPACETYPE, Failure> {
        Ok(match self.desk().client.engine().source().is_hierarchical() {
            true => OPCNAMESPACETYPE::OpcNsHierarchial,
            false => OPCNAMESPACETYPE::OpcNsFlat,
        })
    }

    fn change_browse_position(&self, direction: OPCBROWSEDIRECTION, name: &str) -> Result<(), Failure> {
        let direction = match direction {
            OPCBROWSEDIRECTION::OpcBrowseUp => Direction::Up,
            OPCBROWSEDIRECTION::OpcBrowseDown => Direction::Down,
            OPCBROWSEDIRECTION::OpcBrowseTo => Direction::To,
            _ => return Err(Code::INVALID_ARGUMENT.into()),
        };
        let client = &self.desk().client;
        let source = client.engine().source();
        Ok(client.with_position(|position| position.go(&**source, direction, name))?)
    }

    fn browse_opc_item_ids(
        &self,
        kind: OPCBROWSETYPE,
        filter: &str,
        type_filter: u16,
        access_filter: u32,
    ) -> Result<Success<Option<Ref<dyn IEnumString>>>, Failure> {
        let kind = match kind {
            OPCBROWSETYPE::OpcBranch => Kind::Branches,
            OPCBROWSETYPE::OpcLeaf => Kind::Leaves,
            OPCBROWSETYPE::OpcFlat => Kind::Flat,
            _ => return Err(Code::INVALID_ARGUMENT.into()),
        };
        let filter = Filter::new(filter, VarType(type_filter), access_filter)?;
        let client = &self.desk().client;
        let source = Arc::clone(client.engine().source());
        let position = client.with_position(|position| position.clone());
        // Whether there is anything at all: S_FALSE says that there is not.
        let is_empty = position.names(&source, kind, filter.clone())?.next().is_none();
        let make = move || {
            let names = position.names(&source, kind, filter.clone())?;
            Ok(Box::new(names.map(Some)) as Box<dyn Iterator<Item = Option<String>> + Send>)
        };
        let (node, seat) = (&self.desk().house()?.node, client.enumerator()?);
        let names: Arc<dyn IEnumString> =
            Arc::new(EnumeratorState::<Option<String>>::new(node.clone(), seat, Arc::new(make))?);
        Ok(Success::with(i32::from(is_empty), Some(lend(node, names)?)))
    }

    fn get_item_id(&self, name: &str) -> Result<Option<String>, Failure> {
        let client = &self.desk().client;
        let source = client.engine().source();
        Ok(Some(client.with_position(|position| position.id(&**source, name))?))
    }

    fn browse_access_paths(&self, item_id: &str) -> Result<Success<Option<Ref<dyn IEnumString>>>, Failure> {
        let source = self.desk().client.engine().source();
        source.find(item_id).ok_or(Code::UNKNOWN_ITEM)?;
        let paths: Vec<_> = source.access_paths(item_id).into_iter().map(Some).collect();
        let code = i32::from(paths.is_empty());
        let (node, seat) = (&self.desk().house()?.node, self.desk().client.enumerator()?);
        let names: Arc<dyn IEnumString> =
            Arc::new(EnumeratorState::<Option<String>>::of(node.clone(), seat, paths)?);
        Ok(Success::with(code, Some(lend(node, names)?)))
    }
}

impl IOPCItemProperties for ServerObject {
    fn query_available_properties(
        &self,
        item_id: &str,
    ) -> Result<(Vec<u32>, Vec<Option<String>>, Vec<u16>), Failure> {
        let available = self.desk().client.engine().available_properties(item_id)?;
        let ids = available.iter().map(|property| property.id).collect();
        let types = available.iter().map(|property| property.data_type.0).collect();
        Ok((ids, available.into_iter().map(|property| Some(property.description)).collect(), types))
    }

    fn get_item_properties(
        &self,
        item_id: &str,
        property_ids: &[u32],
    ) -> Result<Success<(Vec<Variant>, Vec<i32>)>, Failure> {
        let house = self.desk().house()?;
        let values = house.engine.properties(item_id, property_ids, house.now())?;
        let (values, codes) = apart(values, |value| value.to_variant(), empty);
        answer(&codes, |errors| (values, errors))
    }

    fn lookup_item_ids(
        &self,
        item_id: &str,
        property_ids: &[u32],
    ) -> Result<Success<(Vec<Option<String>>, Vec<i32>)>, Failure> {
        let items = self.desk().client.engine().property_items(item_id, property_ids)?;
        let (ids, codes) = apart(items, Some, || None);
        answer(&codes, |errors| (ids, errors))
    }
}

/// What stands where there is no value.
fn empty() -> Variant {
    Data::Empty.to_variant()
}

/// Which properties of items are wanted.
struct PropertyFilter<'a> {
    /// All that the item has, rather than those that are named.
    all: bool,
    /// With their values, and not only what they are.
    values: bool,
    /// Those that are named.
    ids: &'a [u32],
}

impl ServerObject {
    /// The properties of an item; nothing but the code, if there is none. Their values take from the `room` in the answer.
    fn described(
        &self,
        item: Result<&Arc<Item>, Code>,
        wanted: &PropertyFilter<'_>,
        room: &mut usize,
    ) -> Result<OPCITEMPROPERTIES, Failure> {
        let house = self.desk().house()?;
        let item = match item {
            Ok(item) => item,
            Err(code) => {
                return Ok(OPCITEMPROPERTIES { error: code.signed(), properties: Vec::new(), reserved: 0 });
            }
        };
        let all: Vec<u32>;
        let ids = if wanted.all {
            all = properties::available(item).into_iter().map(|property| property.id).collect();
            &all
        } else {
            wanted.ids
        };
        // What is not told needs no room.
        let mut endless = usize::MAX;
        let room = if wanted.values { room } else { &mut endless };
        let values = house.engine.properties_of(item, ids, house.now(), room);
        let mut found = Vec::with_capacity(ids.len());
        for (id, value) in ids.iter().zip(values) {
            let code = value.as_ref().err().copied().unwrap_or(Code::OK);
            let value = value.unwrap_or_default();
            found.push(OPCITEMPROPERTY {
                data_type: if code == Code::OK { value.var_type().0 } else { 0 },
                reserved: 0,
                property_id: *id,
                item_id: Some(properties::item_id(item, *id).unwrap_or_default()),
                description: Some(properties::description(item, *id).unwrap_or_default().to_owned()),
                value: if wanted.values { value.to_variant() } else { empty() },
                error: code.signed(),
                reserved2: 0,
            });
        }
        let failed = found.iter().any(|property| property.error != 0);
        Ok(OPCITEMPROPERTIES { error: i32::from(failed), properties: found, reserved: 0 })
    }

    /// An element as the contract has it, with those properties that are wanted if it is an item.
    fn element(
        &self,
        element: Element,
        wanted: &PropertyFilter<'_>,
        room: &mut usize,
    ) -> Result<OPCBROWSEELEMENT, Failure> {
        let Element { name, id, has_children, item } = element;
        let properties = match &item {
            Some(item) if wanted.all || !wanted.ids.is_empty() => self.described(Ok(item), wanted, room)?,
            _ => OPCITEMPROPERTIES { error: 0, properties: Vec::new(), reserved: 0 },
        };
        let mut flags = if has_children { HAS_CHILDREN } else { 0 };
        flags |= if item.is_some() { IS_ITEM } else { 0 };
        Ok(OPCBROWSEELEMENT { name: Some(name), item_id: Some(id), flags, reserved: 0, properties })
    }
}

impl IOPCBrowse for ServerObject {
    fn get_properties(
        &self,
        item_ids: &[Option<String>],
        return_values: i32,
        property_ids: &[u32],
    ) -> Result<Success<Vec<OPCITEMPROPERTIES>>, Failure> {
        // No numbers at all are all of them (OPC DA 3.0, 4.4.3.3).
        let wanted =
            PropertyFilter { all: property_ids.is_empty(), values: return_values != 0, ids: property_ids };
        let engine = self.desk().client.engine();
        let (source, mut room) = (engine.source(), engine.settings.quotas.answer);
        let mut found = Vec::with_capacity(item_ids.len());
        for id in item_ids {
            let item = match id.as_deref().unwrap_or_default() {
                "" => Err(Code::INVALID_ITEM),
                id => source.find(id).ok_or(Code::UNKNOWN_ITEM),
            };
            found.push(self.described(item.as_ref().map_err(|code| *code), &wanted, &mut room)?);
        }
        let failed = found.iter().any(|properties| properties.error != 0);
        Ok(Success::with(i32::from(failed), found))
    }

    #[allow(clippy::too_many_arguments)]
    fn browse(
        &self,
        item_id: &str,
        continuation_point: &Option<String>,
        max_elements: u32,
        filter: OPCBROWSEFILTER,
        name_filter: &str,
        vendor_filter: &str,
        return_all_properties: i32,
        return_values: i32,
        property_ids: &[u32],
    ) -> Result<Success<(Option<String>, i32, Vec<OPCBROWSEELEMENT>)>, Failure> {
        // There is no filter of the vendor's, so none can be valid.
        if !vendor_filter.is_empty() {
            return Err(Code::INVALID_FILTER.into());
        }
        let elements = match filter {
            OPCBROWSEFILTER::OpcBrowseFilterAll => Elements::All,
            OPCBROWSEFILTER::OpcBrowseFilterBranches => Elements::Branches,
            OPCBROWSEFILTER::OpcBrowseFilterItems => Elements::Items,
            _ => return Err(Code::INVALID_ARGUMENT.into()),
        };
        let engine = self.desk().client.engine();
        let (source, mut room) = (engine.source(), engine.settings.quotas.answer);
        let continuation = continuation_point.as_deref().unwrap_or_default();
        let page = page(&**source, item_id, continuation, max_elements as usize, elements, name_filter)?;
        let wanted =
            PropertyFilter { all: return_all_properties != 0, values: return_values != 0, ids: property_ids };
        let found = page.elements.into_iter().map(|element| self.element(element, &wanted, &mut room));
        let found = found.collect::<Result<Vec<_>, _>>()?;
        let failed = found.iter().any(|element| element.properties.error != 0);
        // A continuation point says that there is more; `more` is for servers without them.
        Ok(Success::with(i32::from(failed), (Some(page.continuation), 0, found)))
    }
}

impl IOPCItemIO for ServerObject {
    fn read(
        &self,
        item_ids: &[Option<String>],
        ages: &[u32],
    ) -> Result<Success<(Vec<Variant>, Vec<u16>, Vec<FILETIME>, Vec<i32>)>, Failure> {
        let house = self.desk().house()?;
        let ids: Vec<_> = item_ids.iter().map(|id| id.clone().unwrap_or_default()).collect();
        let read = house.engine.read_items(&ids, ages, house.now())?;
        let (values, codes) = apart(read, |value| value, || Vqt::bad(Quality::BAD, FileTime::default()));
        let qualities = values.iter().map(|value| value.quality.0).collect();
        let times = values.iter().map(|value| filetime(value.time)).collect();
        let values = values.iter().map(|value| value.data.to_variant()).collect();
        answer(&codes, |errors| (values, qualities, times, errors))
    }

    fn write_vqt(
        &self,
        item_ids: &[Option<String>],
        values: &[OPCITEMVQT],
    ) -> Result<Success<Vec<i32>>, Failure> {
        let ids: Vec<_> = item_ids.iter().map(|id| id.clone().unwrap_or_default()).collect();
        let values: Vec<_> = values.iter().map(given_of).collect();
        let codes = self.desk().client.engine().write_items(&ids, &values)?;
        answer(&codes, |errors| errors)
    }
}
