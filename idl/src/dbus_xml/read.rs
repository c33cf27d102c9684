//! Elements to interfaces.
//!
//! State: which interfaces were seen, each with its first place, and the bytes of signatures so far. A
//! contract holds an interface once, however many nodes in the file have it; for the answer of one object, a
//! second interface of the same name is a mistake.
//!
//! Labels are what people and stubs call a member; the wire name stays as it is. Methods may be overloaded in
//! the XML, and properties may have the name of a method, so labels are made unique here.

use super::annotations::{Annotations, RAISES, of_signal};
use super::exceptions::{self, Exceptions};
use super::names::{self, identifier};
use super::{Node, properties};
use crate::empty::empty;
use crate::report::{Problem, Report, Span};
use crate::signature;
use crate::unique::Unique;
use crate::xml::{Attribute, Element, shown};
use everywire_model::shape::{Field, Name};
use everywire_model::{
    Contract, Definition, Direction, Hold, Interface, Operation, Parameter, Shape, Signal,
};
use std::borrow::Cow;
use std::collections::HashMap;

/// Bytes of all signatures of a file. A signature of 255 bytes makes up to 255 shapes of some hundred bytes
/// each, so the file's own size would not bound the memory well.
const SIGNATURES: usize = 256 << 10;

/// The interfaces of a node and of all nodes in it. A file may also be one interface without a node, as Qt's compiler takes it.
pub(super) fn all(root: &Element<'_>, report: &mut Report) -> Contract {
    let mut reader = Reader::new(root, report);
    let mut contract = Contract::default();
    if root.name == "interface" {
        reader.add_interface(root, false, &mut contract);
    } else if reader.is_node(root) {
        reader.node(root, &mut contract, true, &mut Vec::new());
    }
    contract
}

/// What one object says of itself.
pub(super) fn node(root: &Element<'_>, report: &mut Report) -> Node {
    let mut reader = Reader::new(root, report);
    let mut node = Node::default();
    if reader.is_node(root) {
        node.name = root.attribute("name").map_or_else(String::new, |name| name.value.to_string());
        reader.node(root, &mut node.contract, false, &mut node.children);
    }
    node
}

pub(super) struct Reader<'r> {
    pub(super) report: &'r mut Report,
    /// Where each interface was found first, by its dotted name.
    seen: HashMap<String, Span>,
    pub(super) exceptions: Exceptions,
    /// Bytes of signatures so far.
    signatures: usize,
}

impl<'r> Reader<'r> {
    fn new(root: &Element<'_>, report: &'r mut Report) -> Self {
        Self { report, seen: HashMap::new(), exceptions: Exceptions::beside(root), signatures: 0 }
    }
}

