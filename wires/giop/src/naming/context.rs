//! What a node serves, as a context of names (OMG Naming Service, formal/04-10-03,
//! `CosNaming::NamingContextExt`).
//!
//! The names are the keys of the objects that are served, so they change with those alone, and operations
//! that bind or unbind are refused. Nothing is stored but the lists that clients read bit by bit
//! (`Iterators`): for each a number and the key that was told last. A list has no snapshot; the next page
//! begins behind that key, in the order of keys, among what is served then.
//!
//! The number of lists is bounded (`ITERATORS`), since clients may leave theirs without a word. A list is
//! addressed by an object key with its number in it.

use super::{KEY, names};
use crate::contracts::cos_naming::naming_context::{InvalidName, NotFound, NotFoundReason};
use crate::contracts::cos_naming::naming_context_ext::InvalidAddress;
use crate::contracts::cos_naming::{Binding, BindingType, NameComponent, describe};
use crate::wire_state::{Node, NodeServant, reply};
use bytes::Bytes;
use everywire_model::object::{Exception, answer_raised, no_operation};
use everywire_model::{Failure, Initiator, Interface, Kind, Reference, Request, Servant};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What stands between the key of the context and the number of a list that is read bit by bit.
const ITERATOR: &[u8] = b"NameService/list/";
/// Lists that one client reads bit by bit at a time. A new one beyond that ends its oldest, so that no client
/// ends those of others.
const ITERATORS: usize = 64;
/// The same of all clients together. A new one beyond that ends the oldest of all.
const ALL_ITERATORS: usize = 4096;

/// Lists that are read bit by bit: the number that was given last, and the lists in the order in which they
/// began.
#[derive(Debug, Default)]
pub(crate) struct Iterators(Mutex<(u64, VecDeque<IteratorState>)>);

/// A list that is read bit by bit.
#[derive(Debug)]
struct IteratorState {
    number: u64,
    /// The address of the connection that it was asked for by. Another one may have it later, and then shares
    /// the bound with those who were there before.
    client: usize,
    /// The key that was told last.
    last: Bytes,
}

