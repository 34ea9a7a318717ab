# Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models: compiled from a spec, trained, scored and asked for text."""

import collections
import ctypes
import operator
import os
import pathlib

from . import _arrays, _compiler, _library
from ._library import Error

Update = collections.namedtuple("Update", "gradient_norm weight skipped step")
Update.__doc__ = """One step of the optimiser.

`gradient_norm` is of the mean loss, before clipping; `weight` is summed over what
was accumulated; `skipped` says that the gradient was not finite or had no labels;
`step` counts the steps taken.
"""


def compile(spec, target=None, device=None, arrays=None, products="compiled"):
    """Compiles a spec, or opens an artefact, as a Model.

    spec    the path of a spec (.mlir) or of an artefact (.hbx), or the text of a
            spec
    target  what hybridc makes code for: "cpu" or "cuda:sm_90a" and its like; None:
            what `device` needs
    device  where the model runs: "cpu" or "cuda:0"; None: "cpu", or "cuda:0" for a
            target of a GPU
    arrays  what comes out: "torch", "numpy" or "buffer" (memoryviews); None: the
            first of them that can be imported
    products  who computes matrix products on a GPU: "compiled", "cublaslt", or
            "auto" (hyb_runtime_options in runtime.h)

    Parameters are 0 until `initialise` or `load_weights`. A spec is compiled once
    and kept in the cache. Raises hybrid.Error, CompileError or CompilerNotFound.
    """
    if arrays is None:
        arrays = _first_library()
    kind = _arrays.kind(arrays)
    if device is None:
        device = "cuda:0" if target and target.startswith("cuda") else "cpu"
    if target is None:
        target = "cpu"
        if device.startswith("cuda"):
            target = _arrays.kind("torch").target(device)
    if not isinstance(spec, (str, os.PathLike)):
        raise Error(
            "invalid_argument",
            f"spec is of type {type(spec).__name__}; give the path of a spec (.mlir) or "
            "of an artefact (.hbx), or the text of a spec",
        )
    text = str(spec)
    if "\n" in text or text.lstrip().startswith("hybrid."):
        name = "model"
    elif text.endswith(".hbx"):
        return Model(_library.open_artefact(text, device, products), kind)
    else:
        path = pathlib.Path(spec)
        name = path.stem
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as problem:
            raise Error("io", f"cannot read the spec '{spec}': {problem}") from problem
    return Model(_compiler.open_compiled(text, target, name, device, products), kind)


def _first_library():
    for name in ("torch", "numpy"):
        try:
            _arrays.kind(name)
            return name
        except Error:
            continue
    return "buffer"


def _table(values, role):
    """The shape of a list, or of lists of one length in a list, and what is in
    them, row by row."""
    rows = [part for part in values if isinstance(part, (list, tuple))]
    if not rows:
        return (len(values),), values
    if len(rows) < len(values) or len({len(row) for row in rows}) > 1:
        raise Error(
            "invalid_argument",
            f"{role} is a list of rows of unlike lengths; give rows of one length, or "
            "one list of all tokens and where each sequence begins (cu_seqlens)",
        )
    return (len(rows), len(rows[0])), [value for row in rows for value in row]


def _convert(convert, values, role, expected):
    """Each of the values by `convert`; an Error where one cannot be."""
    try:
        return [convert(value) for value in values]
    except (TypeError, ValueError):
        for value in values:
            try:
                convert(value)
            except (TypeError, ValueError):
                raise Error(
                    "invalid_argument",
                    f"{role} has a value of type {type(value).__name__}, expected "
                    f"{expected}",
                ) from None
        raise


def _seed(value):
    """A seed that C's type holds: another would come out as a number of its own."""
    (seed,) = _convert(operator.index, [value], "seed", "a whole number")
    if not 0 <= seed < 2**64:
        raise Error("invalid_argument", f"seed is {seed}; give one from 0 to 2^64 - 1")
    return seed


class _HostInts:
    """Integers of a caller as i32 in the host's memory."""

    def __init__(self, values, role):
        if isinstance(values, (bytes, bytearray)):
            values = list(values)
        if isinstance(values, (int, str)):
            raise Error(
                "invalid_argument",
                f"{role} is of type {type(values).__name__}; give ids as a list, as "
                "bytes, or as an array of whole numbers",
            )
        if isinstance(values, (list, tuple)):
            self.shape, values = _table(values, role)
            values = _convert(operator.index, values, role, "whole numbers")
        else:
            arrays = _arrays.kind_of(values, role)
            self.shape = arrays.shape(values)
            dtype = arrays.dtype(values)
            if not dtype.startswith(("int", "uint")):
                raise Error(
                    "invalid_argument", f"{role} has dtype {dtype}, expected integers"
                )
            values = arrays.integers(arrays.reshape(values, (-1,)))
        self.count = len(values)
        # What does not fit is no id; the runtime says so.
        values = [value if -(2**31) <= value < 2**31 else -1 for value in values]
        self.data = (ctypes.c_int32 * max(self.count, 1))(*values)


