//! Captures of omniORB, ORBit2, JacORB, the JDK's ORB and IIOP.NET.

#![allow(clippy::unwrap_used)]

use crate::support::*;
use bytes::BytesMut;
use everywire_giop::GIOP;
use everywire_model::*;
use std::time::Instant;

fn config() -> Config {
    Config::default()
}

/// What a stream holds, for sessions: requests and the like, replies and the like, or both.
fn kinds(bytes: &[u8]) -> (bool, bool) {
    let kinds: Vec<_> = messages(bytes).iter().map(|message| message[7]).collect();
    (kinds.iter().any(|kind| matches!(kind, 0 | 2 | 3)), kinds.iter().any(|kind| matches!(kind, 1 | 4)))
}

/// A client that waits for the answers of a stream, and the stream with its request ids replaced by that client's.
fn expecting(bytes: &[u8]) -> (Box<dyn Session>, Vec<u8>) {
    let mut client = GIOP.connect(&config());
    let (profile, operation) = (profile(b"k"), int());
    let mut patched = Vec::new();
    for mut message in messages(bytes) {
        if matches!(message[7], 1 | 4) {
            let call = Call {
                profile: &profile,
                method: Method::Typed { interface: None, operation: &operation },
                arguments: &put_int(0),
                expects: Expects::Reply,
            };
            let id = client.start(Instant::now(), &call).unwrap().0 as u32;
            let raw = if message[6] & 1 == 1 { id.to_le_bytes() } else { id.to_be_bytes() };
            message[12..16].copy_from_slice(&raw);
        }
        patched.extend(message);
    }
    (client, patched)
}

/// Reads the values of an event at the shapes of the races' contract.
fn values(event: &Event, replies: &str) -> Option<Value> {
    let list = |shape: Option<Shape>| structure("", shape.into_iter().map(|shape| ("v", shape)).collect());
    let any = Shape::Reference(shape::Hold::new(shape::Referent { name: "".into(), id: "".into() }));
    let (shape, body) = match event {
        Event::Call(call) => {
            let shape = match &*call.operation {
                b"in_out_int_call" => Some(Shape::I32),
                b"in_out_string_call" => Some(text()),
                b"Advise" => Some(any),
                b"Unadvise" => Some(Shape::U32),
                b"Hello" | b"HelloSync" => None,
                other => panic!("{}", other.escape_ascii()),
            };
            (shape, &call.body)
        }
        Event::Reply { outcome: Outcome::Done(body), .. } => {
            let shape = match replies {
                "in_out_int_call" => Some(Shape::I32),
                "in_out_string_call" => Some(text()),
                _ if body.bytes.is_empty() => None,
                _ => Some(Shape::U32),
            };
            (shape, body)
        }
        _ => return None,
    };
    Some(body.read(|source| Value::decode(&list(shape.clone()), source)).unwrap())
}

#[test]
fn every_capture_decodes_in_both_directions() {
    let (mut calls, mut replies, mut probes, mut closes) = (0, 0, 0, 0);
    for (name, streams) in captures() {
        let operation = name.split_once('-').map_or("", |(_, operation)| operation);
        for stream in streams {
            if name == "bidir" {
                continue;
            }
            let (asks, answers) = kinds(&stream.bytes);
            assert!(!(asks && answers), "{name}: a stream of both kinds");
            let (mut session, bytes) = if answers {
                expecting(&stream.bytes)
            } else {
                (GIOP.accept(&config()), stream.bytes.clone())
            };
            // One message at a time, each answered: ORBit2 numbers all its calls alike.
            for message in messages(&bytes) {
                feed(&mut *session, &message).unwrap_or_else(|violation| panic!("{name}: {violation}"));
                for event in events(&mut *session) {
                    values(&event, if message[7] == 4 { "" } else { operation });
                    match event {
                        Event::Call(call) => {
                            calls += 1;
                            session.answer(call.id, Answer::Done(&visit::Nothing)).unwrap();
                        }
                        Event::Probe { id, .. } => {
                            probes += 1;
                            session.answer(id, Answer::Done(&visit::Nothing)).unwrap();
                        }
                        Event::Reply { outcome: Outcome::Done(_), .. } => replies += 1,
                        Event::Closed => closes += 1,
                        other => panic!("{name}: {other:?}"),
                    }
                }
            }
        }
    }
    assert!(
        calls >= 70 && replies >= 60 && probes >= 7 && closes >= 5,
        "{calls} {replies} {probes} {closes}"
    );
}

