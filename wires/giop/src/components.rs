//! Tagged components of IIOP profiles: what else a reference says about its server (CORBA 3.3 part 2,
//! sections 7.6.6 and 9.7.3).
//!
//! A component is a tag and octets, mostly an encapsulation. Those that name endpoints are read into the
//! profile's list of endpoints; all are kept as they came, so that a reference that is passed on loses
//! nothing. A component that does not decode is passed over, never an error: its server may know more than
//! this side.
//!
//! Endpoints of this host (shared memory, Unix sockets) are used only where the host's name in the component
//! is ours. So a reference that has travelled to another machine does not make it connect to a socket of its
//! own with the same path.

use crate::cdr::{DecodeError, Get, ReadCdr, WriteCdr, encapsulation};
use crate::codesets::{Dialect, ISO_8859_1, Narrow, Offer, Wide};
use crate::limits::{PLACE_TEXT, PROFILE_ENDPOINTS};
use crate::ssl;
use bytes::Bytes;
use everywire_model::reach::Wildcard;
use everywire_model::{Endpoint, Lease, Profile, Reference};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

/// Which ORB made the reference.
pub const TAG_ORB_TYPE: u32 = 0;
/// The server's code sets.
pub const TAG_CODE_SETS: u32 = 1;
/// Another host and port of the server.
pub const TAG_ALTERNATE_IIOP_ADDRESS: u32 = 3;
/// omniORB: a Unix socket of the server, valid on the host that is named beside it.
pub const TAG_OMNIORB_UNIX_TRANS: u32 = 0x4154_5402;
/// Ours: shared memory, set up over a Unix socket, valid on the host that is named beside it.
pub const TAG_SHARED_MEMORY: u32 = 0x4557_5301;
/// The greatest format of values that the server reads of RMI-IIOP: ORBs of Sun's tell it, and others in Java.
pub const TAG_RMI_CUSTOM_MAX_STREAM_FORMAT: u32 = 38;
/// Ours, as the value of [`TAG_ORB_TYPE`].
pub const ORB_TYPE: u32 = 0x4557_0000;

/// omniORB, as the value of [`TAG_ORB_TYPE`].
const OMNIORB: u32 = 0x4154_5400;
/// TAO, as the value of [`TAG_ORB_TYPE`].
const TAO: u32 = 0x5441_4f00;

/// Name of a component's tag, for listings.
pub fn name(tag: u32) -> &'static str {
    match tag {
        TAG_ORB_TYPE => "ORB type",
        TAG_CODE_SETS => "code sets",
        2 => "policies",
        TAG_ALTERNATE_IIOP_ADDRESS => "alternate address",
        ssl::TAG_SSL_SEC_TRANS => "SSL",
        25 => "Java code base",
        ssl::TAG_CSI_SEC_MECH_LIST => "security mechanisms",
        TAG_RMI_CUSTOM_MAX_STREAM_FORMAT => "Java serial version",
        0x4154_5401 => "omniORB bidirectional",
        TAG_OMNIORB_UNIX_TRANS => "omniORB Unix socket",
        0x4154_5403 => "omniORB persistent id",
        TAG_SHARED_MEMORY => "shared memory",
        _ => "component",
    }
}

/// This host's name, as the components name it; `localhost` where the system does not tell. Read once for the
/// process. It is compared with the names in components, octet by octet.
pub(crate) fn host_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let read = |path| std::fs::read_to_string(path).ok().map(|name| name.trim().to_owned());
        ["/proc/sys/kernel/hostname", "/etc/hostname"]
            .into_iter()
            .find_map(read)
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "localhost".to_owned())
    })
}

/// What every reference of this side says.
pub(crate) fn own() -> Vec<(u32, Bytes)> {
    vec![
        (TAG_ORB_TYPE, encapsulation(|put| put.u32(ORB_TYPE)).into()),
        (TAG_CODE_SETS, encapsulation(Offer::put_own).into()),
    ]
}

