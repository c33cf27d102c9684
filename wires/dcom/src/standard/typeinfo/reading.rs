//! Reading the type information of objects elsewhere.
//!
//! A description is an ITypeInfo that is asked step by step: TYPEATTR first, then each function by its number
//! with its names, then each variable. What comes of it is an interface of kind `Dispatch`, whose operations
//! are called by Invoke.
//!
//! States: `Told` holds the object and its TYPEATTR.
//!
//! Invariants: a peer decides how many calls are made, so members, names of parameters and the depth of types
//! are bounded (`MEMBERS`, `PARAMETERS`, `DEPTH`), and a type that leads too far, or that is not understood,
//! is a VARIANT, which takes any value. Members that must not be called by name are left out. A property told
//! as a variable becomes two accessors.

use super::contracts::{
    GET_DOCUMENTATION, GET_FUNC_DESC, GET_IMPL_TYPE_FLAGS, GET_NAMES, GET_REF_TYPE_INFO,
    GET_REF_TYPE_OF_IMPL_TYPE, GET_TYPE_ATTR, GET_VAR_DESC, TYPE_INFO,
};
use super::library::{KIND_CLASS, KIND_DISPATCH};
use super::types::{VT_PTR, VT_SAFEARRAY, VT_VARIANT, VT_VOID};
use crate::exporter::raw::done;
use crate::hresult::TYPE_E_ELEMENTNOTFOUND;
use crate::ndr::scalar;
use crate::standard::contracts::BSTR;
use crate::standard::dispatch::coerce::DISPATCH as OBJECT;
use everywire_model::contract::{
    Attribute, Direction, Interface, InterfaceKind, Notify, Operation, Parameter,
};
use everywire_model::shape::{Field, Referent, Shape};
use everywire_model::value::Value;
use everywire_model::{Encode, Failure, Hold, Initiator, Kind, MarshalList, Object, Reference, Sink};
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
const RESTRICTED: i128 = 1;

/// A description elsewhere.
pub(crate) struct Told {
    pub(super) info: Object,
    pub(super) attributes: Vec<(String, Value)>,
}

impl Told {
    /// The description that an object gave.
    ///
    /// # Errors
    /// It gave none; those of the calls.
    pub(crate) fn of(object: &Object, info: Option<Reference>) -> Result<Self, Failure> {
        let info = info.ok_or_else(|| unsupported("the object has no type information"))?;
        let info = object.target().resolver().resolve(&info)?.typed(Hold::Static(&TYPE_INFO));
        let attributes = first(&ask(&info, GET_TYPE_ATTR, ())?)?;
        Ok(Self { info, attributes })
    }

    /// A number of the TYPEATTR.
    fn number(&self, name: &str) -> i128 {
        number(&self.attributes, name)
    }

    /// The GUID of the TYPEATTR.
    fn id(&self) -> Uuid {
        let fields = match member(&self.attributes, "guid") {
            Some(Value::Struct(fields)) => fields.as_slice(),
            _ => &[],
        };
        let mut rest = [0; 8];
        if let Some(Value::Bytes(octets)) = member(fields, "data4") {
            for (to, from) in rest.iter_mut().zip(octets) {
                *to = *from;
            }
        }
        let part = |name| u32::try_from(number(fields, name)).unwrap_or_default();
        let short = |name| u16::try_from(number(fields, name)).unwrap_or_default();
        Uuid::from_fields(part("data1"), short("data2"), short("data3"), &rest)
    }

    /// The interfaces of a class, with their IMPLTYPEFLAGs.
    ///
    /// # Errors
    /// It is no class; those of the calls.
    pub(crate) fn implemented(&self) -> Result<Vec<(Self, i32)>, Failure> {
        if self.number("typekind") != i128::from(KIND_CLASS) {
            return Err(unsupported("what describes the class is no class"));
        }
        let count = self.number("cImplTypes").min(MEMBERS.into());
        let mut found = Vec::new();
        for index in 0..u32::try_from(count).unwrap_or_default() {
            let (handle,) = self.info.call::<_, (u32,), Failure>(GET_REF_TYPE_OF_IMPL_TYPE, (index,))?;
            let (flags,) = self.info.call::<_, (i32,), Failure>(GET_IMPL_TYPE_FLAGS, (index,))?;
            found.push((self.part(handle)?, flags));
        }
        Ok(found)
    }

