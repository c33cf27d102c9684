"""Implements Bank::Account of bank.idl: calls as JSON lines in, answers as JSON lines out."""
import json
import sys

state = {"title": "Savings", "balance": 0.0, "hint": "", "parked": None}


def answer(call, **what):
    print(json.dumps({"id": call["id"], **what}), flush=True)


def results(call, **values):
    answer(call, results={name.rstrip("_"): value for name, value in values.items()})


for line in sys.stdin:
    call = json.loads(line)
    operation, given = call["operation"], call["arguments"]
    if operation == "_get_title":
        results(call, return_=state["title"])
    elif operation == "_set_title":
        state["title"] = next(iter(given.values()))
        # As programs write it that serve any operation: it returns nothing.
        results(call, return_=None)
    elif operation == "_get_number":
        results(call, return_=18446744073709551615)
    elif operation == "deposit":
        state["balance"] += given["amount"]
        beside = {"headers": call["headers"]} if "headers" in call else {}
        answer(call, results={"return": state["balance"]}, **beside)
        if state["parked"]:
            # Answers need not come in order: this one was asked before.
            results(state["parked"])
            state["parked"] = None
    elif operation == "withdraw":
        missing = given["amount"] - state["balance"]
        if missing > 0:
            answer(call, **{"raise": "Bank::Overdrawn", "fields": {"missing": missing, "reason": "too much"}})
        else:
            state["balance"] -= given["amount"]
            results(call, return_=state["balance"])
    elif operation == "history":
        results(call, return_=given["filter"] * 2, most=given["most"] + 1, complete=True)
    elif operation in ("statement", "convert", "remember", "sibling"):
        results(call, return_=next(iter(given.values())))
    elif operation == "inflate":
        results(call, return_="x" * given["size"])
    elif operation == "shout":
        results(call, return_=given["text"].upper())
    elif operation == "hint":
        state["title"] = given["text"]
    elif operation == "fails":
        answer(call, fail="the vault is stuck")
    elif operation == "dies":
        sys.exit(3)
    elif operation == "hangs":
        state["parked"] = call
        state["title"] = "Parked"
    elif operation == "misspells":
        answer(call, raises="Bank::Overdrawn")
    elif operation == "lies":
        results(call, nonsense=1)
    elif operation == "garbles":
        line = '{"id": %d.0, "results": %s}' % (call["id"], given["results"])
        print(f"[{line}]" if given["results"] == "[]" else line, flush=True)

# The server ends: what it has asked is still answered.
if state["parked"]:
    results(state["parked"])
