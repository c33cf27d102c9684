//! Captures: blocks of pcapng (draft-ietf-opsawg-pcapng), one packet for each copy.
//!
//! The packets are encoded bodies as they passed, of link type 147 (`LINKTYPE_USER0`), each with a comment that says what it is: headers are not
//! part of a copy.

use super::Copy;

/// The link type of packets that only we know how to read.
const USER: u16 = 147;

/// Section header and description of the one interface, whose times count microseconds.
pub(super) fn section() -> Vec<u8> {
    let mut header = Vec::new();
    header.extend_from_slice(&0x1A2B_3C4D_u32.to_le_bytes());
    header.extend_from_slice(&1_u16.to_le_bytes());
    header.extend_from_slice(&0_u16.to_le_bytes());
    // The length of the section is not known.
    header.extend_from_slice(&u64::MAX.to_le_bytes());
    let mut blocks = block(0x0A0D_0D0A, &header);
    let mut interface = Vec::new();
    interface.extend_from_slice(&USER.to_le_bytes());
    interface.extend_from_slice(&[0; 2]);
    // No limit on the length of packets.
    interface.extend_from_slice(&0_u32.to_le_bytes());
    blocks.extend(block(1, &interface));
    blocks
}

/// An enhanced packet.
pub(super) fn packet(copy: &Copy) -> Vec<u8> {
    let body = &copy.body.bytes;
    let micros = u64::try_from(copy.at.as_micros()).unwrap_or(u64::MAX);
    let mut packet = 0_u32.to_le_bytes().to_vec();
    let [a, b, c, d, e, f, g, h] = micros.to_le_bytes();
    packet.extend_from_slice(&[e, f, g, h, a, b, c, d]);
    let len = u32::try_from(body.len()).unwrap_or(u32::MAX);
    packet.extend_from_slice(&len.to_le_bytes());
    packet.extend_from_slice(&len.to_le_bytes());
    packet.extend_from_slice(body);
    pad(&mut packet);
    let title = copy.title();
    let title = title.as_bytes().get(..title.len().min(1000)).unwrap_or_default();
    packet.extend_from_slice(&1_u16.to_le_bytes());
    packet.extend_from_slice(&u16::try_from(title.len()).unwrap_or_default().to_le_bytes());
    packet.extend_from_slice(title);
    pad(&mut packet);
    // The end of the options.
    packet.extend_from_slice(&[0; 4]);
    block(6, &packet)
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn block(kind: u32, content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len() + 12).unwrap_or(u32::MAX).to_le_bytes();
    [&kind.to_le_bytes()[..], &len, content, &len].concat()
}
