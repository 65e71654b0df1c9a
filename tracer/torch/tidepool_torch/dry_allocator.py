"""What a job asks of PyTorch's allocator itself in a dry run: its share of the device's memory, and settings. The trace states
both."""

import atexit
import ctypes
import os

import torch

from .after_import import replace

_said = {}


def _state():
    state = getattr(ctypes.CDLL(None), "tidepool_state", None)
    for key, value in _said.items() if state is not None else ():
        state(key, value.encode())


def _follow(name, key, kept):
    """States the first argument of each call of a function of torch._C that does not fail, behind those of earlier calls."""
    call = getattr(torch._C, name, None)
    if call is None:  # another version of PyTorch
        return

    def call_and_state(value, *rest):
        result = call(value, *rest)
        _said[key] = ",".join(filter(None, (kept and _said.get(key, kept()), str(value))))
        _state()
        return result

    replace(torch._C, name, call_and_state)


def attach():
    """Called when torch has been imported."""
    _follow("_cuda_setMemoryFraction", b"setting.memory_fraction", None)
    for name in ("_accelerator_setAllocatorSettings", "_cuda_cudaCachingAllocator_set_allocator_settings"):
        _follow(name, b"setting.alloc_conf",
                lambda: os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF"))
    atexit.register(_state)  # again: a job that has not used the device yet has no trace
