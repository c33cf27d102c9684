//! Our DCOP server as a process of its own, with files of its own.

use super::complaints::Complaints;
use super::foreign::{Beside, PATIENCE, everywire, script};
use super::{scratch, shelf};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

/// A server; it ends with this value.
pub struct DcopServer {
    dir: PathBuf,
    socket: PathBuf,
    process: Option<Beside>,
    complaints: Complaints,
}

/// Where all servers of this process, and this process itself, keep their cookies.
fn authority() -> PathBuf {
    shelf().join("cookies/ICEauthority")
}

impl DcopServer {
    /// Starts one.
    pub fn start(name: &str, options: &[&str]) -> Self {
        static COOKIES: Once = Once::new();
        COOKIES.call_once(|| {
            let dir = scratch("cookies");
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).expect("it is ours");
            // SAFETY: the first thing that a test does; the others wait, and no C code of this process reads variables.
            unsafe { std::env::set_var("ICEAUTHORITY", authority()) };
        });
        let dir = scratch(name);
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).expect("it is ours");
        let mut server =
            Self { socket: dir.join("socket"), dir, process: None, complaints: Complaints::default() };
        server.begin(options);
        server
    }

    fn begin(&mut self, options: &[&str]) {
        let mut command = everywire();
        command.args(["dcopserver", "-v", "--socket"]).arg(&self.socket).args(options);
        let process = Beside::start(self.environment(&mut command));
        // Its log is a new one.
        self.complaints = Complaints::default();
        process.hear("local/");
        self.process = Some(process);
    }

    /// Starts it again at the same place.
    pub fn again(&mut self) {
        self.begin(&[]);
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.process.take().expect("it runs").kill();
    }

    /// Asks it to end, and waits.
    pub fn terminate(&mut self) {
        let process = self.process.take().expect("it runs");
        let pid = i32::try_from(process.id()).expect("a process number");
        // SAFETY: a signal to a child of ours that has not been waited for.
        unsafe { libc::kill(pid, libc::SIGTERM) };
        process.wait();
    }

    /// Has a program find this server and no other.
    pub fn environment<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env("HOME", &self.dir)
            .env("ICEAUTHORITY", authority())
            .env("DCOPAUTHORITY", self.file())
            .env_remove("DCOPSERVER")
            .env_remove("DISPLAY")
    }

    /// The file that says where it is.
    pub fn file(&self) -> PathBuf {
        self.dir.join("DCOPserver")
    }

    /// Its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// A raw connection.
    pub fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// The cookie of a protocol for this server.
    pub fn cookie(&self, protocol: &str) -> Vec<u8> {
        let data = fs::read(authority()).expect("cookies");
        let (mut at, mut found) = (0, None);
        while at < data.len() {
            let fields: Vec<Vec<u8>> = (0..5)
                .map(|_| {
                    let size = usize::from(u16::from_be_bytes([data[at], data[at + 1]]));
                    let field = data[at + 2..at + 2 + size].to_vec();
                    at += 2 + size;
                    field
                })
                .collect();
            let netid = String::from_utf8_lossy(&fields[2]).into_owned();
            if fields[0] == protocol.as_bytes() && netid.ends_with(&format!(":{}", self.socket().display())) {
                found = Some(fields[4].clone());
            }
        }
        found.expect("a cookie for this server")
    }

    /// The address of an application or an object at this server.
    pub fn at(&self, target: &str) -> String {
        format!("dcop+unix://{}#{target}", self.socket.display())
    }

    /// The `everywire` program, as a user of this server's session.
    pub fn program(&self, arguments: &[&str]) -> Command {
        let mut command = everywire();
        self.environment(&mut command).args(arguments);
        command
    }

    /// The peer that was written from the description of the protocol alone.
    pub fn by_hand(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("python3");
        self.environment(&mut command).arg(script("dcop_peer.py")).args(arguments);
        command
    }

    /// What it said about peers that break the protocol.
    pub fn log(&self) -> String {
        self.process.as_ref().map(Beside::errors).unwrap_or_default()
    }

    /// Waits until it says that a peer broke the rules in this way. Each complaint counts once.
    #[track_caller]
    pub fn complains(&self, violation: &str) {
        self.complaints.hear(&format!("({violation}, at byte "), || self.log());
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("it runs").id()
    }
}
