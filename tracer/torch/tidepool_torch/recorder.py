"""Records the aten ops of a training step in order, with the storages that they use."""

import gc
import json
import time
import weakref
from contextlib import ExitStack

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .devices import find_device
from .errors import RecordingError
from .op_times import estimate_ns
from .position import Position, containers_of, names_of, prefixes_of
from .program import Buffer, Op, Program
from .schema import UNINITIALISED, OpCall
from .storages import HOST, Storages, held_by, wraps

_NOTES = (
    "workspaces inside kernels and the rounding of the caching allocator are not visible; "
    "gradients that meet are added out of place, as PyTorch does while a dispatch mode is on"
)

# The kind of a buffer that belongs to no model or optimizer, by the phase that made it.
KIND_MADE_IN = {"forward": "activation", "backward": "gradient", "optimizer": "workspace"}


class Recorder(TorchDispatchMode):
    """Records while it is entered. Use it around whole training steps:

        with Recorder(model, optimizer, device="a100") as recorder:
            step()
        recorder.save("step.jsonl")

    models, optimizers  one or a list; they give names and kinds to buffers. They are held by weak references: the program may
             drop them
    device   name of the device for which the ops are priced (see devices.DEVICES), or None to measure the wall time of
             each op, which needs real tensors on the CPU
    name     of the model, for the trace's metadata

    Storages from before the recording are inputs, unless they are parameters, module buffers (both of kind parameter),
    gradients or optimizer state. Storages that come from the host, such as batches, are inputs too. A storage that forward
    makes is an activation; one that backward makes is a gradient (only those of parameters have names); one that the
    optimizer makes for itself is a workspace. The cyclic garbage collector is off while recording, so that in every run,
    buffers end at the point where the program drops them.

    Host memory is left out. With a model on a GPU device (real or fake) this is everything on the CPU; otherwise it is
    step counters of optimizers, and numbers that the program turned into tensors.
    """

    measures = True  # whether the times of ops are measured if no device is named

    def __init__(self, models, optimizers=(), device="a100", name=""):
        super().__init__()
        models, optimizers = self._refer_to(models, optimizers)
        self._device = find_device(device) if device is not None else None
        parameters = [parameter for model in models for parameter in model.parameters()]
        parameters += [parameter for optimizer in optimizers for group in optimizer.param_groups
                       for parameter in group["params"]]  # some belong to no model
        on_gpu = any(parameter.device.type not in ("cpu", "meta") for parameter in parameters)
        fake = any(isinstance(parameter, FakeTensor) for parameter in parameters)
        if self.measures and self._device is None and (fake or on_gpu):
            raise RecordingError("measured times need real tensors on the CPU; name a device to have them estimated")
        self.program = self._new_program()
        self.program.meta = self._describe(name, fake)
        self._storages = self._new_storages(on_gpu)
        self._position = self._new_position()
        self._names = []  # (weak reference to a parameter, its name or "")
        self._undefined = set()  # buffers that were allocated without content and have not been written
        self._last_op = None
        self._iterations = 0
        self._scope = ExitStack()

    def _refer_to(self, models, optimizers):
        """Refers to models and optimizers by weak references. Returns lists of them."""
        models = models if isinstance(models, (list, tuple)) else [models]
        optimizers = optimizers if isinstance(optimizers, (list, tuple)) else [optimizers]
        self._models = list(zip(map(weakref.ref, models), prefixes_of(models)))
        self._optimizers = list(map(weakref.ref, optimizers))
        return models, optimizers

    def __enter__(self):
        self._rest_collector()
        self._scope.enter_context(self._position)
        hook = register_optimizer_step_pre_hook(torch._disable_dynamo(lambda *_: self._begin_update()))
        self._scope.callback(hook.remove)
        self._find_kinds(self._storages.find)
        self._storages.following = True
        self.iteration()
        self._enter_mode()
        return self

    def __exit__(self, *error):
        self._leave_mode(*error)
        self._storages.following = False
        self._find_kinds(self._storages.known)
        self._scope.close()

    def iteration(self):
        """Marks the begin of the next iteration. The first iteration needs no call."""
        self.program.mark("iteration", str(self._iterations))
        self._position.start_iteration()
        self._iterations += 1

    def save(self, path):
        """Writes the trace as JSON lines, compressed if `path` ends in .gz."""
        self.program.save(path)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(map(wraps, types)):
            return NotImplemented
        call = OpCall(func, args, kwargs or {})
        if func.namespace in ("prim", "profiler"):
            return call.run()
        if call.short_name == "lift_fresh":
            call.run()
            self._bring_in(call)
            return call.result
        given = self._given(call)
        started = time.perf_counter_ns()
        call.run()
        elapsed = time.perf_counter_ns() - started
        self._record(call, given, elapsed if self._device is None else estimate_ns(self._device, call))
        return call.result

    def _given(self, call):
        """(argument, tensor, buffer) for each tensor argument."""
        find = self._storages.find
        return [(argument, tensor, find(tensor)) for argument, tensor in call.tensors()]

    def _enter_mode(self):
        super().__enter__()

    def _leave_mode(self, *error):
        super().__exit__(*error)

    def _rest_collector(self):
        gc.collect()
        if gc.isenabled():
            gc.disable()
            self._scope.callback(gc.enable)

    def _new_program(self):
        return Program()

    def _new_storages(self, on_gpu):
        return Storages(self.program, on_gpu)

    def _new_position(self):
        return Position(living(model for model, _ in self._models))

    def _record(self, call, given, duration_ns):
        if call.signature.views:
            self._position.now()
            return
        from_host = [tensor for _, tensor, buffer in given if buffer is HOST]
        if given and len(from_host) == len(given) and all(tensor.device.type == "cpu" for tensor in call.outputs):
            for tensor in call.outputs:
                self._storages.add_host(tensor)
            return

        uses = self._uses(call, given)
        module, phase, line = self._position.now()
        if phase == "forward" and not self._position.in_call and updates_parameter(uses):
            phase = "optimizer"  # by hand
        brings = any(tensor.dim() > 0 for tensor in from_host)
        made = self._new_buffers(call, "input" if brings and not uses else KIND_MADE_IN[phase])
        if call.short_name in UNINITIALISED:
            self._allocate(made)
            self._undefined.update(made)
            return
        uses += [(buffer, "write") for buffer in made]
        kind = "kernel"
        if brings:
            kind = "source"
        elif uses and call.signature.reads_value:
            kind = "host_wait"
        elif uses and call.outputs and not any(self._storages.on_device(tensor) for tensor in call.outputs):
            kind = "copy"
        elif all(access == "read" for _, access in uses):
            return  # a view, or a query about a tensor

        op = Op(call.name, uses, module, phase, kind, call.is_random(), duration_ns, line)
        self._define(op)
        self._allocate(made)
        self._run(op)
        if call.updates_running_statistics():
            self._update_running_statistics(call, op)

    def _uses(self, call, given):
        """(buffer, access) for the arguments, each buffer once; `read_write` if arguments both read and write it."""
        found = {}
        for argument, tensor, buffer in given:
            if not isinstance(buffer, Buffer):
                continue
            size = tensor.untyped_storage().nbytes()
            if size != buffer.size:
                buffer = self._resized(call, tensor, buffer, size)
                if buffer is None:
                    continue
            access = call.access(argument, tensor)
            if access is not None and found.setdefault(buffer, access) != access:
                found[buffer] = "read_write"
        return list(found.items())

    def _resized(self, call, tensor, buffer, size):
        """The buffer of a tensor after its storage has become larger or smaller."""
        raise RecordingError(f"{call.name} changes the size of a buffer from {buffer.size} to {size} bytes; "
                             "a trace holds buffers of one size")

    def _new_buffers(self, call, kind):
        """Buffers for storages that the op made, including those of `out=` tensors that were empty before."""
        made = [self._storages.add(tensor, kind) for tensor in call.outputs if self._storages.known(tensor) is None]
        return [buffer for buffer in made if isinstance(buffer, Buffer)]

    def _allocate(self, buffers):
        for buffer in buffers:
            self.program.alloc(buffer)

    def _run(self, op):
        if op.phase == "backward" and self._last_op is not None and self._last_op.name == "aten::ones_like":
            self._last_op.phase = "backward"  # the gradient of the loss is made just before autograd starts
            for buffer, _ in self._last_op.uses:
                buffer.kind = "gradient"
        self.program.run(op)
        self._last_op = op
        if self._undefined:
            self._undefined.difference_update(buffer for buffer, access in op.uses if access != "read")

    def _define(self, op):
        """Adds an op without time that makes arbitrary content, before an op that reads unwritten bytes or writes only
        some of them. So the content can be recomputed."""
        if not self._undefined:
            return
        for buffer, access in op.uses:
            if buffer in self._undefined and access != "write":
                self._run(Op("aten::empty", [(buffer, "write")], op.module, op.phase, line=op.line))

    def _update_running_statistics(self, call, op):
        """The second half of a normalisation in training mode: the running statistics move towards those of the batch.
        It is an op of its own, because the output does not depend on the old statistics. With one op for both halves, no
        op before it could be recomputed. The first half has all of the time."""
        batch = [(tensor, "read") for tensor in call.outputs[1:3]]
        running = [(call.value(name), "read_write") for name in ("running_mean", "running_var")]
        uses = [(self._storages.find(tensor), access) for tensor, access in batch + running if tensor is not None]
        self._run(Op(op.name + ".running_stats", uses, op.module, op.phase, line=op.line))

    def _bring_in(self, call):
        """Handles torch.tensor(...): a single number stays on the host; anything larger comes to the device as a
        source."""
        for tensor in call.outputs:
            if tensor.dim() == 0:
                self._storages.add_host(tensor)
                continue
            buffer = self._storages.add(tensor, kind="input")
            if isinstance(buffer, Buffer):
                self.program.alloc(buffer)
                module, phase, line = self._position.now()
                self._run(Op(call.name, [(buffer, "write")], module, phase, "source", line=line))

    def _find_kinds(self, look_up):
        """Gives names and kinds to the buffers of models and optimizers. `look_up` finds the buffer of a tensor, or
        None for tensors that stay as they are."""
        names = {}
        models = [(model, prefix) for reference, prefix in self._models if (model := reference()) is not None]
        optimizers = living(self._optimizers)
        for model, prefix in models:
            for name, parameter in model.named_parameters(prefix):
                names.setdefault(parameter, name)
                classify(look_up, parameter, "parameter", name)
            for name, tensor in model.named_buffers(prefix):
                classify(look_up, tensor, "parameter", name)
        for optimizer in optimizers:
            for parameter, key, value in _optimizer_state(optimizer, self._storages):
                classify(look_up, value, "optimizer_state", f"{names.get(parameter, 'unnamed')}.{key}")
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    names.setdefault(parameter, "")  # a parameter of no model has a gradient, too
        self._names = [(weakref.ref(parameter), name) for parameter, name in names.items()]
        self._find_gradients(look_up)

    def _begin_update(self):
        """A step of an optimizer begins. It may end gradients."""
        self._find_gradients(self._storages.known)

    def _find_gradients(self, look_up):
        """Gives names and the kind to the gradients that exist now."""
        for reference, name in self._names:
            parameter = reference()
            if parameter is not None and parameter.grad is not None:
                classify(look_up, parameter.grad, "gradient", name and name + ".grad")

    def _describe(self, name, fake):
        """The metadata of the trace. All recordings of one program have the same metadata."""
        meta = {"source": "torch", "torch": torch.__version__.split("+")[0]}
        meta["capture"] = "dispatch mode, fake tensors" if fake else "dispatch mode, real tensors"
        if name:
            meta["model"] = name
        meta["device"] = self._device.name if self._device else "cpu"
        meta |= self._device.facts_of_times if self._device else {"time": "measured"}
        models = living(model for model, _ in self._models)
        meta["containers"] = json.dumps(containers_of(models))
        names = [each for each in names_of(models) if each]
        if len(names) > 1:
            meta["models"] = json.dumps(names)
        meta["notes"] = _NOTES
        return meta


def living(references):
    """What the weak references refer to, without what has ended."""
    return [each for reference in references if (each := reference()) is not None]


def classify(look_up, tensor, kind, name):
    for held in held_by(tensor):
        name_buffer(look_up(held), kind, name)


def name_buffer(buffer, kind, name):
    if isinstance(buffer, Buffer) and not buffer.name:
        buffer.kind = kind
        buffer.name = name


def updates_parameter(uses):
    return any(access != "read" and buffer.kind == "parameter" for buffer, access in uses)


def _optimizer_state(optimizer, storages):
    """(parameter, key, tensor) of the state on the device. Step counters are on the host unless the optimizer asks for
    them on the device. Other state without dimensions is on the device if its parameter, such as a learned temperature,
    has no dimensions either."""
    for group in optimizer.param_groups:
        on_device = group.get("capturable", False) or group.get("fused", False)
        for parameter in group["params"]:
            for key, value in optimizer.state.get(parameter, {}).items():
                if not isinstance(value, torch.Tensor):
                    continue
                if value.dim() == 0 and not on_device and (key == "step" or parameter.dim() > 0):
                    storages.add_host(value)
                else:
                    yield parameter, key, value
