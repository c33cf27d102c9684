//! The schemas of a description: one for each namespace.
//!
//! State: for each namespace the texts of its elements and types, by name, and the namespaces that they refer
//! to; what each type was made of; and the types that are still to be defined. Parts are kept as text, in
//! order of their names, so that the same contract always gives the same document.
//!
//! A reference to another namespace needs a prefix before it is known which namespaces there will be. So the
//! text holds a number between two marks, and `finish` puts prefixes in their places, in the order of the
//! namespaces.
//!
//! Invariants: an element or type of one name is one thing; adding another one is an error with both named.
//! Elements that serializers have beside each type give way to elements of messages, and are left out beside one whose name
//! is another in capitals alone: makers of Java see the two as one.

use super::super::builtin::ADDRESSING;
use super::super::names::{QName, SCHEMA, SERIALIZATION};
use super::super::tree::XML;
use super::families::Families;
use super::paper::Paper;
use everywire_model::Shape;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Stands around numbers of namespaces: no character, so no name has it.
const MARK: char = '\u{fdd0}';

/// Stands for the namespace of a reference outside of schemas. No namespace is called so.
pub(super) const NOWHERE: &str = "\u{fdd1}";

/// What an element that may be nil says.
const NILLABLE: &str = " nillable=\"true\"";

/// A global element.
enum Element {
    /// Messages, faults or other types name it.
    Named(String),
    /// The one that serializers have beside the type of its name.
    Usual,
}

/// Namespaces with what is defined in each.
pub(super) struct Schemas<'f> {
    pub(super) families: &'f Families,
    /// By the namespace.
    spaces: BTreeMap<String, Space>,
    /// The order in which namespaces came up.
    order: Vec<String>,
    /// What each defined type was made of, to tell two of one name apart. The text comes from `types::made`.
    pub(super) types: HashMap<QName, String>,
    /// Global elements, by what asked for them.
    elements: HashMap<QName, Element>,
    /// Elements around parameters that are values elsewhere, of a type that is called as they are.
    doubled: HashSet<QName>,
    /// Types that parts of messages name.
    told: HashSet<QName>,
    /// How deep the present reference is; at most `NESTING`.
    pub(super) depth: usize,
    /// Types that are to be defined when the one at hand is.
    pub(super) pending: Vec<Shape>,
}

#[derive(Default)]
struct Space {
    /// Elements and types, each whole, by name; an element stands before the type of its name.
    parts: BTreeMap<(String, bool), String>,
    /// Namespaces that they name, each by its prefix.
    used: BTreeSet<String>,
}

impl<'f> Schemas<'f> {
    pub(super) fn new(families: &'f Families) -> Self {
        Self {
            families,
            spaces: BTreeMap::new(),
            order: Vec::new(),
            types: HashMap::new(),
            elements: HashMap::new(),
            doubled: HashSet::new(),
            told: HashSet::new(),
            depth: 0,
            pending: Vec::new(),
        }
    }

    /// A name as it is written in the schema of a namespace. The prefix stands for the namespace's place in the order in
    /// which they came up, until that is known. With [`NOWHERE`] nothing is noted as used.
    pub(super) fn refer(&mut self, space: &str, name: &QName) -> String {
        if name.namespace == SCHEMA {
            return format!("xs:{}", name.local);
        }
        if name.namespace == space {
            return own(name);
        }
        if space != NOWHERE {
            self.space(space).used.insert(name.namespace.clone());
        }
        match name.namespace.as_str() {
            "" => own(name),
            XML => format!("xml:{}", name.local),
            SERIALIZATION => format!("ser:{}", name.local),
            ADDRESSING => format!("wsa10:{}", name.local),
            other => {
                self.space(other);
                let number = self.order.iter().position(|space| space == other).unwrap_or_default();
                format!("{MARK}{number}{MARK}:{}", name.local)
            }
        }
    }

    /// The entry of a namespace; a new one gets the next number.
    fn space(&mut self, namespace: &str) -> &mut Space {
        if !self.spaces.contains_key(namespace) {
            self.order.push(namespace.to_owned());
        }
        self.spaces.entry(namespace.to_owned()).or_default()
    }

    /// Adds a type to its namespace.
    pub(super) fn add_type(&mut self, name: &QName, part: String) {
        self.space(&name.namespace).parts.insert((name.local.clone(), true), part);
    }

