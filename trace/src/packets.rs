//! TCP segments out of capture files.
//!
//! Both formats of files and the usual link types are read; fragments of IP are put together ([`Fragments`]), and everything but TCP is
//! passed over. A file that ends within a packet is read up to there, because captures are often looked at while
//! they are written.
//!
//! State: the section that is being read, with the order of its octets and its interfaces; the header of the next one forgets them. A file of
//! pcap is one section with one interface.
//!
//! Invariants: a packet of an interface that was not described is passed over. The buffer holds at most twice what was read of one block, and
//! never more than [`MOST`], whatever a block says of its length. A block that is there to its end is read or refused, and never waited for.

use crate::fragments::{Fragments, Payload};
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TcpSlice, TransportSlice, ip_number};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// What is read of a file at once.
const BUFFER: usize = 1 << 16;
/// The largest block: captures of a D-Bus router hold messages of 128 MiB, with a header around each.
const MOST: usize = 129 << 20;

/// One TCP segment.
pub(crate) struct Segment<'p> {
    /// When it was captured, counted from 1970.
    pub(crate) time: Duration,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) sequence: u32,
    pub(crate) syn: bool,
    pub(crate) ack: bool,
    pub(crate) payload: &'p [u8],
}

/// What a capture holds.
pub(crate) enum Packet<'p> {
    /// A TCP segment.
    Segment(Segment<'p>),
    /// A packet of a link type that is none of a network's.
    Other { time: Duration, link: u32, data: &'p [u8] },
}

/// What is known of the file that is read.
#[derive(Default)]
struct Section {
    /// Whether numbers of its blocks are big-endian; none where the file is pcap, which has packets only.
    big_endian: Option<bool>,
    /// The link type and the unit of time of each interface: 10^-n seconds, or 2^-n with the high bit set.
    interfaces: Vec<(Linktype, u8)>,
    fragments: Fragments,
}

/// Hands every TCP segment and every packet that is of no network to `take`, in the file's order.
pub(crate) fn read(path: &Path, take: &mut dyn FnMut(&Packet<'_>)) -> Result<(), String> {
    blocks(File::open(path).map_err(|error| error.to_string())?, MOST, take)
}

/// Refuses blocks of more than `most` octets.
fn blocks(file: impl Read + Send, most: usize, take: &mut dyn FnMut(&Packet<'_>)) -> Result<(), String> {
    let mut size = BUFFER;
    let mut reader = create_reader(size, file).map_err(|error| match error {
        PcapError::Eof | PcapError::Incomplete(_) => "it is too short for a capture".to_owned(),
        PcapError::ReadError => "it cannot be read".to_owned(),
        _ => "it is neither pcap nor pcapng".to_owned(),
    })?;
    let mut section = Section::default();
    // Where the block begins that comes next.
    let mut begin = 0;
    let contradiction = |begin| Err(format!("the block at its octet {begin} contradicts itself"));
    loop {
        let used = match reader.next() {
            Ok((used, block)) => {
                section.take(&block, take);
                Some(used)
            }
            Err(PcapError::Incomplete(_) | PcapError::BufferTooSmall) => None,
            Err(PcapError::Eof | PcapError::UnexpectedEof) => break,
            Err(_) => return contradiction(begin),
        };
        if let Some(used) = used {
            reader.consume(used);
            begin += used;
            continue;
        }
        let before = reader.data().len();
        reader.refill().map_err(|_| "it cannot be read to its end".to_owned())?;
        // The buffer grows by what is there, and not by what a block says of its length.
        if reader.data().len() == before && !reader.reader_exhausted() {
            if size >= most {
                return Err(format!("the block at its octet {begin} has more than {most} octets"));
            }
            size = (size * 2).min(most);
            reader.grow(size);
        }
    }
    // A capture that is still being written may end within a packet.
    if section.has_whole(reader.data()) { contradiction(begin) } else { Ok(()) }
}

impl Section {
    fn take(&mut self, block: &PcapBlockOwned<'_>, take: &mut dyn FnMut(&Packet<'_>)) {
        match block {
            // The unit of these files is that of the one interface that they have.
            PcapBlockOwned::LegacyHeader(header) => {
                self.interfaces =
                    vec![(header.network, if header.is_nanosecond_precision() { 9 } else { 6 })];
            }
            PcapBlockOwned::Legacy(packet) => {
                let Some((link, resolution)) = self.interfaces.first() else { return };
                let fraction = scaled(packet.ts_usec.into(), *resolution);
                let time = Duration::from_secs(packet.ts_sec.into()).saturating_add(fraction);
                segment(*link, time, packet.data, &mut self.fragments, take);
            }
            PcapBlockOwned::NG(Block::SectionHeader(header)) => {
                *self = Self { big_endian: Some(header.big_endian()), ..Self::default() };
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
                self.interfaces.push((described.linktype, described.if_tsresol));
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let known = usize::try_from(packet.if_id).ok().and_then(|id| self.interfaces.get(id));
                if let Some((link, resolution)) = known {
                    let units = u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low);
                    let time = scaled(units, *resolution);
                    segment(*link, time, packet.packet_data(), &mut self.fragments, take);
                }
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                if let Some((link, _)) = self.interfaces.first() {
                    segment(*link, Duration::ZERO, packet.packet_data(), &mut self.fragments, take);
                }
            }
            PcapBlockOwned::NG(_) => {}
        }
    }

    /// Whether a block begins with these octets that is there to its end.
    fn has_whole(&self, octets: &[u8]) -> bool {
        let (Some(big_endian), Some(len)) = (self.big_endian, octets.get(4..8)) else { return false };
        let Ok(len) = <[u8; 4]>::try_from(len) else { return false };
        let len = if big_endian { u32::from_be_bytes(len) } else { u32::from_le_bytes(len) };
        usize::try_from(len).is_ok_and(|len| len <= octets.len())
    }
}

/// A unit that no clock has gives zero.
fn scaled(units: u128, resolution: u8) -> Duration {
    let exponent = u32::from(resolution & 0x7f);
    let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
    let per_second = base.checked_pow(exponent).unwrap_or(u128::MAX);
    let seconds = u64::try_from(units / per_second).unwrap_or(u64::MAX);
    let nanoseconds = (units % per_second).saturating_mul(1_000_000_000) / per_second;
    Duration::new(seconds, u32::try_from(nanoseconds).unwrap_or(0))
}

/// Hands on what one packet holds: a segment, something of another link type, or nothing.
fn segment(
    link: Linktype,
    time: Duration,
    data: &[u8],
    fragments: &mut Fragments,
    take: &mut dyn FnMut(&Packet<'_>),
) {
    if !is_network(link) {
        return take(&Packet::Other { time, link: link.0.cast_unsigned(), data });
    }
    let Some(packet) = unwrap_link(link, data) else { return };
    let Some(net) = &packet.net else { return };
    let (from, to): (IpAddr, IpAddr) = match net {
        LaxNetSlice::Ipv4(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        LaxNetSlice::Ipv6(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        LaxNetSlice::Arp(_) => return,
    };
    let mut tell = |tcp: &TcpSlice<'_>| {
        take(&Packet::Segment(Segment {
            time,
            from: SocketAddr::new(from, tcp.source_port()),
            to: SocketAddr::new(to, tcp.destination_port()),
            sequence: tcp.sequence_number(),
            syn: tcp.syn(),
            ack: tcp.ack(),
            payload: tcp.payload(),
        }));
    };
    match fragments.take(net) {
        Payload::Whole => {
            if let Some(TransportSlice::Tcp(tcp)) = &packet.transport {
                tell(tcp);
            }
        }
        Payload::Joined(ip_number::TCP, octets) => {
            if let Ok(tcp) = TcpSlice::from_slice(&octets) {
                tell(&tcp);
            }
        }
        Payload::Part | Payload::Joined(..) => {}
    }
}

/// Whether packets of a link type are those of a network that is known here.
fn is_network(link: Linktype) -> bool {
    matches!(
        link,
        Linktype::ETHERNET
            | Linktype::RAW
            | Linktype::IPV4
            | Linktype::IPV6
            | Linktype(12 | 14)
            | Linktype::NULL
            | Linktype::LOOP
            | Linktype::LINUX_SLL
            | Linktype::LINUX_SLL2
    )
}

/// None where the packet is too short or of no such kind.
fn unwrap_link(link: Linktype, data: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    let typed = |kind: &[u8], rest| {
        let kind = u16::from_be_bytes(kind.try_into().ok()?);
        Some(LaxSlicedPacket::from_ether_type(EtherType(kind), rest))
    };
    match link {
        Linktype::ETHERNET => LaxSlicedPacket::from_ethernet(data).ok(),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12 | 14) => {
            LaxSlicedPacket::from_ip(data).ok()
        }
        // Four octets of address family stand before the packet.
        Linktype::NULL | Linktype::LOOP => LaxSlicedPacket::from_ip(data.get(4..)?).ok(),
        Linktype::LINUX_SLL => typed(data.get(14..16)?, data.get(16..)?),
        Linktype::LINUX_SLL2 => typed(data.get(..2)?, data.get(20..)?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_scaled_by_their_unit() {
        assert_eq!(scaled(1_500_000, 6), Duration::from_millis(1500));
        assert_eq!(scaled(1_500_000_000, 9), Duration::from_millis(1500));
        assert_eq!(scaled(3 << 9, 0x80 | 10), Duration::from_millis(1500));
        assert_eq!(scaled(7, 0xff).as_secs(), 0);
    }

    /// A block of pcapng.
    fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
        let number = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
        let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
        let len = number(u32::try_from(12 + body.len() + padding.len()).unwrap());
        [&number(kind)[..], &len, body, &padding, &len].concat()
    }

    /// A section with one interface of D-Bus (231) and a packet in it, which says that it has `len` octets.
    fn section(big: bool, len: u32, packet: &[u8]) -> Vec<u8> {
        let number = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
        let order = number(0x1a2b_3c4d);
        let header = [&order[..], if big { &[0, 1, 0, 0] } else { &[1, 0, 0, 0] }, &[0xff; 8]].concat();
        let interface = [if big { [0, 231, 0, 0] } else { [231, 0, 0, 0] }, [0; 4]].concat();
        let seconds = number(3_000_000);
        let enhanced = [&[0; 8][..], &seconds, &number(len), &number(len), packet].concat();
        [block(big, 0x0a0d_0d0a, &header), block(big, 1, &interface), block(big, 6, &enhanced)].concat()
    }

    /// A file of pcap with a packet of D-Bus.
    fn file(nanoseconds: bool, big: bool, packet: &[u8]) -> Vec<u8> {
        let number = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
        let magic = number(if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 });
        let len = number(u32::try_from(packet.len()).unwrap());
        let version = if big { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
        let fraction = number(if nanoseconds { 500_000_000 } else { 500_000 });
        [&magic[..], &version, &[0; 12], &number(231), &number(2), &fraction, &len, &len, packet].concat()
    }

    /// What a file holds, each with its time.
    fn seen(file: &[u8]) -> Result<Vec<(Duration, Vec<u8>)>, String> {
        let mut seen = Vec::new();
        blocks(file, MOST, &mut |packet| {
            let Packet::Other { time, link: 231, data } = packet else { panic!("not of D-Bus") };
            seen.push((*time, data.to_vec()));
        })?;
        Ok(seen)
    }

    #[test]
    fn a_file_is_read_as_far_as_it_goes() {
        let time = Duration::from_millis(2500);
        for big in [false, true] {
            for nanoseconds in [false, true] {
                let whole = file(nanoseconds, big, b"a call");
                assert_eq!(seen(&whole), Ok(vec![(time, b"a call".to_vec())]));
                for cut in 24..whole.len() {
                    assert_eq!(seen(&whole[..cut]), Ok(Vec::new()), "{cut} octets of pcap");
                }
            }
            let one = section(big, 6, b"a call");
            let call = (Duration::from_secs(3), b"a call".to_vec());
            let other = section(!big, 5, b"reply");
            for cut in 0..=other.len() {
                let more = (cut == other.len()).then(|| (Duration::from_secs(3), b"reply".to_vec()));
                let expected: Vec<_> = [call.clone()].into_iter().chain(more).collect();
                assert_eq!(seen(&[&one, &other[..cut]].concat()), Ok(expected), "{cut} octets of pcapng");
            }
        }
    }

    #[test]
    fn a_file_that_is_no_capture_is_refused() {
        assert_eq!(seen(b"").unwrap_err(), "it is too short for a capture");
        assert_eq!(seen(&file(false, false, b"")[..20]).unwrap_err(), "it is too short for a capture");
        assert_eq!(seen(&[b'x'; 64]).unwrap_err(), "it is neither pcap nor pcapng");
    }

    #[test]
    fn a_block_that_contradicts_itself_is_refused() {
        let ended = block(false, 5, &[0; 8]);
        for big in [false, true] {
            let why = seen(&[section(big, 60, b"a call"), ended.clone()].concat()).unwrap_err();
            assert_eq!(why, "the block at its octet 48 contradicts itself");
        }
        let mut short = section(false, 6, b"a call");
        short[52] = 4;
        assert_eq!(seen(&short).unwrap_err(), "the block at its octet 48 contradicts itself");
    }

    #[test]
    fn large_blocks_are_read_and_larger_ones_take_no_memory() {
        let message = vec![7; 3 * BUFFER];
        let file = file(false, false, &message);
        assert_eq!(seen(&file).unwrap()[0].1, message);
        let len = u32::try_from(message.len()).unwrap();
        assert_eq!(seen(&section(true, len, &message)).unwrap()[0].1, message);
        // It says that 4 GiB follow.
        let mut claim = file[..100].to_vec();
        claim[32..36].fill(0xff);
        assert_eq!(seen(&claim), Ok(Vec::new()));
        let endless = (&claim[..]).chain(std::io::repeat(0));
        let why = blocks(endless, 4 * BUFFER, &mut |_| {}).unwrap_err();
        assert_eq!(why, "the block at its octet 24 has more than 262144 octets");
    }

    #[test]
    fn every_kind_of_link_is_unwrapped() {
        let ends = (([10, 0, 0, 1], [10, 0, 0, 2]), (1234, 80));
        let builder = etherparse::PacketBuilder::ipv4(ends.0.0, ends.0.1, 64).tcp(ends.1.0, ends.1.1, 7, 100);
        let mut ip = Vec::new();
        builder.write(&mut ip, b"payload").unwrap();
        let behind = |header: &[u8]| [header, &ip].concat();
        let ethernet = [&[2; 12][..], &[8, 0]].concat();
        let cooked = [&[0; 14][..], &[8, 0]].concat();
        let cooked2 = [&[8, 0][..], &[0; 18]].concat();
        for (link, header) in [
            (Linktype::ETHERNET, ethernet.as_slice()),
            (Linktype::LINUX_SLL, &cooked),
            (Linktype::LINUX_SLL2, &cooked2),
            (Linktype::NULL, &[2, 0, 0, 0]),
            (Linktype::RAW, &[]),
            (Linktype::IPV4, &[]),
        ] {
            let mut seen = Vec::new();
            let frame = behind(header);
            segment(link, Duration::ZERO, &frame, &mut Fragments::default(), &mut |packet| {
                let Packet::Segment(segment) = packet else { panic!("no segment") };
                seen.push((
                    segment.from.to_string(),
                    segment.to.port(),
                    segment.sequence,
                    segment.payload.to_vec(),
                ));
            });
            assert_eq!(seen, [("10.0.0.1:1234".to_owned(), 80, 7, b"payload".to_vec())], "{link:?}");
            for cut in 0..frame.len() {
                segment(link, Duration::ZERO, &frame[..cut], &mut Fragments::default(), &mut |_| {});
            }
        }
    }
}
