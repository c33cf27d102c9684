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

// Looked through from the front: it is asked for people who read, never for a call.
interfaces! {
    ENDPOINT_MAPPER => epmapper from 0 [
        ept_insert ept_delete ept_lookup ept_map ept_lookup_handle_free ept_inq_object ept_mgmt_delete
    ];
    MANAGEMENT => mgmt from 0 [inq_if_ids inq_stats is_server_listening stop_server_listening inq_princ_name];
    OBJECT_EXPORTER => IObjectExporter from 0 [
        ResolveOxid SimplePing ComplexPing ServerAlive ResolveOxid2 ServerAlive2
    ];
    REMOTE_ACTIVATION => IRemoteActivation from 0 [RemoteActivation];
    SCM_ACTIVATOR => IRemoteSCMActivator from 3 [RemoteGetClassObject RemoteCreateInstance];
    REM_UNKNOWN => IRemUnknown from 3 [RemQueryInterface RemAddRef RemRelease];
    REM_UNKNOWN2 => IRemUnknown2 from 3 [RemQueryInterface RemAddRef RemRelease RemQueryInterface2];
    IUNKNOWN => IUnknown from 0 [QueryInterface AddRef Release];
    uuid!("00000001-0000-0000-c000-000000000046") => IClassFactory from 3 [CreateInstance LockServer];
    uuid!("000001a2-0000-0000-c000-000000000046") => IActivationPropertiesIn from 3 [];
    uuid!("000001a3-0000-0000-c000-000000000046") => IActivationPropertiesOut from 3 [];
    uuid!("000001c0-0000-0000-c000-000000000046") => IContext from 3 [];
    IDISPATCH => IDispatch from 3 [GetTypeInfoCount GetTypeInfo GetIDsOfNames Invoke];
    uuid!("00020401-0000-0000-c000-000000000046") => ITypeInfo from 3 [
        GetTypeAttr GetTypeComp GetFuncDesc GetVarDesc GetNames GetRefTypeOfImplType GetImplTypeFlags
        GetIDsOfNames Invoke GetDocumentation GetDllEntry GetRefTypeInfo AddressOfMember CreateInstance
        GetMops GetContainingTypeLib
    ];
    uuid!("00020402-0000-0000-c000-000000000046") => ITypeLib from 3 [
        GetTypeInfoCount GetTypeInfo GetTypeInfoType GetTypeInfoOfGuid GetLibAttr GetTypeComp
        GetDocumentation IsName FindName
    ];
    uuid!("00020403-0000-0000-c000-000000000046") => ITypeComp from 3 [Bind BindType];
    uuid!("00020411-0000-0000-c000-000000000046") => ITypeLib2 from 3 [];
    uuid!("00020412-0000-0000-c000-000000000046") => ITypeInfo2 from 3 [];
    uuid!("b196b283-bab4-101a-b69c-00aa00341d07") => IProvideClassInfo from 3 [GetClassInfo];
    uuid!("a6bc3ac0-dbaa-11ce-9de3-00aa004bb851") => IProvideClassInfo2 from 3 [GetClassInfo GetGUID];
    uuid!("1cf2b120-547d-101b-8e65-08002b2bd119") => IErrorInfo from 3 [
        GetGUID GetSource GetDescription GetHelpFile GetHelpContext
    ];
    uuid!("df0b3d60-548f-101b-8e65-08002b2bd119") => ISupportErrorInfo from 3 [InterfaceSupportsErrorInfo];
    uuid!("b196b284-bab4-101a-b69c-00aa00341d07") => IConnectionPointContainer from 3 [
        EnumConnectionPoints FindConnectionPoint
    ];
    uuid!("b196b286-bab4-101a-b69c-00aa00341d07") => IConnectionPoint from 3 [
        GetConnectionInterface GetConnectionPointContainer Advise Unadvise EnumConnections
    ];
    uuid!("b196b285-bab4-101a-b69c-00aa00341d07") => IEnumConnectionPoints from 3 [Next Skip Reset Clone];
    uuid!("b196b287-bab4-101a-b69c-00aa00341d07") => IEnumConnections from 3 [Next Skip Reset Clone];
    uuid!("00000100-0000-0000-c000-000000000046") => IEnumUnknown from 3 [Next Skip Reset Clone];
    uuid!("00000101-0000-0000-c000-000000000046") => IEnumString from 3 [Next Skip Reset Clone];
    uuid!("00020404-0000-0000-c000-000000000046") => IEnumVARIANT from 3 [Next Skip Reset Clone];
    uuid!("0002e000-0000-0000-c000-000000000046") => IEnumGUID from 3 [Next Skip Reset Clone];
    uuid!("12345778-1234-abcd-ef00-0123456789ac") => samr from 0 [];
    uuid!("12345778-1234-abcd-ef00-0123456789ab") => lsarpc from 0 [];
    uuid!("338cd001-2244-31f1-aaaa-900038001003") => winreg from 0 [];
    uuid!("3dde7c30-165d-11d1-ab8f-00805f14db40") => BackupKey from 0 [];
    uuid!("f309ad18-d86a-11d0-a075-00c04fb68820") => IWbemLevel1Login from 3 [
        EstablishPosition RequestChallenge WBEMLogin NTLMLogin
    ];
    uuid!("d4781cd6-e5d3-44df-ad94-930efe48a887") => IWbemLoginClientID from 3 [SetClientInfo];
    uuid!("9556dc99-828c-11cf-a37e-00aa003240c7") => IWbemServices from 3 [
        OpenNamespace CancelAsyncCall QueryObjectSink GetObject GetObjectAsync PutClass PutClassAsync
        DeleteClass DeleteClassAsync CreateClassEnum CreateClassEnumAsync PutInstance PutInstanceAsync
        DeleteInstance DeleteInstanceAsync CreateInstanceEnum CreateInstanceEnumAsync ExecQuery
        ExecQueryAsync ExecNotificationQuery ExecNotificationQueryAsync ExecMethod ExecMethodAsync
    ];
}
