//! Objects with all their interfaces and properties, as managers tell of them.

use super::asking::{AccessorCall, CallerContext, PropertyValue, ask_all};
use super::tree::{Exported, Tree, is_own};
use crate::names::of_interface;
use everywire_model::{Interface, Servant, Shape};
use std::sync::Arc;

/// Properties: name and value.
pub(super) type Values = Vec<(String, PropertyValue)>;
/// Interfaces: name and properties.
pub(super) type Interfaces = Vec<(String, Values)>;
/// Objects: path and interfaces.
pub(super) type Bundle = Vec<(String, Interfaces)>;

/// A property about to be read.
pub(super) struct PropertyRead {
    /// Its name.
    pub(super) name: String,
    /// What it looks like.
    pub(super) shape: Shape,
    /// The call that reads it.
    pub(super) ask: AccessorCall,
}

/// The readable properties of one interface of an object, not those it inherits. A property that cannot be
/// read is left out. `servant` is the one that has the interface, or one derived from it.
pub(super) fn readings(
    object: &Exported,
    servant: &Arc<dyn Servant>,
    interface: &Interface,
    behalf: &CallerContext,
) -> Vec<PropertyRead> {
    let own = interface.attributes.iter().filter(|held| is_own(interface, held));
    own.filter_map(|held| {
        let attribute = servant.interface().attributes.iter().find(|inner| inner.name == held.name)?;
        Some(PropertyRead {
            name: attribute.name.to_string(),
            shape: attribute.shape.clone(),
            ask: AccessorCall::reading(object, servant, attribute, behalf).ok()?,
        })
    })
    .collect()
}

/// Reads all properties of these objects, all at once; `done` gets them with their names. A property whose
/// accessor fails is left out: one that is broken may not hide all the others of all objects.
pub(super) fn gather(
    tree: &Tree,
    objects: &[Exported],
    behalf: &CallerContext,
    done: impl FnOnce(Bundle) + Send + 'static,
) {
    let mut bundle: Bundle = Vec::with_capacity(objects.len());
    let mut places = Vec::new();
    let mut asks = Vec::new();
    for object in objects {
        let mut interfaces: Interfaces = Vec::new();
        for interface in object.interfaces() {
            let name = of_interface(interface);
            if let Some((servant, _)) = object.servant(&name) {
                for reading in readings(object, servant, interface, behalf) {
                    places.push((bundle.len(), interfaces.len(), reading.name, reading.shape));
                    asks.push(reading.ask);
                }
            }
            interfaces.push((name.into_owned(), Vec::new()));
        }
        bundle.push((object.path.clone(), interfaces));
    }
    ask_all(tree, asks, move |told| {
        for ((object, interface, name, shape), told) in places.into_iter().zip(told) {
            let held = bundle.get_mut(object).and_then(|(_, interfaces)| interfaces.get_mut(interface));
            if let (Some((_, values)), Ok(value)) = (held, told.value(&shape)) {
                values.push((name, value));
            }
        }
        done(bundle);
    });
}
