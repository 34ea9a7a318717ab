# Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""numpy arrays in and out. Skipped where numpy is not installed."""

import unittest

import hybrid

from . import definitions
from .support import TOLERANCE, difference
from .test_model import SPEC

try:
    import numpy
except ImportError:
    numpy = None


@unittest.skipIf(numpy is None, "numpy is not installed")
class Numpy(unittest.TestCase):
    def test_any_layout_is_taken(self):
        random = numpy.random.default_rng(0)
        q = random.standard_normal((1, 2, 9, 16), numpy.float32).swapaxes(1, 2)
        base = random.standard_normal(1 + q.size, numpy.float32)
        k, v = base[1:].reshape(q.shape), base[:-1].reshape(q.shape)
        o = hybrid.softmax_attention(q, k, v)
        self.assertIsInstance(o, numpy.ndarray)
        expected = definitions.softmax_attention(
            q[0].tolist(), k[0].tolist(), v[0].tolist(), 0.25, [0, 0], [0, 0]
        )
        self.assertLess(difference(o.tolist(), expected), TOLERANCE)

    def test_float16(self):
        random = numpy.random.default_rng(1)
        q, k, v = random.standard_normal((3, 1, 9, 2, 16)).astype(numpy.float16)
        o = hybrid.softmax_attention(q, k, v)
        self.assertEqual(o.dtype, numpy.float16)
        expected = definitions.softmax_attention(
            q[0].tolist(), k[0].tolist(), v[0].tolist(), 0.25, [0, 0], [0, 0]
        )
        self.assertLess(difference(o.tolist(), expected), 5e-3)

    def test_no_tokens(self):
        x = numpy.zeros((2, 0, 2, 16), numpy.float32)
        self.assertEqual(hybrid.softmax_attention(x, x, x).shape, x.shape)

    def test_parameters_share_the_memory(self):
        model = hybrid.compile(SPEC, arrays="numpy")
        parameters = model.parameters()
        for parameter in parameters.values():
            parameter[...] = 0
        losses = model.loss(numpy.arange(6).reshape(2, 3), numpy.ones((2, 3), int))
        self.assertEqual(losses.shape, (2, 3))
        self.assertLess(abs(losses - numpy.log(256)).max(), 1e-5)
        del model
        self.assertTrue(all((p == 0).all() for p in parameters.values()))


if __name__ == "__main__":
    unittest.main()
