//! Making the repository of the interfaces that are served.
//!
//! `build` walks all objects of the node once and gives back a complete `Repository`, which never changes
//! after. Order: the root, the primitive types, all interfaces with their bases and the modules around them,
//! then the members of interfaces with the types that they use, then constants. Each step finds what it
//! refers to in an earlier one; a type that contains itself is entered before its parts are made (`named`).
//!
//! Invariants: definition 0 is the repository itself. A definition's number is its place in the list and
//! never changes. `by_id` and `by_name` keep the first definition of an id or name; what comes later under
//! the same id is taken to be the same. Every definition with a name is among the contents of its scope;
//! types without a name are in none and are found by reference alone.
//!
//! The input is contracts of this process, so nothing here is hostile; `DEPTH` bounds recursion for contracts
//! that contain themselves through types without a name.

use super::shapes::{DEPTH, has_code, id_around, id_inside, last, raises, travels};
use super::{Definition, DefinitionDetail, Repository, Type};
use crate::contracts::corba::{DefinitionKind, PrimitiveKind};
use crate::contracts::{exception_id, id_of};
use crate::typecodes;
use everywire_model::describe::{Interface, Struct, TextKind};
use everywire_model::{Constant, Hold, Objects, Shape, long_double};
use std::collections::HashSet;
use std::mem::discriminant;

/// The primitive types: number, id in this repository, and shape. No repository id begins like these ids, so
/// they cannot collide with those of contracts.
const PRIMITIVES: &[(PrimitiveKind, &str, Shape)] = &[
    (PrimitiveKind::PkVoid, "pk_void", Shape::Void),
    (PrimitiveKind::PkShort, "pk_short", Shape::I16),
    (PrimitiveKind::PkLong, "pk_long", Shape::I32),
    (PrimitiveKind::PkUshort, "pk_ushort", Shape::U16),
    (PrimitiveKind::PkUlong, "pk_ulong", Shape::U32),
    (PrimitiveKind::PkFloat, "pk_float", Shape::F32),
    (PrimitiveKind::PkDouble, "pk_double", Shape::F64),
    (PrimitiveKind::PkBoolean, "pk_boolean", Shape::Bool),
    (PrimitiveKind::PkChar, "pk_char", Shape::Char),
    (PrimitiveKind::PkOctet, "pk_octet", Shape::U8),
    (PrimitiveKind::PkAny, "pk_any", Shape::Variant),
    (PrimitiveKind::PkTypeCode, "pk_TypeCode", Shape::TypeCode),
    (PrimitiveKind::PkString, "pk_string", everywire_model::describe::TEXT),
    (PrimitiveKind::PkObjref, "pk_objref", everywire_model::describe::ANY_OBJECT),
    (PrimitiveKind::PkLonglong, "pk_longlong", Shape::I64),
    (PrimitiveKind::PkUlonglong, "pk_ulonglong", Shape::U64),
    (PrimitiveKind::PkLongdouble, "pk_longdouble", long_double::SHAPE),
    (PrimitiveKind::PkWchar, "pk_wchar", Shape::WideChar),
    (PrimitiveKind::PkWstring, "pk_wstring", everywire_model::describe::WIDE_TEXT),
];

/// The id by which a primitive type is found here; nothing for one that there is not. (The empty id is that of
/// the repository itself.)
pub(super) fn primitive_id(kind: PrimitiveKind) -> Option<&'static str> {
    PRIMITIVES.iter().find(|(known, ..)| *known == kind).map(|(_, id, _)| *id)
}

/// What values of a primitive type look like; nothing for kinds that this side does not have, such as
/// `ValueBase`.
pub(super) fn primitive_shape(kind: PrimitiveKind) -> Option<&'static Shape> {
    PRIMITIVES.iter().find(|(known, ..)| *known == kind).map(|(.., shape)| shape)
}

/// The id of the interface that stands for an object with several, which no contract has: it is derived from
/// all of them. `LOCAL:` is the format for ids that mean nothing elsewhere. A client that reads the contract
/// (`asking`) knows it by that.
pub(super) fn id_of_object(key: &[u8]) -> String {
    format!("LOCAL:object/{}", everywire_model::reference::escape(key))
}

