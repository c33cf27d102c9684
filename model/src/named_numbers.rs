//! Numbers of a protocol with the words that its specification has for them.

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
