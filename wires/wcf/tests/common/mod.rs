//! What the tests of records share.
#![allow(dead_code)]

use everywire_model::Visit;
use everywire_wcf::dictionary::Incoming;
use everywire_wcf::nbfx::{Reader, Record, Writer};
use std::collections::HashMap;

/// The bytes behind hexadecimal digits.
pub(crate) fn unhex(digits: &str) -> Vec<u8> {
    assert!(digits.len().is_multiple_of(2), "{digits}");
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

/// One vector: what was written, the document (or its beginning and its length), the XML that it stands for.
pub(crate) struct Vector {
    pub(crate) name: &'static str,
    pub(crate) document: Vec<u8>,
    pub(crate) length: usize,
    pub(crate) xml: &'static str,
}

impl Vector {
    /// Whether the file holds all of the document.
    pub(crate) fn is_whole(&self) -> bool {
        self.document.len() == self.length
    }
}

/// What Microsoft's writer made of values.
pub(crate) fn vectors() -> Vec<Vector> {
    let rows = include_str!("../golden/nbfx-vectors.tsv").lines();
    rows.map(|row| {
        let [name, digits, xml] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let (digits, length) = match digits.split_once("..len=") {
            Some((digits, length)) => (digits, length.parse().unwrap()),
            None => (digits, digits.len() / 2),
        };
        Vector { name, document: unhex(digits), length, xml }
    })
    .collect()
}

/// One captured envelope: capture, stream, direction, payload of the sized-envelope record.
pub(crate) struct Envelope {
    pub(crate) capture: &'static str,
    pub(crate) stream: &'static str,
    pub(crate) side: &'static str,
    pub(crate) payload: Vec<u8>,
}

/// Captured envelopes, those of one stream and direction in their order.
pub(crate) fn envelopes() -> Vec<Envelope> {
    let rows = include_str!("../golden/envelopes.tsv").lines();
    rows.map(|row| {
        let [capture, stream, side, digits] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        Envelope { capture, stream, side, payload: unhex(digits) }
    })
    .collect()
}

/// Calls `visit` with each captured document and the words of its session so far.
pub(crate) fn each_document(mut visit: impl FnMut(&Envelope, &[u8], &Incoming)) {
    let mut sessions: HashMap<(&str, &str, &str), Incoming> = HashMap::new();
    for envelope in &envelopes() {
        let words = sessions.entry((envelope.capture, envelope.stream, envelope.side)).or_default();
        let document = words.receive(&envelope.payload).unwrap();
        visit(envelope, document, words);
    }
}

/// All records of a document.
pub(crate) fn records(document: &[u8]) -> Visit<Vec<Record<'_>>> {
    let mut reader = Reader::new(document);
    let mut records = Vec::new();
    while let Some(record) = reader.read()? {
        records.push(record);
    }
    assert_eq!(reader.depth(), 0, "a document ended inside an element");
    assert_eq!(reader.position(), document.len());
    Ok(records)
}

/// The records as a document.
pub(crate) fn written(records: &[Record<'_>]) -> Vec<u8> {
    let mut writer = Writer::new();
    for record in records {
        writer.put(record);
    }
    writer.into_bytes()
}

/// Reads all of a document and fails with the code of the violation, which must be there.
pub(crate) fn violation(document: &[u8]) -> String {
    let failure = records(document).expect_err("the document is wrong and was read");
    failure.code().expect("the violation is named").to_owned()
}
