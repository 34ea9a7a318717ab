#!/usr/bin/env python3
"""The efficiency table of hybrid models: one command, one table, one picture.

    bench/efficiency.py --compile-only                    # artefacts and an archive, where the compiler is
    bench/efficiency.py --device=cuda:0 --budget-s=600 --packed=efficiency.tar.xz    # on the card
    bench/efficiency.py --small                           # on a processor, under a minute

For every mix of {RoPE-NoPE, SWA, GLA, GDN} with NoPE attention, three to one by
layers and by heads, and for full attention (RoPE), at every size and length: time
to first token (prefill), time per output token at batch 1, peak memory and cache
bytes in inference, and tokens per second of training steps; each also as a ratio
to full attention at the same size and length. Specs come from
model_template.py, with `hybrid.recompute` where a training step would not fit a
card otherwise (RECOMPUTED). What did not fit or had no time left says so in the table,
which is written anew after each artefact. `--variants` and `--inference-only`
measure a part, `--merge` takes the rest from the .json of an earlier run. Without
a compiler the artefacts of the work folder are used.
"""

import argparse
import datetime
import json
import math
import pathlib
import sys

from budget import Budget
from measured import add_arguments, bench, can_make, costs, heading, make_artefact, pack, unpack
from model_template import MIXERS, MIXES, SIZES, write_spec

#: key, title, how to print it, whether less is better
COLUMNS = (
    ("ttft", "first token, ms", "{:,.1f}", True),
    ("tpot", "per token, ms", "{:,.3f}", True),
    ("peak", "peak, MB", "{:,.0f}", True),
    ("cache", "cache, MB", "{:,.1f}", True),
    ("train", "training, tokens/s", "{:,.0f}", False),
)
TITLES = {"rope": "RoPE (full)", "rope_nope": "RoPE-NoPE", "swa": "SWA-NoPE", "gla": "GLA-NoPE", "gdn": "GDN-NoPE"}
COLOURS = {"rope": "#555555", "rope_nope": "#7a5a3c", "swa": "#0f8a6b", "gla": "#c2570c", "gdn": "#2f6fd0"}
#: Of size and mixer, what training computes again (docs/spec-language.md): everything kept, these need 150 GB.
RECOMPUTED = {("3B", "gdn"): "selective"}


def attributes_of(args, size, mixer):
    """What a spec says of its type and of what training keeps."""
    recompute = RECOMPUTED.get((size, mixer))
    return ((" dtype(bf16)" if args.dtype == "bf16" else "")
            + (f' attributes {{hybrid.recompute = "{recompute}"}}' if recompute else ""))


def variants(args):
    """(mixer, mix), full attention first."""
    if args.variants:
        yield from ((variant.split("/") + [""])[:2] for variant in args.variants)
        return
    yield "rope", ""
    for mixer in args.mixers:
        for mix in args.mixes if mixer != "rope" else ():
            yield mixer, mix


def prepare(args, budget):
    """Artefacts and counted costs of every spec; the rows to measure."""
    rows = []
    for size in args.sizes:
        for mixer, mix in variants(args):
            name, text = write_spec(SIZES[size], mixer, mix, attributes=attributes_of(args, size, mixer))
            name += f"_{args.dtype}"
            source = args.work / f"{name}.mlir"
            if budget.is_spent():
                print(f"not compiled for lack of time: {name}", file=sys.stderr)
                continue
            args.work.mkdir(parents=True, exist_ok=True)
            if not source.exists() or source.read_text() != text:
                for stale in args.work.glob(f"{name}.*"):
                    stale.unlink()
                source.write_text(text)
            if not can_make(args, source):
                print(f"not packed: {name}", file=sys.stderr)
                continue
            artefact = make_artefact(args, source)
            for length in args.lengths:
                rows.append({"size": size, "mixer": mixer, "mix": mix, "length": length, "artefact": artefact,
                             "recompute": RECOMPUTED.get((size, mixer)), "cost": costs(args, source, length)})
    # Full attention of a size is measured first, so that ratios exist whenever time ends.
    rows.sort(key=lambda row: (args.sizes.index(row["size"]), args.lengths.index(row["length"])))
    return rows


