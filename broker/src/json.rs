//! Values as JSON, in the notation of the program (docs/cli.md, "Values"), written while they are visited.

use everywire::Reference;
use everywire_model::shape::{Enum, Text};
use everywire_model::visit::Numbers;
use everywire_model::{Body, Failure, Handle, Shape, Sink, TypeCode, Visit};
use serde_json::Value as Json;
use std::fmt::{Display, Write};

/// The values of a body of this shape; nothing, if it does not hold such.
pub(crate) fn of(body: &Body, list: &Shape) -> Option<String> {
    let mut writer = Writer::default();
    body.pipe(list, &mut writer).ok()?;
    Some(writer.out)
}

/// Octets as JSON.
pub(crate) fn octets(bytes: &[u8]) -> String {
    format!("{{\"base64\":\"{}\"}}", base64_simd::STANDARD.encode_to_string(bytes))
}

/// Text as JSON.
pub(crate) fn text(text: &str) -> String {
    Json::from(text).to_string()
}

/// A sink that writes JSON as values come: nothing is kept but the text and the composites that are open.
/// What a value looks like is in docs/cli.md.
#[derive(Default)]
struct Writer {
    /// What was written.
    out: String,
    /// Composites that are open, the innermost last.
    open: Vec<Frame>,
}

/// A composite that is open: how many values of it have come, and what stands around each.
struct Frame {
    /// What it looks like.
    kind: Kind,
    /// How many values of it have come.
    seen: usize,
}

/// What a composite that is open looks like in JSON.
enum Kind {
    /// Named fields.
    Object(Vec<String>),
    /// Elements, or fields without names.
    List,
    /// Keys and values: an object where keys are text, else pairs.
    Map { by_text: bool },
    /// One value, or nothing.
    Maybe,
    /// A discriminator, then the arm.
    Union,
    /// The shape, then the value.
    Variant,
}

impl Writer {
    /// What stands before the next value.
    fn before(&mut self) {
        let Some(frame) = self.open.last_mut() else { return };
        let seen = frame.seen;
        frame.seen += 1;
        match &frame.kind {
            Kind::Object(names) => {
                if seen > 0 {
                    self.out.push(',');
                }
                let name = names.get(seen).map(String::as_str).unwrap_or_default();
                self.out.push_str(&text(name));
                self.out.push(':');
            }
            Kind::List if seen > 0 => self.out.push(','),
            Kind::Map { by_text } => {
                let (by_text, second) = (*by_text, seen % 2 == 1);
                if seen > 0 && !second {
                    self.out.push(',');
                }
                match (by_text, second) {
                    (true, true) => self.out.push(':'),
                    (false, true) => self.out.push(','),
                    (false, false) => self.out.push('['),
                    (true, false) => {}
                }
            }
            Kind::Union if seen == 0 => self.out.push_str("\"discriminator\":"),
            Kind::Union => self.out.push_str(",\"arm\":"),
            Kind::Variant => self.out.push_str(",\"value\":"),
            Kind::List | Kind::Maybe => {}
        }
    }

    /// What stands after a value.
    fn after(&mut self) {
        if let Some(Frame { kind: Kind::Map { by_text: false }, seen }) = self.open.last()
            && seen % 2 == 0
        {
            self.out.push(']');
        }
    }

    /// Writes one value as it is shown: of numbers and booleans that is JSON already.
    fn put(&mut self, value: impl Display) -> Visit<()> {
        self.before();
        // Writing to a text cannot fail.
        let _ = write!(self.out, "{value}");
        self.after();
        Ok(())
    }

