#!/usr/bin/env python3
"""Checks that every example of docs/reference is one that a lit test runs.

    docs/examples.py --bin build/dev/bin

An entry is an operation, attribute, type or pass. Its example follows the words
"Example, from `test/...`:" or "Before, from `test/...`:", as a block or as code in
the line; an operation may instead say "An example stands at `...`" and name another
one. A blank line cuts a block into pieces, each of which must stand in the named
file or in what the tool of its RUN line prints. A pass also has a block after
"After" or "Prints", which must be printed. Line breaks and the names of values,
symbols and aliases are free, "..." stands for anything, and comments are left out.
"""

import argparse
import functools
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ["hybrid.md", "tile.md", "hopper.md", "passes.md"]

ENTRY = re.compile(r"^### `?([-\w.]+)`?", re.M)
EXAMPLE = re.compile(
    r"(?:Example|Before), from `(test/[^`]+)`:\s+(```mlir\n.*?```|`[^`]+`)", re.S)
AFTER = re.compile(r"^(?:After|Prints)\b[^:\n]*:\n\n```(?:mlir)?\n(.*?)```", re.S | re.M)
BORROWED = re.compile(r"An example\s+stands\s+at\s+`([\w.]+)`")
NAME = re.compile(r"%[\w$.-]+|@[\w$.-]+|#\w+(?![\w.])")


def compact(text):
    """The text without comments and without spaces that mean nothing."""
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"\s+", " ", text)
    return re.sub(r" ?([(){}\[\]<>:,=]|\.\.\.) ?", r"\1", text).strip()


def pattern(piece):
    """A regular expression in which the same name is the same name again."""
    seen, expression, position = {}, "", 0
    text = compact(piece)
    for match in NAME.finditer(text):
        expression += re.escape(text[position:match.start()])
        name, position = match.group(), match.end()
        if name in seen:
            expression += f"(?P=n{seen[name]})(?![\\w$.-])"
        else:
            seen[name] = len(seen)
            expression += f"(?P<n{seen[name]}>{name[0]}[\\w$.-]+)"
    expression += re.escape(text[position:])
    return re.compile(expression.replace(r"\.\.\.", ".{0,2000}?"))


@functools.lru_cache(maxsize=None)
def printed(path, tools):
    """What the first command of the file's first RUN line prints."""
    run = re.search(r"RUN:((?:.*\\\n)*.*)", (ROOT / path).read_text())
    command = re.sub(r"\\\n\s*(//\s*RUN:)?", " ", run.group(1)).split("|")[0]
    words = shlex.split(command.replace("%s", str(ROOT / path)))
    result = subprocess.run([os.path.join(tools, words[0]), *words[1:]],
                            capture_output=True, text=True)
    return compact(result.stdout)


def missing(block, path, tools, only_printed):
    """The pieces of the block that the file neither holds nor prints."""
    source = "" if only_printed else compact((ROOT / path).read_text())
    for piece in re.split(r"\n\s*\n", block.strip("\n")):
        wanted = pattern(piece)
        if not wanted.search(source) and not wanted.search(printed(path, tools)):
            yield piece


def entries(page):
    text = (ROOT / "docs" / "reference" / page).read_text()
    # Enumerations are told with the attribute that holds them.
    text = text.split("\n## Enums\n")[0]
    starts = [*ENTRY.finditer(text)]
    for start, end in zip(starts, [s.start() for s in starts[1:]] + [len(text)]):
        yield start.group(1), text[start.end():end]


def check(name, body, bodies, tools):
    """The complaints about one entry."""
    examples, results = EXAMPLE.findall(body), AFTER.findall(body)
    other = BORROWED.search(body)
    if other and not examples:
        lent = "".join(code for _, code in EXAMPLE.findall(bodies.get(other.group(1), "")))
        if not re.search(rf"\b{re.escape(name)}\b", lent):
            yield f"is not in the example of {other.group(1)}, which it names"
        return
    if not examples:
        yield "has no example; quote a lit test after \"Example, from `test/...`:\""
        return
    if name.startswith("-") and not results:
        yield "shows no result; quote what its test prints under \"After:\" or \"Prints:\""
    quoted = len(results) + sum(code.startswith("```") for _, code in examples)
    if body.count("```mlir\n") > quoted:
        yield "has a block of code with no test; name one before it: \"Example, from `test/...`:\""
    for path, code in examples:
        if not (ROOT / path).exists():
            yield f"quotes {path}, which is no file"
            continue
        block = re.sub(r"^```mlir\n|^`|`+$", "", code)
        for piece in missing(block, path, tools, only_printed=False):
            yield f"has an example that {path} neither holds nor prints:\n{piece}"
        for block in results:
            for piece in missing(block, path, tools, only_printed=True):
                yield f"shows a result that the test {path} does not print:\n{piece}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(ROOT / "build" / "dev" / "bin"))
    options = parser.parse_args()
    count, failed = 0, False
    for page in PAGES:
        bodies = dict(entries(page))
        for name, body in bodies.items():
            count += 1
            for complaint in check(name, body, bodies, options.bin):
                failed = True
                print(f"error: docs/reference/{page}: {name} {complaint}", file=sys.stderr)
    if not failed:
        print(f"{count} entries, each with an example that a test runs")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
