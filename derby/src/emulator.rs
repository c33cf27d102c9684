//! An emulated link: a process that carries Ethernet frames between two namespaces, as late and as
//! slowly as it is told.
//!
//! It makes one TAP interface in each namespace and reads and writes their frames. Each direction is a
//! `Line` with a queue of its own. State of a line: the frames on their way, each with the moment at
//! which it arrives, and the moment until which the wire is busy.
//!
//! Invariants: frames of a direction arrive in the order in which they were sent, none before its time.
//! A queue holds `QUEUE` frames; more are lost, so memory is bounded. One thread does everything: it
//! sleeps until shortly before the next frame is due, and spins for the rest, since the kernel wakes it
//! too late for links of microseconds.

use crate::link::INTERFACE;
use crate::{broken, unknown};
use everywire_model::Failure;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

/// Frames that may be under way in one direction; more are lost, as in a real queue.
const QUEUE: usize = 4096;
/// The largest frame that is read, far above what the interface lets through.
const FRAME: usize = 65_536;
/// The kernel may wake a sleeper this late; the rest of a wait is spun.
const LATE: Duration = Duration::from_micros(80);
/// Asks for an interface: `TUNSETIFF` of `linux/if_tun.h`.
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
/// Ethernet frames, and nothing in front of them (`linux/if_tun.h`).
const IFF_TAP: u16 = 0x0002;
const IFF_NO_PI: u16 = 0x1000;

/// The process that is the link. Arguments: descriptors of the two network namespaces (handed by its
/// starter), nanoseconds of delay, bits a second (0: no limit). It writes `ready` once both interfaces
/// are there.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let numbers: Vec<u64> = arguments.iter().filter_map(|word| word.parse().ok()).collect();
    let [left, right, delay, rate] = numbers[..] else {
        return Err(unknown("a link takes two descriptors, a delay and a rate"));
    };
    let ends = [interface(left)?, interface(right)?];
    println!("ready");
    let mut lines = [Line::new(delay, rate), Line::new(delay, rate)];
    let mut frame = vec![0; FRAME];
    loop {
        for (at, line) in lines.iter_mut().enumerate() {
            let (mut from, mut to) = (&ends[at], &ends[1 - at]);
            loop {
                match from.read(&mut frame) {
                    Ok(n) => line.take(frame.get(..n).unwrap_or_default(), Instant::now()),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // The interface is not up yet.
                    Err(_) => break,
                }
            }
            while let Some(due) = line.due(Instant::now()) {
                // A frame that the other end cannot take is lost, as on a wire.
                let _ = to.write(&due);
            }
        }
        let next = lines.iter().filter_map(Line::next).min();
        let rest = next.map(|next| next.saturating_duration_since(Instant::now()));
        wait(&ends, rest.map_or(Duration::from_millis(100), |rest| rest.saturating_sub(LATE)));
    }
}

/// One direction of the link.
struct Line {
    delay: Duration,
    rate: u64,
    /// Until then the bits of earlier frames are on their way in; the next frame begins no sooner.
    busy: Instant,
    /// Frames with the moment at which each arrives, in that order.
    frames: VecDeque<(Instant, Vec<u8>)>,
}

impl Line {
    fn new(delay: u64, rate: u64) -> Self {
        Self { delay: Duration::from_nanos(delay), rate, busy: Instant::now(), frames: VecDeque::new() }
    }

    /// A frame begins its way: it follows the bits of those before it, and takes the delay on top of
    /// its own.
    fn take(&mut self, frame: &[u8], now: Instant) {
        if self.frames.len() >= QUEUE {
            return;
        }
        let bits = (frame.len() as u64).saturating_mul(8_000_000_000);
        let time = bits.checked_div(self.rate).map_or(Duration::ZERO, Duration::from_nanos);
        self.busy = self.busy.max(now) + time;
        self.frames.push_back((self.busy + self.delay, frame.to_vec()));
    }

    /// When the next frame arrives.
    fn next(&self) -> Option<Instant> {
        self.frames.front().map(|(due, _)| *due)
    }

    /// Takes the next frame out, if it has arrived.
    fn due(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.next()? > now {
            return None;
        }
        self.frames.pop_front().map(|(_, frame)| frame)
    }
}

/// Makes the interface in a network namespace. This process stays in that namespace, which it does not
/// mind: the interface belongs to the descriptor, wherever its owner is.
fn interface(namespace: u64) -> Result<File, Failure> {
    let failed = |what: &str| broken(format!("{what}: {}", std::io::Error::last_os_error()));
    let namespace = RawFd::try_from(namespace).map_err(|_| unknown("no descriptor"))?;
    // SAFETY: this process has one thread; it moves into a namespace that the descriptor names.
    if unsafe { libc::setns(namespace, libc::CLONE_NEWNET) } != 0 {
        return Err(failed("the namespace cannot be entered"));
    }
    let tun = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")
        .map_err(|error| broken(format!("/dev/net/tun: {error}")))?;
    // struct ifreq: sixteen octets of name, then the flags; forty in all.
    let mut request = [0u8; 40];
    for (to, from) in request.iter_mut().zip(INTERFACE.bytes()) {
        *to = from;
    }
    let [low, high] = (IFF_TAP | IFF_NO_PI).to_ne_bytes();
    (request[16], request[17]) = (low, high);
    // SAFETY: the request is as large as the kernel's struct ifreq, and lives through the call.
    if unsafe { libc::ioctl(tun.as_raw_fd(), TUNSETIFF, request.as_mut_ptr()) } != 0 {
        return Err(failed("the interface cannot be made"));
    }
    Ok(tun)
}

/// Sleeps until a frame comes, at most this long.
fn wait(ends: &[File; 2], most: Duration) {
    if most.is_zero() {
        return;
    }
    let mut polled =
        ends.each_ref().map(|end| libc::pollfd { fd: end.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let most = libc::timespec {
        tv_sec: libc::time_t::try_from(most.as_secs()).unwrap_or(1),
        tv_nsec: libc::c_long::from(most.subsec_nanos().cast_signed()),
    };
    // SAFETY: the pointers are to local values, and the count is that of the array.
    let _ = unsafe { libc::ppoll(polled.as_mut_ptr(), 2, &most, std::ptr::null()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_late_and_one_after_the_other() {
        // A thousand bits take a millisecond.
        let mut line = Line::new(5_000_000, 1_000_000);
        let start = Instant::now();
        line.busy = start;
        line.take(&[1; 125], start);
        line.take(&[2; 125], start);
        assert_eq!(line.next(), Some(start + Duration::from_millis(6)));
        assert!(line.due(start + Duration::from_micros(5999)).is_none());
        assert_eq!(line.due(start + Duration::from_millis(6)).unwrap()[0], 1);
        assert_eq!(line.next(), Some(start + Duration::from_millis(7)));
        let mut fast = Line::new(0, 0);
        fast.take(&[3; 1500], start);
        assert!(fast.due(Instant::now()).is_some());
    }
}
