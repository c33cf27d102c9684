//! Interfaces, dispinterfaces and classes.
//!
//! An interface of another language has several bases and signals; MIDL has one base and no signals. So the
//! operations of all but the first base are listed in the interface itself, in the order of the model, which
//! is the order of method numbers; and own signals become an interface of their own, which listeners
//! implement. Its name ends in `Events`, and its documentation says whose it is, which is how the reader
//! finds out (`made.rs`).
//!
//! The results of a method follow `Style`: an HRESULT with `out` parameters, the bare result, or the result
//! of a procedure. What the reader makes of the text must be the interface that was printed: same numbers,
//! same bytes.

use super::super::ids::{iid, plain, sink_iid};
use super::super::made::told_by;
use super::super::omitted;
use super::declare::DeclarationPosition;
use super::{Printer, comment, escaped, ident, is_help};
use crate::unique::Unique;
use everywire_model::contract::{SUCCESS, note};
use everywire_model::shape::TextKind;
use everywire_model::{Attribute, Direction, Interface, InterfaceKind, Operation, Parameter, Shape, Signal};
use std::fmt::Write;

impl Printer {
    /// An interface of COM, or of remote procedures where it has an identity of the language `dce`.
    pub(super) fn interface(&mut self, interface: &Interface, out: &mut String) {
        let syntax = interface.identities.iter().find(|(language, _)| language == "dce").map(|(_, id)| id);
        let mut attributes = Vec::new();
        match syntax {
            Some(syntax) => {
                let (uuid, version) = syntax.split_once('/').unwrap_or(("", syntax));
                if !uuid.is_empty() {
                    attributes.push(format!("uuid({uuid})"));
                }
                attributes.push(format!("version({version})"));
                let places = interface.identities.iter().filter(|(language, _)| language == "endpoint");
                let places: Vec<String> =
                    places.map(|(_, place)| format!("\"{}\"", escaped(place, false))).collect();
                if !places.is_empty() {
                    attributes.push(format!("endpoint({})", places.join(", ")));
                }
            }
            None => {
                attributes.push("object".to_owned());
                attributes.push(format!("uuid({})", iid(interface)));
            }
        }
        if interface.kind == InterfaceKind::Dual {
            attributes.push("dual".to_owned());
        }
        attributes.push("pointer_default(unique)".to_owned());
        self.head(interface, attributes, out);
        let name = ident(&interface.name);
        let base = match (interface.bases.first(), syntax) {
            (Some(base), _) => format!(" : {}", ident(&base.name)),
            (None, None) => " : IUnknown".to_owned(),
            (None, Some(_)) => String::new(),
        };
        let _ = write!(out, "interface {name}{base}\n{{\n");
        let listener = self.listener(interface);
        self.signals(interface, listener.as_deref(), out);
        // What the first base answers comes first; what other bases add is listed here, by the same numbers.
        let first = interface.bases.first().map_or(0, |base| base.operations.len());
        let style = if syntax.is_some() { Style::Procedure } else { Style::Object };
        self.members(interface, first, style, out);
        out.push_str("};\n");
        if let Some(listener) = listener {
            self.sink(interface, &listener, out);
        }
    }

    /// A dispinterface: its methods are called by DISPID.
    pub(super) fn dispinterface(&mut self, interface: &Interface, out: &mut String) {
        self.head(interface, vec![format!("uuid({})", iid(interface))], out);
        let _ = write!(out, "dispinterface {}\n{{\n    properties:\n    methods:\n", ident(&interface.name));
        self.signals(interface, None, out);
        let first = interface.bases.first().map_or(0, |base| base.operations.len());
        self.members(interface, first, Style::Dispatch, out);
        out.push_str("};\n");
    }

    /// Sources are listed once each, in the order of the signals.
    pub(super) fn class(&mut self, class: &Interface, out: &mut String) {
        self.head(class, vec![format!("uuid({})", iid(class))], out);
        let _ = write!(out, "coclass {}\n{{\n", ident(&class.name));
        let word = |interface: &Interface| match interface.kind {
            InterfaceKind::Dispatch => "dispinterface",
            _ => "interface",
        };
        for (index, base) in class.bases.iter().enumerate() {
            let default = if index == 0 { "[default] " } else { "" };
            let _ = writeln!(out, "    {default}{} {};", word(base), ident(&base.name));
        }
        let mut sources: Vec<&Interface> = Vec::new();
        for (source, _) in class.signals.iter().filter_map(|signal| signal.sink.as_ref()) {
            if !sources.iter().any(|known| known.name == source.name) {
                sources.push(source);
            }
        }
        for (index, source) in sources.iter().enumerate() {
            let default = if index == 0 { "default, " } else { "" };
            let _ = writeln!(out, "    [{default}source] {} {};", word(source), ident(&source.name));
        }
        out.push_str("};\n");
    }

