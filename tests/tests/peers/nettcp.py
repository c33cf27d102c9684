"""Another implementation of net.tcp, pynettcp, calls a server.

    nettcp.py bench ADDRESS     asks the service for its contract, makes a client of the answer, and calls everything
    nettcp.py cellar ADDRESS    classes, lists, texts, faults with their details, without a contract
    nettcp.py wrong ADDRESS     a path and an action that nobody has
    nettcp.py session ADDRESS   many calls and names in one session, several sessions at once
    nettcp.py quotas ADDRESS    more than the server takes, and something small after it
    nettcp.py windows ADDRESS USER PASSWORD
                                as a Windows user (NegotiateStream), and as one with another password

Prints `ok` at the end.
"""

import glob
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

# The library that pynettcp takes for Windows authentication stands in an environment of its own.
sys.path.extend(glob.glob(os.environ.get("PYSPNEGO", "/nonexistent") + "/lib/python*/site-packages"))

from pynettcp import Channel, DictStr, ElementSpec, Field, FramingFault, SessionStr, TypeRegistry
from pynettcp.contract import UNBOUNDED, ComplexType, read_element, write_element
from pynettcp.faults import parse_fault

CELLAR = "http://everywire.test/cellar"
TYPES = "http://schemas.datacontract.org/2004/07/Everywire.Cellar"
ARRAYS = "http://schemas.microsoft.com/2003/10/Serialization/Arrays"
LABELS = "urn:labels"

# How long it waits for bytes, in seconds: on a busy machine sessions that wait for each other take longer than its own 30.
PATIENCE = 600


def opened(address, **more):
    return Channel(address, timeout=PATIENCE, **more)


def same(got, wanted, what):
    if got != wanted:
        raise AssertionError(f"{what}: wanted {wanted!r:.1000}, got {got!r:.1000}")
    print(what, repr(got)[:100])


def bench(address):
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "client.py"
        subprocess.run([sys.executable, "-m", "pynettcp.codegen", address + "/mex", "-o", str(file)], check=True)
        spec = importlib.util.spec_from_file_location("client", file)
        module = importlib.util.module_from_spec(spec)
        sys.modules["client"] = module
        spec.loader.exec_module(module)
    made = [name for name in vars(module) if name.endswith("Client")]
    with getattr(module, made[0])(address) as client:
        # Multiples of three: of bytes that come in two records, as .NET writes others, it takes the last alone.
        for size in (0, 3, 99, 65535, 300000):
            data = client.get_bytes(size)
            same(data or b"", bytes(i % 256 for i in range(size)), f"GetBytes.{size}")
            same(client.put_bytes(data), size, f"PutBytes.{size}")
        same(client.void_call(), None, "VoidCall")
        same(client.in_int(42), None, "InInt")
        same(client.out_int(), 42, "OutInt")
        same(client.in_out_int(41), 42, "InOutInt")
        same(client.in_string("Hello, World! 0123456789"), None, "InString")
        same(client.out_string(), "Hello, World! 0123456789", "OutString")
        same(client.in_out_string("Grüße"), "Grüße", "InOutString")


REGISTRY = TypeRegistry(
    types={
        "Label": ComplexType("Label", LABELS, (Field("Text", "xs:string", nillable=True), Field("Year", "xs:int"))),
        "ArrayOfLabel": ComplexType("ArrayOfLabel", LABELS, (Field("Label", "Label", max_occurs=UNBOUNDED, nillable=True),)),
        "ArrayOfint": ComplexType("ArrayOfint", ARRAYS, (Field("int", "xs:int", max_occurs=UNBOUNDED),)),
    },
    factories={},
)


def call(channel, operation, arguments, results):
    reply = channel.call(
        action=f"{CELLAR}/ICellar/{operation}",
        body=lambda writer: write_element(
            writer, ElementSpec(operation, CELLAR, tuple(Field(n, t) for n, t, _ in arguments)), {n: v for n, _, v in arguments}, REGISTRY
        ),
    )
    if reply.is_fault:
        return parse_fault(reply.body_events)
    if results is None:
        return None
    return read_element(reply.body_events, ElementSpec(operation + "Response", CELLAR, results), REGISTRY)


def echo(channel, name, kind, value):
    result = f"Echo{name}Result"
    reply = call(channel, f"Echo{name}", [("v", kind, value)], (Field(result, kind),))
    return getattr(reply, "reason", None) or reply[result]


