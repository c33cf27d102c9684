//! An interface with nothing but its names, which readers fill.

use everywire_model::shape::Name;
use everywire_model::{Interface, InterfaceKind};
use std::borrow::Cow;

/// An interface of this name and identity that has nothing.
pub(crate) fn empty(name: Name, id: Name) -> Interface {
    Interface {
        name,
        id,
        identities: Cow::Borrowed(&[]),
        kind: InterfaceKind::Plain,
        bases: Cow::Borrowed(&[]),
        operations: Cow::Borrowed(&[]),
        inherited: 0,
        attributes: Cow::Borrowed(&[]),
        signals: Cow::Borrowed(&[]),
        types: None,
        notes: Cow::Borrowed(&[]),
        doc: Name::default(),
    }
}
