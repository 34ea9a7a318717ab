"""Times projections with what follows them on a card, beside PyTorch.

    hybrid-opt bench/programs/epilogues.mlir -o passes.mlir -pass-pipeline=\\
        'builtin.module(hybrid-schedule{target=cuda:sm_90a epilogues=false})'
    gpu-kernels FUSED sm_90a bench/programs/epilogues.mlir > FUSED/manifest.json
    gpu-kernels PASSES sm_90a passes.mlir > PASSES/manifest.json
    python3 gpu_epilogues.py FUSED PASSES

Three ways in one process: the product with an epilogue, the product and the
pass of its own, and torch.matmul with the pass that torch.compile makes. The
first two are checked at several numbers of tokens, on some rows, beside f64.
"""

import json
import sys

import torch

from gpu_kernels import Function, Kernel, error, median_ms

F = torch.nn.functional


def turned(x, base=10000.0):
    """Half-split rotation of [tokens, heads, dim] by the row's number."""
    half = x.shape[-1] // 2
    turns = base ** (-torch.arange(half, device=x.device, dtype=x.dtype) / half)
    rows = torch.arange(x.shape[0], device=x.device, dtype=x.dtype)
    angle = (rows[:, None] * turns)[:, None]
    low, high = x[..., :half], x[..., half:]
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)


def swiglu(x, gate, up):
    return F.silu(x @ gate.T) * (x @ up.T),


def swiglu_kept(x, gate, up):
    g, u = x @ gate.T, x @ up.T
    return F.silu(g) * u, g, u


def swiglu_grad(dy, down, g, u):
    dh, s = dy @ down, torch.sigmoid(g)
    return dh * g * s, dh * u * s * (1 + g * (1 - s))


def rotary(x, w, *_):
    y = (x @ w.T).view(x.shape[0], -1, 128)
    return turned(y if y.dtype == torch.float64 else y.float()).to(y.dtype),


def residual(x, w, old, gain):
    stream = old + x @ w.T
    wide = stream if stream.dtype == torch.float64 else stream.float()
    norm = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)
    return stream, (norm * gain).to(stream.dtype)


def bias(x, w, b):
    return x @ w.T + b.to(x.dtype),


KINDS = {"swiglu_kept": swiglu_kept, "swiglu_grad": swiglu_grad,
         "swiglu": swiglu, "rotary": rotary, "residual": residual, "bias": bias}


def kind_of(name):
    return next(make for start, make in KINDS.items() if name.startswith(start))


def check(run, name):
    """The rows at both ends; positions are those of the whole."""
    run()
    kind, tokens = kind_of(name), run.row["tokens"]
    arguments = run.values[:run.row["arguments"]]
    if kind is rotary or tokens < 4096:
        rows = torch.arange(min(tokens, 4096), device="cuda")
    else:
        rows = torch.arange(tokens, device="cuda")
        rows = torch.cat([rows[:64], rows[-192:]])
    few = [x[rows].double() if x.dtype == torch.bfloat16 and x.shape[0] == tokens
           else x.double() for x in arguments]
    wrong = max(error(run.values[n][rows], wanted) for n, wanted in
                zip(run.row["results"], kind(*few)))
    if not wrong < 6e-3:
        raise RuntimeError(f"{name} of {tokens} tokens: error {wrong}")
    return wrong


def read(folder):
    rows = [json.loads(line) for line in open(f"{folder}/manifest.json")]
    kernels = {row["name"]: Kernel(folder, row)
               for row in rows if "function" not in row}
    functions = {}
    for row in rows:
        if "function" in row:
            functions.setdefault(row["function"], []).append(row)
    return kernels, functions


def main():
    torch.manual_seed(1)
    torch.zeros(1, device="cuda")
    (fused, functions), (apart, others) = read(sys.argv[1]), read(sys.argv[2])
    lines = []
    for name, rows in functions.items():
        wrong, times = [], []
        for kernels, cases in ((fused, rows), (apart, others[name])):
            for row in cases:
                run = Function(row, kernels)
                # Weights of models: sums are of the size of their operands.
                for value in run.values[1:row["arguments"]]:
                    if (value.dim() == 2 and value.dtype == torch.bfloat16
                            and value.shape[0] != row["tokens"]):
                        value.mul_(value.shape[-1] ** -0.5)
                wrong.append(check(run, name))
            times.append(median_ms(run))
        arguments = run.values[:run.row["arguments"]]
        compiled = torch.compile(kind_of(name), dynamic=False)
        compiled(*arguments)
        times.append(median_ms(lambda: compiled(*arguments)))
        lines.append(f"{name:20} fused {times[0]:7.3f}  passes {times[1]:7.3f}  "
                     f"torch {times[2]:7.3f} ms   {times[1] / times[0]:.3f} "
                     f"{times[2] / times[0]:.3f}   error {wrong[-5]:.1e} "
                     f"{wrong[-1]:.1e}")
        torch.cuda.empty_cache()
    print("\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
