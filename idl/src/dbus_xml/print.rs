//! Interfaces to elements.
//!
//! Two uses: a contract as a file, and the answer of a served object. In both a member that D-Bus cannot say is left out, and a comment
//! in its place says why: the rest can be called, since every message names its method. A contract of which nothing is left is an error.
//!
//! State: the text so far. A member is printed whole or not at all: the text is cut back to its beginning
//! where a type in it has no signature. An interface stands once in a node, and in the answer of an object
//! each of its bases stands before it.
//!
//! All names pass `names` and `escape`, so text of another language cannot become markup. `INTERFACES` bounds
//! what inheritance can multiply, and signatures are bounded by their own 255 bytes.

use super::annotations::{
    DEPRECATED, DOCUMENTATION, EMITS, GET_RAISES, IDEMPOTENT, IS_DEPRECATED, NO_REPLY, RAISES, SET_RAISES,
    class_annotation, class_of, emits, kept, kept_of_signals,
};
use super::names;
use crate::signature::{self, SignatureError};
use crate::unprintable::Unprintable;
use crate::xml::{comment, escape};
use everywire_model::shape::Struct;
use everywire_model::{Attribute, Contract, Direction, Interface, Notify, Operation, Shape, Signal};
use std::collections::HashSet;

/// The document type of the specification; we never fetch it.
const HEAD: &str = "<!DOCTYPE node PUBLIC \"-//freedesktop//DTD D-BUS Object Introspection 1.0//EN\"\n \
                    \"http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd\">\n<node>\n";
/// Interfaces of a node: inheritance may multiply them. Beyond it, bases are left out in silence.
const INTERFACES: usize = 4096;

/// Why a method cannot be said that has no reply and raises exceptions.
const RAISES_NOTHING: &str = "a method without a reply raises nothing";

/// A whole contract.
pub(super) fn contract(contract: &Contract) -> Result<String, Unprintable> {
    let mut printer = Printer { strict: true, ..Printer::new() };
    let mut done = HashSet::new();
    for interface in contract.interfaces() {
        // Two interfaces of another language may have one name on D-Bus: the first is printed.
        if done.insert(names::of_interface(interface).into_owned()) {
            printer.interface(interface);
        }
    }
    printer.out.push_str("</node>\n");
    match printer.trouble {
        Some(trouble) if printer.members == 0 => Err(trouble),
        _ => Ok(printer.out),
    }
}

/// One object.
pub(super) fn node(interfaces: &[&Interface], children: &[String]) -> String {
    let mut all = Vec::new();
    let mut done = HashSet::new();
    for interface in interfaces {
        // An object answers for its bases as well, and D-Bus knows no inheritance.
        with_bases(interface, &mut all, &mut done);
    }
    let mut printer = Printer::new();
    for interface in all {
        printer.interface(interface);
    }
    for child in children {
        printer.open(1, "node", &[("name", child)]);
        printer.out.push_str("/>\n");
    }
    printer.out.push_str("</node>\n");
    printer.out
}

/// An interface after all it inherits from, each once.
fn with_bases<'i>(interface: &'i Interface, all: &mut Vec<&'i Interface>, done: &mut HashSet<String>) {
    if done.len() == INTERFACES || !done.insert(names::of_interface(interface).into_owned()) {
        return;
    }
    for base in interface.bases.iter() {
        with_bases(base, all, done);
    }
    all.push(interface);
}

struct Printer {
    out: String,
    /// Whether a method stays out whose exceptions cannot be said. A served object shows it without them.
    strict: bool,
    /// How many members were printed.
    members: usize,
    /// The first member that was left out.
    trouble: Option<Unprintable>,
}

impl Printer {
    fn new() -> Self {
        Self { out: HEAD.to_owned(), strict: false, members: 0, trouble: None }
    }

    /// Own members alone: inherited ones are printed with their bases.
    fn interface(&mut self, interface: &Interface) {
        let name = names::of_interface(interface);
        self.open(1, "interface", &[("name", &name)]);
        self.out.push_str(">\n");
        self.notes(2, &interface.doc);
        for (number, operation) in interface.operations.iter().enumerate().skip(interface.inherited) {
            if interface.attribute_of(number).is_none() {
                let member = names::of_operation(operation);
                // A served object can be called all the same, so it shows such a method without its exceptions.
                let is_refused = self.strict && operation.oneway && !operation.raises.is_empty();
                let wrong = if is_refused { Some(RAISES_NOTHING.to_owned()) } else { wrong(member) };
                self.member(interface, member, wrong, |printer| printer.method(operation, member));
            }
        }
        let mut of_signals = kept_of_signals(&interface.notes);
        for signal in interface.signals.iter() {
            if !interface.bases.iter().any(|base| base.signal(signal.name.as_bytes()).is_some()) {
                let member = names::of_signal(signal);
                let kept = of_signals.remove(&*signal.label).unwrap_or_default();
                let print = |printer: &mut Self| printer.signal(&kept, signal, member);
                self.member(interface, member, wrong(member), print);
            }
        }
        for attribute in interface.attributes.iter().filter(|own| own.getter >= interface.inherited) {
            let getter = interface.operations.get(attribute.getter);
            let setter = attribute.setter.and_then(|setter| interface.operations.get(setter));
            let property = |printer: &mut Self| printer.property(attribute, getter, setter);
            self.member(interface, &attribute.name, None, property);
        }
        self.out.push_str("  </interface>\n");
    }