    /// The description behind a handle of a referred type.
    fn part(&self, handle: u32) -> Result<Self, Failure> {
        let (info,) = self.info.call::<_, (Option<Reference>,), Failure>(GET_REF_TYPE_INFO, (handle,))?;
        Self::of(&self.info, info)
    }

    /// -1 as `id` means the type itself; the flags ask for both texts.
    fn documentation(&self, id: i32) -> Result<(String, String), Failure> {
        let (name, text, _, _) =
            self.info.call::<_, (String, String, u32, String), Failure>(GET_DOCUMENTATION, (id, 3_u32))?;
        Ok((name, text))
    }

    /// The interface, as it can be called by name.
    ///
    /// # Errors
    /// It is none; those of the calls.
    pub(crate) fn interface(&self) -> Result<Interface, Failure> {
        if self.number("typekind") != i128::from(KIND_DISPATCH) {
            return Err(unsupported("the type information is of an interface that cannot be called by name"));
        }
        let (name, doc) = self.documentation(-1)?;
        let mut operations: Vec<Operation> = Vec::new();
        for index in 0..u32::try_from(self.number("cFuncs").min(MEMBERS.into())).unwrap_or_default() {
            let function = match ask(&self.info, GET_FUNC_DESC, (index,)) {
                // Wine counts the functions of IDispatch, and then does not have them.
                Err(failure) if is_beyond(&failure) => break,
                told => first(&told?)?,
            };
            if number(&function, "wFuncFlags") & RESTRICTED == 0 {
                operations.push(self.operation(&function)?);
            }
        }
        for index in 0..u32::try_from(self.number("cVars").min(MEMBERS.into())).unwrap_or_default() {
            let variable = first(&ask(&self.info, GET_VAR_DESC, (index,))?)?;
            operations.extend(self.accessors(&variable)?);
        }
        Ok(Interface {
            name: name.into(),
            id: self.id().to_string().into(),
            kind: InterfaceKind::Dispatch,
            attributes: attributes(&operations).into(),
            operations: operations.into(),
            doc: doc.into(),
            ..Interface::default()
        })
    }

