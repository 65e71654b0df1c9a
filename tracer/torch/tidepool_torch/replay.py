"""Records with the native core: it writes a log while the job runs, which becomes records when an iteration has ended."""

import os

import torch
from torch.utils._pytree import tree_leaves

from .guest import unseen
from .launches import watched as watched_launches
from .live_recorder import LivePosition, LiveRecorder, PlacedStorages
from .logged import LoggedCall, LoggedTensor, LogReader
from .native import Core
from .op_times import estimate_ns
from .program import Buffer, Op
from .raw_file import now
from .recorder import KIND_MADE_IN, living, name_buffer, updates_parameter
from .schema import signature_of
from .storages import HOST, held_by, storage_of
from .user_line import is_user_code

_MOST_WORDS = 4 << 20  # of the log, before it is read within an iteration

# As in ../../native/log.hpp
_CALL, _, _FREE, _NODE, _EMPTIED = range(1, 6)
_RANDOM, _BRINGS_ALL, _UNINITIALISED, _VALUES = 1, 2, 4, 8
_ACCESSES = None, "read", "write", "read_write"
_WORKS = "kernel", "source", "host_wait", "copy"


class ReplayedPosition(LivePosition):
    """A LivePosition whose hooks note their place in the log, and which follows the log when it is read."""

    def __init__(self, models, call_ended, recorder, core):
        super().__init__(models, call_ended)
        self._recorder, self._core = recorder, core
        self._by_address = {parameter._cdata: (reference, path) for reference, path in self._owners.known()
                            if (parameter := reference()) is not None}
        self._own = recorder.thread_number()
        self._texts = {}  # as in the log -> text
        self.at(self._own, False, super()._newest_node(), -1, 0, 0)

    def at(self, thread, in_backward, newest, node, variable, line):
        """Sets the place of an op."""
        self._facts = thread, in_backward, newest, node, variable, line

    def place(self):
        """The place of what happens now, as for at()."""
        node, variable = super()._current_node()
        return (self._recorder.thread_number(), super()._in_backward(), super()._newest_node(), -1 if node is None else node,
                0 if variable is None else variable._cdata, super()._line())

    def _in_backward(self):
        return self._facts[1]

    def _on_own_thread(self):
        return self._facts[0] == self._own

    def _newest_node(self):
        return self._facts[2]

    def _current_node(self):
        return (None if self._facts[3] == -1 else self._facts[3]), self._facts[4] or None

    def _line(self):
        number = self._facts[5]
        if number == 0 or type(number) is str:
            return number or ""
        text = self._texts.get(number)
        if text is None:
            text = self._texts[number] = f"{os.path.basename(self._core.file(number >> 32))}:{number & 0xffffffff}"
        return text

    def _owner_of(self, address):
        reference, path = self._by_address.get(address, (None, ""))
        parameter = reference and reference()
        return path if parameter is not None and parameter._cdata == address else ""

    def _begin_update(self):
        self._recorder.note(super()._begin_update)

    def _enter_module(self, module, _inputs):
        self._core.cells[Core.RUNNING] += 1
        path = self._names.of(module, type(module).__name__)
        self._recorder.note(self._enter, path, torch._C._current_graph_task_id() != -1)

    def _leave_module(self, _module, _inputs, _outputs):
        if self._core.cells[Core.RUNNING] > 0:
            self._core.cells[Core.RUNNING] -= 1
        self._recorder.note(self._leave)


