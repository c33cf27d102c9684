//! VARIANTs that hold one number are written and read in one go where generated code meets them, and as a value of any other type where
//! a tree of values does: both say the same of the same bytes, and of bytes that somebody has changed.

use crate::common::{alias, body, bstr, encode, parameters, record, sequence, structure, variant};
use everywire_dcom::{NdrSink, NdrSource};
use everywire_model::marshal::{Marshal, Unmarshal, field};
use everywire_model::shape::Shape;
use everywire_model::visit::{Sink, Source, Visit};
use everywire_model::{Budget, Value, Variant};

/// What OPC calls the state of an item, more or less.
struct Item {
    handle: u32,
    value: Variant,
    quality: u16,
}

fn shape() -> Shape {
    let item =
        structure("Item", &[("handle", Shape::U32), ("value", Shape::Variant), ("quality", Shape::U16)]);
    parameters(&[("items", sequence(item)), ("plain", sequence(Shape::Variant)), ("after", Shape::U16)])
}

impl Marshal for Item {
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        sink.open(shape, 3)?;
        sink.u32(self.handle)?;
        self.value.marshal(field(shape, 1), sink)?;
        sink.u16(self.quality)?;
        sink.close(shape)
    }
}

impl<'a> Unmarshal<'a> for Item {
    fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
        source.open(shape)?;
        let handle = source.u32()?;
        let value = Variant::unmarshal(field(shape, 1), source)?;
        let quality = source.u16()?;
        source.close(shape)?;
        Ok(Self { handle, value, quality })
    }
}

/// The values as generated code holds them.
struct Typed {
    items: Vec<Item>,
    plain: Vec<Variant>,
    after: u16,
}

impl Typed {
    fn write(&self, little: bool) -> Vec<u8> {
        let (shape, mut sink) = (shape(), NdrSink::new(little));
        sink.open(&shape, 3).unwrap();
        self.items.marshal(field(&shape, 0), &mut sink).unwrap();
        self.plain.marshal(field(&shape, 1), &mut sink).unwrap();
        sink.u16(self.after).unwrap();
        sink.close(&shape).unwrap();
        sink.into_bytes().unwrap()
    }

    fn read(bytes: &[u8], little: bool, budget: Budget) -> Visit<Self> {
        let (shape, mut body) = (shape(), body(bytes, little));
        body.budget = budget;
        let mut source = NdrSource::new(&body);
        source.open(&shape)?;
        let items = Vec::unmarshal(field(&shape, 0), &mut source)?;
        let plain = Vec::unmarshal(field(&shape, 1), &mut source)?;
        let after = source.u16()?;
        source.close(&shape)?;
        Ok(Self { items, plain, after })
    }

    fn value(&self) -> Value {
        let item = |item: &Item| {
            let fields = [Value::Integer(item.handle.into()), item.value.clone().into()];
            record(&[&fields[..], &[Value::Integer(item.quality.into())]].concat())
        };
        let items = self.items.iter().map(item).collect();
        let plain = self.plain.iter().map(|variant| variant.clone().into()).collect();
        record(&[Value::List(items), Value::List(plain), Value::Integer(self.after.into())])
    }
}

fn all() -> Vec<(Shape, Value)> {
    let number = |shape, value: i128| (shape, Value::Integer(value));
    vec![
        (Shape::Void, Value::Nothing),
        (alias("NULL", Shape::Void), Value::Nothing),
        number(Shape::I16, -2),
        number(Shape::I32, i32::MIN.into()),
        (Shape::F32, Value::Float(0.5)),
        (Shape::F64, Value::Float(-0.1)),
        number(alias("CURRENCY", Shape::I64), -12_345),
        (alias("DATE", Shape::F64), Value::Float(45_000.5)),
        (Shape::Text(everywire_model::shape::Text::NARROW), Value::Text("between".into())),
        number(alias("SCODE", Shape::I32), -1),
        (Shape::Bool, Value::Bool(true)),
        (Shape::Bool, Value::Bool(false)),
        number(Shape::I8, -1),
        number(Shape::U8, 255),
        number(Shape::U16, 65_535),
        number(Shape::U32, u32::MAX.into()),
        number(Shape::I64, i64::MIN.into()),
        number(Shape::U64, u64::MAX.into()),
        number(alias("INT", Shape::I32), -7),
        number(alias("UINT", Shape::U32), 7),
        (bstr(), Value::Text("also".into())),
        (sequence(Shape::F32), Value::List(vec![Value::Float(1.5), Value::Float(2.5)])),
    ]
}

fn typed() -> Typed {
    let variants = || all().into_iter().map(|(shape, value)| Variant::new(shape, value));
    let items = variants().zip(1..).map(|(value, handle)| Item { handle, value, quality: 192 }).collect();
    Typed { items, plain: variants().rev().collect(), after: 7 }
}

fn tree() -> Value {
    let variants = || all().into_iter().map(|(shape, value)| variant(shape, value));
    let items = variants().zip(1..).map(|(held, n)| record(&[Value::Integer(n), held, Value::Integer(192)]));
    let plain = variants().rev().collect();
    record(&[Value::List(items.collect()), Value::List(plain), Value::Integer(7)])
}

#[test]
fn both_ways_to_write_make_the_same_bytes() {
    for little in [true, false] {
        assert_eq!(typed().write(little), encode(&tree(), little, &shape()), "little {little}");
    }
}

#[test]
fn both_ways_to_read_find_the_same_values_and_faults() {
    for little in [true, false] {
        let whole = typed().write(little);
        let agree = |bytes: &[u8], what: &dyn std::fmt::Display| {
            let (quick, slow) = (
                Typed::read(bytes, little, Budget::default())
                    .map(|read| crate::common::unnamed(&read.value())),
                crate::common::decode(bytes, little, &shape()).map(|(read, _)| crate::common::unnamed(&read)),
            );
            match (quick, slow) {
                (Ok(quick), Ok(slow)) => assert_eq!(format!("{quick:?}"), format!("{slow:?}"), "{what}"),
                (Err(quick), Err(slow)) => assert_eq!(quick.to_string(), slow.to_string(), "{what}"),
                (quick, slow) => panic!("{what}: {quick:?} against {slow:?}"),
            }
        };
        agree(&whole, &"whole");
        assert_eq!(Typed::read(&whole, little, Budget::default()).unwrap().after, 7);
        for end in 0..whole.len() {
            agree(&whole[..end], &format_args!("cut at {end}"));
        }
        for at in 0..whole.len() {
            for change in [1, 0x20, 0x40, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= change;
                agree(&bytes, &format_args!("byte {at} changed by {change}"));
            }
        }
    }
}

#[test]
fn numbers_are_read_into_sixteen_bytes() {
    let read = Typed::read(&typed().write(true), true, Budget::default()).unwrap();
    let boxed: Vec<usize> =
        (0..read.items.len()).filter(|at| read.items[*at].value.scalar().is_none()).collect();
    // The two texts and the array.
    assert_eq!(boxed, [8, 20, 21]);
    assert_eq!(size_of::<Variant>(), 16);
}
