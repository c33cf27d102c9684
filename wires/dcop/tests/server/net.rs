//! A server and its clients in one thread, without sockets: whoever drives this plays the clients.

use bytes::BytesMut;
use everywire_dcop::ice::{FRAME_HEADER, Initiator, NATIVE_LITTLE, Progress, minor};
use everywire_dcop::server::{Server, Settings};
use everywire_model::{Hub, HubEvent, PeerAddress, PeerId, Violation};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// The cookie of the captured sessions.
pub(crate) const COOKIE: [u8; 16] =
    [0x65, 0xe1, 0x7f, 0x6c, 0xd6, 0x07, 0xde, 0xf5, 0xd5, 0x4f, 0x12, 0x86, 0xc0, 0xb0, 0xe1, 0x0c];

/// Keys that the server does not look at.
pub(crate) const KEY: u32 = 57;

pub(crate) struct Net {
    pub(crate) server: Server,
    pub(crate) now: Instant,
    next: u64,
    input: HashMap<u64, BytesMut>,
    output: HashMap<u64, Vec<u8>>,
    /// Clients that do not read.
    pub(crate) deaf: HashSet<u64>,
    pub(crate) closed: HashMap<u64, Option<Violation>>,
    pub(crate) finished: bool,
}

impl Net {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::of(Server::unannounced(COOKIE.as_slice().into(), settings))
    }

    pub(crate) fn of(server: Server) -> Self {
        Self {
            server,
            now: Instant::now(),
            next: 0,
            input: HashMap::new(),
            output: HashMap::new(),
            deaf: HashSet::new(),
            closed: HashMap::new(),
            finished: false,
        }
    }

    /// A client that has not said anything.
    pub(crate) fn connect(&mut self) -> u64 {
        self.next += 1;
        let id = self.next;
        self.input.insert(id, BytesMut::new());
        self.output.insert(id, Vec::new());
        self.server.connected(PeerId(id), PeerAddress::default(), self.now);
        self.pump();
        id
    }

    /// A client that is through with the handshake.
    pub(crate) fn client(&mut self) -> u64 {
        self.shake_hands().0
    }

    /// The same, and what it said.
    pub(crate) fn shake_hands(&mut self) -> (u64, Vec<u8>) {
        let (id, mut said) = (self.connect(), Vec::new());
        let mut initiator = Initiator::new(Some(COOKIE.to_vec()));
        let (mut out, mut input) = (Vec::new(), BytesMut::new());
        initiator.greet(&mut out);
        loop {
            said.extend_from_slice(&out);
            self.feed(id, &std::mem::take(&mut out));
            input.extend_from_slice(&self.take(id));
            if let Progress::Done { peer_opcode, my_opcode, swap } =
                initiator.receive(&mut input, &mut out).unwrap()
            {
                assert_eq!((peer_opcode, my_opcode, swap, input.len()), (2, 1, false, 0));
                return (id, said);
            }
            assert!(!out.is_empty(), "the handshake stands still");
        }
    }

    /// A client that is registered.
    pub(crate) fn application(&mut self, name: &str) -> u64 {
        let id = self.client();
        assert_eq!(self.register(id, name), name);
        id
    }

    /// Registers a client, and returns what it got.
    pub(crate) fn register(&mut self, id: u64, name: &str) -> String {
        let reply = self.ask(id, "registerAs(QCString)", &text(name));
        assert_eq!(reply.minor, minor::REPLY);
        let fields = reply.fields();
        assert_eq!(fields[2], "QCString");
        fields[3].trim_end_matches('\0').to_owned()
    }

    /// Calls a function of the server.
    pub(crate) fn ask(&mut self, id: u64, function: &str, data: &[u8]) -> Received {
        self.feed(id, &call("", "DCOPServer", "", function, data));
        self.one(id)
    }

    pub(crate) fn feed(&mut self, id: u64, bytes: &[u8]) {
        if self.closed.contains_key(&id) {
            return;
        }
        let mut input = self.input.remove(&id).unwrap();
        input.extend_from_slice(bytes);
        let result = self.server.receive(PeerId(id), self.now, &mut input, &mut Vec::new());
        self.input.insert(id, input);
        if let Err(violation) = result {
            self.close(id, Some(violation));
        }
        self.pump();
    }

    /// The client is gone.
    pub(crate) fn hang_up(&mut self, id: u64) {
        self.close(id, None);
        self.pump();
    }

    /// Nobody asks any more what became of a client.
    pub(crate) fn forget(&mut self, id: u64) {
        self.input.remove(&id);
        self.output.remove(&id);
        self.closed.remove(&id);
    }

    fn close(&mut self, id: u64, violation: Option<Violation>) {
        self.send(id);
        self.closed.insert(id, violation);
        self.server.disconnected(PeerId(id), self.now);
    }

    pub(crate) fn send(&mut self, id: u64) {
        if !self.deaf.contains(&id)
            && let Some(buffer) = self.server.transmit(PeerId(id))
        {
            let bytes = buffer.to_vec();
            buffer.consume(bytes.len());
            self.output.get_mut(&id).unwrap().extend(bytes);
        }
    }

    pub(crate) fn pump(&mut self) {
        while let Some(event) = self.server.poll() {
            match event {
                HubEvent::Flush(PeerId(id)) => self.send(id),
                HubEvent::Close(PeerId(id)) => self.close(id, None),
                HubEvent::Finish => self.finished = true,
            }
        }
    }

    /// Time passes; the server is told when it asked for.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.server.deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.server.expire(self.now);
            self.pump();
        }
        self.now = end;
    }

    /// What a client got.
    pub(crate) fn take(&mut self, id: u64) -> Vec<u8> {
        std::mem::take(self.output.get_mut(&id).unwrap())
    }

    /// The DCOP messages that a client got.
    pub(crate) fn messages(&mut self, id: u64) -> Vec<Received> {
        let bytes = self.take(id);
        let mut rest = bytes.as_slice();
        let mut messages = Vec::new();
        while !rest.is_empty() {
            let number = |at: usize| u32::from_ne_bytes(rest[at..at + 4].try_into().unwrap());
            assert_eq!(rest[0], 2);
            let len = number(4) as usize;
            let payload = rest[FRAME_HEADER..FRAME_HEADER + len].to_vec();
            messages.push(Received { minor: rest[1], key: number(8), payload });
            rest = &rest[FRAME_HEADER + len..];
        }
        messages
    }

    /// The only message that a client got.
    pub(crate) fn one(&mut self, id: u64) -> Received {
        let mut messages = self.messages(id);
        assert_eq!(messages.len(), 1, "{messages:?}");
        messages.remove(0)
    }

    /// The name of the violation for which a client was closed.
    pub(crate) fn violation(&self, id: u64) -> &'static str {
        self.closed[&id].as_ref().expect("it broke the protocol").name
    }

    /// Whether both can still call each other.
    pub(crate) fn works(&mut self, caller: (u64, &str), callee: (u64, &str)) -> bool {
        self.feed(caller.0, &call(caller.1, callee.1, "o", "f()", b""));
        let called = self.messages(callee.0).len() == 1;
        self.feed(callee.0, &reply(callee.1, caller.1, "void", b""));
        called && self.messages(caller.0).len() == 1
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) minor: u8,
    pub(crate) key: u32,
    pub(crate) payload: Vec<u8>,
}

