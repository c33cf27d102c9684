//! TLS: both sides against each other, and each against OpenSSL.

use crate::papers::{Papers, chmod};
use bytes::BytesMut;
use everywire_model::{Failure, Kind, SendBuffer};
use everywire_tls::{Channel, ClientSettings, ServerSettings};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Both sides until neither has anything to say; what each understood.
fn meet(client: &mut Channel, server: &mut Channel) -> Result<(Vec<u8>, Vec<u8>), Failure> {
    pass(client, server, b"", b"")
}

fn pass(
    client: &mut Channel,
    server: &mut Channel,
    from_client: &[u8],
    from_server: &[u8],
) -> Result<(Vec<u8>, Vec<u8>), Failure> {
    let (mut up, mut down) = (SendBuffer::new(), SendBuffer::new());
    up.flat().extend_from_slice(from_client);
    down.flat().extend_from_slice(from_server);
    let (mut at_server, mut at_client) = (BytesMut::new(), BytesMut::new());
    loop {
        let (mut there, mut back) = (SendBuffer::new(), SendBuffer::new());
        client.send(&mut up, &mut there)?;
        server.send(&mut down, &mut back)?;
        if there.is_empty() && back.is_empty() {
            return Ok((at_client.to_vec(), at_server.to_vec()));
        }
        let at_once = server.receive(&mut BytesMut::from(&*there.to_vec()), &mut at_server);
        client.receive(&mut BytesMut::from(&*back.to_vec()), &mut at_client)?;
        if let Err(failure) = at_once {
            // What the server says last reaches the client.
            let mut last = SendBuffer::new();
            server.send(&mut SendBuffer::new(), &mut last)?;
            client.receive(&mut BytesMut::from(&*last.to_vec()), &mut at_client)?;
            return Err(failure);
        }
    }
}

#[test]
fn bytes_pass_both_ways() {
    let papers = Papers::new();
    let mut client = Channel::client(&papers.client("ca.pem"), "localhost", "localhost").unwrap();
    let mut server = Channel::server(&papers.server("server")).unwrap();
    let large: Vec<u8> = (0..1_000_003_u32).map(|n| ((n * 31) >> 3) as u8).collect();
    let (at_client, at_server) = pass(&mut client, &mut server, &large, b"and back").unwrap();
    assert!(at_server == large && at_client == b"and back");
    assert_eq!(client.peer_identity(), Some("localhost"));
    assert_eq!((server.peer_identity(), server.authentication()), (None, "TLS, client unknown"));
    assert!(client.is_established() && server.is_established());
}

#[test]
fn nothing_goes_before_the_handshake_is_over() {
    let papers = Papers::new();
    let mut client = Channel::client(&papers.client("ca.pem"), "localhost", "").unwrap();
    let (mut plain, mut out) = (SendBuffer::new(), SendBuffer::new());
    plain.flat().extend_from_slice(b"a secret");
    client.send(&mut plain, &mut out).unwrap();
    assert!(!client.is_established() && plain.len() == 8 && !out.is_empty());
    assert!(!out.to_vec().windows(8).any(|window| window == b"a secret"));
}

#[test]
fn names_and_authorities_are_checked() {
    let papers = Papers::new();
    let meet_as = |ca: &str, name: &str, server: &str| {
        let mut client = Channel::client(&papers.client(ca), name, name).unwrap();
        meet(&mut client, &mut Channel::server(&papers.server(server)).unwrap()).map(|_| ())
    };
    meet_as("ca.pem", "127.0.0.1", "server").unwrap();
    for (ca, name, server, said) in [
        ("ca.pem", "elsewhere.test", "server", "another name"),
        ("ca.pem", "127.0.0.2", "server", "another name"),
        ("own.pem", "localhost", "server", "vouches"),
        ("ca.pem", "localhost", "own", "vouches"),
        ("own.pem", "elsewhere.test", "own", "another name"),
    ] {
        let failure = meet_as(ca, name, server).unwrap_err();
        assert_eq!(failure.kind(), Kind::Refused, "{failure}");
        assert!(failure.message().contains(said) && failure.hint().is_some(), "{name}: {failure}");
    }
    // A certificate that signs itself is known by sight.
    meet_as("own.pem", "localhost", "own").unwrap();
    // And nothing is checked by whoever wants it so.
    let mut client = Channel::client(&ClientSettings::insecure(None).unwrap(), "elsewhere.test", "").unwrap();
    meet(&mut client, &mut Channel::server(&papers.server("own")).unwrap()).unwrap();
    assert_eq!((client.peer_identity(), client.authentication()), (None, "TLS, certificate not checked"));
}

