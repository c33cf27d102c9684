//! What the files that every MIDL contract imports declare.
//!
//! Names that say no more than a width (`DWORD`) stand for the bare shape; names that mean something
//! (`HRESULT`, `DATE`) become aliases, so that they are kept.
//!
//! Two sources: the tables of this file, and `known.midl`, which is read in the background wherever one of
//! those files is imported. Such a file need not be there. Where it is, its own text is read as well, and a
//! contract may take any definition from it; where a file of the same name is something else, a word that it
//! lacks tells, and it counts as the contract's own.
//!
//! Invariants: a name of a table is known before any file is read, and a contract's own definition of it
//! changes nothing. A struct of the tables that a contract uses is put before the contract's definitions
//! (`complete`), so that a contract never refers to a type that it does not hold. Types with a size of the
//! machine (`DWORD_PTR`, `SIZE_T`) have 32 bits, since that is what 32-bit NDR carries.

use super::build::{Pointer, Ty, Typed};
use super::dispids::OF_CONTROLS;
use crate::empty::empty;
use crate::omg::preprocess::BuiltinFiles;
use everywire_model::shape::{Alias, Array, Field, Name, PointerKind, Referent, Struct, Text, TextKind};
use everywire_model::{Contract, Definition, Direction, Hold, Interface, Operation, Parameter, Shape};
use std::borrow::Cow;
use std::rc::Rc;

/// What is known without files.
pub(super) const ALL: BuiltinFiles =
    BuiltinFiles { is_file: file, text: include_str!("known.midl"), is_type };

/// Files that come with every compiler, and a word that each of them has wherever it comes from.
const FILES: &[(&str, &str)] = &[
    ("basetsd", "UINT_PTR"),
    ("comcat", "ICatInformation"),
    ("guiddef", "GUID"),
    ("ms-dtyp", "FILETIME"),
    ("objidl", "IMoniker"),
    ("objidlbase", "IMarshal"),
    ("oaidl", "IDispatch"),
    ("ocidl", "IConnectionPoint"),
    ("olectl", "DISPID_AUTOSIZE"),
    ("oleidl", "IOleObject"),
    ("mshtml", "IHTMLDocument"),
    ("propidl", "PROPVARIANT"),
    ("propidlbase", "PROPVARIANT"),
    ("propsys", "IPropertyStore"),
    ("rpc", "RPC_"),
    ("rpcndr", "NDR"),
    ("servprov", "IServiceProvider"),
    ("strmif", "IMediaSample"),
    ("unknwn", "IUnknown"),
    ("unknwnbase", "IUnknown"),
    ("winapifamily", "WINAPI_FAMILY"),
    ("windef", "HWND"),
    ("wtypes", "BSTR"),
    ("wtypesbase", "OLECHAR"),
];

/// Whether a file is one that comes with every compiler. `own` is the text of one of that name that is beside the contract: a copy of
/// such a file, or something else of the same name, which is part of the contract.
fn file(name: &str, own: Option<&str>) -> bool {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
    let (stem, extension) = name.rsplit_once('.').unwrap_or((&name, ""));
    let known = FILES.iter().find(|(known, _)| *known == stem);
    let known = known.filter(|_| matches!(extension, "idl" | "h" | "acf"));
    known.is_some_and(|(_, word)| own.is_none_or(|text| text.contains(word)))
}

