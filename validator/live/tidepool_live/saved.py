"""What autograd has saved for backward, for code whose use of it no op shows."""

import torch
from torch.utils._python_dispatch import _disable_current_modes


class SavedTensors(torch.autograd.graph.saved_tensors_hooks):
    """Ops see to their arguments themselves (Follower). But the backward of a custom autograd.Function may hand saved
    tensors to kernels that are no ops of PyTorch; it gets them with their content in place."""

    def __init__(self, follower):
        def pack(tensor):
            with _disable_current_modes():
                return tensor.detach()  # not the tensor itself: an op's own output would keep itself alive

        def unpack(tensor):
            if isinstance(torch._C._current_autograd_node(), torch.autograd.function.BackwardCFunction):
                return follower.resident(tensor)
            return tensor

        super().__init__(pack, unpack)
