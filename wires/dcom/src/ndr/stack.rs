//! A stack whose top stands in place: most calls open nothing but their parameters, and need no memory for that.

/// A stack that allocates nothing for its first item. `top` is `None` only if the stack is empty; `below` has
/// the others, the deepest first.
#[derive(Debug)]
pub(super) struct Stack<T> {
    top: Option<T>,
    below: Vec<T>,
}

impl<T> Stack<T> {
    pub(super) const fn new() -> Self {
        Self { top: None, below: Vec::new() }
    }

    #[inline]
    pub(super) fn push(&mut self, item: T) -> &mut T {
        if let Some(covered) = self.top.take() {
            self.below.push(covered);
        }
        self.top.insert(item)
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let popped = self.top.take();
        if !self.below.is_empty() {
            self.top = self.below.pop();
        }
        popped
    }

    #[inline]
    pub(super) fn last(&self) -> Option<&T> {
        self.top.as_ref()
    }

    #[inline]
    pub(super) fn last_mut(&mut self) -> Option<&mut T> {
        self.top.as_mut()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index == self.below.len() { self.top.as_mut() } else { self.below.get_mut(index) }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.below.len() + usize::from(self.top.is_some())
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.top.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_as_a_vector_does() {
        let (mut stack, mut vector) = (Stack::new(), Vec::new());
        for step in 0..40 {
            if step % 3 == 2 {
                assert_eq!(stack.pop(), vector.pop());
            } else {
                stack.push(step);
                vector.push(step);
            }
            assert_eq!((stack.len(), stack.is_empty()), (vector.len(), vector.is_empty()));
            assert_eq!(stack.last(), vector.last());
            assert_eq!(stack.last_mut(), vector.last_mut());
            for index in 0..=vector.len() {
                assert_eq!(stack.get_mut(index), vector.get_mut(index));
            }
        }
    }
}
