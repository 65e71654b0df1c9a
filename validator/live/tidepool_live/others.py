"""Ops of the job that are not in the trace, such as those of an evaluation."""

import torch


class Others:
    """Counts such ops since the last step began or ended, and tells them from equal ops of the step.

    An evaluation calls the same layers as the step, but records no gradients. So if gradients were recorded for an op of
    the step in the last whole iteration and none are recorded now, the op that is called now is another one; and the
    reverse.

    first   the first of these ops, or ""
    many    whether there were too many for a step; a step may have a few, such as a read of the loss
    """

    def __init__(self, ops):
        self._most = max(16, ops // 4)  # a step may have this many: see many and one_more()
        self._modes, self._new_modes = [None] * ops, [None] * ops  # for each op: whether gradients are recorded
        self.clear()

    def clear(self):
        self.first = ""
        self._here = (None, "")  # the step's op (its index) before which the last of these ops ran, and the first that ran there
        self._count = self._recorded = 0

    def add(self, name, index):
        """Such an op has run before the step's op `index`."""
        self.first = self.first or name
        if self._here[0] != index:
            self._here = (index, name)
        self._count += 1
        self._recorded += torch.is_grad_enabled()
        if torch.is_grad_enabled() and self._recorded == len(self._modes) + 1:
            self._modes = [None] * len(self._modes)  # these are steps, whose ops record gradients elsewhere than before

    @property
    def many(self):
        return self._count > self._most

    def before(self, index):
        """The first of these ops that ran before the step's op `index`, or ""."""
        return self._here[1] if self._here[0] == index else ""

    def one_more(self):
        """Whether an op that is not in the trace may run now without ending the iteration."""
        return not torch.is_grad_enabled() or self._recorded < self._most

    def may_be(self, index):
        """Whether an op that is called now may be this op of the step."""
        return self._mode(index) in (None, torch.is_grad_enabled())

    def _mode(self, index):
        return self._modes[index]

    def followed(self, index):
        self._new_modes[index] = torch.is_grad_enabled()

    def learn(self):
        """An iteration has ended, and all of it was followed."""
        self._modes = list(self._new_modes)
        self.clear()

    def unlearn(self, strange):
        """The job deviates from the trace, as in `strange` steps in a row. After three, steps may record gradients elsewhere."""
        if strange > 2:
            self._modes = [None] * len(self._modes)
        self.clear()
