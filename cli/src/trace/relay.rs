//! A relay between clients and a server, which prints what passes.
//!
//! Octets are passed on as they come, and explained on another thread. Each connection has two threads,
//! one a direction; they send what they read as `Event`s to the one thread that explains (`Screen`),
//! through a channel of `BACKLOG`, so a screen that is too slow slows the relay down and does not fill
//! the memory.
//!
//! States of a direction in `Screen`: the wire is not known yet (octets are held until they tell it);
//! known; ended. A connection is forgotten when both of its directions have ended. A message that tells its length is explained
//! again only when all of it is there (`Direction::wanted`), so that a large one costs no more for each of its octets.
//!
//! Invariants: a chunk is told before it is sent on, so no answer is shown before its question. Of one
//! message at most `MOST` octets are held, of the messages that later ones build on `AGREED`; beyond
//! that octets are skipped, and a note says so where whole messages are lost. What is passed on is
//! never changed.

use super::seen_message::SeenMessage;
use super::show::{MessagePrinter, Narrator};
use super::{StreamProtocol, wire_of};
use crate::output::note;
use everywire::model::wire::MessageListing;
use everywire::model::{Endpoint, Wire};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, SystemTime};

/// Events that may wait to be explained before the relay waits for the screen.
const BACKLOG: usize = 1024;
/// Octets of one message that are kept to explain it. A larger one passes unexplained.
const MOST: usize = 256 << 20;
/// Octets a direction of messages that are kept because later ones may build on them, such as a
/// greeting or a dictionary.
const AGREED: usize = 64 << 10;

/// Listens at the endpoint; the one that is returned has the port that was bound.
///
/// # Errors
/// It is no socket, or somebody else has it.
pub(crate) fn listen(endpoint: &Endpoint) -> io::Result<(Listener, Endpoint)> {
    match endpoint {
        Endpoint::Tcp { host, port } => {
            let socket = TcpListener::bind((host.as_str(), *port))?;
            let port = socket.local_addr()?.port();
            Ok((Listener::Tcp(socket), Endpoint::Tcp { host: host.clone(), port }))
        }
        Endpoint::Unix { path } => {
            Ok((Listener::Unix(UnixListener::bind_addr(&unix(path)?)?), endpoint.clone()))
        }
        _ => Err(unsuitable(endpoint)),
    }
}

/// Starts to relay to `server`, and returns at once: the threads go on until the process ends.
pub(crate) fn run(listener: Listener, server: Endpoint, telling: MessagePrinter) -> io::Result<()> {
    let (events, incoming) = sync_channel(BACKLOG);
    let there = server.to_string();
    std::thread::Builder::new()
        .name("explain".into())
        .spawn(move || Screen::new(telling, there).show(&incoming))?;
    std::thread::Builder::new().name("accept".into()).spawn(move || accept(&listener, &server, &events))?;
    Ok(())
}

/// A listening socket.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connected socket.
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Something that happened on a connection, which has a number from 1. `outward` is from client to
/// server.
enum Event {
    Opened { connection: usize, peer: String },
    Chunk { connection: usize, outward: bool, time: Duration, bytes: Vec<u8> },
    Ended { connection: usize, outward: bool },
    Failed { connection: usize, why: String },
}

/// The thread that accepts. A client whose server cannot be reached is closed, and the screen says why.
fn accept(listener: &Listener, server: &Endpoint, events: &SyncSender<Event>) {
    for connection in 1.. {
        let accepted = match listener {
            Listener::Tcp(socket) => {
                socket.accept().map(|(stream, peer)| (Stream::Tcp(stream), peer.to_string()))
            }
            Listener::Unix(socket) => {
                socket.accept().map(|(stream, _)| (Stream::Unix(stream), "unix".to_owned()))
            }
        };
        let (client, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                note(&format!("accepting failed: {error}"));
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
        };
        tell(events, Event::Opened { connection, peer });
        if let Err(error) = join(connection, client, server, events) {
            tell(events, Event::Failed { connection, why: format!("cannot connect to {server}: {error}") });
        }
    }
}

/// Connects to the server, and starts the two threads of a connection.
fn join(connection: usize, client: Stream, server: &Endpoint, events: &SyncSender<Event>) -> io::Result<()> {
    let server = Stream::connect(server)?;
    client.prompt();
    server.prompt();
    let (client_too, server_too) = (client.try_clone()?, server.try_clone()?);
    let (events, events_too) = (events.clone(), events.clone());
    let named = || std::thread::Builder::new().name(format!("relay {connection}"));
    named().spawn(move || pass(connection, true, client, server, &events))?;
    named().spawn(move || pass(connection, false, server_too, client_too, &events_too))?;
    Ok(())
}

