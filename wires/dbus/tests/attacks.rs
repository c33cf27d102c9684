//! What hostile peers have done to others: each is a test by its name, at the level of the session.
#![allow(clippy::unwrap_used)]

use crate::common::*;
use bytes::Bytes;
use everywire_dbus::{DBUS, limits};
use everywire_model::describe::*;
use everywire_model::{
    Event, Expects, Failure, Handle, Incoming, Kind, Outcome, Profile, SignalFilter, Value, Variant, Wire,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn handle() -> Handle {
    Arc::new(std::fs::File::open("/dev/null").unwrap().into())
}

fn call(side: &mut Side, message: &Message) -> Incoming {
    side.hear(&message.bytes()).unwrap();
    match side.event() {
        Event::Call(incoming) => *incoming,
        other => panic!("{other:?}"),
    }
}

/// The header of a big-endian call, up to its body.
fn big_endian(signature: &str, more: &[u8], body: u32) -> Vec<u8> {
    let mut fields = Vec::new();
    for (code, kind, text) in [(1u8, b'o', "/a"), (3, b's', "M")] {
        fields.extend_from_slice(&[code, 1, kind, 0]);
        fields.extend_from_slice(&u32::try_from(text.len()).unwrap().to_be_bytes());
        fields.extend_from_slice(text.as_bytes());
        fields.push(0);
        fields.resize(fields.len().next_multiple_of(8), 0);
    }
    fields.extend_from_slice(&[8, 1, b'g', 0, u8::try_from(signature.len()).unwrap()]);
    fields.extend_from_slice(signature.as_bytes());
    fields.push(0);
    fields.resize(fields.len().next_multiple_of(8), 0);
    fields.extend_from_slice(more);
    let mut big = b"B\x01\0\x01".to_vec();
    big.extend_from_slice(&body.to_be_bytes());
    big.extend_from_slice(&1u32.to_be_bytes());
    big.extend_from_slice(&u32::try_from(fields.len()).unwrap().to_be_bytes());
    big.extend_from_slice(&fields);
    big.resize(big.len().next_multiple_of(8), 0);
    big
}

fn read_variant(call: &Incoming) -> Result<(Variant,), Failure> {
    let list = record!("", "", { "v": Shape::Variant });
    call.body.decode(&Shape::Struct(Hold::new(list)))
}

/// D1, CVE-2010-4352: variants inside of variants, deeper than any signature tells.
#[test]
fn cve_2010_4352_nested_variants() {
    let mut side = Side::admitted();
    let nested = |depth: usize| {
        let mut body = b"\x01v\0".repeat(depth);
        body.extend_from_slice(b"\x01y\0\x07");
        Message::call("Set").body("v", &body)
    };
    assert!(read_variant(&call(&mut side, &nested(60))).is_ok());
    for depth in [65, 5_000, 100_000] {
        let failure = read_variant(&call(&mut side, &nested(depth))).unwrap_err();
        assert_eq!(failure.kind(), Kind::LimitExceeded, "{failure}");
    }
    // Walked over instead of read: as elements of an array that is counted first.
    let inner = b"\x01v\0".repeat(5_000);
    let mut body = u32::try_from(inner.len() + 4).unwrap().to_le_bytes().to_vec();
    body.extend_from_slice(&inner);
    body.extend_from_slice(b"\x01y\0\x07");
    let call = call(&mut side, &Message::call("Set").body("av", &body));
    let list = record!("", "", { "v": sequence!(Shape::Variant) });
    let failure = call.body.decode::<(Vec<Variant>,)>(&Shape::Struct(Hold::new(list))).unwrap_err();
    assert!(failure.message().contains("deep"), "{failure}");
}

/// D2, CVE-2022-42010: brackets that do not match. In headers the connection ends, in a variant the value is refused.
#[test]
fn cve_2022_42010_bracket_nesting() {
    for signature in ["(ii}", "a{s)v}", "((i)", "a{", "()", "a{vs}", "{sv}"] {
        let mut side = Side::admitted();
        assert_eq!(
            side.refuses(&Message::call("M").body(signature, &[0; 8]).bytes()),
            "Signature",
            "{signature}"
        );
        let mut side = Side::admitted();
        let mut body = vec![u8::try_from(signature.len()).unwrap()];
        body.extend_from_slice(signature.as_bytes());
        body.extend_from_slice(&[0; 24]);
        let failure = read_variant(&call(&mut side, &Message::call("M").body("v", &body))).unwrap_err();
        assert_eq!(failure.kind(), Kind::Malformed);
    }
}

/// D2, CVE-2022-42011: an array whose length is no multiple of its elements.
#[test]
fn cve_2022_42011_array_length() {
    let mut side = Side::admitted();
    let call = call(&mut side, &Message::call("M").body("au", b"\x06\0\0\0\0\0\0\0\0\0"));
    let list = record!("", "", { "a": sequence!(Shape::U32) });
    let failure = call.body.decode::<(Vec<u32>,)>(&Shape::Struct(Hold::new(list))).unwrap_err();
    assert_eq!(failure.kind(), Kind::Malformed);
    for length in [0xffff_ffffu32, 64 << 20, (64 << 20) + 4, 12] {
        let mut body = length.to_le_bytes().to_vec();
        body.extend_from_slice(&[0; 8]);
        let mut side = Side::admitted();
        let call = self::call(&mut side, &Message::call("M").body("au", &body));
        let list = Shape::Struct(Hold::new(record!("", "", { "a": sequence!(Shape::U32) })));
        let failure = call.body.decode::<(Vec<u32>,)>(&list).unwrap_err();
        assert_eq!(failure.kind(), Kind::Malformed, "{length:#x}: {failure}");
    }
}

/// D2, CVE-2022-42012: handles in a message of the other byte order, with indexes out of range.
#[test]
fn cve_2022_42012_foreign_endian_handles() {
    let big = big_endian("h", &[9, 1, b'u', 0, 0, 0, 0, 1], 4);
    let list = Shape::Struct(Hold::new(record!("", "", { "h": Shape::Handle })));
    for (index, fits) in [(0u32, true), (1, false), (0x0100_0000, false)] {
        let mut side = Side::admitted();
        side.handles.push(handle());
        let mut message = big.clone();
        message.extend_from_slice(&index.to_be_bytes());
        side.hear(&message).unwrap();
        let Event::Call(call) = side.event() else { panic!() };
        let failure = call.body.decode::<(Handle,)>(&list).err().map(|failure| failure.kind());
        assert_eq!(failure, (!fits).then_some(Kind::Malformed), "{index}");
    }
}

/// D3, CVE-2011-2200: what came in the other byte order is passed on in this one, with the same values.
#[test]
fn cve_2011_2200_foreign_endian_relay() {
    let mut big = big_endian("su", b"", 12);
    big.extend_from_slice(b"\0\0\0\x02hi\0\0\x01\x02\x03\x04");
    let mut side = Side::admitted();
    side.hear(&big).unwrap();
    let Event::Call(call) = side.event() else { panic!() };
    let list = Shape::Struct(Hold::new(record!("", "", { "s": TEXT, "u": Shape::U32 })));
    let relayed = DBUS.codec().write(&mut |sink| call.body.pipe(&list, sink)).unwrap();
    assert_eq!(relayed.decode::<(String, u32)>(&list).unwrap(), ("hi".into(), 0x0102_0304));
    assert_ne!(relayed.little, call.body.little);
}

/// D4, CVE-2014-3635 and its kin: handles that nobody announced, too many, too few, or before anybody is known.
#[test]
fn cve_2014_3635_handle_counts() {
    let announced = |count| Message::call("M").number(9, count).bytes();
    let with = |count: usize| {
        let mut side = Side::admitted();
        side.handles = (0..count).map(|_| handle()).collect();
        side
    };
    assert_eq!(with(0).refuses(&announced(1)), "Handles");
    assert_eq!(with(2).refuses(&announced(1)), "Handles", "one is left over");
    assert_eq!(with(1).refuses(&Message::call("M").bytes()), "Handles");
    assert_eq!(with(17).refuses(&announced(17)), "TooManyHandles");
    assert_eq!(with(17).refuses(&announced(1)[..20]), "TooManyHandles", "before the message is whole");
    assert_eq!(with(0).refuses(&announced(u32::MAX)), "TooManyHandles");
    assert!(with(16).hear(&announced(16)).is_ok());

    let watched = handle();
    let mut stranger = Side::new(DBUS.accept(&config()));
    stranger.handles.push(Handle::clone(&watched));
    stranger.hear(b"\0AUTH").unwrap();
    assert_eq!((stranger.handles.len(), Arc::strong_count(&watched)), (0, 1), "closed at once");
}

/// D5, CVE-2014-3637: handles that wait for the rest of their message do not wait for long.
#[test]
fn cve_2014_3637_pending_handles() {
    let mut side = Side::admitted();
    side.handles.push(handle());
    let message = Message::call("M").number(9, 1).bytes();
    side.hear(&message[..message.len() - 1]).unwrap();
    let due = side.session.deadline().unwrap();
    assert!(due <= Instant::now() + limits::PENDING_HANDLES);
    assert_eq!(side.session.expire(due).unwrap_err().name, "TooSlow");
}

/// D6, CVE-2014-3638: answers in any order cost the same, and only so many calls are open.
#[test]
fn cve_2014_3638_pending_replies() {
    let (mut client, mut server) = pair();
    let limit = config().limits.outstanding;
    for _ in 0..limit {
        client.call(b"a", "Ping", ());
    }
    let profile = Profile { wire: "dbus", key: Bytes::from_static(b"a"), ..Profile::default() };
    let operation = operation("Ping");
    let one_more = everywire_model::Call {
        profile: &profile,
        method: everywire_model::Method::Typed { interface: None, operation },
        arguments: nothing(),
        expects: Expects::Reply,
    };
    let refused = client.session.start(Instant::now(), &one_more).unwrap_err();
    assert_eq!(refused.kind(), Kind::LimitExceeded);
    // A peer that keeps no limit of its own gets an answer for each call above ours.
    exchange(&mut client, &mut server, usize::MAX);
    for serial in 0..3u32 {
        let message = Message { serial: 90_000 + serial, ..Message::call("M") };
        server.hear(&message.bytes()).unwrap();
    }
    assert_eq!(server.events().len(), limit);
    let said = server.said();
    assert_eq!(said.windows(14).filter(|window| window == b"LimitsExceeded").count(), 3);
}

/// D7, CVE-2014-3639: whoever does not authenticate is gone after five seconds, however busy it looks.
#[test]
fn cve_2014_3639_unauthenticated_peers() {
    let mut side = Side::new(DBUS.accept(&config()));
    side.hear(b"\0").unwrap();
    let due = side.session.deadline().unwrap();
    for _ in 0..4 {
        side.hear(b"AUTH\r\n").unwrap();
    }
    assert_eq!(side.session.deadline(), Some(due), "saying something buys no time");
    assert!(due <= Instant::now() + Duration::from_secs(5));
    assert_eq!(side.session.expire(due).unwrap_err().name, "TooSlow");
    // Nor may it say much.
    let mut side = Side::new(DBUS.accept(&config()));
    side.hear(b"\0").unwrap();
    assert_eq!(side.refuses(&b"AUTH\r\n".repeat(100)), "Authentication");
    let mut side = Side::new(DBUS.accept(&config()));
    assert_eq!(side.refuses(&[b"\0".as_slice(), &[b'A'; 70_000]].concat()), "Authentication");
    // A message instead of a greeting is none.
    let mut side = Side::new(DBUS.accept(&config()));
    assert_eq!(side.refuses(&Message::call("M").bytes()), "Authentication");
    // Only this user and root come in by what the kernel says.
    let mut other = config();
    other.peer.credentials = Some((1, 54321));
    let mut side = Side::new(DBUS.accept(&other));
    side.hear(b"\0AUTH EXTERNAL 3534333231\r\n").unwrap();
    assert!(side.said().starts_with(b"REJECTED"));
}

/// Whoever was called calls back all the time, and reads no answer: they do not pile up without end.
#[test]
fn answers_that_a_called_peer_never_reads_end_the_connection() {
    let calls = Message::call("M").bytes().repeat(1000);
    let mut side = Side::admitted();
    let refused = (0..1000).find_map(|_| side.hear(&calls).err());
    assert_eq!(refused.map(|violation| violation.name), Some("Unread"));
    assert!(side.said().len() < limits::UNREAD + (1 << 20));
    // Whoever reads may go on.
    let mut side = Side::admitted();
    let mut said = 0;
    while said < limits::UNREAD * 2 {
        side.hear(&calls).unwrap();
        said += side.said().len();
    }
}

/// D9, CVE-2019-6454: a path as long as a message.
#[test]
fn cve_2019_6454_long_paths() {
    let path = |elements: usize| "/a".repeat(elements);
    let with = |path: &str| Message::new(1).text(1, 'o', path).text(3, 's', "M").bytes();
    assert!(Side::admitted().hear(&with(&path(2048))).is_ok());
    assert_eq!(Side::admitted().refuses(&with(&path(2049))), "FieldValue");
    assert_eq!(Side::admitted().refuses(&with(&path(1 << 20))), "Fields");
    let mut body = u32::try_from(path(3000).len()).unwrap().to_le_bytes().to_vec();
    body.extend_from_slice(path(3000).as_bytes());
    body.push(0);
    let mut side = Side::admitted();
    let call = call(&mut side, &Message::call("M").body("o", &body));
    let list = Shape::Struct(Hold::new(record!("", "", { "o": text(TextKind::Path, None) })));
    assert_eq!(call.body.decode::<(String,)>(&list).unwrap_err().kind(), Kind::Malformed);
}

/// D10, CVE-2024-34397: a signal counts only from the connection that owns the name, as the bus says.
#[test]
fn cve_2024_34397_signal_spoofing() {
    let mut on_bus = config();
    on_bus.profile.components = vec![(everywire_dbus::TAG_BUS, Bytes::from_static(b"session"))];
    let mut side = Side::new(DBUS.connect(&on_bus));
    assert!(side.said().windows(5).any(|window| window == b"Hello"), "the bus is greeted at once");
    let string = |text: &str| {
        let mut body = u32::try_from(text.len()).unwrap().to_le_bytes().to_vec();
        body.extend_from_slice(text.as_bytes());
        body.push(0);
        body
    };
    let bus = "org.freedesktop.DBus";
    let reply = |serial| Message::new(2).number(5, serial).text(7, 's', bus);
    side.hear(b"OK 0123456789abcdef0123456789abcdef\r\nAGREE_UNIX_FD\r\n").unwrap();
    side.hear(&reply(1).body("s", &string(":1.9")).bytes()).unwrap();
    assert!(matches!(side.event(), Event::Ready(_)));

    let mut profile = Profile { wire: "dbus", key: Bytes::from_static(b"a"), ..Profile::default() };
    profile.components.push((everywire_dbus::TAG_NAME, Bytes::from_static(b"org.example.Name")));
    let filter = SignalFilter { interface: Some(&EXAMPLE), signal: Some(&SIGNALS[0]) };
    let id = side.session.subscribe(Instant::now(), &profile, filter).unwrap();
    let asked = side.said();
    for word in ["sender='org.example.Name'", "arg0='org.example.Name'", "GetNameOwner"] {
        assert!(asked.windows(word.len()).any(|window| window == word.as_bytes()), "{word}");
    }
    let signal = |sender: &str| {
        let fields =
            Message::new(4).text(1, 'o', "/a").text(2, 's', "org.example.Example").text(3, 's', "Changed");
        fields.text(7, 's', sender).body("s", &string("new")).bytes()
    };
    side.hear(&signal(":1.5")).unwrap();
    assert!(side.events().is_empty(), "the owner is not known yet");
    side.hear(&reply(2).bytes()).unwrap();
    side.hear(&reply(3).bytes()).unwrap();
    side.hear(&reply(4).body("s", &string(":1.5")).bytes()).unwrap();
    assert!(matches!(side.event(), Event::Reply { id: back, outcome: Outcome::Done(_) } if back == id));
    let hears = |side: &mut Side, sender: &str| {
        side.hear(&signal(sender)).unwrap();
        side.events().iter().any(|event| matches!(event, Event::Signal { .. }))
    };
    assert!(hears(&mut side, ":1.5"));
    assert!(!hears(&mut side, ":1.6"), "another connection's signal");
    assert!(!hears(&mut side, "org.example.Name"), "no sender is stamped so");

    let changed = |sender: &str, old: &str, new: &str| {
        let mut body = string("org.example.Name");
        for text in [old, new] {
            body.resize(body.len().next_multiple_of(4), 0);
            body.extend_from_slice(&string(text));
        }
        let fields = Message::new(4).text(1, 'o', "/org/freedesktop/DBus").text(2, 's', bus);
        fields.text(3, 's', "NameOwnerChanged").text(7, 's', sender).body("sss", &body).bytes()
    };
    side.hear(&changed(":1.6", ":1.5", ":1.6")).unwrap();
    assert!(side.events().is_empty());
    assert!(!hears(&mut side, ":1.6"), "only the bus tells who owns a name");
    side.hear(&changed(bus, ":1.5", "")).unwrap();
    assert!(matches!(side.event(), Event::Lost { subscription, .. } if subscription == id));
    assert!(!hears(&mut side, ":1.5"), "whoever left");
    side.hear(&changed(bus, "", ":1.7")).unwrap();
    assert!(hears(&mut side, ":1.7"), "whoever came back");
}

/// Every rule of the header has its name.
#[test]
fn broken_headers_are_named() {
    let good = Message::call("M").bytes();
    let patched = |at: usize, octet: u8| {
        let mut bytes = good.clone();
        bytes[at] = octet;
        bytes
    };
    let path = || Message::new(1).text(1, 'o', "/a");
    for (bytes, name) in [
        (patched(0, b'x'), "NotDbus"),
        (patched(1, 0), "Kind"),
        (patched(3, 2), "Version"),
        (patched(8, 0), "ZeroSerial"),
        (patched(15, 1), "Fields"),
        (patched(7, 0x7f), "OverLimit"),
        (patched(31, 1), "Padding"),
        (path().bytes(), "Missing"),
        (Message::new(1).text(3, 's', "M").bytes(), "Missing"),
        (Message::new(2).bytes(), "Missing"),
        (Message::new(3).number(5, 1).bytes(), "Missing"),
        (Message::new(4).text(1, 'o', "/a").text(3, 's', "M").bytes(), "Missing"),
        (Message::call("M").text(3, 's', "M").bytes(), "FieldTwice"),
        (path().text(3, 'o', "/M").bytes(), "FieldType"),
        (Message::call("1M").bytes(), "FieldValue"),
        (Message::call("M").text(2, 's', "nodots").bytes(), "FieldValue"),
        (Message::new(2).number(5, 0).bytes(), "FieldValue"),
        (Message::new(1).text(1, 'o', "/org/freedesktop/DBus/Local").text(3, 's', "M").bytes(), "Reserved"),
        (Message::call("M").raw(&[0, 1, b'y', 0, 7]).bytes(), "Header"),
        (Message { body: vec![0; 4], ..Message::call("M") }.bytes(), "NoSignature"),
    ] {
        assert_eq!(Side::admitted().refuses(&bytes), name, "{}", bytes.escape_ascii());
    }
    // What is unknown is passed over.
    let mut side = Side::admitted();
    side.hear(
        &Message::call("M").text(99, 's', "x").raw(&[77, 2, b'a', b'y', 0, 0, 0, 0, 1, 0, 0, 0, 5]).bytes(),
    )
    .unwrap();
    assert!(matches!(side.event(), Event::Call(_)));
    side.hear(&Message::new(9).bytes()).unwrap();
    assert!(side.events().is_empty());
}

/// The value tree of a hostile message costs what the budget says.
#[test]
fn many_small_elements_are_charged() {
    let len = (16u32 << 20) - 3;
    let mut body = len.to_le_bytes().to_vec();
    body.resize(4 + len as usize, 0);
    let mut config = config();
    config.limits = config.limits.with_message(32 << 20);
    let mut large = Side::new(DBUS.admitted(&config));
    drop(large.events());
    // Two million empty strings of four bytes and a NUL, padded to eight.
    let call = call(&mut large, &Message::call("M").body("as", &body));
    let mut body = call.body.clone();
    body.budget = everywire_model::Budget::default();
    let list = Shape::Struct(Hold::new(record!("", "", { "a": sequence!(TEXT) })));
    let failure = body.read(|source| Value::decode(&list, source)).unwrap_err();
    assert_eq!(failure.kind(), Kind::LimitExceeded, "{failure}");
}
