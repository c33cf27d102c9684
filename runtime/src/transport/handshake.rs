//! The handshake of shared memory: one message over a Unix socket, with the memory and both doorbells.

use super::rights;
use super::shm::Offer;
use rustix::net::RecvFlags;
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Name and version of the layout in `shm.rs`; changes with it.
const HELLO: &[u8; 8] = b"EWSHM\0\0\x01";

/// Offers the memory: one message with all that the peer needs. The socket is new and empty, so it takes the
/// message whole or not at all.
pub(crate) fn send(control: &OwnedFd, offer: &Offer) -> io::Result<()> {
    let fds = [offer.memory.as_fd(), offer.bells[0].as_fd(), offer.bells[1].as_fd()];
    let sent = rights::send(control, &[IoSlice::new(HELLO)], &fds)?;
    if sent == HELLO.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}

/// Takes the offer, waiting for it as long as the socket's time limit says.
///
/// # Errors
/// `TimedOut`; or what came is no offer of this version, or has another number of descriptors.
pub(crate) fn receive(control: &OwnedFd) -> io::Result<Offer> {
    let (mut hello, mut handles) = ([0; HELLO.len()], Vec::new());
    let len =
        rights::receive(control, &mut hello, &mut handles, RecvFlags::empty()).map_err(
            |error| match error.kind() {
                ErrorKind::WouldBlock => ErrorKind::TimedOut.into(),
                _ => error,
            },
        )?;
    let wrong =
        |what: &str| io::Error::new(ErrorKind::InvalidData, format!("shared-memory handshake: {what}"));
    if len != HELLO.len() || &hello != HELLO {
        return Err(wrong("the peer does not speak it"));
    }
    let fds: Vec<OwnedFd> = handles.into_iter().filter_map(Arc::into_inner).collect();
    let [memory, first, second] =
        <[OwnedFd; 3]>::try_from(fds).map_err(|_| wrong("three descriptors are expected"))?;
    Ok(Offer { memory, bells: [first, second] })
}
