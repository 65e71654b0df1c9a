"""A Follower whose ops are compared by the native core (tracer/native/follower.hpp), which asks Python only where an action, an
unexpected op or content that is elsewhere makes it necessary."""

import torch
from tidepool_torch.errors import RecordingError
from tidepool_torch.guest import unseen
from tidepool_torch.native import Core
from tidepool_torch.program import Op
from torch.utils._python_dispatch import _disable_current_modes

from .actions import COUNTED
from .device import CudaDevice, HostDevice
from .follower import Follower
from .native_core import ACCESSES, NO_BUDGET, VERBS, FollowerCore
from .native_parts import Away, NativeCall, NativeContents, NativeLasting, NativeMatcher, NativeMeter, NativeOthers
from .native_parts import NativeStorages, Numbers
from .recipes import EmptyRecipe

# As in ../../../tracer/native/follower.hpp
_PREPARE, _ISSUE, _ROOM, _BRING, _RAN, _BECOME, _ENDED, _END, _FINISH, _EXCEEDED, _FAILED = range(1, 12)
_MEMORY_ERROR, _OTHER_ERROR = 1, 2  # for the job


def _cell(place, kind=int):
    return property(lambda self: kind(self._core.cells[place]), lambda self, value: self._core.cells.__setitem__(place, int(value)))


class NativeFollower(Follower):
    """core: a Core of tidepool_torch. The plan's trace must have the ops of the job alone, as the core records them."""

    replaces = False
    resting = _cell(Core.RESTING)
    _whole = _cell(FollowerCore.WHOLE, bool)
    _issued = _cell(FollowerCore.ISSUED)
    _updating = _cell(FollowerCore.UPDATING, bool)
    _ended = _cell(FollowerCore.ENDS, bool)

    def __init__(self, core, plan, models, optimizers, device, report=None, limit=None):
        self._core = FollowerCore(core)
        self._core.load(plan)
        for place in range(FollowerCore.MATCHED, FollowerCore.DONE + 1):
            self._core.cells[place] = 0
        self._core.cells[FollowerCore.BUDGET] = NO_BUDGET
        self._handlers = {_PREPARE: self._asked_to_prepare, _ISSUE: self._asked_to_issue, _ROOM: self._asked_for_room,
                          _BRING: self._asked_to_bring, _RAN: self._op_ran, _BECOME: self._versions_became, _ENDED: lambda _: None,
                          _END: lambda _: self._last_ran(), _FINISH: lambda _: self._finish_ended(),
                          _EXCEEDED: lambda _: self._limit.require(), _FAILED: self._core_failed}
        self._lasting_numbers = Numbers(self._core)
        super().__init__(plan, models, optimizers, device, report, limit)
        self._actions.recipes = _Recipes(self._core, plan)

    # Its parts.

    def _new_meter(self):
        return NativeMeter(self._core)

    def _new_storages(self, on_gpu):
        self._on_gpu = on_gpu
        return NativeStorages(self, on_gpu, self._meter, self._core)

    def _new_contents(self, device):
        return NativeContents(device, self._meter, self._core, self._storages, self._plan)

    def _new_away(self):
        return Away(self._core)

    def _new_matcher(self, signatures):
        return NativeMatcher(signatures, self._core)

    def _new_lasting(self):
        return NativeLasting(self._core)

    def _new_others(self, ops):
        return NativeOthers(ops, self._core)

    @property
    def _numbers(self):
        return self._lasting_numbers

    @_numbers.setter
    def _numbers(self, numbers):
        pass  # the core has them

    # The core asks.

    def _asked(self, what, words, count):
        try:
            with unseen():
                if torch._C._len_torch_dispatch_stack() == 0:
                    self._answer(what, words[:count])
                else:
                    with _disable_current_modes():
                        self._answer(what, words[:count])
        except torch.OutOfMemoryError as error:
            self._core.set_error(str(error))
            return _MEMORY_ERROR
        except Exception as error:
            self._core.set_error(str(error))
            return _OTHER_ERROR
        return 0

    def _answer(self, what, words):
        try:
            self._catch_up()
            self._handlers[what](words)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            self.give_up(error)
        finally:
            self._tell()

    def _catch_up(self):
        """Notes what the core has done, and the ends of storages."""
        for verb, subject, number, event in self._core.journal():
            name = VERBS[abs(verb)]
            self._contents.did(name, subject, number, event)
            name = "drop" if name == "discard" else name
            if verb > 0 and name in COUNTED:
                self.report.count(name)
        words = self._core.told()
        for at in range(0, len(words), 3):
            number, _, version = words[at:at + 3]
            if version >= 0:
                self._contents.released(version)
            buffer = self._storages.ended(number)
            if buffer is not None:
                self._demand.end(buffer)

    def _tell(self):
        """Lets the core know what its next comparison depends on."""
        self._contents.tell_states()
        self._core.cells[FollowerCore.BUSY] = bool(self._borrowed) or self._lending > 0
        self._core.cells[FollowerCore.TAKE] = bool(self._demand)

    def _left(self, index):
        done, self._core.cells[FollowerCore.DONE] = self._core.cells[FollowerCore.DONE], 0
        return self._plan.actions[index][done:]

    def _given_of(self, call):
        return [(argument, tensor, self._storages.known(tensor)) for argument, tensor in call.tensors()]

    def _asked_to_prepare(self, words):
        self._prepare(NativeCall(self._core, words[1:]))

    @property
    def _needed(self):
        if self._given is not None:
            numbers, self._given = self._given[5::4], None
            self._needs = {self._storages.by_number(number) for number in numbers}
        return self._needs

    @_needed.setter
    def _needed(self, buffers):
        self._needs, self._given = buffers, None

    _given = None  # what the core says about a call, if it was not looked at so far

    def _expects(self, words):
        """The call may be the next op of the step."""
        self._given, self._follows = words, True

    def _asked_to_issue(self, words):
        self._expects(words)
        self._issue(words[0])

    def _asked_for_room(self, words):
        self._expects(words)
        self._demand.make_room(words[0])

    def _asked_to_bring(self, words):
        self._expects(words)
        call = NativeCall(self._core, words[1:])
        self._demand.bring(self._needed)
        self._with_content(call, self._plan.ops[words[0]], self._given_of(call))

    def _op_ran(self, words):
        name, source, *uses = words
        found = [(self._storages.by_number(number), ACCESSES[access]) for number, access in zip(uses[::2], uses[1::2])]
        self.run(Op(self._core.core.name(name), found, kind="source" if source else "kernel"))

    def _versions_became(self, words):
        for before, after in zip(words[::2], words[1::2]):
            self._contents.become(before, after)

    def _core_failed(self, _words):
        raise RecordingError(self._core.core.error())

    def _finish_ended(self):
        with self._core.core.unseen():  # autograd may call this
            self._catch_up()
            super()._finish_ended()
            self._tell()

    # What differs from a dispatch mode.

    def _made_bytes(self, call):
        return self._core.made()

    def _bring(self, tensor, buffer, version):
        number = self._numbers[buffer]
        if self._contents.storage(version, number) is None:
            self.report.count("on demand")
            self._actions.require(version)
        self._contents.ready(version)
        return tensor

    def _bind(self, buffer, use):
        if self._numbers.get(buffer) == use.buffer:
            return
        self._unbind(use.buffer)
        self._core.bind(buffer.number, use.buffer, use.before if use.before is not None else self._plan.first_version[use.buffer])

    def _forget_number(self, number):
        self._core.unbind(number)

    def _bound_to(self, number):
        return self._storages.by_number(self._core.homes[number]) if self._core.homes[number] else None

    def _keep_recipe(self, op, index, by_number):
        if op.name == "aten::empty" or op.name.endswith(".running_stats"):
            storage = self._storages.home(op.uses[0][0])
            self._actions.recipes[index] = EmptyRecipe(storage, self._plan.ops[index], self._contents.new_storage)
        else:
            self._core.keep(index)

    def _remember(self):
        self._borrowed = []
        self._core.remember()

    def _carry_over(self):
        self._core.finish()
        if self.report.steady and self._core.cells[FollowerCore.BUDGET] == NO_BUDGET:
            self._core.cells[FollowerCore.BUDGET] = self._limit.begin()

    def _differs(self, index, saw):
        super()._differs(index, saw)
        self._core.cells[FollowerCore.GAVE_UP] = self._gave_up

    def _find_gradients(self, look_up):
        """No one asks for the names of gradients."""
        self._updated = self._updating = True

    def _enter_mode(self):
        plain = type(self._copies) in (HostDevice, CudaDevice)  # a test's devices are Python's
        self._core.follow(self._asked, self._on_gpu, self._copies.where if plain else None)
        self._core.core.include(True)

    def _leave_mode(self, *error):
        super()._leave_mode(*error)
        self._core.core.include(False)

    def __exit__(self, *error):
        try:
            super().__exit__(*error)
        finally:
            self._core.unfollow()
            self._core.core.stop()

    def forked(self):
        self._core.unfollow()
        super().forked()

    def lose(self, error):
        super().lose(error)
        self._core.unfollow()
        self._core.core.include(False)

    def settle(self):
        with self._core.core.unseen():
            self._catch_up()
            super().settle()
            self._tell()

    def _act(self, action, *arguments):
        with self._core.core.unseen():
            self._catch_up()
            try:
                return super()._act(action, *arguments)
            finally:
                self._tell()

    @property
    def _lending(self):
        return self._lent

    @_lending.setter
    def _lending(self, count):
        self._lent = count
        self._tell()

    _lent = 0

    def keep(self, tensor):
        super().keep(tensor)
        if not self.lost:
            self._tell()


