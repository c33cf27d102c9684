"""Implements the players of player.xml and player.kidl. The file with the lyrics, and the signal's name, are its arguments."""
import json
import sys

lyrics, finished = sys.argv[1:]


def say(**what):
    print(json.dumps(what), flush=True)


for line in sys.stdin:
    call = json.loads(line)
    operation, given = call["operation"].split("(")[0], call["arguments"]
    if operation == "Play":
        say(id=call["id"], results={"return": len(given["song"])})
        say(signal=finished, fields={"song": given["song"]})
    elif operation == "Mix":
        say(id=call["id"], results={"arg_3": given["levels"], "arg_4": given["cue"]})
    elif operation == "Lyrics":
        say(id=call["id"], results={"return": {"handle": lyrics}})
    elif operation == "Record":
        say(id=call["id"], results={"return": given["to"]["handle"]})
    elif operation == "Eject":
        say(id=call["id"], fail="the tray is stuck", code="org.example.Stuck")
    else:
        say(id=call["id"], results={"return": "Songs"})
