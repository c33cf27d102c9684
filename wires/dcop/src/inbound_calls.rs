//! Calls of others that are open, and how those of one call tree stand behind each other; what is done with them says `serving`.

use crate::request_templates::CallHead;
use crate::trees::TreeCall;
use std::sync::Arc;

/// A call that was taken and not answered. By its serial in `DcopSession::serving`.
pub(crate) struct InboundCall {
    /// The key of its call tree, which the answer has to have.
    pub(crate) key: u32,
    /// What the front of the call says: who asks, and what an answer begins with.
    pub(crate) came: Arc<CallHead>,
    /// What kind of answer is wanted.
    pub(crate) asks: RequestKind,
    /// The call of the same key that came before and is open; 0: none.
    pub(crate) earlier: u64,
    /// How many senders were busy with the call tree, one behind the other, when it came; itself included.
    pub(crate) depth: u32,
    /// The number under which its answer was announced.
    pub(crate) announced: Option<i32>,
    /// Lets calls that are made meanwhile belong to the same tree.
    pub(crate) _turn: Option<TreeCall>,
}

/// What the caller wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// The values that the function returns.
    Results,
    /// Whether the object is there.
    Object,
    /// Whether the function says yes.
    Yes,
    /// Which object is there, of several that the id means.
    Which,
}

/// Open calls of one key. They are linked by `InboundCall::earlier`, from the last to the first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain {
    /// The one that came last.
    pub(crate) last: u64,
    /// How many there are.
    pub(crate) open: u32,
    /// One was refused because it would have stood too deep; nothing more is taken before one is answered.
    pub(crate) full: bool,
}
