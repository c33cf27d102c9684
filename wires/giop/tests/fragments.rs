//! Messages in parts: how often what was read is moved until it is one message.

#![allow(clippy::unwrap_used)]

use crate::support::*;
use everywire_giop::GIOP;
use everywire_model::*;
use std::time::Instant;

/// Reads as a link does: into the room behind the input, at most `unit` octets at a time. Where each octet was written.
fn read_as_a_link(session: &mut dyn Session, stream: &[u8], unit: usize) -> Vec<usize> {
    const READ: usize = 16 << 10;
    let mut input = bytes::BytesMut::new();
    let (mut rest, mut places) = (stream, Vec::with_capacity(stream.len()));
    while !rest.is_empty() {
        let wanted = READ.max(session.wanted());
        if input.capacity() - input.len() < wanted {
            input.reserve(wanted);
        }
        let n = (input.capacity() - input.len()).min(unit).min(rest.len());
        let (now, later) = rest.split_at(n);
        let start = input.as_ptr() as usize + input.len();
        input.extend_from_slice(now);
        places.extend(start..start + n);
        session.receive(Instant::now(), &mut input, &mut Vec::new()).unwrap();
        rest = later;
    }
    places
}

/// A reply to the call `id` with these octets for its results, in parts that end at these places of the results.
fn reply_in_parts(id: CallId, results: &[u8], ends: &[usize]) -> Vec<u8> {
    let mut stream = Vec::new();
    let mut at = 0;
    for (index, end) in ends.iter().chain([&results.len()]).enumerate() {
        let more = u8::from(*end != results.len()) << 1;
        let mut content = (id.0 as u32).to_le_bytes().to_vec();
        if index == 0 {
            content.extend([0; 8]);
        }
        content.extend(&results[at..*end]);
        at = *end;
        stream.extend(b"GIOP\x01\x02");
        stream.extend([1 | more, if index == 0 { 1 } else { 7 }]);
        stream.extend((content.len() as u32).to_le_bytes());
        stream.extend(content);
    }
    stream
}

fn asking() -> (Box<dyn Session>, CallId) {
    let limits = Limits::default().with_message(64 << 20);
    let mut client = GIOP.connect(&Config { limits, ..Config::default() });
    let (profile, operation) = (profile(b"k"), int());
    let call = Call {
        profile: &profile,
        method: Method::Typed { interface: None, operation: &operation },
        arguments: &put_int(1),
        expects: Expects::Reply,
    };
    let id = client.start(Instant::now(), &call).unwrap();
    drain(&mut *client);
    (client, id)
}

#[test]
fn a_large_fragment_stays_where_it_was_read() {
    // As omniORB sends 1,000,024 octets: 1000, most of it, and 4.
    let results: Vec<u8> = (0..1_000_024u32).map(|at| (at % 251) as u8).collect();
    let (mut client, id) = asking();
    let stream = reply_in_parts(id, &results, &[1000, 1_000_008]);
    let places = read_as_a_link(&mut *client, &stream, usize::MAX);
    let Some(Event::Reply { outcome: Outcome::Done(body), .. }) = events(&mut *client).pop() else {
        panic!()
    };
    assert_eq!(&body.bytes[..], &results[..]);
    let start = body.bytes.as_ptr() as usize;
    // Headers: 24 octets of the first part, 16 of the second.
    let moved = (1000..1_000_008).filter(|at| places[at + 24 + 16] != start + at).count();
    assert!(moved < results.len() / 3, "{moved} of {} octets were moved", results.len());
}

#[test]
fn a_large_first_part_stays_where_it_was_read() {
    // As omniORB sends 1,000,004 octets: nearly all of it, and 4.
    let results: Vec<u8> = (0..1_000_004u32).map(|at| (at % 251) as u8).collect();
    let (mut client, id) = asking();
    let stream = reply_in_parts(id, &results, &[1_000_000]);
    let mut places = Vec::new();
    let taken = allocation_counter::measure(|| {
        places = read_as_a_link(&mut *client, &stream, usize::MAX);
    });
    let Some(Event::Reply { outcome: Outcome::Done(body), .. }) = events(&mut *client).pop() else {
        panic!()
    };
    assert_eq!(&body.bytes[..], &results[..]);
    let start = body.bytes.as_ptr() as usize;
    let moved = (20_000..1_000_000).filter(|at| places[at + 24] != start + at).count();
    assert_eq!(moved, 0, "of {} octets", results.len());
    // The list of places, and room for one message.
    let places = places.capacity() * size_of::<usize>();
    assert!(taken.bytes_total < places as u64 + 1_300_000, "{} bytes", taken.bytes_total);
}

