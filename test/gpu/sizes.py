#!/usr/bin/env python3
"""Cases of test/field-faults.md that need a GPU: sizes past 2^31 elements and 65535
sequence-heads, and what its own instructions make of extreme numbers.

    sizes.py [--device=cuda:0] [--small] [--seconds=N] [CASE...]

Runs in a folder that pack.sh filled, with torch. Sizes are those of the reports; --small
takes some that any machine can hold, to try this program out and to pack what it
compiles. A line per case; exit code 1 when one fails, 124 when time was over before
the last. A case that needs more memory than the device has is skipped, and says so.
"""

import argparse
import math
import os
import pathlib
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
os.environ.setdefault("HYBRIDC", str(FOLDER / "packed-hybridc.py"))

import torch  # noqa: E402

import hybrid  # noqa: E402

#: What two ways to compute the same in bf16 may be apart, relative to the largest.
CLOSE = 2.0**-6


class Skipped(Exception):
    pass


class Device:
    def __init__(self, name, small):
        self.name, self.small = name, small
        self.random = torch.Generator(device=name).manual_seed(1)

    def size(self, real, small):
        return small if self.small else real

    def need(self, bytes_):
        """Skips what does not fit; a device shares its memory with other checks."""
        if self.name != "cpu":
            torch.cuda.empty_cache()
            free = torch.cuda.mem_get_info(self.name)[0]
            if free < bytes_:
                raise Skipped(f"needs {bytes_ / 1e9:.0f} GB, {free / 1e9:.0f} are free")

    def normal(self, *shape, dtype=torch.bfloat16):
        """In slices, because numbers are drawn in f32."""
        result = torch.empty(*shape, dtype=dtype, device=self.name)
        for part in result.flatten(0, 1).split(1 << 20):
            part.copy_(torch.randn(part.shape, generator=self.random, device=self.name) * 0.5)
        return result

    def gates(self, *shape):
        return torch.nn.functional.logsigmoid(torch.randn(*shape, generator=self.random, device=self.name) + 3)

    def share(self, *shape):
        return torch.sigmoid(torch.randn(*shape, generator=self.random, device=self.name))


def expect_close(what, found, expected, bound=CLOSE):
    largest = expected.abs().max().item()
    error = (found.float() - expected.float()).abs().max().item() / max(largest, 1e-30)
    if not (error <= bound and largest > 0):
        raise AssertionError(f"{what} is off by {error:.1e}, at most {bound:.1e} is right; largest {largest:.1e}")
    return error


def unit(x):
    return torch.nn.functional.normalize(x.float(), dim=-1).to(x.dtype)


def with_gradients(function, tensors, cotangent, **others):
    """o and the gradients of what it was made of."""
    given = [tensor.detach().requires_grad_() for tensor in tensors]
    o = function(*given, **others)
    o = o[0] if isinstance(o, tuple) else o
    o.backward(cotangent)
    return [o.detach()] + [tensor.grad for tensor in given]


