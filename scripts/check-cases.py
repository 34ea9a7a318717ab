#!/usr/bin/env python3
"""Holds test/field-faults.md to the tests.

    scripts/check-cases.py

Every file of a row has a test named after the case (LIN_04 or LIN04 in a name, in
Python too, or LIN-04 in the comment of a lit case), and every case that a test is named after has
a row that names its file or another of the same case.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAMILIES = "LIN|SIZ|VAR|ATT|ROP|CCH|CFG|WTS|GEN|TRN|PPL"


def rows():
    """Case and files of each row."""
    text = (ROOT / "test/field-faults.md").read_text()
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and re.fullmatch(rf"({FAMILIES})-\d+", cells[0]):
            yield cells[0], re.findall(r"`([^`]+)`", cells[3])


def cases_of(path):
    """Cases that tests of a file are named after."""
    text = path.read_text(errors="replace")
    if path.suffix == ".cpp":
        # Names of tests, and the texts that name the cases of a table.
        names = re.findall(r"TEST(?:_[FP])?\(\w+,\s*(\w+)\)", text)
        names += re.findall(r'"(\w+)"', text)
    elif path.suffix == ".py":
        # Names of tests, and of rows of a table of functions.
        names = re.findall(r"def (test_\w+)", text) + re.findall(r'"([A-Z]{3}-\d\d \w+)": \w+', text)
    else:
        names = re.findall(r"(?m)^\s*//(.*)$", text)
    return {f"{family}-{number}" for name in names
            for family, number in re.findall(rf"({FAMILIES})[-_]?(\d\d)", name)}


def main():
    problems, listed = [], {}
    for case, files in rows():
        if case in listed:
            problems.append(f"{case} has two rows")
        listed[case] = files
        for name in files:
            path = ROOT / name
            if not path.is_file():
                problems.append(f"{case}: {name} does not exist")
            elif case not in cases_of(path):
                problems.append(f"{case}: no test in {name} is named after it")
    tests = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "test/**.cpp", "test/**.mlir",
         "runtime/test/**.cpp", "python/test/**.py",
         "test/gpu/*.py"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in tests.split():
        if (ROOT / name).is_file():
            problems += [f"{case}: {name} has a test of it, but the table has no row"
                         for case in sorted(cases_of(ROOT / name) - set(listed))]
    for problem in problems:
        print(f"test/field-faults.md: {problem}", file=sys.stderr)
    if len(listed) < 10:
        sys.exit("test/field-faults.md: the table was not understood")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
