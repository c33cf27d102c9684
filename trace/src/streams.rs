//! TCP connections put together from segments.
//!
//! Sequence numbers (32 bits, which wrap) become positions (64 bits, which do not) by the distance to the
//! next octet that is expected. What comes too early waits in `early`; what was seen before is dropped. A
//! hole that is never filled ends a run when the capture is over.

use crate::packets::Segment;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

/// Connections in the order in which they were seen.
#[derive(Default)]
pub(crate) struct Connections {
    pub(crate) all: Vec<Connection>,
    /// The latest connection of each pair of addresses, the smaller one first.
    current: HashMap<(SocketAddr, SocketAddr), usize>,
}

/// One connection.
pub(crate) struct Connection {
    /// The side that connected, or else the one that was seen to send first.
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    /// When it was asked for, if the capture has that.
    pub(crate) opened: Option<Duration>,
    pub(crate) outward: Stream,
    pub(crate) inward: Stream,
}

/// One direction.
#[derive(Default)]
pub(crate) struct Stream {
    /// Contiguous parts; between two of them the capture lacks something.
    pub(crate) runs: Vec<Run>,
    /// Sequence number of the next octet, and its position.
    next: Option<(u32, i64)>,
    /// What came too early, by position.
    early: BTreeMap<i64, (Duration, Vec<u8>)>,
}

/// Contiguous octets.
#[derive(Default)]
pub(crate) struct Run {
    pub(crate) bytes: Vec<u8>,
    /// Octets of the direction before it.
    pub(crate) position: i64,
    /// When octets arrived: the end of each segment in this run, and its time.
    times: Vec<(usize, Duration)>,
}

impl Run {
    /// When the octet before `end` arrived.
    pub(crate) fn time_at(&self, end: usize) -> Duration {
        let index = self.times.partition_point(|(until, _)| *until < end);
        self.times.get(index).or_else(|| self.times.last()).map_or(Duration::ZERO, |(_, time)| *time)
    }
}

impl Connections {
    /// Takes a segment.
    pub(crate) fn take(&mut self, segment: &Segment<'_>) {
        let key = (segment.from.min(segment.to), segment.from.max(segment.to));
        let opens = segment.syn && !segment.ack;
        let fresh = match self.current.get(&key).and_then(|index| self.all.get(*index)) {
            // The same pair of ports again, for a new connection.
            Some(held) => opens && !(held.outward.runs.is_empty() && held.inward.runs.is_empty()),
            None => true,
        };
        if fresh {
            let answers = segment.syn && segment.ack;
            let (client, server) =
                if answers { (segment.to, segment.from) } else { (segment.from, segment.to) };
            self.current.insert(key, self.all.len());
            self.all.push(Connection {
                client,
                server,
                opened: opens.then_some(segment.time),
                outward: Stream::default(),
                inward: Stream::default(),
            });
        }
        let Some(held) = self.current.get(&key).and_then(|index| self.all.get_mut(*index)) else { return };
        if segment.from == held.client { held.outward.take(segment) } else { held.inward.take(segment) }
    }

    /// The capture is over: segments that came too early are used, although octets before them are missing.
    pub(crate) fn finish(&mut self) {
        for connection in &mut self.all {
            connection.outward.flush();
            connection.inward.flush();
        }
    }
}

impl Stream {
    /// One segment of this direction.
    fn take(&mut self, segment: &Segment<'_>) {
        if segment.syn {
            self.next = Some((segment.sequence.wrapping_add(1), 0));
            return;
        }
        if segment.payload.is_empty() {
            return;
        }
        let (sequence, position) = *self.next.get_or_insert((segment.sequence, 0));
        let ahead = segment.sequence.wrapping_sub(sequence).cast_signed();
        let at = position + i64::from(ahead);
        if at > position {
            // Of two that begin at one place, the longer one holds the other.
            let early = self.early.entry(at).or_default();
            if early.1.len() < segment.payload.len() {
                *early = (segment.time, segment.payload.to_vec());
            }
        } else {
            self.append(at, segment.time, segment.payload);
            self.catch_up();
        }
    }

