//! Shapes to types of schemas.
//!
//! A reference (`refer_to`) gives the name of a type at once and puts the type into `pending`; `settle`
//! defines what is pending, one after another. So types that contain themselves are no danger, and the stack
//! is as deep as one type, not as all of them.
//!
//! A name belongs to one type. `made` tells what a type was made of: two shapes with the same name and the
//! same text are one type, with another text they are an error, because a client could not tell them apart.
//!
//! What has a name of XML Schema is used by that name. Lists and dictionaries have the names of
//! DataContractSerializer, or those that an alias keeps.

use super::super::builtin;
use super::super::limits::NESTING;
use super::super::marks::{CHOICES, Mark};
use super::super::names::{QName, SCHEMA, SERIALIZATION, is_name};
use super::families::is_family;
use super::paper::Paper;
use super::schemas::{NOWHERE, Schemas};
use everywire_model::Shape;
use everywire_model::shape::{Alias, Enum, Field, Struct, Union};

/// What an element says beside its name and type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// It may be missing or nil.
    Nillable,
    /// It may be missing, and then is empty or zero.
    Optional,
    /// It must be there.
    Required,
}

impl Schemas<'_> {
    /// A type of its own, and all that it needs. Enumerations that only select arms, and unions of choices,
    /// are no types of a schema.
    pub(super) fn define(&mut self, shape: &Shape) -> Result<(), String> {
        if let Shape::Enum(kind) = shape
            && self.families.is_kind(&kind.name)
        {
            return Ok(());
        }
        if matches!(shape, Shape::Union(union) if union.id == CHOICES) {
            // Its arms are elements of the types that have it.
            return Ok(());
        }
        // The name is of no use here; what it asks for is.
        self.refer_to(NOWHERE, shape)?;
        self.settle()
    }

    /// Defines what is pending: types are defined one after another, not one inside another.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        while let Some(shape) = self.pending.pop() {
            self.define_named(&shape)?;
        }
        Ok(())
    }

    /// The name of a shape's type, as the schema of a namespace refers to it. The error is the reason why it
    /// cannot be said.
    pub(super) fn refer_to(&mut self, space: &str, shape: &Shape) -> Result<String, String> {
        self.depth += 1;
        let told = if self.depth > NESTING {
            Err(format!("types are inside one another more than {NESTING} deep"))
        } else {
            self.told(space, shape)
        };
        self.depth -= 1;
        told
    }

    /// One level of a shape.
    fn told(&mut self, space: &str, shape: &Shape) -> Result<String, String> {
        match shape {
            Shape::Handle => Err("handles of the operating system do not travel".to_owned()),
            Shape::TypeCode => Err("type codes do not travel in XML".to_owned()),
            Shape::Void => Err("a value that is nothing".to_owned()),
            Shape::Optional(target) => self.refer_to(space, target),
            Shape::Pointer(pointer) => self.refer_to(space, &pointer.target),
            // Only an element can say it; whoever has none says what comes nearest.
            _ if builtin::is_markup(shape) => Ok(self.refer(space, &QName::new(SCHEMA, "anyType"))),
            Shape::Alias(alias) => match QName::parse(&alias.id) {
                Some(name) if builtin::find(&name).is_some() => Ok(self.refer(space, &name)),
                Some(_) => self.named(space, shape),
                None => self.refer_to(space, &alias.target),
            },
            Shape::Struct(_) | Shape::Union(_) | Shape::Enum(_) | Shape::Map(_) => self.named(space, shape),
            Shape::Sequence(_) | Shape::Array(_) => {
                let name = builtin::name(shape);
                if name.namespace == SCHEMA { Ok(self.refer(space, &name)) } else { self.named(space, shape) }
            }
            plain => Ok(self.refer(space, &builtin::name(plain))),
        }
    }

    /// The name of a type that has to be defined. It is put into `pending` the first time.
    fn named(&mut self, space: &str, shape: &Shape) -> Result<String, String> {
        let name = builtin::name(shape);
        if !is_name(&name.local) {
            return Err(format!("the type `{}` has no name that XML knows", name.local));
        }
        let made = made(shape);
        match self.types.get(&name) {
            Some(known) if *known == made => {}
            Some(known) => return Err(format!("{known} and {made} would both be named {name}")),
            None => {
                self.types.insert(name.clone(), made);
                self.pending.push(shape.clone());
            }
        }
        Ok(self.refer(space, &name))
    }

    /// The text of a type, and the element that serializers have beside it.
    fn define_named(&mut self, shape: &Shape) -> Result<(), String> {
        let name = builtin::name(shape);
        let mut paper = Paper::at(1);
        match shape {
            Shape::Struct(shape) => self.structure(&name, shape, &mut paper)?,
            // A family is its first type; the others extend it and are defined by themselves.
            Shape::Union(union) if is_family(union) => {
                for arm in union.arms.iter() {
                    if builtin::name(&arm.field.shape) == name {
                        let Shape::Struct(base) = &arm.field.shape else { continue };
                        self.structure(&name, base, &mut paper)?;
                    } else {
                        self.refer_to(&name.namespace, &arm.field.shape)?;
                    }
                }
            }
            Shape::Union(union) => self.choice(&name, union, &mut paper)?,
            Shape::Enum(members) => enumeration(&name, members, &mut paper),
            Shape::Alias(alias) => self.alias(&name, alias, &mut paper)?,
            Shape::Map(map) => {
                let names = (builtin::pair(map), "Key".to_owned(), "Value".to_owned());
                self.dictionary(&name, map, &names, &mut paper)?;
            }
            list => {
                let Some(element) = list.element() else { return Ok(()) };
                self.list(&name, element, &builtin::name(element).local, &mut paper)?;
            }
        }
        self.add_type(&name, paper.out);
        let mut paper = Paper::at(1);
        let kind = self.refer(&name.namespace, &name);
        paper.empty("xs:element", &[("name", &name.local), ("nillable", "true"), ("type", &kind)]);
        self.add_usual_element(&name, paper.out);
        Ok(())
    }

    /// A struct: as an extension where it has a base or is a text with attributes, with its own members
    /// alone.
    fn structure(&mut self, name: &QName, shape: &Struct, paper: &mut Paper) -> Result<(), String> {
        paper.open("xs:complexType", &[("name", &name.local)]);
        let (mut own, base) = (0, self.families.base(name).cloned());
        let text = shape.fields.iter().find(|field| Mark::of(&field.shape) == Some(Mark::Text));
        let is_extending = base.is_some() || text.is_some();
        match text {
            Some(_) => paper.open("xs:simpleContent", &[]),
            None if base.is_some() => paper.open("xs:complexContent", &[("mixed", "false")]),
            None => {}
        }
        if let Some(base) = base {
            own = base.fields.len();
            // Whatever else extends the base is defined by who uses it.
            let base = self.refer_to(&name.namespace, &Shape::Struct(base))?;
            paper.open("xs:extension", &[("base", &base)]);
        } else if let Some(text) = text {
            let base = self.refer_to(&name.namespace, &text.shape)?;
            paper.open("xs:extension", &[("base", &base)]);
        }
        let fields = shape.fields.get(own..).unwrap_or_default();
        // A type of nothing but one repeated element is a list, unless that stands deeper.
        let only =
            fields.len() == 1 && fields.iter().all(|field| Mark::of(&field.shape) == Some(Mark::Items));
        if only && !is_extending {
            paper.open("xs:sequence", &[]);
        }
        if text.is_none() {
            self.fields(&name.namespace, fields, paper)?;
        }
        if only && !is_extending {
            paper.close();
        }
        self.attributes(&name.namespace, fields, paper)?;
        if is_extending {
            paper.close();
            paper.close();
        }
        paper.close();
        Ok(())
    }

    /// A list; a `-` before the item's name puts the items into no namespace.
    fn list(&mut self, name: &QName, element: &Shape, item: &str, paper: &mut Paper) -> Result<(), String> {
        let (item, form) = match item.strip_prefix('-') {
            Some(item) => (item, Some(("form", "unqualified"))),
            None => (item, None),
        };
        if !is_name(item) {
            return Err(format!("`{item}` is no name of XML"));
        }
        paper.open("xs:complexType", &[("name", &name.local)]);
        paper.open("xs:sequence", &[]);
        let mut attributes = vec![("minOccurs", "0"), ("maxOccurs", "unbounded")];
        attributes.extend(form);
        attributes.push(("name", item));
        if !builtin::is_value(element) && !builtin::is_qualified_name(element) {
            attributes.push(("nillable", "true"));
        }
        self.typed_element(&name.namespace, &mut attributes, element, paper)?;
        paper.close();
        paper.close();
        Ok(())
    }

    /// An element of a type, or of one that stands in it where the type has no name.
    pub(super) fn typed_element(
        &mut self,
        space: &str,
        attributes: &mut Vec<(&str, &str)>,
        shape: &Shape,
        paper: &mut Paper,
    ) -> Result<(), String> {
        if builtin::is_markup(shape) {
            paper.open("xs:element", attributes);
            anything(&[], paper);
            paper.close();
            return Ok(());
        }
        let kind = self.refer_to(space, shape)?;
        let mut attributes = attributes.clone();
        attributes.push(("type", &kind));
        paper.empty("xs:element", &attributes);
        Ok(())
    }

    /// `names` are those of the pair, the key and the value.
    fn dictionary(
        &mut self,
        name: &QName,
        map: &everywire_model::shape::Map,
        names: &(String, String, String),
        paper: &mut Paper,
    ) -> Result<(), String> {
        if ![&names.0, &names.1, &names.2].iter().all(|name| is_name(name)) {
            return Err(format!("the pairs of {name} have no names that XML knows"));
        }
        paper.open("xs:complexType", &[("name", &name.local)]);
        annotate("IsDictionary", "true", paper);
        paper.open("xs:sequence", &[]);
        paper.open("xs:element", &[("minOccurs", "0"), ("maxOccurs", "unbounded"), ("name", &names.0)]);
        paper.open("xs:complexType", &[]);
        paper.open("xs:sequence", &[]);
        for (part, shape) in [(&names.1, &map.key), (&names.2, &map.value)] {
            let mut attributes = vec![("name", part.as_str())];
            if !builtin::is_value(shape) {
                attributes.push(("nillable", "true"));
            }
            self.typed_element(&name.namespace, &mut attributes, shape, paper)?;
        }
        for _ in 0..5 {
            paper.close();
        }
        Ok(())
    }

    /// A type with a name of its own: a list or a dictionary with names of its own, flags, or a plain type.
    /// Its identity holds what is not usual, behind a semicolon.
    fn alias(&mut self, name: &QName, alias: &Alias, paper: &mut Paper) -> Result<(), String> {
        let more = alias.id.rsplit_once('}').and_then(|(_, rest)| rest.split_once(';')).map(|(_, more)| more);
        let more: Vec<&str> = more.map(|more| more.split(',').collect()).unwrap_or_default();
        match (more.as_slice(), &alias.target) {
            (["list", members @ ..], Shape::Text(_)) => {
                flags(name, members, paper);
                Ok(())
            }
            ([item], target) if target.element().is_some() => match target.element() {
                Some(element) => self.list(name, element, item, paper),
                None => Ok(()),
            },
            (names, Shape::Map(map)) => {
                let part = |at: usize, usual: &str| names.get(at).map_or(usual, |name| *name).to_owned();
                let names = (part(0, &builtin::pair(map)), part(1, "Key"), part(2, "Value"));
                self.dictionary(name, map, &names, paper)
            }
            (_, target) if builtin::is_markup(target) => {
                anything(&[("name", &name.local)], paper);
                Ok(())
            }
            (_, target) => {
                let base = self.refer_to(&name.namespace, target)?;
                if matches!(
                    target.resolved(),
                    Shape::Text(_) | Shape::Bool | Shape::WideChar | Shape::Enum(_)
                ) || target.width().is_some()
                    || base == "xs:base64Binary"
                {
                    paper.open("xs:simpleType", &[("name", &name.local)]);
                    paper.empty("xs:restriction", &[("base", &base)]);
                } else if base == "xs:anyType" {
                    paper.open("xs:complexType", &[("name", &name.local)]);
                    paper.empty("xs:sequence", &[]);
                } else {
                    paper.open("xs:complexType", &[("name", &name.local)]);
                    paper.open("xs:complexContent", &[("mixed", "false")]);
                    paper.open("xs:extension", &[("base", &base)]);
                    paper.empty("xs:sequence", &[]);
                    paper.close();
                    paper.close();
                }
                paper.close();
                Ok(())
            }
        }
    }

    /// A union: the discriminator, then the arm that it selects. This form is ours: no serializer of .NET has
    /// unions.
    fn choice(&mut self, name: &QName, union: &Union, paper: &mut Paper) -> Result<(), String> {
        paper.open("xs:complexType", &[("name", &name.local)]);
        paper.open("xs:sequence", &[]);
        let space = name.namespace.as_str();
        self.element(space, "discriminator", &union.discriminator, Presence::Required, paper)?;
        let arms: Vec<&Field> = union
            .arms
            .iter()
            .map(|arm| &arm.field)
            .filter(|field| !matches!(field.shape.resolved(), Shape::Void))
            .collect();
        if !arms.is_empty() {
            paper.open("xs:choice", &[("minOccurs", "0")]);
            for field in arms {
                self.element(space, &field.name, &field.shape, presence(&field.shape), paper)?;
            }
            paper.close();
        }
        paper.close();
        paper.close();
        Ok(())
    }
}

