//! References as text.
//!
//! ```text
//! net.tcp://[[DOMAIN;]USER[:PASSWORD]@]HOST[:808]/PATH[?OPTION[&OPTION]...]
//! net.tcp+unix:///SOCKET#PATH   net.uds:///SOCKET[/PATH]   net.pipe:///SOCKET[/PATH]   net.tcp+shm:///SOCKET#PATH
//! basic://HOST[:80]/PATH        wshttp://...  soap12://... binhttp://...               the same with an `s` (443), `+unix`, `+shm`
//! http://HOST[:80]/PATH[?binding=basic|ws|binary|mtom]     https://...
//! ```
//!
//! PATH is the object's key. In `net.uds:` and `net.pipe:` the socket's name ends with `.sock`, `.socket`, `.pipe` or `.uds`; where none
//! does, the whole path is the socket. Options:
//!
//! * `security=none|tls|windows|unix|username` (`username`: TLS and a UsernameToken in each message; on sockets `tls+username`), `protection=None|Sign|EncryptAndSign`,
//!   `mech=negotiate|ntlm|kerberos`, `identity=` (the name that the server's certificate or its service must have),
//!   `to=` (the service's own address up to PATH, where the connection leads there another way), `query=` (over HTTP, what stands behind PATH
//!   in the service's own address: `query=sap-client=100`);
//! * `ca=FILE`, `insecure=on` (the server's certificate is not checked), `cert=FILE`, `key=FILE`; to listen `clients=FILE` (authorities of
//!   clients' certificates);
//! * `credentials=FILE`; to listen `users=FILE`, `keytab=FILE`, `ntlm1=session`;
//! * `mode=buffered|streamed`, `encoding=session|binary|text|mtom`, `compression=gzip|deflate|gzip+requests`, `reliable=on`, `callback=KEY`, `details=on` (faults tell callers what went
//!   wrong here), and the quotas by WCF's names ([`crate::limits::Quotas`]).
//!
//! Calls over TCP are secured by Windows where there are credentials and nothing else is said. Passwords go in the clear over TLS and
//! inside this machine only.

mod ends;
mod notation;
mod options;

pub use notation::{CREDENTIALS, NAMES, PORT};

use crate::limits::REFERENCE_TEXT;
use crate::settings::{Binding, Encoding, Security, Settings};
use bytes::Bytes;
use ends::{is_local, placed};
use everywire_auth::security::Credentials;
use everywire_idl::wsdl::Port;
use everywire_model::reference::{self, escape};
use everywire_model::{Address, BindAddress, Endpoint, Failure, Profile, Reference};
use notation::{NOTATIONS, SOCKETS, usual_port, wrong};
use options::AddressOptions;
use std::fmt;
use std::sync::Arc;

/// Reads a reference.
///
/// # Errors
///
/// The text is no address of this wire, or a file that it names cannot be read.
pub fn parse(text: &str) -> Result<Reference, Failure> {
    let Parts { endpoint, key, wishes } = split(text)?;
    if matches!(endpoint, Endpoint::Tcp { port: 0, .. }) {
        return Err(wrong("port 0 is for listening: no object can be reached there"));
    }
    let settings = wishes.client(&endpoint)?;
    Ok(Reference { profiles: vec![profile(endpoint, key, settings)], ..Reference::default() })
}

/// Where to listen.
///
/// # Errors
///
/// The text is no address of this wire, a file that it names cannot be read, or nobody said who is let in.
pub fn listen(text: &str) -> Result<BindAddress, Failure> {
    let Parts { endpoint, key, wishes } = split(text)?;
    if !key.is_empty() {
        return Err(wrong("an address to listen at has no path: objects have theirs"));
    }
    let settings = wishes.server(&endpoint)?;
    Ok(BindAddress::Listen(profile(endpoint, key, settings)))
}

/// A reference to an object served at these places: a profile for each address, since a message says by which address its service
/// is meant (`To`, `Via`, `Host`).
pub fn publish(type_id: &str, places: &[BindAddress], key: &[u8]) -> Reference {
    let ways = places.iter().flat_map(|place| {
        place.profile().endpoints.iter().map(|endpoint| {
            let mut way = Profile { key: Bytes::copy_from_slice(key), ..place.profile().clone() };
            way.endpoints = vec![endpoint.clone()];
            // The port is known only now.
            way.options = placed(Settings::of(&way).as_ref().clone(), endpoint).into();
            way
        })
    });
    Reference { type_id: type_id.to_owned(), profiles: ways.collect(), foreign: Vec::new() }
}

