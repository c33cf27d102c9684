//! Server addresses: `unix:path=/run/bus;tcp:host=...` (specification, "Server Addresses" and "Transports").
//!
//! A list is read entry by entry (`Entry`): a transport and its keys, with `%` escapes undone. To connect,
//! all entries that this side can use are taken in their order; what it cannot use is an error only if
//! nothing else is left. To listen, the first entry that works is taken, as the specification wants. Nothing
//! is kept here, but listening may have effects: a nonce file is made, or a name for a socket.
//!
//! `tls:` and `shm:` are this implementation's own transports; other programs pass over entries that they do
//! not know.

use crate::limits;
use bytes::Bytes;
use everywire_model::layered::TLS;
use everywire_model::{Endpoint, Failure, Initiator, Kind, LayerOptions};
use std::fmt::Write;

/// One address of a list, as this side uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerAddress {
    /// Where to connect to, or to listen.
    pub(crate) endpoint: Endpoint,
    /// The server's identity: 32 hexadecimal digits.
    pub(crate) guid: Option<String>,
    /// The file whose 16 bytes are sent first.
    pub(crate) nonce: Option<Bytes>,
    /// Ways to authenticate that a listener takes, with `+` between them.
    pub(crate) auth: Option<String>,
}

/// Looks up a variable of the environment; empty ones count as unset. An argument, so that tests have their
/// own.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The environment of this process.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The addresses of the session's bus: what DBUS_SESSION_BUS_ADDRESS says, else the socket in the user's
/// runtime folder.
///
/// # Errors
/// The variable cannot be understood, or there is neither it nor such a folder.
pub(crate) fn session(look: Environment<'_>) -> Result<Vec<ServerAddress>, Failure> {
    if let Some(list) = look("DBUS_SESSION_BUS_ADDRESS").filter(|list| !list.starts_with("autolaunch:")) {
        return connecting(&list, look).map_err(|failure| failure.at("$DBUS_SESSION_BUS_ADDRESS"));
    }
    let mut paths: Vec<String> =
        look("XDG_RUNTIME_DIR").map(|folder| format!("{folder}/bus")).into_iter().collect();
    if let Some(user) = user() {
        let path = format!("/run/user/{user}/bus");
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(wrong("there is no session bus").with_hint(
            "set DBUS_SESSION_BUS_ADDRESS, or name the bus, as in dbus:unix:path=/run/bus#NAME/PATH",
        ));
    }
    Ok(paths.into_iter().map(at_path).collect())
}

/// The addresses of the system's bus: what DBUS_SYSTEM_BUS_ADDRESS says, else the well-known socket, at its
/// present and its older place.
pub(crate) fn system(look: Environment<'_>) -> Result<Vec<ServerAddress>, Failure> {
    if let Some(list) = look("DBUS_SYSTEM_BUS_ADDRESS") {
        return connecting(&list, look).map_err(|failure| failure.at("$DBUS_SYSTEM_BUS_ADDRESS"));
    }
    Ok(["/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket"]
        .map(|path| at_path(path.to_owned()))
        .into())
}

/// A Unix socket without further keys.
fn at_path(path: String) -> ServerAddress {
    ServerAddress { endpoint: Endpoint::Unix { path }, guid: None, nonce: None, auth: None }
}

/// The number of the user who runs this process, as the owner of its folder in `/proc`; nothing where there
/// is none.
fn user() -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").ok().map(|process| process.uid())
}

/// A list to connect to: what this side can use of it, in its order. `autolaunch:` stands for the session's
/// bus where it is already; none is started.
///
/// # Errors
/// The list is empty or cannot be read; or nothing in it can be used, then the failure of its first entry.
pub(crate) fn connecting(list: &str, look: Environment<'_>) -> Result<Vec<ServerAddress>, Failure> {
    let mut usable = Vec::new();
    let mut refused = None;
    for entry in Entry::list(list)? {
        if entry.transport == "autolaunch" {
            // An empty variable there would lead back here.
            usable.append(&mut session(&|name| look(name).filter(|_| name != "DBUS_SESSION_BUS_ADDRESS"))?);
            continue;
        }
        match entry.connect() {
            Ok(address) => usable.push(address),
            Err(failure) => refused = refused.or(Some(failure)),
        }
    }
    match refused {
        Some(failure) if usable.is_empty() => Err(failure),
        _ if usable.is_empty() => Err(wrong("the address is empty")),
        _ => Ok(usable),
    }
}