def _lengths(ids, cu_seqlens):
    """The lengths of the sequences in ids [tokens] or [batch, seq]."""
    if cu_seqlens is not None:
        ends = _HostInts(cu_seqlens, "cu_seqlens")
        ends = list(ends.data)[: ends.count]
        if not ends or ends[0] != 0 or ends[-1] != ids.count or sorted(ends) != ends:
            raise Error(
                "invalid_argument",
                f"cu_seqlens is {ends[:3]}..{ends[-1:]}; it must ascend from 0 to the "
                f"{ids.count} tokens of ids",
            )
        return [end - begin for begin, end in zip(ends, ends[1:])]
    if len(ids.shape) == 2:
        return [ids.shape[1]] * ids.shape[0]
    return [ids.count]


def _segments(lengths, slots):
    segments = (_library.Segment * max(len(lengths), 1))()
    for segment, length, slot in zip(segments, lengths, slots):
        segment.length, segment.slot = length, slot
    return segments


class _Batch:
    """The C API's batch, and what it points to."""

    def __init__(self, ids, labels, weights, cu_seqlens):
        self.ids, self.labels = _HostInts(ids, "ids"), _HostInts(labels, "labels")
        self.lengths = _lengths(self.ids, cu_seqlens)
        if self.labels.shape != self.ids.shape:
            raise Error(
                "invalid_argument",
                f"labels has shape {list(self.labels.shape)} and ids "
                f"{list(self.ids.shape)}; give each token the class it should predict, "
                "or -100",
            )
        self._segments = _segments(self.lengths, [0] * len(self.lengths))
        self._weights = None
        if weights is not None:
            values = _convert(float, _flat(weights, "weights"), "weights", "numbers")
            if len(values) != self.ids.count:
                raise Error(
                    "invalid_argument",
                    f"weights has {len(values)} entries and ids {self.ids.count}",
                )
            self._weights = (ctypes.c_float * max(len(values), 1))(*values)
        self.struct = _library.Batch(
            ids=ctypes.addressof(self.ids.data),
            tokens=self.ids.count,
            segments=self._segments,
            segment_count=len(self.lengths),
            labels=ctypes.addressof(self.labels.data),
            weights=ctypes.addressof(self._weights) if self._weights else None,
        )


def _flat(values, role):
    if isinstance(values, (list, tuple)):
        return _table(values, role)[1]
    arrays = _arrays.kind_of(values, role)
    flat = arrays.reshape(values, (-1,))
    return flat.tolist()


