"""Which of the job's steps ran as recorded."""


class Steps:
    """Steps are counted by the updates of the optimizer that ends them, from 1. The first has ended when this begins."""

    def __init__(self):
        self._number = 1
        self._unlike = []  # numbers of the steps that were not followed, or not yet to the end of the trace
        self._begin = 0  # how many of those are before the trace's first op
        self._closes = False  # the update that runs is the last part of a followed step

    @property
    def number(self):
        """The number of the step that runs."""
        return self._number + 1

    def begin(self):
        """The trace's first op has run."""
        self._begin = len(self._unlike)

    def finish(self, updating):
        """The trace's last op has run. updating: whether the update that ends the step still runs."""
        del self._unlike[self._begin:]
        self._closes = updating

    def updated(self):
        """An update has ended. Returns whether its step was unlike the recorded one as far as is known."""
        self._number += 1
        if not self._closes:
            self._unlike.append(self._number)
        closed, self._closes = self._closes, False
        return not closed

    def unlike(self, within):
        """The numbers of the steps that were unlike the recorded one. within: the job is within a step that it has followed so
        far."""
        return self._unlike[:self._begin] if within else list(self._unlike)
