//! Time goes on for a wire whose housekeeping panicked once.

#![allow(clippy::unwrap_used)]

use crate::plain::{Honest, Plain, Probe, until};
use everywire_model::{Objects, WireState};
use everywire_runtime::Builder;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

static FRAIL: Plain = Plain { keeps: Some(keep), ..Plain::of(&["frail"]) };

static TENDED: AtomicUsize = AtomicUsize::new(0);
static DUE: Mutex<Option<Instant>> = Mutex::new(None);

fn keep(objects: Arc<dyn Objects>) -> Arc<dyn WireState> {
    *KEPT.lock().unwrap() = Some(objects);
    Arc::new(Frail)
}

static KEPT: Mutex<Option<Arc<dyn Objects>>> = Mutex::new(None);

struct Frail;

impl WireState for Frail {
    fn due(&self) -> Option<Instant> {
        *DUE.lock().unwrap()
    }

    fn tend(&self, _: Instant) {
        *DUE.lock().unwrap() = None;
        assert_ne!(TENDED.fetch_add(1, Ordering::SeqCst), 0, "the wire's own fault");
    }
}

#[test]
fn housekeeping_that_panicked_is_done_the_next_time() {
    let server = Builder::new(&[&FRAIL]).shards(1).build();
    server.listen("frail://127.0.0.1:0").unwrap();
    server.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    let objects = KEPT.lock().unwrap().clone().unwrap();
    for times in 1..=2 {
        *DUE.lock().unwrap() = Some(Instant::now());
        objects.attend();
        until("it was done again", || TENDED.load(Ordering::SeqCst) == times);
    }
}
