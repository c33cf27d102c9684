//! Measuring calls, and telling the coordinator about them: one JSON object a line.

use crate::bench::Result;
use std::fmt::Write;
use std::time::{Duration, Instant};

pub struct Plan {
    pub calls: u64,
    pub warmup: u64,
    /// Ends an operation early; zero: never.
    pub budget: Duration,
    pub large_divisor: u64,
    /// Whose CPU time is reported as the server's.
    pub server_pids: Vec<i32>,
    /// One operation; without it all of them.
    pub only: Option<String>,
}

impl Plan {
    pub fn parse(arguments: &[String]) -> Result<Self> {
        let mut plan =
            Self { calls: 10_000, warmup: 500, budget: Duration::ZERO, large_divisor: 1, server_pids: Vec::new(), only: None };
        for pair in arguments.chunks(2) {
            let [name, value] = pair else { return Err(format!("{} wants a value", pair.concat()).into()) };
            match name.as_str() {
                "--calls" => plan.calls = value.parse()?,
                "--warmup" => plan.warmup = value.parse()?,
                "--budget-ms" => plan.budget = Duration::from_millis(value.parse()?),
                "--large-divisor" => plan.large_divisor = value.parse::<u64>()?.max(1),
                "--server-pid" => plan.server_pids.push(value.parse()?),
                "--operation" => plan.only = Some(value.clone()),
                other => return Err(format!("unknown option {other}").into()),
            }
        }
        Ok(plan)
    }

    fn server_cpu_us(&self) -> Option<f64> {
        (!self.server_pids.is_empty()).then_some(())?;
        self.server_pids.iter().map(|&pid| cpu_us(Some(pid))).sum()
    }
}

/// Times `call`, which does `batch` of what is counted. Between two calls the clock is read once.
pub async fn measure(
    plan: &Plan,
    operation: &str,
    calls: u64,
    batch: u64,
    mut call: impl AsyncFnMut() -> Result<()>,
) -> Result<()> {
    if plan.only.as_deref().is_some_and(|only| only != operation) {
        return Ok(());
    }
    let over = |since: Instant, share: u32| !plan.budget.is_zero() && since.elapsed() > plan.budget / share;
    let begun = Instant::now();
    for _ in 0..plan.warmup.div_ceil(batch).min(calls) {
        call().await?;
        if over(begun, 5) {
            break;
        }
    }
    let mut samples = Vec::with_capacity(usize::try_from(calls)?);
    let (own, server) = (cpu_us(None), plan.server_cpu_us());
    let start = Instant::now();
    let mut last = start;
    for _ in 0..calls {
        call().await?;
        let now = Instant::now();
        samples.push(u64::try_from((now - last).as_nanos())? * 1000 / batch);
        last = now;
        if !plan.budget.is_zero() && now - start > plan.budget {
            break;
        }
    }
    let (own_after, server_after) = (cpu_us(None), plan.server_cpu_us());
    say(operation, &mut samples, batch, last - start, spent(own, own_after), spent(server, server_after))
}

fn spent(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    Some(after? - before?)
}

fn say(
    operation: &str,
    samples: &mut [u64],
    batch: u64,
    total: Duration,
    client: Option<f64>,
    server: Option<f64>,
) -> Result<()> {
    let number = |value: Option<f64>| value.map_or("null".to_owned(), |value| format!("{value:.3}"));
    let count = samples.len();
    let mut line = format!(
        "{{\"operation\":\"{operation}\",\"calls\":{},\"total_ns\":{},\"client_cpu_us\":{},\"server_cpu_us\":{},\"blocks_ps\":[",
        count as u64 * batch,
        total.as_nanos(),
        number(client),
        number(server)
    );
    // Medians of consecutive blocks: they tell a drift from a difference.
    let blocks = count.min(20);
    for block in 0..blocks {
        let mut part = samples[count * block / blocks..count * (block + 1) / blocks].to_vec();
        part.sort_unstable();
        write!(line, "{}{}", if block > 0 { "," } else { "" }, part[part.len() / 2])?;
    }
    line.push_str("],\"histogram_ps\":[");
    samples.sort_unstable();
    for (i, same) in samples.chunk_by(|a, b| a == b).enumerate() {
        write!(line, "{}[{},{}]", if i > 0 { "," } else { "" }, same[0], same.len() as u64 * batch)?;
    }
    println!("{line}]}}");
    Ok(())
}

/// CPU time of a process, all of its threads, user and system; of this one without an id.
fn cpu_us(pid: Option<i32>) -> Option<f64> {
    let mut clock = libc::CLOCK_PROCESS_CPUTIME_ID;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointers are to local variables.
    let known = unsafe {
        pid.is_none_or(|pid| libc::clock_getcpuclockid(pid, &mut clock) == 0) && libc::clock_gettime(clock, &mut time) == 0
    };
    known.then_some(time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3)
}
