//! `PropertiesChanged`: news of attributes (specification, "org.freedesktop.DBus.Properties").
//!
//! A servant says that an attribute has changed; what is told depends on the attribute: nothing, that it
//! changed, or its new value. The value is asked for later, on another thread, since the servant may hold a
//! lock that its accessor needs: so it is told behind signals and answers that the servant sends meanwhile. A
//! value that the servant gives with the change is told at once, in the order of what it says (`tell_known`).
//!
//! State: for each property whose value is being asked for, the number of its newest change. Only the answer
//! to that one is told (`finish`), and ends the entry; the end of the object does so, too (`forget`), since an
//! accessor may never answer.

use super::asking::{AccessorCall, CallerContext, PropertyValue, ask};
use super::bundle::Values;
use super::contracts::{CHANGED, PROPERTIES};
use super::later::later;
use super::tree::{Tree, declaring};
use crate::names::of_interface;
use everywire_model::{Attribute, Bytes, Emission, Encode, Failure, Interface, MarshalList, Notify, Sink};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Changes whose new value is being asked for.
///
/// An accessor may answer late, and an older one later than a newer one; then the newer one's value was told already,
/// and the older one may not replace it in the caches of those who listen.
#[derive(Clone, Default)]
pub(super) struct Changes(Arc<Mutex<Pending>>);

#[derive(Default)]
struct Pending {
    /// The number of the last change.
    next: u64,
    /// The number of the newest change of each property.
    newest: HashMap<Property, u64>,
}

/// A property: the object's key, the interface, the name.
type Property = (Bytes, String, String);

impl Changes {
    /// Tells of a change, in the way that the attribute asks for.
    ///
    /// # Errors
    /// The news cannot be sent, as far as that is known at once: a value is asked for and sent later.
    pub(super) fn tell(
        &self,
        tree: &Tree,
        key: &[u8],
        interface: &Interface,
        attribute: &Attribute,
    ) -> Result<(), Failure> {
        let name = attribute.name.to_string();
        let news = ChangeSource::of(tree, key, interface, attribute);
        match attribute.notify {
            Notify::Constant | Notify::Nothing => return Ok(()),
            Notify::Change => return news.send(Vec::new(), vec![name]),
            Notify::Value => {}
        }
        let number = self.begin(news.property(&name));
        let pending = self.clone();
        later(tree, move || pending.tell_value(news, name, number));
        Ok(())
    }

    /// Tells of a change at once, in the way that the attribute asks for; `answer` writes what its reading accessor would answer.
    ///
    /// # Errors
    /// The value does not encode, or the news cannot be sent.
    pub(super) fn tell_known(
        &self,
        tree: &Tree,
        key: &[u8],
        interface: &Interface,
        attribute: &Attribute,
        answer: &dyn Encode,
    ) -> Result<(), Failure> {
        if attribute.notify != Notify::Value {
            return self.tell(tree, key, interface, attribute);
        }
        let name = attribute.name.to_string();
        let news = ChangeSource::of(tree, key, interface, attribute);
        let value = PropertyValue::of(answer, &attribute.shape)?;
        // An older value that is still being asked for is told no more.
        let property = news.property(&name);
        let number = self.begin(property.clone());
        self.finish(&property, number);
        news.send(vec![(name, value)], Vec::new())
    }

    /// Asks for the value, and tells it. An object that is gone, or an accessor that fails, is told as a
    /// property whose value has to be asked for.
    fn tell_value(self, news: ChangeSource, name: String, number: u64) {
        let tree = news.tree.clone();
        let object = tree.object(&news.key);
        let reading = object.as_ref().and_then(|object| {
            let (servant, attribute) = object.property(&news.interface, &name)?;
            let reading =
                AccessorCall::reading(object, servant, attribute, &CallerContext::default()).ok()?;
            Some((reading, attribute.shape.clone()))
        });
        let told = move |value: Option<PropertyValue>| {
            if self.finish(&news.property(&name), number) {
                let sent = match value {
                    Some(value) => news.send(vec![(name, value)], Vec::new()),
                    // Whoever wants the value asks, and gets the failure.
                    None => news.send(Vec::new(), vec![name]),
                };
                // Nobody is left who could be told.
                drop(sent);
            }
        };
        match reading {
            Some((reading, shape)) => ask(&tree, reading, move |answer| told(answer.value(&shape).ok())),
            None => told(None),
        }
    }

    /// Notes a change; it takes the place of one of the same property that is still being asked for. 0, which
    /// no change has, after a panic under the lock.
    fn begin(&self, property: Property) -> u64 {
        let Ok(mut pending) = self.0.lock() else { return 0 };
        pending.next += 1;
        let number = pending.next;
        pending.newest.insert(property, number);
        number
    }

    /// The object is gone, and so are its changes.
    pub(super) fn forget(&self, key: &[u8]) {
        if let Ok(mut pending) = self.0.lock() {
            pending.newest.retain(|(held, ..), _| held != key);
        }
    }

    /// Ends a change; says whether no newer one took its place.
    fn finish(&self, property: &Property, number: u64) -> bool {
        let Ok(mut pending) = self.0.lock() else { return false };
        let newest = pending.newest.get(property) == Some(&number);
        if newest {
            pending.newest.remove(property);
        }
        newest
    }
}

/// Where news of a property come from: the object, and the interface that declares it.
struct ChangeSource {
    tree: Tree,
    key: Bytes,
    interface: String,
}

impl ChangeSource {
    fn of(tree: &Tree, key: &[u8], interface: &Interface, attribute: &Attribute) -> Self {
        Self {
            tree: tree.clone(),
            key: Bytes::copy_from_slice(key),
            interface: of_interface(declaring(interface, attribute)).into_owned(),
        }
    }

    /// What the change is noted by.
    fn property(&self, name: &str) -> Property {
        (self.key.clone(), self.interface.clone(), name.to_owned())
    }

    /// Emits `PropertiesChanged`: properties with their values, and names of those whose value has to be
    /// asked for.
    fn send(&self, changed: Values, invalidated: Vec<String>) -> Result<(), Failure> {
        let arguments = (self.interface.as_str(), changed, invalidated);
        let arguments = |sink: &mut dyn Sink| arguments.marshal_list(&CHANGED.fields, sink);
        self.tree.0.emit(&Emission::typed(&self.key, &PROPERTIES, CHANGED, &arguments))
    }
}