    /// Prints a member whole or not at all. On an error the text is cut back to where the member began. `wrong` says what D-Bus forbids of it.
    fn member(
        &mut self,
        interface: &Interface,
        name: &str,
        wrong: Option<String>,
        print: impl FnOnce(&mut Self) -> Result<(), SignatureError>,
    ) {
        let at = self.out.len();
        let printed = match wrong {
            Some(wrong) => Err(wrong),
            None => print(self).map_err(|error| error.to_string()),
        };
        match printed {
            Ok(()) => self.members += 1,
            Err(reason) => {
                self.out.truncate(at);
                let comment = comment(&format!("{}: {reason}", names::identifier(name)));
                self.out.push_str(&format!("    {comment}\n"));
                self.trouble.get_or_insert_with(|| Unprintable {
                    language: "D-Bus introspection XML",
                    place: format!("{}.{name}", interface.name),
                    reason,
                });
            }
        }
    }

    /// A method: `in` arguments, then the result, then `out` arguments, which is the order of the values in
    /// the reply.
    fn method(&mut self, operation: &Operation, name: &str) -> Result<(), SignatureError> {
        self.open(2, "method", &[("name", name)]);
        let head = self.out.len();
        self.out.push_str(">\n");
        let body = self.out.len();
        self.notes(3, &operation.doc);
        if operation.oneway {
            self.annotation(3, NO_REPLY, "true");
        }
        if operation.idempotent {
            self.annotation(3, IDEMPOTENT, "true");
        }
        if !operation.oneway {
            self.raises(RAISES, operation)?;
        }
        let kept = kept(&operation.notes);
        self.kept(&kept);
        let goes_in = operation.parameters.iter().filter(|p| p.direction.goes_in());
        self.classes(&kept, goes_in.map(|p| &p.field.shape), |number| vec![format!(".In{number}")])?;
        let comes_out = operation.parameters.iter().filter(|p| p.direction.comes_out());
        let results = Some(&operation.returns).filter(|shape| !matches!(shape, Shape::Void)).into_iter();
        let results = results.chain(comes_out.map(|p| &p.field.shape));
        self.classes(&kept, results, |number| vec![format!(".Out{number}")])?;
        fits(operation.arguments.fields().iter().map(|field| &field.shape))?;
        fits(operation.results.fields().iter().map(|field| &field.shape))?;
        for parameter in operation.parameters.iter().filter(|p| p.direction.goes_in()) {
            self.argument(&parameter.field.shape, &parameter.field.name, Some(Direction::In))?;
        }
        if !matches!(operation.returns, Shape::Void) {
            self.argument(&operation.returns, "result", Some(Direction::Out))?;
        }
        for parameter in operation.parameters.iter().filter(|p| p.direction.comes_out()) {
            self.argument(&parameter.field.shape, &parameter.field.name, Some(Direction::Out))?;
        }
        self.end("method", head, body);
        Ok(())
    }

    /// A signal; its arguments have no direction.
    fn signal(&mut self, kept: &[(&str, &str)], signal: &Signal, name: &str) -> Result<(), SignatureError> {
        self.open(2, "signal", &[("name", name)]);
        let head = self.out.len();
        self.out.push_str(">\n");
        let body = self.out.len();
        self.notes(3, &signal.doc);
        self.kept(kept);
        let fields = signal.fields.fields().iter().map(|field| &field.shape);
        self.classes(kept, fields, |number| vec![format!(".Out{number}"), format!(".In{number}")])?;
        fits(signal.fields.fields().iter().map(|field| &field.shape))?;
        for field in signal.fields.fields() {
            self.argument(&field.shape, &field.name, None)?;
        }
        self.end("signal", head, body);
        Ok(())
    }

    fn property(
        &mut self,
        attribute: &Attribute,
        getter: Option<&Operation>,
        setter: Option<&Operation>,
    ) -> Result<(), SignatureError> {
        let read = getter.is_none_or(|getter| !matches!(getter.returns, Shape::Void));
        // A getter that returns nothing stands for a property that can only be written.
        let access = match (read, attribute.setter.is_some()) {
            (_, false) => "read",
            (false, true) => "write",
            (true, true) => "readwrite",
        };
        let mut kind = String::new();
        signature::of(&attribute.shape, &mut kind)?;
        self.open(2, "property", &[("name", &attribute.name), ("type", &kind), ("access", access)]);
        let head = self.out.len();
        self.out.push_str(">\n");
        let body = self.out.len();
        self.notes(3, getter.map_or("", |getter| &getter.doc));
        if attribute.notify != Notify::Value {
            self.annotation(3, EMITS, emits(attribute.notify));
        }
        let kept = getter.map_or_else(Vec::new, |getter| kept(&getter.notes));
        self.kept(&kept);
        self.classes(&kept, std::iter::once(&attribute.shape), |_| vec![String::new()])?;
        for (annotation, accessor) in [(GET_RAISES, getter), (SET_RAISES, setter)] {
            accessor.map_or(Ok(()), |accessor| self.raises(annotation, accessor))?;
        }
        self.end("property", head, body);
        Ok(())
    }

