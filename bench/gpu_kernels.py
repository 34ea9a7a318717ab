"""Times kernels of the tile families on a card beside PyTorch.

    gpu-kernels FOLDER sm_90a bench/programs/*.mlir > FOLDER/manifest.json
    python3 gpu_kernels.py FOLDER

A function of graph operations (bench/programs/products.mlir: the products of
training) runs as the launches that the compiler makes of it, is checked at
several numbers of tokens and timed at the last one beside torch.matmul.

Kernels of sm_90a's own (`*_hopper*`) are also checked on sequences of unlike
lengths and with a sequence that holds NaN, and timed beside cuBLASLt
(torch.matmul) and cuDNN's attention; the last column is their time over ours.
Every kernel is checked against PyTorch in f64 or f32 first, then timed with
events: the median of 20 launches after 5 to warm up. `floor` is the larger of
the operations over the rate of the tensor cores that the product uses and the
bytes over the memory rate, both measured or stated below.
"""

import ctypes
import json
import sys

import torch

COPY_RATE = 4.2e12  # bytes read and written per second, measured by copying
TF32_RATE = 495e12 / 3  # an f32 product is three in tf32
BF16_RATE = 790e12  # measured, 8192 x 8192 x 8192

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    result = getattr(cuda, name)(*arguments)
    if result != 0:
        raise RuntimeError(f"{name} failed with {result}")


def tensor_map(view, box):
    """128 bytes, aligned to 64: a 16-bit tensor as the copy engine knows it."""
    rank = view.dim()
    memory = ctypes.create_string_buffer(192)
    start = -ctypes.addressof(memory) % 64
    dims = (ctypes.c_uint64 * rank)(*reversed(view.shape))
    strides = (ctypes.c_uint64 * rank)(
        *(2 * s for s in reversed(view.stride()[:-1])))
    boxes = (ctypes.c_uint32 * rank)(*reversed(box))
    steps = (ctypes.c_uint32 * rank)(*[1] * rank)
    kind = {torch.bfloat16: 9, torch.float16: 6}[view.dtype]
    # No interleaving, 128-byte swizzle, whole lines of 256 bytes to the
    # second-level cache, zeros outside.
    call("cuTensorMapEncodeTiled",
         ctypes.c_void_p(ctypes.addressof(memory) + start), kind, rank,
         ctypes.c_void_p(view.data_ptr()), dims, strides, boxes, steps, 0, 3, 3,
         0)
    return memory, ctypes.addressof(memory) + start


class Kernel:
    def __init__(self, folder, row):
        self.row = row
        with open(f"{folder}/{row['name']}.cubin", "rb") as file:
            self.image = file.read()
        module = ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(module), self.image)
        self.function = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(self.function), module,
             row["symbol"].encode())
        call("cuFuncSetAttribute", self.function, 8, row["shared"])

    def __call__(self, views, grid, parallel):
        self.bind(views, grid, parallel)()

    def bind(self, views, grid, parallel):
        """A launch whose arguments are made once, so that what is timed is the
        kernel. `views` are tensors; `parallel` says which grid dims are."""
        words = []
        for view in views:
            pad = [0] * (4 - view.dim())
            words += [view.data_ptr(), *view.shape, *pad, *view.stride(), *pad]
        words += list(grid) + [0] * (4 - len(grid))
        arguments = (ctypes.c_int64 * len(words))(*words)
        maps = [tensor_map(views[view], box)
                for view, *box in self.row.get("maps", [])]
        pointer = (ctypes.c_void_p * (1 + len(maps)))(
            ctypes.cast(arguments, ctypes.c_void_p).value,
            *(address for _, address in maps))
        tasks = 1
        for size, is_parallel in zip(grid, parallel):
            tasks *= size if is_parallel else 1
        if self.row.get("persistent"):
            processors = torch.cuda.get_device_properties(0)
            tasks = min(tasks, processors.multi_processor_count)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        alive = arguments, maps

        def launch(held=alive):
            call("cuLaunchKernel", self.function, tasks, 1, 1,
                 self.row["threads"], 1, 1, self.row["shared"], stream, pointer,
                 None)
        return launch


