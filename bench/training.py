#!/usr/bin/env python3
"""Ours against eager PyTorch on the demo and its GLA twin, interleaved.

    bench/training.py --python=/path/to/python-with-torch > bench/results/training.md

Every round times each program once, in its own process, one after the other on
the same cores; the table gives medians over the rounds and their ratio. Beside
them stands the rate of a plain fp32 product in PyTorch, and what share of it the
arithmetic of the step would need at our rate (six operations per parameter and
token: a floor, the mixing itself not counted).
"""

import argparse
import datetime
import json
import pathlib
import platform
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = {"demo (GDN-NoPE)": ("demo", "gdn"), "demo_gla (GLA-NoPE)": ("demo_gla", "gla")}
SHAPE = ["--width=128", "--layers=4", "--heads=4", "--key=32", "--value=32", "--inner=384", "--attention-heads=4",
         "--attention-dim=32"]


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def ours(args, spec):
    artefact = args.work / f"{spec}.hbx"
    if not artefact.exists():
        args.work.mkdir(parents=True, exist_ok=True)
        subprocess.run([args.bin / "hybridc", ROOT / "examples" / "specs" / f"{spec}.mlir", "-o", artefact,
                        "--target=cpu"], check=True)
    step = run([args.bin / "hybrid-run", "bench", artefact, "--train", f"--batch={args.batch}",
                f"--length={args.length}", "--prefill=0", "--decode=0", "--repeats=3", "--json"])
    prefill = run([args.bin / "hybrid-run", "bench", artefact, f"--prefill={args.prefill}", "--decode=0",
                   "--repeats=3", "--json"])
    return step, prefill


def peer(args, mixer):
    base = [args.python, ROOT / "bench" / "peer_torch.py", "--mixer", mixer, *SHAPE]
    step = run([*base, f"--batch={args.batch}", f"--length={args.length}", "--steps=4"])
    prefill = run([*base, f"--prefill={args.prefill}", "--steps=4"])
    return step, prefill


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", required=True, help="a python that has torch")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "bench")
    for name, value in (("batch", 16), ("length", 256), ("prefill", 8192), ("rounds", 3)):
        parser.add_argument("--" + name, type=int, default=value)
    args = parser.parse_args()

    print(f"{datetime.date.today()}, {platform.processor() or platform.machine()}, "
          f"{sum(1 for line in open('/proc/cpuinfo') if line.startswith('processor'))} cores; "
          f"`{' '.join(sys.argv)}`\n")
    print("| model | work | ours, tokens/s | PyTorch, tokens/s | ratio | peak MB, ours / PyTorch "
          "| share of product rate |")
    print("|---|---|---|---|---|---|---|")
    for title, (spec, mixer) in MODELS.items():
        rates = {"train": ([], []), "prefill": ([], [])}
        for _ in range(args.rounds):
            found, other = ours(args, spec), peer(args, mixer)
            rates["train"][0].append(found[0]["results"][0]["tokens_per_second"])
            rates["prefill"][0].append(found[1]["results"][0]["tokens_per_second"])
            rates["train"][1].append(statistics.median(other[0]["tokens_per_second"]))
            rates["prefill"][1].append(statistics.median(other[1]["tokens_per_second"]))
        for index, (work, (mine, theirs)) in enumerate(rates.items()):
            a, b = statistics.median(mine), statistics.median(theirs)
            operations = (6 if work == "train" else 2) * other[0]["parameters"]
            share = a * operations / (other[0]["product_gflops"] * 1e9)
            shape = f"{args.batch} x {args.length}" if work == "train" else f"1 x {args.prefill}"
            print(f"| {title} | {work} {shape} | {a:.0f} | {b:.0f} | {a / b:.2f} "
                  f"| {found[index]['peak_kilobytes'] / 1024:.0f} / {other[index]['peak_mb']} | {100 * share:.0f} % |")


if __name__ == "__main__":
    main()
