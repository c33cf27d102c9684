//! Heads of envelopes that were passed on before, as templates around what differs.

use crate::soap::template::Template;
use bytes::Bytes;
use everywire_model::Context;
use everywire_model::headers::Edits;
use everywire_model::recent::Recent;

/// How many heads one channel keeps: as many as a channel remembers of heads that came (`head_cache::HEADS`).
const MOST: usize = 8;

/// Heads that left before.
#[derive(Default)]
pub(super) struct HeadTemplates(Recent<HeadTemplate, MOST>);

/// One of them.
struct HeadTemplate {
    /// Of the body that came: compared by its address, which no other has while this copy lives.
    context: Context,
    key: Bytes,
    operation: Option<Box<[u8]>>,
    identified: bool,
    /// Changes of headers that the template has.
    edits: Edits,
    template: Template,
}

/// What is said in a head, but for what the body's own is.
#[derive(Clone, Copy)]
pub(super) struct HeadFields<'a> {
    pub(super) key: &'a Bytes,
    /// What is asked for; nothing of an answer.
    pub(super) operation: Option<&'a [u8]>,
    /// Whether it wants an answer, or is one: then the template has a place for an identifier.
    pub(super) identified: bool,
}

impl HeadTemplates {
    /// What left before for this body, if it is the same now.
    #[inline]
    pub(super) fn find(
        &mut self,
        context: &Context,
        head: HeadFields<'_>,
        edits: &Edits,
    ) -> Option<&Template> {
        let is = |held: &HeadTemplate| {
            std::ptr::eq(held.context.as_ptr(), context.as_ptr())
                && held.identified == head.identified
                && held.operation.as_deref() == head.operation
                && held.key == *head.key
                && held.edits.is(edits)
        };
        let index = self.0.find(is)?;
        self.0.get(index).map(|held| &held.template)
    }

    /// Keeps one.
    pub(super) fn keep(&mut self, context: &Context, head: HeadFields<'_>, edits: Edits, template: Template) {
        let HeadFields { key, operation, identified } = head;
        let (context, key, operation) = (context.clone(), key.clone(), operation.map(Into::into));
        self.0.keep(HeadTemplate { context, key, operation, identified, edits, template });
    }
}