impl Reader<'_> {
    fn is_node(&mut self, root: &Element<'_>) -> bool {
        let is = root.name == "node";
        if !is {
            let message = format!("the file is about {}, not about an object", shown(root.name));
            self.report.add(Problem::new(root.span, message).expected(["`<node>`"]));
        }
        is
    }

    /// Recursion is bounded by the depth of the tree. With `deep`, nodes inside are read as well; without,
    /// their names become `children`.
    fn node(&mut self, node: &Element<'_>, contract: &mut Contract, deep: bool, children: &mut Vec<String>) {
        if let Some(name) = node.attribute("name")
            && !names::is_path(name.value.as_bytes())
            && !names::is_relative(name.value.as_bytes())
        {
            let problem = Problem::new(name.span, "this is no path of an object");
            self.report.add(problem.expected(["elements of letters, digits and `_`, joined by `/`"]));
        }
        for child in node.elements() {
            match child.name {
                "interface" => self.add_interface(child, !deep, contract),
                "node" if deep => self.node(child, contract, true, children),
                "node" => {
                    if let Some(name) = self.child(child) {
                        children.push(name);
                    }
                }
                _ => {}
            }
        }
    }

    /// One interface, after the exceptions that it is the first to name.
    fn add_interface(&mut self, element: &Element<'_>, strict: bool, contract: &mut Contract) {
        if let Some(interface) = self.interface(element, strict) {
            contract.definitions.extend(self.exceptions.take_new().map(Definition::Exception));
            contract.definitions.push(Definition::Interface(Hold::new(interface)));
        }
    }

    /// The name of a node below this one; None after a mistake.
    fn child(&mut self, node: &Element<'_>) -> Option<String> {
        let name = self.needed(node, "name")?;
        // The specification wants relative names; whole paths are seen as well.
        if !names::is_relative(name.value.as_bytes()) && !names::is_path(name.value.as_bytes()) {
            let problem = Problem::new(name.span, "this is no name of a child");
            self.report.add(problem.expected(["elements of letters, digits and `_`, joined by `/`"]));
            return None;
        }
        Some(name.value.to_string())
    }

    /// One interface; None after a mistake, and for an interface that was seen, which is a mistake only with
    /// `strict`.
    fn interface(&mut self, element: &Element<'_>, strict: bool) -> Option<Interface> {
        let name = self.needed(element, "name")?;
        if !names::is_interface(name.value.as_bytes()) {
            let message = format!("{} is no name of an interface", shown(&name.value));
            self.report.add(Problem::new(name.span, message).expected(["at least two names joined by dots"]));
            return None;
        }
        let id = name.value.to_string();
        if let Some(first) = self.seen.get(&id) {
            if strict {
                let problem = Problem::new(name.span, format!("`{id}` is defined twice"));
                self.report.add(problem.note(*first, "the first definition"));
            }
            return None;
        }
        self.seen.insert(id.clone(), name.span);
        let annotations = Annotations::of(element, self.report);
        let mut labels = Unique::default();
        // Signals have labels of their own: a method and a signal of one name do not meet in a stub.
        let mut labels_of_signals = Unique::default();
        let (mut operations, mut signals, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for child in element.elements() {
            match child.name {
                "method" => operations.extend(self.method(child, &mut labels)),
                "signal" => signals.extend(self.signal(child, &mut labels_of_signals, &mut notes)),
                _ => {}
            }
        }
        let mut attributes = Vec::new();
        // After the methods, because numbers of operations are those of methods first.
        for child in element.elements().filter(|child| child.name == "property") {
            let notify = annotations.notify.unwrap_or_default();
            attributes.extend(properties::read(self, child, notify, &mut operations, &mut labels));
        }
        Some(Interface {
            operations: Cow::Owned(operations),
            attributes: Cow::Owned(attributes),
            signals: Cow::Owned(signals),
            notes: Cow::Owned(notes),
            doc: Name::from(annotations.doc),
            ..empty(Name::from(id.replace('.', "::")), Name::from(id))
        })
    }

    /// A method. One `out` argument becomes the result, several stay parameters.
    fn method(&mut self, element: &Element<'_>, labels: &mut Unique) -> Option<Operation> {
        let name = self.member(element)?;
        let annotations = Annotations::of(element, self.report);
        let arguments = self.arguments(element, Direction::In)?;
        let outs = arguments.iter().filter(|argument| argument.direction == Direction::Out).count();
        let (mut parameters, mut returns) = (Vec::with_capacity(arguments.len()), Shape::Void);
        for argument in arguments {
            match argument.direction {
                Direction::Out if outs == 1 => returns = argument.field.shape,
                _ => parameters.push(argument),
            }
        }
        let mut operation = Operation::new(name.clone(), parameters, returns);
        operation.label = Name::from(labels.name(&name));
        // An answer that is promised is waited for, whatever the annotation says.
        operation.oneway = annotations.no_reply && outs == 0;
        operation.idempotent = annotations.idempotent;
        operation.raises = exceptions::of(self, element, RAISES)?.into();
        if operation.oneway && !operation.raises.is_empty() {
            let problem = Problem::new(element.span, "a method without an answer raises nothing");
            self.report.add(problem);
        }
        operation.notes = annotations.kept.into();
        operation.doc = Name::from(annotations.doc);
        Some(operation)
    }

    /// A signal; its arguments are its fields. `notes` are those of the interface.
    fn signal(
        &mut self,
        element: &Element<'_>,
        labels: &mut Unique,
        notes: &mut Vec<(Name, Name)>,
    ) -> Option<Signal> {
        let name = self.member(element)?;
        let arguments = self.arguments(element, Direction::Out)?;
        let fields = arguments.into_iter().map(|argument| argument.field).collect();
        let annotations = Annotations::of(element, self.report);
        let label = labels.name(&name);
        notes.extend(annotations.kept.into_iter().map(|note| of_signal(&label, note)));
        let mut signal = Signal::new(name, fields);
        signal.label = Name::from(label);
        signal.doc = Name::from(annotations.doc);
        Some(signal)
    }

    /// The arguments of a method or signal; `usual` is the direction where none is written. None after a
    /// mistake in any of them: the others alone would be another signature.
    fn arguments(&mut self, element: &Element<'_>, usual: Direction) -> Option<Vec<Parameter>> {
        let (mut parameters, mut names, mut right) = (Vec::new(), Unique::default(), true);
        for (number, argument) in (1..).zip(element.elements().filter(|child| child.name == "arg")) {
            let direction = match argument.attribute("direction") {
                // A signal's arguments go one way, whatever is written.
                Some(direction) if usual == Direction::In => match direction.value.as_ref() {
                    "in" => Direction::In,
                    "out" => Direction::Out,
                    _ => {
                        let problem = Problem::new(direction.span, "this is no direction of an argument");
                        self.report.add(problem.expected(["`in`", "`out`"]));
                        right = false;
                        continue;
                    }
                },
                _ => usual,
            };
            let Some(shape) = self.shape(argument) else {
                right = false;
                continue;
            };
            let name = match argument.attribute("name").map(|name| name.value.as_ref()) {
                // Names are optional, and do not travel.
                None | Some("") => format!("arg_{number}"),
                Some(name) => identifier(name),
            };
            let field = Field { name: Name::from(names.name(&name)), shape };
            parameters.push(Parameter { direction, field });
        }
        right.then_some(parameters)
    }

    /// The type of an argument or a property. The signature is one complete type.
    pub(super) fn shape(&mut self, element: &Element<'_>) -> Option<Shape> {
        let text = self.needed(element, "type")?;
        self.signature(&text.value, text.span)
    }

    /// The type that a signature means.
    pub(super) fn signature(&mut self, text: &str, span: Span) -> Option<Shape> {
        self.signatures += text.len();
        if self.signatures > SIGNATURES {
            self.report.add(Problem::new(span, "the file has too many types"));
            return None;
        }
        match signature::parse_one(text) {
            Ok(shape) => Some(shape),
            Err(error) => {
                let message = format!("{} is no type: {error}", shown(text));
                self.report.add(Problem::new(span, message).expected(["one complete type"]));
                None
            }
        }
    }

    /// The name of a method or a signal, as the rules for member names allow it.
    fn member(&mut self, element: &Element<'_>) -> Option<String> {
        let name = self.needed(element, "name")?;
        if !names::is_member(name.value.as_bytes()) {
            let message = format!("{} is no name of a {}", shown(&name.value), element.name);
            let problem = Problem::new(name.span, message);
            self.report.add(problem.expected(["letters, digits and `_`, no digit first"]));
            return None;
        }
        Some(name.value.to_string())
    }

    /// An attribute that must be there.
    pub(super) fn needed<'e, 'a>(
        &mut self,
        element: &'e Element<'a>,
        name: &str,
    ) -> Option<&'e Attribute<'a>> {
        let found = element.attribute(name);
        if found.is_none() {
            let problem = Problem::new(element.span, format!("this {} has no {name}", element.name));
            self.report.add(problem.expected([format!("attribute `{name}`")]));
        }
        found
    }
}
