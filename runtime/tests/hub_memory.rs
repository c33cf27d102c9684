//! What a hub keeps of its peers' messages, by the count of this process's own allocations.

#![allow(clippy::unwrap_used)]

use crate::plain;
use bytes::BytesMut;
use everywire_model::{Endpoint, Failure, Handle, Hub, HubEvent, PeerAddress, PeerId, SendBuffer, Violation};
use everywire_runtime::hub::{self, Settings, Stop};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(300);
const PEERS: usize = 8;
const MESSAGE: usize = 3 << 20;

static HELD: AtomicUsize = AtomicUsize::new(0);

/// Bytes that this process has allocated now.
pub(crate) fn allocated() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// The usual allocator, counting bytes.
struct Counting;

// SAFETY: all is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Takes messages of one size and answers each with a byte.
struct Sink {
    name: String,
    peers: HashMap<PeerId, SendBuffer>,
    flush: Vec<PeerId>,
    opened: mpsc::Sender<()>,
}

impl Hub for Sink {
    fn endpoints(&self) -> Vec<Endpoint> {
        vec![Endpoint::Unix { path: format!("@{}", self.name) }]
    }
    fn opened(&mut self, _: &[Endpoint]) -> Result<(), Failure> {
        self.opened.send(()).unwrap();
        Ok(())
    }
    fn connected(&mut self, id: PeerId, _: PeerAddress, _: Instant) {
        self.peers.insert(id, SendBuffer::new());
    }
    fn receive(
        &mut self,
        id: PeerId,
        _: Instant,
        input: &mut BytesMut,
        _: &mut Vec<Handle>,
    ) -> Result<(), Violation> {
        while input.len() >= MESSAGE {
            drop(input.split_to(MESSAGE).freeze());
            self.peers.get_mut(&id).unwrap().splice("!".into());
            self.flush.push(id);
        }
        Ok(())
    }
    fn wanted(&self, _: PeerId) -> usize {
        0
    }
    fn transmit(&mut self, id: PeerId) -> Option<&mut SendBuffer> {
        self.peers.get_mut(&id)
    }
    fn poll(&mut self) -> Option<HubEvent> {
        self.flush.pop().map(HubEvent::Flush)
    }
    fn disconnected(&mut self, id: PeerId, _: Instant) {
        self.peers.remove(&id).unwrap();
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn expire(&mut self, _: Instant) {}
    fn close(&mut self) {}
}

/// Each peer holds back the end of its message, and the hub has memory for what three of them send.
#[test]
fn ends_of_messages_held_back_cost_no_more_than_the_memory_of_the_hub() {
    if !plain::alone() {
        return;
    }
    let test = "ends";
    let name = format!("everywire-{}-hub-memory-{test}", std::process::id());
    let (opened, is_open) = mpsc::channel();
    let mut sink = Sink { name: name.clone(), peers: HashMap::new(), flush: Vec::new(), opened };
    let stop = Stop::new().unwrap();
    let bell = stop.clone();
    let (closed, who_is_closed) = mpsc::channel();
    let observer: hub::Observer =
        std::sync::Arc::new(move |_, cause| closed.send(cause.to_string()).unwrap());
    let settings = Settings { memory: Some(3 * MESSAGE), observer: Some(observer), ..Settings::default() };
    let thread = std::thread::spawn(move || hub::run(&mut sink, &settings, &bell));
    is_open.recv_timeout(LONG).unwrap();
    let (begun, end) = (vec![1; MESSAGE - 1], [1]);
    let before = HELD.load(Ordering::Relaxed);
    let connect = || {
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let peer = UnixStream::connect_addr(&address).unwrap();
        peer.set_read_timeout(Some(LONG)).unwrap();
        peer
    };
    let crowd: Vec<_> = (0..PEERS)
        .map(|_| {
            let mut peer = connect();
            // Whoever is closed meanwhile sends no more.
            let _ = peer.write_all(&begun);
            peer
        })
        .collect();
    for _ in 0..PEERS - 3 {
        let why = who_is_closed.recv_timeout(LONG).unwrap();
        assert!(why.contains("`memory`"), "{why}");
    }
    let kept = HELD.load(Ordering::Relaxed).saturating_sub(before);
    assert!(kept < 5 * MESSAGE, "{kept} bytes are kept for {PEERS} peers");
    // Whoever has little to say is served, and whoever was not closed can end its message.
    let served = crowd.into_iter().filter(|peer| {
        let mut peer = peer;
        peer.write_all(&end).is_ok() && peer.read_exact(&mut [0]).is_ok()
    });
    assert!((1..=3).contains(&served.count()));
    let mut honest = connect();
    honest.write_all(&vec![1; MESSAGE]).unwrap();
    honest.read_exact(&mut [0]).unwrap();
    stop.stop();
    thread.join().unwrap().unwrap();
}

/// Has peers each send a message, and `more` bytes of the next one. The hub must not keep the buffers that took.
fn keeps_little(test: &str, more: usize) {
    // The allocations of the whole process are counted.
    if !plain::alone() {
        return;
    }
    let name = format!("everywire-{}-hub-memory-{test}", std::process::id());
    let (opened, is_open) = mpsc::channel();
    let mut sink = Sink { name: name.clone(), peers: HashMap::new(), flush: Vec::new(), opened };
    let stop = Stop::new().unwrap();
    let bell = stop.clone();
    let thread = std::thread::spawn(move || hub::run(&mut sink, &Settings::default(), &bell));
    is_open.recv_timeout(LONG).unwrap();
    let message = vec![1; MESSAGE + more];
    let before = HELD.load(Ordering::Relaxed);
    let peers: Vec<_> = (0..PEERS)
        .map(|_| {
            let address = SocketAddr::from_abstract_name(&name).unwrap();
            let mut peer = UnixStream::connect_addr(&address).unwrap();
            peer.set_read_timeout(Some(LONG)).unwrap();
            peer.write_all(&message).unwrap();
            peer.read_exact(&mut [0]).unwrap();
            peer
        })
        .collect();
    // The last one's is given back after the answer.
    let begun = Instant::now();
    loop {
        let kept = HELD.load(Ordering::Relaxed).saturating_sub(before);
        if kept < MESSAGE {
            break;
        }
        assert!(begun.elapsed() < LONG, "{kept} bytes are kept for {PEERS} peers");
        std::thread::sleep(Duration::from_millis(1));
    }
    stop.stop();
    thread.join().unwrap().unwrap();
    drop(peers);
}

#[test]
fn quiet_peers_keep_no_large_buffers() {
    keeps_little("quiet", 0);
}

#[test]
fn peers_that_have_begun_another_message_keep_no_large_buffers() {
    keeps_little("begun", 40_000);
}
