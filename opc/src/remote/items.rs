//! Reads, writes and properties of items that nobody subscribed to.
//!
//! * 3.0: by IOPCItemIO and IOPCBrowse, without a group.
//! * 2.05a: by IOPCSyncIO in a group of the session's own. Items stay in it, up to [`KEPT`]: who reads the same again pays for one call.

use super::session::Session;
use super::single::outcome;
use super::trouble::advised;
use super::wire::{code_of, def, each, given, missing, vqt_of, vqt_of_state};
use crate::contract::{IOPCItemMgt, IOPCItemProperties, IOPCSyncIO, OPCDATASOURCE, OPCITEMRESULT};
use crate::sync::lock;
use crate::{Access, Code, Data, VarType, Vqt};
use everywire::{Failure, Ref};
use std::collections::HashMap;

/// Items that the group for reads and writes keeps.
const KEPT: usize = 10_000;
/// Items of one call: what a message of 4 MiB holds, whatever their names are.
pub(super) const SLICE: usize = 1000;
/// Properties of one item.
const PROPERTIES: usize = 10_000;

/// What a server says of an item when it is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemInfo {
    /// Its own type.
    pub canonical: VarType,
    /// What may be done with it.
    pub access: Access,
}

/// A property of an item.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemProperty {
    /// Its number.
    pub id: u32,
    /// What it is.
    pub description: String,
    /// Its type.
    pub data_type: VarType,
    /// Its value, or why there is none.
    pub value: Result<Data, Code>,
}

/// The handle of an item, and what is said of it; or why it has none.
type Handle = Result<(u32, ItemInfo), Code>;

/// A group of the session's own.
pub(super) struct ReadGroup {
    items: Ref<dyn IOPCItemMgt>,
    io: Ref<dyn IOPCSyncIO>,
    known: HashMap<String, (u32, ItemInfo)>,
}

impl ReadGroup {
    fn make(session: &Session) -> Result<Self, Failure> {
        // Nothing is sent of its own accord: it is not active.
        session.with_group(false, 1000, 0, None, |_, _, group| {
            let items = group.query()?.ok_or_else(|| missing("IOPCItemMgt"))?;
            let io = group.query()?.ok_or_else(|| missing("IOPCSyncIO"))?;
            Ok(Self { items, io, known: HashMap::new() })
        })
    }

    /// Has the items in the group; the handle of each, or why it has none.
    fn handles(&mut self, ids: &[&str]) -> Result<Vec<Handle>, Failure> {
        if self.known.len() + ids.len() > KEPT && !self.known.is_empty() {
            let held: Vec<u32> = self.known.drain().map(|(_, (handle, _))| handle).collect();
            for slice in held.chunks(SLICE) {
                self.items.remove_items(slice)?;
            }
        }
        let mut new: Vec<&str> = ids.iter().copied().filter(|id| !self.known.contains_key(*id)).collect();
        new.sort_unstable();
        new.dedup();
        let mut refused = HashMap::new();
        for slice in new.chunks(SLICE) {
            let defs: Vec<_> = slice.iter().map(|id| def(id, 0)).collect();
            let (results, errors) = self.items.add_items(&defs)?.value;
            for (id, result) in slice.iter().zip(each(slice.len(), results, &errors)?) {
                match result {
                    Ok(added) => drop(self.known.insert((*id).to_owned(), (added.server, info(&added)))),
                    Err(code) => drop(refused.insert(*id, code)),
                }
            }
        }
        let of = |id: &&str| {
            let refused = || refused.get(*id).copied().unwrap_or(Code::FAIL);
            self.known.get(*id).copied().ok_or_else(refused)
        };
        Ok(ids.iter().map(of).collect())
    }
}

pub(super) fn info(added: &OPCITEMRESULT) -> ItemInfo {
    ItemInfo { canonical: VarType(added.canonical_type), access: Access(added.access_rights) }
}

/// Does something with handles of those items that have some; the rest is answered with the codes that stood in the way.
fn by_group<T>(
    session: &Session,
    ids: &[&str],
    job: impl Fn(&ReadGroup, &[u32], &[usize]) -> Result<Vec<Result<T, Code>>, Failure>,
) -> Result<Vec<Result<T, Code>>, Failure> {
    let mut held = lock(&session.reading);
    let group = match &mut *held {
        Some(group) => group,
        none => none.insert(ReadGroup::make(session)?),
    };
    let mut out = Vec::with_capacity(ids.len());
    let mut there = Vec::new();
    for (index, handle) in group.handles(ids)?.into_iter().enumerate() {
        match handle {
            Ok((handle, _)) => {
                there.push((handle, index));
                // Every one of these is answered below.
                out.push(Err(Code::FAIL));
            }
            Err(code) => out.push(Err(code)),
        }
    }
    for slice in there.chunks(SLICE) {
        let (handles, places): (Vec<u32>, Vec<usize>) = slice.iter().copied().unzip();
        let done = job(group, &handles, &places)?;
        for (place, result) in places.iter().zip(done) {
            if let Some(slot) = out.get_mut(*place) {
                *slot = result;
            }
        }
    }
    Ok(out)
}

