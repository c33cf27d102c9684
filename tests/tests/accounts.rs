//! Callers behind one address who prove to be somebody: where memory is short, the one of the account that holds most makes room, and
//! whoever holds the largest single message from the same address is served, because that account holds less.
//!
//! By address alone the largest connection would be the one to go. So each test fails if what proves an account is not counted as one.

use crate::common::foreign::PATIENCE;
use crate::common::papers::Papers;
use crate::common::{Server, scratch};
use bytes::BytesMut;
use everywire_auth::sasl::{Client, ClientOptions, Keyring, Mechanism, Progress};
use everywire_tests::servants::dbus::KEY;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What all connections may hold, in mebibytes.
const BUDGET: u32 = 16;
/// Bytes of the messages of the many, which together are too much, and of the one, whose message is the largest.
const SMALL: usize = 1 << 20;
const LARGE: usize = 3 << 20;
/// How many there are of the many.
const MANY: usize = 24;
/// Of each message the last octets are held back.
const HELD_BACK: usize = 1 << 10;

/// Somebody who is connected.
trait Caller {
    /// Sends; whoever was evicted cannot.
    fn send(&mut self, bytes: &[u8]) -> bool;
    /// Reads so many octets.
    fn hear(&mut self, octets: usize) -> Vec<u8>;
}

/// The many begin their messages, and so does the one. Those of the many make room, and the one is answered.
fn the_one_is_served(
    server: &Server,
    many: &dyn Fn() -> Box<dyn Caller>,
    mut one: Box<dyn Caller>,
    message: &dyn Fn(usize) -> Vec<u8>,
    is_answer: &dyn Fn(&[u8]) -> bool,
) {
    let large = message(LARGE);
    let (first, rest) = large.split_at(large.len() - HELD_BACK);
    assert!(one.send(first), "the one may send");
    let small = message(SMALL);
    let mut crowd: Vec<Box<dyn Caller>> = (0..MANY).map(|_| many()).collect();
    for caller in &mut crowd {
        // It may have made room meanwhile.
        let _ = caller.send(&small[..small.len() - HELD_BACK]);
    }
    server.refuses_by("memory");
    assert!(one.send(rest), "the one was evicted: {}", server.log());
    let answer = one.hear(16);
    assert!(is_answer(&answer), "{}: {}", String::from_utf8_lossy(&answer), server.log());
}

impl Caller for TcpStream {
    fn send(&mut self, bytes: &[u8]) -> bool {
        self.write_all(bytes).is_ok()
    }

    fn hear(&mut self, octets: usize) -> Vec<u8> {
        let mut heard = vec![0; octets];
        self.read_exact(&mut heard).expect("an answer");
        heard
    }
}

/// A connection of D-Bus whose greeting is over.
fn admitted(port: u16, mechanism: Mechanism, keyring: &Path) -> Box<dyn Caller> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    let mut client = Client::new(ClientOptions {
        mechanisms: vec![mechanism],
        negotiate_handles: false,
        keyring: Keyring::at(keyring),
        ..ClientOptions::default()
    });
    let (mut input, mut out) = (BytesMut::new(), Vec::new());
    client.start(&mut out).expect("it begins");
    loop {
        stream.write_all(&out).expect("sent");
        out.clear();
        let mut some = [0; 512];
        let read = stream.read(&mut some).expect("an answer to the greeting");
        assert!(read > 0, "{mechanism:?} is refused");
        input.extend_from_slice(&some[..read]);
        if let Progress::Done(_) = client.receive(&mut input, &mut out).expect("a greeting") {
            stream.write_all(&out).expect("sent");
            return Box::new(stream);
        }
    }
}

/// A call of `EchoBytes` with a body of so many octets (D-Bus Specification, "Message Format").
fn echo(octets: usize) -> Vec<u8> {
    let mut fields = Vec::new();
    let path = format!("/{KEY}");
    for (code, kind, text) in
        [(1, b'o', path.as_str()), (2, b's', "org.example.Kitchen"), (3, b's', "EchoBytes")]
    {
        fields.resize(fields.len().next_multiple_of(8), 0);
        fields.extend([code, 1, kind, 0]);
        fields.extend(u32::try_from(text.len()).expect("short").to_le_bytes());
        fields.extend(text.as_bytes());
        fields.push(0);
    }
    fields.resize(fields.len().next_multiple_of(8), 0);
    fields.extend([8, 1, b'g', 0, 2, b'a', b'y', 0]);
    let mut bytes = vec![b'l', 1, 0, 1];
    let number = |number: usize| u32::try_from(number).expect("small").to_le_bytes();
    bytes.extend([number(octets + 4), number(7), number(fields.len())].concat());
    bytes.extend(fields);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes.extend(number(octets));
    bytes.resize(bytes.len() + octets, 7);
    bytes
}

