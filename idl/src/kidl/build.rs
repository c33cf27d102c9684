//! A document to a contract.
//!
//! State: the classes so far by name, since a class may inherit from an earlier one; the structs that
//! functions use; and two counters. `Draft` is one class while it is read.
//!
//! Invariants: an interface holds each signature once, inherited ones first. A function with a type whose
//! bytes are not known is left out with a note and harms nobody else. Labels are unique within an interface.
//!
//! Bounds: functions and arguments with the inherited copies, and parts of types, because one short name of a
//! template stands for many shapes.

use super::document::{Argument, CONST, Class, Exception, Member, QUALIFIER, Type};
use super::read::{ClassPlace, LocatedDocument, MemberPlace};
use super::types;
use crate::empty::empty;
use crate::report::{Problem, Report, Span};
use crate::unique::Unique;
use crate::xml::shown;
use everywire_model::contract::LEFT_OUT;
use everywire_model::shape::{Field, Name, Struct};
use everywire_model::{
    Contract, Definition, Direction, Hold, Interface, Operation, Parameter, Shape, Signal,
};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Functions, signals and arguments of all classes, the inherited ones counted in each.
const INHERITED: usize = 100_000;
/// Parts of the types of all classes.
const SHAPES: usize = 100_000;

/// Makes a contract; where the report then has mistakes, it must not be used.
pub(super) fn contract(found: &LocatedDocument, report: &mut Report) -> Contract {
    let mut builder = Builder {
        report,
        types: Vec::new(),
        known: HashSet::new(),
        classes: HashMap::new(),
        interfaces: Vec::new(),
        exceptions: HashMap::new(),
        raised: Vec::new(),
        inherited: 0,
        shapes: 0,
    };
    for (exception, place) in found.document.exceptions.iter().zip(&found.exceptions) {
        builder.exception(exception, place);
    }
    for (class, place) in found.document.classes.iter().zip(&found.places) {
        builder.class(class, place);
    }
    let types = builder.types.into_iter().map(Definition::Type);
    let types = types.chain(builder.raised.into_iter().map(Definition::Exception));
    let definitions = types.chain(builder.interfaces.into_iter().map(Definition::Interface)).collect();
    Contract { definitions }
}

/// Its methods return None for what is left out or wrong.
struct Builder<'r> {
    report: &'r mut Report,
    /// The structs that functions use, each once, the inner ones first.
    types: Vec<Shape>,
    known: HashSet<String>,
    /// The classes so far.
    classes: HashMap<String, (Hold<Interface>, Span)>,
    interfaces: Vec<Hold<Interface>>,
    /// What functions may raise, by name.
    exceptions: HashMap<String, (Hold<Struct>, Span)>,
    /// The same, in the order of the file.
    raised: Vec<Hold<Struct>>,
    /// What `weigh` counted; at most `INHERITED`, and what is beyond is reported.
    inherited: usize,
    /// Parts of types so far; at most `SHAPES`.
    shapes: usize,
}

/// A class while it is read.
#[derive(Default)]
struct Draft {
    /// What was left out, and why.
    left_out: Vec<String>,
    operations: Vec<Operation>,
    signals: Vec<Signal>,
    /// The signatures of functions so far, the inherited ones too.
    functions: HashSet<String>,
    /// The same of signals.
    emitted: HashSet<String>,
    labels: Unique,
    signal_labels: Unique,
}

