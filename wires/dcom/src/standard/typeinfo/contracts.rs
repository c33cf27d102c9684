//! ITypeInfo, ITypeLib and what they carry (MS-OAUT 2.2.37 to 2.2.45, 3.7.4, 3.11.4).
//!
//! Descriptions alone, in the order of the wire. Pointers that Windows calls "dirty" or reserved are kept as
//! numbers, and operations that never travel have their places, so that the numbers of the others are right.

use crate::standard::contracts::BSTR;
use crate::standard::guid::GUID;
use everywire_model::contract::{Interface, Operation};
use everywire_model::describe::{
    self, ANY_OBJECT, Shape, Struct, Union, arms, interface, operation, pointer, record, sequence, structure,
    union,
};

/// TYPEDESC (2.2.37).
pub(crate) static TYPEDESC: Struct =
    record!("TYPEDESC", "", { "_tdUnion": union(&TD_UNION), "vt": Shape::U16 });

/// What a TYPEDESC leads to: another type, an array, or a handle of a type with a name.
static TD_UNION: Union = arms!("_tdUnion", "", Shape::U16, {
    [26, 27] "lptdesc": pointer!(Unique, structure(&TYPEDESC)),
    [28] "lpadesc": pointer!(Unique, structure(&ARRAYDESC)),
    [29] "hreftype": Shape::U32,
});

static SAFEARRAYBOUND: Struct =
    record!("SAFEARRAYBOUND", "", { "cElements": Shape::U32, "lLbound": Shape::I32 });

/// ARRAYDESC (2.2.38).
static ARRAYDESC: Struct = record!("ARRAYDESC", "", {
    "tdescElem": structure(&TYPEDESC),
    "cDims": Shape::U16,
    "rgbounds": sequence!(structure(&SAFEARRAYBOUND), None, Conformant),
});

/// PARAMDESCEX (2.2.39).
static PARAMDESCEX: Struct =
    record!("PARAMDESCEX", "", { "cBytes": Shape::U32, "varDefaultValue": Shape::Variant });
/// PARAMDESC (2.2.40): flags of a parameter, and its default value.
static PARAMDESC: Struct = record!("PARAMDESC", "", {
    "pparamdescex": pointer!(Unique, structure(&PARAMDESCEX)),
    "wParamFlags": Shape::U16,
});

/// ELEMDESC (2.2.41).
pub(crate) static ELEMDESC: Struct =
    record!("ELEMDESC", "", { "tdesc": structure(&TYPEDESC), "paramdesc": structure(&PARAMDESC) });

/// FUNCDESC (2.2.42).
pub(crate) static FUNCDESC: Struct = record!("FUNCDESC", "", {
    "memid": Shape::I32,
    "lReserved1": pointer!(Unique, sequence!(Shape::I32, None, Conformant)),
    "lprgelemdescParam": pointer!(Unique, sequence!(structure(&ELEMDESC), None, Conformant)),
    "funckind": Shape::I32,
    "invkind": Shape::I32,
    "callconv": Shape::I32,
    "cParams": Shape::I16,
    "cParamsOpt": Shape::I16,
    "oVft": Shape::I16,
    "cReserved2": Shape::I16,
    "elemdescFunc": structure(&ELEMDESC),
    "wFuncFlags": Shape::U16,
});

/// What a VARDESC has: an offset in an instance, or the value of a constant.
static VD_UNION: Union = arms!("_vdUnion", "", Shape::I32, {
    [0, 1, 3] "oInst": Shape::U32,
    [2] "lpvarValue": pointer!(Unique, Shape::Variant),
});

/// VARDESC (2.2.43).
pub(crate) static VARDESC: Struct = record!("VARDESC", "", {
    "memid": Shape::I32,
    "lpstrReserved": pointer!(Unique, describe::WIDE_TEXT),
    "_vdUnion": union(&VD_UNION),
    "elemdescVar": structure(&ELEMDESC),
    "wVarFlags": Shape::U16,
    "varkind": Shape::I32,
});

