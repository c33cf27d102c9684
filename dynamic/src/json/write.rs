//! Values to JSON.
//!
//! The form of each value is that of the table in `json`: what is written here is read there as the same
//! value. The shape is needed because values do not say everything: which digits a number has, what a
//! struct's fields are called by place, and by which word people spell it. A value that is decoded from a
//! peer fits its shape; where it does not, the value's own kind decides, so that nothing fails here.
//!
//! States: none. Invariants: nothing is made of a value but what is written of it, one leaf at a time, and the set of the keys of one
//! map: a part of a value is an octet or two on the wire, and would be hundreds in memory as a node of a tree. An object has no member
//! twice.

use super::{Notation, described, kinds, spelled};
use base64::Engine as _;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use everywire::Value;
use everywire_model::TypeCode;
use everywire_model::shape::{Field, Map, Shape, Union};
use everywire_model::value::HeldHandle;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Number, Value as Json, json};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::os::fd::AsRawFd;

/// What is behind pointers, and what may be missing: a value that is there is of that shape.
pub fn held(shape: &Shape) -> &Shape {
    match shape.resolved() {
        Shape::Optional(target) => held(target),
        Shape::Pointer(pointer) => held(&pointer.target),
        _ => shape,
    }
}

/// The value as JSON in memory, which takes some hundred bytes for each part of it: for values that are small, or one's own.
/// Of what strangers send, the text is written at once ([`Written`], [`super::LimitedText`]).
pub fn write(shape: &Shape, value: &Value, notation: &dyn Notation) -> Json {
    // Nothing of it fails: the keys of all objects are text.
    serde_json::to_value(Written { shape, value, notation }).unwrap_or(Json::Null)
}

/// A value that any serializer of JSON can write, without a tree of it in memory. One that does not fit the shape is written all the
/// same, by its own kind.
#[derive(Clone, Copy)]
pub struct Written<'v> {
    /// What the value looks like.
    pub shape: &'v Shape,
    /// The value.
    pub value: &'v Value,
    /// How references and types are written.
    pub notation: &'v dyn Notation,
}

impl Written<'_> {
    fn of<'s>(&'s self, shape: &'s Shape, value: &'s Value) -> Written<'s> {
        Written { shape, value, notation: self.notation }
    }
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let shape = held(self.shape);
        if let Some(word) = word(shape, self.value) {
            return out.serialize_str(&word);
        }
        match (shape.resolved(), self.value) {
            (shape, Value::List(items)) => {
                let element = shape.element().unwrap_or(&Shape::Void);
                out.collect_seq(items.iter().map(|item| self.of(element, item)))
            }
            (Shape::Struct(shape), Value::Struct(values)) if kinds::is_nameless(shape) => {
                let fields = shape.fields.iter().map(|field| &field.shape);
                out.collect_seq(values.iter().zip(fields).map(|((_, value), shape)| self.of(shape, value)))
            }
            (shape, Value::Struct(values)) => self.structure(shape, values, out),
            (Shape::Union(union), Value::Union(label, arm)) => {
                let mut object = out.serialize_map(None)?;
                object.serialize_entry("discriminator", &discriminator(&union.discriminator, *label))?;
                if let Some(arm) = arm {
                    object.serialize_entry("arm", &self.of(arm_shape(union, *label), &arm.1))?;
                }
                object.end()
            }
            (Shape::Map(map), Value::Map(pairs)) => self.map(map, pairs, out),
            (_, Value::Variant(content)) => {
                let mut object = out.serialize_map(Some(2))?;
                object.serialize_entry("shape", &described::describe(&content.0.0, self.notation))?;
                object.serialize_entry("value", &self.of(&content.0.0, &content.1))?;
                object.end()
            }
            (shape, _) => self.leaf(shape, out),
        }
    }
}

