//! A wire made for these tests: as little protocol as a session can have, so that what fails is the runtime.
//!
//! ```text
//! u32 length of the rest | u8 kind | u64 call | kind-specific
//! kind 0 call    u8 oneway | u8 len, key | u8 len, operation | values
//! kind 1 results values        kind 2 failure text        kind 3 probe  u8 len, key        kind 4 goodbye
//! kind 5 signal  u8 len, key | u8 len, name | values      (sent to every peer; subscribing is local)
//! ```
//! Values: little-endian numbers, text and bytes with a u32 length.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, missing_docs)]

use bytes::{Buf, Bytes, BytesMut};
use everywire_model::shape::{Enum, Text};
use everywire_model::visit::{Numbers, NumbersMut};
use everywire_model::*;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub static PLAIN: Plain = Plain;
pub struct Plain;

impl Wire for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }
    fn title(&self) -> &'static str {
        "the plain wire of the runtime's tests"
    }
    fn schemes(&self) -> &'static [&'static str] {
        &["plain"]
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { oneway: true, probe: true, signals: true, ..Capabilities::default() }
    }
    fn sniff(&self, _: &[u8]) -> Sniff {
        Sniff::Yes
    }
    fn parse(&self, text: &str) -> Result<Reference, Failure> {
        let address = Address::parse(text, None)?;
        Ok(self.publish("", &[Place::socket("plain", address.endpoint)], &address.key))
    }
    fn print(&self, reference: &Reference) -> String {
        let profile = &reference.profiles[0];
        let endpoint = profile.endpoints[0].clone();
        Address { scheme: "plain".into(), endpoint, key: profile.key.clone() }.to_string()
    }
    fn print_friendly(&self, reference: &Reference) -> String {
        self.print(reference)
    }
    fn publish(&self, type_id: &str, places: &[Place], key: &[u8]) -> Reference {
        let profile = Profile {
            wire: "plain",
            version: (1, 0),
            endpoints: places.iter().flat_map(|place| place.profile().endpoints.clone()).collect(),
            key: Bytes::copy_from_slice(key),
            components: vec![],
        };
        Reference { type_id: type_id.into(), profiles: vec![profile], foreign: vec![] }
    }
    fn listen(&self, text: &str) -> Result<Place, Failure> {
        Ok(Place::socket("plain", Address::parse(text, None)?.endpoint))
    }
    fn connect(&self, config: &Config) -> Box<dyn Session> {
        Box::new(PlainSession::new(config))
    }
    fn accept(&self, config: &Config) -> Box<dyn Session> {
        Box::new(PlainSession::new(config))
    }
    fn codec(&self) -> &'static dyn Codec {
        &PlainCodec
    }
    fn explain(&self, _: &[u8]) -> Listing {
        Listing::default()
    }
}

struct PlainSession {
    out: Rope,
    events: VecDeque<Event>,
    next: u64,
    open: Vec<u64>,
    subscribed: Vec<(u64, Option<String>)>,
    missing: usize,
    since: Option<Instant>,
    limits: Limits,
}

impl PlainSession {
    fn new(config: &Config) -> Self {
        Self {
            out: Rope::new(),
            events: VecDeque::from([Event::Ready(Peer::admitted(config.peer.clone(), "none"))]),
            next: 1,
            open: Vec::new(),
            subscribed: Vec::new(),
            missing: 0,
            since: None,
            limits: config.limits.clone(),
        }
    }

    fn frame(&mut self, kind: u8, call: u64, fill: &mut dyn FnMut(&mut Rope) -> Visit<()>) -> Visit<()> {
        let mark = self.out.mark();
        let (at, start) = (self.out.flat().len(), self.out.position());
        self.out.flat().extend_from_slice(&[0; 4]);
        self.out.flat().push(kind);
        self.out.flat().extend_from_slice(&call.to_le_bytes());
        if let Err(failure) = fill(&mut self.out) {
            self.out.truncate(mark);
            return Err(failure);
        }
        let len = u32::try_from(self.out.position() - start - 4).unwrap();
        self.out.flat()[at..at + 4].copy_from_slice(&len.to_le_bytes());
        Ok(())
    }

    fn violation(name: &'static str) -> Violation {
        Violation { wire: "plain", name, message: "that is not plain".into(), offset: 0 }
    }
}

fn short(out: &mut Vec<u8>, text: &[u8]) {
    out.push(u8::try_from(text.len()).unwrap());
    out.extend_from_slice(text);
}

fn take_short(from: &mut Bytes) -> Option<Bytes> {
    let len = usize::from(from.try_get_u8().ok()?);
    (len <= from.len()).then(|| from.split_to(len))
}

