//! The automation types: VARTYPEs and what they are in neutral terms (MS-OAUT 2.2.7, 2.2.29, 2.2.30).
//!
//! What is in a VARIANT says its type by a VARTYPE; a neutral value says it by its shape. `shape_of` and
//! `type_of` go back and forth. Both refuse everything that is no automation type.
//!
//! States: none.
//!
//! Invariants: `type_of(shape_of(vt))` is `vt` again for each type that is taken, since the types that share
//! a plain shape (CURRENCY and VT_I8, DATE and VT_R8) are told apart by the name of an alias. `plain` knows
//! exactly those that are one number, or nothing.
//!
//! A record (VT_RECORD), and a BSTR that is no text, are the structs that stand on the wire, with their octets. So one of them fails no
//! more than itself: whoever takes many VARIANTs in one call (IOPCSyncIO::Write) can judge each alone.

use super::layout::last_part;
use crate::violations::unsupported;
use everywire_model::describe::{alias, named, record, structure};
use everywire_model::shape::{
    Alias, Hold, Order, Pointer, PointerKind, Referent, Sequence, Shape, Struct, Text, TextKind,
};
use everywire_model::visit::Visit;
use std::borrow::Cow;

/// VT_EMPTY: no value at all.
pub(super) const EMPTY: u16 = 0;
/// The bit of a SAFEARRAY of the type in the low bits.
pub(super) const ARRAY: u16 = 0x2000;
/// The bit of a pointer to the type in the other bits.
pub(super) const BYREF: u16 = 0x4000;
/// VT_BOOL: 16 bits, all of them set for true.
pub(super) const BOOL: u16 = 11;
/// VT_VARIANT: never the type of a VARIANT alone, only of what `BYREF` points to or of an array's elements.
pub(super) const VARIANT: u16 = 12;
/// VT_BSTR: text, as most write it, but any octets are allowed.
pub(super) const BSTR: u16 = 8;
/// VT_DECIMAL: 16 octets, of which the first two are not used.
pub(super) const DECIMAL: u16 = 14;
/// VT_RECORD: a user's struct, whose layout is in a type library of the peer.
const RECORD: u16 = 36;

/// `sfType` of a SAFEARRAY of interface pointers that also says of which interface (SF_HAVEIID).
pub(super) const HAVE_IID: u32 = 0x800d;

/// `fFeatures` of a SAFEARRAY: the high word of `cLocks` is the VARTYPE of its elements.
pub(super) const HAVE_VARTYPE: u16 = 0x80;

/// The referent id that automation's marshalling writes for VARIANT and BSTR: the word `User`.
pub(super) const USER: u32 = 0x7265_7355;

/// Bytes of a wireVARIANT before its union's arm, discriminant included.
/// clSize, rpcReserved, vt, three reserved words, discriminant: 4 + 4 + 2 + 6 + 4.
pub(super) const HEADER: usize = 20;

/// `cBytes` of a null BSTR.
pub(super) const NULL_BSTR: u32 = u32::MAX;

// Types that share a neutral shape with a plainer one are told apart by the name of an alias.
static NULL: Alias = named("NULL", "", Shape::Void);
static CURRENCY: Alias = named("CURRENCY", "", Shape::I64);
static DATE: Alias = named("DATE", "", Shape::F64);
static SCODE: Alias = named("SCODE", "", Shape::I32);
static INT: Alias = named("INT", "", Shape::I32);
static UINT: Alias = named("UINT", "", Shape::U32);
static UNKNOWN: Referent = referent("IUnknown", "00000000-0000-0000-c000-000000000046");
/// What an IDispatch pointer leads to.
pub(crate) static DISPATCH: Referent = referent("IDispatch", "00020400-0000-0000-c000-000000000046");

const fn referent(name: &'static str, id: &'static str) -> Referent {
    Referent { name: Cow::Borrowed(name), id: Cow::Borrowed(id) }
}

