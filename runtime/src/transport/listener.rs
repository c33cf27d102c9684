//! Listening sockets.
//!
//! States: *bound*, from `bind` on; *closed* when dropped: then the socket's file is removed, too. A socket that this process was
//! started with is taken instead (`inherited`), and its file stays. A
//! `Listener` adds what the runtime knows of whoever connects: wire, terms, quotas; hubs use the
//! `Acceptor` alone. The terms may be replaced while the socket is open (`Listener::renew`): connections have those
//! that they were accepted with.

use super::{SHORTEST, Stream, handshake, inherited, layers, shm, unix, unix_socket};
use crate::quotas::Allowance;
use everywire_model::{Endpoint, Failure, Initiator, Kind, LayerSide, Profile, Wire};
use rustix::net::{SocketFlags, sockopt};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, PoisonError, RwLock};

/// A listening socket, and who speaks on what it accepts.
pub(crate) struct Listener {
    pub(crate) acceptor: Acceptor,
    pub(crate) wire: &'static dyn Wire,
    /// Where it was bound.
    pub(crate) endpoint: Endpoint,
    /// What its peers may take.
    pub(crate) allowance: Arc<Allowance>,
    /// What the next connection is accepted with.
    terms: RwLock<Arc<AcceptTerms>>,
}

/// What connections are accepted with: what the address and the files that it names said when they were read.
pub(crate) struct AcceptTerms {
    /// The place as the wire described it, with the endpoint that was bound.
    pub(crate) profile: Profile,
    /// What lies between its streams and the wire.
    pub(crate) layer: Option<Arc<dyn LayerSide>>,
}

impl Listener {
    /// Binds and listens at the first endpoint of the profile.
    pub(crate) fn bind(
        wire: &'static dyn Wire,
        mut profile: Profile,
        allowance: Arc<Allowance>,
    ) -> Result<Self, Failure> {
        let Some(endpoint) = profile.endpoints.first() else { return Err(nowhere()) };
        let layer = layers::listening(endpoint)?;
        let (acceptor, bound) = Acceptor::bind(endpoint.stream())?;
        let endpoint = endpoint.over(bound);
        // A wire may want shorter segments of TCP: sockets that are accepted have the size from their
        // listener.
        if let Some(segment) = wire.segment(&profile).filter(|_| acceptor.transport == "tcp") {
            // Refused: then those peers are slow.
            let _ = socket2::SockRef::from(&acceptor.socket).set_tcp_mss(segment.into());
        }
        profile.endpoints = vec![endpoint.clone()];
        let terms = RwLock::new(Arc::new(AcceptTerms { profile, layer }));
        Ok(Self { acceptor, wire, endpoint, allowance, terms })
    }

