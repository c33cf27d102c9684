//! What was called, by whom, for how long, and how it ended.

use super::{Layer, Next};
use everywire_model::{Answer, Expects, Request};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Tells a function of each call that has ended: for logs, metrics and spans.
///
/// It runs on the thread that answers, before the answer leaves: what takes long keeps the caller waiting.
#[derive(Clone)]
pub struct Trace {
    tell: Arc<dyn Fn(&CallRecord) + Send + Sync>,
}

/// A call that has ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallRecord {
    /// Who called: the address, and the account if one was proved; empty within this process.
    pub peer: String,
    /// The object's key.
    pub key: Vec<u8>,
    /// The interface and the operation, such as `Shop.count`.
    pub name: String,
    /// From its arrival at this layer to its answer.
    pub time: Duration,
    /// How it ended.
    pub ending: Ending,
}

/// How a call ended, as its caller is told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// With results.
    Done,
    /// With an exception of the contract, of this identity.
    Raised(String),
    /// With a failure: its word ([`everywire_model::Kind::word`]) and what it says.
    Failed(&'static str, String),
    /// The caller was sent elsewhere.
    Moved,
    /// The caller wanted no answer.
    Untold,
}

impl Trace {
    /// One that tells this function.
    pub fn new(tell: impl Fn(&CallRecord) + Send + Sync + 'static) -> Self {
        Self { tell: Arc::new(tell) }
    }
}

impl Layer for Trace {
    fn serve(&self, mut request: Request, next: Next<'_>) {
        let begun = Instant::now();
        let (peer, key, name) = (request.peer(), request.key().to_vec(), request.full_name());
        let tell = Arc::clone(&self.tell);
        let end = move |ending: Ending| {
            let peer = peer.as_ref().map_or_else(String::new, ToString::to_string);
            tell(&CallRecord { peer, key: key.clone(), name: name.clone(), time: begun.elapsed(), ending });
        };
        match request.expects() {
            Expects::Nothing => request.on_end(move || end(Ending::Untold)),
            Expects::Reply => request.answer_through(move |link, id, answer| {
                end(Ending::of(&answer));
                link.answer(id, answer);
            }),
        }
        next.serve(request);
    }
}

impl Ending {
    fn of(answer: &Answer<'_>) -> Self {
        match answer {
            Answer::Done(_) => Self::Done,
            Answer::Raised { shape, .. } => Self::Raised(shape.id.to_string()),
            Answer::Passed { encoded, .. } if encoded.raised => Self::Raised(encoded.id.clone()),
            Answer::Failed(failure) | Answer::Passed { failure, .. } => {
                Self::Failed(failure.kind().word(), failure.message().to_owned())
            }
            Answer::Moved(_) => Self::Moved,
        }
    }
}
