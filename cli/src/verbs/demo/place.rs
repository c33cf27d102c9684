//! The directory of the demo, and the server that DCOP applications meet at.
//!
//! States: the directory is made with the `DemoDirectory`; a DCOP server may be started in it; `close` (or
//! dropping) ends the server and removes the directory; a second time there is nothing left to do.
//!
//! Invariants: the directory has mode 700 and did not exist before. The server writes where it is into
//! that directory alone, so nobody's session is touched.

use crate::output::note;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, DirBuilder};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The name under which the demo registers on DCOP.
const APPLICATION: &str = "demo";

/// A directory of this process's own.
pub(super) struct DemoDirectory {
    directory: PathBuf,
    dcop: Option<Child>,
}

impl DemoDirectory {
    /// Makes the directory in the user's runtime directory (`$XDG_RUNTIME_DIR`), else in the temporary
    /// one.
    pub(super) fn new() -> io::Result<Self> {
        let above = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_dir());
        let above = above.unwrap_or_else(std::env::temp_dir);
        let directory = above.join(format!("everywire-demo-{}", std::process::id()));
        // One that is there already is somebody else's.
        DirBuilder::new().mode(0o700).create(&directory)?;
        Ok(Self { directory, dcop: None })
    }

    /// A file of the directory.
    pub(super) fn path(&self, name: &str) -> String {
        self.directory.join(name).to_string_lossy().into_owned()
    }

    /// Starts a server for DCOP, and returns the address to join it at; `None` where it cannot start,
    /// which is told and is no failure of the demo.
    pub(super) fn dcop(&mut self) -> Option<String> {
        let socket = self.path("dcop.sock");
        match self.start(&socket) {
            Ok(child) => {
                self.dcop = Some(child);
                Some(format!("dcop+unix://{socket}#{APPLICATION}"))
            }
            Err(error) => {
                note(&format!("DCOP is left out: its server cannot start ({error})"));
                None
            }
        }
    }

    /// Starts the server, and waits until it has said where it is. If it ends instead, the error has
    /// its own reason.
    fn start(&self, socket: &str) -> io::Result<Child> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["dcopserver", "--socket", socket, "--suicide"])
            // The server of the user's session stays what it is.
            .env("DCOPAUTHORITY", self.path("dcopserver"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().ok_or_else(|| io::Error::other("it has no output"))?;
        // It says where it is once it is there.
        if BufReader::new(out).read_line(&mut String::new())? > 0 {
            return Ok(child);
        }
        let ended = child.wait_with_output()?;
        let why = String::from_utf8_lossy(&ended.stderr);
        let why =
            why.lines().find_map(|line| line.trim().strip_prefix("why: ")).unwrap_or("it ended at once");
        Err(io::Error::other(why.to_owned()))
    }

    /// Ends the server, which takes back what it announced, and removes the directory.
    pub(super) fn close(&mut self) {
        if let Some(mut server) = self.dcop.take() {
            // One that has ended by itself needs nobody to end it.
            if matches!(server.try_wait(), Ok(None)) {
                let _ = kill_process(Pid::from_child(&server), Signal::TERM);
            }
            let _ = server.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Drop for DemoDirectory {
    fn drop(&mut self) {
        self.close();
    }
}
