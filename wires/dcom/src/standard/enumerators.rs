//! Enumerators: IEnumString, IEnumGUID, IEnumUnknown, and every other interface of Next, Skip, Reset and
//! Clone (objidl.idl; the pattern is that of MS-OAUT 3.3 and of OPC Common 1.10).
//!
//! A servant over a list is ready for each; whoever hands one out lends it, so that it ends with the last
//! reference to it. The other way, [`all`] reads an enumerator to its end.
//!
//! States: a place in a list that never changes; Next and Skip move it on, Reset puts it back, Clone makes
//! another enumerator with a place of its own.
//!
//! Invariants: the place never passes the end. Next answers S_FALSE exactly if fewer elements are left than
//! were asked for, and the maximum count of its array is the number asked for, as proxies of Windows expect.
//! A reader stops after `MOST` elements, for an enumerator elsewhere may have no end.

pub use super::contracts::{ENUM_CONNECTION_POINTS, ENUM_CONNECTIONS, ENUM_GUID, ENUM_STRING, ENUM_UNKNOWN};
use super::guid::Guid;
use super::serving::{hand_out, principal, serve};
use crate::exporter::Exporter;
use crate::hresult::{E_NOTIMPL, failure};
use crate::lock::lock;
use everywire_model::contract::{Interface, Operation};
use everywire_model::counts::Present;
use everywire_model::object::no_operation;
use everywire_model::{
    Answer, Failure, Hold, Initiator, Marshal, Object, Reference, Remote, Request, Servant, Sink, Success,
    Unmarshal,
};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, Weak};
use uuid::Uuid;

/// Elements that [`all`] asks for at a time.
const AT_ONCE: u32 = 256;
/// Elements that [`all`] takes at the most: an enumerator elsewhere may have no end.
const MOST: usize = 1 << 20;

/// Makes what Next gives of elements, for whoever asks. It runs before anything of the answer is written: writing happens under a lock
/// of the connection, where nothing of others may run, and what part of an answer grants could not be taken back.
pub(super) type Prepare<T, R> =
    for<'a> fn(&Weak<Exporter>, &'a [T], &Request) -> Result<Cow<'a, [R]>, Failure>;

/// Serves an enumerator over a list.
struct Enumerator<T, R: Clone = T> {
    interface: Hold<Interface>,
    /// The node, which the enumerator must not keep alive; nothing where it is known no earlier than at a call.
    exporter: Weak<Exporter>,
    items: Arc<[T]>,
    prepare: Prepare<T, R>,
    /// Elements that were given out or left out so far.
    at: Mutex<usize>,
}

/// IEnumString over these strings.
pub fn strings(items: impl IntoIterator<Item = impl Into<String>>) -> Arc<dyn Servant> {
    let items: Vec<Option<String>> = items.into_iter().map(|item| Some(item.into())).collect();
    over(Hold::Static(&ENUM_STRING), items)
}

/// IEnumGUID over these.
pub fn guids(items: impl IntoIterator<Item = Uuid>) -> Arc<dyn Servant> {
    over(Hold::Static(&ENUM_GUID), items.into_iter().map(Guid).collect())
}

/// IEnumUnknown over these objects.
pub fn objects(items: impl IntoIterator<Item = Reference>) -> Arc<dyn Servant> {
    over(Hold::Static(&ENUM_UNKNOWN), items.into_iter().map(Some).collect::<Vec<_>>())
}

/// The enumerator of a contract of one's own, over these elements: `of::<dyn IEnumOPCItemAttributes, _>(attributes)`.
pub fn of<I, T>(items: Vec<T>) -> Arc<dyn Servant>
where
    I: Remote + ?Sized,
    T: Marshal + Clone + Send + Sync + 'static,
{
    over(Hold::Static(I::interface()), items)
}

/// An enumerator whose interface is known no earlier than at run time. Its methods are those named Next, Skip, Reset and Clone;
/// the results of Next are an array, in which the elements go, and a count.
pub fn over<T: Marshal + Clone + Send + Sync + 'static>(
    interface: Hold<Interface>,
    items: Vec<T>,
) -> Arc<dyn Servant> {
    prepared(interface, Weak::new(), items, |_, items, _| Ok(Cow::Borrowed(items)))
}

/// An enumerator whose elements are made of those of a list when they are asked for.
pub(super) fn prepared<T: Send + Sync + 'static, R: Marshal + Clone + 'static>(
    interface: Hold<Interface>,
    exporter: Weak<Exporter>,
    items: Vec<T>,
    prepare: Prepare<T, R>,
) -> Arc<dyn Servant> {
    Arc::new(Enumerator { interface, exporter, items: items.into(), prepare, at: Mutex::new(0) })
}

