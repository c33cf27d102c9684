//! References as text: `dbus:session/NAME/PATH`, `dbus:ADDRESS#NAME/PATH`, and the friendly addresses of
//! every wire.
//!
//! Nothing is kept here. A reference becomes one profile: endpoints to connect to, the object's key, and
//! components (the `TAG_` constants) for whatever else the address says. Which components there are decides
//! what a connection does: with TAG_BUS it greets a bus, with TAG_NAME it calls or serves under that name,
//! without TAG_BUS the peer at the endpoint has the object itself.
//!
//! Where two notations give the same profile, the one with a word (`session`) is printed. `print` keeps all
//! of a profile but its options (flags, ways to authenticate); `print_friendly` prefers the notation of all
//! wires, where it loses nothing.
//!
//! Text is bounded by `REFERENCE_TEXT`. It comes from users and, inside of messages, from peers (`source`
//! reads references by `received`), so names and paths are checked before they are used in messages or match
//! rules.

use crate::addresses::{self, Environment, ServerAddress, wrong};
use crate::frame::{ALLOW_INTERACTIVE_AUTHORIZATION, NO_AUTO_START};
use crate::{limits, names};
use bytes::Bytes;
use everywire_model::{Address, BindAddress, Endpoint, Failure, LayerOptions, Profile, Reference, reference};
use std::borrow::Cow;

/// The wire's name.
pub(crate) const WIRE: &str = "dbus";

/// Component of a profile: the bus name behind which the object is.
pub const TAG_NAME: u32 = 1;
/// Component of a profile: the bus to go through, as written: `session`, `system` or an address. Without it the peer at
/// the endpoint has the object itself.
pub const TAG_BUS: u32 = 2;
/// Component of a profile: the file with the nonce of a `nonce-tcp` address. With several endpoints there is one for each
/// that has a nonce, which begins with the endpoint, as text, and a NUL.
pub const TAG_NONCE: u32 = 3;
/// Component of a place: ways to authenticate, `external`, `cookie`, `anonymous`, with `+` between them.
pub const TAG_AUTH: u32 = 4;
/// Component of a place: the flags of `RequestName`, one byte.
pub const TAG_FLAGS: u32 = 5;
/// Component of a profile: the server's identity; with several endpoints as for [`TAG_NONCE`].
pub const TAG_GUID: u32 = 6;
/// Component of a profile: flags of every call to the object, one byte ([`crate::frame::NO_AUTO_START`] and
/// [`crate::frame::ALLOW_INTERACTIVE_AUTHORIZATION`]).
pub const TAG_CALL: u32 = 7;

/// Flag of `RequestName`: others may take the name away.
pub const ALLOW_REPLACEMENT: u8 = 1;
/// Flag of `RequestName`: take the name from its owner, if that permits it.
pub const REPLACE_EXISTING: u8 = 2;
/// Flag of `RequestName`: fail rather than wait for the name. It is set unless the place says `queue`.
///
/// With `queue` a place is joined also while somebody else owns the name: this side is ready, callers by the name reach
/// the owner, and calls come here as soon as all before have left. Which of both is so now tells the bus:
/// [`crate::standard::driver::LIST_QUEUED_OWNERS`] yields the owner first, and then those who wait.
pub const DO_NOT_QUEUE: u8 = 4;

/// Reads a reference in any notation. The words `session` and `system` are looked up in the environment of
/// this process.
///
/// # Errors
/// The text is too long or is no reference; the environment names no bus.
pub(crate) fn parse(text: &str) -> Result<Reference, Failure> {
    let profile = profile(text, false, &addresses::environment)?;
    Ok(Reference { profiles: vec![profile], ..Reference::default() })
}

/// Reads a reference that a peer wrote. What only the user may say is left out: a peer names no files to read
/// (that of a nonce is sent to the address beside it), and says nothing of how to trust it (options of layers).
/// The words for buses stay: what they mean is the user's to say, and no more than the address of a socket of
/// this host.
///
/// # Errors
/// As `parse`.
pub(crate) fn received(text: &str) -> Result<Reference, Failure> {
    let mut reference = parse(text)?;
    for profile in &mut reference.profiles {
        if profile.component(TAG_BUS).is_some_and(|bus| is_word(bus)) {
            continue;
        }
        profile.components.retain(|(tag, _)| *tag != TAG_NONCE);
        profile.endpoints.iter_mut().for_each(|endpoint| *endpoint = endpoint.bare());
        // The bus as written has the same in it.
        let list = Bytes::from(list(profile));
        for (_, bus) in profile.components.iter_mut().filter(|(tag, _)| *tag == TAG_BUS) {
            bus.clone_from(&list);
        }
    }
    Ok(reference)
}

