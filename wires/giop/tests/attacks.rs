//! One test for each class of attack on this wire (G1 to G9), and for what a rude peer may try beside.

#![allow(clippy::unwrap_used)]

use crate::support::*;
use bytes::BytesMut;
use everywire_giop::codesets::Dialect;
use everywire_giop::{CDR, Cdr, GIOP};
use everywire_model::shape::{Text, TextKind};
use everywire_model::*;
use std::time::{Duration, Instant};

fn message(kind: u8, flags: u8, content: &[u8]) -> Vec<u8> {
    let mut all = b"GIOP\x01\x02".to_vec();
    all.extend([flags, kind]);
    all.extend((content.len() as u32).to_le_bytes());
    all.extend(content);
    all
}

/// A little-endian request of GIOP 1.2 for the object `k`, without values.
fn request(id: u32, operation: &[u8]) -> Vec<u8> {
    let mut content = id.to_le_bytes().to_vec();
    content.extend([3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, b'k', 0, 0, 0]);
    content.extend((operation.len() as u32 + 1).to_le_bytes());
    content.extend(operation);
    content.push(0);
    content.resize(content.len().next_multiple_of(4), 0);
    content.extend([0; 4]);
    message(0, 1, &content)
}

fn fragment(id: u32, more: bool, data: &[u8]) -> Vec<u8> {
    message(7, 1 | u8::from(more) << 1, &[&id.to_le_bytes(), data].concat())
}

/// The first part of a request.
fn first_part(id: u32) -> Vec<u8> {
    let mut part = request(id, b"op");
    part[6] |= 2;
    part.resize(part.len().next_multiple_of(8), 0);
    let size = part.len() as u32 - 12;
    part[8..12].copy_from_slice(&size.to_le_bytes());
    part
}

fn server() -> Box<dyn Session> {
    GIOP.accept(&Config::default())
}

fn body(raw: &[u8]) -> Body {
    Cdr::body(bytes(raw), 0, true, Dialect::OURS, Budget::default())
}

fn violation(session: &mut dyn Session, bytes: &[u8]) -> &'static str {
    let violation = feed(session, bytes).unwrap_err();
    let sent = drain(session);
    assert_eq!((&sent[..4], sent[sent.len() - 5]), (&b"GIOP"[..], 6), "a MessageError ends what is sent");
    violation.name
}

#[test]
fn g1_sizes_and_counts_beyond_the_message() {
    let mut header = message(0, 1, &[]);
    header[8..12].copy_from_slice(&[0xff; 4]);
    header.extend([0; 8]);
    let mut session = server();
    assert_eq!(violation(&mut *session, &header), "OverLimit");
    assert_eq!(session.wanted(), 0);
    // Counts in values: nothing is allocated for them.
    for shape in [
        text(),
        wide_text(),
        Shape::sequence(Shape::U8),
        Shape::sequence(Shape::F64),
        Shape::sequence(text()),
    ] {
        for count in [0xffff_ffff_u32, 0x8000_0000, 0x7fff_ffff, 64] {
            let raw = [&count.to_le_bytes()[..], &[0; 32]].concat();
            let failure = body(&raw).read(|source| Value::decode(&shape, source)).unwrap_err();
            assert_eq!(failure.kind(), Kind::Malformed, "{count} of {}", shape.noun());
        }
    }
    // And in headers: a key, an operation, contexts.
    for at in [24, 32, 40] {
        let mut damaged = request(1, b"op");
        damaged[at..at + 4].copy_from_slice(&[0xff; 4]);
        assert_eq!(violation(&mut *server(), &damaged), "Header", "at {at}");
    }
}

#[test]
fn g2_elements_without_size_cost_all_the_same() {
    let empty = Shape::sequence(structure("Empty", vec![]));
    let failure = body(&(1u32 << 29).to_le_bytes()).read(|source| Value::decode(&empty, source)).unwrap_err();
    assert_eq!(failure.kind(), Kind::LimitExceeded);
    // Arrays of empty structs in a type nest beyond what a count says.
    let array = |element, len| Shape::Array(shape::Hold::new(shape::Array { element, len }));
    let nested = array(array(structure("Empty", vec![]), 1 << 15), 1 << 15);
    let failure = body(&[]).read(|source| Value::decode(&nested, source)).unwrap_err();
    assert_eq!(failure.kind(), Kind::LimitExceeded);
}

