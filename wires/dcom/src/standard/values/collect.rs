//! A sink that builds a [`Value`].
//!
//! Invariants: an open composite gathers its values in order and becomes one value when it closes; exactly
//! one value is left at the end. Shapes decide what the values are together: names of fields come from the
//! shape, since a sink is not told them.

use super::misfit;
use everywire_model::shape::{Enum, Shape, Text};
use everywire_model::value::{HeldHandle, TypedShape, Value};
use everywire_model::visit::{Numbers, Sink, Visit};
use everywire_model::{Bytes, Encode, Handle, Reference};

/// The value that is written.
///
/// # Errors
/// Those of the values.
pub(in super::super) fn collect(values: &dyn Encode) -> Visit<Value> {
    Ok(collect_results(values)?.0)
}

/// The same for results, and how the operation succeeded.
///
/// # Errors
/// As [`collect`]; the number beside the results tells of a failure.
pub(in super::super) fn collect_results(values: &dyn Encode) -> Visit<(Value, i32)> {
    let mut collector = Collector::default();
    values.encode(&mut collector)?;
    match collector.whole {
        Some(value) if collector.open.is_empty() => Ok((value, collector.status)),
        _ => Err(misfit("no whole value was written")),
    }
}

/// A sink that keeps what is written as a `Value`. `whole` is set once, by the value that stands in no
/// composite.
#[derive(Default)]
struct Collector {
    open: Vec<Frame>,
    whole: Option<Value>,
    status: i32,
}

struct Frame {
    items: Vec<Value>,
    /// What an open variant holds.
    content: Option<Shape>,
}

impl Collector {
    /// A value is complete: it belongs to what is open, or is the whole.
    fn put(&mut self, value: Value) -> Visit<()> {
        match self.open.last_mut() {
            Some(frame) => frame.items.push(value),
            None if self.whole.is_none() => self.whole = Some(value),
            None => return Err(misfit("more than one value was written")),
        }
        Ok(())
    }

    fn integer(&mut self, value: impl Into<i128>) -> Visit<()> {
        self.put(Value::Integer(value.into()))
    }
}

impl Sink for Collector {
    fn status(&mut self, status: i32) -> Visit<()> {
        if status < 0 {
            return Err(misfit("a number that tells of a failure came with results"));
        }
        self.status = status;
        Ok(())
    }
    fn bool(&mut self, value: bool) -> Visit<()> {
        self.put(Value::Bool(value))
    }

    fn u8(&mut self, value: u8) -> Visit<()> {
        self.integer(value)
    }

    fn i8(&mut self, value: i8) -> Visit<()> {
        self.integer(value)
    }

    fn u16(&mut self, value: u16) -> Visit<()> {
        self.integer(value)
    }

    fn i16(&mut self, value: i16) -> Visit<()> {
        self.integer(value)
    }

    fn u32(&mut self, value: u32) -> Visit<()> {
        self.integer(value)
    }

    fn i32(&mut self, value: i32) -> Visit<()> {
        self.integer(value)
    }

    fn u64(&mut self, value: u64) -> Visit<()> {
        self.integer(value)
    }

    fn i64(&mut self, value: i64) -> Visit<()> {
        self.integer(value)
    }

    fn f32(&mut self, value: f32) -> Visit<()> {
        self.put(Value::Float(value.into()))
    }

    fn f64(&mut self, value: f64) -> Visit<()> {
        self.put(Value::Float(value))
    }

    fn char(&mut self, value: char, _: bool) -> Visit<()> {
        self.put(Value::Char(value))
    }

    fn text(&mut self, _: &Text, value: &str) -> Visit<()> {
        self.put(Value::Text(value.to_owned()))
    }

    fn bytes(&mut self, _: &Shape, value: &[u8]) -> Visit<()> {
        self.put(Value::Bytes(Bytes::copy_from_slice(value)))
    }