#[test]
fn parts_of_all_sizes_arrive_whole_however_they_are_read() {
    let mut seed = 7u32;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as usize % below
    };
    for round in 0..60 {
        let len = 1 + random([100, 5000, 300_000, 2_000_000][round % 4]);
        let results: Vec<u8> = (0..len).map(|at| (at % 253) as u8).collect();
        let mut ends: Vec<usize> = (0..random(8)).map(|_| random(len)).collect();
        ends.sort_unstable();
        // All but the last end at a multiple of 8 of the message: headers have 24 octets, and 16.
        ends.iter_mut().for_each(|end| *end &= !7);
        ends.dedup();
        let (mut client, id) = asking();
        let unit = [usize::MAX, 1 + random(100_000), 1 + random(3000) + len / 500][round % 3];
        read_as_a_link(&mut *client, &reply_in_parts(id, &results, &ends), unit);
        match events(&mut *client).pop() {
            Some(Event::Reply { outcome: Outcome::Done(body), .. }) => {
                assert!(body.bytes == results, "{round}")
            }
            other => panic!("{round}: {other:?}"),
        }
        assert_eq!(client.deadline(), None);
    }
}

/// A call of GlassFish's ORB, in its byte order and with the version that it sends beside each message.
fn call_of_glassfish(id: u32) -> Vec<u8> {
    let mut content = id.to_be_bytes().to_vec();
    content.extend([3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    content.extend(b"k\0\0\0\0\0\0\x04get\0");
    content.extend(b"\0\0\0\x01NEO\0\0\0\0\x02\0\x14");
    let mut message = b"GIOP\x01\x02\0\0".to_vec();
    message.extend((content.len() as u32).to_be_bytes());
    message.extend(content);
    message
}

/// What GlassFish's ORB reads of one message or part; a larger one ends the connection.
const GLASSFISH: usize = 256_000;

fn octets(len: usize) -> impl Fn(&mut dyn Sink) -> Visit<()> {
    move |sink| (0..len).try_for_each(|at| sink.u8((at % 251) as u8))
}

#[test]
fn a_peer_with_the_mark_of_sun_gets_large_answers_in_parts_that_it_reads() {
    let mut server = GIOP.accept(&Config::default());
    for (id, len, parts) in [(1, 1_000_000, 16), (2, 1000, 1)] {
        feed(&mut *server, &call_of_glassfish(id)).unwrap();
        let Some(Event::Call(incoming)) = events(&mut *server).pop() else { panic!() };
        server.answer(incoming.id, Answer::Done(&octets(len))).unwrap();
        let sent = messages(&drain(&mut *server));
        assert!(sent.iter().all(|part| part.len() <= GLASSFISH), "{:?}", sent.first().map(Vec::len));
        assert_eq!(sent.len(), parts);
    }
}

#[test]
fn a_peer_with_the_mark_of_sun_gets_large_requests_in_parts_that_it_reads() {
    let of_sun = |told: bool| {
        let mut profile = profile(b"k");
        if told {
            profile.components.push((38, Bytes::from_static(b"\0\x02")));
        }
        profile
    };
    let send = |client: &mut dyn Session, profile: &Profile| {
        let operation = int();
        let method = Method::Typed { interface: None, operation: &operation };
        let call = Call { profile, method, arguments: &octets(300_000), expects: Expects::Reply };
        let id = client.start(Instant::now(), &call).unwrap();
        (id, messages(&drain(client)).iter().map(Vec::len).max().unwrap())
    };
    // Its reference says so.
    let mut client = GIOP.connect(&Config::default());
    assert!(send(&mut *client, &of_sun(true)).1 <= GLASSFISH);
    // Nothing says so, until a later reference to the same server does.
    let mut client = GIOP.connect(&Config::default());
    assert!(send(&mut *client, &of_sun(false)).1 > GLASSFISH);
    assert!(send(&mut *client, &of_sun(true)).1 <= GLASSFISH);
    // It says so for all profiles, beside them.
    let mut reference = Reference { profiles: vec![of_sun(false)], ..Reference::default() };
    reference.foreign.push((1, Bytes::from_static(b"\0\0\0\0\0\0\0\x01\0\0\0\x26\0\0\0\x02\0\x02")));
    let profile = GIOP.parse(&GIOP.print(&reference)).unwrap().profiles.remove(0);
    assert!(send(&mut *GIOP.connect(&Config::default()), &profile).1 <= GLASSFISH);
    // Parts of GIOP 1.1 cannot be joined by all.
    let old = Profile { version: (1, 1), ..of_sun(true) };
    assert!(send(&mut *GIOP.connect(&Config::default()), &old).1 > GLASSFISH);
    // Nothing says so, until an answer does.
    let mut client = GIOP.connect(&Config::default());
    let (id, largest) = send(&mut *client, &of_sun(false));
    assert!(largest > GLASSFISH);
    let mut reply = b"GIOP\x01\x02\0\x01\0\0\0\x18".to_vec();
    reply.extend((id.0 as u32).to_be_bytes());
    reply.extend(b"\0\0\0\0\0\0\0\x01NEO\0\0\0\0\x02\0\x14\0\0");
    feed(&mut *client, &reply).unwrap();
    assert!(send(&mut *client, &of_sun(false)).1 <= GLASSFISH);
}
