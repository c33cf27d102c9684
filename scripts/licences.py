#!/usr/bin/env python3
"""Fails when a dependency has a licence that this project's own (MIT or Apache-2.0) cannot be combined with."""

import json
import subprocess
import sys

ALLOWED = {
    "MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "0BSD",
    "Unicode-3.0", "CC0-1.0", "Unlicense", "MIT-0", "BSL-1.0",
}


def satisfied(expression: str) -> bool:
    """Whether an SPDX expression (OR, AND, parentheses; `/` is an old way to say OR) can be met from ALLOWED."""
    tokens = expression.replace("/", " OR ").replace("(", " ( ").replace(")", " ) ").split()
    position = 0

    def term() -> bool:
        nonlocal position
        if tokens[position] == "(":
            position += 1
            value = either()
            position += 1
            return value
        name = tokens[position]
        position += 1
        if position < len(tokens) and tokens[position] == "WITH":
            name = f"{name} WITH {tokens[position + 1]}"
            position += 2
        return name in ALLOWED

    def both() -> bool:
        nonlocal position
        value = term()
        while position < len(tokens) and tokens[position] == "AND":
            position += 1
            value = term() and value
        return value

    def either() -> bool:
        nonlocal position
        value = both()
        while position < len(tokens) and tokens[position] == "OR":
            position += 1
            value = both() or value
        return value

    return either()


def main() -> int:
    text = subprocess.run(["cargo", "metadata", "--locked", "--format-version", "1"], check=True, capture_output=True).stdout
    packages = json.loads(text)["packages"]
    foreign = [p for p in packages if p["source"]]
    wrong = [f"{p['name']} {p['version']}: {p['license']}" for p in foreign if not satisfied(p["license"] or "none")]
    for line in wrong:
        print(f"licence not allowed: {line}", file=sys.stderr)
    print(f"licences: {len(foreign)} dependencies, {len(wrong)} not allowed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
