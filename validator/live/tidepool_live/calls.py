"""What a call of an op does, as far as a Follower asks."""

import torch
from tidepool_torch.program import Buffer
from tidepool_torch.schema import SHAPE_ONLY, UNINITIALISED
from tidepool_torch.storages import EMPTY, HOST


class Anywhere:
    """Replacement of Position, which finds modules, phases and lines of ops: they are not needed here."""

    in_call = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def start_iteration(self):
        pass

    def now(self):
        return "", "forward", ""


def after_backward(function):
    """Calls the function at the end of the backward pass that runs, or at once if none does."""
    if torch._C._current_graph_task_id() == -1:
        function()
    else:
        torch.autograd.Variable._execution_engine.queue_callback(function)


def allocates(call):
    """Whether the call makes a storage without content. PyTorch also makes tensors of no elements, for a storage that exists."""
    if call.short_name not in UNINITIALISED:
        return False
    size = call.value("size")
    return size is None or 0 not in size


def needs_no_content(call):
    """Whether the op reads no bytes. With hooks on saved tensors, autograd detaches each saved tensor before the backward op
    that needs it, and often long before."""
    return call.short_name in SHAPE_ONLY or (call.short_name == "detach" and torch._C._current_graph_task_id() != -1)


def uses_empty(given):
    """Whether an argument has lost its content. given: (argument, tensor, buffer) for each tensor."""
    return any(isinstance(buffer, Buffer) and tensor.untyped_storage().nbytes() < buffer.size for _, tensor, buffer in given)


def disturbs(call, given, numbers):
    """Whether an op that is not the expected one may write to buffers of the step, which are the keys of `numbers`."""
    statistics = ("running_mean", "running_var") if call.updates_running_statistics() else ()
    return _changes_something(call, given) and any(
        call.access(argument, tensor) in ("write", "read_write") or argument.name in statistics
        for argument, tensor, buffer in given if isinstance(buffer, Buffer) and buffer in numbers)


def _changes_something(call, given):
    """Whether a trace could contain the op: it is no view, it writes or returns a tensor, and it uses the device."""
    if given and all(buffer is HOST or buffer is EMPTY for _, _, buffer in given):
        return False
    if call.short_name in UNINITIALISED or call.short_name in ("_unsafe_view", "lift_fresh"):
        return False
    returns = call.func._schema.returns
    return not returns or any(each.alias_info is None or each.alias_info.is_write for each in returns)