class _Recipes:
    """op -> its recipe: the core keeps the calls."""

    def __init__(self, core, plan):
        self._core, self._plan, self._empty = core, plan, {}

    def __contains__(self, index):
        return index in self._empty or self._core.kept(index) >= 0

    def get(self, index):
        return self[index] if index in self else None

    def __getitem__(self, index):
        return self._empty.get(index) or _NativeRecipe(self._core, index, self._plan.ops[index])

    def __setitem__(self, index, recipe):
        self._empty[index] = recipe

    def clear(self):
        self._empty.clear()
        self._core.forget_recipes()


class _NativeRecipe:
    """As Recipe in recipes.py. The core restores states of generators."""

    state = generator = None

    def __init__(self, core, index, expected):
        self._core, self._index, self._name = core, index, expected.name
        given = core.kept(index)
        self.arguments, self.made = list(expected.uses[:given]), list(expected.uses[given:])

    def run(self, place):
        places = [place(use) for use in self.arguments]
        made, count = self._core.run_again(self._index, [storage.number for storage in places], len(self.made))
        device = places[0].device if places else None
        storages = [self._core.held(number, device) for number in made]
        if count != len(self.made):
            raise RuntimeError(f"tidepool_live: {self._name} made {count} storages when it ran again; expected "
                               f"{len(self.made)}; please report the plan and the trace")
        return storages
