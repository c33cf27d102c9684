//! The wire trace of single cycles: every frame with its direction, interface, operation, bytes and
//! time; how many frames, bytes and round trips that makes; and, out of two of them, why one is
//! quicker.
//!
//! Input is a capture that the crate for traces has taken apart into messages, and the moments at which
//! the client began and ended each cycle. Which cycle a frame is of is decided in `apart`; what a
//! message says is found by `spoken`.
//!
//! A frame is *inside* its cycle, or passed *after* it: what is put off, and nobody waits for. Shown
//! are the *first* cycle, with everything that came before it, and a *steady* one: of those that
//! follow, the one with the fewest connections and messages.
//!
//! Invariants: each frame is of one cycle, and which one that is does not depend on how soon frames
//! pass. Counts are of frames inside, unless a name says `after`.

mod apart;

use crate::contestants::spoken;
use crate::measure::Line;
use apart::RelayedFrame;
use everywire_trace::{Message, Opening, Trace};
use serde::Serialize;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

/// The cycles of a trace: the first has what is done once, the others are alike, but for what was put off.
pub(crate) const CYCLES: u64 = 6;
/// The third cycle: the first has what is done once, the second may have what the first put off. It is
/// shown unless another one has fewer connections or messages.
const STEADY: usize = 2;

/// One cycle of one contestant.
#[derive(Debug, Clone, Serialize)]
pub struct Cycle {
    /// The contestant, as for `--only`.
    pub name: String,
    /// The same for people.
    pub title: String,
    /// The operation.
    pub operation: &'static str,
    /// `first`, with everything that came before it, or `steady`.
    pub cycle: &'static str,
    /// TCP connections opened in it.
    pub connections: usize,
    /// Messages of the wire in it.
    pub messages: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Messages that passed when it was over, before the next began: what is put off, and nobody waits for.
    pub messages_after: usize,
    /// Their bytes.
    pub bytes_after: usize,
    /// How often the client's side had to wait for the server's before anything could go on: turns of the talk from one
    /// direction to the other and back, the opening of connections included.
    pub round_trips: usize,
    /// From its first frame to its last, in microseconds.
    pub us: f64,
    /// Every frame, in order, those afterwards too.
    pub frames: Vec<Frame>,
}

/// One message, or the opening of a connection.
#[derive(Debug, Clone, Serialize)]
pub struct Frame {
    /// Since the first frame of the cycle, in microseconds.
    pub at_us: f64,
    /// Whether the client's side sent it.
    pub outward: bool,
    /// Number of its connection, from 1.
    pub connection: usize,
    /// The kind of message, in the words of its wire.
    pub kind: String,
    /// The interface, if that is said or known.
    pub interface: Option<String>,
    /// The operation that it asks for or answers.
    pub operation: Option<String>,
    /// Its bytes; none for the opening of a connection.
    pub bytes: usize,
    /// Whether it passed when the cycle was over.
    pub after: bool,
}

impl Frame {
    /// What it is, for people.
    pub fn label(&self) -> String {
        let said = match (&self.interface, &self.operation) {
            (None, Some(said)) if *said == self.kind => String::new(),
            (Some(interface), Some(operation)) => format!(" {interface}.{operation}"),
            (Some(said), None) | (None, Some(said)) => format!(" {said}"),
            (None, None) => String::new(),
        };
        format!("{}{said}", self.kind)
    }

    /// Opens a connection.
    fn opens(&self) -> bool {
        self.bytes == 0
    }
}

