"""Clients in Python: `endings_clients.py http`, `endings_clients.py nettcp`, `endings_clients.py dcop` and
`endings_clients.py dcom DOMAIN USER PASSWORD`.

Reads `at PLACE`, which says where those behind it go, `call NUMBER SLOT` and `large NUMBER SLOT`, makes the calls of each slot in a thread
of its own, one after another, and prints what it was told: `NUMBER WORD TEXT` (see tests/tests/endings/callers.rs). Each slot has a
connection, which is made anew when it was closed, or when another place is told. On DCOP each slot is an application of its own, which
keeps its connection to the server whatever becomes of its calls, as those of KDE do.
"""

import http.client
import queue
import sys
import threading

NAMESPACE = "http://tempuri.org/"
ACTION = NAMESPACE + "test.Counter/"
SLOTS = 20
CHANNELS = [None] * SLOTS
APPLICATIONS = {}
OUT = threading.Lock()


def tell(number, word, text=""):
    with OUT:
        print(number, word, " ".join(str(text).split())[:200], flush=True)


def over_http(place, slot, operation, number):
    """What the caller is told; HTTP itself never says whether a request that failed was executed."""
    value = number if operation == "count" else "A" * (100 << 10)
    body = (
        '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>'
        f'<{operation} xmlns="{NAMESPACE}"><v>{value}</v></{operation}></s:Body></s:Envelope>'
    )
    connection = CHANNELS[slot]
    if connection is None:
        connection = CHANNELS[slot] = http.client.HTTPConnection(place.split("/")[2])
        # It would connect anew by itself, unasked.
        connection.auto_open = 0
        try:
            connection.connect()
        except OSError as error:
            CHANNELS[slot] = None
            return "no", error
    try:
        headers = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": f'"{ACTION}{operation}"'}
        connection.request("POST", "/counter", body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    except Exception as error:  # whatever it makes of a connection that ends
        return "maybe", repr(error)
    if answer.will_close:
        CHANNELS[slot] = None
    if answer.status == 200 and f">{number + 1}<" in text:
        return "answered", ""
    return "maybe", f"{answer.status} {text}"


def over_nettcp(place, slot, operation, number):
    from pynettcp import Channel, ElementSpec, Field, TypeRegistry
    from pynettcp.contract import read_element, write_element

    registry = TypeRegistry(types={}, factories={})
    channel = CHANNELS[slot]
    if channel is None:
        channel = Channel(place)
        try:
            channel = CHANNELS[slot] = channel.__enter__()
        except Exception as error:  # a refusal, of the system or in the preamble: no message was sent
            return "no", repr(error)
    kind, value = ("xs:int", number) if operation == "count" else ("xs:base64Binary", bytes(100 << 10))
    spec = ElementSpec(operation, NAMESPACE, (Field("v", kind),))
    try:
        reply = channel.call(action=ACTION + operation, body=lambda writer: write_element(writer, spec, {"v": value}, registry))
        if reply.is_fault:
            return "maybe", reply
        result = f"{operation}Result"
        got = read_element(reply.body_events, ElementSpec(f"{operation}Response", NAMESPACE, (Field(result, "xs:int"),)), registry)
    except Exception as error:  # whatever it makes of a connection that ends
        return "maybe", repr(error)
    return ("answered", "") if got[result] == number + 1 else ("maybe", got)


def over_dcom(place, slot, operation, number):
    """What the caller is told: a fault says itself whether the call was executed."""
    import endings_dcom

    if CHANNELS[slot] is None:
        try:
            CHANNELS[slot] = endings_dcom.Counter(place.split("#")[0], sys.argv[2:])
        except Exception as error:  # a refusal, of the system or of the server: no message was sent
            return "no", repr(error)
    try:
        return CHANNELS[slot].call(operation, number)
    except Exception as error:  # whatever it makes of a connection that ends
        return "maybe", repr(error)


def over_dcop(place, slot, operation, number):
    """What the caller is told; a call that failed says nothing but that."""
    import dcop_peer

    if slot not in APPLICATIONS:
        # Both byte orders.
        APPLICATIONS[slot] = dcop_peer.Link("lB"[slot % 2])
        APPLICATIONS[slot].register(f"caller-{slot}".encode())
    function, value = ("count(int)", number) if operation == "count" else ("large(QByteArray)", bytes(100 << 10))
    application, name = place.encode().split(b"/")
    reply = APPLICATIONS[slot].call(application, name, function, value)
    if reply is None:
        return "maybe", "DCOPReplyFailed"
    wanted = "int", dcop_peer.put("int", number + 1)
    # A wrong answer must not pass for a call of which nothing is known.
    return ("answered", "") if reply == wanted else ("ended", f"the answer of another call: {reply}")


def let_go(slot):
    channel, CHANNELS[slot] = CHANNELS[slot], None
    if hasattr(channel, "close"):
        channel.close()


def work(wire, calls):
    while True:
        place, word, number, slot = calls.get()
        try:
            told = wire(place, slot, "count" if word == "call" else "large", number)
        except Exception as error:  # told to the test, which would wait for ever
            told = "maybe", f"this program: {error!r}"
        if told[0] != "answered":
            let_go(slot)
        tell(number, *told)


if __name__ == "__main__":
    WIRE = {"http": over_http, "nettcp": over_nettcp, "dcop": over_dcop, "dcom": over_dcom}[sys.argv[1]]
    CALLS = [queue.SimpleQueue() for _ in range(SLOTS)]
    for calls in CALLS:
        threading.Thread(target=work, args=(WIRE, calls), daemon=True).start()
    PLACE = None
    for line in sys.stdin:
        said, *rest = line.split()
        if said == "at":
            if rest[0] != PLACE:
                PLACE = rest[0]
                # All calls are told: nobody uses the connections now.
                for slot in range(SLOTS):
                    let_go(slot)
        else:
            CALLS[int(rest[1])].put((PLACE, said, int(rest[0]), int(rest[1])))
