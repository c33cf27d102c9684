//! Typed values on the visit: what generated stubs and skeletons are made of.
//!
//! A type is marshalled *at* a shape, the one its contract gives it: a `Vec<f64>` alone does not know its
//! bound or how its count is written. Tuples stand for the arguments and results of an operation.
//!
//! Three lanes, which a codec may make fast each:
//! * one value after the other (`marshal`, `unmarshal`);
//! * numbers in bulk (`marshal_all`, `unmarshal_all`), in the byte order of the message, without looking at
//!   each;
//! * octets as they are (`marshal_slice`, `unmarshal_vec`; `Bytes` shares them with the message).
//!
//! Invariants.
//! * What one lane writes, each other reads: which is taken is nobody's business but the codec's.
//! * A composite is opened and closed around its parts, in the order of the contract, also where it has none.
//! * What is read may borrow from the message (`'a`), and from nothing else.
//! * Elements are charged by the source when a sequence is opened; still, no more than a page is reserved
//!   before they have arrived, but for numbers, whose count the source has bounded by what is there.
//! * A type that does not fit its shape is a fault of generated code: it writes or reads something else, and
//!   what comes of that is a failure, no panic.

use crate::body::{Body, Handle};
use crate::reference::Reference;
use crate::shape::{Field, Shape, Text};
use crate::typecode::TypeCode;
use crate::visit::{Numbers, NumbersMut, Sink, Source, Visit};
use bytes::Bytes;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A type that can be written.
pub trait Marshal {
    /// Writes the value at this shape.
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()>;

    /// Writes the elements of an open sequence or array; numbers take the bulk lane.
    fn marshal_all<S: Sink + ?Sized>(items: &[Self], element: &Shape, sink: &mut S) -> Visit<()>
    where
        Self: Sized,
    {
        items.iter().try_for_each(|item| item.marshal(element, sink))
    }

    /// Writes a whole sequence or array; octets take the byte lane.
    fn marshal_slice<S: Sink + ?Sized>(items: &[Self], shape: &Shape, sink: &mut S) -> Visit<()>
    where
        Self: Sized,
    {
        sink.open(shape, items.len())?;
        Self::marshal_all(items, shape.element().unwrap_or(&Shape::Void), sink)?;
        sink.close(shape)
    }
}

/// A type that can be read; `'a` is the message it may borrow from.
pub trait Unmarshal<'a>: Sized {
    /// Reads a value at this shape.
    fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self>;

    /// Reads `len` elements of an open sequence or array; numbers take the bulk lane.
    fn unmarshal_all<S: Source<'a> + ?Sized>(
        len: usize,
        element: &Shape,
        source: &mut S,
    ) -> Visit<Vec<Self>> {
        // `len` was charged by the source; still, trust it for no more than a page before elements have arrived.
        let mut items = Vec::with_capacity(len.min(4096 / size_of::<Self>().max(1)));
        for _ in 0..len {
            items.push(Self::unmarshal(element, source)?);
        }
        Ok(items)
    }

    /// Reads a whole sequence or array; octets take the byte lane.
    fn unmarshal_vec<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Vec<Self>> {
        let len = source.open(shape)?;
        let items = Self::unmarshal_all(len, shape.element().unwrap_or(&Shape::Void), source)?;
        source.close(shape)?;
        Ok(items)
    }
}

impl Body {
    /// Reads an operation's arguments or results.
    pub fn decode<'a, T: UnmarshalList<'a>>(&'a self, list: &Shape) -> Visit<T> {
        self.read(|source| T::unmarshal_list(list, source))
    }
}

macro_rules! primitive {
    ($($type:ident $(bulk $variant:ident)? $(whole $lane:ident)?),*) => {$(
        impl Marshal for $type {
            #[inline]
            fn marshal<S: Sink + ?Sized>(&self, _: &Shape, sink: &mut S) -> Visit<()> {
                sink.$type(*self)
            }
            $(fn marshal_all<S: Sink + ?Sized>(items: &[Self], _: &Shape, sink: &mut S) -> Visit<()> {
                sink.numbers(Numbers::$variant(items))
            })?
            $(fn marshal_slice<S: Sink + ?Sized>(items: &[Self], shape: &Shape, sink: &mut S) -> Visit<()> {
                sink.$lane(shape, items)
            })?
        }

        impl<'a> Unmarshal<'a> for $type {
            #[inline]
            fn unmarshal<S: Source<'a> + ?Sized>(_: &Shape, source: &mut S) -> Visit<Self> {
                source.$type()
            }
            $(fn unmarshal_all<S: Source<'a> + ?Sized>(len: usize, _: &Shape, source: &mut S) -> Visit<Vec<Self>> {
                let mut items = vec![<$type>::default(); len];
                source.numbers(NumbersMut::$variant(&mut items))?;
                Ok(items)
            })?
            $(fn unmarshal_vec<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Vec<Self>> {
                source.$lane(shape).map(Cow::into_owned)
            })?
        }
    )*};
}

