//! Asking who answers at an endpoint comes to an end, whatever becomes of a question.

use crate::plain::{LONG, Plain};
use everywire_model::wire::Greeting;
use everywire_model::{Endpoint, Sniff, Wire};
use everywire_runtime::stranger::{Detection, ProbeTime, who};
use std::io::Write;
use std::net::TcpListener;
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

/// Who answers at a server that says something nobody knows.
fn met(wires: Vec<&'static dyn Wire>) -> Detection {
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
    let time = ProbeTime::new(Duration::from_millis(100), Duration::from_millis(5));
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(who(&wires, None, &endpoint, time)));
    told.recv_timeout(LONG).expect("it comes to an end")
}

#[test]
fn a_question_that_panics_is_one_without_an_answer() {
    assert!(matches!(met(vec![&PANICS]), Detection::Silent));
}

#[test]
fn a_question_that_never_ends_is_given_up() {
    assert!(matches!(met(vec![&HANGS]), Detection::Silent));
}

#[test]
fn those_that_end_are_heard_all_the_same() {
    let found = met(vec![&PANICS, &HANGS, &KNOWS]);
    assert!(matches!(found, Detection::Wire(answer) if answer.wire.name() == "plainknows"));
}
