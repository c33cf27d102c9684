//! Elements to interfaces.
//!
//! State: which interfaces were seen, the bytes of signatures so far, and how many
//! members were left out. A contract holds an interface once, however many nodes have it.
//!
//! A mistake in a file is a mistake. What an object tells (`told`) is another matter: the service runs as it is,
//! and whoever calls it cannot mend its text. There a member that is wrong is left out, and a note of its
//! interface names it; an interface or a child whose name nobody could send is passed over; so is an annotation.
//!
//! Labels are what people and stubs call a member; the wire name stays as it is. Methods may be overloaded in
//! the XML, and properties may have the name of a method, so labels are made unique here. Of several methods with one
//! name, as QtDBus has them, the first keeps it; each of the others is called by its label on the other wires, which tell
//! operations apart by the name alone, and keeps its name on D-Bus as a note ([`MEMBER`]).

use super::annotations::{Annotations, RAISES, of_signal};
use super::exceptions::{self, Exceptions};
use super::names::{self, identifier};
use super::{Node, properties};
use crate::diagnostics::MOST;
use crate::empty::empty;
use crate::report::{Problem, Report, Span};
use crate::signature;
use crate::unique::Unique;
use crate::xml::{Attribute, Element, shown};
use everywire_model::contract::{LEFT_OUT, MEMBER};
use everywire_model::shape::{Field, Name};
use everywire_model::{
    Contract, Definition, Direction, Hold, Interface, Operation, Parameter, Shape, Signal,
};
use std::borrow::Cow;
use std::collections::HashSet;

/// Bytes of all signatures of a file. A signature of 255 bytes makes up to 255 shapes of some hundred bytes
/// each, so the file's own size would not bound the memory well.
const SIGNATURES: usize = 256 << 10;

/// The interfaces of a node and of all nodes in it. A file may also be one interface without a node, as Qt's compiler takes it.
pub(super) fn all(root: &Element<'_>, report: &mut Report) -> Contract {
    let mut reader = Reader::new(root, report, false);
    let mut contract = Contract::default();
    if root.name == "interface" {
        reader.add_interface(root, &mut contract);
    } else if reader.is_node(root) {
        reader.node(root, &mut contract, &mut Vec::new());
    }
    contract
}

/// What one object says of itself.
pub(super) fn node(root: &Element<'_>, report: &mut Report) -> Node {
    let mut reader = Reader::new(root, report, true);
    let mut node = Node::default();
    if reader.is_node(root) {
        let name = root.attribute("name").filter(|name| is_place(name));
        node.name = name.map_or_else(String::new, |name| name.value.to_string());
        reader.node(root, &mut node.contract, &mut node.children);
    }
    node
}

pub(super) struct Reader<'r> {
    pub(super) report: &'r mut Report,
    /// The dotted names of the interfaces so far.
    seen: HashSet<String>,
    pub(super) exceptions: Exceptions,
    /// Bytes of signatures so far.
    signatures: usize,
    /// Whether one object tells this of itself.
    told: bool,
    /// Members that were left out so far.
    left_out: usize,
}

impl<'r> Reader<'r> {
    fn new(root: &Element<'_>, report: &'r mut Report, told: bool) -> Self {
        let exceptions = Exceptions::beside(root);
        Self { report, seen: HashSet::new(), exceptions, signatures: 0, told, left_out: 0 }
    }
}

/// The names of an interface's methods. Those of the file are known beforehand, so that a label which is made is no other method's
/// name: callers on other wires would reach the wrong one.
struct MethodNames {
    labels: Unique,
    /// Names that no method read so far has.
    free: HashSet<String>,
}

impl MethodNames {
    fn of(interface: &Element<'_>) -> Self {
        let methods = interface.elements().filter(|child| child.name == "method");
        let names = methods.filter_map(|method| method.attribute("name"));
        let free: HashSet<String> = names.map(|name| name.value.to_string()).collect();
        let mut labels = Unique::default();
        free.iter().for_each(|name| drop(labels.name(name)));
        Self { labels, free }
    }

    /// The label of the next method with this name: the name itself for the first one.
    fn label(&mut self, name: &str) -> String {
        if self.free.remove(name) { name.to_owned() } else { self.labels.name(name) }
    }
}

