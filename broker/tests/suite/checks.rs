//! What is told of a configuration before it runs.

use super::{Scratch, config, contract, try_start};
use everywire_broker::check;

/// A file in which only `route` differs.
pub(super) fn file(route: &str) -> String {
    format!("[listen.front]\naddress = \"iiop://127.0.0.1:0\"\n\n[[route]]\nname = \"shop\"\n{route}\n")
}

#[track_caller]
pub(super) fn wrong(text: &str, message: &str) {
    let found = try_start(text).err().map(|mistakes| mistakes.to_string()).unwrap_or_default();
    assert!(found.contains(message), "{message}\nis not in\n{found}");
}

#[test]
fn mistakes_are_told_with_line_and_column_and_what_was_meant() {
    let contract = contract();
    wrong(
        "[listen.front]\nadress = \"x\"\n",
        "broker.toml:2:1: [listen.front] has no field `adress`, did you mean `address`?",
    );
    wrong("[listen.front]\n", "broker.toml:1:9: [listen.front] lacks `address`");
    wrong("[listen.front\n", "broker.toml:1:");
    wrong(&file("to = 5"), "broker.toml:6:6: `to` is a text or a list of texts, not an integer");
    wrong(&file("to = \"iiop://h:1/k\"\nretries = -1"), "broker.toml:7:11: `retries` cannot be -1");
    wrong(
        &file("to = \"iiop://h:1/k\"\ntimeout = \"5 weeks\""),
        "broker.toml:7:11: `timeout`: `weeks` is no unit of time",
    );
    wrong(
        &file("to = \"iiop://h:1/k\"\nbalance = \"first-one\""),
        "broker.toml:7:11: `balance` cannot be `first-one`",
    );
    wrong(
        &file("to = \"iop://h:1/k\""),
        "broker.toml:6:6: no wire has addresses that begin with `iop:`, did you mean `iiop`?",
    );
    wrong(&file("to = \"iiop://h\""), "broker.toml:6:6: ");
    for name in ["allow", "from"] {
        wrong(
            &file(&format!("to = \"iiop://h:1/k\"\n{name} = []")),
            &format!("`{name}` is empty: the route would be for none"),
        );
    }
    wrong(&file("to = \"iiop://h:1/k\"\nmatch = { peer = [] }"), "`peer` is empty");
    wrong(
        &file("from = \"frond\"\nto = \"iiop://h:1/k\""),
        "broker.toml:6:8: there is no listener `frond`, did you mean `front`?",
    );
    let missing = contract.replace("shop.idl", "shob.idl");
    wrong(
        &file(&format!("to = \"iiop://h:1/k\"\ncontract = \"{missing}\"")),
        "shob.idl`, did you mean `shop.idl`?",
    );
    let with = |more: &str| file(&format!("to = \"iiop://h:1/k\"\ncontract = \"{contract}\"\n{more}"));
    wrong(&with("interface = \"Shob\""), "broker.toml:8:13: no interface is called `Shob`");
    wrong(&with("interface = \"Shob\""), "did you mean `Shop`?");
    wrong(&with(""), "lacks `interface`: its contract defines market::Watcher, market::Shop");
    wrong(
        &with("interface = \"Shop\"\nmatch = { operation = \"get_order\" }"),
        "broker.toml:9:23: market::Shop has no operation `get_order`, did you mean `get_orders`?",
    );
    wrong(
        &with("interface = \"Shop\"\nmatch = { key = \"a*\" }"),
        "broker.toml:9:17: `a*`: a route with a contract has one object",
    );
    wrong(&with("interface = \"Shop\"\nallow = \"ada\""), "broker.toml:9:9: `ada` names nobody");
    wrong(&with("interface = \"Shop\"\ncopy = { to = \"a\", program = \"b\" }"), "a copy goes to one place");
    let twice =
        format!("{}\n[[route]]\nname = \"shop\"\nto = \"iiop://h:1/k\"\n", with("interface = \"Shop\""));
    wrong(&twice, "broker.toml:11:8: there are two routes of the name `shop`, the other one is in line 5");
    wrong(&file("to = \"iiop://h:1/k\"").replace("\"shop\"", "\"\""), "broker.toml:5:8: a route has a name");
    wrong(
        &format!("{}[admin]\naddress = \"127.0.0.1:0\"\ngrace = \"5s\"\n", file("to = \"iiop://h:1/k\"")),
        "broker.toml:9:1: [admin] has no field `grace`, `grace` stands above the first table of the file",
    );
    wrong(
        &with("interface = \"Shop\"\nretries = 1\nidempotent = [\"count\", \"get_order\"]"),
        "broker.toml:10:24: market::Shop has no operation `get_order`, did you mean `get_orders`?",
    );
    wrong(
        &file("to = []"),
        "broker.toml:6:6: route `shop` needs a target, `to` is an address or a list of addresses",
    );
    wrong(&file(""), "broker.toml:4:1: route `shop` lacks `to`");
    wrong(&file("to = \"iiop://h:1/k\"\nto = \"iiop://h:2/k\""), "broker.toml:7:1: duplicate key `to`");
    let wine = "objref:TUVPVwEAAAAQHDpvXo16S5whWy2OD0ohAAAAAAAAAAD+ygAAIAAAAAIAAAAAAAAAAQAAAAAAIACLKAmj4c90CgAAAAA=:?dialect=wine&at=h:1";
    wrong(&file(&format!("to = \"{wine}\"")), "broker.toml:6:6: a broker cannot call this");
    // All at once.
    let found = try_start(&file("to = \"iop://h\"\nretires = 3\nprobe = 1")).err().unwrap();
    assert_eq!(found.0.len(), 2, "{found}");
}

