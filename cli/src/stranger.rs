//! Who answers where another wire was expected: what [`everywire::stranger`] finds, told with what went wrong.

pub(crate) use everywire::stranger::{Answer, Detection, ForeignProtocol, ProbeTime, Stream, connect, text};

use crate::cli_error::{CliError, REFUSED, UNREACHABLE, VIOLATION};
use everywire::model::{Endpoint, Profile, Reference, Wire, units};
use everywire::wires::ALL;
use everywire::{Kind, stranger};
use std::time::Duration;

/// The environment variable that says how long a server may take for each answer that tells who it is (`2s`).
const PROBE_TIME: &str = "EVERYWIRE_PROBE_TIME";

/// Adds to a failure which protocol answers where the object was looked for, if it is another one's.
/// That takes further connections to the peer, so it is done only for failures that may come from the
/// connection itself.
pub(crate) fn named(trouble: Box<CliError>, reference: &Reference) -> Box<CliError> {
    if trouble.lacks_advice()
        && let Some(hint) = where_to_look(&trouble, reference)
    {
        return trouble.hint(hint);
    }
    if !trouble.is_of_connection() {
        return trouble;
    }
    // Whose deadline is over does not wait for long once more.
    let is_late = trouble.kind() == Kind::TimedOut.word();
    let usual = if is_late { ProbeTime::BRIEF } else { ProbeTime::USUAL };
    match stranger::diagnosis(reference, ALL, probe_time(usual)) {
        None => trouble,
        // What was said at first tells more than the silence after it.
        Some(told) if told.is_silence && matches!(trouble.exit(), REFUSED | VIOLATION) => trouble,
        Some(told) => {
            let trouble = trouble.adding(told.found).hint(told.hint);
            if told.is_wrong_wire { trouble.as_kind(UNREACHABLE, Kind::WrongWire.word()) } else { trouble }
        }
    }
}

/// What to do where there is no object of that key, or no bus: with the address put in, so that it can be pasted.
fn where_to_look(trouble: &CliError, reference: &Reference) -> Option<String> {
    let profile = reference.profiles.first()?;
    let wire = everywire::wires::named(profile.wire)?;
    if trouble.kind() == Kind::Unreachable.word() {
        let address = wire.print_friendly(reference);
        // The bus answered, in its own words: it is there, and somebody else is not.
        return match (trouble.has_code(), address.split('/').next()) {
            (true, Some(bus @ ("dbus:session" | "dbus:system"))) => {
                Some(format!("is the service running? `everywire list {bus}` tells who is on the bus"))
            }
            _ => bus(&address).map(str::to_owned),
        };
    }
    if trouble.kind() != Kind::NoObject.word() {
        return None;
    }
    let place = Profile { key: Default::default(), ..profile.clone() };
    let place = wire.print_friendly(&Reference { profiles: vec![place], ..Reference::default() });
    let quote = if place.contains(['?', '&', ';', '#']) { "'" } else { "" };
    let list = format!(
        "`everywire list {quote}{place}{quote}` tells which objects there are, if anybody keeps a list"
    );
    Some(match profile.key.is_empty() {
        true => format!("the address names no object; {list}"),
        false => format!("is this the object's key? {list}"),
    })
}

/// What to do where a bus of D-Bus does not answer, if that is its address.
pub(crate) fn bus(address: &str) -> Option<&'static str> {
    match address.split(['/', '?']).next()? {
        "dbus:session" => Some(
            "is there a session bus? A desktop session has one; elsewhere `dbus-run-session bash` gives you a shell with one",
        ),
        "dbus:system" => Some("is the system bus running? Containers mostly have none"),
        _ => None,
    }
}

/// Which protocol is spoken at an endpoint: that of the wire that is expected is tried first.
pub(crate) fn who(expected: Option<&'static dyn Wire>, endpoint: &Endpoint) -> Detection {
    stranger::who(ALL, expected, endpoint, probe_time(ProbeTime::USUAL))
}

/// How long servers are waited for that are asked who they are: as usual, or as [`PROBE_TIME`] says. What is no time there counts as not
/// said: an error about that would stand in the place of the one that people look into.
fn probe_time(usual: ProbeTime) -> ProbeTime {
    time_said().map_or(usual, |each| usual.with_each(each))
}

