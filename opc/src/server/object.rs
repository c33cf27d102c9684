//! The object that a client gets: IOPCServer and IOPCCommon. Browsing is in `super::browsing`.
//!
//! Who holds whom. The node holds the server's object, that owns a `ClientState`, which is what a client has, and
//! the desk owns the client of the engine. The groups' objects are held by the node too, and hold the desk
//! weakly. So all of a client ends with its server object: when its last reference is released, or when its
//! machine no longer pings.
//!
//! States of a group: *served*, from `publish` until `withdraw` or its end at the node, and then no more; in
//! between it may have been detached (RemoveGroup without force), and then ends with the last reference to
//! it.
//!
//! Invariants.
//! * A group is served exactly while it is in the desk's list, and its outbox is in the house's list for the
//!   same time.
//! * What a caller wants of an object is checked before the object is made; what was made and cannot be
//!   served is removed again.
//! * Of interfaces that were never offered here, those that clients are known to ask for have a reason in the
//!   failure (`check_offered`).
//! * No lock is held while the node exports, releases or withdraws an object.
//!
//! Bounds. Groups, items and enumerators count against `crate::Quotas`. OPC DA 2.05a, 4.4.3; OPC Common 1.10.

use super::ServerContext;
use super::enumerators::{EnumeratorState, lend};
use super::group::GroupObject;
use super::outbox::Outbox;
use super::wire::filetime;
use crate::Code;
use crate::client::{Client, LOCALES};
use crate::contract::{
    DataAccessGroup, DataAccessServer, GUID, IEnumString, IEnumUnknown, IOPCCommon, IOPCServer, OPCENUMSCOPE,
    OPCSERVERSTATE, OPCSERVERSTATUS,
};
use crate::group::{Group, GroupState};
use crate::source::ServerState;
use crate::sync::lock;
use crate::wire::text_of;
use everywire::{Bytes, Failure, Initiator, Kind, Reference, Remote, Signaller, Success};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

/// IUnknown, which every object has.
const UNKNOWN: &str = "00000000-0000-0000-c000-000000000046";
/// IConnectionPointContainer, which every object with callbacks has.
const CONTAINER: &str = "b196b284-bab4-101a-b69c-00aa00341d07";
/// Public groups, which 3.0 left out of the standard.
const PUBLIC: [&str; 2] = ["39c13a4e-011e-11d0-9675-0020afd8adb3", "39c13a51-011e-11d0-9675-0020afd8adb3"];
/// What 1.0 had for callbacks, before connection points.
const VERSION_1: [&str; 2] = ["39c13a53-011e-11d0-9675-0020afd8adb3", "0000010e-0000-0000-c000-000000000046"];

/// A server as one client sees it.
pub(super) struct ServerObject(Arc<ClientState>);

/// What a client has: shared with its groups' objects, which hold it weakly. It ends with the server's object.
pub(super) struct ClientState {
    /// What all clients share.
    pub(super) house: Weak<ServerContext>,
    /// The engine's client.
    pub(super) client: Arc<Client>,
    /// Itself, for groups.
    weak: Weak<ClientState>,
    /// The key under which the server's object is served.
    key: Bytes,
    /// The groups' objects, by handle.
    groups: Mutex<HashMap<u32, GroupReference>>,
}

/// A group's object.
struct GroupReference {
    /// The key under which it is served.
    key: String,
    /// The reference that callers get, each time the same.
    reference: Reference,
}

impl ServerObject {
    /// An object for somebody new.
    pub(super) fn open(house: &Arc<ServerContext>, key: &Bytes) -> Result<Arc<Self>, Failure> {
        let client = house.engine.client_of(everywire::asker().as_ref())?;
        let node = house.node.upgrade().ok_or(Code::FAIL)?;
        let signaller: Signaller<dyn DataAccessServer> = node.signaller(key);
        lock(&house.objects).insert(key.clone(), signaller);
        let (house, key) = (Arc::downgrade(house), key.clone());
        Ok(Arc::new(Self(Arc::new_cyclic(|weak| ClientState {
            house,
            client,
            weak: weak.clone(),
            key,
            groups: Mutex::default(),
        }))))
    }

    pub(super) fn desk(&self) -> &ClientState {
        &self.0
    }
}

impl ClientState {
    pub(super) fn house(&self) -> Result<Arc<ServerContext>, Code> {
        self.house.upgrade().ok_or(Code::FAIL)
    }