/// The first and a steady cycle out of a capture; `line` says when each began, `client` is its side's address.
pub(crate) fn cycles(
    trace: &Trace,
    line: &Line,
    client: IpAddr,
    name: &str,
    title: &str,
    operation: &'static str,
) -> Vec<Cycle> {
    let all = frames(trace, client);
    let times = |all: &[u64]| all.iter().map(|ns| Duration::from_nanos(*ns)).collect::<Vec<_>>();
    let Some(told) = apart::tell(&all, &times(&line.began_ns), &times(&line.ended_ns)) else {
        return Vec::new();
    };
    let of = |number: usize, cycle: &'static str| {
        let own: Vec<(&RelayedFrame, bool)> = all
            .iter()
            .zip(&told)
            .filter(|(_, (of, _))| *of == number)
            .map(|(p, (_, after))| (p, *after))
            .collect();
        let start = own.first()?.0.time;
        let us = |time: Duration| time.saturating_sub(start).as_secs_f64() * 1e6;
        let frames: Vec<Frame> = own
            .iter()
            .map(|(passed, after)| Frame { at_us: us(passed.time), after: *after, ..passed.frame.clone() })
            .collect();
        let (after, inside): (Vec<&Frame>, Vec<&Frame>) = frames.iter().partition(|frame| frame.after);
        let messages = |frames: &[&Frame]| frames.iter().filter(|frame| !frame.opens()).count();
        let bytes = |frames: &[&Frame]| frames.iter().map(|frame| frame.bytes).sum();
        Some(Cycle {
            name: name.to_owned(),
            title: title.to_owned(),
            operation,
            cycle,
            connections: inside.iter().filter(|frame| frame.opens()).count(),
            messages: messages(&inside),
            bytes: bytes(&inside),
            messages_after: messages(&after),
            bytes_after: bytes(&after),
            round_trips: round_trips(&frames),
            us: inside.last().map_or(0.0, |frame| frame.at_us),
            frames,
        })
    };
    let others = (1..line.began_ns.len()).filter(|number| *number != STEADY);
    // Of those that are as plain, the first.
    let steady = std::iter::once(STEADY)
        .chain(others)
        .filter_map(|number| of(number, "steady"))
        .min_by_key(|cycle| (cycle.connections, cycle.messages));
    of(0, "first").into_iter().chain(steady).collect()
}

/// Turns within the cycle from what the client's side sends to what it gets. A connection that is opened is a frame there and one back.
fn round_trips(frames: &[Frame]) -> usize {
    let turns = frames.iter().filter(|frame| !frame.after).flat_map(|frame| {
        let back = frame.opens().then_some(!frame.outward);
        std::iter::once(frame.outward).chain(back)
    });
    let (mut before, mut count) = (false, 0);
    for outward in turns {
        count += usize::from(before && !outward);
        before = outward;
    }
    count
}

/// All frames in the order of their time, each with what it says. An answer takes the interface and the
/// operation of its question.
fn frames(trace: &Trace, client: IpAddr) -> Vec<RelayedFrame> {
    let mut all: Vec<(Duration, Frame, Option<&Message>)> =
        trace.openings.iter().map(|opening| opened(opening, client)).collect();
    all.extend(trace.messages.iter().map(|message| (message.time, frame(message, client), Some(message))));
    all.sort_by_key(|(time, ..)| *time);
    // By connection, direction and number: each side counts its own questions.
    let mut asked: HashMap<(usize, bool, String), (usize, TracedOperation)> = HashMap::new();
    let passed = |(at, (time, mut frame, message)): (usize, (Duration, Frame, Option<&Message>))| {
        let mut answers = None;
        if let Some(message) = message {
            let said = spoken::of(message.wire, &message.explained);
            (frame.interface, frame.operation) = (said.interface, said.operation);
            if let Some(number) = said.number {
                if frame.operation.is_some() || frame.interface.is_some() {
                    let said = (frame.interface.clone(), frame.operation.clone());
                    asked.insert((message.connection, message.outward, number), (at, said));
                } else if let Some((question, said)) =
                    asked.get(&(message.connection, !message.outward, number))
                {
                    // An answer says only which question it answers.
                    answers = Some(*question);
                    (frame.interface, frame.operation) = said.clone();
                }
            }
        }
        RelayedFrame { time, frame, answers }
    };
    all.into_iter().enumerate().map(passed).collect()
}

/// An interface and an operation.
type TracedOperation = (Option<String>, Option<String>);

