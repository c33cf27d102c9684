//! Real clients against our server, up to `BEGIN`: libdbus, sd-bus and GDBus, by `EXTERNAL` and with cookies.

#![allow(clippy::unwrap_used)]

use crate::support::{GUID, Scratch};
use bytes::BytesMut;
use everywire_auth::own_uid;
use everywire_auth::sasl::{
    AuthenticatedClient, Identity, Keyring, Mechanism, Progress, Server, ServerOptions,
};
use everywire_peers::here;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Only what hangs takes so long.
const LONG: Duration = Duration::from_secs(300);

/// Lets the program connect, and says how it was let in and what its first message begins with.
fn serve(program: &str, arguments: &[&str], mechanisms: &[Mechanism]) -> (AuthenticatedClient, u8) {
    let scratch = Scratch::new();
    let socket = scratch.join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let address = format!("unix:path={}", socket.display());
    let arguments = arguments.iter().map(|argument| argument.replace("ADDRESS", &address));
    let mut child = Command::new(program)
        .args(arguments)
        .env("HOME", scratch.path())
        .env_remove("DBUS_SESSION_BUS_ADDRESS")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stream = accept(&listener);
    let options = ServerOptions {
        mechanisms: mechanisms.to_vec(),
        peer_uid: Some(own_uid()),
        handles: true,
        keyring: Keyring::at(scratch.join(".dbus-keyrings")),
        ..ServerOptions::new(GUID)
    };
    let outcome = admit(&mut stream, options);
    child.kill().unwrap();
    child.wait().unwrap();
    outcome
}

fn accept(listener: &UnixListener) -> UnixStream {
    listener.set_nonblocking(true).unwrap();
    let started = Instant::now();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).unwrap();
                stream.set_read_timeout(Some(LONG)).unwrap();
                return stream;
            }
            Err(error) => assert!(started.elapsed() < LONG, "nobody connects: {error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn admit(stream: &mut UnixStream, options: ServerOptions) -> (AuthenticatedClient, u8) {
    let (mut server, mut input, mut out) = (Server::new(options), BytesMut::new(), Vec::new());
    loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).expect("the client says something");
        assert!(count > 0, "the client hung up after {server:?}");
        input.extend_from_slice(&buffer[..count]);
        let progress = server.receive(&mut input, &mut out).unwrap();
        stream.write_all(&out).unwrap();
        out.clear();
        if let (Progress::Done(admitted), Some(first)) = (progress, input.first()) {
            return (admitted, *first);
        }
    }
}

const CLIENTS: [(&str, &[&str]); 3] = [
    ("dbus-send", &["--peer=ADDRESS", "--print-reply", "/", "org.freedesktop.DBus.Peer.Ping"]),
    ("busctl", &["--address=ADDRESS", "list"]),
    ("gdbus", &["call", "--address", "ADDRESS", "--dest", "a.b", "--object-path", "/", "--method", "a.b.C"]),
];

#[test]
fn external() {
    for (program, arguments) in CLIENTS {
        if !here(&format!("external by {program}"), &[program]) {
            continue;
        }
        let (admitted, first) = serve(program, arguments, &[Mechanism::External]);
        let identity = Identity::User(own_uid());
        assert_eq!(
            admitted,
            AuthenticatedClient { identity, mechanism: Mechanism::External, handles: true },
            "{program}"
        );
        assert_eq!(first, b'l', "{program}: a message follows");
    }
}

/// sd-bus knows no cookies.
#[test]
fn cookies() {
    for (program, arguments) in CLIENTS.into_iter().filter(|(program, ..)| *program != "busctl") {
        if !here(&format!("cookies by {program}"), &[program]) {
            continue;
        }
        let (admitted, first) = serve(program, arguments, &[Mechanism::CookieSha1]);
        let identity = Identity::User(own_uid());
        assert_eq!((admitted.identity, admitted.mechanism), (identity, Mechanism::CookieSha1), "{program}");
        assert_eq!(first, b'l', "{program}: a message follows");
    }
}

/// Where libdbus's own tests are installed, our server and client go through its scripts of conversations.
#[test]
fn scripts_of_libdbus() {
    let scripts = Path::new("/usr/lib/dbus-1.0/installed-tests/dbus/data/auth");
    if !here("scripts_of_libdbus", &["dbus-tests"]) {
        return;
    }
    let mut played = 0;
    for entry in std::fs::read_dir(scripts).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "auth-script") {
            script::play(&path);
            played += 1;
        }
    }
    assert!(played >= 15, "{played} scripts");
}

mod script {
    use super::{GUID, Keyring, Mechanism, Path, Scratch, Server, ServerOptions, own_uid};
    use crate::support::{Hears, hex};
    use bytes::BytesMut;
    use everywire_auth::sasl::{Accept, Client, ClientOptions, Progress, SaslError};

    enum Side {
        Client(Client),
        Server(Server),
    }

