//! Definitions in an order in which each stands behind what it needs.
//!
//! In WSDL and XML Schema the order of types means nothing. In OMG IDL and MIDL a type must be complete before another one has it
//! inside; behind a pointer or in a sequence, an announcement is enough. A contract of these languages is in a right order
//! already, and stays as it is.
//!
//! Circles that no order can satisfy are left as they come.

use everywire_model::shape::{Name, Struct};
use everywire_model::{Contract, Definition, Hold, Interface, Shape};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// How deep unnamed types are looked into.
const NESTING: usize = 64;

/// The contract with each definition behind those that it needs. `container` gives the definition inside which a name is printed: all
/// that stands in one moves with it.
pub(crate) fn sorted<'c>(contract: &'c Contract, container: impl Fn(&str) -> String) -> Cow<'c, Contract> {
    let mut by_name = HashMap::new();
    let (mut groups, mut of_container): (Vec<Vec<usize>>, HashMap<String, usize>) = Default::default();
    for (index, definition) in contract.definitions.iter().enumerate() {
        let name = name(definition);
        let at = match of_container.get(&container(name)) {
            Some(at) if !name.is_empty() => *at,
            _ => {
                of_container.insert(container(name), groups.len());
                groups.push(Vec::new());
                groups.len() - 1
            }
        };
        groups.get_mut(at).into_iter().for_each(|group| group.push(index));
        if !name.is_empty() {
            by_name.entry(name).or_insert(at);
        }
    }
    let needed = |group: &[usize]| {
        let mut needs = GroupDependencies {
            by_name: &by_name,
            groups: Vec::new(),
            seen: HashSet::new(),
            names: HashSet::new(),
        };
        for definition in group.iter().filter_map(|index| contract.definitions.get(*index)) {
            needs.definition(definition);
        }
        needs.groups
    };
    let (mut order, mut entered) =
        (Vec::with_capacity(contract.definitions.len()), vec![false; groups.len()]);
    for first in 0..groups.len() {
        // A way down, by its groups: what each needs and is not looked at. Chains may be as long as the contract.
        let mut way: Vec<(usize, std::vec::IntoIter<usize>)> = Vec::new();
        let mut next = Some(first);
        loop {
            if let Some(group) = next.take()
                && let Some(entered) = entered.get_mut(group)
                && !std::mem::replace(entered, true)
            {
                let members = groups.get(group).map(Vec::as_slice).unwrap_or_default();
                way.push((group, needed(members).into_iter()));
            }
            let Some((group, needs)) = way.last_mut() else { break };
            next = needs.next();
            if next.is_none() {
                order.extend(groups.get(*group).into_iter().flatten().copied());
                way.pop();
            }
        }
    }
    if order.is_sorted() {
        return Cow::Borrowed(contract);
    }
    let definitions = order.iter().filter_map(|index| contract.definitions.get(*index).cloned());
    Cow::Owned(Contract { definitions: definitions.collect() })
}

/// What a definition is called; empty for types without a name.
pub(crate) fn name(definition: &Definition) -> &str {
    match definition {
        Definition::Type(Shape::Struct(shape)) | Definition::Exception(shape) => {
            shape.get().map_or("", |shape| &shape.name)
        }
        Definition::Type(Shape::Union(shape)) => shape.get().map_or("", |shape| &shape.name),
        Definition::Type(Shape::Enum(shape)) => &shape.name,
        Definition::Type(Shape::Alias(alias)) if alias.name.is_empty() => match alias.target.resolved() {
            Shape::Struct(shape) => shape.get().map_or("", |shape| &shape.name),
            _ => "",
        },
        Definition::Type(Shape::Alias(alias)) => &alias.name,
        Definition::Type(_) => "",
        Definition::Constant(constant) => &constant.name,
        Definition::Interface(interface) => &interface.name,
    }
}

/// The groups that must stand before some definitions.
struct GroupDependencies<'c> {
    by_name: &'c HashMap<&'c str, usize>,
    groups: Vec<usize>,
    /// Aliases, maps, and types without a name that were looked into: many others may have them.
    seen: HashSet<(usize, bool)>,
    /// Types of other contracts that were looked into.
    names: HashSet<&'c str>,
}

