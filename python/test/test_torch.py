# Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch: gradients through autograd, and memory that is shared. Skipped where
torch is not installed."""

import concurrent.futures
import os
import pathlib
import re
import unittest
import warnings

os.environ["HYBRID_POISON"] = "1"

import hybrid

from .test_model import SPEC

try:
    import torch
except ImportError:
    torch = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH, SEQ, HEADS, KV_HEADS, DIM, VALUE_DIM = 2, 21, 4, 2, 16, 8


def attention(q, k, v, scale, window=None):
    """Softmax attention by its definition, of any dtype."""
    group = q.shape[2] // k.shape[2]
    k, v = (x.repeat_interleave(group, 2) for x in (k, v))
    scores = scale * torch.einsum("bthd,bshd->bhts", q, k)
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if window:
        seen = seen.triu(1 - window)
    weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
    return torch.einsum("bhts,bshd->bthd", weights, v)


def recurrence(q, k, v, g, beta, scale, state):
    """`g` [batch, seq, head, 1 or dim]; `beta` None for the additive update."""
    group = q.shape[2] // k.shape[2]
    k, v = (x.repeat_interleave(group, 2) for x in (k, v))
    outputs = []
    for t in range(q.shape[1]):
        state = state * g[:, t].exp()[..., None]
        value = v[:, t]
        if beta is not None:
            read = torch.einsum("bhkv,bhk->bhv", state, k[:, t])
            value = beta[:, t][..., None] * (value - read)
        state = state + torch.einsum("bhk,bhv->bhkv", k[:, t], value)
        outputs.append(scale * torch.einsum("bhkv,bhk->bhv", state, q[:, t]))
    return torch.stack(outputs, 1), state


@unittest.skipIf(torch is None, "torch is not installed")
class Autograd(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)
        self.q = self.leaf(BATCH, SEQ, HEADS, DIM)
        self.k = self.leaf(BATCH, SEQ, KV_HEADS, DIM, factor=0.3)
        self.v = self.leaf(BATCH, SEQ, KV_HEADS, VALUE_DIM)
        self.state = self.leaf(BATCH, HEADS, DIM, VALUE_DIM)
        self.beta = torch.rand(BATCH, SEQ, HEADS).requires_grad_()
        self.g = (-torch.rand(BATCH, SEQ, HEADS)).requires_grad_()
        self.channel_g = (-torch.rand(BATCH, SEQ, HEADS, DIM)).requires_grad_()

    def leaf(self, *shape, factor=1.0):
        return (factor * torch.randn(*shape)).requires_grad_()

    def check(self, ours, definition, inputs, bound=2e-5):
        """Values and gradients of `ours` beside those of `definition` in fp64."""
        doubles = [x.detach().double().requires_grad_() for x in inputs]
        results, expected = ours(*inputs), definition(*doubles)
        weights = [torch.randn_like(x) for x in results]
        total = sum((x * w).sum() for x, w in zip(results, weights))
        right = sum((x * w.double()).sum() for x, w in zip(expected, weights))
        found = list(results) + list(torch.autograd.grad(total, inputs))
        wanted = list(expected) + list(torch.autograd.grad(right, doubles))
        for index, (a, b) in enumerate(zip(found, wanted)):
            self.assertEqual(a.shape, b.shape)
            worst = (a.double() - b).abs().max() / b.abs().max()
            self.assertLess(worst.item(), bound, f"value {index}")

    def test_softmax_attention(self):
        self.check(
            lambda q, k, v: [hybrid.softmax_attention(q, k, v, window=9)],
            lambda q, k, v: [attention(q, k, v, DIM**-0.5, 9)],
            [self.q, self.k, self.v],
        )

    def test_gla(self):
        self.check(
            lambda q, k, v, g, s: hybrid.gla(q, k, v, g, 0.5, s, True),
            lambda q, k, v, g, s: recurrence(q, k, v, g, None, 0.5, s),
            [self.q, self.k, self.v, self.channel_g, self.state],
        )

    def test_gated_delta_rule_with_normalised_keys(self):
        def definition(q, k, v, g, beta, s):
            q, k = (x * (x.square().sum(-1, True) + 1e-6).rsqrt() for x in (q, k))
            return recurrence(q, k, v, g[..., None], beta, 1.0, s)

        self.check(
            lambda q, k, v, g, beta, s: hybrid.gated_delta_rule(
                q, k, v, g, beta, 1.0, s, True, use_qk_l2norm_in_kernel=True
            ),
            definition,
            [self.q, self.k, self.v, self.g, self.beta, self.state],
        )

    def test_narrow_types(self):
        for dtype, bound in ((torch.bfloat16, 2e-2), (torch.float16, 5e-3)):
            with self.subTest(dtype=dtype):
                q, k, v = (
                    x.detach().to(dtype).requires_grad_()
                    for x in (self.q, self.k, self.v)
                )
                self.check(
                    lambda q, k, v: [hybrid.softmax_attention(q, k, v, window=9)],
                    lambda q, k, v: [attention(q, k, v, DIM**-0.5, 9)],
                    [q, k, v],
                    bound,
                )
                # Gates and states stay float32.
                self.check(
                    lambda q, k, v, g, s: hybrid.gla(q, k, v, g, 0.5, s, True),
                    lambda q, k, v, g, s: recurrence(q, k, v, g, None, 0.5, s),
                    [q, k, v, self.channel_g, self.state],
                    bound,
                )
                o, state = hybrid.gla(
                    q, k, v, self.channel_g, 0.5, self.state, True
                )
                self.assertEqual((o.dtype, state.dtype), (dtype, torch.float32))

    def test_ragged_sequences(self):
        ends = torch.tensor([0, 5, 5, 6, 2 * SEQ])
        q, k, v = (x.flatten(0, 1)[None] for x in (self.q, self.k, self.v))
        inputs = [x.detach().requires_grad_() for x in (q, k, v)]

        def definition(q, k, v):
            parts = [
                attention(q[:, a:b], k[:, a:b], v[:, a:b], DIM**-0.5)
                for a, b in zip(ends, ends[1:])
            ]
            return [torch.cat(parts, 1)]

        self.check(
            lambda q, k, v: [hybrid.softmax_attention(q, k, v, cu_seqlens=ends)],
            definition,
            inputs,
        )

    def test_gradcheck(self):
        # Inputs of float32 want a wide step and a wide tolerance.
        inputs = [x.detach()[:1, :4].requires_grad_() for x in (self.q, self.k, self.v)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertTrue(
                torch.autograd.gradcheck(
                    hybrid.softmax_attention,
                    inputs,
                    eps=1e-2,
                    atol=5e-3,
                    rtol=1e-2,
                    check_undefined_grad=False,
                )
            )

    def test_only_what_requires_gradients_gets_them(self):
        k, v = self.k.detach(), self.v.detach()
        o, _ = hybrid.gla(self.q, k, v, self.channel_g.detach())
        o.sum().backward()
        self.assertIsNotNone(self.q.grad)
        self.assertIsNone(k.grad)
        with torch.no_grad():
            o = hybrid.softmax_attention(self.q, k, v)
        self.assertFalse(o.requires_grad)

    def test_any_layout_is_taken(self):
        q = torch.randn(BATCH, HEADS, SEQ, DIM).transpose(1, 2)
        k, v = self.k.detach(), self.v.detach()
        base = torch.randn(1 + k.numel())
        unaligned = base[1:].view_as(k)
        for other in (k, unaligned):
            o = hybrid.softmax_attention(q, other, v)
            right = attention(q.double(), other.double(), v.double(), DIM**-0.5)
            self.assertLess((o.double() - right).abs().max().item(), 2e-5)

    def test_no_gradient_of_a_gradient(self):
        o = hybrid.softmax_attention(self.q, self.k, self.v)
        (dq,) = torch.autograd.grad((o * o).sum(), self.q, create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "once_differentiable"):
            dq.sum().backward()

    def test_refusals(self):
        with self.assertRaisesRegex(hybrid.Error, "q has dtype float64, expected"):
            hybrid.softmax_attention(self.q.double(), self.k, self.v)
        with self.assertRaisesRegex(hybrid.Error, "k is a buffer array and q a torch"):
            hybrid.softmax_attention(self.q, b"1", self.v)

    def test_no_tokens(self):
        o = hybrid.softmax_attention(self.q[:, :0], self.k[:, :0], self.v[:, :0])
        self.assertEqual(tuple(o.shape), (BATCH, 0, HEADS, VALUE_DIM))
        o, final = hybrid.gla(
            self.q[:, :0],
            self.k[:, :0],
            self.v[:, :0],
            self.channel_g[:, :0],
            initial_state=self.state,
            output_final_state=True,
        )
        self.assertTrue(torch.equal(final, self.state))


@unittest.skipIf(torch is None, "torch is not installed")
class Manual(unittest.TestCase):
    def test_its_examples_run(self):
        text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
        mixer, model, gate = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        names = {}
        exec(mixer, names)
        self.assertTrue(names["mixer"].qkv.weight.grad.isfinite().all())
        x, y = torch.randn(2, 5, 64).unbind()
        names = {"hybrid": hybrid, "x": x, "y": y}
        exec(gate, names)
        expected = torch.nn.functional.silu(x) * y
        self.assertLess((names["z"] - expected).abs().max().item(), 1e-5)
        ids = torch.randint(0, 256, (2, 16))
        model = model.replace('"examples/specs/demo.mlir"', repr(SPEC))
        names = {"hybrid": hybrid, "ids": ids, "labels": ids}
        exec(model, names)
        self.assertEqual(tuple(names["logits"].shape), (2, 256))


@unittest.skipIf(torch is None, "torch is not installed")
class Threads(unittest.TestCase):
    def test_many_at_once(self):
        """Calls from several threads, some of them adjoints, one after another."""
        inputs = [torch.randn(1, n, 2, 16, requires_grad=True) for n in range(1, 9)]
        alone = []
        for x in inputs:
            alone += torch.autograd.grad(hybrid.softmax_attention(x, x, x).sum(), x)

        def gradient(x):
            x = x.detach().requires_grad_()
            return torch.autograd.grad(hybrid.softmax_attention(x, x, x).sum(), x)[0]

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            together = list(pool.map(gradient, inputs * 4))
        for found, expected in zip(together, alone * 4):
            self.assertTrue(torch.equal(found, expected))


@unittest.skipIf(torch is None, "torch is not installed")
class SharedMemory(unittest.TestCase):
    def test_parameters_and_gradients_are_the_models_own(self):
        model = hybrid.compile(SPEC, arrays="torch")
        model.initialise(1)
        ids = torch.randint(0, 256, (2, 12))
        labels = torch.cat([ids[:, 1:], torch.full((2, 1), -100)], 1)
        before = model.loss(ids, labels)
        self.assertEqual(tuple(before.shape), (2, 12))
        parameters = model.parameters()
        for parameter in parameters.values():
            parameter.mul_(0.5)
        after = model.loss(ids, labels)
        self.assertFalse(torch.equal(before, after))
        model.backward(ids, labels)
        norm = sum(g.double().square().sum() for g in model.gradients().values())
        norm = (norm.sqrt() / 22).item()
        self.assertAlmostEqual(model.step(0.1).gradient_norm, norm, delta=1e-5 * norm)
        del model
        # The tensors keep the memory.
        self.assertTrue(all(p.isfinite().all() for p in parameters.values()))


if __name__ == "__main__":
    unittest.main()
