"""Uses an OPC server as clients of OPC do, by impacket's library of DCOM.

`opc_impacket.py DEED HOST DOMAIN USER PASSWORD CLSID`: does the deed; when all is as it should be it ends with a line `ok`.
"""

import socket
import struct
import sys

from impacket.dcerpc.v5 import dcomrt, rpcrt
from impacket.dcerpc.v5.dcom import oaut
from impacket.dcerpc.v5.dcomrt import (
    CLSID, CLSID_ARRAY, DCOMANSWER, DCOMCALL, DCOMConnection, INTERFACE, IRemUnknown2, PMInterfacePointer,
)
from impacket.dcerpc.v5.dtypes import (
    DWORD, FILETIME, FLOAT, GUID, LONG, LPWSTR, NULL, ULONG, USHORT, WSTR,
)
from impacket.dcerpc.v5.ndr import (
    NDRPOINTER, NDRSTRUCT, NDRUniConformantArray, NDRUniConformantVaryingArray, NDRUniFixedArray,
)
from impacket.uuid import bin_to_string, string_to_bin

SERVER_LIST_CLASS = "13486D51-4821-11D2-A494-3CB306C10000"
SERVER_LIST = "13486D50-4821-11D2-A494-3CB306C10000"
SERVER_LIST2 = "9DD0B56C-AD9E-43EE-8305-487F3188BF7A"
CATEGORY_MANAGER = "0002E005-0000-0000-C000-000000000046"
CAT_INFORMATION = "0002E013-0000-0000-C000-000000000046"
ENUM_CATEGORY_INFO = "0002E011-0000-0000-C000-000000000046"
ENUM_GUID = "0002E000-0000-0000-C000-000000000046"
OPC_ENUM_GUID = "55C382C8-21C7-4E88-96C1-BECFB1E3F483"
ENUM_STRING = "00000101-0000-0000-C000-000000000046"
CATEGORY_20 = "63D5F432-CFE4-11D1-B2C8-0060083BA1FB"
CATEGORY_30 = "CC603642-66D7-48F1-B69A-B625E73652D7"
SERVER = "39C13A4D-011E-11D0-9675-0020AFD8ADB3"
COMMON = "F31DFDE2-07B6-11D2-B2D8-0060083BA1FB"
BROWSING = "39C13A4F-011E-11D0-9675-0020AFD8ADB3"
GROUP_STATE = "39C13A50-011E-11D0-9675-0020AFD8ADB3"
SYNC_IO = "39C13A52-011E-11D0-9675-0020AFD8ADB3"
ITEM_MGT = "39C13A54-011E-11D0-9675-0020AFD8ADB3"
PUBLIC_GROUPS = "39C13A4E-011E-11D0-9675-0020AFD8ADB3"
# Where impacket looks for the class of a failure of the calls below.
DCERPCSessionError = dcomrt.DCERPCSessionError


def pointer(to):
    return type("Pointer", (NDRPOINTER,), {"referent": (("Data", to),)})


def array(of):
    return type("Array", (NDRUniConformantArray,), {"item": of})


def varying(of):
    return type("Varying", (NDRUniConformantVaryingArray,), {"item": of})


class FLOATPOINTER(NDRPOINTER):
    referent = (("Data", FLOAT),)


class LONGPOINTER(NDRPOINTER):
    referent = (("Data", LONG),)


class OPCSERVERSTATUS(NDRSTRUCT):
    structure = (
        ("start", FILETIME), ("current", FILETIME), ("update", FILETIME), ("state", USHORT), ("groups", DWORD),
        ("bandwidth", DWORD), ("major", USHORT), ("minor", USHORT), ("build", USHORT), ("reserved", USHORT), ("vendor", LPWSTR),
    )


class OPCITEMDEF(NDRSTRUCT):
    structure = (
        ("path", LPWSTR), ("id", LPWSTR), ("active", LONG), ("client", DWORD), ("blobSize", DWORD), ("blob", pointer(array("c"))),
        ("type", USHORT), ("reserved", USHORT),
    )