/// Names of widths. Printers write the name that MIDL itself has for the width.
const BARE: &[(&str, Shape)] = &[
    ("BOOLEAN", Shape::Bool),
    ("BYTE", Shape::U8),
    ("CHAR", Shape::Char),
    ("DOUBLE", Shape::F64),
    ("DWORD", Shape::U32),
    ("DWORD32", Shape::U32),
    ("DWORD64", Shape::U64),
    ("DWORDLONG", Shape::U64),
    ("DWORD_PTR", Shape::U32),
    ("FLOAT", Shape::F32),
    ("HANDLE_PTR", Shape::U32),
    ("INT", Shape::I32),
    ("INT16", Shape::I16),
    ("INT32", Shape::I32),
    ("INT64", Shape::I64),
    ("INT8", Shape::I8),
    ("INT_PTR", Shape::I32),
    ("LONG", Shape::I32),
    ("LONG32", Shape::I32),
    ("LONG64", Shape::I64),
    ("LONGLONG", Shape::I64),
    ("LONG_PTR", Shape::I32),
    ("OLECHAR", Shape::WideChar),
    ("QWORD", Shape::U64),
    ("SHANDLE_PTR", Shape::I32),
    ("SHORT", Shape::I16),
    ("SIZE_T", Shape::U32),
    ("TCHAR", Shape::WideChar),
    ("UCHAR", Shape::U8),
    ("UINT", Shape::U32),
    ("UINT16", Shape::U16),
    ("UINT32", Shape::U32),
    ("UINT64", Shape::U64),
    ("UINT8", Shape::U8),
    ("UINT_PTR", Shape::U32),
    ("ULONG", Shape::U32),
    ("ULONG32", Shape::U32),
    ("ULONG64", Shape::U64),
    ("ULONGLONG", Shape::U64),
    ("ULONG_PTR", Shape::U32),
    ("USHORT", Shape::U16),
    ("WCHAR", Shape::WideChar),
    ("WORD", Shape::U16),
    ("VARIANT", Shape::Variant),
    ("VARIANTARG", Shape::Variant),
    ("BSTR", Shape::Text(Text { kind: TextKind::Counted, bound: None })),
];

/// Names that mean something. They stand in the contract as aliases.
const NAMED: &[(&str, Shape)] = &[
    ("BOOL", Shape::I32),
    ("WINBOOL", Shape::I32),
    ("CURRENCY", Shape::I64),
    ("CY", Shape::I64),
    ("DATE", Shape::F64),
    ("DISPID", Shape::I32),
    ("HRESULT", Shape::I32),
    ("LARGE_INTEGER", Shape::I64),
    ("LCID", Shape::U32),
    ("MEMBERID", Shape::I32),
    ("NTSTATUS", Shape::I32),
    ("OLE_COLOR", Shape::U32),
    ("OLE_HANDLE", Shape::U32),
    ("SCODE", Shape::I32),
    ("ULARGE_INTEGER", Shape::U64),
    ("VARIANT_BOOL", Shape::Bool),
    ("VARTYPE", Shape::U16),
    ("error_status_t", Shape::U32),
    ("net_address_t", Shape::U32),
];

/// Names of a GUID.
const GUIDS: &[&str] = &["CATID", "CLSID", "FMTID", "IID", "UUID", "uuid_t"];

