//! Children: started on a CPU, bounded in time, and never alive after the coordinator.
//!
//! A `Launch` says what to start, a `ProcessPlacement` where. Three ways lead from there: `ChildGuard` is a server
//! that stays until it is dropped; `complete` runs a client to its end and returns its standard output;
//! `output` runs a program of this machine, such as a compiler.
//!
//! States of a child: *started*, *ended* (its status can be asked for, its number is still its own),
//! *reaped*. The list of children that are not reaped, and whether any may be started, is in
//! `interruption`.
//!
//! Invariants: every child has a signal that kills it when the thread that started it ends
//! (`end_with`), so no child outlives the derby, even if the derby is killed. Descriptors are closed in
//! children unless they are handed on purpose. Whatever is waited for has a limit of time. Standard
//! error goes to a file, so that a failure can quote it.

use crate::broken;
use crate::interruption::HERE;
use crate::placement::only;
use everywire_model::Failure;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// The hidden command of the `everywire` program that leads to `child::main`: most children are this
/// program again, so that nothing else need be installed.
pub const COMMAND: &str = "derby-child";

/// A program, its arguments, and what it inherits.
#[derive(Debug, Clone)]
pub struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// Variables in addition to those of this process.
    environment: Vec<(OsString, OsString)>,
    /// Descriptors that the program keeps, under the same numbers. They are not owned: whoever hands
    /// them keeps them open until the program runs.
    handed: Vec<RawFd>,
}

/// Where a program runs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProcessPlacement {
    /// On which CPU; `None`: wherever the kernel likes.
    pub(crate) cpu: Option<usize>,
    /// In which user namespace and network namespace, as descriptors that stay open until it runs;
    /// `None`: in those of this process. Without a user namespace this process must be allowed to enter
    /// the other.
    pub(crate) net: Option<(Option<RawFd>, RawFd)>,
}

impl From<Option<usize>> for ProcessPlacement {
    fn from(cpu: Option<usize>) -> Self {
        Self { cpu, net: None }
    }
}

