#!/usr/bin/env python3
"""How long hybridc takes: whole specs to artefacts, and single mixer operations to cubins.

Prints processor time of the whole process tree beside the wall clock, because the wall clock of a shared
machine says nothing: on N idle cores a run takes at least its processor time over N.

  bench/compile_time.py --bin=build/release/bin
"""

import argparse
import os
import pathlib
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SPECS = ["demo", "gdn_nope_776m", "gla_nope_swla_776m", "headwise_776m"]


def argument(name, kind):
    return f'%{name}: {kind} {{hybrid.role = "input", hybrid.path = "{name}"}}'


def function(name, types, operation, results):
    """A plain function of one mixer operation."""
    arguments = ", ".join(argument(name, kind) for name, kind in types.items())
    returned = ", ".join(f'{kind} {{hybrid.role = "{role}", hybrid.path = "{path}"}}' for path, kind, role in results)
    values = ", ".join("%" + path for path, _, _ in results)
    kinds = ", ".join(kind for _, kind, _ in results)
    return f"""func.func @{name}({arguments}, %segments: !hybrid.segments {{hybrid.role = "segments"}})
    -> ({returned}) attributes {{hybrid.entry = "{name}"}} {{
  {values} = {operation}
  return {values} : {kinds}
}}
"""


def operations(heads=12, dim=128):
    """Name and text of one operation per family."""
    rows, numbers, gates = f"tensor<?x{heads}x{dim}xf32>", f"tensor<?x{heads}xf32>", f"tensor<?x{heads}x1xf32>"
    three = f"{rows}, {rows}, {rows}, !hybrid.segments"
    qkv = {"q": rows, "k": rows, "v": rows}
    none = ", ".join("0" for _ in range(heads))
    yield "attention", function(
        "attention", qkv,
        f"hybrid.attention %q, %k, %v, %segments scale 0.088 windows [{none}] sinks [{none}] : ({three}) -> ({rows}, {numbers})",
        [("o", rows, "output"), ("l", numbers, "saved")])
    yield "delta", function(
        "delta", {**qkv, "g": gates, "b": numbers},
        f"hybrid.recurrence delta %q, %k, %v, %segments decay(%g) beta(%b) scale 0.088 : ({three}, {gates}, {numbers}) -> {rows}",
        [("o", rows, "output")])
    yield "gla", function(
        "gla", {**qkv, "g": rows},
        f"hybrid.recurrence additive %q, %k, %v, %segments decay(%g) scale 0.088 : ({three}, {rows}) -> {rows}",
        [("o", rows, "output")])


def run(command):
    """Wall clock and processor time, children included, in seconds."""
    start = time.monotonic()
    process = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(process, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(command)}: exit status {status}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    parser.add_argument("--target", default="cuda:sm_90a")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--specs", nargs="*", default=SPECS)
    args = parser.parse_args()
    hybridc = str(args.bin / "hybridc")
    print("| what | target | wall, s | processor time, s | over two cores, s | load |\n|---|---|---|---|---|---|")

    def row(name, source, target, output):
        wall, busy = run([hybridc, str(source), f"--target={target}", f"--jobs={args.jobs}", "-o", str(output)])
        print(f"| {name} | {target} | {wall:.1f} | {busy:.1f} | {busy / 2:.1f} | {os.getloadavg()[0]:.0f} |", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "out.hbx"
        for spec in args.specs:
            row(spec, ROOT / "examples" / "specs" / f"{spec}.mlir", f"cpu,{args.target}", output)
        for name, text in operations():
            source = pathlib.Path(folder) / f"{name}.mlir"
            source.write_text(text)
            row(f"{name}, forward", source, args.target, output)


if __name__ == "__main__":
    main()
