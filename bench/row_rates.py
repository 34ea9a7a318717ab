"""How near the row-wise kernels of a training step are to the rate of a copy.

    row_rates.py ARTEFACT... [--segments=8] [--length=4096] [--below=0.85] [--only=REGEX] [--text]

Takes the launches of `backward` and `update` that are no products, attention or
recurrences from artefacts with code for the GPU here, and times each kernel alone
with buffers of its own, beside a copy of as many bytes on the device in the same
process. Bytes are what a kernel must read and write, each tensor once. Kernels
that move less than 32 MB, which stay in the second-level cache, are summed up in
one line. Ids are uniform, or with --text as often as Zipf's law has them, the
frequent ones first. Needs torch and the driver, no compiler.
"""

import argparse
import collections
import ctypes
import json
import operator
import pathlib
import re
import struct

import torch

from gpu_kernels import call

SYMBOLS = ("tokens", "segments", "longest", "slots", "context", "depth")
DTYPES = {
    "f32": torch.float32,
    "i32": torch.int32,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
}
OTHERS = ("product", "grouped_product", "row_product", "softmax", "recurrence")
SMALL = 32 << 20
OPERATIONS = {
    "add": operator.add,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "ceildiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
    "le": operator.le,
    "ge": operator.ge,
    "eq": operator.eq,
    "and": lambda a, b: a and b,
}

def evaluate(expression, symbols):
    if isinstance(expression, int):
        return expression
    if isinstance(expression, str):
        return symbols[expression]
    name, a, b = expression
    return OPERATIONS[name](evaluate(a, symbols), evaluate(b, symbols))


class Artefact:
    """The tables of an .hbx file (docs/rationale/architecture.md, section 6)."""

    def __init__(self, path):
        data = path.read_bytes()
        (count,) = struct.unpack_from("<I", data, 8)
        self.sections = {}
        for n in range(count):
            kind, name, offset, size = struct.unpack_from("<16s16sQQ", data, 64 + 64 * n)
            key = kind.rstrip(b"\0").decode(), name.rstrip(b"\0").decode()
            self.sections[key] = data[offset : offset + size]
        chips = [name for kind, name in self.sections if kind == "cubin"]
        if not chips:
            raise SystemExit(f"{path} has no machine code for a GPU")
        self.plan = json.loads(self.sections["plan", chips[0]])
        self.parameters = json.loads(self.sections["params", ""])
        self.module = ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(self.module), self.sections["cubin", chips[0]])

    def function(self, kernel):
        function = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(function), self.module, kernel["symbol"].encode())
        call("cuFuncSetAttribute", function, 8, kernel["shared"])
        return function