/// Interfaces by name. Their IIDs are in the public headers. The methods of most are not known here: they can
/// be passed as references, and not called by this contract.
const INTERFACES: &[(&str, &str)] = &[
    ("IUnknown", "00000000-0000-0000-c000-000000000046"),
    ("IDispatch", "00020400-0000-0000-c000-000000000046"),
    ("IAdviseSink", "0000010f-0000-0000-c000-000000000046"),
    ("IBindCtx", "0000000e-0000-0000-c000-000000000046"),
    ("IClassFactory", "00000001-0000-0000-c000-000000000046"),
    ("IClassFactory2", "b196b28f-bab4-101a-b69c-00aa00341d07"),
    ("IConnectionPoint", "b196b286-bab4-101a-b69c-00aa00341d07"),
    ("IConnectionPointContainer", "b196b284-bab4-101a-b69c-00aa00341d07"),
    ("ICreateErrorInfo", "22f03340-547d-101b-8e65-08002b2bd119"),
    ("IDataObject", "0000010e-0000-0000-c000-000000000046"),
    ("IEnumConnectionPoints", "b196b285-bab4-101a-b69c-00aa00341d07"),
    ("IEnumConnections", "b196b287-bab4-101a-b69c-00aa00341d07"),
    ("IEnumFORMATETC", "00000103-0000-0000-c000-000000000046"),
    ("IEnumGUID", "0002e000-0000-0000-c000-000000000046"),
    ("IEnumMoniker", "00000102-0000-0000-c000-000000000046"),
    ("IEnumSTATDATA", "00000105-0000-0000-c000-000000000046"),
    ("IEnumSTATSTG", "0000000d-0000-0000-c000-000000000046"),
    ("IEnumString", "00000101-0000-0000-c000-000000000046"),
    ("IEnumUnknown", "00000100-0000-0000-c000-000000000046"),
    ("IEnumVARIANT", "00020404-0000-0000-c000-000000000046"),
    ("IErrorInfo", "1cf2b120-547d-101b-8e65-08002b2bd119"),
    ("IFont", "bef6e002-a874-101a-8bba-00aa00300cab"),
    ("IFontDisp", "bef6e003-a874-101a-8bba-00aa00300cab"),
    ("ILockBytes", "0000000a-0000-0000-c000-000000000046"),
    ("IMoniker", "0000000f-0000-0000-c000-000000000046"),
    ("IOleContainer", "0000011b-0000-0000-c000-000000000046"),
    ("IOleInPlaceSite", "00000119-0000-0000-c000-000000000046"),
    ("IPersist", "0000010c-0000-0000-c000-000000000046"),
    ("IPersistFile", "0000010b-0000-0000-c000-000000000046"),
    ("IPersistStorage", "0000010a-0000-0000-c000-000000000046"),
    ("IPersistStream", "00000109-0000-0000-c000-000000000046"),
    ("IPicture", "7bf80980-bf32-101a-8bbb-00aa00300cab"),
    ("IPictureDisp", "7bf80981-bf32-101a-8bbb-00aa00300cab"),
    ("IPropertyBag", "55272a00-42cb-11ce-8135-00aa004bb851"),
    ("IProvideClassInfo", "b196b283-bab4-101a-b69c-00aa00341d07"),
    ("IProvideClassInfo2", "a6bc3ac0-dbaa-11ce-9de3-00aa004bb851"),
    ("IRecordInfo", "0000002f-0000-0000-c000-000000000046"),
    ("IRunningObjectTable", "00000010-0000-0000-c000-000000000046"),
    ("ISequentialStream", "0c733a30-2a1c-11ce-ade5-00aa0044773d"),
    ("IServiceProvider", "6d5140c1-7436-11ce-8034-00aa006009fa"),
    ("IStorage", "0000000b-0000-0000-c000-000000000046"),
    ("IStream", "0000000c-0000-0000-c000-000000000046"),
    ("ISupportErrorInfo", "df0b3d60-548f-101b-8e65-08002b2bd119"),
    ("ITypeComp", "00020403-0000-0000-c000-000000000046"),
    ("ITypeInfo", "00020401-0000-0000-c000-000000000046"),
    ("ITypeLib", "00020402-0000-0000-c000-000000000046"),
];

/// Constants by name. What contracts compare with, such as the numbers of properties that Automation defines
/// (MS-OAUT 2.2.32).
const CONSTANTS: &[(&str, i64)] = &[
    ("DISPID_COLLECT", -8),
    ("DISPID_CONSTRUCTOR", -6),
    ("DISPID_DESTRUCTOR", -7),
    ("DISPID_EVALUATE", -5),
    ("DISPID_NEWENUM", -4),
    ("DISPID_PROPERTYPUT", -3),
    ("DISPID_UNKNOWN", -1),
    ("DISPID_VALUE", 0),
    ("MAX_PATH", 260),
];

