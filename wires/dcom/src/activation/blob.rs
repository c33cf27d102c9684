//! Activation properties BLOBs (MS-DCOM 2.2.22): a header and properties, each a stream of its own as type
//! serialization version 1 has it (MS-RPCE 2.2.6).
//!
//! A BLOB is: its size, a reserved word, the stream of the header, the streams of the properties. The header
//! lists the class and the size of each property. A stream is 16 octets of headers and NDR, padded to a
//! multiple of 8, whose alignment counts from behind the headers.
//!
//! Invariants: the number of properties is bounded before anything is allocated; the sizes that the header
//! lists must fit into what is there. Sizes that are said twice need not agree: impacket and Windows count
//! them in different ways.

use crate::stub::{Get, StubWriter};
use crate::violations::Violation;
use uuid::Uuid;

/// MIN_ACTPROP_LIMIT and MAX_ACTPROP_LIMIT (2.2.28.1).
const PROPERTIES: std::ops::RangeInclusive<usize> = 1..=10;
/// What every stream begins with (MS-RPCE 2.2.6.1, 2.2.6.2): common and private header.
const STREAM_HEADER: usize = 16;
/// Version 1 of the serialization; version 2 has longer headers and serves NDR64.
const VERSION: u8 = 1;
/// The bit in the octet of the byte order. Big-endian streams are read too.
const LITTLE_ENDIAN: u8 = 0x10;
/// The length of the common header, which the header itself says.
const COMMON_HEADER: u16 = 8;
/// What stands in the four octets that mean nothing (MS-RPCE 2.2.6.1).
const FILLER: u32 = 0xcccc_cccc;
/// MSHCTX_DIFFERENTMACHINE.
const DIFFERENT_MACHINE: u32 = 2;

/// The properties in a BLOB, each with its class, in their order. The BLOB may be longer than it says.
pub(super) fn read(blob: &[u8]) -> Result<Vec<(Uuid, Get<'_>)>, Violation> {
    let mut get = Get::new(blob, true);
    let [size, _] = get.words()?.map(|word| word as usize);
    // A size beyond what is there counts as all of it.
    let streams = get.take(size.min(get.left()))?;
    let mut header = stream(streams)?;
    let [_, header_size, _, _, count] = header.words()?.map(|word| word as usize);
    if !PROPERTIES.contains(&count) {
        return Err(Violation::BoundExceeded);
    }
    header.uuid()?;
    header.reference()?;
    header.reference()?;
    header.pointer()?;
    let classes = header.array(count, 16, Get::uuid)?;
    let sizes = header.array(count, 4, Get::u32)?;
    let mut rest = streams.get(header_size..).ok_or(Violation::Truncated)?;
    let mut found = Vec::with_capacity(count);
    for (class, size) in classes.into_iter().zip(sizes) {
        let (raw, behind) = rest.split_at_checked(size as usize).ok_or(Violation::Truncated)?;
        found.push((class, stream(raw)?));
        rest = behind;
    }
    Ok(found)
}

/// A BLOB of these properties.
pub(super) fn write(properties: Vec<(Uuid, Vec<u8>)>) -> Vec<u8> {
    let (classes, streams): (Vec<Uuid>, Vec<Vec<u8>>) =
        properties.into_iter().map(|(class, contents)| (class, framed(contents))).unzip();
    let count = streams.len();
    // The length in place (48), two maximum counts, and per property a class and a size.
    let header_size = STREAM_HEADER + (56 + 20 * count).next_multiple_of(8);
    let size = header_size + streams.iter().map(Vec::len).sum::<usize>();
    let mut header = StubWriter::default();
    header.count(size).count(header_size).words(&[0, DIFFERENT_MACHINE]).count(count).uuid(Uuid::nil());
    header.pointer(true).pointer(true).pointer(false);
    header
        .array(classes.into_iter(), StubWriter::uuid)
        .array(streams.iter().map(Vec::len), StubWriter::count);
    let mut blob = StubWriter::default();
    blob.count(size).u32(0).raw(&framed(header.done()));
    streams.iter().fold(&mut blob, |blob, stream| blob.raw(stream)).done()
}

/// How long a property is with the header of its stream.
pub(super) fn framed_len(contents: usize) -> usize {
    STREAM_HEADER + contents.next_multiple_of(8)
}

/// The contents of a stream; its length is what it says, or less if it is cut.
fn stream(raw: &[u8]) -> Result<Get<'_>, Violation> {
    let header = raw.first_chunk::<STREAM_HEADER>().ok_or(Violation::Truncated)?;
    let [version, order, ..] = *header;
    if version != VERSION {
        return Err(Violation::BadSerialization);
    }
    let little = order & LITTLE_ENDIAN != 0;
    let mut get = Get::new(header, little);
    get.u16()?;
    if get.u16()? != COMMON_HEADER {
        return Err(Violation::BadSerialization);
    }
    let [_, len] = get.words()?.map(|word| word as usize);
    let contents = raw.get(STREAM_HEADER..).unwrap_or_default();
    Ok(Get::new(contents.get(..len).unwrap_or(contents), little))
}

/// A property as a stream: both headers, and its contents padded to a multiple of 8.
fn framed(contents: Vec<u8>) -> Vec<u8> {
    let contents = StubWriter::beginning(contents).align(8).done();
    let mut out = StubWriter::beginning(vec![VERSION, LITTLE_ENDIAN]);
    out.u16(COMMON_HEADER).u32(FILLER).count(contents.len()).u32(0).raw(&contents).done()
}
