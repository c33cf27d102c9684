//! Types as type information tells them (VARENUM, MS-OAUT 2.2.7).

use crate::ndr::{is_decimal, vartype};
use crate::standard::contracts::{ELEMDESC, PARAMDESC, TYPEDESC, TypedescTdUnion};
use everywire_model::shape::Shape;

/// Any value.
pub(crate) const VT_VARIANT: u16 = 12;
/// No value: the return type of a method without a result.
pub(crate) const VT_VOID: u16 = 24;
/// A pointer to another type.
pub(crate) const VT_PTR: u16 = 26;
/// An array of another type.
pub(crate) const VT_SAFEARRAY: u16 = 27;

/// The type by which IDispatch carries values of a shape, as a TYPEDESC: the one that a VARIANT holds them by.
pub(super) fn typedesc(shape: &Shape) -> TYPEDESC {
    match shape.resolved() {
        Shape::Void => simple(VT_VOID),
        Shape::Char | Shape::WideChar => simple(8),
        Shape::Reference(_) => simple(9),
        Shape::Sequence(_) | Shape::Array(_) => {
            let element = shape.element().unwrap_or(&Shape::Void);
            let plain = element.width().is_some() || matches!(element.resolved(), Shape::Text(_));
            behind(VT_SAFEARRAY, if plain { typedesc(element) } else { simple(VT_VARIANT) })
        }
        Shape::Struct(fields) if is_decimal(fields) => simple(14),
        Shape::Struct(_) => behind(VT_SAFEARRAY, simple(VT_VARIANT)),
        Shape::Optional(_) | Shape::Pointer(_) | Shape::Variant => simple(VT_VARIANT),
        // Numbers, some of which have a name of their own, texts and enumerations; nothing else is more than a VARIANT.
        _ => simple(vartype(shape).unwrap_or(VT_VARIANT)),
    }
}

/// The TYPEDESC of a type without parts.
pub(super) fn simple(vt: u16) -> TYPEDESC {
    TYPEDESC { td_union: TypedescTdUnion::Empty(vt), vt }
}

/// The TYPEDESC of a pointer to a type, or of an array of it.
pub(super) fn behind(vt: u16, target: TYPEDESC) -> TYPEDESC {
    TYPEDESC { td_union: TypedescTdUnion::Lptdesc(vt, Some(Box::new(target))), vt }
}

/// An ELEMDESC; `flags` are PARAMFLAGs (MS-OAUT 2.2.15).
pub(super) fn elemdesc(tdesc: TYPEDESC, flags: u16) -> ELEMDESC {
    ELEMDESC { tdesc, paramdesc: PARAMDESC { pparamdescex: None, w_param_flags: flags } }
}
