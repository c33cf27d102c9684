//! XML text: documents of any bytes read to their end or are refused; values as in `cdr.rs`, whatever order their elements
//! have.

use bytes::Bytes;
use everywire_model::shape::{Field, Hold, Struct};
use everywire_model::visit::Sink;
use everywire_model::{Body, Budget, Context, SendBuffer, Shape, Value};
use everywire_wcf::dictionary::Outgoing;
use everywire_wcf::text::{Event, Reader, Writer};
use everywire_wcf::values::{Form, Layout, QName, ReaderQuotas, TEXT, XML, write_body};

/// Gives the octets to this case.
pub fn xml_text(data: &[u8]) {
    let [choice, base, rest @ ..] = data else { return };
    document(rest);
    let shape = match choice & 1 {
        0 => crate::shapes::corba(choice >> 1),
        _ => crate::shapes::ndr(choice >> 1),
    };
    let field = Field { name: "v".into(), shape };
    let list =
        Shape::Struct(Hold::new(Struct { name: "".into(), id: "".into(), fields: vec![field].into() }));
    // From the beginning, or from anywhere.
    let base = if usize::from(*base) < rest.len() { usize::from(*base) } else { 0 };
    let Ok(value) = body(rest, base).read(|source| Value::decode(&list, source)) else { return };
    let layout = Layout::new(Some(QName::new("urn:o", "Op")), "urn:o", &list, "", &[]);
    let mut out = SendBuffer::new();
    let visit = |sink: &mut dyn Sink| value.encode(&list, sink);
    if write_body(Form::Text, &layout, &mut Outgoing::inline(), &visit, &mut out).is_err() {
        return;
    }
    let back = body(&out.to_vec(), 0).read(|source| Value::decode(&list, source));
    let back = back.unwrap_or_else(|failure| panic!("what was written does not read: {failure}\n{value:?}"));
    assert_eq!(format!("{back:?}"), format!("{value:?}"));
}

fn body(bytes: &[u8], base: usize) -> Body {
    Body {
        bytes: Bytes::copy_from_slice(bytes),
        base,
        little: true,
        dialect: TEXT,
        context: Context::default(),
        budget: Budget::for_message(bytes.len() as u64),
        codec: &XML,
        beside: None,
    }
}

/// Events that read are written, and read again as the same.
fn document(bytes: &[u8]) {
    let Some(events) = events(bytes) else { return };
    let mut writer = Writer::new();
    let mut open: Vec<(String, String)> = Vec::new();
    for event in &events {
        match event {
            Seen::Start(prefix, local, attributes) => {
                writer.start(prefix, local);
                for (prefix, local, value) in attributes {
                    writer.attribute(prefix, local, value);
                }
                open.push((prefix.clone(), local.clone()));
            }
            Seen::End => {
                let (prefix, local) = open.pop().expect("ends match starts");
                writer.end(&prefix, &local);
            }
            Seen::Text(text) => {
                writer.text(text);
            }
        }
    }
    assert_eq!(self::events(&writer.into_bytes()).as_deref(), Some(&*events));
}

#[derive(Debug, PartialEq)]
enum Seen {
    Start(String, String, Vec<(String, String, String)>),
    End,
    Text(String),
}

fn events(bytes: &[u8]) -> Option<Vec<Seen>> {
    let mut reader = Reader::new(bytes, &ReaderQuotas::CLASSIC);
    let mut seen = Vec::new();
    while let Some(event) = reader.next().ok()? {
        match event {
            Event::Start(tag) => {
                let attributes = tag.attributes().map(|attribute| {
                    let attribute = attribute.expect("attributes were checked with the tag");
                    (attribute.prefix.to_owned(), attribute.local.to_owned(), attribute.value.into_owned())
                });
                seen.push(Seen::Start(tag.prefix.to_owned(), tag.local.to_owned(), attributes.collect()));
            }
            Event::End => seen.push(Seen::End),
            Event::Text(text) => match seen.last_mut() {
                Some(Seen::Text(before)) => before.push_str(&text),
                _ if text.is_empty() => {}
                _ => seen.push(Seen::Text(text.into_owned())),
            },
        }
    }
    Some(seen)
}
