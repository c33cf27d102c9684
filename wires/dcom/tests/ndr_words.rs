//! Structs of unsigned numbers of 32 bits are written and read in one go where generated code meets them: the bytes, and what is made of bytes
//! that are cut off, are those of the struct that is opened and closed.

use crate::common::{body, parameters, sequence, structure};
use everywire_dcom::{NdrSink, NdrSource};
use everywire_model::marshal::field;
use everywire_model::shape::Shape;
use everywire_model::visit::{Sink, Source, Visit};

const TIMES: [[u32; 2]; 3] = [[1, 2], [0xdead_beef, 0x01d6_0000], [u32::MAX, 0]];

fn shape() -> Shape {
    let time = || structure("Time", &[("low", Shape::U32), ("high", Shape::U32)]);
    let item = structure("Item", &[("before", Shape::U16), ("time", time()), ("after", Shape::U8)]);
    let fields =
        [("alone", time()), ("items", sequence(item)), ("times", sequence(time())), ("last", Shape::U8)];
    parameters(&fields)
}

/// How a time is written.
type Put = fn(&mut NdrSink, &Shape, &[u32; 2]) -> Visit<()>;
/// How it is read.
type Get = fn(&mut NdrSource<'_>, &Shape) -> Visit<[u32; 2]>;

fn put_opened(sink: &mut NdrSink, shape: &Shape, time: &[u32; 2]) -> Visit<()> {
    sink.open(shape, 2)?;
    sink.u32(time[0])?;
    sink.u32(time[1])?;
    sink.close(shape)
}

fn put_words(sink: &mut NdrSink, shape: &Shape, time: &[u32; 2]) -> Visit<()> {
    sink.words(shape, time)
}

fn get_opened(source: &mut NdrSource<'_>, shape: &Shape) -> Visit<[u32; 2]> {
    source.open(shape)?;
    let time = [source.u32()?, source.u32()?];
    source.close(shape)?;
    Ok(time)
}

fn get_words(source: &mut NdrSource<'_>, shape: &Shape) -> Visit<[u32; 2]> {
    let mut time = [0; 2];
    source.words(shape, &mut time)?;
    Ok(time)
}

fn write(little: bool, put: Put) -> Vec<u8> {
    let (shape, mut sink) = (shape(), NdrSink::new(little));
    let (items, times) = (field(&shape, 1), field(&shape, 2));
    let (Shape::Sequence(item), Shape::Sequence(time)) = (items, times) else { panic!() };
    sink.open(&shape, 4).unwrap();
    put(&mut sink, field(&shape, 0), &TIMES[1]).unwrap();
    sink.open(items, TIMES.len()).unwrap();
    for time in &TIMES {
        sink.open(&item.element, 3).unwrap();
        sink.u16(7).unwrap();
        put(&mut sink, field(&item.element, 1), time).unwrap();
        sink.u8(9).unwrap();
        sink.close(&item.element).unwrap();
    }
    sink.close(items).unwrap();
    sink.open(times, TIMES.len()).unwrap();
    TIMES.iter().for_each(|one| put(&mut sink, &time.element, one).unwrap());
    sink.close(times).unwrap();
    sink.u8(5).unwrap();
    sink.close(&shape).unwrap();
    sink.into_bytes().unwrap()
}

fn read(bytes: &[u8], little: bool, get: Get) -> Visit<Vec<[u32; 2]>> {
    let (shape, body) = (shape(), body(bytes, little));
    let (items, times) = (field(&shape, 1), field(&shape, 2));
    let (Shape::Sequence(item), Shape::Sequence(time)) = (items, times) else { panic!() };
    let mut source = NdrSource::new(&body);
    source.open(&shape)?;
    let mut found = vec![get(&mut source, field(&shape, 0))?];
    for _ in 0..source.open(items)? {
        source.open(&item.element)?;
        assert_eq!(source.u16()?, 7);
        found.push(get(&mut source, field(&item.element, 1))?);
        assert_eq!(source.u8()?, 9);
        source.close(&item.element)?;
    }
    source.close(items)?;
    for _ in 0..source.open(times)? {
        found.push(get(&mut source, &time.element)?);
    }
    source.close(times)?;
    assert_eq!(source.u8()?, 5);
    source.close(&shape)?;
    Ok(found)
}

#[test]
fn words_are_the_bytes_of_the_struct_that_is_opened() {
    for little in [true, false] {
        let bytes = write(little, put_words);
        assert_eq!(bytes, write(little, put_opened));
        let all: Vec<[u32; 2]> = [TIMES[1]].into_iter().chain(TIMES).chain(TIMES).collect();
        assert_eq!(read(&bytes, little, get_words).unwrap(), all);
        assert_eq!(read(&bytes, little, get_opened).unwrap(), all);
    }
}

#[test]
fn words_that_are_cut_off_are_refused_as_the_struct_is() {
    let bytes = write(true, put_words);
    for len in 0..bytes.len() {
        let [words, opened] =
            [get_words as Get, get_opened].map(|get| read(&bytes[..len], true, get).unwrap_err());
        assert_eq!(words.message(), opened.message(), "{len}");
    }
}

#[test]
fn more_or_fewer_words_than_the_struct_has_are_refused() {
    let (shape, mut sink) = (shape(), NdrSink::new(true));
    let times = field(&shape, 2);
    let Shape::Sequence(time) = times else { panic!() };
    sink.open(times, 1).unwrap();
    assert!(sink.words(&time.element, &[1, 2, 3]).is_err());
    let mut sink = NdrSink::new(true);
    sink.open(times, 1).unwrap();
    sink.words(&time.element, &[1, 2]).unwrap();
    assert!(sink.words(&time.element, &[1, 2]).is_err());
}
