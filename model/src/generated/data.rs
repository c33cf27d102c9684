//! Macros for the types of a contract: how they are marshalled, and what makes exceptions errors.
//!
//! The generator prints a type and its description, and calls one of these for all that follows from them: so
//! that generated files are short, and what they do is written once. `fields` is for structs,
//! `counted_fields` for those with counts that people do not see, `words` for those that are numbers of 32
//! bits alone; `members` is for enumerations, `numbers` for open ones, `arms` for unions, `exceptions` and `errors` for what an
//! operation may raise, `signals` for what an object emits, `guid` for the struct that is a GUID.
//!
//! Invariants of what they make.
//! * A value is written at the shape that is given, field by field in the order of the contract: `open`, each
//!   field at its own shape, `close`. It is read in the same order, so both sides follow from one list.
//! * A row of cells may go all at once (`row_of_cells!`); what arrives is the same as if it had gone cell by
//!   cell.
//! * A discriminator that selects no arm, or a member that no enumeration has, is a failure unless the
//!   contract has a place for it. Nothing panics on what a peer sends.
//! * Paths begin with `$crate` or `::std`, or are of the prelude, since the code stands in other people's
//!   crates.

/// A struct: its fields in the order of the contract; how it is laid out, if it is a row of cells.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_fields {
    ($name:ident { $($field:ident),* $(,)? } $(row { $($row:tt)* })?) => {
        $($crate::row_of_cells! { $name: $($row)* })?

        impl $crate::Marshal for $name {
            fn marshal<S: $crate::Sink + ?::core::marker::Sized>(&self, shape: &$crate::Shape, sink: &mut S) -> $crate::Visit<()> {
                const FIELDS: &[&str] = &[$(stringify!($field)),*];
                let mut _fields = shape.fields().iter();
                sink.open(shape, FIELDS.len())?;
                $($crate::Marshal::marshal(&self.$field, $crate::generated::next(&mut _fields), sink)?;)*
                sink.close(shape)
            }

            $($crate::__generated_put_rows! { $($row)* })?
        }

        impl<'a> $crate::Unmarshal<'a> for $name {
            fn unmarshal<S: $crate::Source<'a> + ?::core::marker::Sized>(
                shape: &$crate::Shape,
                source: &mut S,
            ) -> $crate::Visit<Self> {
                let mut _fields = shape.fields().iter();
                source.open(shape)?;
                let value = Self { $($field: $crate::Unmarshal::unmarshal($crate::generated::next(&mut _fields), source)?),* };
                source.close(shape)?;
                ::std::result::Result::Ok(value)
            }

            $($crate::__generated_take_rows! { $($row)* })?
        }
    };
}

/// In `impl Marshal` of a row of cells.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_put_rows {
    ($($row:tt)*) => {
        fn marshal_all<S: $crate::Sink + ?::core::marker::Sized>(
            items: &[Self],
            element: &$crate::Shape,
            sink: &mut S,
        ) -> $crate::Visit<()> {
            $crate::cells::put_all(items, element, sink)
        }
    };
}

/// In `impl Unmarshal` of a row of cells.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_take_rows {
    ($($row:tt)*) => {
        fn unmarshal_all<S: $crate::Source<'a> + ?::core::marker::Sized>(
            len: usize,
            element: &$crate::Shape,
            source: &mut S,
        ) -> $crate::Visit<::std::vec::Vec<Self>> {
            $crate::cells::take_all(len, element, source)
        }
    };
}

/// A struct of some counts that people do not see: all that travels, in order, and what to do before it is written and after it was read.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_counted_fields {
    ($name:ident { $($field:ident),* $(,)? }
        write ($($written:expr),* $(,)?) { $($before:tt)* }
        read ($($read:pat),* $(,)?) { $($after:tt)* }
    ) => {
        impl $crate::Marshal for $name {
            fn marshal<S: $crate::Sink + ?::core::marker::Sized>(&self, shape: &$crate::Shape, sink: &mut S) -> $crate::Visit<()> {
                const FIELDS: &[&str] = &[$(stringify!($written)),*];
                let Self { $($field),* } = self;
                $($before)*
                let mut _fields = shape.fields().iter();
                sink.open(shape, FIELDS.len())?;
                $($crate::Marshal::marshal(&$written, $crate::generated::next(&mut _fields), sink)?;)*
                sink.close(shape)
            }
        }

        impl<'a> $crate::Unmarshal<'a> for $name {
            fn unmarshal<S: $crate::Source<'a> + ?::core::marker::Sized>(
                shape: &$crate::Shape,
                source: &mut S,
            ) -> $crate::Visit<Self> {
                let mut _fields = shape.fields().iter();
                source.open(shape)?;
                $(let $read = $crate::Unmarshal::unmarshal($crate::generated::next(&mut _fields), source)?;)*
                source.close(shape)?;
                $($after)*
                ::std::result::Result::Ok(Self { $($field),* })
            }
        }
    };
}