#[test]
fn a_key_without_its_certificate_proves_nothing() {
    let papers = Papers::new();
    let (cert, key) = (papers.path("server.pem"), papers.path("own.key"));
    assert!(ServerSettings::new(&cert, &key, None).is_err());
    // The last word of an insecure client: the server must have the key all the same (checked by the handshake's signature).
    chmod(&key, 0o644);
    let failure = ServerSettings::new(&papers.path("own.pem"), &key, None).err().unwrap();
    assert_eq!(failure.kind(), Kind::Refused, "{failure}");
    for (file, what) in [("nothing.pem", "no such file"), ("server.ext", "no certificate")] {
        assert!(ClientSettings::new(Some(&papers.path(file)), None).is_err(), "{what}");
    }
}

#[test]
fn clients_show_certificates_where_they_are_asked_to() {
    let papers = Papers::new();
    let (cert, key, ca) = (papers.path("server.pem"), papers.path("server.key"), papers.path("ca.pem"));
    let asking = ServerSettings::new(&cert, &key, Some(&ca)).unwrap();
    let (own, own_key) = (papers.path("client.pem"), papers.path("client.key"));
    let known = ClientSettings::new(Some(&ca), Some((&own, &own_key))).unwrap();
    let mut client = Channel::client(&known, "localhost", "").unwrap();
    let mut server = Channel::server(&asking).unwrap();
    meet(&mut client, &mut server).unwrap();
    assert!(server.peer_identity().unwrap().starts_with("thumbprint "));
    assert_eq!(server.authentication(), "TLS client certificate");

    let mut nobody = Channel::client(&papers.client("ca.pem"), "localhost", "").unwrap();
    let mut server = Channel::server(&asking).unwrap();
    let failure = meet(&mut nobody, &mut server).unwrap_err();
    assert_eq!(failure.kind(), Kind::Refused, "{failure}");
    assert!(!server.is_established());
}

#[test]
fn clients_whose_certificate_nobody_signed_are_known_by_sight() {
    let papers = Papers::new();
    let (cert, key) = (papers.path("server.pem"), papers.path("server.key"));
    let (own, own_key) = (papers.path("own.pem"), papers.path("own.key"));
    let known = ClientSettings::new(Some(&papers.path("ca.pem")), Some((&own, &own_key))).unwrap();
    for (clients, taken) in [("own.pem", true), ("ca.pem", false)] {
        let asking = ServerSettings::new(&cert, &key, Some(&papers.path(clients))).unwrap();
        let mut client = Channel::client(&known, "localhost", "").unwrap();
        let mut server = Channel::server(&asking).unwrap();
        assert_eq!(meet(&mut client, &mut server).is_ok(), taken, "clients={clients}");
        assert_eq!(server.is_established(), taken, "clients={clients}");
    }
}

#[test]
fn hostile_bytes_end_it() {
    let papers = Papers::new();
    let settings = papers.server("server");
    let plain = b"\x0c\x06\x03abc".as_slice();
    for bytes in
        [plain, b"GET / HTTP/1.1\r\n\r\n", &[0x16, 3, 1, 0xff, 0xff], &[0x16; 300], &[0x17, 3, 3, 0, 1, 0]]
    {
        let mut server = Channel::server(&settings).unwrap();
        let mut said = BytesMut::new();
        let told = server.receive(&mut BytesMut::from(bytes), &mut said);
        assert!(said.is_empty() && !server.is_established());
        if told.is_err() {
            assert!(server.receive(&mut BytesMut::from(bytes), &mut said).is_err(), "it stays failed");
        }
    }
    // A changed byte of a record ends it, and nothing of the record is heard.
    let mut client = Channel::client(&papers.client("ca.pem"), "localhost", "").unwrap();
    let mut server = Channel::server(&settings).unwrap();
    meet(&mut client, &mut server).unwrap();
    let (mut plain, mut out) = (SendBuffer::new(), SendBuffer::new());
    plain.flat().extend_from_slice(b"words");
    client.send(&mut plain, &mut out).unwrap();
    let mut changed = out.to_vec();
    *changed.last_mut().unwrap() ^= 1;
    let mut said = BytesMut::new();
    let failure = server.receive(&mut BytesMut::from(&*changed), &mut said).unwrap_err();
    assert!(failure.kind() == Kind::Violation && said.is_empty(), "{failure}");
}

#[test]
fn nothing_is_heard_behind_a_goodbye() {
    let papers = Papers::new();
    let mut client = Channel::client(&papers.client("ca.pem"), "localhost", "").unwrap();
    let mut server = Channel::server(&papers.server("server")).unwrap();
    meet(&mut client, &mut server).unwrap();
    client.close();
    let (mut out, mut said) = (SendBuffer::new(), BytesMut::new());
    client.send(&mut SendBuffer::new(), &mut out).unwrap();
    let mut bytes = BytesMut::from(&*out.to_vec());
    bytes.extend_from_slice(b"left over");
    drop(server.receive(&mut bytes, &mut said));
    assert!(said.is_empty());
}