/// The component that stands for an endpoint beside the profile's own host and port. Nothing for endpoints
/// that no component can name.
pub(crate) fn of_endpoint(endpoint: &Endpoint) -> Option<(u32, Bytes)> {
    let local = |tag, path: &str| {
        let data = encapsulation(|put| {
            put.string(host_name().as_bytes());
            put.string(path.as_bytes());
        });
        Some((tag, data.into()))
    };
    match endpoint {
        Endpoint::Tcp { host, port } => {
            let data = encapsulation(|put| {
                put.string(host.as_bytes());
                put.u16(*port);
            });
            Some((TAG_ALTERNATE_IIOP_ADDRESS, data.into()))
        }
        Endpoint::Unix { path } => local(TAG_OMNIORB_UNIX_TRANS, path),
        Endpoint::Shm { path } => local(TAG_SHARED_MEMORY, path),
        // Those with TLS have a component of another kind.
        Endpoint::InProcess { .. } | Endpoint::Layered(_) => None,
    }
}

/// Whether a component stands for an endpoint.
pub(crate) fn is_endpoint(tag: u32) -> bool {
    matches!(tag, TAG_ALTERNATE_IIOP_ADDRESS | TAG_OMNIORB_UNIX_TRANS | TAG_SHARED_MEMORY)
}

/// Where a profile's server listens: shared memory and Unix sockets of this host first, then TCP, then TLS.
/// Components that do not decode, and names that no host can have, are passed over; they are kept in the
/// profile all the same. An endpoint that is told twice stands in the list once. Of those of this host the
/// first few are taken, so that the profile's own host always finds room.
pub(crate) fn endpoints(host: &str, port: u16, components: &[(u32, Bytes)]) -> Vec<Endpoint> {
    let host = if host.len() > PLACE_TEXT { "" } else { host };
    let tagged = |wanted| components.iter().filter(move |(tag, _)| *tag == wanted);
    let locals = [TAG_SHARED_MEMORY, TAG_OMNIORB_UNIX_TRANS].into_iter().flat_map(tagged);
    let locals =
        locals.filter_map(|(tag, data)| local(*tag, data).ok().flatten()).take(PROFILE_ENDPOINTS / 2);
    let primary = (port != 0 && !host.is_empty()).then(|| Endpoint::Tcp { host: host.to_owned(), port });
    let alternates =
        tagged(TAG_ALTERNATE_IIOP_ADDRESS).filter_map(|(_, data)| alternate(data).ok()).filter(short);
    let secured = ssl::endpoints(host, components).filter(short);
    let mut found = Vec::with_capacity(2);
    add(&mut found, locals.chain(primary).chain(alternates).chain(secured));
    found
}

/// Adds endpoints that are not in the list yet, as long as there is room.
fn add(found: &mut Vec<Endpoint>, more: impl Iterator<Item = Endpoint>) {
    for endpoint in more {
        if found.len() >= PROFILE_ENDPOINTS {
            return;
        }
        if !found.contains(&endpoint) {
            found.push(endpoint);
        }
    }
}

/// Whether the name in an endpoint is one that can be.
fn short(endpoint: &Endpoint) -> bool {
    text_of(endpoint).len() <= PLACE_TEXT
}

/// The name or path in an endpoint; of one with a layer, that below.
pub(crate) fn text_of(endpoint: &Endpoint) -> &str {
    match endpoint.stream() {
        Endpoint::Tcp { host: text, .. } | Endpoint::Unix { path: text } | Endpoint::Shm { path: text } => {
            text
        }
        Endpoint::InProcess { .. } | Endpoint::Layered(_) => "",
    }
}

/// What the endpoints of a reference take in memory, in bytes.
pub(crate) fn cost(reference: &Reference) -> u64 {
    let all = reference.profiles.iter().flat_map(|profile| &profile.endpoints);
    all.map(|endpoint| (size_of::<Endpoint>() + text_of(endpoint).len()) as u64).sum()
}

/// A Unix socket or shared memory out of its component; nothing if it is on another host.
fn local(tag: u32, data: &[u8]) -> Result<Option<Endpoint>, DecodeError> {
    let mut get = Get::encapsulation(data)?;
    let host = get.text()?;
    let path = get.text()?;
    if host != host_name() || path.is_empty() || path.len() > PLACE_TEXT {
        return Ok(None);
    }
    Ok(Some(if tag == TAG_SHARED_MEMORY { Endpoint::Shm { path } } else { Endpoint::Unix { path } }))
}

/// Another host and port out of its component.
fn alternate(data: &[u8]) -> Result<Endpoint, DecodeError> {
    let mut get = Get::encapsulation(data)?;
    Ok(Endpoint::Tcp { host: get.text()?, port: get.u16()? })
}

