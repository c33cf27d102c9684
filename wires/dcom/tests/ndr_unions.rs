//! Unions of MIDL's `ms_union`: all arms begin where the widest of them could begin.

use crate::common::{decode, encode, record, unhex, unnamed, withstands};
use everywire_idl::midl::parse;
use everywire_model::{Shape, Value};

const CHOICES: &str = "typedef enum { kI32 = 2, kI64 = 3 } K;
    typedef [switch_type(K)] union { [case(kI32)] long a; [case(kI64)] hyper b; } U;
    typedef [switch_type(short)] union { [case(1)] long *p; [case(2)] hyper h; [case(3)] ; [case(4)] char c; } P;
    typedef struct { short kind; [switch_is(kind)] P what; } PART;";

/// The parameters of the one procedure of an interface with these attributes.
fn parameters(attributes: &str, procedure: &str) -> Shape {
    let text = format!(
        "[uuid(12345678-0001-0002-0003-1234567890ab), version(1.0), {attributes} pointer_default(unique)]
         interface msu {{ {CHOICES} {procedure} }}"
    );
    let contract = parse(&text, "msu.idl").unwrap_or_else(|e| panic!("{e}"));
    contract.interface("msu").unwrap().operations[0].arguments.clone()
}

fn chosen(label: i64, arm: &str, value: Value) -> Value {
    Value::Union(label, Some(Box::new((arm.to_owned(), value))))
}

#[track_caller]
fn both_ways(shape: &Shape, value: &Value, hex: &str) {
    let bytes = unhex(hex);
    assert_eq!(encode(value, true, shape), bytes);
    for little in [true, false] {
        let written = encode(value, little, shape);
        let (read, rest) = decode(&written, little, shape).unwrap();
        assert_eq!((unnamed(&read), rest), (value.clone(), 0), "little: {little}");
        withstands(&written, little, shape);
    }
}

#[test]
fn what_follows_the_discriminator_is_aligned_to_the_widest_arm() {
    let put = "long put([in] K k, [in, switch_is(k)] U *u);";
    let value = |label: i64, name: &str, arm: &str, value: i128| {
        record(&[Value::Member(name.to_owned()), chosen(label, arm, Value::Integer(value))])
    };
    let shape = parameters("ms_union,", put);
    both_ways(&shape, &value(2, "kI32", "a", 0x1122_3344), "0200 0200 00000000 44332211");
    both_ways(&shape, &value(3, "kI64", "b", 1), "0300 0300 00000000 0100000000000000");
    let plain = parameters("", put);
    both_ways(&plain, &value(2, "kI32", "a", 0x1122_3344), "0200 0200 44332211");
}

#[test]
fn arms_that_are_read_later_or_hold_nothing_are_aligned_as_well() {
    let shape = parameters("ms_union,", "long put([in] long n, [in, size_is(n)] PART *parts);");
    let part = |kind: i64, arm: Value| record(&[Value::Integer(kind.into()), arm]);
    let list = vec![
        part(1, chosen(1, "p", Value::Integer(9))),
        part(2, chosen(2, "h", Value::Integer(5))),
        part(4, chosen(4, "c", Value::Char('x'))),
        part(3, Value::Union(3, Some(Box::new(("case_3".to_owned(), Value::Nothing))))),
    ];
    let value = record(&[Value::Integer(4), Value::List(list)]);
    let head = "04000000 04000000";
    let pointer = "0100 0100 00000000 00000200 00000000";
    let wide = "0200 0200 00000000 0500000000000000";
    let narrow = "0400 0400 00000000 78 00000000000000";
    let nothing = "0300 0300 00000000";
    both_ways(&shape, &value, &format!("{head} {pointer} {wide} {narrow} {nothing} 09000000"));
}
