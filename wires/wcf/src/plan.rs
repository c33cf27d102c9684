//! What one operation looks like on the wire: actions, elements, faults. Made once for each connection and
//! operation.
//!
//! A contract names things as a programmer does; a plan has the words as the envelope has them: the
//! WS-Addressing action, the element that wraps the arguments, the order and namespaces of the members.
//! `everywire_idl::wsdl::names` knows WCF's rules for them; here they are applied once, so that a call
//! writes them without looking anything up.
//!
//! States: none. Invariant: a plan does not change and is shared in an `Arc`.

use crate::values::{Layout, Naming, QName, Types};
use bytes::Bytes;
use everywire_idl::wsdl::{Port, names};
use everywire_model::contract::note;
use everywire_model::shape::{Field, Hold, Name, Struct};
use everywire_model::{Interface, Operation, Shape};
use std::sync::{Arc, OnceLock};

/// One operation on the wire.
#[derive(Debug)]
pub struct Plan {
    /// The action of requests.
    pub action: Arc<str>,
    /// What requests without addressing say outside of the envelope; may be empty.
    pub soap_action: Arc<str>,
    /// The same at each port, where the bindings of a description say different things; else empty.
    pub by_port: Vec<(Port, Arc<str>)>,
    /// The action of replies.
    pub reply_action: Arc<str>,
    /// The action as sessions hand it on: what stands in `Incoming::operation`, without a copy for each
    /// call.
    pub asked: Bytes,
    /// The operation's name.
    pub name: Box<str>,
    /// Requests.
    pub arguments: Layout,
    /// Replies.
    pub results: Layout,
    /// Headers that requests, or replies, carry parameters in, behind the name of the parameter.
    pub headers: Vec<(String, QName)>,
    /// The faults that the contract declares.
    pub faults: Vec<DeclaredFault>,
    /// Whether there is no reply.
    pub oneway: bool,
    /// Whether callers who succeed begin (`true`), or end (`false`), to listen to callbacks; `None`: the
    /// operation has nothing to do with it.
    pub listening: Option<bool>,
    /// The types of the contract, if the operation has values of any type.
    pub types: Option<Arc<Types>>,
    /// Whether no contract here has the operation: messages are passed on as they came.
    pub passes: bool,
    /// What is known of the elements around values.
    pub wrapping: Wrapping,
}

/// What is known of the elements around the values of requests and replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrapping {
    /// Their names are a guess: no contract is at hand.
    Unknown,
    /// They are those of the style rpc: by the operation's name, in a namespace that bindings say.
    Rpc,
    /// The contract says their names.
    Known,
}

/// A fault that a contract declares.
#[derive(Debug)]
pub struct DeclaredFault {
    /// How the contract names the exception.
    pub id: Name,
    /// Its detail's element.
    pub detail: QName,
    /// The action of the fault.
    pub action: Arc<str>,
    /// Whether the element alone does not say which exception it is: the detail tells its type (`xsi:type`).
    pub told: bool,
    /// Whether it is known by its type alone: it extends the one that the contract declares.
    pub derived: bool,
}

impl Plan {
    /// The plan of an operation of an interface.
    /// Without an interface (a typed call whose contract is not at hand) names follow from the operation's
    /// notes alone.
    pub fn of(interface: Option<&Interface>, operation: &Operation) -> Arc<Self> {
        let action = names::action(interface, operation);
        Self::with_action(interface, operation, action, names::reply_action(interface, operation))
    }

    /// The plan of a callback that a service makes: its contract may leave the action to the service's.
    pub fn of_callback(service: &Interface, callbacks: &Interface, operation: &Operation) -> Arc<Self> {
        if is_noted(operation) {
            return Self::of(Some(callbacks), operation);
        }
        let of = names::contract(service);
        Self::in_contract(callbacks, operation, &of.namespace, &of.local)
    }

    /// The plan of an operation of whoever opened the connection, as far as its own contract tells: a callback contract
    /// without notes is that of the service it is named after.
    pub fn of_backward(interface: Option<&Interface>, operation: &Operation) -> Arc<Self> {
        let Some(callbacks) = interface.filter(|_| !is_noted(operation)) else {
            return Self::of(interface, operation);
        };
        let of = names::contract(callbacks);
        match of.local.strip_suffix("Callback") {
            Some(service) => Self::in_contract(callbacks, operation, &of.namespace, service),
            None => Self::of(interface, operation),
        }
    }

