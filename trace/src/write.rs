//! Captures that other programs read: blocks of pcapng (draft-ietf-opsawg-pcapng), of two interfaces.
//!
//! Messages of a stream stand in segments of TCP (link type 101, `LINKTYPE_RAW`): between the addresses at which they passed, or between two of
//! documentation (RFC 5737) where they passed a socket without any. Each connection begins with the segments that open one, so that programs
//! put it together again. A message that captures hold as it is ([`Wire::packet`]) and that passed between names stands so, in an interface of that
//! link type, which is described when the first of them comes.

use everywire_model::Wire;
use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// The link type of packets of IP.
const RAW: u16 = 101;
/// The most octets in a segment. A packet of IP has at most 64 KiB with its headers.
const SEGMENT: usize = 32 << 10;
/// Connections whose next octets are remembered. A number of a connection costs some bytes for as long as it
/// is remembered.
const MOST: usize = 1 << 16;
/// Ports of clients without one begin here; servers without one have the last.
const PORTS: usize = 1024;

/// Flags of TCP.
const SYN: u8 = 2;
const PUSH: u8 = 8;
const ACK: u8 = 16;

/// A message to be written.
#[derive(Debug)]
pub struct CapturedMessage<'m> {
    /// When its last octet passed, counted from 1970.
    pub time: Duration,
    /// Number of its connection.
    pub connection: usize,
    /// Whether it went from the connecting to the accepting side.
    pub outward: bool,
    /// Who sent it: an address with a port, or a name.
    pub from: &'m str,
    /// To whom.
    pub to: &'m str,
    /// Its octets.
    pub bytes: &'m [u8],
}

/// Writes a capture.
pub struct Writer<W> {
    out: W,
    /// The link types of the interfaces, by their numbers.
    links: Vec<u16>,
    /// The next octets of each connection, of the client and of the server.
    next: HashMap<usize, [u32; 2]>,
}

impl<W: Write> Writer<W> {
    /// Begins a capture.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(mut out: W) -> io::Result<Self> {
        let mut header = Vec::new();
        header.extend_from_slice(&0x1A2B_3C4D_u32.to_le_bytes());
        header.extend_from_slice(&1_u16.to_le_bytes());
        header.extend_from_slice(&0_u16.to_le_bytes());
        // The length of the section is not known.
        header.extend_from_slice(&u64::MAX.to_le_bytes());
        out.write_all(&block(0x0A0D_0D0A, &header))?;
        let mut writer = Self { out, links: Vec::new(), next: HashMap::new() };
        writer.interface(RAW)?;
        Ok(writer)
    }

    /// Writes a message, all of it at once.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&mut self, wire: &dyn Wire, message: &CapturedMessage<'_>) -> io::Result<()> {
        let ends = (message.from.parse::<SocketAddr>(), message.to.parse::<SocketAddr>());
        let mut out = Vec::new();
        match (ends, wire.packet(message.bytes)) {
            ((Err(_), _) | (_, Err(_)), Some(link)) => {
                let interface = self.interface(link)?;
                out = packet(message.time, interface, message.bytes);
            }
            ((from, to), _) => {
                let (client, server) = if message.outward { (from, to) } else { (to, from) };
                let port = PORTS + message.connection % (usize::from(u16::MAX) - PORTS);
                let client = client.unwrap_or_else(|_| documented(1, u16::try_from(port).unwrap_or(1)));
                let server = server.unwrap_or_else(|_| documented(2, u16::MAX));
                self.segments(message, client, server, &mut out);
            }
        }
        self.out.write_all(&out)?;
        // A program that reads the file at the same time sees the message.
        self.out.flush()
    }

    /// A connection that is new begins with the handshake.
    fn segments(
        &mut self,
        message: &CapturedMessage<'_>,
        client: SocketAddr,
        server: SocketAddr,
        out: &mut Vec<u8>,
    ) {
        if self.next.len() >= MOST {
            // Most of these connections are over.
            self.next.clear();
        }
        let next = self.next.entry(message.connection).or_insert_with(|| {
            out.extend(packet(message.time, 0, &segment(client, server, [0, 0], SYN, &[])));
            out.extend(packet(message.time, 0, &segment(server, client, [0, 1], SYN | ACK, &[])));
            [1, 1]
        });
        for piece in message.bytes.chunks(SEGMENT) {
            let [of_client, of_server] = *next;
            let (from, to, numbers) = if message.outward {
                (client, server, [of_client, of_server])
            } else {
                (server, client, [of_server, of_client])
            };
            out.extend(packet(message.time, 0, &segment(from, to, numbers, PUSH | ACK, piece)));
            let said = if message.outward { &mut next[0] } else { &mut next[1] };
            *said = said.wrapping_add(u32::try_from(piece.len()).unwrap_or_default());
        }
    }

    /// The number of the interface of a link type, which is described if it is new.
    fn interface(&mut self, link: u16) -> io::Result<u32> {
        let number = self.links.iter().position(|held| *held == link);
        let number = if let Some(number) = number {
            number
        } else {
            let mut interface = link.to_le_bytes().to_vec();
            // Reserved; and no limit on the length of packets.
            interface.extend_from_slice(&[0; 6]);
            self.out.write_all(&block(1, &interface))?;
            self.links.push(link);
            self.links.len() - 1
        };
        Ok(u32::try_from(number).unwrap_or_default())
    }
}

