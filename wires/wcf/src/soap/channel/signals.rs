//! One-way callbacks: who listens to them on either side.

use super::listeners::Subscription;
use super::plans::OperationSourceRef;
use super::state::{Side, SoapChannel, beside};
use crate::plan::Plan;
use crate::soap::head::for_each_header;
use crate::soap::head_cache::{BodyStart, ForwardInfo};
use crate::values::{BINARY, BINARY_INSIDE, BodyContext, Form, HeaderParameter, Naming, TEXT, XML};
use bytes::Bytes;
use everywire_model::visit::Visit;
use everywire_model::{
    Attachments, Body, CallId, Context, Emission, Event, Headers, Incoming, Interface, Operation, Outcome,
    Profile, SendBuffer, Shape, Signal, SignalFilter,
};
use std::sync::Arc;
use std::time::Instant;

/// The operation that a signal is, and the interface it is called by.
/// The callback contract's operation, where the signal has one; else one is made of the signal.
fn plan(interface: &Interface, signal: &Signal) -> Arc<Plan> {
    let callbacks = signal.sink.as_ref().and_then(|(callbacks, index)| {
        Some(Plan::of_callback(interface, callbacks, callbacks.operations.get(*index)?))
    });
    callbacks.unwrap_or_else(|| {
        let mut operation = Operation::new(signal.name.clone(), Vec::new(), Shape::Void);
        (operation.arguments, operation.oneway) = (signal.fields.clone(), true);
        Plan::of_callback(interface, interface, &operation)
    })
}

/// The number of the signal that a callback with this action is.
pub(crate) fn signal_of(interface: &Interface, action: &str) -> Option<usize> {
    interface.signals.iter().position(|signal| *plan(interface, signal).action == *action)
}

impl SoapChannel {
    /// The path that the channel was opened to (accepting side): callbacks of that object go to it.
    pub fn opened(&mut self, key: Bytes) {
        self.listeners.open(&key);
    }

    /// Appends a one-way callback; `false` if this peer does not listen to it.
    ///
    /// # Errors
    /// The arguments do not encode; `out` is as before.
    pub fn emit(&mut self, _: Instant, emission: &Emission<'_>, out: &mut SendBuffer) -> Visit<bool> {
        // One for each object that the channel was opened to: mostly one.
        let listens = |keys: &[Bytes]| keys.iter().any(|key| **key == *emission.key);
        if self.side == Side::Client || !listens(&self.listeners.opened) {
            return Ok(false);
        }
        let (interface, signal) = emission.topic.typed()?;
        let (address, of) = (std::ptr::from_ref(interface).addr(), std::ptr::from_ref(signal).addr());
        let by = OperationSourceRef::new(address, of, &signal.fields, &signal.name, Some(&interface.name));
        let index = self.plans.called(&mut self.seen, &by, || {
            let subscribes = |operation: &Operation| operation.name.eq_ignore_ascii_case("subscribe");
            let chosen = interface.operations.iter().any(subscribes);
            (plan(interface, signal), chosen)
        });
        if self.plans.get(index).is_some_and(|met| met.chosen) && !listens(&self.listeners.chosen) {
            return Ok(false);
        }
        let id = self.begin();
        self.request(index, id, false, &Bytes::new(), emission.arguments, &[], out)?;
        Ok(true)
    }

    /// Registers a listener to one-way callbacks; the reply event follows at once.
    pub fn subscribe(&mut self, profile: &Profile, filter: SignalFilter<'_>) -> CallId {
        let id = self.begin();
        let one = |interface: &Interface, signal: &Signal| {
            let action = plan(interface, signal).action.to_string();
            (action, Bytes::copy_from_slice(signal.name.as_bytes()))
        };
        let signals = filter.interface.map(|interface| match filter.signal {
            Some(signal) => vec![one(interface, signal)],
            None => interface.signals.iter().map(|signal| one(interface, signal)).collect(),
        });
        let key = profile.key.clone();
        self.listeners.subscriptions.push(Subscription { id, key, signals });
        let outcome = Outcome::Done(self.body(Bytes::new(), BodyStart::outside(0)));
        self.events.push_back(Event::Reply { id, outcome });
        id
    }

    /// Forgets a listener.
    pub fn unsubscribe(&mut self, id: CallId) {
        self.listeners.subscriptions.retain(|subscription| subscription.id != id);
    }

    /// Hands a callback to those who listen, `any`: also to those who listen to whatever comes; `false` if nobody does.
    pub(super) fn hear(&mut self, action: &str, document: &Bytes, base: usize, any: bool) -> bool {
        let Some((subscriptions, key, signal)) = self.listeners.find(action, any) else { return false };
        let body = self.body(document.clone(), BodyStart::outside(base));
        let heard = Incoming::signal(Bytes::new(), key, Bytes::new(), signal, body);
        self.events.push_back(Event::Signal { subscriptions, heard: Box::new(heard) });
        true
    }

    /// A document as a body that is passed on, that has headers beside it, or whose values are told otherwise than by their names.
    #[inline]
    pub(super) fn body_with(
        &self,
        bytes: Bytes,
        place: BodyStart,
        kept: Option<&ForwardInfo>,
        plan: &Plan,
        is_answer: bool,
    ) -> Body {
        let Some(kept) = kept else { return self.body(bytes, place) };
        let naming = plan.naming(is_answer);
        let passes = plan.passes;
        let headers = (!kept.others.is_empty()).then(|| Headers::received(bytes.slice(kept.others.clone())));
        // The body goes on as a whole: nothing inside the wrapper is looked at.
        let place = if passes { BodyStart::outside(kept.body) } else { place };
        let mut body = self.body(bytes, place);
        let has_headers = headers.is_some() && !plan.headers.is_empty();
        if has_headers || naming != Naming::Names {
            body.beside = Some(self.beside_with(plan, naming, has_headers.then_some(&*body.bytes)));
        }
        if passes {
            body.context = kept.context.clone();
        }
        match headers {
            Some(headers) => body.with_headers(headers),
            None => body,
        }
    }

    /// What stands beside a body: how its values are told, and the headers of its document that are parameters, if there is one to look
    /// through. A header is a parameter if it has the parameter's qualified name and is for this side (SOAP 1.1, 4.2; SOAP 1.2 part 1,
    /// 5.2); of two alike the first is.
    #[cold]
    fn beside_with(&self, plan: &Plan, naming: Naming, document: Option<&[u8]>) -> Arc<Attachments> {
        let mut found: Vec<HeaderParameter> = Vec::new();
        let Some(document) = document else { return beside(&BodyContext { naming, ..self.reading.clone() }) };
        let read = for_each_header(self.dialect.soap, self.readable(document), |number, header| {
            let Some(name) = plan.parameter(&header.namespace, &header.local) else { return };
            if found.iter().all(|known| *known.name != *name) {
                found.push(HeaderParameter { name: name.into(), number });
            }
        });
        // The head was read before: it does not fail now.
        debug_assert!(read.is_ok());
        beside(&BodyContext { headers: Some(found.into()), naming, ..self.reading.clone() })
    }

    /// A document as a body.
    #[inline]
    pub(super) fn body(&self, bytes: Bytes, place: BodyStart) -> Body {
        Body {
            bytes,
            base: place.at,
            little: true,
            dialect: match self.dialect.form {
                Form::Binary if place.inside => BINARY_INSIDE,
                Form::Binary => BINARY,
                Form::Text => TEXT,
            },
            context: Context::default(),
            budget: self.limits.budget,
            codec: &XML,
            beside: Some(Arc::clone(&self.beside)),
        }
    }
}
