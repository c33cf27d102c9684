//! Whose turn it is on a connection that carries one call at a time.

use super::state::Connection;
use std::sync::Arc;

/// The right to begin the next call on a connection; given back when dropped, whether it was used or not. It
/// keeps the connection.
#[must_use]
pub(crate) struct CallPermit(Option<Arc<Connection>>);

impl CallPermit {
    /// None is needed: the connection carries several calls at once, or everybody shares it.
    pub(crate) fn any() -> Self {
        Self(None)
    }
}

impl Drop for CallPermit {
    #[inline]
    fn drop(&mut self) {
        if let Some(connection) = &self.0 {
            connection.turns.give_back();
        }
    }
}

impl Connection {
    /// The right to begin a call without waiting for one that is under way, if there is none. If it carries one at a time,
    /// nobody else gets it until the turn is given back and nothing is outstanding.
    #[inline]
    pub(crate) fn take(self: &Arc<Self>) -> Option<CallPermit> {
        if !self.serial {
            return Some(CallPermit::any());
        }
        self.turns.take().then(|| CallPermit(Some(Arc::clone(self))))
    }
}
