#!/usr/bin/env python3
"""Training and inference of whole models beside PyTorch: one command, one table.

    bench/whole_models.py --compile-only          # artefacts and an archive, where the compiler is
    bench/whole_models.py --device=cuda:0 --python=python3 --budget-s=600 --packed=whole_models.tar.xz
    bench/whole_models.py --small --python=python3                         # on a processor

The 376M and 776M models of model_template.py (GDN-NoPE, GLA-NoPE, SWA-NoPE, RoPE)
at 4k and 32k. Training: tokens per second of steps of `--tokens` tokens, share of
the machine's rate that the model's operations come to (three times the forward,
as `hybridc report` counts it), peak memory. Inference at batch 1: time to first
token, time per output token, cache bytes. The peer (peer_whole.py) has the same
shapes and runs in the same rounds. What fails or has no time left says so.
"""

import argparse
import datetime
import itertools
import json
import pathlib
import sys

from budget import Budget
from measured import ROOT, add_arguments, bench, can_make, costs, heading, make_artefact, pack, unpack
from model_template import SIZES, write_spec

#: Operations per second of a card's products, for the utilisation: dense bf16, and f32 as three in tf32.
PEAKS = {"bf16": 989.4e12, "f32": 494.7e12 / 3}
TITLES = {"gdn": "GDN-NoPE", "gla": "GLA-NoPE", "swa": "SWA-NoPE", "rope": "RoPE", "rope_nope": "RoPE-NoPE"}


def prepare(args, budget):
    rows = []
    args.work.mkdir(parents=True, exist_ok=True)
    for size in args.sizes:
        for mixer in args.mixers:
            name, text = write_spec(SIZES[size], mixer, "layer",
                                    attributes=" dtype(bf16)" if args.dtype == "bf16" else "")
            source = args.work / f"{name}_{args.dtype}.mlir"
            if not source.exists() or source.read_text() != text:
                for stale in args.work.glob(f"{source.stem}.*"):
                    stale.unlink()
                source.write_text(text)
            if budget.is_spent():
                print(f"not compiled for lack of time: {name}", file=sys.stderr)
                continue
            if not can_make(args, source):
                print(f"not packed: {source.stem}", file=sys.stderr)
                continue
            artefact = make_artefact(args, source)
            rows += [{"size": size, "mixer": mixer, "length": length, "artefact": artefact,
                      "cost": costs(args, source, length)} for length in args.lengths]
    return rows


def measure_ours(args, rows, budget):
    """Of one artefact at all lengths; fills in `ours` of its rows."""
    inference, training = bench(args, rows[0]["artefact"], [row["length"] for row in rows], budget, args.each_s)
    for index, row in enumerate(rows):
        row["ours"] = {"training": training, "inference": inference}
        if "missing" not in training:
            found = training["training"][index]
            row["ours"]["training"] = {"tokens_per_second": found["tokens_per_second"], "peak": found["peak_bytes"]}
        if "missing" not in inference:
            prefill, decode = inference["prefill"][index], inference["decode"][index]
            row["ours"]["inference"] = {
                "ttft": prefill["milliseconds"], "tpot": decode["milliseconds"], "peak": prefill["peak_bytes"],
                "cache": row["cost"]["state"] + row["length"] * row["cost"]["cache_per_token"]}


def measure_peer(args, rows, budget):
    """The same of the peer, one process for each kind of work."""
    row = rows[0]
    command = [args.python, ROOT / "bench" / "peer_whole.py", "--size", row["size"], "--mixer", row["mixer"],
               f"--device={args.device}", f"--dtype={args.peer_dtype}", f"--tokens={args.tokens}",
               f"--repeats={args.repeats}", f"--threads={args.threads}", "--lengths",
               *(str(row["length"]) for row in rows)]
    for row in rows:
        row["peer"] = {}
    for work in ("training", "inference"):
        found = {"missing": "no --python" if not args.python else "left out"}
        if args.python and work in args.peer_work:
            found = budget.answer([*command, f"--work={work}"], args.each_s)
        for index, row in enumerate(rows):
            row["peer"][work] = found if "missing" in found else found["results"][index]


def cell(ours, peer, key, form, less, scale=1.0):
    """`ours / peer (ratio)`, where the ratio is above 1 when ours is better."""
    def show(side):
        return form.format(scale * side[key]) if key in side else side.get("missing", "")

    if key not in ours or key not in peer:
        return f"{show(ours)} / {show(peer)}"
    ratio = peer[key] / ours[key] if less else ours[key] / peer[key]
    return f"{show(ours)} / {show(peer)} (**{ratio:.2f}**)"


