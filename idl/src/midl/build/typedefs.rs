//! Names that typedefs give to types: pointers stay open until their place is known, everything else is defined.
//!
//! A name of the tables is left as it is. What programs alone use (`wire_marshal`) is known by the name of what travels in its
//! place.

use super::super::ast::{self, Attribute, Declarator, Item, TypeKind, TypeSpec};
use super::super::known;
use super::{Builder, LEVELS, Pointer, Ty, Typed, places, pointer_kind, types};
use everywire_model::shape::{Field, Name};
use everywire_model::{Definition, Hold, Shape};
use std::rc::Rc;

impl Builder<'_> {
    /// Gives names to a type. A name of the tables is left as it is; a name that is defined again for the
    /// same type is no mistake, since two headers often define one.
    pub(super) fn typedef(&mut self, item: &Item, spec: &TypeSpec, declarators: &[Declarator]) {
        let plain = |d: &&Declarator| d.pointers == 0 && d.dimensions.is_empty();
        // A struct without a tag is called like the first plain name; where pointers alone have names, it has one of its own.
        let wanted = match (declarators.iter().find(plain), declarators.first()) {
            (Some(plain), _) => plain.ident.name.clone(),
            (None, Some(first)) if first.pointers > 0 => format!("{}_target", first.ident.name),
            (None, first) => first.map(|first| first.ident.name.clone()).unwrap_or_default(),
        };
        let ty = match self.on_wire(&item.attributes) {
            Some(ty) => Some(ty),
            None => self.spec(spec, &wanted, &item.attributes, None),
        };
        if let Some(why) = self.other_bytes(&item.attributes) {
            self.stays = None;
            self.written_otherwise(spec, declarators, &Rc::from(why));
            return;
        }
        // A name for something that does not travel is known all the same, so that its use is left out and
        // not reported.
        let Some(ty) = ty.or_else(|| self.stays.take().map(Ty::Stays)) else { return };
        for declarator in declarators {
            let name = &declarator.ident.name;
            if known::is_type(name) {
                continue;
            }
            // Of two definitions in the background the first counts.
            if self.behind && self.places.contains_key(name) {
                if let (Ty::Mention(key), true) = (&ty, plain(&declarator)) {
                    self.keep_first(key, name);
                }
                continue;
            }
            if let Some(why) = declarator.stays {
                if self.declare(name, declarator.ident.span) {
                    self.types.insert(name.clone(), Ty::Stays(Rc::from(why)));
                }
                continue;
            }
            if self.on_wire(&item.attributes).is_some() {
                if self.declare(name, declarator.ident.span) {
                    self.types.insert(name.clone(), ty.clone());
                }
                continue;
            }
            // Another name for a struct with the very fields of one that is known by it.
            if plain(&declarator)
                && self.places.get(name).is_some_and(|first| self.report.is_background(*first))
                && self.types.get(name).is_some_and(|known| has_fields_of(known, &ty))
            {
                continue;
            }
            // What the printer made of a sequence or a map is known by its name already.
            if self.made.contains(name)
                && plain(&declarator)
                && types::key(spec).is_some_and(|key| key.ends_with(name.as_str()))
            {
                continue;
            }
            // The same name for the same type, in two files: C takes that, too.
            let is_again = self.places.contains_key(name)
                && matches!(spec.kind, TypeKind::Base(_) | TypeKind::Name(_))
                && self.places.get(name).is_some_and(|first| !self.report.is_background(*first))
                && self.types.get(name).is_some_and(|known| is_same(known, &ty));
            if is_again && declarator.pointers == 0 && declarator.dimensions.is_empty() {
                continue;
            }
            let alias = self.alias(&ty, item, declarator);
            let Some(ty) = alias.or_else(|| self.stays.take().map(Ty::Stays)) else { continue };
            // The name of a struct that has one already, or the same name again.
            let same = match &ty {
                Ty::Mention(key) => self.records.get(key).is_some_and(|record| record.name() == name),
                Ty::Stays(_) => matches!(self.types.get(name), Some(Ty::Stays(_))),
                Ty::Value(Typed { shape: Shape::Alias(_), .. }) => false,
                Ty::Value(typed) => types::name_of(&typed.shape) == Some(name.as_str()),
                _ => false,
            };
            if !same && !self.declare(name, declarator.ident.span) {
                continue;
            }
            self.types.insert(name.clone(), ty);
        }
    }

    /// Gives names to what travels otherwise than NDR says: what uses them is left out. What is defined on the way, such as the
    /// members of an enumeration, stays.
    fn written_otherwise(&mut self, spec: &TypeSpec, declarators: &[Declarator], why: &Rc<str>) {
        if let Some(key) = types::key(spec).filter(|key| key.starts_with("enum "))
            && let Some(record) = self.records.get_mut(&key)
        {
            let name = record.name().to_owned();
            *record = types::Record::Broken { name, stays: Some(Rc::clone(why)), shape: None };
        }
        for declarator in declarators {
            let ident = &declarator.ident;
            if known::is_type(&ident.name) {
                continue;
            }
            // A struct or an enumeration without a tag has declared the name by now.
            if self.places.contains_key(&ident.name) || self.declare(&ident.name, ident.span) {
                self.types.insert(ident.name.clone(), Ty::Stays(Rc::clone(why)));
            }
        }
    }

    /// The type that travels in place of one that is for programs alone: `wire_marshal`, `transmit_as`.
    /// Programs have their own type, which they convert to this one.
    fn on_wire(&mut self, attributes: &[Attribute]) -> Option<Ty> {
        let attribute =
            ast::find(attributes, "wire_marshal").or_else(|| ast::find(attributes, "transmit_as"))?;
        self.spec(attribute.spec.as_ref()?, "", &[], None)
    }

    /// What a name of a typedef stands for: pointers stay open, values get an alias. `item` gives the
    /// attributes of the typedef, which count for all its names.
    fn alias(&mut self, ty: &Ty, item: &Item, declarator: &Declarator) -> Option<Ty> {
        let attributes = &item.attributes;
        let name = declarator.ident.name.as_str();
        let mut ty = ty.clone();
        let pointed = declarator.pointers > 0 || matches!(ty, Ty::Pointer(_));
        // The pointer is what the program holds; 20 bytes travel (C706, 14.2.16.6).
        if ast::has(attributes, "context_handle") && pointed {
            return self.named_value(&declarator.ident, Typed::leaf(known::context_handle()));
        }
        if declarator.dimensions.is_empty() && declarator.pointers > 0 {
            let kind = pointer_kind(attributes);
            for level in 0..declarator.pointers {
                let outermost = level + 1 == declarator.pointers;
                let levels = 1 + if let Ty::Pointer(pointer) = &ty { pointer.levels } else { 0 };
                if levels > LEVELS {
                    self.problem(declarator.ident.span, "this has too many pointers");
                    return None;
                }
                // The innermost pointer is the one to characters.
                let string = level == 0 && ast::has(attributes, "string");
                ty = Ty::Pointer(Rc::new(Pointer {
                    to: ty,
                    kind: kind.filter(|_| outermost),
                    string,
                    levels,
                }));
            }
            return Some(ty);
        }
        match &ty {
            Ty::Value(typed) if declarator.dimensions.is_empty() && !ast::has(attributes, "range") => {
                // A struct is known by the name of its first typedef.
                match types::name_of(&typed.shape) {
                    Some(own) if own == name => Some(ty),
                    _ => self.named_value(&declarator.ident, typed.clone()),
                }
            }
            Ty::Value(_) | Ty::Pointer(_)
                if !declarator.dimensions.is_empty() || matches!(ty, Ty::Value(_)) =>
            {
                let typed = self.declared(&ty, attributes, declarator, places::Role::Inner)?;
                self.named_value(&declarator.ident, typed)
            }
            _ => Some(ty),
        }
    }

    /// Makes an alias of a shape and defines it, unless the shape is not complete.
    fn named_value(&mut self, ident: &ast::Ident, typed: Typed) -> Option<Ty> {
        let depth = self.deeper(typed.depth, ident.span)?;
        let name = Name::from(ident.name.clone());
        let alias = everywire_model::shape::Alias { name, id: Name::default(), target: typed.shape };
        let shape = Shape::Alias(Hold::new(alias));
        if !typed.open {
            self.definitions.push(Definition::Type(shape.clone()));
        }
        Some(Ty::Value(Typed { shape, depth, open: typed.open }))
    }
}

