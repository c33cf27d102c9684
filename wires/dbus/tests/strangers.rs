//! What others on a bus can send, and what a bus says late: none of it ends the connection, or counts as what it is not.
#![allow(clippy::unwrap_used)]

use crate::common::*;
use bytes::Bytes;
use everywire_dbus::{DBUS, TAG_NAME, limits};
use everywire_model::describe::*;
use everywire_model::{
    Answer, Call, CallId, Config, Endpoint, Event, Expects, Failure, Handle, Kind, MarshalList, Method,
    Outcome, Profile, Purpose, SignalFilter, Sink, Wire,
};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

fn handle() -> Handle {
    Arc::new(std::fs::File::open("/dev/null").unwrap().into())
}

fn ready() -> Side {
    let mut side = on_bus(&bus_config());
    assert!(matches!(side.event(), Event::Ready(_)));
    side
}

fn of(name: &str) -> Profile {
    let key = Bytes::from_static(b"a");
    Profile {
        wire: "dbus",
        key,
        components: vec![(TAG_NAME, Bytes::copy_from_slice(name.as_bytes()))],
        ..Profile::default()
    }
}

fn ping(side: &mut Side, name: &'static str) -> CallId {
    let profile = of(name);
    let (operation, arguments) = (operation("Ping"), nothing());
    let call = Call {
        profile: &profile,
        method: Method::Typed { interface: None, operation },
        arguments,
        expects: Expects::Reply,
    };
    side.session.start(Instant::now(), &call).unwrap()
}

fn failure(event: Event) -> Failure {
    match event {
        Event::Reply { outcome: Outcome::Failed(failure), .. } => failure,
        other => panic!("{other:?}"),
    }
}

/// An answer counts only from whom was asked, and an error from the bus as well.
#[test]
fn answers_of_others_are_passed_over() {
    let mut side = ready();
    for (asked, right, wrong) in
        [(":1.5", ":1.5", &[":1.6", BUS][..]), ("org.example.Name", ":1.7", &[BUS]), (BUS, BUS, &[":1.6"])]
    {
        let id = ping(&mut side, asked);
        let serial = u32::try_from(id.0).unwrap();
        for sender in wrong {
            side.hear(&reply(serial).text(7, 's', sender).bytes()).unwrap();
        }
        side.hear(&reply(serial).bytes()).unwrap();
        assert!(side.events().is_empty(), "{asked}");
        side.hear(&reply(serial).text(7, 's', right).bytes()).unwrap();
        assert!(matches!(side.event(), Event::Reply { id: back, outcome: Outcome::Done(_) } if back == id));
    }
    let id = ping(&mut side, ":1.5");
    let gone = error(u32::try_from(id.0).unwrap(), "org.freedesktop.DBus.Error.NoReply");
    side.hear(&gone.text(7, 's', BUS).bytes()).unwrap();
    assert_eq!(failure(side.event()).kind(), Kind::TimedOut);
}

/// A greeting is the bus's only: whoever guesses the number of `Hello` lets nobody in.
#[test]
fn only_the_bus_greets() {
    let mut side = before_hello(&bus_config());
    side.hear(&reply(1).text(7, 's', ":1.6").body("s", &string(":1.9")).bytes()).unwrap();
    assert!(side.events().is_empty());
    side.hear(&reply(1).text(7, 's', BUS).body("s", &string(":1.9")).bytes()).unwrap();
    assert!(matches!(side.event(), Event::Ready(_)));
}

