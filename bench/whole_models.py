#!/usr/bin/env python3
"""Training and inference of whole models beside PyTorch: one command, one table.

    bench/whole_models.py --compile-only          # artefacts and an archive, where the compiler is
    bench/whole_models.py --device=cuda:0 --python=python3 --warm-s=150 --budget-s=580 --packed=whole_models.tar.xz
    bench/whole_models.py --small --python=python3                         # on a processor

The 376M and 776M models of model_template.py (GDN-NoPE, GLA-NoPE, SWA-NoPE, RoPE)
at 4k and 32k. Training: tokens per second of steps of `--tokens` tokens, share of
the machine's rate that the model's operations come to (three times the forward,
as `hybridc report` counts it), peak memory, the end of the first step from the
program's start, and the peak that `hybridc --print-memory-plan` predicts beside
what the driver counts. Inference at batch 1: time to first token, time per output
token, cache bytes. The peer (peer_whole.py) has the same shapes and runs right
after ours, in the order of `--models`. On a card `--warm-s` first
lets all peers fill their caches of compiled code side by side, as they would take
minutes each alone. What fails or has no time left says so; the table is written
anew after each model.
"""

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

from budget import Budget
from measured import (ROOT, DriverMemory, add_arguments, bench_command, by_kind, can_make, costs, heading,
                      inference_options, make_artefact, pack, predicted_peaks, training_options, unpack)
from model_template import SIZES, write_spec

#: Operations per second of a card's products, for the utilisation: dense bf16, and f32 as three in tf32.
PEAKS = {"bf16": 989.4e12, "f32": 494.7e12 / 3}
#: The order in which they are measured: time may end.
MODELS = ("376M/gdn", "376M/gla", "376M/swa", "376M/rope", "776M/swa", "776M/rope", "776M/gdn", "776M/gla")
TITLES = {"gdn": "GDN-NoPE", "gla": "GLA-NoPE", "swa": "SWA-NoPE", "rope": "RoPE", "rope_nope": "RoPE-NoPE"}


def prepare(args, budget):
    """The rows to measure, a list of lengths for each model."""
    groups = []
    args.work.mkdir(parents=True, exist_ok=True)
    for model in args.models:
        size, mixer = model.split("/")
        name, text = write_spec(SIZES[size], mixer, "layer", attributes=" dtype(bf16)" if args.dtype == "bf16" else "")
        source = args.work / f"{name}_{args.dtype}.mlir"
        if not source.exists() or source.read_text() != text:
            for stale in args.work.glob(f"{source.stem}.*"):
                stale.unlink()
            source.write_text(text)
        if budget.is_spent():
            print(f"not compiled for lack of time: {name}", file=sys.stderr)
        elif not can_make(args, source):
            print(f"not packed: {source.stem}", file=sys.stderr)
        else:
            artefact = make_artefact(args, source)
            groups.append([{"size": size, "mixer": mixer, "length": length, "artefact": artefact,
                            "cost": costs(args, source, length), "predicted": predicted_peaks(args, source, length),
                            "ours": {}, "peer": {}} for length in args.lengths])
    return groups


def measure_ours(args, rows, budget):
    """Of one artefact at all lengths, training and inference each from a start of the program; fills in `ours`."""
    command, lengths = bench_command(args, rows[0]["artefact"]), [row["length"] for row in rows]
    with DriverMemory(args.device) as memory:
        training = by_kind(budget.answer([*command, "--prefill=0", "--decode=0", *training_options(args, lengths)],
                                         args.each_s))
    driver = {"driver_peak": memory.peak} if memory.peak else {}
    inference = by_kind(budget.answer([*command, *inference_options(lengths)], args.each_s))
    for index, row in enumerate(rows):
        row["ours"] = {"training": training, "inference": inference}
        if "missing" not in training:
            found = training["training"][index]
            row["ours"]["training"] = {"tokens_per_second": found["tokens_per_second"], "peak": found["peak_bytes"],
                                       "first_s": found["first_ended_s"], **driver}
        if "missing" not in inference:
            prefill, decode = inference["prefill"][index], inference["decode"][index]
            row["ours"]["inference"] = {
                "ttft": prefill["milliseconds"], "tpot": decode["milliseconds"], "peak": prefill["peak_bytes"],
                "cache": row["cost"]["state"] + row["length"] * row["cost"]["cache_per_token"]}


