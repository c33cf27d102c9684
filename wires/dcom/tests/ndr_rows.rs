//! Structs of numbers and variants are written and read a row at a time where generated code meets arrays of them: the bytes, and what is made
//! of bytes that are cut off or wrong, are those of the structs that are opened and closed.

use crate::common::{body, parameters, sequence, structure};
use everywire_dcom::{NdrSink, NdrSource};
use everywire_model::marshal::field;
use everywire_model::shape::{Shape, Text, TextKind};
use everywire_model::visit::{Sink, Source, Visit};
use everywire_model::{Failure, Marshal, Unmarshal, Value, Variant};

#[derive(Debug, Clone, PartialEq)]
struct Stamp {
    part: u8,
    time: f64,
}

#[derive(Debug, Clone, PartialEq)]
struct State {
    id: u32,
    stamp: Stamp,
    quality: i16,
    value: Variant,
    rank: i8,
    other: Variant,
}

everywire_model::row_of_cells!(Stamp: 16, 8; 0 One 8 Eight; part 0 time 8);
everywire_model::row_of_cells!(State: 40, 8;
    0 Four 8 One 16 Eight 24 Two 28 Variant 32 One 36 Variant;
    id 0 stamp 8 quality 24 value 28 rank 32 other 36);

fn states() -> Shape {
    let stamp = structure("Stamp", &[("part", Shape::U8), ("time", Shape::F64)]);
    let fields = [
        ("id", Shape::U32),
        ("stamp", stamp),
        ("quality", Shape::I16),
        ("value", Shape::Variant),
        ("rank", Shape::I8),
        ("other", Shape::Variant),
    ];
    parameters(&[
        ("first", Shape::U8),
        ("states", sequence(structure("State", &fields))),
        ("last", Shape::U8),
    ])
}

/// The same struct, opened each time.
struct Opened(State);

impl Marshal for State {
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        sink.open(shape, 6)?;
        sink.u32(self.id)?;
        let stamp = field(shape, 1);
        sink.open(stamp, 2)?;
        sink.u8(self.stamp.part)?;
        sink.f64(self.stamp.time)?;
        sink.close(stamp)?;
        sink.i16(self.quality)?;
        self.value.marshal(&Shape::Variant, sink)?;
        sink.i8(self.rank)?;
        self.other.marshal(&Shape::Variant, sink)?;
        sink.close(shape)
    }

    fn marshal_all<S: Sink + ?Sized>(items: &[Self], element: &Shape, sink: &mut S) -> Visit<()> {
        everywire_model::cells::put_all(items, element, sink)
    }
}

impl<'a> Unmarshal<'a> for State {
    fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
        source.open(shape)?;
        let id = source.u32()?;
        let stamp = field(shape, 1);
        source.open(stamp)?;
        let inner = Stamp { part: source.u8()?, time: source.f64()? };
        source.close(stamp)?;
        let quality = source.i16()?;
        let value = Variant::unmarshal(&Shape::Variant, source)?;
        let rank = source.i8()?;
        let other = Variant::unmarshal(&Shape::Variant, source)?;
        source.close(shape)?;
        Ok(Self { id, stamp: inner, quality, value, rank, other })
    }

    fn unmarshal_all<S: Source<'a> + ?Sized>(
        len: usize,
        element: &Shape,
        source: &mut S,
    ) -> Visit<Vec<Self>> {
        everywire_model::cells::take_all(len, element, source)
    }
}

impl Marshal for Opened {
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        self.0.marshal(shape, sink)
    }
}

impl<'a> Unmarshal<'a> for Opened {
    fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
        State::unmarshal(shape, source).map(Self)
    }
}

/// Variants of every width, nothing, and two that are no number.
fn some() -> Vec<State> {
    let text = || {
        Variant::new(Shape::Text(Text { kind: TextKind::Counted, bound: None }), Value::Text("seven".into()))
    };
    let values = [
        Variant::from(1.5_f32),
        Variant::from(-2.5_f64),
        Variant::default(),
        text(),
        Variant::from(true),
        Variant::from(-3_i8),
        Variant::from(-4_i16),
        Variant::from(5_u64),
        text(),
        Variant::from(6_i32),
    ];
    let count = values.len();
    (0..count)
        .map(|n| State {
            id: 0x0101_0101 * n as u32,
            stamp: Stamp { part: n as u8, time: -0.5 * n as f64 },
            quality: -(n as i16),
            value: values[n].clone(),
            rank: -(n as i8),
            other: values[(n + 3) % count].clone(),
        })
        .collect()
}

fn write<T: Marshal>(items: &[T], little: bool) -> Vec<u8> {
    let (shape, mut sink) = (states(), NdrSink::new(little));
    sink.open(&shape, 3).unwrap();
    sink.u8(1).unwrap();
    items.marshal(field(&shape, 1), &mut sink).unwrap();
    sink.u8(2).unwrap();
    sink.close(&shape).unwrap();
    sink.into_bytes().unwrap()
}

/// What was read, as text: two NaNs are the same then.
fn read<T: for<'a> Unmarshal<'a>>(
    bytes: &[u8],
    little: bool,
    get: fn(T) -> State,
) -> Result<String, Failure> {
    let (shape, body) = (states(), body(bytes, little));
    let mut source = NdrSource::new(&body);
    source.open(&shape)?;
    let first = source.u8()?;
    let items: Vec<T> = Unmarshal::unmarshal(field(&shape, 1), &mut source)?;
    let last = source.u8()?;
    source.close(&shape)?;
    Ok(format!("{first} {:?} {last}", items.into_iter().map(get).collect::<Vec<_>>()))
}

