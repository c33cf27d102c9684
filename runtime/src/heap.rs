//! The allocator's heaps: what of them is free goes back to the system.

/// Gives free memory of all heaps back, where the allocator is glibc's, which has several of them and keeps what is free below something
/// that is used. Takes a time that grows with the memory; the heaps are locked meanwhile.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    // SAFETY: it changes nothing but what is free, and may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
