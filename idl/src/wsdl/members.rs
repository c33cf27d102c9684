//! The members of types: elements, in whatever way they stand beside one another.
//!
//! A struct is flat, a schema is not: sequences, choices and groups stand inside one another. All elements
//! become fields in the order of the text, and `MemberPosition` carries down what the groups around say of them. What
//! the struct cannot say by a field's shape becomes a mark (`marks`): which choice a member is an alternative
//! of, that it is left out when empty, that it repeats without an element around it. A choice that is
//! repeated is a list of unions, and an element for which others stand is a choice (`choices`).
//!
//! Invariants: names of members are unique; a second member of one name is left out with a remark, and an
//! attribute gives way to an element. Members of the base come first and keep their order, because they are
//! first on the wire. An element is in the namespace of the type that declares it: one that is inherited from another
//! namespace has a mark that says so.
//!
//! Bounds: each particle and each attribute counts every time it is walked (`count`), so groups that name
//! groups cannot multiply for nothing; bases and groups are followed at most `NESTING` deep.

use super::builtin::{self, Typed};
use super::limits::{FREE, MEMBERS, NESTING};
use super::marks::{self, Attribute, Mark};
use super::names::{QName, SCHEMA};
use super::schema::{Schemas, extension};
use super::tree::Node;
use super::types::{Types, is_of_graphs, many};
use crate::report::Problem;
use everywire_model::shape::{Field, Name, Text};
use everywire_model::{Hold, Shape};
use std::collections::{HashMap, HashSet};

/// Where a member stands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MemberPosition {
    /// Whether what it stands in may be missing.
    pub(super) optional: bool,
    /// Whether it is one of several alternatives, and missing where another one is chosen.
    pub(super) alternative: bool,
    /// The number of the choice that it alone is an alternative of. None where it is part of an alternative
    /// of several members.
    pub(super) choice: Option<u32>,
    /// Whether XmlSerializer writes the type: values that may be missing are left out.
    pub(super) serialized: bool,
}

/// The members of a type that were found so far. `fields` only grows until `finish` leaves out what the type
/// forbids.
pub(super) struct Members {
    /// All members, the base's first.
    pub(super) fields: Vec<Field>,
    /// Their names, and those that were given away.
    pub(super) taken: HashSet<String>,
    /// How many of them are the base's.
    inherited: usize,
    /// Whether attributes of the base may be declared again.
    restricted: bool,
    /// Those of the base that it says are not here.
    forbidden: HashSet<usize>,
    /// Attributes by namespace and name, the base's too.
    attributes: HashMap<(String, String), usize>,
    /// Own attributes by what their members are called.
    named: HashMap<String, usize>,
    /// The highest number of a choice so far.
    pub(super) choices: u32,
    /// Those of them that are repeated. It numbers their names.
    pub(super) lists: usize,
}

