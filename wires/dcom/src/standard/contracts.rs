//! The interfaces that every node serves for its objects (MS-OAUT 3.1.4, 3.7.4; MS-COMOLE's connection points).
//!
//! All but IDispatch, which MIDL takes for known, and what tells a whole contract, which MIDL has no words for, are in MIDL
//! (`contracts/standard.idl`); types and descriptions were generated from it, and a test of the generator holds both together. There
//! are no traits: servants answer by the numbers of operations, calls name the operation.
//!
//! Results named `hresult` are those of [`super::keeps_hresult`]: the method tells its HRESULT itself.

use everywire_model::contract::{Interface, Operation};
use everywire_model::describe::{
    self, ANY_OBJECT, Shape, Struct, TextKind, interface, operation, pointer, record, sequence, structure,
};
use uuid::{Uuid, uuid};

/// What MIDL says of connection points, enumerators and type information.
#[allow(dead_code, unreachable_pub, clippy::pedantic, clippy::enum_variant_names)]
mod generated {
    include!("../../generated/standard.rs");
}

pub use generated::describe::{
    GUID as GUID_STRUCT, I_CLASS_FACTORY as CLASS_FACTORY, I_CONNECTION_POINT as CONNECTION_POINT,
    I_CONNECTION_POINT_CONTAINER as CONNECTION_POINT_CONTAINER,
    I_ENUM_CONNECTION_POINTS as ENUM_CONNECTION_POINTS, I_ENUM_CONNECTIONS as ENUM_CONNECTIONS,
    I_ENUM_GUID as ENUM_GUID, I_ENUM_STRING as ENUM_STRING, I_ENUM_UNKNOWN as ENUM_UNKNOWN,
    I_OBJECT_EXPORTER as OBJECT_EXPORTER, I_PROVIDE_CLASS_INFO as PROVIDE_CLASS_INFO,
    I_PROVIDE_CLASS_INFO2 as PROVIDE_CLASS_INFO2, I_REM_UNKNOWN as REM_UNKNOWN,
    I_REM_UNKNOWN2 as REM_UNKNOWN2, I_REMOTE_ACTIVATION as REMOTE_ACTIVATION,
    I_REMOTE_SCM_ACTIVATOR as REMOTE_SCM_ACTIVATOR, I_TYPE_INFO as TYPE_INFO, I_TYPE_LIB as TYPE_LIB,
    I_UNKNOWN as UNKNOWN,
};
pub(crate) use generated::{
    ELEMDESC, FUNCDESC, GUID, PARAMDESC, TLIBATTR, TYPEATTR, TYPEDESC, TypedescTdUnion, VARDESC,
};

/// IConnectionPointContainer.
pub const CONNECTION_POINT_CONTAINER_ID: Uuid = uuid!("b196b284-bab4-101a-b69c-00aa00341d07");
/// IEnumConnectionPoints.
pub const ENUM_CONNECTION_POINTS_ID: Uuid = uuid!("b196b285-bab4-101a-b69c-00aa00341d07");
/// IConnectionPoint.
pub const CONNECTION_POINT_ID: Uuid = uuid!("b196b286-bab4-101a-b69c-00aa00341d07");
/// IEnumConnections.
pub const ENUM_CONNECTIONS_ID: Uuid = uuid!("b196b287-bab4-101a-b69c-00aa00341d07");
/// IProvideClassInfo.
pub const PROVIDE_CLASS_INFO_ID: Uuid = uuid!("b196b283-bab4-101a-b69c-00aa00341d07");
/// IProvideClassInfo2.
pub const PROVIDE_CLASS_INFO2_ID: Uuid = uuid!("a6bc3ac0-dbaa-11ce-9de3-00aa004bb851");
/// ITypeInfo.
pub const TYPE_INFO_ID: Uuid = uuid!("00020401-0000-0000-c000-000000000046");
/// ITypeLib.
pub const TYPE_LIB_ID: Uuid = uuid!("00020402-0000-0000-c000-000000000046");

/// A counted wide string of the automation types.
pub const BSTR: Shape = describe::text(TextKind::Counted, None);

/// FindConnectionPoint.
pub static FIND_CONNECTION_POINT: &Operation =
    &generated::describe::I_CONNECTION_POINT_CONTAINER_OPERATIONS[1];