class OPCITEMRESULT(NDRSTRUCT):
    structure = (
        ("server", DWORD), ("type", USHORT), ("reserved", USHORT), ("rights", DWORD), ("blobSize", DWORD),
        ("blob", pointer(array("c"))),
    )


class OPCITEMSTATE(NDRSTRUCT):
    structure = (("client", DWORD), ("time", FILETIME), ("quality", USHORT), ("reserved", USHORT), ("value", oaut.VARIANT))


Codes, Handles = pointer(array("<L")), array("<L")


class GetStatus(DCOMCALL):
    opnum = 6
    structure = ()


class GetStatusResponse(DCOMANSWER):
    structure = (("status", pointer(OPCSERVERSTATUS)), ("ErrorCode", DWORD))


class AddGroup(DCOMCALL):
    opnum = 3
    structure = (
        ("name", WSTR), ("active", LONG), ("rate", DWORD), ("client", DWORD), ("bias", LONGPOINTER), ("deadband", FLOATPOINTER),
        ("locale", DWORD), ("riid", GUID),
    )


class AddGroupResponse(DCOMANSWER):
    structure = (("server", DWORD), ("rate", DWORD), ("group", PMInterfacePointer), ("ErrorCode", DWORD))


class RemoveGroup(DCOMCALL):
    opnum = 7
    structure = (("server", DWORD), ("force", LONG))


class RemoveGroupResponse(DCOMANSWER):
    structure = (("ErrorCode", DWORD),)


class GetErrorString(DCOMCALL):
    opnum = 6
    structure = (("code", DWORD),)


class GetErrorStringResponse(DCOMANSWER):
    structure = (("text", LPWSTR), ("ErrorCode", DWORD))


class GetState(DCOMCALL):
    opnum = 3
    structure = ()


class GetStateResponse(DCOMANSWER):
    structure = (
        ("rate", DWORD), ("active", LONG), ("name", LPWSTR), ("bias", LONG), ("deadband", FLOAT), ("locale", DWORD),
        ("client", DWORD), ("server", DWORD), ("ErrorCode", DWORD),
    )


class AddItems(DCOMCALL):
    opnum = 3
    structure = (("count", DWORD), ("items", array(OPCITEMDEF)))


class AddItemsResponse(DCOMANSWER):
    structure = (("results", pointer(array(OPCITEMRESULT))), ("errors", Codes), ("ErrorCode", DWORD))


class RemoveItems(DCOMCALL):
    opnum = 5
    structure = (("count", DWORD), ("items", Handles))


class RemoveItemsResponse(DCOMANSWER):
    structure = (("errors", Codes), ("ErrorCode", DWORD))


class Read(DCOMCALL):
    opnum = 3
    structure = (("source", USHORT), ("count", DWORD), ("items", Handles))


class ReadResponse(DCOMANSWER):
    structure = (("values", pointer(array(OPCITEMSTATE))), ("errors", Codes), ("ErrorCode", DWORD))


# An array of two VARIANTs; impacket itself forgets to align what their markers stand for.
class Write(DCOMCALL):
    opnum = 4
    structure = (
        ("count", DWORD), ("items", Handles), ("size", ULONG), ("first", ULONG), ("second", ULONG), ("padding", ULONG),
        ("one", oaut.wireVARIANTStr), ("two", oaut.wireVARIANTStr),
    )


class WriteResponse(DCOMANSWER):
    structure = (("errors", Codes), ("ErrorCode", DWORD))


class QueryOrganization(DCOMCALL):
    opnum = 3
    structure = ()


class QueryOrganizationResponse(DCOMANSWER):
    structure = (("organization", USHORT), ("ErrorCode", DWORD))


class ChangeBrowsePosition(DCOMCALL):
    opnum = 4
    structure = (("direction", USHORT), ("name", WSTR))


