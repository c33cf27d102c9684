//! A relay that stands between a client and a server and keeps what passes, so that the bytes and the
//! frames of a call can be counted. It knows nothing of what it relays.
//!
//! Each connection has two threads, one a direction. A direction is *open* until its source has closed
//! or its target takes nothing more; then it shuts both, and the other direction ends by itself. `take`
//! waits until none is open, and empties what was kept.
//!
//! Invariants: a byte is kept before it is sent on, so whoever has an answer finds the question in what
//! was kept. A stream of `RelayRecord` is one direction of one connection from its first byte, unless it was
//! still open at an earlier `take`. Memory is not bounded: a relay serves a few calls of our own
//! programs, and no stranger.

use crate::broken;
use everywire_model::Failure;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// Where a stream server listens, or is to be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelayAddress {
    /// On this port of the loopback interface.
    Tcp(u16),
    /// On this socket.
    Unix(PathBuf),
}

/// Everything that passed, each direction and each connection apart.
#[derive(Debug, Clone, Default)]
pub(crate) struct RelayRecord {
    /// One stream a direction a connection, in no particular order.
    pub(crate) streams: Vec<Vec<u8>>,
}

impl RelayRecord {
    /// Bytes in all.
    pub(crate) fn bytes(&self) -> usize {
        self.streams.iter().map(Vec::len).sum()
    }

    /// Frames in all, by a function that counts those of one stream.
    pub(crate) fn frames(&self, count: impl Fn(&[u8]) -> usize) -> usize {
        self.streams.iter().map(|stream| count(stream)).sum()
    }
}

/// A relay at work. Dropping it ends the listening; connections that are open end with their two sides.
pub(crate) struct Relay {
    /// Where it listens, with the port that was chosen.
    place: RelayAddress,
    state: Arc<State>,
}

/// `take` waits this long for connections to close once the client has ended: what both sides say at
/// the end belongs to each count.
const GOODBYES: Duration = Duration::from_secs(1);

/// What the threads of a relay share.
#[derive(Default)]
struct State {
    /// What was kept, one for each direction of each connection since the last `take`.
    passed: Mutex<Vec<Arc<Mutex<Vec<u8>>>>>,
    /// Directions of connections that have not ended.
    open: Mutex<usize>,
    /// Told of each change of `open`.
    over: Condvar,
    /// Set when the relay is dropped; the thread that accepts sees it at the next connection.
    ended: AtomicBool,
}

impl Relay {
    /// Listens at `place` (port 0: any), and connects to `server` for each connection that comes.
    ///
    /// # Errors
    /// It cannot listen there.
    pub(crate) fn new(place: &RelayAddress, server: RelayAddress) -> Result<Self, Failure> {
        let state = Arc::new(State::default());
        let refused = |error| broken(format!("the relay cannot listen: {error}"));
        let shared = Arc::clone(&state);
        let place = match place {
            RelayAddress::Tcp(port) => {
                let listener = TcpListener::bind(("127.0.0.1", *port)).map_err(refused)?;
                let port = listener.local_addr().map_err(refused)?.port();
                thread::spawn(move || {
                    shared.accept(listener.incoming().map(|c| c.map(Stream::Tcp)), &server)
                });
                RelayAddress::Tcp(port)
            }
            RelayAddress::Unix(path) => {
                let listener = UnixListener::bind(path).map_err(refused)?;
                thread::spawn(move || {
                    shared.accept(listener.incoming().map(|c| c.map(Stream::Unix)), &server)
                });
                RelayAddress::Unix(path.clone())
            }
        };
        Ok(Self { place, state })
    }

    /// Where it listens.
    pub(crate) fn place(&self) -> &RelayAddress {
        &self.place
    }

    /// What passed since the last time. To be asked when the client has ended, or its connections are
    /// cut in two.
    pub(crate) fn take(&self) -> RelayRecord {
        // What the two sides say at the end is in each count, or it would not vanish in their difference.
        if let Ok(open) = self.state.open.lock() {
            drop(self.state.over.wait_timeout_while(open, GOODBYES, |open| *open > 0));
        }
        let Ok(mut streams) = self.state.passed.lock() else { return RelayRecord::default() };
        let streams =
            streams.drain(..).filter_map(|stream| stream.lock().ok().map(|bytes| bytes.clone())).collect();
        RelayRecord { streams }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        // Wakes the acceptor, which then sees that it is over.
        drop(Stream::connect(&self.place));
    }
}

