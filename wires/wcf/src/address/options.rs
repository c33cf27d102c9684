//! What the options of an address ask for, and what becomes of them on either side.
//!
//! An address is read in two steps, since the same text serves callers and listeners. `of_scheme` begins
//! with what the scheme implies, `apply` takes one option after the other, and in the end `client` or
//! `server` makes `Settings` of it, once the endpoint is known.
//!
//! State: `AddressOptions` collects wishes and lives only while an address is read. Files are read at once
//! where their contents decide what the options mean (`credentials=`), and by `client` or `server` where
//! only one of them needs the file (`users=`, `keytab=`, certificates).
//!
//! Invariants:
//!
//! * Nothing that an address says is without effect: an option that cannot matter here (of the other side,
//!   of HTTP or of framing, of a security that is not used) is refused with the reason, because whoever
//!   writes it relies on it.
//! * Security is never weaker than asked for. A password goes only over TLS or inside this machine, on both
//!   sides; a place on TCP must say who is let in, and `security=none` has to be written out.
//! * The default of a caller follows from what he gives: credentials mean Windows on net.tcp, certificates
//!   mean TLS, nothing means none.
//! * Credentials of the environment are used only where this process made the address (`wire_state`), never
//!   for one that a peer sent, and over HTTP only for `security=username`.
//! * `shown` has no password in it, and no name of a file but the one of authorities (`ca=`).

use super::ends::{ambient_credentials, is_local, placed, read_users};
use super::notation::{CALLING, FRAMING, LISTENING, OPTIONS, OWN, SCHEMES, wrong};
use crate::compression::Format;
use crate::settings::{Binding, Encoding, Mode, Security, Settings};
use bytes::Bytes;
use everywire_auth::nns::ProtectionLevel;
use everywire_auth::security::{Credentials, Mechanism, UserTable, check_keys};
use everywire_model::reference::unescape_text;
use everywire_model::{Endpoint, Failure};
use everywire_tls::{ClientSettings, ServerSettings};
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of `to=`: what a Via may be, with room for the object's path.
/// MaxViaSize is 2048 by default.
const MAX_TO: usize = 1024;

/// What an address says, before it is known whether somebody connects or listens.
#[derive(Default)]
pub(super) struct AddressOptions {
    /// What the options have said so far; what follows from it is added by `client` and `server`.
    pub(super) settings: Settings,
    /// The scheme says TLS.
    /// So it is with those of HTTP that end with `s`.
    secure: bool,
    /// What `security=` says, without `username`; `None` leaves it to what else is given.
    security: Option<Security>,
    ca: Option<PathBuf>,
    insecure: bool,
    /// This side's own certificate, and the file of its key; a single file may hold both.
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    clients: Option<PathBuf>,
    /// Read by whoever listens.
    users_file: Option<PathBuf>,
    /// `None`: what the binding has.
    pub(super) encoding: Option<Encoding>,
    /// The options that stood in the address.
    /// Their names in lower case. `check_said` refuses those that mean nothing where the address stands.
    said: Vec<String>,
    /// Whether the credentials of this process may be used.
    /// Not for an address that came in a message.
    pub(super) wire_state: bool,
}

impl AddressOptions {
    /// What a scheme alone asks for. An unknown one is the user's mistake.
    pub(super) fn of_scheme(scheme: &str) -> Result<Self, Failure> {
        let known = SCHEMES.iter().find(|(name, ..)| *name == scheme);
        let &(_, binding, secure, uri_scheme) =
            known.ok_or_else(|| wrong(format!("`{scheme}` is no scheme of this wire")))?;
        let settings = Settings { uri_scheme, ..Settings::new(binding) };
        Ok(Self { settings, secure, wire_state: true, ..Self::default() })
    }

