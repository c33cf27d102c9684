//! Port types to interfaces.
//!
//! State: messages by name, what bindings alone say (headers, style, actions), and the details of faults so
//! far, which become exceptions of the contract. `new` collects what bindings say before any port type is
//! read.
//!
//! An operation has one or two ways. Input first means that the client calls; output first, that the service
//! calls: then it belongs to the interface `NameCallback`, and is a signal as well where it has one way. A
//! message is a wrapper element around parameters, parameters that stand alone (`bare`), or typed parts (the
//! style `rpc`).
//!
//! Everything that is not as WCF would name it becomes a note of the operation (`names`), so that the wire
//! can write the same messages without knowing the description.
//!
//! An operation that needs something undefined is left out with a note that says what; the others are read.

use super::bindings::{Bindings, Overloads};
use super::builtin::{self, Typed};
use super::details;
use super::headers::tell_apart;
use super::limits::PORTS;
use super::marks;
use super::members::{MemberPosition, is_schema, is_serialized};
use super::names::{self, QName, identifier, is_name};
use super::parameters::{is_beside_result, or_nil, parameters, wrapped};
use super::ports::Port;
use super::tree::{Node, WSDL};
use super::types::Types;
use crate::empty::empty;
use crate::report::Problem;
use crate::unique::Unique;
use everywire_model::contract::{LEFT_OUT, Notes};
use everywire_model::shape::{Field, Name, Struct};
use everywire_model::{Hold, Interface, Operation, Signal};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::iter::repeat;

/// Where the attribute `Action` may stand: WS-Addressing Metadata, its draft, and the submission.
pub(super) const ACTIONS: [&str; 3] = [
    "http://www.w3.org/2006/05/addressing/wsdl",
    "http://www.w3.org/2007/05/addressing/metadata",
    "http://schemas.xmlsoap.org/ws/2004/08/addressing",
];
/// Our words for an operation that may run twice, and for one whose messages only look wrapped, stand in this; WSDL 2.0's (WSDL 2.0 Adjuncts, 3.1) in the other.
pub(super) const EVERYWIRE: &str = "urn:everywire:contract";
const EXTENSIONS: &str = "http://www.w3.org/ns/wsdl-extensions";
/// WCF's own attributes of port types and operations.
const CONTRACT: &str = "http://schemas.microsoft.com/ws/2005/12/wsdl/contract";

pub(super) type Messages<'n, 't> = HashMap<QName, &'n Node<'t>>;

/// Reads port types.
pub(super) struct Services<'n, 't, 'r, 's> {
    pub(super) types: &'s mut Types<'n, 't, 'r>,
    /// Messages of all documents; the first of a name counts.
    pub(super) messages: Messages<'n, 't>,
    pub(super) bindings: Bindings,
    /// Types that are the details of several elements in one operation.
    pub(super) shared: HashSet<QName>,
    /// Structs that are details of faults.
    pub(super) exceptions: Vec<(QName, Hold<Struct>)>,
}

/// An interface, and the one that its callers implement.
pub(super) struct Service {
    pub(super) interface: Hold<Interface>,
    pub(super) callback: Option<Hold<Interface>>,
}

/// The two ways of an operation.
struct OperationMessages<'n, 't> {
    request: Option<&'n Node<'t>>,
    reply: Option<&'n Node<'t>>,
    /// Whether the service calls.
    calls_back: bool,
}

/// How the messages of an operation are read.
#[derive(Clone, Copy)]
struct Style<'k> {
    /// What the operation is known by among those that bindings speak of.
    key: &'k str,
    /// Whether parts are parameters.
    rpc: bool,
    /// Whether an element may stand around parameters.
    unwraps: bool,
}

/// What a message carries.
#[derive(Default)]
pub(super) struct Content {
    /// The element around the parameters.
    wrapper: Option<QName>,
    /// The namespace of parameters that stand alone, where it is not that of the port type. In a wrapper each member says
    /// where it is of another.
    members: Option<String>,
    /// Whether parameters stand alone in the body.
    bare: bool,
    /// What stands in the body.
    pub(super) fields: Vec<Field>,
    /// What travels as a header, with the element's name.
    pub(super) headers: Vec<(Field, QName)>,
}

