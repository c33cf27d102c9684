//! NDR values, as in `cdr.rs`.
#![no_main]

mod shapes;

use bytes::Bytes;
use everywire_dcom::NDR;
use everywire_model::{Body, Budget, Codec, Value};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [choice, flags, rest @ ..] = data else { return };
    let shape = shapes::ndr(*choice);
    let body = Body {
        bytes: Bytes::copy_from_slice(rest),
        base: 0,
        little: flags & 1 == 1,
        dialect: 0,
        context: Bytes::new(),        budget: Budget::for_message(rest.len() as u64),
        codec: &NDR,
        handles: None,
    };
    let Ok(value) = body.read(|source| Value::decode(&shape, source)) else { return };
    let Ok(again) = NDR.write(&mut |sink| value.encode(&shape, sink)) else { return };
    let back = again.read(|source| Value::decode(&shape, source));
    let back = back.unwrap_or_else(|failure| panic!("what was written does not read: {failure}\n{value:?}"));
    assert_eq!(format!("{back:?}"), format!("{value:?}"));
});
