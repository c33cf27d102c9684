//! Neutral values as elements, the way DataContractSerializer maps them.
//!
//! The fields of the nameless struct become the children of a wrapper element, named by the operation. Structs nest
//! elements of their data namespace, in the order of the shape (WCF's is alphabetical: the contract must say so too);
//! sequences repeat an element named by their item; maps repeat `KeyValueOf...`; enumerations are the names of their
//! members; nothing is `i:nil`; characters are numbers. NBFX has no unions: one is a `discriminator` element, then the
//! arm. Sequences of booleans, 32- and 64-bit signed integers and floats are array records, whether they come by the
//! bulk lane or one by one.

mod names;
mod scalar;
mod sink;
mod source;

pub use sink::BinaryXmlSink;
pub use source::BinaryXmlSource;

use crate::dictionary::{Incoming, Outgoing};
use everywire_model::visit::{Sink, Source, Visit};
use everywire_model::{Body, Budget, Codec};
use std::sync::OnceLock;

/// What the neutral shapes do not say: the names around the values.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Name of the element around the arguments or results (`Op`, `OpResponse`); when reading, empty accepts any.
    pub wrapper: String,
    /// Namespace of the contract.
    pub namespace: String,
    /// Name of the element of the field `return` (`OpResult`); when reading, empty accepts any `...Result`.
    pub result: String,
    /// Namespace of the type with this scoped name.
    pub data_namespace: fn(&str) -> String,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            wrapper: String::new(),
            namespace: "http://tempuri.org/".into(),
            result: String::new(),
            data_namespace: names::clr_namespace,
        }
    }
}

impl Layout {
    /// The layout of an operation's arguments.
    pub fn arguments(operation: &str, namespace: &str) -> Self {
        Self { wrapper: operation.into(), namespace: namespace.into(), ..Self::default() }
    }

    /// The layout of an operation's results.
    pub fn results(operation: &str, namespace: &str) -> Self {
        let (wrapper, result) = (format!("{operation}Response"), format!("{operation}Result"));
        Self { wrapper, namespace: namespace.into(), result, ..Self::default() }
    }

    /// The same layout with other namespaces of types.
    #[must_use]
    pub fn with_data_namespace(mut self, data_namespace: fn(&str) -> String) -> Self {
        self.data_namespace = data_namespace;
        self
    }
}

/// [`Body::dialect`] of a body whose bytes are an element that needs no session word.
pub const PLAIN: u32 = 0;

/// [`Body::dialect`] of a body whose bytes begin with the table of the session's words, as an envelope does.
pub const WITH_TABLE: u32 = 1;

/// The codec of message bodies: the wrapper element with everything in it.
#[derive(Debug, Clone, Copy, Default)]
pub struct BinaryXml;

/// The codec, for [`Body::codec`].
pub static BINARY_XML: BinaryXml = BinaryXml;

impl Codec for BinaryXml {
    fn read<'a>(&self, body: &'a Body, visit: &mut dyn FnMut(&mut dyn Source<'a>) -> Visit<()>) -> Visit<()> {
        static ANY: OnceLock<Layout> = OnceLock::new();
        let layout = ANY.get_or_init(Layout::default);
        let mut words = Incoming::default();
        let element = match body.dialect {
            WITH_TABLE => words.receive(&body.bytes)?,
            _ => &body.bytes,
        };
        visit(&mut BinaryXmlSource::new(element, &words, layout, body.budget).within(&body.bytes))
    }

    fn write(&self, visit: &mut dyn FnMut(&mut dyn Sink) -> Visit<()>) -> Visit<Body> {
        let mut words = Outgoing::statics();
        let layout = Layout { wrapper: "Values".into(), result: "Result".into(), ..Layout::default() };
        let mut sink = BinaryXmlSink::new(&layout, &mut words);
        visit(&mut sink)?;
        Ok(body(sink.into_bytes()?, None, Budget::default()))
    }
}

/// A body that can be read without its session: with the session's words before the element, if there are any.
pub fn body(element: Vec<u8>, words: Option<&Incoming>, budget: Budget) -> Body {
    let (bytes, dialect) = match words.filter(|words| !words.is_empty()) {
        Some(words) => {
            let table = words.table();
            let mut bytes = Vec::with_capacity(element.len() + table.len() + 5);
            crate::nbfx::integer::put(table.len(), &mut bytes);
            bytes.extend_from_slice(&table);
            bytes.extend_from_slice(&element);
            (bytes, WITH_TABLE)
        }
        None => (element, PLAIN),
    };
    Body {
        bytes: bytes.into(),
        base: 0,
        little: true,
        dialect,
        budget,
        codec: &BINARY_XML,
        context: bytes::Bytes::new(),
        beside: None,
    }
}