class ChangeBrowsePositionResponse(DCOMANSWER):
    structure = (("ErrorCode", DWORD),)


class BrowseOPCItemIDs(DCOMCALL):
    opnum = 5
    structure = (("kind", USHORT), ("filter", WSTR), ("type", USHORT), ("rights", DWORD))


class BrowseOPCItemIDsResponse(DCOMANSWER):
    structure = (("names", PMInterfacePointer), ("ErrorCode", DWORD))


class GetItemID(DCOMCALL):
    opnum = 6
    structure = (("name", WSTR),)


class GetItemIDResponse(DCOMANSWER):
    structure = (("id", LPWSTR), ("ErrorCode", DWORD))


class NextString(DCOMCALL):
    opnum = 3
    structure = (("count", ULONG),)


class NextStringResponse(DCOMANSWER):
    structure = (("texts", varying(LPWSTR)), ("fetched", ULONG), ("ErrorCode", DWORD))


class NextGuid(DCOMCALL):
    opnum = 3
    structure = (("count", ULONG),)


class NextGuidResponse(DCOMANSWER):
    structure = (("ids", varying(CLSID)), ("fetched", ULONG), ("ErrorCode", DWORD))


class Reset(DCOMCALL):
    opnum = 5
    structure = ()


class ResetResponse(DCOMANSWER):
    structure = (("ErrorCode", DWORD),)


class EnumClassesOfCategories(DCOMCALL):
    opnum = 3
    structure = (
        ("implementedCount", ULONG), ("implemented", CLSID_ARRAY), ("requiredCount", ULONG), ("required", CLSID_ARRAY),
    )


class EnumClassesOfCategoriesResponse(DCOMANSWER):
    structure = (("classes", PMInterfacePointer), ("ErrorCode", DWORD))


class DESCRIPTION(NDRUniFixedArray):
    def getDataLen(self, data, offset=0):
        return 256


class CATEGORYINFO(NDRSTRUCT):
    structure = (("catid", GUID), ("locale", DWORD), ("text", DESCRIPTION))


class EnumCategories(DCOMCALL):
    opnum = 3
    structure = (("locale", DWORD),)


class EnumCategoriesResponse(DCOMANSWER):
    structure = (("categories", PMInterfacePointer), ("ErrorCode", DWORD))


class NextCategory(DCOMCALL):
    opnum = 3
    structure = (("count", ULONG),)


class NextCategoryResponse(DCOMANSWER):
    structure = (("categories", varying(CATEGORYINFO)), ("fetched", ULONG), ("ErrorCode", DWORD))


class GetCategoryDesc(DCOMCALL):
    opnum = 4
    structure = (("catid", CLSID), ("locale", DWORD))


class GetCategoryDescResponse(DCOMANSWER):
    structure = (("text", LPWSTR), ("ErrorCode", DWORD))


class RemoteEnumClassesOfCategories(DCOMCALL):
    opnum = 5
    structure = (
        ("implementedCount", ULONG), ("implemented", pointer(CLSID_ARRAY)), ("requiredCount", ULONG),
        ("required", pointer(CLSID_ARRAY)),
    )


class RemoteEnumClassesOfCategoriesResponse(DCOMANSWER):
    structure = (("classes", PMInterfacePointer), ("ErrorCode", DWORD))


class RemoteIsClassOfCategories(DCOMCALL):
    opnum = 6
    structure = (
        ("clsid", CLSID), ("implementedCount", ULONG), ("implemented", pointer(CLSID_ARRAY)), ("requiredCount", ULONG),
        ("required", pointer(CLSID_ARRAY)),
    )


class RemoteIsClassOfCategoriesResponse(DCOMANSWER):
    structure = (("ErrorCode", DWORD),)


class EnumImplCategoriesOfClass(DCOMCALL):
    opnum = 7
    structure = (("clsid", CLSID),)