def median_ms(run):
    for _ in range(5):
        run()
    times = []
    for _ in range(20):
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return sorted(times)[len(times) // 2]


def error(got, expected):
    got, expected = got.double(), expected.double()
    return (torch.linalg.norm(got - expected)
            / torch.linalg.norm(expected)).item()


def report(kernel, ms, floor_ms, wrong, peer=""):
    row = kernel.row
    print(f"{row['name']:28} {ms:8.3f} ms  floor {floor_ms:7.3f}  "
          f"error {wrong:.1e}  {row['registers']} registers, "
          f"{row['spills']} bytes spilled  {peer}", flush=True)


def product(kernel, dtype):
    n = 4096
    tile = kernel.row["name"].split("_")[-1].split("x")
    rows, columns = (128, 128) if dtype == torch.bfloat16 else map(int, tile[:2])
    a = torch.randn(n, n, device="cuda").to(dtype)
    b = torch.randn(n, n, device="cuda").to(dtype)
    c = torch.full_like(a, float("nan"))
    run = lambda: kernel([a, b, c], [n // rows, n // columns], [True, True])
    run()
    wrong = error(c[:512], a[:512].double() @ b.double().T)
    ms = median_ms(run)
    torch.backends.cuda.matmul.allow_tf32 = False
    peer = median_ms(lambda: a @ b.T)
    flops = 2 * n**3
    rate = BF16_RATE if dtype == torch.bfloat16 else TF32_RATE
    report(kernel, ms, flops / rate * 1e3, wrong,
           f"{flops / ms / 1e9:.0f} TF/s, torch {peer:.3f} ms = "
           f"{flops / peer / 1e9:.0f} TF/s")


def segments(batch, length):
    table = torch.tensor([[n * length, (n + 1) * length, n, 0]
                          for n in range(batch)], dtype=torch.int32).cuda()
    owner = torch.arange(batch, dtype=torch.int32).repeat_interleave(length)
    return table, owner.cuda()


def attention(q, k, v, batch, length):
    split = lambda x: x.view(batch, length, *x.shape[1:]).transpose(1, 2)
    o = torch.nn.functional.scaled_dot_product_attention(
        split(q), split(k), split(v), is_causal=True)
    return o.transpose(1, 2).reshape(q.shape)


def softmax_forward(kernel, dtype):
    batch, length, heads, dim = 4, 4096, 16, 128
    q, k, v = (torch.randn(batch * length, heads, dim, device="cuda").to(dtype)
               for _ in range(3))
    o = torch.full_like(q, float("nan"))
    lse = torch.empty(batch * length, heads, device="cuda")
    table, owner = segments(batch, length)
    rows = 128 if dtype == torch.bfloat16 else int(
        kernel.row["name"].split("_")[-1].split("x")[0])
    run = lambda: kernel([q, k, v, table, owner, o, lse],
                         [batch, heads, length // rows], [True] * 3)
    run()
    wrong = error(o[:length], attention(q[:length].float(), k[:length].float(),
                                        v[:length].float(), 1, length))
    ms = median_ms(run)
    peer = median_ms(lambda: attention(q, k, v, batch, length))
    flops = 2 * batch * heads * length**2 * dim  # causal
    rate = BF16_RATE if dtype == torch.bfloat16 else TF32_RATE
    report(kernel, ms, flops / rate * 1e3, wrong,
           f"{flops / ms / 1e9:.0f} TF/s, torch {peer:.3f} ms")


def delta_reference(q, k, v, g, beta, scale):
    """Token by token, for a short prefix."""
    heads, dim = q.shape[1:]
    state = torch.zeros(heads, dim, v.shape[2], dtype=torch.float64,
                        device="cuda")
    outputs = []
    for t in range(q.shape[0]):
        state = state * g[t].exp()[:, :, None]
        read = torch.einsum("hk,hkv->hv", k[t], state)
        state = state + torch.einsum("hk,hv->hkv", k[t],
                                     beta[t][:, None] * (v[t] - read))
        outputs.append(torch.einsum("hk,hkv->hv", q[t] * scale, state))
    return torch.stack(outputs)


def delta_forward(kernel):
    batch, length, heads, dim = 4, 4096, 16, 128
    tokens = batch * length
    q, k, v = (torch.randn(tokens, heads, dim, device="cuda") for _ in range(3))
    q = torch.nn.functional.normalize(q, dim=-1)
    k = torch.nn.functional.normalize(k, dim=-1)
    g = -torch.rand(tokens, heads, 1, device="cuda") * 0.1
    beta = torch.rand(tokens, heads, device="cuda")
    o = torch.full_like(v, float("nan"))
    table, owner = segments(batch, length)
    run = lambda: kernel([q, k, v, table, owner, g, beta, o], [batch, heads],
                         [True, True])
    run()
    few = 300
    wrong = error(o[:few], delta_reference(
        *(x[:few].double() for x in (q, k, v, g, beta)), 0.08838834764831845))
    ms = median_ms(run)
    moved = 4 * (4 * tokens * heads * dim + 2 * tokens * heads)
    report(kernel, ms, moved / COPY_RATE * 1e3, wrong,
           f"{tokens / ms / 1e3:.1f} M tokens/s")


def product_hopper(kernel):
    n = 8192
    # Rows that do not fill a tile first.
    for rows in (1, 200, n):
        a = torch.randn(rows, n, device="cuda").bfloat16()
        b = torch.randn(n, n, device="cuda").bfloat16()
        c = torch.full_like(a, float("nan"))
        run = kernel.bind([a, b, c], [-(-rows // 128), n // 256],
                          [True, True])
        run()
        wrong = error(c[-256:], a[-256:].double() @ b.double().T)
        if not wrong < 4e-3:
            raise RuntimeError(f"product of {rows} rows: error {wrong}")
    same = c.clone()
    for _ in range(3):
        run()
        if not torch.equal(c, same):
            raise RuntimeError("the product differs from run to run")
    ms = median_ms(run)
    peer = median_ms(lambda: a @ b.T)
    flops = 2 * n**3
    report(kernel, ms, flops / BF16_RATE * 1e3, wrong,
           f"{flops / ms / 1e9:.0f} TF/s, cuBLASLt {peer:.3f} ms = "
           f"{flops / peer / 1e9:.0f} TF/s, {peer / ms:.3f}")


def softmax_hopper(kernel):
    heads = 16
    dim = int(kernel.row["name"].split("_")[-1])

    def inputs(lengths):
        tokens = sum(lengths)
        q, k, v = (torch.randn(tokens, heads, dim, device="cuda").bfloat16()
                   for _ in range(3))
        begins = [sum(lengths[:n]) for n in range(len(lengths))]
        table = torch.tensor([[b, b + t, n, 0] for n, (b, t) in
                              enumerate(zip(begins, lengths))],
                             dtype=torch.int32).cuda()
        owner = torch.zeros(tokens, dtype=torch.int32).cuda()
        o = torch.full_like(q, float("nan"))
        lse = torch.full((tokens, heads), float("nan"), device="cuda")
        grid = [len(lengths), heads, -(-max(lengths) // 128)]
        run = kernel.bind([q, k, v, table, owner, o, lse], grid, [True] * 3)
        # The launch has addresses, not tensors: the table must outlive it.
        run.tensors = table, owner
        return q, k, v, o, lse, begins, run

    def check(lengths, poisoned=None):
        q, k, v, o, lse, begins, run = inputs(lengths)
        if poisoned is not None:
            at = slice(begins[poisoned], begins[poisoned] + lengths[poisoned])
            k[at], v[at] = float("nan"), float("nan")
        run()
        worst = 0.0
        for n, (begin, length) in enumerate(zip(begins, lengths)):
            if length == 0 or n == poisoned:
                continue
            at = slice(begin, begin + length)
            scores = torch.einsum("qhd,khd->hqk", q[at].double(),
                                  k[at].double()) * dim**-0.5
            scores += torch.full_like(scores, float("-inf")).triu(1)
            wanted = torch.einsum("hqk,khd->qhd", scores.softmax(-1),
                                  v[at].double())
            sums = scores.logsumexp(-1).T
            worst = max(worst, error(o[at], wanted))
            if not error(lse[at], sums) < 1e-4:
                raise RuntimeError(f"log-sum-exp of length {length} is off")
        if not worst < 8e-3:
            raise RuntimeError(f"lengths {lengths}: error {worst}")
        return worst

    for length in (1, 63, 64, 65, 127, 128, 129, 1000):
        check([length])
    check([1, 130, 0, 128, 500])
    check([70, 150, 60], poisoned=1)
    for batch, length in ((4, 4096), (1, 16384), (8, 2048), (1, 32768)):
        q, k, v, o, lse, begins, run = inputs([length] * batch)
        wrong = check([1024])
        ms = median_ms(run)
        with torch.nn.attention.sdpa_kernel(
                torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
            peer = median_ms(lambda: attention(q, k, v, batch, length))
        flops = 2 * batch * heads * length**2 * dim  # causal
        report(kernel, ms, flops / BF16_RATE * 1e3, wrong,
               f"{batch} x {length}: {flops / ms / 1e9:.0f} TF/s, cuDNN "
               f"{peer:.3f} ms, {peer / ms:.3f}")


TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32,
         "i32": torch.int32}


class Function:
    """The launches of a graph function in a call of so many tokens."""

    def __init__(self, row, kernels):
        self.row = row
        self.values = []
        for n, value in enumerate(row["values"]):
            kind = TYPES[value["type"]]
            if "view_of" in value:
                self.values.append(
                    self.values[value["view_of"]].view(value["shape"]))
                continue
            if kind == torch.int32:
                # One sequence: its row in the table, and whose each token is.
                table = value["shape"] == [1, 4]
                self.values.append(torch.tensor(
                    [[0, row["tokens"], 0, 0]] if table else
                    [0] * value["shape"][0], dtype=kind, device="cuda"))
                continue
            make = torch.randn if n < row["arguments"] else torch.full
            fill = () if n < row["arguments"] else (float("nan"),)
            self.values.append(
                make(value["shape"], *fill, dtype=kind, device="cuda"))
        self.launches = [
            kernels[launch["kernel"]].bind(
                [self.values[n] for n in launch["views"]], launch["grid"],
                [True] * len(launch["grid"]))
            for launch in row["launches"]]

    def __call__(self):
        for launch in self.launches:
            launch()


def products(row, kernels, is_timed):
    """y = x Wᵀ, dx = dy W or dW = dyᵀ x, as the name says."""
    run = Function(row, kernels)
    kind = row["function"].split("_")[0]
    a, b, c = run.values[0], run.values[1], run.values[row["results"][0]]
    run()
    # Some rows of the result, the last ones among them.
    rows = torch.arange(c.shape[0], device="cuda")
    rows = torch.cat([rows[:64], rows[-192:]])
    left = (a[:, rows].T if kind == "weight" else a[rows]).double()
    right = (b.T if kind == "forward" else b).double()
    wrong = error(c[rows], left @ right)
    if not wrong < (1e-4 if c.dtype == torch.float32 else 4e-3):
        raise RuntimeError(
            f"{row['function']} of {row['tokens']} tokens: error {wrong}")
    if not is_timed:
        return
    peer = {"forward": lambda: a @ b.T, "input": lambda: a @ b,
            "weight": lambda: a.T @ b}[kind]
    ours, theirs = median_ms(run), median_ms(peer)
    depth = a.shape[0 if kind == "weight" else 1]
    flops = 2 * c.numel() * depth
    floor = flops / BF16_RATE * 1e3
    print(f"{row['function']:22} {ours:8.3f} ms  floor {floor:7.3f}  error "
          f"{wrong:.1e}  {flops / ours / 1e9:.0f} TF/s, torch {theirs:.3f} ms = "
          f"{flops / theirs / 1e9:.0f} TF/s, {theirs / ours:.3f}", flush=True)


def adamw(kernel):
    n = 1 << 26
    p, g, m, v = (torch.rand(n, device="cuda") for _ in range(4))
    scalars = torch.ones(16, device="cuda")
    run = lambda: kernel([p, g, m, v, scalars], [n // 16384], [True])
    ms = median_ms(run)
    report(kernel, ms, 7 * 4 * n / COPY_RATE * 1e3, 0.0,
           f"{7 * 4 * n / ms / 1e9:.2f} TB/s")


def main():
    folder = sys.argv[1]
    torch.manual_seed(1)
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    rows = [json.loads(line) for line in open(f"{folder}/manifest.json")]
    kernels = {row["name"]: Kernel(folder, row)
               for row in rows if "function" not in row}
    functions = [row for row in rows if "function" in row]
    # Others have a script of their own (gpu_epilogues.py).
    plain = [row for row in functions
             if row["function"].split("_")[0] in ("forward", "input", "weight")]
    for row, following in zip(plain, plain[1:] + [None]):
        is_last = not following or following["function"] != row["function"]
        products(row, kernels, is_timed=is_last)
        torch.cuda.empty_cache()
    # What functions launch has been run with them.
    parts = {launch["kernel"] for row in functions for launch in row["launches"]}
    for name, kernel in kernels.items():
        if name in parts:
            continue
        dtype = torch.bfloat16 if name.endswith("bf16") else torch.float32
        if name.startswith("product") and "_hopper" in name:
            product_hopper(kernel)
        elif name.startswith("softmax_forward") and "_hopper" in name:
            softmax_hopper(kernel)
        elif name.startswith("product"):
            product(kernel, dtype)
        elif name.startswith("softmax_forward"):
            softmax_forward(kernel, dtype)
        elif name.startswith("delta_forward"):
            delta_forward(kernel)
        elif name == "adamw":
            adamw(kernel)


if __name__ == "__main__":
    main()
