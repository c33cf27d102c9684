"""Automation values as impacket's NDR writes them: name, byte order, hexadecimal."""
import random

from impacket.dcerpc.v5.dcom import oaut
from impacket.dcerpc.v5.ndr import NDRCALL

KINDS = oaut.VARENUM
random.seed(1)  # referent ids


class One(NDRCALL):
    structure = (("value", oaut.VARIANT),)


class Parameters(NDRCALL):
    structure = (("parameters", oaut.DISPPARAMS),)


def fill(variant, vt, size, arm, value):
    variant["clSize"], variant["vt"], variant["_varUnion"]["tag"] = size, vt, vt
    if arm:
        variant["_varUnion"][arm] = value


def tell(name, call):
    print(name, "little", call.getData().hex(), sep="\t")


for name, vt, size, arm, value in [
    ("empty", KINDS.VT_EMPTY, 3, None, None),
    ("i2", KINDS.VT_I2, 3, "iVal", -2),
    ("i4", KINDS.VT_I4, 3, "lVal", 1234567),
    ("i8", KINDS.VT_I8, 4, "llVal", -3),
    ("ui1", KINDS.VT_UI1, 3, "bVal", 7),
    ("r4", KINDS.VT_R4, 3, "fltVal", 0.5),
    ("r8", KINDS.VT_R8, 4, "dblVal", 1.25),
    ("byref.i4", KINDS.VT_I4_OR_VT_BYREF, 4, "plVal", 99),
    ("byref.r8", KINDS.VT_R8_OR_VT_BYREF, 4, "pdblVal", 2.5),
]:
    one = One()
    fill(one["value"], vt, size, arm, value)
    tell("variant." + name, one)

one = One()
one["value"]["clSize"], one["value"]["vt"], one["value"]["_varUnion"]["tag"] = 5, KINDS.VT_DECIMAL, KINDS.VT_DECIMAL
decimal = one["value"]["_varUnion"]["decVal"]
decimal["wReserved"], decimal["scale"], decimal["sign"], decimal["Hi32"], decimal["Lo64"] = 0, 2, 0x80, 5, 6
tell("variant.decimal", one)

call = Parameters()
for vt, size, arm, value in [(KINDS.VT_I4, 3, "lVal", 5), (KINDS.VT_R8, 4, "dblVal", 1.5)]:
    item = oaut.VARIANT()
    fill(item, vt, size, arm, value)
    call["parameters"]["rgvarg"].append(item)
call["parameters"]["rgdispidNamedArgs"].append(0xFFFFFFFD)
call["parameters"]["cArgs"], call["parameters"]["cNamedArgs"] = 2, 1
tell("dispparams", call)
