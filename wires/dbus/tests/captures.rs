//! Messages of other implementations: 10,000 that dbus-monitor wrote, and greetings of four clients.
#![allow(clippy::unwrap_used)]

use crate::common::*;
use bytes::Bytes;
use everywire_dbus::frame::{Fields, HEADER, Header};
use everywire_dbus::{DBUS, VALUES, Values};
use everywire_model::wire::Sniff;
use everywire_model::{Codec, Event, Value, Wire};

/// The packets of a pcap file.
fn packets(file: &[u8]) -> Vec<&[u8]> {
    let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    assert_eq!(number(0), 0xa1b2_c3d4);
    let (mut at, mut found) = (24, Vec::new());
    while at < file.len() {
        let len = number(at + 8);
        found.push(&file[at + 16..at + 16 + len]);
        at += 16 + len;
    }
    found
}

#[test]
fn every_message_that_dbus_monitor_saw_is_read_and_written_again() {
    let file = include_bytes!("data/dbus-monitor.pcap");
    let packets = packets(file);
    assert!(packets.len() > 10_000, "{}", packets.len());
    let (mut bodies, mut kinds) = (0, [0; 5]);
    for message in packets {
        let header = Header::read(message.first_chunk::<HEADER>().unwrap()).unwrap();
        assert_eq!(header.len(), message.len() as u64);
        kinds[usize::from(header.kind)] += 1;
        let raw = Bytes::copy_from_slice(&message[HEADER..HEADER + header.fields as usize]);
        let fields = Fields::read(&raw, &header).unwrap();
        let bytes = Bytes::copy_from_slice(&message[header.body_at()..]);
        let body = Values::body(
            bytes.clone(),
            header.body_at(),
            header.little,
            (&*fields.signature).into(),
            Vec::new(),
        );
        let shape = VALUES.shape(&body).unwrap();
        let value = body.read(|source| Value::decode(&shape, source)).unwrap();
        // The values leave no freedom: a second writing has the same bytes.
        let again = VALUES.write_as(header.little, &mut |sink| value.encode(&shape, sink)).unwrap();
        assert_eq!((&again.bytes, &*again.context), (&bytes, &*fields.signature));
        bodies += usize::from(header.body > 0);
        let listing = DBUS.explain(message);
        assert_eq!((listing.messages.len(), listing.rest), (1, 0));
    }
    assert!(bodies > 5000 && kinds[1] > 5000 && kinds[2] > 5000 && kinds[4] > 0, "{bodies} {kinds:?}");
}

/// What one direction of a captured connection says, chunk by chunk.
fn chunks(text: &str, direction: &str) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut ours = false;
    for line in text.lines() {
        if line.starts_with("C->S") || line.starts_with("S->C") {
            ours = line.starts_with(direction);
            if ours {
                found.push(Vec::new());
            }
        } else if let (true, Some(hex), Some(last)) =
            (ours, line.get(2..74.min(line.len())), found.last_mut())
        {
            let digits: Vec<u8> =
                hex.split("  ").next().unwrap().bytes().filter(u8::is_ascii_hexdigit).collect();
            last.extend(
                digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()),
            );
        }
    }
    found
}

#[test]
fn clients_of_others_are_let_in_and_their_calls_are_understood() {
    for (name, text) in [
        ("zbus", include_str!("data/connect-zbus-dbusdaemon.txt")),
        ("sd-bus", include_str!("data/connect-sdbus-dbusdaemon.txt")),
        ("libdbus", include_str!("data/connect-libdbus-dbusdaemon.txt")),
        ("gdbus", include_str!("data/connect-gdbus-dbusdaemon.txt")),
    ] {
        let mut config = config();
        config.peer.credentials = Some((1, 0));
        let mut server = Side::new(DBUS.accept(&config));
        let mut all = Vec::new();
        for chunk in chunks(text, "C->S") {
            server.hear(&chunk).unwrap_or_else(|violation| panic!("{name}: {violation}"));
            all.extend_from_slice(&chunk);
        }
        let said = server.said();
        let word = |word: &[u8]| said.windows(word.len()).any(|window| window == word);
        assert!(word(b"OK ") && word(b"AGREE_UNIX_FD"), "{name}: {}", said.escape_ascii());
        let events = server.events();
        assert!(
            matches!(&events[0], Event::Ready(peer) if peer.authentication == "unix credentials"),
            "{name}"
        );
        let members: Vec<_> = events[1..]
            .iter()
            .map(|event| match event {
                Event::Call(call) => String::from_utf8_lossy(&call.operation).into_owned(),
                other => panic!("{name}: {other:?}"),
            })
            .collect();
        assert_eq!(members[0], "Hello", "{name}");
        assert!(
            members.len() > 10 && members.iter().any(|member| member == "in_int_call"),
            "{name}: {members:?}"
        );
        // The first call's number, before and after the greeting, and the listing of the whole.
        assert_eq!(DBUS.sniff(&all), Sniff::Yes, "{name}");
        let listing = DBUS.explain(&all);
        assert!(listing.messages.iter().any(|line| line.kind == "BEGIN"), "{name}");
        let calls = listing.messages.iter().filter(|message| message.kind == "METHOD_CALL").count();
        assert_eq!(calls, members.len(), "{name}");
    }
}

#[test]
fn replies_of_a_real_bus_let_a_client_in() {
    let text = include_str!("data/connect-zbus-dbusdaemon.txt");
    let mut config = config();
    config.profile.components.push((everywire_dbus::TAG_BUS, Bytes::from_static(b"session")));
    let mut client = Side::new(DBUS.connect(&config));
    // It says what zbus says, in one go: greeting, agreement and Hello.
    let first = client.said();
    let theirs = &chunks(text, "C->S")[0];
    assert_eq!(
        first.iter().filter(|octet| **octet == b'\n').count(),
        theirs.iter().filter(|octet| **octet == b'\n').count()
    );
    client.hear(&chunks(text, "S->C")[0]).unwrap();
    assert!(matches!(client.event(), Event::Ready(_)));
}
