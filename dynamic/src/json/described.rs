//! Shapes in full, as `describe --json` tells them: what a value of a type that no contract names brings with
//! itself.
//!
//! A part that contains what is around it says so by the name: `{"kind": "struct", "name": "Node", "fields":
//! [{"name": "next", "shape": "sequence<Node>"}]}`. When that is read, each level of it is made when somebody
//! looks at it.
//!
//! `DescriptionWriter` goes from shapes to JSON, `Listener` back. A name in the JSON means, in this order: a word of
//! `kinds`, a struct or union around it, a type of the contract. The teller writes a name alone only where
//! the contract has the same type under it.
//!
//! A type that contains itself has no end, so the listener keeps the JSON of it (`Level`) and reads it once
//! more for each level that is looked at. A level holds the text and what was around it, and nothing above
//! itself, so levels are freed like everything else.
//!
//! Both may be given hostile input: shapes of a peer, and JSON of a stranger. `DEPTH` bounds the recursion of
//! both, `PARTS` what is told.

use super::kinds::{self, EXCEPTION, remarked};
use super::{Notation, Types};
use everywire::{Failure, Initiator, Kind, Reference};
use everywire_model::TypeCode;
use everywire_model::shape::{
    Alias, Arm, Array, Enum, Field, Hold, Map as MapShape, Name, Order, Pointer, PointerKind, Referent,
    Sequence, Shape, Struct, Text, TextKind, Unfold, Union,
};
use serde_json::{Map, Value as Json, json};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// How deep shapes may nest, as in type codes.
const DEPTH: usize = 32;
/// The most parts of a shape that are described. A shape of a peer may use one part in many places, so its own size is no bound.
const PARTS: usize = 4096;

/// A shape as JSON: a word where that says all, else an object.
pub(super) fn describe(shape: &Shape, notation: &dyn Notation) -> Json {
    DescriptionWriter { notation, types: notation.types(), open: Vec::new(), parts: 0 }.shape(shape, DEPTH)
}

struct DescriptionWriter<'n> {
    /// Knows the types of the contract.
    notation: &'n dyn Notation,
    types: Types,
    /// The structs and unions around the part at hand: identity and name.
    open: Vec<(usize, Name)>,
    /// How many parts were told; at most `PARTS`.
    parts: usize,
}

