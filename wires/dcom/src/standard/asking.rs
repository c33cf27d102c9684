//! Asking a served object on one's own account.
//!
//! It may answer on another thread, later, or never: nothing here waits.

use super::values::{kept, value_of};
use crate::exporter::Exporter;
use bytes::Bytes;
use everywire_model::value::Value;
use everywire_model::{
    Answer, Body, CallId, Encode, Expects, Failure, Incoming, Initiator, Kind, Request, Servant, Shape, Visit,
};
use std::sync::{Arc, Mutex};

/// What a servant said.
#[derive(Debug)]
pub(super) enum ServantReply {
    /// Its results, as one struct, and how it succeeded.
    Done(Value, i32),
    /// An exception, by its identity.
    Raised(String),
    /// A failure.
    Failed(Failure),
    /// The servant named another object that has to be asked instead.
    Moved,
}

/// Calls the operation number `index` of a servant; `done` gets what it says. It is dropped if nothing is ever said.
/// The caller's thread runs the servant as long as that does not hand the request on. References in
/// `arguments` are passed as they are and count nothing.
pub(super) fn ask(
    exporter: &Exporter,
    key: &[u8],
    servant: Arc<dyn Servant>,
    index: usize,
    arguments: Body,
    done: impl FnOnce(ServantReply) + Send + 'static,
) {
    let operation = servant.interface().operations.get(index);
    let shape = operation.map_or(Shape::Void, |operation| operation.results.clone());
    let name = operation.map_or("", |operation| &operation.name);
    let done = Mutex::new(Some(done));
    let link = exporter.objects().aside(Box::new(move |answer| {
        let told = match answer {
            Answer::Done(results) => taken(results, &shape).unwrap_or_else(ServantReply::Failed),
            Answer::Raised { shape, .. } => ServantReply::Raised(shape.name.to_string()),
            Answer::Failed(failure) | Answer::Passed { failure, .. } => ServantReply::Failed(failure.clone()),
            Answer::Moved(_) => ServantReply::Moved,
        };
        // Not under the lock: `done` may well ask something else.
        let done = done.lock().ok().and_then(|mut held| held.take());
        if let Some(done) = done {
            done(told);
        }
    }));
    let incoming = Incoming {
        id: CallId(0),
        sender: Bytes::new(),
        key: Bytes::copy_from_slice(key),
        interface: Bytes::copy_from_slice(&crate::iid_of(servant.interface()).to_bytes_le()),
        operation: Bytes::copy_from_slice(name.as_bytes()),
        body: arguments,
        expects: Expects::Reply,
    };
    Arc::clone(&servant).dispatch(Request::new(index, incoming, link, servant));
}

/// The results of a servant; the number beside them must not tell of a failure.
fn taken(results: &dyn Encode, shape: &Shape) -> Visit<ServantReply> {
    let body = kept(results)?;
    if body.status() < 0 {
        let what = "values do not fit their shapes: a number that tells of a failure came with results";
        return Err(Failure::new(Kind::BadArgument, Initiator::Here, what));
    }
    Ok(ServantReply::Done(value_of(&body, shape)?, body.status()))
}