/// Nothing is told that is not so: a listener without an address is one, and so is a route without a name.
#[test]
fn what_lacks_something_is_not_told_to_be_missing() {
    let told = |text: &str| try_start(text).err().map(|mistakes| mistakes.to_string()).unwrap_or_default();
    let found = told("[listen.front]\nadress = \"iiop://127.0.0.1:0\"\n[[route]]\nto = \"iiop://h:1/k\"\n");
    assert!(!found.contains("there is no"), "{found}");
    assert!(
        found.contains("[listen.front] lacks `address`") && found.contains("[[route]] lacks `name`"),
        "{found}"
    );
    // A route whose copies went to itself would be the next mistake.
    let found = told(&file("to = \"iiop://h:1/k\"\ncopy = { route = \"shob\" }"));
    assert!(found.contains("there is no route `shob`") && !found.contains("did you mean"), "{found}");
}

#[test]
fn headers_that_the_wire_lacks_are_told_before_a_call_fails_of_them() {
    let to = |to: &str, edits: &str| {
        file(&format!("to = \"{to}\"\ncontract = \"{}\"\ninterface = \"Shop\"\nedits = {edits}", contract()))
    };
    // What goes to the targets is in their wire's words.
    for (target, good, bad, message) in [
        (
            "iiop://h:1/k",
            "0x45570001",
            "{urn:a}b",
            "9:18: giop: `{urn:a}b` names no service context, give its number",
        ),
        (
            "iiop://h:1/k",
            "0x00000011",
            "17",
            "9:18: giop: the service context `17` has another name, write `0x00000011`",
        ),
        ("dbus://h:1/k", "80", "1", "9:18: dbus: `1` names no header field of D-Bus that may be written"),
        ("net.tcp://h:1/k", "{urn:a}b", "a b", "9:18: wcf: `a b` names no header of SOAP"),
        ("dcom://h/k", "45570001-1a8c-11d3-b68f-00c04f8b72e7", "17", "9:18: dcom: `17` names no extension"),
    ] {
        check(config(&to(target, &format!("[{{ put = \"{good}\", value = \"x\" }}]"))).unwrap()).unwrap();
        wrong(&to(target, &format!("[{{ put = \"{bad}\", value = \"x\" }}]")), message);
        let removed = message.replace("9:18", "9:21");
        wrong(&to(target, &format!("[{{ remove = \"{bad}\" }}]")), &removed);
    }
    wrong(
        &to("dcop+unix:///s#app/k", "[{ put = \"a\", value = \"x\" }]"),
        "9:18: dcop: calls have no headers on this wire",
    );
    // What goes to the callers is in theirs.
    let answers =
        |name| to("net.tcp://h:1/k", &format!("[{{ put = \"{name}\", value = \"x\", answers = true }}]"));
    check(config(&answers("0x45570001")).unwrap()).unwrap();
    wrong(&answers("{urn:a}b"), "9:18: giop: `{urn:a}b` names no service context");
    // What is changed before a copy is taken goes to the copy's route, too; what is changed behind it does not.
    let copied = |edit: &str| {
        let both = format!("contract = \"{}\"\ninterface = \"Shop\"", contract());
        let first =
            format!("to = \"iiop://h:1/k\"\n{both}\ncopy = {{ route = \"shadow\" }}\nedits = [{{ {edit} }}]");
        format!(
            "{}[[route]]\nname = \"shadow\"\nmatch = {{ key = \"shadow\" }}\nto = \"dbus:session/a.b/k\"\n{both}\n",
            file(&first)
        )
    };
    check(config(&copied("put = \"0x45570001\", value = \"x\"")).unwrap()).unwrap();
    wrong(
        &copied("put = \"0x45570001\", value = \"x\", before-copy = true"),
        "10:18: dbus, where `shadow` takes a copy: `0x45570001` names no header field of D-Bus",
    );
}

