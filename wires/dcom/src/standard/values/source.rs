//! A body that is a [`Value`]: its codec hands out a source over the tree.
//!
//! Arguments of a call by name (IDispatch) exist as values before anybody knows the operation's shapes. A
//! servant of this process reads them like a body that came over a wire; no octets are made.
//!
//! States: a stack of open composites, each an iterator over its members; `One` at the bottom is the whole
//! value.
//!
//! Invariants: a value is given out once, in order. A value that does not fit the shape that is asked for is
//! a failure of the caller (`BadArgument`), never a panic. Numbers are checked for the range of the type
//! asked for. Nesting is charged to the budget of the body.

use super::misfit;
use bytes::Bytes;
use everywire_model::shape::{Enum, Shape, Text};
use everywire_model::value::Value;
use everywire_model::visit::{NumbersMut, Sink, Source, Visit};
use everywire_model::{Beside, Body, Budget, Codec, Context, Handle, Reference, Servant, WireState};
use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

/// A body that holds this value, one struct of arguments or results.
pub(crate) fn body_of(value: Value) -> Body {
    let held: Arc<dyn WireState> = Arc::new(Held(value));
    Body {
        bytes: Bytes::new(),
        base: 0,
        little: true,
        dialect: 0,
        context: Context::default(),
        budget: Budget::default(),
        codec: &VALUES,
        beside: Some(Arc::new(Beside { wire_state: Some(held), ..Beside::default() })),
    }
}

/// The value, where a body keeps what belongs to it.
struct Held(Value);

impl WireState for Held {
    fn servants(&self) -> Vec<Arc<dyn Servant>> {
        Vec::new()
    }
}

/// The codec of a body that holds a `Value` in place of octets.
struct Values;

static VALUES: Values = Values;

impl Codec for Values {
    fn read<'a>(&self, body: &'a Body, visit: &mut dyn FnMut(&mut dyn Source<'a>) -> Visit<()>) -> Visit<()> {
        let wire_state: Option<&'a dyn Any> = body.wire_state().map(|held| &**held as &dyn Any);
        match wire_state.and_then(|any| any.downcast_ref::<Held>()) {
            Some(Held(value)) => {
                let open = vec![Frame::One(Some(Item::Value(value)))];
                visit(&mut Tree { open, budget: body.budget, status: body.status() })
            }
            None => Err(misfit("the body holds no value")),
        }
    }

    fn write(&self, visit: &mut dyn FnMut(&mut dyn Sink) -> Visit<()>) -> Visit<Body> {
        crate::NDR.write(visit)
    }
}

/// What the next value may be.
#[derive(Clone, Copy)]
enum Item<'a> {
    Value(&'a Value),
    /// The discriminator of a union, which a `Value` keeps as a number.
    Label(i64),
    /// One octet of a value that is kept as bytes, where a sequence of numbers is read.
    Octet(u8),
}