impl<'n, 't, 'r, 's> Services<'n, 't, 'r, 's> {
    /// Collects messages and bindings of all documents. No port type is read yet.
    pub(super) fn new(roots: &[&'n Node<'t>], types: &'s mut Types<'n, 't, 'r>) -> Self {
        let mut messages = HashMap::new();
        for definitions in roots {
            let target = definitions.get("targetNamespace").unwrap_or_default();
            for message in definitions.all("message") {
                if let Some(name) = message.get("name") {
                    messages.entry(QName::new(target, name)).or_insert(message);
                }
            }
        }
        let bindings = Bindings::new(roots, types.report);
        let shared = details::shared(roots, &messages, types.schemas);
        Self { types, messages, bindings, shared, exceptions: Vec::new() }
    }

    /// Whether a port type is for something else than messages: forms of HTTP, as ASMX has them beside SOAP.
    pub(super) fn is_of_forms(&self, port_type: &QName) -> bool {
        self.bindings.bound.get(port_type) == Some(&false)
    }

    /// A port type. None after a mistake in the port type itself.
    pub(super) fn service(
        &mut self,
        target: &str,
        port_type: &'n Node<'t>,
        ports: &[Port],
    ) -> Option<Service> {
        let local = port_type.needed("name", self.types.report)?;
        if !is_name(local) {
            let message = format!("{} is no name of a port type", crate::xml::shown(local));
            self.types.report.add(Problem::new(port_type.span(), message));
            return None;
        }
        let id = QName::new(target, local);
        let mut notes: Vec<(Name, Name)> = Vec::new();
        let (mut operations, mut callbacks) = (Vec::new(), Vec::new());
        let (mut labels, mut callback_labels) = (Unique::default(), Unique::default());
        let overloads = Overloads::of(port_type);
        for operation in port_type.all("operation") {
            let Some(ways) = ways(operation) else { continue };
            let (list, labels) = if ways.calls_back {
                (&mut callbacks, &mut callback_labels)
            } else {
                (&mut operations, &mut labels)
            };
            self.types.lost = None;
            match self.operation(&id, operation, &ways, &overloads) {
                Some(mut read) => {
                    read.label = Name::from(labels.name(&identifier(&read.name)));
                    list.push(read);
                }
                // The mistake was reported; the contract will not be used.
                None if self.types.report.failed() => {}
                None if self.types.lost.is_some() => {
                    let what = operation.get("name").unwrap_or_default();
                    let lost = self.types.lost.take().unwrap_or_default();
                    notes.push((Name::Borrowed(LEFT_OUT), Name::from(format!("{what}: {lost}"))));
                }
                None => {
                    let message = "this operation cannot be read";
                    self.types.report.add(Problem::new(operation.span(), message));
                }
            }
        }
        let name = self.types.name(&id, "TYPE");
        if port_type.foreign(&[CONTRACT], "usingSession") == Some("true") {
            notes.push((Name::from("wcf:session"), Name::from("true")));
        }
        let mut signals = Vec::new();
        let callback = (!callbacks.is_empty()).then(|| {
            let id = QName::new(target, format!("{local}Callback"));
            notes.push((Name::from("wcf:callback"), Name::from(id.to_string())));
            let name = self.types.name(&id, "TYPE");
            let callback = Hold::new(interface(name, &id, callbacks, Vec::new(), Vec::new(), String::new()));
            // A call with an answer cannot be a signal.
            for (number, operation) in callback.operations.iter().enumerate().filter(|(_, o)| o.oneway) {
                let mut signal = Signal::new(operation.name.clone(), operation.arguments.fields().to_vec());
                signal.label = operation.label.clone();
                signal.sink = Some((callback.clone(), number));
                signal.doc = operation.doc.clone();
                signals.push(signal);
            }
            callback
        });
        notes.extend(ports.iter().map(Port::note));
        let doc = port_type.documentation();
        let interface = Hold::new(interface(name, &id, operations, signals, notes, doc));
        Some(Service { interface, callback })
    }