/// What would keep a broker from beginning is told without beginning.
#[test]
fn listeners_that_cannot_listen_are_told_before_anything_runs() {
    let (scratch, to) = (Scratch::new(), "[[route]]\nname = \"a\"\nto = \"iiop://h:1/k\"\n");
    let at = |addresses: &[&str]| {
        let each = addresses.iter().enumerate();
        let listens = each.map(|(at, address)| format!("[listen.l{at}]\naddress = \"{address}\"\n"));
        check(config(&format!("{}{to}", listens.collect::<String>())).unwrap())
            .map_err(|mistakes| mistakes.to_string())
    };
    at(&["iiop://127.0.0.1:0", "iiop://127.0.0.1:0", "iiop://127.0.0.1:4?publish=orb.example.org"]).unwrap();
    for (address, message) in [
        (
            "iiop://127.0.0.1",
            "2:11: cannot listen at `iiop://127.0.0.1`: `iiop://127.0.0.1` is not an address",
        ),
        ("iiop://127.0.0.1:0?publih=h", "an option `publih` is not known here"),
        ("iiop://127.0.0.1:0?publish=a:b", "publish"),
        ("iiops://127.0.0.1:0", "listening with TLS needs ?cert=FILE&key=FILE"),
        ("iiops://127.0.0.1:0?cert=/no/such&key=/no/such", "(/no/such)"),
        ("dcom://127.0.0.1:0", "needs users"),
        ("net.tcp://127.0.0.1:0?security=nine", "`nine` is none of what `security=` can be"),
    ] {
        // Of callers on another wire nothing passes without a contract: that is told, too.
        let found = at(&[address]).unwrap_err();
        assert!(found.contains(message), "{message}\nis not in\n{found}");
    }
    // What only the system knows is told at the start.
    let nowhere = format!("[listen.l0]\naddress = \"iiop+unix:///no/such/socket\"\n{to}");
    wrong(&nowhere, "(os error 2), make the folder of the socket first");
    let socket = format!("iiop+unix://{}", scratch.path("s"));
    for pair in [
        ["iiop://127.0.0.1:4", "iiop://127.0.0.1:4"],
        ["iiop://0.0.0.0:4", "iiop://localhost:4"],
        [&socket, &socket],
    ] {
        let found = at(&pair).unwrap_err();
        let message = format!("broker.toml:4:11: the listener `l0` is at `{}` already", pair[1]);
        assert!(found.contains(&message), "{message}\nis not in\n{found}");
    }
    for admin in ["127.0.0.1:4", "localhost:4"] {
        let text =
            format!("[admin]\naddress = \"{admin}\"\n[listen.l0]\naddress = \"iiop://0.0.0.0:4\"\n{to}");
        let message = format!(
            "broker.toml:2:11: the listener `l0` is at `{admin}` already, the administrator's pages need a port of their own"
        );
        wrong(&text, &message);
    }
}

