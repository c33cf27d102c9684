//! Names and actions as a WCF contract has them: the wire and the contract language agree by this one place.
//!
//! A name with its namespace is written `{namespace}local` (Clark notation). What a contract says otherwise
//! stands in the notes of interfaces and operations: `wcf:action`, [`SOAP_ACTION`], `wcf:reply`, `wcf:request`,
//! `wcf:response`, `wcf:bare`, `wcf:fault:{namespace}Type`, `wcf:detail:{namespace}Type`, [`DERIVED`].
//!
//! The usual names are WCF's: an action is namespace, contract and operation, with `Response` for the reply;
//! a request is wrapped in an element called like the operation, a reply in one with `Response`. `declaring`
//! matters everywhere: an inherited operation keeps the names of the contract that declares it.

pub use super::builtin::{list as list_of, name as of_shape, number, pair as pair_of};

use everywire_model::contract::note;
use everywire_model::shape::{Name, Struct};
use everywire_model::{Interface, Operation, Shape};
use std::fmt::{self, Display, Formatter};

/// The namespace of contracts that have none of their own.
pub const TEMPURI: &str = "http://tempuri.org/";
/// XML Schema.
pub const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
/// Plain types that XML Schema lacks: `guid`, `char`, `duration`.
pub const SERIALIZATION: &str = "http://schemas.microsoft.com/2003/10/Serialization/";
/// Lists and dictionaries of plain types.
pub const ARRAYS: &str = "http://schemas.microsoft.com/2003/10/Serialization/Arrays";
/// What the namespace of data contracts begins with; the namespace of the program's types follows.
pub const DATA: &str = "http://schemas.datacontract.org/2004/07/";

/// The identity of the alias around a text that is XML: elements stand in its place, and not characters. XML Schema has no
/// name for that; no type of a schema is called so.
pub const MARKUP: &str = "{http://www.w3.org/2001/XMLSchema}anyXML";

/// The note with what bindings say in `soapAction`, where that is not the action; empty where they say nothing.
pub const SOAP_ACTION: &str = "wcf:soapAction";
/// The note with what the binding of one port says there, where it is not what the first one says; `SERVICE/PORT` stands behind it.
pub const PORT_ACTION: &str = "wcf:soapAction:";

/// The note on an exception that no fault declares: it extends the type of a declared detail, whose name the note has, and comes in
/// that one's element, by that one's action. `{namespace}Type` stands behind it.
pub const DERIVED: &str = "wcf:derived:";

/// A name and its namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct QName {
    /// The namespace; may be empty.
    pub namespace: String,
    /// The name in it.
    pub local: String,
}

impl QName {
    /// A name in a namespace.
    #[must_use]
    pub fn new(namespace: impl Into<String>, local: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), local: local.into() }
    }

    /// Reads Clark notation; what follows a semicolon (names of items) is no part of the name.
    ///
    /// ```
    /// use everywire_idl::wsdl::names::QName;
    /// let name = QName::parse("{urn:x}ArrayOfThing;item").unwrap();
    /// assert_eq!((name.namespace.as_str(), name.local.as_str()), ("urn:x", "ArrayOfThing"));
    /// assert_eq!(QName::parse("{http://{host}/}Thing").unwrap().namespace, "http://{host}/");
    /// assert_eq!(QName::parse("IDL:Thing:1.0"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // A namespace may have braces (`http://{host}/shop`), a name has none.
        let (namespace, local) = text.strip_prefix('{')?.rsplit_once('}')?;
        let local = local.split(';').next().unwrap_or_default();
        (!local.is_empty()).then(|| Self::new(namespace, local))
    }
}

impl Display for QName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}{}", self.namespace, self.local)
    }
}

/// Namespace and name of a service contract: its identity in Clark notation, else its identity in the language `wcf`, else
/// the last part of its name in [`TEMPURI`].
#[must_use]
pub fn contract(interface: &Interface) -> QName {
    let given = interface.identities.iter().filter(|(language, _)| language == "wcf").map(|(_, id)| id);
    std::iter::once(&interface.id)
        .chain(given)
        .find_map(|id| QName::parse(id))
        .unwrap_or_else(|| QName::new(TEMPURI, last_part(&interface.name)))
}

