//! Names and namespaces of the data contract.
//!
//! The rules are those of DataContractSerializer. A shape whose identity is in Clark notation
//! (`{namespace}name`) has its names from there, as WSDL gave them; any other has the default ones, by its
//! scoped name.

use super::qname::clark;
use everywire_model::Shape;
use everywire_model::shape::{Alias, Text};
use std::borrow::Cow;

pub(super) const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";
pub(super) const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
pub(super) const SERIALIZATION: &str = "http://schemas.microsoft.com/2003/10/Serialization/";
pub(super) const ARRAYS: &str = "http://schemas.microsoft.com/2003/10/Serialization/Arrays";

/// The default namespace of types: by the part of the scoped name before the last `::`.
/// That is what .NET makes of a CLR namespace: `A::B::C` is type `C` of `A.B`.
fn clr_namespace(name: &str) -> String {
    let module = name.rsplit_once("::").map_or("", |(module, _)| module).replace("::", ".");
    format!("http://schemas.datacontract.org/2004/07/{module}")
}

fn last_part(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// Namespace and name of a named type: its identity in Clark notation, else as its scoped name has it.
/// What stands behind a semicolon in the identity is about collections (see `Collection`).
pub(super) fn type_name<'s>(id: &'s str, name: &'s str) -> (Cow<'s, str>, &'s str) {
    match clark(id) {
        Some((namespace, local)) => (Cow::Borrowed(namespace), local.split(';').next().unwrap_or(local)),
        None => (Cow::Owned(clr_namespace(name)), last_part(name)),
    }
}

/// Names in a collection that are not the default ones: `{ns}Name;item,key,value`.
pub(super) struct Collection<'s> {
    pub(super) namespace: &'s str,
    /// A leading `-` says that items are in no namespace.
    pub(super) item: Option<&'s str>,
    pub(super) key: Option<&'s str>,
    pub(super) value: Option<&'s str>,
}

/// What an alias says of the collection that it names.
pub(super) fn collection(alias: &Alias) -> Option<Collection<'_>> {
    let (namespace, local) = clark(&alias.id)?;
    let mut names = local.split(';').nth(1).unwrap_or_default().split(',').map(Some);
    let mut next = || names.next().flatten().filter(|name| !name.is_empty());
    Some(Collection { namespace, item: next(), key: next(), value: next() })
}

/// How a plain type that XML Schema has and the shapes do not is written.
/// Such values travel as text in the neutral model, so that none of their digits is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    Decimal,
    DateTime,
    QName,
    /// Elements in place of characters.
    Markup,
}

/// Namespace and name of a plain type that an alias stands for.
pub(super) fn plain_alias(alias: &Alias) -> Option<(&str, &str)> {
    let (namespace, local) = clark(&alias.id)?;
    if matches!(namespace, SCHEMA | SERIALIZATION) { Some((namespace, local)) } else { None }
}

/// The notation of a shape, if an alias of it says one.
pub(super) fn notation(shape: &Shape) -> Option<Notation> {
    let mut shape = shape;
    while let Shape::Alias(alias) = shape {
        match plain_alias(alias) {
            Some((SCHEMA, "decimal")) => return Some(Notation::Decimal),
            Some((SCHEMA, "dateTime")) => return Some(Notation::DateTime),
            Some((SCHEMA, "QName")) => return Some(Notation::QName),
            Some((SCHEMA, "anyXML")) => return Some(Notation::Markup),
            _ => shape = &alias.target,
        }
    }
    None
}

/// The name of a type as a data contract: what its elements are called inside a sequence.
/// .NET's rule for collections: `ArrayOf` and the contract name of the item.
pub(super) fn contract_name(shape: &Shape) -> String {
    match shape {
        Shape::Alias(alias) => match clark(&alias.id) {
            Some((_, local)) => local.split(';').next().unwrap_or(local).to_owned(),
            None => contract_name(&alias.target),
        },
        // Called by its members, as the service's WSDL calls it.
        Shape::Struct(shape) if shape.id.is_empty() && shape.name.is_empty() => {
            let members: Vec<String> = shape.fields.iter().map(|field| contract_name(&field.shape)).collect();
            format!("StructOf{}", members.concat())
        }
        Shape::Struct(shape) => type_name(&shape.id, &shape.name).1.to_owned(),
        Shape::Union(shape) => type_name(&shape.id, &shape.name).1.to_owned(),
        Shape::Enum(shape) => type_name(&shape.id, &shape.name).1.to_owned(),
        Shape::Optional(target) => contract_name(target),
        Shape::Pointer(pointer) => contract_name(&pointer.target),
        Shape::Map(map) => format!("ArrayOf{}", pair_name(&map.key, &map.value)),
        Shape::Sequence(_) | Shape::Array(_) => match shape.element() {
            Some(element) if !matches!(element.resolved(), Shape::U8) => {
                format!("ArrayOf{}", contract_name(element))
            }
            _ => "base64Binary".to_owned(),
        },
        other => schema_name(other).unwrap_or("anyType").to_owned(),
    }
}

