"""Which live buffers of a job are which buffers of the recorded step."""

from .contents import Contents, Tensors
from .lasting import Lasting
from .lending import Lender
from .meter import Meter
from .others import Others
from .program import Matcher


class Bindings(Lender):
    """The part of a Follower that knows this. Another Follower may keep it elsewhere."""

    # Its parts.

    def _new_meter(self):
        return Meter()

    def _new_contents(self, device):
        return Contents(device, self._meter)

    def _new_away(self):
        return {}

    def _new_matcher(self, signatures):
        return Matcher(signatures)

    def _new_lasting(self):
        return Lasting(self._plan)

    def _new_others(self, ops):
        return Others(ops)

    def _bind(self, buffer, use):
        """From now on, the live buffer is the trace buffer of the use."""
        if self._numbers.get(buffer) == use.buffer:
            return
        self._unbind(use.buffer)
        storage = self._storages.home(buffer)
        first = use.before if use.before is not None else self._plan.first_version[use.buffer]
        self._numbers[buffer] = use.buffer
        self._contents.tensors[use.buffer] = Tensors(storage, first)
        self._lasting.used(buffer, use.buffer)

    def _unbind(self, number):
        """The trace buffer belongs to another live buffer than expected. Brings the content of the expected one back."""
        expected = self._contents.tensors.get(number)
        if expected is None:
            return
        if self._contents.of(expected.version) is not None:
            if expected.home() is not None:
                self._actions.require(expected.version)
                self._contents.restore_home(expected.version, number)
            self._contents.forget(expected.version)
        self._forget_number(number)

    def _forget_number(self, number):
        self._numbers = {buffer: bound for buffer, bound in self._numbers.items() if bound != number}

    def _bound_to(self, number):
        """The live buffer that is this trace buffer, or None."""
        return next((buffer for buffer, bound in self._numbers.items() if bound == number), None)

    def _remember(self):
        """Assumes that the buffers that outlived the last whole iteration are the ones that exist now."""
        self._borrowed = []
        self._numbers, self._contents.tensors = {}, {}
        for buffer, number in self._lasting.remember():
            storage = self._storages.home(buffer)
            if storage is not None:
                self._numbers[buffer] = number
                self._contents.tensors[number] = Tensors(storage, self._plan.first_version[number])

    def _spared(self):
        """The versions that stay on the host because the plan expects them there when the next step begins -> their numbers in it."""
        names = {}
        for version in self._contents.versions():
            number = self._plan.buffer_of[version]
            then = self._lasting.becomes(number)
            if then is None or self._plan.first_version[then] not in self._plan.parked or number not in self._contents.tensors:
                continue
            if self._contents.tensors[number].version == version and self._contents.only_on_host(version):
                names[version] = self._plan.first_version[then]
        return names

    def _carry_over(self):
        known = self._lasting.finish({buffer: number for buffer, number in self._numbers.items()
                                      if number in self._contents.tensors})
        held, self._numbers, self._contents.tensors = self._contents.tensors, {}, {}
        for buffer, number, then in known:
            self._numbers[buffer] = then
            self._contents.tensors[then] = held[number]
            held[number].version = self._plan.first_version[then]
