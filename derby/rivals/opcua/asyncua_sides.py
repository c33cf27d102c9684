"""asyncua: a server and a client of OPC UA in Python."""

import asyncio
import datetime
import logging
import time

from race import CHANGES_S, ITEMS, MILLISECOND, PATIENCE_S, UNIX, Clock, Seen, free_port, now, operations, publish, run, value

from asyncua import Client, Server, ua

logging.disable(logging.ERROR)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def node(number):
    return ua.NodeId(1000 + number, 1)


def moment(ticks):
    return EPOCH + datetime.timedelta(milliseconds=(ticks - UNIX) // MILLISECOND)


def ticks(moment):
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.timezone.utc)
    return UNIX + (moment - EPOCH) // datetime.timedelta(milliseconds=1) * MILLISECOND


def serve(ref_file, host):
    async def main():
        server = Server()
        await server.init()
        address = f"opc.tcp://{host}:{free_port(host)}/derby"
        server.set_endpoint(address)
        server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
        for number in range(ITEMS):
            await server.nodes.objects.add_variable(node(number), f"1:Item{number:03}", 0.0, ua.VariantType.Float)

        async def change():
            time_of = now()
            stamp = moment(time_of)
            for number in range(ITEMS):
                found = ua.Variant(value(number, time_of), ua.VariantType.Float)
                await server.write_attribute_value(node(number), ua.DataValue(found, SourceTimestamp=stamp))

        # Nobody reads the values from before.
        await change()
        async with server:
            publish(ref_file, address)
            while True:
                await asyncio.sleep(CHANGES_S)
                await change()

    asyncio.run(main())


def read(address, race, plan):
    async def main():
        async with Client(address) as client:
            for operation, items in operations(plan, race):
                await measure(client, operation, items)

    async def measure(client, operation, items):
        asked = [ua.ReadValueId(node(number), ua.AttributeIds.Value) for number in range(items)]
        parameters = ua.ReadParameters(TimestampsToReturn=ua.TimestampsToReturn.Source, NodesToRead=asked)
        seen = Seen(items)

        async def once():
            found = await client.uaclient.read(parameters)
            if len(found) != items:
                raise SystemExit(f"{len(found)} values came for {items} items")
            for number, one in enumerate(found):
                seen.one(number, one.Value.Value, one.StatusCode.is_good(), ticks(one.SourceTimestamp))

        clock = Clock(plan, operation)
        while True:
            await once()
            if not clock.goes_on():
                break
            pause = clock.pause()
            if pause:
                await asyncio.sleep(pause)
            clock.slept()
        clock.say()
        begun = time.monotonic()
        while seen.changes <= items:
            if time.monotonic() - begun > PATIENCE_S:
                raise SystemExit("the values do not change")
            await once()

    asyncio.run(main())


run(serve, read)