class _ReplayedStorages(PlacedStorages):
    """Storages by their numbers in the log. The core knows which are host memory."""

    def __init__(self, program, on_gpu, core):
        super().__init__(program, on_gpu)
        self._core = core
        self._emptied = {}  # number of a storage that lives without memory -> the buffer that has ended

    def _follow(self, tensor, buffer):
        number = self._key(tensor)
        if isinstance(buffer, Buffer):
            buffer.address = tensor.untyped_storage().data_ptr()
        elif buffer is HOST:
            self._core.set_host(number)
        self._buffers[number] = buffer
        return buffer

    def _key(self, tensor):
        if type(tensor) is LoggedTensor:
            return storage_of(tensor)._cdata
        return self._core.number_of(tensor) or super()._key(tensor)  # which says why there is none

    def numbered(self, number):
        return self._buffers[number]

    def of(self, number):
        """The buffer of a storage, or None."""
        return self._buffers.get(number)

    def begin(self, storage, kind):
        """A new buffer. storage: number, bytes, address and device."""
        number, size, address, device = storage
        self._emptied.pop(number, None)
        buffer = self._buffers[number] = Buffer(size, kind, device=max(0, (device >> 8) - 1))
        buffer.address = address
        return buffer

    def use(self, storage):
        """An op uses a storage that no recorded op has used so far."""
        buffer = self._buffers.get(storage[0])
        if isinstance(emptied := self._emptied.get(storage[0]), Buffer):
            self._program.alloc(self.begin(storage, emptied.kind))
        elif not isinstance(buffer, Buffer):
            self._program.add_existing(self.begin(storage, "input"))
        elif buffer in self._waiting:
            self._waiting.discard(buffer)
            self._program.alloc(buffer)

    def resize(self, storage, moment):
        """A storage has other bytes now: its buffer ends, and another begins."""
        before = self._buffers.pop(storage[0], None)
        if isinstance(before, Buffer):
            self._program.free(before, moment)
        else:
            before = self._emptied.get(storage[0])
        if storage[1] > 0:
            self._program.alloc(self.begin(storage, before.kind if isinstance(before, Buffer) else "input"))

    def emptied(self, number):
        """A storage has lost its memory: its buffer ends."""
        buffer = self._emptied[number] = self._buffers.pop(number, None)
        if isinstance(buffer, Buffer):
            self._end(buffer)

    def ended(self, number):
        self._emptied.pop(number, None)
        buffer = self._buffers.pop(number, None)
        if isinstance(buffer, Buffer) and self.following:
            self._end(buffer)


