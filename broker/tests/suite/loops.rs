//! Routes that lead back to one another.

use super::{LONG, Running, Scratch, config, contract, place, shop_at, start, try_start, until};
use everywire::model::visit::WithHeaders;
use everywire::model::{
    Answer, Completed, Encode, Header, Headers, Interface, Operation, Outcome, Remote, Request, Servant,
    Shape, visit,
};
use everywire::{Failure, Kind, Node};
use everywire_tests::dbus_kitchen::org::example::{Kitchen, KitchenTick};
use everywire_tests::servants::Galley;
use everywire_tests::shop::market::Shop;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A broker's file: a listener, and one route to a target; `typed` with a contract.
fn text(listen: &str, target: &str, typed: bool, more: &str) -> String {
    let contract = match typed {
        true => format!("contract = \"{}\"\ninterface = \"Shop\"\nmatch = {{ key = \"shop\" }}", contract()),
        false => String::new(),
    };
    format!(
        "{more}\n[listen.front]\naddress = \"{listen}\"\n[[route]]\nname = \"all\"\nto = \"{target}\"\n{contract}\n"
    )
}

/// Two brokers, each of which has the other one as its target.
fn circle(wire: &str, typed: bool, more: &str, scratch: &Scratch) -> (Running, Running) {
    let [one, other] = ["one", "other"].map(|name| place(wire, name, scratch));
    // Which port it gets is known when it listens.
    let (_backend, _, somewhere) = shop_at(&place(wire, "somewhere", scratch));
    let first = start(&text(&one, &somewhere, typed, more));
    let second = start(&text(&other, &first.reference("all"), typed, more));
    let back = config(&text(&one, &second.reference("all"), typed, more)).unwrap();
    first.broker.reload(back).unwrap_or_else(|mistakes| panic!("{wire}: {mistakes}"));
    (first, second)
}