impl Session for PlainSession {
    fn receive(&mut self, now: Instant, input: &mut BytesMut, _: &mut Vec<Handle>) -> Result<(), Violation> {
        loop {
            self.missing = 0;
            if input.len() < 4 {
                break;
            }
            let len = u32::from_le_bytes(input[..4].try_into().unwrap()) as usize;
            if len as u64 > self.limits.message || len < 9 {
                return Err(Self::violation("Length"));
            }
            if input.len() < 4 + len {
                self.missing = 4 + len - input.len();
                break;
            }
            let mut frame = input.split_to(4 + len).freeze();
            frame.advance(4);
            let (kind, call) = (frame.get_u8(), frame.get_u64_le());
            let body = |bytes: Bytes| Body {
                bytes,
                base: 0,
                little: true,
                dialect: 0,
                context: Bytes::new(),
                budget: Budget::default(),
                codec: &PlainCodec,
                handles: None,
            };
            let id = CallId(call);
            match kind {
                0 => {
                    let oneway = frame.try_get_u8().map_err(|_| Self::violation("Call"))? != 0;
                    let key = take_short(&mut frame).ok_or_else(|| Self::violation("Key"))?;
                    let operation = take_short(&mut frame).ok_or_else(|| Self::violation("Operation"))?;
                    let expects = if oneway { Expects::Nothing } else { Expects::Reply };
                    if !oneway {
                        self.open.push(call);
                    }
                    self.events.push_back(Event::Call(Incoming {
                        id,
                        sender: Bytes::new(),
                        key,
                        interface: Bytes::new(),
                        operation,
                        body: body(frame),
                        expects,
                    }));
                }
                1 => self.events.push_back(Event::Reply { id, outcome: Outcome::Done(body(frame)) }),
                2 => {
                    let text = String::from_utf8_lossy(&frame).into_owned();
                    let failure = Failure::new(Kind::Internal, Initiator::Peer, text);
                    self.events.push_back(Event::Reply { id, outcome: Outcome::Failed(failure) });
                }
                3 => {
                    let key = take_short(&mut frame).ok_or_else(|| Self::violation("Key"))?;
                    self.open.push(call);
                    self.events.push_back(Event::Probe { id, key, type_id: None });
                }
                4 => self.events.push_back(Event::Closed),
                5 => {
                    let key = take_short(&mut frame).ok_or_else(|| Self::violation("Key"))?;
                    let signal = take_short(&mut frame).ok_or_else(|| Self::violation("Signal"))?;
                    let wants = |name: &Option<String>| name.as_ref().is_none_or(|n| n.as_bytes() == signal);
                    let subscriptions: Vec<CallId> =
                        self.subscribed.iter().filter(|(_, n)| wants(n)).map(|(id, _)| CallId(*id)).collect();
                    let (sender, interface) = (Bytes::new(), Bytes::new());
                    let heard = Heard { sender, key, interface, signal, body: body(frame) };
                    self.events.push_back(Event::Signal { subscriptions, heard });
                }
                _ => return Err(Self::violation("Kind")),
            }
        }
        self.since = if input.is_empty() { None } else { self.since.or(Some(now)) };
        Ok(())
    }
    fn wanted(&self) -> usize {
        self.missing
    }
    fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
    fn transmit(&mut self) -> &mut Rope {
        &mut self.out
    }
    fn start(&mut self, _: Instant, call: &Call<'_>) -> Result<CallId, Failure> {
        let id = self.next;
        self.next += 1;
        let oneway = call.expects == Expects::Nothing;
        self.frame(0, id, &mut |out| {
            out.flat().push(oneway.into());
            short(out.flat(), &call.profile.key);
            short(out.flat(), call.operation.name.as_bytes());
            call.arguments.encode(&mut PlainSink(out))
        })?;
        Ok(CallId(id))
    }
    fn probe(&mut self, _: Instant, profile: &Profile) -> Result<CallId, Failure> {
        let id = self.next;
        self.next += 1;
        self.frame(3, id, &mut |out| {
            short(out.flat(), &profile.key);
            Ok(())
        })?;
        Ok(CallId(id))
    }
    fn emit(&mut self, _: Instant, emission: &Emission<'_>) -> Result<(), Failure> {
        self.frame(5, 0, &mut |out| {
            short(out.flat(), emission.key);
            short(out.flat(), emission.signal.name.as_bytes());
            emission.arguments.encode(&mut PlainSink(out))
        })
    }
    fn subscribe(&mut self, _: Instant, interest: &Interest<'_>) -> Result<CallId, Failure> {
        let id = self.next;
        self.next += 1;
        self.subscribed.push((id, interest.signal.map(|signal| signal.name.to_string())));
        let body = PlainCodec.write(&mut |_| Ok(()))?;
        self.events.push_back(Event::Reply { id: CallId(id), outcome: Outcome::Done(body) });
        Ok(CallId(id))
    }
    fn unsubscribe(&mut self, id: CallId) {
        self.subscribed.retain(|(held, _)| *held != id.0);
    }
    fn answer(&mut self, id: CallId, answer: Answer<'_>) -> Result<(), Failure> {
        let Some(at) = self.open.iter().position(|open| *open == id.0) else { return Ok(()) };
        self.open.swap_remove(at);
        match answer {
            Answer::Done(results) => self.frame(1, id.0, &mut |out| results.encode(&mut PlainSink(out))),
            Answer::Failed(failure) => {
                let text = failure.to_string();
                self.frame(2, id.0, &mut |out| {
                    out.flat().extend_from_slice(text.as_bytes());
                    Ok(())
                })
            }
            _ => Err(Failure::new(Kind::Unsupported, Initiator::Here, "not plain")),
        }
    }
    fn cancel(&mut self, _: CallId) {}
    fn close(&mut self) {
        let _ = self.frame(4, 0, &mut |_| Ok(()));
    }
    fn disconnected(&mut self, _: &Failure) {}
    fn deadline(&self) -> Option<Instant> {
        self.since.map(|since| since + self.limits.message_time)
    }
    fn expire(&mut self, now: Instant) -> Result<(), Violation> {
        match self.deadline() {
            Some(deadline) if deadline <= now => Err(Self::violation("Slow")),
            _ => Ok(()),
        }
    }
    fn outstanding(&self) -> usize {
        self.open.len()
    }
}

