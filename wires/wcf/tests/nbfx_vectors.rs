//! Documents that Microsoft's writer made: read, shown as XML, written again.

#![allow(clippy::unwrap_used)]

use crate::common::{records, vectors, written};
use everywire_wcf::dictionary::{static_id, static_word};
use everywire_wcf::nbfx::{Prefix, Record, Text, Word, Writer, integral, real, single, xml};

#[test]
fn every_whole_vector_reads_to_the_end_and_writes_the_same_bytes() {
    let mut count = 0;
    for vector in vectors().iter().filter(|vector| vector.is_whole()) {
        let records =
            records(&vector.document).unwrap_or_else(|failure| panic!("{}: {failure}", vector.name));
        assert_eq!(written(&records), vector.document, "{}", vector.name);
        count += 1;
    }
    assert_eq!(count, 126);
}

/// The names of a session are not in the file, so documents that use them are left to the test above.
#[test]
fn every_vector_without_session_words_shows_its_xml() {
    let mut count = 0;
    for vector in vectors().iter().filter(|vector| vector.is_whole() && !vector.xml.contains("..len=")) {
        let shown = xml::to_xml(&vector.document, static_word).unwrap();
        if shown.contains('{') {
            continue;
        }
        // The record is the number 0, which has no sign.
        let expected = if vector.name == "double -0" { "<e>0</e>" } else { vector.xml };
        assert_eq!(shown, expected, "{}", vector.name);
        count += 1;
    }
    assert_eq!(count, 85);
}

/// Element `e` with what `content` writes in it.
fn element(content: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.put(&Record::Element(Prefix::None, Word::Inline("e")));
    content(&mut writer);
    writer.end();
    writer.into_bytes()
}

/// The vector's document, or none if no vector has this name.
fn document(name: &str) -> Vec<u8> {
    vectors().into_iter().find(|vector| vector.name == name).unwrap_or_else(|| panic!("{name}")).document
}

#[test]
fn numbers_are_written_in_the_records_that_microsofts_writer_chooses() {
    let mut count = 0;
    for vector in vectors() {
        let Some((kind, number)) = vector.name.split_once(' ') else { continue };
        let ours = match kind {
            "int" | "long" => element(|writer| writer.text(integral(number.parse().unwrap()))),
            "float" => element(|writer| writer.text(single(number.parse().unwrap()))),
            "bool" => element(|writer| writer.text(if number == "true" { Text::True } else { Text::False })),
            "double" if number == "NaN" => element(|writer| writer.text(real(f64::from_bits(0xfff8 << 48)))),
            // The sign of a negative zero may be kept.
            "double" if number != "-0" => element(|writer| writer.text(real(number.parse().unwrap()))),
            _ => continue,
        };
        assert_eq!(ours, vector.document, "{}", vector.name);
        count += 1;
    }
    assert_eq!(count, 30);
}

#[test]
fn octets_are_written_in_whole_groups_of_three_and_a_rest() {
    for len in [0, 1, 2, 3, 255, 256] {
        let ours = element(|writer| grouped(&vec![0; len], writer));
        assert_eq!(ours, document(&format!("base64 {len}")), "{len} octets");
    }
    // The peer may end the element in a record of its own: compare what stands in front.
    for len in [65_535, 65_536, 1_000_000] {
        let ours = element(|writer| grouped(&vec![0; len], writer));
        let vector = vectors().into_iter().find(|vector| vector.name == format!("base64 {len}")).unwrap();
        assert_eq!(ours[4..24], vector.document[4..24], "{len} octets");
        let end = usize::from(len == 65_535);
        assert_eq!(ours.len() + end, vector.length, "{len} octets");
        assert_eq!(octets(&ours), len);
    }
}

/// Octets as Microsoft writes them: whole groups of three first, so that readers can view each record as base64,
/// then the rest.
fn grouped(octets: &[u8], writer: &mut Writer) {
    let (groups, rest) = octets.split_at(octets.len() - octets.len() % 3);
    for part in [groups, rest].into_iter().filter(|part| !part.is_empty()) {
        writer.text(Text::Bytes(part));
    }
}

/// How many octets stand in all records.
fn octets(document: &[u8]) -> usize {
    let parts = records(document).unwrap().into_iter().map(|record| match record {
        Record::Text(Text::Bytes(raw), _) => raw.len(),
        _ => 0,
    });
    parts.sum()
}

#[test]
fn text_is_written_behind_the_shortest_length() {
    for (len, code) in [(255, 0x98), (256, 0x9a), (65_535, 0x9a), (65_536, 0x9c), (200_000, 0x9c)] {
        let text = "a".repeat(len);
        let ours = element(|writer| writer.chars(&text));
        let name =
            if len == 200_000 { "string long split 200000".to_owned() } else { format!("string {len}") };
        let vector = vectors().into_iter().find(|vector| vector.name == name).unwrap();
        assert_eq!(vector.document[3], code, "{name}");
        assert_eq!(ours[3], code | 1, "{name}");
        // The peer ends these elements in a record of its own.
        assert_eq!(ours[4..20], vector.document[4..20], "{name}");
        assert_eq!(ours.len() + 1, vector.length, "{name}");
    }
}

#[test]
fn the_static_dictionary_is_whole() {
    assert_eq!(static_word(0), Some("mustUnderstand"));
    assert_eq!(static_word(2), Some("Envelope"));
    assert_eq!(static_word(162), Some(""));
    assert_eq!(static_word(424), Some(" http://schemas.xmlsoap.org/ws/2005/02/trust/tlsnego"));
    assert!(static_word(972).is_some());
    assert_eq!((static_word(974), static_word(1), static_word(u32::MAX)), (None, None, None));
    for id in (0..=972).step_by(2) {
        let word = static_word(id).unwrap();
        assert_eq!(static_id(word).and_then(static_word), Some(word));
    }
}
