//! What is to be done later, in order.

/// Mostly nothing, and otherwise one thing: that takes one allocation of its size, where a list would make room for four. One word,
/// since it is moved with the lock on a connection.
pub(super) struct DeferredList<T>(Option<Box<(T, Vec<T>)>>);

impl<T> Default for DeferredList<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> DeferredList<T> {
    /// One thing more, behind the others.
    pub(super) fn push(&mut self, one: T) {
        match &mut self.0 {
            None => self.0 = Some(Box::new((one, Vec::new()))),
            Some(list) => list.1.push(one),
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The first one and the others, if there is one.
    #[inline]
    pub(super) fn take(&mut self) -> Option<(T, Vec<T>)> {
        self.0.take().map(|list| *list)
    }
}
