//! Two machines in one: two network namespaces and the link between them, so that client and server can
//! only meet as they would over a wire.
//!
//! A namespace is held by a process of its own (`hold`), and ends with it. Without privileges the first
//! one comes with a user namespace in which this user is root; the second one belongs to the same, so
//! that one side may reach into the other to join them. The link is a pair of virtual Ethernet
//! interfaces, or, with a delay or a rate, two TAP interfaces with an emulator between them (see
//! `emulator`).
//!
//! Order: namespaces, link, addresses, interfaces up, and a wait until both sides say that they are. A
//! `Link` exists only when all of that is done.
//!
//! Invariants: nothing outside of the two namespaces is changed, so nothing has to be undone. The
//! addresses are fixed, and cannot clash with others: each link has namespaces of its own.

use crate::fresh::Fresh;
use crate::process::{ChildGuard, Launch, ProcessPlacement, complete, end_with};
use crate::{broken, unknown};
use everywire_model::Failure;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// The address of the server's side, in a private network of 24 bits.
pub(crate) const SERVER: &str = "10.77.0.1";
/// The address of the client's side.
pub(crate) const CLIENT: &str = "10.77.0.2";
/// The name of the interface on either side.
pub(crate) const INTERFACE: &str = "ew0";

/// Each step of setting up takes this long at the most: a busy machine needs seconds to see that a link
/// is up.
const PATIENCE: Duration = Duration::from_secs(60);

/// What an emulated link is like, in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// From one end to the other, in addition to the time that the bits of a frame take.
    pub delay: Duration,
    /// Bits a second; 0 means as fast as the machine can.
    pub rate: u64,
}

impl Shape {
    /// Reads `DELAY`, `RATE` or `DELAY,RATE`, such as `1ms,100mbit`. A later part of the same kind
    /// wins.
    ///
    /// # Errors
    /// A part is neither.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let mut shape = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            let (number, unit) = part.split_at(digits);
            let number: Option<u64> = number.parse().ok();
            match (number, unit) {
                (Some(n), "us") => shape.delay = Duration::from_micros(n),
                (Some(n), "ms") => shape.delay = Duration::from_millis(n),
                (Some(n), "s") => shape.delay = Duration::from_secs(n),
                (Some(n), "kbit") => shape.rate = n.saturating_mul(1000),
                (Some(n), "mbit") => shape.rate = n.saturating_mul(1_000_000),
                (Some(n), "gbit") => shape.rate = n.saturating_mul(1_000_000_000),
                _ => {
                    return Err(unknown(format!("`{part}` is no delay and no rate of a link")).with_hint(
                        "write a delay (100us, 5ms), a rate (100mbit, 1gbit), or both with a comma between",
                    ));
                }
            }
        }
        Ok(shape)
    }
}

/// A network namespace that lives as long as its holder's process, and so as long as this.
pub(crate) struct Namespace {
    /// The user namespace that owns it; `None` for root, who may do without.
    user: Option<File>,
    /// The network namespace itself.
    net: File,
    _holder: ChildGuard,
}

/// The two sides, joined.
pub(crate) struct Link {
    pub(crate) server: Namespace,
    pub(crate) client: Namespace,
    /// Carries the frames, if the link has a shape; it stops when this is dropped.
    _emulator: Option<ChildGuard>,
    _dir: Fresh,
}

impl Namespace {
    /// A namespace of its own, or, `within` another one, one that belongs to the same user namespace.
    fn new(dir: &Path, name: &str, within: Option<&Self>) -> Result<Self, Failure> {
        let launch = Launch::own("namespace")?;
        // The second one belongs to the same user namespace: whoever is privileged there may join the two.
        let privileged = within.is_some() || rustix_is_root();
        let launch = launch.with([if privileged { "net" } else { "user" }]);
        let spot = ProcessPlacement { cpu: None, net: within.map(Self::descriptors) };
        let (holder, _) =
            ChildGuard::start_and_hear(&launch, &spot, dir, name, PATIENCE).map_err(|failure| {
                failure.with_hint(
                    "user namespaces may be forbidden here: ask root, or leave out the remote placement",
                )
            })?;
        let open = |kind: &str| {
            let path = format!("/proc/{}/ns/{kind}", holder.id());
            File::open(&path).map_err(|error| broken(format!("{path}: {error}")))
        };
        let user = if rustix_is_root() { None } else { Some(open("user")?) };
        Ok(Self { user, net: open("net")?, _holder: holder })
    }

    /// What a process joins to be in it: the user namespace, if any, and the network namespace.
    pub(crate) fn descriptors(&self) -> (Option<RawFd>, RawFd) {
        (self.user.as_ref().map(AsRawFd::as_raw_fd), self.net.as_raw_fd())
    }

    /// Runs `ip` in it with these words, and returns its standard output.
    fn ip(&self, dir: &Path, words: &str) -> Result<String, Failure> {
        let launch = Launch::new("ip").with(words.split(' '));
        let spot = ProcessPlacement { cpu: None, net: Some(self.descriptors()) };
        complete(&launch, &spot, dir, "ip", PATIENCE).map_err(|failure| {
            failure.with_hint(format!("`ip` sets up the link: {}", everywire_peers::install_hint(&["ip"])))
        })
    }

