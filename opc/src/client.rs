//! A client: its groups, by handle and by name, and where it is in the address space.
//!
//! A group belongs to one client, and its name is unique there. When the client ends, its groups end.

use crate::Code;
use crate::browse::Position;
use crate::engine::Engine;
use crate::group::{Group, GroupState};
use crate::share::{EnumeratorCharge, Share};
use crate::sync::lock;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, Weak};

/// What somebody has at a server.
pub struct Client {
    engine: Arc<Engine>,
    /// Whose place it has, where that is known.
    account: Option<Arc<str>>,
    share: Arc<Share>,
    state: Mutex<State>,
}

/// What a client has, under one lock. A group is in `groups` and its name in `names`, or it is in neither
/// and, if it was detached, in `leaving`.
#[derive(Default)]
struct State {
    /// By the server's handle. Handles rise until they begin anew, so this is the order in which groups were added.
    groups: BTreeMap<u32, Arc<Group>>,
    /// Handles by name.
    names: HashMap<String, u32>,
    /// Groups that were removed while somebody still referred to them.
    leaving: Vec<Weak<Group>>,
    /// Where the client is in the address space; copied out while the source is asked.
    position: Position,
    /// The language that was set, one of `LOCALES`.
    locale: u32,
    /// What the client calls itself, cut to 256 characters.
    name: String,
    /// Numbers groups that have no name.
    next: u32,
}

