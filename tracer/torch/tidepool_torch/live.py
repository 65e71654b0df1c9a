"""Records a running script that knows nothing of it: `tidepool record --torch -- python3 train.py`.

What the Recorder sees goes to a raw file, with addresses and times, so that it joins what CUPTI records of the same
process. On a GPU, allocations come from PyTorch's own history of its allocator, which also has workspaces and segments;
on the CPU, from the storages of tensors.
"""

import atexit
import os
import sys
import threading
import time

import torch

from .discovery import Discovery
from .program import Buffer
from .raw_file import RawFile, now
from .recorder import Recorder
from .storages import Storages

# Actions of the allocator's history by their names in raw files.
_HISTORY = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
            "segment_unmap", "oom", "snapshot")


class LiveRecorder(Recorder):
    """Writes to a RawFile while entered. history: whether allocations come from elsewhere."""

    measures = False

    def __init__(self, models, optimizers, file, history):
        self._file, self._history = file, history
        self._told = {}  # live Buffer -> (kind, name) as written
        self._untold = None  # while kinds are found: buffers that are there and have no kind yet
        self._name, self._started, self._ended = "", 0, 0  # of the call that is being recorded
        super().__init__(models, optimizers, device=None)

    # What the Recorder asks of a program.

    def _new_program(self):
        return self

    def _new_storages(self, on_gpu):
        return _PlacedStorages(self, on_gpu)

    def _rest_collector(self):
        pass  # the job may run for hours

    meta = None

    def add_existing(self, buffer):
        if self._untold is None:
            self._tell("existing", buffer, now())
        else:
            self._untold.append(buffer)

    def alloc(self, buffer):
        if not self._history:
            self._tell("alloc", buffer, self._started - 2)

    def free(self, buffer):
        self._told.pop(buffer, None)
        if not self._history:
            self._file.write(kind="framework_memory", time=now(), action="free_completed", address=buffer.address,
                             size=buffer.size, device=buffer.device, thread=threading.get_native_id())

    def mark(self, kind, name):
        self._file.clock()
        self._file.write(kind="range", time=now(), action="mark", meaning=kind, name=name,
                         thread=threading.get_native_id())

    def run(self, op):
        uses = [[access, buffer.address, buffer.size] for buffer, access in op.uses]
        start, end = self._started, self._ended
        if op.name != self._name:  # one that the trace splits off takes no time, in front of the call or behind it
            start = end = self._started - 1 if op.name == "aten::empty" else self._ended + 1
        record = {"start": start, "end": end, "name": op.name, "phase": op.phase,
                  "thread": threading.get_native_id(), "uses": uses}
        if op.module:
            record["module"] = op.module
        if op.random:
            record["random"] = 1
        self._file.write(kind="framework_op", **record)

    def _record(self, call, given, duration_ns):
        self._ended = now()
        self._started = self._ended - duration_ns
        self._name = call.name
        super()._record(call, given, duration_ns)

    def _find_kinds(self, look_up):
        self._untold = []
        super()._find_kinds(look_up)
        changed = [buffer for buffer, told in self._told.items() if told != (buffer.kind, buffer.name)]
        for buffer in self._untold + changed:
            self._tell("existing", buffer, now())
        self._untold = None

    def _tell(self, action, buffer, moment):
        """What is known of a buffer. What the optimizer makes may turn out to be its state: no kind at first."""
        self._told[buffer] = (buffer.kind, buffer.name)
        record = {"time": moment, "action": action, "address": buffer.address, "size": buffer.size,
                  "device": buffer.device, "thread": threading.get_native_id()}
        if buffer.name:
            record["name"] = buffer.name
        if action != "alloc" or buffer.kind != "workspace":
            record["category"] = buffer.kind
        self._file.write(kind="framework_memory", **record)


class _PlacedStorages(Storages):
    """Storages whose buffers say where they are."""

    def _follow(self, tensor, buffer):
        if isinstance(buffer, Buffer):
            buffer.address = tensor.untyped_storage().data_ptr()
        return super()._follow(tensor, buffer)


class Capture:
    """Records from the first step's end on: `skip` iterations later, and `iterations` of them, or all."""

    def __init__(self, folder, skip=0, iterations=None):
        self._folder, self._skip, self._left = folder, skip, iterations
        self._file = self._recorder = None
        self._history = torch.cuda.is_available()
        self._discovery = Discovery(self._stepped)
        if self._history:
            torch.cuda.memory._record_memory_history(context=None)
        atexit.register(self._end)

    def _stepped(self, models, optimizer):
        if self._recorder is not None:
            if self._left is not None:
                self._left -= 1
                if self._left <= 0:
                    self._end()
                    return
            self._recorder.iteration()
        elif self._skip > 0:
            self._skip -= 1
        else:
            try:
                self._file = RawFile(self._folder)
            except OSError as error:
                self._discovery.stop()
                _say(error)
                return
            self._recorder = LiveRecorder(models, [optimizer], self._file, self._history)
            self._recorder.__enter__()

    def _end(self):
        if self._recorder is None or not self._discovery.in_process():
            return
        self._discovery.stop()
        recorder, self._recorder = self._recorder, None
        recorder.__exit__(None, None, None)
        if self._history:
            self._write_history()
        self._file.close()

    def _write_history(self):
        """The allocator's history, whose times are microseconds since 1970."""
        offset = now() - time.time_ns()
        for device, entries in enumerate(torch.cuda.memory._snapshot()["device_traces"]):
            for entry in entries:
                if entry["action"] in _HISTORY:
                    self._file.write(kind="framework_memory", time=entry["time_us"] * 1000 + offset,
                                     action=entry["action"], address=entry["addr"], size=entry["size"],
                                     stream=entry["stream"], device=device)
        torch.cuda.memory._record_memory_history(enabled=None)


def _say(error):
    print(f"tidepool_torch: {type(error).__name__}: {error}; PyTorch is not recorded", file=sys.stderr)


def attach():
    """Called once torch has been imported. Says what is wrong and lets the job go on unrecorded, if it cannot."""
    try:
        iterations = os.environ.get("TIDEPOOL_ITERATIONS")
        Capture(os.environ["TIDEPOOL_RAW"], int(os.environ.get("TIDEPOOL_SKIP", "0")),
                int(iterations) if iterations else None)
    except Exception as error:
        _say(error)
