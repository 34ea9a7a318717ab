# Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime's C API through ctypes: where the library is, its structs, and
its errors as exceptions."""

import ctypes
import ctypes.util
import os
import pathlib
import shutil
import threading

c_int32 = ctypes.c_int32
c_int64 = ctypes.c_int64
c_void_p = ctypes.c_void_p
c_char_p = ctypes.c_char_p
POINTER = ctypes.POINTER


class Error(RuntimeError):
    """What the runtime or the compiler refused.

    `status` is the name of the C API's status, such as "invalid_argument".
    """

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


# ===-- Structs of runtime.h, dlpack.h and functions.h ----------------------===


class ErrorStruct(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("message", ctypes.c_char * 1024)]


class DLDevice(ctypes.Structure):
    _fields_ = [("type", c_int32), ("index", c_int32)]


class DLType(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    ]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", DLDevice),
        ("rank", c_int32),
        ("type", DLType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManaged(ctypes.Structure):
    pass


DLManaged._fields_ = [
    ("tensor", DLTensor),
    ("manager", c_void_p),
    ("deleter", ctypes.CFUNCTYPE(None, POINTER(DLManaged))),
]

DL_CPU, DL_CUDA = 1, 2
DL_INT, DL_UINT, DL_FLOAT, DL_BFLOAT = 0, 1, 2, 4


class RuntimeOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("threads", c_int32),
        ("cpu_level", c_char_p),
        ("log", c_void_p),
        ("log_user", c_void_p),
        ("device", c_char_p),
        ("use_current_context", c_int32),
        ("products", c_char_p),
    ]


class ContextOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("poison", c_int32),
        ("launch_one_by_one", c_int32),
        ("use_stream", c_int32),
        ("stream", c_void_p),
        ("check_finite", c_int32),
    ]


class ModelInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("name", c_char_p),
        ("spec", c_char_p),
        ("toolchain", c_char_p),
        ("cpu_level", c_char_p),
        ("vocabulary", c_int64),
        ("trained_length", c_int64),
        ("parameters", c_int64),
        ("parameter_tensors", c_int64),
        ("device", c_char_p),
        ("dtype", c_char_p),
    ]


class Parameter(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("path", c_char_p),
        ("rank", c_int32),
        ("shape", POINTER(c_int64)),
        ("data", c_void_p),
        ("weight_decay", c_int32),
    ]


class Segment(ctypes.Structure):
    _fields_ = [("length", c_int64), ("slot", c_int64)]


class Batch(ctypes.Structure):
    _fields_ = [
        ("ids", c_void_p),
        ("tokens", c_int64),
        ("segments", POINTER(Segment)),
        ("segment_count", c_int64),
        ("labels", c_void_p),
        ("weights", c_void_p),
    ]


class StateOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("slots", c_int64),
        ("context", c_int64),
        ("chunk", c_int64),
        ("rollback_depth", c_int64),
    ]


class Sampling(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("temperature", ctypes.c_float),
        ("top_k", c_int32),
        ("top_p", ctypes.c_float),
        ("seed", ctypes.c_uint64),
        ("max_tokens", c_int64),
        ("stop_token", c_int32),
    ]


class TrainerOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("beta1", ctypes.c_float),
        ("beta2", ctypes.c_float),
        ("epsilon", ctypes.c_float),
        ("weight_decay", ctypes.c_float),
        ("clip_norm", ctypes.c_float),
        ("seed", ctypes.c_uint64),
    ]


class Update(ctypes.Structure):
    _fields_ = [
        ("gradient_norm", ctypes.c_double),
        ("weight", ctypes.c_double),
        ("skipped", c_int32),
        ("step", c_int64),
    ]


class ArgumentInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("name", c_char_p),
        ("is_output", c_int32),
        ("type", DLType),
        ("rank", c_int32),
        ("shape", c_int64 * 8),
    ]


class Argument(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("tensor", POINTER(DLTensor))]


TokenCallback = ctypes.CFUNCTYPE(ctypes.c_int, c_void_p, c_int32)

# Functions that return a status: their arguments up to the last, the error.
_PROTOTYPES = {
    "hyb_runtime_create": [POINTER(RuntimeOptions), POINTER(c_void_p)],
    "hyb_model_open": [c_void_p, c_char_p, POINTER(c_void_p)],
    "hyb_model_get_info": [c_void_p, POINTER(ModelInfo), ctypes.c_size_t],
    "hyb_model_get_parameter": [
        c_void_p,
        c_int64,
        POINTER(Parameter),
        ctypes.c_size_t,
    ],
    "hyb_model_share_parameter": [c_void_p, c_int64, POINTER(POINTER(DLManaged))],
    "hyb_model_load_weights": [c_void_p, c_char_p],
    "hyb_model_save_weights": [c_void_p, c_char_p],
    "hyb_model_initialise": [c_void_p, ctypes.c_uint64],
    "hyb_context_create": [c_void_p, POINTER(ContextOptions), POINTER(c_void_p)],
    "hyb_state_create": [c_void_p, POINTER(StateOptions), POINTER(c_void_p)],
    "hyb_state_reset": [c_void_p, c_int64],
    "hyb_state_fork": [c_void_p, c_int64, c_int64],
    "hyb_state_rollback": [c_void_p, c_void_p, c_int64, c_int64],
    "hyb_state_save": [c_void_p, c_int64, c_char_p],
    "hyb_state_load": [c_void_p, c_int64, c_char_p],
    "hyb_state_share": [c_void_p, c_int64, POINTER(POINTER(DLManaged))],
    "hyb_extend_shared": [
        c_void_p,
        c_void_p,
        POINTER(DLTensor),
        POINTER(Segment),
        c_int64,
        ctypes.c_int,
        POINTER(POINTER(DLManaged)),
    ],
    "hyb_loss": [c_void_p, POINTER(Batch), POINTER(POINTER(ctypes.c_float))],
    "hyb_generate": [
        c_void_p,
        c_void_p,
        c_int64,
        POINTER(c_int32),
        c_int64,
        POINTER(Sampling),
        TokenCallback,
        c_void_p,
    ],
    "hyb_trainer_create": [c_void_p, POINTER(TrainerOptions), POINTER(c_void_p)],
    "hyb_trainer_accumulate": [
        c_void_p,
        POINTER(Batch),
        POINTER(ctypes.c_double),
        POINTER(ctypes.c_double),
    ],
    "hyb_trainer_update": [c_void_p, ctypes.c_float, POINTER(Update)],
    "hyb_trainer_share_gradient": [c_void_p, c_int64, POINTER(POINTER(DLManaged))],
    "hyb_trainer_save": [c_void_p, c_char_p],
    "hyb_trainer_load": [c_void_p, c_char_p],
    "hyb_describe_argument": [
        c_void_p,
        c_char_p,
        c_int64,
        POINTER(c_int64),
        c_int64,
        POINTER(ArgumentInfo),
        ctypes.c_size_t,
    ],
    "hyb_call": [
        c_void_p,
        c_char_p,
        POINTER(Argument),
        c_int64,
        POINTER(c_int64),
        c_int64,
    ],
}


# ===-- The library ---------------------------------------------------------===


# The repository, or the installed <library folder>/hybridc.
_ABOVE = pathlib.Path(__file__).resolve().parents[2]


def _is_clone():
    return (_ABOVE / "scripts" / "build.sh").exists()


def _candidates():
    chosen = os.environ.get("HYBRID_RUNTIME")
    if chosen:
        return [chosen]
    folders = [] if _is_clone() else [_ABOVE.parent]
    compiler = shutil.which(os.environ.get("HYBRIDC") or "hybridc")
    if compiler:
        prefix = pathlib.Path(compiler).resolve().parents[1]
        folders += [prefix / "lib", *sorted((prefix / "lib").glob("*-linux-gnu"))]
    if _is_clone():
        folders.append(_ABOVE / "build" / "release" / "lib")
    found = [str(folder / "libhybrid_runtime.so.0") for folder in folders]
    system = ctypes.util.find_library("hybrid_runtime")
    return found + ([system] if system else [])


def _not_found(tried):
    if os.environ.get("HYBRID_RUNTIME"):
        way = "HYBRID_RUNTIME names it; set it to the path of the library"
    elif _is_clone():
        way = (
            f"run {_ABOVE / 'scripts' / 'build.sh'} release, or put the folder of a "
            "built hybridc into PATH, or set HYBRID_RUNTIME to the library's path"
        )
    else:
        way = "put the folder of hybridc into PATH, or set HYBRID_RUNTIME to it"
    return Error(
        "io", f"libhybrid_runtime.so.0 is not found; tried {', '.join(tried)}; {way}"
    )


class Library:
    """The loaded runtime; `call` turns a status into an exception."""

    def __init__(self):
        tried = _candidates()
        self._library = None
        for candidate in tried:
            if os.path.sep in candidate and not os.path.exists(candidate):
                continue
            try:
                self._library = ctypes.CDLL(candidate)
            except OSError as problem:
                raise Error("io", f"cannot load '{candidate}': {problem}") from problem
            self.path = self._library._name
            break
        if self._library is None:
            raise _not_found(tried)
        for name, arguments in _PROTOTYPES.items():
            function = getattr(self._library, name)
            function.argtypes = arguments + [POINTER(ErrorStruct)]
            function.restype = ctypes.c_int
        for name in ("hyb_version", "hyb_processor_level"):
            getattr(self._library, name).restype = c_char_p
        self._library.hyb_status_name.restype = c_char_p
        self._library.hyb_state_length.argtypes = [c_void_p, c_int64]
        self._library.hyb_state_length.restype = c_int64

    def call(self, name, *arguments):
        error = ErrorStruct()
        status = getattr(self._library, name)(*arguments, ctypes.byref(error))
        if status != 0:
            raise Error(
                self._library.hyb_status_name(status).decode(),
                error.message.decode(errors="replace"),
            )

    def fill(self, name, options):
        """Fills a struct of options with the runtime's defaults."""
        function = getattr(self._library, name)
        function.restype = None
        function.argtypes = [c_void_p, ctypes.c_size_t]
        function(ctypes.addressof(options), ctypes.sizeof(options))

    def destroy(self, kind, handle):
        destroy = getattr(self._library, f"hyb_{kind}_destroy")
        destroy.argtypes, destroy.restype = [c_void_p], None
        destroy(handle)

    def version(self):
        return self._library.hyb_version().decode()

    def processor_level(self):
        level = self._library.hyb_processor_level()
        if level is None:
            raise Error(
                "unsupported", "this processor is none that hybridc makes code for"
            )
        return level.decode()

    def state_length(self, handle, slot):
        return self._library.hyb_state_length(handle, slot)