    /// Serves a group that was just added, from now on until it is removed.
    pub(super) fn publish(&self, group: &Arc<Group>) -> Result<Reference, Failure> {
        let house = self.house()?;
        let node = house.node.upgrade().ok_or(Code::FAIL)?;
        let handle = group.server_handle();
        let key = format!("opc/{}/{handle}", house.info.class);
        lock(&house.groups).insert(handle, Arc::new(Outbox::new(node.signaller(&key))));
        let (heard, hearing) = (Arc::downgrade(group), Mutex::default());
        node.on_audience(&key, move |told| {
            if let Some(group) = heard.upgrade() {
                super::later::heard(&group, &hearing, told);
            }
        });
        let object: Arc<dyn DataAccessGroup> =
            Arc::new(GroupObject { desk: self.weak.clone(), group: Arc::clone(group) });
        let (desk, house, ending) = (self.weak.clone(), self.house.clone(), Arc::downgrade(group));
        node.on_end(&key, move || {
            if let Some(group) = ending.upgrade() {
                group.end();
            }
            house.upgrade().map(|house| lock(&house.groups).remove(&handle));
            desk.upgrade().map(|desk| lock(&desk.groups).remove(&handle));
        });
        let reference = node.export(&key, object).reference().clone();
        lock(&self.groups).insert(handle, GroupReference { key, reference: reference.clone() });
        Ok(reference)
    }

    /// The object of a group.
    fn reference(&self, group: &Group) -> Result<Reference, Code> {
        let groups = lock(&self.groups);
        groups.get(&group.server_handle()).map(|served| served.reference.clone()).ok_or(Code::FAIL)
    }

    /// Serves a group as long as somebody refers to it. Whether somebody does.
    fn release(&self, group: &Group) -> bool {
        let key = lock(&self.groups).get(&group.server_handle()).map(|served| served.key.clone());
        let node = self.house.upgrade().and_then(|house| house.node.upgrade());
        let is_held = key.zip(node).is_some_and(|(key, node)| node.release(&key));
        if !is_held {
            group.end();
            self.withdraw(group.server_handle());
        }
        is_held
    }

    /// Serves a group no longer.
    fn withdraw(&self, handle: u32) {
        let Some(served) = lock(&self.groups).remove(&handle) else { return };
        if let Some(house) = self.house.upgrade() {
            lock(&house.groups).remove(&handle);
            if let Some(node) = house.node.upgrade() {
                node.withdraw(&served.key);
            }
        }
    }
}

impl Drop for ClientState {
    fn drop(&mut self) {
        let handles: Vec<u32> = lock(&self.groups).keys().copied().collect();
        handles.into_iter().for_each(|handle| self.withdraw(handle));
        if let Some(house) = self.house.upgrade() {
            lock(&house.objects).remove(&self.key);
        }
    }
}

/// Checks that an object of an interface has the one that a caller wants of it.
pub(super) fn check_offered<I: Remote + ?Sized>(riid: &GUID) -> Result<(), Failure> {
    let wanted = text_of(riid);
    if I::interface().is_a(&wanted) || [UNKNOWN, CONTAINER].contains(&wanted.as_str()) {
        return Ok(());
    }
    let why = if PUBLIC.contains(&wanted.as_str()) {
        "there are no public groups, which OPC Data Access 3.0 left out of the standard"
    } else if VERSION_1.contains(&wanted.as_str()) {
        "callbacks are those of version 2.0 (IOPCAsyncIO2 and IOPCDataCallback), not of 1.0"
    } else {
        "the object does not have it"
    };
    let what = format!("the interface {wanted} is not offered: {why}");
    Err(Failure::new(Kind::NoOperation, Initiator::User, what)
        .with_code(format!("{:#010x}", Code::NO_INTERFACE.0)))
}

impl IOPCServer for ServerObject {
    #[allow(clippy::too_many_arguments)]
    fn add_group(
        &self,
        name: &str,
        active: i32,
        requested_rate: u32,
        client_group: u32,
        time_bias: &Option<i32>,
        percent_deadband: &Option<f32>,
        locale: u32,
        riid: &GUID,
    ) -> Result<Success<(u32, u32, Option<Reference>)>, Failure> {
        check_offered::<dyn DataAccessGroup>(riid)?;
        let group = self.0.client.add_group(GroupState {
            name: name.to_owned(),
            active: active != 0,
            rate: requested_rate,
            time_bias: time_bias.unwrap_or_default(),
            deadband: percent_deadband.unwrap_or_default(),
            locale,
            client: client_group,
            ..GroupState::default()
        })?;
        let rate = group.state()?.rate;
        let reference = self.0.publish(&group).inspect_err(|_| {
            // Nobody could use it.
            let _ = self.0.client.remove_group(group.server_handle());
        })?;
        let code = if rate == requested_rate { Code::OK } else { Code::UNSUPPORTED_RATE };
        Ok(Success::with(code.signed(), (group.server_handle(), rate, Some(reference))))
    }

    fn get_error_string(&self, error: i32, locale: u32) -> Result<Option<String>, Failure> {
        error_string(error, locale)
    }

    fn get_group_by_name(&self, name: &str, riid: &GUID) -> Result<Option<Reference>, Failure> {
        check_offered::<dyn DataAccessGroup>(riid)?;
        let group = self.0.client.group_by_name(name).ok_or(Code::INVALID_ARGUMENT)?;
        Ok(Some(self.0.reference(&group)?))
    }

