//! What bindings alone say of port types: the style, headers, and the actions of older services.
//!
//! Operations are known by their names; where several of one name differ in their messages, by the name of the request, too
//! ([`Overloads`]).

use super::limits::HEADERS;
use super::names::QName;
use super::tree::{Node, WSDL};
use crate::report::{Problem, Report};
use std::collections::{HashMap, HashSet};

/// MIME (WSDL 1.1, 5).
const MIME: &str = "http://schemas.xmlsoap.org/wsdl/mime/";

/// What the bindings of all documents say, by port type.
#[derive(Default)]
pub(super) struct Bindings {
    /// Header parts by the port type, the operation, and whether they are of the reply: message, part.
    pub(super) headers: HashMap<(QName, String, bool), Vec<(QName, String)>>,
    /// Operations of bindings whose style is `rpc`, by port type. Parts of their messages are parameters with
    /// types.
    pub(super) rpc: HashSet<(QName, String)>,
    /// Port types by whether one of their bindings is for messages. One without any binding is taken as one
    /// for messages.
    pub(super) bound: HashMap<QName, bool>,
    /// What bindings of that style say about the namespace of the element around the parts; as `headers`.
    pub(super) around: HashMap<(QName, String, bool), String>,
    /// What the first binding for messages says of where parts are; as `headers`.
    pub(super) bodies: HashMap<(QName, String, bool), Bound>,
    /// Actions of requests by port type and operation, as each binding says; empty where it says that there is none.
    pub(super) actions: HashMap<(QName, String), Vec<(QName, String)>>,
    /// The ports of each binding, as `SERVICE/PORT`.
    pub(super) ports: HashMap<QName, Vec<String>>,
}

/// Where the parts of a message are.
#[derive(Default)]
pub(super) struct Bound {
    /// The parts in the body, if they are named; else it is all of them (WSDL 1.1, 3.5).
    parts: Option<HashSet<String>>,
    /// The parts that are attachments (WSDL 1.1, 5.3).
    attached: HashSet<String>,
}

/// Where a part is that stands neither in the body nor in a header.
pub(super) enum Elsewhere {
    Attached,
    Unbound,
}

impl Bound {
    /// What a binding says of a message by these elements.
    fn of(elements: &[&Node<'_>]) -> Self {
        let named = elements.iter().filter(|element| is_soap(element) && element.local == "body");
        let parts = named.filter_map(|body| body.get("parts")).next();
        let attached = elements.iter().filter(|element| element.is(MIME, "content"));
        Self {
            parts: parts.map(|parts| parts.split_whitespace().map(str::to_owned).collect()),
            attached: attached.filter_map(|content| content.get("part")).map(str::to_owned).collect(),
        }
    }

    /// Where this part of a message is, if it is not in the body. Names of none of its parts (`all`) say nothing: some bindings
    /// call the one part in the body by a name that is usual.
    pub(super) fn elsewhere(&self, part: &str, all: &[&str]) -> Option<Elsewhere> {
        let named = self
            .parts
            .as_ref()
            .filter(|parts| parts.is_empty() || all.iter().any(|part| parts.contains(*part)));
        if named.is_some_and(|parts| parts.contains(part)) {
            return None;
        }
        if self.attached.contains(part) {
            return Some(Elsewhere::Attached);
        }
        named.map(|_| Elsewhere::Unbound)
    }
}

/// Names that several operations of a port type or binding have.
#[derive(Default)]
pub(super) struct Overloads<'t>(HashSet<&'t str>);

impl<'t> Overloads<'t> {
    /// Those of a port type or a binding.
    pub(super) fn of(parent: &Node<'t>) -> Self {
        let mut seen = HashSet::new();
        let names = parent.all("operation").filter_map(|operation| operation.get("name"));
        Self(names.filter(|name| !seen.insert(*name)).collect())
    }

    /// What tells an operation of this name apart: the name, or where several have it also what its request is called, or
    /// would be if nothing is said (WSDL 1.1, 2.4.5 and 2.5).
    pub(super) fn key(&self, name: &str, operation: &Node<'_>) -> String {
        if !self.0.contains(name) {
            return name.to_owned();
        }
        let called = operation.one("input").and_then(|input| input.get("name"));
        let ending = if operation.one("output").is_some() { "Request" } else { "" };
        let called = called.map_or_else(|| format!("{name}{ending}"), str::to_owned);
        // No name has a blank.
        format!("{name} {called}")
    }
}

