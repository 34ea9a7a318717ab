# Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the package. What they compile is kept for one run."""

import atexit
import os
import shutil
import tempfile

if not os.environ.get("HYBRID_CACHE"):
    os.environ["HYBRID_CACHE"] = tempfile.mkdtemp(prefix="hybridc-test-")
    atexit.register(shutil.rmtree, os.environ["HYBRID_CACHE"], ignore_errors=True)
