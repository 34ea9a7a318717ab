#!/usr/bin/env python3
"""Decode time and state size against the context, one mixer at a time.

    bench/decode.py --out build/bench/decode

Compiles one two-layer model per mixer (NoPE attention as the contrast; window,
GLA, GDN and SWLA layers, whose cost must not grow), times decode steps at 4k,
16k and 64k tokens in one process per model, and writes table.md and decode.svg.
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MIXERS = {
    "NoPE, full": "hybrid.softmax heads(4) head_dim(64) position(nope)",
    "window 128": "hybrid.softmax heads(4) head_dim(64) position(rope, base = 10000) window(128)",
    "GLA": "hybrid.gla heads(4) head_dim(64) value_dim(64)",
    "GDN": "hybrid.gdn heads(4) head_dim(64) value_dim(64)",
    "SWLA(1024, 256) of GDN": "hybrid.swla window(1024) stride(256) { hybrid.gdn heads(4) head_dim(64) value_dim(64) }",
}


def spec(mixer):
    return f"""hybrid.model @decode vocab(256) width(256) layers(2) tied trained(1024) {{
  {mixer}
  hybrid.mlp swiglu(512)
}}
"""


def measure(args, name, mixer):
    stem = "".join(c if c.isalnum() else "_" for c in name)
    source, artefact = args.out / f"{stem}.mlir", args.out / f"{stem}.hbx"
    source.write_text(spec(mixer))
    subprocess.run([args.bin / "hybridc", source, "-o", artefact, "--target=cpu"], check=True)
    command = [args.bin / "hybrid-run", "bench", artefact, "--prefill=0", "--decode", *map(str, args.contexts),
               "--repeats=10", "--json"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    found = json.loads(done.stdout)
    return [row["milliseconds"] * 1000 for row in found["results"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "bench" / "decode")
    parser.add_argument("--contexts", type=int, nargs="+", default=[4096, 16384, 65536])
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rows = {name: measure(args, name, mixer) for name, mixer in MIXERS.items()}
    head = "| mixer | " + " | ".join(f"{n} tokens, us" for n in args.contexts) + " | last / first |"
    body = [f"| {name} | " + " | ".join(f"{t:.0f}" for t in times) + f" | {times[-1] / times[0]:.2f} |"
            for name, times in rows.items()]
    table = "\n".join([head, "|---" * (len(args.contexts) + 2) + "|", *body]) + "\n"
    (args.out / "table.md").write_text(table)
    blocks, plots = [], []
    for index, (name, times) in enumerate(rows.items()):
        blocks += [f"$m{index} << EOD", *(f"{n} {t}" for n, t in zip(args.contexts, times)), "EOD"]
        plots.append(f"$m{index} with linespoints lw 2 title '{name}'")
    script = "\n".join(["set terminal svg size 720,440 font 'sans,13'", f"set output '{args.out / 'decode.svg'}'",
                        "set logscale x 2", "set logscale y", "set xlabel 'tokens in the state'",
                        "set ylabel 'microseconds per token'", "set key top left", "set grid", *blocks,
                        "plot " + ", ".join(plots)])
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
    print(table)


if __name__ == "__main__":
    main()