class EnumImplCategoriesOfClassResponse(DCOMANSWER):
    structure = (("classes", PMInterfacePointer), ("ErrorCode", DWORD))


class EnumReqCategoriesOfClass(EnumImplCategoriesOfClass):
    opnum = 8


class EnumReqCategoriesOfClassResponse(EnumImplCategoriesOfClassResponse):
    pass


class GetClassDetails(DCOMCALL):
    opnum = 4
    structure = (("clsid", CLSID),)


class GetClassDetailsResponse(DCOMANSWER):
    structure = (("progId", LPWSTR), ("userType", LPWSTR), ("ErrorCode", DWORD))


class GetClassDetails2(DCOMCALL):
    opnum = 4
    structure = (("clsid", CLSID),)


class GetClassDetails2Response(DCOMANSWER):
    structure = (("progId", LPWSTR), ("userType", LPWSTR), ("independent", LPWSTR), ("ErrorCode", DWORD))


class CLSIDFromProgID(DCOMCALL):
    opnum = 5
    structure = (("progId", WSTR),)


class CLSIDFromProgIDResponse(DCOMANSWER):
    structure = (("clsid", CLSID), ("ErrorCode", DWORD))


def equal(got, expected):
    if got != expected:
        raise AssertionError(f"{got!r} instead of {expected!r}")


def call(proxy, request, iid, *codes):
    """A call that answers with one of these HRESULTs, S_OK unless said; impacket takes every other one for a failure."""
    request["ORPCthis"] = proxy.get_cinstance().get_ORPCthis()
    request["ORPCthis"]["flags"] = 0
    proxy.connect(string_to_bin(iid) + b"\x00\x00\x00\x00")
    dce = proxy.get_dce_rpc()
    dce.call(request.opnum, request, proxy.get_iPid())
    answer = dce.recv()
    code = struct.unpack("<L", answer[-4:])[0]
    if code not in (codes or (0,)):
        raise AssertionError(f"{type(request).__name__} answers {code:#010x}")
    return None if code >= 0x80000000 else globals()[type(request).__name__ + "Response"](answer)


def create(dcom, clsid, iid):
    made = dcom.CoCreateInstanceEx(string_to_bin(clsid), string_to_bin(iid))
    made.get_cinstance().set_auth_level(rpcrt.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY)
    return made


def let_go(made):
    """Gives back all that was handed out; impacket gives back one reference at a time."""
    HELD.append((made, dcomrt.OBJREF_STANDARD(made.get_objRef())["std"]["cPublicRefs"]))
    while HELD:
        held, count = HELD.pop()
        for _ in range(count):
            held.RemRelease()


# What is to be given back, and how many references to it there are.
HELD = []


def query(proxy, iid):
    found = proxy.RemQueryInterface(1, (string_to_bin(iid),))
    HELD.append((found, 1))
    return found


def handed(proxy, field):
    """The object that a call handed out."""
    data = b"".join(field["abData"])
    interface = INTERFACE(proxy.get_cinstance(), data, proxy.get_ipidRemUnknown(), target=proxy.get_target())
    made = IRemUnknown2(interface)
    HELD.append((made, dcomrt.OBJREF_STANDARD(data)["std"]["cPublicRefs"]))
    return made


def text(value):
    return value.rstrip("\0")


def ids(*texts):
    made = []
    for given in texts:
        made.append(CLSID())
        made[-1]["Data"] = string_to_bin(given)
    return made


def classes(proxy, iid, enumerator):
    request = EnumClassesOfCategories()
    request["implementedCount"], request["implemented"] = 2, ids(CATEGORY_20, CATEGORY_30)
    request["requiredCount"], request["required"] = 0, []
    found = handed(proxy, call(proxy, request, iid)["classes"])
    request = NextGuid()
    request["count"] = 10
    answer = call(found, request, enumerator, 1)
    equal(answer["fetched"], len(answer["ids"]))
    return [bin_to_string(one["Data"]).lower() for one in answer["ids"]]


