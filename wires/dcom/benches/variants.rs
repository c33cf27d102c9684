//! What a hundred items of OPC cost in NDR: handle, time, quality and a VARIANT that holds a number. Wall-clock figures, which no test
//! asserts.
//!
//! `cargo bench -p everywire-dcom --bench variants` prints nanoseconds for each item, written and read: as generated code holds them,
//! and as a tree of values.

use everywire_dcom::ndr::NDR;
use everywire_dcom::{NdrSink, NdrSource};
use everywire_model::marshal::{Marshal, Unmarshal, field};
use everywire_model::shape::{Field, Hold, Order, Sequence, Shape, Struct};
use everywire_model::visit::{Sink, Source, Visit};
use everywire_model::{Body, Budget, Context, Value, Variant};
use std::borrow::Cow;
use std::hint::black_box;
use std::time::Instant;

const ITEMS: u32 = 100;
const ROUNDS: u32 = 2_000;

static FIELDS: [Field; 6] = [
    of("hClient", Shape::U32),
    of("low", Shape::U32),
    of("high", Shape::U32),
    of("wQuality", Shape::U16),
    of("wReserved", Shape::U16),
    of("vDataValue", Shape::Variant),
];
static STATE: Struct =
    Struct { name: Cow::Borrowed("STATE"), id: Cow::Borrowed(""), fields: Cow::Borrowed(&FIELDS) };
static STATES: Sequence = Sequence {
    element: Shape::Struct(Hold::Static(&STATE)),
    bound: None,
    order: Order::Conformant,
    size: None,
};

const fn of(name: &'static str, shape: Shape) -> Field {
    Field { name: Cow::Borrowed(name), shape }
}

struct State {
    client: u32,
    time: [u32; 2],
    quality: [u16; 2],
    value: Variant,
}

impl Marshal for State {
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        sink.open(shape, 6)?;
        sink.u32(self.client)?;
        self.time.iter().try_for_each(|half| sink.u32(*half))?;
        self.quality.iter().try_for_each(|word| sink.u16(*word))?;
        self.value.marshal(field(shape, 5), sink)?;
        sink.close(shape)
    }
}

impl<'a> Unmarshal<'a> for State {
    fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
        source.open(shape)?;
        let (client, time) = (source.u32()?, [source.u32()?, source.u32()?]);
        let quality = [source.u16()?, source.u16()?];
        let value = Variant::unmarshal(field(shape, 5), source)?;
        source.close(shape)?;
        Ok(Self { client, time, quality, value })
    }
}

fn body(bytes: Vec<u8>) -> Body {
    Body {
        bytes: bytes.into(),
        base: 0,
        little: true,
        dialect: 0,
        budget: Budget::default(),
        codec: &NDR,
        context: Context::default(),
        beside: None,
    }
}

/// Nanoseconds of one item, the best of five runs.
fn timed(mut work: impl FnMut()) -> f64 {
    let run = |_| {
        let begun = Instant::now();
        (0..ROUNDS).for_each(|_| work());
        begun.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS * ITEMS)
    };
    (0..5).map(run).fold(f64::INFINITY, f64::min)
}

fn main() -> Visit<()> {
    let shape = Shape::Sequence(Hold::Static(&STATES));
    let states: Vec<State> = (0..ITEMS)
        .map(|n| State { client: n, time: [n, 1], quality: [192, 0], value: Variant::from(n as f32) })
        .collect();
    let written = |states: &Vec<State>| {
        let mut sink = NdrSink::new(true);
        states.marshal(&shape, &mut sink)?;
        sink.into_bytes()
    };
    let bytes = body(written(&states)?);
    let tree = Value::decode(&shape, &mut NdrSource::new(&bytes))?;
    let read = || Vec::<State>::unmarshal(&shape, &mut NdrSource::new(&bytes));
    assert_eq!(written(&read()?)?, bytes.bytes);

    println!(
        "an item of {} octets in memory, {} on the wire",
        size_of::<State>(),
        bytes.bytes.len() / ITEMS as usize
    );
    println!(
        "typed: written {:.0} ns, read {:.0} ns",
        timed(|| drop(black_box(written(&states)))),
        timed(|| drop(black_box(read())))
    );
    println!(
        "a tree of values: written {:.0} ns, read {:.0} ns",
        timed(|| {
            let mut sink = NdrSink::new(true);
            black_box(tree.encode(&shape, &mut sink).and_then(|()| sink.into_bytes())).ok();
        }),
        timed(|| drop(black_box(Value::decode(&shape, &mut NdrSource::new(&bytes))))),
    );
    Ok(())
}
