# Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that are none are found where they arise, and named."""

import math
import os
import unittest

os.environ["HYBRID_CHECK_FINITE"] = "1"

import hybrid

from .support import buffer

TOKENS, DIM = 64, 64


def generated(c, shape):
    """sin(0.7 n + c) at the flat index n."""
    count = math.prod(shape)
    return buffer(shape, [math.sin(0.7 * n + c) for n in range(count)])


def with_unit_rows(array):
    rows = [array.tolist()[0][t][0] for t in range(TOKENS)]
    values = []
    for row in rows:
        length = math.sqrt(sum(x * x for x in row))
        values += [x / length for x in row]
    return buffer((1, TOKENS, 1, DIM), values)


class Finite(unittest.TestCase):
    def delta_rule(self, key):
        shape = (1, TOKENS, 1, DIM)
        ones = buffer(shape, [1.0] * math.prod(shape))
        beta = buffer((1, TOKENS, 1), [0.5] * TOKENS)
        return hybrid.delta_rule(key, key, ones, beta)

    def test_LIN_06_keys_that_are_not_normalised(self):
        """flash-linear-attention#736: never a silent NaN."""
        key = generated(0.2, (1, TOKENS, 1, DIM))
        with self.assertRaises(hybrid.Error) as caught:
            self.delta_rule(key)
        text = str(caught.exception)
        for part in ("recurrence", "beta times the key's squared length", "above 2"):
            self.assertIn(part, text)

    def test_LIN_06_normalised_keys(self):
        key = with_unit_rows(generated(0.2, (1, TOKENS, 1, DIM)))
        output = self.delta_rule(key)
        output = output[0] if isinstance(output, tuple) else output
        numbers = [x for t in output.tolist()[0] for head in t for x in head]
        self.assertTrue(all(math.isfinite(x) for x in numbers))

    def test_an_input_that_is_not_finite(self):
        key = with_unit_rows(generated(0.2, (1, TOKENS, 1, DIM)))
        value = memoryview(key).cast("B").cast("f")
        value[70] = math.nan
        with self.assertRaises(hybrid.Error) as caught:
            self.delta_rule(key)
        self.assertIn("input q holds NaN at [1, 0, 6]", str(caught.exception))

    def test_poison_is_not_to_be_found(self):
        functions = hybrid.Functions(
            "func.func @copy(%x: tensor<?x8xf32> {hybrid.role = \"input\", "
            "hybrid.path = \"x\"}, %s: !hybrid.segments {hybrid.role = \"segments\"}) "
            "-> (tensor<?x8xf32> {hybrid.role = \"output\", hybrid.path = \"y\"}) "
            "attributes {hybrid.entry = \"copy\"} {\n"
            "  %y = hybrid.scale %x by 1.0 : tensor<?x8xf32>\n"
            "  return %y : tensor<?x8xf32>\n}\n",
            "copy",
            poison=True,
            check_finite=True,
        )
        with self.assertRaisesRegex(hybrid.Error, "ask for one of them"):
            functions("copy", [2], {"x": buffer((2, 8), [1.0] * 16)})


if __name__ == "__main__":
    unittest.main()
