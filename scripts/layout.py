#!/usr/bin/env python3
"""Turns profiles of callgrind into a linker script that puts the functions of every call next to each other.

    layout.py PROGRAM CALLS PROFILE... > hot.ld
"""

import collections
import os
import re
import subprocess
import sys

# Instructions of a function, for each call, below which it only ran at the start.
LEAST = 2

# A name that so many functions have is that of a generic one: most of them have nothing to do with calls.
MOST = 12

# What measures, and what runs before the calls.
BESIDE = re.compile(r"hdrhistogram|everywire_derby|clap|4core5slice4sort|3std2io|4core3fmt|3std6thread")

HEAD = """/* The functions that run for each call, next to each other at the start of the program's code: a call then touches fewer pages.
   Written by scripts/layout.sh from profiles; what is not found here is left where it is. */
SECTIONS
{
  .text :
  {
"""

TAIL = """    *(.text .text.*)
  }
}
INSERT BEFORE .fini;
"""


def functions(profile, program, calls):
    """Mangled names of the program's functions that run for each call, those that cost most first."""
    names, objects, cost = {}, {}, {}
    here = function = None
    callee = False
    with open(profile, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            named = re.match(r"(c?)(ob|fn)=\((\d+)\)(?: (.*))?", line)
            if named:
                called, kind, number, name = named.groups()
                known = objects if kind == "ob" else names
                if name:
                    known[number] = name.strip()
                if not called and kind == "ob":
                    here = known[number]
                elif not called:
                    function = known[number]
            elif line.startswith("calls="):
                callee = True
            elif line[:1] in "0123456789+-*" and " " in line:
                if not callee and here and os.path.basename(here) == program:
                    cost[function] = cost.get(function, 0) + int(line.split()[-1])
                callee = False
    often = [name for name, spent in cost.items() if spent >= calls * LEAST]
    return sorted(often, key=lambda name: -cost[name])


def pattern(name):
    """The input sections of a function, whatever the build: its hash is another one in each."""
    name = re.sub(r"'\d+$", "", name)
    name = re.sub(r"\.llvm\.\d+$", "", name)
    # The newer spelling of the standard library's names has the compiler's own hash.
    name = re.sub(r"Cs[0-9A-Za-z]+_", "Cs*_", name) if name.startswith("_R") else name
    return ".text." + re.sub(r"17h[0-9a-f]{16}E$", "17h*", name)


def counts(program):
    """How many of the program's functions each pattern means."""
    said = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    return collections.Counter(pattern(line.split()[-1]) for line in said.splitlines() if line)


def main():
    program, calls, profiles = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    meant = counts(program)
    # The wires that need each function, and the functions that each way of calling needs, those that cost most first.
    wires, ways = {}, {}
    for profile in profiles:
        wire, way, _ = os.path.basename(profile).split(":", 2)
        for name in functions(profile, os.path.basename(program), calls):
            one = pattern(name)
            if re.fullmatch(r"[\w$.]+", one.replace("*", "")) and meant[one] <= MOST and not BESIDE.search(one):
                wires.setdefault(one, set()).add(wire)
                ways.setdefault(way, {})[one] = None
    common = {one: None for way in ways.values() for one in way if len(wires[one]) > 1}
    written = set()
    sys.stdout.write(HEAD)
    for title, group in [("common to several wires", common), *ways.items()]:
        sys.stdout.write(f"    /* {title} */\n")
        for one in group:
            if one not in written:
                sys.stdout.write(f"    *({one})\n")
                written.add(one)
    sys.stdout.write(TAIL)


if __name__ == "__main__":
    main()
