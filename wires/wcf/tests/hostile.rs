//! Documents made to harm: each is refused by name, none costs more than its size, none panics.

#![allow(clippy::unwrap_used)]

use crate::common;
use crate::common::{
    body, body_with, each_document, payload_of, received, records, unhex, vectors, violation, written,
};
use everywire_model::shape::{Field, Hold, Struct, Text};
use everywire_model::{Budget, Failure, Kind, Shape, Value};
use everywire_wcf::dictionary::{Outgoing, StringTable};
use everywire_wcf::limits::{MAX_ATTRIBUTES, MAX_DEPTH, MAX_SESSION_SIZE};
use everywire_wcf::nbfx::{self, Prefix, Record, Word, integer, xml};
use everywire_wcf::text;
use everywire_wcf::values::{BodyContext, Form, ReaderQuotas};
use std::sync::Arc;

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
        let failure = received(&mut StringTable::default(), &unhex(digits)).unwrap_err();
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
    let mut words = StringTable::default();
    for index in 0..MAX_SESSION_SIZE / 64 {
        let mut payload = vec![64, 63];
        payload.extend_from_slice(word(index).as_bytes());
        assert!(received(&mut words, &payload).unwrap().is_empty());
    }
    assert_eq!(words.len(), 32);
    let failure = received(&mut words, &[2, 1, b'x']).unwrap_err();
    assert_eq!(failure.code(), Some("nbfx SessionTooLarge"));
    assert_eq!(failure.kind(), everywire_model::Kind::LimitExceeded);
}

#[test]
fn n3_empty_session_words_count_by_their_length_prefix() {
    let mut words = StringTable::default();
    words.learn(&vec![0; MAX_SESSION_SIZE]).unwrap();
    assert_eq!(words.len(), MAX_SESSION_SIZE);
    assert_eq!(words.learn(&[0]).unwrap_err().code(), Some("nbfx SessionTooLarge"));
    let failure = StringTable::default().learn(&vec![0; 1 << 20]).unwrap_err();
    assert_eq!(failure.code(), Some("nbfx SessionTooLarge"));
}

#[test]
fn n3_a_table_must_fit_its_envelope_and_its_words_the_table() {
    for digits in ["05", "0501", "ffffffff07", "020561", "0401610561"] {
        let failure = received(&mut StringTable::default(), &unhex(digits)).unwrap_err();
        assert_eq!(failure.code(), Some("nbfx BadTable"), "{digits}: {failure}");
    }
    assert_eq!(
        received(&mut StringTable::default(), &unhex("0201ff")).unwrap_err().code(),
        Some("nbfx BadText")
    );
}

/// This side keeps the quota of the peer: beyond it words are written in place.
#[test]
fn n3_a_writer_stops_adding_words_at_the_quota() {
    let mut outgoing = Outgoing::session();
    let ids = (0..100).filter(|index| outgoing.id(&format!("{index:0>63}")).is_some()).count();
    assert_eq!(ids, 32);
    let payload = payload_of(&mut outgoing, &[]);
    received(&mut StringTable::default(), &payload).unwrap();
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
                if let Ok(document) = received(&mut StringTable::default(), &damaged) {
                    withstands(document, &mut 0);
                }
            }
            if let Ok(document) = received(&mut StringTable::default(), &envelope.payload[..at]) {
                withstands(document, &mut 0);
            }
        }
    }
}

/// Names by number are as long as their words; numbers that no dictionary has are read, and resolved to nothing.
#[test]
fn unknown_words_are_no_words() {
    let words = StringTable::default();
    let read = records(&[0x42, 0x01, 0x01]).unwrap();
    assert_eq!(read, [Record::Element(Prefix::None, Word::Id(1)), Record::End]);
    assert_eq!(
        (words.word(1), words.word(974), words.word(u32::MAX), words.word(0x7fff_fffe)),
        (None, None, None, None)
    );
    assert_eq!(read.len(), 2);
    assert_eq!(records(&unhex("400165ab02")).unwrap()[1], Record::Text(nbfx::Text::Word(2), true));
}

/// The code of what is wrong with a document of XML text.
fn refused(document: &str, quotas: &ReaderQuotas) -> Failure {
    let mut reader = text::Reader::new(document.as_bytes(), quotas);
    loop {
        match reader.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("read to the end: {document}"),
            Err(failure) => return failure,
        }
    }
}

fn refusal(document: &str) -> String {
    refused(document, &ReaderQuotas::default()).code().expect("the violation is named").to_owned()
}

