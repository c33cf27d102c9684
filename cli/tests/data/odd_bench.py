"""Implements the benchmarking interface of the races, with other answers than their own servers give."""
import json
import sys

for line in sys.stdin:
    call = json.loads(line)
    results = {}
    if call["operation"] in ("out_int_call", "in_out_int_call"):
        results = {"v": -7}
    elif call["operation"] in ("out_string_call", "in_out_string_call"):
        results = {"v": "quite another text"}
    print(json.dumps({"id": call["id"], "results": results}), flush=True)
