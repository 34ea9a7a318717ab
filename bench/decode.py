#!/usr/bin/env python3
"""Decode time and state size against the context, one mixer at a time.

    bench/decode.py > bench/results/decode.md

Makes one two-layer model per mixer: window, GLA, GDN and SWLA layers, whose cost
must not grow, and NoPE attention as the contrast. Each round times every context
in one process per model, the median of 200 steps; the table gives the median over
the rounds. A picture goes into decode.svg of the work folder.
"""

import argparse
import json
import statistics
import subprocess

from measured import add_arguments, answer, costs, heading, make_artefact

MIXERS = {
    "NoPE, full": "hybrid.softmax heads(4) head_dim(64) position(nope)",
    "window 128": "hybrid.softmax heads(4) head_dim(64) position(rope, base = 10000) window(128)",
    "GLA": "hybrid.gla heads(4) head_dim(64) value_dim(64)",
    "GDN": "hybrid.gdn heads(4) head_dim(64) value_dim(64)",
    "SWLA(1024, 256) of GDN": "hybrid.swla window(1024) stride(256) { hybrid.gdn heads(4) head_dim(64) value_dim(64) }",
}
# Prefill of full attention is quadratic; its growth shows before this.
FULL_LIMIT = 16384


def write_spec(args, name, mixer):
    args.work.mkdir(parents=True, exist_ok=True)
    source = args.work / f"decode_{''.join(c if c.isalnum() else '_' for c in name)}.mlir"
    source.write_text(f"""hybrid.model @decode vocab(256) width(256) layers(2) tied trained(1024) {{
  {mixer}
  hybrid.mlp swiglu(512)
}}
""")
    return source


def measure(args, artefact, contexts):
    """Microseconds per context: the median of 200 steps."""
    found = answer([args.bin / "hybrid-run", "bench", artefact, "--prefill=0", "--decode", *contexts, "--repeats=10",
                    f"--threads={args.threads}", "--json"])
    return [1e3 * row["milliseconds"] for row in found["results"]]


def draw(args, rows):
    blocks, plots = [], []
    for index, (name, (contexts, times, _)) in enumerate(rows.items()):
        blocks += [f"$m{index} << EOD", *(f"{n} {t}" for n, t in zip(contexts, times)), "EOD"]
        plots.append(f"$m{index} with linespoints lw 2 title '{name}'")
    script = "\n".join(["set terminal svg size 720,440 font 'sans,13'", f"set output '{args.work / 'decode.svg'}'",
                        "set logscale x 2", "set logscale y", "set xlabel 'tokens in the state'",
                        "set ylabel 'microseconds per token'", "set key top left", "set grid", *blocks,
                        "plot " + ", ".join(plots)])
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_arguments(parser, "decode")
    parser.add_argument("--contexts", type=int, nargs="+", default=[4096, 16384, 65536])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prepare", action="store_true", help="only make the artefacts and count their states")
    parser.add_argument("--no-picture", action="store_true", help="needs no gnuplot; --redraw makes it later")
    parser.add_argument("--redraw", action="store_true", help="only the picture of the last run in the work folder")
    args = parser.parse_args()

    if args.redraw:
        return draw(args, json.loads((args.work / "decode.json").read_text()))
    work = {}
    for name, mixer in MIXERS.items():
        source = write_spec(args, name, mixer)
        contexts = [n for n in args.contexts if n <= FULL_LIMIT or name != "NoPE, full"]
        state = [costs(args, source, n) for n in contexts]
        work[name] = (make_artefact(args, source), contexts,
                      [cost["state"] + n * cost["cache_per_token"] for n, cost in zip(contexts, state)])
    if args.prepare:
        return
    rounds = {name: [] for name in work}
    for _ in range(args.rounds):
        for name, (artefact, contexts, _) in work.items():
            rounds[name].append(measure(args, artefact, contexts))

    rows = {name: (work[name][1], [statistics.median(times) for times in zip(*found)], work[name][2])
            for name, found in rounds.items()}
    print(heading(args) + "\n")
    print("| mixer | " + " | ".join(f"{n:,} tokens, µs" for n in args.contexts) + " | last / first | state, bytes |")
    print("|---" * (len(args.contexts) + 3) + "|")
    for name, (contexts, times, states) in rows.items():
        shown = [f"{t:.1f}" for t in times] + ["not measured"] * (len(args.contexts) - len(times))
        size = f"{states[0]:,.0f}" if states[0] == states[-1] else f"{states[0]:,.0f} to {states[-1]:,.0f}"
        print(f"| {name} | {' | '.join(shown)} | {times[-1] / times[0]:.2f} | {size} |")
    (args.work / "decode.json").write_text(json.dumps(rows))
    if not args.no_picture:
        draw(args, rows)


if __name__ == "__main__":
    main()
