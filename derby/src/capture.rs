//! What passes an interface, written to a file of the classic pcap format, as `tcpdump` would: every
//! frame with its time as the kernel saw it.
//!
//! The capture is a process of its own (`run`), since it has to be in the network namespace of the
//! interface; `Capture` owns it, and dropping that kills it. It says `ready` when the socket is bound:
//! from then on no frame is missed unless the socket's buffer overflows.
//!
//! Invariant: a record is written with one call, so whoever kills the process finds whole records in
//! the file.

use crate::process::{ChildGuard, Launch, ProcessPlacement};
use crate::{broken, unknown};
use everywire_model::Failure;
use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Getting ready takes this long at the most, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// All protocols: `ETH_P_ALL` of `linux/if_ether.h`.
const EVERYTHING: u16 = 0x0003;
/// The time of the last frame that was received: `SIOCGSTAMPNS` of `linux/sockios.h`.
const SIOCGSTAMPNS: libc::c_ulong = 0x8907;
/// The largest frame that is read, and the limit that the header of the file names. The kernel puts TCP
/// segments together, so a frame can be larger than the link's.
const FRAME: usize = 256 << 10;
/// Marks a pcap file whose times are in nanoseconds and whose numbers are in this machine's byte order.
const MAGIC: u32 = 0xa1b2_3c4d;
/// The type of link: Ethernet.
const ETHERNET: u32 = 1;

/// A capture that goes on until this is dropped.
pub(crate) struct Capture {
    _running: ChildGuard,
}

impl Capture {
    /// Captures what passes `interface` at this spot into `file`, from the moment at which this
    /// returns; `dir` is for its standard error.
    ///
    /// # Errors
    /// This user may not capture there, or it did not get ready in time.
    pub(crate) fn start(
        spot: &ProcessPlacement,
        interface: &str,
        file: &Path,
        dir: &Path,
    ) -> Result<Self, Failure> {
        let launch = Launch::own("capture")?.with([interface]).with([file]);
        let (running, _) = ChildGuard::start_and_hear(&launch, spot, dir, "capture", PATIENCE)?;
        Ok(Self { _running: running })
    }
}

/// The process that captures: INTERFACE FILE.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let [interface, path] = arguments else {
        return Err(unknown("a capture takes an interface and a file"));
    };
    let socket = open(interface)?;
    let failed = |error: std::io::Error| broken(format!("{path}: {error}"));
    let mut file = File::create(path).map_err(failed)?;
    file.write_all(&header()).map_err(failed)?;
    println!("ready");
    let mut frame = vec![0; FRAME];
    loop {
        // SAFETY: the pointer and the length are those of the buffer.
        let got = unsafe { libc::recv(socket.as_raw_fd(), frame.as_mut_ptr().cast(), frame.len(), 0) };
        let Ok(len) = usize::try_from(got) else {
            let error = std::io::Error::last_os_error();
            if error.kind() == std::io::ErrorKind::Interrupted {
                continue;
            }
            return Err(broken(format!("{interface}: {error}")));
        };
        // In one write: whoever ends this process finds whole records.
        file.write_all(&record(time_of(&socket), frame.get(..len).unwrap_or_default())).map_err(failed)?;
    }
}

/// A packet socket that gets every frame of this interface, in both directions.
fn open(interface: &str) -> Result<OwnedFd, Failure> {
    let failed = |what: &str| broken(format!("{what}: {}", std::io::Error::last_os_error()));
    let protocol = EVERYTHING.to_be();
    // SAFETY: the call takes numbers only.
    let raw =
        unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, i32::from(protocol)) };
    if raw < 0 {
        return Err(failed("nothing can be captured"));
    }
    // SAFETY: the descriptor is new, and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
    let name = CString::new(interface).map_err(|_| unknown("no name of an interface"))?;
    // SAFETY: the name ends with a zero octet.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(failed(interface));
    }
    // SAFETY: the structure is plain numbers, for which zero is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).unwrap_or(0);
    address.sll_protocol = protocol;
    address.sll_ifindex = index.cast_signed();
    let len = libc::socklen_t::try_from(size_of::<libc::sockaddr_ll>()).unwrap_or(0);
    // SAFETY: the pointer and the length are those of the address.
    if unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) } != 0 {
        return Err(failed(interface));
    }
    // Nothing has come yet, but from now on the kernel notes when it does: on a busy machine it is read much later.
    time_of(&socket);
    Ok(socket)
}

/// When the last frame was received, since 1970, by the kernel. The first question has the kernel begin
/// to note it; until a frame has come the answer is the present.
fn time_of(socket: &OwnedFd) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a structure of the kind that the request fills.
    if unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSTAMPNS, &raw mut time) } == 0 && time.tv_sec > 0 {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        return Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0));
    }
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The header of the file: magic, version 2.4, time zone and accuracy (both 0), longest record, type of
/// link.
fn header() -> Vec<u8> {
    let mut bytes = MAGIC.to_ne_bytes().to_vec();
    bytes.extend([2u16, 4].iter().flat_map(|version| version.to_ne_bytes()));
    let most = u32::try_from(FRAME).unwrap_or(u32::MAX);
    bytes.extend([0, 0, most, ETHERNET].iter().flat_map(|number| number.to_ne_bytes()));
    bytes
}

/// A record: seconds, nanoseconds, length in the file, length on the wire, frame.
fn record(time: Duration, frame: &[u8]) -> Vec<u8> {
    let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
    let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    let mut bytes: Vec<u8> =
        [seconds, time.subsec_nanos(), len, len].iter().flat_map(|number| number.to_ne_bytes()).collect();
    bytes.extend_from_slice(frame);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_is_read_by_those_who_read_captures() {
        let dir = crate::fresh::Fresh::new().unwrap();
        let path = dir.path().join("x.pcap");
        // An Ethernet frame with a TCP segment that opens a connection.
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([4, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0]);
        let time = Duration::new(1_700_000_000, 123_456_789);
        std::fs::write(&path, [header(), record(time, &frame)].concat()).unwrap();
        let trace = everywire_trace::Trace::read(&path, everywire::wires::ALL).unwrap();
        assert_eq!(trace.connections, 1);
        assert_eq!(trace.openings[0].time, time);
        assert_eq!(trace.openings[0].from, "10.0.0.1:1024".parse().unwrap());
    }
}