/// One direction, until its source ends or its target takes nothing more. It then ends the other half
/// of its target, as the source did.
fn pass(connection: usize, outward: bool, mut from: Stream, mut to: Stream, events: &SyncSender<Event>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let got = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(got) => got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let bytes = buffer.get(..got).unwrap_or_default();
        // Told first, so that no answer is told of before its question.
        tell(events, Event::Chunk { connection, outward, time, bytes: bytes.to_vec() });
        if to.write_all(bytes).is_err() {
            from.shutdown(Shutdown::Read);
            break;
        }
    }
    to.shutdown(Shutdown::Write);
    tell(events, Event::Ended { connection, outward });
}

/// Sends an event to the screen; waits if that is too far behind.
fn tell(events: &SyncSender<Event>, event: Event) {
    // The screen outlives the connections; if it is gone, so is the program.
    let _ = events.send(event);
}

impl Stream {
    fn connect(endpoint: &Endpoint) -> io::Result<Self> {
        match endpoint {
            Endpoint::Tcp { host, port } => TcpStream::connect((host.as_str(), *port)).map(Self::Tcp),
            Endpoint::Unix { path } => UnixStream::connect_addr(&unix(path)?).map(Self::Unix),
            _ => Err(unsuitable(endpoint)),
        }
    }

    fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
        }
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Unix(stream) => stream.write_all(bytes),
        }
    }

    /// Small messages are not to wait for others: a relay must not change when they arrive.
    fn prompt(&self) {
        if let Self::Tcp(stream) = self {
            // Only slower, if refused.
            let _ = stream.set_nodelay(true);
        }
    }

    fn shutdown(&self, how: Shutdown) {
        // The other side may have done so first.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(how),
            Self::Unix(stream) => stream.shutdown(how),
        };
    }
}

/// A path, or with `@` in front an abstract name.
fn unix(path: &str) -> io::Result<UnixAddr> {
    match path.strip_prefix('@') {
        Some(name) => UnixAddr::from_abstract_name(name),
        None => UnixAddr::from_pathname(path),
    }
}

/// The endpoint is no socket.
fn unsuitable(endpoint: &Endpoint) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("{endpoint} has no socket that a relay could sit on"))
}

/// Explains what passes; owned by its thread.
struct Screen {
    narrator: Narrator,
    server: String,
    connections: HashMap<usize, Conversation>,
}

/// A connection as far as it is explained.
struct Conversation {
    peer: String,
    /// Known once the first octets of either direction tell it.
    wire: Option<&'static dyn Wire>,
    outward: Direction,
    inward: Direction,
}

/// One direction of a connection, as far as it is explained.
#[derive(Default)]
struct Direction {
    /// Octets that are no whole message yet.
    held: Vec<u8>,
    /// How many octets have to be held before anything is explained again.
    wanted: usize,
    /// Octets that passed before them.
    before: u64,
    /// The messages that were no calls, and those that taught words: what they say explains the others.
    agreed: Vec<u8>,
    ended: bool,
}

impl Screen {
    fn new(telling: MessagePrinter, server: String) -> Self {
        Self { narrator: Narrator::new(telling), server, connections: HashMap::new() }
    }

    /// Shows events until nobody sends any more.
    fn show(&mut self, events: &Receiver<Event>) {
        while let Ok(event) = events.recv() {
            match event {
                Event::Opened { connection, peer } => {
                    note(&format!("#{connection} opened by {peer}"));
                    let (outward, inward) = (Direction::default(), Direction::default());
                    self.connections.insert(connection, Conversation { peer, wire: None, outward, inward });
                }
                Event::Chunk { connection, outward, time, bytes } => {
                    self.chunk(connection, outward, time, &bytes)
                }
                Event::Ended { connection, outward } => self.ended(connection, outward),
                Event::Failed { connection, why } => {
                    note(&format!("#{connection} {why}"));
                    self.connections.remove(&connection);
                }
            }
        }
    }

