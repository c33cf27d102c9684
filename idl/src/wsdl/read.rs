//! Documents to a contract.
//!
//! The order matters. All documents are parsed and their namespaces resolved first; then all schemas are
//! entered by name; then all types are read, whether or not an operation uses them; then port types become
//! interfaces. A part that is not defined anywhere is a doubt: what needs it is left out with a note, and it
//! becomes a mistake only when no operation at all is left.
//!
//! Where two documents define one name, the first counts, since services publish the same schema several
//! times.

use super::cells;
use super::limits::{ADOPTED, BYTES, DOCUMENTS, IMPORTS, REMARKS, ROUNDS};
use super::names::{QName, SCHEMA};
use super::ports::{self, Port};
use super::schema::Schemas;
use super::services::Services;
use super::tree::{Node, WSDL};
use super::types::{BrokenTypes, Types};
use crate::diagnostics::Diagnostics;
use crate::report::{Problem, Report};
use crate::xml::{self, Element};
use everywire_model::contract::Notes;
use everywire_model::shape::Name;
use everywire_model::{Contract, Definition, Hold, Interface};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Documents that were given together, as (name, text).
pub(super) fn documents(documents: &[(String, String)]) -> Result<Contract, Diagnostics> {
    let mut report = Report::default();
    let contract = contract(documents, &mut report);
    match contract {
        Some(contract) if !report.failed() => Ok(contract),
        _ => Err(report.finish()),
    }
}

/// The contract; None after a mistake. It may also come with mistakes in the report, and must not be used
/// then.
fn contract(documents: &[(String, String)], report: &mut Report) -> Option<Contract> {
    let bytes: usize = documents.iter().map(|(_, text)| text.len()).sum();
    if documents.len() > DOCUMENTS || bytes > BYTES {
        let file = report.add_file("the description", Arc::from(""));
        let span = crate::report::Span { file, ..Default::default() };
        let message = format!("more than {DOCUMENTS} documents, or {} MiB", BYTES >> 20);
        report.add(Problem::new(span, message));
        return None;
    }
    let mut roots: Vec<Element<'_>> = Vec::new();
    for (name, text) in documents {
        let file = report.add_file(name, Arc::from(text.as_str()));
        roots.push(xml::parse_untyped(text, file, report)?);
    }
    let mut nodes: Vec<Node<'_>> = roots.iter().map(|root| Node::of(root, report)).collect::<Option<_>>()?;
    // A schema without a namespace is in that of each schema which includes it, so it is read once for each.
    let mut copied = 0;
    for (root, namespace) in adopted(documents, &roots, &nodes) {
        copied += Node::count(root);
        if copied > ADOPTED {
            let message = "this schema without a namespace is included by too many schemas";
            report.add(Problem::new(root.span, message));
            return None;
        }
        nodes.push(Node::adopted(root, namespace, report)?);
    }
    let mut definitions = Vec::new();
    for node in &nodes {
        find(node, &mut definitions);
    }
    if definitions.is_empty() {
        let node = nodes.first()?;
        let message = format!("the file is about {}, not about a service", xml::shown(node.local));
        report.add(Problem::new(node.span(), message).expected(["`<definitions>` of WSDL 1.1"]));
        return None;
    }
    let mut schemas = Schemas::default();
    for node in &nodes {
        schemas.add(node);
    }
    let mut undeclared = BTreeSet::new();
    nodes.iter().for_each(|node| node.undeclared(REMARKS, &mut undeclared));
    let ports = ports::read(&definitions, report);
    let mut torn = BrokenTypes::new();
    for _ in 0..ROUNDS {
        // Another content has other cells.
        let origin = cells::origin(&(documents, &torn));
        let mut types = Types::new(&schemas, origin, &torn, report);
        undeclared.iter().for_each(|remark| types.remark(remark.clone()));
        let contract = assembled(&definitions, &ports, &mut types);
        let more = std::mem::take(&mut types.torn);
        if more.is_empty() || report.failed() {
            return contract;
        }
        torn.extend(more);
        report.forget_doubts();
    }
    let node = nodes.first()?;
    report.add(Problem::new(node.span(), "too many types contain one another and cannot be read"));
    None
}

