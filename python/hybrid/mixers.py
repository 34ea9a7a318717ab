# Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The mixers as functions of arrays.

Shapes are [batch, seq, head, dim], as flash-linear-attention and FlashAttention
write them. Sequences of different lengths are given as one row, batch 1, with
`cu_seqlens`: the positions where each begins, and the end, [sequences + 1].
"""

import functools
import numbers
import os

from . import _arrays
from ._library import Error
from .functions import Functions

# ===-- The text of a function -----------------------------------------------===


def _number(value):
    return f"{float(value):.17e}"


class _Text:
    """One function over graph operations, under construction."""

    def __init__(self, entry):
        self._entry = entry
        self._arguments, self._body, self._results = [], [], []

    def input(self, name, type_):
        self._arguments.append(
            f'%{name}: {type_} {{hybrid.role = "input", hybrid.path = "{name}"}}'
        )
        return f"%{name}"

    def op(self, name, line):
        """`name` is what the operation's launches are called in a trace."""
        self._body.append(f'    {line} loc("{name}")')

    def result(self, value, type_, name, role="output"):
        self._results.append((value, type_, name, role))

    def __str__(self):
        segments = '%segments: !hybrid.segments {hybrid.role = "segments"}'
        arguments = ",\n    ".join(self._arguments + [segments])
        results = ", ".join(
            f'{type_} {{hybrid.role = "{role}", hybrid.path = "{name}"}}'
            for _, type_, name, role in self._results
        )
        values = ", ".join(value for value, _, _, _ in self._results)
        types = ", ".join(type_ for _, type_, _, _ in self._results)
        body = "\n".join(self._body)
        return (
            f"func.func @{self._entry}(\n    {arguments})\n    -> ({results})\n"
            f'    attributes {{hybrid.entry = "{self._entry}", hybrid.differentiate}} '
            f"{{\n{body}\n    return {values} : {types}\n}}\n"
        )


def _functions(text, name):
    # Both variables are for looking into faults: see Functions.
    return Functions(
        str(text),
        name,
        poison=bool(os.environ.get("HYBRID_POISON")),
        check_finite=bool(os.environ.get("HYBRID_CHECK_FINITE")),
    )


# What q, k and v may be made of, and what it is called in a spec.
_ELEMENTS = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}


def _in_f32(text, place, value, type_, element, operation):
    """Adds a row-wise operation, which is f32 whatever `value` is made of; returns
    the name of the result, which has the type of `value`."""
    if element == "f32":
        text.op(place, f"{value}n = {operation(value, type_)}")
        return f"{value}n"
    wide = type_.replace(element, "f32")
    text.op(place, f"{value}w = hybrid.cast {value} : {type_} to {wide}")
    text.op(place, f"{value}n = {operation(f'{value}w', wide)}")
    text.op(place, f"{value}r = hybrid.cast {value}n : {wide} to {type_}")
    return f"{value}r"


def _types(element, heads, kv_heads, dim, value_dim):
    """Of q, k, v and o."""
    return (
        f"tensor<?x{h}x{d}x{element}>"
        for h, d in (
            (heads, dim),
            (kv_heads, dim),
            (kv_heads, value_dim),
            (heads, value_dim),
        )
    )


@functools.lru_cache(maxsize=None)
def _softmax(
    element, heads, kv_heads, dim, value_dim, windows, sinks, scale, log_n
):
    q_type, k_type, v_type, o_type = _types(
        element, heads, kv_heads, dim, value_dim
    )
    lse_type = f"tensor<?x{heads}xf32>"
    text = _Text("softmax_attention")
    q = text.input("q", q_type)
    k, v = text.input("k", k_type), text.input("v", v_type)
    if log_n:
        q = _in_f32(
            text,
            "log_n",
            q,
            q_type,
            element,
            lambda x, t: f"hybrid.log_n_scale {x}, %segments trained {log_n} : {t}",
        )
    text.op(
        "attention",
        f"%o, %lse = hybrid.attention {q}, {k}, {v}, %segments scale {_number(scale)} "
        f"windows {list(windows)} sinks {list(sinks)} : ({q_type}, {k_type}, "
        f"{v_type}, !hybrid.segments) -> ({o_type}, {lse_type})",
    )
    text.result("%o", o_type, "o")
    text.result("%lse", lse_type, "log_sum_exp", role="saved")
    return _functions(text, "softmax_attention")


