//! Private message buses of the real programs, for races and for checks: each in a directory of its
//! own, none of them the user's.
//!
//! `dbus-daemon` is started with a configuration file that is written here, and says on standard output
//! where it listens. `dbus-broker` reads none: it gets a listening socket from us, through a second
//! socket by which we are its controller (`controller`).
//!
//! States: a `Bus` exists only once the program takes connections. It ends with its `Bus`, and also
//! with the thread that started it: keep both together.
//!
//! Invariant: everything is allowed on these buses, and their limits are those of a session's, meant
//! never to be hit; so a race measures passing messages and not rules.

mod controller;

use crate::broken;
use crate::contestants::Missing;
use crate::fresh::Fresh;
use crate::process::{ChildGuard, Launch};
use everywire_model::Failure;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A bus has this long to become ready.
const READY: Duration = Duration::from_secs(60);

/// A program that is a message bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// `dbus-daemon`, the reference implementation.
    Daemon,
    /// `dbus-broker`, under a controller of our own: its launcher wants systemd.
    Broker,
}

impl Program {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Daemon => "dbus-daemon",
            Self::Broker => "dbus-broker",
        }
    }

    /// Its name and version.
    ///
    /// # Errors
    /// It is not installed.
    pub fn version(self) -> Result<String, Missing> {
        let missing = || Missing {
            what: format!("`{}` is not installed", self.name()),
            install: everywire_peers::install_hint(&[self.name()]),
        };
        let output = Command::new(self.name()).arg("--version").output().map_err(|_| missing())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version =
            text.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
        Ok(format!("{} {}", self.name(), version.unwrap_or("of unknown version")))
    }
}

/// How a bus is set up, where it differs from a session's. Only [`Program::Daemon`] reads more than `cpu`.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The CPU it is bound to.
    pub cpu: Option<usize>,
    /// More addresses to listen on, such as `tcp:host=127.0.0.1,port=0`, beside the Unix socket.
    pub listen: Vec<String>,
    /// The authentication mechanisms that are let in; empty: all that the program has.
    pub auth: Vec<String>,
    /// More elements for its configuration file; they come last, and so win.
    pub extra: String,
    /// More environment variables.
    pub environment: Vec<(String, String)>,
}

/// A bus of one's own.
pub struct Bus {
    address: String,
    addresses: String,
    running: ChildGuard,
    dir: Fresh,
    /// The broker ends when its controller hangs up.
    _controller: Option<UnixStream>,
}

impl Bus {
    /// A `dbus-daemon` for a session, with everything allowed.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub fn daemon() -> Result<Self, Failure> {
        Self::start(Program::Daemon, &Settings::default())
    }

    /// A `dbus-broker` with everything allowed.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub fn broker() -> Result<Self, Failure> {
        Self::start(Program::Broker, &Settings::default())
    }

    /// The given program with the given settings; it answers when this returns.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub fn start(program: Program, settings: &Settings) -> Result<Self, Failure> {
        program.version()?;
        let dir = Fresh::new()?;
        match program {
            Program::Daemon => daemon(dir, settings),
            Program::Broker => broker(dir, settings),
        }
    }

    /// The address of its Unix socket, as in `DBUS_SESSION_BUS_ADDRESS`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// All of its addresses, separated by semicolons.
    #[must_use]
    pub fn addresses(&self) -> &str {
        &self.addresses
    }

    /// The first of its addresses that begins so, such as `tcp:`.
    #[must_use]
    pub fn address_of(&self, transport: &str) -> Option<&str> {
        self.addresses.split(';').find(|address| address.starts_with(transport))
    }

    /// Its Unix socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        socket(self.dir.path())
    }

    /// A directory that lasts as long as the bus.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.running.id()
    }
}

fn socket(dir: &Path) -> PathBuf {
    dir.join("bus")
}

/// Writes a configuration, and starts the daemon with it. It prints its addresses when it listens.
fn daemon(dir: Fresh, settings: &Settings) -> Result<Bus, Failure> {
    let file = dir.path().join("bus.conf");
    std::fs::write(&file, configuration(dir.path(), settings))
        .map_err(|error| broken(format!("{}: {error}", file.display())))?;
    let launch = Launch::new(Program::Daemon.name())
        .with([format!("--config-file={}", file.display())])
        .with(["--nofork", "--nopidfile", "--nosyslog", "--print-address=1"]);
    let launch =
        settings.environment.iter().fold(launch, |launch, (name, value)| launch.where_is(name, value));
    let (running, addresses) =
        ChildGuard::start_and_hear(&launch, &settings.cpu.into(), dir.path(), Program::Daemon.name(), READY)?;
    let own = format!("unix:path={}", socket(dir.path()).display());
    let address = addresses.split(';').find(|address| address.starts_with(&own)).unwrap_or(&own).to_owned();
    Ok(Bus { address, addresses, running, dir, _controller: None })
}

/// The limits are those of a session bus: meant never to be hit.
const LIMITS: &[(&str, u32)] = &[
    ("max_incoming_bytes", 1_000_000_000),
    ("max_incoming_unix_fds", 250_000_000),
    ("max_outgoing_bytes", 1_000_000_000),
    ("max_outgoing_unix_fds", 250_000_000),
    ("max_message_size", 1_000_000_000),
    ("service_start_timeout", 120_000),
    ("auth_timeout", 240_000),
    ("pending_fd_timeout", 150_000),
    ("max_completed_connections", 100_000),
    ("max_incomplete_connections", 10_000),
    ("max_connections_per_user", 100_000),
    ("max_pending_service_starts", 10_000),
    ("max_names_per_connection", 50_000),
    ("max_match_rules_per_connection", 50_000),
    ("max_replies_per_connection", 50_000),
];

