#!/usr/bin/env python3
"""Compiled models on a device beside what is known of them.

    compare.py --device=cuda:0 oracle FOLDER     recorded cases of record-reference
    compare.py --device=cuda:0 processor FOLDER  random stacks, beside the processor

Cases of the oracle are a model's weights (NAME.safetensors), its artefacts
(NAME.hbx, and NAME-TYPE.hbx in another compute type) and NAME.LENGTH.json. Weights
are numbers of bf16, so one case serves all types. Loss and gradients are those of
one call; the last two rows of logits come from a prefill of all but one token and
from a step. Random stacks (random-SEED.hbx and .json, random-TYPE-SEED) are compared
with the same artefact on the processor.

An artefact says its compute type, which decides what is measured. In f32: the
largest error, relative to the largest value of a tensor, with the bounds of the
compiler's own tests. In a narrower type: the root mean square of the error, relative
to that of the tensor. There a kernel is bound to the errors below (a recurrence) or
to a multiple of what the same precision costs anyway (softmax), and a model has the
roundings of all its kernels; so a model on a device may be off as far as one kernel
may, or by the multiple of what the same artefact is off on the processor, and never
further than random models may be in that type.

One line per model and length; exit code 1 when one is over its bound. --jobs works
on so many artefacts at a time, each in a process of its own. --seconds stops in time
and counts what was left out; exit code 124 when all else passed.
"""

import argparse
import collections
import concurrent.futures
import json
import math
import multiprocessing
import os
import pathlib
import random
import sys
import time

import hybrid

#: Of f32, relative to the largest value of a tensor, or to the floor.
EXACT, FLOOR = {"forward": 5e-5, "step": 5e-5, "gradient": 5e-4}, 1e-2

#: Of a narrower type: what one kernel may be off, what a model of a few layers may,
#: and how many times the processor's error is no fault. f16 has 3 bits more than bf16.
Narrow = collections.namedtuple("Narrow", "kernel model times")
NARROW = {
    "bf16": {"forward": Narrow(0.005, 0.02, 2), "step": Narrow(0.005, 0.02, 2),
             "gradient": Narrow(0.008, 0.1, 3)},
    "f16": {"forward": Narrow(0.005 / 8, 0.005, 2), "step": Narrow(0.005 / 8, 0.005, 2),
            "gradient": Narrow(0.008 / 8, 0.03, 3)},
}
#: A gradient counts as no smaller than this share of the largest of its model: as a
#: small difference of large terms it has their errors.
SHARE = 0.03


#: A gradient that rounded parameters change by more is not known in that type.
UNKNOWABLE = 0.1
#: The exit code of timeout(1).
NO_TIME = 124


def bounds_for(dtype, processor=None):
    """The largest errors that are no fault, given those of the processor if they are
    known; else two devices are compared, whose errors are of a model each."""
    if dtype == "f32":
        return EXACT
    return {what: row.model if processor is None
            else min(row.model, max(row.kernel, row.times * processor[what]))
            for what, row in NARROW[dtype].items()}


def flat(array):
    """Numbers of an array of any library, in row-major order."""
    if hasattr(array, "detach"):
        return array.detach().cpu().reshape(-1).tolist()
    if isinstance(array, memoryview):
        return flat_list(array.tolist())
    return array.reshape(-1).tolist()


def flat_list(values):
    if not isinstance(values, list):
        return [values]
    return [number for value in values for number in flat_list(value)]


def error_of(found, expected, largest=None):
    """The largest |found - expected| over the largest |expected|; a NaN is infinitely wrong."""
    if len(found) != len(expected):
        return math.inf
    scale = max(max((abs(x) for x in expected), default=0.0) if largest is None else largest, FLOOR)
    worst = 0.0
    for a, b in zip(found, expected):
        error = abs(a - b)
        if not error <= worst * scale:
            worst = error / scale if math.isfinite(error) else math.inf
    return worst


def rms(values):
    return math.sqrt(sum(x * x for x in values) / len(values)) if values else 0.0


def rms_error(found, expected, floor=0.0):
    """The error's root mean square over that of `expected`, which counts as `floor` at
    least; a NaN is infinitely wrong."""
    if len(found) != len(expected):
        return math.inf
    error = rms([a - b for a, b in zip(found, expected)]) / max(rms(expected), floor, 1e-30)
    return error if math.isfinite(error) else math.inf


