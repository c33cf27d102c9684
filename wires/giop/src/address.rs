//! References as text: `IOR:`, `corbaloc:` and the friendly addresses (CORBA 3.3 part 2, sections 7.6.9 and
//! 7.6.10).
//!
//! Nothing is kept here: every function turns text into a reference, or a reference into text. `parse` looks
//! at the beginning of the text and decides: `IOR:` (hexadecimal CDR), `corbaloc:` (addresses and a key),
//! `corbaname:` (the address of a naming context), else a friendly address such as `iiop://host:port/key`.
//!
//! Text is bounded by `REFERENCE_TEXT` before anything is made of it. It comes from a user, so all failures
//! name the user as the initiator and carry the list of notations as a hint. References that come inside
//! messages never pass here; `ior` reads those.

use crate::cdr::{Get, ReadCdr, encapsulation};
use crate::limits::{PLACE_TEXT, PROFILE_ENDPOINTS, REFERENCE_TEXT};
use crate::{components, ior, ssl};
use bytes::Bytes;
use everywire_model::layered::TLS;
use everywire_model::reference::{bounded, unescape};
use everywire_model::{Address, Endpoint, Failure, Initiator, Kind, LayerOptions, Profile, Reference};

/// The port of a `corbaloc` that names none.
pub const CORBALOC_PORT: u16 = 2809;

/// The hint of every failure here: what can be written instead.
const NOTATIONS: &str = "write iiop://HOST:PORT/KEY, iiops://HOST:PORT/KEY?ca=FILE, iiop+unix:///PATH#KEY, corbaloc::HOST:PORT/KEY, corbaname::HOST:PORT#NAME, or the whole IOR:...";

/// The two spellings of an address with TLS: `iiops://`, which users of this wire expect, and `iiop+tls://`,
/// which `Address::parse` reads for all wires. They are exchanged on the way in and on the way out.
const SECURED: (&str, &str) = ("iiops://", "iiop+tls://");

/// Reads a reference in any notation. White space around the text is ignored. The prefixes `IOR:`,
/// `corbaloc:` and `corbaname:` are taken in any case.
///
/// # Errors
/// The text is too long, or is no reference in any of the notations.
pub(crate) fn parse(text: &str) -> Result<Reference, Failure> {
    let text = bounded(text, REFERENCE_TEXT)?;
    match (behind("IOR:", text), behind("corbaloc:", text), corbaname(text)) {
        (Some(hex), ..) => parse_ior(hex),
        (_, Some(rest), _) => parse_corbaloc(rest),
        (.., Some(rest)) => parse_corbaname(rest),
        _ => parse_friendly(text),
    }
}

/// What follows `corbaname:`, if the text begins so.
pub(crate) fn corbaname(text: &str) -> Option<&str> {
    behind("corbaname:", text.trim())
}

/// What stands behind a prefix, in capitals or not.
fn behind<'t>(prefix: &str, text: &'t str) -> Option<&'t str> {
    let (begins, rest) = text.split_at_checked(prefix.len())?;
    begins.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// The context that a `corbaname:` stands for. What its name is bound to has to be asked of the naming
/// service (`naming::look_up`), which parsing cannot do: a `corbaname:` with a name is an error here. The
/// runtime asks `Wire::look_up` before it parses.
fn parse_corbaname(rest: &str) -> Result<Reference, Failure> {
    match rest.split_once('#') {
        Some((_, name)) if !name.is_empty() => {
            let what = format!("the naming service has to be asked for `{name}`, which is not done here");
            Err(Failure::bad_reference(what)
                .with_hint("`everywire describe` prints the whole reference; give that"))
        }
        _ => corbaname_context(rest),
    }
}

/// `obj_addr { "," obj_addr } [ "/" key ] [ "#" name ]`, after `corbaname:` (OMG Naming Service,
/// formal/04-10-03, section 2.5.3): the context in which the name is looked up. Without a key it is the
/// context `NameService`, by the rule of that section.
pub(crate) fn corbaname_context(rest: &str) -> Result<Reference, Failure> {
    let mut reference = parse_corbaloc(rest.split('#').next().unwrap_or_default())?;
    for profile in reference.profiles.iter_mut().filter(|profile| profile.key.is_empty()) {
        profile.key = Bytes::from_static(crate::naming::KEY);
    }
    Ok(reference)
}

