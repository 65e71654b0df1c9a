"""PyTorch's history of its allocator, shared by the recorder and the script."""

import functools
import inspect
import time

import torch

from .raw_file import now

# The actions of the history that are recorded. Raw files use the same names.
_ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
            "segment_unmap", "oom", "snapshot")


class History:
    """Allocations of PyTorch's CUDA allocator, from the time when the job first uses CUDA.

    A process has one history. A script that asks for the history gets the same entries as without the recorder: earlier
    entries are removed first, and until the script asks, its snapshots show no history.

    file()  gives the RawFile to write to
    """

    def __init__(self, file):
        self._file = file
        self._reading = _read_clocks()
        self._asked = False  # by the script
        self._memory = torch.cuda.memory
        self._record, self._snapshot = self._memory._record_memory_history, self._memory._snapshot
        self._memory._record_memory_history = _like(self._record, self._ask)
        self._memory._snapshot = _like(self._snapshot, self._take)
        torch.cuda._lazy_call(self._begin)

    def write(self):
        """Writes the entries since the last call. A history that the script asked for is read only when it or the
        recording ends, since it may be long."""
        if torch.cuda.is_initialized() and not self._asked:
            self._write()
            self._record(enabled=None)
            self._record(context=None)

    def _write(self):
        before, self._reading = self._reading, _read_clocks()
        for device, entries in enumerate(self._snapshot()["device_traces"]):
            for entry in entries:
                if entry["action"] in _ACTIONS:
                    address = entry["addr"] if "addr" in entry else entry.get("device_free", 0)  # for an oom
                    self._file().write(kind="framework_memory", time=_common(entry["time_us"] * 1000, before, self._reading),
                                       action=entry["action"], address=address, size=entry["size"],
                                       stream=entry["stream"], device=device)

    def end(self):
        """Writes the rest. The script's own history stays unchanged."""
        if torch.cuda.is_initialized():
            self._write()
        self._memory._record_memory_history, self._memory._snapshot = self._record, self._snapshot
        if torch.cuda.is_initialized() and not self._asked:
            self._record(enabled=None)

    def _begin(self):
        if not self._asked:
            self._record(context=None)

    def _ask(self, *args, **kwargs):
        enabled = inspect.signature(self._record).bind(*args, **kwargs).arguments.get("enabled", "all")
        if torch.cuda.is_initialized() and (not self._asked or not enabled):
            self._write()
            self._record(enabled=None)  # drops the entries that only the recorder asked for
        self._asked = bool(enabled)
        self._record(*args, **kwargs)
        if not self._asked:
            torch.cuda._lazy_call(self._begin)

    def _take(self, *args, **kwargs):
        snapshot = self._snapshot(*args, **kwargs)
        if not self._asked:
            snapshot["device_traces"] = [[] for _ in snapshot["device_traces"]]
        return snapshot


def _read_clocks():
    """The readings of two clocks in ns: the time since 1970, as in the history, and the recording's clock."""
    return time.time_ns(), now()


def _common(realtime, before, after):
    """Converts a time since 1970 to the recording's clock. The clocks do not run at the same speed, so the result lies
    on the line through the readings before and after the time."""
    passed = after[0] - before[0]
    if passed <= 0:  # somebody has set the clock back
        return realtime - after[0] + after[1]
    return before[1] + (realtime - before[0]) * (after[1] - before[1]) // passed


def _like(function, method):
    """The method as a function with the name and signature of `function`."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        return method(*args, **kwargs)

    return call
