//! Calls as spans of `tracing`, on both sides, as a subscriber of the user's sees them.

use everywire::{Failure, Kind, Node, Ref};
use everywire_tests::bench::{Benchmarking, BenchmarkingAsync};
use everywire_tests::kitchen::interop::{JudgeError, Kitchen};
use everywire_tests::servants;
use std::collections::HashMap;
use std::fmt::Debug;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::common::scratch;

type Fields = HashMap<&'static str, String>;

/// Keeps the spans of calls, each with its fields and those of the event that ended it.
#[derive(Default)]
struct Kept {
    next: AtomicU64,
    /// How many spans were asked for that nobody wanted.
    unwanted: AtomicUsize,
    spans: Mutex<HashMap<u64, (&'static str, Fields)>>,
    ended: Mutex<Vec<(&'static str, Fields)>>,
    more: Condvar,
}

/// What the process has for a subscriber, and the test reads.
#[derive(Clone)]
struct Keeper {
    kept: Arc<Kept>,
    wants: bool,
}

struct Reader<'f>(&'f mut Fields);

impl Visit for Reader<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let ours = metadata.target().starts_with("everywire::");
        assert!(!ours || *metadata.level() == Level::DEBUG);
        ours && self.wants
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        if !self.wants {
            self.kept.unwanted.fetch_add(1, Ordering::Relaxed);
        }
        let id = self.kept.next.fetch_add(1, Ordering::Relaxed) + 1;
        let mut fields = Fields::new();
        span.record(&mut Reader(&mut fields));
        self.kept.spans.lock().unwrap().insert(id, (span.metadata().name(), fields));
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut spans = self.kept.spans.lock().unwrap();
        values.record(&mut Reader(&mut spans.get_mut(&span.into_u64()).unwrap().1));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let span = event.parent().expect("it is in a span").into_u64();
        let (name, mut fields) = self.kept.spans.lock().unwrap()[&span].clone();
        event.record(&mut Reader(&mut fields));
        self.kept.ended.lock().unwrap().push((name, fields));
        self.kept.more.notify_all();
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Keeper {
    fn install(wants: bool) -> Self {
        let keeper = Self { kept: Arc::default(), wants };
        tracing::subscriber::set_global_default(keeper.clone()).expect("each test has a process of its own");
        keeper
    }

    /// The next span of this name that ended, with its fields.
    fn next(&self, name: &str) -> Fields {
        let mut ended = self.kept.ended.lock().unwrap();
        loop {
            match ended.iter().position(|(held, _)| *held == name) {
                Some(at) => return ended.remove(at).1,
                None => ended = self.kept.more.wait(ended).unwrap(),
            }
        }
    }

    fn expect(&self, name: &str, fields: &[(&str, &str)]) {
        let mut told = self.next(name);
        told.remove("microseconds").expect("it took some time").parse::<u64>().expect("a number");
        assert!(told.remove("endpoint").is_some_and(|endpoint| !endpoint.is_empty()), "{name}");
        for (field, value) in fields {
            let held = told.remove(field).unwrap_or_default();
            assert!(
                held == *value || (*field == "failure" && held.contains(value)),
                "{name} {field}: {held}"
            );
        }
        assert!(told.is_empty(), "{name}: {told:?}");
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn a_subscriber_sees_calls_on_two_wires_on_both_sides() {
    let keeper = Keeper::install(true);
    let dir = scratch("tracing");
    for (scheme, wire) in [("iiop", "giop"), ("dbus", "dbus")] {
        let server = Node::new();
        let socket = dir.join(scheme);
        server.listen(&format!("{scheme}+unix://{}", socket.display())).unwrap();
        let _ = servants::export_all(&server);
        let client = Node::new();
        let at = |key: &str| format!("{scheme}+unix://{}#{key}", socket.display());

        let bench: Ref<dyn Benchmarking> = client.connect(&at("benchmarking")).unwrap();
        assert_eq!(bench.in_out_int_call(1).unwrap(), 2);
        let call = [("wire", wire), ("interface", "benchmarking"), ("operation", "in_out_int_call")];
        for side in ["serve", "call"] {
            keeper.expect(side, &[&call[..], &[("outcome", "done")]].concat());
        }

        let later: Ref<dyn BenchmarkingAsync> = client.connect(&at("benchmarking")).unwrap();
        assert_eq!(block_on(later.in_out_int_call(2)).unwrap(), 3);
        for side in ["serve", "call"] {
            keeper.expect(side, &[&call[..], &[("outcome", "done")]].concat());
        }

        let kitchen: Ref<dyn Kitchen> = client.connect(&at("Kitchen")).unwrap();
        assert!(matches!(kitchen.judge(-3), Err(JudgeError::Refused(_))));
        for side in ["serve", "call"] {
            let told = keeper.next(side);
            assert_eq!((&*told["operation"], &*told["outcome"]), ("judge", "raised"), "{told:?}");
            assert!(told["exception"].contains("Refused"), "{told:?}");
        }

        // Nobody serves it: only its caller sees it.
        let nobody: Ref<dyn Benchmarking> = client.connect(&at("nobody")).unwrap();
        assert_eq!(nobody.in_out_int_call(1).map_err(|failure: Failure| failure.kind()), Err(Kind::NoObject));
        keeper.expect("call", &[&call[..], &[("outcome", "no-object"), ("failure", "nobody")]].concat());
        assert!(keeper.kept.ended.lock().unwrap().is_empty());
    }
}

#[test]
fn calls_within_the_process_are_seen_where_they_are_calls() {
    let keeper = Keeper::install(true);
    let node = Node::new();
    node.listen("inproc://tracing").unwrap();
    let _ = servants::export_all(&node);
    // Another face than the servant's: the call goes through the node.
    let bench: Ref<dyn BenchmarkingAsync> = node.connect("inproc://tracing/benchmarking").unwrap();
    assert_eq!(block_on(bench.in_out_int_call(1)).unwrap(), 2);
    for side in ["serve", "call"] {
        let told = keeper.next(side);
        assert_eq!((&*told["wire"], &*told["outcome"]), ("inproc", "done"), "{told:?}");
        assert_eq!((&*told["interface"], &*told["operation"]), ("benchmarking", "in_out_int_call"));
    }
}

#[test]
fn what_no_subscriber_wants_is_not_made() {
    let keeper = Keeper::install(false);
    let server = Node::new();
    let socket = scratch("untraced").join("socket");
    server.listen(&format!("iiop+unix://{}", socket.display())).unwrap();
    let _ = servants::export_all(&server);
    let address = format!("iiop+unix://{}#benchmarking", socket.display());
    let bench: Ref<dyn Benchmarking> = Node::new().connect(&address).unwrap();
    assert_eq!(bench.in_out_int_call(1).unwrap(), 2);
    assert_eq!(keeper.kept.unwanted.load(Ordering::Relaxed), 0);
}
