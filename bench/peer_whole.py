#!/usr/bin/env python3
"""A whole model of model_template.py in PyTorch: the peer of bench/whole_models.py.

On a card as a careful user has it: bf16 autocast over fp32 master weights, blocks
through torch.compile, fused AdamW, scaled_dot_product_attention and FlexAttention
for windows, recurrences from FLA when it can be imported, decoding with
mode="reduce-overhead" over caches and states that are allocated once. On a
processor the same modules run eagerly in fp32 with the recurrences of
peer_torch.py, which is for `--work=check`: steps must give what the forward gives.

Prints a JSON object a line, one for each kind of work and length as it is done.
`--work=warm` fills the caches on disk of torch.compile and Triton with what the
others compile, and `--work=kernels --part=i/n` with an n-th of what FLA's kernels
choose from, both on little memory; several may share a card.
"""

import argparse
import dataclasses
import gc
import json
import math
import resource
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

import peer_torch
from model_template import SIZES, layer_kinds
from peer_torch import GDN, GLA, Block, RMSNorm, heads_first


def use_fla():
    """Recurrences from FLA in the place of the chunked forms; its version, or nothing where it is not there."""
    try:
        import fla
        from fla.modules.causal_conv1d import causal_conv1d
        from fla.ops.common import chunk_o
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule
        from fla.ops.gla import chunk_gla
    except ImportError:
        return ""
    # FLA refuses the gated backward on Hopper with a Triton below 3.7.1, whose gradients are wrong there.
    # Times do not depend on that.
    chunk_o.TRITON_ABOVE_3_7_1 = True

    def tokens_first(*tensors):
        return [tensor.transpose(1, 2).contiguous() for tensor in tensors]

    @torch.compiler.disable
    def gla(q, k, v, g):
        q, k, v, g = tokens_first(q, k, v, g)
        return chunk_gla(q, k, v.to(q.dtype), g.float(), scale=1.0)[0].transpose(1, 2)

    @torch.compiler.disable
    def gdn(q, k, v, g, beta):
        q, k, v, g, beta = tokens_first(q, k, v, g, beta)
        q, k = q.to(v.dtype), k.to(v.dtype)
        return chunk_gated_delta_rule(q, k, v, g.float(), beta.to(v.dtype), scale=1.0)[0].transpose(1, 2)

    @torch.compiler.disable
    def convolve(self, x):
        weight = self.conv.weight[:, 0]
        return causal_conv1d(x, weight.to(x.dtype), activation="silu")[0]

    peer_torch.gla_chunked, peer_torch.gdn_chunked = gla, gdn
    peer_torch.ShortConv.forward = convolve
    return fla.__version__


# ----------------------------------------------------------------------------
# Attention
# ----------------------------------------------------------------------------

def rotate(x, position, base=10000.0):
    """Half-split rotation of [..., tokens, dim] at `position` [tokens]."""
    half = x.shape[-1] // 2
    frequency = base ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angle = position.float()[:, None] * frequency
    cos, sin = angle.cos(), angle.sin()
    a, b = x.float().split(half, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


def window_mask(tokens, window, device):
    """Blocks that a window touches, the same object for all layers: another one would be other code."""
    key = tokens, window, str(device)
    if key not in MASKS:
        from torch.nn.attention.flex_attention import create_block_mask
        MASKS[key] = create_block_mask(lambda b, h, i, j: (j <= i) & (i - j < window), None, None, tokens, tokens,
                                       device=device)
    return MASKS[key]


MASKS = {}


class Attention(nn.Module):
    """kind: nope, rope, or swa (rotary, in a window)."""

    def __init__(self, width, kind, heads, dim, window):
        super().__init__()
        self.kind, self.heads, self.dim, self.window = kind, heads, dim, window
        self.q, self.k, self.v = (nn.Linear(width, heads * dim, bias=False) for _ in range(3))
        self.o = nn.Linear(heads * dim, width, bias=False)
        self.mask = None  # of windows on a card, by Model.prepare

    def forward(self, x):
        q, k, v = (heads_first(p(x), self.heads) for p in (self.q, self.k, self.v))
        if self.kind != "nope":
            position = torch.arange(x.shape[1], device=x.device)
            q, k = rotate(q, position), rotate(k, position)
        if self.kind != "swa":
            o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            o = self.windowed(q, k, v)
        return self.o(o.transpose(1, 2).flatten(2))

    def windowed(self, q, k, v):
        tokens = q.shape[2]
        if self.mask is not None:
            from torch.nn.attention.flex_attention import flex_attention
            return flex_attention(q, k, v, block_mask=self.mask)
        i, j = torch.arange(tokens)[:, None], torch.arange(tokens)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=(j <= i) & (i - j < self.window))


