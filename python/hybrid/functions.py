# Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain functions of tensors, compiled by hybridc: called on arrays, and with
torch differentiated by their compiled adjoints."""

import collections
import ctypes
import threading

from . import _arrays, _compiler, _library
from ._library import Error

# Contexts and argument lists kept per function and device.
_MOST_KEPT = 16

Argument = collections.namedtuple("Argument", "name is_output dtype shape")


class _Kept(collections.OrderedDict):
    """The most recently used of what is costly to make."""

    def get_or_make(self, key, make):
        if key in self:
            self.move_to_end(key)
            return self[key]
        value = self[key] = make()
        while len(self) > _MOST_KEPT:
            self.popitem(last=False)
        return value


class _OnDevice:
    """The functions of one artefact, opened for one device."""

    def __init__(self, model, checks):
        self._model, self._checks = model, checks
        self._contexts, self._arguments = _Kept(), _Kept()
        # An object of the C API is for one thread at a time; torch runs adjoints
        # in threads of its own.
        self._lock = threading.Lock()

    def arguments(self, entry, lengths):
        """All arguments of an entry in a call on sequences of these lengths."""
        with self._lock:
            return self._arguments.get_or_make(
                (entry, lengths), lambda: self._describe(entry, lengths)
            )

    def _describe(self, entry, lengths):
        described = []
        sizes = (ctypes.c_int64 * max(len(lengths), 1))(*lengths)
        while True:
            info = _library.ArgumentInfo()
            try:
                _library.library().call(
                    "hyb_describe_argument",
                    self._model.value,
                    entry.encode(),
                    len(described),
                    sizes,
                    len(lengths),
                    ctypes.byref(info),
                    ctypes.sizeof(info),
                )
            except Error as problem:
                if problem.status == "out_of_range":
                    return described
                raise
            described.append(
                Argument(
                    info.name.decode(),
                    bool(info.is_output),
                    _arrays.type_name(info.type),
                    tuple(info.shape[: info.rank]),
                )
            )

    def run(self, entry, lengths, tensors, stream):
        """Calls with the C API's tensors, by name."""
        arguments = (_library.Argument * max(len(tensors), 1))()
        for argument, (name, tensor) in zip(arguments, tensors.items()):
            argument.name, argument.tensor = name.encode(), ctypes.pointer(tensor)
        sizes = (ctypes.c_int64 * max(len(lengths), 1))(*lengths)
        with self._lock:
            context = self._contexts.get_or_make(
                stream,
                lambda: _library.create_context(self._model, stream, **self._checks),
            )
            _library.library().call(
                "hyb_call",
                context.value,
                entry.encode(),
                arguments,
                len(tensors),
                sizes,
                len(lengths),
            )


class Functions:
    """A module of functions: compiled once for every kind of device it is called
    on, and kept in the cache on disk.

    `text` is MLIR, functions with `hybrid.entry` over graph operations (see
    docs/python.md); `name` is for people who look into the cache. With `poison`
    memory that nobody wrote holds NaN, which finds faults and is slow. With
    `check_finite` a call ends with an `Error` ("not_finite") at the first NaN or
    infinity that a kernel is given or makes, by name; slow too. Not both.
    """

    def __init__(self, text, name, poison=False, check_finite=False):
        self._text, self._name = text, name
        self._checks = {"poison": poison, "check_finite": check_finite}
        self._opened = {}
        self._lock = threading.Lock()

    def _on(self, arrays, device):
        key = (device, _library.process())
        with self._lock:
            if key not in self._opened:
                target = arrays.target(device)
                model = _compiler.open_compiled(self._text, target, self._name, device)
                self._opened[key] = _OnDevice(model, self._checks)
            return self._opened[key]

    def __call__(self, entry, lengths, inputs):
        """Calls `entry` on sequences of these `lengths`.

        `inputs` are arrays by name, their leading dimension the tokens of all
        sequences one after the other. Gives the outputs by name, in new arrays of
        the same library on the same device. torch tensors that require gradients
        get them, where the module has `<entry>_backward`.
        """
        arrays = _arrays.common_kind(inputs)
        if arrays is None:
            raise Error("invalid_argument", f"'{entry}' is called without an array")
        lengths = tuple(int(length) for length in lengths)
        if arrays.name == "torch":
            torch = arrays.torch
            if torch.is_grad_enabled() and any(
                value.requires_grad for value in inputs.values()
            ):
                return _differentiable(self, entry, lengths, inputs)
        return self.run(entry, lengths, inputs, arrays)

    def run(self, entry, lengths, inputs, arrays):
        """The call itself, without gradients."""
        device = arrays.device(next(iter(inputs.values())))
        on = self._on(arrays, device)
        values = {name: arrays.ready(value) for name, value in inputs.items()}
        outputs = {}
        for argument in on.arguments(entry, lengths):
            if argument.is_output:
                outputs[argument.name] = arrays.empty(
                    argument.shape, argument.dtype, device
                )
        tensors, alive = {}, []
        for name, value in {**values, **outputs}.items():
            tensors[name], sizes = _arrays.dl_tensor(arrays, value)
            alive.append(sizes)
        on.run(entry, lengths, tensors, arrays.stream(device))
        return outputs

    def arguments(self, entry, lengths, arrays, device):
        return self._on(arrays, device).arguments(entry, lengths)


_autograd = None


def _differentiable(functions, entry, lengths, inputs):
    """Calls under torch.autograd."""
    global _autograd
    if _autograd is None:
        _autograd = _make_autograd(_arrays.kind("torch"))
    names = tuple(inputs)
    output_names = []
    results = _autograd.apply(
        functions, entry, lengths, names, output_names, *inputs.values()
    )
    return dict(zip(output_names, results))


def _make_autograd(arrays):
    torch = arrays.torch

    class Call(torch.autograd.Function):
        @staticmethod
        def forward(ctx, functions, entry, lengths, names, output_names, *tensors):
            inputs = dict(zip(names, tensors))
            outputs = functions.run(entry, lengths, inputs, arrays)
            output_names.extend(outputs)
            device = arrays.device(tensors[0])
            backward = entry + "_backward"
            try:
                wanted = functions.arguments(backward, lengths, arrays, device)
            except Error as problem:
                raise Error(
                    problem.status,
                    f"'{entry}' has no gradient: {problem}; give its function the "
                    "attribute hybrid.differentiate",
                ) from problem
            wanted = [argument.name for argument in wanted if not argument.is_output]
            known = {**inputs, **outputs}
            ctx.kept = [name for name in wanted if name in known]
            ctx.save_for_backward(*(known[name] for name in ctx.kept))
            ctx.call = functions, backward, lengths, names, tuple(outputs)
            # What is saved for backward alone has no gradient.
            ctx.mark_non_differentiable(
                *(
                    value
                    for name, value in outputs.items()
                    if "d" + name not in wanted
                )
            )
            return tuple(outputs.values())

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, *cotangents):
            functions, backward, lengths, names, output_names = ctx.call
            inputs = dict(zip(ctx.kept, ctx.saved_tensors))
            device = arrays.device(cotangents[0])
            wanted = functions.arguments(backward, lengths, arrays, device)
            for name, cotangent in zip(output_names, cotangents):
                if any(argument.name == "d" + name for argument in wanted):
                    inputs["d" + name] = cotangent
            gradients = functions.run(backward, lengths, inputs, arrays)
            return (None,) * 5 + tuple(gradients.get("d" + name) for name in names)

    return Call
