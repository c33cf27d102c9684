//! What a check tells of the operations of a route: what crosses, what loses something, what never crosses, what may run twice.

use super::checks::{file, wrong};
use super::{Scratch, config, contract, marked, place, start};
use everywire::model::failure::Completed;
use everywire::model::{Answer, BindAddress, Endpoint, Hold, Interface, Request, Servant};
use everywire::{Failure, Initiator, Kind, Node};
use everywire_broker::{Fidelity, check};
use everywire_dynamic::{DynamicObject, ObjectContract};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn references_that_would_lead_nowhere_are_told_before_anything_runs() {
    let text = file(&format!("to = \"dcom://h/Shop\"\ncontract = \"{}\"\ninterface = \"Shop\"", contract()));
    let reports = check(config(&text).unwrap()).unwrap();
    let tell = of(&reports[0].operations, "tell");
    assert!(matches!(tell, Fidelity::Never(why) if why.contains("add a listener of dcom")), "{tell:?}");
    assert_eq!(*of(&reports[0].operations, "count"), Fidelity::Whole);
    wrong(
        &format!("{text}callbacks = \"front\""),
        "broker.toml:9:13: `tell` passes a market::Watcher to the target, which calls it on dcom",
    );
    // A listener of a wire without references takes nothing away from the others.
    let more = "[listen.more]\naddress = \"basic://127.0.0.1:0?security=none\"\n";
    wrong(
        &format!("{more}{text}callbacks = \"front\""),
        "broker.toml:11:13: `tell` passes a market::Watcher to the target, which calls it on dcom",
    );
}

/// Interfaces of COM that a contract uses without defining them: connection points and enumerators pass; what nobody knows is refused, and
/// nothing else of its route.
#[test]
fn references_that_nobody_knows_are_refused_by_operation() {
    let scratch = Scratch::new();
    let path = scratch.path("depot.midl");
    let text = "import \"oaidl.idl\";\nimport \"ocidl.idl\";\n\
        [object, uuid(5E0B6C52-2F0A-4C0F-9A37-3C1D9C1E5A0A), pointer_default(unique)]\n\
        interface IDepot : IUnknown\n{\n\
        HRESULT Names([out] LPENUMSTRING *names);\n\
        HRESULT Points([out] IConnectionPointContainer **points);\n\
        HRESULT Any([out] IUnknown **any);\n\
        HRESULT Pour([out] IStream **stream);\n\
        HRESULT Count([out] long *count);\n};\n";
    std::fs::write(&path, text).unwrap();
    let text = format!(
        "[listen.front]\naddress = \"dcom://127.0.0.1:0?level=none\"\n[[route]]\nname = \"depot\"\nto = \"dcom://h/Depot\"\n\
         contract = \"{path}\"\n"
    );
    let report = check(config(&text).unwrap()).unwrap_or_else(|mistakes| panic!("{mistakes}")).remove(0);
    for name in ["Names", "Points", "Count"] {
        assert_eq!(*of(&report.operations, name), Fidelity::Whole, "{name}");
    }
    assert!(matches!(of(&report.operations, "Any"), Fidelity::Loses(_)), "{report}");
    let pour = of(&report.operations, "Pour");
    let told = "it passes references to IStream, which the contract does not define";
    assert_eq!(*pour, Fidelity::Never(told.to_owned()));
}

/// From callers of one wire to a target; a listener of its wire is for callbacks.
fn crossing(from: &str, there: &str, to: &str) -> Vec<(String, Fidelity)> {
    let text = format!(
        "[listen.front]\naddress = \"{from}\"\n[listen.there]\naddress = \"{there}\"\n[[route]]\nname = \"shop\"\nfrom = \"front\"\ncallbacks = \"there\"\nto = \"{to}\"\ncontract = \"{}\"\ninterface = \"Shop\"\n",
        contract()
    );
    let reports = check(config(&text).unwrap()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(reports.len(), 1);
    let shown = reports[0].to_string();
    assert!(shown.starts_with("route shop: market::Shop from front ("), "{shown}");
    reports[0].operations.clone()
}

fn of<'c>(all: &'c [(String, Fidelity)], name: &str) -> &'c Fidelity {
    &all.iter().find(|(held, _)| held == name).unwrap().1
}

