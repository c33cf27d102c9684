//! Runs the real program.
#![allow(dead_code, clippy::unwrap_used)]

use serde_json::Value as Json;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_everywire");

/// A file of `tests/data`.
pub(crate) fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name).to_string_lossy().into_owned()
}

/// A directory of its own, for one test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("everywire-cli-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        // Left over from a process with the same number that was killed: it is nobody's any more.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Waits until something holds that has no event. Only what hangs takes so long that this gives up.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(300);
    while !holds() {
        assert!(Instant::now() < end, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What the program said.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {} / {}", self.out, self.err))
    }

    /// Asserts that it failed with this code and said so in three lines; returns them. (An error that only the peer's
    /// author can explain has no third line.)
    pub(crate) fn failed(&self, code: i32) -> Vec<&str> {
        assert_eq!(self.code, code, "{} / {}", self.out, self.err);
        assert_eq!(self.out, "", "nothing but data goes to standard output");
        let lines: Vec<&str> = self.err.lines().collect();
        assert_eq!(lines.len(), 3, "{}", self.err);
        for (line, start) in lines.iter().zip(["error: ", "  why: ", " hint: "]) {
            assert!(line.starts_with(start), "{}", self.err);
        }
        lines
    }

    /// Asserts that it went well; returns what was printed.
    pub(crate) fn good(&self) -> &str {
        assert_eq!(self.code, 0, "{} / {}", self.out, self.err);
        self.out.trim_end()
    }
}

/// Runs the program to its end.
pub(crate) fn run(arguments: &[&str]) -> Said {
    run_with_input(arguments, "")
}

/// Runs the program to its end, with these variables.
pub(crate) fn run_in(env: &[(&str, String)], arguments: &[&str]) -> Said {
    finish(Command::new(PROGRAM).args(arguments).envs(env.iter().cloned()), "")
}

/// Runs the program to its end, with something on its standard input.
pub(crate) fn run_with_input(arguments: &[&str], input: &str) -> Said {
    finish(Command::new(PROGRAM).args(arguments), input)
}

fn finish(command: &mut Command, input: &str) -> Said {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It may end without reading.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: status.code().unwrap_or(-1), out: text(stdout), err: text(stderr) }
}

/// A program that runs on until it is dropped.
pub(crate) struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
    told: String,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_in(&[], arguments)
    }

    /// With these variables.
    pub(crate) fn start_in(env: &[(&str, String)], arguments: &[&str]) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(arguments)
            .envs(env.iter().cloned())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let err = BufReader::new(child.stderr.take().unwrap());
        Self { child, out, err, told: String::new() }
    }

    /// The next line of its output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        if line.is_empty() {
            self.err.read_to_string(&mut self.told).unwrap();
            panic!("it ended: {}", self.told);
        }
        line.trim_end().to_owned()
    }

    /// The next line of its output, which may be empty.
    pub(crate) fn text(&mut self) -> String {
        let mut line = String::new();
        if self.out.read_line(&mut line).unwrap() == 0 {
            self.err.read_to_string(&mut self.told).unwrap();
            panic!("it ended: {}", self.told);
        }
        line.trim_end().to_owned()
    }

    /// What else it printed, once it has ended.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        rest
    }

    /// Waits until it says this on standard error.
    pub(crate) fn tells(&mut self, text: &str) {
        while !self.told.contains(text) {
            assert_ne!(self.err.read_line(&mut self.told).unwrap(), 0, "{text} is not in {}", self.told);
        }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// How many descriptors it has open.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// The most memory that it had at a time (`VmHWM`), in bytes.
    pub(crate) fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        most.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    /// Asks it to end by this signal; returns its exit code and what it said on standard error.
    pub(crate) fn end(&mut self, signal: &str) -> (i32, String) {
        self.signal(signal);
        self.err.read_to_string(&mut self.told).unwrap();
        (self.child.wait().unwrap().code().unwrap_or(-1), self.told.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A `dbus-daemon` of the test's own.
pub(crate) struct Bus {
    child: Child,
    pub(crate) address: String,
}

impl Bus {
    /// It listens at this socket.
    pub(crate) fn start(socket: &str) -> Self {
        let address = format!("unix:path={socket}");
        let mut child = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--print-address=1", &format!("--address={address}")])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It listens once it has said where.
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        Self { child, address }
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `bank.py`, served at these addresses.
pub(crate) struct Bank {
    pub(crate) server: Running,
    /// The addresses, in the order asked for.
    pub(crate) addresses: Vec<String>,
    /// The reference of all of them.
    pub(crate) reference: String,
    pub(crate) contract: String,
    _scratch: Scratch,
}

impl Bank {
    /// Served over TCP.
    pub(crate) fn open() -> Self {
        Self::at(&["tcp"], &[])
    }

    /// Served over these transports, with more options.
    pub(crate) fn at(transports: &[&str], more: &[&str]) -> Self {
        let (scratch, contract) = (Scratch::new(), data("bank.idl"));
        let exec = format!("python3 {}", data("bank.py"));
        let mut arguments = vec!["serve", &contract, "--interface", "Account", "--exec", &exec];
        let on: Vec<String> = transports
            .iter()
            .map(|transport| match *transport {
                "tcp" => "iiop://127.0.0.1:0".to_owned(),
                other => format!("iiop+{other}://{}", scratch.path(other)),
            })
            .collect();
        on.iter().for_each(|address| arguments.extend(["--on", address]));
        arguments.extend(more);
        let mut server = Running::start(&arguments);
        // They are printed in the order of preference, and kept in the order asked for.
        let printed: Vec<String> = transports.iter().map(|_| server.line()).collect();
        let scheme = |transport: &str| match transport {
            "tcp" => "iiop://".to_owned(),
            other => format!("iiop+{other}://"),
        };
        let of = |transport: &&str| {
            printed.iter().find(|address| address.starts_with(&scheme(transport))).unwrap().clone()
        };
        let addresses = transports.iter().map(of).collect();
        let reference = server.line();
        Self { server, addresses, reference, contract, _scratch: scratch }
    }

    /// Calls over the first transport.
    pub(crate) fn call(&self, words: &[&str]) -> Said {
        self.call_at(0, words)
    }

    /// Calls over one of the transports.
    pub(crate) fn call_at(&self, transport: usize, words: &[&str]) -> Said {
        let mut arguments = vec!["call", &self.addresses[transport]];
        arguments.extend(words);
        arguments.extend(["-c", &self.contract]);
        run(&arguments)
    }
}
