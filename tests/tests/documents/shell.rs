//! One shell, in which commands are run one after the other as a reader would.
//!
//! The shell reads a line, runs it, and prints a mark with its exit code. What programs in the background print comes in between, as it does in
//! a terminal; a program that writes a line in several pieces may have a mark in the middle of it. A command that goes on becomes a job of the
//! shell; all jobs are ended with it.

use crate::common::foreign::PATIENCE;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Stands before the exit code of a command.
const MARK: &str = "@@ended ";
/// Stands before the process of a job.
const JOB: &str = "@@job ";
/// Where Debian has its programs; what setup or this project built is in none of them.
const SYSTEM: &str = "/usr/bin:/bin:/usr/sbin:/sbin";
/// How often it is looked whether a job has ended.
const GLANCE: Duration = Duration::from_millis(50);
/// What the shell does.
const READS: &str = r#"exec 2>&1
while IFS= read -r line; do eval "$line" </dev/null; echo "@@ended $?"; done
kill $(jobs -p) 2>/dev/null; wait"#;

/// The shell.
pub(super) struct Shell {
    child: Child,
    bus: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    printed: Vec<String>,
    /// The beginning of a line whose rest comes behind a mark.
    begun: String,
    /// Commands that go on, and their processes.
    jobs: Vec<(String, String)>,
}

impl Shell {
    /// In the directory `here` of this one, with its `bin` and the system's folders on the path, its `home` for a home, and nothing else of the
    /// environment.
    pub(super) fn start(dir: &Path) -> Self {
        let address = format!("unix:path={}", dir.join("bus").display());
        let mut bus = Command::new("dbus-daemon");
        bus.args(["--session", "--nofork", "--print-address=1", &format!("--address={address}")]);
        let mut bus = bus.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a bus");
        // It listens once it has said where.
        let said = bus.stdout.take().expect("piped");
        BufReader::new(said).read_line(&mut String::new()).expect("its address");
        let mut child = Command::new("bash")
            .args(["--norc", "--noprofile", "-c", READS])
            .current_dir(dir.join("here"))
            // Nothing of whoever runs the test: what a login gives, the installed program, and the tools of the system.
            .env_clear()
            .env("PATH", format!("{}:{SYSTEM}", dir.join("bin").display()))
            .env("HOME", dir.join("home"))
            .env("LANG", "C.UTF-8")
            .env("XDG_RUNTIME_DIR", dir.join("run"))
            .env("DBUS_SESSION_BUS_ADDRESS", &address)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash");
        let (tell, lines) = channel();
        let out = BufReader::new(child.stdout.take().expect("piped"));
        std::thread::spawn(move || {
            for line in out.split(b'\n').map_while(Result::ok) {
                // The test may be over.
                let _ = tell.send(String::from_utf8_lossy(&line).into_owned());
            }
        });
        let input = child.stdin.take();
        Self { child, bus, input, lines, printed: Vec::new(), begun: String::new(), jobs: Vec::new() }
    }

    /// Runs a command to its end; its exit code.
    pub(super) fn run(&mut self, command: &str) -> Result<i32, String> {
        self.say(command);
        let end = self.until(|line| line.starts_with(MARK), None)?;
        end.trim_start_matches(MARK).parse().map_err(|_| format!("the shell says {end}"))
    }

    /// Starts a command that goes on, and waits until it has said so.
    pub(super) fn stays(&mut self, command: &str, ready: &str) -> Result<(), String> {
        self.run(&format!("{command} &"))?;
        self.say("echo \"@@job $!\"");
        let job = self.until(|line| line.starts_with(JOB), None)?;
        // The end of that line, too: the next command would take it for its own where the job has said all by now.
        self.until(|line| line.starts_with(MARK), None)?;
        let job = job.trim_start_matches(JOB).to_owned();
        self.jobs.push((command.to_owned(), job.clone()));
        let heard = self.printed.iter().any(|line| line.contains(ready));
        if heard { Ok(()) } else { self.until(|line| line.contains(ready), Some(&job)).map(drop) }
    }

    /// Ends what goes on and has this in its command.
    pub(super) fn end(&mut self, part: &str) {
        let (ended, rest): (Vec<_>, Vec<_>) =
            self.jobs.drain(..).partition(|(command, _)| command.contains(part));
        self.jobs = rest;
        for (_, job) in ended {
            let _ = self.run(&format!("kill {job}; wait {job}"));
        }
    }

    /// What was printed since this was asked last.
    pub(super) fn printed(&mut self) -> Vec<String> {
        std::mem::take(&mut self.printed)
    }

    /// The last lines, for messages.
    pub(super) fn last(&self) -> String {
        let from = self.printed.len().saturating_sub(6);
        self.printed.get(from..).unwrap_or_default().join("\n    ")
    }

    fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it is open");
        writeln!(input, "{line}").expect("the shell reads");
    }

    /// The next line that is it, unless this job ends before.
    fn until(&mut self, is_it: impl Fn(&str) -> bool, job: Option<&str>) -> Result<String, String> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let ended = job.is_some_and(has_ended);
            let Ok(mut line) = self.lines.recv_timeout(GLANCE) else {
                if ended {
                    return Err(format!("it ended: {}", self.last()));
                }
                continue;
            };
            match line.find(MARK).or_else(|| line.find(JOB)) {
                Some(at) => self.begun.extend(line.drain(..at)),
                None => line.insert_str(0, &std::mem::take(&mut self.begun)),
            }
            if line.starts_with(MARK) || line.starts_with(JOB) {
                if is_it(&line) {
                    return Ok(line);
                }
                continue;
            }
            self.printed.push(line.clone());
            if is_it(&line) {
                return Ok(line);
            }
        }
        Err(format!("in vain; it said {}", self.last()))
    }
}

/// Whether a process is gone, or has ended and nobody has asked how.
fn has_ended(pid: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state stands behind the name in parentheses.
    state.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
}

impl Drop for Shell {
    fn drop(&mut self) {
        // It ends its jobs when nothing more is to be read.
        drop(self.input.take());
        let _ = self.child.wait();
        let _ = self.bus.kill();
        let _ = self.bus.wait();
    }
}
