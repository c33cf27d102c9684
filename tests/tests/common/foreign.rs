//! Programs that none of us wrote: run to their end, or beside a test.
//!
//! States of a program beside a test: it *runs*, and what it prints is kept until somebody hears it; it *has ended*, was waited for, or was
//! killed. Invariant: none outlives the value that stands for it, and whatever waits for one gives up after [`PATIENCE`].

use super::{scratch, shelf};
use everywire::Node;
use everywire_derby::buses::{Bus, Program, Settings};
use everywire_tests::peers::{cached, here, root};
use everywire_tests::workshop::once;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Whatever a test waits for comes within this time, or it fails: foreign compilers may have to be read from a busy disk first.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// A node of ours that calls servers of others: a virtual machine that has just been started takes its time for a first call.
pub fn patient() -> Node {
    Node::builder().deadline(Some(PATIENCE)).build().into()
}

/// A contract of these tests.
pub fn contract(name: &str) -> PathBuf {
    root().join("tests/contracts").join(name)
}

/// A program of these tests.
pub fn script(name: &str) -> PathBuf {
    root().join("tests/tests/peers").join(name)
}

/// One of the two real buses, or nothing, said loudly.
pub fn bus(test: &str, program: Program) -> Option<Bus> {
    bus_with(test, program, &Settings::default())
}

/// The same, set up otherwise.
pub fn bus_with(test: &str, program: Program, settings: &Settings) -> Option<Bus> {
    here(test, &[program.name()]).then(|| Bus::start(program, settings).expect("the bus starts"))
}

/// Both of them.
pub const BUSES: [Program; 2] = [Program::Daemon, Program::Broker];

/// What a finished program said.
pub struct Said {
    pub success: bool,
    pub out: String,
    pub err: String,
}

/// Runs a program to its end, with this for input.
pub fn run_with(command: &mut Command, input: &[u8]) -> Said {
    let shown = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{shown}: {error}"));
    // It may end without reading.
    let _ = child.stdin.take().expect("piped").write_all(input);
    let gather = |mut pipe: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            pipe.read_to_end(&mut text).expect("a pipe");
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let out = gather(Box::new(child.stdout.take().expect("piped")));
    let err = gather(Box::new(child.stderr.take().expect("piped")));
    let end = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait().expect("it can be asked") {
            Some(status) => break status,
            None if Instant::now() > end => {
                // Ours, and it hangs.
                let _ = child.kill();
                let _ = child.wait();
                panic!("{shown} hangs: {}{}", out.join().expect("text"), err.join().expect("text"));
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    Said { success: status.success(), out: out.join().expect("text"), err: err.join().expect("text") }
}

/// What a program prints, which must end well.
pub fn run(command: &mut Command) -> String {
    let said = run_with(command, b"");
    assert!(said.success, "{command:?}:\n{}{}", said.out, said.err);
    said.out
}

/// A program beside a test: its lines as they come. It ends with this value.
pub struct Beside {
    child: Child,
    lines: Mutex<Receiver<String>>,
    shown: String,
    log: PathBuf,
    _input: Option<ChildStdin>,
}

impl Beside {
    /// Starts it.
    pub fn start(command: &mut Command) -> Self {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let log = shelf().join(format!("beside-{count}"));
        let shown = format!("{command:?}");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).expect("a log"))
            .spawn()
            .unwrap_or_else(|error| panic!("{shown}: {error}"));
        let (tell, lines) = channel();
        let out = BufReader::new(child.stdout.take().expect("piped"));
        std::thread::spawn(move || {
            for line in out.split(b'\n').map_while(Result::ok) {
                // The test may be over.
                let _ = tell.send(String::from_utf8_lossy(&line).into_owned());
            }
        });
        let input = child.stdin.take();
        Self { child, lines: Mutex::new(lines), shown, log, _input: input }
    }

    /// Waits until it says a line with this in it; what it said up to then.
    pub fn hear(&self, part: &str) -> Vec<String> {
        let end = Instant::now() + PATIENCE;
        let mut heard = Vec::new();
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    heard.push(line);
                    if heard.last().is_some_and(|line| line.contains(part)) {
                        return heard;
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("{} never says `{part}`, but\n{}\n{}", self.shown, heard.join("\n"), self.errors())
                }
            }
        }
    }

    /// What it said on standard error so far.
    pub fn errors(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end; whether it ended well.
    pub fn wait(mut self) -> bool {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("it can be asked") {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("{} does not end", self.shown);
    }

    /// Ends it at once, as a crash would.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{} said:\n{}", self.shown, self.errors());
        }
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.log);
    }
}

/// The program with GLib's D-Bus, built; or nothing, said loudly.
pub fn glib_peer(test: &str) -> Option<PathBuf> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    here(test, &["cc", "pkg-config", "gio"])
        .then(|| BUILT.get_or_init(|| built_in_c("glib_peer", "gio-unix-2.0")).clone())
}

/// The program with sd-bus, built; or nothing, said loudly.
pub fn sdbus_peer(test: &str) -> Option<PathBuf> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    here(test, &["cc", "pkg-config", "sd-bus"])
        .then(|| BUILT.get_or_init(|| built_in_c("sdbus_peer", "libsystemd")).clone())
}

/// A program of these tests in C, built with a library.
fn built_in_c(name: &str, library: &str) -> PathBuf {
    let flags = run(Command::new("pkg-config").args(["--cflags", "--libs", library]));
    let source = script(&format!("{name}.c"));
    once(env!("CARGO_TARGET_TMPDIR"), name, std::slice::from_ref(&source), |fresh| {
        run(Command::new("cc")
            .args(["-Wall", "-Wextra", "-Werror", "-O1", "-o"])
            .arg(fresh)
            .arg(&source)
            .args(flags.split_whitespace()));
    })
}

/// A Python with dbus-fast, installed into this user's cache; or nothing, said loudly.
pub fn dbus_fast(test: &str) -> Option<PathBuf> {
    Some(cached(test, "dbus-fast")?.join("bin/python"))
}

/// The `everywire` program: the one that `EVERYWIRE_PROGRAM` names, as the scripts do that have built it, or else built now.
pub fn everywire() -> Command {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = BUILT.get_or_init(|| {
        if let Some(program) = std::env::var_os("EVERYWIRE_PROGRAM") {
            return program.into();
        }
        let profile = Path::new(env!("CARGO_BIN_EXE_peer")).parent().expect("a directory");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        // The program of another crate: built here, if the tests of this one run alone.
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "-p", "everywire-cli", "--bin", "everywire"]).current_dir(root());
        if profile.ends_with("release") {
            build.arg("--release");
        }
        if let Some(target) = profile.parent() {
            build.arg("--target-dir").arg(target);
        }
        let status = build.status().expect("cargo runs");
        assert!(status.success(), "the program cannot be built");
        profile.join("everywire")
    });
    Command::new(program)
}

/// A directory, and a socket in it that nobody has yet.
pub fn socket(name: &str) -> (PathBuf, PathBuf) {
    let dir = scratch(name);
    let socket = dir.join("s");
    (dir, socket)
}

/// Waits until something holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
