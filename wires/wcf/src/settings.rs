//! What an address says of how to talk to whoever is there: binding, security, quotas.
//!
//! `Settings` are the options of an address ([`everywire_model::Options`]): they stand in
//! `Profile::options`, and `Settings::of` (in `address`) takes them out. `address::options` makes them once
//! from the text; nobody changes them afterwards, so sessions share them in an `Arc`. Whoever needs others
//! (`address::publish`, `address::parse_like`, `metadata::asking`) clones and edits the copy. What always
//! holds:
//!
//! * Two are equal if callers by them may share connections: the same binding, place, account with its password, protection, encoding and
//!   quotas. What only a place has (users, keys, certificates, throttles) does not count.
//! * A connection of a session (framing, or a reliable session) is for one key; over HTTP it is for all keys.
//! * Neither their text nor their hash has anything of a password in it; what is shown of an address is `told`.
//! * Where `socket` is not empty, URIs begin with it in place of host and port.

use crate::compression::Format;
use crate::limits::Quotas;
use crate::throttle::Throttle;
use bytes::Bytes;
use everywire_auth::nns::ProtectionLevel;
use everywire_auth::security::{Credentials, Mechanism, Options, Users};
use everywire_model::{Failure, Initiator, Kind, Options as WireOptions, Profile, named_variants};
use everywire_tls as tls;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

named_variants! {
    /// How messages travel and what their envelopes are: WCF's bindings, with their friendly schemes, without security.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Binding {
        /// Framing (MC-NMF) on a stream: NetTcpBinding, UnixDomainSocketBinding, NetNamedPipeBinding.
        #[default]
        NetTcp "net.tcp",
        /// SOAP 1.1 over HTTP: BasicHttpBinding.
        Basic "basic",
        /// SOAP 1.2 with WS-Addressing over HTTP: WSHttpBinding.
        Ws "wshttp",
        /// SOAP 1.2 over HTTP without WS-Addressing, as most that is not of .NET means it by `soap12:binding`: a custom binding of
        /// textMessageEncoding with the message version Soap12.
        Soap12 "soap12",
        /// Binary XML over HTTP: a custom binding of binaryMessageEncoding and httpTransport.
        BinaryHttp "binhttp",
    }
}

impl Binding {
    /// Whether it is one of those over HTTP.
    pub fn is_http(self) -> bool {
        self != Self::NetTcp
    }

    /// Whether its messages carry WS-Addressing; without it, they say neither where they are to go nor which they answer.
    pub fn has_addressing(self) -> bool {
        !matches!(self, Self::Basic | Self::Soap12)
    }

    /// What its messages are written in, unless somebody says otherwise.
    pub fn encoding(self) -> Encoding {
        match self {
            Self::NetTcp => Encoding::Session,
            Self::BinaryHttp => Encoding::Binary,
            Self::Basic | Self::Ws | Self::Soap12 => Encoding::Text,
        }
    }
}

named_variants! {
    /// How the transport is secured, with the names in addresses.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Security {
        /// Not at all.
        #[default]
        None "none",
        /// TLS: `https`, or the upgrade `application/ssl-tls`.
        Tls "tls",
        /// NegotiateStream (MS-NNS): the upgrade `application/negotiate`.
        Windows "windows",
        /// The kernel vouches for the peer: the upgrade `application/unixposix`.
        Unix "unix",
    }
}

impl Security {
    /// The protocol that a framing client asks for in its UpgradeRequest.
    pub fn upgrade(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Tls => Some("application/ssl-tls"),
            Self::Windows => Some("application/negotiate"),
            Self::Unix => Some("application/unixposix"),
        }
    }
}

named_variants! {
    /// How framing delimits messages (TransferMode), with the names in addresses.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Mode {
        /// Sized envelopes, both ways, as many as wanted.
        #[default]
        Buffered "buffered",
        /// One unsized envelope each way at a time, in chunks.
        Streamed "streamed",
    }
}

named_variants! {
    /// What messages are written in, with the names in addresses.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Encoding {
        /// Binary XML with a dictionary for the session (MC-NBFSE).
        #[default]
        Session "session",
        /// Binary XML (MC-NBFS).
        Binary "binary",
        /// XML in UTF-8.
        Text "text",
        /// XML in UTF-8 with large octet strings beside it.
        Mtom "mtom",
    }
}

