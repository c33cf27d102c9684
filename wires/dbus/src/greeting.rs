//! The greeting: a nonce where the address asks for it, then authentication (specification, "Authentication Protocol").

use crate::address::{TAG_AUTH, TAG_BUS, TAG_GUID, TAG_NONCE, component_of};
use crate::nonce::{self, NONCE};
use crate::session::{Bus, DbusSession, Stage};
use crate::violations::Wrong;
use bytes::{Buf, Bytes, BytesMut};
use everywire_auth::sasl::{
    Client, ClientOptions, Guid, Mechanism, Progress, SaslError, Server, ServerOptions,
};
use everywire_auth::{same_secret, system_random};
use everywire_model::{Config, Endpoint, Failure, Profile, Violation};
use std::sync::OnceLock;

/// The word for DBUS_COOKIE_SHA1, in addresses and for people.
pub(crate) const COOKIE: &str = "cookie";

/// How far the greeting is.
pub(crate) enum Greeting {
    /// This side connected.
    Client(Client),
    /// This side accepted: what must come first, and the rest.
    Server(Option<[u8; NONCE]>, Server),
    /// It cannot begin.
    Impossible(Wrong),
}

impl DbusSession {
    /// The connecting side: says as much as it can at once.
    pub(crate) fn connecting(config: &Config) -> Self {
        let unix = is_unix(config);
        let mechanisms = chosen(config).unwrap_or_else(|| {
            if unix {
                vec![Mechanism::External, Mechanism::CookieSha1]
            } else {
                vec![Mechanism::CookieSha1, Mechanism::Anonymous]
            }
        });
        let pipelined = mechanisms.first() == Some(&Mechanism::External);
        let expected_guid = here(config, TAG_GUID).and_then(Guid::parse);
        let options = ClientOptions {
            mechanisms,
            negotiate_handles: passes_handles(config),
            expected_guid,
            pipelined,
            ..ClientOptions::default()
        };
        let mut first = Vec::new();
        let begun = nonce_of(config).and_then(|nonce| {
            first.extend(nonce.into_iter().flatten());
            let mut client = Client::new(options);
            client.start(&mut first).map_err(|error| refused(&error))?;
            Ok(client)
        });
        let greeting = match begun {
            Ok(client) => Greeting::Client(client),
            Err(wrong) => {
                first.clear();
                Greeting::Impossible(wrong)
            }
        };
        let possible = matches!(greeting, Greeting::Client(_));
        let mut session = Self::new(config, Stage::Greeting(Box::new(greeting)));
        session.bus = Bus::of(config);
        session.out.flat().extend_from_slice(&first);
        session.limit_greeting(false);
        if !possible {
            session.give_up();
        }
        if config.peer.credentials.is_some() {
            session.authentication = "unix credentials";
        }
        if pipelined && possible && session.bus.is_some() {
            session.say_hello();
        }
        session
    }

    /// The accepting side.
    pub(crate) fn accepting(config: &Config) -> Self {
        let peer_uid = config.peer.credentials.map(|(_, uid)| uid);
        let layer = config.profile.endpoints.first().and_then(Endpoint::layer);
        let known = layer.is_some_and(|layered| layered.options.get("clients").is_some());
        let default = || {
            vec![match () {
                () if peer_uid.is_some() => Mechanism::External,
                // The peer has proved who it is by its certificate.
                () if known => Mechanism::Anonymous,
                () => Mechanism::CookieSha1,
            }]
        };
        let begun = nonce_of(config).and_then(|nonce| {
            let options = ServerOptions {
                mechanisms: chosen(config).unwrap_or_else(default),
                peer_uid,
                handles: passes_handles(config),
                ..ServerOptions::new(own_guid()?)
            };
            Ok(Greeting::Server(nonce, Server::new(options)))
        });
        let greeting = begun.unwrap_or_else(Greeting::Impossible);
        let possible = !matches!(greeting, Greeting::Impossible(_));
        let mut session = Self::new(config, Stage::Greeting(Box::new(greeting)));
        session.limit_greeting(true);
        if !possible {
            session.give_up();
        }
        session
    }

    /// Takes the greeting off the input; whether it is over.
    pub(crate) fn greet(&mut self, input: &mut BytesMut) -> Result<bool, Violation> {
        let Stage::Greeting(greeting) = &mut self.stage else { return Ok(true) };
        let before = input.len();
        let mut retry = Vec::new();
        let result = greeting.go_on(input, self.out.flat(), &mut retry);
        if !retry.is_empty() {
            self.refused = true;
            self.way.components.retain(|(tag, _)| *tag != TAG_AUTH);
            self.way.components.push((TAG_AUTH, words(&retry)));
        }
        let taken = before - input.len();
        let done = result.map_err(|wrong| wrong.violation(self.received))?;
        self.received += taken as u64;
        let Some(Admission { mechanism, handles }) = done else { return Ok(false) };
        let connecting = matches!(**greeting, Greeting::Client(_));
        self.handles = handles;
        if !connecting {
            self.authentication = match mechanism {
                Mechanism::External => "unix credentials",
                Mechanism::CookieSha1 => COOKIE,
                Mechanism::Anonymous => "anonymous",
            };
        }
        if self.bus.is_none() {
            self.become_ready();
        } else {
            self.stage = Stage::Joining;
            if self.waiting.is_empty() {
                self.say_hello();
            }
        }
        Ok(true)
    }
}

