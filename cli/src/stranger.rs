//! Who answers at an endpoint where another wire was expected.
//!
//! A server that is greeted in another protocol than its own mostly closes the connection without a word. So when a wire's
//! client gets nowhere, each wire's greeting is tried on a connection of its own, and the answer tells. `everywire status` asks so at once.

use crate::trouble::Trouble;
use everywire::model::wire::Greeting;
use everywire::model::{Endpoint, Reference, Sniff, Wire};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};
use std::time::{Duration, Instant};

/// How long a server may take to accept, and to answer a greeting.
const PATIENCE: Duration = Duration::from_millis(500);
/// The most octets of an answer that are looked at.
const SEEN: usize = 1024;
/// Fields of text that tell what a server is.
const TELLING: [&str; 3] = ["server:", "x-powered-by:", "via:"];

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
    if matches!(endpoint, Endpoint::Shm { .. } | Endpoint::InProcess { .. }) {
        return None;
    }
    let answer = who(everywire::wires::named(own), endpoint)?;
    (answer.wire.name() != own).then_some(answer.greeting)
}

/// A server that answered a greeting.
pub(crate) struct Answer {
    pub(crate) wire: &'static dyn Wire,
    pub(crate) greeting: &'static Greeting,
    /// From the connection to the answer.
    pub(crate) elapsed: Duration,
    /// How it began.
    octets: Vec<u8>,
}

impl Answer {
    /// What it says of itself, for people: the wire's words for its first message; of text, the lines that tell what it is.
    pub(crate) fn said(&self) -> Vec<String> {
        let text = self.octets.iter().all(|octet| matches!(octet, b'\t' | b'\r' | b'\n' | b' '..=b'~'));
        if text {
            let text = String::from_utf8_lossy(&self.octets);
            let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let first = lines.next().map(str::to_owned);
            let more = lines.take_while(|line| line.contains(':'));
            let named = |line: &&str| TELLING.iter().any(|name| line.to_ascii_lowercase().starts_with(name));
            return first.into_iter().chain(more.filter(named).map(str::to_owned)).collect();
        }
        self.wire.explain(&self.octets).messages.into_iter().map(|message| message.summary).take(1).collect()
    }
}

/// Which protocol is spoken at an endpoint: that of the wire that is expected is tried first.
pub(crate) fn who(expected: Option<&'static dyn Wire>, endpoint: &Endpoint) -> Option<Answer> {
    let is_expected =
        |wire: &&&'static dyn Wire| expected.is_some_and(|expected| expected.name() == wire.name());
    let (mine, others): (Vec<_>, Vec<_>) = everywire::wires::ALL.iter().partition(is_expected);
    let each = mine.into_iter().chain(others);
    each.flat_map(|wire: &&'static dyn Wire| wire.greetings().iter().map(|greeting| (*wire, greeting)))
        .find_map(|(wire, greeting)| answered(endpoint, wire, greeting))
}

/// What a server says to this greeting, if it answers as one of its protocol does.
fn answered(endpoint: &Endpoint, wire: &'static dyn Wire, greeting: &'static Greeting) -> Option<Answer> {
    let stream = connect(endpoint, PATIENCE).ok()?;
    let begun = Instant::now();
    let octets = match &stream {
        Stream::Tcp(stream) => {
            stream.set_read_timeout(Some(PATIENCE)).is_ok().then(|| exchange(stream, greeting))
        }
        Stream::Unix(stream) => {
            stream.set_read_timeout(Some(PATIENCE)).is_ok().then(|| exchange(stream, greeting))
        }
    };
    let (octets, elapsed) = octets.flatten()?;
    Some(Answer { wire, greeting, elapsed: elapsed.saturating_duration_since(begun), octets })
}

/// A connection.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Connects, without a word.
pub(crate) fn connect(endpoint: &Endpoint, patience: Duration) -> io::Result<Stream> {
    match endpoint.stream() {
        Endpoint::Tcp { host, port } => {
            let mut last = io::Error::other("the name of the host leads to no address");
            for address in (host.as_str(), *port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, patience) {
                    Ok(stream) => return Ok(Stream::Tcp(stream)),
                    Err(error) => last = error,
                }
            }
            Err(last)
        }
        // Shared memory is set up over a socket.
        Endpoint::Unix { path } | Endpoint::Shm { path } => {
            let address = match path.strip_prefix('@') {
                Some(name) => UnixAddr::from_abstract_name(name),
                None => UnixAddr::from_pathname(path),
            };
            UnixStream::connect_addr(&address?).map(Stream::Unix)
        }
        _ => Err(io::Error::other("it is in a process of its own")),
    }
}

/// The beginning of an answer, and when it was known to be one.
fn exchange(mut stream: impl Read + Write, greeting: &Greeting) -> Option<(Vec<u8>, Instant)> {
    stream.write_all(greeting.octets).ok()?;
    let until = Instant::now() + PATIENCE;
    let (mut seen, mut len) = ([0; SEEN], 0);
    while Instant::now() < until {
        let room = seen.get_mut(len..).filter(|room| !room.is_empty())?;
        match stream.read(room) {
            Ok(n @ 1..) => len += n,
            Ok(0) | Err(_) => return None,
        }
        let octets = seen.get(..len).unwrap_or_default();
        match (greeting.answers)(octets) {
            Sniff::Yes => return Some((octets.to_vec(), Instant::now())),
            Sniff::No => return None,
            Sniff::More => {}
        }
    }
    None
}
