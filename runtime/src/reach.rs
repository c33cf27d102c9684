//! Where others reach the ports that a node listens on: see [`everywire_model::reach`].

use crate::sync::lock;
use everywire_model::reach::{Publish, Reach, Wildcard, reach, wildcard};
use everywire_model::{BindAddress, Endpoint, Lease, Reference};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a list of the machine's addresses is used before the system is asked again: publishing many
/// references in a row asks once.
const FRESH: Duration = Duration::from_secs(1);

/// The machine's addresses, and what its listeners are to be published as.
#[derive(Default)]
pub(crate) struct Addresses {
    /// Listeners as they are bound, and what their address options say.
    said: Mutex<Vec<(Endpoint, Publish)>>,
    /// The machine's addresses, and when the system was asked for them.
    own: Mutex<Option<(Instant, Arc<[IpAddr]>)>>,
}

impl Addresses {
    /// Publishes a listener under this address.
    pub(crate) fn say(&self, bound: Option<&Endpoint>, publish: Option<Publish>) {
        if let (Some(bound), Some(publish)) = (bound, publish) {
            let mut said = lock(&self.said);
            said.retain(|(held, _)| held != bound);
            said.push((bound.clone(), publish));
        }
    }

    /// Where others reach a place.
    pub(crate) fn reach(&self, place: &BindAddress) -> Reach {
        match (place, place.profile().endpoints.first()) {
            (BindAddress::Listen(_), Some(bound)) => {
                let said =
                    lock(&self.said).iter().find(|(held, _)| held == bound).map(|(_, said)| said.clone());
                let own =
                    if said.is_none() && wildcard(bound).is_some() { self.own() } else { Arc::default() };
                reach(bound, said.as_ref(), &own)
            }
            _ => Reach { endpoints: place.profile().endpoints.clone(), wildcard: false },
        }
    }

    /// Whether a place may be known by other addresses than its own.
    pub(crate) fn is_known_otherwise(&self, place: &BindAddress) -> bool {
        let Some(bound) = place.profile().endpoints.first() else { return false };
        wildcard(bound).is_some() || lock(&self.said).iter().any(|(held, _)| held == bound)
    }

    /// The same places, as others reach them.
    pub(crate) fn published(&self, places: &[BindAddress]) -> Vec<BindAddress> {
        let published = |place: &BindAddress| {
            let mut place = place.clone();
            place.profile_mut().endpoints = self.reach(&place).endpoints;
            place
        };
        places.iter().map(published).collect()
    }

    /// Notes in a reference which of its listeners accept at every address of the machine. A caller in this
    /// process knows itself by it. Only profiles without a lease get the note: a lease is the wire's own.
    pub(crate) fn mark(&self, places: &[BindAddress], reference: &mut Reference) {
        let bound = |place: &BindAddress| place.profile().endpoints.first().cloned();
        let open: Vec<Endpoint> =
            places.iter().filter(|place| self.reach(place).wildcard).filter_map(bound).collect();
        if open.is_empty() {
            return;
        }
        let lease = Lease::new(Arc::new(Wildcard(open)));
        let free = reference.profiles.iter_mut().filter(|profile| profile.lease.is_empty());
        free.for_each(|profile| profile.lease = lease.clone());
    }

    /// The addresses of this machine, as its interfaces have them.
    fn own(&self) -> Arc<[IpAddr]> {
        let mut held = lock(&self.own);
        match &*held {
            Some((when, own)) if when.elapsed() < FRESH => Arc::clone(own),
            _ => {
                let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
                let own: Arc<[IpAddr]> = interfaces.iter().map(if_addrs::Interface::ip).collect();
                *held = Some((Instant::now(), Arc::clone(&own)));
                own
            }
        }
    }
}
