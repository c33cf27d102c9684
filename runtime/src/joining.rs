//! Serving behind a router: joining it, and coming back when it was gone.

use crate::builder::Notice;
use crate::connection::Role;
use crate::shared::Shared;
use everywire_model::{Failure, Profile, Wire};
use std::time::Duration;

/// The first pause before a router that is gone is looked for again; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(250);
/// The longest.
const LONGEST: Duration = Duration::from_secs(30);

impl Shared {
    /// Connects to the router, and serves on that connection.
    pub(crate) fn join(&self, wire: &'static dyn Wire, profile: &Profile) -> Result<(), Failure> {
        let connection = self.open(wire, profile, Role::Joined, None)?;
        self.shard().and_then(|shard| shard.adopt(&connection)).map_err(crate::shared::no_loop)?;
        connection.begin_serving();
        Ok(())
    }

    /// The router is gone: looks for it again until it is back, or this node ends.
    pub(crate) fn left(&self, wire: &'static dyn Wire, profile: &Profile, failure: &Failure) {
        if !self.serves_behind(profile) {
            return;
        }
        self.notice(&Notice::Left { failure: failure.clone() });
        let (node, profile) = (self.weak(), profile.clone());
        let again = move || {
            let mut pause = FIRST;
            loop {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST);
                let Some(node) = node.upgrade().filter(|node| node.serves_behind(&profile)) else { return };
                match node.join(wire, &profile) {
                    Ok(()) => {
                        let place = profile.endpoints.first().map(ToString::to_string).unwrap_or_default();
                        return node.notice(&Notice::Joined { place });
                    }
                    Err(failure) => node.notice(&Notice::Left { failure }),
                }
            }
        };
        // Without a thread nobody looks: the first notice has said that it is gone.
        let _ = std::thread::Builder::new().name("everywire-join".into()).spawn(again);
    }
}
