//! Arguments that a caller by name may leave out: what `[optional]`, `[defaultvalue(...)]` and `[vararg]` say, kept as notes of the
//! operation. They say nothing about bytes, since a call by number has all of its arguments.
//!
//! A default is kept as it is written, because it may be the name of a constant or of a member of an enumeration.

use super::ast::{Attribute, Member, find, has};
use everywire_model::Operation;
use everywire_model::contract::note;
use everywire_model::shape::Name;

/// The note of an operation whose last argument is as many as the caller gives.
pub(super) const VARARG: &str = "vararg";
/// Before the name of a parameter: it may be left out.
pub(super) const OPTIONAL: &str = "optional";
/// Before the name of a parameter: what it is if it is left out.
pub(super) const DEFAULT: &str = "defaultvalue";

/// Whether a caller by name may leave this parameter out by the contract: `[optional]`, or with a default.
#[must_use]
pub fn is_optional(operation: &Operation, parameter: &str) -> bool {
    note(&operation.notes, &key(OPTIONAL, parameter)).is_some() || default_of(operation, parameter).is_some()
}

/// What a parameter is that is left out (`[defaultvalue(...)]`), as the contract writes it: a number, a text in quotes, or a name.
#[must_use]
pub fn default_of<'o>(operation: &'o Operation, parameter: &str) -> Option<&'o str> {
    note(&operation.notes, &key(DEFAULT, parameter))
}

/// The notes of a method with these attributes and parameters.
pub(super) fn notes(attributes: &[Attribute], parameters: &[Member]) -> Vec<(Name, Name)> {
    let mut all = Vec::new();
    if has(attributes, VARARG) {
        all.push((Name::Borrowed(VARARG), Name::default()));
    }
    for parameter in parameters {
        let name = &parameter.declarator.ident.name;
        if has(&parameter.attributes, OPTIONAL) {
            all.push((Name::from(key(OPTIONAL, name)), Name::default()));
        }
        if let Some(default) = find(&parameter.attributes, DEFAULT).filter(|default| !default.text.is_empty())
        {
            all.push((Name::from(key(DEFAULT, name)), Name::from(default.text.clone())));
        }
    }
    all
}

/// The attributes that say so again, of a parameter; each with a comma before it.
pub(super) fn printed(operation: &Operation, parameter: &str) -> String {
    let mut text = String::new();
    if note(&operation.notes, &key(OPTIONAL, parameter)).is_some() {
        text.push_str(", optional");
    }
    if let Some(default) = default_of(operation, parameter) {
        text.push_str(&format!(", {DEFAULT}({default})"));
    }
    text
}

fn key(what: &str, parameter: &str) -> String {
    format!("{what}:{parameter}")
}
