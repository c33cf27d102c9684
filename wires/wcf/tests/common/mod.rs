//! What the tests of records share.
#![allow(dead_code)]

use everywire_model::body::Attachments;
use everywire_model::{Body, Budget, Context, SendBuffer, Shape, Sink, Value, Visit};
use everywire_wcf::dictionary::{Outgoing, StringTable, split};
use everywire_wcf::nbfx::{Prefix, Reader, Record, Text, Word, Writer, integer};
use everywire_wcf::text;
use everywire_wcf::values::{BINARY, BodyContext, Form, Layout, QName, ReaderQuotas, TEXT, XML, write_body};
use everywire_wcf::violations::Violation;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

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
pub(crate) fn each_document(mut visit: impl FnMut(&Envelope, &[u8], &StringTable)) {
    let mut sessions: HashMap<(&str, &str, &str), StringTable> = HashMap::new();
    for envelope in &envelopes() {
        let words = sessions.entry((envelope.capture, envelope.stream, envelope.side)).or_default();
        let document = received(words, &envelope.payload).unwrap();
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

/// A document in text, as binary XML with all words in place.
pub(crate) fn binary(xml: &str) -> Vec<u8> {
    let (mut reader, mut writer) =
        (text::Reader::new(xml.as_bytes(), &ReaderQuotas::default()), Writer::new());
    while let Some(event) = reader.next().unwrap() {
        match event {
            text::Event::Start(tag) => {
                writer.put(&Record::Element(Prefix::of(tag.prefix), Word::Inline(tag.local)));
                for attribute in tag.attributes().map(Visit::unwrap) {
                    let value = &*attribute.value;
                    writer.put(&match (attribute.prefix, attribute.local) {
                        ("", "xmlns") => Record::Xmlns(None, Word::Inline(value)),
                        ("xmlns", declared) => Record::Xmlns(Some(declared), Word::Inline(value)),
                        (of, local) => {
                            Record::Attribute(Prefix::of(of), Word::Inline(local), Text::Chars(value))
                        }
                    });
                }
            }
            text::Event::End => writer.put(&Record::End),
            text::Event::Text(text) => writer.put(&Record::Text(Text::Chars(&text), false)),
        }
    }
    writer.into_bytes()
}

/// Reads all of a document and fails with the code of the violation, which must be there.
pub(crate) fn violation(document: &[u8]) -> String {
    let failure = records(document).expect_err("the document is wrong and was read");
    failure.code().expect("the violation is named").to_owned()
}

/// A body in a form, read with these words.
pub(crate) fn body_in(form: Form, bytes: Vec<u8>, words: &StringTable, budget: Budget) -> Body {
    let reading = BodyContext { words: Arc::new(words.clone()), ..BodyContext::default() };
    body_with(form, bytes, 0, reading, budget)
}

/// A body from an offset of a document.
pub(crate) fn body_with(
    form: Form,
    bytes: Vec<u8>,
    base: usize,
    reading: BodyContext,
    budget: Budget,
) -> Body {
    Body {
        bytes: bytes.into(),
        base,
        little: true,
        dialect: if form == Form::Text { TEXT } else { BINARY },
        budget,
        codec: &XML,
        context: Context::default(),
        beside: Some(Arc::new(Attachments { wire_state: Some(Arc::new(reading)), ..Attachments::default() })),
    }
}

/// A binary body.
pub(crate) fn body(bytes: Vec<u8>, words: Option<&StringTable>, budget: Budget) -> Body {
    let none = StringTable::default();
    body_in(Form::Binary, bytes, words.unwrap_or(&none), budget)
}

/// The layout of an operation's arguments.
pub(crate) fn arguments(operation: &str, namespace: &str, fields: &Shape) -> Layout {
    Layout::new(Some(QName::new(namespace.to_owned(), operation.to_owned())), namespace, fields, "", &[])
}

/// The layout of an operation's results.
pub(crate) fn results(operation: &str, namespace: &str, fields: &Shape) -> Layout {
    let wrapper = QName::new(namespace.to_owned(), format!("{operation}Response"));
    Layout::new(Some(wrapper), namespace, fields, &format!("{operation}Result"), &[])
}

/// A value as the content of a body.
pub(crate) fn encode(
    form: Form,
    value: &Value,
    words: &mut Outgoing,
    layout: &Layout,
    fields: &Shape,
) -> Vec<u8> {
    let mut out = SendBuffer::new();
    let headers =
        write_body(form, layout, words, &|sink: &mut dyn Sink| value.encode(fields, sink), &mut out);
    assert_eq!(headers.unwrap(), None);
    out.to_vec()
}

/// The value in a body.
pub(crate) fn decode(form: Form, bytes: &[u8], words: &StringTable, fields: &Shape) -> Value {
    let body = body_in(form, bytes.to_vec(), words, Budget::default());
    body.read(|source| Value::decode(fields, source)).unwrap()
}

/// Splits the payload of an envelope, learns its new words, and returns the document.
pub(crate) fn received<'a>(words: &mut StringTable, payload: &'a [u8]) -> Visit<&'a [u8]> {
    let (table, document) = split(payload)?;
    words.learn(table)?;
    Ok(document)
}

/// Joins the table of new words and a document to the payload of an envelope; the peer then knows the words.
pub(crate) fn payload_of(words: &mut Outgoing, document: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    integer::put(words.fresh().len(), &mut payload);
    payload.extend([words.fresh(), document].concat());
    words.told();
    payload
}

/// The range of a document that holds what is inside the envelope's body.
pub(crate) fn body_of(document: &[u8], words: &StringTable) -> Visit<Range<usize>> {
    let mut reader = Reader::new(document);
    let mut start = None;
    loop {
        let at = reader.position();
        let Some(record) = reader.read()? else { return Err(Violation::MissingElement.at(at)) };
        match (record, start) {
            (Record::Element(_, name), None) if reader.depth() == 2 => {
                let name = match name {
                    Word::Inline(name) => name,
                    Word::Id(id) => words.word(id).ok_or_else(|| Violation::UnknownWord.at(at))?,
                };
                if name == "Body" {
                    start = Some(reader.position());
                }
            }
            // Attributes of the body element itself do not belong to what is inside.
            (Record::Attribute(..) | Record::Xmlns(..), Some(begun)) if begun == at => {
                start = Some(reader.position());
            }
            // The record at `at` closed the body.
            (_, Some(start)) if reader.depth() == 1 => return Ok(start..at),
            _ => {}
        }
    }
}
