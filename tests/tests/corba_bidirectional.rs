//! Bidirectional GIOP: a server calls objects of its client over the connection that the client has made; with omniORB and JacORB on the
//! other side, both ways, and with ourselves.
//!
//! That no other connection is used is seen in two ways. Our own clients tell an address where nobody listens. Programs of others run in a
//! network of their own, and the source counts its connections when it has called back.
//!
//! Invariant: a peer leads calls to itself only, whatever addresses it claims.

use crate::common::dcom::alone;
use crate::common::foreign::{Beside, patient, run, script, until};
use crate::common::papers::Papers;
use crate::common::{scratch, shelf};
use everywire::{Failure, Kind, Node, Ref};
use everywire_tests::bench::{FiringSource, Sink, Source};
use everywire_tests::peers::{cached, here, root};
use everywire_tests::servants::{CountingSink, Firing};
use everywire_tests::workshop::once;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls both ways at an address of this host.
const BOTH_WAYS: &str = "iiop://127.0.0.1:0?bidirectional=on";
/// The same for a client whose address nobody reaches.
const BEHIND_A_WALL: &str = "iiop://127.0.0.1:0?bidirectional=on&publish=127.0.0.1:1";
/// What a program of others prints that was fired at once.
const HEARD: &str = "heard 20 and 1\n";

/// A source that notes how many connections there are when it has called back.
#[derive(Default)]
struct Watched {
    firing: Firing,
    connections: AtomicUsize,
}

impl Source for Watched {
    fn advise(&self, sink: Option<Ref<dyn Sink>>) -> Result<u32, Failure> {
        self.firing.advise(sink)
    }

    fn unadvise(&self, cookie: u32) -> Result<(), Failure> {
        self.firing.unadvise(cookie)
    }
}

impl FiringSource for Watched {
    fn fire(&self, n: u32) -> Result<(), Failure> {
        let fired = self.firing.fire(n);
        self.connections.store(connections(), Ordering::SeqCst);
        fired
    }
}

/// Open connections over TCP in this network, each of which has two ends here.
fn connections() -> usize {
    let ends = |table: &str| {
        let told = std::fs::read_to_string(table).expect("the kernel tells");
        // The fourth word of a line is the state; 01 is an open connection.
        told.lines().filter(|line| line.split_whitespace().nth(3) == Some("01")).count()
    };
    (ends("/proc/self/net/tcp") + ends("/proc/self/net/tcp6")) / 2
}

/// A source of ours at an address, and its reference.
fn source(address: &str) -> (Node, Arc<Watched>, String) {
    let node = patient();
    node.listen(address).expect("a free port");
    let watched = Arc::<Watched>::default();
    let reference = node.print(node.export::<dyn FiringSource>("source", watched.clone()).reference());
    (node, watched, reference)
}

/// A client of ours that listens at an address, with a sink.
struct Client {
    source: Ref<dyn FiringSource>,
    sink: Arc<CountingSink>,
    own: Ref<dyn Sink>,
    _node: Node,
}

impl Client {
    fn new(address: &str, reference: &str) -> Self {
        let node = patient();
        node.listen(address).expect("a free port");
        let sink = Arc::<CountingSink>::default();
        let own = node.export_anonymous::<dyn Sink>(sink.clone());
        let source = node.connect(reference).expect("it parses");
        Self { source, sink, own, _node: node }
    }

    /// Has its sink advised and fired at; what it heard.
    fn is_fired_at(&self) -> Result<(u64, u64), Failure> {
        let cookie = self.source.advise(Some(self.own.clone()))?;
        self.source.fire(20)?;
        self.source.unadvise(cookie)?;
        Ok((self.sink.hellos(), self.sink.syncs()))
    }
}

#[test]
fn callbacks_come_over_the_connection_of_their_client() {
    let (_node, watched, reference) = source(BOTH_WAYS);
    let client = Client::new(BEHIND_A_WALL, &reference);
    assert_eq!(client.is_fired_at().expect("it is called back"), (20, 1));
    // Also when the client has no call under way.
    client.source.advise(Some(client.own.clone())).expect("advised");
    watched.fire(3).expect("the client is called");
    assert_eq!(client.sink.syncs(), 2);
    until("all have come", || client.sink.hellos() == 23);
    // When the connection is gone, the sink is called where its reference says.
    drop(client);
    let failure = watched.fire(1).expect_err("nobody is there");
    assert_eq!(failure.kind(), Kind::Unreachable, "{failure}");
}