/// The opening of a connection as a frame without bytes.
fn opened<'a>(opening: &Opening, client: IpAddr) -> (Duration, Frame, Option<&'a Message>) {
    let frame = Frame {
        at_us: 0.0,
        outward: opening.from.ip() == client,
        connection: opening.connection,
        kind: "TCP connection".into(),
        interface: None,
        operation: None,
        bytes: 0,
        after: false,
    };
    (opening.time, frame, None)
}

/// A message, without what it says.
fn frame(message: &Message, client: IpAddr) -> Frame {
    Frame {
        at_us: 0.0,
        outward: message.from.ip() == client,
        connection: message.connection,
        kind: message.explained.kind.clone(),
        interface: None,
        operation: None,
        bytes: message.bytes.len(),
        after: false,
    }
}

/// A contestant's way, for the comparison of two.
#[derive(Clone, Copy)]
pub(crate) struct TracedContestant<'a> {
    /// What to call it.
    pub(crate) title: &'a str,
    /// Its steady cycle.
    pub(crate) cycle: &'a Cycle,
    /// Its time: milliseconds for 1000 cycles, with the confidence interval.
    pub(crate) ms: f64,
    pub(crate) interval: (f64, f64),
    /// What both sides computed, in microseconds a cycle.
    pub(crate) cpu_us: Option<f64>,
}

/// One sentence on who won and why, of nothing but what was measured and traced.
pub(crate) fn why(a: TracedContestant<'_>, b: TracedContestant<'_>, placement: &str) -> String {
    let (winner, loser) = if a.ms <= b.ms { (a, b) } else { (b, a) };
    let apart = winner.interval.1 < loser.interval.0;
    let (w, l) = (winner.cycle, loser.cycle);
    let head = if apart {
        format!(
            "{} won against {} by {:.0} % ({} against {} ms per 1000 cycles, {placement})",
            winner.title,
            loser.title,
            (1.0 - winner.ms / loser.ms) * 100.0,
            crate::report::short(winner.ms),
            crate::report::short(loser.ms)
        )
    } else {
        format!(
            "{} and {} cannot be told apart ({} and {} ms per 1000 cycles, {placement})",
            winner.title,
            loser.title,
            crate::report::short(winner.ms),
            crate::report::short(loser.ms)
        )
    };
    let wire = format!(
        "{} {} against {}, {} frames against {}, {} bytes against {}",
        w.round_trips,
        if w.round_trips == 1 { "round trip" } else { "round trips" },
        l.round_trips,
        w.messages,
        l.messages,
        w.bytes,
        l.bytes
    );
    let mut sentence = format!("{head}: {wire}");
    for (whose, more, less) in [(&loser, l, w), (&winner, w, l)] {
        let besides = besides(more, less);
        if !besides.is_empty() {
            sentence.push_str(&format!("; only the cycle of {} has {}", whose.title, besides.join(", ")));
        }
    }
    if w.round_trips == l.round_trips {
        sentence.push_str("; both wait equally often");
        if let (Some(own), Some(other)) = (winner.cpu_us, loser.cpu_us) {
            sentence.push_str(&format!(
                ", so the rest is computing: {} us of CPU a cycle against {}",
                crate::report::short(own),
                crate::report::short(other)
            ));
        }
    } else if w.round_trips > l.round_trips && apart {
        sentence.push_str("; it won although it waits more often, so it is computing that decides here");
    }
    sentence.push('.');
    sentence
}

/// What a cycle asks that another does not.
fn besides(more: &Cycle, less: &Cycle) -> Vec<String> {
    // By what is asked, not of which interface: two interfaces may have the same operation.
    let mut rest = questions(less);
    let mut besides: Vec<(String, usize)> = Vec::new();
    for (asked, question) in questions(more) {
        if let Some(at) = rest.iter().position(|(other, _)| *other == asked) {
            rest.swap_remove(at);
        } else if let Some((_, count)) = besides.iter_mut().find(|(known, _)| *known == question) {
            *count += 1;
        } else {
            besides.push((question, 1));
        }
    }
    let times = |(question, count)| if count == 1 { question } else { format!("{question} ({count} times)") };
    besides.into_iter().map(times).collect()
}