impl Client {
    /// A client in English, with nothing. It is counted already, and gives its place back when it is dropped.
    pub(crate) fn new(engine: Arc<Engine>, account: Option<Arc<str>>) -> Arc<Self> {
        let state = State { locale: 0x409, ..State::default() };
        let share = Arc::new(Share::of(&engine.held));
        Arc::new(Self { engine, account, share, state: Mutex::new(state) })
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Adds a group; one without a name gets one. The rate that it has at last is in its state.
    ///
    /// # Errors
    /// [`Code::DUPLICATE_NAME`]; [`Code::INVALID_ARGUMENT`]: a deadband that is no percentage; [`Code::OUT_OF_MEMORY`].
    pub fn add_group(&self, asked: GroupState) -> Result<Arc<Group>, Code> {
        asked.check()?;
        let mut state = lock(&self.state);
        let name = self.admit(&mut state, &asked.name)?;
        let group = Group::new(&self.engine, &self.share, GroupState { name: name.clone(), ..asked });
        state.names.insert(name, group.server_handle());
        state.groups.insert(group.server_handle(), Arc::clone(&group));
        Ok(group)
    }

    /// A copy of a group and its items, with handles of its own; it is not active, and nobody listens to it (OPC DA 2.05a,
    /// 4.5.3.4).
    ///
    /// # Errors
    /// As [`Client::add_group`].
    pub fn clone_group(&self, of: &Group, name: &str) -> Result<Arc<Group>, Code> {
        let before = of.state()?;
        let asked = GroupState { name: name.to_owned(), active: false, ..before };
        let copy = self.add_group(asked)?;
        if let Err(code) = of.copy_items(&copy) {
            self.remove_group(copy.server_handle())?;
            return Err(code);
        }
        Ok(copy)
    }

    /// Checks that there is room for one more group and gives the name that it is to have: the one that was
    /// asked for, or the next `GroupN` that is free. Those that are leaving but still held somewhere count
    /// too, since they go on costing.
    fn admit(&self, state: &mut State, name: &str) -> Result<String, Code> {
        /// A longer name is nobody's idea of one.
        const LONGEST: usize = 4096;
        state.leaving.retain(|group| group.upgrade().is_some_and(|group| !group.is_over()));
        let held = state.groups.len() + state.leaving.len();
        if held >= self.engine.settings.quotas.groups || name.len() > LONGEST {
            return Err(Code::OUT_OF_MEMORY);
        }
        if name.is_empty() {
            loop {
                state.next = state.next.wrapping_add(1);
                let made = format!("Group{}", state.next);
                if !state.names.contains_key(&made) {
                    return Ok(made);
                }
            }
        }
        if state.names.contains_key(name) { Err(Code::DUPLICATE_NAME) } else { Ok(name.to_owned()) }
    }

    /// Gives a group another name.
    ///
    /// # Errors
    /// [`Code::INVALID_ARGUMENT`]: it is empty; [`Code::DUPLICATE_NAME`]; [`Code::FAIL`]: the group was removed.
    pub fn rename(&self, group: &Group, name: &str) -> Result<(), Code> {
        if name.is_empty() {
            return Err(Code::INVALID_ARGUMENT);
        }
        let mut state = lock(&self.state);
        if !state.groups.contains_key(&group.server_handle()) {
            return Err(Code::FAIL);
        }
        let before = group.state()?.name;
        if before == name {
            return Ok(());
        }
        if state.names.contains_key(name) {
            return Err(Code::DUPLICATE_NAME);
        }
        state.names.remove(&before);
        state.names.insert(name.to_owned(), group.server_handle());
        group.set_name(name);
        Ok(())
    }

    /// The group with this handle.
    #[must_use]
    pub fn group(&self, handle: u32) -> Option<Arc<Group>> {
        lock(&self.state).groups.get(&handle).cloned()
    }

    /// The group with this name.
    #[must_use]
    pub fn group_by_name(&self, name: &str) -> Option<Arc<Group>> {
        let state = lock(&self.state);
        state.names.get(name).and_then(|handle| state.groups.get(handle)).cloned()
    }

    /// All groups, in the order in which they were added.
    #[must_use]
    pub fn groups(&self) -> Vec<Arc<Group>> {
        lock(&self.state).groups.values().cloned().collect()
    }

    /// Removes a group: it and its items are no more.
    ///
    /// # Errors
    /// [`Code::INVALID_HANDLE`].
    pub fn remove_group(&self, handle: u32) -> Result<Arc<Group>, Code> {
        let group = self.detach_group(handle)?;
        group.end();
        Ok(group)
    }

    /// Takes a group out of the client's list; it goes on until it is dropped, or the client ends, and counts among the client's groups
    /// until then.
    ///
    /// # Errors
    /// [`Code::INVALID_HANDLE`].
    pub(crate) fn detach_group(&self, handle: u32) -> Result<Arc<Group>, Code> {
        let mut state = lock(&self.state);
        let group = state.groups.remove(&handle).ok_or(Code::INVALID_HANDLE)?;
        if let Ok(held) = group.state() {
            state.names.remove(&held.name);
        }
        state.leaving.push(Arc::downgrade(&group));
        Ok(group)
    }

    /// Room for one more enumerator, which is given back when what this returns is dropped.
    ///
    /// # Errors
    /// [`Code::OUT_OF_MEMORY`]: the client has as many as it may have.
    pub(crate) fn enumerator(&self) -> Result<EnumeratorCharge, Code> {
        self.share.enumerator(self.engine.settings.quotas.enumerators)
    }

    /// What the client holds: items, bytes and enumerators.
    #[must_use]
    pub fn held(&self) -> (usize, usize, usize) {
        self.share.held()
    }

    /// Reads or changes the position in the address space.
    pub fn with_position<T>(&self, deed: impl FnOnce(&mut Position) -> T) -> T {
        // The source is asked without the lock.
        let mut position = lock(&self.state).position.clone();
        let result = deed(&mut position);
        lock(&self.state).position = position;
        result
    }

    /// The language of texts, by number.
    #[must_use]
    pub fn locale(&self) -> u32 {
        lock(&self.state).locale
    }

    /// Sets the language of texts.
    ///
    /// # Errors
    /// [`Code::INVALID_ARGUMENT`]: there are no texts in it.
    pub fn set_locale(&self, locale: u32) -> Result<(), Code> {
        if !LOCALES.contains(&locale) {
            return Err(Code::INVALID_ARGUMENT);
        }
        lock(&self.state).locale = locale;
        Ok(())
    }

    /// What the client calls itself, for logs.
    #[must_use]
    pub fn name(&self) -> String {
        lock(&self.state).name.clone()
    }

    /// The client says what it is called.
    pub fn set_name(&self, name: &str) {
        name.chars().take(256).collect::<String>().clone_into(&mut lock(&self.state).name);
    }
}

/// The languages in which there are texts: the user's and the system's own, and English.
pub const LOCALES: [u32; 4] = [0x0000, 0x0400, 0x0800, 0x0409];

impl Drop for Client {
    fn drop(&mut self) {
        let state = std::mem::take(&mut *lock(&self.state));
        let leaving: Vec<_> = state.leaving.iter().filter_map(Weak::upgrade).collect();
        state.groups.values().chain(&leaving).for_each(|group| group.end());
        self.engine.client_left(self.account.as_ref());
    }
}
