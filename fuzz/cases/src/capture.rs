//! Captures: any file is read or refused, what is told of it stands in it, and reading takes no more than the file is worth.
//!
//! An even first octet: the rest is a file. An odd one: the rest are segments of two connections, or whole messages of a D-Bus
//! router, which this case writes as a file, so that the fuzzer need not find the headers of networks first.

use everywire_trace::Trace;
use std::path::PathBuf;
use std::sync::LazyLock;

/// The file, which each input writes anew.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("everywire-fuzz-capture-{}", std::process::id())));

/// What captures of raw IP and of a D-Bus router say of themselves.
const RAW: u32 = 101;
const DBUS: u32 = 231;

fn header(link: u32) -> Vec<u8> {
    let mut out = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    out.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0]);
    out.extend(link.to_le_bytes());
    out
}

fn packet(out: &mut Vec<u8>, time: u32, octets: &[u8]) {
    let len = u32::try_from(octets.len()).expect("short").to_le_bytes();
    out.extend([time.to_le_bytes(), [0; 4], len, len].concat());
    out.extend(octets);
}

/// An IPv4 packet with one segment from one side of one of two connections.
fn segment(outward: bool, connection: u8, sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let total = u16::try_from(40 + payload.len()).expect("short").to_be_bytes();
    let mut out = vec![0x45, 0, total[0], total[1], 0, 0, 0, 0, 64, 6, 0, 0];
    let ends = [[10, 0, 0, 1, 4, connection], [10, 0, 0, 2, 8, connection]];
    let (from, to) = if outward { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
    out.extend([&from[..4], &to[..4], &from[4..], &to[4..]].concat());
    out.extend(sequence.to_be_bytes());
    out.extend([0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    out.extend(payload);
    out
}

/// Segments in order, unless the step says that octets are lost, come again, or that a connection begins.
fn segments(mut data: &[u8]) -> Vec<u8> {
    let mut file = header(RAW);
    let mut next = [[1_u32, u32::MAX - 100]; 2];
    while let [step, len, rest @ ..] = data {
        let (piece, rest) = rest.split_at((usize::from(*len) * 4).min(rest.len()));
        data = rest;
        let (outward, connection) = (step & 1 == 0, step >> 1 & 1);
        let sequence = &mut next[usize::from(connection)][usize::from(!outward)];
        let flags = if step & 0xe0 == 0xe0 { 2 } else { 0x10 };
        match step >> 2 & 7 {
            1 => *sequence = sequence.wrapping_add(u32::from(*len)),
            2 => *sequence = sequence.wrapping_sub(u32::from(*len)),
            3 => *sequence = sequence.wrapping_add(0x4000_0000),
            _ => {}
        }
        packet(&mut file, u32::from(*step), &segment(outward, connection, *sequence, flags, piece));
        *sequence = sequence.wrapping_add(u32::try_from(piece.len()).expect("short"));
    }
    file
}

fn messages(mut data: &[u8]) -> Vec<u8> {
    let mut file = header(DBUS);
    while let [len, rest @ ..] = data {
        let (piece, rest) = rest.split_at((usize::from(*len) * 2).min(rest.len()));
        data = rest;
        packet(&mut file, u32::from(*len), piece);
    }
    file
}

/// Gives the octets to this case.
pub fn capture(data: &[u8]) {
    let [kind, data @ ..] = data else { return };
    let file = match kind & 3 {
        1 => segments(data),
        3 => messages(data),
        _ => data.to_vec(),
    };
    std::fs::write(&*FILE, &file).expect("a place for files of a moment");
    let read = Trace::read(&FILE, everywire::wires::ALL);
    std::fs::remove_file(&*FILE).expect("it was just written");
    let Ok(trace) = read else {
        assert!(kind & 1 == 0, "what this case wrote is a capture");
        return;
    };
    for message in &trace.messages {
        assert!(message.connection > 0 && message.connection <= trace.connections + 1);
        for part in &message.explained.parts {
            assert!(part.offset + part.len <= message.bytes.len(), "{part:?} of {}", message.bytes.len());
        }
    }
    // No octet is in two messages of one direction.
    let told: usize = trace.messages.iter().map(|message| message.bytes.len()).sum();
    assert!(told <= file.len(), "{told} octets of messages in a file of {}", file.len());
}
