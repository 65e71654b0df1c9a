"""Values of tensors in a dry run (../../native/values.cpp): those that decide sizes, loops and branches are computed."""

import ctypes
import os
import sys

import torch

from . import native
from .native import VALUES, NativeError, library
from .user_line import UserLine

_ROUTINGS = ("balanced", "zipf", "worst", "given")  # any other word is a file: the shares of places are given
_MASKS = "masks that no known value decides select all"
_ASSUMED = {"balanced": f"assumed: choices spread evenly, and {_MASKS} (--routing worst: nearly all choose the same)",
            "zipf": f"assumed: the i-th place is chosen in proportion to 1/i, and {_MASKS}",
            "worst": f"assumed: all choose the same places, as soon as each is chosen once, and {_MASKS}",
            "given": f"assumed: {{places}} places are chosen in proportion to the numbers in {{file}}, others evenly, and {_MASKS}"}
_MOST = 8  # places that are named
_DECIDED = ctypes.CFUNCTYPE(None, ctypes.c_char_p)


class _Assumptions:
    """States in the trace which lines chose sizes by assumed values."""

    def __init__(self, assumed, state):
        self._assumed, self._state = assumed, state
        self._line, self._places = UserLine(), []

    def decided(self, op):
        place = f"{self._line.now() or 'a backward pass'} ({op.decode()})"
        if place not in self._places and len(self._places) <= _MOST:
            self._places.append(place)
            more = ", and others" if len(self._places) > _MOST else ""
            text = (f"sizes rest on values that a dry run does not know: {', '.join(self._places[:_MOST])}{more}; "
                    f"{self._assumed}")
            self._state(b"assumed_sizes", text.encode())


_kept = []  # what the library calls


def attach():
    """Called when torch has been imported in a dry run. If values cannot be computed, says why: they are zeros then."""
    state = getattr(ctypes.CDLL(None), "tidepool_state", None)
    if state is None or not torch.version.cuda:
        return
    try:
        routing = os.environ["TIDEPOOL_ROUTING"]
        path = library(lambda text: print(f"tidepool: {text}", file=sys.stderr, flush=True), VALUES)
        shares = []
        if routing not in _ROUTINGS[:-1]:
            file, routing = routing, _ROUTINGS[-1]
            with open(file, encoding="utf-8") as text:
                shares = [float(number) for number in text.read().split()]
        assumed = _ASSUMED[routing] if not shares else _ASSUMED[routing].format(places=len(shares), file=file)
        assumptions = _Assumptions(assumed, state)
        decided = _DECIDED(assumptions.decided)
        _kept.append(decided)
        computed = ctypes.CDLL(str(path))
        if not computed.tidepool_values_begin(_ROUTINGS.index(routing), (ctypes.c_double * len(shares))(*shares), len(shares),
                                              decided):
            raise NativeError("another part of the job uses the dispatch key Fake")
        ctypes.CDLL(None).tidepool_tell_tensors(computed.tidepool_values_allocated)
        native.values = computed
    except Exception as error:
        reason = str(error)
        state(b"assumed_values", f"values of integers are zeros, and so are sizes that follow from them: {reason}".encode())
        print(f"tidepool: {reason}; values of integers are zeros in this dry run, and sizes that follow from them",
              file=sys.stderr, flush=True)
