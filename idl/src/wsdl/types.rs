//! Types of schemas to shapes.
//!
//! A type is read when somebody asks for it, and `states` remembers what came of it: it is open while it is
//! read, then done or broken. One that is asked for while it is open contains itself, and gets a cell
//! (`cells`), which `close` fills. `(name, true)` is the family of a type, the union of it and all that
//! extend it, which is what a member of that type may hold.
//!
//! What a type becomes: one repeated element is a list, pairs marked `IsDictionary` are a map, an array of
//! SOAP's encoding is a list, everything else is a struct with the members of its bases first (`members`).
//! Simple types are in `simple`.
//!
//! Invariants: a name is defined once, and in the order in which types were completed, so that each stands
//! behind what it contains. A type that needs something undefined is broken with the reason in `lost`, and no
//! mistake is reported; None without a reason means a mistake in the report. Whoever handles `lost` takes it.
//! Where the cell of a broken type was given away before, `torn` has it: the types that hold the cell are not
//! complete, and all is read once more with the broken ones known from the start.
//!
//! Bounds: depth of a type, nesting of the reading itself, members of all types counted each time they are
//! walked, remarks.

use super::builtin::{self, Typed};
use super::cells::{self, CELLS, Origin};
use super::limits::{MEMBERS, NESTING, REMARKS};
use super::members::MemberPosition;
use super::names::{ARRAYS, QName, SCHEMA, SERIALIZATION, is_name, scoped};
use super::schema::Schemas;
use super::tree::{Node, WSDL, missing};
use crate::report::{Problem, Report};
use crate::unique::Unique;
use everywire_model::shape::{Arm, Enum, Field, Map, Name, Struct, Union};
use everywire_model::{Definition, Hold, Shape};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// What is known of a type that is being read or was read.
enum State {
    /// What stands for it meanwhile; whether it is a struct.
    Open(Option<Shape>, bool),
    /// It is read.
    Done(Typed),
    /// It cannot be read; because of what is missing, if that is why.
    Broken(Option<String>),
}

/// Reads types when they are asked for.
pub(super) struct Types<'n, 't, 'r> {
    pub(super) schemas: &'n Schemas<'n, 't>,
    pub(super) report: &'r mut Report,
    /// Scoped names of everything in the contract.
    pub(super) names: Unique,
    /// Types by name, and with `true` the type together with all that extend it.
    states: HashMap<(QName, bool), State>,
    /// The types, in the order in which they were completed.
    pub(super) definitions: Vec<(QName, Definition)>,
    /// What was read but cannot be said by a shape. At most `REMARKS`; each becomes a note of every
    /// interface.
    pub(super) remarks: Vec<String>,
    /// Names that were given, by the name in the schema and what was made of it.
    given: HashMap<(QName, &'static str), Name>,
    /// What the items of repeated choices are. By the name of the list.
    pub(super) lists: HashMap<QName, Shape>,
    /// Members that were walked so far; at most `MEMBERS`.
    pub(super) members: usize,
    /// Types and groups that are being read inside one another, which bounds the recursion.
    pub(super) nesting: usize,
    /// What is missing, where that is why a type or an operation was not read just now.
    pub(super) lost: Option<String>,
    /// Types that broke after others had got their cells.
    pub(super) torn: BrokenTypes,
    /// For the cells.
    origin: Origin,
}

/// Broken types, each with what is missing.
pub(super) type BrokenTypes = Vec<((QName, bool), Option<String>)>;

impl<'n, 't, 'r> Types<'n, 't, 'r> {
    /// `torn` are the types that are known to be broken.
    pub(super) fn new(
        schemas: &'n Schemas<'n, 't>,
        origin: Origin,
        torn: &BrokenTypes,
        report: &'r mut Report,
    ) -> Self {
        let broken = torn.iter().map(|(key, lost)| (key.clone(), State::Broken(lost.clone())));
        Self {
            schemas,
            report,
            names: Unique::default(),
            states: broken.collect(),
            definitions: Vec::new(),
            remarks: Vec::new(),
            given: HashMap::new(),
            lists: HashMap::new(),
            members: 0,
            nesting: 0,
            lost: None,
            torn: BrokenTypes::new(),
            origin,
        }
    }