def halves(device, function, tensors):
    """A batch, and each of its halves: forward and gradients."""
    cotangent = device.normal(*tensors[2].shape)
    whole = with_gradients(function, tensors, cotangent)
    count, worst = len(cotangent), 0.0
    for begin, end in ((0, count // 2), (count // 2, count)):
        part = with_gradients(function, [tensor[begin:end] for tensor in tensors], cotangent[begin:end])
        for number, (one, all_) in enumerate(zip(part, whole)):
            worst = max(worst, expect_close(f"result {number} of {begin} to {end}", all_[begin:end], one))
    return worst


def siz_01_delta(device):
    """65538 sequence-heads of the gated delta rule"""
    shape = device.size(10923, 40), 32, 6, 16
    return halves(device, hybrid.gated_delta_rule,
                  [device.normal(*shape), unit(device.normal(*shape)), device.normal(*shape),
                   device.gates(*shape[:3]), device.share(*shape[:3])])


def siz_01_gla(device):
    """81920 sequence-heads of gated linear attention"""
    shape = device.size(40960, 40), 20, 2, 16
    return halves(device, hybrid.gla, [device.normal(*shape), device.normal(*shape), device.normal(*shape),
                                       device.gates(*shape)])


def siz_01_softmax(device):
    """the same with softmax"""
    shape = device.size(40960, 40), 20, 2, 16
    return halves(device, hybrid.softmax_attention, [device.normal(*shape) for _ in range(3)])


def siz_03_decode(device):
    """a decoding step of 2048 sequences of 33 heads, of every family"""
    count = device.size(2048, 8)
    model = hybrid.compile(str(FOLDER / "sizes" / "decode.hbx"), device=device.name, arrays="torch")
    model.initialise(1)

    def steps(first, last):
        state = model.state(slots=last - first, context=4)
        slots = tuple(range(last - first))
        for step in range(3):
            ids = [[(7 * sequence + 3 * step) % model.vocabulary] for sequence in range(first, last)]
            logits = state.extend(ids, slots=slots)
        return logits
    whole = steps(0, count)
    return max(expect_close(f"quarter {n}", whole[n * count // 4:(n + 1) * count // 4],
                            steps(n * count // 4, (n + 1) * count // 4), 1e-5) for n in range(4))


def siz_05_delta(device):
    """2^31 elements a tensor: the end of a long sequence"""
    tokens, heads, dim, last = device.size(524289, 2049), 32, 128, 1025
    device.need(4.5 * 2 * tokens * heads * dim * 2 + 25e9)
    q, k = device.normal(1, tokens, heads, dim), device.normal(1, tokens, heads, dim)
    for part in k.split(1 << 16, dim=1):
        part.copy_(unit(part))
    steps = torch.arange(tokens, device=device.name) // 1024
    v = (1 + steps % 7).to(torch.bfloat16)[None, :, None, None].expand(1, tokens, heads, dim).contiguous()
    g, beta = device.gates(1, tokens, heads), device.share(1, tokens, heads)
    cut = tokens - last
    o, final = hybrid.gated_delta_rule(q, k, v, g, beta, output_final_state=True)
    first = [x[:, :cut] for x in (q, k, v, g, beta)]
    _, state = hybrid.gated_delta_rule(*first, output_final_state=True)
    end = [x[:, cut:].contiguous() for x in (q, k, v, g, beta)]
    expected, state = hybrid.gated_delta_rule(*end, initial_state=state, output_final_state=True)
    return max(expect_close("the last rows", o[:, cut:], expected), expect_close("the state", final, state))


def siz_05_softmax(device):
    """the same of softmax with a window, forward and gradients"""
    tokens, heads, dim, last = device.size(524289, 2049), 32, 128, 1025
    device.need(10 * tokens * heads * dim * 2 + 15e9)
    q, k, v, cotangent = (device.normal(1, tokens, heads, dim) for _ in range(4))
    cotangent[:, :-last] = 0

    def run(x):
        return hybrid.softmax_attention(*x, window=64)
    whole = with_gradients(lambda *x: run(x), [q, k, v], cotangent)
    # A window further back, so that the rows compared see all that they saw.
    cut = tokens - last - 64
    part = with_gradients(lambda *x: run(x), [x[:, cut:].contiguous() for x in (q, k, v)],
                          cotangent[:, cut:].contiguous())
    return max(expect_close(f"result {n}", all_[:, -last:], one[:, -last:])
               for n, (one, all_) in enumerate(zip(part, whole)))


def siz_08(device):
    """2.36e9 elements of dq: the last of 12000 sequences"""
    shape = device.size(12000, 12), 128, 16, 96
    device.need(9 * math.prod(shape) * 2 + 2 * math.prod(shape) * 4)
    tensors, cotangent = [device.normal(*shape) for _ in range(3)], device.normal(*shape)
    whole = with_gradients(hybrid.softmax_attention, tensors, cotangent)
    last = with_gradients(hybrid.softmax_attention, [tensor[-1:] for tensor in tensors], cotangent[-1:])
    return max(expect_close(f"result {n}", all_[-1:], one) for n, (one, all_) in enumerate(zip(last, whole)))


STRIDED = """
!x = tensor<?x16x96xbf16>
func.func @{name}(%q: !x {{hybrid.role = "input", hybrid.path = "q"}},
    %k: !x {{hybrid.role = "input", hybrid.path = "k"}}, %v: !x {{hybrid.role = "input", hybrid.path = "v"}},
    %given: {type} {{hybrid.role = "input", hybrid.path = "dout"}},
    %s: !hybrid.segments {{hybrid.role = "segments"}})
    -> (!x {{hybrid.role = "output", hybrid.path = "dq"}}, !x {{hybrid.role = "output", hybrid.path = "dk"}},
        !x {{hybrid.role = "output", hybrid.path = "dv"}}) attributes {{hybrid.entry = "{name}"}} {{
{take}
  %o, %lse = hybrid.attention %q, %k, %v, %s scale 0.1 windows {zeros} sinks {zeros}
    : (!x, !x, !x, !hybrid.segments) -> (!x, tensor<?x16xf32>)
  %dq, %dk, %dv = hybrid.attention_grad %q, %k, %v, %o, %lse, %dout, %s scale 0.1 windows {zeros} sinks {zeros}
    : (!x, !x, !x, !x, tensor<?x16xf32>, !x, !hybrid.segments) -> (!x, !x, !x)
  return %dq, %dk, %dv : !x, !x, !x
}}
"""
WIDE = STRIDED.format(name="strided", type="tensor<?x9728xbf16>", zeros=[0] * 16, take="""
  %part = hybrid.slice %given dim 1 from 8192 size 1536 : tensor<?x9728xbf16> -> tensor<?x1536xbf16>
  %dout = hybrid.reshape %part : tensor<?x1536xbf16> -> !x""")
PLAIN = STRIDED.format(name="plain", type="!x", zeros=[0] * 16, take="""
  %dout = hybrid.reshape %given : !x -> !x""")


def siz_09(device):
    """an output gradient of wide stride, past 2^31 elements"""
    lengths = [4096] * 55 + [24, 96] if not device.small else [64, 24, 96]
    tokens = sum(lengths)
    device.need(tokens * 9728 * 2 + 12 * tokens * 16 * 96 * 2 + 5e9)
    q, k, v = (device.normal(tokens, 16, 96) for _ in range(3))
    wide = device.normal(tokens, 9728)
    plain = wide[:, 8192:8192 + 1536].reshape(tokens, 16, 96).contiguous()
    found = hybrid.Functions(WIDE, "strided")("strided", lengths, {"q": q, "k": k, "v": v, "dout": wide})
    expected = hybrid.Functions(PLAIN, "plain")("plain", lengths, {"q": q, "k": k, "v": v, "dout": plain})
    return max(expect_close(name, found[name], expected[name], 0.0) for name in ("dq", "dk", "dv"))


def gen_06(device):
    """softmax of large and of very negative scores"""
    def attend(keys):
        count = len(keys)
        q, k = torch.zeros(2, 1, count, 1, 8, device=device.name)
        q[..., 0], k[0, :, 0, 0] = 1, torch.tensor(keys)
        v = torch.zeros(1, count, 1, 8, device=device.name)
        v[0, :, 0] = torch.eye(8)[:count]
        return hybrid.softmax_attention(q, k, v, scale=1.0)[0, -1, 0, :count]
    cases = (([88.0, 89, 90], [0.090031, 0.244728, 0.665241]), ([-1e30, -1e30], [0.5, 0.5]),
             ([-1e30, 0, 3], [0, 0.047426, 0.952574]), ([-1e30, -88, -1e30, -90], [0, 0.880797, 0, 0.119203]))
    return max(expect_close(str(keys), attend(keys), torch.tensor(right, device=device.name), 2e-6)
               for keys, right in cases)


def decayed(device, gates, reads):
    """q of size `reads` on a state of 1 that has decayed by `gates`, a sequence each."""
    count = len(gates)
    q = torch.zeros(count, 1, 1, 8, device=device.name)
    q[:, 0, 0, 0] = torch.as_tensor(reads, dtype=torch.float32)
    k = torch.zeros_like(q)
    state = torch.zeros(count, 1, 8, 8, device=device.name)
    state[:, 0, 0, 0] = 1
    o, final = hybrid.simple_gla(q, k, k, torch.as_tensor(gates, dtype=torch.float32).reshape(count, 1, 1)
                                 .to(device.name), scale=1.0, initial_state=state, output_final_state=True)
    return o[:, 0, 0, 0].double().cpu(), final


def gen_17(device):
    """a state decays into denormal numbers"""
    state, worst = None, 0.0
    q = torch.zeros(1, 1, 1, 8, device=device.name)
    zero, gate = torch.zeros_like(q), torch.full((1, 1, 1), -1.0, device=device.name)
    q[..., 0] = 1e30
    state = torch.zeros(1, 1, 8, 8, device=device.name)
    state[..., 0, 0] = 1
    for step in range(1, 104):
        o, state = hybrid.simple_gla(q, zero, zero, gate, scale=1.0, initial_state=state, output_final_state=True)
        if step >= 86:
            right = torch.tensor(math.exp(-step) * 1e30)
            # A denormal number is a multiple of 2^-149, and every step rounds to one.
            bound = 1e-3 + 2 * 2.0**-149 / math.exp(-step)
            worst = max(worst, expect_close(f"step {step}", o[0, 0, 0, 0].cpu(), right, bound))
    return worst


def gen_23(device):
    """exponentials of gates from -80 to 0"""
    gates = torch.linspace(-80, 0, 4097, dtype=torch.float32)
    found, _ = decayed(device, gates, [1.0] * len(gates))
    right = torch.exp(gates.double())
    return expect_close("exp", found / right, torch.ones_like(right), 1e-5)


CASES = {"SIZ-01 delta": siz_01_delta, "SIZ-01 gla": siz_01_gla, "SIZ-01 softmax": siz_01_softmax,
         "SIZ-03 decode": siz_03_decode, "SIZ-05 delta": siz_05_delta, "SIZ-05 softmax": siz_05_softmax,
         "SIZ-08 softmax": siz_08, "SIZ-09 softmax": siz_09, "GEN-06 softmax": gen_06, "GEN-17 denormals": gen_17,
         "GEN-23 exp": gen_23}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", help="by the begin of their names; none: all")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seconds", type=float, default=0, help="0: as long as it takes")
    args = parser.parse_args()
    begin, failed, left = time.monotonic(), 0, 0
    chosen = {name: case for name, case in CASES.items()
              if not args.cases or any(name.startswith(given) for given in args.cases)}
    if not chosen:
        parser.error(f"no case begins like {args.cases}; there are {', '.join(CASES)}")
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("HYBRID_CACHE", cache)
        for name, case in chosen.items():
            start = time.monotonic()
            if args.seconds and start - begin > args.seconds:
                print(f"left out {name}")
                left += 1
                continue
            try:
                result = f"error {case(Device(args.device, args.small)):.1e}"
                word = "ok  "
            except Skipped as reason:
                word, result = "skip", str(reason)
            except (AssertionError, hybrid.Error, torch.OutOfMemoryError) as problem:
                word, result, failed = "FAIL", f"{type(problem).__name__}: {problem}", failed + 1
            print(f"{word} {name}, {case.__doc__}: {result}, {time.monotonic() - start:.1f} s", flush=True)
    sys.exit(1 if failed else 124 if left else 0)


if __name__ == "__main__":
    main()
