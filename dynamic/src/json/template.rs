//! A value to fill in, as JSON.
//!
//! Every field is there with a value of its kind, so that a person sees what is wanted. Types that contain
//! themselves do so by way of a sequence, an optional value or a pointer: those are cut at a depth. A type may have far more parts
//! than its contract has words (arrays of arrays, structs used twice), so the parts are counted, and what is more is `null`.

use super::kinds::is_nameless;
use super::spelled::{self, Spelling};
use super::write::discriminator;
use everywire_idl::wsdl::lexical::Lexical;
use everywire_idl::wsdl::marks::Mark;
use everywire_model::shape::Shape;
use serde_json::{Map, Value as Json, json};
use std::collections::HashSet;

/// How deep types that contain themselves are unfolded.
const DEPTH: usize = 6;

/// The most parts of a template.
const PARTS: usize = 1 << 14;

/// A value of this shape with nothing in it, to be filled in.
pub fn template(shape: &Shape) -> Json {
    unfold(shape, DEPTH, &mut 0)
}

/// Of a union the first arm is shown, of an enumeration the first member.
fn unfold(shape: &Shape, depth: usize, parts: &mut usize) -> Json {
    *parts += 1;
    if *parts > PARTS {
        return Json::Null;
    }
    if let Some(Spelling::Fixed(_) | Spelling::LongDouble) = spelled::of(shape) {
        return json!("0");
    }
    if let Some(kind) = Lexical::of(shape) {
        return json!(kind.example());
    }
    let mut inner = |shape| unfold(shape, depth.saturating_sub(1), parts);
    match shape.resolved() {
        Shape::Bool => Json::Bool(false),
        Shape::Text(_) => Json::from(""),
        Shape::Char | Shape::WideChar => Json::from("a"),
        Shape::F32 | Shape::F64 => json!(0.0),
        Shape::Struct(fields) => {
            // Of several alternatives a value has one.
            let mut chosen = HashSet::new();
            let mut inner = |shape| match Mark::of(shape) {
                Some(Mark::Left(Some(choice), _)) if !chosen.insert(choice) => Json::Null,
                _ => inner(shape),
            };
            if is_nameless(fields) {
                fields.fields.iter().map(|field| inner(&field.shape)).collect()
            } else {
                let fields = fields.fields.iter();
                Json::Object(fields.map(|field| (field.name.to_string(), inner(&field.shape))).collect())
            }
        }
        Shape::Union(union) => {
            let arm = union.arms.first();
            let label = arm.and_then(|arm| arm.labels.first()).copied().unwrap_or_default();
            let mut out = Map::new();
            out.insert("discriminator".into(), discriminator(&union.discriminator, label));
            if let Some(arm) = arm {
                out.insert("arm".into(), inner(&arm.field.shape));
            }
            Json::Object(out)
        }
        Shape::Enum(members) => {
            members.members.first().map_or(Json::Null, |(name, _)| Json::from(name.as_ref()))
        }
        Shape::Sequence(sequence) if matches!(sequence.element.resolved(), Shape::U8) => {
            json!({"base64": ""})
        }
        Shape::Sequence(_) if depth == 0 => json!([]),
        // One element shows what the elements are.
        Shape::Sequence(sequence) => json!([inner(&sequence.element)]),
        Shape::Array(array) => {
            // A template for people: the elements of a large array need not all be shown to be copied.
            let shown = array.len.min(1024);
            (0..shown).map(|_| inner(&array.element)).collect()
        }
        Shape::Map(_) => json!({}),
        Shape::Optional(_) | Shape::Pointer(_) if depth == 0 => Json::Null,
        Shape::Optional(target) => inner(target),
        Shape::Pointer(pointer) => inner(&pointer.target),
        Shape::Variant => json!({"shape": "text", "value": ""}),
        Shape::TypeCode => json!("text"),
        Shape::Handle => json!({"handle": ""}),
        Shape::Void | Shape::Reference(_) => Json::Null,
        other => match other.width() {
            Some(_) => json!(0),
            None => Json::Null,
        },
    }
}
