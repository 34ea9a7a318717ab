# Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The mixers against their plain definitions in fp64, with nothing but the
standard library."""

import os
import unittest

# Memory that nobody wrote holds NaN.
os.environ["HYBRID_POISON"] = "1"

import hybrid
from hybrid import mixers

from . import definitions
from .support import TOLERANCE, buffer, difference, flat, numbers

HEADS, KV_HEADS, DIM, VALUE_DIM = 4, 2, 16, 8


class Inputs:
    """q, k, v and gates of a batch of sequences, as buffers."""

    def __init__(self, batch, seq, kv_heads=KV_HEADS, channel_decay=False):
        rows = (batch, seq)
        self.q = numbers(1, rows + (HEADS, DIM))
        self.k = numbers(2, rows + (kv_heads, DIM), -0.4, 0.4)
        self.v = numbers(3, rows + (kv_heads, VALUE_DIM))
        self.g = numbers(4, rows + (HEADS,), -0.5, 0.0)
        self.channel_g = numbers(5, rows + (HEADS, DIM), -0.5, 0.0)
        self.beta = numbers(6, rows + (HEADS,), 0.0, 1.0)

    def sequence(self, index, begin=0, end=None):
        """Lists of one sequence: q, k, v, g, channel g, beta."""
        return [
            array.tolist()[index][begin:end]
            for array in (
                self.q,
                self.k,
                self.v,
                self.g,
                self.channel_g,
                self.beta,
            )
        ]


def per_channel(g):
    return [[[decay] for decay in heads] for heads in g]


class SoftmaxAttention(unittest.TestCase):
    def check(self, inputs, lengths, cu_seqlens=None, **options):
        o = hybrid.softmax_attention(
            inputs.q, inputs.k, inputs.v, cu_seqlens=cu_seqlens, **options
        )
        windows = mixers._per_head(options.get("window"), HEADS, "window")
        sinks = mixers._per_head(options.get("sinks"), HEADS, "sinks")
        expected, begin = [], 0
        for i, length in enumerate(lengths):
            where = (0, begin, begin + length) if cu_seqlens else (i,)
            q, k, v, *_ = inputs.sequence(*where)
            expected += definitions.softmax_attention(
                q,
                k,
                v,
                options.get("scale", DIM**-0.5),
                windows,
                sinks,
                options.get("log_n"),
            )
            begin += length
        self.assertEqual(tuple(o.shape), tuple(inputs.q.shape[:3]) + (VALUE_DIM,))
        self.assertLess(difference(o, expected), TOLERANCE)

    def test_a_batch_with_grouped_heads(self):
        self.check(Inputs(2, 19), [19, 19])

    def test_windows_sinks_and_log_scaling(self):
        self.check(
            Inputs(1, 23),
            [23],
            window=[0, 3, 7, 1],
            sinks=[0, 2, 0, 1],
            scale=0.7,
            log_n=4,
        )

    def test_ragged_sequences(self):
        self.check(Inputs(1, 20), [7, 0, 1, 12], cu_seqlens=[0, 7, 7, 8, 20])

    def test_gradients_are_those_of_the_definition(self):
        seq, lengths = 6, (6,)
        inputs = Inputs(1, seq)
        arrays = {
            "q": inputs.q,
            "k": inputs.k,
            "v": inputs.v,
        }
        packed = {
            name: array.cast("B").cast("f", list(array.shape[1:]))
            for name, array in arrays.items()
        }
        windows, sinks = (0, 3, 0, 2), (0, 1, 0, 0)
        functions = mixers._softmax(
            "f32", HEADS, KV_HEADS, DIM, VALUE_DIM, windows, sinks, 0.5, 0
        )
        outputs = functions("softmax_attention", lengths, packed)
        weights = numbers(9, (seq, HEADS, VALUE_DIM))
        gradients = functions(
            "softmax_attention_backward",
            lengths,
            {**packed, **outputs, "do": weights},
        )

        def loss(values):
            o = definitions.softmax_attention(
                values["q"][0], values["k"][0], values["v"][0], 0.5, windows, sinks
            )
            return definitions.dot(flat(o), flat(weights))

        check_gradients(self, loss, arrays, gradients)


def check_gradients(test, loss, arrays, gradients):
    """Central differences of `loss` in fp64 beside gradients, on every third
    element."""
    step = 1e-5
    for name, array in arrays.items():
        values = {other: each.tolist() for other, each in arrays.items()}
        ours = flat(gradients["d" + name])
        largest = max(abs(gradient) for gradient in ours)
        for index, (holder, key) in enumerate(cells(values[name])):
            if index % 3:
                continue
            kept = holder[key]
            holder[key] = kept + step
            above = loss(values)
            holder[key] = kept - step
            below = loss(values)
            holder[key] = kept
            expected = (above - below) / (2 * step)
            test.assertLess(
                abs(ours[index] - expected),
                2e-5 * max(1.0, largest),
                f"d{name}[{index}]",
            )


def cells(nested):
    """The innermost lists and indices of nested lists, in order."""
    for index, part in enumerate(nested):
        if isinstance(part, list):
            yield from cells(part)
        else:
            yield nested, index


class Recurrences(unittest.TestCase):
    """Each recurrence over a batch, from a state and to a state."""

    def check(self, run, delta, decay=None, beta=False, kv_heads=KV_HEADS):
        inputs = Inputs(2, 21, kv_heads)
        initial = numbers(7, (2, HEADS, DIM, VALUE_DIM))
        before = bytes(initial)
        o, final = run(inputs, initial)
        self.assertEqual(bytes(initial), before, "the initial state is only read")
        expected, states = [], []
        for i in range(2):
            q, k, v, g, channel_g, rate = inputs.sequence(i)
            gates = {None: None, "head": per_channel(g), "channel": channel_g}[decay]
            rows, state = definitions.recurrence(
                q,
                k,
                v,
                gates,
                rate if beta else None,
                DIM**-0.5,
                initial.tolist()[i],
                delta,
            )
            expected += rows
            states.append(state)
        self.assertLess(difference(o, expected), TOLERANCE)
        self.assertLess(difference(final, states), TOLERANCE)

    def test_linear_attention(self):
        self.check(
            lambda x, s: hybrid.linear_attention(
                x.q, x.k, x.v, initial_state=s, output_final_state=True
            ),
            delta=False,
        )

    def test_simple_gla(self):
        self.check(
            lambda x, s: hybrid.simple_gla(
                x.q, x.k, x.v, x.g, initial_state=s, output_final_state=True
            ),
            delta=False,
            decay="head",
        )

    def test_gla(self):
        self.check(
            lambda x, s: hybrid.gla(
                x.q, x.k, x.v, x.channel_g, initial_state=s, output_final_state=True
            ),
            delta=False,
            decay="channel",
        )

    def test_delta_rule(self):
        self.check(
            lambda x, s: hybrid.delta_rule(
                x.q, x.k, x.v, x.beta, initial_state=s, output_final_state=True
            ),
            delta=True,
            beta=True,
        )

    def test_gated_delta_rule(self):
        self.check(
            lambda x, s: hybrid.gated_delta_rule(
                x.q, x.k, x.v, x.g, x.beta, None, s, True
            ),
            delta=True,
            decay="head",
            beta=True,
        )

    def test_without_states(self):
        inputs = Inputs(1, 5)
        o, final = hybrid.gla(inputs.q, inputs.k, inputs.v, inputs.channel_g)
        q, k, v, _, g, _ = inputs.sequence(0)
        expected, _ = definitions.recurrence(
            q,
            k,
            v,
            g,
            None,
            DIM**-0.5,
            definitions.zeros(HEADS, DIM, VALUE_DIM),
            delta=False,
        )
        self.assertIsNone(final)
        self.assertLess(difference(o, expected), TOLERANCE)

    def test_ragged_sequences_have_a_state_each(self):
        inputs = Inputs(1, 40)
        ends = [0, 17, 17, 18, 40]
        o, final = hybrid.gated_delta_rule(
            inputs.q,
            inputs.k,
            inputs.v,
            inputs.g,
            inputs.beta,
            output_final_state=True,
            cu_seqlens=ends,
        )
        expected, states = [], []
        for begin, end in zip(ends, ends[1:]):
            q, k, v, g, _, beta = inputs.sequence(0, begin, end)
            rows, state = definitions.recurrence(
                q,
                k,
                v,
                per_channel(g),
                beta,
                DIM**-0.5,
                definitions.zeros(HEADS, DIM, VALUE_DIM),
                delta=True,
            )
            expected += rows
            states.append(state)
        self.assertEqual(tuple(final.shape), (4, HEADS, DIM, VALUE_DIM))
        self.assertLess(difference(o, expected), TOLERANCE)
        self.assertLess(difference(final, states), TOLERANCE)

    def test_token_by_token_is_the_whole(self):
        inputs = Inputs(1, 6)
        whole, last = hybrid.gated_delta_rule(
            inputs.q, inputs.k, inputs.v, inputs.g, inputs.beta, None, None, True
        )
        state, rows = None, []
        for t in range(6):
            step = [
                buffer((1, 1) + tuple(x.shape[2:]), flat(x.tolist()[0][t]))
                for x in (inputs.q, inputs.k, inputs.v, inputs.g, inputs.beta)
            ]
            o, state = hybrid.gated_delta_rule(*step, None, state, True)
            rows += flat(o)
        self.assertLess(difference(rows, whole), TOLERANCE)
        self.assertLess(difference(state, last), TOLERANCE)

    def test_sliding_windows(self):
        inputs = Inputs(2, 29)
        o, _ = hybrid.simple_gla(
            inputs.q, inputs.k, inputs.v, inputs.g, window=8, stride=4
        )
        expected = []
        for i in range(2):
            q, k, v, g, _, _ = inputs.sequence(i)
            expected += definitions.sliding_recurrence(
                q, k, v, per_channel(g), DIM**-0.5, 8, 4
            )
        self.assertLess(difference(o, expected), TOLERANCE)

    def test_gradients_are_those_of_the_definition(self):
        seq, kv_heads = 5, HEADS
        inputs = Inputs(1, seq, kv_heads)
        initial = numbers(7, (1, HEADS, DIM, VALUE_DIM))
        arrays = {
            "q": inputs.q,
            "k": inputs.k,
            "v": inputs.v,
            "g": inputs.g,
            "beta": inputs.beta,
            "initial_state": initial,
        }
        packed = {
            name: array.cast("B").cast("f", list(array.shape[1:]))
            for name, array in arrays.items()
        }
        packed["g"] = inputs.g.cast("B").cast("f", [seq, HEADS, 1])
        packed["initial_state"] = initial
        functions = mixers._recurrence(
            "f32",
            "delta",
            HEADS,
            kv_heads,
            DIM,
            VALUE_DIM,
            "head",
            True,
            0.5,
            False,
            0,
            0,
            True,
        )
        do = numbers(8, (seq, HEADS, VALUE_DIM))
        dfinal = numbers(9, (1, HEADS, DIM, VALUE_DIM))
        gradients = functions(
            "recurrence_backward", (seq,), {**packed, "do": do, "dfinal_state": dfinal}
        )

        def loss(values):
            o, final = definitions.recurrence(
                values["q"][0],
                values["k"][0],
                values["v"][0],
                per_channel(values["g"][0]),
                values["beta"][0],
                0.5,
                values["initial_state"][0],
                delta=True,
            )
            return definitions.dot(flat(o), flat(do)) + definitions.dot(
                flat(final), flat(dfinal)
            )

        check_gradients(self, loss, arrays, gradients)


class Processes(unittest.TestCase):
    def test_a_forked_process_has_a_runtime_of_its_own(self):
        inputs = Inputs(1, 30)
        here = bytes(hybrid.softmax_attention(inputs.q, inputs.k, inputs.v))
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                there = hybrid.softmax_attention(inputs.q, inputs.k, inputs.v)
                os.write(writing, bytes(there))
            finally:
                os._exit(0)
        os.close(writing)
        with open(reading, "rb") as pipe:
            there = pipe.read()
        os.waitpid(child, 0)
        self.assertEqual(there, here)


class Refusals(unittest.TestCase):
    """Errors name what does not fit, with both values, and compile nothing."""

    def refused(self, expected, function, *arguments, **options):
        with self.assertRaises(hybrid.Error) as caught:
            function(*arguments, **options)
        self.assertEqual(str(caught.exception), expected)
        self.assertEqual(caught.exception.status, "invalid_argument")

    def setUp(self):
        self.x = Inputs(2, 3)
        self.qkv = self.x.q, self.x.k, self.x.v

    def test_shapes(self):
        attend = hybrid.softmax_attention
        q, k, v = self.qkv
        self.refused(
            "q has shape [6, 64], expected [batch, seq, head, dim]",
            attend,
            q.cast("B").cast("f", [6, 64]),
            k,
            v,
        )
        self.refused(
            "k has shape [1, 3, 2, 16], expected [2, 3, 2, 16] to go with q",
            attend,
            q,
            numbers(0, (1, 3, 2, 16)),
            v,
        )
        self.refused(
            "q has 4 heads and k 3; the query heads must be a multiple of the key "
            "heads",
            attend,
            q,
            numbers(0, (2, 3, 3, 16)),
            v,
        )
        self.refused(
            "g has shape [2, 3, 4], expected [2, 3, 4, 16] to go with q",
            hybrid.gla,
            q,
            k,
            v,
            self.x.g,
        )
        self.refused(
            "initial_state has shape [1, 4, 16, 9], expected [2, 4, 16, 8] to go with q",
            hybrid.linear_attention,
            q,
            k,
            v,
            initial_state=numbers(0, (1, 4, 16, 9)),
        )

    def test_kinds_of_arrays(self):
        q, k, v = self.qkv
        self.refused(
            "k is of type list; give a torch tensor, a numpy array, or an object with "
            "the buffer protocol",
            hybrid.softmax_attention,
            q,
            k.tolist(),
            v,
        )
        double = memoryview(bytearray(8 * 2 * 3 * 4 * 16)).cast("d", [2, 3, 4, 16])
        self.refused(
            "q has dtype float64, expected float32, bfloat16 or float16; convert it",
            hybrid.softmax_attention,
            double,
            k,
            v,
        )

    def test_sequences(self):
        q, k, v = self.qkv
        self.refused(
            "cu_seqlens is given and batch is 2; put all sequences into one row, "
            "batch 1",
            hybrid.softmax_attention,
            q,
            k,
            v,
            cu_seqlens=[0, 3],
        )
        one = Inputs(1, 3)
        for wrong in ([0, 2], [1, 3], [0, 3, 2, 3], []):
            with self.assertRaisesRegex(hybrid.Error, "it must ascend from 0 to the 3"):
                hybrid.softmax_attention(one.q, one.k, one.v, cu_seqlens=wrong)

    def test_options(self):
        q, k, v = self.qkv
        self.refused(
            "window has 2 entries, q has 4 heads",
            hybrid.softmax_attention,
            q,
            k,
            v,
            window=[1, 2],
        )
        self.refused(
            "window is wide, expected whole numbers of tokens, 0 for none",
            hybrid.softmax_attention,
            q,
            k,
            v,
            window="wide",
        )
        self.refused(
            "window is 8 and stride None; give both or neither",
            hybrid.linear_attention,
            q,
            k,
            v,
            window=8,
        )
        with self.assertRaisesRegex(hybrid.Error, "do not go with a window"):
            hybrid.linear_attention(
                q, k, v, output_final_state=True, window=8, stride=4
            )


if __name__ == "__main__":
    unittest.main()
