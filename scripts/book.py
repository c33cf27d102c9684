#!/usr/bin/env python3
"""A preprocessor of mdBook: in the pages of the book, a relative link to a file outside of docs/ becomes a link to the repository.

On the repository's own pages `[Account](../examples/account)` works as it is. The book has no such page, so the link would be dead.
mdBook calls this program with its own protocol: `[context, book]` in JSON on standard input, the book on standard output.
"""

import json
import posixpath
import re
import sys
from pathlib import Path

LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")


def leads_outside(text: str, page: str, root: Path, repository: str) -> str:
    """The text of a page, whose path is relative to docs/."""

    def replace(link: re.Match[str]) -> str:
        before, target, behind = link.groups()
        if "://" in target or target.startswith(("/", "mailto:")):
            return link.group(0)
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
        if path.startswith("docs/"):
            return link.group(0)
        kind = "tree" if (root / path).is_dir() else "blob"
        return f"{before}{repository}/{kind}/main/{path}{behind}"

    return LINK.sub(replace, text)


def walk(items: list, root: Path, repository: str) -> None:
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            chapter["content"] = leads_outside(chapter["content"], chapter["path"] or "", root, repository)
            walk(chapter["sub_items"], root, repository)


def main() -> None:
    if sys.argv[1:2] == ["supports"]:
        sys.exit(0)
    context, book = json.load(sys.stdin)
    repository = context["config"]["output"]["html"]["git-repository-url"]
    walk(book["items"], Path(context["root"]), repository)
    json.dump(book, sys.stdout)


main()