impl<'c> GroupDependencies<'c> {
    fn definition(&mut self, definition: &'c Definition) {
        match definition {
            Definition::Type(Shape::Struct(shape)) | Definition::Exception(shape) => self.fields(shape, 0),
            Definition::Type(Shape::Union(shape)) => {
                let Some(shape) = shape.get() else { return };
                self.shape(&shape.discriminator, true, 0);
                shape.arms.iter().for_each(|arm| self.shape(&arm.field.shape, true, 0));
            }
            Definition::Type(Shape::Alias(alias)) => match alias.target.resolved() {
                // A value type of CORBA.
                Shape::Struct(shape) if alias.name.is_empty() => self.fields(shape, 0),
                _ => self.shape(&alias.target, true, 0),
            },
            Definition::Type(_) => {}
            Definition::Constant(constant) => self.shape(&constant.shape, true, 0),
            Definition::Interface(interface) => self.interface(interface),
        }
    }

    fn interface(&mut self, interface: &'c Interface) {
        interface.bases.iter().for_each(|base| self.name(&base.name));
        for operation in interface.operations.iter().skip(interface.inherited) {
            self.shape(&operation.returns, true, 0);
            operation.parameters.iter().for_each(|parameter| self.shape(&parameter.field.shape, true, 0));
            operation.raises.iter().for_each(|raised| self.name(&raised.name));
        }
        let fields = interface.signals.iter().flat_map(|signal| signal.fields.fields());
        fields.for_each(|field| self.shape(&field.shape, true, 0));
    }

    fn name(&mut self, name: &str) {
        self.groups.extend(self.by_name.get(name));
    }

    fn fields(&mut self, shape: &'c Hold<Struct>, depth: usize) {
        let fields = shape.get().into_iter().flat_map(|shape| shape.fields.iter());
        fields.for_each(|field| self.shape(&field.shape, true, depth));
    }

    /// A use of a type. `whole`: it must be complete, and not only be announced.
    fn shape(&mut self, shape: &'c Shape, whole: bool, depth: usize) {
        let Some(depth) = Some(depth + 1).filter(|depth| *depth < NESTING) else { return };
        match shape {
            Shape::Struct(held) => {
                let Some(body) = held.get() else { return };
                if self.is_elsewhere(&body.name, held.identity(), whole) {
                    self.fields(held, depth);
                }
            }
            Shape::Union(held) => {
                let Some(body) = held.get() else { return };
                if self.is_elsewhere(&body.name, held.identity(), whole) {
                    body.arms.iter().for_each(|arm| self.shape(&arm.field.shape, true, depth));
                }
            }
            Shape::Enum(body) => self.name(&body.name),
            Shape::Alias(alias) if self.by_name.contains_key(alias.name.as_ref()) => self.name(&alias.name),
            Shape::Alias(alias) if self.seen.insert((alias.identity(), whole)) => {
                self.shape(&alias.target, whole, depth);
            }
            Shape::Array(array) => self.shape(&array.element, whole, depth),
            Shape::Sequence(sequence) => self.shape(&sequence.element, false, depth),
            Shape::Optional(target) => self.shape(target, false, depth),
            Shape::Pointer(pointer) => self.shape(&pointer.target, false, depth),
            Shape::Map(map) if self.seen.insert((map.identity(), true)) => {
                self.shape(&map.key, true, depth);
                self.shape(&map.value, true, depth);
            }
            _ => {}
        }
    }

    /// Whether a struct or union is of no contract or another one, and is to be looked into.
    fn is_elsewhere(&mut self, name: &'c Name, identity: usize, whole: bool) -> bool {
        match self.by_name.get(name.as_ref()) {
            _ if name.is_empty() => self.seen.insert((identity, whole)),
            Some(at) => {
                if whole {
                    self.groups.push(*at);
                }
                false
            }
            None => self.names.insert(name),
        }
    }
}