    fn get_status(&self) -> Result<Option<OPCSERVERSTATUS>, Failure> {
        let house = self.0.house()?;
        let (major_version, minor_version, build_number) = house.info.version;
        Ok(Some(OPCSERVERSTATUS {
            start_time: filetime(house.started),
            current_time: filetime(house.now().time),
            last_update_time: filetime(house.engine.last_update()),
            state: match house.engine.source().state() {
                ServerState::Running => OPCSERVERSTATE::OpcStatusRunning,
                ServerState::Failed => OPCSERVERSTATE::OpcStatusFailed,
                ServerState::NoConfig => OPCSERVERSTATE::OpcStatusNoconfig,
                ServerState::Suspended => OPCSERVERSTATE::OpcStatusSuspended,
                ServerState::Test => OPCSERVERSTATE::OpcStatusTest,
                ServerState::CommFault => OPCSERVERSTATE::OpcStatusCommFault,
            },
            group_count: u32::try_from(self.0.client.groups().len()).unwrap_or(u32::MAX),
            // Not known (OPC DA 2.05a, 4.4.3.4).
            band_width: u32::MAX,
            major_version,
            minor_version,
            build_number,
            reserved: 0,
            vendor_info: Some(house.info.vendor.clone()),
        }))
    }

    fn remove_group(&self, server_group: u32, force: i32) -> Result<Success<()>, Failure> {
        if force == 0 {
            let group = self.0.client.detach_group(server_group)?;
            // It ends with its last reference (OPC DA 2.05a, 4.4.3.5).
            let code = if self.0.release(&group) { Code::IN_USE } else { Code::OK };
            return Ok(Success::with(code.signed(), ()));
        }
        // Whoever holds a reference to it is told that it is gone.
        self.0.client.remove_group(server_group)?;
        self.0.withdraw(server_group);
        Ok(().into())
    }

    fn create_group_enumerator(
        &self,
        scope: OPCENUMSCOPE,
        riid: &GUID,
    ) -> Result<Success<Option<Reference>>, Failure> {
        let groups = match scope {
            OPCENUMSCOPE::OpcEnumPublicConnections | OPCENUMSCOPE::OpcEnumPublic => Vec::new(),
            OPCENUMSCOPE::OpcEnumPrivateConnections
            | OPCENUMSCOPE::OpcEnumAllConnections
            | OPCENUMSCOPE::OpcEnumPrivate
            | OPCENUMSCOPE::OpcEnumAll => self.0.client.groups(),
            _ => return Err(Code::INVALID_ARGUMENT.into()),
        };
        let (node, seat) = (&self.0.house()?.node, self.0.client.enumerator()?);
        let code = if groups.is_empty() { Code::FALSE } else { Code::OK };
        let wanted = text_of(riid);
        let reference = if wanted == <dyn IEnumString>::interface().id {
            let names = groups.iter().filter_map(|group| Some(Some(group.state().ok()?.name))).collect();
            let tape: Arc<dyn IEnumString> =
                Arc::new(EnumeratorState::<Option<String>>::of(node.clone(), seat, names)?);
            lend(node, tape)?.reference().clone()
        } else {
            check_offered::<dyn IEnumUnknown>(riid)?;
            let objects = groups.iter().filter_map(|group| self.0.reference(group).ok().map(Some)).collect();
            let tape: Arc<dyn IEnumUnknown> =
                Arc::new(EnumeratorState::<Option<Reference>>::of(node.clone(), seat, objects)?);
            lend(node, tape)?.reference().clone()
        };
        Ok(Success::with(code.signed(), Some(reference)))
    }
}

impl IOPCCommon for ServerObject {
    fn set_locale_id(&self, locale: u32) -> Result<(), Failure> {
        Ok(self.0.client.set_locale(locale)?)
    }

    fn get_locale_id(&self) -> Result<u32, Failure> {
        Ok(self.0.client.locale())
    }

    fn query_available_locale_ids(&self) -> Result<Vec<u32>, Failure> {
        Ok(LOCALES.to_vec())
    }

    fn get_error_string(&self, error: i32) -> Result<Option<String>, Failure> {
        error_string(error, self.0.client.locale())
    }

    fn set_client_name(&self, name: &str) -> Result<(), Failure> {
        self.0.client.set_name(name);
        Ok(())
    }
}

/// The text of a code, in a language that there is: the standard's, or the one that COM has for it.
fn error_string(error: i32, locale: u32) -> Result<Option<String>, Failure> {
    if !LOCALES.contains(&locale) {
        return Err(Code::INVALID_ARGUMENT.into());
    }
    let code = Code(error.cast_unsigned());
    let known = || everywire::com::hresult::name(code.0).map(|(_, text)| text);
    match code.text().or_else(known) {
        Some(text) => Ok(Some(text.to_owned())),
        None => Err(Code::INVALID_ARGUMENT.into()),
    }
}

impl DataAccessServer for ServerObject {}
