//! Operations that a channel has met: their plans, and heads made for them.
//!
//! Calls of this side are known by the addresses of their contract's definitions: comparing those is
//! cheaper than comparing names, and the same contract is used again and again. Requests of the peer are
//! known by their action. Both kinds stand in one list, so that `HeadCache` and `Serving` can name them by
//! number.

use crate::plan::Plan;
use crate::soap::head_cache::HeadCache;
use crate::soap::template::Template;
use bytes::Bytes;
use everywire_model::Shape;
use everywire_model::shape::Name;
use std::sync::Arc;

/// How many operations one channel keeps.
/// A peer may name as many actions as it likes: beyond this the last place is used again and again.
const MOST: usize = 1024;

/// An operation that was met.
pub(super) struct KnownOperation {
    pub(super) plan: Arc<Plan>,
    /// Of calls: what they were made with.
    /// The default for requests of the peer.
    from: OperationSource,
    /// Head of requests to an object.
    /// With the object's key, which is in its `To`.
    pub(super) request: Option<(Bytes, Template)>,
    /// Head of one-way messages to an object.
    pub(super) oneway: Option<(Bytes, Template)>,
    /// Head of replies.
    pub(super) reply: Option<Template>,
    /// Of signals: whether the contract lets listeners choose.
    pub(super) chosen: bool,
}

/// What an operation was described by. Descriptions may be made anew where others were: their names must be the same too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct OperationSource {
    addresses: Addresses,
    name: Name,
    contract: Name,
}

/// Addresses of the interface, the operation and its fields, and how many fields there are. As numbers: nothing is read
/// through them. An address alone could be that of a new definition in the old one's place.
type Addresses = [usize; 4];

/// The same, borrowed.
#[derive(Clone, Copy)]
pub(super) struct OperationSourceRef<'a> {
    addresses: Addresses,
    name: &'a Name,
    contract: Option<&'a Name>,
}

impl<'a> OperationSourceRef<'a> {
    /// By the addresses of the interface and of the operation or signal.
    #[inline]
    pub(super) fn new(
        interface: usize,
        operation: usize,
        fields: &Shape,
        name: &'a Name,
        contract: Option<&'a Name>,
    ) -> Self {
        let fields = fields.fields();
        Self { addresses: [interface, operation, fields.as_ptr().addr(), fields.len()], name, contract }
    }
}

impl OperationSource {
    #[inline]
    fn is(&self, other: &OperationSourceRef<'_>) -> bool {
        self.addresses == other.addresses
            && is_same(&self.name, other.name)
            && other.contract.is_none_or(|contract| is_same(contract, &self.contract))
    }

    fn of(other: &OperationSourceRef<'_>) -> Self {
        let contract = other.contract.cloned().unwrap_or_default();
        Self { addresses: other.addresses, name: other.name.clone(), contract }
    }
}

/// Whether two names are equal; mostly they are one.
#[inline]
fn is_same(one: &Name, other: &Name) -> bool {
    (one.len() == other.len() && one.as_ptr() == other.as_ptr()) || one == other
}

/// All of one channel.
#[derive(Default)]
pub(super) struct Plans {
    /// Nothing is ever removed, so indexes stay; the last place may change its operation.
    met: Vec<KnownOperation>,
    /// Which was called last.
    last: usize,
}

impl Plans {
    /// The operation described so, met before or made now. If another one has to go, `seen` forgets all numbers.
    #[inline]
    pub(super) fn called(
        &mut self,
        seen: &mut HeadCache,
        by: &OperationSourceRef<'_>,
        make: impl FnOnce() -> (Arc<Plan>, bool),
    ) -> usize {
        if self.met.get(self.last).is_some_and(|met| met.from.is(by)) {
            return self.last;
        }
        let index = match self.met.iter().position(|met| met.from.is(by)) {
            Some(index) => index,
            None => {
                let (plan, chosen) = make();
                let from = OperationSource::of(by);
                self.add(
                    seen,
                    KnownOperation { plan, from, request: None, oneway: None, reply: None, chosen },
                )
            }
        };
        self.last = index;
        index
    }

    /// The operation with this plan. If another one has to go, `seen` forgets all numbers.
    pub(super) fn asked(&mut self, seen: &mut HeadCache, plan: Arc<Plan>) -> usize {
        let is = |met: &KnownOperation| {
            met.from == OperationSource::default()
                && *met.plan.asked == *plan.asked
                && met.plan.name == plan.name
        };
        if let Some((index, met)) = self.met.iter_mut().enumerate().find(|(_, met)| is(met)) {
            // The plan is made anew after something was exported or withdrawn.
            (met.plan, met.reply) = (plan, None);
            return index;
        }
        let from = OperationSource::default();
        self.add(seen, KnownOperation { plan, from, request: None, oneway: None, reply: None, chosen: false })
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&KnownOperation> {
        self.met.get(index)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut KnownOperation> {
        self.met.get_mut(index)
    }

    fn add(&mut self, seen: &mut HeadCache, met: KnownOperation) -> usize {
        if self.met.len() >= MOST {
            self.met.pop();
            seen.clear();
        }
        self.met.push(met);
        self.met.len() - 1
    }
}
