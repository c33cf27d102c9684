//! Plain blocking sockets: one write, and as many reads as it takes.
//!
//! A request begins with its own length and that of the wanted reply, both `u32` in the machine's order; a reply begins
//! with its own length.

use super::{Exchange, LARGEST};
use crate::broken;
use everywire_model::Failure;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;

/// Listens on a Unix socket, tells so through `ready`, and answers each connection on a thread of its
/// own.
pub(super) fn serve_unix(
    path: &Path,
    ready: impl FnOnce(String) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let listener =
        UnixListener::bind(path).map_err(|error| broken(format!("{}: {error}", path.display())))?;
    ready(path.display().to_string())?;
    for stream in listener.incoming().flatten() {
        thread::spawn(move || answer(stream));
    }
    Ok(())
}

/// The same at an address of TCP, without delay of small packets (Nagle's algorithm).
pub(super) fn serve_tcp(
    place: SocketAddr,
    ready: impl FnOnce(String) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failed = |error| broken(format!("{place}: {error}"));
    let listener = TcpListener::bind(place).map_err(failed)?;
    ready(listener.local_addr().map_err(failed)?.to_string())?;
    for stream in listener.incoming().flatten() {
        stream.set_nodelay(true).map_err(failed)?;
        thread::spawn(move || answer(stream));
    }
    Ok(())
}

/// Answers one connection until the client is gone or a length is wrong: both ends are ours.
fn answer(mut stream: impl Read + Write) -> Option<()> {
    let mut request = vec![0; 4096];
    let mut reply = vec![0x55; LARGEST];
    loop {
        let mut got = 0;
        while got < 8 || got < length(&request, 0)? {
            match stream.read(request.get_mut(got..)?).ok()? {
                0 => return None,
                n => got += n,
            }
        }
        let wanted = length(&request, 4)?;
        reply.get_mut(..4)?.copy_from_slice(&u32::try_from(wanted).ok()?.to_ne_bytes());
        stream.write_all(reply.get(..wanted)?).ok()?;
    }
}

/// The length at this place; `None` if the bytes end before it does.
fn length(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?)).ok()
}

/// Frames in one direction: each begins with its length.
pub(super) fn frames(mut stream: &[u8]) -> usize {
    let mut frames = 0;
    while let Some(rest) =
        length(stream, 0).filter(|&length| length > 0).and_then(|length| stream.get(length..))
    {
        stream = rest;
        frames += 1;
    }
    frames
}

/// A connection, with buffers that are made once.
pub(super) struct Client<S> {
    stream: S,
    request: Vec<u8>,
    reply: Vec<u8>,
}

pub(super) fn unix(path: &Path) -> Result<Client<UnixStream>, Failure> {
    UnixStream::connect(path).map(client).map_err(|error| broken(format!("{}: {error}", path.display())))
}

pub(super) fn tcp(place: SocketAddr) -> Result<Client<TcpStream>, Failure> {
    let stream = TcpStream::connect(place).and_then(|stream| stream.set_nodelay(true).map(|()| stream));
    stream.map(client).map_err(|error| broken(format!("{place}: {error}")))
}

fn client<S>(stream: S) -> Client<S> {
    Client { stream, request: vec![0x55; 4096], reply: vec![0; LARGEST] }
}

impl<S: Read + Write> Exchange for Client<S> {
    fn call(&mut self, request: usize, reply: usize) -> Result<(), Failure> {
        let short = || broken("a raw request is too long");
        let number = |n: usize| u32::try_from(n).map(u32::to_ne_bytes).map_err(|_| short());
        let bytes = self.request.get_mut(..request).ok_or_else(short)?;
        bytes.get_mut(..4).ok_or_else(short)?.copy_from_slice(&number(request)?);
        bytes.get_mut(4..8).ok_or_else(short)?.copy_from_slice(&number(reply)?);
        let lost = |error| broken(format!("the raw server is gone: {error}"));
        self.stream.write_all(bytes).map_err(lost)?;
        let mut got = 0;
        while got < reply {
            let rest = self.reply.get_mut(got..reply).ok_or_else(short)?;
            match self.stream.read(rest).map_err(lost)? {
                0 => return Err(broken("the raw server hung up")),
                n => got += n,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_answered_and_frames_counted() {
        let (server, stream) = UnixStream::pair().unwrap();
        thread::spawn(move || answer(server));
        let mut client = client(stream);
        for (request, reply) in [(76, 28), (108, 60), (76, 1_000_028)] {
            client.call(request, reply).unwrap();
            assert_eq!(frames(&client.reply[..reply]), 1);
        }
        assert_eq!(frames(&[]), 0);
        assert_eq!(frames(&[0, 0, 0, 0]), 0);
    }
}
