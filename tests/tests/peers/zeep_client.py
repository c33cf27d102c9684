"""Another implementation of SOAP, zeep, reads the contract of a server and calls it.

    zeep_client.py bench|cellar|dcop|mill|mtom|quotas|strangers|vault ADDRESS-OF-THE-WSDL [OPTION=VALUE...]

quotas: sends more than the server takes, and something small after it; strangers: calls as somebody whom nobody knows.
Options: ca=FILE, whose certificates are trusted, and no others; login=USER:PASSWORD, said in each request (HTTP Basic);
token=USER:PASSWORD, said in each envelope (a UsernameToken); gzip=on: requests are compressed, and large answers must be;
at=ADDRESS: the service is there, whatever the contract says.
Prints `ok` at the end.
"""

import datetime
import decimal
import gzip
import sys

import requests
import zeep
import zeep.exceptions
from zeep.wsse.username import UsernameToken
from zeep.wsse.utils import WSU

TYPES = "{http://schemas.datacontract.org/2004/07/Everywire.Cellar}"


def same(got, wanted, what):
    if got != wanted:
        raise AssertionError(f"{what}: wanted {wanted!r:.1000}, got {got!r:.1000}")
    print(what, repr(got)[:100])


def bench(client):
    service = client.service
    for size in (0, 1, 100, 65536, 300000):
        data = service.GetBytes(size)
        same(data or b"", bytes(i % 256 for i in range(size)), f"GetBytes.{size}")
        same(service.PutBytes(data or b""), size, f"PutBytes.{size}")
    same(service.VoidCall(), None, "VoidCall")
    same(service.InInt(42), None, "InInt")
    same(service.OutInt(), 42, "OutInt")
    same(service.InOutInt(41), 42, "InOutInt")
    same(service.InString("Hello, World! 0123456789"), None, "InString")
    same(service.OutString(), "Hello, World! 0123456789", "OutString")
    same(service.InOutString("Grüße <&> €"), "Grüße <&> €", "InOutString")


def vault(client):
    service = client.service
    same(service.Balance("ada"), 8.0, "Balance")
    same(service.Withdraw("ada", 1.0), None, "Withdraw.1")
    for amount, members in ((10.0, {"missing": "2", "account": "ada"}), (-1.0, {})):
        try:
            service.Withdraw("ada", amount)
            raise AssertionError("no fault")
        except zeep.exceptions.Fault as fault:
            detail = fault.detail[0]
            same({child.tag.split("}")[1]: child.text for child in detail}, members, f"Withdraw.{amount}")
            same(detail.tag.split("}")[1], "Overdrawn" if members else "Frozen", "its element")


