"""The parameters that a kernel of Triton reads and writes, from its code in Triton's intermediate form (TTIR)."""

import ctypes
import re

_VALUE = re.compile(r"%[\w$.-]+")
_PARAMETER = re.compile(r"(%[\w$.-]+): (!?[\w.]+)")
_LOOP_VALUE = re.compile(r"(%[\w$.-]+) = (%[\w$.-]+)(?:#\d+)?")
_READS = {"tt.load", "tt.descriptor_load", "tt.descriptor_gather"}
_WRITES = {"tt.store", "tt.descriptor_store", "tt.descriptor_scatter"}
_UPDATES = {"tt.atomic_rmw", "tt.atomic_cas", "tt.descriptor_reduce"}
# Code that is followed no further: functions, loops with conditions, and instructions of the device.
_UNKNOWN = re.compile(r"tt\.call |scf\.while|\bcf\.|inline_asm|tt\.extern_elementwise[^\n]*!tt\.ptr|scf\.if[^\n]*->[^\n]*!tt\.ptr")


def uses_of(code):
    """A letter for each parameter of the kernel: r (read), w (written), b (both) or - (neither). None if this is not known."""
    head = re.search(r"tt\.func public @[^(]*\((.*)\) attributes", code)
    if head is None or _UNKNOWN.search(code):
        return None
    parameters = _PARAMETER.findall(head.group(1))
    if any(kind.startswith("!") and kind != "!tt.ptr" for _, kind in parameters):
        return None  # a descriptor is several parameters of the kernel
    origins = {name: {index} for index, (name, kind) in enumerate(parameters) if kind == "!tt.ptr"}
    read, written = set(), set()
    lines = code[head.end():].splitlines()
    for _ in range(2):  # what a loop passes to its next round is known when its end has been seen
        _follow(lines, origins, read, written)
    return "".join("-rwb"[(index in read) + 2 * (index in written)] for index in range(len(parameters)))


def _follow(lines, origins, read, written):
    """Notes the parameters that each value is derived from by arithmetic, and those that are read and written."""
    regions = []  # of each open one, innermost last: the values that a loop's rounds pass on, or none
    for line in lines:
        text = line.strip()
        results, equals, operation = text.partition(" = ") if text.startswith("%") else ("", "", text)
        name = operation.split(" ", 1)[0].strip('"')
        operands = _VALUE.findall(operation)
        first = origins.get(operands[0], set()) if operands else set()
        if name in _READS or name in _UPDATES:
            read |= first
        if name in _WRITES or name in _UPDATES:
            written |= first
        if text.startswith("}"):
            del regions[-1:]
        passed = []
        if name == "scf.for":
            passed = _LOOP_VALUE.findall(operation.partition("iter_args(")[2])
            for inner, outer in passed:
                origins[inner] = origins.get(inner, set()) | origins.get(outer, set())
        elif name == "scf.yield" and regions:
            for inner, value in zip(regions[-1], operands):
                origins[inner] = origins.get(inner, set()) | origins.get(value, set())
        if equals and name not in _READS | _UPDATES:
            derived = set().union(*(origins.get(operand, ()) for operand in operands))
            for result in _VALUE.findall(results):
                origins[result] = origins.get(result, set()) | derived
        if text.endswith("{"):
            regions.append([inner for inner, _ in passed])


def tell(kernel):
    """Tells the dry device what a loaded CompiledKernel of Triton reads and writes."""
    told = getattr(ctypes.CDLL(None), "tidepool_kernel_uses", None)
    code = kernel.asm.get("ttir") if told is not None else None
    uses = uses_of(code) if isinstance(code, str) else None
    if uses is not None:
        told(ctypes.c_void_p(kernel.function), uses.encode())
