//! One process of Mono for all tests of a run (`peers/mono/host.cs`), started by the first that needs it.
//!
//! States: *absent*; *under way*, with its port in a file; *gone*, with or without that file. Whoever finds none under way starts one while
//! it holds the lock. Each run has a host of its own, which ends with the run: the host looks whether the process lives that started this
//! test, and removes its file. One that was killed leaves the file, so what listens at its port is asked for the key before it is believed.
//!
//! Invariant: an order is given on a connection of its own, and ends with it. Where the host ends before it has answered, the order is
//! given once more, to the next host.

use super::foreign::PATIENCE;
use everywire_tests::workshop::lock;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::{CommandExt, parent_id};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Between two looks whether a host has begun.
const LOOK: Duration = Duration::from_millis(5);

/// A conversation with the host about one order.
pub struct Order {
    heard: BufReader<TcpStream>,
}

impl Order {
    /// Gives an order to the host of this run, which `program` starts if there is none; what it answers first.
    pub fn give(program: impl Fn() -> Command, order: &str) -> (Self, String) {
        for _ in 0..3 {
            let mut stream = connect(&program);
            let given = stream.write_all(format!("{order}\n").as_bytes());
            let mut order = Self { heard: BufReader::new(stream) };
            if let (Ok(()), Some(line)) = (given, order.line()) {
                return (order, line);
            }
            eprintln!("AGAIN: Mono's host has ended: {}", log());
        }
        panic!("Mono's host ends before it answers `{order}`: {}", log());
    }

    /// The next line, without its end; nothing when the host has said everything.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.heard.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end_matches('\n').to_owned()),
            // The tests beside this one wait for it, too.
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock) => {
                panic!("Mono's host hangs: {}", log())
            }
            Err(_) => None,
        }
    }
}

/// Names that belong to this run: all tests of a run have the same parent.
fn named(what: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("mono-host-{}.{what}", parent_id()))
}

fn log() -> String {
    fs::read_to_string(named("log")).unwrap_or_default()
}

/// A connection to the host, which knows by now that we may give orders.
fn connect(program: &dyn Fn() -> Command) -> TcpStream {
    fs::create_dir_all(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let _only = lock(&named("lock"));
    under_way().unwrap_or_else(|| start(program))
}

/// A connection to the host, if it is there. What it is asked first is its key, which nobody else can know.
fn under_way() -> Option<TcpStream> {
    let port = fs::read_to_string(named("port")).ok()?.parse::<u16>().ok()?;
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    // As long as others of this run may take before it is our turn.
    stream.set_read_timeout(Some(2 * PATIENCE)).expect("a timeout");
    let key = fs::read_to_string(named("key")).ok()?;
    (&stream).write_all(format!("{key}\n").as_bytes()).ok()?;
    let mut greeting = String::new();
    // Nothing else comes before an order.
    BufReader::with_capacity(1, &stream).read_line(&mut greeting).ok()?;
    (greeting == format!("host {key}\n")).then_some(stream)
}

// It is meant to outlive this process, and whoever starts it: the system waits for it then.
#[allow(clippy::zombie_processes)]
fn start(program: &dyn Fn() -> Command) -> TcpStream {
    // Of a host that was killed.
    let _ = fs::remove_file(named("port"));
    let mut random = [0; 16];
    File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut random)).expect("randomness");
    let key = format!("{:032x}", u128::from_ne_bytes(random));
    fs::write(named("key"), &key).expect("a file");
    let log = File::create(named("log")).expect("a log");
    let mut command = program();
    command.arg("host").arg(named("port")).arg(&key).arg(parent_id().to_string());
    // Nothing of this test's stays open with it, and no signal to this test reaches it.
    command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log).process_group(0);
    let mut host = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(stream) = under_way() {
            return stream;
        }
        let ended = host.try_wait().expect("it can be asked");
        assert!(ended.is_none() && Instant::now() < end, "Mono's host does not begin: {ended:?}");
        std::thread::sleep(LOOK);
    }
}