def of_each_artefact(rows):
    """Rows of the same artefact together."""
    together = {}
    for row in rows:
        together.setdefault(row["artefact"], []).append(row)
    return together.values()


def measure(args, rows, budget):
    """Fills in the rows of one artefact, its lengths in turn: one start of the program for all of them."""
    for row in rows:
        row["cache"] = (row["cost"]["state"] + row["length"] * row["cost"]["cache_per_token"]) / 1e6
    inference, training = bench(args, rows[0]["artefact"], [row["length"] for row in rows], budget, args.each_s)
    for index, row in enumerate(rows):
        if "missing" in inference:
            row["inference_missing"] = inference["missing"]
        else:
            prefill, decode = inference["prefill"][index], inference["decode"][index]
            row.update(ttft=prefill["milliseconds"], tpot=decode["milliseconds"], peak=prefill["peak_bytes"] / 1e6)
        if "missing" in training:
            row["training_missing"] = training["missing"]
        else:
            row["train"] = training["training"][index]["tokens_per_second"]


def merged(rows, earlier):
    """Rows of both runs, in the order of the table; numbers of `rows` before those of `earlier`."""
    numbers = [key for key, *_ in COLUMNS]
    missing = {key: "training_missing" if key == "train" else "inference_missing" for key in numbers}

    def place(row):
        return (list(SIZES).index(row["size"]), row["length"], MIXERS.index(row["mixer"]), row["mix"] == "head")

    together = {place(row): dict(row) for row in earlier}
    for row in rows:
        kept = together.setdefault(place(row), {})
        kept.update({key: value for key, value in row.items() if key not in missing.values()})
        kept.update({note: row[note] for key, note in missing.items() if note in row and kept.get(key) is None})
        for key in numbers:
            if kept.get(key) is not None and key != "cache":
                kept.pop(missing[key], None)
    return [together[key] for key in sorted(together)]


def with_ratios(rows):
    """Each number of a row beside that of full attention."""
    full = {(row["size"], row["length"]): row for row in rows if row["mixer"] == "rope"}
    for row in rows:
        base = full.get((row["size"], row["length"]), {})
        row["ratios"] = {key: row[key] / base[key] for key, *_ in COLUMNS if row.get(key) and base.get(key)}
    return rows


