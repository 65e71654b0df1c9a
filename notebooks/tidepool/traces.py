"""Training steps: their buffers, ops and uses as tables."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property

import numpy
import pandas

from tidepool import _native


FLAGS = ("born_before", "outlives", "random")


def table(columns: dict) -> pandas.DataFrame:
    """A table from columns that are lists of texts, arrays of int64 as bytes, or, for FLAGS, one byte for each flag."""
    return pandas.DataFrame({
        name: numpy.frombuffer(column, bool if name in FLAGS else numpy.int64) if isinstance(column, bytes) else column
        for name, column in columns.items()})


class Trace:
    """One recorded step, immutable. The row number in a table is the id: buffer 0, op 0, ..."""

    def __init__(self, path: str | os.PathLike, native: _native.Trace | None = None):
        self.path = os.fspath(path)
        self.native = native if native is not None else _native.load(self.path)

    def __repr__(self) -> str:
        return f"Trace({self.path!r}: {len(self.buffers)} buffers, {len(self.ops)} ops)"

    @property
    def hash(self) -> str:
        """Hash of the content, 16 hexadecimal digits; the column `trace_hash` of results."""
        return self.native.hash

    @property
    def ideal_peak_bytes(self) -> int:
        """Largest sum of live bytes: the memory that a perfect allocator needs without a policy."""
        return self.native.ideal_peak_bytes

    @property
    def meta(self) -> dict[str, str]:
        """Origin of the trace: source, capture, device, time (measured or estimated), ..."""
        return self.native.meta

    @cached_property
    def buffers(self) -> pandas.DataFrame:
        """size, kind, name, line, stream, device, address (-1: not recorded), born_before, outlives."""
        return table(self.native.buffers())

    @cached_property
    def ops(self) -> pandas.DataFrame:
        """name, module, line (of the user's code, as in model.py:88; "" if unknown), kind, phase, stream, start_ns (-1: not recorded), duration_ns, random."""
        return table(self.native.ops())

    @cached_property
    def uses(self) -> pandas.DataFrame:
        """op, buffer, reads and writes (versions, -1: none), access, evidence (how the use is known)."""
        return table(self.native.uses())

    @cached_property
    def versions(self) -> pandas.DataFrame:
        """buffer, kind, producer (op, -1: none), parent, root. Policies swap and drop versions."""
        return table(self.native.versions())

    @cached_property
    def live_bytes(self) -> numpy.ndarray:
        """Bytes alive after each allocation, op and free of the step, in order. The ideal peak is their maximum, or the
        bytes alive before the first of them if these are more."""
        return numpy.frombuffer(self.native.live_bytes(), numpy.int64)


#: One trace or several; a path is one that load() reads.
Traces = Trace | str | os.PathLike | Iterable[Trace | str | os.PathLike]


def each_of(traces: Traces) -> list[str | os.PathLike | Trace]:
    """The traces of an argument that may be one trace."""
    return [traces] if isinstance(traces, (str, os.PathLike, Trace)) else list(traces)


def load(path: str | os.PathLike) -> Trace:
    """Reads a trace, in any form that `tidepool import` reads.

    Raises InputError for a file that is no trace, with the position and the expected content.
    """
    return Trace(path)
