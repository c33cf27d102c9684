//! References without a profile of IIOP, which tell of Unix sockets in profiles of their ORB's own: those of ORBit2, which
//! listens at no port unless it is told to, and of MICO (`-ORBIIOPAddr unix:PATH`).
//!
//! `stand_ins` makes profiles of them. The profiles that were read stay in the reference as octets and are passed on so;
//! their stand-ins are marked in their leases and are not written. What does not decode is passed over. Sockets of other
//! hosts are not used, as in `components`.

use crate::cdr::{DecodeError, Get, ReadCdr};
use crate::components::{self, Shared};
use crate::limits::{PLACE_TEXT, PROFILE_ENDPOINTS};
use bytes::Bytes;
use everywire_model::{Endpoint, Profile};

/// ORBit2: a protocol by its name, a host, and a port or path; the key stands elsewhere in the reference.
pub(crate) const TAG_GENERIC_IOP: u32 = 0x4f42_5400;
/// ORBit: the path of a Unix socket, and the key.
pub(crate) const TAG_ORBIT_SPECIFIC: u32 = 0xbadf_aeca;
/// MICO: as a profile of IIOP, with a path in the port's place.
pub(crate) const TAG_UNIX_IOP: u32 = 20002;
/// The key, among components that stand beside the profiles (CORBA 3.3 part 2, section 7.6.6).
const TAG_COMPLETE_OBJECT_KEY: u32 = 5;

/// How ORBit2 names the files of its sockets. It calls its host `localhost` where it has no others, so a reference out of
/// a message could name any socket of this host; no other file is used by that name.
const ORBIT_SOCKET: &str = "linc-";

/// The profiles that stand for these, in their order; `shared` is what stands beside them in the reference.
pub(crate) fn stand_ins(foreign: &[(u32, Bytes)], shared: &[(u32, Bytes)]) -> Vec<Profile> {
    let tagged = |wanted| foreign.iter().filter(move |(tag, _)| *tag == wanted).map(|(_, data)| data);
    let specific: Vec<Orbit> = tagged(TAG_ORBIT_SPECIFIC).filter_map(|data| orbit(data).ok()).collect();
    let key = specific.first().map(|orbit| orbit.key.clone()).or_else(|| {
        shared.iter().find(|(tag, _)| *tag == TAG_COMPLETE_OBJECT_KEY).map(|(_, key)| key.clone())
    });
    let generic = tagged(TAG_GENERIC_IOP).filter_map(|data| generic(data).ok().flatten());
    let mut found: Vec<Profile> = generic
        .filter_map(|(minor, endpoint)| Some(profile(minor, endpoint, key.clone()?, Vec::new())))
        .collect();
    if tagged(TAG_GENERIC_IOP).next().is_none() {
        // ORBit 0.5 has no other profile, and knows no later version.
        found.extend(
            specific
                .into_iter()
                .filter_map(|orbit| Some(profile(0, here("localhost", orbit.path)?, orbit.key, Vec::new()))),
        );
    }
    found.extend(tagged(TAG_UNIX_IOP).filter_map(|data| mico(data).ok().flatten()));
    found.truncate(PROFILE_ENDPOINTS);
    let lease = Shared { components: shared.into(), is_stand_in: true, unused: None }.lease();
    found.iter_mut().for_each(|profile| profile.lease = lease.clone());
    found
}

fn profile(minor: u8, endpoint: Endpoint, key: Bytes, components: Vec<(u32, Bytes)>) -> Profile {
    let endpoints = vec![endpoint];
    Profile { wire: "giop", version: (1, minor), endpoints, key, components, ..Profile::default() }
}

/// A socket of this host; nothing if it is on another one. Of a name with a domain only the first part is compared: nobody here knows
/// the domain for certain.
fn here(host: &str, path: String) -> Option<Endpoint> {
    let own = components::host_name();
    let is_here = if host == "localhost" {
        let is_plain = path.split('/').all(|part| part != "..");
        is_plain && path.rsplit('/').next().is_some_and(|file| file.starts_with(ORBIT_SOCKET))
    } else {
        host.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    (is_here && path.starts_with('/') && path.len() <= PLACE_TEXT).then_some(Endpoint::Unix { path })
}

/// The minor version of the profile's first two octets.
///
/// # Errors
/// It ends early, or its major version is not 1.
fn minor(get: &mut Get<'_>) -> Result<u8, DecodeError> {
    match (get.u8()?, get.u8()?) {
        (1, minor) => Ok(minor),
        _ => Err(get.bad("a profile has a major version other than 1")),
    }
}

/// A profile of ORBit2 with a protocol's name. Nothing for protocols other than Unix sockets and TCP.
fn generic(data: &[u8]) -> Result<Option<(u8, Endpoint)>, DecodeError> {
    let mut get = Get::encapsulation(data)?;
    let minor = minor(&mut get)?;
    let (protocol, host, service) = (get.text()?, get.text()?, get.text()?);
    let endpoint = match protocol.as_str() {
        "UNIX" => here(&host, service),
        "IPv4" | "IPv6" if host.len() <= PLACE_TEXT && !host.is_empty() => {
            service.parse().ok().filter(|port| *port != 0).map(|port| Endpoint::Tcp { host, port })
        }
        _ => None,
    };
    Ok(endpoint.map(|endpoint| (minor, endpoint)))
}

/// What ORBit's own profile says that is needed here.
struct Orbit {
    path: String,
    key: Bytes,
}

fn orbit(data: &[u8]) -> Result<Orbit, DecodeError> {
    let mut get = Get::encapsulation(data)?;
    minor(&mut get)?;
    let path = get.text()?;
    // The port of IPv6, of a host that is not told.
    get.u16()?;
    Ok(Orbit { path, key: Bytes::copy_from_slice(get.octets()?) })
}

/// A profile of MICO with a Unix socket.
fn mico(data: &[u8]) -> Result<Option<Profile>, DecodeError> {
    let mut get = Get::encapsulation(data)?;
    let minor = minor(&mut get)?;
    let (host, path) = (get.text()?, get.text()?);
    let key = Bytes::copy_from_slice(get.octets()?);
    let mut held = Vec::new();
    if minor > 0 {
        for _ in 0..get.parts()? {
            let tag = get.u32()?;
            held.push((tag, Bytes::copy_from_slice(get.octets()?)));
        }
    }
    // A host without a name, for which MICO writes a loopback address, is not looked for: anybody could write that.
    Ok(here(&host, path).map(|endpoint| profile(minor, endpoint, key, held)))
}
