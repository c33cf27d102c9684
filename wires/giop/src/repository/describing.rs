//! What definitions say of themselves, in the structs of the specification (CORBA 3.3 part 1, chapter 14).
//!
//! `DefinitionRef` is a definition of a snapshot, by its number, with the node that serves it: the node makes
//! references, the snapshot gives what they lead to. All functions only read. Where a definition is not of
//! the kind that is asked for, they give an empty description, an empty list or nothing; `answers` asks the
//! right ones.
//!
//! Two forms exist of attributes and interfaces: the plain ones of CORBA 2, and the extended ones with the
//! exceptions of attributes (CORBA 3). Both are told, since clients know one or the other.

use super::build::attribute;
use super::key;
use super::shapes::{id_inside, last, mode, parameter_name, raises, travels, version};
use super::{Definition, DefinitionDetail, Repository, Type};
use crate::contracts::corba::interface_attr_extension::ExtFullInterfaceDescription;
use crate::contracts::corba::interface_def::FullInterfaceDescription;
use crate::contracts::corba::{
    AttributeDescription, AttributeMode, ConstantDescription, DefinitionKind, ExceptionDescription,
    ExtAttributeDescription, InterfaceDescription, ModuleDescription, OperationDescription, OperationMode,
    ParameterDescription, StructMember, TypeDescription, UnionMember, describe,
};
use crate::contracts::{exception_id, id_of};
use crate::requests::CONTEXT;
use crate::typecodes;
use crate::wire_state::Node;
use everywire_model::describe::{Attribute, Hold, Interface, Operation, Referent, Struct, structure};
use everywire_model::native::NATIVE;
use everywire_model::{Codec, Failure, Initiator, Kind, Marshal, Reference, Shape, TypeCode, Value, Variant};

/// A definition of a repository, and where it is served. It is `Copy`; `at` makes one for another definition
/// of the same snapshot.
#[derive(Clone, Copy)]
pub(super) struct DefinitionRef<'a> {
    /// Who makes references.
    pub(super) node: &'a Node,
    /// The snapshot.
    pub(super) repository: &'a Repository,
    /// The definition's number in it.
    pub(super) number: usize,
}

