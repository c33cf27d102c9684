//! Who gets which message.

use crate::server::net::{KEY, Net, arguments, call, frame, keyed_reply, reply, send, text};
use everywire_dcop::ice::minor;

#[test]
fn unknown_functions_and_applications_fail() {
    let mut net = Net::new();
    let id = net.application("a");
    for function in
        ["functions()", "interfaces()", "objects()", "registerAs", "isApplicationRegistered(QCString)"]
    {
        let failed = net.ask(id, function, b"");
        assert_eq!((failed.minor, failed.key), (minor::REPLY_FAILED, KEY), "{function}");
        assert_eq!(failed.fields(), ["DCOPServer", ""]);
    }
    net.feed(id, &frame(minor::FIND, KEY, &arguments("a", "DCOPServer", "", "", b"")));
    assert_eq!(net.one(id).minor, minor::REPLY_FAILED);
    net.feed(id, &call("a", "nobody", "o", "f()", b""));
    let failed = net.one(id);
    assert_eq!(
        (failed.minor, failed.fields()),
        (minor::REPLY_FAILED, vec!["nobody".to_owned(), "a".to_owned()])
    );
    net.feed(id, &call("a", "a*", "o", "f()", b""));
    assert_eq!(net.one(id).minor, minor::REPLY_FAILED, "calls are for one");
    net.feed(id, &send("a", "nobody", "o", "f()", b""));
    assert!(net.take(id).is_empty());
}

#[test]
fn registering_again_renames_and_tells_those_who_listen() {
    let mut net = Net::new();
    let listener = net.application("listener");
    net.ask(listener, "setNotifications(bool)", &[1]);
    let id = net.application("old");
    assert_eq!(net.register(id, "new"), "new");
    let notices: Vec<Vec<String>> = net.messages(listener).iter().map(|message| message.fields()).collect();
    let notice = |function: &str, name: &str| {
        vec!["DCOPServer".to_owned(), String::new(), String::new(), function.to_owned(), name.to_owned()]
    };
    let (registered, removed) = ("applicationRegistered(QCString)", "applicationRemoved(QCString)");
    assert_eq!(notices, [notice(registered, "old"), notice(removed, "old"), notice(registered, "new")]);
    let known = |net: &mut Net, name: &str| {
        let reply = net.ask(id, "isApplicationRegistered(QCString)", &text(name));
        let at = reply.payload.len() - 8;
        assert_eq!(reply.payload[at..at + 4], [0, 0, 0, 4], "four bytes, whatever the type says");
        reply.payload[reply.payload.len() - 1] == 1
    };
    assert!(!known(&mut net, "old"));
    assert!(known(&mut net, "new"));
    assert_eq!(net.register(id, ""), "new", "an empty id changes nothing");
    assert_eq!(net.register(id, "all*"), "new", "nor does one that means many");
    net.ask(listener, "setNotifications(bool)", &[0]);
    net.hang_up(id);
    assert!(net.take(listener).is_empty());
}

#[test]
fn sends_reach_everybody_with_the_prefix() {
    let mut net = Net::new();
    let (a1, a2, b) = (net.application("a-1"), net.application("a-2"), net.application("b"));
    net.feed(b, &send("b", "a-*", "o", "f()", b"x"));
    let message = net.one(a1);
    assert_eq!((message.minor, message.key, message.fields()[1].as_str()), (minor::SEND, 1, "a-*"));
    assert_eq!(net.one(a2), message);
    assert!(net.take(b).is_empty());
    net.feed(b, &send("b", "*", "o", "f()", b"x"));
    assert_eq!([a1, a2, b].map(|id| net.messages(id).len()), [1, 1, 1]);
    let large = vec![7; 100_000];
    net.feed(b, &send("b", "a-*", "o", "f()", &large));
    assert_eq!(net.one(a1).payload, arguments("b", "a-*", "o", "f()", &large));
    assert_eq!(net.messages(a2).len(), 1);
}

#[test]
fn large_messages_arrive_whole_between_small_ones() {
    let mut net = Net::new();
    let (a, b) = (net.application("a"), net.application("b"));
    let large: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let mut all = send("a", "b", "o", "f()", b"1");
    all.extend(send("a", "b", "o", "f()", &large));
    all.extend(send("a", "b", "o", "f()", b"2"));
    for piece in all.chunks(70_000) {
        net.feed(a, piece);
    }
    let payloads: Vec<Vec<u8>> = net.messages(b).into_iter().map(|message| message.payload).collect();
    let expected = [b"1".as_slice(), &large, b"2"].map(|data| arguments("a", "b", "o", "f()", data));
    assert_eq!(payloads, expected);
}