/// A node of a type code with this encapsulation.
fn node(kind: u32, content: &[u8]) -> Vec<u8> {
    let content = [&[1, 0, 0, 0], content].concat();
    [&kind.to_le_bytes()[..], &(content.len() as u32).to_le_bytes(), &content].concat()
}

/// An `any` with a sequence of so many structs; each has one member of this name and type.
fn many_structs(name: usize, member: &[u8], count: u32) -> Vec<u8> {
    let text = |len: usize| {
        let mut text = (len as u32 + 1).to_le_bytes().to_vec();
        text.extend(vec![b'N'; len]);
        text.resize((4 + len + 1).next_multiple_of(4), 0);
        text
    };
    let element = node(15, &[&text(0)[..], &text(0), &[1, 0, 0, 0], &text(name), member].concat());
    [&node(19, &[&element[..], &[0; 4]].concat())[..], &count.to_le_bytes()].concat()
}

/// A few octets of a type code may not stand for many more of values, whether those take octets themselves or not.
#[test]
fn g2_types_of_nothing_and_long_names_of_members_cost_all_the_same() {
    let read = |raw: &[u8]| body(raw).read(|source| Value::decode(&Shape::Variant, source));
    for nothing in
        [&[0; 4][..], &[1, 0, 0, 0], &node(15, &[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])]
    {
        let failure = read(&many_structs(4, nothing, 500_000)).unwrap_err();
        assert_eq!(failure.kind(), Kind::Malformed, "{failure:?}");
        assert!(failure.message().contains("is a part of another type, and has no values"), "{failure:?}");
    }
    let octet = 10u32.to_le_bytes();
    let values = [many_structs(4000, &octet, 500_000), vec![7; 500_000]].concat();
    let failure = read(&values).unwrap_err();
    assert_eq!(
        (failure.kind(), failure.message().contains("bytes of decoded values")),
        (Kind::LimitExceeded, true)
    );
    let values = [many_structs(20, &octet, 100_000), vec![7; 100_000]].concat();
    assert!(read(&values).is_ok(), "names as contracts have them");
}

/// A type code of `depth` sequences around an octet.
fn deep(depth: usize) -> Vec<u8> {
    let mut code = 10u32.to_le_bytes().to_vec();
    for _ in 0..depth {
        code = node(19, &[&code[..], &[0; 4]].concat());
    }
    code
}

