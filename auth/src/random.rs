//! Where secrets and challenges come from.

use std::io;

/// A source of unpredictable bytes: fills the buffer, or fails. Tests put a counter here; nobody else should.
pub type Random = fn(&mut [u8]) -> io::Result<()>;

/// The kernel's random numbers.
///
/// # Errors
///
/// The kernel has none to give.
pub fn system_random(buffer: &mut [u8]) -> io::Result<()> {
    getrandom::fill(buffer).map_err(|error| match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::other(error.to_string()),
    })
}
