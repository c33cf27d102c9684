//! Measuring calls in a client process, and telling the coordinator about them: one JSON object a line.
//!
//! A client is told a `Plan` as arguments (`Plan::arguments`, `Plan::parse`; rivals in other languages
//! read the same ones) and writes one `Line` for each operation to standard output. Nothing else may be
//! written there.
//!
//! * Order of a measurement: calls that nobody counts, a look at the clocks of CPU time, calls that are
//!   timed one after the other, another look. Between two timed calls the clock is read once, so that
//!   the end of one is the beginning of the next and no time is between them.
//! * A `Line` is of one operation; several clients at once (`several`) say one line together.
//! * Names of fields say the unit: `_ps`, `_ns`, `_us`. Times of calls are in picoseconds, because the
//!   time of a batch of very short calls is divided by their number.
//! * The first failure of a call ends the client: a call that failed is in no figure.

pub(crate) mod several;

use crate::stats::{Times, median};
use crate::{broken, unknown};
use everywire_model::Failure;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::mem;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What a client process is told to do. Whichever is over first, `calls` or `budget`, ends an
/// operation.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Calls of each operation at the most; at least 1.
    pub calls: u64,
    /// Calls before the clock starts; at most a fifth of the budget is spent on them.
    pub warmup: u64,
    /// The time of an operation, warming up not included; the call under way is still finished. Zero:
    /// no end but `calls`.
    pub budget: Duration,
    /// Large transfers are done so many times fewer.
    pub large_divisor: u64,
    /// The processes whose CPU time is reported as the server's: the server, and what routes between.
    pub server_pids: Vec<u32>,
    /// The processes that stand between client and backend, whose CPU time is reported apart.
    pub hop_pids: Vec<u32>,
    /// The one operation to measure; without it all.
    pub operation: Option<String>,
    /// To rest so long before each call, and to note when it begins and ends: for traces, which look at
    /// single calls. Zero: calls follow each other, and no moment is noted.
    pub pause: Duration,
}

impl Plan {
    /// As arguments of a client, ours or foreign.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            "--calls".to_owned(),
            self.calls.to_string(),
            "--warmup".to_owned(),
            self.warmup.to_string(),
            "--budget-ms".to_owned(),
            self.budget.as_millis().to_string(),
            "--large-divisor".to_owned(),
            self.large_divisor.to_string(),
        ];
        for pid in &self.server_pids {
            arguments.extend(["--server-pid".to_owned(), pid.to_string()]);
        }
        for pid in &self.hop_pids {
            arguments.extend(["--hop-pid".to_owned(), pid.to_string()]);
        }
        if !self.pause.is_zero() {
            arguments.extend(["--pause-ms".to_owned(), self.pause.as_millis().to_string()]);
        }
        if let Some(operation) = &self.operation {
            arguments.extend(["--operation".to_owned(), operation.clone()]);
        }
        arguments
    }

    /// Reads what `arguments` wrote: pairs of a name and a value, in any order. What is not named has a
    /// default that suits a try by hand.
    pub fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut plan = Self {
            calls: 10_000,
            warmup: 500,
            budget: Duration::ZERO,
            large_divisor: 1,
            server_pids: Vec::new(),
            hop_pids: Vec::new(),
            operation: None,
            pause: Duration::ZERO,
        };
        for pair in arguments.chunks(2) {
            let [name, value] = pair else {
                return Err(unknown(format!("{} wants a value", pair.join(" "))));
            };
            let number =
                || value.parse::<u64>().map_err(|_| unknown(format!("{name} wants a number, not `{value}`")));
            match name.as_str() {
                "--calls" => plan.calls = number()?.max(1),
                "--warmup" => plan.warmup = number()?,
                "--budget-ms" => plan.budget = Duration::from_millis(number()?),
                "--large-divisor" => plan.large_divisor = number()?.max(1),
                "--server-pid" => plan.server_pids.extend(u32::try_from(number()?).ok()),
                "--hop-pid" => plan.hop_pids.extend(u32::try_from(number()?).ok()),
                "--pause-ms" => plan.pause = Duration::from_millis(number()?),
                "--operation" => plan.operation = Some(value.clone()),
                other => return Err(unknown(format!("unknown argument `{other}`"))),
            }
        }
        Ok(plan)
    }

    /// Calls of an operation that transfers this many bytes: over 10,000 it is a large transfer, of
    /// which fewer are done.
    pub fn calls_of(&self, payload: Option<u64>) -> u64 {
        if payload.is_some_and(|bytes| bytes > 10_000) {
            (self.calls / self.large_divisor).max(1)
        } else {
            self.calls
        }
    }

    /// CPU time of the server and of what routes between, all of it or none.
    pub(crate) fn server_cpu_us(&self) -> Option<f64> {
        cpu_of(&self.server_pids)
    }

    /// The clocks of CPU time of everybody.
    pub(crate) fn clocks(&self) -> Clocks {
        Clocks { own: cpu_us(None), server: cpu_of(&self.server_pids), hop: cpu_of(&self.hop_pids) }
    }

    /// Whether this operation is to be measured. Whoever sets something up for an operation asks this
    /// first.
    pub fn wants(&self, operation: &str) -> bool {
        self.operation.as_deref().is_none_or(|only| only == operation)
    }
}

