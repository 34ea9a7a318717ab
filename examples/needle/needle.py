#!/usr/bin/env python3
"""Length generalisation on single-needle retrieval, in one command.

Trains a GLA-NoPE stack of about 0.2 M parameters at 64 tokens, then evaluates
the same weights, without further training, at 1x, 2x, ... 16x that length
under four specs: as trained (plain), with log-n scaled NoPE logits, with
sliding-window linear attention (SWLA), and with both. A control with ordinary
gates is trained and evaluated the same way. Every seed is shown.

    examples/needle/needle.py --out build/needle

Writes table.md, results.json and accuracy.svg into the folder. May be
interrupted and started again: finished runs are kept.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import make_data

HERE = pathlib.Path(__file__).resolve().parent
TRAINED = 64
NOISE = 32
VARIANTS = {"plain": "plain.mlir", "log-n": "log_n.mlir", "SWLA": "swla.mlir", "both": "both.mlir"}
CONTROL = {"plain": "control.mlir"}


def say(text):
    print(f"[needle {time.strftime('%H:%M:%S')}] {text}", flush=True)


def run(command):
    """Runs a tool; its output is shown only when it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nfailed with exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Experiment:
    def __init__(self, args):
        self.args = args
        self.out = pathlib.Path(args.out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.lengths = [TRAINED << i for i in range(5)]

    def data(self, name, rows, length, seed):
        path = self.out / f"{name}.safetensors"
        if not path.exists():
            make_data.write_safetensors(str(path), rows, length, make_data.rows(rows, length, NOISE, seed))
        return path

    def artefact(self, spec):
        source, path = HERE / spec, self.out / (pathlib.Path(spec).stem + ".hbx")
        if not path.exists() or path.stat().st_mtime < source.stat().st_mtime:
            run([self.args.bin / "hybridc", source, "-o", path, "--target=cpu"])
        return path

    def train(self, spec, seed):
        """The folder of the finished run."""
        folder = self.out / f"{pathlib.Path(spec).stem}-seed{seed}"
        # Fresh rows per seed: a run sees every row once.
        data = self.data(f"train-seed{seed}", self.args.steps * self.args.batch, TRAINED, seed)
        run([self.args.bin / "hybrid-run", "train", self.artefact(spec), f"--text={data}", f"--out={folder}",
             f"--batch={self.args.batch}", f"--length={TRAINED}", f"--steps={self.args.steps}", "--lr=3e-3",
             "--warmup=100", "--schedule=cosine", "--weight-decay=0.1", "--clip=1.0", f"--seed={seed}"])
        return folder

    def accuracy(self, spec, folder, length):
        """Percent of labelled spans that are exactly right."""
        data = self.data(f"eval-{length}", self.args.eval_rows, length, f"eval {length}")
        text = run([self.args.bin / "hybrid-run", "eval", self.artefact(spec), f"--weights={folder}", f"--text={data}",
                    f"--length={length}", "--json"])
        return 100.0 * json.loads(text)["exact_match"]

    def results(self):
        rows = []
        for kind, variants, seeds in (("gates near 1", VARIANTS, range(self.args.seeds)),
                                      ("ordinary gates (control)", CONTROL, range(self.args.control_seeds))):
            for seed in seeds:
                spec = variants["plain"]
                start = time.time()
                folder = self.train(spec, seed)
                say(f"{kind}, seed {seed}: trained in {time.time() - start:.0f} s")
                for variant, other in variants.items():
                    found = [self.accuracy(other, folder, length) for length in self.lengths]
                    rows.append({"gates": kind, "seed": seed, "variant": variant, "accuracy": found})
                    say(f"  {variant:6s}" + "".join(f"{value:7.1f}" for value in found))
        return rows

    def table(self, rows):
        head = "| gates | seed | variant | " + " | ".join(f"{n // TRAINED}x ({n})" for n in self.lengths) + " |"
        rule = "|---|---|---|" + "---|" * len(self.lengths)
        body = [f"| {r['gates']} | {r['seed']} | {r['variant']} | " +
                " | ".join(f"{value:.1f}" for value in r["accuracy"]) + " |" for r in rows]
        return "\n".join([head, rule, *body]) + "\n"

    def picture(self, rows):
        """One line per variant: the mean over the seeds, every seed as a dot."""
        blocks, plots = [], []
        colours = {"plain": "#c44e52", "log-n": "#dd8452", "SWLA": "#4c72b0", "both": "#2a7f3f"}
        for variant, colour in colours.items():
            series = [r["accuracy"] for r in rows if r["variant"] == variant and r["gates"] == "gates near 1"]
            if not series:
                continue
            name = "$" + variant.replace("-", "_")
            lines = [f"{n} {sum(s[i] for s in series) / len(series)}" for i, n in enumerate(self.lengths)]
            dots = [f"{n} {s[i]}" for s in series for i, n in enumerate(self.lengths)]
            blocks += [f"{name} << EOD", *lines, "EOD", f"{name}_seeds << EOD", *dots, "EOD"]
            plots += [f"{name} with lines lw 2 lc rgb '{colour}' title '{variant}'",
                      f"{name}_seeds with points pt 7 ps 0.5 lc rgb '{colour}' notitle"]
        script = "\n".join([
            "set terminal svg size 720,440 font 'sans,13'", f"set output '{self.out / 'accuracy.svg'}'",
            "set title 'Needle found, trained at 64 tokens'", "set xlabel 'tokens'", "set ylabel 'percent right'",
            "set logscale x 2", "set yrange [0:105]", "set key bottom left", "set grid", *blocks,
            "plot " + ", ".join(plots)])
        subprocess.run(["gnuplot"], input=script, text=True, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="build/needle")
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parents[1] / "build" / "bin")
    for name, value in (("seeds", 4), ("control-seeds", 1), ("steps", 1200), ("batch", 64), ("eval-rows", 500)):
        parser.add_argument("--" + name, type=int, default=value)
    args = parser.parse_args()
    start = time.time()
    experiment = Experiment(args)
    rows = experiment.results()
    table = experiment.table(rows)
    (experiment.out / "table.md").write_text(table)
    (experiment.out / "results.json").write_text(json.dumps(rows, indent=1) + "\n")
    experiment.picture(rows)
    print(table)
    say(f"done in {time.time() - start:.0f} s; table and picture in {experiment.out}")


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C")
    main()
