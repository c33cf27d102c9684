//! The handshake of shared memory: one message over a Unix socket, with the memory and both doorbells.

use super::shm::Offer;
use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// Name and version of the layout in `shm.rs`; changes with it.
const HELLO: &[u8; 8] = b"EWSHM\0\0\x01";

/// Offers the memory: one message with all that the peer needs. The socket is new and empty, so it takes the
/// message whole or not at all.
pub(crate) fn send(control: &OwnedFd, offer: &Offer) -> io::Result<()> {
    let fds = [offer.memory.as_fd(), offer.bells[0].as_fd(), offer.bells[1].as_fd()];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::Error::other("no room for three descriptors"));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let sent = sendmsg(control, &[IoSlice::new(HELLO)], &mut ancillary, flags)?;
    if sent == HELLO.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}

/// Takes the offer, waiting for it as long as the socket's time limit says.
///
/// # Errors
/// `TimedOut`; or what came is no offer of this version, or has another number of descriptors.
pub(crate) fn receive(control: &OwnedFd) -> io::Result<Offer> {
    let mut hello = [0u8; HELLO.len()];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut hello)];
    let got = match recvmsg(control, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
        Err(Errno::AGAIN) => return Err(ErrorKind::TimedOut.into()),
        got => got?,
    };
    let wrong =
        |what: &str| io::Error::new(ErrorKind::InvalidData, format!("shared-memory handshake: {what}"));
    if got.bytes != HELLO.len() || &hello != HELLO {
        return Err(wrong("the peer does not speak it"));
    }
    let mut fds: Vec<OwnedFd> = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    let [memory, first, second] =
        <[OwnedFd; 3]>::try_from(fds).map_err(|_| wrong("three descriptors are expected"))?;
    Ok(Offer { memory, bells: [first, second] })
}
