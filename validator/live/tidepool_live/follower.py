"""Comparison of a live job with its trace, op by op, and execution of a plan on its tensors."""

import weakref

import torch
from tidepool_torch.errors import RecordingError
from tidepool_torch.program import Buffer
from tidepool_torch.schema import SHAPE_ONLY, OpCall
from tidepool_torch.storages import wraps
from torch._ops import OpOverload
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils._pytree import tree_map
from torch.utils._python_dispatch import _disable_current_modes

from .actions import Actions
from .bindings import Bindings
from .calls import Anywhere, after_backward, allocates, disturbs, needs_no_content, uses_empty
from .demand import Demand, buffers_of, made_bytes
from .limit import Limit
from .recipes import EmptyRecipe, Recipe
from .report import Report
from .storages import LiveStorages

GIVE_UP_AFTER = 8  # iterations in a row that deviate and end with an update; then the plan is given up


class Follower(Bindings):
    """While this context is entered, each op of the job is matched with an op of the recorded step, and the plan's actions
    before that op are executed first. Create and enter it between two steps, when the optimizer has its state.

    plan     a LiveProgram
    report   receives the measurements (Report)
    limit    bytes that the job may use once the whole plan is executed; None for no limit

    Before an unexpected op that may write to buffers of the step, versions that are not resident are brought back. After a
    deviation, the plan is not followed until the step begins again. So the job's results are those without a plan.
    """

    work = "the plan"
    replaces = True  # whether content that comes back may be in other tensors than those of the job

    def __init__(self, plan, models, optimizers, device, report=None, limit=None):
        self._meter = self._new_meter()
        super().__init__(models, optimizers)
        self._plan = plan
        self._copies = device
        self.report = report or Report(plan)
        self.report.watch(self._meter, self.within, lambda: self._others.first)
        self._contents = self._new_contents(device)
        self._demand = Demand(plan.limit, device, self._meter, self._storages, self._evict, self._new_away())
        self._actions = Actions(plan, device, self._contents, self.report, self._demand)
        self._matcher = self._new_matcher([op.signature for op in plan.ops])
        self._whole = False  # the iteration was followed from its first op on
        self._ended = False  # its last op has run; actions are left
        self._numbers = {}  # live Buffer -> trace buffer, in this iteration
        self._lasting = self._new_lasting()
        self._updating = False  # an optimizer's step runs, or its own buffers have not ended yet
        self._named = []  # live buffers of models and optimizers from before the first followed step
        self._issued = 0  # actions before ops [0, _issued) are done
        self._borrowed = []  # what ops that are not in the trace brought back, for Actions.take_back()
        self._call = self._state = self._substitutes = None
        self._needed, self._follows = set(), False  # buffers that the op uses; whether it may be the expected one
        self._others = self._new_others(len(plan.ops))
        self._limit = Limit(limit, device, self._meter, self.report)
        self._strange, self._updated = 0, True  # updates in a row that deviated; whether an update began since the last one

    # The interface of the Recorder: the job's memory is counted, and each op is compared with the trace.

    def _new_program(self):
        return self

    def _new_storages(self, on_gpu):
        return LiveStorages(self, on_gpu, self._meter)

    def _new_position(self):
        return Anywhere()

    meta = None

    def add_existing(self, buffer):
        if not self.entered:
            self._named.append(buffer)

    def alloc(self, *_):
        pass

    mark = alloc

    def free(self, buffer):
        """A storage of the buffer has ended. The buffer lives on if the program has views of another storage of the buffer."""
        tensors = self._contents.tensors.get(self._numbers.get(buffer))
        if tensors is not None and self._storages.only(buffer, self._contents.owned(tensors.version)):
            self._contents.released(tensors.version)
        other = self._storages.home(buffer)
        if other is not None:
            if tensors is not None:
                tensors.home = weakref.ref(other)
            return
        if self._whole and not self._updating and buffer not in self._numbers:
            self._lasting.idle(buffer, self._matcher.expected())
        self._storages.end(buffer)
        self._demand.end(buffer)
        self._lasting.end(buffer)
        self._contents.tensors.pop(self._numbers.pop(buffer, None), None)

    def run(self, op):
        if self._gave_up:
            return
        index = self._matcher.expected()
        signature = self._plan.signature(op.name, ((buffer.size, access) for buffer, access in op.uses))
        fits = not self._difference(signature, index) and self._same_buffers(op, index)
        if self._whole and not fits and self._beside(op, signature, index):
            if not self._lending:
                self._others.add(op.name, index)
            return
        continued = self._matcher.advance(signature)
        if not continued or not fits:
            self._lose(index, self._others.before(index) or op.name, self._difference(signature, index))
        if self._matcher.matched == 1 and self._others.may_be(0):
            self._go_on(op, 0)
        elif self._whole:
            self._go_on(op, index)

    def _difference(self, signature, index):
        """How an op differs from this one of the trace, apart from its buffers; "" if it does not."""
        if signature != self._plan.ops[index].signature:
            return " of other sizes"
        return " where gradients are recorded otherwise" if self._whole and not self._others.may_be(index) else ""

    def _beside(self, op, signature, index):
        """Whether an op that is not the expected one may run without ending the iteration: an evaluation between two
        steps, a read of the loss. It must not write to buffers of the step, nor be the first op of the step."""
        if index == 0:
            return True
        return ((self._others.one_more() or self._lending) and self._difference(signature, 0) and
                not any(access != "read" and buffer in self._numbers for buffer, access in op.uses))

    def _find_gradients(self, look_up):
        super()._find_gradients(look_up)
        self._updated = self._updating = True  # an optimizer's step begins

    def _has_stepped(self, optimizer, *_):
        """An update has ended. A step whose ops were all beside the recorded ones is a deviation."""
        self._updating = False
        if any(each() is optimizer for each in self._optimizers[:1]):
            unlike = self.report.steps.updated()
            if unlike and self._whole and self._matcher.expected() == 0 and self._others.first:
                self._differs(0, self._others.first)
                self._others.unlearn(self._strange + 1)

    def _differs(self, index, saw):
        """The step is unlike the recorded one, from op `index` on."""
        self.report.lost(index, self._plan.ops[index].name, saw)
        self._strange += self._updated
        self._updated = False
        if self._gave_up:
            self.report.gave_up()

    _gave_up = property(lambda self: self._strange >= GIVE_UP_AFTER)

    # Before an op.

    def __enter__(self):
        super().__enter__()
        self._updating = False
        self._scope.callback(register_optimizer_step_post_hook(self._has_stepped).remove)
        found = ((buffer, self._plan.unused_buffer(buffer.name, buffer.size)) for buffer in self._named)
        self._lasting.unused = {buffer: number for buffer, number in found if number is not None}
        self._lasting.forget()
        self._remember()
        return self

    def __exit__(self, *error):
        super().__exit__(*error)
        self.report.close()
        self.settle()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(map(wraps, types)):
            return NotImplemented
        kwargs = kwargs or {}
        if self.lost or not isinstance(func, OpOverload):
            return func(*args, **kwargs)
        call = None
        try:
            if func.namespace not in ("prim", "profiler"):
                call = OpCall(func, args, kwargs)
                args, kwargs = self._prepare(call)
                if self._substitutes:
                    call = OpCall(func, args, kwargs)
                given = None if self.resting or call.short_name == "lift_fresh" else self._given(call)
        except Exception as error:
            self.give_up(error)
        result = func(*args, **kwargs)
        if call is not None and not self.resting and not self.lost:
            try:
                call.result = result
                if given is None:
                    self._bring_in(call)
                else:
                    self._record(call, given, 0)
                if self._substitutes:
                    originals = {id(new): old for old, new in self._substitutes}
                    result = tree_map(lambda leaf: originals.get(id(leaf), leaf), result)
            except Exception as error:
                self.give_up(error)
        self._substitutes = self._call = None
        self._limit.require()
        return result

    def give_up(self, error):
        """The job continues without the plan, after an error here or an op that no plan supports. Raises an error if
        content cannot be brought back."""
        self.settle()
        self.lose(error)
        self.report.stopped(str(error) if isinstance(error, RecordingError) else f"{type(error).__name__}: {error}")

    def within(self):
        """Whether the job is within a step that was followed so far."""
        return self._whole and self._matcher.expected() > 0

    def forking(self):
        if self._copies.where.type == "cpu":  # a forked process cannot use the memory of a GPU
            self.settle()

    def settle(self):
        """Brings the content of all tensors back for good."""
        with _disable_current_modes(), torch.no_grad():
            if not self.lost:
                self._actions.settle()
                self._demand.bring_all()

    def _prepare(self, call):
        """Executes the plan's actions before this op. Returns the op's arguments with tensors that have content."""
        if not call.signature.views:
            self._finish_ended()
        index = self._next_named(call)
        given = [(argument, tensor, self._storages.known(tensor)) for argument, tensor in call.tensors()]
        follows = index is not None and self._plausible(call, index, given)
        self._needed, self._follows = buffers_of(given), follows
        self._storages.used(self._needed)
        if follows:
            self._issue(index)
            self._demand.make_room(sum(self._plan.made[self._matcher.expected():index + 1]))
        if not needs_no_content(call):
            self._demand.bring(self._needed)
        if not follows:
            self._prepare_other(call, given)
        self._state = self._copies.generator_state(call.value("generator")) if call.is_random() else None
        return self._with_content(call, self._plan.ops[index] if follows else None, given)

    def _prepare_other(self, call, given):
        """Before an op that is not the expected one."""
        may_follow = self._others.may_be(self._matcher.expected())
        if may_follow and (allocates(call) or uses_empty(each for each in given if not self._demand.holds(each[2]))):
            self._issue(self._matcher.expected())  # the call allocates for the next op, or is a view of its input
        if self._whole and disturbs(call, given, self._numbers):
            self._actions.settle(stays=self._stays)
            self._repeat_first_actions()
            self._demand.bring(self._needed)
        self._demand.make_room(self._made_bytes(call))

    def _made_bytes(self, call):
        return made_bytes(call)

    def _repeat_first_actions(self):
        """Lets the actions before op 0 happen again: an allocation between two steps may have caused them; now they are undone."""
        if self._matcher.expected() == 0:
            self._issued = 0

    def _next_named(self, call):
        """Index of the trace's op that this call may be, None if there is none. Skips the creation of empty storages."""
        index = self._matcher.expected()
        if self._gave_up or index != 0 and not self._whole:
            return None
        while index + 1 < len(self._plan.ops) and self._plan.ops[index].name == "aten::empty" != call.name:
            index += 1
        return index if self._plan.ops[index].name == call.name and self._others.may_be(index) else None

    def _plausible(self, call, index, given):
        """Whether the call may be op `index`: it uses no buffer of another size than the op, and it writes to no known buffer
        that the op does not write."""
        accesses = {use.buffer: use.access for use in self._plan.ops[index].uses}
        for argument, tensor, buffer in given:
            if not isinstance(buffer, Buffer):
                continue
            number, access = self._numbers.get(buffer), call.access(argument, tensor)
            if access is not None and not self._plan.may_use(index, buffer.size):
                return False
            if number is not None and access in ("write", "read_write") and accesses.get(number, "read") == "read":
                return False
        return True

    def _with_content(self, call, expected, given):
        uses = {use.buffer: use for use in expected.uses} if expected is not None else {}
        replaced = {}
        for argument, tensor, buffer in given:
            number = self._numbers.get(buffer) if isinstance(buffer, Buffer) else None
            if number is None or number not in self._contents.tensors:
                continue
            version = self._contents.tensors[number].version
            if self._contents.of(version) is None or needs_no_content(call):
                continue
            use = uses.get(number)
            writes = use is not None and use.access == call.access(argument, tensor) == "write"
            if writes and self._contents.storage(version, number) is None:
                self._contents.grow(version, number, buffer.size)
                continue
            if expected is None and self._contents.storage(version, number) is None:
                self._repeat_first_actions()
                self._borrowed.append((number, version, False))
            full = self._bring(tensor, buffer, version)
            if full is not tensor:
                replaced[id(tensor)] = (tensor, full)
            if call.access(argument, tensor) != "read":
                self._contents.finish(version)
        if not replaced:
            return call.args, call.kwargs
        self._substitutes = list(replaced.values())
        fill = lambda leaf: replaced[id(leaf)][1] if id(leaf) in replaced else leaf  # noqa: E731
        return tree_map(fill, call.args), tree_map(fill, call.kwargs)

    def _bring(self, tensor, buffer, version):
        """A tensor like this one whose storage holds the version. Brings the version back if the plan did not."""
        number = self._numbers[buffer]
        storage = self._contents.storage(version, number)
        if storage is None:
            self.report.count("on demand")
            self._actions.require(version)
            storage = self._contents.storage(version, number)
        self._contents.ready(version)
        if storage is tensor.untyped_storage() or storage._cdata == tensor.untyped_storage()._cdata:
            return tensor
        self._storages.also(storage, buffer)
        full = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        return full.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())

    # The plan's actions.

    def _issue(self, index):
        """Executes the actions that precede ops up to `index`."""
        if self._lending or not self._whole and index != 0:
            return
        with torch._C._AutoDispatchBelowAutograd():
            self._issuing = True
            self._take_over()
            if self._borrowed and self._issued <= index:
                self._actions.take_back(self._borrowed)
                self._borrowed = []
            while self._issued <= index:
                self._issued += 1
                for verb, subject in self._left(self._issued - 1):
                    self._actions.do(verb, subject)
            self._issuing = False

    def _left(self, index):
        """The actions before an op that are not done."""
        return self._plan.actions[index]

    # After an op.

    def _record(self, call, given, duration_ns):
        self._call = call
        super()._record(call, given, duration_ns)
        self._call = None  # autograd takes over a gradient only if nothing else refers to it

    def _resized(self, call, tensor, buffer, size):
        if call.short_name in SHAPE_ONLY:
            return None  # its content may be elsewhere
        self._storages.end(buffer)  # the job has changed its size: another buffer begins
        self.free(buffer)
        new = self._storages.add(tensor, buffer.kind)
        return new if isinstance(new, Buffer) else None

    def _same_buffers(self, op, index):
        """Whether each known buffer is still the same trace buffer as earlier in the iteration."""
        for (buffer, _), use in zip(op.uses, self._plan.ops[index].uses):
            known = self._numbers.get(buffer)
            if index > 0 and known is not None and known != use.buffer:
                return False
        return True

    def _go_on(self, op, index):
        if index == 0:
            self._whole = True
            self.report.begin(self._meter, self._others.first, self._copies.clock)
            self._others.clear()
        self._others.followed(index)
        self._issue(index)  # the trace may have several ops for a call; only the first was known before the call ran
        expected = self._plan.ops[index]
        by_number = {}
        for (buffer, _), use in zip(op.uses, expected.uses):
            by_number[use.buffer] = use
            self._bind(buffer, use)
        if expected.recipe and op.kind != "source":  # content from outside cannot be made again
            self._keep_recipe(op, index, by_number)
        for (buffer, _), use in zip(op.uses, expected.uses):
            if use.after is not None:
                tensors = self._contents.tensors[use.buffer]
                self._contents.become(tensors.version, use.after)
                tensors.version = use.after
        if index + 1 == len(self._plan.ops):
            self._last_ran()

    def _last_ran(self):
        self._ended = True
        after_backward(self._finish_ended)  # until then, autograd has the gradients that the last op used

    def _keep_recipe(self, op, index, by_number):
        expected = self._plan.ops[index]
        if op.name != self._call.name:
            storage = self._storages.home(op.uses[0][0])
            self._actions.recipes[index] = EmptyRecipe(storage, expected, self._contents.new_storage)
            return

        def use_of(tensor):
            buffer = self._storages.known(tensor)
            number = self._numbers.get(buffer) if isinstance(buffer, Buffer) else None
            return by_number.get(number)

        with torch._C._AutoDispatchBelowAutograd():
            self._actions.recipes[index] = Recipe(self._call, use_of, expected, self._state)

    def _lose(self, index, name, difference):
        """The job deviates from the trace. The op was checked before it ran, so that all content can be brought back.
        difference: how the op itself differs; "" if only its buffers do."""
        self._follows = False
        if not self._whole and not self._contents.versions():
            self._issued = 0
            return
        self._actions.settle(stays=self._stays)  # also after actions before op 0, if the op turned out not to be op 0
        if self._whole:
            expected = self._plan.ops[index].name
            self._differs(index, name + ("" if name != expected else difference or " of other buffers"))
        if not difference:  # the set of tensors that outlive the step has changed
            self._lasting.forget()
            self.report.unlearn()
        self._whole, self._issued = False, 0
        self._others.unlearn(self._strange)
        self._remember()

    def _finish_ended(self):
        if not self._ended or self.lost:
            return
        self._ended = False
        try:
            self._issue(len(self._plan.ops))
            self._finish()
        except Exception as error:
            self.give_up(error)

    def _finish(self):
        """Brings the content of all live tensors back, except versions that the plan expects on the host when the step begins.
        Buffers that outlive the step become buffers of the next one."""
        names = self._spared()
        self._actions.settle(spared=names, stays=self._stays)
        self._contents.rename(names)
        self.report.steps.finish(self._updating)
        self.report.finish(self._meter, self._copies.clock(), self._contents, self._others)
        self._others.learn()
        self.report.count_peaks(self._copies)
        self._strange = 0
        self._issued, self._borrowed = 0, []
        self._carry_over()