fn compare(bytes: &[u8], little: bool, what: &str) {
    let rows = read::<State>(bytes, little, |state| state).map_err(|failure| failure.message().to_owned());
    let opened =
        read::<Opened>(bytes, little, |state| state.0).map_err(|failure| failure.message().to_owned());
    assert_eq!(rows, opened, "{what}");
}

#[test]
fn rows_are_the_bytes_of_the_structs_that_are_opened() {
    let opened: Vec<Opened> = some().into_iter().map(Opened).collect();
    for little in [true, false] {
        let bytes = write(&some(), little);
        assert_eq!(bytes, write(&opened, little));
        let all = format!("1 {:?} 2", some());
        assert_eq!(read::<State>(&bytes, little, |state| state).unwrap(), all);
        assert_eq!(read::<Opened>(&bytes, little, |state| state.0).unwrap(), all);
        let few = write(&some()[..3], little);
        assert_eq!(few, write(&opened[..3], little));
        assert_eq!(write::<State>(&[], little), write::<Opened>(&[], little));
    }
}

#[test]
fn rows_that_are_cut_off_or_wrong_are_refused_as_the_structs_are() {
    for little in [true, false] {
        let bytes = write(&some(), little);
        for len in 0..bytes.len() {
            compare(&bytes[..len], little, &format!("cut off at {len}"));
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x20, 0x7f, 0xff] {
                let mut wrong = bytes.clone();
                wrong[at] = value;
                compare(&wrong, little, &format!("{value:#x} at {at}"));
            }
        }
    }
}

#[test]
fn more_rows_than_were_announced_are_refused() {
    let (shape, mut sink) = (states(), NdrSink::new(true));
    sink.open(&shape, 3).unwrap();
    sink.u8(1).unwrap();
    let states = field(&shape, 1);
    let Shape::Sequence(state) = states else { panic!() };
    sink.open(states, 1).unwrap();
    State::marshal_all(&some()[..1], &state.element, &mut sink).unwrap();
    assert!(State::marshal_all(&some()[..1], &state.element, &mut sink).is_err());
}

#[test]
fn a_struct_of_another_shape_is_written_as_before() {
    let other = structure("Pair", &[("part", Shape::U8), ("time", Shape::F64)]);
    let alike = structure("Pair", &[("part", Shape::I8), ("time", Shape::U64)]);
    let narrow = structure("Pair", &[("part", Shape::U8), ("time", Shape::F32)]);
    // What stands at the place of each cell is the type's own: a shape of the same widths is served, one of others is not.
    for (shape, is_row) in [(other, true), (alike, true), (narrow, false)] {
        let list = sequence(shape);
        let Shape::Sequence(inside) = &list else { panic!() };
        let mut sink = NdrSink::new(true);
        sink.open(&list, 1).unwrap();
        let layout = <Stamp as everywire_model::cells::IsRow>::LAYOUT;
        assert_eq!(sink.rows(&inside.element, layout, 1).is_some(), is_row);
    }
}

/// An array of nothing but variants.
#[test]
fn arrays_of_variants_are_the_bytes_of_those_that_are_opened() {
    struct Alone(Variant);
    impl Marshal for Alone {
        fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
            self.0.marshal(shape, sink)
        }
    }
    impl<'a> Unmarshal<'a> for Alone {
        fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
            Variant::unmarshal(shape, source).map(Self)
        }
    }
    fn write<T: Marshal>(items: &[T], little: bool) -> Vec<u8> {
        let (shape, mut sink) = (parameters(&[("all", sequence(Shape::Variant))]), NdrSink::new(little));
        sink.open(&shape, 1).unwrap();
        items.marshal(field(&shape, 0), &mut sink).unwrap();
        sink.close(&shape).unwrap();
        sink.into_bytes().unwrap()
    }
    fn read<T: for<'a> Unmarshal<'a>>(
        bytes: &[u8],
        little: bool,
        get: fn(T) -> Variant,
    ) -> Result<String, String> {
        let (shape, body) = (parameters(&[("all", sequence(Shape::Variant))]), body(bytes, little));
        let mut source = NdrSource::new(&body);
        let mut read = || {
            source.open(&shape)?;
            let items: Vec<T> = Unmarshal::unmarshal(field(&shape, 0), &mut source)?;
            source.close(&shape)?;
            Ok(format!("{:?}", items.into_iter().map(get).collect::<Vec<_>>()))
        };
        read().map_err(|failure: Failure| failure.message().to_owned())
    }
    let all: Vec<Variant> = some().into_iter().map(|state| state.value).collect();
    let opened: Vec<Alone> = all.iter().cloned().map(Alone).collect();
    for little in [true, false] {
        let bytes = write(&all, little);
        assert_eq!(bytes, write(&opened, little));
        assert_eq!(read::<Variant>(&bytes, little, |one| one), Ok(format!("{all:?}")));
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x21;
            for bytes in [&bytes[..at], &wrong] {
                let opened = read::<Alone>(bytes, little, |one| one.0);
                assert_eq!(read::<Variant>(bytes, little, |one| one), opened, "{at}");
            }
        }
    }
}
