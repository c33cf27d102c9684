//! The layers that this process knows: the one list of them.

use everywire_model::{Endpoint, Failure, Initiator, Kind, LayerSide, TransportLayer};
use std::sync::Arc;

static LAYERS: &[&dyn TransportLayer] = &[
    #[cfg(feature = "tls")]
    &everywire_tls::TLS,
];

/// The side of a layer that connects to an endpoint; nothing where no layer lies over its stream.
pub(crate) fn connecting(endpoint: &Endpoint) -> Result<Option<Arc<dyn LayerSide>>, Failure> {
    let Some(layered) = endpoint.layer() else { return Ok(None) };
    named(layered.layer)?.connecting(layered).map(Some)
}

/// The side of a layer that listens at an endpoint; nothing where no layer lies over its stream.
pub(crate) fn listening(endpoint: &Endpoint) -> Result<Option<Arc<dyn LayerSide>>, Failure> {
    let Some(layered) = endpoint.layer() else { return Ok(None) };
    named(layered.layer)?.listening(layered).map(Some)
}

/// A layer by the name that stands in addresses.
fn named(name: &str) -> Result<&'static dyn TransportLayer, Failure> {
    LAYERS.iter().find(|layer| layer.name() == name).copied().ok_or_else(|| {
        let what = format!("this program was built without the layer `{name}`");
        Failure::new(Kind::Unsupported, Initiator::User, what)
            .with_hint(format!("build the crate `everywire` with its feature `{name}`"))
    })
}
