//! Details of faults: exceptions of the contract, and what a detail may be beside its declared type.

use super::attributes::is_simple;
use super::builtin;
use super::marks::Mark;
use super::members::written;
use super::names::{DERIVED, QName, is_name};
use super::schema::Schemas;
use super::services::{ACTIONS, Messages, Services};
use super::tree::Node;
use everywire_model::shape::{Field, Name, Struct};
use everywire_model::{Hold, Shape};
use std::collections::{HashMap, HashSet};

/// What stands behind the name of an exception whose element is called as a type is.
const FAULT: &str = "Fault";

impl<'n, 't> Services<'n, 't, '_, '_> {
    /// The exceptions of an operation. A fault that is in no document, or a list, has none and is remarked: it still arrives
    /// as a fault.
    pub(super) fn faults(
        &mut self,
        of: &QName,
        node: &'n Node<'t>,
        usual: &str,
        notes: &mut Vec<(Name, Name)>,
    ) -> Vec<Hold<Struct>> {
        let (mut raises, mut families) = (Vec::new(), Vec::new());
        for fault in node.all("fault") {
            let Some(message) = fault.qname("message") else { continue };
            let Some(message) = self.messages.get(&message).copied() else { continue };
            let Some(part) = message.one("part") else { continue };
            // In the style `rpc` a part may have a type alone: the element is called as the part is.
            let alone = part.get("element").is_none();
            let (element, found, named) = if alone {
                let Some(named) = part.qname("type") else { continue };
                let local = part.get("name").unwrap_or_default();
                let found = is_name(local).then_some(part);
                (QName::new(of.namespace.clone(), local), found, Some(named))
            } else {
                let Some(element) = part.qname("element") else { continue };
                // Each plain type has an element of its name, whether a schema of serializers is there or not.
                if builtin::find(&element).is_some() {
                    (element.clone(), Some(part), Some(element))
                } else {
                    let found = self.global(&element, part);
                    let named = found.and_then(|found| found.qname("type"));
                    (element, found, named)
                }
            };
            let typed = match (&named, found) {
                // The types that extend it are exceptions of their own.
                (Some(name), Some(found)) => match builtin::find(name) {
                    Some(typed) => Some(typed),
                    None => self.types.named(name, Some(found)),
                },
                (None, Some(found)) => self
                    .types
                    .element(&QName::new(element.namespace.clone(), ""), found)
                    .map(|(_, typed)| typed),
                (_, None) => None,
            };
            let detail = match typed.map(|typed| typed.shape) {
                Some(Shape::Struct(detail)) => Some(detail),
                Some(shape) => self.text_alone(&element, shape),
                None => None,
            };
            let Some(detail) = detail else {
                let text = format!(
                    "{of}.{}: the fault {element} has no members and is not typed",
                    node.get("name").unwrap_or_default()
                );
                self.types.remark(text);
                self.types.lost = None;
                continue;
            };
            let detail = match &named {
                Some(named) if self.shared.contains(named) => self.of_element(&element, &detail),
                _ => detail,
            };
            let action = fault.foreign(&ACTIONS, "Action").map(str::to_owned);
            self.raise(&element, action.clone(), usual, &detail, notes, &mut raises);
            if let Some(name) = named {
                families.push((name, element, action, detail));
            }
        }
        self.raise_derived(families, usual, notes, &mut raises);
        raises
    }

    /// A detail that is a text alone: an exception of one member. None where it is none. It is called as the element is, unless
    /// a type has that name: the elements of .NET's plain types (`FaultContract(typeof(int))`) and of enumerations are called
    /// as their types are.
    pub(super) fn text_alone(&mut self, element: &QName, shape: Shape) -> Option<Hold<Struct>> {
        if !is_simple(&shape) {
            return None;
        }
        let fields = vec![Field { name: Name::from("Value"), shape: Mark::Text.on(written(shape)) }];
        let (name, id) = self.called_as(element);
        Some(Hold::new(Struct { name, id, fields: fields.into() }))
    }

    /// The detail of one of several elements that have one type: an exception of its own, with the members of the type. What is
    /// raised is the message of a fault with its element (WSDL 1.1, 2.4), and without it nobody could tell them apart.
    fn of_element(&mut self, element: &QName, detail: &Hold<Struct>) -> Hold<Struct> {
        let Some(fields) = detail.get().map(|detail| detail.fields.clone()) else { return detail.clone() };
        let (name, id) = self.called_as(element);
        Hold::new(Struct { name, id, fields })
    }

