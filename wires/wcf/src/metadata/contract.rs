//! The contract of WS-MetadataExchange as far as WCF has it: WS-Transfer's Get, whose answer is metadata.

use everywire_idl::wsdl::names::MARKUP;
use everywire_model::contract::Notes;
use everywire_model::shape::{Alias, Field, Name, Text};
use everywire_model::{Direction, Hold, Interface, Operation, Parameter, Shape};
use std::borrow::Cow;
use std::sync::OnceLock;

/// The namespace of metadata in messages.
pub(super) const EXCHANGE: &str = "http://schemas.xmlsoap.org/ws/2004/09/mex";

/// `IMetadataExchange`.
pub(super) fn interface() -> &'static Interface {
    static INTERFACE: OnceLock<Interface> = OnceLock::new();
    INTERFACE.get_or_init(|| Interface {
        name: Name::from("IMetadataExchange"),
        id: Name::from(format!("{{{EXCHANGE}}}IMetadataExchange")),
        operations: Cow::Owned(vec![get()]),
        ..Interface::default()
    })
}

/// It has no argument and one result, `mex:Metadata`, whose content is not typed: an alias of text that
/// stands for elements.
fn get() -> Operation {
    let markup =
        Alias { name: Name::from("xs::anyXML"), id: Name::from(MARKUP), target: Shape::Text(Text::NARROW) };
    let metadata = Field { name: Name::from("Metadata"), shape: Shape::Alias(Hold::new(markup)) };
    let metadata = Parameter { direction: Direction::Out, field: metadata };
    let mut get = Operation::new("Get", vec![metadata], Shape::Void);
    let note = |what: &'static str, value: &'static str| (Name::from(what), Name::from(value));
    get.notes = Notes::Owned(vec![
        note("wcf:action", "http://schemas.xmlsoap.org/ws/2004/09/transfer/Get"),
        note("wcf:reply", "http://schemas.xmlsoap.org/ws/2004/09/transfer/GetResponse"),
        note("wcf:bare", ""),
    ]);
    get
}