/// A list to listen at: the first address that this side can use.
///
/// # Errors
/// None can be used; then the failure of the first.
pub(crate) fn listening(list: &str, look: Environment<'_>) -> Result<ServerAddress, Failure> {
    let mut refused = None;
    for entry in Entry::list(list)? {
        match entry.listen(look) {
            Ok(address) => return Ok(address),
            Err(failure) => refused = refused.or(Some(failure)),
        }
    }
    Err(refused.unwrap_or_else(|| wrong("the address is empty")))
}

/// Writes an endpoint as a server address, with its nonce file and the server's identity, if they are known.
/// Nothing for one within this process.
pub(crate) fn print(endpoint: &Endpoint, nonce: Option<&[u8]>, guid: Option<&[u8]>) -> Option<String> {
    let mut text = print_endpoint(endpoint, nonce)?;
    if let Some(guid) = guid {
        text.push_str(&format!(",guid={}", escape(&String::from_utf8_lossy(guid))));
    }
    Some(text)
}

/// An address with TLS has the keys of the transport below and those of the layer in one list.
fn print_endpoint(endpoint: &Endpoint, nonce: Option<&[u8]>) -> Option<String> {
    Some(match (endpoint, nonce) {
        (Endpoint::Unix { path }, _) => match path.strip_prefix('@') {
            Some(name) => format!("unix:abstract={}", escape(name)),
            None => format!("unix:path={}", escape(path)),
        },
        (Endpoint::Tcp { host, port }, None) => format!("tcp:host={},port={port}", escape(host)),
        (Endpoint::Tcp { host, port }, Some(file)) => {
            let file = String::from_utf8_lossy(file);
            format!("nonce-tcp:host={},port={port},noncefile={}", escape(host), escape(&file))
        }
        // No address of the specification; other implementations pass over it.
        (Endpoint::Shm { path }, _) => format!("shm:path={}", escape(path)),
        (Endpoint::Layered(layered), _) => {
            let below = print_endpoint(&layered.over, None)?;
            let (_, place) = below.split_once(':')?;
            let mut text = format!("{}:{place}", layered.layer);
            for (name, value) in layered.options.iter() {
                text.push_str(&format!(",{name}={}", escape(value)));
            }
            text
        }
        (Endpoint::InProcess { .. }, _) => return None,
    })
}

/// Keys of an address with TLS that are of what lies below. All others are options of TLS, such as `ca` and
/// `identity`.
const BELOW: [&str; 11] =
    ["abstract", "auth", "bind", "dir", "family", "guid", "host", "path", "port", "runtime", "tmpdir"];

/// `transport:key=value,key=value`. Keys are not repeated; values have their escapes undone.
struct Entry<'a> {
    transport: &'a str,
    pairs: Vec<(&'a str, String)>,
}

impl<'a> Entry<'a> {
    /// The entries of a list; empty ones between two `;` are passed over.
    fn list(list: &'a str) -> Result<Vec<Self>, Failure> {
        list.split(';').filter(|entry| !entry.is_empty()).map(Self::read).collect()
    }