/// A bus that has started this program for a call delivers it before it says that the name is ours: such calls wait, in their order and
/// together no larger than one message, and begin when this side is ready.
#[test]
fn calls_before_joining_wait() {
    let mut config = Config { purpose: Purpose::Serving, ..bus_config() };
    config.profile.components.push((TAG_NAME, Bytes::from_static(b"org.example.Name")));
    config.limits.message = 4096;
    let mut side = on_bus(&config);
    side.said();
    let call = |name: &str| Message::call(name).text(7, 's', ":1.6");
    side.hear(&call("First").bytes()).unwrap();
    side.hear(&Message { flags: 1, ..call("Oneway") }.bytes()).unwrap();
    let text = string(&"x".repeat(3000));
    side.hear(&call("Large").body("s", &text).bytes()).unwrap();
    assert!(side.events().is_empty() && side.said().is_empty());
    side.hear(&call("TooMuch").body("s", &text).bytes()).unwrap();
    let said = side.said();
    assert!(says(&said, "System.Error.EBUSY") && says(&said, ":1.6"));
    side.hear(&reply(2).text(7, 's', BUS).body("u", &[1, 0, 0, 0]).bytes()).unwrap();
    let mut events = side.events().into_iter();
    assert!(matches!(events.next(), Some(Event::Ready(_))));
    for expected in ["First", "Oneway", "Large"] {
        let Some(Event::Call(call)) = events.next() else { panic!("no {expected}") };
        assert_eq!(call.operation, expected);
    }
    assert!(events.next().is_none());
    side.hear(&call("Later").bytes()).unwrap();
    assert!(matches!(side.event(), Event::Call(_)));
}

/// CVE-2019-6454 for a client of a bus: what the bus lets through and this side does not take costs its sender the answer,
/// and nobody the connection.
#[test]
fn messages_over_our_limits_leave_the_bus_connected() {
    let mut small = bus_config();
    small.limits = small.limits.with_message(64 << 10);
    let mut side = on_bus(&small);
    side.events();
    let from = |message: Message| message.text(7, 's', ":1.6");
    let long_path = Message::new(1).text(1, 'o', &"/a".repeat(2049)).text(3, 's', "M");
    let huge_path = Message::new(1).text(1, 'o', &"/a".repeat(20 << 10)).text(3, 's', "M");
    let large = Message { body: vec![0; 2 << 20], ..Message::call("M").body("ay", b"") };
    for (message, passed, answered) in [
        (long_path, 0, true),
        (from(Message::call("M")).number(9, 17), 17, true),
        // Whoever sent it is in the fields, which are not looked at.
        (huge_path.number(9, 2), 2, false),
        (large.number(9, 1), 1, true),
    ] {
        let (bytes, kept) = (from_once(message).bytes(), handle());
        side.handles = (0..passed).map(|_| handle()).collect();
        side.handles.push(Handle::clone(&kept));
        let next = Message::call("Next").text(7, 's', ":1.6").number(9, 1).body("h", &[0; 4]);
        side.hear(&[bytes, next.bytes()].concat()).unwrap();
        let said = side.said();
        assert_eq!(says(&said, "LimitsExceeded") && says(&said, ":1.6"), answered);
        let Event::Call(call) = side.event() else { panic!() };
        assert_eq!(call.operation, "Next");
        let handles = call.body.handles().to_vec();
        assert!(Arc::ptr_eq(&handles[0], &kept), "each message has its own handles");
    }
    // Without a bus the peer itself is to blame.
    let mut peer = Side::admitted();
    assert_eq!(
        peer.refuses(&Message::new(1).text(1, 'o', &"/a".repeat(2049)).text(3, 's', "M").bytes()),
        "FieldValue"
    );
}

/// With a sender, unless it has one.
fn from_once(message: Message) -> Message {
    if says(&message.fields, ":1.6") { message } else { message.text(7, 's', ":1.6") }
}

/// The reply that a call waits for may be over the limits as well.
#[test]
fn replies_over_our_limits_fail_their_call() {
    let mut side = ready();
    let id = ping(&mut side, ":1.5");
    side.handles = (0..17).map(|_| handle()).collect();
    let many = reply(u32::try_from(id.0).unwrap()).text(7, 's', ":1.5").number(9, 17);
    side.hear(&many.bytes()).unwrap();
    assert_eq!(failure(side.event()).kind(), Kind::LimitExceeded);
    assert_eq!(side.session.outstanding(), 0);
}

