"""A DCOM client made of impacket: `dcom_impacket.py DEED HOST DOMAIN USER PASSWORD [ARGUMENT]...`.

What it finds it prints; when all is as it should be it ends with a line `ok`.
"""

import os
import socket
import sys
import time

from impacket.dcerpc.v5 import dcomrt, epm, mgmt, rpcrt, transport
from impacket.dcerpc.v5.dcom import oaut
from impacket.dcerpc.v5.dcomrt import DCOMANSWER, DCOMCALL, DCOMConnection, IObjectExporter
from impacket.dcerpc.v5.dtypes import DOUBLE, DWORD, GUID, LONG, LONGLONG, LPSTR, LPWSTR, NULL, ULONG, WSTR
from impacket.dcerpc.v5.ndr import NDRPOINTER, NDRSTRUCT, NDRUniConformantArray, NDRUSMALL
from impacket.uuid import bin_to_string, string_to_bin, uuidtup_to_bin

CLASS = "6F3A1C10-8D5E-4B7A-9C21-5B2D8E0F4A10"
PANTRY = "6F3A1C10-8D5E-4B7A-9C21-5B2D8E0F4A01"
SCALES = "6F3A1C10-8D5E-4B7A-9C21-5B2D8E0F4A02"
MGMT = ("afa8bd80-7d8a-11c9-bef4-08002b102989", "1.0")
NAMED = {name: code for code, name in rpcrt.rpc_status_codes.items()}
LEVELS = {
    "none": rpcrt.RPC_C_AUTHN_LEVEL_NONE,
    "connect": rpcrt.RPC_C_AUTHN_LEVEL_CONNECT,
    "packet": rpcrt.RPC_C_AUTHN_LEVEL_PKT,
    "integrity": rpcrt.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY,
    "privacy": rpcrt.RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
}


# Where impacket looks for the class of a failure of the calls below.
DCERPCSessionError = dcomrt.DCERPCSessionError


class Octets(NDRUniConformantArray):
    item = "c"


class Weigh(DCOMCALL):
    opnum = 3
    structure = (("pieces", LONG), ("grams", LONGLONG))


class WeighResponse(DCOMANSWER):
    structure = (("grams", LONGLONG), ("each", DOUBLE), ("ErrorCode", DWORD))


class Reverse(DCOMCALL):
    opnum = 4
    structure = (("count", ULONG), ("load", Octets))


class ReverseResponse(DCOMANSWER):
    structure = (("reversed", Octets), ("ErrorCode", DWORD))


class Label(DCOMCALL):
    opnum = 5
    structure = (("text", WSTR),)


class LabelResponse(DCOMANSWER):
    structure = (("length", ULONG), ("ErrorCode", DWORD))


class Add(DCOMCALL):
    opnum = 7
    structure = (("a", LONG), ("b", LONG))


class AddResponse(DCOMANSWER):
    structure = (("sum", LONG), ("ErrorCode", DWORD))


class Echo(DCOMCALL):
    opnum = 8
    structure = (("text", oaut.BSTR),)


class EchoResponse(DCOMANSWER):
    structure = (("echo", oaut.BSTR), ("ErrorCode", DWORD))


class Refuse(DCOMCALL):
    opnum = 10
    structure = (("code", LONG),)


class RefuseResponse(DCOMANSWER):
    structure = (("ErrorCode", DWORD),)


# A contract of D-Bus, as `everywire describe --as midl` prints it: sequences and maps are structs with a count.
def sequence(element):
    array = type("Array", (NDRUniConformantArray,), {"item": element})
    pointer = type("Pointer", (NDRPOINTER,), {"referent": (("Data", array),)})
    return type("Sequence", (NDRSTRUCT,), {"structure": (("count", ULONG), ("items", pointer))})


def pair(key, value):
    return type("Pair", (NDRSTRUCT,), {"structure": (("key", key), ("value", value))})


Texts, Shorts, Longs, Doubles = sequence(LPSTR), sequence("<h"), sequence("<q"), sequence("<d")
ByNumber = sequence(pair(NDRUSMALL, LPSTR))
ByText, Paths = sequence(pair(LPWSTR, Texts)), sequence(LPWSTR)
class EchoTexts(DCOMCALL):
    opnum = 6
    structure = (("texts", Texts), ("paths", Paths))


