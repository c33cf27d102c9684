"""Lamps and ledgers, as programs behind `everywire serve`."""
import json
import os
import sys

times, colour, parked = 0, "white", []


def say(**line):
    print(json.dumps(line), flush=True)


def log(what):
    if "LAMP_LOG" in os.environ:
        with open(os.environ["LAMP_LOG"], "a", encoding="utf-8") as file:
            file.write(what + "\n")


log(f"began {os.getpid()}")
for line in sys.stdin:
    call = json.loads(line)
    operation, given, results = call["operation"], call["arguments"], {}
    if operation == "Switch" and "LAMP_PARKS" in os.environ:
        # It is answered when the program is told to end.
        parked.append(call)
        log("parked")
        continue
    if operation == "Switch":
        times += 1
        results = {"return": times}
        say(signal="Switched", fields={"on": given["on"], "times": times})
    elif operation == "get_Colour":
        results = {"return": colour}
    elif operation == "put_Colour":
        colour = given["value"]
        say(signal="Painted", fields={"colour": colour})
    elif operation in ("Remember", "Fade", "Mirror"):
        results = {"return": next(iter(given.values()))}
        if operation == "Mirror" and results["return"] is None:
            # Its own reference, as the server has written it: a name, a tab, the reference.
            with open(os.environ["LAMP_REF"], encoding="utf-8") as file:
                results = {"return": file.read().split("\t")[1].strip()}
    elif operation == "Enter":
        results = {name + "_again": value for name, value in given.items()}
    elif operation == "Break" and given["how"] < 0:
        # It can be said how well that went, too; a failure is none of the ways.
        say(id=call["id"], results={}, code="0x00000001" if given["how"] == -1 else "0x80000000")
        continue
    elif operation == "Break":
        say(id=call["id"], fail="the bulb is broken", code=f"0x8004{given['how']:04x}")
        continue
    say(id=call["id"], results=results)
for call in parked:
    say(id=call["id"], results={"return": -1})
log("ended")
