//! Layers of a node: what stands before its servants sees each call first, by whatever wire it comes.

use crate::common::foreign::{BUSES, bus, run, run_with, until};
use crate::common::galley::{NAME, PATH};
use crate::common::house::{INTERFACE, object};
use crate::common::scratch;
use crate::restarts::{COURSES, Course, Gate, Held, LONG, call, caller};
use everywire::layer::{AllowList, CallRecord, Ending, Layer, Limit, Next, Retry, TimeLimit, Trace};
use everywire::model::{Answer, Completed, Request};
use everywire::{Builder, Failure, Initiator, Kind, Node};
use everywire_tests::kitchen::interop::Listener;
use everywire_tests::peers::here;
use everywire_tests::servants::Galley;
use everywire_tests::servants::dbus::KEY;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
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
        match course.name {
            // A fault has no text, and an HRESULT, which has one, says that the method ran.
            "dcom" => assert_eq!(refused.completed(), Completed::No, "{refused}"),
            _ => assert!(refused.to_string().contains("test.Counter.large"), "{}: {refused}", course.name),
        }
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
        // Long enough for the second call, whose servant answers at once, on a machine that is busy.
        let layers = Node::builder().layer(trace).layer(TimeLimit::new(Duration::from_secs(10)));
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

/// Stands for a servant whose own server is away: of each call the first attempts fail, the odd ones of them on another thread.
struct Away {
    attempts: u32,
    ran: Completed,
    seen: Arc<AtomicU32>,
}

impl Layer for Away {
    fn serve(&self, mut request: Request, next: Next<'_>) {
        let attempt = self.seen.fetch_add(1, Ordering::SeqCst);
        if attempt >= self.attempts {
            return next.serve(request);
        }
        let failure = Failure::new(Kind::Unreachable, Initiator::Peer, "the store is away");
        let failure = failure.with_completed(self.ran);
        if attempt.is_multiple_of(2) {
            request.answer(Answer::Failed(&failure));
        } else {
            drop(std::thread::spawn(move || request.answer(Answer::Failed(&failure))));
        }
    }
}

#[test]
fn a_call_that_failed_is_served_again_where_that_changes_nothing() {
    use Completed::{Maybe, No};
    // Failed attempts, whether they may have run, whether the operation may run twice; attempts in all, whether the call works.
    const CASES: [(u32, Completed, bool, u32, bool); 6] = [
        (0, No, false, 1, true),
        (3, No, false, 4, true),
        (4, No, false, 4, false),
        (1, Maybe, false, 1, false),
        (3, Maybe, true, 4, true),
        (4, Maybe, true, 4, false),
    ];
    everywhere("retry", |course, socket| {
        for (number, (attempts, ran, twice, served, works)) in CASES.into_iter().enumerate() {
            let what = format!("{}: {attempts} attempts fail, {ran:?}, may run twice: {twice}", course.name);
            let (trace, told) = told();
            let (limit, seen) = (Limit::new(1), Arc::new(AtomicU32::new(0)));
            let gate = Arc::new(Gate::default());
            gate.open();
            let retry = Retry::new(3).idempotent(if twice { "test.Counter.*" } else { "test.Counter.large" });
            let away = Away { attempts, ran, seen: Arc::clone(&seen) };
            let layers = Node::builder().layer(trace).layer(limit.clone()).layer(retry).layer(away);
            let socket = socket.with_extension(number.to_string());
            let server = serve(course, &socket, &gate, layers);
            let answer = call(&caller(), &course.reference(&socket), 1);
            assert_eq!(seen.load(Ordering::SeqCst), served, "{what}");
            assert_eq!(gate.began().values().sum::<u32>(), u32::from(works), "{what}");
            match answer {
                Ok(result) => assert!(works && result == 2, "{what}"),
                Err(failure) => {
                    assert!(!works && (ran == No || failure.completed() != No), "{what}: {failure:?}")
                }
            }
            // Those in front of it see one call with one answer.
            let ending = told.recv_timeout(LONG).unwrap().ending;
            assert_eq!(ending == Ending::Done, works, "{what}: {ending:?}");
            server.stop();
            assert!(told.try_recv().is_err(), "{what}: answered twice");
            assert_eq!(limit.under_way(), 0, "{what}");
        }
    });
}

/// Fails as somebody whom it needs did, after it has done something of its own; or declines before that.
struct Careless {
    failure: Failure,
    ran: AtomicU32,
}

impl Listener for Careless {
    fn heard(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }
    fn ask(&self, _: i32) -> Result<i32, Failure> {
        self.ran.fetch_add(1, Ordering::SeqCst);
        Err(self.failure.clone())
    }
}

/// A new failure says that the call which it tells of never began. Of the servant's own call that would be wrong: it ran once, whatever stands
/// before it may repeat only what did not run, and no wire says that it did not.
#[test]
fn a_call_runs_once_whose_servant_fails_as_others_did() {
    const DBUS: &str = "org.freedesktop.DBus.Error.ServiceUnknown";
    everywhere("careless", |course, socket| {
        let kinds = [Kind::Unreachable, Kind::Busy, Kind::NoObject, Kind::NoOperation, Kind::Refused];
        for (number, kind) in kinds.into_iter().enumerate() {
            for declines in [false, true] {
                let what = format!("{}: {kind}, declines: {declines}", course.name);
                let new = Failure::new(kind, Initiator::Peer, "the store is away");
                // As a call over D-Bus fails that finds nobody.
                let new = if kind == Kind::Unreachable { new.with_code(DBUS) } else { new };
                let failure = if declines { new.declined() } else { new };
                let servant = Arc::new(Careless { failure, ran: AtomicU32::new(0) });
                let server: Node = Node::builder().layer(Retry::new(2)).build().into();
                server.export::<dyn Listener>("counter", Arc::clone(&servant) as Arc<dyn Listener>);
                let socket = socket.with_extension(format!("{number}{declines}"));
                server.listen(&course.listen(&socket)).unwrap();
                let client = Node::new();
                let listener = client.connect::<dyn Listener>(&course.reference(&socket)).unwrap();
                let failure = listener.ask(1).unwrap_err();
                let repeated = declines && [Kind::Unreachable, Kind::Busy].contains(&kind);
                assert_eq!(
                    servant.ran.load(Ordering::SeqCst),
                    if repeated { 3 } else { 1 },
                    "{what}: {failure:?}"
                );
                assert!(declines || failure.completed() != Completed::No, "{what}: {failure:?}");
            }
        }
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
        // The bus has this user, and that is no word on who calls by it.
        let list = AllowList::new().only(&user, "org::example::Kitchen.Nothing").unwrap();
        let list = list.anyone("org::example::Kitchen._get_Title").unwrap();
        let list = list.anyone("org::example::Kitchen.Divide").unwrap();
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