/// How the greeting went.
struct Admission {
    mechanism: Mechanism,
    handles: bool,
}

impl Greeting {
    /// What else a server that refuses would take is put into `retry`.
    fn go_on(
        &mut self,
        input: &mut BytesMut,
        out: &mut Vec<u8>,
        retry: &mut Vec<Mechanism>,
    ) -> Result<Option<Admission>, Wrong> {
        match self {
            Self::Impossible(wrong) => Err(wrong.clone()),
            Self::Client(client) => match client.receive(input, out) {
                Ok(Progress::More) => Ok(None),
                Ok(Progress::Done(done)) => {
                    Ok(Some(Admission { mechanism: done.mechanism, handles: done.handles }))
                }
                Err(error) => {
                    if let SaslError::Rejected { retry_with, .. } = &error {
                        retry.clone_from(retry_with);
                    }
                    Err(refused(&error))
                }
            },
            Self::Server(nonce, server) => {
                if let Some(expected) = nonce {
                    let Some(found) = input.first_chunk::<NONCE>() else { return Ok(None) };
                    if !same_secret(found, expected) {
                        return Err(Wrong::Authentication {
                            what: "the nonce is not the one of this address".into(),
                        });
                    }
                    input.advance(NONCE);
                    *nonce = None;
                }
                match server.receive(input, out).map_err(|error| refused(&error))? {
                    Progress::More => Ok(None),
                    Progress::Done(done) => {
                        Ok(Some(Admission { mechanism: done.mechanism, handles: done.handles }))
                    }
                }
            }
        }
    }
}

fn refused(error: &SaslError) -> Wrong {
    Wrong::Authentication { what: error.to_string() }
}

/// The words of addresses for ways to authenticate.
const WORDS: [(&str, Mechanism); 3] =
    [("external", Mechanism::External), (COOKIE, Mechanism::CookieSha1), ("anonymous", Mechanism::Anonymous)];

/// The ways to authenticate that the address names.
fn chosen(config: &Config) -> Option<Vec<Mechanism>> {
    let words = config.profile.component(TAG_AUTH)?;
    let mechanism = |word: &[u8]| WORDS.iter().find(|(held, _)| held.as_bytes() == word).map(|(_, m)| *m);
    Some(words.split(|octet| *octet == b'+').filter_map(mechanism).collect())
}

/// Ways to authenticate, as an address names them.
fn words(mechanisms: &[Mechanism]) -> Bytes {
    let named = |wanted: &Mechanism| WORDS.iter().find(|(_, held)| held == wanted).map(|(word, _)| *word);
    Bytes::from(mechanisms.iter().filter_map(named).collect::<Vec<_>>().join("+"))
}

/// A component of the address that was connected to.
fn here(config: &Config, tag: u32) -> Option<&[u8]> {
    match config.profile.endpoints.first() {
        Some(endpoint) => component_of(&config.profile, endpoint, tag),
        None => config.profile.component(tag).map(|data| &**data),
    }
}

fn nonce_of(config: &Config) -> Result<Option<[u8; NONCE]>, Wrong> {
    let Some(file) = here(config, TAG_NONCE) else { return Ok(None) };
    let wrong = |failure: Failure| Wrong::Authentication { what: failure.message().to_owned() };
    nonce::read(&String::from_utf8_lossy(file)).map(Some).map_err(wrong)
}

/// Whether the peer's user is known to the kernel at the other end.
fn is_unix(config: &Config) -> bool {
    config.peer.credentials.is_some()
        || matches!(config.profile.endpoints.first(), Some(Endpoint::Unix { .. } | Endpoint::Shm { .. }))
}

/// Only Unix sockets pass handles.
fn passes_handles(config: &Config) -> bool {
    matches!(config.profile.endpoints.first(), Some(Endpoint::Unix { .. }))
        || config.peer.text.starts_with("unix:")
}

/// The identity of this process as a server.
fn own_guid() -> Result<Guid, Wrong> {
    static GUID: OnceLock<Guid> = OnceLock::new();
    if let Some(guid) = GUID.get() {
        return Ok(*guid);
    }
    let fresh = Guid::fresh(system_random)
        .map_err(|error| Wrong::Authentication { what: format!("no randomness for an identity: {error}") })?;
    Ok(*GUID.get_or_init(|| fresh))
}

/// What protects a place, as far as its address says: which ways to authenticate it takes the server alone knows.
pub(crate) fn protection(profile: &Profile) -> String {
    let tcp = profile.endpoints.iter().any(|endpoint| matches!(endpoint.stream(), Endpoint::Tcp { .. }));
    let who = match (profile.component(TAG_BUS), tcp) {
        (Some(_), _) => "the bus authenticates who connects, and its policy says who may call",
        (None, false) => {
            "the server's own user and root may call (EXTERNAL), unless the server says otherwise"
        }
        (None, true) => "the server's own user may call (DBUS_COOKIE_SHA1), unless the server says otherwise",
    };
    if let Some(layered) = profile.endpoints.iter().find_map(Endpoint::layer) {
        return format!("{who}; {}", layered.protection());
    }
    let whom = if tcp { "; who can read the network reads the calls" } else { "" };
    format!("{who}; no encryption{whom}")
}

/// Bytes as text for people.
pub(crate) fn shown(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