impl Builder<'_> {
    /// One class. A base that the file does not define is left out: nothing is known of its functions.
    fn class(&mut self, class: &Class, place: &ClassPlace) {
        if let Some((_, first)) = self.classes.get(&class.name) {
            let problem = Problem::new(place.name, format!("{} is defined twice", shown(&class.name)));
            self.report.add(problem.note(*first, "the first definition"));
            return;
        }
        if let Some((_, first)) = self.exceptions.get(&class.name) {
            let problem = Problem::new(place.name, format!("{} is an exception already", shown(&class.name)));
            self.report.add(problem.note(*first, "it is defined here"));
            return;
        }
        if types::shape(&class.name).is_some() {
            let message = format!("{} is the name of a type already", shown(&class.name));
            self.report.add(Problem::new(place.name, message));
            return;
        }
        let mut bases: Vec<Hold<Interface>> = Vec::new();
        for base in &class.bases {
            if let Some((base, _)) = self.classes.get(base)
                && !bases.iter().any(|known| known.name == base.name)
            {
                bases.push(base.clone());
            }
        }
        let mut draft = Draft::default();
        for base in &bases {
            self.inherit(base, &mut draft, place.name);
        }
        let inherited = draft.operations.len();
        for (member, at) in class.members.iter().zip(&place.members) {
            self.weigh(1 + member.arguments.len(), at.name);
            if member.signal {
                self.signal(member, at, &mut draft);
            } else {
                self.function(member, at, &mut draft);
            }
        }
        let name = Name::from(class.name.clone());
        let hold = Hold::new(Interface {
            notes: draft.left_out.into_iter().map(|what| (Name::from(LEFT_OUT), Name::from(what))).collect(),
            bases: Cow::Owned(bases),
            operations: Cow::Owned(draft.operations),
            inherited,
            signals: Cow::Owned(draft.signals),
            ..empty(name.clone(), name)
        });
        self.classes.insert(class.name.clone(), (hold.clone(), place.name));
        self.interfaces.push(hold);
    }

    /// What functions may raise. Nobody but us writes it, so a type that is not known is a mistake.
    fn exception(&mut self, exception: &Exception, place: &MemberPlace) -> Option<()> {
        let name = &exception.name;
        if let Some((_, first)) = self.exceptions.get(name) {
            let problem = Problem::new(place.name, format!("{} is defined twice", shown(name)));
            self.report.add(problem.note(*first, "the first definition"));
            return None;
        }
        if types::shape(name).is_some() {
            let message = format!("{} is the name of a type already", shown(name));
            self.report.add(Problem::new(place.name, message));
            return None;
        }
        self.weigh(1 + exception.fields.len(), place.name);
        for (field, span) in exception.fields.iter().zip(&place.arguments) {
            if types::shape(&field.kind.name).is_none() {
                let message = format!("the type {} is not known", shown(&field.kind.name));
                self.report.add(Problem::new(*span, message));
            }
        }
        let fields = self.fields(&exception.fields, place)?.into();
        let scoped = Name::from(name.clone());
        let held = Hold::new(Struct { id: scoped.clone(), name: scoped, fields });
        self.exceptions.insert(name.clone(), (held.clone(), place.name));
        self.raised.push(held);
        Some(())
    }
    /// The exceptions that a function names.
    fn raises(&mut self, member: &Member, place: &MemberPlace) -> Option<Vec<Hold<Struct>>> {
        let mut raises: Vec<Hold<Struct>> = Vec::with_capacity(member.raises.len());
        let mut seen = HashSet::new();
        for name in &member.raises {
            let message = match self.exceptions.get(name) {
                None => format!("there is no exception {}", shown(name)),
                Some(_) if !seen.insert(name.as_str()) => {
                    format!("{} is named twice", shown(name))
                }
                Some((held, _)) => {
                    raises.push(held.clone());
                    continue;
                }
            };
            self.report.add(Problem::new(place.raises, message));
            return None;
        }
        if member.returns.name == "ASYNC" && !raises.is_empty() {
            self.report.add(Problem::new(place.raises, "a function without an answer raises nothing"));
            return None;
        }
        self.weigh(raises.len(), place.raises);
        Some(raises)
    }

    /// Copies what a base has, unless it came by another base already.
    fn inherit(&mut self, base: &Interface, draft: &mut Draft, span: Span) {
        for operation in base.operations.iter() {
            self.weigh(1 + operation.parameters.len(), span);
            if draft.functions.insert(operation.name.to_string()) {
                let label = draft.labels.name(bare(&operation.name));
                draft.operations.push(Operation { label: Name::from(label), ..operation.clone() });
            }
        }
        for signal in base.signals.iter() {
            self.weigh(1, span);
            if draft.emitted.insert(signal.name.to_string()) {
                let label = draft.signal_labels.name(bare(&signal.name));
                draft.signals.push(Signal { label: Name::from(label), ..signal.clone() });
            }
        }
    }

    /// One function; None where it is left out or wrong.
    fn function(&mut self, member: &Member, place: &MemberPlace, draft: &mut Draft) -> Option<()> {
        let oneway = member.returns.name == "ASYNC";
        let returns = match member.returns.name.as_str() {
            "ASYNC" | "void" => Some(Shape::Void),
            _ => self.shape(&member.returns, place.returns),
        };
        // The types are looked at before the decision, so that all mistakes are found.
        let fields = self.fields(&member.arguments, place);
        if let Some(unknown) = unknown(member) {
            let what = format!("{} {}: {unknown}", member.returns.name, signature(member));
            draft.left_out.push(what);
            return None;
        }
        let raises = self.raises(member, place)?;
        let (returns, fields) = (returns?, fields?);
        let parameters =
            fields.into_iter().map(|field| Parameter { direction: Direction::In, field }).collect();
        let name = signature(member);
        // A function that overrides an inherited one is that one.
        if draft.functions.insert(name.clone()) {
            let mut operation = Operation::new(name, parameters, returns);
            operation.label = Name::from(draft.labels.name(&member.name));
            operation.oneway = oneway;
            operation.idempotent = member.idempotent;
            operation.raises = raises.into();
            if member.qualifier.as_deref() == Some(CONST) {
                operation.notes = vec![(Name::Borrowed(QUALIFIER), Name::Borrowed(CONST))].into();
            }
            draft.operations.push(operation);
        }
        Some(())
    }

    /// One signal; None where it is left out.
    fn signal(&mut self, member: &Member, place: &MemberPlace, draft: &mut Draft) -> Option<()> {
        let fields = self.fields(&member.arguments, place);
        if let Some(unknown) = unknown(member) {
            draft.left_out.push(format!("signal {}: {unknown}", signature(member)));
            return None;
        }
        let fields = fields?;
        let name = signature(member);
        if draft.emitted.insert(name.clone()) {
            let mut signal = Signal::new(name, fields);
            signal.label = Name::from(draft.signal_labels.name(&member.name));
            draft.signals.push(signal);
        }
        Some(())
    }

    /// The arguments as fields; None where one has a type that is not known.
    fn fields(&mut self, arguments: &[Argument], place: &MemberPlace) -> Option<Vec<Field>> {
        let mut names = Unique::default();
        let mut fields = Vec::with_capacity(arguments.len());
        for (number, (argument, span)) in (1..).zip(arguments.iter().zip(&place.arguments)) {
            let name = argument.name.clone().unwrap_or_else(|| format!("arg_{number}"));
            let shape = self.shape(&argument.kind, *span);
            fields.push(shape.map(|shape| Field { name: Name::from(names.name(&name)), shape }));
        }
        fields.into_iter().collect()
    }

    /// The shape of a type; None without a mistake where the type is not known.
    fn shape(&mut self, kind: &Type, span: Span) -> Option<Shape> {
        let shape = types::shape(&kind.name)?;
        // Each argument of a template is a part.
        self.shapes += 1 + kind.name.matches(['<', ',']).count();
        if self.shapes > SHAPES {
            self.report.add(Problem::new(span, "the file has too many types"));
            return None;
        }
        self.define(&shape);
        Some(shape)
    }

    /// Notes the structs in a shape, inner ones first; recursion is bounded by the nesting of templates.
    fn define(&mut self, shape: &Shape) {
        match shape {
            Shape::Struct(named) if !self.known.contains(named.name.as_ref()) => {
                named.fields.iter().for_each(|field| self.define(&field.shape));
                self.known.insert(named.name.to_string());
                self.types.push(shape.clone());
            }
            Shape::Sequence(list) => self.define(&list.element),
            Shape::Alias(alias) => self.define(&alias.target),
            Shape::Map(map) => {
                self.define(&map.key);
                self.define(&map.value);
            }
            _ => {}
        }
    }

    /// Bounds what inheritance can multiply.
    fn weigh(&mut self, parts: usize, span: Span) {
        self.inherited += parts;
        if self.inherited > INHERITED {
            self.report.add(Problem::new(span, "the file has too many functions"));
        }
    }
}

/// Why a function or signal cannot be called: the first of its types whose encoding is not known. Other types of KDE's
/// programs are private to them: the rest of the class can be called all the same.
fn unknown(member: &Member) -> Option<String> {
    let returns = (!member.signal && !matches!(member.returns.name.as_str(), "ASYNC" | "void"))
        .then_some(&member.returns.name);
    let mut names = returns.into_iter().chain(member.arguments.iter().map(|argument| &argument.kind.name));
    let unknown = names.find(|name| types::shape(name).is_none())?;
    Some(format!("the type {} is not known", shown(unknown)))
}

/// What a message names a function or signal by.
fn signature(member: &Member) -> String {
    let types: Vec<&str> = member.arguments.iter().map(|argument| argument.kind.name.as_str()).collect();
    format!("{}({})", member.name, types.join(","))
}

/// The name in a signature.
fn bare(signature: &str) -> &str {
    signature.split('(').next().unwrap_or_default()
}