/// The code sets that the server of a profile lists, if it does. A profile without the component is looked up
/// among those that stand beside it in the reference. Nothing, if there is none or it does not decode: then
/// the specification's fallback applies.
pub(crate) fn code_sets(profile: &Profile) -> Option<Offer> {
    let mut offer = Offer::read(find(profile, TAG_CODE_SETS)?).ok()?;
    // TAO says that it converts UTF-8 into its own ISO 8859-1, and spoils each letter beyond ASCII. By the specification the server's
    // own set is chosen, so nothing is lost that TAO could read. omniORB is asked for UTF-8 all the same: it says the same sets for Python, where
    // it reads more than ISO 8859-1.
    let is_tao = find(profile, TAG_ORB_TYPE).is_some_and(|data| number(data) == Some(TAO));
    if is_tao && offer.narrow.first() == Some(&ISO_8859_1) {
        offer.narrow.truncate(1);
    }
    Some(offer)
}

/// The sets for requests to the server of a profile. One whose reference lists none has ISO 8859-1 for narrow text (CORBA 3.3 part 2, section
/// 7.10.2.4); an address that somebody wrote (`iiop://`, `corbaloc`) says nothing of that, so there the fallback holds for sides without a set
/// in common, UTF-8.
pub(crate) fn dialect(profile: &Profile, minor: u8) -> Dialect {
    match code_sets(profile) {
        Some(offer) => offer.choose(minor),
        None if profile.lease.get::<Shared>().is_some() => {
            Dialect { minor, narrow: Narrow::Latin1, wide: Wide::Utf16 }
        }
        None => Dialect { minor, ..Dialect::OURS },
    }
}

/// Whether the components of a profile, or those beside it, have the mark of ORBs of Sun's: the format of values of
/// RMI-IIOP.
pub(crate) fn has_mark_of_sun(profile: &Profile) -> bool {
    find(profile, TAG_RMI_CUSTOM_MAX_STREAM_FORMAT).is_some()
}

/// Whether a profile, or what stands beside it, says that its object is called over TLS alone. omniORB writes the same of each port
/// with TLS, whatever other ports were opened on purpose, so it is not taken at its word.
pub(crate) fn demands_tls(profile: &Profile) -> bool {
    let is_of_omniorb = || find(profile, TAG_ORB_TYPE).and_then(|data| number(data)) == Some(OMNIORB);
    ssl::demands(profile.components.iter().chain(shared(profile))) && !is_of_omniorb()
}

/// The number that a component has for its only content.
fn number(data: &[u8]) -> Option<u32> {
    Get::encapsulation(data).and_then(|mut get| get.u32()).ok()
}

/// Components beside a profile.
fn shared(profile: &Profile) -> &[(u32, Bytes)] {
    profile.lease.get::<Shared>().map(|held| &*held.components).unwrap_or_default()
}

/// The first component with this tag: of the profile's own, then of those that stand beside it in the reference.
fn find(profile: &Profile, wanted: u32) -> Option<&Bytes> {
    profile.components.iter().chain(shared(profile)).find(|(tag, _)| *tag == wanted).map(|(_, data)| data)
}

/// Has a profile use what stands in a TAG_MULTIPLE_COMPONENTS profile of its reference: its endpoints
/// (`told`) are tried after the profile's own of the same kind, and its code sets are found (`code_sets`).
pub(crate) fn share(profile: &mut Profile, told: &[Endpoint], shared: &Arc<Shared>) {
    add(&mut profile.endpoints, told.iter().cloned());
    // Sockets of this host come first, as they do of a profile's own.
    profile.endpoints.sort_by_key(Endpoint::distance);
    profile.lease = match unused(profile) {
        Some(unused) => Shared { unused: Some(unused.clone()), ..Shared::clone(shared) }.lease(),
        None => Lease::new(Arc::clone(shared) as _),
    };
}

/// What is known of a profile by the reference that it was read out of, and is no part of it. It is kept in the profile's lease.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared {
    /// Components that stand beside the profiles: tags and data. They are written where they were read, and nowhere else.
    pub(crate) components: Arc<[(u32, Bytes)]>,
    /// Whether the profile was read out of others that the reference keeps as octets.
    pub(crate) is_stand_in: bool,
    /// The profile's host and port, if they make no endpoint.
    pub(crate) unused: Option<(String, u16)>,
}

impl Shared {
    /// As the lease of a profile.
    pub(crate) fn lease(self) -> Lease {
        Lease::new(Arc::new(self) as _)
    }
}

