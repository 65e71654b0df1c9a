"""The native core (../../native): built for this job's PyTorch when it is first needed, and its functions."""

import contextlib
import ctypes
import fcntl
import functools
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import torch

LIMIT_S = 600  # of the compiler
_BUILD_S = 20  # about as long as it takes
_AGAIN_S = 86_400  # a build that failed, perhaps for want of memory, is tried again after this time

_CORE, VALUES = (tuple(f"tracer/native/{name}" for name in names) for names in (
    ("core.cpp", "actions.hpp", "call.hpp", "cells.hpp", "copies.hpp", "follower.hpp", "follower_interface.hpp", "log.hpp",
     "mapped.hpp", "operators.hpp", "proceed.hpp", "recipe.hpp", "step.hpp", "storages.hpp", "user_line.hpp"),
    ("values.cpp", "assumed.hpp", "operands.hpp")))
# Variables by which recorders come into child processes: a compiler needs none of them.
_INJECTED = ("LD_PRELOAD", "PYTHONPATH", "CUDA_INJECTION64_PATH")


class NativeError(RuntimeError):
    """The native core cannot be used, and why."""


@functools.cache
def _source_folder():
    """The folder that the sources are named from: this package if it is installed, else the root of the repository."""
    package = pathlib.Path(__file__).resolve().parent
    for folder in (package, package.parents[2]):
        if (folder / _CORE[0]).is_file():
            return folder
    raise NativeError(f"the sources of the native recorder are not beside {package}")


def _minor():
    major, minor = torch.__version__.split(".")[:2]
    if major != "2" or int(minor) < 4:
        raise NativeError(f"PyTorch {torch.__version__} is not known; expected 2.4 or a later 2")
    return int(minor)


def _flags():
    minor = _minor()
    site = pathlib.Path(torch.__file__).parent
    if not (site / "include/ATen/core/dispatch/Dispatcher.h").is_file():
        raise NativeError(f"{site} has no headers")
    return [f"-std=c++{20 if minor >= 10 else 17}", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-w",
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}", f"-DTIDEPOOL_TORCH_MINOR={minor}",
            f"-I{site}/include", f"-I{site}/include/torch/csrc/api/include"], [f"-L{site}/lib", "-ltorch_cpu", "-lc10"]


def _cache_folder(sources):
    """The user's folder for this PyTorch, these sources and these flags."""
    state = hashlib.sha256()
    for name in sources:
        state.update((_source_folder() / name).read_bytes())
    state.update(repr((_flags(), torch.__version__, torch.version.git_version, os.uname().machine)).encode())
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(home) / "tidepool" / "native" / f"{torch.__version__}-{state.hexdigest()[:16]}"


def library(say=lambda text: None, sources=_CORE):
    """The path of the library of some sources, the first of which includes the others. Builds it if it is not there: one process
    does, and others wait for it. say(text) is called before that. Raises NativeError."""
    try:
        folder = _cache_folder(sources)
        path = folder / "libtidepool_torch.so"
        if path.is_file():
            return path
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "lock", "w", encoding="utf-8") as lock:
            _lock(lock)
            if not path.is_file():
                _build(folder, path, say, sources[0])
        return path
    except OSError as error:
        raise NativeError(str(error)) from None


def _lock(file):
    """Waits no longer than a build may take: the other process may be stopped."""
    until = time.monotonic() + LIMIT_S
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise NativeError(f"another process has been building it for more than {LIMIT_S} s") from None
        time.sleep(0.1)


def _build(folder, path, say, source):
    failed = folder / "failed"
    if failed.is_file() and time.time() - failed.stat().st_mtime < _AGAIN_S:
        words = failed.read_text(encoding="utf-8", errors="replace").partition("\n")[0]
        raise NativeError(f"it could not be built: {words} (remove {failed} to try again)")
    compiler = next(filter(None, map(shutil.which, ("g++", "c++", "clang++"))), None)
    if compiler is None:
        raise NativeError("there is no C++ compiler (g++)")
    say(f"builds its recorder for PyTorch {torch.__version__}, once; this takes about {_BUILD_S} s")
    before, after = _flags()
    environment = {name: value for name, value in os.environ.items()
                   if name not in _INJECTED and not name.startswith("TIDEPOOL_")}
    with tempfile.TemporaryDirectory(dir=folder) as work:
        made = os.path.join(work, "library.so")
        command = [compiler, *before, f"-I{_source_folder()}", str(_source_folder() / source), "-o", made, *after]
        try:
            ran = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                 errors="replace", timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise NativeError(f"{compiler} took longer than {LIMIT_S} s") from None
        if ran.returncode != 0:
            text = next((line for line in ran.stderr.splitlines() if "error" in line), f"{compiler} failed")
            failed.write_text(f"{text}\n\n{' '.join(command)}\n{ran.stderr}", encoding="utf-8")
            raise NativeError(f"it could not be built: {text}")
        os.replace(made, path)