/// Where to serve: under a name on a bus (`BindAddress::Join`), or at an address where peers connect
/// (`BindAddress::Listen`).
///
/// # Errors
/// The text names an object, or a bus without a name, or cannot be understood.
pub(crate) fn listen(text: &str) -> Result<BindAddress, Failure> {
    place(text, &addresses::environment)
}

/// The environment is an argument, so that tests have one of their own.
fn place(text: &str, look: Environment<'_>) -> Result<BindAddress, Failure> {
    let mut profile = profile(text, true, look)?;
    if !profile.key.is_empty() {
        return Err(wrong(format!("`{text}` names an object; a place to serve at does not")));
    }
    if profile.component(TAG_BUS).is_none() {
        return if lets_nobody_in(&profile) {
            Err(wrong("EXTERNAL alone lets nobody in over TCP: it takes the kernel's word for who connects, which only Unix sockets have")
                .with_hint("add a way that TCP has, as in auth=external+cookie, or serve at dbus+unix://"))
        } else {
            Ok(BindAddress::Listen(profile))
        };
    }
    match profile.component(TAG_NAME) {
        None => {
            return Err(wrong(format!("`{text}` names no bus name to serve under"))
                .with_hint("write the name behind the bus, as in dbus:session/org.example.Name"));
        }
        Some(name) if name.starts_with(b":") => {
            return Err(wrong("a unique name cannot be asked for; it is given by the bus"));
        }
        Some(_) => {}
    }
    if profile.component(TAG_FLAGS).is_none() {
        profile.components.push((TAG_FLAGS, Bytes::from_static(&[DO_NOT_QUEUE])));
    }
    Ok(BindAddress::Join(profile))
}

/// Whether a place to serve at takes only what its connections cannot bring: a client would be told `REJECTED` without a way that is
/// left (specification, "Authentication Protocol"; EXTERNAL is in "Authentication mechanisms").
fn lets_nobody_in(profile: &Profile) -> bool {
    let external = profile
        .component(TAG_AUTH)
        .is_some_and(|ways| ways.split(|octet| *octet == b'+').all(|way| way == b"external"));
    let mut places = profile.endpoints.iter();
    external && places.any(|endpoint| matches!(endpoint.stream(), Endpoint::Tcp { .. }))
}

/// A reference without what stands for the object.
struct Target<'a> {
    /// The bus as written, if one is between.
    bus: Option<&'a str>,
    /// Where to connect to, in the order in which it is tried.
    addresses: Vec<ServerAddress>,
    /// The name on the bus; empty without one.
    name: &'a str,
    /// What follows the name: a path, or nothing.
    path: &'a str,
}

