//! The fifth race: the same client and the same backend, ours, with something between them that passes
//! messages on, or with nothing.
//!
//! * A *lane* is a wire with its binding. A *hop* is the program between; a *form* is what it does with
//!   a message. A contestant is one of each.
//! * The contestant without a hop is what the others add to; the forwarder of raw bytes is the least
//!   that one can add.
//! * The backend publishes the address of the hop as its own, so that references in answers lead
//!   through the hop, too.
//! * Invariant: a form that a hop does not have is a contestant all the same, which fails with a
//!   message of its own when it is started, and so is named in the report.
//! * Invariant: contestants of a lane stand together in the list; the engine runs lane by lane.

mod broker;
mod forwarder;
mod proxies;
mod router;

use super::ours::orders;
use super::published::{CHANGE_COPY, COPY, COPY_CHANGE, PASS, TYPED};
use super::{Contestant, Intermediary, Missing, Route, ServerPlace, Setup};
use crate::measure::Plan;
use crate::placement::Placement;
use crate::process::Launch;
use crate::race::Race;
use everywire_model::Failure;
pub(in crate::contestants) use orders::Lane;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The mode of those who meet.
const DIRECT: &str = "direct";
/// All forms, and their words in names.
const FORMS: [(&str, &str); 5] = [
    (PASS, "pass"),
    (COPY, "copy"),
    (CHANGE_COPY, "change-copy"),
    (COPY_CHANGE, "copy-change"),
    (TYPED, "typed"),
];

/// The one message of those who sleep: over one connection, since they sleep before they take each.
const SLEEPY: &str = "10 kB";
/// A backend starts in this time, and so do most hops.
const STARTING: Duration = Duration::from_millis(40);

/// A program that stands between client and backend. It is started when the backend is ready.
trait Hop {
    /// Builds what is to be built, once. Returns its version, if it has one of its own.
    fn prepare(&self) -> Result<Option<String>, Missing>;
    /// The program that listens at port `front` and connects to port `back`, both of the loopback
    /// interface.
    fn launch(&self, stand: &ServerPlace<'_>, front: u16, back: u16) -> Result<Launch, Failure>;
    /// The file of this directory that it writes when it is ready; `None`: it is when it takes connections.
    fn ready(&self, _: &Path) -> Option<PathBuf> {
        None
    }
    /// The file of this directory in which it tells its own references, where clients cannot do with those of the backend at the hop's port.
    fn references(&self, _: &Path) -> Option<PathBuf> {
        None
    }
    /// About how long it takes to start.
    fn starting(&self) -> Duration {
        STARTING
    }
    /// Whether it is so slow that a single message says all.
    fn sleeps(&self) -> bool {
        false
    }
}

/// Everybody, lane by lane.
pub(super) fn all() -> Vec<Contestant> {
    Lane::ALL.into_iter().flat_map(of).collect()
}

/// The contestants of one lane: none between, the forwarder, the proxies, our broker in all forms, and
/// Mono's router where it has the binding.
fn of(lane: Lane) -> Vec<Contestant> {
    let contestant = |family: &'static str, name: String, title: String, route, mode, hop| Contestant {
        name: format!("{family}-{name}"),
        title: format!("{}: {title}", lane.title()),
        family,
        wire: Some(lane.wire()),
        transport: "tcp",
        mode,
        route,
        published: None,
        setup: Box::new(HopSetup { lane, hop }),
    };
    let passing = |family, title: &str, route, hop: Box<dyn Hop>| {
        contestant(family, lane.name().to_owned(), title.to_owned(), route, PASS, Some(hop))
    };
    let mut all = vec![
        contestant(DIRECT, lane.name().to_owned(), "no hop".to_owned(), Route::Direct, DIRECT, None),
        passing("forwarder", "raw forwarder", Route::Forwarder, Box::new(forwarder::Forwarder)),
    ];
    all.push(passing(
        "haproxy",
        if lane.is_http() { "HAProxy (HTTP)" } else { "HAProxy (TCP)" },
        Route::Haproxy,
        Box::new(proxies::Haproxy { http: lane.is_http() }),
    ));
    if lane.is_http() {
        all.push(passing("nginx", "nginx", Route::Nginx, Box::new(proxies::Nginx)));
    }
    for (form, word) in FORMS {
        let hop: Box<dyn Hop> = Box::new(broker::Broker { lane, form });
        let (name, title) = (format!("broker-{}-{word}", lane.name()), format!("Everywire's broker, {form}"));
        all.push(contestant(super::ours::FAMILY, name, title, Route::Broker, form, Some(hop)));
    }
    if let Some(binding) = router::binding(lane) {
        for (form, word) in FORMS {
            let hop: Box<dyn Hop> = Box::new(router::Router { binding, form: word, sleeps: false });
            let title = format!("router on Mono without its sleeps, {form}");
            let name = format!("router-{}-{word}", lane.name());
            all.push(contestant(router::FAMILY, name, title, Route::MonoRouter, form, Some(hop)));
        }
        let hop: Box<dyn Hop> = Box::new(router::Router { binding, form: FORMS[0].1, sleeps: true });
        let name = format!("router-{}-shipped", lane.name());
        let title = format!("router on Mono as shipped, {PASS}");
        all.push(contestant(router::FAMILY, name, title, Route::MonoRouter, PASS, Some(hop)));
    }
    all
}

