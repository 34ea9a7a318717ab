#!/usr/bin/env python3
"""Compiled models on a device beside what is known of them.

    compare.py --device=cuda:0 oracle FOLDER     recorded cases of record-reference
    compare.py --device=cuda:0 processor FOLDER  random stacks, beside the processor

Cases of the oracle are a model's weights (NAME.safetensors), its artefact
(NAME.hbx) and NAME.LENGTH.json. Loss and gradients are those of one call; the last
two rows of logits come from a prefill of all but one token and from a step. Random
stacks (random-SEED.hbx and .json) are compared with the same artefact on the
processor. Errors are relative to the largest value of a tensor, and bounds are
those of the compiler's own tests. One line per model and length; exit code 1 when
one is over its bound. --seconds stops in time and counts what was left out as not
passed.
"""

import argparse
import json
import math
import pathlib
import random
import sys
import time

import hybrid

FORWARD, BACKWARD, FLOOR = 5e-5, 5e-4, 1e-2


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


def check_oracle(run, case):
    case["cu_seqlens"] = [0, case["length"]]
    loss, gradients = run.backward(case)
    errors = {"forward": error_of_sample(loss, case["loss"]),
              "gradient": max(error_of_sample(gradients[path], expected)
                              for path, expected in case["gradients"].items()),
              "step": error_of(run.last_rows(case["ids"]), case["last_logits"])}
    if set(gradients) != set(case["gradients"]):
        errors["gradient"] = math.inf
    return errors


def random_case(description, seed):
    draw = random.Random(seed)
    ends = [0]
    for length in description["lengths"]:
        ends.append(ends[-1] + length)
    vocab = description["vocab"]
    ids = [draw.randrange(vocab) for _ in range(ends[-1])]
    labels = [draw.randrange(vocab) if draw.randrange(8) else -100 for _ in ids]
    return {"ids": ids, "labels": labels, "weights": [0.5 + draw.random() for _ in ids], "cu_seqlens": ends}


def check_processor(artefact, device, arrays):
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
    (loss, gradients, rows), (their_loss, their_gradients, their_rows) = found
    return {"forward": error_of(their_loss, loss), "step": error_of(their_rows, rows),
            "gradient": max((error_of(their_gradients.get(path, []), values) for path, values in gradients.items()),
                            default=0.0)}


def report(name, errors, worst):
    bad = [what for what, error in errors.items() if not error <= (BACKWARD if what == "gradient" else FORWARD)]
    for what, error in errors.items():
        worst[what] = max(worst.get(what, 0.0), error)
    print(f"{'FAIL' if bad else 'ok  '} {name}: " + ", ".join(f"{what} {error:.1e}" for what, error in errors.items()),
          flush=True)
    return not bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("oracle", "processor"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", type=float, default=0, help="0: as long as it takes")
    args = parser.parse_args()
    # Memory of a GPU is for a library that knows it.
    arrays = "buffer" if args.device == "cpu" else "torch"
    begin, passed, worst = time.monotonic(), [], {}
    jobs = []
    if args.what == "oracle":
        for artefact in sorted(args.folder.glob("*.hbx")):
            cases = sorted(args.folder.glob(f"{artefact.stem}.*.json"), key=lambda path: int(path.suffixes[-2][1:]))
            jobs += [(f"{artefact.stem}, {case.suffixes[-2][1:]} tokens", artefact, case) for case in cases]
    else:
        jobs = [(artefact.stem, artefact, None) for artefact in sorted(args.folder.glob("random-*.hbx"))]
    if not jobs:
        sys.exit(f"nothing to compare in {args.folder}; fill it with pack.sh")
    opened = (None, None)
    for name, artefact, case in jobs:
        if args.seconds and time.monotonic() - begin > args.seconds:
            break
        try:
            if case is None:
                errors = check_processor(artefact, args.device, arrays)
            else:
                if opened[0] != artefact:
                    opened = artefact, Run(artefact, args.device, arrays)
                    opened[1].model.load_weights(artefact.with_suffix(".safetensors"))
                errors = check_oracle(opened[1], json.loads(case.read_text()))
        except hybrid.Error as problem:
            print(f"FAIL {name}: {problem}")
            passed.append(False)
            continue
        passed.append(report(name, errors, worst))
    print(f"{sum(passed)} of {len(jobs)} passed, {len(jobs) - len(passed)} left out for time; largest errors: "
          + ", ".join(f"{what} {error:.1e}" for what, error in worst.items()))
    sys.exit(sum(passed) != len(jobs))


if __name__ == "__main__":
    main()
