//! What a group has to tell, in order, until it is on its way.
//!
//! * One thread at a time sends what a group has to tell; finding the way to a listener may take long, and nobody else waits for it.
//! * Changes that have to wait are put together: of each item the last value stays, with
//!   [`Code::DATA_QUEUE_OVERFLOW`] where one was lost. So a listener that is slow gets the last value of everything, and knows.

use crate::Code;
use crate::contract::DataAccessGroup;
use crate::group::{Batch, Report};
use crate::sync::lock;
use everywire::{Failure, Signaller};
use everywire_model::signal::Backlog;
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

/// Reports that wait before changes are put together.
const DEPTH: usize = 16;

/// A group's.
pub(super) struct Outbox {
    /// How it is told to those who listen.
    signaller: Signaller<dyn DataAccessGroup>,
    /// What waits, and whether somebody sends.
    line: Mutex<Line>,
}

/// What waits to be sent, under a lock that is never held while something is sent.
#[derive(Default)]
struct Line {
    /// The next to be sent is at the front.
    waiting: VecDeque<Report>,
    /// Whether a thread takes from the front, or was told to.
    is_sending: bool,
}

impl Outbox {
    pub(super) fn new(signaller: Signaller<dyn DataAccessGroup>) -> Self {
        Self { signaller, line: Mutex::default() }
    }

    /// Puts a report in. Whether somebody has to send it.
    pub(super) fn post(&self, report: Report) -> bool {
        let mut line = lock(&self.line);
        line.put(report);
        let is_first = !line.is_sending;
        line.is_sending = true;
        is_first
    }

    /// What waits for the listener that is furthest behind.
    pub(super) fn backlog(&self) -> Backlog {
        self.signaller.backlog()
    }

    /// How many reports wait: for the listener that is furthest behind, and until somebody sends them.
    pub(super) fn waiting(&self) -> usize {
        let unsent = lock(&self.line).waiting.len();
        self.backlog().signals + unsent
    }

    /// Tells whoever looks after the node that a listener does not get what it asked for.
    pub(super) fn undelivered(&self, failure: &Failure) {
        self.signaller.undelivered(failure);
    }

    /// Sends what is there.
    pub(super) fn send(&self) {
        loop {
            let report = {
                let mut line = lock(&self.line);
                let Some(report) = line.waiting.pop_front() else {
                    line.is_sending = false;
                    return;
                };
                report
            };
            super::later::tell(&self.signaller, report);
        }
    }
}

impl Line {
    /// Puts a report behind the others, or into the last if that is a change too and there are many.
    fn put(&mut self, report: Report) {
        let is_long = self.waiting.len() >= DEPTH;
        match (report, self.waiting.back_mut()) {
            (Report::Change(next), Some(Report::Change(last)))
                if is_long && next.transaction == 0 && last.transaction == 0 =>
            {
                merge(last, next);
            }
            (report, _) => self.waiting.push_back(report),
        }
    }
}

/// Puts the values of a later batch into an earlier one: each item's in place of its own.
fn merge(last: &mut Batch, next: Batch) {
    let mut places: HashMap<u32, usize> =
        last.samples.iter().enumerate().map(|(index, sample)| (sample.server, index)).collect();
    for mut sample in next.samples {
        match places.get(&sample.server).and_then(|index| last.samples.get_mut(*index)) {
            Some(held) => {
                if !sample.error.is_failure() {
                    sample.error = Code::DATA_QUEUE_OVERFLOW;
                }
                *held = sample;
            }
            None => {
                places.insert(sample.server, last.samples.len());
                last.samples.push(sample);
            }
        }
    }
    last.group = next.group;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Data, FileTime, Sample, Vqt};

    fn change(samples: &[(u32, i32)]) -> Report {
        let sample = |(server, value): &(u32, i32)| Sample {
            server: *server,
            client: server + 100,
            value: Vqt::good(*value, FileTime::default()),
            error: Code::OK,
        };
        Report::Change(Batch { transaction: 0, group: 1, samples: samples.iter().map(sample).collect() })
    }

    #[test]
    fn reports_that_nobody_sends_yet_are_counted() {
        let outbox = Outbox::new(everywire::Node::new().signaller::<dyn DataAccessGroup>("group"));
        for transaction in 0..3 {
            outbox.post(Report::Cancelled { transaction, group: 1 });
        }
        assert_eq!(outbox.waiting(), 3);
        outbox.send();
        assert_eq!(outbox.waiting(), 0);
    }

    #[test]
    fn a_slow_listener_gets_the_last_value_of_all_and_knows_that_some_were_lost() {
        let mut line = Line::default();
        let number = i32::try_from(DEPTH).expect("a small number");
        (0..number).for_each(|value| line.put(change(&[(1, value)])));
        line.put(change(&[(2, 7)]));
        line.put(change(&[(1, 100), (3, 8)]));
        line.put(Report::Cancelled { transaction: 5, group: 1 });
        line.put(change(&[(1, 101)]));
        let kinds = line.waiting.iter().map(|report| matches!(report, Report::Change(_))).collect::<Vec<_>>();
        assert_eq!(kinds.len(), DEPTH + 2);
        let Some(Report::Change(merged)) = line.waiting.get(DEPTH - 1) else { panic!("no change") };
        let found: Vec<_> =
            merged.samples.iter().map(|s| (s.server, s.value.data.clone(), s.error)).collect();
        let expected = [
            (1, Data::I4(100), Code::DATA_QUEUE_OVERFLOW),
            (2, Data::I4(7), Code::OK),
            (3, Data::I4(8), Code::OK),
        ];
        assert_eq!(found, expected);
        // What was asked for stays where it is, and what comes after it stays behind it.
        assert!(matches!(line.waiting.get(DEPTH), Some(Report::Cancelled { .. })));
        assert!(matches!(line.waiting.back(), Some(Report::Change(batch)) if batch.samples.len() == 1));
    }
}
