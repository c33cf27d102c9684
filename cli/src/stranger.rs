//! Who answers at an endpoint where another wire was expected.
//!
//! A server that is greeted in another protocol than its own mostly closes the connection without a word. So when a wire's
//! client gets nowhere, each wire's greeting is tried on a connection of its own, and the answer tells.

use crate::trouble::Trouble;
use everywire::model::wire::Greeting;
use everywire::model::{Endpoint, Reference, Sniff, Wire};
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};
use std::time::{Duration, Instant};

/// How long a server may take to accept, and to answer a greeting.
const PATIENCE: Duration = Duration::from_millis(500);
/// The most octets of an answer that are looked at.
const SEEN: usize = 64;

/// Adds to a failure which protocol answers where the object was looked for, if it is another one's.
pub(crate) fn named(trouble: Box<Trouble>, reference: &Reference) -> Box<Trouble> {
    if !trouble.is_of_connection() {
        return trouble;
    }
    let Some(profile) = reference.profiles.first() else { return trouble };
    let own = profile.wire;
    let Some(greeting) = profile.endpoints.iter().find_map(|endpoint| other(own, endpoint)) else {
        return trouble;
    };
    let schemes = greeting.schemes;
    trouble
        .adding(format!("{} answers there", greeting.protocol))
        .hint(format!("use an address that begins with {schemes}"))
}

/// The greeting of another wire that is answered at an endpoint; nothing if this wire's own is.
fn other(own: &str, endpoint: &Endpoint) -> Option<&'static Greeting> {
    let of = |wire: &&'static dyn Wire| wire.greetings().iter();
    let all = everywire::wires::ALL.iter();
    let (mine, others): (Vec<_>, Vec<_>) = all.partition(|wire| wire.name() == own);
    let answers = |greeting: &&Greeting| is_answered(endpoint, greeting);
    if mine.into_iter().flat_map(of).any(|greeting| answers(&greeting)) {
        return None;
    }
    others.into_iter().flat_map(of).find(answers)
}

/// Whether a server answers this greeting as one of its protocol does.
fn is_answered(endpoint: &Endpoint, greeting: &Greeting) -> bool {
    match endpoint {
        Endpoint::Tcp { host, port } => {
            let mut addresses = (host.as_str(), *port).to_socket_addrs().into_iter().flatten();
            let stream = addresses.find_map(|address| TcpStream::connect_timeout(&address, PATIENCE).ok());
            stream.is_some_and(|stream| {
                let limited = stream.set_read_timeout(Some(PATIENCE)).is_ok();
                limited && exchange(stream, greeting)
            })
        }
        Endpoint::Unix { path } => {
            let address = match path.strip_prefix('@') {
                Some(name) => UnixAddr::from_abstract_name(name),
                None => UnixAddr::from_pathname(path),
            };
            address.and_then(|address| UnixStream::connect_addr(&address)).is_ok_and(|stream| {
                let limited = stream.set_read_timeout(Some(PATIENCE)).is_ok();
                limited && exchange(stream, greeting)
            })
        }
        Endpoint::Shm { .. } | Endpoint::InProcess { .. } => false,
    }
}

fn exchange(mut stream: impl Read + Write, greeting: &Greeting) -> bool {
    if stream.write_all(greeting.octets).is_err() {
        return false;
    }
    let until = Instant::now() + PATIENCE;
    let (mut seen, mut len) = ([0; SEEN], 0);
    while Instant::now() < until {
        let Some(room) = seen.get_mut(len..).filter(|room| !room.is_empty()) else { break };
        match stream.read(room) {
            Ok(n @ 1..) => len += n,
            Ok(0) | Err(_) => break,
        }
        match (greeting.answers)(seen.get(..len).unwrap_or_default()) {
            Sniff::Yes => return true,
            Sniff::No => return false,
            Sniff::More => {}
        }
    }
    false
}
