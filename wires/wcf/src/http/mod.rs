//! The HTTP bindings: Basic (SOAP 1.1), WS (SOAP 1.2 with WS-Addressing), SOAP 1.2 alone, binary XML over HTTP, and packages (MTOM).
//!
//! HTTP itself is a layer (`everywire_http`): it takes and gives whole requests and responses, and bounds what a peer
//! may do. Here are the sessions that turn them into calls and back, `accepting` and `connecting`; `content`,
//! `multipart` and `compression` say what a message is written in, `statuses` what it means that none came.
//!
//! A connection carries one request at a time. A client's session has at most one request in flight
//! (`Connecting`), a service's answers one before it looks at the next (`Accepting`), whatever was sent
//! ahead. TLS is a layer below both, made of `everywire_tls`.

mod accepting;
mod compression;
mod connecting;
mod content;
mod multipart;
mod statuses;

pub use accepting::Accepting;
pub use connecting::{Connecting, GET};
pub use multipart::{MAX_PART_HEADERS, MAX_PARTS};

use crate::limits::too_large;
use crate::settings::{Binding, Security, Settings};
use crate::soap::Dialect;
use everywire_http::ProtocolError;
use everywire_model::layered::{MakeSession, PeerIdentity};
use everywire_model::{Config, Failure, Session, Violation};
use everywire_tls::{Channel, HandshakeTerms, TlsSession};
use http::HeaderName;
use std::time::Duration;

const SOAP_ACTION: HeaderName = HeaderName::from_static("soapaction");

/// The connecting side of a connection, over TLS where the address says so.
pub(crate) fn connecting(config: &Config) -> Box<dyn Session> {
    let settings = Settings::of(&config.profile);
    if settings.transport_security != Security::Tls {
        return Box::new(Connecting::new(config));
    }
    let config = config.clone();
    let make = move |proof: &PeerIdentity| Box::new(Connecting::over(&config, proof.authentication)) as _;
    secured(settings.tls_channel(), settings.quotas.open_timeout, Box::new(make))
}

/// The accepting side of a connection, over TLS where the place says so.
pub(crate) fn accepting(config: &Config) -> Box<dyn Session> {
    let settings = Settings::of(&config.profile);
    if settings.transport_security != Security::Tls {
        return Box::new(Accepting::new(config));
    }
    let config = config.clone();
    let make = move |proof: &PeerIdentity| Box::new(Accepting::over(&config, Some(proof))) as _;
    secured(settings.tls_server_channel(), settings.quotas.channel_initialization_timeout, Box::new(make))
}

fn secured(channel: Result<Channel, Failure>, within: Duration, make: MakeSession) -> Box<dyn Session> {
    Box::new(TlsSession::new(channel, HandshakeTerms { within: Some(within), one_at_a_time: true }, make))
}

/// How messages of a binding are written.
fn dialect(settings: &Settings) -> Dialect {
    match settings.binding {
        Binding::Basic => Dialect::BASIC,
        Binding::Ws => Dialect::WS,
        Binding::Soap12 => Dialect::SOAP_12,
        Binding::BinaryHttp | Binding::NetTcp => Dialect::BINARY,
    }
}

/// A breach of HTTP as this wire names it; a message that is too large has WCF's sentence.
#[cold]
fn violation(breach: ProtocolError, offset: u64) -> Violation {
    let violation = Violation { wire: "wcf", ..breach.violation(offset) };
    match breach {
        ProtocolError::OverLimit { limit } => Violation { message: too_large(limit), ..violation },
        _ => violation,
    }
}

/// An envelope that breaks its connection.
#[cold]
fn broken_envelope(why: &Failure, offset: u64) -> Violation {
    let message = format!("the envelope is broken: {why}");
    Violation { wire: "wcf", name: "Envelope", message, offset }
}
