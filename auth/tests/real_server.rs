//! Our client against a real `dbus-daemon`, with each mechanism. It must answer our `Hello`, so it did let us in.

#![allow(clippy::unwrap_used)]

use crate::support::{Scratch, capture};
use bytes::BytesMut;
use everywire_auth::sasl::{Authenticated, Client, ClientOptions, Keyring, Mechanism, Progress, SaslError};
use everywire_auth::{own_uid, system_random};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A bus of its own, with its own home directory.
struct Bus {
    child: Child,
    socket: PathBuf,
    home: PathBuf,
}

impl Bus {
    fn start(scratch: &Scratch, settings: &str) -> Self {
        let (socket, home) = (scratch.join("socket"), scratch.join("home"));
        fs::create_dir(&home).unwrap();
        let config = scratch.join("bus.conf");
        let text = format!(
            "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" \
             \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n\
             <busconfig><listen>unix:path={}</listen>{settings}<policy context=\"default\">\
             <allow send_destination=\"*\"/><allow receive_sender=\"*\"/><allow own=\"*\"/><allow user=\"*\"/></policy></busconfig>",
            socket.display()
        );
        fs::write(&config, text).unwrap();
        let mut child = Command::new("dbus-daemon")
            .arg(format!("--config-file={}", config.display()))
            .args(["--nofork", "--print-address"])
            .env("HOME", &home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It listens when it says where.
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        assert!(address.starts_with("unix:path="), "{address:?}");
        Self { child, socket, home }
    }

    fn options(&self, mechanisms: &[Mechanism]) -> ClientOptions {
        let keyring = Keyring::at(self.home.join(".dbus-keyrings"));
        ClientOptions { mechanisms: mechanisms.to_vec(), keyring, ..ClientOptions::default() }
    }

    /// Authenticates, says `Hello` and waits for the answer.
    fn connect(&self, options: ClientOptions) -> Result<Authenticated, SaslError> {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        let (mut client, mut out, mut input) = (Client::new(options), Vec::new(), BytesMut::new());
        client.start(&mut out)?;
        let done = loop {
            stream.write_all(&out).unwrap();
            out.clear();
            if let Progress::Done(done) = client.receive(&mut input, &mut out)? {
                break done;
            }
            if !out.is_empty() {
                continue;
            }
            read(&mut stream, &mut input);
        };
        let captured = capture("connect-sdbus.txt");
        stream.write_all(&out).unwrap();
        stream.write_all(&captured[2].1).unwrap();
        while input.len() < 24 {
            read(&mut stream, &mut input);
        }
        // A method return to message 1.
        assert_eq!((&input[..2], &input[4 + 4..12]), (&b"l\x02"[..], &[1, 0, 0, 0][..]), "{input:?}");
        Ok(done)
    }
}

fn read(stream: &mut UnixStream, input: &mut BytesMut) {
    let mut buffer = [0; 4096];
    let count = stream.read(&mut buffer).expect("the bus answers");
    assert!(count > 0, "the bus hung up after {input:?}");
    input.extend_from_slice(&buffer[..count]);
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn installed(test: &str) -> bool {
    everywire_peers::here(test, &["dbus-daemon"])
}

#[test]
fn external() {
    if !installed("external") {
        return;
    }
    let scratch = Scratch::new();
    let bus = Bus::start(&scratch, "<auth>EXTERNAL</auth>");
    for case in 0..8 {
        let options = ClientOptions {
            uid: (case & 1 == 0).then(own_uid),
            pipelined: case & 2 == 0,
            negotiate_handles: case & 4 == 0,
            ..bus.options(&[Mechanism::External])
        };
        let done = bus.connect(options).unwrap();
        assert_eq!((done.mechanism, done.handles), (Mechanism::External, case & 4 == 0));
    }
}

#[test]
fn cookies_that_the_bus_made() {
    if !installed("cookies_that_the_bus_made") {
        return;
    }
    let scratch = Scratch::new();
    let bus = Bus::start(&scratch, "<auth>DBUS_COOKIE_SHA1</auth>");
    let done = bus.connect(bus.options(&[Mechanism::CookieSha1])).unwrap();
    assert_eq!(done.mechanism, Mechanism::CookieSha1);
    // And after the bus has turned EXTERNAL down.
    let both = [Mechanism::External, Mechanism::CookieSha1];
    assert_eq!(bus.connect(bus.options(&both)).unwrap().mechanism, Mechanism::CookieSha1);
    // Pipelined, the connection is lost, and we know what to do next.
    let pipelined = ClientOptions { pipelined: true, ..bus.options(&both) };
    let Err(SaslError::Rejected { retry_with, .. }) = bus.connect(pipelined) else { panic!() };
    assert_eq!(bus.connect(bus.options(&retry_with)).unwrap().mechanism, Mechanism::CookieSha1);
}

#[test]
fn cookies_that_we_made() {
    if !installed("cookies_that_we_made") {
        return;
    }
    let scratch = Scratch::new();
    let bus = Bus::start(&scratch, "<auth>DBUS_COOKIE_SHA1</auth>");
    let keyring = Keyring::at(bus.home.join(".dbus-keyrings"));
    keyring.current("org_freedesktop_general", system_random).unwrap();
    let file = bus.home.join(".dbus-keyrings/org_freedesktop_general");
    let before = fs::read(&file).unwrap();
    assert_eq!(bus.connect(bus.options(&[Mechanism::CookieSha1])).unwrap().mechanism, Mechanism::CookieSha1);
    assert_eq!(fs::read(&file).unwrap(), before, "the bus found ours young enough");
}

#[test]
fn the_wrong_cookie() {
    if !installed("the_wrong_cookie") {
        return;
    }
    let scratch = Scratch::new();
    let bus = Bus::start(&scratch, "<auth>DBUS_COOKIE_SHA1</auth>");
    let keys = bus.home.join(".dbus-keyrings");
    Keyring::at(&keys).current("org_freedesktop_general", system_random).unwrap();
    let text = fs::read_to_string(keys.join("org_freedesktop_general")).unwrap();
    let (number, _) = text.trim_end().rsplit_once(' ').unwrap();
    // Ours has the same number and another secret.
    let ours = Keyring::at(scratch.join("ours"));
    ours.current("org_freedesktop_general", system_random).unwrap();
    fs::write(scratch.join("ours/org_freedesktop_general"), format!("{number} {}\n", "ab".repeat(24)))
        .unwrap();
    let options = ClientOptions { keyring: ours, ..bus.options(&[Mechanism::CookieSha1]) };
    let Err(SaslError::Rejected { tried, offered, .. }) = bus.connect(options) else { panic!() };
    assert_eq!((tried, offered), (Some(Mechanism::CookieSha1), vec!["DBUS_COOKIE_SHA1".to_owned()]));
}

#[test]
fn anonymous() {
    if !installed("anonymous") {
        return;
    }
    let scratch = Scratch::new();
    let bus = Bus::start(&scratch, "<auth>ANONYMOUS</auth><allow_anonymous/>");
    for pipelined in [false, true] {
        let options = ClientOptions { pipelined, ..bus.options(&[Mechanism::Anonymous]) };
        assert_eq!(bus.connect(options).unwrap().mechanism, Mechanism::Anonymous);
    }
}
