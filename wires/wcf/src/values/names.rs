//! Names and namespaces of the data contract.

use super::Layout;
use everywire_model::Shape;
use everywire_model::shape::Text;

pub(super) const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";
pub(super) const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
pub(super) const SERIALIZATION: &str = "http://schemas.microsoft.com/2003/10/Serialization/";
pub(super) const ARRAYS: &str = "http://schemas.microsoft.com/2003/10/Serialization/Arrays";

/// The default namespace of types: by the part of the scoped name before the last `::`.
pub(super) fn clr_namespace(name: &str) -> String {
    let module = name.rsplit_once("::").map_or("", |(module, _)| module).replace("::", ".");
    format!("http://schemas.datacontract.org/2004/07/{module}")
}

fn last_part(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// The name of a type as a data contract: what its elements are called inside a sequence.
pub(super) fn contract_name(shape: &Shape) -> String {
    match shape.resolved() {
        Shape::Struct(shape) => last_part(&shape.name).to_owned(),
        Shape::Union(shape) => last_part(&shape.name).to_owned(),
        Shape::Enum(shape) => last_part(&shape.name).to_owned(),
        Shape::Optional(target) => contract_name(target),
        Shape::Pointer(pointer) => contract_name(&pointer.target),
        Shape::Map(map) => format!("ArrayOf{}", pair_name(&map.key, &map.value)),
        resolved @ (Shape::Sequence(_) | Shape::Array(_)) => match resolved.element() {
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

/// The namespace of the elements inside a value: of a struct its own, of a sequence that of its items.
pub(super) fn inner_namespace(shape: &Shape, layout: &Layout) -> String {
    let own = |name: &str| (layout.data_namespace)(name);
    match shape.resolved() {
        Shape::Struct(shape) => own(&shape.name),
        Shape::Union(shape) => own(&shape.name),
        resolved @ (Shape::Sequence(_) | Shape::Array(_)) => {
            let mut element = resolved.element().map_or(&Shape::Void, Shape::resolved);
            while let Shape::Optional(target) = element {
                element = target.resolved();
            }
            if let Shape::Pointer(pointer) = element {
                element = pointer.target.resolved();
            }
            match element {
                Shape::Struct(shape) => own(&shape.name),
                Shape::Union(shape) => own(&shape.name),
                Shape::Enum(shape) => own(&shape.name),
                _ => ARRAYS.to_owned(),
            }
        }
        _ => ARRAYS.to_owned(),
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
        resolved @ Shape::Sequence(_)
            if matches!(resolved.element().map(Shape::resolved), Some(Shape::U8)) =>
        {
            "base64Binary"
        }
        _ => return None,
    })
}

/// How many `ArrayOf` the name of a value's own type may begin with.
const ARRAY_DEPTH: usize = 4;

/// The shape of a plain type or an array of such, by its name.
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
        // Types without a neutral counterpart are carried in their notation.
        "string" | "decimal" | "dateTime" | "duration" | "guid" | "anyURI" => Shape::Text(Text::WIDE),
        "base64Binary" => Shape::sequence(Shape::U8),
        _ => return None,
    })
}
