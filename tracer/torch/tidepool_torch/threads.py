"""Counts ops of threads that the job starts. They are not recorded; the trace says how many it lacks."""

import functools
import threading

from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from .guest import Guest
from .schema import OpCall, signature_of
from .storages import wraps


class OtherThreads:
    """Counts the ops of threads that start from now on, except those of a DataLoader.

    recorder()  gives the Guest that records now, or None
    """

    def __init__(self, recorder):
        self._recorder = recorder
        self._lock = threading.Lock()
        self._count = 0
        self._original = threading.Thread._bootstrap_inner
        self._started = functools.wraps(self._original)(lambda thread: self._start(thread))
        threading.Thread._bootstrap_inner = self._started

    def taken(self):
        """Number of ops since the last call."""
        with self._lock:
            count, self._count = self._count, 0
        return count

    def stop(self):
        if threading.Thread._bootstrap_inner is self._started:
            threading.Thread._bootstrap_inner = self._original
        self._recorder = lambda: None

    def saw(self, func, args, kwargs, result):
        recorder = self._recorder()
        if recorder is None or not isinstance(func, OpOverload):
            return
        signature = signature_of(func)
        if not signature.records or signature.views:
            return
        call = OpCall(func, args, kwargs, signature)
        call.result = result
        tensors = [tensor for _, tensor in call.tensors()] + call.outputs
        if any(recorder.on_device(tensor) for tensor in tensors):
            with self._lock:
                self._count += 1

    def _start(self, thread):
        target = getattr(thread, "_target", None)
        if (getattr(target, "__module__", None) or "").startswith("torch.utils.data"):
            return self._original(thread)
        with _Counting(self):
            return self._original(thread)


class _Counting(TorchDispatchMode):
    """The counter of one thread; it does not change the thread's work."""

    supports_higher_order_operators = Guest.supports_higher_order_operators
    ignore_compile_internals = Guest.ignore_compile_internals
    _should_skip_dynamo = Guest._should_skip_dynamo

    def __init__(self, threads):
        super().__init__()
        self._threads = threads

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(map(wraps, types)):
            return NotImplemented
        result = func(*args, **(kwargs or {}))
        try:
            self._threads.saw(func, args, kwargs or {}, result)
        except Exception:  # an op that cannot be counted must not disturb the job
            pass
        return result