primitive!(bool, u8 whole bytes, i8, u16 bulk U16, i16 bulk I16, u32 bulk U32, i32 bulk I32, u64 bulk U64, i64 bulk I64,
    f32 bulk F32, f64 bulk F64);

fn text_of(shape: &Shape) -> &Text {
    match shape.resolved() {
        Shape::Text(text) => text,
        _ => &Text::NARROW,
    }
}

macro_rules! text {
    ($($type:ty),*) => {$(
        impl Marshal for $type {
            #[inline]
            fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
                sink.text(text_of(shape), self)
            }
        }
    )*};
}

text!(str, String, Cow<'_, str>);

impl<'a> Unmarshal<'a> for Cow<'a, str> {
    #[inline]
    fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
        source.text(text_of(shape))
    }
}

impl<'a> Unmarshal<'a> for String {
    #[inline]
    fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
        source.text(text_of(shape)).map(Cow::into_owned)
    }
}

fn is_wide(shape: &Shape) -> bool {
    matches!(shape.resolved(), Shape::WideChar)
}

/// Types that one step of a visit writes, and one reads.
macro_rules! one_step {
    ($($type:ty: |$value:ident, $to:ident, $sink:ident| $put:expr, |$at:ident, $source:ident| $take:expr;)*) => {$(
        impl Marshal for $type {
            fn marshal<S: Sink + ?Sized>(&self, $to: &Shape, $sink: &mut S) -> Visit<()> {
                let $value = self;
                $put
            }
        }

        impl<'a> Unmarshal<'a> for $type {
            fn unmarshal<S: Source<'a> + ?Sized>($at: &Shape, $source: &mut S) -> Visit<Self> {
                $take
            }
        }
    )*};
}

one_step! {
    // The arm of a union that holds nothing.
    (): |_value, _shape, _sink| Ok(()), |_shape, _source| Ok(());
    char: |value, shape, sink| sink.char(*value, is_wide(shape)), |shape, source| source.char(is_wide(shape));
    Bytes: |value, shape, sink| sink.shared(shape, value), |shape, source| source.shared(shape);
    Option<Reference>: |value, _shape, sink| sink.reference(value.as_ref()), |_shape, source| source.reference();
    Handle: |value, _shape, sink| sink.handle(value), |_shape, source| source.handle();
    TypeCode: |value, _shape, sink| sink.type_code(value), |_shape, source| source.type_code();
}

impl<T: Marshal + ?Sized> Marshal for &T {
    #[inline]
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        (**self).marshal(shape, sink)
    }
}

/// A value that is always there: behind a pointer that is never null, or in place.
impl<T: Marshal> Marshal for Box<T> {
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        match shape.resolved() {
            Shape::Pointer(pointer) => {
                sink.open(shape, 1)?;
                (**self).marshal(&pointer.target, sink)?;
                sink.close(shape)
            }
            _ => (**self).marshal(shape, sink),
        }
    }
}

impl<'a, T: Unmarshal<'a>> Unmarshal<'a> for Box<T> {
    fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
        match shape.resolved() {
            Shape::Pointer(pointer) => {
                if source.open(shape)? == 0 {
                    return Err(crate::Failure::malformed("a pointer is null that may not be", 0));
                }
                let value = T::unmarshal(&pointer.target, source)?;
                source.close(shape)?;
                Ok(Self::new(value))
            }
            _ => T::unmarshal(shape, source).map(Self::new),
        }
    }
}

/// The shape of what may be missing; a shape that cannot be missing stands for itself.
fn target_of(shape: &Shape) -> &Shape {
    match shape.resolved() {
        Shape::Optional(target) => target,
        Shape::Pointer(pointer) => &pointer.target,
        other => other,
    }
}

