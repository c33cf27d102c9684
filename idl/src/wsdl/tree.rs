//! Elements with their namespaces.
//!
//! `xml` gives elements with the prefixes that they were written with; here each becomes a `Node` that knows
//! its namespace and the prefixes in scope, which names inside attributes (`type="q1:Thing"`) need later.
//! Nodes borrow everything from the elements, and a scope is shared by all elements that declare nothing
//! themselves.
//!
//! The tree is as deep as the XML, so whoever walks it recurses at most that deep. A prefix that is not declared means what it means
//! elsewhere in the document, if that is one thing, or what it means everywhere by convention; else it stands for a namespace that nobody
//! defines ([`Document::meaning`]), so that what needs it is left out. A first element of such a prefix ends the reading of the document, since
//! nobody knows what it is. A namespace or name that is too long ends it too: definitions, references and ports hold copies of them.

use super::limits::{NAME, NAMESPACES};
use super::names::{QName, SCHEMA};
use crate::report::{Problem, Report, Span};
use crate::xml::{Attribute, Element, shown};
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// The namespace of WSDL 1.1.
pub(super) const WSDL: &str = "http://schemas.xmlsoap.org/wsdl/";
/// The namespace that the prefix `xml` always has (Namespaces in XML 1.0, 3).
pub(super) const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// What the namespace begins with that an undeclared prefix stands for; the prefix follows. It has a space, which no address has.
const UNDECLARED: &str = "undeclared prefix ";
/// The attributes that hold names with a prefix.
const NAMED: [&str; 9] =
    ["type", "ref", "base", "element", "message", "binding", "itemType", "memberTypes", "substitutionGroup"];

/// An element, its namespace resolved.
pub(super) struct Node<'t> {
    /// Its namespace; empty where it is in none.
    pub(super) space: &'t str,
    /// Its name without the prefix.
    pub(super) local: &'t str,
    pub(super) children: Vec<Self>,
    element: &'t Element<'t>,
    /// The prefixes that are in scope at this element.
    scope: Rc<Scope<'t>>,
    /// The namespace of names without a prefix where none is declared for them: that of the schema which includes one without a
    /// namespace of its own (XML Schema 1.0, 4.2.1).
    pub(super) adopted: &'t str,
    /// What the schema around it says of the elements and attributes in its types.
    pub(super) forms: Forms,
}

/// What a schema says of elements and attributes in its types that say nothing themselves: whether they are in its namespace. It
/// belongs to one document, and others of the same namespace may say something else (XML Schema part 1, 3.3.2 and 3.2.2).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Forms {
    pub(super) elements: bool,
    pub(super) attributes: bool,
}

/// The prefixes that an element declares, and those around it.
struct Scope<'t> {
    /// Prefix and namespace; the prefix is empty for the default namespace.
    declared: Vec<(&'t str, &'t str)>,
    outer: Option<Rc<Self>>,
    /// Declarations here and in all scopes around; at most `NAMESPACES`.
    count: usize,
    document: Rc<Document<'t>>,
}

/// What the whole document declares.
struct Document<'t> {
    root: &'t Element<'t>,
    /// Each prefix that some element declares, with its namespace if that is the same at all of them. Made when it is needed.
    prefixes: OnceCell<HashMap<&'t str, Option<&'t str>>>,
}

impl<'t> Document<'t> {
    /// The namespace of a prefix that is not declared where it is used: the one that it has elsewhere in the document; or by
    /// convention: `xs` and `xsd` are XML Schema, `tns` is this namespace (WSDL 1.1, 1.2).
    fn meaning(&self, prefix: &str) -> Option<&'t str> {
        let prefixes = self.prefixes.get_or_init(|| {
            let mut found = HashMap::new();
            gather(self.root, &mut found);
            found
        });
        match (prefixes.get(prefix), prefix) {
            (Some(namespace), _) => *namespace,
            (None, "xs" | "xsd") => Some(SCHEMA),
            (None, "tns") => self.root.attribute("targetNamespace").map(|target| target.value.as_ref()),
            (None, _) => None,
        }
    }
}

/// Collects prefixes; recursion is bounded by the depth of the tree.
fn gather<'t>(element: &'t Element<'t>, found: &mut HashMap<&'t str, Option<&'t str>>) {
    for attribute in &element.attributes {
        if let Some(prefix) = attribute.name.strip_prefix("xmlns:") {
            let namespace = attribute.value.as_ref();
            let known = found.entry(prefix).or_insert(Some(namespace));
            *known = known.filter(|known| *known == namespace);
        }
    }
    element.elements().for_each(|child| gather(child, found));
}

