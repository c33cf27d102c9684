//! The WCF wire; for now its value codec, .NET binary XML (MC-NBFX, MC-NBFS, MC-NBFSE).
//!
//! Three layers: [`nbfx`] reads and writes records, [`dictionary`] holds the words that records refer to by number,
//! [`values`] maps neutral values to elements as DataContractSerializer does. Not supported: references to objects,
//! operating-system handles, structs inside values that carry their own type, `z:Ref` graphs.

#![forbid(unsafe_code)]

pub mod dictionary;
pub mod limits;
pub mod nbfx;
pub mod values;
pub mod violations;

pub use values::{BINARY_XML, BinaryXml, BinaryXmlSink, BinaryXmlSource, Layout};
pub use violations::Violation;
