//! References as text.
//!
//! ```text
//! dcom://[[DOMAIN;]USER[:PASSWORD]@]HOST[:PORT][/CLASS][?OPTION[&OPTION]...]
//! dcom+unix:///SOCKET[#CLASS][?OPTION...]      dcom+shm:///SOCKET[#CLASS][?OPTION...]
//! dcom:CLASS                                   wherever the locator says
//! objref:BASE64:[?OPTION...]
//! ```
//!
//! CLASS is a CLSID, or any key, whose CLSID then follows from it ([`clsid_of_key`]). `docs/access.md` has the
//! options of both sides. With `mech=kerberos` and no password the tickets of `$KRB5CCNAME` serve, those of USER
//! if one is named; with a password one is asked for and kept in memory. DOMAIN is the realm if it has a dot in
//! it, otherwise the default one is meant.
//!
//! States: none, but for two environment variables that are read each time: `EVERYWIRE_DCOM_CREDENTIALS` (a
//! file with an account, used when the address names none and the level is above `none`) and
//! `EVERYWIRE_DCOM_CLASSES` (the locator's file).
//!
//! Invariants: a text longer than `REFERENCE_TEXT` is refused before it is read. No failure, and nothing that
//! is printed, contains a password. Options that are not known are errors, never ignored.

use crate::bindings::RESOLVER_PORT;
pub use crate::tags::{TAG_OBJREF, TAG_SYSTEM};
pub use crate::ways::{class_of, system};

use crate::exporter::Proxy;
use crate::limits::REFERENCE_TEXT;
use crate::objref::ObjRef;
use crate::security::{Level, Security};
use crate::wine;
use bytes::Bytes;
use everywire_auth::security::{Credentials, Mechanism, UserTable, check_keys};
use everywire_idl::midl::clsid_of_key;
use everywire_model::{Address, BindAddress, Endpoint, Failure, Initiator, Profile, Reference, reference};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Where the name of the file of credentials stands.
pub const CREDENTIALS: &str = "EVERYWIRE_DCOM_CREDENTIALS";

/// The hint of each failure of this file.
const NOTATIONS: &str =
    "write dcom://USER:PASSWORD@HOST:PORT/CLASS, dcom+unix:///PATH#CLASS, or the whole objref:...";

/// Where the name of the locator's file stands. A line of it is a class and the address where it is served, with blanks
/// between; `#` begins a comment.
pub const LOCATOR: &str = "EVERYWIRE_DCOM_CLASSES";

/// Octets that the locator's file may have.
const MAX_LOCATOR: u64 = 1 << 20;

/// Reads a reference in any notation.
pub(crate) fn parse(text: &str) -> Result<Reference, Failure> {
    let text = reference::bounded(text, REFERENCE_TEXT)?;
    if text.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("objref:")) {
        return parse_moniker(text);
    }
    let class = text.strip_prefix("dcom:").filter(|rest| !rest.starts_with("//"));
    let located = class.map(locate).transpose()?;
    let (address, security) = split(located.as_deref().unwrap_or(text))?;
    if matches!(address.endpoint, Endpoint::Tcp { port: 0, .. }) {
        return Err(wrong("port 0 is for listening: no object can be reached there"));
    }
    let security = or_ambient(security)?;
    // An address without a class means the node itself: its resolver, its activator, its management
    // interface.
    let components = if address.key.is_empty() { vec![(TAG_SYSTEM, Bytes::new())] } else { Vec::new() };
    let profile = way(vec![address.endpoint], security, address.key, components);
    Ok(Reference { profiles: vec![profile], ..Reference::default() })
}

/// Reads an address to listen at. The account of the address, if there is one, is also the only user let in
/// when no `users` are named.
pub(crate) fn listen(text: &str) -> Result<BindAddress, Failure> {
    let (address, mut security) = split(text)?;
    if !address.key.is_empty() {
        return Err(wrong("an address to listen at has no class"));
    }
    // Whoever says who it is takes calls from the same account: so servers call back.
    if let (None, Some(own)) = (&security.users, &security.credentials) {
        security.users = Some(Arc::new(UserTable::of(own)));
    }
    if security.level > Level::None && security.users.is_none() && security.keytab.is_none() {
        let what =
            format!("listening at level `{}` needs users, and `{text}` names none", security.level.word());
        return Err(Failure::bad_argument(what).with_hint(
            "add ?users=FILE with lines USER:PASSWORD, or ?keytab=FILE; ?level=none lets anybody call, unprotected",
        ));
    }
    check_keys(&security.options(""))?;
    Ok(BindAddress::Listen(Profile {
        wire: "dcom",
        version: crate::VERSION,
        endpoints: vec![address.endpoint],
        options: security.into(),
        ..Profile::default()
    }))
}