#[test]
fn a_client_or_a_server_that_wants_no_calls_both_ways_has_none() {
    for (server, client) in
        [("iiop://127.0.0.1:0", BEHIND_A_WALL), (BOTH_WAYS, "iiop://127.0.0.1:0?publish=127.0.0.1:1")]
    {
        let (_node, _, reference) = source(server);
        let failure = Client::new(client, &reference).is_fired_at().expect_err("nobody is at that address");
        assert_eq!(failure.kind(), Kind::Unreachable, "{server}, {client}: {failure}");
    }
    let failure = patient().listen("iiop://127.0.0.1:0?bidirectional=yes").expect_err("no such value");
    assert!(failure.message().contains("neither `on` nor `off`"), "{failure}");
    let failure = patient().listen("iiop+unix:///tmp/no?bidirectional=on").expect_err("no host and port");
    assert!(failure.message().contains("addresses over TCP"), "{failure}");
}

/// A peer that claims the address of somebody else's objects is not called in their place.
#[test]
fn an_address_that_a_peer_claims_leads_nobody_else_to_it() {
    let (_node, watched, reference) = source(BOTH_WAYS);
    // An honest sink, at an address of its own.
    let honest = patient();
    let place = honest.listen("iiop://127.0.0.1:0").expect("a free port");
    let sink = Arc::<CountingSink>::default();
    let own = honest.export::<dyn Sink>("sink", sink.clone());
    let port =
        place.rsplit(':').next().expect("a port").trim_matches(|c: char| !c.is_ascii_digit()).to_owned();
    // Another client says that the objects at that address are its own, and has one of the same name.
    let liar = patient();
    liar.listen(&format!("iiop://127.0.0.1:0?bidirectional=on&publish=127.0.0.1:{port}"))
        .expect("a free port");
    let false_sink = Arc::<CountingSink>::default();
    let claimed = liar.export::<dyn Sink>("sink", false_sink.clone());
    let way: Ref<dyn FiringSource> = liar.connect(&reference).expect("it parses");
    let cookie = way.advise(Some(claimed)).expect("advised");
    way.fire(1).expect("what it passes itself leads to it");
    way.unadvise(cookie).expect("known");
    assert_eq!((false_sink.syncs(), sink.syncs()), (1, 0));
    // The honest client passes its own reference, by a connection of its own.
    let honest_way: Ref<dyn FiringSource> = honest.connect(&reference).expect("it parses");
    honest_way.advise(Some(own)).expect("advised");
    watched.fire(1).expect("the honest sink is called");
    assert_eq!((false_sink.syncs(), sink.syncs()), (1, 1));
}

#[test]
fn callbacks_come_back_over_tls_and_never_without_it_where_they_demand_it() {
    let test = "callbacks_come_back_over_tls_and_never_without_it_where_they_demand_it";
    let Some(papers) = Papers::get(test) else { return };
    let secured = format!("iiops://127.0.0.1:0?{}&bidirectional=on", papers.listening());
    let (_node, _, reference) = source(&secured);
    let client = Client::new(BEHIND_A_WALL, &format!("{reference}?ca={}", papers.path("ca.pem").display()));
    assert_eq!(client.is_fired_at().expect("it is called back"), (20, 1));
    // The client's own objects are for TLS, and its connection is without.
    let (_node, _, reference) = source(BOTH_WAYS);
    let client = Client::new(&secured, &reference);
    client.is_fired_at().expect_err("the server does not trust the client's certificate");
    assert_eq!((client.sink.hellos(), client.sink.syncs()), (0, 0), "nothing came in the clear");
}

/// Starts a server of others, which writes its reference into a file.
fn served(name: &str, start: impl FnOnce(&str) -> Command) -> (Beside, String) {
    let file = scratch(name).join("reference");
    let server = Beside::start(&mut start(&file.display().to_string()));
    server.hear("ready");
    let reference = std::fs::read_to_string(&file).expect("a reference").trim().to_owned();
    (server, reference)
}