/// The value of a constant.
pub(super) fn constant(name: &str) -> Option<i64> {
    let mut all = CONSTANTS.iter().chain(OF_CONTROLS);
    all.find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// The interface with this name.
pub(super) fn interface(name: &str) -> Option<Referent> {
    let (name, id) = INTERFACES.iter().find(|(known, _)| *known == name)?;
    Some(Referent { name: Name::from(*name), id: Name::from(*id) })
}

/// The name of an interface as it is spelled, where that differs in the case of letters only. Type libraries
/// find names in any case, and contracts rely on it.
pub(super) fn spelled(name: &str) -> Option<&'static str> {
    let same = |(known, _): &&(&'static str, &str)| known.eq_ignore_ascii_case(name) && *known != name;
    INTERFACES.iter().find(same).map(|(known, _)| *known)
}

/// Whether the interface is one of the two that everything is based on, which have no operations of their own
/// here. The three methods of `IUnknown` travel as calls of `IRemUnknown`, and those of `IDispatch` are for
/// callers by name, so neither counts in the numbers of operations here.
pub(super) fn is_root(name: &str) -> bool {
    matches!(name, "IUnknown" | "IDispatch")
}

/// `IUnknown`, or `IDispatch` on top of it, as bases. None for any other name.
pub(super) fn root(name: &str) -> Option<Hold<Interface>> {
    let bases = match name {
        "IUnknown" => Vec::new(),
        "IDispatch" => root("IUnknown").into_iter().collect(),
        _ => return None,
    };
    let Referent { name, id } = interface(name)?;
    Some(Hold::new(Interface { bases: Cow::Owned(bases), ..empty(name, id) }))
}

/// The interfaces that others are derived from and whose methods are known: IPersist, IClassFactory.
pub(super) fn base(name: &str) -> Option<Hold<Interface>> {
    let field = |name: &'static str, shape: Shape| Field { name: Name::from(name), shape };
    let out =
        |name: &'static str, shape: Shape| Parameter { direction: Direction::Out, field: field(name, shape) };
    let operations = match name {
        "IPersist" => {
            vec![Operation::new("GetClassID", vec![out("pClassID", alias("CLSID", guid()))], Shape::Void)]
        }
        // CreateInstance is for callers in the same process; another form of it travels, without the outer object.
        "IClassFactory" => {
            let riid = Parameter { direction: Direction::In, field: field("riid", alias("IID", guid())) };
            let any = Shape::Reference(Hold::new(Referent { name: Name::default(), id: Name::default() }));
            let lock =
                Parameter { direction: Direction::In, field: field("fLock", alias("BOOL", Shape::I32)) };
            vec![
                Operation::new(
                    "CreateInstance",
                    vec![riid, out("ppvObject", alias("iid_is(riid)", any))],
                    Shape::Void,
                ),
                Operation::new("LockServer", vec![lock], Shape::Void),
            ]
        }
        _ => return None,
    };
    let Referent { name, id } = interface(name)?;
    let bases = root("IUnknown").into_iter().collect();
    Some(Hold::new(Interface { bases, operations: Cow::Owned(operations), ..empty(name, id) }))
}

/// Whether a name is that of a type here; a contract's own definition of it changes nothing.
pub(super) fn is_type(name: &str) -> bool {
    value(name).is_some() || pointer(name).is_some() || is_root(name)
}

/// The type with this name.
pub(super) fn ty(name: &str) -> Option<Ty> {
    if let Some(shape) = value(name) {
        return Some(Ty::Value(Typed::leaf(shape)));
    }
    interface(name).map(Ty::Object).or_else(|| pointer(name))
}

/// The number that a name stands for. None where it is no number; used for `sizeof` and to tell a cast from
/// parentheses.
pub(super) fn number(name: &str) -> Option<Shape> {
    let shape = value(name)?;
    let plain = shape.resolved().clone();
    (plain.width().is_some() || matches!(plain, Shape::Char | Shape::WideChar)).then_some(plain)
}

/// A type that is no pointer. None where the name is unknown, or is that of a pointer.
fn value(name: &str) -> Option<Shape> {
    if let Some((_, shape)) = BARE.iter().find(|(known, _)| *known == name) {
        return Some(shape.clone());
    }
    if let Some((known, shape)) = NAMED.iter().find(|(known, _)| *known == name) {
        return Some(alias(known, shape.clone()));
    }
    Some(match name {
        "GUID" => guid(),
        "FILETIME" => record("FILETIME", &[("dwLowDateTime", Shape::U32), ("dwHighDateTime", Shape::U32)]),
        "SYSTEMTIME" => record(
            "SYSTEMTIME",
            &[
                ("wYear", Shape::U16),
                ("wMonth", Shape::U16),
                ("wDayOfWeek", Shape::U16),
                ("wDay", Shape::U16),
                ("wHour", Shape::U16),
                ("wMinute", Shape::U16),
                ("wSecond", Shape::U16),
                ("wMilliseconds", Shape::U16),
            ],
        ),
        "LUID" => record("LUID", &[("LowPart", Shape::U32), ("HighPart", Shape::I32)]),
        "POINT" => record("POINT", &[("x", Shape::I32), ("y", Shape::I32)]),
        "SIZE" => record("SIZE", &[("cx", Shape::I32), ("cy", Shape::I32)]),
        "RECT" => record(
            "RECT",
            &[("left", Shape::I32), ("top", Shape::I32), ("right", Shape::I32), ("bottom", Shape::I32)],
        ),
        // MS-OAUT 2.2.26: 16 bytes, of which the scale and the sign are one each.
        "DECIMAL" => alias(
            "DECIMAL",
            record(
                "tagDEC",
                &[
                    ("wReserved", Shape::U16),
                    ("scale", Shape::U8),
                    ("sign", Shape::U8),
                    ("Hi32", Shape::U32),
                    ("Lo64", Shape::U64),
                ],
            ),
        ),
        "SAFEARRAY" => safe_array(Shape::Variant),
        name if GUIDS.contains(&name) => alias(GUIDS.iter().find(|known| **known == name)?, guid()),
        _ => return None,
    })
}

/// A type that is a pointer: to text, or `P...`, `LP...` and `REF...` of another. None for a name that
/// follows no such rule.
fn pointer(name: &str) -> Option<Ty> {
    let text = match name {
        "LPSTR" | "LPCSTR" => Some(Shape::Char),
        "LPWSTR" | "LPCWSTR" | "LPOLESTR" | "LPCOLESTR" | "LPTSTR" | "LPCTSTR" | "LMSTR" | "PWSTR"
        | "PCWSTR" => Some(Shape::WideChar),
        _ => None,
    };
    let to = |ty: Ty, kind: Option<PointerKind>, string: bool| {
        Ty::Pointer(Rc::new(Pointer { to: ty, kind, string, levels: 1 }))
    };
    if let Some(shape) = text {
        return Some(to(Ty::Value(Typed::leaf(shape)), None, true));
    }
    // A pointer to nothing known: it travels only with `iid_is` or as the handle of a context.
    if matches!(name, "HANDLE" | "LPVOID" | "PVOID") {
        return Some(to(Ty::Void, None, false));
    }
    if let Some(target) = name.strip_prefix("REF") {
        let shape = if target == "GUID" || GUIDS.contains(&target) { value(target) } else { None };
        return shape.map(|shape| to(Ty::Value(Typed::leaf(shape)), Some(PointerKind::Ref), false));
    }
    let target = name.strip_prefix("LP").or_else(|| name.strip_prefix('P'))?;
    if let Some(shape) = value(target) {
        return Some(to(Ty::Value(Typed::leaf(shape)), None, false));
    }
    // `LPUNKNOWN` is a pointer to `IUnknown`: the name without its first letter, in any case.
    let known =
        |(name, _): &&(&str, &str)| name.get(1..).is_some_and(|bare| bare.eq_ignore_ascii_case(target));
    if name.starts_with("LP") {
        let (name, _) = INTERFACES.iter().find(known)?;
        return interface(name).map(|referent| to(Ty::Object(referent), None, false));
    }
    None
}

/// `SAFEARRAY(element)`.
pub(super) fn safe_array(element: Shape) -> Shape {
    alias("SAFEARRAY", Shape::sequence(element))
}

/// The handle of a context that the server keeps for a caller (C706, 14.2.16.6).
pub(super) fn context_handle() -> Shape {
    record("context_handle", &[("attributes", Shape::U32), ("uuid", guid())])
}

/// A GUID, field by field: its first three parts change their byte order with the machine's (C706, appendix
/// A).
fn guid() -> Shape {
    let tail = Shape::Array(Hold::new(Array { element: Shape::U8, len: 8 }));
    record("GUID", &[("Data1", Shape::U32), ("Data2", Shape::U16), ("Data3", Shape::U16), ("Data4", tail)])
}

/// A name that is kept around a shape.
fn alias(name: &'static str, target: Shape) -> Shape {
    Shape::Alias(Hold::new(Alias { name: Name::from(name), id: Name::default(), target }))
}

/// A struct without an id.
fn record(name: &'static str, fields: &[(&'static str, Shape)]) -> Shape {
    let fields = fields.iter().map(|(name, shape)| Field { name: Name::from(*name), shape: shape.clone() });
    let fields = Cow::Owned(fields.collect());
    Shape::Struct(Hold::new(Struct { name: Name::from(name), id: Name::default(), fields }))
}