static DECIMAL_STRUCT: Struct = record!("tagDEC", "", {
    "wReserved": Shape::U16, "scale": Shape::U8, "sign": Shape::U8, "Hi32": Shape::U32, "Lo64": Shape::U64,
});
static DECIMAL_ALIAS: Alias = named("DECIMAL", "", structure(&DECIMAL_STRUCT));

/// A DECIMAL, as a VARIANT holds it.
pub(crate) const DECIMAL_SHAPE: Shape = alias(&DECIMAL_ALIAS);

// A record as it travels (MS-OAUT 2.2.28.2.1): its octets, and an interface pointer (IRecordInfo) to what describes them.
static OCTETS_OF_POINTER: Sequence = sized(Shape::U8, "ulCntData");
static INTERFACE_POINTER: Struct = record!("MInterfacePointer", "", {
    "ulCntData": Shape::U32, "abData": Shape::Sequence(Hold::Static(&OCTETS_OF_POINTER)),
});
static TO_INTERFACE_POINTER: Pointer = unique(structure(&INTERFACE_POINTER));
static OCTETS_OF_RECORD: Sequence = sized(Shape::U8, "clSize");
static TO_OCTETS: Pointer = unique(Shape::Sequence(Hold::Static(&OCTETS_OF_RECORD)));
static RECORD_STRUCT: Struct = record!("wireBRECORD", "", {
    "fFlags": Shape::U32, "clSize": Shape::U32,
    "pRecInfo": Shape::Pointer(Hold::Static(&TO_INTERFACE_POINTER)), "pRecord": Shape::Pointer(Hold::Static(&TO_OCTETS)),
});
static TO_RECORD: Pointer = unique(structure(&RECORD_STRUCT));
static RECORD_SHAPE: Shape = Shape::Pointer(Hold::Static(&TO_RECORD));
// `VT_BYREF | VT_RECORD` has no pointer more on the wire (MS-OAUT 2.2.29.2).
static RECORD_BY_REFERENCE: Alias = named("VT_BYREF", "", Shape::Pointer(Hold::Static(&TO_RECORD)));

// A BSTR as it travels (MS-OAUT 2.2.23.1), whatever its octets are.
static UNITS: Sequence = sized(Shape::U16, "clSize");
static BLOB: Struct = record!("FLAGGED_WORD_BLOB", "", {
    "cBytes": Shape::U32, "clSize": Shape::U32, "asData": Shape::Sequence(Hold::Static(&UNITS)),
});
static TO_BLOB: Pointer = unique(structure(&BLOB));

const fn unique(target: Shape) -> Pointer {
    Pointer { kind: PointerKind::Unique, target }
}

const fn sized(element: Shape, size: &'static str) -> Sequence {
    Sequence { element, bound: None, order: Order::Conformant, size: Some(Cow::Borrowed(size)) }
}

/// Whether a struct is laid out as a DECIMAL: the only one that a VARIANT holds as it is (MS-OAUT 2.2.26).
pub(crate) fn is_decimal(shape: &Struct) -> bool {
    let widths = shape.fields.iter().map(|field| field.shape.width());
    widths.eq([Some(2), Some(1), Some(1), Some(4), Some(8)])
}

/// The shape of a VARIANT's content; a SAFEARRAY of several dimensions is a sequence of sequences.
/// A reference to a VARIANT is `Shape::Variant` itself: that is how a VARIANT inside of a VARIANT travels.
pub(crate) fn shape_of(vt: u16, dimensions: u32) -> Visit<Shape> {
    let base = vt & !(ARRAY | BYREF);
    match (vt & ARRAY != 0, base) {
        (false, VARIANT) if vt & BYREF != 0 => Ok(Shape::Variant),
        (true, VARIANT) => composed(vt, dimensions, Shape::Variant),
        _ => composed(vt, dimensions, scalar(base)?),
    }
}

