//! What methods may raise, and which signals an interface has, as pragmas of ours say.

use super::super::ast::{Exception, Interface, ItemKind, Raises};
use super::types::Record;
use super::{Builder, Ty, background};
use crate::report::{Problem, Span};
use everywire_model::shape::{Field, Name, PointerKind, Struct};
use everywire_model::{Definition, Hold, Interface as AnyInterface, Operation, Shape, Signal};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

impl Builder<'_> {
    /// Makes the struct of this name an exception.
    pub(super) fn exception(&mut self, exception: &Exception) {
        let ident = &exception.ident;
        if let Some((_, first)) = self.exceptions.get(&ident.name) {
            let problem = Problem::new(ident.span, format!("`{}` is an exception already", ident.name));
            self.report.add(problem.note(*first, "it is made one here"));
            return;
        }
        let id = exception.id.clone().unwrap_or_else(|| ident.name.clone());
        let name = Name::from(ident.name.clone());
        let made = |fields| Hold::new(Struct { name: name.clone(), id: Name::from(id.clone()), fields });
        let held = if exception.is_empty {
            if !self.declare(&ident.name, ident.span) {
                return;
            }
            let held = made(Vec::new().into());
            self.definitions.push(Definition::Exception(held.clone()));
            held
        } else {
            let Some(fields) = self.fields_of(&ident.name) else {
                let problem =
                    Problem::new(ident.span, format!("there is no struct `{}` before this", ident.name));
                let help =
                    format!("define it before this, or write `{}()` if it carries nothing", ident.name);
                self.report.add(problem.help(help));
                return;
            };
            made(fields)
        };
        self.exceptions.insert(ident.name.clone(), (held, ident.span));
    }

    /// What the struct of this name carries, if the files define one.
    fn fields_of(&self, name: &str) -> Option<Cow<'static, [Field]>> {
        let shape = match (self.types.get(name), self.records.get(&format!("struct {name}"))) {
            (Some(Ty::Value(typed)), _) | (_, Some(Record::Done { typed, .. })) => &typed.shape,
            _ => return None,
        };
        let Shape::Struct(held) = shape else { return None };
        let own = |held: &&Struct| held.name == name && self.places.contains_key(name);
        held.get().filter(own).map(|held| held.fields.iter().map(direct).collect())
    }

    /// Puts exceptions in the places of their structs, and says which are types as well: other languages have no such thing.
    pub(super) fn settle_exceptions(&mut self) {
        if self.exceptions.is_empty() {
            return;
        }
        let Self { exceptions, definitions, background, .. } = self;
        for definition in definitions.iter_mut().chain(background.iter_mut()) {
            if let Definition::Type(Shape::Struct(shape)) = &*definition
                && let Some((held, _)) = shape.get().and_then(|shape| exceptions.get(shape.name.as_ref()))
            {
                *definition = Definition::Exception(held.clone());
            }
        }
        let used = background::types_in(definitions);
        let is_used = |(name, _): &(&String, &(Hold<Struct>, Span))| used.contains(name.as_str());
        let wrong = exceptions.iter().filter(is_used).map(|(name, (_, at))| (*at, name.clone()));
        let mut wrong: Vec<(Span, String)> = wrong.collect();
        wrong.sort_by_key(|(at, _)| (at.file, at.start));
        for (at, name) in wrong {
            self.problem(at, &format!("`{name}` is an exception and the type of a value as well"));
        }
    }

    /// Gives methods what they may raise; `operations` are those that the interface has of its own.
    pub(super) fn raises(&mut self, interface: &Interface, operations: &mut [Operation]) {
        if interface.raises.is_empty() {
            return;
        }
        let names: HashMap<Name, usize> =
            (0..).zip(&*operations).map(|(at, own)| (own.name.clone(), at)).collect();
        let methods: HashSet<&str> =
            interface.methods.iter().map(|method| method.declarator.ident.name.as_str()).collect();
        for raises in &interface.raises {
            let Some(all) = self.raised(raises) else { continue };
            let method = &raises.method;
            let at = names.get(method.name.as_str()).copied();
            if let Some(operation) = at.and_then(|at| operations.get_mut(at)) {
                if operation.oneway {
                    self.problem(method.span, "a method without an answer raises nothing");
                } else if !operation.raises.is_empty() {
                    let message = format!("what `{}` raises is said before", method.name);
                    self.problem(method.span, &message);
                }
                operation.raises = all.into();
                continue;
            }
            // One that was left out cannot be called.
            let bare = ["get_", "put_", "putref_"].iter().find_map(|prefix| method.name.strip_prefix(prefix));
            let is_there =
                [Some(method.name.as_str()), bare].into_iter().flatten().any(|name| methods.contains(name));
            if !is_there {
                self.problem(method.span, &format!("this interface has no method `{}`", method.name));
            }
        }
    }

    fn raised(&mut self, raises: &Raises) -> Option<Vec<Hold<Struct>>> {
        let mut all: Vec<Hold<Struct>> = Vec::with_capacity(raises.exceptions.len());
        let mut seen = HashSet::new();
        for ident in &raises.exceptions {
            let Some((held, _)) = self.exceptions.get(&ident.name) else {
                let problem =
                    Problem::new(ident.span, format!("there is no exception `{}` before this", ident.name));
                self.report
                    .add(problem.help(format!("`#pragma exception {}` makes a struct one", ident.name)));
                return None;
            };
            if !seen.insert(ident.name.as_str()) {
                self.problem(ident.span, &format!("`{}` is named twice", ident.name));
                return None;
            }
            all.push(held.clone());
        }
        self.room(all.len(), raises.method.span)?;
        Some(all)
    }

    /// Defines the interfaces whose methods are the signals of this one, if they come behind it.
    pub(super) fn listeners(&mut self, interface: &Interface) {
        for signals in &interface.signals {
            let name = signals.interface.name.as_str();
            let Some(item) = self.announced.get(name).copied() else { continue };
            if let ItemKind::Interface(listener) = &item.kind
                && name != interface.ident.name
                && !self.places.contains_key(name)
                && self.early.insert(name.to_owned())
            {
                self.items(&listener.items);
                self.interface(item, listener);
            }
        }
    }

    /// The signals of an interface: those of its base, and its own, which are the calls of interfaces that it names.
    pub(super) fn signals(&mut self, interface: &Interface, base: Option<&AnyInterface>) -> Vec<Signal> {
        let inherited = base.map(|base| base.signals.to_vec()).unwrap_or_default();
        if self.room(inherited.len(), interface.ident.span).is_none() {
            return Vec::new();
        }
        let mut names: HashSet<Name> = inherited.iter().map(|signal| signal.name.clone()).collect();
        let mut signals = inherited;
        for told in &interface.signals {
            let ident = &told.interface;
            let Some(listener) = self.interfaces.get(&ident.name).cloned() else {
                self.problem(ident.span, &format!("there is no interface `{}`", ident.name));
                continue;
            };
            let own = (0..).zip(listener.operations.iter()).skip(listener.inherited);
            let own: HashMap<&str, usize> = own.map(|(index, own)| (own.name.as_ref(), index)).collect();
            let chosen: Vec<Option<usize>> = match &told.methods {
                None => (listener.inherited..listener.operations.len()).map(Some).collect(),
                Some(methods) => {
                    methods.iter().map(|method| own.get(method.name.as_str()).copied()).collect()
                }
            };
            if self.room(chosen.len(), ident.span).is_none() {
                return Vec::new();
            }
            for (number, index) in chosen.into_iter().enumerate() {
                let span = told
                    .methods
                    .as_ref()
                    .and_then(|methods| methods.get(number))
                    .map_or(ident.span, |m| m.span);
                let Some((index, method)) = index.and_then(|at| Some((at, listener.operations.get(at)?)))
                else {
                    self.problem(span, &format!("`{}` has no method of this name", ident.name));
                    continue;
                };
                if !method.results.fields().is_empty() {
                    let message = format!("`{}` gives something back, which no signal does", method.label);
                    self.problem(span, &message);
                } else if !names.insert(method.name.clone()) {
                    self.problem(span, &format!("there is a signal `{}` already", method.name));
                } else {
                    let mut signal = Signal::new(method.name.clone(), method.arguments.fields().to_vec());
                    signal.doc = method.doc.clone();
                    signal.sink = Some((listener.clone(), index));
                    signals.push(signal);
                }
            }
        }
        signals
    }
}

/// A field of an exception: a pointer that is never null is no more than its value, since nothing of an exception has a form of NDR.
fn direct(field: &Field) -> Field {
    let shape = match &field.shape {
        Shape::Pointer(pointer) if pointer.kind == PointerKind::Ref => pointer.target.clone(),
        other => other.clone(),
    };
    Field { name: field.name.clone(), shape }
}