/// The contract of the definitions, with the types that are read here.
fn assembled<'n, 't>(
    definitions: &[&'n Node<'t>],
    ports: &HashMap<QName, Vec<Port>>,
    types: &mut Types<'n, 't, '_>,
) -> Option<Contract> {
    types.all();
    let mut services = Services::new(definitions, types);
    let (mut interfaces, mut seen) = (Vec::new(), HashSet::new());
    for document in definitions {
        let target = document.get("targetNamespace").unwrap_or_default();
        for port_type in document.all("portType") {
            let id = QName::new(target, port_type.get("name").unwrap_or_default());
            // Forms of HTTP have port types of their own beside those for messages.
            if !seen.insert(id.clone()) || services.is_of_forms(&id) {
                continue;
            }
            let ports = ports.get(&id).map(Vec::as_slice).unwrap_or_default();
            if let Some(service) = services.service(target, port_type, ports) {
                interfaces.extend(service.callback);
                interfaces.push(service.interface);
            }
        }
    }
    let exceptions = std::mem::take(&mut services.exceptions);
    let usable = |interface: &Hold<Interface>| !interface.operations.is_empty();
    if !interfaces.iter().any(usable) && types.report.take_doubts() {
        return None;
    }
    let mut contract = Contract::default();
    let mut typed = HashSet::new();
    for (name, definition) in std::mem::take(&mut types.definitions) {
        // A type that some fault carries is an exception in the contract.
        let raised = exceptions.iter().find(|(exception, _)| *exception == name);
        contract.definitions.push(match (raised, &definition) {
            (Some((_, exception)), Definition::Type(everywire_model::Shape::Struct(_))) => {
                Definition::Exception(exception.clone())
            }
            _ => definition,
        });
        typed.insert(name);
    }
    // A detail that is no type of its own, as a text alone, is an exception all the same.
    let others = exceptions.iter().filter(|(name, _)| !typed.contains(name));
    contract.definitions.extend(others.map(|(_, detail)| Definition::Exception(detail.clone())));
    let remarks = std::mem::take(&mut types.remarks);
    let (bytes, mut given) = (remarks.iter().map(String::len).sum::<usize>(), 0);
    contract.definitions.extend(interfaces.into_iter().map(|one| {
        given += bytes;
        Definition::Interface(if given <= BYTES { remarked(one, &remarks) } else { one })
    }));
    Some(contract)
}

/// Schemas without a namespace of their own, each with the namespaces of those that include it. Documents are told apart by
/// the last part of their names, which is all that is known of pages. At most `DOCUMENTS` of them.
fn adopted<'t>(
    documents: &[(String, String)],
    roots: &'t [Element<'t>],
    nodes: &[Node<'t>],
) -> Vec<(&'t Element<'t>, &'t str)> {
    let mut included = Vec::new();
    for ((name, _), node) in documents.iter().zip(nodes) {
        including(node, last(name), &mut included);
    }
    let mut found: Vec<(&Element<'_>, &str)> = Vec::new();
    for (((name, _), root), node) in documents.iter().zip(roots).zip(nodes) {
        if !node.is(SCHEMA, "schema") || node.get("targetNamespace").is_some() {
            continue;
        }
        // Whoever includes it may be without a namespace, too. Includes go in circles as well, so each name
        // is followed once.
        let (mut names, mut next) = (vec![last(name)], 0);
        let mut namespaces = HashSet::new();
        while let Some(name) = names.get(next).copied() {
            next += 1;
            for (_, by, namespace) in included.iter().filter(|(of, ..)| last(of) == name) {
                if namespace.is_empty() {
                    names.extend((!names.contains(by)).then_some(by));
                } else if found.len() < DOCUMENTS && namespaces.insert(*namespace) {
                    found.push((root, namespace));
                }
            }
        }
    }
    found
}

/// What schemas in a document include: the location, the document, and the schema's namespace. Recursion is bounded by the
/// depth of the tree. At most `IMPORTS` for all documents together.
fn including<'t, 'd>(node: &Node<'t>, document: &'d str, included: &mut Vec<(&'t str, &'d str, &'t str)>) {
    for child in &node.children {
        if node.is(SCHEMA, "schema") && matches!(child.local, "include" | "redefine") {
            if let Some(location) = child.get("schemaLocation").filter(|_| included.len() < IMPORTS) {
                included.push((location, document, node.get("targetNamespace").unwrap_or_default()));
            }
        } else if node.space != SCHEMA {
            including(child, document, included);
        }
    }
}

/// The last part of a document's name or location.
fn last(name: &str) -> &str {
    name.rsplit(['/', '\\', '=']).next().unwrap_or(name)
}

/// The definitions in a document, be it one or several in an envelope; recursion is bounded by the depth of the tree.
fn find<'n, 't>(node: &'n Node<'t>, found: &mut Vec<&'n Node<'t>>) {
    if node.is(WSDL, "definitions") {
        found.push(node);
    } else if node.space != WSDL {
        for child in &node.children {
            find(child, found);
        }
    }
}

/// An interface that also says what was left out of the description. What was left out of types concerns all
/// interfaces, since nobody knows which of them uses the type. The copies are bounded by the caller.
fn remarked(interface: Hold<Interface>, remarks: &[String]) -> Hold<Interface> {
    if remarks.is_empty() {
        return interface;
    }
    let mut whole = (*interface).clone();
    let mut notes = whole.notes.into_owned();
    notes.extend(remarks.iter().map(|remark| (Name::from("wcf:unread"), Name::from(remark.clone()))));
    whole.notes = Notes::Owned(notes);
    Hold::new(whole)
}
