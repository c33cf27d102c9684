//! Elements to a document.
//!
//! A part with a mistake is left out and the next one is read, so that a file's mistakes come together.
//! Places are kept beside the document, in lists of the same length and order: the builder reports mistakes
//! that only it can see.

use super::document::{Argument, Class, Document, Exception, Member, Type};
use super::types;
use crate::report::{Problem, Report, Span};
use crate::xml::{Element, shown};

/// Bytes of a name.
pub(super) const NAME: usize = 255;

/// A document and where its parts stand.
pub(super) struct LocatedDocument {
    pub(super) document: Document,
    /// As long as the classes of the document.
    pub(super) places: Vec<ClassPlace>,
    /// Where the parts of the exceptions stand.
    pub(super) exceptions: Vec<MemberPlace>,
}

/// Where the parts of a class stand.
pub(super) struct ClassPlace {
    pub(super) name: Span,
    /// As long as the members of the class.
    pub(super) members: Vec<MemberPlace>,
}

/// Where the parts of a member stand.
pub(super) struct MemberPlace {
    pub(super) name: Span,
    pub(super) returns: Span,
    /// As long as the arguments of the member.
    pub(super) arguments: Vec<Span>,
    pub(super) raises: Span,
}

/// Reads a whole file. None where the root is another element.
pub(super) fn document(root: &Element<'_>, report: &mut Report) -> Option<LocatedDocument> {
    if root.name != "DCOP-IDL" {
        let message = format!("the file is about {}, not about DCOP classes", shown(root.name));
        report.add(Problem::new(root.span, message).expected(["`<DCOP-IDL>`"]));
        return None;
    }
    let mut document = Document::default();
    let (mut places, mut exceptions) = (Vec::new(), Vec::new());
    for element in root.elements() {
        match element.name {
            "SOURCE" => document.source = Some(element.text()),
            "INCLUDE" => document.includes.push(element.text()),
            "CLASS" => {
                if let Some((class, place)) = class(element, report) {
                    document.classes.push(class);
                    places.push(place);
                }
            }
            "EXCEPTION" => {
                if let Some((exception, place)) = exception(element, report) {
                    document.exceptions.push(exception);
                    exceptions.push(place);
                }
            }
            _ => {}
        }
    }
    Some(LocatedDocument { document, places, exceptions })
}

/// One class; None without a valid name.
fn class(element: &Element<'_>, report: &mut Report) -> Option<(Class, ClassPlace)> {
    let (name, span) = name(element, report, is_scoped)?;
    let mut class = Class { name, ..Class::default() };
    let mut place = ClassPlace { name: span, members: Vec::new() };
    for child in element.elements() {
        match child.name {
            "LINK_SCOPE" => class.link_scope = Some(child.text()),
            "SUPER" => class.bases.push(types::normal(&child.text())),
            "FUNC" | "SIGNAL" => {
                if let Some((member, at)) = member(child, report) {
                    class.members.push(member);
                    place.members.push(at);
                }
            }
            _ => {}
        }
    }
    Some((class, place))
}

fn exception(element: &Element<'_>, report: &mut Report) -> Option<(Exception, MemberPlace)> {
    let (name, span) = name(element, report, is_scoped)?;
    let mut place = MemberPlace { name: span, returns: span, arguments: Vec::new(), raises: span };
    let fields = arguments(element, &mut place, report)?;
    Some((Exception { name, fields }, place))
}
/// A function or a signal; None after a mistake in any part of it.
fn member(element: &Element<'_>, report: &mut Report) -> Option<(Member, MemberPlace)> {
    let (name, name_span) = name(element, report, is_identifier)?;
    let (returns, returns_span) = kind(element, report)?;
    let raises = element.attribute("raises").filter(|_| element.name == "FUNC");
    let mut member = Member {
        signal: element.name == "SIGNAL",
        qualifier: element.attribute("qual").map(|qualifier| qualifier.value.to_string()),
        hidden: element.attribute("hidden").is_some_and(|hidden| hidden.value == "yes"),
        raises: raises.map(|list| list.value.split(',').map(types::normal).collect()).unwrap_or_default(),
        idempotent: element.attribute("idempotent").is_some_and(|idempotent| idempotent.value == "yes"),
        returns,
        name,
        arguments: Vec::new(),
    };
    let raises = raises.map_or(name_span, |list| list.span);
    let mut place = MemberPlace { name: name_span, returns: returns_span, arguments: Vec::new(), raises };
    member.arguments = arguments(element, &mut place, report)?;
    Some((member, place))
}

/// The arguments of a function, or what an exception carries.
fn arguments(element: &Element<'_>, place: &mut MemberPlace, report: &mut Report) -> Option<Vec<Argument>> {
    let mut arguments = Vec::new();
    for child in element.elements().filter(|child| child.name == "ARG") {
        let (kind, span) = kind(child, report)?;
        let named = child.elements().any(|part| part.name == "NAME");
        let name = if named { Some(name_of(child, report)?) } else { None };
        arguments.push(Argument { kind, name });
        place.arguments.push(span);
    }
    Some(arguments)
}

/// The name of an argument.
fn name_of(element: &Element<'_>, report: &mut Report) -> Option<String> {
    name(element, report, is_identifier).map(|(name, _)| name)
}

/// The name of a class, a function or an argument. `right` says which names are good. The text may have white
/// space around it, which belongs to no name.
fn name(element: &Element<'_>, report: &mut Report, right: fn(&str) -> bool) -> Option<(String, Span)> {
    let Some(found) = element.elements().find(|child| child.name == "NAME") else {
        let problem = Problem::new(element.span, format!("this {} has no name", element.name));
        report.add(problem.expected(["`<NAME>`"]));
        return None;
    };
    let text = found.text();
    let name = text.trim();
    if name.len() > NAME || !right(name) {
        let message = format!("{} is no name of a C++ declaration", shown(name));
        report.add(Problem::new(found.span, message).expected(["letters, digits and `_`, no digit first"]));
        return None;
    }
    Some((name.to_owned(), found.span))
}

/// The type of a function or an argument. The name is made normal: white space only between words. It need
/// not be a type that is known.
fn kind(element: &Element<'_>, report: &mut Report) -> Option<(Type, Span)> {
    let Some(found) = element.elements().find(|child| child.name == "TYPE") else {
        let problem = Problem::new(element.span, format!("this {} has no type", element.name));
        report.add(problem.expected(["`<TYPE>`"]));
        return None;
    };
    let attribute = |name| found.attribute(name).map(|qualifier| qualifier.value.to_string());
    let name = types::normal(&found.text());
    if name.is_empty() || name.len() > types::LENGTH {
        report.add(Problem::new(found.span, "this is no name of a type"));
        return None;
    }
    Some((Type { left: attribute("qleft"), right: attribute("qright"), name }, found.span))
}

/// An identifier of C++, in ASCII.
pub(super) fn is_identifier(name: &str) -> bool {
    let start = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    name.bytes().next().is_some_and(start) && name.bytes().all(|b| start(b) || b.is_ascii_digit())
}

/// A name with its namespaces (`A::B`).
pub(super) fn is_scoped(name: &str) -> bool {
    name.split("::").all(is_identifier)
}
