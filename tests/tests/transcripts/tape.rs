//! The recorder: a relay between a client and a server, and the octets that pass, in the order in which they pass.
//!
//! Invariant: octets are noted before they are passed on. A reply therefore stands after its request, on one connection and across
//! several: who answers has first been given what it answers.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, OnceLock};

use crate::common::foreign::PATIENCE;

/// What passed.
#[derive(Clone, Default)]
pub struct Tape(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    recorded: Recorded,
    stopped: bool,
}

/// All that passed, of all connections.
#[derive(Clone, Default)]
pub struct Recorded {
    pub connections: Vec<Connection>,
    pub events: Vec<Event>,
    /// The first event that is shown: what was before is a greeting that another scene shows.
    pub begin: usize,
    /// How what is shown is ordered.
    pub order: Order,
    /// Ports of relays and servers, in the order in which they were opened.
    pub ports: Vec<u16>,
}

impl Recorded {
    fn saying(&self, wire: &dyn everywire::model::Wire, word: &str) -> usize {
        let says = |octets: &[u8]| {
            wire.explain(octets).messages.iter().filter(|said| said.summary.contains(word)).count()
        };
        self.connections.iter().map(|there| says(&there.outward) + says(&there.inward)).sum()
    }

    fn ends(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::Ended { .. })).count()
    }

    fn passed(&self, connection: usize, outward: bool) -> usize {
        let there = self.connections.get(connection);
        there.map_or(0, |there| if outward { there.outward.len() } else { there.inward.len() })
    }
}

/// How messages are ordered that do not depend on each other.
#[derive(Clone, Copy, Default)]
pub enum Order {
    /// As they passed.
    #[default]
    Passed,
    /// One connection after the other, and on each of them answers behind their questions: what happens at the same time is independent.
    ByConnection,
    /// On each connection the caller's first: it asks several things before it is answered.
    ByDirection,
}

/// One connection.
#[derive(Clone)]
pub struct Connection {
    pub caller: &'static str,
    pub callee: &'static str,
    /// What the caller sent.
    pub outward: Vec<u8>,
    /// What the callee sent.
    pub inward: Vec<u8>,
}

/// Something that passed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Opened {
        connection: usize,
    },
    /// Octets; `end` is how many of this direction have passed with them.
    Octets {
        connection: usize,
        outward: bool,
        end: usize,
    },
    Ended {
        connection: usize,
        outward: bool,
    },
}

impl Event {
    /// Its connection, and whether the caller did it.
    pub fn place(self) -> (usize, bool) {
        match self {
            Self::Opened { connection } => (connection, true),
            Self::Octets { connection, outward, .. } | Self::Ended { connection, outward } => {
                (connection, outward)
            }
        }
    }
}

/// A place that leads to a server, whose octets are recorded.
pub struct Relay {
    pub port: u16,
    pub path: PathBuf,
    server: Arc<OnceLock<Server>>,
    tape: Tape,
}

enum Server {
    Port(u16),
    Path(PathBuf),
}

impl Relay {
    /// Leads to a port from now on.
    pub fn to_port(&self, port: u16) {
        self.tape.0.state.lock().unwrap().recorded.ports.push(port);
        assert!(self.server.set(Server::Port(port)).is_ok(), "it leads somewhere");
    }

    /// Leads to a socket from now on.
    pub fn to_path(&self, path: &Path) {
        assert!(self.server.set(Server::Path(path.to_owned())).is_ok(), "it leads somewhere");
    }

    /// Leads to the port in an address.
    pub fn to(&self, address: &str) {
        let port = address.split(['/', '?', '#']).find_map(|part| part.rsplit_once(':')?.1.parse().ok());
        self.to_port(port.unwrap_or_else(|| panic!("no port in {address}")));
    }
}