@functools.lru_cache(maxsize=None)
def _recurrence(
    element,
    update,
    heads,
    kv_heads,
    dim,
    value_dim,
    decay,
    beta,
    scale,
    l2norm,
    window,
    stride,
    state,
):
    """`decay` is "", "head" or "channel"; `state` says whether the function has an
    initial and a final state."""
    q_type, k_type, v_type, o_type = _types(
        element, heads, kv_heads, dim, value_dim
    )
    text = _Text("recurrence")
    operands = [text.input(*each) for each in (("q", q_type), ("k", k_type))]
    types = [q_type, k_type, v_type, "!hybrid.segments"]
    operands += [text.input("v", v_type), "%segments"]
    if l2norm:
        for i, name in enumerate("qk"):
            operands[i] = _in_f32(
                text,
                f"normalize_{name}",
                operands[i],
                types[i],
                element,
                lambda x, t: f"hybrid.normalize l2 {x} epsilon {_number(1e-6)} : {t}",
            )
    suffix = ""
    if decay:
        types.append(f"tensor<?x{heads}x{1 if decay == 'head' else dim}xf32>")
        suffix += f" decay({text.input('g', types[-1])})"
    if beta:
        types.append(f"tensor<?x{heads}xf32>")
        suffix += f" beta({text.input('beta', types[-1])})"
    results, result_types = ["%o"], [o_type]
    if state:
        state_type = f"tensor<?x{heads}x{dim}x{value_dim}xf32, #hybrid.slots>"
        types.append(state_type)
        suffix += f" initial({text.input('initial_state', state_type)})"
        results.append("%final")
        result_types.append(state_type)
    suffix += f" scale {_number(scale)}"
    if window:
        suffix += f" window {window} stride {stride}"
    text.op(
        "recurrence",
        f"{', '.join(results)} = hybrid.recurrence {update} {', '.join(operands)}"
        f"{suffix} : ({', '.join(types)}) -> ({', '.join(result_types)})"
    )
    text.result("%o", o_type, "o")
    if state:
        text.result("%final", state_type, "final_state")
    return _functions(text, f"{update}_recurrence")


# ===-- Checks ---------------------------------------------------------------===


def _refuse(message):
    raise Error("invalid_argument", message)


def _text_of(shape):
    return str(list(shape))


class _Inputs:
    """The arrays of a call, found to fit each other, and the sequences in them."""

    def __init__(self, q, k, v, cu_seqlens, **others):
        named = {"q": q, "k": k, "v": v, **others}
        self.arrays = _arrays.common_kind(named)
        shapes = {
            name: self.arrays.shape(value)
            for name, value in named.items()
            if value is not None
        }
        for name in "qkv":
            if len(shapes[name]) != 4:
                _refuse(
                    f"{name} has shape {_text_of(shapes[name])}, expected "
                    "[batch, seq, head, dim]"
                )
        self.batch, self.seq, self.heads, self.dim = shapes["q"]
        self.kv_heads, self.value_dim = shapes["k"][2], shapes["v"][3]
        if self.kv_heads < 1 or self.heads % self.kv_heads:
            _refuse(
                f"q has {self.heads} heads and k {self.kv_heads}; the query heads must "
                "be a multiple of the key heads"
            )
        rows = (self.batch, self.seq)
        self._expect("k", shapes["k"], rows + (self.kv_heads, self.dim))
        self._expect("v", shapes["v"], rows + (self.kv_heads, self.value_dim))
        device, dtype_of_q = self.arrays.device(q), self.arrays.dtype(q)
        if dtype_of_q not in _ELEMENTS:
            _refuse(
                f"q has dtype {dtype_of_q}, expected float32, bfloat16 or float16; "
                "convert it"
            )
        self.element = _ELEMENTS[dtype_of_q]
        for name, value in named.items():
            if value is None:
                continue
            dtype = self.arrays.dtype(value)
            expected = dtype_of_q if name in ("q", "k", "v") else "float32"
            if dtype != expected:
                _refuse(f"{name} has dtype {dtype}, expected {expected}; convert it")
            if self.arrays.device(value) != device:
                _refuse(
                    f"{name} is on {self.arrays.device(value)} and q on {device}; move "
                    "them to one device"
                )
        self.shapes = shapes
        self.lengths = self._find_lengths(cu_seqlens)

    def _expect(self, name, found, expected):
        if found != expected:
            _refuse(
                f"{name} has shape {_text_of(found)}, expected {_text_of(expected)} to "
                "go with q"
            )

    def expect(self, name, *expected):
        self._expect(name, self.shapes[name], expected)

    def _find_lengths(self, cu_seqlens):
        if cu_seqlens is None:
            return (self.seq,) * self.batch
        if self.batch != 1:
            _refuse(
                f"cu_seqlens is given and batch is {self.batch}; put all sequences "
                "into one row, batch 1"
            )
        if isinstance(cu_seqlens, (list, tuple)):
            ends = [int(end) for end in cu_seqlens]
        else:
            ends = _arrays.kind_of(cu_seqlens, "cu_seqlens").integers(cu_seqlens)
        lengths = tuple(end - begin for begin, end in zip(ends, ends[1:]))
        if not ends or ends[0] != 0 or ends[-1] != self.seq or min(lengths, default=0) < 0:
            _refuse(
                f"cu_seqlens is {ends[:3]}..{ends[-1:]}; it must ascend from 0 to the "
                f"{self.seq} tokens that q has"
            )
        return lengths

    def packed(self, array, *inner):
        """`array` with the tokens of all sequences in its leading dimension."""
        return self.arrays.reshape(array, (self.batch * self.seq,) + inner)

    def unpacked(self, array, *inner):
        return self.arrays.reshape(array, (self.batch, self.seq) + inner)

    def qkv(self, q, k, v):
        return {
            "q": self.packed(q, self.heads, self.dim),
            "k": self.packed(k, self.kv_heads, self.dim),
            "v": self.packed(v, self.kv_heads, self.value_dim),
        }


