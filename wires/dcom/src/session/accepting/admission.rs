//! Whether a call is let through: what the place demands, and what anybody may ask.
//!
//! A peer's level is that of the security context by which the call came. Whoever is refused hears `access
//! denied` alone; the node's log gets the reason, once for a connection.

use super::state::Accepting;
use crate::security::{Level, address_of_peer};
use crate::{ENDPOINT_MAPPER, MANAGEMENT, OBJECT_EXPORTER};
use everywire_model::{PeerAddress, Profile};
use uuid::Uuid;

impl Accepting {
    /// Whether a call that came protected by `shield` may be executed.
    #[inline]
    pub(super) fn admits(&self, shield: Option<usize>, iid: Uuid, opnum: u16) -> bool {
        let level = match self.channel.shield(shield) {
            // These two differ from integrity in name only.
            Some(shield) if matches!(shield.level, Level::Call | Level::Packet) => Level::Integrity,
            Some(shield) => shield.level,
            None => Level::None,
        };
        level >= self.place.level || self.is_open(iid, opnum)
    }

    /// Tells the node, once for a connection, that calls come at too low a level: the peer hears no more than that access is denied.
    #[cold]
    pub(super) fn tell_level(&mut self, shield: Option<usize>) {
        if std::mem::replace(&mut self.told_level, true) {
            return;
        }
        let used = self.channel.shield(shield).map_or(Level::None, |held| held.level);
        let (used, least) = (used.name(), self.place.level.name());
        self.tell_refusal(&format!(
            "it calls at level `{used}`, and this address takes `{least}` at least (level=)"
        ));
    }

    /// Tells the node why a peer was not let in, which the peer is not told.
    #[cold]
    pub(super) fn tell_refusal(&self, why: &str) {
        if let Some(exporter) = &self.exporter {
            exporter.objects().refused(&self.peer.text, why);
        }
    }

    /// What may be asked by those whom nobody knows.
    #[cold]
    fn is_open(&self, iid: Uuid, opnum: u16) -> bool {
        let lookups = self.place.open_lookups || self.local;
        match iid {
            // A client asks before it authenticates whether anybody is there, and which version of ORPC is
            // spoken.
            // ServerAlive and ServerAlive2 (MS-DCOM 3.1.2.5.1.4).
            OBJECT_EXPORTER => matches!(opnum, 3 | 5),
            // All but stopping it.
            MANAGEMENT => lookups && opnum != 3,
            // ept_lookup, ept_map, ept_lookup_handle_free.
            ENDPOINT_MAPPER => lookups && matches!(opnum, 2..=4),
            _ => false,
        }
    }
}

/// Whether a peer is on this machine.
pub(super) fn is_local(peer: &PeerAddress, place: &Profile) -> bool {
    if !super::binding::is_tcp(place) {
        return true;
    }
    address_of_peer(peer).is_some_and(|address| address.is_loopback())
}
