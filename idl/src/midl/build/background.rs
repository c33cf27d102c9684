//! Files that come with every compiler: what of them a contract uses becomes part of it, and nothing else.
//!
//! Such files define thousands of types, and a contract needs a few. `NameDependencies` starts from the contract's own
//! definitions and follows names until nothing new comes; definitions of other names are dropped, together
//! with whatever is wrong in them. Own definitions win over those of the same name in the background.

use crate::omg::limits;
use crate::report::{Problem, Report, Span};
use everywire_model::shape::Name;
use everywire_model::{Definition, Interface, Shape};
use std::collections::{HashMap, HashSet};

/// The definitions of a contract, and before them those in the background that they need. `missing`: structs that are used and never defined, which
/// is a mistake where the contract needs them. The background comes first, in its own order, so everything is
/// still defined before it is used.
pub(super) fn joined(
    background: Vec<Definition>,
    own: Vec<Definition>,
    missing: Vec<(Span, String)>,
    report: &mut Report,
) -> Vec<Definition> {
    let mut needs = NameDependencies::default();
    own.iter().for_each(|definition| needs.definition(definition));
    let mut by_name: HashMap<&str, Vec<&Definition>> = HashMap::new();
    for definition in &background {
        by_name.entry(name(definition)).or_default().push(definition);
    }
    // Each name is looked into once, so circles end.
    while let Some(next) = needs.new.pop() {
        for definition in by_name.get(&*next).into_iter().flatten() {
            needs.definition(definition);
        }
    }
    for (span, name) in missing {
        if !report.is_background(span) || needs.names.contains(name.as_str()) {
            report.add_anywhere(Problem::new(span, format!("`{name}` is used and never defined")));
        }
    }
    let own_names: HashSet<Name> =
        own.iter().map(|definition| Name::from(name(definition).to_owned())).collect();
    let mut all: Vec<_> = background
        .into_iter()
        .filter(|definition| needs.names.contains(name(definition)) && !own_names.contains(name(definition)))
        .collect();
    all.extend(own);
    all
}

/// The names of the types that definitions use, not of the exceptions that they raise.
pub(super) fn types_in(definitions: &[Definition]) -> HashSet<Name> {
    let mut needs = NameDependencies { types_alone: true, ..NameDependencies::default() };
    definitions.iter().for_each(|definition| needs.definition(definition));
    needs.names
}

/// The names of the types that need one of these, themselves or through others.
pub(super) fn users(definitions: &[&Definition], of: HashSet<Name>) -> HashSet<Name> {
    let mut used_by: HashMap<Name, Vec<Name>> = HashMap::new();
    for definition in definitions {
        // What each says itself: what that leads to is followed below, once.
        let mut needs = NameDependencies { direct: true, ..NameDependencies::default() };
        needs.definition(definition);
        for needed in needs.names {
            used_by.entry(needed).or_default().push(Name::from(name(definition).to_owned()));
        }
    }
    let (mut pending, mut found): (Vec<Name>, _) = (of.iter().cloned().collect(), of);
    while let Some(next) = pending.pop() {
        for user in used_by.remove(&next).into_iter().flatten() {
            if found.insert(user.clone()) {
                pending.push(user);
            }
        }
    }
    found
}

/// The name of a definition; empty for a type without one.
pub(super) fn name(definition: &Definition) -> &str {
    match definition {
        Definition::Type(shape) => super::types::name_of(shape).unwrap_or_default(),
        Definition::Exception(shape) => &shape.name,
        Definition::Constant(constant) => &constant.name,
        Definition::Interface(interface) => &interface.name,
    }
}

/// The names that definitions need.
#[derive(Default)]
struct NameDependencies {
    /// All that were met, those without a definition in the background too.
    names: HashSet<Name>,
    /// Those that were not looked at yet.
    new: Vec<Name>,
    /// What is raised is no need.
    types_alone: bool,
    /// Structs and unions with a name are not looked into.
    direct: bool,
}

impl NameDependencies {
    /// Notes a name; whether it is new.
    fn name(&mut self, name: &Name) -> bool {
        let is_new = self.names.insert(name.clone());
        if is_new {
            self.new.push(name.clone());
        }
        is_new
    }

    /// Notes the name of a struct or a union; whether it is to be looked into.
    fn named(&mut self, name: &Name) -> bool {
        self.name(name) && (!self.direct || name.is_empty())
    }

    /// What a definition names, one level deep: names inside are followed when they come out of `new`.
    fn definition(&mut self, definition: &Definition) {
        match definition {
            Definition::Type(shape) => self.parts(shape, 0),
            Definition::Exception(shape) => shape.fields.iter().for_each(|field| self.shape(&field.shape, 0)),
            Definition::Constant(constant) => self.shape(&constant.shape, 0),
            Definition::Interface(interface) => self.interface(interface),
        }
    }

    /// Bases, own operations, signals, and the interfaces that deliver them.
    fn interface(&mut self, interface: &Interface) {
        for base in interface.bases.iter() {
            self.name(&base.name);
        }
        for operation in interface.operations.iter().skip(interface.inherited) {
            self.shape(&operation.returns, 0);
            operation.parameters.iter().for_each(|parameter| self.shape(&parameter.field.shape, 0));
            if !self.types_alone {
                for raised in operation.raises.iter() {
                    self.name(&raised.name);
                }
            }
        }
        for signal in interface.signals.iter() {
            self.parts(&signal.fields, 0);
            if let Some((sink, _)) = &signal.sink {
                self.name(&sink.name);
            }
        }
    }

    /// A use of a type; one with a name is looked into once.
    fn shape(&mut self, shape: &Shape, depth: usize) {
        let is_new = match shape {
            Shape::Struct(known) => known.get().is_none_or(|known| self.named(&known.name)),
            Shape::Union(known) => known.get().is_none_or(|known| self.named(&known.name)),
            Shape::Enum(known) => self.name(&known.name),
            Shape::Alias(known) => {
                self.name(&known.name);
                true
            }
            _ => true,
        };
        if is_new {
            self.parts(shape, depth);
        }
    }

    /// What is inside a type. The depth is bounded because types may contain themselves by pointers.
    fn parts(&mut self, shape: &Shape, depth: usize) {
        if depth > limits::NESTING * 4 {
            return;
        }
        let depth = depth + 1;
        match shape {
            Shape::Struct(shape) => {
                shape
                    .get()
                    .iter()
                    .flat_map(|shape| shape.fields.iter())
                    .for_each(|f| self.shape(&f.shape, depth));
            }
            Shape::Union(shape) => {
                let Some(shape) = shape.get() else { return };
                self.shape(&shape.discriminator, depth);
                shape.arms.iter().for_each(|arm| self.shape(&arm.field.shape, depth));
            }
            Shape::Sequence(shape) => self.shape(&shape.element, depth),
            Shape::Array(shape) => self.shape(&shape.element, depth),
            Shape::Optional(target) => self.shape(target, depth),
            Shape::Pointer(pointer) => self.shape(&pointer.target, depth),
            Shape::Alias(alias) => self.shape(&alias.target, depth),
            Shape::Map(map) => {
                self.shape(&map.key, depth);
                self.shape(&map.value, depth);
            }
            _ => {}
        }
    }
}