    /// Adds a global element that messages name; the same one again is nothing new, and where one of them may
    /// be nil, both may. `part` is the whole element as text. The type that it names must be settled, to be compared
    /// with the members of another element of that name.
    pub(super) fn add_element(&mut self, name: &QName, part: String) -> Result<(), String> {
        // Of an element with members of its own, `nillable` may be a member's.
        let bare = |part: &str| (part.lines().count() == 1).then(|| part.replacen(NILLABLE, "", 1));
        let part = match self.elements.get(name) {
            Some(Element::Named(known)) if *known == part => return Ok(()),
            Some(Element::Named(known)) if bare(known).is_some() && bare(known) == bare(&part) => {
                if known.contains(NILLABLE) { known.clone() } else { part }
            }
            // One element may wrap parameters in one place and be a value in another; its type then has no name.
            Some(Element::Named(known)) if bare(known).is_none() && is_own(name, &part) => {
                self.doubled.insert(name.clone());
                return Ok(());
            }
            Some(Element::Named(known)) if bare(&part).is_none() && is_own(name, known) => {
                self.doubled.insert(name.clone());
                part
            }
            // Or of a type with a name, whose members are the parameters.
            Some(Element::Named(known)) if self.wraps(name, known, &part) => part,
            Some(Element::Named(known)) if self.wraps(name, &part, known) => return Ok(()),
            Some(Element::Named(_)) => {
                return Err(format!(
                    "the element {name} would be two things, as the namespace has it already"
                ));
            }
            // An element of messages replaces the one that serializers have beside each type.
            Some(Element::Usual) | None => part,
        };
        self.elements.insert(name.clone(), Element::Named(part.clone()));
        self.space(&name.namespace).parts.insert((name.local.clone(), false), part);
        Ok(())
    }

    /// Whether an element around parameters has just the members of the type that the other text of the element names.
    fn wraps(&self, name: &QName, around: &str, typed: &str) -> bool {
        let kind = typed.split_once("type=\"").and_then(|(_, rest)| rest.split_once('"'));
        let Some((kind, _)) = kind.filter(|_| typed.lines().count() == 1) else { return false };
        let kind = kind.strip_prefix("tns:").unwrap_or(kind);
        let part =
            self.spaces.get(&name.namespace).and_then(|space| space.parts.get(&(kind.to_owned(), true)));
        let inside = |text: &str, around: usize| {
            // Items that may be nil are so in lists of a type, and not among parameters.
            let lines: Vec<String> = text.lines().map(|line| line.trim().replacen(NILLABLE, "", 1)).collect();
            let lines = lines.get(around..lines.len().saturating_sub(around))?;
            // A type of one repeated element alone has a sequence more.
            let deeper = lines.get(1).is_some_and(|line| lines.len() > 2 && line == "<xs:sequence>");
            Some(if deeper { lines.get(1..lines.len() - 1)?.to_vec() } else { lines.to_vec() })
        };
        part.is_some_and(|part| inside(around, 2).is_some_and(|body| Some(body) == inside(part, 1)))
    }

    /// Adds the element that serializers have beside a type, unless messages have one of that name.
    pub(super) fn add_usual_element(&mut self, name: &QName, part: String) {
        if !self.elements.contains_key(name) {
            self.elements.insert(name.clone(), Element::Usual);
            self.space(&name.namespace).parts.insert((name.local.clone(), false), part);
        }
    }

    /// Adds a global attribute.
    pub(super) fn add_attribute(&mut self, name: &QName, part: String) -> Result<(), String> {
        // No name of XML begins so.
        let key = (format!("@{}", name.local), false);
        let known = self.space(&name.namespace).parts.entry(key).or_insert_with(|| part.clone());
        if *known == part { Ok(()) } else { Err(format!("the attribute {name} would be two things")) }
    }

    /// Notes that a part of a message names a type.
    pub(super) fn tell(&mut self, name: &QName) {
        self.told.insert(name.clone());
    }

