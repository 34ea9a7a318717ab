#!/usr/bin/env python3
"""Ours against eager PyTorch on the demo and its GLA twin, interleaved.

    bench/beside_pytorch.py --python=/path/to/python-with-torch > bench/results/beside-pytorch.md

Every round times each program once, in its own process, one after the other on
the same cores: a training step, a prefill, and decoding at several contexts and
numbers of sequences. The table gives medians over the rounds and their ratio.
Beside them stand two floors of our time: its operations (as `hybridc report`
counts them; three times the forward for training) at the rate of a plain fp32
product, and its bytes at the rate of a copy of as many bytes, both measured in
PyTorch in the same rounds. The bytes are those of parameters, states and caches
once; for training parameters, gradients and moments read and written, and the
arena, which holds what is saved for the adjoints, written and read.
"""

import argparse
import statistics

from measured import ROOT, add_arguments, answer, costs, heading, make_artefact

MODELS = {"demo (GDN-NoPE)": ("demo", "gdn"), "demo_gla (GLA-NoPE)": ("demo_gla", "gla")}


class Row:
    """One kind of work: milliseconds of both programs by round, and peaks."""

    def __init__(self, name, tokens, operations, size):
        self.name, self.tokens, self.operations, self.size = name, tokens, operations, size
        self.ours, self.peer = [], []
        self.peaks = (0, 0)

    def add(self, ours, peer, peaks):
        self.ours.append(ours)
        self.peer.append(peer)
        self.peaks = tuple(map(max, self.peaks, peaks))

    def line(self, model, product, copy):
        ours, peer = statistics.median(self.ours), statistics.median(self.peer)
        spread = f"{min(self.ours):.3g} to {max(self.ours):.3g}"
        floors = f"{1e3 * self.operations / product:.3g} / {1e3 * self.size / copy(self.size):.3g}"
        rate = [f"{1e3 * self.tokens / t:,.0f}" for t in (ours, peer)]
        return (f"| {model} | {self.name} | {rate[0]} | {rate[1]} | **{peer / ours:.1f}** | {ours:.3g} ({spread}) "
                f"| {floors} | {self.peaks[0]:.0f} / {self.peaks[1]:.0f} |")


def rows_of(args, source):
    at_training, at_prefill = costs(args, source, args.length), costs(args, source, args.prefill)
    parameters = 4 * at_training["parameters"]
    tokens = args.batch * args.length
    rows = {"train": Row(f"train {args.batch} × {args.length}", tokens, 3 * tokens * at_training["forward"],
                         10 * parameters),
            "prefill": Row(f"prefill {args.prefill}", args.prefill, args.prefill * at_prefill["forward"],
                           parameters + at_prefill["state"] + args.prefill * at_prefill["cache_per_token"])}
    for sequences in args.sequences:
        for context in args.contexts:
            cost = costs(args, source, context)
            state = 2 * cost["state"] + context * cost["cache_per_token"]
            rows[sequences, context] = Row(f"decode, {sequences} at {context}", sequences, sequences * cost["decode"],
                                           parameters + sequences * state)
    return rows


def measure(args, artefact, mixer, rows):
    """One round."""
    bench = [args.bin / "hybrid-run", "bench", artefact, f"--threads={args.threads}", "--json"]
    peer = [args.python, ROOT / "bench" / "peer_torch.py", "--mixer", mixer, f"--threads={args.threads}"]
    shape = [f"--batch={args.batch}", f"--length={args.length}"]

    def both(row, ours, theirs):
        milliseconds = 1e3 * row.tokens / statistics.median(theirs["tokens_per_second"])
        row.add(ours["results"][0]["milliseconds"], milliseconds, (ours["peak_kilobytes"] / 1024, theirs["peak_mb"]))

    ours = answer([*bench, "--train", *shape, "--prefill=0", "--decode=0", "--repeats=5"])
    rows["train"].size += 2 * ours["context_bytes"] if not rows["train"].ours else 0
    both(rows["train"], ours, answer([*peer, *shape, "--steps=4"]))
    both(rows["prefill"], answer([*bench, f"--prefill={args.prefill}", "--decode=0", "--repeats=3"]),
         answer([*peer, f"--prefill={args.prefill}", "--steps=4"]))

    for sequences in args.sequences:
        ours = answer([*bench, "--prefill=0", "--decode", *args.contexts, f"--sequences={sequences}", "--repeats=10"])
        theirs = answer([args.python, ROOT / "bench" / "peer_torch_decode.py", "--mixer", mixer,
                         f"--threads={args.threads}", "--contexts", *args.contexts, "--sequences", sequences])
        for context, a, b in zip(args.contexts, ours["results"], theirs["results"]):
            rows[sequences, context].add(a["milliseconds"], b["milliseconds"],
                                         (ours["peak_kilobytes"] / 1024, theirs["peak_mb"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_arguments(parser, "beside_pytorch")
    parser.add_argument("--python", required=True, help="a python that has torch")
    for name, value in (("batch", 16), ("length", 256), ("prefill", 8192), ("rounds", 3)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--contexts", type=int, nargs="+", default=[128, 8192])
    parser.add_argument("--sequences", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--prepare", action="store_true", help="only make the artefacts and count their work")
    args = parser.parse_args()

    work = []
    for title, (spec, mixer) in MODELS.items():
        source = ROOT / "examples" / "specs" / f"{spec}.mlir"
        work.append((title, make_artefact(args, source), mixer, rows_of(args, source)))
    if args.prepare:
        return
    rates = []
    for _ in range(args.rounds):
        for _, artefact, mixer, rows in work:
            sizes = [row.size for row in rows.values()]
            rates.append(answer([args.python, ROOT / "bench" / "peer_torch.py", f"--threads={args.threads}", "--rates",
                                 *map(int, sizes)]))
            measure(args, artefact, mixer, rows)

    product = statistics.median(rate["product_gflops"] for rate in rates)
    copies = {}
    for rate in rates:
        for size, gigabytes in rate["copy_gigabytes"]:
            copies.setdefault(size, []).append(gigabytes)

    def copy(size):
        nearest = min(copies, key=lambda known: abs(known - size))
        return 1e9 * statistics.median(copies[nearest])

    print(heading(args, rates[0]["peer"]) + "\n")
    print("| model | work | ours, tokens/s | PyTorch, tokens/s | ratio | ours, ms (rounds) "
          "| floor ms, operations / bytes | peak MB, ours / PyTorch |")
    print("|---" * 8 + "|")
    for title, _, _, rows in work:
        for row in rows.values():
            print(row.line(title, 1e9 * product, copy))
    print(f"\nA plain fp32 product of 1024³ on the same cores: {product:.0f} GFLOP/s; copies of "
          + ", ".join(f"{size / 1e6:.0f} MB: {copy(size) / 1e9:.0f} GB/s" for size in sorted(copies)) + ".")


if __name__ == "__main__":
    main()