/// Has programs of others call a source of ours, and be called by a client of ours, over one connection each.
fn both_ways(name: &str, program: impl Fn(&[&str]) -> Command) {
    let (_node, watched, reference) = source(BOTH_WAYS);
    assert_eq!(run(&mut program(&[&reference])), HEARD);
    assert_eq!(watched.connections.load(Ordering::SeqCst), 1, "a callback came over its client's connection");

    let before = connections();
    let (_server, reference) = served(name, |file| program(&["serve", file]));
    let client = Client::new(BEHIND_A_WALL, &reference);
    assert_eq!(client.is_fired_at().expect("it is called back"), (20, 1));
    assert_eq!(connections(), before + 1, "all went over one connection");
}

/// omniORB's program, compiled with the contract; or nothing, said loudly.
fn omniorb(test: &str) -> Option<impl Fn(&[&str]) -> Command> {
    if !here(test, &["g++", "omniorb"]) {
        return None;
    }
    let sources = [script("bidir_omniorb.cc"), root().join("derby/contracts/bench.idl")];
    let compiled = once(env!("CARGO_TARGET_TMPDIR"), "bidir_omniorb", &sources, |fresh| {
        let dir = shelf().join("bidir_omniorb");
        std::fs::create_dir_all(&dir).expect("a directory");
        run(Command::new("omniidl").args(["-bcxx", "-C"]).arg(&dir).arg(&sources[1]));
        let mut compiler = Command::new("g++");
        compiler.args(["-O0", "-Wall", "-o"]).arg(fresh).arg("-I").arg(&dir).arg(&sources[0]);
        compiler.arg(dir.join("benchSK.cc"));
        run(compiler.args(["-lomniDynamic4", "-lomniORB4", "-lomnithread", "-lpthread"]));
    });
    Some(move |words: &[&str]| {
        let mut command = Command::new(&compiled);
        command.args(words).args(["-ORBendPoint", "giop:tcp:127.0.0.1:"]);
        command.args(["-ORBofferBiDirectionalGIOP", "1", "-ORBacceptBiDirectionalGIOP", "1"]);
        command.args(["-ORBserverTransportRule", "* bidir,tcp", "-ORBclientTransportRule", "* bidir,tcp"]);
        command
    })
}

#[test]
fn omniorb_is_called_over_its_connection_and_calls_back_over_ours() {
    let test = "omniorb_is_called_over_its_connection_and_calls_back_over_ours";
    let Some(program) = omniorb(test).filter(|_| alone(test)) else { return };
    both_ways("bidir-omniorb", program);
}

/// JacORB's program; or nothing, said loudly.
fn jacorb(test: &str) -> Option<impl Fn(&[&str]) -> Command> {
    if !here(test, &["java", "javac", "mvn"]) {
        return None;
    }
    let libraries = format!("{}/lib/*", cached(test, "jacorb")?.display());
    let source = script("bidir_JacORB.java");
    let compiled: PathBuf =
        once(env!("CARGO_TARGET_TMPDIR"), "bidir-jacorb", std::slice::from_ref(&source), |fresh| {
            std::fs::create_dir_all(fresh).expect("a directory");
            let mut javac = Command::new("javac");
            javac.args(["-nowarn", "-Xlint:none", "-encoding", "UTF-8", "-cp", &libraries, "-d"]);
            run(javac.arg(fresh).arg(&source));
        });
    Some(move |words: &[&str]| {
        let mut command = Command::new("java");
        command.args(["-XX:TieredStopAtLevel=1", "-cp"]).arg(format!("{}:{libraries}", compiled.display()));
        command.current_dir(scratch("bidir-jacorb-home")).arg("bidir_JacORB").args(words);
        command
    })
}

#[test]
fn jacorb_is_called_over_its_connection_and_calls_back_over_ours() {
    let test = "jacorb_is_called_over_its_connection_and_calls_back_over_ours";
    let Some(program) = jacorb(test).filter(|_| alone(test)) else { return };
    both_ways("bidir-jacorb", program);
}