/// Whether something else travels than the type that a typedef names.
pub(super) fn travels_otherwise(attributes: &[Attribute]) -> bool {
    ["wire_marshal", "transmit_as"].iter().any(|name| ast::has(attributes, name))
}

/// Whether two types are structs of different names with the same fields, as far as their names and kinds tell.
fn has_fields_of(one: &Ty, other: &Ty) -> bool {
    let (Ty::Value(one), Ty::Value(other)) = (one, other) else { return false };
    match (one.shape.resolved(), other.shape.resolved()) {
        (Shape::Struct(one), Shape::Struct(other)) => match (one.get(), other.get()) {
            (Some(one), Some(other)) => {
                let same = |one: &Field, other: &Field| {
                    let kind = |field: &Field| std::mem::discriminant(field.shape.resolved());
                    one.name == other.name && kind(one) == kind(other)
                };
                one.name != other.name
                    && one.fields.len() == other.fields.len()
                    && one.fields.iter().zip(other.fields.iter()).all(|(one, other)| same(one, other))
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether two types are one, as far as plain names of types go. Numbers are one by their kind, everything
/// with a name by the name.
fn is_same(one: &Ty, other: &Ty) -> bool {
    match (one, other) {
        (Ty::Value(one), Ty::Value(other)) => match (one.shape.resolved(), other.shape.resolved()) {
            (Shape::Struct(one), Shape::Struct(other)) => one.name == other.name,
            (Shape::Union(one), Shape::Union(other)) => one.name == other.name,
            (Shape::Enum(one), Shape::Enum(other)) => one.name == other.name,
            (one, other) => {
                one.width().is_some() && std::mem::discriminant(one) == std::mem::discriminant(other)
            }
        },
        (Ty::Pointer(one), Ty::Pointer(other)) => is_same(&one.to, &other.to),
        (Ty::Object(one), Ty::Object(other)) => one.name == other.name,
        (Ty::Mention(one), Ty::Mention(other)) => one == other,
        (Ty::Void, Ty::Void) | (Ty::Stays(_), Ty::Stays(_)) => true,
        _ => false,
    }
}
