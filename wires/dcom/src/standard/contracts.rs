//! The interfaces that every node serves for its objects (MS-OAUT 3.1.4, 3.7.4; MS-COMOLE's connection points).
//!
//! Results named `hresult` are those of [`super::keeps_hresult`]: the method tells its HRESULT itself.
//!
//! These are descriptions alone, in the order of the operations on the wire; the servants are in `points`,
//! `dispatch` and `typeinfo`.

use super::guid::GUID;
use everywire_model::contract::{Interface, Operation};
use everywire_model::describe::{
    self, ANY_OBJECT, Shape, Struct, TextKind, interface, operation, pointer, record, sequence, structure,
};
use uuid::{Uuid, uuid};

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

/// IConnectionPointContainer.
pub static CONNECTION_POINT_CONTAINER: Interface = interface!(
    "IConnectionPointContainer",
    "b196b284-bab4-101a-b69c-00aa00341d07",
    [],
    0,
    &CONTAINER_OPERATIONS
);

static CONTAINER_OPERATIONS: [Operation; 2] = [
    operation!("EnumConnectionPoints", (out "ppEnum": ANY_OBJECT) -> Shape::Void),
    operation!("FindConnectionPoint", (in "riid": GUID, out "ppCP": ANY_OBJECT) -> Shape::Void),
];

/// FindConnectionPoint.
pub static FIND_CONNECTION_POINT: &Operation = &CONTAINER_OPERATIONS[1];

/// IConnectionPoint.
pub static CONNECTION_POINT: Interface =
    interface!("IConnectionPoint", "b196b286-bab4-101a-b69c-00aa00341d07", [], 0, &POINT_OPERATIONS);

static POINT_OPERATIONS: [Operation; 5] = [
    operation!("GetConnectionInterface", (out "pIID": GUID) -> Shape::Void),
    operation!("GetConnectionPointContainer", (out "ppCPC": ANY_OBJECT) -> Shape::Void),
    operation!("Advise", (in "pUnkSink": ANY_OBJECT, out "pdwCookie": Shape::U32) -> Shape::Void),
    operation!("Unadvise", (in "dwCookie": Shape::U32) -> Shape::Void),
    operation!("EnumConnections", (out "ppEnum": ANY_OBJECT) -> Shape::Void),
];

/// Advise.
pub static ADVISE: &Operation = &POINT_OPERATIONS[2];
/// Unadvise.
pub static UNADVISE: &Operation = &POINT_OPERATIONS[3];

/// IUnknown, whose operations never travel.
pub static UNKNOWN: Interface = interface!("IUnknown", "00000000-0000-0000-c000-000000000046", [], 0, &[]);

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
        in "riid": GUID, in "rgszNames": sequence!(describe::WIDE_TEXT, None, Conformant), in "cNames": Shape::U32, in "lcid": Shape::U32,
        out "rgDispId": sequence!(Shape::I32, None, Conformant), out "hresult": Shape::U32,
    ) -> Shape::Void),
    operation!("Invoke", (
        in "dispIdMember": Shape::I32, in "riid": GUID, in "lcid": Shape::U32, in "dwFlags": Shape::U32,
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

/// IProvideClassInfo2, which begins with IProvideClassInfo.
pub static PROVIDE_CLASS_INFO2: Interface = interface!(
    "IProvideClassInfo2",
    "a6bc3ac0-dbaa-11ce-9de3-00aa004bb851",
    [&PROVIDE_CLASS_INFO],
    1,
    &CLASS_INFO_OPERATIONS
);

/// IProvideClassInfo.
pub static PROVIDE_CLASS_INFO: Interface =
    interface!("IProvideClassInfo", "b196b283-bab4-101a-b69c-00aa00341d07", [], 0, &CLASS_INFO1_OPERATIONS);

static CLASS_INFO1_OPERATIONS: [Operation; 1] =
    [operation!("GetClassInfo", (out "ppTI": ANY_OBJECT) -> Shape::Void)];

static CLASS_INFO_OPERATIONS: [Operation; 2] = [
    operation!("GetClassInfo", (out "ppTI": ANY_OBJECT) -> Shape::Void),
    operation!("GetGUID", (in "dwGuidKind": Shape::U32, out "pGUID": GUID) -> Shape::Void),
];

/// GetClassInfo.
pub static GET_CLASS_INFO: &Operation = &CLASS_INFO1_OPERATIONS[0];
