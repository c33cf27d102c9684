//! Real peers: where they are, and what to do when they are not.
//!
//! A peer that is not installed makes its tests skip, loudly and counted, on a user's machine; where `CI=true` it fails
//! them.

use std::path::PathBuf;
use std::process::Command;

/// The program, if it is on the search path.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|candidate| candidate.is_file())
}

/// Whether all of these programs are here. If not, says so on stderr in one countable line (`SKIPPED: ...`).
///
/// # Panics
/// Under `CI=true`, where every peer must be installed.
#[must_use]
pub fn here(test: &str, programs: &[&str], install: &str) -> bool {
    let missing: Vec<_> = programs.iter().filter(|program| find(program).is_none()).collect();
    if missing.is_empty() {
        return true;
    }
    let why = format!("SKIPPED: {test}: {missing:?} not found; install with: {install}");
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}");
    eprintln!("{why}");
    if let Ok(list) = std::env::var("EVERYWIRE_SKIPS") {
        use std::io::Write;
        if let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(list) {
            // The count is a service to the reader of the test run; the line above was printed anyway.
            let _ = writeln!(file, "{why}");
        }
    }
    false
}

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

/// Clock ticks of CPU that a process has used.
#[must_use]
pub fn cpu_ticks(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in parentheses may hold spaces; user and system time are the 12th and 13th field after it.
    let after = text.rsplit(')').next().unwrap_or("");
    after.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}