#[test]
fn references_in_captures_reach_their_sinks() {
    let mut seen = Vec::new();
    for (name, streams) in captures().into_iter().filter(|(name, _)| name.ends_with("advise_unadvise")) {
        for stream in streams.iter().filter(|stream| kinds(&stream.bytes).0) {
            let mut server = GIOP.accept(&config());
            feed(&mut *server, &messages(&stream.bytes).into_iter().find(|message| message[7] == 0).unwrap())
                .unwrap();
            let event = events(&mut *server).pop().unwrap();
            let Some(Value::Struct(fields)) = values(&event, "") else { panic!("{name}") };
            let (_, Value::Reference(Some(reference))) = &fields[0] else { panic!("{name}: {fields:?}") };
            assert_eq!(reference.type_id, "IDL:Sink:1.0", "{name}");
            let tcp = reference.profiles[0]
                .endpoints
                .iter()
                .any(|endpoint| matches!(endpoint, Endpoint::Tcp { .. }));
            assert!(tcp && !reference.profiles[0].key.is_empty(), "{name}: {reference:?}");
            // Passed on and read again, it is the same.
            assert_eq!(&GIOP.parse(&GIOP.print(reference)).unwrap(), reference, "{name}");
            seen.push(name.clone());
        }
    }
    assert_eq!(seen.len(), 5, "{seen:?}");
}

#[test]
fn every_capture_explains_without_complaint() {
    for (name, streams) in captures() {
        for stream in streams {
            let listing = GIOP.explain(&stream.bytes);
            assert_eq!((listing.messages.len(), listing.rest), (messages(&stream.bytes).len(), 0), "{name}");
            for message in &listing.messages {
                for part in &message.parts {
                    assert!(part.offset + part.len <= message.len, "{name}: {part:?}");
                    assert!(!matches!(part.name, "violation" | "ends early"), "{name}: {part:?}");
                }
            }
        }
    }
}

#[test]
fn steady_calls_are_the_bytes_of_omniorb() {
    for operation in ["in_out_int_call", "in_out_string_call"] {
        let capture =
            captures().into_iter().find(|(name, _)| *name == format!("omni-{operation}")).unwrap().1;
        let find = |wanted: u8| {
            capture
                .iter()
                .find(|stream| messages(&stream.bytes).iter().any(|message| message[7] == wanted))
                .unwrap()
        };
        let requests: Vec<_> =
            messages(&find(0).bytes).into_iter().filter(|message| message[7] == 0).collect();
        let replies: Vec<_> =
            messages(&find(1).bytes).into_iter().filter(|message| message[7] == 1).collect();
        let mut client = GIOP.connect(&config());
        let mut server = GIOP.accept(&config());
        let shape = if operation == "in_out_int_call" { Shape::I32 } else { text() };
        let described = in_out(operation, shape.clone());
        for (request, reply) in requests.iter().zip(&replies) {
            feed(&mut *server, request).unwrap();
            let Some(Event::Call(incoming)) = events(&mut *server).pop() else { panic!() };
            let value = value(&shape, &incoming.body);
            let answered = match &value {
                Value::Integer(number) => Value::Integer(number + 1),
                other => other.clone(),
            };
            server
                .answer(incoming.id, Answer::Done(&|sink: &mut dyn Sink| answered.encode(&shape, sink)))
                .unwrap();
            assert_eq!(drain(&mut *server), *reply);
            // The client's side: the same key, number and value.
            let mut profile = profile(&incoming.key);
            // omniORB's server prefers ISO-8859-1.
            profile.components = GIOP.parse(OMNIORB).unwrap().profiles.remove(0).components;
            let wanted = u32::from_le_bytes(request[12..16].try_into().unwrap());
            let arguments = |sink: &mut dyn Sink| value.encode(&shape, sink);
            let call = Call {
                profile: &profile,
                method: Method::Typed { interface: None, operation: &described },
                arguments: &arguments,
                expects: Expects::Reply,
            };
            let first = client.outstanding() == 0;
            let mine = loop {
                let id = client.start(Instant::now(), &call).unwrap().0;
                let sent = drain(&mut *client);
                if first && id == 1 {
                    // The request that says which code sets are used is as large as omniORB's.
                    assert_eq!(sent.len(), requests[0].len());
                }
                if id == u64::from(wanted) {
                    break sent;
                }
            };
            if request != &requests[0] {
                // omniORB leaves what it finds in the padding: after the key, and before the arguments.
                let mut theirs = request.clone();
                let key_end = 28 + incoming.key.len();
                theirs[key_end..key_end.next_multiple_of(4)].fill(0);
                let end = key_end.next_multiple_of(4) + 4 + (operation.len() + 1).next_multiple_of(4) + 4;
                let name_end = key_end.next_multiple_of(4) + 4 + operation.len() + 1;
                theirs[name_end..name_end.next_multiple_of(4)].fill(0);
                theirs[end..end.next_multiple_of(8)].fill(0);
                assert_eq!(mine, theirs);
            }
        }
    }
}

/// A reference that omniORB's `genior` made.
const OMNIORB: &str = "IOR:010000000a00000049444c3a783a312e30000000010000000000000054000000010102000a0000003132372e302e302e3100d204030000006b6579000200000000000000080000000100000000545441010000001c00000001000000010001000100000001000105090101000100000009010100";

