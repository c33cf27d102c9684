//! Shapes made ready for writing: each name and namespace as the word it will be, each plain type as its
//! notation.
//!
//! A shape says what values a contract has; a graph says what their elements are called. It is made once
//! for an operation and direction (`Layout`), or for a value that came with a shape of its own, and does
//! not change afterwards. Sinks walk through it by indexes, so that writing a value looks up no name.
//!
//! State while it is made (`Build`): the nodes and namespaces so far, and which named shapes have a node
//! already. A named shape gets its node before its members do: that is how a type that contains itself
//! becomes a ring.
//!
//! Invariants:
//!
//! * Each `NodeId` and `NamespaceId` is an index into the graph that it came from; the sink keeps the
//!   number of the graph beside it. The first four namespaces are the same in every graph.
//! * `Node::Same` and `Node::Maybe` point at other nodes, which have the values (`behind` in the sink
//!   follows them).
//! * Members stand in the order of the contract, which for data contracts is WCF's: those of the base
//!   first, then by name. A member's namespace is that of the type that declares it (`Family`), not of the
//!   type that inherits it.
//! * What is no element of its own (attributes, text, flat lists) is told by marks that the WSDL reader
//!   left in the shape (`everywire_idl::wsdl::marks`).
//! * Items become an array record only where MC-NBFX has one for their type and they are in the namespace
//!   of the list.

mod family;

use super::names::{
    ARRAYS, Notation, SCHEMA, SERIALIZATION, XSI, collection, is_derived, notation, type_name,
};
use crate::dictionary::Term;
use crate::nbfx::Item;
use everywire_idl::wsdl::marks::{self, Mark, unmarked};
use everywire_idl::wsdl::names;
use everywire_model::Shape;
use everywire_model::shape::{Alias, Field, Struct, Union};
use family::Family;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// A node, by its index in its graph.
pub(super) type NodeId = usize;

/// A namespace, by its index in its graph.
pub(super) type NamespaceId = usize;

/// The namespaces that every graph has.
pub(super) const XSI_ID: NamespaceId = 0;

/// Shapes that refer to each other; recursive ones are rings.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) namespaces: Vec<Term>,
    /// Where each stands, by its text.
    spaces: HashMap<Box<str>, NamespaceId>,
}

/// An element inside a value.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: Term,
    pub(super) namespace: NamespaceId,
    pub(super) node: NodeId,
    /// Data contracts have elements only; the others are XmlSerializer's.
    pub(super) place: MemberForm,
}

/// Where a member stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberForm {
    /// It is an element.
    Element,
    /// It is one, unless it holds nothing; the choice of the struct that it is of, of which a message has one.
    Left(Option<u32>),
    /// Each item of the list is one.
    Items,
    /// It is an attribute of this namespace.
    Attribute(Option<NamespaceId>, Empty),
    /// It is the text of the element.
    Text,
}

/// What is done with an attribute that is empty.
/// An attribute cannot be nil: what an empty list in one means depends on the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Empty {
    /// It is written.
    Written,
    /// It is left out.
    Left,
    /// It is refused: left out, it would read as what the contract says of an attribute that is missing.
    Refused,
}

/// How a value is written.
#[derive(Debug)]
pub(super) enum Node {
    /// Text of its own kind; the call of the sink says which.
    /// A notation is that of a type that the neutral model has as text.
    Leaf(Option<Notation>),
    /// The members in order; the namespaces that they are in, the type's own first.
    /// `apart`: whether there are attributes among them.
    Fields { own: NamespaceId, others: Vec<NamespaceId>, members: Vec<Member>, name: Term, apart: bool },
    /// An element of one of several names.
    Named { own: NamespaceId, arms: Vec<Member> },
    /// A discriminator, then the arm.
    Choice { own: NamespaceId, discriminator: Member, arms: Vec<Member> },
    /// One of several types that derive from the first.
    /// The discriminator is the type, which `i:type` tells.
    Derived(Vec<NodeId>),
    /// The same element as often as need be; the array record that can hold them all.
    Items { own: NamespaceId, item: Member, array: Option<Item> },
    /// A pair of elements, each time in an element.
    Pairs { own: NamespaceId, pair: Term, key: Member, value: Member },
    /// Nothing, or a value.
    Maybe(NodeId),
    /// What another node says.
    Same(NodeId),
    /// A value with its own type.
    /// Its graph is made when its type is known. While a graph is made it also stands for a node that is
    /// not complete.
    Variant,
}

impl Graph {
    /// A graph of one shape, whose node is returned too.
    pub(super) fn of(shape: &Shape) -> (Self, NodeId) {
        let mut build = Build::new();
        let node = build.node(shape);
        (build.graph, node)
    }

    /// The fields of an operation: what is in no data contract stands in the operation's namespace.
    pub(super) fn of_fields(fields: &[Field], namespace: &str) -> (Self, Vec<Member>) {
        let mut build = Build::new();
        let own = build.graph.add_namespace(namespace);
        let members = fields.iter().map(|field| build.placed(&field.name, own, &field.shape)).collect();
        (build.graph, members)
    }

