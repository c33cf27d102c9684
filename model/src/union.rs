//! Unions on the visit, for generated code: a discriminator is read or written and the arm it selects follows.

use crate::failure::Failure;
use crate::marshal::Marshal;
use crate::pipe;
use crate::shape::{Shape, Union};
use crate::visit::{Sink, Source, Visit};

/// A type whose values select arms: integers, booleans, characters, and generated enumerations.
pub trait Discriminator: Copy {
    /// The number that stands for this value in a contract's labels.
    fn label(self) -> i64;
    /// The value with this number, if there is one.
    fn from_label(label: i64) -> Option<Self>;
}

macro_rules! integers {
    ($($type:ident)*) => {$(
        impl Discriminator for $type {
            fn label(self) -> i64 {
                self.into()
            }
            fn from_label(label: i64) -> Option<Self> {
                label.try_into().ok()
            }
        }
    )*};
}

integers!(u8 i8 u16 i16 u32 i32 i64);

impl Discriminator for u64 {
    fn label(self) -> i64 {
        self.cast_signed()
    }
    fn from_label(label: i64) -> Option<Self> {
        Some(label.cast_unsigned())
    }
}

impl Discriminator for bool {
    fn label(self) -> i64 {
        self.into()
    }
    fn from_label(label: i64) -> Option<Self> {
        Some(label != 0)
    }
}

impl Discriminator for char {
    fn label(self) -> i64 {
        u32::from(self).into()
    }
    fn from_label(label: i64) -> Option<Self> {
        u32::try_from(label).ok().and_then(Self::from_u32)
    }
}

/// Writes a union whose arm number `arm` has one label.
pub fn put<T: Marshal + ?Sized, S: Sink + ?Sized>(
    shape: &Shape,
    arm: usize,
    value: &T,
    sink: &mut S,
) -> Visit<()> {
    let union = union_of(shape)?;
    match union.arms.get(arm).and_then(|arm| arm.labels.first()) {
        Some(label) => write(shape, union, *label, Some((arm, value)), sink),
        None => Err(foreign(shape)),
    }
}

/// Writes a union whose arm number `arm` goes with several discriminators; `label` is the one to write.
///
/// # Errors
/// [`crate::Kind::BadArgument`] if the discriminator selects another arm.
pub fn put_labelled<D: Discriminator, T: Marshal + ?Sized, S: Sink + ?Sized>(
    shape: &Shape,
    arm: usize,
    label: D,
    value: &T,
    sink: &mut S,
) -> Visit<()> {
    write(shape, union_of(shape)?, label.label(), Some((arm, value)), sink)
}

/// Writes a union whose discriminator selects no arm.
///
/// # Errors
/// [`crate::Kind::BadArgument`] if it does select one.
pub fn put_empty<D: Discriminator, S: Sink + ?Sized>(shape: &Shape, label: D, sink: &mut S) -> Visit<()> {
    write(shape, union_of(shape)?, label.label(), None::<(usize, &bool)>, sink)
}

fn write<T: Marshal + ?Sized, S: Sink + ?Sized>(
    shape: &Shape,
    union: &Union,
    label: i64,
    taken: Option<(usize, &T)>,
    sink: &mut S,
) -> Visit<()> {
    let selected = union.select(label);
    if selected != taken.map(|(arm, _)| arm) {
        let what = format!("discriminator {label} of {} does not select this arm", union.name);
        return Err(Failure::bad_argument(what));
    }
    sink.open(shape, selected.map_or(0, |arm| arm + 1))?;
    pipe::put_discriminator(&union.discriminator, label, sink)?;
    if let Some((arm, value)) = taken {
        value.marshal(union.arms.get(arm).map_or(&Shape::Void, |arm| &arm.field.shape), sink)?;
    }
    sink.close(shape)
}

/// Opens a union and reads its discriminator: the label, and the number of the arm it selects. The arm's value comes
/// next, at [`arm`], and then the caller closes.
pub fn open<'a, S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<(i64, Option<usize>)> {
    let union = union_of(shape)?;
    source.open(shape)?;
    let label = pipe::discriminator(&union.discriminator, source)?;
    let selected = union.select(label);
    source.arm(shape, selected)?;
    Ok((label, selected))
}

/// The shape of arm number `arm`.
pub fn arm(shape: &Shape, arm: usize) -> &Shape {
    match shape.resolved() {
        Shape::Union(union) => union.arms.get(arm).map_or(&Shape::Void, |arm| &arm.field.shape),
        _ => &Shape::Void,
    }
}

/// A label as a value of the discriminator's type.
pub fn label<D: Discriminator>(label: i64) -> Visit<D> {
    D::from_label(label)
        .ok_or_else(|| Failure::malformed(format_args!("{label} is no value of this discriminator"), 0))
}

/// The failure of a discriminator that selects an arm which this type does not have.
#[cold]
pub fn foreign(shape: &Shape) -> Failure {
    Failure::malformed(format_args!("the union {} has no such arm", shape.noun()), 0)
}

fn union_of(shape: &Shape) -> Visit<&Union> {
    match shape.resolved() {
        Shape::Union(union) => Ok(union),
        _ => Err(foreign(shape)),
    }
}
