//! Lists of results that travel, and what methods yield; parameters by reference, and what skeletons read for them.

use crate::failure::Failure;
use crate::marshal::{Marshal, MarshalList, Unmarshal, UnmarshalList};
use crate::object::{Object, Ref, Remote};
use crate::reference::Reference;
use crate::success::Success;
use std::borrow::Cow;
use std::marker::PhantomData;

/// The results of an operation as they travel: a tuple, [`Success`] with one, or [`Narrow`].
pub trait Results {
    /// What the method yields.
    type Value;
    /// What a stub reads.
    type Read: for<'a> UnmarshalList<'a>;
    /// What a skeleton writes.
    type Written: MarshalList;
    /// What the method yields, from what was read.
    ///
    /// # Errors
    /// The call failed, or a reference leads nowhere.
    fn receive<E: From<Failure>>(read: Result<Self::Read, E>, object: &Object) -> Result<Self::Value, E>;
    /// What travels, from what the method yielded.
    ///
    /// # Errors
    /// The method failed.
    fn answer<E>(yielded: Result<Self::Value, E>) -> Result<Self::Written, E>;
}

/// A tuple of results, and the value that it is to people: `()`, the only one, or the tuple itself.
pub trait List: Sized {
    /// The value.
    type Value;
    /// The tuple as the value.
    fn value(self) -> Self::Value;
    /// The value as the tuple.
    fn of(value: Self::Value) -> Self;
}

macro_rules! lists {
    ($(($($name:ident),*) $value:ty, $list:pat => $of:expr, $found:pat => $back:expr;)*) => {$(
        #[allow(clippy::let_unit_value)]
        impl<$($name),*> List for ($($name,)*) {
            type Value = $value;
            #[inline]
            fn value(self) -> Self::Value {
                let $list = self;
                $of
            }
            #[inline]
            fn of(value: Self::Value) -> Self {
                let $found = value;
                $back
            }
        }

        impl<$($name: Marshal + for<'a> Unmarshal<'a>),*> Results for ($($name,)*) {
            type Value = $value;
            type Read = Self;
            type Written = Self;
            #[inline]
            fn receive<Error: From<Failure>>(read: Result<Self, Error>, _: &Object) -> Result<Self::Value, Error> {
                read.map(List::value)
            }
            #[inline]
            fn answer<Error>(yielded: Result<Self::Value, Error>) -> Result<Self, Error> {
                yielded.map(List::of)
            }
        }
    )*};
}

lists!(() (), list => list, list => list;);
lists!((A) A, (value,) => value, value => (value,););
macro_rules! tuple {
    ($only:ident 0) => {};
    ($($name:ident $index:tt),+) => {
        lists!(($($name),+) ($($name,)+), list => list, list => list;);
    };
}
crate::marshal::each_tuple!(tuple);

impl<R: Results> Results for Success<R>
where
    Success<R::Read>: for<'a> UnmarshalList<'a>,
    Success<R::Written>: MarshalList,
{
    type Value = Success<R::Value>;
    type Read = Success<R::Read>;
    type Written = Success<R::Written>;

    #[inline]
    fn receive<E: From<Failure>>(read: Result<Self::Read, E>, object: &Object) -> Result<Self::Value, E> {
        let Success { value, code } = read?;
        R::receive(Ok(value), object).map(|value| Success::with(code, value))
    }

    #[inline]
    fn answer<E>(yielded: Result<Self::Value, E>) -> Result<Self::Written, E> {
        let Success { value, code } = yielded?;
        R::answer(Ok(value)).map(|value| Success::with(code, value))
    }
}

/// The only result is a typed reference.
pub struct Narrow<I: ?Sized>(PhantomData<fn(&I)>);

impl<I: Remote + ?Sized> Results for Narrow<I> {
    type Value = Option<Ref<I>>;
    type Read = (Option<Reference>,);
    type Written = (Option<Ref<I>>,);

