//! Operations to messages and the elements in them.
//!
//! For each operation there are one or two messages and one for each fault, named as WCF names them
//! (`Contract_Operation_InputMessage`). A message is one element around the parameters, several elements, or
//! typed parts, by the notes of the operation; headers are a message of their own, which bindings refer to.
//!
//! State is in the tables that all interfaces share: `Schemas` for elements and types, `Elements` for
//! messages. `print` first checks that everything can be said (`CheckedTypes`), and only then writes into them; an
//! element that would be two things is refused there, with a reason, but for a fault's, whose part then has a type alone.
//!
//! A call of the service (a callback or a signal) has its output first; a signal is printed as a one-way call
//! without an operation.

use super::super::builtin;
use super::super::marks::{self, Mark};
use super::super::names::{self, QName, is_name};
use super::elements::Elements;
use super::families::is_family;
use super::paper::Paper;
use super::plain;
use super::sayable::CheckedTypes;
use super::schemas::{NOWHERE, Schemas};
use super::types::{Presence, presence};
use everywire_model::contract::note;
use everywire_model::shape::{Field, Struct};
use everywire_model::{Hold, Interface, Operation, Shape, Signal};
use std::borrow::Cow;

/// An operation, and from whom to whom it goes.
pub(super) struct Method<'i> {
    /// The service's interface.
    pub(super) interface: &'i Interface,
    /// The interface that the operation is of.
    of: &'i Interface,
    pub(super) operation: Cow<'i, Operation>,
    /// Whether the service calls.
    calls_back: bool,
    /// Whether it is a signal without an operation behind it.
    signal: bool,
    /// Whether it may run twice.
    idempotent: bool,
}

impl<'i> Method<'i> {
    /// The operation with this number.
    pub(super) fn call(interface: &'i Interface, index: usize, operation: &'i Operation) -> Self {
        let operation = Cow::Borrowed(operation);
        let idempotent = interface.is_idempotent(index);
        Self { interface, of: interface, operation, calls_back: false, signal: false, idempotent }
    }

    /// An operation of the callers' interface; `signal`: it is a signal, of which nobody waits for an answer, whatever other languages
    /// have made of it.
    pub(super) fn callback(
        interface: &'i Interface,
        of: &'i Interface,
        operation: &'i Operation,
        signal: bool,
    ) -> Self {
        let idempotent = operation.idempotent;
        let mut operation = Cow::Borrowed(operation);
        if signal && !operation.oneway && operation.results.fields().is_empty() {
            operation.to_mut().oneway = true;
        }
        Self { interface, of, operation, calls_back: true, signal: false, idempotent }
    }

    /// A signal as the one-way call that carries it.
    pub(super) fn signal(interface: &'i Interface, signal: &Signal) -> Self {
        let parameters = signal.fields.fields().iter().map(|field| everywire_model::Parameter {
            direction: everywire_model::Direction::In,
            field: field.clone(),
        });
        let mut operation = Operation::new(signal.name.clone(), parameters.collect(), Shape::Void);
        operation.label = signal.label.clone();
        operation.oneway = true;
        operation.doc = signal.doc.clone();
        let operation = Cow::Owned(operation);
        Self { interface, of: interface, operation, calls_back: true, signal: true, idempotent: false }
    }

    /// The action of the request.
    fn action(&self) -> String {
        names::action(Some(self.of), &self.operation)
    }
}

/// What a port type and its bindings say of an operation.
pub(super) struct PrintedOperation {
    pub(super) name: String,
    /// What bindings say in `soapAction`.
    pub(super) soap_action: String,
    /// Documentation; may be empty.
    pub(super) doc: String,
    /// Whether parts of messages are parameters.
    pub(super) rpc: bool,
    /// Whether it must be said that no element stands around parameters, since those here look as if one did.
    pub(super) bare: bool,
    /// Whether the service calls.
    pub(super) calls_back: bool,
    /// The first message, whoever sends it.
    pub(super) request: PrintedMessage,
    /// The second one; None for a one-way operation.
    pub(super) reply: Option<PrintedMessage>,
    /// Name, message and action of each.
    pub(super) faults: Vec<(String, String, String)>,
    pub(super) idempotent: bool,
    /// Whether a session may begin with it.
    pub(super) initiating: bool,
    /// Whether it ends the session.
    pub(super) terminating: bool,
}

