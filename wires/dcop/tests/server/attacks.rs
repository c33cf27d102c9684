//! Clients that mean no good, by the numbers of the list of attacks (C1 to C6).

use crate::server::net::{COOKIE, KEY, Net, arguments, call, frame, keyed_reply, reply, send, text};
use bytes::BytesMut;
use everywire_dcop::ice::{Initiator, minor};
use everywire_dcop::server::Settings;
use everywire_model::{Hub, PeerId};
use std::time::Duration;

#[test]
fn c1_silence_in_the_handshake_stops_nobody_and_ends_after_five_seconds() {
    let mut net = Net::new();
    let silent = net.connect();
    let slow = net.connect();
    let (a, b) = (net.application("a"), net.application("b"));
    for step in 0..9 {
        net.pass(Duration::from_millis(500));
        net.feed(slow, &[[0, 1, 0, 0, 0, 0, 0, 0, 0][step]]);
        assert!(net.works((a, "a"), (b, "b")));
    }
    assert!(net.closed.is_empty());
    net.pass(Duration::from_millis(600));
    assert!(net.closed.contains_key(&silent) && net.closed.contains_key(&slow));
    assert!(net.works((a, "a"), (b, "b")));
    net.pass(Duration::from_secs(100));
    assert_eq!(net.closed.len(), 2, "who is through stays");
}

#[test]
fn c1_many_half_open_connections_keep_nobody_out() {
    let mut net = Net::with(Settings { half_open: 8, ..Settings::default() });
    let silent: Vec<u64> = (0..1000).map(|_| net.connect()).collect();
    assert_eq!(net.closed.len(), 1000 - 8, "the oldest go");
    assert!(!net.closed.contains_key(silent.last().unwrap()));
    net.application("a");
}

fn try_cookie(net: &mut Net, cookie: Option<Vec<u8>>) -> u64 {
    let id = net.connect();
    let mut initiator = Initiator::new(cookie);
    let (mut out, mut input) = (Vec::new(), BytesMut::new());
    initiator.greet(&mut out);
    for _ in 0..6 {
        net.feed(id, &std::mem::take(&mut out));
        input.extend_from_slice(&net.take(id));
        if let Err(violation) = initiator.receive(&mut input, &mut out) {
            assert_eq!(violation.name, "Refused");
            assert!(violation.message.contains("AuthenticationRejected"), "{violation}");
            return id;
        }
    }
    panic!("it was let in");
}

#[test]
fn c2_a_wrong_cookie_is_rejected_wherever_it_differs() {
    let mut net = Net::new();
    for at in 0..16 {
        let mut cookie = COOKIE.to_vec();
        cookie[at] ^= 1;
        let id = try_cookie(&mut net, Some(cookie));
        assert_eq!(net.violation(id), "WrongCookie");
    }
    for cookie in [vec![], COOKIE[..15].to_vec(), [COOKIE.as_slice(), &[0]].concat()] {
        let id = try_cookie(&mut net, Some(cookie));
        assert_eq!(net.violation(id), "WrongCookie");
    }
    let id = try_cookie(&mut net, None);
    assert_eq!(net.violation(id), "NoAuthentication");
}

#[test]
fn c2_nothing_goes_before_or_around_authentication() {
    for (name, title, bytes) in [
        ("Major", "a call first", call("a", "DCOPServer", "", "registeredApplications()", b"")),
        ("State", "protocol without connection", {
            let string = |text: &str| {
                let mut bytes = u16::try_from(text.len()).unwrap().to_ne_bytes().to_vec();
                bytes.extend(text.as_bytes());
                bytes.resize(bytes.len().next_multiple_of(4), 0);
                bytes
            };
            let names = ["DCOP", "KDE", "2.0", "MIT-MAGIC-COOKIE-1"].map(string).concat();
            let mut body = [&[1, 1, 0, 0, 0, 0, 0, 0][..], &names, &[2, 0, 0, 0]].concat();
            body.resize(body.len().next_multiple_of(8), 0);
            let order = u8::from(cfg!(target_endian = "big"));
            let mut bytes = vec![0, 1, order, 0, 0, 0, 0, 0, 0, 7, 1, 0];
            bytes.extend(u32::try_from(body.len() / 8).unwrap().to_ne_bytes());
            bytes.extend(body);
            bytes
        }),
        ("State", "cookie without setup", {
            let order = u8::from(cfg!(target_endian = "big"));
            let mut bytes = vec![0, 1, order, 0, 0, 0, 0, 0, 0, 4, 0, 0];
            bytes.extend(3_u32.to_ne_bytes());
            bytes.extend(16_u16.to_ne_bytes());
            bytes.extend([0; 6]);
            bytes.extend(COOKIE);
            bytes
        }),
    ] {
        let mut net = Net::new();
        let id = net.connect();
        net.feed(id, &bytes);
        assert_eq!(net.violation(id), name, "{title}");
        assert_eq!(net.server.entries(), 0);
    }
}

