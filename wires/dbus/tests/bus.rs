//! Real buses: whatever of dbus-daemon is installed lets us in, gives us a name, routes calls and signals.
#![allow(clippy::unwrap_used)]

use crate::common;
use crate::common::{EXAMPLE, SIGNALS, operation};
use bytes::BytesMut;
use everywire_dbus::DBUS;
use everywire_model::{
    Answer, BindAddress, Call, Config, Emission, Endpoint, Event, Expects, Failure, Handle, Initiator, Kind,
    MarshalList, Method, Outcome, PeerAddress, Purpose, Session, SignalFilter, Sink, Topic, Wire,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A bus of its own, which ends with the test.
struct Daemon(Child, String);

impl Daemon {
    /// Nothing, said and counted, where there is no such program.
    fn start() -> Option<Self> {
        if !everywire_peers::here("a bus of its own", &["dbus-daemon"]) {
            return None;
        }
        let folder = std::env::temp_dir();
        let address = format!("--address=unix:dir={}", folder.display());
        let mut child = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--nopidfile", "--print-address", &address])
            .stdout(Stdio::piped())
            .spawn()
            .expect("dbus-daemon is installed");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Some(Self(child, line.trim().to_owned()))
    }

    /// The text of a reference to somebody on it.
    fn on(&self, object: &str) -> String {
        format!("dbus:{}#{object}", self.1)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A session on a real socket.
struct Member {
    session: Box<dyn Session>,
    stream: UnixStream,
    input: BytesMut,
}

impl Member {
    fn join(text: &str, purpose: Purpose) -> Self {
        let profile = match purpose {
            Purpose::Serving => match DBUS.listen(text).unwrap() {
                BindAddress::Join(profile) => profile,
                place => panic!("{place:?}"),
            },
            _ => DBUS.parse(text).unwrap().profiles.remove(0),
        };
        let Endpoint::Unix { path } = &profile.endpoints[0] else { panic!("{profile:?}") };
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        let config = Config { profile, purpose, peer: PeerAddress::default(), ..Config::default() };
        Self { session: DBUS.connect(&config), stream, input: BytesMut::new() }
    }

    fn flush(&mut self) {
        let said = self.session.transmit().to_vec();
        self.session.transmit().consume(said.len());
        self.stream.write_all(&said).unwrap();
    }

    fn next(&mut self) -> Result<Event, everywire_model::Violation> {
        let mut handles: Vec<Handle> = Vec::new();
        loop {
            self.flush();
            if let Some(event) = self.session.poll() {
                return Ok(event);
            }
            let mut room = [0; 4096];
            let read = self.stream.read(&mut room).expect("the bus says something");
            assert!(read > 0, "the bus closed the connection");
            self.input.extend_from_slice(&room[..read]);
            self.session.receive(Instant::now(), &mut self.input, &mut handles)?;
        }
    }

    fn ready(mut self) -> Self {
        match self.next() {
            Ok(Event::Ready(_)) => self,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_name_is_owned_called_listened_to_and_lost() {
    let Some(bus) = Daemon::start() else { return };
    let place = bus.on("org.example.Served");
    let mut server = Member::join(&place, Purpose::Serving).ready();
    let mut client = Member::join(&bus.on("org.example.Served/a/b"), Purpose::Calls).ready();
    let profile = DBUS.parse(&bus.on("org.example.Served/a/b")).unwrap().profiles.remove(0);

    let filter = SignalFilter { interface: Some(&EXAMPLE), signal: Some(&SIGNALS[0]) };
    let id = client.session.subscribe(Instant::now(), &profile, filter).unwrap();
    assert!(
        matches!(client.next().unwrap(), Event::Reply { id: back, outcome: Outcome::Done(_) } if back == id)
    );

    let echo = operation("Echo");
    for round in 0..3 {
        let text = format!("round {round}");
        let arguments = |sink: &mut dyn Sink| (text.as_str(),).marshal_list(&echo.arguments, sink);
        let call = Call {
            profile: &profile,
            method: Method::Typed { interface: Some(&EXAMPLE), operation: echo },
            arguments: &arguments,
            expects: Expects::Reply,
        };
        client.session.start(Instant::now(), &call).unwrap();
        client.flush();
        let Event::Call(incoming) = server.next().unwrap() else { panic!() };
        assert!(incoming.sender.starts_with(b":1.") && incoming.key == "a/b");
        let (heard,): (String,) = incoming.body.decode(&echo.arguments).unwrap();
        let results = |sink: &mut dyn Sink| (heard.as_str(),).marshal_list(&echo.results, sink);
        server.session.answer(incoming.id, Answer::Done(&results)).unwrap();
        let emission = Emission {
            key: b"a/b",
            topic: Topic::Typed { interface: &EXAMPLE, signal: &SIGNALS[0] },
            arguments: &results,
        };
        server.session.emit(Instant::now(), &emission).unwrap();
        server.flush();
        let Event::Reply { outcome: Outcome::Done(body), .. } = client.next().unwrap() else { panic!() };
        assert_eq!(body.decode::<(String,)>(&echo.results).unwrap().0, text);
        match client.next().unwrap() {
            Event::Signal { subscriptions, heard } => {
                assert_eq!(subscriptions, [id]);
                assert!(heard.sender.starts_with(b":1."));
            }
            other => panic!("{other:?}"),
        }
    }
    // Somebody else may not have the name, and learns who does.
    let mut second = Member::join(&place, Purpose::Serving);
    let violation = second.next().unwrap_err();
    assert!(violation.message.contains("belongs to :1."), "{violation}");
    // Somebody who is ready to wait gets it when it is free, and the client learns of the loss.
    let mut heir = Member::join(&format!("{}?queue", bus.on("org.example.Served")), Purpose::Serving).ready();
    server.session.close();
    drop(server);
    let arguments = |sink: &mut dyn Sink| ("x",).marshal_list(&echo.arguments, sink);
    let failure = Failure::new(Kind::Refused, Initiator::Peer, "not me");
    let call = Call {
        profile: &profile,
        method: Method::Typed { interface: None, operation: echo },
        arguments: &arguments,
        expects: Expects::Reply,
    };
    client.session.start(Instant::now(), &call).unwrap();
    client.flush();
    let Event::Call(incoming) = heir.next().unwrap() else { panic!() };
    heir.session.answer(incoming.id, Answer::Failed(&failure)).unwrap();
    heir.flush();
    match client.next().unwrap() {
        Event::Reply { outcome: Outcome::Failed(failure), .. } => assert_eq!(failure.kind(), Kind::Refused),
        other => panic!("{other:?}"),
    }
    drop(heir);
    assert!(matches!(client.next().unwrap(), Event::Lost { subscription, .. } if subscription == id));
}

#[test]
fn a_monitor_overhears_what_others_say() {
    let Some(bus) = Daemon::start() else { return };
    let mut monitor = Member::join(&format!("dbus:{}#", bus.1), Purpose::Monitoring).ready();
    let _other = Member::join(&format!("dbus:{}#", bus.1), Purpose::Calls).ready();
    let mut heard = Vec::new();
    while !heard.iter().any(|line: &String| line.contains("Hello")) {
        let Event::Overheard(message) = monitor.next().unwrap() else { panic!() };
        let listing = DBUS.explain(&message);
        heard.push(listing.messages[0].summary.clone());
    }
}

#[test]
fn nobody_there_is_told_by_the_bus() {
    let Some(bus) = Daemon::start() else { return };
    let profile = DBUS.parse(&bus.on("org.example.Nobody/a")).unwrap().profiles.remove(0);
    let mut client = Member::join(&bus.on("org.example.Nobody/a"), Purpose::Calls).ready();
    let operation = operation("Ping");
    let call = Call {
        profile: &profile,
        method: Method::Typed { interface: Some(&EXAMPLE), operation },
        arguments: common::nothing(),
        expects: Expects::Reply,
    };
    client.session.start(Instant::now(), &call).unwrap();
    match client.next().unwrap() {
        Event::Reply { outcome: Outcome::Failed(failure), .. } => {
            assert_eq!(failure.code(), Some("org.freedesktop.DBus.Error.ServiceUnknown"));
            assert_eq!(failure.kind(), Kind::Unreachable);
        }
        other => panic!("{other:?}"),
    }
}