    /// The attributes before an interface, with its documentation as `helpstring` or as a comment.
    fn head(&mut self, interface: &Interface, mut attributes: Vec<String>, out: &mut String) {
        out.push('\n');
        if is_help(&interface.doc) {
            attributes.push(format!("helpstring(\"{}\")", escaped(&interface.doc, false)));
        } else {
            comment(&interface.doc, "", out);
        }
        let _ = writeln!(out, "[\n    {}\n]", attributes.join(",\n    "));
    }

    /// The methods from number `first` on. `names` keeps overloads apart, which MIDL has not.
    fn members(&mut self, interface: &Interface, first: usize, style: Style, out: &mut String) {
        let mut names = Unique::default();
        for (index, operation) in interface.operations.iter().enumerate().skip(first) {
            self.place = format!("{}.{}", interface.name, operation.label);
            let mut attributes = Vec::new();
            if let Some(id) = operation.id {
                attributes.push(format!("id({id})"));
            }
            if let Some(codes) = note(&operation.notes, SUCCESS).filter(|_| style == Style::Object) {
                let list = if codes.is_empty() { String::new() } else { format!("({codes})") };
                attributes.push(format!("{SUCCESS}{list}"));
            }
            if note(&operation.notes, omitted::VARARG).is_some() {
                attributes.push(omitted::VARARG.to_owned());
            }
            let property = interface.attribute_of(index);
            let indexed = if property.is_none() { indexed(interface, operation) } else { None };
            let name = match (property, indexed) {
                (Some((attribute, _)), _) => {
                    attributes.push(access(operation, attribute, index).to_owned());
                    ident(&attribute.name)
                }
                (None, Some((access, name))) => {
                    attributes.push(access.to_owned());
                    ident(name)
                }
                (None, None) => names.name(&ident(&operation.label)),
            };
            if operation.oneway && style == Style::Procedure {
                attributes.push("maybe".to_owned());
            }
            // Of what reads a property nobody need say so.
            let reads = indexed.is_some_and(|(access, _)| access == GET);
            if operation.idempotent && property.is_none() && !reads {
                attributes.push("idempotent".to_owned());
            }
            if is_help(&operation.doc) {
                attributes.push(format!("helpstring(\"{}\")", escaped(&operation.doc, false)));
            } else {
                comment(&operation.doc, "    ", out);
            }
            let lead =
                if attributes.is_empty() { String::new() } else { format!("[{}] ", attributes.join(", ")) };
            // A contract of another language, in which nobody says how large a buffer is.
            let foreign = plain(&interface.id).is_none();
            let text = self.method(&name, operation, property.is_some(), foreign, style);
            let called = match property {
                Some((attribute, _)) => accessor(operation, attribute, index) + &name,
                None if indexed.is_some() => ident(&operation.name),
                None => name,
            };
            self.raises(&called, operation, out);
            let _ = writeln!(out, "    {lead}{text};");
        }
    }

    /// What a method may raise: a pragma, and before the interface what nothing has defined yet.
    fn raises(&mut self, name: &str, operation: &Operation, out: &mut String) {
        let named: Vec<String> = operation.raises.iter().map(|raised| ident(&raised.name)).collect();
        if named.is_empty() {
            return;
        }
        for raised in operation.raises.iter() {
            let mut text = String::new();
            self.exception(raised, &mut text);
            self.pending.push_str(&text);
        }
        let _ = writeln!(out, "#pragma raises {name}({})", named.join(", "));
    }

