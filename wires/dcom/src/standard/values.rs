//! Values between two servants of this process: arguments that came as VARIANTs, results that leave as such, signals that wait.
//!
//! They never were a stub: references in them count no holder, as they would if they were marshalled in between. A body keeps them by the
//! codec of calls that do not leave the process ([`NATIVE`]).

use everywire_model::native::NATIVE;
use everywire_model::value::Value;
use everywire_model::{Body, Codec, Encode, Shape, Visit};

/// A body that holds this value, one struct of arguments or results.
pub(super) fn body_of(value: &Value, shape: &Shape) -> Visit<Body> {
    NATIVE.write(&mut |sink| value.encode(shape, sink))
}

/// A body that holds what is written.
pub(super) fn kept(values: &dyn Encode) -> Visit<Body> {
    NATIVE.write(&mut |sink| values.encode(sink))
}

/// The value of this shape that a body holds.
pub(super) fn value_of(body: &Body, shape: &Shape) -> Visit<Value> {
    body.read(|source| Value::decode(shape, source))
}
