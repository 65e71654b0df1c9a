"""Python's side of the native follower (tracer/native/follower.hpp): its functions, its arrays, and storages by their numbers."""

import ctypes

import torch
from tidepool_torch.errors import RecordingError

from .arrays import is_only_in_storage

_WORDS = ctypes.POINTER(ctypes.c_int64)
_ASKED = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, _WORDS, ctypes.c_int64)
ACCESSES = (None, "read", "write", "read_write")
UNKNOWN, HOST_KIND, EMPTY_KIND, DEVICE_KIND = range(4)  # as Kind in storages.hpp
UNMANAGED, MANAGED, MOVED = range(3)  # as State in step.hpp
VERBS = ("", "swap_out", "swap_in", "drop", "discard", "free", "await", "run", "become")  # as Verb in actions.hpp
NO_BUDGET = 2**63 - 1
FAILED = -2**63


class FollowerCore:
    """The functions of the library that the follower calls. core: the Core of tidepool_torch."""

    (MATCHED, WHOLE, ISSUED, BUSY, NOW, PEAK, UPDATING, GAVE_UP, BUDGET, TAKE, QUICK, ENDS, DONE) = range(3, 16)  # of cells

    def __init__(self, core):
        self.core, self.cells = core, core.cells
        library = self._library = core.library
        for name, arguments in (("bind", 3), ("unbind", 1), ("define", 3), ("set_away", 2), ("release", 1), ("pin", 1), ("finish", 0),
                                ("remember", 0), ("forget_recipes", 0), ("unfollow", 0)):
            self._take(name, arguments, None)
        for name, arguments in (("tell", 5), ("share_host", 2), ("wait", 4), ("release_host", 1), ("release_event", 1)):
            self._take(name, arguments, None)
        for name, arguments in (("bytes", 1), ("resize", 2), ("move", 2), ("share", 2), ("keep", 1), ("kept", 1), ("made", 0),
                                ("slot", 1), ("address", 1), ("take_over", 1)):
            self._take(name, arguments, ctypes.c_int64)
        for name in ("resizable", "alive"):
            self._take(name, 1, ctypes.c_int)
        library.tidepool_new.argtypes, library.tidepool_new.restype = [ctypes.c_int64] * 2, ctypes.c_int64
        library.tidepool_array.restype = ctypes.c_void_p
        library.tidepool_name.argtypes, library.tidepool_name.restype = [ctypes.c_char_p], ctypes.c_int64
        library.tidepool_told.argtypes, library.tidepool_told.restype = [ctypes.POINTER(_WORDS)], ctypes.c_int64
        library.tidepool_journal.argtypes, library.tidepool_journal.restype = [ctypes.POINTER(_WORDS)], ctypes.c_int64
        library.tidepool_follow.argtypes = [_ASKED, ctypes.c_int, ctypes.c_int64]
        library.tidepool_facts.argtypes = [ctypes.c_int64, ctypes.c_int, _WORDS]
        library.tidepool_by_last_use.argtypes = [ctypes.c_int64, _WORDS, ctypes.c_int64]
        library.tidepool_by_last_use.restype = ctypes.c_int64
        library.tidepool_forget.argtypes = [_WORDS, ctypes.c_int64]
        library.tidepool_run_again.argtypes = [ctypes.c_int64, _WORDS, _WORDS, ctypes.c_int64]
        library.tidepool_run_again.restype = ctypes.c_int64
        library.tidepool_set_error.argtypes = [ctypes.c_char_p]
        self._facts = (ctypes.c_int64 * 5)()
        self._asked = None

    def _take(self, name, arguments, result):
        function = getattr(self._library, "tidepool_" + name)
        function.argtypes, function.restype = [ctypes.c_int64] * arguments, result
        setattr(self, name, function)

    def load(self, plan):
        """Gives the recorded step to the core."""
        accesses = {access: number for number, access in enumerate(ACCESSES)}
        words = [plan.unit, plan.limit, len(plan.buffer_of)]
        for pair in zip(plan.buffer_of, plan.producer):
            words += pair
        words.append(len(plan.sizes))
        for size, version in zip(plan.sizes, plan.first_version):
            words += size, version
        words.append(len(plan.ops))
        for index, op in enumerate(plan.ops):
            words += self._library.tidepool_name(op.name.encode()), op.recipe, plan.made[index], len(op.uses)
            for use in op.uses:
                words += (use.buffer, -1 if use.before is None else use.before, -1 if use.after is None else use.after,
                          accesses[use.access])
            words.append(len(plan.actions[index]))
            for verb, subject in plan.actions[index]:
                own = verb != "run" and plan.buffer_of[subject] in plan.hidden
                words += 0 if own or verb not in VERBS else VERBS.index(verb), subject
        words.append(len(plan.idle))
        for index, buffer in plan.idle:
            words += index, buffer
        self._library.tidepool_step((ctypes.c_int64 * len(words))(*words))
        buffers, versions, ops = len(plan.sizes), len(plan.buffer_of), len(plan.ops)
        kinds = ((ctypes.c_int64, buffers), (ctypes.c_int64, buffers), (ctypes.c_int8, versions), (ctypes.c_int8, ops),
                 (ctypes.c_int8, ops), (ctypes.c_int64, buffers))
        self.homes, self.versions, self.states, self.modes, self.new_modes, self.becomes = (
            (kind * count).from_address(self._library.tidepool_array(which)) if count else []
            for which, (kind, count) in enumerate(kinds))

    def follow(self, asked, on_gpu, device):
        """From now on, asked(what, words, count) is called where more is due than a comparison. The core executes actions on this
        device; None: it executes none."""
        self._asked = _ASKED(asked)
        like = None if device is None else torch.empty(0, device=device)
        if not self._library.tidepool_follow(self._asked, on_gpu, 0 if like is None else like._cdata):
            raise RecordingError("the native core already works for another part of Tidepool")

    def facts(self, number):
        """Kind, bytes of the buffer, trace buffer, device, bytes of a storage. Its end is told from now on."""
        self._facts[0] = UNKNOWN
        self._library.tidepool_facts(number, 1, self._facts)
        return self._facts

    def told(self):
        words = _WORDS()
        count = self._library.tidepool_told(ctypes.byref(words))
        return words[:count]

    def journal(self):
        """What the core has executed of the plan: Actions::journal in actions.hpp."""
        words = _WORDS()
        count = self._library.tidepool_journal(ctypes.byref(words))
        return [words[at:at + 4] for at in range(0, count, 4)]

    def by_last_use(self, least):
        numbers = (ctypes.c_int64 * 1)()
        count = self._library.tidepool_by_last_use(least, numbers, 0)
        numbers = (ctypes.c_int64 * max(count, 1))()
        return numbers[:min(self._library.tidepool_by_last_use(least, numbers, count), count)]

    def forget(self, stays):
        words = [word for pair in stays for word in pair]
        self._library.tidepool_forget((ctypes.c_int64 * max(len(words), 1))(*words), len(stays))

    def run_again(self, index, places, most):
        """The numbers of the storages that a kept call makes."""
        given, made = (ctypes.c_int64 * max(len(places), 1))(*places), (ctypes.c_int64 * max(most, 1))()
        count = self.checked(self._library.tidepool_run_again(index, given, made, most))
        return made[:min(count, most)], count

    def new(self, size, device):
        """A storage that only the plan keeps."""
        like = torch.empty(0, dtype=torch.uint8, device=device)
        return self.held(self.checked(self._library.tidepool_new(like._cdata, size)), device)

    def held(self, number, device):
        return HeldStorage(self, number, device)

    def checked(self, result):
        if result == FAILED:
            raise RuntimeError(f"tidepool_live: {self.core.error()}")
        return result

    def set_error(self, text):
        self._library.tidepool_set_error(text.encode())