    /// A method, or an accessor of a property.
    pub(super) fn operation(&self, function: &[(String, Value)]) -> Result<Operation, Failure> {
        let id = i32::try_from(number(function, "memid")).unwrap_or_default();
        let described = match member(function, "lprgelemdescParam") {
            Some(Value::List(described)) => described.as_slice(),
            _ => &[],
        };
        let described = described.get(..PARAMETERS).unwrap_or(described);
        // `cParams` says the same; a list may be missing.
        let most = number(function, "cParams").clamp(0, PARAMETERS as i128) as u32 + 1;
        let (_, names, _) = self.info.call::<_, (u32, Vec<String>, u32), Failure>(GET_NAMES, (id, most))?;
        let mut names = names.into_iter();
        let name = names.next().unwrap_or_else(|| format!("member_{id}"));
        let (mut parameters, mut returns) = (Vec::new(), Shape::Void);
        for (index, described) in described.iter().enumerate() {
            let fields = fields(described);
            let flags =
                member(fields, "paramdesc").map_or(0, |held| number(self::fields(held), "wParamFlags"));
            let (shape, pointed) = self.shape(member(fields, "tdesc"), DEPTH)?;
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
        if matches!(returns, Shape::Void)
            && let Some(own) = member(function, "elemdescFunc")
        {
            returns = self.shape(member(fields(own), "tdesc"), DEPTH)?.0;
        }
        let spelled = match number(function, "invkind") {
            2 => format!("get_{name}"),
            4 => format!("put_{name}"),
            8 => format!("putref_{name}"),
            _ => name,
        };
        let mut operation = Operation::new(spelled, parameters, returns);
        operation.id = Some(id);
        Ok(operation)
    }

    /// The accessors of a property that is told as a variable.
    fn accessors(&self, variable: &[(String, Value)]) -> Result<Vec<Operation>, Failure> {
        let id = i32::try_from(number(variable, "memid")).unwrap_or_default();
        // VAR_DISPATCH; constants are no members to be called.
        if number(variable, "varkind") != 3 {
            return Ok(Vec::new());
        }
        let (_, names, _) = self.info.call::<_, (u32, Vec<String>, u32), Failure>(GET_NAMES, (id, 1_u32))?;
        let name = names.into_iter().next().unwrap_or_else(|| format!("member_{id}"));
        let described = member(variable, "elemdescVar").map_or(&[][..], fields);
        let (shape, _) = self.shape(member(described, "tdesc"), DEPTH)?;
        let mut get = Operation::new(format!("get_{name}"), Vec::new(), shape.clone());
        get.id = Some(id);
        let mut accessors = vec![get];
        // VARFLAG_FREADONLY.
        if number(variable, "wVarFlags") & 1 == 0 {
            let value = Parameter { direction: Direction::In, field: Field { name: "value".into(), shape } };
            let mut put = Operation::new(format!("put_{name}"), vec![value], Shape::Void);
            put.id = Some(id);
            accessors.push(put);
        }
        Ok(accessors)
    }

    /// The shape of a TYPEDESC, and whether it stands behind a pointer.
    fn shape(&self, described: Option<&Value>, depth: u32) -> Result<(Shape, bool), Failure> {
        let Some(described) = described.map(fields) else { return Ok((Shape::Variant, false)) };
        let vt = u16::try_from(number(described, "vt")).unwrap_or_default();
        let arm = match member(described, "_tdUnion") {
            Some(Value::Union(_, Some(arm))) => Some(&arm.1),
            _ => None,
        };
        let Some(depth) = depth.checked_sub(1) else { return Ok((Shape::Variant, false)) };
        Ok(match vt {
            VT_PTR => (self.shape(arm, depth)?.0, true),
            VT_SAFEARRAY => {
                let element = self.shape(arm, depth)?.0;
                let plain =
                    element.width().is_some() || matches!(element, Shape::Text(_) | Shape::Reference(_));
                (Shape::sequence(if plain { element } else { Shape::Variant }), false)
            }
            VT_USERDEFINED => match arm {
                Some(Value::Integer(handle)) => {
                    (self.defined(u32::try_from(*handle).unwrap_or_default(), depth)?, false)
                }
                _ => (Shape::Variant, false),
            },
            vt => (plain(vt), false),
        })
    }

    /// The shape of a type with a name: what a VARIANT holds for it.
    fn defined(&self, handle: u32, depth: u32) -> Result<Shape, Failure> {
        let Ok(told) = self.part(handle) else { return Ok(Shape::Variant) };
        Ok(match told.number("typekind") {
            // TKIND_ENUM, TKIND_INTERFACE, TKIND_ALIAS.
            0 => Shape::I32,
            3..=5 => Shape::Reference(Hold::new(Referent {
                name: told.documentation(-1).map(|(name, _)| name).unwrap_or_default().into(),
                id: told.id().to_string().into(),
            })),
            6 => told.shape(member(&told.attributes, "tdescAlias"), depth)?.0,
            _ => Shape::Variant,
        })
    }
}

/// The object does not tell what is asked for.
fn unsupported(what: &str) -> Failure {
    Failure::new(Kind::Unsupported, Initiator::Peer, what)
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

/// The results of a call, as one struct.
fn ask(
    info: &Object,
    operation: &Operation,
    arguments: impl MarshalList,
) -> Result<Vec<(String, Value)>, Failure> {
    let arguments = |sink: &mut dyn Sink| arguments.marshal_list(&operation.arguments, sink);
    let arguments: &dyn Encode = &arguments;
    let body = done(info.invoke(operation, arguments))?;
    match body.read(|source| Value::decode(&operation.results, source))? {
        Value::Struct(fields) => Ok(fields),
        _ => Ok(Vec::new()),
    }
}

/// The fields of the structure that is the first result.
fn first(results: &[(String, Value)]) -> Result<Vec<(String, Value)>, Failure> {
    match results.first() {
        Some((_, Value::Struct(fields))) => Ok(fields.clone()),
        _ => Err(Failure::malformed("type information is null", 0)),
    }
}

/// The fields of a structure; none of anything else.
fn fields(value: &Value) -> &[(String, Value)] {
    match value {
        Value::Struct(fields) => fields,
        _ => &[],
    }
}

/// A field of a structure by name.
fn member<'a>(fields: &'a [(String, Value)], name: &str) -> Option<&'a Value> {
    fields.iter().find(|(held, _)| held == name).map(|(_, value)| value)
}

/// A field that is a number; 0 where there is none.
fn number(fields: &[(String, Value)], name: &str) -> i128 {
    match member(fields, name) {
        Some(Value::Integer(number)) => *number,
        _ => 0,
    }
}