    /// JSON has no words for values that are not finite, so they are texts.
    fn float(&mut self, value: f64) -> Visit<()> {
        if value.is_finite() {
            self.put(Json::from(value))
        } else if value.is_nan() {
            self.put("\"NaN\"")
        } else {
            self.put(if value > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" })
        }
    }
}

impl Sink for Writer {
    fn bool(&mut self, value: bool) -> Visit<()> {
        self.put(value)
    }
    fn u8(&mut self, value: u8) -> Visit<()> {
        self.put(value)
    }
    fn i8(&mut self, value: i8) -> Visit<()> {
        self.put(value)
    }
    fn u16(&mut self, value: u16) -> Visit<()> {
        self.put(value)
    }
    fn i16(&mut self, value: i16) -> Visit<()> {
        self.put(value)
    }
    fn u32(&mut self, value: u32) -> Visit<()> {
        self.put(value)
    }
    fn i32(&mut self, value: i32) -> Visit<()> {
        self.put(value)
    }
    fn u64(&mut self, value: u64) -> Visit<()> {
        self.put(value)
    }
    fn i64(&mut self, value: i64) -> Visit<()> {
        self.put(value)
    }
    fn f32(&mut self, value: f32) -> Visit<()> {
        if value.is_finite() { self.put(value) } else { self.float(value.into()) }
    }
    fn f64(&mut self, value: f64) -> Visit<()> {
        self.float(value)
    }
    fn char(&mut self, value: char, _: bool) -> Visit<()> {
        self.put(text(value.encode_utf8(&mut [0; 4])))
    }
    fn text(&mut self, _: &Text, value: &str) -> Visit<()> {
        self.put(text(value))
    }
    fn bytes(&mut self, _: &Shape, value: &[u8]) -> Visit<()> {
        self.put(octets(value))
    }
    fn numbers(&mut self, values: Numbers<'_>) -> Visit<()> {
        macro_rules! each {
            ($($variant:ident)*) => {
                match values {
                    Numbers::F32(items) => items.iter().try_for_each(|item| self.f32(*item)),
                    Numbers::F64(items) => items.iter().try_for_each(|item| self.f64(*item)),
                    $(Numbers::$variant(items) => items.iter().try_for_each(|item| self.put(item)),)*
                }
            };
        }
        each!(U16 I16 U32 I32 U64 I64)
    }
    fn enumerant(&mut self, shape: &Enum, value: i32) -> Visit<()> {
        match shape.name_of(value) {
            Some(name) => self.put(text(name)),
            None => self.put(value),
        }
    }
    fn reference(&mut self, value: Option<&Reference>) -> Visit<()> {
        let wire = |reference: &Reference| {
            reference.profiles.iter().find_map(|profile| everywire::wires::named(profile.wire))
        };
        match value {
            Some(reference) => match wire(reference) {
                Some(wire) => self.put(text(&wire.print_friendly(reference))),
                None => self.put("\"(a reference)\""),
            },
            None => self.put("null"),
        }
    }
    fn type_code(&mut self, value: &TypeCode) -> Visit<()> {
        self.put(text(&format!("{value:?}")))
    }
    fn handle(&mut self, _: &Handle) -> Visit<()> {
        self.put("{\"handle\":\"\"}")
    }
    fn open(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        self.before();
        let kind = match shape.resolved() {
            Shape::Struct(held) if held.fields.iter().any(|field| field.name.is_empty()) => Kind::List,
            Shape::Struct(held) => {
                Kind::Object(held.fields.iter().map(|field| field.name.to_string()).collect())
            }
            Shape::Map(map) => Kind::Map { by_text: matches!(map.key.resolved(), Shape::Text(_)) },
            Shape::Optional(_) | Shape::Pointer(_) => Kind::Maybe,
            Shape::Union(_) => Kind::Union,
            Shape::Variant => Kind::Variant,
            _ => Kind::List,
        };
        match &kind {
            Kind::Object(_) | Kind::Map { by_text: true } | Kind::Union | Kind::Variant => self.out.push('{'),
            Kind::List | Kind::Map { by_text: false } => self.out.push('['),
            Kind::Maybe if len == 0 => self.out.push_str("null"),
            Kind::Maybe => {}
        }
        self.open.push(Frame { kind, seen: 0 });
        Ok(())
    }
    fn content(&mut self, shape: &Shape) -> Visit<()> {
        self.out.push_str("\"shape\":");
        self.out.push_str(&text(&shape.noun()));
        Ok(())
    }
    fn close(&mut self, _: &Shape) -> Visit<()> {
        let Some(frame) = self.open.pop() else {
            return Err(Failure::malformed("a composite is closed that was not opened", 0));
        };
        match frame.kind {
            Kind::Object(_) | Kind::Map { by_text: true } | Kind::Union | Kind::Variant => self.out.push('}'),
            Kind::List | Kind::Map { by_text: false } => self.out.push(']'),
            Kind::Maybe => {}
        }
        self.after();
        Ok(())
    }
}
