//! QDataStream values: any bytes at any list of types yield values or a failure; values survive being written and read
//! again. The first byte says how long the list of types is.

use bytes::Bytes;
use everywire_dcop::{DATA_STREAM, DataStream};
use everywire_model::{Body, Budget, Codec, Value};

/// Gives the octets to this case.
pub fn dcop_values(data: &[u8]) {
    let [len, rest @ ..] = data else { return };
    let (types, values) = rest.split_at(usize::from(*len).min(rest.len()));
    let body = |values: &[u8]| -> Body {
        let budget = Budget::for_message(values.len() as u64);
        DataStream::body(Bytes::copy_from_slice(values), types.into(), 0, budget)
    };
    let body = body(values);
    let Some(shape) = DATA_STREAM.shape(&body) else { return };
    let Ok(value) = body.read(|source| Value::decode(&shape, source)) else { return };
    let again = DATA_STREAM.write(&mut |sink| value.encode(&shape, sink));
    let again = again.unwrap_or_else(|failure| panic!("what was read does not write: {failure}\n{value:?}"));
    let back = again.read(|source| Value::decode(&shape, source));
    let back = back.unwrap_or_else(|failure| panic!("what was written does not read: {failure}\n{value:?}"));
    // NaN differs from itself; so compare what people see.
    assert_eq!(format!("{back:?}"), format!("{value:?}"));
    // Whatever passes through without being built is the same.
    let piped = DATA_STREAM.write(&mut |sink| body.pipe(&shape, sink));
    assert_eq!(piped.map(|piped| piped.bytes).ok(), Some(again.bytes));
}