def table(rows):
    lines = ["| size | tokens | mix | " + " | ".join(title for _, title, *_ in COLUMNS) + " |",
             "|---" * (3 + len(COLUMNS)) + "|"]
    for row in rows:
        cells = []
        for key, _, form, _ in COLUMNS:
            if row.get(key) is None:
                cells.append(row.get("training_missing" if key == "train" else "inference_missing", ""))
            else:
                ratio = row["ratios"].get(key)
                beside = f" ({ratio:.2f}×)" if ratio is not None and row["mixer"] != "rope" else ""
                cells.append(form.format(row[key]) + beside)
        mix = TITLES[row["mixer"]] + (f", {row['mix']}-wise" if row["mix"] else "")
        if row.get("recompute") and row.get("train"):
            mix += f", trained with {row['recompute']} recompute"
        lines.append(f"| {row['size']} | {row['length']:,} | {mix} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def findings(rows):
    """What the table is asked: head-wise windows' memory, and the ratio as models and lengths grow."""
    lines = []
    by = {(row["size"], row["length"], row["mixer"], row["mix"]): row for row in rows}
    for (size, length, mixer, mix), row in by.items():
        layer = by.get((size, length, "swa", "layer"), {})
        if (mixer, mix) == ("swa", "head") and row.get("peak") and layer.get("peak"):
            lines.append(f"- {size} at {length:,}: head-wise SWA peaks at {row['peak'] / layer['peak']:.3f}× the "
                         "layer-wise one.")
    places = list(dict.fromkeys((row["size"], row["length"]) for row in rows))
    for mixer, mix in dict.fromkeys((row["mixer"], row["mix"]) for row in rows if row["mix"]):
        for key, title, _, _ in COLUMNS:
            found = [(size, length, by[size, length, mixer, mix]["ratios"].get(key)) for size, length in places
                     if (size, length, mixer, mix) in by]
            if all(ratio is not None for *_, ratio in found) and len(found) > 1:
                lines.append(f"- {TITLES[mixer]}, {mix}-wise, {title.split(',')[0]}: "
                             + ", ".join(f"{ratio:.2f}× at {size} {length:,}" for size, length, ratio in found) + ".")
    return "\n".join(lines)


def draw(rows):
    """Ratios to full attention as an SVG: a panel per column with a logarithmic scale, a place per
    size and length."""
    places = list(dict.fromkeys((row["size"], row["length"]) for row in rows))
    panels = [column for column in COLUMNS if any(row["ratios"].get(column[0]) for row in rows if row["mix"])]
    width, height, left, top, bottom = 900, 200, 60, 34, 30
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height * len(panels) + 40}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height * len(panels) + 40}" fill="#ffffff"/>']
    x = left
    for mixer in dict.fromkeys(row["mixer"] for row in rows if row["mix"]):
        out.append(f'<circle cx="{x}" cy="18" r="5" fill="{COLOURS[mixer]}"/>'
                   f'<text x="{x + 9}" y="22">{TITLES[mixer]}</text>')
        x += 120
    out.append(f'<text x="{x}" y="22">filled: by layers, hollow: by heads; 1 is full attention</text>')
    for number, (key, title, _, less) in enumerate(panels):
        y0 = 40 + number * height
        ratios = [row["ratios"][key] for row in rows if key in row["ratios"]]
        low, high = math.log2(min(min(ratios), 0.5)) - 0.15, math.log2(max(max(ratios), 2)) + 0.15

        def y(ratio):
            share = (math.log2(ratio) - low) / (high - low)
            return y0 + height - bottom - (height - top - bottom) * share

        out.append(f'<text x="{left}" y="{y0 + 20}" font-weight="bold">{title.split(",")[0]}, ratio to full '
                   f'attention ({"less" if less else "more"} is better)</text>')
        for power in range(math.ceil(low), math.floor(high) + 1):
            out.append(f'<path d="M{left} {y(2.0 ** power):.1f}H{width - 10}" stroke="{"#ddd" if power else "#444"}"/>'
                       f'<text x="{left - 6}" y="{y(2.0 ** power) + 4:.1f}" text-anchor="end">{2.0 ** power:g}</text>')
        step = (width - left - 10) / len(places)
        for place, (size, length) in enumerate(places):
            centre = left + step * (place + 0.5)
            out.append(f'<text x="{centre:.1f}" y="{y0 + height - 12}" text-anchor="middle">{size}, {length:,}</text>')
            here = [row for row in rows if (row["size"], row["length"]) == (size, length) and row["mix"]]
            for index, row in enumerate(here):
                if key not in row["ratios"]:
                    continue
                cx = centre + (index - (len(here) - 1) / 2) * min(step / (len(here) + 1), 14)
                colour = COLOURS[row["mixer"]]
                fill = colour if row["mix"] == "layer" else "#ffffff"
                out.append(f'<circle cx="{cx:.1f}" cy="{y(row["ratios"][key]):.1f}" r="4.5" fill="{fill}" '
                           f'stroke="{colour}" stroke-width="2"/>')
    return "\n".join([*out, "</svg>", ""])


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_arguments(parser, "efficiency")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--target", help="what artefacts are made for; default: what the device needs")
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["376M", "776M", "1B", "3B"])
    parser.add_argument("--mixers", nargs="+", choices=MIXERS, default=list(MIXERS))
    parser.add_argument("--mixes", nargs="+", choices=MIXES, default=list(MIXES))
    parser.add_argument("--variants", nargs="+", metavar="MIXER/MIX", help="these alone, as in: rope swa/head gdn/layer",
                        choices=["rope", *(f"{mixer}/{mix}" for mixer in MIXERS[1:] for mix in MIXES)])
    parser.add_argument("--inference-only", action="store_true")
    parser.add_argument("--merge", type=pathlib.Path, help="the .json of an earlier run, for what this one leaves out")
    parser.add_argument("--lengths", nargs="+", type=int, default=[4096, 32768])
    parser.add_argument("--tokens", type=int, default=32768, help="of a training step")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--budget-s", type=float, default=0, help="stop measuring after so long; 0: never")
    parser.add_argument("--each-s", type=float, default=120, help="no single measurement takes longer")
    parser.add_argument("--compile-only", action="store_true", help="make artefacts and count their work")
    parser.add_argument("--limit-mb", type=float, default=64, help="of the archive of --compile-only")
    parser.add_argument("--packed", type=pathlib.Path, help="the archive that --compile-only made elsewhere")
    parser.add_argument("--small", action="store_true", help="a tiny size, to test this program on a processor")
    parser.add_argument("--out", type=pathlib.Path, help="also write the table here, and beside it .json and .svg")
    parser.add_argument("--redraw", type=pathlib.Path, help="table and picture of a .json of an earlier run")
    args = parser.parse_args()
    if args.small:
        args.sizes, args.lengths, args.tokens, args.repeats = ["small"], [64, 256], 256, 1
    if args.target is None:
        # Made for the card unless it is plain that they are to run here.
        args.target = "cpu" if args.small or (args.device == "cpu" and not args.compile_only) else "cuda:sm_90a"
    return args