impl<'n, 't> Types<'n, 't, '_> {
    /// The fields of a type, those of its base first. With the depth that they make. `chain` counts the types
    /// that extend one another. None after a mistake, or with a reason in `lost`.
    pub(super) fn fields(
        &mut self,
        name: &QName,
        node: &'n Node<'t>,
        chain: usize,
    ) -> Option<(Vec<Field>, usize)> {
        let (mut fields, mut depth, mut content, mut text) = (Vec::new(), 0, node, None);
        let simple = node.one("simpleContent");
        let restricted = simple.and_then(|simple| simple.one("restriction"));
        let mut restricts = restricted.is_some();
        if let Some(extension) = extension(node).or(restricted) {
            let base = extension.qname("base")?;
            match self.schemas.base(name, &base) {
                Some(parent) if parent.local == "complexType" => {
                    if chain == NESTING {
                        let message = format!("more than {NESTING} types extend one another");
                        self.report.add(Problem::new(node.span(), message));
                        return None;
                    }
                    (fields, depth) = self.fields(&base, parent, chain + 1)?;
                    inherit(&base, name, &mut fields);
                }
                // The base is a simple type: the text of the element, with attributes.
                _ if simple.is_some() => {
                    let typed = self.used(&base, extension)?;
                    depth = typed.depth;
                    text = Some(written(typed.shape));
                }
                None if base.namespace == SCHEMA => {}
                None if base == *name => {
                    self.lose(extension, "type", &base);
                    return None;
                }
                _ => {
                    self.named(&base, Some(extension))?;
                }
            }
            content = extension;
        } else if simple.is_some() {
            return None;
        } else if let Some(restriction) = node.one("complexContent").and_then(|own| own.one("restriction")) {
            // A restriction says again which elements it has; attributes it has all but those that it prohibits.
            let base = restriction.qname("base")?;
            if let Some(parent) = self.schemas.base(name, &base) {
                if chain == NESTING {
                    let message = format!("more than {NESTING} types extend one another");
                    self.report.add(Problem::new(node.span(), message));
                    return None;
                }
                (fields, depth) = self.fields(&base, parent, chain + 1)?;
                fields.retain(|field| matches!(Mark::of(&field.shape), Some(Mark::Attribute(_))));
            }
            restricts = true;
            content = restriction;
        }
        if [node, content].iter().any(|part| part.get("mixed") == Some("true")) {
            self.remark(format!("{name}: text between its elements is left out"));
        }
        // Attributes come before elements on the wire.
        let mut members = Members::new(fields, restricts);
        depth = depth.max(self.attributes(name, content, &mut members, 0)?);
        if let Some(shape) = text {
            members.add("Value", "Text", Mark::Text.on(shape));
        }
        let serialized = is_serialized(content, &name.namespace);
        for particle in content.children.iter().filter(|child| child.space == SCHEMA) {
            if matches!(particle.local, "sequence" | "all" | "choice" | "group") {
                let place = MemberPosition { serialized, ..MemberPosition::default() };
                depth = depth.max(self.particle(name, particle, place, &mut members)?);
            }
        }
        Some((members.finish(), depth))
    }

    /// One of the parts of a type; recursion is bounded by [`NESTING`]. How deep its types are; None after a
    /// mistake.
    fn particle(
        &mut self,
        name: &QName,
        particle: &'n Node<'t>,
        place: MemberPosition,
        members: &mut Members,
    ) -> Option<usize> {
        // Whatever stands in a group is walked wherever the group is named, so all of it counts.
        self.count(particle)?;
        let optional = place.optional || particle.get("minOccurs") == Some("0");
        let place = MemberPosition { optional, ..place };
        match particle.local {
            _ if particle.space != SCHEMA => Some(0),
            "element" if is_schema(particle) => {
                self.remark(format!("{name}: a data set is left out"));
                Some(0)
            }
            "element" => self.element_here(name, particle, place, members),
            // Elements of several kinds in any order.
            "choice" if many(particle) => self.choices(name, particle, members),
            "choice" => {
                // A choice among the alternatives of another is the same choice; one of a single element is none.
                let mut parts = parts(particle);
                let alone =
                    parts.next().is_some_and(|part| part.local == "element") && parts.next().is_none();
                if place.choice.is_none() && !alone {
                    members.choices = members.choices.saturating_add(1);
                }
                let choice = place.choice.or_else(|| (!alone).then_some(members.choices));
                let place = MemberPosition { optional: true, alternative: true, choice, ..place };
                self.particles(name, particle, place, members)
            }
            "sequence" | "all" => {
                if many(particle) {
                    self.remark(format!("{name}: a sequence that is repeated is read as one that is not"));
                }
                // Several members that are one alternative together are none to one another.
                let several = parts(particle).nth(1).is_some();
                let choice = place.choice.filter(|_| !several);
                self.particles(name, particle, MemberPosition { choice, ..place }, members)
            }
            "group" => {
                let group = particle.qname("ref")?;
                match self.schemas.groups.get(&group).copied() {
                    Some(group) => self.particles(name, group, place, members),
                    None => {
                        self.remark(format!("{name}: the group {group} is left out, it is not defined"));
                        Some(0)
                    }
                }
            }
            "any" => {
                self.remark(format!("{name}: any is left out"));
                Some(0)
            }
            _ => Some(0),
        }
    }

    /// An element, or those that may stand in its place. Apart from [`Types::particle`], whose frame stays small: types lie deep.
    fn element_here(
        &mut self,
        name: &QName,
        element: &'n Node<'t>,
        place: MemberPosition,
        members: &mut Members,
    ) -> Option<usize> {
        let Some(all) = self.replaced(element) else {
            let field = self.placed(name, element, place)?;
            return Some(self.add_element(name, field, members));
        };
        if many(element) {
            self.replaced_list(name, element, &all, members)
        } else {
            self.replaced_element(name, element, &all, place, members)
        }
    }

    /// Adds an element to the members. How deep its type is.
    pub(super) fn add_element(
        &mut self,
        of: &QName,
        (field, typed): (Field, Typed),
        members: &mut Members,
    ) -> usize {
        if members.taken.insert(field.name.to_string()) || members.make_room(&field.name) {
            members.fields.push(field);
        } else {
            let space = marks::namespace(&field.shape).unwrap_or(&of.namespace);
            let second = QName::new(space, field.name.to_string());
            self.remark(format!(
                "{of}: a second member {second} is left out; a message that has both is refused"
            ));
        }
        typed.depth
    }

    /// All parts of a group, one after another.
    fn particles(
        &mut self,
        name: &QName,
        group: &'n Node<'t>,
        place: MemberPosition,
        members: &mut Members,
    ) -> Option<usize> {
        if self.nesting > 2 * NESTING {
            let message = format!("types are inside one another more than {NESTING} deep");
            self.report.add(Problem::new(group.span(), message));
            return None;
        }
        self.nesting += 1;
        let mut depth = Some(0);
        for particle in &group.children {
            let Some(deepest) = depth else { break };
            depth = self.particle(name, particle, place, members).map(|deep| deep.max(deepest));
        }
        self.nesting -= 1;
        depth
    }

    /// An element inside a type. Used for members that stand outside of `particle`, such as parameters.
    pub(super) fn member(
        &mut self,
        of: &QName,
        element: &'n Node<'t>,
        place: MemberPosition,
    ) -> Option<(Field, Typed)> {
        self.count(element)?;
        self.placed(of, element, place)
    }

    /// An element inside a type that is counted already. Its shape says how it may be missing: by a mark, as
    /// an optional value, or not at all, where an empty value says the same.
    fn placed(&mut self, of: &QName, element: &'n Node<'t>, place: MemberPosition) -> Option<(Field, Typed)> {
        let found = self.element(of, element)?;
        let global = element.qname("ref");
        self.found(of, element, global, found, place)
    }

    /// The same of an element whose name and type are known. `global` is the name of the global element that it is.
    pub(super) fn found(
        &mut self,
        of: &QName,
        element: &'n Node<'t>,
        global: Option<QName>,
        (local, typed): (String, Typed),
        place: MemberPosition,
    ) -> Option<(Field, Typed)> {
        let elsewhere = self.elsewhere(of, element, global.as_ref());
        let field = |shape| {
            let shape = match &elsewhere {
                Some(namespace) => marks::within(namespace, shape),
                None => shape,
            };
            Field { name: Name::from(local.clone()), shape }
        };
        let global = global.and_then(|name| self.schemas.elements.get(&name).copied());
        let of_it = |what| element.get(what).or_else(|| global?.get(what));
        let kind = element.get("type").map(|kind| element.resolve(kind.trim()));
        let nillable = of_it("nillable") == Some("true")
            || kind.is_some_and(|kind| builtin::is_nillable(&kind, &typed.shape));
        let optional = place.optional || element.get("minOccurs") == Some("0");
        let value = typed.value || builtin::is_value(&typed.shape);
        let wrapped = |shape: Shape| match shape {
            Shape::Optional(_) => shape,
            _ => Shape::Optional(Hold::new(shape)),
        };
        // An element that may come several times is a list without an element around it.
        if many(element) {
            let octet = matches!(typed.shape.resolved(), Shape::U8);
            if octet {
                self.remark(format!("{of}: the repeated octets {local} are read as texts"));
            }
            let item = if octet { Shape::Text(Text::NARROW) } else { typed.shape.clone() };
            let item =
                if nillable && (value || builtin::is_qualified_name(&item)) { wrapped(item) } else { item };
            let shape = Mark::Items.on(Shape::sequence(item));
            return Some((field(shape), Typed { depth: typed.depth + 1, ..typed }));
        }
        let default = of_it("default").or_else(|| of_it("fixed"));
        let text = matches!(typed.shape.resolved(), Shape::Text(_));
        let shape = typed.shape.clone();
        // The order matters: an alternative is left out whatever else it says, a default is a value where the
        // element is missing, and only then come nil and missing elements.
        let shape = if place.alternative {
            Mark::Left(place.choice, None).on(wrapped(shape))
        } else if let Some(default) = default.filter(|_| optional && !nillable && (value || text)) {
            Mark::Left(None, Some(default)).on(shape)
        } else if !builtin::is_emptiable(&shape) && !nillable && optional && (!value || place.serialized) {
            Mark::Left(None, None).on(wrapped(shape))
        } else if typed.open || (nillable && !builtin::is_emptiable(&shape)) {
            wrapped(shape)
        } else {
            shape
        };
        Some((field(shape), typed))
    }

    /// The namespace of an element inside a type, where it is not the type's; empty where it is in none. None
    /// where it is in the type's namespace.
    pub(super) fn elsewhere(
        &mut self,
        of: &QName,
        element: &Node<'_>,
        global: Option<&QName>,
    ) -> Option<String> {
        if !Schemas::is_qualified(&of.namespace, element) {
            return Some(String::new());
        }
        let global = global?;
        if global.namespace == of.namespace || !self.schemas.elements.contains_key(global) {
            return None;
        }
        if global.namespace.contains('}') {
            let message = format!("{} is no namespace of an element", crate::xml::shown(&global.namespace));
            self.report.add(Problem::new(element.span(), message));
            return None;
        }
        Some(global.namespace.clone())
    }

    /// Counts one more member of a type. None, after a message, where there are too many.
    pub(super) fn count(&mut self, node: &Node<'_>) -> Option<()> {
        self.weigh(node, 1)
    }

    /// Counts what is looked through at each place that names it; few children are free.
    pub(super) fn look(&mut self, node: &Node<'_>) -> Option<()> {
        self.weigh(node, node.children.len() / FREE)
    }

    /// Adds to the count of members.
    fn weigh(&mut self, node: &Node<'_>, members: usize) -> Option<()> {
        self.members = self.members.saturating_add(members);
        if self.members > MEMBERS {
            let message = format!("the types have more than {MEMBERS} members");
            self.report.add(Problem::new(node.span(), message));
            return None;
        }
        Some(())
    }
}

