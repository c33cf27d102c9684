//! Attributes of types.
//!
//! An attribute is a member whose shape carries the mark `Attribute`. It comes from the type itself, from
//! groups of attributes, or from the base, and no element has two of one name. An attribute that may be
//! missing and is a number becomes optional, since zero would be another value.

use super::builtin::{self, Typed};
use super::limits::NESTING;
use super::marks::{Attribute, Mark};
use super::members::{Members, written};
use super::names::{QName, SCHEMA, is_name};
use super::tree::{Node, XML};
use super::types::{Types, is_of_graphs};
use crate::report::Problem;
use everywire_model::shape::Text;
use everywire_model::{Hold, Shape};

impl<'n, 't> Types<'n, 't, '_> {
    /// The attributes in a type, or in a group of them; how deep the deepest of their types is. `chain`
    /// counts the groups around. None after a mistake.
    pub(super) fn attributes(
        &mut self,
        of: &QName,
        content: &'n Node<'t>,
        members: &mut Members,
        chain: usize,
    ) -> Option<usize> {
        let mut depth = 0;
        for child in &content.children {
            // Whatever stands in a group is walked wherever the group is named, so all of it counts.
            self.count(child)?;
            match child.local {
                _ if child.space != SCHEMA => {}
                // Marks of object graphs are no members.
                "attribute" if !is_of_graphs(child) => {
                    depth = depth.max(self.attribute(of, child, members)?);
                }
                "attributeGroup" => {
                    let name = child.qname("ref")?;
                    let Some(group) = self.schemas.attribute_groups.get(&name).copied() else {
                        self.remark(format!(
                            "{of}: the attributes {name} are left out, they are not defined"
                        ));
                        continue;
                    };
                    // Groups may name one another in circles.
                    if chain == NESTING {
                        let message =
                            format!("groups of attributes are inside one another more than {NESTING} deep");
                        self.report.add(Problem::new(group.span(), message));
                        return None;
                    }
                    depth = depth.max(self.attributes(&name, group, members, chain + 1)?);
                }
                "anyAttribute" => self.remark(format!("{of}: any attribute is left out")),
                _ => {}
            }
        }
        Some(depth)
    }

    /// One attribute; how deep its type is. None after a mistake; one that is left out has a remark.
    fn attribute(&mut self, of: &QName, node: &'n Node<'t>, members: &mut Members) -> Option<usize> {
        let prohibited = node.get("use") == Some("prohibited");
        let (namespace, local, declared) = match node.qname("ref") {
            Some(name) => {
                let declared = self.schemas.attributes.get(&name).copied();
                if declared.is_none() && name.namespace != XML && !prohibited {
                    self.remark(format!("{of}: the attribute {name} is left out, it is not defined"));
                    return Some(0);
                }
                // A global attribute is always qualified.
                (name.namespace, name.local, declared)
            }
            None => {
                let usual = node.forms.attributes;
                let qualified = node.get("form").map_or(usual, |form| form == "qualified");
                let namespace = if qualified { of.namespace.clone() } else { String::new() };
                (namespace, node.needed("name", self.report)?.to_owned(), Some(node))
            }
        };
        if !is_name(&local) {
            let message = format!("{} is no name of XML", crate::xml::shown(&local));
            self.report.add(Problem::new(node.span(), message));
            return None;
        }
        // A mark is written with the namespace in braces.
        if namespace.contains('}') {
            let message = format!("{} is no namespace of an attribute", crate::xml::shown(&namespace));
            self.report.add(Problem::new(node.span(), message));
            return None;
        }
        if prohibited {
            members.forbid(&namespace, &local);
            return Some(0);
        }
        let typed = match declared {
            Some(declared) => self.attribute_type(of, &local, declared)?,
            None => Typed::plain(Shape::Text(Text::NARROW), false),
        };
        let of_it = |what| node.get(what).or_else(|| declared?.get(what));
        let fixed = of_it("fixed");
        // A fixed value is also the one of an attribute that is missing.
        let default = fixed.or_else(|| of_it("default"));
        let required = node.get("use") == Some("required");
        let shape = written(typed.shape);
        // Whether its absence must be told apart from an empty value.
        let missing = !required
            && default.is_none()
            && (builtin::is_value(&shape) || builtin::is_qualified_name(&shape));
        let shape = if missing { Shape::Optional(Hold::new(shape)) } else { shape };
        let attribute =
            Attribute { namespace: &namespace, name: &local, required, default, fixed: fixed.is_some() };
        if !members.add_attribute(&attribute, Mark::Attribute(attribute).on(shape)) {
            self.remark(format!("{of}: a second attribute {local} is left out"));
        }
        Some(typed.depth)
    }

    /// The type of an attribute. Lists in one text are lists, unless they are flags.
    fn attribute_type(&mut self, of: &QName, local: &str, node: &'n Node<'t>) -> Option<Typed> {
        self.look(node)?;
        let own = node.one("simpleType");
        let named = match own {
            Some(_) => None,
            None => node.qname("type"),
        };
        let definition = own.or_else(|| self.schemas.types.get(named.as_ref()?).copied());
        definition.map_or(Some(()), |definition| self.look(definition))?;
        // A list in one text is written as its items with blanks between.
        let item = definition.and_then(|definition| definition.one("list")).and_then(|list| {
            let item = list.qname("itemType")?;
            self.used(&item, list)
        });
        if let Some(item) = item
            && !matches!(item.shape.resolved(), Shape::U8)
            && is_simple(&item.shape)
        {
            let shape = Shape::sequence(item.shape);
            return Some(Typed { depth: item.depth + 1, ..Typed::plain(shape, false) });
        }
        let typed = match (own, named) {
            (Some(own), _) => {
                // A type of its own is named by where it stands.
                let name = self.place_name(of, local);
                self.own(&name, own)?
            }
            (None, Some(name)) => self.used(&name, node)?,
            (None, None) => Typed::plain(Shape::Text(Text::NARROW), false),
        };
        if is_simple(&typed.shape) || matches!(typed.shape, Shape::Variant) {
            return Some(typed);
        }
        let message = format!("the attribute {local} of {of} is of a type with members");
        self.report.add(Problem::new(node.span(), message));
        None
    }
}

/// Whether a value of this shape is one text.
pub(super) fn is_simple(shape: &Shape) -> bool {
    match shape.resolved() {
        Shape::Text(_) | Shape::Enum(_) | Shape::Bool | Shape::Char | Shape::WideChar => true,
        Shape::Sequence(list) => matches!(list.element.resolved(), Shape::U8),
        other => other.width().is_some(),
    }
}