    fn shared(&mut self, _: &Shape, value: &Bytes) -> Visit<()> {
        self.put(Value::Bytes(value.clone()))
    }

    fn numbers(&mut self, values: Numbers<'_>) -> Visit<()> {
        macro_rules! each {
            ($items:expr, $make:expr) => {
                for item in $items {
                    self.put($make(*item))?;
                }
            };
        }
        let whole = |number: i128| Value::Integer(number);
        match values {
            Numbers::U16(items) => each!(items, |item: u16| whole(item.into())),
            Numbers::I16(items) => each!(items, |item: i16| whole(item.into())),
            Numbers::U32(items) => each!(items, |item: u32| whole(item.into())),
            Numbers::I32(items) => each!(items, |item: i32| whole(item.into())),
            Numbers::U64(items) => each!(items, |item: u64| whole(item.into())),
            Numbers::I64(items) => each!(items, |item: i64| whole(item.into())),
            Numbers::F32(items) => each!(items, |item: f32| Value::Float(item.into())),
            Numbers::F64(items) => each!(items, Value::Float),
        }
        Ok(())
    }

    fn enumerant(&mut self, shape: &Enum, value: i32) -> Visit<()> {
        match shape.name_of(value) {
            Some(name) => self.put(Value::Member(name.to_owned())),
            None => Err(misfit("no member of its enumeration")),
        }
    }

    fn reference(&mut self, value: Option<&Reference>) -> Visit<()> {
        self.put(Value::Reference(value.cloned()))
    }

    fn handle(&mut self, value: &Handle) -> Visit<()> {
        self.put(Value::Handle(HeldHandle(Handle::clone(value))))
    }

    fn open(&mut self, _: &Shape, _: usize) -> Visit<()> {
        self.open.push(Frame { items: Vec::new(), content: None });
        Ok(())
    }

    fn content(&mut self, shape: &Shape) -> Visit<()> {
        match self.open.last_mut() {
            Some(frame) => frame.content = Some(shape.clone()),
            None => return Err(misfit("no variant is open")),
        }
        Ok(())
    }

    fn close(&mut self, shape: &Shape) -> Visit<()> {
        let Some(Frame { items, content }) = self.open.pop() else { return Err(misfit("nothing is open")) };
        self.put(match shape.resolved() {
            Shape::Struct(fields) => {
                let names = fields.fields.iter().map(|field| field.name.to_string());
                Value::Struct(names.zip(items).collect())
            }
            Shape::Union(union) => {
                let mut items = items.into_iter();
                let label = match items.next() {
                    Some(Value::Integer(number)) => {
                        i64::try_from(number).map_err(|_| misfit("a discriminator"))?
                    }
                    Some(Value::Bool(flag)) => flag.into(),
                    Some(Value::Char(character)) => u32::from(character).into(),
                    Some(Value::Member(name)) => match union.discriminator.resolved() {
                        Shape::Enum(members) => members.value_of(&name).unwrap_or_default().into(),
                        _ => return Err(misfit("a discriminator")),
                    },
                    _ => return Err(misfit("a union without a discriminator")),
                };
                let arm = union.select(label).and_then(|arm| union.arms.get(arm));
                let arm =
                    arm.zip(items.next()).map(|(arm, value)| Box::new((arm.field.name.to_string(), value)));
                Value::Union(label, arm)
            }
            Shape::Map(_) => {
                let mut items = items.into_iter();
                let mut pairs = Vec::new();
                while let (Some(key), Some(value)) = (items.next(), items.next()) {
                    pairs.push((key, value));
                }
                Value::Map(pairs)
            }
            Shape::Optional(_) | Shape::Pointer(_) => items.into_iter().next().unwrap_or(Value::Nothing),
            Shape::Variant => {
                let value = items.into_iter().next().unwrap_or(Value::Nothing);
                Value::Variant(Box::new((TypedShape(content.unwrap_or(Shape::Void)), value)))
            }
            _ => Value::List(items),
        })
    }
}
