//! Layers of a node: what stands before its servants sees each call first, by whatever wire it comes.

use crate::common::foreign::{BUSES, bus, run, run_with, until};
use crate::common::galley::{NAME, PATH};
use crate::common::house::{INTERFACE, object};
use crate::common::scratch;
use crate::restarts::{COURSES, Course, Gate, Held, LONG, call, caller};
use everywire::layer::{AllowList, CallRecord, Ending, Layer, Limit, Next, TimeLimit, Trace};
use everywire::model::{Completed, Request};
use everywire::{Builder, Failure, Kind, Node};
use everywire_tests::peers::here;
use everywire_tests::servants::Galley;
use everywire_tests::servants::dbus::KEY;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Tells a test of each call that has ended.
fn told() -> (Trace, Receiver<CallRecord>) {
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    // Nobody listens any more when a test is over.
    (Trace::new(move |record| drop(tell.lock().unwrap().send(record.clone()))), told)
}

/// The counter on a wire, behind layers.
fn serve(course: &Course, socket: &Path, gate: &Arc<Gate>, builder: Builder) -> Node {
    let node: Node = builder.build().into();
    node.export_servant("counter", Arc::new(Held(Arc::clone(gate))));
    node.listen(&course.listen(socket)).unwrap_or_else(|failure| panic!("{}: {failure}", course.name));
    node
}

/// For each wire, and for callers of the same process.
fn everywhere(test: &str, what: impl Fn(&Course, &Path) + Sync) {
    let within = Course::within();
    std::thread::scope(|scope| {
        for course in COURSES.iter().chain([&within]) {
            let what = &what;
            let socket = scratch(&format!("{test}-{}", course.name)).join("s");
            scope.spawn(move || what(course, &socket));
        }
    });
}

#[test]
fn a_list_lets_through_what_it_names_and_the_servant_sees_nothing_else() {
    everywhere("allow", |course, socket| {
        let (trace, told) = told();
        let list = AllowList::new().anyone("test.Counter.count").unwrap();
        let gate = Arc::new(Gate::default());
        gate.open();
        let _server = serve(course, socket, &gate, Node::builder().layer(trace).layer(list));
        let (node, address) = (caller(), course.reference(socket));
        assert_eq!(call(&node, &address, 4).unwrap(), 5, "{}", course.name);
        let refused = object(&node, &address)
            .call::<_, (i32,), Failure>(&INTERFACE.operations[1], (vec![1_u8],))
            .unwrap_err();
        assert_eq!(refused.kind(), Kind::Refused, "{}: {refused}", course.name);
        assert!(refused.to_string().contains("test.Counter.large"), "{}: {refused}", course.name);
        let records = [told.recv_timeout(LONG).unwrap(), told.recv_timeout(LONG).unwrap()];
        assert_eq!((&*records[0].name, &records[0].ending), ("test.Counter.count", &Ending::Done));
        assert_eq!(&*records[1].name, "test.Counter.large");
        assert!(matches!(&records[1].ending, Ending::Failed("refused", _)), "{records:?}");
        assert_eq!(records[0].key, b"counter");
        assert_eq!(gate.began().len(), 1, "{}: the servant saw what was refused", course.name);
    });
}

#[test]
fn a_list_tells_callers_apart() {
    everywhere("callers", |course, socket| {
        let gate = Arc::new(Gate::default());
        gate.open();
        for (caller_rule, lets) in
            [("local", true), ("10.0.0.0/8", false), ("user:nobody-of-this-name", false)]
        {
            let list = AllowList::new().only(caller_rule, "test.Counter.*").unwrap();
            let socket = socket.with_extension(caller_rule.replace(['/', ':'], "-"));
            let server = serve(course, &socket, &gate, Node::builder().layer(list));
            let answer = call(&caller(), &course.reference(&socket), 1);
            assert_eq!(answer.is_ok(), lets, "{}, {caller_rule}: {answer:?}", course.name);
            server.stop();
        }
    });
}

