//! Servants of `bench.idl`.

use crate::bench::{Benchmarking, FiringSource, IRemoteObject, Sink, Source};
use everywire::{Bytes, Failure, Initiator, Kind, Ref};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The text that the races send.
pub const TEXT: &str = "Hello, World! 0123456789";

/// The seven functions.
#[derive(Debug, Clone, Copy)]
pub struct Bench;

impl Benchmarking for Bench {
    fn void_call(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn in_int_call(&self, _: i32) -> Result<(), Failure> {
        Ok(())
    }
    fn out_int_call(&self) -> Result<i32, Failure> {
        Ok(42)
    }
    fn in_out_int_call(&self, v: i32) -> Result<i32, Failure> {
        Ok(v.wrapping_add(1))
    }
    fn in_string_call(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }
    fn out_string_call(&self) -> Result<String, Failure> {
        Ok(TEXT.to_owned())
    }
    fn in_out_string_call(&self, v: &str) -> Result<String, Failure> {
        Ok(v.to_owned())
    }
}

/// Bytes on demand, from one shared buffer.
#[derive(Debug)]
pub struct RemoteBytes(Bytes);

impl RemoteBytes {
    /// Serves up to `largest` bytes.
    #[must_use]
    pub fn new(largest: usize) -> Self {
        Self(super::bytes(largest))
    }
}

impl IRemoteObject for RemoteBytes {
    fn get_bytes(&self, n: i32) -> Result<Bytes, Failure> {
        match usize::try_from(n) {
            Ok(n) if n <= self.0.len() => Ok(self.0.slice(..n)),
            _ => Err(Failure::new(Kind::BadArgument, Initiator::User, format!("{n} bytes cannot be had"))),
        }
    }
}

/// Counts what it hears.
#[derive(Debug, Default)]
pub struct CountingSink {
    hellos: AtomicU64,
    syncs: AtomicU64,
}

impl CountingSink {
    /// Oneways so far.
    pub fn hellos(&self) -> u64 {
        self.hellos.load(Ordering::SeqCst)
    }

    /// `HelloSync`s so far.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::SeqCst)
    }
}

impl Sink for CountingSink {
    fn hello(&self) -> Result<(), Failure> {
        self.hellos.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
    fn hello_sync(&self) -> Result<(), Failure> {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// Fires at the sinks that advised.
#[derive(Default)]
pub struct Firing {
    sinks: Mutex<Sinks>,
}

#[derive(Default)]
struct Sinks {
    last: u32,
    advised: BTreeMap<u32, Ref<dyn Sink>>,
}

impl Source for Firing {
    fn advise(&self, s: Option<Ref<dyn Sink>>) -> Result<u32, Failure> {
        let sink =
            s.ok_or_else(|| Failure::new(Kind::BadArgument, Initiator::User, "nil cannot be advised"))?;
        let mut sinks = self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        sinks.last += 1;
        let cookie = sinks.last;
        sinks.advised.insert(cookie, sink);
        Ok(cookie)
    }

    fn unadvise(&self, cookie: u32) -> Result<(), Failure> {
        match self.sinks.lock().unwrap_or_else(PoisonError::into_inner).advised.remove(&cookie) {
            Some(_) => Ok(()),
            None => Err(Failure::new(
                Kind::BadArgument,
                Initiator::User,
                format!("no sink has the cookie {cookie}"),
            )),
        }
    }
}

impl FiringSource for Firing {
    fn fire(&self, n: u32) -> Result<(), Failure> {
        // Without the lock, so that a sink may advise or unadvise meanwhile.
        let sinks: Vec<_> =
            self.sinks.lock().unwrap_or_else(PoisonError::into_inner).advised.values().cloned().collect();
        for sink in sinks {
            for _ in 0..n {
                sink.hello()?;
            }
            sink.hello_sync()?;
        }
        Ok(())
    }
}