/// CPU time of all of these processes together, in microseconds. `None` if there is none, or if one of
/// them cannot be read any more: a part of the sum would look like a cheap server.
fn cpu_of(pids: &[u32]) -> Option<f64> {
    (!pids.is_empty()).then_some(())?;
    pids.iter().map(|&pid| cpu_us(Some(pid))).sum()
}

/// CPU time of the client, of the server and of the hop at one moment, in microseconds since each
/// began. Only differences count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clocks {
    own: Option<f64>,
    server: Option<f64>,
    hop: Option<f64>,
}

/// What a client says about one operation. This is what crosses from clients of every language, so its
/// names are part of the contract with them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Line {
    /// Its name.
    pub operation: String,
    /// Calls that were timed, of all clients together.
    pub calls: u64,
    /// From the first to the last of them; of several clients that of the slowest.
    pub total_ns: u64,
    /// CPU time of the client in them, user and system, all threads. `None` where it cannot be read.
    pub client_cpu_us: Option<f64>,
    /// The same of the server and its router; `None` also if the plan names no process.
    pub server_cpu_us: Option<f64>,
    /// The same of what stands between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop_cpu_us: Option<f64>,
    /// Medians of consecutive blocks of calls, up to twenty a client: what confidence intervals are
    /// drawn from.
    pub blocks_ps: Vec<u64>,
    /// (time, calls that took it), in ascending order, to three significant digits.
    pub histogram_ps: Vec<(u64, u64)>,
    /// When each call began, in nanoseconds since 1970, if the plan has pauses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub began_ns: Vec<u64>,
    /// When each ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended_ns: Vec<u64>,
}

/// Times `call`, and writes a [`Line`] to standard output. The clock is read once between two batches of `batch` calls:
/// 1 unless a call takes less time than reading the clock.
///
/// # Errors
/// The first failure of a call, or of writing.
pub fn measure(
    plan: &Plan,
    operation: &str,
    payload: Option<u64>,
    batch: u32,
    mut call: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let batches = plan.calls_of(payload).div_ceil(u64::from(batch));
    measure_bursts(plan, operation, batches, batch, || (0..batch).try_for_each(|_| call()))
}

/// Times `burst`, so many times; each does `batch` calls of what is counted, and its time is divided by
/// that. Otherwise as `measure`.
pub fn measure_bursts(
    plan: &Plan,
    operation: &str,
    bursts: u64,
    batch: u32,
    mut burst: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    if !plan.wants(operation) {
        return Ok(());
    }
    warm(plan, bursts, batch, &mut burst)?;
    // The clocks of other processes are read outside of the timed calls: reading them is a system call
    // each.
    let before = plan.clocks();
    let timed = Timed::of(plan, bursts, batch, &mut burst)?;
    let after = plan.clocks();
    Line::of(operation, &[timed]).charged(before, after).say()
}