/// Handles that come while a message is thrown away are nobody's.
#[test]
fn handles_do_not_pile_up_while_bytes_are_thrown_away() {
    let mut small = config();
    small.limits = small.limits.with_message(64 << 10);
    let mut side = Side::new(DBUS.admitted(&small));
    side.events();
    let large = Message { body: vec![0; 128 << 10], ..Message::call("M").body("ay", b"") }.bytes();
    side.hear(&large[..1000]).unwrap();
    side.handles.push(handle());
    assert_eq!(side.refuses(&large[1000..2000]), "Handles");
}

/// What comes in one piece with the end of the greeting belongs to the first message behind it.
#[test]
fn handles_with_the_last_word_of_the_greeting_arrive() {
    let mut side = Side::new(DBUS.accept(&config()));
    let uid: String =
        everywire_auth::own_uid().to_string().bytes().map(|digit| format!("{digit:02x}")).collect();
    side.hear(format!("\0AUTH EXTERNAL {uid}\r\nNEGOTIATE_UNIX_FD\r\n").as_bytes()).unwrap();
    side.handles.push(handle());
    let call = Message::call("M").number(9, 1).body("h", &[0; 4]).bytes();
    side.hear(&[b"BEGIN\r\n".as_slice(), &call].concat()).unwrap();
    assert!(
        matches!(&side.events()[..], [Event::Ready(_), Event::Call(call)] if !call.body.handles().is_empty())
    );
}

/// A monitor goes on behind a message that it has no room for.
#[test]
fn a_monitor_outlives_large_messages() {
    let mut config = Config { purpose: Purpose::Monitoring, ..bus_config() };
    config.limits = config.limits.with_message(64 << 10);
    let mut side = on_bus(&config);
    side.hear(&reply(2).text(7, 's', BUS).bytes()).unwrap();
    assert!(matches!(side.event(), Event::Ready(_)));
    let large = Message { body: vec![0; 3 << 20], ..Message::call("M").body("ay", b"") };
    side.handles.push(handle());
    side.hear(&[large.bytes(), Message::call("M").bytes()].concat()).unwrap();
    assert!(matches!(side.event(), Event::Overheard(_)));
    assert!(side.handles.is_empty());
}

/// Without a bus nobody vouches for a sender.
#[test]
fn a_peer_cannot_name_itself() {
    let mut side = Side::admitted();
    side.hear(&Message::call("M").text(7, 's', BUS).bytes()).unwrap();
    assert!(matches!(side.event(), Event::Call(call) if call.sender.is_empty()));
    let profile = Profile { wire: "dbus", ..Profile::default() };
    let filter = SignalFilter::default();
    side.session.subscribe(Instant::now(), &profile, filter).unwrap();
    side.events();
    let signal =
        Message::new(4).text(1, 'o', "/a").text(2, 's', "a.B").text(3, 's', "C").text(7, 's', ":1.1");
    side.hear(&signal.bytes()).unwrap();
    assert!(matches!(side.event(), Event::Signal { heard, .. } if heard.sender.is_empty()));
}

fn subscribe(side: &mut Side, profile: &Profile) -> CallId {
    let filter = SignalFilter { interface: Some(&EXAMPLE), signal: Some(&SIGNALS[0]) };
    side.session.subscribe(Instant::now(), profile, filter).unwrap()
}