class Core:
    """The functions of the library, with the types of Python."""

    WORDS, RESTING, RUNNING = range(3)  # of cells

    def __init__(self, path):
        try:
            library = ctypes.PyDLL(str(path))
        except OSError as error:
            raise NativeError(str(error)) from None
        self.library, self.path = library, path
        library.tidepool_take.restype = ctypes.c_int64
        library.tidepool_take.argtypes = [ctypes.POINTER(ctypes.POINTER(ctypes.c_int64))]
        library.tidepool_number_of.argtypes, library.tidepool_number_of.restype = [ctypes.c_int64], ctypes.c_int64
        library.tidepool_set_host.argtypes = [ctypes.c_int64]
        library.tidepool_name_text.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_int]
        library.tidepool_operator.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_int]
        library.tidepool_element_type.argtypes = [ctypes.c_int64]
        library.tidepool_begin.argtypes = [_IS_USER, ctypes.c_int, ctypes.c_int]
        library.tidepool_install.argtypes = [ctypes.c_void_p]
        self.cells = (ctypes.c_int64 * 16).in_dll(library, "tidepool_cells")
        self._behind_values = values is not None
        if not library.tidepool_install(values and ctypes.cast(values.tidepool_values_behind, ctypes.c_void_p)):
            raise NativeError(f"PyTorch {torch.__version__} uses the dispatch key Fake itself")
        _let_pass()
        self.include, self.stop = library.tidepool_include, library.tidepool_stop
        self._names, self._operators = {}, {}
        self._is_user = None  # kept alive: the library calls it
        self.element_types = {library.tidepool_element_type(torch.empty(0, dtype=dtype, device="meta")._cdata): dtype
                              for dtype in _dtypes()}

    def begin(self, is_user, on_gpu, values):
        self._is_user = _IS_USER(lambda file: is_user(os.fsdecode(file)))
        self.cells[self.RESTING] = self.cells[self.RUNNING] = 0
        self.library.tidepool_begin(self._is_user, on_gpu, values)

    def works_here(self):
        """Whether it sees the ops of this thread: in a dry run, only those whose values are followed."""
        return not self._behind_values or torch._C._dispatch_tls_is_dispatch_key_included(FAKE)

    @contextlib.contextmanager
    def unseen(self):
        """Within this context, ops of this thread are Tidepool's own."""
        if not self._behind_values:
            with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(FAKE)):
                yield
            return
        before = self.library.tidepool_aside(1)
        try:
            yield
        finally:
            self.library.tidepool_aside(before)

    def take(self):
        """The words of the log since the last call."""
        words = ctypes.POINTER(ctypes.c_int64)()
        count = self.library.tidepool_take(ctypes.byref(words))
        return words[:count]

    def number_of(self, tensor):
        """The number of the storage of a tensor; 0 if it has none."""
        return self.library.tidepool_number_of(tensor._cdata)

    def set_host(self, number):
        """The buffer of a storage is host memory."""
        self.library.tidepool_set_host(number)

    def name(self, number):
        """A name of an op, without its overload."""
        if number not in self._names:
            self._names[number] = self.text(self.library.tidepool_name_text, number)
        return self._names[number]

    def operator(self, number):
        """An op of the log, as an OpOverload."""
        namespace, _, name = self.text(self.library.tidepool_operator, number).partition("::")
        name, _, overload = name.partition(".")
        return getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")

    def name_of(self, number):
        """The name of an op of the log, without its overload."""
        name = self._operators.get(number)
        if name is None:
            name = self._operators[number] = self.operator(number)._schema.name
        return name

    def file(self, number):
        return self.text(self.library.tidepool_file, number)

    def device(self, kind, index):
        name = self.text(self.library.tidepool_device_type, kind)
        return torch.device(name) if index < 0 else torch.device(name, index)

    def error(self):
        return self.text(self.library.tidepool_error)

    @staticmethod
    def text(function, *arguments):
        size = 1 + function(*arguments, None, 0)
        out = ctypes.create_string_buffer(size)
        function(*arguments, out, size)
        return os.fsdecode(out.value)


values = None  # the library of values.py in a dry run, which has the dispatch key
FAKE = torch._C._dispatch_key_parse("Fake")
_IS_USER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)


def _dtypes():
    return {each for each in vars(torch).values() if isinstance(each, torch.dtype) and each.is_floating_point}


def _let_pass():
    """Higher-order ops of PyTorch dispatch in Python, and would look for their own function at our key."""
    from torch import _ops

    key = FAKE
    _ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS.append(key)
    for each in _ops._higher_order_ops.values():
        each.fallthrough(key)


def _say(text):
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # the job may have closed it
            print(f"tidepool: {text}", file=sys.stderr, flush=True)


@functools.cache
def core():
    """The core of this process. Raises NativeError."""
    return Core(library(_say))


def core_or_none():
    """The core; None if TIDEPOOL_NATIVE=off forbids it, a plan that is followed needs it, or it cannot be used, which is said."""
    if os.environ.get("TIDEPOOL_NATIVE") == "off" or "TIDEPOOL_LIVE_PROGRAM" in os.environ:
        return None
    try:
        return core()
    except Exception as error:
        _say(f"no native recorder: {error}; operators are recorded in Python, which takes about 0.1 ms each")
        return None


if __name__ == "__main__":
    print(library())
