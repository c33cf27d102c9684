//! What bindings alone say of port types: the style, headers, and the actions of older services.

use super::limits::HEADERS;
use super::names::QName;
use super::tree::{Node, WSDL};
use crate::report::{Problem, Report};
use std::collections::{HashMap, HashSet};

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
    /// Actions of requests by port type and operation, as each binding says; empty where it says that there is none.
    pub(super) actions: HashMap<(QName, String), Vec<(QName, String)>>,
    /// The ports of each binding, as `SERVICE/PORT`.
    pub(super) ports: HashMap<QName, Vec<String>>,
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
        let soap = |node: &&Node<'_>| node.space.contains("/wsdl/soap");
        let style = |node: &Node<'_>| {
            let own = node.children.iter().filter(soap).find(|c| matches!(c.local, "binding" | "operation"));
            own.and_then(|own| own.get("style")).map(str::to_owned)
        };
        let forms = binding.children.iter().any(|child| child.space.contains("/wsdl/http"));
        let messages = !forms || binding.children.iter().any(|child| soap(&child));
        *self.bound.entry(of.clone()).or_default() |= messages;
        let usual = style(binding);
        for operation in binding.all("operation") {
            let Some(name) = operation.get("name") else { continue };
            let told = operation.children.iter().filter(soap).find(|child| child.local == "operation");
            if let Some(told) = told {
                let named = QName::new(target, binding.get("name").unwrap_or_default());
                let said = told.get("soapAction").unwrap_or_default().to_owned();
                self.actions.entry((of.clone(), name.to_owned())).or_default().push((named, said));
            }
            if style(operation).or_else(|| usual.clone()).as_deref() == Some("rpc") {
                self.rpc.insert((of.clone(), name.to_owned()));
            }
            for way in operation.children.iter().filter(|child| child.space == WSDL) {
                let body = way.children.iter().filter(soap).find(|child| child.local == "body");
                if let Some(namespace) = body.and_then(|body| body.get("namespace")) {
                    let way = (of.clone(), name.to_owned(), way.local == "output");
                    self.around.entry(way).or_insert_with(|| namespace.to_owned());
                }
                for header in way.children.iter().filter(soap).filter(|child| child.local == "header") {
                    let Some(message) = header.qname("message") else { continue };
                    let part = (message, header.get("part").unwrap_or_default().to_owned());
                    let parts =
                        self.headers.entry((of.clone(), name.to_owned(), way.local == "output")).or_default();
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