class EchoTextsResponse(DCOMANSWER):
    structure = (("texts", Texts), ("paths", Paths), ("ErrorCode", DWORD))


class EchoDicts(DCOMCALL):
    opnum = 9
    structure = (("by_byte", ByNumber), ("by_path", ByText), ("nested", Texts))


class EchoDictsResponse(DCOMANSWER):
    structure = (("by_byte", ByNumber), ("by_path", ByText), ("nested", Texts), ("ErrorCode", DWORD))


# `station.midl`: codes of success, counted arrays, objects by the interface that is asked for.
WORKS = "7C1B1B40-6A0C-4E77-9F5C-0C6F7E3A2B08"
STATION = "7C1B1B40-6A0C-4E77-9F5C-0C6F7E3A2B05"
STATION_GROUP = "7C1B1B40-6A0C-4E77-9F5C-0C6F7E3A2B02"
STATION_NAME = "7C1B1B40-6A0C-4E77-9F5C-0C6F7E3A2B03"


def behind(element):
    """A pointer to a conformant array."""
    array = type("Array", (NDRUniConformantArray,), {"item": element})
    return type("Pointer", (NDRPOINTER,), {"referent": (("Data", array),)})


class AddGroup(DCOMCALL):
    opnum = 3
    structure = (("name", WSTR), ("rate", DWORD), ("riid", GUID))


class AddGroupResponse(DCOMANSWER):
    structure = (("revised", DWORD), ("group", dcomrt.PMInterfacePointer), ("ErrorCode", DWORD))


class Fail(DCOMCALL):
    opnum = 4
    structure = (("code", LONG),)


class FailResponse(DCOMANSWER):
    structure = (("count", DWORD), ("nothing", behind("<L")), ("ErrorCode", DWORD))


class BrowseItemIDs(DCOMCALL):
    opnum = 5
    structure = ()


class BrowseItemIDsResponse(DCOMANSWER):
    structure = (("count", DWORD), ("names", behind(LPWSTR)), ("items", behind("<L")), ("ErrorCode", DWORD))


class GetName(DCOMCALL):
    opnum = 3
    structure = ()


class GetNameResponse(DCOMANSWER):
    structure = (("name", LPWSTR), ("ErrorCode", DWORD))


def equal(got, expected):
    if got != expected:
        raise AssertionError(f"{got!r} instead of {expected!r}")


def refused(deed, *codes):
    """Does what must fail with one of these codes."""
    try:
        deed()
    except rpcrt.DCERPCException as refusal:
        # Some it only names.
        code = refusal.get_error_code() or NAMED.get(str(refusal))
        if code not in codes:
            raise AssertionError(f"failed with {refusal} ({code!r})") from refusal
    else:
        raise AssertionError("nothing failed")


def plain(host, interface, who=None, level="none"):
    """A connection to port 135 that is bound to an interface."""
    rpc = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:{host}[135]")
    if who is not None:
        domain, user, password = who
        rpc.set_credentials(user, password, domain)
    rpc.set_connect_timeout(300)
    dce = rpc.get_dce_rpc()
    if who is not None:
        dce.set_auth_level(LEVELS[level])
    dce.connect()
    dce.bind(uuidtup_to_bin(interface))
    return dce


def towers(host):
    """What the endpoint mapper tells, as lines."""
    lines = set()
    for entry in epm.hept_lookup(host):
        floors = entry["tower"]["Floors"]
        lines.add(f"{floors[0]} at {epm.PrintStringBinding(floors)}")
    return sorted(lines)


def endpoints(host, _, *arguments):
    """Endpoint mapper and management interface: `[INTERFACE]` must be on the mapper."""
    wanted = arguments[0].upper()
    lines = towers(host)
    for line in lines:
        print("endpoint", line)
    if not any(wanted in line.upper() for line in lines):
        raise AssertionError(f"{wanted} is on no endpoint")
    where = epm.hept_map(host, uuidtup_to_bin((wanted, arguments[1])), protocol="ncacn_ip_tcp")
    print("mapped", where)
    unknown = ("6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4aee", "1.0")
    refused(
        lambda: epm.hept_map(host, uuidtup_to_bin(unknown), protocol="ncacn_ip_tcp"),
        0x16C9A0D6,
    )
    dce = plain(host, MGMT)
    ids = mgmt.hinq_if_ids(dce)
    found = []
    for index in range(ids["if_id_vector"]["count"]):
        held = ids["if_id_vector"]["if_id"][index]["Data"].getData()
        found.append(bin_to_string(held[:16]).lower())
        print("interface", found[-1])
    if not found:
        raise AssertionError("no interfaces")
    # It knows the status alone, which is no error, and not the answer behind it.
    equal(mgmt.his_server_listening(dce)["status"], 0)
    refused(lambda: mgmt.hstop_server_listening(dce), 5)
    dce.disconnect()


