//! The greeting by itself: a nonce where the address asks for it, then authentication (specification, "Authentication Protocol").

use crate::address::{TAG_AUTH, TAG_BUS, TAG_NONCE, component_of};
use crate::nonce::{self, NONCE};
use crate::violations::ProtocolError;
use bytes::{Buf, Bytes, BytesMut};
use everywire_auth::sasl::{Client, Guid, Mechanism, Progress, SaslError, Server};
use everywire_auth::{same_secret, system_random};
use everywire_model::{Config, Endpoint, Failure, Profile};
use std::sync::OnceLock;

/// The word for DBUS_COOKIE_SHA1, in addresses and for people.
pub(crate) const COOKIE: &str = "cookie";

/// How far the greeting is. It is in one of three states from the beginning to the end; `Impossible` fails as
/// soon as it is asked to go on.
pub(crate) enum Greeting {
    /// This side connected.
    Client(Client),
    /// This side accepted: what must come first, and the rest.
    Server(Option<[u8; NONCE]>, Server),
    /// It cannot begin.
    Impossible(ProtocolError),
}

/// What both sides have agreed on.
pub(crate) struct Admission {
    /// How the client has shown who it is.
    pub(crate) mechanism: Mechanism,
    /// Whether handles may pass.
    pub(crate) handles: bool,
}

impl Greeting {
    /// Whether a client has shown who it is, and has yet to end the greeting.
    pub(crate) fn knows_client(&self) -> bool {
        matches!(self, Self::Server(_, server) if server.knows_client())
    }

    /// Takes what has come, and writes what is to be answered to `out`. What else a server that refuses would
    /// take is put into `retry`. Nothing, as long as the greeting is not over; what follows it stays in
    /// `input`.
    ///
    /// # Errors
    /// It failed: a wrong nonce, a refusal, or words that are none of the protocol.
    pub(crate) fn go_on(
        &mut self,
        input: &mut BytesMut,
        out: &mut Vec<u8>,
        retry: &mut Vec<Mechanism>,
    ) -> Result<Option<Admission>, ProtocolError> {
        match self {
            Self::Impossible(wrong) => Err(wrong.clone()),
            Self::Client(client) => {
                let progress = client.receive(input, out).map_err(|error| {
                    if let SaslError::Rejected { retry_with, .. } = &error {
                        retry.clone_from(retry_with);
                    }
                    refused(&error)
                })?;
                Ok(match progress {
                    Progress::More => None,
                    Progress::Done(done) => {
                        Some(Admission { mechanism: done.mechanism, handles: done.handles })
                    }
                })
            }
            Self::Server(nonce, server) => {
                if let Some(expected) = nonce {
                    let Some(found) = input.first_chunk::<NONCE>() else { return Ok(None) };
                    if !same_secret(found, expected) {
                        return Err(ProtocolError::Authentication {
                            what: "the nonce is not the one of this address".into(),
                        });
                    }
                    input.advance(NONCE);
                    *nonce = None;
                }
                let progress = server.receive(input, out).map_err(|error| refused(&error))?;
                Ok(match progress {
                    Progress::More => None,
                    Progress::Done(done) => {
                        Some(Admission { mechanism: done.mechanism, handles: done.handles })
                    }
                })
            }
        }
    }
}

/// A greeting that failed, in the words of this wire.
pub(crate) fn refused(error: &SaslError) -> ProtocolError {
    ProtocolError::Authentication { what: error.to_string() }
}

/// The words of addresses for ways to authenticate.
const WORDS: [(&str, Mechanism); 3] =
    [("external", Mechanism::External), (COOKIE, Mechanism::CookieSha1), ("anonymous", Mechanism::Anonymous)];

/// The ways to authenticate that the address names. Nothing, if it names none: then each side has its own
/// default.
pub(crate) fn chosen(config: &Config) -> Option<Vec<Mechanism>> {
    let words = config.profile.component(TAG_AUTH)?;
    let mechanism = |word: &[u8]| WORDS.iter().find(|(held, _)| held.as_bytes() == word).map(|(_, m)| *m);
    Some(words.split(|octet| *octet == b'+').filter_map(mechanism).collect())
}

/// Ways to authenticate, as an address names them.
pub(crate) fn words(mechanisms: &[Mechanism]) -> Bytes {
    let named = |wanted: &Mechanism| WORDS.iter().find(|(_, held)| held == wanted).map(|(word, _)| *word);
    Bytes::from(mechanisms.iter().filter_map(named).collect::<Vec<_>>().join("+"))
}

/// A component of the address that was connected to, which is the first endpoint; or of the profile, where it
/// has no endpoint.
pub(crate) fn here(config: &Config, tag: u32) -> Option<&[u8]> {
    match config.profile.endpoints.first() {
        Some(endpoint) => component_of(&config.profile, endpoint, tag),
        None => config.profile.component(tag).map(|data| &**data),
    }
}

/// The nonce that this address asks for, read from its file; nothing, if it asks for none.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn nonce_of(config: &Config) -> Result<Option<[u8; NONCE]>, ProtocolError> {
    let Some(file) = here(config, TAG_NONCE) else { return Ok(None) };
    let wrong = |failure: Failure| ProtocolError::Authentication { what: failure.message().to_owned() };
    nonce::read(&String::from_utf8_lossy(file)).map(Some).map_err(wrong)
}

/// The identity of this process as a server: made when it is first needed, the same for all its listeners,
/// gone with it.
pub(crate) fn own_guid() -> Result<Guid, ProtocolError> {
    static GUID: OnceLock<Guid> = OnceLock::new();
    if let Some(guid) = GUID.get() {
        return Ok(*guid);
    }
    let fresh = Guid::fresh(system_random).map_err(|error| ProtocolError::Authentication {
        what: format!("no randomness for an identity: {error}"),
    })?;
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