    /// Appends what is new of octets that begin at or before the next position.
    fn append(&mut self, at: i64, time: Duration, bytes: &[u8]) {
        let Some((sequence, position)) = self.next else { return };
        let known = usize::try_from(position - at).unwrap_or(0);
        let Some(new) = bytes.get(known..).filter(|new| !new.is_empty()) else { return };
        if self.runs.is_empty() {
            self.runs.push(Run { position, ..Run::default() });
        }
        if let Some(run) = self.runs.last_mut() {
            run.bytes.extend_from_slice(new);
            run.times.push((run.bytes.len(), time));
        }
        let step = u32::try_from(new.len()).unwrap_or(0);
        self.next = Some((sequence.wrapping_add(step), position + i64::from(step)));
    }

    /// Up to the next hole.
    fn catch_up(&mut self) {
        while let Some((at, (time, bytes))) = self.early.pop_first() {
            if self.next.is_some_and(|(_, position)| at > position) {
                self.early.insert(at, (time, bytes));
                return;
            }
            self.append(at, time, &bytes);
        }
    }

    /// Goes on behind the next hole until nothing waits.
    fn flush(&mut self) {
        while let Some((&at, _)) = self.early.first_key_value() {
            if let Some((sequence, position)) = self.next {
                // Sequence numbers wrap; positions do not.
                let skipped = u32::try_from((at - position).rem_euclid(1 << 32)).unwrap_or(0);
                self.next = Some((sequence.wrapping_add(skipped), at));
            }
            self.runs.push(Run { position: at, ..Run::default() });
            self.catch_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(connections: &mut Connections, outward: bool, sequence: u32, syn: bool, payload: &[u8]) {
        let (a, b) = ("10.0.0.1:1000".parse().unwrap(), "10.0.0.2:2000".parse().unwrap());
        let (from, to) = if outward { (a, b) } else { (b, a) };
        let time = Duration::from_secs(sequence.into());
        connections.take(&Segment { time, from, to, sequence, syn, ack: !outward, payload });
    }

    #[test]
    fn order_is_restored_and_repetitions_are_dropped() {
        let mut all = Connections::default();
        let start = u32::MAX - 2;
        put(&mut all, true, start, true, b"");
        put(&mut all, true, start.wrapping_add(1), false, b"abc");
        put(&mut all, true, start.wrapping_add(7), false, b"ghi");
        put(&mut all, true, start.wrapping_add(3), false, b"cdef");
        put(&mut all, true, start.wrapping_add(1), false, b"abc");
        put(&mut all, false, 5, false, b"xyz");
        all.finish();
        assert_eq!(all.all.len(), 1);
        assert_eq!(all.all[0].outward.runs.len(), 1);
        assert_eq!(all.all[0].outward.runs[0].bytes, b"abcdefghi");
        assert_eq!(all.all[0].inward.runs[0].bytes, b"xyz");
        assert_eq!(all.all[0].inward.runs[0].time_at(2), Duration::from_secs(5));
    }

    #[test]
    fn the_longer_of_two_early_segments_counts() {
        let mut all = Connections::default();
        put(&mut all, true, 100, false, b"abc");
        put(&mut all, true, 106, false, b"gh");
        put(&mut all, true, 106, false, b"ghijkl");
        put(&mut all, true, 106, false, b"g");
        put(&mut all, true, 103, false, b"def");
        all.finish();
        let runs: Vec<_> = all.all[0].outward.runs.iter().map(|run| run.bytes.as_slice()).collect();
        assert_eq!(runs, [b"abcdefghijkl".as_slice()]);
    }

    #[test]
    fn gaps_begin_a_new_run_and_new_connections_their_own() {
        let mut all = Connections::default();
        put(&mut all, true, 100, false, b"abc");
        put(&mut all, true, 110, false, b"xyz");
        all.finish();
        let runs: Vec<_> =
            all.all[0].outward.runs.iter().map(|run| (run.position, run.bytes.as_slice())).collect();
        assert_eq!(runs, [(0, b"abc".as_slice()), (10, b"xyz".as_slice())]);
        put(&mut all, true, 7, true, b"");
        put(&mut all, true, 8, false, b"new");
        assert_eq!(all.all.len(), 2);
    }
}