#[test]
fn what_could_never_take_effect_is_a_mistake() {
    let with = |more: &str| file(&format!("to = \"iiop://h:1/k\"\n{more}"));
    // Headers that callers cannot bring.
    wrong(
        &with("match = { header = { \"{urn:a}b\" = \"x\" } }"),
        "broker.toml:7:22: giop: `{urn:a}b` names no service context",
    );
    check(config(&with("match = { header = { \"0x45570001\" = \"x\" } }")).unwrap()).unwrap();
    // Those that callers on one of several wires can.
    let both = format!("[listen.web]\naddress = \"basic://127.0.0.1:0?security=none\"\n{}", with(""))
        + &format!("contract = \"{}\"\ninterface = \"Shop\"\n", contract());
    check(config(&format!("{both}match = {{ header = {{ \"{{urn:a}}b\" = \"x\" }} }}")).unwrap()).unwrap();
    // Callers that are sent to the target bring no messages here.
    for (field, what) in [
        ("copy = { count = true }", "7:18: `copy`"),
        ("edits = [{ remove = \"0x45570001\" }]", "7:21: `edits`"),
    ] {
        let redirect = with(&format!("{field}\nmode = \"redirect\""));
        wrong(&redirect, &format!("{what} has no effect with mode = \"redirect\""));
    }
    // Those who are no user.
    wrong(&with("deny = \"user:\""), "broker.toml:7:8: `user:` names nobody");
    // A capture of the older form.
    wrong(
        &with("copy = { to = \"a.pcap\" }"),
        "broker.toml:7:15: captures are written in the form of .pcapng",
    );
    // A file that is neither a capture nor lines of JSON, unless it has no ending: that may be a pipe.
    wrong(
        &with("copy = { to = \"a.txt\" }"),
        "broker.toml:7:15: copies go to a file of JSON lines (.ndjson) or to a capture (.pcapng), did you mean `a.ndjson`?",
    );
    for name in ["a", "a.ndjson", "a.JSON", "a.jsonl", "a.pcapng"] {
        check(config(&with(&format!("copy = {{ to = \"{name}\" }}"))).unwrap()).unwrap();
    }
    // A file whose folder is not there.
    let found = check(config(&with("copy = { to = \"/no/such/a.ndjson\" }")).unwrap()).unwrap_err();
    let message = "broker.toml:7:15: there is no folder `/no/such` for the copies";
    assert!(found.to_string().contains(message), "{found}");
    // Fields that are meant for the whole file, and times without a unit.
    wrong(
        &with("hops = 4"),
        "[[route]] has no field `hops`, `hops` stands above the first table of the file",
    );
    wrong(
        &with("timeout = 5"),
        "broker.toml:7:11: `timeout` is a time with its unit, such as \"5s\", not an integer",
    );
    wrong(&with("match = { kye = \"k\" }"), "`match` has no field `kye`, did you mean `key`?");
}

/// Whoever mends a file is told all of it: an address that nobody listens at keeps no mistake of another table back.
#[test]
fn mistakes_of_all_tables_are_told_at_once() {
    let text = "[admin]\naddress = \"0.0.0.0:0\"\n[listen.front]\naddress = \"iop://127.0.0.1:0\"\n[[route]]\nname = \"shop\"\n\
        to = \"iiop://h\"\ncontract = \"no.idl\"\ncopy = { to = \"/no/such/a.ndjson\" }\n";
    let found = check(config(text).unwrap()).unwrap_err().to_string();
    let places: Vec<_> =
        found.lines().filter_map(|line| line.strip_prefix("broker.toml:")?.split(": ").next()).collect();
    assert_eq!(places, ["2:11", "4:11", "7:6", "8:12", "9:15"], "{found}");
}

/// Of wires without words for where an object went: each call would fail.
#[test]
fn callers_are_sent_to_the_target_only_where_their_wire_can_say_so() {
    let contract = format!("contract = \"{}\"\ninterface = \"Shop\"\n", contract());
    let (dbus, dcop) = ("dbus+unix:///tmp/a.sock", "dcop+unix:///tmp/nowhere#app");
    for (front, to, wire) in [
        (dbus, "dbus+unix:///tmp/b.sock#shop", "dbus"),
        ("dcom://127.0.0.1:0?level=none", "dcom://h/Shop", ""),
        (dcop, "dcop+unix:///tmp/there#app/shop", "dcop"),
        ("iiop://127.0.0.1:0", "iiop://h:1/shop", ""),
        ("basic://127.0.0.1:0?security=none", "basic://h:1/shop?security=none", ""),
    ] {
        for more in ["", &contract] {
            let text = format!(
                "[listen.front]\naddress = \"{front}\"\n[[route]]\nname = \"shop\"\nto = \"{to}\"\nmode = \"redirect\"\n{more}"
            );
            let found = check(config(&text).unwrap()).err().map(|mistakes| mistakes.to_string());
            let expected = format!(
                "broker.toml:6:8: a caller on {wire} cannot be sent to the target, use mode = \"forward\", which works on every wire"
            );
            assert_eq!(found, (!wire.is_empty()).then_some(expected), "{text}");
            if wire.is_empty() {
                continue;
            }
            wrong(&text, "6:8: a caller on");
        }
    }
    // A caller who asks for an object has called nothing yet.
    let dcom = |more: &str| {
        format!(
            "[listen.front]\naddress = \"dcom://127.0.0.1:0?level=none\"\n[[route]]\nname = \"shop\"\nto = \"dcom://h/Shop\"\nmode = \"redirect\"\n{more}"
        )
    };
    wrong(&dcom("match = { operation = \"4\" }"), "broker.toml:7:23: `match.operation` has no effect");
    wrong(&dcom("match = { interface = \"4*\" }"), "broker.toml:6:8: `match.interface` has no effect");
    wrong(&dcom("validate = true"), "7:12: `validate` has no effect with mode = \"redirect\"");
    let iiop = dcom(&contract).replace("to = \"dcom://h/Shop\"", "to = \"iiop://h:1/Shop\"");
    wrong(&iiop, "a caller on dcom cannot be sent to a target on giop");
}