/// Reads a friendly address. Schemes of other wires are refused, so the result is always `iiop`, perhaps with
/// TLS over it.
pub(crate) fn friendly(text: &str) -> Result<Address, Failure> {
    let address = match text.strip_prefix(SECURED.0) {
        Some(rest) => Address::parse(&format!("{}{rest}", SECURED.1), None)?,
        None => Address::parse(text, None)?,
    };
    if address.scheme == "iiop" {
        return Ok(address);
    }
    Err(wrong(format!("`{}` is no scheme of this wire", address.scheme)))
}

/// A friendly address says no version of IIOP, so the profile claims 1.2, unlike a `corbaloc:`, whose default
/// is 1.0.
fn parse_friendly(text: &str) -> Result<Reference, Failure> {
    let address = friendly(text)?;
    check_place(&address.endpoint)?;
    Ok(one_profile((1, 2), vec![address.endpoint], address.key))
}

/// `IOR:` and hexadecimal digits; `?` and options of TLS behind them ask for TLS, and for nothing else. The
/// endpoints without TLS are removed then: whoever gives options of TLS must never be connected in the clear.
fn parse_ior(text: &str) -> Result<Reference, Failure> {
    let Some((hex, options)) = text.split_once('?') else { return parse_hex(text) };
    let options = LayerOptions::parse(options)?;
    let mut reference = parse_hex(hex)?;
    for profile in &mut reference.profiles {
        let secured = profile.endpoints.iter().filter_map(Endpoint::layer);
        profile.endpoints = secured
            .map(|layered| Endpoint::layered(layered.layer, options.clone(), layered.over.clone()))
            .collect();
    }
    reference.profiles.retain(|profile| !profile.endpoints.is_empty());
    if reference.profiles.is_empty() {
        return Err(wrong("options of TLS stand behind the reference, and its server offers none"));
    }
    Ok(reference)
}

/// Reads the hexadecimal digits of an `IOR:`: an encapsulation that holds the reference (section 7.6.9). A
/// nil reference is an error here, since nothing can be done with it.
fn parse_hex(hex: &str) -> Result<Reference, Failure> {
    if !hex.len().is_multiple_of(2) {
        return Err(wrong("an IOR has an odd number of hexadecimal digits; its end may be cut off"));
    }
    let raw = everywire_model::hex::decode(hex.as_bytes()).ok_or_else(|| {
        let digits = hex.bytes().take_while(|digit| digit.is_ascii_hexdigit()).count();
        wrong(format!("an IOR has something else than hexadecimal digits after {} bytes", digits / 2))
    })?;
    let broken = |bad: crate::cdr::DecodeError| {
        wrong(format!("the IOR does not decode: {} (at byte {})", bad.what, bad.at))
    };
    let reference = Get::encapsulation(&raw).and_then(|mut get| ior::get(&mut get)).map_err(broken)?;
    reference.ok_or_else(|| wrong("the IOR is nil: it names no object"))
}