struct PlainCodec;

impl Codec for PlainCodec {
    fn read<'a>(&self, body: &'a Body, visit: &mut dyn FnMut(&mut dyn Source<'a>) -> Visit<()>) -> Visit<()> {
        visit(&mut PlainSource { whole: &body.bytes, rest: &body.bytes, budget: body.budget })
    }
    fn write(&self, visit: &mut dyn FnMut(&mut dyn Sink) -> Visit<()>) -> Visit<Body> {
        let mut out = Rope::new();
        visit(&mut PlainSink(&mut out))?;
        Ok(Body {
            bytes: out.to_vec().into(),
            base: 0,
            little: true,
            dialect: 0,
            context: Bytes::new(),
            budget: Budget::default(),
            codec: &PlainCodec,
            handles: None,
        })
    }
}

fn unsupported<T>() -> Visit<T> {
    Err(Failure::new(Kind::Unsupported, Initiator::Here, "not plain"))
}

struct PlainSink<'r>(&'r mut Rope);

macro_rules! put {
    ($($name:ident $type:ty),*) => {
        $(fn $name(&mut self, value: $type) -> Visit<()> {
            self.0.flat().extend_from_slice(&value.to_le_bytes());
            Ok(())
        })*
    };
}

impl Sink for PlainSink<'_> {
    put!(u8 u8, i8 i8, u16 u16, i16 i16, u32 u32, i32 i32, u64 u64, i64 i64, f32 f32, f64 f64);
    fn bool(&mut self, value: bool) -> Visit<()> {
        self.u8(value.into())
    }
    fn char(&mut self, value: char, _: bool) -> Visit<()> {
        self.u32(value.into())
    }
    fn text(&mut self, _: &Text, value: &str) -> Visit<()> {
        self.bytes(&Shape::Void, value.as_bytes())
    }
    fn bytes(&mut self, _: &Shape, value: &[u8]) -> Visit<()> {
        self.u32(u32::try_from(value.len()).unwrap())?;
        self.0.flat().extend_from_slice(value);
        Ok(())
    }
    fn shared(&mut self, _: &Shape, value: &Bytes) -> Visit<()> {
        self.u32(u32::try_from(value.len()).unwrap())?;
        self.0.splice(value.clone());
        Ok(())
    }
    fn numbers(&mut self, values: Numbers<'_>) -> Visit<()> {
        values.put(true, self.0.flat());
        Ok(())
    }
    fn enumerant(&mut self, _: &Enum, value: i32) -> Visit<()> {
        self.i32(value)
    }
    fn reference(&mut self, value: Option<&Reference>) -> Visit<()> {
        let text = value.map(|reference| PLAIN.print(reference)).unwrap_or_default();
        self.text(&Text::NARROW, &text)
    }
    fn handle(&mut self, _: &Handle) -> Visit<()> {
        unsupported()
    }
    fn open(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        if let Shape::Sequence(_) = shape { self.u32(u32::try_from(len).unwrap()) } else { Ok(()) }
    }
    fn content(&mut self, _: &Shape) -> Visit<()> {
        unsupported()
    }
    fn close(&mut self, _: &Shape) -> Visit<()> {
        Ok(())
    }
}

