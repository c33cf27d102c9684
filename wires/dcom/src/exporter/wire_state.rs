//! What the node asks of its exporter, and the keeper's visits.
//!
//! `tend` runs on the keeper's thread; it, `subscribe`, `offers` and `leave` ask other nodes and wait for
//! them. Everything else is called by threads that serve connections, and does not wait.

use super::{Counts, ExportGuard, Exporter};
use crate::security::Security;
use crate::standard::points;
use everywire_model::signal::{Backlog, Listener};
use everywire_model::{
    Emission, Failure, Interface, Lease, Object, Reference, Servant, SignalFilter, Subscription, WireState,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Exporter {
    /// How often pings come and go: what the places of this node say, if they do.
    fn period(&self) -> Duration {
        let places = self.objects.places();
        let said = places.iter().filter_map(|place| Security::of(place.profile()).ping);
        said.min().unwrap_or(self.period)
    }

    /// An object that is lent is for those who have a reference to it: nobody gets it for its class.
    fn run_no_more(&self, key: &[u8]) {
        let servants = self.objects.servants(key);
        servants.iter().for_each(|servant| self.running.leave(key, servant.interface()));
    }

    /// A ping period is over.
    /// Ping sets come first: what only a dead set held then counts as silent in this same period. The clock
    /// goes on as long as any table has an entry, so an idle node costs nothing.
    fn end_period(&self, now: Instant) {
        self.clock.stop_ticking();
        let mut gone = self.sets.tick(&self.exports);
        gone.extend(self.exports.tick());
        gone.into_iter().for_each(|dropped| self.drop_object(Some(dropped)));
        self.ping();
        // Association groups live by their connections.
        if (Counts { associations: 0, ..self.counts() }) != Counts::default() {
            self.clock.tick_on(now, self.period());
        }
    }
}

impl WireState for Exporter {
    fn servants(&self) -> Vec<Arc<dyn Servant>> {
        self.standing_by().to_vec()
    }

    fn exported(&self, key: &[u8], servant: &Arc<dyn Servant>) {
        self.running.enter(key, Some(servant.interface()));
    }

    fn withdrawn(&self, key: &[u8], interface: &Interface) {
        self.running.leave(key, interface);
        self.exports.withdrawn(key);
        points::withdrawn(self, key);
    }

    fn emit(&self, emission: &Emission<'_>) -> Result<(), Failure> {
        points::emit(self, emission)
    }

    fn subscribe(
        &self,
        object: &Object,
        filter: SignalFilter<'_>,
        listener: &Listener,
    ) -> Option<Result<Subscription, Failure>> {
        Some(points::subscribe(self, object, filter, listener))
    }

    fn offers(&self, object: &Object, interface: &str) -> Option<Result<bool, Failure>> {
        Some(self.has_interface(object, interface))
    }

    fn counts_references(&self) -> bool {
        true
    }

    fn onward(&self, key: &[u8], to: &Reference) -> Option<Reference> {
        self.leads_on(key, to)
    }

    fn lend(&self, key: &[u8]) -> Lease {
        self.run_no_more(key);
        self.arc().map(|exporter| Lease::new(Arc::new(ExportGuard::lend(exporter, key)))).unwrap_or_default()
    }

    fn lend_again(&self, key: &[u8]) -> Option<Lease> {
        let exporter = self.arc()?;
        let guard = ExportGuard::lend_again(exporter, key)?;
        self.run_no_more(key);
        Some(Lease::new(Arc::new(guard)))
    }

    fn dismiss(&self, key: &[u8], interface: &str, listener: u32) -> bool {
        points::dismiss(self, key, interface, listener)
    }

    fn backlog(&self, key: &[u8]) -> Backlog {
        points::backlog(self, key)
    }

    fn due(&self) -> Option<Instant> {
        [self.clock.due(), points::due(self)].into_iter().flatten().min()
    }

    fn tend(&self, now: Instant) {
        let due = self.clock.visit(now, self.period());
        if due.questions {
            self.ask_for_references();
        }
        if due.flush {
            self.flush();
        }
        if due.period {
            self.end_period(now);
        }
        if points::due(self).is_some_and(|due| due <= now) {
            points::tend(self, now);
        }
    }

    fn leave(&self) {
        points::leave(self);
        self.give_back();
    }
}