fn refused(brokers: &[&Running]) -> f64 {
    brokers.iter().map(|broker| broker.metric(r#"refused_total{route="all",why="hops"}"#)).sum()
}

/// Calls that targets were given, by all brokers.
fn passed(brokers: &[&Running]) -> f64 {
    let page = |broker: &&Running| {
        let page = broker.broker.metrics();
        let counts =
            page.lines().filter_map(|line| line.strip_prefix("everywire_broker_target_calls_total{"));
        counts.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum::<f64>()
    };
    brokers.iter().map(page).sum()
}

#[track_caller]
fn gone_round(failure: &Failure, wire: &str) {
    // On D-Bus services refuse also in the middle of their work, so that a refusal does not say whether the call began.
    // On DCOM a call is refused by a fault, which says that nothing ran and has no room for a text. Who asks for an object gets a number
    // of COM's and a text: that is an answer.
    let told = match wire {
        "dbus" | "both" => Completed::Maybe,
        "an object of dcom" => Completed::Yes,
        _ => Completed::No,
    };
    assert_eq!((failure.kind(), failure.completed()), (Kind::Refused, told), "{wire}: {failure:?}");
    if wire == "an object of dcom" {
        assert!(failure.message().contains("the call has passed more brokers than"), "{failure}");
    }
}

#[test]
fn a_call_that_goes_round_ends_after_so_many_brokers() {
    for wire in ["iiop", "dbus", "basic", "net.tcp", "dcom"] {
        for typed in [false, true] {
            let scratch = Scratch::new();
            let (first, second) = circle(wire, typed, "", &scratch);
            let client = Node::new();
            let shop = client.connect::<dyn Shop>(&first.reference("all")).unwrap();
            let failure = shop.count(1).unwrap_err();
            // Without a contract the question for the object goes round before any call.
            let asked = if wire == "dcom" && !typed { "an object of dcom" } else { wire };
            gone_round(&failure, asked);
            let both = [&first, &second];
            if wire == "dbus" && typed {
                // Attributes are asked for where an object is new, which goes round as well.
                assert!(refused(&both) >= 1.0 && passed(&both) < 100.0, "{} hops", passed(&both));
            } else {
                assert!((refused(&both) - 1.0).abs() < 0.1, "{wire}: once");
                assert!((passed(&both) - 16.0).abs() < 0.1, "{wire}: {} hops", passed(&both));
            }
            // Nothing is left of it, and the next one fares the same.
            gone_round(&shop.count(2).unwrap_err(), asked);
            until("nothing is under way", || {
                both.iter().all(|broker| broker.metric(r#"calls_under_way{route="all"}"#).abs() < 0.1)
            });
        }
    }
}

#[test]
fn the_file_says_how_many_brokers_a_call_may_pass() {
    let scratch = Scratch::new();
    let (first, second) = circle("iiop", false, "hops = 3", &scratch);
    let client = Node::new();
    let shop = client.connect::<dyn Shop>(&first.reference("all")).unwrap();
    gone_round(&shop.count(1).unwrap_err(), "iiop");
    assert!((passed(&[&first, &second]) - 3.0).abs() < 0.1);
}

#[test]
fn a_circle_through_two_wires_ends_as_well() {
    let scratch = Scratch::new();
    let (_backend, _, somewhere) = shop_at("iiop://127.0.0.1:0");
    let bus = format!("dbus+unix://{}", scratch.path("near.bus"));
    let text = |target: &str| {
        let route = |name: &str, from: &str, to: &str| {
            format!(
                "[[route]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\ncontract = \"{}\"\ninterface = \"Shop\"\nmatch = {{ key = \"shop\" }}\n",
                contract()
            )
        };
        format!(
            "[listen.orb]\naddress = \"iiop://127.0.0.1:0\"\n[listen.bus]\naddress = \"{bus}\"\n{}{}",
            route("all", "orb", &format!("{bus}#shop")),
            route("back", "bus", target)
        )
    };
    let broker = start(&text(&somewhere));
    let reference = broker.reference("all");
    let orb = format!("{}shop", broker.broker.address("orb").unwrap());
    broker.broker.reload(config(&text(&orb)).unwrap()).unwrap();
    let client = Node::new();
    let shop = client.connect::<dyn Shop>(&reference).unwrap();
    gone_round(&shop.count(1).unwrap_err(), "both");
    assert!((16.0..100.0).contains(&passed(&[&broker])), "{}", passed(&[&broker]));
}

#[test]
fn a_circle_without_headers_ends_by_other_limits() {
    for (wire, hops) in [("dcop", ""), ("dcom", "hops = 0")] {
        let scratch = Scratch::new();
        let [one, other] = ["one", "other"].map(|name| place(wire, name, &scratch));
        let (_backend, _, somewhere) = shop_at(&place(wire, "somewhere", &scratch));
        let more = |text: String| format!("{text}limit = {{ calls = 20 }}\ntimeout = \"2m\"\n");
        let first = start(&more(text(&one, &somewhere, true, hops)));
        let second = start(&more(text(&other, &first.reference("all"), true, hops)));
        first
            .broker
            .reload(config(&more(text(&one, &second.reference("all"), true, hops))).unwrap())
            .unwrap();
        let client = Node::from(Node::builder().deadline(Some(LONG)).build());
        let shop = client.connect::<dyn Shop>(&first.reference("all")).unwrap();
        let failure = shop.count(1).unwrap_err();
        assert_ne!(failure.kind(), Kind::TimedOut, "{wire}: {failure:?}");
        assert!(passed(&[&first, &second]) <= 40.1, "{wire}: {}", passed(&[&first, &second]));
        let limited = |broker: &Running| broker.metric(r#"refused_total{route="all",why="limit"}"#);
        assert!((limited(&first) + limited(&second) - 1.0).abs() < 0.1, "{wire}: {failure:?}");
    }
}

/// Takes whatever is called, and keeps what a header says of it.
#[derive(Default)]
struct Ears(Mutex<Vec<String>>);

impl Servant for Ears {
    fn interface(&self) -> &Interface {
        <dyn Shop as Remote>::interface()
    }

    fn dispatch(&self, mut request: Request) {
        let body = request.body();
        let headers = body.headers().map(|headers| headers.list(body).unwrap()).unwrap_or_default();
        self.0
            .lock()
            .unwrap()
            .extend(headers.iter().map(|header| format!("{}={}", header.name, header.display())));
        request.answer(Answer::Done(&visit::Nothing));
    }
}

#[test]
fn what_a_caller_says_of_its_hops_counts_and_nobody_counts_where_the_file_says_so() {
    let (backend, ears) = (Node::new(), Arc::new(Ears::default()));
    backend.listen("iiop://127.0.0.1:0").unwrap();
    backend.export_prefix("", ears.clone());
    let target = backend.print_friendly(&backend.published_as("", "ears"));
    let client = Node::new();
    let ask = |broker: &Running, said: Option<&str>| {
        let object = client.object(&broker.reference("all")).unwrap();
        let operation = Operation::new("anything", vec![], Shape::Void);
        let mut headers = Headers::default();
        said.into_iter().for_each(|said| headers.add(Header::text("0x45574603", said)));
        let values: &dyn Encode = &visit::Nothing;
        object.invoke(&operation, &WithHeaders { values, headers: &headers })
    };
    let told = || std::mem::take(&mut *ears.0.lock().unwrap());
    let counts = start(&text("iiop://127.0.0.1:0", &target, false, "hops = 9"));
    for (said, next) in [(None, "31"), (Some("5"), "36"), (Some("8"), "39"), (Some("nonsense"), "31")] {
        assert!(matches!(ask(&counts, said), Outcome::Done(_)), "{said:?}");
        assert_eq!(told(), [format!("0x45574603={next}")], "{said:?}");
    }
    let Outcome::Failed(failure) = ask(&counts, Some("9")) else { panic!("it went on") };
    gone_round(&failure, "iiop");
    assert!(matches!(ask(&counts, Some("4294967295")), Outcome::Failed(_)));
    assert!(told().is_empty());
    let leaves = start(&text("iiop://127.0.0.1:0", &target, false, "hops = 0"));
    assert!(matches!(ask(&leaves, Some("17")), Outcome::Done(_)));
    assert_eq!(told(), ["0x45574603=3137"], "as it came");
    assert!(matches!(ask(&leaves, None), Outcome::Done(_)));
    assert!(told().is_empty());
}

#[test]
fn circles_that_are_certain_are_told_before_anything_runs() {
    let contract = contract();
    let wrong = |text: &str, message: &str| {
        let found = try_start(text).err().map(|mistakes| mistakes.to_string()).unwrap_or_default();
        assert!(found.contains(message), "{message}\nis not in\n{found}");
    };
    let route = |name: &str, from: &str, to: &str, more: &str| {
        format!("[[route]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\n{more}\n")
    };
    let typed = format!("contract = \"{contract}\"\ninterface = \"Shop\"\nmatch = {{ key = \"shop\" }}");
    let listen = |name: &str, address: &str| format!("[listen.{name}]\naddress = \"{address}\"\n");
    // Each of these is never listened at: the mistake is found before.
    for (at, to) in [
        ("iiop://127.0.0.1:4001", "iiop://127.0.0.1:4001/shop"),
        ("iiop://0.0.0.0:4001?publish=orb.example.org", "iiop://localhost:4001/shop"),
        ("dbus+unix:///tmp/nowhere.bus", "dbus+unix:///tmp/nowhere.bus#shop"),
        ("net.tcp://0.0.0.0:4001?security=none", "net.tcp://127.0.0.1:4001/shop?security=none"),
        ("basic://localhost:4001?security=none", "basic://127.0.0.1:4001/shop?security=none"),
        ("dcop+unix:///tmp/nowhere#front", "dcop+unix:///tmp/nowhere#front/shop"),
        ("dcom+unix:///tmp/nowhere.com", "dcom+unix:///tmp/nowhere.com#shop"),
    ] {
        let text = format!("{}{}", listen("front", at), route("all", "front", to, &typed));
        wrong(
            &text,
            "broker.toml:6:6: every call would go round: all to all, the target is a listener of this broker",
        );
    }
    let text = format!(
        "{}{}",
        listen("front", "iiop://127.0.0.1:4001"),
        route("all", "front", "iiop://127.0.0.1:4001/", "")
    );
    wrong(&text, "every call would go round: all to all");
    // By way of others.
    let three = |last: &str| {
        format!(
            "{}{}{}{}{}{}",
            listen("one", "iiop://127.0.0.1:4001"),
            listen("two", "dbus+unix:///tmp/nowhere.bus"),
            listen("three", "net.tcp://127.0.0.1:4003?security=none"),
            route("a", "one", "dbus+unix:///tmp/nowhere.bus#shop", &typed),
            route("b", "two", "net.tcp://127.0.0.1:4003/shop?security=none", &typed),
            route("c", "three", last, &typed),
        )
    };
    wrong(&three("iiop://127.0.0.1:4001/shop"), "every call would go round: a to b to c to a");
    // What leads out of the broker in the end, or only for some, is no circle.
    let good = |text: &str| {
        if let Err(mistakes) = everywire_broker::check(config(text).unwrap()) {
            panic!("{mistakes}\n{text}");
        }
    };
    good(&three("iiop://127.0.0.1:4444/shop"));
    good(&three("iiop://127.0.0.1:4001/another"));
    good(&format!(
        "{}{}{}",
        listen("front", "iiop://127.0.0.1:4001"),
        route(
            "new",
            "front",
            "iiop://127.0.0.1:4001/shop",
            "match = { header = { \"0x45570001\" = \"*\" } }\nedits = { remove = \"0x45570001\" }"
        ),
        route("rest", "front", "iiop://127.0.0.1:4002/shop", ""),
    ));
    // What comes back has a header by which the other route takes it.
    for typed in ["", &typed] {
        let matches = |more: &str| {
            let typed = typed.replace("match = { key = \"shop\" }", "");
            format!("match = {{ key = \"shop\"{more} }}\n{typed}")
        };
        good(&format!(
            "{}{}{}",
            listen("front", "iiop://127.0.0.1:4001"),
            route(
                "told",
                "front",
                "iiop://127.0.0.1:4002/shop",
                &matches(", header = { \"0x45570001\" = \"edge\" }")
            ),
            route(
                "rest",
                "front",
                "iiop://127.0.0.1:4001/shop",
                &format!("{}\nedits = {{ put = \"0x45570001\", value = \"edge\" }}", matches(""))
            ),
        ));
    }
}

#[test]
fn copies_that_would_never_end_are_told_before_anything_runs() {
    let route = |name: &str, to: &str| {
        format!(
            "[[route]]\nname = \"{name}\"\nmatch = {{ key = \"{name}\" }}\nto = \"iiop://127.0.0.1:4444/shop\"\ncontract = \"{}\"\ninterface = \"Shop\"\ncopy = {{ route = \"{to}\" }}\n",
            contract()
        )
    };
    let listen = "[listen.front]\naddress = \"iiop://127.0.0.1:0\"\n";
    let text = format!("{listen}{}{}{}", route("a", "b"), route("b", "c"), route("c", "a"));
    let mistakes = try_start(&text).err().unwrap().to_string();
    assert!(mistakes.contains("broker.toml:9:18: copies would never end: a to b to c to a"), "{mistakes}");
    assert_eq!(mistakes.lines().count(), 3, "{mistakes}");
}

#[test]
fn signals_that_go_round_end_as_calls_do() {
    let scratch = Scratch::new();
    let backend = Node::new();
    let source = place("dbus", "source", &scratch);
    backend.listen(&source).unwrap();
    let kitchen = Galley::export(&backend, "kitchen");
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/contracts/kitchen.dbus.xml");
    let at = |name: &str| format!("dbus+unix://{}", scratch.path(name));
    let text = |own: &str, targets: &[String]| {
        let to: Vec<_> = targets.iter().map(|target| format!("\"{target}#kitchen\"")).collect();
        format!(
            "hops = 5\n[listen.front]\naddress = \"{own}\"\n[[route]]\nname = \"all\"\nmatch = {{ key = \"kitchen\" }}\nto = [{}]\ncontract = \"{}\"\ninterface = \"org.example.Kitchen\"\n",
            to.join(", "),
            contract.display()
        )
    };
    // The first one hears the source and the second one, which hears the first one.
    let first = start(&text(&at("one"), &[source, at("other")]));
    let second = start(&text(&at("other"), &[at("one")]));
    let both = [&first, &second];
    until("a signal has gone round", || {
        kitchen.signals().emit(&KitchenTick { i: 1, text: "round".into() }).unwrap();
        refused(&both) >= 1.0
    });
    // Each was told five times at the most: what was emitted last does not go on for ever.
    let told = || both.iter().map(|broker| broker.metric(r#"signals_total{route="all"}"#)).sum::<f64>();
    let mut before = told();
    until("it is quiet again", || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let now = told();
        let quiet = (now - before).abs() < 0.1;
        before = now;
        quiet
    });
    let client = Node::new();
    let heard = client.connect::<dyn Kitchen>(&first.reference("all")).unwrap();
    assert_eq!(heard.divide(17, 5).unwrap(), (3, 2));
}
