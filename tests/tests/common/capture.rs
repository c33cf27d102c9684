//! Captures of the loopback interface, and tshark's opinion of them.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A capture under way.
pub struct Recording(Child);

/// Begins; nothing where this user may not capture (and then it is said, and fails under `CI=true`).
pub fn start(file: &Path) -> Option<Recording> {
    let mut child = Command::new("tcpdump")
        .args(["-i", "lo", "-U", "-B", "65536", "-s", "0", "-w"])
        .arg(file)
        .arg("tcp")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("tcpdump starts");
    let end = Instant::now() + Duration::from_secs(10);
    // The file header is written when the capture is running.
    while std::fs::metadata(file).map_or(0, |data| data.len()) < 24 {
        if child.try_wait().expect("it can be asked").is_some() || Instant::now() > end {
            let why = "SKIPPED: capture: this user may not capture on the loopback interface";
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}");
            eprintln!("{why}");
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(Recording(child))
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Stopped before, or left by a test that failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Recording {
    /// Ends, when what was sent before has been written.
    pub fn stop(mut self) {
        std::thread::sleep(Duration::from_millis(500));
        let pid = i32::try_from(self.0.id()).expect("a process number");
        // SAFETY: a signal to a child of ours that has not been waited for.
        unsafe { libc::kill(pid, libc::SIGINT) };
        self.0.wait().expect("it ends");
    }
}

fn tshark(file: &Path, ports: &[u16], arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file);
    for port in ports {
        command.args(["-d", &format!("tcp.port=={port},giop")]);
    }
    let output = command.args(arguments).stderr(Stdio::null()).output().expect("tshark starts");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// The GIOP messages seen, a line each.
pub fn messages(file: &Path, ports: &[u16]) -> Vec<String> {
    tshark(file, ports, &["-Y", "giop"])
}

/// Frames that tshark calls malformed.
pub fn malformed(file: &Path, ports: &[u16]) -> Vec<String> {
    tshark(file, ports, &["-Y", "giop && _ws.malformed"])
}
