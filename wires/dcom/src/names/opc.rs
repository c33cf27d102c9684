//! OPC Classic Data Access 2.05a and 3.0, and OPC Common 1.1.
//!
//! The operations are those of the OPC Foundation's `opcda.idl` and `opccomn.idl`, in the order of the files;
//! derived interfaces repeat those of their bases.

use super::Known;
use uuid::uuid;

interfaces! {
    uuid!("f31dfde1-07b6-11d2-b2d8-0060083ba1fb") => IOPCShutdown from 3 [ShutdownRequest];
    uuid!("f31dfde2-07b6-11d2-b2d8-0060083ba1fb") => IOPCCommon from 3 [
        SetLocaleID GetLocaleID QueryAvailableLocaleIDs GetErrorString SetClientName
    ];
    uuid!("13486d50-4821-11d2-a494-3cb306c10000") => IOPCServerList from 3 [
        EnumClassesOfCategories GetClassDetails CLSIDFromProgID
    ];
    uuid!("55c382c8-21c7-4e88-96c1-becfb1e3f483") => IOPCEnumGUID from 3 [Next Skip Reset Clone];
    uuid!("9dd0b56c-ad9e-43ee-8305-487f3188bf7a") => IOPCServerList2 from 3 [
        EnumClassesOfCategories GetClassDetails CLSIDFromProgID
    ];
    uuid!("39c13a4d-011e-11d0-9675-0020afd8adb3") => IOPCServer from 3 [
        AddGroup GetErrorString GetGroupByName GetStatus RemoveGroup CreateGroupEnumerator
    ];
    uuid!("39c13a4e-011e-11d0-9675-0020afd8adb3") => IOPCServerPublicGroups from 3 [
        GetPublicGroupByName RemovePublicGroup
    ];
    uuid!("39c13a4f-011e-11d0-9675-0020afd8adb3") => IOPCBrowseServerAddressSpace from 3 [
        QueryOrganization ChangeBrowsePosition BrowseOPCItemIDs GetItemID BrowseAccessPaths
    ];
    uuid!("39c13a50-011e-11d0-9675-0020afd8adb3") => IOPCGroupStateMgt from 3 [
        GetState SetState SetName CloneGroup
    ];
    uuid!("39c13a51-011e-11d0-9675-0020afd8adb3") => IOPCPublicGroupStateMgt from 3 [GetState MoveToPublic];
    uuid!("39c13a52-011e-11d0-9675-0020afd8adb3") => IOPCSyncIO from 3 [Read Write];
    uuid!("39c13a53-011e-11d0-9675-0020afd8adb3") => IOPCAsyncIO from 3 [Read Write Refresh Cancel];
    uuid!("39c13a54-011e-11d0-9675-0020afd8adb3") => IOPCItemMgt from 3 [
        AddItems ValidateItems RemoveItems SetActiveState SetClientHandles SetDatatypes CreateEnumerator
    ];
    uuid!("39c13a55-011e-11d0-9675-0020afd8adb3") => IEnumOPCItemAttributes from 3 [Next Skip Reset Clone];
    uuid!("39c13a70-011e-11d0-9675-0020afd8adb3") => IOPCDataCallback from 3 [
        OnDataChange OnReadComplete OnWriteComplete OnCancelComplete
    ];
    uuid!("39c13a71-011e-11d0-9675-0020afd8adb3") => IOPCAsyncIO2 from 3 [
        Read Write Refresh2 Cancel2 SetEnable GetEnable
    ];
    uuid!("39c13a72-011e-11d0-9675-0020afd8adb3") => IOPCItemProperties from 3 [
        QueryAvailableProperties GetItemProperties LookupItemIDs
    ];
    uuid!("5946da93-8b39-4ec8-ab3d-aa73df5bc86f") => IOPCItemDeadbandMgt from 3 [
        SetItemDeadband GetItemDeadband ClearItemDeadband
    ];
    uuid!("3e22d313-f08b-41a5-86c8-95e95cb49ffc") => IOPCItemSamplingMgt from 3 [
        SetItemSamplingRate GetItemSamplingRate ClearItemSamplingRate SetItemBufferEnable
        GetItemBufferEnable
    ];
    uuid!("39227004-a18f-4b57-8b0a-5235670f4468") => IOPCBrowse from 3 [GetProperties Browse];
    uuid!("85c0b427-2893-4cbc-bd78-e5fc5146f08f") => IOPCItemIO from 3 [Read WriteVQT];
    uuid!("730f5f0f-55b1-4c81-9e18-ff8a0904e1fa") => IOPCSyncIO2 from 3 [Read Write ReadMaxAge WriteVQT];
    uuid!("0967b97b-36ef-423e-b6f8-6bff1e40d39d") => IOPCAsyncIO3 from 3 [
        Read Write Refresh2 Cancel2 SetEnable GetEnable ReadMaxAge WriteVQT RefreshMaxAge
    ];
    uuid!("8e368666-d72e-4f78-87ed-647611c61c9f") => IOPCGroupStateMgt2 from 3 [
        GetState SetState SetName CloneGroup SetKeepAlive GetKeepAlive
    ];
}