    /// The index of a namespace, which is added if it is not there.
    pub(super) fn add_namespace(&mut self, text: &str) -> NamespaceId {
        if let Some(known) = self.spaces.get(text) {
            return *known;
        }
        self.namespaces.push(Term::new(text));
        let added = self.namespaces.len() - 1;
        self.spaces.insert(text.into(), added);
        added
    }
}

/// The namespaces that every graph has: graphs are made for single values, too.
static EVERY: LazyLock<[Term; 4]> = LazyLock::new(|| [XSI, SCHEMA, SERIALIZATION, ARRAYS].map(Term::new));

struct Build {
    graph: Graph,
    /// Named shapes that were begun, by where they are.
    /// The address of the shared definition, which stays as long as the shape does.
    known: HashMap<usize, NodeId>,
}

impl Build {
    fn new() -> Self {
        let namespaces = EVERY.to_vec();
        let spaces = EVERY.iter().map(|known| known.as_str().into()).zip(0..).collect();
        Self { graph: Graph { nodes: Vec::new(), namespaces, spaces }, known: HashMap::new() }
    }

    fn add(&mut self, node: Node) -> NodeId {
        self.graph.nodes.push(node);
        self.graph.nodes.len() - 1
    }

    /// A member that is an element; its shape becomes a node.
    fn member(&mut self, name: &str, namespace: NamespaceId, shape: &Shape) -> Member {
        Member { name: Term::new(name), namespace, node: self.node(shape), place: MemberForm::Element }
    }

    /// A member of a struct, which may be something else than an element.
    fn placed(&mut self, name: &str, namespace: NamespaceId, shape: &Shape) -> Member {
        // The mark is an alias around the shape that the member really has.
        let target = unmarked(shape);
        let namespace = marks::namespace(shape).map_or(namespace, |said| self.graph.add_namespace(said));
        let (place, node) = match Mark::of(shape) {
            None => return self.member(name, namespace, shape),
            Some(Mark::Element) => return self.member(name, namespace, target),
            Some(Mark::Left(choice, _)) => (MemberForm::Left(choice), self.node(target)),
            Some(Mark::Text) => (MemberForm::Text, self.node(target)),
            Some(Mark::Attribute(attribute)) => {
                let space =
                    (!attribute.namespace.is_empty()).then(|| self.graph.add_namespace(attribute.namespace));
                // The serializer cannot read an empty text as a list.
                let list = target.element().is_some_and(|item| !matches!(item.resolved(), Shape::U8));
                // An attribute that may be missing says something by that, so one that is there and empty
                // is written.
                let told = attribute.required || matches!(target, Shape::Optional(_));
                let empty = match attribute.default {
                    Some(default) if list && !default.trim().is_empty() => Empty::Refused,
                    default if list || (!told && default.is_none()) => Empty::Left,
                    _ => Empty::Written,
                };
                let place = MemberForm::Attribute(space, empty);
                return Member { place, ..self.member(attribute.name, namespace, target) };
            }
            Some(Mark::Items) => {
                let item = self.member(name, namespace, target.element().unwrap_or(target));
                (MemberForm::Items, self.add(Node::Items { own: namespace, item, array: None }))
            }
            // `xs:choice` that repeats: each item has the element of its kind.
            Some(Mark::Choices) => {
                let arms = match target.element().map(Shape::resolved) {
                    Some(Shape::Union(union)) => self.arms(union, namespace),
                    _ => Vec::new(),
                };
                let node = self.add(Node::Named { own: namespace, arms });
                let item = Member { name: Term::new(name), namespace, node, place: MemberForm::Element };
                (MemberForm::Items, self.add(Node::Items { own: namespace, item, array: None }))
            }
        };
        Member { name: Term::new(name), namespace, node, place }
    }

    fn node(&mut self, shape: &Shape) -> NodeId {
        match shape {
            Shape::Struct(held) => self.named(held.identity(), |build| build.fields(held, None)),
            Shape::Union(held) => self.named(held.identity(), |build| build.union(held)),
            Shape::Alias(held) => {
                if let Some(notation) = notation(shape) {
                    return self.add(Node::Leaf(Some(notation)));
                }
                self.named(held.identity(), |build| build.alias(held))
            }
            Shape::Optional(target) => self.maybe(target),
            Shape::Pointer(pointer) => self.maybe(&pointer.target),
            Shape::Sequence(_) | Shape::Array(_) | Shape::Map(_) => {
                let node = self.collection(shape, None);
                self.add(node)
            }
            Shape::Variant => self.add(Node::Variant),
            _ => self.add(Node::Leaf(None)),
        }
    }

    fn maybe(&mut self, target: &Shape) -> NodeId {
        let target = self.node(target);
        self.add(Node::Maybe(target))
    }

