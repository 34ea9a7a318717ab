#!/usr/bin/env python3
"""Checks the pages of the repository.

    docs/pages.py

Links inside the repository lead to a file, and to a heading of it; every row of a
table has a head above it; README.md links every page of docs/.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```", re.S | re.M)


def pages():
    """All but what a build made, and what was fetched into it."""
    inside = lambda page: page.relative_to(ROOT).parts[0]
    return sorted(page for page in ROOT.rglob("*.md")
                  if inside(page) != "build" and not inside(page).startswith("."))


def prose(page):
    """The text with every line of code empty, so that line numbers stay."""
    blank = lambda match: "\n" * match.group().count("\n")
    return CODE.sub(blank, page.read_text())


def anchors(page):
    """What GitHub names the headings."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def target(page, link):
    path = link.partition("#")[0]
    return (page.parent / path).resolve() if path else page


def faulty_links(page):
    for number, line in enumerate(prose(page).split("\n"), 1):
        for link in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if re.match(r"\w+:", link):
                continue
            path, anchor = target(page, link), link.partition("#")[2]
            if not path.exists():
                yield number, f"'{link}' leads to no file"
            elif anchor and path.suffix == ".md" and anchor not in anchors(path):
                yield number, f"'{link}' leads to no heading of the page"


def torn_rows(page):
    lines = prose(page).split("\n")
    for number, line in enumerate(lines, 1):
        begins = line.startswith("|") and not lines[number - 2].startswith("|")
        if begins and not re.match(r"\|[-:| ]+\|$", lines[number]):
            yield number, "a row of a table stands alone; move it to its table"


def unlinked_pages():
    readme = ROOT / "README.md"
    linked = {target(readme, link) for link in LINK.findall(prose(readme))}
    for page in sorted(ROOT.glob("docs/*.md")):
        if page not in linked:
            yield 1, f"no link leads to docs/{page.name}"


def main():
    faults = [(page, *fault) for page in pages()
              for check in (faulty_links, torn_rows) for fault in check(page)]
    faults += [(ROOT / "README.md", *fault) for fault in unlinked_pages()]
    for page, number, text in faults:
        print(f"{page.relative_to(ROOT)}:{number}: error: {text}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
