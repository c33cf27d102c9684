//! Counts that stand beside their arrays: what generated code makes of `size_is` and `length_is`.
//!
//! People see arrays alone. On the way out the count is the length of its arrays, which must all have the same; on the way in the
//! arrays must be as long as the count says.

use crate::failure::{Completed, Failure, Initiator, Kind};
use crate::marshal::{Marshal, Unmarshal};
use crate::shape::Shape;
use crate::visit::{Sink, Source, Visit};
use bytes::Bytes;
use std::fmt::Display;

/// A number that counts elements.
pub trait Count: Copy + Display + TryFrom<usize> + TryInto<usize> {}

impl<T: Copy + Display + TryFrom<usize> + TryInto<usize>> Count for T {}

/// Arrays by their names, and how long they are.
pub type Arrays<'a> = &'a [(&'a str, usize)];

/// The count of arrays that share one.
///
/// # Errors
/// They are not of one length, or of more elements than the count can say.
pub fn of<C: Count>(name: &str, arrays: Arrays<'_>) -> Visit<C> {
    let (first, len) = arrays.first().copied().unwrap_or_default();
    if let Some((other, found)) = arrays.iter().find(|(_, found)| *found != len) {
        let message =
            format!("`{first}` has {len} elements and `{other}` has {found}: `{name}` counts both of them");
        return Err(
            Failure::bad_argument(message).with_hint("give arrays that are counted together the same length")
        );
    }
    C::try_from(len).map_err(|_| {
        let message = format!("`{first}` has {len} elements, more than `{name}` can say");
        Failure::new(Kind::LimitExceeded, Initiator::User, message)
    })
}

/// Arrays that came are as long as the count says.
///
/// # Errors
/// One is not.
pub fn agree<C: Count>(name: &str, count: C, arrays: Arrays<'_>) -> Visit<()> {
    let wrong = |array: &str, found| {
        let message = format!("`{array}` has {found} elements, and `{name}` says {count}");
        Failure::new(Kind::Malformed, Initiator::Peer, message)
    };
    check(count, arrays, |found, count| found == count, wrong)
}

/// The same for arrays that may be missing: a pointer that is null, whatever the count says.
///
/// # Errors
/// One is there and of another length.
pub fn agree_if_any<C: Count>(name: &str, count: C, arrays: Arrays<'_>) -> Visit<()> {
    arrays
        .iter()
        .filter(|(_, found)| *found > 0)
        .try_for_each(|array| agree(name, count, std::slice::from_ref(array)))
}

/// The arrays that a servant answers are as long as the caller's count says.
///
/// # Errors
/// One is not: the servant's mistake.
pub fn answered<C: Count>(name: &str, count: C, arrays: Arrays<'_>) -> Visit<()> {
    let wrong = |array: &str, found| misanswered(array, found, &format!("`{name}` is {count}"));
    check(count, arrays, |found, count| found == count, wrong)
}

/// The arrays have at most as many elements as there is room for, as the caller says.
///
/// # Errors
/// One has more: the mistake of whoever made it.
pub fn within<C: Count>(name: &str, room: C, arrays: Arrays<'_>) -> Visit<()> {
    let wrong = |array: &str, found| misanswered(array, found, &format!("`{name}` has room for {room}"));
    check(room, arrays, |found, room| found <= room, wrong)
}

/// Fails for the first array whose length does not fit the count; a negative count fits nothing.
fn check<C: Count>(
    count: C,
    arrays: Arrays<'_>,
    fits: fn(usize, usize) -> bool,
    wrong: impl Fn(&str, usize) -> Failure,
) -> Visit<()> {
    let count: Option<usize> = count.try_into().ok();
    let differs = |(_, found): &&(&str, usize)| !count.is_some_and(|count| fits(*found, count));
    arrays.iter().find(differs).map_or(Ok(()), |(array, found)| Err(wrong(array, *found)))
}

#[cold]
fn misanswered(array: &str, found: usize, said: &str) -> Failure {
    let message = format!("the servant answered {found} elements of `{array}` where {said}");
    Failure::new(Kind::Internal, Initiator::Here, message).with_completed(Completed::Yes)
}

/// An array that is a result behind a pointer. It is always written; a null pointer is read as no elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Present<T>(pub T);

/// An array behind a pointer that is null where it has no elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filled<T>(pub T);

/// An array, and the number of elements there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Within<T, C>(pub T, pub C);

/// What has elements.
pub trait Elements {
    /// How many.
    fn count(&self) -> usize;
}

/// How many elements there are, where the compiler does not know the type yet.
pub fn len<T: Elements>(elements: &T) -> usize {
    elements.count()
}

impl<T> Elements for Vec<T> {
    fn count(&self) -> usize {
        self.len()
    }
}

impl Elements for Bytes {
    fn count(&self) -> usize {
        self.len()
    }
}

impl<T: Marshal> Marshal for Present<T> {
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        marshal_behind(Some(&self.0), shape, sink)
    }
}

impl<T: Marshal + Elements> Marshal for Filled<&T> {
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        marshal_behind(Some(self.0).filter(|value| value.count() > 0), shape, sink)
    }
}