/// A struct that is nothing but numbers of 32 bits: it travels in one go.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_words {
    ($name:ident { $($field:ident),* $(,)? } $(row { $($row:tt)* })?) => {
        $($crate::row_of_cells! { $name: $($row)* })?

        impl $crate::Marshal for $name {
            fn marshal<S: $crate::Sink + ?::core::marker::Sized>(&self, shape: &$crate::Shape, sink: &mut S) -> $crate::Visit<()> {
                sink.words(shape, &[$(self.$field),*])
            }

            $($crate::__generated_put_rows! { $($row)* })?
        }

        impl<'a> $crate::Unmarshal<'a> for $name {
            fn unmarshal<S: $crate::Source<'a> + ?::core::marker::Sized>(
                shape: &$crate::Shape,
                source: &mut S,
            ) -> $crate::Visit<Self> {
                const FIELDS: &[&str] = &[$(stringify!($field)),*];
                let mut words = [0; FIELDS.len()];
                source.words(shape, &mut words)?;
                let [$($field),*] = words;
                ::std::result::Result::Ok(Self { $($field),* })
            }

            $($crate::__generated_take_rows! { $($row)* })?
        }
    };
}

/// An enumeration: its description, and its members.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_members {
    ($name:ident: $described:path { $($member:ident),* $(,)? }) => {
        impl $crate::union::Discriminator for $name {
            fn label(self) -> i64 {
                self as i64
            }

            fn from_label(label: i64) -> ::std::option::Option<Self> {
                match label {
                    $(label if label == Self::$member as i64 => ::std::option::Option::Some(Self::$member),)*
                    _ => ::std::option::Option::None,
                }
            }
        }

        impl $crate::Marshal for $name {
            fn marshal<S: $crate::Sink + ?::core::marker::Sized>(&self, _: &$crate::Shape, sink: &mut S) -> $crate::Visit<()> {
                sink.enumerant(&$described, *self as i32)
            }
        }

        impl<'a> $crate::Unmarshal<'a> for $name {
            fn unmarshal<S: $crate::Source<'a> + ?::core::marker::Sized>(_: &$crate::Shape, source: &mut S) -> $crate::Visit<Self> {
                $crate::union::label(source.enumerant(&$described)?.into())
            }
        }
    };
}

/// An open enumeration, which is a number: its description.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_numbers {
    ($name:ident: $described:path) => {
        impl $crate::union::Discriminator for $name {
            fn label(self) -> i64 {
                self.0.into()
            }

            fn from_label(label: i64) -> ::std::option::Option<Self> {
                i32::try_from(label).ok().map(Self)
            }
        }

        impl ::std::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl ::std::ops::BitAnd for $name {
            type Output = Self;

            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }

        impl $crate::Marshal for $name {
            fn marshal<S: $crate::Sink + ?::core::marker::Sized>(
                &self,
                _: &$crate::Shape,
                sink: &mut S,
            ) -> $crate::Visit<()> {
                sink.enumerant(&$described, self.0)
            }
        }

        impl<'a> $crate::Unmarshal<'a> for $name {
            fn unmarshal<S: $crate::Source<'a> + ?::core::marker::Sized>(
                _: &$crate::Shape,
                source: &mut S,
            ) -> $crate::Visit<Self> {
                source.enumerant(&$described).map(Self)
            }
        }
    };
}

/// A union: its arms with their numbers, those that hold their discriminator as well, and the one for discriminators that select nothing.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_arms {
    ($name:ident { $($number:literal $arm:ident),* $(,)? }
        $(labelled { $($labelled_number:literal $labelled:ident),* $(,)? })?
        $(empty $empty:ident)?
    ) => {
        impl $crate::Marshal for $name {
            fn marshal<S: $crate::Sink + ?::core::marker::Sized>(&self, shape: &$crate::Shape, sink: &mut S) -> $crate::Visit<()> {
                match self {
                    $(Self::$arm(value) => $crate::union::put(shape, $number, value, sink),)*
                    $($(Self::$labelled(label, value) => {
                        $crate::union::put_labelled(shape, $labelled_number, *label, value, sink)
                    })*)?
                    $(Self::$empty(label) => $crate::union::put_empty(shape, *label, sink),)?
                }
            }
        }

        impl<'a> $crate::Unmarshal<'a> for $name {
            fn unmarshal<S: $crate::Source<'a> + ?::core::marker::Sized>(
                shape: &$crate::Shape,
                source: &mut S,
            ) -> $crate::Visit<Self> {
                let (_label, arm) = $crate::union::open(shape, source)?;
                let value = match arm {
                    $(::std::option::Option::Some($number) => {
                        Self::$arm($crate::Unmarshal::unmarshal($crate::union::arm(shape, $number), source)?)
                    })*
                    $($(::std::option::Option::Some($labelled_number) => Self::$labelled(
                        $crate::union::label(_label)?,
                        $crate::Unmarshal::unmarshal($crate::union::arm(shape, $labelled_number), source)?,
                    ),)*)?
                    $(::std::option::Option::None => Self::$empty($crate::union::label(_label)?),)?
                    #[allow(unreachable_patterns)]
                    _ => return Err($crate::union::foreign(shape)),
                };
                source.close(shape)?;
                ::std::result::Result::Ok(value)
            }
        }
    };
}