/// What objects may have beside their contract and what that leads to, and what contracts use without defining it: connection points and
/// enumerators. Those of type information are not among them: an object tells it of itself.
pub(crate) static COMMON: [&Interface; 8] = [
    &UNKNOWN,
    &CONNECTION_POINT_CONTAINER,
    &ENUM_CONNECTION_POINTS,
    &CONNECTION_POINT,
    &ENUM_CONNECTIONS,
    &ENUM_STRING,
    &ENUM_GUID,
    &ENUM_UNKNOWN,
];

/// Advise.
pub static ADVISE: &Operation = &generated::describe::I_CONNECTION_POINT_OPERATIONS[2];
/// Unadvise.
pub static UNADVISE: &Operation = &generated::describe::I_CONNECTION_POINT_OPERATIONS[3];

/// GetClassInfo.
pub(crate) static GET_CLASS_INFO: &Operation = &generated::describe::I_PROVIDE_CLASS_INFO_OPERATIONS[0];

/// IDispatch (MS-OAUT 3.1.4).
pub static DISPATCH: Interface =
    interface!("IDispatch", "00020400-0000-0000-c000-000000000046", [], 0, &DISPATCH_OPERATIONS);

/// DISPPARAMS (MS-OAUT 2.2.33).
static DISPPARAMS: Struct = record!("DISPPARAMS", "", {
    "rgvarg": pointer!(Unique, sequence!(Shape::Variant, None, Conformant)),
    "rgdispidNamedArgs": pointer!(Unique, sequence!(Shape::I32, None, Conformant)),
    "cArgs": Shape::U32,
    "cNamedArgs": Shape::U32,
});

/// EXCEPINFO (MS-OAUT 2.2.34).
static EXCEPINFO: Struct = record!("EXCEPINFO", "", {
    "wCode": Shape::U16,
    "wReserved": Shape::U16,
    "bstrSource": BSTR,
    "bstrDescription": BSTR,
    "bstrHelpFile": BSTR,
    "dwHelpContext": Shape::U32,
    "pvReserved": Shape::U32,
    "pfnDeferredFillIn": Shape::U32,
    "scode": Shape::U32,
});

static DISPATCH_OPERATIONS: [Operation; 4] = [
    operation!("GetTypeInfoCount", (out "pctinfo": Shape::U32) -> Shape::Void),
    operation!("GetTypeInfo", (in "iTInfo": Shape::U32, in "lcid": Shape::U32, out "ppTInfo": ANY_OBJECT) -> Shape::Void),
    operation!("GetIDsOfNames", (
        in "riid": structure(&GUID_STRUCT), in "rgszNames": sequence!(describe::WIDE_TEXT, None, Conformant), in "cNames": Shape::U32, in "lcid": Shape::U32,
        out "rgDispId": sequence!(Shape::I32, None, Conformant), out "hresult": Shape::U32,
    ) -> Shape::Void),
    operation!("Invoke", (
        in "dispIdMember": Shape::I32, in "riid": structure(&GUID_STRUCT), in "lcid": Shape::U32, in "dwFlags": Shape::U32,
        in "pDispParams": structure(&DISPPARAMS), out "pVarResult": Shape::Variant,
        out "pExcepInfo": structure(&EXCEPINFO), out "pArgErr": Shape::U32, in "cVarRef": Shape::U32,
        in "rgVarRefIdx": sequence!(Shape::U32, None, Conformant), inout "rgVarRef": sequence!(Shape::Variant, None, Conformant),
        out "hresult": Shape::U32,
    ) -> Shape::Void),
];

/// GetTypeInfo.
pub static GET_TYPE_INFO: &Operation = &DISPATCH_OPERATIONS[1];
/// GetIDsOfNames.
pub static GET_IDS_OF_NAMES: &Operation = &DISPATCH_OPERATIONS[2];
/// Invoke.
pub static INVOKE: &Operation = &DISPATCH_OPERATIONS[3];

/// What tells the whole contract of an object of this implementation, which type information cannot: as MIDL.
pub(crate) static CONTRACT: Interface =
    interface!("IEverywireContract", "3d1f2c64-7c0b-5b0e-8f5a-5a5c6f0e2b71", [], 0, &CONTRACT_OPERATIONS);

static CONTRACT_OPERATIONS: [Operation; 1] = [
    operation!("GetContract", (out "midl": BSTR, out "names": sequence!(BSTR, None, Conformant)) -> Shape::Void),
];

/// GetContract.
pub(crate) static GET_CONTRACT: &Operation = &CONTRACT_OPERATIONS[0];
