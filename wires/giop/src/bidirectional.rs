//! Bidirectional GIOP: objects of the side that connects are called over the connection that it made (CORBA 3.3 part 2, section 9.8).
//!
//! Who listens at an address with `bidirectional=on` takes part in it, in both roles. As a client it tells servers, beside the first
//! request, where its objects are said to be (`ListenPoint`), and takes requests on the connections that it made. As a server it reads
//! what clients tell at that address.
//!
//! States of a connection: `None`, calls go one way; `BothWays` on either side. On the side that connects the points are *due* until a
//! request of GIOP 1.2 told them. On the side that accepts the peer serves nothing until it has told (`peer_points`).
//!
//! Invariants:
//! * A peer leads calls to itself only. What it tells holds for references that come by its own connection, and for no others: a
//!   reference read there whose address is among its points gets the lease of that connection (`marked`), by which the
//!   runtime calls it. So nobody can claim the address of somebody else's server. Such a reference equals none that came by another
//!   way (`ConnectionOptions`), so that whoever keeps one in the place of equal ones keeps the right one.
//! * Requests of the side that connects have even numbers, those of the other one odd ones, so that fragments and withdrawals of both
//!   cannot be taken for each other.
//! * Points are bounded: `PROFILE_ENDPOINTS` of a connection, with hosts of `PLACE_TEXT` octets.

use crate::cdr::{CdrWriter, DecodeError, Get, ReadCdr, WriteCdr};
use crate::codesets::Dialect;
use crate::limits::{PLACE_TEXT, PROFILE_ENDPOINTS};
use crate::session::Role;
use crate::wire_state::Node;
use crate::{components, contexts};
use everywire_model::body::{Attachments, NodeState};
use everywire_model::profile::{Lease, Options, ProfileOptions};
use everywire_model::{BindAddress, Body, Config, Endpoint, Failure, Reference, options};
use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The option of an address to listen at.
const OPTION: &str = "bidirectional";

/// What an address to listen at says beside its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ListenerOptions;

impl fmt::Display for ListenerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{OPTION}=on")
    }
}

impl Options for ListenerOptions {}

/// By which connection a reference leads to its object: one of another connection is another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ConnectionOptions(u64);

impl fmt::Display for ConnectionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection={}", self.0)
    }
}

impl Options for ConnectionOptions {}

/// Numbers connections, from 1.
static CONNECTIONS: AtomicU64 = AtomicU64::new(1);

/// Takes the option off an address to listen at; whether it is on.
///
/// # Errors
/// It has another value than `on` and `off`, or stands there twice.
pub(crate) fn take(address: &str) -> Result<(Cow<'_, str>, bool), Failure> {
    let (rest, found) = options::take(address, &[OPTION])?;
    match found.first() {
        None | Some((_, "off")) => Ok((rest, false)),
        Some((_, "on")) => Ok((rest, true)),
        Some((_, other)) => {
            Err(options::wrong(address, &format!("`{OPTION}={other}` is neither `on` nor `off`")))
        }
    }
}

/// Has calls go both ways over connections that are accepted at a place, and over those that its process makes.
///
/// # Errors
/// It is no place over TCP.
pub(crate) fn turn_on(place: &mut BindAddress) -> Result<(), Failure> {
    let profile = place.profile_mut();
    if !profile.endpoints.iter().all(|endpoint| matches!(endpoint.stream(), Endpoint::Tcp { .. })) {
        let what =
            format!("`{OPTION}=on` is for addresses over TCP: peers know a place by its host and port");
        return Err(Failure::bad_reference(what).with_hint("listen at iiop://HOST:PORT or iiops://HOST:PORT"));
    }
    profile.options = ListenerOptions.into();
    Ok(())
}

/// Whether the option is on at this place.
fn is_on(place: &BindAddress) -> bool {
    place.profile().options.get::<ListenerOptions>().is_some()
}

/// A host and a port under which a process is said to listen, as references to its objects have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListenPoint {
    host: String,
    port: u16,
}

impl ListenPoint {
    fn of(endpoint: &Endpoint) -> Option<Self> {
        match endpoint.stream() {
            Endpoint::Tcp { host, port } => Some(Self { host: host.clone(), port: *port }),
            _ => None,
        }
    }

    fn is_at(&self, endpoint: &Endpoint) -> bool {
        matches!(endpoint.stream(), Endpoint::Tcp { host, port } if *port == self.port && host.eq_ignore_ascii_case(&self.host))
    }
}

/// What a connection over which calls go both ways knows of that.
pub(crate) struct BothWays {
    /// Where this side's objects are; the side that accepts tells nothing.
    own: Vec<ListenPoint>,
    /// Whether the peer is still to be told.
    due: bool,
    /// What leads over this connection, and the number of that.
    way_back: Lease,
    number: ConnectionOptions,
    /// Where the peer's objects are, once it has told.
    pub(crate) peer_points: Option<Arc<PeerPoints>>,
    /// The same as what belongs to each body that comes from the peer: references in it may lead back over this connection.
    pub(crate) beside_bodies: Option<Arc<Attachments>>,
    /// The character sets of the peer's requests, where it has told others than those of this side's.
    pub(crate) peer_sets: Option<Dialect>,
    /// The character sets of the requests of the side that accepted, and of their replies, where the peer has told none.
    pub(crate) own_sets: Option<Dialect>,
}

