//! NDR values: any bytes at any shape yield a value or a failure; a value survives being written and read again in both
//! byte orders.

use bytes::Bytes;
use everywire_dcom::ndr::References;
use everywire_dcom::{NDR, NdrSink};
use everywire_model::{Body, Budget, Context, Failure, Initiator, Kind, Reference, Value, Visit};
use std::sync::Arc;

/// References of Wine's dialect, of which there are none.
struct Wine;

impl References for Wine {
    fn unmarshal(&self, _: Bytes, _: usize) -> Visit<Reference> {
        Err(Failure::new(Kind::Unsupported, Initiator::Here, "no references"))
    }

    fn marshal(&self, _: &Reference) -> Visit<Bytes> {
        Err(Failure::new(Kind::Unsupported, Initiator::Here, "no references"))
    }

    fn dialect(&self) -> u32 {
        1
    }
}

/// A sink for values of a dialect.
fn sink(base: usize, little: bool, dialect: u32) -> NdrSink {
    let sink = NdrSink::at(base, little);
    if dialect == 1 { sink.with_references(Arc::new(Wine)) } else { sink }
}

/// Gives the octets to this case.
pub fn ndr(data: &[u8]) {
    let [choice, flags, rest @ ..] = data else { return };
    let shape = crate::ndr_shapes::any(*choice);
    let budget = Budget::for_message(rest.len() as u64);
    let body = Body {
        bytes: Bytes::copy_from_slice(rest),
        base: usize::from(flags >> 4),
        little: flags & 1 == 1,
        dialect: u32::from(flags >> 1 & 1),
        context: Context::default(),
        budget,
        codec: &NDR,
        beside: None,
    };
    let Ok(value) = body.read(|source| Value::decode(&shape, source)) else { return };
    for little in [true, false] {
        let mut sink = sink(body.base, little, body.dialect);
        // Some values read that are not written: strings with a NUL, VARIANTs that the sink nests less deeply.
        if value.encode(&shape, &mut sink).is_err() {
            return;
        }
        let again = sink.into_body(Budget::default()).unwrap();
        let back = again.read(|source| Value::decode(&shape, source));
        let back =
            back.unwrap_or_else(|failure| panic!("what was written does not read: {failure}\n{value:?}"));
        // NaN differs from itself; so compare what people see.
        assert_eq!(format!("{back:?}"), format!("{value:?}"));
        // What a bridge passes on without building values is the same.
        let mut piped = self::sink(body.base, little, body.dialect);
        again.pipe(&shape, &mut piped).unwrap();
        assert_eq!(piped.into_bytes().unwrap(), again.bytes);
    }
}
