#!/usr/bin/env python3
"""compute-sanitizer on a command, less the reports that are known to be false.

    sanitize.py [--seconds=N] TOOL COMMAND ARGUMENT...

With a limit of time, what was reported by then counts; exit code 124 when nothing new
was, and the time is over.

known-reports.txt beside this file has a line `TOOL | REGULAR EXPRESSION | REASON`
per kind of false report; the expression is searched in the whole report. Whatever
else is reported is printed, and ends with exit code 1; so does a command that
fails. New reports are shown by place: how many, and one of them. `--sanitizer=PROGRAM`
in front is for tests of this program.
"""

import collections
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

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


#: What differs between reports of one place: counts, blocks, threads, addresses.
VARYING = re.compile(r"\[\d+ hazards?\]|\(\d+,\d+,\d+\)|0x[0-9a-f]{6,}|\b\d+ (?:bytes|errors?|warnings?)\b")
#: Places that are shown.
PLACES = 8
#: The exit code of timeout(1).
NO_TIME = 124


def by_place(reports):
    """How many reports there are of each place, and one of them."""
    count, first = collections.Counter(), {}
    for text in reports:
        place = VARYING.sub("", "\n".join(text.splitlines()[:3]))
        count[place] += 1
        first.setdefault(place, text)
    return [(number, first[place]) for place, number in count.most_common()]


def run_tool(command, seconds):
    """What it printed, and its exit code; none when it was stopped because time was over."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        code = None
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        return output.read(), code


def main():
    arguments, program, seconds = sys.argv[1:], "compute-sanitizer", None
    while arguments and arguments[0].startswith("--"):
        name, _, value = arguments.pop(0).partition("=")
        if name == "--sanitizer":
            program = value
        elif name == "--seconds":
            seconds = float(value) or None
        else:
            sys.exit(__doc__)
    if len(arguments) < 2:
        sys.exit(__doc__)
    tool, command = arguments[0], arguments[1:]
    known = [row for row in read_known(pathlib.Path(__file__).with_name("known-reports.txt")) if row[0] == tool]
    printed, code = run_tool([program, "--tool", tool, "--print-limit", "0", *command], seconds)
    reports = reports_of(printed)
    new, seen = [], {}
    for text in reports:
        reason = next((reason for _, expression, reason in known if expression.search(text)), None)
        if reason is None:
            new.append(text)
        else:
            seen[reason] = seen.get(reason, 0) + 1
    for reason, count in seen.items():
        print(f"known, {count} times: {reason}")
    for number, text in by_place(new)[:PLACES]:
        print(f"{number} times:\n{text}")
    if new:
        sys.exit(f"{tool}: {len(new)} new reports at {len(by_place(new))} places")
    if code is None:
        print(f"{tool} was stopped after {seconds:.0f} s, with nothing new; the command had printed")
        print("\n".join(line for line in printed.splitlines() if not line.startswith("====="))[-2000:])
        sys.exit(NO_TIME)
    summary = SUMMARY.search(printed)
    if summary is None:
        print(printed[-2000:])
        sys.exit(f"{tool} did not finish: no summary (exit code {code})")
    if int(summary.group(1)) and not reports:
        print(printed[-2000:])
        sys.exit(f"{tool} counts {summary.group(1)} reports, and none was recognised")
    if code:
        print(printed[-2000:])
        sys.exit(f"the command under {tool} failed with exit code {code}")
    print(f"{tool}: nothing new")


if __name__ == "__main__":
    main()