/// Writes a reference in the friendly notation; secrets are left out.
pub(crate) fn print_friendly(reference: &Reference) -> String {
    let Some(profile) = reference.profiles.iter().find(|profile| profile.wire == "dcom") else {
        return "(a reference without an address of this wire)".to_owned();
    };
    if let Some(raw) = objref_of(profile, &reference.type_id) {
        let dialect = if Security::of(profile).dialect.is_wine() { "?dialect=wine" } else { "" };
        return raw.moniker() + dialect;
    }
    let Some(endpoint) = profile.endpoints.first() else {
        return "(a reference without an address)".to_owned();
    };
    let address = Address { scheme: "dcom".into(), endpoint: endpoint.clone(), key: profile.key.clone() };
    let usual = Security::of_endpoint(Some(endpoint)).level;
    let options = written(&Security::of(profile), usual).join("&");
    let mark = if options.is_empty() { "" } else { "?" };
    format!("{address}{mark}{options}")
}

/// The options that say this of calls where `usual` is what is done without them.
fn written(security: &Security, usual: Level) -> Vec<String> {
    let mut options = Vec::new();
    if security.level != usual {
        options.push(format!("level={}", security.level.word()));
    }
    if security.mechanism != Mechanism::Ntlm {
        options.push(format!("mech={}", security.mechanism.word()));
    }
    if security.here {
        options.push("exporter=here".to_owned());
    }
    if !security.hosts.is_empty() {
        options.push(format!("hosts={}", security.hosts.join(",")));
    }
    options
}

impl fmt::Display for Security {
    /// As options of an address, and who calls; without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut options = written(self, Level::None);
        options.extend(self.dialect.is_wine().then(|| "dialect=wine".to_owned()));
        options.extend(self.credentials.as_ref().map(|account| format!("account={account}")));
        f.write_str(&options.join("&"))
    }
}

/// The OBJREF that a way was made from: of the interface that is meant, if the object was asked for that.
fn objref_of(profile: &Profile, type_id: &str) -> Option<ObjRef> {
    let Some(proxy) = profile.lease.get::<Proxy>() else {
        return ObjRef::parse(profile.component(TAG_OBJREF)?).ok().map(|(objref, _)| objref);
    };
    let meant: Option<Uuid> = type_id.parse().ok();
    let mut found = proxy.objref();
    if let (ObjRef::Standard { iid, std, .. }, Some(meant)) = (&mut found, meant)
        && let Some(ipid) = proxy.ipid(meant)
    {
        *iid = meant;
        std.ipid = ipid;
    }
    Some(found)
}

/// The address of a class, from the locator's file.
fn locate(class: &str) -> Result<String, Failure> {
    let Some(path) = std::env::var_os(LOCATOR).filter(|path| !path.is_empty()) else {
        return Err(wrong(format!(
            "`dcom:{class}` names no host, and ${LOCATOR} names no file that says where it is"
        )));
    };
    let shown = std::path::Path::new(&path).display().to_string();
    let broken =
        |why: String| Failure::bad_reference(why).at(format_args!("{shown}, which ${LOCATOR} names"));
    let size = std::fs::metadata(&path).map_err(|error| broken(error.to_string()))?.len();
    if size > MAX_LOCATOR {
        return Err(Failure::over_limit(Initiator::User, "octets in the locator's file", size, MAX_LOCATOR));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| broken(error.to_string()))?;
    let wanted = clsid_of_key(class.as_bytes());
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let found = lines
        .filter_map(|line| line.trim().split_once(char::is_whitespace))
        .find(|(name, _)| clsid_of_key(name.as_bytes()) == wanted);
    let (_, address) = found.ok_or_else(|| broken(format!("no line says where the class `{class}` is")))?;
    let address = address.trim();
    if !address.contains("://") {
        return Err(broken(format!("`{address}` is no address of the class `{class}`")));
    }
    // A `/` behind the host of a network address, and a `#` behind the path of a local one, begin the class.
    // Without a class of its own the address stands for the one that was asked for.
    let (place, options) = address.split_once('?').unwrap_or((address, ""));
    let bare = match place.split_once("://") {
        Some((scheme, rest)) if scheme.contains('+') => !rest.contains('#'),
        Some((_, rest)) => !rest.trim_end_matches('/').contains('/'),
        None => false,
    };
    let place = match bare {
        true if place.contains("+unix://") || place.contains("+shm://") => format!("{place}#{class}"),
        true => format!("{}/{class}", place.trim_end_matches('/')),
        false => place.to_owned(),
    };
    Ok(if options.is_empty() { place } else { format!("{place}?{options}") })
}

