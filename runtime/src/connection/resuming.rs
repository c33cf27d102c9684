//! Futures whose calls have left when their connection ends, and may have run: where the wire knows how such a call goes on, it
//! does so over another connection, as that of a caller who blocks. The session knows what was asked, so neither operation nor
//! arguments are kept for it here.

use super::asker::Resuming;
use crate::shard;
use crate::shared::{FORWARDS, Shared};
use everywire_model::visit::Nothing;
use everywire_model::{Call, Expects, Method, Operation, Outcome, Shape};
use std::time::Instant;

impl Resuming {
    /// Goes on, on an event loop: finding the way may take a while. Without one the call fails.
    pub(super) fn begin(self, node: &Shared) {
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
        // What it was is the session's to know.
        let operation = Operation::new("", vec![], Shape::Void);
        let mut last = None;
        for profile in &self.way.profiles {
            for endpoint in &profile.endpoints {
                let found = node.connection(profile, endpoint, self.until, None);
                // Once the call has begun, it is the session that says when the next one may.
                let found = found.and_then(|found| node.register(&found.0).map(|()| found));
                let (connection, _turn) = match found {
                    Ok(found) => found,
                    Err(failure) => {
                        last = Some(failure);
                        continue;
                    }
                };
                let Some(asker) = self.asker.take() else { return };
                let call = Call {
                    profile,
                    method: Method::Typed { interface: None, operation: &operation },
                    arguments: &Nothing,
                    expects: Expects::Reply,
                };
                if let Err((failure, asker)) = connection.call_and_go(call, Instant::now(), self.until, asker)
                {
                    asker.tell(Outcome::Failed(failure));
                }
                return;
            }
        }
        if let Some(failure) = last {
            self.fail(failure);
        }
    }
}
