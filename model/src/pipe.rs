//! The pipe: values of one shape from a source straight into a sink.
//!
//! A bridge between two wires and the tests of every codec use it; no value is built but for one at a time.

use crate::body::Body;
use crate::failure::Failure;
use crate::shape::{Map, Shape};
use crate::visit::{Numbers, NumbersMut, Sink, Source, Visit};

impl Body {
    /// Passes the values on to a sink without building them: a bridge between wires.
    pub fn pipe(&self, list: &Shape, sink: &mut dyn Sink) -> Visit<()> {
        self.read(|source| {
            sink.status(source.status())?;
            pipe(list, source, sink)
        })
    }
}

/// Reads one value of this shape and writes it.
pub fn pipe<'a, S: Sink + ?Sized>(shape: &Shape, source: &mut dyn Source<'a>, sink: &mut S) -> Visit<()> {
    match shape {
        Shape::Void => Ok(()),
        Shape::Bool => sink.bool(source.bool()?),
        Shape::U8 => sink.u8(source.u8()?),
        Shape::I8 => sink.i8(source.i8()?),
        Shape::U16 => sink.u16(source.u16()?),
        Shape::I16 => sink.i16(source.i16()?),
        Shape::U32 => sink.u32(source.u32()?),
        Shape::I32 => sink.i32(source.i32()?),
        Shape::U64 => sink.u64(source.u64()?),
        Shape::I64 => sink.i64(source.i64()?),
        Shape::F32 => sink.f32(source.f32()?),
        Shape::F64 => sink.f64(source.f64()?),
        Shape::Char => sink.char(source.char(false)?, false),
        Shape::WideChar => sink.char(source.char(true)?, true),
        Shape::Text(text) => sink.text(text, &source.text(text)?),
        Shape::Enum(members) => sink.enumerant(members, source.enumerant(members)?),
        Shape::Reference(_) => sink.reference(source.reference()?.as_ref()),
        Shape::TypeCode => sink.type_code(&source.type_code()?),
        Shape::Handle => sink.handle(&source.handle()?),
        // An alias around a list or a map may say how its items are written.
        Shape::Alias(alias) => match alias.target.resolved() {
            Shape::Map(map) => pairs(shape, map, source, sink),
            Shape::Sequence(_) | Shape::Array(_) => elements(shape, source, sink),
            _ => pipe(&alias.target, source, sink),
        },
        Shape::Sequence(_) | Shape::Array(_) => elements(shape, source, sink),
        Shape::Struct(fields) => {
            let len = source.open(shape)?;
            sink.open(shape, len)?;
            for field in fields.fields.iter() {
                pipe(&field.shape, source, sink)?;
            }
            close(shape, source, sink)
        }
        Shape::Map(map) => pairs(shape, map, source, sink),
        Shape::Optional(target) => maybe(shape, target, source, sink),
        Shape::Pointer(pointer) => maybe(shape, &pointer.target, source, sink),
        Shape::Union(union) => {
            source.open(shape)?;
            let discriminator = discriminator(&union.discriminator, source)?;
            let arm = union.select(discriminator);
            source.arm(shape, arm)?;
            sink.open(shape, arm.map_or(0, |arm| arm + 1))?;
            put_discriminator(&union.discriminator, discriminator, sink)?;
            if let Some(arm) = arm.and_then(|arm| union.arms.get(arm)) {
                pipe(&arm.field.shape, source, sink)?;
            }
            close(shape, source, sink)
        }
        Shape::Variant => {
            source.open(shape)?;
            let content = source.content()?;
            sink.open(shape, 1)?;
            sink.content(&content)?;
            pipe(&content, source, sink)?;
            close(shape, source, sink)
        }
    }
}

fn pairs<'a, S: Sink + ?Sized>(
    shape: &Shape,
    map: &Map,
    source: &mut dyn Source<'a>,
    sink: &mut S,
) -> Visit<()> {
    let len = source.open(shape)?;
    sink.open(shape, len)?;
    for _ in 0..len {
        pipe(&map.key, source, sink)?;
        pipe(&map.value, source, sink)?;
    }
    close(shape, source, sink)
}

