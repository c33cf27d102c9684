//! Value types and value boxes with JacORB and omniORB on the other side, both ways: null, bases, chunks, boxes, values that are shared.
//!
//! Invariants: a text stands behind each value and comes back longer by `!`, so a value that ends too early or too late is seen. Programs of
//! others print the same lines, since they are answered the same; what only one of the two can do is called by us.

use crate::common::foreign::{Beside, contract, patient, run, script, until};
use crate::common::forwarder::Hop;
use crate::common::{scratch, shelf};
use everywire::{Failure, Kind, Node, Remote};
use everywire_tests::peers::{cached, here};
use everywire_tests::store::stock::{Chain, Cooled, Note, Packed, Pair, Shelf, Sizes, Store, Ware, Wares};
use everywire_tests::workshop::once;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

/// Ours. Of a value it keeps what the expected type has.
struct Ours;

/// What it answers.
fn back<T: Clone>(what: &T, behind: &str) -> Result<(T, String), Failure> {
    Ok((what.clone(), format!("{behind}!")))
}

/// A ware.
fn ware(code: i32) -> Option<Ware> {
    Some(Ware { code })
}

impl Store for Ours {
    fn pass_ware(&self, what: &Option<Ware>, behind: &str) -> Result<(Option<Ware>, String), Failure> {
        back(what, behind)
    }

    fn pass_packed(&self, what: &Option<Packed>, behind: &str) -> Result<(Option<Packed>, String), Failure> {
        back(what, behind)
    }

    fn pass_cooled(&self, what: &Option<Cooled>, behind: &str) -> Result<(Option<Cooled>, String), Failure> {
        back(what, behind)
    }

    fn pass_note(&self, what: &Note, behind: &str) -> Result<(Note, String), Failure> {
        back(what, behind)
    }

    fn pass_sizes(&self, what: &Sizes, behind: &str) -> Result<(Sizes, String), Failure> {
        back(what, behind)
    }

    fn pass_chain(&self, what: &Option<Chain>, behind: &str) -> Result<(Option<Chain>, String), Failure> {
        back(what, behind)
    }

    fn pass_pair(&self, what: &Option<Pair>, behind: &str) -> Result<(Option<Pair>, String), Failure> {
        back(what, behind)
    }

    fn pass_wares(&self, what: &[Option<Ware>], behind: &str) -> Result<(Wares, String), Failure> {
        back(&what.to_vec(), behind)
    }

    fn pass_shelf(&self, what: &Shelf, behind: &str) -> Result<(Shelf, String), Failure> {
        back(what, behind)
    }

    fn best(&self) -> Result<(Option<Ware>, String), Failure> {
        Ok((ware(1), "behind".to_owned()))
    }

    fn twins(&self) -> Result<(Option<Pair>, String), Failure> {
        Ok((Some(Pair { left: ware(7), right: ware(7) }), "behind".to_owned()))
    }

    fn mixed(&self) -> Result<(Wares, String), Failure> {
        Ok((vec![ware(7), ware(1), ware(7), None, ware(1)], "behind".to_owned()))
    }
}

/// A packed ware.
fn packed() -> Packed {
    Packed { code: 1, seal: 2, inner: ware(3), weight: 1.5 }
}

/// Calls a store: what it was given comes back, and what it makes itself is cut down to what is expected.
fn calls(reference: &str) {
    let node = patient();
    let store = node.connect::<dyn Store>(reference).expect("it parses");
    macro_rules! back {
        ($call:ident, $($what:expr),+) => {$(
            let what = $what;
            let (told, behind) = store.$call(&what, "behind").expect("it answers");
            assert_eq!((told, &*behind), (what, "behind!"));
        )+};
    }
    back!(pass_ware, ware(7), None);
    back!(pass_packed, Some(packed()), Some(Packed { inner: None, ..packed() }), None);
    let cooled = |inner, by: &str| Cooled { code: 4, seal: 3, inner, weight: 0.5, by: by.to_owned() };
    back!(pass_cooled, Some(cooled(None, "ice")), Some(cooled(ware(5), "")), None);
    back!(pass_note, Some("hi".to_owned()), Some(String::new()), None);
    back!(pass_sizes, Some(vec![1, 2, 3]), Some(vec![]), None);
    back!(pass_chain, (0..5).fold(None, |next, item| Some(Chain { item, next: next.map(Box::new) })), None);
    back!(
        pass_pair,
        Some(Pair { left: ware(7), right: ware(7) }),
        Some(Pair { left: None, right: ware(7) }),
        None
    );
    back!(pass_wares, vec![ware(7), ware(1), ware(7), None, ware(1)], vec![], vec![None]);
    let shelf = |front| Shelf { floor: 3, front, label: "label".to_owned() };
    back!(pass_shelf, shelf(ware(7)), shelf(None));
    let behind = || "behind".to_owned();
    assert_eq!(store.best().expect("a ware"), (ware(1), behind()));
    assert_eq!(store.twins().expect("a pair"), (Some(Pair { left: ware(7), right: ware(7) }), behind()));
    let mixed = vec![ware(7), ware(1), ware(7), None, ware(1)];
    assert_eq!(store.mixed().expect("wares"), (mixed, behind()));
}