#[test]
fn a_delayed_reply_finds_its_caller() {
    let mut net = Net::new();
    let (a, b, other) = (net.application("a"), net.application("b"), net.application("c"));
    net.feed(a, &call("a", "b", "o", "slow()", b""));
    net.messages(b);
    let wait = [text("b"), text("a"), 5_u32.to_be_bytes().to_vec()].concat();
    net.feed(b, &frame(minor::REPLY_WAIT, KEY, &wait));
    assert_eq!(net.one(a).minor, minor::REPLY_WAIT);
    assert!(net.works((other, "c"), (b, "b")), "the callee serves others meanwhile");
    let delayed = |id: u32| {
        let id = id.to_be_bytes().to_vec();
        frame(minor::REPLY_DELAYED, KEY, &[text("b"), text("a"), id, text("void"), vec![0; 4]].concat())
    };
    net.feed(b, &delayed(6));
    assert!(net.take(a).is_empty(), "nobody waits for that one");
    net.feed(b, &delayed(5));
    assert_eq!(net.one(a).minor, minor::REPLY_DELAYED);
    net.feed(b, &delayed(5));
    assert!(net.take(a).is_empty(), "it was given already");
}

#[test]
fn whoever_waits_for_the_dead_gets_a_failure_for_each_call() {
    let mut net = Net::new();
    let (a, b) = (net.application("a"), net.application("b"));
    net.feed(a, &call("a", "b", "o", "f()", b""));
    net.feed(a, &frame(minor::FIND, 77, &arguments("a", "b", "o", "", b"")));
    let wait = [text("b"), text("a"), 1_u32.to_be_bytes().to_vec()].concat();
    net.feed(b, &frame(minor::REPLY_WAIT, KEY, &wait));
    net.take(a);
    net.hang_up(b);
    let failures = net.messages(a);
    assert_eq!(failures.len(), 2, "also for the delayed one");
    for failure in failures {
        assert_eq!((failure.minor, failure.key, failure.payload.len()), (minor::REPLY_FAILED, 1, 0));
    }
    let b = net.application("b");
    assert!(net.works((a, "a"), (b, "b")));
}

#[test]
fn replies_to_those_who_left_reach_no_namesake() {
    let mut net = Net::new();
    let (a, b) = (net.application("a"), net.application("b"));
    net.feed(a, &call("a", "b", "o", "f()", b""));
    net.one(b);
    net.hang_up(a);
    let namesake = net.application("a");
    net.feed(b, &reply("b", "a", "void", b""));
    assert!(net.take(namesake).is_empty());
    assert!(net.works((namesake, "a"), (b, "b")));
}

#[test]
fn a_reply_with_another_key_answers_the_oldest_call() {
    let mut net = Net::new();
    let (a, b) = (net.application("a"), net.application("b"));
    net.feed(a, &call("a", "b", "o", "f()", b""));
    net.feed(b, &keyed_reply(3, "b", "a", "void", b""));
    assert_eq!(net.one(a).key, 3);
    net.feed(b, &keyed_reply(3, "b", "a", "void", b""));
    assert!(net.take(a).is_empty());
}

#[test]
fn a_reply_to_a_caller_that_has_left_does_not_answer_the_calls_of_its_namesake() {
    let mut net = Net::new();
    let (former, b) = (net.application("a"), net.application("b"));
    let asked = |key| frame(minor::CALL, key, &arguments("a", "b", "o", "f()", b""));
    net.feed(former, &asked(100));
    net.hang_up(former);
    let a = net.application("a");
    net.feed(a, &asked(200));
    net.feed(b, &keyed_reply(100, "b", "a", "void", b""));
    assert!(net.take(a).is_empty(), "it asked nothing under that key");
    net.feed(b, &keyed_reply(200, "b", "a", "void", b""));
    assert_eq!(net.one(a).key, 200);
}

#[test]
fn pings_are_answered_between_messages() {
    let mut net = Net::new();
    let a = net.application("a");
    net.feed(a, &[0, 9, 0, 0, 0, 0, 0, 0]);
    assert_eq!(net.take(a), [0, 10, 0, 0, 0, 0, 0, 0]);
    assert_eq!(net.register(a, "b"), "b");
    net.feed(a, &[0, 11, 0, 0, 0, 0, 0, 0]);
    assert!(net.closed.contains_key(&a), "it wanted to close");
    let b = net.application("b");
    net.feed(b, &[0, 7, 0, 0, 0, 0, 0, 0]);
    assert_eq!(net.violation(b), "Length");
    assert_eq!(net.server.entries(), 0);
}

