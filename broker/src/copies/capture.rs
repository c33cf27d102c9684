//! Captures: blocks of pcapng (draft-ietf-opsawg-pcapng), of two interfaces.
//!
//! What can be made a message again ([`super::rebuild`]) stands in segments of TCP between two addresses of documentation (RFC 5737), a
//! connection for each call, of link type 101 (`LINKTYPE_RAW`): what reads captures reads it. Of everything else the encoded body is a packet
//! of link type 147 (`LINKTYPE_USER0`). Each copy has a comment that says what it is.

use super::Copy;
use super::rebuild::{Rebuilder, StreamChunk};
use std::collections::VecDeque;

/// The link type of packets that only we know how to read, and that of IP.
const USER: u16 = 147;
const RAW: u16 = 101;
/// Their interfaces, in the order in which they are described.
const BODIES: u32 = 0;
const MESSAGES: u32 = 1;

/// Who calls, and who is called.
const CALLER: [u8; 4] = [192, 0, 2, 1];
const CALLED: [u8; 4] = [192, 0, 2, 2];
/// Ports of callers begin here, with those that are nobody's own (RFC 6335, section 6): by any other, who reads a capture would take the
/// messages for another protocol's.
const PORTS: u64 = 49_152;
/// The most bytes in a segment: a packet of IP has 65,535 with its headers.
const SEGMENT: usize = 32 << 10;
/// Calls whose answers may come: of those before, an answer begins a connection of its own.
const MOST: usize = 1024;

/// Octets of the headers of IP and TCP, without options.
const IP: usize = 20;
const TCP: usize = 20;
/// Flags of TCP.
const SYN: u8 = 2;
const PUSH: u8 = 8;
const ACK: u8 = 16;

/// Section header and descriptions of the interfaces, whose times count microseconds.
pub(super) fn section() -> Vec<u8> {
    let mut header = Vec::new();
    header.extend_from_slice(&0x1A2B_3C4D_u32.to_le_bytes());
    header.extend_from_slice(&1_u16.to_le_bytes());
    header.extend_from_slice(&0_u16.to_le_bytes());
    // The length of the section is not known.
    header.extend_from_slice(&u64::MAX.to_le_bytes());
    let mut blocks = block(0x0A0D_0D0A, &header);
    for link in [USER, RAW] {
        let mut interface = Vec::new();
        interface.extend_from_slice(&link.to_le_bytes());
        interface.extend_from_slice(&[0; 2]);
        // No limit on the length of packets.
        interface.extend_from_slice(&0_u32.to_le_bytes());
        blocks.extend(block(1, &interface));
    }
    blocks
}

/// What is written of copies, one after the other, with the numbers of TCP that their connections have come
/// to.
#[derive(Default)]
pub(super) struct CaptureState {
    rebuilder: Rebuilder,
    /// The next bytes of each connection, of the caller and of the called.
    flows: VecDeque<(u64, [u32; 2])>,
}

impl CaptureState {
    /// The packets of a copy.
    pub(super) fn packets(&mut self, copy: &Copy) -> Vec<u8> {
        match self.rebuilder.say(copy) {
            Some(said) => self.segments(copy, &said),
            None => packet(copy, BODIES, &copy.body.bytes, true),
        }
    }

    /// The segments of what was said for a copy. The first copy of a call begins its connection: SYN and SYN
    /// with ACK.
    fn segments(&mut self, copy: &Copy, said: &[StreamChunk]) -> Vec<u8> {
        let mut out = Vec::new();
        let known = self.flows.iter().position(|(call, _)| *call == copy.call);
        let mut next = match known.and_then(|at| self.flows.remove(at)) {
            Some((_, next)) => next,
            None => {
                let port = port(copy.call);
                out.extend(packet(copy, MESSAGES, &segment(true, port, [0, 0], SYN, &[]), true));
                out.extend(packet(copy, MESSAGES, &segment(false, port, [1, 0], SYN | ACK, &[]), false));
                [1, 1]
            }
        };
        for (at, part) in said.iter().enumerate() {
            for (number, piece) in part.bytes.chunks(SEGMENT).enumerate() {
                let ip = segment(part.outward, port(copy.call), next, PUSH | ACK, piece);
                let first = known.is_some() && at == 0 && number == 0;
                out.extend(packet(copy, MESSAGES, &ip, first));
                let [caller, called] = &mut next;
                let said = if part.outward { caller } else { called };
                *said = said.wrapping_add(u32::try_from(piece.len()).unwrap_or_default());
            }
        }
        if self.flows.len() >= MOST {
            self.flows.pop_front();
        }
        self.flows.push_back((copy.call, next));
        out
    }
}

/// The caller's port of a call.
fn port(call: u64) -> u16 {
    u16::try_from(PORTS + call % (65_535 - PORTS)).unwrap_or(u16::MAX)
}