    /// The plan of a callback whose action is that of another contract.
    fn in_contract(callbacks: &Interface, operation: &Operation, namespace: &str, name: &str) -> Arc<Self> {
        let action = names::join(namespace, name, names::operation(operation));
        let reply = format!("{action}Response");
        Self::with_action(Some(callbacks), operation, action, reply)
    }

    /// The plan of an operation that only its request tells of.
    /// `action` is the request's, or empty where it is not known; the names of replies follow WCF's rule,
    /// which adds `Response`.
    pub fn guess(action: &str, namespace: &str, wrapper: &str) -> Arc<Self> {
        let none = Shape::Struct(Hold::new(Struct { name: "".into(), id: "".into(), fields: vec![].into() }));
        let name = names::last_part(action.rsplit('/').next().unwrap_or(action));
        let layout = |wrapper: String| {
            let wrapper = QName::new(namespace, wrapper);
            Layout::new(Some(wrapper), namespace, &none, &format!("{name}Result"), &[])
        };
        Arc::new(Self {
            action: action.into(),
            soap_action: action.into(),
            by_port: Vec::new(),
            reply_action: format!("{action}Response").into(),
            asked: Bytes::copy_from_slice(action.as_bytes()),
            name: name.into(),
            arguments: layout(wrapper.to_owned()),
            results: layout(format!("{wrapper}Response")),
            headers: Vec::new(),
            faults: Vec::new(),
            oneway: false,
            listening: listening(name),
            types: None,
            passes: false,
            wrapping: Wrapping::Unknown,
        })
    }

    /// The plan of an operation that nobody here knows and that is passed on: no answer of it is read.
    /// There is one for all of them, since it says nothing of the operation.
    pub fn passed() -> Arc<Self> {
        static PLAN: OnceLock<Arc<Plan>> = OnceLock::new();
        Arc::clone(PLAN.get_or_init(|| Self::guess("", "", "").passing()))
    }

    /// The same of an operation that nobody here knows. Only a plan that nobody shares yet can be changed:
    /// it is made right before.
    pub fn passing(self: Arc<Self>) -> Arc<Self> {
        match Arc::try_unwrap(self) {
            Ok(plan) => Arc::new(Self { passes: true, listening: None, ..plan }),
            Err(shared) => shared,
        }
    }

    fn with_action(
        interface: Option<&Interface>,
        operation: &Operation,
        action: String,
        reply_action: String,
    ) -> Arc<Self> {
        let name = names::operation(operation);
        // An `out` parameter may be called `return`, too: JAX-WS calls elements so.
        let returns = !matches!(operation.returns, Shape::Void);
        let result = if returns { names::result_element(operation) } else { String::new() };
        // The notes of the contract say which parameters travel as SOAP headers, and by which name.
        let headers: Vec<(String, QName)> = operation
            .notes
            .iter()
            .filter_map(|(what, value)| {
                let parameter = what.strip_prefix("wcf:header:")?;
                Some((parameter.to_owned(), QName::parse(value)?))
            })
            .collect();
        let layout = |wrapper: Option<QName>, fields: &Shape, reply: bool| {
            let namespace = names::members(interface, operation, reply);
            let held = |field: &Field| headers.iter().any(|(name, _)| *name == field.name);
            let own: &[_] = if fields.fields().iter().any(held) { &headers } else { &[] };
            Layout::new(wrapper, &namespace, fields, if reply { &result } else { "" }, own)
        };
        // An exception is known by its identifier; contracts written by hand have names only.
        let declared = |detail: &Hold<Struct>| {
            let element = names::detail(operation, detail);
            let is_derived = |detail: &Struct| names::base_detail(operation, detail).is_some();
            let alike =
                |other: &&Hold<Struct>| !is_derived(other) && names::detail(operation, other) == element;
            let derived = is_derived(detail);
            DeclaredFault {
                id: if detail.id.is_empty() { detail.name.clone() } else { detail.id.clone() },
                action: names::fault_action(interface, operation, detail).into(),
                told: derived || operation.raises.iter().filter(alike).nth(1).is_some(),
                derived,
                detail: element,
            }
        };
        let action: Arc<str> = action.into();
        let said = note(&operation.notes, names::SOAP_ACTION);
        let soap_action = said.map_or_else(|| Arc::clone(&action), Into::into);
        Arc::new(Self {
            asked: Bytes::copy_from_slice(action.as_bytes()),
            by_port: by_port(interface, operation, &soap_action),
            soap_action,
            action,
            reply_action: reply_action.into(),
            name: name.into(),
            arguments: layout(names::request_wrapper(interface, operation), &operation.arguments, false),
            results: layout(names::response_wrapper(interface, operation), &operation.results, true),
            headers,
            faults: operation.raises.iter().map(declared).collect(),
            oneway: operation.oneway,
            listening: listening(name),
            types: Types::of(interface, operation),
            passes: false,
            wrapping: match interface {
                None => Wrapping::Unknown,
                Some(_) if note(&operation.notes, "wcf:style") == Some("rpc") => Wrapping::Rpc,
                Some(_) => Wrapping::Known,
            },
        })
    }

