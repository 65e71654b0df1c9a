"""The place in an iteration where its training step begins."""

import json

OP = '{"kind":"framework_op",'  # how the record of an op begins


def without_ops(lines, ops=None):
    """The records of an iteration without its begin, its ops, which are added to `ops`, and the buffers that begin and end in
    it."""
    kept, begun = [], {}  # address -> index in `kept` of the record with which a buffer begins
    for line in lines:
        if line.startswith(OP):
            if ops is not None:
                ops.append(line)
            continue
        record = json.loads(line)
        if record["kind"] == "range":
            continue
        if record.get("action") == "alloc":
            begun[record["address"]] = len(kept)
        elif record.get("action") == "free_completed" and (index := begun.pop(record["address"], None)) is not None:
            kept[index] = None
            continue
        kept.append(line)
    return [line for line in kept if line is not None]


class StepBegin:
    """An iteration lasts from one step of an optimizer to the next, so an evaluation between two steps is in it. The step begins
    behind the outermost module calls that come before its first backward pass, up to the first of these calls whose results this
    pass uses: a frozen teacher belongs to the step, an evaluation does not, also if autograd recorded it. If the pass uses no
    result of a call, as that of a sum, the step begins with the first call that autograd recorded.

    place()  gives the current place in the records
    """

    def __init__(self, place):
        self._place = place
        self.start()

    def start(self):
        """An iteration begins."""
        self._ends = []  # of each call, with the ops behind it that use its results
        self._made_by = {}  # Buffer -> index of the first call that its content depends on
        self._joined = {}  # index of a call -> that of the first call whose results were used together with its own
        self._backward = False  # whether a backward pass has begun
        self._recorded = None  # index of the first call that autograd recorded
        self._used = None  # index of the first call whose results the step uses from its backward pass on

    def call_ended(self):
        """An outermost module call has ended."""
        if not self._backward:
            self._ends.append(self._place())

    def saw(self, op, in_call, recorded):
        """An op was recorded, inside or outside of a module call. `recorded`: autograd has recorded an op of this iteration."""
        if self._backward and (self._used == 0 or not self._made_by):
            return
        self._backward = self._backward or op.phase != "forward"
        if recorded and self._recorded is None:
            self._recorded = len(self._ends)
        if not self._ends and not self._backward:  # no call before this one: most ops of most steps
            if in_call:
                self._made(op, 0, in_call)
            return
        calls = {self._made_by[buffer] for buffer, _ in op.uses if buffer in self._made_by}
        if self._backward:
            used = [*map(self._first, calls), *([] if self._used is None else [self._used])]
            self._used = min(used, default=None)
            return
        if in_call:
            calls.add(len(self._ends))
        elif calls:
            self._ends[-1] = self._place()
        elif not recorded:  # it counts as a call: behind an evaluation, as a mean of its results, it is left out, too
            calls.add(len(self._ends))
            self._ends.append(self._place())
        if calls:
            first = min(map(self._first, calls))
            self._joined.update((call, first) for call in calls)
            self._made(op, first, in_call)

    def _made(self, op, call, in_call):
        """Content that an op has written depends on a call. A call's own state, as means, does not: it joins no calls."""
        for buffer, access in op.uses:
            if access == "write" or access != "read" and (not in_call or buffer in self._made_by):
                self._made_by[buffer] = call

    def _first(self, call):
        while (joined := self._joined.get(call, call)) != call:
            call = joined
        return call

    def found(self):
        """Where the step begins; None if it begins with the iteration."""
        used = self._used if self._used is not None else self._first(self._recorded or 0)
        return self._ends[used - 1] if used > 0 else None

    def __bool__(self):
        """Whether the step, or a module call, has begun in this iteration."""
        return self._backward or bool(self._ends)
