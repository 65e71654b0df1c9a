"""Raw captures as JSON lines (tracer/raw/FORMAT.md), written by the recorder of a framework."""

import contextlib
import errno
import functools
import json
import os
import sys
import time

CLOCK_EVERY_NS = 1_000_000_000
_MOST_FILES = 999  # files of one process in a folder
_MOST_HELD = 64 << 20  # characters of records; when more are held, they are written before flush()


now = functools.partial(time.clock_gettime_ns, time.CLOCK_MONOTONIC_RAW)


class Records:
    """Records as lines of JSON, held in memory. Times are ns on CLOCK_MONOTONIC_RAW."""

    is_open = True  # whether what is added may be written some time

    def __init__(self):
        self._held, self._characters = [], 0
        self._writes = 0  # number of times that held records were written, or forgotten
        self._next_clock = 0

    def write(self, **record):
        self.add(json.dumps(record, separators=(",", ":")))

    def add(self, line):
        """Adds a record, as a line of JSON."""
        if not self.is_open:
            return
        self._held.append(line)
        self._characters += len(line)
        if self._characters > _MOST_HELD:
            self._write_held()

    def place(self):
        """The place of the next record, for replace()."""
        return self._writes, len(self._held)

    def replace(self, first, last, change):
        """Puts change(lines) in the place of the lines between two places. Returns whether all of these were still held."""
        held = first[0] == last[0] == self._writes
        if held:
            self._held[first[1]:last[1]] = change(self._held[first[1]:last[1]])
        return held

    def clock(self):
        """Adds a reading of all clocks, if the last one is a second old."""
        if now() >= self._next_clock:
            self._next_clock = now() + CLOCK_EVERY_NS
            self.write(kind="clock", **self._clocks())

    def flush(self):
        """An iteration has ended."""

    def take(self):
        """Returns the held records, and forgets them."""
        held, self._held, self._characters, self._writes = self._held, [], 0, self._writes + 1
        return held

    def _write_held(self):
        """There are too many: no more are held."""
        self.take()
        self.is_open = False

    @staticmethod
    def _clocks():
        moment = now()
        return {"time": moment, "realtime": time.time_ns(), "monotonic_raw": moment}


class RawFile(Records):
    """One file of this process in a folder.

    Records are held until flush() writes them, in one call if the system allows: a killed job leaves all records of
    earlier flushes. The file is open only while it is written, so the job may close all descriptors that it knows nothing of,
    and gives no number to a file that a record could get into. A full disk, or a file that is gone, is reported once; then
    the job goes on without a recording. A forked process leaves the file alone (abandon).
    """

    def __init__(self, folder, source="torch"):
        super().__init__()
        folder = os.path.abspath(folder)
        os.makedirs(folder, exist_ok=True)
        self._path, self._identity = self._create(folder, source)  # no path: it is written no more
        self._flushed = 0  # bytes in the file at the last flush()
        self.write(tidepool_raw=1, process=os.getpid(), source=source, clock="monotonic_raw", **self._clocks())
        self.flush()

    @staticmethod
    def _create(folder, source):
        for number in range(1, _MOST_FILES + 1):  # one for each program that the process becomes
            part = "" if number == 1 else f".{number}"
            path = os.path.join(folder, f"{os.getpid()}{part}.{source}.jsonl")
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            except FileExistsError:
                continue
            try:
                os.fchmod(descriptor, os.fstat(descriptor).st_mode | 0o600)  # whatever the job's umask is
                return path, _identity(descriptor)
            finally:
                os.close(descriptor)
        raise FileExistsError(errno.EEXIST, f"{_MOST_FILES} files of this process are there; expected fewer", path)

    @property
    def is_open(self):
        return self._path is not None

    def drop(self):
        """Forgets the records that were added since the last flush()."""
        self._held, self._characters = [], 0
        self._change(lambda descriptor: os.ftruncate(descriptor, self._flushed))

    def flush(self):
        self._write_held()
        self._change(self._note_flushed)

    def _note_flushed(self, descriptor):
        self._flushed = os.fstat(descriptor).st_size

    def _write_held(self):
        if held := self.take():
            self._change(lambda descriptor: _write(descriptor, "\n".join(held) + "\n"))

    def _change(self, change):
        """Calls change(descriptor) with the open file, if it can still be opened."""
        if self._path is None:
            return
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            try:
                if _identity(descriptor) != self._identity:
                    raise FileNotFoundError(errno.ENOENT, "another file has taken its place", self._path)
                change(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            self.abandon()
            with contextlib.suppress(OSError, ValueError, AttributeError):  # the job may have closed stderr
                print(f"tidepool: the recording of PyTorch ends here: {error}", file=sys.stderr, flush=True)

    def close(self):
        self.write(kind="clock", **self._clocks())
        self.flush()
        self.abandon()

    def abandon(self):
        """Stops writing."""
        self._path, self._held, self._characters = None, [], 0


def _identity(descriptor):
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _write(descriptor, text):
    left = memoryview(text.encode())
    while left:
        left = left[os.write(descriptor, left):]
