//! A relay between Unix sockets that breaks connections: it splits writes into single octets, delays them, keeps them, ends
//! one direction, or drops the connection after so many octets of either. A calm one does so only when it is told to.
//!
//! A direction is *passed on* until its plan or the relay ends the connection, or it is *kept*: nothing of it arrives any more. While the relay
//! is *muted*, what servers say waits, and is lost if the connection is cut meanwhile. No octet is passed on twice or out of order.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Numbers that depend on the seed alone (Marsaglia's xorshift).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        // Zero would stay zero, and small seeds begin alike.
        let mut random = Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).max(1));
        (0..8).for_each(|_| {
            let _ = random.next();
        });
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number less than `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end.max(1)
    }
}

/// Octets of one direction after which a connection ends at the latest, or up to twice as many.
const LIFE: u64 = 2_000;

/// What happens to one direction of a connection.
#[derive(Clone, Copy)]
struct Plan {
    /// Octets written at a time.
    piece: usize,
    /// Before each write.
    delay: Duration,
    /// After so many octets the connection is dropped.
    cut: Option<u64>,
    /// After so many octets nothing is passed on any more, and the connection stays.
    keep: Option<u64>,
    /// Only this direction is ended when it is cut.
    half: bool,
}

impl Plan {
    const CALM: Self = Self { piece: 1 << 16, delay: Duration::ZERO, cut: None, keep: None, half: false };

    fn pair(random: &mut Random) -> [Self; 2] {
        let mut plans = [Self::CALM; 2];
        for plan in &mut plans {
            match random.below(4) {
                0 => plan.piece = 1,
                1 => plan.piece = 1 + usize::try_from(random.below(40)).unwrap_or(0),
                _ => {}
            }
            if random.below(4) == 0 {
                plan.delay = Duration::from_micros(random.below(1500));
            }
        }
        // Within the greeting, among the first calls, or later.
        let near = [200, 2_000, 20_000][usize::try_from(random.below(3)).unwrap_or(0)];
        let place = Some(1 + random.below(near));
        let plan = &mut plans[usize::try_from(random.below(2)).unwrap_or(0)];
        match random.below(8) {
            0 => plan.keep = place,
            1 => (plan.cut, plan.half) = (place, true),
            _ => plan.cut = place,
        }
        // None lives for ever, so that each run has many of them; also one that keeps what it gets.
        for plan in &mut plans {
            let life = LIFE + random.below(LIFE);
            plan.cut.get_or_insert(life);
        }
        plans
    }
}

/// The relay; it ends with this value.
pub struct Relay {
    path: PathBuf,
    state: Arc<State>,
    accepting: Option<JoinHandle<()>>,
}

struct State {
    over: AtomicBool,
    calm: AtomicBool,
    broken: AtomicU64,
    connections: AtomicU64,
    open: Mutex<Vec<UnixStream>>,
    /// Octets that went to the server.
    up: AtomicU64,
    /// Whether nothing goes to the client.
    muted: Mutex<bool>,
    unmuted: Condvar,
}

impl Relay {
    /// Listens at one socket and leads to another.
    pub fn start(between: &Path, behind: &Path, seed: u64) -> Self {
        Self::begin(between, behind, seed, false)
    }

    /// The same, and passes on everything until it is told otherwise.
    pub fn calm(between: &Path, behind: &Path) -> Self {
        Self::begin(between, behind, 0, true)
    }

    fn begin(between: &Path, behind: &Path, seed: u64, calm: bool) -> Self {
        // Of a run before.
        let _ = fs::remove_file(between);
        let listener = UnixListener::bind(between).expect("a socket");
        let state = Arc::new(State {
            over: AtomicBool::new(false),
            calm: AtomicBool::new(calm),
            broken: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            open: Mutex::default(),
            up: AtomicU64::new(0),
            muted: Mutex::new(false),
            unmuted: Condvar::new(),
        });
        let (held, behind) = (Arc::clone(&state), behind.to_owned());
        let accepting = std::thread::spawn(move || held.accept(&listener, &behind, seed));
        Self { path: between.to_owned(), state, accepting: Some(accepting) }
    }

    /// Breaks nothing any more: what is open ends, what comes is passed on.
    pub fn heal(&self) {
        self.state.calm.store(true, Ordering::SeqCst);
        self.state.end_all();
    }

    /// Passes nothing on to clients from now on, or again.
    pub fn mute(&self, muted: bool) {
        *self.state.muted.lock().unwrap_or_else(PoisonError::into_inner) = muted;
        self.state.unmuted.notify_all();
    }

    /// Ends all connections, with what they have kept; new ones pass everything on.
    pub fn cut(&self) {
        self.state.end_all();
        self.mute(false);
    }

    /// Octets that went to the server so far, and connections.
    pub fn passed(&self) -> (u64, u64) {
        (self.state.up.load(Ordering::SeqCst), self.state.connections.load(Ordering::SeqCst))
    }

    /// Ends; how many connections were broken, of how many.
    pub fn stop(mut self) -> (u64, u64) {
        self.end();
        (self.state.broken.load(Ordering::SeqCst), self.state.connections.load(Ordering::SeqCst))
    }

    fn end(&mut self) {
        let Some(accepting) = self.accepting.take() else { return };
        self.state.over.store(true, Ordering::SeqCst);
        // Whoever accepts looks once more.
        drop(UnixStream::connect(&self.path));
        // A relay that panicked has been heard of.
        let _ = accepting.join();
        self.state.end_all();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.end();
    }
}

impl State {
    fn accept(self: Arc<Self>, listener: &UnixListener, behind: &Path, seed: u64) {
        for number in 0.. {
            let Ok((near, _)) = listener.accept() else { return };
            if self.over.load(Ordering::SeqCst) {
                return;
            }
            // A server that is not there is a connection that ends at once.
            let Ok(far) = UnixStream::connect(behind) else { continue };
            self.connections.fetch_add(1, Ordering::SeqCst);
            let calm = self.calm.load(Ordering::SeqCst);
            let [up, down] = if calm {
                [Plan::CALM; 2]
            } else {
                Plan::pair(&mut Random::new(seed.wrapping_add(number << 8)))
            };
            let copy = |stream: &UnixStream| stream.try_clone().expect("a descriptor");
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.extend([copy(&near), copy(&far)]);
            drop(open);
            for (from, to, plan, is_up) in [(copy(&near), copy(&far), up, true), (far, near, down, false)] {
                let state = Arc::clone(&self);
                std::thread::spawn(move || state.pass(from, to, plan, is_up));
            }
        }
    }

    fn end_all(&self) {
        for stream in self.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // It may have ended before.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Passes one direction on until an end of the connection, or of the plan.
    fn pass(&self, mut from: UnixStream, mut to: UnixStream, plan: Plan, is_up: bool) {
        let mut buffer = vec![0; 1 << 16];
        let mut passed = 0_u64;
        loop {
            let n = match from.read(&mut buffer) {
                Ok(n) if n > 0 => n,
                _ => break,
            };
            if is_up {
                self.up.fetch_add(n as u64, Ordering::SeqCst);
            } else {
                let muted = self.muted.lock().unwrap_or_else(PoisonError::into_inner);
                let _unmuted = self.unmuted.wait_while(muted, |muted| *muted);
            }
            for piece in buffer[..n].chunks(plan.piece) {
                if !plan.delay.is_zero() {
                    std::thread::sleep(plan.delay);
                }
                let len = piece.len() as u64;
                if plan.keep.is_some_and(|at| passed + len > at)
                    && plan.cut.is_none_or(|at| passed + len <= at)
                {
                    if plan.keep.is_some_and(|at| passed <= at) {
                        self.broken.fetch_add(1, Ordering::SeqCst);
                    }
                    passed += len;
                    continue;
                }
                if let Some(at) = plan.cut.filter(|at| passed + len > *at) {
                    let rest = usize::try_from(at.saturating_sub(passed)).unwrap_or(0);
                    // What comes before the cut arrives, unless it was kept.
                    if plan.keep.is_none() {
                        let _ = to.write_all(&piece[..rest.min(piece.len())]);
                    }
                    self.broken.fetch_add(1, Ordering::SeqCst);
                    let how = if plan.half { Shutdown::Write } else { Shutdown::Both };
                    let _ = to.shutdown(how);
                    let _ = from.shutdown(if plan.half { Shutdown::Read } else { Shutdown::Both });
                    return;
                }
                if to.write_all(piece).is_err() {
                    let _ = from.shutdown(Shutdown::Both);
                    return;
                }
                passed += len;
            }
        }
        // One side has ended; the other hears of it.
        let _ = to.shutdown(Shutdown::Write);
    }
}
