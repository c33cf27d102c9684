//! What sessions know of their calls, and the time that they are given.

#![allow(clippy::unwrap_used)]

use crate::plain::{
    Frame, Honest, LONG, PLAIN, Plain, Probe, Raw, Router, SHORT, Ticked, block_on, interface, name, probe_at,
};
use bytes::Bytes;
use everywire_model::*;
use everywire_runtime::{Builder, Node};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Its sessions know of each call that it was not begun: which nobody else can tell.
static KNOWING: Plain = Plain { fate: Some(known), ..Plain::of(&["knowing"]) };

fn known(_: &Profile, id: CallId) -> Outcome<Body> {
    let what = format!("call {} was turned away", id.0);
    Outcome::Failed(Failure::new(Kind::Refused, Initiator::Peer, what).with_completed(Completed::No))
}

/// Its calls go on over another connection, by a way that says which.
static LASTING: Plain = Plain { fate: Some(moved), ..Plain::of(&["lasting"]) };

fn moved(way: &Profile, id: CallId) -> Outcome<Body> {
    let mut way = way.clone();
    way.key = Bytes::from(format!("call {}", id.0));
    way.components = vec![(RESUME_TOKEN, Bytes::new())];
    Outcome::Moved(Reference { profiles: vec![way], ..Reference::default() })
}

fn client(wire: &'static Plain) -> Node {
    Builder::new(&[wire]).shards(1).build()
}

fn answer(id: u64, number: i32) -> Vec<u8> {
    Frame { kind: 1, id, body: number.to_le_bytes().to_vec() }.bytes()
}

/// A future of `add_one`.
fn asked(far: &Object) -> object::Pending {
    far.submit(&interface().operations[0], &visit::Nothing)
}

