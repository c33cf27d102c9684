//! The members of types.
//!
//! It is the other half of `wsdl/members.rs`: each mark on a field is said in the way in which the reader
//! finds it. Two serializers read schemas, and DataContractSerializer takes a type for its own unless
//! something tells otherwise; `told` and `serialized` keep track of that, since the same field is written in
//! two ways.
//!
//! Marks and what becomes of them: an attribute stands behind the elements; items are a repeated element;
//! choices a repeated choice; a member that is left out has `minOccurs="0"`, or is the only alternative of a
//! choice where `minOccurs` alone would be read as something else. Members with the same number of a choice
//! are neighbours and share one.

use super::super::builtin;
use super::super::marks::{self, Attribute, Mark, unmarked};
use super::super::names::{QName, is_name};
use super::super::tree::XML;
use super::paper::Paper;
use super::schemas::Schemas;
use super::types::{Presence, presence};
use everywire_model::Shape;
use everywire_model::shape::Field;

impl Schemas<'_> {
    /// A sequence of fields; those that are no elements are left out. `space` is the namespace of the type.
    pub(super) fn fields(&mut self, space: &str, fields: &[Field], paper: &mut Paper) -> Result<(), String> {
        // One marked field is enough: a type is of one serializer.
        let serialized = fields.iter().any(|field| is_told(&field.shape));
        // Whether what is printed besides tells whose type it is.
        let told = fields.iter().any(|field| match Mark::of(&field.shape) {
            _ if !is_told(&field.shape) => false,
            _ if marks::namespace(&field.shape) == Some("") => true,
            Some(Mark::Left(None, None)) => is_alone(field, true),
            _ => true,
        });
        // A text that is left out where it is empty tells it, too.
        let text = |field: &Field| matches!(field.shape, Shape::Text(_));
        let told = told || (serialized && fields.iter().any(text));
        let elements: Vec<&Field> = fields
            .iter()
            .filter(|field| !matches!(Mark::of(&field.shape), Some(Mark::Attribute(_) | Mark::Text)))
            .collect();
        if elements.is_empty() {
            paper.empty("xs:sequence", &[]);
            return Ok(());
        }
        paper.open("xs:sequence", &[]);
        self.particles(space, &elements, (serialized, told), paper)?;
        paper.close();
        Ok(())
    }

    /// Elements one after another. Members of one choice share the element around them, from the first to the last; what stands
    /// between them are alternatives of several members. `of` tells whether the type is XmlSerializer's, and whether what is
    /// printed tells that.
    fn particles(
        &mut self,
        space: &str,
        fields: &[&Field],
        of: (bool, bool),
        paper: &mut Paper,
    ) -> Result<(), String> {
        let (serialized, told) = of;
        let mut rest = fields;
        while let Some((field, after)) = rest.split_first() {
            rest = after;
            let Some(choice) = choice_of(field) else {
                let alone = is_alone(field, told);
                if alone {
                    paper.open("xs:choice", &[("minOccurs", "0")]);
                }
                self.field(space, field, serialized, paper)?;
                if alone {
                    paper.close();
                }
                continue;
            };
            let last = after.iter().rposition(|other| choice_of(other) == Some(choice));
            let (own, behind) = after.split_at(last.map_or(0, |last| last + 1));
            rest = behind;
            paper.open("xs:choice", &[("minOccurs", "0")]);
            self.field(space, field, serialized, paper)?;
            self.alternatives(space, own, choice, of, paper)?;
            paper.close();
        }
        Ok(())
    }

    /// What stands in a choice behind its first member: its members, lists, and between them alternatives of several members.
    fn alternatives(
        &mut self,
        space: &str,
        fields: &[&Field],
        choice: u32,
        of: (bool, bool),
        paper: &mut Paper,
    ) -> Result<(), String> {
        // Lists say nothing of the choice that they are in, so they stand anywhere.
        let is_direct = |field: &Field| {
            let list = matches!(Mark::of(&field.shape), Some(Mark::Items | Mark::Choices));
            list || choice_of(field) == Some(choice)
        };
        let mut rest = fields;
        while let Some((field, after)) = rest.split_first() {
            if is_direct(field) {
                self.field(space, field, of.0, paper)?;
                rest = after;
                continue;
            }
            let end = rest.iter().position(|field| is_direct(field)).unwrap_or(rest.len());
            let (several, behind) = rest.split_at(end);
            rest = behind;
            paper.open("xs:sequence", &[]);
            self.particles(space, several, of, paper)?;
            // A sequence of one member would be that member.
            paper.empty("xs:sequence", &[]);
            paper.close();
        }
        Ok(())
    }

    /// One field. `serialized`: its type is XmlSerializer's, which leaves out what may be missing. A mark of
    /// the namespace is looked at first.
    fn field(
        &mut self,
        space: &str,
        field: &Field,
        serialized: bool,
        paper: &mut Paper,
    ) -> Result<(), String> {
        let shape = unmarked(&field.shape);
        let elsewhere = marks::namespace(&field.shape);
        if Mark::of(&field.shape) == Some(Mark::Choices) {
            return self.list_of_choices(space, elsewhere, shape, paper);
        }
        if let Some(namespace) = elsewhere.filter(|namespace| !namespace.is_empty()) {
            return self.global(space, namespace, field, serialized, paper);
        }
        let form = elsewhere.map(|_| "unqualified");
        match Mark::of(&field.shape) {
            Some(Mark::Items) => {
                let item = shape.element().unwrap_or(shape);
                let nillable = if matches!(item, Shape::Optional(_)) { Some("true") } else { None };
                let more = [("maxOccurs", Some("unbounded")), ("form", form), ("nillable", nillable)];
                self.item(space, &field.name, item, &more, paper)
            }
            Some(Mark::Left(choice, default)) => {
                let more = [("default", default), ("form", form)];
                // An alternative of a choice must be there where it is chosen.
                let missing = if choice.is_none() { Presence::Optional } else { Presence::Required };
                self.element_with(space, &field.name, shape, missing, &more, paper)
            }
            _ if serialized => {
                let presence = match presence(shape) {
                    Presence::Optional => Presence::Required,
                    Presence::Nillable if builtin::is_emptiable(shape) => Presence::Optional,
                    other => other,
                };
                self.element_with(space, &field.name, shape, presence, &[("form", form)], paper)
            }
            _ => self.element(space, &field.name, shape, presence(shape), paper),
        }
    }

    /// A choice that is repeated. Its elements are of the namespace of the list, or each of its own.
    fn list_of_choices(
        &mut self,
        space: &str,
        elsewhere: Option<&str>,
        list: &Shape,
        paper: &mut Paper,
    ) -> Result<(), String> {
        paper.open("xs:choice", &[("minOccurs", "0"), ("maxOccurs", "unbounded")]);
        if let Some(Shape::Union(union)) = list.element() {
            for arm in union.arms.iter() {
                let (name, shape) = (&arm.field.name, unmarked(&arm.field.shape));
                let nillable = if matches!(shape, Shape::Optional(_)) { Some("true") } else { None };
                match marks::namespace(&arm.field.shape).or(elsewhere) {
                    Some(namespace) if !namespace.is_empty() => {
                        let said = nillable.map(|value| ("nillable", value)).into_iter().collect();
                        self.reference(
                            space,
                            &QName::new(namespace, name.to_string()),
                            said,
                            shape,
                            Vec::new(),
                            paper,
                        )?;
                    }
                    namespace => {
                        let more = [("form", namespace.map(|_| "unqualified")), ("nillable", nillable)];
                        self.item(space, name, shape, &more, paper)?;
                    }
                }
            }
        }
        paper.close();
        Ok(())
    }

    /// One field whose element is of another namespace: there it is defined, and named here.
    fn global(
        &mut self,
        space: &str,
        namespace: &str,
        field: &Field,
        serialized: bool,
        paper: &mut Paper,
    ) -> Result<(), String> {
        let shape = unmarked(&field.shape);
        let (mut said, mut alone, mut here) = (Vec::new(), shape, Vec::new());
        match Mark::of(&field.shape) {
            Some(Mark::Items) => {
                // The element itself comes once; how often it stands here is said at the reference.
                here.extend([("minOccurs", "0"), ("maxOccurs", "unbounded")]);
                alone = shape.element().unwrap_or(shape);
            }
            Some(Mark::Left(choice, default)) => {
                here.extend(choice.is_none().then_some(("minOccurs", "0")));
                said.extend(default.map(|value| ("default", value)));
            }
            _ => {
                let missing = presence(shape);
                let missing =
                    if serialized && missing == Presence::Optional { Presence::Required } else { missing };
                here.extend((missing != Presence::Required).then_some(("minOccurs", "0")));
                let nil = missing == Presence::Nillable && !(serialized && builtin::is_emptiable(shape));
                said.extend(nil.then_some(("nillable", "true")));
            }
        }
        self.reference(space, &QName::new(namespace, field.name.to_string()), said, alone, here, paper)
    }

    /// An element of another namespace. `said` are attributes of its definition, `here` those of the reference to it.
    fn reference(
        &mut self,
        space: &str,
        name: &QName,
        said: Vec<(&str, &str)>,
        alone: &Shape,
        here: Vec<(&str, &str)>,
        paper: &mut Paper,
    ) -> Result<(), String> {
        if !is_name(&name.local) {
            return Err(format!("`{}` is no name of XML", name.local));
        }
        let mut said = [vec![("name", name.local.as_str())], said].concat();
        let mut global = Paper::at(1);
        self.typed_element(&name.namespace, &mut said, alone, &mut global)?;
        self.add_element(name, global.out)?;
        let name = self.refer(space, name);
        let here = [here, vec![("ref", name.as_str())]].concat();
        paper.empty("xs:element", &here);
        Ok(())
    }

    /// An element that comes as often as need be, or is one of several. `more` are attributes with their
    /// values; None leaves one out.
    fn item(
        &mut self,
        space: &str,
        name: &str,
        shape: &Shape,
        more: &[(&'static str, Option<&str>)],
        paper: &mut Paper,
    ) -> Result<(), String> {
        let presence = if more.iter().any(|(what, _)| *what == "maxOccurs") {
            Presence::Optional
        } else {
            Presence::Required
        };
        self.element_with(space, name, shape, presence, more, paper)
    }

    /// An element with its type, without more to say.
    pub(super) fn element(
        &mut self,
        space: &str,
        name: &str,
        shape: &Shape,
        presence: Presence,
        paper: &mut Paper,
    ) -> Result<(), String> {
        self.element_with(space, name, shape, presence, &[], paper)
    }

    /// An element with its type, its presence, and more attributes.
    fn element_with(
        &mut self,
        space: &str,
        name: &str,
        shape: &Shape,
        presence: Presence,
        more: &[(&'static str, Option<&str>)],
        paper: &mut Paper,
    ) -> Result<(), String> {
        if !is_name(name) {
            return Err(format!("`{name}` is no name of XML"));
        }
        let mut attributes = Vec::new();
        if presence != Presence::Required {
            attributes.push(("minOccurs", "0"));
        }
        attributes.extend(more.iter().filter_map(|(what, value)| Some((*what, (*value)?))));
        attributes.push(("name", name));
        if presence == Presence::Nillable {
            attributes.push(("nillable", "true"));
        }
        self.typed_element(space, &mut attributes, shape, paper)
    }

    /// The attributes among fields.
    pub(super) fn attributes(
        &mut self,
        space: &str,
        fields: &[Field],
        paper: &mut Paper,
    ) -> Result<(), String> {
        for field in fields {
            if let Some(Mark::Attribute(attribute)) = Mark::of(&field.shape) {
                self.attribute(space, &attribute, unmarked(&field.shape), paper)?;
            }
        }
        Ok(())
    }

    /// One attribute: declared here, or in its namespace and referred to.
    fn attribute(
        &mut self,
        space: &str,
        attribute: &Attribute<'_>,
        shape: &Shape,
        paper: &mut Paper,
    ) -> Result<(), String> {
        if !is_name(attribute.name) {
            return Err(format!("`{}` is no name of XML", attribute.name));
        }
        let mut said = Vec::new();
        if attribute.required {
            said.push(("use", "required"));
        }
        if let Some(value) = attribute.default {
            said.push((if attribute.fixed { "fixed" } else { "default" }, value));
        }
        // An attribute of another namespace is declared there, and only named here.
        if attribute.namespace.is_empty() || attribute.namespace == space {
            if !attribute.namespace.is_empty() {
                said.push(("form", "qualified"));
            }
            return self.typed(space, attribute.name, shape, &said, paper);
        }
        let name = QName::new(attribute.namespace, attribute.name);
        if attribute.namespace != XML {
            let mut global = Paper::at(1);
            self.typed(attribute.namespace, attribute.name, shape, &[], &mut global)?;
            self.add_attribute(&name, global.out)?;
        }
        let name = self.refer(space, &name);
        said.insert(0, ("ref", &name));
        paper.empty("xs:attribute", &said);
        Ok(())
    }

    /// An attribute with its type; lists in one text have no names. A list in one text is a type in place.
    fn typed(
        &mut self,
        space: &str,
        name: &str,
        shape: &Shape,
        said: &[(&str, &str)],
        paper: &mut Paper,
    ) -> Result<(), String> {
        let mut attributes = vec![("name", name)];
        attributes.extend(said);
        match shape.element().filter(|item| !matches!(item.resolved(), Shape::U8)) {
            Some(item) => {
                let item = self.refer_to(space, item)?;
                paper.open("xs:attribute", &attributes);
                paper.open("xs:simpleType", &[]);
                paper.empty("xs:list", &[("itemType", &item)]);
                paper.close();
                paper.close();
            }
            None => {
                let kind = self.refer_to(space, shape)?;
                attributes.push(("type", &kind));
                paper.empty("xs:attribute", &attributes);
            }
        }
        Ok(())
    }
}

/// The number of the choice that a member is an alternative of.
fn choice_of(field: &Field) -> Option<u32> {
    match Mark::of(&field.shape) {
        Some(Mark::Left(choice, _)) => choice,
        _ => None,
    }
}

/// Whether a member must be written as the only alternative of an optional choice. That is needed where
/// `minOccurs="0"` alone would be read in another way: for types that are empty when they hold nothing, and
/// for value types, unless another member shows that the type is XmlSerializer's.
fn is_alone(field: &Field, told: bool) -> bool {
    let Some(Mark::Left(None, None)) = Mark::of(&field.shape) else { return false };
    match unmarked(&field.shape) {
        Shape::Optional(held) => builtin::is_emptiable(held) || (!told && builtin::is_value(held)),
        _ => false,
    }
}

/// Whether what is printed of a member tells that its type is XmlSerializer's.
fn is_told(shape: &Shape) -> bool {
    Mark::of(shape).is_some_and(|mark| mark != Mark::Element || marks::namespace(shape) == Some(""))
}