    /// Name and identity of an exception that is called as its element is, unless a type has that name.
    fn called_as(&mut self, element: &QName) -> (Name, Name) {
        let mut id = element.clone();
        let schemas = self.types.schemas;
        let is_other = |id: &QName| id != element && schemas.elements.contains_key(id);
        while builtin::find(&id).is_some() || schemas.types.contains_key(&id) || is_other(&id) {
            id.local.push_str(FAULT);
        }
        (self.types.name(&id, "TYPE"), Name::from(id.to_string()))
    }

    /// Adds an exception to those of an operation whose usual action is this, and says its element and its action where they
    /// are not the usual ones.
    pub(super) fn raise(
        &mut self,
        element: &QName,
        action: Option<String>,
        usual: &str,
        detail: &Hold<Struct>,
        notes: &mut Vec<(Name, Name)>,
        raises: &mut Vec<Hold<Struct>>,
    ) {
        let id = identity(detail).unwrap_or_else(|| element.clone());
        if !self.exceptions.iter().any(|(known, _)| *known == id) {
            self.exceptions.push((id.clone(), detail.clone()));
        }
        if id != *element {
            notes.push((Name::from(format!("wcf:detail:{id}")), Name::from(element.to_string())));
        }
        if let Some(action) = action.filter(|action| *action != format!("{usual}{}Fault", id.local)) {
            notes.push((Name::from(format!("wcf:fault:{id}")), Name::from(action)));
        }
        if !raises.iter().any(|known| known.id == detail.id) {
            raises.push(detail.clone());
        }
    }

    /// Adds the types that extend those of details: a detail may be of each of them, in the same element and by the same
    /// action, and says by `xsi:type` of which. What a contract declares as a detail of its own is that one.
    pub(super) fn raise_derived(
        &mut self,
        families: Vec<(QName, QName, Option<String>, Hold<Struct>)>,
        usual: &str,
        notes: &mut Vec<(Name, Name)>,
        raises: &mut Vec<Hold<Struct>>,
    ) {
        for (name, element, action, base) in families {
            if !self.types.schemas.is_extended(&name) {
                continue;
            }
            let Some(Shape::Union(family)) = self.types.family(&name).map(|typed| typed.shape) else {
                continue;
            };
            let Some(base) = identity(&base) else { continue };
            let action = action.unwrap_or_else(|| format!("{usual}{}Fault", base.local));
            for arm in family.arms.iter().skip(1) {
                let Shape::Struct(detail) = &arm.field.shape else { continue };
                let Some(id) = identity(detail) else { continue };
                if raises.iter().any(|known| known.id == detail.id) {
                    continue;
                }
                notes.push((Name::from(format!("{DERIVED}{id}")), Name::from(base.to_string())));
                self.raise(&element, Some(action.clone()), usual, detail, notes, raises);
            }
        }
    }
}

/// The types that are the details of several elements in one operation: services in Java often have one bean for all faults.
pub(super) fn shared(
    roots: &[&Node<'_>],
    messages: &Messages<'_, '_>,
    schemas: &Schemas<'_, '_>,
) -> HashSet<QName> {
    let types = roots.iter().flat_map(|definitions| definitions.all("portType"));
    let mut shared = HashSet::new();
    for operation in types.flat_map(|port_type| port_type.all("operation")) {
        let mut elements: HashMap<QName, QName> = HashMap::new();
        for fault in operation.all("fault") {
            let message = fault.qname("message").and_then(|message| messages.get(&message).copied());
            let Some(element) = message.and_then(|message| message.one("part")?.qname("element")) else {
                continue;
            };
            let named = schemas.elements.get(&element).and_then(|found| found.qname("type"));
            let Some(named) = named.filter(|named| builtin::find(named).is_none()) else { continue };
            if *elements.entry(named.clone()).or_insert_with(|| element.clone()) != element {
                shared.insert(named);
            }
        }
    }
    shared
}

/// The name of an exception's type.
fn identity(detail: &Hold<Struct>) -> Option<QName> {
    QName::parse(detail.get().map_or("", |detail| detail.id.as_ref()))
}
