"""The parts of a Follower whose state is in the native core."""

from tidepool_torch.program import Buffer
from tidepool_torch.schema import signature_of
from tidepool_torch.storages import EMPTY, HOST

from .contents import Content, Contents
from .native_core import ACCESSES, DEVICE_KIND, EMPTY_KIND, HOST_KIND, MANAGED, MOVED, UNMANAGED, CoreEvent, HostCopy, NumberedStorage
from .others import Others
from .program import BLOCK, Matcher
from .storages import LiveStorages


class NativeMeter:
    """The core counts."""

    def __init__(self, core):
        self._cells, self._now, self._peak = core.cells, core.NOW, core.PEAK

    @property
    def now(self):
        return self._cells[self._now]

    @property
    def peak(self):
        return self._cells[self._peak]

    def count(self, storage):
        pass

    def start(self):
        self._cells[self._peak] = self.now


class NativeMatcher(Matcher):
    def __init__(self, signatures, core):
        self._cells, self._place = core.cells, core.MATCHED
        super().__init__(signatures)

    @property
    def matched(self):
        return self._cells[self._place]

    @matched.setter
    def matched(self, value):
        self._cells[self._place] = value


class NativeOthers(Others):
    """The modes of ops are in the core, where 2 stands for None."""

    def __init__(self, ops, core):
        self._core = core
        super().__init__(ops)

    @property
    def _modes(self):
        return [None if mode == 2 else mode == 1 for mode in self._core.modes]

    @_modes.setter
    def _modes(self, modes):
        self._core.modes[:] = [2 if mode is None else int(mode) for mode in modes]

    @property
    def _new_modes(self):
        return self._core.new_modes

    @_new_modes.setter
    def _new_modes(self, modes):
        self._core.new_modes[:] = [2 if mode is None else int(mode) for mode in modes]

    def _mode(self, index):
        mode = self._core.modes[index]
        return None if mode == 2 else mode == 1

    def learn(self):
        self._core.modes[:] = self._core.new_modes[:]
        self.clear()


class NativeLasting:
    """Which buffers outlive a step is learnt by the core (step.hpp), as in lasting.py."""

    def __init__(self, core):
        self._core = core
        self.unused = {}

    def becomes(self, number):
        then = self._core.becomes[number]
        return then if then >= 0 else None

    def forget(self):
        self._core.forget([(buffer.number, number) for buffer, number in self.unused.items()])


class Numbers:
    """live Buffer -> trace buffer, in this iteration"""

    def __init__(self, core):
        self._core = core

    def get(self, buffer, default=None):
        number = self._core.slot(buffer.number) if isinstance(buffer, Buffer) else -1
        return default if number < 0 else number

    def __getitem__(self, buffer):
        return self._core.slot(buffer.number)

    def __contains__(self, buffer):
        return self.get(buffer) is not None


class _Held:
    """As Tensors in contents.py."""

    def __init__(self, core, storages, number):
        self._core, self._storages, self._number = core, storages, number

    @property
    def version(self):
        return self._core.versions[self._number]

    @version.setter
    def version(self, version):
        self._core.versions[self._number] = version

    def home(self):
        return self._storages.numbered(self._core.homes[self._number])


class HeldTensors:
    """trace buffer -> its live tensors"""

    def __init__(self, core, storages):
        self._core, self._storages = core, storages

    def get(self, number, default=None):
        return self[number] if number in self else default

    def __contains__(self, number):
        return number is not None and number >= 0 and self._core.homes[number] != 0

    def __getitem__(self, number):
        return _Held(self._core, self._storages, number)


