//! Futures whose calls have left when their connection ends, and may have run: where the wire knows how such a call goes on, it
//! does so over another connection, as that of a caller who blocks. The session knows what was asked, so neither operation nor
//! arguments are kept for it here.

use super::call_completion::Resuming;
use crate::failures::first_of;
use crate::shard;
use crate::shared::{FORWARDS, Shared};
use everywire_model::visit::Nothing;
use everywire_model::{Call, Expects, Method, Operation, Outcome, Shape};
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Resuming {
    /// Goes on, on an event loop: finding the way may take a while. Without one the call fails, and after the end of the node:
    /// it is the node that ended the connection, and nobody would end the next one.
    pub(super) fn begin(self, node: &Shared) {
        if node.stopped.load(Ordering::Acquire) {
            return;
        }
        if self.asker.as_ref().is_some_and(|asker| asker.moves > FORWARDS) {
            return;
        }
        let held = node.weak();
        let task = async move {
            shard::about_to_block();
            if let Some(node) = held.upgrade() {
                self.go_on(&node);
            }
        };
        node.queue(Box::pin(task), None);
    }

    /// Finds a way and begins the call there; the session at its end knows which call it is by the reference.
    fn go_on(mut self, node: &Shared) {
        let found = first_of(self.way.ways(), |(profile, endpoint)| {
            let (connection, turn) = node.connection(profile, endpoint, self.until, None)?;
            // Once the call has begun, it is the session that says when the next one may.
            node.register(&connection)?;
            Ok((connection, turn, profile))
        });
        let (connection, _turn, profile) = match found {
            Some(Ok(found)) => found,
            Some(Err(failure)) => return self.fail(failure),
            None => return,
        };
        let Some(asker) = self.asker.take() else { return };
        // What it was is the session's to know.
        let operation = Operation::new("", vec![], Shape::Void);
        let call = Call {
            profile,
            method: Method::Typed { interface: None, operation: &operation },
            arguments: &Nothing,
            expects: Expects::Reply,
        };
        if let Err((failure, asker)) = connection.call_and_go(call, Instant::now(), self.until, asker) {
            asker.tell(Outcome::Failed(failure));
        }
    }
}
