//! Several clients at once: threads of this process, or processes that this one starts.
//!
//! A client is *warm* when its first calls are done, *timed* from the moment at which all of them are warm, and *done*. Nobody is timed
//! before everybody is warm, and one that fails keeps nobody waiting.

use super::{Line, Plan, Timed, cpu_us, spent, warm};
use crate::broken;
use crate::process::{Launch, Spot};
use everywire_model::Failure;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Barrier;

/// What a client of several says when it is warm.
const WARM: &str = "warm";

/// Times these clients' calls, each on a thread of its own, and writes one [`Line`] for all.
///
/// # Errors
/// The first failure of a client, or of writing.
pub(crate) fn threads<C>(plan: &Plan, operation: &str, clients: Vec<C>) -> Result<(), Failure>
where
    C: FnMut() -> Result<(), Failure> + Send,
{
    if !plan.wants(operation) {
        return Ok(());
    }
    let calls = shared(plan.calls, clients.len());
    let (ready, go) = (Barrier::new(clients.len() + 1), Barrier::new(clients.len() + 1));
    let (before, timed) = std::thread::scope(|scope| {
        let client = |mut call: C| {
            let warmed = warm(plan, calls, 1, &mut call);
            ready.wait();
            go.wait();
            warmed?;
            Timed::of(plan, calls, 1, &mut call)
        };
        let running: Vec<_> = clients.into_iter().map(|call| scope.spawn(move || client(call))).collect();
        ready.wait();
        let before = plan.clocks();
        go.wait();
        let joined = running
            .into_iter()
            .map(|client| client.join().unwrap_or_else(|_| Err(broken("a client of several panicked"))));
        (before, joined.collect::<Result<Vec<Timed>, Failure>>())
    });
    let after = plan.clocks();
    Line::of(operation, &timed?).charged(before, after).say()
}

/// The share of each.
fn shared(calls: u64, clients: usize) -> u64 {
    calls.div_ceil(u64::try_from(clients).unwrap_or(u64::MAX).max(1))
}

/// The same with processes that are started so, each of which is a [`member`].
///
/// # Errors
/// One of them cannot be started, or fails.
pub(crate) fn processes(plan: &Plan, operation: &str, number: u32, launch: &Launch) -> Result<(), Failure> {
    if !plan.wants(operation) {
        return Ok(());
    }
    let single = Plan {
        calls: shared(plan.calls, usize::try_from(number).unwrap_or(1)),
        server_pids: Vec::new(),
        ..plan.clone()
    };
    let launch = launch.clone().with(single.arguments());
    let mut members = (0..number).map(|_| Member::start(&launch)).collect::<Result<Vec<_>, _>>()?;
    for member in &mut members {
        if member.line()?.trim() != WARM {
            return Err(broken("a client of several does not say that it is ready"));
        }
    }
    let before = plan.server_cpu_us();
    members.iter_mut().try_for_each(Member::go)?;
    let lines = members.iter_mut().map(Member::end).collect::<Result<Vec<Line>, _>>()?;
    let after = plan.server_cpu_us();
    Line { server_cpu_us: spent(before, after), ..together(operation, lines) }.say()
}

/// One line of several; without the CPU time of a server, which all of them share.
fn together(operation: &str, lines: Vec<Line>) -> Line {
    let mut sum = Line { client_cpu_us: Some(0.0), ..Line::of(operation, &[]) };
    for line in lines {
        sum.calls += line.calls;
        sum.total_ns = sum.total_ns.max(line.total_ns);
        sum.client_cpu_us = sum.client_cpu_us.zip(line.client_cpu_us).map(|(sum, more)| sum + more);
        sum.blocks_ps.extend(line.blocks_ps);
        sum.histogram_ps.extend(line.histogram_ps);
    }
    sum
}

/// A process of several; it is killed when this is dropped.
struct Member {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Member {
    fn start(launch: &Launch) -> Result<Self, Failure> {
        let mut command = launch.command(&Spot::default());
        // What it complains of stands among what its client complains of.
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| broken(format!("a client cannot be started: {error}")))?;
        match child.stdout.take() {
            Some(output) => Ok(Self { child, output: BufReader::new(output) }),
            None => Err(broken("a pipe is missing")),
        }
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(0) => Err(broken("a client of several ended before its time")),
            Ok(_) => Ok(line),
            Err(error) => Err(broken(format!("a client of several: {error}"))),
        }
    }

    fn go(&mut self) -> Result<(), Failure> {
        let input = self.child.stdin.as_mut().ok_or_else(|| broken("a pipe is missing"))?;
        writeln!(input).map_err(|error| broken(format!("a client of several: {error}")))
    }

    fn end(&mut self) -> Result<Line, Failure> {
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|error| broken(format!("a client of several: {error}")))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // Fails only if it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One of several processes: says when it is warm, waits for a line on standard input, and writes its [`Line`].
///
/// # Errors
/// The first failure of a call, or of writing; or whoever started it is gone.
pub(crate) fn member(
    plan: &Plan,
    operation: &str,
    mut call: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    warm(plan, plan.calls, 1, &mut call)?;
    let lost = |error| broken(format!("nobody hears a client of several: {error}"));
    writeln!(std::io::stdout().lock(), "{WARM}").map_err(lost)?;
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line).map_err(lost)? == 0 {
        return Err(broken("whoever started this client is gone"));
    }
    let before = cpu_us(None);
    let timed = Timed::of(plan, plan.calls, 1, &mut call)?;
    let after = cpu_us(None);
    Line { client_cpu_us: spent(before, after), ..Line::of(operation, &[timed]) }.say()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_lines_are_one() {
        let line = |calls, total_ns, client_cpu_us| Line {
            calls,
            total_ns,
            client_cpu_us,
            blocks_ps: vec![total_ns],
            histogram_ps: vec![(total_ns, calls)],
            ..Line::of("read", &[])
        };
        let sum = together("read", vec![line(3, 70, Some(1.0)), line(4, 50, Some(2.5))]);
        assert_eq!((sum.calls, sum.total_ns, sum.client_cpu_us), (7, 70, Some(3.5)));
        assert_eq!((sum.blocks_ps, sum.histogram_ps), (vec![70, 50], vec![(70, 3), (50, 4)]));
        assert_eq!(together("read", vec![line(1, 1, None)]).client_cpu_us, None);
    }

    #[test]
    fn calls_are_shared_out() {
        assert_eq!([shared(100, 4), shared(10, 4), shared(1, 4), shared(9, 0)], [25, 3, 1, 9]);
    }

    #[test]
    fn a_client_that_fails_keeps_nobody_waiting() {
        let plan = Plan { calls: 8, warmup: 2, ..Plan::parse(&[]).unwrap() };
        let client = |fails: bool| move || if fails { Err(broken("no")) } else { Ok(()) };
        let failure = threads(&plan, "read", vec![client(false), client(true), client(false)]).unwrap_err();
        assert!(failure.message().contains("no"));
    }
}
