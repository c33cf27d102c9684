//! What stands further down: files of Samba import one another in circles, and its compiler asks for a name when all are read.
//!
//! Each definition is begun once, where its turn comes or where its name is needed first.

use super::super::ast::{Item, ItemKind, TypeKind, TypeSpec};
use super::Builder;
use everywire_model::shape::PointerKind;

/// The most definitions that are begun inside one another.
const INSIDE: usize = 16;

impl<'a> Builder<'a> {
    /// Notes the names that an item defines; the first one of a name counts.
    pub(super) fn note_for_later(&mut self, item: &'a Item) {
        let mut note = |name: &'a str| {
            self.later.entry(name).or_insert(item);
        };
        let spec = match &item.kind {
            ItemKind::Typedef(spec, declarators) => {
                declarators.iter().for_each(|declarator| note(&declarator.ident.name));
                spec
            }
            ItemKind::Type(spec) => spec,
            ItemKind::Constant(_, declarator, _) => return note(&declarator.ident.name),
            _ => return,
        };
        names_in(spec, &mut note);
    }

    /// Whether the definition of an item begins now, and did not before.
    pub(super) fn begins(&mut self, item: &Item) -> bool {
        match &item.kind {
            ItemKind::Typedef(..) | ItemKind::Type(_) | ItemKind::Constant(..) => {
                self.begun.insert(std::ptr::from_ref(item).addr())
            }
            _ => true,
        }
    }

    /// Defines what has a name that nothing before has; whether there is such a thing.
    pub(super) fn define_later(&mut self, name: &str) -> bool {
        let Some(item) = self.later.get(name).copied() else { return false };
        if self.ahead >= INSIDE || self.begun.contains(&std::ptr::from_ref(item).addr()) {
            return false;
        }
        self.ahead += 1;
        let around = std::mem::replace(&mut self.pointer_default, PointerKind::Unique);
        self.at_its_place(item, |builder| builder.item(item));
        self.pointer_default = around;
        self.ahead -= 1;
        true
    }
}

/// The tag of a type, and the members of an enumeration or of a bitmap.
fn names_in<'a>(spec: &'a TypeSpec, note: &mut impl FnMut(&'a str)) {
    let (tag, members) = match &spec.kind {
        TypeKind::Enum(of) | TypeKind::Bitmap(of) => (&of.tag, of.members.as_deref()),
        TypeKind::Struct(of) if of.members.is_some() => (&of.tag, None),
        TypeKind::Union(of) if of.arms.is_some() => (&of.tag, None),
        _ => return,
    };
    tag.iter().for_each(|tag| note(&tag.name));
    members.into_iter().flatten().for_each(|(member, _)| note(&member.name));
}