/// One of the two messages.
pub(super) struct PrintedMessage {
    /// Its name in the description.
    pub(super) message: String,
    /// Its action, which the wire sends.
    pub(super) action: String,
    /// The namespace of the element around its parts, in the style `rpc`.
    pub(super) namespace: String,
    /// Whether its one value is an element that would be read as one around parameters.
    alike: bool,
    /// The message of its headers and their parts.
    pub(super) headers: Option<(String, Vec<String>)>,
}

/// Prints the messages of one contract's operations.
pub(super) struct Messages<'s, 'f> {
    pub(super) schemas: &'s mut Schemas<'f>,
    pub(super) elements: &'s mut Elements,
    pub(super) contract: &'s QName,
}

impl Messages<'_, '_> {
    /// The error is the reason why the operation cannot be said; nothing was written for it then, but perhaps
    /// for its first message.
    pub(super) fn print(&mut self, method: &Method<'_>) -> Result<PrintedOperation, String> {
        let operation = &*method.operation;
        let name = names::operation(operation).to_owned();
        if !is_name(&name) {
            return Err(format!("`{name}` is no name of XML"));
        }
        if self.elements.has_message(&format!("{}_{name}_InputMessage", self.contract.local))
            || self.elements.has_message(&format!("{}_{name}_OutputMessage", self.contract.local))
        {
            return Err(format!("`{name}` is there twice"));
        }
        let mut sayable = CheckedTypes::default();
        sayable.fields(operation.arguments.fields())?;
        let results = operation.results.fields();
        // The return value is first among the results and has a name of its own, so only its shape is
        // checked.
        let returned = usize::from(!matches!(operation.returns, Shape::Void));
        sayable.fields(results.get(returned..).unwrap_or_default())?;
        for shape in results.iter().take(returned).map(|field| &field.shape) {
            sayable.shape(shape)?;
        }
        for detail in operation.raises.iter() {
            sayable.shape(&Shape::Struct(Hold::clone(detail)))?;
        }
        let of = Some(method.of);
        let (asked, answered) = if method.calls_back { ("Output", "Input") } else { ("Input", "Output") };
        let wrapper = names::request_wrapper(of, operation);
        let arguments: Vec<Field> = operation.arguments.fields().to_vec();
        let request = self.way(method, &name, asked, wrapper, arguments, method.action())?;
        let reply = if operation.oneway {
            None
        } else {
            let wrapper = names::response_wrapper(of, operation);
            let mut results: Vec<Field> = operation.results.fields().to_vec();
            if !matches!(operation.returns, Shape::Void)
                && let Some(first) = results.first_mut()
            {
                first.name = names::result_element(operation).into();
            }
            let action = names::reply_action(of, operation);
            Some(self.way(method, &name, answered, wrapper, results, action)?)
        };
        let mut faults = Vec::new();
        for detail in operation.raises.iter() {
            let element = names::detail(operation, detail);
            let value = plain::value(detail, &element).cloned();
            let shape = value.unwrap_or_else(|| Shape::Struct(Hold::clone(detail)));
            // The fault of the base declares it; only its type is to be there.
            if names::base_detail(operation, detail).is_some() {
                self.schemas.refer_to(&element.namespace, &shape)?;
                self.schemas.settle()?;
                continue;
            }
            let kind = self.schemas.refer_to(&element.namespace, &shape)?;
            let mut paper = Paper::at(1);
            let said = [("name", element.local.as_str()), ("nillable", "true"), ("type", &kind)];
            paper.empty("xs:element", &said);
            // The schema of serializers has its elements itself, where anybody names one.
            let added = if builtin::find(&element).is_some() {
                self.schemas.refer(&self.contract.namespace, &element);
                Ok(())
            } else {
                self.schemas.add_element(&element, paper.out)
            };
            let part = match added {
                Ok(()) => Part::Element(element.clone()),
                // A part of that name may have the type alone: Axis calls the parts of all faults `fault`.
                Err(_) if element.namespace == self.contract.namespace => {
                    let kind = names::of_shape(&shape);
                    self.schemas.tell(&kind);
                    Part::Type(kind)
                }
                Err(why) => return Err(why),
            };
            self.schemas.settle()?;
            let part_name = match &part {
                Part::Element(_) => "detail".to_owned(),
                Part::Type(_) => element.local.clone(),
            };
            let mut fault = format!("{}Fault", element.local);
            if faults.iter().any(|(known, _, _)| *known == fault) {
                fault = format!("{}Fault", names::of_shape(&shape).local);
            }
            if faults.iter().all(|(known, _, _)| *known != fault) {
                let message = format!("{}_{name}_{fault}_FaultMessage", self.contract.local);
                self.elements.message(&message, &[(part_name, part)]);
                faults.push((fault, message, names::fault_action(of, operation, detail)));
            }
        }
        Ok(PrintedOperation {
            name,
            soap_action: names::soap_action(Some(method.of), operation),
            doc: operation.doc.to_string(),
            rpc: note(&operation.notes, "wcf:style") == Some("rpc"),
            bare: request.alike && reply.as_ref().is_none_or(|reply| reply.alike),
            calls_back: method.calls_back,
            request,
            reply,
            faults,
            idempotent: method.idempotent,
            initiating: note(&operation.notes, "wcf:initiating") != Some("false"),
            terminating: note(&operation.notes, "wcf:terminating") == Some("true"),
        })
    }