#[test]
fn a_check_tells_what_each_operation_loses_between_two_wires() {
    let all = crossing("iiop://127.0.0.1:0", "dbus://127.0.0.1:0", "dbus+unix:///tmp/nowhere.sock#shop");
    assert!(all.iter().all(|(_, crossing)| *crossing == Fidelity::Whole), "{all:?}");
    let all = crossing("iiop://127.0.0.1:0", "dcom://127.0.0.1:0?level=none", "dcom://127.0.0.1:1/Shop");
    assert!(
        matches!(of(&all, "note"), Fidelity::Loses(lost) if lost[0].contains("an answer that nobody hears")),
        "{all:?}"
    );
    assert!(
        matches!(of(&all, "find"), Fidelity::Loses(lost) if lost[0].contains("market::Missing")),
        "{all:?}"
    );
    assert_eq!(*of(&all, "get_orders"), Fidelity::Whole);
    assert_eq!(*of(&all, "tell"), Fidelity::Whole);
    let all = crossing("dcop+unix:///tmp/nowhere#app", "iiop://127.0.0.1:0", "iiop://127.0.0.1:1/shop");
    assert!(
        matches!(of(&all, "mix"), Fidelity::Never(why) if why.contains("`return`, `half`, `text`")),
        "{all:?}"
    );
    let all =
        crossing("net.tcp://127.0.0.1:0?security=none", "iiop://127.0.0.1:0", "iiop://127.0.0.1:1/shop");
    assert!(matches!(of(&all, "tell"), Fidelity::Never(why) if why.contains("references")), "{all:?}");
}

/// Each wire has types that others have no word for.
#[test]
fn a_check_tells_what_values_of_any_type_lose() {
    let scratch = Scratch::new();
    let path = scratch.path("safe.idl");
    std::fs::write(&path, "interface Safe { any swap(in any value); long count(); };").unwrap();
    let checked = |from: &str, to: &str| {
        let text = format!(
            "[listen.front]\naddress = \"{from}\"\n[[route]]\nname = \"safe\"\nto = \"{to}\"\ncontract = \"{path}\"\n"
        );
        check(config(&text).unwrap()).unwrap_or_else(|mistakes| panic!("{mistakes}")).remove(0).operations
    };
    let all = checked("iiop://127.0.0.1:0", "net.tcp://127.0.0.1:1/safe?security=none");
    let retyped = |names: &str| {
        format!("a value of any type: {names} arrive as another type, as only one of the wires has them")
    };
    let refused =
        |names: &str| format!("a value of any type: {names} are refused, as one of the wires has none");
    let told = vec![retyped("narrow text, narrow characters, arrays and aliases"), refused("maps")];
    assert_eq!(*of(&all, "swap"), Fidelity::Loses(told));
    assert_eq!(*of(&all, "count"), Fidelity::Whole);
    let all = checked("dbus+unix:///tmp/a.sock", "iiop://127.0.0.1:1/safe");
    let names = "narrow characters, object paths, signatures, arrays and aliases";
    assert_eq!(*of(&all, "swap"), Fidelity::Loses(vec![retyped(names), refused("maps")]));
    let all = checked("iiop://127.0.0.1:0", "iiop://127.0.0.1:1/safe");
    assert_eq!(*of(&all, "swap"), Fidelity::Whole);
}

/// Of a route that retries, what the contract or the route lets run twice; an attribute is read as often as one likes.
#[test]
fn a_check_tells_what_is_sent_again() {
    let scratch = Scratch::new();
    let twice = |contract: &str, more: &str| {
        let to = "to = \"iiop://127.0.0.1:1/shop\"";
        let text = file(&format!("{to}\ncontract = \"{contract}\"\ninterface = \"Shop\"\n{more}"));
        let reports = check(config(&text).unwrap()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        (reports[0].twice.clone(), reports[0].to_string())
    };
    assert_eq!(twice(&marked(&scratch), "").0, [""; 0]);
    let (names, shown) = twice(&marked(&scratch), "retries = 1");
    assert_eq!(names, ["title", "count"]);
    assert!(shown.contains("  count       crosses, may run twice\n"), "{shown}");
    assert!(shown.contains("  noted       crosses\n"), "{shown}");
    assert_eq!(twice(&contract(), "retries = 1\nidempotent = \"noted\"").0, ["title", "noted"]);
}

/// What each wire says of itself, by which references are known to cross, and what its codec does.
#[test]
fn wires_that_say_so_carry_references() {
    for wire in everywire::wires::ALL {
        let endpoint = Endpoint::Tcp { host: "127.0.0.1".into(), port: 1 };
        let sample = wire.publish("", &[BindAddress::socket(wire.name(), endpoint)], b"key");
        let written = wire.codec().write(&mut |sink| sink.reference(Some(&sample)));
        // Where there are classes, such a sample is one, and only objects pass.
        let refused = written.is_err_and(|failure| failure.kind() == Kind::Unsupported);
        let carries = wire.capabilities().references;
        assert_eq!(carries, !refused || wire.makes_objects(), "{}", wire.name());
    }
}

/// A value of an array that is far larger than its contract is not made up whole.
#[test]
fn large_arrays_are_tried_in_part() {
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or_default() >> 10
    };
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("large");
    std::fs::create_dir_all(&folder).unwrap();
    let contract = folder.join("large.idl");
    let text = "typedef long Cube[1024][1024][32]; typedef octet Block[134217728];\n\
        interface Large { void cube(in Cube all); void block(in Block all); };";
    std::fs::write(&contract, text).unwrap();
    let route = format!(
        "to = \"iiop://127.0.0.1:1/k\"\ncontract = \"{}\"\ninterface = \"Large\"",
        contract.display()
    );
    let before = peak();
    let reports = check(config(&file(&route)).unwrap()).unwrap();
    for name in ["cube", "block"] {
        assert_eq!(*of(&reports[0].operations, name), Fidelity::Whole, "{name}");
    }
    assert!(peak() - before < 64, "{} MiB", peak() - before);
}