/// A type that may hold any elements.
fn anything(named: &[(&str, &str)], paper: &mut Paper) {
    paper.open("xs:complexType", named);
    paper.open("xs:sequence", &[]);
    let any = [("minOccurs", "0"), ("maxOccurs", "unbounded"), ("processContents", "lax")];
    paper.empty("xs:any", &any);
    paper.close();
    paper.close();
}

/// How the element of a value is there: as data contracts have it. Classes may be nil, values may be missing,
/// and the rest must be there.
pub(super) fn presence(shape: &Shape) -> Presence {
    match shape {
        Shape::Optional(_) => Presence::Nillable,
        _ if builtin::is_emptiable(shape) => Presence::Nillable,
        _ if builtin::is_value(shape) => Presence::Optional,
        Shape::Pointer(_) => Presence::Nillable,
        _ => Presence::Required,
    }
}

/// Two types are one if these are equal.
fn made(shape: &Shape) -> String {
    match shape {
        // A type and all that extend it are one type of a schema.
        Shape::Union(union) if is_family(union) => format!("the type {}", union.id),
        Shape::Struct(shape) if QName::parse(&shape.id).is_some() => format!("the type {}", shape.id),
        Shape::Struct(shape) if shape.name.is_empty() => {
            let names: Vec<&str> = shape.fields.iter().map(|field| field.name.as_ref()).collect();
            format!("a struct of {}", names.join(", "))
        }
        Shape::Struct(shape) => format!("struct {}", shape.name),
        Shape::Union(shape) => format!("union {}", shape.name),
        Shape::Enum(shape) => format!("enum {}", shape.name),
        Shape::Alias(alias) => format!("{} {}", alias.name, alias.id),
        // A schema has one list for both.
        Shape::Sequence(_) | Shape::Array(_) => format!("a list {}", builtin::name(shape)),
        other => format!("a {} {}", other.noun(), builtin::name(other)),
    }
}