impl BothWays {
    /// For a connection that is made or accepted so; nothing where calls go one way.
    pub(crate) fn of(config: &Config, role: Role) -> Option<Box<Self>> {
        let own = match role {
            Role::Accepting => config.profile.options.get::<ListenerOptions>().map(|_| Vec::new())?,
            Role::Connecting => Some(points(config)).filter(|own| !own.is_empty())?,
        };
        let (due, way_back) = (!own.is_empty(), config.way_back.clone());
        let number = ConnectionOptions(CONNECTIONS.fetch_add(1, Ordering::Relaxed));
        Some(Box::new(Self {
            own,
            due,
            way_back,
            number,
            peer_points: None,
            beside_bodies: None,
            peer_sets: None,
            own_sets: None,
        }))
    }

    /// What the next request tells the peer: all or nothing. `sets`: it tells the character sets, too.
    pub(crate) fn to_tell(&self, minor: u8, sets: bool) -> &[ListenPoint] {
        if minor >= 2 && (self.due || sets) { &self.own } else { &[] }
    }

    /// Whether the next request of GIOP 1.2 tells the peer something.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// A request of this version was written.
    pub(crate) fn told(&mut self, minor: u8) {
        self.due &= minor < 2;
    }

    /// The peer has told its points in a service context; those that it told before stay.
    ///
    /// # Errors
    /// The context does not decode.
    pub(crate) fn hear(&mut self, data: &[u8]) -> Result<(), DecodeError> {
        if self.way_back.is_empty() {
            return Ok(());
        }
        let mut points = self.peer_points.as_ref().map(|known| known.points.clone()).unwrap_or_default();
        for point in read(data)? {
            let fits = points.len() < PROFILE_ENDPOINTS && point.host.len() <= PLACE_TEXT;
            if fits && !points.contains(&point) {
                points.push(point);
            }
        }
        let known = self.peer_points.as_ref().map_or(0, |known| known.points.len());
        if points.len() > known {
            let (way_back, number) = (self.way_back.clone(), self.number.into());
            let points = Arc::new(PeerPoints { points, way_back, number });
            let wire_state = Some(Arc::clone(&points) as Arc<dyn NodeState>);
            self.beside_bodies = Some(Arc::new(Attachments { wire_state, ..Attachments::default() }));
            self.peer_points = Some(points);
        }
        Ok(())
    }
}

/// Where a process that connects listens with the option.
fn points(config: &Config) -> Vec<ListenPoint> {
    let Some(state) = config.wire_state.clone() else { return Vec::new() };
    let state: Arc<dyn Any + Send + Sync> = state;
    let Ok(node) = state.downcast::<Node>() else { return Vec::new() };
    let places = node.objects().places();
    let mut points = Vec::new();
    for place in places.iter().filter(|place| is_on(place)) {
        let reach = node.objects().reach(place).endpoints;
        points.extend(reach.iter().filter_map(ListenPoint::of));
    }
    points.truncate(PROFILE_ENDPOINTS);
    points
}

/// Whether calls go both ways over a connection that is made so.
pub(crate) fn is_both_ways(config: &Config, accepted: bool) -> bool {
    BothWays::of(config, if accepted { Role::Accepting } else { Role::Connecting }).is_some()
}

/// Reads the data of the service context that tells points: at most as many as a reference has parts.
fn read(data: &[u8]) -> Result<Vec<ListenPoint>, DecodeError> {
    let mut get = Get::encapsulation(data)?;
    (0..get.parts()?).map(|_| Ok(ListenPoint { host: get.text()?, port: get.u16()? })).collect()
}

/// The points that the data of the service context tells, for listings.
pub(crate) fn told(data: &[u8]) -> Result<String, DecodeError> {
    let points: Vec<String> =
        read(data)?.iter().map(|point| format!("{}:{}", point.host, point.port)).collect();
    Ok(points.join(", "))
}

/// Writes the service context that tells points.
pub(crate) fn put_context(points: &[ListenPoint], put: &mut CdrWriter<'_>) {
    put.u32(contexts::BI_DIR_IIOP);
    put.encapsulated(|put| {
        put.count(points.len());
        for point in points {
            put.string(point.host.as_bytes());
            put.u16(point.port);
        }
    });
}

/// Where the objects of a peer are, and what leads to them over its connection. It stands beside bodies that came by that.
pub(crate) struct PeerPoints {
    points: Vec<ListenPoint>,
    way_back: Lease,
    number: ProfileOptions,
}

impl NodeState for PeerPoints {
    fn leads_on(&self, _key: &[u8], _to: &Reference) -> Option<Reference> {
        None
    }
}

/// A reference that was read of a body: it leads over the connection by which that came, where its object is at the other end.
pub(crate) fn marked(body: &Body, mut reference: Reference) -> Reference {
    let Some(state) = body.wire_state() else { return reference };
    let state: Arc<dyn Any + Send + Sync> = Arc::clone(state) as _;
    let Ok(peer) = state.downcast::<PeerPoints>() else { return reference };
    for profile in &mut reference.profiles {
        let is_there = |endpoint: &Endpoint| peer.points.iter().any(|point| point.is_at(endpoint));
        if profile.wire == "giop" && components::is_free(profile) && profile.endpoints.iter().any(is_there) {
            profile.lease = peer.way_back.clone();
            profile.options = peer.number.clone();
        }
    }
    reference
}