def _per_head(value, heads, name):
    """One whole number for all heads, or one for each; None is 0."""
    values = value if isinstance(value, (list, tuple)) else [value or 0] * heads
    if len(values) != heads:
        _refuse(f"{name} has {len(values)} entries, q has {heads} heads")
    whole = all(isinstance(entry, numbers.Real) for entry in values)
    if not whole or any(int(entry) != entry or entry < 0 for entry in values):
        _refuse(f"{name} is {value}, expected whole numbers of tokens, 0 for none")
    return tuple(int(entry) for entry in values)


# ===-- Softmax attention ----------------------------------------------------===


def softmax_attention(
    q, k, v, *, window=None, sinks=None, scale=None, log_n=None, cu_seqlens=None
):
    """Causal softmax attention inside each sequence.

    q           [batch, seq, head, dim]
    k           [batch, seq, kv_head, dim]; head is a multiple of kv_head, and query
                head h reads key and value head h // (head // kv_head)
    v           [batch, seq, kv_head, value_dim]
    window      a token sees itself and the window - 1 tokens before it; an int, or
                one per query head; None or 0: all tokens before it
    sinks       the first tokens of the sequence that stay visible outside the
                window; as `window`
    scale       of the scores; None: 1 / sqrt(dim)
    log_n       the trained length L: scores of a query at position p are multiplied
                by max(1, ln(p + 1) / ln(L)); None: they are not
    cu_seqlens  where sequences begin in a row, [sequences + 1]; batch must be 1

    Gives o, [batch, seq, head, value_dim]. Arrays are float32, bfloat16 or float16,
    of torch, numpy or the buffer protocol; torch tensors are differentiated. Raises hybrid.Error, with
    the shapes or values that do not fit.
    """
    inputs = _Inputs(q, k, v, cu_seqlens)
    function = _softmax(
        inputs.element,
        inputs.heads,
        inputs.kv_heads,
        inputs.dim,
        inputs.value_dim,
        _per_head(window, inputs.heads, "window"),
        _per_head(sinks, inputs.heads, "sinks"),
        float(inputs.dim**-0.5 if scale is None else scale),
        int(log_n or 0),
    )
    outputs = function("softmax_attention", inputs.lengths, inputs.qkv(q, k, v))
    return inputs.unpacked(outputs["o"], inputs.heads, inputs.value_dim)


# ===-- Recurrences ----------------------------------------------------------===


def _recur(
    update,
    q,
    k,
    v,
    g,
    decay,
    beta,
    scale,
    initial_state,
    output_final_state,
    cu_seqlens,
    l2norm=False,
    window=None,
    stride=None,
):
    inputs = _Inputs(q, k, v, cu_seqlens, g=g, beta=beta, initial_state=initial_state)
    heads, dim, value_dim = inputs.heads, inputs.dim, inputs.value_dim
    rows = (inputs.batch, inputs.seq, heads)
    values = inputs.qkv(q, k, v)
    if g is not None:
        channels = (dim,) if decay == "channel" else ()
        inputs.expect("g", *rows, *channels)
        values["g"] = inputs.packed(g, heads, *(channels or (1,)))
    if beta is not None:
        inputs.expect("beta", *rows)
        values["beta"] = inputs.packed(beta, heads)
    if (window is None) != (stride is None):
        _refuse(f"window is {window} and stride {stride}; give both or neither")
    has_state = output_final_state or initial_state is not None
    if has_state:
        if window is not None:
            _refuse(
                "initial_state and output_final_state do not go with a window: its "
                "states are of several beginnings; leave them out"
            )
        state_shape = (len(inputs.lengths), heads, dim, value_dim)
        if initial_state is None:
            initial_state = inputs.arrays.zeros(
                state_shape, "float32", inputs.arrays.device(q)
            )
        else:
            inputs.expect("initial_state", *state_shape)
        values["initial_state"] = initial_state
    function = _recurrence(
        inputs.element,
        update,
        heads,
        inputs.kv_heads,
        dim,
        value_dim,
        decay if g is not None else "",
        beta is not None,
        float(dim**-0.5 if scale is None else scale),
        bool(l2norm),
        int(window or 0),
        int(stride or 0),
        has_state,
    )
    outputs = function("recurrence", inputs.lengths, values)
    o = inputs.unpacked(outputs["o"], heads, value_dim)
    return o, outputs["final_state"] if output_final_state else None