/// An answer to a rule that was given up says nothing of the same rule asked for later.
#[test]
fn late_answers_count_for_their_own_subscription() {
    let mut side = ready();
    let first = subscribe(&mut side, &of("org.example.Name"));
    side.session.unsubscribe(first);
    let second = subscribe(&mut side, &of("org.example.Name"));
    // Numbers 2 to 4 asked for the first, two took its rules back, 7 to 9 ask for the second.
    for serial in 2..=3 {
        side.hear(&error(serial, "org.freedesktop.DBus.Error.LimitsExceeded").text(7, 's', BUS).bytes())
            .unwrap();
    }
    side.hear(&reply(4).text(7, 's', BUS).body("s", &string(":1.5")).bytes()).unwrap();
    assert!(side.events().is_empty());
    for serial in 7..=8 {
        side.hear(&reply(serial).text(7, 's', BUS).bytes()).unwrap();
    }
    assert!(side.events().is_empty());
    side.hear(&error(9, "org.freedesktop.DBus.Error.NameHasNoOwner").text(7, 's', BUS).bytes()).unwrap();
    assert!(matches!(side.event(), Event::Reply { id, outcome: Outcome::Done(_) } if id == second));
}

/// Without the owner of a name nothing could be told from what others send: then there is no subscription.
#[test]
fn a_subscription_needs_to_know_the_owner() {
    let mut side = ready();
    let id = subscribe(&mut side, &of("org.example.Name"));
    for serial in 2..=3 {
        side.hear(&reply(serial).text(7, 's', BUS).bytes()).unwrap();
    }
    side.hear(&error(4, "org.freedesktop.DBus.Error.AccessDenied").text(7, 's', BUS).bytes()).unwrap();
    match side.event() {
        Event::Reply { id: back, outcome: Outcome::Failed(failure) } => {
            assert_eq!((back, failure.kind()), (id, Kind::Refused));
        }
        other => panic!("{other:?}"),
    }
    assert!(says(&side.said(), "RemoveMatch"), "its rules are taken back");
}

/// How often the bytes have this word.
fn count(said: &[u8], word: &str) -> usize {
    said.windows(word.len()).filter(|held| *held == word.as_bytes()).count()
}

/// The bus takes each rule of the subscription that was just asked for, and tells the owner where it is asked.
fn grant(side: &mut Side, first: u32, owner: Option<&str>) {
    for serial in first..=first + u32::from(owner.is_some()) {
        side.hear(&reply(serial).text(7, 's', BUS).bytes()).unwrap();
    }
    if let Some(owner) = owner {
        side.hear(&reply(first + 2).text(7, 's', BUS).body("s", &string(owner)).bytes()).unwrap();
    }
    assert!(matches!(side.event(), Event::Reply { outcome: Outcome::Done(_), .. }));
}

/// Whoever subscribes and unsubscribes in turn asks the bus for the rule alone; whose signals count is kept up to date.
#[test]
fn a_name_stays_watched_after_its_last_subscription() {
    let mut side = ready();
    side.said();
    let first = subscribe(&mut side, &of("org.example.Name"));
    let said = side.said();
    assert_eq!((count(&said, "AddMatch"), count(&said, "GetNameOwner")), (2, 1));
    grant(&mut side, 2, Some(":1.5"));
    side.session.unsubscribe(first);
    assert_eq!(count(&side.said(), "RemoveMatch"), 1);

    // While nobody listens, the name goes to somebody else.
    let moved = [string("org.example.Name"), string(":1.5"), string(":1.6")];
    let moved = moved.iter().fold(Vec::new(), |mut body: Vec<u8>, text| {
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend_from_slice(text);
        body
    });
    let news = Message::new(4).text(1, 'o', "/org/freedesktop/DBus").text(2, 's', BUS);
    side.hear(&news.text(3, 's', "NameOwnerChanged").text(7, 's', BUS).body("sss", &moved).bytes()).unwrap();
    side.events();

    subscribe(&mut side, &of("org.example.Name"));
    let said = side.said();
    assert_eq!((count(&said, "AddMatch"), count(&said, "GetNameOwner")), (1, 0));
    grant(&mut side, 6, None);
    for (sender, counts) in [(":1.5", false), (":1.6", true)] {
        let signal =
            Message::new(4).text(1, 'o', "/a").text(2, 's', &EXAMPLE.id).text(3, 's', &SIGNALS[0].name);
        side.hear(&signal.text(7, 's', sender).bytes()).unwrap();
        let heard = side
            .events()
            .into_iter()
            .any(|event| matches!(event, Event::Signal { subscriptions, .. } if !subscriptions.is_empty()));
        assert_eq!(heard, counts, "{sender}");
    }
}

