#!/usr/bin/env python3
"""compute-sanitizer on a command, less the reports that are known to be false.

    sanitize.py TOOL COMMAND ARGUMENT...

known-reports.txt beside this file has a line `TOOL | REGULAR EXPRESSION | REASON`
per kind of false report; the expression is searched in the whole report. Whatever
else is reported is printed, and ends with exit code 1; so does a command that
fails. `--sanitizer=PROGRAM` in front is for tests of this program.
"""

import pathlib
import re
import subprocess
import sys

#: Lines with which compute-sanitizer begins a report.
BEGIN = re.compile(r"^========= (?!COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY|LEAK SUMMARY|    |\s*$)")
SUMMARY = re.compile(r"^========= (?:ERROR|RACECHECK) SUMMARY: (\d+)", re.MULTILINE)


def read_known(path):
    known = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != 3 or not all(parts):
            sys.exit(f"{path}:{number}: expected `tool | expression | reason`")
        known.append((parts[0], re.compile(parts[1], re.DOTALL), parts[2]))
    return known


def reports_of(text):
    """The reports of one run, each with the lines that belong to it."""
    reports = []
    for line in text.splitlines():
        if BEGIN.match(line):
            reports.append([line])
        elif reports and line.startswith("=========     "):
            reports[-1].append(line)
    return ["\n".join(lines) for lines in reports]


def main():
    arguments, program = sys.argv[1:], "compute-sanitizer"
    if arguments and arguments[0].startswith("--sanitizer="):
        program = arguments.pop(0).split("=", 1)[1]
    if len(arguments) < 2:
        sys.exit(__doc__)
    tool, command = arguments[0], arguments[1:]
    known = [row for row in read_known(pathlib.Path(__file__).with_name("known-reports.txt")) if row[0] == tool]
    done = subprocess.run([program, "--tool", tool, "--print-limit", "0", *command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    reports = reports_of(done.stdout)
    new, seen = [], {}
    for text in reports:
        reason = next((reason for _, expression, reason in known if expression.search(text)), None)
        if reason is None:
            new.append(text)
        else:
            seen[reason] = seen.get(reason, 0) + 1
    for reason, count in seen.items():
        print(f"known, {count} times: {reason}")
    summary = SUMMARY.search(done.stdout)
    if summary is None:
        print(done.stdout[-2000:])
        sys.exit(f"{tool} did not finish: no summary (exit code {done.returncode})")
    if int(summary.group(1)) and not reports:
        print(done.stdout[-2000:])
        sys.exit(f"{tool} counts {summary.group(1)} reports, and none was recognised")
    if new:
        print("\n".join(new[:5]))
        sys.exit(f"{tool}: {len(new)} new reports")
    if done.returncode:
        print(done.stdout[-2000:])
        sys.exit(f"the command under {tool} failed with exit code {done.returncode}")
    print(f"{tool}: nothing new")


if __name__ == "__main__":
    main()
