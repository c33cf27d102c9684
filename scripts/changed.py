#!/usr/bin/env python3
"""Chooses the test programs that have not passed as they are now, so that a test of unchanged code does not run twice.

    changed.py choose [--without-peers]   prints a filter for cargo-nextest
    changed.py passed                     remembers which of them passed in the run that just ended, as they were when they were chosen

A program is the same if its file and the data files of its crate are the same. What other crates gave it is in its file, so a
change of a crate runs the tests of all that stand on it. With CI=true everything runs.
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as xml

# These read files of other crates, or start programs of other crates: their own files do not tell what has changed.
ALWAYS = {"everywire-tests", "everywire-cli", "everywire-peers", "everywire-fuzz-cases"}

# What needs no foreign program, of the tests that span rooms.
NO_PEERS = "test(/^(architecture|attacks|attacks_dbus|attacks_dcop|attacks_dcom)::/)"

# Races, and programs of others on both sides: they take minutes, and say little of one crate.
RACES = "package(=everywire-cli) and test(/^(derby|dmz|hops|routers|strangers)::/)"

# Tests of one wire in programs that hold every wire. Without peers they stay out where nothing but other wires has changed.
OF_A_WIRE = {
    "everywire-dbus": "package(=everywire-tests) and test(/^attacks_dbus::/)",
    "everywire-dcom": "(package(=everywire-tests) and test(/^attacks_dcom::/))"
    " or (package(=everywire-cli) and test(/^(dcom|opc_serve|opcda|trace_opc)::/))",
    "everywire-dcop": "package(=everywire-tests) and test(/^attacks_dcop::/)",
    "everywire-giop": "package(=everywire-cli) and test(/^repository::/)",
    "everywire-wcf": "package(=everywire-cli) and test(/^wcf::/)",
}

TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
PASSED = TARGET / "passed"
# What the run that begins now is made of. A source that changes during the run makes another program, which has passed nothing.
CHOSEN = TARGET / "chosen.json"
# What every crate is made with.
WORKSPACE = ["Cargo.lock", "Cargo.toml"]
# The crates as they were when the last run passed: name -> fingerprint of its files.
SOURCES = PASSED / "sources.json"
# Where .config/nextest.toml has the results written.
RESULTS = TARGET / "nextest/default/junit.xml"


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def files_of(folder):
    """The files of a crate that may be ours; in a copy without a repository all that are there."""
    listed = subprocess.run(
        ("git", "ls-files", "-co", "--exclude-standard", "--deduplicate", str(folder)), capture_output=True, text=True
    )
    if listed.returncode == 0:
        return listed.stdout.splitlines()
    return [str(path) for path in folder.rglob("*") if "target" not in path.parts]


def programs():
    """The test programs: name -> (package, fingerprint)."""
    listed = json.loads(
        run("cargo", "nextest", "list", "--locked", "--workspace", "--cargo-quiet", "--list-type", "binaries-only",
            "--message-format", "json")
    )
    packages = {p["id"]: p for p in json.loads(run("cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"))["packages"]}
    found = {}
    for name, program in listed["rust-binaries"].items():
        package = packages[program["package-id"]]
        hasher = hashlib.sha256(pathlib.Path(program["binary-path"]).read_bytes())
        folder = pathlib.Path(package["manifest_path"]).parent
        for file in sorted(files_of(folder)):
            path = pathlib.Path(file)
            if path.suffix != ".rs" and path.is_file():
                hasher.update(file.encode() + b"\0" + path.read_bytes())
        found[name] = (package["name"], hasher.hexdigest())
    return found


def sources():
    """The crates: name -> fingerprint of all files of its folder. A program says that something has changed, this says what."""
    found = {}
    for package in json.loads(run("cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"))["packages"]:
        hasher = hashlib.sha256()
        for file in sorted(files_of(pathlib.Path(package["manifest_path"]).parent)):
            path = pathlib.Path(file)
            if path.is_file():
                hasher.update(file.encode() + b"\0" + path.read_bytes())
        found[package["name"]] = hasher.hexdigest()
    found["all of them"] = hashlib.sha256(b"".join(pathlib.Path(file).read_bytes() for file in WORKSPACE)).hexdigest()
    return found


def other_wires(now):
    """The wires whose tests tell nothing new: nothing but other wires has changed since a run passed."""
    if os.environ.get("CI") == "true" or not SOURCES.is_file():
        return []
    before = json.loads(SOURCES.read_text())
    changed = {name for name in now.keys() | before.keys() if now.get(name) != before.get(name)}
    return sorted(OF_A_WIRE.keys() - changed) if changed and changed <= OF_A_WIRE.keys() else []


def mark(name):
    return PASSED / name.replace("::", "+").replace("/", "+")


def choose(without_peers):
    same = []
    chosen, crates = programs(), sources()
    fingerprints = {name: fingerprint for name, (_, fingerprint) in chosen.items()}
    RESULTS.unlink(missing_ok=True)  # What is found there afterwards is of this run.
    CHOSEN.write_text(json.dumps({"programs": fingerprints, "sources": crates}))
    if os.environ.get("CI") != "true":
        for name, (package, fingerprint) in chosen.items():
            if package not in ALWAYS and mark(name).is_file() and mark(name).read_text() == fingerprint:
                same.append(name)
    if same:
        print(f"unchanged since they passed, not run again: {' '.join(sorted(same))}", file=sys.stderr)
    parts = [f"not binary_id(={name})" for name in sorted(same)]
    if without_peers:
        parts.append(f"(not package(=everywire-tests) or {NO_PEERS})")
        parts.append(f"not ({RACES})")
        others = other_wires(crates)
        if others:
            print(f"only other wires have changed, so their own tests say nothing new: {' '.join(others)}", file=sys.stderr)
        parts += [f"not ({OF_A_WIRE[wire]})" for wire in others]
    print(" and ".join(parts) or "all()")


def remember():
    if not RESULTS.is_file():
        return  # No test ran.
    suites = {suite.get("name"): suite for suite in xml.parse(RESULTS).getroot().iter("testsuite")}
    PASSED.mkdir(exist_ok=True)
    chosen, failed = json.loads(CHOSEN.read_text()), False
    for name, fingerprint in chosen["programs"].items():
        suite = suites.get(name)
        if suite is None:
            continue
        if int(suite.get("failures", 0)) + int(suite.get("errors", 0)):
            failed = True
            mark(name).unlink(missing_ok=True)
        else:
            mark(name).write_text(fingerprint)
    if not failed:
        SOURCES.write_text(json.dumps(chosen["sources"]))


def main():
    if sys.argv[1:2] == ["choose"]:
        choose("--without-peers" in sys.argv)
    elif sys.argv[1:] == ["passed"]:
        remember()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