/// `obj_addr { "," obj_addr } [ "/" key ]`, after `corbaloc:`. All addresses become endpoints of one profile,
/// so the lowest version among them is used for all: a request must not have a higher version than any server
/// behind them reads; but 1.1 at least where one has TLS. An address with `ssliop:` becomes an endpoint with
/// TLS, and only then does a `?` in the key begin options of TLS.
fn parse_corbaloc(rest: &str) -> Result<Reference, Failure> {
    let (addresses, key) = rest.split_once('/').unwrap_or((rest, ""));
    // Elsewhere a key may have a `?`.
    let secured = addresses.split(',').any(|address| address.starts_with("ssliop:"));
    // With TLS the options follow the key, behind a `?`.
    let (key, options) = if secured { key.split_once('?').unwrap_or((key, "")) } else { (key, "") };
    let options = LayerOptions::parse(options)?;
    let Some(key) = unescape(key) else {
        return Err(wrong("`%` in the key of a corbaloc must be followed by two hexadecimal digits"));
    };
    let mut endpoints = Vec::new();
    let mut lowest = (1, 2);
    let many = addresses.split(',').count();
    if many > PROFILE_ENDPOINTS {
        let failure =
            Failure::over_limit(Initiator::User, "addresses of a corbaloc", many, PROFILE_ENDPOINTS);
        return Err(failure.with_hint("name fewer addresses: readers of references take no more"));
    }
    for address in addresses.split(',') {
        let (protocol, address) =
            address.split_once(':').ok_or_else(|| wrong("an address of a corbaloc has no `:`"))?;
        if !matches!(protocol, "" | "iiop" | "ssliop") {
            let what = format!("corbaloc protocol `{protocol}` is not known here; `iiop` and `ssliop` are");
            return Err(wrong(what));
        }
        let (version, address) = match address.split_once('@') {
            Some((version, address)) => (parse_version(version)?, address),
            // So says the specification; a server that speaks more should be written with its version.
            None if protocol != "ssliop" => ((1, 0), address),
            None => ((1, 2), address),
        };
        lowest = lowest.min(version);
        let endpoint = Address::parse(&format!("iiop://{address}/"), Some(CORBALOC_PORT))?.endpoint;
        check_place(&endpoint)?;
        endpoints.push(match protocol {
            "ssliop" => Endpoint::layered(TLS, options.clone(), endpoint),
            _ => endpoint,
        });
    }
    // A profile of 1.0 has no component that could tell of TLS, so whoever got it would connect in the clear, or not at all.
    let version = if secured { lowest.max((1, 1)) } else { lowest };
    Ok(one_profile(version, endpoints, key.into()))
}

/// Reads `1.0`, `1.1` or `1.2`. Higher minor versions are taken, since a server of 1.3 has to read 1.2;
/// requests are written in 1.2 at most.
fn parse_version(text: &str) -> Result<(u8, u8), Failure> {
    text.split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        .filter(|(major, _)| *major == 1)
        .ok_or_else(|| wrong(format!("`{text}` is no version of IIOP; 1.0, 1.1 and 1.2 are")))
}

/// Refuses port 0 for an address that is connected to. In a profile port 0 says that there is no TCP (see
/// `ior::put_profile`), so nothing can be there. Refuses names that are longer than `PLACE_TEXT`, since no reader of
/// the reference would make an endpoint of them.
fn check_place(endpoint: &Endpoint) -> Result<(), Failure> {
    let len = components::text_of(endpoint).len();
    if len > PLACE_TEXT {
        let failure = Failure::over_limit(Initiator::User, "bytes of a host or a path", len, PLACE_TEXT);
        return Err(failure.with_hint("use a shorter name: readers of references take no longer one"));
    }
    match endpoint.stream() {
        Endpoint::Tcp { port: 0, .. } => {
            Err(wrong("port 0 is for listening: no object can be reached there"))
        }
        _ => Ok(()),
    }
}

/// A reference of one profile. The first endpoint over TCP is its host and port; each further endpoint
/// becomes a component, and the first with TLS the component of SSLIOP.
fn one_profile(version: (u8, u8), endpoints: Vec<Endpoint>, key: Bytes) -> Reference {
    let mut components = components::beside_primary(&endpoints);
    if let Some((_, port, asks_clients)) = endpoints.iter().find_map(ssl::place) {
        let beside_plain = endpoints.iter().any(|endpoint| matches!(endpoint, Endpoint::Tcp { .. }));
        components.push(ssl::component(port, asks_clients, beside_plain));
    }
    let profile = Profile { wire: "giop", version, endpoints, key, components, ..Profile::default() };
    Reference { profiles: vec![profile], ..Reference::default() }
}