struct PlainSource<'a> {
    whole: &'a Bytes,
    rest: &'a [u8],
    budget: Budget,
}

impl<'a> PlainSource<'a> {
    fn take(&mut self, n: usize) -> Visit<&'a [u8]> {
        let (now, rest) = self.rest.split_at_checked(n).ok_or_else(|| Failure::malformed("too short", 0))?;
        self.rest = rest;
        Ok(now)
    }
}

macro_rules! get {
    ($($name:ident $type:ty),*) => {
        $(fn $name(&mut self) -> Visit<$type> {
            Ok(<$type>::from_le_bytes(self.take(size_of::<$type>())?.try_into().unwrap()))
        })*
    };
}

impl<'a> Source<'a> for PlainSource<'a> {
    get!(u8 u8, i8 i8, u16 u16, i16 i16, u32 u32, i32 i32, u64 u64, i64 i64, f32 f32, f64 f64);
    fn bool(&mut self) -> Visit<bool> {
        Ok(self.u8()? != 0)
    }
    fn char(&mut self, _: bool) -> Visit<char> {
        char::from_u32(self.u32()?).ok_or_else(|| Failure::malformed("no character", 0))
    }
    fn text(&mut self, _: &Text) -> Visit<Cow<'a, str>> {
        let len = self.u32()? as usize;
        std::str::from_utf8(self.take(len)?).map(Cow::Borrowed).map_err(|_| Failure::malformed("no text", 0))
    }
    fn bytes(&mut self, _: &Shape) -> Visit<Cow<'a, [u8]>> {
        let len = self.u32()? as usize;
        self.take(len).map(Cow::Borrowed)
    }
    fn shared(&mut self, _: &Shape) -> Visit<Bytes> {
        let len = self.u32()? as usize;
        self.take(len).map(|part| self.whole.slice_ref(part))
    }
    fn numbers(&mut self, mut into: NumbersMut<'_>) -> Visit<()> {
        let part = self.take(into.len() * into.width())?;
        into.fill(true, part);
        Ok(())
    }
    fn enumerant(&mut self, _: &Enum) -> Visit<i32> {
        self.i32()
    }
    fn reference(&mut self) -> Visit<Option<Reference>> {
        let text = self.text(&Text::NARROW)?;
        if text.is_empty() { Ok(None) } else { PLAIN.parse(&text).map(Some) }
    }
    fn handle(&mut self) -> Visit<Handle> {
        unsupported()
    }
    fn open(&mut self, shape: &Shape) -> Visit<usize> {
        if let Shape::Sequence(_) = shape { Ok(self.u32()? as usize) } else { Ok(0) }
    }
    fn content(&mut self) -> Visit<Shape> {
        unsupported()
    }
    fn close(&mut self, _: &Shape) -> Visit<()> {
        Ok(())
    }
    fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }
}

/// An interface by hand: what generated code looks like to the runtime.
pub trait Probe: Send + Sync {
    fn add_one(&self, v: i32) -> Result<i32, Failure>;
    fn get_bytes(&self, n: i32) -> Result<Bytes, Failure>;
    fn wait_ms(&self, ms: i32) -> Result<i32, Failure>;
    fn call_back(&self, n: i32, to: Option<Ref<dyn Probe>>) -> Result<i32, Failure>;
    fn hello(&self) -> Result<(), Failure>;
    fn panic(&self) -> Result<(), Failure>;
}

pub fn interface() -> &'static Interface {
    static INTERFACE: std::sync::OnceLock<Interface> = std::sync::OnceLock::new();
    INTERFACE.get_or_init(|| {
        let field = |name: &'static str, shape| shape::Field { name: name.into(), shape };
        let input = |name, shape| Parameter { direction: Direction::In, field: field(name, shape) };
        let any = || Shape::Reference(Hold::new(shape::Referent { name: "".into(), id: "".into() }));
        let mut hello = Operation::new("hello", vec![], Shape::Void);
        hello.oneway = true;
        Interface {
            name: "probe".into(),
            id: "probe".into(),
            identities: Cow::Borrowed(&[]),
            bases: Cow::Borrowed(&[]),
            operations: Cow::Owned(vec![
                Operation::new("add_one", vec![input("v", Shape::I32)], Shape::I32),
                Operation::new("get_bytes", vec![input("n", Shape::I32)], Shape::sequence(Shape::U8)),
                Operation::new("wait_ms", vec![input("ms", Shape::I32)], Shape::I32),
                Operation::new("call_back", vec![input("n", Shape::I32), input("to", any())], Shape::I32),
                hello,
                Operation::new("panic", vec![], Shape::Void),
            ]),
            inherited: 0,
            attributes: Cow::Borrowed(&[]),
            signals: Cow::Owned(vec![
                Signal::new("ticked", vec![field("n", Shape::I32)]),
                Signal::new("other", vec![]),
            ]),
            doc: "".into(),
        }
    })
}