/// Structs that are exceptions, and their descriptions.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_exceptions {
    ($($name:ident: $described:path),* $(,)?) => {$(
        impl $crate::Exception for $name {
            fn shape() -> &'static $crate::Shape {
                const { &$crate::describe::structure(&$described) }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::write!(f, "{self:?}")
            }
        }

        impl ::std::error::Error for $name {}
    )*};
}

/// The error type of operations: the variants for exceptions. The one for a failure is always there.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_errors {
    ($name:ident { $($variant:ident($exception:ty)),* $(,)? }) => {
        $(impl ::std::convert::From<$exception> for $name {
            fn from(raised: $exception) -> Self {
                Self::$variant(raised)
            }
        })*

        impl ::std::convert::From<$crate::Failure> for $name {
            fn from(failure: $crate::Failure) -> Self {
                Self::Failure(failure)
            }
        }

        /// For functions that return a `Failure`: `?` makes a failure of an exception, whose code is the exception's identity.
        impl ::std::convert::From<$name> for $crate::Failure {
            fn from(error: $name) -> Self {
                match error {
                    $($name::$variant(raised) => $crate::object::as_failure(&raised),)*
                    $name::Failure(failure) => failure,
                }
            }
        }

        impl $crate::Raises for $name {
            fn raised(
                id: &str,
                body: &$crate::Body,
            ) -> ::std::option::Option<::std::result::Result<Self, $crate::Failure>> {
                $(if let ::std::option::Option::Some(raised) = $crate::object::raised::<$exception, _>(id, body) {
                    return ::std::option::Option::Some(raised);
                })*
                ::std::option::Option::None
            }

            fn answer(&self, give: &mut dyn FnMut($crate::Answer<'_>)) {
                match self {
                    $(Self::$variant(raised) => $crate::object::answer_raised(raised, give),)*
                    Self::Failure(failure) => failure.answer(give),
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self {
                    $(Self::$variant(raised) => ::std::fmt::Display::fmt(raised, f),)*
                    Self::Failure(failure) => ::std::fmt::Display::fmt(failure, f),
                }
            }
        }

        impl ::std::error::Error for $name {}
    };
}

/// The types of signals: the interface, its list of signals, and the number of each in it.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_signals {
    ($interface:path, $signals:path { $($number:literal $name:ident),* $(,)? }) => {$(
        impl $crate::TypedSignal for $name {
            fn interface() -> &'static $crate::Interface {
                &$interface
            }

            fn signal() -> &'static $crate::Signal {
                &$signals[$number]
            }

            fn read(body: &$crate::Body) -> ::std::result::Result<Self, $crate::Failure> {
                body.read(|source| $crate::Unmarshal::unmarshal(&Self::signal().fields, source))
            }

            fn write(&self, sink: &mut dyn $crate::Sink) -> $crate::Visit<()> {
                $crate::Marshal::marshal(self, &Self::signal().fields, sink)
            }
        }
    )*};
}

/// A struct that is a GUID: what makes one from a number, from an interface, from and to text.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_guid {
    ($name:ident) => {
        #[allow(dead_code)]
        impl $name {
            /// The GUID that is this number, its first digit the highest.
            pub const fn from_u128(value: u128) -> Self {
                let (data1, data2, data3, data4) = $crate::guid::split(value);
                Self { data1, data2, data3, data4 }
            }

            /// The identity of an interface.
            pub fn of<I: $crate::Remote + ?::core::marker::Sized>() -> Self {
                let (data1, data2, data3, data4) = $crate::guid::of::<I>();
                Self { data1, data2, data3, data4 }
            }

            /// The GUID that is written so, in braces or not.
            pub fn parse(text: &str) -> ::std::option::Option<Self> {
                let (data1, data2, data3, data4) = $crate::guid::parse(text)?;
                ::std::option::Option::Some(Self { data1, data2, data3, data4 })
            }

            /// The same reference, to be read as one to an object of the interface with this identity.
            #[doc(hidden)]
            pub fn identify(
                &self,
                found: ::std::option::Option<$crate::Reference>,
            ) -> ::std::option::Option<$crate::Reference> {
                let type_id = || $crate::guid::text((self.data1, self.data2, self.data3, self.data4));
                found.map(|found| $crate::Reference { type_id: type_id(), ..found })
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(&$crate::guid::text((self.data1, self.data2, self.data3, self.data4)))
            }
        }
    };
}

pub use crate::{
    __generated_arms as arms, __generated_counted_fields as counted_fields, __generated_errors as errors,
    __generated_exceptions as exceptions, __generated_fields as fields, __generated_guid as guid,
    __generated_members as members, __generated_numbers as numbers, __generated_signals as signals,
    __generated_words as words,
};
