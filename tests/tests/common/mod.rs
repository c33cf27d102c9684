//! What the tests with peers share: servers as processes, scratch directories, captures.

#![allow(dead_code, unreachable_pub)]

pub mod cable;
pub mod capture;
pub mod cellar;
pub mod complaints;
pub mod dcom;
pub mod dcom_pantry;
pub mod dcom_torture;
pub mod dcopserver;
pub mod foreign;
pub mod forwarder;
pub mod galley;
pub mod hello;
pub mod house;
pub mod kdc;
pub mod mill;
pub mod mono;
pub mod mono_host;
pub mod papers;
pub mod python;
pub mod slow;
pub mod waiting;
pub mod wine;

use complaints::Complaints;
use everywire_derby::contestants::omniorb::{BuiltPrograms, build};
use everywire_tests::peers::scheduled;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// omniORB serves calls of one connection on several threads unless told otherwise; the checks count on their order.
pub const IN_ORDER: [&str; 2] = ["-ORBmaxServerThreadPerConnection", "1"];

/// A directory of this test run's own, empty. It is removed when this process exits, however its tests went.
pub fn scratch(name: &str) -> PathBuf {
    let dir = shelf().join(name);
    // The same test may have made one before.
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a scratch directory");
    dir
}

/// Where this process keeps what it needs for a while. No test has to remove anything: one that fails cannot.
pub fn shelf() -> &'static Path {
    static SHELF: OnceLock<PathBuf> = OnceLock::new();
    extern "C" fn clear() {
        if let Some(shelf) = SHELF.get() {
            // It may be gone already.
            let _ = fs::remove_dir_all(shelf);
        }
    }
    SHELF.get_or_init(|| {
        let dir = std::env::temp_dir().join(format!("everywire-{}", std::process::id()));
        // Left over from a process with the same number: it is nobody's any more.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a scratch directory");
        // SAFETY: the function is of the right type and lives as long as the process; it panics nowhere.
        let registered = unsafe { libc::atexit(clear) };
        assert_eq!(registered, 0, "nothing would be removed");
        dir
    })
}

/// omniORB's client and server, built; or nothing, said loudly.
pub fn omniorb(test: &str) -> Option<BuiltPrograms> {
    if !everywire_tests::peers::here(test, &["g++", "omniorb"]) {
        return None;
    }
    match build() {
        Ok(built) => Some(built),
        Err(missing) => panic!("{}; {}", missing.what, missing.install),
    }
}

/// A server in a process of its own; it ends with this value.
pub struct Server {
    child: Child,
    file: PathBuf,
    pub address: String,
    complaints: Complaints,
}

/// How long a peer may take for its first message, unless a test says otherwise: longer than any test.
const FIRST_MESSAGE: Duration = Duration::from_secs(600);

impl Server {
    /// Our server of both contracts.
    pub fn ours(address: &str, dir: &Path, mebibytes: u32) -> Self {
        Self::impatient(address, dir, mebibytes, FIRST_MESSAGE)
    }

    /// The same, where a peer must have sent a whole message after this time.
    pub fn impatient(address: &str, dir: &Path, mebibytes: u32, first_message: Duration) -> Self {
        Self::run(&mut Command::new(env!("CARGO_BIN_EXE_peer")), address, dir, mebibytes, first_message)
    }

    /// The same, where all connections together may hold so much memory, and there may be so many of them.
    pub fn frugal(address: &str, dir: &Path, memory: u32, connections: u32) -> Self {
        Self::limited(Command::new("sh"), address, dir, memory, connections)
    }

    /// The same, of a user whose home is here.
    pub fn frugal_at(home: &Path, address: &str, dir: &Path, memory: u32, connections: u32) -> Self {
        let mut command = Command::new("sh");
        command.env("HOME", home);
        Self::limited(command, address, dir, memory, connections)
    }

    fn limited(mut command: Command, address: &str, dir: &Path, memory: u32, connections: u32) -> Self {
        let limits = format!("exec \"$0\" \"$@\" {memory} {connections}");
        command.args(["-c", &limits, env!("CARGO_BIN_EXE_peer")]);
        Self::run(&mut command, address, dir, 4, FIRST_MESSAGE)
    }

    /// The same, where the process may have only so many descriptors.
    pub fn starved(address: &str, dir: &Path, descriptors: u32) -> Self {
        let limited = format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_peer")]);
        Self::run(&mut command, address, dir, 4, FIRST_MESSAGE)
    }

