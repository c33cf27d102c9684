//! Documents made to harm: each is refused by name, none costs more than its size, none panics.

#![allow(clippy::unwrap_used)]

mod common;

use common::{each_document, records, unhex, vectors, violation, written};
use everywire_wcf::dictionary::{Incoming, Outgoing};
use everywire_wcf::limits::{MAX_ATTRIBUTES, MAX_DEPTH, MAX_SESSION_SIZE};
use everywire_wcf::nbfx::{Prefix, Record, Text, Word, integer, xml};

/// An integer of five bytes with a group above 31 bits, and one that never ends.
#[test]
fn n2_mb32_beyond_31_bits() {
    assert_eq!(integer::read(&unhex("ffffffff07"), 0).unwrap(), (0x7fff_ffff, 5));
    for digits in ["ffffffff08", "ffffffff7f", "ffffffffff", "ffffffffff01", "8080808080808001"] {
        let failure = integer::read(&unhex(digits), 0).unwrap_err();
        assert_eq!(failure.code(), Some("nbfx BadInteger"), "{digits}");
        // The same as the length of a name, as a word's number, as a table's length.
        assert_eq!(violation(&unhex(&format!("40{digits}"))), "nbfx BadInteger", "{digits}");
        assert_eq!(violation(&unhex(&format!("42{digits}"))), "nbfx BadInteger", "{digits}");
        let failure = Incoming::default().receive(&unhex(digits)).unwrap_err();
        assert_eq!(failure.code(), Some("nbfx BadInteger"), "{digits}");
    }
    for digits in ["", "80", "ff", "ffffffff"] {
        assert_eq!(integer::read(&unhex(digits), 0).unwrap_err().code(), Some("nbfx Truncated"), "{digits}");
    }
}

/// The greatest length that the integer can say, in front of nothing.
#[test]
fn n2_lengths_of_two_gigabytes_are_refused_before_anything_is_allocated() {
    for document in
        ["40ffffffff07", "41ffffffff07", "400165020ffffffff07f", "4001659cffffff7f", "400165a2ffffff7f"]
    {
        let failure = records(&unhex(document)).unwrap_err();
        assert!(failure.code().is_some(), "{document}: {failure}");
    }
    assert_eq!(violation(&unhex("4001659cffffffff")), "nbfx BadLength", "a negative length");
    assert_eq!(violation(&unhex("400165a200000080")), "nbfx BadLength", "a negative length");
}

#[test]
fn n3_a_session_dictionary_grows_to_its_quota_and_no_further() {
    // 64 bytes each, length included: 32 of them are the quota exactly.
    let word = |index: usize| format!("{index:0>63}");
    let mut words = Incoming::default();
    for index in 0..MAX_SESSION_SIZE / 64 {
        let mut payload = vec![64, 63];
        payload.extend_from_slice(word(index).as_bytes());
        assert!(words.receive(&payload).unwrap().is_empty());
    }
    assert_eq!(words.len(), 32);
    let failure = words.receive(&[2, 1, b'x']).unwrap_err();
    assert_eq!(failure.code(), Some("nbfx SessionTooLarge"));
    assert_eq!(failure.kind(), everywire_model::Kind::LimitExceeded);
}

#[test]
fn n3_empty_session_words_count_by_their_length_prefix() {
    let mut words = Incoming::default();
    words.learn(&vec![0; MAX_SESSION_SIZE]).unwrap();
    assert_eq!(words.len(), MAX_SESSION_SIZE);
    assert_eq!(words.learn(&[0]).unwrap_err().code(), Some("nbfx SessionTooLarge"));
    let failure = Incoming::default().learn(&vec![0; 1 << 20]).unwrap_err();
    assert_eq!(failure.code(), Some("nbfx SessionTooLarge"));
}

#[test]
fn n3_a_table_must_fit_its_envelope_and_its_words_the_table() {
    for digits in ["05", "0501", "ffffffff07", "020561", "0401610561"] {
        let failure = Incoming::default().receive(&unhex(digits)).unwrap_err();
        assert_eq!(failure.code(), Some("nbfx BadTable"), "{digits}: {failure}");
    }
    assert_eq!(Incoming::default().receive(&unhex("0201ff")).unwrap_err().code(), Some("nbfx BadText"));
}