/// A packed ware goes where a ware is expected. `knows`: the server knows what a packed ware is; else it cuts it down.
fn widens(reference: &str, knows: bool) {
    let object = patient().object(reference).expect("it parses");
    let interface = <dyn Store as Remote>::interface();
    let named = |name: &str| {
        interface.operations.iter().find(|operation| operation.name == name).expect("an operation").clone()
    };
    let mut operation = named("pass_ware");
    operation.arguments = named("pass_packed").arguments;
    if !knows {
        let told = object.call::<_, (Option<Ware>, String), Failure>(&operation, (Some(packed()), "behind"));
        assert_eq!(told.expect("it answers"), (ware(1), "behind!".to_owned()));
        return;
    }
    operation.results = named("pass_packed").results;
    let told = object.call::<_, (Option<Packed>, String), Failure>(&operation, (Some(packed()), "behind"));
    assert_eq!(told.expect("it answers"), (Some(packed()), "behind!".to_owned()));
    // What is no packed ware does not become one.
    operation.arguments = named("pass_ware").arguments;
    let told = object.call::<_, (Option<Packed>, String), Failure>(&operation, (ware(7), "behind"));
    assert_eq!(told.expect_err("it is only a ware").kind(), Kind::Malformed);
}

/// The same object by versions of GIOP in which a body begins anywhere, so that what is aligned within has another place; and through a
/// hop, which knows no contract.
fn ways(reference: &str) -> Vec<(Option<Node>, String)> {
    let node = patient();
    let mut older = node.parse(reference).expect("a reference");
    let mut ways = Vec::new();
    for minor in [0, 1] {
        older.profiles[0].version.1 = minor;
        ways.push((None, node.print(&older)));
    }
    let hop = Hop::between("iiop://127.0.0.1:0", reference, &[]);
    let text = hop.print(&hop.published_as("IDL:stock/Store:1.0", &older.profiles[0].key));
    ways.push((Some(hop), text));
    ways
}

/// What a program of others prints that calls ours.
const TOLD: &str = "\
ware: W(7) behind!
null: null behind!
cut: W(1) behind!
packed: P(1,2,W(3),1.5) behind!
cut within: P(6,5,W(1),2.5) behind!
both cut: W(6) behind!
not cut: MARSHAL
cooled: P(4,3,null,0.5,ice) behind!
note: hi behind!
note:  behind!
note: null behind!
sizes: [1 2 3] behind!
sizes: [] behind!
sizes: null behind!
chain: 4 3 2 1 0 behind!
shared: W(7) W(7) behind!
shared and cut: W(1) W(1) behind!
half: null W(7) behind!
no pair: null behind!
wares: W(7) W(1) W(7) null W(1) behind!
shelf: 3 W(1) label behind!
best: W(1) behind
twins: W(7) W(7) behind
mixed: W(7) W(1) W(7) null W(1) behind
";

/// JacORB's program, compiled with the contract; or nothing, said loudly.
fn jacorb(test: &str) -> Option<impl Fn(&[&str]) -> Command> {
    if !here(test, &["java", "javac", "mvn"]) {
        return None;
    }
    let libraries = format!("{}/lib/*", cached(test, "jacorb")?.display());
    let sources = [script("values_JacORB.java"), contract("stock.idl")];
    let compiled = once(env!("CARGO_TARGET_TMPDIR"), "values-jacorb", &sources, |fresh| {
        let generated = shelf().join("values-jacorb");
        std::fs::create_dir_all(fresh).expect("a directory");
        let mut idl = Command::new("java");
        idl.args(["-XX:TieredStopAtLevel=1", "-cp", &libraries, "org.jacorb.idl.parser", "-d"]);
        run(idl.arg(&generated).arg(&sources[1]));
        let of_stock = std::fs::read_dir(generated.join("stock")).expect("generated");
        let of_stock: Vec<PathBuf> = of_stock.map(|file| file.expect("a file").path()).collect();
        let mut javac = Command::new("javac");
        javac.args(["-nowarn", "-Xlint:none", "-encoding", "UTF-8", "-cp", &libraries, "-d"]);
        run(javac.arg(fresh).arg(&sources[0]).args(of_stock));
    });
    Some(move |words: &[&str]| {
        let mut command = Command::new("java");
        command.args(["-XX:TieredStopAtLevel=1", "-cp"]).arg(format!("{}:{libraries}", compiled.display()));
        command.arg("values_JacORB").args(words);
        command
    })
}