impl<T: Send + Sync + 'static, R: Marshal + Clone + 'static> Servant for Enumerator<T, R> {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| {
            let operation = self.interface.operations.get(request.index());
            let operation = operation.ok_or_else(|| no_operation(&self.interface))?;
            match &*operation.name {
                "Next" => {
                    let (count,) = request.arguments::<(u32,)>()?;
                    self.next(request, operation, count)
                }
                "Skip" => {
                    let (count,) = request.arguments::<(u32,)>()?;
                    let code = success(self.take(count), count);
                    request.reply::<_, Failure>(Ok(Success::with(code, ())))
                }
                "Reset" => {
                    *lock(&self.at) = 0;
                    request.reply::<_, Failure>(Ok(()))
                }
                "Clone" => {
                    let held = || Exporter::known(Arc::clone(request.body().wire_state()?) as _);
                    // A call in this process does not say of which node the copy is to be.
                    let exporter = self.exporter.upgrade().or_else(held);
                    let exporter = exporter.ok_or_else(|| failure(E_NOTIMPL, None))?;
                    hand_out(request, serve(&exporter, Arc::new(self.copy()), &principal(request))?)
                }
                _ => Err(no_operation(&self.interface)),
            }
        });
    }
}

impl<T: Send + Sync + 'static, R: Marshal + Clone + 'static> Enumerator<T, R> {
    /// The next elements, up to `count`: the place is behind them now.
    fn take(&self, count: u32) -> &[T] {
        let mut at = lock(&self.at);
        let rest = self.items.get(*at..).unwrap_or_default();
        let taken = rest.get(..count as usize).unwrap_or(rest);
        *at += taken.len();
        taken
    }

    /// The same list at the same place.
    fn copy(&self) -> Self {
        let (interface, items) = (self.interface.clone(), Arc::clone(&self.items));
        let exporter = Weak::clone(&self.exporter);
        Self { interface, exporter, items, prepare: self.prepare, at: Mutex::new(*lock(&self.at)) }
    }

    /// Answers Next: the elements, and how many they are.
    fn next(&self, request: &mut Request, operation: &Operation, count: u32) -> Result<(), Failure> {
        let items = &*(self.prepare)(&self.exporter, self.take(count), request)?;
        let fetched = u32::try_from(items.len()).unwrap_or(count);
        let results = &operation.results;
        request.answer(Answer::Done(&|sink: &mut dyn Sink| {
            sink.status(success(items, count))?;
            sink.open(results, results.fields().len())?;
            for field in results.fields() {
                // The only number among the results is the count; the array is whatever else there is.
                if field.shape.width().is_some() {
                    fetched.marshal(&field.shape, sink)?;
                } else {
                    sink.room(count as usize);
                    Present(items).marshal(&field.shape, sink)?;
                }
            }
            sink.close(results)
        }));
        Ok(())
    }
}

/// Whether all elements were there that were asked for.
fn success<T>(taken: &[T], count: u32) -> i32 {
    if taken.len() == count as usize { Success::PLAIN } else { Success::LESS }
}

/// All strings of an IEnumString from where it is, in as few calls as they need.
///
/// # Errors
/// A call fails, or there is no end to the strings.
pub fn all_strings(object: &Object) -> Result<Vec<String>, Failure> {
    let found: Vec<Option<String>> = all(object, &ENUM_STRING)?;
    Ok(found.into_iter().map(Option::unwrap_or_default).collect())
}

/// All elements of an enumerator from where it is, by the interface whose Next has an array and a count as results, in this order.
///
/// # Errors
/// A call fails, there is no end to them, or Next is another one.
pub fn all<T: for<'a> Unmarshal<'a>>(
    object: &Object,
    interface: &'static Interface,
) -> Result<Vec<T>, Failure> {
    let next = interface.index_of(b"Next").and_then(|index| interface.operations.get(index));
    let next = next.ok_or_else(|| no_operation(interface))?;
    let object = object.clone().typed(Hold::Static(interface));
    let mut all: Vec<T> = Vec::new();
    loop {
        let more: Success<(Vec<T>, u32)> = object.call::<_, _, Failure>(next, (AT_ONCE,))?;
        let is_last = !more.is_plain() || more.value.0.len() < AT_ONCE as usize;
        all.extend(more.value.0);
        if is_last {
            return Ok(all);
        }
        if all.len() >= MOST {
            let what = "elements of an enumerator";
            return Err(Failure::over_limit(Initiator::Peer, what, all.len() as u64 + 1, MOST as u64)
                .at(format_args!("operation {}", next.label)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_gives_each_item_once_and_says_when_it_is_short() {
        let all: Enumerator<i32> = Enumerator {
            interface: Hold::Static(&ENUM_GUID),
            exporter: Weak::new(),
            items: vec![1, 2, 3].into(),
            prepare: |_, items, _| Ok(Cow::Borrowed(items)),
            at: Mutex::default(),
        };
        assert_eq!(all.take(2), [1, 2]);
        let copy = all.copy();
        let rest = all.take(5);
        assert_eq!((rest, success(rest, 5)), (&[3][..], Success::LESS));
        assert_eq!(success(all.take(1), 1), Success::LESS);
        assert_eq!(success(copy.take(1), 1), Success::PLAIN);
        *lock(&all.at) = 0;
        assert_eq!(all.take(3), [1, 2, 3]);
        assert_eq!(success(all.take(0), 0), Success::PLAIN);
    }
}
