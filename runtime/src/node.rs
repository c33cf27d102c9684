//! A node: a process's place among others. It listens, exports servants, and connects to objects. This file
//! is the public face; the work is done in `Shared` and the files that add to it (`links`, `joining`,
//! `lending`, `emitting`, `stopping`, `view`).
//!
//! States: *made* (nothing runs: no thread, no socket); *serving*, from the first listener or asynchronous
//! call on, which start the event loops; *draining* (`Node::drain`): new calls are refused, those under way
//! go on; *stopped* ([`Node::stop`], or the last clone was dropped). There is no way back, but a stopped node
//! still resolves references, and its threads still call.
//!
//! Ownership: clones of a `Node` share one `Guard`; its end stops the node and clears what may hold it.
//! References, connections and event loops hold `Shared` and not the guard, so they do not keep a node
//! running. A servant that needs its node takes a `WeakNode`, since the node holds the servant.
//!
//! Invariants: what is exported is reached by callers of this process as soon as the function returns, and by
//! others once something listens; references name the addresses of the moment at which they are made; layers
//! (`Builder::layer`) stand before everything that a user exports, and before nothing that a wire itself
//! answers.

use crate::builder::Builder;
use crate::connection::Role;
use crate::directory::{Class, Entry};
use crate::failures::stopped;
use crate::monitor::Monitor;
use crate::private_connections::PrivateConnections;
use crate::shared::{Shared, in_process};
use crate::stranger::{self, ProbeTime};
use crate::transport::layers;
use bytes::Bytes;
use everywire_model::object::Remote as RemoteTrait;
use everywire_model::{
    BindAddress, Emitter, Endpoint, Failure, Hold, Initiator, Interface, Kind, Object, PresenceList, Profile,
    Ref, Reference, Resolver, Servant, Signaller, Wire,
};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A process's place among others. Clones are the same node; when the last is dropped, it stops listening and its
/// connections end at once (typed references keep working as callers); [`Node::stop`] lets calls end before.
#[derive(Clone)]
pub struct Node {
    pub(crate) guard: Arc<Guard>,
}

/// What clones of a node share: with its end the node stops.
pub(crate) struct Guard {
    pub(crate) shared: Arc<Shared>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.shared.stop();
        // Servants may hold references that hold this node.
        self.shared.directory.clear();
        self.shared.listeners.clear();
        self.shared.hooks.clear();
    }
}

impl Builder {
    /// The node. Nothing is started yet: event loops begin with the first listener or asynchronous call.
    pub fn build(self) -> Node {
        Node::of(Shared::new(self))
    }
}

