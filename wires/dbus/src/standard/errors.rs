//! The failures that the standard interfaces answer with (specification, "org.freedesktop.DBus.Properties" and others).

use crate::names::ERRORS;
use everywire_model::{Failure, Initiator, Kind};

/// Nothing is at this path, nor below it.
pub(super) fn unknown_object(path: &str) -> Failure {
    failure(Kind::NoObject, "UnknownObject", format!("there is no object at {path}"))
}

/// The object at this path has no such interface.
pub(super) fn unknown_interface(path: &str, interface: &str) -> Failure {
    let what = format!("the object at {path} has no interface {interface}");
    failure(Kind::NoOperation, "UnknownInterface", what)
}

/// The interface has no such property; an empty interface means all of the object's.
pub(super) fn unknown_property(path: &str, interface: &str, property: &str) -> Failure {
    let message = match interface {
        "" => format!("the object at {path} has no property {property}"),
        name => format!("{name} has no property {property}"),
    };
    failure(Kind::NoOperation, "UnknownProperty", message)
}

/// The property cannot be set.
pub(super) fn read_only(property: &str) -> Failure {
    failure(Kind::Refused, "PropertyReadOnly", format!("the property {property} is read-only"))
}

/// The property cannot be read; no error name is set aside for that.
pub(super) fn write_only(property: &str) -> Failure {
    failure(Kind::Refused, "InvalidArgs", format!("the property {property} is write-only"))
}

/// The arguments do not fit.
pub(super) fn invalid(message: String) -> Failure {
    failure(Kind::BadArgument, "InvalidArgs", message)
}

/// The code is the whole name of the error, so it goes out as it is.
fn failure(kind: Kind, name: &str, message: String) -> Failure {
    Failure::new(kind, Initiator::Peer, message).with_code(format!("{ERRORS}{name}"))
}