/// Where nobody reads bodies, references in them stay what they are; the check says so, where the wire has references. It says as well
/// where callers have objects of their own.
#[test]
fn a_check_says_which_calls_lead_past_the_broker_and_to_objects_of_their_own() {
    let contract = format!("contract = \"{}\"\ninterface = \"Shop\"\n", contract());
    let past = "references in bodies lead past the broker";
    let there = "callers learn where the target is, and call it there";
    let own = "each caller that asks for the object has one of its own at the target";
    for (front, to, more, expected) in [
        ("iiop://127.0.0.1:0", "iiop://h:1/shop", "", past),
        ("dcom://127.0.0.1:0?level=none", "dcom://h/shop", "", past),
        ("iiop://127.0.0.1:0", "iiop://h:1/shop", &*contract, ""),
        ("dcom://127.0.0.1:0?level=none", "dcom://h/shop", &*contract, own),
        ("dcom://127.0.0.1:0?level=none", "iiop://h:1/shop", &*contract, ""),
        ("iiop://127.0.0.1:0", "dcom://h/shop", &*contract, ""),
        ("net.tcp://127.0.0.1:0?security=none", "net.tcp://h:1/shop?security=none", "", ""),
        ("dcom://127.0.0.1:0?level=none", "dcom://h/shop", "mode = \"redirect\"", there),
        ("iiop://127.0.0.1:0", "iiop://h:1/shop", "mode = \"redirect\"", there),
    ] {
        let text = format!(
            "[listen.front]\naddress = \"{front}\"\n[[route]]\nname = \"shop\"\nto = \"{to}\"\n{more}"
        );
        let reports = check(config(&text).unwrap()).unwrap();
        let shown = reports[0].to_string();
        match expected {
            "" => assert!(reports[0].notes.is_empty(), "{shown}"),
            expected => assert!(shown.contains(&format!("\n  {expected}")), "{shown}"),
        }
    }
}

/// The first route that a call is for gets it: one behind it that is for the same calls, and for no others, was meant otherwise.
#[test]
fn a_check_says_which_routes_no_call_comes_to() {
    let contract = format!("contract = \"{}\"\ninterface = \"Shop\"\n", contract());
    let plain = String::new();
    for (first, second, more, lacks) in [
        ("to = \"iiop://h:1/a\"", "to = \"iiop://h:2/a\"", &plain, true),
        ("to = \"iiop://h:1/\"", "to = \"iiop://h:2/a\"", &plain, true),
        ("to = \"iiop://h:1/\"", "match = { key = \"a*\" }\nto = \"iiop://h:2/\"", &plain, true),
        ("to = \"iiop://h:1/a\"", "to = \"iiop://h:2/a\"", &contract, true),
        ("to = \"iiop://h:1/a\"\nallow = \"10.0.0.0/8\"", "to = \"iiop://h:2/a\"", &contract, true),
        ("to = \"iiop://h:1/a\"", "to = \"iiop://h:2/b\"", &plain, false),
        ("to = \"iiop://h:1/a\"", "match = { key = \"a*\" }\nto = \"iiop://h:2/a\"", &plain, false),
        ("to = \"iiop://h:1/a\"\nmatch = { peer = \"10.0.0.0/8\" }", "to = \"iiop://h:2/a\"", &plain, false),
        (
            "to = \"iiop://h:1/a\"\nmatch = { operation = \"count\" }",
            "to = \"iiop://h:2/a\"",
            &contract,
            false,
        ),
        // It takes copies.
        ("to = \"iiop://h:1/a\"\ncopy = { route = \"second\" }", "to = \"iiop://h:2/a\"", &contract, false),
    ] {
        let text = format!(
            "[listen.front]\naddress = \"iiop://127.0.0.1:0\"\n[[route]]\nname = \"first\"\n{first}\n{more}\n\
             [[route]]\nname = \"second\"\n{second}\n{more}\n"
        );
        let reports = check(config(&text).unwrap()).unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
        let told =
            |at: usize| reports[at].to_string().contains("no call comes here: the route `first` stands");
        assert!(!told(0) && told(1) == lacks, "{text}\n{}", reports[1]);
    }
}

