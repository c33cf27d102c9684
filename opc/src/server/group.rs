//! The object of a group: IOPCGroupStateMgt2, IOPCItemMgt, IOPCSyncIO2. What is answered later is in
//! `super::later`.
//!
//! Who holds whom. The object holds its group, and its client's desk weakly; it is itself held by the node,
//! under the group's key, until it is withdrawn (`super::object`). An enumerator of items holds neither, and
//! ends with the group.
//!
//! Invariants.
//! * Once the client is gone, its group has ended, so each method fails with `E_FAIL`, whoever still has a
//!   reference.
//! * Nothing is decided here: each method turns the contract's types into the engine's (`super::wire`), asks
//!   the group, and turns the answer back. A code is given for each item, and the call is `S_FALSE` if any of
//!   them is not `S_OK`.
//! * An interface that a caller wants is checked before anything is made for it.
//!
//! Bounds are the engine's (`crate::Quotas`). An enumerator asks for `AttributeList::PART` items at once, so that a
//! list of half a million is never held for one.

use super::enumerators::{EnumeratorState, lend};
use super::object::{ClientState, check_offered};
use super::wire::{answer, apart, codes, data_of, def_of, filetime, given_of, result_of};
use crate::contract::{
    DataAccessGroup, FILETIME, GUID, IEnumOPCItemAttributes, IOPCGroupStateMgt, IOPCGroupStateMgt2,
    IOPCItemMgt, IOPCSyncIO, IOPCSyncIO2, OPCDATASOURCE, OPCEUTYPE, OPCITEMATTRIBUTES, OPCITEMDEF,
    OPCITEMRESULT, OPCITEMSTATE, OPCITEMVQT,
};
use crate::group::{Attributes, Change, Group, ReadFrom, Sample, WriteVqt};
use crate::{Code, VarType};
use everywire::{Failure, Reference, Success};
use everywire_model::Variant;
use std::sync::{Arc, Weak};

/// A group as its client sees it.
pub(super) struct GroupObject {
    pub(super) desk: Weak<ClientState>,
    pub(super) group: Arc<Group>,
}

/// How a group is told to others: rate, active, name, time bias, deadband, locale, and both handles.
type State = (u32, i32, Option<String>, i32, f32, u32, u32, u32);

impl GroupObject {
    pub(super) fn desk(&self) -> Result<Arc<ClientState>, Code> {
        self.desk.upgrade().ok_or(Code::FAIL)
    }
}

/// From where a call wants values.
pub(super) fn read_from(source: OPCDATASOURCE) -> Result<ReadFrom<'static>, Code> {
    match source {
        OPCDATASOURCE::OpcDsCache => Ok(ReadFrom::Cache),
        OPCDATASOURCE::OpcDsDevice => Ok(ReadFrom::Device),
        _ => Err(Code::INVALID_ARGUMENT),
    }
}

impl IOPCGroupStateMgt for GroupObject {
    fn get_state(&self) -> Result<State, Failure> {
        let state = self.group.state()?;
        Ok((
            state.rate,
            i32::from(state.active),
            Some(state.name),
            state.time_bias,
            state.deadband,
            state.locale,
            state.client,
            state.server,
        ))
    }

    fn set_state(
        &self,
        requested_rate: &Option<u32>,
        active: &Option<i32>,
        time_bias: &Option<i32>,
        percent_deadband: &Option<f32>,
        locale: &Option<u32>,
        client_group: &Option<u32>,
    ) -> Result<Success<u32>, Failure> {
        let (rate, code) = self.group.change(&Change {
            rate: *requested_rate,
            active: active.map(|active| active != 0),
            time_bias: *time_bias,
            deadband: *percent_deadband,
            locale: *locale,
            client: *client_group,
        })?;
        Ok(Success::with(code.signed(), rate))
    }

    fn set_name(&self, name: &str) -> Result<(), Failure> {
        Ok(self.desk()?.client.rename(&self.group, name)?)
    }

