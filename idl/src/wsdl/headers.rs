//! Where the parts of messages are. Those that travel as headers are parameters of the operation, each with the name of its element;
//! attachments are not carried.

use super::bindings::Elsewhere;
use super::names::QName;
use super::parameters::or_nil;
use super::services::{Content, Services};
use super::tree::Node;
use crate::report::Problem;
use everywire_model::shape::{Field, Name};
use std::collections::{HashMap, HashSet};

impl<'n, 't> Services<'n, 't, '_, '_> {
    /// Those of the parts that are in the body of the message which bindings know by this `key`. One that is nowhere is left out with
    /// a remark. None, with the reason in `lost`, where one is an attachment: a message without it would be another one.
    pub(super) fn in_body(
        &mut self,
        of: &QName,
        operation: &str,
        parts: Vec<&'n Node<'t>>,
        key: &(QName, String, bool),
    ) -> Option<Vec<&'n Node<'t>>> {
        let Some(bound) = self.bindings.bodies.get(key) else { return Some(parts) };
        let all: Vec<&str> = parts.iter().filter_map(|part| part.get("name")).collect();
        let mut inside = Vec::new();
        for part in parts {
            let name = part.get("name").unwrap_or_default();
            match bound.elsewhere(name, &all) {
                None => inside.push(part),
                Some(Elsewhere::Unbound) => self.types.remark(format!(
                    "{of}.{operation}: the part `{name}` is left out, no binding carries it"
                )),
                Some(Elsewhere::Attached) => {
                    let lost =
                        format!("the part `{name}` is sent as an attachment (MIME), which is not carried");
                    self.types.report.doubt(Problem::new(part.span(), lost.clone()));
                    self.types.lost = Some(lost);
                    return None;
                }
            }
        }
        Some(inside)
    }

    /// The headers of a message, which are these parts of messages; each element once. One whose type is not known is left out
    /// with a remark. None after a mistake.
    pub(super) fn headers(&mut self, parts: Vec<(QName, String)>) -> Option<Vec<(Field, QName)>> {
        let mut read: Vec<(Field, QName)> = Vec::new();
        for (message, part) in parts {
            let Some(node) = self.messages.get(&message).copied() else { continue };
            self.types.look(node)?;
            let Some(part) = node.all("part").find(|p| p.get("name") == Some(part.as_str())) else {
                continue;
            };
            let Some(element) = part.qname("element") else { continue };
            let of_it = QName::new(element.namespace.clone(), "");
            let found = self.global(&element, part);
            let typed = found.and_then(|found| Some((found, self.types.element(&of_it, found)?.1)));
            let Some((found, typed)) = typed else {
                // What is not known cannot be sent; the operation itself can.
                let lost = self.types.lost.take()?;
                self.types.remark(format!("the header {element} is left out: {lost}"));
                continue;
            };
            let name = Name::from(element.local.clone());
            if read.iter().all(|(_, known)| *known != element) {
                read.push((Field { name, shape: or_nil(found, typed.shape) }, element));
            }
        }
        Some(read)
    }
}

/// Gives headers names of their own among the parameters of both messages: they are known by their names, and an element of
/// another namespace in the body, or among the headers, may be called as they are. One that is in both messages has one name.
pub(super) fn tell_apart(request: &mut Content, reply: &mut Content) {
    let bodies = request.fields.iter().chain(&reply.fields);
    let mut taken: HashSet<Name> = bodies.map(|field| field.name.clone()).collect();
    let mut known: HashMap<QName, Name> = HashMap::new();
    for (field, element) in request.headers.iter_mut().chain(&mut reply.headers) {
        if let Some(name) = known.get(element) {
            field.name = name.clone();
            continue;
        }
        let (mut name, mut number) = (field.name.clone(), 1);
        while !taken.insert(name.clone()) {
            let last = if number == 1 { String::new() } else { number.to_string() };
            name = Name::from(format!("{}Header{last}", field.name));
            number += 1;
        }
        known.insert(element.clone(), name.clone());
        field.name = name;
    }
}