    /// Reads one entry.
    ///
    /// # Errors
    /// It has no transport or too many keys, a pair has no `=`, a key stands twice, an escape is broken, or the
    /// `guid` is none.
    fn read(text: &'a str) -> Result<Self, Failure> {
        let (transport, rest) =
            text.split_once(':').ok_or_else(|| wrong(format!("`{text}` has no `:` after its transport")))?;
        let mut pairs: Vec<(&str, String)> = Vec::new();
        for pair in rest.split(',').filter(|pair| !pair.is_empty()) {
            let (key, value) =
                pair.split_once('=').ok_or_else(|| wrong(format!("`{pair}` is no KEY=VALUE")))?;
            if pairs.len() >= limits::ADDRESS_KEYS {
                return Err(wrong(format!("an address has more than {} keys", limits::ADDRESS_KEYS)));
            }
            if pairs.iter().any(|(held, _)| *held == key) {
                return Err(wrong(format!("`{key}` stands twice in `{text}`")));
            }
            let value = unescape(value).ok_or_else(|| {
                wrong(format!("`%` in `{value}` is not followed by two hexadecimal digits"))
            })?;
            pairs.push((key, value));
        }
        let entry = Self { transport, pairs };
        if let Some(guid) = entry.get("guid")
            && (guid.len() != 32 || !guid.bytes().all(|digit| digit.is_ascii_hexdigit()))
        {
            return Err(wrong(format!("the guid `{guid}` is not 32 hexadecimal digits")));
        }
        Ok(entry)
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(held, _)| *held == key).map(|(_, value)| value.as_str())
    }

    /// An address with the keys that every transport may have.
    fn address(&self, endpoint: Endpoint) -> ServerAddress {
        let owned = |key| self.get(key).map(str::to_owned);
        ServerAddress { endpoint, guid: owned("guid"), nonce: None, auth: owned("auth") }
    }

    /// The address that a client uses.
    ///
    /// # Errors
    /// A key is missing or wrong, or this side does not speak the transport.
    fn connect(&self) -> Result<ServerAddress, Failure> {
        match self.transport {
            "unix" => match (self.get("path"), self.get("abstract")) {
                (Some(path), None) => Ok(self.address(Endpoint::Unix { path: path.to_owned() })),
                (None, Some(name)) => Ok(self.address(Endpoint::Unix { path: format!("@{name}") })),
                (Some(_), Some(_)) => Err(wrong("a unix address has both path= and abstract=")),
                (None, None) => Err(wrong("a unix address to connect to has path= or abstract=")),
            },
            TLS => {
                let over =
                    if self.get("path").is_some() || self.get("abstract").is_some() { "unix" } else { "tcp" };
                self.secured(|below| below.connect(), over)
            }
            "shm" => match self.get("path") {
                Some(path) => Ok(self.address(Endpoint::Shm { path: path.to_owned() })),
                None => Err(wrong("a shm address has path=")),
            },
            "tcp" | "nonce-tcp" => {
                let host = self.get("host").unwrap_or("localhost").to_owned();
                let port = match self.port()? {
                    0 => return Err(wrong("an address to connect to has a port")),
                    port => port,
                };
                let mut address = self.address(Endpoint::Tcp { host, port });
                if self.transport == "nonce-tcp" {
                    let file =
                        self.get("noncefile").ok_or_else(|| wrong("a nonce-tcp address has noncefile="))?;
                    address.nonce = Some(Bytes::from(file.to_owned()));
                }
                Ok(address)
            }
            other => Err(unknown(other)),
        }
    }

    /// The address that a server uses. `tmpdir` and `dir` make a socket with a random name there,
    /// `runtime=yes` the user's bus socket, and `nonce-tcp` a file with a fresh nonce.
    ///
    /// # Errors
    /// As `connect`; or there is no randomness, or the nonce file cannot be written.
    fn listen(&self, look: Environment<'_>) -> Result<ServerAddress, Failure> {
        match self.transport {
            "unix" => {
                if let Some(folder) = self.get("tmpdir").or_else(|| self.get("dir")) {
                    let path = format!("{folder}/dbus-{}", random_name()?);
                    return Ok(self.address(Endpoint::Unix { path }));
                }
                match self.get("runtime") {
                    Some("yes") => match look("XDG_RUNTIME_DIR") {
                        Some(folder) => Ok(self.address(Endpoint::Unix { path: format!("{folder}/bus") })),
                        None => Err(wrong("unix:runtime=yes needs $XDG_RUNTIME_DIR")),
                    },
                    Some(other) => Err(wrong(format!("unix:runtime={other} is not runtime=yes"))),
                    None => self.connect(),
                }
            }
            "tcp" | "nonce-tcp" => {
                let host = self.get("bind").or_else(|| self.get("host")).unwrap_or("localhost");
                let host = if host == "*" { "0.0.0.0" } else { host }.to_owned();
                let mut address = self.address(Endpoint::Tcp { host, port: self.port()? });
                if self.transport == "nonce-tcp" {
                    address.nonce = Some(match self.get("noncefile") {
                        Some(file) => crate::nonce::create_at(file)?,
                        None => crate::nonce::create()?,
                    });
                }
                Ok(address)
            }
            TLS => {
                let over =
                    if self.get("host").is_some() || self.get("port").is_some() { "tcp" } else { "unix" };
                self.secured(|below| below.listen(look), over)
            }
            "shm" => self.connect(),
            other => Err(unknown(other)),
        }
    }

    /// TLS over another transport; no address of the specification, which other implementations pass over. What says nothing of
    /// the transport is an option of TLS.
    fn secured(
        &self,
        read: impl FnOnce(&Self) -> Result<ServerAddress, Failure>,
        over: &'a str,
    ) -> Result<ServerAddress, Failure> {
        let (below, options) = self.pairs.iter().cloned().partition(|(key, _)| BELOW.contains(key));
        let address = read(&Self { transport: over, pairs: below })?;
        let options = LayerOptions::of(options).map_err(|failure| wrong(failure.message()))?;
        Ok(ServerAddress { endpoint: Endpoint::layered(TLS, options, address.endpoint), ..address })
    }

    /// 0 if there is none. The family is checked and not used: the host says it.
    fn port(&self) -> Result<u16, Failure> {
        if let Some(family) = self.get("family")
            && !matches!(family, "ipv4" | "ipv6")
        {
            return Err(wrong(format!("the family `{family}` is neither ipv4 nor ipv6")));
        }
        match self.get("port") {
            None => Ok(0),
            Some(port) => port.parse().map_err(|_| wrong(format!("`{port}` is no port"))),
        }
    }
}