class _Managed(dict):
    """version -> Content. Remembers what was looked at, since its state may change."""

    def __init__(self):
        super().__init__()
        self.touched = set()

    def get(self, version, default=None):
        self.touched.add(version)
        return super().get(version, default)

    def __getitem__(self, version):
        self.touched.add(version)
        return super().__getitem__(version)

    def __setitem__(self, version, content):
        self.touched.add(version)
        super().__setitem__(version, content)

    def setdefault(self, version, content):
        self.touched.add(version)
        return super().setdefault(version, content)

    def pop(self, version, *default):
        self.touched.add(version)
        return super().pop(version, *default)

    def clear(self):
        self.touched.update(self)
        super().clear()

    def update(self, other):
        self.touched.update(other)
        super().update(other)


class NativeContents(Contents):
    """Content that is recomputed moves into the storage of the program's tensors, if there is one. So each op finds it there."""

    def __init__(self, device, meter, core, storages, plan):
        super().__init__(device, meter)
        self._core, self._plan = core, plan
        self._contents = _Managed()
        self._native = set()  # versions of which the core has a copy on the host
        self.tensors = HeldTensors(core, storages)

    def pin(self, storage):
        self._core.pin(storage.number)

    def _may_empty(self, storage):
        return storage.resizable()

    def new_storage(self, size):
        return self._core.new(size, self._device.where)

    def did(self, verb, subject, number, event):
        """The core has executed an action on a version, or run an op again."""
        if verb == "run":
            for use in self._plan.ops[subject].uses:
                if use.before is None:
                    self._at_home(use.after)
        elif verb == "swap_out":
            content = self._at_home(subject)
            if number:
                self._native.add(subject)
                content.native = HostCopy(self._core, number)
                content.host = content.native.storage
                content.out = CoreEvent(self._core, event) if event else None
                self.copied_out += content.host.nbytes()
        elif verb == "swap_in":
            content = self._at_home(subject)
            if number:
                content.back = CoreEvent(self._core, event) if event else None
                self.copied_in += content.host.nbytes()
        elif verb == "drop":
            content = self._at_home(subject)
            content.place = content.owned = content.out = content.back = None
        elif verb == "free":
            self.end(subject, self._plan.buffer_of[subject])
        else:
            self.become(subject, number)

    def _at_home(self, version):
        """The content of a version that is in the storage of the job's tensors, as far as it still lives."""
        content = self._contents.setdefault(version, Content())
        storage = self.tensors[self._plan.buffer_of[version]].home()
        if storage is not None:
            content.put(storage, owned=False)
        return content

    def put(self, version, storage):
        super().put(version, storage)
        self._move_home(version)

    def become(self, before, after):
        super().become(before, after)
        self._move_home(after)

    def copy(self, parent, version, buffer):
        super().copy(parent, version, buffer)
        self._move_home(version)

    def _move_home(self, version):
        content = self._contents.get(version)
        home = self.home(version, self._plan.buffer_of[version])
        if content is None or content.owned is None or home is None or home.nbytes() > 0:
            return
        content.owned.move_to(home)
        content.put(home, owned=False)

    def tell_states(self):
        """Lets the core know the states of the versions that were looked at."""
        touched, self._contents.touched = self._contents.touched, set()
        for version in touched:
            content = dict.get(self._contents, version)
            state = self._state(content)
            native = None if content is None else content.native
            if native is not None and content.host is native.storage:
                self._native.add(version)
                self._core.tell(version, state, native.number, content.out is not None, content.back is not None)
            elif version in self._native:
                self._native.discard(version)
                self._core.tell(version, state, 0, 0, 0)
            else:
                self._core.states[version] = state

    @staticmethod
    def _state(content):
        if content is None:
            return UNMANAGED
        moved = content.storage() is None or content.out is not None or content.back is not None
        return MOVED if moved else MANAGED


class Away(dict):
    """live Buffer -> its bytes on the host. The core knows which buffers these are."""

    def __init__(self, core):
        super().__init__()
        self._core = core

    def __setitem__(self, buffer, host):
        super().__setitem__(buffer, host)
        self._core.set_away(buffer.number, 1)

    def pop(self, buffer, *default):
        self._core.set_away(buffer.number, 0)
        return super().pop(buffer, *default)


