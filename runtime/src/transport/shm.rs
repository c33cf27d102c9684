//! Shared memory: two rings in a sealed memfd, and two eventfds to wake a sleeper.
//!
//! The accepting side makes the memory, seals its size, and passes it with the doorbells over a Unix socket; the socket
//! stays open so that each side notices the other's death. Each ring has one producer and one consumer. A side that is
//! about to sleep raises its `asleep` flag and looks once more; a side that produced or consumed looks at the other's
//! flag and rings only then, so that two busy sides make no system call at all.
//!
//! The peer may write anything anywhere at any time. So indices are read once, checked, and used as numbers only; bytes
//! are copied out before anybody looks at them; the seals keep the peer from shrinking the memory under us. The protocol
//! itself is in [`super::ring`].
//!
//! ```text
//! 0    ring 0 tail     64   ring 0 head     128  side 0 asleep     (the accepting side writes ring 0)
//! 192  ring 1 tail     256  ring 1 head     320  side 1 asleep     (the connecting side writes ring 1)
//! 4096 bytes of ring 0                      4096 + RING bytes of ring 1
//! ```

use super::ring::{Ring, RingPair};
use bytes::BytesMut;
use everywire_model::SendBuffer;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{RecvFlags, recv};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bytes in each ring. A power of two, so that an index is masked and not divided.
pub(crate) const RING: usize = 512 << 10;
/// Bytes before the first ring: one page, so that rings begin at one.
const HEADER: usize = 4096;
const TOTAL: usize = HEADER + 2 * RING;

/// One side of a shared-memory connection.
pub(crate) struct Channel {
    memory: Memory,
    /// 0 for the accepting side, 1 for the connecting one.
    side: usize,
    /// Rung by the peer for us.
    own_bell: OwnedFd,
    /// Rung by us for the peer.
    peer_bell: OwnedFd,
    /// The Unix socket of the handshake: readable (end of file) when the peer is gone.
    control: OwnedFd,
}

/// What the accepting side sends to the connecting one.
pub(crate) struct Offer {
    pub(crate) memory: OwnedFd,
    pub(crate) bells: [OwnedFd; 2],
}

impl Channel {
    /// Makes the memory; the offer is for the peer.
    pub(crate) fn create(control: OwnedFd) -> io::Result<(Self, Offer)> {
        let memory = memfd_create("everywire", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&memory, TOTAL as u64)?;
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let bell = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let (own_bell, peer_bell) = (bell()?, bell()?);
        let offer =
            Offer { memory: memory.try_clone()?, bells: [own_bell.try_clone()?, peer_bell.try_clone()?] };
        let channel = Self { memory: Memory::map(&memory)?, side: 0, own_bell, peer_bell, control };
        // Nobody has looked yet: the first bytes of either side must ring.
        channel.asleep(0).store(1, Ordering::SeqCst);
        channel.asleep(1).store(1, Ordering::SeqCst);
        Ok((channel, offer))
    }

    /// Takes an offer, after checking that its size is what it must be and cannot change.
    pub(crate) fn accept(offer: Offer, control: OwnedFd) -> io::Result<Self> {
        let seals = fcntl_get_seals(&offer.memory)?;
        let size = fstat(&offer.memory)?.st_size;
        if !seals.contains(SealFlags::SHRINK) || u64::try_from(size).ok() != Some(TOTAL as u64) {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "the peer's shared memory is not sealed or has a wrong size",
            ));
        }
        let [peer_bell, own_bell] = offer.bells;
        Ok(Self { memory: Memory::map(&offer.memory)?, side: 1, own_bell, peer_bell, control })
    }

    /// What to poll for: readable when the peer rang.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.own_bell.as_fd()
    }

    /// What to poll for: readable when the peer is gone.
    pub(crate) fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Takes what has arrived, at most `room` bytes.
    pub(crate) fn read(&self, into: &mut BytesMut, room: usize) -> io::Result<usize> {
        let side = self.protocol();
        let (head, ready) = side.arrived()?;
        if ready == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let n = ready.min(room);
        into.reserve(n);
        self.memory.copy_out(1 - self.side, head, n, into);
        if side.took(head, n, ready) {
            self.ring_peer()?;
        }
        Ok(n)
    }

    /// Puts as much as there is room for.
    pub(crate) fn write(&self, buffer: &SendBuffer) -> io::Result<usize> {
        let side = self.protocol();
        let (tail, mut room) = side.room()?;
        let mut at = tail;
        let mut put = |mut part: &[u8]| {
            part = &part[..part.len().min(room)];
            self.memory.copy_in(self.side, at, part);
            at = at.wrapping_add(part.len() as u64);
            room -= part.len();
        };
        match buffer.contiguous() {
            Some(flat) => put(flat),
            None => buffer.slices(64, RING).iter().for_each(|slice| put(slice)),
        }
        let n = at.wrapping_sub(tail);
        if n == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        if side.put(at) {
            self.ring_peer()?;
        }
        Ok(usize::try_from(n).unwrap_or(RING))
    }

    /// Lowers the flag and empties the bell.
    pub(crate) fn after_sleep(&self, rung: bool) {
        self.protocol().after_sleep();
        if rung {
            let mut count = [0u8; 8];
            // Nothing to read means that nobody rang: that is fine.
            let _ = rustix::io::read(&self.own_bell, &mut count);
        }
    }

    fn ring_peer(&self) -> io::Result<()> {
        match rustix::io::write(&self.peer_bell, &1u64.to_ne_bytes()) {
            // A bell that cannot be rung any louder has been heard.
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the peer closed its end. A system call: asked only before and after sleeping.
    pub(crate) fn peer_gone(&self) -> bool {
        has_ended(self.control.as_fd())
    }

    /// What is in the memory, as this side's protocol sees it.
    #[inline]
    pub(crate) fn protocol(&self) -> RingPair<'_> {
        let ring = |number: usize| Ring {
            tail: self.memory.word(number * 192),
            head: self.memory.word(number * 192 + 64),
        };
        RingPair {
            own: ring(self.side),
            incoming: ring(1 - self.side),
            asleep: self.asleep(self.side),
            peer_asleep: self.asleep(1 - self.side),
            capacity: RING,
        }
    }

    /// The flag of a side, raised while it sleeps.
    fn asleep(&self, side: usize) -> &AtomicU32 {
        self.memory.flag(side * 192 + 128)
    }
}

