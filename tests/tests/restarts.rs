//! Servers that end while calls are under way, and successors that take their place: a call begins at most once, what was
//! acknowledged has ended, and what is told not to have run never began.
//!
//! A call is *held* by its servant until the test lets it go, so nothing here depends on how fast the machine is.

use crate::common::foreign::until;
use crate::common::house::{INTERFACE, object};
use crate::common::scratch;
use everywire::model::shape::{Field, Shape};
use everywire::model::{Completed, Direction, Operation, Parameter, Request, Servant};
use everywire::{Failure, Interface, Kind, Node};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex};
use std::time::Duration;

/// Longer than any test.
pub(crate) const LONG: Duration = Duration::from_secs(600);
/// Callers at a time.
const CALLERS: i32 = 8;

/// An operation whose argument is as large as one likes.
static LARGE: LazyLock<Interface> = LazyLock::new(|| {
    let field = Field { name: "v".into(), shape: Shape::sequence(Shape::U8) };
    let mut large = INTERFACE.clone();
    large.operations =
        vec![Operation::new("count", vec![Parameter { direction: Direction::In, field }], Shape::I32)].into();
    large
});

/// Holds its calls back while it is told to, and keeps a list of those that began.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    open: bool,
    began: BTreeMap<i32, u32>,
    ended: usize,
}

impl Gate {
    pub(crate) fn open(&self) {
        self.state.lock().expect("whole").open = true;
        self.changed.notify_all();
    }

    pub(crate) fn began(&self) -> BTreeMap<i32, u32> {
        self.state.lock().expect("whole").began.clone()
    }

    pub(crate) fn ended(&self) -> usize {
        self.state.lock().expect("whole").ended
    }
}

/// The servant of one server.
pub(crate) struct Held(pub(crate) Arc<Gate>);

impl Servant for Held {
    fn interface(&self) -> &Interface {
        &INTERFACE
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| {
            let (number,) = request.arguments::<(i32,)>()?;
            *self.0.state.lock().expect("whole").began.entry(number).or_default() += 1;
            everywire::blocking(|| {
                let mut state = self.0.state.lock().expect("whole");
                while !state.open {
                    state = self.0.changed.wait(state).expect("whole");
                }
                state.ended += 1;
            });
            request.reply(Ok::<_, Failure>((number + 1,)))
        });
    }
}

/// A wire: its address to listen at, and that of the object, after the path of a socket.
pub(crate) struct Course {
    pub(crate) name: &'static str,
    scheme: &'static str,
    serving: &'static str,
    calling: &'static str,
}

pub(crate) const COURSES: [Course; 5] = [
    Course { name: "giop", scheme: "iiop", serving: "", calling: "" },
    Course { name: "dbus", scheme: "dbus", serving: "", calling: "" },
    Course { name: "dcom", scheme: "dcom", serving: "", calling: "?exporter=here" },
    Course { name: "net.tcp", scheme: "net.tcp", serving: "?security=none", calling: "?security=none" },
    Course { name: "http", scheme: "basic", serving: "?security=none", calling: "?security=none" },
];

impl Course {
    /// Callers of the same process.
    pub(crate) fn within() -> Self {
        Self { name: "within", scheme: "inproc", serving: "", calling: "" }
    }

    pub(crate) fn listen(&self, socket: &Path) -> String {
        if self.scheme == "inproc" {
            return format!("inproc://{}", socket.display().to_string().replace('/', "-"));
        }
        format!("{}+unix://{}{}", self.scheme, socket.display(), self.serving)
    }

    pub(crate) fn reference(&self, socket: &Path) -> String {
        if self.scheme == "inproc" {
            return format!("{}/counter", self.listen(socket));
        }
        format!("{}+unix://{}#counter{}", self.scheme, socket.display(), self.calling)
    }

    fn serve(&self, socket: &Path, gate: &Arc<Gate>) -> Node {
        let node = Node::new();
        node.export_servant("counter", Arc::new(Held(Arc::clone(gate))));
        node.listen(&self.listen(socket)).unwrap_or_else(|failure| panic!("{}: {failure}", self.name));
        node
    }
}

pub(crate) fn caller() -> Node {
    Node::builder().deadline(Some(LONG)).build().into()
}

pub(crate) fn call(node: &Node, address: &str, number: i32) -> Result<i32, Failure> {
    object(node, address).call::<_, (i32,), Failure>(&INTERFACE.operations[0], (number,)).map(|(sum,)| sum)
}

/// Calls from a thread each, over a connection that two share; what each was told.
fn calls<'s>(
    scope: &'s std::thread::Scope<'s, '_>,
    address: &str,
    numbers: std::ops::Range<i32>,
) -> Vec<std::thread::ScopedJoinHandle<'s, (i32, Result<i32, Failure>)>> {
    let nodes: Vec<Node> = numbers.clone().step_by(2).map(|_| caller()).collect();
    numbers
        .enumerate()
        .map(|(at, number)| {
            let (node, address) = (nodes[at / 2].clone(), address.to_owned());
            scope.spawn(move || (number, call(&node, &address, number)))
        })
        .collect()
}