def cellar(client):
    service = client.service
    utc = datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    for name, value in (
        ("Boolean", True), ("Byte", 200), ("SByte", -100), ("Int16", -30000), ("UInt16", 60000), ("Int32", -2000000000),
        ("UInt32", 4000000000), ("Int64", -9000000000000000000), ("UInt64", 18000000000000000000), ("Single", 1.5), ("Double", -0.1),
        ("Decimal", decimal.Decimal("123456789012345.6700")), ("Char", 223), ("String", "Grüße <&> \"'\n\t€ 😀 ]]>"),
        ("Guid", "00112233-4455-6677-8899-aabbccddeeff"), ("Uri", "http://example.test/a?b=c&d"), ("Bytes", bytes([0, 1, 2, 127, 128, 254, 255])),
        ("Grape", "Pinot-Noir"), ("DateTime", utc),
    ):
        same(service[f"Echo{name}"](value), value, f"Echo{name}")
    span = datetime.timedelta(days=1, hours=2, minutes=3, seconds=4, milliseconds=500)
    same(service.EchoTimeSpan(span), span, "EchoTimeSpan")

    ints = [1, -2, 70000, 0, -(2**31), 2**31 - 1]
    same(service.EchoInts({"int": ints}), ints, "EchoInts")
    same(service.EchoStrings({"string": ["a", "", "", "d e"]}), ["a", None, None, "d e"], "EchoStrings")
    grapes = ["Syrah", "Pinot-Noir", "Riesling"]
    same(service.EchoGrapes({"Grape": grapes}), grapes, "EchoGrapes")
    labels = service.EchoLabels({"Label": [{"Text": "one", "Year": 1901}, {"Text": "", "Year": 0}]})
    same([(label["Text"] or "", label["Year"]) for label in labels], [("one", 1901), ("", 0)], "EchoLabels")
    stock = service.EchoStock({"KeyValueOfstringint": [{"Key": "red", "Value": 3}, {"Key": "white", "Value": -4}]})
    same([(pair["Key"], pair["Value"]) for pair in stock], [("red", 3), ("white", -4)], "EchoStock")
    maybe = service.EchoMaybe({"Date": utc, "Double": 2.0, "Grape": "Syrah", "Int": 0, "Nothing": None})
    same((maybe["Date"], maybe["Double"], maybe["Grape"], maybe["Int"], maybe["Nothing"]), (utc, 2.0, "Syrah", 0, None), "EchoMaybe")
    same(service.EchoMaybe({})["Int"], None, "EchoMaybe.not")
    same(service.EchoMaybeInt(-2000000000), -2000000000, "EchoMaybeInt")
    shelf = service.EchoShelf({"third": "three", "B": 2, "A": 1, "Seldom": 0})
    same((shelf["third"], shelf["B"], shelf["A"]), ("three", 2, 1), "EchoShelf")
    champagne = client.get_type(TYPES + "Champagne")
    wine = service.EchoWine(champagne(Name="Brut", Bar=6.25, House="R."))
    same((wine["Name"], wine["Bar"], wine["House"]), ("Brut", 6.25, "R."), "EchoWine")

    result = service.Buy(Item={"Text": "one", "Year": 1901}, Count=3, _soapheaders={"Customer": "Ann", "Priority": 9})
    same((result["header"]["Till"], result["body"]["Total"]), ("till 3", decimal.Decimal("37.50")), "Buy")
    same(service.Note("one-way"), None, "Note")
    same(service.Notes(), ["one-way"], "Notes")
    same(service.Nothing(), None, "Nothing")
    split = service.Split(7, "ab")
    same((split["SplitResult"], split["half"], split["text"]), (4, 3, "abab"), "Split")
    same(service.Ring(2), "ding ding", "Ring")

    same(service.Take(0), 17, "Take")
    for kind, name in ((1, "OutOfStock"), (2, "Broken")):
        try:
            service.Take(kind)
            raise AssertionError("no fault")
        except zeep.exceptions.Fault as fault:
            detail = fault.detail[0]
            same(detail.tag.split("}")[1], name, f"Take.{kind}")
            print(kind, fault.code, fault.message, [(child.tag.split("}")[1], child.text) for child in detail])
    try:
        service.Take(3)
        raise AssertionError("no fault")
    except zeep.exceptions.Fault as fault:
        same(fault.message, "closed today", "Take.3")
    same(service.Take(0), 17, "Take.after")


def dcop(client):
    """kitchen.kidl, as an application of DCOP serves it behind a broker."""
    service = client.service
    same(service.nothing(), None, "nothing")
    same(service.echoBool(True), True, "echoBool")
    same(service.echoText("Grüße <&> €"), "Grüße <&> €", "echoText")
    same(service.echoNarrow("narrow"), "narrow", "echoNarrow")
    same(service.echoBytes(bytes(range(256))), bytes(range(256)), "echoBytes")
    same(service.echoTexts({"string": ["a", "ä"]}), ["a", "ä"], "echoTexts")
    pairs = service.echoMap({"KeyValueOfstringint": [{"Key": "a", "Value": 1}, {"Key": "b", "Value": -2}]})
    same([(pair["Key"], pair["Value"]) for pair in pairs], [("a", 1), ("b", -2)], "echoMap")
    same(service.echoDoubles({"double": [0.5, -1e300]}), [0.5, -1e300], "echoDoubles")
    rect = service.echoRect({"left": 0, "top": 1, "right": 9, "bottom": 10})
    same([rect[side] for side in ("left", "top", "right", "bottom")], [0, 1, 9, 10], "echoRect")
    same(service.divide(17, 5), 3, "divide")
    try:
        service.divide(1, 0)
        raise AssertionError("no fault")
    except zeep.exceptions.Fault as fault:
        print("divide.0", fault.code, fault.message)
    same(service.divide(8, 2), 4, "divide.again")
    same(service.bytes(1000), bytes(i % 256 for i in range(1000)), "bytes")
    for what in ("this", "that"):
        same(service.remember(what), None, "remember")
    same(service.remembered(), ["this", "that"], "remembered")


