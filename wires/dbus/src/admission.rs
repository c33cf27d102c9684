//! How a connection begins: the ways to authenticate that it offers or takes, and what follows when the peer
//! lets this side in.
//!
//! A session is made in the stage `Greeting`. Both sides drive a SASL state machine of `everywire_auth`; this
//! file chooses its options by what is known of the connection (a Unix socket, a certificate, the address)
//! and takes its result. If the greeting cannot even begin (a nonce file that cannot be read, no randomness),
//! it is `Impossible`: the session gives up at the first time check, and the caller learns why.
//!
//! After it: without a bus the connection is open; with one it says `Hello` and is `Joining`. The whole of it
//! has a time limit (`limits::GREETING`, `limits::WELCOME`), since a peer that says nothing must not hold a
//! place.

use crate::address::{TAG_AUTH, TAG_GUID};
use crate::greeting::{Admission, COOKIE, Greeting, chosen, here, nonce_of, own_guid, refused, words};
use crate::limits;
use crate::session::{Bus, DbusSession, Stage};
use crate::violations::ProtocolError;
use bytes::BytesMut;
use everywire_auth::sasl::{Client, ClientOptions, Guid, Mechanism, Server, ServerOptions};
use everywire_model::{Config, Endpoint, Violation};
use std::time::{Duration, Instant};

impl DbusSession {
    /// The connecting side. It says as much as it can at once: with EXTERNAL the answer of the server is
    /// known, so authentication and `Hello` go out in one write without an answer between them.
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
            Ok(Greeting::Client(client))
        });
        let possible = begun.is_ok();
        let mut session = Self::begun(config, begun, false);
        session.bus = Bus::of(config);
        if config.peer.credentials.is_some() {
            session.authentication = "unix credentials";
        }
        if possible {
            session.out.flat().extend_from_slice(&first);
        }
        if pipelined && possible && session.bus.is_some() {
            session.say_hello();
        }
        session
    }

    /// The accepting side: it waits for the client's first words. Unless the place says otherwise, one way to
    /// authenticate is taken: the kernel's word for a Unix socket, the certificate that TLS has asked for,
    /// else the cookie.
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
        Self::begun(config, begun, true)
    }

    /// A session that greets, and the time by which that must be over: none if it cannot begin, so that whoever asks for the time learns
    /// so at once, for nothing will come from the peer.
    fn begun(config: &Config, greeting: Result<Greeting, ProtocolError>, accepted: bool) -> Self {
        let time = match (&greeting, accepted) {
            (Err(_), _) => Duration::ZERO,
            (Ok(_), true) => limits::GREETING,
            (Ok(_), false) => limits::WELCOME,
        };
        let greeting = greeting.unwrap_or_else(Greeting::Impossible);
        let mut session = Self::new(config, Stage::Greeting(Box::new(greeting)));
        session.accepted = accepted;
        // The only use of a clock here: the session begins before anybody tells it the time.
        session.ready_by.allow(Instant::now(), time);
        session
    }

    /// Takes the greeting off the input; whether it is over. When the server refuses all ways but names
    /// others, the way to try next is kept for `Session::again`.
    ///
    /// What came may have lain unread for long, where this side was busy, and then the client can say its next word only after
    /// its time. So the time begins anew when something is read after it is over, since a client that had said nothing by then
    /// would have been ended; and when the client is told that it is known. Each happens once only: a client can say something
    /// again and again.
    ///
    /// # Errors
    /// Authentication failed; the connection ends.
    pub(crate) fn greet(&mut self, now: Instant, input: &mut BytesMut) -> Result<bool, Violation> {
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
        let Some(Admission { mechanism, handles }) = done else {
            let (late, knows) = (self.ready_by.late(now).is_some(), greeting.knows_client());
            let heard_late = late && !std::mem::replace(&mut self.heard_late, true);
            if heard_late || (knows && !std::mem::replace(&mut self.known, true)) {
                self.ready_by.stop();
                self.ready_by.allow(now, limits::GREETING);
            }
            return Ok(false);
        };
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
            // With a pipelined greeting `Hello` has gone out already.
            if self.waiting.is_empty() {
                self.say_hello();
            }
        }
        Ok(true)
    }
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
