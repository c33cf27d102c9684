//! JSON to values, guided by a shape; mistakes say exactly where and what.
//!
//! The shape decides what each part of the JSON may be; JSON that could mean several things (octets as text,
//! a list or an object) is taken by its form. The path grows and shrinks with the part that is being read,
//! and stands in front of every message.
//!
//! Nothing is guessed: an integer must fit its type, a field that the struct has not is a mistake, and one that
//! is missing is a mistake unless it may be empty. Only a value of any shape may leave its type to the JSON.
//!
//! JSON may come from strangers. It names files only where the notation allows that (`opens_files`), and
//! references are parsed, not called. The depth is that of the JSON, which its parser bounds.

use super::spelled::{self, Spelling};
use super::write::discriminator;
use super::{Notation, described, kinds};
use crate::wording;
use base64::Engine as _;
use everywire::{Bytes, Value};
use everywire_model::TypeCode;
use everywire_model::shape::{Field, Map as MapShape, Shape, Text, Union};
use everywire_model::value::{HeldHandle, TypedShape};
use serde_json::{Map, Number, Value as Json};
use std::fmt;
use std::sync::Arc;

/// A part of the JSON that does not fit the contract.
#[derive(Debug, PartialEq, Eq)]
pub struct JsonMismatch {
    /// Where: `arguments.items[3].name`. From the whole that the caller named.
    path: String,
    /// What is wrong there.
    message: String,
    /// Whether a part is missing rather than wrong.
    pub missing: bool,
}

impl fmt::Display for JsonMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Reads a value of this shape; `path` names the whole in messages.
///
/// # Errors
/// The JSON does not fit the shape; the message says where and how.
pub fn read(shape: &Shape, json: &Json, path: &str, notation: &dyn Notation) -> Result<Value, JsonMismatch> {
    Reader { path: path.to_owned(), notation }.value(shape, json)
}

/// Reads a value from one word of a command line: JSON, but text, characters, enumerations, references and octets need
/// no quotes, and octets and handles may come from a file (`@FILE`), where [`Notation::opens_files`] says so.
///
/// # Errors
/// The word does not fit the shape.
pub fn read_word(
    shape: &Shape,
    word: &str,
    path: &str,
    notation: &dyn Notation,
) -> Result<Value, JsonMismatch> {
    let mut reader = Reader { path: path.to_owned(), notation };
    let resolved = shape.resolved();
    let parsed: Option<Json> = serde_json::from_str(word).ok();
    let octets = matches!(resolved.element().map(Shape::resolved), Some(Shape::U8));
    match resolved {
        _ if let Some(spelling) = spelled::of(shape) => match parsed {
            Some(json @ (Json::Object(_) | Json::String(_))) => reader.value(shape, &json),
            Some(json @ Json::Number(_)) if spelling == Spelling::Date => reader.value(shape, &json),
            _ => reader.value(shape, &Json::from(word)),
        },
        _ if octets && word.starts_with('@') && notation.opens_files() => {
            let file = word.trim_start_matches('@');
            let data = std::fs::read(file)
                .map_err(|error| reader.wrong(format!("`{file}` cannot be read: {error}")))?;
            reader.octets(resolved, data)
        }
        Shape::Handle if word.starts_with('@') => reader.open(word.trim_start_matches('@')),
        _ if octets => match parsed {
            Some(json @ (Json::Array(_) | Json::Object(_) | Json::String(_))) => reader.value(shape, &json),
            _ => reader.octets(resolved, word.as_bytes().to_vec()),
        },
        Shape::Enum(members) if members.open => match parsed {
            Some(json @ (Json::String(_) | Json::Number(_))) => reader.value(shape, &json),
            _ => reader.value(shape, &Json::from(word)),
        },
        Shape::Text(_) | Shape::Char | Shape::WideChar | Shape::Enum(_) => match parsed {
            Some(json @ Json::String(_)) => reader.value(shape, &json),
            _ => reader.value(shape, &Json::from(word)),
        },
        Shape::TypeCode => match parsed {
            Some(json @ (Json::Object(_) | Json::String(_) | Json::Null)) => reader.value(shape, &json),
            _ => reader.value(shape, &Json::from(word)),
        },
        Shape::Reference(_) => match parsed {
            Some(json @ (Json::String(_) | Json::Null)) => reader.value(shape, &json),
            _ => reader.value(shape, &Json::from(word)),
        },
        Shape::Optional(inner) if parsed != Some(Json::Null) => read_word(inner, word, path, notation),
        Shape::Pointer(inner) if parsed != Some(Json::Null) => read_word(&inner.target, word, path, notation),
        _ => match parsed {
            Some(json) => reader.value(shape, &json),
            // `NaN` and its like need no quotes either.
            None => reader.value(shape, &Json::from(word)),
        },
    }
}