    /// Return type, name and parameters. `property` is set for accessors, whose value has a name of its own.
    fn method(
        &mut self,
        name: &str,
        operation: &Operation,
        property: bool,
        foreign: bool,
        style: Style,
    ) -> String {
        let beside: Vec<(String, bool)> = operation
            .parameters
            .iter()
            .map(|parameter| {
                let pointer = parameter.direction != Direction::In
                    || matches!(parameter.field.shape.resolved(), Shape::Optional(_) | Shape::Pointer(_));
                (parameter.field.name.to_string(), pointer)
            })
            .collect();
        let mut list: Vec<&Parameter> = operation.parameters.iter().collect();
        // What a procedure returns after other results is the last of these.
        let last =
            list.last().copied().filter(|last| style == Style::Procedure && last.field.name == "return");
        if last.is_some() {
            list.pop();
        }
        let mut parameters = Vec::with_capacity(list.len() + 1);
        let mut names = Unique::default();
        for parameter in list {
            let (direction, place) = match parameter.direction {
                Direction::In => ("in", DeclarationPosition::In),
                Direction::Out => ("out", DeclarationPosition::Out),
                Direction::InOut => ("in, out", DeclarationPosition::Out),
            };
            let shape = &parameter.field.shape;
            if parameter.direction == Direction::InOut && foreign && is_text(shape) {
                // Where nobody says how large its buffer is, text goes in and comes out as two.
                let said = self.say(shape, DeclarationPosition::In, &beside);
                let name = names.name(&ident(&parameter.field.name));
                parameters.push(format!("{}{}", said.attributes("in"), said.declared(&name)));
                let said = self.say(shape, DeclarationPosition::Out, &beside);
                let name = names.name(&format!("{name}_out"));
                parameters.push(format!("{}{}", said.attributes("out"), said.declared(&name)));
                continue;
            }
            // Text that goes both ways stays in its place. The caller's buffer is used both ways.
            let both = parameter.direction == Direction::InOut && is_text(shape);
            let place = if both { DeclarationPosition::Element } else { place };
            let said = self.say(shape, place, &beside);
            let name = names.name(&ident(&parameter.field.name));
            let direction = direction.to_owned() + &omitted::printed(operation, &parameter.field.name);
            parameters.push(format!("{}{}", said.attributes(&direction), said.declared(&name)));
        }
        let returns = match (style, last) {
            (Style::Object, _) => {
                if !matches!(operation.returns, Shape::Void) {
                    let said = self.say(&operation.returns, DeclarationPosition::Out, &beside);
                    let name = names.name(if property { "value" } else { "result" });
                    // As the only result it is one for languages that have such, else it is one of several.
                    let direction = if operation.results.fields().len() == 1 { "out, retval" } else { "out" };
                    let result = format!("{}{}", said.attributes(direction), said.declared(&name));
                    // Of several results it is the first.
                    let at = if direction == "out" { 0 } else { parameters.len() };
                    parameters.insert(at, result);
                }
                "HRESULT".to_owned()
            }
            (_, Some(last)) => self.element(&last.field.shape),
            (_, None) => self.element(&operation.returns),
        };
        let space = if returns.ends_with('*') { "" } else { " " };
        let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
        let parameters =
            if parameters == "void" && style == Style::Dispatch { String::new() } else { parameters };
        format!("{returns}{space}{name}({parameters})")
    }

    /// The name of the interface that a listener implements, where the contract has signals and names none.
    fn listener(&mut self, interface: &Interface) -> Option<String> {
        let made = own_signals(interface).any(|signal| signal.sink.is_none());
        made.then(|| self.names.name(&format!("{}Events", ident(&interface.name))))
    }

    /// Says whose methods are the signals of an interface.
    fn signals(&self, interface: &Interface, listener: Option<&str>, out: &mut String) {
        if let Some(listener) = listener {
            let _ = writeln!(out, "#pragma signals {listener}");
        }
        let mut sinks: Vec<(&Interface, Vec<usize>)> = Vec::new();
        for (sink, index) in own_signals(interface).filter_map(|signal| signal.sink.as_ref()) {
            match sinks.iter_mut().find(|(known, _)| known.name == sink.name) {
                Some((_, indices)) => indices.push(*index),
                None => sinks.push((sink, vec![*index])),
            }
        }
        for (sink, mut indices) in sinks {
            if !self.contract.contains(sink.name.as_ref()) {
                continue;
            }
            indices.sort_unstable();
            let whole = indices.iter().copied().eq(sink.inherited..sink.operations.len());
            let methods = indices.iter().filter_map(|index| sink.operations.get(*index));
            let methods: Vec<String> = methods.map(|method| ident(&method.label)).collect();
            let list = if whole { String::new() } else { format!("({})", methods.join(", ")) };
            let _ = writeln!(out, "#pragma signals {}{list}", ident(&sink.name));
        }
    }

