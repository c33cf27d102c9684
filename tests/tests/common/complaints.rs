//! What a server writes about its peers: each complaint is waited for, and counts, once.

use super::foreign::PATIENCE;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How much of a server's log was read.
#[derive(Debug, Default)]
pub struct Complaints(Mutex<usize>);

impl Complaints {
    /// Waits until the log says this, behind all that was waited for before.
    #[track_caller]
    pub fn hear(&self, text: &str, log: impl Fn() -> String) {
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let end = Instant::now() + PATIENCE;
        loop {
            let log = log();
            let new = log.get(*read..).unwrap_or_default();
            if let Some(at) = new.find(text) {
                *read += at + text.len();
                return;
            }
            assert!(Instant::now() < end, "the server never says `{}`, but:\n{new}", text.trim_end());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
