//! Serving behind a router: joining it, and coming back when it was gone.

use crate::connection::Role;
use crate::failures::{no_loop, stopped};
use crate::notice::Notice;
use crate::shared::Shared;
use everywire_model::{BindAddress, Failure, Initiator, Kind, Profile, Wire};
use std::time::Duration;

/// The first pause before a router that is gone is looked for again; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(250);
/// The longest.
const LONGEST: Duration = Duration::from_secs(30);

impl Shared {
    /// Connects to the router, registers the connection with an event loop, and serves on it. Blocks until
    /// the router has let this process in, or 30 s.
    ///
    /// # Errors
    /// Nobody is there, or this process is not let in.
    pub(crate) fn join(
        &self,
        wire: &'static dyn Wire,
        profile: &Profile,
        address: &str,
    ) -> Result<BindAddress, Failure> {
        let connection = self.open(wire, profile, Role::Joined, None)?;
        let granted = connection.granted(profile).unwrap_or_else(|| profile.clone());
        connection.joins(address);
        self.shard().and_then(|shard| shard.adopt(&connection)).map_err(no_loop)?;
        connection.begin_serving();
        if connection.is_over() {
            // It may have been lost before it could say where it had been.
            connection.left(&Failure::new(Kind::Unreachable, Initiator::Peer, "the router was lost at once"));
        } else if !self.serves_behind(address) {
            connection.cut(&stopped());
        }
        Ok(BindAddress::Join(granted))
    }

    /// The router is gone: a thread looks for it, with growing pauses, until it is back or this node does not
    /// serve there any more. What peers ask meanwhile does not reach this process.
    pub(crate) fn left(&self, wire: &'static dyn Wire, address: &str, failure: &Failure) {
        // Whoever is about to end has left by itself.
        if self.is_draining() || !self.serves_behind(address) {
            return;
        }
        self.notice(&Notice::Left { failure: failure.clone() });
        // The thread does not keep the node, which may be dropped while it sleeps.
        let (node, address) = (self.weak(), address.to_owned());
        let again = move || {
            let mut pause = FIRST;
            loop {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST);
                let Some(node) = node.upgrade().filter(|node| node.serves_behind(&address)) else { return };
                // The address may lead elsewhere by now.
                let joined = wire.listen(&address).and_then(|place| {
                    let granted = node.join(wire, place.profile(), &address)?;
                    node.moved(None, &address, granted);
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
