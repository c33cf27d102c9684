//! Contracts to WSDL.
//!
//! Two uses: a contract as a file, where the first thing that cannot be said is an error; and what a running
//! service says of itself, where such a thing is left out and named.
//!
//! A description has one target namespace, so interfaces are put into documents by theirs; the first holds
//! all schemas and imports the others. For each operation `messages` makes messages and their elements,
//! `types` and `members` the types that these need, `bindings` what each endpoint says. The parts come
//! together in `Elements` (one document) and `Schemas` (all types).
//!
//! Invariants: two different things never have one name in the output; the second is refused with a reason.
//! Types are defined once, and what is printed is read back as the same contract, so that our own clients can
//! use it.

mod bindings;
mod elements;
mod families;
mod members;
mod messages;
mod paper;
mod plain;
mod sayable;
mod schemas;
mod types;

use super::names::{self, QName};
use super::ports::Port;
use crate::unprintable::Unprintable;
use crate::xml::escape;
use bindings::Bindings;
use elements::Elements;
use everywire_model::contract::note;
use everywire_model::{Contract, Definition, Hold, Interface, Shape};
use families::Families;
use messages::{Messages, Method};
use sayable::CheckedTypes;
use schemas::Schemas;
use std::collections::{BTreeMap, HashSet};

/// What metadata is wrapped in (WS-MetadataExchange).
pub(super) const EXCHANGE: &str = "http://schemas.xmlsoap.org/ws/2004/09/mex";
/// The name of the language in messages.
const LANGUAGE: &str = "WSDL";

/// What is printed, as documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// Descriptions by their target namespace, in the order of the interfaces. The first holds all types.
    pub documents: Vec<(String, String)>,
    /// The schemas in it, each as a document of its own, by their namespace.
    pub schemas: Vec<(String, String)>,
    /// Members that were left out, and why; empty where that is a mistake.
    pub left_out: Vec<Unprintable>,
}

impl Description {
    /// Everything as one document: the description, or where there are several, all of them as metadata sections.
    #[must_use]
    pub fn whole(&self) -> String {
        match self.documents.as_slice() {
            [(_, one)] => one.clone(),
            several => {
                let sections = self::sections(several);
                format!("{HEAD}<wsx:Metadata xmlns:wsx=\"{EXCHANGE}\">\n{sections}</wsx:Metadata>\n")
            }
        }
    }

    /// The sections of an answer to a metadata request, without an element around them.
    #[must_use]
    pub fn sections(&self) -> String {
        sections(&self.documents)
    }
}

/// The declaration of a document; it is left out inside of another one.
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n";

/// One section of metadata for each document.
fn sections(documents: &[(String, String)]) -> String {
    let mut out = String::new();
    for (namespace, document) in documents {
        out.push_str(&format!("<wsx:MetadataSection xmlns:wsx=\"{EXCHANGE}\" xmlns=\"\" "));
        out.push_str("Dialect=\"http://schemas.xmlsoap.org/wsdl/\" Identifier=\"");
        escape(namespace, &mut out);
        out.push_str("\">\n");
        out.push_str(document.strip_prefix(HEAD).unwrap_or(document));
        out.push_str("</wsx:MetadataSection>\n");
    }
    out
}

/// A whole contract; strict. Endpoints come from the notes of the interfaces.
pub(super) fn contract(contract: &Contract) -> Result<String, Unprintable> {
    let interfaces: Vec<&Interface> = contract.interfaces().map(|interface| &**interface).collect();
    let mut types = Vec::new();
    for definition in &contract.definitions {
        match definition {
            Definition::Type(shape) => types.push(shape.clone()),
            Definition::Exception(exception) => types.push(Shape::Struct(exception.clone())),
            Definition::Constant(_) | Definition::Interface(_) => {}
        }
    }
    let noted = |interface: &Interface| {
        let ports = interface.notes.iter().filter(|(what, _)| what == "wcf:port");
        ports.map(|(_, text)| Port::parse(text)).collect()
    };
    let mut description = describe(&interfaces, &types, &noted);
    match description.left_out.is_empty() {
        true => Ok(description.whole()),
        false => Err(description.left_out.swap_remove(0)),
    }
}