fn close<'a, S: Sink + ?Sized>(shape: &Shape, source: &mut dyn Source<'a>, sink: &mut S) -> Visit<()> {
    source.close(shape)?;
    sink.close(shape)
}

fn maybe<'a, S: Sink + ?Sized>(
    shape: &Shape,
    target: &Shape,
    source: &mut dyn Source<'a>,
    sink: &mut S,
) -> Visit<()> {
    let len = source.open(shape)?;
    sink.open(shape, len)?;
    if len > 0 {
        pipe(target, source, sink)?;
    }
    close(shape, source, sink)
}

fn elements<'a, S: Sink + ?Sized>(shape: &Shape, source: &mut dyn Source<'a>, sink: &mut S) -> Visit<()> {
    let element = shape.element().unwrap_or(&Shape::Void);
    if matches!(element.resolved(), Shape::U8) {
        let shape = shape.resolved();
        return sink.shared(shape, &source.shared(shape)?);
    }
    let len = source.open(shape)?;
    sink.open(shape, len)?;
    macro_rules! bulk {
        ($($variant:ident)*) => {
            match element.resolved() {
                $(Shape::$variant => {
                    let mut items = vec![Default::default(); len];
                    source.numbers(NumbersMut::$variant(&mut items))?;
                    sink.numbers(Numbers::$variant(&items))?;
                })*
                _ => for _ in 0..len {
                    pipe(element, source, sink)?;
                },
            }
        };
    }
    bulk!(U16 I16 U32 I32 U64 I64 F32 F64);
    close(shape, source, sink)
}

/// Reads a union's discriminator as a number.
pub fn discriminator<'a, S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<i64> {
    Ok(match shape.resolved() {
        Shape::Bool => source.bool()?.into(),
        Shape::U8 => source.u8()?.into(),
        Shape::I8 => source.i8()?.into(),
        Shape::U16 => source.u16()?.into(),
        Shape::I16 => source.i16()?.into(),
        Shape::U32 => source.u32()?.into(),
        Shape::I32 => source.i32()?.into(),
        Shape::I64 => source.i64()?,
        Shape::U64 => source.u64()?.cast_signed(),
        Shape::Char => u32::from(source.char(false)?).into(),
        Shape::WideChar => u32::from(source.char(true)?).into(),
        Shape::Enum(members) => source.enumerant(members)?.into(),
        other => {
            return Err(Failure::malformed(format_args!("{} cannot discriminate a union", other.noun()), 0));
        }
    })
}

/// Writes a union's discriminator.
pub fn put_discriminator<S: Sink + ?Sized>(shape: &Shape, value: i64, sink: &mut S) -> Visit<()> {
    let wrong = || Failure::malformed(format_args!("discriminator {value} does not fit {}", shape.noun()), 0);
    macro_rules! fit {
        ($type:ident) => {
            sink.$type($type::try_from(value).map_err(|_| wrong())?)
        };
    }
    let character = || u32::try_from(value).ok().and_then(char::from_u32).ok_or_else(wrong);
    match shape.resolved() {
        Shape::Bool => sink.bool(value != 0),
        Shape::U8 => fit!(u8),
        Shape::I8 => fit!(i8),
        Shape::U16 => fit!(u16),
        Shape::I16 => fit!(i16),
        Shape::U32 => fit!(u32),
        Shape::I32 => fit!(i32),
        Shape::I64 => sink.i64(value),
        Shape::U64 => sink.u64(value.cast_unsigned()),
        Shape::Char => sink.char(character()?, false),
        Shape::WideChar => sink.char(character()?, true),
        Shape::Enum(members) => sink.enumerant(members, i32::try_from(value).map_err(|_| wrong())?),
        _ => Err(wrong()),
    }
}