    fn sink(&mut self, interface: &Interface, name: &str, out: &mut String) {
        let signals: Vec<&Signal> = own_signals(interface).filter(|signal| signal.sink.is_none()).collect();
        let uuid = sink_iid(interface);
        let _ = write!(
            out,
            "\n[\n    object,\n    uuid({uuid}),\n    pointer_default(unique),\n    helpstring(\"{}\")\n]\n",
            told_by(&interface.name)
        );
        let _ = write!(out, "interface {name} : IUnknown\n{{\n");
        let mut names = Unique::default();
        for signal in signals {
            self.place = format!("{}.{}", interface.name, signal.label);
            comment(&signal.doc, "    ", out);
            let mut list = Vec::new();
            for field in signal.fields.fields() {
                let said = self.say(&field.shape, DeclarationPosition::In, &[]);
                list.push(format!("{}{}", said.attributes("in"), said.declared(&ident(&field.name))));
            }
            let list = if list.is_empty() { "void".to_owned() } else { list.join(", ") };
            let _ = writeln!(out, "    HRESULT {}({list});", names.name(&ident(&signal.label)));
        }
        out.push_str("};\n");
    }
}

/// The signals that no base has.
fn own_signals(interface: &Interface) -> impl Iterator<Item = &Signal> {
    let inherited = |name: &[u8]| interface.bases.iter().any(|base| base.signal(name).is_some());
    interface.signals.iter().filter(move |signal| !inherited(signal.name.as_bytes()))
}

/// Whether a value is text that stands in place, or behind a pointer.
fn is_text(shape: &Shape) -> bool {
    matches!(shape.resolved(), Shape::Text(text) if text.kind != TextKind::Counted)
}

/// How the results of methods travel; see the builder's `Style`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// An HRESULT, and results as `out` parameters.
    Object,
    /// Results as they are.
    Dispatch,
    /// The result of a procedure, behind all others.
    Procedure,
}

/// What reads a property.
const GET: &str = "propget";

/// The attribute of an accessor of a property.
fn access(operation: &Operation, attribute: &Attribute, index: usize) -> &'static str {
    if attribute.getter == index {
        GET
    } else if operation.name.starts_with("putref_") {
        "propputref"
    } else {
        "propput"
    }
}

/// The attribute and the property of an accessor that belongs to no attribute of the model: one of a property with
/// parameters, or one that sets a property which cannot be read. Callers by name know the property by that name alone, so an
/// interface that they can call says it so. `None`: another method, or one that the reader would take for something else.
fn indexed<'o>(interface: &Interface, operation: &'o Operation) -> Option<(&'static str, &'o str)> {
    if !matches!(interface.kind, InterfaceKind::Dual | InterfaceKind::Dispatch)
        || operation.label != operation.name
    {
        return None;
    }
    let prefixes = [("get_", GET), ("put_", "propput"), ("putref_", "propputref")];
    let (access, property) = prefixes
        .into_iter()
        .find_map(|(prefix, access)| Some((access, operation.name.strip_prefix(prefix)?)))?;
    if !property.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        return None;
    }
    let returns = !matches!(operation.returns, Shape::Void);
    let is_one = if access == GET {
        // Without parameters it would be an attribute. What has them is read as what changes nothing.
        returns && !operation.parameters.is_empty() && operation.idempotent
    } else {
        let value = operation.parameters.last().is_some_and(|value| value.direction == Direction::In);
        // A setter alone with its value would be joined to an attribute without one.
        let joins = operation.parameters.len() == 1
            && interface.attributes.iter().any(|held| held.name == property && held.setter.is_none());
        value && !returns && !joins
    };
    is_one.then_some((access, property))
}

/// What stands before the name of a property in that of its accessor.
fn accessor(operation: &Operation, attribute: &Attribute, index: usize) -> String {
    match access(operation, attribute, index) {
        "propget" => "get_",
        "propputref" => "putref_",
        _ => "put_",
    }
    .to_owned()
}