/// Interfaces, types beside those that they use, and where each interface is served. The order of the
/// interfaces decides the order of the documents.
pub(super) fn describe(
    interfaces: &[&Interface],
    types: &[Shape],
    ports: &dyn Fn(&Interface) -> Vec<Port>,
) -> Description {
    let families = Families::of(types, interfaces);
    let mut schemas = Schemas::new(&families);
    let mut left_out = Vec::new();
    let plain = plain::details(interfaces);
    for shape in types {
        if matches!(shape, Shape::Struct(detail) if plain.contains(&detail.id)) {
            continue;
        }
        let told = CheckedTypes::default().shape(shape).and_then(|()| schemas.define(shape));
        if let Err(reason) = told {
            left_out.push(Unprintable { language: LANGUAGE, place: shape.noun().into_owned(), reason });
        }
    }
    // Interfaces that clients implement are printed with those that call them.
    let callbacks: HashSet<String> = interfaces
        .iter()
        .filter_map(|interface| note(&interface.notes, "wcf:callback"))
        .map(str::to_owned)
        .chain(
            interfaces
                .iter()
                .flat_map(|i| i.signals.iter())
                .filter_map(|s| Some(s.sink.as_ref()?.0.id.to_string())),
        )
        .collect();
    let mut documents: BTreeMap<usize, (String, Elements)> = BTreeMap::new();
    let (mut spaces, mut taken): (Vec<String>, HashSet<QName>) = (Vec::new(), HashSet::new());
    for interface in interfaces.iter().filter(|interface| !callbacks.contains(interface.id.as_ref())) {
        let name = names::contract(interface);
        if !names::is_name(&name.local) || !taken.insert(name.clone()) {
            left_out.push(Unprintable {
                language: LANGUAGE,
                place: interface.name.to_string(),
                reason: if names::is_name(&name.local) {
                    format!("another interface is named {name} too")
                } else {
                    format!("`{}` is no name of XML", name.local)
                },
            });
            continue;
        }
        let at = spaces.iter().position(|space| *space == name.namespace).unwrap_or_else(|| {
            spaces.push(name.namespace.clone());
            spaces.len() - 1
        });
        let (_, elements) =
            documents.entry(at).or_insert_with(|| (name.namespace.clone(), Elements::default()));
        let mut messages = Messages { schemas: &mut schemas, elements, contract: &name };
        let mut methods = Vec::new();
        for (index, operation) in interface.operations.iter().enumerate() {
            print(&mut messages, Method::call(interface, index, operation), &mut methods, &mut left_out);
        }
        for method in callbacks_of(interface, interfaces) {
            print(&mut messages, method, &mut methods, &mut left_out);
        }
        elements.port_type(&name, interface, &methods);
        Bindings { elements, contract: &name, methods: &methods }.print(&ports(interface));
    }
    let schemas = schemas.finish();
    if documents.is_empty() {
        documents.insert(0, (names::TEMPURI.to_owned(), Elements::default()));
    }
    let imports: Vec<&str> = spaces.iter().skip(1).map(String::as_str).collect();
    let documents = documents
        .into_iter()
        .map(|(at, (space, elements))| {
            let (types, imports) =
                if at == 0 { (schemas.as_slice(), imports.as_slice()) } else { (&[][..], &[][..]) };
            (space.clone(), HEAD.to_owned() + &elements.finish(&space, types, imports))
        })
        .collect();
    let schemas = schemas.into_iter().map(|(space, text)| (space, HEAD.to_owned() + &text)).collect();
    Description { documents, schemas, left_out }
}

/// Prints one operation, or notes why it cannot be said.
fn print(
    messages: &mut Messages<'_, '_>,
    method: Method<'_>,
    methods: &mut Vec<messages::PrintedOperation>,
    left_out: &mut Vec<Unprintable>,
) {
    match messages.print(&method) {
        Ok(printed) => methods.push(printed),
        Err(reason) => left_out.push(Unprintable {
            language: LANGUAGE,
            place: format!("{}.{}", method.interface.name, method.operation.label),
            reason,
        }),
    }
}

/// The calls that an object of the interface makes: the operations of its callback contract, and signals that
/// are none. A note names the contract; without one, the first signal with a sink tells.
fn callbacks_of<'i>(interface: &'i Interface, all: &[&'i Interface]) -> Vec<Method<'i>> {
    let mut methods = Vec::new();
    let noted = note(&interface.notes, "wcf:callback")
        .and_then(|id| all.iter().find(|candidate| candidate.id == id).copied());
    let sink = || interface.signals.iter().find_map(|signal| Some(&*signal.sink.as_ref()?.0));
    let callback: Option<&Interface> = noted.or_else(sink);
    if let Some(callback) = callback {
        let told = |index: usize| {
            let is = |(sink, at): &(Hold<Interface>, usize)| sink.id == callback.id && *at == index;
            interface.signals.iter().any(|signal| signal.sink.as_ref().is_some_and(is))
        };
        let operations = callback.operations.iter().enumerate();
        methods.extend(
            operations
                .map(|(index, operation)| Method::callback(interface, callback, operation, told(index))),
        );
    }
    for signal in interface.signals.iter().filter(|signal| {
        let here =
            |callback: &Interface| signal.sink.as_ref().is_some_and(|(sink, _)| sink.id == callback.id);
        !callback.is_some_and(here)
    }) {
        methods.push(Method::signal(interface, signal));
    }
    methods
}