/// Whether the other end of a socket is closed, and nothing is left to be read. It costs a system call.
pub(super) fn has_ended(socket: BorrowedFd<'_>) -> bool {
    match recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((_, read)) => read == 0,
        Err(error) => !matches!(error, Errno::AGAIN | Errno::INTR),
    }
}

/// The mapping. All `unsafe` of this transport is here.
struct Memory(NonNull<u8>);

// SAFETY: the mapping is reached only through atomics and through copies whose two ends belong to one producer and one
// consumer, which `Channel`'s owner calls under its connection's lock.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps the whole memory, whose size was checked or made here.
    fn map(memory: &OwnedFd) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing of ours.
        let address = unsafe {
            mmap(
                std::ptr::null_mut(),
                TOTAL,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                memory,
                0,
            )?
        };
        NonNull::new(address.cast()).map(Self).ok_or_else(|| io::Error::other("mmap returned null"))
    }

    /// An index at this offset of the header.
    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= HEADER && offset.is_multiple_of(8));
        // SAFETY: inside the header of the mapping, aligned, mapped as long as `self`; both sides use it atomically.
        unsafe { AtomicU64::from_ptr(self.0.as_ptr().add(offset).cast()) }
    }

    /// A flag at this offset of the header.
    fn flag(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset + 4 <= HEADER && offset.is_multiple_of(4));
        // SAFETY: as in `word`.
        unsafe { AtomicU32::from_ptr(self.0.as_ptr().add(offset).cast()) }
    }

    /// Splits `n` bytes at ring index `at` into the run up to the ring's end and the run from its start.
    fn runs(ring: usize, at: u64, n: usize) -> [(usize, usize); 2] {
        debug_assert!(n <= RING);
        let start = usize::try_from(at & (RING as u64 - 1)).unwrap_or(0);
        let first = n.min(RING - start);
        let base = HEADER + ring * RING;
        [(base + start, first), (base, n - first)]
    }

    /// Copies `n` bytes at index `at` out of a ring, to the end of `into`, which has room for them.
    fn copy_out(&self, ring: usize, at: u64, n: usize, into: &mut BytesMut) {
        for (offset, len) in Self::runs(ring, at, n) {
            let spare = into.spare_capacity_mut();
            let len = len.min(spare.len());
            // SAFETY: `offset + len` lies inside the mapping (`runs`), `spare` holds `len` bytes and is ours alone. The
            // peer may change the bytes while they are copied; nobody looks at them before they are in our memory.
            unsafe {
                std::ptr::copy_nonoverlapping(self.0.as_ptr().add(offset), spare.as_mut_ptr().cast(), len);
                let filled = into.len() + len;
                into.set_len(filled);
            }
        }
    }

    /// Copies bytes into a ring at index `at`; the caller has checked that there is room.
    fn copy_in(&self, ring: usize, at: u64, part: &[u8]) {
        let mut rest = part;
        for (offset, len) in Self::runs(ring, at, part.len()) {
            let (now, later) = rest.split_at(len.min(rest.len()));
            // SAFETY: `offset + len` lies inside the mapping (`runs`); `now` is ours and does not overlap it.
            unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), self.0.as_ptr().add(offset), now.len()) };
            rest = later;
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and nothing borrows from it any more.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), TOTAL) };
    }
}