    /// What a request says outside of its envelope, to an endpoint that a description names: at this address, or the only one
    /// with this version of SOAP.
    #[cold]
    pub fn action_at(&self, address: &str, soap: &str) -> &Arc<str> {
        let at = |here: &(Port, _)| here.0.soap == soap && here.0.address.eq_ignore_ascii_case(address);
        let mut speak = self.by_port.iter().filter(|(port, _)| port.soap == soap);
        let only = speak.next().filter(|_| speak.next().is_none());
        let found = self.by_port.iter().find(|here| at(here)).or(only);
        found.map_or(&self.soap_action, |(_, action)| action)
    }

    /// How the values of its requests are told, or of its answers.
    #[inline]
    pub(crate) fn naming(&self, is_answer: bool) -> Naming {
        match (self.wrapping, is_answer) {
            (Wrapping::Rpc, false) if !self.passes => Naming::Parameters,
            (Wrapping::Rpc, true) if !self.passes && self.results.begins_in_body() => Naming::Returned,
            _ => Naming::Names,
        }
    }

    /// Whether the operation has this header.
    pub(crate) fn understands(&self, namespace: &str, local: &str) -> bool {
        self.parameter(namespace, local).is_some()
    }

    /// The parameter that this header carries.
    pub(crate) fn parameter(&self, namespace: &str, local: &str) -> Option<&str> {
        let is = |held: &QName| held.local == *local && held.namespace == *namespace;
        self.headers.iter().find(|(_, held)| is(held)).map(|(name, _)| &**name)
    }

    /// The declared fault with this exception.
    pub fn fault(&self, exception: &Struct) -> Option<&DeclaredFault> {
        let id = if exception.id.is_empty() { &exception.name } else { &exception.id };
        self.faults.iter().find(|declared| declared.id == *id)
    }

    /// The exception that a fault's detail is: an element of this namespace and name, which may tell its type. Several may be
    /// called so: what extends a declared type, and all of a service to Axis (`fault`). Then the type says which it is.
    pub(crate) fn told(
        &self,
        (namespace, local): &(String, String),
        kind: Option<&(String, String)>,
    ) -> Option<&DeclaredFault> {
        let named = |exact: bool| {
            let mut found = self.faults.iter().filter(move |declared| {
                declared.detail.local == *local && (!exact || declared.detail.namespace == *namespace)
            });
            Some((found.next()?, found))
        };
        if let Some((first, others)) = named(true).or_else(|| named(false)) {
            let mut all = std::iter::once(first).chain(others);
            if let Some((namespace, local)) = kind {
                let is_kind = |declared: &&DeclaredFault| {
                    QName::parse(&declared.id)
                        .is_some_and(|id| id.namespace == *namespace && id.local == *local)
                };
                // A type that has a fault of its own may come in the element of its base.
                return match all.find(is_kind).or_else(|| self.faults.iter().find(is_kind)) {
                    None if !first.told => Some(first),
                    found => found,
                };
            }
            let mut declared = all.filter(|declared| !declared.derived);
            return declared.next().filter(|_| declared.next().is_none());
        }
        // Axis 1 calls the element of a detail as the exception's class is called in Java, `shop.Closed`.
        let (_, class) = local.rsplit_once('.').filter(|_| namespace.is_empty())?;
        self.faults.iter().find(|declared| QName::parse(&declared.id).is_some_and(|id| id.local == class))
    }
}

