# Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the runtime is looked for, and what is said when it is not there."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import hybrid

PACKAGE = pathlib.Path(hybrid.__file__).resolve().parent

CHILD = "from hybrid import _library; print(_library.library().path)"


class Library(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def placed(self, *parts):
        """A copy of the package in that folder; the folder above it."""
        place = self.folder.joinpath(*parts)
        shutil.copytree(
            PACKAGE, place / "hybrid", ignore=shutil.ignore_patterns("__pycache__")
        )
        return place.parent

    def load(self, above, **variables):
        """What a process that finds the package there prints, without hybridc."""
        environment = {
            key: value
            for key, value in os.environ.items()
            if key not in ("HYBRID_RUNTIME", "HYBRIDC", "LD_LIBRARY_PATH")
        }
        environment.update(
            PYTHONPATH=str(above / "python"), PATH=str(self.folder), **variables
        )
        result = subprocess.run(
            [sys.executable, "-c", CHILD],
            capture_output=True,
            text=True,
            env=environment,
            cwd=self.folder,
        )
        return (result.stdout or result.stderr).strip().splitlines()[-1]

    def clone(self):
        above = self.placed("clone", "python")
        (above / "scripts").mkdir()
        (above / "scripts" / "build.sh").write_text("")
        return above

    def test_a_clone_that_is_not_built(self):
        above = self.clone()
        text = self.load(above)
        self.assertIn(
            f"tried {above}/build/release/lib/libhybrid_runtime.so.0", text
        )
        self.assertIn(f"run {above}/scripts/build.sh release, or put", text)
        self.assertNotIn(f"{self.folder}/libhybrid_runtime", text)

    def test_a_clone_that_is_built(self):
        above = self.clone()
        built = above / "build" / "release" / "lib" / "libhybrid_runtime.so.0"
        built.parent.mkdir(parents=True)
        built.symlink_to(hybrid._library.library().path)
        self.assertEqual(self.load(above), str(built))

    def test_an_installed_package(self):
        above = self.placed("lib", "hybridc", "python")
        text = self.load(above)
        self.assertIn(f"tried {self.folder}/lib/libhybrid_runtime.so.0", text)
        self.assertIn("put the folder of hybridc into PATH, or set HYBRID_RUNTIME", text)

    def test_a_variable_that_names_nothing(self):
        absent = str(self.folder / "absent.so")
        text = self.load(self.clone(), HYBRID_RUNTIME=absent)
        self.assertIn(f"tried {absent}; HYBRID_RUNTIME names it", text)


if __name__ == "__main__":
    unittest.main()
