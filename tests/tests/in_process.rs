//! Objects of this process whose caller's type is not the servant's: everything holds that holds elsewhere.

use crate::common::galley;
use everywire::model::object::Pending;
use everywire::model::{Outcome, Value, visit::Nothing};
use everywire::{Failure, Kind, Node, Object, Ref, Remote, async_trait};
use everywire_tests::bench::{Benchmarking, BenchmarkingAsync, describe as bench};
use everywire_tests::kitchen::interop::{
    Both, BothAsync, Choice, Colour, Counter, JudgeError, Kitchen, KitchenAsync, Named, NamedAsync, Painter,
    Pantry, Point, Tree,
};
use everywire_tests::servants::dbus::KEY;
use everywire_tests::servants::{self, Bench, Galley, Person};
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// A node at an address that nobody else in this process has.
fn house() -> (Node, String) {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let name = format!("inproc://in-process-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let node = Node::new();
    node.listen(&name).unwrap();
    (node, name)
}

/// The object as a stub sees it, never as the servant.
fn stub<I: Remote + ?Sized>(node: &Node, address: &str, key: &str) -> Ref<I> {
    node.object(&format!("{address}/{key}")).unwrap().into_typed()
}

#[test]
fn a_base_of_the_servants_type_is_the_servant_itself() {
    let (node, address) = house();
    let person = Arc::new(Person::new("ann"));
    node.export::<dyn Both>("ann", person.clone());
    let is_itself = |at: *const ()| std::ptr::addr_eq(at, Arc::as_ptr(&person));
    let ann = format!("{address}/ann");
    let named = node.connect::<dyn Named>(&ann).unwrap();
    assert!(is_itself(Arc::as_ptr(named.as_arc()).cast()));
    assert!(is_itself(Arc::as_ptr(node.connect::<dyn Counter>(&ann).unwrap().as_arc()).cast()));
    assert!(is_itself(Arc::as_ptr(node.connect::<dyn Painter>(&ann).unwrap().as_arc()).cast()));
    assert!(is_itself(Arc::as_ptr(node.connect::<dyn Both>(&ann).unwrap().as_arc()).cast()));
    named.set_name("bea").unwrap();
    assert_eq!(person.greet("you").unwrap(), "Hello, you");
    assert_eq!(named.name().unwrap(), "bea");
    // Over a wire that the same node listens at, too.
    let here = node.listen("iiop://127.0.0.1:0").unwrap();
    let named = node.connect::<dyn Named>(&format!("{here}ann")).unwrap();
    assert!(is_itself(Arc::as_ptr(named.as_arc()).cast()));
}

#[test]
fn the_asynchronous_face_of_a_blocking_servant_answers() {
    let (node, address) = house();
    let _ = servants::export_all(&node);
    let both = node.connect::<dyn BothAsync>(&format!("{address}/Both")).unwrap();
    let base = node.connect::<dyn NamedAsync>(&format!("{address}/Both")).unwrap();
    let kitchen = node.connect::<dyn KitchenAsync>(&format!("{address}/Kitchen")).unwrap();
    pollster(async {
        base.set_name("cy").await.unwrap();
        assert_eq!(both.add(40).await.unwrap(), 40);
        assert_eq!(both.summary().await.unwrap(), "cy 40 1");
        assert_eq!(
            kitchen.mix(7, 0.5, &Point { x: 1, y: 2 }).await.unwrap(),
            ("7".into(), 7.5, Point { x: 2, y: 1 })
        );
        assert!(matches!(kitchen.judge(-3).await, Err(JudgeError::Refused(refused)) if refused.code == -3));
        // A reference that came back leads to the object, by the face that was asked for.
        let made = kitchen.make("dan").await.unwrap().unwrap();
        assert_eq!(made.name().await.unwrap(), "dan");
    });
}

/// Never answers one of its operations.
struct Sleeper(Bench, Mutex<Vec<Waker>>);

#[async_trait]
impl BenchmarkingAsync for Sleeper {
    async fn void_call(&self) -> Result<(), Failure> {
        self.0.void_call()
    }
    async fn in_int_call(&self, v: i32) -> Result<(), Failure> {
        self.0.in_int_call(v)
    }
    async fn out_int_call(&self) -> Result<i32, Failure> {
        self.0.out_int_call()
    }
    async fn in_out_int_call(&self, v: i32) -> Result<i32, Failure> {
        self.0.in_out_int_call(v)
    }
    async fn in_string_call(&self, v: &str) -> Result<(), Failure> {
        self.0.in_string_call(v)
    }
    async fn out_string_call(&self) -> Result<String, Failure> {
        // For ever: somebody might wake it.
        poll_fn(|context| {
            self.1.lock().unwrap().push(context.waker().clone());
            Poll::Pending
        })
        .await
    }
    async fn in_out_string_call(&self, v: &str) -> Result<String, Failure> {
        self.0.in_out_string_call(v)
    }
}

#[test]
fn the_blocking_face_of_an_asynchronous_servant_answers_and_a_deadline_ends_a_call_of_either() {
    let (node, address) = house();
    node.export::<dyn BenchmarkingAsync>("sleeper", Arc::new(Sleeper(Bench, Mutex::default())));
    let sleeper = node.connect::<dyn Benchmarking>(&format!("{address}/sleeper")).unwrap();
    assert_eq!(sleeper.in_out_int_call(41).unwrap(), Bench.in_out_int_call(41).unwrap());
    assert_eq!(sleeper.in_out_string_call("x").unwrap(), Bench.in_out_string_call("x").unwrap());
    let soon =
        node.object(&format!("{address}/sleeper")).unwrap().with_deadline(Some(Duration::from_millis(5)));
    let failure = soon.clone().into_typed::<dyn Benchmarking>().out_string_call().unwrap_err();
    assert_eq!(failure.kind(), Kind::TimedOut, "{failure}");
    assert!(failure.to_string().contains("inproc:"), "{failure}");
    let failure = pollster(soon.into_typed::<dyn BenchmarkingAsync>().out_string_call()).unwrap_err();
    assert_eq!(failure.kind(), Kind::TimedOut, "{failure}");
}

#[test]
fn a_typed_reference_takes_a_deadline_wherever_its_object_lives() {
    let (node, address) = house();
    node.export::<dyn BenchmarkingAsync>("sleeper", Arc::new(Sleeper(Bench, Mutex::default())));
    let here = node.connect::<dyn BenchmarkingAsync>(&format!("{address}/sleeper")).unwrap();
    let bound = node.listen("iiop://127.0.0.1:0").unwrap();
    let client = Node::new();
    let there = client.connect::<dyn BenchmarkingAsync>(&format!("{bound}sleeper")).unwrap();
    for object in [here, there] {
        // A busy machine may answer late: only what never answers has a short deadline.
        let later = object.with_deadline(Some(Duration::from_secs(60))).unwrap();
        assert_eq!(pollster(later.in_out_string_call("x")).unwrap(), Bench.in_out_string_call("x").unwrap());
        let soon = object.with_deadline(Some(Duration::from_millis(5))).unwrap();
        let failure = pollster(soon.out_string_call()).unwrap_err();
        assert_eq!(failure.kind(), Kind::TimedOut, "{failure}");
    }
}

#[test]
fn who_waits_for_a_node_waits_until_it_is_stopped() {
    let (node, _) = house();
    let (tell, told) = std::sync::mpsc::channel();
    let waiting = node.clone();
    let waiter = std::thread::spawn(move || {
        tell.send("waits").unwrap();
        waiting.wait();
        tell.send("over").unwrap();
    });
    assert_eq!(told.recv(), Ok("waits"));
    assert!(told.try_recv().is_err());
    node.stop();
    assert_eq!(told.recv(), Ok("over"));
    waiter.join().unwrap();
    // Nor does it wait when that is over.
    node.wait();
}

#[test]
fn untyped_calls_reach_a_servant_and_are_told_what_is_wrong() {
    let (node, address) = house();
    let _ = servants::export_all(&node);
    let operation = |name: &str| {
        let interface = &bench::BENCHMARKING;
        interface.operations[interface.index_of(name.as_bytes()).unwrap()].clone()
    };
    let object = node.object(&format!("{address}/benchmarking")).unwrap();
    object.target().probe().unwrap();
    assert!(object.offers(&bench::BENCHMARKING.id).unwrap() && !object.offers("IDL:Other:1.0").unwrap());
    let answer: i32 = object.call::<_, (i32,), Failure>(&operation("in_out_int_call"), (3,)).unwrap().0;
    assert_eq!(answer, Bench.in_out_int_call(3).unwrap());
    object.send(&operation("void_call"), &Nothing).unwrap();
    let pending: Pending = object.submit(&operation("void_call"), &Nothing);
    let outcome = pollster(pending);
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    let failed = |object: &Object, operation| match object.invoke(&operation, &Nothing) {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    };
    let fly = everywire::model::Operation::new("fly", vec![], everywire::model::Shape::Void);
    let failure = failed(&object, fly.clone());
    assert_eq!((failure.kind(), failure.message().contains("fly")), (Kind::NoOperation, true), "{failure}");
    // Less than the operation wants.
    let failure = failed(&object, operation("in_out_int_call"));
    assert_eq!(failure.kind(), Kind::BadArgument, "{failure}");
    let nobody = node.object(&format!("{address}/nobody")).unwrap();
    let failure = failed(&nobody, fly.clone());
    assert_eq!((failure.kind(), failure.message().contains("nobody")), (Kind::NoObject, true), "{failure}");
    let failure = failed(&node.object("inproc://nowhere-at-all/x").unwrap(), fly);
    assert_eq!(failure.kind(), Kind::Unreachable, "{failure}");
    assert!(failure.hint().is_some(), "{failure:?}");
}

#[test]
fn values_of_all_kinds_go_through_memory() {
    let (node, address) = house();
    let _ = servants::export_all(&node);
    let kitchen = stub::<dyn Kitchen>(&node, &address, "Kitchen");
    let leaf = |name: &str| Tree { name: name.into(), children: vec![] };
    let tree = Tree { name: "root".into(), children: vec![leaf("a"), leaf("b")] };
    assert_eq!(kitchen.echo_tree(&tree).unwrap(), tree);
    assert_eq!(kitchen.echo_doubles(&[0.5, f64::MAX]).unwrap(), [0.5, f64::MAX]);
    assert_eq!(kitchen.echo_grid(&[[1, 2, 3], [4, 5, 6]]).unwrap(), [[1, 2, 3], [4, 5, 6]]);
    assert_eq!(kitchen.echo_octets(vec![7; 100_000].into()).unwrap(), vec![7; 100_000]);
    assert_eq!(kitchen.next_colour(Colour::Blue).unwrap(), Colour::Red);
    let listener = node.export_anonymous::<dyn everywire_tests::kitchen::interop::Listener>(Arc::new(
        servants::Doubler::default(),
    ));
    assert_eq!(kitchen.tell(Some(listener), 21).unwrap(), 42);
    let failure = match kitchen.judge(13) {
        Err(JudgeError::Failure(failure)) => failure,
        other => panic!("{other:?}"),
    };
    assert_eq!(failure.kind(), Kind::Refused, "{failure}");
    let pantry = stub::<dyn Pantry>(&node, &address, "Pantry");
    assert_eq!(
        pantry.echo_choice(&Choice::Place(Colour::Blue, Point { x: 1, y: 2 })).unwrap(),
        Choice::Place(Colour::Blue, Point { x: 1, y: 2 })
    );
    let value = everywire::model::Variant::from(7_i32);
    assert_eq!(pantry.echo_any(&value).unwrap().value().into_owned(), Value::Integer(7));
    // Maps, descriptors, signals.
    Galley::export(&node, KEY);
    let galley =
        node.object(&format!("{address}/{}", everywire::model::reference::escape(KEY.as_bytes()))).unwrap();
    let galley = galley.into_typed();
    galley::values(&*galley);
    galley::signals(&galley, 100);
    galley::handles(&*galley);
    galley::oneways_in_process(&*galley);
    galley::large(&*galley, &[0, 1 << 20]);
}

#[test]
fn a_node_that_ends_waits_for_calls_from_its_own_process_and_refuses_new_ones() {
    let (node, address) = house();
    let (begun, has_begun) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel();
    let slow = Arc::new(Slow { begun, goes_on: goes_on.into() });
    node.export::<dyn Named>("slow", slow);
    let stub = stub::<dyn Named>(&node, &address, "slow");
    let other = stub.clone();
    let caller = thread::spawn(move || other.name());
    has_begun.recv().unwrap();
    let stopping = {
        let node = node.clone();
        thread::spawn(move || node.stop_within(Duration::from_secs(300)))
    };
    let refused = loop {
        if let Err(failure) = stub.greet("you") {
            break failure;
        }
        thread::yield_now();
    };
    assert_eq!(refused.kind(), Kind::Busy, "{refused}");
    assert!(!stopping.is_finished());
    go_on.send(()).unwrap();
    assert_eq!(caller.join().unwrap().unwrap(), "slow");
    stopping.join().unwrap();
    assert_eq!(stub.greet("you").unwrap_err().kind(), Kind::Unreachable);
}

struct Slow {
    begun: mpsc::Sender<()>,
    goes_on: Mutex<mpsc::Receiver<()>>,
}

impl Named for Slow {
    fn name(&self) -> Result<String, Failure> {
        self.begun.send(()).unwrap();
        self.goes_on.lock().unwrap().recv().unwrap();
        Ok("slow".into())
    }
    fn set_name(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }
    fn changes(&self) -> Result<i32, Failure> {
        Ok(0)
    }
    fn greet(&self, who: &str) -> Result<String, Failure> {
        Ok(who.into())
    }
}

/// Waits for a future on this thread.
pub(crate) fn pollster<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        thread::park();
    }
}
