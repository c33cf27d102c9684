//! OPC Classic Data Access 2.05a and 3.0, and OPC Common 1.1.
//!
//! The operations are those of the OPC Foundation's `opcda.idl` and `opccomn.idl`, in the order of the files;
//! derived interfaces repeat those of their bases.

use super::Known;
use uuid::uuid;

pub(super) const INTERFACES: &[Known] = &[
    Known {
        id: uuid!("f31dfde1-07b6-11d2-b2d8-0060083ba1fb"),
        name: "IOPCShutdown",
        first: 3,
        operations: &["ShutdownRequest"],
    },
    Known {
        id: uuid!("f31dfde2-07b6-11d2-b2d8-0060083ba1fb"),
        name: "IOPCCommon",
        first: 3,
        operations: &[
            "SetLocaleID",
            "GetLocaleID",
            "QueryAvailableLocaleIDs",
            "GetErrorString",
            "SetClientName",
        ],
    },
    Known {
        id: uuid!("13486d50-4821-11d2-a494-3cb306c10000"),
        name: "IOPCServerList",
        first: 3,
        operations: &["EnumClassesOfCategories", "GetClassDetails", "CLSIDFromProgID"],
    },
    Known {
        id: uuid!("55c382c8-21c7-4e88-96c1-becfb1e3f483"),
        name: "IOPCEnumGUID",
        first: 3,
        operations: &["Next", "Skip", "Reset", "Clone"],
    },
    Known {
        id: uuid!("9dd0b56c-ad9e-43ee-8305-487f3188bf7a"),
        name: "IOPCServerList2",
        first: 3,
        operations: &["EnumClassesOfCategories", "GetClassDetails", "CLSIDFromProgID"],
    },
    Known {
        id: uuid!("39c13a4d-011e-11d0-9675-0020afd8adb3"),
        name: "IOPCServer",
        first: 3,
        operations: &[
            "AddGroup",
            "GetErrorString",
            "GetGroupByName",
            "GetStatus",
            "RemoveGroup",
            "CreateGroupEnumerator",
        ],
    },
    Known {
        id: uuid!("39c13a4e-011e-11d0-9675-0020afd8adb3"),
        name: "IOPCServerPublicGroups",
        first: 3,
        operations: &["GetPublicGroupByName", "RemovePublicGroup"],
    },
    Known {
        id: uuid!("39c13a4f-011e-11d0-9675-0020afd8adb3"),
        name: "IOPCBrowseServerAddressSpace",
        first: 3,
        operations: &[
            "QueryOrganization",
            "ChangeBrowsePosition",
            "BrowseOPCItemIDs",
            "GetItemID",
            "BrowseAccessPaths",
        ],
    },
    Known {
        id: uuid!("39c13a50-011e-11d0-9675-0020afd8adb3"),
        name: "IOPCGroupStateMgt",
        first: 3,
        operations: &["GetState", "SetState", "SetName", "CloneGroup"],
    },
    Known {
        id: uuid!("39c13a51-011e-11d0-9675-0020afd8adb3"),
        name: "IOPCPublicGroupStateMgt",
        first: 3,
        operations: &["GetState", "MoveToPublic"],
    },
    Known {
        id: uuid!("39c13a52-011e-11d0-9675-0020afd8adb3"),
        name: "IOPCSyncIO",
        first: 3,
        operations: &["Read", "Write"],
    },
    Known {
        id: uuid!("39c13a53-011e-11d0-9675-0020afd8adb3"),
        name: "IOPCAsyncIO",
        first: 3,
        operations: &["Read", "Write", "Refresh", "Cancel"],
    },
    Known {
        id: uuid!("39c13a54-011e-11d0-9675-0020afd8adb3"),
        name: "IOPCItemMgt",
        first: 3,
        operations: &[
            "AddItems",
            "ValidateItems",
            "RemoveItems",
            "SetActiveState",
            "SetClientHandles",
            "SetDatatypes",
            "CreateEnumerator",
        ],
    },
    Known {
        id: uuid!("39c13a55-011e-11d0-9675-0020afd8adb3"),
        name: "IEnumOPCItemAttributes",
        first: 3,
        operations: &["Next", "Skip", "Reset", "Clone"],
    },
    Known {
        id: uuid!("39c13a70-011e-11d0-9675-0020afd8adb3"),
        name: "IOPCDataCallback",
        first: 3,
        operations: &["OnDataChange", "OnReadComplete", "OnWriteComplete", "OnCancelComplete"],
    },
    Known {
        id: uuid!("39c13a71-011e-11d0-9675-0020afd8adb3"),
        name: "IOPCAsyncIO2",
        first: 3,
        operations: &["Read", "Write", "Refresh2", "Cancel2", "SetEnable", "GetEnable"],
    },
    Known {
        id: uuid!("39c13a72-011e-11d0-9675-0020afd8adb3"),
        name: "IOPCItemProperties",
        first: 3,
        operations: &["QueryAvailableProperties", "GetItemProperties", "LookupItemIDs"],
    },
    Known {
        id: uuid!("5946da93-8b39-4ec8-ab3d-aa73df5bc86f"),
        name: "IOPCItemDeadbandMgt",
        first: 3,
        operations: &["SetItemDeadband", "GetItemDeadband", "ClearItemDeadband"],
    },
    Known {
        id: uuid!("3e22d313-f08b-41a5-86c8-95e95cb49ffc"),
        name: "IOPCItemSamplingMgt",
        first: 3,
        operations: &[
            "SetItemSamplingRate",
            "GetItemSamplingRate",
            "ClearItemSamplingRate",
            "SetItemBufferEnable",
            "GetItemBufferEnable",
        ],
    },
    Known {
        id: uuid!("39227004-a18f-4b57-8b0a-5235670f4468"),
        name: "IOPCBrowse",
        first: 3,
        operations: &["GetProperties", "Browse"],
    },
    Known {
        id: uuid!("85c0b427-2893-4cbc-bd78-e5fc5146f08f"),
        name: "IOPCItemIO",
        first: 3,
        operations: &["Read", "WriteVQT"],
    },
    Known {
        id: uuid!("730f5f0f-55b1-4c81-9e18-ff8a0904e1fa"),
        name: "IOPCSyncIO2",
        first: 3,
        operations: &["Read", "Write", "ReadMaxAge", "WriteVQT"],
    },
    Known {
        id: uuid!("0967b97b-36ef-423e-b6f8-6bff1e40d39d"),
        name: "IOPCAsyncIO3",
        first: 3,
        operations: &[
            "Read",
            "Write",
            "Refresh2",
            "Cancel2",
            "SetEnable",
            "GetEnable",
            "ReadMaxAge",
            "WriteVQT",
            "RefreshMaxAge",
        ],
    },
    Known {
        id: uuid!("8e368666-d72e-4f78-87ed-647611c61c9f"),
        name: "IOPCGroupStateMgt2",
        first: 3,
        operations: &["GetState", "SetState", "SetName", "CloneGroup", "SetKeepAlive", "GetKeepAlive"],
    },
];
