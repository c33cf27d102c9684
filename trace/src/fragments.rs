//! IP packets that come in fragments (RFC 791 3.2, RFC 8200 4.5), put together again.
//!
//! Invariant: no more than [`MOST`] packets wait for their other fragments; the one that came first goes, since its fragments are the least
//! likely to come. Each has at most 64 KiB, which IP allows.

use etherparse::defrag::IpDefragBuf;
use etherparse::{IpNumber, Ipv6ExtensionSlice, LaxNetSlice};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Packets that may wait: the fragments of one mostly follow each other.
const MOST: usize = 256;

/// What tells the fragments of one packet from those of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PacketName {
    from: IpAddr,
    to: IpAddr,
    protocol: IpNumber,
    number: u32,
}

/// Packets of which some fragments are there.
#[derive(Default)]
pub(crate) struct Fragments(VecDeque<(PacketName, IpDefragBuf)>);

/// What a packet of IP holds.
pub(crate) enum Payload {
    /// It is no fragment.
    Whole,
    /// It is one, and others are missing.
    Part,
    /// It was the last that was missing: what all of them hold, and of which protocol that is.
    Joined(IpNumber, Vec<u8>),
}

impl Fragments {
    /// Takes a packet of IP.
    pub(crate) fn take(&mut self, packet: &LaxNetSlice<'_>) -> Payload {
        let (name, offset, more, payload) = match packet {
            LaxNetSlice::Ipv4(ip) if ip.header().is_fragmenting_payload() => {
                let (header, payload) = (ip.header(), ip.payload());
                let name = PacketName {
                    from: header.source_addr().into(),
                    to: header.destination_addr().into(),
                    protocol: payload.ip_number,
                    number: header.identification().into(),
                };
                (name, header.fragments_offset(), header.more_fragments(), payload)
            }
            LaxNetSlice::Ipv6(ip) => {
                let mut extensions = ip.extensions().clone().into_iter();
                let fragment = extensions.find_map(|extension| match extension {
                    Ipv6ExtensionSlice::Fragment(fragment) if fragment.is_fragmenting_payload() => {
                        Some(fragment)
                    }
                    _ => None,
                });
                let Some(fragment) = fragment.map(|fragment| fragment.to_header()) else {
                    return Payload::Whole;
                };
                let (header, payload) = (ip.header(), ip.payload());
                let name = PacketName {
                    from: header.source_addr().into(),
                    to: header.destination_addr().into(),
                    protocol: payload.ip_number,
                    number: fragment.identification,
                };
                (name, fragment.fragment_offset, fragment.more_fragments, payload)
            }
            _ => return Payload::Whole,
        };
        if payload.incomplete {
            // The capture has only its beginning, so the packet never becomes whole.
            return Payload::Part;
        }
        let at = match self.0.iter().position(|(known, _)| *known == name) {
            Some(at) => at,
            None => {
                if self.0.len() >= MOST {
                    self.0.pop_front();
                }
                self.0.push_back((name, IpDefragBuf::new(name.protocol, Vec::new(), Vec::new())));
                self.0.len() - 1
            }
        };
        let Some((_, parts)) = self.0.get_mut(at) else { return Payload::Part };
        let fits = parts.add(offset, more, payload.payload).is_ok();
        if fits && !parts.is_complete() {
            return Payload::Part;
        }
        // What contradicts itself is no packet.
        match self.0.remove(at) {
            Some((name, parts)) if fits => Payload::Joined(name.protocol, parts.take_bufs().0),
            _ => Payload::Part,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{LaxSlicedPacket, PacketBuilder, ip_number};

    /// The TCP segment of a packet, and a packet for each piece of it.
    fn pieces(v6: bool, number: u16, text: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
        let mut whole = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .tcp(1, 2, 7, 100)
            .write(&mut whole, text)
            .unwrap();
        let segment = whole.split_off(20);
        let count = segment.chunks(16).count();
        let pieces = segment.chunks(16).enumerate().map(|(at, piece)| {
            let more = at + 1 < count;
            let offset = u16::try_from(at * 16).unwrap();
            if v6 {
                let mut head = vec![0x60, 0, 0, 0];
                head.extend(u16::try_from(8 + piece.len()).unwrap().to_be_bytes());
                head.extend([44, 64]);
                head.extend([1; 16].iter().chain(&[2; 16]));
                head.extend([6, 0]);
                head.extend((offset | u16::from(more)).to_be_bytes());
                head.extend(u32::from(number).to_be_bytes());
                [&head, piece].concat()
            } else {
                let mut head = whole.clone();
                head[2..4].copy_from_slice(&u16::try_from(20 + piece.len()).unwrap().to_be_bytes());
                head[4..6].copy_from_slice(&number.to_be_bytes());
                head[6..8].copy_from_slice(&((offset / 8) | (u16::from(more) << 13)).to_be_bytes());
                [&head, piece].concat()
            }
        });
        let pieces = pieces.collect();
        (segment, pieces)
    }

    fn take(fragments: &mut Fragments, packet: &[u8]) -> Option<Vec<u8>> {
        let packet = LaxSlicedPacket::from_ip(packet).unwrap();
        match fragments.take(packet.net.as_ref().unwrap()) {
            Payload::Whole => panic!("it is a fragment"),
            Payload::Part => None,
            Payload::Joined(protocol, octets) => {
                assert_eq!(protocol, ip_number::TCP);
                Some(octets)
            }
        }
    }

    #[test]
    fn fragments_are_joined_in_any_order_and_beside_those_of_others() {
        for v6 in [false, true] {
            let mut fragments = Fragments::default();
            let (one, first) = pieces(v6, 1, b"a text that needs some packets of its own");
            let (two, second) = pieces(v6, 2, b"another text, which comes at the same time");
            let mut joined = Vec::new();
            for (one, two) in first.iter().rev().zip(&second) {
                joined.extend(take(&mut fragments, one));
                // What comes twice does no harm.
                take(&mut fragments, one);
                joined.extend(take(&mut fragments, two));
            }
            assert_eq!(joined, [one, two], "IPv6: {v6}");
        }
    }

    #[test]
    fn packets_that_never_become_whole_take_little_memory() {
        let mut fragments = Fragments::default();
        for number in 0..2000 {
            let (_, pieces) = pieces(false, number, b"the rest of it is lost");
            assert!(take(&mut fragments, &pieces[1]).is_none());
        }
        assert_eq!(fragments.0.len(), MOST);
        let (segment, last) = pieces(false, 1999, b"the rest of it is lost");
        let all: Vec<_> = last.iter().filter_map(|piece| take(&mut fragments, piece)).collect();
        assert_eq!(all, [segment]);
    }

    #[test]
    fn pieces_that_contradict_each_other_are_no_packet() {
        let mut fragments = Fragments::default();
        let (_, long) = pieces(false, 1, b"a text that needs some packets of its own");
        let (_, short) = pieces(false, 1, b"a short one");
        assert!(take(&mut fragments, long.last().unwrap()).is_none());
        assert!(take(&mut fragments, short.last().unwrap()).is_none());
        assert!(fragments.0.is_empty());
        // Half of a piece is there only.
        assert!(take(&mut fragments, &long[0][..30]).is_none());
        assert!(fragments.0.is_empty());
    }
}
