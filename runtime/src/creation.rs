//! For whom an object of a class is being made, so that classes can be fair to those who ask for their objects.

use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    static ASKER: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// For whom the calling thread makes an object of a class at this moment: the account that he proved to be, else where he is; empty for
/// this process. Nothing where no object is being made.
pub fn asker() -> Option<Arc<str>> {
    ASKER.with_borrow(Clone::clone)
}

/// While it lives, the calling thread makes an object for somebody.
pub(crate) struct CreationScope {
    before: Option<Arc<str>>,
}

impl CreationScope {
    pub(crate) fn for_asker(asker: &str) -> Self {
        Self { before: ASKER.replace(Some(asker.into())) }
    }
}

impl Drop for CreationScope {
    fn drop(&mut self) {
        ASKER.set(self.before.take());
    }
}