impl Written<'_> {
    /// What holds no other values. Apart, so that a level of those that do takes little stack.
    #[inline(never)]
    fn leaf<S: Serializer>(&self, shape: &Shape, out: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Bool(value) => out.serialize_bool(*value),
            Value::Integer(value) => integer(*value).serialize(out),
            // A number of 32 bits has fewer digits than it would have as one of 64.
            Value::Float(value) => float(*value, matches!(shape, Shape::F32)).serialize(out),
            Value::Char(value) => out.serialize_char(*value),
            Value::Text(value) | Value::Member(value) => out.serialize_str(value),
            Value::Bytes(value) => {
                let mut object = out.serialize_map(Some(1))?;
                object.serialize_entry("base64", &Base64(value))?;
                object.end()
            }
            Value::Union(label, _) => json!({"discriminator": label}).serialize(out),
            Value::TypeCode(code) => type_code(code, self.notation).serialize(out),
            Value::Reference(Some(reference)) => out.serialize_str(&self.notation.print(reference)),
            Value::Handle(handle) => json!({"handle": file_of(handle)}).serialize(out),
            // A map without its shape has no keys that could be written.
            _ => out.serialize_unit(),
        }
    }

    fn structure<S: Serializer>(
        &self,
        shape: &Shape,
        values: &[(String, Value)],
        out: S,
    ) -> Result<S::Ok, S::Error> {
        // Fields without a shape are written by their own kind.
        let shape_at = |at| shape.fields().get(at).map_or(&Shape::Void, |field: &Field| &field.shape);
        let mut object = out.serialize_map(Some(values.len()))?;
        let last = last_of_each(values.len(), |at| values.get(at).map_or("", |(name, _)| name));
        for (at, (name, value)) in values.iter().enumerate() {
            let (at, value) = match last.as_ref().map(|last| last.get(name.as_str())) {
                // No name is there twice.
                None => (at, value),
                // The member stands where the first of them is, and has the value of the last, as in any reader's object.
                Some(Some(&(first, last))) if first == at => {
                    (last, values.get(last).map_or(value, |(_, value)| value))
                }
                Some(_) => continue,
            };
            object.serialize_entry(name, &self.of(shape_at(at), value))?;
        }
        object.end()
    }

    /// A map as an object, which is easier to read, where a key can be its text and no two are the same; else as pairs.
    fn map<S: Serializer>(&self, map: &Map, pairs: &[(Value, Value)], out: S) -> Result<S::Ok, S::Error> {
        if !self.is_object(map, pairs) {
            return out.collect_seq(
                pairs.iter().map(|(key, value)| (self.of(&map.key, key), self.of(&map.value, value))),
            );
        }
        let mut object = out.serialize_map(Some(pairs.len()))?;
        for (key, value) in pairs {
            object.serialize_entry(&self.key(&map.key, key), &self.of(&map.value, value))?;
        }
        object.end()
    }

    /// An object cannot hold a key twice.
    #[inline(never)]
    fn is_object(&self, map: &Map, pairs: &[(Value, Value)]) -> bool {
        let shape = map.key.resolved();
        let text = matches!(shape, Shape::Text(_) | Shape::Enum(_) | Shape::Char | Shape::WideChar);
        let mut known = HashSet::new();
        (text || shape.width().is_some())
            && pairs.iter().all(|(key, _)| known.insert(self.key(&map.key, key)))
    }

    /// The text of a key.
    fn key<'s>(&self, shape: &Shape, key: &'s Value) -> Cow<'s, str> {
        match key {
            Value::Text(text) | Value::Member(text) if spelled::of(held(shape)).is_none() => {
                Cow::Borrowed(text)
            }
            key => Cow::Owned(match write(shape, key, self.notation) {
                Json::String(text) => text,
                other => other.to_string(),
            }),
        }
    }
}

/// Of names of which one is there twice: where the first and the last of each are. Nothing where each is there once, as in all that
/// compilers of contracts make; but a peer may describe a struct itself.
pub(super) fn last_of_each<'n>(
    count: usize,
    name: impl Fn(usize) -> &'n str,
) -> Option<HashMap<&'n str, (usize, usize)>> {
    /// So many names are compared with each other faster than they are hashed.
    const FEW: usize = 8;
    let mut at_once = (0..count).flat_map(|at| (0..at).map(move |before| (before, at)));
    if count <= FEW && !at_once.any(|(before, at)| name(before) == name(at)) {
        return None;
    }
    let mut places = HashMap::with_capacity(count);
    for at in 0..count {
        places.entry(name(at)).or_insert((at, at)).1 = at;
    }
    (places.len() < count).then_some(places)
}

/// Octets as text, which is made while it is written.
struct Base64<'b>(&'b [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

/// A description of a type; one that can only be passed on has the octets that it came as.
fn type_code(code: &TypeCode, notation: &dyn Notation) -> Json {
    match code.shape() {
        _ if code.is_null() => Json::Null,
        Some(shape) => described::describe(shape, notation),
        None => {
            let encoded = STANDARD.encode(code.encoded());
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
