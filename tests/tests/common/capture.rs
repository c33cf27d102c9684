//! Captures of the loopback interface, and tshark's opinion of them.

use super::foreign::{PATIENCE, until};
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A capture under way.
pub struct Recording {
    child: Child,
    file: PathBuf,
}

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
    let end = Instant::now() + PATIENCE;
    // The file header is written when the capture is running.
    while fs::metadata(file).map_or(0, |data| data.len()) < 24 {
        if child.try_wait().expect("it can be asked").is_some() || Instant::now() > end {
            everywire_tests::peers::skip("capture", "this user may not capture on the loopback interface");
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(Recording { child, file: file.to_owned() })
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Stopped before, or left by a test that failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Recording {
    /// Ends, when what was sent before has been written.
    pub fn stop(mut self) {
        // The kernel hands over what it has about a second later, in order: a word is sent, and waited for.
        let word = format!("the end of {}", self.file.display()).into_bytes();
        let mut capture = fs::File::open(&self.file).expect("a capture");
        let from = capture.seek(SeekFrom::End(0)).expect("a file");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        until("the capture has come to its end", || {
            // Again and again: on a busy machine the kernel may have no room for one.
            stream.write_all(&word).expect("it is sent");
            let mut written = Vec::new();
            capture.seek(SeekFrom::Start(from)).expect("a file");
            capture.read_to_end(&mut written).expect("a file");
            written.windows(word.len()).any(|part| part == word)
        });
        let pid = i32::try_from(self.child.id()).expect("a process number");
        // SAFETY: a signal to a child of ours that has not been waited for.
        unsafe { libc::kill(pid, libc::SIGINT) };
        self.child.wait().expect("it ends");
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
