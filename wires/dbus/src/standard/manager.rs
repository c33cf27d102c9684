//! `org.freedesktop.DBus.ObjectManager`: all objects below one, with all their properties, in one call; and news of
//! objects that come and go.
//!
//! Managers are the root and every exported object; each manages all that is below it, at any depth. So each manager
//! above an object tells of it, not the nearest one alone: clients (GLib's `GDBusObjectManagerClient` is one) listen at
//! the path they asked for objects, and nowhere else.
//!
//! A manager tells news from the first time on that somebody asks it for its objects. Nobody can use the news without
//! that answer, and most services are never asked: their objects come and go without a signal, as with libraries where
//! a program must say that it wants a manager.

use super::asking::CallerContext;
use super::bundle::{Bundle, gather};
use super::contracts::{ADDED, OBJECT_MANAGER, REMOVED};
use super::later::later;
use super::tree::{Exported, Tree, collect};
use crate::names::{of_interface, path_of_key};
use everywire_model::object::no_operation;
use everywire_model::{
    Bytes, Emission, Encode, Failure, Interface, MarshalList, Request, Servant, Signal, Sink,
};
use std::sync::Arc;

/// Serves it for the root and for every object.
pub(super) struct Manager(pub(super) Tree);

impl Servant for Manager {
    fn interface(&self) -> &Interface {
        &OBJECT_MANAGER
    }

    fn dispatch(&self, request: Request) {
        let manager = match self.0.object(request.key()) {
            _ if request.index() != 0 => Err(no_operation(&OBJECT_MANAGER)),
            Some(object) => Ok((object.key, object.path)),
            None if request.key() == b"/" => Ok((Bytes::from_static(b"/"), "/".to_owned())),
            None => self.0.expect(request.key(), &OBJECT_MANAGER.id).map(|object| (object.key, object.path)),
        };
        let (key, path) = match manager {
            Ok(manager) => manager,
            Err(failure) => return request.finish(Err(failure)),
        };
        // First: what is exported while the objects are gathered is told of.
        self.0.asked().note(if path == "/" { b"/" } else { &key });
        if path != "/" && self.0.0.servants(&key).is_empty() {
            // It went before it was noted, so nobody else will forget it.
            self.0.asked().forget(&key);
        }
        let objects = self.0.below(&path);
        let behalf = CallerContext::of(&request);
        let mut request = request;
        gather(&self.0, &objects, &behalf, move |bundle| {
            drop(request.reply::<(Bundle,), Failure>(Ok((bundle,))));
        });
    }
}

/// Tells of an object, or of another interface of it, as soon as its values are known. Returns at once.
pub(super) fn tell_added(tree: &Tree, key: &[u8], servant: &Arc<dyn Servant>) {
    // Whoever asks from now on finds the object among the others.
    if !tree.asked().any() {
        return;
    }
    let (key, path) = (Bytes::copy_from_slice(key), path_of_key(key));
    if path == "/" || tree.asked().among(tree.above(&path)).is_empty() {
        return;
    }
    let (tree, servant) = (tree.clone(), Arc::clone(servant));
    later(&tree.clone(), move || {
        if !is_served(&tree, &key, servant.interface()) {
            return;
        }
        let object = Exported { key: key.clone(), path, servants: vec![Arc::clone(&servant)] };
        gather(&tree.clone(), &[object], &CallerContext::default(), move |bundle| {
            if !is_served(&tree, &key, servant.interface()) {
                return;
            }
            for added in bundle {
                emit(&tree, &tree.asked().among(tree.above(&added.0)), ADDED, &|sink: &mut dyn Sink| {
                    added.marshal_list(&ADDED.fields, sink)
                });
            }
            // If it went between the last look and the signal, what was told of its going may have come first.
            if !is_served(&tree, &key, servant.interface()) {
                tell_removed(&tree, &key, servant.interface());
            }
        });
    });
}

/// Whether the object still has this interface.
fn is_served(tree: &Tree, key: &[u8], interface: &Interface) -> bool {
    tree.object(key).is_some_and(|held| held.serves(interface))
}

/// Tells of an object that is gone, or of one interface of it. What another servant of the object still has,
/// by inheritance, is not told as gone.
pub(super) fn tell_removed(tree: &Tree, key: &[u8], interface: &Interface) {
    if !tree.asked().any() {
        return;
    }
    if tree.0.servants(key).is_empty() {
        tree.asked().forget(key);
    }
    let path = path_of_key(key);
    let managers = tree.asked().among(tree.above(&path));
    if managers.is_empty() {
        return;
    }
    let mut gone = Vec::new();
    collect(interface, &mut gone);
    // What another servant of the object still has stays.
    let name = of_interface(interface);
    let others =
        tree.0.servants(key).into_iter().filter(|held| of_interface(held.interface()) != name).collect();
    let object = Exported { key: Bytes::copy_from_slice(key), path, servants: others };
    let names: Vec<String> = gone
        .into_iter()
        .map(|held| of_interface(held).into_owned())
        .filter(|name| object.servant(name).is_none())
        .collect();
    if !names.is_empty() {
        let removed = (object.path, names);
        emit(tree, &managers, REMOVED, &|sink: &mut dyn Sink| removed.marshal_list(&REMOVED.fields, sink));
    }
}

/// Emits a signal at each of these managers. That news cannot be sent is no failure of whoever exports an
/// object.
fn emit(tree: &Tree, managers: &[Bytes], signal: &Signal, arguments: &dyn Encode) {
    for manager in managers {
        drop(tree.0.emit(&Emission::typed(manager, &OBJECT_MANAGER, signal, arguments)));
    }
}
