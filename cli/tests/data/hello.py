"""Implements IHello of hello.wsdl: whoever subscribed hears what is said."""
import json
import sys


def say(**line):
    print(json.dumps(line), flush=True)


for line in sys.stdin:
    call = json.loads(line)
    given, results = call["arguments"], {}
    if call["operation"] == "SayHello":
        if given["message"] == "fail":
            say(id=call["id"], fail="nobody is greeted so")
            continue
        say(signal="OnHello", fields={"message": given["message"]})
    elif call["operation"] == "AskBack":
        results = {"return": given["x"] + 1}
    say(id=call["id"], results=results)