/// The repository of all that is served.
pub(super) fn build(objects: &dyn Objects) -> Repository {
    let mut builder = Builder::begun();
    // Interfaces come first, so that types are defined inside those whose names say so.
    let (mut interfaces, mut constants, mut listeners) = (Vec::new(), Vec::new(), Vec::new());
    for key in objects.keys() {
        let servants = objects.servants(&key);
        constants.extend(servants.iter().flat_map(|servant| servant.constants()));
        listeners.extend(servants.iter().flat_map(|servant| servant.listeners()));
        let all = servants.iter().map(|servant| servant.interface());
        let fresh = all.filter(|interface| !builder.repository.has(&id_of(&interface.id, &interface.name)));
        let fresh: Vec<Hold<Interface>> = fresh.map(|interface| Hold::new(interface.clone())).collect();
        fresh.iter().for_each(|interface| builder.interface(interface, &mut interfaces, DEPTH));
        if servants.len() > 1 {
            builder.joined(&key, servants.iter().map(|servant| servant.interface()), &mut interfaces);
        }
    }
    // Nobody here serves them: without them a client could not make an object that is called back.
    listeners.iter().for_each(|listener| builder.interface(listener, &mut interfaces, DEPTH));
    interfaces.into_iter().for_each(|number| builder.members(number));
    // Last: they are told in scopes that others have made.
    constants.into_iter().for_each(|constant| builder.constant(constant));
    builder.repository
}

/// The repository that is being made.
#[derive(Default)]
struct Builder {
    repository: Repository,
    /// How many types without a name the definition that is being made has used so far.
    unnamed: usize,
}

impl Builder {
    /// The repository itself, and the primitive types.
    fn begun() -> Self {
        let mut builder = Self::default();
        let root = builder.add(DefinitionKind::DkRepository, String::new(), "", 0, DefinitionDetail::Scope);
        builder.repository.by_name.insert(String::new(), root);
        for (kind, id, _) in PRIMITIVES {
            builder.add(
                DefinitionKind::DkPrimitive,
                (*id).to_owned(),
                "",
                root,
                DefinitionDetail::Primitive(*kind),
            );
        }
        builder
    }

    /// Adds a definition; its number. `within` is the number of its scope. One without a name (`""`) is not
    /// listed in its scope.
    fn add(
        &mut self,
        kind: DefinitionKind,
        id: String,
        name: &str,
        within: usize,
        what: DefinitionDetail,
    ) -> usize {
        let number = self.repository.definitions.len();
        let around = self.repository.definitions.get_mut(within);
        let absolute_name = match around {
            Some(around) if !name.is_empty() => {
                around.contents.push(number);
                format!("{}::{name}", around.absolute_name)
            }
            _ => String::new(),
        };
        self.repository.by_id.entry(id.clone()).or_insert(number);
        if !absolute_name.is_empty() {
            self.repository.by_name.entry(absolute_name.clone()).or_insert(number);
        }
        let (name, contents) = (name.to_owned(), Vec::new());
        let definition = Definition { kind, id, name, absolute_name, within, contents, what };
        self.repository.definitions.push(definition);
        number
    }

    /// What contains something with this scoped name and id; modules are made of names. Makes the modules
    /// that do not exist yet.
    fn scope(&mut self, name: &str, id: &str) -> usize {
        let Some((around, _)) = name.rsplit_once("::") else { return 0 };
        if let Some(number) = self.repository.by_name.get(&format!("::{around}")) {
            return *number;
        }
        let around_id = id_around(id, around);
        let within = self.scope(around, &around_id);
        // Something else may have that id: then this scope is known by its name only.
        let around_id =
            if self.repository.has(&around_id) { format!("{around_id}#module") } else { around_id };
        self.add(DefinitionKind::DkModule, around_id, last(around), within, DefinitionDetail::Scope)
    }