/// The structs of this list that a contract uses, put before its own definitions: so the contract is complete.
pub(super) fn complete(contract: &mut Contract) {
    let mut used = UsedTypes::default();
    for definition in &contract.definitions {
        match definition {
            Definition::Type(shape) => used.parts(shape, 0),
            Definition::Exception(shape) => shape.fields.iter().for_each(|field| used.shape(&field.shape, 0)),
            Definition::Constant(_) => {}
            Definition::Interface(interface) => {
                for operation in interface.operations.iter().skip(interface.inherited) {
                    used.shape(&operation.returns, 0);
                    operation.parameters.iter().for_each(|p| used.shape(&p.field.shape, 0));
                }
            }
        }
    }
    let found = used.found.into_iter().map(Definition::Type);
    contract.definitions.splice(0..0, found);
}

#[derive(Default)]
struct UsedTypes {
    /// Names of structs that were met.
    names: Vec<Name>,
    /// The structs of the tables that are used, the inner ones first.
    found: Vec<Shape>,
}

impl UsedTypes {
    /// A use of a type; the definitions of a contract are looked into once each, where they stand.
    fn shape(&mut self, shape: &Shape, depth: usize) {
        match shape {
            Shape::Struct(known) if known.get().is_some_and(|known| is_struct(&known.name)) => {
                if !self.names.contains(&known.name) {
                    self.names.push(known.name.clone());
                    self.parts(shape, depth);
                    self.found.push(shape.clone());
                }
            }
            Shape::Struct(_) | Shape::Union(_) | Shape::Enum(_) => {}
            _ => self.parts(shape, depth),
        }
    }

