"""Raw captures as JSON lines (tracer/raw/FORMAT.md), written by the recorder of a framework."""

import errno
import fcntl
import functools
import json
import os
import sys
import time

CLOCK_EVERY_NS = 1_000_000_000
_MOST_FILES = 999  # files of one process in a folder
_MOST_HELD = 64 << 20  # characters of records; when more are held, they are written before flush()


now = functools.partial(time.clock_gettime_ns, time.CLOCK_MONOTONIC_RAW)


def _beyond_streams(descriptor):
    """The descriptor, or a copy above 2: the numbers of standard streams that the job closed stay free for the job."""
    if descriptor > 2:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(descriptor)


class RawFile:
    """One file of this process in a folder. Times are ns on CLOCK_MONOTONIC_RAW.

    Records are held until flush() writes them, in one call if the system allows: a killed job leaves all records of
    earlier flushes. A full disk is reported once; then the job goes on without a recording. A forked process leaves the
    file alone (abandon).
    """

    def __init__(self, folder, source="torch"):
        os.makedirs(folder, exist_ok=True)
        self._descriptor = self._create(folder, source)
        self._held, self._characters = [], 0
        self._flushed = 0  # bytes in the file at the last flush()
        self._next_clock = 0
        self.write(tidepool_raw=1, process=os.getpid(), source=source, clock="monotonic_raw", **self._clocks())
        self.flush()

    @staticmethod
    def _create(folder, source):
        for number in range(1, _MOST_FILES + 1):  # one for each program that the process becomes
            part = "" if number == 1 else f".{number}"
            path = os.path.join(folder, f"{os.getpid()}{part}.{source}.jsonl")
            try:
                return _beyond_streams(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            except FileExistsError:
                continue
        raise FileExistsError(errno.EEXIST, f"{_MOST_FILES} files of this process are there; expected fewer", path)

    @property
    def is_open(self):
        return self._descriptor is not None

    def write(self, **record):
        self.add(json.dumps(record, separators=(",", ":")))

    def add(self, line):
        """Adds a record, as a line of JSON."""
        if self._descriptor is None:
            return
        self._held.append(line)
        self._characters += len(line)
        if self._characters > _MOST_HELD:
            self._write_held()

    def drop(self):
        """Forgets the records that were added since the last flush()."""
        self._held, self._characters = [], 0
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, self._flushed)
            os.lseek(self._descriptor, self._flushed, os.SEEK_SET)

    def clock(self):
        """Adds a reading of all clocks, if the last one is a second old."""
        if now() >= self._next_clock:
            self._next_clock = now() + CLOCK_EVERY_NS
            self.write(kind="clock", **self._clocks())

    def flush(self):
        self._write_held()
        if self._descriptor is not None:
            self._flushed = os.lseek(self._descriptor, 0, os.SEEK_CUR)

    def _write_held(self):
        held, self._held, self._characters = self._held, [], 0
        if self._descriptor is None or not held:
            return
        left = memoryview(("\n".join(held) + "\n").encode())
        try:
            while left:
                left = left[os.write(self._descriptor, left):]
        except OSError as error:
            self.abandon()
            print(f"tidepool: the recording of PyTorch ends here: {error}", file=sys.stderr, flush=True)

    def close(self):
        self.write(kind="clock", **self._clocks())
        self.flush()
        self.abandon()

    def abandon(self):
        """Stops writing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._held, self._characters = None, [], 0

    def _clocks(self):
        moment = now()
        return {"time": moment, "realtime": time.time_ns(), "monotonic_raw": moment}
