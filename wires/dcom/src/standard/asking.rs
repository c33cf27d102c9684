//! Asking a served object on one's own account.
//!
//! It may answer on another thread, later, or never: nothing here waits.

use super::values::{body_of, collect_results};
use crate::exporter::Exporter;
use bytes::Bytes;
use everywire_model::value::Value;
use everywire_model::{Answer, CallId, Expects, Failure, Incoming, Request, Servant};
use std::sync::{Arc, Mutex};

/// What a servant said.
#[derive(Debug)]
pub(super) enum Told {
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
    arguments: Value,
    done: impl FnOnce(Told) + Send + 'static,
) {
    let done = Mutex::new(Some(done));
    let link = exporter.objects().aside(Box::new(move |answer| {
        let told = match answer {
            Answer::Done(results) => match collect_results(results) {
                Ok((results, status)) => Told::Done(results, status),
                Err(failure) => Told::Failed(failure),
            },
            Answer::Raised { shape, .. } => Told::Raised(shape.name.to_string()),
            Answer::Failed(failure) | Answer::Passed { failure, .. } => Told::Failed(failure.clone()),
            Answer::Moved(_) => Told::Moved,
        };
        // Not under the lock: `done` may well ask something else.
        let done = done.lock().ok().and_then(|mut held| held.take());
        if let Some(done) = done {
            done(told);
        }
    }));
    let name = servant.interface().operations.get(index).map_or("", |operation| &operation.name);
    let incoming = Incoming {
        id: CallId(0),
        sender: Bytes::new(),
        key: Bytes::copy_from_slice(key),
        interface: Bytes::copy_from_slice(&crate::iid_of(servant.interface()).to_bytes_le()),
        operation: Bytes::copy_from_slice(name.as_bytes()),
        body: body_of(arguments),
        expects: Expects::Reply,
    };
    Arc::clone(&servant).dispatch(Request::new(index, incoming, link, servant));
}
