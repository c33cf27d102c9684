//! Listening to an object elsewhere: a sink of this process, advised there.
//!
//! For each source interface that carries a wanted signal: find the connection point, serve a sink under a
//! new key, advise it, and keep the cookie. A node that listens nowhere yet begins to listen at this side's
//! end of the way to the peer, with the account that the object is called with, since the peer calls back by
//! a connection of its own.
//!
//! States: an `Advice` is one sink that is advised; dropping it unadvises. A `Subscription` has one for each
//! source interface; if one of them cannot be made, those before are dropped again.
//!
//! Invariants: the sink is withdrawn if Advise fails, and otherwise only after Unadvise was answered or could
//! not be sent: a call of the source that is under way still finds it. Where the callbacks could not be let
//! in, the subscription fails at once instead of staying silent.

use super::listening::{FAREWELL, Listening};
use super::source::{Source, sources};
use crate::exporter::{Exporter, Proxy};
use crate::lock::lock;
use crate::security::{Level, Security};
use crate::standard::contracts::{
    ADVISE, CONNECTION_POINT, CONNECTION_POINT_CONTAINER, FIND_CONNECTION_POINT, UNADVISE,
};
use crate::standard::guid::Guid;
use crate::standard::serving::pointer;
use crate::ways::class_of;
use bytes::Bytes;
use everywire_model::signal::Listener;
use everywire_model::{
    BindAddress, Endpoint, Failure, Hold, Incoming, Initiator, Interface, Kind, MarshalList, Method, Object,
    Profile, Reference, Request, Servant, Signal, SignalFilter, Sink, Subscription,
};
use std::net::UdpSocket;
use std::sync::Arc;

/// Advises a sink of this process of an object's signals: of one, or of all of an interface.
///
/// # Errors
/// The signals are not known; this node cannot be reached by the object; those of the calls that it takes.
pub fn subscribe(
    exporter: &Exporter,
    object: &Object,
    SignalFilter { interface, signal }: SignalFilter<'_>,
    listener: &Listener,
) -> Result<Subscription, Failure> {
    let wanted = wanted(interface, signal)?;
    reachable(exporter, object)?;
    let advise = |source| Advice::make(exporter, object, source, signal, listener);
    let parts = wanted.into_iter().map(advise).collect::<Result<Vec<_>, _>>()?;
    Ok(Subscription::new(move || drop(parts)))
}

/// The source interfaces that carry what is asked for.
fn wanted(interface: Option<&Interface>, signal: Option<&Signal>) -> Result<Vec<Source>, Failure> {
    let Some(interface) = interface else {
        let message = "which interface a listener must have follows from the contract, which is not known";
        return Err(Failure::new(Kind::Unsupported, Initiator::User, message)
            .with_hint("give the contract, or the type of the object"));
    };
    let mut all = sources(interface);
    if let Some(signal) = signal {
        all.retain(|source| source.signals.iter().any(|(name, _)| signal.name == *name));
    }
    if all.is_empty() {
        let message = match signal {
            Some(signal) => format!("{} has no signal {}", interface.name, signal.label),
            None => format!("{} has no signals", interface.name),
        };
        return Err(Failure::bad_argument(message));
    }
    Ok(all)
}

/// Sees to it that this node can be called by the peer, where the peer can reach it.
fn reachable(exporter: &Exporter, object: &Object) -> Result<(), Failure> {
    if !exporter.objects().places().is_empty() {
        return Ok(());
    }
    let way = object.reference().profiles.iter().find(|profile| profile.wire == "dcom");
    let way = way.ok_or_else(|| Failure::bad_reference("no way of this wire"))?;
    let address = listening_address(way)?;
    exporter.objects().listen(&address).map(drop).map_err(|failure| failure.at("listening for callbacks"))
}