    /// Takes one option, `NAME=VALUE` or a name alone; values have `%xx` where needed. What is no option
    /// may be a quota.
    pub(super) fn apply(&mut self, option: &str) -> Result<(), Failure> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = unescape_text(value).ok_or_else(|| wrong(format!("the value of `{name}` is no text")))?;
        let unknown = |known: &str| wrong(format!("`{value}` is none of what `{name}=` can be: {known}"));
        match (name, value.as_str()) {
            ("security", words) => {
                for word in words.split('+') {
                    let security = match word {
                        "transport" => Security::Tls,
                        "username" => {
                            self.settings.username = true;
                            continue;
                        }
                        word => Security::of_word(word)
                            .ok_or_else(|| unknown("none, tls, windows, unix, username, tls+username"))?,
                    };
                    // `tls+username` names two, and only one of them may be about the transport.
                    if let Some(other) = self.security.replace(security).filter(|other| *other != security) {
                        let (one, other) = (other.word(), security.word());
                        return Err(wrong(format!("`security=` is both {one} and {other}: say one of them")));
                    }
                }
            }
            ("protection", level) => {
                let mut all = ProtectionLevel::ALL.into_iter();
                let known = all.find(|known| known.word().eq_ignore_ascii_case(level));
                self.settings.protection_level =
                    known.ok_or_else(|| unknown("None, Sign, EncryptAndSign"))?;
            }
            ("mech", word) => {
                self.settings.mechanism =
                    Mechanism::of_word(word).ok_or_else(|| unknown("negotiate, ntlm, kerberos"))?;
            }
            ("identity", name) => self.settings.identity = name.to_owned(),
            ("to", uri) => self.settings.to = place(uri)?,
            ("query", text) if self.settings.binding.is_http() => self.settings.query = query(text)?,
            ("ca", path) => self.ca = Some(path.into()),
            ("insecure", "on") => self.insecure = true,
            ("cert", path) => self.cert = Some(path.into()),
            ("key", path) => self.key = Some(path.into()),
            ("clients", path) => self.clients = Some(path.into()),
            ("credentials", path) => {
                self.settings.credentials = Some(Arc::new(Credentials::read_file(path)?))
            }
            ("users", path) => self.users_file = Some(path.into()),
            ("keytab", path) => self.settings.keytab = Some(path.into()),
            ("ntlm1", "session") => self.settings.ntlm1_session = true,
            ("mode", word) => {
                self.settings.mode = Mode::of_word(word).ok_or_else(|| unknown("buffered, streamed"))?;
            }
            ("encoding", word) => {
                let encoding = Encoding::of_word(word);
                self.encoding = Some(encoding.ok_or_else(|| unknown("session, binary, text, mtom"))?);
            }
            ("binding", name) if self.settings.binding.is_http() => match name {
                "basic" => self.settings.binding = Binding::Basic,
                "ws" => self.settings.binding = Binding::Ws,
                "soap12" => self.settings.binding = Binding::Soap12,
                "binary" => self.settings.binding = Binding::BinaryHttp,
                "mtom" => self.encoding = Some(Encoding::Mtom),
                _ => return Err(unknown("basic, ws, soap12, binary, mtom")),
            },
            ("compression", coding) if self.settings.binding.is_http() => match coding {
                "gzip" => self.settings.compressed = Some(Format::Gzip),
                "gzip+requests" => {
                    (self.settings.compressed, self.settings.compressed_requests) =
                        (Some(Format::Gzip), true);
                }
                _ => return Err(unknown("gzip, gzip+requests")),
            },
            ("compression", word) => {
                let format = Format::of_word(word);
                self.settings.compressed = Some(format.ok_or_else(|| unknown("gzip, deflate"))?);
            }
            ("reliable", "on") => self.settings.reliable = true,
            ("callback", key) => self.settings.callback = Some(Bytes::copy_from_slice(key.as_bytes())),
            ("details", "on") => self.settings.exception_detail = true,
            // What a browser asks the service's page for: people paste such addresses.
            ("wsdl" | "singleWsdl", "") if self.settings.binding.is_http() => {}
            (name, value) => {
                if !self.settings.quotas.set(name, value)? {
                    return Err(wrong(format!("the option `{name}` is unknown, or cannot be `{value}`"))
                        .with_hint(OPTIONS));
                }
            }
        }
        // Only what was taken counts as said: `check_said` must not blame a typing error for something
        // else.
        self.said.push(name.to_ascii_lowercase());
        Ok(())
    }

    /// Refuses options that would be without effect where the address stands: who says them relies on them.
    fn check_said(&self, why: &str, useless: &[&str]) -> Result<(), Failure> {
        match self.said.iter().find(|said| useless.contains(&said.as_str())) {
            Some(said) => Err(wrong(format!("the option `{said}` is {why}")).with_hint(OPTIONS)),
            None => Ok(()),
        }
    }

    /// The settings of somebody who calls there. The order matters: the credentials come first, the
    /// security follows from them, and then the certificates that it needs are read.
    pub(super) fn client(mut self, endpoint: &Endpoint) -> Result<Settings, Failure> {
        self.check_said("for those who listen, and without effect in an address to call", &LISTENING)?;
        let local = is_local(Some(endpoint));
        let files = self.ca.is_some() || self.insecure || self.cert.is_some();
        // Whoever says nothing of security on net.tcp gets Windows if this process has credentials, as
        // .NET's default is.
        let by_default = self.security.is_none() && !self.settings.binding.is_http() && !local && !files;
        let wants_them = self.settings.username || self.security == Some(Security::Windows) || by_default;
        // Over HTTP a password is sent only to whom it is meant for: to whom the address names it.
        if self.settings.credentials.is_none() && self.wire_state && wants_them {
            self.settings.credentials = ambient_credentials()?;
        }
        let known = self.settings.credentials.is_some();
        let security = match self.security {
            Some(security) => security,
            None if self.secure || files || (self.settings.username && !local) => Security::Tls,
            None if known && !self.settings.username && !local && !self.settings.binding.is_http() => {
                Security::Windows
            }
            None => Security::None,
        };
        // The authorities are those of `ca=`, or those of the system; with `insecure` none are asked.
        let own = self.cert.as_deref().map(|cert| (cert, self.key.as_deref().unwrap_or(cert)));
        let tls = match security {
            Security::Tls if self.insecure => Some(ClientSettings::insecure(own)?),
            Security::Tls => Some(ClientSettings::new(self.ca.as_deref(), own)?),
            _ => None,
        };
        let mut settings = self.common(endpoint, security)?;
        if let Some(tls) = &tls {
            tls.check_name(settings.certified_name())?;
        }
        settings.tls_client = tls;
        // Over HTTP, credentials are a password.
        if known && settings.binding.is_http() && !settings.username {
            settings.basic_login = true;
        }
        // The one place where a caller's password could end up in the clear.
        let password = settings.basic_login || settings.username;
        if password && security != Security::Tls && !local {
            return Err(wrong("a password would go over the network in the clear")
                .with_hint("call by `https`, `basics://`, `wshttps://` or `binhttps://`, or over net.tcp with security=windows"));
        }
        settings.shown = self.shown(&settings);
        Ok(settings)
    }

    /// The settings of a place.
    /// Nothing is left open: on TCP the address has to say who is let in.
    pub(super) fn server(mut self, endpoint: &Endpoint) -> Result<Settings, Failure> {
        self.check_said("for those who call, and without effect in an address to listen at", &CALLING)?;
        if self.settings.binding.is_http() {
            self.check_said("for net.tcp: HTTP has no sessions and no preambles", &FRAMING)?;
        }
        let local = is_local(Some(endpoint));
        if let Some(path) = &self.users_file {
            self.settings.users = Some(Arc::new(read_users(path)?));
        }
        // Whoever says who it is takes calls from the same account: so servers call back.
        if let (None, Some(own)) = (&self.settings.users, &self.settings.credentials) {
            self.settings.users = Some(Arc::new(UserTable::of(own)));
        }
        // Any of the two makes Windows authentication possible.
        let known = self.settings.users.is_some() || self.settings.keytab.is_some();
        let security = match self.security {
            Some(security) => security,
            None if self.secure || self.cert.is_some() => Security::Tls,
            None if known && !self.settings.username && !self.settings.binding.is_http() => Security::Windows,
            None if local || self.settings.binding.is_http() => Security::None,
            None => {
                return Err(Failure::bad_argument("listening on TCP needs to know who is let in, and the address does not say")
                    .with_hint("add ?users=FILE with lines USER:PASSWORD or ?keytab=FILE (Windows), ?cert=FILE&key=FILE (TLS), or ?security=none to let anybody call, unprotected"));
            }
        };
        let needs = |what: &str| {
            Err(Failure::bad_argument(what.to_owned()).with_hint("lines of the file are USER:PASSWORD"))
        };
        if security == Security::Windows && !known {
            return needs("listening with security=windows needs ?users=FILE or ?keytab=FILE");
        }
        if self.settings.username && self.settings.users.is_none() {
            return needs("listening with security=username needs ?users=FILE");
        }
        if security == Security::Unix && !local {
            return Err(wrong("security=unix is for sockets of this machine"));
        }
        let tls = match (security, &self.cert, &self.key) {
            (Security::Tls, Some(cert), key) => {
                // One file may hold both.
                Some(ServerSettings::new(cert, key.as_ref().unwrap_or(cert), self.clients.as_deref())?)
            }
            (Security::Tls, None, _) => {
                return Err(wrong("listening with TLS needs ?cert=FILE&key=FILE, in PEM notation"));
            }
            _ => None,
        };
        let mut settings = self.common(endpoint, security)?;
        settings.tls_server = tls;
        let said = |name: &str| self.said.iter().any(|said| said == name);
        // A place that does not name a mode or an encoding takes whatever the caller's preamble asks for.
        settings.takes_one_mode = said("mode") && !settings.binding.is_http();
        settings.takes_one_encoding = said("encoding") && !settings.binding.is_http();
        if settings.users.is_some() && security != Security::Windows && !settings.username {
            // Users without Windows say a password: in a header of HTTP, else in each message.
            settings.basic_login = settings.binding != Binding::Ws && settings.binding.is_http();
            settings.username = !settings.basic_login;
        }
        if (settings.basic_login || settings.username) && security != Security::Tls && !local {
            return Err(wrong("users would say their passwords in the clear").with_hint(
                "listen with TLS (?cert=FILE&key=FILE), or on net.tcp without security=username",
            ));
        }
        check_keys(&settings.options())?;
        settings.shown = self.shown(&settings);
        Ok(settings)
    }

    /// What both sides have.
    /// Refuses what fits neither the binding nor the security, and settles the encoding.
    fn common(&self, endpoint: &Endpoint, security: Security) -> Result<Settings, Failure> {
        if security == Security::Windows && self.settings.binding.is_http() {
            return Err(wrong("Windows security is for net.tcp here, not for HTTP")
                .with_hint("over HTTP use TLS, with a user and a password if the service wants them"));
        }
        if security != Security::Windows {
            let why = format!("about Windows security, and this address has security={}", security.word());
            self.check_said(&why, &["protection", "mech", "keytab", "ntlm1"])?;
        }
        if security != Security::Tls {
            let why = format!("about TLS, and this address has security={}", security.word());
            self.check_said(&why, &["ca", "insecure", "cert", "key", "clients"])?;
        }
        let addressing = self.settings.binding.has_addressing();
        if self.settings.reliable && !addressing {
            return Err(wrong("without WS-Addressing (basic, soap12) there are no reliable sessions")
                .with_hint("leave `reliable=on` out, or call by wshttp:// or net.tcp://"));
        }
        if !self.settings.to.is_empty() && !addressing {
            return Err(wrong(
                "messages without WS-Addressing (basic, soap12) do not say where they are to go",
            )
            .with_hint("leave `to=` out: the path of the address is all that the service is told"));
        }
        let mut settings = Settings { transport_security: security, ..self.settings.clone() };
        if self.settings.binding.is_http() {
            settings.uri_scheme = if security == Security::Tls { "https" } else { "http" };
        }
        // What each binding can carry: a session's dictionary needs a session (MC-NBFSE), MTOM needs HTTP's
        // parts.
        settings.encoding = match (self.encoding, self.settings.mode, self.settings.binding) {
            (Some(Encoding::Session), _, binding) if binding.is_http() => {
                return Err(wrong("HTTP has no sessions: encoding=binary, text or mtom"));
            }
            (Some(Encoding::Session), Mode::Streamed, _) => {
                return Err(wrong("streams have no session dictionary: encoding=binary, text or mtom"));
            }
            (Some(Encoding::Mtom), _, Binding::NetTcp) => {
                return Err(wrong("MTOM is for HTTP here: on net.tcp encoding=session, binary or text"));
            }
            (Some(encoding), ..) => encoding,
            (None, Mode::Streamed, Binding::NetTcp) => Encoding::Binary,
            (None, _, binding) => binding.encoding(),
        };
        if self.settings.compressed.is_some()
            && settings.encoding == Encoding::Text
            && !self.settings.binding.is_http()
        {
            return Err(wrong(
                "compression= on net.tcp is for binary encodings: leave it, or encoding=text, out",
            ));
        }
        Ok(placed(settings, endpoint))
    }

    /// The options that a reader of the address would have to be told, without secrets and files of this side's.
    /// Quotas are not told: they bind this side. The order is fixed, so equal settings print the same text.
    fn shown(&self, settings: &Settings) -> Vec<(&'static str, String)> {
        let (own, is_http) = (&self.settings, settings.binding.is_http());
        let is_windows = settings.transport_security == Security::Windows;
        let is_streamed = own.mode == Mode::Streamed;
        let security = match settings.transport_security {
            // Over TCP that is over TLS, and so are HTTP's secured schemes.
            Security::Tls if settings.username && settings.host.is_empty() && !is_http => "tls+username",
            Security::None | Security::Tls if settings.username => "username",
            Security::None => "",
            security => told(!is_http, security.word()),
        };
        let ca = self.ca.as_ref().filter(|_| settings.tls_client.is_some());
        let ca = ca.map(|ca| ca.to_string_lossy()).unwrap_or_default();
        let has_encoding = settings.encoding != settings.binding.encoding()
            && !(is_streamed && settings.encoding == Encoding::Binary);
        let is_guarded = own.protection_level == ProtectionLevel::EncryptAndSign;
        let compression = own.compressed.map_or("", Format::word);
        let said = [
            ("security", security),
            ("protection", told(is_windows && !is_guarded, own.protection_level.word())),
            ("mech", told(is_windows && own.mechanism != Mechanism::Negotiate, own.mechanism.word())),
            ("identity", &settings.identity),
            ("to", &settings.to),
            ("query", &settings.query),
            ("ca", &ca),
            ("insecure", told(self.insecure && settings.tls_client.is_some(), "on")),
            ("mode", told(is_streamed, "streamed")),
            ("encoding", told(has_encoding, settings.encoding.word())),
            ("reliable", told(own.reliable, "on")),
            ("compression", if own.compressed_requests { "gzip+requests" } else { compression }),
        ];
        let said = said.into_iter().filter(|(_, value)| !value.is_empty());
        said.map(|(name, value)| (name, value.to_owned())).collect()
    }
}

