//! Callbacks on a caller's own connection, over routes with a contract.

use super::{LONG, Running, Scratch, start, until};
use everywire::model::Stub;
use everywire::{Failure, Initiator, Kind, Node, Notice, Ref, Signaller};
use everywire_broker::Fidelity;
use everywire_tests::hello::{IHello, IHelloCallback, IHelloOnHello};
use everywire_tests::riddles;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};

/// Asks whoever calls, and tells whoever listens.
struct Service {
    signals: Signaller<dyn IHello>,
    asked: AtomicU32,
    /// Why callbacks failed.
    failures: Mutex<Vec<Failure>>,
    /// Those who have subscribed.
    callers: Mutex<Vec<Stub<dyn IHelloCallback>>>,
}

impl IHello for Service {
    fn subscribe(&self) -> Result<(), Failure> {
        self.callers.lock().unwrap().extend(everywire::caller().map(Stub::new));
        Ok(())
    }
    fn unsubscribe(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn say_hello(&self, message: &str) -> Result<(), Failure> {
        self.signals.emit(&IHelloOnHello { message: message.to_owned() })
    }
    fn ask_back(&self, x: i32) -> Result<i32, Failure> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let nobody = || Failure::new(Kind::NoObject, Initiator::User, "nobody can be asked");
        let caller = Stub::<dyn IHelloCallback>::new(everywire::caller().ok_or_else(nobody)?);
        let answer =
            caller.ask(x).inspect_err(|failure| self.failures.lock().unwrap().push(failure.clone()))?;
        Ok(answer + 1)
    }
}

/// A service at a place of its own; how many of its connections have ended.
struct Backend {
    node: Node,
    service: Arc<Service>,
    address: String,
    ended: Arc<AtomicU32>,
}

/// A node that counts the connections that have ended.
fn counting() -> (Node, Arc<AtomicU32>) {
    let ended = Arc::<AtomicU32>::default();
    let count = Arc::clone(&ended);
    let observer = move |notice: &Notice| {
        if matches!(notice, Notice::Closed { .. }) {
            count.fetch_add(1, Ordering::SeqCst);
        }
    };
    (Node::from(Node::builder().observer(Arc::new(observer)).build()), ended)
}

fn backend() -> Backend {
    backend_at("net.tcp://127.0.0.1:0?security=none")
}

fn backend_at(address: &str) -> Backend {
    let (node, ended) = counting();
    node.listen(address).unwrap();
    let service = Arc::new(Service {
        signals: node.signaller::<dyn IHello>("hello"),
        asked: AtomicU32::new(0),
        failures: Mutex::default(),
        callers: Mutex::default(),
    });
    let exported = node.export::<dyn IHello>("hello", Arc::clone(&service) as _);
    let address = node.print_friendly(exported.reference());
    Backend { node, service, address, ended }
}

/// A caller that answers with so many times the number, and hears what is said. -1 it refuses; -2 it answers when it is let.
struct Caller {
    node: Node,
    hello: Ref<dyn IHello>,
    ended: Arc<AtomicU32>,
    asked: Arc<Asked>,
}

struct Asked {
    factor: i32,
    tell: Mutex<Sender<String>>,
    shut: Mutex<bool>,
    changed: Condvar,
}

impl IHelloCallback for Asked {
    fn on_hello(&self, message: &str) -> Result<(), Failure> {
        // The test may be over.
        let _ = self.tell.lock().unwrap().send(message.to_owned());
        Ok(())
    }
    fn ask(&self, x: i32) -> Result<i32, Failure> {
        match x {
            -1 => return Err(Failure::new(Kind::Refused, Initiator::User, "not for you")),
            -2 => {
                let shut = self.shut.lock().unwrap();
                drop(self.changed.wait_timeout_while(shut, LONG, |shut| *shut).unwrap());
            }
            _ => {}
        }
        Ok(x * self.factor)
    }
}

fn caller(address: &str, factor: i32) -> (Caller, std::sync::mpsc::Receiver<String>) {
    let (node, ended) = counting();
    let (tell, told) = channel();
    let asked =
        Arc::new(Asked { factor, tell: Mutex::new(tell), shut: Mutex::new(true), changed: Condvar::new() });
    node.export::<dyn IHelloCallback>("asked", Arc::clone(&asked) as _);
    let hello = node.connect::<dyn IHello>(address).unwrap();
    (Caller { node, hello, ended, asked }, told)
}

