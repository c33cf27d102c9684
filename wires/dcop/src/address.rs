//! References as text: `dcop:APP/OBJECT` at the server of this user's session,
//! `dcop+unix:///SOCKET#APP/OBJECT` at a given one, and `dcop:DCOPRef(APP,OBJECT)`, as KDE's programs print
//! them.
//!
//! A reference becomes one profile: the server as its endpoint, the object's id as its key, the application's
//! id as a component. Names are escaped with `%` in text and are plain octets everywhere else; a NUL in one
//! is refused, since names end with NUL on the wire. The words that a `DCOPRef` in a message holds (`parts`,
//! `received`) say nothing of the server: it is the one that the message came by.

use crate::servers;
use bytes::Bytes;
use everywire_model::reference::{escape, unescape};
use everywire_model::{Address, BindAddress, Endpoint, Failure, Initiator, Kind, Profile, Reference, Visit};

/// Tag of the component that holds the application's id.
pub const APPLICATION: u32 = 1;

/// Tag of the component that is there if another id will do where the wanted one is taken (`?unique=no`).
pub const ANY_SUFFIX: u32 = 2;

/// The server's own id.
pub(crate) const SERVER: &[u8] = b"DCOPServer";

/// The hint of every failure here.
const NOTATIONS: &str = "write dcop:APPLICATION/OBJECT, or dcop+unix:///SOCKET#APPLICATION/OBJECT";

/// Reads a reference in any notation.
///
/// # Errors
/// It is none, or no server of this user's session can be found where the text names none.
pub(crate) fn parse(text: &str) -> Result<Reference, Failure> {
    let (endpoint, target) = split(text.trim())?;
    let profile = profile(vec![endpoint], &target)?;
    Ok(Reference { profiles: vec![profile], ..Reference::default() })
}

/// Where to serve: at a server, under an application's id.
///
/// # Errors
/// As `parse`; or the text names no application, or an object.
pub(crate) fn listen(text: &str) -> Result<BindAddress, Failure> {
    let (endpoint, target) = split(text.trim())?;
    let profile = profile(vec![endpoint], &target)?;
    if application(&profile).is_empty() {
        return Err(wrong(format!("`{text}` names no application to register as"))
            .with_hint("write dcop:NAME, and add ?unique=no if NAME-2 will do where NAME is taken"));
    }
    if application(&profile).contains(&b'*') {
        // To callers it means all applications whose names begin so (DCOPClient::findObject of KDE 3).
        return Err(wrong(format!("`*` is no part of an application's name, as in `{text}`")).with_hint(
            "write dcop:NAME without it; callers find several applications by a name that ends in `*`",
        ));
    }
    if !profile.key.is_empty() {
        return Err(wrong(format!("`{text}` names an object, where an application is to be registered"))
            .with_hint("objects get their ids when they are exported; write dcop:NAME"));
    }
    Ok(BindAddress::Join(profile))
}

/// Which server, and what behind it: `APP[?unique=no][/OBJECT]`. The text is parsed no further here: escapes
/// and options are left to `profile`.
fn split(text: &str) -> Result<(Endpoint, String), Failure> {
    let bare = text.strip_prefix("dcop:").unwrap_or(text);
    if let Some(pair) = bare.strip_prefix("DCOPRef(").and_then(|rest| rest.strip_suffix(')')) {
        let (app, object) = pair.split_once(',').unwrap_or((pair, ""));
        return Ok((servers::find()?, format!("{}/{}", escape(app.as_bytes()), escape(object.as_bytes()))));
    }
    match text.split_once(':') {
        Some(("dcop", rest)) if !rest.starts_with("//") => Ok((servers::find()?, rest.to_owned())),
        Some(("dcop" | "dcop+unix" | "dcop+shm", _)) => {
            let (server, target) = match text.split_once('#') {
                Some((server, target)) => (server.to_owned(), target),
                // After a host, the target is a path.
                None => match text.match_indices('/').nth(2).map(|(at, _)| text.split_at(at)) {
                    Some((server, target)) if text.starts_with("dcop:") => {
                        (server.to_owned(), target.trim_start_matches('/'))
                    }
                    _ => (text.to_owned(), ""),
                },
            };
            let endpoint =
                Address::parse(&server, None).map_err(|failure| failure.with_hint(NOTATIONS))?.endpoint;
            Ok((endpoint, target.to_owned()))
        }
        _ => Err(wrong(format!("`{text}` is no reference of this wire"))),
    }
}