    /// The depth is bounded because a contract's types may contain themselves by pointers.
    fn parts(&mut self, shape: &Shape, depth: usize) {
        if depth > crate::omg::limits::NESTING * 4 {
            return;
        }
        match shape {
            Shape::Struct(shape) => shape.fields.iter().for_each(|field| self.shape(&field.shape, depth + 1)),
            Shape::Union(shape) => {
                self.shape(&shape.discriminator, depth + 1);
                shape.arms.iter().for_each(|arm| self.shape(&arm.field.shape, depth + 1));
            }
            Shape::Sequence(shape) => self.shape(&shape.element, depth + 1),
            Shape::Array(shape) => self.shape(&shape.element, depth + 1),
            Shape::Optional(target) => self.shape(target, depth + 1),
            Shape::Pointer(pointer) => self.shape(&pointer.target, depth + 1),
            Shape::Alias(alias) => self.shape(&alias.target, depth + 1),
            Shape::Map(map) => {
                self.shape(&map.key, depth + 1);
                self.shape(&map.value, depth + 1);
            }
            _ => {}
        }
    }
}

/// Whether a struct of this name is known, so that MIDL need not define it.
pub(super) fn is_struct(name: &str) -> bool {
    matches!(
        name,
        "GUID" | "FILETIME" | "SYSTEMTIME" | "LUID" | "POINT" | "SIZE" | "RECT" | "tagDEC" | "context_handle"
    )
}
