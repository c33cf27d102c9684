//! Transports: streams of bytes, without any idea of what they carry. A `Stream` is a socket (TCP, Unix) or a
//! channel in shared memory; `listener` accepts them, `layers` has what may lie over them (TLS), `rights`
//! passes descriptors.
//!
//! States of a stream: *open*; *ended* by the peer (`read` gives 0); *shut down* (`Stream::shutdown`), after
//! which each read and write ends at once; its descriptor is closed when it is dropped, so that no other
//! stream gets the number while somebody still waits on it.
//!
//! Invariants: all reads and writes are nonblocking by their flags (`DONTWAIT`), whatever the socket is set
//! to; the one exception is [`Stream::sleep_and_read`], bounded by [`NAP`]. `WouldBlock` and `Interrupted`
//! are no ends. A write never raises SIGPIPE. Bytes are counted as taken only when the transport has them.
//!
//! Waiting: `wait` sleeps for bytes (and room); of shared memory that is poll on a bell, after the flag for
//! the peer is up and a last look found nothing. An event loop watches what `Stream::watched` gives.
//!
//! What the kernel knows of a peer (address, process, user) is asked here; it needs no word of the peer's
//! own.

pub(crate) mod handshake;
mod inherited;
pub(crate) mod layers;
pub(crate) mod listener;
mod rights;
mod ring;
pub(crate) mod shm;

use crate::clock::timespec;
use crate::shares::Source;
use bytes::BytesMut;
use everywire_model::{Endpoint, Failure, Handle, Initiator, Kind, PeerAddress, SendBuffer};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrUnix, SocketFlags, SocketType, recv,
    send, sendmsg, sockopt,
};
use std::io::{self, ErrorKind, IoSlice};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// The least room a read is given.
const READ: usize = 16 << 10;
/// How long a read sleeps at most. Whoever waits longer sleeps in `poll`, which is told exactly for how long.
pub(crate) const NAP: Duration = Duration::from_millis(200);
/// The least time that can be asked for: 0 would be for ever.
const SHORTEST: Duration = Duration::from_millis(1);
/// A peer from which nothing came for this long is asked whether it is still there (RFC 9293, 3.8.4).
const IDLE: Duration = Duration::from_secs(60);
/// From one such question to the next.
const AGAIN: Duration = Duration::from_secs(10);
/// Questions without an answer after which the connection has ended.
const QUESTIONS: u32 = 6;
/// How long what was sent may be without acknowledgement, in milliseconds (RFC 5482): as long as a silent peer has. Without this bound the
/// kernel would send it again for some 15 minutes, and ask nothing meanwhile. It holds for a peer that acknowledges, too, if that reads
/// nothing for so long while something waits for room.
const UNACKNOWLEDGED: u32 = 120_000;
/// The most parts one write gathers.
const GATHER: usize = 16;

/// A connected stream of bytes; nonblocking, but for [`Stream::sleep_and_read`].
pub(crate) enum Stream {
    /// TCP or a Unix socket.
    Socket(OwnedFd),
    /// Shared memory.
    Shm(Box<shm::Channel>),
}

/// Room for what is known to be missing, or for a read of the least size. The caller has bounded `wanted` if
/// a peer announced it.
fn make_room(into: &mut BytesMut, wanted: usize) {
    if into.capacity() - into.len() < READ.max(wanted) {
        into.reserve(READ.max(wanted));
    }
}

/// One read of a socket into the spare room, with the descriptors that come along.
fn receive(
    fd: &OwnedFd,
    into: &mut BytesMut,
    handles: Option<&mut Vec<Handle>>,
    flags: RecvFlags,
) -> io::Result<usize> {
    let spare = into.spare_capacity_mut();
    let n = match handles {
        None => recv(fd, spare, flags)?.1,
        Some(handles) => {
            let (start, len) = (spare.as_mut_ptr().cast::<u8>(), spare.len());
            // SAFETY: same memory, same length; the kernel only writes to it, nobody reads it before `set_len`.
            let room = unsafe { std::slice::from_raw_parts_mut(start, len) };
            rights::receive(fd, room, handles, flags)?
        }
    };
    let filled = into.len() + n;
    // SAFETY: the kernel has just written `n` bytes to the start of the spare room.
    unsafe { into.set_len(filled) };
    Ok(n)
}

