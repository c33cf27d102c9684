//! What stands with a body until it is read: its form, and what reading it takes.

use super::{ReaderQuotas, Types};
use crate::dictionary::StringTable;
use everywire_model::{Body, WireState};
use std::any::Any;
use std::sync::{Arc, LazyLock};

/// [`Body::dialect`] of a body in binary XML.
pub const BINARY: u32 = 0;

/// [`Body::dialect`] of a body in XML text, always UTF-8.
pub const TEXT: u32 = 1;

/// [`Body::dialect`] of a body in binary XML whose base is inside the wrapper, the element around the values, already.
/// Sessions that recognize a head know where the wrapper's start ends and spare their readers that.
pub const BINARY_INSIDE: u32 = 2;

/// What reading bodies of a session takes: it goes into [`everywire_model::body::Attachments::wire_state`], one for each
/// connection, replaced when words were learnt.
#[derive(Debug, Clone, Default)]
pub struct BodyContext {
    /// The session's words.
    pub words: Arc<StringTable>,
    /// The quotas of the reader.
    pub quotas: ReaderQuotas,
    /// The types of the contract, where values of any type may be of them.
    pub types: Option<Arc<Types>>,
    /// The parameters of the operation that came as headers. `None`: nobody knows the operation (a trace), and a parameter that is
    /// not in the body is looked for among all headers, by its local name.
    pub headers: Option<Arc<[HeaderParameter]>>,
    /// How values are told.
    pub naming: Naming,
}

/// How the values of a body are told, which may be called as their sender likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Naming {
    /// By their names. What the contract does not know is passed over, as WCF does it.
    #[default]
    Names,
    /// By their names, in a request of the style rpc: where it has elements, it names a parameter of the contract.
    Parameters,
    /// In an answer of the style rpc: by their names, but for the first one. That is what the operation returns, whatever it is
    /// called (SOAP 1.1, section 7.1).
    Returned,
}

/// A parameter that came as a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderParameter {
    /// The parameter's name in the contract.
    pub name: Box<str>,
    /// Which child of `Header` it is, from 0.
    pub number: usize,
}

impl WireState for BodyContext {}

impl BodyContext {
    /// What goes with a body; if nothing does, no words and the default quotas.
    pub(crate) fn of(body: &Body) -> &Self {
        static NONE: LazyLock<BodyContext> = LazyLock::new(BodyContext::default);
        let beside = body.wire_state().and_then(|wire_state| {
            let wire_state: &dyn Any = &**wire_state;
            wire_state.downcast_ref::<Self>()
        });
        beside.unwrap_or_else(|| &NONE)
    }
}