/// The same of a VARIANT that came: it may be a record, which nobody here can make of another value.
pub(super) fn content_of(vt: u16, dimensions: u32) -> Visit<Shape> {
    match (vt & ARRAY != 0, vt & !(ARRAY | BYREF)) {
        (false, RECORD) if vt & BYREF != 0 => Ok(alias(&RECORD_BY_REFERENCE)),
        (_, RECORD) => composed(vt, dimensions, RECORD_SHAPE.clone()),
        _ => shape_of(vt, dimensions),
    }
}

/// The shape of a VARIANT's content that is a BSTR, or has some, of which one at least is no text: all are what stands on the wire.
pub(super) fn shape_of_blobs(vt: u16, dimensions: u32) -> Visit<Shape> {
    composed(vt, dimensions, Shape::Pointer(Hold::Static(&TO_BLOB)))
}

/// The remark on the shape of a SAFEARRAY in a VARIANT whose indices do not all begin with 0: `#from`, and the lower bound of each
/// dimension, the leftmost first. A remark goes wherever the shape goes, so bounds come back to this wire as they were.
const FROM: &str = "#from";

/// The shape of a VARIANT's content with the lower bounds of the SAFEARRAY that it is, or refers to.
pub(super) fn with_lower_bounds(shape: Shape, bounds: &[i32]) -> Shape {
    match shape {
        Shape::Pointer(pointer) => {
            let target = with_lower_bounds(pointer.target.clone(), bounds);
            Shape::Pointer(Hold::new(Pointer { kind: pointer.kind, target }))
        }
        target => {
            let id = bounds.iter().fold(FROM.to_owned(), |id, bound| format!("{id} {bound}")).into();
            Shape::Alias(Hold::new(Alias { name: Cow::Borrowed(""), id, target }))
        }
    }
}

/// What [`with_lower_bounds`] said of a shape; nothing where all are 0.
pub(super) fn lower_bounds(shape: &Shape) -> Vec<i32> {
    match shape {
        Shape::Pointer(pointer) => lower_bounds(&pointer.target),
        Shape::Alias(alias) if alias.name.is_empty() && alias.id.starts_with(FROM) => {
            let told = alias.id.split(' ').skip(1).map(str::parse);
            told.collect::<Result<_, _>>().unwrap_or_default()
        }
        Shape::Alias(alias) => lower_bounds(&alias.target),
        _ => Vec::new(),
    }
}

/// A SAFEARRAY of these and a reference to them, as far as the type says so.
fn composed(vt: u16, dimensions: u32, element: Shape) -> Visit<Shape> {
    let base = vt & !(ARRAY | BYREF);
    let content = match (vt & ARRAY != 0, base) {
        (false, _) => element,
        // A SAFEARRAY of nothing does not exist, and one of DECIMALs has no form on the wire (MS-OAUT
        // 2.2.30).
        (true, 0 | 1 | DECIMAL) => return Err(refused(vt)),
        (true, _) => (0..dimensions).fold(element, |element, _| Shape::sequence(element)),
    };
    match (vt & BYREF, base) {
        (0, _) => Ok(content),
        (_, 0 | 1) => Err(refused(vt)),
        _ => Ok(Shape::Pointer(Hold::new(Pointer { kind: PointerKind::Unique, target: content }))),
    }
}

#[cold]
fn refused(vt: u16) -> everywire_model::Failure {
    unsupported(format_args!("a VARIANT of type 0x{vt:04x}"))
}

