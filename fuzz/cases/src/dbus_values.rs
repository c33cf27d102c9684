//! D-Bus values: any bytes at any shape, or at any signature, yield a value or a failure; a value survives being written
//! and read again in both byte orders.

use bytes::Bytes;
use everywire_dbus::{VALUES, Values};
use everywire_model::{Body, Codec, Shape, Value};

fn survives(body: &Body, shape: &Shape) {
    let Ok(value) = body.read(|source| Value::decode(shape, source)) else { return };
    for little in [true, false] {
        // Some values read that are not written: handles, references that are no addresses.
        let Ok(again) = VALUES.write_as(little, &mut |sink| value.encode(shape, sink)) else { return };
        let back = again.read(|source| Value::decode(shape, source));
        let back =
            back.unwrap_or_else(|failure| panic!("what was written does not read: {failure}\n{value:?}"));
        // NaN differs from itself; so compare what people see.
        assert_eq!(format!("{back:?}"), format!("{value:?}"));
    }
}

/// Gives the octets to this case.
pub fn dbus_values(data: &[u8]) {
    let [choice, flags, rest @ ..] = data else { return };
    let little = flags & 1 == 1;
    let base = usize::from(flags >> 4) * 8;
    if flags & 2 == 0 {
        // The bytes say what they are, as in a message from anybody.
        let len = usize::from(*choice).min(rest.len());
        let (signature, rest) = rest.split_at(len);
        let body = Values::body(Bytes::copy_from_slice(rest), base, little, signature.into(), Vec::new());
        if let Some(shape) = VALUES.shape(&body) {
            survives(&body, &shape);
        }
        return;
    }
    let shape = crate::shapes::common(*choice);
    // Written at this shape, nothing but its signature is of interest.
    let mut signature = String::new();
    let spelled = match &shape {
        Shape::Struct(_) => everywire_idl::signature::of_list(&shape, &mut signature),
        shape => everywire_idl::signature::of(shape, &mut signature),
    };
    if spelled.is_ok() {
        let signature = signature.as_bytes().into();
        let body = Values::body(Bytes::copy_from_slice(rest), base, little, signature, Vec::new());
        survives(&body, &shape);
    }
}