/// The name of the elements of a map.
pub(super) fn pair_name(key: &Shape, value: &Shape) -> String {
    format!("KeyValueOf{}{}", contract_name(key), contract_name(value))
}

/// The namespace of the elements of a collection of these.
pub(super) fn item_namespace(element: &Shape) -> Cow<'_, str> {
    match element {
        Shape::Struct(shape) => type_name(&shape.id, &shape.name).0,
        Shape::Union(shape) => type_name(&shape.id, &shape.name).0,
        Shape::Enum(shape) => type_name(&shape.id, &shape.name).0,
        Shape::Optional(target) => item_namespace(target),
        Shape::Pointer(pointer) => item_namespace(&pointer.target),
        Shape::Alias(alias) => match clark(&alias.id) {
            Some((SCHEMA | SERIALIZATION, _)) => Cow::Borrowed(ARRAYS),
            Some((namespace, _)) => Cow::Borrowed(namespace),
            None => item_namespace(&alias.target),
        },
        _ => Cow::Borrowed(ARRAYS),
    }
}

/// The XML Schema (or serialization) name of a plain type.
pub(super) fn schema_name(shape: &Shape) -> Option<&'static str> {
    Some(match shape.resolved() {
        Shape::Bool => "boolean",
        Shape::U8 => "unsignedByte",
        Shape::I8 => "byte",
        Shape::U16 => "unsignedShort",
        Shape::I16 => "short",
        Shape::U32 => "unsignedInt",
        Shape::I32 => "int",
        Shape::U64 => "unsignedLong",
        Shape::I64 => "long",
        Shape::F32 => "float",
        Shape::F64 => "double",
        Shape::Char | Shape::WideChar => "char",
        Shape::Text(_) => "string",
        resolved @ (Shape::Sequence(_) | Shape::Array(_))
            if matches!(resolved.element().map(Shape::resolved), Some(Shape::U8)) =>
        {
            "base64Binary"
        }
        _ => return None,
    })
}

/// Namespace and name by which a value tells its own type (`i:type`).
pub(super) fn told_type(shape: &Shape) -> Option<(Cow<'_, str>, String)> {
    match shape {
        Shape::Alias(alias) => match clark(&alias.id) {
            Some((namespace, local)) => {
                let local = local.split(';').next().unwrap_or(local);
                Some((Cow::Borrowed(namespace), local.to_owned()))
            }
            None => told_type(&alias.target),
        },
        Shape::Struct(named) => {
            Some(type_name(&named.id, &named.name)).map(|(ns, name)| (ns, name.to_owned()))
        }
        Shape::Enum(named) => Some(type_name(&named.id, &named.name)).map(|(ns, name)| (ns, name.to_owned())),
        Shape::Char | Shape::WideChar => Some((Cow::Borrowed(SERIALIZATION), "char".to_owned())),
        Shape::Map(_) => Some((Cow::Borrowed(ARRAYS), contract_name(shape))),
        _ => match schema_name(shape) {
            Some(local) => Some((Cow::Borrowed(SCHEMA), local.to_owned())),
            None => Some((item_namespace(shape.element()?), contract_name(shape))),
        },
    }
}

/// How many `ArrayOf` the name of a value's own type may begin with.
/// The name comes from a peer, and each of them nests a shape.
const ARRAY_DEPTH: usize = 4;

/// The shape of a plain type or an array of such, by its name.
/// `None` for names that only a contract can explain.
pub(super) fn schema_shape(name: &str) -> Option<Shape> {
    let mut plain = name;
    let mut arrays = 0;
    while let Some(element) = plain.strip_prefix("ArrayOf") {
        plain = element;
        arrays += 1;
        if arrays > ARRAY_DEPTH {
            return None;
        }
    }
    (0..arrays).try_fold(plain_shape(plain)?, |shape, _| Some(Shape::sequence(shape)))
}

fn plain_shape(name: &str) -> Option<Shape> {
    use everywire_model::shape::Hold;
    let text = || Shape::Text(Text::WIDE);
    let typed = |namespace: &str| {
        let id = format!("{{{namespace}}}{name}").into();
        Shape::Alias(Hold::new(Alias { name: name.to_owned().into(), id, target: text() }))
    };
    Some(match name {
        "boolean" => Shape::Bool,
        "unsignedByte" => Shape::U8,
        "byte" => Shape::I8,
        "unsignedShort" => Shape::U16,
        "short" => Shape::I16,
        "unsignedInt" => Shape::U32,
        "int" => Shape::I32,
        "unsignedLong" => Shape::U64,
        "long" => Shape::I64,
        "float" => Shape::F32,
        "double" => Shape::F64,
        "char" => Shape::WideChar,
        "string" => text(),
        // Types without a neutral counterpart are carried in their notation.
        "decimal" | "dateTime" | "anyURI" | "QName" => typed(SCHEMA),
        "duration" | "guid" => typed(SERIALIZATION),
        "base64Binary" => Shape::sequence(Shape::U8),
        _ => return None,
    })
}
