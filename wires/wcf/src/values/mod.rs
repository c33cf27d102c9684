//! Neutral values as elements, the way DataContractSerializer maps them, in both forms of XML.
//!
//! The fields of the nameless struct become the children of a wrapper element, named by the operation. Structs nest
//! elements of their data namespace, in the order of the shape (WCF's is alphabetical, the base's first: the contract
//! says so too); sequences repeat an element named by their item; maps repeat `KeyValueOf...`; enumerations are the
//! names of their members; nothing is `i:nil`; characters are numbers; an alias of a type of XML Schema is text in its
//! notation, and a record of its type where Microsoft's serializer writes one. A union whose identity is in Clark
//! notation is a type with derived types (`i:type`); any other is a `discriminator` element, then the arm. In binary
//! form, sequences of booleans, 32- and 64-bit signed integers and floats are array records, whether they come by the
//! bulk lane or one by one.
//!
//! `layout` and `graph` are made once for an operation; `sink` writes values by them into an `output`,
//! `source` reads values from a `cursor`. Each of the two has files for what is not an element of its own
//! (`apart`), as XmlSerializer's contracts have it.

mod body_context;
mod codec;
mod cursor;
mod graph;
mod known;
mod layout;
mod names;
mod output;
mod quotas;
mod scalar;
mod sink;
mod source;

pub use body_context::{BINARY, BINARY_INSIDE, BodyContext, HeaderParameter, Naming, TEXT};
pub use codec::{NAME, XML, XmlCodec};
pub use everywire_idl::wsdl::names::QName;
pub use known::Types;
pub use layout::Layout;
pub(crate) use names::XSI;
pub use quotas::{Quota, ReaderQuotas};
pub(crate) use sink::write_rest;
pub use sink::{write_body, write_detail};

use bytes::Bytes;
use everywire_model::{Body, Budget, Context};

/// The form of XML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// .NET's binary XML (MC-NBFX).
    Binary,
    /// Text in UTF-8.
    Text,
}

/// A body that no envelope came with: a page as its bytes, or nothing.
pub(crate) fn bare(bytes: Bytes, budget: Budget) -> Body {
    Body {
        bytes,
        base: 0,
        little: true,
        dialect: TEXT,
        context: Context::default(),
        budget,
        codec: &XML,
        beside: None,
    }
}