    /// Types that only stand for the elements of their names: those have the members themselves, and a reader names the type
    /// after the element. If it were there too, that name would be taken.
    fn needless(&self) -> HashSet<QName> {
        let mut needless = self.doubled.clone();
        needless.retain(|name| !self.told.contains(name));
        if needless.is_empty() {
            return needless;
        }
        for (namespace, space) in &self.spaces {
            for part in space.parts.values() {
                // Every second piece is the value of an attribute.
                for value in part.split('"').skip(1).step_by(2) {
                    let (namespace, local) = match value.strip_prefix(MARK) {
                        Some(rest) => {
                            let (number, local) = rest.split_once(MARK).unwrap_or_default();
                            let other = number.parse().ok().and_then(|number: usize| self.order.get(number));
                            (other, local.trim_start_matches(':'))
                        }
                        // Names of no namespace look as all others, so their types stay.
                        None if namespace.is_empty() => (Some(namespace), value),
                        None => (Some(namespace), value.strip_prefix("tns:").unwrap_or_default()),
                    };
                    if let Some(namespace) = namespace {
                        needless.remove(&QName::new(namespace.clone(), local));
                    }
                }
            }
        }
        needless
    }

    /// The schemas as documents, without the declaration at the head of a file, by their namespace. Schemas
    /// of serializers and of addressing are added where others refer to them.
    pub(super) fn finish(self) -> Vec<(String, String)> {
        let folded = |name: &QName| (name.namespace.clone(), name.local.to_lowercase());
        let named: HashSet<(String, String)> = (self.elements.iter())
            .filter(|(_, element)| matches!(element, Element::Named(_)))
            .map(|(name, _)| folded(name))
            .collect();
        let needless = self.needless();
        let is_left_out = |namespace: &str, (local, is_type): &(String, bool)| {
            let name = QName::new(namespace, local.clone());
            if *is_type {
                return needless.contains(&name);
            }
            matches!(self.elements.get(&name), Some(Element::Usual)) && named.contains(&folded(&name))
        };
        let ranks: HashMap<&str, usize> = self.spaces.keys().map(String::as_str).zip(0..).collect();
        let mut schemas = Vec::new();
        for (namespace, space) in &self.spaces {
            let prefix = |used: &str| match used {
                XML => "xml".to_owned(),
                SERIALIZATION => "ser".to_owned(),
                ADDRESSING => "wsa10".to_owned(),
                other => format!("q{}", ranks.get(other).copied().unwrap_or_default()),
            };
            // Names in no namespace have no prefix.
            let named = space.used.iter().filter(|used| !used.is_empty());
            let prefixes: Vec<(String, &str)> =
                named.map(|used| (format!("xmlns:{}", prefix(used)), used.as_str())).collect();
            let mut attributes: Vec<(&str, &str)> = vec![
                ("xmlns:xs", SCHEMA),
                ("xmlns:tns", namespace),
                ("elementFormDefault", "qualified"),
                ("targetNamespace", namespace),
            ];
            attributes.retain(|(_, value)| !value.is_empty());
            attributes.extend(prefixes.iter().map(|(name, value)| (name.as_str(), *value)));
            let mut paper = Paper::default();
            paper.open("xs:schema", &attributes);
            for used in &space.used {
                let from: &[(&str, &str)] = if used.is_empty() { &[] } else { &[("namespace", used)] };
                paper.empty("xs:import", from);
            }
            for (_, part) in space.parts.iter().filter(|(key, _)| !is_left_out(namespace, key)) {
                // No name has the mark; a text of the contract (a default, a value of an enumeration) should not
                // have it either.
                for (at, piece) in part.split(MARK).enumerate() {
                    // Every second piece is a number.
                    let named = piece.parse().ok().filter(|_| at % 2 == 1);
                    match named.and_then(|number: usize| self.order.get(number)) {
                        Some(other) => paper.paste(&prefix(other)),
                        None => paper.paste(piece),
                    }
                }
            }
            paper.close();
            schemas.push((namespace.clone(), paper.out));
        }
        let uses = |namespace: &str| self.spaces.values().any(|space| space.used.contains(namespace));
        if uses(SERIALIZATION) {
            schemas.push((SERIALIZATION.to_owned(), serialization()));
        }
        if uses(ADDRESSING) {
            schemas.push((ADDRESSING.to_owned(), addressing()));
        }
        schemas
    }
}

/// A name as the schema of its namespace has it.
fn own(name: &QName) -> String {
    if name.namespace.is_empty() { name.local.clone() } else { format!("tns:{}", name.local) }
}

/// Whether an element in one line is of the type that is called as it is.
fn is_own(name: &QName, part: &str) -> bool {
    part.lines().count() == 1 && part.contains(&format!("type=\"{}\"", own(name)))
}

