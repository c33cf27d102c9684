//! The session of the plain wire.

use super::values::{PlainCodec, PlainSink};
use super::{Fate, Plain, Slowness};
use bytes::{Buf, Bytes, BytesMut};
use everywire_model::*;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub(super) struct PlainSession {
    out: SendBuffer,
    events: VecDeque<Event>,
    next: u64,
    open: Vec<u64>,
    subscribed: Vec<(u64, Option<String>)>,
    missing: usize,
    since: Option<Instant>,
    limits: Limits,
    /// Calls sent and not answered, where there may be one at a time.
    sent: Option<usize>,
    /// Whether it reads no more.
    full: bool,
    /// Calls that have no answer yet, if it knows what becomes of them.
    asked: Vec<u64>,
    fate: Option<Fate>,
    times: Option<&'static Mutex<Vec<Instant>>>,
    restless: bool,
    slowness: Option<&'static Slowness>,
    begun: Instant,
    way: Profile,
    keeps_busy: fn(),
}

impl PlainSession {
    pub(super) fn new(config: &Config, wire: &Plain) -> Self {
        Self {
            out: SendBuffer::new(),
            events: VecDeque::from([Event::Ready(Peer::admitted(config.peer.clone(), "none"))]),
            next: 1,
            open: Vec::new(),
            subscribed: Vec::new(),
            missing: 0,
            since: None,
            limits: config.limits.clone(),
            sent: wire.serial.then_some(0),
            full: false,
            asked: Vec::new(),
            fate: wire.fate,
            times: wire.times,
            restless: wire.restless,
            slowness: wire.slowness,
            begun: Instant::now(),
            way: config.profile.clone(),
            keeps_busy: wire.keeps_busy,
        }
    }

