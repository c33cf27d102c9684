//! Values whose type is known no earlier than at run time: the command line, Python, a dynamic bridge.
//!
//! A `Value` is a tree without types: numbers have no width, members of enumerations are names, and an
//! optional value is there or is `Nothing`. What it means is said by the `Shape` beside it. `Value::encode`
//! writes it at a shape, to any `Sink`, and `Value::decode` reads it at one, from any `Source`: so no wire
//! knows this type, and it knows no wire.
//!
//! Invariants.
//! * What does not fit its shape is refused with `Kind::BadArgument` and the path to the part; an integer is
//!   never cut to fit another width. Where a fraction is expected, a number is rounded to the nearest that
//!   there is.
//! * Octets are `Bytes` and not a list, whichever of both a contract means, and are shared with the message
//!   where the source can.
//! * What is read at a shape can be written at the same shape, and reads the same again, but for an optional
//!   value in an optional value: one that is there and empty reads as nothing at all.
//! * A value that comes from a peer is charged by its source as typed values are; room is made for few
//!   elements before they have arrived.
//!
//! Bounds. How deep and how large a value may be that is read, the source's budget says (`crate::budget`).
//! One that the program makes itself is as deep as it makes it: writing it takes stack for each level.

use crate::body::Handle;
use crate::failure::Failure;
use crate::pipe::{discriminator, put_discriminator};
use crate::reference::Reference;
use crate::shape::{Enum, Shape};
use crate::typecode::TypeCode;
use crate::visit::{Sink, Source, Visit};
use bytes::Bytes;
use std::sync::Arc;

pub use crate::shape::TypedShape;

/// A value as a tree.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing: void, or an optional value or pointer that is empty.
    Nothing,
    /// A boolean.
    Bool(bool),
    /// Any integer; its shape says how wide.
    Integer(i128),
    /// A number with a fraction.
    Float(f64),
    /// One character.
    Char(char),
    /// A string.
    Text(String),
    /// A sequence or array of octets.
    Bytes(Bytes),
    /// A sequence or array of anything else.
    List(Vec<Value>),
    /// A struct: fields in order.
    Struct(Vec<(String, Value)>),
    /// A union: discriminator, and the arm's name and value unless no arm is selected.
    Union(i64, Option<Box<(String, Value)>>),
    /// A member of an enumeration, by name. A value without a name is an [`Integer`](Self::Integer).
    Member(String),
    /// A map: pairs in order.
    Map(Vec<(Value, Value)>),
    /// A value with a shape of its own.
    Variant(Box<(TypedShape, Value)>),
    /// A description of a type.
    TypeCode(Box<TypeCode>),
    /// An object reference, or nil.
    Reference(Option<Reference>),
    /// An operating-system handle.
    Handle(HeldHandle),
}

/// A handle inside a value; two are equal if they are the same one.
#[derive(Debug, Clone)]
pub struct HeldHandle(pub Handle);

impl PartialEq for HeldHandle {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Value {
    /// A value of an enumeration: by its name, or the number where it has none.
    pub fn member(of: &Enum, value: i32) -> Self {
        of.name_of(value).map_or(Self::Integer(value.into()), |name| Self::Member(name.to_owned()))
    }