class Model(nn.Module):
    def __init__(self, size, mixer):
        super().__init__()
        self.embed = nn.Embedding(size.vocab, size.width)
        blocks = []
        for ((kind, heads),) in layer_kinds(size, mixer, "layer"):
            if kind == "gla":
                built = GLA(size.width, heads // 2, size.head_dim, 2 * size.head_dim)
            elif kind == "gdn":
                built = GDN(size.width, heads, size.head_dim, size.head_dim)
            else:
                built = Attention(size.width, kind, heads, size.head_dim, size.window)
            blocks.append(Block(size.width, built, size.inner))
        self.blocks = nn.ModuleList(blocks)
        self.norm = RMSNorm(size.width)
        self.head = nn.Linear(size.width, size.vocab, bias=False)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def prepare(self, tokens, device):
        """Before blocks are compiled for sequences of so many tokens."""
        for block in self.blocks:
            if getattr(block.mixer, "kind", "") == "swa" and device != "cpu":
                block.mixer.mask = window_mask(tokens, block.mixer.window, device)

    def stream(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids):
        return self.head(self.stream(ids))


# ----------------------------------------------------------------------------
# Decoding
# ----------------------------------------------------------------------------

class AttentionStep(nn.Module):
    def __init__(self, mixer, batch, capacity, dtype, device):
        super().__init__()
        self.mixer = mixer
        self.rows = min(mixer.window, capacity) if mixer.kind == "swa" else capacity
        shape = (batch, mixer.heads, self.rows, mixer.dim)
        self.register_buffer("keys", torch.zeros(shape, dtype=dtype, device=device))
        self.register_buffer("values", torch.zeros(shape, dtype=dtype, device=device))

    def forward(self, x, position):
        mixer = self.mixer
        q, k, v = (p(x).view(x.shape[0], mixer.heads, 1, mixer.dim) for p in (mixer.q, mixer.k, mixer.v))
        if mixer.kind != "nope":
            q, k = rotate(q, position), rotate(k, position)
        row = position % self.rows
        self.keys.index_copy_(2, row, k)
        self.values.index_copy_(2, row, v)
        seen = torch.arange(self.rows, device=x.device) <= position
        o = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen.view(1, 1, 1, -1))
        return mixer.o(o.flatten(1))


class RecurrentStep(nn.Module):
    """GLA or GDN; the state is fp32 whatever the data are."""

    def __init__(self, mixer, batch, device):
        super().__init__()
        self.mixer, self.is_delta = mixer, isinstance(mixer, GDN)
        value = mixer.v.out_features // mixer.heads
        self.register_buffer("state", torch.zeros(batch, mixer.heads, mixer.key, value, device=device))
        if self.is_delta:
            for name in ("cq", "ck", "cv"):
                conv = getattr(mixer, name).conv
                self.register_buffer("past_" + name, torch.zeros(batch, conv.in_channels, conv.kernel_size[0],
                                                                 device=device, dtype=conv.weight.dtype))

    def convolve(self, name, x):
        past, taps = getattr(self, "past_" + name), getattr(self.mixer, name).conv.weight[:, 0]
        past.copy_(torch.cat((past[:, :, 1:], x.unsqueeze(2)), 2))
        return F.silu((past * taps).sum(2))

    def forward(self, x, position):
        mixer = self.mixer
        q, k, v = mixer.q(x), mixer.k(x), mixer.v(x)
        if self.is_delta:
            q, k, v = self.convolve("cq", q), self.convolve("ck", k), self.convolve("cv", v)
        q, k, v = (y.float().view(x.shape[0], mixer.heads, -1) for y in (q, k, v))
        if self.is_delta:
            q, k = (y * torch.rsqrt(y.square().sum(-1, keepdim=True) + 1e-6) for y in (q, k))
            decay = (-mixer.a_log.exp() * F.softplus(mixer.a(x) + mixer.dt_bias)).float().exp()[..., None, None]
        else:
            gate = F.logsigmoid(mixer.gk(x).float()) / 16
            decay = gate.view(x.shape[0], mixer.heads, -1).exp()[..., None]
        state = self.state * decay
        if self.is_delta:
            beta = mixer.b(x).float().sigmoid()[..., None]
            v = (v - (k[..., None] * state).sum(-2)) * beta
        state = state + k[..., None] * v[..., None, :]
        self.state.copy_(state)
        o = ((q * mixer.key ** -0.5)[..., None] * state).sum(-2)
        gate = mixer.g(x).view(x.shape[0], mixer.heads, -1)
        return mixer.o((mixer.norm(o.to(x.dtype)) * F.silu(gate)).flatten(1))