class Model:
    """A compiled model with its parameters, made by `hybrid.compile`.

    An object is for one thread at a time.
    """

    def __init__(self, handle, arrays):
        self._handle, self._arrays = handle, arrays
        self._library = _library.library()
        self._context_handle = self._trainer_handle = None
        info = _library.ModelInfo()
        self._library.call(
            "hyb_model_get_info", handle.value, ctypes.byref(info), ctypes.sizeof(info)
        )
        self.name, self.spec = info.name.decode(), info.spec.decode()
        self.vocabulary = info.vocabulary
        self.trained_length = info.trained_length
        self.device = info.device.decode()
        self.code = info.cpu_level.decode()
        if not info.dtype:
            raise Error(
                "unsupported",
                f"the runtime '{self._library.path}' is older than this package; "
                "install both, or set HYBRID_RUNTIME to the library of this version",
            )
        self.dtype = info.dtype.decode()
        self._parameter_count = info.parameter_tensors

    def __repr__(self):
        return f"<hybrid.Model {self.name} on {self.device}, {self.code}>"

    @property
    def _context(self):
        if self._context_handle is None:
            self._context_handle = _library.create_context(self._handle)
        return self._context_handle.value

    # ===-- Parameters ------------------------------------------------------===

    def _paths(self):
        for index in range(self._parameter_count):
            parameter = _library.Parameter()
            self._library.call(
                "hyb_model_get_parameter",
                self._handle.value,
                index,
                ctypes.byref(parameter),
                ctypes.sizeof(parameter),
            )
            yield index, parameter.path.decode()

    def _share(self, function, owner, index):
        managed = ctypes.POINTER(_library.DLManaged)()
        self._library.call(function, owner, index, ctypes.byref(managed))
        return self._arrays.shared(managed, self._handle)

    def parameters(self):
        """All parameters by path, as arrays that share the model's memory: writing
        to one changes the model."""
        return {
            path: self._share("hyb_model_share_parameter", self._handle.value, index)
            for index, path in self._paths()
        }

    def initialise(self, seed=0):
        """Fills the parameters with the spec's distributions."""
        self._library.call("hyb_model_initialise", self._handle.value, _seed(seed))

    def load_weights(self, path):
        """Reads all parameters from a .safetensors file, or from the folder of a
        training run."""
        self._library.call(
            "hyb_model_load_weights", self._handle.value, os.fsencode(path)
        )

    def save_weights(self, path):
        """Writes all parameters to a .safetensors file, atomically."""
        self._library.call(
            "hyb_model_save_weights", self._handle.value, os.fsencode(path)
        )

    # ===-- Loss and training -----------------------------------------------===

    def loss(self, ids, labels, weights=None, cu_seqlens=None):
        """Cross entropy of each token in nats, times its weight.

        ids         [batch, seq] or [tokens], whole numbers below the vocabulary; an
                    array, a list, or lists in a list
        labels      of the shape of ids: the class each token should predict, that is
                    the next id; -100 leaves a token out
        weights     of the shape of ids; None: 1
        cu_seqlens  where sequences begin in ids [tokens]; None: one sequence a row

        Gives an array of the shape of ids, in the memory of the host.
        """
        batch = _Batch(ids, labels, weights, cu_seqlens)
        losses = ctypes.POINTER(ctypes.c_float)()
        self._library.call(
            "hyb_loss", self._context, ctypes.byref(batch.struct), ctypes.byref(losses)
        )
        result = self._arrays.empty(batch.ids.shape, "float32", "cpu")
        ctypes.memmove(self._arrays.address(result), losses, 4 * batch.ids.count)
        return result

    @property
    def _trainer(self):
        if self._trainer_handle is None:
            self._make_trainer()
        return self._trainer_handle.value

    def _make_trainer(self, **options):
        context, handle = self._context, ctypes.c_void_p()
        chosen = _library.TrainerOptions()
        self._library.fill("hyb_trainer_options_init", chosen)
        for name, value in options.items():
            setattr(chosen, name, value)
        self._library.call(
            "hyb_trainer_create", context, ctypes.byref(chosen), ctypes.byref(handle)
        )
        self._trainer_handle = _library.Handle(
            "trainer", handle, (self._context_handle, self._handle)
        )

    def optimiser(
        self,
        beta1=0.9,
        beta2=0.95,
        epsilon=1e-8,
        weight_decay=0.1,
        clip_norm=1.0,
        seed=0,
    ):
        """Chooses the constants of AdamW and starts its moments at 0. The seed is
        that of what training leaves out at random (`dropout` of the spec)."""
        self._make_trainer(
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            weight_decay=weight_decay,
            clip_norm=clip_norm,
            seed=seed,
        )

    def backward(self, ids, labels, weights=None, cu_seqlens=None):
        """Adds the gradient of the summed loss to `gradients`. Arguments as of
        `loss`. Gives the summed loss and the summed weight of tokens with a label.
        """
        batch = _Batch(ids, labels, weights, cu_seqlens)
        loss, weight = ctypes.c_double(), ctypes.c_double()
        self._library.call(
            "hyb_trainer_accumulate",
            self._trainer,
            ctypes.byref(batch.struct),
            ctypes.byref(loss),
            ctypes.byref(weight),
        )
        return loss.value, weight.value

    def gradients(self):
        """What `backward` added up since the last `step`, by path, as arrays that
        share the trainer's memory."""
        return {
            path: self._share("hyb_trainer_share_gradient", self._trainer, index)
            for index, path in self._paths()
        }

    def step(self, learning_rate):
        """One AdamW step on the mean loss of what was accumulated, then clears the
        gradients. Gives an Update."""
        update = _library.Update()
        self._library.call(
            "hyb_trainer_update",
            self._trainer,
            *_convert(float, [learning_rate], "learning_rate", "a number"),
            ctypes.byref(update),
        )
        return Update(
            update.gradient_norm, update.weight, bool(update.skipped), update.step
        )

    def save_checkpoint(self, path):
        """Writes parameters, moments and step count, atomically."""
        self._library.call("hyb_trainer_save", self._trainer, os.fsencode(path))

    def load_checkpoint(self, path):
        self._library.call("hyb_trainer_load", self._trainer, os.fsencode(path))

    # ===-- Text ------------------------------------------------------------===

    def state(self, slots=1, context=0, chunk=0, rollback_depth=0):
        """Makes a State: `slots` sequences of at most `context` tokens, 0: the
        trained length or 4096."""
        return State(self, slots, context, chunk, rollback_depth)

    def generate(
        self,
        prompt,
        max_tokens=256,
        temperature=0.0,
        top_k=0,
        top_p=1.0,
        seed=0,
        stop_token=-1,
        state=None,
        slot=0,
        on_token=None,
    ):
        """Appends `prompt` to a slot, then draws tokens one at a time.

        prompt       ids, or for a model of bytes a str or bytes
        temperature  0: the likeliest token
        state, slot  what is continued; None: a new state, which is forgotten
        on_token     called with every token; a true result ends the text

        Gives the drawn ids as a list, or for a str or bytes prompt bytes.
        """
        as_bytes = isinstance(prompt, (str, bytes))
        if as_bytes and self.vocabulary != 256:
            raise Error(
                "invalid_argument",
                f"prompt is text and the vocabulary has {self.vocabulary} ids, not the "
                "256 of bytes; give ids",
            )
        ids = _HostInts(
            prompt.encode() if isinstance(prompt, str) else prompt, "prompt"
        )
        if state is None:
            state = self.state()
        sampling = _library.Sampling(
            ctypes.sizeof(_library.Sampling),
            temperature,
            top_k,
            top_p,
            _seed(seed),
            max_tokens,
            stop_token,
        )
        tokens, raised = [], []

        def take(_, token):
            tokens.append(token)
            try:
                return 1 if on_token is not None and on_token(token) else 0
            except BaseException as problem:  # to be raised outside the C code
                raised.append(problem)
                return 1

        try:
            self._library.call(
                "hyb_generate",
                self._context,
                state.handle.value,
                slot,
                ids.data,
                ids.count,
                ctypes.byref(sampling),
                _library.TokenCallback(take),
                None,
            )
        except Error as problem:
            if problem.status != "cancelled":
                raise
        if raised:
            raise raised[0]
        return bytes(tokens) if as_bytes else tokens


