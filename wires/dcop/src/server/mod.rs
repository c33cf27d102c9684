//! The server: applications register with it under ids, and it passes their messages on to each other.
//!
//! It stands in for the `dcopserver` of KDE 3 and Trinity: same handshake, same functions, same files. It
//! differs where that one trusts its clients: a client that keeps silent, lies about its id, does not read,
//! or sends lengths that do not fit, harms itself alone. Of one that sends faster than its receiver reads, calls
//! fail, and sends and signals are dropped, once the receiver's queue is full.
//!
//! The way through it: `router` keeps the connections' lives, `route` passes messages, `builtin` has the
//! server's own functions, `signals` the signal connections, `peers` the tables and queues; `server_socket` and
//! `program` tell the world of it.
//!
//! States (`Phase`): `Open`, until somebody asks it to end or, where it is to end alone, nobody has come for
//! a while; then `Closing`: applications are told, files are taken back, and it is over when all have left or
//! time has passed. It has no I/O: a driver brings connections, bytes and time, and asks for events.

mod builtin;
mod fields;
mod peers;
mod program;
mod route;
mod router;
mod server_socket;
mod settings;
mod signals;

pub use program::PROGRAM;
pub use settings::Settings;

use bytes::BytesMut;
use everywire_model::{Endpoint, Failure, Handle, Hub, HubEvent, PeerAddress, PeerId, SendBuffer, Violation};
use router::Router;
use server_socket::ServerSocket;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a server that is alone waits for somebody new before it ends, and then for the last to leave.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long applications may take to leave once the server is asked to end.
const GOODBYE: Duration = Duration::from_secs(1);

/// A DCOP server, without I/O on sockets.
#[derive(Debug)]
pub struct Server {
    /// The connections, and what they have to do with each other.
    router: Router,
    /// Where it listens and what it tells the world; `None` for a server that tells nobody.
    place: Option<ServerSocket>,
    /// Whether it ends when nobody is left.
    suicide: bool,
    /// Whether it is ending.
    phase: Phase,
    /// The next turn of the phase.
    turn: Option<Instant>,
    /// The driver was told that it is over.
    finished: bool,
}

/// Whether it is ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Closing,
}

impl Server {
    /// A server that writes no files: peers must know the cookie, and the driver where to listen.
    pub fn unannounced(cookie: Arc<[u8]>, settings: Settings) -> Self {
        Self {
            router: Router::new(cookie, settings),
            place: None,
            suicide: false,
            phase: Phase::Open,
            turn: None,
            finished: false,
        }
    }

    /// A server that has nothing to do, and ends at its first turn.
    fn over(settings: Settings) -> Self {
        let mut server = Self::unannounced(Arc::default(), settings);
        (server.phase, server.turn) = (Phase::Closing, Some(Instant::now()));
        server
    }

    /// A server that tells the world of itself, and takes it back at the end.
    fn announced(place: ServerSocket, settings: Settings) -> Self {
        let cookie = place.cookie();
        let mut server = Self::unannounced(cookie, settings);
        server.place = Some(place);
        server
    }

    /// The same, ending when the last application that is no daemon has left, and nobody came within 10 s.
    #[must_use]
    pub fn ending_alone(mut self) -> Self {
        self.suicide = true;
        self
    }

    /// Entries in all its tables: 0 when nobody is connected.
    pub fn entries(&self) -> usize {
        self.router.entries()
    }

    /// Says goodbye; ends when everybody has left, or after a while. Files go at once, so that nobody new
    /// finds it.
    fn end(&mut self, now: Instant, patience: Duration) {
        self.phase = Phase::Closing;
        self.turn = Some(now + patience);
        self.router.terminate();
        self.take_back();
        self.look();
    }

    /// Takes the files back, if there are any; done twice it does nothing.
    fn take_back(&mut self) {
        if let Some(place) = &mut self.place {
            place.take_back();
        }
    }

    /// Whether it is time to end. It is over when nobody with an id is left.
    fn look(&mut self) {
        if self.phase == Phase::Closing && self.router.names.is_empty() {
            self.finish();
        }
    }

    /// Told once.
    fn finish(&mut self) {
        self.turn = None;
        if !std::mem::replace(&mut self.finished, true) {
            self.router.post.events.push_back(HubEvent::Finish);
        }
    }

    /// What follows from somebody's end.
    fn left(&mut self, now: Instant) {
        if self.suicide && self.phase == Phase::Open && self.router.clients == 0 {
            self.turn = Some(now + PATIENCE);
        }
        self.look();
    }
}

impl Hub for Server {
    fn endpoints(&self) -> Vec<Endpoint> {
        self.place.iter().map(ServerSocket::endpoint).collect()
    }

    fn opened(&mut self, _bound: &[Endpoint]) -> Result<(), Failure> {
        let Some(place) = &mut self.place else { return Ok(()) };
        place.publish()?;
        // Where nobody reads it, it need not be written.
        let _ = writeln!(std::io::stdout(), "{}", place.network_id());
        Ok(())
    }

    fn connected(&mut self, id: PeerId, _peer: PeerAddress, now: Instant) {
        self.router.connected(id, now);
    }

    fn receive(
        &mut self,
        id: PeerId,
        now: Instant,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<(), Violation> {
        // DCOP carries none: what came is closed.
        handles.clear();
        let result = self.router.receive(id, now, input);
        if self.phase == Phase::Open && self.turn.is_some() && self.router.clients > 0 {
            self.turn = None;
        }
        if result.is_err() {
            self.left(now);
        }
        result
    }

    fn wanted(&self, id: PeerId) -> usize {
        let peer = self.router.peers.slot(id).and_then(|slot| self.router.peers.get(slot));
        peer.map_or(0, |peer| peer.wanted)
    }

    fn transmit(&mut self, id: PeerId) -> Option<&mut SendBuffer> {
        let Router { peers, post, .. } = &mut self.router;
        let slot = peers.slot(id)?;
        post.count(peers);
        post.sending = Some(slot);
        peers.get_mut(slot).map(|peer| &mut peer.out)
    }

    fn poll(&mut self) -> Option<HubEvent> {
        self.router.post.poll(&mut self.router.peers)
    }

    fn disconnected(&mut self, id: PeerId, now: Instant) {
        self.router.disconnected(id);
        self.left(now);
    }

    fn deadline(&self) -> Option<Instant> {
        [self.router.deadline(), self.turn].into_iter().flatten().min()
    }

    fn expire(&mut self, now: Instant) {
        self.router.expire(now);
        if self.turn.is_some_and(|turn| turn <= now) {
            match self.phase {
                Phase::Open => self.end(now, PATIENCE),
                Phase::Closing => self.finish(),
            }
        }
    }

    fn close(&mut self) {
        match self.phase {
            Phase::Open => self.end(Instant::now(), GOODBYE),
            // Asked twice: at once.
            Phase::Closing => self.finish(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.take_back();
    }
}