def rms_error_of_sample(found, expected, floor=0.0):
    """The same of a tensor that was sampled. The size of all of it counts too."""
    if len(found) != expected["size"]:
        return math.inf
    scale = max(expected["rms"], floor, 1e-30)
    kept = rms([found[index] - value for index, value in zip(expected["indices"], expected["values"])])
    off = abs(rms(found) - expected["rms"])
    return max(kept, off) / scale if math.isfinite(kept + off) else math.inf


def error_of_sample(found, expected):
    """Of a tensor that was sampled: its size, the numbers that were kept, and what all come to."""
    if len(found) != expected["size"]:
        return math.inf
    kept = error_of([found[index] for index in expected["indices"]], expected["values"], expected["largest"])
    rms = math.sqrt(sum(x * x for x in found) / len(found)) if found else 0.0
    off = abs(rms - expected["rms"]) / max(expected["largest"], FLOOR)
    return max(kept, off) if math.isfinite(off) else math.inf


class Run:
    """A model on a device, called in the three ways."""

    def __init__(self, artefact, device, arrays):
        self.model = hybrid.compile(str(artefact), device=device, arrays=arrays)

    def backward(self, case):
        """Loss per token and gradients, of sequences in a row."""
        given = (case["ids"], case["labels"], case["weights"], case["cu_seqlens"])
        loss = flat(self.model.loss(*given))
        self.model.optimiser()
        self.model.backward(*given)
        return loss, {path: flat(values) for path, values in self.model.gradients().items()}

    def last_rows(self, ids):
        """Logits of the row before the last, of a prefill, and of the last, of a step."""
        state = self.model.state(slots=1, context=len(ids))
        rows = flat(state.extend(ids[:-1])) if len(ids) > 1 else []
        return rows + flat(state.extend(ids[-1:]))


def gradient_error(gradients, expected, error, size, moved=()):
    """The largest of all parameters' `error`s, whose expected values have `size`.

    `moved` says by parameter what the exact gradient changes when the parameters move
    by as much as the type cannot hold. Where that is more than any model may be off,
    an error of no more is none."""
    if set(gradients) != set(expected):
        return math.inf
    floor = SHARE * max((size(values) for values in expected.values()), default=0.0)
    worst = 0.0
    for path, values in expected.items():
        found = error(gradients[path], values, floor)
        allowed = moved[path] / max(size(values), floor, 1e-30) if path in moved else 0.0
        if not found <= allowed or allowed <= UNKNOWABLE:
            worst = max(worst, found)
    return worst


def errors_beside_oracle(run, case):
    case["cu_seqlens"] = [0, case["length"]]
    loss, gradients = run.backward(case)
    rows = run.last_rows(case["ids"])
    if run.model.dtype == "f32":
        return {"forward": error_of_sample(loss, case["loss"]),
                "gradient": gradient_error(gradients, case["gradients"], lambda a, b, _: error_of_sample(a, b), len),
                "step": error_of(rows, case["last_logits"])}
    return {"forward": rms_error_of_sample(loss, case["loss"]),
            "gradient": gradient_error(gradients, case["gradients"], rms_error_of_sample, lambda kept: kept["rms"],
                                       case["moved"]),
            "step": rms_error(rows, case["last_logits"])}


def base_of(artefact):
    """The path without the compute type that a name may end in: `gdn-bf16`."""
    name, _, dtype = artefact.stem.rpartition("-")
    return artefact.with_name(name if dtype in NARROW else artefact.stem)


def beside_oracle(artefact, device, arrays):
    """A line's name, compute type, errors and bounds for every recorded case."""
    base = base_of(artefact)
    runs = {device: Run(artefact, device, arrays)}
    dtype = runs[device].model.dtype
    if dtype != "f32":
        runs.setdefault("cpu", Run(artefact, "cpu", arrays))
    for run in runs.values():
        run.model.load_weights(base.with_name(base.name + ".safetensors"))
    for path in sorted(base.parent.glob(f"{base.name}.*.json"), key=lambda path: int(path.suffixes[-2][1:])):
        case = json.loads(path.read_text())
        errors = {where: errors_beside_oracle(run, case) for where, run in runs.items()}
        yield f"{artefact.stem}, {case['length']} tokens", dtype, errors[device], bounds_for(dtype, errors.get("cpu"))