def list_servers(host, who, clsid):
    """OpcEnum: which servers there are, what they are called, and the class behind a name."""
    dcom = connect(host, who)
    made = create(dcom, SERVER_LIST_CLASS, SERVER_LIST)
    equal(classes(made, SERVER_LIST, ENUM_GUID), [clsid.lower()])
    request = GetClassDetails()
    request["clsid"] = string_to_bin(clsid)
    answer = call(made, request, SERVER_LIST)
    prog_id = text(answer["progId"])
    print("server", prog_id, text(answer["userType"]))
    request = CLSIDFromProgID()
    request["progId"] = prog_id + "\0"
    equal(bin_to_string(call(made, request, SERVER_LIST)["clsid"]).lower(), clsid.lower())
    request["progId"] = "No.Such.Server\0"
    call(made, request, SERVER_LIST, 0x800401F3)
    second = query(made, SERVER_LIST2)
    equal(classes(second, SERVER_LIST2, OPC_ENUM_GUID), [clsid.lower()])
    request = GetClassDetails2()
    request["clsid"] = string_to_bin(clsid)
    print("independent", text(call(second, request, SERVER_LIST2)["independent"]))
    let_go(made)
    dcom.disconnect()


def guids(proxy, field):
    """What an enumerator of identities has."""
    found = handed(proxy, field)
    request = NextGuid()
    request["count"] = 10
    answer = call(found, request, ENUM_GUID, 1)
    return [bin_to_string(one["Data"]).upper() for one in answer["ids"]]


def categories(host, who, clsid):
    """COM's own manager of categories: which there are, what they are called, which classes are in them, and in which a class is."""
    dcom = connect(host, who)
    made = create(dcom, CATEGORY_MANAGER, CAT_INFORMATION)
    request = EnumCategories()
    request["locale"] = 0x409
    found = handed(made, call(made, request, CAT_INFORMATION)["categories"])
    request = NextCategory()
    request["count"] = 10
    answer = call(found, request, ENUM_CATEGORY_INFO, 1)
    told = {}
    for one in answer["categories"]:
        told[bin_to_string(one["catid"]).upper()] = text(one["text"].decode("utf-16-le"))
    equal(sorted(told), [CATEGORY_20, CATEGORY_30])
    request = GetCategoryDesc()
    request["catid"], request["locale"] = string_to_bin(CATEGORY_20), 0x409
    equal(text(call(made, request, CAT_INFORMATION)["text"]), told[CATEGORY_20])
    request["catid"] = string_to_bin(SERVER)
    call(made, request, CAT_INFORMATION, 0x80040160)

    def asked(request, implemented, count=None):
        request["implementedCount"] = len(implemented) if count is None else count
        request["implemented"] = ids(*implemented) if implemented else NULL
        request["requiredCount"], request["required"] = 0, NULL
        return request

    def of(implemented, count=None):
        request = asked(RemoteEnumClassesOfCategories(), implemented, count)
        return guids(made, call(made, request, CAT_INFORMATION)["classes"])

    equal(of([CATEGORY_30]), [clsid.upper()])
    equal(of([SERVER]), [])
    equal(of([], 0xFFFFFFFF), [clsid.upper()])
    call(made, asked(RemoteEnumClassesOfCategories(), []), CAT_INFORMATION, 0x80070057)
    for of_class, implemented, code in ((clsid, CATEGORY_20, 0), (clsid, SERVER, 1), (SERVER, CATEGORY_20, 1)):
        request = asked(RemoteIsClassOfCategories(), [implemented])
        request["clsid"] = string_to_bin(of_class)
        call(made, request, CAT_INFORMATION, code)
    for request, expected in ((EnumImplCategoriesOfClass(), [CATEGORY_20, CATEGORY_30]), (EnumReqCategoriesOfClass(), [])):
        request["clsid"] = string_to_bin(clsid)
        equal(guids(made, call(made, request, CAT_INFORMATION)["classes"]), expected)
        request["clsid"] = string_to_bin(SERVER)
        call(made, request, CAT_INFORMATION, 0x80040154)
    print("categories", told[CATEGORY_20], "|", told[CATEGORY_30])
    let_go(made)
    dcom.disconnect()


