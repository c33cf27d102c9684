"""dbus-python, which stands on libdbus, on a bus: serves kitchen.dbus.xml, or checks whoever does.

    dbus_python_peer.py call ADDRESS NAME
    dbus_python_peer.py serve ADDRESS NAME      prints `ready`; ends when its standard input does
"""

import os
import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

PATH = "/org/example/Kitchen"
INTERFACE = "org.example.Kitchen"
PROPERTIES = "org.freedesktop.DBus.Properties"
ERROR = "org.freedesktop.DBus.Error."

dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)


def pipe_with(text):
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    return reader


def read_all(handle):
    with os.fdopen(handle.take()) as file:
        return file.read()


def method(takes, gives):
    return dbus.service.method(INTERFACE, in_signature=takes, out_signature=gives, byte_arrays=True)


class DivisionByZero(dbus.DBusException):
    _dbus_error_name = "org.example.Error.DivisionByZero"


class Kitchen(dbus.service.Object):
    def __init__(self, bus):
        super().__init__(bus, PATH)
        self.remembered = []
        self.held = {
            "Title": dbus.String("kitchen"),
            "Changes": dbus.UInt32(0),
            "Fixed": dbus.Struct(("fixed", dbus.UInt32(7))),
            "Silent": dbus.Int64(-1),
            "Facts": dbus.Dictionary({"answer": 42}, signature="sv"),
        }

    @method("ybnqiuxtdsog", "ybnqiuxtdsog")
    def EchoBasics(self, y, b, n, q, i, u, x, t, d, s, o, g):
        return y, b, n, q, i, u, x, t, d, s, o, g

    @method("ay", "ay")
    def EchoBytes(self, v):
        return v

    @method("asao", "asao")
    def EchoTexts(self, texts, paths):
        return texts, paths

    @method("abanaxad", "abanaxad")
    def EchoNumbers(self, bools, shorts, longs, doubles):
        return bools, shorts, longs, doubles

    @method("(is(yad)a{sv})", "(is(yad)a{sv})")
    def EchoStruct(self, v):
        return v

    @method("a{ys}a{oas}a{sa{sv}}", "a{ys}a{oas}a{sa{sv}}")
    def EchoDicts(self, by_byte, by_path, nested):
        return by_byte, by_path, nested

    @method("v", "v")
    def EchoVariant(self, v):
        return v

    @method("av", "av")
    def EchoVariants(self, v):
        return v

    @method("aaaa(aya{t(ia(sv))})", "aaaa(aya{t(ia(sv))})")
    def EchoDeep(self, v):
        return v

    @method("ha(sh)", "ha(sh)")
    def EchoHandles(self, first, others):
        return first, others

    @method("", "")
    def Nothing(self):
        pass

    @method("ii", "ii")
    def Divide(self, a, b):
        if b == 0:
            raise DivisionByZero("division by zero")
        return int(a / b), a - int(a / b) * b

    @method("ai", "x")
    def Total(self, v):
        return sum(v)

    @method("u", "ay")
    def Bytes(self, n):
        return dbus.ByteArray((bytes(range(256)) * (n // 256 + 1))[:n])

    @method("s", "h")
    def Open(self, text):
        reader = pipe_with(text)
        handle = dbus.types.UnixFd(reader)
        os.close(reader)
        return handle

    @method("hah", "s")
    def ReadAll(self, first, others):
        return "".join(read_all(handle) for handle in [first, *others])

    @method("s", "")
    def Remember(self, what):
        self.remembered.append(what)

    @method("", "as")
    def Remembered(self):
        return self.remembered

    @method("u", "")
    def Fire(self, n):
        for i in range(n):
            self.Tick(i, f"tick {i}")

    @method("a{sv}(is)aov", "")
    def FireRich(self, facts, pair, paths, any):
        self.Rich(facts, pair, paths, any)

    @dbus.service.signal(INTERFACE, "us")
    def Tick(self, i, text):
        pass

    @dbus.service.signal(INTERFACE, "a{sv}(is)aov")
    def Rich(self, facts, pair, paths, any):
        pass

    @dbus.service.method(PROPERTIES, in_signature="ss", out_signature="v")
    def Get(self, interface, name):
        return self.held[name]

    @dbus.service.method(PROPERTIES, in_signature="s", out_signature="a{sv}")
    def GetAll(self, interface):
        return self.held

    @dbus.service.method(PROPERTIES, in_signature="ssv", out_signature="")
    def Set(self, interface, name, value):
        self.held[name] = value
        if name == "Title":
            self.held["Changes"] = dbus.UInt32(self.held["Changes"] + 1)
        if name != "Silent":
            self.PropertiesChanged(INTERFACE, {name: value}, ["Changes"] if name == "Title" else [])

    @dbus.service.signal(PROPERTIES, "sa{sv}as")
    def PropertiesChanged(self, interface, changed, invalidated):
        pass


def serve(address, name):
    bus = dbus.bus.BusConnection(address)
    kitchen = Kitchen(bus)
    owned = dbus.service.BusName(name, bus)
    loop = GLib.MainLoop()
    GLib.io_add_watch(sys.stdin, GLib.IO_IN | GLib.IO_HUP, lambda *_: loop.quit())
    print("ready", flush=True)
    loop.run()


def fails(error, call, *arguments):
    try:
        call(*arguments)
    except dbus.DBusException as failed:
        assert failed.get_dbus_name() == error, failed
    else:
        raise AssertionError(f"no {error}")


def call(address, name):
    bus = dbus.bus.BusConnection(address)
    proxy = bus.get_object(name, PATH)
    kitchen, properties = dbus.Interface(proxy, INTERFACE), dbus.Interface(proxy, PROPERTIES)

    def echoes(method, *values):
        got = getattr(kitchen, method)(*values)
        wanted = values[0] if len(values) == 1 else values
        assert got == wanted, (method, got, wanted)

    kitchen.Nothing()
    echoes("EchoBasics", 255, True, -2, 65534, -3, 2**32 - 3, -(2**63), 2**64 - 5, 0.25, "Grüße €", "/a/b", "a{sv}")
    echoes("EchoTexts", ["", "a", "bc"], ["/", "/x"])
    echoes("EchoNumbers", [True, False], [1, -2], [-1, 2**40], [0.5, -0.25])
    echoes("EchoStruct", (1, "two", (3, [4.0, 5.5]), {"k": "v", "n": dbus.Array([1, 2], signature="i")}))
    echoes("EchoDicts", {1: "one", 254: "two"}, {"/a": ["x"], "/b": []}, {"in": {"d": dbus.Struct((dbus.Byte(1), dbus.UInt64(2**50)))}})
    deep = dbus.Dictionary({7: (1, [("x", 2.5)])}, signature="t(ia(sv))")
    echoes("EchoVariant", deep)
    echoes("EchoVariants", [dbus.Int16(-1), dbus.UInt16(2, variant_level=2), dbus.Array([], signature="a{sv}")])
    echoes("EchoDeep", [[[[([1, 2], {3: (4, [("x", 5.5)])})], []]], []])
    for n in (0, 1, 1_000_000, 8 << 20):
        got = kitchen.Bytes(dbus.UInt32(n), byte_arrays=True)
        assert got == (bytes(range(256)) * (n // 256 + 1))[:n], n
    assert kitchen.EchoBytes(dbus.ByteArray(bytes(8 << 20)), byte_arrays=True) == bytes(8 << 20)
    assert kitchen.Divide(17, 5) == (3, 2)
    assert kitchen.Total([1, -2, 2**31 - 1, 2**31 - 1]) == 2**32 - 3
    fails("org.example.Error.DivisionByZero", kitchen.Divide, 1, 0)
    fails(ERROR + "UnknownMethod", kitchen.get_dbus_method("Nope"))
    fails(ERROR + "InvalidArgs", lambda: bus.call_blocking(name, PATH, INTERFACE, "Divide", "s", ("x",)))
    fails(ERROR + "PropertyReadOnly", properties.Set, INTERFACE, "Fixed", 5)
    fails(ERROR + "InvalidArgs", properties.Set, INTERFACE, "Title", 5)
    fails(ERROR + "UnknownProperty", properties.Get, INTERFACE, "Nope")

    assert read_all(kitchen.Open("by a pipe")) == "by a pipe"
    texts = ("three", "two ", "one ")
    first, *others = [dbus.types.UnixFd(pipe_with(text)) for text in texts]
    assert kitchen.ReadAll(first, others) == "threetwo one "

    # The library reads no annotations: this one waits for an answer.
    kitchen.Remember("this")
    assert kitchen.Remembered()[-1] == "this"

    ticks, rich, changed, loop = [], [], [], GLib.MainLoop()
    of = lambda name: any(name in told or name in stale for _, told, stale in changed)

    def note(list, fields):
        list.append(fields)
        if len(ticks) == 50 and rich and of("Title") and of("Changes") and of("Facts"):
            loop.quit()

    for interface, signal, list in ((kitchen, "Tick", ticks), (kitchen, "Rich", rich), (properties, "PropertiesChanged", changed)):
        interface.connect_to_signal(signal, lambda *fields, list=list: note(list, fields))
    kitchen.Fire(50)
    fields = ({"a": 1}, (7, "seven"), ["/a"], dbus.Struct(("any", 2.5)))
    kitchen.FireRich(*fields)
    for property, value in (("Title", "Küche"), ("Silent", dbus.Int64(-5)), ("Facts", dbus.Dictionary({"b": {"c": "d"}}, signature="sv"))):
        properties.Set(INTERFACE, property, value)
        assert properties.Get(INTERFACE, property) == value, property
    assert properties.Get(INTERFACE, "Fixed") == ("fixed", 7)
    assert len(properties.GetAll(INTERFACE)) == 5
    loop.run()
    assert ticks == [(i, f"tick {i}") for i in range(50)]
    assert rich == [fields], rich
    assert not of("Silent")
    print("ok")


if __name__ == "__main__":
    {"call": call, "serve": serve}[sys.argv[1]](*sys.argv[2:])