/// What has a VARTYPE, which is the index, and no parts: its shape, and the bytes of one that is a number; 0 for what has no value.
static SCALARS: [Option<(Shape, Option<usize>)>; 24] = [
    Some((Shape::Void, Some(0))),      // VT_EMPTY
    Some((alias(&NULL), Some(0))),     // VT_NULL
    Some((Shape::I16, Some(2))),       // VT_I2
    Some((Shape::I32, Some(4))),       // VT_I4
    Some((Shape::F32, Some(4))),       // VT_R4
    Some((Shape::F64, Some(8))),       // VT_R8
    Some((alias(&CURRENCY), Some(8))), // VT_CY
    Some((alias(&DATE), Some(8))),     // VT_DATE
    Some((Shape::Text(Text { kind: TextKind::Counted, bound: None }), None)), // VT_BSTR
    Some((Shape::Reference(Hold::Static(&DISPATCH)), None)), // VT_DISPATCH
    Some((alias(&SCODE), Some(4))),    // VT_ERROR
    Some((Shape::Bool, Some(2))),      // VT_BOOL
    None,                              // VT_VARIANT, which is never alone
    Some((Shape::Reference(Hold::Static(&UNKNOWN)), None)), // VT_UNKNOWN
    Some((DECIMAL_SHAPE, None)),       // VT_DECIMAL
    None,
    Some((Shape::I8, Some(1))),    // VT_I1
    Some((Shape::U8, Some(1))),    // VT_UI1
    Some((Shape::U16, Some(2))),   // VT_UI2
    Some((Shape::U32, Some(4))),   // VT_UI4
    Some((Shape::I64, Some(8))),   // VT_I8
    Some((Shape::U64, Some(8))),   // VT_UI8
    Some((alias(&INT), Some(4))),  // VT_INT
    Some((alias(&UINT), Some(4))), // VT_UINT
];

/// The shape of what has a VARTYPE and no parts.
pub(crate) fn scalar(vt: u16) -> Visit<Shape> {
    let found = SCALARS.get(usize::from(vt)).and_then(Option::as_ref);
    found.map(|(shape, _)| shape.clone()).ok_or_else(|| refused(vt))
}

/// The shape of what has a VARTYPE and is one number, and the bytes that it takes; 0 for what has no value.
pub(crate) fn plain(vt: u16) -> Option<(&'static Shape, usize)> {
    let (shape, width) = SCALARS.get(usize::from(vt))?.as_ref()?;
    width.map(|width| (shape, width))
}

