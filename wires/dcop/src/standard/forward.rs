//! Calls to the default object, and to all objects whose ids begin with a prefix.

use super::{Shared, no_object};
use crate::types;
use bytes::Bytes;
use everywire_model::describe::*;
use everywire_model::{Answer, CallId, Expects, Failure, Incoming, Initiator, Kind, Request, Servant};
use std::sync::{Arc, Mutex, PoisonError};

/// The name of the operation that stands for all: no function has it.
pub(super) const ANY: &str = "*";

static OPERATIONS: [Operation; 1] = [operation!("*", () -> Shape::Void)];

static OTHERS: Interface = interface!("DCOPClient", "DCOPClient", [], 0, &OPERATIONS);

/// Passes calls to ids that mean other objects on to these. A call's function stands in its body's context.
pub(super) struct Forward {
    pub(super) shared: Arc<Shared>,
}

impl Forward {
    /// The servant of an object that answers this function, and the operation's number.
    fn find(&self, key: &[u8], function: &[u8]) -> Option<(Arc<dyn Servant>, usize)> {
        self.shared.objects.servants(key).into_iter().find_map(|servant| {
            let index = types::operation(servant.interface(), function)?;
            Some((servant, index))
        })
    }
}

impl Servant for Forward {
    fn interface(&self) -> &Interface {
        &OTHERS
    }

    fn dispatch(&self, mut request: Request) {
        let id = Bytes::copy_from_slice(request.key());
        let function = request.body().context.clone();
        let mut meant = Vec::new();
        for key in self.shared.meant(&id) {
            match self.find(&key, &function) {
                Some((servant, index)) => meant.push((key, servant, index)),
                None => {
                    let what = format!("object `{}` has no such function", key.escape_ascii());
                    let failure = Failure::new(Kind::NoOperation, Initiator::User, what);
                    request.answer(Answer::Failed(&failure));
                    return;
                }
            }
        }
        if meant.is_empty() {
            request.answer(Answer::Failed(&no_object(&id)));
            return;
        }
        let (sender, body) = (Bytes::copy_from_slice(request.sender()), request.body().clone());
        let all = Arc::new(Mutex::new(All { left: meant.len(), request: Some(request) }));
        for (key, servant, index) in meant {
            let incoming = Incoming {
                id: CallId(0),
                sender: sender.clone(),
                key,
                interface: Bytes::new(),
                operation: function.clone(),
                body: body.clone(),
                expects: Expects::Reply,
            };
            let all = Arc::clone(&all);
            let link = self.shared.objects.aside(Box::new(move |answer| All::one(&all, answer)));
            Arc::clone(&servant).dispatch(Request::new(index, incoming, link, servant));
        }
    }
}

/// A call that several objects answer: the last answer counts, or the first failure.
struct All {
    left: usize,
    request: Option<Request>,
}

impl All {
    fn one(all: &Mutex<Self>, answer: Answer<'_>) {
        let mut held = all.lock().unwrap_or_else(PoisonError::into_inner);
        held.left = held.left.saturating_sub(1);
        let done = held.left == 0 || !matches!(answer, Answer::Done(_));
        let request = if done { held.request.take() } else { None };
        drop(held);
        if let Some(mut request) = request {
            request.answer(answer);
        }
    }
}