    /// Waits until the interface passes packets: on a busy machine the kernel takes seconds to notice that the other side is up,
    /// and until then it throws away even the questions for the neighbour's address.
    fn wait_for_the_link(&self, dir: &Path) -> Result<(), Failure> {
        let end = Instant::now() + PATIENCE;
        loop {
            let said = self.ip(dir, &format!("-oneline link show dev {INTERFACE}"))?;
            if said.contains("LOWER_UP") && ["state UP", "state UNKNOWN"].iter().any(|up| said.contains(up)) {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(broken(format!("the link between the namespaces does not come up: {said}")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Link {
    /// Two namespaces, joined; `None` for a link that is as fast as the machine can.
    ///
    /// # Errors
    /// This user may not make them, or `ip` is not installed.
    pub(crate) fn new(shape: Option<Shape>) -> Result<Self, Failure> {
        let dir = Fresh::new()?;
        let server = Namespace::new(dir.path(), "server-side", None)?;
        let client = Namespace::new(dir.path(), "client-side", Some(&server))?;
        let emulator = match shape {
            None => {
                let pid = client._holder.id();
                server.ip(
                    dir.path(),
                    &format!("link add {INTERFACE} type veth peer name {INTERFACE} netns {pid}"),
                )?;
                None
            }
            Some(shape) => Some(emulate(&server, &client, shape, dir.path())?),
        };
        for (side, address) in [(&server, SERVER), (&client, CLIENT)] {
            side.ip(dir.path(), "link set lo up")?;
            side.ip(dir.path(), &format!("address add {address}/24 dev {INTERFACE}"))?;
            side.ip(dir.path(), &format!("link set {INTERFACE} up"))?;
        }
        server.wait_for_the_link(dir.path())?;
        client.wait_for_the_link(dir.path())?;
        Ok(Self { server, client, _emulator: emulator, _dir: dir })
    }
}

/// Starts the process that carries frames between two interfaces that it makes, one in each namespace.
fn emulate(server: &Namespace, client: &Namespace, shape: Shape, dir: &Path) -> Result<ChildGuard, Failure> {
    let launch = Launch::own("link")?
        .handing(&server.net)
        .handing(&client.net)
        .with([server.net.as_raw_fd().to_string(), client.net.as_raw_fd().to_string()])
        .with([shape.delay.as_nanos().to_string(), shape.rate.to_string()]);
    let spot = ProcessPlacement { cpu: None, net: Some(server.descriptors()) };
    ChildGuard::start_and_hear(&launch, &spot, dir, "link", PATIENCE).map(|(running, _)| running)
}

/// Whether this process may make network namespaces without a user namespace around them.
fn rustix_is_root() -> bool {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// The process that holds a namespace: makes it, writes `ready`, and waits until it is killed. With the
/// argument `user` it makes a user namespace as well.
pub(crate) fn hold(arguments: &[String]) -> Result<(), Failure> {
    let error = |what: &str| broken(format!("{what}: {}", std::io::Error::last_os_error()));
    let with_user = arguments.first().is_some_and(|kind| kind == "user");
    let flags = libc::CLONE_NEWNET | if with_user { libc::CLONE_NEWUSER } else { 0 };
    // SAFETY: both calls only read numbers.
    let (uid, gid, parent) = unsafe { (libc::geteuid(), libc::getegid(), libc::getppid()) };
    // SAFETY: the flags ask for namespaces of this process alone.
    if unsafe { libc::unshare(flags) } != 0 {
        return Err(error("a namespace cannot be made"));
    }
    if with_user {
        end_with(u32::try_from(parent).unwrap_or(0)).map_err(|_| error("whoever asked for it has ended"))?;
        let write = |path: &str, text: String| {
            std::fs::write(path, text).map_err(|error| broken(format!("{path}: {error}")))
        };
        // Whoever has no privileges may map its group only after it has given up `setgroups`
        // (user_namespaces(7)).
        write("/proc/self/setgroups", "deny".into())?;
        write("/proc/self/uid_map", format!("0 {uid} 1"))?;
        write("/proc/self/gid_map", format!("0 {gid} 1"))?;
    }
    println!("ready");
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read() {
        let shape = |delay: u64, rate| Shape { delay: Duration::from_micros(delay), rate };
        for (text, expected) in [
            ("", shape(0, 0)),
            ("100us", shape(100, 0)),
            ("1ms,100mbit", shape(1000, 100_000_000)),
            ("1gbit, 2s", shape(2_000_000, 1_000_000_000)),
            ("64kbit", shape(0, 64_000)),
        ] {
            assert_eq!(Shape::parse(text).unwrap(), expected, "{text}");
        }
        for wrong in ["1", "ms", "-1ms", "1.5ms", "1ms;2mbit", "99999999999999999999ms"] {
            let failure = Shape::parse(wrong).unwrap_err();
            assert!(failure.hint().is_some_and(|hint| hint.contains("100mbit")), "{wrong}");
        }
    }
}
