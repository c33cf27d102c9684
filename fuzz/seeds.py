#!/usr/bin/env python3
"""Makes inputs of the session targets from the conversations of real peers that the wires' tests keep.

A fuzzer that begins with whole requests is past the first checks at once; from nothing it takes hours to get there. Run it
again when a recording is added: it writes `fuzz/corpus/TARGET/recorded-*`, and leaves everything else as it is.
"""

import hashlib
import pathlib
import re
import struct

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = ROOT / "fuzz" / "corpus"
# More would only slow the fuzzer down: it cuts inputs at 8 KiB.
LONGEST = 4096
made = 0


def write(target, octets):
    """Keeps an input under a name that depends on its octets alone."""
    global made
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    octets = bytes(octets)[:LONGEST]
    (folder / f"recorded-{hashlib.sha1(octets).hexdigest()[:12]}").write_bytes(octets)
    made += 1


def steps(messages):
    """Messages as most session targets take them: an octet that says how long a piece is, and the piece.

    The octet also chooses what is done between pieces, which is left to chance here.
    """
    out = bytearray()
    for message in messages:
        for at in range(0, len(message), 255):
            piece = message[at:at + 255]
            out.append(len(piece))
            out += piece
    return bytes(out)


def packets(path):
    """Octets of the packets of a capture in the pcapng format (little-endian), without the header of the link."""
    data = path.read_bytes()
    skips, at = [], 0
    while at + 12 <= len(data):
        kind, length = struct.unpack("<II", data[at:at + 8])
        body = data[at + 8:at + length - 4]
        at += length
        if kind == 1:
            # Links without a header, Ethernet, raw IP, and the two that Linux has for all of its devices.
            skips.append({0: 4, 1: 14, 101: 0, 113: 16, 276: 20}[struct.unpack("<H", body[:2])[0]])
        elif kind == 6:
            device, _, _, captured = struct.unpack("<IIII", body[:16])
            yield body[20 + skips[device]:20 + captured]


def streams(path):
    """The TCP conversations of a capture: for each, who spoke and what, in the order of time."""
    found = {}
    for packet in packets(path):
        if not packet or packet[0] >> 4 != 4 or packet[9] != 6:
            continue
        head = (packet[0] & 15) * 4
        total = struct.unpack(">H", packet[2:4])[0]
        source, target = struct.unpack(">HH", packet[head:head + 4])
        payload = packet[head + (packet[head + 12] >> 4) * 4:total]
        if not payload:
            continue
        # Whoever speaks first is the client.
        first, parts = found.setdefault(frozenset([source, target]), (source, []))
        parts.append((source == first, payload))
    return list(found.values())


