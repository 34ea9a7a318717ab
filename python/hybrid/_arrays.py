# Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arrays of a caller: torch tensors, numpy arrays, and anything else with
Python's buffer protocol. Neither library is imported before it is used."""

import ctypes
import math
import sys
import weakref

from . import _library

# What the runtime wants a buffer to start at, on the host and on a GPU.
_HOST_ALIGNMENT, _DEVICE_ALIGNMENT = 64, 256

_TYPES = {
    "float32": _library.DLType(_library.DL_FLOAT, 32, 1),
    "bfloat16": _library.DLType(_library.DL_BFLOAT, 16, 1),
    "float16": _library.DLType(_library.DL_FLOAT, 16, 1),
    "int32": _library.DLType(_library.DL_INT, 32, 1),
}


def type_name(type_):
    """The name of a DLPack type."""
    names = {
        _library.DL_INT: "int",
        _library.DL_UINT: "uint",
        _library.DL_BFLOAT: "bfloat",
    }
    return f"{names.get(type_.code, 'float')}{type_.bits}"


class TorchArrays:
    """Tensors of torch, on the host or on a GPU."""

    name = "torch"

    def __init__(self):
        import torch

        self.torch = torch

    def dtype(self, array):
        return str(array.dtype).rpartition(".")[2]

    def device(self, array):
        if array.device.type == "cuda":
            index = array.device.index
            if index is None:
                index = self.torch.cuda.current_device()
            return f"cuda:{index}"
        return array.device.type

    def shape(self, array):
        return tuple(array.shape)

    def address(self, array):
        return array.data_ptr()

    def ready(self, array):
        """The array itself where the runtime can use it, else a copy."""
        array = array.detach().contiguous()
        alignment = _DEVICE_ALIGNMENT if array.is_cuda else _HOST_ALIGNMENT
        if array.data_ptr() % alignment:
            array = array.clone()
        return array

    def reshape(self, array, shape):
        return array.reshape(shape)

    def empty(self, shape, dtype, device):
        return self.torch.empty(
            shape, dtype=getattr(self.torch, dtype), device=device
        )

    def zeros(self, shape, dtype, device):
        return self.torch.zeros(
            shape, dtype=getattr(self.torch, dtype), device=device
        )

    def integers(self, array):
        return [int(value) for value in array.tolist()]

    def shared(self, managed, owned):
        """A tensor over memory of the runtime, which it keeps alive."""
        new_capsule = ctypes.pythonapi.PyCapsule_New
        new_capsule.restype = ctypes.py_object
        new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return self.torch.utils.dlpack.from_dlpack(
            new_capsule(managed, b"dltensor", None)
        )

    def taken(self, managed):
        """The same for memory that nobody else has."""
        return self.shared(managed, None)

    def stream(self, device):
        """The stream that the caller works in; None on the host."""
        if not device.startswith("cuda"):
            return None
        return self.torch.cuda.current_stream(self.torch.device(device)).cuda_stream

    def target(self, device):
        """What hybridc is to make code for."""
        if not device.startswith("cuda"):
            return "cpu"
        capability = self.torch.cuda.get_device_capability(self.torch.device(device))
        for least, chip in (
            ((12, 0), "sm_120a"),
            ((10, 0), "sm_100a"),
            ((9, 0), "sm_90a"),
            ((8, 9), "sm_89"),
            ((8, 0), "sm_80"),
        ):
            # Code for a chip with an `a` runs on that chip alone.
            fits = capability == least if chip.endswith("a") else capability >= least
            if fits and capability[0] == least[0]:
                return f"cuda:{chip}"
        raise _library.Error(
            "unsupported",
            f"{device} has compute capability {capability[0]}.{capability[1]}, for "
            "which hybridc makes no code; it makes code for 8.0 to 8.9, 9.0, 10.0 "
            "and 12.0",
        )


class _HostArrays:
    """What arrays of the host have in common."""

    def device(self, array):
        return "cpu"

    def stream(self, device):
        return None

    def target(self, device):
        return "cpu"


def _aligned(count, width):
    """A writable buffer of `count` elements that starts where the runtime wants
    it, as bytes."""
    size = count * width
    memory = bytearray(size + _HOST_ALIGNMENT)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    skip = -begin % _HOST_ALIGNMENT
    return memoryview(memory)[skip : skip + size]


def _release(managed):
    managed.contents.deleter(managed)


def _shape_and_address(managed):
    tensor = managed.contents.tensor
    if tensor.device.type != _library.DL_CPU:
        _release(managed)
        raise _library.Error(
            "unsupported",
            "memory of a GPU is no array of the host; use arrays=\"torch\"",
        )
    return tuple(tensor.shape[: tensor.rank]), tensor.data


class NumpyArrays(_HostArrays):
    """Arrays of numpy."""

    name = "numpy"

    def __init__(self):
        import numpy

        self.numpy = numpy

    def dtype(self, array):
        return array.dtype.name

    def shape(self, array):
        return tuple(array.shape)

    def address(self, array):
        return array.ctypes.data

    def ready(self, array):
        array = self.numpy.ascontiguousarray(array)
        if array.ctypes.data % _HOST_ALIGNMENT and array.size:
            copy = self.empty(array.shape, array.dtype.name, "cpu")
            copy[...] = array
            array = copy
        return array

    def reshape(self, array, shape):
        return array.reshape(shape)

    def empty(self, shape, dtype, device):
        kind = self.numpy.dtype(dtype)
        memory = _aligned(math.prod(shape), kind.itemsize)
        return self.numpy.frombuffer(memory, dtype=kind).reshape(shape)

    def zeros(self, shape, dtype, device):
        # A new bytearray holds zeros.
        return self.empty(shape, dtype, device)

    def integers(self, array):
        return array.ravel().tolist()

    def shared(self, managed, owned):
        """An array over memory of the runtime, which it keeps alive."""
        shape, address = _shape_and_address(managed)
        # numpy keeps this object, and it ends the share with itself.
        floats = type("Floats", (ctypes.c_float * math.prod(shape),), {})
        memory = floats.from_address(address)
        weakref.finalize(memory, _release, managed).atexit = False
        return self.numpy.ctypeslib.as_array(memory).reshape(shape)

    def taken(self, managed):
        return self.shared(managed, None)