def peer_command(args, row, lengths, work, threads):
    return [args.python, ROOT / "bench" / "peer_whole.py", "--size", row["size"], "--mixer", row["mixer"],
            f"--device={args.device}", f"--dtype={args.peer_dtype}", f"--tokens={args.tokens}",
            f"--repeats={args.repeats}", f"--threads={threads}", "--lengths", *map(str, lengths), "--work", *work]


def warm_peers(args, groups, budget):
    """All peers compile side by side, a process for each model and length, and four for FLA's kernels of a model;
    seconds that it took."""
    running, begun = [], time.monotonic()
    limit = min(limit for limit in (args.warm_s, budget.left()) if limit is not None)

    def start(name, command):
        environment = dict(os.environ, TORCHINDUCTOR_COMPILE_THREADS="4")
        running.append((name, subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                               text=True, env=environment)))

    for rows in groups:
        name, lengths = f"{rows[0]['size']} {rows[0]['mixer']}", [row["length"] for row in rows]
        for part in range(4 if rows[0]["mixer"] in ("gla", "gdn") else 0):
            start(f"{name} kernels {part}", [*peer_command(args, rows[0], lengths, ["kernels"], 2), f"--part={part}/4"])
        for length in lengths:
            start(f"{name} {length}", peer_command(args, rows[0], [length], ["warm"], 2))
    for name, process in running:
        try:
            out, problems = process.communicate(timeout=max(limit - (time.monotonic() - begun), 0.1))
        except subprocess.TimeoutExpired:
            process.kill()
            out, problems = process.communicate()[0], f"stopped after {limit:.0f} s"
        said = out.strip() or (problems.strip().splitlines() or [f"exit code {process.returncode}"])[-1][:200]
        print(f"warm {name}: {said}", file=sys.stderr)
    return time.monotonic() - begun


def measure_peer(args, rows, budget, at_most):
    """The same of the peer, one process."""
    found, reason = [], "no --python" if not args.python else "left out"
    if args.python and args.peer_work:
        command = peer_command(args, rows[0], [row["length"] for row in rows], args.peer_work, args.threads)
        found, reason = budget.answers(command, at_most)
    for row in rows:
        row["peer"] = {work: {"missing": reason} for work in ("training", "inference")}
        row["peer"] |= {result["work"]: result for result in found if result["length"] == row["length"]}


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


def predicted(rows):
    """The largest prediction of a model's training steps beside what the driver counted for all of them."""
    seen, expected = rows[0]["ours"]["training"].get("driver_peak"), max(row["predicted"]["training"] for row in rows)
    if not seen:
        return f"{expected / 1e6:,.0f} / –"
    return f"{expected / 1e6:,.0f} / {seen / 1e6:,.0f} ({100 * (expected / seen - 1):+.1f} %)"


def table(args, groups):
    lines = ["| model | tokens | training, tokens/s | utilisation | training peak, MB | predicted / driver, MB "
             "| first step, s | first token, ms | per token, ms | inference peak, MB | cache, MB |", "|---" * 11 + "|"]
    for rows in groups:
        for row in rows:
            (training, inference), (their_training, their_inference) = (
                (row[side]["training"], row[side]["inference"]) for side in ("ours", "peer"))
            shares = [utilisation(args, row, training, args.dtype),
                      utilisation(args, row, their_training, args.peer_dtype)]
            lines.append("| " + " | ".join([
                f"{row['size']} {TITLES[row['mixer']]}", f"{row['length']:,}",
                cell(training, their_training, "tokens_per_second", "{:,.0f}", less=False), " / ".join(shares),
                cell(training, their_training, "peak", "{:,.0f}", True, 1e-6),
                predicted(rows) if row is rows[0] else "",
                # Later lengths begin when the ones before have ended.
                cell(training, their_training, "first_s", "{:,.1f}", True) if row is rows[0] else "",
                cell(inference, their_inference, "ttft", "{:,.1f}", True),
                cell(inference, their_inference, "tpot", "{:,.3f}", True),
                cell(inference, their_inference, "peak", "{:,.0f}", True, 1e-6),
                cell(inference, their_inference, "cache", "{:,.2f}", True, 1e-6)]) + " |")
    return "\n".join(lines)


