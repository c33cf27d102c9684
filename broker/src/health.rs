//! Probes: targets are asked from time to time whether they are there.
//!
//! One thread for each route that has `probe`; it asks the targets in turn and notes what it finds in
//! `Upstream::probe`. It holds the route weakly, and ends with its `Prober`, at the latest after the probe
//! that it is in.

use crate::log::Log;
use crate::route::Route;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How long a probe may take: as long as the time between two, but at least and at most so long.
const TIME: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// Probes the targets of a route until it is dropped.
pub(crate) struct Prober {
    /// Whether to end, and what wakes the thread for that.
    stop: Arc<(Mutex<bool>, Condvar)>,
}

impl Prober {
    /// Begins, if the route asks for it.
    pub(crate) fn start(route: &Arc<Route>, log: &Log) -> Option<Self> {
        let every = route.probe?;
        let stop = Arc::<(Mutex<bool>, Condvar)>::default();
        let run = {
            let (route, stop, log) = (Arc::downgrade(route), Arc::clone(&stop), log.clone());
            move || run(&route, every, &stop, &log)
        };
        match std::thread::Builder::new().name("probes".into()).spawn(run) {
            Ok(_) => Some(Self { stop }),
            Err(error) => {
                log.warn("probes", &[("failure", error.to_string().into())]);
                None
            }
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        *self.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.1.notify_all();
    }
}

/// The thread: probes all targets, then waits for the next time or the end.
fn run(route: &Weak<Route>, every: Duration, stop: &(Mutex<bool>, Condvar), log: &Log) {
    loop {
        let Some(route) = route.upgrade() else { return };
        for target in &route.targets {
            let Some(news) = target.probe(every.clamp(TIME.0, TIME.1)) else { continue };
            let mut fields = vec![("route", (*route.name).into()), ("target", target.name().into())];
            match news {
                Ok(()) => log.info("target is back", &fields),
                Err(failure) => {
                    fields.push(("failure", failure.to_string().into()));
                    log.warn("target is down", &fields);
                }
            }
        }
        drop(route);
        let stopped = stop.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = stop.1.wait_timeout_while(stopped, every, |stopped| !*stopped);
        let (stopped, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *stopped {
            return;
        }
    }
}
