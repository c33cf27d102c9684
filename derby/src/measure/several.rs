//! Several clients at once: threads of this process, or processes that this one starts.
//!
//! States of a client: *warm* when its first calls are done, *timed* from the moment at which all of
//! them are warm, and *done*. Threads wait for each other at two barriers, processes by a line of text
//! each way: the member writes that it is warm, and begins when it reads a line.
//!
//! Invariants: nobody is timed before everybody is warm. A thread that fails still comes to both
//! barriers, so it keeps nobody waiting; a process that fails closes its pipe, which ends the wait. The
//! calls of the plan are shared among the clients. Server CPU time is read once for all, since all of
//! them share the server.

use super::{Line, Plan, Timed, cpu_us, spent, warm};
use crate::broken;
use crate::process::{Launch, ProcessPlacement};
use everywire_model::Failure;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Barrier;

/// The line by which a process says that it is warm.
const WARM: &str = "warm";

/// Times these clients' calls, each on a thread of its own, and writes one `Line` for all. Each of
/// `clients` does one call on a connection of its own.
pub(crate) fn threads<C>(plan: &Plan, operation: &str, clients: Vec<C>) -> Result<(), Failure>
where
    C: FnMut() -> Result<(), Failure> + Send,
{
    if !plan.wants(operation) {
        return Ok(());
    }
    let calls = shared(plan.calls, clients.len());
    // One more than there are clients: this thread reads the clocks between the two barriers.
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

/// The calls of each client, rounded up so that together they are not fewer than planned.
fn shared(calls: u64, clients: usize) -> u64 {
    calls.div_ceil(u64::try_from(clients).unwrap_or(u64::MAX).max(1))
}

/// The same with `number` processes that are started by `launch`, each of which is a `member`. Their
/// CPU time is the sum of what each says of itself.
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

/// One line of several, without the CPU time of a server. Histograms are put one after the other: the
/// coordinator adds them up. The client's CPU time is unknown as soon as that of one is.
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
    /// Starts one with pipes for both directions. It runs on the CPU of this process, which it
    /// inherits.
    fn start(launch: &Launch) -> Result<Self, Failure> {
        let mut command = launch.command(&ProcessPlacement::default());
        // What it complains of stands among what its client complains of.
        // Its standard error is that of this process, where the coordinator finds it.
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| broken(format!("a client cannot be started: {error}")))?;
        match child.stdout.take() {
            Some(output) => Ok(Self { child, output: BufReader::new(output) }),
            None => Err(broken("a pipe is missing")),
        }
    }

    /// The next line that it writes. That it ended is a failure.
    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(0) => Err(broken("a client of several ended before its time")),
            Ok(_) => Ok(line),
            Err(error) => Err(broken(format!("a client of several: {error}"))),
        }
    }

    /// Has it begin to time.
    fn go(&mut self) -> Result<(), Failure> {
        let input = self.child.stdin.as_mut().ok_or_else(|| broken("a pipe is missing"))?;
        writeln!(input).map_err(|error| broken(format!("a client of several: {error}")))
    }

    /// Waits for its `Line`.
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

/// One of several processes: says when it is warm, waits for a line on standard input, and writes its
/// `Line`, with its own CPU time.
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
