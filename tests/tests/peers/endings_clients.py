"""Clients of WCF in Python: `endings_wcf.py http HOST:PORT` and `endings_wcf.py nettcp ADDRESS`.

Reads `call NUMBER SLOT` and `large NUMBER SLOT`, makes each call in a thread of its own, and prints what it was told: `NUMBER WORD TEXT`
(see tests/tests/endings/callers.rs). Each slot has a connection, which is made anew when it was closed.
"""

import http.client
import sys
import threading

NAMESPACE = "http://tempuri.org/"
ACTION = NAMESPACE + "test.Counter/"
LOCKS = [threading.Lock() for _ in range(20)]
CHANNELS = [None] * 20
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
        connection = CHANNELS[slot] = http.client.HTTPConnection(place)
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
        connection.close()
        CHANNELS[slot] = None
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
        CHANNELS[slot] = None
        return "maybe", repr(error)
    return ("answered", "") if got[result] == number + 1 else ("maybe", got)


def make(wire, place, word, number, slot):
    with LOCKS[slot]:
        try:
            told = wire(place, slot, "count" if word == "call" else "large", number)
        except Exception as error:  # told to the test, which would wait for ever
            told = "maybe", f"this program: {error!r}"
    tell(number, *told)


if __name__ == "__main__":
    WIRE = {"http": over_http, "nettcp": over_nettcp}[sys.argv[1]]
    for line in sys.stdin:
        said, which, where = line.split()
        threading.Thread(target=make, args=(WIRE, sys.argv[2], said, int(which), int(where)), daemon=True).start()
