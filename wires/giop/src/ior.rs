//! Object references as values: the IOR (CORBA 3.3 part 2, sections 7.6 and 9.7.2).
//!
//! An IOR is a repository id and a list of tagged profiles; nil is an empty id and no profile. Profiles of
//! IIOP become `Profile`s of the model; all others are kept as octets (`Reference::foreign`) and written
//! behind those of IIOP, so a reference that is passed on loses nothing but the order. Profiles of IIOP with a major version other than 1
//! are kept so, too. A host and a port that make no endpoint are kept beside their profile (`components::unused`). Where there is none of IIOP,
//! profiles of other tags that this side can read become `Profile`s which are not written (`sockets`). Counts of profiles and
//! components are bounded (`Get::parts`) before anything is reserved, and so are the endpoints of each profile
//! (`components::endpoints`); whoever reads a reference out of a message pays for those (`components::cost`).

use crate::cdr::{CdrWriter, DecodeError, Get, ReadCdr, WriteCdr};
use crate::components::Shared;
use crate::{components, sockets, ssl};
use bytes::Bytes;
use everywire_model::{Endpoint, Profile, Reference};
use std::net::IpAddr;
use std::sync::Arc;

/// The tag of an IIOP profile (section 9.7.2).
pub const TAG_INTERNET_IOP: u32 = 0;

/// The tag of a profile that holds components alone, which are meant for every IIOP profile of the reference (section
/// 7.6.3).
pub const TAG_MULTIPLE_COMPONENTS: u32 = 1;

/// Whether something of a reference can be said here.
pub(crate) fn is_said(reference: &Reference) -> bool {
    !reference.foreign.is_empty() || reference.profiles.iter().any(|profile| profile.wire == "giop")
}

/// Writes a reference, or nil, for the peer of a connection whose end here has the address `local`. A profile
/// of this node that listens on all addresses is written with that address, since it is the one by which the
/// peer reaches this host.
pub(crate) fn put(reference: Option<&Reference>, local: Option<IpAddr>, put: &mut CdrWriter<'_>) {
    let Some(reference) = reference else {
        put.string(b"");
        put.u32(0);
        return;
    };
    put.string(reference.type_id.as_bytes());
    // What stands for profiles of other tags is not written beside those.
    let is_written = |profile: &&Profile| reference.foreign.is_empty() || !components::is_stand_in(profile);
    let own = || reference.profiles.iter().filter(|profile| profile.wire == "giop").filter(is_written);
    put.count(own().count() + reference.foreign.len());
    for profile in own() {
        put.u32(TAG_INTERNET_IOP);
        match local.and_then(|local| components::seen_at(profile, local)) {
            Some(seen) => put_profile(&seen, put),
            None => put_profile(profile, put),
        }
    }
    for (tag, data) in &reference.foreign {
        put.u32(*tag);
        put.octets(data);
    }
}

/// Writes the body of an IIOP profile as an encapsulation with its count. IIOP 1.0 has no components (section
/// 9.7.2), so a profile of 1.0 leaves them out.
pub(crate) fn put_profile(profile: &Profile, put: &mut CdrWriter<'_>) {
    put.encapsulated(|put| {
        let (major, minor) = profile.version;
        put.u8(major);
        put.u8(minor);
        let told = components::unused(profile).map(|(host, port)| (host.as_str(), *port));
        let (host, port) = told.unwrap_or_else(|| primary(&profile.endpoints));
        put.string(host.as_bytes());
        put.u16(port);
        put.octets(&profile.key);
        if minor > 0 {
            put.count(profile.components.len());
            for (tag, data) in &profile.components {
                put.u32(*tag);
                put.octets(data);
            }
        }
    });
}

/// The host and port of a profile with these endpoints.
fn primary(endpoints: &[Endpoint]) -> (&str, u16) {
    let plain = endpoints.iter().find_map(|endpoint| match endpoint {
        Endpoint::Tcp { host, port } => Some((host.as_str(), *port)),
        _ => None,
    });
    // Port 0 says that the host is reached over TLS alone, at the port that a component tells.
    let secured = || endpoints.iter().find_map(ssl::place).map(|(host, _, _)| (host, 0));
    // A peer without TCP is known by its host's name and port 0, as omniORB writes it.
    plain.or_else(secured).unwrap_or_else(|| (components::host_name(), 0))
}

/// Reads a reference, or nil.
///
/// # Errors
/// It ends early, has too many profiles, or a profile of IIOP in it does not decode. Offsets in errors count
/// from the beginning of what `get` reads.
pub(crate) fn get(get: &mut Get<'_>) -> Result<Option<Reference>, DecodeError> {
    let type_id = get.text()?;
    let count = get.parts()?;
    if count == 0 && type_id.is_empty() {
        return Ok(None);
    }
    let mut reference = Reference { type_id, ..Reference::default() };
    let mut shared = Vec::new();
    for _ in 0..count {
        let tag = get.u32()?;
        let data = get.octets()?;
        match tag {
            TAG_INTERNET_IOP => {
                let read = get_profile(data).map_err(|bad| bad.after(get.pos - data.len()))?;
                if let Some(profile) = read {
                    reference.profiles.push(profile);
                    continue;
                }
            }
            // Where they do not decode, the reference is used without them.
            TAG_MULTIPLE_COMPONENTS => shared.extend(components::read(data).unwrap_or_default()),
            _ => {}
        }
        reference.foreign.push((tag, Bytes::copy_from_slice(data)));
    }
    if reference.profiles.is_empty() {
        reference.profiles = sockets::stand_ins(&reference.foreign, &shared);
    } else if !shared.is_empty() {
        // Read once, however many profiles take them.
        let told = components::endpoints("", 0, &shared);
        let shared = Arc::new(Shared { components: shared.into(), ..Shared::default() });
        reference.profiles.iter_mut().for_each(|profile| components::share(profile, &told, &shared));
    }
    Ok(Some(reference))
}

/// Reads the body of an IIOP profile. `data` is the whole encapsulation. What stands behind the last known
/// field is passed over: later minor versions may add fields. Nothing, if its major version is not 1: what follows is unknown.
///
/// # Errors
/// It ends early.
pub(crate) fn get_profile(data: &[u8]) -> Result<Option<Profile>, DecodeError> {
    let mut get = Get::encapsulation(data)?;
    let version = (get.u8()?, get.u8()?);
    if version.0 != 1 {
        return Ok(None);
    }
    let host = get.text()?;
    let port = get.u16()?;
    let key = Bytes::copy_from_slice(get.octets()?);
    let mut held = Vec::new();
    if version.1 > 0 {
        for _ in 0..get.parts()? {
            let tag = get.u32()?;
            held.push((tag, Bytes::copy_from_slice(get.octets()?)));
        }
    }
    let endpoints = components::endpoints(&host, port, &held);
    let unused = (primary(&endpoints) != (host.as_str(), port)).then_some((host, port));
    let mut profile =
        Profile { wire: "giop", version, endpoints, key, components: held, ..Profile::default() };
    components::mark_as_read(&mut profile, unused);
    Ok(Some(profile))
}

/// The key alone of an IIOP profile, as an index range of `data`: what a server needs of a target.
pub(crate) fn key_of_profile(data: &[u8]) -> Result<std::ops::Range<usize>, DecodeError> {
    let mut get = Get::encapsulation(data)?;
    get.take(2)?;
    get.string()?;
    get.u16()?;
    let key = get.octets()?;
    Ok(get.pos - key.len()..get.pos)
}