/// A client and a backend with a hop between them, or without.
struct HopSetup {
    lane: Lane,
    hop: Option<Box<dyn Hop>>,
}

impl Setup for HopSetup {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        self.hop.as_ref().map_or(Ok(None), |hop| hop.prepare())
    }

    fn enters(&self, race: &Race) -> bool {
        race.passes()
    }

    fn does(&self, _: &Race, operation: &str) -> bool {
        !self.hop.as_ref().is_some_and(|hop| hop.sleeps()) || operation == SLEEPY
    }

    fn server(&self, stand: &ServerPlace<'_>) -> Result<Option<Launch>, Failure> {
        orders::backend(self.lane, stand).map(Some)
    }

    fn client(&self, stand: &ServerPlace<'_>, race: &Race, plan: &Plan) -> Result<Launch, Failure> {
        let mut plan = plan.clone();
        if self.hop.as_ref().is_some_and(|hop| hop.sleeps()) {
            plan.operation = Some(SLEEPY.to_owned());
        }
        let references = self.hop.as_ref().and_then(|hop| hop.references(stand.dir));
        orders::client(self.lane, stand, references.as_deref().unwrap_or(&stand.ref_file), race, &plan)
    }

    fn lane(&self) -> Option<&'static str> {
        Some(self.lane.title())
    }

    fn hop(&self, stand: &ServerPlace<'_>, front: u16, back: u16) -> Result<Option<Intermediary>, Failure> {
        let Some(hop) = &self.hop else { return Ok(None) };
        Ok(Some(Intermediary { launch: hop.launch(stand, front, back)?, ready: hop.ready(stand.dir) }))
    }

    fn starting(&self) -> Duration {
        STARTING + self.hop.as_ref().map_or(Duration::ZERO, |hop| hop.starting())
    }

    /// Hops listen on the loopback interface.
    fn runs_at(&self, placement: &Placement) -> bool {
        !placement.remote
    }

    fn frames(&self) -> Option<fn(&[u8]) -> usize> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::ALL;

    #[test]
    fn every_lane_has_every_form_of_ours_and_somebody_to_beat() {
        let race = ALL.iter().find(|race| race.passes()).unwrap();
        let all = all();
        for lane in Lane::ALL {
            let of_lane: Vec<&Contestant> =
                all.iter().filter(|held| held.setup.lane() == Some(lane.title())).collect();
            let forms = |family: &str| of_lane.iter().filter(|held| held.family == family).count();
            assert_eq!((forms(super::super::ours::FAMILY), forms(DIRECT), forms("forwarder")), (5, 1, 1));
            assert_eq!(forms("haproxy") + forms("nginx"), if lane.is_http() { 2 } else { 1 });
            assert!(of_lane.iter().all(|held| held.setup.enters(race)));
        }
        let others = ALL.iter().filter(|race| !race.passes());
        assert!(others.flat_map(|race| all.iter().map(|held| held.setup.enters(race))).all(|enters| !enters));
    }
}
