//! Ports for those who cannot listen at port 0 and say which one they got: foreign servers, and configurations that name a port.

use std::io;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// The ports are as many as this, from this one on: below those that the system gives to whoever asks for any (from 32768 on), also to
/// each connection that goes out.
const FIRST: u16 = 16_384;

/// A port of the loopback interface that nobody has now, and that nobody else gets from here before this process ends.
///
/// A server takes seconds to begin to listen. A port that the system chose, and that was closed again, may be anybody's by then: each
/// connection that any process makes takes one of the same range. So whoever gets a port here has a name in the abstract name space
/// that says so, and the kernel gives that up when the process ends. Like ports, such names belong to a network namespace.
///
/// # Errors
/// All of them are taken.
pub fn free_port() -> io::Result<u16> {
    // Most processes with numbers that lie close together look at different ports first.
    port_from(std::process::id().wrapping_mul(64))
}

fn port_from(number: u32) -> io::Result<u16> {
    for step in 0..u32::from(FIRST) {
        let port = FIRST + u16::try_from(number.wrapping_add(step) % u32::from(FIRST)).unwrap_or_default();
        let name = SocketAddr::from_abstract_name(format!("everywire-port-{port}"))?;
        let Ok(claim) = UnixListener::bind_addr(&name) else { continue };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            // Until this process ends.
            std::mem::forget(claim);
            return Ok(port);
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, "every port below those of the system is taken"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::port_from;

    /// Processes whose numbers begin alike, and servers that do not listen yet.
    #[test]
    fn a_port_is_given_to_one_process_however_long_it_takes_to_listen() {
        let ports = [7, 7, 7, 7 + 16_384].map(|number| port_from(number).unwrap());
        for (at, port) in ports.iter().enumerate() {
            assert!(!ports[..at].contains(port), "{ports:?}");
        }
    }
}
