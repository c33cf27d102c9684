//! Handles that travel with bytes: `SCM_RIGHTS` on Unix sockets (unix(7)).

use everywire_model::Handle;
use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The most handles the kernel passes at once (`SCM_MAX_FD`).
const MOST: usize = 253;

/// Sends bytes with handles: they go with the first of these bytes. The caller keeps its own copies until the
/// bytes are taken.
// With room for all of them on the stack, which whoever sends none does without.
#[inline(never)]
pub(super) fn send(socket: &OwnedFd, bytes: &[IoSlice<'_>], handles: &[BorrowedFd<'_>]) -> io::Result<usize> {
    if handles.len() > MOST {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!("{} handles in one message; the kernel passes {MOST} at most", handles.len()),
        ));
    }
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(handles)) {
        return Err(io::Error::other("no room for the handles"));
    }
    Ok(sendmsg(socket, bytes, &mut ancillary, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?)
}

/// Receives bytes into the start of `room`, and the handles that came with them, however many the peer sent
/// at once; the session counts them.
///
/// # Errors
/// `InvalidData`, if the kernel dropped some, as where this process has no descriptors left.
#[inline(never)]
pub(super) fn receive(
    socket: &OwnedFd,
    room: &mut [u8],
    handles: &mut Vec<Handle>,
    flags: RecvFlags,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let got = recvmsg(socket, &mut [IoSliceMut::new(room)], &mut ancillary, flags)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            handles.extend(rights.map(Arc::new));
        }
    }
    if got.flags.contains(ReturnFlags::CTRUNC) {
        // Descriptors were lost: what the messages say of them would be wrong.
        return Err(io::Error::new(ErrorKind::InvalidData, "the kernel dropped handles of a message"));
    }
    Ok(got.bytes)
}