/// See the module. It stands in [`Profile::options`] of a way and of a place. Fields that a place alone
/// uses are marked as such: `users`, `keytab`, `tls_server`, `throttle` and the like mean nothing to a
/// caller, and `tls_client`, `to`, `callback` nothing to a place. Only these fields count for equality that
/// `Settings::identity` names. They begin with `Settings::new`.
#[derive(Clone, Default)]
pub struct Settings {
    /// How messages travel.
    pub binding: Binding,
    /// The scheme of the URIs that are sent: `net.tcp`, `net.uds`, `net.pipe`, `http`, `https`.
    pub uri_scheme: &'static str,
    /// Host and port as URIs spell them; empty where the socket's path stands in their place.
    pub authority: String,
    /// The host as the address names it, without port and brackets; empty for sockets.
    pub host: String,
    /// The socket's path, for sockets whose URIs begin with it.
    pub socket: String,
    /// Whether the endpoint is of this machine alone: then nobody on a network can listen in, and passwords may
    /// go without TLS.
    pub local: bool,
    /// How the transport is secured; of a place, how it must be.
    pub transport_security: Security,
    /// Whether envelopes carry a UsernameToken (TransportWithMessageCredential).
    pub username: bool,
    /// Whether requests carry HTTP's Basic authentication.
    pub basic_login: bool,
    /// How framing delimits messages.
    pub mode: Mode,
    /// What messages are written in.
    pub encoding: Encoding,
    /// How messages are compressed: with framing all, over HTTP answers (gzip) where the caller takes that; of a place, how
    /// they may be.
    pub compressed: Option<Format>,
    /// Over HTTP, whether requests are, too.
    pub compressed_requests: bool,
    /// Quotas.
    pub quotas: Quotas,
    /// The key of the object that takes callbacks, if it is said.
    pub callback: Option<Bytes>,
    /// Whether sessions are reliable (WS-ReliableMessaging).
    pub reliable: bool,
    /// The account that this side authenticates with.
    pub credentials: Option<Arc<Credentials>>,
    /// Of a place: the users that may authenticate.
    pub users: Option<Arc<dyn Users>>,
    /// Of a place: the file of its Kerberos keys.
    pub keytab: Option<PathBuf>,
    /// Of a place: whether the NTLM2 session response will do.
    pub ntlm1_session: bool,
    /// How NegotiateStream protects.
    pub protection_level: ProtectionLevel,
    /// How the two sides of NegotiateStream prove who they are.
    pub mechanism: Mechanism,
    /// What the server has to prove to be: a name in its certificate, or its service principal name. Empty: the host.
    pub identity: String,
    /// The service's own address up to the object's path, where the connection leads there another way (a
    /// tunnel, address translation). Empty: the address of the connection.
    pub to: String,
    /// Of a caller over HTTP: what stands behind the path of requests and addresses, without the `?`, escaped as URIs want it.
    /// Servers that tell their services apart by it: SAP's (`sap-client=100`), Magento's, pages of PHP.
    pub query: String,
    /// The client's side of TLS.
    pub tls_client: Option<tls::ClientSettings>,
    /// The server's side of TLS.
    pub tls_server: Option<tls::ServerSettings>,
    /// Of a place: whether faults tell callers what went wrong here (IncludeExceptionDetailInFaults).
    pub exception_detail: bool,
    /// Of a place: whether it takes the mode that its address says, and no other.
    pub takes_one_mode: bool,
    /// Of a place: whether it takes the encoding that its address says, and no other.
    pub takes_one_encoding: bool,
    /// Of a place: what it serves now, where that is bounded.
    /// Clones of the settings share it, so all connections of a place count together.
    pub(crate) throttle: Arc<Throttle>,
    /// The public part of what the address says, as options of an address.
    pub(crate) shown: Vec<(&'static str, String)>,
}

/// `client_layer` or `server_layer` wants TLS, and no address made its settings: only code that builds
/// `Settings` by hand meets it.
#[cold]
fn unset() -> Failure {
    Failure::new(Kind::Internal, Initiator::Here, "this security was not set up by the address")
}

/// The failure of a call that needs an account, where none was given.
#[cold]
fn unnamed(what: &str) -> Failure {
    Failure::new(Kind::Refused, Initiator::User, what).with_hint(
        "write USER:PASSWORD@ before the host, add ?credentials=FILE, or name the file in $EVERYWIRE_WCF_CREDENTIALS; with Kerberos kinit does, too",
    )
}

impl Settings {
    /// The defaults of a binding. Authority, host and socket are empty: `address::ends::placed` fills them
    /// in once the endpoint is known.
    pub fn new(binding: Binding) -> Self {
        let uri_scheme = if binding.is_http() { "http" } else { "net.tcp" };
        Self { binding, uri_scheme, encoding: binding.encoding(), ..Self::default() }
    }