struct Reader<'n> {
    path: String,
    /// Reads references and names of types.
    notation: &'n dyn Notation,
}

impl Reader<'_> {
    /// A value of this shape.
    fn value(&mut self, shape: &Shape, json: &Json) -> Result<Value, JsonMismatch> {
        macro_rules! integer {
            ($type:ident, $number:expr) => {
                match exact($number) {
                    Some(value) if $type::try_from(value).is_ok() => Ok(Value::Integer(value)),
                    _ => Err(self.wrong(format!("{} does not fit {}", $number, stringify!($type)))),
                }
            };
        }
        // Types with a spelling of their own: their text is read first, then their plain form.
        if let Some(spelling) = spelled::of(shape) {
            let plain = matches!(json, Json::Object(_)) || spelling == Spelling::Date;
            let text = match json {
                Json::String(text) => Some(text.clone()),
                // Digits count, not the number that is nearest to them, which has no more than these for certain.
                Json::Number(number) if !plain && number.is_f64() && digits(number) > DIGITS => {
                    return Err(
                        self.wrong(format!("{number} has too many digits for a number: give it as text"))
                    );
                }
                Json::Number(number) if !plain => Some(number.to_string()),
                _ => None,
            };
            match text.map(|text| spelled::read(spelling, &text)) {
                Some(Some(value)) => return Ok(value),
                None if plain => {}
                _ => {
                    return Err(self.wrong(format!("{} is expected, not {json}", spelled::noun(spelling))));
                }
            }
        }
        match (shape.resolved(), json) {
            (Shape::Void, Json::Null) => Ok(Value::Nothing),
            (Shape::Bool, Json::Bool(value)) => Ok(Value::Bool(*value)),
            (Shape::U8, Json::Number(number)) => integer!(u8, number),
            (Shape::I8, Json::Number(number)) => integer!(i8, number),
            (Shape::U16, Json::Number(number)) => integer!(u16, number),
            (Shape::I16, Json::Number(number)) => integer!(i16, number),
            (Shape::U32, Json::Number(number)) => integer!(u32, number),
            (Shape::I32, Json::Number(number)) => integer!(i32, number),
            (Shape::U64, Json::Number(number)) => integer!(u64, number),
            (Shape::I64, Json::Number(number)) => integer!(i64, number),
            (float @ (Shape::F32 | Shape::F64), Json::Number(number)) => {
                let value = number.as_f64().unwrap_or(f64::NAN);
                #[allow(clippy::cast_possible_truncation)]
                if matches!(float, Shape::F32) && (value as f32).is_infinite() {
                    return Err(self.wrong(format!("{number} does not fit f32")));
                }
                Ok(Value::Float(value))
            }
            (Shape::F32 | Shape::F64, Json::String(word)) => match word.as_str() {
                "NaN" => Ok(Value::Float(f64::NAN)),
                "Infinity" => Ok(Value::Float(f64::INFINITY)),
                "-Infinity" => Ok(Value::Float(f64::NEG_INFINITY)),
                _ => Err(self.unfit(shape, json)),
            },
            (Shape::Char | Shape::WideChar, Json::String(text)) => {
                let mut characters = text.chars();
                match (characters.next(), characters.next()) {
                    (Some(character), None) => Ok(Value::Char(character)),
                    _ => Err(self.wrong(format!("one character is expected, not {}", text.chars().count()))),
                }
            }
            (Shape::Text(text), Json::String(value)) => self.text(text, value),
            (Shape::Enum(members), Json::String(name)) => match members.value_of_names(name) {
                Some(_) if members.value_of(name).is_some() => Ok(Value::Member(name.clone())),
                Some(value) => Ok(Value::member(members, value)),
                None => {
                    let names: Vec<_> = members.members.iter().map(|(name, _)| name.as_ref()).collect();
                    let known = names.join(", ");
                    Err(self.wrong(format!("`{name}` is no member of {}; members are {known}", members.name)))
                }
            },
            (Shape::Enum(members), Json::Number(number)) if members.open => {
                let bits = number.as_i64().and_then(|number| members.number(number.into()));
                bits.map(|bits| Value::member(members, bits)).ok_or_else(|| self.unfit(shape, json))
            }
            (Shape::Reference(_), Json::Null) => Ok(Value::Reference(None)),
            (Shape::Reference(_), Json::String(text)) => match self.notation.parse(text) {
                Ok(reference) => Ok(Value::Reference(Some(reference))),
                Err(failure) => Err(self.wrong(failure.to_string())),
            },
            (resolved @ (Shape::Sequence(_) | Shape::Array(_)), json) => self.items(resolved, json),
            (Shape::Struct(fields), Json::Array(items)) if kinds::is_nameless(fields) => {
                self.places(&fields.fields, items)
            }
            (Shape::Struct(fields), Json::Object(object)) => self.fields(&fields.fields, object),
            (Shape::Union(union), Json::Object(object)) => self.union(union, object),
            (Shape::Map(map), json) => self.map(map, json),
            (Shape::Optional(_) | Shape::Pointer(_), Json::Null) => Ok(Value::Nothing),
            (Shape::Optional(target), json) => self.value(target, json),
            (Shape::Pointer(pointer), json) => self.value(&pointer.target, json),
            (Shape::Variant, json) => self.any(json),
            (Shape::TypeCode, json) => self.type_code(json),
            (Shape::Handle, Json::Object(object)) if object.len() == 1 => {
                match object.get("handle").and_then(Json::as_str) {
                    Some(file) => self.open(file),
                    None => Err(self.unfit(shape, json)),
                }
            }
            (resolved, json) => Err(self.unfit(resolved, json)),
        }
    }

    /// A text within its bound, which counts characters.
    fn text(&self, shape: &Text, value: &str) -> Result<Value, JsonMismatch> {
        match shape.bound {
            Some(bound) if value.chars().count() > bound as usize => {
                let count = value.chars().count();
                Err(self.wrong(format!("at most {bound} characters are allowed, not {count}")))
            }
            _ => Ok(Value::Text(value.to_owned())),
        }
    }

    /// A list, of as many elements as the shape allows.
    fn items(&mut self, shape: &Shape, json: &Json) -> Result<Value, JsonMismatch> {
        let element = shape.element().unwrap_or(&Shape::Void);
        if matches!(element.resolved(), Shape::U8) {
            let data = self.octet_data(json)?;
            return self.octets(shape, data);
        }
        let Json::Array(items) = json else { return Err(self.unfit(shape, json)) };
        self.count(shape, items.len())?;
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            values.push(self.within(&format!("[{index}]"), |reader| reader.value(element, item))?);
        }
        Ok(Value::List(values))
    }

    /// Text stands for its octets in UTF-8.
    fn octet_data(&mut self, json: &Json) -> Result<Vec<u8>, JsonMismatch> {
        match json {
            Json::String(text) => Ok(text.as_bytes().to_vec()),
            Json::Array(items) => {
                let octet = |json: &Json| json.as_u64().and_then(|value| u8::try_from(value).ok());
                let read = |(index, item)| {
                    octet(item).ok_or_else(|| JsonMismatch {
                        path: format!("{}[{index}]", self.path),
                        ..self.wrong(format!("{item} does not fit u8"))
                    })
                };
                items.iter().enumerate().map(read).collect()
            }
            Json::Object(object) if object.len() == 1 => match object.iter().next() {
                Some((key, Json::String(text))) if key == "base64" => {
                    base64::engine::general_purpose::STANDARD
                        .decode(text)
                        .map_err(|error| self.wrong(format!("this is not base64: {error}")))
                }
                Some((key, Json::String(text))) if key == "hex" => {
                    from_hex(text).ok_or_else(|| self.wrong("pairs of hexadecimal digits are expected"))
                }
                _ => Err(self.wrong(OCTETS)),
            },
            _ => Err(self.wrong(OCTETS)),
        }
    }

    /// Octets, of as many as the shape allows.
    fn octets(&self, shape: &Shape, data: Vec<u8>) -> Result<Value, JsonMismatch> {
        self.count(shape, data.len())?;
        Ok(Value::Bytes(Bytes::from(data)))
    }

    /// Whether a list may have so many elements.
    fn count(&self, shape: &Shape, count: usize) -> Result<(), JsonMismatch> {
        match shape {
            Shape::Array(array) if array.len as usize != count => {
                Err(self.wrong(format!("{} elements are expected, not {count}", array.len)))
            }
            Shape::Sequence(sequence) => match sequence.bound {
                Some(bound) if count > bound as usize => {
                    Err(self.wrong(format!("at most {bound} elements are allowed, not {count}")))
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// The fields of a struct by name; those that may be empty may be missing.
    fn fields(&mut self, fields: &[Field], object: &Map<String, Json>) -> Result<Value, JsonMismatch> {
        let names = || fields.iter().map(|field| field.name.as_ref()).collect::<Vec<_>>().join(", ");
        if let Some(unknown) = object.keys().find(|key| fields.iter().all(|field| field.name != **key)) {
            let known = if fields.is_empty() {
                "there are none".to_owned()
            } else {
                format!("there are {}", names())
            };
            return Err(self.wrong(format!("there is no field `{unknown}`; {known}")));
        }
        let mut values = Vec::with_capacity(fields.len());
        for field in fields {
            let value = match object.get(field.name.as_ref()) {
                Some(json) => {
                    self.within(&format!(".{}", field.name), |reader| reader.value(&field.shape, json))?
                }
                None if optional(&field.shape) => Value::Nothing,
                None => {
                    let message = format!("`{}` is missing; the fields are {}", field.name, names());
                    return Err(JsonMismatch { missing: true, ..self.wrong(message) });
                }
            };
            values.push((field.name.to_string(), value));
        }
        Ok(Value::Struct(values))
    }

    /// The fields of a struct without names, in order.
    fn places(&mut self, fields: &[Field], items: &[Json]) -> Result<Value, JsonMismatch> {
        if items.len() != fields.len() {
            return Err(self.wrong(format!("{} values are expected, not {}", fields.len(), items.len())));
        }
        let mut values = Vec::with_capacity(fields.len());
        for (index, (field, item)) in fields.iter().zip(items).enumerate() {
            let value = self.within(&format!("[{index}]"), |reader| reader.value(&field.shape, item))?;
            values.push((field.name.to_string(), value));
        }
        Ok(Value::Struct(values))
    }

    /// A handle of a file, for reading.
    fn open(&self, file: &str) -> Result<Value, JsonMismatch> {
        if !self.notation.opens_files() {
            return Err(self.wrong(format!("`{file}` is not opened: a handle cannot be given here")));
        }
        let opened = std::fs::File::open(file)
            .map_err(|error| self.wrong(format!("`{file}` cannot be opened: {error}")))?;
        Ok(Value::Handle(HeldHandle(Arc::new(opened.into()))))
    }

    fn union(&mut self, union: &Union, object: &Map<String, Json>) -> Result<Value, JsonMismatch> {
        let Some(json) = object.get("discriminator") else {
            return Err(
                self.wrong("`discriminator` is missing; a union is {\"discriminator\": ..., \"arm\": ...}")
            );
        };
        let label = self.within(".discriminator", |reader| reader.label(&union.discriminator, json))?;
        let arm = union.select(label).and_then(|index| union.arms.get(index));
        // The arm stands beside the discriminator, and nothing else does.
        let given = object.iter().find(|(key, _)| *key != "discriminator");
        match (arm, given) {
            (None, None) => Ok(Value::Union(label, None)),
            (Some(arm), Some((key, json)))
                if object.len() == 2 && (key == "arm" || *key == arm.field.name) =>
            {
                let value = self.within(&format!(".{key}"), |reader| reader.value(&arm.field.shape, json))?;
                Ok(Value::Union(label, Some(Box::new((arm.field.name.to_string(), value)))))
            }
            (Some(arm), _) => {
                let label = discriminator(&union.discriminator, label);
                let noun = arm.field.shape.noun();
                Err(self.wrong(format!(
                    "discriminator {label} selects `{}`: give `arm`, a {noun}",
                    arm.field.name
                )))
            }
            (None, Some((key, _))) => {
                let label = discriminator(&union.discriminator, label);
                Err(self.wrong(format!("discriminator {label} selects no arm, so there is no `{key}`")))
            }
        }
    }

    /// A discriminator: a value of its shape, as the number that unions are selected by.
    fn label(&mut self, shape: &Shape, json: &Json) -> Result<i64, JsonMismatch> {
        let value = self.value(shape, json)?;
        let label = match (&value, shape.resolved()) {
            (Value::Bool(value), _) => Some(i64::from(*value)),
            (Value::Integer(value), Shape::U64) => u64::try_from(*value).ok().map(u64::cast_signed),
            (Value::Integer(value), _) => i64::try_from(*value).ok(),
            (Value::Char(value), _) => Some(i64::from(u32::from(*value))),
            (Value::Member(name), Shape::Enum(members)) => members.value_of(name).map(i64::from),
            _ => None,
        };
        label.ok_or_else(|| self.unfit(shape, json))
    }

    /// Pairs stay in their order; whether keys are twice is the wire's matter.
    fn map(&mut self, map: &MapShape, json: &Json) -> Result<Value, JsonMismatch> {
        let mut pairs = Vec::new();
        match json {
            Json::Object(object) => {
                for (key, value) in object {
                    let place = format!("[{key:?}]");
                    let key = self.within(&place, |reader| reader.key(&map.key, key))?;
                    pairs.push((key, self.within(&place, |reader| reader.value(&map.value, value))?));
                }
            }
            Json::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let pair = self.within(&format!("[{index}]"), |reader| {
                        match item.as_array().map(Vec::as_slice) {
                            Some([key, value]) => {
                                Ok((reader.value(&map.key, key)?, reader.value(&map.value, value)?))
                            }
                            _ => Err(reader.wrong("a pair [key, value] is expected")),
                        }
                    })?;
                    pairs.push(pair);
                }
            }
            other => return Err(self.wrong(format!("a map is expected, not {}", noun(other)))),
        }
        Ok(Value::Map(pairs))
    }

    /// A key of an object: text as it is, anything else as the JSON that the text is.
    fn key(&mut self, shape: &Shape, text: &str) -> Result<Value, JsonMismatch> {
        let number = shape.width().and_then(|_| serde_json::from_str(text).ok());
        self.value(shape, &number.unwrap_or_else(|| Json::from(text)))
    }

    /// A value that brings its own shape, or plain JSON that suggests one.
    fn any(&mut self, json: &Json) -> Result<Value, JsonMismatch> {
        let plain = |shape: Shape, value: Value| Ok(Value::Variant(Box::new((TypedShape(shape), value))));
        match json {
            Json::Null => plain(Shape::Void, Value::Nothing),
            Json::Bool(value) => plain(Shape::Bool, Value::Bool(*value)),
            Json::String(text) => plain(Shape::Text(Text::NARROW), Value::Text(text.clone())),
            Json::Number(number) => match exact(number) {
                Some(value) if i32::try_from(value).is_ok() => plain(Shape::I32, Value::Integer(value)),
                Some(value) if i64::try_from(value).is_ok() => plain(Shape::I64, Value::Integer(value)),
                Some(value) => plain(Shape::U64, Value::Integer(value)),
                None => plain(Shape::F64, Value::Float(number.as_f64().unwrap_or(f64::NAN))),
            },
            Json::Object(object) => match (object.get("shape"), object.get("value")) {
                (Some(told), Some(value)) if object.len() == 2 => {
                    let shape = self.described(told)?;
                    let value = self.within(".value", |reader| reader.value(&shape, value))?;
                    plain(shape, value)
                }
                _ => Err(self.wrong("a value of any shape is {\"shape\": \"i32\", \"value\": 1}")),
            },
            Json::Array(_) => {
                Err(self.wrong("a list needs its shape: {\"shape\": \"sequence<i32>\", \"value\": [...]}"))
            }
        }
    }

    /// The shape that JSON describes, as a mistake of this place.
    fn described(&self, told: &Json) -> Result<Shape, JsonMismatch> {
        described::shape_of(told, self.notation).map_err(|message| self.wrong(message))
    }

    /// A description of a type. One that can only be passed on has its octets.
    fn type_code(&mut self, json: &Json) -> Result<Value, JsonMismatch> {
        let code = match json {
            Json::Null => TypeCode::null(),
            Json::Object(object) if let Some(encoded) = object.get("encoded") => {
                let shape = Shape::sequence(Shape::U8);
                let Value::Bytes(encoded) =
                    self.within(".encoded", |reader| reader.value(&shape, encoded))?
                else {
                    return Err(self.wrong(OCTETS));
                };
                let word = |key: &str| {
                    object
                        .get(key)
                        .and_then(Json::as_str)
                        .map(|word| word.to_owned().into())
                        .unwrap_or_default()
                };
                TypeCode::read(word("kind"), word("id"), word("name"), encoded)
            }
            told => TypeCode::new(self.described(told)?),
        };
        Ok(Value::TypeCode(Box::new(code)))
    }

    /// Reads a part of the JSON that has this name in paths.
    fn within<T>(
        &mut self,
        part: &str,
        read: impl FnOnce(&mut Self) -> Result<T, JsonMismatch>,
    ) -> Result<T, JsonMismatch> {
        let len = self.path.len();
        self.path.push_str(part);
        let result = read(self);
        self.path.truncate(len);
        result
    }

    /// A mistake at this place.
    fn wrong(&self, message: impl Into<String>) -> JsonMismatch {
        JsonMismatch { path: self.path.clone(), message: message.into(), missing: false }
    }

    /// The JSON is of another kind than the shape wants.
    fn unfit(&self, shape: &Shape, json: &Json) -> JsonMismatch {
        self.wrong(format!("{} is expected, not {}", expected(shape), noun(json)))
    }
}

const OCTETS: &str = "octets are {\"base64\": \"...\"}, {\"hex\": \"...\"}, an array of numbers, or text";

/// Decimal digits that a number with a fraction keeps.
const DIGITS: usize = 15;

/// Whether a field or an argument may be missing.
pub(crate) fn optional(shape: &Shape) -> bool {
    matches!(shape.resolved(), Shape::Optional(_))
}

/// An integer without loss; `1.0` and `1e3` are none.
fn exact(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// How many decimal digits a number has, without zeros before them.
fn digits(number: &Number) -> usize {
    let text = number.to_string();
    text.trim_start_matches(['-', '0', '.']).bytes().filter(u8::is_ascii_digit).count()
}

/// What a shape wants, for messages.
fn expected(shape: &Shape) -> String {
    match shape.resolved() {
        Shape::Bool => "a boolean".into(),
        Shape::F32 | Shape::F64 => "a number".into(),
        Shape::Char | Shape::WideChar => "a character".into(),
        Shape::Sequence(_) | Shape::Array(_) => "a list".into(),
        Shape::Struct(fields) if kinds::is_nameless(fields) => format!("a list {}", wording::noun(shape)),
        Shape::Struct(fields) if fields.name.is_empty() => "an object".into(),
        Shape::Struct(fields) => format!("an object ({})", fields.name),
        Shape::Union(union) => format!("an object ({})", union.name),
        Shape::Enum(members) if members.open => {
            format!("a member of {}, several with | between them, or a number of 32 bits", members.name)
        }
        Shape::Enum(members) => format!("the name of a member of {}", members.name),
        Shape::Reference(_) => "the text of an object reference, or null".into(),
        Shape::Handle => "a file to open ({\"handle\": \"FILE\"}, or the word @FILE)".into(),
        Shape::Void => "null".into(),
        other => match shape.width() {
            Some(_) => format!("a number ({})", other.noun()),
            None => other.noun().into_owned(),
        },
    }
}

/// What the JSON is, for messages.
fn noun(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: String = text.split_whitespace().collect();
    everywire_model::hex::decode(digits.as_bytes())
}