/// A segment of TCP in a packet of IP: RFC 791 and RFC 9293, without options. `next` are the next bytes of the caller and of the called.
fn segment(outward: bool, port: u16, next: [u32; 2], flags: u8, payload: &[u8]) -> Vec<u8> {
    /// Where the called listens: one of these ports, too.
    const LISTENS: u16 = 65_535;
    let [caller, called] = next;
    let (from, to) = if outward { (CALLER, CALLED) } else { (CALLED, CALLER) };
    let (source, target) = if outward { (port, LISTENS) } else { (LISTENS, port) };
    let (sequence, acknowledged) = if outward { (caller, called) } else { (called, caller) };
    let acknowledged = if flags & ACK == 0 { 0 } else { acknowledged };
    let whole = u16::try_from(IP + TCP + payload.len()).unwrap_or(u16::MAX);
    let len = u16::try_from(TCP + payload.len()).unwrap_or(u16::MAX);
    let mut packet = Vec::with_capacity(IP + TCP + payload.len());
    packet.extend_from_slice(&[0x45, 0]);
    packet.extend_from_slice(&whole.to_be_bytes());
    // Not to be cut up; of TCP.
    packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
    packet.extend_from_slice(&from);
    packet.extend_from_slice(&to);
    let header = sum(&packet);
    put_checksum(&mut packet, 10, header);
    packet.extend_from_slice(&source.to_be_bytes());
    packet.extend_from_slice(&target.to_be_bytes());
    packet.extend_from_slice(&sequence.to_be_bytes());
    packet.extend_from_slice(&acknowledged.to_be_bytes());
    packet.extend_from_slice(&[5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
    packet.extend_from_slice(payload);
    // Addresses, protocol and length count, too.
    let counted = [&from[..], &to, &[0, 6], &len.to_be_bytes()].concat();
    let counted = sum(&counted) + sum(packet.get(IP..).unwrap_or_default());
    put_checksum(&mut packet, IP + 16, counted);
    packet
}

/// The sum of all words of 16 bits (RFC 1071), not folded yet: larger words have the same one, and are fewer.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last.iter_mut().zip(rest).for_each(|(to, octet)| *to = *octet);
    words.iter().chain([&last]).map(|word| u64::from(u32::from_be_bytes(*word))).sum()
}

/// Puts the checksum of IP and TCP of such a sum at its place.
fn put_checksum(packet: &mut [u8], at: usize, mut sum: u64) {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    if let Some(slot) = packet.get_mut(at..at + 2) {
        slot.copy_from_slice(&(!u16::try_from(sum).unwrap_or_default()).to_be_bytes());
    }
}

/// An enhanced packet.
fn packet(copy: &Copy, interface: u32, content: &[u8], titled: bool) -> Vec<u8> {
    let micros = u64::try_from(copy.time().as_micros()).unwrap_or(u64::MAX);
    let mut packet = interface.to_le_bytes().to_vec();
    let [a, b, c, d, e, f, g, h] = micros.to_le_bytes();
    packet.extend_from_slice(&[e, f, g, h, a, b, c, d]);
    let len = u32::try_from(content.len()).unwrap_or(u32::MAX);
    packet.extend_from_slice(&len.to_le_bytes());
    packet.extend_from_slice(&len.to_le_bytes());
    packet.extend_from_slice(content);
    pad(&mut packet);
    if titled {
        let title = copy.title();
        let title = title.as_bytes().get(..title.len().min(1000)).unwrap_or_default();
        packet.extend_from_slice(&1_u16.to_le_bytes());
        packet.extend_from_slice(&u16::try_from(title.len()).unwrap_or_default().to_le_bytes());
        packet.extend_from_slice(title);
        pad(&mut packet);
        // The end of the options.
        packet.extend_from_slice(&[0; 4]);
    }
    block(6, &packet)
}

/// Blocks and options begin at multiples of four (draft, 3.1).
fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// A block: type, length in all, content, length again.
fn block(kind: u32, content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len() + 12).unwrap_or(u32::MAX).to_le_bytes();
    [&kind.to_le_bytes()[..], &len, content, &len].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum as RFC 1071 writes it.
    fn plainly(bytes: &[u8]) -> u16 {
        let word =
            |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or_default());
        let sum = bytes.chunks(2).map(word).fold(0, |sum: u32, word| (sum + word) % 0xffff);
        u16::try_from(sum).unwrap()
    }

    /// Whoever gets a packet sums up all there is, the checksum among it: nothing is left.
    #[test]
    fn checksums_are_those_of_the_content() {
        let content: Vec<u8> = (0..999_u32).map(|at| u8::try_from(at * at % 251).unwrap()).collect();
        for len in [0, 1, 2, 3, 4, 5, 7, 8, 100, 999] {
            for outward in [true, false] {
                let packet = segment(outward, port(7), [u32::MAX, 3], PUSH | ACK, &content[..len]);
                assert_eq!(packet.len(), 40 + len);
                assert_eq!(&packet[40..], &content[..len]);
                assert_eq!(plainly(&packet[..IP]), 0, "{len}");
                let pseudo =
                    [&packet[12..20], &[0, 6], &u16::try_from(TCP + len).unwrap().to_be_bytes()].concat();
                assert_eq!(plainly(&[&pseudo, &packet[IP..]].concat()), 0, "{len}");
            }
        }
    }

    /// No port of a caller is another protocol's, or that of the called.
    #[test]
    fn ports_are_nobodys_own() {
        let all = (0..200_000).map(port);
        assert!(all.clone().all(|port| (49_152..65_535).contains(&port)), "{:?}", all.min());
    }
}
