"""Content that leaves and comes back beside the plan's actions: for ops that the plan does not know, and for code that reads
memory without ops."""

import contextlib

import torch
from tidepool_torch.guest import Guest
from tidepool_torch.program import Buffer
from tidepool_torch.storages import wraps
from torch.utils._python_dispatch import _disable_current_modes


class Lender(Guest):
    """The part of a Follower that does this."""

    _lending = 0  # contexts of lent() that are entered: then no action is executed
    _lent_all = 0  # those of all content: then nothing is evicted
    _issuing = False  # whether the plan's actions are being executed

    @contextlib.contextmanager
    def lent(self, tensor=None):
        """For code that reads memory without ops (torch.save): all content, or that of one tensor, is there and stays. At the
        end, it leaves again."""
        self._lent_all += tensor is None
        lent = None if self.lost else self._act(self._lend, tensor)
        self._lending += 1
        try:
            yield
        finally:
            self._lending -= 1
            self._lent_all -= tensor is None
            if lent and not self.lost:
                self._act(self._actions.take_back, lent)

    def _lend(self, tensor, bring=None):
        if tensor is None:
            self._demand.bring_all()
            return self._actions.lend()
        if tensor.layout is not torch.strided or wraps(type(tensor)):  # these have no storage of their own
            return []
        buffer = self._storages.known(tensor)
        if isinstance(buffer, Buffer):
            (bring or self._demand.bring)([buffer])
        return self._actions.lend(self._numbers.get(buffer, -1))

    def keep(self, tensor):
        """For code that asks for a tensor's address: its content comes back, and is not evicted for other memory any more."""
        if not self.lost:
            self._borrowed += self._act(self._lend, tensor, self._demand.keep) or []

    def pin(self, tensor):
        """For code that has a tensor's address: its content comes back, and its memory stays as long as its storage lives."""
        if not self.lost:
            self._act(self._pin, tensor)

    def _pin(self, tensor):
        self._lend(tensor, self._demand.keep)
        buffer = None if tensor.layout is not torch.strided or wraps(type(tensor)) else self._storages.known(tensor)
        home = self._storages.home(buffer) if isinstance(buffer, Buffer) else None
        if home is not None:
            self._contents.pin(home)

    def _act(self, action, *arguments):
        """Calls an action on content. After an error, the job continues without the plan."""
        try:
            with _disable_current_modes(), torch.no_grad():
                return action(*arguments)
        except Exception as error:
            self.give_up(error)

    def resident(self, tensor):
        """The tensor, or one with the same elements if its own storage is empty: for code that runs no ops."""
        full = None if self.lost else self._act(self._resident, tensor)
        return tensor if full is None else full

    def _resident(self, tensor):
        buffer = self._storages.known(tensor)
        self._demand.bring([buffer])
        if not isinstance(buffer, Buffer) or buffer not in self._numbers:
            return tensor
        if self._storages.nbytes(tensor, buffer) > 0:
            self._contents.ready(self._contents.tensors[self._numbers[buffer]].version)
            return tensor
        self._issue(self._matcher.expected())
        return self._bring(tensor, buffer, self._contents.tensors[self._numbers[buffer]].version)

    def _evict(self, buffer, storage):
        """Puts a buffer away for other memory. Under the plan, only a buffer that it does not know: there is room for the others. A
        version that the plan has used, or may use in the actions that need this memory, stays the plan's, so that they find it."""
        number = self._numbers.get(buffer)
        held = self._contents.tensors.get(number)
        if self._lent_all or buffer in self._needed or number in self._actions.pinned:
            return
        if held is not None and self._whole and self._follows:
            return
        within = self._issuing or self._whole and self._matcher.expected() > 0
        if held is None or self._contents.of(held.version) is None and not within:
            self._demand.put_away(buffer, storage)
        elif self._whole or self._issuing:
            self._contents.swap_out(held.version, number)
            self._contents.drop(held.version, number)

    def _stays(self, version, number):
        """Lets a version that is only on the host stay there, in the care of the Demand. Returns whether it does: at the end of
        a step it comes back if there is room."""
        buffer = self._bound_to(number)
        at_end = self._follows and not self._demand.lacks(self._plan.sizes[number])
        if buffer is None or at_end or self._storages.single(buffer) is None:
            return False
        self._demand.adopt(buffer, self._contents.hand_over(version))
        return True

    def _take_over(self):
        """What the Demand has of the step's buffers becomes content of the plan, which its actions move. Content for which
        there is no room stays on the host until an op needs it."""
        for buffer in self._demand.buffers():
            number = self._numbers.get(buffer)
            if number is not None:
                host = self._demand.take(buffer)
                version = self._contents.tensors[number].version
                self._contents.adopt(version, host)
                if version not in self._plan.parked:
                    self._demand.make_room(host.nbytes())
                    if not self._demand.lacks(host.nbytes()):
                        self._contents.swap_in(version, number)