def level(host, who, *arguments):
    """The management interface, with somebody's name, at a level."""
    for wanted in arguments:
        dce = plain(host, MGMT, who, wanted)
        for _ in range(3):
            mgmt.hinq_if_ids(dce)
        dce.disconnect()
        print("spoken at", wanted)


def alive(host, _, *__):
    """Whether the resolver lives, and where it says it is; nobody has to say who they are."""
    rpc = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:{host}[135]")
    dce = rpc.get_dce_rpc()
    bindings = IObjectExporter(dce).ServerAlive2()
    for binding in bindings:
        print("binding", binding["wTowerId"], binding["aNetworkAddr"])
    if not any(binding["wTowerId"] == 7 for binding in bindings):
        raise AssertionError("no binding with TCP")
    IObjectExporter(dce).ServerAlive()


def wrong(host, who, *arguments):
    """A wrong password, at each of these levels, and nobody at all."""
    domain, user, _ = who
    for wanted in arguments:
        def ask():
            dcom = connect(host, (domain, user, "no such word"), wanted)
            try:
                dcom.CoCreateInstanceEx(string_to_bin(CLASS), string_to_bin(PANTRY))
            finally:
                dcom.disconnect()

        refused(ask, 5, 0x721, 0x8009030C, 0x8009030D)
        print("refused at", wanted)


def connect(host, who, wanted):
    domain, user, password = who
    realm = os.environ.get("EVERYWIRE_PEER_KERBEROS")
    if realm:
        # By the tickets of the cache, which are for the name of the host.
        return DCOMConnection(
            "localhost", user, "", realm, authLevel=LEVELS[wanted], oxidResolver=False, doKerberos=True
        )
    return DCOMConnection(host, user, password, domain, authLevel=LEVELS[wanted], oxidResolver=False)


def create(dcom, wanted, clsid=CLASS, iid=PANTRY):
    made = dcom.CoCreateInstanceEx(string_to_bin(clsid), string_to_bin(iid))
    # Otherwise it takes the level that the server hints at.
    made.get_cinstance().set_auth_level(LEVELS[wanted])
    return made


def let_go(made):
    """Gives back all the references that came with an object; impacket gives back one at a time."""
    for _ in range(dcomrt.OBJREF_STANDARD(made.get_objRef())["std"]["cPublicRefs"]):
        made.RemRelease()


def ask(proxy, request, iid):
    answer = proxy.request(request, string_to_bin(iid) + b"\x00\x00\x00\x00", proxy.get_iPid())
    equal(answer["ErrorCode"], 0)
    return answer


def scales(pantry):
    it = pantry.RemQueryInterface(1, (string_to_bin(SCALES),))
    request = Weigh()
    request["pieces"], request["grams"] = 4, 1_000_000
    answer = ask(it, request, SCALES)
    equal((answer["grams"], answer["each"]), (2_000_000, 250_000.0))

    request = Label()
    request["text"] = "Käse und Brot\0"
    equal(ask(it, request, SCALES)["length"], 13)

    for size in (0, 1, 7, 4096, 40_000, 200_000):
        load = bytes((7 * i + 3) & 0xFF for i in range(size))
        request = Reverse()
        request["count"] = size
        request["load"] = [bytes([octet]) for octet in load]
        equal(b"".join(ask(it, request, SCALES)["reversed"]), load[::-1])
    print("called by number")
    it.RemRelease()


