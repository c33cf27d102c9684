//! NegotiateStream with pyspnego at the other end, calling and serving.

#![allow(clippy::unwrap_used)]

use crate::support::{Scratch, chmod};
use bytes::BytesMut;
use everywire_auth::nns::{Channel, ProtectionLevel};
use everywire_auth::security::{Credentials, Mechanism, Options, Secret, UserTable};
use everywire_model::{Failure, Kind, SendBuffer};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const LEVELS: [ProtectionLevel; 3] =
    [ProtectionLevel::None, ProtectionLevel::Sign, ProtectionLevel::EncryptAndSign];

/// Python with pyspnego, installed into this user's cache; or nothing, said loudly.
fn python(test: &str) -> Option<Command> {
    let mut command = Command::new(everywire_peers::cached(test, "pyspnego")?.join("bin/python"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    command.arg(root.join("tests/peers/negotiate_stream.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    Some(command)
}

fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok)
}

fn options() -> Options {
    Options { target: "host/127.0.0.1".into(), ..Options::default() }
}

/// Moves bytes between a socket and a channel until this much was heard, and everything is said.
fn talk(
    stream: &mut TcpStream,
    channel: &mut Channel,
    words: &[u8],
    enough: usize,
) -> Result<Vec<u8>, Failure> {
    stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
    let (mut plain, mut said, mut input) = (SendBuffer::new(), BytesMut::new(), BytesMut::new());
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
        input.extend_from_slice(&buffer[..count]);
        if let Err(failure) = channel.receive(&mut input, &mut said) {
            let mut last = SendBuffer::new();
            channel.send(&mut plain, &mut last)?;
            stream.write_all(&last.to_vec()).unwrap();
            return Err(failure);
        }
    }
}

const LENGTH: usize = 48 * 3000;

#[test]
fn pyspnego_calls() {
    if python("pyspnego_calls").is_none() {
        return;
    }
    for (protocol, level, password, good) in LEVELS
        .into_iter()
        .map(|level| ("negotiate", level, "engine", true))
        .chain([
            ("ntlm", ProtectionLevel::None, "engine", true),
            ("ntlm", ProtectionLevel::EncryptAndSign, "engine", true),
        ])
        .chain([("negotiate", ProtectionLevel::Sign, "motor", false)])
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let mut command = python("pyspnego_calls").unwrap();
        let mut child =
            command.args(["call", &port, protocol, level.word(), "HOME\\ada", password]).spawn().unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let users = Arc::new(UserTable::parse("HOME\\ada:engine").unwrap());
        let mut channel = Channel::server(users, &options(), level).unwrap();
        let told = talk(&mut stream, &mut channel, b"", LENGTH);
        if good {
            let mut text = told.unwrap_or_else(|failure| panic!("{protocol} {level:?}: {failure}"));
            text.reverse();
            let (mut plain, mut out) = (SendBuffer::new(), SendBuffer::new());
            plain.flat().extend_from_slice(&text);
            channel.send(&mut plain, &mut out).unwrap();
            stream.write_all(&out.to_vec()).unwrap();
            assert_eq!(channel.peer_identity(), Some("HOME\\ada"));
            assert!(channel.level() >= Some(level), "{protocol} {level:?}");
        } else {
            assert_eq!(told.unwrap_err().kind(), Kind::Refused);
        }
        let said: Vec<String> = lines(&mut child).collect();
        child.wait().unwrap();
        let word = match channel.level().filter(|_| good) {
            Some(agreed) => format!("DONE {}", agreed.word()),
            None => "ERROR 000000008009030c".to_owned(),
        };
        assert!(said.iter().any(|line| line.starts_with(&word)), "{protocol} {level:?}: {said:?}");
    }
}

#[test]
fn pyspnego_serves() {
    let scratch = Scratch::new();
    let users = scratch.join("users");
    std::fs::write(&users, "HOME:ada:engine\n").unwrap();
    chmod(&users, 0o600);
    let text: Vec<u8> = (0..LENGTH).map(|n| ((n * 31) >> 3) as u8).collect();
    for (mechanism, protocol, level, password, good) in LEVELS
        .into_iter()
        .map(|level| (Mechanism::Negotiate, "negotiate", level, "engine", true))
        .chain(
            [ProtectionLevel::None, ProtectionLevel::EncryptAndSign]
                .map(|level| (Mechanism::Ntlm, "ntlm", level, "engine", true)),
        )
        .chain([(Mechanism::Negotiate, "negotiate", ProtectionLevel::Sign, "motor", false)])
    {
        let Some(mut command) = python("pyspnego_serves") else { return };
        let mut child = command
            .args(["serve", "-", protocol, level.word()])
            .env("NTLM_USER_FILE", &users)
            .spawn()
            .unwrap();
        let mut said = lines(&mut child);
        let port: u16 = said.next().unwrap().strip_prefix("PORT ").unwrap().parse().unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let who =
            Credentials { domain: "HOME".into(), user: "ada".into(), password: Secret::password(password) };
        let mut channel = Channel::client(mechanism, &who, &options(), level).unwrap();
        let told = talk(&mut stream, &mut channel, &text, LENGTH);
        if good {
            let back =
                told.unwrap_or_else(|failure| panic!("{protocol} {level:?}: {failure}, {:?}", said.next()));
            assert!(back.iter().eq(text.iter().rev()), "{protocol} {level:?}");
            assert!(channel.level() >= Some(level), "{protocol} {level:?}");
        } else {
            let failure = told.unwrap_err();
            assert!(
                failure.kind() == Kind::Refused && failure.message().contains("LOGON_DENIED"),
                "{failure}"
            );
        }
        let said: Vec<String> = said.collect();
        child.wait().unwrap();
        let word = match channel.level().filter(|_| good) {
            Some(agreed) => format!("DONE {}", agreed.word()),
            None => "REFUSED".to_owned(),
        };
        assert!(said.iter().any(|line| line.starts_with(&word)), "{protocol} {level:?}: {said:?}");
    }
}