/// Starts a server of others, which writes its reference into a file.
fn served(name: &str, start: impl FnOnce(&str) -> Command) -> (Beside, String) {
    let file = scratch(name).join("reference");
    let server = Beside::start(&mut start(&file.display().to_string()));
    server.hear("ready");
    until("the reference is there", || std::fs::read_to_string(&file).is_ok_and(|text| !text.is_empty()));
    (server, std::fs::read_to_string(&file).expect("a reference").trim().to_owned())
}

/// A node with a store of ours, and its reference.
fn ours() -> (Node, String) {
    let node = patient();
    node.listen("iiop://127.0.0.1:0").expect("a free port");
    let reference = node.print(node.export::<dyn Store>("store", Arc::new(Ours)).reference());
    (node, reference)
}

#[test]
fn values_travel_between_two_of_ours() {
    let (_node, reference) = ours();
    calls(&reference);
    for (_hop, reference) in ways(&reference) {
        calls(&reference);
    }
    widens(&reference, false);
}

#[test]
fn values_travel_to_jacorb_and_back() {
    let Some(java) = jacorb("values_travel_to_jacorb_and_back") else { return };
    let (_server, reference) = served("values-jacorb", |file| java(&["serve", file]));
    calls(&reference);
    for (_hop, reference) in ways(&reference) {
        calls(&reference);
    }
    // It cuts nothing down by itself where the class is on its path, not even for its own clients: that is omniORB's part below.
    widens(&reference, true);
}

#[test]
fn values_come_from_jacorb_and_go_back() {
    let Some(java) = jacorb("values_come_from_jacorb_and_go_back") else { return };
    let (_node, reference) = ours();
    assert_eq!(run(&mut java(&[&reference])), TOLD);
    for (_hop, reference) in ways(&reference) {
        assert_eq!(run(&mut java(&[&reference])), TOLD, "{reference}");
    }
}

/// Where programs of omniORB listen, if they do.
const ANYWHERE: [&str; 2] = ["-ORBendPoint", "giop:tcp:127.0.0.1:"];

/// omniORB's program, compiled with the contract; or nothing, said loudly.
fn omniorb(test: &str) -> Option<impl Fn(&[&str]) -> Command> {
    if !here(test, &["g++", "omniorb"]) {
        return None;
    }
    let sources = [script("values_omniorb.cc"), contract("stock.idl")];
    let compiled = once(env!("CARGO_TARGET_TMPDIR"), "values_omniorb", &sources, |fresh| {
        let dir = shelf().join("values_omniorb");
        std::fs::create_dir_all(&dir).expect("a directory");
        run(Command::new("omniidl").args(["-bcxx", "-C"]).arg(&dir).arg(&sources[1]));
        let mut compiler = Command::new("g++");
        compiler.args(["-O0", "-Wall", "-o"]).arg(fresh).arg("-I").arg(&dir).arg(&sources[0]);
        compiler.arg(dir.join("stockSK.cc"));
        run(compiler.args(["-lomniDynamic4", "-lomniORB4", "-lomnithread", "-lpthread"]));
    });
    Some(move |words: &[&str]| {
        let mut command = Command::new(&compiled);
        command.args(words).args(ANYWHERE);
        command
    })
}

#[test]
fn values_travel_to_omniorb_and_back() {
    let Some(program) = omniorb("values_travel_to_omniorb_and_back") else { return };
    let (_server, reference) = served("values-omniorb", |file| program(&["serve", file]));
    calls(&reference);
    for (_hop, reference) in ways(&reference) {
        calls(&reference);
    }
    widens(&reference, true);
    let (_narrow, reference) = served("values-omniorb-narrow", |file| program(&["narrow", file]));
    widens(&reference, false);
}

#[test]
fn values_come_from_omniorb_and_go_back() {
    let Some(program) = omniorb("values_come_from_omniorb_and_go_back") else { return };
    let (_node, reference) = ours();
    assert_eq!(run(&mut program(&[&reference])), TOLD);
    for (_hop, reference) in ways(&reference) {
        assert_eq!(run(&mut program(&[&reference])), TOLD, "{reference}");
    }
}