    /// One operation; None after a mistake, or with a reason in `lost`.
    fn operation(
        &mut self,
        of: &QName,
        node: &'n Node<'t>,
        ways: &OperationMessages<'n, 't>,
        overloads: &Overloads<'t>,
    ) -> Option<Operation> {
        let name = node.needed("name", self.types.report)?.to_owned();
        if !is_name(&name) {
            let message = format!("{} is no name of an operation", crate::xml::shown(&name));
            self.types.report.add(Problem::new(node.span(), message));
            return None;
        }
        // What is usual depends on the style and on who calls.
        let key = &*overloads.key(&name, node);
        let rpc = self.bindings.rpc.contains(&(of.clone(), key.to_owned()));
        let content = |services: &mut Self, way: Option<&'n Node<'t>>, output: bool, unwraps: bool| match way
        {
            Some(way) => services.message(of, &name, way, output, Style { rpc, unwraps, key }),
            None => Some(Content::default()),
        };
        let both = |services: &mut Self, unwraps| {
            let request = content(services, ways.request, ways.calls_back, unwraps);
            Some((request?, content(services, ways.reply, !ways.calls_back, unwraps)?))
        };
        let told = node.foreign(&[EVERYWIRE], "bare").map(str::trim) == Some("true");
        let (mut request, mut reply) = both(self, !told)?;
        // Only a pair is wrapped (JAX-WS 2.2, 2.3.1.2): beside a message that is not, an element that could be a wrapper is
        // a value, too.
        if ways.reply.is_some() && request.bare != reply.bare {
            (request, reply) = both(self, false)?;
        }
        tell_apart(&mut request, &mut reply);
        let mut notes: Vec<(Name, Name)> = Vec::new();
        let mut note = |what: String, value: String| notes.push((Name::from(what), Name::from(value)));
        // The contract's usual names; a callback's actions have the name of the service's contract.
        let own = if ways.calls_back { format!("{}Callback", of.local) } else { of.local.clone() };
        let usual = names::join(&of.namespace, &own, &name);
        let written = names::join(&of.namespace, &of.local, &name);
        let all = self.bindings.actions.get(&(of.clone(), key.to_owned())).filter(|_| !ways.calls_back);
        let all = all.map(Vec::as_slice).unwrap_or_default();
        // Of several the first one counts that says something, but for the ports of the others.
        let first = all.iter().find(|(_, said)| !said.is_empty()).or_else(|| all.first());
        let bound = first.map(|(_, said)| said);
        let named = bound.filter(|bound| !bound.is_empty()).cloned();
        // Where bindings say none, it follows from what the message is called (WS-Addressing 1.0 Metadata, 4.4.4).
        let is_unsaid = bound.is_some_and(String::is_empty);
        let by_rule = |way: Option<&Node<'_>>, usual: &str| {
            let own = way.and_then(|way| way.get("name"));
            let called = own.map_or_else(|| format!("{name}{usual}"), str::to_owned);
            is_unsaid.then(|| names::default_action(&of.namespace, &of.local, &called))
        };
        let of_request = by_rule(ways.request, if ways.reply.is_some() { "Request" } else { "" });
        let action = action(ways.request).or(named).or(of_request).unwrap_or_else(|| written.clone());
        if let Some(bound) = bound.filter(|bound| **bound != action) {
            note(names::SOAP_ACTION.to_owned(), bound.clone());
        }
        let others = all.iter().filter(|(_, said)| Some(said) != bound);
        let ports =
            others.flat_map(|(of, said)| self.bindings.ports.get(of).into_iter().flatten().zip(repeat(said)));
        for (port, said) in ports.take(PORTS) {
            note(format!("{}{port}", names::PORT_ACTION), said.clone());
        }
        if action != usual {
            note("wcf:action".to_owned(), action);
        }
        if ways.reply.is_some() {
            let action = self::action(ways.reply).or_else(|| by_rule(ways.reply, "Response"));
            let action = action.unwrap_or_else(|| format!("{written}Response"));
            if action != format!("{usual}Response") {
                note("wcf:reply".to_owned(), action);
            }
        }
        let (asked, answered) = (
            QName::new(of.namespace.clone(), name.clone()),
            QName::new(of.namespace.clone(), format!("{name}Response")),
        );
        // Such a pair is turned round before it is compared with the usual names.
        if ways.calls_back && request.wrapper.as_ref() == Some(&answered) {
            // Mono exchanges the names of a callback's elements in the description, not in messages.
            request.wrapper = Some(asked.clone());
            reply.wrapper = reply.wrapper.take().map(|_| answered.clone());
        }
        if request.bare || reply.bare {
            note("wcf:bare".to_owned(), String::new());
        }
        if let Some(wrapper) = request.wrapper.take().filter(|wrapper| *wrapper != asked) {
            note("wcf:request".to_owned(), wrapper.to_string());
        }
        if let Some(wrapper) = reply.wrapper.take().filter(|wrapper| *wrapper != answered) {
            note("wcf:response".to_owned(), wrapper.to_string());
        }
        for (what, members) in
            [("wcf:members:request", request.members.take()), ("wcf:members:response", reply.members.take())]
        {
            if let Some(members) = members {
                note(what.to_owned(), members);
            }
        }
        if rpc {
            note("wcf:style".to_owned(), "rpc".to_owned());
        }
        for (field, header) in request.headers.iter().chain(&reply.headers) {
            let what = format!("wcf:header:{}", field.name);
            note(what, header.to_string());
        }
        for (attribute, what) in [("isInitiating", "wcf:initiating"), ("isTerminating", "wcf:terminating")] {
            let usual = if what == "wcf:initiating" { "true" } else { "false" };
            if let Some(value) = node.foreign(&[CONTRACT], attribute).filter(|value| *value != usual) {
                note(what.to_owned(), value.to_owned());
            }
        }
        let mut raises = self.faults(of, node, &usual, &mut notes);
        if ways.reply.is_none() && !raises.is_empty() {
            // Nobody waits for what a oneway operation could raise.
            raises.clear();
            notes.retain(|(what, _)| !what.starts_with("wcf:fault:") && !what.starts_with("wcf:detail:"));
            self.types.remark(format!("{of}.{name}: the faults of a oneway operation are not typed"));
        }
        notes.dedup();
        let join = |content: Content| {
            let headers = content.headers.into_iter().map(|(field, _)| field);
            content.fields.into_iter().chain(headers).collect::<Vec<Field>>()
        };
        let (parameters, returns) = parameters(&name, join(request), join(reply));
        let mut operation = Operation::new(name, parameters, returns);
        operation.oneway = ways.reply.is_none();
        operation.idempotent = self.may_run_twice(node);
        operation.raises = Cow::Owned(raises);
        operation.notes = Notes::Owned(notes);
        operation.doc = Name::from(node.documentation());
        Some(operation)
    }

    /// Whether an operation may run twice: in our words, or those of WSDL 2.0 for what is safe, which is more.
    fn may_run_twice(&mut self, node: &'n Node<'t>) -> bool {
        let said = node.foreign(&[EVERYWIRE], "idempotent").or_else(|| node.foreign(&[EXTENSIONS], "safe"));
        match said.map(str::trim) {
            Some("true" | "1") => true,
            None | Some("false" | "0") => false,
            Some(_) => {
                let problem =
                    Problem::new(node.span(), "this says neither yes nor no whether it may run twice");
                self.types.report.add(problem.expected(["`true`", "`false`"]));
                false
            }
        }
    }

    /// What the message of one way carries. `output` tells which of the two messages it is in the
    /// description, by which headers are kept. None after a mistake, or with a reason in `lost`.
    fn message(
        &mut self,
        of: &QName,
        operation: &str,
        way: &'n Node<'t>,
        output: bool,
        style: Style<'_>,
    ) -> Option<Content> {
        if way.get("message").is_none() {
            self.types.lose(way, "message", &QName::default());
        }
        let name = way.qname("message")?;
        let Some(message) = self.messages.get(&name).copied() else {
            self.types.lose(way, "message", &name);
            return None;
        };
        self.types.look(message)?;
        let headers = self
            .bindings
            .headers
            .get(&(of.clone(), style.key.to_owned(), output))
            .cloned()
            .unwrap_or_default();
        let mut content = Content::default();
        let suffix = if output { "Response" } else { "" };
        let mut taken = HashSet::new();
        let mut parts = Vec::new();
        for part in message.all("part") {
            let local = part.get("name").unwrap_or_default();
            // A part that a binding calls a header is not in the body.
            if !headers.iter().any(|(of, header)| *of == name && header == local) {
                parts.push(part);
            }
        }
        let parts = self.in_body(of, operation, parts, &(of.clone(), style.key.to_owned(), output))?;
        let (single, nothing) = (parts.len() == 1, parts.is_empty());
        // In the style `rpc` an element stands around any number of parts (WSDL 1.1, 3.5).
        if (style.rpc || !parts.is_empty()) && parts.iter().all(|part| part.get("element").is_none()) {
            let namespace = self.bindings.around.get(&(of.clone(), style.key.to_owned(), output));
            let namespace = namespace.unwrap_or(&of.namespace).clone();
            content.wrapper = Some(QName::new(namespace, format!("{operation}{suffix}")));
        }
        for part in parts {
            if part.get("element").is_some() {
                let element = part.qname("element")?;
                let found = self.global(&element, part)?;
                // A message with several parts has no wrapper.
                let around = if style.unwraps && single {
                    self.wrapper(found, &element, &format!("{operation}{suffix}"))
                } else {
                    None
                };
                match around.and_then(|around| Some((around, wrapped(around)?))) {
                    Some((around, sequence)) => {
                        let serialized =
                            around.one("sequence").is_some_and(|own| is_serialized(own, &element.namespace));
                        let place = MemberPosition { serialized, ..MemberPosition::default() };
                        let mut inner = Vec::new();
                        for (member, alternative) in
                            sequence.into_iter().filter(|(member, _)| !is_schema(member))
                        {
                            let place = MemberPosition { alternative, ..place };
                            let (field, _) = self.types.member(&element, member, place)?;
                            let is_result = output && is_beside_result(operation, &inner, &field.name);
                            if taken.insert(field.name.clone()) || is_result {
                                inner.push(field);
                            } else {
                                self.types.remark(format!(
                                    "{of}.{operation}: a second parameter {} is left out; a message that has both is refused",
                                    field.name
                                ));
                            }
                        }
                        content.wrapper = Some(element);
                        content.fields = inner;
                    }
                    None => {
                        content.bare = true;
                        let typed = self.types.element(&QName::new(element.namespace.clone(), ""), found)?.1;
                        let shape = or_nil(found, typed.shape);
                        // Elements are of a schema, whose namespace need not be that of the port type.
                        let own = content.members.get_or_insert_with(|| element.namespace.clone());
                        let shape = if *own == element.namespace {
                            shape
                        } else {
                            marks::within(&element.namespace, shape)
                        };
                        content.fields.push(Field { name: Name::from(element.local), shape });
                    }
                }
            } else if part.get("type").is_some() {
                let kind = part.qname("type")?;
                let Typed { shape, .. } = self.types.used(&kind, part)?;
                let shape = builtin::of_part(&kind, shape);
                let local = part.needed("name", self.types.report)?.to_owned();
                if !style.rpc {
                    self.types
                        .remark(format!("{of}.{operation}: a part with a type outside of the style rpc"));
                }
                if taken.insert(Name::from(local.clone())) {
                    content.fields.push(Field { name: Name::from(local), shape });
                }
            }
        }
        if content.bare && content.members.as_ref() == Some(&of.namespace) {
            content.members = None;
        }
        if nothing && content.wrapper.is_none() {
            // Nothing stands in the body.
            content.bare = true;
        }
        content.headers = self.headers(headers)?;
        Some(content)
    }

    /// The type of an element that may stand around parameters: one without a name, or one of the element's namespace where
    /// the element is called as wrappers are (`usual`). So JAX-WS declares them.
    fn wrapper(&mut self, element: &'n Node<'t>, name: &QName, usual: &str) -> Option<&'n Node<'t>> {
        if element.get("type").is_none() {
            return element.one("complexType");
        }
        let kind = element.qname("type")?;
        let named = name.local == usual && kind.namespace == name.namespace;
        let found = self.types.schemas.types.get(&kind).copied().filter(|_| named)?;
        (found.local == "complexType" && found.get("abstract") != Some("true")).then_some(found)
    }

    /// None where it is not defined, with the reason in `lost`.
    pub(super) fn global(&mut self, name: &QName, place: &Node<'_>) -> Option<&'n Node<'t>> {
        let found = self.types.schemas.elements.get(name).copied();
        if found.is_none() {
            self.types.lose(place, "element", name);
        }
        found
    }
}

/// Which way an operation goes: what stands first is who begins. None for an operation without messages.
fn ways<'n, 't>(operation: &'n Node<'t>) -> Option<OperationMessages<'n, 't>> {
    let mut order =
        operation.children.iter().filter(|c| c.space == WSDL && matches!(c.local, "input" | "output"));
    let (first, second) = (order.next()?, order.next());
    Some(OperationMessages { request: Some(first), reply: second, calls_back: first.local == "output" })
}

/// The action that the description gives a message.
fn action(way: Option<&Node<'_>>) -> Option<String> {
    way?.foreign(&ACTIONS, "Action").map(str::to_owned)
}

/// An interface without bases: port types inherit nothing.
fn interface(
    name: Name,
    id: &QName,
    operations: Vec<Operation>,
    signals: Vec<Signal>,
    notes: Vec<(Name, Name)>,
    doc: String,
) -> Interface {
    Interface {
        operations: Cow::Owned(operations),
        signals: Cow::Owned(signals),
        notes: Notes::Owned(notes),
        doc: Name::from(doc),
        ..empty(name, Name::from(id.to_string()))
    }
}