class HostCopy:
    """Content of a version on the host, which the core has copied there."""

    def __init__(self, core, number):
        self._core, self.number = core, number
        tensor = torch.empty(0, dtype=torch.uint8)
        core.share_host(tensor._cdata, number)
        self.storage = tensor.untyped_storage()

    def __del__(self):
        self._core.release_host(self.number)


class CoreEvent:
    """The end of a copy that the core has begun, as an event of PyTorch."""

    def __init__(self, core, number):
        self._core, self._number = core, number

    def wait(self, stream):
        self._core.wait(self._number, stream.stream_id, stream.device_index, stream.device_type)

    def __del__(self):
        self._core.release_event(self._number)


class NumberedStorage:
    """A storage by its number. The program's own storage stays without a Python object: PyTorch adds gradients in place only if
    nothing else refers to their storage."""

    def __init__(self, core, number, device):
        self._core, self.number, self.device = core, number, device

    @property
    def _cdata(self):
        return self.number

    def nbytes(self):
        return self._core.checked(self._core.bytes(self.number))

    def resize_(self, size):
        self._core.checked(self._core.resize(self.number, size))

    def resizable(self):
        """Whether its memory can be freed. That of a NumPy array which only this storage has becomes PyTorch's."""
        if self._core.resizable(self.number) > 0:
            return True
        if not is_only_in_storage(self._core.checked(self._core.address(self.number))):
            return False
        self._core.checked(self._core.take_over(self.number))
        return True

    def as_bytes(self):
        tensor = torch.empty(0, dtype=torch.uint8, device=self.device)
        self._core.checked(self._core.share(tensor._cdata, self.number))
        return tensor


class HeldStorage(NumberedStorage):
    """A storage that only the plan keeps."""

    def move_to(self, storage):
        """Gives its memory to an empty storage of the program."""
        self._core.checked(self._core.move(self.number, storage.number))

    def __del__(self):
        self._core.release(self.number)