/// Why it has no result.
fn failure(future: object::Pending) -> Failure {
    match block_on(future).expect("an outcome") {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn whoever_reads_is_told_what_the_session_knows_of_its_call() {
    // The peer leaves, or says what is no message.
    for last in [&[][..], &[0xff; 4]] {
        let name = name(&format!("knows-{}", last.len()));
        let listener = Router::open(&name);
        let client = client(&KNOWING);
        let far = client.connect::<dyn Probe>(&format!("knowing+unix://@{name}#probe")).unwrap();
        thread::scope(|scope| {
            let reading = scope.spawn(|| far.add_one(1).unwrap_err());
            let mut peer = listener.accept();
            let id = peer.read().id;
            // One that waits for it is told so, too.
            let sitting = scope.spawn(|| far.add_one(2).unwrap_err());
            let other = peer.read().id;
            peer.send(last);
            drop(peer);
            for (thread, id) in [(reading, id), (sitting, other)] {
                let failure = thread.join().unwrap();
                assert_eq!(
                    (failure.kind(), failure.completed()),
                    (Kind::Refused, Completed::No),
                    "{failure}"
                );
                assert!(failure.message().contains(&format!("call {id} ")), "{failure}");
            }
        });
    }
}

/// Octets beyond what fits between two processes: sending them takes as long as the peer likes.
const MANY: usize = 8 << 20;

#[test]
fn whoever_is_still_sending_has_the_answer_that_came_meanwhile() {
    let name = name("sends");
    let listener = Router::open(&name);
    let client = client(&PLAIN);
    let far = client.connect::<dyn Probe>(&format!("plain+unix://@{name}#probe")).unwrap();
    let octets = shape::Field { name: "octets".into(), shape: Shape::sequence(Shape::U8) };
    let parameter = Parameter { direction: Direction::In, field: octets };
    let put = Operation::new("put", vec![parameter], Shape::I32);
    let sender = client.resolve(far.reference()).unwrap().with_deadline(Some(LONG));
    thread::scope(|scope| {
        let reading = scope.spawn(|| far.add_one(1).unwrap());
        let mut peer = listener.accept();
        let first = peer.read().id;
        let sending =
            scope.spawn(|| sender.call::<(Vec<u8>,), (i32,), Failure>(&put, (vec![7; MANY],)).unwrap().0);
        let mut head = [0; 13];
        std::io::Read::read_exact(&mut peer.0, &mut head).unwrap();
        let second = u64::from_le_bytes(*head.last_chunk().unwrap());
        // Whoever reads hears this before its own answer.
        peer.send(&[answer(second, 5), answer(first, 2)].concat());
        assert_eq!(reading.join().unwrap(), 2);
        let length = u32::from_le_bytes(*head.first_chunk().unwrap()) as usize;
        let mut rest = vec![0; length - 9];
        std::io::Read::read_exact(&mut peer.0, &mut rest).unwrap();
        assert_eq!(sending.join().unwrap(), 5);
    });
}

/// A client that gives messages little time to arrive whole.
fn hasty(wire: &'static Plain) -> Node {
    let limits = Limits { message_time: Duration::from_millis(50), ..Limits::default() };
    Builder::new(&[wire]).shards(1).limits(limits).build()
}

#[test]
fn deadlines_of_sessions_are_looked_at_where_calls_are_made() {
    let name = name("half");
    let listener = Router::open(&name);
    let node = hasty(&PLAIN);
    let address = format!("plain+unix://@{name}#probe");
    let far = node.connect::<dyn Probe>(&address).unwrap();
    let half = |peer: &mut Raw| {
        let id = peer.read().id;
        peer.send(&answer(id, 1)[..9]);
    };
    // A thread that reads.
    thread::scope(|scope| {
        let blocking = scope.spawn(|| far.add_one(1).unwrap_err());
        let mut peer = listener.accept();
        half(&mut peer);
        assert_eq!(blocking.join().unwrap().kind(), Kind::Violation);
        peer.drain();
    });
    // Nobody but an event loop: it has nothing else to look at the clock for.
    let future = asked(&node.object(&address).unwrap());
    let mut peer = listener.accept();
    half(&mut peer);
    let failure = failure(future);
    assert_eq!(failure.kind(), Kind::Violation, "{failure}");
}

static TIMES: Mutex<Vec<Instant>> = Mutex::new(Vec::new());
static TIMED: Plain = Plain { times: Some(&TIMES), ..Plain::of(&["timed"]) };

#[test]
fn sessions_of_callers_are_given_the_time_of_the_message() {
    /// More than the clock that is read for that is behind at most.
    const LATER: Duration = Duration::from_millis(100);
    let name = name("times");
    let listener = Router::open(&name);
    let node = client(&TIMED);
    let far = node.connect::<dyn Probe>(&format!("timed+unix://@{name}#probe")).unwrap();
    thread::scope(|scope| {
        let reading = scope.spawn(|| far.add_one(1).unwrap());
        let mut peer = listener.accept();
        let id = peer.read().id;
        let (asked, before) = (Instant::now(), TIMES.lock().unwrap().len());
        // The call is old when its answer comes.
        thread::sleep(LATER);
        peer.send(&answer(id, 2));
        assert_eq!(reading.join().unwrap(), 2);
        let times = TIMES.lock().unwrap();
        assert!(times[before] > asked + LATER / 2, "{:?}", times[before].checked_duration_since(asked));
    });
}

#[test]
fn a_future_goes_on_over_another_connection_where_its_session_says_so() {
    let name = name("lasts");
    let listener = Router::open(&name);
    let node = client(&LASTING);
    let future = asked(&node.object(&format!("lasting+unix://@{name}#probe")).unwrap());
    let mut key = "probe".to_owned();
    for round in 0..3 {
        let mut peer = listener.accept();
        let call = peer.read();
        assert_eq!(call.body.get(2..2 + key.len()), Some(key.as_bytes()), "{round}: {call:?}");
        // What it asks for is the session's to know.
        assert_eq!(call.body.ends_with(b"\0"), round > 0, "{round}: {call:?}");
        key = format!("call {}", call.id);
        if round == 2 {
            peer.send(&answer(call.id, 2));
            let Some(Outcome::Done(body)) = block_on(future) else { panic!("an answer came") };
            let (result,) = body.decode::<(i32,)>(&interface().operations[0].results).unwrap();
            assert_eq!(result, 2);
            return;
        }
    }
}

#[test]
fn a_future_that_can_go_on_nowhere_is_told_that_its_call_may_have_run() {
    // Every connection ends; nobody is there any more; the node has ended.
    for case in 0..3 {
        let name = name(&format!("lost-{case}"));
        let mut listener = Some(Router::open(&name));
        let node = client(&LASTING);
        let future = asked(&node.object(&format!("lasting+unix://@{name}#probe")).unwrap());
        let mut peer = listener.as_ref().unwrap().accept();
        peer.read();
        match case {
            0 => {
                drop(peer);
                for _ in 0..3 {
                    listener.as_ref().unwrap().accept().read();
                }
            }
            1 => {
                listener = None;
                drop(peer);
            }
            _ => node.stop(),
        }
        let failure = failure(future);
        assert_eq!(failure.completed(), Completed::Maybe, "{case}: {failure}");
        assert_eq!(failure.kind(), Kind::Unreachable, "{case}: {failure}");
        assert!(listener.is_none_or(|listener| listener.try_accept().is_none()), "{case}");
    }
}

#[test]
fn a_future_whose_deadline_passes_while_it_goes_on_is_told_so() {
    let name = name("late");
    let listener = Router::open(&name);
    let node = client(&LASTING);
    let far = node.object(&format!("lasting+unix://@{name}#probe")).unwrap();
    let future = asked(&far.with_deadline(Some(SHORT)));
    listener.accept().read();
    let mut silent = listener.accept();
    silent.read();
    let failure = failure(future);
    assert_eq!((failure.kind(), failure.completed()), (Kind::TimedOut, Completed::Maybe), "{failure}");
}

/// Its event loop looks at it again and again.
static RESTLESS: Plain = Plain { restless: true, ..Plain::of(&["restless"]) };

/// The thread that reads lets go of the connection when others want it. If the event loop sees to the time just then, it finds the reply
/// among the events, and the reader gets it from there.
#[test]
fn a_reply_that_the_event_loop_finds_is_the_readers() {
    let server = Builder::new(&[&RESTLESS]).shards(1).build();
    let bound = server.listen("restless://127.0.0.1:0").unwrap();
    server.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    let client = Builder::new(&[&RESTLESS]).shards(1).build();
    let far = client.connect::<dyn Probe>(&probe_at(&bound)).unwrap();
    // So that the event loop has to do with the connection.
    let _listening = far.signals().on(|Ticked(_)| {}).unwrap();
    for n in 0..20 {
        assert_eq!(far.add_one(n).unwrap(), n + 1);
    }
}