impl Tape {
    /// A relay at a port that the system chooses.
    pub fn relay(&self, caller: &'static str, callee: &'static str) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        self.0.state.lock().unwrap().recorded.ports.push(port);
        let server = Arc::<OnceLock<Server>>::default();
        let (tape, there) = (self.clone(), Arc::clone(&server));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let _ = client.set_nodelay(true);
                let Some(Server::Port(port)) = there.get() else { continue };
                let Ok(server) = TcpStream::connect(("127.0.0.1", *port)) else { continue };
                let _ = server.set_nodelay(true);
                tape.join(caller, callee, client, server, TcpStream::try_clone, |stream, how| {
                    let _ = stream.shutdown(how);
                });
            }
        });
        Relay { port, path: PathBuf::new(), server, tape: self.clone() }
    }

    /// A relay at a Unix socket.
    pub fn relay_at(&self, path: &Path, caller: &'static str, callee: &'static str) -> Relay {
        self.relay_for(path, &[caller], callee)
    }

    /// The same for several callers, in the order in which they come; the last one may come again.
    pub fn relay_for(&self, path: &Path, callers: &[&'static str], callee: &'static str) -> Relay {
        let callers = callers.to_vec();
        let listener = UnixListener::bind(path).expect("a socket");
        let server = Arc::<OnceLock<Server>>::default();
        let (tape, there) = (self.clone(), Arc::clone(&server));
        std::thread::spawn(move || {
            for (number, client) in listener.incoming().flatten().enumerate() {
                let caller = callers[number.min(callers.len() - 1)];
                let Some(Server::Path(path)) = there.get() else { continue };
                let Ok(server) = UnixStream::connect(path) else { continue };
                tape.join(caller, callee, client, server, UnixStream::try_clone, |stream, how| {
                    let _ = stream.shutdown(how);
                });
            }
        });
        Relay { port: 0, path: path.to_owned(), server, tape: self.clone() }
    }

    fn join<S: Read + Write + Send + 'static>(
        &self,
        caller: &'static str,
        callee: &'static str,
        client: S,
        server: S,
        clone: fn(&S) -> std::io::Result<S>,
        shutdown: fn(&S, Shutdown),
    ) {
        let connection = self.open(caller, callee);
        let (client_too, server_too) = (clone(&client).expect("a handle"), clone(&server).expect("a handle"));
        for (outward, mut from, mut to) in [(true, client, server_too), (false, server, client_too)] {
            let tape = self.clone();
            std::thread::spawn(move || {
                let mut room = vec![0; 1 << 16];
                loop {
                    let len = from.read(&mut room).unwrap_or(0);
                    if len == 0 {
                        break;
                    }
                    tape.note(connection, outward, &room[..len]);
                    if to.write_all(&room[..len]).is_err() {
                        break;
                    }
                }
                tape.end(connection, outward);
                shutdown(&to, Shutdown::Write);
            });
        }
    }

    fn open(&self, caller: &'static str, callee: &'static str) -> usize {
        let mut state = self.0.state.lock().unwrap();
        let connection = state.recorded.connections.len();
        let opened = Connection { caller, callee, outward: Vec::new(), inward: Vec::new() };
        state.recorded.connections.push(opened);
        if !state.stopped {
            state.recorded.events.push(Event::Opened { connection });
        }
        connection
    }

    fn note(&self, connection: usize, outward: bool, octets: &[u8]) {
        let mut state = self.0.state.lock().unwrap();
        if state.stopped {
            return;
        }
        let there = &mut state.recorded.connections[connection];
        let direction = if outward { &mut there.outward } else { &mut there.inward };
        direction.extend_from_slice(octets);
        let end = direction.len();
        state.recorded.events.push(Event::Octets { connection, outward, end });
        self.0.changed.notify_all();
    }

    fn end(&self, connection: usize, outward: bool) {
        let mut state = self.0.state.lock().unwrap();
        if !state.stopped {
            state.recorded.events.push(Event::Ended { connection, outward });
        }
        self.0.changed.notify_all();
    }

    /// What passed until now is not shown.
    pub fn begin(&self) {
        let mut state = self.0.state.lock().unwrap();
        state.recorded.begin = state.recorded.events.len();
    }

    /// Messages of this scene do not all depend on each other, and are ordered so.
    pub fn order(&self, order: Order) {
        self.0.state.lock().unwrap().recorded.order = order;
    }

    /// Waits until all connections have as many messages of the one side as of the other: each is answered.
    #[track_caller]
    pub fn wait_until_answered(&self, wire: &str) {
        let wire = everywire::wires::named(wire).expect("a wire");
        let count = |octets: &[u8]| wire.explain(octets).messages.len();
        self.wait("an answer to each message", |recorded| {
            recorded.connections.iter().all(|there| count(&there.outward) == count(&there.inward))
        });
    }

    /// Waits until so many messages passed whose summary has this word.
    #[track_caller]
    pub fn wait_for_words(&self, wire: &str, word: &str, count: usize) {
        let wire = everywire::wires::named(wire).expect("a wire");
        self.wait(word, |recorded| recorded.saying(wire, word) >= count);
    }

    /// How many messages passed whose summary has this word.
    pub fn words(&self, wire: &str, word: &str) -> usize {
        let wire = everywire::wires::named(wire).expect("a wire");
        self.0.state.lock().unwrap().recorded.saying(wire, word)
    }

    /// What passes from now on is not recorded.
    pub fn stop(&self) {
        self.0.state.lock().unwrap().stopped = true;
    }

    /// Waits until something has passed.
    #[track_caller]
    pub fn wait(&self, what: &str, holds: impl Fn(&Recorded) -> bool) {
        let state = self.0.state.lock().unwrap();
        let waited = self.0.changed.wait_timeout_while(state, PATIENCE, |state| !holds(&state.recorded));
        assert!(!waited.unwrap().1.timed_out(), "in vain: {what}");
    }

    /// Octets that have passed in a direction of a connection.
    pub fn passed(&self, connection: usize, outward: bool) -> usize {
        self.0.state.lock().unwrap().recorded.passed(connection, outward)
    }

    /// Waits until more than so many have passed.
    #[track_caller]
    pub fn wait_past(&self, connection: usize, outward: bool, before: usize) {
        self.wait("a message", |recorded| recorded.passed(connection, outward) > before);
    }

    /// Waits until both sides of all connections have ended.
    #[track_caller]
    pub fn wait_for_ends(&self) {
        self.wait("the end of all connections", |recorded| recorded.ends() == 2 * recorded.connections.len());
    }

    /// Sides of connections that have ended.
    pub fn ends(&self) -> usize {
        self.0.state.lock().unwrap().recorded.ends()
    }

    /// Waits until so many more have ended.
    #[track_caller]
    pub fn wait_for_more_ends(&self, before: usize, more: usize) {
        self.wait("the end of a connection", |recorded| recorded.ends() >= before + more);
    }

    /// All that passed.
    pub fn recorded(&self) -> Recorded {
        let state = self.0.state.lock().unwrap();
        assert!(state.stopped, "a scene says where it stops");
        state.recorded.clone()
    }
}