_lock = threading.RLock()
_loaded = None


def library():
    """The runtime, loaded when it is first needed."""
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = Library()
        return _loaded


class Handle:
    """Owns one object of the C API, and keeps those it was made from alive."""

    def __init__(self, kind, value, owner=None):
        self._kind, self.value, self._owner = kind, value, owner
        self._process = os.getpid()

    def __del__(self):
        value, self.value = self.value, None
        # The threads of a runtime do not follow into a forked process, so there
        # is nobody to stop there.
        if value and _loaded is not None and self._process == os.getpid():
            _loaded.destroy(self._kind, value)


# ===-- Runtimes, artefacts and contexts ------------------------------------===

_runtimes = {}


def runtime(device, products="compiled"):
    """The runtime of "cpu" or "cuda:N", with one way to compute products; there is
    one of each in a process."""
    key = (device, products, os.getpid())
    with _lock:
        if key not in _runtimes:
            options = RuntimeOptions()
            options.size = ctypes.sizeof(options)
            options.device = device.encode()
            options.products = products.encode()
            handle = c_void_p()
            library().call(
                "hyb_runtime_create", ctypes.byref(options), ctypes.byref(handle)
            )
            _runtimes[key] = Handle("runtime", handle)
        return _runtimes[key]


def open_artefact(path, device, products="compiled"):
    owner = runtime(device, products)
    handle = c_void_p()
    library().call(
        "hyb_model_open", owner.value, os.fsencode(path), ctypes.byref(handle)
    )
    return Handle("model", handle, owner)


def create_context(model, stream=None, poison=False, check_finite=False):
    options = ContextOptions()
    options.size = ctypes.sizeof(options)
    options.poison = 1 if poison else 0
    options.check_finite = 1 if check_finite else 0
    if stream is not None:
        options.use_stream = 1
        options.stream = stream or None
    handle = c_void_p()
    library().call(
        "hyb_context_create", model.value, ctypes.byref(options), ctypes.byref(handle)
    )
    return Handle("context", handle, model)


def process():
    """Names this process; objects made before a fork are not for the child."""
    return os.getpid()