    #[inline]
    fn receive<E: From<Failure>>(read: Result<Self::Read, E>, object: &Object) -> Result<Self::Value, E> {
        Ok(object.narrow(read?.0)?)
    }

    #[inline]
    fn answer<E>(yielded: Result<Self::Value, E>) -> Result<Self::Written, E> {
        yielded.map(|value| (value,))
    }
}

/// Results of which not all are values to people, and the code of a success, where there is one.
pub trait Coded {
    /// What the method yields.
    type Value;
    /// The results that people see.
    type List;
    /// The code of the success, or nothing.
    type Code: Copy;
    /// All that travels, if `L` is the list of the results.
    type Wire<L>;
    /// The list and the code of what was read.
    fn open<L>(read: Self::Wire<L>) -> (L, Self::Code);
    /// What travels.
    fn close<L>(list: L, code: Self::Code) -> Self::Wire<L>;
    /// What the method yields.
    fn value(list: Self::List, code: Self::Code) -> Self::Value;
    /// What the method yielded.
    fn split(value: Self::Value) -> (Self::List, Self::Code);
}

impl<T: List> Coded for T {
    type Value = T::Value;
    type List = T;
    type Code = ();
    type Wire<L> = L;

    #[inline]
    fn open<L>(read: L) -> (L, ()) {
        (read, ())
    }
    #[inline]
    fn close<L>(list: L, (): ()) -> L {
        list
    }
    #[inline]
    fn value(list: T, (): ()) -> T::Value {
        list.value()
    }
    #[inline]
    fn split(value: T::Value) -> (T, ()) {
        (T::of(value), ())
    }
}

impl<T: List> Coded for Success<T> {
    type Value = Success<T::Value>;
    type List = T;
    type Code = i32;
    type Wire<L> = Success<L>;

    #[inline]
    fn open<L>(read: Success<L>) -> (L, i32) {
        (read.value, read.code)
    }
    #[inline]
    fn close<L>(list: L, code: i32) -> Success<L> {
        Success::with(code, list)
    }
    #[inline]
    fn value(list: T, code: i32) -> Success<T::Value> {
        Success::with(code, list.value())
    }
    #[inline]
    fn split(value: Success<T::Value>) -> (T, i32) {
        (T::of(value.value), value.code)
    }
}

/// A parameter that a method takes by reference.
pub trait Lent {
    /// What a skeleton reads for it; text may borrow from the message.
    type Read<'m>: Unmarshal<'m>;
    /// What the method gets.
    fn lend<'r>(read: &'r Self::Read<'_>) -> &'r Self;
}

impl Lent for str {
    type Read<'m> = Cow<'m, str>;

    #[inline]
    fn lend<'r>(read: &'r Cow<'_, str>) -> &'r str {
        read
    }
}

impl<T: for<'a> Unmarshal<'a>> Lent for [T] {
    type Read<'m> = Vec<T>;

    #[inline]
    fn lend(read: &Vec<T>) -> &[T] {
        read
    }
}

impl<T: for<'a> Unmarshal<'a>> Lent for T {
    type Read<'m> = T;

    #[inline]
    fn lend(read: &T) -> &T {
        read
    }
}

/// What a method gets for a parameter that it takes by reference.
#[inline]
pub fn lend<'r, T: Lent + ?Sized>(read: &'r T::Read<'_>) -> &'r T {
    T::lend(read)
}

/// What a method gets for a parameter that it takes by value.
#[inline]
pub fn own<T>(read: T) -> T {
    read
}

/// A trait whose references travel without their type.
pub trait Untyped {
    /// The reference that travels.
    type Reference;
}

impl<I: ?Sized> Untyped for I {
    type Reference = Option<Reference>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_up_to_sixty_four_parameters_and_results() {
        #[rustfmt::skip]
        type Many = (
            u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8,
            u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8,
            u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8,
            u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8,
        );
        fn travels<T: Results + MarshalList + for<'a> UnmarshalList<'a>>() -> usize {
            size_of::<T>()
        }
        assert_eq!(travels::<Many>(), 64);
    }
}
