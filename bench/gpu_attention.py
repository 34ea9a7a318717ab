"""Checks and times the softmax family's own kernels for warpgroups on a card.

    gpu-kernels FOLDER sm_90a attention > FOLDER/manifest.json
    python3 gpu_attention.py FOLDER

Forward and backward, of heads of both sizes, of grouped heads and of heads with
a window and pinned positions. Each is checked against PyTorch in f64 on
sequences of unlike lengths and beside a sequence of NaN, and must not differ
from run to run. Then the median of 20 launches after 5 to warm up, beside
cuDNN's attention and its adjoint; ratios are the time of cuDNN over ours. A
backward is three launches.
"""

import json
import sys

import torch

from gpu_kernels import Kernel, error, median_ms


class Attention:
    """The four kernels of one attention: 16 heads, `kv_heads`, a window."""

    HEADS = 16

    def __init__(self, kernels, tag):
        self.kernels, self.tag = kernels, tag
        self.dim = int(tag.split("_")[0])
        self.kv_heads = 4 if "grouped" in tag else self.HEADS
        self.window, self.sinks = (512, 4) if "window" in tag else (0, 0)

    def inputs(self, lengths):
        tokens, heads, dim = sum(lengths), self.HEADS, self.dim
        make = lambda count: torch.randn(tokens, count, dim,
                                         device="cuda").bfloat16()
        self.q, self.do = make(heads), make(heads)
        self.k, self.v = make(self.kv_heads), make(self.kv_heads)
        self.begins = [sum(lengths[:n]) for n in range(len(lengths))]
        self.table = torch.tensor([[b, b + t, n, 0] for n, (b, t) in
                                   enumerate(zip(self.begins, lengths))],
                                  dtype=torch.int32).cuda()
        self.owner = torch.zeros(tokens, dtype=torch.int32).cuda()
        nothing = lambda x: torch.full_like(x, float("nan"))
        self.o, self.dq = nothing(self.q), nothing(self.q)
        self.dk, self.dv = nothing(self.k), nothing(self.v)
        self.lse = torch.full((tokens, heads), float("nan"), device="cuda")
        self.shift, self.delta = (torch.full((heads, tokens), float("nan"),
                                             device="cuda") for _ in range(2))
        tiles = -(-max(lengths) // 128)
        segments = [self.table, self.owner]
        terms = [self.shift, self.delta]
        grid = [len(lengths), heads, tiles]
        bind = lambda name, views, grid: self.kernels[name].bind(
            views, grid, [True] * len(grid))
        self.forward = bind("forward", [self.q, self.k, self.v, *segments,
                                        self.o, self.lse], grid)
        parts = [
            bind("terms", [self.o, self.lse, self.do, *terms],
                 [-(-tokens // 64), heads]),
            bind("keys", [self.q, self.k, self.v, self.do, *terms, *segments,
                          self.dk, self.dv], [len(lengths), self.kv_heads,
                                              tiles]),
            bind("queries", [self.q, self.k, self.v, self.do, *terms,
                             *segments, self.dq], grid)]
        self.parts = parts
        self.backward = lambda: [part() for part in parts]

    def reference(self, at):
        """Outputs and gradients of one sequence in f64."""
        group = self.HEADS // self.kv_heads
        q, k, v = (x[at].double().requires_grad_()
                   for x in (self.q, self.k, self.v))
        wide = lambda x: x.repeat_interleave(group, 1)
        scores = torch.einsum("qhd,khd->hqk", q, wide(k)) * self.dim**-0.5
        place = torch.arange(q.shape[0], device="cuda")
        ahead = place[:, None] - place[None, :]
        sees = ahead >= 0
        if self.window:
            sees &= (ahead < self.window) | (place[None, :] < self.sinks)
        scores = scores.masked_fill(~sees, float("-inf"))
        o = torch.einsum("hqk,khd->qhd", scores.softmax(-1), wide(v))
        o.backward(self.do[at].double())
        return [o.detach(), scores.logsumexp(-1).T.detach(), q.grad, k.grad,
                v.grad]

    def check(self, lengths, poisoned=None):
        self.inputs(lengths)
        if poisoned is not None:
            at = slice(self.begins[poisoned],
                       self.begins[poisoned] + lengths[poisoned])
            for x in (self.q, self.k, self.v, self.do):
                x[at] = float("nan")
        self.forward()
        self.backward()
        results = [self.o, self.lse, self.dq, self.dk, self.dv]
        worst = 0.0
        for n, (begin, length) in enumerate(zip(self.begins, lengths)):
            if length == 0 or n == poisoned:
                continue
            at = slice(begin, begin + length)
            wrong = [error(got[at], wanted) for got, wanted in
                     zip(results, self.reference(at))]
            # Of a single row the probability is 1 and its gradient nothing.
            wrong = wrong if length > 1 else wrong[:2] + wrong[4:]
            if not max(wrong) < 1.2e-2:
                raise RuntimeError(f"{self.tag}, lengths {lengths}, length "
                                   f"{length}: errors {wrong}")
            worst = max(worst, *wrong)
        same = [x.clone() for x in results]
        self.forward()
        self.backward()
        if poisoned is None and not all(map(torch.equal, results, same)):
            raise RuntimeError(f"{self.tag} differs from run to run")
        return worst

    def peer(self, batch, length):
        """Forward and backward of cuDNN's attention in ms."""
        split = lambda x: x.view(batch, length, *x.shape[1:]).transpose(1, 2)
        q, k, v = (split(x).detach().requires_grad_()
                   for x in (self.q, self.k, self.v))
        run = lambda: torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True)
        with torch.nn.attention.sdpa_kernel(
                torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
            with torch.no_grad():
                forward = median_ms(run)
            o, do = run(), split(self.do)
            return forward, median_ms(lambda: torch.autograd.grad(
                o, (q, k, v), do, retain_graph=True))

    def time(self, batch, length):
        self.inputs([length] * batch)
        self.forward()
        ours = [median_ms(run) for run in (self.forward, *self.parts)]
        # Pairs that are visible, of all heads.
        seen = length * (length + 1) / 2
        if self.window and length > self.window:
            rest = length - self.window
            seen -= rest * (rest + 1) / 2
        flops = 4 * batch * self.HEADS * seen * self.dim
        backward = sum(ours[1:])
        rate = lambda work, ms: f"{work / ms / 1e9:.0f} TF/s"
        text = (f"attention_{self.tag:12} {batch} x {length:5}: forward "
                f"{ours[0]:.3f} ms {rate(flops, ours[0])}, backward "
                f"{backward:.3f} ms {rate(2.5 * flops, backward)} "
                f"(terms {ours[1]:.3f}, keys {ours[2]:.3f}, queries "
                f"{ours[3]:.3f})")
        if not self.window and self.kv_heads == self.HEADS:
            peer = self.peer(batch, length)
            text += (f"; cuDNN {peer[0]:.3f} + {peer[1]:.3f}, ratios "
                     f"{peer[0] / ours[0]:.2f} {peer[1] / backward:.2f} both "
                     f"{sum(peer) / (ours[0] + backward):.2f}")
        print(text, flush=True)


def attention_family(kernels, tag):
    one = Attention(kernels, tag)
    worst = max(one.check(lengths) for lengths in
                ([1], [64], [129], [1000], [1, 130, 0, 128, 500]))
    worst = max(worst, one.check([70, 150, 60], poisoned=1))
    resources = ", ".join(
        f"{name} {kernel.row['registers']} registers {kernel.row['spills']} "
        "bytes spilled" for name, kernel in kernels.items())
    print(f"attention_{tag}: error {worst:.1e}; {resources}", flush=True)
    for batch, length in ((4, 4096), (1, 16384), (1, 32768)):
        one.time(batch, length)


def main():
    folder = sys.argv[1]
    torch.manual_seed(1)
    torch.zeros(1, device="cuda")
    families = {}
    for line in open(f"{folder}/manifest.json"):
        row = json.loads(line)
        _, part, tag = row["name"].split("_", 2)
        families.setdefault(tag, {})[part] = Kernel(folder, row)
    for tag, kernels in families.items():
        attention_family(kernels, tag)


main()