/// The configuration file: the user's elements come last, and so win.
fn configuration(dir: &Path, settings: &Settings) -> String {
    let mut text = String::from(
        "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\"\n\
         \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n\
         <busconfig>\n<type>session</type>\n<keep_umask/>\n",
    );
    text.push_str(&format!("<listen>unix:path={}</listen>\n", socket(dir).display()));
    for address in &settings.listen {
        text.push_str(&format!("<listen>{address}</listen>\n"));
    }
    for mechanism in &settings.auth {
        text.push_str(&format!("<auth>{mechanism}</auth>\n"));
    }
    text.push_str(
        "<policy context=\"default\">\n<allow send_destination=\"*\" eavesdrop=\"true\"/>\n\
         <allow eavesdrop=\"true\"/>\n<allow own=\"*\"/>\n</policy>\n",
    );
    for (name, value) in LIMITS {
        text.push_str(&format!("<limit name=\"{name}\">{value}</limit>\n"));
    }
    text.push_str(&settings.extra);
    text.push_str("\n</busconfig>\n");
    text
}

/// Starts the broker with one end of a pair of sockets, and tells it by the other which socket to
/// listen on.
fn broker(dir: Fresh, settings: &Settings) -> Result<Bus, Failure> {
    let failed = |error: std::io::Error| broken(format!("a socket for dbus-broker: {error}"));
    let path = socket(dir.path());
    let listener = UnixListener::bind(&path).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let (controller, its) = UnixStream::pair().map_err(failed)?;
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&its).to_string();
    let launch = Launch::new(Program::Broker.name())
        .handing(&its)
        .with(["--controller", &descriptor])
        .with(["--machine-id", &machine_id()])
        .with(["--max-bytes", "1000000000", "--max-fds", "250000000"])
        .with(["--max-matches", "1000000", "--max-objects", "1000000"]);
    let launch =
        settings.environment.iter().fold(launch, |launch, (name, value)| launch.where_is(name, value));
    let running = ChildGuard::start(&launch, &settings.cpu.into(), dir.path(), Program::Broker.name())?;
    // Only the bus holds its end now, so that its death is seen as a hang-up.
    drop(its);
    controller::add_listener(&controller, &listener)
        .map_err(|failure| running.complaint(&format!("is not ready: {failure}")))?;
    let address = format!("unix:path={}", path.display());
    Ok(Bus { addresses: address.clone(), address, running, dir, _controller: Some(controller) })
}

/// That of this machine, else one that says that there is none.
fn machine_id() -> String {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    ["/etc/machine-id", "/var/lib/dbus/machine-id"]
        .iter()
        .find_map(|path| read(path).filter(|id| id.len() == 32))
        .unwrap_or_else(|| "0123456789abcdef0123456789abcdef".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};

    /// The bus's own greeting: it authenticates, and answers `Hello` with a unique name.
    fn greets(bus: &Bus) -> String {
        let mut stream = UnixStream::connect(bus.socket()).unwrap();
        stream.set_read_timeout(Some(READY)).unwrap();
        // SAFETY: the call takes nothing and cannot fail.
        let uid = unsafe { libc::geteuid() };
        let hex: String = uid.to_string().bytes().map(|byte| format!("{byte:02x}")).collect();
        stream.write_all(format!("\0AUTH EXTERNAL {hex}\r\n").as_bytes()).unwrap();
        let mut said = String::new();
        BufReader::new(&stream).read_line(&mut said).unwrap();
        said
    }

    #[test]
    fn both_buses_let_their_user_in() {
        for program in [Program::Daemon, Program::Broker] {
            if let Err(missing) = program.version() {
                eprintln!("skipped: {}; {}", missing.what, missing.install);
                continue;
            }
            let bus = Bus::start(program, &Settings::default()).unwrap();
            assert!(greets(&bus).starts_with("OK "), "{}", program.name());
            assert!(bus.address().starts_with("unix:path=") && bus.dir().exists());
        }
    }

    #[test]
    fn a_daemon_listens_where_it_is_told_and_ends_with_its_handle() {
        if Program::Daemon.version().is_err() {
            eprintln!("skipped: no dbus-daemon");
            return;
        }
        let settings = Settings {
            listen: vec!["tcp:host=127.0.0.1,port=0".into()],
            auth: vec!["EXTERNAL".into(), "ANONYMOUS".into()],
            extra: "<allow_anonymous/>".into(),
            ..Settings::default()
        };
        let bus = Bus::start(Program::Daemon, &settings).unwrap();
        let tcp = bus.address_of("tcp:").unwrap();
        assert!(tcp.contains("port=") && bus.address_of("nonce-tcp:").is_none());
        let (id, dir) = (i32::try_from(bus.id()).unwrap(), bus.dir().to_path_buf());
        drop(bus);
        // SAFETY: signal 0 only asks whether the process exists.
        assert_eq!(unsafe { libc::kill(id, 0) }, -1);
        assert!(!dir.exists());
    }
}
