//! A DCOP server with a few clients under hostile bytes: in the handshake, after it, in any pieces and order, with
//! clients that come, go, do not read, and time that passes.

use bytes::BytesMut;
use everywire_dcop::ice::{Initiator, NATIVE_LITTLE, Progress};
use everywire_dcop::server::{Server, Settings};
use everywire_model::{Hub, HubEvent, PeerAddress, PeerId};
use std::time::{Duration, Instant};

const CLIENTS: usize = 4;
const COOKIE: [u8; 16] = [7; 16];
const NAMES: [&[u8]; CLIENTS] = [b"a", b"b", b"a", b"DCOPServer"];

struct Net {
    server: Server,
    now: Instant,
    next: u64,
    /// Number and input of each client that is connected.
    clients: [Option<(PeerId, BytesMut)>; CLIENTS],
}

impl Net {
    fn connect(&mut self, at: usize) -> PeerId {
        self.hang_up(at);
        self.next += 1;
        let id = PeerId(self.next);
        self.clients[at] = Some((id, BytesMut::new()));
        self.server.connected(id, PeerAddress::default(), self.now);
        id
    }

    fn hang_up(&mut self, at: usize) {
        if let Some((id, _)) = self.clients[at].take() {
            self.server.disconnected(id, self.now);
        }
    }

    fn feed(&mut self, at: usize, bytes: &[u8]) {
        let Some((id, input)) = &mut self.clients[at] else { return };
        input.extend_from_slice(bytes);
        let result = self.server.receive(*id, self.now, input, &mut Vec::new());
        // A client cannot make the server wait for more than the limit says.
        assert!(self.server.wanted(*id) <= 4 << 20);
        if result.is_err() {
            self.hang_up(at);
        }
    }

    /// A client that is through with the handshake and registered.
    fn admit(&mut self, at: usize) {
        let id = self.connect(at);
        let mut initiator = Initiator::new(Some(COOKIE.to_vec()));
        let (mut out, mut input) = (Vec::new(), BytesMut::new());
        initiator.greet(&mut out);
        loop {
            self.feed(at, &std::mem::take(&mut out));
            let Some(buffer) = self.server.transmit(id) else { return };
            input.extend_from_slice(&buffer.to_vec());
            buffer.consume(buffer.len());
            match initiator.receive(&mut input, &mut out) {
                Ok(Progress::More) if !out.is_empty() => {}
                Ok(Progress::Done { .. }) => break,
                // The server was full, or had closed.
                _ => return,
            }
        }
        let name = NAMES[at];
        let mut data = u32::try_from(name.len()).unwrap_or(0).to_be_bytes().to_vec();
        data.extend_from_slice(name);
        self.feed(at, &message(2, &[b"", b"DCOPServer\0", b"", b"registerAs(QCString)\0", &data]));
    }

    fn pump(&mut self, deaf: usize) {
        while let Some(event) = self.server.poll() {
            match event {
                HubEvent::Flush(id) => {
                    let holds = |at: usize| self.clients[at].as_ref().is_some_and(|(held, _)| *held == id);
                    if holds(deaf % CLIENTS) {
                        continue;
                    }
                    if let Some(buffer) = self.server.transmit(id) {
                        buffer.consume(buffer.len());
                    }
                }
                HubEvent::Close(id) => {
                    let at =
                        self.clients.iter().position(|held| held.as_ref().is_some_and(|held| held.0 == id));
                    if let Some(at) = at {
                        self.hang_up(at);
                    }
                }
                HubEvent::Finish => {}
            }
        }
    }
}

/// A message with these counted fields.
fn message(minor: u8, fields: &[&[u8]]) -> Vec<u8> {
    let mut payload = Vec::new();
    for field in fields {
        payload.extend(u32::try_from(field.len()).unwrap_or(0).to_be_bytes());
        payload.extend_from_slice(field);
    }
    let mut out = vec![1, minor, 0, 0];
    out.extend(u32::try_from(payload.len()).unwrap_or(0).to_ne_bytes());
    out.extend(57_u32.to_ne_bytes());
    out.extend(payload);
    out
}

const WORDS: [&[u8]; 12] = [
    b"",
    b"a\0",
    b"b\0",
    b"a-2\0",
    b"*\0",
    b"DCOPServer\0",
    b"emit\0",
    b"s(int)\0",
    b"o#s(int)\0",
    b"connectSignal(QCString,QCString,QCString,QCString,QCString,bool)\0",
    b"disconnectSignal(QCString,QCString,QCString,QCString,QCString)\0",
    b"setNotifications(bool)\0",
];

/// Gives the octets to this case.
pub fn dcop_server(data: &[u8]) {
    let settings = Settings {
        queue: 64 << 10,
        half_open: 3,
        outstanding: 8,
        signals: 8,
        connections: CLIENTS + 1,
        ..Settings::default()
    };
    let server = Server::unannounced(COOKIE.as_slice().into(), settings).ending_alone();
    let mut net = Net { server, now: Instant::now(), next: 0, clients: [const { None }; CLIENTS] };
    net.admit(0);
    net.admit(1);
    const { assert!(NATIVE_LITTLE || cfg!(target_endian = "big")) };
    let mut data = data;
    while let [step, len, rest @ ..] = data {
        let at = usize::from(*step) % CLIENTS;
        let (piece, rest) = rest.split_at(usize::from(*len).min(rest.len()));
        data = rest;
        match step / 4 % 8 {
            0 => drop(net.connect(at)),
            1 => net.admit(at),
            2 => net.hang_up(at),
            3 => {
                net.now += Duration::from_millis(u64::from(*len) * 50);
                if net.server.deadline().is_some_and(|deadline| deadline <= net.now) {
                    net.server.expire(net.now);
                }
            }
            // A message of words, with its last field the rest of them as arguments.
            4 | 5 => {
                let words: Vec<&[u8]> =
                    piece.iter().skip(1).map(|word| WORDS[usize::from(*word) % WORDS.len()]).collect();
                let (front, back) = words.split_at(words.len().min(4));
                let mut last = Vec::new();
                for word in back {
                    last.extend(u32::try_from(word.len()).unwrap_or(0).to_be_bytes());
                    last.extend_from_slice(word);
                }
                last.push(len % 2);
                let mut fields = front.to_vec();
                fields.push(&last);
                net.feed(at, &message(piece.first().map_or(1, |kind| kind % 8), &fields));
            }
            _ => net.feed(at, piece),
        }
        net.pump(usize::from(*len));
    }
    net.server.close();
    net.pump(usize::MAX);
    (0..CLIENTS).for_each(|at| net.hang_up(at));
    net.pump(usize::MAX);
    // Nothing of anybody stays.
    assert_eq!(net.server.entries(), 0);
}