impl<T: Marshal, C: Count> Marshal for Within<T, C> {
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        sink.room(self.1.try_into().unwrap_or_default());
        self.0.marshal(shape, sink)
    }
}

impl<'a, T: Unmarshal<'a> + Default> Unmarshal<'a> for Present<T> {
    fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
        unmarshal_behind(shape, source).map(Self)
    }
}

impl<'a, T: Unmarshal<'a> + Default> Unmarshal<'a> for Filled<T> {
    fn unmarshal<S: Source<'a> + ?Sized>(shape: &Shape, source: &mut S) -> Visit<Self> {
        unmarshal_behind(shape, source).map(Self)
    }
}

fn marshal_behind<T: Marshal, S: Sink + ?Sized>(value: Option<&T>, shape: &Shape, sink: &mut S) -> Visit<()> {
    match shape.resolved() {
        Shape::Optional(_) => value.marshal(shape, sink),
        _ => value.map_or(Ok(()), |value| value.marshal(shape, sink)),
    }
}

fn unmarshal_behind<'a, T, S>(shape: &Shape, source: &mut S) -> Visit<T>
where
    T: Unmarshal<'a> + Default,
    S: Source<'a> + ?Sized,
{
    match shape.resolved() {
        Shape::Optional(_) => Option::unmarshal(shape, source).map(Option::unwrap_or_default),
        _ => T::unmarshal(shape, source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_one_count_have_one_length() {
        assert_eq!(of::<u32>("n", &[("a", 2), ("b", 2)]).unwrap(), 2);
        assert_eq!(of::<i16>("n", &[]).unwrap(), 0);
        let failure = of::<u32>("n", &[("a", 2), ("b", 3)]).unwrap_err();
        assert_eq!(failure.message(), "`a` has 2 elements and `b` has 3: `n` counts both of them");
        assert_eq!(of::<u8>("n", &[("a", 256)]).unwrap_err().kind(), Kind::LimitExceeded);
    }

    #[test]
    fn what_came_is_as_long_as_its_count_says() {
        assert!(agree("n", 2_i32, &[("a", 2)]).is_ok());
        let failure = agree("n", 3_u16, &[("a", 3), ("b", 2)]).unwrap_err();
        assert_eq!(
            (failure.kind(), failure.message()),
            (Kind::Malformed, "`b` has 2 elements, and `n` says 3")
        );
        assert!(agree("n", -1_i32, &[("a", 0)]).is_err());
        assert!(agree_if_any("n", 9_u32, &[("a", 0), ("b", 9)]).is_ok());
        assert!(agree_if_any("n", 9_u32, &[("a", 8)]).is_err());
        assert_eq!(answered("n", 3_u32, &[("a", 2)]).unwrap_err().initiator(), Initiator::Here);
        assert!(within("n", 3_u32, &[("a", 3)]).is_ok() && within("n", 3_u32, &[("a", 4)]).is_err());
    }
}
