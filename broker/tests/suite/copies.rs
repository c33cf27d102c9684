//! Copies: to files, to programs, by another route; lossy, and required.

use super::{Running, Scratch, contract, shop_at, start, until};
use everywire::{Kind, Node, Ref};
use everywire_dynamic::{DynamicObject, ObjectContract};
use everywire_tests::shop::market::Shop;
use serde_json::{Value as Json, json};
use std::fs;

fn broker(target: &str, copy: &str, more: &str) -> Running {
    start(&format!(
        r#"
        [listen.front]
        address = "iiop://127.0.0.1:0"
        [[route]]
        name = "shop"
        match = {{ key = "shop" }}
        to = "{target}"
        contract = "{contract}"
        interface = "Shop"
        copy = {copy}
        {more}
        "#,
        contract = contract(),
    ))
}

fn shop(client: &Node, broker: &Running) -> Ref<dyn Shop> {
    client.connect::<dyn Shop>(&broker.reference("shop")).unwrap()
}

#[test]
fn lines_of_json_have_the_values_of_calls_and_answers() {
    let (scratch, (_backend, _, target)) = (Scratch::new(), shop_at("iiop://127.0.0.1:0"));
    let file = scratch.path("copies.ndjson");
    let broker = broker(&target, &format!("{{ to = \"{file}\", answers = true }}"), "");
    let client = Node::new();
    let shop = shop(&client, &broker);
    shop.mix(7, "a\"b").unwrap();
    shop.find(1).unwrap();
    shop.find(-1).unwrap_err();
    let lines = || fs::read_to_string(&file).unwrap_or_default();
    until("all copies are written", || lines().lines().count() == 6);
    let all: Vec<Json> = lines().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let has = |at: usize, field: &str, text: &str| {
        let wanted: Json = serde_json::from_str(text).unwrap();
        assert_eq!(all[at][field], wanted, "{}", all[at]);
    };
    has(0, "route", "\"shop\"");
    has(0, "operation", "\"mix\"");
    has(0, "arguments", r#"{"a": 7, "text": "a\"b"}"#);
    has(1, "results", r#"{"return": 3, "half": 3.5, "text": "b\"a"}"#);
    has(
        3,
        "results",
        r#"{"return": {"number": 1, "status": "shipped", "lines": [
            {"name": "bolt", "count": 1, "price": 1.5}, {"name": "nut ä", "count": 2, "price": 3.0}]}}"#,
    );
    has(5, "raised", "\"market::Missing\"");
    has(5, "fields", r#"{"number": -1, "why": "no -1"}"#);
    for at in [1, 3, 5] {
        assert_eq!(all[at]["call"], all[at - 1]["call"], "an answer says whose it is");
    }
}

/// What values of any type bring with themselves is written as `call` reads it again: whole shapes, words for dates, labels of unions.
#[test]
fn lines_of_json_are_in_the_notation_of_the_program() {
    let scratch = Scratch::new();
    let (file, idl) = (scratch.path("copies.ndjson"), scratch.path("bag.idl"));
    let text = r#"
        struct Point { long x; string label; };
        union Choice switch (boolean) { case TRUE: long number; case FALSE: string word; };
        typedef sequence<Point> Points;
        interface Bag { void put(in any value, in CORBA::TypeCode code, in Choice choice); };
    "#;
    fs::write(&idl, text).unwrap();
    let (_backend, _, target) = shop_at("iiop://127.0.0.1:0");
    let broker = start(&format!(
        r#"
        [listen.front]
        address = "iiop://127.0.0.1:0"
        [[route]]
        name = "bag"
        match = {{ key = "shop" }}
        to = "{target}"
        contract = "{idl}"
        copy = {{ to = "{file}", required = true }}
        "#
    ));
    let client = Node::new();
    let contract = ObjectContract::from_file(idl.as_ref(), &Default::default()).unwrap();
    let bag = DynamicObject::with_contract(&client, &broker.reference("bag"), contract).unwrap();
    let arguments = json!({
        "value": {"shape": "Points", "value": [{"x": 7, "label": "seven"}]},
        "code": "sequence<f64>",
        "choice": {"discriminator": true, "arm": 5},
    });
    // The object behind is another one.
    bag.call("put", arguments.clone()).unwrap_err();
    let line = || fs::read_to_string(&file).unwrap_or_default();
    until("the copy is written", || line().ends_with('\n'));
    let mut copy: Json = serde_json::from_str(&line()).unwrap();
    // A file of copies stands alone: the type of the value is told in full.
    let shape = copy["arguments"]["value"]["shape"].take();
    assert_eq!((&shape["kind"], &shape["name"]), (&json!("alias"), &json!("Points")), "{shape}");
    assert_eq!(shape["shape"]["element"]["fields"][1]["name"], json!("label"), "{shape}");
    copy["arguments"]["value"]["shape"] = json!("Points");
    assert_eq!(copy["arguments"], arguments);
}