    fn frame(
        &mut self,
        kind: u8,
        call: u64,
        fill: &mut dyn FnMut(&mut SendBuffer) -> Visit<()>,
    ) -> Visit<()> {
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
        if let Some(times) = self.times {
            times.lock().unwrap().push(now);
        }
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
                context: Context::default(),
                budget: Budget::default(),
                codec: &PlainCodec,
                beside: None,
            };
            let id = CallId(call);
            if self.restless && kind == 1 {
                std::thread::sleep(Duration::from_millis(25));
            }
            if matches!(kind, 1 | 2) {
                self.asked.retain(|asked| *asked != call);
            }
            match kind {
                0 => {
                    let oneway = frame.try_get_u8().map_err(|_| Self::violation("Call"))? != 0;
                    let key = take_short(&mut frame).ok_or_else(|| Self::violation("Key"))?;
                    let operation = take_short(&mut frame).ok_or_else(|| Self::violation("Operation"))?;
                    let expects = if oneway { Expects::Nothing } else { Expects::Reply };
                    if !oneway {
                        self.open.push(call);
                    } else if self.one_at_a_time() {
                        self.frame(1, call, &mut |_| Ok(())).unwrap();
                    }
                    self.events.push_back(Event::Call(Box::new(Incoming {
                        id,
                        sender: Bytes::new(),
                        key,
                        interface: Bytes::new(),
                        operation,
                        body: body(frame),
                        expects,
                    })));
                }
                1 if self.sent.is_some_and(|sent| sent > 0) => {
                    self.sent = self.sent.map(|sent| sent - 1);
                    self.events.push_back(Event::Reply { id, outcome: Outcome::Done(body(frame)) });
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
                    self.events.push_back(Event::Probe { id, key, type_id: None, asked: None });
                }
                4 => self.events.push_back(Event::Closed),
                5 => {
                    let key = take_short(&mut frame).ok_or_else(|| Self::violation("Key"))?;
                    let signal = take_short(&mut frame).ok_or_else(|| Self::violation("Signal"))?;
                    let wants = |name: &Option<String>| name.as_ref().is_none_or(|n| n.as_bytes() == signal);
                    let subscriptions: Vec<CallId> =
                        self.subscribed.iter().filter(|(_, n)| wants(n)).map(|(id, _)| CallId(*id)).collect();
                    let (sender, interface) = (Bytes::new(), Bytes::new());
                    let heard = Incoming::signal(sender, key, interface, signal, body(frame));
                    self.events.push_back(Event::Signal { subscriptions, heard: Box::new(heard) });
                }
                6 => {
                    self.full = true;
                    self.frame(6, call, &mut |_| Ok(())).unwrap();
                }
                7 => {
                    let name = take_short(&mut frame).ok_or_else(|| Self::violation("Account"))?;
                    let peer = Peer::admitted(PeerAddress::default(), "word of mouth");
                    self.events.push_back(Event::Ready(peer.with_account(&String::from_utf8_lossy(&name))));
                }
                8 => self.events.push_back(Event::Cancelled(id)),
                9 => (self.keeps_busy)(),
                _ => return Err(Self::violation("Kind")),
            }
        }
        self.since = if input.is_empty() { None } else { self.since.or(Some(now)) };
        Ok(())
    }
    fn wanted(&self) -> usize {
        // Reads then end somewhere in a message.
        if self.slowness.is_some() { 0 } else { self.missing }
    }
    fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
    fn transmit(&mut self) -> &mut SendBuffer {
        &mut self.out
    }
    fn start(&mut self, _: Instant, call: &Call<'_>) -> Result<CallId, Failure> {
        let id = self.next;
        self.next += 1;
        let oneway = call.expects == Expects::Nothing;
        self.frame(0, id, &mut |out| {
            out.flat().push(oneway.into());
            short(out.flat(), &call.profile.key);
            short(out.flat(), call.method.name());
            call.arguments.encode(&mut PlainSink(out))
        })?;
        self.sent = self.sent.map(|sent| sent + 1);
        if self.fate.is_some() {
            self.asked.push(id);
        }
        Ok(CallId(id))
    }
    fn read_paused(&self) -> bool {
        self.full
    }
    fn one_at_a_time(&self) -> bool {
        self.sent.is_some()
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
            short(out.flat(), emission.topic.typed()?.1.name.as_bytes());
            emission.arguments.encode(&mut PlainSink(out))
        })
    }
    fn subscribe(&mut self, _: Instant, _: &Profile, filter: SignalFilter<'_>) -> Result<CallId, Failure> {
        let id = self.next;
        self.next += 1;
        self.subscribed.push((id, filter.signal.map(|signal| signal.name.to_string())));
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
    fn disconnected(&mut self, _: &Failure) {
        self.sent = self.sent.map(|_| 0);
        for id in std::mem::take(&mut self.asked) {
            let outcome = self.fate.unwrap()(&self.way, CallId(id));
            self.events.push_back(Event::Reply { id: CallId(id), outcome });
        }
    }
    fn deadline(&self) -> Option<Instant> {
        if self.restless {
            return Some(self.begun);
        }
        if let Some(slowness) = self.slowness {
            slowness.looks.fetch_add(1, Ordering::Relaxed);
            return Some(self.since.unwrap_or(self.begun));
        }
        self.since.map(|since| since + self.limits.message_time)
    }
    fn postpone(&mut self, by: Duration) {
        if let Some(slowness) = self.slowness {
            slowness.unread.fetch_add(u64::try_from(by.as_micros()).unwrap(), Ordering::Relaxed);
        }
    }
    fn expire(&mut self, now: Instant) -> Result<(), Violation> {
        if let Some(slowness) = self.slowness {
            let late = slowness.late.load(Ordering::Relaxed) && slowness.unread.load(Ordering::Relaxed) == 0;
            return if late && self.since.is_some() { Err(Self::violation("Slow")) } else { Ok(()) };
        }
        match self.deadline() {
            Some(deadline) if deadline <= now && !self.restless => Err(Self::violation("Slow")),
            _ => Ok(()),
        }
    }
    fn outstanding(&self) -> usize {
        self.open.len() + self.sent.unwrap_or(0)
    }
}