#[test]
fn what_runs_and_does_not_mean_what_it_says_is_told() {
    let contract = contract();
    let typed = file(&format!("to = \"iiop://h:1/\"\ncontract = \"{contract}\"\ninterface = \"Shop\""));
    let shown = check(config(&typed).unwrap()).unwrap()[0].to_string();
    assert!(shown.contains("\n  the target `iiop://h:1/` names no object"), "{shown}");
    wrong(
        &file("to = [\"iiop://h:1/a\", \"iiop://h:2/a\", \"iiop://h:1/a\"]"),
        "broker.toml:6:39: `iiop://h:1/a` is a target of this route already",
    );
    wrong(
        &file("to = \"iiop://h:1/a\"\ncopy = { program = \" \" }"),
        "broker.toml:7:20: `program` is a command line, and this one is empty",
    );
    let name = file("to = \"iiop://h:1/a\"").replace("\"shop\"", "\"a\\tb\"");
    wrong(&name, "broker.toml:5:8: a name has no control characters");
    let scratch = Scratch::new();
    let path = scratch.path("broker.toml");
    std::fs::write(&path, b"[listen.front]\naddress = \"caf\xe9\"\n").unwrap();
    let wrong = everywire_broker::Config::read(std::path::Path::new(&path)).unwrap_err().to_string();
    assert!(wrong.ends_with("broker.toml:2:15: this is no text in UTF-8"), "{wrong}");
    let endless = everywire_broker::Config::read(std::path::Path::new("/dev/zero")).unwrap_err().to_string();
    assert_eq!(endless, "/dev/zero: this is larger than 256 MiB, and no file of routes");
}

#[test]
fn a_check_looks_at_the_administrators_pages() {
    let found = |admin: &str| {
        let text = format!("{}[admin]\n{admin}\n", file("to = \"iiop://h:1/k\""));
        check(config(&text).unwrap()).map_err(|mistakes| mistakes.to_string())
    };
    found("address = \"127.0.0.1:9100\"").unwrap();
    for (admin, message) in [
        ("address = \"localhost\"", "8:11: cannot listen at `localhost`: HOST:PORT is expected"),
        (
            "address = \"0.0.0.0:9100\"",
            "8:11: `0.0.0.0:9100` can be reached from elsewhere: name a `token-file`",
        ),
        (
            "address = \"127.0.0.1:9100\"\ntoken-file = \"/no/such/token\"",
            "8:11: the token file `/no/such/token`",
        ),
    ] {
        let found = found(admin).unwrap_err();
        assert!(found.contains(message), "{found}");
    }
}

#[test]
fn one_way_messages_are_named_only_where_no_contract_tells() {
    let typed = format!(
        "to = \"iiop://127.0.0.1:1/shop\"\ncontract = \"{}\"\ninterface = \"market::Shop\"\noneway = \"note\"",
        contract()
    );
    wrong(&file(&typed), "broker.toml:9:10: `oneway` is for routes without a contract");
}

/// Thousands of routes of which each leads to the next one, by calls and by copies: the time grows with the square of their number, not with
/// its third power, so this ends.
#[test]
fn long_ways_through_routes_are_followed_in_time() {
    let contract = contract();
    let text = |count: usize, last: &str| {
        let route = |at: usize| {
            let copy =
                if at + 1 < count { format!("{{ route = \"r{}\" }}", at + 1) } else { last.to_owned() };
            format!(
                "[[route]]\nname = \"r{at}\"\nmatch = {{ key = \"k{at}\" }}\nto = \"iiop://127.0.0.1:2809/k{}\"\n\
                 contract = \"{contract}\"\ninterface = \"Shop\"\ncopy = {copy}\n",
                at + 1
            )
        };
        let routes: String = (0..count).map(route).collect();
        format!("[listen.front]\naddress = \"iiop://127.0.0.1:2809\"\n{routes}")
    };
    assert_eq!(check(config(&text(1000, "{ count = true }")).unwrap()).unwrap().len(), 1000);
    wrong(&text(50, "{ route = \"r0\" }"), "copies would never end: r0 to r1 to r2 to r3");
}
