//! Reading the type information of objects elsewhere.
//!
//! A description is an ITypeInfo that is asked step by step: TYPEATTR first, then each function by its number
//! with its names, then each variable. What comes of it is an interface of kind `Dispatch`, whose operations
//! are called by Invoke.
//!
//! States: `RemoteTypeInfo` holds the object and its TYPEATTR.
//!
//! Invariants: a peer decides how many calls are made, so members, names of parameters and the depth of types
//! are bounded (`MEMBERS`, `PARAMETERS`, `DEPTH`), and a type that leads too far, or that is not understood,
//! is a VARIANT, which takes any value. Members that must not be called by name are left out. A property told
//! as a variable becomes two accessors.

use super::library::{KIND_CLASS, KIND_DISPATCH};
use super::types::{VT_PTR, VT_SAFEARRAY, VT_VARIANT, VT_VOID};
use crate::hresult::TYPE_E_ELEMENTNOTFOUND;
use crate::ndr::scalar;
use crate::standard::contracts::{BSTR, FUNCDESC, TYPE_INFO, TYPEATTR, TYPEDESC, TypedescTdUnion, VARDESC};
use crate::standard::dispatch::coerce::DISPATCH as OBJECT;
use everywire_model::contract::{
    Attribute, Direction, Interface, InterfaceKind, Notify, Operation, Parameter,
};
use everywire_model::object::no_operation;
use everywire_model::shape::{Field, Referent, Shape};
use everywire_model::{
    Failure, Hold, Initiator, Kind, MarshalList, Object, Reference, UnmarshalList, counts,
};
use uuid::Uuid;

/// Members of an interface, and interfaces of a class, that are asked for at most.
const MEMBERS: u16 = 4096;
/// How far types lead to one another.
const DEPTH: u32 = 8;
/// Parameters of a method whose names and types are asked for, at most.
const PARAMETERS: usize = 256;
/// A function that returns nothing but success.
const VT_HRESULT: u16 = 25;
/// A type with a name, to be asked for by its handle.
const VT_USERDEFINED: u16 = 29;
/// FUNCFLAG_FRESTRICTED: IUnknown's and IDispatch's methods, and others that are not to be called by name.
const RESTRICTED: u16 = 1;

/// A description elsewhere.
pub(crate) struct RemoteTypeInfo {
    pub(super) info: Object,
    pub(super) attributes: TYPEATTR,
}

impl RemoteTypeInfo {
    /// The description that an object gave.
    ///
    /// # Errors
    /// It gave none; those of the calls.
    pub(crate) fn of(giver: &Object, info: Option<Reference>) -> Result<Self, Failure> {
        let info = info.ok_or_else(|| unsupported("the object has no type information"))?;
        let info = giver.target().resolver().resolve(&info)?.typed(Hold::Static(&TYPE_INFO));
        let (attributes, _) = ask::<(Option<TYPEATTR>, u32)>(&info, "GetTypeAttr", ())?;
        Ok(Self { info, attributes: attributes.ok_or_else(null)? })
    }

    /// The interfaces of a class, with their IMPLTYPEFLAGs.
    ///
    /// # Errors
    /// It is no class; those of the calls.
    pub(crate) fn implemented(&self) -> Result<Vec<(Self, i32)>, Failure> {
        if self.attributes.typekind != KIND_CLASS {
            return Err(unsupported("what describes the class is no class"));
        }
        let part = |index: u32| {
            let (handle,) = ask::<(u32,)>(&self.info, "GetRefTypeOfImplType", (index,))?;
            let (flags,) = ask::<(i32,)>(&self.info, "GetImplTypeFlags", (index,))?;
            Ok((self.part(handle)?, flags))
        };
        (0..self.attributes.c_impl_types.min(MEMBERS).into()).map(part).collect()
    }

    /// The description behind a handle of a referred type.
    fn part(&self, handle: u32) -> Result<Self, Failure> {
        let (info,) = ask::<(Option<Reference>,)>(&self.info, "GetRefTypeInfo", (handle,))?;
        Self::of(&self.info, info)
    }

    /// -1 as `id` means the type itself; the flags ask for both texts.
    fn documentation(&self, id: i32) -> Result<(String, String), Failure> {
        type RemoteTypeInfo = (String, String, u32, String);
        let (name, text, _, _) = ask::<RemoteTypeInfo>(&self.info, "GetDocumentation", (id, 3_u32))?;
        Ok((name, text))
    }

