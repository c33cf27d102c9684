//! Values of one call on their way: read from one side, written to the other, with other references in the place of those that pass.
//!
//! What stands for each reference is found before anything is written: a session writes while its connection is locked, and an object that
//! is served meanwhile may have to be told to that very connection.

use crate::cross::{self, Replace};
use crate::frontend::Frontend;
use crate::interfaces::{DiscoveredObject, Question};
use crate::references::ReferenceFlow;
use crate::route::Route;
use crate::validate::Reader;
use everywire::{Failure, Reference};
use everywire_model::shape::Referent;
use everywire_model::{Body, Resolver, Shape, Sink, Visit};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Values that pass, and what stands for the references in them, in their order; `None`: there are none to be
/// replaced.
#[derive(Default)]
pub(crate) struct Values {
    led: Option<Vec<Reference>>,
}

/// Two sides of a route, and what finds the objects behind references of the one that gives values.
pub(crate) struct ValueFlow<'s> {
    pub(crate) route: &'s Arc<Route>,
    pub(crate) resolver: Arc<dyn Resolver>,
    /// The listener of the side that gets the values, and that of the side that gave them.
    pub(crate) to: Option<Arc<Frontend>>,
    pub(crate) back: Option<Arc<Frontend>>,
    /// Whether it is the route's callers who get them, and not its targets.
    pub(crate) to_callers: bool,
    /// Objects that were asked for more interfaces.
    pub(crate) found: &'s [DiscoveredObject],
}

impl ValueFlow<'_> {
    /// Values that may hold references: each leads to the broker from now on.
    ///
    /// # Errors
    /// The values do not decode, or a reference cannot be passed on.
    pub(crate) fn lead(&self, body: &Body, list: &Shape) -> Result<Values, Failure> {
        let led = RefCell::new(Vec::new());
        let way = self.references();
        let lead = |referent: &Referent, reference: Reference| {
            let references = &self.route.references;
            let given = references.lead(self.route, referent, reference, &*self.resolver, &way)?;
            led.borrow_mut().push(given.clone());
            Ok(given)
        };
        let replace: &Replace<'_> = &lead;
        cross::pass(body, list, &mut Reader { strict: false }, Some(replace))?;
        Ok(Values { led: Some(led.into_inner()) })
    }

    /// Which objects in the values may have more interfaces than they say. Values that cannot be read are told by [`Self::lead`].
    pub(crate) fn questions(&self, body: &Body, list: &Shape) -> Vec<Question> {
        let asked = RefCell::new(Vec::new());
        let way = self.references();
        let ask = |referent: &Referent, reference: Reference| {
            let references = &self.route.references;
            asked.borrow_mut().extend(references.question(
                self.route,
                referent,
                &reference,
                &*self.resolver,
                &way,
            ));
            Ok(reference)
        };
        let replace: &Replace<'_> = &ask;
        let read = cross::pass(body, list, &mut Reader { strict: false }, Some(replace));
        read.map(|()| asked.into_inner()).unwrap_or_default()
    }

    fn references(&self) -> ReferenceFlow<'_> {
        ReferenceFlow {
            to: self.to.as_ref(),
            back: self.back.as_ref(),
            to_callers: self.to_callers,
            found: self.found,
        }
    }
}

impl Values {
    /// Reads the values of a body and writes them.
    pub(crate) fn put(&self, body: &Body, list: &Shape, sink: &mut dyn Sink) -> Visit<()> {
        let Some(led) = &self.led else { return cross::pass(body, list, sink, None) };
        let next = Cell::new(0);
        let replace = |_: &Referent, _: Reference| {
            let at = next.replace(next.get() + 1);
            led.get(at).cloned().ok_or_else(|| Failure::malformed("a reference came from nowhere", 0))
        };
        cross::pass(body, list, sink, Some(&replace))
    }
}