/// An optional value, or one behind a pointer that may be null.
impl<T: Marshal> Marshal for Option<T> {
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        sink.open(shape, self.is_some().into())?;
        if let Some(value) = self {
            value.marshal(target_of(shape), sink)?;
        }
        sink.close(shape)
    }
}

impl<'a, T: Unmarshal<'a>> Unmarshal<'a> for Option<T> {
    fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
        let value = match source.open(shape)? {
            0 => None,
            _ => Some(T::unmarshal(target_of(shape), source)?),
        };
        source.close(shape)?;
        Ok(value)
    }
}

/// A map; keys that arrive twice count once, with the value that came last.
impl<K: Marshal + Ord, V: Marshal> Marshal for BTreeMap<K, V> {
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        put_pairs(self.iter(), shape, sink)
    }
}

impl<'a, K: Unmarshal<'a> + Ord, V: Unmarshal<'a>> Unmarshal<'a> for BTreeMap<K, V> {
    fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
        let (keys, values) = pair_of(shape);
        let len = source.open(shape)?;
        let mut map = Self::new();
        for _ in 0..len {
            map.insert(K::unmarshal(keys, source)?, V::unmarshal(values, source)?);
        }
        source.close(shape)?;
        Ok(map)
    }
}

fn put_pairs<'v, K, V, S>(
    pairs: impl ExactSizeIterator<Item = (&'v K, &'v V)>,
    shape: &Shape,
    sink: &mut S,
) -> Visit<()>
where
    K: Marshal + 'v,
    V: Marshal + 'v,
    S: Sink + ?Sized,
{
    let (keys, values) = pair_of(shape);
    sink.open(shape, pairs.len())?;
    for (key, value) in pairs {
        key.marshal(keys, sink)?;
        value.marshal(values, sink)?;
    }
    sink.close(shape)
}

fn pair_of(shape: &Shape) -> (&Shape, &Shape) {
    match shape.resolved() {
        Shape::Map(map) => (&map.key, &map.value),
        _ => (&Shape::Void, &Shape::Void),
    }
}

impl<T: Marshal> Marshal for [T] {
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        T::marshal_slice(self, shape, sink)
    }
}

impl<T: Marshal> Marshal for Vec<T> {
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        self.as_slice().marshal(shape, sink)
    }
}

impl<T: Marshal, const N: usize> Marshal for [T; N] {
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        self.as_slice().marshal(shape, sink)
    }
}

impl<'a, T: Unmarshal<'a>> Unmarshal<'a> for Vec<T> {
    fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
        T::unmarshal_vec(shape, source)
    }
}

impl<'a, T: Unmarshal<'a>, const N: usize> Unmarshal<'a> for [T; N] {
    fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
        let items = Vec::unmarshal(shape, source)?;
        let found = items.len();
        items.try_into().map_err(|_| {
            crate::Failure::malformed(format_args!("an array of {N} elements arrived with {found}"), 0)
        })
    }
}

/// A list of values that fills the fields of a nameless struct: the arguments or the results of an operation.
pub trait MarshalList {
    /// Writes the struct.
    fn marshal_list<S: Sink + ?Sized>(&self, list: &Shape, sink: &mut S) -> Visit<()>;
}

/// See [`MarshalList`].
pub trait UnmarshalList<'a>: Sized {
    /// Reads the struct.
    fn unmarshal_list<S: Source<'a> + ?Sized>(list: &Shape, source: &mut S) -> Visit<Self>;

    /// The list, if it has no values: then nothing is to be read.
    #[inline]
    fn without_values() -> Option<Self> {
        None
    }
}

macro_rules! tuples {
    ($len:expr => ($($name:ident $index:tt),*) $(without values: $none:expr)?) => {
        impl<$($name: Marshal),*> MarshalList for ($($name,)*) {
            #[inline]
            fn marshal_list<S: Sink + ?Sized>(&self, list: &Shape, sink: &mut S) -> Visit<()> {
                let _fields = list.fields();
                sink.open(list, $len)?;
                $(self.$index.marshal(shape_at(_fields, $index), sink)?;)*
                sink.close(list)
            }
        }

        impl<'a, $($name: Unmarshal<'a>),*> UnmarshalList<'a> for ($($name,)*) {
            #[inline]
            fn unmarshal_list<S: Source<'a> + ?Sized>(list: &Shape, source: &mut S) -> Visit<Self> {
                let _fields = list.fields();
                source.open(list)?;
                let values = ($($name::unmarshal(shape_at(_fields, $index), source)?,)*);
                source.close(list)?;
                Ok(values)
            }

            $(#[inline]
            fn without_values() -> Option<Self> {
                Some($none)
            })?
        }
    };
}