/// Values as the device has them.
pub(super) fn read(session: &Session, ids: &[&str]) -> Result<Vec<Result<Vqt, Code>>, Failure> {
    let Some(io) = &session.items else {
        return by_group(session, ids, |group, handles, _| {
            let (states, errors) = group.io.read(OPCDATASOURCE::OpcDsDevice, handles)?.value;
            let states = each(handles.len(), states, &errors)?;
            Ok(states.into_iter().map(|state| state.map(|state| vqt_of_state(&state))).collect())
        });
    };
    let mut out = Vec::with_capacity(ids.len());
    for slice in ids.chunks(SLICE) {
        let names: Vec<_> = slice.iter().map(|id| Some((*id).to_owned())).collect();
        let (values, qualities, times, errors) = io.read(&names, &vec![0; names.len()])?.value;
        let values: Vec<_> = values
            .iter()
            .zip(&qualities)
            .zip(&times)
            .map(|((value, quality), time)| vqt_of(value, *quality, time))
            .collect();
        out.extend(each(slice.len(), values, &errors)?);
    }
    Ok(out)
}

/// Writes values; the server says quality and time.
pub(super) fn write(session: &Session, values: &[(&str, Data)]) -> Result<Vec<Result<Code, Code>>, Failure> {
    let result = |code: &i32| outcome(*code);
    let Some(io) = &session.items else {
        let ids: Vec<&str> = values.iter().map(|(id, _)| *id).collect();
        return by_group(session, &ids, |group, handles, places| {
            let data = |place: &usize| values.get(*place).map(|(_, data)| data.to_variant());
            let given: Vec<_> = places.iter().filter_map(data).collect();
            let errors = group.io.write(handles, &given)?.value;
            each(handles.len(), vec![(); handles.len()], &errors)?;
            Ok(errors.iter().map(result).collect())
        });
    };
    let mut out = Vec::with_capacity(values.len());
    for slice in values.chunks(SLICE) {
        let names: Vec<_> = slice.iter().map(|(id, _)| Some((*id).to_owned())).collect();
        let given: Vec<_> = slice.iter().map(|(_, data)| given(data)).collect();
        let errors = io.write_vqt(&names, &given)?.value;
        each(slice.len(), vec![(); slice.len()], &errors)?;
        out.extend(errors.iter().map(result));
    }
    Ok(out)
}

/// The types and rights of items, as the server says when they are added to a group.
pub(super) fn infos(session: &Session, ids: &[&str]) -> Result<Vec<Result<ItemInfo, Code>>, Failure> {
    let mut held = lock(&session.reading);
    let group = match &mut *held {
        Some(group) => group,
        none => none.insert(ReadGroup::make(session)?),
    };
    Ok(group.handles(ids)?.into_iter().map(|handle| handle.map(|(_, info)| info)).collect())
}

/// The properties of an item, with values.
pub(super) fn properties(session: &Session, id: &str) -> Result<Vec<ItemProperty>, Failure> {
    let found = match &session.browse {
        Some(browse) => {
            let mut all = browse.get_properties(&[Some(id.to_owned())], 1, &[])?.value;
            let of_item = all.pop().filter(|_| all.is_empty()).ok_or_else(|| missing("properties"))?;
            let code = code_of(of_item.error);
            if code.is_failure() {
                return Err(Failure::from(code).at(format_args!("item `{id}`")));
            }
            let one = |property: &crate::contract::OPCITEMPROPERTY| ItemProperty {
                id: property.property_id,
                description: property.description.clone().unwrap_or_default(),
                data_type: VarType(property.data_type),
                value: valued(&property.value, property.error),
            };
            of_item.properties.iter().map(one).collect()
        }
        None => of_2(&session.properties()?, id)?,
    };
    Ok(found)
}

/// As 2.05a has it: first which there are, then what they are.
fn of_2(properties: &Ref<dyn IOPCItemProperties>, id: &str) -> Result<Vec<ItemProperty>, Failure> {
    let failed = |failure: Failure| advised(failure.at(format_args!("item `{id}`")));
    let (ids, texts, types) = properties.query_available_properties(id).map_err(failed)?;
    if ids.len() > PROPERTIES || texts.len() != ids.len() || types.len() != ids.len() {
        return Err(super::wire::violation("the server tells too many properties, or not all of each"));
    }
    let (values, errors) = properties.get_item_properties(id, &ids).map_err(failed)?.value;
    if values.len() != ids.len() || errors.len() != ids.len() {
        return Err(super::wire::violation("the server gives other properties than it was asked for"));
    }
    let names = ids.into_iter().zip(texts).zip(types);
    let values = values.iter().zip(&errors).map(|(value, error)| valued(value, *error));
    let mut found = Vec::new();
    for (((id, text), data_type), value) in names.zip(values) {
        let (description, data_type) = (text.unwrap_or_default(), VarType(data_type));
        found.push(ItemProperty { id, description, data_type, value });
    }
    Ok(found)
}

fn valued(value: &everywire_model::Variant, error: i32) -> Result<Data, Code> {
    let code = code_of(error);
    if code.is_failure() { Err(code) } else { Data::from_variant(value) }
}
