//! Waiting without hanging, and what a test process holds and spends.

use rustix::time::{ClockId, clock_gettime};
use std::process::Command;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// After this long it hangs.
pub const LONG: Duration = Duration::from_secs(300);
/// A deadline that is to pass, though not before its call has reached the peer: a busy machine may take seconds for that.
pub const SHORT: Duration = Duration::from_secs(5);

/// Waits until it is so.
#[track_caller]
pub fn until(what: &str, mut check: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !check() {
        assert!(begun.elapsed() < LONG, "still not: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until all other threads of this process sleep, and have not run between two looks: nothing goes on before something new comes. For
/// a process that is [`alone`].
#[track_caller]
pub fn until_all_sleep() {
    let mut before = None;
    until("all threads sleep", || {
        let now = switches();
        now.is_some() && now == std::mem::replace(&mut before, now)
    });
}

/// How often the other threads of this process were given a CPU and gave it up; nothing, if one of them runs or waits for a CPU.
fn switches() -> Option<u64> {
    let own = rustix::thread::gettid().as_raw_nonzero().to_string();
    let mut all = 0;
    for thread in std::fs::read_dir("/proc/self/task").unwrap() {
        let thread = thread.unwrap();
        if thread.file_name() == *own {
            continue;
        }
        // One that has ended meanwhile is looked for in vain the next time, too.
        let status = std::fs::read_to_string(thread.path().join("status")).ok()?;
        let value = |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        if !value("State:").starts_with('S') {
            return None;
        }
        let counts = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"];
        all += counts.into_iter().map(|name| value(name).parse::<u64>().unwrap()).sum::<u64>();
    }
    Some(all)
}

/// Whether the test has this process for itself, as a test has that measures what the process holds or spends. If not, the test
/// runs to its end in a process of its own now, and the caller returns. `cargo nextest` gives each test a process anyway.
pub fn alone() -> bool {
    const MARK: &str = "EVERYWIRE_TEST_ALONE";
    if [MARK, "NEXTEST"].iter().any(|name| std::env::var_os(name).is_some()) {
        return true;
    }
    let thread = std::thread::current();
    let test = thread.name().unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    let output = again.args(["--exact", test, "--nocapture"]).env(MARK, test).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{test}: {}\n{out}\n{err}", output.status);
    false
}

/// CPU time of this process so far.
pub fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// Descriptors that this process holds.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// What a future comes to; `None` if that takes too long.
pub fn block_on<F: Future>(future: F) -> Option<F::Output> {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    let begun = Instant::now();
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
        let rest = LONG.checked_sub(begun.elapsed())?;
        std::thread::park_timeout(rest);
    }
}