/// Messages of D-Bus say the types of their values.
#[test]
fn copies_without_a_contract_have_the_values_that_messages_describe() {
    let (scratch, (_backend, _, target)) = (Scratch::new(), shop_at("dbus+tcp://127.0.0.1:0"));
    let file = scratch.path("copies.ndjson");
    let broker = start(&format!(
        r#"
        [listen.front]
        address = "dbus+tcp://127.0.0.1:0"
        [[route]]
        name = "shop"
        match = {{ key = "shop" }}
        to = "{target}"
        copy = {{ to = "{file}", answers = true }}
        "#
    ));
    let client = Node::new();
    shop(&client, &broker).mix(7, "a\"b").unwrap();
    let lines = || fs::read_to_string(&file).unwrap_or_default();
    until("both copies are written", || lines().lines().count() == 2);
    let all: Vec<Json> = lines().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(all[0]["arguments"], json!([7, "a\"b"]), "{}", all[0]);
    assert_eq!(all[1]["results"], json!([3, 3.5, "b\"a"]), "{}", all[1]);
}

/// Calls that can be made messages again are segments of TCP; `everywire trace` reads them, as the tests of the program show.
#[test]
fn a_capture_has_a_connection_for_each_call() {
    let (scratch, (_backend, _, target)) = (Scratch::new(), shop_at("iiop://127.0.0.1:0"));
    let file = scratch.path("copies.pcapng");
    let broker = broker(&target, &format!("{{ to = \"{file}\" }}"), "");
    let client = Node::new();
    let shop = shop(&client, &broker);
    shop.count(0x0102_0304).unwrap();
    shop.count(0x0506_0708).unwrap();
    let mut blocks = Vec::new();
    until("all packets are written", || {
        blocks.clear();
        let capture = fs::read(&file).unwrap_or_default();
        let word = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().unwrap());
        let mut at = 0;
        while at + 12 <= capture.len() {
            let len = word(at + 4) as usize;
            if at + len > capture.len() {
                break;
            }
            assert_eq!(word(at + len - 4) as usize, len, "a block ends as it begins");
            blocks.push((word(at), capture[at..at + len].to_vec()));
            at += len;
        }
        blocks.len() == 9
    });
    let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
    // The section, both interfaces, and for each call a connection that begins, and its request.
    assert_eq!(kinds, [0x0A0D_0D0A, 1, 1, 6, 6, 6, 6, 6, 6]);
    for (packets, number) in blocks[3..].chunks(3).zip([0x0102_0304_u32, 0x0506_0708]) {
        assert!(String::from_utf8_lossy(&packets[0].1).contains("shop: arguments of count"));
        let request = &packets[2].1;
        // Behind the heads of the packet, of IP and of TCP.
        assert_eq!(&request[28 + 40..28 + 44], b"GIOP");
        let content = 28..28 + u32::from_le_bytes(request[20..24].try_into().unwrap()) as usize;
        let body = &request[content][..];
        let body = &body[body.len() - 4..];
        assert!(body == number.to_le_bytes() || body == number.to_be_bytes(), "{body:?}");
    }
}

