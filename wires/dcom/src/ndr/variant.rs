//! The automation types: VARTYPEs and what they are in neutral terms (MS-OAUT 2.2.7, 2.2.29, 2.2.30).

use crate::violations::unsupported;
use everywire_model::shape::{Alias, Hold, Name, Pointer, PointerKind, Referent, Shape, Text, TextKind};
use everywire_model::visit::Visit;
use std::borrow::Cow;

pub(super) const EMPTY: u16 = 0;
pub(super) const ARRAY: u16 = 0x2000;
pub(super) const BYREF: u16 = 0x4000;
pub(super) const VARIANT: u16 = 12;

/// The referent id that automation's marshalling writes for VARIANT and BSTR: the word `User`.
pub(super) const USER: u32 = 0x7265_7355;

/// Bytes of a wireVARIANT before its union's arm, discriminant included.
pub(super) const HEADER: usize = 20;

/// `cBytes` of a null BSTR.
pub(super) const NULL_BSTR: u32 = u32::MAX;

const fn named(name: &'static str, target: Shape) -> Alias {
    Alias { name: Cow::Borrowed(name), id: Cow::Borrowed(""), target }
}

// Types that share a neutral shape with a plainer one are told apart by the name of an alias.
static NULL: Alias = named("NULL", Shape::Void);
static CURRENCY: Alias = named("CURRENCY", Shape::I64);
static DATE: Alias = named("DATE", Shape::F64);
static SCODE: Alias = named("SCODE", Shape::I32);
static INT: Alias = named("INT", Shape::I32);
static UINT: Alias = named("UINT", Shape::U32);
static UNKNOWN: Referent = referent("IUnknown", "00000000-0000-0000-c000-000000000046");
static DISPATCH: Referent = referent("IDispatch", "00020400-0000-0000-c000-000000000046");

const fn referent(name: &'static str, id: &'static str) -> Referent {
    Referent { name: Cow::Borrowed(name), id: Cow::Borrowed(id) }
}

/// The shape of a VARIANT's content.
pub(super) fn shape_of(vt: u16) -> Visit<Shape> {
    if vt == BYREF | VARIANT {
        return Ok(Shape::Variant);
    }
    if vt & BYREF != 0 && vt & ARRAY == 0 {
        let (kind, target) = (PointerKind::Unique, scalar(vt & !BYREF)?);
        return Ok(Shape::Pointer(Hold::new(Pointer { kind, target })));
    }
    match vt & ARRAY {
        0 => scalar(vt),
        _ if vt & BYREF == 0 => {
            let element = if vt & !ARRAY == VARIANT { Shape::Variant } else { scalar(vt & !ARRAY)? };
            Ok(Shape::sequence(element))
        }
        _ => Err(unsupported(format_args!("a VARIANT of type 0x{vt:04x}"))),
    }
}

fn scalar(vt: u16) -> Visit<Shape> {
    Ok(match vt {
        0 => Shape::Void,
        1 => Shape::Alias(Hold::Static(&NULL)),
        2 => Shape::I16,
        3 => Shape::I32,
        4 => Shape::F32,
        5 => Shape::F64,
        6 => Shape::Alias(Hold::Static(&CURRENCY)),
        7 => Shape::Alias(Hold::Static(&DATE)),
        8 => Shape::Text(Text { kind: TextKind::Counted, bound: None }),
        9 => Shape::Reference(Hold::Static(&DISPATCH)),
        10 => Shape::Alias(Hold::Static(&SCODE)),
        11 => Shape::Bool,
        13 => Shape::Reference(Hold::Static(&UNKNOWN)),
        16 => Shape::I8,
        17 => Shape::U8,
        18 => Shape::U16,
        19 => Shape::U32,
        20 => Shape::I64,
        21 => Shape::U64,
        22 => Shape::Alias(Hold::Static(&INT)),
        23 => Shape::Alias(Hold::Static(&UINT)),
        _ => return Err(unsupported(format_args!("a VARIANT of type 0x{vt:04x}"))),
    })
}

/// The VARTYPE of a shape.
pub(super) fn type_of(shape: &Shape) -> Visit<u16> {
    Ok(match shape {
        Shape::Alias(alias) => match (last_part(&alias.name), alias.target.resolved()) {
            ("NULL", Shape::Void) => 1,
            ("CURRENCY" | "CY", Shape::I64) => 6,
            ("DATE", Shape::F64) => 7,
            ("SCODE" | "HRESULT", Shape::I32 | Shape::U32) => 10,
            ("INT", Shape::I32) => 22,
            ("UINT", Shape::U32) => 23,
            _ => return type_of(&alias.target),
        },
        Shape::Void => EMPTY,
        Shape::I16 => 2,
        Shape::I32 => 3,
        Shape::F32 => 4,
        Shape::F64 => 5,
        Shape::Text(_) => 8,
        Shape::Reference(interface) if interface.id == DISPATCH.id || interface.name == DISPATCH.name => 9,
        Shape::Reference(_) => 13,
        Shape::Bool => 11,
        Shape::I8 => 16,
        Shape::U8 => 17,
        Shape::U16 => 18,
        Shape::U32 => 19,
        Shape::I64 => 20,
        Shape::U64 => 21,
        Shape::Variant => BYREF | VARIANT,
        Shape::Pointer(pointer) => match type_of(&pointer.target)? {
            vt if vt & (BYREF | ARRAY) == 0 && vt > 1 => BYREF | vt,
            _ => return Err(unsupported("such a pointer in a VARIANT")),
        },
        Shape::Sequence(sequence) if matches!(sequence.element.resolved(), Shape::Variant) => ARRAY | VARIANT,
        sequence @ Shape::Sequence(_) => match sequence.element().map(type_of).transpose()? {
            Some(vt) if vt & (BYREF | ARRAY) == 0 && vt > 1 => ARRAY | vt,
            _ => return Err(unsupported("such a sequence in a VARIANT")),
        },
        other => return Err(unsupported(format_args!("{} in a VARIANT", other.noun()))),
    })
}

fn last_part(name: &Name) -> &str {
    name.rsplit("::").next().unwrap_or_default()
}

/// The discriminant of the union in a wireVARIANT.
pub(super) fn discriminant(vt: u16) -> u32 {
    u32::from(if vt & ARRAY != 0 { vt & (ARRAY | BYREF) } else { vt })
}

/// How a SAFEARRAY holds elements of a VARTYPE: `sfType`, `fFeatures`, `cbElements`.
pub(super) fn safearray_of(element: u16) -> Visit<(u32, u16, u32)> {
    const HAVE_VARTYPE: u16 = 0x80;
    Ok(match element {
        16 | 17 => (16, HAVE_VARTYPE, 1),
        2 | 11 | 18 => (2, HAVE_VARTYPE, 2),
        3 | 4 | 10 | 19 | 22 | 23 => (3, HAVE_VARTYPE, 4),
        5..=7 | 20 | 21 => (20, HAVE_VARTYPE, 8),
        8 => (8, HAVE_VARTYPE | 0x100, 4),
        9 => (9, HAVE_VARTYPE | 0x400, 4),
        VARIANT => (12, HAVE_VARTYPE | 0x800, 16),
        13 => (13, HAVE_VARTYPE | 0x200, 4),
        _ => return Err(unsupported(format_args!("a SAFEARRAY of type 0x{element:04x}"))),
    })
}
