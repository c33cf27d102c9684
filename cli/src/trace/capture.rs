//! Messages out of a capture file.

use super::show::{Detail, Narrator, Passed};
use super::streams::{Connection, Connections, Run, Stream};
use super::{Known, packets, wire_of};
use crate::output::note;
use crate::trouble::{Done, Trouble};
use everywire::model::{Explained, Sniff, Wire};
use std::path::Path;
use std::time::Duration;

/// Prints the messages of a capture in the order of their ends.
pub(crate) fn print(path: &Path, detail: Detail) -> Done {
    let what = || format!("cannot read the capture {}", path.display());
    let mut connections = Connections::default();
    packets::read(path, &mut |segment| connections.take(segment)).map_err(|why| {
        Trouble::usage(what(), why)
            .hint("captures of tcpdump, tshark and their like are read: pcap and pcapng")
    })?;
    connections.finish();
    let mut found = Vec::new();
    for (index, connection) in connections.all.iter().enumerate() {
        explain(index + 1, connection, &mut found);
    }
    if found.is_empty() {
        let seen = connections.all.len();
        let why = format!("{seen} TCP connections, none of a wire that is known here");
        return Err(Trouble::usage(format!("there is nothing to explain in {}", path.display()), why)
            .hint("was the right port captured, and unencrypted?"));
    }
    found.sort_by_key(|message| (message.time, message.connection, !message.outward, message.offset));
    let mut narrator = Narrator::new(detail);
    for message in &found {
        let (from, to) = (message.from.to_string(), message.to.to_string());
        narrator.tell(&Passed {
            time: message.time,
            connection: message.connection,
            outward: message.outward,
            from: &from,
            to: &to,
            wire: message.wire.name(),
            offset: message.offset,
            explained: &message.explained,
            bytes: message.bytes,
        });
    }
    Ok(())
}

struct Found<'c> {
    time: Duration,
    connection: usize,
    outward: bool,
    from: std::net::SocketAddr,
    to: std::net::SocketAddr,
    wire: &'static dyn Wire,
    offset: u64,
    explained: Explained,
    bytes: &'c [u8],
}

fn explain<'c>(number: usize, connection: &'c Connection, found: &mut Vec<Found<'c>>) {
    let (client, server) = (connection.client, connection.server);
    let directions =
        [(true, &connection.outward, client, server), (false, &connection.inward, server, client)];
    let Some(wire) = directions.iter().find_map(|(_, stream, ..)| known(stream)) else {
        let octets: usize =
            directions.iter().flat_map(|(_, stream, ..)| &stream.runs).map(|run| run.bytes.len()).sum();
        if octets > 0 {
            note(&format!("#{number} {client} -> {server}: {octets} octets of no known wire"));
        }
        return;
    };
    for (outward, stream, from, to) in directions {
        for (index, run) in stream.runs.iter().enumerate() {
            let arrow = if outward { "->" } else { "<-" };
            let Some(start) = begin(wire, run) else {
                note(&format!("#{number} {arrow} {} octets without the start of a message", run.bytes.len()));
                continue;
            };
            if index > 0 || start > 0 {
                note(&format!(
                    "#{number} {arrow} octets before {} are missing in the capture",
                    start_of(run, start)
                ));
            }
            let bytes = run.bytes.get(start..).unwrap_or_default();
            let listing = wire.explain(bytes);
            for explained in listing.messages {
                let end = explained.offset.saturating_add(explained.len).min(bytes.len());
                found.push(Found {
                    time: run.time_at(start + end),
                    connection: number,
                    outward,
                    from,
                    to,
                    wire,
                    offset: start_of(run, start) + explained.offset as u64,
                    bytes: bytes.get(explained.offset..end).unwrap_or_default(),
                    explained,
                });
            }
            if listing.rest > 0 {
                note(&format!("#{number} {arrow} {} octets at the end are no whole message", listing.rest));
            }
        }
    }
}

fn start_of(run: &Run, start: usize) -> u64 {
    u64::try_from(run.position).unwrap_or(0) + start as u64
}

fn known(stream: &Stream) -> Option<&'static dyn Wire> {
    let mut runs = stream.runs.iter();
    let at_start = runs.next().and_then(|run| match wire_of(&run.bytes) {
        Known::Wire(wire) => Some(wire),
        _ => None,
    });
    // The capture may begin in the middle of a message.
    at_start.or_else(|| {
        everywire::wires::ALL
            .iter()
            .find(|wire| stream.runs.iter().any(|run| begin(**wire, run).is_some()))
            .copied()
    })
}

/// Where the first message of a run begins.
fn begin(wire: &'static dyn Wire, run: &Run) -> Option<usize> {
    (0..run.bytes.len()).find(|start| {
        let rest = run.bytes.get(*start..).unwrap_or_default();
        matches!(wire.sniff(rest), Sniff::Yes)
    })
}