/// The VARTYPE of a shape.
pub(crate) fn type_of(shape: &Shape) -> Visit<u16> {
    Ok(match shape {
        Shape::Alias(alias) => match (last_part(&alias.name), alias.target.resolved()) {
            ("NULL", Shape::Void) => 1,
            ("CURRENCY" | "CY", Shape::I64) => 6,
            ("DATE", Shape::F64) => 7,
            ("SCODE" | "HRESULT", Shape::I32 | Shape::U32) => 10,
            ("INT", Shape::I32) => 22,
            ("UINT", Shape::U32) => 23,
            ("DECIMAL", Shape::Struct(shape)) if is_decimal(shape) => DECIMAL,
            ("VT_BYREF", target) if is_pointer_to(target, &RECORD_STRUCT) => BYREF | RECORD,
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
        Shape::Bool => BOOL,
        Shape::I8 => 16,
        Shape::U8 => 17,
        Shape::U16 => 18,
        Shape::U32 => 19,
        Shape::I64 => 20,
        Shape::U64 => 21,
        Shape::Variant => BYREF | VARIANT,
        // Automation knows no enumerations: they are VT_I4.
        Shape::Enum(_) => 3,
        Shape::Struct(shape)
            if matches!(last_part(&shape.name), "DECIMAL" | "tagDEC") && is_decimal(shape) =>
        {
            DECIMAL
        }
        pointer if is_pointer_to(pointer, &RECORD_STRUCT) => RECORD,
        pointer if is_pointer_to(pointer, &BLOB) => BSTR,
        Shape::Pointer(pointer) => match type_of(&pointer.target)? {
            // It would be the same on the wire as the record itself.
            RECORD => return Err(unsupported("such a pointer in a VARIANT")),
            vt if vt == BYREF | VARIANT => vt,
            vt if vt & BYREF == 0 && vt > 1 => BYREF | vt,
            _ => return Err(unsupported("such a pointer in a VARIANT")),
        },
        Shape::Sequence(sequence) => ARRAY | element_type(sequence)?,
        other => return Err(unsupported(format_args!("{} in a VARIANT", other.noun()))),
    })
}

/// Whether a shape is a pointer to a struct of this name with these fields, which travels as that one.
fn is_pointer_to(shape: &Shape, wanted: &Struct) -> bool {
    let Shape::Pointer(pointer) = shape else { return false };
    let Shape::Struct(found) = pointer.target.resolved() else { return false };
    let names = |shape: &'_ Struct| shape.fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>();
    last_part(&found.name) == wanted.name && names(found) == names(wanted)
}

/// The VARTYPE of the elements of a SAFEARRAY, whatever its dimensions.
pub(super) fn element_type(sequence: &Sequence) -> Visit<u16> {
    match sequence.element.resolved() {
        Shape::Variant => Ok(VARIANT),
        Shape::Sequence(inner) => element_type(inner),
        _ => match type_of(&sequence.element)? {
            vt if vt & (BYREF | ARRAY) == 0 && vt > 1 && vt != DECIMAL => Ok(vt),
            _ => Err(unsupported("such a sequence in a VARIANT")),
        },
    }
}

/// The dimensions of a sequence of sequences.
pub(super) fn dimensions(sequence: &Sequence) -> usize {
    let (mut sequence, mut count) = (sequence, 1);
    while let Shape::Sequence(inner) = sequence.element.resolved() {
        (sequence, count) = (inner, count + 1);
    }
    count
}

/// The discriminant of the union in a wireVARIANT.
/// An array says no more than that it is one (and whether behind a pointer): the type of its elements is in
/// `sfType` (MS-OAUT 2.2.29.1).
pub(super) fn discriminant(vt: u16) -> u32 {
    u32::from(if vt & ARRAY != 0 { vt & (ARRAY | BYREF) } else { vt })
}

/// How a SAFEARRAY holds its elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArrayFeatures {
    /// `sfType`, the discriminant of the union of element kinds: a VARTYPE, or the one that stands for all of
    /// the same width.
    pub(super) sf_type: u32,
    /// `fFeatures`: which kind of pointers the elements are (0x100 BSTR, 0x200 IUnknown, 0x400 IDispatch,
    /// 0x800 VARIANT, 0x20 records), and that the VARTYPE is kept.
    pub(super) features: u16,
    /// `cbElements`: bytes of an element in memory.
    pub(super) size: u32,
    /// Bytes of an element in place; pointers, if `deferred` says how their referents are aligned.
    pub(super) width: usize,
    pub(super) deferred: Option<usize>,
}

/// How a SAFEARRAY holds elements of a VARTYPE (MS-OAUT 2.2.8, 2.2.9).
pub(super) fn safearray_of(element: u16) -> Visit<ArrayFeatures> {
    let (sf_type, features, size, deferred) = match element {
        16 | 17 => (16, 0, 1, None),
        2 | 11 | 18 => (2, 0, 2, None),
        3 | 4 | 10 | 19 | 22 | 23 => (3, 0, 4, None),
        5..=7 | 20 | 21 => (20, 0, 8, None),
        8 => (8, 0x100, 4, Some(4)),
        9 => (9, 0x400, 4, Some(4)),
        VARIANT => (12, 0x800, 16, Some(8)),
        13 => (13, 0x200, 4, Some(4)),
        // How large one is in memory, its description says.
        RECORD => (36, 0x20, 4, Some(4)),
        _ => return Err(refused(ARRAY | element)),
    };
    let width = if deferred.is_some() { 4 } else { size as usize };
    Ok(ArrayFeatures { sf_type, features: HAVE_VARTYPE | features, size, width, deferred })
}
