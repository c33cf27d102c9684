//! CDR values: any bytes at any shape yield a value or a failure; a value survives being written and read again.

use bytes::Bytes;
use everywire_giop::CDR;
use everywire_model::{Body, Budget, Codec, Context, Value};

/// Gives the octets to this case.
pub fn cdr(data: &[u8]) {
    let [choice, flags, rest @ ..] = data else { return };
    let shape = crate::shapes::corba(*choice);
    let body = Body {
        bytes: Bytes::copy_from_slice(rest),
        base: usize::from(flags >> 4),
        little: flags & 1 == 1,
        dialect: 0,
        context: Context::default(),
        budget: Budget::for_message(rest.len() as u64),
        codec: &CDR,
        beside: None,
    };
    let Ok(value) = body.read(|source| Value::decode(&shape, source)) else { return };
    let Ok(again) = CDR.write(&mut |sink| value.encode(&shape, sink)) else { return };
    let back = again.read(|source| Value::decode(&shape, source));
    let back = back.unwrap_or_else(|failure| panic!("what was written does not read: {failure}\n{value:?}"));
    // NaN differs from itself; so compare what people see.
    assert_eq!(format!("{back:?}"), format!("{value:?}"));
}