/// Writes a reference as WCF spells it: the URI, where that says enough; secrets are left out.
pub fn print(reference: &Reference) -> String {
    let told = print_friendly(reference);
    let Some(profile) = own(reference) else { return told };
    let uri = Settings::of(profile).via(&profile.key);
    let again = split(&uri).ok().and_then(|parts| {
        let settings = parts.wishes.client(&parts.endpoint).ok()?;
        Some(friendly(&self::profile(parts.endpoint, parts.key, settings)))
    });
    if again.as_ref() == Some(&told) { uri } else { told }
}

/// Writes a reference in the friendly notation; secrets are left out.
pub fn print_friendly(reference: &Reference) -> String {
    own(reference).map_or_else(|| "(a reference without an address of this wire)".to_owned(), friendly)
}

/// The way of this wire.
pub(crate) fn own(reference: &Reference) -> Option<&Profile> {
    reference.profiles.iter().find(|profile| profile.wire == "wcf")
}

/// Who may call and who may listen in: one line for people.
pub fn protection(profile: &Profile) -> String {
    Settings::of(profile).protection(is_local(profile.endpoints.first()))
}

/// The way to an object whose URI came in a message (an EndpointAddress): the same credentials as the way it came by, if it is on the
/// same host.
///
/// # Errors
///
/// The text is no URI of this wire.
pub fn parse_like(uri: &str, like: &Settings) -> Result<Profile, Failure> {
    let (uri, behind) = uri.split('#').next().and_then(|uri| uri.split_once('?')).unwrap_or((uri, ""));
    // What the peer says may not name files or users of this side's.
    let uri = uri.split('#').next().unwrap_or_default();
    let Parts { endpoint, key, mut wishes } = split(uri)?;
    wishes.settings.credentials = None;
    if wishes.settings.binding.is_http() {
        wishes.settings.query = options::query_of(behind)?;
    }
    if wishes.settings.binding == Binding::Basic && like.binding.is_http() {
        wishes.settings.binding = like.binding;
        wishes.encoding = Some(like.encoding);
    }
    let same = match &endpoint {
        Endpoint::Tcp { host, .. } => host.eq_ignore_ascii_case(&like.host),
        _ => like.host.is_empty(),
    };
    // Who is told of another host must not be told this side's password by that.
    if same && like.binding.is_http() == wishes.settings.binding.is_http() {
        let mut settings = like.clone();
        settings.callback = None;
        settings.to.clear();
        settings.query = wishes.settings.query;
        settings.shown.retain(|(option, _)| *option != "query");
        if !settings.query.is_empty() {
            settings.shown.push(("query", settings.query.clone()));
        }
        let mut settings = placed(settings, &endpoint);
        settings.uri_scheme = wishes.settings.uri_scheme;
        return Ok(profile(endpoint, key, settings));
    }
    wishes.wire_state = false;
    let settings = wishes.client(&endpoint)?;
    Ok(profile(endpoint, key, settings))
}

/// The way to an endpoint of a description as its binding is spoken to; see [`parse_like`].
///
/// # Errors
///
/// As of [`parse_like`].
pub fn parse_port(port: &Port, like: &Settings) -> Result<Profile, Failure> {
    let Some(binding) = binding_of(port) else { return parse_like(&port.address, like) };
    let own = Settings::new(binding);
    let mut like = if like.binding.is_http() { like.clone() } else { own };
    (like.binding, like.encoding) = (binding, binding.encoding());
    like.shown.retain(|(option, _)| *option != "encoding");
    if port.encoding == "mtom" {
        like.encoding = Encoding::Mtom;
        like.shown.push(("encoding", "mtom".to_owned()));
    }
    parse_like(&port.address, &like)
}

/// The binding over HTTP that a port has, if it is one that is spoken here.
pub fn binding_of(port: &Port) -> Option<Binding> {
    match (port.encoding.as_str(), port.soap.as_str(), port.addressing.as_str()) {
        _ if !port.transport.starts_with("http") => None,
        ("binary", "1.2", "1.0") => Some(Binding::BinaryHttp),
        ("text" | "mtom", "1.2", "1.0") => Some(Binding::Ws),
        ("text" | "mtom", "1.2", "none") => Some(Binding::Soap12),
        ("text" | "mtom", "1.1", "none") => Some(Binding::Basic),
        _ => None,
    }
}

fn profile(endpoint: Endpoint, key: Bytes, settings: Settings) -> Profile {
    Profile {
        wire: "wcf",
        version: (1, 0),
        endpoints: vec![endpoint],
        key,
        options: settings.into(),
        ..Profile::default()
    }
}

fn friendly(profile: &Profile) -> String {
    let Some(endpoint) = profile.endpoints.first() else {
        return "(a reference without an address)".to_owned();
    };
    let settings = Settings::of(profile);
    let told = settings.told();
    let (scheme, options) = told.split_once('?').unwrap_or((&told, ""));
    let scheme = match endpoint {
        // Sockets have schemes of their own; shared memory has not.
        Endpoint::Shm { .. } if !settings.binding.is_http() => "net.tcp",
        _ => scheme,
    };
    let address = Address { scheme: scheme.to_owned(), endpoint: endpoint.clone(), key: profile.key.clone() }
        .to_string();
    // These two are sockets by themselves.
    let address = match scheme {
        "net.uds" | "net.pipe" => address.replacen("+unix://", "://", 1),
        _ => address,
    };
    if options.is_empty() { address } else { format!("{address}?{options}") }
}