/// The calls before the clock starts: as many as the plan says, no more than there will be, and no
/// longer than a fifth of the budget.
fn warm(
    plan: &Plan,
    bursts: u64,
    batch: u32,
    burst: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let begun = Instant::now();
    for _ in 0..plan.warmup.div_ceil(u64::from(batch)).min(bursts) {
        burst()?;
        if !plan.budget.is_zero() && begun.elapsed() > plan.budget / 5 {
            break;
        }
    }
    Ok(())
}

/// Samples that room is made for before the clock starts: 128 MiB of them. How many calls are asked for is the user's to say.
const ROOM: usize = 1 << 24;

/// What was timed of one client. There is one sample for each burst.
pub(crate) struct Timed {
    /// Of each burst, what one of its calls took, in picoseconds.
    samples: Vec<u64>,
    /// Calls in a burst.
    batch: u32,
    /// From the beginning of the first burst to the end of the last, pauses included.
    total: Duration,
    /// As in `Line`; empty without pauses.
    began_ns: Vec<u64>,
    ended_ns: Vec<u64>,
}

impl Timed {
    /// Samples that were not taken by calling in a loop, such as at a rate: one call each, in
    /// picoseconds, over `total`.
    pub(crate) fn spread(samples: Vec<u64>, total: Duration) -> Self {
        Self { samples, batch: 1, total, began_ns: Vec::new(), ended_ns: Vec::new() }
    }

    /// Calls `burst` until the number or the time is over, and notes each.
    fn of(
        plan: &Plan,
        bursts: u64,
        batch: u32,
        burst: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        let mut samples: Vec<u64> = Vec::with_capacity(usize::try_from(bursts).unwrap_or(ROOM).min(ROOM));
        let (mut began_ns, mut ended_ns) = (Vec::new(), Vec::new());
        // Room is made before the clock starts: a vector that grows would be in the time of the call
        // that has it grow.
        let start = Instant::now();
        let mut last = start;
        for _ in 0..bursts {
            if !plan.pause.is_zero() {
                std::thread::sleep(plan.pause);
                began_ns.push(now_ns());
                last = Instant::now();
            }
            burst()?;
            let now = Instant::now();
            if !plan.pause.is_zero() {
                ended_ns.push(now_ns());
            }
            samples.push(ps(now - last) / u64::from(batch));
            last = now;
            if !plan.budget.is_zero() && now - start > plan.budget {
                break;
            }
        }
        Ok(Self { samples, batch, total: last - start, began_ns, ended_ns })
    }
}

impl Line {
    /// What all of these clients together say of an operation: samples and blocks of all, the time of
    /// the slowest. CPU time is left empty, see `charged`.
    pub(crate) fn of(operation: &str, clients: &[Timed]) -> Self {
        let mut times = Times::default();
        for client in clients {
            client.samples.iter().for_each(|&sample| times.add(sample, client.batch.into()));
        }
        let all = |of: fn(&Timed) -> Vec<u64>| clients.iter().flat_map(of).collect::<Vec<u64>>();
        Self {
            operation: operation.to_owned(),
            calls: clients.iter().map(|client| client.samples.len() as u64 * u64::from(client.batch)).sum(),
            total_ns: clients.iter().map(|client| ps(client.total) / 1000).max().unwrap_or(0),
            client_cpu_us: None,
            server_cpu_us: None,
            hop_cpu_us: None,
            blocks_ps: all(|client| blocks(&client.samples)),
            histogram_ps: times.pairs(),
            began_ns: all(|client| client.began_ns.clone()),
            ended_ns: all(|client| client.ended_ns.clone()),
        }
    }

