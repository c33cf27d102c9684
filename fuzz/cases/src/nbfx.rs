//! .NET binary XML: records of any bytes read as what they are written as, and values as in `cdr.rs`.

use bytes::Bytes;
use everywire_model::{Body, Budget, Codec, Context, Value};
use everywire_wcf::nbfx::{Reader, Writer};
use everywire_wcf::values::{BINARY, XML};

/// Gives the octets to this case.
pub fn nbfx(data: &[u8]) {
    let [choice, rest @ ..] = data else { return };
    records(rest);
    let shape = match choice & 1 {
        0 => crate::shapes::corba(choice >> 1),
        _ => crate::shapes::ndr(choice >> 1),
    };
    let body = Body {
        bytes: Bytes::copy_from_slice(rest),
        base: 0,
        little: true,
        dialect: BINARY,
        context: Context::default(),
        budget: Budget::for_message(rest.len() as u64),
        codec: &XML,
        beside: None,
    };
    let Ok(value) = body.read(|source| Value::decode(&shape, source)) else { return };
    let Ok(again) = XML.write(&mut |sink| value.encode(&shape, sink)) else { return };
    let back = again.read(|source| Value::decode(&shape, source));
    let back = back.unwrap_or_else(|failure| panic!("what was written does not read: {failure}\n{value:?}"));
    assert_eq!(seen(&back), seen(&value));
}

/// What people see of a value: NaN differs from itself, and a negative zero may lose its sign as it does in .NET. An element that is in no
/// namespace says so where it is written into others. One that has a prefix takes along the namespace of the body that it was written
/// into, for names without a prefix that may be in its texts.
pub(crate) fn seen(value: &Value) -> String {
    const NONE: &str = r#" xmlns=\"\""#;
    const BODY: &str = r#" xmlns=\"http://tempuri.org/\""#;
    let shown = format!("{value:?}").replace("Float(-0.0)", "Float(0.0)").replace(NONE, "");
    let mut parts = shown.split(BODY);
    let mut seen = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let tag = seen.rsplit('<').next().unwrap_or_default();
        let is_prefixed = tag.split(' ').next().is_some_and(|name| name.contains(':'));
        seen.push_str(if is_prefixed { "" } else { BODY });
        seen.push_str(part);
    }
    seen
}

/// Records that read are written, and read again as the same.
fn records(document: &[u8]) {
    let mut writer = Writer::new();
    let mut read = Vec::new();
    let mut reader = Reader::new(document);
    loop {
        match reader.read() {
            Ok(Some(record)) => {
                writer.put(&record);
                read.push(format!("{record:?}"));
            }
            Ok(None) => break,
            Err(_) => return,
        }
    }
    let again = writer.into_bytes();
    let mut reader = Reader::new(&again);
    for expected in read {
        let record =
            reader.read().unwrap_or_else(|failure| panic!("what was written does not read: {failure}"));
        assert_eq!(record.map(|record| format!("{record:?}")).as_deref(), Some(expected.as_str()));
    }
    assert!(matches!(reader.read(), Ok(None)));
}
