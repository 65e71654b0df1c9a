"""PyTorch's memory from a planned layout, through its pluggable allocator."""

import ctypes
import json
import os
import sys

import torch


class LayoutAllocator:
    """Makes the library of planned_allocator.cpp the allocator of this process. Must come before the first use of CUDA.

    library  its path; it finds its settings in the environment (allocator/entry.cpp)
    """

    def __init__(self, library):
        self._library = None
        self._pid = os.getpid()
        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU, and only GPU memory can be served from a layout")
        allocator = torch.cuda.memory.CUDAPluggableAllocator(library, "tidepool_alloc", "tidepool_free")
        self._library = load(library)
        if hasattr(allocator.allocator(), "set_record_stream_fn"):
            address = ctypes.cast(self._library.tidepool_record_stream, ctypes.c_void_p).value
            allocator.allocator().set_record_stream_fn(address)
        torch.cuda.memory.change_current_allocator(allocator)
        keep_benchmark_off()

    def report(self):
        if self._library is None or os.getpid() != self._pid:
            return {}
        return {"allocator": json.loads(self._library.tidepool_report())}


def keep_benchmark_off():
    """Switches cuDNN's benchmark mode off. It asks the allocator for its largest free block (cacheInfo), which PyTorch
    refuses for pluggable allocators. A script that switches the mode on gets a message and continues without it."""
    set_benchmark = torch._C._set_cudnn_benchmark
    set_benchmark(False)
    told = []

    def keep(on):
        if on and not told:
            told.append(True)
            print("tidepool_live: torch.backends.cudnn.benchmark stays off: PyTorch cannot ask a pluggable allocator for its "
                  "largest free block", file=sys.stderr, flush=True)
        set_benchmark(False)

    torch._C._set_cudnn_benchmark = keep  # for torch.backends.cudnn.flags
    type(torch.backends.cudnn).benchmark = torch.backends.ContextProp(torch._C._get_cudnn_benchmark, keep)


def load(path):
    """The library with the types of its functions."""
    library = ctypes.CDLL(path)
    library.tidepool_alloc.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    library.tidepool_alloc.restype = ctypes.c_void_p
    library.tidepool_free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    library.tidepool_free.restype = None
    library.tidepool_report.restype = ctypes.c_char_p
    return library
