//! Envelopes captured between .NET, Mono and Microsoft's client on net.tcp: read with the words of their sessions.

#![allow(clippy::unwrap_used)]

use crate::common::{each_document, payload_of, records, written};
use everywire_wcf::dictionary::{Outgoing, split};
use everywire_wcf::nbfx::{Record, Text, Word, xml};

#[test]
fn every_envelope_reads_to_the_end_and_writes_the_same_bytes() {
    let mut count = 0;
    each_document(|envelope, document, _| {
        let records = records(document).unwrap_or_else(|failure| panic!("{}: {failure}", envelope.capture));
        assert_eq!(written(&records), document, "{}", envelope.capture);
        count += 1;
    });
    assert_eq!(count, 120);
}

#[test]
fn every_word_of_every_envelope_is_known_in_its_session() {
    let mut count = 0;
    each_document(|envelope, document, words| {
        for record in records(document).unwrap() {
            let word = match record {
                Record::Element(_, word) | Record::Xmlns(_, word) => word,
                Record::Attribute(_, word, _) => word,
                Record::Text(Text::Word(id) | Text::QName(_, id), _) => Word::Id(id),
                _ => continue,
            };
            if let Word::Id(id) = word {
                assert!(words.word(id).is_some(), "{}: word {id}", envelope.capture);
                count += 1;
            }
        }
    });
    assert!(count > 1000, "{count}");
}

#[test]
fn every_envelope_is_a_soap_envelope_with_an_action_and_a_body() {
    each_document(|envelope, document, words| {
        let shown = xml::to_xml(document, |id| words.word(id)).unwrap();
        assert!(
            shown.starts_with("<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\""),
            "{shown}"
        );
        assert!(shown.contains("<a:Action s:mustUnderstand=\"1\">"), "{}: {shown}", envelope.capture);
        assert!(shown.contains("<s:Body"), "{}: {shown}", envelope.capture);
        assert!(shown.ends_with("</s:Envelope>"), "{}: {shown}", envelope.capture);
        assert!(!shown.contains('{'), "{}: {shown}", envelope.capture);
    });
}

#[test]
fn bodies_of_the_known_calls_stand_in_the_envelopes() {
    let mut found = Vec::new();
    each_document(|envelope, document, words| {
        let shown = xml::to_xml(document, |id| words.word(id)).unwrap();
        let body = shown.split_once("<s:Body>").and_then(|(_, rest)| rest.split_once("</s:Body>"));
        if let ("msclient-tcp-InOutInt" | "msclient-tcp-InOutString", Some((body, _))) =
            (envelope.capture, body)
        {
            found.push(body.to_owned());
        }
    });
    let expected = [
        "<InOutInt xmlns=\"http://tempuri.org/\"><x>5</x></InOutInt>",
        "<InOutIntResponse xmlns=\"http://tempuri.org/\"><x>6</x></InOutIntResponse>",
        "<InOutString xmlns=\"http://tempuri.org/\"><s>abc</s></InOutString>",
        "<InOutStringResponse xmlns=\"http://tempuri.org/\"><s>abc!</s></InOutStringResponse>",
    ];
    assert_eq!(found, expected);
}

/// A reply of 100 octets: two records, 99 and 1, that are one value.
#[test]
fn octets_of_a_captured_reply_join() {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    each_document(|envelope, document, _| {
        if (envelope.capture, envelope.side) == ("msclient-tcp-100", "S") {
            for record in records(document).unwrap() {
                if let Record::Text(Text::Bytes(raw), _) = record {
                    parts.push(raw.to_vec());
                }
            }
        }
    });
    assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [99, 1]);
    assert_eq!(parts.concat(), (0..100).collect::<Vec<u8>>());
}

/// A table built of the words that a peer sent, in their order, is the table that the peer sent.
#[test]
fn a_session_table_is_written_as_the_peer_wrote_it() {
    let mut count = 0;
    each_document(|envelope, document, words| {
        // First envelopes only: their table holds all words of the session so far.
        let (table, _) = split(&envelope.payload).unwrap();
        let mut outgoing = Outgoing::session();
        outgoing.use_static = false;
        for index in 0..words.len() {
            let id = u32::try_from(2 * index + 1).unwrap();
            assert_eq!(outgoing.id(words.word(id).unwrap()), Some(id), "{}", envelope.capture);
        }
        if !table.is_empty() && outgoing.fresh().len() == table.len() {
            assert_eq!(payload_of(&mut outgoing, document), envelope.payload, "{}", envelope.capture);
            count += 1;
        }
    });
    assert!(count > 30, "{count}");
}