/// What is open, and what of it is still to be read. `One` is also a null pointer, with nothing in it. The
/// label of `Union` and the key of `Pairs` come first; the value beside waits for its turn.
enum Frame<'a> {
    One(Option<Item<'a>>),
    List(std::slice::Iter<'a, Value>),
    Octets(std::slice::Iter<'a, u8>),
    Fields(std::slice::Iter<'a, (String, Value)>),
    Pairs(std::slice::Iter<'a, (Value, Value)>, Option<&'a Value>),
    Union(Option<i64>, Option<&'a Value>),
    Variant(&'a Shape, Option<&'a Value>),
}

/// A reader of a `Value`. The shape that is asked for must fit the value; numbers fit if they are in range.
struct Tree<'a> {
    open: Vec<Frame<'a>>,
    budget: Budget,
    status: i32,
}

impl<'a> Tree<'a> {
    /// The next value of what is open.
    fn next(&mut self) -> Visit<Item<'a>> {
        let item = match self.open.last_mut() {
            Some(Frame::One(item)) => item.take(),
            Some(Frame::List(items)) => items.next().map(Item::Value),
            Some(Frame::Octets(items)) => items.next().map(|octet| Item::Octet(*octet)),
            Some(Frame::Fields(fields)) => fields.next().map(|(_, value)| Item::Value(value)),
            Some(Frame::Pairs(pairs, second)) => match second.take() {
                Some(value) => Some(Item::Value(value)),
                None => pairs.next().map(|(key, value)| {
                    *second = Some(value);
                    Item::Value(key)
                }),
            },
            Some(Frame::Union(label, arm)) => match label.take() {
                Some(label) => Some(Item::Label(label)),
                None => arm.take().map(Item::Value),
            },
            Some(Frame::Variant(_, value)) => value.take().map(Item::Value),
            None => None,
        };
        item.ok_or_else(|| misfit("a value is missing"))
    }

    /// The same where only a whole value will do.
    fn value(&mut self) -> Visit<&'a Value> {
        match self.next()? {
            Item::Value(value) => Ok(value),
            _ => Err(misfit("a number stands where another value is expected")),
        }
    }

    /// An integer of the type asked for, from a number, a discriminator or an octet.
    fn integer<T: TryFrom<i128>>(&mut self) -> Visit<T> {
        let number = match self.next()? {
            Item::Value(Value::Integer(number)) => *number,
            Item::Label(label) => label.into(),
            Item::Octet(octet) => octet.into(),
            Item::Value(_) => return Err(misfit("an integer is expected")),
        };
        T::try_from(number).map_err(|_| misfit("a number is out of range"))
    }

    fn float(&mut self) -> Visit<f64> {
        match self.value()? {
            Value::Float(number) => Ok(*number),
            #[allow(clippy::cast_precision_loss)]
            Value::Integer(number) => Ok(*number as f64),
            _ => Err(misfit("a number is expected")),
        }
    }
}

macro_rules! integers {
    ($($name:ident),*) => {$(
        fn $name(&mut self) -> Visit<$name> {
            self.integer()
        }
    )*};
}

impl<'a> Source<'a> for Tree<'a> {
    integers!(u8, i8, u16, i16, u32, i32, u64, i64);

    fn bool(&mut self) -> Visit<bool> {
        match self.next()? {
            Item::Value(Value::Bool(flag)) => Ok(*flag),
            Item::Label(label) => Ok(label != 0),
            _ => Err(misfit("a boolean is expected")),
        }
    }

    #[allow(clippy::cast_possible_truncation)]
    fn f32(&mut self) -> Visit<f32> {
        self.float().map(|number| number as f32)
    }

    fn f64(&mut self) -> Visit<f64> {
        self.float()
    }

    fn char(&mut self, _: bool) -> Visit<char> {
        let label = |label: i64| u32::try_from(label).ok().and_then(char::from_u32);
        match self.next()? {
            Item::Value(Value::Char(character)) => Ok(*character),
            Item::Label(code) => label(code).ok_or_else(|| misfit("a character is expected")),
            _ => Err(misfit("a character is expected")),
        }
    }

    fn text(&mut self, _: &Text) -> Visit<Cow<'a, str>> {
        match self.value()? {
            Value::Text(text) => Ok(Cow::Borrowed(text)),
            _ => Err(misfit("text is expected")),
        }
    }

    fn bytes(&mut self, shape: &Shape) -> Visit<Cow<'a, [u8]>> {
        self.shared(shape).map(|bytes| Cow::Owned(bytes.to_vec()))
    }

    fn shared(&mut self, _: &Shape) -> Visit<Bytes> {
        match self.value()? {
            Value::Bytes(bytes) => Ok(bytes.clone()),
            Value::List(items) => items
                .iter()
                .map(|item| match item {
                    Value::Integer(number) => u8::try_from(*number).map_err(|_| misfit("an octet")),
                    _ => Err(misfit("octets are expected")),
                })
                .collect::<Visit<Vec<u8>>>()
                .map(Bytes::from),
            _ => Err(misfit("octets are expected")),
        }
    }

    fn numbers(&mut self, into: NumbersMut<'_>) -> Visit<()> {
        macro_rules! fill {
            ($items:expr) => {
                for item in $items {
                    *item = self.integer()?;
                }
            };
        }
        match into {
            NumbersMut::U16(items) => fill!(items),
            NumbersMut::I16(items) => fill!(items),
            NumbersMut::U32(items) => fill!(items),
            NumbersMut::I32(items) => fill!(items),
            NumbersMut::U64(items) => fill!(items),
            NumbersMut::I64(items) => fill!(items),
            NumbersMut::F32(items) => {
                for item in items {
                    *item = self.f32()?;
                }
            }
            NumbersMut::F64(items) => {
                for item in items {
                    *item = self.f64()?;
                }
            }
        }
        Ok(())
    }

    fn enumerant(&mut self, shape: &Enum) -> Visit<i32> {
        let value = match self.next()? {
            Item::Value(Value::Member(name)) => shape.value_of(name),
            Item::Value(Value::Integer(number)) => i32::try_from(*number).ok(),
            Item::Label(label) => i32::try_from(label).ok(),
            _ => None,
        };
        value
            .filter(|value| shape.name_of(*value).is_some())
            .ok_or_else(|| misfit("a member of an enumeration is expected"))
    }

    fn reference(&mut self) -> Visit<Option<Reference>> {
        match self.value()? {
            Value::Reference(reference) => Ok(reference.clone()),
            Value::Nothing => Ok(None),
            _ => Err(misfit("an object reference is expected")),
        }
    }

    fn handle(&mut self) -> Visit<Handle> {
        match self.value()? {
            Value::Handle(held) => Ok(Handle::clone(&held.0)),
            _ => Err(misfit("a handle is expected")),
        }
    }

    fn open(&mut self, shape: &Shape) -> Visit<usize> {
        self.budget.enter()?;
        let item = self.value()?;
        let (frame, len) = match (shape.resolved(), item) {
            (Shape::Struct(_), Value::Struct(fields)) => (Frame::Fields(fields.iter()), fields.len()),
            (Shape::Union(_), Value::Union(label, arm)) => {
                (Frame::Union(Some(*label), arm.as_deref().map(|(_, value)| value)), 0)
            }
            (Shape::Map(_), Value::Map(pairs)) => (Frame::Pairs(pairs.iter(), None), pairs.len()),
            (Shape::Variant, Value::Variant(held)) => (Frame::Variant(&held.0.0, Some(&held.1)), 1),
            (Shape::Optional(_) | Shape::Pointer(_), Value::Nothing) => (Frame::One(None), 0),
            (Shape::Optional(_) | Shape::Pointer(_), value) => (Frame::One(Some(Item::Value(value))), 1),
            (Shape::Sequence(_) | Shape::Array(_), Value::List(items)) => {
                if let Shape::Array(array) = shape.resolved()
                    && array.len as usize != items.len()
                {
                    return Err(misfit("an array of another length is expected"));
                }
                (Frame::List(items.iter()), items.len())
            }
            (Shape::Sequence(_) | Shape::Array(_), Value::Bytes(bytes)) => {
                (Frame::Octets(bytes.iter()), bytes.len())
            }
            _ => return Err(misfit("another kind of value is expected")),
        };
        self.open.push(frame);
        Ok(len)
    }

    fn content(&mut self) -> Visit<Shape> {
        match self.open.last() {
            Some(Frame::Variant(shape, _)) => Ok((*shape).clone()),
            _ => Err(misfit("no variant is open")),
        }
    }

    fn close(&mut self, _: &Shape) -> Visit<()> {
        self.budget.leave();
        self.open.pop();
        Ok(())
    }

    fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    fn status(&self) -> i32 {
        self.status
    }
}