/// The time that the user gives a server for an answer that nobody asked for with a call.
pub(crate) fn time_said() -> Option<Duration> {
    std::env::var(PROBE_TIME).ok().and_then(|text| units::time(&text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire::{Failure, Initiator};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// How long a test waits at the most; it ends with an event.
    const LONG: std::time::Duration = std::time::Duration::from_secs(120);

    #[test]
    fn a_bus_that_answers_is_there() {
        let wire = ALL.iter().find(|wire| wire.schemes().contains(&"dbus")).unwrap();
        let reference = wire.parse("dbus:session/org.example.Lamp/lamp").unwrap();
        let failure = Failure::new(Kind::Unreachable, Initiator::Peer, "the name was not provided");
        let hint =
            |failure: &Failure| where_to_look(&CliError::failure("the call", failure), &reference).unwrap();
        assert!(hint(&failure).contains("is there a session bus?"));
        let told = hint(&failure.with_code("org.freedesktop.DBus.Error.ServiceUnknown"));
        assert_eq!(told, "is the service running? `everywire list dbus:session` tells who is on the bus");
    }

    /// Who is busy takes connections, and closes them without a word: that says less than its refusal did.
    #[test]
    fn a_refusal_is_told_without_the_silence_after_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("iiop://{}/Account", listener.local_addr().unwrap());
        std::thread::spawn(move || listener.incoming().for_each(drop));
        let wire = ALL.iter().find(|wire| wire.schemes().contains(&"iiop")).unwrap();
        let reference = wire.parse(&address).unwrap();
        for (kind, is_told) in [(Kind::TimedOut, true), (Kind::Busy, false), (Kind::LimitExceeded, false)] {
            let failure = Failure::new(kind, Initiator::Peer, "it did not work");
            let told = named(CliError::failure("the call", &failure), &reference).why();
            let ended = "connections are taken there, and each ends without an answer";
            assert_eq!(told.contains(ended), is_told, "{told}");
        }
    }

    /// A server that is silent is waited for once: no connection ends before all greetings were sent.
    #[test]
    fn greetings_do_not_wait_for_each_other() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap();
        let (host, port) = (place.ip().to_string(), place.port());
        let endpoint = Endpoint::Tcp { host: host.as_str().into(), port };
        let greetings: usize = ALL.iter().map(|wire| wire.greetings().len()).sum();
        let silent = std::thread::spawn(move || {
            // And those of TLS and OPC UA.
            let all = listener.incoming().take(greetings + 2).map(|stream| {
                let (mut stream, mut begun) = (stream.unwrap(), [0]);
                stream.read_exact(&mut begun).unwrap();
                (stream, begun)
            });
            let all: Vec<(TcpStream, [u8; 1])> = all.collect();
            let is_open = |mut stream: &TcpStream| {
                stream.set_nonblocking(true).unwrap();
                let mut rest = [0; 4096];
                std::iter::repeat_with(|| stream.read(&mut rest))
                    .find(|read| !matches!(read, Ok(1..)))
                    .unwrap()
            };
            let open = all.iter().filter(|(stream, _)| is_open(stream).is_err()).count();
            let (asks, _) = all.iter().find(|(_, begun)| begun == b"H").unwrap();
            (&*asks).write_all(b"ACKF").unwrap();
            open
        });
        let time = ProbeTime::new(LONG, std::time::Duration::from_millis(1));
        let Detection::Other(known, _) = stranger::who(ALL, None, &endpoint, time) else {
            panic!("nobody was met")
        };
        assert_eq!(known.protocol, "OPC UA");
        assert_eq!(silent.join().unwrap(), greetings + 2);
    }

    /// A reset may be there before the look at how connecting went: the server was there all the same.
    #[test]
    fn a_server_that_resets_each_connection_takes_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // Connections inherit it: with no time to linger in, they are reset.
        rustix::net::sockopt::set_socket_linger(&listener, Some(std::time::Duration::ZERO)).unwrap();
        let address = format!("dcom://{}/Account?level=none", listener.local_addr().unwrap());
        std::thread::spawn(move || listener.incoming().for_each(drop));
        let wire = ALL.iter().find(|wire| wire.schemes().contains(&"dcom")).unwrap();
        let reference = wire.parse(&address).unwrap();
        let failure = Failure::new(Kind::Unreachable, Initiator::Peer, "it did not work");
        for _ in 0..50 {
            let told = named(CliError::failure("the call", &failure), &reference).why();
            assert!(told.contains("each ends without an answer"), "{told}");
        }
    }
}