/// TYPEATTR (2.2.44).
pub(crate) static TYPEATTR: Struct = record!("TYPEATTR", "", {
    "guid": GUID,
    "lcid": Shape::U32,
    "dwReserved1": Shape::U32,
    "dwReserved2": Shape::U32,
    "dwReserved3": Shape::U32,
    "lpstrReserved4": pointer!(Unique, describe::WIDE_TEXT),
    "cbSizeInstance": Shape::U32,
    "typekind": Shape::I32,
    "cFuncs": Shape::U16,
    "cVars": Shape::U16,
    "cImplTypes": Shape::U16,
    "cbSizeVft": Shape::U16,
    "cbAlignment": Shape::U16,
    "wTypeFlags": Shape::U16,
    "wMajorVerNum": Shape::U16,
    "wMinorVerNum": Shape::U16,
    "tdescAlias": structure(&TYPEDESC),
    "dwReserved5": Shape::U32,
    "wReserved6": Shape::U16,
});

/// TLIBATTR (2.2.45).
static TLIBATTR: Struct = record!("TLIBATTR", "", {
    "guid": GUID,
    "lcid": Shape::U32,
    "syskind": Shape::I32,
    "wMajorVerNum": Shape::U16,
    "wMinorVerNum": Shape::U16,
    "wLibFlags": Shape::U16,
});

/// ITypeInfo.
pub(crate) static TYPE_INFO: Interface =
    interface!("ITypeInfo", "00020401-0000-0000-c000-000000000046", [], 0, &TYPE_INFO_OPERATIONS);

static TYPE_INFO_OPERATIONS: [Operation; 16] = [
    operation!("GetTypeAttr", (out "ppTypeAttr": pointer!(Unique, structure(&TYPEATTR)), out "pReserved": Shape::U32)
        -> Shape::Void),
    operation!("GetTypeComp", (out "ppTComp": ANY_OBJECT) -> Shape::Void),
    operation!("GetFuncDesc", (
        in "index": Shape::U32, out "ppFuncDesc": pointer!(Unique, structure(&FUNCDESC)), out "pReserved": Shape::U32,
    ) -> Shape::Void),
    operation!("GetVarDesc", (
        in "index": Shape::U32, out "ppVarDesc": pointer!(Unique, structure(&VARDESC)), out "pReserved": Shape::U32,
    ) -> Shape::Void),
    operation!("GetNames", (
        in "memid": Shape::I32, in "cMaxNames": Shape::U32,
        out "max": Shape::U32, out "rgBstrNames": sequence!(BSTR, None, Varying), out "pcNames": Shape::U32,
    ) -> Shape::Void),
    operation!("GetRefTypeOfImplType", (in "index": Shape::U32, out "pRefType": Shape::U32) -> Shape::Void),
    operation!("GetImplTypeFlags", (in "index": Shape::U32, out "pImplTypeFlags": Shape::I32) -> Shape::Void),
    operation!("Opnum10NotUsedOnWire", () -> Shape::Void),
    operation!("Opnum11NotUsedOnWire", () -> Shape::Void),
    operation!("GetDocumentation", (
        in "memid": Shape::I32, in "refPtrFlags": Shape::U32,
        out "pBstrName": BSTR, out "pBstrDocString": BSTR, out "pdwHelpContext": Shape::U32, out "pBstrHelpFile": BSTR,
    ) -> Shape::Void),
    operation!("GetDllEntry", (
        in "memid": Shape::I32, in "invKind": Shape::I32, in "refPtrFlags": Shape::U32,
        out "pBstrDllName": BSTR, out "pBstrName": BSTR, out "pwOrdinal": Shape::U16,
    ) -> Shape::Void),
    operation!("GetRefTypeInfo", (in "hRefType": Shape::U32, out "ppTInfo": ANY_OBJECT) -> Shape::Void),
    operation!("Opnum15NotUsedOnWire", () -> Shape::Void),
    operation!("CreateInstance", (in "riid": GUID, out "ppvObj": ANY_OBJECT) -> Shape::Void),
    operation!("GetMops", (in "memid": Shape::I32, out "pBstrMops": BSTR) -> Shape::Void),
    operation!("GetContainingTypeLib", (out "ppTLib": ANY_OBJECT, out "pIndex": Shape::U32) -> Shape::Void),
];

