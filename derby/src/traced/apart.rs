//! Which cycle a frame is of: told by what the messages say, and not by when they passed.
//!
//! The client asks one question after another, so the question that begins a cycle begins the next one, too: cycles are what lies between
//! its repetitions. An answer is of the cycle of its question, whose number it has (request id, call id, serial), however late it comes;
//! a connection that is opened is of the cycle of its first message.
//!
//! What is put off (releases, pings) is asked whenever it is due, as late as in the next cycle. A cycle never ends with it or begins with
//! it; and of the cycles that are alike the plainest one is shown, in which nothing of another one's passed.
//!
//! Invariant: the client's clock is asked only where no delay of frames can make it wrong: the first question of a cycle passes after the
//! client has noted that the cycle begins, and whatever the client waits for passes before it has noted that the cycle is over.

use super::Frame;
use std::time::Duration;

/// Operations that are put off: of DCOM (MS-DCOM 3.1.1.5.6, 3.1.2.5.1).
const PUT_OFF: [&str; 3] = ["RemRelease", "SimplePing", "ComplexPing"];

/// A frame, and what is known of it.
#[derive(Debug, Clone)]
pub(super) struct RelayedFrame {
    pub(super) time: Duration,
    pub(super) frame: Frame,
    /// The place of the question that it answers.
    pub(super) answers: Option<usize>,
}

impl RelayedFrame {
    fn is_put_off(&self) -> bool {
        self.frame.operation.as_deref().is_some_and(|operation| PUT_OFF.contains(&operation))
    }

    /// What it asks.
    fn label(&self) -> (&str, Option<&str>, Option<&str>) {
        (&self.frame.kind, self.frame.interface.as_deref(), self.frame.operation.as_deref())
    }
}

/// Which cycle each of these frames is of, from 0, and whether it passed when that cycle was over.
/// `None` if no question of the client's is in every cycle. `began` and `ended` say when the client
/// began each and had its end, as time since 1970.
pub(super) fn tell(
    all: &[RelayedFrame],
    began: &[Duration],
    ended: &[Duration],
) -> Option<Vec<(usize, bool)>> {
    let mut answered = vec![None; all.len()];
    for (at, passed) in all.iter().enumerate() {
        if let Some(question) = passed.answers.and_then(|question| answered.get_mut(question)) {
            *question = Some(at);
        }
    }
    // Questions of the client's side that it waits for.
    let questions: Vec<usize> = (0..all.len())
        .filter(|at| {
            let asks = all.get(*at).is_some_and(|passed| passed.frame.outward && !passed.is_put_off());
            asks && answered.get(*at).is_some_and(Option::is_some)
        })
        .collect();
    let last = began.last()?;
    let first = questions.iter().find_map(|at| all.get(*at).filter(|passed| passed.time >= *last))?;
    let mut starts: Vec<usize> = questions
        .iter()
        .copied()
        .filter(|at| all.get(*at).is_some_and(|passed| passed.label() == first.label()))
        .collect();
    // Once more than there are cycles: something was asked before the first.
    starts.drain(..starts.len().checked_sub(began.len())?);
    let after_first = starts.get(1..).unwrap_or_default();
    let cycle_at = |at: usize| after_first.partition_point(|start| *start <= at);
    let cycles: Vec<usize> = all
        .iter()
        .enumerate()
        .map(|(at, passed)| {
            let first_use = |opening: &RelayedFrame| {
                let used = |other: &RelayedFrame| {
                    !other.frame.opens() && other.frame.connection == opening.frame.connection
                };
                all.iter().position(used).unwrap_or(at)
            };
            cycle_at(if passed.frame.opens() { first_use(passed) } else { passed.answers.unwrap_or(at) })
        })
        .collect();
    // The answer to the last question of each cycle that the client waits for.
    let mut ends = vec![0; began.len()];
    for at in questions {
        if let (Some(answer), Some(end)) = (answered.get(at).copied().flatten(), ends.get_mut(cycle_at(at))) {
            *end = answer.max(*end);
        }
    }
    let over = |at: usize, cycle: usize, time: Duration| {
        at > ends.get(cycle).copied().unwrap_or(at) && ended.get(cycle).is_none_or(|ended| time > *ended)
    };
    let told = all.iter().zip(cycles).enumerate();
    Some(told.map(|(at, (passed, cycle))| (cycle, over(at, cycle, passed.time))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    fn passed(us: u64, outward: bool, operation: &str, answers: Option<usize>) -> RelayedFrame {
        let frame = Frame {
            at_us: 0.0,
            outward,
            connection: 1,
            kind: if answers.is_some() { "Reply" } else { "Request" }.into(),
            interface: None,
            operation: Some(operation.into()),
            bytes: 10,
            after: false,
        };
        RelayedFrame { time: at(us), frame, answers }
    }

    /// Three cycles without any pause; in the first one something else is asked before, and its release comes in the midst of the second.
    fn talk() -> Vec<RelayedFrame> {
        let mut all = vec![passed(0, true, "is_a", None), passed(1, false, "is_a", Some(0))];
        for cycle in 0..3 {
            let base = 10 + cycle * 10;
            let first = all.len();
            all.extend([
                passed(base, true, "create", None),
                passed(base + 1, false, "create", Some(first)),
                passed(base + 2, true, "attach", None),
            ]);
            if cycle == 1 {
                all.push(passed(base + 2, true, "RemRelease", None));
                all.push(passed(base + 3, false, "RemRelease", Some(first + 3)));
            }
            all.push(passed(base + 4, false, "attach", Some(first + 2)));
        }
        all
    }

    #[test]
    fn cycles_are_told_apart_without_pauses() {
        let all = talk();
        let (began, ended) = ([at(5), at(20), at(30)], [at(15), at(25), at(35)]);
        let told = tell(&all, &began, &ended).unwrap();
        let sizes = [0, 1, 2].map(|cycle| told.iter().filter(|(of, _)| *of == cycle).count());
        assert_eq!(sizes, [6, 6, 4]);
        assert!(told.iter().all(|(_, after)| !after));
    }

    #[test]
    fn an_answer_is_of_its_questions_cycle_however_late_it_is_seen() {
        let all = [
            passed(0, true, "create", None),
            passed(1, false, "create", Some(0)),
            passed(5, true, "RemRelease", None),
            passed(10, true, "create", None),
            passed(12, false, "RemRelease", Some(2)),
            passed(13, false, "create", Some(3)),
            passed(20, true, "create", None),
            passed(21, false, "create", Some(6)),
        ];
        let told = tell(&all, &[at(0), at(10), at(20)], &[at(3), at(14), at(24)]).unwrap();
        let (inside, after) = (false, true);
        let expected =
            [(0, inside), (0, inside), (0, after), (1, inside), (0, after), (1, inside), (2, inside)];
        assert_eq!((&told[..7], told[7]), (&expected[..], (2, inside)));
    }

    #[test]
    fn without_a_question_in_every_cycle_nothing_is_told() {
        let all: Vec<RelayedFrame> = talk().into_iter().take(6).collect();
        assert_eq!(tell(&all, &[at(5), at(9)], &[at(8), at(20)]), None);
        assert_eq!(tell(&[], &[at(5)], &[at(8)]), None);
    }
}