/// DCOP's messages cannot be made again: a packet has what was encoded, and a comment what it is of.
#[test]
fn a_capture_of_dcop_has_the_encoded_bodies() {
    let scratch = Scratch::new();
    let file = scratch.path("copies.pcapng");
    let (backend, store) = (Node::new(), super::Store::new());
    backend.listen(&super::place("dcop", "backend", &scratch)).unwrap();
    let served = backend.export::<dyn Shop>("shop", store.clone());
    let target = backend.print_friendly(served.reference());
    for contract in [String::new(), format!("contract = \"{}\"\ninterface = \"Shop\"\n", contract())] {
        let _ = fs::remove_file(&file);
        let broker = start(&format!(
            "[listen.front]\naddress = \"{}\"\n[[route]]\nname = \"shop\"\nmatch = {{ key = \"shop\" }}\nto = \"{target}\"\n\
             copy = {{ to = \"{file}\", answers = true }}\n{contract}",
            super::place("dcop", "front", &scratch),
        ));
        let client = Node::new();
        let shop = shop(&client, &broker);
        assert_eq!(shop.count(0x0102_0304).unwrap(), 0x0102_0304);
        // Packets of link type 147: by the number of their interface, in the order of the section.
        let packets = || {
            let capture = fs::read(&file).unwrap_or_default();
            let (mut at, mut links, mut packets) = (0, Vec::new(), Vec::new());
            let word = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().unwrap());
            while at + 12 <= capture.len() && at + word(at + 4) as usize <= capture.len() {
                let (kind, len) = (word(at), word(at + 4) as usize);
                match kind {
                    1 => links.push(u16::from_le_bytes(capture[at + 8..at + 10].try_into().unwrap())),
                    6 => {
                        let octets = word(at + 20) as usize;
                        let comment =
                            String::from_utf8_lossy(&capture[at + 28 + octets..at + len - 4]).into_owned();
                        let link = links[word(at + 8) as usize];
                        packets.push((link, capture[at + 28..at + 28 + octets].to_vec(), comment));
                    }
                    _ => {}
                }
                at += len;
            }
            packets
        };
        until("a call and its answer are written", || packets().len() == 2);
        for ((link, octets, comment), what) in packets().iter().zip(["arguments of", "results of"]) {
            assert_eq!((*link, octets.as_slice()), (147, &[1, 2, 3, 4][..]), "{comment}");
            assert!(comment.contains(&format!("shop: {what}")) && comment.contains("count"), "{comment}");
        }
    }
}

#[test]
fn copies_that_are_only_counted_are_kept_nowhere() {
    let (_backend, _, target) = shop_at("iiop://127.0.0.1:0");
    let broker = broker(&target, "{ count = true, answers = true }", "");
    let client = Node::new();
    shop(&client, &broker).count(5).unwrap();
    until("a call and its answer are counted", || {
        let page = broker.broker.metrics();
        let has = |line: &str| page.lines().any(|held| held == line);
        // A `long` each.
        has("everywire_broker_copies_total{route=\"shop\",to=\"count\"} 2")
            && has("everywire_broker_copied_bytes_total{to=\"count\"} 8")
    });
}