class Decoder(nn.Module):
    def __init__(self, model, batch, capacity, dtype, device):
        super().__init__()
        self.model = model
        self.steps = nn.ModuleList(
            AttentionStep(block.mixer, batch, capacity, dtype, device) if isinstance(block.mixer, Attention)
            else RecurrentStep(block.mixer, batch, device) for block in model.blocks)

    def forward(self, ids, position):
        x = self.model.embed(ids)
        for block, step in zip(self.model.blocks, self.steps):
            x = x + step(block.n1(x), position)
            x = x + block.mlp(block.n2(x))
        return self.model.head(self.model.norm(x))

    def cache_bytes(self, length):
        """Of `length` tokens, without the room for the steps that are timed."""
        total = 0
        for step in self.steps:
            rows = getattr(step, "rows", 1)
            held = sum(buffer.numel() * buffer.element_size() for buffer in step.buffers(False))
            total += held * min(rows, length) // rows
        return total


def check(size, mixer):
    """Steps beside the forward, on a processor."""
    model = Model(size, mixer)
    ids = torch.randint(0, size.vocab, (2, 64))
    with torch.inference_mode():
        decoder = Decoder(model, 2, 64, torch.float32, "cpu")
        steps = torch.stack([decoder(ids[:, t], torch.tensor([t])) for t in range(64)], 1)
        expected = model(ids)
    error = ((steps - expected).norm() / expected.norm()).item()
    if not error < 1e-4:
        raise SystemExit(f"{mixer}: steps differ from the forward by {error:.2e}, expected less than 1e-4")
    return error


# ----------------------------------------------------------------------------
# Timing
# ----------------------------------------------------------------------------

def timed(function, repeats, device):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        if device != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return times


def compile_block(block, device):
    return torch.compile(block, dynamic=False) if device != "cpu" else block