    /// With the CPU time between two looks at the clocks. `None` stays where one of the two looks
    /// failed.
    pub(crate) fn charged(self, before: Clocks, after: Clocks) -> Self {
        Self {
            client_cpu_us: spent(before.own, after.own),
            server_cpu_us: spent(before.server, after.server),
            hop_cpu_us: spent(before.hop, after.hop),
            ..self
        }
    }

    /// Writes it to standard output, as one line of JSON.
    ///
    /// # Errors
    /// Nobody reads that any more.
    pub(crate) fn say(&self) -> Result<(), Failure> {
        let text = serde_json::to_string(self).map_err(|error| broken(error.to_string()))?;
        writeln!(std::io::stdout().lock(), "{text}")
            .map_err(|error| broken(format!("standard output: {error}")))
    }
}

/// The difference of two looks at a clock, if both succeeded.
pub(crate) fn spent(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    Some(after? - before?)
}

/// Nanoseconds since 1970 on the clock that captures are stamped by, so that both can be compared.
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Picoseconds of a time; the largest number for what does not fit (213 days).
pub(crate) fn ps(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000)
}

/// The medians of up to twenty blocks of equal size, the last of which may be smaller. The order of the
/// samples is kept, since calls that follow each other resemble each other.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn blocks(samples: &[u64]) -> Vec<u64> {
    let size = samples.len().div_ceil(20).max(1);
    let values = |block: &[u64]| block.iter().map(|&ps| ps as f64).collect::<Vec<_>>();
    samples.chunks(size).filter_map(|block| median(&values(block))).map(|ps| ps as u64).collect()
}

/// CPU time of a process in microseconds, all of its threads, user and system; of this one without an id.
///
/// The kernel brings the clock of another process up to date when that process sleeps, else at each tick (some
/// milliseconds): a server that spins without sleeping shows a few ticks too much or too little.
#[allow(clippy::cast_precision_loss)]
pub fn cpu_us(pid: Option<u32>) -> Option<f64> {
    let mut clock = libc::CLOCK_PROCESS_CPUTIME_ID;
    if let Some(pid) = pid {
        // SAFETY: the pointer is to a local variable.
        if unsafe { libc::clock_getcpuclockid(i32::try_from(pid).ok()?, &mut clock) } != 0 {
            return None;
        }
    }
    // SAFETY: a timespec is two integers, for which zero is valid.
    let mut time: libc::timespec = unsafe { mem::zeroed() };
    // SAFETY: the pointer is to a local variable.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return None;
    }
    Some(time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_survive_the_way_between_processes() {
        let plan = Plan {
            calls: 7,
            warmup: 0,
            budget: Duration::from_millis(9),
            large_divisor: 3,
            server_pids: vec![11, 12],
            hop_pids: vec![13],
            operation: Some("GetBytes 1 MB".into()),
            pause: Duration::from_millis(5),
        };
        let copy = Plan::parse(&plan.arguments()).unwrap();
        assert_eq!(format!("{plan:?}"), format!("{copy:?}"));
        assert_eq!(copy.calls_of(Some(1_000_000)), 2);
        assert_eq!(copy.calls_of(None), 7);
        assert!(Plan::parse(&["--calls".into(), "many".into()]).is_err());
        assert!(Plan::parse(&["--calls".into()]).is_err());
    }

    #[test]
    fn own_and_foreign_cpu_time_is_the_same_clock() {
        let spin = (0..1_000_000u64).fold(0u64, |sum, i| sum.wrapping_mul(31).wrapping_add(i));
        assert_ne!(spin, 1);
        let own = cpu_us(None).unwrap();
        let foreign = cpu_us(Some(std::process::id())).unwrap();
        assert!(own > 0.0 && foreign >= own);
        assert_eq!(cpu_us(Some(u32::MAX)), None);
    }

    #[test]
    fn blocks_cover_all_samples() {
        assert_eq!(blocks(&[5]), [5]);
        let samples: Vec<u64> = (0..1000).collect();
        assert_eq!(blocks(&samples).len(), 20);
        assert!(blocks(&[]).is_empty());
    }
}