/// The types of XML Schema of which the serializer has an element.
const SERIALIZED: [&str; 18] = [
    "anyType",
    "anyURI",
    "base64Binary",
    "boolean",
    "byte",
    "dateTime",
    "decimal",
    "double",
    "float",
    "int",
    "long",
    "QName",
    "short",
    "string",
    "unsignedByte",
    "unsignedInt",
    "unsignedLong",
    "unsignedShort",
];

/// The plain types that XML Schema lacks, and the elements of all.
fn serialization() -> String {
    let mut paper = Paper::default();
    let head = [
        ("xmlns:xs", SCHEMA),
        ("xmlns:tns", SERIALIZATION),
        ("attributeFormDefault", "qualified"),
        ("elementFormDefault", "qualified"),
        ("targetNamespace", SERIALIZATION),
    ];
    paper.open("xs:schema", &head);
    // Details of faults are elements of them.
    for name in SERIALIZED {
        let kind = format!("xs:{name}");
        paper.empty("xs:element", &[("name", name), ("nillable", "true"), ("type", &kind)]);
    }
    let guid = "[\\da-fA-F]{8}-[\\da-fA-F]{4}-[\\da-fA-F]{4}-[\\da-fA-F]{4}-[\\da-fA-F]{12}";
    for (name, base, pattern) in [
        ("char", "xs:int", None),
        ("duration", "xs:duration", Some("\\-?P(\\d*D)?(T(\\d*H)?(\\d*M)?(\\d*(\\.\\d*)?S)?)?")),
        ("guid", "xs:string", Some(guid)),
    ] {
        paper.empty("xs:element", &[("name", name), ("nillable", "true"), ("type", &format!("tns:{name}"))]);
        paper.open("xs:simpleType", &[("name", name)]);
        match pattern {
            Some(pattern) => {
                paper.open("xs:restriction", &[("base", base)]);
                paper.empty("xs:pattern", &[("value", pattern)]);
                paper.close();
            }
            None => paper.empty("xs:restriction", &[("base", base)]),
        }
        paper.close();
    }
    paper.close();
    paper.out
}

/// The type of endpoint references (WS-Addressing 1.0, 2.1).
fn addressing() -> String {
    let mut paper = Paper::default();
    let head = [
        ("xmlns:xs", SCHEMA),
        ("xmlns:tns", ADDRESSING),
        ("elementFormDefault", "qualified"),
        ("targetNamespace", ADDRESSING),
    ];
    paper.open("xs:schema", &head);
    let reference =
        [("name", "EndpointReference"), ("nillable", "true"), ("type", "tns:EndpointReferenceType")];
    paper.empty("xs:element", &reference);
    let any = |paper: &mut Paper| {
        let lax = [("namespace", "##other"), ("processContents", "lax")];
        paper.empty("xs:anyAttribute", &lax);
    };
    paper.open("xs:complexType", &[("name", "EndpointReferenceType")]);
    paper.open("xs:sequence", &[]);
    paper.empty("xs:element", &[("name", "Address"), ("type", "tns:AttributedURIType")]);
    for (name, kind) in
        [("ReferenceParameters", "tns:ReferenceParametersType"), ("Metadata", "tns:MetadataType")]
    {
        paper.empty("xs:element", &[("minOccurs", "0"), ("name", name), ("type", kind)]);
    }
    let more = [
        ("minOccurs", "0"),
        ("maxOccurs", "unbounded"),
        ("namespace", "##other"),
        ("processContents", "lax"),
    ];
    paper.empty("xs:any", &more);
    paper.close();
    any(&mut paper);
    paper.close();
    for name in ["ReferenceParametersType", "MetadataType"] {
        paper.open("xs:complexType", &[("name", name)]);
        paper.open("xs:sequence", &[]);
        let anything = [
            ("minOccurs", "0"),
            ("maxOccurs", "unbounded"),
            ("namespace", "##any"),
            ("processContents", "lax"),
        ];
        paper.empty("xs:any", &anything);
        paper.close();
        any(&mut paper);
        paper.close();
    }
    paper.open("xs:complexType", &[("name", "AttributedURIType")]);
    paper.open("xs:simpleContent", &[]);
    paper.open("xs:extension", &[("base", "xs:anyURI")]);
    any(&mut paper);
    for _ in 0..4 {
        paper.close();
    }
    paper.out
}