impl DescriptionWriter<'_> {
    /// One part; beyond the bounds it is told by its noun alone.
    fn shape(&mut self, shape: &Shape, depth: usize) -> Json {
        self.parts += 1;
        // Where a bound is met, the noun stands for the rest: the JSON is still right, and not complete.
        let Some(depth) = depth.checked_sub(1).filter(|_| self.parts <= PARTS) else {
            return Json::from(shape.noun().into_owned());
        };
        // A type of the contract is told by its name; another with the same name is not it. The name alone
        // could mean another type of the reader's contract, so the identities are compared.
        let is_named = |name: &str, id: &str| {
            // A built-in word comes before the contract.
            let listener = Listener { open: Vec::new(), types: Types::default() };
            let free = !name.is_empty() && kinds::shape_of(name, &listener).is_none();
            let named = free.then(|| self.notation.named(name)).flatten();
            named.is_some_and(|shape| TypeCode::new(shape).id() == id)
        };
        // A wire that tells no scopes takes them from the identity, in which more may stand (`#pragma prefix`); so the contract's own name
        // for the identity counts, too.
        let known = |name: &Name, id: &str| {
            let by_id = || self.types.name_of(id).filter(|name| is_named(name, id)).cloned();
            if is_named(name, id) { Some(name.clone()) } else { by_id() }
        };
        match shape {
            Shape::Alias(held) if held.name.is_empty() && held.id == EXCEPTION => {
                match self.shape(&held.target, depth) {
                    Json::Object(mut told) => {
                        told.insert("kind".into(), Json::from("exception"));
                        Json::Object(told)
                    }
                    // A type of the contract is a word; the remark goes behind it.
                    word => Json::from(format!("{} {EXCEPTION}", word.as_str().unwrap_or_default())),
                }
            }
            // Remarks that wires put on shapes have no name: those that begin so are part of the word, if there is one.
            Shape::Alias(held)
                if held.name.is_empty() && (held.id.starts_with('#') || !held.id.contains(':')) =>
            {
                match self.shape(&held.target, depth) {
                    Json::String(word) if held.id.starts_with('#') => {
                        Json::from(format!("{word} {}", held.id))
                    }
                    told => told,
                }
            }
            Shape::Alias(held) if super::spelled::word(shape).is_none() => {
                if let Some(name) = known(&held.name, &held.id) {
                    return Json::from(name);
                }
                let target = self.shape(&held.target, depth);
                json!({"kind": "alias", "name": held.name, "id": held.id, "shape": target})
            }
            Shape::Struct(held) if super::spelled::named(&held.name).is_some() => {
                Json::from(held.name.as_ref())
            }
            Shape::Struct(held) if kinds::is_nameless(held) => {
                let told: Vec<_> = held.fields.iter().map(|field| self.shape(&field.shape, depth)).collect();
                // A tuple of words is a word itself.
                let words: Option<Vec<_>> = told.iter().map(Json::as_str).collect();
                match words {
                    Some(words) => Json::from(format!("({})", words.join(", "))),
                    None => self.within(held.identity(), &held.name, |teller| teller.structure(held, depth)),
                }
            }
            Shape::Struct(held) if let Some(name) = known(&held.name, &held.id) => Json::from(name),
            Shape::Struct(held) => {
                self.within(held.identity(), &held.name, |teller| teller.structure(held, depth))
            }
            Shape::Union(held) if let Some(name) = known(&held.name, &held.id) => Json::from(name),
            Shape::Union(held) => {
                self.within(held.identity(), &held.name, |teller| teller.union(held, depth))
            }
            Shape::Enum(held) if let Some(name) = known(&held.name, &held.id) => Json::from(name),
            Shape::Enum(held) => {
                let member = |(name, value): &(Name, i32)| json!({"name": name, "value": value});
                let members: Json = held.members.iter().map(member).collect();
                json!({"kind": "enum", "name": held.name, "id": held.id, "members": members})
            }
            Shape::Sequence(held) if matches!(held.element.resolved(), Shape::U8) && held.bound.is_none() => {
                Json::from("octets")
            }
            Shape::Sequence(held) => match (self.shape(&held.element, depth), held.bound) {
                (Json::String(word), None) => Json::from(format!("sequence<{word}>")),
                (told, bound) => json!({"kind": "sequence", "element": told, "bound": bound}),
            },
            Shape::Array(held) if !everywire_model::long_double::is_array(held) => {
                match self.shape(&held.element, depth) {
                    Json::String(word) => Json::from(format!("array<{word}, {}>", held.len)),
                    told => json!({"kind": "array", "element": told, "len": held.len}),
                }
            }
            Shape::Map(held) => match (self.shape(&held.key, depth), self.shape(&held.value, depth)) {
                (Json::String(key), Json::String(value)) => Json::from(format!("map<{key}, {value}>")),
                (key, value) => json!({"kind": "map", "key": key, "value": value}),
            },
            Shape::Optional(held) => json!({"kind": "optional", "target": self.shape(held, depth)}),
            Shape::Pointer(held) => json!({"kind": "pointer", "target": self.shape(&held.target, depth)}),
            Shape::Reference(held) if !held.name.is_empty() => {
                json!({"kind": "reference", "interface": held.name, "id": held.id})
            }
            Shape::Text(Text { kind: kind @ (TextKind::Narrow | TextKind::Wide), bound: Some(bound) }) => {
                json!({"kind": "text", "bound": bound, "text": format!("{kind:?}").to_lowercase()})
            }
            other => Json::from(kinds::word_of(other)),
        }
    }

    /// What may contain itself: in full, or by its name where it is within itself.
    fn within(&mut self, identity: usize, name: &Name, tell: impl FnOnce(&mut Self) -> Json) -> Json {
        // By identity, because two types inside one another may have one name.
        if self.open.iter().any(|(open, _)| *open == identity) {
            return Json::from(name.as_ref());
        }
        self.open.push((identity, name.clone()));
        let told = tell(self);
        self.open.pop();
        told
    }

    fn structure(&mut self, held: &Struct, depth: usize) -> Json {
        let fields: Json = held
            .fields
            .iter()
            .map(|field| json!({"name": field.name, "shape": self.shape(&field.shape, depth)}))
            .collect();
        json!({"kind": "struct", "name": held.name, "id": held.id, "fields": fields})
    }

    fn union(&mut self, held: &Union, depth: usize) -> Json {
        let discriminator = self.shape(&held.discriminator, depth);
        let arms: Json = held
            .arms
            .iter()
            .map(|arm| {
                let shape = self.shape(&arm.field.shape, depth);
                json!({"labels": arm.labels, "default": arm.default, "name": arm.field.name, "shape": shape})
            })
            .collect();
        json!({
            "kind": "union", "name": held.name, "id": held.id, "discriminator": discriminator, "arms": arms
        })
    }
}