    /// A word for messages to people.
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number with a fraction",
            Self::Char(_) => "a character",
            Self::Text(_) => "text",
            Self::Bytes(_) => "octets",
            Self::List(_) => "a list",
            Self::Struct(_) => "a struct",
            Self::Union(..) => "a union",
            Self::Member(_) => "a member of an enumeration",
            Self::Map(_) => "a map",
            Self::Variant(_) => "a variant",
            Self::TypeCode(_) => "a type code",
            Self::Reference(_) => "an object reference",
            Self::Handle(_) => "a handle",
        }
    }

    /// Writes the value at this shape.
    ///
    /// # Errors
    /// [`crate::Kind::BadArgument`] with the path to the part that does not fit.
    pub fn encode<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        macro_rules! integer {
            ($type:ident, $value:expr) => {
                sink.$type($type::try_from(*$value).map_err(|_| out_of_range(*$value, shape))?)
            };
        }
        match (shape.resolved(), self) {
            (Shape::Void, Self::Nothing) => Ok(()),
            (Shape::Bool, Self::Bool(value)) => sink.bool(*value),
            (Shape::U8, Self::Integer(value)) => integer!(u8, value),
            (Shape::I8, Self::Integer(value)) => integer!(i8, value),
            (Shape::U16, Self::Integer(value)) => integer!(u16, value),
            (Shape::I16, Self::Integer(value)) => integer!(i16, value),
            (Shape::U32, Self::Integer(value)) => integer!(u32, value),
            (Shape::I32, Self::Integer(value)) => integer!(i32, value),
            (Shape::U64, Self::Integer(value)) => integer!(u64, value),
            (Shape::I64, Self::Integer(value)) => integer!(i64, value),
            #[allow(clippy::cast_possible_truncation)]
            (Shape::F32, Self::Float(value)) => sink.f32(*value as f32),
            (Shape::F64, Self::Float(value)) => sink.f64(*value),
            #[allow(clippy::cast_precision_loss)]
            (Shape::F32, Self::Integer(value)) => sink.f32(*value as f32),
            #[allow(clippy::cast_precision_loss)]
            (Shape::F64, Self::Integer(value)) => sink.f64(*value as f64),
            (Shape::Char, Self::Char(value)) => sink.char(*value, false),
            (Shape::WideChar, Self::Char(value)) => sink.char(*value, true),
            (Shape::Text(text), Self::Text(value)) => sink.text(text, value),
            (Shape::Enum(members), Self::Integer(value)) => match members.number(*value) {
                Some(value) => sink.enumerant(members, value),
                None => Err(Failure::bad_argument(format!("{value} is no member of {}", members.name))),
            },
            (Shape::Enum(members), Self::Member(name)) => match members.value_of(name) {
                Some(value) => sink.enumerant(members, value),
                None => {
                    let names: Vec<_> = members.members.iter().map(|(name, _)| name.as_ref()).collect();
                    Err(Failure::bad_argument(format!("`{name}` is no member of {}", members.name))
                        .with_hint(format!("members are {}", names.join(", "))))
                }
            },
            (Shape::TypeCode, Self::TypeCode(value)) => sink.type_code(value),
            (Shape::Reference(_), Self::Reference(value)) => sink.reference(value.as_ref()),
            (Shape::Handle, Self::Handle(value)) => sink.handle(&value.0),
            (Shape::Variant, Self::Variant(content)) => {
                sink.open(shape, 1)?;
                sink.content(&content.0.0)?;
                content.1.encode(&content.0.0, sink)?;
                sink.close(shape)
            }
            (resolved, _) => self.encode_parts(resolved, shape, sink),
        }
    }

    /// Writes what is opened and closed, at a shape that is no alias. `said` is the shape with the alias that may stand around it, which may say
    /// how the items of a list or a map are written.
    fn encode_parts<S: Sink + ?Sized>(&self, shape: &Shape, said: &Shape, sink: &mut S) -> Visit<()> {
        match (shape, self) {
            (Shape::Sequence(_) | Shape::Array(_), Self::Bytes(value))
                if matches!(shape.element().map(Shape::resolved), Some(Shape::U8)) =>
            {
                sink.shared(shape, value)
            }
            (Shape::Sequence(_) | Shape::Array(_), Self::List(items)) => {
                let element = shape.element().unwrap_or(&Shape::Void);
                if let Shape::Array(array) = shape {
                    array.check(items.len()).map_err(Failure::bad_argument)?;
                }
                sink.open(said, items.len())?;
                for (index, item) in items.iter().enumerate() {
                    item.encode(element, sink).map_err(|failure| failure.at(format_args!("[{index}]")))?;
                }
                sink.close(said)
            }
            (Shape::Struct(fields), Self::Struct(values)) => {
                if fields.fields.len() != values.len() {
                    let names: Vec<_> = fields.fields.iter().map(|field| field.name.as_ref()).collect();
                    return Err(Failure::bad_argument(format!(
                        "{} fields are expected, not {}",
                        names.len(),
                        values.len()
                    ))
                    .with_hint(format!("the fields are {}", names.join(", "))));
                }
                sink.open(shape, values.len())?;
                for (field, (_, value)) in fields.fields.iter().zip(values) {
                    value.encode(&field.shape, sink).map_err(|failure| failure.at(&field.name))?;
                }
                sink.close(shape)
            }
            (Shape::Union(union), Self::Union(label, arm)) => {
                let selected = union.select(*label);
                sink.open(shape, selected.map_or(0, |arm| arm + 1))?;
                put_discriminator(&union.discriminator, *label, sink)?;
                match (selected.and_then(|index| union.arms.get(index)), arm) {
                    (Some(shape), Some(arm)) => arm.1.encode(&shape.field.shape, sink)?,
                    (None, None) => {}
                    _ => {
                        return Err(Failure::bad_argument(format!(
                            "discriminator {label} does not select this arm"
                        )));
                    }
                }
                sink.close(shape)
            }
            (Shape::Map(map), Self::Map(pairs)) => {
                sink.open(said, pairs.len())?;
                for (key, value) in pairs {
                    key.encode(&map.key, sink)?;
                    value.encode(&map.value, sink)?;
                }
                sink.close(said)
            }
            (Shape::Optional(target), _) => self.encode_maybe(shape, target, sink),
            (Shape::Pointer(pointer), _) => self.encode_maybe(shape, &pointer.target, sink),
            _ => Err(Failure::bad_argument(format!("{} is expected, not {}", shape.noun(), self.noun()))),
        }
    }

    /// Reads a value of this shape.
    pub fn decode<'a, S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
        Ok(match shape.resolved() {
            Shape::Void => Self::Nothing,
            Shape::Bool => Self::Bool(source.bool()?),
            Shape::U8 => Self::Integer(source.u8()?.into()),
            Shape::I8 => Self::Integer(source.i8()?.into()),
            Shape::U16 => Self::Integer(source.u16()?.into()),
            Shape::I16 => Self::Integer(source.i16()?.into()),
            Shape::U32 => Self::Integer(source.u32()?.into()),
            Shape::I32 => Self::Integer(source.i32()?.into()),
            Shape::U64 => Self::Integer(source.u64()?.into()),
            Shape::I64 => Self::Integer(source.i64()?.into()),
            Shape::F32 => Self::Float(source.f32()?.into()),
            Shape::F64 => Self::Float(source.f64()?),
            Shape::Char => Self::Char(source.char(false)?),
            Shape::WideChar => Self::Char(source.char(true)?),
            Shape::Text(text) => Self::Text(source.text(text)?.into_owned()),
            Shape::Enum(members) => {
                let value = source.enumerant(members)?;
                members.check(value).map_err(|what| Failure::malformed(what, 0))?;
                Self::member(members, value)
            }
            Shape::TypeCode => Self::TypeCode(Box::new(source.type_code()?)),
            Shape::Reference(_) => Self::Reference(source.reference()?),
            Shape::Handle => Self::Handle(HeldHandle(source.handle()?)),
            resolved @ (Shape::Sequence(_) | Shape::Array(_)) => {
                let element = resolved.element().unwrap_or(&Shape::Void);
                if matches!(element.resolved(), Shape::U8) {
                    Self::Bytes(source.shared(resolved)?)
                } else {
                    // An alias around a list or a map may say how its items are written.
                    let len = source.open(shape)?;
                    let mut items = Vec::with_capacity(len.min(64));
                    for _ in 0..len {
                        items.push(Self::decode(element, source)?);
                    }
                    source.close(shape)?;
                    Self::List(items)
                }
            }
            resolved @ Shape::Struct(fields) => {
                source.open(resolved)?;
                // Each value has the names of its members, which a peer may have told once for many values.
                source
                    .budget()
                    .charge_bytes(fields.fields.iter().map(|field| field.name.len() as u64).sum())?;
                let mut values = Vec::with_capacity(fields.fields.len());
                for field in fields.fields.iter() {
                    values.push((field.name.to_string(), Self::decode(&field.shape, source)?));
                }
                source.close(resolved)?;
                Self::Struct(values)
            }
            resolved @ Shape::Union(union) => {
                source.open(resolved)?;
                let label = discriminator(&union.discriminator, source)?;
                let selected = union.select(label);
                source.arm(resolved, selected)?;
                let arm = match selected.and_then(|index| union.arms.get(index)) {
                    Some(arm) => {
                        source.budget().charge_bytes(arm.field.name.len() as u64)?;
                        Some(Box::new((arm.field.name.to_string(), Self::decode(&arm.field.shape, source)?)))
                    }
                    None => None,
                };
                source.close(resolved)?;
                Self::Union(label, arm)
            }
            Shape::Map(map) => {
                let len = source.open(shape)?;
                let mut pairs = Vec::with_capacity(len.min(64));
                for _ in 0..len {
                    pairs.push((Self::decode(&map.key, source)?, Self::decode(&map.value, source)?));
                }
                source.close(shape)?;
                Self::Map(pairs)
            }
            resolved @ Shape::Optional(target) => Self::decode_maybe(resolved, target, source)?,
            resolved @ Shape::Pointer(pointer) => Self::decode_maybe(resolved, &pointer.target, source)?,
            Shape::Variant => {
                source.open(shape)?;
                let content = source.content()?;
                let value = Self::decode(&content, source)?;
                source.close(shape)?;
                Self::Variant(Box::new((TypedShape(content), value)))
            }
            // `resolved` never yields an alias.
            Shape::Alias(alias) => Self::decode(&alias.target, source)?,
        })
    }

    fn encode_maybe<S: Sink + ?Sized>(&self, shape: &Shape, target: &Shape, sink: &mut S) -> Visit<()> {
        let is_there = !matches!(self, Self::Nothing);
        sink.open(shape, is_there.into())?;
        if is_there {
            self.encode(target, sink)?;
        }
        sink.close(shape)
    }

    fn decode_maybe<'a, S: Source<'a> + ?Sized>(
        shape: &Shape,
        target: &Shape,
        source: &mut S,
    ) -> Visit<Self> {
        let value = if source.open(shape)? > 0 { Self::decode(target, source)? } else { Self::Nothing };
        source.close(shape)?;
        Ok(value)
    }
}

fn out_of_range(value: i128, shape: &Shape) -> Failure {
    Failure::bad_argument(format!("{value} does not fit {}", shape.noun()))
}