class NativeStorages(LiveStorages):
    """The buffers that Python has looked at; the core knows all."""

    def __init__(self, program, on_gpu, meter, core):
        super().__init__(program, on_gpu, meter)
        self._core = core
        self._numbered = {}  # number -> NumberedStorage
        self._devices = {}  # as in the core -> torch.device

    def _key(self, tensor):
        number = tensor.number if isinstance(tensor, GivenTensor) else self._core.core.number_of(tensor)
        if number == 0:
            return super()._key(tensor)  # which says why
        return number

    def known(self, tensor):
        return self.by_number(self._key(tensor))

    def by_number(self, number):
        buffer = self._buffers.get(number)
        if buffer is not None:
            return buffer
        kind, size, _, _, now = self._core.facts(number)
        if kind == DEVICE_KIND:
            buffer = self._buffers[number] = Buffer(size, number=number)
            return buffer
        return HOST if kind == HOST_KIND else EMPTY if kind == EMPTY_KIND and now == 0 else None

    def bring(self, tensor):
        pass  # known when an op uses it

    def _follow(self, tensor, buffer):
        number = self._key(tensor)
        kind = DEVICE_KIND if isinstance(buffer, Buffer) else HOST_KIND if buffer is HOST else EMPTY_KIND
        self._core.define(number, kind, buffer.size if isinstance(buffer, Buffer) else 0)
        if isinstance(buffer, Buffer):
            buffer.number = number
            self._buffers[number] = buffer
            self._core.facts(number)
        return buffer

    def numbered(self, number):
        """The storage of this number, while it lives; None for 0."""
        if number == 0 or not self._core.alive(number):
            return None
        storage = self._numbered.get(number)
        if storage is None:
            kind, _, _, device, _ = self._core.facts(number)
            if kind == DEVICE_KIND:
                if device not in self._devices:
                    self._devices[device] = self._core.core.device(device & 0xff, (device >> 8) - 1)
                storage = NumberedStorage(self._core, number, self._devices[device])
                self._numbered[number] = storage
        return storage

    def ended(self, number):
        """A storage has ended. Returns its buffer, or None."""
        self._numbered.pop(number, None)
        return self._buffers.pop(number, None)

    def home(self, buffer):
        return self.numbered(buffer.number)

    single = home

    def nbytes(self, tensor, buffer):
        return self.home(buffer).nbytes()

    def used(self, buffers):
        pass

    def by_last_use(self):
        found = ((self.by_number(number), number) for number in self._core.by_last_use(BLOCK))
        return [(buffer, self.numbered(number)) for buffer, number in found if isinstance(buffer, Buffer)]

    def end(self, buffer):
        pass


class GivenTensor:
    """A tensor argument of a call; also its storage."""

    def __init__(self, number, size):
        self.number, self._size = number, size

    def untyped_storage(self):
        return self

    def nbytes(self):
        return self._size


class _GivenArgument:
    def __init__(self, access, statistic):
        self.access, self.name = access, "running_mean" if statistic else ""


class NativeCall:
    """What the core says about a call, as far as a Follower asks an OpCall. words: as `call` in follower.hpp."""

    args = kwargs = None

    def __init__(self, core, words):
        operator, self._allocates, self._updates, count = words[:4]
        self.func = core.core.operator(operator)
        signature = self.signature = signature_of(self.func)
        self.name, self.short_name = signature.name, signature.short_name
        self._tensors = [(_GivenArgument(ACCESSES[words[at + 1]], words[at + 3]), GivenTensor(words[at], words[at + 2]))
                         for at in range(4, 4 + 4 * count, 4)]

    def tensors(self):
        return self._tensors

    @staticmethod
    def access(argument, _tensor):
        return argument.access

    def value(self, name, default=None):
        """Only "size" is asked for: whether the call makes a storage."""
        return (None if self._allocates else [0]) if name == "size" else default

    def updates_running_statistics(self):
        return bool(self._updates)

    @staticmethod
    def is_random():
        return False  # the core keeps states of generators
