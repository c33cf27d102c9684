//! Numbers of 128 bits (`long double`) in CDR.

use crate::support::*;
use everywire_giop::CDR;
use everywire_giop::codesets::Dialect;
use everywire_model::marshal::{Marshal, Unmarshal};
use everywire_model::shape::{Alias, Hold};
use everywire_model::value::TypedShape;
use everywire_model::{Body, Budget, Failure, Shape, Value, long_double};

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    let octet = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(octet).collect()
}

fn write(little: bool, shape: &Shape, value: &Value) -> Result<Body, Failure> {
    CDR.write_as(little, Dialect::OURS, 0, &mut |sink| value.encode(shape, sink))
}

fn read(body: &Body, shape: &Shape) -> Result<Value, Failure> {
    body.read(|source| Value::decode(shape, source))
}

/// A number of 16 octets begins at a multiple of 8, and is in the order of the message as a whole (9.3.1.1, 9.3.1.4). The value has the
/// sign first in either order. In an `any` its kind has no parameters.
#[test]
fn long_doubles_are_in_the_order_of_the_message() {
    let named = Alias { name: "Exact".into(), id: "IDL:Exact:1.0".into(), target: long_double::SHAPE };
    let named = Shape::Alias(Hold::new(named));
    let fields = vec![
        ("mark", Shape::U8),
        ("one", long_double::SHAPE),
        ("two", named),
        ("many", Shape::sequence(long_double::SHAPE)),
        ("any", Shape::Variant),
    ];
    let item = structure("", fields);
    let number = |text: &str| Value::Bytes(bytes(&long_double::read(text).unwrap()));
    let any = Value::Variant(Box::new((TypedShape(long_double::SHAPE), number("1"))));
    let fields = [
        ("mark", Value::Integer(7)),
        ("one", number("0.1")),
        ("two", number("-12.5")),
        ("many", Value::List(vec![number("1")])),
        ("any", any),
    ];
    let value = Value::Struct(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
    let pad = "00000000 000000";
    let big = format!(
        "07 {pad} 3ffb9999 99999999 99999999 9999999a c0029000 00000000 00000000 00000000
         00000001 00000000 3fff0000 00000000 00000000 00000000 00000019 00000000 3fff0000 00000000 00000000 00000000"
    );
    let little = format!(
        "07 {pad} 9a999999 99999999 99999999 9999fb3f 00000000 00000000 00000000 009002c0
         01000000 00000000 00000000 00000000 00000000 0000ff3f 19000000 00000000 00000000 00000000 00000000 0000ff3f"
    );
    for (is_little, raw) in [(false, hex(&big)), (true, hex(&little))] {
        let written = write(is_little, &item, &value).unwrap();
        assert_eq!(written.bytes, raw);
        let body =
            everywire_giop::Cdr::body(raw.clone().into(), 0, is_little, Dialect::OURS, Budget::default());
        assert_eq!(read(&body, &item).unwrap(), value);
        let cut = raw[..raw.len() - 1].to_vec();
        let body = everywire_giop::Cdr::body(cut.into(), 0, is_little, Dialect::OURS, Budget::default());
        assert!(read(&body, &item).is_err());
    }
    // Generated code has arrays of octets.
    let octets = long_double::read("0.1").unwrap();
    let written =
        CDR.write_as(true, Dialect::OURS, 0, &mut |sink| octets.marshal(&long_double::SHAPE, sink)).unwrap();
    assert_eq!(written.bytes, hex(&little)[8..24]);
    let again = written.read(|source| <[u8; 16]>::unmarshal(&long_double::SHAPE, source)).unwrap();
    assert_eq!(again, octets);
    let short = Value::Bytes(bytes(&[1; 15]));
    let refused = write(true, &long_double::SHAPE, &short).unwrap_err().to_string();
    assert!(refused.contains("16 octets, not 15"), "{refused}");
}