impl Node {
    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { guard: Arc::new(Guard { shared }) }
    }

    /// A builder for a node that speaks these wires.
    pub fn builder(wires: &[&'static dyn Wire]) -> Builder {
        Builder::new(wires)
    }

    /// Listens at a friendly address of any wire, such as `SCHEME://127.0.0.1:0`, `SCHEME+unix:///run/app.sock`,
    /// `SCHEME+shm:///run/app.shm` or `inproc://name`, and returns it with the port that was bound. Where others reach it is said
    /// by [`Node::published`]: nobody can call `0.0.0.0`.
    ///
    /// # Errors
    /// The address is wrong or taken, or the node was stopped ([`Kind::Cancelled`]): it serves nothing any more.
    pub fn listen(&self, address: &str) -> Result<String, Failure> {
        let shared = &self.guard.shared;
        if shared.stopped.load(Ordering::Acquire) {
            return Err(stopped().at(address).with_hint("build a new node: one that was stopped stays so"));
        }
        if let Some(name) = address.strip_prefix("inproc://") {
            let name = name.trim_end_matches('/');
            shared.listen_in_process(name)?;
            return Ok(format!("inproc://{name}/"));
        }
        let wire = shared.wire_of(address)?;
        let place = shared.serve_at(wire, address)?;
        Ok(wire.print_friendly(&wire.publish("", &[place], b"")))
    }

    /// Where [`Node::listen`] would serve by this address. Nothing is opened: only files that it names are read, such as certificates.
    ///
    /// # Errors
    /// It is no address to listen at, or a file that it names cannot be used.
    pub fn place(&self, address: &str) -> Result<BindAddress, Failure> {
        let shared = &self.guard.shared;
        let (place, ..) = shared.place_at(shared.wire_of(address)?, address)?;
        if let BindAddress::Listen(profile) = &place {
            profile.endpoints.iter().try_for_each(|endpoint| layers::listening(endpoint).map(drop))?;
        }
        Ok(place)
    }

    /// Where others reach this node: the addresses that its references name now, in the friendly notation, of each listener the
    /// preferred first. A listener at `0.0.0.0` or `[::]` has those of the machine, one with the option `publish=HOST[:PORT]` that
    /// one.
    pub fn published(&self) -> Vec<String> {
        self.addresses(&self.guard.shared.publish("", b""))
    }

    /// Each address that a reference names, in the friendly notation, the preferred first.
    pub fn addresses(&self, reference: &Reference) -> Vec<String> {
        let each = reference.ways().map(|(profile, endpoint)| {
            let profile = Profile { endpoints: vec![endpoint.clone()], ..profile.clone() };
            Reference { type_id: reference.type_id.clone(), profiles: vec![profile], foreign: Vec::new() }
        });
        each.map(|reference| self.print_friendly(&reference)).collect()
    }

    /// Serves a typed servant under a key. Without listeners it can be reached by callers of this process only.
    pub fn export<I: RemoteTrait + ?Sized>(&self, key: impl AsRef<[u8]>, servant: Arc<I>) -> Ref<I> {
        let key = Bytes::copy_from_slice(key.as_ref());
        let type_id = I::interface().id.clone();
        self.guard.shared.export(&key, Entry::typed(Arc::clone(&servant)));
        let emitter = Arc::clone(&self.guard.shared) as Arc<dyn Emitter>;
        Ref::local(servant, self.guard.shared.publish(&type_id, &key), key, emitter)
    }

    /// Serves a typed servant under a fresh key, until it is withdrawn: for callbacks. [`Node::lend`] serves it until nobody refers to
    /// it any more.
    pub fn export_anonymous<I: RemoteTrait + ?Sized>(&self, servant: Arc<I>) -> Ref<I> {
        self.export(self.guard.shared.directory.fresh_key(), servant)
    }

    /// Serves an untyped servant under a key.
    pub fn export_servant(&self, key: impl AsRef<[u8]>, servant: Arc<dyn Servant>) -> Reference {
        let key = Bytes::copy_from_slice(key.as_ref());
        let type_id = servant.interface().id.clone();
        self.guard.shared.export(&key, Entry::new(servant));
        self.guard.shared.publish(&type_id, &key)
    }

    /// Serves every object whose key begins so and that is not served by itself: of several prefixes the longest. Calls of operations
    /// that the servant's interface has come with their number, all others with [`everywire_model::Request::UNKNOWN`]; what it has not answered holds
    /// back the connection it came by.
    pub fn export_prefix(&self, prefix: impl AsRef<[u8]>, servant: Arc<dyn Servant>) {
        let entry = Entry::new(servant).behind(&self.guard.shared.layers);
        self.guard.shared.directory.insert_prefix(Bytes::copy_from_slice(prefix.as_ref()), entry);
        self.guard.shared.await_all_callbacks();
        self.guard.shared.prefixes_changed();
    }

    /// Serves the objects whose keys begin so no longer, unless another prefix fits. Returns whether the
    /// prefix was served.
    pub fn withdraw_prefix(&self, prefix: impl AsRef<[u8]>) -> bool {
        let removed = self.guard.shared.directory.remove_prefix(prefix.as_ref());
        self.guard.shared.prefixes_changed();
        removed
    }

    /// Serves the key no longer. Returns whether it was served.
    pub fn withdraw(&self, key: impl AsRef<[u8]>) -> bool {
        self.guard.shared.withdraw(key.as_ref())
    }

    /// Serves one interface of an object no longer, by its identity; those beside it are served all the time. Returns whether it was served.
    pub fn withdraw_interface(&self, key: impl AsRef<[u8]>, id: &str) -> bool {
        self.guard.shared.withdraw_interface(key.as_ref(), id)
    }

    /// Serves a class: whoever asks for an object of it, on wires where one can, gets a new one, which `make` makes. It is
    /// given the key under which the object will be served; [`crate::asker`] tells it for whom.
    pub fn export_class<I: RemoteTrait + ?Sized>(
        &self,
        key: impl AsRef<[u8]>,
        make: impl Fn(&Bytes) -> Result<Arc<I>, Failure> + Send + Sync + 'static,
    ) {
        let make = Box::new(move |key: &Bytes| make(key).map(|servant| vec![Entry::typed(servant)]));
        self.add_class(key.as_ref(), Class { interface: Hold::Static(I::interface()), make });
    }

    /// Serves a class of objects that are not typed, or have several interfaces: a servant for each.
    pub fn export_class_servants(
        &self,
        key: impl AsRef<[u8]>,
        interface: Hold<Interface>,
        make: impl Fn(&Bytes) -> Result<Vec<Arc<dyn Servant>>, Failure> + Send + Sync + 'static,
    ) {
        let make = Box::new(move |key: &Bytes| Ok(make(key)?.into_iter().map(Entry::new).collect()));
        self.add_class(key.as_ref(), Class { interface, make });
    }

    /// Makes no more objects of a class; those that were made are served on. Returns whether the class was served.
    pub fn withdraw_class(&self, key: impl AsRef<[u8]>) -> bool {
        self.guard.shared.directory.remove_class(key.as_ref())
    }

    /// A class is known by its key alone; an earlier one under this key is replaced.
    fn add_class(&self, key: &[u8], class: Class) {
        self.guard.shared.directory.add_class(Bytes::copy_from_slice(key), class);
    }

    /// The classes that are served, with the identity of their objects' interface.
    pub fn classes(&self) -> Vec<(Bytes, String)> {
        let classes = self.guard.shared.directory.classes();
        classes.into_iter().map(|(key, interface)| (key, interface.id.to_string())).collect()
    }

    /// A reference that leads to a class served here: whoever follows it gets a new object.
    pub fn class_reference(&self, key: impl AsRef<[u8]>) -> Option<Reference> {
        let shared = &self.guard.shared;
        let class = shared.directory.class(key.as_ref())?;
        Some(shared.publish(&class.interface.id, key.as_ref()))
    }

    /// The keys that are served, with the identity of each object's interface.
    pub fn exported(&self) -> Vec<(Bytes, String)> {
        let directory = &self.guard.shared.directory;
        directory
            .keys()
            .into_iter()
            .flat_map(|key| {
                let entries = directory.get(&key);
                entries.into_iter().map(move |entry| (key.clone(), entry.servant.interface().id.to_string()))
            })
            .collect()
    }

    /// The reference of an object that is served under a key, at all addresses this node listens on now.
    pub fn reference(&self, key: impl AsRef<[u8]>) -> Option<Reference> {
        let shared = &self.guard.shared;
        let entry = shared.directory.get(key.as_ref()).into_iter().next()?;
        Some(shared.publish(&entry.servant.interface().id, key.as_ref()))
    }

    /// A reference to a key at all addresses this node listens on now, whatever serves it.
    pub fn published_as(&self, type_id: &str, key: impl AsRef<[u8]>) -> Reference {
        self.guard.shared.publish(type_id, key.as_ref())
    }

    /// A typed reference to an object, from text in any notation of any wire. Connects at the first call, unless the text is a name that
    /// a service keeps ([`Node::find`]).
    pub fn connect<I: RemoteTrait + ?Sized>(&self, text: &str) -> Result<Ref<I>, Failure> {
        Ref::resolve(&*self.guard.shared, self.find(text)?)
    }

    /// An untyped object, from text in any notation of any wire.
    pub fn object(&self, text: &str) -> Result<Object, Failure> {
        self.guard.shared.resolve(&self.find(text)?)
    }

    /// The reference that a text means. A name that a service keeps is looked up there: then this waits for that service's answer.
    pub fn find(&self, text: &str) -> Result<Reference, Failure> {
        let shared = &self.guard.shared;
        let asked = shared.wire_of(text).ok().and_then(|wire| wire.look_up(text, &**shared));
        asked.unwrap_or_else(|| self.parse(text))
    }

    /// The failure of a call, told as what it is if another protocol answers where the object is: of the kind
    /// [`Kind::WrongWire`](everywire_model::Kind), with the protocol's name and what to try. Others come back as they are. It connects
    /// there some times and waits for answers: call it before a failure is shown to people, not at each.
    #[must_use]
    pub fn diagnose(&self, failure: Failure, reference: &Reference) -> Failure {
        let builder = &self.guard.shared.builder;
        let usual = ProbeTime::behind(failure.kind());
        let time = builder.probe_time.map_or(usual, |each| usual.with_each(each));
        stranger::named(failure, reference, &builder.wires, time)
    }

    /// The object behind a reference that came as data.
    pub fn resolve(&self, reference: &Reference) -> Result<Object, Failure> {
        self.guard.shared.resolve(reference)
    }

    /// Connections that only objects resolved by it call over: for hops, which have a set for each client.
    pub fn apart(&self) -> Arc<PrivateConnections> {
        PrivateConnections::new(self.guard.shared.weak())
    }

    /// The typed object behind a reference that came as data.
    pub fn narrow<I: RemoteTrait + ?Sized>(&self, reference: Reference) -> Result<Ref<I>, Failure> {
        Ref::resolve(&*self.guard.shared, reference)
    }

    /// Reads a reference in any notation of any wire.
    pub fn parse(&self, text: &str) -> Result<Reference, Failure> {
        if let Some(rest) = text.strip_prefix("inproc://") {
            let (name, key) = rest.split_once('/').unwrap_or((rest, ""));
            return Ok(in_process(name, key.as_bytes()));
        }
        self.guard.shared.wire_of(text)?.parse(text)
    }

    /// Writes a reference in the notation that foreign programs read.
    pub fn print(&self, reference: &Reference) -> String {
        match self.guard.shared.wire_for(reference) {
            Some(wire) => wire.print(reference),
            None => self.print_friendly(reference),
        }
    }

    /// Writes a reference in the friendly notation.
    pub fn print_friendly(&self, reference: &Reference) -> String {
        if let Some(wire) = self.guard.shared.wire_for(reference) {
            return wire.print_friendly(reference);
        }
        match reference.ways().next() {
            Some((profile, Endpoint::InProcess { name })) => {
                format!("inproc://{name}/{}", everywire_model::reference::escape(&profile.key))
            }
            _ => String::from("(a reference without an address)"),
        }
    }

    /// Emits the signals of the object under a key, which may be exported later: for servants that emit, because it does not
    /// hold the node that holds them.
    pub fn signaller<I: RemoteTrait + ?Sized>(&self, key: impl AsRef<[u8]>) -> Signaller<I> {
        let shared: Weak<dyn Emitter> = self.guard.shared.weak();
        Signaller::new(shared, Bytes::copy_from_slice(key.as_ref()))
    }

    /// What emits the signals of objects served here, by their keys: for servants that are not typed.
    pub fn emitter(&self) -> Arc<dyn Emitter> {
        Arc::clone(&self.guard.shared) as Arc<dyn Emitter>
    }

    /// Who is there to be called, at an address of any wire, and what was left out.
    pub fn list(&self, text: &str) -> Result<PresenceList, Failure> {
        self.guard.shared.wire_of(text)?.list(text, &*self.guard.shared)
    }

    /// Overhears what others say at an address, where the wire has a router that lets one.
    pub fn monitor(&self, text: &str) -> Result<Monitor, Failure> {
        let shared = &self.guard.shared;
        let wire = shared.wire_of(text)?;
        let reference = wire.parse(text)?;
        let Some(profile) = reference.profiles.first() else {
            return Err(Failure::new(Kind::BadReference, Initiator::User, format!("`{text}` leads nowhere")));
        };
        Ok(Monitor { connection: shared.open(wire, profile, Role::Monitoring, None)? })
    }

    /// Connections that were accepted and are open.
    pub fn connections(&self) -> usize {
        self.guard.shared.shares().iter().map(|shares| shares.open()).sum()
    }

    /// Bytes that accepted connections hold of what the quota [`crate::Quotas::memory`] allows; small amounts are not counted.
    pub fn memory_held(&self) -> usize {
        self.guard.shared.shares().iter().map(|shares| shares.used()).sum()
    }

    /// What a program keeps for its callers counts against the quota [`crate::Quotas::memory`] as what their connections hold does: it
    /// keeps `now` bytes, and kept `before`. Returns how many it may keep, a quarter of all; what is more is for the program to refuse.
    pub fn keeps(&self, before: usize, now: usize) -> usize {
        self.guard.shared.allowance.shares.beside(before, now)
    }

    /// Stops listening, and refuses every call from now on in its wire's words, as one that was not executed. Calls that are under
    /// way go on. Returns at once; [`Node::stop`] has the end of it.
    pub fn drain(&self) {
        self.guard.shared.drain();
    }

    /// From now on this is the largest message of connections that begin, in bytes; `None`: what each wire says. It stands in place of
    /// all that [`Builder::limits`] said, and the memory of all connections becomes enough for two such messages. Connections that are
    /// open keep their limits.
    pub fn set_max_message(&self, bytes: Option<u64>) {
        self.guard.shared.limit_messages(bytes);
    }

    /// Stops: drains, lets calls under way end and be answered for the time that [`Builder::grace`] gives, then says goodbye on
    /// all connections and ends them. Calls that take longer end without an answer, and nobody is told that they did not run.
    pub fn stop(&self) {
        self.stop_within(self.guard.shared.builder.grace);
    }

    /// The same with another time for the calls that are under way.
    pub fn stop_within(&self, grace: Duration) {
        self.guard.shared.stop_within(grace);
    }

    /// Waits until the node is stopped, by whoever does that: what the main thread of a server does.
    pub fn wait(&self) {
        crate::shard::about_to_block();
        self.guard.shared.end.wait();
    }
}
