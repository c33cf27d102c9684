//! `org.freedesktop.DBus.Introspectable`: what an object can be asked, and which objects are below it.

use super::contracts::{INTROSPECTABLE, OBJECT_MANAGER, PEER, PROPERTIES};
use super::errors;
use super::tree::Tree;
use crate::names::path_of_key;
use everywire_idl::dbus_xml;
use everywire_model::object::no_operation;
use everywire_model::{Failure, Interface, Request, Servant};

/// Serves it for every object, and for every node above one. It describes what is served at the moment, so
/// the answer may differ each time.
pub(super) struct Introspectable(pub(super) Tree);

impl Servant for Introspectable {
    fn interface(&self) -> &Interface {
        &INTROSPECTABLE
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| {
            if request.index() != 0 {
                return Err(no_operation(&INTROSPECTABLE));
            }
            let described = self.describe(request.key());
            request.reply(described.map(|xml| (xml,)))
        });
    }
}

impl Introspectable {
    /// The description of a node. The root is always there. A node above an object has no interfaces of its
    /// own but those of every node. The root, and every object with others below it, is a manager of objects.
    ///
    /// # Errors
    /// Nothing is at this path, nor below it.
    fn describe(&self, key: &[u8]) -> Result<String, Failure> {
        let object = self.0.object(key);
        let path = object.as_ref().map_or_else(|| path_of_key(key), |object| object.path.clone());
        let children: Vec<String> = self.0.children(&path).into_iter().collect();
        if object.is_none() && children.is_empty() && path != "/" {
            return Err(errors::unknown_object(&path));
        }
        let mut interfaces: Vec<&Interface> = Vec::new();
        if let Some(object) = &object {
            interfaces.extend(object.interfaces());
            interfaces.push(&PROPERTIES);
        }
        if path == "/" || (object.is_some() && !children.is_empty()) {
            interfaces.push(&OBJECT_MANAGER);
        }
        interfaces.extend([&INTROSPECTABLE, &PEER]);
        Ok(dbus_xml::print_node(&interfaces, &children))
    }
}