/// Reads `objref:BASE64:[?OPTION...]`, the text that COM's own OBJREF moniker has. The object is not resolved
/// here: the profile keeps the OBJREF under `TAG_OBJREF`, and the exporter unmarshals it when the object is
/// first called. The endpoints are those of the resolver; port 135 is meant where a binding names none
/// (MS-DCOM 2.2.19.3).
fn parse_moniker(text: &str) -> Result<Reference, Failure> {
    let (text, options) = text.split_once('?').unwrap_or((text, ""));
    let objref = ObjRef::from_moniker(text)
        .map_err(|violation| wrong(format!("the text of the OBJREF cannot be read: {violation}")))?;
    let (objref, security) = marked(objref, options)?;
    let Some((std, resolver)) = objref.standard() else {
        return Err(wrong("the OBJREF is of the custom form, which only its own class can read"));
    };
    let (iid, ipid, endpoints) = (objref.iid(), std.ipid, resolver.endpoints(RESOLVER_PORT));
    let security = or_ambient(security)?;
    let mut components = vec![(TAG_OBJREF, objref.write())];
    components.extend(security.dialect.components(iid));
    // The key is as that of a reference which came over a connection.
    let profile = way(endpoints, security, Bytes::copy_from_slice(&ipid.to_bytes_le()), components);
    Ok(Reference { type_id: iid.to_string(), profiles: vec![profile], foreign: Vec::new() })
}

/// A way that somebody wrote.
fn way(endpoints: Vec<Endpoint>, security: Security, key: Bytes, components: Vec<(u32, Bytes)>) -> Profile {
    Profile {
        wire: "dcom",
        version: crate::VERSION,
        options: security.at_home(&endpoints).into(),
        endpoints,
        key,
        components,
        ..Profile::default()
    }
}

/// An OBJREF with what the options behind it say: those of addresses, `at` and `dialect`.
fn marked(objref: ObjRef, options: &str) -> Result<(ObjRef, Security), Failure> {
    let (mut at, mut is_wine, mut others) = (None, false, Vec::new());
    for option in options.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("at", place)) => {
                at = Some(Address::parse(&format!("dcom://{place}"), Some(RESOLVER_PORT))?.endpoint)
            }
            Some(("dialect", "wine")) => is_wine = true,
            _ => others.push(option),
        }
    }
    let told =
        objref.standard().and_then(|(_, resolver)| resolver.endpoints(RESOLVER_PORT).into_iter().next());
    let at_or_told = at.clone().or(told);
    let (objref, mut security) = match (is_wine, &at, at_or_told) {
        (true, _, None) => {
            return Err(wrong("Wine's COM does not say in an OBJREF where the object is")
                .with_hint("add where its process listens: ?dialect=wine&at=HOST:PORT"));
        }
        (true, _, Some(at)) => {
            let security = wine::security(at);
            let plain = security.dialect.plain(&objref);
            let why = "the OBJREF is of a form that only its own class can read";
            (plain.ok_or_else(|| wrong(why))?, security)
        }
        (false, Some(at), _) => (objref.resolved_at(at), Security::of_endpoint(Some(at))),
        (false, None, told) => (objref, Security::of_endpoint(told.as_ref())),
    };
    others.into_iter().try_for_each(|option| apply(&mut security, option))?;
    if is_wine && security.level > Level::None {
        return Err(wine::refusal("knows nobody, so `level=none` is all that is to be had"));
    }
    Ok((objref, security))
}