    /// Takes octets of a direction, and tells the messages that are whole by now. The wire explains
    /// from the beginning of what is held, with the messages in front that later ones build on.
    fn chunk(&mut self, connection: usize, outward: bool, time: Duration, bytes: &[u8]) {
        let Some(conversation) = self.connections.get_mut(&connection) else { return };
        let Conversation { peer, wire, outward: there, inward: back } = conversation;
        let (direction, from, to) = if outward {
            (there, peer.as_str(), self.server.as_str())
        } else {
            (back, self.server.as_str(), peer.as_str())
        };
        direction.held.extend_from_slice(bytes);
        if direction.held.len() < direction.wanted.min(MOST) {
            return;
        }
        let arrow = if outward { "->" } else { "<-" };
        let wire = match (*wire, wire_of(&direction.held)) {
            (Some(wire), _) => wire,
            (None, StreamProtocol::Wire(found)) => *wire.insert(found),
            (None, StreamProtocol::NotYet) => return,
            (None, StreamProtocol::Nothing) => {
                note(&format!("#{connection} {arrow} {} octets of no known wire", direction.held.len()));
                return direction.skip(direction.held.len());
            }
        };
        let known = direction.agreed.len();
        let mut listing = if known == 0 {
            wire.explain(&direction.held)
        } else {
            wire.explain(&[direction.agreed.as_slice(), &direction.held].concat())
        };
        let whole = direction.held.len() - listing.rest.min(direction.held.len());
        listing.messages.retain(|explained| explained.offset >= known);
        for explained in &mut listing.messages {
            explained.offset -= known;
            let end = explained.offset.saturating_add(explained.len);
            if end > whole {
                break;
            }
            self.narrator.tell(&SeenMessage {
                time,
                connection,
                outward,
                from,
                to,
                wire: wire.name(),
                offset: direction.before + explained.offset as u64,
                explained,
                bytes: direction.held.get(explained.offset..end).unwrap_or_default(),
            });
            let octets = direction.held.get(explained.offset..end).unwrap_or_default();
            if (teaches(explained) || (outward && !is_call(explained)))
                && direction.agreed.len() + octets.len() <= AGREED
            {
                direction.agreed.extend_from_slice(octets);
            }
        }
        direction.skip(whole);
        direction.wanted = direction.held.len().saturating_add(listing.lacks);
        if direction.held.len() > MOST {
            note(&format!("#{connection} {arrow} a message of more than {MOST} octets is not explained"));
            direction.skip(direction.held.len());
            direction.wanted = 0;
        }
    }

    /// A direction has ended.
    fn ended(&mut self, connection: usize, outward: bool) {
        let Some(conversation) = self.connections.get_mut(&connection) else { return };
        let direction = if outward { &mut conversation.outward } else { &mut conversation.inward };
        direction.ended = true;
        let (arrow, who) = if outward { ("->", "client") } else { ("<-", "server") };
        let rest = direction.held.len();
        let rest =
            if rest > 0 { format!(", {rest} octets at the end are no whole message") } else { String::new() };
        note(&format!("#{connection} {arrow} ended by the {who}{rest}"));
        if conversation.outward.ended && conversation.inward.ended {
            self.connections.remove(&connection);
        }
    }
}

/// Whether a message is a call, by the parts that only calls have.
fn is_call(explained: &MessageListing) -> bool {
    explained
        .parts
        .iter()
        .any(|part| matches!(part.name, "operation" | "operation number" | "member" | "action"))
}

/// Whether a message has words that later ones name by number.
fn teaches(explained: &MessageListing) -> bool {
    explained.parts.iter().any(|part| part.name == "session word")
}

impl Direction {
    /// Lets go of octets that were explained, or will not be.
    fn skip(&mut self, count: usize) {
        self.held.drain(..count.min(self.held.len()));
        self.before += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Style;
    use crate::trace::{select::Selection, show::Detail, values::KnownTypes};
    use everywire::Node;
    use everywire::model::Contract;

    /// The octets that a direction waits for when so many have come, and when the rest has.
    fn wanted(message: &[u8], first: usize) -> (usize, usize) {
        let telling = MessagePrinter {
            detail: Detail { level: 0, json: false, style: Style::default() },
            selection: Selection::default(),
            knowledge: KnownTypes::of(Contract::default(), Node::new()),
            writer: None,
        };
        let mut screen = Screen::new(telling, "there".to_owned());
        let (outward, inward) = (Direction::default(), Direction::default());
        screen.connections.insert(1, Conversation { peer: "here".to_owned(), wire: None, outward, inward });
        screen.chunk(1, true, Duration::ZERO, &message[..first]);
        let direction = &screen.connections[&1].outward;
        let before = direction.wanted + usize::try_from(direction.before).unwrap();
        screen.chunk(1, true, Duration::ZERO, &message[first..]);
        assert!(screen.connections[&1].outward.held.is_empty());
        (before, screen.connections[&1].outward.wanted)
    }

    #[test]
    fn a_large_message_is_explained_when_all_of_it_is_there() {
        const SIZE: usize = 100_000;
        let size = u32::try_from(SIZE).unwrap().to_be_bytes();
        let body = vec![0; SIZE];
        let giop = [b"GIOP\x01\x02\0\x00".as_slice(), &size, &body].concat();
        let dcop = [b"\0\x01\x01\0\0\0\0\0\x01\x01\0\0".as_slice(), &size, &[0; 4], &body].concat();
        let length = format!("POST /a HTTP/1.1\r\nContent-Length: {SIZE}\r\n\r\n");
        let http = [length.as_bytes(), &body].concat();
        for message in [&giop, &dcop, &http] {
            assert_eq!(wanted(message, 5000), (message.len(), 0), "{:?}", &message[..12]);
        }
    }
}