/// Moves bytes between a socket and a channel until `enough` of what the peer said is there.
fn talk(
    stream: &mut TcpStream,
    channel: &mut Channel,
    words: &[u8],
    enough: usize,
) -> Result<Vec<u8>, Failure> {
    stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
    let (mut plain, mut said) = (SendBuffer::new(), BytesMut::new());
    plain.flat().extend_from_slice(words);
    loop {
        let mut out = SendBuffer::new();
        channel.send(&mut plain, &mut out)?;
        stream.write_all(&out.to_vec()).unwrap();
        if said.len() >= enough && plain.is_empty() {
            return Ok(said.to_vec());
        }
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the peer hung up");
        let taken = channel.receive(&mut BytesMut::from(&buffer[..count]), &mut said);
        if taken.is_err() {
            let mut alert = SendBuffer::new();
            channel.send(&mut SendBuffer::new(), &mut alert)?;
            stream.write_all(&alert.to_vec()).unwrap();
        }
        taken?;
    }
}

/// OpenSSL's server, which says back what it hears, line by line and turned around.
fn openssl_server(papers: &Papers, version: &str) -> (Child, u16) {
    let mut child = Command::new("openssl")
        .args([
            "s_server",
            "-accept",
            "127.0.0.1:0",
            "-cert",
            "server.pem",
            "-key",
            "server.key",
            version,
            "-rev",
        ])
        .current_dir(papers.folder())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // It says where: `ACCEPT 127.0.0.1:PORT`.
    let port = lines
        .find_map(|line| line.unwrap().strip_prefix("ACCEPT ")?.rsplit_once(':')?.1.parse().ok())
        .expect("it listens");
    std::thread::spawn(move || lines.for_each(drop));
    (child, port)
}

#[test]
fn openssl_serves() {
    let papers = Papers::new();
    for version in ["-tls1_2", "-tls1_3"] {
        let (mut child, port) = openssl_server(&papers, version);
        let mut channel = Channel::client(&papers.client("ca.pem"), "localhost", "").unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let said = talk(&mut stream, &mut channel, b"framing\n", 8).unwrap();
        assert_eq!(said, b"gnimarf\n", "{version}");
        // It serves one at a time.
        drop(stream);
        let mut wrong = Channel::client(&papers.client("own.pem"), "localhost", "").unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let failure = talk(&mut stream, &mut wrong, b"framing\n", 8).unwrap_err();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(failure.message().contains("vouches"), "{failure}");
    }
}

/// OpenSSL's client says a line; what came of it here.
fn openssl_calls(papers: &Papers, arguments: &[&str]) -> Result<Vec<u8>, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
    let mut child = Command::new("openssl")
        .args([
            "s_client",
            "-connect",
            &target,
            "-quiet",
            "-CAfile",
            "ca.pem",
            "-verify_return_error",
            "-servername",
            "localhost",
        ])
        .args(arguments)
        .current_dir(papers.folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"a line\n").unwrap();
    let mut channel = Channel::server(&papers.server("server")).unwrap();
    let said = talk(&mut stream, &mut channel, b"", 7);
    child.kill().unwrap();
    child.wait().unwrap();
    said
}

#[test]
fn openssl_calls_us() {
    let papers = Papers::new();
    for version in ["-tls1_2", "-tls1_3"] {
        assert_eq!(openssl_calls(&papers, &[version]).unwrap(), b"a line\n", "{version}");
    }
}

#[test]
fn the_bundle_of_the_system_is_read() {
    // Where there is one; and it does not know our authority.
    let Ok(settings) = ClientSettings::new(None, None) else { return };
    let papers = Papers::new();
    let mut client = Channel::client(&settings, "localhost", "").unwrap();
    let failure = meet(&mut client, &mut Channel::server(&papers.server("server")).unwrap()).unwrap_err();
    assert!(failure.message().contains("vouches"), "{failure}");
    assert!(Path::new(&papers.path("ca.pem")).exists());
}

#[test]
fn openssl_that_begins_anew_is_told_no() {
    let papers = Papers::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
    let mut child = Command::new("openssl")
        .args(["s_client", "-connect", &target, "-tls1_2", "-CAfile", "ca.pem", "-servername", "localhost"])
        .current_dir(papers.folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"a line\n").unwrap();
    let mut channel = Channel::server(&papers.server("server")).unwrap();
    assert_eq!(talk(&mut stream, &mut channel, b"", 7).unwrap(), b"a line\n");
    // A line with this letter alone asks for another handshake.
    child.stdin.as_mut().unwrap().write_all(b"R\n").unwrap();
    let mut said = BytesMut::new();
    loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).unwrap_or(0);
        if count == 0 {
            break;
        }
        let taken = channel.receive(&mut BytesMut::from(&buffer[..count]), &mut said);
        let mut out = SendBuffer::new();
        channel.send(&mut SendBuffer::new(), &mut out).unwrap();
        // It may have left.
        let _ = stream.write_all(&out.to_vec());
        if taken.is_err() {
            break;
        }
    }
    drop(stream);
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(said.is_empty(), "nothing more was said");
    assert!(told.contains("no renegotiation") || told.contains("no_renegotiation"), "{told}");
}
