//! Interfaces: what they inherit, their operations and attributes.
//!
//! An interface in the model has all its operations, the inherited ones first, base by base, so that a
//! skeleton looks up one table. `Draft` collects them while the body is read;
//! `BuiltInterface` is what remains for interfaces that inherit from this one.
//!
//! An attribute becomes the operations `_get_x` and `_set_x`, which is what travels (CORBA 3.0, 3.14). Stubs
//! label them `x` and `set_x`.
//!
//! Invariants: an operation reached by several ways through a diamond is there once, and the same name from
//! two interfaces is a mistake, as is an operation that is defined again. Whatever is left out because
//! something in it is not supported has a note `LEFT_OUT` with the reason.
//!
//! Bounds: ways up to the bases (diamonds double them), ancestors, and operations with their parameters and
//! exceptions, counted again in each interface that inherits them.

use super::super::ast::{self, Ident, Item, ItemKind, ScopedName, TypeSpec};
use super::super::ids::join;
use super::super::{ABSTRACT, CONTEXT, limits};
use super::Builder;
use super::named_item::{BuiltInterface, NamedItem, Typed};
use crate::empty::empty;
use crate::report::{Problem, Span};
use everywire_model::contract::LEFT_OUT;
use everywire_model::shape::{Field, Name, Struct};
use everywire_model::{
    Attribute, Definition, Direction, Hold, Interface, Notify, Operation, Parameter, Shape, Signal,
};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// An interface while its body is read.
#[derive(Default)]
pub(super) struct Draft {
    /// Number of each operation by its name in lower case.
    pub(super) numbers: HashMap<String, usize>,
    pub(super) operations: Vec<Operation>,
    /// Scoped name of the interface that defines each operation; as long as `operations`.
    origins: Vec<String>,
    attributes: Vec<Attribute>,
    pub(super) signals: Vec<Signal>,
    /// Scoped name of the interface that defines each signal, by its name in lower case.
    pub(super) signal_origins: HashMap<String, String>,
    /// What `#pragma idempotent` names.
    pub(super) idempotent: Vec<Ident>,
    /// What was left out, and why; and whether the interface is abstract.
    notes: Vec<(Name, Name)>,
}

impl Draft {
    /// Something needs what is not supported. Where nothing of that kind was met, a mistake was reported.
    /// `name` is the operation, attribute or base that is missing.
    pub(super) fn leave_out(&mut self, name: &str, lacking: Option<Rc<str>>) {
        if let Some(lacking) = lacking {
            self.notes.push((
                Name::Borrowed(LEFT_OUT),
                Name::from(format!("`{name}`: {lacking} is not supported")),
            ));
        }
    }
}