def linear_attention(
    q,
    k,
    v,
    scale=None,
    initial_state=None,
    output_final_state=False,
    cu_seqlens=None,
    *,
    window=None,
    stride=None,
):
    """Linear attention: S_t = S_{t-1} + k_t v_tᵀ, o_t = scale · S_tᵀ q_t, without a
    feature map and without a normaliser. See `gla` for the arguments."""
    return _recur(
        "additive",
        q,
        k,
        v,
        None,
        "",
        None,
        scale,
        initial_state,
        output_final_state,
        cu_seqlens,
        window=window,
        stride=stride,
    )


def simple_gla(
    q,
    k,
    v,
    g,
    scale=None,
    initial_state=None,
    output_final_state=False,
    cu_seqlens=None,
    *,
    window=None,
    stride=None,
):
    """Gated linear attention with one decay per head: g is [batch, seq, head]. See
    `gla` for the other arguments."""
    return _recur(
        "additive",
        q,
        k,
        v,
        g,
        "head",
        None,
        scale,
        initial_state,
        output_final_state,
        cu_seqlens,
        window=window,
        stride=stride,
    )


def gla(
    q,
    k,
    v,
    g,
    scale=None,
    initial_state=None,
    output_final_state=False,
    cu_seqlens=None,
    *,
    window=None,
    stride=None,
):
    """Gated linear attention: S_t = diag(exp(g_t)) S_{t-1} + k_t v_tᵀ,
    o_t = scale · S_tᵀ q_t.

    q                   [batch, seq, head, dim]
    k                   [batch, seq, kv_head, dim]; head is a multiple of kv_head
    v                   [batch, seq, kv_head, value_dim]
    g                   [batch, seq, head, dim], the decay in log space, at most 0
    scale               None: 1 / sqrt(dim)
    initial_state       [sequences, head, dim, value_dim]; None: zeros
    output_final_state  whether the last state comes back
    cu_seqlens          where sequences begin in a row, [sequences + 1]; batch must
                        be 1
    window, stride      bound the history (sliding-window linear attention): the
                        output at position p is that of a recurrence started at 0
                        for p < window, else at
                        stride · (floor((p - window) / stride) + 1). Without states

    Gives o, [batch, seq, head, value_dim], and the final state,
    [sequences, head, dim, value_dim] or None. q, k, v and o are float32, or bfloat16
    or float16; gates, beta and states are float32. Arrays are of torch, numpy or
    the buffer protocol; torch tensors are differentiated, states included. Raises
    hybrid.Error, with the shapes or values that do not fit.
    """
    return _recur(
        "additive",
        q,
        k,
        v,
        g,
        "channel",
        None,
        scale,
        initial_state,
        output_final_state,
        cu_seqlens,
        window=window,
        stride=stride,
    )


def delta_rule(
    q,
    k,
    v,
    beta,
    scale=None,
    initial_state=None,
    output_final_state=False,
    cu_seqlens=None,
    use_qk_l2norm_in_kernel=False,
):
    """The delta rule: S_t = S_{t-1} + beta_t k_t (v_t - S_{t-1}ᵀ k_t)ᵀ,
    o_t = scale · S_tᵀ q_t. beta is [batch, seq, head]; with
    `use_qk_l2norm_in_kernel` q and k are divided by sqrt(Σ x² + 1e-6) first. See
    `gla` for the other arguments."""
    return _recur(
        "delta",
        q,
        k,
        v,
        None,
        "",
        beta,
        scale,
        initial_state,
        output_final_state,
        cu_seqlens,
        l2norm=use_qk_l2norm_in_kernel,
    )


def gated_delta_rule(
    q,
    k,
    v,
    g,
    beta,
    scale=None,
    initial_state=None,
    output_final_state=False,
    cu_seqlens=None,
    use_qk_l2norm_in_kernel=False,
):
    """The gated delta rule: with S' = exp(g_t) S_{t-1},
    S_t = S' + beta_t k_t (v_t - S'ᵀ k_t)ᵀ and o_t = scale · S_tᵀ q_t. g and beta are
    [batch, seq, head]; see `delta_rule` and `gla` for the other arguments."""
    return _recur(
        "delta",
        q,
        k,
        v,
        g,
        "head",
        beta,
        scale,
        initial_state,
        output_final_state,
        cu_seqlens,
        l2norm=use_qk_l2norm_in_kernel,
    )