/// Names that nobody listens to are no hoard.
#[test]
fn only_some_names_stay_watched() {
    let mut side = ready();
    side.said();
    let mut serial = 2;
    let (mut added, mut removed) = (0, 0);
    for number in 0..100 {
        let id = subscribe(&mut side, &of(&format!("org.example.Name{number}")));
        grant(&mut side, serial, Some(":1.5"));
        side.session.unsubscribe(id);
        let said = side.said();
        added += count(&said, "AddMatch");
        removed += count(&said, "RemoveMatch");
        serial += u32::try_from(3 + count(&said, "RemoveMatch")).unwrap();
    }
    assert_eq!((added, added - removed), (200, 16));
}

/// A name that is none could add to a match rule.
#[test]
fn rules_are_made_of_names_only() {
    let mut side = ready();
    static SLY: [Signal; 1] = [signal!("x',eavesdrop='true", {})];
    let profile = of(":1.5");
    let filter = SignalFilter { interface: Some(&EXAMPLE), signal: Some(&SLY[0]) };
    let refused = side.session.subscribe(Instant::now(), &profile, filter).unwrap_err();
    assert_eq!(refused.kind(), Kind::BadArgument);
    assert!(!says(&side.said(), "eavesdrop"));
}

/// The header of an answer is written anew for another caller, and for other results.
#[test]
fn answers_reach_their_own_caller() {
    let mut side = ready();
    side.said();
    let answer = |side: &mut Side, serial: u32, sender: &str, name: &str| {
        side.hear(&Message { serial, ..Message::call(name).text(7, 's', sender) }.bytes()).unwrap();
        let Event::Call(call) = side.event() else { panic!() };
        let list = &operation(name).results;
        match name {
            "Echo" => side
                .session
                .answer(call.id, Answer::Done(&|sink: &mut dyn Sink| ("x",).marshal_list(list, sink))),
            _ => {
                side.session.answer(call.id, Answer::Done(&|sink: &mut dyn Sink| ().marshal_list(list, sink)))
            }
        }
        .unwrap();
        side.said()
    };
    for (serial, sender, name) in [
        (5, ":1.1", "Echo"),
        (6, ":1.1", "Echo"),
        (7, ":1.2", "Echo"),
        (8, ":1.2", "Ping"),
        (9, ":1.22", "Echo"),
        (10, ":1.22", "Echo"),
    ] {
        let said = answer(&mut side, serial, sender, name);
        let fields_len = u32::from_le_bytes(said[12..16].try_into().unwrap()) as usize;
        let fields = &said[16..16 + fields_len];
        assert_eq!(fields[..8], [5, 1, b'u', 0, u8::try_from(serial).unwrap(), 0, 0, 0]);
        assert!(says(fields, &format!("{sender}\0")));
        let signed = fields.ends_with(&[8, 1, b'g', 0, 1, b's', 0]);
        assert_eq!(
            (signed, said.len() > 16 + fields_len.next_multiple_of(8)),
            (name == "Echo", name == "Echo")
        );
    }
}

