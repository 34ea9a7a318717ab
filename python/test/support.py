# Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests share: arrays of the standard library, and comparisons."""

import math
import random

# Of float32 results against fp64, relative to the largest element.
TOLERANCE = 2e-5


def buffer(shape, values=None):
    """A float32 buffer of that shape, with values in row-major order."""
    count = math.prod(shape)
    memory = memoryview(bytearray(4 * count)).cast("f")
    for i, value in enumerate(values or []):
        memory[i] = value
    return memory.cast("B").cast("f", list(shape))


def numbers(seed, shape, low=-1.0, high=1.0):
    """A float32 buffer of numbers that depend on the seed alone."""
    generator = random.Random(seed)
    return buffer(
        shape, [generator.uniform(low, high) for _ in range(math.prod(shape))]
    )


def flat(nested):
    """The numbers in nested lists, or in a buffer, in order."""
    if isinstance(nested, memoryview):
        nested = nested.tolist()
    if not isinstance(nested, (list, tuple)):
        return [nested]
    return [number for part in nested for number in flat(part)]


def difference(ours, expected):
    """The largest difference over the largest expected number."""
    ours, expected = flat(ours), flat(expected)
    assert len(ours) == len(expected), f"{len(ours)} numbers, expected {len(expected)}"
    largest = max((abs(number) for number in expected), default=0.0)
    worst = max((abs(a - b) for a, b in zip(ours, expected)), default=0.0)
    # A result that is not a number must not compare as equal.
    if any(math.isnan(number) for number in ours):
        return math.inf
    return worst / max(largest, 1e-30)