    /// An interface and its bases, whose operations come later. `made` gets the numbers of those that are
    /// new, bases before what derives from them.
    fn interface(&mut self, interface: &Hold<Interface>, made: &mut Vec<usize>, depth: usize) {
        let (Some(depth), id) = (depth.checked_sub(1), id_of(&interface.id, &interface.name)) else { return };
        if self.repository.has(&id) {
            return;
        }
        interface.bases.iter().for_each(|base| self.interface(base, made, depth));
        let within = self.scope(&interface.name, &id);
        let what = DefinitionDetail::Interface(interface.clone());
        made.push(self.add(DefinitionKind::DkInterface, id, last(&interface.name), within, what));
    }

    /// The interface of an object that has several: it derives from all of them and declares nothing itself.
    /// Of operations with the same name the first is kept.
    fn joined<'i>(&mut self, key: &[u8], all: impl Iterator<Item = &'i Interface>, made: &mut Vec<usize>) {
        let id = id_of_object(key);
        let bases: Vec<Hold<Interface>> = all.map(|interface| Hold::new(interface.clone())).collect();
        let mut operations = Vec::new();
        for operation in bases.iter().flat_map(|base| base.operations.iter()) {
            if !operations.iter().any(|held: &everywire_model::Operation| held.name == operation.name) {
                operations.push(operation.clone());
            }
        }
        let inherited = operations.len();
        let interface = Interface {
            name: "Object".into(),
            id: id.clone().into(),
            bases: bases.into(),
            operations: operations.into(),
            inherited,
            ..Interface::default()
        };
        let what = DefinitionDetail::Interface(Hold::new(interface));
        // In no scope: nobody looks for it by a name.
        made.push(self.add(DefinitionKind::DkInterface, id, "", 0, what));
    }

    /// The operations and attributes that an interface declares itself, the types that they use, and the
    /// exceptions that they raise. Operations with values that do not travel on this wire are left out.
    fn members(&mut self, number: usize) {
        let Some(Definition { what: DefinitionDetail::Interface(interface), id, .. }) =
            self.repository.get(number)
        else {
            return;
        };
        let (interface, around) = (interface.clone(), id.clone());
        let own = interface.operations.iter().enumerate().skip(interface.inherited);
        for (index, operation) in own.filter(|(_, operation)| travels(operation)) {
            for raised in raises(operation) {
                self.exception(raised);
            }
            match attribute(&interface, index) {
                Some(Some(at)) => {
                    let Some(held) = interface.attributes.get(at) else { continue };
                    let id = id_inside(&around, &held.name);
                    self.unnamed = 0;
                    let of = self.type_of(&held.shape, &id, DEPTH);
                    let what = DefinitionDetail::Attribute { interface: number, index: at, of };
                    self.add(DefinitionKind::DkAttribute, id, &held.name, number, what);
                }
                // It writes an attribute.
                Some(None) => {}
                None => {
                    let id = id_inside(&around, &operation.name);
                    self.unnamed = 0;
                    let carried = operation.parameters.iter().map(|parameter| &parameter.field.shape);
                    let types = std::iter::once(&operation.returns)
                        .chain(carried)
                        .map(|shape| self.type_of(shape, &id, DEPTH))
                        .collect();
                    let what = DefinitionDetail::Operation { interface: number, index, types };
                    self.add(DefinitionKind::DkOperation, id, &operation.name, number, what);
                }
            }
        }
    }

    /// A constant, if something that is served stands in its scope or is it. A scope that nobody else has made may be a module, or an
    /// interface that is not served.
    fn constant(&mut self, held: Constant) {
        let scope = held.name.rsplit_once("::").map(|(scope, _)| format!("::{scope}")).unwrap_or_default();
        let Some(within) = self.repository.by_name.get(&scope).copied() else { return };
        if self.repository.by_name.contains_key(&format!("::{}", held.name)) || !has_code(&held.shape) {
            return;
        }
        let around = self.repository.get(within).map(|around| around.id.as_str()).unwrap_or_default();
        let id = match around {
            "" => id_of("", &held.name),
            around => id_inside(around, last(&held.name)),
        };
        self.unnamed = 0;
        let (of, name) = (self.type_of(&held.shape, &id, DEPTH), held.name.clone());
        self.add(
            DefinitionKind::DkConstant,
            id,
            last(&name),
            within,
            DefinitionDetail::Constant { held, of },
        );
    }

    /// An exception, once.
    fn exception(&mut self, raised: &Hold<Struct>) {
        let id = exception_id(raised);
        if self.repository.has(&id) {
            return;
        }
        let shape = typecodes::of_exception(raised.clone());
        self.named(DefinitionKind::DkException, id, &raised.name, shape, |builder, id| {
            raised.fields.iter().map(|field| builder.type_of(&field.shape, id, DEPTH)).collect()
        });
    }

    /// A type with a name. It is known before its parts are: they may contain it. `parts` makes the types of
    /// its parts in the order that `DefinitionDetail::Type` says.
    fn named(
        &mut self,
        kind: DefinitionKind,
        id: String,
        name: &str,
        shape: Shape,
        parts: impl FnOnce(&mut Self, &str) -> Vec<Type>,
    ) -> Type {
        let within = self.scope(name, &id);
        let what = DefinitionDetail::Type { shape: shape.clone(), parts: Vec::new() };
        let number = self.add(kind, id.clone(), last(name), within, what);
        let before = std::mem::take(&mut self.unnamed);
        let parts = parts(self, &id);
        self.unnamed = before;
        if let Some(made) = self.repository.definitions.get_mut(number) {
            made.what = DefinitionDetail::Type { shape, parts };
        }
        Type::At(number)
    }

    /// A type without a name, which the definition with this id uses. Its id is the user's id, `#` and a
    /// number: the same at the next snapshot, as long as the contract is the same, so that references to it
    /// live on.
    fn unnamed(&mut self, kind: DefinitionKind, user: &str, shape: &Shape, parts: Vec<Type>) -> Type {
        let id = format!("{user}#{}", self.unnamed);
        self.unnamed += 1;
        Type::At(self.add(kind, id, "", 0, DefinitionDetail::Type { shape: shape.clone(), parts }))
    }

    /// The definition of a type that the definition with the id `user` uses, made if it is not there. Too
    /// deep a nesting ends in `any`.
    fn type_of(&mut self, shape: &Shape, user: &str, depth: usize) -> Type {
        let Some(depth) = depth.checked_sub(1) else { return self.primitive(PrimitiveKind::PkAny) };
        // What was defined already, under its id.
        let known = |builder: &Self, id: &str, name: &str| {
            let id = id_of(id, name);
            let at = builder.repository.by_id.get(&id).map(|number| Type::At(*number));
            (id, at)
        };
        macro_rules! defined {
            ($held:expr, $kind:ident, $parts:expr) => {{
                let held = $held;
                if held.id.is_empty() && held.name.is_empty() {
                    // As the tuples of other languages.
                    let parts = ($parts)(self, user);
                    return self.unnamed(DefinitionKind::$kind, user, shape, parts);
                }
                match known(self, &held.id, &held.name) {
                    (_, Some(at)) => at,
                    (id, None) => self.named(DefinitionKind::$kind, id, &held.name, shape.clone(), $parts),
                }
            }};
        }
        match shape {
            Shape::I8 => self.primitive(PrimitiveKind::PkOctet),
            Shape::Text(text) => {
                let wide = matches!(text.kind, TextKind::Wide | TextKind::Counted);
                match (wide, text.bound) {
                    (false, None) => self.primitive(PrimitiveKind::PkString),
                    (true, None) => self.primitive(PrimitiveKind::PkWstring),
                    (false, _) => self.unnamed(DefinitionKind::DkString, user, shape, Vec::new()),
                    (true, _) => self.unnamed(DefinitionKind::DkWstring, user, shape, Vec::new()),
                }
            }
            Shape::Struct(held) => defined!(held, DkStruct, |builder: &mut Self, id: &str| {
                held.fields.iter().map(|field| builder.type_of(&field.shape, id, depth)).collect()
            }),
            Shape::Union(held) => defined!(held, DkUnion, |builder: &mut Self, id: &str| {
                let arms = held.arms.iter().map(|arm| &arm.field.shape);
                let all = std::iter::once(&held.discriminator).chain(arms);
                all.map(|shape| builder.type_of(shape, id, depth)).collect()
            }),
            Shape::Enum(held) => defined!(held, DkEnum, |_: &mut Self, _: &str| Vec::new()),
            Shape::Alias(_) if typecodes::is_fixed(shape) => {
                self.unnamed(DefinitionKind::DkFixed, user, shape, Vec::new())
            }
            Shape::Alias(held) if held.name.is_empty() => self.type_of(&held.target, user, depth),
            Shape::Alias(held) => defined!(held, DkAlias, |builder: &mut Self, id: &str| {
                vec![builder.type_of(&held.target, id, depth)]
            }),
            Shape::Sequence(held) => {
                let parts = vec![self.type_of(&held.element, user, depth)];
                self.unnamed(DefinitionKind::DkSequence, user, shape, parts)
            }
            Shape::Array(held) if long_double::is_array(held) => self.primitive(PrimitiveKind::PkLongdouble),
            Shape::Array(held) => {
                let parts = vec![self.type_of(&held.element, user, depth)];
                self.unnamed(DefinitionKind::DkArray, user, shape, parts)
            }
            Shape::Pointer(held) => self.type_of(&held.target, user, depth),
            Shape::Reference(held) if held.id.is_empty() && held.name.is_empty() => {
                self.primitive(PrimitiveKind::PkObjref)
            }
            Shape::Reference(held) => Type::Interface(id_of(&held.id, &held.name)),
            // Value types are told by their type codes alone; what has none does not come here.
            Shape::Map(_) | Shape::Optional(_) | Shape::Handle => self.primitive(PrimitiveKind::PkAny),
            plain => {
                let same = |(.., known): &&(_, _, Shape)| discriminant(known) == discriminant(plain);
                let kind = PRIMITIVES.iter().find(same).map_or(PrimitiveKind::PkAny, |(kind, ..)| *kind);
                self.primitive(kind)
            }
        }
    }

    /// The definition of a primitive type.
    fn primitive(&self, kind: PrimitiveKind) -> Type {
        let id = primitive_id(kind);
        Type::At(id.and_then(|id| self.repository.by_id.get(id)).copied().unwrap_or_default())
    }
}