/// A reference to an object of this process. A port with TLS stands in the profile of its host, beside the
/// port without; where there is none, in a profile of its own. Within a profile, shared memory and Unix
/// sockets come before TCP, so that clients on this host take those. An endpoint of this process alone is
/// left out, because nobody else can reach it. If nothing is left, the reference still has one profile,
/// without endpoints, that holds the key.
pub(crate) fn publish(type_id: &str, endpoints: &[Endpoint], key: &[u8]) -> Reference {
    let usable = endpoints.iter().filter(|endpoint| !matches!(endpoint, Endpoint::InProcess { .. })).cloned();
    let (secured, mut ordered): (Vec<Endpoint>, Vec<Endpoint>) =
        usable.partition(|endpoint| endpoint.layer().is_some());
    ordered.sort_by_key(Endpoint::distance);
    let host = ordered.iter().find_map(|endpoint| match endpoint {
        Endpoint::Tcp { host, .. } => Some(host.clone()),
        _ => None,
    });
    // The component of SSLIOP has a port and no host, so only a port of the same host fits beside the plain
    // one.
    let is_beside = |endpoint: &Endpoint| {
        host.is_some() && ssl::place(endpoint).map(|(known, _, _)| known) == host.as_deref()
    };
    let mut secured = secured;
    // A profile has room for one.
    if let Some(at) = secured.iter().position(is_beside) {
        ordered.push(secured.remove(at));
    }
    let first = (!ordered.is_empty() || secured.is_empty()).then_some(ordered);
    let ways = first.into_iter().chain(secured.into_iter().map(|endpoint| vec![endpoint]));
    let mut reference = Reference { type_id: type_id.to_owned(), ..Reference::default() };
    for endpoints in ways {
        reference.profiles.extend(one_profile((1, 2), endpoints, Bytes::copy_from_slice(key)).profiles);
    }
    for profile in &mut reference.profiles {
        // Files of this side's are nothing to others.
        profile.endpoints.iter_mut().for_each(|endpoint| *endpoint = endpoint.bare());
        profile.components.splice(..0, components::own());
    }
    reference
}

/// `IOR:` and hexadecimal digits.
pub(crate) fn print(reference: &Reference) -> String {
    let raw = encapsulation(|put| ior::put(Some(reference), None, put));
    format!("IOR:{}", everywire_model::hex::text(&raw))
}

/// Refuses to call an object in the clear over TCP whose reference says that its server takes calls over TLS alone: that server would
/// refuse the call too late, after all of it has been read by whoever can. Sockets of this host have no need of TLS.
pub(crate) fn check_way(profile: &Profile, endpoint: &Endpoint) -> Result<(), Failure> {
    if !matches!(endpoint, Endpoint::Tcp { .. }) || !components::demands_tls(profile) {
        return Ok(());
    }
    let what = format!("the reference demands calls over TLS, and {endpoint} is without it");
    Err(Failure::new(Kind::Refused, Initiator::Here, what).with_hint(
        "put `?ca=FILE` behind the reference, with the certificate of the authority; write corbaloc::1.2@HOST:PORT/KEY to call in the clear all the same",
    ))
}

/// The friendly address of the first endpoint at which the object may be called; the `IOR:` where none has one.
pub(crate) fn print_friendly(reference: &Reference) -> String {
    let profile = reference.profiles.iter().find(|profile| profile.wire == "giop");
    let endpoint = |profile: &'_ Profile| {
        let may_be_called = profile.endpoints.iter().find(|endpoint| check_way(profile, endpoint).is_ok());
        may_be_called.or_else(|| profile.endpoints.first()).cloned()
    };
    match profile.and_then(|profile| Some((profile, endpoint(profile)?))) {
        Some((profile, endpoint)) => {
            let (scheme, endpoint, key) = ("iiop".to_owned(), endpoint, profile.key.clone());
            let text = Address { scheme, endpoint, key }.to_string();
            match text.strip_prefix(SECURED.1) {
                Some(rest) => format!("{}{rest}", SECURED.0),
                None => text,
            }
        }
        None => print(reference),
    }
}

/// The failure of text that is no reference.
fn wrong(message: impl Into<String>) -> Failure {
    Failure::bad_reference(message).with_hint(NOTATIONS)
}
