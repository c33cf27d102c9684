//! Numbers and variants of a protocol with the words that its specification has for them.

/// Declares constants from a table, `NAME = 1 "Word";` in each row, and the function `word` that tells the word of a number. The last row
/// is what it says of all others.
#[doc(hidden)]
#[macro_export]
macro_rules! named_numbers {
    ($type:ty { $($(#[$doc:meta])* $name:ident = $number:literal $word:literal;)+ _ => $other:literal; }) => {
        $($(#[$doc])* pub const $name: $type = $number;)+

        /// The specification's word.
        pub fn word(number: $type) -> &'static str {
            match number { $($number => $word,)+ _ => $other }
        }
    };
}

/// Declares an enumeration from a table, `Variant "word",` in each row: with all variants (`ALL`), the word of each (`word`) and the
/// variant of a word (`of_word`). With a type of numbers behind the name of the enumeration a row is `Variant = 1 "word",`, and there
/// is the variant of a number, too (`of_number`).
#[doc(hidden)]
#[macro_export]
macro_rules! named_variants {
    (
        $(#[$attribute:meta])*
        $vis:vis enum $name:ident: $number:ident {
            $($(#[$doc:meta])* $variant:ident = $value:literal $word:expr,)+
        }
    ) => {
        $crate::named_variants! {
            $(#[$attribute])*
            #[repr($number)]
            $vis enum $name { $($(#[$doc])* $variant = $value $word,)+ }
        }

        impl $name {
            /// The variant of a number.
            #[inline]
            $vis fn of_number(number: $number) -> Option<Self> {
                match number { $($value => Some(Self::$variant),)+ _ => None }
            }
        }
    };
    (
        $(#[$attribute:meta])*
        $vis:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident $(= $value:literal)? $word:expr,)+ }
    ) => {
        $(#[$attribute])*
        $vis enum $name { $($(#[$doc])* $variant $(= $value)?),+ }

        #[allow(dead_code)]
        impl $name {
            /// All of them, in their order.
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word for it.
            $vis fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The variant of a word.
            $vis fn of_word(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|variant| variant.word() == word)
            }
        }
    };
}
