#!/usr/bin/env python3
"""clang-format and clang-tidy over the files of this repository.

    scripts/check-style.py [--fix] [--build=build/dev] [files...]

A file that passed is not looked at again until it, a header of ours that it
reads, or the list of checks changes. --fix formats in place and skips clang-tidy.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tracked_sources():
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.c", "*.cpp", "*.h"],
        cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / line for line in listing.splitlines() if (ROOT / line).exists()]


def check_format(files, fix):
    if fix:
        return subprocess.run(["clang-format-22", "-i", *map(str, files)]).returncode == 0
    run = subprocess.run(["clang-format-22", "--dry-run", *map(str, files)],
                         capture_output=True, text=True)
    unformatted = dict.fromkeys(re.findall(r"(?m)^(.*?):\d+:\d+: warning", run.stderr))
    for path in unformatted:
        print(f"not formatted: {os.path.relpath(path, ROOT)}", file=sys.stderr)
    if unformatted:
        print("run scripts/check-style.py --fix", file=sys.stderr)
    return run.returncode == 0 and not unformatted


def own_headers(build):
    """What each object file was made from, by ninja's record: our files only."""
    text = subprocess.run(["ninja", "-C", str(build), "-t", "deps"],
                          check=True, capture_output=True, text=True).stdout
    deps, current = {}, None
    for line in text.splitlines():
        if line.startswith(" "):
            path = (build / line.strip()).resolve()
            if path.is_relative_to(ROOT) and not path.name.startswith("cmake_pch"):
                current.add(path)
        elif ":" in line:
            current = deps.setdefault(line.split(":")[0], set())
    return deps


def fingerprint(files, command):
    digest = hashlib.sha256(command.encode())
    for path in [ROOT / ".clang-tidy", *sorted(files)]:
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()


def without_pch(entries, folder):
    """Compile commands without precompiled header: clang-tidy walks all that is in
    one, but skips headers that are not ours when it reads them itself. So a file
    has to include what it uses, too."""
    pch = re.compile(r"-Winvalid-pch -Xclang -include-pch -Xclang \S+")
    folder.mkdir(exist_ok=True)
    for entry in entries:
        entry["command"] = pch.sub("", entry["command"])
    (folder / "compile_commands.json").write_text(json.dumps(entries))


def tidy(source, folder):
    command = ["clang-tidy-22", "-p", str(folder), "--quiet", str(source)]
    return source, subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def check_tidy(files, build):
    entries = json.loads((build / "compile_commands.json").read_text())
    without_pch(entries, build / "tidy")
    commands = {}
    for entry in entries:
        commands.setdefault(pathlib.Path(entry["file"]), entry)
    deps = own_headers(build)
    record_path = build / "tidy" / "passed.json"
    record = json.loads(record_path.read_text()) if record_path.exists() else {}

    todo = {}
    for source in files:
        entry = commands.get(source)
        if not entry:
            continue
        words = shlex.split(entry["command"])
        read = {source} | deps.get(words[words.index("-o") + 1], set())
        mark = fingerprint(read, entry["command"])
        if record.get(str(source)) != mark:
            todo[source] = mark
    failed = False
    jobs = int(os.environ.get("HYBRID_JOBS", os.cpu_count()))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for source, run in pool.map(lambda s: tidy(s, build / "tidy"), todo):
            if run.returncode == 0:
                record[str(source)] = todo[source]
                continue
            failed = True
            print(run.stdout + run.stderr, file=sys.stderr)
    record_path.write_text(json.dumps(record, indent=0, sort_keys=True))
    print(f"clang-tidy: {len(files)} files, {len(todo)} of them looked at")
    return not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("--build", default=str(ROOT / "build" / "dev"))
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    files = [pathlib.Path(f).resolve() for f in options.files] or tracked_sources()

    ok = check_format(files, options.fix)
    if options.fix:
        return 0 if ok else 1
    print(f"clang-format: {len(files)} files")
    sources = [f for f in files if f.suffix in (".c", ".cpp")]
    return 0 if check_tidy(sources, pathlib.Path(options.build).resolve()) and ok else 1


if __name__ == "__main__":
    sys.exit(main())