class BufferArrays(_HostArrays):
    """Objects with Python's buffer protocol; what comes back are memoryviews."""

    name = "buffer"
    _formats = {"f": "float32", "i": "int32", "l": "int64", "q": "int64"}

    def _view(self, array):
        return array if isinstance(array, memoryview) else memoryview(array)

    def dtype(self, array):
        view = self._view(array)
        name = self._formats.get(view.format.lstrip("@=<"), None)
        return name or {"d": "float64", "e": "float16"}.get(view.format, view.format)

    def shape(self, array):
        return tuple(self._view(array).shape)

    def address(self, array):
        view = self._view(array)
        if view.nbytes == 0:
            return 0
        return ctypes.addressof((ctypes.c_char * view.nbytes).from_buffer(view))

    def ready(self, array):
        view = self._view(array)
        if (
            view.c_contiguous
            and not view.readonly
            and self.address(view) % _HOST_ALIGNMENT == 0
        ):
            return view
        copy = _aligned(view.nbytes, 1)
        copy[:] = view.tobytes()
        return self._shaped(copy, view.format, view.shape)

    def _shaped(self, view, format_, shape):
        if math.prod(shape) == 0:
            raise _library.Error(
                "unsupported",
                f"a buffer of shape {list(shape)} has no elements, which memoryview "
                "cannot express; use numpy or torch",
            )
        return view.cast("B").cast(format_, shape=list(shape))

    def reshape(self, array, shape):
        view = self._view(array)
        if shape == (-1,):
            shape = (math.prod(view.shape),)
        return self._shaped(view, view.format, shape)

    def empty(self, shape, dtype, device):
        format_ = {"float32": "f", "int32": "i"}[dtype]
        return self._shaped(_aligned(math.prod(shape), 4), format_, shape)

    zeros = empty

    def integers(self, array):
        return self._view(array).tolist()

    def shared(self, managed, owned):
        """A view of memory of the runtime, valid as long as `owned` is."""
        shape, address = _shape_and_address(managed)
        weakref.finalize(owned, _release, managed).atexit = False
        view = ctypes.pythonapi.PyMemoryView_FromMemory
        view.restype = ctypes.py_object
        view.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]
        writable = 0x200
        return self._shaped(view(address, 4 * math.prod(shape), writable), "f", shape)

    def taken(self, managed):
        shape, address = _shape_and_address(managed)
        copy = self.empty(shape, "float32", "cpu")
        ctypes.memmove(self.address(copy), address, 4 * math.prod(shape))
        _release(managed)
        return copy


_kinds = {}


def kind(name):
    """One of "torch", "numpy" and "buffer"."""
    if name not in _kinds:
        made = {"torch": TorchArrays, "numpy": NumpyArrays, "buffer": BufferArrays}
        if name not in made:
            raise _library.Error(
                "invalid_argument",
                f"arrays is '{name}', expected one of {', '.join(made)}",
            )
        try:
            _kinds[name] = made[name]()
        except ImportError as problem:
            raise _library.Error(
                "unsupported", f"arrays of {name} need {name}: {problem}"
            ) from problem
    return _kinds[name]


def kind_of(array, role):
    """The kind of a caller's array; `role` names it in messages."""
    # A library that is not loaded has made no array.
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(array, torch.Tensor):
        return kind("torch")
    if numpy is not None and isinstance(array, numpy.ndarray):
        return kind("numpy")
    try:
        memoryview(array)
    except TypeError:
        raise _library.Error(
            "invalid_argument",
            f"{role} is of type {type(array).__name__}; give a torch tensor, a numpy "
            "array, or an object with the buffer protocol",
        ) from None
    return kind("buffer")


def common_kind(arrays):
    """The one kind of the arrays, by role; those that are None are left out."""
    first = None
    for role, array in arrays.items():
        if array is None:
            continue
        found = kind_of(array, role)
        if first is None:
            first, first_role = found, role
        elif found is not first:
            raise _library.Error(
                "invalid_argument",
                f"{role} is a {found.name} array and {first_role} a {first.name} "
                "array; give arrays of one library",
            )
    return first


def dl_tensor(arrays, array):
    """The C API's form of an array, which must be `ready`, and what must live as
    long as it is used."""
    shape = arrays.shape(array)
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    device = arrays.device(array)
    place, _, index = device.partition(":")
    code = {"cpu": _library.DL_CPU, "cuda": _library.DL_CUDA}.get(place, 0)
    return _library.DLTensor(
        data=arrays.address(array) or None,
        device=_library.DLDevice(code, int(index or 0)),
        rank=len(shape),
        type=_TYPES.get(arrays.dtype(array), _library.DLType(255, 0, 1)),
        shape=ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64)),
        strides=None,
        byte_offset=0,
    ), sizes