/// Namespace and name of a type: its identity in Clark notation, else by its scoped name, as data contracts are named.
#[must_use]
pub fn type_name(id: &str, scoped: &str) -> QName {
    QName::parse(id).unwrap_or_else(|| {
        let scope = scoped.rsplit_once("::").map_or("", |(scope, _)| scope).replace("::", ".");
        QName::new(format!("{DATA}{scope}"), last_part(scoped))
    })
}

/// What an operation is called in messages: its name, or where that is no name of XML (it holds a signature), its label.
#[must_use]
pub fn operation(operation: &Operation) -> &str {
    if is_name(&operation.name) { &operation.name } else { &operation.label }
}

/// The action of a request.
#[must_use]
pub fn action(interface: Option<&Interface>, asked: &Operation) -> String {
    match note(&asked.notes, "wcf:action") {
        Some(action) => action.to_owned(),
        None => usual_action(interface, asked),
    }
}

/// What SOAP 1.1 over HTTP says in `SOAPAction`: the action, unless a binding has another or none (WS-I Basic Profile 1.1,
/// R2744 and R2745).
#[must_use]
pub fn soap_action(interface: Option<&Interface>, asked: &Operation) -> String {
    note(&asked.notes, SOAP_ACTION).map_or_else(|| action(interface, asked), str::to_owned)
}

/// The action of a reply.
#[must_use]
pub fn reply_action(interface: Option<&Interface>, asked: &Operation) -> String {
    match note(&asked.notes, "wcf:reply") {
        Some(action) => action.to_owned(),
        None => usual_action(interface, asked) + "Response",
    }
}

/// The action of a fault with this detail.
#[must_use]
pub fn fault_action(interface: Option<&Interface>, asked: &Operation, detail: &Struct) -> String {
    let name = type_name(&detail.id, &detail.name);
    match note(&asked.notes, &format!("wcf:fault:{name}")) {
        Some(action) => action.to_owned(),
        None => format!("{}{}Fault", usual_action(interface, asked), name.local),
    }
}

/// The element that a fault's detail is: called like its type, unless a note has another.
#[must_use]
pub fn detail(asked: &Operation, detail: &Struct) -> QName {
    let name = type_name(&detail.id, &detail.name);
    note(&asked.notes, &format!("wcf:detail:{name}")).and_then(QName::parse).unwrap_or(name)
}

/// The declared detail whose type this exception extends, if it is no detail of its own ([`DERIVED`]).
#[must_use]
pub fn base_detail(asked: &Operation, detail: &Struct) -> Option<QName> {
    let name = type_name(&detail.id, &detail.name);
    note(&asked.notes, &format!("{DERIVED}{name}")).and_then(QName::parse)
}

/// The action that an operation has where its contract does not say: NAMESPACE/CONTRACT/OPERATION, of the contract that
/// declares it.
#[must_use]
pub fn usual_action(interface: Option<&Interface>, asked: &Operation) -> String {
    let name = operation(asked);
    match interface {
        Some(interface) => {
            let of = contract(interface.declaring(&asked.name));
            join(&of.namespace, &of.local, name)
        }
        None => format!("{TEMPURI}{name}"),
    }
}

/// `namespace/contract/operation`; `urn:contract/operation` where the namespace is empty.
#[must_use]
pub fn join(namespace: &str, contract: &str, operation: &str) -> String {
    match namespace {
        "" => format!("urn:{contract}/{operation}"),
        ended if ended.ends_with('/') => format!("{ended}{contract}/{operation}"),
        other => format!("{other}/{contract}/{operation}"),
    }
}

/// The action of a message of which a description says none (WS-Addressing 1.0 Metadata, 4.4.4): by its name in the port type.
#[must_use]
pub fn default_action(namespace: &str, port_type: &str, message: &str) -> String {
    let delimiter = if namespace.starts_with("urn:") { ':' } else { '/' };
    let namespace = namespace.strip_suffix(delimiter).unwrap_or(namespace);
    format!("{namespace}{delimiter}{port_type}{delimiter}{message}")
}

/// The element around a request's parameters; `None` where they stand alone.
#[must_use]
pub fn request_wrapper(interface: Option<&Interface>, asked: &Operation) -> Option<QName> {
    wrapper(interface, asked, "wcf:request", "")
}

