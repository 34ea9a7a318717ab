# Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""hybridc from Python: attention mixers as functions, and whole hybrid models.

docs/python.md is the manual.
"""

from ._compiler import CompileError, CompilerNotFound, cache_folder
from ._library import Error
from .functions import Functions
from .mixers import (
    delta_rule,
    gated_delta_rule,
    gla,
    linear_attention,
    simple_gla,
    softmax_attention,
)
from .model import Model, State, Update, compile

__all__ = [
    "CompileError",
    "CompilerNotFound",
    "Error",
    "Functions",
    "Model",
    "State",
    "Update",
    "cache_folder",
    "compile",
    "delta_rule",
    "gated_delta_rule",
    "gla",
    "linear_attention",
    "simple_gla",
    "softmax_attention",
]