    /// One message: its element, and where parameters are headers, those apart. `way` is `Input` or `Output`,
    /// as the description calls the direction.
    fn way(
        &mut self,
        method: &Method<'_>,
        name: &str,
        way: &str,
        wrapper: Option<QName>,
        fields: Vec<Field>,
        action: String,
    ) -> Result<PrintedMessage, String> {
        let operation = &*method.operation;
        let namespace = if method.signal {
            self.contract.namespace.clone()
        } else {
            names::namespace(Some(method.of), operation)
        };
        let is_header = |field: &Field| note(&operation.notes, &format!("wcf:header:{}", field.name));
        let (headers, fields): (Vec<Field>, Vec<Field>) =
            fields.into_iter().partition(|field| is_header(field).is_some());
        let mut parts = Vec::new();
        let mut alike = false;
        let around = wrapper.as_ref().map_or_else(String::new, |name| name.namespace.clone());
        if note(&operation.notes, "wcf:style") == Some("rpc") {
            for field in &fields {
                let kind = self.schemas.refer_to(NOWHERE, &field.shape)?;
                let kind = if kind.starts_with("xs:") {
                    QName::new(names::SCHEMA, kind.trim_start_matches("xs:"))
                } else {
                    names::of_shape(&field.shape)
                };
                self.schemas.tell(&kind);
                parts.push((field.name.to_string(), Part::Type(kind)));
            }
        } else if let Some(wrapper) = wrapper {
            let reply = (way == "Output") != method.calls_back;
            let members = names::members(Some(method.of), operation, reply);
            self.wrapper(&wrapper, &members, &fields)?;
            parts.push(("parameters".to_owned(), Part::Element(wrapper)));
        } else {
            let reply = (way == "Output") != method.calls_back;
            let members = names::members(Some(method.of), operation, reply);
            for field in &fields {
                let own = marks::namespace(&field.shape).unwrap_or(&members);
                let element = QName::new(own, field.name.to_string());
                alike = fields.len() == 1 && is_alike(name, &element, marks::unmarked(&field.shape));
                self.global(&element, field)?;
                parts.push((field.name.to_string(), Part::Element(element)));
            }
        }
        let message = format!("{}_{name}_{way}Message", self.contract.local);
        let mut told = None;
        if !headers.is_empty() {
            let (mut list, mut names) = (Vec::new(), Vec::new());
            for field in &headers {
                let element = is_header(field).and_then(QName::parse);
                let element =
                    element.unwrap_or_else(|| QName::new(namespace.clone(), field.name.to_string()));
                self.global(&element, field)?;
                // A part is called as its element, but for a second one of that name.
                let part = if names.contains(&element.local) {
                    field.name.to_string()
                } else {
                    element.local.clone()
                };
                names.push(part.clone());
                list.push((part, Part::Element(element)));
            }
            let message = format!("{}_{name}_{way}Message_Headers", self.contract.local);
            self.elements.message(&message, &list);
            told = Some((message, names));
        }
        self.schemas.settle()?;
        self.elements.message(&message, &parts);
        Ok(PrintedMessage { message, action, namespace: around, alike, headers: told })
    }