#[test]
fn c3_failed_logins_leave_nothing_behind() {
    let mut net = Net::new();
    for _ in 0..2000 {
        try_cookie(&mut net, Some(vec![0; 16]));
    }
    assert_eq!(net.server.entries(), 0);
    assert_eq!(everywire_model::Hub::deadline(&net.server), None);
}

#[test]
fn c4_lengths_that_lie_close_one_connection_only() {
    let huge = |length: u32| {
        let mut bytes = frame(minor::CALL, KEY, b"");
        bytes[4..8].copy_from_slice(&length.to_ne_bytes());
        bytes
    };
    let beyond = |length: u32| {
        let mut payload = arguments("x", "b", "o", "f()", b"");
        payload[..4].copy_from_slice(&length.to_be_bytes());
        frame(minor::SEND, KEY, &payload)
    };
    let mut second = arguments("x", "b", "o", "f()", b"");
    second[6..10].copy_from_slice(&1000_u32.to_be_bytes());
    let mut arguments_beyond = arguments("x", "DCOPServer", "", "f()", b"");
    let at = arguments_beyond.len() - 4;
    arguments_beyond[at..].copy_from_slice(&7_u32.to_be_bytes());
    let mut ice = vec![0, 9, 0, 0];
    ice.extend(u32::MAX.to_ne_bytes());
    for (bytes, name) in [
        (huge(u32::MAX), "OverLimit"),
        (huge(i32::MIN.cast_unsigned()), "OverLimit"),
        (beyond(u32::MAX), "Payload"),
        (beyond(i32::MIN.cast_unsigned()), "Payload"),
        (beyond(100), "Payload"),
        (frame(minor::SEND, KEY, &second), "Payload"),
        (frame(minor::CALL, KEY, &arguments_beyond), "Payload"),
        (frame(minor::CALL, KEY, b""), "Payload"),
        (frame(minor::REPLY_WAIT, KEY, &[text("x"), text("b")].concat()), "Payload"),
        (frame(0, KEY, b""), "Minor"),
        (frame(8, KEY, b""), "Minor"),
        (vec![7, 1, 0, 0, 0, 0, 0, 0], "Major"),
        (ice, "OverLimit"),
    ] {
        let mut net = Net::new();
        let (a, b) = (net.application("a"), net.application("b"));
        let evil = net.application("x");
        net.feed(evil, &bytes);
        assert_eq!(net.violation(evil), name, "{bytes:02x?}");
        assert!(net.works((a, "a"), (b, "b")));
    }
}

#[test]
fn c4_lengths_inside_arguments_of_the_servers_functions_fail_the_call_only() {
    let mut net = Net::new();
    let a = net.application("a");
    for data in [&[0xff, 0xff, 0xff, 0xff][..], &[0, 0, 0, 5, b'x'], &[0, 0], &[]] {
        assert_eq!(net.ask(a, "registerAs(QCString)", data).minor, minor::REPLY_FAILED);
    }
    assert_eq!(net.ask(a, "setDaemonMode(bool)", &[]).minor, minor::REPLY_FAILED);
    assert_eq!(net.register(a, &"n".repeat(256)), "a", "too long for an id");
    assert!(net.closed.is_empty());
}

#[test]
fn c4_the_largest_message_is_a_setting() {
    let mut net = Net::with(Settings::default().with_message(16 << 20));
    let (a, b) = (net.application("a"), net.application("b"));
    net.feed(a, &send("a", "b", "o", "f()", &vec![1; 10 << 20]));
    assert_eq!(net.messages(b).len(), 1);
}