/// Reads the text as a profile. `listening` says that it is an address to serve at, where port 0, for one,
/// has a meaning; `look` is the environment.
fn profile(text: &str, listening: bool, look: Environment<'_>) -> Result<Profile, Failure> {
    let text = reference::bounded(text, limits::REFERENCE_TEXT)?;
    let (text, mut options) = split_options(text);
    let mut profile = Profile { wire: WIRE, version: (1, 0), ..Profile::default() };
    let friendly = text.starts_with("dbus+") || text.starts_with("dbus://");
    let mut auth = None;
    if friendly {
        let Address { scheme, mut endpoint, key } = Address::parse(&text, None)?;
        if scheme != WIRE {
            return Err(wrong(format!("`{scheme}` is no scheme of this wire")));
        }
        if !listening && matches!(endpoint.stream(), Endpoint::Tcp { port: 0, .. }) {
            return Err(wrong("port 0 is for listening: no object can be reached there"));
        }
        if let Some(layered) = endpoint.layer() {
            // What is no option of this wire is one of the layer's.
            let (own, of_layer): (Vec<&str>, Vec<&str>) =
                options.split('&').partition(|option| !option.contains('=') || option.starts_with("auth="));
            let of_layer = LayerOptions::parse(&of_layer.join("&"))?;
            endpoint = Endpoint::layered(layered.layer, of_layer, layered.over.clone());
            options = own.join("&");
        }
        (profile.endpoints, profile.key) = (vec![endpoint], key);
    } else {
        let rest = text
            .strip_prefix("dbus:")
            .ok_or_else(|| wrong(format!("`{text}` does not begin with `dbus:`")))?;
        let target = target(rest, listening, look)?;
        if !target.name.is_empty() && !names::is_bus_name(target.name.as_bytes()) {
            return Err(wrong(format!("`{}` is no bus name", target.name)));
        }
        profile.key = key(target.path)?;
        if let [only] = target.addresses.as_slice() {
            auth.clone_from(&only.auth);
        }
        // Nonce and identity belong to one address of a list, so with several each says whose it is.
        let several = target.addresses.len() > 1;
        for address in &target.addresses {
            let guid = address.guid.clone().map(Bytes::from);
            for (tag, data) in [(TAG_NONCE, address.nonce.clone()), (TAG_GUID, guid)] {
                if let Some(data) = data {
                    let data = if several { of_one(&address.endpoint, &data) } else { data };
                    profile.components.push((tag, data));
                }
            }
        }
        profile.endpoints = target.addresses.into_iter().map(|address| address.endpoint).collect();
        if let Some(bus) = target.bus {
            profile.components.push((TAG_BUS, Bytes::from(bus.to_owned())));
            if !target.name.is_empty() {
                profile.components.push((TAG_NAME, Bytes::from(target.name.to_owned())));
            }
        }
    }
    read_options(&options, auth, &mut profile)?;
    Ok(profile)
}

/// Reads what follows `dbus:`. Behind a `#` stand a name and a path, or a path alone, which means a peer
/// without a bus.
fn target<'a>(rest: &'a str, listening: bool, look: Environment<'_>) -> Result<Target<'a>, Failure> {
    let (place, object) = match rest.split_once('#') {
        Some((place, object)) => (place, Some(object)),
        None => (rest, None),
    };
    let head = place.split('/').next().unwrap_or_default();
    // The words mean a bus only if nothing else stands before the `#`.
    let known = matches!(head, "session" | "system") && (object.is_none() || head == place);
    let (bus, object) = match object {
        // NAME/PATH behind the word.
        None if known => {
            (Some(head), place.strip_prefix(head).map_or("", |rest| rest.strip_prefix('/').unwrap_or(rest)))
        }
        None => (None, ""),
        Some(object) if object.starts_with('/') => (None, object),
        Some(object) => (Some(place), object),
    };
    let end = object.find('/').unwrap_or(object.len());
    let (name, path) = object.split_at_checked(end).unwrap_or((object, ""));
    let joins = listening && bus.is_some();
    let addresses = match head {
        "session" if known => addresses::session(look)?,
        "system" if known => addresses::system(look)?,
        _ if listening && !joins => vec![addresses::listening(place, look)?],
        _ => addresses::connecting(place, look)?,
    };
    Ok(Target { bus, addresses, name, path })
}

/// A component that holds for one of several endpoints only: that endpoint as text, a NUL, and the data.
fn of_one(endpoint: &Endpoint, data: &[u8]) -> Bytes {
    Bytes::from([endpoint.to_string().as_bytes(), b"\0", data].concat())
}

/// The nonce file or the identity of the server at an endpoint: that which names this endpoint, or which
/// names none.
pub(crate) fn component_of<'a>(profile: &'a Profile, endpoint: &Endpoint, tag: u32) -> Option<&'a [u8]> {
    let place = endpoint.to_string();
    let mut held = profile.components.iter().filter(|(held, _)| *held == tag);
    held.find_map(|(_, data)| match data.iter().position(|octet| *octet == 0) {
        None => Some(&**data),
        Some(end) => data.split_at_checked(end).and_then(|(one, rest)| {
            if one == place.as_bytes() { rest.split_first().map(|(_, rest)| rest) } else { None }
        }),
    })
}

