//! Errors that a contract names: annotations of ours, `org.example.Broke(d missing, s account)`.
//!
//! What an error carries is what stands in the parentheses: signatures and names, with commas between. An error may be named
//! by several methods, with the same values each time.

use super::names::{self, identifier};
use super::read::Reader;
use crate::report::{Problem, Span};
use crate::unique::Unique;
use crate::xml::{Attribute, Element, shown};
use everywire_model::Hold;
use everywire_model::shape::{Field, Name, Struct};
use std::collections::{HashMap, HashSet};

/// Values that an error carries.
const FIELDS: usize = 256;

/// The errors that were named so far, and what may not have their names.
#[derive(Default)]
pub(super) struct Exceptions {
    known: HashMap<String, ErrorDefinition>,
    /// Those that were not defined yet.
    new: Vec<Hold<Struct>>,
    /// All interfaces of the file.
    interfaces: HashSet<String>,
}

/// An error.
struct ErrorDefinition {
    held: Hold<Struct>,
    /// Signature and name of each value.
    values: Vec<(String, String)>,
    span: Span,
}

impl Exceptions {
    /// Those of the file that this element holds.
    pub(super) fn beside(root: &Element<'_>) -> Self {
        let mut all = Self::default();
        all.gather(root);
        all
    }

    /// Recursion is bounded by the depth of the tree.
    fn gather(&mut self, node: &Element<'_>) {
        for child in node.elements() {
            match (child.name, child.attribute("name")) {
                ("interface", Some(name)) => drop(self.interfaces.insert(name.value.to_string())),
                ("node", _) => self.gather(child),
                _ => {}
            }
        }
    }

    /// What was named since the last time.
    pub(super) fn take_new(&mut self) -> impl Iterator<Item = Hold<Struct>> + use<> {
        std::mem::take(&mut self.new).into_iter()
    }

    /// The scoped name of an error: its name with `::`. Nothing can stand in a module that has the name of an interface, so
    /// what is behind that is one word.
    fn scoped(&self, name: &str) -> String {
        let dots = name.match_indices('.').map(|(at, _)| at);
        for at in dots {
            let (scope, rest) = name.split_at(at);
            if self.interfaces.contains(scope) {
                let rest = rest.trim_start_matches('.').replace('.', "_");
                return format!("{}::{rest}", scope.replace('.', "::"));
            }
        }
        name.replace('.', "::")
    }
}

/// The errors that the annotations of this name give to an element; nothing after a mistake.
pub(super) fn of(
    reader: &mut Reader<'_>,
    element: &Element<'_>,
    annotation: &str,
) -> Option<Vec<Hold<Struct>>> {
    let (mut raises, mut seen): (Vec<Hold<Struct>>, HashSet<Name>) = (Vec::new(), HashSet::new());
    let is_one = |child: &&Element<'_>| {
        child.name == "annotation" && child.attribute("name").is_some_and(|name| name.value == annotation)
    };
    for child in element.elements().filter(is_one) {
        let value = reader.needed(child, "value")?;
        let raised = exception(reader, value)?;
        if !seen.insert(raised.id.clone()) {
            let message = format!("{} is named twice", shown(&raised.id));
            reader.report.add(Problem::new(value.span, message));
            return None;
        }
        raises.push(raised);
    }
    Some(raises)
}

/// The error that an annotation describes.
fn exception(reader: &mut Reader<'_>, text: &Attribute<'_>) -> Option<Hold<Struct>> {
    let whole = text.value.as_ref();
    let (name, list) = match whole.split_once('(') {
        Some((name, rest)) => (name, Some(rest)),
        None => (whole, None),
    };
    let name = name.trim();
    if !names::is_interface(name) {
        let problem = Problem::new(part(text, name), format!("{} is no name of an error", shown(name)));
        reader.report.add(problem.expected(["at least two names joined by dots"]));
        return None;
    }
    if reader.exceptions.interfaces.contains(name) {
        let message = format!("{} is the name of an interface already", shown(name));
        reader.report.add(Problem::new(part(text, name), message));
        return None;
    }
    let list = match list.map(|rest| rest.trim_end().strip_suffix(')')) {
        None => "",
        Some(Some(list)) => list,
        Some(None) => {
            let problem = Problem::new(text.span, "what the error carries does not end");
            reader.report.add(problem.expected(["`)`"]));
            return None;
        }
    };
    let (values, places) = values(reader, text, list)?;
    if let Some(known) = reader.exceptions.known.get(name) {
        if known.values == values {
            return Some(known.held.clone());
        }
        let problem = Problem::new(text.span, format!("{} carries something else before", shown(name)));
        reader.report.add(problem.note(known.span, "here it carries other values, or by other names"));
        return None;
    }
    let mut fields = Vec::with_capacity(values.len());
    for ((kind, field), place) in values.iter().zip(places) {
        let shape = reader.signature(kind, place)?;
        fields.push(Field { name: Name::from(field.clone()), shape });
    }
    let scoped = Name::from(reader.exceptions.scoped(name));
    let held = Hold::new(Struct { name: scoped, id: Name::from(name.to_owned()), fields: fields.into() });
    let known = ErrorDefinition { held: held.clone(), values, span: text.span };
    reader.exceptions.known.insert(name.to_owned(), known);
    reader.exceptions.new.push(held.clone());
    Some(held)
}

/// Signature and name of each value that an error carries, and where its signature stands.
#[allow(clippy::type_complexity)]
fn values(
    reader: &mut Reader<'_>,
    text: &Attribute<'_>,
    list: &str,
) -> Option<(Vec<(String, String)>, Vec<Span>)> {
    let (mut values, mut places, mut unique) = (Vec::new(), Vec::new(), Unique::default());
    if list.trim().is_empty() {
        return Some((values, places));
    }
    for (number, piece) in (1..).zip(list.split(',')) {
        if number > FIELDS {
            let message = format!("an error carries {FIELDS} values at most");
            reader.report.add(Problem::new(part(text, piece), message));
            return None;
        }
        let mut words = piece.split_ascii_whitespace();
        let (kind, name) = (words.next().unwrap_or_default(), words.next());
        if kind.is_empty() || words.next().is_some() {
            let at = if piece.trim().is_empty() { piece } else { piece.trim() };
            let problem = Problem::new(part(text, at), "this is no value of an error");
            reader.report.add(problem.expected(["a signature and a name, such as `d missing`"]));
            return None;
        }
        let name = name.map_or_else(|| format!("arg_{number}"), identifier);
        places.push(part(text, kind));
        values.push((kind.to_owned(), unique.name(&name)));
    }
    Some((values, places))
}

/// Where a piece of a value stands; where the value has entities, the whole of it.
fn part(text: &Attribute<'_>, piece: &str) -> Span {
    let whole = text.value.as_ref();
    let at = (piece.as_ptr() as usize).checked_sub(whole.as_ptr() as usize);
    let written = (text.span.end - text.span.start) as usize;
    match at.filter(|at| at + piece.len() <= whole.len() && written == whole.len()) {
        Some(at) => {
            let start = text.span.start + u32::try_from(at).unwrap_or_default();
            Span { start, end: start + u32::try_from(piece.len()).unwrap_or_default(), ..text.span }
        }
        None => text.span,
    }
}