/// The shape that JSON describes: by a word, or in full.
pub(super) fn shape_of(told: &Json, notation: &dyn Notation) -> Result<Shape, String> {
    Listener { open: Vec::new(), types: notation.types() }.shape(told, DEPTH)
}

/// A struct or union that is being read, as its parts may name it.
#[derive(Clone)]
struct OpenDefinition {
    name: String,
    /// Its JSON, from which each level is read again.
    told: Arc<Map<String, Json>>,
    /// Whether a part names it: then it contains itself. It is set while the parts are read.
    named: Arc<AtomicBool>,
}

/// Reads descriptions. It is also the notation for the words in them, since a definition around a word comes before those of the contract.
#[derive(Clone)]
struct Listener {
    /// The structs and unions around the part that is read, the outermost first.
    open: Vec<OpenDefinition>,
    types: Types,
}

impl Notation for Listener {
    fn parse(&self, _: &str) -> Result<Reference, Failure> {
        let message = "a description of a type holds no reference";
        Err(Failure::new(Kind::BadReference, Initiator::User, message))
    }

    fn print(&self, _: &Reference) -> String {
        String::new()
    }

    fn named(&self, word: &str) -> Option<Shape> {
        let Some(index) = self.open.iter().rposition(|around| around.name == word) else {
            return self.types.named(word);
        };
        let around = self.open.get(index)?;
        around.named.store(true, Ordering::Relaxed);
        // What is around the type itself, and not what is around the place that names it.
        let listener = Self { open: self.open.get(..index)?.to_vec(), types: self.types.clone() };
        let around = around.clone();
        Some(match kind_of(&around.told) {
            "union" => Shape::Union(Hold::Again(Arc::new(Level { listener, around, made: OnceLock::new() }))),
            _ => Shape::Struct(Hold::Again(Arc::new(Level { listener, around, made: OnceLock::new() }))),
        })
    }
}

/// One level of a type that contains itself; it holds the text and no other level above it.
struct Level<T> {
    listener: Listener,
    around: OpenDefinition,
    made: OnceLock<T>,
}

impl Unfold<Struct> for Level<Struct> {
    fn unfolded(&self) -> &Struct {
        self.made.get_or_init(|| {
            // It was read before; what cannot be read has no fields, and no value fits it. The first reading
            // was without a mistake, so this one is as well.
            let read = self.listener.clone().structure(&self.around, DEPTH);
            read.unwrap_or_else(|_| Struct {
                name: Name::default(),
                id: Name::default(),
                fields: Cow::Borrowed(&[]),
            })
        })
    }

    fn identity(&self) -> usize {
        Arc::as_ptr(&self.around.told).addr()
    }

    fn due(&self) -> u64 {
        0
    }
}

