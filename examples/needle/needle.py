#!/usr/bin/env python3
"""Length generalisation on single-needle retrieval, in one command.

Trains a stack of GLA and NoPE layers (0.2 M parameters) at 64 tokens, then
evaluates the same weights, without further training, at 1x, 2x, ... 16x that
length under four specs: as trained (plain), with log-n scaled NoPE logits, with
sliding-window linear attention (SWLA), and with both. A control with ordinary
gates is trained in the same way. Every seed is shown.

    examples/needle/needle.py

builds what is missing and writes table.md, accuracy.svg and results.json into
build/needle. May be interrupted and started again: it goes on where it was.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

import make_data
import picture

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TRAINED = 64  # tokens, as the specs say
NOISE = 32    # size of the noise alphabet: vocab of the specs without query and marker
RATE = "3e-3"
NEAR_ONE, ORDINARY = "near 1", "ordinary (control)"
# The first variant of each kind of gate is the one that is trained.
SPECS = {
    NEAR_ONE: {"plain": "plain", "log-n": "log_n", "SWLA": "swla", "both": "both"},
    ORDINARY: {"plain": "control", "both": "control_both"},
}


def say(text):
    print(f"[needle {time.strftime('%H:%M:%S')}] {text}", flush=True)


def run(*command):
    """The standard output of a tool, whose progress and errors stay visible."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {pathlib.Path(command[0]).name} failed with exit code {done.returncode}; the command was\n  "
                 + " ".join(map(str, command)))
    return done.stdout


def write_whole(path, text):
    """The file has the old or the new text, never a part."""
    temporary = path.with_suffix(path.suffix + ".part")
    temporary.write_text(text)
    os.replace(temporary, path)


class Results:
    """What is measured so far, kept in a file after every number."""

    def __init__(self, path, settings):
        self.path, self.settings, self.cells = path, settings, {}
        if path.exists():
            before = json.loads(path.read_text())
            for name, value in settings.items():
                if before["settings"].get(name) != value:
                    sys.exit(f"error: {path.parent} was made with {name} {before['settings'].get(name)}, "
                             f"now {name} is {value}; give another folder with --out")
            self.cells = before["accuracy"]

    @staticmethod
    def key(gates, seed, variant, length):
        return f"gates {gates}, seed {seed}, {variant}, {length} tokens"

    def get(self, *which):
        return self.cells.get(self.key(*which))

    def put(self, value, *which):
        self.cells[self.key(*which)] = value
        write_whole(self.path, json.dumps({"settings": self.settings, "accuracy": self.cells}, indent=1) + "\n")