#[test]
fn c5_calls_that_go_round_in_circles_end_at_depth_sixteen() {
    let mut net = Net::new();
    let (a, b) = (net.application("a"), net.application("b"));
    let mut depth = 0;
    'out: loop {
        for ((from, from_name), (to, to_name)) in [((a, "a"), (b, "b")), ((b, "b"), (a, "a"))] {
            net.feed(from, &call(from_name, to_name, "o", "again()", b""));
            if let Some(answer) = net.messages(from).first() {
                assert_eq!(answer.minor, minor::REPLY_FAILED);
                break 'out;
            }
            assert_eq!(net.one(to).minor, minor::CALL);
            depth += 1;
            assert!(depth < 100, "there is no end");
        }
    }
    assert_eq!(depth, 16);
    for _ in 0..8 {
        net.feed(a, &keyed_reply(KEY, "a", "b", "void", b""));
        net.feed(b, &keyed_reply(KEY, "b", "a", "void", b""));
    }
    assert_eq!((net.messages(a).len(), net.messages(b).len()), (8, 8));
    assert!(net.works((a, "a"), (b, "b")), "once they are unwound");
}

#[test]
fn c5_calls_with_keys_of_their_own_are_bounded_by_their_number() {
    let mut net = Net::new();
    let (a, b) = (net.application("a"), net.application("b"));
    for key in 100..100 + 1024 {
        net.feed(a, &frame(minor::CALL, key, &arguments("a", "b", "o", "f()", b"")));
    }
    assert!(net.take(a).is_empty());
    net.feed(a, &call("a", "b", "o", "f()", b""));
    assert_eq!(net.one(a).minor, minor::REPLY_FAILED);
    assert_eq!(net.messages(b).len(), 1024);
    net.feed(b, &keyed_reply(500, "b", "a", "void", b""));
    net.messages(a);
    assert!(net.works((a, "a"), (b, "b")), "one was answered");
}

#[test]
fn c6_ids_cannot_be_taken_from_those_who_live() {
    let mut net = Net::new();
    let (holder, caller) = (net.application("bank"), net.application("caller"));
    let squatter = net.client();
    assert_eq!(net.register(squatter, "bank"), "bank-2");
    assert_eq!(net.register(squatter, "bank"), "bank-2", "its own is free for it");
    assert_eq!(net.register(squatter, "DCOPServer"), "DCOPServer-2");
    assert!(net.works((caller, "caller"), (holder, "bank")));
    net.hang_up(holder);
    assert_eq!(net.register(squatter, "bank"), "bank", "now it may");
}

#[test]
fn c6_a_number_makes_no_id_longer_than_ids_may_be() {
    let mut net = Net::new();
    let (longest, one) = ("x".repeat(255), net.client());
    assert_eq!(net.register(one, &longest), longest);
    for number in 2..12 {
        let other = net.client();
        let expected = format!("{}-{number}", &longest[..255 - format!("-{number}").len()]);
        assert_eq!(net.register(other, &longest), expected);
    }
}

#[test]
fn c6_nobody_speaks_under_anothers_id() {
    let mut net = Net::new();
    let (a, b) = (net.application("a"), net.application("b"));
    let evil = net.application("evil");
    net.feed(evil, &send("a", "b", "o", "f()", b""));
    net.feed(evil, &send("a", "*", "o", "f()", b""));
    net.feed(evil, &call("a", "b", "o", "f()", b""));
    assert!(net.take(b).is_empty());
    assert_eq!(net.one(evil).minor, minor::REPLY_FAILED);
    let nobody = net.client();
    net.feed(nobody, &call("", "b", "o", "f()", b""));
    assert_eq!(net.one(nobody).minor, minor::REPLY_FAILED, "no reply would find it");
    net.feed(a, &call("a", "b", "o", "f()", b""));
    net.feed(evil, &keyed_reply(KEY, "b", "a", "int", &[0; 4]));
    assert!(net.take(a).is_empty(), "it was not asked");
}

