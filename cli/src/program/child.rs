//! A program with pipes: started by the shell, read line by line, written to from a queue, and ended.
//!
//! States of a program: it *runs*; it *has closed its output*, which says that it is over, and may run on; it *has ended*, and its
//! status is known.
//!
//! Invariants: nobody waits for a program without a limit, since it may close its output and not end. The queue is the only way to
//! its input, which is closed when the queue is.

use super::pending::lock;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

/// Lines that may wait for a program to read them.
pub(crate) const QUEUE: usize = 1024;
/// How long a program may take to end once its input is closed.
pub(crate) const FAREWELL: Duration = Duration::from_secs(2);
/// How long a program may take to end once it closed its output. It mostly closed it by ending, and how it ended is told: so it is
/// longer than a busy machine keeps a process from coming to its end.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// What the shell is given. A single program takes the shell's place (`exec`), so that it is what is
/// ended by a signal; of several commands none can.
fn line(command: &str) -> String {
    let several = command.contains(['&', '|', ';', '\n', '(', '{']);
    // `NAME=VALUE program`: what takes the shell's place is no assignment.
    let assigns = command.split_whitespace().next().is_some_and(|word| word.contains('='));
    if several || assigns { command.to_owned() } else { format!("exec {command}") }
}

/// Starts a command line of the shell.
///
/// # Errors
/// The shell cannot be started. That it does not find the program shows in its status.
pub(crate) fn start(command: &str) -> io::Result<(Child, ChildStdin, ChildStdout)> {
    let mut child = Command::new("/bin/sh")
        .arg("-c")
        .arg(line(command))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    match (child.stdin.take(), child.stdout.take()) {
        (Some(input), Some(output)) => Ok((child, input, output)),
        _ => Err(io::Error::other("its input and output are not connected")),
    }
}

/// Starts a thread of this name.
///
/// # Errors
/// There can be no more threads.
pub(crate) fn on_a_thread(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(run).map(drop)
}

/// Writes what the program is to read, until nobody has more, or it reads no more.
pub(crate) fn feed(mut input: ChildStdin, lines: &Receiver<impl AsRef<[u8]>>) {
    while let Ok(line) = lines.recv()
        && input.write_all(line.as_ref()).and_then(|()| input.flush()).is_ok()
    {}
}

/// Reads the program's lines to their end. Empty ones are passed over.
pub(crate) fn each_line(output: ChildStdout, mut take: impl FnMut(&[u8])) {
    let mut lines = BufReader::new(output);
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line.trim_ascii().is_empty() => {}
            Ok(_) => take(line.trim_ascii()),
        }
    }
}

/// Waits for the end of a program, kills it after this time, and says how it ended.
///
/// # Errors
/// As of `Child::wait`.
pub(crate) fn end(child: &Mutex<Child>, within: Duration) -> io::Result<ExitStatus> {
    let until = Instant::now() + within;
    while matches!(lock(child).try_wait(), Ok(None)) && Instant::now() < until {
        thread::sleep(Duration::from_millis(2));
    }
    kill(child);
    lock(child).wait()
}

/// Kills a program, if it still runs.
pub(crate) fn kill(child: &Mutex<Child>) {
    let mut child = lock(child);
    // One that has ended cannot be killed, and need not be.
    if matches!(child.try_wait(), Ok(None)) {
        let _ = child.kill();
    }
}
