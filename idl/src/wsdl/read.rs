//! Documents to a contract.

use super::cells;
use super::limits::{BYTES, DOCUMENTS};
use super::names::QName;
use super::ports;
use super::schema::Schemas;
use super::services::Services;
use super::tree::{Node, WSDL};
use super::types::Types;
use crate::diagnostics::Diagnostics;
use crate::report::{Problem, Report};
use crate::xml::{self, Element};
use everywire_model::contract::Notes;
use everywire_model::shape::Name;
use everywire_model::{Contract, Definition, Hold, Interface};
use std::collections::HashSet;
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
    let nodes: Vec<Node<'_>> = roots.iter().map(|root| Node::of(root, report)).collect::<Option<_>>()?;
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
        schemas.add(node, report);
    }
    let ports = ports::read(&definitions, report);
    let mut types = Types::new(&schemas, cells::origin(documents), report);
    types.all();
    let mut services = Services::new(&definitions, &mut types);
    let (mut interfaces, mut seen) = (Vec::new(), HashSet::new());
    for document in &definitions {
        let target = document.get("targetNamespace").unwrap_or_default();
        for port_type in document.all("portType") {
            let id = QName::new(target, port_type.get("name").unwrap_or_default());
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
    let mut contract = Contract::default();
    for (name, definition) in std::mem::take(&mut types.definitions) {
        let raised = exceptions.iter().find(|(exception, _)| *exception == name);
        contract.definitions.push(match (raised, &definition) {
            (Some((_, exception)), Definition::Type(everywire_model::Shape::Struct(_))) => {
                Definition::Exception(exception.clone())
            }
            _ => definition,
        });
    }
    let remarks = std::mem::take(&mut types.remarks);
    contract
        .definitions
        .extend(interfaces.into_iter().map(|one| Definition::Interface(remarked(one, &remarks))));
    Some(contract)
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

/// An interface that also says what was left out of the description.
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
