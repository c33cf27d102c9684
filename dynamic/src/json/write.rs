//! Values to JSON.
//!
//! The form of each value is that of the table in `json`: what is written here is read there as the same
//! value. The shape is needed because values do not say everything: which digits a number has, what a
//! struct's fields are called by place, and by which word people spell it. A value that is decoded from a
//! peer fits its shape; where it does not, the value's own kind decides, so that nothing fails here.

use super::{Notation, described, kinds, spelled};
use base64::Engine as _;
use everywire::Value;
use everywire_model::TypeCode;
use everywire_model::shape::{Shape, Union};
use everywire_model::value::HeldHandle;
use serde_json::{Map, Number, Value as Json, json};
use std::os::fd::AsRawFd;

/// What is behind pointers, and what may be missing: a value that is there is of that shape.
pub fn held(shape: &Shape) -> &Shape {
    match shape.resolved() {
        Shape::Optional(target) => held(target),
        Shape::Pointer(pointer) => held(&pointer.target),
        _ => shape,
    }
}

/// The value as JSON. A value that does not fit the shape is written all the same, by its own kind.
pub fn write(shape: &Shape, value: &Value, notation: &dyn Notation) -> Json {
    let shape = held(shape);
    if let Some(word) = word(shape, value) {
        return Json::String(word);
    }
    match (shape.resolved(), value) {
        (_, Value::Nothing) => Json::Null,
        (_, Value::Bool(value)) => Json::Bool(*value),
        (_, Value::Integer(value)) => integer(*value),
        // A number of 32 bits has fewer digits than it would have as one of 64.
        (shape, Value::Float(value)) => float(*value, matches!(shape, Shape::F32)),
        (_, Value::Char(value)) => Json::String(value.to_string()),
        (_, Value::Text(value) | Value::Member(value)) => Json::String(value.clone()),
        (_, Value::Bytes(value)) => {
            json!({"base64": base64::engine::general_purpose::STANDARD.encode(value)})
        }
        (shape, Value::List(items)) => {
            let element = shape.element().unwrap_or(&Shape::Void);
            items.iter().map(|item| write(element, item, notation)).collect()
        }
        (Shape::Struct(shape), Value::Struct(values)) if kinds::is_nameless(shape) => {
            let fields = shape.fields.iter().map(|field| &field.shape);
            values.iter().zip(fields).map(|((_, value), shape)| write(shape, value, notation)).collect()
        }
        (shape, Value::Struct(values)) => {
            let fields =
                // Fields without a shape are written by their own kind.
                shape.fields().iter().map(|field| &field.shape).chain(std::iter::repeat(&Shape::Void));
            let pairs =
                values.iter().zip(fields).map(|((name, v), shape)| (name.clone(), write(shape, v, notation)));
            Json::Object(pairs.collect())
        }
        (Shape::Union(union), Value::Union(label, arm)) => {
            let mut out = Map::new();
            out.insert("discriminator".into(), discriminator(&union.discriminator, *label));
            if let Some(arm) = arm {
                out.insert("arm".into(), write(arm_shape(union, *label), &arm.1, notation));
            }
            Json::Object(out)
        }
        (_, Value::Union(label, _)) => json!({"discriminator": label}),
        (Shape::Map(map), Value::Map(pairs)) => {
            let written =
                |(key, value): &(_, _)| (write(&map.key, key, notation), write(&map.value, value, notation));
            let pairs: Vec<(Json, Json)> = pairs.iter().map(written).collect();
            // An object is easier to read, and cannot hold a key twice.
            by_key(&map.key, &pairs)
                .unwrap_or_else(|| pairs.into_iter().map(|(key, value)| json!([key, value])).collect())
        }
        (_, Value::Map(_)) => Json::Null,
        (_, Value::Variant(content)) => {
            let shape = described::describe(&content.0.0, notation);
            json!({"shape": shape, "value": write(&content.0.0, &content.1, notation)})
        }
        (_, Value::TypeCode(code)) => type_code(code, notation),
        (_, Value::Reference(None)) => Json::Null,
        (_, Value::Reference(Some(reference))) => Json::String(notation.print(reference)),
        (_, Value::Handle(handle)) => json!({"handle": file_of(handle)}),
    }
}

/// A description of a type; one that can only be passed on has the octets that it came as.
fn type_code(code: &TypeCode, notation: &dyn Notation) -> Json {
    match code.shape() {
        _ if code.is_null() => Json::Null,
        Some(shape) => described::describe(shape, notation),
        None => {
            let encoded = base64::engine::general_purpose::STANDARD.encode(code.encoded());
            let encoded = json!({ "base64": encoded });
            json!({"kind": code.kind(), "name": code.name(), "id": code.id(), "encoded": encoded})
        }
    }
}

/// The word that people spell a value with, where its type has such.
pub fn word(shape: &Shape, value: &Value) -> Option<String> {
    spelled::write(spelled::of(shape)?, value)
}

/// What a handle leads to, as the system tells: a file, or words such as `pipe:[4711]`.
pub fn file_of(handle: &HeldHandle) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", handle.0.as_raw_fd())).ok()?;
    Some(link.to_string_lossy().into_owned())
}

/// A map as an object: where a key can be its text, and no two are the same.
fn by_key(key: &Shape, pairs: &[(Json, Json)]) -> Option<Json> {
    let shape = key.resolved();
    let text = matches!(shape, Shape::Text(_) | Shape::Enum(_) | Shape::Char | Shape::WideChar);
    if !text && shape.width().is_none() {
        return None;
    }
    let word = |key: &Json| key.as_str().map_or_else(|| key.to_string(), ToOwned::to_owned);
    let out: Map<String, Json> = pairs.iter().map(|(key, value)| (word(key), value.clone())).collect();
    (out.len() == pairs.len()).then_some(Json::Object(out))
}

/// The shape of the arm that a discriminator selects.
pub(super) fn arm_shape(union: &Union, label: i64) -> &Shape {
    union.select(label).and_then(|index| union.arms.get(index)).map_or(&Shape::Void, |arm| &arm.field.shape)
}

/// A discriminator, as its own shape has it.
pub fn discriminator(shape: &Shape, label: i64) -> Json {
    let character = || u32::try_from(label).ok().and_then(char::from_u32);
    match shape.resolved() {
        Shape::Bool => Json::Bool(label != 0),
        Shape::U64 => Json::from(label.cast_unsigned()),
        Shape::Char | Shape::WideChar => {
            character().map_or_else(|| Json::from(label), |c| Json::String(c.to_string()))
        }
        Shape::Enum(members) => {
            let name = i32::try_from(label).ok().and_then(|value| members.name_of(value));
            name.map_or_else(|| Json::from(label), Json::from)
        }
        _ => Json::from(label),
    }
}

/// A number; JSON has none beyond 64 bits.
fn integer(value: i128) -> Json {
    match (i64::try_from(value), u64::try_from(value)) {
        (Ok(value), _) => Json::from(value),
        (_, Ok(value)) => Json::from(value),
        // No shape is that wide; still, no digit is lost.
        _ => Json::String(value.to_string()),
    }
}

/// Numbers that JSON has no notation for become words; a binary32 shows no more digits than it has.
fn float(value: f64, single: bool) -> Json {
    #[allow(clippy::cast_possible_truncation)]
    let shortest = if single { (value as f32).to_string().parse().unwrap_or(value) } else { value };
    match Number::from_f64(shortest) {
        Some(number) => Json::Number(number),
        None if value.is_nan() => Json::from("NaN"),
        None if value > 0.0 => Json::from("Infinity"),
        None => Json::from("-Infinity"),
    }
}