impl<'a> DefinitionRef<'a> {
    /// The definition.
    pub(super) fn definition(&self) -> &'a Definition {
        // The number is one of a look-up, and definitions never go.
        self.repository.get(self.number).unwrap_or_else(|| unreachable!("a definition is gone"))
    }

    /// The same for another definition.
    pub(super) fn at(&self, number: usize) -> Self {
        Self { number, ..*self }
    }

    /// A reference to a definition. Its key holds kind and id, so it is valid in later snapshots too.
    pub(super) fn reference(&self, to: &Definition) -> Reference {
        let kind = key::definition(to.kind);
        self.node.objects().publish(kind.type_id, &key::of(to.kind, &to.id))
    }

    /// A reference to the definition with this number; nothing if there is none, which is nil in answers.
    pub(super) fn reference_at(&self, number: usize) -> Option<Reference> {
        Some(self.reference(self.repository.get(number)?))
    }

    /// A reference to the definition of a type; nil if it is unknown.
    pub(super) fn type_def(&self, of: Option<&Type>) -> Option<Reference> {
        Some(self.reference(self.repository.type_at(of?)?))
    }

    /// The id of what contains it; empty for the repository.
    pub(super) fn within(&self) -> String {
        let around = self.repository.get(self.definition().within);
        around.map(|around| around.id.clone()).unwrap_or_default()
    }

    /// The interface that it is, or is part of.
    pub(super) fn interface(&self) -> Option<&'a Hold<Interface>> {
        let number = match &self.definition().what {
            DefinitionDetail::Interface(interface) => return Some(interface),
            DefinitionDetail::Operation { interface, .. } | DefinitionDetail::Attribute { interface, .. } => {
                *interface
            }
            _ => return None,
        };
        self.at(number).interface()
    }

    /// What it says of itself (the operation `describe`): an `any` with the struct that belongs to its kind.
    ///
    /// # Errors
    /// The struct does not encode, which would be a mistake of this side.
    pub(super) fn described(&self) -> Result<Variant, Failure> {
        let definition = self.definition();
        let (name, id, defined_in) = (definition.name.clone(), definition.id.clone(), self.within());
        let version = version(&id);
        match (&definition.what, definition.kind) {
            (DefinitionDetail::Interface(interface), _) => variant(
                structure(&describe::INTERFACE_DESCRIPTION),
                &InterfaceDescription { name, id, defined_in, version, base_interfaces: bases(interface) },
            ),
            (DefinitionDetail::Operation { .. }, _) => {
                let told = self.operation().ok_or_else(incomplete)?;
                variant(structure(&describe::OPERATION_DESCRIPTION), &told)
            }
            (DefinitionDetail::Attribute { .. }, _) => {
                let told = self.attribute().ok_or_else(incomplete)?;
                variant(structure(&describe::ATTRIBUTE_DESCRIPTION), &told)
            }
            (DefinitionDetail::Constant { held, .. }, _) => variant(
                structure(&describe::CONSTANT_DESCRIPTION),
                &ConstantDescription {
                    name,
                    id,
                    defined_in,
                    version,
                    r#type: TypeCode::new(held.shape.clone()),
                    value: Variant::new(held.shape.clone(), held.value.clone()),
                },
            ),
            (DefinitionDetail::Type { shape, .. }, DefinitionKind::DkException) => {
                let r#type = TypeCode::new(shape.clone());
                variant(
                    structure(&describe::EXCEPTION_DESCRIPTION),
                    &ExceptionDescription { name, id, defined_in, version, r#type },
                )
            }
            (DefinitionDetail::Type { shape, .. }, _) => {
                let r#type = TypeCode::new(shape.clone());
                variant(
                    structure(&describe::TYPE_DESCRIPTION),
                    &TypeDescription { name, id, defined_in, version, r#type },
                )
            }
            (DefinitionDetail::Scope | DefinitionDetail::Primitive(_), _) => variant(
                structure(&describe::MODULE_DESCRIPTION),
                &ModuleDescription { name, id, defined_in, version },
            ),
        }
    }

    /// The operation that it is, and the types of its result and of its parameters; nothing if it is none.
    pub(super) fn held_operation(&self) -> Option<(&'a Operation, &'a [Type])> {
        let DefinitionDetail::Operation { index, types, .. } = &self.definition().what else { return None };
        Some((self.interface()?.operations.get(*index)?, types))
    }

    /// The description of the operation that it is.
    pub(super) fn operation(&self) -> Option<OperationDescription> {
        let (operation, types) = self.held_operation()?;
        Some(self.of_operation(operation, &self.within(), types))
    }

    /// The description of an operation that the interface with the id `around` declares. `types` are those of
    /// the result and of the parameters.
    fn of_operation(&self, operation: &Operation, around: &str, types: &[Type]) -> OperationDescription {
        let id = id_inside(around, &operation.name);
        OperationDescription {
            name: operation.name.to_string(),
            version: version(&id),
            id,
            defined_in: around.to_owned(),
            result: TypeCode::new(operation.returns.clone()),
            mode: if operation.oneway { OperationMode::OpOneway } else { OperationMode::OpNormal },
            contexts: contexts(operation),
            parameters: self.parameters(operation, types),
            exceptions: raises(operation).map(|raised| self.exception(raised)).collect(),
        }
    }

    /// The parameters of an operation; the first of the types is that of the result.
    fn parameters(&self, operation: &Operation, types: &[Type]) -> Vec<ParameterDescription> {
        let each = operation.parameters.iter().enumerate();
        each.map(|(index, parameter)| ParameterDescription {
            name: parameter_name(&parameter.field.name, index),
            r#type: TypeCode::new(parameter.field.shape.clone()),
            type_def: self.type_def(types.get(index + 1)),
            mode: mode(parameter.direction),
        })
        .collect()
    }

    /// An exception. Its `defined_in` is empty if the repository does not have it.
    pub(super) fn exception(&self, raised: &Hold<Struct>) -> ExceptionDescription {
        let id = exception_id(raised);
        let known = self.repository.by_id.get(&id).map(|number| self.at(*number).within());
        ExceptionDescription {
            name: last(&raised.name).to_owned(),
            version: version(&id),
            id,
            defined_in: known.unwrap_or_default(),
            r#type: TypeCode::new(typecodes::of_exception(raised.clone())),
        }
    }

    /// The attribute that it is; nothing if it is none.
    fn held_attribute(&self) -> Option<&'a Attribute> {
        let DefinitionDetail::Attribute { index, .. } = &self.definition().what else { return None };
        self.interface()?.attributes.get(*index)
    }

    /// The description of the attribute that it is.
    pub(super) fn attribute(&self) -> Option<AttributeDescription> {
        Some(of_attribute(self.held_attribute()?, &self.within()))
    }

    /// The same, with the exceptions of its getter and setter.
    pub(super) fn ext_attribute(&self) -> Option<ExtAttributeDescription> {
        Some(self.of_ext_attribute(self.interface()?, self.held_attribute()?, &self.within()))
    }

    /// The extended description of an attribute that the interface with the id `around` declares.
    fn of_ext_attribute(
        &self,
        interface: &Interface,
        held: &Attribute,
        around: &str,
    ) -> ExtAttributeDescription {
        let AttributeDescription { name, id, defined_in, version, r#type, mode } = of_attribute(held, around);
        let raised = |number: Option<usize>| {
            let accessor = number.and_then(|number| interface.operations.get(number));
            accessor.into_iter().flat_map(raises).map(|raised| self.exception(raised)).collect()
        };
        let (get_exceptions, put_exceptions) = (raised(Some(held.getter)), raised(held.setter));
        ExtAttributeDescription {
            name,
            id,
            defined_in,
            version,
            r#type,
            mode,
            get_exceptions,
            put_exceptions,
        }
    }

    /// All operations of the interface that it is, inherited ones too, and the numbers of its attributes with
    /// the ids of the interfaces that declare them. Accessors of attributes are no operations here.
    fn members(&self, interface: &Interface) -> (Vec<OperationDescription>, Vec<(usize, String)>) {
        let (mut operations, mut attributes) = (Vec::new(), Vec::new());
        for (index, operation) in interface.operations.iter().enumerate().filter(|(_, held)| travels(held)) {
            let declaring = interface.declaring(&operation.name);
            let around = id_of(&declaring.id, &declaring.name);
            match attribute(interface, index) {
                Some(Some(at)) => attributes.push((at, around)),
                Some(None) => {}
                None => {
                    // Types are told by the definition in the interface that declares it.
                    let own = self.repository.by_id.get(&id_inside(&around, &operation.name));
                    let types = own.and_then(|number| match &self.repository.get(*number)?.what {
                        DefinitionDetail::Operation { types, .. } => Some(types.as_slice()),
                        _ => None,
                    });
                    operations.push(self.of_operation(operation, &around, types.unwrap_or_default()));
                }
            }
        }
        (operations, attributes)
    }

    /// The whole interface that it is (`describe_interface`); nothing if it is none.
    pub(super) fn full(&self) -> Option<FullInterfaceDescription> {
        let interface = self.interface()?;
        let (operations, attributes) = self.members(interface);
        let told =
            |(at, around): &(usize, String)| Some(of_attribute(interface.attributes.get(*at)?, around));
        let definition = self.definition();
        Some(FullInterfaceDescription {
            name: definition.name.clone(),
            id: definition.id.clone(),
            defined_in: self.within(),
            version: version(&definition.id),
            operations,
            attributes: attributes.iter().filter_map(told).collect(),
            base_interfaces: bases(interface),
            r#type: TypeCode::new(self.shape()),
        })
    }

    /// The same, with the exceptions of attributes.
    pub(super) fn ext_full(&self) -> Option<ExtFullInterfaceDescription> {
        let interface = self.interface()?;
        let (operations, attributes) = self.members(interface);
        let told = |(at, around): &(usize, String)| {
            Some(self.of_ext_attribute(interface, interface.attributes.get(*at)?, around))
        };
        let definition = self.definition();
        Some(ExtFullInterfaceDescription {
            name: definition.name.clone(),
            id: definition.id.clone(),
            defined_in: self.within(),
            version: version(&definition.id),
            operations,
            attributes: attributes.iter().filter_map(told).collect(),
            base_interfaces: bases(interface),
            r#type: TypeCode::new(self.shape()),
        })
    }

    /// The shape of the type that it is or has: of an attribute or constant its type, of an operation its
    /// result, of an interface a reference to it; void for scopes.
    pub(super) fn shape(&self) -> Shape {
        let definition = self.definition();
        match &definition.what {
            DefinitionDetail::Type { shape, .. } => shape.clone(),
            DefinitionDetail::Primitive(kind) => {
                super::build::primitive_shape(*kind).cloned().unwrap_or(Shape::Void)
            }
            DefinitionDetail::Interface(interface) => {
                let (name, id) = (interface.name.clone(), definition.id.clone().into());
                Shape::Reference(Hold::new(Referent { name, id }))
            }
            DefinitionDetail::Attribute { .. } => {
                self.held_attribute().map_or(Shape::Void, |held| held.shape.clone())
            }
            DefinitionDetail::Operation { .. } => {
                self.held_operation().map_or(Shape::Void, |(held, _)| held.returns.clone())
            }
            DefinitionDetail::Constant { held, .. } => held.shape.clone(),
            DefinitionDetail::Scope => Shape::Void,
        }
    }

    /// The members of the struct or exception that it is. Fields and parts are in the same order.
    pub(super) fn struct_members(&self) -> Vec<StructMember> {
        let DefinitionDetail::Type { shape, parts } = &self.definition().what else { return Vec::new() };
        let fields = shape.fields().iter().zip(parts);
        fields
            .map(|(field, part)| StructMember {
                name: field.name.to_string(),
                r#type: TypeCode::new(field.shape.clone()),
                type_def: self.type_def(Some(part)),
            })
            .collect()
    }

    /// The members of the union that it is. An arm with several labels is told once for each label, as the
    /// specification wants it.
    pub(super) fn union_members(&self) -> Vec<UnionMember> {
        let DefinitionDetail::Type { shape: Shape::Union(union), parts } = &self.definition().what else {
            return Vec::new();
        };
        let mut members = Vec::new();
        for (arm, part) in union.arms.iter().zip(parts.iter().skip(1)) {
            let labels = arm.labels.iter().map(|label| label_of(&union.discriminator, *label));
            // The default has a label of the type octet, whose value is zero.
            let default = arm.default.then(|| Variant::from(0_u8));
            members.extend(labels.chain(default).map(|label| UnionMember {
                name: arm.field.name.to_string(),
                label,
                r#type: TypeCode::new(arm.field.shape.clone()),
                type_def: self.type_def(Some(part)),
            }));
        }
        members
    }
}

/// The plain description of an attribute that the interface with the id `around` declares.
fn of_attribute(held: &Attribute, around: &str) -> AttributeDescription {
    let id = id_inside(around, &held.name);
    AttributeDescription {
        name: held.name.to_string(),
        version: version(&id),
        id,
        defined_in: around.to_owned(),
        r#type: TypeCode::new(held.shape.clone()),
        mode: if held.setter.is_some() { AttributeMode::AttrNormal } else { AttributeMode::AttrReadonly },
    }
}

/// The ids of the direct bases.
fn bases(interface: &Interface) -> Vec<String> {
    interface.bases.iter().map(|base| id_of(&base.id, &base.name)).collect()
}

/// A label of a union, as a value of its discriminator. Labels are kept as numbers; of an enumeration it is
/// the member's name that travels.
fn label_of(discriminator: &Shape, label: i64) -> Variant {
    let value = match discriminator.resolved() {
        Shape::Bool => Value::Bool(label != 0),
        Shape::Char | Shape::WideChar => {
            Value::Char(u32::try_from(label).ok().and_then(char::from_u32).unwrap_or_default())
        }
        Shape::Enum(members) => {
            let name = i32::try_from(label).ok().and_then(|value| members.name_of(value));
            Value::Member(name.unwrap_or_default().to_owned())
        }
        _ => Value::Integer(label.into()),
    };
    Variant::new(discriminator.clone(), value)
}

/// A typed value with its shape, as an `any`. It takes the way through the native codec, which turns a typed
/// value into a tree of values.
pub(super) fn variant<T: Marshal>(shape: Shape, value: &T) -> Result<Variant, Failure> {
    let body = NATIVE.write(&mut |sink| value.marshal(&shape, sink))?;
    let value = body.read(|source| Value::decode(&shape, source))?;
    Ok(Variant::new(shape, value))
}

/// A definition is part of an interface that lacks it.
#[cold]
fn incomplete() -> Failure {
    Failure::new(Kind::Internal, Initiator::Here, "a definition of the repository is incomplete")
}

/// The properties of callers that an operation wants.
fn contexts(operation: &Operation) -> Vec<String> {
    let listed = everywire_model::contract::note(&operation.notes, CONTEXT);
    listed.map(|listed| listed.split(',').map(str::to_owned).collect()).unwrap_or_default()
}