impl Unfold<Union> for Level<Union> {
    fn unfolded(&self) -> &Union {
        self.made.get_or_init(|| {
            let read = self.listener.clone().union(&self.around, DEPTH);
            read.unwrap_or_else(|_| Union {
                name: Name::default(),
                id: Name::default(),
                discriminator: Shape::Void,
                arms: Cow::Borrowed(&[]),
            })
        })
    }

    fn identity(&self) -> usize {
        Arc::as_ptr(&self.around.told).addr()
    }

    fn due(&self) -> u64 {
        0
    }
}

impl Listener {
    fn shape(&mut self, told: &Json, depth: usize) -> Result<Shape, String> {
        let depth =
            depth.checked_sub(1).ok_or_else(|| format!("a shape is more than {DEPTH} levels deep"))?;
        let object = match told {
            Json::String(word) => {
                return kinds::shape_of(word, self).ok_or_else(|| {
                    let why = "known are boolean, u8 to i64, f32, f64, character, text, octets, path, signature, DATE, \
                         CURRENCY, DECIMAL, SCODE, NULL, GUID, type code, sequence<...>, array<..., N>, map<..., ...>, (..., ...), \
                         the types of the contract and of XML Schema (xs::decimal), and descriptions as `describe --json` prints them";
                    format!("shape `{word}` is unknown; {why}")
                });
            }
            Json::Object(object) => object,
            _ => return Err("a shape is a word, or an object with its kind".to_owned()),
        };
        let part = |key: &str| object.get(key).ok_or_else(|| format!("a shape has no `{key}`"));
        let (id, name) = (text(object, "id"), text(object, "name"));
        Ok(match kind_of(object) {
            "struct" => self.recursive(object, Self::structure, depth, Shape::Struct)?,
            "exception" => {
                remarked(EXCEPTION, self.recursive(object, Self::structure, depth, Shape::Struct)?)
            }
            "union" => self.recursive(object, Self::union, depth, Shape::Union)?,
            "enum" => {
                let mut members = Vec::new();
                for (index, member) in list(part("members")?)?.iter().enumerate() {
                    members.push(match member {
                        Json::String(name) => (Name::from(name.clone()), number(index)?),
                        Json::Object(member) => {
                            (text(member, "name").into(), number(member.get("value").cloned())?)
                        }
                        _ => return Err("a member of an enumeration has a name".to_owned()),
                    });
                }
                let (name, id, members) = (name.into(), id.into(), Cow::Owned(members));
                Shape::Enum(Hold::new(Enum { name, id, members, bits: 32, open: false }))
            }
            "alias" => {
                let target = self.shape(part("shape")?, depth)?;
                Shape::Alias(Hold::new(Alias { name: name.into(), id: id.into(), target }))
            }
            "sequence" => {
                let element = self.shape(part("element")?, depth)?;
                let bound = bound(object)?;
                Shape::Sequence(Hold::new(Sequence { element, bound, order: Order::Free, size: None }))
            }
            "array" => {
                let (element, len) = (self.shape(part("element")?, depth)?, number(part("len")?.clone())?);
                Shape::Array(Hold::new(Array { element, len }))
            }
            "map" => {
                let (key, value) = (self.shape(part("key")?, depth)?, self.shape(part("value")?, depth)?);
                Shape::Map(Hold::new(MapShape { key, value }))
            }
            "optional" => Shape::Optional(Hold::new(self.shape(part("target")?, depth)?)),
            "pointer" => {
                let target = self.shape(part("target")?, depth)?;
                Shape::Pointer(Hold::new(Pointer { kind: PointerKind::Unique, target }))
            }
            "reference" => {
                let (name, id) = (text(object, "interface").into(), id.into());
                Shape::Reference(Hold::new(Referent { name, id }))
            }
            "text" => {
                let kind = match text(object, "text").as_str() {
                    "wide" => TextKind::Wide,
                    _ => TextKind::Narrow,
                };
                Shape::Text(Text { kind, bound: bound(object)? })
            }
            other => return Err(format!("`{other}` is no kind of a shape that is described")),
        })
    }