/// An address, taken apart.
struct Parts {
    endpoint: Endpoint,
    key: Bytes,
    wishes: AddressOptions,
}

fn split(text: &str) -> Result<Parts, Failure> {
    let text = reference::bounded(text, REFERENCE_TEXT)?;
    let (rest, options) = text.split_once('?').unwrap_or((text, ""));
    let Some((scheme, rest)) = rest.split_once("://") else { return Err(wrong("`://` is missing")) };
    let (name, transport) = scheme.split_once('+').unwrap_or((scheme, ""));
    let mut wishes = AddressOptions::of_scheme(&name.to_ascii_lowercase())?;
    let (who, place) = reference::split_user(rest);
    let piped = transport.is_empty() && matches!(wishes.settings.uri_scheme, "net.uds" | "net.pipe");
    let plain = if piped {
        let (socket, key) = socket_and_key(place)?;
        format!("{name}+unix://{socket}#{key}")
    } else {
        format!("{scheme}://{place}")
    };
    let port = usual_port(wishes.settings.uri_scheme);
    let address = Address::parse(&plain, Some(port)).map_err(|failure| {
        // The text may hold a part of a password that has a `/` or a `?` in it.
        let what = failure.message().replace(&format!("`{plain}` "), "it ");
        Failure::new(failure.kind(), failure.initiator(), what).with_hint(NOTATIONS)
    })?;
    if address.endpoint.layer().is_some() {
        return Err(wrong(
            "TLS is asked for by the scheme over HTTP (basics://, wshttps://, soap12s://, binhttps://), and by ?security=tls over net.tcp",
        ));
    }
    if let Some(who) = who {
        let why = "`%` in a user or a password must be followed by two hexadecimal digits";
        wishes.settings.credentials = Some(Arc::new(Credentials::parse(who).ok_or_else(|| wrong(why))?));
    }
    for option in options.split('&').filter(|option| !option.is_empty()) {
        wishes.apply(option)?;
    }
    Ok(Parts { endpoint: address.endpoint, key: address.key, wishes })
}

/// The socket and the key in `[localhost]/SOCKET[/KEY]` or `/SOCKET#KEY`.
fn socket_and_key(place: &str) -> Result<(&str, &str), Failure> {
    let path = place.strip_prefix("localhost").unwrap_or(place);
    if let Some(apart) = path.split_once('#') {
        return Ok(apart);
    }
    if !path.starts_with(['/', '@']) {
        return Err(wrong("the socket's path must be absolute, as in `net.uds:///run/app.sock/Service`"));
    }
    let mut end = 0;
    for part in path.split_inclusive('/') {
        end += part.len();
        let name = part.trim_end_matches('/');
        if SOCKETS.iter().any(|suffix| name.len() > suffix.len() && name.ends_with(suffix)) {
            let socket = path.get(..end).unwrap_or(path).trim_end_matches('/');
            return Ok((socket, path.get(end..).unwrap_or_default()));
        }
    }
    Ok((path.trim_end_matches('/'), ""))
}

impl Settings {
    /// What goes with a way.
    pub fn of(profile: &Profile) -> Arc<Self> {
        profile.options.get().unwrap_or_else(|| {
            let plain = Self::new(Binding::NetTcp);
            Arc::new(match profile.endpoints.first() {
                Some(endpoint) => placed(plain, endpoint),
                None => plain,
            })
        })
    }

    /// The public part: `SCHEME[?OPTIONS]`.
    pub(crate) fn told(&self) -> String {
        let secure = self.transport_security == Security::Tls && self.binding.is_http();
        let scheme = match self.uri_scheme {
            // The socket's path says it all the same.
            "net.uds" => "net.uds",
            "net.pipe" => "net.pipe",
            _ => self.binding.word(),
        };
        let mut told = format!("{scheme}{}", if secure { "s" } else { "" });
        let mut mark = '?';
        for (name, value) in &self.shown {
            told.push_str(&format!("{mark}{name}={}", escape(value.as_bytes()).replace('&', "%26")));
            mark = '&';
        }
        told
    }
}

impl fmt::Display for Settings {
    /// The public part of the address, and who calls; without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = self.told();
        let mark = if told.contains('?') { '&' } else { '?' };
        match &self.credentials {
            Some(account) => write!(f, "{told}{mark}account={account}"),
            None => f.write_str(&told),
        }
    }
}
