//! Whether a program that was just started waits for something, as one does that has begun well.
//!
//! A program says nothing when it is ready: its protocol has no word for that. But before it reads its input it runs, and when it
//! waits for a call all its threads sleep, and those of its children. So its processes are looked at (`/proc`, proc(5)) until they
//! sleep, or until it has ended. On a busy machine a thread that waits for a processor does not sleep, so it makes no difference.
//!
//! Invariants: nobody is kept for ever. A program that goes on computing is taken for one that has begun well once it used `CPU`.

use std::fs;
use std::thread;
use std::time::Duration;

/// How much of a processor a program may use before it counts as begun, in ticks of the kernel (100 a second).
const CPU: u64 = 100;
/// How often its processes are looked at, and how many times at the most: one whose disk hangs neither runs nor sleeps.
const LOOK: Duration = Duration::from_millis(2);
const LOOKS: u32 = 15_000;
/// Processes of one program that are looked at.
const PROCESSES: usize = 64;

/// What the threads of a program are at.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sight {
    /// Of each thread: its number, and how often it has given up its processor by itself and not.
    threads: Vec<(u32, String)>,
    asleep: bool,
    /// Ticks that its processes have used.
    used: u64,
}

/// Waits until all threads of this process and of its children sleep, or it has used much of a processor, or `over` says so.
pub(super) fn wait(process: u32, over: impl Fn() -> bool) {
    let mut before = Sight::default();
    for _ in 0..LOOKS {
        if over() {
            return;
        }
        let now = look(process);
        // Who sleeps in two looks and did not run between them waits for something.
        if (now.asleep && now == before) || now.used >= CPU {
            return;
        }
        before = now;
        thread::sleep(LOOK);
    }
}

/// Looks at a process and at those that it has started.
fn look(process: u32) -> Sight {
    let mut sight = Sight { asleep: true, ..Sight::default() };
    let mut open = vec![process];
    let mut seen = 0;
    while let Some(process) = open.pop() {
        seen += 1;
        if seen > PROCESSES {
            break;
        }
        sight.used += used(process);
        let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
        for thread in threads.flatten() {
            let Some(number) = thread.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let path = thread.path();
            let status = fs::read_to_string(path.join("status")).unwrap_or_default();
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap_or_default().trim_start_matches(':').trim()
            };
            sight.asleep &= field("State").starts_with('S');
            let switches = [field("voluntary_ctxt_switches"), field("nonvoluntary_ctxt_switches")].join(" ");
            sight.threads.push((number, switches));
            let children = fs::read_to_string(path.join("children")).unwrap_or_default();
            open.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    sight.asleep &= !sight.threads.is_empty();
    sight
}

/// The ticks that a process has used: `utime` and `stime` of `/proc/PID/stat`.
fn used(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name is in parentheses and may have any characters; the state follows it.
    let Some((_, fields)) = stat.rsplit_once(')') else { return 0 };
    fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    fn shell(command: &str) -> Child {
        Command::new("/bin/sh").args(["-c", command]).stdin(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn a_program_that_waits_has_begun_and_one_that_computes_has_not() {
        assert!(!look(std::process::id()).asleep, "this one runs");
        let mut reader = shell("cat; true");
        wait(reader.id(), || false);
        let sight = look(reader.id());
        // The shell, and its child.
        assert!(sight.asleep && sight.threads.len() == 2, "{sight:?}");
        drop(reader.stdin.take());
        reader.wait().unwrap();
        let mut busy = shell("while :; do :; done");
        let looks = std::cell::Cell::new(0);
        wait(busy.id(), || {
            looks.set(looks.get() + 1);
            false
        });
        // Where it hardly gets a processor, the looks end first.
        assert!(used(busy.id()) >= CPU || looks.get() == LOOKS, "after {} looks", looks.get());
        busy.kill().unwrap();
        busy.wait().unwrap();
    }

    #[test]
    fn a_program_that_has_ended_is_waited_for_until_that_is_known() {
        let mut ended = shell("exit 3");
        let looks = std::cell::Cell::new(0);
        wait(ended.id(), || {
            looks.set(looks.get() + 1);
            looks.get() == 50
        });
        assert_eq!(looks.get(), 50, "a process without threads does not sleep");
        ended.wait().unwrap();
    }
}
