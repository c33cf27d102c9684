//! The graph of a contract's types: which of them hold one another by value, and which reach a handle.
//!
//! Each named type is looked at once, so the work grows with the size of the contract, not with the number of paths
//! through it: a few dozen types that all have one another have more paths than anybody can walk.

use super::definitions::type_name;
use everywire_model::Shape;
use std::collections::{HashMap, HashSet};

/// What is known of the types of a contract, by their names.
#[derive(Debug, Default)]
pub(super) struct TypeGraph {
    /// The strongly connected component of each type, along members held by value.
    components: HashMap<String, usize>,
    /// Types that reach an operating-system handle: their values cannot be compared.
    handles: HashSet<String>,
}

/// How a type uses others.
#[derive(Debug, Default)]
struct Uses {
    /// Types within a value of it: not in a list or behind a pointer.
    within: HashSet<String>,
    /// All types that it uses.
    all: HashSet<String>,
    /// Whether it has a handle that belongs to no other named type.
    handle: bool,
}

impl TypeGraph {
    /// The graph of these types and all that they use.
    pub(super) fn new<'s>(roots: impl Iterator<Item = &'s Shape>) -> Self {
        let mut nodes: HashMap<String, Uses> = HashMap::new();
        let mut open: Vec<&'s Shape> = roots.collect();
        while let Some(shape) = open.pop() {
            let shape = shape.resolved();
            let name = type_name(shape);
            if name.is_empty() {
                // The named types inside it.
                each_part(shape, &mut |part, _| open.push(part));
                continue;
            }
            if nodes.contains_key(name) {
                continue;
            }
            let mut uses = Uses::default();
            each_part(shape, &mut |part, by_value| note(part, by_value, &mut uses, &mut open));
            nodes.insert(name.to_owned(), uses);
        }
        Self { components: components(&nodes), handles: handles(&nodes) }
    }

    /// Whether a member of this shape, in the struct with this name, can hold one of that struct within itself.
    pub(super) fn contains(&self, member: &Shape, of: &str) -> bool {
        let shape = member.resolved();
        let name = type_name(shape);
        if !name.is_empty() {
            // The struct holds the member: a way back puts both into one component.
            return name == of
                || self.components.get(of).is_some_and(|own| self.components.get(name) == Some(own));
        }
        let mut found = false;
        each_part(shape, &mut |part, by_value| found = found || (by_value && self.contains(part, of)));
        found
    }

    /// Whether values of this shape can be compared: all but those with operating-system handles.
    pub(super) fn comparable(&self, shape: &Shape) -> bool {
        let shape = shape.resolved();
        if matches!(shape, Shape::Handle) {
            return false;
        }
        let name = type_name(shape);
        if !name.is_empty() {
            return !self.handles.contains(name);
        }
        let mut all = true;
        each_part(shape, &mut |part, _| all = all && self.comparable(part));
        all
    }
}

/// Notes what a part of a type uses, through nameless types up to the next named ones. The named ones are put
/// on the list of those to look at.
fn note<'s>(shape: &'s Shape, by_value: bool, uses: &mut Uses, open: &mut Vec<&'s Shape>) {
    let shape = shape.resolved();
    let name = type_name(shape);
    if name.is_empty() {
        uses.handle |= matches!(shape, Shape::Handle);
        each_part(shape, &mut |part, inner| note(part, by_value && inner, uses, open));
        return;
    }
    if by_value {
        uses.within.insert(name.to_owned());
    }
    if uses.all.insert(name.to_owned()) {
        open.push(shape);
    }
}

/// The shapes that a shape is made of, and whether its values hold theirs: a list or a pointer does not. A
/// map is a list here: it is held on the heap.
fn each_part<'s>(shape: &'s Shape, each: &mut dyn FnMut(&'s Shape, bool)) {
    match shape {
        Shape::Struct(shape) => shape.fields.iter().for_each(|field| each(&field.shape, true)),
        Shape::Union(shape) => shape.arms.iter().for_each(|arm| each(&arm.field.shape, true)),
        Shape::Array(shape) => each(&shape.element, true),
        Shape::Optional(target) => each(target, true),
        Shape::Sequence(shape) => each(&shape.element, false),
        Shape::Map(shape) => {
            each(&shape.key, false);
            each(&shape.value, false);
        }
        Shape::Pointer(pointer) => each(&pointer.target, false),
        Shape::Alias(alias) => each(&alias.target, true),
        _ => {}
    }
}

/// The types from which a handle is reached: from those that have one, back along the uses.
fn handles(nodes: &HashMap<String, Uses>) -> HashSet<String> {
    let mut users: HashMap<&str, Vec<&str>> = HashMap::new();
    for (name, uses) in nodes {
        uses.all.iter().for_each(|used| users.entry(used).or_default().push(name));
    }
    let mut open: Vec<&str> =
        nodes.iter().filter(|(_, uses)| uses.handle).map(|(name, _)| name.as_str()).collect();
    let mut found: HashSet<String> = open.iter().map(|name| (*name).to_owned()).collect();
    while let Some(name) = open.pop() {
        for user in users.get(name).into_iter().flatten() {
            if found.insert((*user).to_owned()) {
                open.push(user);
            }
        }
    }
    found
}

/// The strongly connected component of each type, by Kosaraju's method: the order in which a walk leaves the types,
/// then walks back from the last one left. Without recursion, as a chain of types can be long.
fn components(nodes: &HashMap<String, Uses>) -> HashMap<String, usize> {
    let mut users: HashMap<&str, Vec<&str>> = HashMap::new();
    for (name, uses) in nodes {
        uses.within.iter().for_each(|used| users.entry(used).or_default().push(name));
    }
    let mut left: Vec<&str> = Vec::with_capacity(nodes.len());
    let mut seen: HashSet<&str> = HashSet::new();
    for name in nodes.keys() {
        // A type to enter, or one to leave.
        let mut open = vec![(name.as_str(), true)];
        while let Some((name, enter)) = open.pop() {
            if !enter {
                left.push(name);
            } else if seen.insert(name) {
                open.push((name, false));
                let used = nodes.get(name).into_iter().flat_map(|uses| &uses.within);
                open.extend(used.map(|used| (used.as_str(), true)));
            }
        }
    }
    let mut components: HashMap<String, usize> = HashMap::new();
    for (number, root) in left.into_iter().rev().enumerate() {
        let mut open = vec![root];
        while let Some(name) = open.pop() {
            if components.contains_key(name) {
                continue;
            }
            components.insert(name.to_owned(), number);
            open.extend(users.get(name).into_iter().flatten());
        }
    }
    components
}
