//! The same failure has the same kind on each wire, beside that wire's own code: the portable form of a code.
//!
//! Each failure is provoked, by a servant, a layer, a wrong caller or a server that is gone, and not made up. What a wire cannot say stands in
//! [`UNSAID`]; docs/cli.md has the same table.

use crate::support::{LONG, OTHER_TILL, SHORT, Shop, TILL, WIRES, contract, scratch};
use everywire::layer::{AllowList, Limit};
use everywire::model::Completed;
use everywire::{Failure, Kind, Node};
use everywire_dynamic::{CallError, DynamicObject};
use serde_json::{Value as Json, json};

/// What a caller reads instead of what a servant, or a layer before it, answered with: the wire has no word for it.
const UNSAID: &[(&str, &[Kind], Kind)] = &[
    ("dbus", &[Kind::BadReference], Kind::BadArgument),
    // Whoever passes calls on met another protocol: for the caller the object cannot be reached.
    ("dbus", &[Kind::WrongWire], Kind::Unreachable),
    ("dcom", &[Kind::WrongWire], Kind::Unreachable),
    // A service does not tell what is wrong with itself.
    ("net.tcp", &[Kind::Violation], Kind::Internal),
    ("basic", &[Kind::Violation], Kind::Internal),
    // That a function failed is all that there is to say.
    ("dcop", &Kind::ALL, Kind::Internal),
];

/// What a caller reads of an answer with this kind.
fn arrives(wire: &str, kind: Kind) -> Kind {
    let unsaid = UNSAID.iter().find(|(of, kinds, _)| *of == wire && kinds.contains(&kind));
    match (unsaid, kind) {
        (Some((.., instead)), _) => *instead,
        // Whoever cannot decode a call means its arguments.
        (None, Kind::Malformed) => Kind::BadArgument,
        (None, kind) => kind,
    }
}

fn failure(till: &DynamicObject, name: &str, arguments: Json) -> Failure {
    match till.call(name, arguments) {
        Err(CallError::Failed(failure)) => failure,
        other => panic!("{name} at {:?}: {other:?}", till.object()),
    }
}

fn at(address: &str, text: &str) -> DynamicObject {
    DynamicObject::with_contract(&Node::new(), address, contract(text)).unwrap()
}

#[test]
fn what_is_not_there_or_does_not_fit_has_the_same_kind_on_each_wire() {
    for wire in WIRES {
        let shop = Shop::open(wire);
        let (before, after) = shop.address.rsplit_once("till").unwrap();
        let nobody = failure(&at(&format!("{before}nobody{after}"), TILL), "add", json!([1]));
        assert_eq!(nobody.kind(), Kind::NoObject, "{wire}: {nobody:?}");
        let other = at(&shop.address, OTHER_TILL);
        let gone = failure(&other, "gone", json!([1]));
        assert_eq!(gone.kind(), Kind::NoOperation, "{wire}: {gone:?}");
        // What one wire reads as something else, another cannot read at all.
        let wrong = match wire {
            "net.tcp" | "basic" => failure(&other, "add", json!(["much"])),
            _ => failure(&other, "join", json!([i32::MAX])),
        };
        assert_eq!(wrong.kind(), Kind::BadArgument, "{wire}: {wrong:?}");
        // The wire's own code stands beside it, where it has one.
        for failure in [nobody, gone, wrong] {
            assert_eq!(failure.code().is_some(), wire != "dcop", "{wire}: {failure:?}");
            assert_ne!(failure.code(), Some(failure.kind().word()), "{wire}");
        }
    }
}

#[test]
fn what_layers_refuse_has_the_same_kind_on_each_wire() {
    for wire in WIRES {
        let closed = Shop::behind(wire, Some(AllowList::new()));
        let refused = failure(&at(&closed.address, TILL), "add", json!([1]));
        assert_eq!(refused.kind(), arrives(wire, Kind::Refused), "{wire}: {refused:?}");
        let full = Shop::behind(wire, Some(Limit::new(0)));
        let busy = failure(&at(&full.address, TILL), "add", json!([1]));
        assert_eq!(busy.kind(), arrives(wire, Kind::Busy), "{wire}: {busy:?}");
    }
}

#[test]
fn what_a_servant_answers_has_the_same_kind_on_each_wire() {
    for wire in WIRES {
        let shop = Shop::open(wire);
        let till = at(&shop.address, TILL);
        for kind in Kind::ALL {
            let told = failure(&till, "fail", json!([kind.word()]));
            assert_eq!(told.kind(), arrives(wire, kind), "{wire} {kind}: {told:?}");
        }
    }
}

#[test]
fn a_deadline_that_passes_has_the_same_kind_on_each_wire() {
    // All wait at once, on connections that are there: only a call that was sent may have been executed.
    let shops = WIRES.map(|wire| (wire, Shop::open(wire)));
    std::thread::scope(|scope| {
        for (wire, shop) in &shops {
            scope.spawn(move || {
                let till = at(&shop.address, TILL).with_deadline(Some(LONG));
                till.call("add", json!([1])).unwrap();
                let late = failure(&till.with_deadline(Some(SHORT)), "hang", json!(null));
                let found = (late.kind(), late.completed());
                assert_eq!(found, (Kind::TimedOut, Completed::Maybe), "{wire}: {late:?}");
            });
        }
    });
}

#[test]
fn a_server_that_ends_has_the_same_kind_on_each_wire() {
    for wire in WIRES {
        let shop = Shop::open(wire);
        let till = at(&shop.address, TILL).with_deadline(Some(LONG));
        let caller = std::thread::spawn(move || failure(&till, "hang", json!(null)));
        shop.till.await_hanging();
        shop.end();
        let lost = caller.join().unwrap();
        assert_eq!(
            (lost.kind(), lost.completed()),
            (Kind::Unreachable, Completed::Maybe),
            "{wire}: {lost:?}"
        );
    }
}

#[test]
fn nobody_there_has_the_same_kind_on_each_wire() {
    let port = everywire_peers::free_port().unwrap();
    let socket = scratch("nobody").join("socket").display().to_string();
    for address in [
        format!("iiop://127.0.0.1:{port}/till"),
        format!("iiop+unix://{socket}#till"),
        format!("dbus+unix://{socket}#till"),
        format!("dcop+unix://{socket}#shop/till"),
        format!("dcom+unix://{socket}#till"),
        format!("net.tcp://127.0.0.1:{port}/till?security=none"),
        format!("basic://127.0.0.1:{port}/till?security=none"),
    ] {
        let nobody = failure(&at(&address, TILL), "add", json!([1]));
        assert_eq!(
            (nobody.kind(), nobody.completed()),
            (Kind::Unreachable, Completed::No),
            "{address}: {nobody:?}"
        );
    }
}

#[test]
fn a_server_of_another_wire_has_the_same_kind_on_each_wire() {
    for wire in ["iiop", "dbus", "dcom"] {
        let shop = Shop::open(wire);
        let socket = shop.address.split("://").nth(1).unwrap().split('#').next().unwrap().to_owned();
        for other in ["iiop", "dbus", "dcom"].into_iter().filter(|other| *other != wire) {
            let lost = failure(&at(&format!("{other}+unix://{socket}#till"), TILL), "add", json!([1]));
            assert_eq!(lost.kind(), Kind::Unreachable, "{other} at {wire}: {lost:?}");
        }
    }
}