#[test]
fn what_a_slow_client_did_not_ask_for_is_dropped_and_costs_it_nothing_else() {
    let connect = "connectSignal(QCString,QCString,QCString,QCString,QCString,bool)";
    let mut wish = ["", "", "s()", "o", "f()"].map(text).concat();
    wish.push(0);
    let data = vec![0; 1 << 20];
    let floods = [
        send("evil", "slow", "o", "f()", &data),
        send("evil", "slo*", "o", "f()", &data),
        call("evil", "slow", "o", "f()", &data),
        send("evil", "DCOPServer", "emit", "s()", &data),
        call("", "DCOPServer", "", "registerAs(QCString)", &text(&"x".repeat(200))).repeat(2000),
    ];
    for flood in floods {
        let mut net = Net::new();
        let (a, slow, evil) = (net.application("a"), net.application("slow"), net.application("evil"));
        assert_eq!(net.ask(slow, connect, &wish).payload.pop(), Some(1));
        net.ask(slow, "setNotifications(bool)", &[1]);
        net.deaf.insert(slow);
        for _ in 0..40 {
            net.feed(evil, &flood);
        }
        // It calls somebody itself, and there is room for the answer.
        net.feed(slow, &call("slow", "a", "o", "f()", b""));
        assert_eq!(net.one(a).minor, minor::CALL);
        net.feed(a, &reply("a", "slow", "void", &data));
        assert!(net.closed.is_empty());
        net.deaf.remove(&slow);
        net.feed(slow, &call("", "DCOPServer", "", "serverVersion()", b""));
        let came: usize = net.messages(slow).iter().map(|message| message.payload.len()).sum();
        assert!((1 << 20..10 << 20).contains(&came), "{came} bytes were kept");
        net.take(evil);
        assert!(net.works((a, "a"), (slow, "slow")));
    }
}

#[test]
fn a_client_that_asks_and_does_not_read_is_closed_at_the_quota() {
    let mut net = Net::with(Settings { queue: 64 << 10, ..Settings::default() });
    let evil = net.application("evil");
    net.deaf.insert(evil);
    let ping = [0, 9, 0, 0, 0, 0, 0, 0].repeat(1000);
    for _ in 0..100 {
        net.feed(evil, &ping);
    }
    assert!(net.closed.contains_key(&evil));
    assert_eq!(net.server.entries(), 0);
    // Who waits for it hears so.
    let (a, evil) = (net.application("a"), net.application("evil"));
    net.deaf.insert(evil);
    net.feed(a, &call("a", "evil", "o", "f()", b""));
    for _ in 0..100 {
        net.feed(evil, &ping);
    }
    let failure = net.one(a);
    assert_eq!((failure.minor, failure.payload.len()), (minor::REPLY_FAILED, 0));
    let evil = net.application("evil");
    assert!(net.works((a, "a"), (evil, "evil")));
}

#[test]
fn all_queues_together_have_a_bound_and_each_its_share_beyond_it() {
    const ALL: usize = 128 << 10;
    let settings = Settings { queue: 64 << 10, queues: ALL, connections: 32, ..Settings::default() };
    let mut net = Net::with(settings);
    let evil = net.application("evil");
    let deaf: Vec<u64> = (0..16).map(|number| net.application(&format!("deaf{number}"))).collect();
    net.deaf.extend(&deaf);
    let data = vec![7; 1000];
    let waiting = |net: &mut Net| -> usize {
        let queued = |id: &u64| net.server.transmit(PeerId(*id)).map_or(0, |out| out.len());
        deaf.iter().map(queued).sum()
    };
    for _ in 0..100 {
        for number in 0..deaf.len() {
            net.feed(evil, &send("evil", &format!("deaf{number}"), "o", "f()", &data));
        }
    }
    let most = ALL + deaf.len() * (ALL / 32);
    let held = waiting(&mut net);
    assert!((ALL / 2..=most).contains(&held), "{held} bytes wait");
    // Others are served, and when the deaf ones read again there is room for all.
    let (a, b) = (net.application("a"), net.application("b"));
    assert!(net.works((a, "a"), (b, "b")));
    assert!(net.closed.is_empty());
    net.deaf.clear();
    for &id in &deaf {
        net.send(id);
        net.take(id);
    }
    net.deaf.extend(&deaf);
    for _ in 0..20 {
        net.feed(evil, &send("evil", "deaf0", "o", "f()", &data));
    }
    let held = waiting(&mut net);
    assert!(held > 20_000, "{held} bytes wait: one queue has all its room again");
}