/// The object's key out of a path; empty without one, which means the peer or the bus as such.
fn key(path: &str) -> Result<Bytes, Failure> {
    match path {
        "" => Ok(Bytes::new()),
        path if names::is_path(path.as_bytes()) => Ok(names::key_of_path(&Bytes::from(path.to_owned()))),
        path => Err(wrong(format!("`{path}` is no object path"))
            .with_hint("a path is /ELEMENT/ELEMENT, each of letters, digits and `_`")),
    }
}

/// Takes `?...` out of the text, up to a `#` or the end. The rest of the text is returned first, then the
/// options without the `?`.
fn split_options(text: &str) -> (Cow<'_, str>, String) {
    match text.split_once('?') {
        None => (Cow::Borrowed(text), String::new()),
        Some((before, rest)) => {
            let (options, after) =
                rest.split_at_checked(rest.find('#').unwrap_or(rest.len())).unwrap_or((rest, ""));
            (Cow::Owned(format!("{before}{after}")), options.to_owned())
        }
    }
}

/// Adds what the options say as components. `auth` is what the address itself said of authentication; an
/// option replaces it.
///
/// # Errors
/// An option, or a way to authenticate, is unknown.
fn read_options(options: &str, mut auth: Option<String>, profile: &mut Profile) -> Result<(), Failure> {
    let mut flags = None;
    let mut calls = 0;
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let so_far = flags.unwrap_or(DO_NOT_QUEUE);
        match option.split_once('=') {
            None if option == "queue" => flags = Some(so_far & !DO_NOT_QUEUE),
            None if option == "replace" => flags = Some(so_far | REPLACE_EXISTING),
            None if option == "replaceable" => flags = Some(so_far | ALLOW_REPLACEMENT),
            None if option == "no-start" => calls |= NO_AUTO_START,
            None if option == "interactive" => calls |= ALLOW_INTERACTIVE_AUTHORIZATION,
            Some(("auth", value)) => auth = Some(value.to_owned()),
            _ => {
                return Err(wrong(format!("the option `{option}` is unknown")).with_hint(
                    "options are queue, replace, replaceable and auth=external+cookie+anonymous of places, \
                         no-start and interactive of objects",
                ));
            }
        }
    }
    if let Some(auth) = auth {
        if let Some(unknown) =
            auth.split('+').find(|word| !matches!(*word, "external" | "cookie" | "anonymous"))
        {
            return Err(wrong(format!("`{unknown}` is no way to authenticate"))
                .with_hint("the ways are external, cookie and anonymous, with `+` between several"));
        }
        profile.components.push((TAG_AUTH, Bytes::from(auth)));
    }
    if calls != 0 {
        profile.components.push((TAG_CALL, Bytes::copy_from_slice(&[calls])));
    }
    if let Some(flags) = flags {
        profile.components.push((TAG_FLAGS, Bytes::copy_from_slice(&[flags])));
    }
    Ok(())
}

/// A reference to an object of this process. Peer to peer comes first, since it saves the hop over the bus:
/// all places that are listened at share one profile, but those with a nonce, which has to travel with its
/// address. Then comes one profile for each bus that was joined.
pub(crate) fn publish(type_id: &str, places: &[BindAddress], key: &[u8]) -> Reference {
    let key = Bytes::copy_from_slice(key);
    let kept = |profile: &Profile| -> Vec<(u32, Bytes)> {
        let of_place = |tag: &u32| matches!(*tag, TAG_AUTH | TAG_FLAGS);
        profile.components.iter().filter(|(tag, _)| !of_place(tag)).cloned().collect()
    };
    let mut direct = Profile { wire: WIRE, version: (1, 0), key: key.clone(), ..Profile::default() };
    let mut profiles = Vec::new();
    for place in places {
        match place {
            BindAddress::Join(profile) => {
                profiles.push(Profile { key: key.clone(), components: kept(profile), ..profile.clone() });
            }
            BindAddress::Listen(profile) if profile.component(TAG_NONCE).is_some() => {
                profiles.push(Profile { key: key.clone(), components: kept(profile), ..profile.clone() });
            }
            BindAddress::Listen(profile) => {
                let reachable = |endpoint: &&Endpoint| !matches!(endpoint, Endpoint::InProcess { .. });
                // Files of this side's are nothing to others.
                direct.endpoints.extend(profile.endpoints.iter().filter(reachable).map(Endpoint::bare));
            }
        }
    }
    direct.endpoints.sort_by_key(Endpoint::distance);
    if !direct.endpoints.is_empty() {
        profiles.insert(0, direct);
    }
    Reference { type_id: type_id.to_owned(), profiles, ..Reference::default() }
}

