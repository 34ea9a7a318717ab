#!/usr/bin/env python3
"""The demo model in eager PyTorch: the peer of bench/beside_pytorch.py.

The model is a stack of pre-norm blocks (mixer, SwiGLU MLP) over bytes. The
mixers are NoPE attention (scaled_dot_product_attention), GLA and Gated
DeltaNet with their published parameterisation; the recurrences run in their
chunked matrix form with chunks of 64, which is what a careful PyTorch user
writes, not a loop over tokens.

Shapes are [batch, seq, head, dim]; everything is fp32.
"""

import argparse
import json
import math
import resource
import time

import torch
import torch.nn.functional as F
from torch import nn

CHUNK = 64


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


def heads_first(x, heads):
    """[B, T, H*D] -> [B, H, T, D]"""
    b, t, _ = x.shape
    return x.view(b, t, heads, -1).transpose(1, 2)


class NoPEAttention(nn.Module):
    def __init__(self, width, heads, dim):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(width, heads * dim, bias=False) for _ in range(3))
        self.o = nn.Linear(heads * dim, width, bias=False)

    def forward(self, x):
        q, k, v = (heads_first(p(x), self.heads) for p in (self.q, self.k, self.v))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(o.transpose(1, 2).flatten(2))


class ShortConv(nn.Module):
    def __init__(self, channels, width=4):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, width, groups=channels, bias=False)
        self.width = width

    def forward(self, x):
        return F.silu(self.conv(F.pad(x.transpose(1, 2), (self.width - 1, 0))).transpose(1, 2))


