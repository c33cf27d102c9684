//! Connections of the calling side: one for each place, shared by all who call there.

use crate::connection::backward::leads_back;
use crate::connection::{CallPermit, Connection, Role};
use crate::failures::{nobody_at, stopped};
use crate::private_connections::PrivateConnections;
use crate::shared::{PoolKey, Shared};
use crate::sync::lock;
use crate::transport::{Stream, layers};
use everywire_model::{Completed, Endpoint, Failure, Initiator, Kind, Profile, ProfileOptions, Wire};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Connections to one place beyond the first, where each carries one call at a time
/// (`Session::one_at_a_time`). The last one is shared: its callers wait for their turn.
const ABREAST: u8 = 63;

impl Shared {
    /// The connection to an endpoint, and the turn to call on it; all objects there share one, except those
    /// of other sets (`PrivateConnections`) and options. Connects if there is none, which may block until `until` (30 s
    /// where it is `None`).
    ///
    /// # Errors
    /// No such wire is known, nobody is there, or the peer does not let this process in. No call has begun.
    pub(crate) fn connection(
        &self,
        profile: &Profile,
        endpoint: &Endpoint,
        until: Option<Instant>,
        apart: Option<&PrivateConnections>,
    ) -> Result<(Arc<Connection>, CallPermit), Failure> {
        let wire = self.wire_named(profile.wire).ok_or_else(|| nobody_at(endpoint))?;
        wire.check_way(profile, endpoint).map_err(|failure| failure.with_completed(Completed::No))?;
        // An option that only tells by which connection of its peer a reference came says nothing of this one.
        let options = if leads_back(profile) { ProfileOptions::default() } else { profile.options.clone() };
        let mut place = PoolKey {
            wire: profile.wire,
            endpoint: endpoint.clone(),
            scope: options.scope(profile),
            options,
            apart: apart.map(|apart| apart.number),
            abreast: 0,
        };
        {
            // Where one carries one call at a time, there are some; the last one is shared.
            let links = lock(&self.links);
            while let Some(held) = links.get(&place)
                && !held.is_over()
            {
                match held.take() {
                    Some(turn) => return Ok((Arc::clone(held), turn)),
                    None if place.abreast == ABREAST => return Ok((Arc::clone(held), CallPermit::any())),
                    None => place.abreast += 1,
                }
            }
        }
        // No lock is held while this thread connects: others reach other places meanwhile.
        let way = Profile { endpoints: vec![endpoint.clone()], ..profile.clone() };
        let made = self.open(wire, &way, Role::Calling, until)?;
        if let Some(apart) = apart {
            apart.take_in(&made)?;
        }
        // Nobody else has it yet.
        let mut turn = made.take().unwrap_or_else(CallPermit::any);
        let (held, gone) = {
            let mut links = lock(&self.links);
            // Under the lock: whoever stops the node takes out what is there after that.
            if self.stopped.load(Ordering::Acquire) {
                // Nobody would end it: it lives as long as the object that asked for it.
                drop(links);
                return Ok((made, turn));
            }
            let gone: Vec<_> = links.extract_if(|_, connection| connection.is_over()).collect();
            // Another thread may have been faster: then both use its connection, unless it carries one call at a time.
            while made.serial && place.abreast < ABREAST && links.contains_key(&place) {
                place.abreast += 1;
            }
            (Arc::clone(links.entry(place).or_insert_with(|| Arc::clone(&made))), gone)
        };
        if !Arc::ptr_eq(&held, &made) {
            turn = held.take().unwrap_or_else(CallPermit::any);
        }
        // Without the lock: they may hold what is the user's.
        drop((gone, made));
        if !self.directory.is_empty() {
            self.await_callbacks(&held)?;
        }
        Ok((held, turn))
    }

    /// Has event loops read the connections that were made to call, on wires where a peer may call back over
    /// them, now that there is something to be called.
    pub(crate) fn await_all_callbacks(&self) {
        let links: Vec<_> = lock(&self.links).values().cloned().collect();
        for connection in links {
            // Without an event loop nothing is served anywhere: that shows where one is needed more.
            let _ = self.await_callbacks(&connection);
        }
    }

    /// Lets go of connections whose peers have left while nobody used them.
    pub(crate) fn sweep(&self) {
        let held: Vec<_> = lock(&self.links).values().cloned().collect();
        held.iter().for_each(|connection| connection.notice_end());
        let gone: Vec<_> = lock(&self.links).extract_if(|_, connection| connection.is_over()).collect();
        // Without the lock: they may hold what is the user's.
        drop((held, gone));
    }

    /// Withdraws a call from whichever of the connections that carry one at a time has it.
    pub(crate) fn withdraw_abreast(&self, ticket: u64) {
        let serial = |connection: &&Arc<Connection>| connection.serial && !connection.is_over();
        let held: Vec<_> = lock(&self.links).values().filter(serial).cloned().collect();
        // Without the lock: whoever waits for the outcome is the user's.
        let _ = held.iter().any(|connection| connection.withdraw(ticket));
    }

    fn await_callbacks(&self, connection: &Arc<Connection>) -> Result<(), Failure> {
        if connection.is_called_back() && !connection.is_over() {
            self.stand_by(connection.wire);
            self.register(connection)?;
            connection.listen_on();
        }
        Ok(())
    }

    /// Connects, and waits until the peer lets calls through. The first endpoint that accepts a connection is
    /// taken, even if its greeting fails then: whoever has several profiles tries each by itself.
    ///
    /// # Errors
    /// As `Shared::connection`.
    pub(crate) fn open(
        &self,
        wire: &'static dyn Wire,
        profile: &Profile,
        role: Role,
        until: Option<Instant>,
    ) -> Result<Arc<Connection>, Failure> {
        // At least a millisecond for each step, so that a deadline that has just passed fails in the step
        // that waits.
        let until = until.unwrap_or_else(|| Instant::now() + Duration::from_secs(30));
        let within = || until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let mut last = None;
        for endpoint in &profile.endpoints {
            let layer = layers::connecting(endpoint)?;
            match Stream::connect(endpoint, within()) {
                Ok(stream) => {
                    let way = Profile { endpoints: vec![endpoint.clone()], ..profile.clone() };
                    let node = self.arc().ok_or_else(stopped)?;
                    let layer = layer.as_ref();
                    let new = |stream, way| {
                        Connection::new(stream, way, layer, Arc::clone(&node), &self.allowance, wire, role)
                    };
                    let made = new(stream, &way)?;
                    let Err(failure) = made.admit(until) else { return Ok(made) };
                    // The peer may want to be greeted in another way.
                    let Some(way) = made.again() else { return Err(failure) };
                    let made = new(Stream::connect(endpoint, within())?, &way)?;
                    return made.admit(until).map(|()| made);
                }
                Err(failure) => last = Some(failure),
            }
        }
        Err(last.unwrap_or_else(|| {
            Failure::new(Kind::BadReference, Initiator::User, "there is no address to connect to")
        }))
    }
}
