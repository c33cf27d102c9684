//! What the schemas of a description define, by name.
//!
//! All documents are gone through once before any type is read, because schemas refer to one another in any
//! order and in circles. The tables hold the nodes themselves; `types` reads them when they are needed.

use super::names::{QName, SCHEMA};
use super::tree::{Node, WSDL};
use std::collections::{HashMap, HashSet};

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
    /// Namespaces whose attributes are qualified unless they say otherwise.
    pub(super) qualified: HashSet<String>,
    /// Namespaces whose elements inside of types are.
    pub(super) elements_qualified: HashSet<String>,
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
        if schema.get("attributeFormDefault") == Some("qualified") {
            self.qualified.insert(target.to_owned());
        }
        if schema.get("elementFormDefault") == Some("qualified") {
            self.elements_qualified.insert(target.to_owned());
        }
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
                "complexType" | "simpleType" if !self.types.contains_key(&name) => {
                    self.types.insert(name.clone(), child);
                    self.order.push(name.clone());
                    if let Some(extension) = extension(child)
                        && let Some(base) = extension.qname("base")
                    {
                        self.derived.entry(base).or_default().push(name);
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether an element inside of a type of this namespace is in it, too. A reference always is: the
    /// element is a global one.
    pub(super) fn is_qualified(&self, namespace: &str, element: &Node<'_>) -> bool {
        let usual = || namespace.is_empty() || self.elements_qualified.contains(namespace);
        element.get("ref").is_some() || element.get("form").map_or_else(usual, |form| form == "qualified")
    }

    /// Whether others extend the type of this name.
    pub(super) fn is_extended(&self, name: &QName) -> bool {
        self.derived.contains_key(name)
            && self.types.get(name).is_some_and(|node| node.local == "complexType")
    }
}

/// What extends a type's base, where it does; a type of text and attributes extends the type of its text.
pub(super) fn extension<'n, 't>(complex: &'n Node<'t>) -> Option<&'n Node<'t>> {
    complex.one("complexContent").or_else(|| complex.one("simpleContent"))?.one("extension")
}
