"""D-Bus by hand, in the byte order that is asked for: nothing but sockets and the specification.

    dbus_raw.py call ADDRESS NAME ORDER         checks whoever serves kitchen.dbus.xml
    dbus_raw.py serve ADDRESS NAME ORDER        serves a part of it; ends when its standard input does
    dbus_raw.py listen SOCKET - ORDER           the same, peer to peer

ADDRESS is the path of a socket; NAME is - without a bus; ORDER is l or B.
"""

import os
import select
import socket
import struct
import sys

PATH = "/org/example/Kitchen"
INTERFACE = "org.example.Kitchen"
PROPERTIES = "org.freedesktop.DBus.Properties"
BUS = ("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")
FIXED = {"y": "B", "n": "h", "q": "H", "i": "i", "u": "I", "x": "q", "t": "Q", "d": "d", "b": "I", "h": "I"}


def complete(signature, at):
    """Where the complete type at a place ends."""
    letter = signature[at]
    if letter == "a":
        return complete(signature, at + 1)
    if letter in "({":
        at += 1
        while signature[at] not in ")}":
            at = complete(signature, at)
    return at + 1


def split(signature):
    parts, at = [], 0
    while at < len(signature):
        end = complete(signature, at)
        parts.append(signature[at:end])
        at = end
    return parts


def alignment(signature):
    letter = signature[0]
    if letter in FIXED:
        return struct.calcsize(FIXED[letter])
    return {"s": 4, "o": 4, "g": 1, "v": 1, "a": 4}.get(letter, 8)


class Writer:
    def __init__(self, order):
        self.order, self.out = "<" if order == "l" else ">", bytearray()

    def pad(self, n):
        self.out += bytes(-len(self.out) % n)

    def put(self, signature, value):
        letter = signature[0]
        self.pad(alignment(signature))
        if letter in FIXED:
            self.out += struct.pack(self.order + FIXED[letter], value)
        elif letter in "so":
            text = value.encode()
            self.out += struct.pack(self.order + "I", len(text)) + text + b"\0"
        elif letter == "g":
            self.out += bytes([len(value)]) + value.encode() + b"\0"
        elif letter == "v":
            self.put("g", value[0])
            self.put(value[0], value[1])
        elif letter == "a":
            at = len(self.out)
            self.out += bytes(4)
            self.pad(alignment(signature[1:]))
            begin = len(self.out)
            for item in value.items() if signature[1] == "{" else value:
                self.put(signature[1:], item)
            self.out[at : at + 4] = struct.pack(self.order + "I", len(self.out) - begin)
        else:
            for part, item in zip(split(signature[1:-1]), value, strict=True):
                self.put(part, item)


class Reader:
    def __init__(self, order, data, at=0):
        self.order, self.data, self.at = "<" if order == "l" else ">", data, at

    def pad(self, n):
        self.at += -self.at % n

    def number(self, form):
        size = struct.calcsize(form)
        value = struct.unpack_from(self.order + form, self.data, self.at)[0]
        self.at += size
        return value

    def get(self, signature):
        letter = signature[0]
        self.pad(alignment(signature))
        if letter in FIXED:
            value = self.number(FIXED[letter])
            return bool(value) if letter == "b" else value
        if letter in "sog":
            size = self.number("B" if letter == "g" else "I")
            text = bytes(self.data[self.at : self.at + size]).decode()
            self.at += size + 1
            return text
        if letter == "v":
            inner = self.get("g")
            return (inner, self.get(inner))
        if letter == "a":
            size = self.number("I")
            self.pad(alignment(signature[1:]))
            end, items = self.at + size, []
            while self.at < end:
                items.append(self.get(signature[1:]))
            assert self.at == end
            return dict(items) if signature[1] == "{" else items
        return tuple(self.get(part) for part in split(signature[1:-1]))