/// Sees to it that this node lets in whoever calls back, as far as that is known: a peer that demands protection calls back with an
/// account, and where nobody is known no account is let in.
fn admits(exporter: &Exporter, point: &Reference) -> Result<(), Failure> {
    let proxy = point.profiles.iter().find_map(|profile| profile.lease.share::<Proxy>());
    let Some(proxy) = proxy else { return Ok(()) };
    let Some(resolved) = proxy.oxid().resolution() else { return Ok(()) };
    let level = proxy.security().level;
    let demands = Level::of_hint(resolved.authn_hint).is_some_and(|least| least > Level::None);
    if level == Level::None || !demands {
        return Ok(());
    }
    let places = exporter.objects().places();
    let knows = |place: &BindAddress| {
        let security = Security::of(place.profile());
        security.users.is_some() || security.keytab.is_some()
    };
    if places.is_empty() || places.iter().any(knows) {
        return Ok(());
    }
    let what = format!(
        "the signals would not arrive: they come back at level `{}`, as the object is called, and this node listens where it knows nobody",
        level.word()
    );
    Err(Failure::new(Kind::Refused, Initiator::Here, what).with_hint(
        "listen with the account that the object is called with (credentials= or USER:PASSWORD@ in the address that this node listens at), or not at all before: then it listens so by itself",
    ))
}

/// Where to listen: at this side's end of the way to the peer.
fn listening_address(way: &Profile) -> Result<String, Failure> {
    let security = Security::of(way);
    match way.endpoints.first() {
        Some(Endpoint::Tcp { host, port }) => {
            let unreachable = |error: std::io::Error| {
                let what = format!("no address leads to {host}: {error}");
                Failure::new(Kind::Unreachable, Initiator::Here, what)
            };
            // Nothing is sent: connecting a datagram socket only chooses the address.
            let socket = UdpSocket::bind(("0.0.0.0", 0)).map_err(unreachable)?;
            let local = match socket.connect((host.as_str(), *port)) {
                Ok(()) => socket.local_addr(),
                Err(_) => UdpSocket::bind(("::", 0)).and_then(|socket| {
                    socket.connect((host.as_str(), *port))?;
                    socket.local_addr()
                }),
            };
            let local = local.map_err(unreachable)?.ip();
            let local = if local.is_ipv6() { format!("[{local}]") } else { local.to_string() };
            Ok(callback_address(&local, &security))
        }
        Some(Endpoint::Unix { path }) => Ok(format!("dcom+unix://{}?level=none", beside(path))),
        Some(Endpoint::Shm { path }) => Ok(format!("dcom+shm://{}?level=none", beside(path))),
        _ => Err(Failure::unsupported("callbacks cannot come back by this way")),
    }
}

/// A socket of this process in the directory of the peer's.
fn beside(path: &str) -> String {
    let name = format!("callbacks-{}", crate::exporter::random_uuid().simple());
    match path.rsplit_once('/') {
        Some((directory, _)) if !path.starts_with('@') => format!("{directory}/{name}"),
        _ => format!("@{name}"),
    }
}

/// Callbacks are protected as calls are: a caller without credentials takes calls from anybody, one with credentials from
/// the account it is itself.
fn callback_address(local: &str, security: &Security) -> String {
    let Some(known) = security.credentials.as_ref().filter(|_| security.level > Level::None) else {
        return format!("dcom://{local}:0?level=none");
    };
    let secret = match (known.password.as_password(), known.password.as_nt_hash()) {
        (Some(password), _) => password.to_owned(),
        (None, Some(hash)) => format!("$NT${}", everywire_model::hex::text(hash)),
        (None, None) => String::new(),
    };
    let domain = if known.domain.is_empty() { String::new() } else { format!("{};", spelled(&known.domain)) };
    let (user, secret, level) = (spelled(&known.user), spelled(&secret), security.level.word());
    format!("dcom://{domain}{user}:{secret}@{local}:0?level={level}")
}

/// Text as it may stand before the host of an address.
fn spelled(text: &str) -> String {
    let plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet);
    let spelled = |octet| if plain(octet) { char::from(octet).into() } else { format!("%{octet:02x}") };
    text.bytes().map(spelled).collect()
}

