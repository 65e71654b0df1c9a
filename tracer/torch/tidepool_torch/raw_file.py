"""Raw captures as JSON lines (tracer/raw/FORMAT.md), for a framework's part of what a job does."""

import errno
import json
import os
import sys
import threading
import time

CLOCK_EVERY_NS = 1_000_000_000
_MOST_FILES = 999  # of one process in a folder


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


class RawFile:
    """One file of this process in a folder. Times are ns on CLOCK_MONOTONIC_RAW. A full disk is reported once; the job
    goes on without a recording then."""

    def __init__(self, folder, source="torch"):
        os.makedirs(folder, exist_ok=True)
        self._file = self._create(folder, source)
        self._lock = threading.Lock()
        self._next_clock = 0
        self.write(tidepool_raw=1, process=os.getpid(), source=source, clock="monotonic_raw", **self._clocks())

    @staticmethod
    def _create(folder, source):
        for number in range(1, _MOST_FILES + 1):  # a process may become another program
            part = "" if number == 1 else f".{number}"
            path = os.path.join(folder, f"{os.getpid()}{part}.{source}.jsonl")
            try:
                return open(path, "x", buffering=1 << 20, encoding="utf-8")
            except FileExistsError:
                continue
        raise FileExistsError(errno.EEXIST, f"{_MOST_FILES} files of this process are there; expected fewer", path)

    def write(self, **record):
        line = json.dumps(record, separators=(",", ":")) + "\n"
        with self._lock:
            if self._file is None:
                return
            try:
                self._file.write(line)
            except OSError as error:
                self._give_up(error)

    def clock(self):
        """A reading of all clocks, if the last one is a second old."""
        if now() >= self._next_clock:
            self._next_clock = now() + CLOCK_EVERY_NS
            self.write(kind="clock", **self._clocks())

    def close(self):
        self.write(kind="clock", **self._clocks())
        with self._lock:
            if self._file is not None:
                file, self._file = self._file, None
                try:
                    file.close()
                except OSError as error:
                    self._give_up(error)

    def _give_up(self, error):
        self._file = None
        print(f"tidepool: the recording of PyTorch ends here: {error}", file=sys.stderr)

    def _clocks(self):
        moment = now()
        return {"time": moment, "realtime": time.time_ns(), "monotonic_raw": moment}