    /// The names of a member and its parameters, of which there are so many at the most.
    fn names(&self, id: i32, most: u32) -> Result<std::vec::IntoIter<String>, Failure> {
        let (names, count) = ask::<(Vec<String>, u32)>(&self.info, "GetNames", (id, most))?;
        counts::agree::<u32>("pcNames", count, &[("rgBstrNames", counts::len(&names))])?;
        Ok(names.into_iter())
    }

    /// The interface, as it can be called by name.
    ///
    /// # Errors
    /// It is none; those of the calls.
    pub(crate) fn interface(&self) -> Result<Interface, Failure> {
        if self.attributes.typekind != KIND_DISPATCH {
            return Err(unsupported("the type information is of an interface that cannot be called by name"));
        }
        let (name, doc) = self.documentation(-1)?;
        let mut operations: Vec<Operation> = Vec::new();
        for index in 0..self.attributes.c_funcs.min(MEMBERS).into() {
            let function = match ask::<(Option<FUNCDESC>, u32)>(&self.info, "GetFuncDesc", (index,)) {
                // Wine counts the functions of IDispatch, and then does not have them.
                Err(failure) if is_beyond(&failure) => break,
                told => told?.0.ok_or_else(null)?,
            };
            if function.w_func_flags & RESTRICTED == 0 {
                operations.push(self.operation(&function)?);
            }
        }
        for index in 0..self.attributes.c_vars.min(MEMBERS).into() {
            let (variable, _) = ask::<(Option<VARDESC>, u32)>(&self.info, "GetVarDesc", (index,))?;
            operations.extend(self.accessors(&variable.ok_or_else(null)?)?);
        }
        Ok(Interface {
            name: name.into(),
            id: Uuid::from(self.attributes.guid).to_string().into(),
            kind: InterfaceKind::Dispatch,
            attributes: attributes(&operations).into(),
            operations: operations.into(),
            doc: doc.into(),
            ..Interface::default()
        })
    }

    /// A method, or an accessor of a property.
    pub(super) fn operation(&self, function: &FUNCDESC) -> Result<Operation, Failure> {
        let described = &function.lprgelemdesc_param;
        let described = described.get(..PARAMETERS).unwrap_or(described);
        let mut names = self.names(function.memid, described.len() as u32 + 1)?;
        let name = names.next().unwrap_or_else(|| format!("member_{}", function.memid));
        let (mut parameters, mut returns) = (Vec::new(), Shape::Void);
        for (index, described) in described.iter().enumerate() {
            let flags = described.paramdesc.w_param_flags;
            let (shape, pointed) = self.shape(&described.tdesc, DEPTH)?;
            let direction = match (flags & 1 != 0, flags & 2 != 0) {
                (true, true) => Direction::InOut,
                (false, true) => Direction::Out,
                // A pointer without a direction goes both ways.
                (false, false) if pointed => Direction::InOut,
                _ => Direction::In,
            };
            let given = names.next().unwrap_or_else(|| format!("arg_{}", index + 1));
            let optional = flags & 0x10 != 0 && !matches!(shape, Shape::Variant);
            let shape = if optional { Shape::Optional(Hold::new(shape)) } else { shape };
            if flags & 8 != 0 {
                returns = shape;
            } else {
                parameters.push(Parameter { direction, field: Field { name: given.into(), shape } });
            }
        }
        if matches!(returns, Shape::Void) {
            returns = self.shape(&function.elemdesc_func.tdesc, DEPTH)?.0;
        }
        let spelled = match function.invkind {
            2 => format!("get_{name}"),
            4 => format!("put_{name}"),
            8 => format!("putref_{name}"),
            _ => name,
        };
        let mut operation = Operation::new(spelled, parameters, returns);
        operation.id = Some(function.memid);
        Ok(operation)
    }

    /// The accessors of a property that is told as a variable.
    fn accessors(&self, variable: &VARDESC) -> Result<Vec<Operation>, Failure> {
        let id = variable.memid;
        // VAR_DISPATCH; constants are no members to be called.
        if variable.varkind != 3 {
            return Ok(Vec::new());
        }
        let name = self.names(id, 1)?.next().unwrap_or_else(|| format!("member_{id}"));
        let (shape, _) = self.shape(&variable.elemdesc_var.tdesc, DEPTH)?;
        let mut get = Operation::new(format!("get_{name}"), Vec::new(), shape.clone());
        get.id = Some(id);
        let mut accessors = vec![get];
        // VARFLAG_FREADONLY.
        if variable.w_var_flags & 1 == 0 {
            let value = Parameter { direction: Direction::In, field: Field { name: "value".into(), shape } };
            let mut put = Operation::new(format!("put_{name}"), vec![value], Shape::Void);
            put.id = Some(id);
            accessors.push(put);
        }
        Ok(accessors)
    }

