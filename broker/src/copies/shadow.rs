//! Copies by another route: the same call, of which nobody hears the answer.

use crate::forwarded_call::ForwardedCall;
use crate::route::Route;
use bytes::Bytes;
use everywire::layer::CallerIdentity;
use everywire_model::{
    Answer, Body, BoxFuture, CallId, Endpoint, Expects, Incoming, Interface, Link, Peer, Request, Resolver,
    Servant,
};
use std::sync::Arc;

/// Sends the call of an operation of `from` by the route `to`, as a call that wants no answer, of a caller of
/// whom nothing is known. Returns whether that route has the operation.
pub(super) fn send(to: &Arc<Route>, from: &Route, index: usize, body: &Body) -> bool {
    let operation = from.interface.operations.get(index);
    let found = operation.and_then(|operation| to.interface.index_of(operation.name.as_bytes()));
    let Some((index, target)) = found.zip(to.targets.first()) else { return false };
    let incoming = Incoming {
        id: CallId(0),
        sender: Bytes::new(),
        key: to.key.clone(),
        interface: Bytes::new(),
        operation: Bytes::new(),
        body: body.clone(),
        expects: Expects::Nothing,
    };
    let link = Arc::new(NullLink(target.object.target().resolver()));
    let request = Request::new(index, incoming, link, Arc::new(Shadow(Arc::clone(to))));
    ForwardedCall::begin(request, to, &CallerIdentity::default(), None, None);
    true
}

/// Where answers go that nobody hears.
struct NullLink(Arc<dyn Resolver>);

impl Link for NullLink {
    fn answer(&self, _: CallId, _: Answer<'_>) {}

    fn spawn(&self, _: BoxFuture<'static, ()>) {}

    fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::clone(&self.0)
    }

    fn peer(&self) -> Option<Peer> {
        None
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::InProcess { name: String::new() }
    }
}

/// What the call is of.
struct Shadow(Arc<Route>);

impl Servant for Shadow {
    fn interface(&self) -> &Interface {
        &self.0.interface
    }

    fn dispatch(&self, _: Request) {}
}