/// Arrays of MIDL have as many elements as a number beside them says: whoever makes both up makes them fit.
#[test]
fn a_check_makes_up_arrays_that_fit_their_counts() {
    let contract = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../opc/contracts/opcda.idl");
    for interface in ["IOPCItemMgt", "IOPCSyncIO", "IOPCAsyncIO2", "IOPCItemProperties", "IOPCBrowse"] {
        let text = format!(
            "[listen.front]\naddress = \"dcom://127.0.0.1:0?level=none\"\n[[route]]\nname = \"group\"\n\
             to = \"dcom://127.0.0.1:1/Group?level=none\"\ncontract = \"{}\"\ninterface = \"{interface}\"\n",
            contract.display()
        );
        let report = check(config(&text).unwrap()).unwrap_or_else(|mistakes| panic!("{mistakes}")).remove(0);
        for (name, crossing) in &report.operations {
            assert!(!matches!(crossing, Fidelity::Never(_)), "{interface}.{name}: {crossing:?}");
        }
    }
}

/// Counts what it is asked.
struct Counted(Hold<Interface>, AtomicU32);

impl Servant for Counted {
    fn interface(&self) -> &Interface {
        &self.0
    }

    fn dispatch(&self, mut request: Request) {
        self.1.fetch_add(1, Ordering::SeqCst);
        let failure = Failure::new(Kind::Busy, Initiator::Peer, "it ran");
        request.answer(Answer::Failed(&failure));
    }
}

/// What a check says does not cross, since its caller could never be answered, is not executed either.
#[test]
fn what_could_never_be_answered_is_not_sent() {
    let scratch = Scratch::new();
    let path = scratch.path("unit.xml");
    let text = "<node><interface name=\"org.example.Unit\">\
        <method name=\"File\"><arg type=\"h\" name=\"file\" direction=\"out\"/></method>\
        <method name=\"Files\"><arg type=\"ah\" name=\"files\" direction=\"out\"/></method>\
        <method name=\"Count\"><arg type=\"i\" name=\"count\" direction=\"out\"/></method>\
        </interface></node>";
    std::fs::write(&path, text).unwrap();
    let read = || ObjectContract::from_file(path.as_ref(), &Default::default()).unwrap();
    let counted = Arc::new(Counted(read().interface("org.example.Unit").unwrap().clone(), AtomicU32::new(0)));
    let backend = Node::new();
    backend.listen(&place("dbus", "backend", &scratch)).unwrap();
    let unit = backend.export_servant("unit", Arc::<Counted>::clone(&counted));
    let text = format!(
        "[listen.front]\naddress = \"iiop://127.0.0.1:0\"\n[[route]]\nname = \"unit\"\nto = \"{}\"\ncontract = \"{path}\"\n",
        backend.print_friendly(&unit)
    );
    let broker = start(&text);
    let client = Node::new();
    let object = DynamicObject::with_contract(&client, &broker.reference("unit"), read()).unwrap();
    let call = |name: &str| match object.call(name, serde_json::json!([])) {
        Err(everywire_dynamic::CallError::Failed(failure)) => failure,
        other => panic!("{name}: {other:?}"),
    };
    let refused = call("File");
    assert_eq!((refused.kind(), refused.completed()), (Kind::Unsupported, Completed::No), "{refused}");
    assert_eq!(counted.1.load(Ordering::SeqCst), 0);
    for (number, name) in [(1, "Files"), (2, "Count")] {
        // An empty list of files could be answered.
        assert_eq!(call(name).kind(), Kind::Busy, "{name}");
        assert_eq!(counted.1.load(Ordering::SeqCst), number);
    }
}
