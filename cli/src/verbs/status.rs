//! `everywire status`: is something there, which protocol it speaks, how long it takes, and whose
//! program it is.
//!
//! What is asked is asked in order: a connection; the greeting of each protocol, that of the address
//! first, each on a connection of its own; whose program listens, where this machine can tell; and
//! whether the object is there, if the address names one. Nothing is called.
//!
//! Invariants: what was found out is printed also where it ends in a failure (`with_value`). An object
//! is asked for only if the protocol that answers is that of the address. An answer in another protocol
//! than the address says is a failure with the scheme to use.

mod owner;

use crate::cli_error::{CliError, Done};
use crate::output::{Envelope, Style, line, tinted, visible};
use crate::stranger::{self, Answer, Detection, ForeignProtocol};
use crate::{complete, opcda, target};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use everywire::model::units::{self, Deadline};
use everywire::model::{Endpoint, Wire};
use everywire::{Failure, Initiator, Kind, Node, Object};
use serde_json::{Value as Json, json};
use std::time::{Duration, Instant};

const EXAMPLES: &str = include_str!("../../help/status.txt");

/// The port of DCE/RPC's endpoint mapper, where addresses name none.
const MAPPER: u16 = 135;

/// Tell what answers at an address: which protocol, how fast, and whose program it is.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// An address or a reference in any form, or HOST:PORT, or the path of a socket.
    #[arg(add = ArgValueCompleter::new(complete::addresses))]
    address: String,
    /// How long to wait for a connection, and for the object.
    #[arg(long, value_name = "TIME", value_parser = units::deadline, default_value = "5s")]
    deadline: Deadline,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Asks.
pub(crate) fn run(arguments: &Arguments, style: Style) -> Done {
    let node = Node::from(Node::builder().deadline(arguments.deadline.0).shards(1).build());
    let text = target::text(&arguments.address)?;
    let AddressTarget { endpoint, wire, object } = located(&node, &text)?;
    let what = || format!("cannot tell what is at `{}`", arguments.address);
    let patience = arguments.deadline.0.unwrap_or(Duration::from_secs(60));
    let begun = Instant::now();
    let stream = stranger::connect(&endpoint, patience).map_err(|error| {
        let failure = Failure::new(Kind::Unreachable, Initiator::Here, error.to_string()).at(&endpoint);
        CliError::failure(what(), &failure)
    })?;
    let connected = begun.elapsed();
    let owner = owner::of(&stream, &endpoint);
    drop(stream);
    let met = stranger::who(wire, &endpoint);
    let ends = matches!(met, Detection::Ended);
    let (answer, other) = match met {
        Detection::Wire(answer) => (Some(answer), None),
        Detection::Other(known, octets) => (None, Some((known, octets))),
        Detection::Ended | Detection::Silent => (None, None),
    };
    let fits = wire.is_none_or(|wire| answer.as_ref().is_none_or(|answer| answer.wire.name() == wire.name()));
    let probe = object.filter(|_| fits).map(|object| {
        let begun = Instant::now();
        (object.target().probe(), begun.elapsed())
    });
    let told =
        StatusReport { endpoint: &endpoint, connected, owner, answer: &answer, other: &other, probe: &probe };
    let mut envelope = Envelope::of(told.json());
    envelope.peer = Some(endpoint.to_string());
    envelope.wire = answer.as_ref().map(|answer| answer.wire.name()).or_else(|| wire.map(Wire::name));
    envelope.elapsed = answer.as_ref().map(|answer| answer.elapsed);
    if !arguments.json {
        told.print(style);
    }
    let trouble = match (&answer, &probe) {
        (Some(answer), _) if !fits => {
            let violation = format!("{} answers there", answer.greeting.protocol);
            let trouble =
                CliError::failure(what(), &Failure::new(Kind::Violation, Initiator::Peer, violation));
            Some(trouble.hint(format!("use an address that begins with {}", answer.greeting.schemes)))
        }
        // What cannot be asked for is no answer either way.
        (_, Some((Err(failure), _))) if failure.kind() != Kind::Unsupported => {
            Some(CliError::failure("the object does not answer", failure))
        }
        (None, Some((Ok(()), _))) | (Some(_), _) => None,
        (None, _) if other.is_some() => {
            let (name, hint) =
                other.as_ref().map(|(known, _)| (known.protocol, known.hint)).unwrap_or_default();
            let violation = format!("{name} answers there, which is no wire's");
            let trouble =
                CliError::failure(what(), &Failure::new(Kind::Violation, Initiator::Peer, violation));
            Some(trouble.hint(if hint.is_empty() { "look at host and port again" } else { hint }))
        }
        (None, _) if ends => {
            let ended = "it takes connections, and ends each without an answer";
            let trouble = CliError::failure(what(), &Failure::new(Kind::Unreachable, Initiator::Peer, ended));
            Some(trouble.hint(
                "is the server behind a proxy or a forwarded port down, or does it let nobody in from here?",
            ))
        }
        (None, _) => {
            let silent = "it takes connections, and answers no protocol that is known here in the clear";
            let trouble = CliError::failure(what(), &Failure::new(Kind::Violation, Initiator::Peer, silent));
            Some(trouble.hint("does it want TLS, or somebody else's protocol?"))
        }
    };
    match trouble {
        None if arguments.json => envelope.print(),
        None => {}
        Some(trouble) => return Err(trouble.with_value(envelope.value)),
    }
    Ok(())
}

/// What an address leads to, before anybody is asked.
struct AddressTarget {
    endpoint: Endpoint,
    /// The wire that it says.
    wire: Option<&'static dyn Wire>,
    /// The object that it names.
    object: Option<Object>,
}