def numbers(pantry):
    request = Add()
    request["a"], request["b"] = -40, 82
    equal(ask(pantry, request, PANTRY)["sum"], 42)
    for text in ("", "x", "Grüße, 世界"):
        request = Echo()
        request["text"]["asData"] = text
        equal(ask(pantry, request, PANTRY)["echo"]["asData"], text)
    request = Refuse()
    request["code"] = 0x80040200 - (1 << 32)
    refused(lambda: ask(pantry, request, PANTRY), 0x80040200)
    request = Refuse()
    request["code"] = 0x8007000E - (1 << 32)
    refused(lambda: ask(pantry, request, PANTRY), 0x8007000E)


def variant(kind, member, value):
    made = oaut.VARIANT(None, False)
    made["clSize"] = 5
    made["vt"] = kind
    made["_varUnion"]["tag"] = kind
    if member == "bstrVal":
        made["_varUnion"][member]["asData"] = value
    else:
        made["_varUnion"][member] = value
    return made


def names(pantry):
    it = oaut.IDispatch(pantry.RemQueryInterface(1, (oaut.IID_IDispatch,)))
    ids = {name: it.GetIDsOfNames((name + "\0",))[0] for name in ("Add", "echo", "SAME", "Refuse")}
    equal(ids, {"Add": 1, "echo": 2, "SAME": 3, "Refuse": 4})
    refused(lambda: it.GetIDsOfNames(("NoSuchName\0",)), 0x80020006)

    def invoke(name, *arguments):
        parameters = oaut.DISPPARAMS(None, False)
        parameters["rgdispidNamedArgs"] = NULL
        parameters["cArgs"] = len(arguments)
        parameters["cNamedArgs"] = 0
        if arguments:
            # Last first.
            parameters["rgvarg"] = list(reversed(arguments))
        else:
            parameters["rgvarg"] = NULL
        return it.Invoke(ids[name], 0x409, oaut.DISPATCH_METHOD, parameters, 0, [], [])

    VT = oaut.VARENUM
    answer = invoke("Add", variant(VT.VT_I4, "lVal", 100), variant(VT.VT_I4, "lVal", -58))
    equal(answer["pVarResult"]["_varUnion"]["lVal"], 42)
    answer = invoke("echo", variant(VT.VT_BSTR, "bstrVal", "Käse"))
    equal(answer["pVarResult"]["_varUnion"]["bstrVal"]["asData"], "Käse")
    for kind, member, value in (
        (VT.VT_I4, "lVal", -7),
        (VT.VT_R8, "dblVal", 2.5),
        (VT.VT_BSTR, "bstrVal", "Brot"),
        (VT.VT_UI1, "bVal", 200),
    ):
        answer = invoke("SAME", variant(kind, member, value))
        equal(answer["pVarResult"]["vt"], kind)
        got = answer["pVarResult"]["_varUnion"][member]
        equal(got["asData"] if member == "bstrVal" else got, value)
    it.RemRelease()
    print("called by name")


def pantry(host, who, wanted):
    """Activates, asks for interfaces, calls by number and by name, lets go."""
    # It binds anew for each activation, which no connection allows twice.
    dcom = connect(host, who, wanted)
    refused(lambda: create(dcom, wanted, "6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4aff"), 0x80040154)
    dcom.disconnect()
    dcom = connect(host, who, wanted)
    made = create(dcom, wanted)
    numbers(made)
    scales(made)
    names(made)
    refused(
        lambda: made.RemQueryInterface(1, (string_to_bin("6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4aee"),)),
        0x80004002,
    )
    let_go(made)
    dcom.disconnect()


def hold(host, who, wanted, signal):
    """Makes an object, and lets go of it when there is a file of this name."""
    dcom = connect(host, who, wanted)
    made = create(dcom, wanted)
    print("held", flush=True)
    while not os.path.exists(signal):
        time.sleep(0.01)
    let_go(made)
    print("released", flush=True)
    dcom.disconnect()


def fill(sequence, items):
    """Makes these items a sequence; nothing points to none."""
    sequence["count"] = len(items)
    sequence["items"] = items if items else NULL


def text_of(text, kind=LPSTR):
    made = kind()
    made["Data"] = text + "\0"
    return made


def texts_in(sequence):
    equal(len(sequence["items"]) if sequence["count"] else 0, sequence["count"])
    return [item["Data"].rstrip("\0") for item in sequence["items"]] if sequence["count"] else []