class Link:
    def __init__(self, sock, order):
        self.sock, self.order, self.serial, self.input = sock, order, 0, b""
        self.signals, self.orders = [], set()

    def more(self):
        piece = self.sock.recv(1 << 16)
        if not piece:
            raise EOFError
        self.input += piece

    def line(self):
        while b"\r\n" not in self.input:
            self.more()
        line, self.input = self.input.split(b"\r\n", 1)
        return line

    def introduce(self):
        self.sock.sendall(b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n")
        assert self.line().startswith(b"OK ")
        self.sock.sendall(b"BEGIN\r\n")

    def admit(self):
        while not self.input:
            self.more()
        assert self.input[0] == 0
        self.input = self.input[1:]
        while True:
            line = self.line()
            if line.startswith(b"AUTH EXTERNAL"):
                self.sock.sendall(b"OK 0123456789abcdef0123456789abcdef\r\n")
            elif line == b"BEGIN":
                return
            else:
                self.sock.sendall(b"ERROR\r\n")

    def send(self, kind, fields, signature="", values=(), flags=0):
        body = Writer(self.order)
        for part, value in zip(split(signature), values, strict=True):
            body.put(part, value)
        if signature:
            fields = fields + [(8, ("g", signature))]
        self.serial += 1
        head = Writer(self.order)
        head.out += self.order.encode() + bytes([kind, flags, 1])
        head.put("u", len(body.out))
        head.put("u", self.serial)
        head.put("a(yv)", fields)
        head.pad(8)
        self.sock.sendall(bytes(head.out + body.out))
        return self.serial

    def receive(self):
        """Kind, serial, flags, fields, values of the next message."""
        while len(self.input) < 16:
            self.more()
        order = chr(self.input[0])
        length, serial, fields = (Reader(order, self.input, at).number("I") for at in (4, 8, 12))
        whole = 16 + fields + -fields % 8 + length
        while len(self.input) < whole:
            self.more()
        message, self.input = self.input[:whole], self.input[whole:]
        self.orders.add(order)
        found = dict(Reader(order, message, 12).get("a(yv)"))
        body = Reader(order, message[whole - length :])
        signature = found.get(8, ("g", ""))[1]
        return message[1], serial, message[2], found, [body.get(part) for part in split(signature)]

    def call(self, name, path, interface, member, signature="", values=()):
        fields = [(1, ("o", path)), (2, ("s", interface)), (3, ("s", member))]
        if name != "-":
            fields.append((6, ("s", name)))
        serial = self.send(1, fields, signature, values)
        while True:
            kind, _, _, found, values = self.receive()
            if kind == 4:
                self.signals.append((found[3][1], values))
            elif found.get(5, ("u", 0))[1] == serial:
                return (found[4][1] if kind == 3 else None), values

    def answer(self, serial, fields, signature="", values=(), error=None):
        out = [(5, ("u", serial))]
        if 7 in fields:
            out.append((6, fields[7]))
        if error:
            out.append((4, ("s", error)))
        self.send(3 if error else 2, out, signature, values, 1)


def connect(address, name, order):
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(300)
    sock.connect(address)
    link = Link(sock, order)
    link.introduce()
    if name != "-":
        error, _ = link.call(*BUS, "Hello")
        assert error is None
    return link


ECHOES = [
    ("EchoBasics", "ybnqiuxtdsog", (255, True, -2, 65534, -3, 4294967293, -4, 2**64 - 5, 0.25, "Grüße €", "/a/b", "a{sv}")),
    ("EchoBytes", "ay", ([1, 2, 255],)),
    ("EchoTexts", "asao", (["", "a", "bc"], ["/", "/x"])),
    ("EchoNumbers", "abanaxad", ([True, False], [1, -2], [-1, 2**40], [0.5, -0.25])),
    ("EchoStruct", "(is(yad)a{sv})", ((1, "two", (3, [4.0, 5.5]), {"k": ("s", "v"), "n": ("ai", [1, 2])}),)),
    ("EchoDicts", "a{ys}a{oas}a{sa{sv}}", ({1: "one", 254: "two"}, {"/a": ["x"], "/b": []}, {"in": {"d": ("(yt)", (1, 2**50))}})),
    ("EchoVariant", "v", (("a{t(ia(sv))}", {7: (1, [("x", ("d", 2.5))])}),)),
    ("EchoVariants", "av", ([("n", -1), ("v", ("v", ("q", 2))), ("ax", [2**33])],)),
    ("EchoDeep", "aaaa(aya{t(ia(sv))})", ([[[[([1, 2], {3: (4, [("x", ("d", 5.5))])})], []]], []],)),
]


def call(address, name, order):
    link = connect(address, name, order)
    ask = lambda interface, member, *rest: link.call(name, PATH, interface, member, *rest)
    checks = 0
    for member, signature, values in ECHOES:
        error, answer = ask(INTERFACE, member, signature, values)
        assert error is None and tuple(answer) == values, (member, error, answer)
        checks += 1
    if name != "-":
        rule = f"type='signal',interface='{INTERFACE}'"
        error, _ = link.call(*BUS, "AddMatch", "s", (rule,))
        assert error is None
    for interface, member, signature, values, expected in [
        (INTERFACE, "Divide", "ii", (17, 5), (None, [3, 2])),
        (INTERFACE, "Total", "ai", (list(range(1000)),), (None, [499500])),
        (INTERFACE, "Fire", "u", (3,), (None, [])),
        (PROPERTIES, "Set", "ssv", (INTERFACE, "Silent", ("x", -77)), (None, [])),
        (PROPERTIES, "Get", "ss", (INTERFACE, "Silent"), (None, [("x", -77)])),
        (PROPERTIES, "Get", "ss", (INTERFACE, "Fixed"), (None, [("(su)", ("fixed", 7))])),
    ]:
        got = ask(interface, member, signature, values)
        assert got == expected, (member, got)
        checks += 1
    error, _ = ask(INTERFACE, "Divide", "ii", (1, 0))
    assert error == "org.example.Error.DivisionByZero", error
    ticks = [values for member, values in link.signals if member == "Tick"]
    assert ticks == [[i, f"tick {i}"] for i in range(3)], link.signals
    print("ok", checks + 2)


def serve_link(link, name):
    while True:
        ready, _, _ = select.select([link.sock, sys.stdin], [], []) if not link.input else ([], [], [])
        if sys.stdin in ready:
            return
        try:
            kind, serial, flags, found, values = link.receive()
        except EOFError:
            return
        if kind != 1:
            continue
        member, signature = found[3][1], found.get(8, ("g", ""))[1]
        if member.startswith("Echo"):
            link.answer(serial, found, signature, values)
        elif member == "Divide" and values[1] == 0:
            link.answer(serial, found, "s", ("division by zero",), "org.example.Error.DivisionByZero")
        elif member == "Divide":
            link.answer(serial, found, "ii", divmod(*values))
        elif member == "Total":
            link.answer(serial, found, "x", (sum(values[0]),))
        elif member == "Fire":
            for i in range(values[0]):
                fields = [(1, ("o", PATH)), (2, ("s", INTERFACE)), (3, ("s", "Tick"))]
                link.send(4, fields, "us", (i, f"tick {i}"), 1)
            link.answer(serial, found)
        elif member == "Get":
            link.answer(serial, found, "v", (("s", "raw"),))
        elif member == "Nothing":
            link.answer(serial, found)
        else:
            link.answer(serial, found, "s", (member,), "org.freedesktop.DBus.Error.UnknownMethod")


def serve(address, name, order):
    link = connect(address, name, order)
    error, values = link.call(*BUS, "RequestName", "su", (name, 4))
    assert error is None and values == [1], (error, values)
    print("ready", flush=True)
    serve_link(link, name)


def listen(address, name, order):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        link = Link(listener.accept()[0], order)
        link.admit()
        serve_link(link, name)


if __name__ == "__main__":
    {"call": call, "serve": serve, "listen": listen}[sys.argv[1]](*sys.argv[2:5])