impl<'t> Scope<'t> {
    /// The namespace of a prefix, the innermost declaration first.
    fn find(&self, prefix: &str) -> Option<&'t str> {
        let mut scope = self;
        loop {
            if let Some((_, space)) = scope.declared.iter().find(|(declared, _)| *declared == prefix) {
                return Some(space);
            }
            match &scope.outer {
                Some(outer) => scope = outer,
                None => return if prefix == "xml" { Some(XML) } else { None },
            }
        }
    }
}

/// A namespace as it is called today: drafts of XML Schema are read as the recommendation.
fn modern(space: &str) -> &str {
    match space {
        "http://www.w3.org/1999/XMLSchema" | "http://www.w3.org/2000/10/XMLSchema" => SCHEMA,
        other => other,
    }
}

/// What is wrong where nothing has this name, and what helps.
pub(super) fn missing(what: &str, name: &QName) -> (String, String) {
    let (local, space) = (&name.local, &name.namespace);
    match space.strip_prefix(UNDECLARED) {
        Some(prefix) => (
            format!("the prefix of the {what} `{prefix}:{local}` is not declared"),
            format!("declare it: `xmlns:{prefix}`"),
        ),
        None => (
            format!("the {what} `{local}` of the namespace `{space}` is not defined"),
            "give the document that defines it, as a file beside this one".to_owned(),
        ),
    }
}

/// Whether an attribute holds a namespace, a name, or a reference to one.
fn is_naming(attribute: &str) -> bool {
    attribute.starts_with("xmlns")
        || matches!(
            attribute,
            "targetNamespace"
                | "name"
                | "type"
                | "ref"
                | "base"
                | "element"
                | "message"
                | "binding"
                | "part"
                | "URI"
                | "transport"
        )
}

impl<'t> Node<'t> {
    /// The tree below an element; recursion is bounded by the depth of the tree.
    pub(super) fn of(element: &'t Element<'t>, report: &mut Report) -> Option<Self> {
        Self::within(element, None, ("", Forms::default()), report)
    }

    /// The tree below a schema without a namespace, as one of this namespace includes it.
    pub(super) fn adopted(element: &'t Element<'t>, namespace: &'t str, report: &mut Report) -> Option<Self> {
        Self::within(element, None, (namespace, Forms::default()), report)
    }

    /// `outer` is the scope around the element, None for the root of a document; then what the schema around it says.
    fn within(
        element: &'t Element<'t>,
        outer: Option<Rc<Scope<'t>>>,
        (adopted, forms): (&'t str, Forms),
        report: &mut Report,
    ) -> Option<Self> {
        let named = element.attributes.iter().filter(|attribute| is_naming(attribute.name));
        let texts = named.map(|attribute| (attribute.value.as_ref(), attribute.span));
        if let Some((_, span)) =
            texts.chain([(element.name, element.span)]).find(|(text, _)| text.len() > NAME)
        {
            report.add(Problem::new(span, format!("this name is longer than {NAME} bytes")));
            return None;
        }
        let declared: Vec<(&str, &str)> = element
            .attributes
            .iter()
            .filter_map(|attribute| {
                let prefix = match attribute.name.strip_prefix("xmlns:") {
                    Some(prefix) => prefix,
                    None if attribute.name == "xmlns" => "",
                    None => return None,
                };
                Some((prefix, attribute.value.as_ref()))
            })
            .collect();
        let is_first = outer.is_none();
        let scope = match outer {
            // Most elements declare nothing.
            Some(outer) if declared.is_empty() => outer,
            outer => {
                let count = declared.len() + outer.as_ref().map_or(0, |outer| outer.count);
                if count > NAMESPACES {
                    let message = format!("more than {NAMESPACES} namespaces are declared at one place");
                    report.add(Problem::new(element.span, message));
                    return None;
                }
                let document = match &outer {
                    Some(outer) => Rc::clone(&outer.document),
                    None => Rc::new(Document { root: element, prefixes: OnceCell::new() }),
                };
                Rc::new(Scope { declared, outer, count, document })
            }
        };
        let (prefix, local) = element.name.split_once(':').unwrap_or(("", element.name));
        let space = match scope.find(prefix).or_else(|| scope.document.meaning(prefix)) {
            Some(space) => modern(space),
            None if prefix.is_empty() => "",
            None if is_first => {
                let message = format!("the prefix of {} is not declared", shown(element.name));
                report.add(Problem::new(element.span, message).expected([format!("`xmlns:{prefix}`")]));
                return None;
            }
            // Nobody knows what it is, as is the case with extensions.
            None => UNDECLARED,
        };
        let is_qualified = |name| element.attribute(name).is_some_and(|form| form.value == "qualified");
        let forms = if local == "schema" && space == SCHEMA {
            Forms {
                elements: is_qualified("elementFormDefault"),
                attributes: is_qualified("attributeFormDefault"),
            }
        } else {
            forms
        };
        let children = element
            .elements()
            .map(|child| Self::within(child, Some(Rc::clone(&scope)), (adopted, forms), report))
            .collect::<Option<Vec<Self>>>()?;
        Some(Self { space, local, children, element, scope, adopted, forms })
    }

    pub(super) fn is(&self, space: &str, local: &str) -> bool {
        self.local == local && self.space == space
    }

    /// How many nodes the tree below an element has, itself counted.
    pub(super) fn count(element: &Element<'_>) -> usize {
        1 + element.elements().map(Self::count).sum::<usize>()
    }

    pub(super) fn span(&self) -> Span {
        self.element.span
    }

    /// The text of the child `documentation`, if there is any.
    pub(super) fn documentation(&self) -> String {
        self.one("documentation").map_or_else(String::new, |doc| doc.text().trim().to_owned())
    }

    pub(super) fn text(&self) -> String {
        self.element.text()
    }

    /// The children of the element's own namespace with this name. Elements of other namespaces, such as
    /// extensions, are passed over.
    pub(super) fn all<'n>(&'n self, local: &'static str) -> impl Iterator<Item = &'n Self> {
        self.children.iter().filter(move |child| child.local == local && child.space == self.space)
    }

    /// The first child of the element's own namespace with this name.
    pub(super) fn one(&self, local: &'static str) -> Option<&Self> {
        self.all(local).next()
    }

    /// The first descendant with this local name, whatever its namespace. Depth first.
    pub(super) fn below(&self, local: &str) -> Option<&Self> {
        self.children
            .iter()
            .find_map(|child| if child.local == local { Some(child) } else { child.below(local) })
    }

    /// An attribute without a namespace.
    pub(super) fn get(&self, name: &str) -> Option<&'t str> {
        self.attribute(name).map(|attribute| attribute.value.as_ref())
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&'t Attribute<'t>> {
        self.element.attribute(name)
    }

    /// The first attribute with this name in one of these namespaces: those of WS-Addressing differ by their
    /// year.
    pub(super) fn foreign(&self, spaces: &[&str], name: &str) -> Option<&'t str> {
        self.element.attributes.iter().find_map(|attribute| {
            let (prefix, local) = attribute.name.split_once(':')?;
            let space = if local == name { self.scope.find(prefix)? } else { return None };
            spaces.contains(&space).then_some(attribute.value.as_ref())
        })
    }