def connect(host, who):
    domain, user, password = who
    level = rpcrt.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY
    return DCOMConnection(host, user, password, domain, authLevel=level, oxidResolver=False)


def names(browsing, kind, filter_text="", codes=(0,)):
    request = BrowseOPCItemIDs()
    request["kind"], request["filter"], request["type"], request["rights"] = kind, filter_text + "\0", 0, 0
    found = handed(browsing, call(browsing, request, BROWSING, *codes)["names"])
    call(found, Reset(), ENUM_STRING)
    all_names = []
    while True:
        request = NextString()
        request["count"] = 2
        answer = call(found, request, ENUM_STRING, 0, 1)
        all_names += [text(one["Data"]) for one in answer["texts"]]
        if answer["ErrorCode"] == 1:
            return all_names
        equal(answer["fetched"], 2)


def browse(made):
    browsing = query(made, BROWSING)
    equal(call(browsing, QueryOrganization(), BROWSING)["organization"], 1)
    flat = names(browsing, 3)
    print("flat", flat)
    equal(flat, ["Name", "Tank.Level", "Tank.Setpoint", "Tank.Valve"])
    equal(names(browsing, 1), ["Tank"])
    equal(names(browsing, 2), ["Name"])
    equal(names(browsing, 3, "Tank.[L-S]*"), ["Tank.Level", "Tank.Setpoint"])
    equal(names(browsing, 3, "Nothing", (0, 1)), [])
    request = ChangeBrowsePosition()
    request["direction"], request["name"] = 2, "Tank\0"
    call(browsing, request, BROWSING)
    equal(names(browsing, 2), ["Level", "Setpoint", "Valve"])
    request = GetItemID()
    request["name"] = "Level\0"
    equal(text(call(browsing, request, BROWSING)["id"]), "Tank.Level")
    request = ChangeBrowsePosition()
    request["direction"], request["name"] = 1, "\0"
    call(browsing, request, BROWSING)
    call(browsing, request, BROWSING, 0x80004005)


def item(item_id, client, kind=0):
    made = OPCITEMDEF()
    made["path"], made["id"], made["active"], made["client"] = "\0", item_id + "\0", 1, client
    made["blobSize"], made["blob"], made["type"], made["reserved"] = 0, NULL, kind, 0
    return made


def variant(kind, member, value):
    made = oaut.wireVARIANTStr()
    made["clSize"], made["vt"] = 3, kind
    made["_varUnion"]["tag"] = kind
    made["_varUnion"][member] = value
    return made


def group(made):
    request = AddGroup()
    request["name"], request["active"], request["rate"], request["client"] = "\0", 1, 1000, 4711
    request["bias"], request["deadband"], request["locale"] = NULL, NULL, 0x409
    request["riid"] = string_to_bin(GROUP_STATE)
    answer = call(made, request, SERVER)
    equal(answer["rate"], 1000)
    handle = answer["server"]
    state = handed(made, answer["group"])
    answer = call(state, GetState(), GROUP_STATE)
    equal((answer["rate"], answer["active"], answer["client"], answer["server"]), (1000, 1, 4711, handle))
    print("group", text(answer["name"]))
    # A rate that it does not have, and a name that is taken.
    request["rate"], request["name"] = 1, text(answer["name"]) + "x\0"
    equal(call(made, request, SERVER, 0x0004000D)["rate"], 10)
    request["name"] = text(answer["name"]) + "\0"
    call(made, request, SERVER, 0xC004000C)
    request["name"], request["riid"] = "y\0", string_to_bin(PUBLIC_GROUPS)
    call(made, request, SERVER, 0x80004002)
    return handle, state