/// A word that is told only in some addresses.
fn told(is_told: bool, word: &'static str) -> &'static str {
    if is_told { word } else { "" }
}

/// Checks the URI of `to=`: a place without an object's path, of characters that need no escaping in XML or
/// in an option.
fn place(uri: &str) -> Result<String, Failure> {
    let uri = uri.trim_end_matches('/');
    let plain = uri.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'&'));
    match uri.split_once("://") {
        Some((scheme, place)) if plain && uri.len() <= MAX_TO && !scheme.is_empty() && !place.is_empty() => {
            Ok(uri.to_owned())
        }
        _ => Err(wrong(format!("`to={uri}` is no URI"))
            .with_hint("say the service's own address without the object's path: to=net.tcp://inner:808")),
    }
}

/// Checks the text of `query=`, and escapes what no URI has (RFC 3986, 3.4).
fn query(text: &str) -> Result<String, Failure> {
    let mut query = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'!' | b'$'..=b';' | b'=' | b'?'..=b'Z' | b'_' | b'a'..=b'z' | b'~' => query.push(byte.into()),
            other => query.push_str(&format!("%{other:02X}")),
        }
    }
    if query.is_empty() || query.len() > MAX_TO {
        return Err(wrong(format!("the query has {} octets; 1 to {MAX_TO} are possible", query.len()))
            .with_hint("write query=NAME=VALUE, with %26 for each & in it"));
    }
    Ok(query)
}

/// The query of a URI that a service gives, without what a reference of ours says of itself there.
pub(super) fn query_of(behind: &str) -> Result<String, Failure> {
    let is_own = |part: &&str| {
        let name = part.split('=').next().unwrap_or_default().to_ascii_lowercase();
        OWN.contains(&name.as_str()) || part.is_empty()
    };
    let parts: Vec<&str> = behind.split('&').filter(|part| !is_own(part)).collect();
    if parts.is_empty() { Ok(String::new()) } else { query(&parts.join("&")) }
}