    /// The shape of a TYPEDESC, and whether it stands behind a pointer.
    fn shape(&self, described: &TYPEDESC, depth: u32) -> Result<(Shape, bool), Failure> {
        let Some(depth) = depth.checked_sub(1) else { return Ok((Shape::Variant, false)) };
        let target = || match &described.td_union {
            TypedescTdUnion::Lptdesc(_, Some(target)) => Ok(self.shape(target, depth)?.0),
            TypedescTdUnion::Hreftype(handle) => self.defined(*handle, depth),
            _ => Ok(Shape::Variant),
        };
        Ok(match described.vt {
            VT_PTR => (target()?, true),
            VT_SAFEARRAY => {
                let element = target()?;
                let plain =
                    element.width().is_some() || matches!(element, Shape::Text(_) | Shape::Reference(_));
                (Shape::sequence(if plain { element } else { Shape::Variant }), false)
            }
            VT_USERDEFINED => (target()?, false),
            vt => (plain(vt), false),
        })
    }

    /// The shape of a type with a name: what a VARIANT holds for it.
    fn defined(&self, handle: u32, depth: u32) -> Result<Shape, Failure> {
        let Ok(told) = self.part(handle) else { return Ok(Shape::Variant) };
        Ok(match told.attributes.typekind {
            // TKIND_ENUM, TKIND_INTERFACE, TKIND_ALIAS.
            0 => Shape::I32,
            3..=5 => Shape::Reference(Hold::new(Referent {
                name: told.documentation(-1).map(|(name, _)| name).unwrap_or_default().into(),
                id: Uuid::from(told.attributes.guid).to_string().into(),
            })),
            6 => told.shape(&told.attributes.tdesc_alias, depth)?.0,
            _ => Shape::Variant,
        })
    }
}

/// Calls an operation of ITypeInfo.
fn ask<R: for<'a> UnmarshalList<'a>>(
    info: &Object,
    operation: &str,
    arguments: impl MarshalList,
) -> Result<R, Failure> {
    let operation = TYPE_INFO.operations.iter().find(|held| held.name == operation);
    info.call(operation.ok_or_else(|| no_operation(&TYPE_INFO))?, arguments)
}

/// The object does not tell what is asked for.
fn unsupported(what: &str) -> Failure {
    Failure::new(Kind::Unsupported, Initiator::Peer, what)
}

/// A description is missing that was asked for.
fn null() -> Failure {
    Failure::malformed("type information is null", 0)
}

/// Whether there is nothing of that number.
fn is_beyond(failure: &Failure) -> bool {
    failure.code() == Some(&*format!("{TYPE_E_ELEMENTNOTFOUND:#010x}"))
}

/// The shape of a type without parts (VARENUM, MS-OAUT 2.2.7).
fn plain(vt: u16) -> Shape {
    match vt {
        8 | 30 | 31 => BSTR,
        9 | 13 => OBJECT,
        0 | VT_VOID | VT_HRESULT => Shape::Void,
        // VARIANTs, and what has no shape of its own: arrays of the language.
        1 | VT_VARIANT => Shape::Variant,
        vt => scalar(vt).unwrap_or(Shape::Variant),
    }
}

/// The properties that have no parameters.
fn attributes(operations: &[Operation]) -> Vec<Attribute> {
    let getters = operations.iter().enumerate().filter(|(_, operation)| operation.parameters.is_empty());
    getters
        .filter_map(|(getter, operation)| {
            let name = operation.name.strip_prefix("get_")?;
            let sets = |held: &Operation| {
                held.parameters.len() == 1
                    && (held.name.strip_prefix("put_") == Some(name)
                        || held.name.strip_prefix("putref_") == Some(name))
            };
            Some(Attribute {
                name: name.to_owned().into(),
                shape: operation.returns.clone(),
                getter,
                setter: operations.iter().position(sets),
                notify: Notify::Nothing,
            })
        })
        .collect()
}
