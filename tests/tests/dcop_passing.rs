//! The captured programs of KDE 3.5 on both sides of a broker: what the client said, and what the application answered, is said again
//! byte by byte at two servers, and a route without a contract stands between them.
//!
//! Free are: what belongs to a connection (cookies, keys of calls, whose name a call is from), two bytes of each header that mean
//! nothing, and that a late answer, which the application announces, comes to the client as an answer.

use crate::common::dcopserver::DcopServer;
use everywire_broker::{Broker, Config};
use everywire_tests::peers::root;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// The cookie of the capture.
const COOKIE: [u8; 16] =
    [0x65, 0xe1, 0x7f, 0x6c, 0xd6, 0x07, 0xde, 0xf5, 0xd5, 0x4f, 0x12, 0x86, 0xc0, 0xb0, 0xe1, 0x0c];
const SEND: u8 = 1;
const REPLY: u8 = 3;

/// One message of the capture.
struct Step {
    /// Whose connection it is on.
    client: String,
    from_client: bool,
    title: String,
    raw: Vec<u8>,
}

fn steps() -> Vec<Step> {
    let file = root().join("wires/dcop/tests/data/session.txt");
    let mut steps: Vec<Step> = Vec::new();
    for line in fs::read_to_string(file).unwrap().lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with(' ') {
            let digits: String = line.split_whitespace().collect();
            let octets = (0..digits.len()).step_by(2);
            let octets = octets.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap());
            steps.last_mut().unwrap().raw.extend(octets);
            continue;
        }
        let (way, title) = line.split_once(' ').unwrap();
        let (from, to) = way.split_once("->").unwrap();
        let client = if to == "S" { from } else { to };
        steps.push(Step {
            client: client.into(),
            from_client: to == "S",
            title: title.into(),
            raw: Vec::new(),
        });
    }
    steps
}

/// A message of DCOP as it came.
struct Message {
    kind: u8,
    key: [u8; 4],
    payload: Vec<u8>,
}

impl Message {
    fn of(raw: &[u8]) -> Self {
        let key = *raw[8..].first_chunk().unwrap();
        let length = u32::from_le_bytes(*raw[4..].first_chunk().unwrap()) as usize;
        Self { kind: raw[1], key, payload: raw[12..12 + length].to_vec() }
    }

    /// Its first text, and what follows.
    fn first(payload: &[u8]) -> (&[u8], &[u8]) {
        let length = u32::from_be_bytes(*payload.first_chunk().unwrap()) as usize;
        payload.split_at(4 + length)
    }

    /// Who sent it, and what follows the names of sender and receiver.
    fn parts(&self) -> (&[u8], &[u8]) {
        let (from, rest) = Self::first(&self.payload);
        (from, Self::first(rest).1)
    }

    fn read(stream: &mut UnixStream) -> Self {
        let mut raw = vec![0; 12];
        stream.read_exact(&mut raw).expect("a message");
        let length = u32::from_le_bytes(*raw[4..].first_chunk().unwrap()) as usize;
        raw.resize(12 + length, 0);
        stream.read_exact(&mut raw[12..]).expect("the rest of a message");
        Self::of(&raw)
    }
}

/// Connects as this client of the capture, up to its name.
fn admitted(server: &DcopServer, client: &str) -> UnixStream {
    let mut stream = server.connect();
    let cookie = server.cookie("ICE");
    for step in steps().iter().filter(|step| step.client == client).take(14) {
        let mut raw = step.raw.clone();
        if step.from_client {
            if let Some(at) = raw.windows(16).position(|window| window == COOKIE) {
                raw[at..at + 16].copy_from_slice(&cookie);
            }
            stream.write_all(&raw).expect("sent");
        } else {
            let mut got = vec![0; raw.len()];
            stream.read_exact(&mut got).expect("an answer");
            assert_eq!(got[..2], raw[..2], "{}", step.title);
        }
    }
    stream
}

/// Answers as the captured application did, and tells what was called.
fn application(server: &DcopServer) -> Receiver<String> {
    let (tell, told) = channel();
    let mut stream = admitted(server, "C1");
    let mut turns: Vec<(Step, Vec<Step>)> = Vec::new();
    for step in steps().into_iter().filter(|step| step.client == "C1").skip(14) {
        match turns.last_mut() {
            Some((_, answers)) if step.from_client => answers.push(step),
            _ => turns.push((step, Vec::new())),
        }
    }
    thread::spawn(move || {
        for (asked, answers) in turns {
            let came = Message::read(&mut stream);
            let captured = Message::of(&asked.raw);
            assert_eq!((came.kind, came.parts().1), (captured.kind, captured.parts().1), "{}", asked.title);
            for answer in answers {
                let own = Message::of(&answer.raw);
                let (from, rest) = own.parts();
                let payload = [from, came.parts().0, rest].concat();
                let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
                let raw = [&answer.raw[..4], &length, &came.key, &payload].concat();
                stream.write_all(&raw).expect("sent");
            }
            if tell.send(asked.title).is_err() {
                return;
            }
        }
    });
    told
}

#[test]
fn the_captured_programs_of_kde_call_each_other_through_a_broker() {
    let near = DcopServer::start("dcop-captured-near", &[]);
    let far = DcopServer::start("dcop-captured-far", &[]);
    let called = application(&far);
    let text = format!(
        "[listen.near]\naddress = \"{}\"\n[[route]]\nname = \"bench\"\nto = \"{}\"\n",
        near.at("benchserver"),
        far.at("benchserver"),
    );
    let config = Config::parse(&text, "broker.toml", &root()).unwrap_or_else(|wrong| panic!("{wrong}"));
    let _broker = Broker::start(config, Arc::new(|_: &str| ())).unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut client = admitted(&near, "C2");
    let mut asked: Option<Step> = None;
    let (mut sent, mut answered) = (0, 0);
    for step in steps().into_iter().filter(|step| step.client == "C2").skip(14) {
        if step.from_client {
            // What the server itself answers, and signals, do not pass.
            let passes = step.title.contains("to='benchserver'") || step.title.contains("to='nosuchapp'");
            asked = passes.then_some(step);
            let Some(step) = &asked else { continue };
            client.write_all(&step.raw).expect("sent");
            sent += 1;
            if step.title.starts_with("DCOPSend") {
                break;
            }
            continue;
        }
        let Some(question) = &asked else { continue };
        if step.title.starts_with("DCOPReplyWait") {
            continue;
        }
        let (came, captured) = (Message::read(&mut client), Message::of(&step.raw));
        assert_eq!(came.key, captured.key, "{}", question.title);
        if step.title.starts_with("DCOPReplyDelayed") {
            let (_, numbered) = captured.parts();
            assert_eq!((came.kind, came.parts().1), (REPLY, &numbered[4..]), "{}", question.title);
        } else {
            assert_eq!((came.kind, came.payload), (captured.kind, captured.payload), "{}", question.title);
        }
        answered += 1;
    }
    assert!(sent == answered + 1 && answered > 20, "{sent} sent, {answered} answered");
    // The last one wants no answer.
    let last = called.iter().take(sent - 1).last().expect("it came");
    assert!(last.starts_with("DCOPSend") && asked.is_some_and(|step| step.raw[1] == SEND), "{last}");
}