/// An interface may have a name for this wire beside its own: it is called by it, calls, signals and is described by it.
#[test]
fn given_names_hold_everywhere() {
    let given = Interface {
        identities: Cow::Owned(vec![("dbus".into(), "org.given.Name".into())]),
        kind: everywire_model::InterfaceKind::Plain,
        ..EXAMPLE.clone()
    };
    let other = Interface {
        identities: Cow::Owned(vec![("dbus".into(), "org.other.Name".into())]),
        kind: everywire_model::InterfaceKind::Plain,
        ..EXAMPLE.clone()
    };
    let (mut client, mut server) = pair();
    let profile = Profile { wire: "dbus", key: Bytes::from_static(b"a"), ..Profile::default() };
    for (interface, name) in [
        (&other, "org.other.Name"),
        (&given, "org.given.Name"),
        (&EXAMPLE, "org.example.Example"),
        (&given, "org.given.Name"),
        (&EXAMPLE, "org.example.Example"),
    ] {
        let (operation, arguments) = (operation("Ping"), nothing());
        let call = Call {
            profile: &profile,
            method: Method::Typed { interface: Some(interface), operation },
            arguments,
            expects: Expects::Reply,
        };
        client.session.start(Instant::now(), &call).unwrap();
        exchange(&mut client, &mut server, usize::MAX);
        let Event::Call(call) = server.event() else { panic!() };
        assert_eq!(call.interface, name);
        assert_eq!(DBUS.operation(interface, &call), Some(1));
        assert_eq!(DBUS.operation(if name == "org.given.Name" { &EXAMPLE } else { &given }, &call), None);
    }
    let filter = SignalFilter { interface: Some(&given), signal: Some(&SIGNALS[0]) };
    client.session.subscribe(Instant::now(), &profile, filter).unwrap();
    client.events();
    let arguments = |sink: &mut dyn Sink| ("new",).marshal_list(&SIGNALS[0].fields, sink);
    for (interface, heard) in [(&EXAMPLE, false), (&given, true)] {
        let signal = everywire_model::Emission {
            key: b"a",
            topic: everywire_model::Topic::Typed { interface, signal: &SIGNALS[0] },
            arguments: &arguments,
        };
        server.session.emit(Instant::now(), &signal).unwrap();
        exchange(&mut server, &mut client, usize::MAX);
        assert_eq!(client.events().len(), usize::from(heard));
    }
}

/// What a connection takes without being told otherwise depends on where the peer is.
#[test]
fn usual_limits_are_smaller_over_a_network() {
    let takes = |tcp: bool, limit: Option<u64>, size: u32| {
        let mut config = config();
        if tcp {
            config.peer.credentials = None;
            config.profile.endpoints = vec![Endpoint::Tcp { host: "h".into(), port: 1 }];
        }
        config.limits = DBUS.default_limits();
        if let Some(limit) = limit {
            config.limits = config.limits.with_message(limit);
        }
        let mut side = Side::new(DBUS.admitted(&config));
        side.events();
        let mut header = Message::call("M").body("ay", b"").bytes();
        header[4..8].copy_from_slice(&size.to_le_bytes());
        side.hear(&header).is_ok() && !says(&side.said(), "LimitsExceeded")
    };
    assert!(takes(false, None, 32 << 20) && !takes(false, None, 34 << 20));
    assert!(takes(true, None, 3 << 20) && !takes(true, None, 5 << 20));
    assert!(takes(true, Some(80 << 20), 64 << 20) && takes(false, Some(80 << 20), 64 << 20));
    // The specification's own limit holds whatever a user says.
    assert!(!takes(false, Some(1 << 30), u32::try_from(limits::MESSAGE).unwrap() - 8));
}

fn connecting(text: &str, endpoint: usize) -> Side {
    let mut profile = DBUS.parse(text).unwrap().profiles.remove(0);
    // Whoever connects tries one endpoint after the other.
    profile.endpoints = vec![profile.endpoints.remove(endpoint)];
    Side::new(DBUS.connect(&Config { profile, ..Config::default() }))
}