    /// A named shape, once; its node is known before it is complete, for shapes that contain themselves.
    fn named(&mut self, place: usize, make: impl FnOnce(&mut Self) -> Node) -> NodeId {
        if let Some(known) = self.known.get(&place) {
            return *known;
        }
        let id = self.add(Node::Variant);
        self.known.insert(place, id);
        let node = make(self);
        if let Some(slot) = self.graph.nodes.get_mut(id) {
            *slot = node;
        }
        id
    }

    /// An alias of a collection names its items; any other changes nothing but the notation.
    fn alias(&mut self, alias: &Alias) -> Node {
        match alias.target.resolved() {
            Shape::Sequence(_) | Shape::Array(_) | Shape::Map(_) => {
                self.collection(&alias.target, Some(alias))
            }
            // The shape behind it stands in the alias's place.
            _ => {
                let target = self.node(&alias.target);
                match self.graph.nodes.get(target) {
                    Some(Node::Leaf(notation)) => Node::Leaf(*notation),
                    _ => Node::Same(target),
                }
            }
        }
    }

    /// `family`: the types that this one may stand in for, to know which fields are theirs.
    fn fields<'s>(&mut self, shape: &'s Struct, family: Option<&Family<'s>>) -> Node {
        let (namespace, local) = type_name(&shape.id, &shape.name);
        let own = self.graph.add_namespace(&namespace);
        let mut others = Vec::new();
        let mut seen = HashSet::from([own]);
        let declaring = family.map(|family| family.declaring(shape)).unwrap_or_default();
        let mut members = Vec::with_capacity(shape.fields.len());
        for (index, field) in shape.fields.iter().enumerate() {
            let declaring = declaring.get(index).copied().unwrap_or(shape);
            let namespace = self.graph.add_namespace(&type_name(&declaring.id, &declaring.name).0);
            if seen.insert(namespace) {
                others.push(namespace);
            }
            members.push(self.placed(&field.name, namespace, &field.shape));
        }
        let apart = members.iter().any(|member| matches!(member.place, MemberForm::Attribute(..)));
        Node::Fields { own, others, members, name: Term::new(local), apart }
    }

    fn union(&mut self, union: &Union) -> Node {
        if is_derived(union) {
            let structs = union.arms.iter().filter_map(|arm| match arm.field.shape.resolved() {
                Shape::Struct(shape) => Some(&**shape),
                _ => None,
            });
            let structs: Vec<&Struct> = structs.collect();
            let family = Family::new(&structs);
            let arms = structs.iter().map(|arm| {
                let node = self.fields(arm, Some(&family));
                self.add(node)
            });
            return Node::Derived(arms.collect());
        }
        let own = self.graph.add_namespace(&type_name(&union.id, &union.name).0);
        let discriminator = self.member("discriminator", own, &union.discriminator);
        Node::Choice { own, discriminator, arms: self.arms(union, own) }
    }

    /// Those of a choice may be of several namespaces.
    fn arms(&mut self, union: &Union, namespace: NamespaceId) -> Vec<Member> {
        let arms = union.arms.iter().map(|arm| &arm.field);
        arms.map(|field| self.placed(&field.name, namespace, &field.shape)).collect()
    }

    /// A list or a map; `alias` has names for its items, where the contract gives them others than the
    /// default ones.
    fn collection(&mut self, shape: &Shape, alias: Option<&Alias>) -> Node {
        let said = alias.and_then(collection).unwrap_or_default();
        match shape.resolved() {
            Shape::Map(map) => {
                let own = self.graph.add_namespace(said.namespace.unwrap_or(ARRAYS));
                let pair = said.item.map_or_else(|| names::pair_of(map), str::to_owned);
                let key = self.member(said.key.unwrap_or("Key"), own, &map.key);
                let value = self.member(said.value.unwrap_or("Value"), own, &map.value);
                Node::Pairs { own, pair: Term::new(&pair), key, value }
            }
            resolved => {
                let element = resolved.element().unwrap_or(&Shape::Void);
                // Octets are base64 text, and not a list.
                if matches!(element.resolved(), Shape::U8) {
                    return Node::Leaf(None);
                }
                let usual = names::list_of(element).namespace;
                let own = self.graph.add_namespace(said.namespace.unwrap_or(&usual));
                // What is in no namespace says so itself, each item again.
                let alone = said.item.and_then(|item| item.strip_prefix('-'));
                let (space, array) = match alone {
                    Some(_) => (self.graph.add_namespace(""), None),
                    None => (own, array_item(element)),
                };
                let name = alone.or(said.item).map_or_else(|| names::of_shape(element).local, str::to_owned);
                Node::Items { own, item: self.member(&name, space, element), array }
            }
        }
    }
}

/// The record type that holds items of this shape in arrays.
fn array_item(shape: &Shape) -> Option<Item> {
    Some(match shape.resolved() {
        Shape::Bool => Item::Bool,
        Shape::I32 => Item::I32,
        Shape::I64 => Item::I64,
        Shape::F32 => Item::F32,
        Shape::F64 => Item::F64,
        _ => return None,
    })
}
