//! A peer that speaks D-Bus by hand, and the server that it attacks.

use crate::common::foreign::PATIENCE;
use crate::common::galley::{self, NAME};
use crate::common::{Server, scratch};
use everywire::{Node, Ref};
use everywire_tests::dbus_kitchen::org::example::Kitchen;
use everywire_tests::servants::dbus::KEY;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// A server peer to peer, in a process of its own.
pub(super) struct Target {
    pub(super) server: Server,
    pub(super) socket: PathBuf,
}

pub(super) fn target(name: &str) -> Target {
    let dir = scratch(&format!("dbus-{name}"));
    let socket = dir.join("s");
    let server = Server::ours(&format!("dbus+unix://{}", socket.display()), &dir, 4);
    Target { server, socket }
}

impl Target {
    pub(super) fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// A connection whose greeting is over; descriptors may be passed.
    pub(super) fn admitted(&self) -> UnixStream {
        let mut stream = self.connect();
        stream.write_all(&greeting()).expect("sent");
        let mut said = Vec::new();
        while !said.ends_with(b"AGREE_UNIX_FD\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("it answers the greeting");
            said.push(byte[0]);
        }
        stream
    }

    pub(super) fn kitchen(&self, node: &Node) -> Ref<dyn Kitchen> {
        node.connect(&format!("dbus+unix://{}#{KEY}", self.socket.display())).expect("it parses")
    }

    /// An honest client; all its calls must succeed.
    pub(super) fn honest(&self) {
        let node = Node::new();
        let kitchen = self.kitchen(&node);
        for _ in 0..50 {
            assert_eq!(kitchen.divide(17, 5).expect("an honest call"), (3, 2));
        }
    }

    /// Sends this to a connection of its own, and reads until the server closes.
    pub(super) fn refuses(&self, bytes: &[u8], violation: &str) {
        let mut stream = self.admitted();
        // It may close before everything is sent.
        let _ = stream.write_all(bytes);
        until_closed(stream);
        self.server.complains(violation);
        self.honest();
    }
}

pub(super) fn greeting() -> Vec<u8> {
    // SAFETY: the call takes nothing and cannot fail.
    let uid = unsafe { libc::geteuid() };
    let hex: String = uid.to_string().bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("\0AUTH EXTERNAL {hex}\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n").into_bytes()
}

pub(super) fn until_closed(mut stream: UnixStream) {
    match stream.read_to_end(&mut Vec::new()) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the server neither answered nor closed: {error}"),
    }
}

/// Little-endian values at their alignment.
#[derive(Default)]
pub(super) struct Bytes(pub Vec<u8>);

impl Bytes {
    pub(super) fn pad(&mut self, n: usize) -> &mut Self {
        self.0.resize(self.0.len().next_multiple_of(n), 0);
        self
    }
    pub(super) fn u32(&mut self, value: usize) -> &mut Self {
        self.pad(4).0.extend(u32::try_from(value).expect("32 bits").to_le_bytes());
        self
    }
    pub(super) fn text(&mut self, value: &str) -> &mut Self {
        self.u32(value.len()).0.extend(value.as_bytes());
        self.0.push(0);
        self
    }
    pub(super) fn signature(&mut self, value: &str) -> &mut Self {
        self.0.push(u8::try_from(value.len()).expect("short"));
        self.0.extend(value.as_bytes());
        self.0.push(0);
        self
    }
}

/// A call of the kitchen.
pub(super) fn call(member: &str, signature: &str, body: &[u8], descriptors: usize) -> Vec<u8> {
    call_at(galley::PATH, member, signature, body, descriptors)
}