def chunked(x):
    """[B, H, T, D] -> [B, H, T/C, C, D]"""
    b, h, t, d = x.shape
    return x.view(b, h, t // CHUNK, CHUNK, d)


def gla_chunked(q, k, v, g):
    """S <- diag(e^g) S + k v^T; o = S^T q. All [B, H, T, *], g per key channel."""
    q, k, v, g = (chunked(x) for x in (q, k, v, g))
    total = g.cumsum(-2)
    q_in, k_out = q * total.exp(), k * (-total).exp()
    last = total[..., -1:, :]
    k_end = k * (last - total).exp()
    causal = torch.ones(CHUNK, CHUNK, dtype=torch.bool).tril()
    intra = (q_in @ k_out.transpose(-1, -2)).masked_fill(~causal, 0.0) @ v
    writes = k_end.transpose(-1, -2) @ v
    state = torch.zeros_like(writes[:, :, 0])
    outs = []
    for i in range(q.shape[2]):
        outs.append(q_in[:, :, i] @ state)
        state = state * last[:, :, i].exp().transpose(-1, -2) + writes[:, :, i]
    return (intra + torch.stack(outs, 2)).flatten(2, 3)


def gdn_chunked(q, k, v, g, beta):
    """Gated delta rule in its WY form; g, beta [B, H, T]."""
    q, k, v = (chunked(x) for x in (q, k, v))
    b, h, t = g.shape
    g, beta = (x.view(b, h, t // CHUNK, CHUNK) for x in (g, beta))
    total = g.cumsum(-1)
    causal = torch.ones(CHUNK, CHUNK, dtype=torch.bool).tril()
    decay = (total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill(~causal, -math.inf).exp()
    k_beta = k * beta.unsqueeze(-1)
    a = ((k_beta @ k.transpose(-1, -2)) * decay).tril(-1)
    eye = torch.eye(CHUNK)
    inverse = torch.linalg.solve_triangular(eye + a, eye.expand_as(a), upper=False, unitriangular=True)
    u = inverse @ (v * beta.unsqueeze(-1))
    w = inverse @ (k_beta * total.exp().unsqueeze(-1))
    scores = (q @ k.transpose(-1, -2)) * decay
    last = total[..., -1:]
    k_end = k * (last - total).exp().unsqueeze(-1)
    q_in = q * total.exp().unsqueeze(-1)
    state = torch.zeros(b, h, k.shape[-1], v.shape[-1])
    outs = []
    for i in range(q.shape[2]):
        new = u[:, :, i] - w[:, :, i] @ state
        outs.append(q_in[:, :, i] @ state + scores[:, :, i] @ new)
        state = state * last[:, :, i].exp().unsqueeze(-1) + k_end[:, :, i].transpose(-1, -2) @ new
    return torch.stack(outs, 2).flatten(2, 3)


class GLA(nn.Module):
    def __init__(self, width, heads, key, value):
        super().__init__()
        self.heads, self.key = heads, key
        self.q, self.k = (nn.Linear(width, heads * key, bias=False) for _ in range(2))
        self.v, self.g = (nn.Linear(width, heads * value, bias=False) for _ in range(2))
        self.gk = nn.Sequential(nn.Linear(width, 16, bias=False), nn.Linear(16, heads * key))
        self.norm = RMSNorm(value)
        self.o = nn.Linear(heads * value, width, bias=False)

    def forward(self, x):
        q, k, v, g = (heads_first(p(x), self.heads) for p in (self.q, self.k, self.v, self.gk))
        o = gla_chunked(q * self.key ** -0.5, k, v, F.logsigmoid(g) / 16)
        gate = heads_first(self.g(x), self.heads)
        return self.o((self.norm(o) * F.silu(gate)).transpose(1, 2).flatten(2))


class GDN(nn.Module):
    def __init__(self, width, heads, key, value):
        super().__init__()
        self.heads, self.key = heads, key
        self.q, self.k = (nn.Linear(width, heads * key, bias=False) for _ in range(2))
        self.v, self.g = (nn.Linear(width, heads * value, bias=False) for _ in range(2))
        self.a, self.b = (nn.Linear(width, heads, bias=False) for _ in range(2))
        self.a_log = nn.Parameter(torch.empty(heads).uniform_(1, 16).log())
        self.dt_bias = nn.Parameter(torch.zeros(heads))
        self.cq, self.ck = ShortConv(heads * key), ShortConv(heads * key)
        self.cv = ShortConv(heads * value)
        self.norm = RMSNorm(value)
        self.o = nn.Linear(heads * value, width, bias=False)

    def forward(self, x):
        q, k, v = self.cq(self.q(x)), self.ck(self.k(x)), self.cv(self.v(x))
        q, k, v = (heads_first(y, self.heads) for y in (q, k, v))
        q, k = (y * torch.rsqrt(y.square().sum(-1, keepdim=True) + 1e-6) for y in (q, k))
        g = -self.a_log.exp() * F.softplus(self.a(x) + self.dt_bias)
        o = gdn_chunked(q * self.key ** -0.5, k, v, g.transpose(1, 2), self.b(x).sigmoid().transpose(1, 2))
        gate = heads_first(self.g(x), self.heads)
        return self.o((self.norm(o) * F.silu(gate)).transpose(1, 2).flatten(2))


class SwiGLU(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, width, mixer, inner):
        super().__init__()
        self.n1, self.n2, self.mixer, self.mlp = RMSNorm(width), RMSNorm(width), mixer, SwiGLU(width, inner)

    def forward(self, x):
        x = x + self.mixer(self.n1(x))
        return x + self.mlp(self.n2(x))


class Model(nn.Module):
    """`mixer` is "gdn" or "gla"; every fourth layer is NoPE attention."""

    def __init__(self, mixer, vocab, width, layers, heads, key, value, inner, attention_heads, attention_dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        biased = {"gdn": GDN, "gla": GLA}[mixer]
        self.blocks = nn.ModuleList(
            Block(width, NoPEAttention(width, attention_heads, attention_dim) if i % 4 == 3
                  else biased(width, heads, key, value), inner)
            for i in range(layers))
        self.norm = RMSNorm(width)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.embed.weight)


def training_rate(model, batch, length, steps):
    """Tokens per second of `steps` full training steps, one rate per step."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(1)
    rates = []
    for _ in range(steps):
        ids = torch.randint(0, 256, (batch, length + 1), generator=generator)
        start = time.perf_counter()
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=False)
        rates.append(batch * length / (time.perf_counter() - start))
    return rates


def product_rate(size=1024, repeats=5):
    """GFLOP/s of a plain fp32 product on the same cores."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    a @ b
    start = time.perf_counter()
    for _ in range(repeats):
        a @ b
    return repeats * 2 * size ** 3 / (time.perf_counter() - start) / 1e9


def copy_rate(size, repeats=5):
    """GB/s of a copy that moves `size` bytes, read and written ones together."""
    a, b = torch.randn(size // 8), torch.empty(size // 8)
    b.copy_(a)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        b.copy_(a)
        times.append(time.perf_counter() - start)
    return size / min(times) / 1e9


def add_model_arguments(parser):
    """The shapes of examples/specs/demo.mlir and its twin, and the threads."""
    parser.add_argument("--mixer", choices=("gdn", "gla"), default="gdn")
    for name, value in (("vocab", 256), ("width", 128), ("layers", 4), ("heads", 4), ("key", 32), ("value", 32),
                        ("inner", 384), ("attention-heads", 4), ("attention-dim", 32), ("threads", 2)):
        parser.add_argument("--" + name, type=int, default=value)


def make_model(args):
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    return Model(args.mixer, args.vocab, args.width, args.layers, args.heads, args.key, args.value, args.inner,
                 args.attention_heads, args.attention_dim)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_model_arguments(parser)
    for name, value in (("batch", 16), ("length", 256), ("steps", 3)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--prefill", type=int, default=0, help="time one forward of this many tokens instead")
    parser.add_argument("--rates", type=int, nargs="+", help="only a product and copies of these sizes, in bytes")
    args = parser.parse_args()
    if args.rates:
        torch.set_num_threads(args.threads)
        print(json.dumps({"peer": "torch " + torch.__version__, "product_gflops": product_rate(),
                          "copy_gigabytes": [(size, copy_rate(size)) for size in args.rates]}))
        return
    model = make_model(args)
    result = {"peer": "torch " + torch.__version__, "parameters": sum(p.numel() for p in model.parameters()),
              "product_gflops": round(product_rate(), 1)}
    if args.prefill:
        with torch.inference_mode():
            ids = torch.randint(0, args.vocab, (1, args.prefill))
            rates = []
            for _ in range(args.steps):
                start = time.perf_counter()
                model(ids)
                rates.append(args.prefill / (time.perf_counter() - start))
    else:
        rates = training_rate(model, args.batch, args.length, args.steps)
    result["tokens_per_second"] = [round(r) for r in rates]
    result["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(result))


if __name__ == "__main__":
    main()
