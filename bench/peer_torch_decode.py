#!/usr/bin/env python3
"""Decoding with the model of peer_torch.py: one token per sequence and step.

Written as a careful user of eager PyTorch writes it: the projections of a layer
that read the same rows are one product, caches and states are allocated once
and updated in place, one convolution serves queries, keys and values, and
nothing but tensor operations happens in a step. `--check` compares the steps
with the model's forward.
"""

import argparse
import json
import resource
import statistics
import time

import torch
import torch.nn.functional as F

from peer_torch import GLA, Model, NoPEAttention, add_model_arguments, make_model, product_rate


def fused(*linears):
    """One [out, in] weight that stands for several."""
    return torch.cat([linear.weight for linear in linears]).contiguous()


class AttentionStep:
    def __init__(self, mixer, batch, context):
        self.heads = mixer.heads
        self.qkv, self.o = fused(mixer.q, mixer.k, mixer.v), mixer.o.weight
        dim = mixer.q.out_features // mixer.heads
        self.k, self.v = (torch.zeros(batch, mixer.heads, context, dim) for _ in range(2))

    def __call__(self, x, position):
        batch = x.shape[0]
        q, k, v = F.linear(x, self.qkv).view(batch, 3, self.heads, 1, -1).unbind(1)
        self.k[:, :, position] = k[:, :, 0]
        self.v[:, :, position] = v[:, :, 0]
        end = position + 1
        o = F.scaled_dot_product_attention(q, self.k[:, :, :end], self.v[:, :, :end])
        return F.linear(o.reshape(batch, -1), self.o)

    def fill(self):
        self.k.normal_()
        self.v.normal_()


class RecurrentStep:
    """What GLA and Gated DeltaNet share: the state [B * H, K, V] and the output."""

    def __init__(self, mixer, batch, key, value):
        self.heads, self.key, self.value = mixer.heads, key, value
        self.norm, self.eps, self.o = mixer.norm.weight, mixer.norm.eps, mixer.o.weight
        self.state = torch.zeros(batch * mixer.heads, key, value)

    def output(self, o, gate):
        o = F.rms_norm(o.view(-1, self.heads, self.value), (self.value,), self.norm, self.eps)
        return F.linear(o.flatten(1) * F.silu(gate), self.o)

    def fill(self):
        self.state.normal_()


class GLAStep(RecurrentStep):
    def __init__(self, mixer, batch):
        key, value = mixer.key, mixer.v.out_features // mixer.heads
        super().__init__(mixer, batch, key, value)
        self.weight = fused(mixer.q, mixer.k, mixer.v, mixer.g, mixer.gk[0])
        self.sizes = [mixer.heads * key] * 2 + [mixer.heads * value] * 2 + [mixer.gk[0].out_features]
        self.up, self.bias, self.scale = mixer.gk[1].weight, mixer.gk[1].bias, key ** -0.5

    def __call__(self, x, position):
        q, k, v, gate, low = F.linear(x, self.weight).split(self.sizes, 1)
        decay = (F.logsigmoid(F.linear(low, self.up, self.bias)) * (1 / 16)).exp_()
        self.state.mul_(decay.view(-1, self.key, 1))
        self.state.baddbmm_(k.reshape(-1, self.key, 1), v.reshape(-1, 1, self.value))
        o = torch.bmm((q * self.scale).view(-1, 1, self.key), self.state)
        return self.output(o, gate)


