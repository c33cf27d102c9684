//! Types as type information tells them (VARENUM, MS-OAUT 2.2.7).

use super::library::named;
use crate::ndr::is_decimal;
use everywire_model::shape::Shape;
use everywire_model::value::Value;

/// Any value.
pub(crate) const VT_VARIANT: u16 = 12;
/// No value: the return type of a method without a result.
pub(crate) const VT_VOID: u16 = 24;
/// A pointer to another type.
pub(crate) const VT_PTR: u16 = 26;
/// An array of another type.
pub(crate) const VT_SAFEARRAY: u16 = 27;

/// The type by which IDispatch carries values of a shape, as a TYPEDESC: the one that a VARIANT holds them by.
pub(super) fn typedesc(shape: &Shape) -> Value {
    match shape {
        Shape::Alias(alias) => match alias.name.rsplit("::").next().unwrap_or_default() {
            "CURRENCY" | "CY" => simple(6),
            "DATE" => simple(7),
            "SCODE" | "HRESULT" => simple(10),
            "INT" => simple(22),
            "UINT" => simple(23),
            _ => typedesc(&alias.target),
        },
        Shape::Void => simple(VT_VOID),
        Shape::Bool => simple(11),
        Shape::U8 => simple(17),
        Shape::I8 => simple(16),
        Shape::U16 => simple(18),
        Shape::I16 => simple(2),
        Shape::U32 => simple(19),
        Shape::I32 | Shape::Enum(_) => simple(3),
        Shape::U64 => simple(21),
        Shape::I64 => simple(20),
        Shape::F32 => simple(4),
        Shape::F64 => simple(5),
        Shape::Char | Shape::WideChar | Shape::Text(_) => simple(8),
        Shape::Reference(_) => simple(9),
        Shape::Sequence(_) | Shape::Array(_) => {
            let element = shape.element().unwrap_or(&Shape::Void);
            let plain = element.width().is_some() || matches!(element.resolved(), Shape::Text(_));
            behind(VT_SAFEARRAY, if plain { typedesc(element) } else { simple(VT_VARIANT) })
        }
        Shape::Struct(fields) if is_decimal(fields) => simple(14),
        Shape::Struct(_) => behind(VT_SAFEARRAY, simple(VT_VARIANT)),
        Shape::Union(_)
        | Shape::Map(_)
        | Shape::Optional(_)
        | Shape::Pointer(_)
        | Shape::Variant
        | Shape::TypeCode
        | Shape::Handle => simple(VT_VARIANT),
    }
}

/// The TYPEDESC of a type without parts.
pub(super) fn simple(vt: u16) -> Value {
    made(vt, None)
}

/// The TYPEDESC of a pointer to a type, or of an array of it.
pub(super) fn behind(vt: u16, target: Value) -> Value {
    made(vt, Some(Box::new(("lptdesc".to_owned(), target))))
}

/// A TYPEDESC: its type, and what that leads to.
fn made(vt: u16, arm: Option<Box<(String, Value)>>) -> Value {
    Value::Struct(vec![("_tdUnion".to_owned(), Value::Union(vt.into(), arm)), named("vt", vt)])
}

/// An ELEMDESC; `flags` are PARAMFLAGs (MS-OAUT 2.2.15).
pub(super) fn elemdesc(tdesc: Value, flags: u16) -> Value {
    let default = ("pparamdescex".to_owned(), Value::Nothing);
    let paramdesc = Value::Struct(vec![default, named("wParamFlags", flags)]);
    Value::Struct(vec![("tdesc".to_owned(), tdesc), ("paramdesc".to_owned(), paramdesc)])
}