    /// All types, in the order of the documents. Also those that no operation uses: a program may send them
    /// where a type is open.
    pub(super) fn all(&mut self) {
        for name in &self.schemas.order {
            if self.members > MEMBERS {
                return;
            }
            // What the serializer itself declares is known.
            let known = name.namespace == SERIALIZATION || name.namespace == builtin::ADDRESSING;
            // A type that cannot be read concerns only who uses it.
            self.lost = None;
            if !known && builtin::find(name).is_none() {
                let _ = self.named(name, None);
                if self.schemas.is_extended(name) {
                    let _ = self.family(name);
                }
            }
        }
    }

    /// The same one is noted once.
    pub(super) fn remark(&mut self, remark: String) {
        if self.remarks.len() < REMARKS && !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Notes that something is not defined. Whoever needs it is left out; the rest can be used.
    pub(super) fn lose(&mut self, node: &Node<'_>, what: &str, name: &QName) {
        let (message, help) = missing(what, name);
        self.report.doubt(Problem::new(node.span(), message.clone()).help(help));
        self.lost = Some(message);
    }

    /// A type as it is used: with all that extend it. None after a mistake, or with a reason in `lost`.
    pub(super) fn used(&mut self, name: &QName, place: &Node<'_>) -> Option<Typed> {
        if let Some(typed) = builtin::find(name) {
            return Some(typed);
        }
        if self.schemas.is_extended(name) {
            return self.family(name);
        }
        self.named(name, Some(place))
    }

    /// A type by its name, without those that extend it. `place` is where the name is used, for a message;
    /// without it, an unknown name is passed over in silence.
    pub(super) fn named(&mut self, name: &QName, place: Option<&Node<'_>>) -> Option<Typed> {
        if let Some(typed) = self.known(name, false) {
            return typed;
        }
        let Some(node) = self.schemas.types.get(name).copied() else {
            place.into_iter().for_each(|place| self.lose(place, "type", name));
            return None;
        };
        self.read(name, node)
    }

    /// Reads a type that is not read, or a list that is open.
    fn read(&mut self, name: &QName, node: &'n Node<'t>) -> Option<Typed> {
        if matches!(self.states.get(&(name.clone(), false)), Some(State::Open(..))) {
            // A list inside its own items: the items are what is open.
            if self.nesting > 2 * NESTING {
                return None;
            }
            self.nesting += 1;
            let typed = self.define(name, node);
            self.nesting -= 1;
            return typed;
        }
        self.within(name, false, node, |types| types.define(name, node))
    }

    /// What a type and all that extend it are together: a union of them. The union's first arm is the type itself.
    pub(super) fn family(&mut self, name: &QName) -> Option<Typed> {
        if let Some(typed) = self.known(name, true) {
            return typed;
        }
        let node = self.schemas.types.get(name).copied()?;
        self.within(name, true, node, |types| types.union(name, node))
    }

    /// A type that is read or being read. None where nothing was read of it. Some(None) means that it is
    /// broken, or that there are too many cells.
    fn known(&mut self, name: &QName, family: bool) -> Option<Option<Typed>> {
        Some(match self.states.get_mut(&(name.clone(), family))? {
            State::Done(typed) => Some(typed.clone()),
            State::Broken(lost) => {
                self.lost.clone_from(lost);
                None
            }
            // A list that is open cannot be a cell: its items are read again.
            State::Open(_, is_struct) if !family && !*is_struct => return None,
            State::Open(cell, _) => {
                if cell.is_none() {
                    *cell = cells::of(self.origin, name, family);
                }
                if let (None, Some(node)) = (&cell, self.schemas.types.get(name)) {
                    let message =
                        format!("this process has read more than {CELLS} types that contain themselves");
                    self.report.add(Problem::new(node.span(), message));
                }
                let open = |shape| Typed { name: name.clone(), shape, depth: 1, value: false, open: true };
                cell.clone().map(open)
            }
        })
    }

    /// Reads a type that may contain itself. `read` does the reading; before and after it the state is kept,
    /// bounds are checked, and the definition is noted.
    fn within(
        &mut self,
        name: &QName,
        family: bool,
        node: &Node<'t>,
        read: impl FnOnce(&mut Self) -> Option<Typed>,
    ) -> Option<Typed> {
        let key = (name.clone(), family);
        let is_struct = self.is_struct(name, node);
        self.states.insert(key.clone(), State::Open(None, is_struct));
        self.nesting += 1;
        let mut typed = if self.nesting > 2 * NESTING { None } else { read(self) };
        self.nesting -= 1;
        if self.nesting >= 2 * NESTING || typed.as_ref().is_some_and(|typed| typed.depth > NESTING) {
            let message = format!("types are inside one another more than {NESTING} deep");
            self.report.add(Problem::new(node.span(), message));
            typed = None;
        }
        let opened = match self.states.remove(&key) {
            Some(State::Open(cell, _)) => cell,
            _ => None,
        };
        // The cell must be filled even for those who have it already.
        match &mut typed {
            Some(typed) => close(opened, &mut typed.shape),
            None if opened.is_some() => self.torn.push((key.clone(), self.lost.clone())),
            None => {}
        }
        if typed.is_some() {
            self.lost = None;
        } else if self.lost.is_none() && !self.report.failed() {
            self.report.add(Problem::new(node.span(), format!("this {} cannot be read", node.local)));
        }
        let state = typed.clone().map_or_else(
            || State::Broken(self.lost.clone()),
            |typed| State::Done(Typed { open: false, ..typed }),
        );
        self.states.insert(key, state);
        let typed = typed?;
        // Lists and maps with usual names are no definitions.
        let definition = match &typed.shape {
            Shape::Struct(_) | Shape::Union(_) | Shape::Enum(_) => true,
            Shape::Alias(alias) => QName::parse(&alias.id).as_ref() == Some(name),
            _ => false,
        };
        if definition {
            self.definitions.push((name.clone(), Definition::Type(typed.shape.clone())));
        }
        Some(typed)
    }

    /// A type by its node, simple or complex.
    fn define(&mut self, name: &QName, node: &'n Node<'t>) -> Option<Typed> {
        if node.local == "simpleType" { self.simple(name, node) } else { self.complex(name, node) }
    }

    /// Whether a type is a struct: one that may contain itself. Lists of itself go through their items.
    fn is_struct(&self, name: &QName, node: &Node<'t>) -> bool {
        node.local == "complexType" && self.item_of(name, node).is_none() && encoded_array(node).is_none()
    }

    /// The one repeated element of a list type. None where the type has anything else, where others extend it (what they add stands
    /// behind the items), or where other elements stand for the one.
    fn item_of<'a>(&self, name: &QName, complex: &'a Node<'t>) -> Option<&'a Node<'t>> {
        item_of(complex).filter(|item| !self.schemas.is_extended(name) && self.replaced(item).is_none())
    }

