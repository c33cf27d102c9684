//! TCP segments out of capture files.
//!
//! Both formats of files and the usual link types are read; IP fragments and everything but TCP are passed
//! over. A file that ends within a packet is read up to there, because captures are often looked at while
//! they are written.

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// The first octets of a pcapng file: its section header block.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

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

/// Hands every TCP segment and every packet that is of no network to `take`, in the file's order.
pub(crate) fn read(path: &Path, take: &mut dyn FnMut(&Packet<'_>)) -> Result<(), String> {
    let mut file = File::open(path).map_err(|error| error.to_string())?;
    let mut magic = [0; 4];
    file.read_exact(&mut magic).map_err(|_| "it is too short for a capture".to_owned())?;
    file.seek(SeekFrom::Start(0)).map_err(|error| error.to_string())?;
    let file = BufReader::new(file);
    if magic == PCAPNG { pcapng(file, take) } else { pcap(file, take) }
}

fn pcap(file: impl Read, take: &mut dyn FnMut(&Packet<'_>)) -> Result<(), String> {
    let mut reader = PcapReader::new(file).map_err(|_| "it is neither pcap nor pcapng".to_owned())?;
    let link = reader.header().datalink;
    while let Some(packet) = reader.next_packet() {
        match packet {
            Ok(packet) => segment(link, packet.timestamp, &packet.data, take),
            // A capture that is still being written may end within a packet.
            Err(PcapError::IncompleteBuffer) => break,
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

fn pcapng(file: impl Read, take: &mut dyn FnMut(&Packet<'_>)) -> Result<(), String> {
    let mut reader = PcapNgReader::new(file).map_err(|error| error.to_string())?;
    let mut interfaces: Vec<(DataLink, u8)> = Vec::new();
    while let Some(block) = reader.next_block() {
        match block {
            Ok(Block::SectionHeader(_)) => interfaces.clear(),
            Ok(Block::InterfaceDescription(described)) => {
                interfaces.push((described.linktype, resolution(&described)))
            }
            Ok(Block::EnhancedPacket(packet)) => {
                let known = usize::try_from(packet.interface_id).ok().and_then(|id| interfaces.get(id));
                if let Some((link, resolution)) = known {
                    // The library takes the count of units for nanoseconds, whatever the unit is.
                    let time = scaled(packet.timestamp.as_nanos(), *resolution);
                    segment(*link, time, &packet.data, take);
                }
            }
            Ok(Block::SimplePacket(packet)) => {
                if let Some((link, _)) = interfaces.first() {
                    segment(*link, Duration::ZERO, &packet.data, take);
                }
            }
            Ok(_) => {}
            Err(PcapError::IncompleteBuffer) => break,
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

/// The unit of an interface's times: 10^-n seconds, or 2^-n with the high bit set.
fn resolution(interface: &InterfaceDescriptionBlock<'_>) -> u8 {
    let given = interface.options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsResol(unit) => Some(*unit),
        _ => None,
    });
    given.unwrap_or(6)
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
fn segment(link: DataLink, time: Duration, data: &[u8], take: &mut dyn FnMut(&Packet<'_>)) {
    if !is_network(link) {
        return take(&Packet::Other { time, link: link.into(), data });
    }
    let Some(packet) = unwrap_link(link, data) else { return };
    let addresses: (IpAddr, IpAddr) = match &packet.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            (ip.header().source_addr().into(), ip.header().destination_addr().into())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            (ip.header().source_addr().into(), ip.header().destination_addr().into())
        }
        _ => return,
    };
    if let Some(TransportSlice::Tcp(tcp)) = &packet.transport {
        take(&Packet::Segment(Segment {
            time,
            from: SocketAddr::new(addresses.0, tcp.source_port()),
            to: SocketAddr::new(addresses.1, tcp.destination_port()),
            sequence: tcp.sequence_number(),
            syn: tcp.syn(),
            ack: tcp.ack(),
            payload: tcp.payload(),
        }));
    }
}

/// Whether packets of a link type are those of a network that is known here.
fn is_network(link: DataLink) -> bool {
    matches!(
        link,
        DataLink::ETHERNET
            | DataLink::RAW
            | DataLink::IPV4
            | DataLink::IPV6
            | DataLink::Unknown(12 | 14)
            | DataLink::NULL
            | DataLink::LOOP
            | DataLink::LINUX_SLL
            | DataLink::LINUX_SLL2
    )
}

/// None where the packet is too short or of no such kind.
fn unwrap_link(link: DataLink, data: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    let typed = |kind: &[u8], rest| {
        let kind = u16::from_be_bytes(kind.try_into().ok()?);
        Some(LaxSlicedPacket::from_ether_type(EtherType(kind), rest))
    };
    match link {
        DataLink::ETHERNET => LaxSlicedPacket::from_ethernet(data).ok(),
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 | DataLink::Unknown(12 | 14) => {
            LaxSlicedPacket::from_ip(data).ok()
        }
        // Four octets of address family stand before the packet.
        DataLink::NULL | DataLink::LOOP => LaxSlicedPacket::from_ip(data.get(4..)?).ok(),
        DataLink::LINUX_SLL => typed(data.get(14..16)?, data.get(16..)?),
        DataLink::LINUX_SLL2 => typed(data.get(..2)?, data.get(20..)?),
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
            (DataLink::ETHERNET, ethernet.as_slice()),
            (DataLink::LINUX_SLL, &cooked),
            (DataLink::LINUX_SLL2, &cooked2),
            (DataLink::NULL, &[2, 0, 0, 0]),
            (DataLink::RAW, &[]),
            (DataLink::IPV4, &[]),
        ] {
            let mut seen = Vec::new();
            let frame = behind(header);
            segment(link, Duration::ZERO, &frame, &mut |packet| {
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
                segment(link, Duration::ZERO, &frame[..cut], &mut |_| {});
            }
        }
    }
}