/// A reference with the server's address in the specification's notation; nothing if no profile is of this wire.
pub(crate) fn print(reference: &Reference) -> String {
    ours(reference).map(print_profile).unwrap_or_default()
}

/// A friendly address.
pub(crate) fn print_friendly(reference: &Reference) -> String {
    let Some(profile) = ours(reference) else { return String::new() };
    let plain = [TAG_BUS, TAG_NONCE, TAG_GUID].iter().all(|tag| profile.component(*tag).is_none());
    match profile.endpoints.first() {
        Some(endpoint) if plain => {
            let (scheme, endpoint, key) = (WIRE.to_owned(), endpoint.clone(), profile.key.clone());
            Address { scheme, endpoint, key }.to_string()
        }
        _ => print_profile(profile),
    }
}

/// The first profile of this wire.
fn ours(reference: &Reference) -> Option<&Profile> {
    reference.profiles.iter().find(|profile| profile.wire == WIRE)
}

/// Whether a bus is given by a word, which this process looks up.
fn is_word(bus: &[u8]) -> bool {
    matches!(bus, b"session" | b"system")
}

/// The addresses of a profile, with `;` between them, as far as its endpoints have one.
fn list(profile: &Profile) -> String {
    let print = |endpoint| {
        let of = |tag| component_of(profile, endpoint, tag);
        addresses::print(endpoint, of(TAG_NONCE), of(TAG_GUID))
    };
    profile.endpoints.iter().filter_map(print).collect::<Vec<_>>().join(";")
}

