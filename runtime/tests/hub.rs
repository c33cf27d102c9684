//! Hubs over real sockets: a chat room, where each line goes to everybody else.

#![allow(clippy::unwrap_used)]

use bytes::BytesMut;
use everywire_model::{Endpoint, Failure, Handle, Hub, HubEvent, PeerAddress, PeerId, SendBuffer, Violation};
use everywire_runtime::hub::{self, Settings, Stop};
use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest line.
const LINE: usize = 1 << 20;
/// How long a peer may still say nothing once somebody asked all to begin.
const BEGIN: Duration = Duration::from_millis(200);

/// The stack of the hub's thread.
const STACK: usize = 128 << 10;

struct Room {
    name: String,
    peers: HashMap<PeerId, SendBuffer>,
    silent: Vec<PeerId>,
    /// Until when they may be.
    patience: Option<Instant>,
    events: VecDeque<HubEvent>,
    opened: mpsc::Sender<()>,
    ends: Arc<Mutex<Vec<PeerId>>>,
    /// Whoever says `hold` has all wait until the test lets go; the test is told when they do.
    hold: mpsc::Receiver<()>,
    holds: mpsc::Sender<()>,
}

impl Hub for Room {
    fn endpoints(&self) -> Vec<Endpoint> {
        vec![Endpoint::Unix { path: format!("@{}", self.name) }]
    }
    fn opened(&mut self, bound: &[Endpoint]) -> Result<(), Failure> {
        assert_eq!(bound.len(), 1);
        self.opened.send(()).unwrap();
        Ok(())
    }
    fn connected(&mut self, id: PeerId, peer: PeerAddress, _: Instant) {
        assert!(peer.credentials.is_some());
        self.peers.insert(id, SendBuffer::new());
        self.silent.push(id);
    }
    fn receive(
        &mut self,
        id: PeerId,
        now: Instant,
        input: &mut BytesMut,
        _: &mut Vec<Handle>,
    ) -> Result<(), Violation> {
        self.silent.retain(|held| *held != id);
        while let Some(end) = input.iter().position(|byte| *byte == b'\n') {
            let line = input.split_to(end + 1).freeze();
            match &line[..] {
                b"bye\n" => self.events.push_back(HubEvent::Close(id)),
                b"present\n" => {
                    self.peers.get_mut(&id).unwrap().splice("so you are\n".into());
                    self.events.push_back(HubEvent::Flush(id));
                }
                b"out\n" => self.events.extend(self.peers.keys().map(|peer| HubEvent::Close(*peer))),
                b"hold\n" => {
                    self.holds.send(()).unwrap();
                    self.hold.recv_timeout(Duration::from_secs(300)).unwrap();
                }
                b"begin\n" => self.patience = Some(now + BEGIN),
                b"finish\n" => self.events.push_back(HubEvent::Finish),
                b"wrong\n" => {
                    self.peers.get_mut(&id).unwrap().splice("you broke the rules\n".into());
                    let message = "that is not said here".into();
                    return Err(Violation { wire: "chat", name: "Wrong", message, offset: 0 });
                }
                _ => {
                    for (other, out) in self.peers.iter_mut().filter(|(other, _)| **other != id) {
                        out.splice(line.clone());
                        self.events.push_back(HubEvent::Flush(*other));
                    }
                }
            }
        }
        assert!(input.len() < LINE);
        Ok(())
    }
    fn wanted(&self, _: PeerId) -> usize {
        0
    }
    fn transmit(&mut self, id: PeerId) -> Option<&mut SendBuffer> {
        self.peers.get_mut(&id)
    }
    fn poll(&mut self) -> Option<HubEvent> {
        self.events.pop_front()
    }
    fn disconnected(&mut self, id: PeerId, _: Instant) {
        self.peers.remove(&id).unwrap();
        self.ends.lock().unwrap().push(id);
    }
    fn deadline(&self) -> Option<Instant> {
        self.patience
    }
    fn expire(&mut self, now: Instant) {
        if self.patience.take_if(|until| *until <= now).is_some() {
            self.events.extend(self.silent.drain(..).map(HubEvent::Close));
        }
    }
    fn close(&mut self) {
        for (id, out) in &mut self.peers {
            out.splice("the room closes\n".into());
            self.events.push_back(HubEvent::Flush(*id));
        }
    }
}

struct Stage {
    name: String,
    stop: Stop,
    thread: JoinHandle<Result<(), Failure>>,
    ends: Arc<Mutex<Vec<PeerId>>>,
    go_on: mpsc::Sender<()>,
    holds: mpsc::Receiver<()>,
}

fn open(test: &str, settings: Settings) -> Stage {
    let name = format!("everywire-{}-hub-{test}", std::process::id());
    let (opened, is_open) = mpsc::channel();
    let (go_on, hold) = mpsc::channel();
    let (now_it_holds, holds) = mpsc::channel();
    let ends = Arc::new(Mutex::new(Vec::new()));
    let mut room = Room {
        name: name.clone(),
        peers: HashMap::new(),
        silent: Vec::new(),
        patience: None,
        events: VecDeque::new(),
        opened,
        ends: Arc::clone(&ends),
        hold,
        holds: now_it_holds,
    };
    let stop = Stop::new().unwrap();
    let bell = stop.clone();
    // A small stack: what the hub does for many peers is not done by recursion.
    let thread = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || hub::run(&mut room, &settings, &bell))
        .unwrap();
    is_open.recv_timeout(Duration::from_secs(300)).unwrap();
    Stage { name, stop, thread, ends, go_on, holds }
}

