//! What the schemas of a description define, by name.
//!
//! All documents are gone through once before any type is read, because schemas refer to one another in any
//! order and in circles. The tables hold the nodes themselves; `types` reads them when they are needed.

use super::names::{QName, SCHEMA};
use super::tree::{Node, WSDL};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Global definitions of all schemas; where two documents define one name, the first counts.
#[derive(Default)]
pub(super) struct Schemas<'n, 't> {
    /// Simple and complex ones.
    pub(super) types: HashMap<QName, &'n Node<'t>>,
    /// Those that stand directly in a schema.
    pub(super) elements: HashMap<QName, &'n Node<'t>>,
    /// Attributes, groups of attributes, and groups of elements.
    pub(super) attributes: HashMap<QName, &'n Node<'t>>,
    pub(super) attribute_groups: HashMap<QName, &'n Node<'t>>,
    pub(super) groups: HashMap<QName, &'n Node<'t>>,
    /// Elements that may stand in the place of each (`substitutionGroup`), in the order of the documents. By the one that they name.
    pub(super) substitutes: HashMap<QName, Vec<QName>>,
    /// Names of the types, in the order of the documents.
    pub(super) order: Vec<QName>,
    /// The types that extend each type. By the base; only extensions count, since a restriction has no member
    /// of its own.
    pub(super) derived: HashMap<QName, Vec<QName>>,
    /// What types were before a schema redefined them by themselves.
    redefined: HashMap<QName, &'n Node<'t>>,
}

impl<'n, 't> Schemas<'n, 't> {
    /// Adds the schemas in a document; recursion is bounded by the depth of the tree.
    pub(super) fn add(&mut self, node: &'n Node<'t>) {
        if node.is(SCHEMA, "schema") {
            self.schema(node);
        } else if node.space != WSDL || matches!(node.local, "definitions" | "types") {
            for child in &node.children {
                self.add(child);
            }
        }
    }

    /// Adds the definitions of one schema.
    fn schema(&mut self, schema: &'n Node<'t>) {
        let target = schema.get("targetNamespace").unwrap_or(schema.adopted);
        // What is redefined counts before what it was.
        let redefined = schema.all("redefine").flat_map(|redefined| &redefined.children);
        for child in redefined.chain(&schema.children).filter(|child| child.space == SCHEMA) {
            // Imports and annotations have no name.
            let Some(local) = child.get("name") else { continue };
            let name = QName::new(target, local);
            match child.local {
                "element" => {
                    let head = child.get("substitutionGroup").map(|head| child.resolve(head.trim()));
                    if let Some(head) = head.filter(|_| !self.elements.contains_key(&name)) {
                        self.substitutes.entry(head).or_default().push(name.clone());
                    }
                    self.elements.entry(name).or_insert(child);
                }
                "attribute" => {
                    self.attributes.entry(name).or_insert(child);
                }
                "attributeGroup" => {
                    self.attribute_groups.entry(name).or_insert(child);
                }
                "group" => {
                    self.groups.entry(name).or_insert(child);
                }
                "complexType" | "simpleType" => match self.types.entry(name.clone()) {
                    Entry::Vacant(place) => {
                        place.insert(child);
                        self.order.push(name.clone());
                        if let Some(base) = extension(child).and_then(|own| own.qname("base"))
                            && base != name
                        {
                            self.derived.entry(base).or_default().push(name);
                        }
                    }
                    // It may have come before what redefines it, or behind that.
                    Entry::Occupied(mut place) => {
                        let known = *place.get();
                        if is_of_itself(known, &name) {
                            self.redefined.entry(name).or_insert(child);
                        } else if is_of_itself(child, &name) {
                            place.insert(child);
                            self.redefined.entry(name).or_insert(known);
                        }
                    }
                },
                _ => {}
            }
        }
    }

    /// Whether an element inside of a type of this namespace is in it, too. A reference always is: the
    /// element is a global one.
    pub(super) fn is_qualified(namespace: &str, element: &Node<'_>) -> bool {
        let usual = || namespace.is_empty() || element.forms.elements;
        element.get("ref").is_some() || element.get("form").map_or_else(usual, |form| form == "qualified")
    }

    /// The definition of the base of this type: one that names itself as its base redefines what it was (XML Schema part 1, 4.2.2).
    pub(super) fn base(&self, name: &QName, base: &QName) -> Option<&'n Node<'t>> {
        if name == base { self.redefined.get(base) } else { self.types.get(base) }.copied()
    }

    /// Whether others extend the type of this name.
    pub(super) fn is_extended(&self, name: &QName) -> bool {
        self.derived.contains_key(name)
            && self.types.get(name).is_some_and(|node| node.local == "complexType")
    }
}

/// Whether a complex type has itself as its base.
fn is_of_itself(complex: &Node<'_>, name: &QName) -> bool {
    let content = complex.one("complexContent").or_else(|| complex.one("simpleContent"));
    let derives = |content: &Node<'_>, how| content.one(how).and_then(|own| own.qname("base"));
    let base = content.and_then(|own| derives(own, "extension").or_else(|| derives(own, "restriction")));
    base.as_ref() == Some(name)
}

/// What extends a type's base, where it does; a type of text and attributes extends the type of its text.
pub(super) fn extension<'n, 't>(complex: &'n Node<'t>) -> Option<&'n Node<'t>> {
    complex.one("complexContent").or_else(|| complex.one("simpleContent"))?.one("extension")
}