class GDNStep(RecurrentStep):
    def __init__(self, mixer, batch):
        key, value = mixer.key, mixer.v.out_features // mixer.heads
        super().__init__(mixer, batch, key, value)
        self.weight = fused(mixer.q, mixer.k, mixer.v, mixer.g, mixer.a, mixer.b)
        channels = mixer.heads * (2 * key + value)
        self.sizes = [channels, mixer.heads * value, mixer.heads, mixer.heads]
        self.taps = torch.cat([c.conv.weight[:, 0] for c in (mixer.cq, mixer.ck, mixer.cv)]).contiguous()
        self.width = self.taps.shape[1]
        # The last inputs and the present one, newest last.
        self.inputs = torch.zeros(batch, channels, self.width)
        self.rate, self.bias, self.scale = -mixer.a_log.exp(), mixer.dt_bias, key ** -0.5

    def __call__(self, x, position):
        qkv, gate, a, b = F.linear(x, self.weight).split(self.sizes, 1)
        self.inputs = torch.cat((self.inputs[:, :, 1:], qkv.unsqueeze(2)), 2)
        qkv = F.silu((self.inputs * self.taps).sum(2))
        q, k, v = qkv.split([self.heads * self.key] * 2 + [self.heads * self.value], 1)
        q = F.normalize(q.reshape(-1, 1, self.key), dim=-1)
        k = F.normalize(k.reshape(-1, 1, self.key), dim=-1)
        decay = (self.rate * F.softplus(a + self.bias)).exp_()
        self.state.mul_(decay.view(-1, 1, 1))
        new = torch.baddbmm(v.reshape(-1, 1, self.value), k, self.state, alpha=-1).mul_(b.sigmoid().view(-1, 1, 1))
        self.state.baddbmm_(k.transpose(1, 2), new)
        return self.output(torch.bmm(q * self.scale, self.state), gate)


class Decoder:
    def __init__(self, model, batch, context):
        self.model = model
        self.position = 0
        self.layers = []
        for block in model.blocks:
            mixer = block.mixer
            if isinstance(mixer, NoPEAttention):
                step = AttentionStep(mixer, batch, context)
            else:
                step = (GLAStep if isinstance(mixer, GLA) else GDNStep)(mixer, batch)
            mlp = (fused(block.mlp.gate, block.mlp.up), block.mlp.down.weight)
            self.layers.append((block.n1.weight, step, block.n2.weight, mlp))

    def step(self, ids):
        width, table = (self.model.norm.weight.shape[0],), self.model.embed.weight
        x = F.embedding(ids, table)
        for norm1, mixer, norm2, (wide, down) in self.layers:
            x = x + mixer(F.rms_norm(x, width, norm1, 1e-5), self.position)
            gate, up = F.linear(F.rms_norm(x, width, norm2, 1e-5), wide).chunk(2, 1)
            x = x + F.linear(F.silu(gate) * up, down)
        self.position += 1
        return F.linear(F.rms_norm(x, width, self.model.norm.weight, 1e-5), table)

    def pretend(self, position):
        """Caches and states as if `position` tokens had been read: cost does not depend on their values."""
        for _, mixer, _, _ in self.layers:
            mixer.fill()
        self.position = position


def check(model, vocab):
    ids = torch.randint(0, vocab, (2, 128))
    decoder = Decoder(model, 2, 128)
    steps = torch.stack([decoder.step(ids[:, t]) for t in range(128)], 1)
    expected = model(ids)
    error = ((steps - expected).norm() / expected.norm()).item()
    if not error < 1e-4:
        raise SystemExit(f"steps differ from the forward by {error:.2e}, expected less than 1e-4")
    return error


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_model_arguments(parser)
    parser.add_argument("--contexts", type=int, nargs="+", default=[128, 8192])
    parser.add_argument("--sequences", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--check", action="store_true", help="compare with the forward before timing")
    args = parser.parse_args()
    model = make_model(args)
    result = {"peer": "torch " + torch.__version__, "product_gflops": round(product_rate(), 1), "results": []}
    with torch.inference_mode():
        if args.check:
            result["error"] = check(model, args.vocab)
        for sequences in args.sequences:
            for context in args.contexts:
                decoder = Decoder(model, sequences, context + args.steps + 10)
                decoder.pretend(context)
                ids = torch.randint(0, args.vocab, (sequences,))
                times = []
                for step in range(args.steps + 10):
                    start = time.perf_counter()
                    decoder.step(ids)
                    if step >= 10:
                        times.append(time.perf_counter() - start)
                result["results"].append({"sequences": sequences, "context": context,
                                          "milliseconds": 1e3 * statistics.median(times),
                                          "fastest": 1e3 * min(times),
                                          "tokens_per_second": sequences / statistics.median(times)})
    result["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(result))


if __name__ == "__main__":
    main()