#[test]
fn what_was_read_or_left_waits_no_longer() {
    let settings = Settings { queue: 64 << 10, queues: 128 << 10, connections: 32, ..Settings::default() };
    let mut net = Net::with(settings);
    let callee = net.application("callee");
    for number in 0..20 {
        let caller = net.application("caller");
        net.feed(caller, &call("caller", "callee", "o", "f()", b""));
        net.feed(callee, &reply("callee", "caller", "QByteArray", &[7; 30_000]));
        assert_eq!(net.messages(caller).len(), 1, "{number}");
        net.hang_up(caller);
    }
}

#[test]
fn connections_are_counted() {
    let mut net = Net::with(Settings { connections: 3, ..Settings::default() });
    let (a, b) = (net.application("a"), net.application("b"));
    let third = net.connect();
    let fourth = net.connect();
    assert!(net.closed.contains_key(&fourth) && !net.closed.contains_key(&third));
    assert!(net.works((a, "a"), (b, "b")));
    net.hang_up(third);
    net.application("c");
}

#[test]
fn signal_connections_are_counted() {
    let mut net = Net::with(Settings { signals: 2, all_signals: 3, ..Settings::default() });
    let mut data = ["", "", "s()", "o", "f()"].map(text).concat();
    data.push(0);
    let connect = "connectSignal(QCString,QCString,QCString,QCString,QCString,bool)";
    let (a, b) = (net.application("a"), net.application("b"));
    let made = [a, a, a, b, b].map(|id| net.ask(id, connect, &data).payload.pop());
    assert_eq!(made, [Some(1), Some(1), Some(0), Some(1), Some(0)]);
}

#[test]
fn a_message_that_stops_half_way_ends_its_sender_in_time() {
    let mut net = Net::new();
    let (a, b, stalls) = (net.application("a"), net.application("b"), net.application("stalls"));
    let whole = send("stalls", "b", "o", "f()", &vec![0; 3 << 20]);
    for start in [1, 9, 100_000] {
        let mut net = Net::new();
        let client = net.application("x");
        net.feed(client, &whole[..start]);
        net.pass(Duration::from_secs(300));
        assert!(net.closed.contains_key(&client), "after {start} bytes");
        assert_eq!(net.server.entries(), 0);
    }
    net.feed(stalls, &whole[..100_000]);
    // A little now and then does not make it last: 30 s for each started MiB.
    for at in 0..11 {
        net.pass(Duration::from_secs(10));
        net.feed(stalls, &whole[100_000 + at..=100_000 + at]);
        assert!(net.works((a, "a"), (b, "b")) && net.closed.is_empty(), "{at}");
    }
    net.pass(Duration::from_secs(11));
    assert!(net.closed.contains_key(&stalls));
    assert!(net.works((a, "a"), (b, "b")));
    // Whoever is silent between messages, or gets one through in time, stays.
    net.feed(a, &whole[..20]);
    net.pass(Duration::from_secs(25));
    net.feed(a, &whole[20..]);
    net.pass(Duration::from_secs(1000));
    assert_eq!(net.closed.len(), 1);
    assert_eq!(everywire_model::Hub::deadline(&net.server), None);
}

#[test]
fn whoever_has_not_shown_the_cookie_gets_no_memory() {
    let mut net = Net::new();
    let (a, b) = (net.application("a"), net.application("b"));
    let evil = net.connect();
    net.deaf.insert(evil);
    net.feed(evil, &[0, 1, u8::from(cfg!(target_endian = "big")), 0, 0, 0, 0, 0]);
    let ping = [0, 9, 0, 0, 0, 0, 0, 0].repeat(1000);
    let mut sent = 0;
    while !net.closed.contains_key(&evil) {
        net.feed(evil, &ping);
        sent += ping.len();
        assert!(sent < 100_000, "there is no end");
    }
    assert!(net.works((a, "a"), (b, "b")));
}

#[test]
fn calls_to_one_who_does_not_read_fail_and_do_not_end_it() {
    let mut net = Net::new();
    let (a, slow) = (net.application("a"), net.application("slow"));
    net.deaf.insert(slow);
    let megabyte = call("a", "slow", "o", "f()", &vec![0; 1 << 20]);
    let mut taken = 0;
    let failure = loop {
        net.feed(a, &megabyte);
        if let Some(failure) = net.messages(a).pop() {
            break failure;
        }
        taken += 1;
        assert!(taken < 20, "there is no end");
    };
    assert_eq!((failure.minor, taken), (minor::REPLY_FAILED, 7));
    net.deaf.remove(&slow);
    net.feed(slow, &[0, 9, 0, 0, 0, 0, 0, 0]);
    assert_eq!(net.take(slow).len(), 7 * megabyte.len() + 8, "all that was taken arrives");
    assert!(net.closed.is_empty());
}