/// A subscription at a connection point elsewhere: dropping it ends it.
struct Advice {
    exporter: std::sync::Weak<Exporter>,
    /// The connection point elsewhere.
    point: Object,
    /// What Unadvise has to say.
    cookie: u32,
    /// The key of the sink here.
    key: Bytes,
    listening: Arc<Listening>,
}

impl Advice {
    /// Subscribes: finds the connection point of the source interface, exports a sink of this node under a
    /// key of its own, and advises it. If Advise fails the sink is withdrawn at once, so that nobody can call
    /// it any more.
    fn make(
        exporter: &Exporter,
        object: &Object,
        source: Source,
        signal: Option<&Signal>,
        listener: &Listener,
    ) -> Result<Self, Failure> {
        let resolver = object.target().resolver();
        let container =
            Object::new(Arc::clone(object.target())).typed(Hold::Static(&CONNECTION_POINT_CONTAINER));
        let (point,) =
            container.call::<_, (Option<Reference>,), Failure>(FIND_CONNECTION_POINT, (Guid(source.iid),))?;
        let point = point.ok_or_else(|| {
            Failure::new(Kind::Violation, Initiator::Peer, "a connection point was found, and is null")
        })?;
        admits(exporter, &point)?;
        let point = resolver.resolve(&point)?.typed(Hold::Static(&CONNECTION_POINT));
        let only = signal.map(|signal| signal.name.to_string());
        // From here on signals may come, even before Advise has returned the cookie.
        let listening = Listening::new(source, only, Arc::clone(listener), key_of(object), object.clone());
        let iid = listening.source.iid;
        let key = exporter
            .objects()
            .export(vec![Arc::new(SinkServant(Arc::clone(&listening))) as Arc<dyn Servant>]);
        let sink = pointer(exporter, iid, &key);
        let advised = point.call::<_, (u32,), Failure>(ADVISE, (Some(sink),));
        let (cookie,) = advised.inspect_err(|_| exporter.objects().withdraw(&key))?;
        lock(&exporter.standard().points.listening).push(Arc::downgrade(&listening));
        exporter.objects().attend();
        Ok(Self { exporter: exporter.weak(), point, cookie, key, listening })
    }
}

impl Drop for Advice {
    fn drop(&mut self) {
        let lost = self.listening.end();
        let (exporter, key) = (std::sync::Weak::clone(&self.exporter), self.key.clone());
        let withdraw = move || {
            if let Some(exporter) = exporter.upgrade() {
                exporter.objects().withdraw(&key);
            }
        };
        if lost {
            return withdraw();
        }
        let point = self.point.with_deadline(Some(FAREWELL));
        let cookie = self.cookie;
        let arguments = move |sink: &mut dyn Sink| (cookie,).marshal_list(&UNADVISE.arguments, sink);
        let method = Method::Typed { interface: Some(&CONNECTION_POINT), operation: UNADVISE };
        // The sink stays until the peer has let go of it, or cannot be asked.
        point.target().submit(method, &arguments, Box::new(move |_| withdraw()));
    }
}

/// What an object is called: a class or a key. References to objects have no name.
fn key_of(object: &Object) -> Bytes {
    let named = object.reference().profiles.iter().find(|profile| class_of(profile).is_some());
    named.map(|profile| profile.key.clone()).unwrap_or_default()
}

/// The sink: serves the source interface.
struct SinkServant(Arc<Listening>);

impl Servant for SinkServant {
    fn interface(&self) -> &Interface {
        &self.0.source.interface
    }

    fn dispatch(&self, request: Request) {
        let called = self.0.source.signals.iter().find(|(_, index)| *index == request.index());
        let wanted = called.filter(|(name, _)| self.0.only.as_ref().is_none_or(|only| only == name));
        let Some((name, _)) = wanted else {
            // A signal that nobody asked for.
            return request.run(|request| request.reply::<_, Failure>(Ok(())));
        };
        let own = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
        let (sender, interface) = (own(request.sender()), own(self.0.source.name.as_bytes()));
        let (key, body) = (self.0.key.clone(), request.body().clone());
        let heard = Incoming::signal(sender, key, interface, own(name.as_bytes()), body);
        self.0.tell(request, heard);
    }
}
