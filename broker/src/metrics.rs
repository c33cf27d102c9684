//! What is counted, as Prometheus reads it (OpenMetrics 1.0).

use everywire::Kind;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Names and values.
type Labels = Vec<(&'static str, String)>;

/// Bounds of the buckets of a call's time, in seconds: from 50 us to 30 s.
const TIMES: [f64; 16] =
    [5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0];

/// Makes histograms of times.
#[derive(Debug, Clone, Copy)]
struct HistogramFactory;

impl MetricConstructor<Histogram> for HistogramFactory {
    fn new_metric(&self) -> Histogram {
        Histogram::new(TIMES)
    }
}

/// All families of a broker, and the registry that prints them. Families are cheap to share; a label set is
/// made when it is first counted, and stays.
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    calls: Family<Labels, Counter>,
    seconds: Family<Labels, Histogram, HistogramFactory>,
    under_way: Family<Labels, Gauge>,
    retries: Family<Labels, Counter>,
    refused: Family<Labels, Counter>,
    signals: Family<Labels, Counter>,
    references: Family<Labels, Gauge>,
    target_calls: Family<Labels, Counter>,
    target_up: Family<Labels, Gauge>,
    copies: Family<Labels, Counter>,
    copies_lost: Family<Labels, Counter>,
    copied_bytes: Family<Labels, Counter>,
    unmatched: Counter,
    connections: Family<Labels, Gauge>,
    memory: Family<Labels, Gauge>,
    reloads: Family<Labels, Counter>,
}

impl Metrics {
    pub(crate) fn new() -> Arc<Self> {
        let mut registry = Registry::with_prefix("everywire_broker");
        let seconds = Family::new_with_constructor(HistogramFactory);
        let all = Self {
            registry: Mutex::default(),
            calls: Family::default(),
            seconds,
            under_way: Family::default(),
            retries: Family::default(),
            refused: Family::default(),
            signals: Family::default(),
            references: Family::default(),
            target_calls: Family::default(),
            target_up: Family::default(),
            copies: Family::default(),
            copies_lost: Family::default(),
            copied_bytes: Family::default(),
            unmatched: Counter::default(),
            connections: Family::default(),
            memory: Family::default(),
            reloads: Family::default(),
        };
        registry.register("calls", "Calls that ended, by how", all.calls.clone());
        registry.register("call_seconds", "Time from a call's arrival to its answer", all.seconds.clone());
        registry.register("calls_under_way", "Calls that are not answered yet", all.under_way.clone());
        registry.register("retries", "Calls that were sent once more", all.retries.clone());
        registry.register("refused", "Calls that the broker refused, by why", all.refused.clone());
        registry.register("signals", "Signals that were passed on", all.signals.clone());
        registry.register(
            "references",
            "Objects behind references that were passed on",
            all.references.clone(),
        );
        registry.register("target_calls", "Calls that a target got", all.target_calls.clone());
        registry.register("target_up", "Whether a target is believed to work", all.target_up.clone());
        registry.register("copies", "Copies that were taken", all.copies.clone());
        registry.register("copies_lost", "Copies that were not taken", all.copies_lost.clone());
        registry.register(
            "copied_bytes",
            "Octets of the bodies that a place was given",
            all.copied_bytes.clone(),
        );
        registry.register("unmatched", "Calls that no route was for", all.unmatched.clone());
        registry.register("connections", "Connections that are open at a listener", all.connections.clone());
        registry.register("memory_bytes", "Bytes that peers of a listener hold", all.memory.clone());
        registry.register("reloads", "Configurations that were read again", all.reloads.clone());
        Arc::new(Self { registry: Mutex::new(registry), ..all })
    }

    /// The page of a scrape.
    pub(crate) fn page(&self) -> String {
        let mut page = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing to a text cannot fail.
        let _ = encode(&mut page, &registry);
        page
    }

    /// Those of a route.
    pub(crate) fn route(&self, name: &str) -> RouteMetrics {
        let labels = || vec![("route", name.to_owned())];
        let ended = |outcome: &str| {
            let labels = vec![("route", name.to_owned()), ("outcome", outcome.to_owned())];
            self.calls.get_or_create(&labels).clone()
        };
        RouteMetrics {
            name: name.to_owned(),
            calls: self.calls.clone(),
            refused: self.refused.clone(),
            done: ended("done"),
            raised: ended("raised"),
            seconds: self.seconds.get_or_create(&labels()).clone(),
            under_way: self.under_way.get_or_create(&labels()).clone(),
            retries: self.retries.get_or_create(&labels()).clone(),
            signals: self.signals.get_or_create(&labels()).clone(),
            references: self.references.get_or_create(&labels()).clone(),
        }
    }