/// It goes with what is in it, however the test ends.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Each address of a list has its own nonce and its own identity.
#[test]
fn each_address_has_its_own_nonce_and_identity() {
    let folder = Folder(std::env::temp_dir().join(format!("everywire-strangers-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let file = |name: &str| folder.0.join(name).display().to_string();
    std::fs::write(file("one"), [b'1'; 16]).unwrap();
    std::fs::write(file("two"), [b'2'; 16]).unwrap();
    let (guid, other) = ("00000000000000000000000000000001", "00000000000000000000000000000002");
    let list = format!(
        "dbus:nonce-tcp:host=h,port=1,noncefile={};nonce-tcp:host=h,port=2,noncefile={};tcp:host=h,port=3,guid={guid};\
         unix:path=/s,guid={other};nonce-tcp:host=h,port=4,noncefile={}#/a",
        file("one"),
        file("two"),
        file("none"),
    );
    assert!(connecting(&list, 0).said().starts_with(&[b'1'; 16]));
    assert!(connecting(&list, 1).said().starts_with(&[b'2'; 16]));
    assert!(connecting(&list, 2).said().starts_with(b"\0AUTH"));
    let mut unix = connecting(&list, 3);
    assert_eq!(unix.refuses(format!("OK {guid}\r\n").as_bytes()), "Authentication");
    connecting(&list, 3).hear(format!("OK {other}\r\n").as_bytes()).unwrap();
    // The server waits for a nonce that cannot be sent: nobody waits for the server.
    let mut without = connecting(&list, 4);
    assert!(without.said().is_empty());
    let due = without.session.deadline().unwrap();
    assert!(due <= Instant::now());
    let violation = without.session.expire(due).unwrap_err();
    assert!(violation.message.contains("nonce file") && violation.message.contains("none"), "{violation:?}");
}

/// The bus says that a name has another owner, or none.
fn moves(side: &mut Side, name: &str, old: &str, new: &str) {
    let mut body = Vec::new();
    for text in [name, old, new] {
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(string(text));
    }
    let news = Message::new(4).text(1, 'o', "/org/freedesktop/DBus").text(2, 's', BUS);
    side.hear(&news.text(3, 's', "NameOwnerChanged").text(7, 's', BUS).body("sss", &body).bytes()).unwrap();
}

/// Where a name is listened to, its owner is known, and nobody else can answer calls to it: a bus may let pass answers that nobody asked
/// for. While the name moves, whoever had it since the call left may answer.
#[test]
fn answers_to_a_name_that_is_listened_to_come_from_its_owner() {
    const NAME: &str = "org.example.Name";
    let mut side = ready();
    subscribe(&mut side, &of(NAME));
    grant(&mut side, 2, Some(":1.5"));
    let call = |side: &mut Side| u32::try_from(ping(side, NAME).0).unwrap();
    let answers = |side: &mut Side, serial: u32, sender: &str| {
        side.hear(&reply(serial).text(7, 's', sender).bytes()).unwrap();
        side.events().iter().any(|event| matches!(event, Event::Reply { outcome: Outcome::Done(_), .. }))
    };
    let serial = call(&mut side);
    assert!(!answers(&mut side, serial, ":1.6"), "it was not asked");
    assert!(answers(&mut side, serial, ":1.5"));
    // The old owner may have had the call, or the new one.
    for sender in [":1.5", ":1.7"] {
        let serial = call(&mut side);
        moves(&mut side, NAME, ":1.5", ":1.7");
        assert!(answers(&mut side, serial, sender));
        moves(&mut side, NAME, ":1.7", ":1.5");
    }
    let serial = call(&mut side);
    assert!(!answers(&mut side, serial, ":1.7") && answers(&mut side, serial, ":1.5"));
    // A service that starts for the call has the name before it answers.
    moves(&mut side, NAME, ":1.5", "");
    side.events();
    let serial = call(&mut side);
    moves(&mut side, NAME, "", ":1.8");
    assert!(answers(&mut side, serial, ":1.8"));
    // An error may come from the bus whoever has the name.
    let serial = call(&mut side);
    side.hear(&error(serial, "org.freedesktop.DBus.Error.NoReply").text(7, 's', BUS).bytes()).unwrap();
    assert_eq!(failure(side.event()).kind(), Kind::TimedOut);
}
