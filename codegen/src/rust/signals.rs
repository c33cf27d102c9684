//! Signals: a struct for each, that listeners get and servants emit.

use super::data::{define_fields, implement_fields};
use super::plan::{Family, Plan};
use super::types::Types;
use crate::page::Page;
use everywire_model::shape::{Shape, Struct};
use everywire_model::{Interface, Signal};

/// Writes the lines of a trait's documentation that name its signals.
pub(super) fn mention(interface: &Interface, family: &Family, page: &mut Page) {
    let mut own = own(interface, family).peekable();
    if own.peek().is_some() {
        page.line("///");
    }
    for (_, signal, name) in own {
        let about = signal.doc.lines().next().unwrap_or_default().trim();
        let about = if about.is_empty() { ".".to_owned() } else { format!(": {about}") };
        page.line(format!("/// * Emits [`{name}`]{about}"));
    }
}

/// Writes the types of an interface's own signals.
pub(super) fn define(types: &Types<'_, '_>, interface: &Interface, family: &Family, page: &mut Page) {
    for (_, signal, name) in own(interface, family) {
        let Some(fields) = fields(signal) else { continue };
        let doc = match signal.doc.as_ref() {
            "" => format!("The signal `{}` of `{}`.", signal.name, interface.name),
            doc => doc.to_owned(),
        };
        define_fields(types, name, fields, &doc, page);
    }
}

/// The types of all signals that objects of an interface emit, inherited ones too.
pub(super) fn emitted(types: &Types<'_, '_>, interface: &Interface) -> Vec<String> {
    let mut all = Vec::new();
    for ancestor in Plan::lineage(interface) {
        let (Some((_, family)), Some(place)) =
            (types.plan.interface(&ancestor.name), types.plan.find(&ancestor.name))
        else {
            continue;
        };
        all.extend(family.occasions.iter().map(|(_, name)| Plan::path(types.from, &place.path, name)));
    }
    all
}

/// Writes what makes them signals.
pub(super) fn implement(types: &Types<'_, '_>, interface: &Interface, family: &Family, page: &mut Page) {
    let described = types.plan.find(&interface.name).map_or("", |place| place.described.as_str());
    let mut items = Vec::new();
    for (index, signal, name) in own(interface, family) {
        let Some(fields) = fields(signal) else { continue };
        implement_fields(types, name, fields, page);
        items.push(format!("{index} {name}"));
    }
    if !items.is_empty() {
        let head = format!("ew::signals! {{ describe::{described}, describe::{} {{ ", family.signals);
        page.fill(&head, &items, " } }");
    }
}

/// Number, description and type of each signal that is not inherited. Names come from the plan, in the order
/// of the signals.
fn own<'i>(
    interface: &'i Interface,
    family: &'i Family,
) -> impl Iterator<Item = (usize, &'i Signal, &'i str)> {
    family
        .occasions
        .iter()
        .filter_map(|(index, name)| Some((*index, interface.signals.get(*index)?, name.as_str())))
}

/// The fields of a signal, which the model keeps as a struct.
fn fields(signal: &Signal) -> Option<&Struct> {
    match signal.fields.resolved() {
        Shape::Struct(fields) => Some(fields),
        _ => None,
    }
}