def cellar(address):
    with opened(address) as channel:
        same(echo(channel, "Int32", "xs:int", -2000000000), -2000000000, "EchoInt32")
        text = "Grüße <&> \"'\n\t€ 😀 ]]>"
        same(echo(channel, "String", "xs:string", text), text, "EchoString")
        same(echo(channel, "Boolean", "xs:boolean", True), True, "EchoBoolean")
        same(echo(channel, "Double", "xs:double", -0.1), -0.1, "EchoDouble")
        ints = [1, -2, 70000, 0, -(2**31), 2**31 - 1]
        same(echo(channel, "Ints", "ArrayOfint", {"int": ints})["int"], ints, "EchoInts")
        labels = [{"Text": "one", "Year": 1901}, {"Text": "", "Year": 0}]
        got = echo(channel, "Labels", "ArrayOfLabel", {"Label": labels})["Label"]
        same([(one["Text"] or "", one["Year"]) for one in got], [("one", 1901), ("", 0)], "EchoLabels")
        same(call(channel, "Take", [("kind", "xs:int", 0)], (Field("TakeResult", "xs:int"),)), {"TakeResult": 17}, "Take")
        for kind, name in ((1, "OutOfStock"), (2, "Broken")):
            fault = call(channel, "Take", [("kind", "xs:int", kind)], ())
            same((fault.code.split(":")[-1], fault.detail_name), ("Sender", name), f"Take.{kind}")
        fault = call(channel, "Take", [("kind", "xs:int", 1)], ())
        spec = ElementSpec("OutOfStock", TYPES, (Field("Left", "xs:int"), Field("Name", "xs:string")))
        same(read_element(fault.detail_events, spec, REGISTRY), {"Left": 2, "Name": "Brut"}, "Take.detail")
        same(call(channel, "Take", [("kind", "xs:int", 0)], (Field("TakeResult", "xs:int"),)), {"TakeResult": 17}, "Take.after")


def wrong(address):
    try:
        with opened(address + "/nowhere") as channel:
            call(channel, "Nothing", [], ())
        raise AssertionError("an endpoint that is nowhere")
    except FramingFault as fault:
        print(fault)
        assert "EndpointNotFound" in str(fault), fault
    with opened(address) as channel:
        reply = channel.call(action="urn:nobody/listens", body=lambda writer: write_element(writer, ElementSpec("X", "urn:x", ()), {}, REGISTRY))
        assert reply.is_fault
        fault = parse_fault(reply.body_events)
        same((fault.subcode or fault.code).split(":")[-1], "ActionNotSupported", "action")
        same(call(channel, "Take", [("kind", "xs:int", 0)], (Field("TakeResult", "xs:int"),)), {"TakeResult": 17}, "Take.after")


def session(address):
    failures = []

    def one():
        try:
            with opened(address) as channel:
                for _ in range(100):
                    result = call(channel, "Take", [("kind", "xs:int", 0)], (Field("TakeResult", "xs:int"),))
                    assert result == {"TakeResult": 17}, result
                    assert echo(channel, "Int32", "xs:int", -2000000000) == -2000000000
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def take(channel):
    same(call(channel, "Take", [("kind", "xs:int", 0)], (Field("TakeResult", "xs:int"),)), {"TakeResult": 17}, "Take")


def quotas(address):
    """Against MaxReceivedMessageSize=100000, MaxArrayLength=1000, MaxStringContentLength=2000."""
    with opened(address) as channel:
        for name, kind, value, quota, limit in (
            ("Bytes", "xs:base64Binary", bytes(1200), "MaxArrayLength", 1000),
            ("String", "xs:string", "x" * 2001, "MaxStringContentLength", 2000),
            ("Ints", "ArrayOfint", {"int": list(range(1001))}, "MaxArrayLength", 1000),
        ):
            said = echo(channel, name, kind, value)
            if not (isinstance(said, str) and quota in said and f"({limit})" in said and f"{quota}=" in said):
                raise AssertionError(f"Echo{name}: {said!r}")
            print(f"Echo{name}", said[:300])
            take(channel)
    with opened(address) as channel:
        try:
            echo(channel, "Bytes", "xs:base64Binary", bytes(200000))
            raise AssertionError("a message over MaxReceivedMessageSize")
        except FramingFault as fault:
            print(fault)
            assert "MaxMessageSizeExceededFault" in str(fault), fault
    with opened(address) as channel:
        take(channel)


def windows(address):
    who = {"security": "transport", "spn": "host/localhost"}
    with opened(address, username=sys.argv[3], password=sys.argv[4], **who) as channel:
        take(channel)
        # The service wants another text, and says which one it got: much goes both ways.
        text = "Grüße" * 5000
        said = echo(channel, "String", "xs:string", text)
        same(text in said, True, "EchoString")
        take(channel)
    try:
        with opened(address, username=sys.argv[3], password="another", **who) as channel:
            take(channel)
    except Exception as error:  # noqa: BLE001 - whatever it makes of it
        print("refused", type(error).__name__, error)
    else:
        raise AssertionError("another password is taken")
    with opened(address, username=sys.argv[3], password=sys.argv[4], **who) as channel:
        take(channel)


deeds = {"bench": bench, "cellar": cellar, "wrong": wrong, "session": session, "quotas": quotas, "windows": windows}
deeds[sys.argv[1]](sys.argv[2])
print("ok")
