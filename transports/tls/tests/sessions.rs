//! Sessions of a wire over TLS, tied together without a network.

use crate::papers::Papers;
use bytes::BytesMut;
use everywire_model::layered::{self, MakeSession, PeerIdentity};
use everywire_model::*;
use everywire_tls::{Channel, HandshakeTerms, TLS, TlsSession};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A wire without any protocol: what comes is kept, and `start` sends the key of its profile.
struct Plain {
    heard: Arc<Mutex<Vec<u8>>>,
    events: VecDeque<Event>,
    out: SendBuffer,
    /// Bytes that had not left this session when its connection ended.
    unsent: Arc<Mutex<Option<usize>>>,
}

/// What a test sees of a [`Plain`].
#[derive(Clone, Default)]
struct Seen {
    heard: Arc<Mutex<Vec<u8>>>,
    unsent: Arc<Mutex<Option<usize>>>,
    proof: Arc<Mutex<Option<PeerIdentity>>>,
}

impl Seen {
    fn make(&self) -> MakeSession {
        let seen = self.clone();
        Box::new(move |proof: &PeerIdentity| {
            *seen.proof.lock().unwrap() = Some(proof.clone());
            Box::new(Plain {
                heard: seen.heard,
                events: VecDeque::from([Event::Ready(Peer::admitted(PeerAddress::default(), "none"))]),
                out: SendBuffer::new(),
                unsent: seen.unsent,
            })
        })
    }

    fn heard(&self) -> Vec<u8> {
        self.heard.lock().unwrap().clone()
    }
}