def hex_dialogue(text, heading):
    """Conversations written as hexadecimal lines under headings; yields (heading, octets)."""
    current, out = None, []
    for line in text.splitlines():
        if re.match(heading, line):
            current = [line, b""]
            out.append(current)
        elif current is not None and line.startswith("  "):
            # Four octets to a word, eight words to a line, then the text.
            words = re.match(r"\s+((?:[0-9a-f]{2,8} ?)+)", line)
            if words:
                digits = "".join(words.group(1).split())
                current[1] += bytes.fromhex(digits[: len(digits) // 2 * 2])
        else:
            current = None
    return out


def giop():
    for path in sorted((ROOT / "wires/giop/tests/golden").glob("*.pcap")):
        for _, parts in streams(path):
            for client in (True, False):
                messages = [payload for from_client, payload in parts if from_client == client][:12]
                if messages and messages[0].startswith(b"GIOP"):
                    write("giop_session", bytes([0 if client else 1]) + steps(messages))
                    write("explain", b"".join(messages))


def dbus():
    for path in sorted((ROOT / "wires/dbus/tests/data").glob("connect-*.txt")):
        said = hex_dialogue(path.read_text(), r"[CS]->[CS] ")
        client = [octets for heading, octets in said if heading.startswith("C")]
        server = [octets for heading, octets in said if heading.startswith("S")]
        for side in (0, 4, 0x10):
            write("dbus_session", bytes([side]) + steps(client))
        for side in (1, 5, 0x11, 0x15):
            write("dbus_session", bytes([side]) + steps(server))
        # What follows the greeting is what a side hears that was let in already.
        after = [octets for octets in client + server if octets[:1] in (b"l", b"B") and octets[1:2] in (b"\1", b"\2", b"\3", b"\4")]
        for side in (2, 3, 7):
            write("dbus_session", bytes([side]) + steps(after))
        for message in after:
            body, length = dbus_body(message)
            if body:
                write("dbus_values", bytes([len(length)]) + b"\1" + length + body)
    messages = []
    data = (ROOT / "wires/dbus/tests/data/dbus-monitor.pcap").read_bytes()
    order = "<" if data[:4] == b"\xd4\xc3\xb2\xa1" else ">"
    at = 24
    while at + 16 <= len(data):
        captured = struct.unpack(order + "I", data[at + 8:at + 12])[0]
        messages.append(data[at + 16:at + 16 + captured])
        at += 16 + captured
    for at in range(0, min(len(messages), 60), 6):
        for side in (2, 3, 0x22):
            write("dbus_session", bytes([side]) + steps(messages[at:at + 6]))
    for message in messages[:60]:
        body, signature = dbus_body(message)
        if body and len(signature) < 200:
            write("dbus_values", bytes([len(signature)]) + b"\1" + signature + body)


def dbus_body(message):
    """The body and the signature of a message in little-endian order."""
    if len(message) < 16 or message[:1] != b"l":
        return b"", b""
    size, _, fields = struct.unpack("<III", message[4:16])
    start = 16 + (fields + 7) // 8 * 8
    found = re.search(rb"\x08\x01g\x00(.)", message[:start], re.S)
    if not found:
        return b"", b""
    signature = message[found.end():found.end() + found.group(1)[0]]
    return message[start:start + size], signature


def dcop():
    text = (ROOT / "wires/dcop/tests/data/session.txt").read_text()
    said = hex_dialogue(text, r"\w+->\w+ ")
    clients = sorted({heading.split("->")[0] for heading, _ in said if heading.startswith("C")})
    for client in clients:
        sent = [octets for heading, octets in said if heading.startswith(f"{client}->")]
        heard = [octets for heading, octets in said if f"->{client} " in heading]
        if heard:
            write("dcop_session", b"\2" + steps(heard))
            # Past the admission.
            write("dcop_session", b"\0" + steps(heard[6:]))
            write("dcop_session", b"\1" + steps(heard[6:]))
        # A step of the server's target is an octet for client and action, and one for the length.
        pieces = b"".join(bytes([0x18, min(len(octets), 255)]) + octets[:255] for octets in sent)
        write("dcop_server", bytes([0, 0]) + pieces)


def dcom():
    connections = {}
    for line in (ROOT / "wires/dcom/tests/golden/captures.tsv").read_text().splitlines():
        capture, number, direction, pdu = line.split("\t")
        connections.setdefault((capture, number, direction), []).append(bytes.fromhex(pdu))
    for (_, _, direction), pdus in sorted(connections.items()):
        pdus = [pdu for pdu in pdus if len(pdu) < 1500][:6]
        if pdus:
            accepting = 0 if direction == ">" else 1
            for side in (0, 2, 4, 8):
                write("dcerpc_session", bytes([accepting | side]) + steps(pdus))
    for name in ("impacket.tsv", "samba.tsv"):
        for line in (ROOT / "wires/dcom/tests/golden" / name).read_text().splitlines():
            _, order, stub = line.split("\t")
            for shape in (0, 6, 16):
                write("ndr", bytes([shape, 1 if order == "little" else 0]) + bytes.fromhex(stub))


# Where the targets of HTTP keep their bindings: BasicHttp, WSHttp, BinaryHttp, MTOM, GZip.
def http_request(kind, body, action, extra=b""):
    return (
        b"POST /echo HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nContent-Type: " + kind + b"\r\n"
        + (b'SOAPAction: "' + action + b'"\r\n' if action else b"") + extra
        + b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
    )


def http_answer(kind, body, status=b"200 OK"):
    return (
        b"HTTP/1.1 " + status + b"\r\nContent-Type: " + kind + b"\r\nContent-Length: " + str(len(body)).encode()
        + b"\r\n\r\n" + body
    )


def chunked(message):
    """The same message in chunks."""
    head, body = message.split(b"\r\n\r\n", 1)
    head = re.sub(rb"Content-Length: \d+", b"Transfer-Encoding: chunked", head)
    half = len(body) // 2
    parts = [part for part in (body[:half], body[half:]) if part]
    return head + b"\r\n\r\n" + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def http_steps(message, step):
    """The target takes four times as many octets as the step says, and does what the step's remainders ask for."""
    out = bytearray()
    while message:
        size = min(step * 4, len(message))
        out.append(step)
        out += message[:size]
        message = message[size:]
    return bytes(out)


def wcf_http():
    by_capture = {}
    for line in (ROOT / "wires/wcf/tests/golden/documents.tsv").read_text().splitlines():
        capture, direction, envelope = line.split("\t", 2)
        by_capture.setdefault((capture, direction), []).append(envelope.encode())
    for (capture, direction), envelopes in sorted(by_capture.items()):
        ws = "ws-" in capture or "wsrm" in capture
        kind = b"application/soap+xml; charset=utf-8" if ws else b"text/xml; charset=utf-8"
        binding = 1 if ws else 0
        for envelope in sorted(envelopes, key=len)[:4]:
            if len(envelope) > 1800:
                continue
            if direction == "C":
                action = b"" if ws else b"urn:op"
                message, side = http_request(kind, envelope, action), 0
            else:
                message, side = http_answer(kind, envelope), 1
            for number, form in enumerate((message, chunked(message), message + message)):
                # 252 divides by three, by two and by seven: a call is begun, and asked whether anybody is there.
                for step in ((252, 60) if side else (253, 255)):
                    if number == 0 or step in (253, 252):
                        write("wcf_http", bytes([binding * 2 + side]) + http_steps(form, step))
            compressed = http_request(kind, envelope, b"", b"Content-Encoding: gzip\r\n")
            if direction == "C":
                write("wcf_http", bytes([8]) + http_steps(compressed, 253))
            boundary = b'multipart/related; type="application/xop+xml"; boundary="b"; start="<r>"; start-info="text/xml"'
            parts = (
                b'--b\r\nContent-Type: application/xop+xml; type="text/xml"\r\nContent-ID: <r>\r\n\r\n' + envelope + b"\r\n--b--\r\n"
            )
            mtom = http_request(boundary, parts, b"urn:op") if direction == "C" else http_answer(boundary, parts)
            write("wcf_http", bytes([6 + side]) + http_steps(mtom, 253 if side == 0 else 252))
    for line in (ROOT / "wires/wcf/tests/golden/envelopes.tsv").read_text().splitlines():
        capture, _, direction, payload = line.split("\t")
        body = bytes.fromhex(payload)
        # In HTTP an envelope has no table of words of its own.
        body = body[1 + body[0]:] if body and body[0] < 128 else body
        if capture.startswith("tcp-") and len(body) < 600:
            kind = b"application/soap+msbin1"
            if direction == "C":
                write("wcf_http", bytes([4]) + http_steps(http_request(kind, body, b""), 253))
            else:
                write("wcf_http", bytes([5]) + http_steps(http_answer(kind, body), 252))
    for envelope in (b"GET /echo?wsdl HTTP/1.1\r\nHost: h\r\n\r\n", b"HEAD /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"):
        for side in (0, 2, 4):
            write("wcf_http", bytes([side]) + http_steps(envelope, 253))


def wcf():
    connections = {}
    for line in (ROOT / "wires/wcf/tests/golden/sessions.tsv").read_text().splitlines():
        capture, number, direction, segment = line.split("\t")
        connections.setdefault((capture, number, direction), []).append(bytes.fromhex(segment))
    for (_, _, direction), segments in sorted(connections.items()):
        write("wcf_framing", bytes([0 if direction == "C" else 3]) + steps(segments))
        if direction == "S":
            # Its acknowledgement of the preamble is given by the target.
            write("wcf_framing", bytes([3]) + steps([segments[0].removeprefix(b"\x0b")] + segments[1:]))
    documents = (ROOT / "wires/wcf/tests/golden/documents.tsv").read_text().splitlines()
    for line in documents:
        capture, direction, envelope = line.split("\t", 2)
        octets = envelope.encode()
        if len(octets) <= 2000:
            side = 0 if direction == "C" else 4
            binding = 2 if "ws-" in capture or "wsrm" in capture else 3
            write("soap_envelope", bytes([binding | side, 5]) + struct.pack("<H", len(octets)) + octets)
        if len(octets) <= 700:
            for choice in (0, 1, 12, 13):
                write("xml_text", bytes([choice, 0]) + octets)


def runtime():
    """Several connections at once: each sends what a peer sent, in turns; and calls that are well formed."""
    peers, pieces_at = 6, 5

    def act(action, peer, argument, octets=b""):
        return bytes([action * peers + peer, argument]) + octets

    said = []
    for path in sorted((ROOT / "wires/giop/tests/golden").glob("*-in_out_int_call.pcap"))[:3]:
        said += [(0, b"".join(payload for client, payload in parts if client)) for _, parts in streams(path)]
    for path in sorted((ROOT / "wires/dbus/tests/data").glob("connect-*.txt"))[:2]:
        dialogue = hex_dialogue(path.read_text(), r"[CS]->[CS] ")
        said.append((1, b"".join(octets for heading, octets in dialogue if heading.startswith("C"))))
    sessions = {}
    for line in (ROOT / "wires/wcf/tests/golden/sessions.tsv").read_text().splitlines():
        capture, number, direction, segment = line.split("\t")
        if direction == "C":
            sessions[capture, number] = sessions.get((capture, number), b"") + bytes.fromhex(segment)
    said += [(2, octets) for _, octets in sorted(sessions.items())[:3]]
    for shift in range(3):
        chosen = (said[shift:] + said[:shift])[:peers]
        out = b"".join(act(0, peer, wire) for peer, (wire, _) in enumerate(chosen))
        for at in range(0, 1200, 150):
            for peer, (_, octets) in enumerate(chosen):
                piece = octets[at:at + 150]
                if piece:
                    out += act(pieces_at, peer, len(piece), piece)
            out += act(2, at // 150 % peers, 0)
        out += act(3, 1, shift) + act(1, 0, 0)
        write("runtime_connections", out)
    calls = b"".join(act(0, peer, 0) for peer in range(peers))
    for number in range(24):
        calls += act(4, number % peers, number % 8) + (act(2, number % 4, 16) if number % 3 == 0 else b"")
    write("runtime_connections", calls)


def security():
    """Tokens of NTLM and SPNEGO as Windows and others sent them."""
    for line in (ROOT / "wires/dcom/tests/golden/captures.tsv").read_text().splitlines():
        pdu = bytes.fromhex(line.split("\t")[3])
        for start in (b"NTLMSSP\0", b"\x60"):
            at = pdu.find(start, 24)
            size = struct.unpack("<H", pdu[10:12])[0]
            # The token of a bind stands at its end, and the header says how long it is.
            if size and at == len(pdu) - size and len(pdu[at:]) < 1000:
                write("security", pdu[at:])
                write("security", b"\x0c\x00" + pdu[at:][:200])


def opc():
    """What clients of OPC servers were recorded to do, call by call, in the octets of `opc_session`."""
    def op(kind, *octets, at=0):
        return bytes([kind, at, *octets])

    def many(*octets):
        return [len(octets), *octets]

    new, wait = op(0), lambda time, late=0: op(1, time, at=late)
    group = lambda rate, name=8: op(4, name, 1, rate, 1, 7)
    add = lambda *names, at=0: op(13, len(names), *[octet for name in names for octet in (name, 0, 0, name, 0)], 0, at=at)
    read = lambda source, *items, at=0: op(18, *many(*items), 0, source, at=at)
    set_to = lambda item, value, at=0: op(19, *many(item), 1, 2, value, 0, 1, at=at)
    change = lambda name, value: op(2, 4, value, 192, name)
    # Utgard: a group, reads of both kinds, a write, validation, another state, removal; then callbacks.
    utgard = new + op(8, 8, 0, 0, 2) + op(7, 1, 7) + group(100) + add(0) + read(0, 0) + read(1, 0) + add(2) + set_to(1, 99)
    utgard += read(1, 1) + op(13, 1, 6, 0, 0, 1, 0, 1) + op(27, 1, 0, 0, 1, 7) + op(6, 0)
    utgard += group(50) + add(0, at=1) + op(22, 0, 0, at=1) + op(24, at=1) + wait(50) + change(0, 120) + wait(60) + op(14, 1, 2, at=1)
    # Windows: items by the name of their driver, a read before the first value, then changes.
    windows = new + group(200, 13) + add(0, 1, 2) + read(0, 0, 1, 2) + wait(200) + change(0, 10) + wait(200) + change(0, 20)
    windows += wait(200) + op(3)
    # impacket: properties and items without groups.
    impacket = new + op(10, *many(2, 3, 4, 100), 0) + op(11, *many(0, 2), *many(0, 5)) + op(12, *many(2), 1, 2, 7, 0, 1, 0, 0)
    impacket += op(9, 0, 7, 8, 2, 0) + op(34, 4) + op(35)
    # 3.0: deadbands, samples, buffers, signs of life, a listener that is late.
    newer = new + group(200) + add(0, 2) + op(29, 0, *many(0), *many(20)) + op(30, 0, *many(0, 1), *many(10, 20))
    newer += op(31, *many(0, 1), *many(0, 0)) + op(28, 230) + b"".join(change(0, value) + wait(15) for value in range(0, 200, 20))
    newer += wait(200, 1) + op(32) + wait(200) + op(20, *many(0, 1), 0, 0, 9) + op(23, 0) + op(24)
    two = new + new + group(100) + op(4, 13, 1, 100, 1, 7, at=1) + add(0, 4) + add(2, at=1) + read(0, 0, 1, 2) + op(14, 1, 2) + op(3)
    for octets in (utgard, windows, impacket, newer, two, utgard + newer):
        write("opc_session", octets)


def captures():
    """Captures of others as they are, and their segments as `capture` makes files of them."""
    for path in sorted([*ROOT.glob("wires/*/tests/**/*.pcap*"), *ROOT.glob("cli/tests/**/*.pcap*")]):
        data = path.read_bytes()
        if len(data) < LONGEST:
            write("capture", b"\0" + data)
        if data[:4] != b"\x0a\x0d\x0d\x0a":
            continue
        out = bytearray(b"\1")
        for number, (_, parts) in enumerate(streams(path)[:2]):
            for client, payload in parts[:8]:
                for at in range(0, len(payload), 1020):
                    piece = payload[at:at + 1020]
                    padded = piece + bytes(-len(piece) % 4)
                    out += bytes([(0 if client else 1) | number << 1, len(padded) // 4]) + padded
        write("capture", out)
    monitor = (ROOT / "wires/dbus/tests/data/dbus-monitor.pcap").read_bytes()
    order = "<" if monitor[:4] == b"\xd4\xc3\xb2\xa1" else ">"
    out, at = bytearray(b"\3"), 24
    while at + 16 <= len(monitor):
        size = struct.unpack(order + "I", monitor[at + 8:at + 12])[0]
        message = monitor[at + 16:at + 16 + size]
        if size < 510:
            padded = message + bytes(size % 2)
            out += bytes([len(padded) // 2]) + padded
        at += 16 + size
    write("capture", out)


class Cdr:
    """Values of GIOP in little-endian order, as far as `broker_calls` needs them."""

    def __init__(self):
        self.octets = bytearray()

    def put(self, form, *values):
        for value in values:
            size = struct.calcsize(form)
            self.octets += bytes(-len(self.octets) % size) + struct.pack("<" + form, value)
        return self

    def text(self, text):
        data = text.encode() + b"\0"
        self.put("I", len(data)).octets += data
        return self

    def basics(self):
        self.put("B", 1, 7).put("h", -3).put("I", 9).put("q", -1 << 40).put("f", 1.5).text("caf\u00e9")
        wide = "w\u00efde".encode("utf-16-be")
        self.put("I", len(wide)).octets += wide
        return self.put("I", 2)

    def point(self, number):
        return self.put("i", number).put("d", number / 2)


def broker():
    """One good argument of each operation, for each target."""
    deep = Cdr().put("I", 2)
    for _ in range(2):
        deep.put("I", 2).point(1).point(-2).put("I", 2).text("one").text("").basics()
    tree = Cdr().text("root").put("I", 2).text("leaf").put("I", 0).text("branch").put("I", 1).text("end").put("I", 0)
    arguments = {
        0: [Cdr().basics()],
        1: [Cdr().put("I", 5).put("B", 1, 2, 3, 4, 5), Cdr().put("I", 0)],
        2: [deep],
        3: [Cdr().put("i", 2).put("d", 0.5), Cdr().put("i", 3, 1).text("x"), Cdr().put("i", 9).put("B", 1)],
        4: [Cdr().put("i", *range(6))],
        5: [tree],
        # Type codes of a long, a string, a sequence of shorts, and of nothing.
        6: [Cdr().put("I", 3).put("i", 5), Cdr().put("I", 18, 0).text("any"), Cdr().put("I", 19, 12, 1, 2, 0, 2).put("h", 1, 2), Cdr().put("I", 0)],
        # A null reference, and one to somewhere.
        7: [Cdr().text("").put("I", 0)],
        8: [Cdr().put("i", 41)],
    }
    profile = Cdr().put("B", 1, 1, 2, 0).text("127.0.0.1").put("H", 9).put("I", 3)
    profile.octets += b"key"
    profile.put("I", 0)
    reference = Cdr().text("IDL:fuzz/Bridge:1.0").put("I", 1, 0, len(profile.octets))
    reference.octets += profile.octets
    arguments[7].append(reference)
    for operation, values in arguments.items():
        for value in values:
            for target in range(5):
                write("broker_calls", bytes([target, operation]) + value.octets)


for make in (giop, dbus, dcop, dcom, wcf_http, wcf, runtime, security, opc, captures, broker):
    make()
print(f"{made} inputs from recorded conversations")