    fn clone_group(&self, name: &str, riid: &GUID) -> Result<Option<Reference>, Failure> {
        check_offered::<dyn DataAccessGroup>(riid)?;
        let desk = self.desk()?;
        let copy = desk.client.clone_group(&self.group, name)?;
        let reference = desk.publish(&copy).inspect_err(|_| {
            // Nobody could use it.
            let _ = desk.client.remove_group(copy.server_handle());
        })?;
        Ok(Some(reference))
    }
}

impl IOPCGroupStateMgt2 for GroupObject {
    fn set_keep_alive(&self, requested_time: u32) -> Result<Success<u32>, Failure> {
        let (revised, code) = self.group.set_keep_alive(requested_time)?;
        Ok(Success::with(code.signed(), revised))
    }

    fn get_keep_alive(&self) -> Result<u32, Failure> {
        Ok(self.group.state()?.keep_alive)
    }
}

impl IOPCItemMgt for GroupObject {
    fn add_items(&self, items: &[OPCITEMDEF]) -> Result<Success<(Vec<OPCITEMRESULT>, Vec<i32>)>, Failure> {
        let defs: Vec<_> = items.iter().map(def_of).collect();
        let added = self.group.add_items(&defs, self.desk()?.house()?.now())?;
        let (results, codes) = apart(added, |added| result_of(Some(added)), || result_of(None));
        answer(&codes, |errors| (results, errors))
    }

    fn validate_items(
        &self,
        items: &[OPCITEMDEF],
        _blob_update: i32,
    ) -> Result<Success<(Vec<OPCITEMRESULT>, Vec<i32>)>, Failure> {
        let defs: Vec<_> = items.iter().map(def_of).collect();
        let looked_at = self.group.validate_items(&defs)?;
        let (results, codes) = apart(looked_at, |added| result_of(Some(added)), || result_of(None));
        answer(&codes, |errors| (results, errors))
    }

    fn remove_items(&self, items: &[u32]) -> Result<Success<Vec<i32>>, Failure> {
        answer(&codes(self.group.remove_items(items)?), |errors| errors)
    }

    fn set_active_state(&self, items: &[u32], active: i32) -> Result<Success<Vec<i32>>, Failure> {
        answer(&codes(self.group.set_active(items, active != 0)?), |errors| errors)
    }

    fn set_client_handles(&self, items: &[u32], client: &[u32]) -> Result<Success<Vec<i32>>, Failure> {
        answer(&codes(self.group.set_client_handles(items, client)?), |errors| errors)
    }

    fn set_datatypes(&self, items: &[u32], types: &[u16]) -> Result<Success<Vec<i32>>, Failure> {
        let types: Vec<_> = types.iter().map(|vt| VarType(*vt)).collect();
        answer(&codes(self.group.set_types(items, &types)?), |errors| errors)
    }

    fn create_enumerator(&self, riid: &GUID) -> Result<Success<Option<Reference>>, Failure> {
        check_offered::<dyn IEnumOPCItemAttributes>(riid)?;
        let code = i32::from(self.group.count()? == 0);
        let desk = self.desk()?;
        let (house, seat) = (desk.house()?, desk.client.enumerator()?);
        // It walks the group as it is when it is asked: a list of half a million items is not kept for each enumerator.
        let group = Arc::downgrade(&self.group);
        let make = move || {
            Ok(Box::new(AttributeList::new(Weak::clone(&group))) as Box<dyn Iterator<Item = _> + Send>)
        };
        let tape: Arc<dyn IEnumOPCItemAttributes> =
            Arc::new(EnumeratorState::<OPCITEMATTRIBUTES>::new(house.node.clone(), seat, Arc::new(make))?);
        Ok(Success::with(code, Some(lend(&house.node, tape)?.reference().clone())))
    }
}

/// The items of a group, some at a time; they end with the group.
struct AttributeList {
    /// The group; without it the walk ends.
    group: Weak<Group>,
    /// The slot behind the last item that was given.
    place: usize,
    /// What was asked for at once and not yet given.
    held: std::vec::IntoIter<Attributes>,
}