impl Session for Plain {
    fn receive(&mut self, _: Instant, input: &mut BytesMut, _: &mut Vec<Handle>) -> Result<(), Violation> {
        self.heard.lock().unwrap().extend_from_slice(&input.split());
        Ok(())
    }
    fn wanted(&self) -> usize {
        0
    }
    fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
    fn transmit(&mut self) -> &mut SendBuffer {
        &mut self.out
    }
    fn start(&mut self, _: Instant, call: &Call<'_>) -> Result<CallId, Failure> {
        self.out.flat().extend_from_slice(&call.profile.key);
        Ok(CallId(1))
    }
    fn probe(&mut self, _: Instant, _: &Profile) -> Result<CallId, Failure> {
        Ok(CallId(2))
    }
    fn answer(&mut self, _: CallId, _: Answer<'_>) -> Result<(), Failure> {
        Ok(())
    }
    fn cancel(&mut self, _: CallId) {}
    fn close(&mut self) {
        self.out.flat().extend_from_slice(b"bye");
    }
    fn disconnected(&mut self, _: &Failure) {
        *self.unsent.lock().unwrap() = Some(self.out.len());
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn expire(&mut self, _: Instant) -> Result<(), Violation> {
        Ok(())
    }
    fn outstanding(&self) -> usize {
        0
    }
}

fn say(session: &mut dyn Session, words: &[u8]) -> Result<CallId, Failure> {
    let profile = Profile { key: Bytes::copy_from_slice(words), ..Profile::default() };
    let method = Method::Named { interface: b"", operation: b"" };
    let call = Call { profile: &profile, method, arguments: &visit::Nothing, expects: Expects::Nothing };
    session.start(Instant::now(), &call)
}

/// What a session sends now.
fn sent(session: &mut dyn Session) -> Vec<u8> {
    let bytes = session.transmit().to_vec();
    session.transmit().consume(bytes.len());
    bytes
}

fn send(session: &mut dyn Session, bytes: &[u8]) -> Result<(), Violation> {
    session.receive(Instant::now(), &mut BytesMut::from(bytes), &mut Vec::new())
}

/// Carries bytes both ways until neither has anything to say.
fn carry(client: &mut dyn Session, server: &mut dyn Session) -> Result<(), Violation> {
    loop {
        let (there, back) = (sent(client), sent(server));
        if there.is_empty() && back.is_empty() {
            return Ok(());
        }
        send(server, &there)?;
        send(client, &back)?;
    }
}

fn ready(session: &mut dyn Session) -> Option<Peer> {
    match session.poll() {
        Some(Event::Ready(peer)) => Some(peer),
        _ => None,
    }
}

/// Both sides, as the addresses say.
fn pair(client: &str, server: &str) -> (Box<dyn Session>, Box<dyn Session>, Seen, Seen) {
    let layered = |options: &str| {
        let over = Endpoint::Tcp { host: "localhost".into(), port: 1 };
        Endpoint::layered(layered::TLS, LayerOptions::parse(options).unwrap(), over)
    };
    let (at_client, at_server) = (Seen::default(), Seen::default());
    let calling = TLS.connecting(layered(client).layer().unwrap()).unwrap();
    let serving = TLS.listening(layered(server).layer().unwrap()).unwrap();
    let client = calling.session(at_client.make()).unwrap();
    let server = serving.session(at_server.make()).unwrap();
    (client, server, at_client, at_server)
}

#[test]
fn ready_comes_after_the_handshake_and_names_the_peer() {
    let papers = Papers::new();
    let file = |name: &str| papers.path(name).display().to_string();
    let (mut client, mut server, at_client, at_server) = pair(
        &format!("ca={}&cert={}&key={}", file("ca.pem"), file("client.pem"), file("client.key")),
        &format!("cert={}&key={}&clients={}", file("server.pem"), file("server.key"), file("ca.pem")),
    );
    assert!(ready(&mut *client).is_none() && ready(&mut *server).is_none());
    let early = say(&mut *client, b"too early").unwrap_err();
    assert_eq!((early.kind(), early.completed()), (Kind::Unreachable, Completed::No), "{early}");
    carry(&mut *client, &mut *server).unwrap();
    let (there, here) = (ready(&mut *client).unwrap(), ready(&mut *server).unwrap());
    assert_eq!((there.account.as_deref(), there.authentication), (Some("localhost"), "TLS certificate"));
    assert!(here.account.as_deref().unwrap().starts_with("thumbprint "), "{here}");
    assert_eq!(here.authentication, "TLS client certificate");
    let proof = at_server.proof.lock().unwrap().clone().unwrap();
    assert_eq!((proof.account, proof.authentication), (here.account, here.authentication));
    say(&mut *client, b"words").unwrap();
    carry(&mut *client, &mut *server).unwrap();
    assert_eq!((at_server.heard(), at_client.heard()), (b"words".to_vec(), vec![]));
    // The goodbye of the wire goes first, then that of TLS; what comes behind that is nobody's.
    client.close();
    carry(&mut *client, &mut *server).unwrap();
    assert_eq!(at_server.heard(), b"wordsbye");
}

#[test]
fn what_has_not_left_this_side_stays_with_the_session_above() {
    let papers = Papers::new();
    let file = |name: &str| papers.path(name).display().to_string();
    let (ca, cert, key) = (file("ca.pem"), file("server.pem"), file("server.key"));
    let whole = {
        let (mut client, mut server, ..) = pair(&format!("ca={ca}"), &format!("cert={cert}&key={key}"));
        carry(&mut *client, &mut *server).unwrap();
        say(&mut *client, b"a request").unwrap();
        client.transmit().len()
    };
    // Half of it, all but a byte, all of it.
    for (taken, unsent) in [(whole / 2, 9), (whole - 1, 9), (whole, 0)] {
        let (mut client, mut server, seen, _) = pair(&format!("ca={ca}"), &format!("cert={cert}&key={key}"));
        carry(&mut *client, &mut *server).unwrap();
        say(&mut *client, b"a request").unwrap();
        client.transmit().consume(taken);
        if taken == whole {
            assert!(client.transmit().is_empty());
        }
        client.disconnected(&Failure::new(Kind::Unreachable, Initiator::Peer, "gone"));
        assert_eq!(*seen.unsent.lock().unwrap(), Some(unsent), "{taken} of {whole}");
    }
}

/// What is not encrypted yet waits as well: quotas count it.
#[test]
fn all_that_waits_counts_as_unsent() {
    let papers = Papers::new();
    let file = |name: &str| papers.path(name).display().to_string();
    let (ca, cert, key) = (file("ca.pem"), file("server.pem"), file("server.key"));
    let (mut client, mut server, ..) = pair(&format!("ca={ca}"), &format!("cert={cert}&key={key}"));
    carry(&mut *client, &mut *server).unwrap();
    assert_eq!(client.unsent(), 0);
    say(&mut *client, &[1; 1000]).unwrap();
    let first = client.unsent();
    assert!((1000..1100).contains(&first), "{first}");
    for more in 1..4 {
        say(&mut *client, &[2; 1000]).unwrap();
        assert_eq!(client.unsent(), first + more * 1000);
    }
    client.transmit().consume(first - 1);
    assert_eq!(client.unsent(), 1 + 3000);
    assert_eq!(sent(&mut *client).len(), 1);
    assert!((3000..3200).contains(&client.unsent()));
    sent(&mut *client);
    assert_eq!(client.unsent(), 0);
}

#[test]
fn more_is_encrypted_when_the_first_has_left() {
    let papers = Papers::new();
    let file = |name: &str| papers.path(name).display().to_string();
    let (mut client, mut server, _, seen) = pair(
        &format!("ca={}", file("ca.pem")),
        &format!("cert={}&key={}", file("server.pem"), file("server.key")),
    );
    carry(&mut *client, &mut *server).unwrap();
    let mut all = Vec::new();
    for round in 0..5_usize {
        let words = vec![b'a' + u8::try_from(round).unwrap(); 100_000 * round + 1];
        all.extend_from_slice(&words);
        say(&mut *client, &words).unwrap();
        // A piece of it goes before the next words come.
        let some: Vec<u8> = client.transmit().to_vec().into_iter().take(70_000).collect();
        client.transmit().consume(some.len());
        send(&mut *server, &some).unwrap();
    }
    carry(&mut *client, &mut *server).unwrap();
    assert!(seen.heard() == all, "{} of {} bytes", seen.heard().len(), all.len());
}

#[test]
fn another_protocol_is_told_apart_on_both_sides() {
    let papers = Papers::new();
    let file = |name: &str| papers.path(name).display().to_string();
    let sides = || {
        pair(
            &format!("ca={}", file("ca.pem")),
            &format!("cert={}&key={}", file("server.pem"), file("server.key")),
        )
    };
    for words in
        [&b"GIOP\x01\x02\x01\0"[..], b"GET / HTTP/1.1\r\n\r\n", b"\0AUTH EXTERNAL\r\n", &[0x16, 1, 2, 3]]
    {
        let (mut client, mut server, ..) = sides();
        for (session, hint) in [(&mut server, "with TLS"), (&mut client, "without TLS")] {
            let violation = send(&mut **session, words).unwrap_err();
            assert_eq!((violation.wire, violation.name), ("tls", "NotTls"), "{violation}");
            assert!(violation.message.contains(&words[..4].escape_ascii().to_string()), "{violation}");
            let failure = session.refusal().unwrap();
            assert_eq!(failure.kind(), Kind::Violation);
            assert!(failure.hint().unwrap().contains(hint), "{failure:?}");
            // It is told so in the words of TLS, behind what the client said before.
            assert!(sent(&mut **session).ends_with(&[0x15, 3, 3, 0, 2, 2, 10]));
        }
    }
}

#[test]
fn who_is_not_trusted_is_refused_by_name() {
    let papers = Papers::new();
    let file = |name: &str| papers.path(name).display().to_string();
    let server = format!("cert={}&key={}&clients={}", file("server.pem"), file("server.key"), file("ca.pem"));
    // A client that knows another authority; and one that shows no certificate.
    let (mut client, mut serving, ..) = pair(&format!("ca={}", file("own.pem")), &server);
    let violation = carry(&mut *client, &mut *serving).unwrap_err();
    assert_eq!((violation.name, client.refusal().unwrap().kind()), ("Refused", Kind::Refused));
    let (mut client, mut serving, _, seen) = pair(&format!("ca={}", file("ca.pem")), &server);
    let violation = carry(&mut *client, &mut *serving).unwrap_err();
    assert_eq!(violation.name, "Refused", "{violation}");
    assert!(ready(&mut *serving).is_none() && seen.proof.lock().unwrap().is_none());
}

#[test]
fn a_handshake_that_stalls_ends_in_time() {
    let papers = Papers::new();
    let terms = HandshakeTerms { within: Some(Duration::from_secs(10)), one_at_a_time: true };
    let mut server =
        TlsSession::new(Channel::server(&papers.server("server")), terms, Seen::default().make());
    assert!(server.one_at_a_time());
    let deadline = server.deadline().unwrap();
    // It says a little, and that is no reason to wait longer.
    send(&mut server, &[0x16]).unwrap();
    server.expire(deadline - Duration::from_millis(1)).unwrap();
    assert_eq!(server.deadline(), Some(deadline));
    let violation = server.expire(deadline).unwrap_err();
    assert_eq!((violation.wire, violation.name), ("tls", "Slow"), "{violation}");
}

#[test]
fn a_channel_that_cannot_begin_ends_its_session_at_once() {
    let why = Failure::new(Kind::Internal, Initiator::Here, "no certificate");
    let mut session = TlsSession::new(Err(why), HandshakeTerms::default(), Seen::default().make());
    assert!(session.transmit().is_empty() && session.poll().is_none());
    assert!(say(&mut session, b"x").unwrap_err().message().contains("no certificate"));
    assert!(session.deadline().is_some());
    assert!(session.expire(Instant::now()).is_err());
    assert!(send(&mut session, b"x").is_err());
}

/// What a peer does not read counts as held, whether it is encrypted already or not, until it has left.
#[test]
fn bytes_of_the_session_above_count_until_they_have_left() {
    let papers = Papers::new();
    let file = |name: &str| papers.path(name).display().to_string();
    let (mut client, mut server, seen, _) = pair(
        &format!("ca={}", file("ca.pem")),
        &format!("cert={}&key={}", file("server.pem"), file("server.key")),
    );
    carry(&mut *client, &mut *server).unwrap();
    for times in 1..=3 {
        say(&mut *server, &[7; 100_000]).unwrap();
        server.transmit();
        assert!(server.held() >= times * 100_000, "{times}: {}", server.held());
    }
    // The first has left.
    let first = sent(&mut *server);
    assert!((200_000..300_000).contains(&server.held()), "{}", server.held());
    send(&mut *client, &first).unwrap();
    carry(&mut *client, &mut *server).unwrap();
    assert_eq!((server.held(), seen.heard().len()), (0, 300_000));
}

#[test]
fn a_handshake_without_end_is_cut_short() {
    let papers = Papers::new();
    let mut server = TlsSession::new(
        Channel::server(&papers.server("server")),
        HandshakeTerms::default(),
        Seen::default().make(),
    );
    // A ClientHello of 16 MiB, in records as large as they may be.
    let mut record = vec![0x16, 3, 1, 0x40, 0];
    record.resize(5 + 0x4000, 0);
    record[5..9].copy_from_slice(&[1, 0xff, 0xff, 0xff]);
    let mut said = 0;
    let violation = loop {
        said += record.len();
        assert!(said < 2 << 20, "it listens without end");
        if let Err(violation) = send(&mut server, &record) {
            break violation;
        }
        assert!(server.held() <= 512 << 10, "it holds {}", server.held());
        record[5..9].fill(0);
    };
    assert!(["Record", "OverLimit"].contains(&violation.name), "{violation}");
}

#[test]
fn records_that_tls_forbids_end_it() {
    let papers = Papers::new();
    let file = |name: &str| papers.path(name).display().to_string();
    // Larger than a record may be; of a kind that is none; empty; plain words of the wire.
    let large = [&[0x17, 3, 3, 0xff, 0xff][..], &[0; 0xffff]].concat();
    for record in [&large[..], &[0x63, 3, 3, 0, 1, 0], &[0x17, 3, 3, 0, 0], b"GIOP\x01\x02\x01\0\0\0\0\0"] {
        let (mut client, mut server, _, seen) = pair(
            &format!("ca={}", file("ca.pem")),
            &format!("cert={}&key={}", file("server.pem"), file("server.key")),
        );
        carry(&mut *client, &mut *server).unwrap();
        let violation = send(&mut *server, record).unwrap_err();
        assert_eq!((violation.wire, violation.name), ("tls", "Record"), "{violation}");
        assert!(seen.heard().is_empty());
    }
}

#[test]
fn options_that_say_nothing_here_are_refused() {
    let papers = Papers::new();
    let file = |name: &str| papers.path(name).display().to_string();
    let layered = |options: String| {
        let over = Endpoint::Tcp { host: "localhost".into(), port: 1 };
        let Endpoint::Layered(layered) =
            Endpoint::layered(layered::TLS, LayerOptions::parse(&options).unwrap(), over)
        else {
            panic!("a layer")
        };
        *layered
    };
    for (options, word) in [
        (format!("clients={}", file("ca.pem")), "clients"),
        ("ca=/nowhere".into(), "cannot be read"),
        ("insecure=yes".into(), "insecure=on"),
        (format!("ca={}&identity=not a name", file("ca.pem")), "no name"),
    ] {
        let made =
            TLS.connecting(&layered(options.clone())).and_then(|side| side.session(Seen::default().make()));
        let failure = made.err().unwrap_or_else(|| panic!("{options}"));
        assert!(failure.message().contains(word), "{options}: {failure}");
    }
    for (options, word) in [
        ("".into(), "cert="),
        (format!("cert={}&ca={}", file("server.pem"), file("ca.pem")), "`ca=`"),
        (format!("cert={}&key={}", file("server.pem"), file("own.key")), "cannot be used"),
    ] {
        let failure = TLS.listening(&layered(options)).err().unwrap();
        assert!(failure.message().contains(word), "{failure}");
    }
}