#[test]
fn g3_type_codes_that_nest_run_in_circles_or_explode() {
    let read = |raw: &[u8]| body(raw).read(|source| Value::decode(&Shape::Variant, source));
    assert!(read(&[&deep(20)[..], &[0; 64]].concat()).is_ok(), "20 are no matter");
    assert_eq!(read(&deep(33)).unwrap_err().kind(), Kind::LimitExceeded);
    assert_eq!(read(&deep(5000)).unwrap_err().kind(), Kind::LimitExceeded);
    // Indirections: to itself, forward, to the middle of a node, to nowhere, without a node before.
    for offset in [-4i32, 0, 4, 1, -1, -8, i32::MIN, i32::MAX] {
        let raw = [&[0xff; 4][..], &offset.to_le_bytes(), &[0; 32]].concat();
        assert_eq!(read(&raw).unwrap_err().kind(), Kind::Malformed, "{offset}");
    }
    // A sequence of itself, which no contract can say.
    let content = [&[1, 0, 0, 0][..], &[0xff; 4], &(-16i32).to_le_bytes(), &[0; 4]].concat();
    let raw = [&19u32.to_le_bytes()[..], &(content.len() as u32).to_le_bytes(), &content, &[0; 8]].concat();
    assert_eq!(read(&raw).unwrap_err().kind(), Kind::Malformed);
    // A struct of a struct of ... where each holds the one before twice: its height is bounded however it is written.
    let mut raw = Vec::new();
    raw.extend(15u32.to_le_bytes());
    let size_at = raw.len();
    raw.extend([0; 4]);
    raw.extend([1, 0, 0, 0]);
    for name in ["", ""] {
        raw.extend((name.len() as u32 + 1).to_le_bytes());
        raw.extend([0; 4]);
    }
    let levels = 40u32;
    raw.extend((levels + 1).to_le_bytes());
    let mut last = 0;
    for level in 0..=levels {
        raw.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        let node = raw.len();
        if level == 0 {
            raw.extend(15u32.to_le_bytes());
            // One octet, without a name as all here.
            let content = [1u32, 1, 0, 1, 0, 1, 1, 0, 10].map(u32::to_le_bytes).concat();
            raw.extend((content.len() as u32).to_le_bytes());
            raw.extend(content);
        } else {
            raw.extend(15u32.to_le_bytes());
            let start = raw.len();
            raw.extend([0; 4]);
            raw.extend([1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
            for _ in 0..2 {
                raw.extend([1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
                let back = last as i32 - raw.len() as i32;
                raw.extend(back.to_le_bytes());
            }
            let len = (raw.len() - start - 4) as u32;
            raw[start..start + 4].copy_from_slice(&len.to_le_bytes());
        }
        last = node;
    }
    let len = (raw.len() - size_at - 4) as u32;
    raw[size_at..size_at + 4].copy_from_slice(&len.to_le_bytes());
    assert_eq!(read(&raw).unwrap_err().kind(), Kind::LimitExceeded);
    // Any in any in any ...
    let anys = [11u32.to_le_bytes()].iter().cycle().take(10_000).flatten().copied().collect::<Vec<_>>();
    assert_eq!(read(&anys).unwrap_err().kind(), Kind::LimitExceeded);
}

#[test]
fn g4_fragment_floods() {
    // A header that announces what nobody takes: it is refused at once, and not when its time is over.
    let mut session = server();
    assert_eq!(violation(&mut *session, b"GIOP\x01\x02\x01\0\xff\xff\xff\xff"), "OverLimit");
    // Many messages that never end.
    let mut session = server();
    for id in 0..64 {
        feed(&mut *session, &first_part(id)).unwrap();
    }
    assert_eq!(violation(&mut *session, &first_part(64)), "Assemblies");
    // One message that never ends: all open ones together stay below the limit, and the caller learns why.
    let mut session =
        GIOP.accept(&Config { limits: Limits::default().with_message(4096), ..Config::default() });
    feed(&mut *session, &first_part(7)).unwrap();
    let result = (0..100).try_for_each(|_| feed(&mut *session, &fragment(7, true, &[0; 60 * 8 + 8])));
    assert_eq!(result.unwrap_err().name, "AssembledBytes");
    let sent = drain(&mut *session);
    assert_eq!((sent[7], &sent[12..16]), (1, &7u32.to_le_bytes()[..]), "a system exception goes first");
    assert!(sent.windows(9).any(|part| part == b"IMP_LIMIT"));
    // The same message begun twice; another length in the middle.
    let mut session = server();
    feed(&mut *session, &first_part(7)).unwrap();
    assert_eq!(violation(&mut *session, &first_part(7)), "FragmentedTwice");
    let mut session = server();
    feed(&mut *session, &first_part(7)).unwrap();
    assert_eq!(violation(&mut *session, &fragment(7, true, &[0; 3])), "FragmentLength");
    // Drops of a message that never ends: time is limited.
    let mut session = server();
    feed(&mut *session, &first_part(7)).unwrap();
    let due = session.deadline().unwrap();
    feed(&mut *session, &fragment(7, true, &[0; 8])).unwrap();
    assert_eq!(session.deadline(), Some(due), "a drop buys no time");
    let by = Duration::from_secs(5);
    session.postpone(by);
    assert_eq!(session.deadline(), Some(due + by), "what this side left unread does not count");
    assert_eq!(session.expire(due + by).unwrap_err().name, "TooSlow");
}

#[test]
fn g4_interleaved_fragments_are_told_apart() {
    let mut session = server();
    for id in [1, 2, 3] {
        feed(&mut *session, &first_part(id)).unwrap();
    }
    for id in [3, 1, 2] {
        feed(&mut *session, &fragment(id, true, &[id as u8; 8])).unwrap();
    }
    for id in [2, 3, 1] {
        feed(&mut *session, &fragment(id, false, &[id as u8; 3])).unwrap();
        match &events(&mut *session)[..] {
            [Event::Call(incoming)] => assert_eq!(&incoming.body.bytes[..], &[id as u8; 11]),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(session.deadline(), None);
}

/// Java's ORB withdraws a request that it has not sent to its end, and never sends the rest.
#[test]
fn g5_a_request_in_parts_ends_where_it_is_withdrawn() {
    let mut session = server();
    for round in 0..100 {
        let id = round % 10;
        feed(&mut *session, &first_part(id)).unwrap();
        assert!(session.deadline().is_some());
        feed(&mut *session, &message(2, 1, &id.to_le_bytes())).unwrap();
        assert_eq!(session.deadline(), None, "nothing is waited for");
    }
    // A part that was under way all the same is passed over, and the number may be had again.
    feed(&mut *session, &fragment(9, false, &[0; 8])).unwrap();
    assert!(events(&mut *session).is_empty());
    feed(&mut *session, &request(9, b"op")).unwrap();
    assert_eq!(events(&mut *session).len(), 1);
    // Another request's parts go on.
    feed(&mut *session, &first_part(20)).unwrap();
    feed(&mut *session, &message(2, 1, &21u32.to_le_bytes())).unwrap();
    feed(&mut *session, &fragment(20, false, &[0; 8])).unwrap();
    assert_eq!(events(&mut *session).len(), 1);
}

#[test]
fn g5_floods_of_requests_reuse_and_cancellation() {
    let mut session = server();
    feed(&mut *session, &request(7, b"op")).unwrap();
    assert_eq!(violation(&mut *session, &request(7, b"op")), "RequestIdReused");
    let limits = Limits { outstanding: 3, ..Limits::default() };
    let mut session = GIOP.accept(&Config { limits, ..Config::default() });
    // Withdrawing calls does not let more of them run.
    for id in 0..3u32 {
        feed(&mut *session, &request(id, b"op")).unwrap();
        feed(&mut *session, &message(2, 1, &id.to_le_bytes())).unwrap();
    }
    let open: Vec<_> = events(&mut *session);
    assert_eq!(open.len(), 6);
    feed(&mut *session, &request(9, b"op")).unwrap();
    assert!(events(&mut *session).is_empty());
    let sent = drain(&mut *session);
    assert!(sent.windows(9).any(|part| part == b"TRANSIENT"), "the caller is told to come later");
    // Locate requests count alike.
    let locate = message(3, 1, &[10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, b'k']);
    feed(&mut *session, &locate).unwrap();
    assert!(events(&mut *session).is_empty());
    assert_eq!(drain(&mut *session)[7], 4);
    // As calls end, others come in.
    if let Event::Call(incoming) = &open[0] {
        session.answer(incoming.id, Answer::Done(&visit::Nothing)).unwrap();
    }
    assert!(session.transmit().is_empty(), "the answer to a call that was withdrawn");
    feed(&mut *session, &request(9, b"op")).unwrap();
    assert_eq!(events(&mut *session).len(), 1);
    // This side keeps the limit as well.
    let limits = Limits { outstanding: 1, ..Limits::default() };
    let mut client = GIOP.connect(&Config { limits, ..Config::default() });
    client.probe(Instant::now(), &profile(b"k")).unwrap();
    assert_eq!(client.probe(Instant::now(), &profile(b"k")).unwrap_err().kind(), Kind::LimitExceeded);
}

#[test]
fn g6_references_received_are_data() {
    // A target by profile or reference yields its key; where it points is not looked at.
    let evil = GIOP.publish(
        "IDL:x:1.0",
        &[BindAddress::socket("giop", Endpoint::Tcp { host: "169.254.169.254".into(), port: 80 })],
        b"key",
    );
    let mut pair = Pair::new(Limits::default());
    let (id, incoming) = pair.call(&profile(b"k"), &int(), &put_int(1));
    // A forward is an outcome, for whoever called to judge: the session goes nowhere.
    assert!(matches!(pair.outcome(id, &incoming, Answer::Moved(&evil)), Outcome::Moved(_)));
    assert!(pair.client.transmit().is_empty());
    // A target of another protocol, or beyond the profiles, is refused.
    for target in [
        &[1u8, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0][..],
        &[2, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ] {
        let content = [&1u32.to_le_bytes()[..], target].concat();
        assert_eq!(violation(&mut *server(), &message(3, 1, &content)), "Target");
    }
    assert_eq!(violation(&mut *server(), &message(3, 1, &[1, 0, 0, 0, 9, 0, 0, 0])), "Addressing");
}

#[test]
fn g7_value_types_are_never_made() {
    for kind in [29u32, 31, 32, 33] {
        let raw =
            [&kind.to_le_bytes()[..], &12u32.to_le_bytes(), &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
        let failure = body(&raw).read(|source| Value::decode(&Shape::Variant, source)).unwrap_err();
        assert_eq!(failure.kind(), Kind::Unsupported, "kind {kind}");
    }
}

#[test]
fn g8_code_sets_that_nobody_knows() {
    let mut unknown = request(7, b"op");
    let at = unknown.len() - 4;
    unknown.truncate(at);
    let narrow = 0x1005_0001u32;
    unknown.extend([1, 0, 0, 0, 1, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0]);
    unknown.extend(narrow.to_le_bytes());
    unknown.extend(0x0001_0109u32.to_le_bytes());
    let size = unknown.len() as u32 - 12;
    unknown[8..12].copy_from_slice(&size.to_le_bytes());
    // CORBA 3.3 part 2, 7.10.2.6: what is incompatible is text. A call without any reaches its servant, as at omniORB.
    let mut session = server();
    feed(&mut *session, &unknown).unwrap();
    let calls = events(&mut *session);
    let [Event::Call(call)] = calls.as_slice() else { panic!("{calls:?}") };
    assert!(drain(&mut *session).is_empty(), "nothing is refused yet");
    let text = |kind| Shape::Text(Text { kind, ..Text::NARROW });
    let read = |bytes: &[u8], shape: &Shape| {
        let body = Body { bytes: bytes.to_vec().into(), base: 0, ..call.body.clone() };
        body.read(|source| Value::decode(shape, source))
    };
    let failure = read(&[2, 0, 0, 0, b'a', 0], &text(TextKind::Narrow)).unwrap_err();
    assert_eq!(failure.code(), Some("CORBA::CODESET_INCOMPATIBLE minor 0x00000000"), "{failure}");
    assert!(read(b"a", &Shape::Char).is_err());
    assert_eq!(read(&[7, 0, 0, 0], &Shape::U32).unwrap(), Value::Integer(7));
    // Wide text is in the set that it always is in.
    assert_eq!(read(&[2, 0, 0, 0, 0, b'a'], &text(TextKind::Wide)).unwrap(), Value::Text("a".into()));
    // No answer says text in it either.
    let mut refusal = |sink: &mut dyn Sink| Value::Text("a".into()).encode(&text(TextKind::Narrow), sink);
    let dialect = Dialect::from_number(call.body.dialect);
    let failure = CDR.write_as(true, dialect, 0, &mut refusal).unwrap_err();
    assert_eq!(failure.code(), Some("CORBA::CODESET_INCOMPATIBLE minor 0x00000000"), "{failure}");
}

#[test]
fn g9_requests_on_a_connection_that_this_side_opened() {
    for kind in [0, 2, 3] {
        let mut client = GIOP.connect(&Config::default());
        let mut content = request(1, b"op");
        content[7] = kind;
        assert_eq!(violation(&mut *client, &content), "NotBidirectional");
        assert!(events(&mut *client).is_empty());
    }
    // Nor does this side call back on a connection that it accepted.
    let mut session = server();
    let call = Call {
        profile: &profile(b"k"),
        method: Method::Typed { interface: None, operation: &int() },
        arguments: &put_int(1),
        expects: Expects::Reply,
    };
    assert_eq!(session.start(Instant::now(), &call).unwrap_err().kind(), Kind::Unsupported);
}

#[test]
fn headers_that_are_none() {
    for (at, octet, name) in
        [(0, b'X', "NotGiop"), (4, 2, "Version"), (5, 3, "Version"), (6, 4, "Flags"), (7, 8, "Kind")]
    {
        let mut damaged = request(1, b"op");
        damaged[at] = octet;
        assert_eq!(violation(&mut *server(), &damaged), name);
    }
    assert_eq!(violation(&mut *server(), &message(5, 1, b"x")), "Trailing");
    assert_eq!(violation(&mut *server(), &message(2, 1, &[0; 5])), "Trailing");
    assert_eq!(violation(&mut *server(), &message(5, 3, &[])), "NotFragmentable");
    assert_eq!(violation(&mut *server(), &request(1, b"")), "Header");
}

#[test]
fn a_request_over_the_limit_is_refused_in_words_and_costs_nothing() {
    let mut pair = Pair::with(&GIOP, Limits::default(), Limits::default().with_message(4096));
    let shape = Shape::sequence(Shape::U8);
    let operation = in_out("Put", shape.clone());
    let large = vec![0; 20_000];
    let put = |sink: &mut dyn Sink| sink.bytes(&shape, &large);
    let profile = profile(b"k");
    let call = Call {
        profile: &profile,
        method: Method::Typed { interface: None, operation: &operation },
        arguments: &put,
        expects: Expects::Reply,
    };
    let id = pair.client.start(Instant::now(), &call).unwrap();
    let sent = drain(&mut *pair.client);
    let mut input = BytesMut::new();
    let mut result = Ok(());
    for piece in sent.chunks(1000) {
        assert!(result.is_ok());
        input.extend_from_slice(piece);
        result = pair.server.receive(Instant::now(), &mut input, &mut Vec::new());
        assert!(input.len() < 20, "the bytes are thrown away as they come");
    }
    let violation = result.unwrap_err();
    assert_eq!(violation.name, "OverLimit");
    assert!(violation.message.contains("4096"), "{violation}");
    let mut told = pair.back().unwrap();
    assert!(matches!(told.pop(), Some(Event::Closed)), "a goodbye: the next call may go elsewhere");
    match told.pop() {
        Some(Event::Reply { id: of, outcome }) => {
            let failure = failure(outcome);
            assert_eq!((of, failure.kind()), (id, Kind::LimitExceeded));
            assert!(failure.message().contains("4096") && failure.hint().is_some(), "{failure}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_over_the_limit_names_it() {
    let mut pair = Pair::with(&GIOP, Limits::default().with_message(4096), Limits::default());
    let shape = Shape::sequence(Shape::U8);
    let (id, incoming) = pair.call(&profile(b"k"), &int(), &put_int(1));
    pair.server
        .answer(incoming.id, Answer::Done(&|sink: &mut dyn Sink| sink.bytes(&shape, &[0; 9000])))
        .unwrap();
    assert_eq!(pair.back().unwrap_err().name, "OverLimit");
    match events(&mut *pair.client).pop() {
        Some(Event::Reply { id: of, outcome }) => {
            let failure = failure(outcome);
            assert_eq!((of, failure.kind(), failure.completed()), (id, Kind::LimitExceeded, Completed::Yes));
            assert!(failure.message().contains("4096"), "{failure}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_that_has_begun_must_end() {
    let mut session = server();
    assert_eq!(session.deadline(), None);
    let now = Instant::now();
    let whole = request(1, b"op");
    let mut input = BytesMut::from(&whole[..1]);
    session.receive(now, &mut input, &mut Vec::new()).unwrap();
    assert_eq!(session.wanted(), 11);
    let due = session.deadline().unwrap();
    assert_eq!(due, now + Limits::default().message_time);
    // More bytes, a second each, buy no time.
    for at in 1..whole.len() - 1 {
        input.extend_from_slice(&whole[at..=at]);
        session.receive(now + Duration::from_secs(at as u64 / 2), &mut input, &mut Vec::new()).unwrap();
        assert_eq!(session.deadline(), Some(due));
    }
    assert_eq!(session.wanted(), 1);
    session.expire(due - Duration::from_millis(1)).unwrap();
    // What this side left unread does not count.
    let by = Duration::from_secs(5);
    session.postpone(by);
    session.expire(due).unwrap();
    assert_eq!(session.deadline(), Some(due + by));
    assert_eq!(session.expire(due + by).unwrap_err().name, "TooSlow");
    assert!(events(&mut *session).is_empty());
}

#[test]
fn replies_nobody_waits_for_are_passed_over() {
    let mut client = GIOP.connect(&Config::default());
    feed(&mut *client, &message(1, 1, &[9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])).unwrap();
    feed(&mut *client, &message(4, 1, &[9, 0, 0, 0, 1, 0, 0, 0])).unwrap();
    assert!(events(&mut *client).is_empty());
    assert_eq!(violation(&mut *client, &message(1, 1, &[9, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0])), "Status");
}

#[test]
fn fragments_of_requests_that_nobody_knows_are_passed_over() {
    let mut session = server();
    // Of what is finished, and of what never began; the last and one before it; in drops; of GIOP 1.1, which names none.
    feed(&mut *session, &first_part(7)).unwrap();
    feed(&mut *session, &fragment(7, false, &[])).unwrap();
    assert!(matches!(&events(&mut *session)[..], [Event::Call(_)]));
    feed(&mut *session, &fragment(7, false, &[])).unwrap();
    feed(&mut *session, &fragment(8, true, &[1; 3])).unwrap();
    let mut input = BytesMut::new();
    for octet in fragment(8, false, &[0; 20]) {
        input.extend_from_slice(&[octet]);
        session.receive(Instant::now(), &mut input, &mut Vec::new()).unwrap();
        assert!(input.len() < 16, "the bytes are thrown away as they come");
    }
    let mut old = fragment(0, false, b"of GIOP 1.1");
    old[5] = 1;
    feed(&mut *session, &old).unwrap();
    assert_eq!((session.deadline(), session.wanted()), (None, 0));
    assert!(session.transmit().is_empty() && events(&mut *session).is_empty());
    feed(&mut *session, &request(9, b"op")).unwrap();
    assert!(matches!(&events(&mut *session)[..], [Event::Call(_)]), "the connection goes on");
    // Their time is limited, and their size; one that is too short to name a request is no fragment.
    let long = fragment(8, false, &[0; 100]);
    feed(&mut *session, &long[..50]).unwrap();
    assert_eq!(session.wanted(), long.len() - 50);
    let due = session.deadline().unwrap();
    assert_eq!(session.expire(due).unwrap_err().name, "TooSlow");
    let limits = Limits::default().with_message(4096);
    let mut session = GIOP.accept(&Config { limits, ..Config::default() });
    assert_eq!(violation(&mut *session, &fragment(8, false, &[0; 4096])), "OverLimit");
    assert_eq!(violation(&mut *server(), &message(7, 1, &[0; 3])), "FragmentLength");
}

#[test]
fn bytes_behind_arguments_and_results_are_passed_over() {
    let mut pair = Pair::new(Limits::default());
    let put = |sink: &mut dyn Sink| sink.i32(1).and_then(|()| sink.i32(2));
    let (id, incoming) = pair.call(&profile(b"k"), &int(), &put);
    assert_eq!(incoming.body.decode::<(i32,)>(&int().arguments).unwrap(), (1,));
    match pair.outcome(id, &incoming, Answer::Done(&put)) {
        Outcome::Done(body) => assert_eq!(body.decode::<(i32,)>(&int().results).unwrap(), (1,)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stray_fragment_of_giop_1_1_leaves_request_0_alone() {
    let mut session = server();
    // The number that stands for messages of GIOP 1.1 is a request's own in GIOP 1.2.
    feed(&mut *session, &first_part(0)).unwrap();
    let mut stray = fragment(0, false, b"of nothing");
    stray[5] = 1;
    feed(&mut *session, &stray).unwrap();
    feed(&mut *session, &fragment(0, false, &[7; 3])).unwrap();
    match &events(&mut *session)[..] {
        [Event::Call(incoming)] => assert_eq!(&incoming.body.bytes[..], &[7; 3]),
        other => panic!("{other:?}"),
    }
    assert!(session.transmit().is_empty());
}