class Memory:
    """Buffers by size and type, so that kernels of one shape share theirs."""

    def __init__(self, args, vocab):
        self.args, self.vocab = args, vocab
        self.pool = {}

    def of(self, view, number):
        return self.buffer(view["kind"], DTYPES[view["type"]], extent(view), number)

    def buffer(self, kind, dtype, elements, number):
        key = (kind if kind in self.special else "", dtype, elements, number)
        if key not in self.pool:
            self.pool[key] = self.make(kind, dtype, elements)
        return self.pool[key]

    special = ("ids", "labels", "tokens_by_id", "weights", "segment_table", "token_segment", "scalars")

    def make(self, kind, dtype, elements):
        segments, length = self.args.segments, self.args.length
        if kind in ("ids", "labels"):
            return self.ids(elements)
        if kind == "tokens_by_id":
            return tokens_by_id(self.ids(elements // 3)).flatten()
        if kind == "segment_table":
            rows = [[n * length, (n + 1) * length, n, 0] for n in range(segments)]
            return torch.tensor(rows, dtype=torch.int32, device="cuda").flatten()
        if kind == "token_segment":
            return torch.arange(segments, dtype=torch.int32, device="cuda").repeat_interleave(length)
        if kind in ("weights", "scalars"):
            return torch.ones(elements, dtype=dtype, device="cuda")
        return torch.empty(elements, dtype=dtype, device="cuda").uniform_(0.1, 1.0)

    def ids(self, count):
        if not self.args.text:
            return torch.randint(self.vocab, (count,), dtype=torch.int32, device="cuda")
        frequencies = 1 / torch.arange(1, self.vocab + 1, dtype=torch.float64, device="cuda")
        return torch.multinomial(frequencies, count, replacement=True).int()


def tokens_by_id(ids):
    """Rows (token, id, end) in the order of ids: `end` is where the tokens of an id
    end if this is its first, else the row's own number."""
    sorted_ids, tokens = torch.sort(ids, stable=True)
    number = torch.arange(len(ids), device=ids.device)
    ends = torch.searchsorted(sorted_ids, sorted_ids, right=True)
    firsts = torch.searchsorted(sorted_ids, sorted_ids)
    end = torch.where(firsts == number, ends, number)
    return torch.stack((tokens, sorted_ids, end), dim=1).int()


def extent(view):
    return 1 + sum((size - 1) * stride for size, stride in zip(view["sizes"], view["strides"]))


def bytes_moved(entry, name, views, memory):
    """What the launch must read and write, each element once."""
    total = 0
    for number, view in enumerate(views):
        count, kind = view["count"], view["kind"]
        if name.startswith("embed") and kind in ("param_copy", "param", "gradient"):
            # Rows of the table that the call has tokens of.
            n, ids = next((n, v) for n, v in enumerate(views) if v["kind"] in ("ids", "tokens_by_id"))
            tensor = memory.of(ids, n)
            if ids["kind"] == "tokens_by_id":
                tensor = tensor[1::3]
            count = tensor.unique().numel() * view["sizes"][1]
        overwritten = view["in_place"] or (
            kind == "gradient" if entry == "backward" else kind in ("param", "moment1", "moment2")
        )
        total += count * DTYPES[view["type"]].itemsize * (2 if overwritten else 1)
    return total


def time_us(run, repeats=8, rounds=7):
    for _ in range(2):
        run()
    times = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(repeats):
            run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / repeats * 1e3)
    return sorted(times)[rounds // 2]


def pieces_of(rows, number, request):
    """Symbols of a launch, and how often it runs: once for every piece of rows."""
    for piece in rows.get("pieces", ()):
        if piece["first"] <= number <= piece["last"]:
            tokens = min(piece["rows"], request["tokens"])
            return dict(request, tokens=tokens), -(-request["tokens"] // tokens)
    return request, 1


def views_of(choice, buffers, seen, symbols):
    """The views of a launch. One that makes no buffer of its own overwrites the
    largest that it reads."""
    views, makes = [], False
    for view in choice["views"]:
        buffer = buffers[view["buffer"]]
        sizes = [evaluate(size, symbols) for size in view["sizes"]]
        count = 1
        for size in sizes:
            count *= size
        makes |= view["buffer"] not in seen and buffer["kind"] == "arena"
        makes |= buffer["kind"] not in ("arena", "param", "param_copy", *Memory.special)
        seen.add(view["buffer"])
        views.append(
            dict(
                sizes=sizes,
                strides=[evaluate(stride, symbols) for stride in view["strides"]],
                count=count,
                kind=buffer["kind"],
                type=buffer["type"],
                in_place=False,
            )
        )
    if not makes:
        max(views, key=operator.itemgetter("count"))["in_place"] = True
    return views


def launches(artefact, request):
    """(entry, op, kernel, symbols, times, views) of the row-wise launches of a
    training step."""
    for entry in ("backward", "update"):
        rows = artefact.plan["entries"].get(entry)
        seen = set()
        for number, launch in enumerate(rows["launches"] if rows else ()):
            symbols, times = pieces_of(rows, number, request)
            for choice in launch["alternatives"]:
                if choice["guard"] is None or evaluate(choice["guard"], symbols):
                    break
            else:
                continue
            kernel = artefact.plan["kernels"][choice["kernel"]]
            views = views_of(choice, rows["buffers"], seen, symbols)
            if kernel["name"].startswith(OTHERS) and not kernel["name"].startswith("product_sum"):
                continue
            yield entry, launch["op"], kernel, symbols, times, views


def bind(artefact, kernel, views, memory, symbols):
    words, alive = [], []
    for number, view in enumerate(views):
        tensor = memory.of(view, number)
        pad = [0] * (4 - len(view["sizes"]))
        words += [tensor.data_ptr(), *view["sizes"], *pad, *view["strides"], *pad]
        alive.append(tensor)
    grid = [evaluate(size, symbols) for size in kernel["grid"]]
    words += grid + [0] * (4 - len(grid))
    tasks = 1
    for size, parallel in zip(grid, kernel["parallel"]):
        tasks *= size if parallel else 1
    arguments = (ctypes.c_int64 * len(words))(*words)
    pointer = (ctypes.c_void_p * 1)(ctypes.cast(arguments, ctypes.c_void_p).value)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    function = artefact.function(kernel)

    def launch(held=(arguments, alive)):
        call("cuLaunchKernel", function, tasks, 1, 1, kernel["threads"], 1, 1, kernel["shared"],
             stream, pointer, None)

    return launch


class Copies:
    """Times of copies that move given numbers of bytes, half of them read."""

    LARGEST = 4 << 30

    def __init__(self):
        self.source = torch.empty(self.LARGEST // 2, dtype=torch.uint8, device="cuda")
        self.target = torch.empty_like(self.source)
        self.known = {}

    def us(self, moved):
        """Of more bytes than `LARGEST`, at the rate of a copy of that many."""
        size = min(moved, self.LARGEST) // 512 * 256
        if size not in self.known:
            source, target = self.source[:size], self.target[:size]
            self.known[size] = time_us(lambda: target.copy_(source))
        return self.known[size] * moved / (2 * size)


def measure(path, args, copies):
    artefact = Artefact(path)
    request = dict(
        tokens=args.segments * args.length, segments=args.segments, longest=args.length,
        slots=0, context=0, depth=0)
    meta = json.loads(artefact.sections["meta", ""])
    memory = Memory(args, meta["vocab"])
    kinds = collections.OrderedDict()
    for entry, op, kernel, symbols, times, views in launches(artefact, request):
        if not re.search(args.only, kernel["name"]):
            continue
        shapes = tuple((tuple(v["sizes"]), tuple(v["strides"]), v["type"]) for v in views)
        row = kinds.setdefault((kernel["symbol"], shapes), [entry, op, kernel, symbols, views, 0])
        row[5] += times
    print(f"{path.name}: {request['tokens']} rows, a copy of 512 MB "
          f"{(512 << 20) / copies.us(512 << 20) / 1e3:.0f} GB/s")
    print(f"{'kernel':34} {'op':20} {'times':>5} {'MB':>7} {'us':>8} {'copy':>8} {'GB/s':>6} share")
    small, below, whole, ideal = 0.0, [], 0.0, 0.0
    few = 0
    for entry, op, kernel, symbols, views, times in kinds.values():
        moved = bytes_moved(entry, kernel["name"], views, memory)
        us = time_us(bind(artefact, kernel, views, memory, symbols))
        copy = copies.us(moved)
        whole += times * us
        ideal += times * copy
        if moved < SMALL:
            small += times * us
            few += times
            continue
        share = copy / us
        line = (f"{kernel['name']:34} {op:20} {times:5} {moved / 1e6:7.0f} {us:8.1f} {copy:8.1f} "
                f"{moved / us / 1e3:6.0f} {share:5.2f}")
        print(line, flush=True)
        if share < args.below:
            below.append(line)
    print(f"{few} launches of less than {SMALL >> 20} MB: {small:.0f} us in all")
    print(f"all row-wise launches of a step: {whole / 1e3:.2f} ms, as copies "
          f"{ideal / 1e3:.2f} ms")
    return below


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("artefacts", type=pathlib.Path, nargs="+")
    parser.add_argument("--segments", type=int, default=8)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--below", type=float, default=0.85)
    parser.add_argument("--only", default="", help="kernels whose name this expression matches")
    parser.add_argument("--text", action="store_true", help="ids as often as text has them")
    args = parser.parse_args()
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    copies, below = Copies(), []
    for path in args.artefacts:
        below += [f"{path.stem}: {line}" for line in measure(path, args, copies)]
        torch.cuda.empty_cache()
    print(f"below {args.below:.0%} of the copy: {len(below)}")
    for line in below:
        print(line)


main()
