//! The machine and the versions: figures without them say nothing.
//!
//! Read once, when the derby begins, from files of the kernel and the distribution. What cannot be read
//! is empty, `unknown` or `None`, and never an error: a report without a governor is still a report.

use serde::Serialize;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// What the races ran on.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Machine {
    /// Model of the CPU.
    pub cpu: String,
    /// CPUs that the derby may use.
    pub cpus: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Whether it is a virtual machine, which makes wake-ups dear. Told by the flag `hypervisor`, which
    /// only x86 has.
    pub virtual_machine: bool,
    /// The kernel.
    pub kernel: String,
    /// The distribution.
    pub system: String,
    /// Frequency governor of the first CPU; `None` where there is none, as in most virtual machines.
    pub governor: Option<String>,
    /// Load of the last minute when the derby began.
    pub load: Option<f64>,
    /// When the derby began, in UTC.
    pub date: String,
    /// Version of this program.
    pub everywire: &'static str,
    /// `release` or `debug`.
    pub build: &'static str,
}

impl Machine {
    /// This one, now.
    pub fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let memory: u64 = field(&read("/proc/meminfo"), "MemTotal")
            .and_then(|value| value.split_whitespace().next()?.parse().ok())
            .unwrap_or(0);
        let release = read("/etc/os-release");
        let system = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).unwrap_or("unknown");
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        Self {
            cpu: field(&cpuinfo, "model name")
                .or_else(|| field(&cpuinfo, "Model"))
                .unwrap_or("unknown")
                .to_owned(),
            cpus: crate::placement::allowed_cpus().len(),
            memory_mib: memory / 1024,
            virtual_machine: field(&cpuinfo, "flags")
                .is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor")),
            kernel: format!("Linux {} {}", read("/proc/sys/kernel/osrelease").trim(), std::env::consts::ARCH),
            system: system.trim_matches('"').to_owned(),
            governor: Some(governor.trim().to_owned()).filter(|text| !text.is_empty()),
            load: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()),
            date: date(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())),
            everywire: env!("CARGO_PKG_VERSION"),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
        }
    }
}

/// The value of the first line `name : value` in a file of `/proc`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    })
}

/// `2026-01-31 12:00 UTC` of seconds since 1970, by the Gregorian calendar.
fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970;
    let mut day = days;
    let length = |year: u64| {
        if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) {
            366
        } else {
            365
        }
    };
    while day >= length(year) {
        day -= length(year);
        year += 1;
    }
    // The other eleven months have 337 days together.
    let february = length(year) - 337;
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    format!("{year}-{month:02}-{:02} {:02}:{:02} UTC", day + 1, rest / 3600, rest % 3600 / 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_798_761_599), "2026-12-31 23:59 UTC");
    }

    #[test]
    fn this_machine_is_known() {
        let machine = Machine::this();
        assert!(machine.cpus > 0 && machine.memory_mib > 0 && machine.kernel.starts_with("Linux "));
    }
}
