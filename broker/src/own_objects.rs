//! Objects that callers have for themselves: where both sides make an object for whoever asks (COM's activation), each one that a caller
//! gets at the broker stands for one of its own at the target. So what it holds there, such as the groups of an OPC server, ends with it.
//!
//! States at each target: none, until the first call goes there; then there is one, until the caller's object ends or the target is another
//! after a change of the file. Calls go to the target that had the last one, as long as that works.
//! Invariants: nobody else calls these objects; none of them is dropped under the lock, since it is released with that.

use crate::balance::Balancer;
use crate::upstream::Upstream;
use everywire::{Failure, Initiator, Interface, Kind};
use everywire_model::Hold;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What one object of a caller stands for.
#[derive(Default)]
pub(crate) struct OwnObjects {
    /// By target, the last one used at the end.
    ways: Mutex<Vec<OwnWay>>,
    /// The caller's object is served no longer.
    ended: AtomicBool,
}

/// A target, and the way to the object there.
type OwnWay = (Weak<Upstream>, Arc<Upstream>);

impl OwnObjects {
    fn ways(&self) -> MutexGuard<'_, Vec<OwnWay>> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The target that had the last call, if it is one of these.
    pub(crate) fn at(&self, targets: &[Arc<Upstream>]) -> Option<usize> {
        let last = self.ways().last().map(|(of, _)| Weak::clone(of))?;
        targets.iter().position(|target| std::ptr::eq(last.as_ptr(), Arc::as_ptr(target)))
    }

    /// The way to its object at a target.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn way(
        &self,
        target: &Arc<Upstream>,
        interface: &Hold<Interface>,
    ) -> Result<Arc<Upstream>, Failure> {
        let mut ways = self.ways();
        let gone: Vec<_> = ways.extract_if(.., |(of, _)| of.strong_count() == 0).collect();
        let known = ways.iter().position(|(of, _)| std::ptr::eq(of.as_ptr(), Arc::as_ptr(target)));
        let way = match known {
            Some(at) => Ok(ways.remove(at)),
            None => target.apart(interface.clone()).map(|way| (Arc::downgrade(target), way)),
        };
        let way = way.map(|(of, way)| {
            ways.push((of, Arc::clone(&way)));
            way
        });
        drop(ways);
        drop(gone);
        way
    }

    /// The way to its object at the target that it is at, or is to be at.
    ///
    /// # Errors
    /// None of the targets works at the moment.
    pub(crate) fn current(
        &self,
        targets: &[Arc<Upstream>],
        balancer: &Balancer,
        interface: &Hold<Interface>,
    ) -> Result<Arc<Upstream>, Failure> {
        let at = self.at(targets).or_else(|| balancer.pick(targets, &[]));
        let none = || {
            let what = "the targets of this route have failed, and are left alone for a moment";
            Failure::new(Kind::Busy, Initiator::Peer, what).with_hint("try again later")
        };
        self.way(at.and_then(|at| targets.get(at)).ok_or_else(none)?, interface)
    }

    /// The caller's object is served no longer.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Whether it is served no longer.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

impl Upstream {
    /// The way to another object of the same target, where that makes one for whoever asks.
    ///
    /// # Errors
    /// It is no target of the file.
    fn apart(&self, interface: Hold<Interface>) -> Result<Arc<Self>, Failure> {
        let none = || Failure::new(Kind::Internal, Initiator::Here, "an object behind a reference is one");
        let identity = self.identity.as_ref().ok_or_else(none)?;
        let object = self.object.target().resolver().resolve(&identity.reference)?;
        let object = object.with_deadline(Some(identity.timeout)).typed(interface);
        Ok(Self::lane(&self.common, object))
    }
}