/// Feeds a stream in pieces to both kinds of sessions and reads all values; what comes is an event or a named
/// violation. The events, as text.
fn outcome(mut session: Box<dyn Session>, pieces: &[&[u8]]) -> String {
    let mut input = BytesMut::new();
    let mut seen = String::new();
    for piece in pieces {
        input.extend_from_slice(piece);
        let result = session.receive(Instant::now(), &mut input, &mut Vec::new());
        for event in events(&mut *session) {
            let body = match &event {
                Event::Call(incoming) => Some(&incoming.body),
                Event::Reply { outcome: Outcome::Done(body), .. } => Some(body),
                Event::Reply { outcome: Outcome::Raised(raised), .. } => Some(&raised.body),
                _ => None,
            };
            for shape in [Shape::I32, text(), Shape::Variant, wide_text()] {
                let list = structure("", vec![("v", shape)]);
                let _ = body.map(|body| body.read(|source| Value::decode(&list, source)).is_ok());
            }
            seen.push_str(&format!("{event:?}\n"));
        }
        if let Err(violation) = result {
            assert!(!violation.name.is_empty() && violation.wire == "giop");
            seen.push_str(&format!("{violation}\n"));
            break;
        }
        if !input.is_empty() {
            assert!(session.wanted() > 0, "a message has begun, and nothing is wanted");
            assert!(session.deadline().is_some(), "a message has begun, and may take for ever");
        }
    }
    seen
}

fn accepting() -> Box<dyn Session> {
    GIOP.accept(&config())
}

#[test]
fn every_capture_may_come_in_any_pieces() {
    for (name, streams) in captures() {
        for stream in streams {
            let whole = outcome(accepting(), &[&stream.bytes]);
            let (client, patched) = expecting(&stream.bytes);
            let whole_client = outcome(client, &[&patched]);
            for at in 0..=stream.bytes.len() {
                let (front, back) = stream.bytes.split_at(at);
                assert_eq!(outcome(accepting(), &[front, back]), whole, "{name}, split at {at}");
                let (front, back) = patched.split_at(at);
                assert_eq!(
                    outcome(expecting(&stream.bytes).0, &[front, back]),
                    whole_client,
                    "{name}, split at {at}"
                );
            }
            let bytes: Vec<&[u8]> = stream.bytes.chunks(1).collect();
            assert_eq!(outcome(accepting(), &bytes), whole, "{name}, byte by byte");
            let bytes: Vec<&[u8]> = patched.chunks(1).collect();
            assert_eq!(outcome(expecting(&stream.bytes).0, &bytes), whole_client, "{name}, byte by byte");
        }
    }
}

#[test]
fn no_damage_to_a_capture_does_more_than_end_its_connection() {
    for (name, streams) in captures() {
        if !name.starts_with("omni") && !name.starts_with("jac-adv") && !name.starts_with("jdk-in") {
            continue;
        }
        for stream in streams {
            // Each octet of what is short, and of the beginning of what is long; then every seventh, which is now the first
            // octet of a word, now the last one. All of them would cost the square of the length.
            let dense = stream.bytes.len().min(300);
            for at in (0..dense).chain((dense..stream.bytes.len()).step_by(7)) {
                outcome(accepting(), &[&stream.bytes[..at]]);
                GIOP.explain(&stream.bytes[..at]);
                for octet in [0x00, 0x7f, 0x80, 0xff] {
                    let mut damaged = stream.bytes.clone();
                    damaged[at] = octet;
                    outcome(accepting(), &[&damaged]);
                    GIOP.explain(&damaged);
                    let (client, mut patched) = expecting(&stream.bytes);
                    patched[at] = octet;
                    outcome(client, &[&patched]);
                }
            }
        }
    }
}

#[test]
fn text_is_shown_in_the_character_sets_that_its_request_tells() {
    for (set, text) in [(0x0001_0001u32, "\u{c3}\u{a9}"), (0x0501_0001, "\u{e9}")] {
        let mut raw = b"GIOP\x01\x02\x00\x00\0\0\0\0\0\0\0\x07\x03\0\0\0\0\0\0\0\0\0\0\x01k\0\0\0\0\0\0\x05echo\0\0\0\0".to_vec();
        raw.extend(b"\0\0\0\x01\0\0\0\x01\0\0\0\x0c\0\0\0\0");
        raw.extend(set.to_be_bytes());
        raw.extend(b"\0\x01\x01\x09");
        raw.resize(raw.len().next_multiple_of(8), 0);
        raw.extend(b"\0\0\0\x03\xc3\xa9\0");
        raw[11] = u8::try_from(raw.len() - 12).unwrap();
        let listing = GIOP.explain(&raw);
        let body = GIOP.body_of(&raw, &listing.messages[0], None).unwrap();
        assert_eq!(
            value(&crate::support::text(), &body),
            Value::Text(text.into()),
            "{:?}",
            listing.messages[0].parts
        );
    }
}
