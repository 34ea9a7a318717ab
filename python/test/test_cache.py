# Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""When hybridc runs, and when what it made before is used."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import hybrid
from hybrid import _compiler, mixers

from .support import numbers

PACKAGE = pathlib.Path(hybrid.__file__).resolve().parents[1]

# Another process: attends once over sequences of a given length.
CHILD = """
import sys, hybrid
from test.support import numbers
x = numbers(0, (1, int(sys.argv[1]), 1, 16))
print(tuple(hybrid.softmax_attention(x, x, x).shape))
"""


class Cache(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.runs = self.folder / "runs"
        # A compiler that counts its runs.
        counting = self.folder / "hybridc"
        counting.write_text(
            f'#!/bin/sh\necho run >> "{self.runs}"\n'
            f'exec "{_compiler.find_compiler()}" "$@"\n'
        )
        counting.chmod(0o755)
        changes = {
            "HYBRIDC": str(counting),
            "HYBRID_CACHE": str(self.folder / "cache"),
        }
        patched = mock.patch.dict(os.environ, changes)
        patched.start()
        self.addCleanup(patched.stop)
        self.forget()
        self.addCleanup(self.forget)

    def forget(self):
        """As in a new process: what is kept in memory is gone."""
        mixers._softmax.cache_clear()
        mixers._recurrence.cache_clear()

    def count(self):
        return len(self.runs.read_text().splitlines()) if self.runs.exists() else 0

    def attend(self, batch=1, seq=4, heads=1, **options):
        x = numbers(0, (batch, seq, heads, 16))
        return hybrid.softmax_attention(x, x, x, **options)

    def test_one_compilation_for_every_batch_and_length(self):
        for batch, seq in ((1, 4), (3, 4), (1, 1), (2, 65), (1, 130)):
            self.attend(batch, seq)
        self.attend(1, 10, cu_seqlens=[0, 3, 10])
        self.assertEqual(self.count(), 1)

    def test_one_compilation_for_each_static_configuration(self):
        self.attend()
        self.attend(heads=2)
        self.attend(window=2)
        self.attend(scale=0.5)
        self.assertEqual(self.count(), 4)

    def test_another_process_finds_the_artefact(self):
        self.attend()
        self.forget()
        self.attend()
        self.start(7).communicate()
        self.assertEqual(self.count(), 1)

    def start(self, seq):
        return subprocess.Popen(
            [sys.executable, "-c", CHILD, str(seq)],
            env={**os.environ, "PYTHONPATH": str(PACKAGE)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def test_processes_at_once_compile_once(self):
        children = [self.start(seq) for seq in (3, 4, 5, 6)]
        for seq, child in zip((3, 4, 5, 6), children):
            printed, errors = child.communicate()
            self.assertEqual(printed, f"(1, {seq}, 1, 16)\n", errors)
        self.assertEqual(self.count(), 1)

    def test_another_compiler_compiles_anew(self):
        self.attend()
        self.forget()
        compiler = pathlib.Path(os.environ["HYBRIDC"])
        compiler.write_text(compiler.read_text() + "# another build\n")
        self.attend()
        self.assertEqual(self.count(), 2)

    def artefacts(self):
        return sorted((self.folder / "cache").glob("*.hbx"))

    def test_a_damaged_artefact_is_made_anew(self):
        self.attend()
        self.forget()
        (path,) = self.artefacts()
        path.write_bytes(path.read_bytes()[:-1])
        self.attend()
        self.assertEqual(self.count(), 2)

    def test_a_failed_compilation_leaves_nothing(self):
        x = numbers(0, (1, 4, 1, 5))
        with self.assertRaisesRegex(hybrid.CompileError, "hybridc failed for target"):
            hybrid.linear_attention(x, x, x)
        self.assertEqual(self.artefacts(), [])
        self.assertEqual(
            [path for path in (self.folder / "cache").iterdir() if path.is_dir()], []
        )

    def test_no_compiler(self):
        os.environ["HYBRIDC"] = str(self.folder / "absent")
        with self.assertRaisesRegex(
            hybrid.CompilerNotFound, "HYBRIDC is '.*/absent', which is no program"
        ):
            self.attend()
        del os.environ["HYBRIDC"]
        with mock.patch.object(_compiler.os, "access", return_value=False):
            os.environ["PATH"] = str(self.folder / "empty")
            with self.assertRaisesRegex(
                hybrid.CompilerNotFound, "hybridc is not found beside the runtime"
            ):
                self.attend()

    def test_a_cache_that_cannot_be_written(self):
        (self.folder / "file").write_text("")
        os.environ["HYBRID_CACHE"] = str(self.folder / "file" / "cache")
        with self.assertRaisesRegex(hybrid.Error, "cannot write to the cache") as caught:
            self.attend()
        self.assertEqual(caught.exception.status, "io")

    def test_where_the_cache_is(self):
        del os.environ["HYBRID_CACHE"]
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": "/somewhere"}):
            self.assertEqual(str(hybrid.cache_folder()), "/somewhere/hybridc")


if __name__ == "__main__":
    unittest.main()
