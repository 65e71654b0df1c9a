"""Training steps: what their buffers, ops and uses are."""

from __future__ import annotations

import os
from functools import cached_property

import numpy
import pandas

from tidepool import _native


FLAGS = ("born_before", "outlives", "random")


def table(columns: dict) -> pandas.DataFrame:
    """Columns are lists of texts, or bytes: of int64, or, for FLAGS, one for each flag."""
    return pandas.DataFrame({
        name: numpy.frombuffer(column, bool if name in FLAGS else numpy.int64) if isinstance(column, bytes) else column
        for name, column in columns.items()})


class Trace:
    """One recorded step, immutable. Rows of the tables are numbered as everywhere in Tidepool: buffer 0, op 0, ..."""

    def __init__(self, path: str | os.PathLike, native: _native.Trace | None = None):
        self.path = os.fspath(path)
        self.native = native if native is not None else _native.load(self.path)

    def __repr__(self) -> str:
        return f"Trace({self.path!r}: {len(self.buffers)} buffers, {len(self.ops)} ops)"

    @property
    def hash(self) -> str:
        """32 hexadecimal digits over the content; results carry it as `trace_hash`."""
        return self.native.hash

    @property
    def ideal_peak_bytes(self) -> int:
        """Largest sum of live bytes: what a perfect allocator needs without any policy."""
        return self.native.ideal_peak_bytes

    @property
    def meta(self) -> dict[str, str]:
        """Where the trace is from: source, capture, device, time (measured or estimated), ..."""
        return self.native.meta

    @cached_property
    def buffers(self) -> pandas.DataFrame:
        """size, kind, name, stream, device, address (-1: not recorded), born_before, outlives."""
        return table(self.native.buffers())

    @cached_property
    def ops(self) -> pandas.DataFrame:
        """name, module, kind, phase, stream, start_ns (-1: not recorded), duration_ns, random."""
        return table(self.native.ops())

    @cached_property
    def uses(self) -> pandas.DataFrame:
        """op, buffer, reads and writes (versions, -1: none), access, evidence: how it is known."""
        return table(self.native.uses())

    @cached_property
    def versions(self) -> pandas.DataFrame:
        """buffer, kind, producer (op, -1: none), parent, root: contents between two writes, which policies evict."""
        return table(self.native.versions())

    @cached_property
    def live_bytes(self) -> numpy.ndarray:
        """Bytes alive after each step of the program; its maximum is the ideal peak, or what lives before the first."""
        return numpy.frombuffer(self.native.live_bytes(), numpy.int64)


def load(path: str | os.PathLike) -> Trace:
    """Reads a trace, in any form that `tidepool import` reads.

    Raises InputError for a file that is not one, with the place and what was expected there.
    """
    return Trace(path)