def random_case(description, seed):
    draw = random.Random(seed)
    ends = [0]
    for length in description["lengths"]:
        ends.append(ends[-1] + length)
    vocab = description["vocab"]
    ids = [draw.randrange(vocab) for _ in range(ends[-1])]
    labels = [draw.randrange(vocab) if draw.randrange(8) else -100 for _ in ids]
    return {"ids": ids, "labels": labels, "weights": [0.5 + draw.random() for _ in ids], "cu_seqlens": ends}


def beside_processor(artefact, device, arrays):
    """The same for a random stack, whose description is beside it."""
    seed = int(artefact.stem.rsplit("-", 1)[1])
    case = random_case(json.loads(artefact.with_suffix(".json").read_text()), seed)
    found = []
    for where in ("cpu", device):
        run = Run(artefact, where, arrays)
        run.model.initialise(seed)
        result = list(run.backward(case)) if case["ids"] else [[], {}]
        longest = max(zip(case["cu_seqlens"], case["cu_seqlens"][1:]), key=lambda pair: pair[1] - pair[0])
        ids = case["ids"][slice(*longest)]
        found.append(result + [run.last_rows(ids) if ids else []])
    dtype = run.model.dtype
    error = rms_error if dtype != "f32" else lambda a, b, _=0: error_of(a, b)
    (loss, gradients, rows), (their_loss, their_gradients, their_rows) = found
    errors = {"forward": error(their_loss, loss), "step": error(their_rows, rows),
              "gradient": gradient_error(their_gradients, gradients, error, rms)}
    yield artefact.stem, dtype, errors, bounds_for(dtype)


CHECKS = {"oracle": beside_oracle, "processor": beside_processor}


def work(what, artefact, device, end):
    """All of one artefact: names, whether it passed (None: no time), what to print."""
    # Memory of a GPU is for a library that knows it.
    arrays = "buffer" if device == "cpu" else "torch"
    rows = []
    try:
        if time.time() > end:
            return [(artefact.stem, None, "", {})]
        for name, dtype, errors, bounds in CHECKS[what](artefact, device, arrays):
            bad = [kind for kind, error in errors.items() if not error <= bounds[kind]]
            text = ", ".join(f"{kind} {error:.1e}" + (f" > {bounds[kind]:.1e}" if kind in bad else "")
                             for kind, error in errors.items())
            rows.append((name, not bad, text, {f"{dtype} {kind}": error for kind, error in errors.items()}))
            if time.time() > end:
                rows.append((f"the rest of {artefact.stem}", None, "", {}))
                break
    except (hybrid.Error, OSError, ValueError, KeyError) as problem:
        rows.append((artefact.stem, False, f"{type(problem).__name__}: {problem}", {}))
    return rows


def take_processors(counter, jobs):
    """A process has processors of its own: the threads of its runtime spin."""
    mine = sorted(os.sched_getaffinity(0))
    width = max(1, len(mine) // jobs)
    with counter.get_lock():
        first = counter.value * width % len(mine)
        counter.value += 1
    os.sched_setaffinity(0, mine[first:first + width])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=tuple(CHECKS))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--jobs", type=int, default=1, help="artefacts at a time")
    parser.add_argument("--seconds", type=float, default=0, help="0: as long as it takes")
    args = parser.parse_args()
    artefacts = sorted(args.folder.glob("*.hbx" if args.what == "oracle" else "random-*.hbx"))
    if not artefacts:
        sys.exit(f"nothing to compare in {args.folder}; fill it with pack.sh")
    end = time.time() + args.seconds if args.seconds else math.inf
    # A process that has used a GPU is not to be forked.
    spawn = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(args.jobs, spawn, take_processors, (spawn.Value("i", 0), args.jobs))
    passed, worst = collections.Counter(), {}
    with pool:
        for rows in pool.map(work, *zip(*((args.what, path, args.device, end) for path in artefacts))):
            if not rows:
                rows = [("an artefact without a case", False, "fill the folder with pack.sh", {})]
            for name, good, text, errors in rows:
                passed[good] += 1
                if good is not None:
                    print(f"{'ok  ' if good else 'FAIL'} {name}: {text}", flush=True)
                for kind, error in errors.items():
                    worst[kind] = max(worst.get(kind, 0.0), error)
    print(f"{passed[True]} passed, {passed[False]} failed, {passed[None]} left out for time; largest errors: "
          + ", ".join(f"{kind} {error:.1e}" for kind, error in worst.items()))
    sys.exit(1 if passed[False] else NO_TIME if passed[None] else 0)


if __name__ == "__main__":
    main()