/// Why a transport is not used: it is known and not spoken here, or not known.
fn unknown(transport: &str) -> Failure {
    match transport {
        "unixexec" | "launchd" | "systemd" => {
            let what = format!("the transport `{transport}` is not spoken here");
            Failure::new(Kind::Unsupported, Initiator::User, what)
                .with_hint("use unix:path=..., unix:abstract=..., tcp:host=...,port=... or nonce-tcp:")
        }
        "autolaunch" => wrong("autolaunch: is an address to connect to"),
        other => wrong(format!("the transport `{other}` is unknown")),
    }
}

/// Sixteen hexadecimal digits, so that nobody else guesses the socket's name before it is there.
fn random_name() -> Result<String, Failure> {
    let mut raw = [0; 8];
    getrandom::fill(&mut raw).map_err(|error| {
        Failure::new(Kind::Internal, Initiator::Here, format!("no randomness for a socket's name: {error}"))
    })?;
    Ok(everywire_model::hex::text(&raw))
}

/// All but the octets that the specification lets stand are written as `%xx`.
fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for octet in value.bytes() {
        if octet.is_ascii_alphanumeric() || b"-_/.\\*".contains(&octet) {
            out.push(octet.into());
        } else {
            let _ = write!(out, "%{octet:02x}");
        }
    }
    out
}

/// Nothing, if an escape is broken or the result is no UTF-8.
fn unescape(value: &str) -> Option<String> {
    everywire_model::reference::unescape(value).and_then(|raw| String::from_utf8(raw).ok())
}