impl AttributeList {
    /// Items that are asked for at once.
    const PART: usize = 256;

    fn new(group: Weak<Group>) -> Self {
        Self { group, place: 0, held: Vec::new().into_iter() }
    }
}

impl Iterator for AttributeList {
    type Item = OPCITEMATTRIBUTES;

    fn next(&mut self) -> Option<OPCITEMATTRIBUTES> {
        if self.held.len() == 0 {
            let (held, place) = self.group.upgrade()?.attributes_behind(self.place, Self::PART).ok()?;
            (self.held, self.place) = (held.into_iter(), place);
        }
        self.held.next().map(attributes_of)
    }
}

/// An item as enumerators give it.
fn attributes_of(item: Attributes) -> OPCITEMATTRIBUTES {
    OPCITEMATTRIBUTES {
        access_path: Some(item.def.access_path),
        item_id: Some(item.def.id),
        active: i32::from(item.def.active),
        client: item.def.client,
        server: item.server,
        access_rights: item.access.0,
        blob: everywire::Bytes::new(),
        requested_type: item.def.requested.0,
        canonical_type: item.canonical.0,
        eu_type: match item.eu_type {
            1 => OPCEUTYPE::OpcAnalog,
            2 => OPCEUTYPE::OpcEnumerated,
            _ => OPCEUTYPE::OpcNoenum,
        },
        eu_info: item.eu_info.to_variant(),
    }
}

impl GroupObject {
    /// Reads, and parts values from codes.
    fn read_samples(&self, items: &[u32], from: ReadFrom<'_>) -> Result<(Vec<Sample>, Vec<Code>), Failure> {
        let read = self.group.read(items, from, self.desk()?.house()?.now())?;
        Ok(apart(read, |sample| sample, nothing))
    }
}

/// What stands where there is no value: zeros and VT_EMPTY.
fn nothing() -> Sample {
    let value = crate::Vqt::bad(crate::Quality::BAD, crate::FileTime::default());
    Sample { server: 0, client: 0, value, error: Code::OK }
}

impl IOPCSyncIO for GroupObject {
    fn read(
        &self,
        source: OPCDATASOURCE,
        items: &[u32],
    ) -> Result<Success<(Vec<OPCITEMSTATE>, Vec<i32>)>, Failure> {
        let (samples, codes) = self.read_samples(items, read_from(source)?)?;
        let state = |sample: &Sample| OPCITEMSTATE {
            client: sample.client,
            timestamp: filetime(sample.value.time),
            quality: sample.value.quality.0,
            reserved: 0,
            value: sample.value.data.to_variant(),
        };
        let states = samples.iter().map(state).collect();
        answer(&codes, |errors| (states, errors))
    }

    fn write(&self, items: &[u32], values: &[Variant]) -> Result<Success<Vec<i32>>, Failure> {
        let values: Vec<_> = values.iter().map(|value| WriteVqt::from(data_of(value))).collect();
        answer(&self.group.write(items, &values)?, |errors| errors)
    }
}

impl IOPCSyncIO2 for GroupObject {
    fn read_max_age(
        &self,
        items: &[u32],
        ages: &[u32],
    ) -> Result<Success<(Vec<Variant>, Vec<u16>, Vec<FILETIME>, Vec<i32>)>, Failure> {
        let (samples, codes) = self.read_samples(items, ReadFrom::Ages(ages))?;
        let values = samples.iter().map(|sample| sample.value.data.to_variant()).collect();
        let qualities = samples.iter().map(|sample| sample.value.quality.0).collect();
        let times = samples.iter().map(|sample| filetime(sample.value.time)).collect();
        answer(&codes, |errors| (values, qualities, times, errors))
    }

    fn write_vqt(&self, items: &[u32], values: &[OPCITEMVQT]) -> Result<Success<Vec<i32>>, Failure> {
        let values: Vec<_> = values.iter().map(given_of).collect();
        answer(&self.group.write(items, &values)?, |errors| errors)
    }
}

impl DataAccessGroup for GroupObject {}
