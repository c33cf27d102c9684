//! The elements of a description beside its types.
//!
//! Texts are collected by kind, because a description has messages, port types, bindings and services in this
//! order, and each interface adds to all of them.

use super::super::names::{QName, SCHEMA};
use super::super::services::EVERYWIRE;
use super::super::tree::WSDL;
use super::messages::{Part, PrintedMessage, PrintedOperation};
use super::paper::Paper;
use everywire_model::Interface;
use everywire_model::contract::note;
use std::collections::HashSet;

/// The parts of one document, in the order in which a description has them.
#[derive(Default)]
pub(super) struct Elements {
    /// The messages as text.
    messages: String,
    /// Names of the messages.
    named: HashSet<String>,
    /// The port types as text.
    port_types: String,
    /// The policies as text, which bindings refer to.
    pub(super) policies: String,
    /// The bindings as text.
    pub(super) bindings: String,
    /// Services by name, with their ports.
    pub(super) services: Vec<(String, String)>,
    /// Names of the bindings.
    pub(super) taken: HashSet<String>,
    /// Namespaces that messages name, by their order.
    spaces: Vec<String>,
}

impl Elements {
    /// Whether there is a message of this name.
    pub(super) fn has_message(&self, name: &str) -> bool {
        self.named.contains(name)
    }

    /// Adds a message; a second one of the name is the same.
    pub(super) fn message(&mut self, name: &str, parts: &[(String, Part)]) {
        if !self.named.insert(name.to_owned()) {
            return;
        }
        let mut paper = Paper::at(1);
        if parts.is_empty() {
            paper.empty("wsdl:message", &[("name", name)]);
        } else {
            paper.open("wsdl:message", &[("name", name)]);
            for (part, what) in parts {
                let (attribute, of) = match what {
                    Part::Element(of) => ("element", of),
                    Part::Type(of) => ("type", of),
                };
                let of = self.refer(of);
                paper.empty("wsdl:part", &[("name", part), (attribute, &of)]);
            }
            paper.close();
        }
        self.messages.push_str(&paper.out);
    }

    /// A name outside of schemas. The namespace is declared on the first element.
    fn refer(&mut self, name: &QName) -> String {
        if name.namespace == SCHEMA {
            return format!("xs:{}", name.local);
        }
        if name.namespace.is_empty() {
            return name.local.clone();
        }
        let at = self.spaces.iter().position(|space| *space == name.namespace).unwrap_or_else(|| {
            self.spaces.push(name.namespace.clone());
            self.spaces.len() - 1
        });
        format!("i{at}:{}", name.local)
    }

    /// Adds the port type of an interface with its operations.
    pub(super) fn port_type(
        &mut self,
        contract: &QName,
        interface: &Interface,
        methods: &[PrintedOperation],
    ) {
        let mut paper = Paper::at(1);
        let mut attributes = Vec::new();
        if note(&interface.notes, "wcf:session") == Some("true") {
            attributes.push(("msc:usingSession", "true"));
        }
        attributes.push(("name", contract.local.as_str()));
        paper.open("wsdl:portType", &attributes);
        documentation(&interface.doc, &mut paper);
        for method in methods {
            let mut attributes = Vec::new();
            if !method.initiating {
                attributes.push(("msc:isInitiating", "false"));
            }
            if method.terminating {
                attributes.push(("msc:isTerminating", "true"));
            }
            if method.idempotent || method.bare {
                attributes.push(("xmlns:ew", EVERYWIRE));
            }
            attributes.extend(method.idempotent.then_some(("ew:idempotent", "true")));
            attributes.extend(method.bare.then_some(("ew:bare", "true")));
            attributes.push(("name", method.name.as_str()));
            paper.open("wsdl:operation", &attributes);
            documentation(&method.doc, &mut paper);
            let mut way = |element: &str, way: &PrintedMessage| {
                let message = format!("tns:{}", way.message);
                paper.empty(element, &[("wsaw:Action", &way.action), ("message", &message)]);
            };
            let (first, second) =
                if method.calls_back { ("wsdl:output", "wsdl:input") } else { ("wsdl:input", "wsdl:output") };
            way(first, &method.request);
            if let Some(reply) = &method.reply {
                way(second, reply);
            }
            for (name, message, action) in &method.faults {
                let message = format!("tns:{message}");
                paper.empty("wsdl:fault", &[("wsaw:Action", action), ("name", name), ("message", &message)]);
            }
            paper.close();
        }
        paper.close();
        self.port_types.push_str(&paper.out);
    }

    /// The document: `types` and `imports` are those of the first document of a description.
    pub(super) fn finish(self, space: &str, types: &[(String, String)], imports: &[&str]) -> String {
        let spaces: Vec<(String, String)> = self
            .spaces
            .iter()
            .enumerate()
            .map(|(at, space)| (format!("xmlns:i{at}"), space.clone()))
            .collect();
        let mut attributes = vec![
            ("xmlns:wsdl", WSDL),
            ("xmlns:xs", SCHEMA),
            ("xmlns:tns", space),
            ("xmlns:soap", "http://schemas.xmlsoap.org/wsdl/soap/"),
            ("xmlns:soap12", "http://schemas.xmlsoap.org/wsdl/soap12/"),
            ("xmlns:wsaw", "http://www.w3.org/2006/05/addressing/wsdl"),
            ("xmlns:msc", "http://schemas.microsoft.com/ws/2005/12/wsdl/contract"),
            ("xmlns:wsp", "http://schemas.xmlsoap.org/ws/2004/09/policy"),
            (
                "xmlns:wsu",
                "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd",
            ),
        ];
        attributes.extend(spaces.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        attributes.push(("targetNamespace", space));
        let mut paper = Paper::default();
        paper.open("wsdl:definitions", &attributes);
        paper.paste(&self.policies);
        // Pages of a service are asked for by such a query.
        for (number, import) in (1..).zip(imports) {
            let location = format!("?wsdl=wsdl{number}");
            paper.empty("wsdl:import", &[("namespace", import), ("location", &location)]);
        }
        if !types.is_empty() {
            paper.open("wsdl:types", &[]);
            for (_, schema) in types {
                for line in schema.lines() {
                    paper.paste("    ");
                    paper.paste(line);
                    paper.paste("\n");
                }
            }
            paper.close();
        }
        paper.paste(&self.messages);
        paper.paste(&self.port_types);
        paper.paste(&self.bindings);
        for (name, ports) in &self.services {
            paper.open("wsdl:service", &[("name", name)]);
            paper.paste(ports);
            paper.close();
        }
        paper.close();
        paper.out
    }
}

/// Documentation, if there is any.
fn documentation(doc: &str, paper: &mut Paper) {
    if !doc.is_empty() {
        paper.text("wsdl:documentation", &[], doc);
    }
}
