//! Serving behind a router: joining it, and coming back when it was gone.

use crate::connection::Role;
use crate::failures::{no_loop, stopped};
use crate::notice::Notice;
use crate::shared::Shared;
use everywire_model::{Failure, Initiator, Kind, Profile, Wire};
use std::time::Duration;

/// The first pause before a router that is gone is looked for again; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(250);
/// The longest.
const LONGEST: Duration = Duration::from_secs(30);

impl Shared {
    /// Connects to the router, and serves on that connection.
    pub(crate) fn join(
        &self,
        wire: &'static dyn Wire,
        profile: &Profile,
        address: &str,
    ) -> Result<(), Failure> {
        let connection = self.open(wire, profile, Role::Joined, None)?;
        connection.joins(address);
        self.shard().and_then(|shard| shard.adopt(&connection)).map_err(no_loop)?;
        connection.begin_serving();
        if connection.is_over() {
            // It may have been lost before it could say where it had been.
            connection.left(&Failure::new(Kind::Unreachable, Initiator::Peer, "the router was lost at once"));
        } else if !self.serves_behind(address) {
            connection.cut(&stopped());
        }
        Ok(())
    }

    /// The router is gone: looks for it again until it is back, or this node ends.
    pub(crate) fn left(&self, wire: &'static dyn Wire, address: &str, failure: &Failure) {
        // Whoever is about to end has left by itself.
        if self.is_draining() || !self.serves_behind(address) {
            return;
        }
        self.notice(&Notice::Left { failure: failure.clone() });
        let (node, address) = (self.weak(), address.to_owned());
        let again = move || {
            let mut pause = FIRST;
            loop {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST);
                let Some(node) = node.upgrade().filter(|node| node.serves_behind(&address)) else { return };
                // The address may lead elsewhere by now.
                let joined = wire.listen(&address).and_then(|place| {
                    node.join(wire, place.profile(), &address)?;
                    node.moved(&address, place);
                    Ok(())
                });
                match joined {
                    Ok(()) => return node.notice(&Notice::Joined { place: address }),
                    Err(failure) => node.notice(&Notice::Left { failure }),
                }
            }
        };
        // Without a thread nobody looks: the first notice has said that it is gone.
        let _ = std::thread::Builder::new().name("everywire-join".into()).spawn(again);
    }
}
