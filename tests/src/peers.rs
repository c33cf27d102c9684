//! Real peers: where they are, what to do when they are not (see [`everywire_peers`]), and what their processes take.

use std::path::PathBuf;
use std::process::Command;

pub use everywire_peers::{cached, find, free_port, here, skip};

/// The root of the project.
#[must_use]
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().map(PathBuf::from).unwrap_or_default()
}

/// Runs a command to its end and returns its standard output.
///
/// # Panics
/// When it cannot be started or fails: the test needs it.
#[must_use]
pub fn output(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        done.status.success(),
        "{command:?} ended with {}:\n{}\n{}",
        done.status,
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// How many descriptors this process may hold; raised to what the system allows.
#[must_use]
pub fn descriptor_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls get a pointer to a live struct of the right type.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
    }
    limit.rlim_cur
}

/// The most memory a process has held, in bytes.
#[must_use]
pub fn peak(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// How long the threads of a process have run, in nanoseconds, and how many times the system had one of them run.
///
/// # Panics
/// When the process is gone, or the system does not count.
#[must_use]
pub fn scheduled(pid: u32) -> (u64, u64) {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    threads.flatten().fold((0, 0), |(time, times), thread| {
        // A thread that ends meanwhile does not count.
        let text = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        let mut numbers = text.split_whitespace().map(|number| number.parse::<u64>().expect("a number"));
        (time + numbers.next().unwrap_or_default(), times + numbers.nth(1).unwrap_or_default())
    })
}
