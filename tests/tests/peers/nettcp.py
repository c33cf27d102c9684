"""Another implementation of net.tcp, pynettcp, calls a server.

    nettcp.py bench ADDRESS     asks the service for its contract, makes a client of the answer, and calls everything
    nettcp.py cellar ADDRESS    classes, lists, texts, faults with their details, without a contract
    nettcp.py wrong ADDRESS     a path and an action that nobody has
    nettcp.py session ADDRESS   many calls and names in one session, several sessions at once

Prints `ok` at the end.
"""

import importlib.util
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from pynettcp import Channel, DictStr, ElementSpec, Field, FramingFault, SessionStr, TypeRegistry
from pynettcp.contract import UNBOUNDED, ComplexType, read_element, write_element
from pynettcp.faults import parse_fault

CELLAR = "http://everywire.test/cellar"
TYPES = "http://schemas.datacontract.org/2004/07/Everywire.Cellar"
ARRAYS = "http://schemas.microsoft.com/2003/10/Serialization/Arrays"
LABELS = "urn:labels"


def same(got, wanted, what):
    if got != wanted:
        raise AssertionError(f"{what}: wanted {wanted!r}, got {got!r}")
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
    with Channel(address) as channel:
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
        with Channel(address + "/nowhere") as channel:
            call(channel, "Nothing", [], ())
        raise AssertionError("an endpoint that is nowhere")
    except FramingFault as fault:
        print(fault)
        assert "EndpointNotFound" in str(fault), fault
    with Channel(address) as channel:
        reply = channel.call(action="urn:nobody/listens", body=lambda writer: write_element(writer, ElementSpec("X", "urn:x", ()), {}, REGISTRY))
        assert reply.is_fault
        fault = parse_fault(reply.body_events)
        same((fault.subcode or fault.code).split(":")[-1], "ActionNotSupported", "action")
        same(call(channel, "Take", [("kind", "xs:int", 0)], (Field("TakeResult", "xs:int"),)), {"TakeResult": 17}, "Take.after")


def session(address):
    failures = []

    def one():
        try:
            with Channel(address) as channel:
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


{"bench": bench, "cellar": cellar, "wrong": wrong, "session": session}[sys.argv[1]](sys.argv[2])
print("ok")