impl Stream {
    /// Connects, within the time given: all addresses of a host share it, and what it takes to resolve the name counts.
    ///
    /// # Errors
    /// `TimedOut`, or `Unreachable` for all else.
    pub(crate) fn connect(endpoint: &Endpoint, within: Duration) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            let kind = if error.kind() == ErrorKind::TimedOut { Kind::TimedOut } else { Kind::Unreachable };
            Failure::new(kind, Initiator::Here, format!("cannot connect to {endpoint}: {error}"))
                .with_hint("is the server running, and is this its address?")
        };
        match endpoint.stream() {
            Endpoint::Tcp { host, port } => {
                let begun = Instant::now();
                // All addresses share the time.
                let left = || within.saturating_sub(begun.elapsed()).max(SHORTEST);
                let stream = tcp(host, *port, left).map_err(failed)?;
                stream.set_nodelay(true).map_err(failed)?;
                keep_alive(&stream).map_err(failed)?;
                Ok(Self::Socket(stream.into()))
            }
            Endpoint::Unix { path } => Ok(Self::Socket(unix(path, within).map_err(failed)?)),
            Endpoint::Shm { path } => {
                let control = unix(path, within).map_err(failed)?;
                sockopt::set_socket_timeout(&control, sockopt::Timeout::Recv, Some(within.max(SHORTEST)))
                    .map_err(|error| failed(error.into()))?;
                let offer = handshake::receive(&control).map_err(failed)?;
                Ok(Self::Shm(Box::new(shm::Channel::accept(offer, control).map_err(failed)?)))
            }
            Endpoint::InProcess { name } => {
                let what = format!("no server named `{name}` listens in this process");
                Err(Failure::new(Kind::Unreachable, Initiator::User, what)
                    .with_hint("in-process addresses reach servers of the same process only"))
            }
            Endpoint::Layered(_) => Err(failed(io::Error::other("a layer is no stream"))),
        }
    }

    /// Reads what is there into the spare room of `into`; `wanted` bytes are known to be missing from a message.
    ///
    /// Handles that come along are put into `handles`, where the wire carries any. `Ok(0)` is the end; `WouldBlock` means
    /// nothing is there now.
    pub(crate) fn read(
        &self,
        into: &mut BytesMut,
        wanted: usize,
        handles: Option<&mut Vec<Handle>>,
    ) -> io::Result<usize> {
        make_room(into, wanted);
        match self {
            Self::Socket(fd) => receive(fd, into, handles, RecvFlags::DONTWAIT),
            Self::Shm(channel) => {
                let room = into.capacity() - into.len();
                channel.read(into, room)
            }
        }
    }

    /// Has a read end after some [`NAP`] with `WouldBlock`, from now on; otherwise it would sleep for ever.
    pub(crate) fn bound_sleep(&self) -> io::Result<()> {
        Ok(sockopt::set_socket_timeout(self.socket(), sockopt::Timeout::Recv, Some(NAP))?)
    }

    /// Sleeps until something can be read, and reads it: one system call instead of the two of [`Stream::wait`] and [`Stream::read`].
    /// `WouldBlock` after a [`NAP`].
    pub(crate) fn sleep_and_read(
        &self,
        into: &mut BytesMut,
        handles: Option<&mut Vec<Handle>>,
    ) -> io::Result<usize> {
        make_room(into, 0);
        match self {
            Self::Socket(fd) => receive(fd, into, handles, RecvFlags::empty()),
            Self::Shm(_) => Err(ErrorKind::WouldBlock.into()),
        }
    }

    /// Writes as much of the send buffer as the transport takes, but not much more than `most` bytes; the caller consumes that
    /// much.
    pub(crate) fn write(&self, buffer: &SendBuffer, most: usize) -> io::Result<usize> {
        match self {
            Self::Socket(fd) => {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                let (handles, room) = buffer.handles();
                let most = most.min(room);
                if let Some(handles) = handles {
                    let handles: Vec<_> = handles.iter().map(|handle| handle.as_fd()).collect();
                    return rights::send(fd, &buffer.slices(GATHER, most), &handles);
                }
                Ok(match buffer.contiguous() {
                    Some(flat) => send(fd, &flat[..flat.len().min(most)], flags)?,
                    None => {
                        let mut slices = [IoSlice::new(&[]); GATHER];
                        let used = buffer.gather(most, &mut slices);
                        let slices = slices.get(..used).unwrap_or_default();
                        sendmsg(fd, slices, &mut SendAncillaryBuffer::default(), flags)?
                    }
                })
            }
            Self::Shm(channel) => channel.write(buffer),
        }
    }

    /// Sleeps until something can be read (or written, if `writing`), or the time is over.
    pub(crate) fn wait(&self, writing: bool, until: Option<Instant>) -> io::Result<()> {
        let rest = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = rest.map(timespec);
        match self {
            Self::Socket(fd) => {
                let flags = if writing { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
                interrupted(poll(&mut [PollFd::new(fd, flags)], timeout.as_ref()))?;
            }
            Self::Shm(channel) => {
                if self.before_sleep(writing) {
                    self.after_sleep(false);
                    return Ok(());
                }
                let mut fds = [
                    PollFd::from_borrowed_fd(channel.bell(), PollFlags::IN),
                    PollFd::from_borrowed_fd(channel.control(), PollFlags::IN),
                ];
                let polled = interrupted(poll(&mut fds, timeout.as_ref()));
                let gone = !fds[1].revents().is_empty() && channel.peer_gone();
                self.after_sleep(true);
                polled?;
                if gone && !channel.protocol().before_sleep(false) {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                channel.after_sleep(false);
            }
        }
        Ok(())
    }

    /// Sleeps until something can be written, or the time is over, whatever there is to read.
    pub(crate) fn wait_for_room(&self, until: Instant) {
        let rest = until.saturating_duration_since(Instant::now());
        match self {
            Self::Socket(fd) => {
                let timeout = timespec(rest);
                // Whether there is room shows at the next write.
                let _ = poll(&mut [PollFd::new(fd, PollFlags::OUT)], Some(&timeout));
            }
            // The bell is the event loop's, which may sleep on it.
            Self::Shm(_) => std::thread::sleep(rest.min(Duration::from_millis(1))),
        }
    }

    /// Shared memory: asks the peer to ring from now on. Returns whether it is too late to sleep.
    pub(crate) fn before_sleep(&self, writing: bool) -> bool {
        matches!(self, Self::Shm(channel) if channel.protocol().before_sleep(writing))
    }

    /// Shared memory: no need to ring any more.
    pub(crate) fn after_sleep(&self, rung: bool) {
        if let Self::Shm(channel) = self {
            channel.after_sleep(rung);
        }
    }

    /// Whether the peer is known to be gone although nothing more can be read.
    pub(crate) fn peer_gone(&self) -> bool {
        matches!(self, Self::Shm(channel) if channel.peer_gone())
    }

    /// Whether the peer has ended the stream, and nothing that it sent before is left to be read.
    pub(crate) fn has_ended(&self) -> bool {
        shm::has_ended(self.socket())
    }

    /// What an event loop watches: the stream itself, or its bell and its control socket.
    pub(crate) fn watched(&self) -> (BorrowedFd<'_>, Option<BorrowedFd<'_>>) {
        match self {
            Self::Socket(fd) => (fd.as_fd(), None),
            Self::Shm(channel) => (channel.bell(), Some(channel.control())),
        }
    }

    /// The socket that it was made over.
    fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Socket(fd) => fd.as_fd(),
            Self::Shm(channel) => channel.control(),
        }
    }

    /// The address of the other end, over TCP.
    fn remote(&self) -> Option<SocketAddr> {
        rustix::net::getpeername(self.socket()).ok().flatten().and_then(|address| address.try_into().ok())
    }

    /// Closes both directions, so that whoever waits on the stream wakes up.
    pub(crate) fn shutdown(&self) {
        // The peer may have closed first.
        let _ = rustix::net::shutdown(self.socket(), rustix::net::Shutdown::Both);
    }

    /// The address of this end, over TCP.
    pub(crate) fn local(&self, transport: &str) -> Option<IpAddr> {
        let local = rustix::net::getsockname(self.socket()).ok().filter(|_| transport == "tcp")?;
        SocketAddr::try_from(local).ok().map(|local| local.ip())
    }

    /// Who is at the other end, as far as the kernel knows: the address over TCP; process and user on this
    /// machine, as they were when it connected.
    pub(crate) fn peer(&self, transport: &str) -> PeerAddress {
        let credentials = if transport == "tcp" {
            None
        } else {
            sockopt::socket_peercred(self.socket())
                .ok()
                .map(|c| (c.pid.as_raw_nonzero().get(), c.uid.as_raw()))
        };
        let text = match (credentials, self.remote()) {
            (Some((pid, uid)), _) => format!("{transport} pid {pid} uid {uid}"),
            (None, Some(address)) => format!("{transport}:{address}"),
            (None, None) => transport.to_owned(),
        };
        PeerAddress { text, credentials }
    }

    /// Whose share of this node's memory and connections it takes: the user's on this machine, or the
    /// address's.
    pub(crate) fn source(&self, peer: &PeerAddress) -> Source {
        if let Some((_, user)) = peer.credentials {
            return Source::User(user);
        }
        self.remote().map_or(Source::Unknown, |address| Source::at(address.ip()))
    }
}