class NativeRecorder(LiveRecorder):
    """A LiveRecorder that is no dispatch mode. The core sees the ops, and writes what they use to a log. At the end of each
    iteration, the recorder reads the log and does what a LiveRecorder does at the ops."""

    def __init__(self, core, *arguments):
        self._core = core
        self._noted = []  # (words of the log before it, time, function, arguments): what happened beside the ops
        self._reader = LogReader(core)
        self._now = None  # the time and the thread of what is replayed
        super().__init__(*arguments)
        core.begin(is_user_code, not self._allocates, self._times is not None)

    @property
    def resting(self):
        return self._core.cells[Core.RESTING]

    @resting.setter
    def resting(self, value):
        self._core.cells[Core.RESTING] = value

    def note(self, function, *arguments):
        """What happens now takes effect when the log is replayed up to here."""
        words = self._core.cells[Core.WORDS]
        self._noted.append((words, now(), function, arguments))
        if words > _MOST_WORDS:
            self._replay_safely()

    def launched(self, name, start, end):
        if not self.lost and not self.resting:
            self.note(self._launched, name, start, end, self._position.place())

    def _launched(self, name, start, end, place):
        self._now = end, place[0]
        self._position.at(*place)
        super().launched(name, start, end)

    def thread_number(self):
        return super()._thread()

    def lose(self, error):
        self._core.include(False)
        super().lose(error)

    def iteration(self):
        self._replay_safely()
        if self._iterations == 1:  # without a complete iteration, the file may have those of another recorder
            self._file.write(kind="info", key="ops", value="native")
        super().iteration()

    def follow(self, models, optimizers):
        self._replay_safely()
        return super().follow(models, optimizers)

    def brought(self, batch):
        try:
            with unseen():
                leaves = [leaf for leaf in tree_leaves(batch) if isinstance(leaf, torch.Tensor)]
                self.note(self._bring, self._described(leaves))
        except Exception as error:
            self.lose(error)

    def _bring(self, tensors):
        for tensor in tensors:
            self._storages.bring(tensor)

    def _begin_update(self):
        if self.lost:
            return
        try:
            with unseen():
                named = [(held, name) for reference, name in self._names if (parameter := reference()) is not None
                         and parameter.grad is not None for held in held_by(parameter.grad)]
                self.note(self._name_gradients, [self._core.number_of(held) for held, _ in named], [name for _, name in named])
        except Exception as error:
            self.lose(error)

    def _name_gradients(self, gradients, names):
        for number, name in zip(gradients, names):
            name_buffer(self._storages.of(number), "gradient", name and name + ".grad")

    def _described(self, tensors):
        """What the log would have of these tensors, as far as Storages asks for it."""
        found = []
        for tensor in tensors:
            storage, logged, number = storage_of(tensor), LoggedTensor(), self._core.number_of(tensor)
            logged._cdata, logged.bytes, logged.address = number, storage.nbytes(), storage.data_ptr()
            logged.device, logged.layout = tensor.device, tensor.layout
            found.append(logged)
        return found

    # The interface of Recorder and Guest.

    def _new_storages(self, on_gpu):
        self._allocates = not on_gpu  # others record memory on the GPU
        return _ReplayedStorages(self, on_gpu, self._core)

    def _new_position(self):
        models = living(model for model, _ in self._models)
        return ReplayedPosition(models, self._step.call_ended, self, self._core)

    def _enter_mode(self):
        self._scope.enter_context(watched_launches(self.launched))
        self._core.include(True)

    def pause(self):
        self._core.include(False)

    def resume(self):
        self._core.include(True)

    def _leave_mode(self, *error):
        self._core.include(False)
        if not self.lost:
            self._replay_safely()
        self._core.stop()
        super()._leave_mode(*error)

    def _moment(self):
        return self._now[0] if self._now else super()._moment()

    def _thread(self):
        return self._now[1] if self._now else super()._thread()

    # The replay.

    def _replay_safely(self):
        if self.lost:
            return
        try:
            self._replay()
            error = self._core.error()
            if error:
                raise RuntimeError(error)
        except Exception as error:
            self.lose(error)
        finally:
            self._now = None

    def _replay(self):
        words = self._core.take()
        noted, self._noted = self._noted, []
        noted.reverse()
        at = 0
        while at < len(words):
            while noted and noted[-1][0] <= at:
                self._catch_up(noted.pop())
            kind, length = words[at:at + 2]
            self._handle(kind, words, at + 2, at + length)
            at += length
        while noted:
            self._catch_up(noted.pop())

    def _catch_up(self, noted):
        _, moment, function, arguments = noted
        self._now = moment, self.thread_number()
        function(*arguments)

    def _handle(self, kind, words, at, end):
        if kind == _CALL:
            self._call(words, at, end)
        elif kind == _FREE:
            number, *self._now = words[at:end]
            self._storages.ended(number)
        elif kind == _EMPTIED:
            number, *self._now = words[at:end]
            self._storages.emptied(number)
        elif kind == _NODE:
            thread, in_backward, newest, line = words[at:end]
            self._position.at(thread, in_backward != 0, newest, -1, 0, line)
            self._position.now()

    def _call(self, words, at, end):
        """What a Recorder does in _record(), of which the core has done the most."""
        op, *place, self._started, self._ended, flags = words[at:at + 10]
        thread, in_backward, newest, node, variable, line = place
        self._position.at(thread, in_backward != 0, newest, node, variable, line)
        self._now = self._started, thread
        found, at = _lists(words, at + 10)
        for storage in found:
            self._storages.use(storage)
        changed, at = _lists(words, at)
        for storage in changed:
            self._storages.resize(storage, self._started - 3)
        new, at = _lists(words, at)
        ops, at = self._ops(words, at)
        module, phase, line = self._position.now()
        if phase == "forward" and not self._position.in_call and any(map(self._updates_parameter, ops)):
            phase = "optimizer"  # by hand
        self._now = self._ended, thread
        kind = "input" if flags & _BRINGS_ALL else KIND_MADE_IN[phase]
        for storage in new:
            self.alloc(self._storages.begin(storage, kind))
        if not ops:
            return
        self._name = self._core.name_of(op)
        estimate = self._estimate(op, words, at, end) if flags & _VALUES else 0
        for name, work, uses in ops:
            own = name == self._name
            uses = [(self._storages.numbered(number), access) for number, access in uses]
            self._run(Op(name, uses, module, phase, work, own and flags & _RANDOM > 0, estimate if own else 0, line))

    def _updates_parameter(self, op):
        held = ((self._storages.of(number), access) for number, access in op[2])
        return updates_parameter([use for use in held if isinstance(use[0], Buffer)])

    def _ops(self, words, at):
        ops, count, at = [], words[at], at + 1
        for _ in range(count):
            name, work, uses = words[at:at + 3]
            end = at + 3 + 2 * uses
            ops.append((self._core.name(name), _WORKS[work],
                        [(words[each], _ACCESSES[words[each + 1]]) for each in range(at + 3, end, 2)]))
            at = end
        return ops, at

    def _estimate(self, op, words, at, end):
        func = self._core.operator(op)
        results = at + 1 + words[at]
        call = LoggedCall(func, signature_of(func), self._reader.values(words, at + 1, results))
        call.end(self._reader.values(words, results, end))
        return estimate_ns(self._times, call.priced())


def _lists(words, at):
    """(number, bytes, address, device) of storages."""
    end = at + 1 + 4 * words[at]
    return [words[each:each + 4] for each in range(at + 1, end, 4)], end