def mill(client):
    """Types of XmlSerializer: attributes, texts beside them, lists without an element around them, choices."""
    service = client.service
    utc = datetime.timezone.utc
    text = "<flour> & \"bran\"\n'fine'"
    labels = [{"Count": 4000000000, "_value_1": text}, {"Count": 0, "_value_1": "x"}]
    price = {"Currency": "€", "_value_1": decimal.Decimal("37.50")}
    firm = client.get_type("{http://everywire.test/mill}Firm")
    firm = firm(Key='K "1" <&>\t\n', Name="Mill & Sons", Register=-9000000000, Seat="Uptown")

    def label_of(label):
        return label["Count"], label["_value_1"]

    same(label_of(service.EchoLabel(labels[0])), (4000000000, text), "EchoLabel")
    echo = service.EchoPrice(price)
    same((echo["Currency"], echo["_value_1"]), ("€", decimal.Decimal("37.50")), "EchoPrice")
    echo = service.EchoParty(firm)
    same((echo["Key"], echo["Name"], echo["Register"], echo["Seat"]), (firm.Key, firm.Name, -9000000000, "Uptown"), "EchoParty")
    same([label_of(label) for label in service.EchoLabels({"Label": labels})], [label_of(label) for label in labels], "EchoLabels")

    full = {
        "Filled": datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=utc), "Grain": "Durum-Wheat", "Id": -17, "lang": "de", "Mark": "A<1>",
        "Rank": -3, "Seal": bytes([0, 1, 254, 255]), "Sieves": ["Fine", "Bran"], "Sizes": [1, -2, 70000], "Count": 0, "From": firm,
        "_value_1": [{"Text": "first"}, {"Whole": 5}, {"Price": price}, {"Text": "last"}], "Label": labels, "Lines": {"Line": labels},
        "Note": "note", "Number": [3, 0, -1], "Cash": decimal.Decimal("12.5"), "Weeks": 9, "Weight": decimal.Decimal("1.250"),
    }
    echo = service.EchoSack(full)
    for name in ("Filled", "Grain", "Id", "lang", "Mark", "Rank", "Seal", "Sieves", "Sizes", "Count", "Note", "Number", "Card", "Cash", "Weeks", "Weight"):
        same(echo[name], full.get(name), f"EchoSack.{name}")
    items = [next((name, value) for name, value in item.items() if value is not None) for item in echo["_value_1"]]
    same([name for name, _ in items], ["Text", "Whole", "Price", "Text"], "EchoSack.Items")
    same((items[1][1], items[2][1]["_value_1"], items[3][1]), (5, decimal.Decimal("37.50"), "last"), "EchoSack.Items")
    same([label_of(label) for label in echo["Label"]], [label_of(label) for label in labels], "EchoSack.Label")
    same([label_of(label) for label in echo["Lines"]["Line"]], [label_of(label) for label in labels], "EchoSack.Lines")
    same(echo["From"]["Register"], -9000000000, "EchoSack.From")

    # It cannot leave out lists in attributes and repeated choices.
    empty = {"Filled": datetime.datetime(1999, 12, 31, tzinfo=utc), "Id": 0, "Sieves": ["Coarse"], "Sizes": [], "_value_1": [], "Card": "visa", "Weight": decimal.Decimal(0)}
    echo = service.EchoSack(empty)
    same((echo["Rank"], echo["Mark"], echo["Count"], echo["Cash"], echo["Card"]), (None, None, None, None, "visa"), "EchoSack.empty")
    same((echo["Grain"], echo["Weeks"], echo["Label"], echo["From"]), ("Wheat", 7, [], None), "EchoSack.empty")
    same(service.Add(40, 2, "sum"), 42, "Add")
    same(service.Sum([1, -2, 70000]), 69999, "Sum")


def refused(deed, what, *parts):
    """The deed fails, and what the server says has all of these parts."""
    try:
        deed()
    except (zeep.exceptions.Fault, zeep.exceptions.TransportError) as error:
        said = error.message + " " + str(getattr(error, "content", None) or "")
        for part in parts:
            if part not in said:
                raise AssertionError(f"{what}: no {part!r} in {said!r}") from error
        print(what, type(error).__name__, said[:300])
        return
    raise AssertionError(f"{what} went well")


