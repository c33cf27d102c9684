"""o6: open62541, a server and a client of OPC UA in C, for Python."""

import time

# First of all: standard output is for results alone.
from race import CHANGES_S, ITEMS, PATIENCE_S, Clock, Seen, free_port, now, operations, publish, run, value

import o6
from o6.ns import ns0


def node(number):
    return f"ns=1;i={1000 + number}"


def serve(ref_file, host):
    port = free_port(host)
    server = o6.Server(port=port)
    nodes = [node(number) for number in range(ITEMS)]
    for number, one in enumerate(nodes):
        server.addVariable(f"Item{number:03}", server.objectsNode, o6.Float(0.0), nodeId=one)

    def change():
        time_of = now()
        stamp = o6.DateTime(time_of)
        for number, one in enumerate(nodes):
            found = o6.DataValue()
            found.value = o6.Float(value(number, time_of))
            found.sourceTimestamp = stamp
            server.write(one, found)

    server.start()
    # Nobody reads the values from before.
    change()
    publish(ref_file, f"opc.tcp://{host}:{port}")
    while True:
        time.sleep(CHANGES_S)
        change()


def read(address, race, plan):
    client = o6.Client(address)
    client.connect()
    for operation, items in operations(plan, race):
        measure(client, plan, operation, items)
    client.disconnect()


def measure(client, plan, operation, items):
    request = ns0.datatypes.ReadRequest()
    for number in range(items):
        one = ns0.datatypes.ReadValueId()
        one.nodeId = node(number)
        one.attributeId = o6.AttributeId.VALUE
        request.nodesToRead.append(one)
    request.timestampsToReturn = ns0.datatypes.TimestampsToReturn.SOURCE
    seen = Seen(items)

    def once():
        found = client.serviceRead(request).results
        if len(found) != items:
            raise SystemExit(f"{len(found)} values came for {items} items")
        for number, one in enumerate(found):
            seen.one(number, float(one.value), int(one.status) == 0, int(one.sourceTimestamp))

    clock = Clock(plan, operation)
    while True:
        once()
        if not clock.goes_on():
            break
        pause = clock.pause()
        if pause:
            time.sleep(pause)
        clock.slept()
    clock.say()
    begun = time.monotonic()
    while seen.changes <= items:
        if time.monotonic() - begun > PATIENCE_S:
            raise SystemExit("the values do not change")
        once()


run(serve, read)