/// Hands each tuple of 1 to 64 to a macro: what its elements are called, and their numbers. Operations of SOAP have so many
/// parameters.
macro_rules! each_tuple {
    ($to:ident) => {
        $crate::marshal::each_tuple!($to [] A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13 O 14 P 15 A2 16 B2 17 C2 18 D2 19
            E2 20 F2 21 G2 22 H2 23 I2 24 J2 25 K2 26 L2 27 M2 28 N2 29 O2 30 P2 31 A3 32 B3 33 C3 34 D3 35 E3 36 F3 37 G3 38
            H3 39 I3 40 J3 41 K3 42 L3 43 M3 44 N3 45 O3 46 P3 47 A4 48 B4 49 C4 50 D4 51 E4 52 F4 53 G4 54 H4 55 I4 56 J4 57
            K4 58 L4 59 M4 60 N4 61 O4 62 P4 63);
    };
    ($to:ident [$($before:ident $number:tt)*] $name:ident $index:tt $($rest:tt)*) => {
        $to!($($before $number,)* $name $index);
        $crate::marshal::each_tuple!($to [$($before $number)* $name $index] $($rest)*);
    };
    ($to:ident [$($before:tt)*]) => {};
}
pub(crate) use each_tuple;

macro_rules! tuple {
    ($($name:ident $index:tt),+) => {
        tuples!([$($index),+].len() => ($($name $index),+));
    };
}

tuples!(0 => () without values: ());
each_tuple!(tuple);

/// Tuples as values: structs without a name.
macro_rules! nameless {
    ($(($($name:ident),*) $({ $($slice:item)* } { $($vec:item)* })?),*) => {$(
        impl<$($name: Marshal),*> Marshal for ($($name,)*) {
            #[inline]
            fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
                self.marshal_list(shape, sink)
            }
            $($($slice)*)?
        }

        impl<'a, $($name: Unmarshal<'a>),*> Unmarshal<'a> for ($($name,)*) {
            #[inline]
            fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
                Self::unmarshal_list(shape, source)
            }
            $($($vec)*)?
        }
    )*};
}

nameless!(
    (A),
    // Where a map is expected, pairs are its keys and values, in order.
    (A, B)
    {
        fn marshal_slice<S: Sink + ?Sized>(items: &[Self], shape: &Shape, sink: &mut S) -> Visit<()> {
            if matches!(shape.resolved(), Shape::Map(_)) {
                return put_pairs(items.iter().map(|(key, value)| (key, value)), shape, sink);
            }
            sink.open(shape, items.len())?;
            Self::marshal_all(items, shape.element().unwrap_or(&Shape::Void), sink)?;
            sink.close(shape)
        }
    }
    {
        fn unmarshal_vec<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Vec<Self>> {
            let len = source.open(shape)?;
            let items = if matches!(shape.resolved(), Shape::Map(_)) {
                let (keys, values) = pair_of(shape);
                let mut pairs = Vec::with_capacity(len.min(4096 / size_of::<Self>().max(1)));
                for _ in 0..len {
                    pairs.push((A::unmarshal(keys, source)?, B::unmarshal(values, source)?));
                }
                pairs
            } else {
                Self::unmarshal_all(len, shape.element().unwrap_or(&Shape::Void), source)?
            };
            source.close(shape)?;
            Ok(items)
        }
    },
    (A, B, C),
    (A, B, C, D),
    (A, B, C, D, E),
    (A, B, C, D, E, F),
    (A, B, C, D, E, F, G),
    (A, B, C, D, E, F, G, H),
    (A, B, C, D, E, F, G, H, I),
    (A, B, C, D, E, F, G, H, I, J),
    (A, B, C, D, E, F, G, H, I, J, K),
    (A, B, C, D, E, F, G, H, I, J, K, L)
);

#[inline]
fn shape_at(fields: &[Field], index: usize) -> &Shape {
    fields.get(index).map_or(&Shape::Void, |field| &field.shape)
}

/// The shape of field `index` of a struct, for generated code.
#[inline]
pub fn field(shape: &Shape, index: usize) -> &Shape {
    shape_at(shape.fields(), index)
}
