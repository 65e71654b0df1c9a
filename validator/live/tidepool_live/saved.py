"""Content for tensors that autograd saved for backward and that code reads without ops."""

import torch
from torch.autograd.function import BackwardCFunction
from torch.utils._python_dispatch import _disable_current_modes


class SavedTensors(torch.autograd.graph.saved_tensors_hooks):
    """The Follower brings back the arguments of ops. But the backward of a custom autograd.Function may pass saved
    tensors to kernels that are no ops of PyTorch; these hooks bring back their content."""

    def __init__(self, follower):
        def pack(tensor):
            with _disable_current_modes():
                return tensor.detach()  # another tensor object: an output that its own op saves would keep itself alive

        def unpack(tensor):
            if isinstance(torch._C._current_autograd_node(), BackwardCFunction):
                return follower.resident(tensor)
            return tensor

        super().__init__(pack, unpack)


class ReadSavedTensors:
    """The same where content comes back into the tensors that were saved: only the functions that read them are seen, and no
    tensor of PyTorch's own functions."""

    def __init__(self, follower):
        self._follower = follower

    def __enter__(self):
        saved = torch._C._FunctionBase.saved_tensors

        def read(function):
            tensors = saved.__get__(function)
            return tuple(self._follower.resident(each) if isinstance(each, torch.Tensor) else each for each in tensors)

        BackwardCFunction.saved_tensors = property(read)
        return self

    def __exit__(self, *_):
        if "saved_tensors" in vars(BackwardCFunction):
            del BackwardCFunction.saved_tensors


def saved_tensors_of(follower):
    """The context in which custom functions find the content of the tensors that they saved."""
    return SavedTensors(follower) if follower.replaces else ReadSavedTensors(follower)