    /// A complex type: a list, a dictionary or a struct.
    fn complex(&mut self, name: &QName, node: &'n Node<'t>) -> Option<Typed> {
        if let Some(item) = self.item_of(name, node) {
            return self.list(name, node, item);
        }
        if let Some((content, item)) = encoded_array(node) {
            return self.encoded_list(name, content, item);
        }
        if let Some(typed) = self.anything(name, node) {
            return Some(typed);
        }
        // Reading the members may ask for this very type.
        let (fields, depth) = self.fields(name, node, 0)?;
        let value = annotation(node, "IsValueType").is_some_and(|text| text == "true");
        let shape = Struct {
            name: self.name(name, ""),
            id: Name::from(name.to_string()),
            fields: Cow::Owned(fields),
        };
        let shape = Shape::Struct(Hold::new(shape));
        Some(Typed { name: name.clone(), shape, depth: depth + 1, value, open: false })
    }

    /// The name and the type of an element, global or not. `of` is the type it stands in, by which a type of
    /// its own is named. An element without a type holds anything.
    pub(super) fn element(&mut self, of: &QName, element: &'n Node<'t>) -> Option<(String, Typed)> {
        let Some(name) = element.qname("ref") else { return self.declared(of, element) };
        if self.schemas.substitutes.contains_key(&name) {
            self.remark(format!("{of}: elements that stand for {name} are left out"));
        }
        self.global(element, &name)
    }

    /// The same of a global element. `place` is where it is named.
    pub(super) fn global(&mut self, place: &Node<'_>, name: &QName) -> Option<(String, Typed)> {
        // Its type is one and the same wherever it is named, so that it may contain itself.
        if let Some(found) = self.schemas.elements.get(name).copied() {
            return self.declared(&QName::new(name.namespace.clone(), ""), found);
        }
        let known = builtin::find(name).map(|typed| (name.local.clone(), typed));
        if known.is_none() {
            self.lose(place, "element", name);
        }
        known
    }