impl Iterators {
    /// Runs `then` with the lists locked. A panic elsewhere leaves them usable: every change is complete in
    /// itself.
    fn with<T>(&self, then: impl FnOnce(&mut (u64, VecDeque<IteratorState>)) -> T) -> T {
        then(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins a list of a client behind this key; its number. Numbers are never used again.
    fn add(&self, client: usize, last: Bytes) -> u64 {
        self.with(|(next, all)| {
            *next += 1;
            let own = |held: &&IteratorState| held.client == client;
            let oldest = if all.iter().filter(own).count() >= ITERATORS {
                all.iter().position(|held| held.client == client)
            } else {
                (all.len() >= ALL_ITERATORS).then_some(0)
            };
            oldest.and_then(|at| all.remove(at));
            all.push_back(IteratorState { number: *next, client, last });
            *next
        })
    }

    /// The key that was told last; nothing if the list has ended.
    fn last(&self, number: u64) -> Option<Bytes> {
        self.with(|(_, all)| all.iter().find(|held| held.number == number).map(|held| held.last.clone()))
    }

    /// Notes the key that was told last.
    fn set(&self, number: u64, last: &Bytes) {
        self.with(|(_, all)| {
            if let Some(held) = all.iter_mut().find(|held| held.number == number) {
                held.last.clone_from(last);
            }
        });
    }

    fn remove(&self, number: u64) {
        self.with(|(_, all)| all.retain(|held| held.number != number));
    }
}

/// The servants of the context and of its lists.
pub(crate) fn servants(node: &Weak<Node>) -> Vec<Arc<dyn Servant>> {
    vec![
        NodeServant::serving(node, &describe::NAMING_CONTEXT_EXT, answer_context),
        NodeServant::serving(node, &describe::BINDING_ITERATOR, answer_list),
    ]
}

/// Whether a servant with this interface answers for this key. The servants that stand by are asked for every
/// key; others answer for their own.
pub(crate) fn answers(interface: &Interface, key: &[u8]) -> bool {
    if std::ptr::eq(interface, &describe::NAMING_CONTEXT_EXT) {
        return key == KEY;
    }
    !std::ptr::eq(interface, &describe::BINDING_ITERATOR) || number_of(key).is_some()
}

/// What the object under this key is, if it is the context or one of its lists.
pub(crate) fn locate(node: &Node, key: &[u8]) -> Option<&'static Interface> {
    if key == KEY {
        return Some(&describe::NAMING_CONTEXT_EXT);
    }
    node.iterators.last(number_of(key)?)?;
    Some(&describe::BINDING_ITERATOR)
}

/// The number of a list, out of its key.
fn number_of(key: &[u8]) -> Option<u64> {
    std::str::from_utf8(key.strip_prefix(ITERATOR)?).ok()?.parse().ok()
}

/// Up to `most` bindings whose keys come after `after`, in the order of keys; the last key among them, and
/// whether there are more.
fn bindings(node: &Node, after: Option<&[u8]>, most: usize) -> (Vec<Binding>, Option<Bytes>, bool) {
    let keys = node.objects().keys();
    let from = after.map_or(0, |after| keys.partition_point(|key| **key <= *after));
    let rest = keys.get(from..).unwrap_or_default();
    let told = rest.get(..most).unwrap_or(rest);
    let bound =
        |key: &Bytes| Binding { binding_name: vec![names::of_key(key)], binding_type: BindingType::Nobject };
    (told.iter().map(bound).collect(), told.last().cloned(), told.len() < rest.len())
}

/// A number of bindings as a client asks for it. Nothing is reserved for it.
fn most(asked: u32) -> usize {
    usize::try_from(asked).unwrap_or(usize::MAX)
}

/// Answers for the context. Operations are told apart by name, as their numbers follow the order in the IDL.
fn answer_context(node: &Node, request: &mut Request) -> Result<(), Failure> {
    let operation = describe::NAMING_CONTEXT_EXT.operations.get(request.index());
    match operation.map_or("", |operation| &operation.name) {
        "resolve" => {
            let (name,) = request.arguments::<(Vec<NameComponent>,)>()?;
            resolve(node, request, name)
        }
        "resolve_str" => {
            let (text,) = request.arguments::<(String,)>()?;
            let Some(name) = names::parse(&text) else { return invalid(request) };
            resolve(node, request, name)
        }
        "list" => {
            let (asked,) = request.arguments::<(u32,)>()?;
            let (bindings, last, more) = bindings(node, None, most(asked));
            let iterator = more.then(|| {
                let client = Arc::as_ptr(request.link()).cast::<()>().addr();
                let number = node.iterators.add(client, last.unwrap_or_default());
                let key = [ITERATOR, number.to_string().as_bytes()].concat();
                node.objects().publish(&describe::BINDING_ITERATOR.id, &key)
            });
            reply(request, (bindings, iterator))
        }
        "to_string" => {
            let (name,) = request.arguments::<(Vec<NameComponent>,)>()?;
            if name.is_empty() { invalid(request) } else { reply(request, (names::print(&name),)) }
        }
        "to_name" => {
            let (text,) = request.arguments::<(String,)>()?;
            let Some(name) = names::parse(&text) else { return invalid(request) };
            reply(request, (name,))
        }
        "to_url" => {
            let (address, text) = request.arguments::<(String, String)>()?;
            if names::parse(&text).is_none() {
                return invalid(request);
            }
            if address.is_empty() {
                return raise(request, &InvalidAddress {});
            }
            let name = everywire_model::reference::escape(text.as_bytes());
            reply(request, (format!("corbaname:{address}#{name}"),))
        }
        "bind" | "rebind" | "bind_context" | "rebind_context" | "unbind" | "new_context"
        | "bind_new_context" | "destroy" => Err(Failure::new(
            Kind::Refused,
            Initiator::User,
            "the names of this context are the keys of what is served, and change with that only",
        )
        .with_hint("run a naming service, and bind names there")),
        _ => Err(no_operation(&describe::NAMING_CONTEXT_EXT)),
    }
}

/// Answers with a reference to the object of that name. A name of several components has a context in front,
/// and there is no context in this one: the answer is NotFound, with the whole name as what is left.
fn resolve(node: &Node, request: &mut Request, name: Vec<NameComponent>) -> Result<(), Failure> {
    let Some(first) = name.first() else { return invalid(request) };
    let found = names::keys_of(first).find_map(|key| {
        let servants = node.objects().servants(&key);
        let type_id = servants.first()?.interface().id.clone();
        Some(node.objects().publish(&type_id, &key))
    });
    let why = match found {
        Some(found) if name.len() == 1 => {
            return reply::<(Option<Reference>,)>(request, (Some(found),));
        }
        Some(_) => NotFoundReason::NotContext,
        None => NotFoundReason::MissingNode,
    };
    raise(request, &NotFound { why, rest_of_name: name })
}

/// Answers with the exception InvalidName.
fn invalid(request: &mut Request) -> Result<(), Failure> {
    raise(request, &InvalidName {})
}

fn raise<X: Exception>(request: &mut Request, exception: &X) -> Result<(), Failure> {
    answer_raised(exception, &mut |answer| request.answer(answer));
    Ok(())
}

/// Answers for the lists that are read bit by bit: `next_one` (0), `next_n` (1) and `destroy` (2) of
/// `CosNaming::BindingIterator`.
fn answer_list(node: &Node, request: &mut Request) -> Result<(), Failure> {
    let number = number_of(request.key());
    let found = number.and_then(|number| Some((number, node.iterators.last(number)?)));
    let (number, last) = found.ok_or_else(|| {
        Failure::new(Kind::NoObject, Initiator::Peer, "this list of names was read, or is too old")
    })?;
    match request.index() {
        0 => {
            let (bindings, told, _) = bindings(node, Some(&last), 1);
            node.iterators.set(number, &told.unwrap_or(last));
            let nothing = || Binding { binding_name: Vec::new(), binding_type: BindingType::Nobject };
            let found = !bindings.is_empty();
            reply(request, (found, bindings.into_iter().next().unwrap_or_else(nothing)))
        }
        1 => {
            let (asked,) = request.arguments::<(u32,)>()?;
            if asked == 0 {
                return Err(Failure::bad_argument("none is asked for"));
            }
            let (bindings, told, _) = bindings(node, Some(&last), most(asked));
            node.iterators.set(number, &told.unwrap_or(last));
            reply(request, (!bindings.is_empty(), bindings))
        }
        2 => {
            node.iterators.remove(number);
            reply(request, ())
        }
        _ => Err(no_operation(&describe::BINDING_ITERATOR)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "many lists, which takes an hour")]
    fn no_client_ends_the_lists_of_others() {
        let all = Iterators::default();
        let first = all.add(1, Bytes::from_static(b"a"));
        let own: Vec<u64> = (0..100).map(|_| all.add(2, Bytes::from_static(b"b"))).collect();
        assert_eq!(all.last(first).as_deref(), Some(&b"a"[..]));
        let left = own.iter().filter(|number| all.last(**number).is_some()).count();
        assert_eq!((left, all.last(own[0])), (64, None), "the oldest are gone");
        for client in 0..4_200 {
            all.add(client, Bytes::new());
        }
        assert_eq!(all.with(|(_, all)| all.len()), ALL_ITERATORS);
    }
}