impl Stage {
    fn enter(&self) -> BufReader<UnixStream> {
        let address = SocketAddr::from_abstract_name(&self.name).unwrap();
        let stream = UnixStream::connect_addr(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        BufReader::new(stream)
    }
}

fn say(peer: &mut BufReader<UnixStream>, line: &str) {
    peer.get_mut().write_all(line.as_bytes()).unwrap();
}

fn hear(peer: &mut BufReader<UnixStream>) -> String {
    let mut line = String::new();
    peer.read_line(&mut line).unwrap();
    line
}

#[test]
fn lines_go_to_everybody_else_large_ones_too() {
    let stage = open("lines", Settings::default());
    let (mut ann, mut bob) = (stage.enter(), stage.enter());
    say(&mut ann, "hello from ann\n");
    say(&mut bob, "hello from bob\n");
    let _ = (hear(&mut ann), hear(&mut bob));
    let long = "x".repeat(900_000) + "\n";
    for _ in 0..50 {
        say(&mut ann, "one\n");
        assert_eq!(hear(&mut bob), "one\n");
        say(&mut bob, "two\n");
        assert_eq!(hear(&mut ann), "two\n");
    }
    let writer = std::thread::spawn(move || {
        for _ in 0..10 {
            say(&mut ann, &long);
        }
        ann
    });
    for _ in 0..10 {
        assert_eq!(hear(&mut bob).len(), 900_001);
    }
    let mut ann = writer.join().unwrap();
    stage.stop.stop();
    stage.thread.join().unwrap().unwrap();
    assert_eq!((hear(&mut ann), hear(&mut bob)), ("the room closes\n".into(), "the room closes\n".into()));
}

#[test]
fn who_breaks_the_rules_is_told_and_closed_and_others_go_on() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&told);
    let observer: hub::Observer = Arc::new(move |_, cause| match cause {
        hub::Cause::Violation(violation) => seen.lock().unwrap().push(violation.name),
        other => panic!("{other}"),
    });
    let stage = open("rules", Settings { observer: Some(observer), ..Settings::default() });
    let (mut ann, mut bob, mut eve) = (stage.enter(), stage.enter(), stage.enter());
    say(&mut eve, "wrong\n");
    assert_eq!(hear(&mut eve), "you broke the rules\n");
    assert_eq!(eve.read(&mut [0; 8]).unwrap(), 0, "still open");
    say(&mut ann, "still here\n");
    assert_eq!(hear(&mut bob), "still here\n");
    say(&mut ann, "bye\n");
    assert_eq!(ann.read(&mut [0; 8]).unwrap(), 0, "still open");
    say(&mut bob, "finish\n");
    stage.thread.join().unwrap().unwrap();
    assert_eq!(*told.lock().unwrap(), ["Wrong"]);
    assert_eq!(stage.ends.lock().unwrap().len(), 2);
}

#[test]
fn what_a_peer_said_before_it_left_is_heard_though_it_takes_nothing_any_more() {
    let stage = open("last", Settings::default());
    let (mut ann, mut bob, mut cy) = (stage.enter(), stage.enter(), stage.enter());
    for peer in [&mut bob, &mut cy] {
        say(peer, "present\n");
        assert_eq!(hear(peer), "so you are\n");
    }
    // The room learns that it cannot tell Bob anything before it has read what he said.
    say(&mut ann, "hold\nfor bob\n");
    stage.holds.recv_timeout(Duration::from_secs(300)).unwrap();
    say(&mut bob, "my last words\n");
    drop(bob);
    stage.go_on.send(()).unwrap();
    assert_eq!(hear(&mut cy), "for bob\n");
    say(&mut cy, "the next\n");
    assert_eq!(hear(&mut ann), "my last words\n");
    assert_eq!(hear(&mut ann), "the next\n");
    stage.stop.stop();
    stage.thread.join().unwrap().unwrap();
}

#[test]
fn who_says_nothing_is_closed_in_time_and_too_many_at_once() {
    let stage = open("silent", Settings { connections: 2, ..Settings::default() });
    let mut silent = stage.enter();
    let mut ann = stage.enter();
    say(&mut ann, "here\n");
    let _ = hear(&mut silent);
    let mut third = stage.enter();
    assert_eq!(third.read(&mut [0; 8]).unwrap(), 0, "more than the quota");
    say(&mut ann, "begin\n");
    assert_eq!(silent.read(&mut [0; 8]).unwrap(), 0, "silent for ever");
    let mut bob = stage.enter();
    say(&mut bob, "now there is room\n");
    assert_eq!(hear(&mut ann), "now there is room\n");
    stage.stop.stop();
    stage.thread.join().unwrap().unwrap();
}

#[test]
fn all_peers_can_be_closed_at_once() {
    let stage = open("mass", Settings::default());
    let enter = || {
        let mut peer = stage.enter();
        say(&mut peer, "present\n");
        assert_eq!(hear(&mut peer), "so you are\n");
        peer
    };
    let mut peers: Vec<_> = (0..300).map(|_| enter()).collect();
    say(&mut peers[7], "out\n");
    for peer in &mut peers {
        assert_eq!(peer.read(&mut [0; 8]).unwrap(), 0, "still open");
    }
    let (mut ann, mut bob) = (enter(), enter());
    say(&mut ann, "the room is open\n");
    assert_eq!(hear(&mut bob), "the room is open\n");
    stage.stop.stop();
    stage.thread.join().unwrap().unwrap();
    assert_eq!(stage.ends.lock().unwrap().len(), peers.len());
}
