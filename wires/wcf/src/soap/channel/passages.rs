//! Heads of envelopes that were passed on before, as templates around what differs.

use crate::soap::template::Template;
use bytes::Bytes;
use everywire_model::{Context, Edit};

/// How many heads one channel keeps.
/// As many as a channel remembers of heads that came (`seen::HEADS`).
const MOST: usize = 8;

/// Heads that left before.
#[derive(Default)]
pub(super) struct Passages {
    made: Vec<Passage>,
    next: usize,
}

/// One of them.
pub(super) struct Passage {
    /// Of the body that came: compared by its address, which no other has while this copy lives.
    pub(super) context: Context,
    pub(super) key: Bytes,
    /// What is asked for; nothing of an answer.
    pub(super) operation: Option<Box<[u8]>>,
    /// Whether it wants an answer, or is one: then the template has a place for an identifier.
    pub(super) identified: bool,
    /// Changes of headers that the template has.
    pub(super) edits: Box<[Edit]>,
    pub(super) template: Template,
}

impl Passages {
    /// What left before for this body, if it is the same now.
    #[inline]
    pub(super) fn find(
        &self,
        context: &Context,
        key: &[u8],
        operation: Option<&[u8]>,
        identified: bool,
        edits: &[Edit],
    ) -> Option<&Template> {
        let is = |held: &&Passage| {
            std::ptr::eq(held.context.as_ptr(), context.as_ptr())
                && held.identified == identified
                && held.operation.as_deref() == operation
                && held.key == key
                && *held.edits == *edits
        };
        self.made.iter().find(is).map(|held| &held.template)
    }

    /// Keeps one, in place of the oldest if there are many.
    pub(super) fn keep(&mut self, passage: Passage) {
        match self.made.get_mut(self.next) {
            Some(slot) => *slot = passage,
            None => self.made.push(passage),
        }
        self.next = (self.next + 1) % MOST;
    }
}