/// Has a profile that was just read be known for one, with its host and port where nothing else in it tells them (`unused`).
pub(crate) fn mark_as_read(profile: &mut Profile, unused: Option<(String, u16)>) {
    static PLAIN: OnceLock<Arc<Shared>> = OnceLock::new();
    profile.lease = match unused {
        Some(_) => Shared { unused, ..Shared::default() }.lease(),
        None => Lease::new(Arc::clone(PLAIN.get_or_init(Arc::default)) as _),
    };
}

/// The host and the port that a profile was read with, if they make no endpoint of it: such as port 0 with the security mechanisms of CSIv2.
pub(crate) fn unused(profile: &Profile) -> Option<&(String, u16)> {
    profile.lease.get::<Shared>()?.unused.as_ref()
}

/// Whether nothing is kept in a profile's lease that a call needs.
pub(crate) fn is_free(profile: &Profile) -> bool {
    let is_plain =
        |shared: &Shared| shared.components.is_empty() && !shared.is_stand_in && shared.unused.is_none();
    profile.lease.is_empty() || profile.lease.get().is_some_and(is_plain)
}

/// Whether the profile stands for others that the reference keeps as octets.
pub(crate) fn is_stand_in(profile: &Profile) -> bool {
    profile.lease.get::<Shared>().is_some_and(|shared| shared.is_stand_in)
}

/// The components for endpoints beyond the first over TCP. The first over TCP is the host and port of the
/// profile itself. Endpoints with TLS are not among them, see `ssl::component`.
pub(crate) fn beside_primary(endpoints: &[Endpoint]) -> Vec<(u32, Bytes)> {
    let primary = endpoints.iter().position(|endpoint| matches!(endpoint, Endpoint::Tcp { .. }));
    let others = endpoints.iter().enumerate().filter(|(index, _)| Some(*index) != primary);
    others.filter_map(|(_, endpoint)| of_endpoint(endpoint)).collect()
}

/// The same profile, with the address first by which the peer of a connection knows this machine: `local` is
/// that of this side's end. Nothing if that says no more: the profile is of others, or names its address
/// anyway. For a node that listens on all addresses of its host: which of them a peer can reach is known only
/// by the connection that the reference is sent over.
pub(crate) fn seen_at(profile: &Profile, local: IpAddr) -> Option<Profile> {
    let known = profile.lease.get::<Wildcard>()?.seen_at(local)?;
    let is_tcp = |endpoint: &&Endpoint| matches!(endpoint, Endpoint::Tcp { .. });
    if profile.endpoints.iter().find(is_tcp) == Some(&known) {
        return None;
    }
    let mut seen = profile.clone();
    seen.endpoints.retain(|endpoint| *endpoint != known);
    let first = seen.endpoints.iter().position(|endpoint| is_tcp(&endpoint)).unwrap_or(seen.endpoints.len());
    seen.endpoints.insert(first, known);
    seen.components.retain(|(tag, _)| !is_endpoint(*tag));
    seen.components.extend(beside_primary(&seen.endpoints));
    Some(seen)
}

/// Reads a list of components, an encapsulation.
pub(crate) fn read(data: &[u8]) -> Result<Vec<(u32, Bytes)>, DecodeError> {
    let mut get = Get::encapsulation(data)?;
    let mut found = Vec::new();
    for _ in 0..get.parts()? {
        let tag = get.u32()?;
        found.push((tag, Bytes::copy_from_slice(get.octets()?)));
    }
    Ok(found)
}

/// What a component says, in words.
pub(crate) fn words(tag: u32, data: &[u8]) -> Option<String> {
    Some(match tag {
        TAG_ORB_TYPE => match number(data)? {
            ORB_TYPE => "ORB type: Everywire".to_owned(),
            OMNIORB => "ORB type: omniORB".to_owned(),
            0x4a41_4300 => "ORB type: JacORB".to_owned(),
            TAO => "ORB type: TAO".to_owned(),
            other => format!("ORB type: {other:#010x}"),
        },
        TAG_CODE_SETS => format!("code sets: {}", Offer::read(data).ok()?),
        TAG_ALTERNATE_IIOP_ADDRESS => format!("alternate address: {}", alternate(data).ok()?),
        TAG_OMNIORB_UNIX_TRANS | TAG_SHARED_MEMORY => {
            let mut get = Get::encapsulation(data).ok()?;
            let (host, path) = (get.text().ok()?, get.text().ok()?);
            format!("{}: {path} on {host}", name(tag))
        }
        _ => return ssl::words(tag, data),
    })
}