def write(args, groups, note):
    """The table of what was measured so far, and beside it .json."""
    versions = {side.get("peer") for rows in groups for row in rows for side in row["peer"].values()} - {None}
    text = (f"{heading(args, *sorted(versions))}\n\nOurs / PyTorch, and in brackets how many times better ours is. "
            f"Our data are {args.dtype}, the peer's {args.peer_dtype}. {note}\n\n{table(args, groups)}")
    out = args.out or args.work / "whole_models.md"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(f"# Whole models beside PyTorch, {datetime.date.today()}\n\n{text}\n")
    rows = [{key: value for key, value in row.items() if key != "artefact"} for rows in groups for row in rows]
    out.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
    return text


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_arguments(parser, "whole_models")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--target", help="what artefacts are made for; default: what the device needs")
    parser.add_argument("--python", help="a python that has torch; none: ours alone")
    parser.add_argument("--dtype", choices=PEAKS, default="f32", help="of our data")
    parser.add_argument("--peer-dtype", choices=PEAKS, default="bf16", help="of the peer's autocast")
    parser.add_argument("--models", nargs="+", choices=[f"{size}/{mixer}" for size in SIZES for mixer in TITLES],
                        metavar="SIZE/MIXER", default=list(MODELS), help="in this order; default: " + " ".join(MODELS))
    parser.add_argument("--lengths", nargs="+", type=int, default=[4096, 32768])
    parser.add_argument("--peer-work", nargs="*", choices=("training", "inference"), default=["training", "inference"],
                        help="what the peer is asked for")
    parser.add_argument("--warm-s", type=float, default=0, help="at most so long for all peers to compile side by side")
    parser.add_argument("--tokens", type=int, default=32768, help="of a training step")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peak-tflops", type=float, default=0, help="for the utilisation of both; default: an H200's")
    parser.add_argument("--budget-s", type=float, default=0, help="stop measuring after so long; 0: never")
    parser.add_argument("--each-s", type=float, default=200, help="no single measurement takes longer")
    parser.add_argument("--reserve-s", type=float, default=12, help="of the budget, for ours of each model to come")
    parser.add_argument("--compile-only", action="store_true", help="make artefacts and count their work")
    parser.add_argument("--packed", type=pathlib.Path, help="the archive that --compile-only made elsewhere")
    parser.add_argument("--small", action="store_true", help="a tiny size, to test this program on a processor")
    parser.add_argument("--out", type=pathlib.Path, help="also write the table here, and beside it .json")
    args = parser.parse_args()
    if args.small:
        args.models = [f"small/{mixer}" for mixer in ("gdn", "gla", "swa", "rope")]
        args.lengths, args.tokens, args.repeats, args.peer_dtype = [64], 128, 1, "f32"
    if args.target is None:
        args.target = "cpu" if args.small or (args.device == "cpu" and not args.compile_only) else "cuda:sm_90a"
    return args


def main():
    args = parse_arguments()
    budget = Budget(args.budget_s)
    unpack(args)
    groups = prepare(args, budget)
    if args.compile_only:
        archive = pack(args)
        print(f"{len(groups)} artefacts, {archive.stat().st_size / 1e6:.1f} MB in {archive}")
        return
    note = ""
    if args.warm_s and args.python and args.device != "cpu":
        note = f"The peers compiled side by side for {warm_peers(args, groups, budget):.0f} s before."
    for index, rows in enumerate(groups):
        measure_ours(args, rows, budget)
        # Ours of the models to come are sure of their time.
        left = budget.left()
        limits = [args.each_s] + ([max(left - args.reserve_s * (len(groups) - index - 1), 1)] if left else [])
        measure_peer(args, rows, budget, min(limits))
        for row in rows:
            print(row["size"], row["mixer"], row["length"], json.dumps({"ours": row["ours"], "peer": row["peer"]}),
                  f"{left or 0:.0f} s left", file=sys.stderr, flush=True)
        write(args, groups[:index + 1], note)
    print(write(args, groups, note))


if __name__ == "__main__":
    main()