class Experiment:
    def __init__(self, args):
        self.args, self.out = args, pathlib.Path(args.out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.lengths = [TRAINED * multiple for multiple in args.multiples]
        self.results = Results(self.out / "results.json", {
            "steps": args.steps, "batch": args.batch, "learning rate": RATE, "noise alphabet": NOISE,
            "trained length": TRAINED, "rows per accuracy": args.eval_rows})

    def tool(self, name):
        return self.args.bin / name

    def artefact(self, spec):
        return self.out / f"{spec}.hbx"

    def compile(self, spec):
        source, path = HERE / f"{spec}.mlir", self.artefact(spec)
        inputs = (source, self.tool("hybridc"))
        if not path.exists() or path.stat().st_mtime < max(file.stat().st_mtime for file in inputs):
            run(self.tool("hybridc"), source, "-o", path, "--target=cpu", f"--cpu-levels={self.args.cpu_levels}")

    def data(self, name, rows, length, seed):
        path = self.out / f"{name}.safetensors"
        if not path.exists():
            make_data.write_safetensors(str(path), rows, length, make_data.rows(rows, length, NOISE, seed))
        return path

    def train(self, spec, seed):
        """The folder of the finished run. Each seed has rows of its own, and sees each once."""
        folder = self.out / f"{spec}-seed{seed}"
        data = self.data(f"train-seed{seed}", self.args.steps * self.args.batch, TRAINED, seed)
        run(self.tool("hybrid-run"), "train", self.artefact(spec), f"--text={data}", f"--out={folder}",
            f"--batch={self.args.batch}", f"--length={TRAINED}", f"--steps={self.args.steps}", f"--lr={RATE}",
            "--schedule=cosine", "--weight-decay=0.1", "--clip=1.0", f"--seed={seed}",
            "--save-seconds=15")
        data.unlink()
        return folder

    def accuracy(self, spec, folder, length):
        """Percent of the needles that the most probable token names."""
        data = self.data(f"eval-{length}", self.args.eval_rows, length, f"eval {length}")
        text = run(self.tool("hybrid-run"), "eval", self.artefact(spec), f"--weights={folder}", f"--text={data}",
                   f"--length={length}", "--json", "--quiet")
        return 100 * json.loads(text)["exact_match"]

    def one_seed(self, gates, seed):
        """Trains once, then evaluates under every spec of equal parameters."""
        variants = SPECS[gates]
        wanted = [(variant, length) for variant in variants for length in self.lengths
                  if self.results.get(gates, seed, variant, length) is None]
        if wanted:
            begun = time.time()
            folder = self.train(next(iter(variants.values())), seed)
            trained = time.time()
            for variant, length in wanted:
                self.results.put(self.accuracy(variants[variant], folder, length), gates, seed, variant, length)
            say(f"trained in {trained - begun:.0f} s, evaluated in {time.time() - trained:.0f} s")
        for variant in variants:
            say(f"  {variant:6}" + "".join(f"{value:7.1f}" for value in self.row(gates, seed, variant)))

    def row(self, gates, seed, variant):
        return [self.results.get(gates, seed, variant, length) for length in self.lengths]

    def runs(self):
        return ([(NEAR_ONE, seed) for seed in self.args.seeds] +
                [(ORDINARY, seed) for seed in self.args.control_seeds])

    def carry_out(self):
        runs = self.runs()
        say("specs: compiled for the CPU")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(self.compile, dict.fromkeys(spec for gates, _ in runs for spec in SPECS[gates].values())))
        start = time.time()
        for done, (gates, seed) in enumerate(runs):
            left = f", about {(time.time() - start) / done * (len(runs) - done) / 60:.0f} min left" if done else ""
            say(f"run {done + 1} of {len(runs)}{left}: gates {gates}, seed {seed}; percent found at "
                + ", ".join(f"{multiple}x" for multiple in self.args.multiples))
            self.one_seed(gates, seed)

    def table(self):
        head = [f"{multiple}x ({multiple * TRAINED})" for multiple in self.args.multiples]
        lines = ["| gates | seed | variant | " + " | ".join(head) + " |", "|---|---|---|" + "---|" * len(head)]
        for gates, seed in self.runs():
            for variant in SPECS[gates]:
                values = " | ".join(f"{value:.1f}" for value in self.row(gates, seed, variant))
                lines.append(f"| {gates} | {seed} | {variant} | {values} |")
        return "\n".join(lines) + "\n"

    def verdict(self):
        """The claim at the longest length, with the numbers of this run."""
        ends = [(self.row(NEAR_ONE, seed, "plain")[-1], self.row(NEAR_ONE, seed, "both")[-1])
                for gates, seed in self.runs() if gates == NEAR_ONE]
        cured = [both for plain, both in ends if plain <= 85]
        text = f"at {self.args.multiples[-1]}x plain finds 85 % or less in {len(cured)} of {len(ends)} seeds"
        return text + (f"; with both, those find at least {min(cured):.1f} %" if cured else "")

    def report(self):
        write_whole(self.out / "table.md", self.table())
        panels = {variant: [self.row(NEAR_ONE, seed, variant) for seed in self.args.seeds]
                  for variant in SPECS[NEAR_ONE]}
        control = {variant: [self.row(ORDINARY, seed, variant) for seed in self.args.control_seeds]
                   for variant in SPECS[ORDINARY]}
        write_whole(self.out / "accuracy.svg", picture.draw(self.args.multiples, TRAINED, panels, control))
        print(self.table())
        say(self.verdict())
        say(f"table and picture are in {self.out}")


def numbers(lowest):
    """The type of an option that is a list of whole numbers."""
    def parse(text):
        values = [int(part) for part in text.split(",") if part]
        if any(value < lowest for value in values):
            raise argparse.ArgumentTypeError(f"'{text}' has a number under {lowest}")
        return values
    parse.__name__ = "list of whole numbers"
    return parse


def count(text):
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is under 1")
    return int(text)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=ROOT / "build" / "needle", help="folder of the experiment")
    parser.add_argument("--bin", type=pathlib.Path, help="folder of hybridc and hybrid-run; default: they are built")
    parser.add_argument("--cpu-levels", default="x86-64,x86-64-v3,x86-64-v4", help="of hybridc")
    for name, kind, value, what in (("seeds", numbers(0), "0,1,2,3,4,5", "runs with gates near 1"),
                                    ("control-seeds", numbers(0), "0,1", "runs with ordinary gates; may be empty"),
                                    ("multiples", numbers(1), "1,2,4,8,16", "of the trained length, to evaluate at"),
                                    ("steps", count, "1000", "of training"), ("batch", count, "64", "rows in a step"),
                                    ("eval-rows", count, "250", "needles behind each percentage")):
        parser.add_argument("--" + name, type=kind, default=value, help=f"{what}; default: {value}")
    args = parser.parse_args()
    if not args.seeds or not args.multiples:
        parser.error("--seeds and --multiples need at least one number")
    return args


def main():
    args = parse_arguments()
    if not args.bin:
        say("build: the compiler hybridc and the program hybrid-run")
        subprocess.run([ROOT / "scripts" / "build.sh", "release", "hybridc", "hybrid-run"], check=True)
        args.bin = ROOT / "build" / "release" / "bin"
    start = time.time()
    experiment = Experiment(args)
    try:
        experiment.carry_out()
    except KeyboardInterrupt:
        sys.exit("\ninterrupted; started again, it goes on where it was")
    experiment.report()
    say(f"done in {(time.time() - start) / 60:.1f} min")


if __name__ == "__main__":
    main()