#[test]
fn s1_document_types_entities_and_instructions_are_never_read() {
    let laughs = "<!DOCTYPE a [<!ENTITY l \"ha\"><!ENTITY m \"&l;&l;&l;\">]><a>&m;</a>";
    for document in [laughs, "<!DOCTYPE a><a/>", "<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>"] {
        assert_eq!(refusal(document), "xml DocumentType", "{document}");
    }
    assert_eq!(refusal("<a><!DOCTYPE b></a>"), "xml DocumentType");
    for document in ["<a>&l;</a>", "<a b=\"&l;\"/>", "<a>&nbsp;</a>"] {
        assert_eq!(refusal(document), "xml Entity", "{document}");
    }
    for document in ["<?x y?><a/>", "<a><?x y?></a>", " <?xml version=\"1.0\"?><a/>"] {
        assert_eq!(refusal(document), "xml ProcessingInstruction", "{document}");
    }
    for document in [
        "<a>&#0;</a>",
        "<a>\u{1f}</a>",
        "<a>&#xD800;</a>",
        "<a>&#99999999999;</a>",
        "<a>&#+65;</a>",
        "<a b='&#0;'/>",
    ] {
        assert_eq!(refusal(document), "nbfx BadText", "{document}");
    }
    let mut reader =
        text::Reader::new(b"<?xml version=\"1.0\"?><a>&lt;&#x41;&amp;</a>", &ReaderQuotas::default());
    assert!(matches!(reader.next(), Ok(Some(text::Event::Start(_)))));
    assert_eq!(reader.content().unwrap(), "<A&");
    // As .NET writes control characters, and reads them.
    let mut reader = text::Reader::new(b"<a b='&#x1;'>&#x1F;&#2;</a>", &ReaderQuotas::default());
    let Ok(Some(text::Event::Start(tag))) = reader.next() else { panic!("no element") };
    assert_eq!(tag.attributes().next().unwrap().unwrap().value, "\u{1}");
    assert_eq!(reader.content().unwrap(), "\u{1f}\u{2}");
}

#[test]
fn s5_attributes_prefixes_and_names_are_bounded() {
    let attributes = |count: usize| (0..count).map(|at| format!(" a{at}=\"\"")).collect::<String>();
    let document = |count| format!("<a{}/>", attributes(count));
    let mut reader = text::Reader::new(b"<a/>", &ReaderQuotas::default());
    assert!(reader.next().is_ok());
    assert_eq!(refusal(&document(MAX_ATTRIBUTES + 1)), "nbfx TooManyAttributes");
    assert_eq!(refusal("<a b=\"1\" b=\"2\"/>"), "xml Markup");
    // Sixty declarations on each of nested elements: five of those are more than there may be at once.
    let declarations =
        |level: usize| (0..60).map(|at| format!(" xmlns:p{level}x{at}=\"u\"")).collect::<String>();
    let nested: String = (0..5).map(|level| format!("<a{}>", declarations(level))).collect();
    assert_eq!(refusal(&nested), "xml TooManyPrefixes");
    // One after the other they come and go.
    let siblings: String = (0..50).map(|level| format!("<a{}/>", declarations(level))).collect();
    let document = format!("<r>{siblings}</r>");
    let mut reader = text::Reader::new(document.as_bytes(), &ReaderQuotas::default());
    while reader.next().unwrap().is_some() {}
    assert_eq!(refusal(&format!("<{}/>", "n".repeat(5000))), "nbfx NameTooLong");
    let long = format!("<a b=\"{}\"/>", "v".repeat(5000));
    assert_eq!(refused(&long, &ReaderQuotas::CLASSIC).code(), Some("wcf MaxBytesPerRead"));
    for name in ["1a", "-a", "a:b:c", ":a", "a:", "a!", "a:1"] {
        assert_eq!(refusal(&format!("<{name}></{name}>")), "xml BadName", "{name}");
    }
}

#[test]
fn text_that_is_not_well_formed_is_refused() {
    for document in
        ["<a></b>", "<a><b></a></b>", "<a b></a>", "<a b=c/>", "<a", "<a b=\"<\"/>", "x<a/>", "<a/>x"]
    {
        assert_eq!(refusal(document), "xml Markup", "{document}");
    }
    for document in ["<a/><b/>", "</a>", "<a/></a>"] {
        assert_eq!(refusal(document), "nbfx Unbalanced", "{document}");
    }
    for document in ["", "<a>", "<a><b></b>"] {
        assert_eq!(refusal(document), "nbfx Truncated", "{document}");
    }
}

/// A body of one field in both forms: what reading it says with these quotas.
fn refused_values(fields: &Shape, text: &str, binary: &str, quotas: ReaderQuotas) -> [Failure; 2] {
    let read = |form, bytes| {
        let reading = BodyContext { quotas, ..BodyContext::default() };
        let body = body_with(form, bytes, 0, reading, Budget::default());
        body.read(|source| Value::decode(fields, source)).expect_err("the quota is exceeded")
    };
    [read(Form::Text, text.into()), read(Form::Binary, unhex(&binary.replace(' ', "")))]
}