/// What the operation with this number is to an attribute: `Some(Some(n))` if it reads attribute `n`,
/// `Some(None)` if it writes one, `None` if it is an operation like others. It counts only if getter and
/// setter are called `_get_x` and `_set_x`, as clients of this wire call them; contracts of other languages
/// may call them otherwise, and are then described by operations.
pub(super) fn attribute(interface: &Interface, index: usize) -> Option<Option<usize>> {
    let at = interface
        .attributes
        .iter()
        .position(|attribute| attribute.getter == index || attribute.setter == Some(index))?;
    let attribute = interface.attributes.get(at)?;
    let named = |number: usize, prefix: &str| {
        let name = interface.operations.get(number).map_or("", |operation| operation.name.as_ref());
        name.strip_prefix(prefix) == Some(attribute.name.as_ref())
    };
    let usual =
        named(attribute.getter, "_get_") && attribute.setter.is_none_or(|setter| named(setter, "_set_"));
    usual.then(|| (attribute.getter == index).then_some(at))
}

/// The same items, each at its first place only.
pub(super) fn once<T>(all: impl Iterator<Item = T>) -> impl Iterator<Item = T>
where
    T: Copy + Eq + std::hash::Hash,
{
    let mut seen = HashSet::new();
    all.filter(move |one| seen.insert(*one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_primitive_that_is_not_here_is_not_the_repository() {
        let repository = Builder::begun().repository;
        assert!(repository.primitive(PrimitiveKind::PkNull).is_none());
        assert!(repository.primitive(PrimitiveKind::PkValueBase).is_none());
        assert_eq!(repository.primitive(PrimitiveKind::PkLong).map(|found| &*found.id), Some("pk_long"));
    }
}
