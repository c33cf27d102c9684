//! JSON for values whose shape a contract gives.
//!
//! | shape | JSON |
//! |---|---|
//! | numbers | numbers, exact to the last digit; `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | octets | `{"base64": "..."}`; read also: an array of numbers, `{"hex": "..."}`, text |
//! | enum | the member's name |
//! | struct | an object; one without names a list, read also: `{"field_1": ...}` |
//! | union | `{"discriminator": ..., "arm": value}`; read also with the arm's own name for `arm` |
//! | map | an object where keys are text, names, numbers or booleans, else an array of pairs; both are read |
//! | optional value, pointer | the value, or `null` |
//! | any | `{"shape": "i32", "value": 1}`, the shape a word, the name of a type of the contract or a description; read also: plain text, numbers, booleans |
//! | type code | the shape as in an any; `null` for none; one that is only passed on: `{"kind": "valuetype", ..., "encoded": {"base64": "..."}}` |
//! | object reference | its text, or `null` |
//! | date, currency, decimal number, UUID, file time, by the names of their types | text, such as `"2003-01-31T12:30:00"`, `"12.5"` |
//! | handle | `{"handle": "FILE"}`: read, it opens the file for reading, where that is allowed ([`Notation::opens_files`]) |

mod described;
mod kinds;
mod pass;
#[cfg(test)]
mod pass_tests;
mod read;
mod spelled;
mod strict;
mod template;
#[cfg(test)]
mod tests;
mod types;
mod write;

pub use kinds::is_nameless;
pub use pass::LimitedText;
pub(crate) use read::optional;
pub use read::{JsonMismatch, read, read_word};
pub use strict::parse;
pub use template::template;
pub use types::{NodeNotation, Types};
pub use write::{Written, discriminator, file_of, held, word, write};

use everywire::{Failure, Node, Reference};
use everywire_model::Shape;

/// Reads and writes references: values contain them as text. It also says which types words may name, and
/// whether files may be opened.
pub trait Notation {
    /// From text in any notation.
    fn parse(&self, text: &str) -> Result<Reference, Failure>;
    /// To the notation that foreign programs read.
    fn print(&self, reference: &Reference) -> String;
    /// The type that a contract calls so.
    fn named(&self, word: &str) -> Option<Shape> {
        self.types().named(word)
    }
    /// The types of the contract.
    fn types(&self) -> Types {
        Types::default()
    }
    /// Whether JSON may name files of this machine, which are opened or read: where strangers write the JSON it must not.
    fn opens_files(&self) -> bool {
        false
    }
}

impl Notation for Node {
    fn parse(&self, text: &str) -> Result<Reference, Failure> {
        (**self).parse(text)
    }

    fn print(&self, reference: &Reference) -> String {
        (**self).print(reference)
    }
}