#[test]
fn a_limit_refuses_what_is_too_much_and_takes_the_next_when_one_has_ended() {
    everywhere("limit", |course, socket| {
        let gate = Arc::new(Gate::default());
        let limit = Limit::new(2).of_each(2);
        let _server = serve(course, socket, &gate, Node::builder().layer(limit.clone()));
        let address = course.reference(socket);
        std::thread::scope(|scope| {
            let held = [1, 2].map(|number| {
                let address = &address;
                scope.spawn(move || call(&caller(), address, number))
            });
            until("both began", || gate.began().len() == 2);
            let refused = call(&caller(), &address, 3).map_err(|failure| failure.kind());
            let under_way = limit.under_way();
            // Before anything is asked that may fail, so that nobody waits for ever.
            gate.open();
            assert!(matches!(refused, Err(Kind::Busy | Kind::LimitExceeded)), "{}: {refused:?}", course.name);
            assert_eq!(under_way, 2);
            for call in held {
                call.join().unwrap().unwrap();
            }
        });
        // Whoever was answered is not counted any more.
        assert_eq!(limit.under_way(), 0, "{}", course.name);
        assert_eq!(call(&caller(), &address, 4).unwrap(), 5, "{}", course.name);
        assert!(!gate.began().contains_key(&3), "{}: it began", course.name);
    });
}

#[test]
fn a_servant_that_takes_too_long_is_answered_for_once() {
    everywhere("late", |course, socket| {
        let (trace, told) = told();
        let gate = Arc::new(Gate::default());
        let layers = Node::builder().layer(trace).layer(TimeLimit::new(Duration::from_millis(30)));
        let _server = serve(course, socket, &gate, layers);
        let (node, address) = (caller(), course.reference(socket));
        let late = call(&node, &address, 1).unwrap_err();
        assert_eq!(
            (late.kind(), late.completed()),
            (Kind::TimedOut, Completed::Maybe),
            "{}: {late}",
            course.name
        );
        assert!(matches!(told.recv_timeout(LONG).unwrap().ending, Ending::Failed("timed-out", _)));
        gate.open();
        until("it ended", || gate.ended() == 1);
        assert_eq!(call(&node, &address, 2).unwrap(), 3, "{}", course.name);
        assert_eq!(told.recv_timeout(LONG).unwrap().ending, Ending::Done, "{}: answered twice", course.name);
    });
}

/// Asks somebody else first, on a thread of its own.
struct Later;

impl Layer for Later {
    fn serve(&self, request: Request, next: Next<'_>) {
        let later = next.later();
        drop(std::thread::spawn(move || later.serve(request)));
    }
}

/// Forgets calls.
struct Forgets;

impl Layer for Forgets {
    fn serve(&self, _: Request, _: Next<'_>) {}
}

#[test]
fn a_layer_may_pass_a_call_on_later_and_one_that_it_forgets_is_answered() {
    everywhere("later", |course, socket| {
        let gate = Arc::new(Gate::default());
        gate.open();
        let server = serve(course, socket, &gate, Node::builder().layer(Later).layer(Later));
        let address = course.reference(socket);
        assert_eq!(call(&caller(), &address, 1).unwrap(), 2, "{}", course.name);
        server.stop();
        let socket = socket.with_extension("forgets");
        let _server = serve(course, &socket, &gate, Node::builder().layer(Forgets));
        let failure = call(&caller(), &course.reference(&socket), 2).unwrap_err();
        assert_eq!(failure.kind(), Kind::Internal, "{}: {failure}", course.name);
        assert_eq!(gate.began().len(), 1);
    });
}

#[test]
fn busctl_is_refused_what_no_list_names_properties_too() {
    let test = "busctl_is_refused_what_no_list_names_properties_too";
    if !here(test, &["busctl"]) {
        return;
    }
    for program in BUSES {
        let Some(bus) = bus(test, program) else { return };
        let user = format!("user:uid:{}", rustix::process::getuid().as_raw());
        let list = AllowList::new().only(&user, "org::example::Kitchen.Divide").unwrap();
        let list = list.anyone("org::example::Kitchen._get_Title").unwrap();
        let node: Node = Node::builder().layer(list).build().into();
        node.listen(&format!("dbus:{}#{NAME}", bus.address())).unwrap();
        Galley::export(&node, KEY);
        let busctl = |verb: &str, rest: &[&str]| {
            let mut command = Command::new("busctl");
            command.arg(format!("--address={}", bus.address())).arg("--").args([verb, NAME, PATH, NAME]);
            command.args(rest);
            command
        };
        for (verb, rest) in [("call", &["Nothing"][..]), ("set-property", &["Title", "s", "x"])] {
            let said = run_with(&mut busctl(verb, rest), b"");
            assert!(!said.success && said.err.contains("Access denied"), "{verb}: {}{}", said.out, said.err);
        }
        assert_eq!(run(&mut busctl("call", &["Divide", "ii", "17", "5"])).trim(), "ii 3 2");
        assert_eq!(run(&mut busctl("get-property", &["Title"])).trim(), r#"s "kitchen""#);
    }
}