def utilisation(args, row, side, dtype):
    rate = side.get("tokens_per_second")
    peak = args.peak_tflops * 1e12 if args.peak_tflops else (PEAKS[dtype] if args.device != "cpu" else None)
    return f"{100 * 3 * row['cost']['forward'] * rate / peak:.1f} %" if rate and peak else "–"


def table(args, rows):
    lines = ["| model | tokens | training, tokens/s | utilisation | training peak, MB | first token, ms "
             "| per token, ms | inference peak, MB | cache, MB |", "|---" * 9 + "|"]
    for row in rows:
        (training, inference), (their_training, their_inference) = (
            (row[side]["training"], row[side]["inference"]) for side in ("ours", "peer"))
        shares = [utilisation(args, row, training, args.dtype), utilisation(args, row, their_training, args.peer_dtype)]
        lines.append("| " + " | ".join([
            f"{row['size']} {TITLES[row['mixer']]}", f"{row['length']:,}",
            cell(training, their_training, "tokens_per_second", "{:,.0f}", less=False), " / ".join(shares),
            cell(training, their_training, "peak", "{:,.0f}", True, 1e-6),
            cell(inference, their_inference, "ttft", "{:,.1f}", True),
            cell(inference, their_inference, "tpot", "{:,.3f}", True),
            cell(inference, their_inference, "peak", "{:,.0f}", True, 1e-6),
            cell(inference, their_inference, "cache", "{:,.2f}", True, 1e-6)]) + " |")
    return "\n".join(lines)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_arguments(parser, "whole_models")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--target", help="what artefacts are made for; default: what the device needs")
    parser.add_argument("--python", help="a python that has torch; none: ours alone")
    parser.add_argument("--dtype", choices=PEAKS, default="f32", help="of our data")
    parser.add_argument("--peer-dtype", choices=PEAKS, default="bf16", help="of the peer's autocast")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["376M", "776M"])
    parser.add_argument("--mixers", nargs="+", choices=TITLES, default=["gdn", "gla", "swa", "rope"])
    parser.add_argument("--lengths", nargs="+", type=int, default=[4096, 32768])
    parser.add_argument("--peer-work", nargs="*", choices=("training", "inference"), default=["training", "inference"],
                        help="what the peer is asked for; its recurrences tune themselves for minutes")
    parser.add_argument("--tokens", type=int, default=32768, help="of a training step")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peak-tflops", type=float, default=0, help="for the utilisation of both; default: an H200's")
    parser.add_argument("--budget-s", type=float, default=0, help="stop measuring after so long; 0: never")
    parser.add_argument("--each-s", type=float, default=200, help="no single measurement takes longer")
    parser.add_argument("--compile-only", action="store_true", help="make artefacts and count their work")
    parser.add_argument("--packed", type=pathlib.Path, help="the archive that --compile-only made elsewhere")
    parser.add_argument("--small", action="store_true", help="a tiny size, to test this program on a processor")
    parser.add_argument("--out", type=pathlib.Path, help="also write the table here, and beside it .json")
    args = parser.parse_args()
    if args.small:
        args.sizes, args.lengths, args.tokens, args.repeats = ["small"], [64], 128, 1
        args.peer_dtype = "f32"
    if args.target is None:
        args.target = "cpu" if args.small or (args.device == "cpu" and not args.compile_only) else "cuda:sm_90a"
    return args


def main():
    args = parse_arguments()
    budget = Budget(args.budget_s)
    unpack(args)
    rows = prepare(args, budget)
    if args.compile_only:
        archive = pack(args)
        print(f"{len({row['artefact'] for row in rows})} artefacts, {archive.stat().st_size / 1e6:.1f} MB in {archive}")
        return
    for _, group in itertools.groupby(rows, lambda row: row["artefact"]):
        group = list(group)
        measure_ours(args, group, budget)
        measure_peer(args, group, budget)
        for row in group:
            print(row["size"], row["mixer"], row["length"], json.dumps({"ours": row["ours"], "peer": row["peer"]}),
                  file=sys.stderr)
    versions = {side.get("peer") for row in rows for side in row["peer"].values()} - {None}
    text = (f"{heading(args, *sorted(versions))}\n\nOurs / PyTorch, and in brackets how many times better ours is. "
            f"Our data are {args.dtype}, the peer's {args.peer_dtype}.\n\n{table(args, rows)}")
    print(text)
    out = args.out or args.work / "whole_models.md"
    out.write_text(f"# Whole models beside PyTorch, {datetime.date.today()}\n\n{text}\n")
    for row in rows:
        del row["artefact"]
    out.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