impl Members {
    /// Those of the base; `restricted`: the type says of some of them what they are here. Attributes and
    /// numbers of choices are taken over from the base's fields.
    fn new(fields: Vec<Field>, restricted: bool) -> Self {
        let mut members = Self {
            inherited: fields.len(),
            restricted,
            taken: fields.iter().map(|field| field.name.to_string()).collect(),
            forbidden: HashSet::new(),
            attributes: HashMap::new(),
            named: HashMap::new(),
            choices: 0,
            lists: 1,
            fields: Vec::new(),
        };
        for (at, field) in fields.iter().enumerate() {
            match Mark::of(&field.shape) {
                Some(Mark::Attribute(attribute)) => {
                    members.attributes.insert(key(&attribute), at);
                }
                // Other choices than the base's have other numbers.
                Some(Mark::Left(Some(choice), _)) => members.choices = members.choices.max(choice),
                _ => {}
            }
        }
        members.fields = fields;
        members
    }

    /// Renames an attribute whose name an element of the type needs. False where no attribute has it,
    /// or its other name is taken as well.
    fn make_room(&mut self, name: &str) -> bool {
        let other = format!("{name}Attribute");
        let Some(at) = self.named.get(name).copied() else { return false };
        let Some(attribute) = self.fields.get_mut(at).filter(|_| self.taken.insert(other.clone())) else {
            return false;
        };
        attribute.name = Name::from(other.clone());
        self.named.remove(name);
        self.named.insert(other, at);
        true
    }

