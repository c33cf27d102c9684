//! What the exporter asks of connection points: signals go out, objects go, and whoever was silent for long is asked.
//!
//! `emit` is called by whoever emits, `tend` by the keeper; the locks of the tables are held for copying
//! lists only, never while a sink is called.

use super::source;
use crate::exporter::Exporter;
use crate::lock::lock;
use everywire_model::signal::Backlog;
use everywire_model::{Emission, Failure, Topic};
use std::time::{Duration, Instant};

/// How long a sink, or a source, may be silent before it is asked whether it is still there (one period of pings).
pub const SILENCE: Duration = Duration::from_secs(120);

/// Calls the sinks that were advised of this signal.
///
/// # Errors
/// The arguments do not encode.
pub fn emit(exporter: &Exporter, emission: &Emission<'_>) -> Result<(), Failure> {
    let points = &exporter.standard().points;
    if points.is_empty(emission.key) {
        return Ok(());
    }
    // Whoever passes a signal on without its contract reaches no sinks.
    let Topic::Typed { interface, signal } = emission.topic else { return Ok(()) };
    let (iid, index) = source::place(interface, signal);
    let Some(point) = points.of(emission.key, iid) else { return Ok(()) };
    let sinks = lock(&point.sinks).clone();
    sinks.iter().try_for_each(|sink| sink.tell(index, emission.arguments))
}

/// What waits for the sink of an object that is furthest behind.
pub fn backlog(exporter: &Exporter, key: &[u8]) -> Backlog {
    let points = lock(&exporter.standard().points.held).get(key).cloned().unwrap_or_default();
    let sinks = points.iter().flat_map(|point| lock(&point.sinks).clone());
    sinks.map(|sink| sink.backlog()).max_by_key(|one| (one.signals, one.bytes)).unwrap_or_default()
}

/// Has a sink of an object hear no more; whether it was advised.
pub fn dismiss(exporter: &Exporter, key: &[u8], interface: &str, cookie: u32) -> bool {
    let point = interface.parse().ok().and_then(|iid| exporter.standard().points.of(key, iid));
    point.is_some_and(|point| point.remove(cookie))
}

/// The object under this key is served no longer: nobody is advised any more.
pub fn withdrawn(exporter: &Exporter, key: &[u8]) {
    let held = lock(&exporter.standard().points.held).remove(key).unwrap_or_default();
    for point in held {
        let sinks = std::mem::take(&mut *lock(&point.sinks));
        sinks.iter().for_each(|sink| sink.end());
        let served = lock(&point.served).take();
        if let Some(served) = served {
            exporter.objects().withdraw(&served);
        }
    }
}

/// The node ends: nobody is advised any more. Sinks hold the node that holds them.
pub fn leave(exporter: &Exporter) {
    let keys: Vec<_> = lock(&exporter.standard().points.held).keys().cloned().collect();
    keys.iter().for_each(|key| withdrawn(exporter, key));
}

/// When [`tend`] wants to be called.
pub fn due(exporter: &Exporter) -> Option<Instant> {
    let points = &exporter.standard().points;
    let sinks = points.sinks().into_iter().map(|sink| sink.last());
    let sources = points.listening().into_iter().filter_map(|source| source.last());
    sinks.chain(sources).min().map(|last| last + SILENCE)
}

/// Looks after sinks and sources that were silent for long.
pub fn tend(exporter: &Exporter, now: Instant) {
    let points = &exporter.standard().points;
    for sink in points.sinks().into_iter().filter(|sink| now >= sink.last() + SILENCE) {
        sink.check();
    }
    for source in points.listening() {
        if source.last().is_some_and(|last| now >= last + SILENCE) {
            source.check();
        }
    }
}