impl Launch {
    /// A program without arguments.
    pub(crate) fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), arguments: Vec::new(), environment: Vec::new(), handed: Vec::new() }
    }

    /// This program as a child of the derby of this kind, see `child::main`.
    ///
    /// # Errors
    /// The file of this program cannot be found.
    pub(crate) fn own(kind: &str) -> Result<Self, Failure> {
        let program =
            std::env::current_exe().map_err(|error| broken(format!("this program's own file: {error}")))?;
        Ok(Self::new(program).with([COMMAND, kind]))
    }

    /// As started by another program (such as a virtual machine or a counter of instructions), which is
    /// given these arguments and then the program with its own.
    #[must_use]
    pub(crate) fn by<A: Into<OsString>>(
        self,
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let mut all: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        all.push(self.program.into_os_string());
        all.extend(self.arguments);
        Self { program: program.into(), arguments: all, ..self }
    }

    /// With more arguments.
    #[must_use]
    pub(crate) fn with<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// With a variable in its environment.
    #[must_use]
    pub(crate) fn where_is(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// With a descriptor that it keeps, under the same number; it must stay open until the program runs.
    #[must_use]
    pub(crate) fn handing(mut self, descriptor: &impl AsRawFd) -> Self {
        self.handed.push(descriptor.as_raw_fd());
        self
    }

    /// As a command, for whoever sets its pipes. What is said here happens in the child between fork
    /// and exec: a failure there is an error of `spawn`.
    pub(crate) fn command(&self, spot: &ProcessPlacement) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let handed = self.handed.clone();
        let net = spot.net;
        let set = spot.cpu.map(only);
        let parent = std::process::id();
        // SAFETY: between fork and exec the closure only makes system calls on values it owns, and allocates nothing.
        unsafe {
            command.pre_exec(move || {
                // First: who enters a user namespace gets new credentials, which forget the signal below.
                if let Some((user, net)) = net
                    && (user.is_some_and(|user| libc::setns(user, libc::CLONE_NEWUSER) != 0)
                        || libc::setns(net, libc::CLONE_NEWNET) != 0)
                {
                    return Err(std::io::Error::last_os_error());
                }
                end_with(parent)?;
                for descriptor in &handed {
                    if libc::fcntl(*descriptor, libc::F_SETFD, 0) != 0 {
                        return Err(std::io::Error::last_os_error());
                    }
                }
                // Last: the CPU is inherited by all that the program starts.
                if let Some(set) = &set
                    && libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) != 0
                {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        command
    }
}

/// Has the kernel kill this process when the thread that started it ends, however that does. Entering
/// or making a user namespace gives new credentials, which forget this: whoever does that calls this
/// again, afterwards.
///
/// # Errors
/// The parent is no longer `parent`: it has died before the signal was set.
pub(crate) fn end_with(parent: u32) -> std::io::Result<()> {
    // SAFETY: both calls only take and give numbers.
    let (set, now) = unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid()) };
    if set != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // The parent may have died before it was set.
    if u32::try_from(now) != Ok(parent) {
        return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

/// When what is built now has to be done with; `None`: whenever. One for the process, since one
/// contestant is built at a time.
static BUILD_UNTIL: Mutex<Option<Instant>> = Mutex::new(None);

/// From now on a program that builds something, see `output`, is killed at this moment, with its
/// process group.
pub(crate) fn build_until(end: Option<Instant>) {
    *BUILD_UNTIL.lock().unwrap_or_else(PoisonError::into_inner) = end;
}

/// Runs a program of this machine to its end, such as a compiler, and returns what it wrote. It ends
/// with this process; when the derby is interrupted, or at the moment of `build_until`, so does all
/// that it started and that stayed in its process group.
///
/// # Errors
/// It cannot be started, the derby was interrupted, or its time was over. A status other than 0 is no
/// error here: the caller looks at it.
pub(crate) fn output(mut command: Command) -> std::io::Result<Output> {
    let parent = std::process::id();
    // SAFETY: between fork and exec the closure only makes system calls on numbers.
    unsafe { command.pre_exec(move || end_with(parent)) };
    // No pipes: what it leaves running in the background, as Wine does, holds their ends for minutes.
    let (mut said, mut complained) = (memory()?, memory()?);
    command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(complained.try_clone()?);
    let mut child = HERE.start(&mut command)?;
    let end = *BUILD_UNTIL.lock().unwrap_or_else(PoisonError::into_inner);
    let (done, wait) = mpsc::channel::<()>();
    let id = child.id();
    let status = thread::scope(|scope| {
        // A second thread kills it at the end of the time; it ends as soon as `done` is dropped.
        if let Some(end) = end {
            let left = end.saturating_duration_since(Instant::now());
            scope.spawn(move || {
                if wait.recv_timeout(left) == Err(mpsc::RecvTimeoutError::Timeout) {
                    HERE.kill(id);
                }
            });
        }
        let status = HERE.reap(&mut child);
        drop(done);
        status
    })?;
    if crate::interrupted().is_some() {
        return Err(std::io::Error::new(std::io::ErrorKind::Interrupted, "the derby was interrupted"));
    }
    if end.is_some_and(|end| Instant::now() >= end) && !status.success() {
        return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "the time of the derby was over"));
    }
    let text = |file: &mut File| -> std::io::Result<Vec<u8>> {
        file.rewind()?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        Ok(text)
    };
    Ok(Output { status, stdout: text(&mut said)?, stderr: text(&mut complained)? })
}