    /// The element around parameters, which may be of another namespace. Parameters of another namespace are
    /// global elements there, and referred to.
    fn wrapper(&mut self, wrapper: &QName, namespace: &str, fields: &[Field]) -> Result<(), String> {
        let mut paper = Paper::at(1);
        paper.open("xs:element", &[("name", &wrapper.local)]);
        paper.open("xs:complexType", &[]);
        if wrapper.namespace == namespace || fields.is_empty() {
            self.schemas.fields(&wrapper.namespace, fields, &mut paper)?;
        } else {
            // What says where its element is stays there.
            let placed = |field: &Field| match marks::namespace(&field.shape) {
                Some(_) => field.clone(),
                None => {
                    Field { name: field.name.clone(), shape: marks::within(namespace, field.shape.clone()) }
                }
            };
            let fields: Vec<Field> = fields.iter().map(placed).collect();
            self.schemas.fields(&wrapper.namespace, &fields, &mut paper)?;
        }
        paper.close();
        paper.close();
        self.schemas.settle()?;
        self.schemas.add_element(wrapper, paper.out)
    }

    /// An element that stands alone. Its type may be of another namespace.
    fn global(&mut self, element: &QName, field: &Field) -> Result<(), String> {
        let shape = marks::unmarked(&field.shape);
        let mut attributes = vec![("name", element.local.as_str())];
        if !is_name(&element.local) {
            return Err(format!("`{}` is no name of XML", element.local));
        }
        if presence(shape) == Presence::Nillable {
            attributes.push(("nillable", "true"));
        }
        let mut paper = Paper::at(1);
        self.schemas.typed_element(&element.namespace, &mut attributes, shape, &mut paper)?;
        self.schemas.settle()?;
        self.schemas.add_element(element, paper.out)
    }
}

/// What a part of a message is.
pub(super) enum Part {
    /// A global element.
    Element(QName),
    /// A type alone, as the style `rpc` has it.
    Type(QName),
}

/// Whether an element that is a value of its own would be read as one around parameters: it is called as those are, and its
/// type has nothing but elements.
fn is_alike(operation: &str, element: &QName, shape: &Shape) -> bool {
    let usual = element.local.strip_suffix("Response").unwrap_or(&element.local) == operation;
    if !(usual || element.local == operation) || names::of_shape(shape).namespace != element.namespace {
        return false;
    }
    let plain = |members: &Struct| {
        let own = |field: &Field| {
            matches!(Mark::of(&field.shape), Some(Mark::Attribute(_) | Mark::Text | Mark::Choices))
        };
        !members.fields.iter().any(own)
    };
    match shape {
        Shape::Struct(members) => members.get().is_some_and(plain),
        Shape::Union(family) => family.get().is_some_and(is_family),
        // A list is a type of one repeated element.
        _ => shape.element().is_some(),
    }
}