/// GetTypeAttr.
pub(crate) static GET_TYPE_ATTR: &Operation = &TYPE_INFO_OPERATIONS[0];
/// GetFuncDesc.
pub(crate) static GET_FUNC_DESC: &Operation = &TYPE_INFO_OPERATIONS[2];
/// GetVarDesc.
pub(crate) static GET_VAR_DESC: &Operation = &TYPE_INFO_OPERATIONS[3];
/// GetNames.
pub(crate) static GET_NAMES: &Operation = &TYPE_INFO_OPERATIONS[4];
/// GetRefTypeOfImplType.
pub(crate) static GET_REF_TYPE_OF_IMPL_TYPE: &Operation = &TYPE_INFO_OPERATIONS[5];
/// GetImplTypeFlags.
pub(crate) static GET_IMPL_TYPE_FLAGS: &Operation = &TYPE_INFO_OPERATIONS[6];
/// GetDocumentation.
pub(crate) static GET_DOCUMENTATION: &Operation = &TYPE_INFO_OPERATIONS[9];
/// GetRefTypeInfo.
pub(crate) static GET_REF_TYPE_INFO: &Operation = &TYPE_INFO_OPERATIONS[11];

/// ITypeLib.
pub(crate) static TYPE_LIB: Interface =
    interface!("ITypeLib", "00020402-0000-0000-c000-000000000046", [], 0, &TYPE_LIB_OPERATIONS);

static TYPE_LIB_OPERATIONS: [Operation; 8] = [
    operation!("GetTypeInfoCount", (out "pcTInfo": Shape::U32) -> Shape::Void),
    operation!("GetTypeInfo", (in "index": Shape::U32, out "ppTInfo": ANY_OBJECT) -> Shape::Void),
    operation!("GetTypeInfoType", (in "index": Shape::U32, out "pTKind": Shape::I32) -> Shape::Void),
    operation!("GetTypeInfoOfGuid", (in "guid": GUID, out "ppTInfo": ANY_OBJECT) -> Shape::Void),
    operation!("GetLibAttr", (out "ppTLibAttr": pointer!(Unique, structure(&TLIBATTR)), out "pReserved": Shape::U32)
        -> Shape::Void),
    operation!("GetTypeComp", (out "ppTComp": ANY_OBJECT) -> Shape::Void),
    operation!("GetDocumentation", (
        in "index": Shape::I32, in "refPtrFlags": Shape::U32,
        out "pBstrName": BSTR, out "pBstrDocString": BSTR, out "pdwHelpContext": Shape::U32, out "pBstrHelpFile": BSTR,
    ) -> Shape::Void),
    operation!("IsName", (
        in "szNameBuf": describe::WIDE_TEXT, in "lHashVal": Shape::U32,
        out "pfName": Shape::I32, out "pBstrNameInLibrary": BSTR,
    ) -> Shape::Void),
];

/// What tells the whole contract of an object of this implementation, which type information cannot: as MIDL.
pub(crate) static CONTRACT: Interface =
    interface!("IEverywireContract", "3d1f2c64-7c0b-5b0e-8f5a-5a5c6f0e2b71", [], 0, &CONTRACT_OPERATIONS);

static CONTRACT_OPERATIONS: [Operation; 1] = [
    operation!("GetContract", (out "midl": BSTR, out "names": sequence!(BSTR, None, Conformant)) -> Shape::Void),
];

/// GetContract.
pub(crate) static GET_CONTRACT: &Operation = &CONTRACT_OPERATIONS[0];
