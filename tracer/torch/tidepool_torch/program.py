"""The recorded program: buffers and their events in order, written as a JSON-lines trace."""

import gzip
import io
import json
import os
from dataclasses import dataclass


@dataclass(eq=False)
class Buffer:
    """One storage. `size` in bytes. `kind` and `name` may be set later: a gradient is known as one only when autograd
    has handed it to its parameter."""

    size: int
    kind: str = "activation"
    name: str = ""
    device: int = 0
    number: int = -1


@dataclass
class Op:
    """One op. `uses` holds (buffer, access) pairs; `duration_ns` is 0 if the op has no time of its own."""

    name: str
    uses: list
    module: str = ""
    phase: str = "forward"
    kind: str = "kernel"
    random: bool = False
    duration_ns: int = 0
    line: str = ""  # of the user's code, as in model.py:88


class Program:
    """Buffers and events in the order in which they happened."""

    def __init__(self):
        self.existing = []  # buffers from before the first step
        self.steps = []  # ("alloc" | "free", Buffer), ("run", Op) or ("mark", (kind, name))
        self.meta = {}

    def add_existing(self, buffer):
        self.existing.append(buffer)

    def alloc(self, buffer):
        self.steps.append(("alloc", buffer))

    def free(self, buffer):
        self.steps.append(("free", buffer))

    def run(self, op):
        self.steps.append(("run", op))

    def mark(self, kind, name):
        self.steps.append(("mark", (kind, name)))

    def ops(self):
        """The ops in program order."""
        return [subject for what, subject in self.steps if what == "run"]

    def buffers(self):
        """All buffers in order of appearance."""
        return self.existing + [subject for what, subject in self.steps if what == "alloc"]

    def peak_bytes(self):
        """Largest sum of live bytes."""
        live = peak = sum(buffer.size for buffer in self.existing)
        for what, subject in self.steps:
            if what == "alloc":
                live += subject.size
                peak = max(peak, live)
            elif what == "free":
                live -= subject.size
        return peak

    def lines(self):
        """The trace as one dictionary for each line (traces/FORMAT.md, "JSON lines")."""
        for number, buffer in enumerate(self.buffers()):
            buffer.number = number
        yield {"tidepool": 1, "meta": self.meta}
        for buffer in self.existing:
            yield {"buffer": buffer.number, "born_before": True, **_describe(buffer)}
        phase = None
        held = []  # allocations wait for their op, so that a phase mark comes before them
        for what, subject in self.steps:
            if what == "alloc":
                held.append({"alloc": subject.number, **_describe(subject)})
                continue
            if what == "run" and subject.phase != phase:
                phase = subject.phase
                yield {"mark": "phase", "name": phase}
            yield from held
            held = []
            if what == "free":
                yield {"free": subject.number}
            elif what == "mark":
                yield {"mark": subject[0], "name": subject[1]}
            else:
                yield _run_line(subject)
        yield from held

    def save(self, path):
        """Writes the trace to `path`, compressed if it ends in .gz. The same program gives the same bytes. The file
        appears under its name only when it is complete."""
        path = os.fspath(path)
        partial = path + ".partial"
        try:
            with open(partial, "wb") as raw:
                if path.endswith(".gz"):
                    with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
                        self._write(packed)
                else:
                    self._write(raw)
            os.replace(partial, path)
        finally:
            if os.path.exists(partial):
                os.remove(partial)

    def _write(self, stream):
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
        for line in self.lines():
            text.write(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n")
        text.flush()
        text.detach()


def _describe(buffer):
    line = {"size_bytes": buffer.size, "kind": buffer.kind}
    if buffer.name:
        line["name"] = buffer.name
    if buffer.device:
        line["device"] = buffer.device
    return line


def _run_line(op):
    line = {
        "run": op.name,
        "uses": [[buffer.number, access, "schema"] for buffer, access in op.uses],
        "duration_ns": op.duration_ns,
        "phase": op.phase,
    }
    if op.module:
        line["module"] = op.module
    if op.line:
        line["line"] = op.line
    if op.kind != "kernel":
        line["kind"] = op.kind
    if op.random:
        line["random"] = True
    return line