    /// An attribute whose value is a name with a prefix. None where there is none.
    pub(super) fn qname(&self, name: &str) -> Option<QName> {
        Some(self.resolve(self.get(name)?.trim()))
    }

    /// A name with a prefix, here. One whose prefix has no meaning is in a namespace that begins with [`UNDECLARED`]. A name without a
    /// prefix is in the default namespace, as XML Schema has it for names in attributes.
    pub(super) fn resolve(&self, text: &str) -> QName {
        let (prefix, local) = text.split_once(':').unwrap_or(("", text));
        let found = self.scope.find(prefix).or_else(|| self.scope.document.meaning(prefix));
        match found.or_else(|| prefix.is_empty().then_some(self.adopted)) {
            Some("") => QName::new(self.adopted, local),
            Some(space) => QName::new(modern(space), local),
            None => QName::new(format!("{UNDECLARED}{prefix}"), local),
        }
    }

    /// Notes what is taken for each prefix that is used here or below and not declared there, up to `most` of them. Recursion is bounded by
    /// the depth of the tree.
    pub(super) fn undeclared(&self, most: usize, remarks: &mut BTreeSet<String>) {
        let known = [WSDL, SCHEMA].contains(&self.space);
        let names = NAMED.iter().filter(|_| known).filter_map(|name| self.get(name));
        for name in names.chain([self.element.name]) {
            let Some((prefix, _)) = name.trim().split_once(':') else { continue };
            if self.scope.find(prefix).is_none() && remarks.len() < most {
                let taken = match self.scope.document.meaning(prefix) {
                    Some(space) => format!("it is read as `{}`", modern(space)),
                    None => "what needs it is left out".to_owned(),
                };
                remarks.insert(format!("the prefix `{prefix}` is not declared: {taken}"));
            }
        }
        self.children.iter().for_each(|child| child.undeclared(most, remarks));
    }

    /// An attribute that must be there.
    pub(super) fn needed(&self, name: &str, report: &mut Report) -> Option<&'t str> {
        let found = self.get(name);
        if found.is_none() {
            let message = format!("this {} has no {name}", self.local);
            report.add(Problem::new(self.span(), message).expected([format!("attribute `{name}`")]));
        }
        found
    }
}