    /// The same of an element that says itself what it is.
    fn declared(&mut self, home: &QName, target: &'n Node<'t>) -> Option<(String, Typed)> {
        self.look(target)?;
        let local = target.needed("name", self.report)?.to_owned();
        if !is_name(&local) {
            let message = format!("{} is no name of XML", crate::xml::shown(&local));
            self.report.add(Problem::new(target.span(), message));
            return None;
        }
        if target.get("type").is_some() {
            let name = target.qname("type")?;
            return Some((local, self.used(&name, target)?));
        }
        // A type of its own is named by where it stands.
        match target.one("complexType").or_else(|| target.one("simpleType")) {
            Some(own) => {
                let name = self.place_name(home, &local);
                Some((local, self.own(&name, own)?))
            }
            None => Some((local, Typed::plain(Shape::Variant, false))),
        }
    }

    /// The name of a type that stands where it is used; no other type has it. It is made of the names of the
    /// type around and of the element, as .NET makes it.
    pub(super) fn place_name(&self, of: &QName, local: &str) -> QName {
        let mut name = QName::new(of.namespace.clone(), format!("{}{local}", of.local));
        while self.schemas.types.contains_key(&name) {
            name.local.push_str("Element");
        }
        name
    }

    /// A type that stands where it is used. It is known by the name made for it.
    pub(super) fn own(&mut self, name: &QName, node: &'n Node<'t>) -> Option<Typed> {
        match self.known(name, false) {
            Some(typed) => typed,
            None => self.read(name, node),
        }
    }

    /// A list or a dictionary. Where its names are not the usual ones, an alias keeps them, since the wire
    /// must write them.
    fn list(&mut self, name: &QName, node: &'n Node<'t>, item: &'n Node<'t>) -> Option<Typed> {
        if let Some((key, value)) = pair_of(node, item) {
            let (key, keys) = self.member(name, key, MemberPosition::default())?;
            let (value, values) = self.member(name, value, MemberPosition::default())?;
            let item = item.get("name").unwrap_or_default();
            let pair = builtin::pair_named(&keys.name, &values.name);
            let usual = item == pair && key.name == "Key" && value.name == "Value";
            let usual = usual && *name == QName::new(ARRAYS, format!("ArrayOf{pair}"));
            let id = format!("{name};{item},{},{}", key.name, value.name);
            let shape = Shape::Map(Hold::new(Map { key: key.shape, value: bare(value.shape) }));
            let shape = if usual { shape } else { self.aliased(name, &id, shape) };
            let depth = keys.depth.max(values.depth) + 1;
            return Some(Typed { name: name.clone(), shape, depth, value: false, open: false });
        }
        let (local, typed) = self.element(name, item)?;
        let nillable = item.get("nillable") == Some("true");
        let element =
            if nillable && (builtin::is_value(&typed.shape) || builtin::is_qualified_name(&typed.shape)) {
                Shape::Optional(Hold::new(typed.shape))
            } else {
                typed.shape
            };
        // Octets in the model are one text of base64.
        if matches!(element, Shape::U8) {
            self.remark(format!("{name}: a list of unsignedByte is read as base64Binary"));
        }
        let usual = builtin::list_named(&typed.name) == *name && typed.name.local == local;
        let qualified = Schemas::is_qualified(&name.namespace, item);
        let usual = usual && qualified && !matches!(element.resolved(), Shape::U8);
        let shape = Shape::sequence(element);
        // A `-` marks items in no namespace, since no name begins with it.
        let id = format!("{name};{}{local}", if qualified { "" } else { "-" });
        let shape = if usual { shape } else { self.aliased(name, &id, shape) };
        Some(Typed { name: name.clone(), shape, depth: typed.depth + 1, value: false, open: false })
    }

