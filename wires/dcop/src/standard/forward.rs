//! Calls to the default object, and to all objects whose ids begin with a prefix; searches among these.
//!
//! Such an id has no servant of its own, so this one stands by for all of them and asks those that are meant.
//! Their answers come on any thread, in any order, or never; `Broadcast` counts them and holds the request, which
//! is answered once. The lock is never held while a servant is asked or a request answered.

use super::{Shared, no_object};
use crate::types;
use crate::values::{DATA_STREAM, says_yes};
use bytes::Bytes;
use everywire_model::describe::*;
use everywire_model::{
    Answer, Body, CallId, Codec, Encode, Expects, Failure, Incoming, Initiator, Kind, MarshalList, Request,
    Servant, Sink,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The name of the operation that stands for all: no function has it.
pub(super) const ANY: &str = "*";

/// What a search puts in front of the function, which may be empty; no function's name begins so.
pub(crate) const SEARCH: &[u8] = b"?";

/// What a search is answered with: the id of an object.
static FOUND: Operation = operation!("?", () -> sequence!(Shape::U8));

/// Its one operation stands for every function.
static OPERATIONS: [Operation; 1] = [operation!("*", () -> Shape::Void)];

/// The interface under which calls come here.
static OTHERS: Interface = interface!("DCOPClient", "DCOPClient", [], 0, &OPERATIONS);

/// Passes calls to ids that mean other objects on to these. A call's function stands in its body's context.
pub(super) struct Forward {
    /// Which objects there are.
    pub(super) shared: Arc<Shared>,
}

impl Forward {
    /// Searches among the objects that an id means: for the first, or for one whose function says yes.
    fn search(&self, mut request: Request, function: &[u8]) {
        let id = Bytes::copy_from_slice(request.key());
        let keys = self.shared.meant(&id);
        if function.is_empty() {
            match keys.first() {
                Some(key) => tell(&mut request, key),
                None => request.answer(Answer::Failed(&no_object(&id))),
            }
            return;
        }
        let able = |key: Bytes| self.find(&key, function).map(|(servant, index)| (key, servant, index));
        let meant: Vec<_> = keys.into_iter().filter_map(able).collect();
        let (sender, mut body) = (Bytes::copy_from_slice(request.sender()), request.body().clone());
        body.context = function.into();
        // One more is held until all have been asked.
        let all = Arc::new(Mutex::new(Broadcast { left: meant.len() + 1, request: Some(request) }));
        for (key, servant, index) in meant {
            if lock(&all).request.is_none() {
                return;
            }
            let (incoming, all) = (asked(&sender, &key, function, &body), Arc::clone(&all));
            let link = self.shared.objects.aside(Box::new(move |answer| {
                let yes = matches!(answer, Answer::Done(results) if says_yes(results));
                Broadcast::another(&all, yes.then_some(&key));
            }));
            Arc::clone(&servant).dispatch(Request::new(index, incoming, link, servant));
        }
        Broadcast::another(&all, None);
    }

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
        if let Some(function) = function.strip_prefix(SEARCH) {
            self.search(request, function);
            return;
        }
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
        let all = Arc::new(Mutex::new(Broadcast { left: meant.len(), request: Some(request) }));
        for (key, servant, index) in meant {
            let (incoming, all) = (asked(&sender, &key, &function, &body), Arc::clone(&all));
            let link = self.shared.objects.aside(Box::new(move |answer| Broadcast::one(&all, answer)));
            Arc::clone(&servant).dispatch(Request::new(index, incoming, link, servant));
        }
    }
}

/// The call that is passed on to one of the objects.
fn asked(sender: &Bytes, key: &Bytes, function: &[u8], body: &Body) -> Incoming {
    Incoming {
        id: CallId(0),
        sender: sender.clone(),
        key: key.clone(),
        interface: Bytes::new(),
        operation: Bytes::copy_from_slice(function),
        body: body.clone(),
        expects: Expects::Reply,
    }
}

/// Answers a search.
fn tell(request: &mut Request, key: &Bytes) {
    let found = |sink: &mut dyn Sink| (key.clone(),).marshal_list(&FOUND.results, sink);
    request.answer(Answer::Done(&found));
}

/// The id in the answer to a search.
pub(crate) fn found(answer: &dyn Encode) -> Option<Bytes> {
    let body = DATA_STREAM.write(&mut |sink| answer.encode(sink)).ok()?;
    body.decode::<(Bytes,)>(&FOUND.results).ok().map(|(key,)| key)
}

/// A panic elsewhere leaves it usable: every change is complete in itself.
fn lock(all: &Mutex<Broadcast>) -> MutexGuard<'_, Broadcast> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that several objects answer: the last answer counts, or the first failure. Of a search, the first yes.
struct Broadcast {
    /// Answers that are missing.
    left: usize,
    /// Gone when it is answered.
    request: Option<Request>,
}

impl Broadcast {
    /// An answer less is missing. The request, if that was the last one, or the one that counts.
    fn settle(all: &Mutex<Self>, counts: bool) -> Option<Request> {
        let mut held = lock(all);
        held.left = held.left.saturating_sub(1);
        if held.left == 0 || counts { held.request.take() } else { None }
    }

    /// One of those who were called answers.
    fn one(all: &Mutex<Self>, answer: Answer<'_>) {
        if let Some(mut request) = Self::settle(all, !matches!(answer, Answer::Done(_))) {
            request.answer(answer);
        }
    }

    /// One of those who were searched says whether it is meant.
    fn another(all: &Mutex<Self>, found: Option<&Bytes>) {
        let Some(mut request) = Self::settle(all, found.is_some()) else { return };
        match found {
            Some(key) => tell(&mut request, key),
            None => {
                let failure = no_object(request.key());
                request.answer(Answer::Failed(&failure));
            }
        }
    }
}
