//! What definitions answer when they are called (CORBA 3.3 part 1, chapter 14).
//!
//! An operation means the same wherever it is inherited, so all kinds of definitions are answered in one
//! function, by the operation's name. `DefinitionRef` names a definition in a snapshot of the repository; nothing
//! changes here, and every answer is made of that one snapshot, so it is consistent in itself.
//!
//! What a kind of definition does not have is answered with BAD_OPERATION. The snapshot comes from contracts
//! of this process, so it is trusted; arguments of requests are not, but they are looked up only, and a count
//! in them (`most`) only shortens what is told.

pub(super) use super::describing::DefinitionRef;

use super::shapes::raises;
use super::{Definition, DefinitionDetail, Type};
use crate::contracts::corba::{DefinitionKind, PrimitiveKind, contained, container};
use crate::contracts::{exception_id, id_of};
use crate::typecodes;
use crate::wire_state::reply;
use everywire_model::object::no_operation;
use everywire_model::{Failure, Interface, Reference, Request, Shape, TypeCode, Variant};

/// Answers a request to the definition. Operations that write or create are not in the list: the repository
/// can only be read.
///
/// # Errors
/// There is no such operation; arguments do not decode.
pub(super) fn answer(asked: &DefinitionRef<'_>, request: &mut Request) -> Result<(), Failure> {
    let definition = asked.definition();
    let interface = super::key::definition(definition.kind).interface;
    let operation = interface.operations.get(request.index()).map_or("", |operation| &operation.name);
    let parts: &[Type] = match &definition.what {
        DefinitionDetail::Type { parts, .. } => parts,
        DefinitionDetail::Operation { types, .. } => types,
        _ => &[],
    };
    let shape = asked.shape();
    match (operation, &shape, &definition.what) {
        // IRObject, IDLType.
        ("_get_def_kind", ..) => reply(request, (definition.kind,)),
        ("_get_type", ..) => reply(request, (TypeCode::new(shape.clone()),)),
        // Contained.
        ("_get_id", ..) => reply(request, (definition.id.as_str(),)),
        ("_get_name", ..) => reply(request, (definition.name.as_str(),)),
        ("_get_version", ..) => reply(request, (super::shapes::version(&definition.id),)),
        ("_get_defined_in", ..) => reply(request, (asked.reference_at(definition.within),)),
        ("_get_absolute_name", ..) => reply(request, (definition.absolute_name.as_str(),)),
        ("_get_containing_repository", ..) => reply(request, (asked.reference_at(0),)),
        ("describe", ..) => {
            reply(request, (contained::Description { kind: definition.kind, value: asked.described()? },))
        }
        // Container.
        ("lookup", ..) => {
            let (name,) = request.arguments::<(String,)>()?;
            let found = asked.lookup(&name).and_then(|number| asked.reference_at(number));
            reply(request, (found,))
        }
        ("contents", ..) => {
            let (kind, own) = request.arguments::<(DefinitionKind, bool)>()?;
            reply(request, (asked.references(asked.contents(kind, own)),))
        }
        ("lookup_name", ..) => {
            let (name, levels, kind, own) = request.arguments::<(String, i32, DefinitionKind, bool)>()?;
            reply(request, (asked.references(asked.named(&name, levels, kind, own)),))
        }
        ("describe_contents", ..) => {
            let (kind, own, most) = request.arguments::<(DefinitionKind, bool, i32)>()?;
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let found = asked.contents(kind, own).into_iter().take(most).map(|number| {
                let asked = asked.at(number);
                Ok(container::Description {
                    contained_object: asked.reference_at(number),
                    kind: asked.definition().kind,
                    value: asked.described()?,
                })
            });
            let found = found.collect::<Result<Vec<_>, Failure>>()?;
            reply(request, (found,))
        }
        // Repository.
        ("lookup_id", ..) => {
            let (id,) = request.arguments::<(String,)>()?;
            let found = asked.repository.by_id.get(&id).and_then(|number| asked.repository.get(*number));
            // Types without a name are in no container.
            let found = found.filter(|found| !found.name.is_empty());
            reply(request, (found.map(|found| asked.reference(found)),))
        }
        ("get_canonical_typecode", ..) => {
            let (code,) = request.arguments::<(TypeCode,)>()?;
            reply(request, (code,))
        }
        ("get_primitive", ..) => {
            let (kind,) = request.arguments::<(PrimitiveKind,)>()?;
            let found = asked
                .repository
                .primitive(kind)
                .ok_or_else(|| Failure::bad_argument("there is no such primitive type here"))?;
            reply(request, (Some(asked.reference(found)),))
        }
        // The types.
        ("_get_members", Shape::Union(_), _) => reply(request, (asked.union_members(),)),
        ("_get_members", Shape::Enum(held), _) => {
            let names: Vec<&str> = held.members.iter().map(|(name, _)| name.as_ref()).collect();
            reply(request, (names,))
        }
        ("_get_members", ..) => reply(request, (asked.struct_members(),)),
        ("_get_discriminator_type", Shape::Union(held), _) => {
            reply(request, (TypeCode::new(held.discriminator.clone()),))
        }
        ("_get_discriminator_type_def" | "_get_original_type_def" | "_get_element_type_def", ..) => {
            reply(request, (asked.type_def(parts.first()),))
        }
        ("_get_element_type", ..) => {
            reply(request, (TypeCode::new(shape.element().cloned().unwrap_or(Shape::Void)),))
        }
        ("_get_bound", ..) => reply(request, (bound(&shape),)),
        ("_get_length", Shape::Array(held), _) => reply(request, (held.len,)),
        ("_get_digits", ..) => {
            reply(request, (typecodes::digits_and_scale(&shape).map_or(0, |(digits, _)| digits),))
        }
        ("_get_scale", ..) => {
            let scale = typecodes::digits_and_scale(&shape).map_or(0, |(_, scale)| scale.cast_signed());
            reply(request, (scale,))
        }
        ("_get_kind", _, DefinitionDetail::Primitive(kind)) => reply(request, (*kind,)),
        // Attributes, constants and operations.
        (
            "_get_type_def",
            _,
            DefinitionDetail::Attribute { of, .. } | DefinitionDetail::Constant { of, .. },
        ) => reply(request, (asked.type_def(Some(of)),)),
        ("_get_value", _, DefinitionDetail::Constant { held, .. }) => {
            reply(request, (Variant::new(held.shape.clone(), held.value.clone()),))
        }
        ("_get_result", ..) => reply(request, (TypeCode::new(shape.clone()),)),
        ("_get_result_def", ..) => reply(request, (asked.type_def(parts.first()),)),
        ("_get_params", ..) => {
            reply(request, (asked.operation().map(|told| told.parameters).unwrap_or_default(),))
        }
        ("_get_contexts", ..) => {
            reply(request, (asked.operation().map(|told| told.contexts).unwrap_or_default(),))
        }
        ("_get_exceptions", ..) => reply(request, (asked.exceptions(),)),
        ("_get_mode", ..) => match (asked.operation(), asked.attribute()) {
            (Some(told), _) => reply(request, (told.mode,)),
            (None, Some(told)) => reply(request, (told.mode,)),
            (None, None) => Err(no_operation(interface)),
        },
        ("_get_get_exceptions", ..) => {
            reply(request, (asked.ext_attribute().map(|told| told.get_exceptions).unwrap_or_default(),))
        }
        ("_get_set_exceptions", ..) => {
            reply(request, (asked.ext_attribute().map(|told| told.put_exceptions).unwrap_or_default(),))
        }
        ("describe_attribute", ..) => {
            reply(request, (asked.ext_attribute().ok_or_else(|| no_operation(interface))?,))
        }
        // Interfaces.
        ("_get_base_interfaces", ..) => {
            let bases = asked.interface().map(|interface| interface.bases.iter()).into_iter().flatten();
            let known = bases.map(|base| asked.repository.by_id.get(&id_of(&base.id, &base.name)));
            let bases: Vec<_> = known.map(|number| asked.reference_at(*number?)).collect();
            reply(request, (bases,))
        }
        ("is_a", ..) => {
            let (id,) = request.arguments::<(String,)>()?;
            let is = asked.interface().is_some_and(|interface| is_a(interface, &id));
            reply(request, (is || id == crate::contracts::OBJECT.id,))
        }
        ("describe_interface", ..) => reply(request, (asked.full().ok_or_else(|| no_operation(interface))?,)),
        ("describe_ext_interface", ..) => {
            reply(request, (asked.ext_full().ok_or_else(|| no_operation(interface))?,))
        }
        _ => Err(no_operation(interface)),
    }
}