    fn run(
        command: &mut Command,
        address: &str,
        dir: &Path,
        mebibytes: u32,
        first_message: Duration,
    ) -> Self {
        fs::create_dir_all(dir).expect("a directory");
        let file = dir.join("refs");
        let mut child = command
            .arg(address)
            .arg(&file)
            .arg(mebibytes.to_string())
            .arg(first_message.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(dir.join("stderr")).expect("a log"))
            .spawn()
            .expect("our server starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let address = lines.next().expect("an address").expect("text");
        assert_eq!(lines.next().expect("a second line").expect("text"), "ready");
        Self { child, file, address, complaints: Complaints::default() }
    }

    /// omniORB's.
    pub fn omniorb(built: &BuiltPrograms, transport: &str, dir: &Path) -> Self {
        let endpoint = match transport {
            "tcp" => "giop:tcp:127.0.0.1:".to_owned(),
            _ => format!("giop:unix:{}/omni.sock", dir.display()),
        };
        Self::omniorb_by(Command::new(&built.server), &endpoint, dir)
    }

    /// The same, started by this command, at an endpoint in omniORB's notation.
    pub fn omniorb_by(mut command: Command, endpoint: &str, dir: &Path) -> Self {
        fs::create_dir_all(dir).expect("a directory");
        let file = dir.join("refs");
        let child = command
            .arg("--ref-file")
            .arg(&file)
            .args(["-ORBendPoint", endpoint, "-ORBgiopMaxMsgSize", "134217728"])
            .args(IN_ORDER)
            .stdin(Stdio::null())
            .spawn()
            .expect("omniORB's server starts");
        let mut server =
            Self { child, file, address: endpoint.to_owned(), complaints: Complaints::default() };
        server.wait_for_references();
        server
    }

    fn wait_for_references(&mut self) {
        let end = Instant::now() + foreign::PATIENCE;
        while !self.file.exists() {
            assert!(Instant::now() < end, "the server did not come up");
            assert!(self.child.try_wait().expect("it can be asked").is_none(), "the server ended");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The file of references.
    pub fn references(&self) -> &Path {
        &self.file
    }

    /// The reference with this name.
    pub fn reference(&self, name: &str) -> String {
        let text = fs::read_to_string(&self.file).expect("references");
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}\t")));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
    }

    /// The TCP port of its objects.
    pub fn port(&self) -> u16 {
        let reference = everywire::Node::new().parse(&self.reference("benchmarking")).expect("it parses");
        reference
            .profiles
            .iter()
            .flat_map(|profile| &profile.endpoints)
            .find_map(|endpoint| match endpoint {
                everywire::model::Endpoint::Tcp { port, .. } => Some(*port),
                _ => None,
            })
            .expect("a TCP endpoint")
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it said on standard error so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.file.with_file_name("stderr")).unwrap_or_default()
    }

    /// Waits until it says that a peer broke the rules in this way. Each complaint counts once.
    #[track_caller]
    pub fn complains(&self, violation: &str) {
        self.complaints.hear(&format!("violation {violation}\n"), || self.log());
    }

    /// Waits until it says that it closed a connection because of this quota.
    #[track_caller]
    pub fn refuses_by(&self, quota: &str) {
        self.complaints.hear(&format!("`{quota}`"), || self.log());
    }

    /// Bytes of memory it holds now.
    pub fn resident(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid())).expect("it runs");
        let line = text.lines().find(|line| line.starts_with("Rss:")).expect("a size");
        let kib: u64 = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
        kib * 1024
    }

    /// Waits until it rests.
    pub fn rests(&self) {
        rests(self.pid());
    }

    /// Its threads and its descriptors.
    pub fn threads_and_descriptors(&self) -> (usize, usize) {
        let count =
            |what: &str| fs::read_dir(format!("/proc/{}/{what}", self.pid())).expect("it runs").count();
        (count("task"), count("fd"))
    }
}

/// Whoever tells where objects are.
pub trait References {
    /// The reference with this name.
    fn reference(&self, name: &str) -> String;
}

impl References for Server {
    fn reference(&self, name: &str) -> String {
        Self::reference(self, name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a process has nothing to do any more: for half a second none of its threads is woken more than once, and
/// together they run for less than a millisecond. What else the machine does changes neither.
pub fn rests(pid: u32) {
    let mut last = scheduled(pid);
    foreign::until("the process rests", || {
        std::thread::sleep(Duration::from_millis(500));
        let (before, now) = (last, scheduled(pid));
        last = now;
        now.0.saturating_sub(before.0) < 1_000_000 && now.1.saturating_sub(before.1) <= 1
    });
}