/// A signal that interrupted a wait is no error: the caller looks and waits again.
pub(crate) fn interrupted<T: Default>(result: Result<T, Errno>) -> io::Result<T> {
    match result {
        Err(Errno::INTR) => Ok(T::default()),
        other => Ok(other?),
    }
}

/// Connects to one address of a host after the other; `left` is how long each may take.
pub(crate) fn tcp(host: &str, port: u16, left: impl Fn() -> Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the host name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left()) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Has the kernel find out when a peer is gone without a word: a firewall or a translator of addresses that has forgotten the connection
/// drops whatever is sent, and no call would ever learn that another connection would do.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_tcp_keepidle(stream, IDLE)?;
    sockopt::set_tcp_keepintvl(stream, AGAIN)?;
    sockopt::set_tcp_keepcnt(stream, QUESTIONS)?;
    sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED)?;
    Ok(sockopt::set_socket_keepalive(stream, true)?)
}

/// The address of a Unix socket; `@name` is in the abstract name space.
fn unix_address(path: &str) -> rustix::io::Result<SocketAddrUnix> {
    match path.strip_prefix('@') {
        Some(name) => SocketAddrUnix::new_abstract_name(name.as_bytes()),
        None => SocketAddrUnix::new(path),
    }
}

/// A socket for a path, and its address.
fn unix_socket(path: &str) -> rustix::io::Result<(OwnedFd, SocketAddrUnix)> {
    let address = unix_address(path)?;
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    Ok((socket, address))
}

/// Connects to a Unix socket. The kernel answers at once, unless the listener's queue is full: then it waits as long as a send may.
pub(crate) fn unix(path: &str, within: Duration) -> io::Result<OwnedFd> {
    let (socket, address) = unix_socket(path)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(within.max(SHORTEST)))?;
    match rustix::net::connect(&socket, &address) {
        Err(Errno::AGAIN) => Err(ErrorKind::TimedOut.into()),
        connected => Ok(connected.map(|()| socket)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_is_silent_is_asked_whether_it_is_there() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let endpoint = Endpoint::Tcp { host: "127.0.0.1".into(), port };
        let stream = Stream::connect(&endpoint, Duration::from_secs(60)).unwrap();
        let socket = stream.socket();
        assert!(sockopt::socket_keepalive(socket).unwrap());
        assert_eq!(sockopt::tcp_keepidle(socket).unwrap(), Duration::from_secs(60));
        assert_eq!(sockopt::tcp_keepintvl(socket).unwrap(), Duration::from_secs(10));
        assert_eq!(sockopt::tcp_keepcnt(socket).unwrap(), 6);
        assert_eq!(sockopt::tcp_user_timeout(socket).unwrap(), 120_000);
    }
}
