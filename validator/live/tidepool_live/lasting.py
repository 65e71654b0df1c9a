"""The buffers that outlive a step, and the trace buffers that they are in the next one."""


class Lasting:
    """Learns from the followed iterations what a buffer that outlives one of them is in the next one.

    plan    a LiveProgram
    unused  live Buffer -> trace buffer, for those that no op of the step uses; they are known by their names
    """

    def __init__(self, plan):
        self._plan = plan
        self.unused = {}
        self._before = {}  # live Buffer -> trace buffer at the end of the iteration before
        self._becomes = {}  # trace buffer that outlives an iteration -> its trace buffer in the next iteration
        self._taken = set()  # the trace buffers that _becomes names
        self._became, self._now = {}, {}  # at the end of the last whole iteration: _becomes; live Buffer -> trace buffer

    def becomes(self, number):
        """The trace buffer in the next iteration of one that outlives this one; None if it is not known."""
        return self._becomes.get(number)

    def used(self, buffer, number):
        """An op uses a live buffer, as this trace buffer."""
        before = self._before.get(buffer)
        if before is not None:
            self._taken.discard(self._becomes.get(before))
            self._becomes[before] = number
            self._taken.add(number)

    def idle(self, buffer, index):
        """A live buffer ends before op `index`, and no op of the iteration has used it: finds its trace buffer."""
        if buffer not in self._before:
            return
        for number in self._plan.idle_buffers(index, buffer.size):
            if number not in self._taken:
                self.used(buffer, number)
                return

    def end(self, buffer):
        self._before.pop(buffer, None)

    def finish(self, numbers):
        """An iteration has ended, at whose end live buffers are these trace buffers. Returns the numbers of those that are
        known in the next one: (live buffer, trace buffer, its trace buffer in the next iteration)."""
        self._before = dict(numbers)
        known = [(buffer, number, self._becomes[number]) for buffer, number in numbers.items() if number in self._becomes]
        self._now = {buffer: then for buffer, _, then in known}
        self._became = dict(self._becomes)
        return known

    def forget(self):
        """The buffers that outlive a step have changed. Keeps those that no op uses."""
        self._before, self._now = {}, dict(self.unused)
        self._became = {number: number for number in self.unused.values()}

    def remember(self):
        """Assumes that the buffers that outlived the last whole iteration are the ones that exist now. Returns (live
        buffer, trace buffer) for each."""
        self._becomes = dict(self._became)
        self._taken = set(self._becomes.values())
        return self._now.items()