/// A file without a name, in memory, which is closed in children unless it becomes their standard
/// output.
fn memory() -> std::io::Result<File> {
    // SAFETY: the name is a constant C string; the call returns a new descriptor or -1.
    let descriptor = unsafe { libc::memfd_create(c"output".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made, and nobody else owns it.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// A child that is killed when this is dropped. What it has started itself is not: a program that
/// leaves helpers behind has to end them.
pub(crate) struct ChildGuard {
    child: Child,
    /// What failures call it; also the stem of its file of errors.
    name: String,
    /// The file with its standard error.
    errors: PathBuf,
}

impl ChildGuard {
    /// Starts a server, and returns at once; its standard output is thrown away. `await_file` or
    /// `await_port` tells when it is ready.
    ///
    /// # Errors
    /// It cannot be started, or its file of errors cannot be made.
    pub(crate) fn start(
        launch: &Launch,
        spot: &ProcessPlacement,
        dir: &Path,
        name: &str,
    ) -> Result<Self, Failure> {
        Self::spawn(launch, spot, dir, name, Stdio::null())
    }

    /// Starts a server, and waits until it has written a line to standard output, `limit` at the most.
    /// The line is returned without its end; nobody reads what comes after it.
    ///
    /// # Errors
    /// It cannot be started, or does not write a whole line in this time.
    pub(crate) fn start_and_hear(
        launch: &Launch,
        spot: &ProcessPlacement,
        dir: &Path,
        name: &str,
        limit: Duration,
    ) -> Result<(Self, String), Failure> {
        let mut running = Self::spawn(launch, spot, dir, name, Stdio::piped())?;
        let Some(output) = running.child.stdout.take() else { return Err(broken("a pipe is missing")) };
        let (done, wait) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(output).read_line(&mut line);
            // Nobody listens any more after the limit.
            let _ = done.send(read.map(|_| line));
        });
        match wait.recv_timeout(limit) {
            Ok(Ok(line)) if line.ends_with('\n') => Ok((running, line.trim_end().to_owned())),
            _ => Err(running.complaint("does not say where it is")),
        }
    }

    /// Starts it without standard input, with `output` as its standard output, in the list of
    /// `interruption`.
    fn spawn(
        launch: &Launch,
        spot: &ProcessPlacement,
        dir: &Path,
        name: &str,
        output: Stdio,
    ) -> Result<Self, Failure> {
        let errors = dir.join(format!("{name}.stderr"));
        let file = File::create(&errors).map_err(|error| broken(format!("{}: {error}", errors.display())))?;
        let mut command = launch.command(spot);
        let child =
            HERE.start(command.stdin(Stdio::null()).stdout(output).stderr(file)).map_err(|error| {
                broken(format!("{name}: {} cannot be started: {error}", launch.program.display()))
            })?;
        Ok(Self { child, name: name.to_owned(), errors })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `file` exists, whatever is in it.
    ///
    /// # Errors
    /// It ended before, or took longer than `limit`.
    pub(crate) fn await_file(&mut self, file: &Path, limit: Duration) -> Result<(), Failure> {
        let begun = Instant::now();
        while !file.exists() {
            if let Some(status) = HERE.ended(&mut self.child) {
                return Err(self.complaint(&format!("ended with {status}")));
            }
            if begun.elapsed() > limit {
                return Err(self.complaint(&format!("was not ready after {limit:?}")));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Waits until somebody takes connections at this port of the loopback interface: for programs that
    /// write no file when they are ready.
    ///
    /// # Errors
    /// It ended before, or took longer than `limit`.
    pub(crate) fn await_port(&mut self, port: u16, limit: Duration) -> Result<(), Failure> {
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = HERE.ended(&mut self.child) {
                return Err(self.complaint(&format!("ended with {status}")));
            }
            if begun.elapsed() > limit {
                return Err(self.complaint(&format!("took no connection within {limit:?}")));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// A failure that quotes what it wrote to standard error: three lines from the first that begins
    /// with `error`, or else the last three.
    pub(crate) fn complaint(&self, what: &str) -> Failure {
        let said = fs::read_to_string(&self.errors).unwrap_or_default();
        let lines: Vec<&str> = said.trim().lines().collect();
        // What follows an error may be advice that is longer than the error.
        let last = lines.len().saturating_sub(3);
        let error = lines.iter().position(|line| line.starts_with("error")).unwrap_or(last).min(last);
        let said = lines.iter().skip(error).take(3).copied().collect::<Vec<_>>().join(" / ");
        broken(if said.is_empty() {
            format!("{} {what}", self.name)
        } else {
            format!("{} {what}: {said}", self.name)
        })
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // Fails only if it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = HERE.reap(&mut self.child);
    }
}

/// Runs a client to its end, and returns its standard output. It is dropped, and so killed, on every
/// way out.
///
/// # Errors
/// It cannot be started, its status is not 0, what it writes is not UTF-8, or it runs for longer than
/// `limit`.
pub(crate) fn complete(
    launch: &Launch,
    spot: &ProcessPlacement,
    dir: &Path,
    name: &str,
    limit: Duration,
) -> Result<String, Failure> {
    let mut running = ChildGuard::spawn(launch, spot, dir, name, Stdio::piped())?;
    let Some(mut output) = running.child.stdout.take() else { return Err(broken("a pipe is missing")) };
    let begun = Instant::now();
    let (done, wait) = mpsc::channel();
    thread::spawn(move || {
        let mut text = String::new();
        let read = output.read_to_string(&mut text).map(|_| text);
        // Nobody listens any more after the limit.
        let _ = done.send(read);
    });
    match wait.recv_timeout(limit) {
        Ok(Ok(text)) => {
            // It may have closed its output, and not end.
            let status = loop {
                if let Some(status) = HERE.ended(&mut running.child) {
                    break status;
                }
                if begun.elapsed() > limit {
                    return Err(running.complaint(&format!("was still running after {limit:?}")));
                }
                thread::sleep(Duration::from_millis(1));
            };
            if status.success() { Ok(text) } else { Err(running.complaint(&format!("ended with {status}"))) }
        }
        Ok(Err(error)) => Err(broken(format!("{name}: {error}"))),
        Err(_) => Err(running.complaint(&format!("was still running after {limit:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fresh::Fresh;

    /// Only what hangs takes so long.
    const LONG: Duration = Duration::from_secs(300);

    fn shell(script: &str) -> Launch {
        Launch::new("/bin/sh").with(["-c", script])
    }

    #[test]
    fn output_is_returned_and_failure_is_quoted() {
        let dir = Fresh::new().unwrap();
        let run =
            |script: &str| complete(&shell(script), &ProcessPlacement::default(), dir.path(), "child", LONG);
        assert_eq!(run("echo yes").unwrap(), "yes\n");
        let failure = run("echo because >&2; exit 3").unwrap_err();
        assert!(failure.message().contains("because") && failure.message().contains('3'), "{failure}");
        let failure = run("printf 'error: no\\n\\na\\nb\\nc\\n' >&2; exit 3").unwrap_err();
        assert!(failure.message().contains("error: no"), "{failure}");
    }

    #[test]
    fn a_client_is_bounded_in_time() {
        let dir = Fresh::new().unwrap();
        let limit = Duration::from_millis(50);
        let failure =
            complete(&shell("exec sleep 60"), &ProcessPlacement::default(), dir.path(), "child", limit)
                .unwrap_err();
        assert!(failure.message().contains("still running"), "{failure}");
        // One that says no more, and does not end.
        let silent = shell("exec >&-; exec sleep 20");
        let failure =
            complete(&silent, &ProcessPlacement::default(), dir.path(), "child", limit).unwrap_err();
        assert!(failure.message().contains("still running"), "{failure}");
    }

    #[test]
    fn a_compiler_is_heard_and_not_what_it_leaves_behind() {
        let run = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            output(command)
        };
        let begun = Instant::now();
        let heard = run("sleep 60 & echo done; echo oh >&2; exit 3").unwrap();
        assert!(begun.elapsed() < Duration::from_secs(50));
        assert_eq!((heard.stdout.as_slice(), heard.stderr.as_slice()), (&b"done\n"[..], &b"oh\n"[..]));
        assert_eq!(heard.status.code(), Some(3));
    }

    #[test]
    fn a_server_is_killed_with_its_handle() {
        let dir = Fresh::new().unwrap();
        let ready = dir.path().join("ready");
        let mut server = ChildGuard::start(
            &shell(&format!("echo $$ > {}; exec sleep 60", ready.display())),
            &ProcessPlacement::default(),
            dir.path(),
            "server",
        )
        .unwrap();
        server.await_file(&ready, LONG).unwrap();
        let id = i32::try_from(server.id()).unwrap();
        drop(server);
        // SAFETY: signal 0 only asks whether the process exists.
        assert_eq!(unsafe { libc::kill(id, 0) }, -1);
    }

    #[test]
    fn a_server_that_ends_early_is_noticed() {
        let dir = Fresh::new().unwrap();
        let mut server = ChildGuard::start(
            &shell("echo no port >&2; exit 1"),
            &ProcessPlacement::default(),
            dir.path(),
            "server",
        )
        .unwrap();
        let failure = server.await_file(&dir.path().join("never"), LONG).unwrap_err();
        assert!(failure.message().contains("no port"), "{failure}");
    }

    #[test]
    fn children_run_where_they_are_put() {
        let dir = Fresh::new().unwrap();
        let cpu = *crate::placement::allowed_cpus().last().unwrap();
        let launch = shell("grep Cpus_allowed_list /proc/self/status");
        let text = complete(&launch, &Some(cpu).into(), dir.path(), "child", LONG).unwrap();
        assert_eq!(text.split_whitespace().last().unwrap(), cpu.to_string());
    }
}
