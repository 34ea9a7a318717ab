# Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models, with arrays of the standard library."""

import ctypes
import math
import pathlib
import tempfile
import unittest
import unittest.mock

import hybrid

from .support import flat

SPEC = """hybrid.model @tiny vocab(256) width(16) layers(2) tied trained(64) {
  hybrid.softmax heads(2) head_dim(8) position(nope)
}
"""


class WholeModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = hybrid.compile(SPEC, arrays="buffer")

    def setUp(self):
        self.model.initialise(3)
        self.model.optimiser()
        self.ids = list(b"in the beginning")
        self.labels = self.ids[1:] + [-100]

    def test_what_it_says_of_itself(self):
        self.assertEqual(self.model.name, "tiny")
        self.assertEqual(self.model.vocabulary, 256)
        self.assertEqual(self.model.trained_length, 64)
        self.assertEqual(self.model.device, "cpu")
        self.assertEqual(self.model.spec, SPEC)
        self.assertEqual(self.model.dtype, "f32")
        narrow = SPEC.replace("layers(2)", "layers(2) dtype(bf16)")
        self.assertEqual(hybrid.compile(narrow, arrays="buffer").dtype, "bf16")

    def test_who_computes_products(self):
        model = hybrid.compile(SPEC, arrays="buffer", products="auto")
        model.initialise(3)
        losses = flat(model.loss(self.ids, self.labels))
        self.assertEqual(losses, flat(self.model.loss(self.ids, self.labels)))
        with self.assertRaisesRegex(hybrid.Error, "model runs on the processor"):
            hybrid.compile(SPEC, arrays="buffer", products="cublaslt")
        with self.assertRaisesRegex(hybrid.Error, "give compiled, cublaslt or auto"):
            hybrid.compile(SPEC, arrays="buffer", products="mkl")

    def test_a_runtime_that_is_older_than_the_package(self):
        # It does not know the last member of what it fills.
        size_of = ctypes.sizeof
        info = hybrid._library.ModelInfo
        member = ctypes.sizeof(ctypes.c_char_p)
        with unittest.mock.patch.object(
            ctypes, "sizeof", lambda x: size_of(x) - member * isinstance(x, info)
        ):
            with self.assertRaisesRegex(hybrid.Error, "older than this package"):
                hybrid.compile(SPEC, arrays="buffer")

    def test_parameters_share_the_memory(self):
        for array in self.model.parameters().values():
            values = array.cast("B").cast("f")
            for i in range(len(values)):
                values[i] = 0.0
        # All logits are 0, so every class is as likely.
        losses = flat(self.model.loss(self.ids, self.labels))
        for loss in losses[:-1]:
            self.assertAlmostEqual(loss, math.log(256), places=5)
        self.assertEqual(losses[-1], 0.0)

    def test_sequences_do_not_see_each_other(self):
        alone = flat(self.model.loss(self.ids, self.labels))
        twice = flat(
            self.model.loss(
                self.ids * 2, self.labels * 2, cu_seqlens=[0, len(self.ids), 2 * 16]
            )
        )
        self.assertEqual(twice, alone * 2)
        weighted = flat(self.model.loss(self.ids, self.labels, weights=[2.0] * 16))
        self.assertEqual(weighted, [2 * loss for loss in alone])

    def test_lists_in_a_list_are_rows(self):
        alone = flat(self.model.loss(self.ids, self.labels))
        rows = self.model.loss([self.ids, self.ids], (self.labels, self.labels))
        self.assertEqual(tuple(rows.shape), (2, 16))
        self.assertEqual(flat(rows), alone * 2)
        weights = [[2.0] * 16, [0.0] * 16]
        weighted = self.model.loss([self.ids] * 2, [self.labels] * 2, weights)
        self.assertEqual(flat(weighted), [2 * loss for loss in alone] + [0.0] * 16)
        loss, weight = self.model.backward([self.ids] * 2, [self.labels] * 2)
        self.assertEqual(weight, 30)

    def test_gradients_are_differences_of_the_loss(self):
        self.model.backward(self.ids, self.labels)
        path = "layers.1.mixer.v_proj.weight"
        gradients = flat(self.model.gradients()[path])
        values = self.model.parameters()[path].cast("B").cast("f")
        largest = max(range(len(gradients)), key=lambda i: abs(gradients[i]))
        kept, step, sums = values[largest], 0.02, []
        for sign in (1, -1):
            values[largest] = kept + sign * step
            sums.append(sum(flat(self.model.loss(self.ids, self.labels))))
        values[largest] = kept
        expected = (sums[0] - sums[1]) / (2 * step)
        self.assertLess(
            abs(gradients[largest] - expected), 0.02 * abs(gradients[largest])
        )

    def test_steps_lower_the_loss(self):
        losses = []
        for _ in range(20):
            loss, weight = self.model.backward(self.ids, self.labels)
            self.assertEqual(weight, 15)
            losses.append(loss / weight)
            update = self.model.step(0.01)
        self.assertEqual((update.step, update.skipped), (20, False))
        self.assertLess(losses[-1], 0.8 * losses[0])

    def test_a_checkpoint_goes_on_where_it_was(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "checkpoint.safetensors"
            weights = pathlib.Path(folder) / "weights.safetensors"
            self.model.backward(self.ids, self.labels)
            self.model.step(0.01)
            self.model.save_checkpoint(path)
            self.model.save_weights(weights)
            after = []
            for _ in range(2):
                self.model.load_checkpoint(path)
                self.model.backward(self.ids, self.labels)
                self.assertEqual(self.model.step(0.01).step, 2)
                after.append(flat(self.model.loss(self.ids, self.labels)))
            self.assertEqual(*after)
            self.model.load_weights(weights)
            self.assertNotEqual(flat(self.model.loss(self.ids, self.labels)), after[0])
            trained = flat(self.model.loss(self.ids, self.labels))
            self.model.initialise(4)
            self.model.load_weights(folder)  # of a run: its checkpoint
            self.assertEqual(flat(self.model.loss(self.ids, self.labels)), trained)
            with self.assertRaisesRegex(hybrid.Error, "absent") as caught:
                self.model.load_weights(pathlib.Path(folder) / "absent")
            self.assertEqual(caught.exception.status, "io")

    def test_text_is_drawn_from_the_logits(self):
        text = self.model.generate("in the", max_tokens=5)
        self.assertEqual(len(text), 5)
        self.assertEqual(text, self.model.generate(b"in the", max_tokens=5))
        state, ids = self.model.state(context=32), list(b"in the")
        drawn = []
        for _ in range(5):
            logits = flat(state.extend(ids))
            ids = [max(range(256), key=lambda i: logits[i])]
            drawn += ids
        self.assertEqual(bytes(drawn), text)
        self.assertEqual(state.length(), 10)
        self.assertEqual(self.model.generate(list(b"in the"), 3), drawn[:3])

    def test_text_may_be_cut_short(self):
        seen = []
        text = self.model.generate(
            "in the", on_token=lambda token: seen.append(token) or len(seen) == 2
        )
        self.assertEqual(list(text), seen)
        self.assertEqual(len(seen), 2)

        def fail(token):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            self.model.generate("in the", on_token=fail)

    def test_slots(self):
        state = self.model.state(slots=2, context=32, rollback_depth=4)
        rows = state.extend(self.ids * 2, (0, 1), [0, 16, 32], all_rows=True)
        self.assertEqual(tuple(rows.shape), (32, 256))
        state.rollback(1, 3)
        self.assertEqual((state.length(0), state.length(1)), (16, 13))
        again = state.extend(self.ids[13:], 1)
        self.assertLess(
            max(abs(a - b) for a, b in zip(flat(again), flat(rows.tolist()[-1]))), 1e-5
        )
        state.reset(0)
        state.fork(1, 0)
        self.assertEqual(state.length(0), 16)
        self.assertEqual(tuple(state.tensors()[0].shape)[0], 2)
        with self.assertRaisesRegex(hybrid.Error, "2 sequences and slots 1"):
            state.extend(self.ids * 2, (0,), [0, 16, 32])

    def test_refusals(self):
        refused = [
            (lambda m: m.loss([300], [1]), "id 300, the vocabulary has 256"),
            (lambda m: m.loss([1, 2], [1]), r"labels has shape \[1\] and ids \[2\]"),
            (lambda m: m.loss([[1, 2]], [1, 2]), r"labels has shape \[2\] and ids \[1, 2"),
            (lambda m: m.loss([[1, 2], [3]], [[1, 2], [3]]), "ids is a list of rows of"),
            (lambda m: m.loss([[1, 2], 3], [1, 2, 3]), "ids is a list of rows of"),
            (lambda m: m.loss([1, 2.5], [1, 2]), "ids has a value of type float"),
            (lambda m: m.loss([[[1]]], [[[1]]]), "ids has a value of type list"),
            (lambda m: m.loss(["a"], [1]), "ids has a value of type str"),
            (lambda m: m.loss("abc", [1, 2, 3]), "ids is of type str"),
            (lambda m: m.loss(7, [1]), "ids is of type int"),
            (lambda m: m.loss([1], [1], weights=["x"]), "weights has a value of type"),
            (lambda m: m.loss([1], [1], weights=[1, 2]), "weights has 2 entries and ids"),
            (lambda m: m.loss([1, 2], [1, 2], cu_seqlens=[0, 1]), "must ascend from 0"),
            (lambda m: hybrid.compile("absent.mlir"), "cannot read the spec"),
            (lambda m: hybrid.compile(SPEC.replace("heads(2)", "heads(x)")), "heads"),
            (lambda m: hybrid.compile(SPEC, arrays="list"), "arrays is 'list'"),
            (lambda m: hybrid.compile(None), "spec is of type NoneType; give the path"),
            (lambda m: hybrid.compile(SPEC, target="gpu"), "'gpu' is no target"),
            (lambda m: hybrid.compile(SPEC, device="gpu"), "device 'gpu' is unknown"),
            (lambda m: m.generate(123), "prompt is of type int; give ids as a list"),
            (lambda m: m.initialise(-1), "seed is -1; give one from 0"),
            (lambda m: m.generate("a", seed=2**64), "seed is 18446744073709551616"),
            (lambda m: m.step("fast"), "learning_rate has a value of type str"),
        ]
        for function, expected in refused:
            with self.assertRaisesRegex(hybrid.Error, expected):
                function(self.model)


if __name__ == "__main__":
    unittest.main()
