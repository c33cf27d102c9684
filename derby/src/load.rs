//! Who else used the CPUs while the races ran: figures of a busy machine are to be known as such.
//!
//! While a client runs, the kernel's account of all CPUs (`/proc/stat`) is compared with the CPU time of the client, of its
//! server, of what routes between them, and of the coordinator. What is left was used by somebody else, or was not given to this
//! machine at all (`steal`). Time in interrupts belongs to nobody and is not counted.

use crate::measure::cpu_us;
use serde::Serialize;
use std::time::{Duration, Instant};

/// If others used more than this share of all CPUs, the report warns that its figures are not to be
/// quoted.
const QUIET: f64 = 0.05;

/// What others did while the races ran.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Load {
    /// CPUs that others kept busy, on average.
    pub others_cpus: f64,
    /// The same as a share of the CPUs of the machine.
    pub others_share: f64,
    /// Whether that is so much that the figures suffer.
    pub busy: bool,
    /// The sentence that stands on top of the report; none on a quiet machine.
    pub warning: Option<String>,
}

/// The sums over all clients so far. Only the time in which a client ran is in it: what others do while
/// servers start or programs are built disturbs nobody.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// How long clients ran.
    wall: Duration,
    /// CPU time that neither client, server, hop nor coordinator used in that time, in microseconds.
    others_us: f64,
}

/// The counters when a client starts. A counter that cannot be read is `None`, and that client is then
/// not accounted.
pub(crate) struct StartCounters {
    at: Instant,
    all_us: Option<f64>,
    own_us: Option<f64>,
}

impl Account {
    /// A client starts; `servers` are the processes that it will keep busy.
    pub(crate) fn begin(servers: &[u32]) -> StartCounters {
        StartCounters { at: Instant::now(), all_us: used(), own_us: own(servers) }
    }

    /// It has ended, and was waited for: only then its CPU time is among that of this process's
    /// children. `servers` are the same as at the beginning.
    pub(crate) fn end(&mut self, before: &StartCounters, servers: &[u32]) {
        let between = |before: Option<f64>, after: Option<f64>| Some(after? - before?);
        let all = between(before.all_us, used());
        let own = between(before.own_us, own(servers));
        if let (Some(all), Some(own)) = (all, own) {
            self.add(before.at.elapsed(), all, own);
        }
    }

    /// Adds one client: how long it ran, what all programs used, and what the derby's own used.
    fn add(&mut self, wall: Duration, all_us: f64, own_us: f64) {
        self.wall += wall;
        // The two clocks tick differently: a single difference may be below zero, their sum is not far from the truth.
        self.others_us += all_us - own_us;
    }

    /// What the account says; `None` if nothing was accounted.
    pub(crate) fn close(&self, cpus: usize) -> Option<Load> {
        let wall_us = self.wall.as_secs_f64() * 1e6;
        if wall_us < 1.0 {
            return None;
        }
        #[allow(clippy::cast_precision_loss)]
        let cpus = cpus.max(1) as f64;
        let others_cpus = (self.others_us / wall_us).clamp(0.0, cpus);
        let others_share = others_cpus / cpus;
        let busy = others_share > QUIET;
        let warning = busy.then(|| {
            format!(
                "The machine was busy: other programs used {:.0} % of its CPUs while the races ran. These are no figures to quote; \
                 race again on a quiet machine.",
                others_share * 100.0
            )
        });
        Some(Load { others_cpus, others_share, busy, warning })
    }
}

/// CPU time that all programs of this machine have used since it started, or were kept from using by
/// its host, in microseconds. `None` where there is no `/proc`.
fn used() -> Option<f64> {
    used_of(&std::fs::read_to_string("/proc/stat").ok()?, ticks()?)
}

/// The first line of `/proc/stat` has ticks in user, nice, system, idle, iowait, irq, softirq, steal;
/// the fields after them are parts of the first two. Counted are fields 0 to 2 and 7.
#[allow(clippy::cast_precision_loss)]
fn used_of(stat: &str, ticks: f64) -> Option<f64> {
    let mut fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let mut sum = 0;
    for (at, field) in fields.by_ref().take(8).enumerate() {
        let field: u64 = field.parse().ok()?;
        if matches!(at, 0..=2 | 7) {
            sum += field;
        }
    }
    Some(sum as f64 * 1e6 / ticks)
}

/// Ticks a second, as `/proc/stat` counts.
#[allow(clippy::cast_precision_loss)]
fn ticks() -> Option<f64> {
    // SAFETY: the call takes a number.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    (ticks > 0).then_some(ticks as f64)
}

/// CPU time of the coordinator, of all children that were waited for, and of these processes, which
/// still run; in microseconds. `None` if one of them has ended meanwhile.
fn own(servers: &[u32]) -> Option<f64> {
    let clients = ended_us()?;
    let servers: Option<f64> = servers.iter().map(|&pid| cpu_us(Some(pid))).sum();
    Some(cpu_us(None)? + clients + servers?)
}

/// CPU time of children that were waited for, and of theirs.
#[allow(clippy::cast_precision_loss)]
fn ended_us() -> Option<f64> {
    // SAFETY: an rusage is plain numbers, for which zero is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a local variable.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) } != 0 {
        return None;
    }
    let us = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
    Some(us(usage.ru_utime) + us(usage.ru_stime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_account_is_read() {
        let stat = "cpu  100 20 30 4000 50 6 7 8 9 10\ncpu0 1 2 3 4\n";
        assert_eq!(used_of(stat, 100.0), Some((100.0 + 20.0 + 30.0 + 8.0) * 10_000.0));
        assert_eq!(used_of("cpu  a b\n", 100.0), None);
        assert_eq!(used_of("", 100.0), None);
        assert!(used().is_some_and(|us| us > 0.0));
    }

    #[test]
    fn a_busy_machine_is_told_and_a_quiet_one_is_not() {
        let account = |others_ms: f64| {
            let mut account = Account::default();
            for _ in 0..10 {
                account.add(Duration::from_millis(100), 150_000.0 + others_ms * 100.0, 150_000.0);
            }
            account.close(2).unwrap()
        };
        let quiet = account(50.0);
        assert!(!quiet.busy && quiet.warning.is_none(), "{quiet:?}");
        let busy = account(500.0);
        assert!(busy.busy && (busy.others_cpus - 0.5).abs() < 1e-9, "{busy:?}");
        assert!(
            busy.warning.as_deref().is_some_and(|text| text.contains("used 25 % of its CPUs")),
            "{busy:?}"
        );
        assert!(account(-20.0).others_share.abs() < 1e-9);
        assert!(Account::default().close(2).is_none());
    }

    #[test]
    fn own_work_is_nobody_elses() {
        let before = Account::begin(&[]);
        let mut child = std::process::Command::new("sh");
        let status =
            child.args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]).status().unwrap();
        assert!(status.success());
        let all = own(&[]).unwrap() - before.own_us.unwrap();
        // The loop takes far longer than the tick by which the kernel may count.
        assert!(all > 20_000.0, "{all}");
    }
}
