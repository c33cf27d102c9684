//! Compressed messages of framing (`compressionFormat`) and of HTTP (`Content-Encoding`), at both ends: what the fuzzer
//! writes stands inside a stream that is well formed, or is the stream itself. What comes out is never more than the quota.

use bytes::{Bytes, BytesMut};
use everywire_model::visit::Nothing;
use everywire_model::{
    Answer, Call, Config, Event, Expects, Failure, Initiator, Kind, Method, Operation, Profile, Session,
    Shape, Value,
};
use everywire_wcf::{address, framing, http};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use std::io::Write;
use std::time::{Duration, Instant};

/// Octets of a message, compressed or not; a message is repeated to be larger than that.
const QUOTA: usize = 16 << 10;

#[derive(Clone, Copy, PartialEq)]
enum Coding {
    Gzip,
    Deflate,
    Http,
}

impl Coding {
    fn pack(self, plain: &[u8]) -> Vec<u8> {
        let packed = if self == Self::Deflate {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(plain).and_then(|()| encoder.finish())
        } else {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(plain).and_then(|()| encoder.finish())
        };
        packed.expect("memory takes everything")
    }

    fn name(self) -> &'static str {
        if self == Self::Deflate { "deflate" } else { "gzip" }
    }

    /// What a peer says first.
    fn opening(self, accepting: bool, streamed: bool) -> Vec<u8> {
        match (self, accepting) {
            (Self::Http, _) => Vec::new(),
            (_, false) => vec![0x0b],
            (_, true) => {
                let (mode, kind) = if streamed { (1, "msbin1") } else { (2, "msbinsession1") };
                let kind = format!("application/soap+{kind}+{}", self.name());
                let (via, len) = (b"\x0bnet.tcp://h", kind.len() as u8);
                [&[0, 1, 0, 1, mode, 2][..], via, &[4, len], kind.as_bytes(), &[0x0c]].concat()
            }
        }
    }

    /// A message around the compressed octets.
    fn message(self, packed: &[u8], accepting: bool, streamed: bool) -> Vec<u8> {
        if self == Self::Http {
            let first = if accepting { "POST /echo HTTP/1.1\r\nHost: h\r\n" } else { "HTTP/1.1 200 OK\r\n" };
            let head = format!(
                "{first}Content-Type: application/soap+msbin1\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
                packed.len()
            );
            return [head.as_bytes(), packed].concat();
        }
        let mut out = if streamed { vec![0x05] } else { vec![0x06] };
        let mut size = packed.len();
        while size > 0x7f {
            out.push(size as u8 | 0x80);
            size >>= 7;
        }
        out.push(size as u8);
        out.extend_from_slice(packed);
        if streamed {
            out.push(0);
        }
        out
    }
}

/// Gives the octets to this case.
pub fn wcf_compressed(data: &[u8]) {
    let [choice, data @ ..] = data else { return };
    let coding = [Coding::Gzip, Coding::Deflate, Coding::Http][usize::from(choice >> 2) % 3];
    let (accepting, streamed) = (choice & 1 == 0, choice & 2 != 0 && coding != Coding::Http);
    let (scheme, name) = (if coding == Coding::Http { "binhttp" } else { "net.tcp" }, coding.name());
    let mode = if streamed { "&mode=streamed" } else { "" };
    let text = format!(
        "{scheme}://h:8000/echo?security=none&compression={name}{mode}&MaxReceivedMessageSize={QUOTA}"
    );
    let way = address::parse(&text).expect("it is an address").profiles.remove(0);
    let place = Profile { key: Bytes::new(), ..way.clone() };
    let config = Config { profile: if accepting { place } else { way.clone() }, ..Config::default() };
    let mut session: Box<dyn Session> = match (coding, accepting) {
        (Coding::Http, true) => Box::new(http::Accepting::new(&config)),
        (Coding::Http, false) => Box::new(http::Connecting::new(&config)),
        (_, true) => Box::new(framing::Accepting::new(&config)),
        (_, false) => Box::new(framing::Connecting::new(&config)),
    };
    let mut input = BytesMut::from(&coding.opening(accepting, streamed)[..]);
    drive(
        &mut *session,
        &way,
        &mut input,
        data,
        |packed| coding.message(packed, accepting, streamed),
        coding,
        !accepting,
    );
}

/// Messages, each a step, a length and so many octets.
fn drive(
    session: &mut dyn Session,
    way: &Profile,
    input: &mut BytesMut,
    mut data: &[u8],
    message: impl Fn(&[u8]) -> Vec<u8>,
    coding: Coding,
    calls: bool,
) {
    let mut now = Instant::now();
    let operation = Operation::new("Op", vec![], Shape::Void);
    let failure = Failure::new(Kind::Internal, Initiator::Here, "fuzz");
    while let [step, low, high, rest @ ..] = data {
        let (octets, rest) = rest.split_at(usize::from(u16::from_le_bytes([*low, *high])).min(rest.len()));
        data = rest;
        if calls {
            let expects = if step & 1 == 0 { Expects::Reply } else { Expects::Nothing };
            let call = Call {
                profile: way,
                method: Method::Typed { interface: None, operation: &operation },
                arguments: &Nothing,
                expects,
            };
            drop(session.start(now, &call));
        }
        let packed = match step >> 1 & 3 {
            0 => octets.to_vec(),
            // Far more than the quota, of few octets.
            1 => coding.pack(&octets.repeat(2 * QUOTA / octets.len().max(1))),
            _ => coding.pack(octets),
        };
        input.extend_from_slice(&message(&packed));
        if session.receive(now, input, &mut Vec::new()).is_err() {
            break;
        }
        assert!(session.wanted() <= QUOTA + 8, "{} bytes wanted", session.wanted());
        while let Some(event) = session.poll() {
            let Event::Call(call) = event else { continue };
            assert!(call.body.bytes.len() <= QUOTA, "{} octets came out", call.body.bytes.len());
            drop(call.body.read(|source| Value::decode(&operation.arguments, source)));
            drop(match step >> 3 & 3 {
                0 => session.answer(call.id, Answer::Failed(&failure)),
                1 | 2 => session.answer(call.id, Answer::Done(&Nothing)),
                _ => Ok(()),
            });
        }
        if step & 32 != 0 {
            now += Duration::from_secs(3);
            if session.deadline().is_some_and(|deadline| deadline <= now) && session.expire(now).is_err() {
                break;
            }
        }
        let sent = session.transmit().len();
        session.transmit().consume(sent);
    }
    session.disconnected(&Failure::new(Kind::Unreachable, Initiator::Peer, "over"));
    while session.poll().is_some() {}
}