/// The first frame of each question and its answer, and every opening: what is asked, and that for people.
fn questions(cycle: &Cycle) -> Vec<(String, String)> {
    let mut open: Vec<(usize, bool, Option<&str>, Option<&str>)> = Vec::new();
    let mut questions = Vec::new();
    for frame in cycle.frames.iter().filter(|frame| !frame.after) {
        let said = (frame.interface.as_deref(), frame.operation.as_deref());
        let answered = (frame.connection, !frame.outward, said.0, said.1);
        if let Some(at) = open.iter().position(|question| *question == answered) {
            open.swap_remove(at);
            continue;
        }
        if !frame.opens() {
            open.push((frame.connection, frame.outward, said.0, said.1));
        }
        let side = if frame.outward { "the client's" } else { "the server's" };
        let asked =
            format!("{side} {} {:?}", frame.kind, frame.operation.as_ref().or(frame.interface.as_ref()));
        questions.push((asked, format!("{side} {}", frame.label())));
    }
    questions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(outward: bool, connection: usize, operation: &str, bytes: usize) -> Frame {
        Frame {
            at_us: 0.0,
            outward,
            connection,
            kind: if bytes == 0 { "TCP connection".into() } else { "Request".into() },
            interface: None,
            operation: Some(operation.into()).filter(|_| bytes > 0),
            bytes,
            after: false,
        }
    }

    fn cycle(frames: Vec<Frame>) -> Cycle {
        Cycle {
            name: "x".into(),
            title: "X".into(),
            operation: "callback",
            cycle: "steady",
            connections: 0,
            messages: frames.len(),
            bytes: frames.iter().map(|frame| frame.bytes).sum(),
            messages_after: 0,
            bytes_after: 0,
            round_trips: round_trips(&frames),
            us: 0.0,
            frames,
        }
    }

    fn plain() -> Cycle {
        cycle(vec![frame(true, 1, "Advise", 10), frame(false, 1, "Advise", 9)])
    }

    /// The server asks back while the client waits.
    fn nested() -> Cycle {
        cycle(vec![
            frame(true, 1, "Advise", 10),
            frame(false, 2, "", 0),
            frame(false, 2, "QueryInterface", 8),
            frame(true, 2, "QueryInterface", 8),
            frame(false, 1, "Advise", 9),
        ])
    }

    #[test]
    fn round_trips_are_turns_of_the_talk() {
        assert_eq!(plain().round_trips, 1);
        // Advise, the opening, and the question back.
        assert_eq!(nested().round_trips, 3);
        // Two that are sent together are waited for together; what nobody answers is not waited for.
        let both = [
            frame(true, 1, "a", 1),
            frame(true, 1, "b", 1),
            frame(false, 1, "a", 1),
            frame(false, 1, "b", 1),
        ];
        assert_eq!(round_trips(&both), 1);
        assert_eq!(round_trips(&[frame(true, 1, "a", 1)]), 0);
        assert_eq!(round_trips(&[]), 0);
    }

    #[test]
    fn the_sentence_names_what_only_the_loser_does() {
        let (quick, slow) = (plain(), nested());
        let rider = |title, cycle, ms: f64| TracedContestant {
            title,
            cycle,
            ms,
            interval: (ms - 1.0, ms + 1.0),
            cpu_us: Some(5.0),
        };
        let sentence =
            why(rider("callbacks", &slow, 100.0), rider("connection points", &quick, 80.0), "remote");
        assert_eq!(
            sentence,
            "connection points won against callbacks by 20 % (80.0 against 100 ms per 1000 cycles, remote): 1 round \
             trip against 3, 2 frames against 5, 19 bytes against 35; only the cycle of callbacks has the server's \
             TCP connection, the server's Request QueryInterface."
        );
        let even = why(rider("a", &quick, 80.0), rider("b", &quick, 80.5), "remote");
        assert!(even.contains("cannot be told apart") && even.contains("5.00 us of CPU"), "{even}");
    }
}