def write(args, rows, head):
    """Table, picture and .json of what was measured so far; the table."""
    if args.merge:
        earlier = json.loads(args.merge.read_text())
        rows, head = merged(rows, earlier["rows"]), f"{head}\n\nAll that is not of this run: {earlier['head']}"
    rows = with_ratios(rows)
    text = "\n\n".join(part for part in (head, table(rows), findings(rows)) if part)
    out = args.out or args.work / "efficiency.md"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(f"# Efficiency of hybrid models, {datetime.date.today()}\n\n{text}\n")
    out.with_suffix(".svg").write_text(draw(rows))
    kept = [{key: value for key, value in row.items() if key not in ("artefact", "ratios")} for row in rows]
    out.with_suffix(".json").write_text(json.dumps({"head": head, "rows": kept}, indent=1) + "\n")
    return text


def main():
    args = parse_arguments()
    if args.redraw:
        found = json.loads(args.redraw.read_text())
        print(write(args, found["rows"], found["head"]))
        return
    budget = Budget(args.budget_s)
    unpack(args)
    rows = prepare(args, budget)
    if args.compile_only:
        archive = pack(args)
        size = archive.stat().st_size / 1e6
        print(f"{len({row['artefact'] for row in rows})} artefacts, {size:.1f} MB in {archive}")
        if size > args.limit_mb:
            sys.exit(f"that is more than {args.limit_mb:g} MB; leave out sizes or mixers, or raise --limit-mb")
        return
    measured = []
    for group in of_each_artefact(rows):
        measure(args, group, budget)
        measured += group
        for row in group:
            print(f"{row['size']} {row['mixer']} {row['mix']} {row['length']}: "
                  + ", ".join(f"{key} {row[key]:.3g}" for key, *_ in COLUMNS if row.get(key) is not None),
                  file=sys.stderr, flush=True)
        write(args, measured, heading(args))
    print(write(args, rows, heading(args)))


if __name__ == "__main__":
    main()