def time_training(args, length, size, model, device, autocast):
    compiled = [compile_block(block, device) for block in model.blocks]
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1,
                                  fused=device != "cpu")
    batch = max(args.tokens // length, 1)

    def step():
        ids = torch.randint(0, size.vocab, (batch, length + 1), device=device)
        with autocast():
            x = model.embed(ids[:, :-1])
            for block in compiled:
                x = block(x)
            loss = F.cross_entropy(model.head(model.norm(x)).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return loss

    first = timed(step, 1, device)[0]
    timed(step, args.warm, device)
    times = timed(step, args.repeats, device)
    return {"first_s": first, "tokens_per_second": batch * length / statistics.median(times)}


def time_inference(args, length, size, model, device, dtype, is_timed=True):
    model = model.to(dtype).eval()
    compiled = [compile_block(block, device) for block in model.blocks]

    def prefill():
        x = model.embed(torch.randint(0, size.vocab, (1, length), device=device))
        for block in compiled:
            x = block(x)
        return model.head(model.norm(x[:, -1])).argmax(-1)

    with torch.inference_mode():
        timed(prefill, args.warm if is_timed else 1, device)
        first_token = statistics.median(timed(prefill, args.repeats, device)) if is_timed else 0.0
        decoder = Decoder(model, 1, length + 64, dtype, device)
        step = torch.compile(decoder, mode="reduce-overhead") if device != "cpu" else decoder
        ids, position = torch.zeros(1, dtype=torch.long, device=device), torch.tensor([length], device=device)
        timed(lambda: step(ids, position), 5 if is_timed else 1, device)
        if not is_timed:
            return None
        per_token = statistics.median(timed(lambda: step(ids, position), 20 * args.repeats, device))
    return {"ttft": 1e3 * first_token, "tpot": 1e3 * per_token, "cache": decoder.cache_bytes(length)}


def begin(args):
    """A length of its own: neither code for any length nor memory of the last one."""
    if args.device == "cpu":
        return
    torch._dynamo.reset()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def make_autocast(args, dtype):
    return lambda: torch.autocast(torch.device(args.device).type, dtype, enabled=args.dtype != "f32")


def measure(args, work, length, size, dtype):
    model = Model(size, args.mixer)
    model.prepare(length, args.device)
    begin(args)
    if work == "training":
        result = time_training(args, length, size, model, args.device, make_autocast(args, dtype))
    else:
        result = time_inference(args, length, size, model, args.device, dtype)
    result["peak"] = (1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if args.device == "cpu"
                      else torch.cuda.max_memory_reserved())
    return result


def warm(args, length, size, dtype):
    """What `measure` compiles, by a block of each kind and without the loss; seconds by kind of work."""
    found = {}
    for work in ("training", "inference"):
        start = time.perf_counter()
        model = Model(dataclasses.replace(size, layers=4, vocab=256) if work == "training" else size, args.mixer)
        model.prepare(length, args.device)
        begin(args)
        if work == "training":
            batch = max(args.tokens // length, 1)
            for block in {getattr(block.mixer, "kind", args.mixer): block for block in model.blocks}.values():
                x = torch.randn(batch, length, size.width, device=args.device, requires_grad=True)
                with make_autocast(args, dtype)():
                    y = compile_block(block, args.device)(x)
                y.sum().backward()
                del x, y
        else:
            time_inference(args, length, size, model, args.device, dtype, is_timed=False)
        found[work] = time.perf_counter() - start
    return found


def kernels(args, length, size):
    """FLA's kernels alone, as a layer calls them."""
    heads, key, value = size.heads, size.head_dim, size.head_dim
    if args.mixer == "gla":
        heads, value = heads // 2, 2 * value

    def tensor(*shape, dtype=torch.bfloat16):
        return torch.rand(shape, dtype=dtype, device=args.device, requires_grad=True)

    start = time.perf_counter()
    for batch in sorted({max(args.tokens // length, 1), 1}):
        q, k, v = (tensor(batch, heads, length, dim) for dim in (key, key, value))
        if args.mixer == "gla":
            outs = [peer_torch.gla_chunked(q, k, v, -tensor(batch, heads, length, key, dtype=torch.float32))]
        else:
            gates = tensor(batch, heads, length, dtype=torch.float32), tensor(batch, heads, length)
            outs = [peer_torch.gdn_chunked(q, k, v, -gates[0], gates[1]),
                    peer_torch.ShortConv(heads * key)(tensor(batch, length, heads * key))]
        sum(out.float().sum() for out in outs).backward()
    torch.cuda.synchronize()
    return {"kernels": time.perf_counter() - start}


def add_arguments(parser):
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--mixer", choices=("rope", "rope_nope", "swa", "gla", "gdn"), default="gdn")
    parser.add_argument("--work", nargs="+", choices=("training", "inference", "warm", "kernels", "check"),
                        default=["training"])
    parser.add_argument("--part", default="0/1", metavar="I/N", help="of --work=kernels")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="bf16")
    parser.add_argument("--lengths", nargs="+", type=int, default=[4096])
    for name, value in (("tokens", 32768), ("repeats", 3), ("warm", 2), ("threads", 2)):
        parser.add_argument("--" + name, type=int, default=value)


def prepare_card(args):
    """Which attention and recurrences a card runs; the peer's name."""
    peer = f"torch {torch.__version__}"
    if args.device == "cpu":
        return peer
    # cuDNN's attention, the fastest on Hopper, where PyTorch would take its own.
    torch.backends.cuda.enable_flash_sdp(False)
    if args.mixer not in ("gla", "gdn"):
        return peer
    import peer_tuning
    if "kernels" in args.work:
        peer_tuning.compile_only(args.threads, *map(int, args.part.split("/")))
    elif "warm" in args.work:
        peer_tuning.compile_only(args.threads)
    else:
        peer_tuning.tune_quickly(args.threads)
    version = use_fla()
    return peer + (f", FLA {version}" if version else ", recurrences in PyTorch")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_arguments(parser)
    args = parser.parse_args()
    size, dtype = SIZES[args.size], {"f32": torch.float32, "bf16": torch.bfloat16}[args.dtype]
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    if "check" in args.work:
        print(json.dumps({"error": check(size, args.mixer)}))
        return
    # Tensors without a device of their own, as peer_torch's masks, go where the model is.
    torch.set_default_device(args.device)
    peer = prepare_card(args)
    # Short lengths first: time may end.
    for length in args.lengths:
        for work in args.work:
            result = {"work": work, "length": length, "peer": peer}
            if work == "kernels":
                result |= kernels(args, length, size)
            else:
                result |= (warm(args, length, size, dtype) if work == "warm" else
                           measure(args, work, length, size, dtype))
            assert all(math.isfinite(value) for value in result.values() if isinstance(value, float))
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