impl Received {
    /// Counted fields from the front, as far as there are any; a last NUL is left off.
    pub(crate) fn fields(&self) -> Vec<String> {
        let mut fields = Vec::new();
        let mut rest = self.payload.as_slice();
        while let Some((len, after)) = rest.split_first_chunk::<4>()
            && let Some((field, after)) = after.split_at_checked(u32::from_be_bytes(*len) as usize)
        {
            let field = field.strip_suffix(b"\0").unwrap_or(field);
            // What is counted may be counted once more inside.
            let inner = field.split_first_chunk::<4>().filter(|(len, rest)| {
                let len = u32::from_be_bytes(**len) as usize;
                len == rest.len() || len == rest.len() + 1
            });
            fields.push(String::from_utf8_lossy(inner.map_or(field, |(_, text)| text)).into_owned());
            rest = after;
        }
        fields
    }
}

/// A text.
pub(crate) fn text(text: &str) -> Vec<u8> {
    let mut out = u32::try_from(text.len() + 1).unwrap().to_be_bytes().to_vec();
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    out
}

pub(crate) fn frame(minor: u8, key: u32, payload: &[u8]) -> Vec<u8> {
    framed(NATIVE_LITTLE, minor, key, payload)
}

/// A message of a client with this byte order.
pub(crate) fn framed(little: bool, minor: u8, key: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap();
    let (len, key) =
        if little { (len.to_le_bytes(), key.to_le_bytes()) } else { (len.to_be_bytes(), key.to_be_bytes()) };
    let mut out = vec![1, minor, 1, 0];
    out.extend(len);
    out.extend(key);
    out.extend_from_slice(payload);
    out
}

pub(crate) fn arguments(from: &str, to: &str, object: &str, function: &str, data: &[u8]) -> Vec<u8> {
    let mut out = [text(from), text(to), text(object), text(function)].concat();
    out.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    out.extend_from_slice(data);
    out
}

pub(crate) fn call(from: &str, to: &str, object: &str, function: &str, data: &[u8]) -> Vec<u8> {
    frame(minor::CALL, KEY, &arguments(from, to, object, function, data))
}

pub(crate) fn send(from: &str, to: &str, object: &str, function: &str, data: &[u8]) -> Vec<u8> {
    frame(minor::SEND, 1, &arguments(from, to, object, function, data))
}

pub(crate) fn reply(from: &str, to: &str, kind: &str, data: &[u8]) -> Vec<u8> {
    keyed_reply(KEY, from, to, kind, data)
}

pub(crate) fn keyed_reply(key: u32, from: &str, to: &str, kind: &str, data: &[u8]) -> Vec<u8> {
    let mut payload = [text(from), text(to), text(kind)].concat();
    payload.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    payload.extend_from_slice(data);
    frame(minor::REPLY, key, &payload)
}