/// `target` is what stands behind the server, with its escapes and its option.
fn profile(endpoints: Vec<Endpoint>, target: &str) -> Result<Profile, Failure> {
    let (app, object) = target.split_once('/').unwrap_or((target, ""));
    let (app, option) = app.split_once('?').unwrap_or((app, ""));
    let decode = |part: &str| {
        let name = unescape(part).ok_or_else(|| wrong("`%` must be followed by two hexadecimal digits"))?;
        if name.contains(&0) { Err(wrong("a name has a NUL inside")) } else { Ok(Bytes::from(name)) }
    };
    let mut components = vec![(APPLICATION, decode(app)?)];
    match option {
        "" | "unique=yes" => {}
        "unique=no" => components.push((ANY_SUFFIX, Bytes::new())),
        other => return Err(wrong(format!("`{other}` is no option; unique=no is"))),
    }
    let key = decode(object)?;
    Ok(Profile { wire: "dcop", version: (2, 0), endpoints, key, components, ..Profile::default() })
}

/// The id of the application that a profile leads to; empty if it names none.
#[inline]
pub(crate) fn application(profile: &Profile) -> &[u8] {
    profile.component(APPLICATION).map_or(&[], |app| app)
}

/// A reference to an object of this process: one profile for each server at which it is registered. What only
/// concerns serving (`?unique=no`) is left out.
pub(crate) fn publish(type_id: &str, places: &[BindAddress], key: &[u8]) -> Reference {
    let own = |place: &&BindAddress| place.profile().wire == "dcop";
    let at = |place: &BindAddress| Profile { key: Bytes::copy_from_slice(key), ..place.profile().clone() };
    let mut profiles: Vec<Profile> = places.iter().filter(own).map(at).collect();
    for profile in &mut profiles {
        profile.components.retain(|(tag, _)| *tag == APPLICATION);
    }
    Reference { type_id: type_id.to_owned(), profiles, foreign: Vec::new() }
}

/// A profile for the same server and another target.
pub(crate) fn beside(profile: &Profile, app: &[u8], object: &[u8]) -> Profile {
    let components = vec![(APPLICATION, Bytes::copy_from_slice(app))];
    Profile { key: Bytes::copy_from_slice(object), components, ..profile.clone() }
}

/// The text of a reference: short at the session's own server, which is looked up each time. Empty if no
/// profile is of this wire.
pub(crate) fn print(reference: &Reference) -> String {
    let Some(profile) = reference.profiles.iter().find(|profile| profile.wire == "dcop") else {
        return String::new();
    };
    let target = match (&profile.key[..], escape(application(profile))) {
        (b"", app) => app,
        (key, app) => format!("{app}/{}", escape(key)),
    };
    match profile.endpoints.first() {
        Some(endpoint) if servers::find().ok().as_ref() != Some(endpoint) => {
            let at = Address { scheme: "dcop".to_owned(), endpoint: endpoint.clone(), key: Bytes::new() };
            format!("{at}{target}")
        }
        _ => format!("dcop:{target}"),
    }
}

/// Application, object and type of a reference, as a `DCOPRef` holds them; nil is three empty strings.
///
/// # Errors
/// The object is not registered with a DCOP server, so the other side could not call it.
pub(crate) fn parts(reference: Option<&Reference>) -> Visit<(Bytes, Bytes, &str)> {
    let Some(reference) = reference else { return Ok((Bytes::new(), Bytes::new(), "")) };
    match reference.profiles.iter().find(|profile| profile.wire == "dcop") {
        Some(profile) => {
            let app = profile.component(APPLICATION).cloned().unwrap_or_default();
            Ok((app, profile.key.clone(), &reference.type_id))
        }
        None => Err(Failure::new(
            Kind::Unsupported,
            Initiator::User,
            "a reference to an object that is not registered with a DCOP server cannot travel by DCOP",
        )
        .with_hint("export the object at a `dcop:NAME` as well, or pass the text of its reference")),
    }
}

/// The reference that a `DCOPRef` stands for, which came by the server with that number. Nothing for nil.
pub(crate) fn received(app: &str, object: &str, kind: &str, server: u32) -> Option<Reference> {
    if app.is_empty() && object.is_empty() {
        return None;
    }
    let endpoints = servers::endpoint(server).or_else(|| servers::find().ok()).into_iter().collect();
    let components = vec![(APPLICATION, Bytes::copy_from_slice(app.as_bytes()))];
    let key = Bytes::copy_from_slice(object.as_bytes());
    let profile = Profile { wire: "dcop", version: (2, 0), endpoints, key, components, ..Profile::default() };
    Some(Reference { type_id: kind.to_owned(), profiles: vec![profile], foreign: Vec::new() })
}

/// The failure of text that is no reference.
fn wrong(message: impl Into<String>) -> Failure {
    Failure::bad_reference(message).with_hint(NOTATIONS)
}
