//! Structs and unions that are used before they are defined: whoever needs one gets a cell, and here those cells
//! are filled that no definition fills.

use super::types::Record;
use super::{Builder, background};
use crate::report::Span;
use everywire_model::shape::{Name, Struct, Union};
use everywire_model::{Definition, Hold, Shape};
use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

impl Builder<'_> {
    /// Structs and unions that others got as a cell before they turned out to have no form on a wire, and all that contain one, by key.
    pub(super) fn formless_too_late(&self) -> HashMap<String, Rc<str>> {
        let mut late: HashMap<Name, Rc<str>> = HashMap::new();
        for record in self.records.values() {
            if let Record::Broken { name, stays: Some(why), shape: Some(_) } = record {
                late.insert(Name::from(name.clone()), Rc::clone(why));
            }
        }
        if late.is_empty() {
            return HashMap::new();
        }
        self.fill_cells();
        let definitions: Vec<&Definition> = self.definitions.iter().chain(&self.background).collect();
        let first = late.values().min().cloned().unwrap_or_default();
        let users = background::users(&definitions, late.keys().cloned().collect());
        let keyed = self.records.iter().filter(|(_, record)| users.contains(record.name()));
        keyed.map(|(key, record)| (key.clone(), late.get(record.name()).unwrap_or(&first).clone())).collect()
    }

    /// Which structs are used and never defined, and where they are mentioned. Each has no fields from now on, so that whoever walks the types finds an end.
    pub(super) fn settle(&mut self) -> Vec<(Span, String)> {
        self.fill_cells();
        let open = self.records.values().filter_map(|record| match record {
            Record::Open { name, span, shape: Some(_) } => Some((*span, name.clone())),
            _ => None,
        });
        let mut missing: Vec<_> = open.collect();
        missing.sort_by_key(|(span, _)| (span.file, span.start));
        missing
    }

    /// Makes structs without fields of what others hold and what has no definition, or none with a form on a wire.
    fn fill_cells(&self) {
        for record in self.records.values() {
            let (Record::Open { name, shape: Some(shape), .. }
            | Record::Broken { name, shape: Some(shape), .. }) = record
            else {
                continue;
            };
            let (id, empty) = (Name::default(), Name::from(name.clone()));
            match shape {
                Shape::Struct(Hold::Later(cell)) => {
                    let _ = cell.set(Struct { name: empty, id, fields: Cow::Borrowed(&[]) });
                }
                Shape::Union(Hold::Later(cell)) => {
                    let discriminator = Shape::I32;
                    let _ = cell.set(Union { name: empty, id, discriminator, arms: Cow::Borrowed(&[]) });
                }
                _ => {}
            }
        }
    }
}