/// Whether this can be the path of an object, or its name below another one.
fn is_place(name: &Attribute<'_>) -> bool {
    let name = name.value.as_bytes();
    names::is_path(name) || names::is_relative(name)
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

    /// Recursion is bounded by the depth of the tree. Of a file, nodes inside are read as well; an object that tells
    /// itself names its `children`.
    fn node(&mut self, node: &Element<'_>, contract: &mut Contract, children: &mut Vec<String>) {
        if let Some(name) = node.attribute("name").filter(|name| !self.told && !is_place(name)) {
            let problem = Problem::new(name.span, "this is no path of an object");
            self.report.add(problem.expected(["elements of letters, digits and `_`, joined by `/`"]));
        }
        for child in node.elements() {
            match child.name {
                "interface" => self.add_interface(child, contract),
                "node" if !self.told => self.node(child, contract, children),
                // The specification wants relative names; whole paths are seen as well. Services have also children with
                // names that no path can have, which nobody could ask for.
                "node" => {
                    let name = child.attribute("name").filter(|name| is_place(name));
                    children.extend(name.map(|name| name.value.to_string()));
                }
                _ => {}
            }
        }
    }

    /// One interface, after the exceptions that it is the first to name.
    fn add_interface(&mut self, element: &Element<'_>, contract: &mut Contract) {
        let mark = self.report.mark();
        if let Some(interface) = self.interface(element) {
            contract.definitions.extend(self.exceptions.take_new().map(Definition::Exception));
            contract.definitions.push(Definition::Interface(Hold::new(interface)));
        }
        if self.told {
            self.report.forget(mark);
        }
    }

    /// A member of an interface: what `read` makes of its element. Where an object tells it, a mistake leaves it out, or if it
    /// can be read all the same, is forgotten.
    fn part<T>(
        &mut self,
        element: &Element<'_>,
        notes: &mut Vec<(Name, Name)>,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let mark = self.report.mark();
        let part = read(self);
        if self.told {
            if part.is_none() {
                let why = self.report.since(mark).unwrap_or("it cannot be read");
                // A peer's text may have very many.
                let what = match (self.left_out, element.attribute("name")) {
                    (..MOST, Some(name)) => Some(format!("{}: {why}", shown(&name.value))),
                    (..MOST, None) => Some(format!("a {}: {why}", element.name)),
                    (MOST, _) => Some("more members that are wrong".to_owned()),
                    _ => None,
                };
                notes.extend(what.map(|what| (Name::Borrowed(LEFT_OUT), Name::from(what))));
                self.left_out += 1;
            }
            self.report.forget(mark);
        }
        part
    }

    /// One interface; None after a mistake, and for one that was seen.
    fn interface(&mut self, element: &Element<'_>) -> Option<Interface> {
        let name = self.needed(element, "name")?;
        if !names::is_interface(name.value.as_bytes()) {
            let message = format!("{} is no name of an interface", shown(&name.value));
            self.report.add(Problem::new(name.span, message).expected(["at least two names joined by dots"]));
            return None;
        }
        let id = name.value.to_string();
        if !self.seen.insert(id.clone()) {
            return None;
        }
        let annotations = Annotations::of(element, self.report);
        let mut names = MethodNames::of(element);
        // Signals have labels of their own: a method and a signal of one name do not meet in a stub.
        let mut labels_of_signals = Unique::default();
        let (mut operations, mut signals, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for child in element.elements() {
            match child.name {
                "method" => {
                    operations.extend(self.part(child, &mut notes, |reader| reader.method(child, &mut names)))
                }
                "signal" => {
                    let signal =
                        self.part(child, &mut notes, |reader| reader.signal(child, &mut labels_of_signals));
                    if let Some((signal, kept)) = signal {
                        signals.push(signal);
                        notes.extend(kept);
                    }
                }
                _ => {}
            }
        }
        let mut attributes = Vec::new();
        // After the methods, because numbers of operations are those of methods first.
        for child in element.elements().filter(|child| child.name == "property") {
            let notify = annotations.notify.unwrap_or_default();
            attributes.extend(self.part(child, &mut notes, |reader| {
                properties::read(reader, child, notify, &mut operations, &mut names.labels)
            }));
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
    fn method(&mut self, element: &Element<'_>, names: &mut MethodNames) -> Option<Operation> {
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
        let mut notes = annotations.kept;
        let label = names.label(&name);
        if label != name {
            notes.push((Name::Borrowed(MEMBER), Name::from(name)));
        }
        let mut operation = Operation::new(label, parameters, returns);
        // An answer that is promised is waited for, whatever the annotation says.
        operation.oneway = annotations.no_reply && outs == 0;
        operation.idempotent = annotations.idempotent;
        operation.raises = exceptions::of(self, element, RAISES)?.into();
        if operation.oneway && !operation.raises.is_empty() {
            let problem = Problem::new(element.span, "a method without an answer raises nothing");
            self.report.add(problem);
            return None;
        }
        operation.notes = notes.into();
        operation.doc = Name::from(annotations.doc);
        Some(operation)
    }

    /// A signal; its arguments are its fields. With it come the notes that the interface keeps for it.
    #[allow(clippy::type_complexity)]
    fn signal(&mut self, element: &Element<'_>, labels: &mut Unique) -> Option<(Signal, Vec<(Name, Name)>)> {
        let name = self.member(element)?;
        let arguments = self.arguments(element, Direction::Out)?;
        let fields = arguments.into_iter().map(|argument| argument.field).collect();
        let annotations = Annotations::of(element, self.report);
        let label = labels.name(&name);
        let kept = annotations.kept.into_iter().map(|note| of_signal(&label, note)).collect();
        let mut signal = Signal::new(name, fields);
        signal.label = Name::from(label);
        signal.doc = Name::from(annotations.doc);
        Some((signal, kept))
    }

    /// The arguments of a method or signal; `usual` is the direction where none is written. None after a
    /// mistake in any of them: the others alone would be another signature.
    fn arguments(&mut self, element: &Element<'_>, usual: Direction) -> Option<Vec<Parameter>> {
        let (mut parameters, mut names, mut right) = (Vec::new(), Unique::default(), true);
        let (mut octets_in, mut octets_out) = (0, 0);
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
            // A call and its answer have a signature each, of all their values.
            let octets = if direction == Direction::In { &mut octets_in } else { &mut octets_out };
            let kind = argument.attribute("type");
            *octets += kind.map_or(0, |kind| kind.value.len());
            if *octets > signature::LENGTH {
                let span = kind.map_or(argument.span, |kind| kind.span);
                let message = format!("the signature is {octets} octets long up to here");
                let problem = Problem::new(span, message);
                self.report.add(problem.expected([format!("at most {} octets in all", signature::LENGTH)]));
                return None;
            }
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
