"""The client of DCOM of `endings_clients.py`, made of impacket."""

import threading

from impacket.dcerpc.v5 import dcomrt, rpcrt, transport
from impacket.dcerpc.v5.dcomrt import DCOMANSWER, DCOMCALL, DCOMConnection, INTERFACE
from impacket.dcerpc.v5.dtypes import DWORD, LONG, ULONG
from impacket.dcerpc.v5.ndr import NDRPOINTER, NDRSTRUCT, NDRUniConformantArray
from impacket.uuid import string_to_bin

CLASS = "5b0ae6c1-33a2-4a60-9c4c-5d60d2b1a0f2"
IID = string_to_bin("5b0ae6c1-33a2-4a60-9c4c-5d60d2b1a0f1")
# With the version that interfaces of COM have.
COUNTER = IID + bytes(4)
LEVEL = rpcrt.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY
FAULT, DID_NOT_EXECUTE = 3, 0x20

# Where impacket looks for the class of a failure of the calls below.
DCERPCSessionError = dcomrt.DCERPCSessionError
SEEN = threading.local()


class Octets(NDRUniConformantArray):
    item = "c"


class Pointer(NDRPOINTER):
    referent = (("Data", Octets),)


class Sequence(NDRSTRUCT):
    structure = (("count", ULONG), ("items", Pointer))


class Count(DCOMCALL):
    opnum = 3
    structure = (("v", LONG),)


class CountResponse(DCOMANSWER):
    structure = (("sum", LONG), ("ErrorCode", DWORD))


class Large(DCOMCALL):
    opnum = 4
    structure = (("v", Sequence),)


LARGE = []


def large(this):
    """The request, in octets: to make them takes long."""
    if LARGE:
        return LARGE[0]
    request = Large()
    request["ORPCthis"] = this
    request["ORPCthis"]["flags"] = 0
    request["v"]["count"] = 100 << 10
    request["v"]["items"] = [b"A"] * (100 << 10)
    LARGE.append(request.getData())
    return LARGE[0]


def receive(self, forceRecv=0, count=0, before=transport.TCPTransport.recv):
    """As the library does. It keeps the flags of a fault to itself, which say whether the call was executed."""
    data = before(self, forceRecv, count)
    if len(data) == rpcrt.MSRPCRespHeader._SIZE and data[0] == 5:
        SEEN.head = data[2], data[3]
    return data


transport.TCPTransport.recv = receive


def credentials(self, before=rpcrt.DCERPC_v5.get_credentials):
    """Who calls, from the beginning. A connection to an object asks the one that was made last, by whichever thread, and that one
    would know it only when it is bound."""
    told = before(self)
    return told if told[0] is not None else self._transport.get_credentials()


rpcrt.DCERPC_v5.get_credentials = credentials


class Counter:
    """An object of the class, with connections of its own to find it and to call it."""

    def __init__(self, host, who):
        domain, user, password = who
        # Connections to an object belong to a thread.
        INTERFACE.CONNECTIONS.setdefault(host, {})[threading.current_thread().name] = {}
        dcom = DCOMConnection(host, user, password, domain, authLevel=LEVEL, oxidResolver=False)
        # Its accessor would give that of another thread.
        self.connections = [dcom._DCOMConnection__portmap]
        try:
            self.proxy = dcom.CoCreateInstanceEx(string_to_bin(CLASS), IID)
            self.proxy.get_cinstance().set_auth_level(LEVEL)
            self.proxy.connect(COUNTER)
            self.connections.append(self.proxy.get_dce_rpc())
        except Exception:
            self.close()
            raise

    def call(self, operation, number):
        SEEN.head = None
        dce, this = self.proxy.get_dce_rpc(), self.proxy.get_cinstance().get_ORPCthis()
        try:
            if operation == "count":
                request = Count()
                request["v"] = number
                answer = self.proxy.request(request, COUNTER, self.proxy.get_iPid())
            else:
                dce.call(Large.opnum, large(this), self.proxy.get_iPid())
                answer = CountResponse(dce.recv())
        except rpcrt.DCERPCException as failure:
            kind, flags = SEEN.head or (None, 0)
            refused = kind == FAULT and flags & DID_NOT_EXECUTE
            return "no" if refused else "maybe", failure
        if answer["ErrorCode"] == 0 and answer["sum"] == number + 1:
            return "answered", ""
        return "maybe", answer["ErrorCode"]

    def close(self):
        for connection in self.connections:
            connection.disconnect()
