//! `org.freedesktop.DBus.Properties`: attributes by name (specification, "Standard Interfaces"). Answers come
//! from the accessors of the objects.
//!
//! A request is first prepared: names are looked up and the value of a `Set` is taken out of its variant, all
//! while the request's bytes are at hand. Then accessors are asked, and the request goes along in a closure,
//! to be answered when they have. Nothing waits, and nothing is kept.
//!
//! An empty interface means any: then the first property of that name counts.

use super::asking::{AccessorCall, AccessorReply, CallerContext, PropertyValue, ask, ask_all};
use super::bundle::{PropertyRead, Values, readings};
use super::contracts::{PROPERTIES, is_standard};
use super::errors;
use super::tree::{Exported, Tree};
use crate::names::of_interface;
use crate::values::VALUES;
use everywire_idl::signature;
use everywire_model::object::no_operation;
use everywire_model::pipe::pipe;
use everywire_model::{
    Attribute, Body, Codec, Failure, Interface, Request, Servant, Shape, Sink, Source, Unmarshal, Visit,
};
use std::sync::Arc;

/// Serves it for every object.
pub(super) struct Properties(pub(super) Tree);

impl Servant for Properties {
    fn interface(&self) -> &Interface {
        &PROPERTIES
    }

    fn dispatch(&self, request: Request) {
        let result = match request.index() {
            0 => self.prepare_get(&request).map(|(reading, shape)| AccessorWork::Get(reading, shape)),
            1 => self.prepare_set(&request).map(AccessorWork::Set),
            2 => self.prepare_get_all(&request).map(AccessorWork::GetAll),
            _ => Err(no_operation(&PROPERTIES)),
        };
        match result {
            Ok(work) => self.begin(work, request),
            Err(failure) => request.finish(Err(failure)),
        }
    }
}

/// What accessors are to be asked. Names are found, and types fit.
enum AccessorWork {
    Get(AccessorCall, Shape),
    Set(AccessorCall),
    GetAll(Vec<PropertyRead>),
}

impl Properties {
    /// Asks the accessors; the request goes along, to be answered when they have answered. After a `Set` nobody is told
    /// of a change from here: the servant knows whether there was one, and says so by
    /// [`everywire_model::Emitter::changed`], however it came about.
    fn begin(&self, work: AccessorWork, mut request: Request) {
        match work {
            AccessorWork::Get(reading, shape) => {
                ask(&self.0, reading, move |told| match told.value(&shape) {
                    Ok(value) => drop(request.reply::<(PropertyValue,), Failure>(Ok((value,)))),
                    Err(other) => other.pass(&mut request),
                })
            }
            AccessorWork::Set(writing) => ask(&self.0, writing, move |told| told.pass(&mut request)),
            AccessorWork::GetAll(readings) => {
                let (names, asks): (Vec<_>, Vec<_>) =
                    readings.into_iter().map(|reading| ((reading.name, reading.shape), reading.ask)).unzip();
                ask_all(&self.0, asks, move |told| match values(names, told) {
                    Ok(values) => drop(request.reply::<(Values,), Failure>(Ok((values,)))),
                    Err(other) => other.pass(&mut request),
                });
            }
        }
    }

    /// A `Get`: the accessor, and the shape of its value.
    ///
    /// # Errors
    /// There is no such object, interface or property, or it cannot be read.
    fn prepare_get(&self, request: &Request) -> Result<(AccessorCall, Shape), Failure> {
        let (interface, name) = request.arguments::<(String, String)>()?;
        let object = self.0.expect(request.key(), &interface)?;
        let (servant, attribute) = property(&object, &interface, &name)?;
        Ok((
            AccessorCall::reading(&object, servant, attribute, &CallerContext::of(request))?,
            attribute.shape.clone(),
        ))
    }