/// This side keeps the quota of the peer: beyond it words are written in place.
#[test]
fn n3_a_writer_stops_adding_words_at_the_quota() {
    let mut outgoing = Outgoing::session();
    let ids = (0..100).filter(|index| outgoing.id(&format!("{index:0>63}")).is_some()).count();
    assert_eq!(ids, 32);
    let payload = outgoing.payload(&[]);
    Incoming::default().receive(&payload).unwrap();
}

#[test]
fn n4_elements_nest_to_the_limit_and_no_deeper() {
    let nested = |depth: usize| [unhex("400161").repeat(depth), vec![1; depth]].concat();
    assert_eq!(records(&nested(MAX_DEPTH)).unwrap().len(), 2 * MAX_DEPTH);
    assert_eq!(violation(&nested(MAX_DEPTH + 1)), "nbfx TooDeep");
    assert_eq!(violation(&unhex("400161").repeat(100_000)), "nbfx TooDeep");
    assert_eq!(violation(&[unhex("400161").repeat(MAX_DEPTH), unhex("03400161")].concat()), "nbfx TooDeep");
}

#[test]
fn n4_an_element_has_attributes_to_the_limit_and_no_more() {
    for attribute in ["04016182", "090161016e", "060082", "0c0082"] {
        let many = |count: usize| [unhex("400161"), unhex(attribute).repeat(count), vec![1]].concat();
        assert_eq!(records(&many(MAX_ATTRIBUTES)).unwrap().len(), MAX_ATTRIBUTES + 2);
        assert_eq!(violation(&many(MAX_ATTRIBUTES + 1)), "nbfx TooManyAttributes", "{attribute}");
        assert_eq!(violation(&many(100_000)), "nbfx TooManyAttributes", "{attribute}");
    }
}

#[test]
fn n4_an_array_has_no_more_items_than_bytes() {
    for code in ["b5", "8b", "8d", "8f", "91", "93", "95", "97", "af", "b1"] {
        for count in ["ffffffff07", "ffffff7f", "02"] {
            let document = unhex(&format!("0340016901{code}{count}00"));
            assert_eq!(violation(&document), "nbfx BadLength", "{code} {count}");
        }
        records(&unhex(&format!("0340016901{code}00"))).unwrap();
    }
    for code in ["99", "8c", "b4", "80", "a5", "01", "40"] {
        assert_eq!(violation(&unhex(&format!("0340016901{code}0100"))), "nbfx BadArray", "{code}");
    }
}

/// An array has one element: none, another, text or a second array in its head is refused.
#[test]
fn n4_the_head_of_an_array_is_one_element_and_attributes() {
    for document in [
        "0301",
        "030340016901",
        "03820101",
        "0340016983",
        "034001690340016a01018b00",
        "03400169400162018b0001",
    ] {
        let failure = records(&unhex(document)).expect_err(document);
        assert!(failure.code().is_some(), "{document}: {failure}");
    }
}

/// A value in a hundred thousand records of one octet: the cost is that of their bytes.
#[test]
fn n5_chained_octets_cost_what_they_weigh() {
    let document = [unhex("400161"), unhex("9e0141").repeat(100_000), vec![1]].concat();
    let records = records(&document).unwrap();
    assert_eq!(records.len(), 100_002);
    assert_eq!(written(&records), document);
    let empty = [unhex("400161"), unhex("9e00").repeat(100_000), vec![1]].concat();
    assert_eq!(common::records(&empty).unwrap().len(), 100_002);
}

#[test]
fn lists_do_not_nest_and_end_where_they_began() {
    for document in
        ["400165a4a4a6a7", "400165a6", "400165a48201", "400165a483", "400165a5", "400165a482a601a7"]
    {
        let failure = records(&unhex(document)).expect_err(document);
        assert!(failure.code().is_some(), "{document}: {failure}");
    }
    assert_eq!(
        records(&unhex("400165a48288028803a701")).err().and_then(|f| f.code().map(str::to_owned)).as_deref(),
        Some("nbfx Unbalanced")
    );
    records(&unhex("400165a4828802a7")).unwrap();
}