fn contract() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/contracts/hello.wsdl").display().to_string()
}

/// A route with the contract.
fn route(to: &str, more: &str) -> String {
    format!(
        "[listen.front]\naddress = \"net.tcp://127.0.0.1:0?security=none\"\n[[route]]\nname = \"hello\"\n\
         match = {{ key = \"hello\" }}\nto = {to}\ncontract = \"{}\"\ninterface = \"IHello\"\n{more}\n",
        contract()
    )
}

fn before(backend: &Backend, more: &str) -> Running {
    start(&route(&format!("\"{}\"", backend.address), more))
}

/// The service calls each caller on the session by which it came: the answer is that caller's, and so are one-way calls.
#[test]
fn each_caller_is_called_back_and_nobody_else() {
    let scratch = Scratch::new();
    let copies = scratch.path("copies.ndjson");
    let more = format!(
        "validate = true\ncopy = {{ to = \"{copies}\", required = true }}\nedits = [{{ put = \"{{urn:a}}b\", value = \"c\" }}]"
    );
    for more in ["", more.as_str()] {
        let backend = backend();
        let broker = before(&backend, more);
        let address = broker.reference("hello");
        let ((two, hears), (three, silent)) = (caller(&address, 2), caller(&address, 3));
        for x in 0..10 {
            assert_eq!(two.hello.ask_back(x).unwrap(), 2 * x + 1);
            assert_eq!(three.hello.ask_back(x).unwrap(), 3 * x + 1);
        }
        two.hello.subscribe().unwrap();
        for number in 0..20 {
            three.hello.say_hello(&format!("n{number}")).unwrap();
        }
        for number in 0..20 {
            assert_eq!(hears.recv_timeout(LONG).unwrap(), format!("n{number}"));
        }
        assert!(silent.try_recv().is_err(), "whoever has not subscribed hears nothing");
        // Another one who ends its subscription does not end the first one's.
        three.hello.subscribe().unwrap();
        three.hello.unsubscribe().unwrap();
        two.hello.say_hello("still").unwrap();
        assert_eq!(hears.recv_timeout(LONG).unwrap(), "still");
        assert!(silent.try_recv().is_err());
        assert_eq!(backend.service.asked.load(Ordering::SeqCst), 20);
        until("they are counted", || broker.metric(r#"signals_total{route="hello"}"#) >= 21.0);
    }
    let kept = || std::fs::read_to_string(&copies).unwrap_or_default();
    until("calls are copied", || kept().matches("AskBack").count() == 20);
}

/// TLS, reliable sessions, or both, on either side: a session is one all the same, by which its caller is called back.
#[test]
fn callbacks_pass_over_tls_and_reliable_sessions() {
    let test = "callbacks_pass_over_tls_and_reliable_sessions";
    if !everywire_peers::here(test, &["openssl"]) {
        return;
    }
    let scratch = Scratch::new();
    let (cert, key) = (scratch.path("own.pem"), scratch.path("own.key"));
    let names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
    let made = std::process::Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", names, "-keyout", &key, "-out", &cert])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // What a listener says of itself, and what its callers say beside that.
    let tls = format!("security=tls&cert={cert}&key={key}");
    let kinds = [
        ("security=none".to_owned(), String::new()),
        ("security=none&reliable=on".to_owned(), String::new()),
        (tls.clone(), format!("ca={cert}")),
        (format!("{tls}&reliable=on"), format!("ca={cert}")),
    ];
    let called = |address: &str, options: &str| match (options.is_empty(), address.contains('?')) {
        (true, _) => address.to_owned(),
        (_, true) => format!("{address}&{options}"),
        _ => format!("{address}?{options}"),
    };
    for (near, trusted) in &kinds {
        for (far, known) in &kinds {
            let backend = backend_at(&format!("net.tcp://127.0.0.1:0?{far}"));
            let to = format!("\"{}\"", called(&backend.address, known));
            let text = route(&to, "").replace("127.0.0.1:0?security=none", &format!("127.0.0.1:0?{near}"));
            let report = everywire_broker::check(super::config(&text).unwrap()).unwrap().remove(0);
            assert_eq!(report.callbacks, [("Ask".to_owned(), Fidelity::Whole)], "{near} {far}");
            let broker = start(&text);
            let address = called(&broker.reference("hello"), trusted);
            let ((two, hears), (three, silent)) = (caller(&address, 2), caller(&address, 3));
            for x in 0..20 {
                let told = |failure: Failure| panic!("{address} to {to}: {failure}");
                assert_eq!(two.hello.ask_back(x).unwrap_or_else(told), 2 * x + 1);
                assert_eq!(three.hello.ask_back(x).unwrap_or_else(told), 3 * x + 1);
            }
            two.hello.subscribe().unwrap();
            (0..20).for_each(|number| three.hello.say_hello(&format!("n{number}")).unwrap());
            for number in 0..20 {
                assert_eq!(hears.recv_timeout(LONG).unwrap(), format!("n{number}"), "{near} {far}");
            }
            assert!(silent.try_recv().is_err());
            let stub = backend.service.callers.lock().unwrap().remove(0);
            assert_eq!(stub.ask(5).unwrap(), 10, "{near} {far}: nobody's call is under way");
            drop((two, three));
            until("the target's side ends", || backend.ended.load(Ordering::SeqCst) == 2);
        }
    }
}

#[test]
fn a_failure_of_the_caller_reaches_the_target() {
    let backend = backend();
    let broker = before(&backend, "");
    let (caller, _) = caller(&broker.reference("hello"), 2);
    let failure = caller.hello.ask_back(-1).unwrap_err();
    assert_eq!(backend.service.asked.load(Ordering::SeqCst), 1);
    let told = backend.service.failures.lock().unwrap().clone();
    assert!(told[0].message().contains("not for you"), "{:?} {failure}", told[0]);
    assert_eq!(caller.hello.ask_back(1).unwrap(), 3, "and the session goes on");
}

/// Gives its callers riddles, and says how they answered.
struct Sphinx(Mutex<Vec<String>>);

impl riddles::IRiddles for Sphinx {
    fn subscribe(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn unsubscribe(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn say_hello(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }
    fn ask_back(&self, x: i32) -> Result<i32, Failure> {
        let caller = everywire::caller().expect("it can be called back");
        let caller = Stub::<dyn riddles::IRiddlesCallback>::new(caller);
        match riddles::IRiddlesCallback::ask(&caller, x) {
            Ok(answer) => Ok(answer),
            Err(riddles::AskError::Unsolved(riddles::Unsolved { tries, why })) => {
                self.0.lock().unwrap().push(why);
                Ok(-tries)
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// Solves riddles below ten.
struct Hero;

impl riddles::IRiddlesCallback for Hero {
    fn on_hello(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }
    fn ask(&self, x: i32) -> Result<i32, riddles::AskError> {
        match x {
            0..10 => Ok(x + 1),
            _ => Err(riddles::Unsolved { tries: x, why: format!("{x} is too hard: ä") }.into()),
        }
    }
}

#[test]
fn faults_of_callbacks_reach_the_target_with_their_detail() {
    let node = Node::new();
    node.listen("net.tcp://127.0.0.1:0?security=none").unwrap();
    let sphinx = Arc::new(Sphinx(Mutex::default()));
    let served = node.export::<dyn riddles::IRiddles>("riddles", Arc::clone(&sphinx) as _);
    let broker = start(&format!(
        "[listen.front]\naddress = \"net.tcp://127.0.0.1:0?security=none\"\n[[route]]\nname = \"riddles\"\nto = \"{}\"\n\
         contract = \"../tests/contracts/riddles.wsdl\"\ninterface = \"IRiddles\"\n",
        node.print_friendly(served.reference())
    ));
    let client = Node::new();
    client.export::<dyn riddles::IRiddlesCallback>("hero", Arc::new(Hero));
    let riddles = client.connect::<dyn riddles::IRiddles>(&broker.reference("riddles")).unwrap();
    assert_eq!(riddles.ask_back(3).unwrap(), 4);
    assert_eq!(riddles.ask_back(30).unwrap(), -30);
    assert_eq!(*sphinx.0.lock().unwrap(), ["30 is too hard: ä"]);
}

#[test]
fn a_callback_has_the_time_of_the_route() {
    let backend = backend();
    // The callback has to begin within the time of the call that it belongs to.
    let broker = before(&backend, "timeout = \"5s\"");
    let (caller, _) = caller(&broker.reference("hello"), 2);
    let failure = caller.hello.ask_back(-2).unwrap_err();
    assert_eq!(failure.kind(), Kind::TimedOut, "{failure}");
    until("the target learns it", || !backend.service.failures.lock().unwrap().is_empty());
    let told = backend.service.failures.lock().unwrap().clone();
    assert!(told[0].message().contains("did not answer in time"), "{:?}", told[0]);
    *caller.asked.shut.lock().unwrap() = false;
    caller.asked.changed.notify_all();
    assert_eq!(caller.hello.ask_back(1).unwrap(), 3, "and the session goes on");
}

#[test]
fn either_side_ends_the_session() {
    let backend = backend();
    let broker = before(&backend, "");
    let (first, _) = caller(&broker.reference("hello"), 2);
    first.hello.subscribe().unwrap();
    let stub = backend.service.callers.lock().unwrap().remove(0);
    assert_eq!(stub.ask(5).unwrap(), 10);
    drop(first);
    until("the target's side ends", || backend.ended.load(Ordering::SeqCst) == 1);
    assert_eq!(stub.ask(5).unwrap_err().kind(), Kind::Unreachable);
    let (second, _) = caller(&broker.reference("hello"), 2);
    assert_eq!(second.hello.ask_back(1).unwrap(), 3);
    let asked = Arc::clone(&backend.service);
    backend.node.stop();
    until("the caller's side ends", || second.ended.load(Ordering::SeqCst) == 1);
    assert_eq!(asked.asked.load(Ordering::SeqCst), 1);
    drop(second.node);
}

#[test]
fn sessions_outlast_a_change_that_does_not_concern_them() {
    let backend = backend();
    let to = format!("\"{}\"", backend.address);
    let broker = start(&route(&to, ""));
    let (caller, hears) = caller(&broker.reference("hello"), 2);
    caller.hello.subscribe().unwrap();
    for more in ["limit = { calls = 5 }", "edits = [{ put = \"{urn:a}b\", value = \"c\" }]"] {
        broker.broker.reload(super::config(&route(&to, more)).unwrap()).unwrap();
        assert_eq!(backend.service.callers.lock().unwrap()[0].ask(4).unwrap(), 8, "{more}");
        assert_eq!(caller.hello.ask_back(1).unwrap(), 3, "{more}");
        caller.hello.say_hello(more).unwrap();
        assert_eq!(hears.recv_timeout(LONG).unwrap(), more);
    }
    assert_eq!(backend.ended.load(Ordering::SeqCst), 0);
    // A session by which nothing goes any more ends on both sides.
    broker.broker.reload(super::config(&route(&to, "timeout = \"77s\"")).unwrap()).unwrap();
    until("both sides end", || {
        backend.ended.load(Ordering::SeqCst) == 1 && caller.ended.load(Ordering::SeqCst) == 1
    });
    assert_eq!(caller.hello.ask_back(1).unwrap(), 3, "the next call has a session of its own");
}

/// All calls of a caller go where its session is; a call whose session broke runs nowhere else, although the file says that it may.
#[test]
fn a_caller_stays_at_the_target_of_its_session() {
    let (left, right) = (backend(), backend());
    let to = format!(
        "[\"net.tcp://127.0.0.1:1/hello?security=none\", \"{}\", \"{}\"]",
        left.address, right.address
    );
    let broker = start(&route(&to, "retries = 5\nidempotent = [\"AskBack\"]\nbalance = \"round-robin\""));
    let callers: Vec<_> = (0..6).map(|factor| caller(&broker.reference("hello"), factor)).collect();
    let asked = |backend: &Backend| backend.service.asked.load(Ordering::SeqCst);
    let mut per_caller = Vec::new();
    for (factor, (caller, _)) in callers.iter().enumerate() {
        let before = (asked(&left), asked(&right));
        for x in 0..6 {
            assert_eq!(caller.hello.ask_back(x).unwrap(), x * i32::try_from(factor).unwrap() + 1);
        }
        per_caller.push((asked(&left) - before.0, asked(&right) - before.1));
    }
    assert!(per_caller.iter().all(|counts| matches!(counts, (6, 0) | (0, 6))), "{per_caller:?}");
    assert!(per_caller.contains(&(6, 0)) && per_caller.contains(&(0, 6)), "{per_caller:?}");
    let (here, other) = if per_caller[0] == (6, 0) { (left, right) } else { (right, left) };
    let ran = asked(&other);
    std::thread::scope(|scope| {
        let hello = &callers[0].0.hello;
        let waits = scope.spawn(|| hello.ask_back(-2));
        until("the call is under way", || asked(&here) % 6 == 1);
        here.node.stop_within(std::time::Duration::ZERO);
        let failure = waits.join().unwrap().unwrap_err();
        assert_ne!(failure.completed(), everywire::model::failure::Completed::No, "{failure}");
    });
    assert_eq!(asked(&other), ran);
}

#[test]
fn what_is_called_back_is_told_before_anything_runs() {
    let checked = |text: &str| everywire_broker::check(super::config(text).unwrap()).unwrap().remove(0);
    let report = checked(&route("\"net.tcp://h:1/hello?security=none\"", ""));
    assert_eq!(report.callbacks, [("Ask".to_owned(), Fidelity::Whole)]);
    assert_eq!(report.signals, [("OnHello".to_owned(), Fidelity::Whole)]);
    assert!(report.to_string().contains("  Ask          callback crosses\n"), "{report}");
    for (to, near, why) in [
        (
            "iiop://h:1/hello",
            "net.tcp://127.0.0.1:0?security=none",
            "giop calls nobody back over the caller's connection",
        ),
        ("basic://h:1/hello?security=none", "net.tcp://127.0.0.1:0?security=none", "the targets' address"),
        ("net.tcp://h:1/hello?security=none", "basic://127.0.0.1:0?security=none", "the listener's address"),
        ("net.tcp://h:1/hello?security=none", "dbus+unix:///tmp/none.bus", "dbus"),
    ] {
        let text = route(&format!("\"{to}\""), "").replace("net.tcp://127.0.0.1:0?security=none", near);
        let report = checked(&text);
        let (_, ask) = report.callbacks.iter().find(|(name, _)| name == "Ask").unwrap();
        assert!(matches!(ask, Fidelity::Never(told) if told.contains(why)), "{to} {near}: {ask:?}\n{report}");
    }
}

/// One-way callbacks are signals on the wires that have such, both ways.
#[test]
fn one_way_callbacks_cross_to_wires_with_signals() {
    for (near, far) in [
        ("dbus", "net.tcp"),
        ("dcop", "net.tcp"),
        ("dcom", "net.tcp"),
        ("net.tcp", "dbus"),
        ("net.tcp", "dcop"),
        ("net.tcp", "dcom"),
    ] {
        let scratch = Scratch::new();
        let node = Node::new();
        node.listen(&super::place(far, "backend", &scratch)).unwrap();
        let service = Arc::new(Service {
            signals: node.signaller::<dyn IHello>("hello"),
            asked: AtomicU32::new(0),
            failures: Mutex::default(),
            callers: Mutex::default(),
        });
        let served = node.export::<dyn IHello>("hello", service);
        let text = route(&format!("\"{}\"", node.print_friendly(served.reference())), "")
            .replace("net.tcp://127.0.0.1:0?security=none", &super::place(near, "front", &scratch));
        let report = everywire_broker::check(super::config(&text).unwrap()).unwrap().remove(0);
        assert_eq!(report.signals, [("OnHello".to_owned(), Fidelity::Whole)], "{near} {far}");
        assert!(matches!(&report.callbacks[0].1, Fidelity::Never(_)), "{report}");
        let broker = start(&text);
        let client = Node::new();
        let hello = client.connect::<dyn IHello>(&broker.reference("hello")).unwrap();
        let (tell, told) = channel();
        let listening = hello
            .signals()
            .on(move |said: IHelloOnHello| drop(tell.send(said.message)))
            .unwrap_or_else(|failure| panic!("{near} {far}: {failure}"));
        hello.subscribe().unwrap_or_else(|failure| panic!("{near} {far}: {failure}"));
        // The broker may still be about to subscribe.
        until(&format!("{near} {far}: a signal comes"), || {
            hello.say_hello("begin").unwrap();
            told.recv_timeout(std::time::Duration::from_millis(50)).is_ok()
        });
        (0..20).for_each(|number| hello.say_hello(&format!("n{number}")).unwrap());
        let mut heard: Vec<String> = Vec::new();
        while heard.last().is_none_or(|last| last != "n19") {
            heard.push(told.recv_timeout(LONG).unwrap());
        }
        heard.retain(|text| text != "begin");
        assert!(
            heard.iter().eq((0..20).map(|number| format!("n{number}")).collect::<Vec<_>>().iter()),
            "{heard:?}"
        );
        // A callback with an answer finds nobody, as was told.
        hello.ask_back(1).unwrap_err();
        drop(listening);
    }
}
