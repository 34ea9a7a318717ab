"""What the scripts of this folder share: the machine, artefacts made once, programs that answer in JSON."""

import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def answer(command):
    """What a program that prints one JSON object found."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def add_arguments(parser, work):
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "bench" / work,
                        help="artefacts are made here once and used again")
    parser.add_argument("--threads", type=int, default=2)


def make_artefact(args, source):
    """`source` compiled for `args.target`, or the processor, unless that was done before."""
    artefact = args.work / f"{source.stem}.hbx"
    if not artefact.exists():
        args.work.mkdir(parents=True, exist_ok=True)
        command = [args.bin / "hybridc", source, "-o", artefact, f"--target={getattr(args, 'target', 'cpu')}"]
        # A test is there for the program, not for the code of every level.
        subprocess.run(command + (["--cpu-levels=x86-64"] if getattr(args, "small", False) else []), check=True)
    return artefact


def can_make(args, source):
    """Whether there is an artefact of `source`, or a compiler to make it."""
    return (args.work / f"{source.stem}.hbx").exists() or (args.bin / "hybridc").exists()


def pack(args):
    """The work folder as an archive beside it, for another machine: artefacts are mostly text and shrink tenfold."""
    archive = args.work.with_suffix(".tar.xz")
    with tarfile.open(archive, "w:xz") as packed:
        for path in sorted(args.work.iterdir()):
            packed.add(path, path.name)
    return archive


def unpack(args):
    """Fills the work folder from `args.packed`, where that is given."""
    if args.packed:
        args.work.mkdir(parents=True, exist_ok=True)
        with tarfile.open(args.packed) as packed:
            packed.extractall(args.work, filter="data")


class DriverMemory:
    """The most memory of a card in use while something runs, by `nvidia-smi`, without what was in use before.
    `peak` is None where there is no card."""

    QUERY = ("nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits")

    def __init__(self, device):
        self.peak, self.number = None, device.split(":")[1] if device.startswith("cuda:") else None

    def __enter__(self):
        if self.number:
            query = [*self.QUERY, "-i", self.number]
            self.before = float(subprocess.run(query, capture_output=True, text=True, check=True).stdout)
            self.seen = tempfile.TemporaryFile("w+")
            self.sampler = subprocess.Popen([*query, "-lms", "100"], stdout=self.seen)
        return self

    def __exit__(self, *failure):
        if not self.number:
            return
        self.sampler.terminate()
        self.sampler.wait()
        self.seen.seek(0)
        self.peak = 2 ** 20 * (max([float(line) for line in self.seen if line.strip().isdigit()] + [self.before])
                               - self.before)
        self.seen.close()


def bench_command(args, artefact):
    return [args.bin / "hybrid-run", "bench", artefact, f"--threads={args.threads}", f"--device={args.device}",
            "--json", f"--repeats={args.repeats}"]


def inference_options(lengths):
    return ["--prefill", *map(str, lengths), "--decode", *map(str, lengths)]


def training_options(args, lengths):
    return ["--train", "--length", *map(str, lengths), "--batch",
            *(str(max(args.tokens // length, 1)) for length in lengths)]


def by_kind(found):
    """Results of `hybrid-run bench` by what they are of, each a list in the order of lengths."""
    if "missing" in found:
        return found
    kinds = {"prefill": [], "decode": [], "training": []}
    for result in found["results"]:
        if result["name"].endswith("logits on the host"):
            continue  # as with the peers, logits stay on the device
        kinds[result["name"].split()[0]].append(result)
    return kinds


def bench(args, artefact, lengths, budget, each_s):
    """What `hybrid-run bench` measures at ascending lengths: inference at batch 1, and training steps of
    `args.tokens` tokens. Both from one start of the program; when that fails, inference alone from another, since
    training needs more memory. Two dictionaries: lists of results by kind, or `missing`, a reason."""
    inference = [*bench_command(args, artefact), *inference_options(lengths)]
    if getattr(args, "inference_only", False):
        return by_kind(budget.answer(inference, each_s)), {"missing": "left out"}
    kinds = by_kind(budget.answer([*inference, *training_options(args, lengths)], each_s))
    if "missing" not in kinds:
        return kinds, kinds
    return by_kind(budget.answer(inference, each_s)), kinds


NUMBERS = {
    "parameters": r"^parameters\s+([\d,]+)",
    "cache_per_token": r"^cache bytes per token\s+([\d,]+)",
    "state": r"^state bytes per sequence\s+([\d,]+)",
    "forward": r"^forward, operations per token\s+([\d.]+) ([kMGT]?)",
    "decode": r"^decode at [\d,]+, operations\s+([\d.]+) ([kMGT]?)",
}


def costs(args, source, context):
    """What `hybridc report` counts at a context, kept beside the artefact."""
    place = args.work / f"{source.stem}.{context}.json"
    if not place.exists():
        args.work.mkdir(parents=True, exist_ok=True)
        text = subprocess.run([args.bin / "hybridc", "report", source, f"--context={context}"], check=True,
                              capture_output=True, text=True).stdout
        found = {}
        for name, pattern in NUMBERS.items():
            match = re.search(pattern, text, re.M)
            unit = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(match.group(2) if match.lastindex > 1 else "", 1)
            found[name] = float(match.group(1).replace(",", "")) * unit
        place.write_text(json.dumps(found))
    return json.loads(place.read_text())


def predicted_peaks(args, source, length):
    """Bytes that `hybridc --print-memory-plan` predicts for a training step of `args.tokens` tokens in sequences of
    `length`, and for inference of one sequence; kept beside the artefact."""
    place = args.work / f"{source.stem}.{length}.{args.tokens}.memory.json"
    if not place.exists():
        found = {}
        for kind, tokens in (("training", args.tokens), ("inference", length)):
            text = subprocess.run([args.bin / "hybridc", source, f"--target={args.target}", "--print-memory-plan",
                                   f"--tokens={tokens}", f"--segments={max(tokens // length, 1)}",
                                   f"--longest={length}", "--slots=1", f"--context={length}"], check=True,
                                  capture_output=True, text=True).stdout
            number, unit = re.search(rf"^  {kind} +([\d.]+) (\w+)", text, re.M).groups()
            found[kind] = float(number) * {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}[unit]
        place.write_text(json.dumps(found))
    return json.loads(place.read_text())


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return "unknown processor"


def gpu():
    """The first GPU's name and driver, for tables of a card."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        found = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "a GPU that nvidia-smi does not name"
    return found.replace(", ", ", driver ")


def heading(args, *versions):
    """Where, when and with what a table was made."""
    ours = subprocess.run([args.bin / "hybrid-run", "--version"], capture_output=True, text=True).stdout.strip()
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    command = " ".join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]])
    where = f"{gpu()}; " if getattr(args, "device", "cpu").startswith("cuda") else ""
    return (f"{where}{processor()}, {len(os.sched_getaffinity(0))} cores for these programs, {args.threads} threads; "
            f"{', '.join([ours, *versions])}; {date}; load {os.getloadavg()[0]:.1f} at the end; `{command}`")