    /// A list of SOAP's encoding (SOAP 1.1, 5.4.2; WSDL 1.1, 2.2): what its items are stands in an attribute, and what they are
    /// called does not matter. `kind` is the text of `arrayType`: a type and dimensions in brackets.
    fn encoded_list(&mut self, name: &QName, content: &'n Node<'t>, kind: Option<&str>) -> Option<Typed> {
        let inner = content.one("sequence").or_else(|| content.one("all"));
        let item = inner.and_then(|inner| inner.one("element"));
        let local = item.and_then(|item| item.get("name")).filter(|name| is_name(name)).unwrap_or("item");
        let (kind, dimensions) = match kind {
            Some(text) => text.split_once('[').unwrap_or((text, "]")),
            None => ("", "]"),
        };
        let item = match (kind.trim(), item) {
            ("", Some(item)) => self.element(name, item)?.1,
            ("", None) => Typed::plain(Shape::Variant, false),
            (kind, _) => {
                let kind = content.resolve(kind);
                self.used(&kind, content)?
            }
        };
        let (mut shape, mut depth) = (Shape::sequence(item.shape), item.depth + 1);
        // `T[][]` is a list of lists, `T[,]` one list with two indices. The caller looks at the depth.
        for _ in 1..dimensions.matches(']').count().min(2 * NESTING) {
            shape = Shape::sequence(shape);
            depth += 1;
        }
        let shape = self.aliased(name, &format!("{name};-{local}"), shape);
        Some(Typed { name: name.clone(), shape, depth, value: false, open: false })
    }

    /// `id` is the identity, which may hold more than the name.
    pub(super) fn aliased(&mut self, name: &QName, id: &str, target: Shape) -> Shape {
        let alias = everywire_model::shape::Alias {
            name: self.name(name, ""),
            id: Name::from(id.to_owned()),
            target,
        };
        Shape::Alias(Hold::new(alias))
    }

    /// The family of a type. Arms are in the order in which types extend one another, the nearest first, and
    /// the number of an arm is its discriminator.
    fn union(&mut self, name: &QName, node: &'n Node<'t>) -> Option<Typed> {
        let mut all = vec![name.clone()];
        let mut seen: HashSet<QName> = all.iter().cloned().collect();
        let mut next = 0;
        while let Some(base) = all.get(next).filter(|_| self.members + all.len() <= MEMBERS) {
            let derived = self.schemas.derived.get(base).cloned().unwrap_or_default();
            all.extend(derived.into_iter().filter(|name| seen.insert(name.clone())));
            next += 1;
        }
        self.members += all.len();
        if self.members > MEMBERS {
            self.report.add(Problem::new(node.span(), format!("the types have more than {MEMBERS} members")));
            return None;
        }
        let (mut arms, mut members, mut depth, mut open) = (Vec::new(), Vec::new(), 0, false);
        let mut labels = Unique::default();
        for (number, name) in (0..).zip(&all) {
            let typed = match self.named(name, None) {
                Some(typed) => typed,
                // A type that extends this one and cannot be read is left out; the others can be sent.
                None if number > 0 && self.lost.is_some() && !self.report.failed() => {
                    let lost = self.lost.take().unwrap_or_default();
                    self.remark(format!("{name} is left out: {lost}"));
                    continue;
                }
                None => return None,
            };
            depth = depth.max(typed.depth);
            open |= typed.open;
            let label = Name::from(labels.name(&name.local));
            members.push((label.clone(), number));
            arms.push(Arm {
                labels: Cow::Owned(vec![number.into()]),
                default: false,
                field: Field { name: label, shape: typed.shape },
            });
        }
        let union_name = self.name(name, "AnyTYPE");
        let kind = Enum {
            name: Name::from(self.names.name(&format!("{union_name}Kind"))),
            id: Name::from(""),
            members: Cow::Owned(members),
            bits: 32,
            open: false,
        };
        let kind = Shape::Enum(Hold::new(kind));
        self.definitions.push((QName::default(), Definition::Type(kind.clone())));
        let union = Union {
            name: union_name,
            id: Name::from(name.to_string()),
            discriminator: kind,
            arms: Cow::Owned(arms),
        };
        let shape = Shape::Union(Hold::new(union));
        Some(Typed { name: name.clone(), shape, depth: depth + 1, value: false, open })
    }

    /// A scoped name that no other definition has. `pattern` holds `TYPE` where the name goes; empty for the
    /// name alone. The same name and pattern give the same result.
    pub(super) fn name(&mut self, name: &QName, pattern: &'static str) -> Name {
        let key = (name.clone(), pattern);
        if let Some(given) = self.given.get(&key) {
            return given.clone();
        }
        let given = self.new_name(name, pattern);
        self.given.insert(key, given.clone());
        given
    }