/// The signal `ticked`.
#[derive(Debug, PartialEq)]
pub struct Ticked(pub i32);

impl Emits<Ticked> for dyn Probe {}

impl Occasion for Ticked {
    fn interface() -> &'static Interface {
        interface()
    }
    fn signal() -> &'static Signal {
        &interface().signals[0]
    }
    fn read(body: &Body) -> Result<Self, Failure> {
        body.decode(&Self::signal().fields).map(|(n,)| Self(n))
    }
    fn write(&self, sink: &mut dyn Sink) -> Visit<()> {
        (self.0,).marshal_list(&Self::signal().fields, sink)
    }
}

pub struct Stub(pub Object);

impl Probe for Stub {
    fn add_one(&self, v: i32) -> Result<i32, Failure> {
        self.0.call(&interface().operations[0], (v,)).map(|(v,)| v)
    }
    fn get_bytes(&self, n: i32) -> Result<Bytes, Failure> {
        self.0.call(&interface().operations[1], (n,)).map(|(v,)| v)
    }
    fn wait_ms(&self, ms: i32) -> Result<i32, Failure> {
        self.0.call(&interface().operations[2], (ms,)).map(|(v,)| v)
    }
    fn call_back(&self, n: i32, to: Option<Ref<dyn Probe>>) -> Result<i32, Failure> {
        self.0.call(&interface().operations[3], (n, to)).map(|(v,)| v)
    }
    fn hello(&self) -> Result<(), Failure> {
        self.0.notify(&interface().operations[4], ())
    }
    fn panic(&self) -> Result<(), Failure> {
        self.0.call(&interface().operations[5], ())
    }
}

pub struct Skeleton(std::sync::Arc<dyn Probe>);

impl Servant for Skeleton {
    fn interface(&self) -> &Interface {
        interface()
    }
    fn dispatch(&self, request: Request) {
        request.run(|request| match request.index() {
            0 => {
                let (v,) = request.arguments()?;
                request.reply(self.0.add_one(v).map(|v| (v,)))
            }
            1 => {
                let (n,) = request.arguments()?;
                request.reply(self.0.get_bytes(n).map(|v| (v,)))
            }
            2 => {
                let (ms,) = request.arguments()?;
                request.reply(self.0.wait_ms(ms).map(|v| (v,)))
            }
            3 => {
                let (n, to) = request.arguments::<(i32, Option<Reference>)>()?;
                let to = request.narrow(to)?;
                request.reply(self.0.call_back(n, to).map(|v| (v,)))
            }
            4 => request.reply(self.0.hello()),
            _ => request.reply(self.0.panic()),
        });
    }
}

impl Remote for dyn Probe {
    fn interface() -> &'static Interface {
        interface()
    }
    fn stub(object: Object) -> std::sync::Arc<Self> {
        std::sync::Arc::new(Stub(object))
    }
    fn skeleton(servant: std::sync::Arc<Self>) -> std::sync::Arc<dyn Servant> {
        std::sync::Arc::new(Skeleton(servant))
    }
}

/// A servant that does what its operations say.
#[derive(Default)]
pub struct Honest {
    pub hellos: std::sync::atomic::AtomicUsize,
}

impl Probe for Honest {
    fn add_one(&self, v: i32) -> Result<i32, Failure> {
        Ok(v.wrapping_add(1))
    }
    fn get_bytes(&self, n: i32) -> Result<Bytes, Failure> {
        Ok(Bytes::from(vec![7; usize::try_from(n).unwrap()]))
    }
    fn wait_ms(&self, ms: i32) -> Result<i32, Failure> {
        std::thread::sleep(Duration::from_millis(u64::try_from(ms).unwrap()));
        Ok(ms)
    }
    fn call_back(&self, n: i32, to: Option<Ref<dyn Probe>>) -> Result<i32, Failure> {
        match to {
            Some(to) if n > 0 => to.add_one(n),
            _ => Ok(0),
        }
    }
    fn hello(&self) -> Result<(), Failure> {
        self.hellos.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }
    fn panic(&self) -> Result<(), Failure> {
        panic!("as asked")
    }
}