/// The element around a reply's parameters; `None` where they stand alone.
#[must_use]
pub fn response_wrapper(interface: Option<&Interface>, asked: &Operation) -> Option<QName> {
    wrapper(interface, asked, "wcf:response", "Response")
}

/// The element around a request's or a reply's parameters: by the note `what`, else by the operation's name
/// with `suffix`.
fn wrapper(interface: Option<&Interface>, asked: &Operation, what: &str, suffix: &str) -> Option<QName> {
    if note(&asked.notes, "wcf:bare").is_some() {
        return None;
    }
    Some(note(&asked.notes, what).and_then(QName::parse).unwrap_or_else(|| {
        let local = format!("{}{suffix}", operation(asked));
        QName::new(namespace(interface, asked), local)
    }))
}

/// The namespace of the parameters inside the wrapper of a request, or of a reply: the wrapper's, unless a note
/// (`wcf:members:request`, `wcf:members:response`) has another. Parts of messages have no namespace (WS-I Basic Profile 1.1,
/// R2735).
#[must_use]
pub fn members(interface: Option<&Interface>, asked: &Operation, reply: bool) -> String {
    if note(&asked.notes, "wcf:style") == Some("rpc") {
        return String::new();
    }
    let what = if reply { "wcf:members:response" } else { "wcf:members:request" };
    let wrapper = if reply { response_wrapper(interface, asked) } else { request_wrapper(interface, asked) };
    match (note(&asked.notes, what), wrapper) {
        (Some(namespace), _) => namespace.to_owned(),
        (None, Some(wrapper)) => wrapper.namespace,
        (None, None) => namespace(interface, asked),
    }
}

/// The namespace of an operation's elements: that of the contract that declares it.
#[must_use]
pub fn namespace(interface: Option<&Interface>, asked: &Operation) -> String {
    interface.map_or_else(|| TEMPURI.to_owned(), |of| contract(of.declaring(&asked.name)).namespace)
}

/// The element of an operation's return value.
#[must_use]
pub fn result_element(asked: &Operation) -> String {
    format!("{}Result", operation(asked))
}

/// The type of XML Schema or of .NET's serializer that contracts call so, and that the model carries as another one: its values
/// are text in its notation. None for others.
///
/// ```
/// use everywire_idl::wsdl::names::{of_shape, plain_type};
/// let decimal = plain_type("xs::decimal").unwrap();
/// assert_eq!(of_shape(&decimal).to_string(), "{http://www.w3.org/2001/XMLSchema}decimal");
/// assert!(plain_type("xs::int").is_none() && plain_type("decimal").is_none());
/// ```
#[must_use]
pub fn plain_type(word: &str) -> Option<Shape> {
    let (scope, local) = word.split_once("::")?;
    let namespace = match scope {
        "xs" => SCHEMA,
        "ser" => SERIALIZATION,
        _ => return None,
    };
    let found = super::builtin::find(&QName::new(namespace, local))?.shape;
    matches!(&found, Shape::Alias(alias) if alias.name == word).then_some(found)
}

/// The part of a scoped name after the last `::`.
#[must_use]
pub fn last_part(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// Whether XML Namespaces (NCName) have this name.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && letters.all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '\u{b7}'))
}

/// A scoped name for what a namespace holds: data contracts and plain names have an obvious one; of other namespaces the
/// last part that begins with a letter is the scope. Different names may become one; the caller makes them
/// unique.
pub(super) fn scoped(name: &QName) -> Name {
    let local = identifier(&name.local);
    let scope = match name.namespace.strip_prefix(DATA) {
        Some(clr) => clr.split('.').filter(|part| !part.is_empty()).map(identifier).collect(),
        None if name.namespace == TEMPURI || name.namespace.is_empty() => Vec::new(),
        None if name.namespace == SCHEMA => vec!["xs".to_owned()],
        None if name.namespace == SERIALIZATION => vec!["ser".to_owned()],
        None => name
            .namespace
            .split(['/', ':', '#', '?'])
            .rfind(|part| part.starts_with(|c: char| c.is_alphabetic()))
            .map(identifier)
            .into_iter()
            .collect(),
    };
    Name::from(scope.into_iter().chain([local]).collect::<Vec<String>>().join("::"))
}

/// Letters, digits and `_` only, no digit first.
pub(super) fn identifier(text: &str) -> String {
    let mut out: String = text.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    if !out.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        out.insert(0, '_');
    }
    out
}
