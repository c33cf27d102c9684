"""dbus-fast on a bus: serves kitchen.dbus.xml, or checks whoever does.

    dbus_fast_peer.py call ADDRESS NAME
    dbus_fast_peer.py serve ADDRESS NAME      prints `ready`; ends when its standard input does
"""

import asyncio
import os
import sys

from dbus_fast import DBusError, Message, MessageType, PropertyAccess, Variant
from dbus_fast.aio import MessageBus
from dbus_fast.service import ServiceInterface, dbus_method, dbus_property, dbus_signal

PATH = "/org/example/Kitchen"
INTERFACE = "org.example.Kitchen"
DIVISION_BY_ZERO = "org.example.Error.DivisionByZero"


def pipe_with(text):
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    return reader


def read_all(fd):
    with os.fdopen(fd) as file:
        return file.read()


class Kitchen(ServiceInterface):
    def __init__(self):
        super().__init__(INTERFACE)
        self.title, self.changes, self.silent, self.remembered = "kitchen", 0, -1, []
        self.facts = {"answer": Variant("i", 42)}

    @dbus_method()
    def Nothing(self):
        pass

    @dbus_method()
    def EchoBasics(
        self, y: "y", b: "b", n: "n", q: "q", i: "i", u: "u", x: "x", t: "t", d: "d", s: "s", o: "o", g: "g"
    ) -> "ybnqiuxtdsog":
        return [y, b, n, q, i, u, x, t, d, s, o, g]

    @dbus_method()
    def EchoBytes(self, v: "ay") -> "ay":
        return v

    @dbus_method()
    def EchoTexts(self, texts: "as", paths: "ao") -> "asao":
        return [texts, paths]

    @dbus_method()
    def EchoNumbers(self, bools: "ab", shorts: "an", longs: "ax", doubles: "ad") -> "abanaxad":
        return [bools, shorts, longs, doubles]

    @dbus_method()
    def EchoStruct(self, v: "(is(yad)a{sv})") -> "(is(yad)a{sv})":
        return v

    @dbus_method()
    def EchoDicts(self, by_byte: "a{ys}", by_path: "a{oas}", nested: "a{sa{sv}}") -> "a{ys}a{oas}a{sa{sv}}":
        return [by_byte, by_path, nested]

    @dbus_method()
    def EchoVariant(self, v: "v") -> "v":
        return v

    @dbus_method()
    def EchoVariants(self, v: "av") -> "av":
        return v

    @dbus_method()
    def EchoDeep(self, v: "aaaa(aya{t(ia(sv))})") -> "aaaa(aya{t(ia(sv))})":
        return v

    @dbus_method()
    def Divide(self, a: "i", b: "i") -> "ii":
        if b == 0:
            raise DBusError(DIVISION_BY_ZERO, "division by zero")
        quotient = int(a / b)
        return [quotient, a - quotient * b]

    @dbus_method()
    def Total(self, v: "ai") -> "x":
        return sum(v)

    @dbus_method()
    def Bytes(self, n: "u") -> "ay":
        return (bytes(range(256)) * (n // 256 + 1))[:n]

    @dbus_method()
    def Open(self, text: "s") -> "h":
        return pipe_with(text)

    @dbus_method()
    def ReadAll(self, first: "h", others: "ah") -> "s":
        return "".join(read_all(fd) for fd in [first, *others])

    @dbus_method()
    def Remember(self, what: "s"):
        self.remembered.append(what)

    @dbus_method()
    def Remembered(self) -> "as":
        return self.remembered

    @dbus_method()
    def Fire(self, n: "u"):
        for i in range(n):
            self.Tick(i)

    @dbus_method()
    def FireRich(self, facts: "a{sv}", pair: "(is)", paths: "ao", any: "v"):
        self.Rich(facts, pair, paths, any)

    @dbus_signal()
    def Tick(self, i) -> "us":
        return [i, f"tick {i}"]

    @dbus_signal()
    def Rich(self, facts, pair, paths, any) -> "a{sv}(is)aov":
        return [facts, pair, paths, any]

    @dbus_property()
    def Title(self) -> "s":
        return self.title

    @Title.setter
    def Title(self, value: "s"):
        self.title = value
        self.changes += 1
        self.emit_properties_changed({"Title": value}, ["Changes"])

    @dbus_property(access=PropertyAccess.READ)
    def Changes(self) -> "u":
        return self.changes

    @dbus_property(access=PropertyAccess.READ)
    def Fixed(self) -> "(su)":
        return ["fixed", 7]

    @dbus_property()
    def Silent(self) -> "x":
        return self.silent

    @Silent.setter
    def Silent(self, value: "x"):
        self.silent = value

    @dbus_property()
    def Facts(self) -> "a{sv}":
        return self.facts

    @Facts.setter
    def Facts(self, value: "a{sv}"):
        self.facts = value
        self.emit_properties_changed({"Facts": value})


async def serve(address, name):
    bus = await MessageBus(bus_address=address, negotiate_unix_fd=True).connect()
    bus.export(PATH, Kitchen())
    await bus.request_name(name)
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def call(address, name):
    bus = await MessageBus(bus_address=address, negotiate_unix_fd=True).connect()
    node = await bus.introspect(name, PATH)
    proxy = bus.get_proxy_object(name, PATH, node)
    kitchen = proxy.get_interface(INTERFACE)
    checks = 0

    async def echo(method, *values):
        nonlocal checks
        got = await getattr(kitchen, f"call_{method}")(*values)
        wanted = values[0] if len(values) == 1 else list(values)
        assert got == wanted, (method, got, wanted)
        checks += 1

    await kitchen.call_nothing()
    await echo("echo_basics", 255, True, -2, 65534, -3, 2**32 - 3, -4, 2**64 - 5, 0.25, "Grüße €", "/a/b", "a{sv}")
    await echo("echo_bytes", b"\x01\x02\xff")
    await echo("echo_texts", ["", "a", "bc"], ["/", "/x"])
    await echo("echo_numbers", [True, False], [1, -2], [-1, 2**40], [0.5, -0.25])
    await echo("echo_struct", (1, "two", (3, [4.0, 5.5]), {"k": Variant("s", "v"), "n": Variant("ai", [1, 2])}))
    await echo("echo_dicts", {1: "one", 254: "two"}, {"/a": ["x"], "/b": []}, {"in": {"d": Variant("(yt)", (1, 2**50))}})
    await echo("echo_variant", Variant("a{t(ia(sv))}", {7: (1, [("x", Variant("d", 2.5))])}))
    await echo("echo_variants", [Variant("n", -1), Variant("v", Variant("q", 2)), Variant("ax", [2**33])])
    await echo("echo_deep", [[[[(b"\x01\x02", {3: (4, [("x", Variant("d", 5.5))])})], []]], []])
    assert await kitchen.call_divide(17, 5) == [3, 2]
    assert await kitchen.call_total([1, -2, 2**31 - 1, 2**31 - 1]) == 2**32 - 3
    try:
        await kitchen.call_divide(1, 0)
        raise AssertionError("division by zero went well")
    except DBusError as error:
        assert error.type == DIVISION_BY_ZERO, error.type
    for n in (0, 1, 1_000_000, 8 << 20):
        got = await kitchen.call_bytes(n)
        assert got == (bytes(range(256)) * (n // 256 + 1))[:n], n
        checks += 1
    got = await kitchen.call_echo_bytes(bytes(8 << 20))
    assert got == bytes(8 << 20)

    fd = await kitchen.call_open("by a pipe")
    assert read_all(fd) == "by a pipe"
    reply = await bus.call(
        Message(
            destination=name,
            path=PATH,
            interface=INTERFACE,
            member="ReadAll",
            signature="hah",
            body=[2, [1, 0]],
            unix_fds=[pipe_with(text) for text in ("one ", "two ", "three")],
        )
    )
    assert reply.message_type == MessageType.METHOD_RETURN and reply.body == ["threetwo one "], reply.body

    ticks, rich, changed = [], [], []
    kitchen.on_tick(lambda i, text: ticks.append((i, text)))
    kitchen.on_rich(lambda *fields: rich.append(fields))
    properties = proxy.get_interface("org.freedesktop.DBus.Properties")
    properties.on_properties_changed(lambda *fields: changed.append(fields))
    # The bus has the rules when it has answered something behind them.
    await kitchen.call_nothing()
    await kitchen.call_fire(50)
    facts, pair = {"a": Variant("i", 1)}, (7, "seven")
    await kitchen.call_fire_rich(facts, pair, ["/a"], Variant("(sd)", ("any", 2.5)))
    assert await kitchen.get_title() != ""
    await kitchen.set_title("Küche")
    assert await kitchen.get_title() == "Küche"
    assert await kitchen.get_fixed() == ("fixed", 7)
    await kitchen.set_silent(-5)
    assert await kitchen.get_silent() == -5
    await kitchen.set_facts({"b": Variant("a{sv}", {"c": Variant("s", "d")})})
    assert await kitchen.get_facts() == {"b": Variant("a{sv}", {"c": Variant("s", "d")})}
    assert len(await properties.call_get_all(INTERFACE)) == 5
    end = asyncio.get_running_loop().time() + 300
    of = lambda name: any(name in fields[1] or name in fields[2] for fields in changed)
    while not (len(ticks) == 50 and rich and of("Title") and of("Changes") and of("Facts")):
        assert asyncio.get_running_loop().time() < end, (len(ticks), rich, changed)
        await asyncio.sleep(0.005)
    assert ticks == [(i, f"tick {i}") for i in range(50)]
    assert rich == [(facts, pair, ["/a"], Variant("(sd)", ("any", 2.5)))], rich
    assert not of("Silent")
    print("ok", checks)


if __name__ == "__main__":
    asyncio.run({"call": call, "serve": serve}[sys.argv[1]](*sys.argv[2:]))