/// A server that is told to stop answers the calls that it has, and refuses new ones as not executed.
fn ends_gracefully(course: &Course) {
    let name = course.name;
    let socket = scratch(&format!("graceful-{name}")).join("s");
    let gate = Arc::new(Gate::default());
    let server = course.serve(&socket, &gate);
    let address = course.reference(&socket);
    std::thread::scope(|scope| {
        let held = calls(scope, &address, 0..CALLERS);
        until("all calls begin", || gate.began().len() == usize::try_from(CALLERS).expect("few"));
        // One that shares a connection with a call under way, once the server has begun to end.
        let sharing = caller();
        let first = {
            let (node, address) = (sharing.clone(), address.clone());
            scope.spawn(move || call(&node, &address, 100))
        };
        until("one more begins", || gate.began().contains_key(&100));
        server.drain();
        let late = call(&sharing, &address, 101).expect_err("a server that ends takes no new calls");
        // An error of D-Bus does not say whether the call began.
        let honest = if name == "dbus" { Completed::Maybe } else { Completed::No };
        assert_eq!(late.completed(), honest, "{name}: {late}");
        assert!(
            matches!(late.kind(), Kind::Busy | Kind::LimitExceeded | Kind::Unreachable),
            "{name}: {late}"
        );
        let stop = scope.spawn(move || {
            server.stop_within(LONG);
            server
        });
        assert!(!stop.is_finished(), "{name}: it does not wait for its calls");
        gate.open();
        for held in held {
            let (number, told) = held.join().expect("no panic");
            assert_eq!(told.unwrap_or_else(|failure| panic!("{name}: call {number}: {failure}")), number + 1);
        }
        assert_eq!(first.join().expect("no panic").expect("answered"), 101);
        drop(stop.join().expect("no panic"));
    });
    let began = gate.began();
    assert!(!began.contains_key(&101) && began.values().all(|times| *times == 1), "{name}: {began:?}");
}

/// Servers that are stopped without any patience, and successors at the same place: no call begins twice, and none that began is
/// told not to have run.
fn restarts(course: &Course) {
    const RESTARTS: i32 = 8;
    let name = course.name;
    let socket = scratch(&format!("restarts-{name}")).join("s");
    let address = course.reference(&socket);
    let next = AtomicI32::new(0);
    let mut began: BTreeMap<i32, u32> = BTreeMap::new();
    let mut told = Vec::new();
    for _ in 0..RESTARTS {
        let (gate, after) = (Arc::new(Gate::default()), Arc::new(Gate::default()));
        after.open();
        let server = course.serve(&socket, &gate);
        std::thread::scope(|scope| {
            let first = next.fetch_add(CALLERS, Ordering::Relaxed);
            let held = calls(scope, &address, first..first + CALLERS);
            until("all calls begin", || gate.began().len() == usize::try_from(CALLERS).expect("few"));
            // The successor has the place before the goodbyes come.
            server.drain();
            let successor = course.serve(&socket, &after);
            server.stop_within(Duration::ZERO);
            gate.open();
            told.extend(held.into_iter().map(|held| held.join().expect("no panic")));
            until("what began has ended", || gate.ended() == gate.began().len());
            successor.stop();
            drop(server);
        });
        for (number, times) in gate.began().into_iter().chain(after.began()) {
            *began.entry(number).or_default() += times;
        }
    }
    let mut wrong = Vec::new();
    for (number, told) in told {
        let times = began.get(&number).copied().unwrap_or(0);
        let fits = match &told {
            Ok(sum) => times == 1 && *sum == number + 1,
            Err(failure) => match failure.completed() {
                Completed::Yes => times == 1,
                Completed::No => times == 0,
                Completed::Maybe => times <= 1,
            },
        };
        if !fits {
            wrong.push(format!("call {number} began {times} times and was told {told:?}"));
        }
    }
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
}

/// A call under way does not suffer from another on its connection that is over the limit.
fn a_large_call_beside(course: &Course) {
    let name = course.name;
    let socket = scratch(&format!("large-{name}")).join("s");
    let gate = Arc::new(Gate::default());
    let server: Node = Node::builder().max_message(64 << 10).build().into();
    server.export_servant("counter", Arc::new(Held(Arc::clone(&gate))));
    server.listen(&course.listen(&socket)).unwrap_or_else(|failure| panic!("{name}: {failure}"));
    let address = course.reference(&socket);
    let node = caller();
    std::thread::scope(|scope| {
        let held = {
            let (node, address) = (node.clone(), address.clone());
            scope.spawn(move || call(&node, &address, 1))
        };
        until("the call begins", || gate.began().contains_key(&1));
        let large = object(&node, &address)
            .call::<_, (i32,), Failure>(&LARGE.operations[0], (vec![7_u8; 100 << 10],));
        let refused = large.expect_err("it is over the limit");
        assert_ne!(refused.completed(), Completed::Yes, "{name}: {refused}");
        gate.open();
        let told = held.join().expect("no panic");
        let times = gate.began()[&1];
        assert_eq!(times, 1, "{name}: the call beside ran {times} times and was told {told:?}");
        match told {
            Ok(sum) => assert_eq!(sum, 2),
            Err(failure) => assert_ne!(failure.completed(), Completed::No, "{name}: {failure}"),
        }
    });
}

macro_rules! on_every_wire {
    ($($test:ident: $what:ident;)*) => {$(
        #[test]
        fn $test() {
            std::thread::scope(|scope| {
                for course in &COURSES {
                    scope.spawn(move || $what(course));
                }
            });
        }
    )*};
}

on_every_wire! {
    a_server_that_stops_answers_the_calls_it_has: ends_gracefully;
    no_call_begins_twice_when_servers_are_restarted: restarts;
    a_call_does_not_suffer_from_a_large_one_beside_it: a_large_call_beside;
}