#[test]
fn names_in_signal_connections_are_counted_in_bytes() {
    let connect = "connectSignal(QCString,QCString,QCString,QCString,QCString,bool)";
    let wish = |object: &str| {
        let mut data = ["", "", "s()", object, "f()"].map(text).concat();
        data.push(0);
        data
    };
    let mut net =
        Net::with(Settings { signal_bytes: 10_000, all_signal_bytes: 15_000, ..Settings::default() });
    let (a, b) = (net.application("a"), net.application("b"));
    assert_eq!(net.ask(a, connect, &wish(&"o".repeat(4097))).payload.pop(), Some(0), "too long for a name");
    let long = "o".repeat(3000);
    let made = [a, a, a, a, b, b].map(|id| net.ask(id, connect, &wish(&long)).payload.pop());
    assert_eq!(made, [Some(1), Some(1), Some(1), Some(0), Some(1), Some(0)]);
    net.hang_up(a);
    assert_eq!(net.ask(b, connect, &wish(&long)).payload.pop(), Some(1), "there is room again");
}

/// Nanoseconds that this thread has run: what else the machine does is not among them.
fn spent() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// What 2000 connections cost that come and go while somebody listens to so many signals.
fn visits_beside(signals: usize) -> u64 {
    let connect = "connectSignal(QCString,QCString,QCString,QCString,QCString,bool)";
    let mut net = Net::with(Settings { signals: 1 << 20, ..Settings::default() });
    let a = net.application("a");
    for number in 0..signals {
        let mut data = ["", "", &format!("s{number}()"), "o", "f()"].map(text).concat();
        data.push(0);
        assert_eq!(net.ask(a, connect, &data).payload.pop(), Some(1), "{number}");
    }
    let before = spent();
    for _ in 0..2_000 {
        let id = net.connect();
        net.hang_up(id);
        net.forget(id);
    }
    let cost = spent() - before;
    net.hang_up(a);
    assert_eq!(net.server.entries(), 0);
    cost
}

#[test]
fn connections_without_signals_come_and_go_whatever_others_listen_to() {
    let (few, many) = (visits_beside(10), visits_beside(10_000));
    // With a look at each of the 10,000 this would be hundreds of times as much.
    assert!(many < 10 * few, "{few} ns beside 10 signals, {many} ns beside 10,000");
}

#[test]
fn c3_whoever_leaves_leaves_nothing_behind_whatever_they_were_at() {
    let mut net = Net::new();
    let (a, b) = (net.application("a"), net.application("b"));
    let (guest, mut said) = net.shake_hands();
    net.hang_up(guest);
    let mut wish = ["a", "", "s()", "o", "f()"].map(text).concat();
    wish.push(1);
    let connect = "connectSignal(QCString,QCString,QCString,QCString,QCString,bool)";
    for message in [
        call("", "DCOPServer", "", "registerAs(QCString)", &text("guest")),
        call("guest", "DCOPServer", "", "setNotifications(bool)", &[1]),
        call("guest", "DCOPServer", "", connect, &wish),
        call("guest", "b", "o", "f()", &[0; 100]),
        call("guest", "guest", "o", "f()", b""),
        call("guest", "DCOPServer", "", "registerAs(QCString)", &text("other")),
        call("guest", "DCOPServer", "", "setDaemonMode(bool)", &[1]),
        send("guest", "DCOPServer", "emit", "s()", b""),
    ] {
        said.extend(message);
    }
    let before = net.server.entries();
    for end in 0..=said.len() {
        let guest = net.connect();
        net.feed(guest, &said[..end]);
        // Somebody waits for it, too; as long as it has that id.
        net.feed(a, &call("a", "guest", "o", "f()", b""));
        assert!(!net.closed.contains_key(&guest), "at {end}");
        net.hang_up(guest);
        assert_eq!(net.server.entries(), before, "at {end}");
        let answers = net.messages(a);
        assert!(answers.len() == 1 && answers[0].minor == minor::REPLY_FAILED, "at {end}");
        net.forget(guest);
        net.take(b);
    }
    assert!(net.works((a, "a"), (b, "b")));
}