    /// One argument with its signature.
    fn argument(
        &mut self,
        shape: &Shape,
        name: &str,
        direction: Option<Direction>,
    ) -> Result<(), SignatureError> {
        let mut kind = String::new();
        signature::of(shape, &mut kind)?;
        self.open(3, "arg", &[("type", &kind), ("name", name)]);
        if let Some(direction) = direction {
            self.out.push_str(if direction == Direction::In {
                " direction=\"in\""
            } else {
                " direction=\"out\""
            });
        }
        self.out.push_str("/>\n");
        Ok(())
    }

    /// The errors that an operation may answer with. Where one carries what D-Bus cannot say and that is no mistake, the rest is said.
    fn raises(&mut self, annotation: &str, operation: &Operation) -> Result<(), SignatureError> {
        for raised in operation.raises.iter() {
            match exception(raised) {
                Ok(text) => self.annotation(3, annotation, &text),
                Err(error) if self.strict => return Err(error),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Qt's classes of those values that its compiler refuses without; other readers pass over them. `ends` says how the annotation of a
    /// value ends, and how one that is kept may end.
    fn classes<'s>(
        &mut self,
        kept: &[(&str, &str)],
        shapes: impl Iterator<Item = &'s Shape>,
        ends: impl Fn(usize) -> Vec<String>,
    ) -> Result<(), SignatureError> {
        let kept: HashSet<&str> = kept.iter().map(|(what, _)| *what).collect();
        for (number, shape) in shapes.enumerate() {
            let mut kind = String::new();
            signature::of(shape, &mut kind)?;
            let Some(class) = class_of(&kind) else { continue };
            if let Some(annotation) = class_annotation(&kept, &ends(number)) {
                self.annotation(3, &annotation, class);
            }
        }
        Ok(())
    }

    /// Annotations of other products, which notes keep.
    fn kept(&mut self, annotations: &[(&str, &str)]) {
        for (annotation, value) in annotations {
            self.annotation(3, annotation, value);
        }
    }

    /// Documentation, and whether this is deprecated.
    fn notes(&mut self, depth: usize, doc: &str) {
        let deprecated = doc.lines().any(|line| line == DEPRECATED);
        let lines: Vec<&str> = doc.lines().filter(|line| *line != DEPRECATED).collect();
        let text = lines.join("\n");
        if !text.trim().is_empty() {
            self.annotation(depth, DOCUMENTATION, text.trim());
        }
        if deprecated {
            self.annotation(depth, IS_DEPRECATED, "true");
        }
    }

    /// An annotation element, whole.
    fn annotation(&mut self, depth: usize, name: &str, value: &str) {
        self.open(depth, "annotation", &[("name", name), ("value", value)]);
        self.out.push_str("/>\n");
    }

    /// The start of a tag, which is left open. `escape` makes the values safe; the names are our own.
    fn open(&mut self, depth: usize, name: &str, attributes: &[(&str, &str)]) {
        for _ in 0..depth {
            self.out.push_str("  ");
        }
        self.out.push('<');
        self.out.push_str(name);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            escape(value, &mut self.out);
            self.out.push('"');
        }
    }

    /// Ends a member; one with nothing in it is a single tag. `head` is where the text stood after the
    /// attributes of the start tag, `body` after its `>`.
    fn end(&mut self, name: &str, head: usize, body: usize) {
        if self.out.len() == body {
            self.out.truncate(head);
            self.out.push_str("/>\n");
        } else {
            self.out.push_str(&format!("    </{name}>\n"));
        }
    }
}

/// Why no method and no signal can have this name.
fn wrong(name: &str) -> Option<String> {
    let is_right = names::is_member(name.as_bytes());
    (!is_right).then(|| {
        "a name on D-Bus has letters, digits and `_`, no digit first, and at most 255 of them".to_owned()
    })
}

/// Whether the values of one message have a signature: all types together are as long as one may be at most (specification, "Valid
/// Signatures").
fn fits<'s>(shapes: impl Iterator<Item = &'s Shape>) -> Result<(), SignatureError> {
    let mut all = String::new();
    for shape in shapes {
        let mut kind = String::new();
        signature::of(shape, &mut kind)?;
        all.push_str(&kind);
        if all.len() > signature::LENGTH {
            return Err(SignatureError::TooLong);
        }
    }
    Ok(())
}

/// An error and what it carries, as an annotation says it.
fn exception(raised: &Struct) -> Result<String, SignatureError> {
    let mut text = names::of_exception(raised).into_owned();
    let mut lead = '(';
    for field in raised.fields.iter() {
        let mut kind = String::new();
        signature::of(&field.shape, &mut kind)?;
        text.push_str(&format!("{lead}{kind} {}", names::identifier(&field.name)));
        lead = ',';
    }
    if lead == ',' {
        text.push(')');
    }
    Ok(text.replace(',', ", "))
}