    /// One machine, what it said and was not yet looked at, and how it stands.
    struct Play {
        side: Side,
        input: BytesMut,
        said: Vec<u8>,
        state: String,
        known: bool,
    }

    pub(crate) fn play(path: &Path) {
        let text = std::fs::read_to_string(path).unwrap();
        let scratch = Scratch::new();
        let keyring = Keyring::at(scratch.join("keys"));
        let mut peer_uid = Some(own_uid());
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        for line in &lines {
            match *line {
                "NO_CREDENTIALS" => peer_uid = None,
                "ROOT_CREDENTIALS" => peer_uid = Some(0),
                "SILLY_CREDENTIALS" => peer_uid = Some(4312),
                _ => {}
            }
        }
        let side = if lines.contains(&"SERVER") {
            Side::Server(Server::new(ServerOptions {
                mechanisms: vec![Mechanism::External, Mechanism::CookieSha1, Mechanism::Anonymous],
                peer_uid,
                accept: Accept::Everyone,
                user: "script".to_owned(),
                keyring,
                ..ServerOptions::new(GUID)
            }))
        } else {
            Side::Client(Client::new(ClientOptions {
                mechanisms: vec![Mechanism::External, Mechanism::CookieSha1, Mechanism::Anonymous],
                negotiate_handles: false,
                keyring,
                ..ClientOptions::default()
            }))
        };
        let state = "WAITING_FOR_INPUT".to_owned();
        let mut play = Play { side, input: BytesMut::new(), said: Vec::new(), state, known: false };
        match &mut play.side {
            Side::Client(client) => client.start(&mut play.said).unwrap(),
            Side::Server(_) => play.hear("\0"),
        }
        // The client's zero byte is no part of a command.
        play.said.retain(|byte| *byte != 0);
        for line in lines {
            play.line(line, path);
        }
    }

    impl Play {
        fn line(&mut self, line: &str, path: &Path) {
            let place = format!("{}: {line}", path.display());
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "SEND" => {
                    assert!(self.said.is_empty(), "{place}: {:?}", String::from_utf8_lossy(&self.said));
                    self.hear(&format!("{}\r\n", self.spelled(rest)));
                }
                "EXPECT_COMMAND" => {
                    let end = self.said.windows(2).position(|pair| pair == b"\r\n").expect(&place);
                    let said: Vec<u8> = self.said.drain(..end + 2).collect();
                    let command = String::from_utf8(said).unwrap();
                    assert_eq!(command.split([' ', '\r']).next(), Some(rest), "{place}");
                }
                "EXPECT_STATE" if rest == "AUTHENTICATED_WITH_UNUSED_BYTES" => {
                    assert!(self.state == "AUTHENTICATED" && !self.input.is_empty(), "{place}");
                }
                "EXPECT_STATE" => assert_eq!(self.state, rest, "{place}"),
                "EXPECT_UNUSED" => {
                    let unused = self.spelled(rest);
                    assert_eq!(self.input.split().as_ref(), unused.as_bytes(), "{place}");
                }
                "EXPECT_HAVE_NO_CREDENTIALS" => assert!(!self.known, "{place}"),
                "EXPECT_HAVE_SOME_CREDENTIALS" => assert!(self.known, "{place}"),
                "CLIENT" | "SERVER" | "UNIX_ONLY" => {}
                "NO_CREDENTIALS" | "ROOT_CREDENTIALS" | "SILLY_CREDENTIALS" => {}
                _ => panic!("{place}: what is this?"),
            }
        }

        fn hear(&mut self, text: &str) {
            self.input.extend_from_slice(text.as_bytes());
            let done = match &mut self.side {
                Side::Client(client) => {
                    client.hear(&mut self.input, &mut self.said).map(|progress| match progress {
                        Progress::More => None,
                        Progress::Done(_) => Some(true),
                    })
                }
                Side::Server(server) => {
                    server.hear(&mut self.input, &mut self.said).map(|progress| match progress {
                        Progress::More => None,
                        Progress::Done(done) => Some(done.mechanism != Mechanism::Anonymous),
                    })
                }
            };
            match done {
                Ok(None) => {}
                Ok(Some(known)) => (self.state, self.known) = ("AUTHENTICATED".to_owned(), known),
                Err(SaslError::Rejected { .. } | SaslError::TooManyAttempts { .. }) => {
                    self.state = "NEED_DISCONNECT".to_owned();
                }
                Err(error) => panic!("{error}"),
            }
        }

        /// What a script means. Identities in the scripts may be short; ours may not.
        fn spelled(&self, text: &str) -> String {
            let me = own_uid().to_string();
            text.trim_matches('\'')
                .replace("\\r", "\r")
                .replace("\\n", "\n")
                .replace("WRONG_USERNAME_HEX", &hex("nobodyatall"))
                .replace("WRONG_USERID_HEX", &hex("4312"))
                .replace("USERNAME_HEX", &hex("script"))
                .replace("USERID_HEX", &hex(&me))
                .replace("OK 1234deadbeef", &format!("OK {GUID}"))
        }
    }
}
