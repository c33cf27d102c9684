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

TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
PASSED = TARGET / "passed"
# What the run that begins now is made of. A source that changes during the run makes another program, which has passed nothing.
CHOSEN = TARGET / "chosen.json"
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


def mark(name):
    return PASSED / name.replace("::", "+").replace("/", "+")


def choose(without_peers):
    same = []
    chosen = programs()
    CHOSEN.write_text(json.dumps({name: fingerprint for name, (_, fingerprint) in chosen.items()}))
    if os.environ.get("CI") != "true":
        for name, (package, fingerprint) in chosen.items():
            if package not in ALWAYS and mark(name).is_file() and mark(name).read_text() == fingerprint:
                same.append(name)
    if same:
        print(f"unchanged since they passed, not run again: {' '.join(sorted(same))}", file=sys.stderr)
    parts = [f"not binary_id(={name})" for name in sorted(same)]
    if without_peers:
        parts.append(f"(not package(=everywire-tests) or {NO_PEERS})")
    print(" and ".join(parts) or "all()")


def remember():
    suites = {suite.get("name"): suite for suite in xml.parse(RESULTS).getroot().iter("testsuite")}
    PASSED.mkdir(exist_ok=True)
    for name, fingerprint in json.loads(CHOSEN.read_text()).items():
        suite = suites.get(name)
        if suite is None:
            continue
        if int(suite.get("failures", 0)) + int(suite.get("errors", 0)):
            mark(name).unlink(missing_ok=True)
        else:
            mark(name).write_text(fingerprint)


def main():
    if sys.argv[1:2] == ["choose"]:
        choose("--without-peers" in sys.argv)
    elif sys.argv[1:] == ["passed"]:
        remember()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
