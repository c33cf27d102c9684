//! RPC itself, COM, automation, and what is often seen beside them in captures of Windows networks (WMI, the
//! registry, accounts).
//!
//! The numbers of an interface count from `first`: 3 for COM's, whose first three operations are those of
//! IUnknown, and 0 for those of plain DCE/RPC. An interface whose operations never travel, or are of no
//! interest, has an empty list.
//!
//! States: none, the table is constant.
//!
//! Invariants: no interface stands here twice, nor in the table of OPC (a test holds it). Names are those of
//! the specifications, without `Rem` or `_Proxy` of other tools. `IUnknown` is listed with its operations,
//! for traces of programs that send them although they never should.

use super::Known;
use crate::{
    ENDPOINT_MAPPER, IDISPATCH, IUNKNOWN, MANAGEMENT, OBJECT_EXPORTER, REM_UNKNOWN, REM_UNKNOWN2,
    REMOTE_ACTIVATION, SCM_ACTIVATOR,
};
use uuid::uuid;

/// Looked through from the front: it is asked for people who read, never for a call.
pub(super) const INTERFACES: &[Known] = &[
    Known {
        id: ENDPOINT_MAPPER,
        name: "epmapper",
        first: 0,
        operations: &[
            "ept_insert",
            "ept_delete",
            "ept_lookup",
            "ept_map",
            "ept_lookup_handle_free",
            "ept_inq_object",
            "ept_mgmt_delete",
        ],
    },
    Known {
        id: MANAGEMENT,
        name: "mgmt",
        first: 0,
        operations: &[
            "inq_if_ids",
            "inq_stats",
            "is_server_listening",
            "stop_server_listening",
            "inq_princ_name",
        ],
    },
    Known {
        id: OBJECT_EXPORTER,
        name: "IObjectExporter",
        first: 0,
        operations: &[
            "ResolveOxid",
            "SimplePing",
            "ComplexPing",
            "ServerAlive",
            "ResolveOxid2",
            "ServerAlive2",
        ],
    },
    Known { id: REMOTE_ACTIVATION, name: "IRemoteActivation", first: 0, operations: &["RemoteActivation"] },
    Known {
        id: SCM_ACTIVATOR,
        name: "IRemoteSCMActivator",
        first: 3,
        operations: &["RemoteGetClassObject", "RemoteCreateInstance"],
    },
    Known {
        id: REM_UNKNOWN,
        name: "IRemUnknown",
        first: 3,
        operations: &["RemQueryInterface", "RemAddRef", "RemRelease"],
    },
    Known {
        id: REM_UNKNOWN2,
        name: "IRemUnknown2",
        first: 3,
        operations: &["RemQueryInterface", "RemAddRef", "RemRelease", "RemQueryInterface2"],
    },
    Known { id: IUNKNOWN, name: "IUnknown", first: 0, operations: &["QueryInterface", "AddRef", "Release"] },
    Known {
        id: uuid!("00000001-0000-0000-c000-000000000046"),
        name: "IClassFactory",
        first: 3,
        operations: &["CreateInstance", "LockServer"],
    },
    Known {
        id: uuid!("000001a2-0000-0000-c000-000000000046"),
        name: "IActivationPropertiesIn",
        first: 3,
        operations: &[],
    },
    Known {
        id: uuid!("000001a3-0000-0000-c000-000000000046"),
        name: "IActivationPropertiesOut",
        first: 3,
        operations: &[],
    },
    Known { id: uuid!("000001c0-0000-0000-c000-000000000046"), name: "IContext", first: 3, operations: &[] },
    Known {
        id: IDISPATCH,
        name: "IDispatch",
        first: 3,
        operations: &["GetTypeInfoCount", "GetTypeInfo", "GetIDsOfNames", "Invoke"],
    },
    Known {
        id: uuid!("00020401-0000-0000-c000-000000000046"),
        name: "ITypeInfo",
        first: 3,
        operations: &[
            "GetTypeAttr",
            "GetTypeComp",
            "GetFuncDesc",
            "GetVarDesc",
            "GetNames",
            "GetRefTypeOfImplType",
            "GetImplTypeFlags",
            "GetIDsOfNames",
            "Invoke",
            "GetDocumentation",
            "GetDllEntry",
            "GetRefTypeInfo",
            "AddressOfMember",
            "CreateInstance",
            "GetMops",
            "GetContainingTypeLib",
        ],
    },
    Known {
        id: uuid!("00020402-0000-0000-c000-000000000046"),
        name: "ITypeLib",
        first: 3,
        operations: &[
            "GetTypeInfoCount",
            "GetTypeInfo",
            "GetTypeInfoType",
            "GetTypeInfoOfGuid",
            "GetLibAttr",
            "GetTypeComp",
            "GetDocumentation",
            "IsName",
            "FindName",
        ],
    },
    Known {
        id: uuid!("00020403-0000-0000-c000-000000000046"),
        name: "ITypeComp",
        first: 3,
        operations: &["Bind", "BindType"],
    },
    Known { id: uuid!("00020411-0000-0000-c000-000000000046"), name: "ITypeLib2", first: 3, operations: &[] },
    Known {
        id: uuid!("00020412-0000-0000-c000-000000000046"),
        name: "ITypeInfo2",
        first: 3,
        operations: &[],
    },
    Known {
        id: uuid!("b196b283-bab4-101a-b69c-00aa00341d07"),
        name: "IProvideClassInfo",
        first: 3,
        operations: &["GetClassInfo"],
    },
    Known {
        id: uuid!("a6bc3ac0-dbaa-11ce-9de3-00aa004bb851"),
        name: "IProvideClassInfo2",
        first: 3,
        operations: &["GetClassInfo", "GetGUID"],
    },
    Known {
        id: uuid!("1cf2b120-547d-101b-8e65-08002b2bd119"),
        name: "IErrorInfo",
        first: 3,
        operations: &["GetGUID", "GetSource", "GetDescription", "GetHelpFile", "GetHelpContext"],
    },
    Known {
        id: uuid!("df0b3d60-548f-101b-8e65-08002b2bd119"),
        name: "ISupportErrorInfo",
        first: 3,
        operations: &["InterfaceSupportsErrorInfo"],
    },
    Known {
        id: uuid!("b196b284-bab4-101a-b69c-00aa00341d07"),
        name: "IConnectionPointContainer",
        first: 3,
        operations: &["EnumConnectionPoints", "FindConnectionPoint"],
    },
    Known {
        id: uuid!("b196b286-bab4-101a-b69c-00aa00341d07"),
        name: "IConnectionPoint",
        first: 3,
        operations: &[
            "GetConnectionInterface",
            "GetConnectionPointContainer",
            "Advise",
            "Unadvise",
            "EnumConnections",
        ],
    },
    Known {
        id: uuid!("b196b285-bab4-101a-b69c-00aa00341d07"),
        name: "IEnumConnectionPoints",
        first: 3,
        operations: &["Next", "Skip", "Reset", "Clone"],
    },
    Known {
        id: uuid!("b196b287-bab4-101a-b69c-00aa00341d07"),
        name: "IEnumConnections",
        first: 3,
        operations: &["Next", "Skip", "Reset", "Clone"],
    },
    Known {
        id: uuid!("00000100-0000-0000-c000-000000000046"),
        name: "IEnumUnknown",
        first: 3,
        operations: &["Next", "Skip", "Reset", "Clone"],
    },
    Known {
        id: uuid!("00000101-0000-0000-c000-000000000046"),
        name: "IEnumString",
        first: 3,
        operations: &["Next", "Skip", "Reset", "Clone"],
    },
    Known {
        id: uuid!("00020404-0000-0000-c000-000000000046"),
        name: "IEnumVARIANT",
        first: 3,
        operations: &["Next", "Skip", "Reset", "Clone"],
    },
    Known {
        id: uuid!("0002e000-0000-0000-c000-000000000046"),
        name: "IEnumGUID",
        first: 3,
        operations: &["Next", "Skip", "Reset", "Clone"],
    },
    Known { id: uuid!("12345778-1234-abcd-ef00-0123456789ac"), name: "samr", first: 0, operations: &[] },
    Known { id: uuid!("12345778-1234-abcd-ef00-0123456789ab"), name: "lsarpc", first: 0, operations: &[] },
    Known { id: uuid!("338cd001-2244-31f1-aaaa-900038001003"), name: "winreg", first: 0, operations: &[] },
    Known { id: uuid!("3dde7c30-165d-11d1-ab8f-00805f14db40"), name: "BackupKey", first: 0, operations: &[] },
    Known {
        id: uuid!("f309ad18-d86a-11d0-a075-00c04fb68820"),
        name: "IWbemLevel1Login",
        first: 3,
        operations: &["EstablishPosition", "RequestChallenge", "WBEMLogin", "NTLMLogin"],
    },
    Known {
        id: uuid!("d4781cd6-e5d3-44df-ad94-930efe48a887"),
        name: "IWbemLoginClientID",
        first: 3,
        operations: &["SetClientInfo"],
    },
    Known {
        id: uuid!("9556dc99-828c-11cf-a37e-00aa003240c7"),
        name: "IWbemServices",
        first: 3,
        operations: &[
            "OpenNamespace",
            "CancelAsyncCall",
            "QueryObjectSink",
            "GetObject",
            "GetObjectAsync",
            "PutClass",
            "PutClassAsync",
            "DeleteClass",
            "DeleteClassAsync",
            "CreateClassEnum",
            "CreateClassEnumAsync",
            "PutInstance",
            "PutInstanceAsync",
            "DeleteInstance",
            "DeleteInstanceAsync",
            "CreateInstanceEnum",
            "CreateInstanceEnumAsync",
            "ExecQuery",
            "ExecQueryAsync",
            "ExecNotificationQuery",
            "ExecNotificationQueryAsync",
            "ExecMethod",
            "ExecMethodAsync",
        ],
    },
];
