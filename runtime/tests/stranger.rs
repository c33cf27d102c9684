//! Asking who answers at an endpoint comes to an end, whatever becomes of a question.

use crate::plain::{LONG, Plain};
use everywire_model::wire::Greeting;
use everywire_model::{Endpoint, Sniff, Wire};
use everywire_runtime::stranger::{Detection, ProbeTime, who};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A protocol whose answers are looked at by this.
const fn greeting(answers: fn(&[u8]) -> Sniff) -> Greeting {
    Greeting { protocol: "plain", schemes: "plain://", octets: b"who?", answers }
}

/// Whoever looks at the answer panics, or never comes back.
static PANICS: Plain =
    Plain { greets: &[greeting(|_| panic!("the probe of a test"))], ..Plain::of(&["plainpanics"]) };
static HANGS: Plain = Plain {
    greets: &[greeting(|_| {
        loop {
            std::thread::park();
        }
    })],
    ..Plain::of(&["plainhangs"])
};
static KNOWS: Plain = Plain { greets: &[greeting(|_| Sniff::Yes)], ..Plain::of(&["plainknows"]) };

/// How long an answer may take that nobody waits for in earnest.
const SOON: Duration = Duration::from_millis(100);

/// Who answers at a server that says something nobody knows.
fn met(wires: Vec<&'static dyn Wire>, each: Duration) -> Detection {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = Endpoint::Tcp { host: "127.0.0.1".into(), port: listener.local_addr().unwrap().port() };
    // It ends with the test's process.
    std::thread::spawn(move || {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.write_all(b"\x01what?");
            open.push(stream);
        }
    });
    let time = ProbeTime::new(each, Duration::from_millis(5));
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(who(&wires, None, &endpoint, time)));
    told.recv_timeout(LONG).expect("it comes to an end")
}

#[test]
fn a_question_that_panics_is_one_without_an_answer() {
    assert!(matches!(met(vec![&PANICS], SOON), Detection::Silent));
}

#[test]
fn a_question_that_never_ends_is_given_up() {
    assert!(matches!(met(vec![&HANGS], SOON), Detection::Silent));
}

#[test]
fn those_that_end_are_heard_all_the_same() {
    let found = met(vec![&PANICS, &HANGS, &KNOWS], LONG);
    assert!(matches!(found, Detection::Wire(answer) if answer.wire.name() == "plainknows"));
}

/// A server of two protocols, whose answer in the one that is expected comes behind that in the other.
#[test]
fn the_protocol_that_is_expected_is_waited_for_when_another_has_answered() {
    const fn other(octets: &'static [u8], answers: fn(&[u8]) -> Sniff) -> Greeting {
        Greeting { octets, ..greeting(answers) }
    }
    const OWN: &[Greeting] =
        &[other(b"own?", |octets| if octets == b"own!" { Sniff::Yes } else { Sniff::More })];
    const OTHER: &[Greeting] =
        &[other(b"not?", |octets| if octets == b"not!" { Sniff::Yes } else { Sniff::More })];
    static EXPECTED: Plain = Plain { greets: OWN, ..Plain::of(&["plainexpected"]) };
    static BESIDE: Plain = Plain { greets: OTHER, ..Plain::of(&["plainbeside"]) };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = Endpoint::Tcp { host: "127.0.0.1".into(), port: listener.local_addr().unwrap().port() };
    let server = std::thread::spawn(move || {
        let mut asked = asked_for(&listener, [b"own?", b"not?"]);
        asked.sort_by_key(|(greeting, _)| greeting == b"own?");
        for (greeting, mut stream) in asked {
            stream.write_all(&[&greeting[..3], b"!"].concat()).unwrap();
            // Whoever asked has heard it, and may have gone.
            let _ = stream.read(&mut [0]);
        }
    });
    let time = ProbeTime::new(LONG, Duration::from_millis(1));
    let found = match who(&[&BESIDE, &EXPECTED], Some(&EXPECTED), &endpoint, time) {
        Detection::Wire(answer) => answer.wire.name(),
        Detection::Other(known, _) => known.protocol,
        Detection::Ended => "nobody, who ends each connection",
        Detection::Silent => "nobody, who is silent",
    };
    assert_eq!(found, "plainexpected");
    server.join().unwrap();
}

/// The connections of a server that is asked for both protocols, each with its greeting. It may be asked for others, too, and closes those.
fn asked_for(listener: &TcpListener, greetings: [&[u8; 4]; 2]) -> Vec<([u8; 4], TcpStream)> {
    let mut asked = Vec::new();
    while asked.len() < 2 {
        let (mut stream, _) = listener.accept().unwrap();
        let mut greeting = [0; 4];
        if stream.read_exact(&mut greeting).is_ok() && greetings.contains(&&greeting) {
            asked.push((greeting, stream));
        }
    }
    asked
}

/// A server that refuses HTTP in HTTP's words, as those of net.tcp do, and whose answer in its own protocol comes behind that.
#[test]
fn a_refusal_in_http_does_not_hide_the_protocol_of_the_server() {
    const OWN: Greeting = Greeting {
        octets: b"own?",
        ..greeting(|octets| if octets == b"own!" { Sniff::Yes } else { Sniff::More })
    };
    const HTTP: Greeting = Greeting {
        protocol: "HTTP",
        octets: b"GET ",
        ..greeting(|octets| if octets.len() < 12 { Sniff::More } else { Sniff::Yes })
    };
    static BOTH: Plain = Plain { greets: &[OWN, HTTP], ..Plain::of(&["plainboth"]) };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = Endpoint::Tcp { host: "127.0.0.1".into(), port: listener.local_addr().unwrap().port() };
    let server = std::thread::spawn(move || {
        let mut asked = asked_for(&listener, [b"own?", b"GET "]);
        drop(listener);
        asked.sort_by_key(|(greeting, _)| greeting == OWN.octets);
        let answers = [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"own!"];
        for ((_, mut stream), answer) in asked.into_iter().zip(answers) {
            stream.write_all(answer).unwrap();
            // Whoever asked has heard it, and goes.
            let _ = stream.read(&mut [0]);
        }
    });
    let time = ProbeTime::new(LONG, Duration::from_millis(1));
    let found = match who(&[&BOTH], None, &endpoint, time) {
        Detection::Wire(answer) => answer.greeting.octets,
        Detection::Other(known, _) => known.octets,
        Detection::Ended | Detection::Silent => b"",
    };
    assert_eq!(found, OWN.octets);
    server.join().unwrap();
}