/// An address of documentation.
fn documented(host: u8, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, host)), port)
}

/// A segment of TCP in a packet of IP (RFC 791, RFC 8200 and RFC 9293, without options). `numbers` are the next octets of who sends it, and of
/// the other.
fn segment(from: SocketAddr, to: SocketAddr, numbers: [u32; 2], flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut tcp = Vec::with_capacity(20 + payload.len());
    tcp.extend_from_slice(&from.port().to_be_bytes());
    tcp.extend_from_slice(&to.port().to_be_bytes());
    tcp.extend_from_slice(&numbers[0].to_be_bytes());
    let acknowledged = if flags & ACK == 0 { 0 } else { numbers[1] };
    tcp.extend_from_slice(&acknowledged.to_be_bytes());
    tcp.extend_from_slice(&[5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
    tcp.extend_from_slice(payload);
    let len = u16::try_from(tcp.len()).unwrap_or(u16::MAX);
    let mut ip;
    let pseudo = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            ip = vec![0x45, 0];
            ip.extend_from_slice(&len.saturating_add(20).to_be_bytes());
            // Not to be cut up; of TCP.
            ip.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
            ip.extend_from_slice(&from.octets());
            ip.extend_from_slice(&to.octets());
            let sum = checksum(&ip);
            if let Some(slot) = ip.get_mut(10..12) {
                slot.copy_from_slice(&sum.to_be_bytes());
            }
            [&from.octets()[..], &to.octets(), &[0, 6], &len.to_be_bytes()].concat()
        }
        (from, to) => {
            let long = |address: IpAddr| match address {
                IpAddr::V4(address) => address.to_ipv6_mapped(),
                IpAddr::V6(address) => address,
            };
            let (from, to): (Ipv6Addr, Ipv6Addr) = (long(from), long(to));
            ip = vec![0x60, 0, 0, 0];
            ip.extend_from_slice(&len.to_be_bytes());
            ip.extend_from_slice(&[6, 64]);
            ip.extend_from_slice(&from.octets());
            ip.extend_from_slice(&to.octets());
            [&from.octets()[..], &to.octets(), &[0, 0], &len.to_be_bytes(), &[0, 0, 0, 6]].concat()
        }
    };
    let sum = checksum(&[&pseudo[..], &tcp].concat());
    if let Some(slot) = tcp.get_mut(16..18) {
        slot.copy_from_slice(&sum.to_be_bytes());
    }
    ip.extend(tcp);
    ip
}

/// The checksum of IP and TCP (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        [high, ..] => u32::from(*high) << 8,
        [] => 0,
    });
    let mut sum = words.fold(0_u32, u32::wrapping_add);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or_default()
}

/// An enhanced packet; its time counts microseconds.
fn packet(time: Duration, interface: u32, content: &[u8]) -> Vec<u8> {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let mut packet = interface.to_le_bytes().to_vec();
    let [a, b, c, d, e, f, g, h] = micros.to_le_bytes();
    packet.extend_from_slice(&[e, f, g, h, a, b, c, d]);
    let len = u32::try_from(content.len()).unwrap_or(u32::MAX);
    packet.extend_from_slice(&len.to_le_bytes());
    packet.extend_from_slice(&len.to_le_bytes());
    packet.extend_from_slice(content);
    packet.resize(packet.len().next_multiple_of(4), 0);
    block(6, &packet)
}

/// It is a multiple of four octets; its length stands before and behind it.
fn block(kind: u32, content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len() + 12).unwrap_or(u32::MAX).to_le_bytes();
    [&kind.to_le_bytes()[..], &len, content, &len].concat()
}