fn one(shape: Shape) -> Shape {
    let fields = vec![Field { name: "v".into(), shape }].into();
    Shape::Struct(Hold::new(Struct { name: "".into(), id: "".into(), fields }))
}

#[test]
fn reader_quotas_are_refused_in_the_words_of_microsofts_readers() {
    let few = ReaderQuotas {
        max_depth: 4,
        max_string_content_length: 70,
        max_array_length: 70,
        max_name_table_char_count: 8,
        ..ReaderQuotas::default()
    };
    let octets = one(Shape::sequence(Shape::U8));
    let octets_text = format!("<Op><v>{}</v></Op>", "AAAA".repeat(17));
    let long_text = format!("<Op><v>{}</v></Op>", "a".repeat(71));
    // 71 octets in two records, 71 characters in two.
    let octets_binary = format!("40024f70 400176 9e46{} 9f0100 01", "00".repeat(70));
    let long_binary = format!("40024f70 400176 9846{} 990161 01", "61".repeat(70));
    let numbers = format!("<Op><v>{}</v></Op>", "<i>1</i>".repeat(71));
    let numbers_binary = format!("40024f70 400176 03 400169 01 8d47 {} 01 01", "01000000".repeat(71));
    let strings = one(Shape::sequence(Shape::sequence(Shape::sequence(Shape::Text(Text::WIDE)))));
    let deep = "<Op><v><a><b><c/></b></a></v></Op>";
    let deep_binary = "40024f70 400176 400161 400162 400163 01 01 01 01 01";
    let unknown = "<Op><abcde/><vwxyz/><v>1</v></Op>";
    let unknown_binary = "40024f70 40056162636465 01 4005767778797a 01 400176 83 01";
    let wide = "<Op><v>AAECAwQFBgcICQ==</v></Op>";
    let narrow = ReaderQuotas { max_array_length: 9, ..few };
    let wide_binary = "40024f70 400176 9f0a00010203040506070809 01";
    for (fields, text, binary, quotas, sentence, property) in [
        (&octets, wide, wide_binary, narrow, "The maximum array length quota (9)", "MaxArrayLength"),
        (
            &one(Shape::sequence(Shape::I32)),
            &numbers,
            &numbers_binary,
            few,
            "The maximum array length quota (70)",
            "MaxArrayLength",
        ),
        (
            &one(Shape::Text(Text::WIDE)),
            &long_text,
            &long_binary,
            few,
            "The maximum string content length quota (70)",
            "MaxStringContentLength",
        ),
        (&strings, deep, deep_binary, few, "The maximum read depth (4)", "MaxDepth"),
        (
            &one(Shape::I32),
            unknown,
            unknown_binary,
            few,
            "The maximum nametable character count quota (8)",
            "MaxNameTableCharCount",
        ),
    ] {
        for failure in refused_values(fields, text, binary, quotas) {
            let said = failure.to_string();
            assert_eq!(failure.kind(), everywire_model::Kind::LimitExceeded, "{said}");
            assert!(said.contains(sentence) && said.contains("has been exceeded"), "{said}");
            let raise = format!(
                "This quota may be increased by changing the {property} property on the XmlDictionaryReaderQuotas \
                 object used when creating the XML reader."
            );
            assert!(said.contains(&raise), "{said}");
        }
    }
    // Within the quota of octets, the text of them may not be: whichever is first is said.
    for failure in
        refused_values(&octets, &octets_text.replace("AAAA</v>", "AAAAAAAAAA==</v>"), &octets_binary, few)
    {
        assert_eq!(failure.kind(), everywire_model::Kind::LimitExceeded, "{failure}");
    }
}

#[test]
fn n5_dates_at_the_ends_of_time_and_beyond() {
    let date = |raw: u64| [&[0x40, 1, b'e', 0x97][..], &raw.to_le_bytes()].concat();
    let last = 3_155_378_975_999_999_999;
    for (raw, shown) in [
        (0, "<e>0001-01-01T00:00:00</e>"),
        (last, "<e>9999-12-31T23:59:59.9999999</e>"),
        (last | 1 << 62, "<e>9999-12-31T23:59:59.9999999Z</e>"),
        // Local times as dotnet/wcf wrote them: 2020-02-29T23:59:59.999 in New York, the first instant of the calendar in Berlin, and the
        // last in New York.
        (0x88d7_bd9d_651a_e0f0, "<e>2020-03-01T04:59:59.999Z</e>"),
        (0xbfff_fff8_74cf_3c00, "<e>0001-01-01T00:00:00Z</e>"),
        (0xabca_289f_dd0d_47ff, "<e>9999-12-31T23:59:59.9999999Z</e>"),
    ] {
        assert_eq!(xml::to_xml(&date(raw), |_| None).unwrap(), shown, "{raw:x}");
    }
    for raw in
        [last + 1, u64::MAX, u64::MAX >> 2, 3 << 62, last | 3 << 62, (last + 864_000_000_001) | 2 << 62]
    {
        assert_eq!(violation(&date(raw)), "nbfx OutOfRange", "{raw:x}");
    }
    // In an array they are shown one by one, or refused by the reader of values; never anything worse.
    let array =
        [unhex("40024f70400176034001690197"), vec![1], u64::MAX.to_le_bytes().to_vec(), vec![1, 1]].concat();
    let read = body(array, None, Budget::default())
        .read(|source| Value::decode(&one(Shape::sequence(Shape::Text(Text::WIDE))), source));
    assert!(matches!(read, Ok(Value::Struct(_)) | Err(_)));
}