def items(state):
    management = query(state, ITEM_MGT)
    request = AddItems()
    request["count"] = 4
    request["items"] = [item("Tank.Level", 1), item("Tank.Setpoint", 2), item("No.Such", 3), item("Name", 4)]
    answer = call(management, request, ITEM_MGT, 1)
    equal(list(answer["errors"]), [0, 0, 0xC0040007, 0])
    found = [(one["type"], one["rights"]) for one in answer["results"]]
    equal(found, [(4, 1), (2, 3), (0, 0), (8, 1)])
    handles = [one["server"] for one in answer["results"]]
    return management, handles


def values(state, handles):
    io = query(state, SYNC_IO)
    for source in (1, 2):
        request = Read()
        request["source"], request["count"], request["items"] = source, 4, [handles[0], handles[1], 0, handles[3]]
        answer = call(io, request, SYNC_IO, 1)
        equal(list(answer["errors"]), [0, 0, 0xC0040001, 0])
        read = answer["values"]
        equal([one["client"] for one in read], [1, 2, 0, 4])
        equal([one["quality"] for one in read], [192, 192, 0, 192])
        equal([one["value"]["vt"] for one in read], [4, 2, 0, 8])
        equal(read[0]["value"]["_varUnion"]["fltVal"], 50.0)
        equal(read[3]["value"]["_varUnion"]["bstrVal"]["asData"], "tank one")
    request = Write()
    request["count"], request["items"] = 2, handles[:2]
    VT = oaut.VARENUM
    request["size"], request["first"], request["second"], request["padding"] = 2, 1, 2, 0
    request["one"], request["two"] = variant(VT.VT_R4, "fltVal", 1.0), variant(VT.VT_I4, "lVal", 123)
    answer = call(io, request, SYNC_IO, 1)
    equal(list(answer["errors"]), [0xC0040006, 0])
    request = Read()
    request["source"], request["count"], request["items"] = 2, 1, handles[1:2]
    equal(call(io, request, SYNC_IO)["values"][0]["value"]["_varUnion"]["iVal"], 123)
    print("read and written")


def session(host, who, clsid):
    """A whole session: status, browsing, a group, items, reads and writes, and all of it given back."""
    dcom = connect(host, who)
    made = create(dcom, clsid, SERVER)
    status = call(made, GetStatus(), SERVER)["status"]
    equal((status["state"], status["groups"]), (1, 0))
    print("status", text(status["vendor"]), status["major"], status["minor"])
    common = query(made, COMMON)
    request = GetErrorString()
    request["code"] = 0xC0040007
    print("error", text(call(common, request, COMMON)["text"]))
    browse(made)
    handle, state = group(made)
    management, handles = items(state)
    values(state, handles)
    request = RemoveItems()
    request["count"], request["items"] = 2, [handles[0], handles[0]]
    equal(list(call(management, request, ITEM_MGT, 1)["errors"]), [0, 0xC0040001])
    request = RemoveGroup()
    request["server"], request["force"] = handle, 0
    # OPC_S_INUSE: this side still refers to the group, which ends when it is let go.
    call(made, request, SERVER, 0x0004000F)
    call(made, request, SERVER, 0xC0040001)
    let_go(made)
    dcom.disconnect()


def stay(host, who, clsid):
    """Has a group with items, says so, and stays until it is killed."""
    made = create(connect(host, who), clsid, SERVER)
    _, state = group(made)
    items(state)
    print("ready", flush=True)
    sys.stdin.read()


DEEDS = {deed.__name__: deed for deed in (list_servers, categories, session, stay)}

if __name__ == "__main__":
    deed, host, domain, user, password, *arguments = sys.argv[1:]
    socket.setdefaulttimeout(300)
    DEEDS[deed](host, (domain, user, password), *arguments)
    print("ok", flush=True)
