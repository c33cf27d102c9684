//! Layers: what stands before the servants of a node, and sees each call of them first.
//!
//! A layer is given the call and what comes behind it ([`Next`]). It passes the call on, now or later; answers it itself, such as with a
//! refusal; or watches how it ends. The layers of a node ([`crate::Builder::layer`]) stand before every object that the user exports, by whatever
//! wire or in-process way its calls come, D-Bus properties and `IDispatch` among them; the first one sees a call first. What a wire itself answers,
//! such as a description or a probe, is no call of a servant.
//!
//! Ready to use: [`AllowList`], [`Limit`], [`Retry`], [`TimeLimit`], [`Trace`]. A node without layers does nothing for them.

mod allow_list;
mod limit;
mod pattern;
mod retry;
mod time_limit;
mod trace;

pub use allow_list::AllowList;
pub use limit::Limit;
pub use pattern::{Caller, CallerIdentity, Pattern};
pub use retry::{Attempts, Retry};
pub use time_limit::TimeLimit;
pub use trace::{CallRecord, Ending, Trace};

use everywire_model::{
    CallId, Constant, Failure, Hold, Incoming, Interface, Link, Reference, Request, Servant,
};
use std::sync::Arc;

/// Stands before servants. See the module.
pub trait Layer: Send + Sync {
    /// Takes one call. Runs on a thread of the runtime, as servants do: what waits for long keeps others waiting.
    ///
    /// Whoever neither passes the call on nor answers it has it answered with a failure.
    fn serve(&self, request: Request, next: Next<'_>);
}

/// What is behind a layer: the layers from number `seen` on, and the servant.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    behind: &'a LayeredServant,
    /// The number of layers that have seen the call.
    seen: usize,
}

impl Next<'_> {
    /// Passes the call on.
    pub fn serve(self, request: Request) {
        match self.behind.layers.get(self.seen) {
            Some(layer) => layer.serve(request, Next { seen: self.seen + 1, ..self }),
            None => self.behind.servant.dispatch(request),
        }
    }

    /// The same, to be kept: for a layer that first asks somebody else, such as whether the caller may.
    #[must_use]
    pub fn later(self) -> OwnedNext {
        OwnedNext { behind: self.behind.clone(), seen: self.seen }
    }
}

/// What is behind a layer, kept for a call that is passed on later.
pub struct OwnedNext {
    behind: LayeredServant,
    seen: usize,
}

impl OwnedNext {
    /// Passes a call on: the one that it was kept for, or another attempt of it ([`Request::again`]). Each time that
    /// this is called, the servant has one call more.
    pub fn serve(&self, request: Request) {
        Next { behind: &self.behind, seen: self.seen }.serve(request);
    }
}

/// A servant behind the layers of its node.
#[derive(Clone)]
struct LayeredServant {
    layers: Layers,
    servant: Arc<dyn Servant>,
}

/// Those of a node, the first first.
pub(crate) type Layers = Arc<[Arc<dyn Layer>]>;

/// The servant behind these layers.
pub(crate) fn behind(layers: &Layers, servant: Arc<dyn Servant>) -> Arc<dyn Servant> {
    Arc::new(LayeredServant { layers: Arc::clone(layers), servant })
}

impl Servant for LayeredServant {
    fn interface(&self) -> &Interface {
        self.servant.interface()
    }

    fn constants(&self) -> Vec<Constant> {
        self.servant.constants()
    }

    fn listeners(&self) -> Vec<Hold<Interface>> {
        self.servant.listeners()
    }

    fn dispatch(&self, request: Request) {
        Next { behind: self, seen: 0 }.serve(request);
    }

    fn keeps_order(&self) -> bool {
        self.servant.keeps_order()
    }

    fn elsewhere(&self) -> Option<Reference> {
        self.servant.elsewhere()
    }

    fn locate(&self, key: &[u8], type_id: Option<&str>) -> Result<(), Failure> {
        self.servant.locate(key, type_id)
    }

    fn find_interface(&self, asked: &Request, key: &[u8], fits: &dyn Fn(&Interface) -> bool) -> bool {
        self.servant.find_interface(asked, key, fits)
    }

    fn opened(&self, link: &Arc<dyn Link>) {
        self.servant.opened(link);
    }

    fn closed(&self, link: &dyn Link) {
        self.servant.closed(link);
    }

    fn heard(&self, link: &dyn Link, heard: &Incoming) {
        self.servant.heard(link, heard);
    }

    fn cancelled(&self, link: &dyn Link, call: CallId) {
        self.servant.cancelled(link, call);
    }
}
