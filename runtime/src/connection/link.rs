//! A connection as servants see it: where their answers go.

use super::backward;
use super::state::{Connection, DeferredAction};
use crate::clock::lately;
use crate::notice::Notice;
use crate::signals::PATIENCE;
use crate::sync::lock;
use everywire_model::{Answer, BoxFuture, CallId, Emission, Endpoint, Failure, Link, Object, Peer, Resolver};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Link for Connection {
    fn answer(&self, id: CallId, answer: Answer<'_>) {
        let mut core = self.enter();
        self.let_go(&mut core, id);
        // A result that does not encode has become a failure for the caller; here it is only worth a notice.
        let before = self.unsent_before(&mut core);
        if let Err(failure) = core.session.answer(id, answer) {
            core.deferred.push(DeferredAction::Notice(Notice::Unanswered { failure }));
        }
        // Only what the peer asks for on top of that is too much.
        let _ = self.owe(&mut core, before);
        // The thread that serves this connection sends its replies when it has served all that came together.
        if !self.sends_later() {
            // The call may have taken longer than the peer may be silent.
            core.used = lately();
            if self.send(&mut core) && !core.session.transmit().is_empty() {
                self.await_room(&mut core);
            }
            self.remind(&mut core);
            self.weigh(&mut core);
        }
    }

    fn let_go(&self, id: CallId) {
        // Small ones are not counted, and need no lock.
        if self.holds_bodies.load(Ordering::Relaxed) {
            let mut core = self.enter();
            self.let_go(&mut core, id);
            self.weigh(&mut core);
        }
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.node.spawn(task, self.registration());
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::clone(&self.node) as Arc<dyn Resolver>
    }

    fn peer(&self) -> Option<Peer> {
        lock(&self.core).peer.clone()
    }

    fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    fn emit(&self, emission: &Emission<'_>) -> Result<(), Failure> {
        if Self::emit(self, emission)? {
            self.await_reader(Instant::now() + PATIENCE);
        }
        Ok(())
    }

    fn serial_number(&self) -> u64 {
        self.serial_number
    }

    fn is_over(&self) -> bool {
        Self::is_over(self)
    }

    fn end(&self, why: &Failure) {
        let (Some(this), why) = (self.this.upgrade(), why.clone()) else { return };
        // A goodbye may take a moment, and this thread may be an event loop.
        self.node.apart(Box::new(move || this.cut(&why)));
    }

    fn caller(&self) -> Option<Object> {
        let connection = self.this.upgrade().filter(|_| self.capabilities.callbacks_on_connection)?;
        Some(backward::object(&connection))
    }
}
