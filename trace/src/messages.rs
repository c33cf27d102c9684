//! Messages out of connections.
//!
//! A connection is of one wire: the one that knows its first octets, or, where the beginning is not in the
//! capture, the one that explains most of them. Each direction is a list of runs without holes; in a run that
//! does not begin with the connection, the first message is looked for (`begin`), and what stands before it
//! is a gap.
//!
//! Packets of other link types hold whole messages (captures of a D-Bus router); all of them count as one
//! more connection.
//!
//! Everything is held in memory, so a trace is as large as its capture. Times are those of the packet with a
//! message's last octet.

use crate::packets::{self, Packet};
use crate::streams::{Connection, Connections, Run, Stream};
use everywire_model::wire::{MessageListing, Sniff};
use everywire_model::{Failure, Initiator, Kind, Wire};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// Everything that a capture holds of known wires.
#[derive(Debug, Default)]
pub struct Trace {
    /// The messages, in the order of their ends.
    pub messages: Vec<Message>,
    /// What is no message.
    pub gaps: Vec<Gap>,
    /// TCP connections seen.
    pub connections: usize,
    /// Those of them whose beginning was seen.
    pub openings: Vec<Opening>,
}

/// A connection was asked for.
#[derive(Debug, Clone)]
pub struct Opening {
    /// When its first segment passed, counted from 1970.
    pub time: Duration,
    /// Number of the connection, from 1.
    pub connection: usize,
    /// Who asked.
    pub from: SocketAddr,
    /// Whom.
    pub to: SocketAddr,
}

/// One message.
#[derive(Debug)]
pub struct Message {
    /// When its last octet passed, counted from 1970.
    pub time: Duration,
    /// Number of its connection, from 1.
    pub connection: usize,
    /// Whether it went from the connecting to the accepting side.
    pub outward: bool,
    /// Who sent it.
    pub from: SocketAddr,
    /// To whom.
    pub to: SocketAddr,
    /// Whether it passed between names, which it says itself, and not between sockets: then both addresses are none.
    pub named: bool,
    /// The wire's name.
    pub wire: &'static str,
    /// Octets of its direction that passed before it.
    pub offset: u64,
    /// What it says.
    pub explained: MessageListing,
    /// Its octets, as far as they are there.
    pub bytes: Vec<u8>,
}

/// Octets that are no message.
#[derive(Debug)]
pub struct Gap {
    /// Number of the connection, from 1.
    pub connection: usize,
    /// What there is.
    pub what: String,
}