/// Whether an interface has this id, or a base of it has. Interfaces cannot be circular, since their bases
/// are complete before them.
fn is_a(interface: &Interface, id: &str) -> bool {
    id_of(&interface.id, &interface.name) == id || interface.bases.iter().any(|base| is_a(base, id))
}

/// The bound of a type; 0 for none.
fn bound(shape: &Shape) -> u32 {
    match shape {
        Shape::Sequence(held) => held.bound.unwrap_or(0),
        Shape::Text(text) => text.bound.unwrap_or(0),
        _ => 0,
    }
}

/// Whether a definition is of a kind that is looked for: all, the kind itself, or one of the types with a name.
fn is_of(definition: &Definition, kind: DefinitionKind) -> bool {
    let typedefs =
        [DefinitionKind::DkStruct, DefinitionKind::DkUnion, DefinitionKind::DkEnum, DefinitionKind::DkAlias];
    kind == DefinitionKind::DkAll
        || kind == definition.kind
        || (kind == DefinitionKind::DkTypedef && typedefs.contains(&definition.kind))
}

impl DefinitionRef<'_> {
    /// The numbers of what it contains, in the order of definition. Unless only its own (`own`) is wanted,
    /// what an interface inherits comes behind, each base once.
    fn all_contents(&self, own: bool) -> Vec<usize> {
        let (mut all, mut around) = (Vec::new(), vec![self.number]);
        let mut next = 0;
        while let Some(definition) = around.get(next).and_then(|number| self.repository.get(*number)) {
            next += 1;
            all.extend(&definition.contents);
            let DefinitionDetail::Interface(interface) = &definition.what else { continue };
            let bases = interface.bases.iter().filter(|_| !own);
            for base in bases.filter_map(|base| self.repository.by_id.get(&id_of(&base.id, &base.name))) {
                if !around.contains(base) {
                    around.push(*base);
                }
            }
        }
        all
    }

    fn references(&self, numbers: Vec<usize>) -> Vec<Option<Reference>> {
        numbers.into_iter().map(|number| self.reference_at(number)).collect()
    }

    /// What it contains of a kind.
    fn contents(&self, kind: DefinitionKind, own: bool) -> Vec<usize> {
        let mut all = self.all_contents(own);
        all.retain(|number| self.repository.get(*number).is_some_and(|held| is_of(held, kind)));
        all
    }

    /// What has this name, in it or in what it contains down to that many levels. A negative number of levels
    /// means all: `-1` becomes the greatest number, and the search ends where nothing contains anything more.
    fn named(&self, name: &str, levels: i32, kind: DefinitionKind, own: bool) -> Vec<usize> {
        let (mut found, mut here) = (Vec::new(), vec![self.number]);
        let mut levels = u32::try_from(levels).unwrap_or(u32::MAX);
        while !here.is_empty() && levels != 0 {
            let inside = here.iter().flat_map(|number| self.at(*number).all_contents(own));
            let inside: Vec<usize> = super::build::once(inside).collect();
            let fits = |number: &&usize| {
                self.repository.get(**number).is_some_and(|held| held.name == name && is_of(held, kind))
            };
            found.extend(inside.iter().filter(fits));
            levels -= 1;
            here = inside;
        }
        super::build::once(found.into_iter()).collect()
    }

    /// What a scoped name means here: from the repository on if it begins with `::`, else here or in what is
    /// around. The repository itself, number 0, is never found.
    fn lookup(&self, name: &str) -> Option<usize> {
        if name.starts_with("::") {
            return self.repository.by_name.get(name).copied().filter(|number| *number != 0);
        }
        let mut around = self.number;
        loop {
            let within = self.repository.get(around)?;
            let whole = format!("{}::{name}", within.absolute_name);
            if let Some(number) = self.repository.by_name.get(&whole) {
                return Some(*number);
            }
            if around == 0 {
                return None;
            }
            around = within.within;
        }
    }

    /// References to the exceptions of the operation that it is; empty if it is none.
    fn exceptions(&self) -> Vec<Option<Reference>> {
        let raised = self.held_operation().into_iter().flat_map(|(operation, _)| raises(operation));
        raised
            .filter_map(|raised| self.repository.by_id.get(&exception_id(raised)))
            .map(|number| self.reference_at(*number))
            .collect()
    }
}