/// Takes an address apart: the friendly part that all wires have, and the security.
fn split(text: &str) -> Result<(Address, Security), Failure> {
    let (rest, options) = text.split_once('?').unwrap_or((text, ""));
    let Some((scheme, rest)) = rest.split_once("://") else { return Err(wrong("`://` is missing")) };
    let (who, place) = reference::split_user(rest);
    let plain = format!("{scheme}://{place}");
    let address = Address::parse(&plain, Some(RESOLVER_PORT)).map_err(|failure| {
        // The text may hold a part of a password that has a `/` or a `?` in it.
        let what = failure.message().replace(&format!("`{plain}` "), "it ");
        Failure::new(failure.kind(), failure.initiator(), what).with_hint(NOTATIONS)
    })?;
    if address.endpoint.layer().is_some() {
        return Err(wrong(
            "DCOM protects calls by themselves: the level stands in ?level=, and no TLS lies below",
        ));
    }
    if address.scheme != "dcom" {
        return Err(wrong(format!("`{}` is no scheme of this wire", address.scheme)));
    }
    let mut security = Security::of_endpoint(Some(&address.endpoint));
    if let Some(who) = who {
        let why = "`%` in a user or a password must be followed by two hexadecimal digits";
        security.credentials = Some(Arc::new(Credentials::parse(who).ok_or_else(|| wrong(why))?));
    }
    for option in options.split('&').filter(|option| !option.is_empty()) {
        apply(&mut security, option)?;
    }
    if let Endpoint::Tcp { host, .. } = &address.endpoint {
        security.host.clone_from(host);
    }
    Ok((address, security))
}

/// Applies one `NAME=VALUE` of the text behind `?` to `security`. The value may hold `%xx`. A name that this
/// wire does not know is an error: a misspelt `level=` must not leave calls unprotected without a word. Files
/// of accounts and keys are read, or named, right here.
fn apply(security: &mut Security, option: &str) -> Result<(), Failure> {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let value =
        reference::unescape_text(value).ok_or_else(|| wrong(format!("the value of `{name}` is no text")))?;
    match (name, value.as_str()) {
        ("level", name) => {
            security.level = Level::of_word(&name.to_ascii_lowercase()).ok_or_else(|| {
                let known: Vec<_> = Level::ALL.into_iter().map(Level::word).collect();
                wrong(format!("`{name}` is no level; known are {}", known.join(", ")))
            })?;
        }
        ("mech", name) => {
            security.mechanism = Mechanism::of_word(name).ok_or_else(|| {
                wrong(format!("`{name}` is no mechanism; known are ntlm, negotiate, kerberos"))
            })?;
        }
        ("credentials", path) => security.credentials = Some(Arc::new(Credentials::read_file(path)?)),
        ("users", path) => security.users = Some(Arc::new(UserTable::read_file(path)?)),
        ("exporter", "here") => security.here = true,
        ("ntlm1", "session") => security.ntlm1_session = true,
        ("lookups", "open") => security.open_lookups = true,
        ("ping", seconds) => {
            let seconds = seconds.parse::<u32>().ok().filter(|seconds| (1..=3600).contains(seconds));
            let seconds = seconds.ok_or_else(|| wrong("`ping=` is followed by 1 to 3600 seconds"))?;
            security.ping = Some(Duration::from_secs(seconds.into()));
        }
        ("hosts", names) => security.hosts = names.split(',').map(|name| name.trim().to_owned()).collect(),
        ("dialect", "wine") => return Err(wine::refusal("neither activates nor resolves")),
        ("dialect", other) => return Err(wrong(format!("`{other}` is no dialect; known is wine"))),
        ("target", name) => security.target = name.to_owned(),
        ("keytab", path) => security.keytab = Some(path.into()),
        _ => {
            return Err(wrong(format!("the option `{option}` is unknown")).with_hint(
                "options are level=, mech=, credentials=, target=, hosts=, exporter=here, behind an OBJREF dialect=wine and at=; to listen: users=, ntlm1=session, lookups=open, keytab=, ping=, hosts=",
            ));
        }
    }
    Ok(())
}

/// With the account of this process, from the file that the environment names, where the address has none and may still be used with
/// one.
fn or_ambient(mut security: Security) -> Result<Security, Failure> {
    let wanted = security.credentials.is_none() && security.level > Level::None;
    if let Some(path) = std::env::var_os(CREDENTIALS).filter(|path| wanted && !path.is_empty()) {
        let known =
            Credentials::read_file(path).map_err(|failure| failure.at(format_args!("${CREDENTIALS}")));
        security.credentials = Some(Arc::new(known?));
    }
    Ok(security)
}

/// The failure of an address that its writer has to correct.
fn wrong(what: impl Into<String>) -> Failure {
    Failure::bad_reference(format!("not an address of this wire: {}", what.into())).with_hint(NOTATIONS)
}
