//! Messages made anew around the bodies of copies, as their wire has them: two sessions of the wire talk to each other in memory, one that
//! calls and one that answers, and what they say is written down.
//!
//! Invariants: nothing is connected, listened to or served; a conversation says nothing but what the copied call and its answer say, and
//! what the wire says before (greetings); and no more conversations are kept than [`MOST`] until their answers are copied.

use super::{Copy, CopyKind};
use crate::frontend::Frontend;
use bytes::{Bytes, BytesMut};
use everywire_model::{
    Answer, BindAddress, Body, Call, CallId, Config, Encode, Encoded, Event, Expects, Failure, Initiator,
    Kind, Method, PeerAddress, Profile, Purpose, Request, SendBuffer, Session, Wire,
};
use std::collections::VecDeque;
use std::time::Instant;

/// Conversations whose answers may still be copied.
const MOST: usize = 256;
/// How often each side may speak before the other one has understood it: greetings take a few turns, and two
/// sessions that talk for ever must end.
const TURNS: usize = 64;

/// Bytes that one side said, in order.
pub(super) struct StreamChunk {
    /// Whether it is the one that calls.
    pub(super) outward: bool,
    pub(super) bytes: Vec<u8>,
}

/// Conversations under way.
#[derive(Default)]
pub(super) struct Rebuilder {
    open: VecDeque<(u64, SessionPair)>,
}

/// A call between two sessions of this process. `call` is its number at the side that answers, once it has
/// arrived.
struct SessionPair {
    client: Box<dyn Session>,
    server: Box<dyn Session>,
    call: Option<CallId>,
    ready: bool,
}

impl Rebuilder {
    /// What is said when the call of a copy is made, or answered; nothing where that cannot be made anew.
    pub(super) fn say(&mut self, copy: &Copy) -> Option<Vec<StreamChunk>> {
        let body = copy.changed();
        match &copy.what {
            CopyKind::Arguments => {
                let head = copy.head.as_deref()?;
                let mut said = Vec::new();
                let talk = SessionPair::begin(head, &copy.named.1, &body, &mut said)?;
                if head.answers {
                    if self.open.len() >= MOST {
                        self.open.pop_front();
                    }
                    self.open.push_back((copy.call, talk));
                }
                Some(said)
            }
            CopyKind::Results => {
                let mut talk = self.take(copy.call)?;
                talk.answer(Answer::Done(&body))
            }
            CopyKind::Passed(passed) => {
                let mut talk = self.take(copy.call)?;
                let encoded = Encoded { id: passed.id.clone(), raised: passed.raised, body };
                let failure = Failure::new(Kind::Internal, Initiator::Peer, passed.id.clone());
                talk.answer(Answer::Passed { encoded: &encoded, failure: &failure })
            }
            CopyKind::Raised(_) => None,
        }
    }

    fn take(&mut self, call: u64) -> Option<SessionPair> {
        let at = self.open.iter().position(|(held, _)| *held == call)?;
        self.open.remove(at).map(|(_, talk)| talk)
    }
}

impl SessionPair {
    /// Begins a conversation and makes the call; `said` gets what both sides have said. Tries the listener's
    /// address with the options of `PLAIN` until one lets an unknown caller in.
    fn begin(head: &Head, operation: &[u8], body: &Body, said: &mut Vec<StreamChunk>) -> Option<Self> {
        let config = |profile: Profile| Config {
            limits: head.wire.default_limits(),
            peer: PeerAddress { text: "a copy".into(), credentials: None },
            local: None,
            profile,
            purpose: Purpose::Calls,
            wire_state: None,
            way_back: everywire_model::profile::Lease::default(),
            waker: None,
        };
        for (place, way) in places(head.wire, &head.address) {
            said.clear();
            let way = Profile { key: head.key.clone(), ..way };
            let client = head.wire.connect(&config(way.clone()));
            let server = head.wire.accept(&config(place));
            let mut talk = Self { client, server, call: None, ready: false };
            if talk.pass(said).is_none() || !talk.ready {
                // Whoever calls must show who it is, and nobody is here to do so.
                continue;
            }
            let method = Method::Named { interface: &head.interface, operation };
            let call = Call { profile: &way, method, arguments: body as &dyn Encode, expects: head.expects };
            talk.client.start(Instant::now(), &call).ok()?;
            talk.pass(said)?;
            return talk.call.is_some().then_some(talk);
        }
        None
    }

    /// Has the answering side answer; returns what was said then.
    fn answer(&mut self, answer: Answer<'_>) -> Option<Vec<StreamChunk>> {
        let mut said = Vec::new();
        self.server.answer(self.call?, answer).ok()?;
        self.pass(&mut said)?;
        (!said.is_empty()).then_some(said)
    }

    /// Hands what one side says to the other until both are silent.
    fn pass(&mut self, said: &mut Vec<StreamChunk>) -> Option<()> {
        for _ in 0..TURNS {
            let mut spoke = false;
            for outward in [true, false] {
                let (from, to) = match outward {
                    true => (&mut self.client, &mut self.server),
                    false => (&mut self.server, &mut self.client),
                };
                let buffer: SendBuffer = std::mem::take(from.transmit());
                if !buffer.is_empty() {
                    spoke = true;
                    let bytes = buffer.to_vec();
                    let mut input = BytesMut::from(bytes.as_slice());
                    to.receive(Instant::now(), &mut input, &mut Vec::new()).ok()?;
                    said.push(StreamChunk { outward, bytes });
                }
                while let Some(event) = to.poll() {
                    match event {
                        Event::Ready(_) if !outward => self.ready = true,
                        Event::Call(incoming) if outward => self.call = Some(incoming.id),
                        _ => {}
                    }
                }
                // A session may be ready at once, and have more to say when it was asked.
                while let Some(event) = from.poll() {
                    if matches!(event, Event::Ready(_)) && outward {
                        self.ready = true;
                    }
                }
            }
            if !spoke {
                return Some(());
            }
        }
        None
    }
}

/// The options by which wires are asked for plain words, for whoever is not known: a copy is nobody's secret among those who read it.
const PLAIN: [&str; 3] = ["?auth=anonymous", "?security=none", ""];

/// Places and the ways to them, as a listener's address tells.
fn places<'a>(wire: &'a dyn Wire, address: &'a str) -> impl Iterator<Item = (Profile, Profile)> + 'a {
    let plain = address.split('?').next().unwrap_or_default().trim_end_matches(['/', '#']);
    PLAIN.iter().filter_map(move |option| {
        let text = format!("{plain}{option}");
        let Ok(BindAddress::Listen(place)) = wire.listen(&text) else { return None };
        let way = wire.parse(&text).ok()?.profiles.into_iter().next()?;
        Some((place, way))
    })
}

/// What stands before the body of a call: enough to make the call anew, taken when the call is copied.
pub(super) struct Head {
    wire: &'static dyn Wire,
    /// That of the listener.
    address: String,
    key: Bytes,
    interface: Bytes,
    expects: Expects,
    /// Whether its answer is copied, too.
    answers: bool,
}

impl Head {
    pub(super) fn of(near: &Frontend, request: &Request, answers: bool) -> Self {
        let (interface, _, _) = request.passing();
        let (address, key) = (near.bound().to_owned(), Bytes::copy_from_slice(request.key()));
        Self { wire: near.wire, address, key, interface, expects: request.expects(), answers }
    }
}
