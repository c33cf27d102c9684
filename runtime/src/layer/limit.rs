//! A limit to the calls that are under way.

use super::{CallerIdentity, Layer, Next};
use crate::sync::lock;
use everywire_model::{Answer, Failure, Initiator, Kind, Request};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Lets so many calls through at a time, of all callers or of each; refuses what is more as busy, before the
/// servant sees it.
///
/// A caller is its account where it proved one, else its address. A call counts until it is answered, or its
/// request is dropped. Clones count together.
#[derive(Debug, Clone)]
pub struct Limit {
    most: usize,
    of_each: usize,
    taken: Arc<CallCounts>,
}

/// Calls under way: all, and those of each caller who has any.
#[derive(Debug, Default)]
struct CallCounts {
    all: AtomicUsize,
    each: Mutex<HashMap<String, usize>>,
}

/// The place of one call, given back when dropped; `caller` is set if it counts for its caller, too.
struct Share {
    of: Arc<CallCounts>,
    caller: Option<String>,
}

impl Limit {
    /// So many calls at a time.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, of_each: usize::MAX, taken: Arc::default() }
    }

    /// And so many of each caller.
    #[must_use]
    pub fn of_each(mut self, most: usize) -> Self {
        self.of_each = most;
        self
    }

    /// How many calls are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.taken.all.load(Ordering::Acquire)
    }

    /// Takes a place for a call, or says what there are too many of. The count is taken first and given back
    /// on refusal, so two callers never get the last place both.
    fn take(&self, request: &Request) -> Result<Share, Failure> {
        let before = self.taken.all.fetch_add(1, Ordering::AcqRel);
        // From here on it is given back whatever happens.
        let mut share = Share { of: Arc::clone(&self.taken), caller: None };
        if before >= self.most {
            return Err(busy(&format!("{before} calls are under way, and no more are served at a time")));
        }
        if self.of_each < usize::MAX {
            let caller = CallerIdentity::of_call(request).source();
            let mut each = lock(&self.taken.each);
            let held = each.entry(caller.clone()).or_default();
            if *held >= self.of_each {
                return Err(busy(&format!(
                    "{held} calls of {caller} are under way, and no more are served at a time"
                )));
            }
            *held += 1;
            share.caller = Some(caller);
        }
        Ok(share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(caller) = self.caller.take() {
            let mut each = lock(&self.of.each);
            if let Some(held) = each.get_mut(&caller) {
                *held -= 1;
                if *held == 0 {
                    each.remove(&caller);
                }
            }
        }
        self.of.all.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Layer for Limit {
    fn serve(&self, mut request: Request, next: Next<'_>) {
        match self.take(&request) {
            Ok(share) => {
                request.on_end(move || drop(share));
                next.serve(request);
            }
            Err(failure) => request.answer(Answer::Failed(&failure)),
        }
    }
}

fn busy(what: &str) -> Failure {
    Failure::new(Kind::Busy, Initiator::Peer, what).with_hint("try again when some of them have ended")
}
