"""Records the steps of an unchanged running script.

The records go to a raw file with addresses and times, so that they can be joined with recordings of CUPTI or the
stand-in for a GPU in the same process. GPU memory is recorded by the stand-in; without it, from PyTorch's own history
of its allocator, which also has workspaces and segments. Memory on the CPU is recorded from the storages of tensors.
"""

import json
import threading

import torch
from torch._ops import OpOverload

from .compiled import plain_path
from .guest import Guest, GuestStorages, unseen
from .launches import watched as watched_launches
from .op_times import estimate_ns
from .position import Position
from .program import Buffer
from .raw_file import now
from .recorder import living
from .schema import OpCall, signature_of
from .step_begin import OP, StepBegin, without_ops
from .storages import HOST, wraps


class LiveRecorder(Guest):
    """Writes to a RawFile while entered, each iteration at its end. A Capture drops an incomplete iteration that follows
    complete ones.

    times    the Device for which each op is priced, or None
    threads  the OtherThreads, or None
    """

    work = "the recording of PyTorch"

    def __init__(self, models, optimizers, file, times=None, threads=None):
        self._file = file
        self._times = times
        self._threads = threads
        self._told = {}  # live Buffer -> (kind, name) as last written
        self._untold = None  # while kinds are searched: buffers to write when their kinds are known
        self._name, self._started, self._ended = "", 0, 0  # of the current call
        self._texts, self._abouts = {}, {}  # text -> as JSON; facts of an op -> as in its record
        self._complete = 0  # number of complete iterations
        self.missed = 0  # number of ops of other threads
        self._step = StepBegin(lambda: (file.place(), self._moment()))
        self._begin = None  # the place of the records of this iteration, and its number
        self.left_out = 0  # number of recorded ops that belong to no training step
        self._next = None  # time at which the next iteration begins: 1 ns after the last one, so that no op is between
        super().__init__(models, optimizers)
        self._write_names(self.meta)
        if times:
            for key, value in times.facts_of_times.items():
                file.write(kind="info", key=key, value=value)
        elif self._allocates:
            file.write(kind="info", key="device", value="cpu")

    def _write_names(self, meta):
        for key in ("containers", "models"):
            if key in meta:
                self._file.write(kind="info", key=key, value=json.dumps([plain_path(path) for path in json.loads(meta[key])]))

    @property
    def begun(self):
        """Whether this iteration has more than what is behind the step of an optimizer, such as a read of the loss."""
        return bool(self._step) or self._position.in_call or self._position.trains

    @property
    def trains(self):
        """Whether autograd has recorded an op of this iteration."""
        return self._position.trains

    def expect(self, optimizers):
        """These optimizers have stepped: their state and the gradients that they use have names."""
        self._refer_to(self.models(), optimizers)

    @property
    def complete(self):
        """Number of iterations that were recorded from begin to end."""
        return self._complete

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(map(wraps, types)):
            return NotImplemented
        kwargs = kwargs or {}
        call = None
        if not (self.lost or self.resting):
            try:
                with unseen():
                    call, given = self._look_at(func, args, kwargs)
            except Exception as error:
                self.lose(error)
        if call is None:
            return func(*args, **kwargs)
        started = now()
        result = func(*args, **kwargs)
        self._started, self._ended = started, now()
        try:
            with unseen():
                call.result = result
                self._name = call.name
                if given is None:
                    self._bring_in(call)
                else:
                    self._record(call, given, estimate_ns(self._times, call) if self._times else 0)
        except Exception as error:
            self.lose(error)
        return result

    def _look_at(self, func, args, kwargs):
        """Inspects the call before it runs. Returns the OpCall, or None if it needs no record; and its tensors, or None if
        the call brings a value from Python."""
        if not isinstance(func, OpOverload):
            return None, None
        signature = signature_of(func)
        if signature.short_name == "lift_fresh":
            return OpCall(func, args, kwargs, signature), None
        if not signature.records:
            return None, None
        if signature.views:
            self._position.now()
            return None, None
        if signature.reads_value and self._storages.find(args[0]) is HOST:
            return None, None  # a step counter of an optimizer; there is one for each parameter
        call = OpCall(func, args, kwargs, signature)
        self._started = now()
        return call, self._given(call)

    def iteration(self):
        """Starts the next iteration, and writes the records of the last one to the file."""
        if self._iterations > 0:
            self._find_kinds(self._storages.known)
            self._begin_with_step()
            self._count_other_threads()
            moment = now()
            self._file.add(self._range_line("end", self._iterations, moment))
            self._next = moment + 1
            self._complete += 1
            self._file.flush()
        super().iteration()

    def _begin_with_step(self):
        """Moves the begin of this iteration to that of its training step. Ops before are left out."""
        begin = self._step.found()
        if begin is None:
            return
        place, moment = begin
        line = self._range_line("begin", self._iterations, moment, meaning="iteration", name=str(self._iterations - 1))
        left_out = []
        if self._file.replace(self._begin, place, lambda lines: without_ops(lines, left_out) + [line]):
            self.left_out += len(left_out)

    def follow(self, models, optimizers):
        """Begins another iteration: from now on, the job trains other models. Records since the end of the last iteration are of
        none. Returns whether this was possible."""
        if not self._file.replace(self._begin, self._file.place(), without_ops):
            return False
        self._refer_to(models, optimizers)
        self._write_names(self._describe("", fake=False))
        self._position.__exit__()
        self._position = self._scope.enter_context(self._new_position())
        self._started = now()
        self._find_kinds(self._storages.find)
        self._iterations -= 1
        super().iteration()
        return True

    def _count_other_threads(self):
        count = self._threads.taken() if self._threads else 0
        if count > 0:
            self.missed += count
            self._file.write(kind="loss", time=now(), count=count, loss="dropped_records")

    def models(self):
        return living(model for model, _ in self._models)

    def launched(self, name, start, end):
        """A kernel was launched that PyTorch did not dispatch. The launch tells what it uses."""
        if self.lost or self.resting:
            return
        try:
            module, phase, line = self._position.now()
            before, behind = self._about(name, phase, module, line, False, "kernel")
            self._file.add(f'{OP}"start":{start},"end":{end},{before}"thread":{self._thread()},"uses":[]{behind}}}')
        except Exception as error:
            self.lose(error)

    def on_device(self, tensor):
        return self._storages.on_device(tensor)

    def _enter_mode(self):
        self._scope.enter_context(watched_launches(self.launched))
        super()._enter_mode()

    # The interface of a program, for the Recorder.

    def _new_program(self):
        return self

    def _new_storages(self, on_gpu):
        self._allocates = not on_gpu  # others record memory on the GPU
        return PlacedStorages(self, on_gpu)

    meta = None

    def add_existing(self, buffer):
        if self._complete > 0:
            self.alloc(buffer)
        elif self._untold is None:
            self._tell("existing", buffer, self._moment())
        else:
            self._untold.append(buffer)

    def alloc(self, buffer):
        if self._allocates:
            self._tell("alloc", buffer, self._started - 2, made=True)
        else:  # others have recorded it; only its purpose is known here
            self._tell("existing", buffer, self._moment(), made=True)

    def free(self, buffer, moment=None):
        self._told.pop(buffer, None)
        if self._allocates and not self.lost:
            moment = moment or self._moment()
            self._file.add(f'{{"kind":"framework_memory","time":{moment},"action":"free_completed","address":'
                           f'{buffer.address},"size":{buffer.size},"device":{buffer.device},'
                           f'"thread":{self._thread()}}}')

    def _new_position(self):
        return LivePosition(self.models(), self._step.call_ended)

    def mark(self, kind, name):
        self._step.start()
        self._file.clock()
        self._begin = self._file.place()
        self._file.add(self._range_line("begin", self._iterations + 1, self._next or now(), meaning=kind, name=name))

    def run(self, op):
        start, end = self._started, self._ended
        if op.name != self._name:  # an op that the trace splits off takes no time; it is before or after the call
            start = end = start - 1 if op.name == "aten::empty" else end + 1
        uses = ",".join([f'["{access}",{buffer.address},{buffer.size}]' for buffer, access in op.uses])
        before, behind = self._about(op.name, op.phase, op.module, op.line, op.random, op.kind)
        if op.duration_ns:
            behind += f',"estimate":{op.duration_ns}'
        self._file.add(f'{OP}"start":{start},"end":{end},{before}"thread":{self._thread()},"uses":[{uses}]{behind}}}')
        self._step.saw(op, self._position.in_call, self._position.trains or op.phase != "forward")

    def _about(self, *facts):
        """What a record says about an op before and behind its uses. Many ops of a step have the same."""
        known = self._abouts.get(facts)
        if known is None:
            name, phase, module, line, random, kind = facts
            more = f',"module":{self._text(plain_path(module))}' if module else ""
            if line:
                more += f',"line":{self._text(line)}'
            if random:
                more += ',"random":1'
            if kind != "kernel":
                more += f',"work":"{kind}"'
            known = self._abouts[facts] = f'"name":{self._text(name)},"phase":"{phase}",', more
        return known

    def _moment(self):
        """The time of what happens in the job."""
        return now()

    def _thread(self):
        """The thread in which it happens."""
        return _thread_id()

    def _text(self, text):
        written = self._texts.get(text)
        if written is None:
            written = self._texts[text] = json.dumps(text)
        return written

    def _range_line(self, action, number, moment, **more):
        return json.dumps({"kind": "range", "time": moment, "action": action, "id": number, "thread": _thread_id(), **more},
                          separators=(",", ":"))

    def _resized(self, call, tensor, buffer, size):
        """Ends the buffer; another one begins."""
        self.free(buffer, self._started - 3)
        new = self._storages.renew(tensor, buffer.kind)
        if new is not None:
            self.alloc(new)
            self._undefined.add(new)
        return new

    def _find_kinds(self, look_up):
        self._untold = []
        super()._find_kinds(look_up)
        # Where others record the memory, an untold workspace may have ended by now, unseen until the next op.
        changed = [buffer for buffer, told in self._told.items()
                   if told != (buffer.kind, buffer.name) and (self._allocates or buffer.kind != "workspace")]
        untold, self._untold = self._untold, None
        for buffer in untold + changed:
            self._tell("existing", buffer, now())

    def _tell(self, action, buffer, moment, made=False):
        """Writes the kind and name of a buffer. A buffer that the optimizer makes has no kind until the iteration ends: it may be
        optimizer state."""
        told = not made or buffer.kind != "workspace"
        self._told[buffer] = (buffer.kind if told else "", buffer.name)
        name = f',"name":{self._text(plain_path(buffer.name))}' if buffer.name else ""
        kind = f',"category":"{buffer.kind}"' if told else ""
        self._file.add(f'{{"kind":"framework_memory","time":{moment},"action":"{action}","address":{buffer.address},'
                       f'"size":{buffer.size},"device":{buffer.device},"thread":{self._thread()}'
                       f'{name}{kind}}}')


_thread = threading.local()


def _thread_id():
    """The system's number of this thread. It is read only once, since reading it takes longer than the rest of a
    record."""
    try:
        return _thread.number
    except AttributeError:
        _thread.number = threading.get_native_id()
        return _thread.number


class LivePosition(Position):
    """Calls call_ended() at the end of each outermost module call."""

    def __init__(self, models, call_ended):
        self._call_ended = call_ended
        super().__init__(models)

    def _leave(self):
        super()._leave()
        if not self.in_call:
            self._call_ended()


class PlacedStorages(GuestStorages):
    """Storages whose buffers also have addresses."""

    def _follow(self, tensor, buffer):
        if isinstance(buffer, Buffer):
            buffer.address = tensor.untyped_storage().data_ptr()
        return super()._follow(tensor, buffer)

    def renew(self, tensor, kind):
        """A new buffer for a storage whose size has changed; None if it has no bytes now."""
        new = self.add(tensor, kind)
        return new if isinstance(new, Buffer) else None