#[test]
fn a_program_reads_copies_from_its_standard_input() {
    let (scratch, (_backend, _, target)) = (Scratch::new(), shop_at("iiop://127.0.0.1:0"));
    let file = scratch.path("heard");
    let broker = broker(&target, &format!("{{ program = \"cat > {file}\" }}"), "");
    let client = Node::new();
    shop(&client, &broker).count(5).unwrap();
    until("it has heard of it", || {
        fs::read_to_string(&file).unwrap_or_default().contains(r#""arguments":{"n":5}"#)
    });
}

#[test]
fn another_route_gets_the_same_calls_and_nobody_hears_its_answers() {
    let (_first, one, a) = shop_at("iiop://127.0.0.1:0");
    let (_second, two, b) = shop_at("net.tcp://127.0.0.1:0?security=none");
    let more = format!(
        "[[route]]\nname = \"shadow\"\nmatch = {{ key = \"shadow\" }}\nto = \"{b}\"\ncontract = \"{}\"\ninterface = \"Shop\"\n",
        contract()
    );
    let broker = broker(&a, "{ route = \"shadow\" }", &more);
    let client = Node::new();
    let shop = shop(&client, &broker);
    shop.set_title("both").unwrap();
    assert_eq!(shop.count(3).unwrap(), 3);
    until("the other one had both calls", || {
        *two.title.lock().unwrap() == "both" && two.counted.lock().unwrap().get(&3) == Some(&1)
    });
    assert_eq!(*one.title.lock().unwrap(), "both");
}

#[test]
fn a_place_that_nobody_reads_costs_copies_and_no_call() {
    let (_backend, store, target) = shop_at("iiop://127.0.0.1:0");
    let broker = broker(&target, "{ program = \"exec sleep 1000\", queue = 4 }", "");
    let client = Node::new();
    let shop = shop(&client, &broker);
    let text = "x".repeat(20_000);
    for _ in 0..50 {
        shop.set_title(&text).unwrap();
    }
    assert_eq!(*store.title.lock().unwrap(), text);
    let page = broker.broker.metrics();
    let lost =
        page.lines().find_map(|line| line.strip_prefix("everywire_broker_copies_lost_total{")).unwrap();
    let lost: u32 = lost.rsplit_once(' ').unwrap().1.parse().unwrap();
    assert!((1..50).contains(&lost), "{page}");
}

#[test]
fn a_call_whose_copy_is_required_and_cannot_be_taken_is_refused() {
    let (_backend, store, target) = shop_at("iiop://127.0.0.1:0");
    let broker = broker(&target, "{ program = \"exec sleep 1000\", queue = 4, required = true }", "");
    let client = Node::new();
    let shop = shop(&client, &broker);
    let text = "x".repeat(20_000);
    // Nobody knows when the program's pipe is full and the queue with it: whoever is refused was not forwarded, whenever that is.
    let (mut refused, mut served) = (0, 0);
    while refused < 300 {
        "before".clone_into(&mut store.title.lock().unwrap());
        match shop.set_title(&text) {
            Ok(()) => served += 1,
            Err(failure) => {
                assert_eq!(failure.kind(), Kind::Busy, "{failure}");
                assert_eq!(*store.title.lock().unwrap(), "before", "nothing was forwarded");
                refused += 1;
            }
        }
        assert!(served < 100, "the pipe has no end");
    }
    // A place that cannot be written to at all, too.
    let broker = self::broker(&target, "{ to = \"/nonexistent/copies.ndjson\", required = true }", "");
    let shop = self::shop(&client, &broker);
    until("it is known to be broken", || shop.noted().is_err());
    // Of a call that is refused no other place has a copy.
    let copies = "[{ count = true }, { to = \"/nonexistent/copies.ndjson\", required = true }]";
    let broker = self::broker(&target, copies, "");
    let shop = self::shop(&client, &broker);
    until("it is known to be broken", || shop.noted().is_err());
    let counted = || broker.metric("copies_total{route=\"shop\",to=\"count\"}");
    let before = counted();
    shop.noted().unwrap_err();
    assert!((counted() - before).abs() < 0.1);
}

#[test]
fn copies_that_a_full_disk_has_no_room_for_are_written_when_it_has() {
    let (scratch, (_backend, store, target)) = (Scratch::new(), shop_at("iiop://127.0.0.1:0"));
    let link = scratch.path("copies.ndjson");
    std::os::unix::fs::symlink("/dev/full", &link).unwrap();
    let broker = broker(&target, &format!("{{ to = \"{link}\", required = true }}"), "");
    let shop = shop(&Node::new(), &broker);
    let mut served = 0;
    until("the disk is full", || {
        let refused = shop.count(served).is_err();
        served += i32::from(!refused);
        refused
    });
    // It is opened again, which is no reason to take a copy.
    let told = |event: &str| broker.log.lock().unwrap().iter().any(|line| line.contains(event));
    until("it was opened again", || told("the place of copies cannot be opened"));
    assert_eq!(shop.count(served).unwrap_err().kind(), Kind::Busy);
    assert_eq!(store.counted.lock().unwrap().len(), usize::try_from(served).unwrap());
    fs::remove_file(&link).unwrap();
    until("there is room", || shop.count(-1).is_ok());
    let lines = || fs::read_to_string(&link).unwrap_or_default().lines().count();
    until("all are written", || lines() == usize::try_from(served).unwrap() + 1);
}
