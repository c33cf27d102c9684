//! Where the time of a call goes: its parts, each measured alone, in one process and without I/O.
//!
//! * *Stub*: a call of the generated stub whose way to the object answers at once, with nothing.
//! * *Session*: two sessions that hand each other their bytes, for a call that carries nothing.
//! * *Marshalling*: what the same costs more for a call that carries a number there and back.
//! * *Look-up*: finding the servant by its key and the operation by its name.
//!
//! The parts need not add up to a whole call: the report shows what is left as links and runtime. Each
//! is the median of batches, since a single call is shorter than a look at the clock.

use super::servants::{Benchmarking, Seven, describe};
use crate::broken;
use everywire::model::{
    Answer, BindAddress, Body, Bytes, Call, Config, Endpoint, Event, Expects, Failure, MarshalList, Method,
    Object, Operation, Outcome, Profile, Reference, Remote, Resolver, Servant, Session, Target, Wire,
    object::{Completion, Local, Ticket},
    visit::{Encode, Sink},
};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Places of the operations in `bench.idl`.
const VOID: usize = 0;
const IN_OUT_INT: usize = 3;

/// Measures the parts, and prints them as one JSON object.
pub(super) fn run(wire: &'static dyn Wire) -> Result<(), Failure> {
    let key = Bytes::from_static(b"benchmarking");
    let endpoint = Endpoint::InProcess { name: "split".into() };
    let place = BindAddress::socket(wire.name(), Endpoint::Unix { path: "/split".into() });
    let reference = wire.publish("IDL:benchmarking:1.0", &[place], &key);
    let profile = reference.profiles.first().ok_or_else(|| broken(format!("no profile for {endpoint}")))?;

    let empty = wire.codec().write(&mut |_| Ok(()))?;
    let stub =
        <dyn Benchmarking>::stub(Object::new(Arc::new(Echo { reference: reference.clone(), body: empty })));
    let stub_ns = each(|| black_box(&stub).void_call())?;

    let mut pair = Pair::new(wire);
    let session_ns = each(|| pair.call(profile, VOID))?;
    let with_number_ns = each(|| pair.call(profile, IN_OUT_INT))?;

    let servant = <dyn Benchmarking>::skeleton(Arc::new(Seven));
    let directory: HashMap<Bytes, Arc<dyn Servant>> = HashMap::from([(key.clone(), servant)]);
    let name = operation(IN_OUT_INT)?.name.clone();
    let lookup_ns = each(|| {
        let found = directory
            .get(black_box(&key))
            .and_then(|servant| servant.interface().index_of(black_box(name.as_bytes())));
        if found == Some(IN_OUT_INT) { Ok(()) } else { Err(broken("the operation is not found")) }
    })?;
    let parts = serde_json::json!({
        "operation": "in_out_int_call",
        "wire": wire.name(),
        "stub_ns": stub_ns,
        "marshalling_ns": (with_number_ns - session_ns).max(0.0),
        "lookup_ns": lookup_ns,
        "session_ns": session_ns,
    });
    println!("{parts}");
    Ok(())
}

fn operation(index: usize) -> Result<&'static Operation, Failure> {
    describe::BENCHMARKING_OPERATIONS.get(index).ok_or_else(|| broken("no such operation"))
}

/// Nanoseconds of one call: the median of many batches, for 60 ms or 20 batches, whichever is more.
#[allow(clippy::cast_precision_loss)]
fn each(mut call: impl FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    const BATCH: u32 = 500;
    let mut batches = Vec::new();
    let begun = Instant::now();
    while batches.len() < 20 || begun.elapsed() < Duration::from_millis(60) {
        let start = Instant::now();
        for _ in 0..BATCH {
            call()?;
        }
        batches.push(start.elapsed().as_nanos() as f64 / f64::from(BATCH));
    }
    crate::stats::median(&batches).ok_or_else(|| broken("nothing was measured"))
}

/// The two ends of a connection without a connection: what one transmits is handed to the other.
struct Pair {
    client: Box<dyn Session>,
    server: Box<dyn Session>,
    to_server: bytes::BytesMut,
    to_client: bytes::BytesMut,
}