def kitchen(host, who, wanted, clsid, iid):
    """Calls an object of a contract of D-Bus by what is printed of it as MIDL."""
    dcom = connect(host, who, wanted)
    made = create(dcom, wanted, clsid, iid)
    for texts, paths in ((["a", "", "bc def"], ["/", "/x"]), ([], ["/only"]), ([], [])):
        call = EchoTexts()
        fill(call["texts"], [text_of(text) for text in texts])
        fill(call["paths"], [text_of(path, LPWSTR) for path in paths])
        answer = ask(made, call, iid)
        equal((texts_in(answer["texts"]), texts_in(answer["paths"])), (texts, paths))
    call = EchoDicts()
    numbers, paths = [], []
    for key, value in ((1, "one"), (254, "two")):
        numbers.append(pair(NDRUSMALL, LPSTR)())
        numbers[-1]["key"], numbers[-1]["value"] = key, value + "\0"
    for key, values in (("/a", ["x", "y"]), ("/b", [])):
        paths.append(pair(LPWSTR, Texts)())
        paths[-1]["key"] = key + "\0"
        fill(paths[-1]["value"], [text_of(value) for value in values])
    fill(call["by_byte"], numbers)
    fill(call["by_path"], paths)
    fill(call["nested"], [])
    answer = ask(made, call, iid)
    got = [(item["key"], item["value"].rstrip("\0")) for item in answer["by_byte"]["items"]]
    equal(got, [(1, "one"), (254, "two")])
    got = [(item["key"].rstrip("\0"), texts_in(item["value"])) for item in answer["by_path"]["items"]]
    equal(got, [("/a", ["x", "y"]), ("/b", [])])
    equal(answer["nested"]["count"], 0)
    let_go(made)
    dcom.disconnect()


def answered(proxy, request, iid):
    """The answer, whatever its HRESULT: here each but S_OK is taken for a failure."""
    try:
        return proxy.request(request, string_to_bin(iid) + b"\x00\x00\x00\x00", proxy.get_iPid())
    except rpcrt.DCERPCException as told:
        return told.get_packet()


def add_group(station, rate, iid):
    call = AddGroup()
    call["name"], call["rate"], call["riid"] = "Reactor\0", rate, string_to_bin(iid)
    return answered(station, call, STATION)


def pointed(station, pointer):
    """The object that an interface pointer leads to."""
    objref = b"".join(pointer["abData"])
    return dcomrt.IRemUnknown2(
        dcomrt.INTERFACE(
            station.get_cinstance(), objref, station.get_ipidRemUnknown(), target=station.get_target()
        )
    )


def station(host, who, wanted):
    """Calls an object of `station.midl`."""
    dcom = connect(host, who, wanted)
    made = create(dcom, wanted, WORKS, STATION)
    added = add_group(made, 10, STATION_NAME)
    equal((added["ErrorCode"], added["revised"]), (0x4000D, 50))
    name = pointed(made, added["group"])
    equal(ask(name, GetName(), STATION_NAME)["name"], "Reactor\0")
    group = name.RemQueryInterface(1, (string_to_bin(STATION_GROUP),))
    browsed = ask(group, BrowseItemIDs(), STATION_GROUP)
    equal((browsed["count"], [text["Data"] for text in browsed["names"]]), (2, ["Level\0", "Speed\0"]))
    equal(list(browsed["items"]), [1, 2])
    added = add_group(made, 10, PANTRY)
    equal((added["ErrorCode"], added["revised"], added["group"]), (0x80004002, 0, b""))
    for code, items in ((0x4000E, [1, 2, 3]), (0xC0040007, b"")):
        call = Fail()
        call["code"] = code - (1 << 32) if code >> 31 else code
        told = answered(made, call, STATION)
        equal((told["ErrorCode"], told["count"]), (code, len(items)))
        equal(list(told["nothing"]) if items else told["nothing"], items)
    # It asked for one reference to the other interface.
    group.RemRelease()
    let_go(name)
    let_go(made)
    dcom.disconnect()


DEEDS = {deed.__name__: deed for deed in (endpoints, level, alive, wrong, pantry, hold, kitchen, station)}

if __name__ == "__main__":
    deed, host, domain, user, password, *arguments = sys.argv[1:]
    socket.setdefaulttimeout(300)
    DEEDS[deed](host, (domain, user, password), *arguments)
    print("ok", flush=True)