impl Bindings {
    /// Collects what is said, and which ports there are.
    pub(super) fn new(roots: &[&Node<'_>], report: &mut Report) -> Self {
        let mut bindings = Self::default();
        for definitions in roots {
            let target = definitions.get("targetNamespace").unwrap_or_default();
            for binding in definitions.all("binding") {
                bindings.read(target, binding, report);
            }
        }
        for service in roots.iter().flat_map(|definitions| definitions.all("service")) {
            for port in service.all("port") {
                let Some(binding) = port.qname("binding") else { continue };
                let (of, name) = (service.get("name"), port.get("name"));
                let port = format!("{}/{}", of.unwrap_or_default(), name.unwrap_or_default());
                bindings.ports.entry(binding).or_default().push(port);
            }
        }
        bindings
    }

    /// Notes what only a binding says: which parts are headers, the style, and the actions of older services.
    fn read(&mut self, target: &str, binding: &Node<'_>, report: &mut Report) {
        let Some(of) = binding.qname("type") else { return };
        let soap = |node: &&Node<'_>| is_soap(node);
        let style = |node: &Node<'_>| {
            let own = node.children.iter().filter(soap).find(|c| matches!(c.local, "binding" | "operation"));
            own.and_then(|own| own.get("style")).map(str::to_owned)
        };
        let forms = binding.children.iter().any(|child| child.space.contains("/wsdl/http"));
        let messages = !forms || binding.children.iter().any(|child| soap(&child));
        *self.bound.entry(of.clone()).or_default() |= messages;
        let usual = style(binding);
        let overloads = Overloads::of(binding);
        for operation in binding.all("operation") {
            let Some(name) = operation.get("name") else { continue };
            let name = overloads.key(name, operation);
            let told = operation.children.iter().filter(soap).find(|child| child.local == "operation");
            if let Some(told) = told {
                let named = QName::new(target, binding.get("name").unwrap_or_default());
                let said = told.get("soapAction").unwrap_or_default().to_owned();
                self.actions.entry((of.clone(), name.clone())).or_default().push((named, said));
            }
            if style(operation).or_else(|| usual.clone()).as_deref() == Some("rpc") {
                self.rpc.insert((of.clone(), name.clone()));
            }
            for way in operation.children.iter().filter(|child| child.space == WSDL) {
                let told = elements(way);
                let key = (of.clone(), name.clone(), way.local == "output");
                let body = told.iter().find(|child| is_soap(child) && child.local == "body");
                if let Some(namespace) = body.and_then(|body| body.get("namespace")) {
                    self.around.entry(key.clone()).or_insert_with(|| namespace.to_owned());
                }
                if messages {
                    self.bodies.entry(key).or_insert_with(|| Bound::of(&told));
                }
                for header in told.iter().filter(|child| is_soap(child) && child.local == "header") {
                    let Some(message) = header.qname("message") else { continue };
                    let part = (message, header.get("part").unwrap_or_default().to_owned());
                    let parts =
                        self.headers.entry((of.clone(), name.clone(), way.local == "output")).or_default();
                    if parts.contains(&part) {
                        continue;
                    }
                    if parts.len() == HEADERS {
                        let text = format!("a message has more than {HEADERS} headers");
                        report.add(Problem::new(header.span(), text));
                        return;
                    }
                    parts.push(part);
                }
            }
        }
    }
}

/// Whether an element is of the bindings for SOAP, of whatever version.
fn is_soap(node: &Node<'_>) -> bool {
    node.space.contains("/wsdl/soap")
}

/// What a binding says of one message: the elements there, and those in the parts of a multipart message.
fn elements<'n, 't>(way: &'n Node<'t>) -> Vec<&'n Node<'t>> {
    let is_multipart = |node: &&Node<'_>| node.is(MIME, "multipartRelated");
    let parts = way.children.iter().filter(is_multipart).flat_map(|multipart| &multipart.children);
    let inner = parts.filter(|part| part.is(MIME, "part")).flat_map(|part| &part.children);
    way.children.iter().chain(inner).collect()
}