#[test]
fn records_out_of_place_are_refused() {
    for (document, name) in [
        ("01", "Unbalanced"),
        ("83", "Unbalanced"),
        ("40016501 01", "Unbalanced"),
        ("040161 82", "UnexpectedRecord"),
        ("400165 82 04016182", "UnexpectedRecord"),
        ("400165 040161 83", "UnexpectedRecord"),
        ("400165 040161 40", "UnexpectedRecord"),
        ("400165 78", "UnexpectedRecord"),
        ("400165 be", "UnexpectedRecord"),
        ("400165 ff", "UnexpectedRecord"),
        ("00", "UnexpectedRecord"),
        ("400165", "Truncated"),
        ("400165 bc1a00 01", "OutOfRange"),
        ("4001ff 01", "BadText"),
        ("400165 9801ff 01", "BadText"),
        ("400165 950000 1d00 000000000000000000000000", "OutOfRange"),
    ] {
        let document = unhex(&document.replace(' ', ""));
        assert_eq!(violation(&document), format!("nbfx {name}"), "{document:02x?}");
    }
}

/// A document that is damaged is refused, or read as another document that writes as what was read.
fn withstands(document: &[u8], refused: &mut usize) {
    match records(document) {
        Ok(records) => {
            let shown = xml::to_xml(document, |_| Some("w")).expect("what reads can be shown");
            let again = written(&records);
            let back = common::records(&again).expect("what was written reads");
            assert_eq!(format!("{back:?}"), format!("{records:?}"));
            assert_eq!(xml::to_xml(&again, |_| Some("w")).unwrap(), shown);
        }
        Err(failure) => {
            assert!(failure.code().is_some_and(|code| code.starts_with("nbfx ")), "{failure}");
            *refused += 1;
        }
    }
}

/// Documents for the sweeps: short vectors, and one envelope of each kind.
fn samples() -> Vec<Vec<u8>> {
    let mut samples: Vec<_> =
        vectors().into_iter().map(|vector| vector.document).filter(|d| d.len() < 300).collect();
    each_document(|envelope, document, _| {
        if matches!(envelope.capture, "msclient-tcp-types" | "msclient-tcp-fault" | "tcp-100") {
            samples.push(document.to_vec());
        }
    });
    samples
}

#[test]
fn a_document_cut_at_any_byte_is_refused() {
    for document in samples() {
        for len in 1..document.len() {
            let mut refused = 0;
            withstands(&document[..len], &mut refused);
            // Arrays without an element around them are whole documents, one after the other; nothing else is.
            assert_eq!(refused, 1, "{:02x?}", &document[..len]);
        }
    }
}

#[test]
fn a_document_with_any_byte_changed_is_refused_or_reads_as_what_it_says() {
    let (mut tried, mut refused) = (0, 0);
    for document in samples() {
        for at in 0..document.len() {
            for octet in [0x00, 0x7f, 0x80, 0xff, document[at] ^ 0x01] {
                let mut damaged = document.clone();
                damaged[at] = octet;
                withstands(&damaged, &mut refused);
                tried += 1;
            }
        }
    }
    assert!(refused > 0 && refused < tried, "{refused} of {tried}");
}

#[test]
fn payloads_cut_or_changed_leave_a_session_that_withstands() {
    for envelope in common::envelopes().iter().filter(|envelope| envelope.capture == "msclient-tcp-fault") {
        for at in 0..envelope.payload.len() {
            for octet in [0x00, 0x7f, 0x80, 0xff] {
                let mut damaged = envelope.payload.clone();
                damaged[at] = octet;
                if let Ok(document) = Incoming::default().receive(&damaged) {
                    withstands(document, &mut 0);
                }
            }
            if let Ok(document) = Incoming::default().receive(&envelope.payload[..at]) {
                withstands(document, &mut 0);
            }
        }
    }
}

/// Names by number are as long as their words; numbers that no dictionary has are read, and resolved to nothing.
#[test]
fn unknown_words_are_no_words() {
    let words = Incoming::default();
    let read = records(&[0x42, 0x01, 0x01]).unwrap();
    assert_eq!(read, [Record::Element(Prefix::None, Word::Id(1)), Record::End]);
    assert_eq!(
        (words.word(1), words.word(974), words.word(u32::MAX), words.word(0x7fff_fffe)),
        (None, None, None, None)
    );
    assert_eq!(read.len(), 2);
    assert_eq!(records(&unhex("400165ab02")).unwrap()[1], Record::Text(Text::Word(2), true));
}
