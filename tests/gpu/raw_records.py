"""Reads binary raw captures (tracer/raw/FORMAT.md) as far as questions.py and pointers.py need them."""

import pathlib
import struct
from collections import namedtuple

_FORMS = {  # kind: name, fields, struct
    3: ("clock", "time realtime monotonic_raw", "<3q"),
    7: ("memory", "time address size pool device context stream correlation thread source name operation memory async_ pool_kind",
        "<q3Q7I4B"),
    10: ("vmm", "time address size handle offset device correlation thread operation", "<q4Q3IB3x"),
    11: ("kernel", "start end graph_node name device context stream correlation graph", "<2qQ6I44x"),
    14: ("launch", "start end function graph_node correlation context stream thread graph unknown_pointers flags uses "
         "inner_correlation driver_correlation", "<2q2Q10I"),
    22: ("loss", "time count loss", "<qQB7x"),
}
_USE = namedtuple("use", "address size offset parameter access evidence")
_TYPES = {kind: namedtuple(name, fields) for kind, (name, fields, _) in _FORMS.items()}


def read(path):
    """Records of the kinds above by name, with texts, infos and the uses of each launch: {"memory": [...], ...,
    "text": {1: "..."}, "uses": [[...], ...]}. Reads up to the first chunk that is packed or cut off."""
    data = pathlib.Path(path).read_bytes()
    if data[:5] != b"TPRAW":
        raise ValueError(f"{path}: no raw capture")
    found = {name: [] for name, _, _ in _FORMS.values()} | {"text": {0: ""}, "info": {}, "uses": []}
    at = struct.unpack_from("<H", data, 10)[0]
    while at + 32 <= len(data):
        mark, stored, _, _, _, packing, _ = struct.unpack_from("<4IQ2I", data, at)
        if mark != 0x4B4E4843 or packing != 0 or at + 32 + stored > len(data):
            break
        _read_chunk(data, at + 32, at + 32 + stored, found)
        at += 32 + stored
    return found


def _read_chunk(data, at, end, found):
    while at + 8 <= end:
        kind, fixed, size = struct.unpack_from("<2HI", data, at)
        if kind == 1:
            number, length = struct.unpack_from("<2I", data, at + 8)
            found["text"][number] = data[at + 16:at + 16 + length].decode(errors="replace")
        elif kind == 2:
            key, value = struct.unpack_from("<2I", data, at + 8)
            found["info"][found["text"].get(key)] = found["text"].get(value)
        elif kind in _FORMS:
            name, _, form = _FORMS[kind]
            record = data[at + 8:at + 8 + fixed].ljust(struct.calcsize(form), b"\0")  # older records have fewer fields
            found[name].append(_TYPES[kind]._make(struct.unpack_from(form, record)))
            if name == "launch":
                tail = data[at + 8 + fixed:at + 8 + fixed + 24 * found[name][-1].uses]
                found["uses"].append([_USE._make(use) for use in struct.iter_unpack("<2QIH2B", tail)])
        at += max(size, 8)


def read_folder(folder):
    """The records of all files that the injected recorder wrote in a run, the largest file first."""
    paths = sorted(pathlib.Path(folder).glob("*.cupti.raw"), key=lambda path: -path.stat().st_size)
    return [read(path) for path in paths]
