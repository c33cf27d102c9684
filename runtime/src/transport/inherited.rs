//! Listening sockets that this process was given by whoever started it: socket activation (sd_listen_fds(3) of systemd).
//!
//! `$LISTEN_FDS` says how many there are, from descriptor 3 on, and `$LISTEN_PID` for which process they are meant. No name says which socket
//! is for what: a socket stands in for the address that it is bound to. Nobody else could bind that address, so nobody who does not want this
//! notices it.
//!
//! Invariants: the descriptors stay open, and are whoever's they were: a listener gets a duplicate of its own. Each is lent to one listener at
//! a time: a second one at the same address finds it taken, as it does elsewhere. None of them passes to programs that this process starts.

use super::unix_address;
use everywire_model::Endpoint;
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::net::{SocketAddrAny, SocketAddrUnix, getsockname, sockopt};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The first descriptor that is passed (`SD_LISTEN_FDS_START`).
const FIRST: RawFd = 3;
/// The most that are looked at.
const MOST: RawFd = 1024;

/// Those that listeners have.
static LENT: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());

/// A socket that a listener has; another one may have it when this is dropped.
pub(super) struct LentSocket(RawFd);

impl Drop for LentSocket {
    fn drop(&mut self) {
        LENT.lock().unwrap_or_else(PoisonError::into_inner).retain(|socket| *socket != self.0);
    }
}

/// The socket that was given for this endpoint.
pub(super) fn socket(endpoint: &Endpoint) -> Option<(OwnedFd, LentSocket)> {
    if given().is_empty() {
        return None;
    }
    match endpoint {
        Endpoint::Tcp { host, port: port @ 1.. } => {
            let wanted: Vec<SocketAddr> = (host.as_str(), *port).to_socket_addrs().ok()?.collect();
            find(|bound| {
                let bound = SocketAddr::try_from(bound);
                bound.is_ok_and(|bound| wanted.iter().any(|wanted| is_same(*wanted, bound)))
            })
        }
        Endpoint::Unix { path } | Endpoint::Shm { path } => {
            let wanted = unix_address(path).ok()?;
            find(|bound| SocketAddrUnix::try_from(bound).is_ok_and(|bound| bound == wanted))
        }
        _ => None,
    }
}

/// Whether a socket that is bound to `bound` serves whoever is to listen at `wanted`: at every address is at every address, of version 4 and 6.
fn is_same(wanted: SocketAddr, bound: SocketAddr) -> bool {
    let everywhere = wanted.ip().is_unspecified() && bound.ip().is_unspecified();
    wanted.port() == bound.port() && (everywhere || wanted.ip() == bound.ip())
}

/// The first listening socket that is bound to such an address, and that nobody has.
fn find(fits: impl Fn(SocketAddrAny) -> bool) -> Option<(OwnedFd, LentSocket)> {
    let mut lent = LENT.lock().unwrap_or_else(PoisonError::into_inner);
    let free = given().iter().filter(|socket| !lent.contains(socket));
    let (socket, own) = free.copied().find_map(|number| {
        // SAFETY: it was open when the list was made, and whoever starts a process with it lets it be; on a closed one each call only fails.
        let socket = unsafe { BorrowedFd::borrow_raw(number) };
        let listens = sockopt::socket_acceptconn(socket).is_ok_and(|listens| listens);
        let is_meant = listens && getsockname(socket).is_ok_and(&fits);
        Some((number, is_meant.then(|| fcntl_dupfd_cloexec(socket, 0).ok()).flatten()?))
    })?;
    lent.push(socket);
    Some((own, LentSocket(socket)))
}

/// The descriptors that were given to this process. They are looked for once.
fn given() -> &'static [RawFd] {
    static GIVEN: OnceLock<Vec<RawFd>> = OnceLock::new();
    GIVEN.get_or_init(|| {
        let number = |name| std::env::var(name).ok()?.trim().parse::<u32>().ok();
        let count = match (number("LISTEN_PID"), number("LISTEN_FDS")) {
            (Some(process), Some(count)) if process == std::process::id() => count,
            _ => return Vec::new(),
        };
        let count = RawFd::try_from(count).unwrap_or(MOST).min(MOST);
        let all = (FIRST..FIRST + count).filter(|socket| {
            // Only what is open is a descriptor.
            std::fs::symlink_metadata(format!("/proc/self/fd/{socket}")).is_ok()
        });
        all.inspect(|socket| {
            // SAFETY: it is open, as was just seen.
            let socket = unsafe { BorrowedFd::borrow_raw(*socket) };
            // Refused: then programs that are started have one more descriptor.
            let _ = fcntl_setfd(socket, FdFlags::CLOEXEC);
        })
        .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_stands_in_for_its_own_address_alone() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert!(is_same(at("127.0.0.1:2809"), at("127.0.0.1:2809")));
        assert!(is_same(at("0.0.0.0:2809"), at("[::]:2809")));
        assert!(!is_same(at("127.0.0.1:2809"), at("127.0.0.1:2810")));
        // Whoever wants to be reached from here alone is not to be reached from elsewhere.
        assert!(!is_same(at("127.0.0.1:2809"), at("0.0.0.0:2809")));
        assert!(!is_same(at("0.0.0.0:2809"), at("127.0.0.1:2809")));
    }
}