/// What each port says in `SOAPAction`, where they differ.
fn by_port(interface: Option<&Interface>, operation: &Operation, usual: &Arc<str>) -> Vec<(Port, Arc<str>)> {
    if operation.notes.iter().all(|(what, _)| !what.starts_with(names::PORT_ACTION)) {
        return Vec::new();
    }
    let notes = interface.map_or(&[][..], |interface| &interface.notes);
    let ports = notes.iter().filter(|(what, _)| what == "wcf:port").map(|(_, port)| Port::parse(port));
    let with_said = |port: Port| {
        let own = format!("{}{}/{}", names::PORT_ACTION, port.service, port.name);
        let said = note(&operation.notes, &own).map_or_else(|| Arc::clone(usual), Into::into);
        (port, said)
    };
    ports.map(with_said).collect()
}

/// Whether the contract says the action.
fn is_noted(operation: &Operation) -> bool {
    operation.notes.iter().any(|(name, _)| name == "wcf:action")
}

/// Duplex contracts that choose whom they call back do so by operations of these names: a convention of
/// this library, since WCF has none. A client whose contract has neither listens from the beginning.
fn listening(name: &str) -> Option<bool> {
    if name.eq_ignore_ascii_case("subscribe") {
        Some(true)
    } else if name.eq_ignore_ascii_case("unsubscribe") {
        Some(false)
    } else {
        None
    }
}

/// The number of the operation that a request asks for: by its action, or in Clark notation by the first element of its
/// body, or by nothing where it has neither.
#[must_use]
pub fn index_of(interface: &Interface, asked: &[u8]) -> Option<usize> {
    let asked = std::str::from_utf8(asked).ok()?;
    // Clark notation, `{NAMESPACE}NAME`: a Basic request without SOAPAction has only its body to say what
    // it asks.
    if asked.starts_with('{') {
        let asked = QName::parse(asked)?;
        return interface.operations.iter().position(|operation| {
            match names::request_wrapper(Some(interface), operation) {
                Some(wrapper) => wrapper == asked,
                None => operation
                    .arguments
                    .fields()
                    .first()
                    .is_some_and(|field| field.name == asked.local.as_str()),
            }
        });
    }
    // What several operations say alike tells none of them.
    let only = |is: &dyn Fn(&Operation) -> bool| {
        let mut found = interface.operations.iter().enumerate().filter(|(_, operation)| is(operation));
        let first = found.next();
        first.filter(|_| found.next().is_none()).map(|(at, _)| at)
    };
    // Neither an action nor a body: an operation without arguments, and without an element around them. Not one that is known
    // by its action alone, as WS-Transfer's Get, which is served beside every contract.
    if asked.is_empty() {
        return only(&|operation| {
            let noted = |what: &str| note(&operation.notes, what);
            let said = noted(names::SOAP_ACTION).or_else(|| noted("wcf:action"));
            said.is_none_or(str::is_empty)
                && operation.arguments.fields().is_empty()
                && names::request_wrapper(Some(interface), operation).is_none()
        });
    }
    let of = |operation: &Operation| names::action(Some(interface), operation) == asked;
    // At one port or another.
    let is_said = |(what, said): &(Name, Name)| said == asked && what.starts_with(names::SOAP_ACTION);
    let said = || only(&|operation| operation.notes.iter().any(is_said));
    // What WS-Addressing calls a request of which the description says no action (Metadata, 4.4.4). Axis2 says it in SOAPAction, too.
    // Names that inputs have of their own are not known here.
    let by_default = || {
        let contract = names::contract(interface);
        let (namespace, port) = (&contract.namespace, &contract.local);
        only(&|operation| {
            let name = format!("{}Request", names::operation(operation));
            note(&operation.notes, names::SOAP_ACTION) == Some("")
                && names::default_action(namespace, port, &name) == asked
        })
    };
    only(&of).or_else(said).or_else(by_default).or_else(|| {
        // Callbacks of a contract written without notes: WCF names them by the service's contract.
        let contract = names::contract(interface);
        let service = contract.local.strip_suffix("Callback")?;
        interface.operations.iter().position(|operation| {
            names::join(&contract.namespace, service, names::operation(operation)) == asked
        })
    })
}

/// Whether several operations say this in SOAPAction, so that it tells none of them: their bodies differ (WS-I Basic
/// Profile 1.1, R2710).
pub(crate) fn is_shared(interface: &Interface, said: &str) -> bool {
    let says = |operation: &&Operation| names::soap_action(Some(interface), operation) == said;
    interface.operations.iter().filter(says).nth(1).is_some()
}