    /// Each call gives another one.
    pub(super) fn new_name(&mut self, name: &QName, pattern: &str) -> Name {
        let plain = scoped(name);
        let wanted = match (pattern, plain.rsplit_once("::")) {
            ("", _) => plain.to_string(),
            (pattern, Some((scope, last))) => format!("{scope}::{}", pattern.replace("TYPE", last)),
            (pattern, None) => pattern.replace("TYPE", &plain),
        };
        Name::from(self.names.name(&wanted))
    }
}

/// Completes a type that contains itself. Shapes that were made meanwhile point to the cell, so the
/// definition must be the cell as well.
fn close(opened: Option<Shape>, shape: &mut Shape) {
    match (opened, &*shape) {
        (Some(Shape::Struct(Hold::Later(cell))), Shape::Struct(whole)) => {
            let _ = cell.set((**whole).clone());
            *shape = Shape::Struct(Hold::Later(cell));
        }
        (Some(Shape::Union(Hold::Later(cell))), Shape::Union(whole)) => {
            let _ = cell.set((**whole).clone());
            *shape = Shape::Union(Hold::Later(cell));
        }
        _ => {}
    }
}

/// A value in a dictionary is there. An optional value type stays: zero is another value.
fn bare(shape: Shape) -> Shape {
    match &shape {
        Shape::Optional(target) if !builtin::is_value(target) => (**target).clone(),
        _ => shape,
    }
}

/// The one repeated element of a list type. None where the type has anything else.
fn item_of<'n, 't>(complex: &'n Node<'t>) -> Option<&'n Node<'t>> {
    let mut parts =
        complex.children.iter().filter(|child| child.space == SCHEMA && child.local != "annotation");
    let sequence = parts.next().filter(|part| part.local == "sequence")?;
    let only = parts.all(is_of_graphs);
    let mut items =
        sequence.children.iter().filter(|child| child.space == SCHEMA && child.local != "annotation");
    let item = items.next().filter(|item| item.local == "element" && many(item))?;
    (only && items.next().is_none()).then_some(item)
}

/// What a list of SOAP's encoding says of itself, and the type of its items, where that is said.
fn encoded_array<'n, 't>(complex: &'n Node<'t>) -> Option<(&'n Node<'t>, Option<&'t str>)> {
    let content = complex.one("complexContent")?;
    let content = content.one("restriction").or_else(|| content.one("extension"))?;
    let base = content.resolve(content.get("base")?.trim());
    if base.namespace != builtin::ENCODING || base.local != "Array" {
        return None;
    }
    let kind = content.all("attribute").find_map(|attribute| attribute.foreign(&[WSDL], "arrayType"));
    Some((content, kind))
}

/// Key and value of a dictionary's pairs.
fn pair_of<'n, 't>(complex: &'n Node<'t>, item: &'n Node<'t>) -> Option<(&'n Node<'t>, &'n Node<'t>)> {
    let pairs = annotation(complex, "IsDictionary").is_some_and(|text| text == "true");
    let sequence = item.one("complexType").filter(|_| pairs)?.one("sequence")?;
    let mut members = sequence.all("element");
    let (key, value) = (members.next()?, members.next()?);
    members.next().is_none().then_some((key, value))
}

/// Whether there may be more than one. Zero stands for an element that is not there.
pub(super) fn many(element: &Node<'_>) -> bool {
    element.get("maxOccurs").is_some_and(|most| most != "1" && most != "0")
}

/// Whether this is one of the marks of object graphs (`ser:Id`, `ser:Ref`), which are no data.
pub(super) fn is_of_graphs(attribute: &Node<'_>) -> bool {
    let name = attribute.get("ref").filter(|_| attribute.local == "attribute");
    name.map(|name| attribute.resolve(name.trim())).is_some_and(|name| name.namespace == SERIALIZATION)
}

/// What the serializer says of a type.
pub(super) fn annotation(node: &Node<'_>, what: &str) -> Option<String> {
    let info = node.one("annotation")?.one("appinfo")?;
    let found = info.children.iter().find(|child| child.is(SERIALIZATION, what))?;
    Some(found.text().trim().to_owned())
}
