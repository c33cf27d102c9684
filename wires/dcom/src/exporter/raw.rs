//! Whole stubs as values, and calls to the system interfaces of other nodes with them.

use super::Exporter;
use crate::security::Security;
use crate::ways::system;
use everywire_model::describe::{Array, Cow, Field, Hold, Shape, Struct};
use everywire_model::{
    Body, Encode, Endpoint, Failure, Initiator, Interface, Kind, Outcome, Reference, Sink, Visit,
};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// How long the keeper waits for another node.
/// The keeper does one thing after another: a node that does not answer delays all others by so much.
const PATIENCE: Duration = Duration::from_secs(5);

/// A stub that was made elsewhere, as the only parameter or result.
pub(crate) struct Raw<'a>(pub(crate) &'a [u8]);

impl Encode for Raw<'_> {
    fn encode(&self, sink: &mut dyn Sink) -> Visit<()> {
        let len = u32::try_from(self.0.len())
            .map_err(|_| Failure::new(Kind::LimitExceeded, Initiator::Here, "a stub of more than 4 GiB"))?;
        let octets = Shape::Array(Hold::new(Array { element: Shape::U8, len }));
        let fields = vec![Field { name: Cow::Borrowed("stub"), shape: octets.clone() }];
        let name = Cow::Borrowed("");
        let list = Shape::Struct(Hold::new(Struct { id: name.clone(), name, fields: Cow::Owned(fields) }));
        sink.open(&list, 1)?;
        sink.bytes(&octets, self.0)?;
        sink.close(&list)
    }
}

impl Exporter {
    /// Calls a system interface of the node at these endpoints, and waits. Only for threads that serve no connection.
    /// The connection is one of the runtime's pool, as any call's. The body is what stands behind ORPCTHAT.
    pub(super) fn ask(
        &self,
        (endpoints, security): (&[Endpoint], &Arc<Security>),
        ipid: Option<Uuid>,
        (interface, opnum): (&'static Interface, u16),
        stub: &[u8],
    ) -> Result<Body, Failure> {
        let index = usize::from(opnum - crate::opnum_base(interface).min(opnum));
        let Some(operation) = interface.operations.get(index) else {
            return Err(Failure::new(Kind::NoOperation, Initiator::Here, "no such system operation"));
        };
        let profiles = vec![system(endpoints.to_vec(), security, ipid)];
        let reference = Reference { profiles, ..Reference::default() };
        let object = self.objects().resolver().resolve(&reference)?;
        let object = object.typed(Hold::Static(interface)).with_deadline(Some(PATIENCE));
        done(object.invoke(operation, &Raw(stub)))
    }
}

/// The results of a call that raises no exception.
pub(crate) fn done(outcome: Outcome<Body>) -> Result<Body, Failure> {
    match outcome {
        Outcome::Done(body) => Ok(body),
        Outcome::Failed(failure) => Err(failure),
        Outcome::Raised(raised) => Err(everywire_model::object::unexpected(&raised.id)),
        Outcome::Moved(_) => {
            Err(Failure::new(Kind::Unreachable, Initiator::Peer, "the object moved too often"))
        }
    }
}