/// Whoever shows the cookie is one account; who shows nothing counts as the address.
fn by_cookie(test: &str, many: Mechanism, one: Mechanism) {
    let home = scratch(&format!("{test}-home"));
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).expect("it is ours");
    let address = "dbus:tcp:host=127.0.0.1,port=0?auth=cookie+anonymous";
    let server = Server::frugal_at(&home, address, &scratch(test), BUDGET, 1000);
    let (port, keyring) = (server.port(), home.join(".dbus-keyrings"));
    let answered = |answer: &[u8]| answer[..2] == [b'l', 2];
    let one = admitted(port, one, &keyring);
    the_one_is_served(&server, &|| admitted(port, many, &keyring), one, &echo, &answered);
}

#[test]
fn who_shows_the_cookie_is_served_though_many_of_its_address_hold_too_much() {
    by_cookie("accounts-cookie", Mechanism::Anonymous, Mechanism::CookieSha1);
}

#[test]
fn whoever_shows_the_cookie_and_holds_too_much_makes_room_for_others_of_its_address() {
    by_cookie("accounts-cookies", Mechanism::CookieSha1, Mechanism::Anonymous);
}

/// OpenSSL's client, with a certificate of its own.
struct Certified {
    program: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Certified {
    fn connect(papers: &Papers, name: &str, port: u16) -> Box<dyn Caller> {
        let mut command = Command::new("openssl");
        command.current_dir(papers.directory()).args(["s_client", "-quiet", "-CAfile", "ca.pem"]);
        command.args(["-connect", &format!("127.0.0.1:{port}"), "-servername", "localhost"]);
        command.args(["-cert", &format!("{name}.pem"), "-key", &format!("{name}.key")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut program = command.spawn().expect("OpenSSL's client starts");
        let (input, output) = (program.stdin.take().expect("piped"), program.stdout.take().expect("piped"));
        Box::new(Self { program, input, output })
    }
}

impl Caller for Certified {
    fn send(&mut self, bytes: &[u8]) -> bool {
        self.input.write_all(bytes).and_then(|()| self.input.flush()).is_ok()
    }

    fn hear(&mut self, octets: usize) -> Vec<u8> {
        let mut heard = vec![0; octets];
        // Nothing comes any more when the server has closed it.
        let read = self.output.read_exact(&mut heard);
        read.map_or_else(|error| error.to_string().into_bytes(), |()| heard)
    }
}

impl Drop for Certified {
    fn drop(&mut self) {
        // It has nothing to save.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// A call whose envelope has so many spaces in it.
fn post(octets: usize) -> Vec<u8> {
    let body = format!(
        "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\">{}<s:Body><GetBytes xmlns=\"http://tempuri.org/\">\
         <n>100</n></GetBytes></s:Body></s:Envelope>",
        " ".repeat(octets)
    );
    let head = format!(
        "POST /IRemoteObject HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml; charset=utf-8\r\n\
         SOAPAction: \"http://tempuri.org/IRemoteObject/GetBytes\"\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

#[test]
fn whoever_has_a_certificate_is_served_though_another_one_of_its_address_holds_too_much() {
    let test = "whoever_has_a_certificate_is_served_though_another_one_of_its_address_holds_too_much";
    let Some(papers) = Papers::get(test) else { return };
    for name in ["ann", "bob"] {
        papers.certify(name);
    }
    let address = format!(
        "basics://127.0.0.1:0?{}&clients={}&MaxReceivedMessageSize=4194304",
        papers.listening(),
        papers.path("ca.pem").display()
    );
    let server = Server::frugal(&address, &scratch("accounts-tls"), BUDGET, 1000);
    let port = server.port();
    let bob = Certified::connect(papers, "bob", port);
    let answered = |answer: &[u8]| answer.starts_with(b"HTTP/1.1 200 ");
    the_one_is_served(&server, &|| Certified::connect(papers, "ann", port), bob, &post, &answered);
}
