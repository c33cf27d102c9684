//! Peers that speak the plain wire by hand, to do what no proper peer does.

use super::LONG;
use std::io::{ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

/// A name in the abstract name space that no other test has.
pub fn name(test: &str) -> String {
    format!("everywire-{}-{test}", std::process::id())
}

fn address(name: &str) -> SocketAddr {
    SocketAddr::from_abstract_name(name).unwrap()
}

/// A message.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub id: u64,
    pub body: Vec<u8>,
}

impl Frame {
    pub fn bytes(&self) -> Vec<u8> {
        let len = u32::try_from(9 + self.body.len()).unwrap();
        [&len.to_le_bytes(), &[self.kind][..], &self.id.to_le_bytes(), &self.body].concat()
    }

    /// The number that the body ends with.
    pub fn number(&self) -> i32 {
        i32::from_le_bytes(*self.body.last_chunk().unwrap())
    }
}

/// A call of an operation of the object `probe`, as bytes.
pub fn call(id: u64, operation: &str, argument: i32) -> Vec<u8> {
    let len = u8::try_from(operation.len()).unwrap();
    let body = [b"\0\x05probe", &[len][..], operation.as_bytes(), &argument.to_le_bytes()].concat();
    Frame { kind: 0, id, body }.bytes()
}

/// The body of a signal `ticked` of the object `probe`.
pub fn ticked(n: i32) -> Vec<u8> {
    [b"\x05probe\x06ticked", &n.to_le_bytes()[..]].concat()
}

/// A connection over a Unix socket, whose buffers are small.
pub struct Raw(pub UnixStream);

impl Raw {
    /// To whoever listens at that name.
    pub fn connect(name: &str) -> Self {
        Self::over(UnixStream::connect_addr(&address(name)).unwrap())
    }

    fn over(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        Self(stream)
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Calls `add_one` and waits for the result: then the connection is surely accepted.
    pub fn begin(&mut self) {
        self.send(&call(1, "add_one", 1));
        assert_eq!(self.read().number(), 2);
    }

    pub fn read(&mut self) -> Frame {
        let mut head = [0; 13];
        self.0.read_exact(&mut head).unwrap();
        let len = u32::from_le_bytes(*head.first_chunk().unwrap()) as usize;
        let mut body = vec![0; len - 9];
        self.0.read_exact(&mut body).unwrap();
        Frame { kind: head[4], id: u64::from_le_bytes(*head.last_chunk().unwrap()), body }
    }

    /// Reads and throws away until the other side closes.
    pub fn drain(&mut self) {
        while self.0.read(&mut [0; 65536]).unwrap() > 0 {}
    }
}

/// Somebody who waits for connections, to call whoever made them.
pub struct Router(UnixListener);

impl Router {
    pub fn open(name: &str) -> Self {
        Self(UnixListener::bind_addr(&address(name)).unwrap())
    }

    pub fn accept(&self) -> Raw {
        self.0.set_nonblocking(true).unwrap();
        let mut accepted = None;
        super::until("somebody connects", || {
            accepted = self.try_accept();
            accepted.is_some()
        });
        accepted.unwrap()
    }

    pub fn try_accept(&self) -> Option<Raw> {
        self.0.set_nonblocking(true).unwrap();
        match self.0.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).unwrap();
                Some(Raw::over(stream))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        }
    }
}