/// An enumeration; a value that does not follow from the one before is annotated.
fn enumeration(name: &QName, shape: &Enum, paper: &mut Paper) {
    paper.open("xs:simpleType", &[("name", &name.local)]);
    paper.open("xs:restriction", &[("base", "xs:string")]);
    let mut next = Some(0);
    for (member, value) in shape.members.iter() {
        if next == Some(*value) {
            paper.empty("xs:enumeration", &[("value", member)]);
        } else {
            paper.open("xs:enumeration", &[("value", member)]);
            annotate("EnumerationValue", &value.to_string(), paper);
            paper.close();
        }
        next = value.checked_add(1);
    }
    paper.close();
    paper.close();
}

/// Flags: a list in one text, with each name's number.
fn flags(name: &QName, members: &[&str], paper: &mut Paper) {
    paper.open("xs:simpleType", &[("name", &name.local)]);
    paper.open("xs:list", &[]);
    paper.open("xs:simpleType", &[]);
    paper.open("xs:restriction", &[("base", "xs:string")]);
    for (member, value) in members.iter().filter_map(|member| member.split_once('=')) {
        paper.open("xs:enumeration", &[("value", member)]);
        annotate("EnumerationValue", value, paper);
        paper.close();
    }
    for _ in 0..4 {
        paper.close();
    }
}

/// What the serializer says of a type.
fn annotate(what: &str, value: &str, paper: &mut Paper) {
    paper.open("xs:annotation", &[]);
    paper.open("xs:appinfo", &[]);
    paper.text(what, &[("xmlns", SERIALIZATION)], value);
    paper.close();
    paper.close();
}
