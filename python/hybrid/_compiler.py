# Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs `hybridc`, and keeps what it made on disk."""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from . import _library


class CompilerNotFound(_library.Error):
    """There is no `hybridc` to compile with."""

    def __init__(self, message):
        super().__init__("unsupported", message)


class CompileError(_library.Error):
    """`hybridc` refused its input; the message is what it printed."""

    def __init__(self, message):
        super().__init__("invalid_argument", message)


def find_compiler():
    """The path of `hybridc`: HYBRIDC, else beside the runtime, else in PATH."""
    chosen = os.environ.get("HYBRIDC")
    if chosen:
        found = shutil.which(chosen)
        if found is None:
            raise CompilerNotFound(
                f"HYBRIDC is '{chosen}', which is no program; set it to the path of "
                "hybridc"
            )
        return found
    folder = pathlib.Path(_library.library().path).resolve().parent
    # The library's folder may be one deeper, by the kind of machine.
    for prefix in folder.parents[:2]:
        candidate = prefix / "bin" / "hybridc"
        if os.access(candidate, os.X_OK):
            return str(candidate)
    found = shutil.which("hybridc")
    if found is None:
        raise CompilerNotFound(
            "hybridc is not found beside the runtime "
            f"({folder}) or in PATH; install it or set HYBRIDC to its path"
        )
    return found


def _identity(compiler):
    """What tells one build of the compiler from another without running it."""
    status = os.stat(compiler)
    return [
        _library.library().version(),
        os.path.realpath(compiler),
        status.st_size,
        status.st_mtime_ns,
    ]


def cache_folder():
    """HYBRID_CACHE, else `hybridc` in XDG_CACHE_HOME or ~/.cache."""
    chosen = os.environ.get("HYBRID_CACHE")
    if chosen:
        return pathlib.Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "hybridc"


@contextlib.contextmanager
def _locked(path):
    """Processes that want the same artefact wait for the one that makes it."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(compiler, text, target, output):
    command = [compiler, "-", "-o", str(output), f"--target={target}"]
    if target == "cpu":
        # The artefact stays on this machine; its key says for which level.
        command.append(f"--cpu-levels={_library.library().processor_level()}")
    try:
        result = subprocess.run(command, input=text, capture_output=True, text=True)
    except OSError as problem:
        raise CompilerNotFound(
            f"cannot run '{compiler}': {problem}; set HYBRIDC to the path of hybridc"
        ) from problem
    if result.returncode != 0:
        printed = result.stderr.strip() or f"exit code {result.returncode}"
        raise CompileError(f"hybridc failed for target {target}:\n{printed}")


def compiled(text, target, name):
    """The path of the artefact of `text` for `target`, compiled if need be.

    `name` is for people who look into the cache.
    """
    compiler = find_compiler()
    level = _library.library().processor_level() if target == "cpu" else ""
    key = json.dumps([text, _identity(compiler), target, level])
    digest = hashlib.sha256(key.encode()).hexdigest()[:32]
    folder = cache_folder()
    path = folder / f"{name}-{digest}.hbx"
    if path.exists():
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _locked(folder / f"{name}-{digest}.lock")
        with lock:
            if path.exists():
                return path
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                made = os.path.join(scratch, "artefact.hbx")
                _run(compiler, text, target, made)
                os.replace(made, path)
    except OSError as problem:
        raise _library.Error(
            "io",
            f"cannot write to the cache '{folder}': {problem}; set HYBRID_CACHE to "
            "a folder that can be written",
        ) from problem
    return path


def open_compiled(text, target, name, device, products="compiled"):
    """Opens the artefact of `text`; a damaged one is made anew, once."""
    path = compiled(text, target, name)
    try:
        return _library.open_artefact(path, device, products)
    except _library.Error as problem:
        if problem.status != "invalid_file":
            raise
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return _library.open_artefact(compiled(text, target, name), device, products)