    /// The URI of an object, as Via (MC-NMF 2.2.3.3), To (WS-Addressing) and metadata spell it. With `to`
    /// that stands in front; otherwise scheme and authority, the socket's path where there is one, and the
    /// key, all escaped as URIs want it. The query ends it.
    pub fn via(&self, key: &[u8]) -> String {
        let mut uri = self.place_of(key);
        if !self.query.is_empty() {
            uri.push('?');
            uri.push_str(&self.query);
        }
        uri
    }

    /// The URI of an object, without a query.
    fn place_of(&self, key: &[u8]) -> String {
        if !self.to.is_empty() {
            let slash = if key.is_empty() { "" } else { "/" };
            return format!("{}{slash}{}", self.to, everywire_model::reference::escape(key));
        }
        let mut uri = format!("{}://{}", self.uri_scheme, self.authority);
        if !self.socket.is_empty() {
            uri.push_str(&everywire_model::reference::escape(self.socket.as_bytes()));
        }
        if !key.is_empty() || self.socket.is_empty() {
            uri.push('/');
            uri.push_str(&everywire_model::reference::escape(key));
        }
        uri
    }

    /// The key that a URI (a Via, a To) stands for here: its path without the socket's and the leading slash; `None` if it is
    /// no URI. .NET writes sockets as `net.uds:/SOCKET`, without an authority.
    pub fn key_of(&self, uri: &str) -> Option<Bytes> {
        let (_, rest) = uri.split_once(':')?;
        let path = match rest.strip_prefix("//") {
            Some(rest) => &rest[rest.find('/').unwrap_or(rest.len())..],
            None => Some(rest).filter(|rest| !self.socket.is_empty() && rest.starts_with('/'))?,
        };
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let path = everywire_model::reference::unescape(path)?;
        // A path that does not begin with the socket's is taken whole: some clients leave the socket out.
        let path = match path.strip_prefix(self.socket.as_bytes()) {
            Some(rest) if !self.socket.is_empty() && (rest.is_empty() || rest.starts_with(b"/")) => rest,
            _ => &path,
        };
        Some(Bytes::copy_from_slice(path.strip_prefix(b"/").unwrap_or(path)))
    }

    /// What callers by it share connections by; what a place alone has is left out. All quotas count, since
    /// a connection holds its peer to them.
    fn identity(&self) -> impl Eq + Hash {
        let place = (self.binding, self.uri_scheme, &self.authority, &self.host, &self.socket, &self.to);
        let tls = self.tls_client.as_ref().map(tls::ClientSettings::describe);
        let proof = (self.username, self.basic_login, self.protection_level, self.mechanism, &self.identity);
        let packed = (self.mode, self.encoding, self.compressed, self.compressed_requests);
        let rest = (self.quotas, &self.callback, self.reliable, &self.query);
        (&self.credentials, self.transport_security, tls, place, proof, packed, rest)
    }