/// The failure of an address that cannot be understood.
#[cold]
pub(crate) fn wrong(message: impl Into<String>) -> Failure {
    Failure::bad_reference(message).with_hint(
        "write dbus:session/NAME/PATH, dbus:system/NAME/PATH, dbus:ADDRESS#NAME/PATH for a bus at an address such as \
         unix:path=/run/bus, and dbus+unix:///SOCKET#KEY, dbus://HOST:PORT/KEY or dbus:ADDRESS#/PATH for a peer",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn lists_yield_what_can_be_used() {
        let guid = "0123456789abcdef0123456789abcdef";
        let list = format!(
            "unixexec:path=ssh;unix:path=/tmp/a%20b,guid={guid};tcp:host=::1,port=7,family=ipv6;unix:abstract=x"
        );
        let found = connecting(&list, &none).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].endpoint, Endpoint::Unix { path: "/tmp/a b".into() });
        assert_eq!(found[0].guid.as_deref(), Some(guid));
        assert_eq!(found[1].endpoint, Endpoint::Tcp { host: "::1".into(), port: 7 });
        assert_eq!(found[2].endpoint, Endpoint::Unix { path: "@x".into() });
        for address in &found {
            let text = print(&address.endpoint, None, None).unwrap();
            assert_eq!(connecting(&text, &none).unwrap()[0].endpoint, address.endpoint);
        }
        let nonce = connecting("nonce-tcp:host=h,port=1,noncefile=/n%3d;unix:path=/x", &none).unwrap();
        assert_eq!((nonce.len(), nonce[0].nonce.as_deref()), (2, Some(&b"/n="[..])));
        assert_eq!(nonce[1].nonce, None);
    }

    #[test]
    fn an_address_has_few_keys() {
        let keys = |many: usize| (0..many).map(|n| format!(",k{n}=v")).collect::<String>();
        assert!(connecting(&format!("unix:path=/x{}", keys(31)), &none).is_ok());
        let failure = connecting(&format!("unix:path=/x{}", keys(32)), &none).unwrap_err();
        assert!(failure.message().contains("more than 32"), "{failure}");
    }

    #[test]
    fn the_session_bus_is_found_as_the_specification_says() {
        let set = |name: &str| (name == "DBUS_SESSION_BUS_ADDRESS").then(|| "unix:path=/s".to_owned());
        assert_eq!(session(&set).unwrap()[0].endpoint, Endpoint::Unix { path: "/s".into() });
        let runtime = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| "/run/user/7".to_owned());
        assert_eq!(session(&runtime).unwrap()[0].endpoint, Endpoint::Unix { path: "/run/user/7/bus".into() });
        assert_eq!(
            connecting("autolaunch:", &runtime).unwrap()[0].endpoint.to_string(),
            "unix:/run/user/7/bus"
        );
        assert_eq!(system(&none).unwrap()[0].endpoint.to_string(), "unix:/run/dbus/system_bus_socket");
    }

    #[test]
    fn listeners_get_names_of_their_own() {
        let one = listening("unix:tmpdir=/tmp", &none).unwrap();
        let two = listening("unix:dir=/tmp,auth=anonymous", &none).unwrap();
        assert_ne!(one.endpoint, two.endpoint);
        assert_eq!(two.auth.as_deref(), Some("anonymous"));
        assert_eq!(listening("tcp:host=h,bind=*", &none).unwrap().endpoint.to_string(), "tcp:0.0.0.0:0");
    }

    #[test]
    fn wrong_addresses_say_why() {
        for (list, word) in [
            ("", "empty"),
            ("unix", "`:`"),
            ("unix:path", "KEY=VALUE"),
            ("unix:path=%zz", "hexadecimal"),
            ("unix:path=/a,path=/b", "twice"),
            ("unix:path=/a,guid=12", "guid"),
            ("unix:tmpdir=/tmp", "path="),
            ("tcp:host=a", "port"),
            ("tcp:port=99999", "no port"),
            ("unixexec:path=x", "not spoken"),
            ("launchd:env=X", "not spoken"),
        ] {
            let failure = connecting(list, &none).unwrap_err();
            assert!(failure.message().contains(word), "{list}: {failure}");
        }
    }
}
