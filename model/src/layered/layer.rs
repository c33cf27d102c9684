//! What the crate of a layer exports.

use super::options::Layered;
use crate::failure::Failure;
use crate::session::Session;
use std::sync::Arc;

/// Who a layer proved the peer to be.
#[derive(Debug, Clone)]
pub struct PeerIdentity {
    /// The account, the same text whichever of its names was used.
    pub account: Option<Arc<str>>,
    /// How it was authenticated, such as `TLS client certificate`.
    pub authentication: &'static str,
}

/// Makes the session above a layer, once the layer knows the peer.
pub type MakeSession = Box<dyn FnOnce(&PeerIdentity) -> Box<dyn Session> + Send>;

/// A layer: what its crate exports.
pub trait TransportLayer: Send + Sync {
    /// Its name: one of [`super::NAMES`].
    fn name(&self) -> &'static str;

    /// The side that connects, as an address says.
    ///
    /// # Errors
    /// The options are none of this side's, or what they name cannot be used.
    fn connecting(&self, layered: &Layered) -> Result<Arc<dyn LayerSide>, Failure>;

    /// The side that listens, as an address says.
    ///
    /// # Errors
    /// The options are none of this side's, or what they name cannot be used.
    fn listening(&self, layered: &Layered) -> Result<Arc<dyn LayerSide>, Failure>;
}

/// One side of a layer, set up once and shared by its connections.
pub trait LayerSide: Send + Sync {
    /// A session that carries another one. Its [`crate::Event::Ready`] comes after the layer's handshake, with the account
    /// that the layer proved where the session above proves none.
    ///
    /// # Errors
    /// The layer cannot begin.
    fn session(&self, make: MakeSession) -> Result<Box<dyn Session>, Failure>;
}