    /// Leaves out an attribute of the base that the type says is not here. Only attributes of the base, and
    /// only where the type restricts it.
    pub(super) fn forbid(&mut self, namespace: &str, name: &str) {
        let known = self.attributes.get(&(namespace.to_owned(), name.to_owned())).copied();
        self.forbidden.extend(known.filter(|known| self.restricted && *known < self.inherited));
    }

    /// All members. One that is alone in its choice, because the other alternatives are several members each, is of none.
    fn finish(self) -> Vec<Field> {
        let mut of_choice: HashMap<u32, usize> = HashMap::new();
        for field in &self.fields {
            if let Some(Mark::Left(Some(choice), _)) = Mark::of(&field.shape) {
                *of_choice.entry(choice).or_default() += 1;
            }
        }
        let kept = self.fields.into_iter().enumerate().filter(|(at, _)| !self.forbidden.contains(at));
        let freed = |field: Field| match Mark::of(&field.shape) {
            Some(Mark::Left(Some(choice), default)) if of_choice.get(&choice) == Some(&1) => {
                let shape = Mark::Left(None, default).on(marks::unmarked(&field.shape).clone());
                let shape = match marks::namespace(&field.shape) {
                    Some(namespace) => marks::within(namespace, shape),
                    None => shape,
                };
                Field { name: field.name, shape }
            }
            _ => field,
        };
        kept.map(|(_, field)| freed(field)).collect()
    }

