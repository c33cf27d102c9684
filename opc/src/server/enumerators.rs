//! The enumerators that methods hand out. Each ends with the last reference to it.
//!
//! Names are walked as they are asked for, so an enumerator over a million costs what is taken from it. A copy goes on at the same
//! place: the list is walked anew up to there. Each is charged to its client until it is released.

use crate::Code;
use crate::contract::{
    CATEGORYINFO, GUID, IEnumCATEGORYINFO, IEnumGUID, IEnumOPCItemAttributes, IEnumString, IEnumUnknown,
    IOPCEnumGUID, OPCITEMATTRIBUTES,
};
use crate::share::EnumeratorCharge;
use crate::sync::lock;
use everywire::WeakNode;
use everywire::{Failure, Ref, Reference, Remote, Success};
use std::sync::{Arc, Mutex};

/// Elements that one call of Next may ask for.
const MOST: u32 = 100_000;

/// Makes a list from its beginning.
type ListFactory<T> = dyn Fn() -> Result<Box<dyn Iterator<Item = T> + Send>, Code> + Send + Sync;

/// A list and a place in it.
pub(super) struct EnumeratorState<T> {
    make: Arc<ListFactory<T>>,
    place: Mutex<EnumeratorPosition<T>>,
    node: WeakNode,
    /// What it costs of its client's quota.
    seat: EnumeratorCharge,
}

struct EnumeratorPosition<T> {
    rest: Box<dyn Iterator<Item = T> + Send>,
    taken: usize,
}

impl<T: Send + 'static> EnumeratorState<T> {
    pub(super) fn new(
        node: WeakNode,
        seat: EnumeratorCharge,
        make: Arc<ListFactory<T>>,
    ) -> Result<Self, Code> {
        let place = Mutex::new(EnumeratorPosition { rest: make()?, taken: 0 });
        Ok(Self { make, place, node, seat })
    }

    /// Over what is at hand.
    pub(super) fn of(node: WeakNode, seat: EnumeratorCharge, items: Vec<T>) -> Result<Self, Code>
    where
        T: Clone + Sync,
    {
        let items: Arc<[T]> = items.into();
        let from = move || {
            let items = Arc::clone(&items);
            let all = (0..items.len()).map_while(move |index| items.get(index).cloned());
            Ok(Box::new(all) as Box<dyn Iterator<Item = T> + Send>)
        };
        Self::new(node, seat, Arc::new(from))
    }

    fn next(&self, count: u32) -> Result<Success<Vec<T>>, Failure> {
        if count == 0 || count > MOST {
            return Err(Code::INVALID_ARGUMENT.into());
        }
        let mut place = lock(&self.place);
        let items: Vec<T> = place.rest.by_ref().take(count as usize).collect();
        place.taken += items.len();
        let is_whole = items.len() == count as usize;
        Ok(Success::with(if is_whole { 0 } else { 1 }, items))
    }

    fn skip(&self, count: u32) -> Success<()> {
        let mut place = lock(&self.place);
        let skipped = place.rest.by_ref().take(count as usize).count();
        place.taken += skipped;
        Success::with(if skipped == count as usize { 0 } else { 1 }, ())
    }

    fn reset(&self) -> Result<(), Failure> {
        let rest = (self.make)()?;
        *lock(&self.place) = EnumeratorPosition { rest, taken: 0 };
        Ok(())
    }

    fn copy(&self) -> Result<Self, Failure> {
        let taken = lock(&self.place).taken;
        let mut rest = (self.make)()?;
        if let Some(last) = taken.checked_sub(1) {
            rest.nth(last);
        }
        Ok(Self {
            make: Arc::clone(&self.make),
            place: Mutex::new(EnumeratorPosition { rest, taken }),
            node: self.node.clone(),
            seat: self.seat.another()?,
        })
    }
}

/// Hands an object out, until nobody refers to it any more.
pub(super) fn lend<I: Remote + ?Sized>(node: &WeakNode, servant: Arc<I>) -> Result<Ref<I>, Failure> {
    let node = node.upgrade().ok_or(Code::FAIL)?;
    Ok(node.lend(|_| servant))
}

macro_rules! enumerator {
    ($trait:ident, $item:ty) => {
        impl $trait for EnumeratorState<$item> {
            fn next(&self, count: u32) -> Result<Success<Vec<$item>>, Failure> {
                EnumeratorState::next(self, count)
            }

            fn skip(&self, count: u32) -> Result<Success<()>, Failure> {
                Ok(EnumeratorState::skip(self, count))
            }

            fn reset(&self) -> Result<(), Failure> {
                EnumeratorState::reset(self)
            }

            fn clone_(&self) -> Result<Option<Ref<dyn $trait>>, Failure> {
                let copy: Arc<dyn $trait> = Arc::new(self.copy()?);
                lend(&self.node, copy).map(Some)
            }
        }
    };
}

enumerator!(IEnumString, Option<String>);
enumerator!(IEnumCATEGORYINFO, CATEGORYINFO);
enumerator!(IEnumGUID, GUID);
enumerator!(IOPCEnumGUID, GUID);
enumerator!(IEnumUnknown, Option<Reference>);
enumerator!(IEnumOPCItemAttributes, OPCITEMATTRIBUTES);