class State:
    """What sequences have to remember, one slot each. Made by `Model.state`."""

    def __init__(self, model, slots, context, chunk, rollback_depth):
        self._model = model
        self._library = model._library
        options = _library.StateOptions(
            ctypes.sizeof(_library.StateOptions), slots, context, chunk, rollback_depth
        )
        handle = ctypes.c_void_p()
        self._library.call(
            "hyb_state_create",
            model._handle.value,
            ctypes.byref(options),
            ctypes.byref(handle),
        )
        self.handle = _library.Handle("state", handle, model._handle)

    def length(self, slot=0):
        """Tokens in a slot."""
        return self._library.state_length(self.handle.value, slot)

    def reset(self, slot=0):
        self._library.call("hyb_state_reset", self.handle.value, slot)

    def fork(self, source, target):
        """Makes slot `target` a copy of slot `source`."""
        self._library.call("hyb_state_fork", self.handle.value, source, target)

    def rollback(self, slot, tokens):
        """Takes back the last `tokens` tokens, at most the rollback depth."""
        self._library.call(
            "hyb_state_rollback", self._model._context, self.handle.value, slot, tokens
        )

    def save(self, slot, path):
        self._library.call(
            "hyb_state_save", self.handle.value, slot, os.fsencode(path)
        )

    def load(self, slot, path):
        self._library.call(
            "hyb_state_load", self.handle.value, slot, os.fsencode(path)
        )

    def tensors(self):
        """The buffers of the state, [slots, ...], sharing its memory."""
        found = []
        while True:
            try:
                found.append(
                    self._model._share("hyb_state_share", self.handle.value, len(found))
                )
            except Error as problem:
                if problem.status == "out_of_range":
                    return found
                raise

    def extend(self, ids, slots=(0,), cu_seqlens=None, all_rows=False):
        """Appends tokens to slots and gives logits.

        ids       [batch, seq] or [tokens]
        slots     the slot of each sequence, or of the one there is
        all_rows  logits of every token, else of each sequence's last one

        Gives [sequences, vocabulary] or [tokens, vocabulary] on the model's device.
        """
        values = _HostInts(ids, "ids")
        lengths = _lengths(values, cu_seqlens)
        if isinstance(slots, int):
            slots = (slots,)
        if len(lengths) != len(slots):
            raise Error(
                "invalid_argument",
                f"ids holds {len(lengths)} sequences and slots {len(slots)} entries",
            )
        shape = (ctypes.c_int64 * 1)(values.count)
        tensor = _library.DLTensor(
            ctypes.addressof(values.data),
            _library.DLDevice(_library.DL_CPU, 0),
            1,
            _library.DLType(_library.DL_INT, 32, 1),
            ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)),
            None,
            0,
        )
        managed = ctypes.POINTER(_library.DLManaged)()
        self._library.call(
            "hyb_extend_shared",
            self._model._context,
            self.handle.value,
            ctypes.byref(tensor),
            _segments(lengths, slots),
            len(lengths),
            1 if all_rows else 0,
            ctypes.byref(managed),
        )
        return self._model._arrays.taken(managed)
