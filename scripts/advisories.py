#!/usr/bin/env python3
"""The stored list of security advisories: makes it, checks its age and its coverage, and lays it out for cargo-deny.

    advisories.py check                 is the list young enough, and does it know every crate of the lock files?
    advisories.py lay-out FOLDER        as the git repository that cargo-deny reads (deny.toml: db-path)
    advisories.py renew CHECKOUT        makes the list anew from a git checkout of RustSec's advisory-db

The list has facts only: which versions of which crate an advisory touches. What happened is read at its address,
https://rustsec.org/advisories/<id>. An advisory whose crate is in no lock file is not in the list; so the list also names
each crate that was looked up, and a crate that was not is an error and not a crate without advisories.
"""

import argparse
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "deny" / "advisories.toml"
LOCKS = [ROOT / "Cargo.lock", ROOT / "fuzz" / "Cargo.lock", ROOT / "derby" / "rivals" / "zbus" / "Cargo.lock"]
# What cargo-deny makes of the db-urls of deny.toml: the last part of the address and a hash of all of it.
FOLDER = "stored-b1c1183d9903dfb5"
# Days after which the list is called old, and after which the check fails.
OLD, TOO_OLD = 90, 365
FIELDS = ("informational", "withdrawn", "patched", "unaffected")
RENEW = "renew it as CONTRIBUTING.md says: python3 scripts/advisories.py renew <checkout of RustSec's advisory-db>"


def fail(message: str) -> None:
    sys.exit(f"advisories: {message}")


def crates_of(locks: list[pathlib.Path]) -> set[str]:
    """Names of the foreign crates in lock files; our own have no source."""
    packages = [package for lock in locks for package in tomllib.loads(lock.read_text())["package"]]
    return {package["name"] for package in packages if "source" in package}


def check(stored: dict, locks: list[pathlib.Path], today: datetime.date) -> None:
    """Prints the list's age; exits with an error if it is too old or does not know a crate."""
    made = datetime.date.fromisoformat(stored["database"])
    age = (today - made).days
    limit = int(os.environ.get("EVERYWIRE_ADVISORIES_DAYS", TOO_OLD))
    known, crates = len(stored["advisories"]), len(stored["looked_up"])
    print(f"advisories as of {made}, {age} days old: {known} on the {crates} crates that were looked up")
    if age > limit:
        fail(f"the stored list is more than {limit} days old; {RENEW}; or allow more in EVERYWIRE_ADVISORIES_DAYS")
    if age > OLD:
        print(f"advisories: warning: the stored list is more than {OLD} days old; {RENEW}", file=sys.stderr)
    if unknown := sorted(crates_of(locks) - set(stored["looked_up"])):
        fail(f"the stored list of advisories does not know {', '.join(unknown)}; {RENEW}")


def lay_out(stored: dict, folder: pathlib.Path) -> None:
    """Writes the list as a git repository, whose one commit has the list's date: cargo-deny asks for both."""
    repository = folder / FOLDER
    shutil.rmtree(repository, ignore_errors=True)
    for advisory in stored["advisories"]:
        path = repository / "crates" / advisory["package"] / f"{advisory['id']}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        about = [f"{key} = {json.dumps(advisory[key])}" for key in ("id", "package", "date", *FIELDS[:2]) if key in advisory]
        versions = [f"{key} = {json.dumps(advisory.get(key, []))}" for key in FIELDS[2:]]
        lines = ["```toml", "[advisory]", *about, "[versions]", *versions, "```", "", f"# {advisory['id']}", ""]
        path.write_text("\n".join(lines))
    date = f"{stored['database']}T00:00:00Z"
    named = ["-c", "user.name=advisories", "-c", "user.email=advisories@localhost", "-c", "commit.gpgsign=false"]
    dated = os.environ | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    for command in (["init", "-q"], ["add", "-A", "-f"], [*named, "commit", "-q", "--no-verify", "-m", stored["database"]]):
        subprocess.run(["git", "-C", str(repository), *command], check=True, env=dated)


def renew(checkout: pathlib.Path) -> None:
    """Makes the list anew, of the crates that are in the lock files now."""
    show = ["git", "-C", str(checkout), "show", "-s", "--format=%cs", "HEAD"]
    date = subprocess.run(show, check=True, capture_output=True, text=True).stdout.strip()
    crates = sorted(crates_of(LOCKS))
    found = [fact(path) for crate in crates for path in sorted((checkout / "crates" / crate).glob("RUSTSEC-*.md"))]
    LIST.write_text(written(date, crates, found))
    print(f"advisories as of {date}: {len(found)} on {len(crates)} crates, in {LIST.relative_to(ROOT)}")


def fact(path: pathlib.Path) -> dict:
    """What the list keeps of an advisory."""
    head = tomllib.loads(path.read_text().split("```toml", 1)[1].split("```", 1)[0])
    both = head["advisory"] | head["versions"]
    kept = {key: both[key] for key in ("id", "package", "date")}
    return kept | {key: str(both[key]) if key == "withdrawn" else both[key] for key in FIELDS if both.get(key)}


def written(date: str, crates: list[str], advisories: list[dict]) -> str:
    """The list as text, a line for each advisory, so that a renewal is read as a difference."""
    out = [
        "# RustSec's advisories about the crates of our lock files, for scripts/deny.sh; scripts/advisories.py renews it.",
        "# What each one says: https://rustsec.org/advisories/<id>.",
        "",
        "# The day of the newest change of the database that was looked at.",
        f'database = "{date}"',
        "",
        "# Each crate that was looked up, also those that have no advisory.",
        "looked_up = [",
        *(f'    "{crate}",' for crate in crates),
        "]",
        "",
        "advisories = [",
        *("    { " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in entry.items()) + " }," for entry in advisories),
        "]",
        "",
    ]
    return "\n".join(out)


def main() -> None:
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    of_check = verbs.add_parser("check")
    of_check.add_argument("--lock", type=pathlib.Path, action="append", help="another lock file instead of the project's")
    of_check.add_argument("--today", type=datetime.date.fromisoformat, default=datetime.date.today(), help="for tests")
    verbs.add_parser("lay-out").add_argument("folder", type=pathlib.Path)
    verbs.add_parser("renew").add_argument("checkout", type=pathlib.Path)
    asked = parser.parse_args()
    if asked.verb == "renew":
        renew(asked.checkout)
        return
    if not LIST.exists():
        fail(f"there is no {LIST.relative_to(ROOT)}; {RENEW}")
    stored = tomllib.loads(LIST.read_text())
    if asked.verb == "check":
        check(stored, asked.lock or LOCKS, asked.today)
    else:
        lay_out(stored, asked.folder)


if __name__ == "__main__":
    main()
