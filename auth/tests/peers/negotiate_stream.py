"""NegotiateStream (MS-NNS) by pyspnego: nothing but sockets, its tokens and the specification's records.

    nns_peer.py call PORT PROTOCOL LEVEL USER PASSWORD     sends a text and checks that it comes back turned around
    nns_peer.py serve - PROTOCOL LEVEL                     prints its port, serves one such caller ($NTLM_USER_FILE knows whom)

PROTOCOL is negotiate or ntlm; LEVEL is None, Sign or EncryptAndSign.
"""

import socket
import struct
import sys

import spnego

IN_PROGRESS, DONE, ERROR = 0x16, 0x14, 0x15
TEXT = b"What is said in a kitchen stays in the kitchen. " * 3000
# More than a frame of .NET may carry is split.
PIECE = 0xFC00


def exactly(stream, count):
    data = b""
    while len(data) < count:
        piece = stream.recv(count - len(data))
        if not piece:
            raise EOFError("the peer hung up")
        data += piece
    return data


def write_record(stream, kind, token):
    stream.sendall(struct.pack(">BBBH", kind, 1, 0, len(token)) + token)


def read_record(stream):
    kind, major, minor, length = struct.unpack(">BBBH", exactly(stream, 5))
    assert (major, minor) == (1, 0), (major, minor)
    token = exactly(stream, length)
    if kind == ERROR:
        print("ERROR", token.hex(), flush=True)
        sys.exit(3)
    return kind, token


def request(level):
    flags = spnego.ContextReq.mutual_auth | spnego.ContextReq.replay_detect | spnego.ContextReq.sequence_detect
    if level != "None":
        flags |= spnego.ContextReq.integrity
    if level == "EncryptAndSign":
        flags |= spnego.ContextReq.confidentiality
    return flags


class Stream:
    """What .NET's NegotiateStream does after the handshake."""

    def __init__(self, stream, context):
        self.stream, self.context = stream, context
        # What the two agreed on, which may be more than was asked for: SPNEGO signs its list.
        agreed = context.context_attr
        self.level = "Sign" if agreed & spnego.ContextReq.integrity else "None"
        if agreed & spnego.ContextReq.confidentiality:
            self.level = "EncryptAndSign"

    def write(self, data):
        if self.level == "None":
            self.stream.sendall(data)
            return
        for at in range(0, len(data), PIECE):
            piece = data[at : at + PIECE]
            if self.level == "Sign":
                token = self.context.sign(piece) + piece
            else:
                token = self.context.wrap(piece, encrypt=True).data
            self.stream.sendall(struct.pack("<I", len(token)) + token)

    def read(self, count):
        if self.level == "None":
            return exactly(self.stream, count)
        data = b""
        while len(data) < count:
            token = exactly(self.stream, struct.unpack("<I", exactly(self.stream, 4))[0])
            if self.level == "Sign":
                self.context.verify(token[16:], token[:16])
                data += token[16:]
            else:
                data += self.context.unwrap(token).data
        assert len(data) == count, (len(data), count)
        return data


def call(port, protocol, level, user, password):
    stream = socket.create_connection(("127.0.0.1", int(port)), timeout=300)
    context = spnego.client(
        user, password, hostname="127.0.0.1", service="host", protocol=protocol, context_req=request(level)
    )
    token, theirs = context.step(), False
    while True:
        if token is not None or not theirs:
            write_record(stream, DONE if context.complete else IN_PROGRESS, token or b"")
        if context.complete and theirs:
            break
        kind, token = read_record(stream)
        theirs = kind == DONE
        token = context.step(token) if not context.complete else None
        if context.complete and theirs and not token:
            break
    talk = Stream(stream, context)
    talk.write(TEXT)
    assert talk.read(len(TEXT)) == TEXT[::-1]
    print("DONE", talk.level, flush=True)


def serve(protocol, level):
    listener = socket.create_server(("127.0.0.1", 0))
    print("PORT", listener.getsockname()[1], flush=True)
    listener.settimeout(300)
    stream, _ = listener.accept()
    stream.settimeout(300)
    context = spnego.server(hostname="127.0.0.1", service="host", protocol=protocol, context_req=request(level))
    theirs = False
    while not context.complete:
        kind, token = read_record(stream)
        theirs = theirs or kind == DONE
        try:
            token = context.step(token) or b""
        except spnego.exceptions.SpnegoError as error:
            print("REFUSED", type(error).__name__, error, flush=True)
            write_record(stream, ERROR, struct.pack(">II", 0, 0x8009030C))
            sys.exit(0)
        write_record(stream, DONE if context.complete else IN_PROGRESS, token)
    talk = Stream(stream, context)
    talk.write(talk.read(len(TEXT))[::-1])
    print("DONE", talk.level, flush=True)


if __name__ == "__main__":
    deed, port, protocol, level, *who = sys.argv[1:]
    call(port, protocol, level, *who) if deed == "call" else serve(protocol, level)
