//! Nodes in memory: objects, an exporter for each, and calls between them as bytes.

use everywire_dcom::address::TAG_SYSTEM;
use everywire_dcom::exporter::{Correspondence, Exporter, Proxy};
use everywire_dcom::ndr::References;
use everywire_dcom::remunknown::{self, Query};
use everywire_dcom::resolver;
use everywire_dcom::security::{Level, Security};
use everywire_dcom::standard::rem_unknown::REM_UNKNOWN2;
use everywire_dcom::stub::Get;
use everywire_dcom::{DCOM, NDR, NdrSink, OBJECT_EXPORTER, iid_of, opnum_base};
use everywire_model::object::{Completion, Local, Target, Ticket};
use everywire_model::signal::Audience;
use everywire_model::{
    Answer, Attachments, BindAddress, Body, BoxFuture, Budget, Bytes, CallId, Emission, Encode, Endpoint,
    Expects, Failure, Hold, Incoming, Initiator, Interface, Kind, Link, Method, NodeState, Object, Objects,
    Outcome, Peer, Profile, Reference, Request, Resolver, Servant, Wire, WireState,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::ThreadId;
use std::time::Duration;
use uuid::Uuid;

/// Makes the servants of an object.
pub(crate) type Make = Box<dyn Fn() -> Result<Arc<dyn Servant>, Failure> + Send + Sync>;

/// What its objects will be, and what makes them.
type Class = (Hold<Interface>, Arc<Make>);

/// Who asks whether an object is there, and how long the answer may take.
pub(crate) type Question = (ThreadId, Option<Duration>);

/// All nodes there are, and who can reach whom.
#[derive(Default)]
pub(crate) struct Net {
    nodes: Mutex<HashMap<Endpoint, Weak<Node>>>,
    /// Calls made, by interface and opnum.
    pub(crate) calls: Mutex<Vec<(Uuid, u16)>>,
    /// Done before each call of a system interface.
    pub(crate) before: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
    /// Where it is told of such questions: then none is answered.
    pub(crate) mute: Mutex<Option<Sender<Question>>>,
}

/// One node.
pub(crate) struct Node {
    pub(crate) exporter: Arc<Exporter>,
    pub(crate) store: Arc<Store>,
}

/// Its objects.
pub(crate) struct Store {
    net: Arc<Net>,
    this: Weak<Self>,
    pub(crate) endpoint: Endpoint,
    objects: Mutex<BTreeMap<Bytes, Vec<Arc<dyn Servant>>>>,
    classes: Mutex<BTreeMap<Bytes, Class>>,
    exporter: Mutex<Weak<Exporter>>,
    fresh: AtomicUsize,
    pub(crate) attended: AtomicUsize,
    /// Where it is told who listens.
    pub(crate) audience: Mutex<Option<Sender<Audience>>>,
    /// Done once, before an object is exported.
    pub(crate) meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Net {
    /// A node that listens at this port.
    pub(crate) fn node(self: &Arc<Self>, port: u16) -> Arc<Node> {
        self.node_with(port, everywire_dcom::exporter::PING_PERIOD)
    }

    pub(crate) fn node_with(self: &Arc<Self>, port: u16, period: Duration) -> Arc<Node> {
        let endpoint = Endpoint::Tcp { host: "127.0.0.1".into(), port };
        let store = Arc::new_cyclic(|this| Store {
            net: Arc::clone(self),
            this: Weak::clone(this),
            endpoint: endpoint.clone(),
            objects: Mutex::default(),
            classes: Mutex::default(),
            exporter: Mutex::default(),
            fresh: AtomicUsize::new(0),
            attended: AtomicUsize::new(0),
            audience: Mutex::default(),
            meanwhile: Mutex::default(),
        });
        let exporter = Exporter::with_period(Arc::clone(&store) as Arc<dyn Objects>, period);
        *store.exporter.lock().unwrap() = exporter.weak();
        let node = Arc::new(Node { exporter, store });
        self.nodes.lock().unwrap().insert(endpoint, Arc::downgrade(&node));
        node
    }

    fn at(&self, endpoints: &[Endpoint]) -> Result<Arc<Node>, Failure> {
        let nodes = self.nodes.lock().unwrap();
        endpoints
            .iter()
            .find_map(|endpoint| nodes.get(endpoint)?.upgrade())
            .ok_or_else(|| Failure::new(Kind::Unreachable, Initiator::Peer, "nobody is there"))
    }

    /// The node is there no longer.
    pub(crate) fn cut(&self, node: &Node) {
        self.nodes.lock().unwrap().remove(&node.store.endpoint);
    }
}

pub(crate) fn security() -> Arc<Security> {
    static NONE: OnceLock<Arc<Security>> = OnceLock::new();
    Arc::clone(NONE.get_or_init(|| Arc::new(Security::new(Level::None))))
}

impl Node {
    pub(crate) fn insert(&self, key: &str, servant: Arc<dyn Servant>) {
        self.store.insert(Bytes::copy_from_slice(key.as_bytes()), servant);
    }

    pub(crate) fn class(&self, key: &str, interface: &'static Interface, make: Make) {
        let class = (Hold::Static(interface), Arc::new(make));
        self.store.classes.lock().unwrap().insert(Bytes::copy_from_slice(key.as_bytes()), class);
    }

    pub(crate) fn has(&self, key: &[u8]) -> bool {
        self.store.objects.lock().unwrap().contains_key(key)
    }

    pub(crate) fn correspondence(&self) -> Arc<Correspondence> {
        Arc::new(Correspondence::new(Arc::clone(&self.exporter), security(), ""))
    }

    /// Gets an OBJREF.
    pub(crate) fn adopt(&self, objref: &Bytes) -> Result<Reference, Failure> {
        self.correspondence().unmarshal(objref.clone(), 0)
    }

    /// Calls a servant of this node by bytes, as its session would.
    pub(crate) fn call(
        &self,
        key: &[u8],
        iid: Uuid,
        opnum: u16,
        stub: &[u8],
        who: &str,
    ) -> Result<Body, Failure> {
        let incoming = Incoming {
            id: CallId(1),
            sender: Bytes::copy_from_slice(who.as_bytes()),
            key: Bytes::copy_from_slice(key),
            interface: Bytes::copy_from_slice(&iid.to_bytes_le()),
            operation: Bytes::copy_from_slice(&opnum.to_le_bytes()),
            body: self.body(Bytes::copy_from_slice(stub)),
            expects: Expects::Reply,
        };
        let own = if key.is_empty() { Vec::new() } else { self.store.servants(key) };
        let mut all = own.into_iter().chain(self.exporter.servants());
        let found = all.find_map(|servant| {
            let index = DCOM.operation(servant.interface(), &incoming)?;
            Some((servant, index))
        });
        let (servant, index) =
            found.ok_or_else(|| Failure::new(Kind::NoOperation, Initiator::Peer, "no such operation"))?;
        let (sender, receiver) = channel();
        let references = self.correspondence();
        let link = Aside(Box::new(move |answer| {
            let outcome = match answer {
                Answer::Done(results) => encode(results, &references),
                Answer::Failed(failure) | Answer::Passed { failure, .. } => Err(failure.clone()),
                Answer::Raised { .. } | Answer::Moved(_) => panic!("neither is expected"),
            };
            sender.send(outcome).unwrap();
        }));
        servant.dispatch(Request::new(index, incoming, Arc::new(link), Arc::clone(&servant)));
        let stub = receiver.try_recv().unwrap()?;
        Ok(self.body(stub))
    }

    fn body(&self, bytes: Bytes) -> Body {
        let wire_state = Some(self.correspondence() as Arc<dyn NodeState>);
        let beside = Some(Arc::new(Attachments { wire_state, ..Attachments::default() }));
        let budget = Budget::default();
        Body {
            bytes,
            base: 0,
            little: true,
            dialect: 0,
            context: everywire_model::Context::default(),
            budget,
            codec: &NDR,
            beside,
        }
    }
}

fn encode(values: &dyn Encode, references: &Arc<Correspondence>) -> Result<Bytes, Failure> {
    let mut sink = NdrSink::new(true).with_references(Arc::clone(references) as Arc<dyn References>);
    values.encode(&mut sink)?;
    Ok(sink.into_body(Budget::default())?.bytes)
}

impl Store {
    fn insert(&self, key: Bytes, servant: Arc<dyn Servant>) {
        self.objects.lock().unwrap().entry(key.clone()).or_default().push(Arc::clone(&servant));
        let exporter = self.exporter.lock().unwrap().upgrade();
        exporter.unwrap().exported(&key, &servant);
    }

    fn fresh(&self) -> Bytes {
        Bytes::from(format!("object-{}", self.fresh.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Objects for Store {
    fn keys(&self) -> Vec<Bytes> {
        self.objects.lock().unwrap().keys().cloned().collect()
    }

    fn servants(&self, key: &[u8]) -> Vec<Arc<dyn Servant>> {
        self.objects.lock().unwrap().get(key).cloned().unwrap_or_default()
    }

    fn emit(&self, _: &Emission<'_>) -> Result<(), Failure> {
        Ok(())
    }

    fn aside(&self, done: Box<dyn Fn(Answer<'_>) + Send + Sync>) -> Arc<dyn Link> {
        Arc::new(Aside(done))
    }

    fn export(&self, servants: Vec<Arc<dyn Servant>>) -> Bytes {
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        let key = self.fresh();
        servants.into_iter().for_each(|servant| self.insert(key.clone(), servant));
        key
    }

    fn withdraw(&self, key: &[u8]) {
        let removed = self.objects.lock().unwrap().remove(key).unwrap_or_default();
        let exporter = self.exporter.lock().unwrap().upgrade().unwrap();
        removed.iter().for_each(|servant| exporter.withdrawn(key, servant.interface()));
    }

    fn classes(&self) -> Vec<(Bytes, Hold<Interface>)> {
        let classes = self.classes.lock().unwrap();
        classes.iter().map(|(key, (interface, _))| (key.clone(), interface.clone())).collect()
    }

    fn create(&self, class: &[u8], _: &str) -> Option<Result<Bytes, Failure>> {
        let make = Arc::clone(&self.classes.lock().unwrap().get(class)?.1);
        Some(make().map(|servant| self.export(vec![servant])))
    }

    fn publish(&self, type_id: &str, key: &[u8]) -> Reference {
        let key = Bytes::copy_from_slice(key);
        let profile = Profile { key, ..self.places().remove(0).profile().clone() };
        Reference { type_id: type_id.to_owned(), profiles: vec![profile], foreign: Vec::new() }
    }

    fn places(&self) -> Vec<BindAddress> {
        let mut place = BindAddress::socket("dcom", self.endpoint.clone());
        place.profile_mut().options = security().into();
        vec![place]
    }

    fn listen(&self, _: &str) -> Result<BindAddress, Failure> {
        Ok(self.places().remove(0))
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        self.this.upgrade().unwrap()
    }

    fn audience(&self, _: &[u8], told: &Audience) {
        if let Some(audience) = &*self.audience.lock().unwrap() {
            audience.send(told.clone()).unwrap();
        }
    }

    fn attend(&self) {
        self.attended.fetch_add(1, Ordering::Relaxed);
    }
}

impl Resolver for Store {
    fn resolve(&self, reference: &Reference) -> Result<Object, Failure> {
        let store = self.this.upgrade().unwrap();
        Ok(Object::new(Arc::new(Way { store, reference: reference.clone(), deadline: None })))
    }

    fn local(&self, _: &Reference, _: &str) -> Option<Local> {
        None
    }
}

/// The way to an object of another node: what a session does.
struct Way {
    store: Arc<Store>,
    reference: Reference,
    deadline: Option<Duration>,
}

impl Way {
    fn exporter(&self) -> Arc<Exporter> {
        self.store.exporter.lock().unwrap().upgrade().unwrap()
    }

    fn system(
        &self,
        to: &[Endpoint],
        ipid: Option<Uuid>,
        iid: Uuid,
        opnum: u16,
        stub: &[u8],
    ) -> Result<Body, Failure> {
        let before = self.store.net.before.lock().unwrap().clone();
        before.inspect(|before| before());
        let node = self.store.net.at(to)?;
        self.store.net.calls.lock().unwrap().push((iid, opnum));
        let key = ipid.map(|ipid| node.exporter.served(ipid).map(|served| served.key)).unwrap_or_default();
        let body = node.call(&key.unwrap_or_default(), iid, opnum, stub, "peer")?;
        let wire_state =
            Some(Arc::new(Correspondence::new(self.exporter(), security(), "")) as Arc<dyn NodeState>);
        Ok(Body { beside: Some(Arc::new(Attachments { wire_state, ..Attachments::default() })), ..body })
    }

    fn try_invoke(&self, method: Method<'_>, arguments: &dyn Encode) -> Result<Body, Failure> {
        let interface = method.interface().unwrap();
        let index =
            interface.operations.iter().position(|held| held.name.as_bytes() == method.name()).unwrap();
        let (iid, opnum) = (iid_of(interface), opnum_base(interface) + u16::try_from(index).unwrap());
        let references = Arc::new(Correspondence::new(self.exporter(), security(), ""));
        let stub = encode(arguments, &references)?;
        let mut profile = self.reference.profiles[0].clone();
        if profile.component(TAG_SYSTEM).is_some() {
            let ipid = profile.key.get(..16).map(|raw| Uuid::from_bytes_le(raw.try_into().unwrap()));
            return self.system(&profile.endpoints, ipid, iid, opnum, &stub);
        }
        let proxy = profile.lease.share::<Proxy>().unwrap();
        if proxy.oxid().resolution().is_none() {
            let ask = resolver::resolve_oxid2_request(proxy.oxid().id(), &[7]);
            let body = self.system(&profile.endpoints, None, OBJECT_EXPORTER, 4, &ask)?;
            let resolved = resolver::parse_resolve_reply(Get::of(&body), true).unwrap().unwrap();
            profile = self.exporter().resolved(&proxy, resolved, &profile).profiles.remove(0);
        }
        let unknown = proxy.oxid().resolution().unwrap().rem_unknown;
        let ipid = match proxy.ipid(iid) {
            Some(ipid) => ipid,
            None => {
                let query = Query { ipid: proxy.any_ipid(), refs: 5, iids: vec![iid] };
                let stub = remunknown::query_request(&query);
                let body =
                    self.system(&profile.endpoints, Some(unknown), everywire_dcom::REM_UNKNOWN2, 3, &stub)?;
                let found = remunknown::parse_query_reply(Get::of(&body)).unwrap().unwrap().remove(0);
                let std = found.map_err(|why| everywire_dcom::hresult::failure(why, None))?;
                proxy.learn(iid, &std);
                std.ipid
            }
        };
        if proxy.oxid().has_releases() {
            let refs: Vec<_> = proxy.oxid().take_releases();
            let refs = refs.into_iter().map(|(ipid, public)| remunknown::Refs { ipid, public, private: 0 });
            let stub = remunknown::refs_request(&refs.collect::<Vec<_>>());
            self.system(&profile.endpoints, Some(unknown), iid_of(&REM_UNKNOWN2), 5, &stub)?;
        }
        if self.store.net.at(&profile.endpoints)?.exporter.served(ipid).is_none() {
            return Err(everywire_dcom::hresult::failure(everywire_dcom::hresult::RPC_E_DISCONNECTED, None));
        }
        self.system(&profile.endpoints, Some(ipid), iid, opnum, &stub)
    }
}

impl Target for Way {
    fn reference(&self) -> &Reference {
        &self.reference
    }

    fn invoke(&self, method: Method<'_>, arguments: &dyn Encode) -> Outcome<Body> {
        self.try_invoke(method, arguments).map_or_else(Outcome::Failed, Outcome::Done)
    }

    fn notify(&self, method: Method<'_>, arguments: &dyn Encode) -> Result<(), Failure> {
        self.try_invoke(method, arguments).map(drop)
    }

    fn submit(&self, method: Method<'_>, arguments: &dyn Encode, done: Completion) -> Ticket {
        done(self.invoke(method, arguments));
        Ticket(0)
    }

    fn withdraw(&self, _: Ticket) {}

    fn probe(&self) -> Result<(), Failure> {
        let Some(mute) = &*self.store.net.mute.lock().unwrap() else { return Ok(()) };
        mute.send((std::thread::current().id(), self.deadline)).unwrap();
        Err(Failure::new(Kind::TimedOut, Initiator::Here, "no answer"))
    }

    fn with_deadline(&self, deadline: Option<Duration>) -> Arc<dyn Target> {
        Arc::new(Self { store: Arc::clone(&self.store), reference: self.reference.clone(), deadline })
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::clone(&self.store) as _
    }
}

struct Aside(Box<dyn Fn(Answer<'_>) + Send + Sync>);

impl Link for Aside {
    fn answer(&self, _: CallId, answer: Answer<'_>) {
        (self.0)(answer);
    }

    fn spawn(&self, _: BoxFuture<'static, ()>) {
        panic!("nothing here is asynchronous")
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        panic!("nothing here resolves")
    }

    fn peer(&self) -> Option<Peer> {
        None
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::InProcess { name: "test".into() }
    }
}