impl Builder<'_> {
    /// The symbol exists before the body is read, so that operations may refer to their own interface.
    pub(super) fn interface(&mut self, interface: &ast::Interface, doc: &str) -> Option<()> {
        let (name, id) = self.identity(&interface.ident.name);
        let key = name.to_ascii_lowercase();
        match self.symbols.get_mut(&key) {
            Some(symbol) if matches!(symbol.what, NamedItem::Interface(None)) && symbol.name == name => {
                symbol.span = interface.ident.span;
            }
            _ => self.declare(&interface.ident, NamedItem::Interface(None))?,
        }
        self.mark_abstract(&interface.ident, interface.is_abstract);
        let mut draft = Draft::default();
        let bases = self.bases(interface, &mut draft);
        let ancestors = ancestors(&bases);
        // Before anything is inherited, since this is what inheriting costs.
        let ways = bases.iter().map(|base| base.ways + 1).sum::<usize>();
        if ways > limits::ANCESTRY || ancestors.len() > limits::IDENTIFIER {
            self.report.add(Problem::new(interface.ident.span, "this interface inherits too much"));
            return None;
        }
        for base in &bases {
            self.inherit(base, &mut draft, interface.ident.span);
            self.inherit_signals(base, &mut draft, interface.ident.span);
        }
        let inherited = draft.operations.len();
        self.inside(&interface.ident.name, Rc::clone(&ancestors), |b| {
            for item in &interface.items {
                b.export(item, &mut draft);
            }
            b.mark_idempotent(&mut draft, inherited);
        });
        label_setters(&mut draft, inherited);
        if interface.is_abstract {
            draft.notes.push((Name::Borrowed(ABSTRACT), Name::default()));
        }
        let hold = Hold::new(Interface {
            notes: Cow::Owned(draft.notes),
            bases: bases.iter().map(|base| base.hold.clone()).collect(),
            operations: Cow::Owned(draft.operations),
            inherited,
            attributes: Cow::Owned(draft.attributes),
            signals: Cow::Owned(draft.signals),
            doc: Name::from(doc.to_owned()),
            ..empty(name, id)
        });
        let (origins, signal_origins) = (draft.origins, draft.signal_origins);
        let built = BuiltInterface { hold: hold.clone(), ancestors, origins, signal_origins, ways };
        self.symbols.get_mut(&key)?.what = NamedItem::Interface(Some(Rc::new(built)));
        self.definitions.push(Definition::Interface(hold));
        Some(())
    }

    /// Notes that an interface is abstract: a value of it is a reference or a value type, with a boolean before it (CORBA 3.3 part 2,
    /// section 9.3.7), so it is no reference like others.
    pub(super) fn mark_abstract(&mut self, ident: &Ident, is_abstract: bool) {
        if is_abstract {
            self.abstract_interfaces.insert(join(self.scope(), &ident.name).to_ascii_lowercase());
        }
    }

    /// The bases that can be used; the others are reported or noted.
    fn bases(&mut self, interface: &ast::Interface, draft: &mut Draft) -> Vec<Rc<BuiltInterface>> {
        let mut bases: Vec<Rc<BuiltInterface>> = Vec::new();
        for name in &interface.bases {
            self.lacking = None;
            let found = match self.resolve(name) {
                // By another name.
                Some(NamedItem::Type(typed)) => match self.renamed(&typed.shape) {
                    Some(base) => Some(NamedItem::Interface(Some(base))),
                    None => Some(NamedItem::Type(typed)),
                },
                found => found,
            };
            match found {
                Some(NamedItem::Interface(Some(base))) if bases.iter().any(|other| Rc::ptr_eq(other, &base)) => {
                    self.report.add(Problem::new(name.span, format!("`{}` is a base already", name.text())));
                }
                Some(NamedItem::Interface(Some(base))) => bases.push(base),
                Some(NamedItem::Interface(None))
                    // `orb.idl` only announces interfaces of the ORB, such as `CORBA::Policy`.
                    if name.text().trim_start_matches("::").starts_with("CORBA::") =>
                {
                    let base = name.text();
                    draft.leave_out(&base, Some(format!("the base `{base}`").into()));
                }
                Some(NamedItem::Interface(None)) => {
                    let message = format!("`{}` is announced but not defined here", name.text());
                    self.report.add(Problem::new(name.span, message).help("define the base before"));
                }
                Some(other) => {
                    let message = format!("`{}` is {}, not an interface", name.text(), other.noun());
                    self.report.add(Problem::new(name.span, message).expected(["an interface"]));
                }
                // A base that is not supported: what it has is left out.
                None => {
                    let lacking = self.lacking.take();
                    draft.leave_out(&name.text(), lacking.map(|what| format!("the base {what}").into()));
                }
            }
        }
        bases
    }

    /// What is lacking where nobody said it and no mistake was reported: nothing is left out without a word.
    pub(super) fn unnamed(&self) -> Option<Rc<str>> {
        (!self.report.failed()).then(|| "something that it needs".into())
    }

    /// The interface that has another name by a typedef.
    fn renamed(&self, shape: &Shape) -> Option<Rc<BuiltInterface>> {
        let Shape::Reference(referent) = shape.resolved() else { return None };
        match &self.symbols.get(&referent.name.to_ascii_lowercase())?.what {
            NamedItem::Interface(base) => base.clone(),
            _ => None,
        }
    }

    /// Adds the operations of a base that are not there yet by another way. `places` says where each
    /// operation of the base has come to stand; attributes point at operations by number.
    fn inherit(&mut self, base: &BuiltInterface, draft: &mut Draft, span: Span) {
        let known = draft.operations.len();
        let mut places = Vec::with_capacity(base.hold.operations.len());
        for (operation, origin) in base.hold.operations.iter().zip(&base.origins) {
            let key = operation.name.to_ascii_lowercase();
            if let Some(place) = draft.numbers.get(&key) {
                match draft.origins.get(*place) {
                    Some(other) if other != origin => {
                        let message =
                            format!("`{}` is inherited from both `{other}` and `{origin}`", operation.label);
                        self.report.add(Problem::new(span, message));
                    }
                    _ => places.push(*place),
                }
                continue;
            }
            let operation = self.weighed(operation.clone(), span);
            places.push(draft.operations.len());
            draft.numbers.insert(key, draft.operations.len());
            draft.operations.push(operation);
            draft.origins.push(origin.clone());
        }
        for attribute in base.hold.attributes.iter() {
            let moved = Attribute {
                getter: places.get(attribute.getter).copied().unwrap_or_default(),
                setter: attribute.setter.and_then(|setter| places.get(setter).copied()),
                ..attribute.clone()
            };
            // An attribute whose getter was there before came by another way.
            if moved.getter >= known {
                draft.attributes.push(moved);
            }
        }
    }

    /// One thing in the body of an interface.
    fn export(&mut self, item: &Item, draft: &mut Draft) -> Option<()> {
        match &item.kind {
            ItemKind::Operation(operation) => {
                self.declare(&operation.ident, NamedItem::Operation)?;
                let doc = Name::from(item.doc.clone());
                self.lacking = None;
                let built = self.operation(operation);
                let lacking = self.lacking.take();
                let Some(mut built) = built else {
                    // An operation that is missing must be explained.
                    let lacking = lacking.or_else(|| self.unnamed());
                    draft.leave_out(&operation.ident.name, lacking);
                    return None;
                };
                draft.leave_out(&format!("{}, its exceptions", operation.ident.name), lacking);
                built.doc = doc;
                self.push(built, draft, operation.ident.span);
            }
            ItemKind::Attribute(attribute) => {
                self.lacking = None;
                let typed =
                    self.spec(&attribute.spec).and_then(|typed| self.not_void(typed, attribute.spec.span));
                let lacking = self.lacking.take();
                let (get, set) = (self.raises(&attribute.get_raises), self.raises(&attribute.set_raises));
                let untold = self.lacking.take();
                for ident in &attribute.idents {
                    self.declare(ident, NamedItem::Attribute)?;
                    let Some(Typed { shape, .. }) = typed.clone() else {
                        draft.leave_out(&ident.name, lacking.clone().or_else(|| self.unnamed()));
                        continue;
                    };
                    draft.leave_out(&format!("{}, its exceptions", ident.name), untold.clone());
                    let mut getter =
                        Operation::new(format!("_get_{}", ident.name), Vec::new(), shape.clone());
                    getter.label = Name::from(ident.name.clone());
                    getter.raises = Cow::Owned(get.clone());
                    getter.doc = Name::from(item.doc.clone());
                    let at = draft.operations.len();
                    self.push(getter, draft, ident.span);
                    if !attribute.readonly {
                        let field = Field { name: Cow::Borrowed("value"), shape: shape.clone() };
                        let parameter = Parameter { direction: Direction::In, field };
                        let name = format!("_set_{}", ident.name);
                        let mut setter = Operation::new(name, vec![parameter], Shape::Void);
                        setter.raises = Cow::Owned(set.clone());
                        setter.doc = Name::from(item.doc.clone());
                        self.push(setter, draft, ident.span);
                    }
                    draft.attributes.push(Attribute {
                        name: Name::from(ident.name.clone()),
                        shape,
                        getter: at,
                        setter: (!attribute.readonly).then_some(at + 1),
                        notify: Notify::Value,
                    });
                }
            }
            ItemKind::Signal(signal) => self.signal(signal, &item.doc, draft)?,
            ItemKind::Idempotent(ident) => draft.idempotent.push(ident.clone()),
            _ => self.item(item)?,
        }
        Some(())
    }

    /// Appends an operation that this interface defines itself.
    fn push(&mut self, operation: Operation, draft: &mut Draft, span: Span) {
        let operation = self.weighed(operation, span);
        draft.numbers.insert(operation.name.to_ascii_lowercase(), draft.operations.len());
        draft.operations.push(operation);
        draft.origins.push(self.scope().to_owned());
    }

    /// Bounds what inheritance can multiply: too many operations are a mistake, and beyond `DOCS` they have no documentation.
    fn weighed(&mut self, mut operation: Operation, span: Span) -> Operation {
        self.inherited += 1 + operation.parameters.len() + operation.raises.len();
        if self.inherited > limits::INHERITED {
            self.report.add(Problem::new(span, "the contract has too many operations"));
        }
        self.docs += operation.doc.len();
        if self.docs > limits::DOCS {
            operation.doc = Name::default();
        }
        operation
    }

    /// All parts are looked at before any can fail, so that mistakes in all of them are reported.
    fn operation(&mut self, operation: &ast::Operation) -> Option<Operation> {
        let returns = self.usable(&operation.returns, true);
        let parameters =
            self.inside(&operation.ident.name, Rc::default(), |b| {
                let mut parameters = Vec::with_capacity(operation.parameters.len());
                for parameter in &operation.parameters {
                    // The parameter's name is taken even where its type is wrong.
                    let shape = b.usable(&parameter.spec, false);
                    b.declare(&parameter.ident, NamedItem::Parameter);
                    if let Some(span) = operation.oneway
                        && parameter.direction != Direction::In
                    {
                        let problem =
                            Problem::new(parameter.ident.span, "a oneway operation has only `in` parameters");
                        b.report.add(problem.note(span, "it is oneway"));
                    }
                    let name = Name::from(parameter.ident.name.clone());
                    parameters.push(shape.map(|shape| Parameter {
                        direction: parameter.direction,
                        field: Field { name, shape },
                    }));
                }
                parameters.into_iter().collect::<Option<Vec<Parameter>>>()
            });
        let raises = self.raises(&operation.raises);
        let returns = returns?;
        if let Some(span) = operation.oneway {
            if !matches!(returns, Shape::Void) {
                let problem = Problem::new(operation.returns.span, "a oneway operation returns nothing");
                self.report.add(problem.expected(["`void`"]).note(span, "it is oneway"));
            }
            if let Some(first) = operation.raises.first() {
                let problem = Problem::new(first.span, "a oneway operation raises nothing");
                self.report.add(problem.note(span, "it is oneway"));
            }
        }
        let mut built = Operation::new(operation.ident.name.clone(), parameters?, returns);
        built.raises = Cow::Owned(raises);
        built.oneway = operation.oneway.is_some();
        built.idempotent = operation.idempotent;
        if !operation.context.is_empty() {
            let names = operation.context.join(",");
            self.docs += names.len();
            built.notes = Cow::Owned(vec![(Name::Borrowed(CONTEXT), Name::from(names))]);
        }
        Some(built)
    }

    /// A type that an operation carries. Results may be `void`, parameters may not.
    fn usable(&mut self, spec: &TypeSpec, void: bool) -> Option<Shape> {
        self.finished(spec, void).map(|typed| typed.shape)
    }

    /// A type that is defined whole.
    pub(super) fn finished(&mut self, spec: &TypeSpec, void: bool) -> Option<Typed> {
        let typed = self.spec(spec)?;
        let typed = if void { typed } else { self.not_void(typed, spec.span)? };
        if !typed.complete {
            let problem = Problem::new(spec.span, "this type is announced but not defined here");
            self.report.add(problem.help("define it before the operation that uses it"));
        }
        Some(typed)
    }

    /// What is no exception is reported; what is not supported is left out, and then `lacking` says so.
    fn raises(&mut self, names: &[ScopedName]) -> Vec<Hold<Struct>> {
        let mut raises: Vec<Hold<Struct>> = Vec::with_capacity(names.len());
        let mut seen = HashSet::new();
        for name in names {
            match self.resolve(name) {
                Some(NamedItem::Exception(_)) if !seen.insert(name.text()) => {
                    self.report.add(Problem::new(name.span, format!("`{}` is named twice", name.text())));
                }
                // By another name it may be there already: generated contracts do that.
                Some(NamedItem::Exception(exception))
                    if raises.iter().any(|known| known.name == exception.name) => {}
                Some(NamedItem::Exception(exception)) => raises.push(exception),
                Some(other) => {
                    let message = format!("`{}` is {}, not an exception", name.text(), other.noun());
                    self.report.add(Problem::new(name.span, message).expected(["an exception"]));
                }
                None => {}
            }
        }
        raises
    }
}

/// All that bases inherit from, each once, a base before its own bases. So whoever looks a name up meets the
/// definition that hides another one before the hidden one.
fn ancestors(bases: &[Rc<BuiltInterface>]) -> Rc<[String]> {
    let (mut all, mut seen) = (Vec::new(), HashSet::new());
    for base in bases {
        for name in std::iter::once(base.hold.name.as_ref()).chain(base.ancestors.iter().map(String::as_str))
        {
            if seen.insert(name) {
                all.push(name.to_owned());
            }
        }
    }
    Rc::from(all)
}

/// A setter is labelled `set_x`, unless an operation has that name.
fn label_setters(draft: &mut Draft, inherited: usize) {
    let labels: HashSet<Name> = draft.operations.iter().map(|operation| operation.label.clone()).collect();
    for attribute in &draft.attributes {
        let Some(setter) = attribute.setter.filter(|setter| *setter >= inherited) else { continue };
        let label = format!("set_{}", attribute.name);
        if !labels.contains(label.as_str())
            && let Some(operation) = draft.operations.get_mut(setter)
        {
            operation.label = Name::from(label);
        }
    }
}
