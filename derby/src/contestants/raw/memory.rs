//! Raw shared memory: two counters and two areas, and both sides look until the other has counted up.
//! This is as fast as two CPUs can talk. Where they share one CPU each look yields it.
//!
//! The memory is a memfd of the server, opened by the client through `/proc/PID/fd/N`. It has a header
//! of one page, then the request, then the reply.
//!
//! States (`manner`): *idle* (0), *spinning* (1), *yielding* (2); the client sets it when it opens the
//! memory and clears it when it is dropped. A server without a client sleeps, so that it takes no CPU
//! from other contestants.
//!
//! Invariants: there is one client at a time. The side whose turn it is owns both areas: the client
//! from its start and from each reply on, the server from each request on; a counter that is stored
//! with `Release` and loaded with `Acquire` hands them over.

use super::{Exchange, LARGEST};
use crate::broken;
use everywire_model::Failure;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The counters, each on a cache line of its own (two, because CPUs fetch them in pairs).
#[repr(C)]
struct Header {
    /// 0: nobody races; 1: spin; 2: yield between looks.
    manner: Line,
    /// Requests so far.
    asked: Line,
    /// Replies so far.
    answered: Line,
    /// Bytes of the request, and of the reply that is wanted; written before `asked` is counted up.
    request_length: AtomicU32,
    reply_length: AtomicU32,
}

/// A counter with a pair of cache lines to itself.
#[repr(C, align(128))]
struct Line(AtomicU32);

/// Room of the header and of a request, in bytes; the reply has the rest.
const HEADER: usize = 4096;
const REQUEST: usize = 4096;
const SIZE: usize = HEADER + REQUEST + LARGEST;

/// After so many looks without a request the server asks whether there is still a client.
const LOOKS: u32 = 10_000;
/// A server that has not answered within this time is gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// The server: makes the memory, tells through `ready` where it is, and answers until it is killed.
pub(super) fn serve(ready: impl FnOnce(String) -> Result<(), Failure>) -> Result<(), Failure> {
    // SAFETY: the name is a constant C string; the call returns a new descriptor or -1.
    let fd = unsafe { libc::memfd_create(c"derby".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(broken(format!("memfd: {}", std::io::Error::last_os_error())));
    }
    // SAFETY: the descriptor was just made, and nobody else owns it.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(SIZE as u64).map_err(|error| broken(format!("memfd: {error}")))?;
    let memory = Memory::map(&file)?;
    ready(format!("/proc/{}/fd/{fd}", std::process::id()))?;

    let header = memory.header();
    let mut request = vec![0u8; REQUEST];
    let reply = vec![0x55u8; LARGEST];
    let mut seen = 0;
    loop {
        let manner = header.manner.0.load(Ordering::Acquire);
        if manner == 0 {
            thread::sleep(Duration::from_millis(1));
            continue;
        }
        if !look(&header.asked.0, seen, manner == 2, LOOKS) {
            // The client may be gone without a word; asking costs one load.
            continue;
        }
        seen = seen.wrapping_add(1);
        let asked = header.request_length.load(Ordering::Relaxed) as usize;
        let wanted = header.reply_length.load(Ordering::Relaxed) as usize;
        memory.read(HEADER, request.get_mut(..asked.min(REQUEST)).unwrap_or_default());
        memory.write(HEADER + REQUEST, reply.get(..wanted.min(LARGEST)).unwrap_or_default());
        header.answered.0.store(seen, Ordering::Release);
    }
}

/// Looks until the counter has left `seen`, at most so many times; whether it has.
#[inline]
fn look(counter: &AtomicU32, seen: u32, yields: bool, looks: u32) -> bool {
    for _ in 0..looks {
        if counter.load(Ordering::Acquire) != seen {
            return true;
        }
        if yields {
            thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
    false
}

/// The one client of a server. `asked` is how many requests there have been, of earlier clients too.
pub(super) struct Client {
    memory: Memory,
    request: Vec<u8>,
    reply: Vec<u8>,
    yields: bool,
    asked: u32,
}

impl Client {
    /// Opens the memory of a server, and wakes it.
    pub(super) fn open(path: &Path, yields: bool) -> Result<Self, Failure> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| broken(format!("{}: {error}", path.display())))?;
        let memory = Memory::map(&file)?;
        let asked = memory.header().answered.0.load(Ordering::Acquire);
        memory.header().manner.0.store(if yields { 2 } else { 1 }, Ordering::Release);
        Ok(Self { memory, request: vec![0x55; REQUEST], reply: vec![0; LARGEST], yields, asked })
    }
}

impl Exchange for Client {
    fn call(&mut self, request: usize, reply: usize) -> Result<(), Failure> {
        let header = self.memory.header();
        self.memory.write(HEADER, self.request.get(..request).unwrap_or_default());
        header.request_length.store(u32::try_from(request).unwrap_or(0), Ordering::Relaxed);
        header.reply_length.store(u32::try_from(reply).unwrap_or(0), Ordering::Relaxed);
        header.asked.0.store(self.asked.wrapping_add(1), Ordering::Release);
        if !look(&header.answered.0, self.asked, self.yields, LOOKS) {
            // Slow only if the server sleeps, or shares this CPU without our knowing it: give it up now and then.
            let begun = Instant::now();
            while !look(&header.answered.0, self.asked, true, 100) {
                if begun.elapsed() > PATIENCE {
                    return Err(broken("the raw server does not answer"));
                }
            }
        }
        self.asked = self.asked.wrapping_add(1);
        self.memory.read(HEADER + REQUEST, self.reply.get_mut(..reply).unwrap_or_default());
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.memory.header().manner.0.store(0, Ordering::Release);
    }
}

/// Shared memory of [`SIZE`] bytes.
struct Memory(NonNull<u8>);

impl Memory {
    fn map(file: &File) -> Result<Self, Failure> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                SIZE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(broken(format!("shared memory: {}", std::io::Error::last_os_error())));
        }
        NonNull::new(address.cast()).map(Self).ok_or_else(|| broken("shared memory at address 0"))
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping is page-aligned, larger than a header, lives as long as `self`, and the header is made of
        // atomics, for which any bits are valid.
        unsafe { self.0.cast().as_ref() }
    }

    /// Copies out of the area at `from`; the other side does not write there until it is asked to.
    fn read(&self, from: usize, into: &mut [u8]) {
        assert!(from + into.len() <= SIZE);
        // SAFETY: the range is within the mapping, and `into` is memory of this process.
        unsafe { ptr::copy_nonoverlapping(self.0.as_ptr().add(from), into.as_mut_ptr(), into.len()) }
    }

    /// Copies into the area at `to`; the other side does not read there until it is told to.
    fn write(&self, to: usize, bytes: &[u8]) {
        assert!(to + bytes.len() <= SIZE);
        // SAFETY: as in `read`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.as_ptr().add(to), bytes.len()) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this size, and nobody borrows from it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), SIZE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn memory_answers_one_client_after_the_other() {
        let (tell, told) = mpsc::channel();
        thread::spawn(move || serve(|address| tell.send(address).map_err(|_| broken("gone"))));
        let address = told.recv().unwrap();
        for _ in 0..2 {
            let mut client = Client::open(Path::new(&address), true).unwrap();
            for reply in [28, 60, 1_000_028] {
                client.reply.fill(0);
                client.call(76, reply).unwrap();
                assert!(client.reply[..reply].iter().all(|&byte| byte == 0x55));
                assert!(client.reply[reply..].iter().all(|&byte| byte == 0));
            }
        }
    }
}