    /// A struct or union, of which each level is made when somebody looks at it, if a part of it names it.
    /// The first level is read at once, so mistakes show at once.
    fn recursive<T: Send + Sync + 'static>(
        &mut self,
        object: &Map<String, Json>,
        read: fn(&mut Self, &OpenDefinition, usize) -> Result<T, String>,
        depth: usize,
        shape: fn(Hold<T>) -> Shape,
    ) -> Result<Shape, String>
    where
        Level<T>: Unfold<T>,
    {
        let around = OpenDefinition {
            name: text(object, "name"),
            told: Arc::new(object.clone()),
            named: Arc::new(AtomicBool::new(false)),
        };
        let made = read(self, &around, depth)?;
        // Most types do not contain themselves; they need no text.
        if !around.named.load(Ordering::Relaxed) {
            return Ok(shape(Hold::new(made)));
        }
        let listener = self.clone();
        Ok(shape(Hold::Again(Arc::new(Level { listener, around, made: OnceLock::from(made) }))))
    }

    fn structure(&mut self, around: &OpenDefinition, depth: usize) -> Result<Struct, String> {
        self.inside(around, |listener| {
            let mut fields = Vec::new();
            for field in list(around.told.get("fields").ok_or("a struct has no `fields`")?)? {
                fields.push(listener.field(field, depth)?);
            }
            let (name, id) = (text(&around.told, "name").into(), text(&around.told, "id").into());
            Ok(Struct { name, id, fields: Cow::Owned(fields) })
        })
    }

    fn union(&mut self, around: &OpenDefinition, depth: usize) -> Result<Union, String> {
        self.inside(around, |listener| {
            let told = around.told.get("discriminator").ok_or("a union has no `discriminator`")?;
            let discriminator = listener.shape(told, depth)?;
            let mut arms = Vec::new();
            for arm in list(around.told.get("arms").ok_or("a union has no `arms`")?)? {
                let mut labels = Vec::new();
                for label in arm.get("labels").map_or(Ok(&[][..]), list)? {
                    labels.push(label.as_i64().ok_or("a label of a union is a number")?);
                }
                let default = arm.get("default").and_then(Json::as_bool).unwrap_or_default();
                arms.push(Arm { labels: Cow::Owned(labels), default, field: listener.field(arm, depth)? });
            }
            let (name, id) = (text(&around.told, "name").into(), text(&around.told, "id").into());
            Ok(Union { name, id, discriminator, arms: Cow::Owned(arms) })
        })
    }

    /// Reads parts that may name this struct or union.
    fn inside<T>(
        &mut self,
        around: &OpenDefinition,
        read: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        self.open.push(around.clone());
        let made = read(self);
        self.open.pop();
        made
    }

    fn field(&mut self, told: &Json, depth: usize) -> Result<Field, String> {
        let object = told.as_object().ok_or("a field is {\"name\": ..., \"shape\": ...}")?;
        let shape = object.get("shape").ok_or("a field has no `shape`")?;
        Ok(Field { name: text(object, "name").into(), shape: self.shape(shape, depth)? })
    }
}

/// The kind of a shape; empty where none is said.
fn kind_of(object: &Map<String, Json>) -> &str {
    object.get("kind").and_then(Json::as_str).unwrap_or_default()
}

/// A member that is text; empty where there is none.
fn text(object: &Map<String, Json>, key: &str) -> String {
    object.get(key).and_then(Json::as_str).unwrap_or_default().to_owned()
}

fn list(told: &Json) -> Result<&[Json], String> {
    told.as_array().map(Vec::as_slice).ok_or_else(|| format!("a list is expected, not {told}"))
}

fn number<T: TryFrom<i64>>(told: impl Into<Json>) -> Result<T, String> {
    let told = told.into();
    told.as_i64()
        .and_then(|value| T::try_from(value).ok())
        .ok_or_else(|| format!("a number is expected, not {told}"))
}

fn bound(object: &Map<String, Json>) -> Result<Option<u32>, String> {
    match object.get("bound") {
        None | Some(Json::Null) => Ok(None),
        Some(told) => number(told.clone()).map(Some),
    }
}