#[test]
fn a_caller_that_was_renamed_still_gets_its_replies() {
    let mut net = Net::new();
    let (a, b) = (net.application("a"), net.application("b"));
    for key in [100, 101, 102] {
        net.feed(a, &frame(minor::CALL, key, &arguments("a", "b", "o", "f()", b"")));
    }
    assert_eq!(net.register(a, "a-new"), "a-new");
    let usurper = net.application("a");
    // To the id that it had: in any order, announced first, and as a failure.
    net.feed(b, &keyed_reply(101, "b", "a", "void", b""));
    assert_eq!(net.one(a).key, 101);
    net.feed(b, &frame(minor::REPLY_WAIT, 100, &[text("b"), text("a"), vec![0, 0, 0, 9]].concat()));
    assert_eq!(net.one(a).minor, minor::REPLY_WAIT);
    net.feed(b, &frame(minor::REPLY_FAILED, 102, &[text("b"), text("a")].concat()));
    assert_eq!(net.one(a).minor, minor::REPLY_FAILED);
    let delayed = [text("b"), text("a"), vec![0, 0, 0, 9], text("void"), vec![0; 4]].concat();
    net.feed(b, &frame(minor::REPLY_DELAYED, 100, &delayed));
    assert_eq!(net.one(a).minor, minor::REPLY_DELAYED);
    assert!(net.take(usurper).is_empty());
    net.feed(b, &keyed_reply(101, "b", "a", "void", b""));
    assert!(net.take(a).is_empty(), "nobody waits any more");
    net.messages(b);
    assert!(net.works((a, "a-new"), (b, "b")));
}

#[test]
fn many_calls_under_one_key_are_no_loop() {
    let mut net = Net::new();
    let (a, b) = (net.application("a"), net.application("b"));
    for _ in 0..100 {
        net.feed(a, &call("a", "b", "o", "f()", b""));
    }
    assert_eq!(net.messages(b).len(), 100);
    for _ in 0..100 {
        net.feed(b, &reply("b", "a", "void", b""));
    }
    assert!(net.messages(a).iter().all(|message| message.minor == minor::REPLY));
}

#[test]
fn messages_over_the_limit_fail_their_call_and_nothing_else() {
    let limit = 1 << 16;
    let mut net = Net::with(everywire_dcop::server::Settings::default().with_message(limit));
    let (a, b) = (net.application("a"), net.application("b"));
    let large = vec![7; usize::try_from(limit).unwrap()];
    // A reply.
    net.feed(a, &call("a", "b", "o", "f()", b""));
    net.one(b);
    let bytes = reply("b", "a", "QByteArray", &large);
    for piece in bytes.chunks(1000) {
        net.feed(b, piece);
    }
    let failed = net.one(a);
    assert_eq!((failed.minor, failed.key), (minor::REPLY_FAILED, KEY));
    assert_eq!(failed.fields(), ["b", "a"]);
    assert!(net.works((a, "a"), (b, "b")) && net.works((b, "b"), (a, "a")));
    // A reply that was announced: a result without a type.
    net.feed(a, &call("a", "b", "o", "f()", b""));
    net.one(b);
    net.feed(b, &frame(minor::REPLY_WAIT, KEY, &[text("b"), text("a"), vec![0, 0, 0, 5]].concat()));
    net.one(a);
    let delayed = [text("b"), text("a"), vec![0, 0, 0, 5], text("x"), large.clone()].concat();
    net.feed(b, &frame(minor::REPLY_DELAYED, KEY, &delayed));
    let failed = net.one(a);
    assert_eq!((failed.minor, failed.key), (minor::REPLY_DELAYED, KEY));
    assert_eq!(failed.fields()[..2], ["b", "a"]);
    assert!(failed.payload.ends_with(&[0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0]));
    // A call: its caller hears that it failed. A send: nobody waits for anything.
    net.feed(a, &[call("a", "b", "o", "f(QByteArray)", &large), call("a", "b", "o", "g()", b"")].concat());
    let failed = net.one(a);
    assert_eq!((failed.minor, failed.fields()), (minor::REPLY_FAILED, vec!["b".to_owned(), "a".to_owned()]));
    assert_eq!(net.one(b).fields()[3], "g()");
    net.feed(b, &reply("b", "a", "void", b""));
    net.one(a);
    net.feed(a, &send("a", "b", "o", "f(QByteArray)", &large));
    assert!(net.messages(b).is_empty() && net.closed.is_empty());
    assert!(net.works((a, "a"), (b, "b")));
}