pub(super) fn call_at(path: &str, member: &str, signature: &str, body: &[u8], descriptors: usize) -> Vec<u8> {
    let mut fields = Bytes::default();
    for (code, kind, value) in [(1, "o", path), (2, "s", NAME), (3, "s", member)] {
        fields.pad(8).0.push(code);
        fields.signature(kind).text(value);
    }
    if !signature.is_empty() {
        fields.pad(8).0.push(8);
        fields.signature("g").signature(signature);
    }
    if descriptors > 0 {
        fields.pad(8).0.push(9);
        fields.signature("u").u32(descriptors);
    }
    let mut message = Bytes(vec![b'l', 1, 0, 1]);
    message.u32(body.len()).u32(7).u32(fields.0.len());
    message.0.extend(&fields.0);
    message.pad(8).0.extend(body);
    message.0
}

/// `Divide(17, 5)`.
pub(super) fn good() -> Vec<u8> {
    call("Divide", "ii", &[17, 0, 0, 0, 5, 0, 0, 0], 0)
}

/// The answer to [`good`] comes.
pub(super) fn assert_answered(stream: &mut UnixStream) {
    let reply = message(stream).expect("an answer");
    assert_eq!((reply.kind, reply.body.as_slice()), (RETURN, &[3, 0, 0, 0, 2, 0, 0, 0][..]));
}

pub(super) const RETURN: u8 = 2;
const ERROR: u8 = 3;

/// A message of the server.
pub(super) struct Message {
    pub(super) kind: u8,
    /// The header's fields, among them the error's name.
    pub(super) fields: Vec<u8>,
    pub(super) body: Vec<u8>,
}

pub(super) const SIGNAL: u8 = 4;

/// The next message that is no signal: the server tells of its objects whenever it likes. Nothing if the server closed.
pub(super) fn message(stream: &mut UnixStream) -> Option<Message> {
    std::iter::from_fn(|| any_message(stream)).find(|message| message.kind != SIGNAL)
}

pub(super) fn any_message(stream: &mut UnixStream) -> Option<Message> {
    let mut head = [0; 16];
    match stream.read_exact(&mut head) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
            return None;
        }
        Err(error) => panic!("the server neither answered nor closed: {error}"),
    }
    assert_eq!(head[0], b'l', "little-endian as we are");
    let word = |at: usize| {
        usize::try_from(u32::from_le_bytes(head[at..at + 4].try_into().expect("four"))).expect("small")
    };
    let mut fields = vec![0; word(12).next_multiple_of(8)];
    stream.read_exact(&mut fields).expect("the rest of a header");
    let mut body = vec![0; word(4)];
    stream.read_exact(&mut body).expect("the body");
    Some(Message { kind: head[1], fields, body })
}

/// The next message is an error with this name.
#[track_caller]
pub(super) fn assert_error(stream: &mut UnixStream, name: &str) {
    let reply = message(stream).expect("an answer");
    let text = String::from_utf8_lossy(&reply.fields).into_owned();
    assert!(
        reply.kind == ERROR && text.contains(&format!("{name}\0")),
        "{} {text:?} {:?}",
        reply.kind,
        String::from_utf8_lossy(&reply.body)
    );
}

pub(super) fn send_with(stream: &UnixStream, bytes: &[u8], descriptors: usize) {
    let sent = try_send_with(stream, bytes, descriptors);
    assert!(sent, "descriptors cannot be sent: {}", std::io::Error::last_os_error());
}

pub(super) fn try_send_with(stream: &UnixStream, bytes: &[u8], descriptors: usize) -> bool {
    let null = std::fs::File::open("/dev/null").expect("it is there");
    let held: Vec<libc::c_int> = vec![null.as_raw_fd(); descriptors];
    let size = u32::try_from(size_of_val(held.as_slice())).expect("small");
    let mut control = [0u64; 256];
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: a msghdr is plain numbers and pointers, for which zero is valid; the control message fits its buffer (at
    // most 253 descriptors of 4 bytes), all pointers are to local variables, and the bytes are only read.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size) as _;
        let first = libc::CMSG_FIRSTHDR(&raw const message);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(size) as _;
        std::ptr::copy_nonoverlapping(held.as_ptr(), libc::CMSG_DATA(first).cast(), held.len());
        libc::sendmsg(stream.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    sent > 0
}