/// What is known about the bytes of a connection.
#[derive(Clone, Copy)]
pub enum StreamProtocol {
    /// They are of this wire.
    Wire(&'static dyn Wire),
    /// There are too few to tell.
    NotYet,
    /// They are of no wire known here.
    Nothing,
}

/// The wire whose connections begin with these bytes. The first wire that is sure wins; the order of `wires`
/// decides among them.
pub fn wire_of(wires: &[&'static dyn Wire], bytes: &[u8]) -> StreamProtocol {
    let mut undecided = false;
    for wire in wires {
        match wire.sniff(bytes) {
            Sniff::Yes => return StreamProtocol::Wire(*wire),
            Sniff::More => undecided = true,
            Sniff::No => {}
        }
    }
    if undecided { StreamProtocol::NotYet } else { StreamProtocol::Nothing }
}

impl Trace {
    /// Reads a capture (pcap or pcapng).
    ///
    /// # Errors
    /// It cannot be read, or is no capture.
    pub fn read(path: &Path, wires: &[&'static dyn Wire]) -> Result<Self, Failure> {
        let mut connections = Connections::default();
        let mut passed: Vec<(Duration, u32, Vec<u8>)> = Vec::new();
        let known = |link: u32, data: &[u8]| packet_of(wires, link, data).is_some();
        packets::read(path, &mut |packet| match packet {
            Packet::Segment(segment) => connections.take(segment),
            Packet::Other { time, link, data } if known(*link, data) => {
                passed.push((*time, *link, data.to_vec()));
            }
            Packet::Other { .. } => {}
        })
        .map_err(|why| {
            Failure::new(Kind::BadArgument, Initiator::User, why)
                .with_hint("captures of tcpdump, tshark and their like are read: pcap and pcapng")
        })?;
        connections.finish();
        let mut trace = Self { connections: connections.all.len(), ..Self::default() };
        for (index, connection) in connections.all.iter().enumerate() {
            if let Some(time) = connection.opened {
                let (from, to) = (connection.client, connection.server);
                trace.openings.push(Opening { time, connection: index + 1, from, to });
            }
            trace.explain(index + 1, connection, wires);
        }
        // All of them pass the same router.
        let router = trace.connections + 1;
        for (time, link, data) in passed {
            trace.pass(router, time, link, &data, wires);
        }
        trace
            .messages
            .sort_by_key(|message| (message.time, message.connection, !message.outward, message.offset));
        Ok(trace)
    }

    /// The messages of one connection, and its gaps.
    fn explain(&mut self, number: usize, connection: &Connection, wires: &[&'static dyn Wire]) {
        let (client, server) = (connection.client, connection.server);
        let directions =
            [(true, &connection.outward, client, server), (false, &connection.inward, server, client)];
        let Some(wire) = directions.iter().find_map(|(_, stream, ..)| known(wires, stream)) else {
            let octets: usize =
                directions.iter().flat_map(|(_, stream, ..)| &stream.runs).map(|run| run.bytes.len()).sum();
            if octets > 0 {
                self.gap(number, format!("{client} -> {server}: {octets} octets of no known wire"));
            }
            return;
        };
        for (outward, stream, from, to) in directions {
            let arrow = if outward { "->" } else { "<-" };
            for (index, run) in stream.runs.iter().enumerate() {
                // A direction whose beginning was seen begins with a message.
                let whole = index == 0 && connection.opened.is_some() && run.position == 0;
                let start = if whole { Some(0) } else { begin(wire, run) };
                let Some(start) = start else {
                    let octets = run.bytes.len();
                    self.gap(number, format!("{arrow} {octets} octets without the start of a message"));
                    continue;
                };
                if index > 0 || start > 0 {
                    let at = start_of(run, start);
                    self.gap(number, format!("{arrow} octets before {at} are missing in the capture"));
                }
                let bytes = run.bytes.get(start..).unwrap_or_default();
                let listing = wire.explain(bytes);
                for explained in listing.messages {
                    let end = explained.offset.saturating_add(explained.len).min(bytes.len());
                    self.messages.push(Message {
                        time: run.time_at(start + end),
                        connection: number,
                        outward,
                        from,
                        to,
                        named: false,
                        wire: wire.name(),
                        offset: start_of(run, start) + explained.offset as u64,
                        bytes: bytes.get(explained.offset..end).unwrap_or_default().to_vec(),
                        explained,
                    });
                }
                if listing.rest > 0 {
                    let octets = listing.rest;
                    self.gap(number, format!("{arrow} {octets} octets at the end are no whole message"));
                }
            }
        }
    }

    /// A message that stood in the capture as it is.
    fn pass(
        &mut self,
        connection: usize,
        time: Duration,
        link: u32,
        data: &[u8],
        wires: &[&'static dyn Wire],
    ) {
        let Some(wire) = packet_of(wires, link, data) else { return };
        let nobody = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        for explained in wire.explain(data).messages {
            let end = explained.offset.saturating_add(explained.len).min(data.len());
            self.messages.push(Message {
                time,
                connection,
                outward: true,
                from: nobody,
                to: nobody,
                named: true,
                wire: wire.name(),
                offset: 0,
                bytes: data.get(explained.offset..end).unwrap_or_default().to_vec(),
                explained,
            });
        }
    }

    fn gap(&mut self, connection: usize, what: String) {
        self.gaps.push(Gap { connection, what });
    }
}

/// The wire whose messages captures of this link type hold.
fn packet_of(wires: &[&'static dyn Wire], link: u32, data: &[u8]) -> Option<&'static dyn Wire> {
    wires.iter().find(|wire| wire.packet(data).is_some_and(|own| u32::from(own) == link)).copied()
}

/// How many octets of the direction passed before a place in a run.
fn start_of(run: &Run, start: usize) -> u64 {
    u64::try_from(run.position).unwrap_or(0) + start as u64
}

/// The wire of a direction.
fn known(wires: &[&'static dyn Wire], stream: &Stream) -> Option<&'static dyn Wire> {
    let mut runs = stream.runs.iter();
    let at_start = runs.next().and_then(|run| match wire_of(wires, &run.bytes) {
        StreamProtocol::Wire(wire) => Some(wire),
        _ => None,
    });
    // The capture may begin in the middle of a message. A few octets of another wire's values look like the beginning of a connection: the
    // wire is the one that explains most, of those that explain as much the first. One that explains less than half of what follows
    // its first message is not spoken here: any protocol has some octets that look like a short message.
    at_start.or_else(|| {
        let all = wires.iter().filter_map(|wire| {
            let octets = stream.runs.iter().map(|run| explained(*wire, run));
            let (octets, follow) = octets.fold((0, 0), |all, run| (all.0 + run.0, all.1 + run.1));
            (octets > 0 && octets >= follow / 2).then_some((*wire, octets))
        });
        all.rev().max_by_key(|(_, octets)| *octets).map(|(wire, _)| wire)
    })
}

/// How many octets of a run are whole messages of a wire, and how many there are from where the first of its messages begins. Messages
/// that break the wire's rules do not count.
fn explained(wire: &'static dyn Wire, run: &Run) -> (usize, usize) {
    let Some(rest) = begin(wire, run).and_then(|start| run.bytes.get(start..)) else { return (0, 0) };
    let listing = wire.explain(rest);
    let whole = rest.len().saturating_sub(listing.rest);
    let fine =
        listing.messages.iter().filter(|message| message.kind != "violation" && message.offset < whole);
    (fine.map(|message| message.len).sum(), rest.len())
}

/// Where the first message of a run begins. Every place is tried, so a wire must tell quickly.
fn begin(wire: &'static dyn Wire, run: &Run) -> Option<usize> {
    (0..run.bytes.len()).find(|start| {
        let rest = run.bytes.get(*start..).unwrap_or_default();
        wire.is_message(rest)
    })
}