/// Members in the wrong order with sixty thousand unknown ones between them: looked at a few times each, no more.
#[test]
fn n4_members_in_any_order_cost_what_they_weigh() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let fields =
        names.iter().map(|name| Field { name: (*name).into(), shape: Shape::I32 }).collect::<Vec<_>>();
    let shape = Shape::Struct(Hold::new(Struct { name: "".into(), id: "".into(), fields: fields.into() }));
    let mut text = "<Op><h>1</h>".to_owned();
    for _ in 0..20_000 {
        text.push_str("<x>1</x><y/><z>2</z>");
    }
    text.push_str("<a>2</a></Op>");
    let read = |budget| {
        let body = body_with(Form::Text, text.clone().into_bytes(), 0, BodyContext::default(), budget);
        body.read(|source| Value::decode(&shape, source))
    };
    let Value::Struct(values) = read(Budget::default()).unwrap() else { panic!("a struct") };
    assert_eq!((&values[0].1, &values[7].1), (&Value::Integer(2), &Value::Integer(1)));
    let few = Budget { elements: 10_000, ..Budget::default() };
    assert_eq!(read(few).unwrap_err().kind(), everywire_model::Kind::LimitExceeded);
}

#[test]
fn n5_chained_pieces_of_base64_text_are_charged_and_joined() {
    let text = format!("<Op><v>{}</v></Op>", "<![CDATA[QUFB]]>&#65;&#65;&#65;&#65;<!-- -->\n".repeat(5_000));
    let read = |budget| {
        let body = body_with(Form::Text, text.clone().into_bytes(), 0, BodyContext::default(), budget);
        body.read(|source| Value::decode(&one(Shape::sequence(Shape::U8)), source))
    };
    let Value::Struct(values) = read(Budget::default()).unwrap() else { panic!("a struct") };
    let Value::Bytes(octets) = &values[0].1 else { panic!("octets") };
    assert_eq!((octets.len(), &octets[..6]), (30_000, &[b'A', b'A', b'A', 0, 0, 0][..]));
    let few = Budget { bytes: 10_000, ..Budget::default() };
    assert_eq!(read(few).unwrap_err().kind(), everywire_model::Kind::LimitExceeded);
}

/// An array repeats its start tag for each item, and a number of two octets stands for a long word: the text has a bound.
#[test]
fn n5_a_short_document_does_not_become_a_long_text() {
    let word = "w".repeat(2048);
    // An element with sixty attributes, whose values are one word of the session.
    let attributes: Vec<u8> =
        (0..60).flat_map(|n| unhex(&format!("0402{:02x}{:02x}aa01", 0x61 + n / 26, 0x61 + n % 26))).collect();
    let array =
        [unhex("40016103400165"), attributes.clone(), unhex("01b5d80f"), vec![0; 2008], vec![1]].concat();
    let plain =
        [unhex("400161"), [unhex("400165"), attributes, vec![1]].concat().repeat(200), vec![1]].concat();
    for document in [array, plain] {
        records(&document).unwrap();
        let failure = xml::to_xml(&document, |_| Some(&word)).map(|text| text.len()).unwrap_err();
        assert_eq!(failure.kind(), Kind::LimitExceeded, "{failure}");
        assert!(xml::to_xml(&document, |_| Some("w")).is_ok());
    }
}

/// A peer takes words of a session up to its quota, whoever made them.
#[test]
fn n3_words_of_a_larger_session_are_not_passed_on() {
    let mut words = StringTable::with_quota(10_000);
    words.learn(&[&[0xd0, 0x0f], &[b'w'; 2000][..]].concat()).unwrap();
    assert!(Outgoing::session().can_adopt(&Arc::new(words.clone())));
    words.learn(&[&[100], &[b'v'; 100][..]].concat()).unwrap();
    assert!(!Outgoing::session().can_adopt(&Arc::new(words)));
}