impl Pair {
    fn new(wire: &dyn Wire) -> Self {
        let config = Config::default();
        let (to_server, to_client) = (bytes::BytesMut::new(), bytes::BytesMut::new());
        Self { client: wire.connect(&config), server: wire.accept(&config), to_server, to_client }
    }

    /// One call of the operation, there and back, its values encoded and decoded on both sides.
    fn call(&mut self, profile: &Profile, index: usize) -> Result<(), Failure> {
        let operation = operation(index)?;
        let now = Instant::now();
        let number = black_box(42i32);
        let carries = index == IN_OUT_INT;
        let arguments = |sink: &mut dyn Sink| {
            if carries {
                (number,).marshal_list(&operation.arguments, sink)
            } else {
                ().marshal_list(&operation.arguments, sink)
            }
        };
        let call = Call {
            profile,
            method: Method::Typed { interface: None, operation },
            arguments: &arguments,
            expects: Expects::Reply,
        };
        self.client.start(now, &call)?;
        pass(&mut *self.client, &mut *self.server, &mut self.to_server, now)?;
        while let Some(event) = self.server.poll() {
            let Event::Call(incoming) = event else { continue };
            let v = if carries { incoming.body.decode::<(i32,)>(&operation.arguments)?.0 } else { 0 };
            let results = |sink: &mut dyn Sink| {
                if carries {
                    (v + 1,).marshal_list(&operation.results, sink)
                } else {
                    ().marshal_list(&operation.results, sink)
                }
            };
            self.server.answer(incoming.id, Answer::Done(&results))?;
        }
        pass(&mut *self.server, &mut *self.client, &mut self.to_client, now)?;
        while let Some(event) = self.client.poll() {
            let Event::Reply { outcome: Outcome::Done(body), .. } = event else { continue };
            let v = if carries { body.decode::<(i32,)>(&operation.results)?.0 } else { 43 };
            return if v == 43 { Ok(()) } else { Err(broken("a wrong answer")) };
        }
        Err(broken("no answer"))
    }
}

/// Hands all that one session has to send to the other.
fn pass(
    from: &mut dyn Session,
    to: &mut dyn Session,
    buffer: &mut bytes::BytesMut,
    now: Instant,
) -> Result<(), Failure> {
    let outgoing = from.transmit();
    match outgoing.contiguous() {
        Some(bytes) => buffer.extend_from_slice(bytes),
        None => buffer.extend_from_slice(&outgoing.to_vec()),
    }
    outgoing.consume(outgoing.len());
    Ok(to.receive(now, buffer, &mut Vec::new())?)
}

/// A way to an object that answers at once, always with the same body. It stands where a connection
/// would.
struct Echo {
    reference: Reference,
    body: Body,
}

impl Target for Echo {
    fn reference(&self) -> &Reference {
        &self.reference
    }

    fn invoke(&self, _: Method<'_>, _: &dyn Encode) -> Outcome<Body> {
        Outcome::Done(self.body.clone())
    }

    fn notify(&self, _: Method<'_>, _: &dyn Encode) -> Result<(), Failure> {
        Ok(())
    }

    fn submit(&self, _: Method<'_>, _: &dyn Encode, done: Completion) -> Ticket {
        done(Outcome::Done(self.body.clone()));
        Ticket(0)
    }

    fn withdraw(&self, _: Ticket) {}

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn with_deadline(&self, _: Option<Duration>) -> Arc<dyn Target> {
        Arc::new(Self { reference: self.reference.clone(), body: self.body.clone() })
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::new(NullResolver)
    }
}

/// References are not used here: nothing is resolved.
struct NullResolver;

impl Resolver for NullResolver {
    fn resolve(&self, _: &Reference) -> Result<Object, Failure> {
        Err(broken("nothing is resolved here"))
    }

    fn local(&self, _: &Reference, _: &str) -> Option<Local> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sessions_carry_both_calls() {
        let wire = super::super::USUAL.speech().unwrap();
        let place = BindAddress::socket(wire.name(), Endpoint::Unix { path: "/split".into() });
        let reference = wire.publish("", &[place], b"key");
        let mut pair = Pair::new(wire);
        for _ in 0..3 {
            pair.call(&reference.profiles[0], VOID).unwrap();
            pair.call(&reference.profiles[0], IN_OUT_INT).unwrap();
        }
    }
}