    /// Those of a target of a route.
    pub(crate) fn target(&self, route: &str, target: &str) -> TargetMetrics {
        let labels = vec![("route", route.to_owned()), ("target", target.to_owned())];
        TargetMetrics {
            calls: self.target_calls.get_or_create(&labels).clone(),
            up: self.target_up.get_or_create(&labels).clone(),
        }
    }

    /// Forgets a target that is no more.
    pub(crate) fn forget_target(&self, route: &str, target: &str) {
        let labels = vec![("route", route.to_owned()), ("target", target.to_owned())];
        self.target_up.remove(&labels);
    }

    /// Copies that were taken, and those that were not, of a place of a route.
    pub(crate) fn copies(&self, route: &str, place: &str) -> (Counter, Counter) {
        let labels = vec![("route", route.to_owned()), ("to", place.to_owned())];
        (self.copies.get_or_create(&labels).clone(), self.copies_lost.get_or_create(&labels).clone())
    }

    /// Octets that a place was given.
    pub(crate) fn copied_bytes(&self, place: &str) -> Counter {
        self.copied_bytes.get_or_create(&vec![("to", place.to_owned())]).clone()
    }

    /// Counts calls that no route was for.
    pub(crate) fn unmatched(&self) -> Counter {
        self.unmatched.clone()
    }

    /// What a listener's peers hold now.
    pub(crate) fn listener(&self, name: &str, connections: usize, memory: usize) {
        let labels = vec![("listener", name.to_owned())];
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.connections.get_or_create(&labels).set(number(connections));
        self.memory.get_or_create(&labels).set(number(memory));
    }

    /// Forgets a listener that is no more.
    pub(crate) fn forget_listener(&self, name: &str) {
        let labels = vec![("listener", name.to_owned())];
        self.connections.remove(&labels);
        self.memory.remove(&labels);
    }

    /// A configuration was read again.
    pub(crate) fn reloaded(&self, taken: bool) {
        let result = if taken { "taken" } else { "refused" };
        self.reloads.get_or_create(&vec![("result", result.to_owned())]).inc();
    }
}

/// What is counted of a route. Counters of outcomes that most calls have are looked up once, when the route
/// is made; a failure's kind is looked up when one ends so.
#[derive(Clone)]
pub(crate) struct RouteMetrics {
    name: String,
    calls: Family<Labels, Counter>,
    refused: Family<Labels, Counter>,
    pub(crate) done: Counter,
    pub(crate) raised: Counter,
    seconds: Histogram,
    pub(crate) under_way: Gauge,
    pub(crate) retries: Counter,
    pub(crate) signals: Counter,
    pub(crate) references: Gauge,
}

impl RouteMetrics {
    /// A call ended with a failure.
    pub(crate) fn failed(&self, kind: Kind) {
        let labels = vec![("route", self.name.clone()), ("outcome", kind.word().to_owned())];
        self.calls.get_or_create(&labels).inc();
    }

    /// The broker refused a call, for this reason.
    pub(crate) fn refused(&self, why: &str) {
        let labels = vec![("route", self.name.clone()), ("why", why.to_owned())];
        self.refused.get_or_create(&labels).inc();
    }

    /// How long a call took.
    pub(crate) fn took(&self, time: Duration) {
        self.seconds.observe(time.as_secs_f64());
    }
}

/// What is counted of a target.
#[derive(Clone)]
pub(crate) struct TargetMetrics {
    pub(crate) calls: Counter,
    pub(crate) up: Gauge,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_each_family_with_its_labels() {
        let metrics = Metrics::new();
        let route = metrics.route("orders");
        route.done.inc();
        route.failed(Kind::Busy);
        route.took(Duration::from_millis(3));
        metrics.target("orders", "x://h").up.set(1);
        let page = metrics.page();
        for line in [
            "everywire_broker_calls_total{route=\"orders\",outcome=\"done\"} 1",
            "everywire_broker_calls_total{route=\"orders\",outcome=\"busy\"} 1",
            "everywire_broker_call_seconds_bucket{le=\"0.005\",route=\"orders\"} 1",
            "everywire_broker_target_up{route=\"orders\",target=\"x://h\"} 1",
            "# EOF",
        ] {
            assert!(page.contains(line), "{line} is not in {page}");
        }
    }
}