def quotas(client):
    """Against MaxReceivedMessageSize=100000, MaxArrayLength=1000, MaxStringContentLength=2000, MaxDepth=12."""
    service = client.service
    rack = {"Front": {"Text": "x", "Year": 1}}
    for _ in range(10):
        rack = {"Front": {"Text": "x", "Year": 1}, "Next": rack}
    for deed, quota, value in (
        (lambda: service.EchoBytes(bytes(90000)), "MaxReceivedMessageSize", "100000"),
        (lambda: service.EchoBytes(bytes(3000000)), "MaxReceivedMessageSize", "100000"),
        (lambda: service.EchoBytes(bytes(1200)), "MaxArrayLength", "1000"),
        (lambda: service.EchoInts({"int": list(range(1001))}), "MaxArrayLength", "1000"),
        (lambda: service.EchoString("x" * 2001), "MaxStringContentLength", "2000"),
        (lambda: service.EchoRack(rack), "MaxDepth", "12"),
    ):
        refused(deed, quota, f"({value})", quota, f"{quota}=")
        same(service.Take(0), 17, "Take")


def mtom(client):
    """Large octets come in parts of their own, and small ones in the envelope."""
    heard = []
    client.transport.session.hooks["response"].append(lambda response, **_: heard.append(response))
    for size in (10, 765, 768, 300001):
        same(client.service.GetBytes(size), bytes(i % 256 for i in range(size)), f"GetBytes.{size}")
        answer = heard[-1]
        assert answer.headers["Content-Type"].startswith("multipart/related"), answer.headers
        print("parts", answer.content.count(b"Content-ID"), "octets", len(answer.content))
        same(answer.content.count(b"xop:Include"), int(size >= 768), "Include")
    same(client.service.PutBytes(bytes(i % 256 for i in range(100000))), 100000, "PutBytes")


def strangers(client):
    refused(client.service.VoidCall, "VoidCall")


def session(options):
    """What asks: it trusts one authority, and says who it is if it is to."""
    asks = requests.Session()
    asks.trust_env = False
    if "ca" in options:
        asks.verify = options["ca"]
    if "login" in options:
        asks.auth = tuple(options["login"].split(":"))
    if "gzip" in options:
        asks.mount("http://", Compressing())
    return asks


class Transport(zeep.Transport):
    """Has the schema of the namespace `xml`, which zeep looks for at its author's."""

    def load(self, url):
        if url != "https://www.w3.org/2001/xml.xsd":
            return super().load(url)
        return (
            b'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="http://www.w3.org/XML/1998/namespace">'
            b'<xs:attribute name="lang" type="xs:language"/></xs:schema>'
        )


class Compressing(requests.adapters.HTTPAdapter):
    def send(self, request, **others):
        if request.body:
            body = request.body if isinstance(request.body, bytes) else request.body.encode()
            request.body = gzip.compress(body)
            request.headers["Content-Length"] = str(len(request.body))
            request.headers["Content-Encoding"] = "gzip"
        response = super().send(request, **others)
        coded = response.headers.get("Content-Encoding")
        if request.body and coded != ("gzip" if len(response.content) >= 1024 else None):
            raise AssertionError(f"an answer of {len(response.content)} octets in {coded}")
        return response


def timestamp():
    """WCF takes no token without the time of the message."""
    now = datetime.datetime.now(datetime.timezone.utc)
    made = WSU.Timestamp()
    for what, minutes in (("Created", 0), ("Expires", 5)):
        time = now + datetime.timedelta(minutes=minutes)
        made.append(getattr(WSU, what)(time.strftime("%Y-%m-%dT%H:%M:%SZ")))
    return made


deed, address, *options = sys.argv[1:]
options = dict(option.split("=", 1) for option in options)
token = UsernameToken(*options["token"].split(":"), timestamp_token=timestamp()) if "token" in options else None
transport = Transport(session=session(options), timeout=300, operation_timeout=300)
client = zeep.Client(address, transport=transport, wsse=token)
if "at" in options:
    # The contract is read there, and what it describes is elsewhere.
    client.service._binding_options["address"] = options["at"]
{"bench": bench, "cellar": cellar, "dcop": dcop, "mill": mill, "mtom": mtom, "quotas": quotas, "strangers": strangers, "vault": vault}[deed](client)
print("ok")
