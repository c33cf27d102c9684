//! Requests that begin as one before are the octets that they always were, and are read as they always were.

use crate::support::*;
use everywire_giop::GIOP;
use everywire_model::visit::Nothing;
use everywire_model::*;
use std::time::Instant;

/// Where the number of a request of GIOP 1.2 stands.
const NUMBER: std::ops::Range<usize> = 12..16;

fn request(
    session: &mut dyn Session,
    profile: &Profile,
    name: &str,
    arguments: &dyn Encode,
    asks: bool,
) -> Vec<u8> {
    let expects = if asks { Expects::Reply } else { Expects::Nothing };
    let method = Method::Named { interface: b"", operation: name.as_bytes() };
    session.start(Instant::now(), &Call { profile, method, arguments, expects }).unwrap();
    drain(session)
}

/// A session whose server has answered a call: from then on it may begin requests as before.
fn warm() -> Box<dyn Session> {
    let mut pair = Pair::new(Limits::default());
    let (id, incoming) = pair.call(&profile(b"other"), &int(), &put_int(1));
    pair.outcome(id, &incoming, Answer::Done(&put_int(1)));
    pair.client
}

/// Requests of an other session, whose server has answered nothing, and which so writes each on its own.
fn cold() -> Box<dyn Session> {
    let mut session = GIOP.connect(&Config::default());
    request(&mut *session, &profile(b"other"), "first", &put_int(1), true);
    session
}

#[test]
fn a_repeated_request_has_the_octets_of_any_other() {
    let (mut warm, mut cold) = (warm(), cold());
    let long = vec![7; 4096];
    let keys: Vec<_> = [&b"k"[..], b"key", &[0xfe; 14], b"", &long].into_iter().map(profile).collect();
    let names = ["f", "in_out_int_call", "_get_name", &"long".repeat(300)];
    // More than are kept, some often and some seldom; copies of a profile have its key at other places.
    for turn in 0..200_usize {
        let profile = &keys[turn % 7 % keys.len()];
        let copy = Profile { key: profile.key.to_vec().into(), ..profile.clone() };
        let profile = if turn.is_multiple_of(3) { &copy } else { profile };
        let (name, asks) = (names[turn / 2 % names.len()], !turn.is_multiple_of(5));
        let arguments: &dyn Encode = if turn.is_multiple_of(11) { &Nothing } else { &put_int(7) };
        let mut one = request(&mut *warm, profile, name, arguments, asks);
        let mut other = request(&mut *cold, profile, name, arguments, asks);
        assert_eq!(one[NUMBER], (turn as u32 + 2).to_ne_bytes(), "turn {turn}");
        one[NUMBER].fill(0);
        other[NUMBER].fill(0);
        assert_eq!(one, other, "turn {turn}");
    }
}

#[test]
fn a_repeated_request_that_does_not_encode_leaves_nothing() {
    let mut session = warm();
    let profile = profile(b"key");
    let first = request(&mut *session, &profile, "f", &put_int(1), true);
    let wrong = |_: &mut dyn Sink| Err(Failure::new(Kind::BadArgument, Initiator::User, "wrong"));
    let method = Method::Named { interface: b"", operation: b"f" };
    let call = Call { profile: &profile, method, arguments: &wrong, expects: Expects::Reply };
    let failure = session.start(Instant::now(), &call).unwrap_err();
    assert_eq!((failure.message(), session.outstanding()), ("wrong", 1));
    assert!(session.transmit().is_empty());
    let next = request(&mut *session, &profile, "f", &put_int(1), true);
    assert_eq!(next[NUMBER], 3_u32.to_ne_bytes(), "its number was not used up");
    assert_eq!((&next[..12], &next[16..]), (&first[..12], &first[16..]));
}

/// A request of GIOP 1.2 with this number, flags and key, for `op`; `little` is its byte order.
fn written(little: bool, id: u32, flags: u8, key: &[u8], padding: u8, contexts: &[(u32, &[u8])]) -> Vec<u8> {
    let number = |value: u32| if little { value.to_le_bytes() } else { value.to_be_bytes() };
    let mut out = [b"GIOP\x01\x02".as_slice(), &[little.into(), 0], &[0; 4]].concat();
    let align = |out: &mut Vec<u8>, to: usize| out.resize(out.len().next_multiple_of(to), padding);
    out.extend_from_slice(&number(id));
    out.extend_from_slice(&[flags, 0, 0, 0, 0, 0]);
    align(&mut out, 4);
    out.extend_from_slice(&number(key.len() as u32));
    out.extend_from_slice(key);
    align(&mut out, 4);
    out.extend_from_slice(&number(3));
    out.extend_from_slice(b"op\0");
    align(&mut out, 4);
    out.extend_from_slice(&number(contexts.len() as u32));
    for (context, data) in contexts {
        out.extend_from_slice(&number(*context));
        out.extend_from_slice(&number(data.len() as u32));
        out.extend_from_slice(data);
    }
    align(&mut out, 8);
    out.extend_from_slice(&number(id * 10));
    let size = number(out.len() as u32 - 12);
    out[8..12].copy_from_slice(&size);
    out
}

/// Byte order, flags, key, padding, contexts.
type Round<'a> = (bool, u8, &'a [u8], u8, &'a [(u32, &'a [u8])]);

#[test]
fn a_request_that_begins_as_the_last_one_is_read_as_any_other() {
    let mut server = GIOP.accept(&Config::default());
    let context: &[(u32, &[u8])] = &[(0x1234, b"data")];
    // What changes from one to the next: nothing, the byte order, the flags, the key, the padding, the contexts.
    let rounds: [Round<'_>; 12] = [
        (true, 3, b"key", 0, &[]),
        (true, 3, b"key", 0, &[]),
        (false, 3, b"key", 0, &[]),
        (false, 3, b"key", 0, &[]),
        (false, 0, b"key", 0, &[]),
        (true, 3, b"kei", 0, &[]),
        (true, 3, b"kei", 0xaa, &[]),
        (true, 3, b"kei", 0xbb, &[]),
        (true, 3, b"a longer key", 0, context),
        (true, 3, b"a longer key", 0, context),
        (true, 3, b"a longer key", 0, &[]),
        (true, 3, b"a longer key", 0, &[]),
    ];
    for (id, (little, flags, key, padding, contexts)) in (1..).zip(rounds) {
        feed(&mut *server, &written(little, id, flags, key, padding, contexts)).unwrap();
        let Some(Event::Call(incoming)) = events(&mut *server).pop() else { panic!("{id}") };
        assert_eq!((&*incoming.key, &*incoming.operation), (key, &b"op"[..]), "{id}");
        assert_eq!(value(&Shape::I32, &incoming.body), Value::Integer(i128::from(id * 10)), "{id}");
        assert_eq!(incoming.expects == Expects::Reply, flags != 0, "{id}");
        assert_eq!(incoming.body.headers().is_some(), !contexts.is_empty(), "{id}");
        server.answer(incoming.id, Answer::Done(&put_int(8))).unwrap();
        let answer = drain(&mut *server);
        assert_eq!(answer.is_empty(), flags == 0, "{id}");
        if flags != 0 {
            assert_eq!(answer[NUMBER], id.to_ne_bytes(), "the answer names its request");
        }
    }
}

#[test]
fn a_number_that_is_not_answered_yet_is_refused_behind_a_known_beginning() {
    let mut server = GIOP.accept(&Config::default());
    let message = written(true, 5, 3, b"key", 0, &[]);
    feed(&mut *server, &message).unwrap();
    let violation = feed(&mut *server, &message).unwrap_err();
    assert!(violation.to_string().contains("request 5"), "{violation}");
}
