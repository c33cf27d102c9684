//! Being asked to end: every child is killed, whoever waits for one returns, and nothing is started any more.
//!
//! States: *going on*, and *interrupted* by the first signal, for good.
//!
//! Invariants: the number of a child is in the list from its start until before the kernel may give the number to somebody
//! else, so that no stranger is ever killed. Whoever is interrupted starts nothing: the list only shrinks from then on.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The children of a derby, and whether it was asked to end. One lock guards both, so that no child can
/// start between the signal and the killing. It is never held while somebody waits for a child.
pub(crate) struct Interruption(Mutex<State>);

struct State {
    /// The first signal that came.
    signal: Option<i32>,
    /// Their numbers, which are those of their process groups, too; from their start until they are
    /// reaped.
    children: Vec<u32>,
}

/// The one of this process; others exist only in tests.
pub(crate) static HERE: Interruption = Interruption::new();

/// Ends the derby of this process, because of this signal: its children are killed, and `run` soon
/// returns with what it has found out until then. It takes a lock and so is not to be called from a
/// handler of signals, but from a thread that waits for them.
pub fn interrupt(signal: i32) {
    HERE.interrupt(signal);
}

/// The signal that interrupted the derby of this process.
#[must_use]
pub fn interrupted() -> Option<i32> {
    HERE.signal()
}

impl Interruption {
    const fn new() -> Self {
        Self(Mutex::new(State { signal: None, children: Vec::new() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first signal is kept; children are killed again at each further one.
    fn interrupt(&self, signal: i32) {
        let mut state = self.state();
        state.signal.get_or_insert(signal);
        for child in &state.children {
            kill_group(*child);
        }
    }

    fn signal(&self) -> Option<i32> {
        self.state().signal
    }

    /// Starts a child, the first of a process group: a signal that the terminal sends to everybody in the foreground comes
    /// to the coordinator alone, which knows what is to be said about it.
    ///
    /// # Errors
    /// It cannot be started, or the derby was interrupted.
    pub(crate) fn start(&self, command: &mut Command) -> io::Result<Child> {
        let mut state = self.state();
        if state.signal.is_some() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "the derby was interrupted"));
        }
        let child = command.process_group(0).spawn()?;
        state.children.push(child.id());
        Ok(child)
    }

    /// Waits until a child has ended, and gives its number back to the kernel. Between the two steps
    /// the child leaves the list, under the lock: from then on nobody kills that number.
    ///
    /// # Errors
    /// As of `Child::wait`.
    pub(crate) fn reap(&self, child: &mut Child) -> io::Result<ExitStatus> {
        let id = child.id();
        has_ended(id, 0);
        let mut state = self.state();
        state.children.retain(|other| *other != id);
        child.wait()
    }

    /// Kills a child and whatever it started that stayed in its process group, unless it has been reaped.
    pub(crate) fn kill(&self, child: u32) {
        let state = self.state();
        if state.children.contains(&child) {
            kill_group(child);
        }
    }

    /// How a child ended; `None` while it runs. One that has ended is reaped.
    pub(crate) fn ended(&self, child: &mut Child) -> Option<ExitStatus> {
        if has_ended(child.id(), libc::WNOHANG) { self.reap(child).ok() } else { None }
    }
}

/// Looks whether a child has ended (`WNOHANG`), or waits for that (0), and leaves it unreaped: until it
/// leaves the list its number stays its own. True also if it was reaped before.
fn has_ended(child: u32, how: i32) -> bool {
    loop {
        // SAFETY: a siginfo_t is plain numbers, for which zero is valid.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a local variable.
        let asked =
            unsafe { libc::waitid(libc::P_PID, child, &raw mut info, libc::WEXITED | libc::WNOWAIT | how) };
        if asked == 0 {
            // SAFETY: the call has filled it in, or left it zero if the child still runs.
            return unsafe { info.si_pid() } != 0;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            // Reaped before.
            return true;
        }
    }
}

/// Kills a child and whatever it started that stayed in its process group, whose number is that of the
/// child.
fn kill_group(child: u32) {
    if let Ok(group) = i32::try_from(child)
        && group > 1
    {
        // SAFETY: the call takes two numbers. It fails only if all of them have ended.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn who_waits_for_a_child_returns_and_nothing_is_started_any_more() {
        let here = Interruption::new();
        let mut child = here.start(Command::new("sleep").arg("600")).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| here.reap(&mut child));
            here.interrupt(libc::SIGTERM);
            assert_eq!(waiting.join().unwrap().unwrap().signal(), Some(libc::SIGKILL));
        });
        // The first signal is the one that counts.
        here.interrupt(libc::SIGINT);
        assert_eq!(here.signal(), Some(libc::SIGTERM));
        let refused = here.start(&mut Command::new("true")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn who_has_ended_is_forgotten() {
        let here = Interruption::new();
        let mut child = here.start(&mut Command::new("true")).unwrap();
        assert!(here.reap(&mut child).unwrap().success());
        assert!(here.state().children.is_empty());
    }

    #[test]
    fn grandchildren_end_too() {
        let here = Interruption::new();
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 600 & echo $!; wait"]).stdout(std::process::Stdio::piped());
        let mut child = here.start(&mut shell).unwrap();
        let mut line = String::new();
        let mut output = io::BufReader::new(child.stdout.take().unwrap());
        io::BufRead::read_line(&mut output, &mut line).unwrap();
        here.interrupt(libc::SIGINT);
        here.reap(&mut child).unwrap();
        // The pipe closes when the last of them has ended: both hold its other end.
        assert_eq!(io::Read::read_to_end(&mut output, &mut Vec::new()).unwrap(), 0);
        assert!(line.trim().parse::<u32>().is_ok());
    }
}