/// Understands an address: one without a scheme, one of OPC, or one of a wire.
fn located(node: &Node, text: &str) -> Done<AddressTarget> {
    if let Some(endpoint) = plain(text) {
        return Ok(AddressTarget { endpoint, wire: None, object: None });
    }
    if opcda::is_meant(text) {
        let endpoint = opcda::host(text)?;
        return Ok(AddressTarget { endpoint, wire: everywire::wires::named("dcom"), object: None });
    }
    let object = node
        .object(text)
        .map_err(|failure| CliError::failure(format!("`{text}` is no address"), &failure))?;
    let profile = object.reference().profiles.first().cloned().unwrap_or_default();
    let wire = everywire::wires::named(profile.wire);
    let endpoint =
        profile.endpoints.first().cloned().ok_or_else(|| {
            CliError::usage(format!("`{text}` leads nowhere"), "it has no address of a server")
        })?;
    Ok(AddressTarget { endpoint, wire, object: Some(object).filter(|_| !profile.key.is_empty()) })
}

/// An address without a scheme: `HOST:PORT`, a path, or `@` and an abstract name.
fn plain(text: &str) -> Option<Endpoint> {
    if text.starts_with('/') || text.starts_with('@') {
        return Some(Endpoint::Unix { path: text.to_owned() });
    }
    let (host, port) = text.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = port.parse().ok()?;
    let is_host = !host.is_empty() && !host.contains(['/', '@', '#', '?', ',']);
    is_host.then(|| Endpoint::Tcp { host: host.to_owned(), port })
}

/// The host and port of `opcda://` addresses; without a port that of the endpoint mapper.
pub(crate) fn of_host(place: &str) -> Endpoint {
    let place = place.rsplit('@').next().unwrap_or(place);
    match plain(place) {
        Some(endpoint) => endpoint,
        None => Endpoint::Tcp { host: place.to_owned(), port: MAPPER },
    }
}

/// What was found out, for both forms of printing.
struct StatusReport<'t> {
    endpoint: &'t Endpoint,
    /// How long the connection took.
    connected: Duration,
    owner: Option<owner::Owner>,
    answer: &'t Option<Answer>,
    /// A protocol that is no wire's, and how its answer began.
    other: &'t Option<(&'static ForeignProtocol, Vec<u8>)>,
    /// Whether the object answers, and after how long; none if it was not asked.
    probe: &'t Option<(Result<(), Failure>, Duration)>,
}

impl StatusReport<'_> {
    /// What the peer said of itself in its greeting.
    fn said(&self) -> Vec<String> {
        match (self.answer, self.other) {
            (Some(answer), _) => answer.said(),
            (None, Some((_, octets))) => stranger::text(octets).unwrap_or_default(),
            (None, None) => Vec::new(),
        }
    }

    /// How the object answered, for people.
    fn object(&self) -> Option<String> {
        self.probe.as_ref().map(|(answer, elapsed)| match answer {
            Ok(()) => format!("answers, after {elapsed:.1?}"),
            Err(failure) if failure.kind() == Kind::Unsupported => {
                "cannot be asked on this wire without a call".into()
            }
            Err(failure) => format!("does not answer: {failure}"),
        })
    }

    fn print(&self, style: Style) {
        let row =
            |what: &str, text: &str| line(&format!("{:<10} {}", tinted(what, "2", style.out), visible(text)));
        row("endpoint", &self.endpoint.to_string());
        row("connected", &format!("after {:.1?}", self.connected));
        if let Some(answer) = self.answer {
            row("protocol", &format!("{}, answered after {:.1?}", answer.greeting.protocol, answer.elapsed));
        }
        if let Some((known, _)) = self.other {
            row("protocol", known.protocol);
        }
        self.said().iter().for_each(|said| row("says", said));
        if let Some(owner) = &self.owner {
            row("program", &owner.to_string());
        }
        if let Some(object) = self.object() {
            row("object", &object);
        }
    }

    fn json(&self) -> Json {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        json!({
            "endpoint": self.endpoint.to_string(),
            "connected_us": micros(self.connected),
            "protocol": match (self.answer, self.other) {
                (Some(answer), _) => Some(answer.greeting.protocol),
                (None, other) => other.as_ref().map(|(known, _)| known.protocol),
            },
            "wire": self.answer.as_ref().map(|answer| answer.wire.name()),
            "answered_us": self.answer.as_ref().map(|answer| micros(answer.elapsed)),
            "says": self.said(),
            "program": self.owner.as_ref().map(owner::Owner::json),
            "object": self.probe.as_ref().map(|(answer, elapsed)| json!({
                "answers": match answer {
                    Ok(()) => Json::from(true),
                    Err(failure) if failure.kind() == Kind::Unsupported => Json::Null,
                    Err(_) => Json::from(false),
                },
                "elapsed_us": micros(*elapsed),
            })),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_a_host_and_a_port_or_a_socket() {
        let tcp = |host: &str, port| Some(Endpoint::Tcp { host: host.into(), port });
        assert_eq!(plain("localhost:2809"), tcp("localhost", 2809));
        assert_eq!(plain("[::1]:135"), tcp("::1", 135));
        assert_eq!(plain("/run/app.sock"), Some(Endpoint::Unix { path: "/run/app.sock".into() }));
        for other in ["iiop://h:2809", "dbus:session", "h:x", "corbaloc::h:1/x", "dcop:bank"] {
            assert_eq!(plain(other), None, "{other}");
        }
        assert_eq!(Some(of_host("ada@h:4135")), tcp("h", 4135));
        assert_eq!(Some(of_host("h")), tcp("h", MAPPER));
    }
}