    /// What the next connection is accepted with.
    pub(crate) fn terms(&self) -> Arc<AcceptTerms> {
        Arc::clone(&self.terms.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The terms by which this profile would have the open socket accept; the files that its endpoint names are read.
    pub(crate) fn terms_of(&self, mut profile: Profile) -> Result<AcceptTerms, Failure> {
        let Some(endpoint) = profile.endpoints.first() else { return Err(nowhere()) };
        let layer = layers::listening(endpoint)?;
        profile.endpoints = vec![endpoint.over(self.endpoint.stream().clone())];
        Ok(AcceptTerms { profile, layer })
    }

    /// Accepts by these terms from now on.
    pub(crate) fn renew(&self, terms: Arc<AcceptTerms>) {
        *self.terms.write().unwrap_or_else(PoisonError::into_inner) = terms;
    }
}

#[cold]
fn nowhere() -> Failure {
    Failure::new(Kind::BadReference, Initiator::User, "there is no address to listen at")
}

/// What to try where nobody can listen at an endpoint.
fn hint(endpoint: &Endpoint, error: &io::Error) -> &'static str {
    /// Up to here ports are for the system, unless it says otherwise.
    const RESERVED: u16 = 1023;
    match endpoint {
        // Where peers look for that port alone, another one would be of no use.
        Endpoint::Tcp { port: 1..=RESERVED, .. } if error.kind() == io::ErrorKind::PermissionDenied => {
            "ports below 1024 need a right: `setcap cap_net_bind_service=+ep PROGRAM`, or for all programs `sysctl net.ipv4.ip_unprivileged_port_start=PORT`; else choose another port"
        }
        Endpoint::Tcp { .. } if error.kind() == io::ErrorKind::AddrNotAvailable => {
            "no network interface of this machine has that address; 0.0.0.0 and [::] stand for all that it has"
        }
        Endpoint::Tcp { .. } => "choose another address, or port 0 for a free one",
        _ if error.kind() == io::ErrorKind::NotFound => {
            "make the folder of the socket first, or choose another one"
        }
        _ => "choose another path",
    }
}

/// A listening socket, and what to do with what it accepts.
pub(crate) struct Acceptor {
    socket: OwnedFd,
    /// The transport's name.
    pub(crate) transport: &'static str,
    /// The socket file, to be removed at the end.
    path: Option<String>,
    /// The socket that this process was started with, if it is one.
    _lent: Option<inherited::LentSocket>,
}

impl Acceptor {
    /// Binds and listens, without blocking from then on. A port of 0 becomes the one the kernel chose; a
    /// socket file whose server is gone (nobody accepts there) is replaced.
    pub(crate) fn bind(endpoint: &Endpoint) -> Result<(Self, Endpoint), Failure> {
        let failed = |error: io::Error| {
            Failure::new(Kind::Unreachable, Initiator::Here, format!("cannot listen on {endpoint}: {error}"))
                .with_hint(hint(endpoint, &error))
        };
        let (socket, path, lent) = match (inherited::socket(endpoint), endpoint) {
            // The file is whoever's who made it.
            (Some((given, lent)), _) => (given, None, Some(lent)),
            (None, Endpoint::Tcp { host, port }) => {
                let socket = TcpListener::bind((host.as_str(), *port)).map_err(failed)?;
                (socket.into(), None, None)
            }
            (None, Endpoint::Unix { path } | Endpoint::Shm { path }) => {
                let file = Some(path).filter(|path| !path.starts_with('@')).cloned();
                (bind_unix(path, file.is_some()).map_err(failed)?, file, None)
            }
            (None, Endpoint::InProcess { .. }) => {
                return Err(failed(io::Error::other("in-process servers have no socket")));
            }
            (None, Endpoint::Layered(_)) => return Err(failed(io::Error::other("a layer is no stream"))),
        };
        // std listens with a backlog of 128: thousands that connect at once would wait for retries.
        let ready =
            rustix::net::listen(&socket, 4096).and_then(|()| rustix::io::ioctl_fionbio(&socket, true));
        ready.map_err(|error| failed(error.into()))?;
        let mut bound = endpoint.clone();
        if let Endpoint::Tcp { port, .. } = &mut bound {
            let own = rustix::net::getsockname(&socket).and_then(SocketAddr::try_from);
            *port = own.map_err(|error| failed(error.into()))?.port();
        }
        Ok((Self { socket, transport: endpoint.transport(), path, _lent: lent }, bound))
    }

    /// What an event loop watches.
    pub(crate) fn watched(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Accepts one connection; `WouldBlock` when there is none.
    pub(crate) fn accept(&self) -> io::Result<Stream> {
        let stream = rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC)?;
        match self.transport {
            "tcp" => sockopt::set_tcp_nodelay(&stream, true)?,
            "shm" => {
                let (channel, offer) = shm::Channel::create(stream.try_clone()?)?;
                handshake::send(&stream, &offer)?;
                return Ok(Stream::Shm(Box::new(channel)));
            }
            _ => {}
        }
        Ok(Stream::Socket(stream))
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Somebody else may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A socket that is bound to a path. A file there whose server is gone is replaced.
fn bind_unix(path: &str, is_file: bool) -> io::Result<OwnedFd> {
    let (socket, address) = unix_socket(path)?;
    // A server whose queue is full is there, too.
    let is_gone = || unix(path, SHORTEST).is_err_and(|error| error.kind() != io::ErrorKind::TimedOut);
    if is_file && is_gone() && is_socket(path) {
        std::fs::remove_file(path)?;
    }
    rustix::net::bind(&socket, &address)?;
    Ok(socket)
}

/// Whether there is a socket at a path: nothing else is ever removed.
fn is_socket(path: &str) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(path).is_ok_and(|data| data.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_needs_a_right_is_not_a_wrong_address() {
        let at = |port| Endpoint::Tcp { host: "127.0.0.1".to_owned(), port };
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert!(hint(&at(135), &denied).contains("cap_net_bind_service"));
        let taken = io::Error::from(io::ErrorKind::AddrInUse);
        for (endpoint, error) in [(at(135), &taken), (at(1024), &denied)] {
            assert!(hint(&endpoint, error).starts_with("choose another address"));
        }
    }
}