impl State {
    /// The thread that accepts. A connection whose server cannot be reached is closed at once.
    fn accept(
        self: &Arc<Self>,
        incoming: impl Iterator<Item = std::io::Result<Stream>>,
        server: &RelayAddress,
    ) {
        for client in incoming {
            if self.ended.load(Ordering::SeqCst) {
                return;
            }
            let (Ok(client), Ok(server)) = (client, Stream::connect(server)) else { continue };
            let (Some(client_twin), Some(server_twin)) = (client.twin(), server.twin()) else { continue };
            for (from, to) in [(client, server), (server_twin, client_twin)] {
                let kept = Arc::new(Mutex::new(Vec::new()));
                if let Ok(mut streams) = self.passed.lock() {
                    streams.push(Arc::clone(&kept));
                }
                self.count(1);
                let state = Arc::clone(self);
                thread::spawn(move || {
                    pass(from, to, &kept);
                    state.count(-1);
                });
            }
        }
    }

    /// One direction more, or one less.
    fn count(&self, more: isize) {
        if let Ok(mut open) = self.open.lock() {
            *open = open.saturating_add_signed(more);
            self.over.notify_all();
        }
    }
}

/// One direction, until an end of it closes.
fn pass(mut from: Stream, mut to: Stream, kept: &Mutex<Vec<u8>>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(n) = from.reader().read(&mut buffer) {
        let bytes = buffer.get(..n).unwrap_or_default();
        if n == 0 {
            break;
        }
        if let Ok(mut kept) = kept.lock() {
            kept.extend_from_slice(bytes);
        }
        if to.writer().write_all(bytes).is_err() {
            break;
        }
    }
    // The other direction ends by itself.
    to.shut(Shutdown::Write);
    from.shut(Shutdown::Read);
}

/// A connection of either kind.
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn connect(place: &RelayAddress) -> std::io::Result<Self> {
        match place {
            RelayAddress::Tcp(port) => {
                let stream = TcpStream::connect(("127.0.0.1", *port))?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
            RelayAddress::Unix(path) => UnixStream::connect(path).map(Self::Unix),
        }
    }

    /// A second descriptor of the same connection: one direction reads it, the other one writes it.
    fn twin(&self) -> Option<Self> {
        match self {
            Self::Tcp(stream) => {
                stream.set_nodelay(true).ok()?;
                stream.try_clone().ok().map(Self::Tcp)
            }
            Self::Unix(stream) => stream.try_clone().ok().map(Self::Unix),
        }
    }

    fn reader(&mut self) -> &mut dyn Read {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
        }
    }

    fn shut(&self, how: Shutdown) {
        // A stream that the other side has shut already is as good.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(how),
            Self::Unix(stream) => stream.shutdown(how),
        };
    }
}

/// A port of the loopback interface for a server that has to be told one.
///
/// # Errors
/// There is none.
pub(crate) fn free_port() -> Result<u16, Failure> {
    everywire_peers::free_port().map_err(|error| broken(format!("no free port: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_and_are_counted() {
        let server = Echo::start();
        let relay = Relay::new(&RelayAddress::Tcp(0), RelayAddress::Tcp(server.0)).unwrap();
        let RelayAddress::Tcp(port) = relay.place() else { panic!() };
        let mut client = TcpStream::connect(("127.0.0.1", *port)).unwrap();
        for _ in 0..10 {
            client.write_all(b"question").unwrap();
            let mut answer = [0; 3];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"yes");
        }
        drop(client);
        let passed = relay.take();
        assert_eq!((passed.streams.len(), passed.bytes()), (2, 110));
        assert_eq!(
            passed.frames(|stream| if stream[0] == b'q' { stream.len() / 8 } else { stream.len() / 3 }),
            20
        );
    }

    struct Echo(u16);

    impl Echo {
        /// Answers each eight bytes by three.
        fn start() -> Self {
            let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            thread::spawn(move || {
                for stream in listener.incoming() {
                    let mut stream = stream.unwrap();
                    let mut question = [0; 8];
                    while stream.read_exact(&mut question).is_ok() {
                        stream.write_all(b"yes").unwrap();
                    }
                }
            });
            Self(port)
        }
    }
}