    /// The value becomes the argument of the writing accessor without a tree of values between them.
    fn prepare_set(&self, request: &Request) -> Result<AccessorCall, Failure> {
        let list = PROPERTIES.operations.get(1).map_or(&Shape::Void, |set| &set.arguments);
        request.body().read(|source| {
            source.open(list)?;
            let interface = String::unmarshal(&Shape::Void, source)?;
            let name = String::unmarshal(&Shape::Void, source)?;
            let object = self.0.expect(request.key(), &interface)?;
            let (servant, attribute) = property(&object, &interface, &name)?;
            let setter = attribute.setter.ok_or_else(|| errors::read_only(&name))?;
            let Some(operation) = servant.interface().operations.get(setter) else {
                return Err(errors::read_only(&name));
            };
            source.open(&Shape::Variant)?;
            let value = convey(source, attribute, &operation.arguments)?;
            source.close(&Shape::Variant)?;
            source.close(list)?;
            Ok(AccessorCall::new(&object, servant, setter, &CallerContext::of(request), value))
        })
    }

    /// Properties that cannot be read are left out.
    fn prepare_get_all(&self, request: &Request) -> Result<Vec<PropertyRead>, Failure> {
        let (interface,) = request.arguments::<(String,)>()?;
        let object = self.0.expect(request.key(), &interface)?;
        all_readings(&object, &interface, &CallerContext::of(request))
    }
}

/// The values that were read; the first failure stands for all, so that no caller takes a part for the whole.
fn values(names: Vec<(String, Shape)>, told: Vec<AccessorReply>) -> Result<Values, AccessorReply> {
    let pairs = names.into_iter().zip(told);
    pairs.map(|((name, shape), told)| Ok((name, told.value(&shape)?))).collect()
}

/// The standard interfaces have no properties, and asking for them is no error.
fn all_readings(
    object: &Exported,
    interface: &str,
    behalf: &CallerContext,
) -> Result<Vec<PropertyRead>, Failure> {
    if !interface.is_empty() {
        return match object.servant(interface) {
            Some((servant, interface)) => Ok(readings(object, servant, interface, behalf)),
            None if is_standard(interface) => Ok(Vec::new()),
            None => Err(errors::unknown_interface(&object.path, interface)),
        };
    }
    let mut all: Vec<PropertyRead> = Vec::new();
    for held in object.interfaces() {
        if let Some((servant, held)) = object.servant(&of_interface(held)) {
            for reading in readings(object, servant, held, behalf) {
                // Without an interface the first property of a name is meant, as in `Get`.
                if all.iter().all(|other| other.name != reading.name) {
                    all.push(reading);
                }
            }
        }
    }
    Ok(all)
}

/// The property, and the servant that has it.
///
/// # Errors
/// The object has no such interface, or the interface no such property.
fn property<'a>(
    object: &'a Exported,
    interface: &str,
    name: &str,
) -> Result<(&'a Arc<dyn Servant>, &'a Attribute), Failure> {
    object.property(interface, name).ok_or_else(|| {
        if interface.is_empty() || is_standard(interface) || object.servant(interface).is_some() {
            errors::unknown_property(&object.path, interface, name)
        } else {
            errors::unknown_interface(&object.path, interface)
        }
    })
}

/// The content of an open variant as the arguments of a writing accessor. The types must be the same, letter
/// by letter: nothing is converted.
fn convey<'a>(source: &mut dyn Source<'a>, attribute: &Attribute, arguments: &Shape) -> Visit<Body> {
    let content = source.content()?;
    let (given, wanted) = (signature_of(&content)?, signature_of(&attribute.shape)?);
    if given != wanted {
        let message = format!("the property {} has the type {wanted}, not {given}", attribute.name);
        return Err(errors::invalid(message));
    }
    VALUES.write(&mut |sink: &mut dyn Sink| {
        sink.open(arguments, 1)?;
        pipe(&attribute.shape, source, sink)?;
        sink.close(arguments)
    })
}

/// The types that a value has on this wire.
fn signature_of(shape: &Shape) -> Result<String, Failure> {
    let mut text = String::new();
    match signature::of(shape, &mut text) {
        Ok(()) => Ok(text),
        Err(error) => Err(errors::invalid(format!("{} has no signature: {error}", shape.noun()))),
    }
}