/// Empty for a profile whose endpoints have no address in the specification's notation.
fn print_profile(profile: &Profile) -> String {
    let path = if profile.key.is_empty() { String::new() } else { names::path_of_key(&profile.key) };
    let name = profile.component(TAG_NAME).map(|name| String::from_utf8_lossy(name)).unwrap_or_default();
    match profile.component(TAG_BUS).map(|bus| String::from_utf8_lossy(bus)) {
        Some(bus) if is_word(bus.as_bytes()) && name.is_empty() => format!("dbus:{bus}"),
        Some(bus) if is_word(bus.as_bytes()) => format!("dbus:{bus}/{name}{path}"),
        Some(bus) => format!("dbus:{bus}#{name}{path}"),
        None => {
            let list = list(profile);
            if list.is_empty() {
                return String::new();
            }
            let hash = if path.is_empty() { "" } else { "#" };
            format!("dbus:{list}{hash}{path}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(name: &str) -> Option<String> {
        (name == "DBUS_SESSION_BUS_ADDRESS").then(|| "unix:path=/s".to_owned())
    }

    fn read(text: &str) -> Profile {
        profile(text, false, &look).unwrap()
    }

    #[test]
    fn every_notation_is_read() {
        let session = read("dbus:session/org.a.B/c/d");
        assert_eq!(session.endpoints[0].to_string(), "unix:/s");
        assert_eq!(session.component(TAG_NAME).unwrap(), "org.a.B");
        assert_eq!(session.key, "c/d");
        assert_eq!(read("dbus:session#org.a.B/c/d").components, session.components);
        assert_eq!(read("dbus:session/org.a.B/").key, "/");
        assert_eq!(read("dbus:session").component(TAG_NAME), None);
        let given = read("dbus:unix:path=/x;tcp:host=h,port=1#:1.5/a");
        assert_eq!((given.endpoints.len(), given.component(TAG_NAME).unwrap().as_ref()), (2, &b":1.5"[..]));
        let peer = read("dbus:unix:path=/x#/a");
        assert_eq!((peer.component(TAG_BUS), peer.key.as_ref()), (None, &b"a"[..]));
        assert_eq!(read("dbus+unix:///x#a").key, "a");
        assert_eq!(read("dbus://h:7/a").endpoints[0].to_string(), "tcp:h:7");
        assert_eq!(read("dbus:unix:path=/x").key, "");
    }

    #[test]
    fn what_is_printed_reads_the_same() {
        for text in [
            "dbus:session/org.a.B/c/d",
            "dbus:system/org.a.B",
            "dbus:unix:path=/x#org.a.B/c",
            "dbus:unix:path=/x#/c",
            "dbus:unix:abstract=x",
            "dbus:nonce-tcp:host=h,port=7,noncefile=/n#/",
            "dbus:unix:path=/x,guid=0123456789abcdef0123456789abcdef#/",
            "dbus:nonce-tcp:host=h,port=7,noncefile=/n;nonce-tcp:host=h,port=8,noncefile=/m;tcp:host=h,port=9#/",
            "dbus:unix:path=/x,guid=0123456789abcdef0123456789abcdef;unix:path=/y#/",
            "dbus:session",
            "dbus:tls:host=h,port=7,ca=/c,identity=x#/",
            "dbus:tls:path=/x,ca=/c#/",
        ] {
            let reference = Reference { profiles: vec![read(text)], ..Reference::default() };
            assert_eq!(print(&reference), text);
        }
        for text in [
            "dbus+unix:///x#c",
            "dbus://h:7/c%20d",
            "dbus+shm:///x#c",
            "dbus+tls://h:7/c?ca=/a&identity=x",
            "dbus+tls+unix:///x?ca=/a#c",
        ] {
            let reference = Reference { profiles: vec![read(text)], ..Reference::default() };
            assert_eq!(print_friendly(&reference), text);
            assert_eq!(read(&print(&reference)).endpoints, reference.profiles[0].endpoints);
        }
    }

    #[test]
    fn places_join_or_listen() {
        let join = place("dbus:session/org.a.B?queue&replace", &look).unwrap();
        let BindAddress::Join(joined) = &join else { panic!("{join:?}") };
        assert_eq!(joined.component(TAG_FLAGS).unwrap().as_ref(), [REPLACE_EXISTING]);
        let listen = place("dbus+unix:///x?auth=external+anonymous", &look).unwrap();
        let BindAddress::Listen(at) = &listen else { panic!("{listen:?}") };
        assert_eq!(at.component(TAG_AUTH).unwrap(), "external+anonymous");
        let key = b"odd key";
        let reference = publish("", &[join.clone(), listen.clone()], key);
        assert_eq!(print(&reference), "dbus:unix:path=/x#/odd_20key");
        assert_eq!(print(&publish("", &[join], key)), "dbus:session/org.a.B/odd_20key");
        for (text, word) in [
            ("dbus:session", "no bus name"),
            ("dbus:session/:1.5", "unique"),
            ("dbus:session/org.a.B/c", "names an object"),
            ("dbus:unix:path=/x?frobnicate", "unknown"),
            ("dbus:unix:path=/x?auth=kerberos", "no way"),
            ("dbus://127.0.0.1:0?auth=external", "EXTERNAL alone"),
            ("dbus:tcp:host=127.0.0.1,port=0?auth=external+external", "EXTERNAL alone"),
            ("dbus+tls://127.0.0.1:0?auth=external&cert=c&key=k", "EXTERNAL alone"),
        ] {
            assert!(place(text, &look).unwrap_err().message().contains(word), "{text}");
        }
    }

    #[test]
    fn a_place_over_tcp_takes_external_beside_another_way() {
        for text in ["dbus://127.0.0.1:0?auth=external+cookie", "dbus+unix:///x?auth=external"] {
            assert!(matches!(place(text, &look), Ok(BindAddress::Listen(_))), "{text}");
        }
    }

    #[test]
    fn wrong_references_say_why() {
        for (text, word) in [
            ("dcop:x", "begin with"),
            ("dbus:session/org", "no bus name"),
            ("dbus:session/org.a.B/c-d", "no object path"),
            ("dbus://h:0/", "port 0"),
            ("dbus:nowhere:x=1", "unknown"),
        ] {
            let failure = profile(text, false, &look).unwrap_err();
            assert!(failure.message().contains(word), "{text}: {failure}");
        }
    }
}