    /// What NegotiateStream's contexts are asked for.
    pub fn options(&self) -> Options {
        // A service principal name (RFC 4120, 6.2): `host/NAME`, unless the address spells a whole one.
        let target = match &*self.identity {
            "" => format!("host/{}", self.host),
            named if named.contains(['/', '@']) => named.to_owned(),
            named => format!("host/{named}"),
        };
        Options {
            integrity: self.protection_level >= ProtectionLevel::Sign,
            confidentiality: self.protection_level == ProtectionLevel::EncryptAndSign,
            dce_style: false,
            allow_ntlm1_session: self.ntlm1_session,
            target,
            keytab: self.keytab.clone(),
        }
    }

    /// The client's side of TLS on a new connection.
    ///
    /// # Errors
    ///
    /// The host's name cannot stand in a certificate.
    pub(crate) fn tls_channel(&self) -> Result<tls::Channel, Failure> {
        let settings = self.tls_client.as_ref().ok_or_else(unset)?;
        tls::Channel::client(settings, &self.host, self.certified_name())
    }

    /// The server's side of TLS on a new connection.
    ///
    /// # Errors
    ///
    /// There is no certificate.
    pub(crate) fn tls_server_channel(&self) -> Result<tls::Channel, Failure> {
        tls::Channel::server(self.tls_server.as_ref().ok_or_else(unset)?)
    }

    /// The name that the server's certificate has to have.
    pub(crate) fn certified_name(&self) -> &str {
        [&*self.identity, &*self.host].into_iter().find(|name| !name.is_empty()).unwrap_or("localhost")
    }

    /// Whether a call can be made with it. It is asked before anything of a call is written.
    ///
    /// # Errors
    ///
    /// An account is needed, and none was given.
    pub fn check_account(&self) -> Result<(), Failure> {
        if self.username && self.credentials.as_ref().is_none_or(|known| known.user.is_empty()) {
            return Err(unnamed("the service takes who says a user and a password, and there are none"));
        }
        // Other mechanisms look for tickets.
        let windows = self.transport_security == Security::Windows && self.mechanism == Mechanism::Ntlm;
        if windows && self.credentials.is_none() {
            return Err(unnamed("the service takes Windows users, and there are no credentials"));
        }
        Ok(())
    }

    /// Who may call and who may listen in: one line for people.
    pub fn protection(&self, local: bool) -> String {
        let insecure = self.tls_client.as_ref().is_some_and(tls::ClientSettings::is_insecure);
        let transport = match (self.transport_security, self.protection_level) {
            (Security::None, _) if local => "none beyond the socket's: whoever may open it can call",
            (Security::None, _) => {
                "none: no authentication, no encryption; whoever reaches the port can call"
            }
            (Security::Unix, _) => "the kernel tells who calls; nothing leaves this machine",
            (Security::Tls, _) if insecure => {
                "TLS: encrypted, but the server's certificate is NOT checked (insecure=on): whoever is on the way may read and change everything"
            }
            (Security::Tls, _) => "TLS: encrypted; the server proves who it is by its certificate",
            (Security::Windows, ProtectionLevel::EncryptAndSign) => {
                "Windows: callers are known, everything is signed and encrypted"
            }
            (Security::Windows, ProtectionLevel::Sign) => {
                "Windows: callers are known and everything is signed; nothing is encrypted"
            }
            (Security::Windows, ProtectionLevel::None) => {
                "Windows: callers are known, but nothing is signed or encrypted"
            }
        };
        let login = match () {
            () if self.username => "; callers say a user and a password in each message",
            () if self.basic_login => "; callers say a user and a password in each request",
            () if self.tls_server.as_ref().is_some_and(tls::ServerSettings::asks_clients) => {
                "; callers prove who they are by certificates"
            }
            () if self.transport_security == Security::Tls => "; whoever reaches the port can call",
            () => "",
        };
        format!("{transport}{login}")
    }
}

impl PartialEq for Settings {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Settings {}

impl Hash for Settings {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl WireOptions for Settings {
    /// A session, of framing or a reliable one, leads to one address only.
    fn scope(&self, profile: &Profile) -> Bytes {
        if self.binding.is_http() && !self.reliable { Bytes::new() } else { profile.key.clone() }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = self.credentials.as_ref().map(|known| (&known.domain, &known.user));
        let users = self.users.is_some();
        write!(f, "Settings({:?}, {}, {who:?}, users: {users})", self.binding, self.transport_security.word())
    }
}