    /// Adds an attribute, or says again what one of the base is; whether there was room for it. No element has two attributes
    /// of one name.
    pub(super) fn add_attribute(&mut self, attribute: &Attribute<'_>, shape: Shape) -> bool {
        let key = key(attribute);
        if let Some(known) = self.attributes.get(&key).copied() {
            let again = self.restricted && known < self.inherited;
            let Some(field) = self.fields.get_mut(known).filter(|_| again) else { return false };
            field.shape = shape;
            return true;
        }
        let at = self.fields.len();
        if !self.add(attribute.name, "Attribute", shape) {
            return false;
        }
        self.attributes.insert(key, at);
        if let Some(field) = self.fields.get(at) {
            self.named.insert(field.name.to_string(), at);
        }
        true
    }

    /// Adds a member that the schema does not name, or names in another way; whether there was a name for it.
    /// The second name that is tried has a suffix.
    pub(super) fn add(&mut self, name: &str, suffix: &str, shape: Shape) -> bool {
        let names = [name.to_owned(), format!("{name}{suffix}")];
        let free = names.into_iter().find(|name| self.taken.insert(name.clone()));
        let Some(name) = free else { return false };
        self.fields.push(Field { name: Name::from(name), shape });
        true
    }
}

/// Elements of a base stay in its namespace, in whatever namespace the type is that extends it.
fn inherit(base: &QName, name: &QName, fields: &mut [Field]) {
    if base.namespace == name.namespace {
        return;
    }
    for field in fields.iter_mut().filter(|field| marks::namespace(&field.shape).is_none()) {
        field.shape = marks::within(&base.namespace, std::mem::replace(&mut field.shape, Shape::Void));
    }
}

/// What tells attributes apart.
fn key(attribute: &Attribute<'_>) -> (String, String) {
    (attribute.namespace.to_owned(), attribute.name.to_owned())
}

/// Whether an element is a schema that is sent along, as data sets of .NET have it before their rows.
pub(super) fn is_schema(element: &Node<'_>) -> bool {
    let of = element.get("ref").map(|name| element.resolve(name.trim()));
    of.is_some_and(|name| name.namespace == SCHEMA && name.local == "schema")
}

/// What stands in a group. Annotations are no parts.
pub(super) fn parts<'n, 't>(group: &'n Node<'t>) -> impl Iterator<Item = &'n Node<'t>> {
    group.children.iter().filter(|part| part.space == SCHEMA && part.local != "annotation")
}

/// What stands in attributes, or between them: a value of any simple type is text.
pub(super) fn written(shape: Shape) -> Shape {
    if matches!(shape, Shape::Variant) { Shape::Text(Text::NARROW) } else { shape }
}

/// Whether these are members as XmlSerializer has them, and DataContractSerializer has not. The two
/// serializers differ in how they leave members out, and schemas do not say whose they are: these are signs
/// that only XmlSerializer leaves.
pub(super) fn is_serialized(content: &Node<'_>, namespace: &str) -> bool {
    content.children.iter().filter(|child| child.space == SCHEMA).any(|child| match child.local {
        "attribute" => !is_of_graphs(child),
        "attributeGroup" | "anyAttribute" | "choice" => true,
        "sequence" | "all" => is_serialized(child, namespace),
        "element" => {
            let string = child.get("type").map(|name| child.resolve(name.trim()));
            let string = string.is_some_and(|name| name.namespace == SCHEMA && name.local == "string");
            let left = child.get("minOccurs") == Some("0") && child.get("nillable") != Some("true");
            let elsewhere = !Schemas::is_qualified(namespace, child);
            many(child) || child.get("default").is_some() || (string && left) || elsewhere
        }
        _ => false,
    })
}
