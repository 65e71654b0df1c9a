"""Content for tensors that autograd saved for backward and that code reads without ops."""

import torch
from torch.utils._python_dispatch import _disable_current_modes


class SavedTensors(torch.autograd.graph.saved_tensors_hooks):
    """The Follower brings back the arguments of ops. But the backward of a custom autograd.Function may pass saved
    tensors to kernels that are no ops of PyTorch; these hooks bring back their content."""

    def __init__(self, follower):
        def pack(tensor):
            with _disable_current_modes():
                return tensor.detach()  # another tensor object: an output that its own op saves would keep itself alive

        def unpack(tensor):
            if isinstance(torch._C._current_autograd_node(), torch.autograd.function.BackwardCFunction):
                return follower.resident(tensor)
            return tensor

        super().__init__(pack, unpack)
